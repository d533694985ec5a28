//! Keys on what waits for the operator.

use crossterm::event::KeyCode;

use crate::tui::action::Action;
use crate::tui::action::Choice;
use crate::tui::keymap::Binding;
use crate::tui::keymap::chord::key;
use crate::tui::keymap::chord::letter;
use crate::tui::keymap::place::Place;
use crate::tui::keymap::row;

/// The rows, place by place.
pub const ROWS: &[Binding] = &[
    row(Place::Decision, &[letter('y')], Action::Decide(Choice::AllowOnce), "once", "allow this call, once"),
    row(
        Place::Decision,
        &[letter('a')],
        Action::Decide(Choice::AllowRun),
        "this run",
        "allow this call and any with the same tool and the same arguments until the run ends",
    ),
    row(
        Place::Decision,
        &[letter('n')],
        Action::Decide(Choice::Deny),
        "deny",
        "deny this call, and unasked any with the same tool and the same arguments until the run ends",
    ),
    row(
        Place::Decision,
        &[letter('d')],
        Action::Decide(Choice::DenyWithWords),
        "deny + why",
        "the same, with words that reach the model",
    ),
    row(Place::Decision, &[letter('v')], Action::View, "whole", "the whole call, with sizes and line numbers"),
    row(
        Place::Decision,
        &[letter('e')],
        Action::Decide(Choice::Edit),
        "edit",
        "change the arguments and allow it so, once",
    ),
    row(
        Place::Decision,
        &[letter('t')],
        Action::Decide(Choice::AllowTool),
        "tool",
        "allow this call and every other one of its tool, waiting or later, until the run ends, but what is always asked about",
    ),
    row(
        Place::Decision,
        &[letter('A')],
        Action::Decide(Choice::AllowList),
        "all seen",
        "allow all that the list marks as seen to its end; what is grave waits on",
    ),
    row(
        Place::Decision,
        &[letter('r')],
        Action::Decide(Choice::AllowRule),
        "rule",
        "allow this call, and by a standing rule every one of the same words, also in other runs; how far is typed",
    ),
    row(
        Place::Decision,
        &[letter('O')],
        Action::Decide(Choice::AllowUnboxed),
        "unboxed",
        "allow this call, once, to run outside of the box with your full rights; its code is typed",
    ),
    row(
        Place::Outcome,
        &[letter('h')],
        Action::Decide(Choice::Happened),
        "happened",
        "it happened; what came of it can be told",
    ),
    row(Place::Outcome, &[letter('u')], Action::Decide(Choice::NotHappened), "did not", "it did not happen"),
    row(
        Place::Outcome,
        &[letter('r')],
        Action::Decide(Choice::RunAgain),
        "rerun",
        "run it again, at once: this key is your leave; it asks anew only if what it would touch has changed",
    ),
    row(Place::Outcome, &[letter('s')], Action::Decide(Choice::Skip), "skip", "go on without knowing"),
    row(Place::Outcome, &[letter('v')], Action::View, "whole", "the whole call, with sizes and line numbers"),
    row(Place::Question, &[key(KeyCode::Enter)], Action::WriteAnswer, "answer", "write the answer in the composer"),
    row(Place::Question, &[letter('v')], Action::View, "whole", "the whole question"),
];
