//! Which step of the gate decides (docs/ENGINE.md §9.2), pair by pair: of two that both apply it is the earlier one, in
//! whatever order they came to be so. Data in, text out: `gate.txt` has every pair.

use tiller::domain::approval::Origin;
use tiller::domain::budget::Axis;
use tiller::domain::budget::Limit;
use tiller::domain::id::CallId;
use tiller::domain::id::ClientId;
use tiller::domain::line::Joint;
use tiller::domain::line::Line;
use tiller::domain::line::Plain;
use tiller::domain::line::Segment;
use tiller::domain::rule::RuleEffect;
use tiller::domain::rule::RuleHit;
use tiller::domain::run::Run;
use tiller::domain::tool::Edited;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::Facts;
use tiller::domain::tool::Problem;
use tiller::domain::tool::ProblemKind;
use tiller::domain::tool::ToolCall;
use tiller::domain::trust::Trust;
use tiller::policy::permission;
use tiller::policy::permission::Judgement;

use crate::machine::stage::Stage;

/// A call before the gate: to write a file of the workspace, in mode `ask`.
#[derive(Clone)]
struct Case {
    run: Run,
    call: ToolCall,
    facts: Facts,
}

/// Something that is true of a call, the step it is for, and the mode it needs, where it needs one.
struct Truth {
    name: &'static str,
    step: u32,
    trust: Option<Trust>,
    make: fn(&mut Case),
}

/// The steps in the order of docs/ENGINE.md §9.2, by its numbers; several truths may lead to one of them.
const TRUTHS: [Truth; 17] = [
    Truth { name: "not JSON", step: 1, trust: None, make: |case| case.fails(ProblemKind::Malformed) },
    Truth { name: "wrong shape", step: 1, trust: None, make: |case| case.fails(ProblemKind::InvalidArguments) },
    Truth { name: "secret", step: 1, trust: None, make: |case| case.fails(ProblemKind::SecretInArguments) },
    Truth { name: "refused place", step: 1, trust: None, make: |case| case.fails(ProblemKind::Refused) },
    Truth { name: "impossible", step: 1, trust: None, make: |case| case.fails(ProblemKind::Impossible) },
    Truth { name: "only reads", step: 2, trust: Some(Trust::Plan), make: |_| () },
    Truth {
        name: "over the limit",
        step: 3,
        trust: None,
        make: |case| case.run.pool.raise(Axis::ToolCalls, Limit::At(case.run.pool.used(Axis::ToolCalls))),
    },
    Truth { name: "rule denies", step: 4, trust: None, make: |case| case.hears(RuleEffect::Deny, false) },
    Truth {
        name: "edited",
        step: 5,
        trust: None,
        make: |case| {
            let original = case.call.arguments.clone();
            let (by, shown) = (ClientId("op".to_string()), case.facts.reached());
            case.call.edited = Some(Edited { original, by, origin: Origin::Here, shown, is_leave: true });
        },
    },
    Truth {
        name: "denied before",
        step: 6,
        trust: None,
        make: |case| case.run.progress.denied.extend([(case.call.signature(), "no".to_string())]),
    },
    Truth { name: "asked each time", step: 7, trust: None, make: |case| case.facts.inside = false },
    Truth { name: "rules lost", step: 9, trust: None, make: |case| case.hears(RuleEffect::Ask, true) },
    Truth {
        name: "granted",
        step: 10,
        trust: None,
        make: |case| case.run.progress.granted.extend([case.call.grant()]),
    },
    Truth {
        name: "tool granted",
        step: 10,
        trust: None,
        make: |case| case.run.granted_tools.extend([case.call.tool.clone()]),
    },
    Truth { name: "rule asks", step: 11, trust: None, make: |case| case.hears(RuleEffect::Ask, false) },
    Truth { name: "rule allows", step: 13, trust: None, make: |case| case.hears(RuleEffect::Allow, false) },
    Truth { name: "trusted", step: 14, trust: Some(Trust::AutoEdit), make: |_| () },
];

impl Case {
    fn new() -> Case {
        let mut stage = Stage::new("");
        for line in ["own", "reply todos a", "reply write f text", "prepared"] {
            stage.take(line);
        }
        let call = stage.run.calls[&CallId(2)].clone();
        let facts = call.facts.clone().unwrap();
        Case { run: stage.run, call, facts }
    }

    fn fails(&mut self, kind: ProblemKind) {
        // Only one thing can be wrong with a call: the first that is found.
        let found = || Problem::new(kind, format!("{kind:?}"));
        self.facts.problem.get_or_insert_with(found);
    }

    fn hears(&mut self, effect: RuleEffect, is_lost: bool) {
        let id = format!("r-{}", effect.word());
        let words = if is_lost { "the rules can't be read".to_string() } else { "the files f".to_string() };
        let hit = RuleHit { id, effect, words, is_lost };
        // Of several rules the one that outranks is told (`policy::rules`); of none that can be read, only that.
        let rank = |hit: &RuleHit| (hit.effect, hit.is_lost);
        if self.facts.rule.as_ref().is_none_or(|before| rank(before) < rank(&hit)) {
            self.facts.rule = Some(hit);
        }
    }

    /// What the gate says of it with these truths.
    fn judged(&self, truths: &[&Truth]) -> String {
        let mut case = self.clone();
        for truth in truths {
            case.run.trust = truth.trust.unwrap_or(case.run.trust);
            (truth.make)(&mut case);
        }
        match permission::judge(&case.run, &case.call, &case.facts, 0) {
            Judgement::Allow(rule) => format!("allowed, by rule: {rule}"),
            Judgement::AllowByRule(rule) => format!("allowed, by {rule}"),
            Judgement::AllowEdited(by) => format!("allowed, as {by} wrote it"),
            Judgement::Ask(why) => format!("asked: {why}"),
            Judgement::Deny { rule, .. } => format!("denied, by rule: {rule}"),
            Judgement::NotRun(problem) => format!("not run: {}", problem.text),
        }
    }
}

