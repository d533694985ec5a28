//! Keys that give leave in wider ways: for a list, with changed arguments, by trust. Whether a deciding key counts is the
//! guard's (`guard.rs`).

use crate::domain::approval::Decision;
use crate::domain::approval::Resolution;
use crate::domain::command::Command;
use crate::domain::id::CallId;
use crate::domain::limits;
use crate::domain::rule::RuleDraft;
use crate::domain::run::Waits;
use crate::domain::tool::Digest;
use crate::domain::trust::Trust;
use crate::policy::editing;
use crate::policy::offering;
use crate::policy::permission;
use crate::tui::action::Choice;
use crate::tui::app::App;
use crate::tui::app::Out;
use crate::tui::composer::Composer;
use crate::tui::dialogs::Unfit;
use crate::tui::popup::Asks;
use crate::tui::popup::Popup;
use crate::tui::theme::Role;
use crate::tui::waiting::Item;

impl App {
    /// Allows every call that waits for a decision and was read to its end; the others wait on, and are counted.
    pub(crate) fn allow_list(&mut self) -> Vec<Out> {
        let waiting = self.waiting.iter().filter(|item| item.waits == Waits::Decision && !self.is_sent(item.call));
        let (grave, others): (Vec<_>, Vec<_>) = waiting.partition(|item| item.grave.is_some());
        let (read, unread): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|item| self.guard.was_read(item.call, item.digest.as_ref()));
        let calls: Vec<(CallId, Digest)> =
            read.iter().filter_map(|item| Some((item.call, item.digest.clone()?))).collect();
        let named = |items: &[&Item]| items.iter().map(|item| item.call.to_string()).collect::<Vec<_>>().join(", ");
        let allowed = match read.len() {
            0 => "nothing was allowed".to_string(),
            count => format!("{count} allowed: {}", named(&read)),
        };
        let left = [
            (named(&unread), unread.len(), ["has not been read to its end", "have not been read to their end"]),
            (
                named(&grave),
                grave.len(),
                ["is grave and has a code of its own", "are grave, each with a code of its own"],
            ),
        ];
        let left = left.iter().filter(|(_, count, _)| *count > 0);
        let left = left.map(|(names, count, why)| format!("{names} {}", why[usize::from(*count > 1)]));
        let told = [allowed].into_iter().chain(left).collect::<Vec<_>>().join("; ");
        let role = if unread.is_empty() && grave.is_empty() { Role::Dim } else { Role::Warning };
        let outs = if calls.is_empty() { Vec::new() } else { self.submit(Command::AllowAll { calls }, None) };
        self.tell_done(told, role);
        outs
    }

    /// Whether the key that allows a list allows this.
    pub(crate) fn is_of_list(&self, item: &Item) -> bool {
        let is_open = item.waits == Waits::Decision && !self.is_sent(item.call);
        is_open && item.grave.is_none() && self.guard.was_read(item.call, item.digest.as_ref())
    }

    /// How many calls that wait go with leave for the tool of this one.
    pub(crate) fn of_its_tool(&self, call: CallId) -> usize {
        let Some(call) = self.run.calls.get(&call) else { return 0 };
        self.run.ordered_calls().filter(|other| permission::goes_with_tool(&self.run, call, other)).count()
    }

    /// Whether this way of letting a call run is typed, not pressed.
    pub(crate) fn needs_code(&self, call: CallId, choice: Choice) -> bool {
        let is_grave = self.waiting.iter().any(|item| item.call == call && item.grave.is_some());
        choice == Choice::AllowUnboxed || (is_grave && matches!(choice, Choice::AllowOnce | Choice::RunAgain))
    }

    /// Leave for a grave call, if what was typed is its code and it is still what was shown.
    pub(crate) fn coded(&self, call: CallId, digest: &Digest, choice: Choice, typed: &str) -> Result<Command, Unfit> {
        let (run, manner) = (&self.run.id, choice.manner());
        if !digest.is_code(run, manner, typed) {
            return Err((format!("nothing was decided: the code is {}", digest.code(run, manner)), Role::Bad));
        }
        let leave = match choice {
            Choice::RunAgain => Command::Resolve { call, resolution: Resolution::RunAgain },
            Choice::AllowUnboxed => Command::Decide { call, digest: digest.clone(), decision: Decision::AllowUnboxed },
            _ => Command::Decide { call, digest: digest.clone(), decision: Decision::AllowOnce },
        };
        let is_same = self.waiting.iter().any(|item| item.call == call && item.digest.as_ref() == Some(digest));
        let gone = || (format!("nothing was decided: {call} is not what was shown any more"), Role::Bad);
        let coded = Command::Coded { code: typed.to_string(), leave: Box::new(leave) };
        if is_same { Ok(coded) } else { Err(gone()) }
    }

    /// Opens the arguments of a call, to be changed.
    pub(crate) fn ask_edit(&mut self, call: CallId, digest: Digest) {
        let arguments = self.run.calls.get(&call).map(|call| call.arguments.clone()).unwrap_or_default();
        if arguments.len() > limits::SAY_MAX_BYTES {
            return self
                .say("the arguments are too long to be changed here; use `tiller approve --edit FILE`", Role::Bad);
        }
        let line = Composer::new(&arguments, Vec::new());
        self.open(Popup::Words { asks: Asks::Edit(call, digest), line });
    }

    /// The decision that changed arguments are, if they fit.
    pub(crate) fn changed(&self, call: CallId, digest: &Digest, arguments: String) -> Result<Command, Unfit> {
        let fits = match self.run.calls.get(&call) {
            Some(call) => editing::fit(&self.run, call, &arguments),
            None => Err("the call is gone".to_string()),
        };
        fits.map_err(|why| (format!("nothing was decided: {why}"), Role::Bad))?;
        Ok(Command::Decide { call, digest: digest.clone(), decision: Decision::Edit(arguments) })
    }

    /// Opens the choice of a standing rule that is made of a call, where one can be made.
    pub(crate) fn ask_rule(&mut self, call: CallId, digest: Digest) {
        match self.no_rule(call) {
            None => self.open(Popup::Words { asks: Asks::Rule(call, digest), line: Composer::default() }),
            Some(why) => self.say(why, Role::Warning),
        }
    }

    /// Why no standing rule can be made of a call, if none can.
    pub(crate) fn no_rule(&self, call: CallId) -> Option<String> {
        let why = self.drafted(call, false).err()?;
        let told = || self.too_wide(call, &format!("no rule can be made of this call: {why}"));
        self.drafted(call, true).err().map(|_| told())
    }

    /// The rule that a call can be made, with its exact words or with the last one open.
    pub(crate) fn drafted(&self, call: CallId, open: bool) -> Result<RuleDraft, String> {
        let call = self.run.calls.get(&call).ok_or_else(|| "the call is gone".to_string())?;
        offering::offer(&self.run, call, open)
    }

    /// The decision that makes a rule, by the words that say how far it reaches.
    pub(crate) fn ruled(&self, call: CallId, digest: &Digest, words: &str) -> Result<Command, Unfit> {
        let (open, everywhere) = match words.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["here"] => (false, false),
            ["everywhere"] => (false, true),
            ["open", "here"] | ["open"] => (true, false),
            ["open", "everywhere"] => (true, true),
            _ => {
                let words = offering::words([false, true].map(|open| self.drafted(call, open)));
                return Err((format!("nothing was decided: type {words}"), Role::Warning));
            }
        };
        let draft = self.drafted(call, open).map_err(|why| (format!("nothing was decided: {why}"), Role::Bad))?;
        let workspace = draft.workspace.clone().filter(|_| !everywhere);
        let decision = Decision::AllowRule(RuleDraft { workspace, ..draft });
        Ok(Command::Decide { call, digest: digest.clone(), decision })
    }

    /// Asks how much the run does unasked.
    pub(crate) fn ask_trust(&mut self) {
        self.open(Popup::Words { asks: Asks::Trust, line: Composer::default() });
    }
}

/// Takes a mode by its whole word, so that nothing is trusted by a slip of a key.
pub(crate) fn trusted(word: &str) -> Result<Command, Unfit> {
    let trust = Trust::parse(word).map_err(|why| (format!("nothing was changed: {why}"), Role::Bad))?;
    Ok(Command::SetTrust(trust))
}
