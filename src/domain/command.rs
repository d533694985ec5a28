//! What an operator may ask of a run, and why it may be refused. A refusal is a value; it changes nothing.

use std::fmt;

use serde::Deserialize;
use serde::Serialize;

use crate::domain::approval::Decision;
use crate::domain::approval::Resolution;
use crate::domain::budget::Axis;
use crate::domain::budget::Limit;
use crate::domain::budget::ReservationId;
use crate::domain::fold::Broken;
use crate::domain::id::CallId;
use crate::domain::id::InterjectionId;
use crate::domain::id::RunId;
use crate::domain::limits;
use crate::domain::lineage::NotABoundary;
use crate::domain::money::MicroUsd;
use crate::domain::money::Price;
use crate::domain::plan::TodoId;
use crate::domain::plan::TodoStatus;
use crate::domain::run::NEEDS_GRANT;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::tool::Digest;
use crate::domain::trust::Trust;

/// What an operator asks (docs/ENGINE.md §3.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Decide about a call that waits; the digest is that of the bytes on the screen.
    Decide {
        /// The call.
        call: CallId,
        /// What the operator saw.
        digest: Digest,
        /// What they decided.
        decision: Decision,
    },
    /// Allow these calls once each, all of them or none; each digest is that of the bytes that were shown.
    AllowAll {
        /// The calls that were listed, and no other.
        calls: Vec<(CallId, Digest)>,
    },
    /// Leave for one grave call, with the code that was typed for it.
    Coded {
        /// The code.
        code: String,
        /// The leave: `Decide` or `Resolve`.
        leave: Box<Command>,
    },
    /// Say how much the run does unasked.
    SetTrust(Trust),
    /// Say what became of a call whose outcome is unknown.
    Resolve {
        /// The call.
        call: CallId,
        /// What the operator knows.
        resolution: Resolution,
    },
    /// Answer a question of the model.
    Answer {
        /// The call of `ask_operator`.
        call: CallId,
        /// The answer.
        text: String,
    },
    /// Say something to the agent; it is told at the start of an iteration.
    Interject {
        /// What is said.
        text: String,
        /// When it is told.
        policy: Policy,
    },
    /// Take back something that was said and is not told yet.
    Withdraw(InterjectionId),
    /// Stop durably.
    Pause(Pause),
    /// Go on.
    Resume,
    /// Go on with a stalled run, and grant it new replans.
    GrantReplans,
    /// Say whether the claim is right, where a check asks.
    Confirm {
        /// The claim and the question, as they were shown (`Run::claim_digest`).
        claim: Digest,
        /// Whether it is.
        confirmed: bool,
        /// Words for the model, possibly empty.
        text: String,
    },
    /// Take the work of a parked run as it is: completed.
    Accept,
    /// Close a parked run as failed.
    Close,
    /// End the run.
    Cancel(Cancel),
    /// Take up a run that failed or was cancelled where it ended.
    Retry,
    /// Set a new limit. Absolute, not a difference.
    Raise {
        /// On which axis.
        axis: Axis,
        /// The new limit.
        limit: Limit,
    },
    /// Change the plan; the model is told.
    EditPlan(PlanEdit),
    /// Say what the model costs, or to go on without knowing.
    Price {
        /// The price; nothing means that money is not counted.
        price: Option<Price>,
    },
    /// Put an actual figure in the place of a charge that nobody could verify.
    Correct {
        /// Of which reservation.
        id: ReservationId,
        /// What it cost.
        amount: MicroUsd,
    },
    /// The operator leaves: as a pause now, but what waits for them keeps waiting.
    Leave,
}

/// What a command says about one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCall<'a> {
    /// This decision.
    Decided(&'a Decision),
    /// That it may run once, with others of a list.
    Listed,
    /// What became of it.
    Resolved,
    /// The answer to its question.
    Answered,
}

