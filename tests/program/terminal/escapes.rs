//! Hostile texts through the real program in a real terminal: texts and arguments of the model, names and contents of
//! files, output of commands, 100,000 sequences in all. What reaches the terminal is tiller's own vocabulary, and the
//! frame around it is that of a harmless run of the same shape (docs/SAFETY.md §8, R9 and R12).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use tiller::domain::visible::approval;
use tiller::domain::visible::transcript;

use crate::chance::Chance;
use crate::program::terminal::CTRL_G;
use crate::program::terminal::ESC;
use crate::program::terminal::decide;
use crate::program::terminal::leave;
use crate::program::terminal::pty::Pty;
use crate::program::terminal::vocabulary::foreign;
use crate::program::terminal::vocabulary::foreign_in_lines;
use crate::real::Stage;

const SIZE: (u16, u16) = (120, 36);
const SEEDS: [u64; 1] = [20_26];
/// Sequences in the output of the command, in the file that is read, in the model's text, in its arguments, in each
/// of the names and how many names.
const OUTPUT: usize = 97_500;
const FILE: usize = 800;
const TEXT: usize = 1_200;
const LINE: usize = 300;
const NAME: usize = 5;
const NAMES: usize = 40;

/// Where a text goes decides which sequences it can hold at all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Bytes,
    Text,
    /// No letters outside ASCII either: they are named beside the call, which is no part of the frame.
    Line,
}

/// One sequence that a terminal could obey, or that an eye could miss.
fn sequence(chance: &mut Chance, holds: Holds) -> Vec<u8> {
    const CSI: [&str; 16] = [
        "2J", "H", "1;1H", "999C", "5A", "?1049l", "?2004l", "?25l", "6n", "c", ">c", "3J", "201~y", "1;3r", "!p",
        "20t",
    ];
    const OSC: [&str; 8] =
        ["0;owned", "2;owned", "8;;http://x.invalid", "52;c;b3duZWQ=", "9;owned", "777;notify;a;b", "4;1;?", "11;?"];
    const STRINGS: [&str; 5] = ["P+q544e", "_Gf=100;AAAA", "^owned", "Xowned", "Pq#0;2;0"];
    const SHORT: [&str; 10] = ["c", "7", "8", "(0", "#8", "=", ">", "M", "Z", "N"];
    const CONTROLS: [char; 10] =
        ['\u{7}', '\u{8}', '\r', '\u{b}', '\u{c}', '\u{e}', '\u{f}', '\u{5}', '\u{18}', '\u{7f}'];
    const UNSEEN: [char; 12] = [
        '\u{202e}',
        '\u{2066}',
        '\u{200b}',
        '\u{200d}',
        '\u{feff}',
        '\u{2028}',
        '\u{a0}',
        '\u{e0041}',
        '\u{fe0f}',
        '\u{ad}',
        '\u{e000}',
        '\u{378}',
    ];
    const FRAMES: [&str; 6] = ["┃", "┗━ code abcd ━┛", "[y] once", "⟦ESC⟧", "⟫", "│"];
    const WIDE: [&str; 8] = ["日", "e\u{301}", "👍🏽", "👨\u{200d}👩", "🇩🇪", "\u{3164}", "\u{1160}", "❤\u{fe0f}"];
    let text = match chance.below(10) {
        0 | 1 => format!("\x1b[{}", chance.pick(&CSI)),
        2 => format!("\x1b[{};{}{}", chance.below(99), chance.below(99), chance.pick(&['m', 'H', 'f', 'q', 'n', 'J'])),
        3 => format!("\x1b]{}{}", chance.pick(&OSC), chance.pick(&["\x07", "\x1b\\", "\u{9c}", ""])),
        4 => format!("\x1b{}{}", chance.pick(&STRINGS), chance.pick(&["\x1b\\", "\u{9c}", ""])),
        5 => format!("\x1b{}", chance.pick(&SHORT)),
        6 => chance.pick(&CONTROLS).to_string(),
        7 => format!("{}{}", char::from_u32(0x80 + chance.below(0x20) as u32).unwrap(), chance.pick(&CSI)),
        8 => format!("a{}", chance.pick(&UNSEEN)),
        _ if holds == Holds::Line || chance.percent(50) => chance.pick(&FRAMES).to_string(),
        _ => chance.pick(&WIDE).to_string(),
    };
    match chance.below(20) {
        0 if holds == Holds::Bytes => b"\x9b31m\xff\x00".to_vec(),
        _ => text.into_bytes(),
    }
}

fn bytes(chance: &mut Chance, count: usize, holds: Holds) -> Vec<u8> {
    let between = |chance: &mut Chance| chance.pick(&[" ", " ", "x", "7 ", "\n"]).as_bytes();
    let parts: Vec<Vec<u8>> =
        (0..count).map(|_| [sequence(chance, holds).as_slice(), between(chance)].concat()).collect();
    parts.concat()
}

