//! What a box shows, what it keeps as it is, and what is said of the rest.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use crate::boxes::stage::Bench;
use crate::boxes::stage::levels;
use crate::boxes::stage::no_full_box;
use crate::real::Stage;
use tiller::domain::approval::By;
use tiller::domain::sandbox::Level;
use tiller::domain::sandbox::READING_RULE;
use tiller::domain::tool::OutcomeKind;
use tiller::domain::tool::ToolCall;
use tiller::tools::Executed;
use tiller::tools::Toolbox;
use tiller::tools::sandbox::Maker;

#[tokio::test]
async fn a_box_has_a_home_of_its_own_and_the_named_variables() {
    for level in levels("the home of a box") {
        let mut bench = Bench::new(level);
        let outcome =
            bench.run("touch ~/x $TMPDIR/y && ls -A ~ | grep -v y; env | cut -d= -f1 | sort | tr '\\n' ' '").await;
        // A shell adds the last three by itself.
        let known = ["HOME", "LANG", "LC_ALL", "PATH", "PWD", "SHLVL", "TERM", "TMPDIR", "TZ", "USER", "_", "OLDPWD"];
        let mut lines = outcome.text.lines().skip(1);
        assert_eq!(lines.next(), Some("x"), "{level}: {}", outcome.text);
        let names = lines.next().unwrap();
        assert!(names.split_whitespace().all(|name| known.contains(&name)), "{level}: {names}");
        assert!(!std::path::Path::new(&std::env::var("HOME").unwrap()).join("x").exists());
        let tool = bench.outside.join("tools");
        fs::create_dir(&tool).unwrap();
        fs::write(tool.join("given"), "given").unwrap();
        bench.scene.sandbox.readable = vec![tool.clone()];
        bench.scene.sandbox.home = Some(bench.outside.clone());
        let line = format!("cat {0}/given && ! touch {0}/more 2> /dev/null && echo kept", tool.display());
        assert_eq!(bench.run(&line).await.text, "exit status 0\ngivenkept\n", "{level}");
        if level == Level::Full {
            assert_eq!(bench.run("cat ~/tools/given").await.text, "exit status 0\ngiven");
        }
        bench.scene.sandbox.writable = std::mem::take(&mut bench.scene.sandbox.readable);
        let outcome = bench.run(&format!("echo more > {}/more", tool.display())).await;
        assert_eq!(outcome.text, "exit status 0; no output\n", "{level}");
        assert_eq!(fs::read_to_string(tool.join("more")).unwrap(), "more\n");
    }
}

#[tokio::test]
async fn what_is_allowed_as_reading_can_write_nothing() {
    for level in levels("reading") {
        let bench = Bench::new(level);
        bench.write("a", "1");
        let outcome = bench.read("cat a; cp a b; rm -f a; mkdir c; touch d; echo end").await;
        assert!(
            outcome.text.starts_with("exit status 0\n1") && outcome.text.ends_with("\nend\n"),
            "{level}: {}",
            outcome.text
        );
        assert_eq!(fs::read_dir(&bench.scene.workspace).unwrap().count(), 1, "{level}");
        assert_eq!(fs::read_to_string(bench.scene.workspace.join("a")).unwrap(), "1", "{level}");
    }
}

