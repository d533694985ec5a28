//! The checks on files: what must be there, and what must stand in it. They read and change nothing, and whatever goes
//! wrong counts as not holding.

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_regex::RegexMatcherBuilder;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::domain::limits;
use crate::tools::Scene;
use crate::tools::place;
use crate::tools::place::Kind;
use crate::tools::place::Place;
use crate::tools::wait;

/// Whether a file or a folder is at this path.
pub(crate) async fn exists(scene: &Scene, path: &str) -> (bool, String) {
    let (scene, path) = (scene.clone(), path.to_string());
    look(move || match Place::find(&scene, &path).and_then(|place| place.kind()) {
        Ok(Kind::File(bytes)) => (true, format!("{path} is a file of {bytes} bytes\n")),
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
    builder.build(text).map_err(|error| format!("a check has a pattern that can't be used: {error}"))
}

async fn look(work: impl FnOnce() -> (bool, String) + Send + 'static) -> (bool, String) {
    match timeout(wait(limits::TOOL_TIMEOUT), spawn_blocking(work)).await {
        Ok(Ok(seen)) => seen,
        Ok(Err(_)) => (false, "the check broke down; this is a fault of tiller\n".to_string()),
        Err(_) => (false, "the file system does not answer\n".to_string()),
    }
}
