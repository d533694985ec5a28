//! What is fuzzed: bytes in, and what must hold whatever they are. Each is one function of bytes, so that libFuzzer
//! (`tests/fuzz/Cargo.toml`) and `cargo test --test fuzz` look for the same faults.

use std::collections::BTreeSet;

use sha2::Digest;
use sha2::Sha256;
use tiller::domain::event::Record;
use tiller::domain::id::ModelCallId;
use tiller::domain::id::RunId;
use tiller::domain::limits;
use tiller::domain::line::Joint;
use tiller::domain::line::Plain;
use tiller::domain::line::Redirect;
use tiller::domain::plan::Plan;
use tiller::domain::plan::TodoStatus;
use tiller::domain::rule::RuleEffect;
use tiller::domain::rule::Token;
use tiller::domain::run::Run;
use tiller::domain::visible;
use tiller::model::http::Quote;
use tiller::model::incoming::Incoming;
use tiller::model::openai::decode::Decoder;
use tiller::model::sse::EventReader;
use tiller::policy::catastrophe;
use tiller::policy::plan_text;
use tiller::policy::planning;
use tiller::policy::rules;
use tiller::policy::runners;
use tiller::policy::table;
use tiller::store::transfer;
use tiller::tools::line;
use tokio::sync::broadcast;

/// The most commands of a plain line.
const SEGMENTS: usize = 8;

/// A target by its name.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 7] = [
    ("sse", sse),
    ("stream", stream),
    ("journal", journal),
    ("plan", plan),
    ("visible", visible),
    ("line", line),
    ("rule", rule),
];

/// The first byte says how long the pieces are in which the rest comes.
fn pieces(data: &[u8]) -> (usize, &[u8]) {
    match data {
        [first, rest @ ..] => (usize::from(*first).max(1), rest),
        [] => (1, &[]),
    }
}

/// Events of a stream are the same however it is cut, and none of them ends with half a line.
pub fn sse(data: &[u8]) {
    let (length, rest) = pieces(data);
    let read = |length: usize| {
        let (mut reader, mut events) = (EventReader::default(), Vec::new());
        let mut parts = rest.chunks(length.max(1));
        let broken = parts.find_map(|part| reader.push(part, &mut events).err());
        let broken = broken.or_else(|| reader.end(&mut events).err());
        (events, broken)
    };
    assert_eq!(read(length), read(rest.len()), "pieces of {length} bytes");
}

/// A reply of a provider is the same however its bytes are cut, or broken in the same way.
pub fn stream(data: &[u8]) {
    let (length, rest) = pieces(data);
    let read = |length: usize| {
        let mut decoder = Decoder::new(Incoming::new(ModelCallId(1), broadcast::channel(1).0), Quote::default());
        for part in rest.chunks(length.max(1)) {
            decoder.push(part).map_err(|fault| (fault.class, fault.message))?;
        }
        decoder.end().map_err(|fault| (fault.class, fault.message))?;
        Ok::<_, (_, String)>(decoder.into_reply())
    };
    assert_eq!(read(length), read(rest.len()), "pieces of {length} bytes");
}

/// A journal whose records say anything at all, in a chain that fits: it is read as it was written, and folding it
/// gives a run or a reason. Lines that are no records are left out, so that what is changed in one line is not hidden by
/// a chain that no longer fits.
pub fn journal(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().take(400) {
        let Ok(serde_json::Value::Object(mut record)) = serde_json::from_str(line) else { continue };
        if !record.contains_key("event") {
            continue;
        }
        let before = lines.last().map_or("0".repeat(64), |line| hex(&Sha256::digest(line.as_bytes())));
        record.insert("seq".to_string(), (lines.len() + 1).into());
        record.insert("prev".to_string(), before[..32].into());
        lines.push(serde_json::Value::Object(record).to_string());
    }
    let id = RunId::try_from("333333333333".to_string()).unwrap();
    let written = transfer::write(&id, &lines).unwrap();
    let Ok(read) = transfer::read(&written) else { return };
    let Ok(run) = Run::fold(&id, &read.records) else { return };
    again(&run, &read.records);
}

/// What was read is written and read as the same, and the run that it gives can be asked all that a screen asks.
fn again(run: &Run, records: &[Record]) {
    for record in records {
        let json = serde_json::to_string(record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&json).ok().as_ref(), Some(record), "{json}");
    }
    let _ = run.check();
    let _ = (run.waiting(), run.remedy(), run.wakes_at(), run.more_output());
}

/// What a model says of a plan is a plan that holds its own limits, or a sentence.
pub fn plan(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let seed = Plan::seed("a goal");
    let first = planned(&seed, &text);
    if let Some(plan) = &first {
        planned(plan, &text);
    }
    let _ = plan_text::is_announced(&text);
    if let Some(value) = plan_text::read(&text) {
        planned(&first.unwrap_or(seed), &value.to_string());
    }
}

