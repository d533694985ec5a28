//! `shell`: one line, run by a shell in the workspace under a guard. Also the conditions that a shell line checks.
//! The line that was shown is the line that runs, byte for byte.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use nix::sys::stat::fstat;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::domain::id::CallId;
use crate::domain::limits;
use crate::domain::model::Delta;
use crate::domain::model::DeltaSource;
use crate::domain::sandbox::Level;
use crate::domain::sandbox::Manner;
use crate::domain::text::head;
use crate::domain::text::one_line;
use crate::domain::text::tail;
use crate::domain::time::Span;
use crate::domain::time::human;
use crate::domain::tool::EffectClass;
use crate::domain::tool::ErrorClass;
use crate::domain::tool::Facts;
use crate::domain::tool::Grave;
use crate::domain::tool::Noise;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::Problem;
use crate::domain::tool::ProblemKind;
use crate::domain::tool::ToolOutcome;
use crate::domain::tool::ToolSpec;
use crate::domain::tool::named;
use crate::tools::Action;
use crate::tools::Executed;
use crate::tools::Prepared;
use crate::tools::Reins;
use crate::tools::Scene;
use crate::tools::TITLE_MAX_CHARS;
use crate::tools::Tool;
use crate::tools::arguments;
use crate::tools::environment;
use crate::tools::line;
use crate::tools::names;
use crate::tools::output::Output;
use crate::tools::pipeline::Search;
use crate::tools::place;
use crate::tools::process;
use crate::tools::process::Ending;
use crate::tools::process::Interpreter;
use crate::tools::process::Left;
use crate::tools::process::Line;
use crate::tools::process::Means;
use crate::tools::sandbox::Room;
use crate::tools::sandbox::watch::Watched;
use crate::tools::scripts;
use crate::tools::touches;
use crate::tools::wait;

/// Room in a result for its first lines and the cut, in bytes.
const FRAME_BYTES: usize = 600;
/// What is said of each end of a long name, in bytes.
const NAME_END_BYTES: usize = 200;

/// What is said below a program that was not found in a box, where more of the machine may be than is seen.
const HIDDEN: &str = "in the box only the programs of the system are there; the operator can open folders, such as that of a \
                      toolchain, by sandbox.readable in tiller.toml\n";

/// What is said of a line that was cancelled while the workspace was looked at.
const UNBEGUN: &str = "cancelled before it began, while the workspace was looked at; nothing was run\n";

/// The tool.
pub(crate) struct Shell;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    #[serde(default)]
    timeout_seconds: Option<u64>,
    #[serde(default)]
    network: bool,
}

/// A line that was judged, with all that it runs with.
struct Run {
    scene: Scene,
    shell: Interpreter,
    variables: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    command: String,
    read: crate::domain::line::Line,
    time_limit: Span,
    network: bool,
    manner: Manner,
    /// The top of the repository that git works in where the line only reads.
    repository: Option<PathBuf>,
}

