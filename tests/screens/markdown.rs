//! What the model says, as Markdown: in the activity, at every width.

use crate::screens::moments::check;
use crate::screens::moments::nothing;
use crate::screens::story::Show;
use crate::screens::story::Story;
use crate::screens::story::terms;

const SAID: &str = "## What I found\nThe offset is computed **before** the BOM is skipped; see \
`src/lexer.rs` and [the notes](https://example.org/bom).\n\n1. Move the skip up, and keep the old name so that nothing \
else has to change\n2. Add a case\n   - with a BOM\n   - *without* one\n\n| file | lines |\n|---|---|\n| src/lexer.rs | 340 \
|\n| 日本.rs | 2 |\n\n```rust\nlet off = pos + bom;\n\n```\n> as the comment there says";

fn story(text: &str) -> Story {
    let mut story = Story::planned(terms("fix the failing parser tests"));
    story.ask(9_000);
    story.reply(text, 9_000, 300);
    story
}

#[test]
fn what_is_said_is_laid_out() {
    check("markdown", 1_000, || story(SAID), nothing);
}

/// Nothing that Markdown decodes or hides moves what stands around it.
#[test]
fn no_text_leaves_its_place() {
    let hostile = format!(
        "# a\u{1b}[2J&#27;[2J\u{202e}\n| a\u{200b} | &#8238; |\n|-|-|\n| {} | \u{1b}]0;x\u{7} |\n\n{}deep\n```\n\t\u{1b}[8m",
        "w".repeat(300),
        "> - ".repeat(60)
    );
    for size in [(120, 36), (80, 24), (50, 12)] {
        let frame = Show::of(story(&hostile), size, 1_000).frame();
        assert!(!frame.chars().any(|one| "\u{1b}\u{7}\u{202e}\u{200b}".contains(one)), "{frame}");
        let calm = Show::of(story("calm"), size, 1_000).frame();
        let edges = |frame: &str| -> Vec<String> {
            let edge = |line: &str| line.chars().rev().find(|one| !one.is_whitespace()).unwrap_or(' ').to_string();
            frame.lines().skip(2).map(edge).filter(|edge| "│┐┘┃".contains(edge.as_str())).collect()
        };
        assert_eq!(edges(&frame).len(), edges(&calm).len(), "{frame}");
    }
}
