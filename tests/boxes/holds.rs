//! What is kept can't be replaced by way of the folders above it, whatever lies where; and what is told of the rest begins
//! with what counts most.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::boxes::attacks::perl;
use crate::boxes::stage::Bench;
use crate::boxes::stage::levels;
use crate::boxes::stage::no_full_box;
use tiller::domain::sandbox::Level;

/// A folder above is moved away, and what is kept is made anew below its old name.
#[tokio::test]
async fn a_folder_above_what_is_kept_can_not_be_moved_away() {
    for level in [Level::None].into_iter().chain(no_full_box().is_none().then_some(Level::Full)) {
        for (kept, moved) in [
            ("sub/.git/config", "sub"),
            ("sub/.git/config", "sub/.git"),
            ("q/.vscode/tasks.json", "q"),
            ("a/b/c/.envrc", "a"),
            ("a/b/c/.envrc", "a/b"),
            ("a/b/c/.envrc", "a/b/c"),
        ] {
            let bench = Bench::new(level);
            bench.write(kept, "old");
            let line = format!("mv {moved} .moved; mkdir -p $(dirname {kept}); echo evil > {kept}; echo end");
            let outcome = bench.run(&line).await;
            assert!(outcome.text.contains("end\n"), "{level}: {line}: {}", outcome.text);
            let is_replaced = fs::read_to_string(bench.scene.workspace.join(kept)).unwrap() != "old";
            assert_eq!(is_replaced, level == Level::None, "{level}: {line}: {}", outcome.text);
            // A copy may be there now.
            let is_told = outcome.watched.iter().any(|told| told == &format!("{kept} (changed)"));
            assert_eq!(is_told, is_replaced, "{level}: {line}: {:?}", outcome.watched);
        }
    }
}

/// Work goes on in a folder that is held, and next to it.
#[tokio::test]
async fn a_folder_that_is_held_can_be_worked_in() {
    if let Some(why) = no_full_box() {
        return crate::skip::skip(why);
    }
    let bench = Bench::new(Level::Full);
    bench.write("app/.vscode/tasks.json", "1");
    bench.write("app/src/a", "1");
    let line = "mv app/src/a app/src/b && mv app/src app/lib && mv app/lib/b top && mkdir app/more && rm -r app/lib && \
                echo fine";
    assert_eq!(bench.run(line).await.text, "exit status 0\nfine\n");
    // What others wrote, and is many, is not held.
    bench.write("node_modules/x/.vscode/tasks.json", "1");
    assert_eq!(bench.run("mv node_modules/x node_modules/y && echo fine").await.text.lines().nth(1), Some("fine"));
    let outcome = bench.run("rm -r node_modules && mkdir -p node_modules/.vscode && echo fine").await;
    assert_eq!(outcome.text.lines().nth(1), Some("fine"), "{}", outcome.text);
    assert_eq!(outcome.watched, ["node_modules/y/.vscode/tasks.json (gone)"]);
}

/// Our own program would be started anew for the next command.
#[tokio::test]
async fn our_own_program_in_the_workspace_can_not_be_replaced() {
    for level in [Level::None].into_iter().chain(no_full_box().is_none().then_some(Level::Full)) {
        for folder in ["target/debug", ".vscode"] {
            let mut bench = Bench::new(level);
            let program = bench.scene.workspace.join(folder).join("tiller");
            fs::create_dir_all(program.parent().unwrap()).unwrap();
            fs::copy(&bench.scene.program, &program).unwrap();
            bench.scene.program = program.clone();
            let first = folder.split('/').next().unwrap();
            let line = format!("mv {first} moved; mkdir -p {folder}; echo evil > {folder}/tiller; echo end");
            let outcome = bench.run(&line).await;
            assert!(outcome.text.contains("end\n"), "{level}: {folder}: {}", outcome.text);
            let is_replaced = fs::read(&program).unwrap() == b"evil\n";
            assert_eq!(is_replaced, level == Level::None, "{level}: {folder}: {}", outcome.text);
        }
    }
}