fn text(chance: &mut Chance, count: usize, holds: Holds) -> String {
    String::from_utf8(bytes(chance, count, holds)).unwrap()
}

/// What of others a run meets.
struct Material {
    goal: String,
    todo: String,
    words: String,
    line: String,
    output: Vec<u8>,
    file: String,
    names: Vec<Vec<u8>>,
}

impl Material {
    fn hostile(seed: u64) -> Material {
        let chance = &mut Chance::new(seed);
        let name = |chance: &mut Chance| {
            let mut name = bytes(chance, NAME, Holds::Bytes);
            name.retain(|byte| !matches!(byte, 0 | b'/'));
            name.truncate(200);
            name
        };
        Material {
            goal: text(chance, 8, Holds::Line),
            todo: text(chance, 8, Holds::Text).replace('\n', " "),
            words: text(chance, TEXT, Holds::Text),
            line: format!("true '{}'", text(chance, LINE, Holds::Line).replace('\'', "")),
            output: bytes(chance, OUTPUT, Holds::Bytes),
            file: text(chance, FILE, Holds::Text),
            names: (0..NAMES).map(|_| name(chance)).collect(),
        }
    }

    /// The same shape without anything to obey or to miss: what the sanitiser makes of it, in plain letters.
    fn harmless(&self) -> Material {
        let plain = |text: &str| -> String {
            let letter = |one: char| match one {
                '⟦' => '[',
                '⟧' => ']',
                '\n' => '\n',
                _ if one.is_ascii() => one,
                _ => '#',
            };
            text.chars().map(letter).collect()
        };
        let lossy = |bytes: &[u8]| plain(&transcript(&String::from_utf8_lossy(bytes)));
        Material {
            goal: plain(&transcript(&self.goal)),
            todo: plain(&transcript(&self.todo)),
            words: plain(&transcript(&self.words)),
            line: plain(&approval(&self.line).replace("⟦LF⟧\n", "\n")),
            output: lossy(&self.output).into_bytes(),
            file: plain(&transcript(&self.file)),
            names: self.names.iter().map(|name| lossy(name).replace('/', "#").into_bytes()).collect(),
        }
    }

    fn lay_out(&self, stage: &Stage) -> String {
        std::fs::write(stage.path("work/output"), &self.output).unwrap();
        std::fs::write(stage.path("work/file"), &self.file).unwrap();
        std::fs::create_dir(stage.path("work/names")).unwrap();
        for (place, name) in self.names.iter().enumerate() {
            let name = [format!("{place}").as_bytes(), &name[..name.len().min(200)]].concat();
            std::fs::write(stage.path("work/names").join(OsStr::from_bytes(&name)), "x\n").unwrap();
        }
        let quoted = |text: &str| toml::Value::String(text.to_string()).to_string();
        let (todo, words, line) = (quoted(&self.todo), quoted(&self.words), quoted(&self.line));
        format!(
            "chunk_ms = 0\n\
             [[step]]\nname = \"plan\"\ntext = \"a plan\"\ncalls = [ {{ tool = \"update_plan\", args = {{ todos = [ \
             {{ id = \"a\", title = {todo}, status = \"in_progress\" }} ] }} }} ]\n\
             [[step]]\nname = \"loud\"\ntext = {words}\ncalls = [ {{ tool = \"shell\", args = {{ command = \"cat output\" \
             }} }} ]\n\
             [[step]]\nname = \"look\"\ntext = \"I look.\"\ncalls = [ {{ tool = \"read_file\", args = {{ path = \"file\" \
             }} }}, {{ tool = \"list_dir\", args = {{ path = \"names\" }} }}, {{ tool = \"read_file\", args = {{ path = \
             {todo} }} }}, {{ tool = \"search_files\", args = {{ pattern = \"x\", path = \"names\" }} }}, {{ tool = \
             {todo}, args = {{ path = \"x\" }} }} ]\n\
             [[step]]\nname = \"ask\"\ntext = {todo}\ncalls = [ {{ tool = \"shell\", args = {{ command = {line} }} }} ]\n"
        )
    }
}

/// What was seen of a run that waits for the last call.
struct Looked {
    stage: Stage,
    /// The cells of the screen with the keys on the call, at its end, and with all of it in a window.
    frames: Vec<Vec<Vec<String>>>,
    bytes: Vec<u8>,
}

