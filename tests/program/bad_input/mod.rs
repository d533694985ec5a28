//! The real program and everything that can be wrong with what it is given: words, folders, configuration, keys, files,
//! models, tools, disks, signals. Each time it says what happened, what was not done and what to do, and loses nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod real;
mod wire;

#[path = "real/alive.rs"]
mod alive;
#[path = "real/allowing.rs"]
mod allowing;
#[path = "real/commands.rs"]
mod commands;
#[path = "real/contents.rs"]
mod contents;
#[path = "real/folders.rs"]
mod folders;
#[path = "real/short.rs"]
mod short;
#[path = "real/showing.rs"]
mod showing;
#[path = "real/speaking.rs"]
mod speaking;
#[path = "real/starting.rs"]
mod starting;
#[path = "bad_input/credentials.rs"]
mod credentials;
#[path = "bad_input/disk.rs"]
mod disk;
#[path = "bad_input/endings.rs"]
mod endings;
#[path = "bad_input/outputs.rs"]
mod outputs;
#[path = "bad_input/store.rs"]
mod store;
#[path = "bad_input/words.rs"]
mod words;

use commands::shell;
use short::SHORT;
