//! Runs a plain line from its words, without a shell: `tiller guard --line JSON` (docs/SAFETY.md §6). Programs are found on
//! a fixed search path and nowhere else; git is told by its environment to run nothing that a repository names, and, where
//! the table let it run, which repository to use. It judges nothing, and it ends nothing: it is started under a guard, which ends all that descends from it.

use std::borrow::Cow;
use std::env;
use std::ffi::OsString;
use std::io;
use std::io::PipeReader;
use std::io::PipeWriter;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;

use serde::Deserialize;
use serde::Serialize;

use crate::domain::line::CD;
use crate::domain::line::Joint;
use crate::domain::line::Plain;
use crate::domain::line::Redirect;
use crate::domain::line::Segment;
use crate::tools::guard;
use crate::tools::touches::GIT;
use crate::tools::touches::GIT_FOLDER;

/// The word that makes a guard's child run a plain line.
pub(crate) const LINE: &str = "--line";
/// Where the programs of the system are.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Status of a line that could not be read, of a program that may not be run, and of one that is not there.
const UNREADABLE: u8 = 125;
const NOT_RUNNABLE: u8 = 126;
const NOT_FOUND: u8 = 127;
/// A folder that holds no repository.
const NOWHERE: &str = "/dev/null";
/// What is added to the number of the signal that ended a program.
const SIGNAL_BASE: i32 = 128;

/// What keeps git from running what the configuration of a repository names, from the network, and from writing.
const GIT_VARIABLES: [(&str, &str); 10] = [
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_PAGER", "cat"),
    ("PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_EDITOR", "false"),
];
/// Settings that outrank those of the repository.
const GIT_SETTINGS: [(&str, &str); 12] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.sshCommand", "false"),
    ("safe.bareRepository", "explicit"),
    ("log.showSignature", "false"),
    ("gpg.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.x509.program", "false"),
    ("status.submoduleSummary", "false"),
    ("diff.ignoreSubmodules", "dirty"),
    ("diff.submodule", "short"),
];

/// Whether git is told otherwise whatever a repository sets for this key, in small letters.
pub(crate) fn outranks(key: &str) -> bool {
    GIT_SETTINGS.iter().any(|(known, _)| known.eq_ignore_ascii_case(key))
}

/// Where programs are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Search {
    /// In folders of the system only: what the read-only table names.
    System,
    /// Where the operator's own search path leads, without folders of the workspace: what a rule of the operator's names.
    Own,
}

/// What is to be run, as it goes from one start of our program to the next.
#[derive(Serialize, Deserialize)]
struct Order<'a> {
    plain: Cow<'a, Plain>,
    search: Search,
    repository: Option<Cow<'a, Path>>,
}

/// Where the commands of a line find programs, and git its repository.
struct Ground<'a> {
    search: Search,
    /// The folders that bare names are looked for in.
    path: OsString,
    repository: Option<&'a Path>,
}

/// The words after our own program's name that make it run this line. They go behind the guard, or behind a box. With
/// programs of the system only, git works in the repository whose top is `repository` and in no other, and is not run
/// where that is none, or none for git.
pub fn words(plain: &Plain, search: Search, repository: Option<&Path>) -> Vec<OsString> {
    let order = Order { plain: Cow::Borrowed(plain), search, repository: repository.map(Cow::Borrowed) };
    // Text and enums can always be written; of a path that is no text nothing is run.
    let json = serde_json::to_string(&order).unwrap_or_default();
    vec![guard::WORD.into(), LINE.into(), json.into()]
}

/// Runs a line that is given as JSON, and gives its status.
pub(crate) fn main(json: Option<&str>) -> u8 {
    let Some(order) = json.and_then(|json| serde_json::from_str::<Order<'_>>(json).ok()) else {
        complain("the line can't be read; nothing was run");
        return UNREADABLE;
    };
    let path = search_path(order.search);
    run(&order.plain, &Ground { search: order.search, path, repository: order.repository.as_deref() })
}

fn complain(why: &str) {
    // Where nobody reads, nobody needs it.
    let _ = writeln!(io::stderr(), "tiller: {why}");
}

fn run(plain: &Plain, ground: &Ground<'_>) -> u8 {
    let mut status = 0;
    let mut rest = plain.segments.as_slice();
    while let Some((first, others)) = rest.split_first() {
        let piped = others.iter().take_while(|segment| segment.joint == Joint::Pipe).count();
        let (pipeline, behind) = rest.split_at_checked(piped + 1).unwrap_or((rest, &[]));
        rest = behind;
        let is_next = match first.joint {
            Joint::And => status == 0,
            Joint::Or => status != 0,
            Joint::First | Joint::Then | Joint::Pipe => true,
        };
        if is_next {
            status = match pipeline {
                [only] if only.argv.first().is_some_and(|name| name == CD) => match go_to(plain.folder()) {
                    0 => 0,
                    // All words behind it were judged as what they name in that folder, and in no other.
                    failed => return failed,
                },
                _ => run_pipeline(pipeline, ground),
            };
        }
    }
    status
}

/// Goes to a folder of the one that we are in, which is the workspace: wherever the name leads by now.
fn go_to(folder: Option<&str>) -> u8 {
    let Some(folder) = folder else {
        complain("cd stands elsewhere than at the start of the line, before &&");
        return 1;
    };
    let gone = env::current_dir().and_then(|workspace| {
        env::set_current_dir(folder)?;
        match env::current_dir()?.starts_with(&workspace) {
            true => Ok(()),
            false => {
                env::set_current_dir(workspace)?;
                Err(io::Error::other("it leads out of the workspace"))
            }
        }
    });
    match gone {
        Ok(()) => 0,
        Err(error) => {
            complain(&format!("cd: {folder}: {error}"));
            1
        }
    }
}

