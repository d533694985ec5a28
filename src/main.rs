//! The program. Here it is only a guard; the roof comes later.

use std::env;
use std::ffi::OsStr;
use std::process::ExitCode;

use tiller::tools::guard;

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    match arguments.next() {
        Some(word) if word == OsStr::new(guard::WORD) => guard::main(arguments),
        Some(_) | None => ExitCode::FAILURE,
    }
}
