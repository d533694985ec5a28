//! Keys typed ahead (docs/SAFETY.md §9, R18): every rule with a clock of its own, and fifty sessions of people who type
//! while calls come to wait. The sessions are in `tests/fixtures/typing`, made once from seeds by `Typist` below, which
//! types as people do: in bursts, with rests between words and longer ones to think. None of these people means to allow
//! anything. `TILLER_BLESS=1` writes the sessions anew.

use crossterm::event::KeyCode;
use crossterm::event::KeyEvent;
use crossterm::event::KeyEventKind;
use crossterm::event::KeyModifiers;
use tiller::domain::approval::By;
use tiller::domain::approval::Decision;
use tiller::domain::approval::Resolution;
use tiller::domain::command::Command;
use tiller::domain::event::Event;
use tiller::domain::id::CallId;
use tiller::domain::id::ClientId;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Status;
use tiller::domain::tool::Grave;
use tiller::tui::app::Focus;
use tiller::tui::app::Msg;
use tiller::tui::app::Out;

use crate::chance::Chance;
use crate::screens::story::Show;
use crate::screens::story::Story;
use crate::screens::story::commands;
use crate::screens::story::terms;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/typing");
const SESSIONS: u64 = 50;

/// What people type. Most of it has letters that decide.
const PHRASES: [&str; 16] = [
    "yes please try that again",
    "any idea why it fails today",
    "y",
    "yeah ok",
    "always run the tests any way you like",
    "no wait",
    "actually stay away from the yaml files",
    "try A and then B",
    "that is a typo",
    "it says tty not available",
    "say what you did",
    "a",
    "not yet",
    "play it safe today",
    "end the day early",
    "really any way",
];

/// Where a person believes their keys to be while calls come to wait.
const KINDS: [&str; 5] = ["composing", "glancing", "denying", "explaining", "wandering"];

/// One thing that happens, so many milliseconds after the one before: a key, or a call that comes to wait.
type Step = (u64, String);

/// Types as a person does.
struct Typist {
    chance: Chance,
    steps: Vec<Step>,
}

impl Typist {
    fn session(seed: u64) -> Vec<Step> {
        let mut typist = Typist { chance: Chance::new(seed), steps: Vec::new() };
        let kind = KINDS[usize::try_from(seed).unwrap() % KINDS.len()];
        for _ in 0..2 {
            match kind {
                "composing" => typist.phrase(),
                // Looks at what waits in the middle of a sentence, and the hands go on.
                "glancing" => {
                    typist.phrase();
                    typist.step(150, "Ctrl-G");
                    typist.phrase();
                    typist.step(400, "Esc");
                }
                // Says no, and goes on as if that had opened a field.
                "denying" => {
                    typist.step(300, "Ctrl-G");
                    typist.step(1_400, "n");
                    typist.phrase();
                    typist.step(300, "Esc");
                }
                "explaining" => {
                    typist.step(300, "Ctrl-G");
                    typist.step(1_400, "d");
                    typist.phrase();
                    typist.step(200, "Enter");
                    typist.phrase();
                    typist.step(300, "Esc");
                }
                // Types into a pane, believing that the composer has the keys.
                _ => {
                    typist.step(300, "Tab");
                    typist.step(120, "p");
                    typist.phrase();
                    typist.step(300, "Esc");
                }
            }
            if typist.chance.percent(60) {
                typist.step(300, "Enter");
            }
        }
        typist.steps
    }

    /// A key after a rest of about so long. A call may come to wait just before it.
    fn step(&mut self, about_ms: u64, key: &str) {
        if self.chance.percent(9) {
            let at = self.chance.below(90);
            let call = self.chance.pick(&["call diff", "call shell", "call grave"]);
            self.steps.push((at, call.to_string()));
        }
        let gap = about_ms / 2 + self.chance.below(about_ms);
        self.steps.push((gap, key.to_string()));
    }

    fn phrase(&mut self) {
        let phrase = self.chance.pick(&PHRASES);
        for one in phrase.chars() {
            let about = match (self.chance.below(100), one) {
                (0..2, _) => 2_200,
                (2..7, _) => 900,
                (7..20, _) | (_, ' ') => 240,
                _ => 110,
            };
            self.step(about, &one.to_string());
            // A key that is held a little too long.
            if self.chance.percent(2) {
                for _ in 0..1 + self.chance.below(4) {
                    self.steps.push((33, format!("held {one}")));
                }
            }
        }
    }
}

/// How a session is played.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Guard {
    /// As the screen is.
    On,
    /// As if there were none: what comes to wait takes the keys, and every key finds a pane at rest.
    Off,
}

