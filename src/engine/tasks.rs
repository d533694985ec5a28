//! What is in flight in this process. Every task that is started gives exactly one outcome, whatever happens to it.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::broadcast;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::domain::id::CallId;
use crate::domain::id::ModelCallId;
use crate::domain::limits;
use crate::domain::message::Transcript;
use crate::domain::model::Delta;
use crate::domain::model::FailureClass;
use crate::domain::model::ModelFailure;
use crate::domain::model::ModelRequest;
use crate::domain::model::Purpose;
use crate::domain::model::Received;
use crate::domain::outline::Outline;
use crate::domain::terms::Check;
use crate::domain::time::Span;
use crate::domain::time::human;
use crate::domain::tool::EffectClass;
use crate::domain::tool::ErrorClass;
use crate::domain::tool::Facts;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::Permit;
use crate::domain::tool::Probe;
use crate::domain::tool::Problem;
use crate::domain::tool::ProblemKind;
use crate::domain::tool::ToolCall;
use crate::domain::tool::ToolOutcome;
use crate::engine::fault;
use crate::engine::fault::Side;
use crate::engine::redaction::Redactor;
use crate::engine::redaction::stream;
use crate::engine::rulebook::Consulted;
use crate::machine::Outcome;
use crate::machine::effect::Effect;
use crate::model::Model;
use crate::store::Reader;
use crate::store::recall;
use crate::tools::Executed;
use crate::tools::Reins;
use crate::tools::Toolbox;

/// The tasks of one run.
pub struct Tasks {
    model: Arc<dyn Model>,
    tools: Toolbox,
    reader: Arc<dyn Reader>,
    rules: Consulted,
    deltas: broadcast::Sender<Delta>,
    /// Each gives its outcome, and which of those that can be ended it was.
    set: JoinSet<(Outcome, Option<u64>)>,
    flying: BTreeMap<u64, Flying>,
    /// How many of those were started.
    started: u64,
}

/// Something that can be ended.
struct Flying {
    cancel: CancellationToken,
    /// Whether it gets the grace of a graceful cancel.
    has_outside_effects: bool,
}

impl Tasks {
    /// No task yet. What is streamed goes to `shown`, without secrets; what was put away is read with `reader`; `rules` are
    /// asked about each call.
    pub fn new(
        model: Arc<dyn Model>,
        tools: Toolbox,
        shown: broadcast::Sender<Delta>,
        redactor: &Arc<Redactor>,
        reader: Arc<dyn Reader>,
        rules: Consulted,
    ) -> Self {
        let (deltas, raw) = broadcast::channel(limits::DELTAS);
        tokio::spawn(stream::pass_on(redactor.clone(), raw, shown));
        let tools = tools.behind(redactor.clone());
        Tasks { model, tools, reader, rules, deltas, set: JoinSet::new(), flying: BTreeMap::new(), started: 0 }
    }

    /// What a call would touch, found out at once; nothing where that takes longer than `most`.
    pub async fn look(&mut self, call: &ToolCall, most: Span) -> Option<Facts> {
        let found = facts(&self.tools, &self.rules, call);
        tokio::time::timeout(Duration::from_millis(most.0), found).await.ok()
    }

