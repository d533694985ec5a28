//! What the screen remembers of the records that went by and the folded run does not keep: notes about failures,
//! checks, stalls and changes, in their place among the talk. Bounded; the oldest are forgotten first.

use std::collections::BTreeMap;
use std::collections::VecDeque;

use crate::domain::approval::By;
use crate::domain::approval::Decision;
use crate::domain::approval::Origin;
use crate::domain::approval::Resolution;
use crate::domain::budget::Limit;
use crate::domain::context::Author;
use crate::domain::event::ClaimVerdict;
use crate::domain::event::Event;
use crate::domain::event::Finding;
use crate::domain::event::Record;
use crate::domain::id::CallId;
use crate::domain::limits;
use crate::domain::model::FailureClass;
use crate::domain::run::Run;
use crate::domain::sandbox;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::terms::Check;
use crate::domain::text::counted;
use crate::domain::text::head;
use crate::domain::text::one_line;
use crate::domain::visible::title;
use crate::domain::visible::transcript;
use crate::policy::decider;
use crate::tui::theme::Role;

/// A note in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The iteration it belongs to.
    pub iteration: u32,
    /// It stands before the entry of this index of the conversation.
    pub before: usize,
    /// The mark in front of it.
    pub mark: &'static str,
    /// How it is shown.
    pub role: Role,
    /// What it says, sanitised.
    pub text: String,
}

/// The notes, oldest first, and what each iteration was about.
#[derive(Clone, Debug, Default)]
pub struct Chronicle {
    notes: VecDeque<Note>,
    todos: VecDeque<(u32, String)>,
    /// What the run is parked for, while it is.
    parked: Option<String>,
    /// Who decided about calls; nothing for one of which that holds no longer.
    decided: BTreeMap<CallId, Option<String>>,
    /// Why the last claim was rejected that was.
    rejected: Option<String>,
    /// Where calls ran that started a program.
    ran: BTreeMap<CallId, String>,
    /// What calls that were allowed for the run are about, by what every equal call shares.
    granted: BTreeMap<String, String>,
}

/// Longest reason of a rejected claim that is kept for where the run stands, in characters.
const WHY_CHARS: usize = 400;

