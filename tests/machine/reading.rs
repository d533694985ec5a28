//! The language of the inputs. A line is one input:
//!
//! - `own`, `own PROBLEM`, `record`: a process takes the run, to drive it or only to record.
//! - `reply PART | PART`: the model answers. Parts: `"text"` (`\n` breaks a line), `read P`, `write P TEXT`,
//!   `shell LINE`, `touch P`, `todos TODO, TODO` and `patch …` (`id=title`, `+` done, `*` in progress, `!` dropped without a note), `finish
//!   TEXT`, `finish-without ID,ID TEXT`, `ask TEXT`, `note TEXT`, `raw TOOL JSON`; `as WIRE: PART`; `stop=…`,
//!   `usage=IN/OUT`, `usage=none`, `bytes=N`, `opaque=JSON`. A usage of 1000/100 is reported unless said otherwise.
//! - `fail CLASS [accepted] [usage=IN/OUT] [bytes=N] [retry=SECONDS]`: it does not.
//!   `summary FACT` is a summary with all its sections; `#` in any input is the number of the iteration.
//! - `prepared [cN=outside|boxed|reads|fetch|impossible|changed|refused|invalid|secret]`: what the calls would touch.
//! - `done|failed|timedout|cancelled cN [class=CLASS|watched=FILE] TEXT` (`last` for the last call that runs, `{N WORD}` for N bytes of
//!   text), `drifted cN WHY`, `check N pass|fail|ended`, `probed cN done|not|unknown`.
//! - `back [lost]`: the text that was put away and is being read back.
//! - `unready PROBLEM`: a resume that something stands against.
//! - `tick`, and what the operator asks, as in `COMMANDS`.

use serde_json::Value;
use serde_json::json;
use tiller::domain::approval::Decision;
use tiller::domain::approval::Resolution;
use tiller::domain::budget::Axis;
use tiller::domain::budget::Limit;
use tiller::domain::budget::Limits;
use tiller::domain::budget::ReservationId;
use tiller::domain::command::Cancel;
use tiller::domain::command::Command;
use tiller::domain::command::Pause;
use tiller::domain::command::Policy;
use tiller::domain::event::Owner;
use tiller::domain::event::OwnerMode;
use tiller::domain::id::CallId;
use tiller::domain::id::ClientId;
use tiller::domain::id::InterjectionId;
use tiller::domain::line::Joint;
use tiller::domain::line::Line;
use tiller::domain::line::Plain;
use tiller::domain::line::Segment;
use tiller::domain::model::AskedCall;
use tiller::domain::model::Dialect;
use tiller::domain::model::FailureClass;
use tiller::domain::model::ModelFailure;
use tiller::domain::model::ModelReply;
use tiller::domain::model::ModelSpec;
use tiller::domain::model::Received;
use tiller::domain::model::StopReason;
use tiller::domain::money::MicroUsd;
use tiller::domain::money::Price;
use tiller::domain::money::Usage;
use tiller::domain::pricing;
use tiller::domain::sandbox::Level;
use tiller::domain::sandbox::Manner;
use tiller::domain::status::Lack;
use tiller::domain::status::ParkReason;
use tiller::domain::terms::Check;
use tiller::domain::terms::Goal;
use tiller::domain::terms::Terms;
use tiller::domain::time::Span;
use tiller::domain::tool::Digest;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::ErrorClass;
use tiller::domain::tool::Facts;
use tiller::domain::tool::FileWrite;
use tiller::domain::tool::Grave;
use tiller::domain::tool::Noise;
use tiller::domain::tool::OutcomeKind;
use tiller::domain::tool::Probe;
use tiller::domain::tool::Problem;
use tiller::domain::tool::ProblemKind;
use tiller::domain::tool::ToolCall;
use tiller::domain::tool::ToolOutcome;
use tiller::domain::tool::ToolSpec;
use tiller::domain::trust::Trust;
use tiller::machine::Input;
use tiller::machine::Outcome;
use tiller::policy::plan_edit;

use crate::machine::stage::Stage;