impl Tool for Shell {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "shell".to_string(),
            description: format!(
                "Runs a shell line (bash where there is one) in the workspace and gives its exit status, then its output (standard output and \
                 error together; head and tail when over {} KiB; no colours; text overwritten by a carriage return is \
                 left out). No terminal, no input. Each call starts anew: no variable or folder carries over. \
                 Everything it started, also in the background, is ended with it. Limits: {} s, or timeout_seconds up \
                 to {}; {} MiB of output.",
                limits::RESULT_MAX_BYTES / 1024,
                limits::TOOL_TIMEOUT.0 / 1_000,
                limits::TOOL_TIMEOUT_MAX.0 / 1_000,
                limits::OUTPUT_MAX_BYTES / (1024 * 1024),
            ),
            schema: json!({
                "type": "object",
                "properties": {
                    "command": {"type": "string", "minLength": 1, "description": "The line, at most 128 KiB."},
                    "timeout_seconds": {
                        "type": "integer", "minimum": 1, "maximum": limits::TOOL_TIMEOUT_MAX.0 / 1_000,
                        "description": "After how long it is ended.",
                    },
                    "network": {
                        "type": "boolean",
                        "description": "Whether it needs the network, which is off otherwise; the operator is asked.",
                    },
                },
                "required": ["command"],
                "additionalProperties": false,
            }),
            effect: EffectClass::External,
            noise: Noise { presentational: Vec::new(), is_output: true },
        }
    }

    fn prepare(&self, scene: &Scene, arguments: &str) -> Result<Prepared, Problem> {
        let Arguments { command, timeout_seconds, network } = arguments::read(arguments)?;
        if command.trim().is_empty() {
            return Err(arguments::problem(ProblemKind::InvalidArguments, "The command is empty. Nothing was done."));
        }
        if command.contains('\0') || command.len() > limits::COMMAND_MAX_BYTES {
            let text = "A command has no NUL and less than 128 KiB. Nothing was run; put long text in a file.";
            return Err(arguments::problem(ProblemKind::Refused, text));
        }
        let longest = limits::TOOL_TIMEOUT_MAX.0 / 1_000;
        let time_limit = match timeout_seconds {
            None => limits::TOOL_TIMEOUT,
            Some(seconds) if (1..=longest).contains(&seconds) => Span::seconds(seconds),
            Some(_) => {
                let text = format!("timeout_seconds is 1 to {longest}. Nothing was run.");
                return Err(arguments::problem(ProblemKind::InvalidArguments, text));
            }
        };
        let mut run = Run {
            scene: scene.clone(),
            shell: Interpreter::find(),
            variables: environment::for_child(scene),
            read: line::read(&command),
            command,
            time_limit,
            network,
            manner: Manner::default(),
            repository: None,
        };
        let level = scene.sandbox.level;
        let found = touches::find(scene, &run.read);
        run.repository = found.repository;
        // Also where a line is not plain: what it sends or reads by a redirection is no word of a command.
        let ends = |one: char| one.is_whitespace() || "<>|&;()'\"`=:,{}".contains(one);
        let has = |table: fn(&Path) -> Option<&'static str>| {
            run.command.split(ends).any(|piece| table(Path::new(piece)).is_some())
        };
        let is_key = found.has_key || has(names::key_material);
        // A full box keeps these, or tells what became of them.
        let names_later = found.runs_later || has(names::runs_unasked);
        let is_later = level != Level::Full && names_later;
        let mut reach = scene.sandbox.reach(network);
        if names_later && level == Level::Full {
            reach.push_str("; hooks and the like there stay as they are");
        }
        if time_limit != limits::TOOL_TIMEOUT {
            reach.push_str(&format!("; for up to {} s", time_limit.0 / 1_000));
        }
        let facts = Facts {
            grave: is_key.then_some(Grave::Keys).into_iter().chain(is_later.then_some(Grave::RunsLater)).collect(),
            touches: found.touches,
            line: Some(run.read.clone()),
            title: one_line(&run.command, TITLE_MAX_CHARS),
            reach,
            inside: false,
            unconfined: level != Level::Full || network,
            level: Some(level),
            network,
            preview: run.command.clone(),
            binding: run.binding()?,
            ..Facts::default()
        };
        Ok(Prepared { facts, action: Box::new(run) })
    }
}

impl Run {
    fn binding(&self) -> Result<Vec<String>, Problem> {
        let workspace = &self.scene.workspace;
        let missing = |what: &str| {
            let text = format!("The {what} can't be found. Nothing was run.");
            arguments::problem(ProblemKind::Impossible, text)
        };
        let shell = self.shell.program.metadata().map_err(|_| missing("shell"))?;
        // It is fixed for the life of the run: a link on the way to it, or in its place, leads to another one.
        let folder = place::open_folder(workspace).and_then(fstat).map_err(|_| missing("workspace"))?;
        let mut lines = vec![
            format!("shell={} {}:{} {}", self.shell.program.display(), shell.dev(), shell.ino(), shell.size()),
            format!("workspace={} {}:{}", workspace.display(), folder.st_dev, folder.st_ino),
            environment::binding(&self.variables),
            format!("time limit={}", human(self.time_limit)),
            self.scene.sandbox.binding(self.network),
        ];
        lines.extend(scripts::bindings(&self.scene, &self.command));
        Ok(lines)
    }
}

