//! A ledger that was lost or damaged is made anew from the journals, and what can't be counted is told (docs/JOURNAL.md,
//! "The ledger").

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use crate::homes::home;
use crate::homes::owner;
use crate::homes::run_id;
use crate::real::Stage;
use tiller::domain::budget::Limit;
use tiller::domain::budget::ReservationId;
use tiller::domain::command::Command;
use tiller::domain::daily::Hold;
use tiller::domain::daily::What;
use tiller::domain::event::Event;
use tiller::domain::event::Record;
use tiller::domain::id::ClientId;
use tiller::domain::id::ModelCallId;
use tiller::domain::id::RunId;
use tiller::domain::lineage::Here;
use tiller::domain::model::Dialect;
use tiller::domain::money::MicroUsd;
use tiller::domain::pool::Known;
use tiller::domain::run::Run;
use tiller::domain::status::Status;
use tiller::domain::terms::Terms;
use tiller::domain::time::Now;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;
use tiller::machine::Input;
use tiller::machine::lineage;
use tiller::machine::turn;
use tiller::store::Journal;
use tiller::store::ledger::Ledger;
use tiller::store::ledger::Mended;
use tiller::store::transfer;
use tokio::runtime::Runtime;

/// Late enough that a day before it is after 1970.
const NOW: Timestamp = Timestamp(200_000_000);

/// The records of a run that spends real money, the last of them at this moment.
fn records(name: &str, last: Timestamp) -> Vec<Record> {
    let text = fs::read_to_string(format!("tests/fixtures/journals/{name}.jsonl")).unwrap();
    let mut records = transfer::read(&text).unwrap().records;
    let end = records.last().unwrap().at;
    for record in &mut records {
        record.at = Timestamp(last.0 - end.since(record.at).0);
        if let Event::RunCreated { terms } = &mut record.event {
            let mut paid = Terms::clone(terms);
            paid.rehearsal = false;
            paid.model.dialect = Dialect::Openai;
            **terms = paid;
        }
    }
    records
}

/// A state directory with two runs that spent money, and its ledger as their engines would have written it.
struct World {
    dir: tempfile::TempDir,
    runtime: Runtime,
    spent: MicroUsd,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        home(dir.path());
        let world = World { dir, runtime: Runtime::new().unwrap(), spent: MicroUsd(0) };
        let spent = [(1, "1-first-parked"), (2, "1-first-life-6")].map(|(id, name)| world.add(&run_id(id), name));
        World { spent: spent[0].plus(spent[1]), ..world }
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    fn ledger(&self) -> Ledger {
        Ledger::new(self.state(), Limit::At(1_000_000_000))
    }

    fn file(&self) -> PathBuf {
        self.state().join("ledger.jsonl")
    }

    /// Makes a run; gives what it spent.
    fn add(&self, id: &RunId, name: &str) -> MicroUsd {
        let records = records(name, NOW);
        let run = Run::fold(id, &records).unwrap();
        assert!(run.pool.spent().0 > 0 && run.pool.reserved().is_none());
        for record in &records {
            if let Event::BudgetReserved { reservation } = &record.event {
                let hold = Hold { id: reservation.id, at: record.at };
                self.ledger().hold(id, hold, reservation.amount).unwrap().unwrap();
                assert!(self.ledger().begin(id, hold, record.at).unwrap());
            }
            if let Event::BudgetSettled { id: call, charge } = &record.event {
                let hold = Hold { id: *call, at: run.pool.made(*call).unwrap() };
                self.ledger().note(id, &[(hold, What::Charged(charge.amount))], record.at).unwrap();
            }
        }
        drop(self.runtime.block_on(home(self.dir.path()).create(id, &records)).unwrap());
        run.pool.spent()
    }

    /// Asserts what is counted, and gives what was mended.
    fn check(&self, what: &str) -> Mended {
        let mended = self.ledger().mend(NOW).unwrap();
        assert_eq!(self.ledger().spent(NOW).unwrap(), self.spent, "{what}: {mended:?}");
        assert_eq!(self.ledger().mend(NOW).unwrap().flaw, None, "{what}");
        mended
    }
}