fn planned(plan: &Plan, arguments: &str) -> Option<Plan> {
    let next = match planning::accept(plan, arguments) {
        Ok(accepted) => accepted.plan,
        Err(why) => {
            assert!(!why.is_empty());
            return None;
        }
    };
    assert_eq!(next.revision, plan.revision + 1);
    let count = |status: TodoStatus| next.todos.iter().filter(|todo| todo.status == status).count();
    assert!(count(TodoStatus::InProgress) <= 1);
    assert!(next.todos.len() - count(TodoStatus::Dropped) <= limits::TODOS_MAX);
    let names: BTreeSet<String> = next.todos.iter().map(|todo| format!("{:?}", todo.id)).collect();
    assert_eq!(names.len(), next.todos.len(), "two todos of one name");
    Some(next)
}

/// No text reaches a terminal but as letters, line breaks and markers.
pub fn visible(data: &[u8]) {
    let shown = visible::approval_bytes(data);
    assert_harmless(&shown);
    let text = String::from_utf8_lossy(data);
    assert_harmless(&visible::transcript(&text));
    assert_harmless(&visible::title(&text, 80));
}

/// A line that is plain says the same when each of its words is quoted, and what it would run is what is judged.
pub fn line(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let read = line::read(&text);
    let Ok(plain) = &read.plain else {
        assert!(table::reads(&read, &[]).is_err(), "{text:?} is not plain and only reads");
        return;
    };
    assert!(text.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{text:?}");
    assert!(plain.segments.len() <= SEGMENTS && plain.segments.iter().all(|segment| !segment.argv.is_empty()));
    for segment in &plain.segments {
        assert!(read.commands.contains(&segment.argv), "{text:?}");
    }
    let _ = (table::reads(&read, &[]), catastrophe::catastrophe(&read, &[]));
    // Quotes make a line longer, and one that is too long is not plain.
    if let Some(quoted) = quoted(plain).filter(|quoted| quoted.len() <= limits::PLAIN_MAX_BYTES) {
        assert_eq!(line::read(&quoted).plain.as_ref(), Ok(plain), "{text:?} as {quoted}");
    }
}

/// A line that means the same, with quotes around each word; nothing where a word has both sorts of quotes in it.
fn quoted(plain: &Plain) -> Option<String> {
    let mut text = String::new();
    for segment in &plain.segments {
        text.push_str(match segment.joint {
            Joint::First => "",
            Joint::Pipe => " | ",
            Joint::And => " && ",
            Joint::Or => " || ",
            Joint::Then => " ; ",
        });
        for word in &segment.argv {
            if word.contains('\'') {
                return None;
            }
            text.push_str(&format!("'{word}' "));
        }
        for redirect in &segment.redirects {
            text.push_str(match redirect {
                Redirect::OutputToNull => ">/dev/null ",
                Redirect::ErrorsToNull => "2>/dev/null ",
                Redirect::ErrorsToOutput => "2>&1 ",
            });
        }
    }
    Some(text)
}

/// A rule that allows takes its own words, one word for each `{any:one}` that is no option (nor a
/// setting of a program that runs others), and all behind `{any:rest}`;
/// one that denies takes no less. The first line of the input is the rule, the second the command; a space parts words.
pub fn rule(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (rule, command) = text.split_once('\n').unwrap_or((&text, ""));
    let tokens: Vec<Token> = rule
        .split(' ')
        .map(|word| match word {
            "{any:one}" => Token::ONE,
            "{any:rest}" => Token::REST,
            word => Token::Word(word.to_string()),
        })
        .collect();
    let argv: Vec<String> = command.split(' ').map(str::to_string).collect();
    let rest = tokens.iter().position(|token| *token == Token::REST);
    let (said, is_open) = (&tokens[..rest.unwrap_or(tokens.len())], rest.is_some());
    let runs_others = matches!(tokens.first(), Some(Token::Word(program)) if runners::kind(program).is_some());
    let fits = |(token, word): (&Token, &String)| match token {
        Token::Word(one) => one == word,
        Token::Any { .. } => {
            let is_setting = runs_others && word.contains('=');
            !word.starts_with('-') && !is_setting
        }
    };
    let is_long_enough = if is_open { argv.len() >= said.len() } else { argv.len() == said.len() };
    let expected = is_long_enough && said.iter().zip(&argv).all(fits);
    assert_eq!(rules::covers(RuleEffect::Allow, &tokens, &argv), expected, "{tokens:?} and {argv:?}");
    if expected {
        assert!(rules::covers(RuleEffect::Deny, &tokens, &argv), "{tokens:?} and {argv:?}");
    }
}

fn assert_harmless(shown: &str) {
    let bad = shown.chars().find(|one| one.is_control() && *one != '\n');
    assert_eq!(bad, None, "{shown:?}");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