impl Command {
    /// What it says about this call, if it says something about it.
    pub fn about(&self, id: CallId) -> Option<OnCall<'_>> {
        match self {
            Command::Decide { call, digest: _, decision } => (*call == id).then_some(OnCall::Decided(decision)),
            Command::AllowAll { calls } => calls.iter().any(|(call, _)| *call == id).then_some(OnCall::Listed),
            Command::Resolve { call, resolution: _ } => (*call == id).then_some(OnCall::Resolved),
            Command::Answer { call, text: _ } => (*call == id).then_some(OnCall::Answered),
            Command::Coded { code: _, leave } => leave.about(id),
            Command::SetTrust(_)
            | Command::Interject { .. }
            | Command::Withdraw(_)
            | Command::Pause(_)
            | Command::Resume
            | Command::GrantReplans
            | Command::Confirm { .. }
            | Command::Accept
            | Command::Close
            | Command::Cancel(_)
            | Command::Retry
            | Command::Raise { .. }
            | Command::EditPlan(_)
            | Command::Price { .. }
            | Command::Correct { .. }
            | Command::Leave => None,
        }
    }

    /// The request to stop that it is, if it is one.
    pub fn control(&self) -> Option<Control> {
        match self {
            Command::Pause(pause) => Some(Control::Pause(*pause)),
            Command::Cancel(cancel) => Some(Control::Cancel(*cancel)),
            Command::Leave => Some(Control::Leave),
            Command::Decide { .. }
            | Command::Coded { .. }
            | Command::AllowAll { .. }
            | Command::SetTrust(_)
            | Command::Resolve { .. }
            | Command::Answer { .. }
            | Command::Interject { .. }
            | Command::Withdraw(_)
            | Command::Resume
            | Command::GrantReplans
            | Command::Confirm { .. }
            | Command::Accept
            | Command::Close
            | Command::Retry
            | Command::Raise { .. }
            | Command::EditPlan(_)
            | Command::Price { .. }
            | Command::Correct { .. } => None,
        }
    }

    /// What it says to the agent, if it says something.
    pub fn said(&self) -> Option<&str> {
        if let Command::Interject { text, policy: _ } = self { Some(text) } else { None }
    }
}

/// What an operator changes in the plan (docs/ENGINE.md §6.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanEdit {
    /// A new todo, after those that stand.
    Add {
        /// What it is.
        title: String,
    },
    /// Another title.
    Retitle {
        /// Of which.
        id: TodoId,
        /// The title.
        title: String,
    },
    /// Where it stands.
    Mark {
        /// Which.
        id: TodoId,
        /// There.
        status: TodoStatus,
        /// Why; possibly empty.
        note: String,
    },
    /// Its place among those of its level.
    Move {
        /// Which.
        id: TodoId,
        /// From 1.
        position: usize,
    },
}

/// When the agent is told what was said (docs/ENGINE.md §12.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// At the start of the next iteration.
    #[default]
    Next,
    /// As soon as what runs has ended; the rest of the reply's calls are not started.
    SteerNow,
    /// At once: what runs is ended, the rest is not started.
    Interrupt,
    /// When the run would end, or park because its claims were rejected; it goes on instead.
    AfterDone,
}

impl Policy {
    /// All of them, in the order in which a screen offers them.
    pub const ALL: [Policy; 4] = [Policy::Next, Policy::SteerNow, Policy::Interrupt, Policy::AfterDone];

    /// When the agent is told, in a few words.
    pub fn phrase(self) -> &'static str {
        match self {
            Policy::Next => "told at the next iteration",
            Policy::SteerNow => "told now: the rest of the calls is not run",
            Policy::Interrupt => "told at once: what runs is ended",
            Policy::AfterDone => "told when the run would end",
        }
    }

    /// Whether the rest of the reply's calls is not started for it.
    pub fn steers(self) -> bool {
        match self {
            Policy::SteerNow | Policy::Interrupt => true,
            Policy::Next | Policy::AfterDone => false,
        }
    }

    /// Whether it is the usual one, which its record does not mention.
    pub fn is_next(&self) -> bool {
        *self == Policy::Next
    }
}

/// When a pause takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pause {
    /// When the iteration is closed, or as soon as something waits for the operator.
    AfterIteration,
    /// When the running model call or tool has ended.
    AfterTool,
    /// At once: what runs is ended.
    Now,
}

/// How a run is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cancel {
    /// A running call with outside effects gets `limits::CANCEL_GRACE` to finish.
    Graceful,
    /// At once.
    Now,
}

/// A request to stop that is recorded and not yet honoured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Pause.
    Pause(Pause),
    /// Leave.
    Leave,
    /// Cancel. Outranks the others.
    Cancel(Cancel),
}

impl Control {
    /// Whether what is in flight must be ended at once or soon.
    pub fn ends_work(self) -> bool {
        match self {
            Control::Pause(Pause::AfterIteration | Pause::AfterTool) => false,
            Control::Pause(Pause::Now) | Control::Leave | Control::Cancel(_) => true,
        }
    }
}

