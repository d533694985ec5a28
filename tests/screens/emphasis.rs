//! Which words of a change are emphasised in the view of a call, and that nothing of what is shown differs by it.

use ratatui::buffer::Buffer;
use ratatui::style::Color;
use ratatui::style::Modifier;
use tiller::domain::cells::cells;
use tiller::domain::status::ParkReason;
use tiller::domain::tool::EffectClass;
use tiller::tui::theme::Palette;

use crate::screens::story::Show;
use crate::screens::story::Story;
use crate::screens::story::at_rest;
use crate::screens::story::pursuing;
use crate::screens::story::rest;

const EMPHASIS: Modifier = Modifier::BOLD.union(Modifier::UNDERLINED);

/// A change of a file that waits.
fn waits(preview: &str) -> Story {
    let mut story = pursuing();
    let call = story.call("edit_file", r#"{"path":"src/lexer.rs","old":"a","new":"b"}"#, EffectClass::WriteFile);
    story.prepare(call, "src/lexer.rs +1 −1", "writes in the workspace", preview);
    story.request(call, "it writes a file and no rule allows that");
    story.park(ParkReason::Approval);
    story
}

/// A change with words, blanks, marks, and a line that goes on in further rows.
fn change() -> Story {
    let long = "and on ".repeat(20);
    waits(&format!(
        "@@ -1,5 +1,6 @@\n fn start() {{\n-    let off = pos;\n+    let bom = self.bom_length();\n+    let off = pos + \
         bom;\n-  blanks\n+      blanks\n-end\n+end \t\n-{long}one\n+{long}two {long}\n }}\n"
    ))
}

/// The frame, with a row of `^` below each row of which cells are emphasised.
fn emphasised(buffer: &Buffer) -> String {
    let mut out = String::new();
    for row in buffer.content.chunks(usize::from(buffer.area.width)) {
        let (mut line, mut below, mut skip) = (String::new(), String::new(), 0);
        for cell in row {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            line.push_str(cell.symbol());
            let wide = cells(cell.symbol());
            let mark = if cell.modifier.contains(EMPHASIS) { "^" } else { " " };
            below.push_str(&mark.repeat(wide));
            skip = wide.saturating_sub(1);
        }
        for row in [line, below] {
            out.push_str(row.trim_end());
            out.push('\n');
        }
    }
    out.replace("\n\n", "\n")
}

/// What is emphasised in the view, run by run of cells.
fn runs(show: &mut Show) -> Vec<String> {
    let told = show.frame_as(|buffer| {
        let cells: Vec<_> = buffer.content.iter().collect();
        let is = |one: &&ratatui::buffer::Cell| one.modifier.contains(EMPHASIS);
        let runs = cells.chunk_by(|one, next| is(one) == is(next)).filter(|run| is(&run[0]));
        runs.map(|run| run.iter().map(|cell| cell.symbol()).collect::<String>()).collect::<Vec<_>>().join("\n")
    });
    told.lines().map(str::to_string).collect()
}

#[test]
fn the_words_that_changed_are_emphasised() {
    for size in [(200, 60), (120, 36), (80, 24), (50, 12)] {
        let mut show = at_rest(change(), size, '3');
        let frame = show.frame_as(emphasised);
        insta::assert_snapshot!(format!("emphasis_{}x{}", size.0, size.1), frame);
        show.letters("v");
        rest(&mut show);
        let frame = show.frame_as(emphasised);
        insta::assert_snapshot!(format!("emphasis_whole_{}x{}", size.0, size.1), frame);
    }
}

/// It is weight and underline, in colour and without; what came and what went keep their colours.
#[test]
fn emphasis_needs_no_colour() {
    for palette in [Palette::Ansi, Palette::Monochrome] {
        let mut show = at_rest(waits("@@ -1 +1 @@\n-limit = old\n+limit = fresh\n"), (80, 24), '3');
        show.app.palette = palette;
        assert_eq!(runs(&mut show), ["old", "fresh"], "{palette:?}");
        let colours = show.frame_as(|buffer| {
            let emphasised = buffer.content.iter().filter(|cell| cell.modifier.contains(EMPHASIS));
            emphasised.map(|cell| format!("{:?}{}", cell.fg, cell.modifier.contains(Modifier::DIM))).collect::<String>()
        });
        let (went, came) = match palette {
            Palette::Ansi => (Color::Red, Color::Green),
            Palette::Monochrome => (Color::Reset, Color::Reset),
        };
        let wanted = format!("{went:?}false").repeat("old".len()) + &format!("{came:?}false").repeat("fresh".len());
        assert_eq!(colours, wanted, "{palette:?}");
    }
}

/// A text of others gets no emphasis outside of its place, and reaches nothing by it.
#[test]
fn hostile_words_stay_in_their_place() {
    let words =
        ["\u{1b}[4mx", "\u{202e}x", "a\u{200b}b", "漢字", "\tx", "e\u{301}\u{301}", "🇩🇪🇩🇰", "⟦LF⟧", "👩‍👩‍👧", "x\r"];
    for size in [(120, 36), (80, 24), (50, 24)] {
        for word in words {
            let line = |word: &str| format!("this is kept as it is {word}\n");
            let changed = format!("@@ -1,2 +1,2 @@\n-{}+{} end\n", line("plain"), line(word));
            let mut show = at_rest(waits(&changed), size, '3');
            let frame = show.frame();
            let told = runs(&mut show);
            assert!(told.iter().any(|run| run == "plain"), "{word:?}: {told:?}\n{frame}");
            let is_frame = |letter: char| matches!(letter, '│' | '┃' | '━' | '─' | '┌' | '┐');
            assert!(!told.iter().any(|run| run.contains(is_frame)), "{word:?}: {told:?}\n{frame}");
            // With the same line as one that was not there before, nothing is emphasised, and the same is shown.
            let alone = format!("@@ -1,2 +1,2 @@\n {}+{} end\n", line("plain"), line(word));
            let mut bare = at_rest(waits(&alone), size, '3');
            assert_eq!(runs(&mut bare), Vec::<String>::new(), "{word:?}");
            let added =
                |frame: &str| frame.split(" │ +this").nth(1).map(|rest| rest.lines().next().unwrap().to_string());
            let (with, without) = (added(&frame), added(&bare.frame()));
            assert!(with.is_some() && with == without, "{word:?}: {with:?} {without:?}");
        }
    }
}
