//! Keys: what commands see of them, and that no copy is kept or shown after a run in which everything echoes one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::json;

use crate::real::Said;
use crate::real::Stage;
use crate::real::said;
use crate::trust::world::files;
use crate::trust::world::holds;
use crate::trust::world::script;

const SECRET: &str = "sk-test/0123456789+ab\"cdef=77";

/// The secret in the ways in which programs write one.
fn written() -> Vec<(&'static str, Vec<u8>)> {
    let text = |text: &str| text.as_bytes().to_vec();
    let hex = |upper: bool| -> String {
        SECRET.bytes().map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") }).collect()
    };
    vec![
        ("raw", text(SECRET)),
        ("base64", text("c2stdGVzdC8wMTIzNDU2Nzg5K2FiImNkZWY9Nz")),
        ("base64 after one byte", text("NrLXRlc3QvMDEyMzQ1Njc4OSthYiJjZGVmPTc3")),
        ("base64 after two bytes", text("zay10ZXN0LzAxMjM0NTY3ODkrYWIiY2RlZj03N")),
        ("hexadecimal", text(&hex(false))),
        ("upper hexadecimal", text(&hex(true))),
        ("URL", text("sk-test%2F0123456789%2Bab%22cdef%3D77")),
        ("lower URL", text("sk-test%2f0123456789%2bab%22cdef%3d77")),
        ("JSON", text("sk-test/0123456789+ab\\\"cdef=77")),
        ("UTF-16", SECRET.bytes().flat_map(|byte| [byte, 0]).collect()),
    ]
}

/// A key of several lines, made up.
const KEY: [&str; 5] = [
    "-----BEGIN EC PRIVATE KEY-----",
    "MHcCAQEEIKe1/+4Rr0gOdVZ0OVpqWmT2",
    "b25lIG1vcmUgbGluZQ+9xYAwEHoUQDQ2",
    "Zm9yIHRoZSB0ZXN0Lw8+a1B2c3D=",
    "-----END EC PRIVATE KEY-----",
];

fn tell(stage: &Stage, words: &[&str]) -> Said {
    let mut command = stage.tiller(words);
    command.env("DB_PASSWORD", SECRET).env("SIGNING_KEY", KEY.join("\n")).env("TILLER_LOG", "trace");
    said(command.spawn().unwrap())
}

#[test]
fn no_copy_of_a_secret_is_kept_or_shown() {
    let stage = Stage::new();
    let ways = written();
    let lines: Vec<u8> =
        ways.iter().flat_map(|(name, bytes)| [name.as_bytes(), b": ", bytes, b" .\n"].concat()).collect();
    fs::write(stage.path("work/leak"), &lines).unwrap();
    let text: Vec<u8> = lines.iter().copied().filter(|byte| *byte != 0).collect();
    fs::write(stage.path("work/leak.txt"), text).unwrap();
    stage.write("work/AGENTS.md", &format!("The password is {SECRET}, or c2stdGVzdC8wMTIzNDU2Nzg5K2FiImNkZWY9Nzc=.\n"));
    tell(&stage, &["trust", "--yes"]).check(0, &[]);
    let echo = script(&[
        ("read_file", json!({ "path": "leak.txt" })),
        ("search_files", json!({ "pattern": "sk-test" })),
        (
            "shell",
            json!({ "command": "cat leak; for part in 'sk-test/01234' '56789+ab' '\"cdef=77'; do printf %s \"$part\"; sleep 0.2; done" }),
        ),
        ("edit_file", json!({ "path": "leak.txt", "old_text": "raw: ", "new_text": "plain: " })),
    ]);
    let words = stage.words(&echo);
    let mut heard = tell(&stage, &words.iter().map(String::as_str).collect::<Vec<_>>());
    let id = stage.ids().remove(0);
    let mut said = String::new();
    for _ in 0..2 {
        heard.check(10, &[]);
        let shown = tell(&stage, &["show", &id, "--json"]).out;
        let waits: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let one = &waits["waiting"][0];
        said += &(heard.out + &heard.err + &shown);
        tell(&stage, &["approve", &id, one["call"].as_str().unwrap(), one["digest"].as_str().unwrap()]).check(0, &[]);
        heard = tell(&stage, &["resume", &id, "--plain"]);
    }
    heard.check(0, &[]);
    said += &(heard.out + &heard.err);
    let out = stage.path("export.jsonl").display().to_string();
    for words in [
        vec!["show", &id],
        vec!["export", &id, "--out", &out],
        vec!["export", &id],
        vec!["audit", &id, "--payloads"],
        vec!["trust", "--list"],
        vec!["doctor"],
        vec!["runs"],
    ] {
        let heard = tell(&stage, &words);
        said += &(heard.out + &heard.err);
    }
    assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(said.matches("[redacted:DB_PASSWORD:").count() > 20, "{said}");
    let kept = |file: &std::path::Path| file.components().any(|part| part.as_os_str() == "pre-images");
    let mut all: Vec<_> = files(&stage.path("state")).into_iter().filter(|(file, _)| !kept(file)).collect();
    all.push((out.clone().into(), fs::read(&out).unwrap()));
    all.push(("what was said".into(), said.into_bytes()));
    for (name, bytes) in &ways {
        for (file, text) in &all {
            assert!(!holds(text, bytes), "{} holds it as {name}", file.display());
        }
        // They are there where they were put: the search finds them.
        assert!(holds(&lines, bytes), "{name}");
    }
    // As a journal writes the UTF-16.
    let escaped = SECRET.replace('"', "\\\"").chars().map(String::from).collect::<Vec<_>>().join("\\u0000");
    assert!(all.iter().all(|(_, text)| !holds(text, escaped.as_bytes())));
}