/// Every command that there is, with the finer differences.
pub const COMMANDS: &[&str] = &[
    "allow c2",
    "allow-run c2",
    "allow-tool c2",
    "edit c2 {\"path\":\"other\"}",
    "allow-all c2",
    "trust plan",
    "trust full_trust",
    "deny c2 no",
    "stale c2",
    "allow c99",
    "resolve c2 happened",
    "resolve c2 not",
    "resolve c2 again",
    "resolve c2 skip",
    "answer c2 blue",
    "say hello",
    "say",
    "withdraw i1",
    "pause",
    "pause iteration",
    "pause now",
    "resume",
    "grant",
    "confirm yes",
    "accept",
    "close",
    "cancel",
    "cancel now",
    "retry",
    "raise cost 9000000",
    "raise iterations 0",
    "plan add more",
    "leave",
];

/// A dollar for a million tokens in, ten out.
const PRICE: Price = Price { input: 1_000_000, cache_read: 100_000, cache_write: 1_000_000, output: 10_000_000 };

/// `checks=a;b wrap-up=on output=… most-output=… loops=3 cost=… tokens=… tool-calls=… time=… model-calls=… window=…`
pub fn terms(text: &str) -> Terms {
    let (mut limits, mut checks, mut window) = (Limits::default(), Vec::new(), 1_000_000);
    let (mut wrap_up, mut max_output, mut most_output) = (false, 1_000, None);
    let mut price = Some(PRICE);
    let (mut trust, mut keep_full_trust) = (Trust::Ask, false);
    for (key, value) in text.split_whitespace().filter_map(|word| word.split_once('=')) {
        match key {
            "checks" => checks = value.split(';').map(check).collect(),
            "trust" => trust = Trust::parse(value).unwrap(),
            "keep-full-trust" => keep_full_trust = value == "true",
            "most-output" => most_output = Some(value.parse().unwrap()),
            "price" => price = None,
            "window" => window = value.parse().unwrap(),
            "output" => max_output = value.parse().unwrap(),
            "wrap-up" => wrap_up = value == "on",
            "loops" => limits.loops = Limit::At(value.parse().unwrap()),
            axis => limits.set(Axis::parse(axis).unwrap(), Limit::At(value.parse().unwrap())),
        }
    }
    Terms {
        goal: Goal::try_from("make it right".to_string()).unwrap(),
        workspace: "/w".to_string(),
        limits,
        checks,
        wrap_up,
        model: ModelSpec {
            name: "sim/sim".to_string(),
            dialect: Dialect::Scripted,
            address: String::new(),
            model: "sim".to_string(),
            key_variable: Some("SIM_KEY".to_string()),
            window,
            most_output,
            max_output,
            price,
        },
        tools: vec![
            ToolSpec { schema: reading_schema(), ..tool("read_file", EffectClass::Read) },
            tool("write_file", EffectClass::WriteFile),
            tool("touch", EffectClass::Idempotent),
            tool("shell", EffectClass::External),
        ],
        instructions: String::new(),
        guide: None,
        rehearsal: false,
        trust,
        keep_full_trust,
    }
}

