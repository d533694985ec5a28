//! Floor 3: hands. A tool says what a call would touch without changing anything, and does it when it is permitted.
//! It judges no permission: that is `policy/`. What is judged and what is done are one value, made by `prepare`.

mod arguments;
mod carried;
mod change;
mod checks;
mod commands;
mod diff;
mod edit_file;
mod environment;
mod family;
pub mod gits;
pub mod guard;
pub mod guide;
pub mod hook;
pub mod line;
mod list_dir;
pub(crate) mod names;
pub mod orphans;
mod output;
pub mod pipeline;
mod place;
mod preimage;
mod process;
mod read_file;
pub mod restore;
pub mod sandbox;
mod scripts;
mod search_files;
mod shell;
#[cfg(test)]
mod stage;
mod touches;
mod tracked;
mod walk;
pub mod web_fetch;
mod withheld;
mod write_file;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use nix::errno::Errno;
use tokio::sync::broadcast;
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::domain::id::CallId;
use crate::domain::limits;
use crate::domain::line::Touch;
use crate::domain::mark::holds_mark;
use crate::domain::model::Delta;
use crate::domain::sandbox::Manner;
use crate::domain::terms::Check;
use crate::domain::text::excerpt;
use crate::domain::text::one_line;
use crate::domain::text::sha256_hex;
use crate::domain::time::Span;
use crate::domain::tool::Digest;
use crate::domain::tool::ErrorClass;
use crate::domain::tool::Facts;
use crate::domain::tool::FileWrite;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::Permit;
use crate::domain::tool::Probe;
use crate::domain::tool::Problem;
use crate::domain::tool::ProblemKind;
use crate::domain::tool::ToolCall;
use crate::domain::tool::ToolOutcome;
use crate::domain::tool::ToolSpec;
use crate::tools::gits::own::Own;
use crate::tools::sandbox::Sandbox;

/// Longest title of a call, in characters.
pub(crate) const TITLE_MAX_CHARS: usize = 120;
/// What is shown of arguments that can't be run, in bytes.
const REFUSED_PREVIEW_BYTES: usize = 4 * 1024;
/// Room for the line that says what was left out of a result, in bytes.
const CUT_LINE_BYTES: usize = 64;

/// Where calls act. Fixed for the life of the run; nothing the model sends can move it.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The folder of the run: absolute and canonical.
    pub workspace: PathBuf,
    /// Folders no tool may touch: tiller's own state and configuration.
    pub off_limits: Vec<PathBuf>,
    /// Folder of the run in which what files held before calls is kept; nothing where nothing is to be kept.
    pub pre_images: Option<PathBuf>,
    /// Our own program, started again as the guard of a child.
    pub program: PathBuf,
    /// Names of environment variables that the operator lets through to children.
    pub passed_variables: Vec<String>,
    /// The boxes that commands run in.
    pub sandbox: Sandbox,
    /// Where git finds what the operator configured for all repositories.
    pub git: Own,
}

/// What a running call may use: a way to show output as it comes, and the sign to end.
#[derive(Clone)]
pub struct Reins {
    /// Output as it comes; may be lost.
    pub deltas: broadcast::Sender<Delta>,
    /// Fires when the call must end: TERM, `limits::KILL_GRACE`, KILL.
    pub cancel: CancellationToken,
}

/// One tool.
pub trait Tool: Send + Sync {
    /// What it is.
    fn spec(&self) -> ToolSpec;
    /// What a call with these arguments would touch, and the way to do exactly that. Changes nothing. May block on
    /// files; the toolbox calls it where that is allowed.
    fn prepare(&self, scene: &Scene, arguments: &str) -> Result<Prepared, Problem>;
}

/// A call that can be run: what it would touch, and the one way to do just that. Nothing reads the arguments again.
pub struct Prepared {
    /// What it would touch.
    pub facts: Facts,
    /// Does it.
    pub action: Box<dyn Action>,
}

/// What a prepared call does.
#[async_trait]
pub trait Action: Send {
    /// Does it. Dropping the future ends whatever it started.
    async fn run(self: Box<Self>, call: CallId, reins: Reins) -> Executed;

    /// In which manner it uses the box, where it starts a program; said before it runs, if at all.
    fn use_box(&mut self, _manner: Manner) {}
}

/// What became of an attempt to run a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Executed {
    /// It ran and ended.
    Ended(ToolOutcome),
    /// What it would touch is no longer what was decided about; nothing was done. The sentence says what changed.
    Drifted(String),
}

