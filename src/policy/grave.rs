//! Grave calls: those for which leave is typed, letter by letter, because one key too many would be too much
//! (docs/SAFETY.md §5). No grant, no rule and no mode covers one; whoever sends leave for one without its code is refused
//! (`machine/deciding.rs`). What a call is about was found out by the tools; this only judges it.

use crate::domain::line::Line;
use crate::domain::line::Touch;
use crate::domain::run::Run;
use crate::domain::sandbox::Manner;
use crate::domain::tool::Facts;
use crate::domain::tool::Grave;
use crate::domain::tool::ToolCall;
use crate::policy::catastrophe;
use crate::policy::permission;
use crate::policy::table;

/// Why leave to run outside of the box is typed, whatever the call is.
pub const UNBOXED: &str = "it would run outside of the box, with your full rights";

/// Why a call is grave, in a few words; nothing when it is not.
pub fn grave(facts: &Facts) -> Option<String> {
    let line = facts.line.as_ref();
    let ruins = line.and_then(|line| catastrophe::catastrophe(line, &facts.touches));
    let told = facts.grave.iter().filter_map(|one| words(*one, line, &facts.touches));
    let found: Vec<String> = told.map(String::from).chain(ruins).collect();
    (!found.is_empty()).then(|| found.join(", and "))
}

/// As `grave`, of a call; one that was not prepared is not judged yet.
pub fn of(call: &ToolCall) -> Option<String> {
    call.facts.as_ref().and_then(grave)
}

/// The code that is typed to allow a call that waits, where it is grave.
pub fn code(run: &Run, call: &ToolCall) -> Option<String> {
    of(call)?;
    call.digest().map(|digest| digest.code(&run.id, Manner::Usual))
}

/// The code that is typed to let a call that waits run outside of its box, where it has one.
pub fn code_unboxed(run: &Run, call: &ToolCall) -> Option<String> {
    permission::can_leave_box(call).ok()?;
    call.digest().map(|digest| digest.code(&run.id, Manner::Unboxed))
}

/// In a few words. A line that only reads writes nothing, whatever it names; of any other it can't be told what it writes.
fn words(grave: Grave, line: Option<&Line>, touches: &[Touch]) -> Option<&'static str> {
    match (grave, line) {
        (Grave::Keys, _) => Some("it reaches key material"),
        (Grave::RunsLater, None) => Some("it writes files that other programs run by themselves"),
        (Grave::RunsLater, Some(line)) => table::reads(line, touches)
            .is_err()
            .then_some("it names, and may write, files that other programs run by themselves"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(found: &[Grave], expected: Option<&str>) {
        let facts = Facts { grave: found.to_vec(), ..Facts::default() };
        assert_eq!(grave(&facts).as_deref(), expected);
    }

    #[test]
    fn what_tools_find_grave_is_said() {
        check(&[], None);
        check(&[Grave::Keys], Some("it reaches key material"));
        check(
            &[Grave::Keys, Grave::RunsLater],
            Some("it reaches key material, and it writes files that other programs run by themselves"),
        );
    }
}
