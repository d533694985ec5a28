//! The places in which keys work.

/// Where a key works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Everywhere.
    Anywhere,
    /// On the screen of a run, with nothing open above it.
    Screen,
    /// In the text field for the agent.
    Composer,
    /// Wherever something moves: panes, full views, help.
    Moving,
    /// In a pane of the run's screen.
    Pane,
    /// In the plan.
    Plan,
    /// In the activity.
    Activity,
    /// On a call that waits for a decision.
    Decision,
    /// On a call whose outcome is unknown.
    Outcome,
    /// On a question of the model.
    Question,
    /// In a line of words that is asked for.
    Words,
    /// In the changed arguments of a call.
    Edit,
    /// In a line that something is to be done with: a code, a mode, a price, a change, a number, a yes.
    Entry,
    /// In the dialog that raises a limit.
    Raise,
    /// In the dialog that cancels a run.
    Cancel,
    /// In the menu.
    Menu,
    /// In the list of runs.
    Runs,
    /// In the text field of the list of runs.
    Goal,
}

impl Place {
    /// All places, in the order in which help and documentation name them.
    pub const ALL: [Place; 18] = [
        Place::Anywhere,
        Place::Screen,
        Place::Composer,
        Place::Moving,
        Place::Pane,
        Place::Plan,
        Place::Activity,
        Place::Decision,
        Place::Outcome,
        Place::Question,
        Place::Words,
        Place::Edit,
        Place::Entry,
        Place::Raise,
        Place::Cancel,
        Place::Menu,
        Place::Runs,
        Place::Goal,
    ];

    /// The place in words.
    pub fn phrase(self) -> &'static str {
        match self {
            Place::Anywhere => "anywhere",
            Place::Screen => "on the screen of a run",
            Place::Composer => "in the composer",
            Place::Moving => "in lists and views",
            Place::Pane => "in any pane",
            Place::Plan => "in the plan",
            Place::Activity => "in the activity",
            Place::Decision => "on a call that waits for a decision",
            Place::Outcome => "on a call whose outcome is unknown",
            Place::Question => "on a question",
            Place::Words => "where words are asked for",
            Place::Edit => "changing the arguments of a call",
            Place::Entry => "where a code, a mode, a price, a change of the plan, an iteration or a yes is asked for",
            Place::Raise => "raising a limit",
            Place::Cancel => "cancelling a run",
            Place::Menu => "in the menu",
            Place::Runs => "in the list of runs",
            Place::Goal => "writing a new goal",
        }
    }
}
