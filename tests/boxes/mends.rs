//! A workspace that changes while its box is made, files that make their user somebody else, and bounds of others.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::boxes::attacks::perl;
use crate::boxes::stage::Bench;
use crate::boxes::stage::levels;
use crate::boxes::stage::no_full_box;
use tiller::domain::sandbox::Level;
use tiller::domain::tool::OutcomeKind;
use tiller::domain::tool::Permit;
use tiller::tools::Executed;
use tiller::tools::Toolbox;
use tiller::tools::sandbox::Maker;

/// Bubblewrap that finds folder `from` where `to` is: what it sees when a link is put there at the right moment.
fn raced(bench: &Bench, from: &str, to: &str) -> PathBuf {
    let path = bench.outside.join("bwrap");
    let real = Maker::find().unwrap().bwrap;
    let script = format!(
        "#!/bin/bash\nwords=(); last=\nfor word; do\n  case \"$last\" in --bind|--ro-bind) [ \"$word\" = {from} ] && \
         word={to} ;; esac\n  words+=(\"$word\"); last=$word\ndone\nexec {} \"${{words[@]}}\"\n",
        real.display()
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[tokio::test]
async fn a_workspace_that_changes_while_its_box_is_made_is_no_box() {
    if let Some(why) = no_full_box() {
        return crate::skip::skip(why);
    }
    for below in ["/q/.git", "/q/.git/hooks", ""] {
        let mut bench = Bench::new(Level::Full);
        bench.write("q/.git/hooks/pre-commit", "1");
        let (from, to) = (format!("{}{below}", bench.scene.workspace.display()), bench.outside.join("other"));
        for folder in ["hooks", "q/.git/hooks"] {
            fs::create_dir_all(to.join(folder)).unwrap();
        }
        // The attack works: who is mounted there is written to.
        let bwrap = raced(&bench, &from, to.to_str().unwrap());
        let control = Command::new(&bwrap)
            .args(["--bind", "/", "/", "--bind", &from, &from, "--", "touch", &format!("{from}/control")])
            .status();
        assert!(control.unwrap().success() && to.join("control").exists(), "{below}: the attack shows nothing");
        assert_eq!(bench.run("touch q/fine && echo fine").await.text, "exit status 0\nfine\n", "{below}");
        bench.scene.sandbox.maker = Some(Maker { bwrap, forbids_nesting: true });
        let outcome = bench.run(&format!("touch {from}/made made")).await;
        assert_eq!(outcome.kind, OutcomeKind::Failed, "{below}: {}", outcome.text);
        assert!(outcome.text.contains("the workspace changed while its box was made"), "{below}: {}", outcome.text);
        assert!(!to.join("made").exists() && !bench.has("made"), "{below}");
    }
}

/// A mount that was to be in the workspace lands where a link led for a moment.
#[tokio::test]
async fn a_mount_that_lands_elsewhere_is_no_box() {
    if let Some(why) = no_full_box() {
        return crate::skip::skip(why);
    }
    for place in ["/box", "/box/x", "/tmp/x", "/srv", "/usr/lib", "/dev/shm"] {
        let mut bench = Bench::new(Level::Full);
        let (path, real) = (bench.outside.join("bwrap"), Maker::find().unwrap().bwrap);
        let more = format!("--bind {} {place}", bench.outside.display());
        let script = format!(
            "#!/bin/bash\nwords=()\nfor word; do\n  [ \"$word\" = --remount-ro ] && words+=({more})\n  \
             words+=(\"$word\")\ndone\nexec {} \"${{words[@]}}\"\n",
            real.display()
        );
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        bench.scene.sandbox.maker = Some(Maker { bwrap: path, forbids_nesting: true });
        let outcome = bench.run(&format!("cat {place}/secret")).await;
        assert!(!outcome.text.contains("GOT"), "{place}: {}", outcome.text);
        assert!(outcome.text.contains("its box could not be made"), "{place}: {}", outcome.text);
    }
}

#[tokio::test]
async fn a_folder_above_the_workspace_that_becomes_a_link_ends_the_work() {
    for level in [Level::None].into_iter().chain(levels("a folder above the workspace")) {
        let mut bench = Bench::new(level);
        bench.write("a/b/inner", "1");
        let top = bench.scene.workspace.clone();
        bench.scene.workspace = top.join("a/b");
        fs::create_dir(bench.outside.join("b")).unwrap();
        assert_eq!(bench.run("cat inner").await.text, "exit status 0\n1", "{level}");
        let toolbox = Toolbox::new(bench.scene.clone());
        let mut call = bench.call(&serde_json::json!({"command": "touch made"}));
        call.facts = Some(toolbox.prepare(&call).await);
        fs::rename(top.join("a"), top.join("real")).unwrap();
        std::os::unix::fs::symlink(&bench.outside, top.join("a")).unwrap();
        // The attack works: whoever goes there by the name is elsewhere.
        let control = Command::new("touch").arg("control").current_dir(&bench.scene.workspace).status();
        assert!(control.unwrap().success() && bench.outside.join("b/control").exists(), "the attack shows nothing");
        let executed = toolbox.execute(Permit::of(&call).unwrap(), bench.reins.clone()).await;
        assert!(matches!(executed, Executed::Drifted(_)), "{level}");
        let problem = toolbox.prepare(&call).await.problem.unwrap();
        assert_eq!(problem.text, "The workspace can't be found. Nothing was run.", "{level}");
        let (passed, _) = bench.check("touch made").await;
        assert!(!passed || level == Level::None, "{level}");
        assert!(level == Level::None || !bench.outside.join("b/made").exists(), "{level}");
    }
}

#[tokio::test]
async fn an_opened_folder_that_becomes_a_link_is_no_box() {
    for level in levels("an opened folder") {
        for is_writable in [true, false] {
            let mut bench = Bench::new(level);
            let shared = bench.outside.join("shared");
            let (folder, victim) = (shared.join("tmp/cache"), bench.outside.join("victim"));
            fs::create_dir_all(&folder).unwrap();
            fs::create_dir(&victim).unwrap();
            fs::write(victim.join("key"), "GOT").unwrap();
            match is_writable {
                true => bench.scene.sandbox.writable.push(folder.clone()),
                false => bench.scene.sandbox.readable.push(folder.clone()),
            }
            let line = format!("cat {0}/key; touch {0}/made; echo end", folder.display());
            assert!(bench.run(&line).await.text.ends_with("end\n"), "{level}");
            assert_eq!(folder.join("made").exists(), is_writable, "{level}");
            // Exchanged while its box is made.
            if let (Level::Full, Some(real)) = (level, Maker::find()) {
                let bwrap = raced(&bench, folder.to_str().unwrap(), victim.to_str().unwrap());
                bench.scene.sandbox.maker = Some(Maker { bwrap, forbids_nesting: real.forbids_nesting });
                let text = bench.run(&line).await.text;
                assert!(text.contains("changed while its box was made"), "{level}: {text}");
                bench.scene.sandbox.maker = Some(real);
            }
            fs::remove_dir_all(&folder).unwrap();
            std::os::unix::fs::symlink(&victim, &folder).unwrap();
            let text = bench.run(&line).await.text;
            assert!(text.contains("a link is there now"), "{level}: {text}");
            assert!(!text.contains("GOT") && !victim.join("made").exists(), "{level}: {text}");
        }
    }
}

#[tokio::test]
async fn no_file_makes_its_user_somebody_else() {
    let attempts = [
        ("chmod", "cp /bin/true t && chmod 4755 t".to_string()),
        ("group", "cp /bin/true t && chmod 2755 t".to_string()),
        ("open", perl("use Fcntl; sysopen(F, \"t\", O_CREAT | O_WRONLY, 04755)")),
        ("openat2", perl("$p = \"t\"; $h = pack(\"QQQ\", 0101, 04755, 0); syscall(437, -100, $p, $h, 24)")),
        ("fchmodat2", "cp /bin/true t && ".to_string() + &perl("$p = \"t\"; syscall(452, -100, $p, 04755, 0)")),
        ("mknod", perl("$p = \"t\"; syscall(133, $p, 0104755, 0)")),
    ];
    let is_one = "; test -u t -o -g t && echo GOT";
    for (name, attempt) in attempts {
        if name == "fchmodat2" && !Bench::new(Level::None).run(&(attempt.clone() + is_one)).await.text.contains("GOT") {
            crate::skip::skip("the kernel has no fchmodat2");
            continue;
        }
        if name == "mknod" && !cfg!(target_arch = "x86_64") {
            continue;
        }
        crate::boxes::attacks::check(name, |_| attempt.clone() + is_one).await;
    }
    for level in levels("usual modes") {
        let text =
            Bench::new(level).run("cp /bin/true t && chmod 755 t && ./t && mkdir -m 1777 d && echo fine").await.text;
        assert_eq!(text, "exit status 0\nfine\n", "{level}");
    }
}

#[tokio::test]
async fn bounds_of_other_processes_are_left_alone() {
    let mut other = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = other.id();
    for attempt in [
        format!("prlimit --pid {pid} --core=0"),
        format!("renice -n 5 -p {pid}"),
        format!("taskset -p 1 {pid}"),
        format!("chrt --batch -p 0 {pid}"),
        format!("ionice -c 3 -p {pid}"),
    ] {
        crate::boxes::attacks::check(&attempt, |_| format!("{attempt} > out 2>&1 && echo GOT")).await;
    }
    for level in levels("own bounds") {
        let text = Bench::new(level).run("ulimit -n 64 && nice -n 5 echo fine").await.text;
        assert_eq!(text, "exit status 0\nfine\n", "{level}");
    }
    other.kill().unwrap();
    other.wait().unwrap();
}

#[tokio::test]
async fn shared_memory_of_a_box_is_bounded() {
    if let Some(why) = no_full_box() {
        return crate::skip::skip(why);
    }
    let text = Bench::new(Level::Full).run("df -k --output=size /dev/shm | tail -n 1; touch /dev/shm/a").await.text;
    assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["exit", "status", "0", "1048576"]);
}

#[tokio::test]
async fn a_check_that_prepares_what_others_run_does_not_pass() {
    for level in [Level::None].into_iter().chain(levels("a check")) {
        let bench = Bench::new(level);
        let line = "mkdir -p .git/hooks && echo 1 > .git/hooks/pre-commit";
        let (passed, text) = bench.check(line).await;
        assert!(!passed && text.contains("by themselves: .git/hooks/pre-commit (new)"), "{level}: {text}");
        assert!(bench.check("true").await.0, "{level}");
    }
}

#[tokio::test]
async fn what_leads_git_elsewhere_is_told() {
    let long = "a".repeat(250);
    let deep = perl(&format!("for (1..20) {{ mkdir q({long}); chdir q({long}) }}"));
    for level in [Level::None].into_iter().chain(levels("what leads git elsewhere")) {
        for (line, wanted) in [
            ("echo gitdir: x > .git", ".git (new)"),
            ("ln -s x .git", ".git (new)"),
            ("mkdir .git && echo x > .git/commondir", ".git/commondir (new)"),
            ("mkdir .git && echo x > .git/config.worktree", ".git/config.worktree (new)"),
            ("mkdir -p .git/rebase-merge && echo x > .git/rebase-merge/git-rebase-todo", "git-rebase-todo (new)"),
            ("mkdir -p .git/rebase-apply/x && echo x > .git/rebase-apply/x/y", ".git/rebase-apply/x/y (new)"),
            ("mkdir -p b/objects b/refs && touch b/HEAD && echo x > b/config", "b/config (new)"),
            ("mkdir -p .git/worktrees/x && echo y > .git/worktrees/x/commondir", "worktrees/x/commondir (new)"),
            ("mkdir b && touch b/HEAD && echo ../c > b/commondir", "b/commondir (new)"),
            ("echo x > AGENTS.md", "AGENTS.md (new)"),
            ("ln -sfn other .envrc", ".envrc (changed)"),
            ("echo 2 > plain", ".envrc (changed)"),
            ("echo 2 > folder/x", "folder/x (changed)"),
            (deep.as_str(), "can't be read: aaa"),
        ] {
            let bench = Bench::new(level);
            bench.write("plain", "1");
            bench.write("folder/x", "1");
            std::os::unix::fs::symlink("plain", bench.scene.workspace.join(".envrc")).unwrap();
            std::os::unix::fs::symlink("folder", bench.scene.workspace.join(".husky")).unwrap();
            let outcome = bench.run(line).await;
            assert!(outcome.watched.iter().any(|told| told.contains(wanted)), "{level}: {line}: {:?}", outcome.watched);
            assert_eq!(bench.run("echo 2 > third").await.watched, Vec::<String>::new(), "{level}: {line}");
        }
    }
}

#[tokio::test]
async fn what_the_configuration_of_git_names_is_told() {
    let config = "[core]\nhooksPath = .githooks\n[include]\npath = ../team.inc\n";
    for level in [Level::None].into_iter().chain(levels("what the configuration of git names")) {
        for folder in ["", "deep/er/"] {
            let bench = Bench::new(level);
            bench.write(&format!("{folder}.git/config"), config);
            bench.write(&format!("{folder}.githooks/pre-commit"), "1");
            bench.write(&format!("{folder}team.inc"), "[core]\nfsmonitor = ./watch.sh\n");
            for (name, how) in [
                (".githooks/pre-commit", "changed"),
                (".githooks/post-commit", "new"),
                ("watch.sh", "new"),
                ("team.inc", "changed"),
            ] {
                let outcome = bench.run(&format!("echo 2 >> {folder}{name}")).await;
                assert_eq!(outcome.watched, [format!("{folder}{name} ({how})")], "{level}");
                assert_eq!(bench.run("echo 2 >> third").await.watched, Vec::<String>::new(), "{level}: {name}");
            }
        }
    }
}

#[tokio::test]
async fn git_goes_on_working() {
    for level in levels("git goes on working") {
        let bench = Bench::new(level);
        bench.write("a", "1");
        let made = Command::new("git").args(["init", "-q"]).current_dir(&bench.scene.workspace).status();
        assert!(made.unwrap().success());
        let line = "git add a && git -c user.name=a -c user.email=a@b.invalid commit -qm one && git log --format=%s";
        let outcome = bench.run(line).await;
        assert_eq!((outcome.text.as_str(), outcome.watched), ("exit status 0\none\n", Vec::new()), "{level}");
    }
}