#[test]
fn no_line_of_a_key_is_kept_or_shown() {
    let stage = Stage::new();
    // Without what tells everybody that it is a key.
    let lines = &KEY[1..4];
    stage.write("work/notes.txt", &format!("a\n{}\nb\n", lines.join("\n")));
    let shown = "cat -n notes.txt; sed 's/^/> /' notes.txt; cat -A notes.txt; grep -n '' notes.txt; \
        diff /dev/null notes.txt; base64 -w 64 notes.txt | cat -n; base64 -w 40 notes.txt; od -An -v -tx1 notes.txt";
    let echo = script(&[
        ("read_file", json!({ "path": "notes.txt" })),
        ("read_file", json!({ "path": "notes.txt", "start_line": 3, "line_count": 1 })),
        ("search_files", json!({ "pattern": "[A-Z]" })),
        ("shell", json!({ "command": shown })),
    ]);
    let words = stage.words(&echo);
    let heard = tell(&stage, &words.iter().map(String::as_str).collect::<Vec<_>>());
    heard.check(10, &[]);
    let id = stage.ids().remove(0);
    let waits: serde_json::Value = serde_json::from_str(&tell(&stage, &["show", &id, "--json"]).out).unwrap();
    let one = &waits["waiting"][0];
    tell(&stage, &["approve", &id, one["call"].as_str().unwrap(), one["digest"].as_str().unwrap()]).check(0, &[]);
    let resumed = tell(&stage, &["resume", &id, "--plain"]);
    resumed.check(0, &[]);
    let mut all = files(&stage.path("state"));
    let told = heard.out + &resumed.out + &tell(&stage, &["export", &id]).out;
    // Once for each line in each way of showing them.
    assert!(told.matches("[redacted:SIGNING_KEY:").count() > 20, "{told}");
    all.push(("what was said".into(), told.into_bytes()));
    let control = Command::new("sh").args(["-c", shown]).current_dir(stage.path("work")).output().unwrap().stdout;
    for line in lines {
        let part = &line[..12];
        let hex: Vec<String> = part.bytes().map(|byte| format!("{byte:02x}")).collect();
        for written in [part.to_string(), hex[..4].join(" ")] {
            for (file, text) in &all {
                assert!(!holds(text, written.as_bytes()), "{} holds {written}", file.display());
            }
        }
        assert!(holds(&control, part.as_bytes()), "it is there without redaction");
    }
}

