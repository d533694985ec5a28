//! The roof: standing rules looked at, explained and changed from the command line. What a line would come to is asked
//! of the same functions that a run asks.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use serde_json::Value;
use serde_json::json;

use crate::cli::Form;
use crate::cli::rules::NewRule;
use crate::cli::rules::RulesAsk;
use crate::domain::budget::Limits;
use crate::domain::id::CallId;
use crate::domain::id::RUN_ID_LENGTH;
use crate::domain::id::RunId;
use crate::domain::limits;
use crate::domain::model::Dialect;
use crate::domain::model::ModelSpec;
use crate::domain::rule::Rule;
use crate::domain::rule::RuleDraft;
use crate::domain::rule::RuleEffect;
use crate::domain::rule::Token;
use crate::domain::rule::What;
use crate::domain::rule::is_standing;
use crate::domain::run::Run;
use crate::domain::sandbox::Level;
use crate::domain::terms::Goal;
use crate::domain::terms::Terms;
use crate::domain::time::Now;
use crate::domain::time::Timestamp;
use crate::domain::tool::EffectClass;
use crate::domain::tool::Facts;
use crate::domain::tool::ToolCall;
use crate::engine::rulebook::Consulted;
use crate::headless::exit::Obstacle;
use crate::headless::output;
use crate::headless::text::sentence;
use crate::headless::text::title;
use crate::launch::Ground;
use crate::launch::hands;
use crate::machine;
use crate::policy::grave;
use crate::policy::permission;
use crate::policy::permission::Judgement;
use crate::policy::rules;
use crate::store::rules as kept;
use crate::tools::Toolbox;
use crate::tools::names;

/// The tool that runs lines.
const SHELL: &str = "shell";
/// What can't happen, and in the language of scripts also what is denied.
const REFUSE: &str = "refuse";
/// What a rule or a mode of the operator's forbids.
const DENY: &str = "deny";
/// Rules that are named in a sentence.
const NAMED: usize = 8;

/// Does it, and gives the exit status.
pub async fn carry_out(ground: &Ground, asked: RulesAsk) -> anyhow::Result<u8> {
    match asked {
        RulesAsk::List(form) => list(ground, form)?,
        RulesAsk::Why { line, workspace, form } => {
            let line = line.map_or_else(read_line, |line| Ok(line.into_bytes()))?;
            why(ground, &line, &folder(workspace)?, form).await?;
        }
        RulesAsk::Add(new) => add(ground, *new)?,
        RulesAsk::Remove(id) => remove(ground, &id)?,
    }
    Ok(0)
}

fn stopped(why: String) -> anyhow::Error {
    Obstacle::Stopped(why).into()
}

fn list(ground: &Ground, form: Form) -> anyhow::Result<()> {
    let book = ground.rulebook().now().map_err(stopped)?;
    let all = book.rules.iter().map(|rule| (rule, None));
    let all: Vec<(&Rule, Option<&str>)> =
        all.chain(book.passed_over.iter().map(|(rule, why)| (rule, Some(why.as_str())))).collect();
    let now = ground.clock.now();
    output::put(&match form {
        Form::Json => all.iter().map(|(rule, why)| format!("{}\n", as_json(rule, *why))).collect(),
        Form::Text if all.is_empty() => {
            "there is no standing rule; `tiller rules add allow -- WORD …` makes one\n".to_string()
        }
        Form::Text => all
            .iter()
            .map(|(rule, why)| {
                let is_over = rule.expires_at.is_some_and(|end| end <= now);
                let end = rule.expires_at.map(|end| format!(", until {}", kept::shown(end))).unwrap_or_default();
                let over = if is_over { " (over)" } else { "" };
                let made = rule.made_at.map(|at| format!("made {}", kept::shown(at)));
                let by = Some(&rule.author)
                    .filter(|author| !author.is_empty())
                    .map(|author| format!("by {}", title(author)));
                let note = Some(&rule.note).filter(|note| !note.is_empty()).map(|note| title(note));
                let about: Vec<String> = made.into_iter().chain(by).chain(note).collect();
                let passed = why.map(|why| format!("  passed over: {}\n", sentence(why))).unwrap_or_default();
                let about = if about.is_empty() { String::new() } else { format!("  {}\n", about.join(" · ")) };
                format!("{}  {}{end}{over}\n{about}{passed}", rule.id, sentence(&rule.draft.to_string()))
            })
            .chain(meanings(&all))
            .collect(),
    });
    Ok(())
}

