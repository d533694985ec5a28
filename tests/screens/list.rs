//! The list of runs: one width for each column, help for what has the keys, and a goal that is half written stays.

use crossterm::event::KeyCode;
use crossterm::event::KeyEvent;
use crossterm::event::KeyModifiers;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use tiller::domain::id::RunId;
use tiller::domain::status::Finish;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Status;
use tiller::domain::summary::Listed;
use tiller::domain::summary::Summary;
use tiller::tui::app::Moment;
use tiller::tui::list::Asked;
use tiller::tui::list::Choice;
use tiller::tui::list::List;
use tiller::tui::list::ListOptions;
use tiller::tui::view::runs;

use crate::screens::story::flat;
use crate::screens::story::pursuing;
use crate::screens::story::text_of;

const GOAL: &str =
    "mend the parser so that every one of its forty-two tests passes, and say in the notes what was wrong";

/// Runs with this goal that stand in different ways, one of them held by another process.
fn all() -> Vec<Listed> {
    let one = |(place, status): (usize, Status)| {
        let mut summary = Summary::of(&pursuing().run);
        summary.id = RunId::try_from(format!("aaaaaaaaaaa{place}")).unwrap();
        (summary.goal, summary.status, summary.rehearsal) = (GOAL.to_string(), status, place == 0);
        Listed::Run { summary: Box::new(summary), held_by: (place == 0).then_some(1_234_567) }
    };
    let approval = Status::Parked(ParkReason::Approval);
    let statuses = [approval, Status::Queued, Status::Completed(Finish::Verified), Status::Cancelled];
    statuses.into_iter().enumerate().map(one).collect()
}

fn list(options: ListOptions) -> List {
    List::new(all(), Moment::default(), options)
}

fn frame(list: &List, size: (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal
        .draw(|frame| {
            runs::draw(frame, list);
        })
        .unwrap();
    text_of(terminal.backend().buffer())
}

fn press(list: &mut List, code: KeyCode) -> Asked {
    list.key(KeyEvent::from(code))
}

fn type_in(list: &mut List, text: &str) {
    for letter in text.chars() {
        press(list, KeyCode::Char(letter));
    }
}

#[test]
fn goals_are_cut_at_one_width_in_all_rows() {
    for size in [(120, 36), (100, 30), (80, 24), (60, 20), (50, 12)] {
        let frame = frame(&list(ListOptions::default()), size);
        let cut = |row: &str| {
            let goal = &row[row.find("mend ")?..row.find('…')?];
            row.contains("aaaaaa").then(|| goal.to_string())
        };
        let goals: Vec<String> = frame.lines().filter_map(cut).collect();
        assert_eq!(goals.len(), 4, "{size:?}\n{frame}");
        assert!(goals.iter().all(|goal| *goal == goals[0]), "{size:?}\n{frame}");
        // One long status does not leave all of them without a goal.
        assert!(goals[0].len() >= usize::from(size.0 / 5) || size.0 <= 60, "{size:?}\n{frame}");
    }
    // What the row of the selected run has no room for stands below.
    assert!(frame(&list(ListOptions::default()), (80, 24)).contains("in process 1234567"));
}

#[test]
fn the_help_is_about_what_has_the_keys() {
    for (opens, has, has_not) in [
        ("", ["in the list of runs", "write the goal of a new run"], "writing a new goal"),
        ("n", ["writing a new goal", "start a run with this goal"], "in the list of runs"),
    ] {
        let mut list = list(ListOptions::default());
        type_in(&mut list, opens);
        press(&mut list, KeyCode::F(1));
        let help = frame(&list, (120, 60));
        assert!(has.iter().all(|part| help.contains(part)) && !help.contains(has_not), "{opens:?}\n{help}");
    }
}

/// The list gives it back with the choice, takes it again without giving it the keys, and is not left by a key before it
/// is cleared.
#[test]
fn a_goal_that_is_half_written_stays() {
    let mut first = list(ListOptions::default());
    type_in(&mut first, "nmend half");
    press(&mut first, KeyCode::Esc);
    assert!(matches!(press(&mut first, KeyCode::Enter), Asked::Choice(Choice::Open(_))));
    let draft = first.draft();
    let mut again = list(ListOptions { draft, ..ListOptions::default() });
    assert!(frame(&again, (80, 24)).contains("new goal › mend half"), "{}", frame(&again, (80, 24)));
    press(&mut again, KeyCode::Down);
    assert_eq!(press(&mut again, KeyCode::Char('q')), Asked::Nothing);
    let told = "q leaves only while nothing is written here: ^C clears it, then q leaves";
    assert!(flat(&frame(&again, (80, 24))).contains(told), "{}", frame(&again, (80, 24)));
    type_in(&mut again, "n a goal");
    assert_eq!(again.draft(), "mend half a goal");
    press(&mut again, KeyCode::Esc);
    again.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
    assert_eq!(again.draft(), "");
    assert_eq!(press(&mut again, KeyCode::Char('q')), Asked::Choice(Choice::Leave));
    // What could not be started goes on being written.
    let mut refused = list(ListOptions { draft: "mend".to_string(), writes: true, ..ListOptions::default() });
    type_in(&mut refused, " more");
    assert_eq!(refused.draft(), "mend more");
}

/// What could not be opened is selected still, so that Enter, pressed again, opens no other.
#[test]
fn the_run_that_was_meant_is_selected_again() {
    let meant = RunId::try_from("aaaaaaaaaaa2".to_string()).unwrap();
    let options = || ListOptions { selected: Some(meant.clone()), ..ListOptions::default() };
    let mut again = list(options());
    assert_eq!(press(&mut again, KeyCode::Enter), Asked::Choice(Choice::Open(meant.clone())));
    again.refresh(all());
    assert_eq!(press(&mut again, KeyCode::Enter), Asked::Choice(Choice::Open(meant.clone())));
    // Where it is not there any more, the first is.
    let mut gone = List::new(all().drain(..1).collect(), Moment::default(), options());
    assert!(matches!(press(&mut gone, KeyCode::Enter), Asked::Choice(Choice::Open(id)) if id != meant));
}

/// What can't go on says so in its row, is no unfinished run, and stands below what can.
#[test]
fn an_imported_rehearsal_says_that_it_cannot_go_on() {
    let mut runs = all();
    for (place, one) in runs.iter_mut().enumerate() {
        let Listed::Run { summary, held_by } = one else { continue };
        (summary.rehearsal, summary.brought, *held_by) = (place != 1, place != 1, None);
    }
    let list = List::new(runs, Moment::default(), ListOptions::default());
    for size in [(120, 36), (80, 24)] {
        let frame = frame(&list, size);
        assert!(frame.contains("4 runs, 1 unfinished"), "{frame}");
        let row = |part: &str| frame.lines().position(|row| row.contains(part));
        let (open, brought) = (row("queued"), row("imported rehearsal, can't go on"));
        assert!(open.is_some() && open < brought, "{frame}");
        assert!(frame.contains("imported rehearsal · "), "{frame}");
    }
}

#[test]
fn a_key_that_does_not_leave_is_not_offered() {
    let mut list = list(ListOptions::default());
    assert!(frame(&list, (120, 36)).contains("q leave"));
    type_in(&mut list, "nmend");
    for _ in 0..2 {
        let frame = frame(&list, (120, 36));
        assert!(!frame.contains("q leave") && !frame.contains("^D leave"), "{frame}");
        press(&mut list, KeyCode::Esc);
    }
}
