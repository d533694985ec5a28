//! Walks the rehearsal's script with the real scripted model through a small stand-in for the engine: real files,
//! a real shell, decisions as an operator might make them. It shows that the story holds whatever is denied or said;
//! it does not test the engine.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::Mutex;

use serde_json::Value;
use tiller::domain::approval::Origin;
use tiller::domain::changes::changes;
use tiller::domain::id::CallId;
use tiller::domain::id::InterjectionId;
use tiller::domain::id::ModelCallId;
use tiller::domain::id::Seq;
use tiller::domain::limits;
use tiller::domain::message::Entry;
use tiller::domain::message::Message;
use tiller::domain::message::ToolUse;
use tiller::domain::model::FailureClass;
use tiller::domain::model::ModelReply;
use tiller::domain::model::ModelRequest;
use tiller::domain::model::Purpose;
use tiller::domain::money::MicroUsd;
use tiller::domain::plan::Plan;
use tiller::domain::plan::Todo;
use tiller::domain::plan::TodoId;
use tiller::domain::plan::TodoStatus;
use tiller::domain::progress::CallResult;
use tiller::domain::progress::Observation;
use tiller::domain::progress::Progress;
use tiller::domain::status::Phase;
use tiller::domain::terms::Goal;
use tiller::domain::text::sha256_hex;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;
use tiller::domain::tool::OutcomeKind;
use tiller::domain::tool::ProblemKind;
use tiller::domain::tool::signature;
use tiller::model::Model;
use tiller::model::script::Script;
use tiller::model::scripted::Scripted;
use tiller::model::scripted::THE_END;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// The natural course: everything is allowed, nobody speaks up.
#[rustfmt::skip]
const NATURAL: [&str; 19] = [
    "plan", "look", "read", "run", "finer", "again", "reread", "reread_cases", "rethink", "hand",
    "attic", "gone", "fix", "check", "claim", "case", "units", "in_metres", "end",
];

fn assets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/demo")
}

fn script() -> &'static Script {
    static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::load(assets().join("script.toml")).unwrap());
    &SCRIPT
}

fn model() -> &'static Scripted {
    static MODEL: LazyLock<Scripted> = LazyLock::new(|| Scripted::load(assets().join("script.toml")).unwrap());
    &MODEL
}

/// A decision about a call that asks.
#[derive(Clone, Copy, PartialEq)]
enum Answer {
    Once,
    Run,
    Deny,
    /// The same call with a harmless line.
    Change,
}

/// Decides about the n-th call that asks, given its tool and what it is about.
type Decide = Box<dyn Fn(usize, &str, &str) -> Answer>;

/// An operator: what they decide about the n-th call that asks, what they say before which iteration, and how they
/// answer the question.
struct Operator {
    decide: Decide,
    says: BTreeMap<usize, &'static str>,
    units: &'static str,
}

impl Default for Operator {
    fn default() -> Self {
        Operator { decide: Box::new(|_, _, _| Answer::Once), says: BTreeMap::new(), units: "metres, please" }
    }
}

impl Operator {
    fn deciding(decide: impl Fn(usize, &str, &str) -> Answer + 'static) -> Self {
        Operator { decide: Box::new(decide), ..Operator::default() }
    }
}

/// What a walk came to.
#[derive(Debug)]
struct Walk {
    steps: Vec<String>,
    end: &'static str,
    asked: Vec<String>,
    replans: u32,
    spent: MicroUsd,
    plan: Plan,
    checks: Vec<String>,
    retries: usize,
    folder: tempfile::TempDir,
}

impl Walk {
    fn names(&self) -> Vec<&str> {
        self.steps.iter().map(String::as_str).collect()
    }

    fn has(&self, name: &str) -> bool {
        self.steps.iter().any(|step| step == name)
    }

