//! The real program on journals as they lie on the disk: exported, imported, audited, mended.

use std::collections::BTreeSet;
use std::fs;

use crate::program::scripts::shell;
use crate::real::Stage;
use serde_json::Value;
use tiller::domain::approval::Origin;
use tiller::domain::lineage;
use tiller::domain::money::MicroUsd;
use tiller::headless::audit;
use tiller::headless::audit::Payloads;
use tiller::store::transfer;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/journals/1-first-rehearsal.jsonl");

/// A stage with a whole rehearsal in it, and its name.
fn imported() -> (Stage, String) {
    let stage = Stage::new();
    stage.ask(&["import", GOLDEN]).check(0, &["imported 330 records as run 222222222222", "completed (verified)"]);
    (stage, "222222222222".to_string())
}

#[test]
fn a_run_goes_out_and_comes_back() {
    let (stage, id) = imported();
    let told = stage.ask(&["export", &id[..4]]);
    told.check(0, &[]);
    let golden = fs::read_to_string(GOLDEN).unwrap();
    // What came goes out byte for byte, and one record says that it came.
    let check = |came: &str, left: &str| {
        let left: Vec<&str> = left.lines().skip(1).collect();
        let (own, same) = left.split_last().unwrap();
        assert_eq!(same, came.lines().skip(1).collect::<Vec<_>>());
        assert!(own.contains("\"type\":\"imported\""), "{own}");
    };
    check(&golden, &told.out);
    let file = stage.path("out.jsonl").display().to_string();
    stage.ask(&["export", &id, "--out", &file]).check(0, &["331 records of run 222222222222"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), told.out);
    stage
        .ask(&["export", &id, "--out", &file])
        .check(3, &["out.jsonl is there already; nothing was exported; name a new file\n"]);
    stage.ask(&["import", &file]).check(3, &["there is a run 222222222222 already", "--as-new"]);
    stage.ask(&["import", &file, "--as-new"]).check(0, &["imported 331 records as run"]);
    let ids = stage.ids();
    assert_eq!(ids.len(), 2);
    let other = ids.iter().find(|other| **other != id).unwrap();
    let again = stage.ask(&["export", other]).out;
    check(&told.out, &again);
    fs::write(&file, told.out.lines().take(9).collect::<Vec<_>>().join("\n")).unwrap();
    stage
        .ask(&["import", &file, "--as-new"])
        .check(2, &["it should have 331 records and has 8", "nothing was imported"]);
    stage.ask(&["import", "/dev/zero"]).check(2, &["is not a file; nothing was imported"]);
    let pipe = stage.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    stage.ask(&["import", pipe.to_str().unwrap()]).check(2, &["is not a file; nothing was imported"]);
    assert_eq!(stage.ids().len(), 2);
}

#[test]
fn an_audit_has_a_line_for_each_decision_effect_and_charge() {
    let (stage, id) = imported();
    let told = stage.ask(&["audit", &id, "--json"]);
    told.check(0, &[]);
    let lines: Vec<Value> = told.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |action: &str| lines.iter().filter(|line| line["action"] == action).collect::<Vec<_>>();
    let records = fs::read_to_string(GOLDEN).unwrap();
    let written = |name: &str| records.matches(&format!("\"type\":\"{name}\"")).count();
    for action in ["approval_decided", "tool_call_started", "tool_call_finished", "budget_settled", "status_changed"] {
        assert_eq!(of(action).len(), written(action), "{action}");
        assert!(written(action) > 0, "{action}");
    }
    let decided = of("approval_decided");
    assert!(decided.iter().any(|line| line["actor"] == "somebody elsewhere" && line["decision"] == "allow once"));
    assert!(decided.iter().any(|line| line["actor"] == "a rule elsewhere" && line["rule"].is_null()));
    // The same where it was written.
    let golden = transfer::read(&records).unwrap().records;
    let own = audit::json(&audit::audit(&golden, Payloads::Hashed));
    let own: Vec<Value> = own.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(own.iter().any(|line| line["actor"] == "operator (command line)" && line["decision"] == "allow once"));
    assert!(own.iter().any(|line| line["actor"] == "rule" && line["rule"].is_string()));
    let started = of("tool_call_started")[0];
    assert_eq!(started["args_sha256"].as_str().unwrap().len(), 64);
    let spent: u64 = lines.iter().filter_map(|line| line["cost_micros"].as_u64()).sum();
    assert_eq!(Some(spent), stage.show().pointer("/summary/spent").and_then(Value::as_u64));
    // What ran is named.
    for action in ["approval_decided", "tool_call_started"] {
        assert!(of(action).iter().any(|line| line["words"] == "sh check.sh"), "{action}");
    }
    // As text, each to the micro-dollar, so that they come to their sum.
    let text = stage.ask(&["audit", &id]).out;
    assert!(text.contains(" shell · `sh check.sh` · arguments "), "{text}");
    assert!(text.contains(" · allow once · by somebody elsewhere\n"), "{text}");
    let figure = |line: &str| MicroUsd::parse_dollars(line.rsplit(" · ").next().unwrap()).unwrap().0;
    let charges: u64 = text.lines().filter(|line| line.contains(" budget_settled ")).map(figure).sum();
    assert_eq!(charges, spent);
    let (exact, rounded) = (MicroUsd(spent).exact(), MicroUsd(spent).to_string());
    let sum = format!("charged in all {exact}, elsewhere rounded up to {rounded} (pretend money)");
    assert_eq!(text.lines().last().unwrap(), sum);
    // Texts are hashed unless they are asked for.
    let goal = "tide";
    assert!(of("run_created")[0]["text"]["sha256"].is_string());
    assert!(!told.out.contains("See what the project does"), "{told}");
    let whole = stage.ask(&["audit", &id, "--payloads"]);
    whole.check(0, &[goal, "See what the project does", "for the skippers.\n"]);
    stage.ask(&["audit", &id, "--verify"]).check(0, &["331 records, each follows the one before it"]);
}

