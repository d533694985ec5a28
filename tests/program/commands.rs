//! Commands by which an operator ends a run, says whether its claim is right, or what a charge really was: the exit
//! status, and the record that is left.

use std::fs;

use serde_json::Value;

use crate::program::scripts::SHORT;
use crate::real::Stage;
use tiller::domain::money::MicroUsd;

/// A run whose claim was rejected until it was parked.
fn rejected() -> (Stage, String) {
    let stage = Stage::new();
    let (plan, claim) = SHORT.split_at(SHORT.rfind("[[step]]").unwrap());
    let claims: String = (0..3).map(|number| claim.replace("\"claim\"", &format!("\"claim{number}\""))).collect();
    let model = stage.model(&format!("{plan}{claims}"));
    let told = stage.ask(&["run", "do it", "--plain", "--model", &model, "--check", "test -e never"]);
    let id = stage.ids()[0].clone();
    let short = &id[..6];
    told.check(
        12,
        &[
            "[parked] claims rejected",
            "look at why it was rejected",
            &format!("tiller accept {short}"),
            &format!("tiller close {short}"),
        ],
    );
    (stage, id)
}

/// A claim with open todos is rejected before any check runs, so no check is said to have failed.
#[test]
fn a_claim_with_open_todos_is_no_failed_check() {
    let stage = Stage::new();
    let (plan, claim) = SHORT.split_at(SHORT.rfind("[[step]]").unwrap());
    let claims: String = (0..3).map(|number| claim.replace("\"claim\"", &format!("\"claim{number}\""))).collect();
    let model = stage.model(&format!("{}{claims}", plan.replace("\"done\"", "\"pending\"")));
    let told = stage.ask(&["run", "do it", "--plain", "--model", &model]);
    let id = stage.ids()[0][..6].to_string();
    told.check(
        12,
        &[
            "[parked] claims rejected",
            "what to do: todos are open: see to them, or say what is missing; then resume",
            &format!("tiller plan {id} done|drop ID"),
        ],
    );
    assert!(!told.out.contains("verification") && !told.out.contains("what the check says"), "{told}");
    stage.ask(&["plan", &id, "done", "a"]).check(0, &["recorded\n[plan 2] 1 of 1 done\n  (done) a: "]);
    stage.ask(&["show", &id]).check(0, &["look at why it was rejected"]);
}

/// An answer goes to the question that it names, or to the only one, and what was answered is said.
#[test]
fn an_answer_goes_to_the_question_that_was_meant() {
    let stage = Stage::new();
    let (plan, claim) = SHORT.split_at(SHORT.rfind("[[step]]").unwrap());
    let asks = |question: &str| {
        let call = format!("{{ tool = \"ask_operator\", args = {{ question = \"{question}\" }} }}");
        format!("[[step]]\nname = \"{question}\"\ncalls = [ {call} ]\n")
    };
    let model = stage.model(&format!("{plan}{}{}{claim}", asks("red or blue"), asks("delete it")));
    let told = stage.ask(&["run", "do it", "--plain", "--model", &model]);
    let id = stage.ids()[0].clone();
    let short = &id[..6];
    told.check(14, &[&format!("tiller answer {short} c2 \"the answer\"")]);
    stage
        .ask(&["answer", &id, "c1", "red"])
        .check(3, &["call c1 of run", "does not wait for an answer; nothing changed"]);
    stage
        .ask(&["answer", &id, "c2"])
        .check(3, &["c2 is the name of the question, and no answer to it; nothing was sent"]);
    stage.ask(&["answer", &id, "red"]).check(0, &["recorded: c2 is answered: red or blue · run "]);
    stage.ask(&["resume", &id, "--plain"]).check(14, &[&format!("tiller answer {short} c3 \"the answer\"")]);
    // Whoever still means the first question answers no other.
    stage.ask(&["answer", &id, "c2", "blue"]).check(3, &["call c2 of run", "nothing changed"]);
    stage.ask(&["answer", &id, "c3", "no"]).check(0, &["recorded: c3 is answered: delete it · run "]);
    stage.ask(&["resume", &id, "--plain"]).check(0, &["completed"]);
}

/// What is said can be taken back by the name that it was told under.
#[test]
fn what_was_said_is_named_so_that_it_can_be_taken_back() {
    let (stage, id) = rejected();
    let short = &id[..6];
    stage.ask(&["say", &id, "one"]).check(0, &["recorded as i1, and `tiller withdraw "]);
    let told = format!("recorded as i2, and `tiller withdraw {short} i2` takes it back until it is told");
    stage.ask(&["say", &id, "two", "--now"]).check(0, &[&told]);
    stage.ask(&["withdraw", &id, "i2"]).check(0, &["recorded · "]);
    let shown = stage.ask(&["show", &id]);
    shown.check(0, &["[you] i1"]);
    assert!(!shown.out.contains("[you] i2"), "{shown}");
}

