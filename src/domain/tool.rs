//! Tools and their calls: what a tool declares, what a call would touch, where a call stands, how it ended.

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

use crate::domain::approval::By;
use crate::domain::approval::Origin;
use crate::domain::id::CallId;
use crate::domain::id::ClientId;
use crate::domain::limits;
use crate::domain::line::Line;
use crate::domain::line::Touch;
use crate::domain::rule::RuleHit;
use crate::domain::sandbox::Level;
use crate::domain::text::one_line;
use crate::domain::text::sha256_hex;
use crate::domain::text::short_hash;
use crate::domain::time::Span;
use crate::domain::time::Timestamp;

/// What a tool is, as the model is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name, `[a-z_]{1,64}`.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON schema of its arguments.
    pub schema: Value,
    /// What a call may change, and so what is done when its outcome is unknown.
    pub effect: EffectClass,
    /// What the detectors look past when they compare its calls.
    #[serde(default, skip_serializing_if = "Noise::is_none")]
    pub noise: Noise,
}

/// What differs between two calls of a tool, or between two results, and means nothing (docs/ENGINE.md §7.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noise {
    /// Names of arguments that change only how a result is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub presentational: Vec<String>,
    /// Whether results hold colours, times, lengths of time, process numbers and temporary paths, as the output of
    /// programs does.
    #[serde(default)]
    pub is_output: bool,
}

impl Noise {
    /// Whether the tool has none, which its record does not mention.
    pub fn is_none(&self) -> bool {
        *self == Noise::default()
    }
}

/// What a call may change (docs/ENGINE.md §1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// Handled by the engine: no effect outside the run, never gated.
    Control,
    /// Changes nothing; may be repeated.
    Read,
    /// Replaces the content of one file; what became of it can be told from the file.
    WriteFile,
    /// Changes something, but twice is the same as once.
    Idempotent,
    /// Anything else: must never be repeated without a person's word.
    External,
}

/// What a call would touch, found without changing anything. The bytes shown are the bytes bound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// One line: what the call is about, for example `src/lexer.rs +3 −1`.
    pub title: String,
    /// What it reaches, in words: `write in workspace`, `runs a program`.
    pub reach: String,
    /// Whether all it touches lies inside the workspace and is not a sensitive name.
    pub inside: bool,
    /// Whether it runs a program that is not wholly cut off: by no box, by half a box, or with the network open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unconfined: bool,
    /// The box that it runs in, for a call that runs a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// Whether it has the network.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// What makes it so grave that leave for it is typed, not pressed (`policy/grave.rs`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grave: Vec<Grave>,
    /// The whole call as the operator is shown it: a diff, a command line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub preview: String,
    /// Everything the decision is bound to, as `name=value` lines in a fixed order: resolved path, directory,
    /// hash of the file before and after, the program that would run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub binding: Vec<String>,
    /// Set for a call that is a shell line: how it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<Line>,
    /// What the words of that line name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touches: Vec<Touch>,
    /// What the standing rules of the operator said of it when it was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleHit>,
    /// Why those that allow do not cover the call, where one covers a part of it, or nearly does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncovered: Option<String>,
    /// Set for a call that sends a request over the network: the host, in ASCII and small letters; `:` and its port
    /// behind it, unless it is asked by https at the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// And how many bytes of its path and query say something to that host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_bytes: Option<u64>,
    /// Set for a call that writes one file: what is needed to tell later whether it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<FileWrite>,
    /// Set when the call can't be run at all; the sentence goes to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// What tools find grave about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grave {
    /// It reaches what is named like key material.
    Keys,
    /// It writes what other programs run or obey by themselves, outside of any run.
    RunsLater,
}

/// One file's content before and after a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileWrite {
    /// The resolved path.
    pub path: String,
    /// SHA-256 of the content before, or nothing when there is no such file.
    pub before: Option<String>,
    /// SHA-256 of the content after.
    pub after: String,
}

/// Why a call can't be run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Its kind, for streaks.
    pub kind: ProblemKind,
    /// The sentence for the model.
    pub text: String,
    /// What the system said, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
}

impl Problem {
    /// A problem that the system said nothing about.
    pub fn new(kind: ProblemKind, text: impl Into<String>) -> Self {
        Problem { kind, text: text.into(), class: None }
    }

    /// The same problem, of this class.
    pub fn of_class(self, class: Option<ErrorClass>) -> Self {
        Problem { class, ..self }
    }
}

/// Kinds of errors that a tool tells apart by a code of the system, never by words (docs/ENGINE.md §7.3, B; §14.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The system does not allow it.
    Permission,
    /// What the call names is not there.
    NotFound,
    /// The machine can't do it: no such program, not supported.
    Capability,
    /// Somebody else wants to know who asks.
    Auth,
    /// The tool itself broke: a fault of tiller.
    Fault,
}