    fn status(&self, id: &str) -> Option<TodoStatus> {
        self.plan.find(&TodoId(id.to_string())).map(|todo| todo.status)
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.folder.path().join(path)).unwrap_or_default()
    }
}

/// The stand-in for the engine.
struct Engine {
    operator: Operator,
    walk: Walk,
    entries: Vec<Arc<Entry>>,
    progress: Progress,
    denied: BTreeSet<String>,
    granted: BTreeSet<String>,
    denials: u32,
    claims: u32,
    calls: u32,
}

async fn walk(operator: Operator) -> Walk {
    let folder = tempfile::tempdir().unwrap();
    copy(&assets().join("project"), folder.path());
    let walk = Walk {
        steps: Vec::new(),
        end: "",
        asked: Vec::new(),
        replans: 0,
        spent: MicroUsd(0),
        plan: Plan::seed("goal"),
        checks: Vec::new(),
        retries: 0,
        folder,
    };
    let mut engine = Engine {
        operator,
        walk,
        entries: Vec::new(),
        progress: Progress::default(),
        denied: BTreeSet::new(),
        granted: BTreeSet::new(),
        denials: 0,
        claims: 0,
        calls: 0,
    };
    engine.run().await;
    engine.walk
}

impl Engine {
    async fn run(&mut self) {
        let (mut phase, mut ineffective) = (Phase::Decompose, 0);
        for iteration in 1..=32 {
            let mut observation = Observation::default();
            if let Some(text) = self.operator.says.get(&iteration) {
                let (id, text) = (InterjectionId(1), (*text).to_string());
                self.say(Message::Operator { id, text });
                observation.interjected = true;
                self.progress.reset_windows();
                self.denials = 0;
            }
            let before = self.walk.plan.clone();
            let reply = self.ask(phase).await;
            assert!(!reply.calls.is_empty(), "a step without calls: {:?}", reply.text);
            self.take(reply, phase, &mut observation);
            observation.movement = self.walk.plan.movement_since(&before);
            let moved = observation.movement.forward > 0 || !observation.effects.is_empty();
            let planned = phase != Phase::Pursue && observation.movement.is_structural();
            let novel = observation.novel && self.progress.novelty_counts();
            observation.progress = moved || planned || novel;
            self.progress.take(&observation);
            if phase == Phase::Replan {
                self.walk.replans += 1;
                ineffective = if observation.movement.is_structural() { 0 } else { ineffective + 1 };
                self.progress.reset_windows();
            }
            if !self.walk.end.is_empty() {
                return;
            }
            let repeats = self.progress.repeat.as_ref().map_or(0, |repeat| repeat.count);
            let is_stalled = self.progress.idle >= limits::STALL_WINDOW || repeats >= limits::STALL_REPEATS;
            self.walk.end = match () {
                () if self.denials >= limits::DENIALS => "denied several times",
                () if self.claims >= limits::CLAIMS => "claims rejected",
                () if is_stalled && self.walk.replans >= limits::REPLANS => "stalled",
                () if ineffective >= limits::REPLANS_INEFFECTIVE => "stalled",
                () => "",
            };
            if !self.walk.end.is_empty() {
                return;
            }
            phase = if is_stalled { Phase::Replan } else { Phase::Pursue };
        }
        self.walk.end = "budget";
    }

    /// The model's reply, after the failures that its step pretends.
    async fn ask(&mut self, phase: Phase) -> ModelReply {
        for attempt in 1.. {
            let request = ModelRequest {
                call: ModelCallId(self.calls + 1),
                attempt,
                iteration: 1,
                phase,
                purpose: Purpose::Turn,
                system: String::new(),
                entries: self.entries.iter().cloned().collect(),
                talk: self.entries.iter().cloned().collect(),
                closing: String::new(),
                offer: Arc::default(),
                max_output: 8_192,
                temperature_percent: None,
            };
            match model().call(request, broadcast::channel(1).0, CancellationToken::new()).await {
                Ok(reply) => return reply,
                Err(failure) => assert_eq!(failure.class, FailureClass::Overloaded),
            }
            self.walk.retries += 1;
        }
        unreachable!()
    }