#[test]
fn whatever_becomes_of_the_ledger_every_charge_counts_once() {
    let world = World::new();
    assert_eq!(world.check("whole"), Mended::default());
    let whole = fs::read_to_string(world.file()).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let half = lines[..lines.len() / 2].join("\n");
    let rest = lines[lines.len() / 2..].join("\n");
    let own = run_id(1);
    let unknown = format!("{{\"at\":{},\"run\":\"{own}\",\"call\":1,\"attempt\":1,\"guessed\":7}}", NOW.0);
    let unreadable = "has lines that can't be read";
    let digits = whole.replacen("\"charged\":", "\"charged\":9", 1);
    let cases: [(&str, Vec<u8>, &str); 9] = [
        ("other digits in a line", digits.into_bytes(), "has lines that are not what was written"),
        ("empty", Vec::new(), "is shorter than it was"),
        ("cut between lines", format!("{half}\n").into_bytes(), "is shorter than it was"),
        ("cut in a line", half.as_bytes()[..half.len() - 9].to_vec(), "is shorter than it was"),
        ("one line torn, others after it", format!("{}\n{rest}\n", &half[..half.len() - 9]).into_bytes(), unreadable),
        ("a line of a kind that nobody knows", format!("{half}\n{unknown}\n{rest}\n").into_bytes(), unreadable),
        ("bytes that are no text", [half.as_bytes(), b"\n\xff\0\n", rest.as_bytes(), b"\n"].concat(), unreadable),
        ("longer than it can be", vec![b'\n'; 64 * 1024 * 1024 + 1], "is longer than it can be"),
        ("nothing but zeroes", vec![0; whole.len()], "is shorter than it was"),
    ];
    for (what, bytes, flaw) in cases {
        fs::write(world.file(), &bytes).unwrap();
        let mended = world.check(what);
        assert_eq!((mended.flaw, mended.unread.len()), (Some(flaw), 0), "{what}");
        assert_eq!(fs::read(world.state().join("ledger.damaged.jsonl")).unwrap(), bytes, "{what}: it is kept");
    }
    // Nobody who only uses it overlooks the damage.
    fs::write(world.file(), &half).unwrap();
    assert_eq!(world.ledger().spent(NOW).unwrap(), world.spent);
    for lock_as_well in [false, true] {
        fs::remove_file(world.file()).unwrap();
        if lock_as_well {
            fs::remove_file(world.state().join("ledger.lock")).unwrap();
        }
        let mended = world.check("gone");
        assert_eq!((mended.flaw, mended.unread.len()), (Some("is missing"), 0));
        assert!(mended.phrase().unwrap().starts_with("the ledger of what all runs spent is missing; it was made anew"));
    }
    fs::write(world.file(), "").unwrap();
    fs::write(world.state().join("ledger.lock"), "").unwrap();
    assert_eq!(world.check("empty, and never noted").flaw, Some("is empty"));
    // Its length was lost, or it was being made anew when that process was killed.
    let (lost, short) = ("has lost its length, so lines of it may be missing", "is shorter than it was");
    for (noted, flaw) in [(String::new(), lost), ("\0".repeat(21), lost), (format!("{}\n", u64::MAX), short)] {
        fs::write(world.file(), format!("{half}\n")).unwrap();
        fs::write(world.state().join("ledger.lock"), noted).unwrap();
        assert_eq!(world.check("cut between lines").flaw, Some(flaw));
    }
    fs::remove_file(world.file()).unwrap();
    fs::write(world.state().join("ledger.lock"), format!("{}\n", u64::MAX)).unwrap();
    assert_eq!(world.check("gone while it was made anew").flaw, Some("is missing"));
    // A torn end is no damage: what was being written was never acknowledged.
    let torn = format!("{}{}", fs::read_to_string(world.file()).unwrap(), &unknown[..30]);
    fs::write(world.file(), torn).unwrap();
    assert_eq!(world.check("torn end"), Mended::default());
    let (other, id) = (run_id(9), ReservationId { call: ModelCallId(1), attempt: 1 });
    world.ledger().hold(&other, Hold { id, at: NOW }, MicroUsd(5)).unwrap().unwrap();
    assert_eq!(world.ledger().spent(NOW).unwrap(), world.spent.plus(MicroUsd(5)));
    assert_eq!(world.ledger().mend(NOW).unwrap(), Mended::default(), "the next line is not glued to it");
}

#[test]
fn a_ledger_of_a_day_ago_is_not_missed_and_an_older_charge_does_not_count() {
    let world = World::new();
    fs::remove_file(world.file()).unwrap();
    let later = NOW.plus(Span(25 * 3_600_000));
    assert_eq!(world.ledger().mend(later).unwrap().phrase(), None);
    assert_eq!(world.ledger().spent(later).unwrap(), MicroUsd(0));
}