impl Executed {
    /// A call that ended in this way with this result.
    pub fn ended(kind: OutcomeKind, text: impl Into<String>) -> Self {
        Executed::Ended(ToolOutcome::not_run(kind, text))
    }

    /// A call that ran and failed, with what the system said.
    pub(crate) fn failed(text: impl Into<String>, class: Option<ErrorClass>) -> Self {
        Executed::Ended(ToolOutcome::not_run(OutcomeKind::Failed, text).of_class(class))
    }

    /// A tool that broke.
    fn broken() -> Self {
        Executed::failed(BROKEN, Some(ErrorClass::Fault))
    }
}

/// Takes out of facts and of texts what may not be shown or stored.
pub trait Veil: Send + Sync {
    /// What a call would touch, as it may be shown. The same facts give the same.
    fn facts(&self, facts: Facts) -> Facts;
    /// A text, as it may be shown.
    fn text(&self, text: String) -> String;
}

/// Shows all.
struct NoVeil;

impl Veil for NoVeil {
    fn facts(&self, facts: Facts) -> Facts {
        facts
    }

    fn text(&self, text: String) -> String {
        text
    }
}

/// The tools of a run.
#[derive(Clone)]
pub struct Toolbox {
    tools: BTreeMap<String, Arc<dyn Tool>>,
    scene: Scene,
    veil: Arc<dyn Veil>,
}

impl Toolbox {
    /// The six tools, at work in this scene.
    pub fn new(scene: Scene) -> Self {
        let mut toolbox = Toolbox { tools: BTreeMap::new(), scene, veil: Arc::new(NoVeil) };
        toolbox.add(Arc::new(read_file::ReadFile));
        toolbox.add(Arc::new(list_dir::ListDir));
        toolbox.add(Arc::new(search_files::SearchFiles));
        toolbox.add(Arc::new(write_file::WriteFile));
        toolbox.add(Arc::new(edit_file::EditFile));
        toolbox.add(Arc::new(shell::Shell));
        toolbox
    }

    /// The same tools, with all that they find out and give behind a veil.
    pub fn behind(mut self, veil: Arc<dyn Veil>) -> Self {
        self.veil = veil;
        self
    }

    /// Adds a tool; one of the same name is replaced.
    pub fn add(&mut self, tool: Arc<dyn Tool>) {
        self.tools.insert(tool.spec().name, tool);
    }

    /// Whether calls could be run at all here. Errors with what is missing, in a few words. Changes nothing.
    pub fn self_test(&self) -> Result<(), String> {
        let guard = &self.scene.program;
        nix::unistd::access(guard, nix::unistd::AccessFlags::X_OK)
            .map_err(|_| format!("the program {}, which guards every call, can't be started", guard.display()))?;
        nix::unistd::access("/bin/sh", nix::unistd::AccessFlags::X_OK)
            .map_err(|_| "the shell /bin/sh can't be started".to_string())
    }

    /// Why no command that writes could have its box here, if none could, and what to do.
    pub fn box_obstacle(&self) -> Option<String> {
        let why = sandbox::obstacle(&self.scene, true)?;
        Some(format!("no command that writes can run here, because its box can't be made: {why}"))
    }