/// Why a command was refused. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The run has ended.
    Ended(Status),
    /// The run has ended, so nothing can be said to its agent.
    EndedUnsaid(Status),
    /// The run must be running for this.
    NotRunning(Status),
    /// The run must be parked for this.
    NotParked(Status),
    /// The run must have failed or been cancelled for this.
    NotEnded(Status),
    /// There is no such place to go back to, or to branch off from.
    NotABoundary(NotABoundary),
    /// The run is stalled and has used up its replans.
    NeedsGrant,
    /// The run is not stalled, so there is nothing to grant.
    NotStalled(Status),
    /// No check asks for the operator's word.
    NothingToConfirm,
    /// The claim, or what is asked about it, is not what the operator saw.
    ClaimChanged,
    /// What it was parked for still holds.
    ReasonNotCleared {
        /// What that is.
        reason: ParkReason,
        /// What can be done, as exactly as it is known.
        remedy: String,
    },
    /// There is no such call, or it does not wait for this.
    NoSuchCall(CallId),
    /// The call was decided already, or has ended.
    AlreadyDecided(CallId),
    /// The call is not what the operator saw.
    BindingChanged(CallId),
    /// The call is asked about each time, or too wide a grant was asked for; the sentence says why.
    TooWide(CallId, &'static str),
    /// The call is grave, and its code was not typed.
    NeedsCode(CallId, String),
    /// Another code was typed than that of the call: that of the second one, where it waits, too.
    WrongCode(CallId, Option<CallId>),
    /// The changed arguments do not fit the tool.
    BadEdit(String),
    /// With the changed arguments the call would not run.
    EditRefused(String),
    /// No rule can be made of the decision, or it could not be kept.
    BadRule(String),
    /// The text is empty.
    Empty,
    /// The text is too long.
    TooLong,
    /// Too many interjections wait.
    TooMany,
    /// Nothing of this name was ever said.
    NeverSaid(InterjectionId),
    /// The agent was told already.
    AlreadyDelivered(InterjectionId),
    /// The new limit is zero, or lies below what is spent.
    BadLimit(String),
    /// The edit does not fit the plan.
    BadPlan(String),
    /// The price can't be chosen.
    BadPrice(String),
    /// The charge can't be corrected.
    BadCorrection(String),
    /// An outcome for something that is not in flight any more.
    Stale,
    /// The store could not be written; nothing was done.
    Storage(String),
    /// The engine of the run has stopped in this process, and why.
    Stopped(String),
    /// The engine of the run broke down before it could answer. The command may be recorded.
    Unanswered,
    /// The loop met a state that must not be. A bug, or a damaged journal.
    Broken(String),
}