/// Nothing is mounted twice, and nothing that is hidden is looked for: such a box is one.
#[tokio::test]
async fn a_box_is_made_however_watched_files_lie() {
    if let Some(why) = no_full_box() {
        return crate::skip::skip(why);
    }
    for (name, files) in [
        ("ws", vec![".github/actions/x/action.yml", ".github/b/.github/workflows/x.yml", ".github/workflows/x.yml"]),
        ("ws", vec![".git/config", ".git/x/.git/config", ".git/hooks/x"]),
        (".github", vec![".gitattributes", ".vscode/tasks.json", "workflows/x.yml", "actions/x"]),
        (".git", vec![".gitattributes", "hooks/x", "config"]),
        ("ws", vec!["a/.vscode/x", "a/b/.vscode/x", "a/b/c/.envrc", "a-b/.envrc"]),
        ("ws", vec!["tiller/.vscode/x", "tiller/deep/.git/config"]),
    ] {
        let mut bench = Bench::new(Level::Full);
        bench.scene.workspace = bench.scene.workspace.parent().unwrap().join(name);
        files.iter().for_each(|file| bench.write(file, "1"));
        bench.write("tiller/tiller.toml", "GOT");
        // As the operator's folders are handed over: some of them twice, some in others.
        let (own, more) = (bench.scene.workspace.join("tiller"), bench.outside.join("more"));
        bench.scene.off_limits = vec![own.clone(), own.clone(), own.join("tiller.toml")];
        fs::create_dir_all(more.join("deep")).unwrap();
        bench.scene.sandbox.readable = vec![more.clone(), more.clone(), more.join("deep")];
        bench.scene.sandbox.writable = vec![more.join("deep"), more.join("deep")];
        let line = format!("cat tiller/tiller.toml; echo 1 > {}/deep/made && echo fine", more.display());
        let text = bench.run(&line).await.text;
        assert!(
            text.starts_with("exit status 0\n") && text.contains("fine") && !text.contains("GOT"),
            "{files:?}: {text}"
        );
    }
}

/// Bubblewrap would make an empty file of it, which tiller could not read then.
#[tokio::test]
async fn a_place_of_ours_that_is_not_there_yet_is_not_made() {
    if let Some(why) = no_full_box() {
        return crate::skip::skip(why);
    }
    let mut bench = Bench::new(Level::Full);
    let own = bench.scene.workspace.join("tiller");
    bench.scene.off_limits = vec![own.clone()];
    let text = bench.run("touch made").await.text;
    assert!(own.symlink_metadata().is_err(), "it was made: {text}");
    let wanted = format!(
        "{0}, which is tiller's own, is not there yet, and a command could make it; do: mkdir -m 700 {0}",
        own.display()
    );
    assert!(text.contains(&wanted) && !bench.has("made"), "{text}");
    fs::create_dir(&own).unwrap();
    let text = bench.run("touch made; touch tiller/x").await.text;
    assert!(bench.has("made") && !own.join("x").exists(), "{text}");
}

/// What was there and is another thing now stands before all that is new, and samples of hooks come last.
#[tokio::test]
async fn what_changed_stands_before_what_is_new() {
    for level in [Level::None].into_iter().chain(levels("the order of what is told")) {
        let bench = Bench::new(level);
        bench.write("AGENTS.md", "1");
        let line = "for n in {10..25}; do mkdir -p r$n/.git/hooks; echo 1 > r$n/.git/hooks/a.sample; echo 1 > r$n/.envrc; done; \
                    echo 2 > AGENTS.md";
        let outcome = bench.run(line).await;
        assert_eq!(outcome.watched.len(), 33, "{level}: {:?}", outcome.watched);
        assert_eq!(outcome.watched[0], "AGENTS.md (changed)", "{level}");
        assert!(outcome.watched[1..17].iter().all(|name| name.ends_with(".envrc (new)")), "{:?}", outcome.watched);
        assert!(outcome.watched[17..].iter().all(|name| name.ends_with(".sample (new)")), "{:?}", outcome.watched);
        let told = outcome.text.lines().last().unwrap();
        assert!(told.contains("themselves: AGENTS.md (changed), r10/.envrc (new), "), "{level}: {told}");
        assert!(told.ends_with("r18/.envrc (new), 23 more"), "{level}: {told}");
    }
}

/// However long the names are of what is kept: the next command has its box.
#[tokio::test]
async fn long_and_odd_names_of_what_is_kept_stop_nothing() {
    if let Some(why) = no_full_box() {
        return crate::skip::skip(why);
    }
    let bench = Bench::new(Level::Full);
    bench.write(".git/hooks/x", "1");
    let long = format!("{0}/{0}/{0}/{0}", "n".repeat(240));
    let line = format!(
        "for n in {{1..190}}; do mkdir -p $n/{long}; echo 1 > $n/{long}/.envrc; done; mkdir $'\\xff'; echo 1 > $'\\xff/.envrc'"
    );
    let outcome = bench.run(&line).await;
    assert!(outcome.text.starts_with("exit status 0"), "{}", outcome.text);
    assert!(outcome.text.len() < 6_000, "{}", outcome.text.len());
    let line = "echo 2 > .git/hooks/x; echo 2 > $'\\xff/.envrc'; echo fine";
    let outcome = bench.run(line).await;
    assert!(outcome.text.contains("fine\n"), "{}", outcome.text);
    assert_eq!(fs::read_to_string(bench.scene.workspace.join(".git/hooks/x")).unwrap(), "1");
    // What could not be handed over is told.
    assert_eq!(outcome.watched, ["\"\\xFF/.envrc\" (changed)"]);
}

