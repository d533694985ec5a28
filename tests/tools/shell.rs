//! The shell and its guard, with the real program: nothing of a call outlives it, and what comes back is what ran.
//! Every count of survivors has a control that the processes really were there.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use crate::tools::running::call;
use tempfile::TempDir;
use tiller::domain::limits;
use tiller::domain::model::Delta;
use tiller::domain::terms::Check;
use tiller::domain::time::Span;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::OutcomeKind;
use tiller::domain::tool::Permit;
use tiller::domain::tool::ToolOutcome;
use tiller::tools::Executed;
use tiller::tools::Reins;
use tiller::tools::Scene;
use tiller::tools::Toolbox;
use tiller::tools::hook::Hook;
use tiller::tools::orphans;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// How long survivors may take to go.
const GONE_WITHIN: Duration = Duration::from_secs(3);
/// How long anything may take to appear.
const PATIENCE: Duration = Duration::from_secs(20);
/// No process.
const NOBODY: [i32; 0] = [];
/// Names the workspace of the owner that is killed.
const OWNER_WORKSPACE: &str = "TILLER_TEST_WORKSPACE";
/// Is the line that this owner runs.
const OWNER_LINE: &str = "TILLER_TEST_LINE";

struct Bench {
    toolbox: Toolbox,
    workspace: PathBuf,
    reins: Reins,
    _folder: Option<TempDir>,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().canonicalize().unwrap();
        Bench { _folder: Some(folder), ..Bench::at(workspace) }
    }

    fn at(workspace: PathBuf) -> Self {
        let reins = Reins { deltas: broadcast::Sender::new(limits::DELTAS), cancel: CancellationToken::new() };
        Bench { toolbox: Toolbox::new(Bench::scene(workspace.clone())), workspace, reins, _folder: None }
    }

    fn scene(workspace: PathBuf) -> Scene {
        Scene {
            workspace,
            off_limits: Vec::new(),
            pre_images: None,
            program: PathBuf::from(env!("CARGO_BIN_EXE_tiller")),
            passed_variables: Vec::new(),
            sandbox: tiller::tools::sandbox::Sandbox::default(),
            git: tiller::tools::gits::own::Own::default(),
        }
    }

    /// A name for processes that no other test uses.
    fn tag(&self) -> String {
        format!("tag-{}", self.workspace.file_name().unwrap().to_str().unwrap().trim_start_matches('.'))
    }

    async fn outcome(&self, arguments: serde_json::Value) -> ToolOutcome {
        let mut call = call("shell", &arguments, EffectClass::External);
        call.facts = Some(self.toolbox.prepare(&call).await);
        match self.toolbox.execute(Permit::of(&call).unwrap(), self.reins.clone()).await {
            Executed::Ended(outcome) => outcome,
            Executed::Drifted(text) => panic!("drifted: {text}"),
        }
    }

    async fn run(&self, command: &str) -> ToolOutcome {
        self.outcome(serde_json::json!({ "command": command })).await
    }

    async fn run_for(&self, command: &str, seconds: u64) -> ToolOutcome {
        self.outcome(serde_json::json!({ "command": command, "timeout_seconds": seconds })).await
    }

    async fn check(&self, command: &str, wanted: &str) {
        assert_eq!(self.run(command).await.text, wanted, "{command}");
    }

    fn has(&self, name: &str) -> bool {
        self.workspace.join(name).exists()
    }
}

/// Processes that call themselves `tag`; the dead that nobody has buried do not count.
fn alive(tag: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let name = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if name.split(|byte| *byte == 0).next() == Some(tag.as_bytes()) {
            found.push(pid);
        }
    }
    found
}