    fn take(&mut self, reply: ModelReply, phase: Phase, observation: &mut Observation) {
        assert_ne!(reply.text, THE_END, "after {:?}", self.walk.steps);
        let step = script().steps().iter().find(|step| step.text == reply.text).unwrap();
        self.walk.steps.push(step.name.clone());
        self.is_so(&reply.text);
        self.walk.spent = self.walk.spent.plus(script().price().cost(&reply.usage.unwrap()));
        let ids: Vec<CallId> = (self.calls + 1..).take(reply.calls.len()).map(CallId).collect();
        self.calls += u32::try_from(ids.len()).unwrap();
        let uses = reply.calls.iter().zip(&ids).map(|(call, id)| ToolUse {
            id: *id,
            wire_id: call.id.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
            seq: Seq(0),
        });
        let uses: Vec<ToolUse> = uses.collect();
        self.say(Message::Assistant { call: ModelCallId(1), phase, text: reply.text, uses: uses.clone() });
        for one in uses {
            let arguments: Value = serde_json::from_str(&one.arguments).unwrap();
            let (kind, text) = match one.tool.as_str() {
                "update_plan" => (OutcomeKind::Done, self.update_plan(&arguments)),
                "finish" => {
                    self.is_so(arguments["summary"].as_str().unwrap());
                    self.finish()
                }
                "ask_operator" => (OutcomeKind::Done, self.operator.units.to_string()),
                "note" => (OutcomeKind::Done, "noted".to_string()),
                _ => self.work(&one, &arguments, observation),
            };
            let (call, title, bytes) = (one.id, String::new(), text.len() as u64);
            self.say(Message::ToolResult { call, title, kind, text, bytes, took: Span(0) });
        }
    }

    /// What is said of the work must be so, whatever was decided before.
    fn is_so(&self, text: &str) {
        let folder = self.walk.folder.path();
        let (has_attic, open) = (folder.join("attic").exists(), self.walk.plan.open().count());
        let passes = || shell(folder, "sh check.sh").0 == 0;
        let has = |path: &str, part: &str| self.walk.read(path).contains(part);
        let is_so: [(&str, &dyn Fn() -> bool); 9] = [
            ("attic/ is gone", &|| !has_attic),
            ("attic/ stays", &|| has_attic),
            ("cases pass", &passes),
            ("Repaired", &passes),
            ("repaired as far", &passes),
            ("Not repaired", &|| !passes()),
            ("It counts the day now", &|| has("lib/clock.sh", "1440")),
            ("The finer sixths may stay", &|| has("lib/height.sh", "* 6 /")),
            ("two todos are open", &|| open == 2),
        ];
        for (_, is_so) in is_so.iter().filter(|(part, _)| text.contains(part)) {
            assert!(is_so(), "{text:?} after {:?}", self.walk.steps);
        }
    }

    fn say(&mut self, message: Message) {
        self.entries.push(Arc::new(Entry { iteration: 1, at: Timestamp(0), seq: Seq(0), message }));
    }

    fn update_plan(&mut self, arguments: &Value) -> String {
        let given = arguments["todos"].as_array().unwrap();
        assert!(given.len() <= limits::TODOS_MAX);
        if arguments["mode"] != "patch" {
            self.walk.plan.todos.clear();
        }
        for one in given {
            let mut todo: Todo = serde_json::from_value(one.clone()).unwrap();
            todo.title = one["title"].as_str().unwrap().to_string();
            assert!(todo.title.chars().count() <= limits::TODO_TITLE_MAX_CHARS);
            match self.walk.plan.todos.iter_mut().find(|old| old.id == todo.id) {
                Some(old) => {
                    let needs_note = todo.status == TodoStatus::Dropped
                        || (old.status.is_settled() && todo.status.rank() < old.status.rank());
                    assert!(!needs_note || !todo.note.is_empty(), "{todo:?} needs a note");
                    *old = todo;
                }
                None => self.walk.plan.todos.push(todo),
            }
        }
        let working = self.walk.plan.todos.iter().filter(|todo| todo.status == TodoStatus::InProgress);
        assert!(working.count() <= 1, "{}", self.walk.plan.listing());
        self.walk.plan.listing()
    }