/// Where a link leads, and what was changed that other programs run, is told by names that no argument had.
#[test]
fn no_name_with_a_secret_is_kept_or_shown() {
    const NAME: &str = "hJ8sKqP2wNx5vTzR7mLcYb4G";
    let stage = Stage::new();
    stage.write(&format!("work/{NAME}/f"), "old\n");
    stage.write(&format!("work/s/{NAME}"), "true\n");
    std::os::unix::fs::symlink(NAME, stage.path("work/link")).unwrap();
    let tell = |words: &[&str]| said(stage.tiller(words).env("FILE_TOKEN", NAME).spawn().unwrap());
    let echo = script(&[
        ("write_file", json!({ "path": "link/f", "content": "new\n" })),
        ("shell", json!({ "command": "mkdir -p new/.git/hooks && cp s/* new/.git/hooks/" })),
        ("shell", json!({ "command": "touch later" })),
    ]);
    let words = stage.words(&echo);
    let mut heard = tell(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let id = stage.ids().remove(0);
    let mut all = String::new();
    for _ in 0..3 {
        heard.check(10, &[]);
        let shown = tell(&["show", &id, "--json"]).out;
        let waits: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let one = &waits["waiting"][0];
        let (call, digest) = (one["call"].as_str().unwrap(), one["digest"].as_str().unwrap());
        let code = one["code"].as_str().map(|code| vec!["--code", code]).unwrap_or_default();
        all += &(heard.out + &heard.err + &shown);
        tell(&[&["approve", &id, call, digest][..], &code].concat()).check(0, &[]);
        heard = tell(&["resume", &id, "--plain"]);
    }
    heard.check(0, &[]);
    all += &(heard.out + &heard.err);
    for words in [vec!["show", &id], vec!["export", &id], vec!["audit", &id, "--payloads"]] {
        let heard = tell(&words);
        all += &(heard.out + &heard.err);
    }
    assert_eq!(fs::read_to_string(stage.path(&format!("work/{NAME}/f"))).unwrap(), "new\n");
    assert!(all.contains("new/.git/hooks/[redacted:FILE_TOKEN:") && all.contains("path=/"), "the control: {all}");
    let mut all = vec![("what was said".into(), all.into_bytes())];
    all.extend(files(&stage.path("state")));
    for (file, text) in &all {
        assert!(!holds(text, NAME.as_bytes()), "{}", file.display());
    }
}

/// What a run's check sees of its environment, and how the start went.
fn seen(stage: &Stage, further: &[&str]) -> (Said, String) {
    let words = stage.words(&script(&[]));
    let words: Vec<&str> = words.iter().map(String::as_str).chain(["--check", "env | sort > seen"]).collect();
    let words: Vec<&str> = words.into_iter().chain(further.iter().copied()).collect();
    let mut command = stage.tiller(&words);
    for (name, value) in [
        ("ANTHROPIC_API_KEY", "sk-test-0123456789abcdef"),
        ("MY_TOKEN", "abc"),
        ("PLAIN", "p"),
        ("SSH_AUTH_SOCK", "/run/x"),
        ("LD_PRELOAD_NOT", "x"),
        ("XDG_RUNTIME_DIR", "/run/user/1"),
    ] {
        command.env(name, value);
    }
    let _ = fs::remove_file(stage.path("work/seen"));
    let said = said(command.spawn().unwrap());
    let seen = fs::read_to_string(stage.path("work/seen")).unwrap_or_default();
    (said, seen)
}

#[test]
fn what_looks_secret_is_passed_only_when_it_is_named() {
    let stage = Stage::new();
    let names = |text: &str| text.lines().filter_map(|line| line.split('=').next()).collect::<Vec<_>>().join(" ");
    let (said, env) = seen(&stage, &[]);
    said.check(0, &[]);
    // PWD and the like are the shell's own.
    assert!(!env.contains("sk-test") && !env.contains("abc") && env.contains("PATH="), "{env}");
    stage.write(
        "config/tiller/tiller.toml",
        "[run]\npass_variables = [\"MY_TOKEN\", \"PLAIN\", \"SSH_AUTH_SOCK\", \"LD_PRELOAD_NOT\", \"XDG_RUNTIME_DIR\"]\n",
    );
    let (said, env) = seen(&stage, &[]);
    said.check(13, &["MY_TOKEN looks secret", "nothing was started", "--pass-secret MY_TOKEN"]);
    assert!(env.is_empty());
    let (said, env) = seen(&stage, &["--pass-secret", "MY_TOKEN"]);
    said.check(0, &[]);
    assert!(env.contains("MY_TOKEN=abc\n") && env.contains("PLAIN=p\n"), "{env}");
    for never in ["SSH_AUTH_SOCK", "LD_PRELOAD_NOT", "XDG_RUNTIME_DIR", "ANTHROPIC_API_KEY"] {
        assert!(!env.contains(never), "{}", names(&env));
    }
    // The other process that goes on with a run was not told, and says so.
    let asks = script(&[("shell", json!({ "command": "true" }))]);
    stage.start(&asks, &[]).check(10, &[]);
    let resumed = said_with_token(&stage, &["resume", "--last", "--plain"]);
    resumed.check(10, &["MY_TOKEN looks secret; to let this run's commands see it, say --pass-secret MY_TOKEN"]);
    let resumed = said_with_token(&stage, &["resume", "--last", "--plain", "--pass-secret", "MY_TOKEN"]);
    assert!(!resumed.err.contains("looks secret"), "{resumed}");
}

fn said_with_token(stage: &Stage, words: &[&str]) -> Said {
    said(stage.tiller(words).env("MY_TOKEN", "abc").spawn().unwrap())
}