impl Refusal {
    /// What it says of this run: the lines to type in it name the run.
    pub fn of(&self, run: &RunId) -> String {
        self.to_string().replace("RUN", run.short())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Ended(status) => {
                write!(out, "the run has ended ({}); {}", status.phrase(), status.way_on().unwrap_or_default())
            }
            Refusal::NotABoundary(NotABoundary { asked, before: Some((parent, begins)), .. }) => {
                out.write_str(&before_its_beginning(*asked, parent, *begins))
            }
            Refusal::NotABoundary(NotABoundary { asked, nearest: Some(nearest), before: None }) => {
                write!(
                    out,
                    "iteration {asked} is not a closed one of this run; nothing changed; the nearest is {nearest}"
                )
            }
            Refusal::NotABoundary(NotABoundary { nearest: None, before: None, .. }) => {
                write!(
                    out,
                    "no iteration of this run is closed yet, so there is nowhere to go back to; nothing changed"
                )
            }
            Refusal::NotEnded(status) => {
                write!(out, "the run has not ended: it is {}; there is nothing to retry", status.word())
            }
            Refusal::EndedUnsaid(status) => write!(
                out,
                "the run has ended ({}); nothing was sent; a fork from its end can begin with this text; {}",
                status.phrase(),
                status.way_on().unwrap_or_default()
            ),
            Refusal::NotRunning(status) => write!(out, "the run is not running: it is {}", status.phrase()),
            Refusal::NotParked(status) => write!(out, "the run is not parked: it is {}", status.phrase()),
            Refusal::ReasonNotCleared { reason, remedy } => {
                write!(out, "the run can't go on yet: {}; {remedy}", reason.phrase())
            }
            Refusal::NeedsGrant => write!(out, "the run has used up its replans; {NEEDS_GRANT}"),
            Refusal::NotStalled(status) => {
                write!(
                    out,
                    "the run is {}, not stalled; nothing was granted; resume it without a grant",
                    status.phrase()
                )
            }
            Refusal::NothingToConfirm => write!(out, "no check asks for your word; nothing was recorded"),
            Refusal::ClaimChanged => {
                write!(
                    out,
                    "what is asked about the claim is not what you saw any more; nothing was recorded; look again"
                )
            }
            Refusal::NoSuchCall(call) => write!(out, "call {call} does not wait for this"),
            Refusal::AlreadyDecided(call) => {
                write!(out, "call {call} was decided already, or has ended; nothing changed")
            }
            Refusal::BindingChanged(call) => {
                write!(out, "call {call} is not what you saw any more; nothing was decided; look again")
            }
            Refusal::TooWide(call, why) => write!(out, "{why}; nothing was decided; allow {call} once"),
            Refusal::BadRule(why) => write!(out, "no rule was made: {why}; nothing was decided"),
            Refusal::NeedsCode(call, why) => {
                write!(out, "{call} needs its code: {why}; nothing was decided; `tiller show RUN` names the code")
            }
            Refusal::WrongCode(call, Some(other)) => write!(
                out,
                "this is the code of {other}, not of {call}, which waits for you; nothing was decided; `tiller show RUN` \
                 names the code of each"
            ),
            Refusal::WrongCode(call, None) => write!(
                out,
                "this is not the code of {call}, which waits for you; it is mistyped, or that of another call or run, or \
                 of the other side of its box, or of what {call} was before; nothing was decided; `tiller show RUN` names \
                 the code"
            ),
            Refusal::EditRefused(why) => {
                write!(out, "as you changed it, it would not run: {why}; nothing was decided; change it further")
            }
            Refusal::BadEdit(why) => write!(out, "the changed arguments do not fit: {why}; nothing was decided"),
            Refusal::Empty => write!(out, "the text is empty; nothing was sent"),
            Refusal::TooLong => write!(
                out,
                "the text is longer than {} KiB; nothing was sent; put it in a file and name the file",
                limits::SAY_MAX_BYTES / 1024
            ),
            Refusal::TooMany => {
                write!(
                    out,
                    "{} messages wait already; nothing was sent; resume the run first",
                    limits::INTERJECTIONS_MAX
                )
            }
            Refusal::NeverSaid(id) => write!(out, "nothing was said under the name {id}; nothing was taken back"),
            Refusal::AlreadyDelivered(id) => {
                write!(out, "the agent was told {id} already; nothing was taken back; say something else to correct it")
            }
            Refusal::BadLimit(why) => write!(out, "{why}; the limit was not changed"),
            Refusal::BadPlan(why) => write!(out, "{why}; the plan was not changed"),
            Refusal::BadPrice(why) => write!(out, "{why}; the price was not changed"),
            Refusal::BadCorrection(why) => write!(out, "{why}; nothing was corrected"),
            Refusal::Stale => write!(out, "that is not under way any more"),
            Refusal::Storage(why) => {
                write!(
                    out,
                    "the journal could not be written ({why}); nothing was done; see to that (free space, where there is none), then resume"
                )
            }
            Refusal::Stopped(why) => {
                write!(out, "the engine of this run has stopped ({why}); nothing was done; open the run again")
            }
            Refusal::Unanswered => {
                write!(
                    out,
                    "the engine of this run broke down before it answered; look at the run before you repeat it"
                )
            }
            Refusal::Broken(why) => {
                write!(out, "the journal and the loop disagree ({why}); the run was stopped before anything was done")
            }
        }
    }
}

impl From<Broken> for Refusal {
    fn from(broken: Broken) -> Refusal {
        Refusal::Broken(broken.to_string())
    }
}

impl std::error::Error for Refusal {}

/// Why a fork goes back no further than to its own beginning, in a sentence.
pub fn before_its_beginning(asked: u32, parent: &RunId, begins: u32) -> String {
    format!(
        "iteration {asked} belongs to run {parent}, from which this run branched off after iteration {begins}; it goes \
         back no further than that; nothing changed; go back in run {parent}, or branch off from it",
        parent = parent.short()
    )
}
