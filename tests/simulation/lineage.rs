//! Going back and branching off, on the golden journals: what is hidden, what stays, and that the result is exact.

use tiller::domain::command::Cancel;
use tiller::domain::command::Command;
use tiller::domain::command::Refusal;
use tiller::domain::event::Event;
use tiller::domain::event::Owner;
use tiller::domain::event::OwnerMode;
use tiller::domain::event::Record;
use tiller::domain::id::ClientId;
use tiller::domain::id::RunId;
use tiller::domain::lineage;
use tiller::domain::message::Message;
use tiller::domain::money::MicroUsd;
use tiller::domain::money::Price;
use tiller::domain::pool::Pool;
use tiller::domain::pricing::Pricing;
use tiller::domain::run::Run;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Status;
use tiller::domain::terms::Goal;
use tiller::domain::terms::Terms;
use tiller::domain::time::Now;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;
use tiller::domain::tool::CallState;
use tiller::domain::tool::EffectClass;
use tiller::domain::trust::Trust;
use tiller::machine;
use tiller::machine::Input;
use tiller::machine::turn;
use tiller::tui::app::App;
use tiller::tui::app::Moment;
use tiller::tui::app::Msg;
use tiller::tui::app::Options;
use tiller::tui::chronicle::Chronicle;
use tiller::tui::chronicle::Note;
use tiller::tui::past::Reading;

use crate::simulation::golden::golden;
use crate::simulation::golden::names;

fn client() -> ClientId {
    ClientId("test".to_string())
}

fn later(run: &Run) -> Now {
    Now { at: Timestamp(run.at.0 + 1_000), active: Span(run.pool.used(tiller::domain::budget::Axis::Active)) }
}

/// Every place of a journal at which the run could be rewound: parked, failed or cancelled, between two groups.
fn places(id: &RunId, records: &[Record]) -> Vec<usize> {
    let mut places = Vec::new();
    Run::fold_each(id, records, |record, run, _| {
        let may = matches!(run.status, Status::Parked(_) | Status::Failed(_) | Status::Cancelled);
        if may && run.check().is_ok() && !run.is_busy() {
            places.push(usize::try_from(record.seq.0).unwrap());
        }
    })
    .unwrap();
    places
}

/// The account but for the time of its last record, which moves on.
fn kept(pool: &Pool) -> serde_json::Value {
    let mut pool = serde_json::to_value(pool).unwrap();
    pool.as_object_mut().unwrap().remove("latest").unwrap();
    pool
}

/// Goes back from one place to one iteration, and compares with both. Gives the journal after it.
fn check(id: &RunId, records: &[Record], to: u32) -> Vec<Record> {
    let now = Run::fold(id, records).unwrap();
    let upto = lineage::boundary(records, to).unwrap();
    let past = Run::fold(id, &records[..usize::try_from(upto.0).unwrap()]).unwrap();
    let rewound = machine::lineage::rewind(&now, records, to, &client(), later(&now)).unwrap();
    let run = rewound.run;
    let mut journal = records.to_vec();
    journal.extend(rewound.records);
    assert_eq!(Run::fold(id, &journal).unwrap(), run, "the fold differs");
    assert_eq!(run.status, Status::Parked(ParkReason::Paused));
    // Hidden: the conversation, the plan, the detectors, the grants.
    assert_eq!(run.transcript, past.transcript);
    assert_eq!((&run.plan, &run.history, &run.iteration), (&past.plan, &past.history, &past.iteration));
    assert_eq!((run.progress.idle, &run.progress.steps), (past.progress.idle, &past.progress.steps));
    let still = past.progress.granted.intersection(&now.progress.granted).cloned().collect();
    assert_eq!(run.progress.granted, still, "what was taken back since stays taken back");
    assert!(run.calls.is_empty() && run.waiting().is_empty());
    // Kept: money, counts, denials, ids, what the operator said and the model was not told.
    assert_eq!((kept(&run.pool), &run.next), (kept(&now.pool), &now.next));
    assert_eq!((run.progress.denials, &run.progress.denied), (now.progress.denials, &now.progress.denied));
    assert_eq!(run.progress.replans, now.progress.replans);
    assert_eq!(run.trust, now.trust);
    assert_eq!(run.interjections, now.interjections);
    // Every start of a call that may change something, after that place, is listed once.
    let mut started = Vec::new();
    for record in &records[usize::try_from(upto.0).unwrap()..] {
        if let Event::ToolCallStarted { call, .. } = &record.event {
            let may_change = records.iter().any(|other| {
                matches!(&other.event, Event::ToolCallProposed { call: one, effect, .. }
                    if one == call && *effect != EffectClass::Read)
            });
            if may_change && !started.contains(call) {
                started.push(*call);
            }
        }
    }
    assert_eq!(rewound.behind.deeds.iter().map(|deed| deed.call).collect::<Vec<_>>(), started);
    journal
}

