//! What outranks what after an iteration (docs/ENGINE.md §5.4), pair by pair. What the operator asks for and what
//! waits for them outranks all of these before the verdict is made; the stories of `stopping.txt` show it.

use tiller::domain::budget::Axis;
use tiller::domain::budget::Limit;
use tiller::domain::command::Control;
use tiller::domain::command::Pause;
use tiller::domain::event::ClaimVerdict;
use tiller::domain::limits;
use tiller::domain::progress::Progress;
use tiller::domain::run::Claim;
use tiller::domain::run::ClaimStage;
use tiller::domain::run::Run;
use tiller::domain::status::Detector;
use tiller::domain::tool::ErrorClass;
use tiller::policy::ending;
use tiller::policy::ending::Noticed;

use crate::machine::stage::Stage;
use crate::machine::telling;

/// Something that is true of an iteration.
type Truth = (&'static str, fn(&mut Run, &mut Progress, &mut Noticed));

const TRUTHS: [Truth; 10] = [
    ("finish", |run, _, _| {
        let stage = ClaimStage::Judged(ClaimVerdict::Verified);
        run.iteration.claim = Some(Claim { call: None, summary: String::new(), stage });
    }),
    ("pause", |run, _, _| run.control = Some(Control::Pause(Pause::AfterTool))),
    ("blocked", |_, _, noticed| noticed.blocked = Some(ErrorClass::Permission)),
    ("denials", |_, after, _| after.denials = limits::DENIALS),
    ("claims", |_, after, _| after.claims = limits::CLAIMS),
    ("budget", |run, _, _| run.pool.raise(Axis::Cost, Limit::At(run.pool.spent().0))),
    ("malformed", |_, after, _| after.malformed = limits::MALFORMED),
    ("refused", |run, _, _| {
        if let Some(reply) = &mut run.iteration.reply {
            reply.is_refusal = true;
        }
    }),
    ("stall", |_, _, noticed| noticed.stalled.insert(0, Detector::NoProgress)),
    ("another stall", |_, _, noticed| noticed.stalled.push(Detector::Unmoved)),
];

fn verdict(truths: &[Truth]) -> String {
    let mut stage = Stage::new("");
    for input in ["own", "reply todos work", "reply shell x"] {
        stage.take(input);
    }
    let (mut run, mut noticed) = (stage.run, Noticed::default());
    let mut after = run.progress.clone();
    for (_, make) in truths {
        make(&mut run, &mut after, &mut noticed);
    }
    let names: Vec<&str> = truths.iter().map(|(name, _)| *name).collect();
    let names = if names.is_empty() { "nothing".to_string() } else { names.join(" and ") };
    format!("{names}: {}\n", telling::judged(&ending::verdict(&run, &after, &noticed)))
}

#[test]
fn the_higher_rank_decides_and_both_are_listed() {
    let mut table = verdict(&[]);
    for (place, first) in TRUTHS.iter().enumerate() {
        table.push_str(&verdict(&[*first]));
        for second in &TRUTHS[place + 1..] {
            let (one, other) = (verdict(&[*first, *second]), verdict(&[*second, *first]));
            let told = |text: &str| text.split_once(": ").map(|(_, told)| told.to_string());
            assert_eq!(told(&one), told(&other), "the order in which things became true matters");
            table.push_str(&one);
        }
    }
    if std::env::var_os("TILLER_BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/machine/precedence.txt"), &table).unwrap();
        return;
    }
    assert_eq!(table, include_str!("precedence.txt"));
}
