//! Processes in a box: they are counted, and none outlives its call, whatever it does to stay.

use std::fs;
use std::time::Duration;
use std::time::Instant;

use crate::boxes::attacks::perl;
use crate::boxes::stage::Bench;
use crate::boxes::stage::levels;
use tiller::domain::limits;
use tiller::domain::sandbox::Level;
use tiller::domain::tool::OutcomeKind;

/// How long survivors may take to go.
const GONE_WITHIN: Duration = Duration::from_secs(3);
/// How long anything may take to appear.
const PATIENCE: Duration = Duration::from_secs(20);

/// Processes that call themselves `tag`, seen from outside; the dead that nobody has buried do not count.
fn alive(tag: &str) -> usize {
    let named = |entry: &fs::DirEntry| {
        let name = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        name.split(|byte| *byte == 0).next() == Some(tag.as_bytes())
    };
    fs::read_dir("/proc").unwrap().flatten().filter(named).count()
}

async fn wait_for(what: &str, patience: Duration, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + patience;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Five processes that want to stay: in the background, in a session of its own, forked twice away, deaf to all that it
/// can be deaf to, and one whose parent waits for it over a pipe.
fn stubborn(tag: &str) -> String {
    format!(
        "bash -c 'exec -a {tag} sleep 600' &
         setsid bash -c 'exec -a {tag} sleep 600' &
         (setsid bash -c '(trap \"\" HUP; exec -a {tag} sleep 600) & exit' &)
         setsid bash -c 'trap \"\" TERM INT HUP QUIT; exec -a {tag} sleep 600' > /dev/null 2>&1 < /dev/null &
         nohup sh -c \"bash -c 'exec -a {tag} sleep 600'\" > /dev/null 2>&1 & disown -a
         bash -c 'exec -a {tag} sleep 600' | cat
         "
    )
}

#[tokio::test]
async fn nothing_outlives_a_call_that_is_cancelled() {
    for level in [Level::None].into_iter().chain(levels("nothing outlives a call")) {
        let bench = Bench::new(level);
        let tag = format!("boxed-{}-{level}", std::process::id());
        let cancel = bench.reins.cancel.clone();
        let line = stubborn(&tag);
        let (outcome, asked) = tokio::join!(bench.run(&line), async {
            wait_for("six processes", PATIENCE, || alive(&tag) == 6).await;
            cancel.cancel();
            Instant::now()
        });
        assert_eq!(outcome.kind, OutcomeKind::Cancelled, "{level}");
        assert!(asked.elapsed() < GONE_WITHIN, "{level}: {:?}", asked.elapsed());
        assert_eq!(alive(&tag), 0, "{level}");
    }
}

#[tokio::test]
async fn nothing_outlives_a_line_that_ends() {
    for level in levels("nothing outlives a line") {
        let bench = Bench::new(level);
        let tag = format!("ended-{}-{level}", std::process::id());
        let line = format!(
            "(setsid bash -c '(trap \"\" HUP TERM; exec -a {tag} sleep 600) & exit' > /dev/null 2>&1 &)
             until pgrep -f '^{tag}' > /dev/null; do sleep 0.02; done; echo there"
        );
        let outcome = bench.run(&line).await;
        assert_eq!(outcome.text, "exit status 0\nthere\n", "{level}");
        assert_eq!(alive(&tag), 0, "{level}");
    }
}

/// A line that is told to end may still say something.
#[tokio::test]
async fn a_line_is_asked_to_end_before_it_is_ended() {
    for level in levels("asked to end") {
        let bench = Bench::new(level);
        let line = "trap 'echo asked > asked; exit 3' TERM; touch ready; while :; do sleep 0.05; done";
        let cancel = bench.reins.cancel.clone();
        let (outcome, ()) = tokio::join!(bench.run(line), async {
            wait_for("the line", PATIENCE, || bench.has("ready")).await;
            cancel.cancel();
        });
        assert_eq!(outcome.kind, OutcomeKind::Cancelled, "{level}");
        assert!(bench.has("asked"), "{level}: {}", outcome.text);
    }
}

/// Without a bound there are 300; they last a moment only.
#[tokio::test]
async fn a_flood_of_processes_ends_at_its_bound() {
    let flood = perl(
        "for (1..300) { $p = fork; last unless defined $p; if (!$p) { sleep 20; exit } $n++; push @p, $p } print $n; kill 9, @p",
    );
    let count = |text: &str| text.lines().nth(1).unwrap_or_default().parse::<u64>().unwrap();
    assert_eq!(count(&Bench::new(Level::None).run(&flood).await.text), 300);
    for level in levels("a flood of processes") {
        let is_root = nix::unistd::Uid::effective().is_root();
        if !is_root && level == Level::Partial {
            // All processes of the user would be counted, also those that are none of ours.
            continue;
        }
        if is_root && !std::path::Path::new("/sys/fs/cgroup/pids").exists() {
            crate::skip::skip("processes of root are counted by a group, and none can be made here");
            continue;
        }
        let text = Bench::new(level).run(&flood).await.text;
        assert!(count(&text) < limits::BOX_PROCESSES, "{level}: {text}");
    }
}

#[tokio::test]
async fn files_have_a_longest_length_and_there_are_no_cores() {
    for level in levels("lengths of files") {
        let text = Bench::new(level).run("ulimit -c; ulimit -f").await.text;
        let blocks = limits::BOX_FILE_BYTES / 1024;
        assert_eq!(text, format!("exit status 0\n0\n{blocks}\n"), "{level}");
    }
}