/// Nobody is paid for what a scripted model spends, wherever that is shown.
#[test]
fn the_money_of_a_script_with_a_price_is_pretended() {
    let stage = Stage::new();
    let told = stage.run(&format!("[price]\ninput = 1000000\noutput = 1000000\n{SHORT}"));
    told.check(0, &["of $5.00 (pretend money), tokens ", "of pretend money spent\n"]);
    let id = stage.ids()[0].clone();
    stage.ask(&["show", &id]).check(0, &["[spend] cost $", "(pretend money)"]);
    stage.ask(&["runs"]).check(0, &["completed: claimed, not verified (pretend money)"]);
    stage.ask(&["audit", &id]).check(0, &["charged in all $", " (pretend money)\n"]);
    // One that names no price spends nothing.
    let free = Stage::new();
    let told = free.run(SHORT);
    assert!(!told.out.contains("pretend"), "{told}");
}

/// The records of this kind, in order.
fn records(stage: &Stage, id: &str, kind: &str) -> Vec<Value> {
    let export = stage.ask(&["export", id]).out;
    let events = export.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].take());
    events.filter(|event| event["type"] == kind).collect()
}

/// Ends a rejected run by a word, after which it has ended for every word.
fn check_end(word: &str, other: &str, told: &str, status: Value) {
    let (stage, id) = rejected();
    stage.ask(&[word, &id]).check(0, &["recorded", told]);
    let last = records(&stage, &id, "status_changed").pop().unwrap();
    assert_eq!((&last["status"], &last["by"]), (&status, &"command line".into()), "{last}");
    stage.ask(&[other, &id]).check(3, &["the run has ended"]);
    assert_eq!(records(&stage, &id, "status_changed").pop(), Some(last));
    // What was asked for is said whole, with the run's own name in the lines to type; the status is that of the run.
    let (code, way_on) = match word {
        "accept" => (0, "it is never opened again; `tiller fork ID --goal TEXT` goes on from its end\n"),
        _ => (20, "`tiller rewind ID N` goes back, `tiller fork ID` branches off\n"),
    };
    let resumed = stage.ask(&["resume", &id, "--plain"]);
    resumed.check(code, &["[refused] the run has ended (", &way_on.replace("ID", &id[..6])]);
    let rewound = stage.ask(&["rewind", &id, "1"]);
    assert!(!rewound.err.contains("RUN"), "{rewound}");
}

#[test]
fn a_rejected_claim_is_accepted_by_the_operator() {
    check_end(
        "accept",
        "close",
        "is completed (accepted by operator)",
        serde_json::json!({"completed": "accepted_by_operator"}),
    );
}

#[test]
fn a_rejected_run_is_closed_by_the_operator() {
    check_end("close", "accept", "is failed (closed by operator)", serde_json::json!({"failed": "closed_by_operator"}));
}

#[test]
fn a_claim_is_confirmed_or_not_with_a_word_for_the_model() {
    let stage = Stage::new();
    stage.write("config/tiller/tiller.toml", "[run]\nchecks = [ { confirm = \"is it good?\" } ]\n");
    let (plan, claim) = SHORT.split_at(SHORT.rfind("[[step]]").unwrap());
    let model = stage.model(&format!("{plan}{claim}{}", claim.replace("\"claim\"", "\"again\"")));
    stage.ask(&["run", "do it", "--plain", "--model", &model]).check(10, &["tiller confirm ", "# is it good?"]);
    let id = stage.ids()[0].clone();
    let asked = || {
        let shown = stage.ask(&["show", &id]).to_string();
        let line = shown.split_once("tiller confirm ").unwrap().1;
        line.split_whitespace().nth(1).unwrap().to_string()
    };
    let first = asked();
    stage.ask(&["confirm", &id, &first, "no", "the second page is missing"]).check(0, &["recorded"]);
    stage.ask(&["confirm", &id, &first, "yes"]).check(3, &["no check asks for your word; nothing was recorded"]);
    stage.ask(&["resume", &id, "--plain"]).check(10, &["the second page is missing", "# is it good?"]);
    let stale = format!("what is asked about the claim is not what {first} stands for; nothing was recorded");
    stage.ask(&["confirm", &id, &first, "yes"]).check(3, &[&stale]);
    stage.ask(&["confirm", &id, &asked(), "yes"]).check(0, &["recorded"]);
    stage.ask(&["resume", &id, "--plain"]).check(0, &["[completed] verified"]);
    let given = records(&stage, &id, "confirmation_given");
    let words: Vec<_> = given.iter().map(|one| (one["confirmed"].as_bool(), one["text"].as_str())).collect();
    assert_eq!(words, [(Some(false), Some("the second page is missing")), (Some(true), Some(""))]);
}