    /// What the tools are, in the order of their names.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.values().map(|tool| tool.spec()).collect()
    }

    /// What a call would touch. Never fails: a call that can't be run has a problem. Changes nothing.
    pub async fn prepare(&self, call: &ToolCall) -> Facts {
        match self.prepared(&call.tool, &call.arguments).await {
            Ok(prepared) => prepared.facts,
            Err(problem) => self.veil.facts(Facts {
                title: one_line(&call.arguments, TITLE_MAX_CHARS),
                reach: "can't be run".to_string(),
                preview: excerpt(&call.arguments, REFUSED_PREVIEW_BYTES),
                problem: Some(problem),
                ..Facts::default()
            }),
        }
    }

    /// Runs a call, if what it would touch is still what was decided about. The result is never longer than
    /// `limits::RESULT_MAX_BYTES`; a tool that breaks is a call that failed.
    pub async fn execute(&self, permit: Permit, reins: Reins) -> Executed {
        let begun = Instant::now();
        let call = permit.call();
        if reins.cancel.is_cancelled() {
            return Executed::ended(OutcomeKind::Cancelled, "Cancelled before it began. Nothing was done.");
        }
        let mut prepared = match self.prepared(&call.tool, &call.arguments).await {
            Ok(prepared) => prepared,
            Err(problem) => return Executed::Drifted(format!("It can no longer be run. {}", problem.text)),
        };
        if Digest::of(call, &prepared.facts) != *permit.digest() {
            return Executed::Drifted(drift(call.facts.as_ref(), &prepared.facts));
        }
        if let Some(text) = worse(call, &prepared.facts) {
            return Executed::Drifted(text);
        }
        prepared.action.use_box(Manner::of(call));
        let run = AssertUnwindSafe(prepared.action.run(call.id, reins)).catch_unwind().await;
        match run.unwrap_or_else(|_| Executed::broken()) {
            Executed::Drifted(text) => Executed::Drifted(text),
            Executed::Ended(mut outcome) => {
                // Before it is cut: half a secret would not be known any more.
                outcome.text = self.veil.text(outcome.text);
                outcome.took = Span(u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX));
                if outcome.text.len() > limits::RESULT_MAX_BYTES {
                    outcome.text = excerpt(&outcome.text, limits::RESULT_MAX_BYTES - CUT_LINE_BYTES);
                }
                Executed::Ended(outcome)
            }
        }
    }

    /// Whether a call that writes one file has happened, as the file tells. Changes nothing.
    pub async fn probe(&self, facts: &Facts) -> Probe {
        let Some(write) = facts.write.clone() else { return Probe::Unknown };
        let looked = timeout(wait(limits::TOOL_TIMEOUT), spawn_blocking(move || probe_file(&write))).await;
        match looked {
            Ok(Ok(probe)) => probe,
            Ok(Err(_)) | Err(_) => Probe::Unknown,
        }
    }

    /// Whether a condition holds, with what was seen. Whatever goes wrong counts as not holding.
    pub async fn check(&self, check: &Check, reins: Reins) -> (bool, String) {
        match check {
            Check::Command(line) => shell::check(&self.scene, line, reins).await,
            Check::FileExists(path) => checks::exists(&self.scene, path).await,
            Check::FileMatches { path, pattern } => checks::matches(&self.scene, path, pattern).await,
            Check::Tool { name, arguments } => self.check_tool(name, arguments, reins).await,
            Check::ModelJudge(_) | Check::OperatorConfirm(_) => (false, "this is no check of a tool".to_string()),
        }
    }

    /// A call that the operator wrote as a check: it must end well, within the time of a check.
    async fn check_tool(&self, name: &str, arguments: &str, reins: Reins) -> (bool, String) {
        let prepared = match self.prepared(name, arguments).await {
            Ok(prepared) => prepared,
            Err(problem) => return (false, problem.text),
        };
        let running = AssertUnwindSafe(prepared.action.run(CallId(0), reins)).catch_unwind();
        match timeout(wait(limits::TOOL_TIMEOUT), running).await {
            Ok(Ok(Executed::Ended(outcome))) => (outcome.kind == OutcomeKind::Done, outcome.text),
            Ok(Ok(Executed::Drifted(text))) => (false, text),
            Ok(Err(_)) => (false, BROKEN.to_string()),
            Err(_) => (false, "It did not end in time.".to_string()),
        }
    }

    async fn prepared(&self, tool: &str, arguments: &str) -> Result<Prepared, Problem> {
        let Some(found) = self.tools.get(tool).map(Arc::clone) else {
            let known: Vec<&str> = self.tools.keys().map(String::as_str).collect();
            let name = one_line(tool, 80);
            let text = format!("There is no tool {name:?}. Nothing was done; the tools are: {}.", known.join(", "));
            return Err(arguments::problem(ProblemKind::UnknownTool, text));
        };
        let (scene, arguments) = (self.scene.clone(), arguments.to_string());
        let work = spawn_blocking(move || found.prepare(&scene, &arguments));
        let mut prepared = match timeout(wait(limits::TOOL_TIMEOUT), work).await {
            Ok(Ok(prepared)) => prepared?,
            Ok(Err(_)) => {
                let broken = arguments::problem(ProblemKind::Impossible, BROKEN);
                return Err(broken.of_class(Some(ErrorClass::Fault)));
            }
            Err(_) => {
                let text = "The file system does not answer. Nothing was done.";
                return Err(arguments::problem(ProblemKind::Impossible, text));
            }
        };
        if prepared.facts.preview.len() > limits::PREVIEW_MAX_BYTES {
            let text = "The change is too long for a person to read. Nothing was done; make it in smaller steps.";
            return Err(arguments::problem(ProblemKind::Refused, text));
        }
        prepared.facts = self.veil.facts(prepared.facts);
        // What goes to a host is shown decoded, so a secret in it is found however it was written.
        if prepared.facts.host.is_some() && holds_mark(&prepared.facts.preview) {
            let text = "The URL holds a secret, or what looks like one. Nothing was sent; leave it out.";
            return Err(arguments::problem(ProblemKind::SecretInArguments, text));
        }
        Ok(prepared)
    }
}