/// What the words mean with which the rules were told, each once.
fn meanings(rules: &[(&Rule, Option<&str>)]) -> Vec<String> {
    let said = rules.iter().flat_map(|(rule, _)| rule.draft.meanings()).collect::<BTreeSet<&str>>();
    ["\n".to_string()].into_iter().chain(said.into_iter().map(|meaning| format!("{meaning}\n"))).collect()
}

fn as_json(rule: &Rule, passed_over: Option<&str>) -> Value {
    let mut object = serde_json::to_value(&rule.draft).unwrap_or_default();
    if let Some(object) = object.as_object_mut() {
        object.shift_insert(0, "id".to_string(), json!(rule.id));
        object.insert("made_at".to_string(), json!(rule.made_at.map(kept::shown)));
        object.insert("author".to_string(), json!(rule.author));
        object.insert("expires".to_string(), json!(rule.expires_at.map(kept::shown)));
        object.insert("note".to_string(), json!(rule.note));
        object.insert("passed_over".to_string(), json!(passed_over));
    }
    object
}

fn add(ground: &Ground, new: NewRule) -> anyhow::Result<()> {
    let workspace = if new.everywhere { None } else { Some(as_text(&folder(None)?)?) };
    let draft = RuleDraft { effect: new.effect, what: new.what, workspace, network: new.network, profile: new.profile };
    let (book, now) = (ground.rulebook(), ground.clock.now());
    let rule = Rule { expires_at: new.lasts.map(|span| now.plus(span)), ..book.made(draft, now, new.note) };
    let before =
        book.add(&rule).map_err(|why| anyhow::Error::from(Obstacle::Refused(format!("{why}; no rule was made"))))?;
    let told = sentence(&rule.draft.to_string());
    output::put(&match before {
        None => {
            let id = &rule.id;
            let still = asked_still(&rule.draft).map(|why| format!("{why}\n")).unwrap_or_default();
            let against = rule.draft.effect != RuleEffect::Allow;
            let only = rules::only(&rule.draft).filter(|_| against);
            let only = only.map(|only| format!("note: {}\n", sentence(&only))).unwrap_or_default();
            format!(
                "rule {id}: {told}\n{still}{only}`tiller rules remove {id}` takes it away; it counts from the next call on\n"
            )
        }
        Some(before) => format!("rule {} was there already: {told}\n", before.id),
    });
    Ok(())
}

/// That what a rule allows is asked about all the same, where that can be told by the names in it.
fn asked_still(draft: &RuleDraft) -> Option<String> {
    if draft.effect != RuleEffect::Allow {
        return None;
    }
    let note = |name: &str, why: &str| {
        format!("note: what is named like {} is asked about each time all the same: {why}", title(name))
    };
    match &draft.what {
        What::Path(glob) => names::asked_each_time(glob).map(|why| note(glob, why)),
        What::Host(_) => None,
        What::Argv(tokens) => tokens.iter().find_map(|token| match token {
            Token::Word(word) => names::sensitive(Path::new(word)).map(|why| note(word, why)),
            Token::Any { .. } => None,
        }),
    }
}

fn remove(ground: &Ground, id: &str) -> anyhow::Result<()> {
    let unread = |why| stopped(format!("{why}; nothing was removed"));
    let (shown, rules) = (title(id), ground.rulebook());
    let book = rules.now().map_err(unread)?;
    let all: Vec<&Rule> = book.rules.iter().chain(book.passed_over.iter().map(|(rule, _)| rule)).collect();
    let begins = id.trim().to_ascii_lowercase();
    let fits = |rule: &&Rule| !begins.is_empty() && rule.id.to_ascii_lowercase().starts_with(&begins);
    // The beginning of other ids may be a whole one.
    let found: Vec<&Rule> = match all.iter().find(|rule| rule.id == id.trim()) {
        Some(whole) => vec![whole],
        None => all.iter().copied().filter(fits).collect(),
    };
    let gone = match found.as_slice() {
        [one] => rules.remove(&one.id).map_err(unread)?,
        [] => None,
        several => anyhow::bail!(
            "several rules begin like {shown}: {}; nothing was removed; write more of its id",
            named(several)
        ),
    };
    match gone {
        Some(rule) => output::put(&format!("removed rule {}: {}\n", rule.id, sentence(&rule.draft.to_string()))),
        None if all.is_empty() => anyhow::bail!("there is no rule {shown}; nothing was removed; there is none at all"),
        None => anyhow::bail!("there is no rule {shown}; nothing was removed; there are: {}", named(&all)),
    }
    Ok(())
}

