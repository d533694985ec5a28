//! What lies in the state directory and is not tiller's own: links, folders for everybody, files of nothing. No command
//! follows, waits for or changes it, and each says which it is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::program::scripts::shell;
use crate::program::stage::files;
use crate::real::PATIENCE;
use crate::real::Stage;

/// A run that waits for leave, and its name.
fn waiting() -> (Stage, String) {
    let stage = Stage::new();
    stage.run(&shell("true")).check(10, &[]);
    let id = stage.ids()[0].clone();
    (stage, id)
}

/// What each of these commands says of a run.
const COMMANDS: [&str; 6] = ["show", "resume", "audit", "export", "cancel", "repair"];

#[test]
fn a_link_in_the_place_of_what_is_ours_is_followed_by_nobody() {
    for name in ["", "store", "pre-images", "anchor", "owner.json", "summary.json", "store.damaged"] {
        let (stage, id) = waiting();
        let (place, theirs) = (stage.run_dir(&id).join(name), stage.path("theirs"));
        let place = Path::new(place.to_str().unwrap().trim_end_matches('/')).to_path_buf();
        match place.exists() {
            true => fs::rename(&place, &theirs).unwrap(),
            false => fs::create_dir(&theirs).unwrap(),
        }
        symlink(&theirs, &place).unwrap();
        let is_folder = theirs.is_dir();
        let inventory = || if is_folder { files(&theirs) } else { vec![(theirs.clone(), fs::read(&theirs).unwrap())] };
        let before = inventory();
        let said = format!("{} is a link, which is not followed here", place.display());
        for command in COMMANDS {
            stage.ask(&[command, &id]).check(14, &[&said, "nothing was opened; run `rm "]);
        }
        stage.ask(&["runs"]).check(0, &[&said]);
        assert!(inventory() == before, "{name}: what the link leads to was changed");
        fs::remove_file(&place).unwrap();
    }
}

#[test]
fn a_link_in_the_state_directory_is_told_before_anything_else() {
    for name in ["runs", "sandbox.json", "ledger.jsonl", "redaction.key"] {
        let (stage, id) = waiting();
        let (place, theirs) = (stage.path("state/tiller").join(name), stage.path("theirs"));
        if place.exists() {
            fs::rename(&place, &theirs).unwrap();
        }
        symlink(&theirs, &place).unwrap();
        let said = format!("{} is a link", place.display());
        for words in [&["runs"][..], &["show", &id], &["rules"], &["doctor"]] {
            let told = stage.ask(words);
            assert!(told.code != 0 && (told.err.contains(&said) || told.out.contains(&said)), "{words:?}: {told}");
        }
    }
}

/// As the directory of runs itself: a folder for everybody, or of somebody else.
#[test]
fn places_that_are_open_or_somebody_elses_are_refused() {
    for name in ["store", "pre-images", "owner.json"] {
        let (stage, id) = waiting();
        let place = stage.run_dir(&id).join(name);
        if !place.exists() {
            fs::create_dir(&place).unwrap();
        }
        let before = place.metadata().unwrap().permissions();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
        for command in COMMANDS {
            stage.ask(&[command, &id]).check(14, &["is open to other users (mode 777)", "run `chmod "]);
        }
        fs::set_permissions(&place, before).unwrap();
        if nix::unistd::geteuid().is_root() {
            std::os::unix::fs::chown(&place, Some(65_534), None).unwrap();
            stage.ask(&["show", &id]).check(14, &["belongs to user 65534 and not to you"]);
        }
    }
}

/// A database of which there is nothing is neither copied nor read: it would take hours.
#[test]
fn a_file_that_is_longer_than_what_was_written_is_damage() {
    for (name, length, why) in [
        ("store/db", 40 << 30, "the file of its database has 40960 MiB, more than the 8192 MiB that one can have"),
        ("store/db", 4 << 30, "the file of its database calls itself 4096 MiB long, and only "),
        ("store/conf", 40 << 30, "`conf` in its store has 40960 MiB"),
    ] {
        let (stage, id) = waiting();
        let place = stage.run_dir(&id).join(name);
        let file = fs::File::options().write(true).open(&place).unwrap();
        file.set_len(length).unwrap();
        let start = std::time::Instant::now();
        for command in ["show", "resume", "audit", "cancel"] {
            stage.ask(&[command, &id]).check(20, &[why]);
        }
        stage.ask(&["runs"]).check(0, &[why]);
        stage.ask(&["doctor"]);
        assert!(start.elapsed() < PATIENCE / 2, "{name}: {:?}", start.elapsed());
        assert_eq!(place.metadata().unwrap().len(), length);
    }
}

#[test]
fn what_stands_in_the_place_of_a_database_is_called_what_it_is() {
    for (put, what) in [
        ((|path| symlink("/etc/passwd", path).unwrap()) as fn(&Path), "a link"),
        (|path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap(), "a pipe"),
        (|path| fs::create_dir(path).unwrap(), "a folder"),
    ] {
        let (stage, id) = waiting();
        let place = stage.run_dir(&id).join("store/db");
        fs::remove_file(&place).unwrap();
        put(&place);
        let why = format!("the file of its database is {what}");
        for command in ["show", "resume", "export", "repair"] {
            stage.ask(&[command, &id]).check(20, &[&why]);
        }
        stage.ask(&["runs"]).check(0, &[&why]);
    }
}

/// A log that can't be kept is told, and no reason to stop.
#[test]
fn without_a_log_everything_goes_on() {
    let (stage, id) = waiting();
    let log = stage.path("state/tiller/log");
    fs::remove_dir_all(&log).unwrap();
    let theirs = stage.path("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o755)).unwrap();
    symlink(&theirs, &log).unwrap();
    for words in [&["runs"][..], &["show", &id], &["rules"], &["cancel", &id]] {
        stage.ask(words).check(0, &["can't be written (it is not a folder); nothing is logged"]);
    }
    assert_eq!(theirs.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    assert!(files(&theirs).is_empty());
}
