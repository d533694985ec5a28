//! The real program in a real terminal, played by keys: a whole rehearsal, the ways out, what no key may do, and codes.

mod escapes;
mod grave;
mod keys;
mod opening;
mod pty;
mod rehearsal;
mod vocabulary;
mod ways_out;

use std::time::Duration;

use crate::program::terminal::pty::Pty;

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_G: &str = "\x07";
const CTRL_Z: &str = "\x1a";
const ENTER: &str = "\r";
const ESC: &str = "\x1b";
const F6: &str = "\x1b[17~";

/// More than the time within which keys count as coming together.
const HAND: Duration = Duration::from_millis(100);

/// What the keys of a decision look like when they work: of any call, and of a grave one.
const ARMED: [&str; 2] = ["[y] once", "[y] code…"];

fn is_armed(screen: &str) -> bool {
    ARMED.iter().any(|keys| screen.contains(keys))
}

/// Writes words in a dialog, waits until they are there, and lets a moment pass, as a hand does before it presses Enter.
fn write(pty: &Pty, words: &str) {
    pty.type_in(words);
    let is_there = |line: &str| {
        let field = line.rsplit_once("› ").and_then(|(_, rest)| rest.split('┃').next());
        field.is_some_and(|field| field.trim_end().ends_with(words))
    };
    pty.wait("what was typed is there", |screen| screen.lines().any(is_there));
    std::thread::sleep(HAND);
}

/// The same, and sends them.
fn send(pty: &Pty, words: &str) {
    write(pty, words);
    pty.type_in(ENTER);
}

/// Leaves from whatever pane; the exit status.
fn leave(pty: &mut Pty) -> u32 {
    let in_composer =
        |screen: &str| screen.contains("Tab panes") && !screen.contains("Esc back") && !screen.contains("+ raise");
    if !in_composer(&pty.text()) {
        // An escape and a key that follows at once are another key.
        pty.type_in(ESC);
        pty.wait("the composer has the keys", in_composer);
    }
    pty.type_in(CTRL_D);
    let code = pty.end();
    pty.check_restored();
    code
}

/// Waits until this call can be decided about.
fn armed(pty: &Pty, call: &str) {
    pty.wait(&format!("{call} can be decided"), |screen| screen.contains(call) && is_armed(screen));
}

/// Goes to this call when it waits, because the keys are not there.
fn go_to(pty: &Pty, call: &str) {
    pty.wait(&format!("{call} waits"), |screen| screen.contains(call) && screen.contains("^G goes here"));
    pty.type_in(CTRL_G);
    armed(pty, call);
}

/// Decides about this call with a key.
fn decide(pty: &Pty, call: &str, key: &str) {
    armed(pty, call);
    pty.type_in(key);
    pty.wait("the key is taken", |screen| !is_armed(screen));
}