/// What was allowed in a session, each with the keys before it.
fn allowed(steps: &[Step], guard: Guard) -> Vec<String> {
    let mut story = Story::planned(terms("fix it"));
    story.ask(9_000);
    story.reply("on it", 6_000, 300);
    let mut show = Show::of(story, (80, 24), 0);
    show.frame();
    let (mut allowed, mut known, mut pressed) = (Vec::new(), 0, show.ms);
    for (place, (gap, what)) in steps.iter().enumerate() {
        let before = pressed;
        show.ms = before + gap;
        if let Some(call) = what.strip_prefix("call ") {
            comes_to_wait(&mut show, call);
            if guard == Guard::Off {
                show.chord(KeyCode::Char('g'), KeyModifiers::CONTROL);
            }
            show.frame();
            pressed = show.ms;
            continue;
        }
        if guard == Guard::Off {
            show.ms += 1_000;
            show.frame_at(show.ms);
            show.frame_at(show.ms);
        } else if show.app.focus == Focus::Waiting && show.ms > before + 500 {
            // The frames that a screen draws while somebody rests.
            show.frame_at(before + 501);
            show.frame_at(before + 502);
            show.ms = (before + gap).max(before + 503);
        }
        pressed = show.ms;
        press(&mut show, what);
        // The screen wakes when the key counts; without a guard nothing comes before that.
        let most = steps.get(place + 1).map_or(u64::MAX, |(gap, _)| *gap);
        if let Some(counts_in) = show.app.key_counts_in(pressed).filter(|ms| guard == Guard::Off || *ms <= most) {
            show.frame_at(pressed + counts_in);
        }
        // What the composer shows is nothing to the guard.
        if show.app.focus == Focus::Waiting || !show.app.popups.is_empty() || guard == Guard::Off {
            show.frame();
        }
        for out in show.outs.split_off(known) {
            if let Out::Submit(ticket, command) = out {
                if lets_run(&command) {
                    allowed.push(format!("{command:?} after {:?}", &steps[place.saturating_sub(14)..=place]));
                }
                show.tell(Msg::Accepted(ticket, show.app.run.seq));
                happens(&mut show, &command);
                show.frame();
            }
        }
        known = show.outs.len();
    }
    allowed
}

fn press(show: &mut Show, key: &str) {
    match key {
        "Ctrl-G" => show.chord(KeyCode::Char('g'), KeyModifiers::CONTROL),
        "Enter" => show.press(KeyCode::Enter),
        "Esc" => show.press(KeyCode::Esc),
        "Tab" => show.press(KeyCode::Tab),
        letters => {
            let (kind, letter) = match letters.strip_prefix("held ") {
                // Half of all terminals tell a held key from a pressed one.
                Some(letter) if show.ms.is_multiple_of(2) => (KeyEventKind::Repeat, letter),
                Some(letter) => (KeyEventKind::Press, letter),
                None => (KeyEventKind::Press, letters),
            };
            let code = KeyCode::Char(letter.chars().next().unwrap());
            show.tell(Msg::Key(KeyEvent::new_with_kind(code, KeyModifiers::NONE, kind)));
        }
    }
}

fn comes_to_wait(show: &mut Show, call: &str) {
    show.next(|story| {
        match call {
            "diff" => story.diff_waits(),
            "grave" => {
                story.grave = vec![Grave::Keys];
                story.command_waits("cat id_rsa")
            }
            _ => story.command_waits("cargo test"),
        };
        if story.run.is_running() {
            story.park(ParkReason::Approval);
        }
    });
}

fn lets_run(command: &Command) -> bool {
    match command {
        Command::Decide { decision, .. } => !matches!(decision, Decision::Deny(_)),
        Command::Resolve { resolution, .. } => *resolution == Resolution::RunAgain,
        Command::AllowAll { .. } | Command::Coded { .. } | Command::SetTrust(_) => true,
        _ => false,
    }
}

/// What was decided is recorded, and the run goes on when nothing waits any more.
fn happens(show: &mut Show, command: &Command) {
    let decided: Vec<(CallId, Decision)> = match command {
        Command::Decide { call, decision: Decision::Deny(text), .. } => vec![(*call, Decision::Deny(text.clone()))],
        Command::Decide { call, .. } => vec![(*call, Decision::AllowOnce)],
        Command::AllowAll { calls } => calls.iter().map(|(call, _)| (*call, Decision::AllowOnce)).collect(),
        _ => Vec::new(),
    };
    show.next(|story| {
        let is_any = !decided.is_empty();
        for (call, decision) in decided {
            story.decide(call, decision, By::Operator(ClientId("s".to_string())));
        }
        if is_any && story.run.waiting().is_empty() {
            story.event(Event::StatusChanged { status: Status::Running, by: None });
        }
    });
}