/// The run goes on from where it was put: it opens the iteration after that one.
fn goes_on(id: &RunId, journal: &mut Vec<Record>) {
    let mut run = Run::fold(id, journal).unwrap();
    let n = run.iteration.n;
    let owner = Owner { pid: 1, host: "box".to_string(), version: "0".to_string(), mode: OwnerMode::Drives };
    let mut take = |input: Input| {
        let turned = turn(&run, &input, later(&run)).unwrap();
        journal.extend(turned.records);
        run = turned.run;
        run.needs_grant()
    };
    take(Input::Recovered { owner, lacks: Vec::new() });
    // Going back is no way around the cap of replans.
    if take(Input::Command(Command::Resume, client())) {
        take(Input::Command(Command::GrantReplans, client()));
    }
    let parked = matches!(run.status, Status::Parked(ParkReason::Budget(_)));
    assert!(parked || (run.iteration.n, run.iteration.is_open) == (n + 1, true), "{:?}", run.status);
    assert_eq!(Run::fold(id, journal).unwrap(), run);
}

#[test]
fn going_back_is_exact_from_every_place_to_every_iteration() {
    let mut count = 0;
    for name in names() {
        let (id, records) = golden(&name);
        let places = places(&id, &records);
        for place in places.iter().step_by(places.len() / 6 + 1) {
            for (to, _) in lineage::boundaries(&records[..*place]) {
                let mut journal = check(&id, &records[..*place], to);
                goes_on(&id, &mut journal);
                count += 1;
            }
        }
    }
    assert!(count > 30, "{count}");
}

#[test]
fn going_back_again_and_again_is_exact() {
    let (id, records) = golden("1-first-life-4");
    let place = *places(&id, &records).last().unwrap();
    let mut journal = records[..place].to_vec();
    let all = lineage::boundaries(&journal);
    for (to, _) in all.iter().rev() {
        journal = check(&id, &journal, *to);
        let visible: Vec<u32> = lineage::boundaries(&journal).iter().map(|(n, _)| *n).collect();
        assert_eq!(visible, (1..=*to).collect::<Vec<_>>());
    }
    assert_eq!(told(&id, &journal), whole(&id, &journal), "what a screen is told of it");
    // What was hidden is gone from view: it can't be gone back to.
    let run = Run::fold(&id, &journal).unwrap();
    let refused = machine::lineage::rewind(&run, &journal, 3, &client(), later(&run)).unwrap_err();
    let sentence = "iteration 3 is not a closed one of this run; nothing changed; the nearest is 1";
    assert_eq!(refused.to_string(), sentence);
}

/// What of a run says that the operator changed a call, and that somebody elsewhere did.
fn changes(run: &Run) -> (usize, usize) {
    let sent = run.context.sent().entries().map(|entry| &**entry);
    let texts = run.transcript.all().chain(sent).filter_map(|entry| match &entry.message {
        Message::ToolResult { text, .. } => Some(text),
        Message::Operator { .. } | Message::Engine { .. } | Message::Assistant { .. } => None,
    });
    texts.fold((0, 0), |(operator, somebody), text| {
        let is = |start: &str| usize::from(text.starts_with(start));
        (operator + is("the operator changed the arg"), somebody + is("somebody elsewhere changed the arg"))
    })
}

