//! One decision for each call, in whatever order two clients, a stale screen, a list and the world come: every order is
//! played.

use tiller::domain::approval::By;
use tiller::domain::approval::Decision;
use tiller::domain::command::Command;
use tiller::domain::command::Refusal;
use tiller::domain::event::Event;
use tiller::domain::event::Record;
use tiller::domain::id::CallId;
use tiller::domain::id::ClientId;
use tiller::domain::run::Run;
use tiller::domain::run::Waits;
use tiller::domain::time::Now;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;
use tiller::domain::tool::Digest;
use tiller::machine::Input;
use tiller::machine::turn;

use crate::machine::reading;
use crate::machine::stage::Stage;

const NOW: Now = Now { at: Timestamp(2_000), active: Span(0) };

/// Where c2 was allowed and runs, and three more of its reply wait.
fn waiting() -> Stage {
    let mut stage = Stage::new("");
    for line in ["own", "reply todos a", "reply write f one | shell x | shell y | shell z", "prepared", "allow c2"] {
        stage.take(line);
    }
    stage
}

/// What happens, each once: the world first, of which the second needs the first.
fn happenings(stage: &Stage) -> Vec<(&'static str, Input)> {
    let seen = |id: u32| stage.run.calls[&CallId(id)].digest().unwrap();
    let decide = |id: u32, digest: Digest, decision| Command::Decide { call: CallId(id), digest, decision };
    let list = || Command::AllowAll { calls: (3..=5).map(|id| (CallId(id), seen(id))).collect() };
    let by = |client: &str, command| Input::Command(command, ClientId(client.to_string()));
    vec![
        ("drift", reading::input(stage, "drifted c2 the file changed")),
        ("ask anew", Input::Tick),
        ("one allows", by("one", decide(3, seen(3), Decision::AllowOnce))),
        ("two denies", by("two", decide(3, seen(3), Decision::Deny("no".to_string())))),
        ("a stale screen", by("stale", decide(4, Digest("stale".to_string()), Decision::AllowOnce))),
        ("one lets all", by("one", list())),
        ("two lets all", by("two", list())),
    ]
}

/// What was found out of c2 after it drifted: another file than the one that was shown.
fn found_anew(run: &Run) -> Input {
    let unprepared = vec![run.calls[&CallId(2)].clone()];
    let stage = Stage { run: run.clone(), journal: Vec::new(), now: NOW, unprepared, unread: None };
    reading::input(&stage, "prepared c2=changed")
}

struct Played {
    orders: u32,
    lists: u32,
}

/// Plays what is left in every order.
fn play(run: &Run, journal: &[Record], left: &[(&'static str, Input)], told: &[String], played: &mut Played) {
    if left.is_empty() {
        check(run, journal, told);
        // Folding is slow, and what it could show is shown everywhere.
        if played.orders.is_multiple_of(64) {
            assert_eq!(Run::fold(&run.id, journal).unwrap(), *run, "{told:?}");
        }
        played.orders += 1;
        played.lists += u32::from(told.iter().any(|line| line.ends_with("lets all: done")));
    }
    for (place, (name, input)) in left.iter().enumerate() {
        let input = match *name {
            "ask anew" if left.iter().any(|(other, _)| *other == "drift") => continue,
            "ask anew" => found_anew(run),
            _ => input.clone(),
        };
        let mut rest = left.to_vec();
        rest.remove(place);
        let (mut told, mut journal) = (told.to_vec(), journal.to_vec());
        match turn(run, &input, NOW) {
            Ok(turned) => {
                told.push(format!("{name}: done"));
                journal.extend(turned.records);
                play(&turned.run, &journal, &rest, &told, played);
            }
            Err(Refusal::AlreadyDecided(_)) => {
                told.push(format!("{name}: decided already"));
                play(run, &journal, &rest, &told, played);
            }
            Err(Refusal::BindingChanged(_)) => {
                told.push(format!("{name}: not what was seen"));
                play(run, &journal, &rest, &told, played);
            }
            Err(other) => panic!("{told:?}, then {name}: {other}"),
        }
    }
}

/// What must be so at the end of every order.
fn check(run: &Run, journal: &[Record], told: &[String]) {
    let decisions = |id: u32| {
        let is_one = |record: &&Record| matches!(&record.event, Event::ApprovalDecided { call, by: By::Operator(_), .. } if *call == CallId(id));
        journal.iter().filter(is_one).count()
    };
    let said = |name: &str, what: &str| told.iter().any(|line| *line == format!("{name}: {what}"));
    let won = ["one allows", "two denies", "one lets all", "two lets all"].iter().filter(|name| said(name, "done"));
    assert_eq!((won.count(), decisions(3)), (1, 1), "of all who decide about c3 one wins: {told:?}");
    let lists = ["one lets all", "two lets all"].iter().filter(|name| said(name, "done")).count();
    assert_eq!((decisions(4), decisions(5)), (lists, lists), "a list is all or nothing: {told:?}");
    assert!(!said("a stale screen", "done"), "{told:?}");
    // The fourth came back while the list was on the screens: nobody said anything about what it is now.
    assert_eq!(decisions(2), 1, "the one before it drifted: {told:?}");
    assert!(run.waiting().iter().any(|(call, waits)| call.id == CallId(2) && *waits == Waits::Decision), "{told:?}");
}

#[test]
fn s_35_in_every_order_one_decision_counts_and_what_came_meanwhile_waits() {
    let stage = waiting();
    let mut played = Played { orders: 0, lists: 0 };
    play(&stage.run, &stage.journal, &happenings(&stage), &[], &mut played);
    assert_eq!(played.orders, 2_520, "all orders of seven, two of which have an order of their own");
    assert!(played.lists > 500 && played.lists < 2_520, "{}", played.lists);
}
