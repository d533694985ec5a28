//! What is said about files that can be put back after a rewind, or were (docs/ENGINE.md §15). Pure.

use std::path::Path;

use crate::domain::restoring::Restore;
use crate::domain::restoring::Way;
use crate::domain::run::Run;
use crate::headless::text::title;

/// What could be put back, how, and the line to type for it; nothing when no call wrote a file.
pub fn offered(run: &Run, to: u32, all: &[Restore]) -> String {
    let can = |one: &&Restore| matches!(one.way, Way::PutBack | Way::Remove);
    let (ready, other): (Vec<_>, Vec<_>) = all.iter().partition(can);
    let mut text = String::new();
    if !ready.is_empty() {
        let line = format!("tiller rewind {} {to} --restore", run.id.short());
        text += &format!("[files] these can be put back as they were; type: {line}\n");
    }
    for one in ready {
        let how = match one.way {
            Way::Remove => format!("would be removed: it was not there before {}", one.call),
            Way::PutBack | Way::AsBefore | Way::Not(_) => format!("would be as it was before {}", one.call),
        };
        text += &format!("  {}: {how}\n", name(one, &run.terms.workspace));
    }
    for one in other {
        text += &told(one, &run.terms.workspace, None);
    }
    text
}

/// What became of one file. `failure` is why it could not be put back, if that was tried.
pub fn told(one: &Restore, workspace: &str, failure: Option<&str>) -> String {
    let (name, call) = (name(one, workspace), one.call);
    match (failure, &one.way) {
        (Some(why), _) => format!("[stays] {name}, written by {call}: {}\n", title(why)),
        (None, Way::PutBack) => format!("[put back] {name} is as it was before {call}\n"),
        (None, Way::Remove) => format!("[put back] {name} is removed: it was not there before {call}\n"),
        (None, Way::AsBefore) => format!("[as before] {name} is as it was before {call}\n"),
        (None, Way::Not(why)) => format!("[stays] {name}, written by {call}: {}\n", title(why)),
    }
}

/// A file as people know it: below the folder of the run, or from the root.
fn name(one: &Restore, workspace: &str) -> String {
    let path = Path::new(&one.write.path);
    title(&path.strip_prefix(workspace).unwrap_or(path).to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::CallId;
    use crate::domain::tool::FileWrite;

    fn check(way: Way, failure: Option<&str>, wanted: &str) {
        let write = FileWrite { path: "/w/a\u{1b}[2J.txt".to_string(), before: None, after: String::new() };
        assert_eq!(told(&Restore { call: CallId(7), write, way }, "/w", failure), wanted);
    }

    #[test]
    fn every_end_has_its_sentence_and_no_name_can_play_tricks() {
        check(Way::PutBack, None, "[put back] a⟦ESC⟧[2J.txt is as it was before c7\n");
        check(Way::Remove, None, "[put back] a⟦ESC⟧[2J.txt is removed: it was not there before c7\n");
        check(Way::AsBefore, None, "[as before] a⟦ESC⟧[2J.txt is as it was before c7\n");
        check(Way::Not("it is gone".to_string()), None, "[stays] a⟦ESC⟧[2J.txt, written by c7: it is gone\n");
        check(Way::PutBack, Some("no space"), "[stays] a⟦ESC⟧[2J.txt, written by c7: no space\n");
    }
}