#[async_trait]
impl Action for Run {
    async fn run(self: Box<Self>, call: CallId, reins: Reins) -> Executed {
        let mut output = Output::default();
        let time_limit = self.time_limit;
        let before = watched(&self.scene, &reins.cancel, limits::WATCH_PATIENCE).await;
        if reins.cancel.is_cancelled() {
            return Executed::ended(OutcomeKind::Cancelled, UNBEGUN);
        }
        let room = match Room::of(&self.scene, self.manner, self.network, &before) {
            Ok(room) => room,
            Err(why) => return Executed::failed(format!("not run: its box could not be made: {why}\n"), None),
        };
        let means = match (self.manner, &self.read.plain) {
            (Manner::Usual | Manner::Unboxed, _) => Means::Shell(&self.shell, &self.command),
            (Manner::Reading, Ok(plain)) => Means::Words(plain, Search::System, self.repository.as_deref()),
            // What the operator's rule says runs as it would run for the operator.
            (Manner::Ruled, Ok(plain)) => Means::Words(plain, Search::Own, None),
            (Manner::Reading | Manner::Ruled, Err(why)) => {
                return Executed::Drifted(format!("It can no longer be run from its words: {why}."));
            }
        };
        let is_boxed = room.is_some();
        let line = Line { scene: &self.scene, means, variables: self.variables.clone(), time_limit, room };
        let show = |text: &str| stream(&reins, call, text);
        let ending = process::run(line, &reins.cancel, &mut output, show).await;
        let changed = match self.manner {
            Manner::Reading => Vec::new(),
            Manner::Usual | Manner::Ruled | Manner::Unboxed => {
                watched_after(&self.scene, &reins.cancel, &ending).await.changes_since(&before)
            }
        };
        let kind = match ending {
            Ending::Exited(0) => OutcomeKind::Done,
            Ending::Exited(_) | Ending::Flooded | Ending::NotStarted(_) | Ending::Lost(_) => OutcomeKind::Failed,
            Ending::TimedOut => OutcomeKind::TimedOut,
            Ending::Cancelled => OutcomeKind::Cancelled,
        };
        // What a shell itself says by its status, never what a program prints.
        let class = match ending {
            Ending::Exited(126) => Some(ErrorClass::Permission),
            Ending::Exited(127) => Some(ErrorClass::Capability),
            Ending::Exited(_)
            | Ending::TimedOut
            | Ending::Cancelled
            | Ending::Flooded
            | Ending::NotStarted(_)
            | Ending::Lost(_) => None,
        };
        let bytes = output.received;
        let hint = match (&ending, is_boxed) {
            (Ending::Exited(127), true) => HIDDEN,
            (_, true | false) => "",
        };
        let text = result(&ending, &output, time_limit, &(hint.to_string() + &told(&changed)));
        Executed::Ended(ToolOutcome { kind, text, bytes, took: Span(0), class, watched: changed })
    }

    fn use_box(&mut self, manner: Manner) {
        self.manner = manner;
    }
}

/// What other programs run by themselves, as it stands now; as far as it was looked at before a cancel, and in time.
async fn watched(scene: &Scene, cancel: &CancellationToken, patience: Span) -> Watched {
    let (scene, end) = (scene.clone(), cancel.child_token());
    let seen = end.clone();
    let mut looking = spawn_blocking(move || Watched::of(&scene, &seen));
    tokio::select! {
        found = &mut looking => return found.unwrap_or_default(),
        () = sleep(wait(patience)) => end.cancel(),
    }
    looking.await.unwrap_or_default()
}

/// The same after a line. A cancel that ended the line does not end this: the line may have changed something before.
async fn watched_after(scene: &Scene, cancel: &CancellationToken, ending: &Ending) -> Watched {
    match ending {
        Ending::Cancelled => watched(scene, &CancellationToken::new(), limits::WATCH_PATIENCE_CANCELLED).await,
        Ending::Exited(_) | Ending::TimedOut | Ending::Flooded | Ending::NotStarted(_) | Ending::Lost(_) => {
            watched(scene, cancel, limits::WATCH_PATIENCE).await
        }
    }
}

fn told(changed: &[String]) -> String {
    // A result has room for so much of a name; the record has all of it.
    let short = |name: String| match name.len() <= 2 * NAME_END_BYTES {
        true => name,
        false => format!("{}…{}", head(&name, NAME_END_BYTES), tail(&name, NAME_END_BYTES)),
    };
    let names: Vec<String> = named(changed).into_iter().map(short).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("changed what other programs run by themselves: {}\n", names.join(", ")),
    }
}

