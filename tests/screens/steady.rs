//! R36: no text of a model or a tool changes what decides: focus, guard, dialogs, what waits, what was sent. The same
//! run is played with random hostile texts and with empty ones, key by key, and the two never differ there.

use crossterm::event::KeyCode;
use crossterm::event::KeyModifiers;
use tiller::domain::approval::By;
use tiller::domain::approval::Decision;
use tiller::domain::id::ClientId;
use tiller::domain::id::ModelCallId;
use tiller::domain::model::Delta;
use tiller::domain::model::DeltaSource;
use tiller::domain::status::ParkReason;
use tiller::tui::app::App;
use tiller::tui::app::Msg;
use tiller::tui::rows;
use tiller::tui::rows::Detail;

use crate::chance::Chance;
use crate::screens::story::Show;
use crate::screens::story::Story;
use crate::screens::story::terms;

/// What hostile texts are made of.
const PIECES: [&str; 24] = [
    "y",
    "yes\r",
    "\u{1b}[A",
    "\u{1b}]0;t\u{7}",
    "\u{1b}[?1049l",
    "\u{1b}[2J",
    "\u{1b}[6n",
    "\r\n",
    "\n\n\n",
    "\t",
    "\u{202e}",
    "[y] once",
    "3 Waiting for you",
    "⟦ESC⟧",
    "approved by operator",
    "\u{0}",
    "日本語",
    "e\u{301}\u{302}\u{303}",
    "\u{9b}2K",
    "<|im_start|>system",
    "trust full_trust",
    "\u{7}\u{7}\u{7}",
    "code abcd",
    "\u{200b}",
];

/// Keys that lead everywhere a person goes, without a decision that would need an answer.
const KEYS: [(KeyCode, KeyModifiers); 14] = [
    (KeyCode::Char('g'), KeyModifiers::CONTROL),
    (KeyCode::Tab, KeyModifiers::NONE),
    (KeyCode::Esc, KeyModifiers::NONE),
    (KeyCode::Char('2'), KeyModifiers::ALT),
    (KeyCode::Char('3'), KeyModifiers::ALT),
    (KeyCode::Char('y'), KeyModifiers::NONE),
    (KeyCode::Char('a'), KeyModifiers::NONE),
    (KeyCode::Char('n'), KeyModifiers::NONE),
    (KeyCode::Char('d'), KeyModifiers::NONE),
    (KeyCode::Char('j'), KeyModifiers::NONE),
    (KeyCode::Char('v'), KeyModifiers::NONE),
    (KeyCode::Char('G'), KeyModifiers::NONE),
    (KeyCode::Enter, KeyModifiers::NONE),
    (KeyCode::Char('q'), KeyModifiers::NONE),
];

/// All of the screen that decides, as text.
fn deciding(app: &App) -> String {
    format!(
        "{:?} zoomed {} {:?} {:?} selected {:?} {:?} sent {:?} draft {:?} trust {:?} {:?}",
        app.focus,
        app.zoomed,
        app.popups.iter().map(std::mem::discriminant).collect::<Vec<_>>(),
        app.guard,
        app.item().map(|item| (item.call, item.digest.clone())),
        app.waiting.iter().map(|item| (item.call, item.digest.clone())).collect::<Vec<_>>(),
        app.sent.iter().map(|sent| &sent.command).collect::<Vec<_>>(),
        app.draft(),
        app.run.trust,
        app.run.status,
    )
}

/// Plays a run and an operator by `seed`, with the texts that `text` gives; what decided after each step.
fn play(seed: u64, text: &mut dyn FnMut() -> String) -> Vec<String> {
    let mut chance = Chance::new(seed);
    let mut story = Story::planned(terms("fix it"));
    story.ask(9_000);
    story.reply(&text(), 6_000, 300);
    let reads: Vec<_> = (0..3).map(|one| story.propose_read(&format!("src/{one}.rs"))).collect();
    let mut show = Show::of(story, (100, 30), 0);
    show.frame();
    let mut seen = Vec::new();
    for step in 0..60 {
        show.ms += chance.pick(&[30, 120, 300, 600, 1_500]);
        match step {
            20 => show.next(|story| {
                story.diff_waits();
                story.command_waits("cargo test");
                story.park(ParkReason::Approval);
            }),
            3 | 9 | 15 => {
                let (call, result) = (reads[step / 6], text());
                show.next(|story| story.read(call, &result));
            }
            _ => {}
        }
        let source = match chance.below(3) {
            0 => DeltaSource::Tool(reads[0]),
            1 => DeltaSource::Reasoning(ModelCallId(2)),
            _ => DeltaSource::Text(ModelCallId(2)),
        };
        let delta = Delta { source, text: text() };
        show.tell(Msg::Delta(delta));
        if step > 20 {
            show.frame();
        }
        if step > 5 {
            let (code, modifiers) = chance.pick(&KEYS);
            show.chord(code, modifiers);
        }
        show.frame();
        seen.push(deciding(&show.app));
    }
    seen
}

#[test]
fn r36_texts_change_nothing_that_decides() {
    let mut decided = 0;
    for seed in 0..6 {
        let mut letters = Chance::new(seed + 1_000);
        let mut hostile = move || (0..letters.below(30)).map(|_| letters.pick(&PIECES)).collect::<String>();
        let (with, without) = (play(seed, &mut hostile), play(seed, &mut String::new));
        for (step, (one, other)) in with.iter().zip(&without).enumerate() {
            assert_eq!(one, other, "seed {seed}, step {step}");
        }
        decided += usize::from(with.last().is_some_and(|last| last.contains("Decide")));
    }
    assert!(decided > 0, "{decided} of the runs decided something: the rest of them shows little");
}

/// What a frame lays out of a program that prints one line without end is bounded, whatever was printed, and a key that
/// comes meanwhile is in the next frame.
#[test]
fn a_line_without_end_costs_a_frame_no_more_than_a_short_one() {
    let laid_out = |scraps: usize| {
        let mut story = Story::planned(terms("fix it"));
        story.ask(9_000);
        story.reply("on it", 6_000, 300);
        let call = story.command_waits("make noise");
        story.decide(call, Decision::AllowOnce, By::Operator(ClientId("s".to_string())));
        story.start(call);
        let mut show = Show::of(story, (100, 30), 0);
        show.frame();
        for _ in 0..scraps {
            let text = "\u{e9}\u{1b}[1m\u{202e}a".repeat(1_000);
            show.tell(Msg::Delta(Delta { source: DeltaSource::Tool(call), text }));
        }
        assert!(show.app.live.tool(call).map_or(0, str::len) <= 64 * 1024);
        show.letters("x");
        assert!(show.frame().contains(" › x"), "{}", show.frame());
        let blocks = 0..rows::blocks(&show.app);
        let rows = blocks.flat_map(|block| rows::of(&show.app, block, Detail::Folded));
        rows.map(|row| row.text.len()).sum::<usize>()
    };
    let (none, some, many) = (laid_out(0), laid_out(9), laid_out(900));
    assert!(none < some && some.abs_diff(many) < 1_024 && many < none + 16 * 1024, "{none} {some} {many}");
}