    fn finish(&mut self) -> (OutcomeKind, String) {
        let open: Vec<String> = self.walk.plan.open().map(|todo| todo.id.0.clone()).collect();
        if !open.is_empty() {
            self.claims += 1;
            return (OutcomeKind::Done, format!("not finished: these todos are open: {}", open.join(", ")));
        }
        let (code, output) = shell(self.walk.folder.path(), "sh check.sh");
        if code != 0 {
            self.claims += 1;
            return (OutcomeKind::Done, format!("not finished: the check failed:\n{output}"));
        }
        self.walk.end = "verified";
        (OutcomeKind::Done, "verified".to_string())
    }

    fn work(&mut self, one: &ToolUse, arguments: &Value, observation: &mut Observation) -> (OutcomeKind, String) {
        let signed = signature(&one.tool, &one.arguments);
        let (kind, text) = self.gate(one, arguments, &signed, observation);
        let result = sha256_hex(text.as_bytes());
        let seen = CallResult { call: signed, result, title: String::new(), class: None };
        let ran = matches!(kind, OutcomeKind::Done | OutcomeKind::Failed);
        observation.novel |= ran && !self.progress.has_seen(&seen);
        observation.outcomes.push(seen);
        (kind, text)
    }

    fn gate(&mut self, one: &ToolUse, args: &Value, signed: &str, seen: &mut Observation) -> (OutcomeKind, String) {
        let text = |name: &str| args[name].as_str().unwrap_or_else(|| panic!("{name} of {one:?}")).to_string();
        match one.tool.as_str() {
            "read_file" => return read(&self.walk.folder.path().join(text("path"))),
            "list_dir" => return (OutcomeKind::Done, list(&self.walk.folder.path().join(text("path")))),
            "search_files" => return (OutcomeKind::Done, search(self.walk.folder.path(), &text("pattern"))),
            "shell" | "edit_file" | "write_file" => {}
            other => return (OutcomeKind::NotRun(ProblemKind::UnknownTool), format!("there is no tool {other}")),
        }
        let path = args["path"].as_str().map(|path| self.walk.folder.path().join(path));
        if one.tool == "edit_file" {
            let before = fs::read_to_string(path.as_ref().unwrap()).unwrap();
            assert_eq!(before.matches(&text("old_text")).count(), 1, "{one:?} in\n{before}");
        }
        if self.denied.contains(signed) {
            return (OutcomeKind::Denied, "denied before".to_string());
        }
        if !self.granted.contains(signed) {
            let about = args["path"].as_str().or(args["command"].as_str()).unwrap().to_string();
            let answer = (self.operator.decide)(self.walk.asked.len(), &one.tool, &about);
            self.walk.asked.push(about);
            match answer {
                Answer::Deny => {
                    self.denials += 1;
                    self.denied.insert(signed.to_string());
                    return (OutcomeKind::Denied, "denied by operator: no".to_string());
                }
                Answer::Change => {
                    return (OutcomeKind::Done, changes(&one.arguments, r#"{"command":"ls attic"}"#, Origin::Here));
                }
                Answer::Run => drop(self.granted.insert(signed.to_string())),
                Answer::Once => {}
            }
            self.denials = 0;
        }
        match (one.tool.as_str(), path) {
            ("edit_file", Some(path)) => {
                let before = fs::read_to_string(&path).unwrap();
                write(&path, &before.replace(&text("old_text"), &text("new_text")), seen)
            }
            ("write_file", Some(path)) => write(&path, &text("content"), seen),
            _ => {
                let command = text("command");
                let (code, output) = shell(self.walk.folder.path(), &command);
                if command == "sh check.sh" {
                    self.walk.checks.push(output.clone());
                }
                (if code == 0 { OutcomeKind::Done } else { OutcomeKind::Failed }, output)
            }
        }
    }
}

fn read(path: &Path) -> (OutcomeKind, String) {
    match fs::read_to_string(path) {
        Ok(text) => (OutcomeKind::Done, text),
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

fn write(path: &Path, content: &str, seen: &mut Observation) -> (OutcomeKind, String) {
    fs::write(path, content).unwrap();
    seen.effects.push(format!("{}@{}", path.display(), sha256_hex(content.as_bytes())));
    (OutcomeKind::Done, "written".to_string())
}

fn list(path: &Path) -> String {
    let mut names: Vec<String> =
        fs::read_dir(path).unwrap().map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names.join("\n")
}

fn search(folder: &Path, pattern: &str) -> String {
    let mut hits = Vec::new();
    for (name, content) in files(folder) {
        hits.extend(content.lines().filter(|line| line.contains(pattern)).map(|line| format!("{name}: {line}")));
    }
    assert!(!hits.is_empty(), "nothing has {pattern:?} in it");
    hits.join("\n")
}

/// All files of a folder by their name in it.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for one in fs::read_dir(next).unwrap().map(|one| one.unwrap().path()) {
            if one.is_dir() {
                folders.push(one);
            } else {
                let name = one.strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, fs::read_to_string(&one).unwrap());
            }
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    for (name, content) in files(from) {
        let path = to.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

/// Runs a command in a folder whose PATH has nothing but what every Unix has. A check that ran on the same files
/// before is not run again.
fn shell(folder: &Path, command: &str) -> (i32, String) {
    type Seen = BTreeMap<BTreeMap<String, String>, (i32, String)>;
    static CHECKS: Mutex<Seen> = Mutex::new(BTreeMap::new());
    let is_check = command == "sh check.sh";
    let before = files(folder);
    if let Some(known) = CHECKS.lock().unwrap().get(&before).filter(|_| is_check) {
        return known.clone();
    }
    let bin = tempfile::tempdir().unwrap();
    for name in ["sh", "awk", "dirname", "rm"] {
        let real = ["/bin", "/usr/bin"].map(|place| Path::new(place).join(name));
        symlink(real.iter().find(|path| path.exists()).unwrap(), bin.path().join(name)).unwrap();
    }
    let output = Command::new("/bin/sh")
        .args(["-c", command])
        .current_dir(folder)
        .env_clear()
        .env("PATH", bin.path())
        .output()
        .unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let outcome = (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap());
    if is_check {
        assert_eq!(before, files(folder), "the check changed something");
        CHECKS.lock().unwrap().insert(before, outcome.clone());
    }
    outcome
}

#[test]
fn the_terms_can_be_started_with() {
    let terms: toml::Table = toml::from_str(&fs::read_to_string(assets().join("rehearsal.toml")).unwrap()).unwrap();
    let goal = Goal::try_from(terms["goal"].as_str().unwrap().to_string()).unwrap();
    assert!(!goal.as_str().contains('\n'));
    assert_eq!(terms["checks"].as_array().unwrap()[0].as_str(), Some("sh check.sh"));
    let budget = terms["budget"].as_table().unwrap();
    assert_eq!(MicroUsd::parse_dollars(budget["cost"].as_str().unwrap()), Some(MicroUsd(1_000_000)));
    assert_eq!(budget["iterations"].as_integer(), Some(32));
}

#[test]
fn texts_of_steps_are_unlike() {
    let script = script();
    let texts: BTreeSet<&str> = script.steps().iter().map(|step| step.text.as_str()).collect();
    assert_eq!(texts.len(), script.steps().len());
}

#[tokio::test(start_paused = true)]
async fn the_natural_course_ends_verified() {
    let walk = walk(Operator::default()).await;
    assert_eq!(walk.names(), NATURAL);
    assert_eq!((walk.end, walk.replans, walk.retries), ("verified", 1, 1));
    let asked = [
        "sh check.sh",
        "lib/height.sh",
        "sh check.sh",
        "rm -rf attic",
        "lib/clock.sh",
        "sh check.sh",
        "cases/midnight.txt",
        "NOTICE.txt",
    ];
    assert_eq!(walk.asked, asked);
    let [first, second, third] = walk.checks.as_slice() else { panic!("{:?}", walk.checks) };
    assert!(first.ends_with("4 of 11 cases fail\n"), "{first}");
    assert_eq!(first, second, "the wrong turn must change nothing");
    assert!(third.ends_with("all 11 cases pass\n"), "{third}");
    assert!(shell(walk.folder.path(), "sh check.sh").1.ends_with("all 14 cases pass\n"));
    assert!((200_000..350_000).contains(&walk.spent.0), "{}", walk.spent);
    assert!(walk.plan.open().next().is_none());
    assert!(walk.read("NOTICE.txt").contains("2.5 m"));
}

#[tokio::test(start_paused = true)]
async fn what_is_allowed_for_the_run_is_not_asked_again() {
    let walk = walk(Operator::deciding(|_, _, _| Answer::Run)).await;
    assert_eq!((walk.names().as_slice(), walk.asked.len()), (NATURAL.as_slice(), 6));
}

#[tokio::test(start_paused = true)]
async fn a_denial_changes_the_course() {
    let ways = [
        (0, "no_run", "verified"),
        (1, "no_finer", "verified"),
        (2, "no_run", "verified"),
        (3, "kept", "verified"),
        (4, "fix_in_tide", "verified"),
        (5, "unchecked", "verified"),
        (6, "no_case", "verified"),
        (7, "no_notice", "verified"),
    ];
    for (denied, step, end) in ways {
        let decide = move |n, _: &str, _: &str| if n == denied { Answer::Deny } else { Answer::Once };
        let walk = walk(Operator::deciding(decide)).await;
        assert!(walk.has(step), "{denied}: {:?}", walk.steps);
        assert_eq!(walk.end, end, "{denied}: {:?}", walk.steps);
        assert_eq!(walk.has("gone"), denied != 3, "{denied}: {:?}", walk.steps);
        assert_eq!(walk.read("attic/soundings.txt").is_empty(), denied != 3);
    }
}

#[tokio::test(start_paused = true)]
async fn any_three_denials_come_to_an_end() {
    let mut met = BTreeSet::new();
    for denied in (0..256_u32).filter(|denied| denied.count_ones() <= 3) {
        let decide = move |n: usize, _: &str, _: &str| match denied.checked_shr(u32::try_from(n).unwrap()) {
            Some(bits) if bits & 1 == 1 => Answer::Deny,
            _ => Answer::Once,
        };
        let walk = walk(Operator::deciding(decide)).await;
        let ends = ["verified", "denied several times", "claims rejected"];
        assert!(ends.contains(&walk.end), "{denied:b}: {} after {:?}", walk.end, walk.steps);
        assert!(walk.replans <= 1, "{denied:b}: {:?}", walk.steps);
        assert!(walk.spent.0 < 350_000, "{denied:b}: {}", walk.spent);
        met.extend(walk.steps);
    }
    let others = ["heard", "aside", "yours", "in_feet", "changed"];
    let script = script();
    let unmet: Vec<&str> =
        script.steps().iter().map(|step| step.name.as_str()).filter(|name| !met.contains(*name)).collect();
    let unmet: BTreeSet<&str> = unmet.into_iter().collect();
    assert_eq!(unmet, BTreeSet::from(others), "steps that nothing leads to");
}

#[tokio::test(start_paused = true)]
async fn all_calls_of_a_kind_can_be_denied() {
    let ends = [("shell", "verified"), ("edit_file", "claims rejected"), ("write_file", "verified")];
    for (kind, end) in ends {
        let decide = move |_, tool: &str, _: &str| if tool == kind { Answer::Deny } else { Answer::Once };
        let walk = walk(Operator::deciding(decide)).await;
        assert_eq!(walk.end, end, "{kind}: {:?}", walk.steps);
    }
    let walk = walk(Operator::deciding(|_, _, _| Answer::Deny)).await;
    assert_eq!(walk.end, "denied several times", "{:?}", walk.steps);
}

/// A denial together with words, each of the two at any time.
#[tokio::test(start_paused = true)]
async fn what_the_script_says_is_so_whatever_was_denied_and_said() {
    let mut met = false;
    for (kind, n) in ["shell", "edit_file", "write_file"].into_iter().flat_map(|kind| (2..=17).map(move |n| (kind, n)))
    {
        let decide = move |_, tool: &str, _: &str| if tool == kind { Answer::Deny } else { Answer::Once };
        let says = BTreeMap::from([(n, "mind the tests")]);
        let walk = walk(Operator { says, ..Operator::deciding(decide) }).await;
        met |= walk.has("stranded") && walk.has("yours");
    }
    assert!(met, "what was said is dropped in the open also where nothing could be repaired");
}

/// A call that was changed did something else than was asked for, and nothing is said to be gone by it.
#[tokio::test(start_paused = true)]
async fn a_changed_call_is_not_said_to_have_done_what_was_asked_for() {
    let change = |_, _: &str, about: &str| if about == "rm -rf attic" { Answer::Change } else { Answer::Once };
    let walk = walk(Operator::deciding(change)).await;
    assert!(walk.has("changed") && !walk.has("gone") && !walk.has("kept"), "{:?}", walk.steps);
    assert_eq!((walk.end, walk.status("attic")), ("verified", Some(TodoStatus::Dropped)));
}

#[tokio::test(start_paused = true)]
async fn what_is_said_is_heard_at_any_time() {
    let opened = [&NATURAL[..8], &["aside"], &NATURAL[10..]].concat();
    // Before iteration 18 the operator answers the question; words that come together with an answer are part of it.
    for iteration in (2..=NATURAL.len()).filter(|iteration| *iteration != 18) {
        let says = BTreeMap::from([(iteration, "mind the tests")]);
        let walk = walk(Operator { says, ..Operator::default() }).await;
        assert_eq!(walk.steps[iteration - 1], "heard");
        assert_eq!(walk.end, "verified", "{iteration}: {:?}", walk.steps);
        assert_eq!(walk.status("yours"), Some(TodoStatus::Dropped), "{iteration}: {:?}", walk.steps);
        let course: Vec<&str> = walk.names().into_iter().filter(|name| !["heard", "yours"].contains(name)).collect();
        // Words inside the circle open it, so that nothing stalls.
        let is_in_the_circle = (7..=8).contains(&iteration);
        let expected = if is_in_the_circle { opened.as_slice() } else { NATURAL.as_slice() };
        assert_eq!(course, expected, "{iteration}");
        assert_eq!(walk.replans, u32::from(!is_in_the_circle), "{iteration}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_answer_is_in_the_notice() {
    for (units, words) in [("In FEET, please", "8 ft"), ("foot", "8 ft"), ("metres", "2.5 m"), ("as you like", "2.5 m")]
    {
        let walk = walk(Operator { units, ..Operator::default() }).await;
        assert!(walk.read("NOTICE.txt").contains(words), "{units}: {}", walk.read("NOTICE.txt"));
        assert_eq!((walk.end, walk.has("heard")), ("verified", false));
    }
}
