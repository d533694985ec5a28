//! A disk that keeps what was synced and nothing else, told from outside by what a program asked the system for.

pub mod disk;
pub mod trace;