/// Whether the line of a condition exits with status 0, with its status and output. Anything else is a no.
pub(crate) async fn check(scene: &Scene, command: &str, reins: Reins) -> (bool, String) {
    if command.contains('\0') || command.len() > limits::COMMAND_MAX_BYTES {
        return (false, "not run: a command has no NUL and less than 128 KiB\n".to_string());
    }
    let mut output = Output::default();
    let before = watched(scene, &reins.cancel, limits::WATCH_PATIENCE).await;
    if reins.cancel.is_cancelled() {
        return (false, UNBEGUN.to_string());
    }
    let room = match Room::of(scene, Manner::Usual, false, &before) {
        Ok(room) => room,
        Err(why) => return (false, format!("not run: its box could not be made: {why}\n")),
    };
    let line = Line {
        scene,
        means: Means::Shell(&Interpreter::find(), command),
        variables: environment::for_child(scene),
        time_limit: limits::TOOL_TIMEOUT,
        room,
    };
    let ending = process::run(line, &reins.cancel, &mut output, |_| {}).await;
    // A check only looks: what it prepares for others to run was never asked about.
    let changed = watched_after(scene, &reins.cancel, &ending).await.changes_since(&before);
    let text = result(&ending, &output, limits::TOOL_TIMEOUT, &told(&changed));
    (ending == Ending::Exited(0) && changed.is_empty(), text)
}

/// What the shell says against a line that it can't read. Nothing of the line is run. Where the shell can't be asked,
/// nothing is said against it.
pub(crate) async fn unreadable(scene: &Scene, command: &str) -> Option<String> {
    let mut output = Output::default();
    let line = Line {
        scene,
        means: Means::Shell(&Interpreter::reading(), command),
        variables: environment::for_child(scene),
        time_limit: limits::SYNTAX_TIMEOUT,
        room: None,
    };
    let ending = process::run(line, &CancellationToken::new(), &mut output, |_| {}).await;
    if !matches!(ending, Ending::Exited(1 | 2)) {
        return None;
    }
    let said = output.excerpt(limits::RESULT_MAX_BYTES - FRAME_BYTES);
    // Its own name stands in front, which says nothing to people.
    let first = said.lines().next().unwrap_or_default();
    let sentence = first.split_once(": ").map_or(first, |(_, sentence)| sentence.trim_start_matches("-c: "));
    Some(one_line(sentence, TITLE_MAX_CHARS))
}

/// Sends text to whoever watches, in pieces that fit a screen's queue.
fn stream(reins: &Reins, call: CallId, text: &str) {
    let mut rest = text;
    while !rest.is_empty() {
        let piece = head(rest, limits::SCRAP_MAX_BYTES);
        rest = rest.get(piece.len()..).unwrap_or_default();
        // Nobody watches, or somebody watches too slowly: the result has it all.
        let _ = reins.deltas.send(Delta { source: DeltaSource::Tool(call), text: piece.to_string() });
    }
}

/// What the model is told: first how it ended, then the output, then what is said `below` it. It holds no time and no process number, so that the
/// same work gives the same result.
fn result(ending: &Ending, output: &Output, time_limit: Span, below: &str) -> String {
    let mut first = match ending {
        Ending::Exited(code) => status(*code),
        Ending::TimedOut => format!("ended after its time limit of {}", human(time_limit)),
        Ending::Cancelled => "cancelled while it ran; what it had done by then stays done".to_string(),
        Ending::Flooded => format!("ended: it printed more than {} bytes", limits::OUTPUT_MAX_BYTES),
        Ending::NotStarted(why) => format!("not run: {}", one_line(why, 200)),
        Ending::Lost(Left::Nothing) => {
            "its guard was killed, which ended all that it had started; nobody knows its status".to_string()
        }
        Ending::Lost(Left::Unknown) => {
            "its guard was killed; what it started may still run, and nobody knows its status".to_string()
        }
    };
    if output.overwritten > 0 {
        first.push_str(&format!("; {} overwritten lines left out", output.overwritten));
    }
    let text = output.excerpt((limits::RESULT_MAX_BYTES - FRAME_BYTES).saturating_sub(below.len()));
    match text.is_empty() {
        true => format!("{first}; no output\n{below}"),
        false => format!("{first}\n{text}{below}"),
    }
}