/// Memory and queues that programs share by a number are those of the whole machine.
#[tokio::test]
async fn what_programs_share_by_numbers_is_not_reached() {
    let plain = |script: &str| {
        let output = Command::new("perl").args(["-e", script]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let id = plain("$i = shmget(0, 64, 01600); shmwrite($i, \"GOT\", 0, 3); print $i");
    crate::boxes::attacks::check("shared memory", |_| perl(&format!("shmread({id}, $x, 0, 3) and print $x"))).await;
    plain(&format!("shmctl({id}, 0, 0)"));
    let id = plain("$i = msgget(0, 01600); msgsnd($i, pack(\"l! a*\", 1, \"GOT\"), 0) for 1 .. 9; print $i");
    crate::boxes::attacks::check("queues", |_| perl(&format!("msgrcv({id}, $x, 9, 0, 04000) and print $x"))).await;
    plain(&format!("msgctl({id}, 0, 0)"));
    let id = plain("$i = semget(0, 1, 01600); print $i");
    crate::boxes::attacks::check("semaphores", |_| {
        perl(&format!("semop({id}, pack(\"s!3\", 0, 1, 0)) and print \"GOT\""))
    })
    .await;
    plain(&format!("semctl({id}, 0, 0, 0)"));
    if cfg!(target_arch = "x86_64") {
        // A queue by its name; in a full box it is one of its own.
        let name = format!("tiller-test-{}", std::process::id());
        let make = format!("$n = \"{name}\"; $f = syscall(240, $n, 0302, 0600, 0); print $f >= 0 ? \"made\" : $!");
        assert_eq!(plain(&make), "made");
        let attack = format!("$n = \"{name}\"; print \"GOT\" if syscall(240, $n, 2, 0, 0) >= 0");
        crate::boxes::attacks::check("queues by their names", |_| perl(&attack)).await;
        plain(&format!("$n = \"{name}\"; syscall(241, $n)"));
    }
}

/// Marks of files outside, which lists of rights are, too, are left alone.
#[tokio::test]
async fn no_mark_is_set_on_files_outside() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let set = |bench: &Bench, name: &str| {
        perl(&format!(
            "$p = \"{}\"; $n = \"user.x\"; $v = \"1\"; print \"GOT\" if syscall(188, $p, $n, $v, 1, 0) == 0",
            bench.outside.join(name).display()
        ))
    };
    if !Bench::new(Level::None).run(&set(&Bench::new(Level::None), "secret")).await.text.contains("GOT") {
        return crate::skip::skip("the file system has no marks");
    }
    crate::boxes::attacks::check("a mark", |bench| set(bench, "secret")).await;
    for level in levels("copies with their marks") {
        let text = Bench::new(level).run("echo 1 > a && cp -a a b && cp -p a c && mv a d && echo fine").await.text;
        assert_eq!(text, "exit status 0\nfine\n", "{level}");
    }
}

/// Configurations that say as much as they can, one in the other, do not make commands slow.
#[tokio::test]
async fn configurations_of_git_that_say_much_do_not_stop_the_work() {
    let bench = Bench::new(Level::None);
    let mut words = String::from("[core]\n");
    (0..30_000).for_each(|number| words.push_str(&format!("\tpath = {number}\n")));
    (0..60_000).for_each(|number| words.push_str(&format!(" {number}")));
    let mut folder = PathBuf::new();
    for number in 0..20 {
        folder.push(number.to_string());
        let at = folder.display();
        bench.write(&format!("{at}/.git/config"), &words);
        bench.write(&format!("{at}/other/.git"), "gitdir: ../.git\n");
    }
    let began = std::time::Instant::now();
    let text = bench.run("echo fine").await.text;
    assert_eq!(text, "exit status 0\nfine\n");
    assert!(began.elapsed() < std::time::Duration::from_secs(60), "{:?}", began.elapsed());
}