/// A change that was made elsewhere is never the operator's: not when the run is brought here, not where it goes back to
/// before that, and not in a branch that begins there.
#[test]
fn a_change_from_elsewhere_stays_one() {
    let (id, records) = golden("second/1-life-173");
    let mut told = 0;
    for place in places(&id, &records) {
        let run = Run::fold(&id, &records[..place]).unwrap();
        let (operator, somebody) = changes(&run);
        assert_eq!(somebody, 0);
        let (copy, imported) =
            machine::lineage::import(run.clone(), lineage::Here::default(), &client(), later(&run)).unwrap();
        assert_eq!(changes(&copy), (0, operator));
        let mut journal = records[..place].to_vec();
        journal.push(imported);
        assert_eq!(Run::fold(&id, &journal).unwrap(), copy);
        for (to, seq) in lineage::boundaries(&journal) {
            let past = Run::fold(&id, &records[..usize::try_from(seq.0).unwrap()]).unwrap();
            let (operator, _) = changes(&past);
            if !matches!(copy.status, Status::Completed(_)) {
                let back = machine::lineage::rewind(&copy, &journal, to, &client(), later(&copy)).unwrap().run;
                assert_eq!(changes(&back), (0, operator), "back to {to}");
            }
            let terms = Terms::clone(&copy.terms);
            let (branch, _) = machine::lineage::fork(past, &copy, to, terms, &client(), later(&copy)).unwrap();
            assert_eq!(changes(&branch), (0, operator), "a branch at {to}");
            told += operator;
        }
    }
    assert!(told > 0);
}

/// The notes of a screen that read a journal in pages: once, and once more because it is gone back in.
fn told(id: &RunId, journal: &[Record]) -> Vec<Note> {
    let mut reading = Reading::new(id);
    journal.chunks(7).for_each(|page| reading.take(page));
    let Err(mut again) = reading.end() else { panic!("the states that it goes back to were not known") };
    journal.chunks(7).for_each(|page| again.take(page));
    let Ok(past) = again.end() else { panic!("all that it goes back to was known") };
    let run = Run::fold(id, journal).unwrap();
    let mut app = App::new(run, Moment::default(), Options::default());
    app.update(Msg::Past(Box::new(past)), Moment::default());
    notes(&app.chronicle)
}

/// The same of one that has all of it at once.
fn whole(id: &RunId, journal: &[Record]) -> Vec<Note> {
    let mut chronicle = Chronicle::default();
    let origin = |record: &Record| lineage::origin(lineage::brought(journal), record.seq);
    Run::fold_each(id, journal, |record, run, talk| chronicle.take(record, run, talk, origin(record))).unwrap();
    notes(&chronicle)
}

fn notes(chronicle: &Chronicle) -> Vec<Note> {
    let notes: Vec<Note> = (0..100).flat_map(|n| chronicle.of(n).cloned()).collect();
    assert!(notes.len() > 3, "{notes:?}");
    notes
}

#[test]
fn a_completed_run_and_one_without_an_iteration_are_not_gone_back_in() {
    let (id, records) = golden("1-first-rehearsal");
    let run = Run::fold(&id, &records).unwrap();
    let refused = machine::lineage::rewind(&run, &records, 1, &client(), later(&run)).unwrap_err();
    assert!(matches!(refused, Refusal::Ended(Status::Completed(_))));
    assert!(refused.to_string().contains("`tiller fork RUN --goal TEXT` goes on from its end"), "{refused}");
    let refused = machine::lineage::beginning(&records[..4], None).unwrap_err();
    assert!(refused.to_string().contains("no iteration of this run is closed yet"), "{refused}");
}