    /// Starts a piece of work.
    pub fn start(&mut self, effect: Effect) {
        match effect {
            Effect::Prepare(calls) => {
                let (tools, rules) = (self.tools.clone(), self.rules.clone());
                let ids: Vec<CallId> = calls.iter().map(|call| call.id).collect();
                self.spawn(None, prepare(tools, rules, calls), move || {
                    Outcome::Prepared(ids.into_iter().map(unprepared).collect())
                });
            }
            Effect::CallModel(mut request) => {
                let (flight, cancel) = self.fly(EffectClass::Read);
                let (model, deltas, call) = (self.model.clone(), self.deltas.clone(), request.call);
                let broken = move || Outcome::Model { call, result: Err(broke()) };
                match request.purpose {
                    Purpose::Turn | Purpose::Summary => {
                        let reader = self.reader.clone();
                        let asked = async move {
                            request.talk = told(reader.as_ref(), request.talk).await;
                            ask(model, *request, deltas, cancel).await
                        };
                        self.spawn(flight, asked, broken);
                    }
                    Purpose::Judge(_) => self.spawn(flight, ask_judge(model, *request, deltas, cancel), broken),
                }
            }
            Effect::RunTool(permit) => {
                let (flight, cancel) = self.fly(permit.call().effect);
                let reins = Reins { deltas: self.deltas.clone(), cancel };
                let call = permit.call().id;
                let failed = ToolOutcome::not_run(OutcomeKind::Failed, "the tool broke down; this is a bug of tiller")
                    .of_class(Some(ErrorClass::Fault));
                self.spawn(flight, execute(self.tools.clone(), self.rules.clone(), *permit, reins), move || {
                    Outcome::Tool { call, outcome: failed }
                });
            }
            Effect::RunCheck { index, check } => {
                let (flight, cancel) = self.fly(EffectClass::Read);
                let reins = Reins { deltas: self.deltas.clone(), cancel };
                let detail = "the check broke down; this is a bug of tiller".to_string();
                self.spawn(flight, verify(self.tools.clone(), index, check, reins), move || Outcome::Check {
                    index,
                    passed: false,
                    detail,
                });
            }
            Effect::Probe { call, facts } => {
                let tools = self.tools.clone();
                let probe = async move { Outcome::Probed { call, probe: tools.probe(&facts).await } };
                self.spawn(None, probe, move || Outcome::Probed { call, probe: Probe::Unknown });
            }
            Effect::ReadBack { call, place } => {
                let reader = self.reader.clone();
                let read = async move { Outcome::ReadBack { call, text: recall::text(reader.as_ref(), &place).await } };
                let broken = Err("reading it broke down; this is a bug of tiller".to_string());
                self.spawn(None, read, move || Outcome::ReadBack { call, text: broken });
            }
            Effect::EndWork { grace } => self.end_work(grace),
        }
    }

    /// A model call that must not be made: it fails as one that nobody took, which costs nothing.
    pub fn leave_unsent(&mut self, call: ModelCallId, why: &str) {
        let message = format!("{why}; the request was not sent");
        let class = FailureClass::Network;
        let failure = ModelFailure { class, message, retry_after: None, received: Received::default() };
        let outcome = Outcome::Model { call, result: Err(Box::new(failure)) };
        self.spawn(None, std::future::ready(outcome), move || Outcome::Model { call, result: Err(broke()) });
    }

    /// The next outcome; waits for ever when nothing is in flight.
    pub async fn next(&mut self) -> Outcome {
        loop {
            match self.set.join_next().await {
                Some(Ok((outcome, flight))) => {
                    flight.and_then(|flight| self.flying.remove(&flight));
                    return outcome;
                }
                // A task can't panic (see `spawn`), and is aborted only together with this set.
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// Ends all that is under way and waits until it has ended, but not for ever. What still comes of it is dropped: it
    /// holds no journal.
    pub async fn clear(&mut self, patience: Span) {
        self.end_work(Span(0));
        let all_ended = async { while self.set.join_next().await.is_some() {} };
        // What did not end in time has an unknown outcome, as after a crash.
        let _ = tokio::time::timeout(Duration::from_millis(patience.0), all_ended).await;
        self.set = JoinSet::new();
        self.flying.clear();
    }

    fn fly(&mut self, effect: EffectClass) -> (Option<u64>, CancellationToken) {
        let cancel = CancellationToken::new();
        let has_outside_effects = effect == EffectClass::External;
        self.started += 1;
        self.flying.insert(self.started, Flying { cancel: cancel.clone(), has_outside_effects });
        (Some(self.started), cancel)
    }

    fn end_work(&mut self, grace: Span) {
        for one in self.flying.values() {
            let cancel = one.cancel.clone();
            if one.has_outside_effects && grace > Span(0) {
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(grace.0)).await;
                    cancel.cancel();
                });
            } else {
                cancel.cancel();
            }
        }
    }

    /// Runs a piece of work; should it panic, `fallback` is its outcome.
    fn spawn(
        &mut self,
        flight: Option<u64>,
        work: impl Future<Output = Outcome> + Send + 'static,
        fallback: impl FnOnce() -> Outcome + Send + 'static,
    ) {
        // Boxed, because a runtime's whole handling of a task is built for each type of task.
        let work: BoxFuture<'static, Outcome> = Box::pin(work);
        let fallback: Box<dyn FnOnce() -> Outcome + Send> = Box::new(fallback);
        self.set.spawn(async move {
            match AssertUnwindSafe(work).catch_unwind().await {
                Ok(outcome) => (outcome, flight),
                Err(_) => (fallback(), flight),
            }
        });
    }
}

