//! The standing rules as they are at each moment: read again when their file changed, asked about every call when it is
//! looked at and once more right before it runs, and added to when a decision makes one. What a rule covers is judged
//! in `policy/rules.rs`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::domain::approval::Decision;
use crate::domain::command::Command;
use crate::domain::command::Refusal;
use crate::domain::limits;
use crate::domain::rule::Rule;
use crate::domain::rule::RuleDraft;
use crate::domain::rule::RuleHit;
use crate::domain::run::Run;
use crate::domain::time::Timestamp;
use crate::domain::time::human;
use crate::domain::tool::Facts;
use crate::domain::tool::ToolCall;
use crate::engine::clock::Clock;
use crate::machine::Input;
use crate::policy::rules;
use crate::store::rules as kept;
use crate::store::rules::Stamp;

/// All rules of a moment.
#[derive(Clone, Debug, Default)]
pub struct Book {
    /// Those that can be used.
    pub rules: Vec<Rule>,
    /// Those that are passed over, each with the sentence that says why.
    pub passed_over: Vec<(Rule, String)>,
}

type Read = Result<Arc<Book>, String>;

/// The file of the rules, and what was read of it last.
pub struct Rulebook {
    path: PathBuf,
    /// Who makes rules here.
    author: String,
    read: Mutex<Option<(Option<Stamp>, Read)>>,
}

impl Rulebook {
    /// The rules in this file, which need not exist; `author` is who makes more of them.
    pub fn new(path: PathBuf, author: String) -> Rulebook {
        Rulebook { path, author, read: Mutex::new(None) }
    }

    /// The rules as they are now. Errors with a sentence when they can't be read whole; then none of them counts.
    /// Blocks.
    pub fn now(&self) -> Read {
        let broken = |why: String| {
            format!("no standing rule is used, and nothing happens unasked, until the rules can be read: {why}")
        };
        // What it is like is looked at first, so that a change while it is read is noticed the next time.
        let stamp = kept::stamp(&self.path).map_err(broken)?;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((before, book)) = read.as_ref().filter(|(before, _)| *before == stamp) {
            tracing::trace!(known = before.is_some(), "the rules are as they were");
            return book.clone();
        }
        let book = kept::read(&self.path).and_then(sorted).map(Arc::new).map_err(broken);
        *read = Some((stamp, book.clone()));
        book
    }

    /// What the operator should know of the rules: that they can't be read, or which are passed over. Blocks.
    pub fn notices(&self) -> Vec<String> {
        match self.now() {
            Err(why) => vec![why],
            Ok(book) => book
                .passed_over
                .iter()
                .map(|(rule, why)| format!("the rule {} of {} is passed over: {why}", rule.id, self.path.display()))
                .collect(),
        }
    }

    /// Facts of a call, with what the rules of now say of it. Blocks.
    pub fn about(&self, call: &ToolCall, facts: Facts, workspace: &str, now: Timestamp) -> Facts {
        let (rule, uncovered) = match self.now() {
            Ok(book) => rules::said(&book.rules, call, &facts, workspace, now),
            Err(why) => (Some(RuleHit::lost(&why)), None),
        };
        Facts { rule, uncovered, ..facts }
    }

    /// Keeps a rule. Gives the one that says the same and was there already; nothing where it is new. Errors with why it
    /// can't be meant or kept. Blocks.
    pub fn add(&self, rule: &Rule) -> Result<Option<Rule>, String> {
        if let Some(why) = rules::malformed(&rule.draft).or_else(|| rules::void(&rule.draft)) {
            return Err(why);
        }
        // Never beside rules that nobody can read.
        self.now()?;
        kept::add(&self.path, rule)
    }

    /// Takes a rule away, and gives it; nothing when there is none of this id. Errors with why it can't. Blocks.
    pub fn remove(&self, id: &str) -> Result<Option<Rule>, String> {
        kept::remove(&self.path, id)
    }

    /// A rule that says this, made now by the author.
    pub fn made(&self, draft: RuleDraft, now: Timestamp, note: String) -> Rule {
        Rule { id: draft.id(), draft, made_at: Some(now), author: self.author.clone(), expires_at: None, note }
    }
}

/// Rules that can be used, and those that are passed over. Errors when one can't be meant.
fn sorted(all: Vec<Rule>) -> Result<Book, String> {
    let mut book = Book::default();
    for rule in all {
        if let Some(why) = rules::malformed(&rule.draft) {
            return Err(format!("the rule {} can't be meant: {why}", rule.id));
        }
        match rules::void(&rule.draft) {
            Some(why) => book.passed_over.push((rule, why)),
            None => book.rules.push(rule),
        }
    }
    Ok(book)
}

/// The rules as one run asks them.
#[derive(Clone)]
pub struct Consulted {
    book: Option<Arc<Rulebook>>,
    workspace: String,
    clock: Arc<dyn Clock>,
}

impl Consulted {
    /// For a run in this workspace; `book` is nothing where no rules are kept.
    pub fn new(book: Option<Arc<Rulebook>>, workspace: &str, clock: Arc<dyn Clock>) -> Consulted {
        Consulted { book, workspace: workspace.to_string(), clock }
    }

    /// Facts of a call, with what the rules of now say of it.
    pub async fn about(&self, call: &ToolCall, facts: Facts) -> Facts {
        let Some(book) = self.book.clone() else { return facts };
        let (call, given, workspace, now) = (call.clone(), facts.clone(), self.workspace.clone(), self.clock.now());
        blocking(move || book.about(&call, given, &workspace, now))
            .await
            .unwrap_or_else(|why| Facts { rule: Some(RuleHit::lost(&why)), ..facts })
    }

    /// Why a call that was allowed may not run by the rules of now, if it may not.
    pub async fn against(&self, call: &ToolCall) -> Option<String> {
        self.book.as_ref()?;
        let facts = call.facts.clone().unwrap_or_default();
        rules::overruled(call, self.about(call, facts).await.rule.as_ref())
    }

    /// Keeps the rule that an input makes, if it makes one. Errors when it can't be kept.
    pub async fn keep(&self, run: &Run, input: &Input) -> Result<(), Refusal> {
        let Input::Command(Command::Decide { call, decision: Decision::AllowRule(draft), .. }, _) = input else {
            return Ok(());
        };
        let none = || Refusal::BadRule("no rules are kept here".to_string());
        let (book, draft, now) = (self.book.clone().ok_or_else(none)?, draft.clone(), self.clock.now());
        let note = format!("made of {call} of run {}", run.id.short());
        let kept = blocking(move || book.add(&book.made(draft, now, note))).await;
        kept.and_then(|kept| kept).map(|_| ()).map_err(Refusal::BadRule)
    }
}

/// Work on files, for which a run does not wait for ever.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    match timeout(Duration::from_millis(limits::RULES_PATIENCE.0), spawn_blocking(work)).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) => Err("reading the rules broke down; this is a bug of tiller".to_string()),
        Err(_) => Err(format!("the rules were not read and compared within {}", human(limits::RULES_PATIENCE))),
    }
}