#[test]
fn runs_that_are_held_are_counted_and_what_they_settle_next_is_counted_once() {
    let world = World::new();
    let id = run_id(1);
    let held = world.runtime.block_on(home(world.dir.path()).resume(&id)).unwrap();
    fs::remove_file(world.file()).unwrap();
    let mended = world.check("while it is held");
    assert_eq!((mended.flaw, mended.unread), (Some("is missing"), Vec::new()));
    let (call, charge) = (records("1-first-parked", NOW).into_iter())
        .find_map(|record| match record.event {
            Event::BudgetSettled { id, charge } => Some((id, charge.amount)),
            _ => None,
        })
        .unwrap();
    let hold = Hold { id: call, at: held.1.pool.made(call).unwrap() };
    world.ledger().note(&id, &[(hold, What::Charged(charge))], NOW).unwrap();
    world.check("settled once more");
    drop(held);
}

#[test]
fn a_run_that_is_written_to_meanwhile_is_counted_as_far_as_it_was_acknowledged() {
    let world = World::new();
    let id = run_id(3);
    let records = records("1-first-life-70", NOW);
    let (first, rest) = records.split_at(1);
    let mut journal = world.runtime.block_on(home(world.dir.path()).create(&id, first)).unwrap();
    let charged = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    let mut looks = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for record in rest {
                world.runtime.block_on(journal.append(vec![record.clone()])).unwrap();
                if let Event::BudgetSettled { charge, .. } = &record.event {
                    charged.fetch_add(charge.amount.0, Ordering::SeqCst);
                }
            }
            is_over.store(true, Ordering::SeqCst);
        });
        while !is_over.load(Ordering::SeqCst) {
            let before = charged.load(Ordering::SeqCst);
            fs::remove_file(world.file()).unwrap();
            let mended = world.ledger().mend(NOW).unwrap();
            assert_eq!(mended.unread, Vec::new());
            let spent = world.ledger().spent(NOW).unwrap();
            assert!(spent.0 >= world.spent.0 + before, "{spent} of {} and {before}", world.spent);
            looks += 1;
        }
    });
    assert!(looks > 1, "it was never looked at while it was written to");
    fs::remove_file(world.file()).unwrap();
    world.ledger().mend(NOW).unwrap();
    let all = world.spent.plus(MicroUsd(charged.into_inner()));
    assert_eq!(world.ledger().spent(NOW).unwrap(), all);
}

#[test]
fn several_that_find_it_gone_make_it_anew_once() {
    let world = World::new();
    fs::remove_file(world.file()).unwrap();
    let (other, world) = (run_id(9), &world);
    std::thread::scope(|scope| {
        for call in 1..=6 {
            let other = other.clone();
            scope.spawn(move || {
                let id = ReservationId { call: ModelCallId(call), attempt: 1 };
                world.ledger().hold(&other, Hold { id, at: NOW }, MicroUsd(10)).unwrap().unwrap();
            });
        }
    });
    assert_eq!(world.ledger().spent(NOW).unwrap(), world.spent.plus(MicroUsd(60)));
}

#[test]
fn what_a_fork_or_a_copy_has_from_elsewhere_is_not_counted_again() {
    let world = World::new();
    let home = home(world.dir.path());
    let survey = home.survey(&run_id(2)).unwrap();
    let run = Run::fold(&run_id(2), &survey.records).unwrap();
    let (beginning, iteration) = lineage::beginning(&survey.records, None).unwrap();
    let past = Run::fold(&run_id(3), beginning).unwrap();
    let client = ClientId("test".to_string());
    let now = Now { at: NOW, ..Now::default() };
    let terms = Terms::clone(&past.terms);
    let (fork, record) = lineage::fork(past, &run, iteration, terms, &client, now).unwrap();
    home.branch(&fork, &survey.lines[..beginning.len()], &record).unwrap();
    let mut carried = transfer::read(&transfer::write(&run_id(2), &survey.lines).unwrap()).unwrap();
    let (_, own) =
        lineage::import(Run::fold(&run_id(4), &carried.records).unwrap(), Here::default(), &client, now).unwrap();
    carried.push(own).unwrap();
    home.import(&run_id(4), &carried).unwrap();
    fs::remove_file(world.file()).unwrap();
    assert_eq!(world.check("a fork and a copy").unread, Vec::new());
}