#[test]
fn of_two_steps_that_both_apply_the_earlier_one_decides() {
    let case = Case::new();
    let mut table = format!("nothing: {}\n", case.judged(&[]));
    for (place, first) in TRUTHS.iter().enumerate() {
        let alone = case.judged(&[first]);
        table.push_str(&format!("{} {}: {alone}\n", first.step, first.name));
        for second in TRUTHS.iter().skip(place + 1) {
            let names = format!("{} and {}", first.name, second.name);
            if first.step == 1 && second.step == 1 {
                continue;
            }
            if first.trust.is_some() && second.trust.is_some() {
                table.push_str(&format!("{names}: there is one mode at a time\n"));
                continue;
            }
            let both = case.judged(&[first, second]);
            assert_eq!(both, case.judged(&[second, first]), "{names}: what came to be so first matters");
            assert_eq!(both, alone, "{names}: step {} decides, not {}", first.step, second.step);
            assert!(first.step == second.step || both != case.judged(&[second]), "{names}: nobody could tell");
            table.push_str(&format!("{names}: {both}\n"));
        }
    }
    if std::env::var_os("TILLER_BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/machine/gate.txt"), &table).unwrap();
        return;
    }
    assert_eq!(table, include_str!("gate.txt"));
}

/// A line that only reads happens where it is confined, whatever the mode, unless an earlier step says otherwise.
#[test]
fn a_line_that_only_reads_is_a_read_where_it_is_confined() {
    let line = |name: &str| {
        let argv = name.split(' ').map(String::from).collect();
        let segment = Segment { joint: Joint::First, argv, redirects: Vec::new() };
        Line { commands: vec![segment.argv.clone()], plain: Ok(Plain { segments: vec![segment] }) }
    };
    let judged = |name: &str, unconfined: bool, trust: Trust| {
        let mut case = Case::new();
        case.call.effect = EffectClass::External;
        case.run.trust = trust;
        (case.facts.line, case.facts.unconfined) = (Some(line(name)), unconfined);
        (case.judged(&[]), case)
    };
    for trust in [Trust::Plan, Trust::Ask, Trust::AutoEdit, Trust::FullTrust] {
        let (said, case) = judged("true", false, trust);
        assert_eq!(said, "allowed, by rule: read-only line", "{trust:?}");
        for truth in TRUTHS.iter().filter(|truth| [1, 3, 4, 6].contains(&truth.step)) {
            assert!(!case.judged(&[truth]).starts_with("allowed"), "{}", truth.name);
        }
    }
    let asked = "asked: it may do more than read: make is not in the read-only table";
    assert_eq!(judged("make", false, Trust::Ask).0, asked);
    let asked =
        "asked: it deletes build, which can't be undone; it may do more than read: rm is not in the read-only table";
    assert_eq!(judged("rm -rf build", false, Trust::Ask).0, asked);
    assert_eq!(judged("make", false, Trust::Plan).0, "denied, by rule: trust mode plan");
    assert_eq!(judged("true", true, Trust::Ask).0, "asked: it seems to only read, but no full box confines it");
    assert_eq!(judged("true", true, Trust::FullTrust).0, "asked: it seems to only read, but no full box confines it");
    assert_eq!(judged("true", true, Trust::Plan).0, "denied, by rule: trust mode plan");
}

/// What the operator writes in the place of the model's is leave, but not for what they were not shown: that it is grave, or
/// takes away what nothing brings back.
#[test]
fn what_an_operator_changed_into_a_loss_is_asked_about_once_more() {
    let argv = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
    let judged = |line: &str, truths: &[&str]| {
        let mut case = Case::new();
        case.call.effect = EffectClass::External;
        case.facts.line = Some(Line { commands: vec![argv(line)], plain: Err("a test".to_string()) });
        let truths: Vec<&Truth> = TRUTHS.iter().filter(|truth| truths.contains(&truth.name)).collect();
        case.judged(&truths)
    };
    assert_eq!(judged("make", &["edited"]), "allowed, as op wrote it");
    let asked = "asked: as you changed it, it deletes build, which can't be undone";
    for others in [&[][..], &["denied before"], &["granted"], &["rule allows"], &["trusted"]] {
        let truths: Vec<&str> = others.iter().copied().chain(["edited"]).collect();
        assert_eq!(judged("rm -rf build", &truths), asked, "{others:?}");
    }
    assert!(judged("rm -rf build", &["edited", "rule denies"]).starts_with("denied"));
}

/// What is wrong with a call is looked for in this order, before its reach is found out: the tool, its arguments as
/// JSON, their shape.
#[test]
fn what_is_wrong_with_a_call_is_found_in_order() {
    for (reply, said) in [
        ("raw reed_file {\"path", "there is no tool \"reed_file\""),
        ("raw reed_file {}", "there is no tool \"reed_file\""),
        ("raw read_file {\"path", "the arguments are not valid JSON"),
        ("raw read_file {}", "path"),
    ] {
        for terms in ["", "trust=plan", "tool-calls=1"] {
            let mut stage = Stage::new(terms);
            stage.take("own");
            stage.take("reply todos a");
            let told = stage.take(&format!("reply {reply}"));
            let finished: Vec<&String> = told.iter().filter(|line| line.starts_with("finished c2 not run")).collect();
            assert!(finished.len() == 1 && finished[0].contains(said), "{terms}, {reply}: {told:?}");
        }
    }
}