#[test]
fn s_62_a_damaged_run_is_told_shown_and_mended() {
    let (stage, id) = imported();
    // Opened and closed, so that the database has a snapshot of its own.
    stage.ask(&["show", &id]).check(0, &[]);
    let store = stage.run_dir(&id).join("store");
    let names = fs::read_dir(&store).unwrap().map(|entry| entry.unwrap().path());
    for path in names.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("snap.")) {
        fs::write(path, b"cut").unwrap();
    }
    stage.ask(&["doctor"]).check(13, &["PARTIAL  runs", "1 in all; damaged: 222222222222: its database can't be read"]);
    stage
        .ask(&["audit", &id, "--verify"])
        .check(20, &["could be read up to record 331 only", "bytes in it are not what was written"]);
    stage.ask(&["show", &id]).check(20, &["is damaged", "its files are kept as they are"]);
    stage.ask(&["repair", &id]).check(0, &["is mended: all 331 records are there", "store.damaged"]);
    stage.ask(&["show", &id]).check(0, &["completed"]);
    stage.ask(&["doctor"]).check(13, &["OK       runs           1 in all, none damaged"]);
    stage.ask(&["repair", &id]).check(0, &["is not damaged: all 331 records are there; nothing was changed"]);
}

#[test]
fn s_65_what_is_lost_is_named_and_the_rest_can_be_read() {
    let (stage, id) = imported();
    let db = sled::open(stage.run_dir(&id).join("store")).unwrap();
    let journal = db.open_tree("journal").unwrap();
    // A value holds some records; the next value begins behind the last of them.
    let place = |key: sled::IVec| u64::from_be_bytes(key.as_ref().try_into().unwrap());
    let (key, _) = journal.get_lt(200_u64.to_be_bytes()).unwrap().unwrap();
    let (next, _) = journal.get_gt(&key).unwrap().unwrap();
    journal.remove(&key).unwrap();
    db.flush().unwrap();
    drop((journal, db));
    let (first, behind) = (place(key), place(next));
    let kept = first - 1;
    let told = [
        format!("could be read up to record {kept} only"),
        format!("records {first} to {}: missing", behind - 1),
        format!("records {behind} to 331: it is there"),
    ];
    let lost = told.each_ref().map(String::as_str);
    stage.ask(&["audit", &id, "--verify"]).check(20, &lost);
    let mended = stage.ask(&["repair", &id]);
    mended.check(20, &lost);
    mended.check(20, &["nothing was changed", "tiller fork 222222 ", "tiller export 222222"]);
    let shown = stage.ask(&["show", &id]);
    let (gap, rest) = (format!("record {first} is missing"), format!("as it stood at record {kept}; only to look at"));
    shown.check(20, &[&gap, &rest, "[spend]"]);
    shown.check(20, &["what helps, to type:\n  tiller repair 222222 ", "tiller fork 222222 ", "tiller export 222222"]);
    assert!(!shown.out.contains("tiller resume") && !shown.out.contains("what to do"), "{shown}");
    let json: serde_json::Value = serde_json::from_str(&stage.ask(&["show", &id, "--json"]).out).unwrap();
    assert!(json["further"][0].as_str().unwrap().starts_with("tiller repair "), "{json}");
    let told = stage.ask(&["export", &id]);
    told.check(20, &lost);
    assert_eq!(told.out.lines().count() as u64, kept + 1);
    let file = stage.write("rest.jsonl", &told.out).display().to_string();
    stage.ask(&["import", &file, "--as-new"]).check(0, &[&format!("imported {kept} records")]);
}