fn reading_schema() -> Value {
    json!({"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}, "context": {}}, "additionalProperties": false})
}

/// `exists:PATH`, `judge`, `confirm`, `tool:NAME`; anything else is a shell line.
fn check(text: &str) -> Check {
    match text.split_once(':').unwrap_or((text, "")) {
        ("exists", path) => Check::FileExists(path.to_string()),
        ("tool", name) => Check::Tool { name: name.to_string(), arguments: "{}".to_string() },
        ("judge", _) => Check::ModelJudge("is it right?".to_string()),
        ("confirm", _) => Check::OperatorConfirm(String::new()),
        _ => Check::Command(text.to_string()),
    }
}

fn tool(name: &str, effect: EffectClass) -> ToolSpec {
    let presentational = if effect == EffectClass::Read { vec!["context".to_string()] } else { Vec::new() };
    let noise = Noise { presentational, is_output: effect == EffectClass::External };
    ToolSpec { name: name.to_string(), description: String::new(), schema: json!({"type": "object"}), effect, noise }
}

pub fn owner(mode: OwnerMode) -> Owner {
    Owner { pid: 1, host: "stage".to_string(), version: "0".to_string(), mode }
}

pub fn input(stage: &Stage, line: &str) -> Input {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    match word {
        "own" => Input::Recovered { owner: owner(OwnerMode::Drives), lacks: lack(rest).into_iter().collect() },
        "record" => Input::Recovered { owner: owner(OwnerMode::Records), lacks: Vec::new() },
        "unready" => Input::Unready { lacks: lack(rest).into_iter().collect(), by: Some(ClientId("op".to_string())) },
        "tick" => Input::Tick,
        "reply" | "fail" => {
            let call = stage.run.model_call.map_or(stage.run.next.model_call, |flying| flying.id.call);
            let result = if word == "reply" { Ok(Box::new(reply(rest))) } else { Err(Box::new(failure(rest))) };
            Input::Outcome(Outcome::Model { call, result })
        }
        "prepared" => Input::Outcome(prepared(stage, rest)),
        "done" | "failed" | "timedout" | "cancelled" => {
            let (call, text) = match rest.strip_prefix("last ") {
                Some(text) => (stage.run.running_calls().last().unwrap().id, text),
                None => named(rest),
            };
            let kind = match word {
                "done" => OutcomeKind::Done,
                "failed" => OutcomeKind::Failed,
                "timedout" => OutcomeKind::TimedOut,
                _ => OutcomeKind::Cancelled,
            };
            let (class, text) = match text.strip_prefix("class=").map(|rest| rest.split_once(' ').unwrap_or((rest, "")))
            {
                Some((class, text)) => (Some(serde_json::from_value::<ErrorClass>(json!(class)).unwrap()), text),
                None => (None, text),
            };
            let (watched, text) =
                match text.strip_prefix("watched=").map(|rest| rest.split_once(' ').unwrap_or((rest, ""))) {
                    Some((file, text)) => (vec![file.to_string()], text),
                    None => (Vec::new(), text),
                };
            let text = if text.is_empty() { "ok".to_string() } else { long(text) };
            let outcome = ToolOutcome { kind, bytes: text.len() as u64, text, took: Span(5), class, watched };
            Input::Outcome(Outcome::Tool { call, outcome })
        }
        "drifted" => {
            let (call, why) = named(rest);
            Input::Outcome(Outcome::Drifted { call, why: why.to_string() })
        }
        "check" => {
            let (index, how) = rest.split_once(' ').unwrap();
            let index = index.parse().unwrap();
            Input::Outcome(match how {
                "ended" => Outcome::CheckEnded { index },
                _ => Outcome::Check { index, passed: how == "pass", detail: format!("it did {how}") },
            })
        }
        "probed" => {
            let (call, how) = named(rest);
            let probe = match how {
                "done" => Probe::Done,
                "not" => Probe::NotDone,
                _ => Probe::Unknown,
            };
            Input::Outcome(Outcome::Probed { call, probe })
        }
        "back" => {
            let (call, place) = stage.unread.as_ref().unwrap();
            let record = &stage.journal[usize::try_from(place.record().0).unwrap() - 1];
            let text = if rest == "lost" { Err("it is gone".to_string()) } else { place.text(record.event.clone()) };
            Input::Outcome(Outcome::ReadBack { call: *call, text })
        }
        _ => Input::Command(command(stage, word, rest), ClientId("op".to_string())),
    }
}

fn lack(word: &str) -> Option<Lack> {
    let reason = match word {
        "" => return None,
        "credentials" => ParkReason::Credentials,
        "model-config" => ParkReason::ModelConfig,
        "price-unknown" => ParkReason::PriceUnknown,
        "storage" => ParkReason::Storage,
        other => panic!("own {other}"),
    };
    Some(Lack { reason, sentence: format!("the {word} of SIM_KEY") })
}

fn named(text: &str) -> (CallId, &str) {
    let (id, rest) = text.split_once(' ').unwrap_or((text, ""));
    (CallId::parse(id).unwrap(), rest)
}

fn command(stage: &Stage, word: &str, rest: &str) -> Command {
    let decide = |decision: &dyn Fn(&str) -> Decision| {
        let (call, words) = named(rest);
        let seen = stage.run.calls.get(&call).and_then(ToolCall::digest);
        let digest = seen.filter(|_| word != "stale").unwrap_or(Digest("stale".to_string()));
        Command::Decide { call, digest, decision: decision(words) }
    };
    match (word, rest) {
        ("allow" | "stale", _) => decide(&|_| Decision::AllowOnce),
        ("allow-run", _) => decide(&|_| Decision::AllowRun),
        ("allow-tool", _) => decide(&|_| Decision::AllowTool),
        ("allow-unboxed", _) => decide(&|_| Decision::AllowUnboxed),
        ("edit", _) => decide(&|words| Decision::Edit(edited(words))),
        ("allow-all", _) => {
            let seen = |id: &str| {
                let (id, is_stale) = id.strip_prefix("stale:").map_or((id, false), |id| (id, true));
                let call = CallId::parse(id).unwrap();
                let digest = stage.run.calls.get(&call).and_then(ToolCall::digest).filter(|_| !is_stale);
                (call, digest.unwrap_or(Digest("stale".to_string())))
            };
            Command::AllowAll { calls: rest.split_whitespace().map(seen).collect() }
        }
        ("trust", mode) => Command::SetTrust(Trust::parse(mode).unwrap()),
        // The code of the call as it is, or whatever stands behind a colon: of a call its code; or the one for the other
        // side of its box.
        ("code" | "other-code", rest) => {
            let (how, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            let leave = command(stage, how, rest);
            let (call, typed) = named(rest);
            let manners = [Manner::Usual, Manner::Unboxed];
            let manner = manners[usize::from((how == "allow-unboxed") == (word == "code"))];
            let of = |call: &CallId| Some(stage.run.calls.get(call)?.digest()?.code(&stage.run.id, manner));
            let code = typed.split_once(':').map(|(_, typed)| {
                let other = typed.strip_prefix('c').and_then(|number| number.parse().ok());
                other.and_then(|number| of(&CallId(number))).unwrap_or_else(|| typed.to_string())
            });
            let code = code.or_else(|| of(&call)).unwrap_or_default();
            Command::Coded { code, leave: Box::new(leave) }
        }
        ("deny", _) => decide(&|words| Decision::Deny(words.to_string())),
        ("resolve", _) => {
            let (call, how) = named(rest);
            let (how, text) = how.split_once(' ').unwrap_or((how, ""));
            let resolution = match how {
                "happened" => Resolution::Happened(text.to_string()),
                "not" => Resolution::NotHappened,
                "again" => Resolution::RunAgain,
                _ => Resolution::Skip,
            };
            Command::Resolve { call, resolution }
        }
        ("answer", _) => Command::Answer { call: named(rest).0, text: named(rest).1.to_string() },
        ("say", text) => Command::Interject { text: long(text), policy: Policy::Next },
        ("retry", _) => Command::Retry,
        ("pause", "iteration") => Command::Pause(Pause::AfterIteration),
        ("say-now", text) => Command::Interject { text: text.to_string(), policy: Policy::SteerNow },
        ("interrupt", text) => Command::Interject { text: text.to_string(), policy: Policy::Interrupt },
        ("say-after", text) => Command::Interject { text: text.to_string(), policy: Policy::AfterDone },
        ("withdraw", id) => Command::Withdraw(InterjectionId::parse(id).unwrap()),
        ("pause", "now") => Command::Pause(Pause::Now),
        ("pause", _) => Command::Pause(Pause::AfterTool),
        ("cancel", "now") => Command::Cancel(Cancel::Now),
        ("cancel", _) => Command::Cancel(Cancel::Graceful),
        ("raise", _) => {
            let (axis, limit) = rest.split_once(' ').unwrap();
            let limit = limit.parse().map_or(Limit::Unlimited, Limit::At);
            Command::Raise { axis: Axis::parse(axis).unwrap(), limit }
        }
        ("plan", edit) => Command::EditPlan(plan_edit::read(edit).unwrap()),
        ("price", _) => Command::Price { price: pricing::parse(rest).unwrap() },
        ("correct", _) => {
            let (id, amount) = rest.split_once(' ').unwrap();
            let id = ReservationId::parse(id).unwrap();
            Command::Correct { id, amount: MicroUsd(amount.parse().unwrap()) }
        }
        ("resume", _) => Command::Resume,
        ("grant", _) => Command::GrantReplans,
        ("confirm", _) => {
            let (word, text) = rest.split_once(' ').unwrap_or((rest, ""));
            let claim = stage.run.claim_digest().filter(|_| word != "stale").unwrap_or(Digest("stale".to_string()));
            Command::Confirm { claim, confirmed: word != "no", text: text.to_string() }
        }
        ("accept", _) => Command::Accept,
        ("close", _) => Command::Close,
        ("leave", _) => Command::Leave,
        other => panic!("{other:?} is no input"),
    }
}

/// `{3000 word}` is that word again and again, up to so many bytes.
fn long(text: &str) -> String {
    let Some(inner) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else { return text.to_string() };
    let (bytes, word) = inner.split_once(' ').unwrap();
    let bytes: usize = bytes.parse().unwrap();
    let mut text = format!("{word} ").repeat(bytes / (word.len() + 1) + 1);
    text.truncate(bytes);
    text
}

/// A summary with all its sections.
fn summary(fact: &str) -> String {
    format!(
        "## Facts found\n{fact}\n## Decisions and reasons\nnone\n## Files touched\nnone\n## Failed approaches\nnone\n\
         ## Next step\ngo on"
    )
}

/// New arguments, as JSON or as a part of a reply.
fn edited(words: &str) -> String {
    if words.starts_with(['{', '[']) { words.to_string() } else { asked(words).arguments }
}

fn usage(text: &str) -> Option<Usage> {
    let (input, output) = text.split_once('/')?;
    let (input, cached) = input.split_once('+').unwrap_or((input, "0"));
    Some(Usage {
        input: input.parse().unwrap(),
        cache_read: cached.parse().unwrap(),
        output: output.parse().unwrap(),
        ..Usage::default()
    })
}

fn failure(text: &str) -> ModelFailure {
    let (class, rest) = text.split_once(' ').unwrap_or((text, ""));
    let class: FailureClass = serde_json::from_value(json!(class)).unwrap();
    let mut received = Received::default();
    let mut retry_after = None;
    for word in rest.split_whitespace() {
        match word.split_once('=').unwrap_or((word, "")) {
            ("accepted", _) => received.accepted = true,
            ("usage", of) => received.usage = usage(of),
            ("bytes", of) => received.bytes = of.parse().unwrap(),
            ("retry", of) => retry_after = Some(Span::seconds(of.parse().unwrap())),
            other => panic!("fail {other:?}"),
        }
    }
    ModelFailure { class, message: format!("{class:?}"), retry_after, received }
}

fn reply(text: &str) -> ModelReply {
    let mut reply = ModelReply {
        text: String::new(),
        reasoning: String::new(),
        calls: Vec::new(),
        opaque: Vec::new(),
        stop: StopReason::End,
        usage: usage("1000/100"),
        received_bytes: 300,
    };
    for part in text.split(" | ").filter(|part| !part.is_empty()) {
        if let Some(said) = part.strip_prefix('"') {
            reply.text = said.trim_end_matches('"').replace("\\n", "\n");
            continue;
        }
        if let Some(fact) = part.strip_prefix("summary ") {
            reply.text = summary(&long(fact));
            continue;
        }
        match part.split_once('=').unwrap_or((part, "")) {
            ("stop", "length") => reply.stop = StopReason::Length,
            ("stop", "paused") => reply.stop = StopReason::Paused,
            ("stop", "refused") => reply.stop = StopReason::Refused,
            ("stop", other) => reply.stop = StopReason::Other(other.to_string()),
            ("usage", of) => reply.usage = usage(of),
            ("opaque", of) => reply.opaque.push(of.to_string()),
            ("bytes", of) => reply.received_bytes = of.parse().unwrap(),
            _ => reply.calls.push(asked(part)),
        }
    }
    reply
}

fn asked(part: &str) -> AskedCall {
    if let Some((id, part)) = part.strip_prefix("as ").and_then(|rest| rest.split_once(": ")) {
        return AskedCall { id: id.to_string(), ..asked(part) };
    }
    let (word, rest) = part.split_once(' ').unwrap_or((part, ""));
    let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
    let (name, arguments) = match word {
        "read" => ("read_file", json!({ "path": rest }).to_string()),
        "write" => ("write_file", json!({ "path": first, "content": second }).to_string()),
        "shell" => ("shell", json!({ "command": rest }).to_string()),
        "touch" => ("touch", json!({ "path": rest }).to_string()),
        "todos" => ("update_plan", json!({ "todos": todos(rest) }).to_string()),
        "patch" => ("update_plan", json!({ "mode": "patch", "todos": todos(rest) }).to_string()),
        "finish" => ("finish", json!({ "summary": rest }).to_string()),
        "finish-without" => {
            let without: Vec<Value> =
                first.split(',').map(|id| json!({ "id": id, "reason": "not after all" })).collect();
            ("finish", json!({ "summary": second, "not_needed": without }).to_string())
        }
        "ask" => ("ask_operator", json!({ "question": rest }).to_string()),
        "note" => ("note", json!({ "text": rest }).to_string()),
        "raw" => (first, second.to_string()),
        other => panic!("{other:?} is no part of a reply"),
    };
    AskedCall { id: String::new(), name: name.to_string(), arguments }
}

fn todos(text: &str) -> Vec<Value> {
    let one = |text: &str| {
        let status = match text.chars().last() {
            Some('+') => "done",
            Some('*') => "in_progress",
            Some('!') => "dropped",
            _ => "pending",
        };
        let text = text.trim_end_matches(['+', '*', '!']);
        match text.split_once('=') {
            Some((id, title)) => json!({ "id": id, "title": title, "status": status }),
            None => json!({ "title": text, "status": status }),
        }
    };
    text.split(", ").filter(|text| !text.is_empty()).map(one).collect()
}

fn prepared(stage: &Stage, text: &str) -> Outcome {
    let facts = |call: &ToolCall| {
        let id = call.id.to_string();
        let how = text.split_whitespace().filter_map(|word| word.split_once('=')).find(|(one, _)| *one == id);
        (call.id, facts(call, how.map_or("", |(_, how)| how)))
    };
    Outcome::Prepared(stage.unprepared.iter().map(facts).collect())
}

fn bound(write: &FileWrite) -> Vec<String> {
    let before = write.before.as_deref().unwrap_or("absent");
    vec![format!("path={}", write.path), format!("content before={before}"), format!("content after={}", write.after)]
}

fn facts(call: &ToolCall, how: &str) -> Facts {
    let value: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_string();
    let title = format!("{}{}", text("path"), text("command"));
    let write = (call.effect == EffectClass::WriteFile).then(|| FileWrite {
        path: text("path"),
        before: match how {
            "new" => None,
            "changed" => Some("newer".to_string()),
            _ => Some("old".to_string()),
        },
        after: text("content"),
    });
    let problem = |kind| Some(Problem::new(kind, format!("it is {how}")));
    Facts {
        title,
        reach: if how == "outside" { "outside the workspace" } else { "the workspace" }.to_string(),
        inside: how != "outside",
        unconfined: call.tool == "shell" && !matches!(how, "boxed" | "reads"),
        line: (how == "reads").then(|| {
            let argv = vec!["true".to_string()];
            let segment = Segment { joint: Joint::First, argv: argv.clone(), redirects: Vec::new() };
            Line { commands: vec![argv], plain: Ok(Plain { segments: vec![segment] }) }
        }),
        level: (call.tool == "shell").then_some(if matches!(how, "boxed" | "reads") {
            Level::Full
        } else {
            Level::None
        }),
        network: false,
        host: (how == "fetch").then(|| "example.org".to_string()),
        grave: if how == "keys" { vec![Grave::Keys] } else { Vec::new() },
        preview: String::new(),
        binding: write.as_ref().map_or(Vec::new(), bound),
        write,
        problem: match how {
            "impossible" => problem(ProblemKind::Impossible),
            "invalid" => problem(ProblemKind::InvalidArguments),
            "refused" => problem(ProblemKind::Refused),
            "secret" => problem(ProblemKind::SecretInArguments),
            _ => None,
        },
        ..Facts::default()
    }
}
