//! Going back to an iteration, branching off after one, and taking up again, from the screen. The first two are written
//! only while nobody looks at the run: the room is left for them, once to see what they would not undo, and once more to
//! have them done (docs/ENGINE.md §15).

use crate::domain::command::Command;
use crate::domain::command::before_its_beginning;
use crate::domain::status::Status;
use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::app::Out;
use crate::tui::composer::Composer;
use crate::tui::keymap;
use crate::tui::popup::Asks;
use crate::tui::popup::Popup;

/// What must be typed before anything is done.
pub const SURE: &str = "yes";

/// A step out of the run as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which way.
    pub kind: StepKind,
    /// To, or from, the end of this iteration.
    pub iteration: u32,
}

/// Which way a step leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Back to the end of an iteration, in the same run.
    Back,
    /// Into a new run that begins with a copy.
    Fork,
}

impl StepKind {
    /// What is done, as the head of a dialog.
    pub fn title(self) -> &'static str {
        match self {
            StepKind::Back => "Go back",
            StepKind::Fork => "Branch off",
        }
    }
}

/// A step that was looked into, and what the operator must know before it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The step.
    pub step: Step,
    /// What it does and what it does not undo, in lines that are fit for the screen.
    pub told: Vec<String>,
}

/// The keys that lead on from a run that failed or was cancelled.
pub fn ways_on() -> String {
    let (again, back, fork) = (Action::Resume, Action::AskBack, Action::AskFork);
    let [again, back, fork] = [again, back, fork].map(keymap::key_of);
    format!("{again} takes it up again, {back} goes back, {fork} branches off")
}

/// Takes the word that has the step done; anything else leaves all as it is.
pub(crate) fn sure(doubt: &Doubt, word: &str) -> Result<Out, String> {
    let refused = || format!("type {SURE} to have it done; Esc leaves all as it is");
    (word == SURE).then_some(Out::Do(doubt.step)).ok_or_else(refused)
}

impl App {
    /// Asks for the iteration.
    pub(crate) fn ask_step(&mut self, kind: StepKind) {
        let last = self.run.history.last().map_or(0, |closed| closed.n);
        self.open(Popup::Words { asks: Asks::Iteration(kind), line: Composer::suggesting(&last.to_string()) });
    }

    /// Takes the number of the iteration; the room is left to see what the step would not undo.
    pub(crate) fn step_to(&self, kind: StepKind, text: &str) -> Result<Out, String> {
        let asked = text.parse::<u32>().ok();
        let before = self.run.lineage.as_ref().zip(asked).filter(|(own, asked)| (1..own.iteration).contains(asked));
        let is_closed = |n: &u32| self.run.history.iter().any(|closed| closed.n == *n);
        match (before, asked.filter(is_closed)) {
            (Some((own, asked)), _) => Err(before_its_beginning(asked, &own.parent, own.iteration)),
            (None, Some(iteration)) => Ok(Out::Look(Step { kind, iteration })),
            (None, None) => {
                let last = self.run.history.last().map_or(0, |closed| closed.n);
                Err(format!("give the number of a closed iteration, {last} at most"))
            }
        }
    }

    /// Goes on with a parked run; one that failed or was cancelled is taken up again first.
    pub(crate) fn resume(&mut self) -> Vec<Out> {
        match &self.run.status {
            Status::Failed(_) | Status::Cancelled => self.submit(Command::Retry, Some(Command::Resume)),
            Status::Queued | Status::Running | Status::Parked(_) | Status::Completed(_) => {
                self.submit(Command::Resume, None)
            }
        }
    }
}