impl ErrorClass {
    /// In a few words.
    pub fn phrase(self) -> &'static str {
        match self {
            ErrorClass::Permission => "not allowed by the system",
            ErrorClass::NotFound => "not found",
            ErrorClass::Capability => "not possible on this machine",
            ErrorClass::Auth => "not authorised",
            ErrorClass::Fault => "the tool broke",
        }
    }

    /// Whether only the operator can help when it comes again and again.
    pub fn blocks(self) -> bool {
        match self {
            ErrorClass::Permission | ErrorClass::NotFound | ErrorClass::Capability | ErrorClass::Auth => true,
            ErrorClass::Fault => false,
        }
    }
}

/// Kinds of calls that can't be run (docs/ENGINE.md §14.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// The arguments are not JSON.
    Malformed,
    /// There is no such tool.
    UnknownTool,
    /// The arguments do not fit the tool's schema.
    InvalidArguments,
    /// The arguments hold a secret, or the mark that stands in the place of one.
    SecretInArguments,
    /// Refused whatever the operator says: a device, tiller's own state, a path that can't be.
    Refused,
    /// It fits the schema but can't work: no such file, the text to replace is not there.
    Impossible,
    /// Over the limit of tool calls.
    OverBudget,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOutcome {
    /// In which way.
    pub kind: OutcomeKind,
    /// The result as the conversation has it, at most `limits::RESULT_MAX_BYTES`.
    pub text: String,
    /// Size of the whole result before it was cut, in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// How long it ran.
    #[serde(default)]
    pub took: Span,
    /// What the system said, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
    /// Files that other programs run or obey by themselves, and that changed meanwhile, those first that count most: all of
    /// them, up to `limits::WATCHED_RECORDED`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watched: Vec<String>,
}

/// The first of such files, as they are said: those that count most, and how many more there are.
pub fn named(watched: &[String]) -> Vec<String> {
    // One more is said as it is: "1 more" would be no shorter.
    if watched.len() <= limits::WATCHED_NAMED + 1 {
        return watched.to_vec();
    }
    let (first, rest) = watched.split_at(limits::WATCHED_NAMED);
    let at_least = if watched.len() > limits::WATCHED_RECORDED { "at least " } else { "" };
    first.iter().cloned().chain([format!("{at_least}{} more", rest.len())]).collect()
}

impl ToolOutcome {
    /// An outcome of a call that nothing ran for.
    pub fn not_run(kind: OutcomeKind, text: impl Into<String>) -> Self {
        let text = text.into();
        ToolOutcome { kind, bytes: text.len() as u64, text, took: Span(0), class: None, watched: Vec::new() }
    }

    /// The same outcome, of this class.
    pub fn of_class(self, class: Option<ErrorClass>) -> Self {
        ToolOutcome { class, ..self }
    }
}

/// The ways in which a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// It worked.
    Done,
    /// It ran and reported an error; a program's exit status other than zero.
    Failed,
    /// It ran past its time limit and was ended.
    TimedOut,
    /// It was ended, or never begun, because the operator said so.
    Cancelled,
    /// The operator, or an earlier denial, said no.
    Denied,
    /// It never ran: see the problem.
    NotRun(ProblemKind),
    /// Nobody knows, and the operator chose to go on without knowing.
    Unknown,
}

impl OutcomeKind {
    /// Whether the conversation marks the result as an error.
    pub fn is_error(self) -> bool {
        match self {
            OutcomeKind::Done => false,
            OutcomeKind::Failed
            | OutcomeKind::TimedOut
            | OutcomeKind::Cancelled
            | OutcomeKind::Denied
            | OutcomeKind::NotRun(_)
            | OutcomeKind::Unknown => true,
        }
    }

    /// The outcome as one word.
    pub fn word(self) -> &'static str {
        match self {
            OutcomeKind::Done => "done",
            OutcomeKind::Failed => "failed",
            OutcomeKind::TimedOut => "timed out",
            OutcomeKind::Cancelled => "cancelled",
            OutcomeKind::Denied => "denied",
            OutcomeKind::NotRun(_) => "not run",
            OutcomeKind::Unknown => "unknown",
        }
    }
}

/// One use of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The engine's id.
    pub id: CallId,
    /// The id on the wire, as the provider must see it again.
    pub wire_id: String,
    /// Name of the tool, as the model wrote it.
    pub tool: String,
    /// Arguments as the model wrote them, or as the operator changed them: these bytes are shown, bound and executed.
    pub arguments: String,
    /// Effect class of the tool.
    pub effect: EffectClass,
    /// Where the call stands.
    pub state: CallState,
    /// What it would touch, once prepared.
    pub facts: Option<Facts>,
    /// Who allowed it, once allowed.
    pub allowed: Option<By>,
    /// What the operator changed of its arguments, if they did.
    pub edited: Option<Edited>,
    /// Where it was decided about, if it was.
    #[serde(default, skip_serializing_if = "Origin::is_here")]
    pub origin: Origin,
    /// What the system said of its error, once it has ended.
    pub error: Option<ErrorClass>,
    /// Whether the operator allowed it to run outside of the box.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unboxed: bool,
    /// How often it was started.
    pub attempts: u32,
    /// When its state last changed.
    pub since: Timestamp,
}