/// All calls of a reply are looked at before the first of them runs.
#[tokio::test]
async fn what_words_name_is_looked_at_again_before_a_line_runs_unasked() {
    let by_rule = |call: &mut ToolCall| call.allowed = Some(By::Rule("standing rule 1".to_string()));
    let by_table = |call: &mut ToolCall| call.allowed = Some(By::Rule(READING_RULE.to_string()));
    for level in levels("words that name something else") {
        let bench = Bench::new(level);
        bench.write("notes", "1");
        let line = serde_json::json!({ "command": "cat notes made" });
        let (ruled, reading) = (bench.decided(&line, by_rule).await, bench.decided(&line, by_table).await);
        let operators = bench.decided(&line, |_| ()).await;
        // What an earlier call made inside is no reason to ask.
        bench.write("made", "2");
        for call in [&ruled, &reading] {
            assert!(matches!(bench.executed(call).await, Executed::Ended(outcome) if outcome.text.ends_with("12")));
        }
        fs::remove_file(bench.scene.workspace.join("notes")).unwrap();
        symlink(bench.outside.join("secret"), bench.scene.workspace.join("notes")).unwrap();
        for call in [&ruled, &reading] {
            let Executed::Drifted(text) = bench.executed(call).await else { panic!("{level}: it ran") };
            assert_eq!(text, "\"notes\" names something else since it was decided. Nothing was done.");
        }
        // What the operator saw and allowed is that line, in its box.
        assert!(matches!(bench.executed(&operators).await, Executed::Ended(_)));
        fs::remove_file(bench.scene.workspace.join("notes")).unwrap();
        fs::write(bench.outside.join("id_rsa"), "key").unwrap();
        symlink(bench.outside.join("id_rsa"), bench.scene.workspace.join("notes")).unwrap();
        let again = bench.executed(&operators).await;
        assert!(matches!(&again, Executed::Drifted(text) if text.starts_with("It has become grave")), "{level}");
    }
}

#[tokio::test]
async fn what_other_programs_run_by_themselves_is_kept_or_told() {
    for level in levels("what runs later") {
        let bench = Bench::new(level);
        bench.write(".git/hooks/pre-commit", "1");
        bench.write("sub/.git/config", "1");
        bench.write(".git/HEAD", "1");
        let line = "echo 2 > .git/HEAD; (echo 2 > .git/hooks/pre-commit; rm -f sub/.git/config; mv .git old) 2> /dev/null; \
                    mkdir -p deep/.git/hooks .vscode; echo 2 > deep/.git/hooks/post-merge; echo 2 > .vscode/tasks.json; echo done";
        let outcome = bench.run(line).await;
        let (kept, told) = match level {
            Level::Full => ("1", vec![".vscode/tasks.json (new)", "deep/.git/hooks/post-merge (new)"]),
            Level::Partial | Level::None => continue,
        };
        assert_eq!(fs::read_to_string(bench.scene.workspace.join(".git/hooks/pre-commit")).unwrap(), kept);
        assert_eq!(fs::read_to_string(bench.scene.workspace.join(".git/HEAD")).unwrap(), "2\n");
        assert_eq!(outcome.watched, told);
        let sentence = format!("changed what other programs run by themselves: {}\n", told.join(", "));
        assert_eq!(outcome.text, format!("exit status 0\ndone\n{sentence}"));
    }
    // Where nothing keeps them, they are told.
    for level in [Level::None, Level::Partial] {
        let bench = Bench::new(level);
        bench.write(".git/hooks/pre-commit", "1");
        let outcome = bench.run("echo 2 > .git/hooks/pre-commit").await;
        assert_eq!(outcome.watched, [".git/hooks/pre-commit (changed)"], "{level}");
    }
}

#[tokio::test]
async fn tillers_own_places_are_not_there() {
    for level in levels("tiller's own places") {
        let mut bench = Bench::new(level);
        bench.write("state/runs/x", "GOT");
        bench.scene.off_limits = vec![bench.scene.workspace.join("state"), bench.scene.workspace.join("not")];
        if level == Level::Partial {
            // Landlock opens whole trees: a workspace that holds them is no place for a partial box.
            let outcome = bench.run("cat state/runs/x").await;
            assert_eq!(outcome.kind, OutcomeKind::Failed, "{}", outcome.text);
            assert!(outcome.text.contains("box could not be made"), "{}", outcome.text);
            continue;
        }
        let outcome =
            bench.run("cat state/runs/x; echo 2 > state/runs/x; mkdir -p not && touch not/z; ls -A not").await;
        assert!(!outcome.text.contains("GOT"), "{}", outcome.text);
        assert_eq!(fs::read_to_string(bench.scene.workspace.join("state/runs/x")).unwrap(), "GOT");
        assert!(!bench.has("not/z"));
        // A folder above one could be moved away.
        bench.scene.off_limits = vec![bench.scene.workspace.join("above/state")];
        let outcome = bench.run("mkdir above; mv above other").await;
        assert!(outcome.text.contains("lies deep in what can be written"), "{}", outcome.text);
    }
}