/// What is said of a tool that panicked.
const BROKEN: &str = "The tool broke: this is a fault in tiller. What it had done by then is not known.";

/// What an action does when its call is cancelled while a thread works on files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnCancel {
    /// Leaves the thread to itself: it changes nothing.
    Leave,
    /// Waits for it: it changes something, and it must be known whether it did.
    Wait,
}

/// An action of blocking work on files.
pub(crate) struct FileWork {
    on_cancel: OnCancel,
    work: Box<dyn FnOnce(&CancellationToken) -> Executed + Send>,
}

impl FileWork {
    /// What a cancel means, and the work; it looks at the token now and then.
    pub(crate) fn action(
        on_cancel: OnCancel,
        work: impl FnOnce(&CancellationToken) -> Executed + Send + 'static,
    ) -> Box<dyn Action> {
        Box::new(FileWork { on_cancel, work: Box::new(work) })
    }
}

#[async_trait]
impl Action for FileWork {
    async fn run(self: Box<Self>, _call: CallId, reins: Reins) -> Executed {
        let FileWork { on_cancel, work } = *self;
        // Whatever ends the waiting ends the work.
        let cancel = reins.cancel.child_token();
        let _end = cancel.clone().drop_guard();
        let running = timeout(wait(limits::TOOL_TIMEOUT), spawn_blocking(move || work(&cancel)));
        let cancelled = async {
            match on_cancel {
                OnCancel::Leave => reins.cancel.cancelled().await,
                OnCancel::Wait => std::future::pending().await,
            }
        };
        tokio::select! {
            joined = running => match joined {
                Ok(Ok(executed)) => executed,
                Ok(Err(_)) => Executed::broken(),
                Err(_) => Executed::ended(OutcomeKind::TimedOut, match on_cancel {
                    OnCancel::Leave => "It took too long, or the file system does not answer; given up.",
                    OnCancel::Wait => "The file system does not answer; given up. The change may still happen.",
                }),
            },
            () = cancelled => Executed::ended(OutcomeKind::Cancelled, "Cancelled while it looked. Nothing was changed."),
        }
    }
}

/// A span as the clock of tokio takes it.
pub(crate) fn wait(span: Span) -> Duration {
    Duration::from_millis(span.0)
}

/// The names of what differs between what was decided about and what is there now.
fn drift(decided: Option<&Facts>, found: &Facts) -> String {
    let empty = Facts::default();
    let decided = decided.unwrap_or(&empty);
    let changed = decided.binding.iter().filter(|line| !found.binding.contains(line));
    let added = found.binding.iter().filter(|line| !decided.binding.contains(line));
    let mut names: Vec<&str> = Vec::new();
    for line in changed.chain(added) {
        let name = line.split_once('=').map_or(line.as_str(), |(name, _)| name);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        names.push(if decided.reach == found.reach { "what it would show" } else { "what it reaches" });
    }
    format!("Changed since it was decided: {}. Nothing was done.", names.join(", "))
}

/// Why what a call's words name by now needs another decision. They are no part of what a decision is bound to: a file
/// that an earlier call made is no other call. But leave that nobody typed covers nothing grave, and what a rule or the
/// read-only table let run was judged by what its words named then.
fn worse(call: &ToolCall, found: &Facts) -> Option<String> {
    let empty = Facts::default();
    let decided = call.facts.as_ref().unwrap_or(&empty);
    if found.grave.iter().any(|grave| !decided.grave.contains(grave)) {
        return Some("It has become grave since it was decided. Nothing was done.".to_string());
    }
    if !matches!(Manner::of(call), Manner::Reading | Manner::Ruled) {
        return None;
    }
    let is_worse = |touch: &&Touch| !touch.named.is_plain() && !decided.touches.contains(touch);
    let touch = found.touches.iter().find(is_worse)?;
    Some(format!("{:?} names something else since it was decided. Nothing was done.", touch.word))
}