/// Runs commands side by side, each reading what the one before prints. The status is that of the last.
fn run_pipeline(segments: &[Segment], ground: &Ground<'_>) -> u8 {
    let mut started = Vec::new();
    let mut input: Option<PipeReader> = None;
    for (at, segment) in segments.iter().enumerate() {
        let is_last = at + 1 == segments.len();
        let (next, output) = match (!is_last).then(io::pipe).transpose() {
            Ok(pipe) => pipe.unzip(),
            Err(error) => {
                complain(&format!("no pipe could be made: {error}"));
                return NOT_RUNNABLE;
            }
        };
        started.push(start(segment, ground, input.take(), output));
        input = next;
    }
    let mut status = NOT_FOUND;
    for child in started {
        status = match child {
            Ok(mut child) => child.wait().map_or(NOT_RUNNABLE, code),
            Err(status) => status,
        };
    }
    status
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| SIGNAL_BASE + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Where the output of a command goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sink {
    /// To the next command, or where ours goes.
    Output,
    /// Where our errors go.
    Errors,
    Null,
}

/// Starts one command. Errors with the status of one that can't be started.
fn start(
    segment: &Segment,
    ground: &Ground<'_>,
    input: Option<PipeReader>,
    output: Option<PipeWriter>,
) -> Result<Child, u8> {
    let (name, arguments) = segment.argv.split_first().ok_or(UNREADABLE)?;
    let program = ground.find(name).ok_or_else(|| {
        complain(&match ground.takes_paths() && name.contains('/') {
            true => format!("{name}: no such program at that place"),
            false => format!("{name}: no such program; looked for in {}", ground.path.display()),
        });
        NOT_FOUND
    })?;
    let (mut out, mut errors) = (Sink::Output, Sink::Errors);
    for redirect in &segment.redirects {
        match redirect {
            Redirect::OutputToNull => out = Sink::Null,
            Redirect::ErrorsToNull => errors = Sink::Null,
            Redirect::ErrorsToOutput => errors = out,
        }
    }
    let stdio = |sink| match (sink, &output) {
        (Sink::Null, _) => Ok(Stdio::null()),
        (Sink::Errors, _) => Ok(Stdio::inherit()),
        (Sink::Output, Some(pipe)) => pipe.try_clone().map(Stdio::from),
        (Sink::Output, None) => io::stdout().as_fd().try_clone_to_owned().map(Stdio::from),
    };
    let failed = |error: io::Error| {
        complain(&format!("{name} can't be started: {error}"));
        NOT_RUNNABLE
    };
    if name == GIT && ground.search == Search::System {
        let asked = stdio(errors).and_then(|errors| asks_git(&program, ground, errors));
        let status = asked.map_err(failed)?;
        if !status.success() {
            complain("git does not take the repository that was looked into; nothing was run");
            return Err(code(status));
        }
    }
    let started = stdio(out).and_then(|out| {
        let input = input.map_or_else(Stdio::null, Stdio::from);
        let mut command = command(&program, ground);
        command.arg0(name).args(arguments).stdin(input).stdout(out).stderr(stdio(errors)?).spawn()
    });
    started.map_err(failed)
}

/// A command with its surroundings, without words.
fn command(program: &Path, ground: &Ground<'_>) -> Command {
    let mut command = Command::new(program);
    command.env("PATH", &ground.path).envs(GIT_VARIABLES);
    command.env("GIT_CONFIG_COUNT", GIT_SETTINGS.len().to_string());
    for (at, (key, value)) in GIT_SETTINGS.iter().enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{at}"), key).env(format!("GIT_CONFIG_VALUE_{at}"), value);
    }
    if ground.search == Search::System {
        // Git's own way to look for one passes by what tiller takes for one, and refuses those of other users. What is
        // named outright it uses, or fails.
        let top = ground.repository.unwrap_or(Path::new(NOWHERE));
        command.env("GIT_DIR", top.join(GIT_FOLDER)).env("GIT_WORK_TREE", top);
    }
    command
}

/// Whether git can use the repository. Where it can't, most of its commands fail by themselves, but `git diff` compares
/// what lies on the disk instead, whether it is tracked or not.
fn asks_git(program: &Path, ground: &Ground<'_>, errors: Stdio) -> io::Result<ExitStatus> {
    let mut git = command(program, ground);
    git.args(["rev-parse", "--git-dir"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).status()
}

/// The folders that programs are looked for in. None lies in the workspace, which is where we are when we start.
fn search_path(search: Search) -> OsString {
    let own = match search {
        Search::System => SYSTEM_PATH.into(),
        Search::Own => env::var_os("PATH").unwrap_or_default(),
    };
    let Ok(workspace) = env::current_dir() else { return OsString::new() };
    let is_safe = |folder: &PathBuf| {
        folder.is_absolute() && !folder.canonicalize().is_ok_and(|real| real.starts_with(&workspace))
    };
    env::join_paths(env::split_paths(&own).filter(is_safe)).unwrap_or_default()
}

impl Ground<'_> {
    /// Whether the name of a program may be a path: where it is the operator who named it. The table knows bare names only.
    fn takes_paths(&self) -> bool {
        self.search == Search::Own
    }

    /// The program of a name. A path is one from where the line is by then.
    fn find(&self, name: &str) -> Option<PathBuf> {
        match name.contains('/') {
            true => Some(PathBuf::from(name)).filter(|path| self.takes_paths() && path.is_file()),
            false => env::split_paths(&self.path).map(|folder| folder.join(name)).find(|path| path.is_file()),
        }
    }
}