/// A call that was paid for when the process was killed counts as dear as it could be, until the operator knows better:
/// for the run, and for the daily budget.
#[test]
fn a_charge_in_doubt_is_corrected_once_in_the_run_and_in_the_ledger() {
    let stage = Stage::new();
    stage.write(
        "config/tiller/tiller.toml",
        "model = \"near/m\"\n[providers.near]\nbase_url = \"http://127.0.0.1:9/v1\"\n[models.\"near/m\"]\nprice = { input \
         = \"1.00\", output = \"1.00\" }\n",
    );
    let killed = stage.tiller(&["run", "do it", "--plain"]).env("TILLER_FAULT", "after:C3:1").status().unwrap();
    assert_eq!(killed.code(), None, "it is killed before it asks");
    let id = stage.ids()[0].clone();
    // Taking the run finds out that the process before this one died.
    stage.ask(&["say", &id, "go on"]).check(0, &["recorded"]);
    let label = "[in doubt] what these calls cost can't be verified; if you know better, say so\n";
    let doubtful = MicroUsd(stage.show().pointer("/doubtful/0/amount").and_then(Value::as_u64).unwrap());
    let line = format!("{label}  m1.1 {doubtful}: tiller correct {} m1.1 DOLLARS\n", &id[..6]);
    stage.ask(&["show", &id]).check(0, &[&line]);
    let ledger = || -> Vec<Value> {
        let text = fs::read_to_string(stage.path("state/tiller/ledger.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let before = ledger();
    assert_eq!(before.len(), 2, "{before:?}");
    assert_eq!(before[0]["held"], before[1]["charged"], "it counts as what was set aside");

    // Killed when the journal knows it and the ledger does not: the same order again is refused, and tells the ledger.
    let correct = ["correct", &id, "m1.1", "0.000123"];
    let killed = stage.tiller(&correct).env("TILLER_FAULT", "after:C9:1").status().unwrap();
    assert_eq!((killed.code(), ledger()), (None, before.clone()));
    stage.ask(&correct).check(3, &["was corrected to $0.000123 already; nothing was corrected"]);
    let after = ledger();
    assert_eq!(after[..2], before);
    let line = &after[2];
    assert_eq!((&line["run"], &line["call"], &line["corrected"]), (&id.as_str().into(), &1.into(), &123.into()));
    assert_eq!(stage.show().pointer("/summary/spent"), Some(&123.into()));
    stage
        .ask(&["correct", &id, "m1.1", "0.2"])
        .check(3, &["was corrected to $0.000123 already; nothing was corrected"]);
    stage.ask(&["correct", &id, "m9.1", "0.2"]).check(3, &["nothing was corrected"]);
    assert_eq!(ledger(), after);
    assert_eq!(records(&stage, &id, "budget_corrected").len(), 1);
}

/// A limit that bears what was used, and not the worst case of the next call: what that is, what is left, and what bears
/// it, are told, and the line that is printed is enough.
#[test]
fn a_run_that_is_parked_before_its_limit_says_what_the_next_call_may_cost() {
    let stage = Stage::new();
    let model = stage.model(&format!("[price]\ninput = 1000000\noutput = 1000000\n{SHORT}"));
    let told = stage.ask(&["run", "do it", "--plain", "--model", &model, "--budget", "0.01"]);
    told.check(
        11,
        &["[parked] budget (cost)", "the next model call may cost up to $0.0", ", $0.01 is left; raise cost to $0."],
    );
    let id = stage.ids()[0].clone();
    let remedy = stage.show()["remedy"].as_str().unwrap().to_string();
    stage.ask(&["show", &id]).check(0, &[&remedy]);
    let least = remedy.split("raise cost to $").nth(1).unwrap().split(' ').next().unwrap();
    let raised = stage.ask(&["raise", &id, "cost", least]);
    raised.check(0, &["recorded: the limit of cost is now $0.0", ", $0.00 used · run "]);
    let went_on = stage.ask(&["resume", &id, "--plain"]);
    assert!(went_on.out.contains("[iteration 1] closed"), "{went_on}");
}

/// What an order made of the run is told with its receipt.
#[test]
fn orders_say_what_they_made() {
    let (stage, id) = rejected();
    stage.ask(&["raise", &id, "deadline", "none"]).check(0, &["recorded: the limit of deadline is now none · "]);
    stage.ask(&["raise", &id, "iterations", "50"]).check(0, &["recorded: the limit of iterations is now 50, "]);
    stage.ask(&["trust", &id, "plan"]).check(0, &["recorded: trust is now plan: "]);
    stage.ask(&["raise", &id, "cost", "nothing"]).check(2, &["; the limit was not changed"]);
    let lists = format!("recorded: what was done stays as it is; `tiller show {}` lists it · run ", &id[..6]);
    stage.ask(&["cancel", &id]).check(0, &[&lists]);
    let retried = stage.ask(&["retry", &id]);
    retried.check(0, &["attempt 2", "is parked (paused)", &format!("to go on, type:\n  tiller resume {}", &id[..6])]);
}
