//! Any size, any text: nothing panics, no border breaks, and a long run draws as fast as a short one.

use std::time::Duration;
use std::time::Instant;

use crossterm::event::KeyCode;
use crossterm::event::KeyModifiers;
use tiller::domain::plan::TodoStatus;
use tiller::domain::status::Course;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Phase;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::OutcomeKind;

use crate::screens::story::Show;
use crate::screens::story::Story;
use crate::screens::story::terms;

const AWKWARD: &str = "日本語 👩\u{200d}🚀 e\u{301}\u{302}\u{303} \u{202e}שלום\u{202c} عربى ﷽ \u{1b}[31mred\u{1b}[0m\ttab\r\nnext 각 ⟦x⟧ ｆｕｌｌ\u{3000}wide 🏳\u{fe0f}\u{200d}🌈 \u{0}";

fn awkward() -> Story {
    let mut story = Story::planned(terms(AWKWARD));
    story.plan(&[(AWKWARD, TodoStatus::InProgress), (AWKWARD, TodoStatus::Blocked), (AWKWARD, TodoStatus::Pending)]);
    story.ask(9_000);
    story.reply(&AWKWARD.repeat(9), 6_000, 300);
    let read = story.propose_read(AWKWARD);
    let call = story.call(AWKWARD, AWKWARD, EffectClass::External);
    story.command_waits(&AWKWARD.repeat(3));
    story.command_waits(AWKWARD);
    story.read(read, &AWKWARD.repeat(30));
    story.finish(call, OutcomeKind::Unknown, AWKWARD, 3);
    story.park(ParkReason::Approval);
    story
}

#[test]
fn no_size_breaks_the_screen() {
    let popups: [&[KeyCode]; 6] = [
        &[],
        &[KeyCode::Char('v')],
        &[KeyCode::Char('+')],
        &[KeyCode::Char('X')],
        &[KeyCode::Char('?')],
        &[KeyCode::Char('z')],
    ];
    for keys in popups {
        let mut show = Show::of(awkward(), (120, 36), 0);
        show.tell(tiller::tui::app::Msg::Paste(AWKWARD.repeat(4)));
        show.chord(KeyCode::Char('g'), KeyModifiers::CONTROL);
        for key in keys {
            show.press(*key);
        }
        for width in (1..130).step_by(7).chain([39, 40, 59, 60, 99, 100]) {
            for height in (1..40).step_by(5).chain([9, 10, 14, 15, 23, 24]) {
                show.resize(width, height);
                show.press(KeyCode::PageDown);
                show.frame();
            }
        }
    }
}

#[test]
fn awkward_text_breaks_no_border() {
    for size in [(120, 36), (100, 30), (80, 24), (61, 16)] {
        let mut show = Show::of(awkward(), size, 0);
        for focus in ['1', '2', '3', '4'] {
            show.chord(KeyCode::Char(focus), KeyModifiers::ALT);
            let text = show.frame();
            let width = usize::from(size.0);
            for row in text.lines().filter(|row| row.starts_with(['│', '┃'])) {
                assert_eq!(tiller::domain::cells::cells(row), width, "{row:?} in\n{text}");
                assert!(row.ends_with(['│', '┃', '┘', '┛', '┐', '┓']), "{row:?} in\n{text}");
            }
        }
    }
}

#[test]
fn everything_is_back_after_a_resize() {
    let mut show = Show::of(awkward(), (120, 36), 0);
    let before = show.frame();
    for (width, height) in [(20, 5), (1, 1), (120, 36)] {
        show.resize(width, height);
        show.frame();
    }
    assert_eq!(show.frame(), before);
}

#[test]
fn a_run_of_ten_thousand_iterations_draws_as_fast_as_a_short_one() {
    // A ratio in one run: it holds on a slow and busy machine, too. Laying out everything would be a hundredfold.
    let (short, long) = (ten_frames_of(100), ten_frames_of(10_000));
    assert!(long < short * 20, "ten frames of a short run in {short:?}, of a long one in {long:?}");
}

fn ten_frames_of(iterations: u32) -> Duration {
    let mut story = Story::planned(terms("count"));
    story.close(Course::Continue, &[]);
    for _ in 0..iterations {
        story.iteration(Phase::Pursue);
        let call = story.call("note", r#"{"text":"counted"}"#, EffectClass::Control);
        story.finish(call, OutcomeKind::Done, "noted", 0);
        story.close(Course::Continue, &[]);
    }
    let mut show = Show::of(story, (120, 36), 0);
    show.frame();
    show.chord(KeyCode::Char('2'), KeyModifiers::ALT);
    let start = Instant::now();
    for _ in 0..10 {
        show.press(KeyCode::PageUp);
        show.frame();
    }
    start.elapsed()
}