async fn wait_for(what: &str, patience: Duration, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + patience;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Four processes that want to stay: one in the background, one in a session of its own, one forked twice away, and
/// one that ignores TERM and everything else it can.
fn stubborn(tag: &str) -> String {
    format!(
        "bash -c 'exec -a {tag} sleep 600' &
         setsid bash -c 'exec -a {tag} sleep 600' &
         (setsid bash -c '(trap \"\" HUP; exec -a {tag} sleep 600) & exit' &)
         setsid bash -c 'trap \"\" TERM INT HUP QUIT; exec -a {tag} sleep 600' > /dev/null 2>&1 < /dev/null &
         disown -a
         "
    )
}

/// Waits, in the line itself, until its processes run; then leaves word.
fn wait_for_all(tag: &str) -> String {
    format!("until [ \"$(pgrep -c -f '^{tag}')\" = 4 ]; do sleep 0.02; done; touch all-there\n")
}

#[tokio::test]
async fn nothing_outlives_a_line_that_ends() {
    let bench = Bench::new();
    let tag = bench.tag();
    let outcome = bench.run(&format!("{}{}echo done", stubborn(&tag), wait_for_all(&tag))).await;
    assert!(bench.has("all-there"));
    assert_eq!((outcome.kind, outcome.text.as_str()), (OutcomeKind::Done, "exit status 0\ndone\n"));
    assert_eq!(alive(&tag), NOBODY);
}

#[tokio::test]
async fn nothing_outlives_a_time_limit() {
    let bench = Bench::new();
    let tag = bench.tag();
    let begun = Instant::now();
    let outcome =
        bench.run_for(&format!("{}{}echo before; wait; sleep 600", stubborn(&tag), wait_for_all(&tag)), 2).await;
    assert!(bench.has("all-there"));
    assert_eq!(outcome.kind, OutcomeKind::TimedOut);
    assert_eq!(outcome.text, "ended after its time limit of 2s\nbefore\n");
    assert_eq!(alive(&tag), NOBODY);
    assert!(begun.elapsed() < Duration::from_secs(2) + GONE_WITHIN, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn nothing_outlives_a_cancel() {
    let bench = Bench::new();
    let tag = bench.tag();
    let line = format!("{}echo before; sleep 600", stubborn(&tag));
    let cancel = async {
        wait_for("four processes", PATIENCE, || alive(&tag).len() == 4).await;
        bench.reins.cancel.cancel();
        Instant::now()
    };
    let (outcome, cancelled) = tokio::join!(bench.run(&line), cancel);
    assert_eq!(outcome.kind, OutcomeKind::Cancelled);
    assert!(outcome.text.ends_with("\nbefore\n"), "{}", outcome.text);
    assert_eq!(alive(&tag), NOBODY);
    assert!(cancelled.elapsed() < GONE_WITHIN, "{:?}", cancelled.elapsed());
}

#[tokio::test]
async fn nothing_outlives_a_call_that_is_dropped() {
    let bench = Bench::new();
    let tag = bench.tag();
    let line = format!("{}sleep 600", stubborn(&tag));
    tokio::select! {
        outcome = bench.run(&line) => panic!("{outcome:?}"),
        () = wait_for("four processes", PATIENCE, || alive(&tag).len() == 4) => {}
    }
    wait_for("no survivors", GONE_WITHIN, || alive(&tag).is_empty()).await;
}

#[tokio::test]
async fn nothing_outlives_an_owner_that_is_killed() {
    check_killed_owner("").await;
}

/// What is stopped sees no pipe close; the end of its owner has to wake it.
#[tokio::test]
async fn nothing_outlives_an_owner_that_is_killed_while_the_guard_is_stopped() {
    check_killed_owner("kill -STOP $PPID;").await;
}

async fn check_killed_owner(attack: &str) {
    let bench = Bench::new();
    let tag = bench.tag();
    let line = format!("{}{}{attack} touch ready; sleep 600", stubborn(&tag), wait_for_all(&tag));
    let owner = owner(&bench, &line);
    wait_for("the line", PATIENCE, || bench.has("ready")).await;
    assert_eq!(alive(&tag).len(), 4);
    drop(owner);
    wait_for("no survivors", GONE_WITHIN, || alive(&tag).is_empty()).await;
}

#[tokio::test]
async fn nothing_outlives_a_guard_that_its_line_kills() {
    let killed = "its guard was killed, which ended all that it had started; nobody knows its status";
    check_attacked_guard("kill -9 $PPID; sleep 600", killed).await;
    // One that goes on breeding, at most for a second, while it is ended.
    let line = "(trap '' TERM; for n in $(seq 500); do (sleep 9 &); done) & sleep 0.2; kill -9 $PPID; sleep 600";
    check_attacked_guard(line, killed).await;
}

#[tokio::test]
async fn nothing_outlives_a_guard_that_its_line_keeps_stopped() {
    let line = "P=$PPID; (trap '' TERM; while :; do kill -STOP $P; done)";
    check_attacked_guard(line, "ended after its time limit of 2s").await;
}

async fn check_attacked_guard(attack: &str, first: &str) {
    let bench = Bench::new();
    let tag = bench.tag();
    let line = format!("{}{}{attack}", stubborn(&tag), wait_for_all(&tag));
    let owner = owner(&bench, &line);
    wait_for("the end of the call", PATIENCE, || bench.has("outcome")).await;
    assert!(bench.has("all-there"));
    // The owner waits to be killed: none of this is owed to its end.
    assert_eq!(alive(&tag), NOBODY);
    drop(owner);
    let text = fs::read_to_string(bench.workspace.join("outcome")).unwrap();
    assert_eq!(text.lines().next().unwrap().split(';').next(), first.split(';').next(), "{text}");
}

/// Runs a line in a process of its own, which can be killed and which is a reaper as the program is.
fn owner(bench: &Bench, line: &str) -> Owner {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tools::shell::the_owner_that_is_killed"])
        .env(OWNER_WORKSPACE, &bench.workspace)
        .env(OWNER_LINE, line)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Owner(child.unwrap())
}

/// A process that ends with its test.
struct Owner(std::process::Child);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Started by the tests above, in a process of its own; nothing without the variables.
#[tokio::test]
async fn the_owner_that_is_killed() {
    let Some(workspace) = std::env::var_os(OWNER_WORKSPACE) else { return };
    orphans::adopt();
    let bench = Bench::at(PathBuf::from(workspace));
    let outcome = bench.run_for(&std::env::var(OWNER_LINE).unwrap(), 2).await;
    fs::write(bench.workspace.join("new"), outcome.text).unwrap();
    fs::rename(bench.workspace.join("new"), bench.workspace.join("outcome")).unwrap();
    std::future::pending().await
}

/// Starts new processes faster than they are killed one by one, and none of them hears TERM.
#[tokio::test]
async fn nothing_outlives_a_line_that_breeds() {
    let bench = Bench::new();
    let tag = bench.tag();
    let line = format!(
        "trap '' TERM; for n in 1 2 3; do
           setsid bash -c 'for m in $(seq 200); do (exec -a {tag} sleep 600) & sleep 0.01; done; wait' &
         done; wait"
    );
    let cancel = async {
        wait_for("some processes", PATIENCE, || alive(&tag).len() > 9).await;
        bench.reins.cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(bench.run(&line), cancel);
    assert_eq!(outcome.kind, OutcomeKind::Cancelled);
    assert_eq!(alive(&tag), NOBODY);
}

/// The operator's own command, which is told a line.
impl Bench {
    async fn told(&self, command: &str, line: &str, time_limit: Span) -> Result<(), String> {
        let scene = Bench::scene(self.workspace.clone());
        let command = format!("cd {}\n{command}", self.workspace.display());
        let words = ["/bin/bash", "-c", &command].map(ToString::to_string).to_vec();
        Hook::new(words, scene, time_limit).tell(line).await
    }
}

#[tokio::test]
async fn a_command_that_is_told_hears_all_of_it_and_its_status_counts() {
    let (bench, long) = (Bench::new(), Span::seconds(20));
    let hears = "read -r line; test \"$line\" = '{\"id\":1}' && ! read -r more";
    assert_eq!(bench.told(hears, "{\"id\":1}\n", long).await, Ok(()));
    let longer = "x".repeat(1_000_000);
    assert_eq!(bench.told("test $(wc -c) = 1000000", &longer, long).await, Ok(()));
    for need_not_read in ["exit 0", "exec 0<&-", "read -rN 1 one; test $one = x"] {
        assert_eq!(bench.told(need_not_read, &longer, long).await, Ok(()), "{need_not_read}");
    }
    assert_eq!(bench.told("exit 3", "x", long).await.unwrap_err(), "it ended with exit status 3");
    let environment = "test \"$OLDPWD$TERM\" = /dumb && test -z \"$CARGO_MANIFEST_DIR\"";
    assert_eq!(bench.told(environment, "x", long).await, Ok(()));
    let missing = Hook::new(vec!["/no/such".to_string()], Bench::scene(bench.workspace.clone()), long);
    assert_eq!(missing.tell("x").await.unwrap_err(), "/no/such can't be started (No such file or directory)");
}

#[tokio::test]
async fn nothing_outlives_a_command_that_is_told() {
    let bench = Bench::new();
    let tag = bench.tag();
    let all = format!("{}{}", stubborn(&tag), wait_for_all(&tag));
    assert_eq!(bench.told(&all, "x", Span::seconds(20)).await, Ok(()));
    assert!(bench.has("all-there"));
    assert_eq!(alive(&tag), NOBODY);
    let late = bench.told(&format!("rm all-there; {all} sleep 600"), "x", Span::seconds(2)).await;
    assert!(bench.has("all-there"));
    assert_eq!(late.unwrap_err(), "it took longer than 2 s and was ended");
    assert_eq!(alive(&tag), NOBODY);
    let line = format!("{}sleep 600", stubborn(&tag));
    tokio::select! {
        told = bench.told(&line, "x", Span::seconds(600)) => panic!("{told:?}"),
        () = wait_for("four processes", PATIENCE, || alive(&tag).len() == 4) => {}
    }
    wait_for("no survivors", GONE_WITHIN, || alive(&tag).is_empty()).await;
}

#[tokio::test]
async fn the_guard_is_deaf_to_what_the_line_sends_it() {
    let bench = Bench::new();
    let line = "for s in TERM INT HUP QUIT USR1 ALRM TSTP PIPE; do kill -$s $PPID; done; kill -0 $PPID && echo there";
    bench.check(line, "exit status 0\nthere\n").await;
}

#[tokio::test]
async fn a_guard_that_is_stopped_still_does_its_work() {
    let bench = Bench::new();
    let tag = bench.tag();
    let line = format!("{}{}kill -STOP $PPID; touch stopped; sleep 600", stubborn(&tag), wait_for_all(&tag));
    let outcome = bench.run_for(&line, 2).await;
    assert!(bench.has("all-there") && bench.has("stopped"));
    assert_eq!(outcome.kind, OutcomeKind::TimedOut);
    assert_eq!(alive(&tag), NOBODY);
}

#[tokio::test]
async fn a_guard_that_is_killed_takes_the_line_with_it_and_is_not_taken_for_success() {
    let bench = Bench::new();
    let tag = bench.tag();
    let line = format!("touch ran; (sleep 0.1; kill -9 $PPID) & exec -a {tag} sleep 600");
    let outcome = bench.run(&line).await;
    assert!(bench.has("ran"));
    assert_eq!(outcome.kind, OutcomeKind::Failed);
    assert!(outcome.text.starts_with("its guard was killed"), "{}", outcome.text);
    wait_for("no survivors", GONE_WITHIN, || alive(&tag).is_empty()).await;
}

#[tokio::test]
async fn output_and_status_come_back() {
    let bench = Bench::new();
    bench.check("echo one; echo two >&2; echo three", "exit status 0\none\ntwo\nthree\n").await;
    bench.check("true", "exit status 0; no output\n").await;
    bench.check("echo x; exit 3", "exit status 3\nx\n").await;
    bench.check("kill -9 $$", "exit status 137 (SIGKILL); no output\n").await;
    bench.check("printf 'caf\\xe9\\0\\n'", "exit status 0\ncaf\u{fffd}\u{fffd}\n").await;
    bench
        .check("printf '1%%\\r2%%\\r\\033[32mok\\033[0m\\n'", "exit status 0; 2 overwritten lines left out\nok\n")
        .await;
    bench.check("pwd", &format!("exit status 0\n{}\n", bench.workspace.display())).await;
    bench.check("printf '%s|' 'a  b' \"$((1+1))\" é $'\\t'; echo", "exit status 0\na  b|2|é|\t|\n").await;
    assert_eq!(bench.run("exit 3").await.kind, OutcomeKind::Failed);
    let longest = format!("echo ok #{}", "x".repeat(limits::COMMAND_MAX_BYTES - 9));
    bench.check(&longest, "exit status 0\nok\n").await;
}

#[tokio::test]
async fn a_line_has_no_terminal_no_input_and_a_clean_start() {
    let bench = Bench::new();
    bench.check("cat; tty; [ -t 1 ] || echo none", "exit status 0\nnot a tty\nnone\n").await;
    bench.check("(: <> /dev/tty) 2> /dev/null || echo none", "exit status 0\nnone\n").await;
    bench.check("ulimit -c", "exit status 0\n0\n").await;
    let blocked = bench.run("grep -E 'Sig(Blk|Pnd)' /proc/self/status | tr -d '\\t\\n'").await;
    assert_eq!(blocked.text, "exit status 0\nSigPnd:0000000000000000SigBlk:0000000000000000");
    // What the test itself was started with stays ignored; the guard adds nothing. Numbers from 32 on are the C
    // library's own.
    const SIGPIPE: u64 = 1 << 12;
    const ORDINARY: u64 = (1 << 31) - 1;
    let ignored = |status: &str| {
        let field = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
        u64::from_str_radix(field, 16).unwrap() & ORDINARY
    };
    let own = ignored(&fs::read_to_string("/proc/self/status").unwrap());
    let found = ignored(&bench.run("cat /proc/self/status").await.text);
    assert_eq!(found, own & !SIGPIPE);
    bench.check("ls /proc/self/fd | wc -l", "exit status 0\n4\n").await;
}

#[tokio::test]
async fn a_line_gets_the_variables_of_the_list_and_no_others() {
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "the test itself has a variable to hide");
    let bench = Bench::new();
    let outcome = bench.run("tr '\\0' '\\n' < /proc/self/environ | cut -d = -f 1").await;
    let allowed = ["PATH", "LANG", "TZ", "TERM", "HOME", "USER", "TMPDIR", "PWD", "SHLVL", "_", "OLDPWD"];
    for name in outcome.text.lines().skip(1) {
        assert!(allowed.contains(&name) || name.starts_with("LC_"), "{name}");
    }
    bench.check("echo $TERM", "exit status 0\ndumb\n").await;
}

#[tokio::test]
async fn too_much_output_ends_the_line() {
    let bench = Bench::new();
    let outcome = bench.run("seq 100000; echo end").await;
    assert_eq!((outcome.kind, outcome.bytes), (OutcomeKind::Done, 588_899));
    assert!(outcome.text.starts_with("exit status 0\n1\n2\n") && outcome.text.ends_with("\n100000\nend\n"));
    assert!(outcome.text.contains(" bytes left out …]") && outcome.text.len() <= limits::RESULT_MAX_BYTES);
    let tag = bench.tag();
    let outcome = bench.run(&format!("exec -a {tag} tr '\\0' x < /dev/zero")).await;
    assert_eq!(outcome.kind, OutcomeKind::Failed);
    assert!(outcome.text.starts_with("ended: it printed more than 67108864 bytes\nxxxx"), "{:.100}", outcome.text);
    assert!(outcome.text.len() <= limits::RESULT_MAX_BYTES && outcome.bytes < limits::OUTPUT_MAX_BYTES + 100_000);
    assert_eq!(alive(&tag), NOBODY);
}

#[tokio::test]
async fn output_is_shown_as_it_comes() {
    let bench = Bench::new();
    let mut seen = bench.reins.deltas.subscribe();
    let watch = async {
        let Delta { text, .. } = tokio::time::timeout(PATIENCE, seen.recv()).await.unwrap().unwrap();
        assert_eq!(text, "first\n");
        fs::write(bench.workspace.join("go"), "").unwrap();
    };
    let line = "echo first; until [ -e go ]; do sleep 0.02; done; echo last";
    let (outcome, ()) = tokio::join!(bench.run(line), watch);
    assert_eq!(outcome.text, "exit status 0\nfirst\nlast\n");
}

/// Somebody else may hold the pipe of a line that has ended.
#[tokio::test]
async fn a_pipe_that_stays_open_is_not_awaited() {
    let bench = Bench::new();
    let hold = async {
        let name = bench.workspace.join("pid");
        wait_for("the line", PATIENCE, || fs::read_to_string(&name).is_ok_and(|text| text.ends_with('\n'))).await;
        let pid = fs::read_to_string(&name).unwrap();
        let held = fs::File::options().write(true).open(Path::new("/proc").join(pid.trim()).join("fd/1")).unwrap();
        fs::write(bench.workspace.join("go"), "").unwrap();
        (held, Instant::now())
    };
    let line = "echo $$ > pid; until [ -e go ]; do sleep 0.02; done; echo end";
    let (outcome, (_held, released)) = tokio::join!(bench.run(line), hold);
    assert_eq!(outcome.text, "exit status 0\nend\n");
    assert!(released.elapsed() < Duration::from_secs(2), "{:?}", released.elapsed());
}

#[tokio::test]
async fn checks_hold_only_with_status_zero() {
    let bench = Bench::new();
    for (line, wanted) in [
        ("echo fine", (true, "exit status 0\nfine\n")),
        ("echo bad; false", (false, "exit status 1\nbad\n")),
        ("no-such-program-here 2> /dev/null", (false, "exit status 127; no output\n")),
        ("kill -9 $$", (false, "exit status 137 (SIGKILL); no output\n")),
        (
            "kill -9 $PPID; sleep 600",
            (false, "its guard was killed; what it started may still run, and nobody knows its status; no output\n"),
        ),
        ("a\0b", (false, "not run: a command has no NUL and less than 128 KiB\n")),
    ] {
        let (passed, text) = bench.toolbox.check(&Check::Command(line.to_string()), bench.reins.clone()).await;
        assert_eq!((passed, text.as_str()), wanted, "{line}");
    }
    bench.reins.cancel.cancel();
    let (passed, text) = bench.toolbox.check(&Check::Command("sleep 600".to_string()), bench.reins.clone()).await;
    assert!(!passed && text.starts_with("cancelled"), "{text}");
}

#[test]
fn a_guard_without_a_command_says_so() {
    for arguments in [&["guard"][..], &["guard", "--"], &["guard", "x"], &["guard", "--become"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_tiller")).args(arguments).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{arguments:?}");
        assert!(output.stdout.ends_with(b"nothing was run\n"), "{arguments:?}");
    }
    let missing = ["guard", "--", "/no/such/program"];
    let mut guard = Command::new(env!("CARGO_BIN_EXE_tiller"))
        .args(missing)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let leash = guard.stdin.take();
    let output = guard.wait_with_output().unwrap();
    drop(leash);
    assert_eq!(output.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&output.stdout).contains("/no/such/program can't be started"));
}