async fn prepare(tools: Toolbox, rules: Consulted, calls: Vec<ToolCall>) -> Outcome {
    let mut prepared = Vec::new();
    for call in calls {
        prepared.push((call.id, facts(&tools, &rules, &call).await));
    }
    Outcome::Prepared(prepared)
}

async fn facts(tools: &Toolbox, rules: &Consulted, call: &ToolCall) -> Facts {
    rules.about(call, tools.prepare(call).await).await
}

fn unprepared(call: CallId) -> (CallId, Facts) {
    let text = "what the call would touch could not be found out; nothing was run; this is a bug of tiller".to_string();
    (call, Facts { problem: Some(Problem::new(ProblemKind::Impossible, text)), ..Facts::default() })
}

/// The talk with the texts of what was put away, for the model that looks for its place in it.
async fn told(reader: &dyn Reader, talk: Transcript) -> Transcript {
    if talk.outlines().is_empty() {
        return talk;
    }
    let outlines: Vec<Outline> = talk.outlines().iter().cloned().collect();
    match recall::whole(reader, &outlines).await {
        Ok(before) => before.into_iter().chain(talk.entries().cloned()).collect(),
        Err(why) => {
            tracing::warn!(why, "a scripted model is not told all that was said");
            talk
        }
    }
}

async fn ask(
    model: Arc<dyn Model>,
    request: ModelRequest,
    deltas: broadcast::Sender<Delta>,
    cancel: CancellationToken,
) -> Outcome {
    let call = request.call;
    let result = model.call(request, deltas, cancel).await;
    Outcome::Model { call, result: result.map(Box::new).map_err(Box::new) }
}

/// Asks a judge, which has only so much time; one that takes longer is ended, and its check fails.
async fn ask_judge(
    model: Arc<dyn Model>,
    request: ModelRequest,
    deltas: broadcast::Sender<Delta>,
    cancel: CancellationToken,
) -> Outcome {
    let late = cancel.child_token();
    let asked = ask(model, request, deltas, late.clone());
    tokio::pin!(asked);
    match tokio::time::timeout(Duration::from_millis(limits::JUDGE_TIMEOUT.0), &mut asked).await {
        Ok(outcome) => outcome,
        Err(_) => {
            late.cancel();
            too_late(asked.await)
        }
    }
}

/// The outcome of a judge that was ended because its time was up.
fn too_late(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Model { call, result: Err(mut failure) } => {
            failure.class = FailureClass::StreamStalled;
            failure.message = format!("no answer within {}", human(limits::JUDGE_TIMEOUT));
            Outcome::Model { call, result: Err(failure) }
        }
        other => other,
    }
}

fn broke() -> Box<ModelFailure> {
    // Nobody knows whether the provider took the request, so it is charged as taken.
    let received = Received { accepted: true, ..Received::default() };
    let message = "the adapter broke down; this is a bug of tiller".to_string();
    Box::new(ModelFailure { class: FailureClass::Unknown, message, retry_after: None, received })
}

async fn execute(tools: Toolbox, rules: Consulted, permit: Permit, reins: Reins) -> Outcome {
    let call = permit.call().id;
    // The rules of now: one may have been made, or taken away, since the call was allowed.
    if let Some(why) = rules.against(permit.call()).await {
        return Outcome::Drifted { call, why };
    }
    fault::tool(Side::Before);
    fault::during_tool(&reins.deltas);
    let executed = tools.execute(permit, reins).await;
    fault::tool(Side::After);
    match executed {
        Executed::Ended(outcome) => Outcome::Tool { call, outcome },
        Executed::Drifted(why) => Outcome::Drifted { call, why },
    }
}

async fn verify(tools: Toolbox, index: usize, check: Check, reins: Reins) -> Outcome {
    let cancel = reins.cancel.clone();
    let (passed, detail) = tools.check(&check, reins).await;
    if cancel.is_cancelled() && !passed {
        return Outcome::CheckEnded { index };
    }
    Outcome::Check { index, passed, detail }
}