/// The records of a run of elsewhere, and the one with which `tiller import` goes on; and the run after it.
fn brought(id: &RunId, mut records: Vec<Record>) -> (Run, Vec<Record>) {
    let run = Run::fold(id, &records).unwrap();
    let now = Now { at: NOW, ..Now::default() };
    let here = Here { price: run.terms.model.price, with_checks: true };
    let (run, own) = lineage::import(run, here, &ClientId("test".to_string()), now).unwrap();
    records.push(own);
    (run, records)
}

/// A run whose process died elsewhere while its model was asked, imported and resumed here: what becomes of that call is no
/// cost of this place, and the next one is under way.
fn goes_on(id: &RunId, earlier: Timestamp) -> (Run, Vec<Record>) {
    let mut records = self::records("1-first-parked", earlier);
    let reserved = records.iter().rposition(|record| matches!(record.event, Event::BudgetReserved { .. })).unwrap();
    records.truncate(reserved + 2);
    let (mut run, mut records) = brought(id, records);
    let foreign = *run.pool.reserved().unwrap();
    let (recovered, resume) = (Input::Recovered { owner: owner(), lacks: Vec::new() }, Command::Resume);
    for input in [recovered, Input::Command(resume, ClientId("test".to_string()))] {
        let turned = turn(&run, &input, Now { at: NOW, ..Now::default() }).unwrap();
        (run, records) = (turned.run, [records, turned.records].concat());
    }
    assert!(run.pool.spent() >= foreign.amount, "it was charged in the run");
    assert_ne!(run.pool.reserved().unwrap().id, foreign.id);
    (run, records)
}

/// A run was put back to an earlier state and gave its numbers once more. The ledger has what the first life cost, and
/// lost what the second one did.
#[test]
fn what_a_second_life_under_the_same_numbers_cost_is_counted_again() {
    let world = World::new();
    let second = fs::read_to_string(world.file()).unwrap();
    let mut first = MicroUsd(0);
    for record in records("1-first-parked", NOW) {
        let Event::BudgetReserved { reservation } = record.event else { continue };
        let hold = Hold { id: reservation.id, at: Timestamp(record.at.0 - 1) };
        world.ledger().hold(&run_id(1), hold, reservation.amount).unwrap().unwrap();
        world.ledger().note(&run_id(1), &[(hold, What::Charged(MicroUsd(7)))], hold.at).unwrap();
        first = first.plus(MicroUsd(7));
    }
    let all = fs::read_to_string(world.file()).unwrap();
    fs::write(world.file(), all.strip_prefix(&second).unwrap()).unwrap();
    let world = World { spent: world.spent.plus(first), ..world };
    let mended = world.check("a second life");
    assert_eq!(mended.flaw, Some("is shorter than it was"));
    assert!(first > MicroUsd(0) && mended.regained > 0, "{mended:?}");
}

/// Of a ledger that lost a line nobody knows whether it said that a call had begun: an older journal releases none then.
#[test]
fn a_damaged_ledger_takes_every_open_call_for_begun() {
    let world = World::new();
    let id = ReservationId { call: ModelCallId(77), attempt: 1 };
    let hold = Hold { id, at: NOW };
    world.ledger().hold(&run_id(1), hold, MicroUsd(500)).unwrap().unwrap();
    assert!(world.ledger().begin(&run_id(1), hold, NOW).unwrap());
    let whole = fs::read_to_string(world.file()).unwrap();
    let begun = whole.lines().last().unwrap();
    let held = whole.lines().rev().nth(1).unwrap();
    let cut = whole.replace(&format!("{begun}\n"), "");
    for bad in [cut, whole.replace(begun, &begun.replace("begun", "begum")), whole.replace(held, "gone")] {
        fs::write(world.file(), bad).unwrap();
        assert!(world.ledger().mend(NOW).unwrap().flaw.is_some());
        world.ledger().settle_lost(&run_id(1), |_| Known::Unknown, NOW).unwrap();
        assert_eq!(world.ledger().spent(NOW).unwrap(), world.spent.plus(MicroUsd(500)));
    }
}

/// Copies of one export under names of their own, which go on in the same millisecond.
#[test]
fn copies_that_spend_at_the_same_moment_are_each_counted() {
    let world = World::new();
    let mut spent = world.spent;
    let earlier = Timestamp(NOW.0 - 1_000);
    for id in [run_id(5), run_id(6)] {
        let (run, records) = goes_on(&id, earlier);
        spent = spent.plus(run.pool.reserved().unwrap().amount);
        drop(world.runtime.block_on(home(world.dir.path()).create(&id, &records)).unwrap());
    }
    fs::remove_file(world.file()).unwrap();
    let world = World { spent, ..world };
    assert_eq!(world.check("two copies").unread, Vec::new());
}