fn look(material: &Material) -> Looked {
    let stage = Stage::new();
    stage.write("config/tiller/tiller.toml", "[notify]\nbell = true\ndesktop = true\n");
    let model = stage.model(&material.lay_out(&stage));
    let mut pty = Pty::tiller(&stage, SIZE, &["run", &material.goal, "--model", &model]);
    pty.wait_for("the run waits");
    pty.type_in(CTRL_G);
    decide(&pty, "shell  cat output", "y");
    pty.wait("the last call waits", |screen| screen.contains("shell  true") && screen.contains("^G goes here"));
    pty.type_in(CTRL_G);
    pty.wait_for("G shows the end");
    let mut frames = vec![pty.cells()];
    pty.type_in("G");
    pty.wait_for(KEYS);
    frames.push(pty.cells());
    pty.type_in("v");
    pty.wait("the whole call is shown", |screen| screen.contains(KEYS) && !screen.contains("Tab panes"));
    frames.push(pty.cells());
    pty.type_in(ESC);
    pty.wait_for("Esc comes here");
    assert!(pty.has_written("\x1b]0;") && pty.has_written("\x1b]9;tiller: "), "the title and the word to the operator");
    assert_eq!(leave(&mut pty), 10);
    Looked { stage, frames, bytes: pty.bytes() }
}

/// The keys of a call that was read, at rest; more of them than the content forges.
const KEYS: &str = "[y] once [a] this run [n] deny";
/// Where the borders of the panes stand, and those of a window over them.
const PANES: [usize; 4] = [0, 35, 36, 119];
const WINDOW: [usize; 2] = [0, 119];

/// The cells that no content may reach: header, status, keys, and the borders of the panes. Numbers differ.
fn frame(cells: &[Vec<String>]) -> Vec<String> {
    let rows = cells.len();
    let is_window = cells[0][0] == "┏";
    let columns = if is_window { &WINDOW[..] } else { &PANES[..] };
    let text = |row: &[String]| {
        let same = |one: char| match one {
            '0'..='9' => '0',
            '⟦' => '[',
            '⟧' => ']',
            _ => one,
        };
        row.iter().flat_map(|cell| cell.chars().map(same)).collect::<String>()
    };
    let edge = |(place, row): (usize, &Vec<String>)| match place {
        _ if place < 2 && is_window => text(row).chars().take(14).collect(),
        1 => text(row).chars().take(40).collect(),
        // Without the name of the run.
        0 => text(row).chars().skip(14).collect(),
        _ if place + 3 >= rows => text(row),
        _ => columns.iter().map(|column| row[*column].as_str()).collect::<String>(),
    };
    cells.iter().enumerate().map(edge).collect()
}

#[test]
fn hostile_texts_reach_the_terminal_as_marks_and_no_cell_of_the_frame() {
    for seed in SEEDS {
        let hostile = Material::hostile(seed);
        // The control: the parser finds what is hostile in the raw material.
        let found = foreign(&hostile.output).len() + foreign(hostile.words.as_bytes()).len();
        assert!(found > (OUTPUT + TEXT) / 2, "{found}");
        const { assert!(OUTPUT + FILE + TEXT + LINE + NAME * NAMES >= 100_000) };

        let (seen, plain) = (look(&hostile), look(&hostile.harmless()));
        for looked in [&seen, &plain] {
            let found = foreign(&looked.bytes);
            assert!(found.is_empty(), "seed {seed}: {} of them: {:?}", found.len(), &found[..found.len().min(9)]);
        }
        for (seen, plain) in seen.frames.iter().zip(&plain.frames) {
            assert_eq!(frame(seen), frame(plain), "seed {seed}");
        }
        check_lines(&seen.stage);
    }
}

/// What is printed of the same run: no line of it holds anything that a terminal obeys.
fn check_lines(stage: &Stage) {
    let id = stage.ids()[0].clone();
    let prints: [&[&str]; 8] = [
        &["show", &id],
        &["runs"],
        &["audit", &id],
        &["audit", &id, "--payloads"],
        &["doctor"],
        &["resume", &id, "--plain"],
        &["approve", &id, "c1", "00000000"],
        &["say", &id, "x"],
    ];
    for words in prints {
        let said = stage.ask(words);
        assert!(!said.out.is_empty() || !said.err.is_empty(), "{words:?}");
        for text in [&said.out, &said.err] {
            let found = foreign_in_lines(text);
            assert!(found.is_empty(), "{words:?}: {:?}", &found[..found.len().min(9)]);
        }
    }
    // Raw by contract, as JSON, which escapes what moves a cursor or begins a sequence of seven bits, and no more.
    let export = stage.ask(&["export", &id]).out;
    assert!(export.contains("\\u001b") && !export.contains(|one: char| one < ' ' && one != '\n'));
    for entry in std::fs::read_dir(stage.path("state/tiller/log")).unwrap() {
        let log = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let found = foreign_in_lines(&log);
        assert!(!log.is_empty() && found.is_empty(), "the log: {:?}", &found[..found.len().min(9)]);
    }
}
