//! The program's beginning. All of it stands in `program.rs`, which is built together with everything it uses, on all
//! cores; what stands here is built alone, at the very end.

use std::process::ExitCode;

fn main() -> ExitCode {
    tiller::program::run()
}