#[tokio::test]
async fn a_box_that_can_not_be_made_is_a_call_that_failed() {
    let mut bench = Bench::new(Level::Full);
    for (bwrap, why) in [("/nowhere/bwrap", "can't be started"), ("/bin/true", ""), ("/bin/false", "")] {
        bench.scene.sandbox.maker = Some(Maker { bwrap: PathBuf::from(bwrap), forbids_nesting: true });
        let outcome = bench.run("touch made").await;
        assert_eq!(outcome.kind, OutcomeKind::Failed);
        assert!(outcome.text.starts_with("not run: its box could not be made: "), "{}", outcome.text);
        assert!(outcome.text.contains(why) && !bench.has("made"), "{}", outcome.text);
    }
    for (workspace, why) in [
        ("/", "the workspace is all that there is"),
        ("/proc/1", "the workspace belongs to the system"),
        ("/etc", "the workspace belongs to the system"),
    ] {
        bench.scene.workspace = PathBuf::from(workspace);
        let outcome = bench.run("true").await;
        assert!(outcome.text.contains(why), "{}", outcome.text);
    }
    let bench = Bench::new(Level::Full);
    // The operator can have it run without one, this once.
    let outcome = bench.run_unboxed("touch made; touch ../outside/made").await;
    assert_eq!(outcome.kind, OutcomeKind::Done, "{}", outcome.text);
    assert!(bench.has("made") && bench.outside.join("made").exists());
}