fn status(code: i32) -> String {
    let signal = nix::sys::signal::Signal::try_from(code - 128);
    match signal {
        Ok(signal) if code > 128 => format!("exit status {code} ({signal})"),
        Ok(_) | Err(_) => format!("exit status {code}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::tools::stage::Stage;
    use crate::tools::stage::reins;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn say(command: &str) -> String {
        serde_json::json!({ "command": command }).to_string()
    }

    #[tokio::test]
    async fn facts_are_the_exact_line() {
        let stage = Stage::new();
        stage.write("x.sh", "#!/bin/sh\n");
        let facts = stage.call("shell", &say("  ./x.sh\n\techo 'a  b'  ")).await.facts.unwrap();
        assert_eq!(facts.preview, "  ./x.sh\n\techo 'a  b'  ");
        assert_eq!(facts.title, "./x.sh echo 'a b'");
        assert_eq!((facts.reach.as_str(), facts.inside), ("runs a program with your rights", false));
        let names: Vec<&str> = facts.binding.iter().filter_map(|line| line.split('=').next()).collect();
        let names = names.iter().map(|name| stage.neutral(name)).collect::<Vec<_>>();
        assert_eq!(names, ["shell", "workspace", "environment", "time limit", "box", "script ROOT/ws/x.sh"]);
    }

    #[tokio::test]
    async fn another_time_limit_stands_in_the_reach() {
        let stage = Stage::new();
        for (seconds, wanted) in [(599, "; for up to 599 s"), (1, "; for up to 1 s"), (120, "")] {
            let said = serde_json::json!({ "command": "true", "timeout_seconds": seconds }).to_string();
            let reach = stage.call("shell", &said).await.facts.unwrap().reach;
            assert_eq!(reach, format!("runs a program with your rights{wanted}"));
        }
    }

    #[tokio::test]
    async fn lines_that_can_not_be_run_are_refused() {
        let stage = Stage::new();
        for (arguments, wanted) in [
            (say(""), "InvalidArguments: The command is empty"),
            (say(" \n"), "InvalidArguments: The command is empty"),
            (say("a\0b"), "Refused: A command has no NUL"),
            (say(&"x".repeat(limits::COMMAND_MAX_BYTES + 1)), "Refused: A command has no NUL"),
            (r#"{"command":"a","timeout_seconds":0}"#.to_string(), "InvalidArguments: timeout_seconds is 1 to 600"),
            (r#"{"command":"a","timeout_seconds":601}"#.to_string(), "InvalidArguments: timeout_seconds is 1 to 600"),
            (r#"{"command":"a","timeout_seconds":-1}"#.to_string(), "InvalidArguments: "),
            (r#"{"command":"\udc00"}"#.to_string(), "Malformed: "),
            (r#"{"command":["ls"]}"#.to_string(), "InvalidArguments: "),
        ] {
            let text = stage.run("shell", &arguments).await;
            assert!(text.starts_with(wanted), "{arguments:.80}: {text}");
        }
    }

    #[tokio::test]
    async fn a_script_or_a_folder_exchanged_after_the_decision_is_drift() {
        let stage = Stage::new();
        stage.write("x.sh", "#!/bin/sh\necho harmless\n");
        let path = stage.scene.workspace.join("x.sh");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let call = stage.call("shell", &say("./x.sh")).await;
        stage.write("x.sh", "#!/bin/sh\necho harmful\n");
        let Executed::Drifted(text) = stage.execute(&call).await else { panic!("it ran") };
        assert!(text.starts_with("Changed since it was decided: script "), "{text}");
        let call = stage.call("shell", &say("true")).await;
        fs::rename(&stage.scene.workspace, stage.root().join("old")).unwrap();
        fs::create_dir(&stage.scene.workspace).unwrap();
        let Executed::Drifted(text) = stage.execute(&call).await else { panic!("it ran") };
        assert!(text.starts_with("Changed since it was decided: workspace"), "{text}");
    }

    #[tokio::test]
    async fn a_guard_that_can_not_be_started_is_a_failure() {
        let stage = Stage::new();
        let text = stage.run("shell", &say("touch made")).await;
        assert!(text.starts_with("Failed: not run: "), "{text}");
        assert!(!stage.scene.workspace.join("made").exists());
        let (passed, text) = check(&stage.scene, "true", reins()).await;
        assert!(!passed && text.starts_with("not run: "), "{text}");
    }

    #[test]
    fn statuses_read_well() {
        assert_eq!(status(0), "exit status 0");
        assert_eq!(status(128), "exit status 128");
        assert_eq!(status(137), "exit status 137 (SIGKILL)");
        assert_eq!(status(255), "exit status 255");
    }
}