fn probe_file(write: &FileWrite) -> Probe {
    // Where it is was not recorded.
    if holds_mark(&write.path) {
        return Probe::Unknown;
    }
    let now = match place::read_file(Path::new(&write.path)) {
        Ok((bytes, _)) => Some(sha256_hex(&bytes)),
        Err(Errno::ENOENT) => None,
        Err(_) => return Probe::Unknown,
    };
    match now {
        Some(hash) if hash == write.after => Probe::Done,
        now if now == write.before => Probe::NotDone,
        Some(_) | None => Probe::Unknown,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::domain::tool::EffectClass;
    use crate::domain::tool::Noise;
    use crate::tools::stage::Stage;
    use crate::tools::stage::reins;

    struct Breaks;

    impl Tool for Breaks {
        fn spec(&self) -> ToolSpec {
            let schema = serde_json::json!({});
            ToolSpec {
                name: "breaks".into(),
                description: String::new(),
                schema,
                effect: EffectClass::Read,
                noise: Noise::default(),
            }
        }

        fn prepare(&self, _scene: &Scene, arguments: &str) -> Result<Prepared, Problem> {
            assert!(!arguments.contains("early"), "broken early");
            let facts = Facts { preview: "x".repeat(arguments.len()), ..Facts::default() };
            Ok(Prepared { facts, action: Box::new(Breaks) })
        }
    }

    #[async_trait]
    impl Action for Breaks {
        async fn run(self: Box<Self>, _call: CallId, _reins: Reins) -> Executed {
            panic!("broken late")
        }
    }

    #[tokio::test]
    async fn a_tool_that_breaks_is_a_call_that_failed() {
        let stage = Stage::new();
        let mut toolbox = stage.toolbox();
        toolbox.add(Arc::new(Breaks));
        let mut call = stage.call("breaks", "early").await;
        assert_eq!(toolbox.prepare(&call).await.problem.unwrap().text, BROKEN);
        call.arguments = "late".into();
        call.facts = Some(toolbox.prepare(&call).await);
        let executed = toolbox.execute(Permit::of(&call).unwrap(), reins()).await;
        let Executed::Ended(outcome) = executed else { panic!("drifted") };
        assert_eq!((outcome.kind, outcome.text.as_str()), (OutcomeKind::Failed, BROKEN));
        call.arguments = "x".repeat(limits::PREVIEW_MAX_BYTES + 1);
        assert_eq!(toolbox.prepare(&call).await.problem.unwrap().kind, ProblemKind::Refused);
    }

    #[tokio::test]
    async fn calls_that_can_not_be_run_have_a_problem() {
        let stage = Stage::new();
        let unknown = stage.run("shel", "{}").await;
        assert!(unknown.starts_with("UnknownTool: There is no tool \"shel\""), "{unknown}");
        assert!(unknown.contains("edit_file, list_dir, read_file, search_files, shell, write_file"), "{unknown}");
        for tool in stage.toolbox().specs() {
            let long = format!("{{\"path\":\"{}\"}}", "x".repeat(limits::ARGUMENTS_MAX_BYTES));
            for (arguments, wanted) in [
                ("{", "Malformed"),
                ("\u{0}", "Malformed"),
                ("[1]", "InvalidArguments"),
                (r#"{"no such":1}"#, "InvalidArguments"),
                (r#"{"path":"a","path":"b"}"#, "Malformed"),
                (long.as_str(), "Malformed"),
            ] {
                let found = stage.run(&tool.name, arguments).await;
                assert!(found.starts_with(wanted), "{} {arguments:.40}: {found}", tool.name);
                let facts = stage.call(&tool.name, arguments).await.facts.unwrap();
                assert!(facts.preview.len() < REFUSED_PREVIEW_BYTES + CUT_LINE_BYTES && !facts.inside);
            }
        }
    }

    #[tokio::test]
    async fn a_cancelled_call_does_not_begin() {
        let stage = Stage::new();
        let call = stage.call("write_file", r#"{"path":"a","content":"1"}"#).await;
        let reins = reins();
        reins.cancel.cancel();
        let executed = stage.toolbox().execute(Permit::of(&call).unwrap(), reins).await;
        assert!(matches!(executed, Executed::Ended(outcome) if outcome.kind == OutcomeKind::Cancelled));
        assert!(!stage.scene.workspace.join("a").exists());
    }

    #[test]
    fn schemas_name_their_fields_and_refuse_others() {
        let specs = Stage::new().toolbox().specs();
        assert_eq!(specs.len(), 6);
        for spec in specs {
            assert_eq!(spec.schema["additionalProperties"], false, "{}", spec.name);
            assert_eq!(spec.schema["type"], "object", "{}", spec.name);
            assert!(
                spec.schema["properties"].as_object().unwrap().values().all(|field| field["description"].is_string())
            );
            assert!(spec.name.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase()));
        }
    }
}