impl ToolCall {
    /// The binding digest of the call with its facts (docs/SAFETY.md, binding): what a decision is about.
    pub fn digest(&self) -> Option<Digest> {
        self.facts.as_ref().map(|facts| Digest::of(self, facts))
    }

    /// The arguments as a title: of its facts, or the head of what the model wrote.
    pub fn title(&self) -> String {
        match &self.facts {
            Some(facts) if !facts.title.is_empty() => facts.title.clone(),
            Some(_) | None => one_line(&self.arguments, 80),
        }
    }

    /// Whether what is shown of it whole is a change of a file, line by line.
    pub fn shows_diff(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.write.is_some() && !facts.preview.is_empty())
    }

    /// Whether it has ended.
    pub fn is_closed(&self) -> bool {
        matches!(self.state, CallState::Closed(_))
    }

    /// What a grant for the run covers: the same tool, the same exact arguments, and all that the decision was bound
    /// to, so that a program that was exchanged is asked about again.
    pub fn grant(&self) -> String {
        grant(&self.signature(), self.facts.as_ref())
    }

    /// What two identical calls share, for denials and detectors: the tool and its exact arguments.
    pub fn signature(&self) -> String {
        signature(&self.tool, &self.arguments)
    }
}

/// What the operator changed of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edited {
    /// The arguments as the model wrote them.
    pub original: String,
    /// Who changed them.
    pub by: ClientId,
    /// What it reached as they were shown it (`Facts::reached`).
    pub shown: Vec<String>,
    /// Where they were changed.
    #[serde(default, skip_serializing_if = "Origin::is_here")]
    pub origin: Origin,
    /// Whether the change still stands for their leave. Leave that was used, or became void, is not given again.
    pub is_leave: bool,
}

/// What two identical calls share: a hash of the tool's name and of the exact arguments.
pub fn signature(tool: &str, arguments: &str) -> String {
    short_hash(format!("{tool}\0{arguments}").as_bytes())
}

/// What a grant for the run covers: calls of one signature, and all that the decision was bound to.
pub fn grant(called: &str, facts: Option<&Facts>) -> String {
    let bound = facts.map(|facts| facts.binding.join("\n")).unwrap_or_default();
    signature(called, &bound)
}

/// Leave to run one call once. Only a call that is recorded as started and allowed can have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permit {
    call: ToolCall,
    digest: Digest,
}

impl Permit {
    /// The permit of a call, if its journal says that it runs and who allowed it.
    pub fn of(call: &ToolCall) -> Option<Permit> {
        match (&call.state, &call.allowed, call.digest()) {
            (CallState::Running, Some(_), Some(digest)) => Some(Permit { call: call.clone(), digest }),
            _ => None,
        }
    }

    /// The call.
    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// What the decision was bound to: it must still hold right before acting.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }
}

/// Where a call stands (docs/ENGINE.md §10.7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallState {
    /// The model asked for it; what it would touch is being found out.
    Proposed,
    /// What it would touch is known; it is not judged yet.
    Prepared,
    /// It waits for the operator.
    Awaiting {
        /// Why it is asked.
        why: String,
    },
    /// Someone allowed it; it may start.
    Approved,
    /// Someone denied it; the model is not told yet.
    Denied {
        /// Who.
        by: By,
        /// Their words, possibly empty.
        text: String,
    },
    /// It was started and has not ended.
    Running,
    /// It was started, and the process that ran it is gone.
    OutcomeUnknown {
        /// Whether its traces were looked for already.
        probed: bool,
    },
    /// It has ended.
    Closed(OutcomeKind),
}

/// SHA-256 over everything that a decision is bound to; the first 8 characters are shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(pub String);

impl Digest {
    /// The digest of a call and what it would touch. Each part is preceded by its length, so that no two
    /// different calls share an encoding.
    pub fn of(call: &ToolCall, facts: &Facts) -> Digest {
        let id = call.id.to_string();
        let parts =
            [id.as_str(), call.tool.as_str(), call.arguments.as_str(), facts.reach.as_str(), facts.preview.as_str()];
        Digest::of_parts("tiller-call-v1", parts.into_iter().chain(facts.binding.iter().map(String::as_str)))
    }

    /// The digest of parts of this kind, in this order.
    pub(crate) fn of_parts<'a>(kind: &str, parts: impl Iterator<Item = &'a str>) -> Digest {
        let mut encoding = kind.as_bytes().to_vec();
        for part in parts {
            encoding.extend_from_slice(&(part.len() as u64).to_be_bytes());
            encoding.extend_from_slice(part.as_bytes());
        }
        Digest(sha256_hex(&encoding))
    }

    /// The first 8 characters, as shown.
    pub fn short(&self) -> &str {
        self.0.get(..8).unwrap_or(&self.0)
    }

    /// Whether `text` is this digest or its first 8 or more characters.
    pub fn is_written(&self, text: &str) -> bool {
        text.len() >= 8 && self.0.starts_with(text)
    }
}

/// What became of a call whose outcome was unknown, as its traces tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// It happened.
    Done,
    /// It did not happen.
    NotDone,
    /// It can't be told.
    Unknown,
}