fn written(steps: &[Step]) -> String {
    let lines: Vec<String> = steps.iter().map(|step| serde_json::to_string(step).unwrap()).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

fn path(seed: u64) -> String {
    format!("{FOLDER}/{seed:02}.json")
}

#[test]
fn fifty_people_who_type_allow_nothing() {
    let mut without = 0;
    for seed in 0..SESSIONS {
        if std::env::var_os("TILLER_BLESS").is_some() {
            std::fs::create_dir_all(FOLDER).unwrap();
            std::fs::write(path(seed), written(&Typist::session(seed))).unwrap();
        }
    }
    for seed in 0..SESSIONS {
        let path = path(seed);
        let steps: Vec<Step> = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let found = allowed(&steps, Guard::On);
        assert!(found.is_empty(), "session {seed}: {found:?}");
        // The control: some of the same keys on a screen without a guard.
        if seed < KINDS.len() as u64 {
            without += allowed(&steps, Guard::Off).len();
        }
    }
    assert!(without > 3, "without a guard {without} calls are allowed");
}

/// A screen with its keys on a call, armed.
fn armed() -> (Show, CallId) {
    let mut story = Story::planned(terms("fix it"));
    story.ask(9_000);
    story.reply("on it", 6_000, 300);
    let call = story.diff_waits();
    story.park(ParkReason::Approval);
    let mut show = Show::of(story, (80, 24), 0);
    show.frame_at(0);
    show.chord(KeyCode::Char('g'), KeyModifiers::CONTROL);
    show.frame_at(600);
    show.frame_at(1_200);
    (show, call)
}

/// The cases of the class `typed-ahead`: what happens on an armed screen, and how many calls are allowed by it.
fn check(name: &str, happens: impl FnOnce(&mut Show), expected: usize) {
    let (mut show, _) = armed();
    happens(&mut show);
    assert_eq!(commands(&show).iter().filter(|command| lets_run(command)).count(), expected, "{name}");
}

/// Letters that come together are words, on whatever key they begin; one that comes alone is a key. What was sent, and what
/// is said then.
fn check_burst(happens: impl FnOnce(&mut Show), commands_sent: usize, said: Option<&str>) {
    let (mut show, _) = armed();
    happens(&mut show);
    let told = |show: &Show| show.app.notice.as_ref().map(|notice| notice.text.clone()).unwrap_or_default();
    if let Some(said) = said {
        assert!(told(&show).starts_with(said), "{said}: {:?}", show.app.notice);
    }
    show.frame_at(show.ms + 40);
    show.frame_at(show.ms + 2_000);
    assert_eq!(commands(&show).len(), commands_sent, "{said:?} {:?}", commands(&show));
    assert!(show.app.popups.is_empty(), "{said:?}");
}

fn later(show: &mut Show, ms: u64) {
    show.ms += ms;
    show.tell(Msg::Tick);
}

#[test]
fn letters_that_come_together_decide_nothing() {
    // The keys of decisions, of dialogs and of commands.
    for words in ["yes please", "and", "no", "don't do that", "edit it", "try", "All", "run", "+7"] {
        let first = words.chars().next().unwrap();
        let said = format!("{first} did nothing: other keys came right behind");
        check_burst(|show| show.burst(words.get(..2).unwrap()), 0, Some(&said));
        check_burst(|show| show.burst(words), 0, None);
        let with_enter = |show: &mut Show| {
            show.burst(words);
            show.press(KeyCode::Enter);
        };
        check_burst(with_enter, 0, None);
    }
    check_burst(|show| show.burst("y"), 1, None);
    let apart = |ms: u64| {
        move |show: &mut Show| {
            show.burst("y");
            later(show, ms);
            show.burst("j");
        }
    };
    check_burst(apart(39), 0, Some("y did nothing"));
    check_burst(apart(40), 1, None);
    check_burst(
        |show| {
            show.burst("y");
            show.tell(Msg::Paste("es".to_string()));
        },
        0,
        None,
    );
    // A screen that was busy for long knows nothing of when a key came.
    check_burst(
        |show| {
            show.burst("y");
            show.ms += 500;
            show.burst("e");
        },
        0,
        Some("y did nothing"),
    );
    // What the run says meanwhile is no key, and a key that is let go is.
    check_burst(
        |show| {
            show.burst("y");
            show.tell(Msg::Lost(1));
            let let_go = KeyEvent::new_with_kind(KeyCode::Char('y'), KeyModifiers::NONE, KeyEventKind::Release);
            show.tell(Msg::Key(let_go));
            show.ms += 40;
            show.tell(Msg::Lost(1));
        },
        1,
        None,
    );
}

/// A key that came before the keys were drawn as working does not become one while it is kept back.
#[test]
fn a_key_that_came_too_early_does_not_ripen() {
    let (mut show, _) = armed();
    show.press(KeyCode::Char('j'));
    later(&mut show, 480);
    show.burst("y");
    let told = show.app.notice.as_ref().map(|notice| notice.text.clone()).unwrap_or_default();
    assert!(told.contains("came too early"), "{told}");
    show.frame_at(show.ms + 40);
    show.frame_at(show.ms + 1);
    assert_eq!(commands(&show), []);
}

/// What waits changes while a key is kept back: the key was not about that.
#[test]
fn a_key_is_about_what_was_there_when_it_was_pressed() {
    let (mut show, call) = armed();
    show.burst("y");
    show.next(|story| {
        story.command_waits("make");
        story.event(Event::ApprovalInvalidated { call, why: "the file changed".to_string() });
    });
    show.frame_at(show.ms + 40);
    assert_eq!(commands(&show), []);
}

/// After letters that came together the first key asks, and the second decides.
#[test]
fn after_letters_that_came_together_a_key_is_pressed_twice() {
    let (mut show, _) = armed();
    show.burst("yes please");
    for sent in [0, 1] {
        show.frame_at(show.ms + 600);
        show.frame_at(show.ms + 1);
        show.letters("y");
        assert_eq!(commands(&show).len(), sent, "{:?}", show.app.notice);
    }
}

/// Whoever looks at one call after another decides them as fast as each of them may be decided.
#[test]
fn a_fast_operator_decides_call_after_call() {
    let mut story = Story::planned(terms("fix it"));
    story.ask(9_000);
    story.reply("on it", 6_000, 300);
    let calls = [story.command_waits("one"), story.command_waits("two"), story.command_waits("three")];
    story.park(ParkReason::Approval);
    let mut show = Show::of(story, (80, 24), 0);
    show.frame_at(0);
    show.chord(KeyCode::Char('g'), KeyModifiers::CONTROL);
    for call in calls {
        show.frame_at(show.ms);
        show.frame_at(show.ms + 800);
        show.frame();
        show.burst("y");
        later(&mut show, 40);
        show.next(|story| story.decide(call, Decision::AllowOnce, By::Operator(ClientId("s".to_string()))));
    }
    assert_eq!(commands(&show).len(), 3);
}

#[test]
fn what_is_typed_ahead_decides_nothing() {
    check("control: y", |show| show.letters("y"), 1);
    check("typed-ahead-04: Enter", |show| show.press(KeyCode::Enter), 0);
    check(
        "typed-ahead-05: space, a digit, Tab",
        |show| {
            show.letters(" 1");
            show.press(KeyCode::Tab);
        },
        0,
    );
    check(
        "typed-ahead-08: another call comes with the key; the one in hand is allowed",
        |show| {
            show.next(|story| {
                story.command_waits("rm -rf build");
            });
            show.letters("y");
            assert_eq!(show.app.waiting.len(), 2);
        },
        1,
    );
    check(
        "typed-ahead-10: what no key sends disturbs",
        |show| {
            show.press(KeyCode::F(3));
            show.letters("y");
        },
        0,
    );
    check(
        "typed-ahead-11: back from the shell",
        |show| {
            show.tell(Msg::Continued);
            show.letters("y");
        },
        0,
    );
    check(
        "typed-ahead-12: a grave call",
        |show| {
            show.next(|story| {
                story.grave = vec![Grave::Keys];
                story.command_waits("cat id_rsa");
            });
            show.letters("j");
            show.frame_at(2_000);
            show.frame_at(2_600);
            show.frame_at(2_601);
            show.letters("y");
        },
        0,
    );
    check("a paste", |show| show.tell(Msg::Paste("y\n".to_string())), 0);
    check("a held key", |show| show.hold(KeyCode::Char('y')), 0);
    check(
        "a resize",
        |show| {
            show.resize(100, 30);
            show.letters("y");
        },
        0,
    );
    check(
        "a key that came too early, and another that decides",
        |show| {
            show.press(KeyCode::PageDown);
            show.letters("a");
            show.frame_at(1_800);
            show.frame_at(2_400);
            show.letters("y");
        },
        0,
    );
    check(
        "the same key again, in time",
        |show| {
            show.press(KeyCode::PageDown);
            show.letters("y");
            show.frame_at(1_800);
            show.frame_at(2_400);
            show.letters("y");
        },
        1,
    );
    check(
        "words typed in one pane go on in another",
        |show| {
            show.letters("qq");
            show.press(KeyCode::Esc);
            show.chord(KeyCode::Char('g'), KeyModifiers::CONTROL);
            show.letters("p");
            show.frame_at(1_800);
            show.frame_at(2_400);
            show.letters("y");
        },
        0,
    );
    check("a day of waiting", |show| drop(show.frame_at(86_400_000)), 0);
}