#[test]
fn a_rewind_that_does_not_fit_is_no_record() {
    let (id, records) = golden("1-first-life-4");
    let place = *places(&id, &records).last().unwrap();
    let whole = check(&id, &records[..place], 2);
    for wrong in [1, 3, 7, u64::MAX] {
        let mut journal = whole.clone();
        let Some(Record { event: Event::Rewound { to_seq, .. }, .. }) = journal.last_mut() else { panic!("no rewind") };
        to_seq.0 = to_seq.0.saturating_add(wrong);
        assert!(Run::fold(&id, &journal).is_err(), "{wrong}");
    }
}

/// What was before the fork is its parent's: going back there would take up the parent's goal, limits and folder.
#[test]
fn a_fork_is_gone_back_in_no_further_than_to_its_beginning() {
    let (_, records) = golden("1-first-rehearsal");
    let (n, _) = lineage::boundaries(&records)[2];
    let (beginning, _) = machine::lineage::beginning(&records, Some(n)).unwrap();
    let (parent, child) = (RunId::from_entropy([1; 12]), RunId::from_entropy([2; 12]));
    let past = Run::fold(&child, beginning).unwrap();
    let stands = Run::fold(&parent, &records).unwrap();
    let goal = Goal::try_from("another goal".to_string()).unwrap();
    let terms = Terms { goal, ..Terms::clone(&past.terms) };
    let (run, forked) = machine::lineage::fork(past, &stands, n, terms, &client(), Now::default()).unwrap();
    let cancel = Input::Command(Command::Cancel(Cancel::Now), client());
    let cancelled = turn(&run, &cancel, later(&run)).unwrap();
    let run = cancelled.run;
    let mut journal = beginning.to_vec();
    journal.push(forked.clone());
    journal.extend(cancelled.records);

    assert_eq!(lineage::boundaries(&journal), [(n, forked.seq)]);
    let refused = machine::lineage::rewind(&run, &journal, n - 1, &client(), later(&run)).unwrap_err();
    assert!(refused.to_string().contains(&n.to_string()), "{refused}");
    let back = machine::lineage::rewind(&run, &journal, n, &client(), later(&run)).unwrap();
    assert_eq!(back.run.status, Status::Parked(ParkReason::Paused));
    assert_eq!((&back.run.terms, &back.run.lineage, back.run.created), (&run.terms, &run.lineage, run.created));
    journal.extend(back.records);
    assert_eq!(Run::fold(&child, &journal).unwrap(), back.run);
}

/// A price that the operator told is a fact. To go on without one is leave: it outlives a rewind, and no fork has it.
#[test]
fn what_was_said_about_the_price_stays_said() {
    let (id, mut records) = golden("1-first-life-4");
    let Event::RunCreated { terms } = &mut records[0].event else { panic!("{:?}", records[0]) };
    terms.model.price = None;
    let told = Price { input: 1, cache_read: 1, cache_write: 1, output: 1 };
    let (n, seq) = lineage::boundaries(&records)[0];
    for price in [Some(told), None] {
        let place = places(&id, &records).into_iter().find(|place| *place as u64 > seq.0).unwrap();
        let mut journal = records[..place].to_vec();
        let end = Run::fold(&id, &journal).unwrap();
        let event = Event::PriceChosen { price, by: client() };
        journal.push(Record { seq: end.seq.next(), at: end.at, active: Span(0), event });
        let run = Run::fold(&id, &journal).unwrap();
        let back = machine::lineage::rewind(&run, &journal, n, &client(), later(&run)).unwrap().run;
        assert_eq!(back.pricing, price.map_or(Pricing::Off, Pricing::Known));
        let terms = Terms::clone(&back.terms);
        let (fork, _) = machine::lineage::fork(back.clone(), &back, n, terms, &client(), Now::default()).unwrap();
        assert_eq!(fork.pricing, Pricing::of(price));
    }
}