#[test]
fn what_an_import_cost_elsewhere_is_not_counted_and_what_it_costs_here_is() {
    let mut world = World::new();
    let state = home(world.dir.path());
    let make = |world: &World, id: &RunId, records: &[Record]| {
        drop(world.runtime.block_on(state.create(id, records)).unwrap());
        fs::remove_file(world.file()).unwrap();
    };
    let earlier = Timestamp(NOW.0 - 1_000);
    let (run, records) = brought(&run_id(5), self::records("1-first-life-6", earlier));
    assert!(matches!(run.status, Status::Completed(_)) && run.pool.spent().0 > 0, "{:?}", run.status);
    make(&world, &run_id(5), &records);
    assert_eq!(world.check("one that ended there").unread, Vec::new());
    let (run, records) = goes_on(&run_id(6), earlier);
    make(&world, &run_id(6), &records);
    world.spent = world.spent.plus(run.pool.reserved().unwrap().amount);
    assert_eq!(world.check("one that goes on here").unread, Vec::new());
}

#[test]
fn what_can_not_be_counted_is_told_until_it_can() {
    let world = World::new();
    let id = run_id(2);
    let anchor = world.state().join("runs").join(id.as_str()).join("anchor");
    let kept = fs::read(&anchor).unwrap();
    let db = world.state().join("runs").join(id.as_str()).join("store/db");
    let store = fs::read(&db).unwrap();
    fs::write(&db, vec![7; store.len()]).unwrap();
    fs::remove_file(world.file()).unwrap();
    for _ in 0..2 {
        let mended = world.ledger().mend(NOW).unwrap();
        assert_eq!(mended.unread, std::slice::from_ref(&id));
        let phrase = mended.phrase().unwrap();
        assert!(phrase.contains(&format!("without all that run {id} spent")), "{phrase}");
        assert!(world.ledger().spent(NOW).unwrap() < world.spent);
    }
    fs::write(&db, store).unwrap();
    fs::write(&anchor, kept).unwrap();
    assert_eq!(world.check("as it was").unread, Vec::new());
    assert_eq!(world.check("and no word of it any more"), Mended::default());
}

fn damaged(path: &Path) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, vec![7; bytes.len()]).unwrap();
}

#[test]
fn the_operator_is_told_at_a_start_and_by_doctor() {
    let stage = Stage::new();
    stage.write(
        "config/tiller/tiller.toml",
        "model = \"near/m\"\n[providers.near]\nbase_url = \"https://127.0.0.1:1/v1\"\nkey = \"NO_SUCH_KEY\"\n[models.\"near/m\"]\nprice = \
         { input = \"1\", output = \"1\" }\n",
    );
    let doctor = |sentences: &[&str]| {
        // The key of its model is missing, which is a finding as well.
        stage.ask(&["doctor"]).check(13, sentences);
    };
    doctor(&["OK       daily budget   $0.00 of $20.00 spent"]);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let records = records("1-first-parked", Timestamp(u64::try_from(now).unwrap() - 1_000));
    let state = stage.path("state/tiller");
    let owner = owner();
    let home = tiller::store::place::Home::new(state.clone(), owner).unwrap();
    let runtime = Runtime::new().unwrap();
    let id = run_id(1);
    drop(runtime.block_on(home.create(&id, &records)).unwrap());
    let _ = fs::remove_file(state.join("ledger.jsonl"));
    fs::remove_file(state.join("ledger.lock")).unwrap();
    let spent = Run::fold(&id, &records).unwrap().pool.spent();
    doctor(&[
        &format!("PARTIAL  daily budget   {spent} of $20.00 spent"),
        "the ledger of what all runs spent is missing; it was made anew, with 12 lines from journals",
    ]);
    doctor(&[&format!("OK       daily budget   {spent} of $20.00 spent")]);
    // The same, and its journal can't be read either.
    fs::remove_file(state.join("ledger.jsonl")).unwrap();
    damaged(&home.run_dir(&id).join("store/db"));
    let told = format!("the ledger was made anew without all that run {id} spent");
    stage.ask(&["run", "do it", "--plain"]).check(13, &[&told]);
    assert_eq!(stage.ids().len(), 2, "a run is started all the same, beside the damaged one");
    doctor(&["PARTIAL  daily budget   $0.00 of $20.00", &told]);
}