#[test]
fn an_audit_says_what_a_charge_was_corrected_to_and_what_a_fork_has_from_before() {
    let stage = Stage::new();
    let model = stage.model(&format!("[price]\ninput = 1000000\noutput = 1300000\n{}", shell("true")));
    let mut command = stage.tiller(&["run", "do it", "--plain", "--model", &model]);
    crate::real::said(command.env("TILLER_FAULT", "after:C3:1").spawn().unwrap());
    let id = stage.ids()[0].clone();
    stage.ask(&["resume", &id, "--plain"]).check(10, &[]);
    stage.ask(&["correct", &id, "m1.1", "0.000123"]).check(0, &["recorded: m1.1 counts as $0.000123, not $0."]);
    let told = stage.ask(&["audit", &id]).out;
    assert!(told.contains("budget_corrected       m1 attempt 1, to $0.000123\n"), "{told}");
    let spent = stage.show().pointer("/summary/spent").and_then(Value::as_u64).unwrap();
    let sum = told.lines().last().unwrap().to_string();
    assert!(sum.starts_with("charged in all $0.0"), "{sum}");
    let (exact, rounded) = (MicroUsd(spent).exact(), MicroUsd(spent).to_string());
    let ending = format!(", corrected to {exact}, elsewhere rounded up to {rounded} (pretend money)");
    assert!(sum.ends_with(&ending), "{sum}");
    stage.allow();
    stage.ask(&["resume", &id, "--plain"]).check(0, &[]);
    let before = stage.ids();
    stage.ask(&["fork", &id]).check(0, &[]);
    let fork = stage.ids().into_iter().find(|one| !before.contains(one)).unwrap();
    let told = stage.ask(&["audit", &fork]).out;
    assert!(told.lines().last().unwrap().starts_with("before it branched off $0.0"), "{told}");
}

#[test]
fn an_audit_names_who_asked_for_whatever_the_operator_asked_for() {
    let (mut names, mut seen) = (BTreeSet::new(), 0);
    for folder in ["journals", "journals/second"] {
        for entry in fs::read_dir(format!("tests/fixtures/{folder}")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "jsonl") {
                continue;
            }
            let records = transfer::read(&fs::read_to_string(&path).unwrap()).unwrap().records;
            let told = audit::json(&audit::audit(&records, Payloads::Hashed));
            let lines: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            for record in &records {
                let written = serde_json::to_value(record).unwrap();
                let Some(by) = written["event"]["by"].as_str() else { continue };
                let line = lines.iter().find(|line| line["seq"] == record.seq.0);
                let line = line.unwrap_or_else(|| panic!("{}: no line for {written}", path.display()));
                // Through the room of the operator it is just them.
                let actor = match (by, lineage::origin(lineage::brought(&records), record.seq)) {
                    (_, Origin::Elsewhere) => "somebody elsewhere".to_string(),
                    ("operator", Origin::Here) => "operator".to_string(),
                    (_, Origin::Here) => format!("operator ({by})"),
                };
                assert_eq!(line["actor"], actor, "{}: {written}", path.display());
                names.insert(record.event.name());
                seen += 1;
            }
        }
    }
    assert!(seen > 50 && names.len() > 12, "{seen}: {names:?}");
    assert!(["rewound", "interjection_withdrawn", "price_chosen"].iter().all(|name| names.contains(name)), "{names:?}");
}

#[test]
fn what_could_not_be_written_is_not_called_done() {
    use std::process::Stdio;
    let (stage, id) = imported();
    for words in [&["export", &id][..], &["audit", &id, "--json"], &["runs"], &["show", &id]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let told = crate::real::said(stage.tiller(words).stdout(full).spawn().unwrap());
        told.check(14, &["the output can't be written"]);
        // A reader that has gone is nobody to tell.
        let mut child = stage.tiller(words).stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        crate::real::said(child).check(0, &[]);
    }
}