#[test]
fn s_66_a_fork_inherits_the_talk_and_the_plan_and_no_leave() {
    for name in names() {
        let (_, records) = golden(&name);
        let parent = RunId::from_entropy([1; 12]);
        let mut stands = Run::fold(&parent, &records).unwrap();
        for (n, seq) in lineage::boundaries(&records) {
            let (beginning, iteration) = machine::lineage::beginning(&records, Some(n)).unwrap();
            assert_eq!((beginning.len() as u64, iteration), (seq.0, n));
            let child = RunId::from_entropy([2; 12]);
            let past = Run::fold(&child, beginning).unwrap();
            // Trust that the parent was started with is not had again, and what was taken back stays taken back.
            let goal = Goal::try_from("another goal".to_string()).unwrap();
            let terms = Terms { goal, trust: Trust::FullTrust, ..Terms::clone(&past.terms) };
            let now = Now { at: Timestamp(9), active: Span(0) };
            stands.trust = if n % 2 == 0 { Trust::Plan } else { Trust::FullTrust };
            let (run, record) = machine::lineage::fork(past.clone(), &stands, n, terms, &client(), now).unwrap();
            let mut journal = beginning.to_vec();
            journal.push(record);
            assert_eq!(Run::fold(&child, &journal).unwrap(), run);
            assert_eq!((&run.id, &run.status, run.created), (&child, &Status::Queued, Timestamp(9)));
            assert!(run.progress.granted.is_empty() && run.waiting().is_empty() && run.interjections.is_empty());
            assert_eq!(run.progress.denied, past.progress.denied);
            assert_eq!((run.pool.spent(), run.pool.limits()), (MicroUsd(0), &past.terms.limits));
            let line = run.lineage.clone().unwrap();
            assert_eq!(run.trust, stands.trust.min(Trust::Ask));
            assert_eq!((line.parent, line.iteration, line.cost), (parent.clone(), n, past.pool.spent()));
            assert_eq!(run.transcript.len(), past.transcript.len() + 1, "the other goal is told");
            assert_eq!(run.next.call, past.next.call);
            let owner = Owner { pid: 1, host: "box".to_string(), version: "0".to_string(), mode: OwnerMode::Drives };
            let turned = turn(&run, &Input::Recovered { owner, lacks: Vec::new() }, later(&run)).unwrap();
            assert_eq!((turned.run.iteration.n, turned.run.iteration.is_open), (n + 1, true));
        }
    }
}

#[test]
fn a_run_from_elsewhere_has_no_leave_wherever_its_journal_ends() {
    let mut left = [0, 0];
    for name in names() {
        let (id, records) = golden(&name);
        Run::fold_each(&id, &records, |last, run, _| {
            if run.check().is_err() || matches!(run.status, Status::Completed(_)) {
                return;
            }
            let (end, mut foreign) = (last.seq, run.clone());
            foreign.trust = Trust::FullTrust;
            foreign.granted_tools.insert("shell".to_string());
            left[0] += foreign.calls.values().filter(|call| call.state == CallState::Approved).count();
            left[1] += foreign.running_calls().count();
            let (run, record) = machine::lineage::import(
                foreign,
                lineage::Here::default(),
                &client(),
                Now { at: Timestamp(last.at.0 + 1_000), active: last.active },
            )
            .unwrap();
            assert_eq!(record.event.name(), "imported");
            assert_eq!(run.trust, Trust::Ask);
            assert!(run.granted_tools.is_empty() && run.progress.granted.is_empty());
            for call in run.calls.values() {
                let fits = matches!(
                    call.state,
                    CallState::Proposed
                        | CallState::Denied { .. }
                        | CallState::Closed(_)
                        | CallState::OutcomeUnknown { probed: true }
                );
                assert!(fits && (call.state != CallState::Proposed || call.facts.is_none()), "{name} {end} {call:?}");
            }
            let owner = Owner { pid: 1, host: "box".to_string(), version: "0".to_string(), mode: OwnerMode::Drives };
            let turned = turn(&run, &Input::Recovered { owner, lacks: Vec::new() }, later(&run)).unwrap();
            let started = turned.records.iter().any(|one| matches!(one.event, Event::ToolCallStarted { .. }));
            assert!(!started, "{name} {end}");
        })
        .unwrap();
    }
    assert!(left.iter().all(|count| *count > 0), "{left:?}");
}