/// A mark, how it is shown, and a text that is not sanitised yet.
type Said = (&'static str, Role, String);

impl Chronicle {
    /// Knows nothing of what went by but where the run stands.
    pub fn begin(run: &Run) -> Chronicle {
        let mut chronicle = Chronicle::default();
        chronicle.stand(&run.status);
        chronicle
    }

    /// Puts what went by before in front of what was taken in since.
    pub fn follow(&mut self, before: Chronicle) {
        let parked = self.parked.take();
        let rejected = self.rejected.take().or_else(|| before.rejected.clone());
        let after = std::mem::replace(self, Chronicle { parked, rejected, ..before });
        self.notes.extend(after.notes);
        keep(&mut self.notes);
        self.todos.extend(after.todos);
        keep(&mut self.todos);
        self.decided.extend(after.decided);
        while self.decided.len() > limits::NOTES_MAX {
            self.decided.pop_first();
        }
        self.ran.extend(after.ran);
        while self.ran.len() > limits::NOTES_MAX {
            self.ran.pop_first();
        }
        self.granted.extend(after.granted);
        while self.granted.len() > limits::NOTES_MAX {
            self.granted.pop_first();
        }
    }

    /// What the calls of this run are about that are allowed exactly as they were, as far as that is known still.
    pub fn granted<'a>(&'a self, run: &'a Run) -> impl Iterator<Item = &'a str> {
        run.progress.granted.iter().filter_map(|grant| self.granted.get(grant)).map(String::as_str)
    }

    /// Takes in a record that was written there and just folded into `run`; `talk` is the length of the conversation
    /// before it.
    pub fn take(&mut self, record: &Record, run: &Run, talk: usize, origin: Origin) {
        if let Event::IterationStarted { n, .. } = &record.event {
            let todo = run.plan.current().map(|todo| todo.title.clone()).unwrap_or_default();
            self.todos.push_back((*n, todo));
            keep(&mut self.todos);
        }
        if let Event::Rewound { to, .. } = &record.event {
            self.notes.retain(|note| note.iteration <= *to);
            self.todos.retain(|(n, _)| n <= to);
        }
        if let Some((call, who)) = decider::of_event(&record.event, origin) {
            self.decided.insert(call, who.map(|who| title(&who, limits::TODO_TITLE_MAX_CHARS)));
            if self.decided.len() > limits::NOTES_MAX {
                self.decided.pop_first();
            }
        }
        if let Event::ClaimJudged { verdict: ClaimVerdict::Rejected, text } = &record.event {
            self.rejected = Some(one_line(&transcript(head(text, limits::NOTE_MAX_BYTES)), WHY_CHARS));
        }
        if let Event::ToolCallStarted { call, .. } = &record.event
            && let Some(place) = run.calls.get(call).and_then(sandbox::place_of)
        {
            self.ran.insert(*call, place);
            if self.ran.len() > limits::NOTES_MAX {
                self.ran.pop_first();
            }
        }
        if let Event::ApprovalDecided { call, decision: Decision::AllowRun, by: By::Operator(_), .. } = &record.event
            && let Some(call) = run.calls.get(call)
        {
            let about = title(&format!("{} {}", call.tool, call.title()), limits::TODO_TITLE_MAX_CHARS);
            self.granted.insert(call.grant(), about);
            if self.granted.len() > limits::NOTES_MAX {
                self.granted.pop_first();
            }
        }
        let said = describe(&record.event, run, origin).or_else(|| self.went_on(&record.event));
        if let Some((mark, role, text)) = said {
            let text = transcript(head(&text, limits::NOTE_MAX_BYTES));
            self.notes.push_back(Note { iteration: run.iteration.n, before: talk, mark, role, text });
            keep(&mut self.notes);
        }
    }

    /// A run that goes on says what it had been parked for, unless a decision of the operator says so already.
    fn went_on(&mut self, event: &Event) -> Option<Said> {
        let Event::StatusChanged { status, .. } = event else { return None };
        let before = self.parked.take();
        self.stand(status);
        let reason = before.filter(|_| *status == Status::Running)?;
        Some(("▸", Role::Dim, format!("went on; it had been parked: {reason}")))
    }

    fn stand(&mut self, status: &Status) {
        if let Status::Parked(reason) = status {
            let is_told = matches!(reason, ParkReason::Approval | ParkReason::OutcomeUnknown | ParkReason::Question);
            self.parked = (!is_told).then(|| reason.phrase());
        }
    }

    /// The notes of an iteration, in their order.
    pub fn of(&self, iteration: u32) -> impl Iterator<Item = &Note> {
        let start = self.notes.partition_point(|note| note.iteration < iteration);
        self.notes.range(start..).take_while(move |note| note.iteration == iteration)
    }

    /// Who decided about a call, where anybody did and that is known still; sanitised.
    pub fn decided(&self, call: CallId) -> Option<&str> {
        self.decided.get(&call)?.as_deref()
    }

    /// Why the last claim was rejected that was; sanitised.
    pub fn rejected(&self) -> Option<&str> {
        self.rejected.as_deref()
    }

    /// Where a call ran, if it started a program and that is known still.
    pub fn ran(&self, call: CallId) -> Option<&str> {
        self.ran.get(&call).map(String::as_str)
    }

    /// What the plan said was being done when an iteration began; not sanitised.
    pub fn todo(&self, iteration: u32) -> Option<&str> {
        let place = self.todos.binary_search_by_key(&iteration, |(n, _)| *n).ok()?;
        self.todos.get(place).map(|(_, todo)| todo.as_str()).filter(|todo| !todo.is_empty())
    }
}

fn keep<T>(queue: &mut VecDeque<T>) {
    while queue.len() > limits::NOTES_MAX {
        queue.pop_front();
    }
}

/// What a record says to the operator, where the conversation and the calls do not say it already.
fn describe(event: &Event, run: &Run, origin: Origin) -> Option<Said> {
    let who = decider::who(origin);
    let theirs = if origin == Origin::Here { Role::Operator } else { Role::Dim };
    let said = match event {
        Event::ModelCallFailed { failure, .. } if failure.class == FailureClass::Cancelled => {
            ("·", Role::Dim, partial("the model call was stopped", &failure.received.text))
        }
        Event::ModelCallFailed { failure, .. } => {
            ("✗", Role::Bad, partial(&format!("model call failed: {}", failure.message), &failure.received.text))
        }
        Event::ModelCallFinished { discarded: Some(why), .. } => {
            ("✗", Role::Warning, format!("reply not used: {why}; asked again"))
        }
        Event::ModelCallFinished { reply, discarded: None, .. } if !reply.opaque.is_empty() => {
            ("·", Role::Dim, format!("the reply held what is not known here:\n{}", reply.opaque.join("\n")))
        }
        Event::ContextPruned { refs } => {
            let text = format!("the model is not sent old texts any more: those of {}", counted(refs.len(), "call"));
            ("·", Role::Dim, text)
        }
        Event::ContextCompacted { from, to, summary, author, .. } => {
            let what = match author {
                Author::Model => "a summary",
                Author::Engine => "no summary was had; a list",
            };
            let text = format!("{what} stands for {} in what the model is sent:\n{summary}", iterations(*from, *to));
            ("·", Role::Dim, text)
        }
        Event::PlanUpdated { by: Some(_), told, .. } => {
            let what = told.strip_prefix("The operator changed the plan: ").unwrap_or(told);
            ("·", theirs, format!("{who} changed the plan: {}", what.trim_end_matches('.')))
        }
        Event::PlanUpdated { by: None, told, .. } if !told.is_empty() => {
            ("·", Role::Dim, "the plan was read from the text of the reply, because no call gave one".to_string())
        }
        Event::PreflightFailed { lacks } => ("!", Role::Warning, format!("can't go on: {}", lacks.join("\n"))),
        Event::Recovered { findings } => ("!", Role::Warning, recovered(findings)),
        Event::BudgetRaised { axis, limit, .. } => {
            let to = match limit {
                Limit::At(amount) => axis.show(*amount),
                Limit::Unlimited => "no limit".to_string(),
            };
            let what = if axis.is_optional() { axis.word().to_string() } else { format!("limit of {}", axis.word()) };
            ("·", theirs, format!("{who} set the {what} to {to}"))
        }
        Event::PriceChosen { price: Some(_), .. } => ("·", theirs, format!("{who} said what the model costs")),
        Event::PriceChosen { price: None, .. } => {
            ("!", Role::Warning, format!("{who} had the run go on without counting money"))
        }
        Event::BudgetCorrected { id, amount, .. } => {
            ("·", theirs, format!("{who} corrected the charge of {id} to {amount}"))
        }
        Event::ApprovalInvalidated { call, why } => ("!", Role::Warning, format!("{call} is looked at anew: {why}")),
        Event::TrustChanged { trust, by } => match by {
            By::Operator(_) => ("·", theirs, format!("{who} set trust to {trust}: {}", trust.meaning())),
            By::Rule(rule) => {
                let rule = if origin == Origin::Here { rule.clone() } else { decider::whom(by, origin) };
                ("!", Role::Warning, format!("trust is {trust} ({rule}): {}", trust.meaning()))
            }
        },
        Event::ApprovalDecided { call, decision: Decision::AllowTool, by: By::Operator(_), .. } => {
            let tool = run.calls.get(call).map_or("?", |call| call.tool.as_str());
            ("·", theirs, format!("{who} allowed every later call of {tool} until the run ends"))
        }
        Event::ApprovalDecided { decision: Decision::AllowRule(draft), .. } => {
            ("·", theirs, format!("{who} made rule {}: {draft}", draft.id()))
        }
        Event::ApprovalDecided { call, decision: Decision::Edit(_), .. } => {
            let line = run.calls.get(call).and_then(|call| Some((call.edited.as_ref()?, &call.arguments)));
            let text = line.map(|(edited, now)| decider::changed(&edited.original, now, who)).unwrap_or_default();
            ("·", theirs, format!("{call} was {text}"))
        }
        Event::ToolOutcomeResolved { call, resolution, .. } => {
            let text = match resolution {
                Resolution::Happened(_) => format!("{who} said that {call} happened"),
                Resolution::NotHappened => format!("{who} said that {call} did not happen"),
                Resolution::RunAgain => format!("{who} had {call} run again"),
                Resolution::Skip => format!("{who} skipped {call} without knowing"),
            };
            ("·", theirs, text)
        }
        Event::InterjectionWithdrawn { id, .. } => ("·", theirs, format!("{who} took {id} back, untold")),
        Event::QuestionAnswered { text, .. } => ("›", theirs, format!("{who} answered: {text}")),
        Event::AcceptanceChecked { index, passed, detail } => {
            let title = run.terms.checks.get(*index).map_or("?".to_string(), Check::title);
            match passed {
                true => ("✓", Role::Good, format!("check {} passed: {title}", index + 1)),
                false => ("✗", Role::Bad, format!("check {} failed: {title}\n{detail}", index + 1)),
            }
        }
        Event::ConfirmationRequested { index } => {
            let question = run.terms.checks.get(*index).map_or("?", Check::question);
            ("‖", Role::Attention, format!("you are asked: {question}"))
        }
        Event::ConfirmationGiven { confirmed: true, .. } => ("✓", theirs, format!("{who} said yes")),
        Event::ConfirmationGiven { confirmed: false, text, .. } => ("✗", theirs, format!("{who} said no {text}")),
        Event::ReplansGranted { .. } => ("·", theirs, format!("{who} granted new replans")),
        Event::CheckInterrupted { index } => {
            ("·", Role::Dim, format!("check {} was stopped; the checks run again from the first", index + 1))
        }
        Event::DoneClaimed { summary, .. } => ("◆", Role::Strong, format!("claims to be finished: {summary}")),
        Event::ClaimJudged { verdict, text } => match verdict {
            ClaimVerdict::Verified => ("✓", Role::Good, "claim verified: every check passed".to_string()),
            ClaimVerdict::Unverified => ("◆", Role::Warning, "claim taken as it is: there is no check".to_string()),
            ClaimVerdict::Rejected => ("✗", Role::Bad, format!("claim rejected: {text}")),
            ClaimVerdict::Postponed => ("·", Role::Dim, format!("claim set aside, because {who} spoke")),
        },
        Event::StallDetected { detector, diagnosis } => {
            ("!", Role::Warning, format!("stalled ({}): {diagnosis}", detector.phrase()))
        }
        Event::Rewound { to, .. } => {
            ("↶", theirs, format!("{who} went back to the end of iteration {to}; what came after it is hidden"))
        }
        Event::RestoreFinished { call, path, failure } => match failure {
            None => ("↶", theirs, format!("{path} is as it was before {call}")),
            Some(why) => ("!", Role::Warning, format!("{path} stays as {call} wrote it: {why}")),
        },
        Event::Forked { parent, iteration, .. } => {
            ("⑂", theirs, format!("branched off from run {parent} after its iteration {iteration}"))
        }
        Event::Imported { .. } => {
            ("·", theirs, format!("{who} brought this run from elsewhere; nothing is allowed in advance"))
        }
        Event::Warned { what, text } => ("!", Role::Warning, format!("warned ({}): {text}", what.phrase())),
        Event::RunCreated { .. }
        | Event::RestoreStarted { .. }
        | Event::OwnerAcquired { .. }
        | Event::StatusChanged { .. }
        | Event::ControlRequested { .. }
        | Event::IterationStarted { .. }
        | Event::InterjectionQueued { .. }
        | Event::InterjectionDelivered { .. }
        | Event::BudgetReserved { .. }
        | Event::BudgetSettled { .. }
        | Event::ModelCallStarted { .. }
        | Event::ModelCallFinished { .. }
        | Event::RetryScheduled { .. }
        | Event::ToolCallProposed { .. }
        | Event::ToolCallPrepared { .. }
        | Event::ApprovalRequested { .. }
        | Event::ApprovalDecided { .. }
        | Event::ToolCallStarted { .. }
        | Event::ToolCallFinished { .. }
        | Event::ToolCallProbed { .. }
        | Event::PlanUpdated { .. }
        | Event::CheckStarted { .. }
        | Event::ProgressObserved { .. }
        | Event::IterationClosed { .. } => return None,
    };
    Some(said)
}

fn partial(what: &str, received: &str) -> String {
    match received.trim() {
        "" => what.to_string(),
        text => format!("{what}; it had said (not part of the talk):\n{text}"),
    }
}

fn recovered(findings: &[Finding]) -> String {
    let lost = |finding: &Finding| match finding {
        Finding::ModelCallLost(_) => "a model call was lost and is charged at its worst case, unverified".to_string(),
        Finding::ToolCallLost(call) => format!("nobody knows whether {call} happened"),
        Finding::CheckLost(index) => format!("check {} is run again", index + 1),
    };
    let lost: Vec<String> = findings.iter().map(lost).collect();
    let what = if lost.is_empty() { "nothing was under way".to_string() } else { lost.join("; ") };
    format!("the process before this one ended without warning: {what}")
}
/// Iterations from one to another.
fn iterations(from: u32, to: u32) -> String {
    if from == to { format!("iteration {from}") } else { format!("iterations {from} to {to}") }
}