#[tokio::test]
async fn bubblewrap_of_the_workspace_is_never_run() {
    if let Some(why) = no_full_box() {
        return crate::skip::skip(why);
    }
    let maker = Maker::find().unwrap();
    assert!(maker.bwrap.starts_with("/usr/bin") || maker.bwrap.starts_with("/bin"));
    let bench = Bench::new(Level::Full);
    bench.write("bwrap", "#!/bin/sh\ntouch planted\n");
    fs::set_permissions(bench.scene.workspace.join("bwrap"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(bench.run("echo fine").await.text, "exit status 0\nfine\n");
    assert!(!bench.has("planted"));
}

#[tokio::test]
async fn what_a_call_reaches_is_said_and_bound() {
    let network = serde_json::json!({"command": "true", "network": true});
    for (level, arguments, reach, bound, unconfined) in [
        (Level::None, serde_json::json!({"command": "true"}), "runs a program with your rights", "box=none", true),
        (
            Level::Full,
            serde_json::json!({"command": "true"}),
            "runs in the box: can change all of the workspace, and nothing else; no network",
            "box=full, no network; read-only where the read-only table allows it",
            false,
        ),
        (
            Level::Full,
            network.clone(),
            "runs in the box: can change all of the workspace, and nothing else; THE NETWORK IS OPEN, to servers of this machine too",
            "box=full, network; read-only where the read-only table allows it",
            true,
        ),
        (
            Level::Partial,
            network.clone(),
            "runs in half a box: can change all of the workspace, and write nowhere else; THE NETWORK IS OPEN, to servers of this machine too; it sees other processes",
            "box=partial, network; read-only where the read-only table allows it",
            true,
        ),
    ] {
        let bench = Bench::new(level);
        let facts = Toolbox::new(bench.scene.clone()).prepare(&bench.call(&arguments)).await;
        assert_eq!((facts.reach.as_str(), facts.unconfined, facts.level), (reach, unconfined, Some(level)));
        assert!(facts.binding.iter().any(|line| line == bound), "{:?}", facts.binding);
    }
}

#[tokio::test]
async fn the_network_is_open_where_it_was_asked_for() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let line = format!("exec 3<>/dev/tcp/127.0.0.1/{} && echo GOT", server.local_addr().unwrap().port());
    for level in levels("the network where it was asked for") {
        let bench = Bench::new(level);
        let outcome = bench.execute(&serde_json::json!({"command": line, "network": true}), |_| {}).await;
        assert_eq!(outcome.text, "exit status 0\nGOT\n", "{level}");
        let unix = "perl -e 'use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0) and print q(GOT)'";
        let outcome = bench.execute(&serde_json::json!({"command": unix, "network": true}), |_| {}).await;
        assert!(!outcome.text.contains("GOT"), "{level}: {}", outcome.text);
    }
}

/// A repository whose configuration runs programs when it is only looked at, and one in the form of a bare one.
fn hostile_repository(bench: &Bench) {
    let at = bench.scene.workspace.display().to_string();
    let mark = bench.outside.join("mark");
    bench.write(
        "evil",
        &format!("#!/bin/sh\ntouch {0} {at}/mark 2> /dev/null\ncat \"$@\" 2> /dev/null\nexit 0\n", mark.display()),
    );
    fs::set_permissions(bench.scene.workspace.join("evil"), fs::Permissions::from_mode(0o755)).unwrap();
    let git = |words: &[&str]| {
        let done = Command::new("git").arg("-C").arg(&at).args(words).output().unwrap();
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q"]);
    bench.write(".gitattributes", "*.txt filter=evil diff=evil\n");
    bench.write("a.txt", "1\n");
    git(&["add", "a.txt"]);
    bench.write("a.txt", "2\n");
    let evil = format!("{at}/evil");
    for (key, value) in [
        ("core.fsmonitor", evil.as_str()),
        ("filter.evil.clean", &evil),
        ("filter.evil.smudge", &evil),
        ("diff.evil.textconv", &evil),
        ("diff.external", &evil),
        ("core.pager", &evil),
        ("safe.directory", "*"),
    ] {
        git(&["config", key, value]);
    }
}

#[tokio::test]
async fn a_hostile_repository_leaves_no_mark_when_it_is_looked_at() {
    if Command::new("git").arg("--version").output().is_err() {
        return crate::skip::skip("git is not installed");
    }
    let look = "git status; git diff; git --paginate log; cd .git && git status";
    let control = Bench::new(Level::None);
    hostile_repository(&control);
    control.run(look).await;
    assert!(control.outside.join("mark").exists() && control.has("mark"), "the attack shows nothing");
    for level in levels("a hostile repository") {
        let bench = Bench::new(level);
        hostile_repository(&bench);
        let _ = fs::remove_file(bench.outside.join("mark"));
        let _ = fs::remove_file(bench.scene.workspace.join("mark"));
        let outcome = bench.read(look).await;
        assert!(!bench.outside.join("mark").exists() && !bench.has("mark"), "{level}: {}", outcome.text);
    }
}

/// A run waits for a decision, and a command of another run tries to make it.
#[tokio::test]
async fn no_decision_comes_from_a_box() {
    let script = r#"
[[step]]
name = "plan"
text = "a plan"
calls = [ { tool = "update_plan", args = { todos = [ { id = "a", title = "A", status = "in_progress" } ] } } ]
[[step]]
name = "act"
calls = [ { tool = "shell", args = { command = "touch made" } } ]
"#;
    for level in [Level::None].into_iter().chain(levels("a decision from a box")) {
        let stage = Stage::new();
        let model = format!("scripted/{}", stage.write("script.toml", script).display());
        stage.ask(&["run", "do it", "--plain", "--model", &model]);
        let shown = stage.show();
        let Some(waiting) = shown["waiting"].as_array().and_then(|all| all.first()) else { panic!("{shown}") };
        let words = [shown.pointer("/summary/id").unwrap(), &waiting["call"], &waiting["digest"]];
        let words: Vec<&str> = words.iter().map(|word| word.as_str().unwrap()).collect();
        let line = format!(
            "XDG_STATE_HOME={} XDG_CONFIG_HOME={} {} approve {}",
            stage.path("state").display(),
            stage.path("config").display(),
            env!("CARGO_BIN_EXE_tiller"),
            words.join(" ")
        );
        let outcome = Bench::new(level).run(&line).await;
        let still_waits = stage.show()["waiting"].as_array().is_some_and(|all| !all.is_empty());
        assert_eq!(still_waits, level != Level::None, "{level}: {}", outcome.text);
    }
}
