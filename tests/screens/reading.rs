//! Cases of hostile texts (`tests/fixtures/safety/seeing.jsonl`): what the sanitiser makes of each, and that every byte
//! of a call can be read on any screen before it can be allowed (docs/SAFETY.md §8, R10 to R12).

use crossterm::event::KeyCode;
use crossterm::event::KeyModifiers;
use serde_json::Value;
use tiller::domain::status::ParkReason;
use tiller::domain::visible::approval_bytes;
use tiller::domain::visible::title;
use tiller::domain::visible::transcript;

use crate::screens::story::Show;
use crate::screens::story::Story;
use crate::screens::story::terms;

const CASES: &str = include_str!("../fixtures/safety/seeing.jsonl");

fn cases(class: &str) -> Vec<Value> {
    let cases: Vec<Value> = CASES.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found: Vec<Value> = cases.into_iter().filter(|case| case["class"] == class).collect();
    assert!(!found.is_empty(), "{class}");
    found
}

/// Bytes as a case writes them: `\xNN` is a byte.
fn bytes(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut out = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        out.push(u8::from_str_radix(&part[..2], 16).unwrap());
        out.extend_from_slice(&part.as_bytes()[2..]);
    }
    out
}

#[test]
fn every_text_of_the_cases_is_shown_exactly_so() {
    let mut count = 0;
    for class in ["terminal-output", "prompt-spoof", "bidi-zero-width"] {
        for case in cases(class).iter().filter(|case| case["input"]["view"].is_string()) {
            let raw = bytes(case["input"]["bytes"].as_str().unwrap());
            let shown = match case["input"]["view"].as_str().unwrap() {
                "approval" => approval_bytes(&raw),
                _ => transcript(&String::from_utf8(raw).unwrap()),
            };
            assert_eq!(shown, case["expected_text"].as_str().unwrap(), "{}", case["id"]);
            count += 1;
        }
    }
    assert_eq!(count, 19, "cases with an exact text");
}

/// A file name is drawn in the list of what waits, in its title, in the activity and in the window title alike.
#[test]
fn a_hostile_file_name_is_marked_wherever_it_stands() {
    let name = "a\u{1b}]0;x\u{7}.rs";
    let marked = "a⟦ESC⟧]0;x⟦BEL⟧.rs";
    let mut story = Story::planned(terms(name));
    story.ask(9_000);
    story.reply(name, 6_000, 300);
    let read = story.propose_read(name);
    story.command_waits(name);
    story.read(read, name);
    story.park(ParkReason::Approval);
    let mut show = Show::of(story, (200, 60), 0);
    let frame = show.frame();
    assert!(frame.matches(marked).count() >= 5, "{frame}");
    assert!(!frame.contains(['\u{1b}', '\u{7}']));
    assert_eq!(title(name, 40), marked);
    assert!(show.app.window_title().contains(marked) && !show.app.window_title().contains('\u{1b}'));
}

/// A screen with its keys on the only call, at its start.
fn on_call(line: &str, size: (u16, u16)) -> Show {
    let mut story = Story::planned(terms("fix it"));
    story.ask(9_000);
    story.reply("on it", 6_000, 300);
    story.command_waits(line);
    story.park(ParkReason::Approval);
    let mut show = Show::of(story, size, 0);
    show.chord(KeyCode::Char('g'), KeyModifiers::CONTROL);
    show.letters("g");
    show
}

/// The rows behind the gutter of the pane that waits: their numbers, and their text to the frame.
fn rows(frame: &str) -> Vec<(Option<usize>, String)> {
    let row = |row: &str| {
        let inner = &row[row.rfind("┃ ").filter(|_| row.ends_with('┃'))?..];
        let start = row.len() - inner.len();
        let row = row[..row.len() - '┃'.len_utf8()].to_string();
        let row = if start < row.len() { &row[start..] } else { row[row.rfind('┃')?..].as_ref() };
        let (number, text) = row.strip_prefix('┃')?.split_once(" │ ")?;
        Some((number.trim().parse().ok(), text.to_string()))
    };
    frame.lines().filter_map(row).collect()
}

/// All that can be read of a call, page after page, as one text; each number begins a line.
fn read_through(show: &mut Show) -> String {
    let top = |show: &Show| show.app.seen.body.map(|view| view.top);
    show.frame();
    let mut pages = vec![(top(show), rows(&show.frame()))];
    loop {
        show.press(KeyCode::PageDown);
        let next = rows(&show.frame());
        if top(show) == pages.last().unwrap().0 {
            break;
        }
        pages.push((top(show), next));
    }
    // A page moves by all its rows but one; the last by what was left.
    let (last, before) = (pages.len() - 1, pages.len().saturating_sub(2));
    let mut left = 0;
    while top(show) != pages[before].0 {
        show.press(KeyCode::Up);
        show.frame();
        left += 1;
    }
    let moved = |place: usize, rows: usize| match place {
        _ if place == last => rows,
        _ if place == before => left,
        _ => rows.saturating_sub(1).max(1),
    };
    let taken = pages.into_iter().enumerate().flat_map(|(place, (_, rows))| {
        let count = moved(place, rows.len());
        rows.into_iter().take(count)
    });
    let all: Vec<(Option<usize>, String)> = taken.collect();
    let mut text = String::new();
    for (place, (number, row)) in all.iter().enumerate() {
        if number.is_some() && place > 0 {
            text.push('\n');
        }
        let goes_on = all.get(place + 1).is_some_and(|(number, _)| number.is_none());
        // Cells that a row leaves free before its line goes on are told from blanks of the text.
        let free = row.trim_end().strip_suffix('⟫');
        text.push_str(if goes_on { free.unwrap_or(row) } else { row.trim_end() });
    }
    text
}

