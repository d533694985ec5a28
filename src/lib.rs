//! tiller: supervised autonomy in the terminal.
//!
//! The floors, from the ground up; a module imports from below and from its own folder, never up or sideways
//! (`docs/ARCHITECTURE.md`, held by `tests/architecture.rs`):
//!
//! | floor | modules | what |
//! | --- | --- | --- |
//! | 0 | `domain` | nouns, and the fold |
//! | 1 | `policy` | judgements |
//! | 2 | `machine` | respond, advance, turn: the loop |
//! | 3 | `store`, `model`, `tools` | the outside world |
//! | 4 | `engine` | tasks, time and order |
//! | 5 | `protocol` | how a room talks to a run |
//! | 6 | `tui`, `headless`, `sinks` | the rooms, and what is told elsewhere |
//! | 7 | `cli`, `config`, `logging`, `launch`, `rehearsal`, `repository`, `order`, `held`, `archive`, `boxes`, `branch`, `keeping`, `doctor`, `rooms`, `program` | the roof |

pub mod domain;
pub mod policy;
pub mod machine;
pub mod store;
pub mod model;
pub mod tools;
pub mod engine;
pub mod protocol;
pub mod tui;
pub mod headless;
pub mod sinks;
pub mod archive;
pub mod boxes;
pub mod branch;
pub mod cli;
pub mod config;
pub mod logging;
pub mod launch;
pub mod rehearsal;
pub mod repository;
pub mod order;
pub mod held;
pub mod importing;
pub mod preflight;
pub mod keeping;
pub mod telling;
pub mod doctor;
pub mod rooms;
pub mod rules;
pub mod program;
pub mod secrets;