/// Rules by their ids and what they say, the first of them where there are many.
fn named(rules: &[&Rule]) -> String {
    let shown = rules.iter().take(NAMED).map(|rule| format!("{} ({})", rule.id, title(&rule.draft.to_string())));
    let more = rules.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("and {more} more, all in `tiller rules list`"));
    shown.chain(more).collect::<Vec<_>>().join(", ")
}

fn folder(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let path = named.unwrap_or_else(|| PathBuf::from("."));
    path.canonicalize().with_context(|| format!("the folder {} can't be used; nothing was done", path.display()))
}

fn as_text(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str().with_context(|| format!("{} is not UTF-8; nothing was done", path.display()))?;
    Ok(text.to_string())
}

/// Standard input, as far as a line can be long, and a little more, so that a longer one is noticed.
fn read_line() -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = limits::COMMAND_MAX_BYTES as u64 + 1;
    std::io::stdin().take(most).read_to_end(&mut bytes).context("the line can't be read from standard input")?;
    Ok(bytes)
}

/// Says what the gate says of a line, in a new run in this folder.
async fn why(ground: &Ground, line: &[u8], workspace: &Path, form: Form) -> anyhow::Result<()> {
    let told = match std::str::from_utf8(line) {
        Ok(line) => judged(ground, line, workspace).await?,
        Err(_) => Told::refused("a line for the shell is text in UTF-8", ground.scene(None, workspace)?.sandbox.level),
    };
    output::put(&match form {
        Form::Json => format!("{}\n", told.json()),
        Form::Text => told.text(),
    });
    Ok(())
}

/// What the gate says of a line.
struct Told {
    /// The word of scripts: allow, ask or refuse.
    decision: &'static str,
    /// The word for people, which is that of `rules add`.
    word: &'static str,
    level: String,
    rule: Option<String>,
    reason: String,
    /// The rule that nearly says something of it, and what it says.
    nearest: Option<String>,
    segments: Vec<Vec<String>>,
}

impl Told {
    fn refused(why: &str, level: Level) -> Told {
        let (decision, word) = (REFUSE, REFUSE);
        let (reason, level) = (why.to_string(), level.to_string());
        Told { decision, word, level, rule: None, reason, nearest: None, segments: Vec::new() }
    }

    fn json(&self) -> Value {
        json!({
            "decision": self.decision,
            "level": self.level,
            "rule": self.rule,
            "reason": self.reason,
            "nearest": self.nearest,
            "segments": self.segments,
        })
    }

    fn text(&self) -> String {
        let rule = self.rule.as_ref().map(|rule| format!(", by {}", title(rule))).unwrap_or_default();
        let first = format!("{}{rule}: {}\n", self.word, sentence(&self.reason));
        let words = |argv: &Vec<String>| format!("  | {}\n", title(&format!("{argv:?}")));
        let level = format!("  level of the box: {}\n", self.level);
        let nearest = self.nearest.as_ref().map(|nearest| format!("  {}\n", sentence(nearest))).unwrap_or_default();
        first + &nearest + &level + &self.segments.iter().map(words).collect::<String>()
    }
}

