//! The screen (being written).

pub mod act;
pub mod app;
pub mod chronicle;
pub mod composer;
pub mod guard;
pub mod keymap;
pub mod live;
pub mod popup;
pub mod rows;
pub mod scroll;
pub mod text;
pub mod theme;
pub mod view;
pub mod waiting;