/// The whole of a call, read row by row on a screen of this size, is what the sanitiser makes of its bytes.
fn check_whole(line: &str, size: (u16, u16)) {
    let mut show = on_call(line, size);
    let expected = approval_bytes(line.as_bytes()).replace("⟦LF⟧\n", "\n");
    assert_eq!(read_through(&mut show), expected, "{size:?}");
}

#[test]
fn every_byte_of_a_call_is_reached_on_any_screen() {
    let long: String = (1..=30).map(|line| format!("echo {line} {}\n", "x".repeat(line))).collect();
    for size in [(20, 10), (80, 24), (200, 60)] {
        check_whole(long.trim_end(), size);
        check_whole(&format!("true {}; touch MARK", "\u{200b}".repeat(30)), size);
        check_whole(&format!("ls{}; touch MARK", " ".repeat(300)), size);
        let long: &[&str] = if size.0 > 20 { &["日 é  "] } else { &["日 é  ", "é"] };
        let short = ["é日 ", "日 本  ", "⟫日", "\u{202e}é"];
        for (letters, count) in long.iter().map(|one| (one, 3_000)).chain(short.iter().map(|one| (one, 300))) {
            check_whole(&format!("echo {}; touch MARK", letters.repeat(count / letters.chars().count())), size);
        }
    }
    for case in cases("long-command") {
        if let Some(line) = case["input"]["command"].as_str() {
            check_whole(line, (20, 10));
        }
        if let Some(content) = case["input"]["args"]["content"].as_str() {
            let mut show = on_call(content.trim_end(), (80, 24));
            show.frame_at(2_000);
            assert!(show.frame_at(2_001).contains("G shows the end"), "it can't be allowed unread");
            show.press(KeyCode::Char('G'));
            show.frame_at(2_002);
            assert!(!show.frame_at(3_000).contains("G shows the end"), "{}", case["id"]);
        }
    }
}

/// Where a letter of two cells has no room any more, the cell that stays free is not taken for a blank of the text.
#[test]
fn a_cell_left_free_is_no_blank() {
    let drawn = |line: &str| rows(&on_call(line, (20, 10)).frame()).into_iter().map(|row| row.1).collect::<Vec<_>>();
    let wide = "日".repeat(9);
    let (free, blank) = (drawn(&wide), drawn(&format!("{} {}", &wide[..18], &wide[18..])));
    assert_ne!(free, blank);
    assert!(free[0].ends_with('⟫') && !blank[0].contains('⟫'), "{free:?} {blank:?}");
}

/// How long it is stands in the frame, counted as it is, not as it is shown.
#[test]
fn the_frame_counts_lines_and_bytes() {
    let line = "echo é\necho \u{202e}";
    assert!(on_call(line, (80, 24)).frame().contains(&format!(" 2 lines · {} bytes ", line.len())));
    assert!(on_call(line, (20, 10)).frame().contains(&format!(" 2L {}B ", line.len())));
}

/// Letters that pass for others are named, with where they stand and what they look like.
#[test]
fn letters_that_pass_for_others_are_named() {
    for (line, expected) in [
        ("c\u{430}t a", "! not ASCII: \u{430} at 1:2 is U+0430 Cyrillic small letter, like a"),
        ("ls\ncurl https://\u{435}xample.invalid/", "\u{435} at 2:14 is U+0435 Cyrillic small letter, like e"),
        ("ls \u{ff41}", "\u{ff41} at 1:4 is U+FF41 fullwidth Latin small letter, like a"),
        ("ls 日", "日 at 1:4 is U+65E5 Han letter"),
    ] {
        let frame = on_call(line, (120, 36)).frame();
        assert!(frame.contains(expected), "{expected}\n{frame}");
    }
    assert!(!on_call("ls → x", (120, 36)).frame().contains("not ASCII"), "an arrow is no letter");
}

/// No text, however long its lines, takes long to lay out.
#[test]
fn a_line_without_end_is_cut_before_it_is_laid_out() {
    let shown = transcript(&"a".repeat(8 << 20));
    assert!(shown.ends_with(&format!("… ⟦+{} bytes⟧", (8 << 20) - 4096)), "{}", shown.len());
    assert_eq!(shown.chars().count(), 4096 + format!("… ⟦+{} bytes⟧", (8 << 20) - 4096).chars().count());
}
