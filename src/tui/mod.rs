//! The screen (being written).

pub mod composer;
pub mod guard;
pub mod keymap;
pub mod scroll;
pub mod text;
pub mod theme;
