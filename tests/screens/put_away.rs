//! Iterations that a summary stands for: they are shown at once, their texts when they were read, and nothing that is
//! looked at moves meanwhile.

use crossterm::event::KeyCode;
use crossterm::event::KeyModifiers;
use tiller::domain::context::Author;
use tiller::domain::event::Event;
use tiller::domain::status::Course;
use tiller::domain::status::Phase;
use tiller::tui::app::Msg;
use tiller::tui::app::Out;

use crate::screens::story::Show;
use crate::screens::story::Story;
use crate::screens::story::terms;

const SIZES: [(u16, u16); 2] = [(120, 36), (80, 24)];

/// So many iterations, of which all but the last few are summarised. Each says something, and reads a file.
fn summarised(iterations: u32) -> Story {
    let mut story = Story::planned(terms("count"));
    story.close(Course::Continue, &[]);
    while story.run.iteration.n < iterations {
        story.iteration(Phase::Pursue);
        let n = story.run.iteration.n;
        story.ask(4_000);
        let said: Vec<String> = (0..n % 4 + 1).map(|line| format!("Words of iteration {n}, line {line}.")).collect();
        story.reply(&format!("{}\n{}", said.join("\n"), "and on ".repeat(10)), 3_000, 90);
        let call = story.propose_read(&format!("src/file_{n}.rs"));
        let lines: Vec<String> = (0..n % 5 + 3).map(|line| format!("{line} text {n} of the file")).collect();
        story.read(call, &lines.join("\n"));
        story.close(Course::Continue, &[]);
    }
    story.iteration(Phase::Pursue);
    let (to, summary) = (iterations - 3, "Facts found: none.".to_string());
    story.event(Event::ContextCompacted { from: 1, to, summary, author: Author::Model, before: 9_000, after: 2_000 });
    story.ask(4_000);
    story
}

/// A screen that came after all of it, and is not given texts by itself.
fn show(size: (u16, u16)) -> Show {
    let mut show = Show::late(summarised(40), size, 2_000);
    show.holds_texts = true;
    show.frame();
    show.chord(KeyCode::Char('2'), KeyModifiers::ALT);
    show.frame();
    show
}

#[test]
fn what_was_put_away_is_shown_at_once_and_whole_when_it_was_read() {
    for size in SIZES {
        let mut show = show(size);
        show.press(KeyCode::Char('g'));
        insta::assert_snapshot!(format!("put_away_{}x{}", size.0, size.1), show.frame());
        show.holds_texts = false;
        insta::assert_snapshot!(format!("put_away_read_{}x{}", size.0, size.1), show.frame());
    }
}

/// The rows that head an iteration or name a file, with their places. Each stands once.
fn firm(frame: &str) -> Vec<(usize, String)> {
    let row = |(place, line): (usize, &str)| {
        let inside = line.split('┃').nth(1)?.trim().to_string();
        (inside.contains("Work on the plan") || inside.contains("src/file_")).then_some((place, inside))
    };
    frame.lines().enumerate().filter_map(row).collect()
}

#[test]
fn what_is_looked_at_does_not_move_when_texts_come() {
    for size in SIZES {
        let mut show = show(size);
        let mut texts = 0;
        for key in [KeyCode::PageUp, KeyCode::Up, KeyCode::PageUp, KeyCode::Up, KeyCode::Up].repeat(24) {
            show.press(key);
            let before = show.frame();
            while show.give_text() {
                texts += 1;
                let after = show.frame();
                let first = &firm(&before)[0];
                assert!(firm(&after).contains(first), "{size:?}: {first:?}\n{before}\n{after}");
            }
        }
        assert!(texts >= 25, "{texts}");
        let frame = show.frame();
        assert!(frame.contains("Words of iteration 3, line 0.") && !frame.contains("┃    …  "), "{frame}");
    }
}

#[test]
fn what_is_looked_at_while_it_is_put_away_stays_as_it_is() {
    for size in SIZES {
        let story = summarised(12);
        let compacted = |event: &Event| matches!(event, Event::ContextCompacted { .. });
        let place = story.records.iter().position(|record| compacted(&record.event)).unwrap();
        let (until, rest) = story.records.split_at(place);
        let mut before = Story::new(terms("count"));
        until[1..].iter().for_each(|record| before.run.apply(record).unwrap());
        let rest = rest.to_vec();
        let mut show = Show::late(before, size, 2_000);
        show.holds_texts = true;
        show.chord(KeyCode::Char('2'), KeyModifiers::ALT);
        show.frame();
        show.press(KeyCode::Char('g'));
        let first = show.frame();
        show.tell(Msg::Records(rest));
        assert_eq!(firm(&show.frame()), firm(&first), "{size:?}");
        assert!(show.app.run.transcript.outlines().len() > 10);
    }
}

#[test]
fn what_cannot_be_read_says_so_once() {
    for size in SIZES {
        let mut show = show(size);
        show.press(KeyCode::Char('g'));
        show.frame();
        for _ in 0..100 {
            let asked = show.outs.iter().position(|out| matches!(out, Out::Read(..)));
            let Some(Out::Read(n, _)) = asked.map(|place| show.outs.remove(place)) else { break };
            show.tell(Msg::Read(n, Err("record 9 is missing".to_string())));
            show.frame();
        }
        assert!(!show.outs.iter().any(|out| matches!(out, Out::Read(..))), "it is not asked again and again");
        let frame = show.frame();
        let told = "its texts can't be shown: record 9 is missing";
        assert!(frame.contains(told) && frame.contains("src/file_3"), "{frame}");
    }
}
