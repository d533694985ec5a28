//! The checks on files: what must be there, and what must stand in it. They read and change nothing, and whatever goes
//! wrong counts as not holding. Also what can be known of any check before it is made: whether it can be meant.

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_regex::RegexMatcherBuilder;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::domain::limits;
use crate::domain::terms::Check;
use crate::domain::text::counted;
use crate::domain::text::one_line;
use crate::domain::tool::Problem;
use crate::domain::tool::ProblemKind;
use crate::tools::Scene;
use crate::tools::TITLE_MAX_CHARS;
use crate::tools::Toolbox;
use crate::tools::place;
use crate::tools::place::Kind;
use crate::tools::place::Place;
use crate::tools::shell;
use crate::tools::wait;

impl Toolbox {
    /// Whether a check can be made at all, or why not: its tool, its pattern, its path.
    pub fn can_check(&self, check: &Check) -> Result<(), String> {
        match check {
            Check::Tool { name, .. } if !self.tools.contains_key(name) => {
                Err(format!("a check names the tool {:?}, which there is not", one_line(name, 80)))
            }
            Check::FileExists(path) | Check::FileMatches { path, .. }
                if path.is_empty() || path.len() > limits::PATH_MAX_BYTES || path.contains('\0') =>
            {
                let most = limits::PATH_MAX_BYTES;
                Err(format!("a check names no path: one has 1 to {most} bytes and no NUL"))
            }
            Check::FileMatches { pattern, .. } => self::pattern(pattern).map(|_| ()),
            Check::Tool { .. }
            | Check::FileExists(_)
            | Check::Command(_)
            | Check::ModelJudge(_)
            | Check::OperatorConfirm(_) => Ok(()),
        }
    }

    /// Why a check that can be made could never hold, whatever the run does: a line that the shell can't read, a place
    /// that every tool is refused, arguments that the tool does not take. What may still become right, as a file that is
    /// not there yet, is nothing against it. Changes nothing, and runs nothing of the check.
    pub async fn never_holds(&self, check: &Check) -> Option<String> {
        let why = match check {
            Check::Command(line) => shell::unreadable(&self.scene, line).await,
            Check::FileExists(path) | Check::FileMatches { path, .. } => {
                let (scene, path) = (self.scene.clone(), path.clone());
                let looking = spawn_blocking(move || Place::find(&scene, &path).err());
                let looked = timeout(wait(limits::TOOL_TIMEOUT), looking).await;
                looked.ok().and_then(Result::ok).flatten().and_then(lasting)
            }
            Check::Tool { name, arguments } => self.prepared(name, arguments).await.err().and_then(lasting),
            Check::ModelJudge(_) | Check::OperatorConfirm(_) => None,
        };
        why.map(|why| format!("the check `{}` can never hold: {why}", one_line(&check.title(), TITLE_MAX_CHARS)))
    }
}

/// What is said against a call, where nothing that a run does can change it.
fn lasting(problem: Problem) -> Option<String> {
    match problem.kind {
        ProblemKind::Malformed | ProblemKind::UnknownTool | ProblemKind::InvalidArguments | ProblemKind::Refused => {
            let said = problem.text.split(" Nothing was ").next().unwrap_or_default();
            Some(said.trim_end_matches('.').to_string())
        }
        ProblemKind::SecretInArguments | ProblemKind::Impossible | ProblemKind::OverBudget => None,
    }
}

/// Whether a file or a folder is at this path.
pub(crate) async fn exists(scene: &Scene, path: &str) -> (bool, String) {
    let (scene, path) = (scene.clone(), path.to_string());
    look(move || match Place::find(&scene, &path).and_then(|place| place.kind()) {
        Ok(Kind::File(bytes)) => (true, format!("{path} is a file of {}\n", counted(bytes, "byte"))),
        Ok(Kind::Folder) => (true, format!("{path} is a folder\n")),
        Ok(Kind::Missing) => (false, format!("{path} is not there\n")),
        Err(problem) => (false, problem.text),
    })
    .await
}

/// Whether the content of the file at this path matches.
pub(crate) async fn matches(scene: &Scene, path: &str, pattern: &str) -> (bool, String) {
    let (scene, path, pattern) = (scene.clone(), path.to_string(), pattern.to_string());
    look(move || {
        let place = match Place::find(&scene, &path) {
            Ok(place) => place,
            Err(problem) => return (false, problem.text),
        };
        let bytes = match place::read_file(&place.path) {
            Ok((bytes, _)) => bytes,
            Err(error) => return (false, format!("{path} can't be read: {}\n", error.desc().to_lowercase())),
        };
        match self::pattern(&pattern).map(|matcher| matcher.is_match(&bytes)) {
            Ok(Ok(true)) => (true, format!("{path} matches\n")),
            Ok(Ok(false)) => (false, format!("{path} does not match {pattern}\n")),
            Ok(Err(_)) => (false, format!("{path} could not be searched\n")),
            Err(why) => (false, why),
        }
    })
    .await
}

/// A pattern, compiled. The error is a sentence.
pub(crate) fn pattern(text: &str) -> Result<RegexMatcher, String> {
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).size_limit(limits::SEARCH_PATTERN_MAX_BYTES);
    builder
        .build(text)
        .map_err(|error| format!("a check has a pattern that can't be used: {}", one_line(&error.to_string(), 300)))
}

async fn look(work: impl FnOnce() -> (bool, String) + Send + 'static) -> (bool, String) {
    match timeout(wait(limits::TOOL_TIMEOUT), spawn_blocking(work)).await {
        Ok(Ok(seen)) => seen,
        Ok(Err(_)) => (false, "the check broke down; this is a fault of tiller\n".to_string()),
        Err(_) => (false, "the file system does not answer\n".to_string()),
    }
}