async fn judged(ground: &Ground, line: &str, workspace: &Path) -> anyhow::Result<Told> {
    let shown = as_text(workspace)?;
    let run = imagined(ground, &shown)?;
    let mut call = line_call(line, &run);
    // The key of the model is no secret that matters here, and need not be set.
    let scene = ground.scene(ground.rehearsal_in(workspace).as_ref(), workspace)?;
    let of_machine = scene.sandbox.level;
    let tools = Toolbox::new(scene).behind(ground.redactor(None)?);
    let facts = tools.prepare(&call).await;
    let rules = Consulted::new(Some(ground.rulebook()), &shown, ground.clock.clone());
    let facts = rules.about(&call, facts).await;
    call.facts = Some(facts.clone());
    let judgement = permission::judge(&run, &call, &facts, 0);
    let grave = grave::of(&call);
    let code = if grave.is_some() { "; leave for it is typed, letter by letter" } else { "" };
    let (word, rule, reason) = match judgement {
        Judgement::Allow(rule) => ("allow", Some(rule.to_string()), "a built-in rule allows it".to_string()),
        Judgement::AllowByRule(rule) => ("allow", Some(rule), words(&facts)),
        Judgement::AllowEdited(_) => ("allow", None, "it was edited".to_string()),
        Judgement::Ask(why) => {
            let asks = facts.rule.as_ref().filter(|hit| !hit.is_lost && hit.effect == RuleEffect::Ask);
            ("ask", asks.filter(|_| grave.is_none()).map(|hit| hit.name()), why + code)
        }
        Judgement::Deny { rule, .. } if is_standing(&rule) => (DENY, Some(rule), words(&facts)),
        Judgement::Deny { rule, text } => (DENY, Some(rule), text),
        Judgement::NotRun(problem) => (REFUSE, None, problem.text),
    };
    let decision = if word == DENY { REFUSE } else { word };
    let segments = facts.line.as_ref().map(|line| line.commands.clone()).unwrap_or_default();
    // A line that can't be run has none of its own.
    let level = facts.level.unwrap_or(of_machine).to_string();
    let nearest = if word == "ask" || word == "allow" { near(ground, &call, &facts, &shown)? } else { None };
    Ok(Told { decision, word, level, rule, reason, nearest, segments })
}

/// The rule that comes closest to a call that is not denied, in a sentence: it may have been meant for it.
fn near(ground: &Ground, call: &ToolCall, facts: &Facts, workspace: &str) -> anyhow::Result<Option<String>> {
    // Rules that can't be read are the reason already.
    let Ok(book) = ground.rulebook().now() else { return Ok(None) };
    let hit = facts.rule.as_ref().map(|hit| hit.effect);
    let nearest = rules::nearest(&book.rules, call, facts, workspace, ground.clock.now());
    let nearest = nearest.filter(|rule| hit.is_none_or(|hit| rule.draft.effect > hit));
    let covers = if hit.is_none() { "no rule covers this; " } else { "" };
    let closest =
        nearest.and_then(|rule| Some(format!("{covers}rule {} comes closest: {}", rule.id, rules::only(&rule.draft)?)));
    let is_free = closest.is_none() && hit.is_none();
    Ok(closest
        .or_else(|| is_free.then(|| elsewhere(&book.rules, call, facts, workspace, ground.clock.now())).flatten()))
}

/// The rule that would be about a call in the folder that the rule is for, where that is another one.
fn elsewhere(rules: &[Rule], call: &ToolCall, facts: &Facts, workspace: &str, now: Timestamp) -> Option<String> {
    let (rule, folder) = rules.iter().find_map(|rule| {
        let folder = rule.draft.workspace.as_deref().filter(|folder| *folder != workspace)?;
        let covers = rules::said(std::slice::from_ref(rule), call, facts, folder, now).0.is_some();
        covers.then_some((rule, folder))
    })?;
    let word = rule.draft.effect.word();
    Some(format!(
        "no rule for this folder covers this; rule {} would {word} it in {}; to have it here, too: `tiller rules add` \
         in this folder",
        rule.id,
        title(folder)
    ))
}

fn words(facts: &Facts) -> String {
    facts.rule.as_ref().map(|hit| hit.words.clone()).unwrap_or_default()
}

fn line_call(line: &str, run: &Run) -> ToolCall {
    let arguments = json!({ "command": line }).to_string();
    ToolCall::proposed(CallId(1), "", SHELL, &arguments, EffectClass::External, run.at)
}

/// A run that was just started here, as the gate looks at it.
fn imagined(ground: &Ground, workspace: &str) -> anyhow::Result<Run> {
    let terms = Terms {
        goal: Goal::try_from("why".to_string()).map_err(anyhow::Error::msg)?,
        workspace: workspace.to_string(),
        limits: Limits::default(),
        checks: Vec::new(),
        wrap_up: false,
        guide: None,
        model: ModelSpec {
            name: String::new(),
            dialect: Dialect::Scripted,
            address: String::new(),
            model: String::new(),
            key_variable: None,
            window: 0,
            max_output: 0,
            most_output: None,
            price: None,
        },
        tools: hands::tool_specs(),
        instructions: String::new(),
        rehearsal: false,
        trust: ground.settings.trust(),
        keep_full_trust: false,
    };
    let first = machine::create(terms, Now { at: ground.clock.now(), ..Now::default() });
    Ok(Run::begin(RunId::from_entropy([0; RUN_ID_LENGTH]), &first)?)
}
