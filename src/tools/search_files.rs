//! `search_files`: lines that match a pattern, or names that match a glob. It follows no link, opens regular files
//! only, keeps away from sensitive names, and its time grows with the size of what it looks at, never faster.

use std::path::Path;

use grep_regex::RegexMatcher;
use grep_regex::RegexMatcherBuilder;
use grep_searcher::Searcher;
use grep_searcher::SearcherBuilder;
use grep_searcher::Sink;
use grep_searcher::SinkContext;
use grep_searcher::SinkMatch;
use ignore::overrides::Override;
use ignore::overrides::OverrideBuilder;
use nix::errno::Errno;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::domain::limits;
use crate::domain::text::counted;
use crate::domain::text::head;
use crate::domain::text::one_line;
use crate::domain::tool::EffectClass;
use crate::domain::tool::Facts;
use crate::domain::tool::Noise;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::Problem;
use crate::domain::tool::ProblemKind;
use crate::domain::tool::ToolSpec;
use crate::tools::Executed;
use crate::tools::FileWork;
use crate::tools::OnCancel;
use crate::tools::Prepared;
use crate::tools::Scene;
use crate::tools::TITLE_MAX_CHARS;
use crate::tools::Tool;
use crate::tools::arguments;
use crate::tools::names;
use crate::tools::place;
use crate::tools::place::Kind;
use crate::tools::place::Place;
use crate::tools::walk::Ignored;
use crate::tools::walk::Walk;
use crate::tools::walk::What;

/// Room in a result for what is said at its end, in bytes.
const CLOSING_BYTES: usize = 600;

/// The tool.
pub(crate) struct SearchFiles;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    pattern: Option<String>,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    context_lines: usize,
}

/// What is looked for.
struct Query {
    pattern: Option<RegexMatcher>,
    glob: Option<Override>,
    context: usize,
}

impl Tool for SearchFiles {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "search_files".to_string(),
            description: format!(
                "Searches text files for a regular expression, line by line, and gives path:line:text; or, with a glob \
                 and no pattern, gives the paths that match. Left out, and counted at the end: binary files, files over \
                 {} KiB, sensitive names. What .gitignore names and .git are left out. At most {} results from {} \
                 files; lines are cut at {} bytes.",
                limits::FILE_MAX_BYTES / 1024,
                limits::ENTRIES_MAX,
                limits::SEARCH_FILES_MAX,
                limits::SEARCH_LINE_MAX_BYTES
            ),
            schema: json!({
                "type": "object",
                "properties": {
                    "pattern": {
                        "type": "string",
                        "description": "Regular expression in Rust syntax, without look-around or back-references.",
                    },
                    "path": {"type": "string", "description": "Folder or file to search. Default: the workspace."},
                    "glob": {"type": "string", "description": "Only these files, as in .gitignore: *.rs, src/**, !*.md."},
                    "ignore_case": {"type": "boolean", "description": "Whether case is ignored. Default false."},
                    "context_lines": {
                        "type": "integer", "minimum": 0, "maximum": limits::SEARCH_CONTEXT_MAX,
                        "description": "Lines to show around each match. Default 0.",
                    },
                },
                "additionalProperties": false,
            }),
            effect: EffectClass::Read,
            noise: Noise { presentational: vec!["context_lines".to_string()], is_output: false },
        }
    }

    fn prepare(&self, scene: &Scene, arguments: &str) -> Result<Prepared, Problem> {
        let asked: Arguments = arguments::read(arguments)?;
        let place = Place::find(scene, asked.path.as_deref().unwrap_or("."))?;
        let root = match place.kind()? {
            Kind::Folder => place.path.as_path(),
            Kind::File(_) => place.path.parent().unwrap_or(Path::new("/")),
            Kind::Missing => return Err(place::not_there(&place.shown, "no such file or folder")),
        };
        let query = query(&asked, root)?;
        let what = [asked.pattern.as_ref().map(|pattern| format!("/{pattern}/")), asked.glob.clone()];
        let what = what.into_iter().flatten().collect::<Vec<_>>().join(" in ");
        let facts = Facts {
            title: one_line(&format!("{what} in {}", place.shown), TITLE_MAX_CHARS),
            preview: format!("search {}\nfor {what}", place.text()),
            ..place.facts("searches")
        };
        let scene = scene.clone();
        let work = move |cancel: &CancellationToken| search(&scene, &place, &query, cancel);
        Ok(Prepared { facts, action: FileWork::action(OnCancel::Leave, work) })
    }
}

fn query(asked: &Arguments, root: &Path) -> Result<Query, Problem> {
    let invalid = |text: String| arguments::problem(ProblemKind::InvalidArguments, text + " Nothing was done.");
    if asked.pattern.is_none() && asked.glob.is_none() {
        return Err(invalid("A search needs a pattern or a glob.".to_string()));
    }
    if asked.context_lines > limits::SEARCH_CONTEXT_MAX {
        return Err(invalid(format!("context_lines is 0 to {}.", limits::SEARCH_CONTEXT_MAX)));
    }
    let compile = |pattern: &String| {
        RegexMatcherBuilder::new()
            .case_insensitive(asked.ignore_case)
            .line_terminator(Some(b'\n'))
            .size_limit(limits::SEARCH_PATTERN_MAX_BYTES)
            .dfa_size_limit(limits::SEARCH_PATTERN_MAX_BYTES)
            .build(pattern)
            .map_err(|error| invalid(format!("The pattern can't be used: {}.", one_line(&error.to_string(), 300))))
    };
    let glob = |glob: &String| {
        let mut builder = OverrideBuilder::new(root);
        let built = builder.add(glob).and_then(|builder| builder.build());
        built.map_err(|error| invalid(format!("The glob can't be used: {}.", one_line(&error.to_string(), 300))))
    };
    Ok(Query {
        pattern: asked.pattern.as_ref().map(compile).transpose()?,
        glob: asked.glob.as_ref().map(glob).transpose()?,
        context: asked.context_lines,
    })
}

/// What a search has found, and what it passed over.
#[derive(Default)]
struct Found {
    lines: Vec<String>,
    bytes: usize,
    matches: usize,
    files: usize,
    binary: usize,
    large: usize,
    sensitive: usize,
    unreadable: usize,
    stopped: Option<String>,
}

impl Found {
    /// Adds a line of the result; false when the result is full.
    fn add(&mut self, line: String) -> bool {
        if self.bytes + line.len() + 1 > limits::RESULT_MAX_BYTES - CLOSING_BYTES {
            self.stopped = Some("the result is full".to_string());
            return false;
        }
        self.bytes += line.len() + 1;
        self.lines.push(line);
        true
    }

    fn count(&mut self) -> bool {
        self.matches += 1;
        if self.matches > limits::ENTRIES_MAX {
            self.stopped = Some(format!("only the first {} results", limits::ENTRIES_MAX));
            return false;
        }
        true
    }

    fn text(mut self) -> String {
        if self.matches == 0 {
            self.lines.push(format!("[nothing found in {}]", counted(self.files, "file")));
        }
        if let Some(why) = &self.stopped {
            self.lines.push(format!("[{why}; search for less]"));
        }
        let passed = [
            (self.binary, "binary"),
            (self.large, "too large"),
            (self.sensitive, "with sensitive names"),
            (self.unreadable, "unreadable"),
        ];
        let passed: Vec<String> =
            passed.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        if !passed.is_empty() {
            self.lines.push(format!("[files left out: {}]", passed.join(", ")));
        }
        self.lines.join("\n") + "\n"
    }
}

fn search(scene: &Scene, place: &Place, query: &Query, cancel: &CancellationToken) -> Executed {
    let mut found = Found::default();
    let what = match place.kind() {
        Ok(Kind::Folder) => What::Folder,
        Ok(Kind::File(size)) => What::File(size),
        Ok(Kind::Missing) | Err(_) => {
            return Executed::Drifted(format!("{} is no longer what it was. It was not searched.", place.shown));
        }
    };
    let mut walk = Walk::new(scene, &place.path, what, Ignored::LeftOut, usize::MAX);
    for entry in walk.by_ref() {
        if cancel.is_cancelled() {
            return Executed::ended(OutcomeKind::Cancelled, "Cancelled while it looked. Nothing was changed.");
        }
        let Ok(entry) = entry else {
            found.unreadable += 1;
            continue;
        };
        let path = entry.path.as_path();
        if !matches!(entry.what, What::File(_)) {
            continue;
        }
        if query.glob.as_ref().is_some_and(|glob| glob.matched(path, false).is_ignore()) {
            continue;
        }
        if found.files >= limits::SEARCH_FILES_MAX {
            found.stopped = Some(format!("only {} files were looked into", limits::SEARCH_FILES_MAX));
        }
        if found.stopped.is_some() {
            break;
        }
        found.files += 1;
        let below = path.strip_prefix(&scene.workspace).unwrap_or(path);
        // A sensitive place that was named and allowed is searched; what lies below one that was not is passed over.
        let counted = match place.sensitive {
            Some(_) => path.strip_prefix(&place.path).unwrap_or(below),
            None => below,
        };
        match &query.pattern {
            Some(_) if names::sensitive(counted).is_some() => {
                found.sensitive += 1;
            }
            Some(pattern) => look_into(path, below, pattern, query.context, &mut found),
            None => {
                let _ = found.count() && found.add(names::shown(below.as_os_str()));
            }
        }
    }
    let left_out = walk.told().map(|line| line + "\n").unwrap_or_default();
    Executed::ended(OutcomeKind::Done, found.text() + &left_out)
}

fn look_into(path: &Path, below: &Path, pattern: &RegexMatcher, context: usize, found: &mut Found) {
    let bytes = match place::read_file(path) {
        Ok((bytes, _)) if bytes.contains(&0) => {
            found.binary += 1;
            return;
        }
        Ok((bytes, _)) => bytes,
        Err(Errno::EFBIG) => {
            found.large += 1;
            return;
        }
        Err(_) => {
            found.unreadable += 1;
            return;
        }
    };
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .bom_sniffing(false)
        .before_context(context)
        .after_context(context)
        .build();
    let shown = names::shown(below.as_os_str());
    if searcher.search_slice(pattern, &bytes, Lines { found, shown: &shown }).is_err() {
        found.unreadable += 1;
    }
}

/// Writes the matches of one file down.
struct Lines<'found> {
    found: &'found mut Found,
    shown: &'found str,
}

impl Lines<'_> {
    fn add(&mut self, number: Option<u64>, mark: char, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\r', '\n']);
        let kept = head(text, limits::SEARCH_LINE_MAX_BYTES);
        let cut = if kept.len() < text.len() { " […]" } else { "" };
        self.found.add(format!("{}{mark}{}{mark}{kept}{cut}", self.shown, number.unwrap_or(0)))
    }
}

impl Sink for Lines<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, line: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        Ok(self.found.count() && self.add(line.line_number(), ':', line.bytes()))
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, Self::Error> {
        Ok(self.add(line.line_number(), '-', line.bytes()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::tools::stage::Stage;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    async fn check(stage: &Stage, arguments: &str, wanted: &str) {
        assert_eq!(stage.run("search_files", arguments).await, format!("Done: {wanted}"), "{arguments}");
    }

    fn furnished() -> Stage {
        let stage = Stage::new();
        stage.write("src/a.rs", "one\nneedle two\nthree\n");
        stage.write("src/b.md", "a Needle\n");
        stage.write(".hidden", "needle\n");
        stage.write("target/x.rs", "needle\n");
        stage.write("skip.rs", "needle\n");
        stage.write(".gitignore", "target/\nskip.rs\n");
        stage.write(".git/x.rs", "needle\n");
        stage
    }

    #[tokio::test]
    async fn lines_are_found() {
        let stage = furnished();
        check(&stage, r#"{"pattern":"needle"}"#, ".hidden:1:needle\nsrc/a.rs:2:needle two\n").await;
        check(&stage, r#"{"pattern":"^needle","path":"src"}"#, "src/a.rs:2:needle two\n").await;
        check(&stage, r#"{"pattern":"needle","path":"src/b.md","ignore_case":true}"#, "src/b.md:1:a Needle\n").await;
        check(&stage, r#"{"pattern":"needle","glob":"*.rs"}"#, "src/a.rs:2:needle two\n").await;
        let context = "src/a.rs-1-one\nsrc/a.rs:2:needle two\nsrc/a.rs-3-three\n";
        check(&stage, r#"{"pattern":"needle","path":"src","context_lines":1}"#, context).await;
        check(&stage, r#"{"pattern":"absent"}"#, "[nothing found in 4 files]\n").await;
    }

    #[tokio::test]
    async fn names_are_found() {
        let stage = furnished();
        check(&stage, r#"{"glob":"*.rs"}"#, "src/a.rs\n").await;
        check(&stage, r#"{"glob":"src/**"}"#, "src/a.rs\nsrc/b.md\n").await;
        check(&stage, r#"{"glob":"!src/**"}"#, ".gitignore\n.hidden\n").await;
        check(&stage, r#"{"glob":"*.none"}"#, "[nothing found in 0 files]\n").await;
    }

    #[tokio::test]
    async fn what_is_passed_over_is_said() {
        let stage = Stage::new();
        stage.write("binary", b"needle\0");
        stage.write(".env", "needle=1");
        stage.write("deep/.ssh/key", "needle");
        std::fs::File::create(stage.scene.workspace.join("large")).unwrap().set_len(100 << 20).unwrap();
        stage.write("../outside/x", "needle");
        stage.write("../state/x", "needle");
        symlink(stage.root().join("outside"), stage.scene.workspace.join("out")).unwrap();
        symlink(stage.root().join("outside/x"), stage.scene.workspace.join("x")).unwrap();
        nix::unistd::mkfifo(&stage.scene.workspace.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let odd = stage.scene.workspace.join(OsStr::from_bytes(b"caf\xe9"));
        std::fs::write(odd, b"needle \xff\r\n").unwrap();
        let wanted =
            "\"caf\\xE9\":1:needle \u{fffd}\n[files left out: 1 binary, 1 too large, 2 with sensitive names]\n";
        check(&stage, r#"{"pattern":"needle"}"#, wanted).await;
        check(&stage, r#"{"pattern":"needle","path":".env"}"#, ".env:1:needle=1\n").await;
        let facts = stage.call("search_files", r#"{"pattern":"needle","path":".env"}"#).await.facts.unwrap();
        assert!(!facts.inside && facts.reach.contains("sensitive name"), "{facts:?}");
    }

    #[tokio::test]
    async fn what_was_not_named_is_passed_over_from_any_place() {
        let mut stage = Stage::new();
        stage.write(".git/config", "needle");
        stage.write(".git/modules/x/config", "needle");
        stage.write("tiller.toml", "needle");
        let scene = &mut stage.scene;
        scene.off_limits.push(scene.workspace.join("tiller.toml"));
        let none = |count: u32| match count {
            0 => "[nothing found in 0 files]\n".to_string(),
            _ => format!(
                "[nothing found in {}]\n[files left out: {count} with sensitive names]\n",
                counted(count, "file")
            ),
        };
        check(&stage, r#"{"pattern":"needle"}"#, &none(0)).await;
        check(&stage, r#"{"pattern":"needle","path":".git"}"#, &none(2)).await;
        check(&stage, r#"{"pattern":"needle","path":".git/modules"}"#, &none(1)).await;
        check(&stage, r#"{"pattern":"needle","path":".git/config"}"#, ".git/config:1:needle\n").await;
        let asked = stage.call("search_files", r#"{"pattern":"needle","path":".git/modules/x/config"}"#).await;
        assert!(!asked.facts.unwrap().inside);
        std::fs::hard_link(stage.scene.workspace.join("tiller.toml"), stage.scene.workspace.join("other")).unwrap();
        check(&stage, r#"{"pattern":"needle"}"#, &none(0)).await;
    }

    #[tokio::test]
    async fn results_and_patterns_are_bounded() {
        let stage = Stage::new();
        stage.write("many", "needle\n".repeat(2_000));
        let many = stage.run("search_files", r#"{"pattern":"needle"}"#).await;
        assert!(many.ends_with("many:500:needle\n[only the first 500 results; search for less]\n"), "{many}");
        stage.write("many", format!("needle{}\n", "é".repeat(300)).repeat(400));
        let wide = stage.run("search_files", r#"{"pattern":"needle","context_lines":2}"#).await;
        assert!(wide.len() < limits::RESULT_MAX_BYTES && wide.contains("[the result is full"), "{}", wide.len());
        stage.write("many", "a".repeat(1_000_000));
        assert!(stage.run("search_files", r#"{"pattern":"(a*)*(a*)*b"}"#).await.contains("[nothing found in 1 file]"));
        for arguments in [
            r#"{"pattern":"("}"#,
            r#"{"pattern":"(a{1000}){1000}{1000}"}"#,
            r#"{"pattern":"a\nb"}"#,
            r#"{"glob":"[a"}"#,
            r#"{"path":"many"}"#,
            r#"{"pattern":"a","context_lines":11}"#,
        ] {
            let text = stage.run("search_files", arguments).await;
            assert!(text.starts_with("InvalidArguments: "), "{arguments}: {text:.200}");
        }
    }

    #[tokio::test]
    async fn a_pipe_called_gitignore_holds_nothing() {
        let stage = Stage::new();
        stage.write("sub/a", "needle");
        stage.write("b", "needle");
        for folder in ["sub", "."] {
            let pipe = stage.scene.workspace.join(folder).join(".gitignore");
            nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        }
        let none = "[no .gitignore is obeyed: one here or above is no plain file or too large]\n";
        check(&stage, r#"{"pattern":"needle"}"#, &format!("b:1:needle\nsub/a:1:needle\n{none}")).await;
        std::fs::remove_file(stage.scene.workspace.join(".gitignore")).unwrap();
        let told = "[1 folder left out, where .gitignore is no plain file or too large]\n";
        check(&stage, r#"{"pattern":"needle"}"#, &format!("b:1:needle\n{told}")).await;
    }

    #[tokio::test]
    async fn patterns_to_ignore_are_bounded_in_each_file_and_in_all() {
        let stage = Stage::new();
        let lines = |bytes: u64| "# 23456\n".repeat(usize::try_from(bytes / 8).unwrap());
        stage.write("large/.gitignore", lines(limits::IGNORE_FILE_MAX_BYTES + 8));
        stage.write("large/x", "needle");
        let files = limits::IGNORE_FILES_MAX_BYTES / limits::IGNORE_FILE_MAX_BYTES;
        for number in 0..=files {
            stage.write(&format!("{number:02}/.gitignore"), lines(limits::IGNORE_FILE_MAX_BYTES));
            stage.write(&format!("{number:02}/x"), "needle");
        }
        let said = stage.run("search_files", r#"{"pattern":"needle"}"#).await;
        assert_eq!(said.matches(":1:needle").count() as u64, files, "{said}");
        assert!(said.ends_with("[2 folders left out, where .gitignore is no plain file or too large]\n"), "{said}");
    }

    #[tokio::test]
    async fn a_search_can_be_cancelled() {
        let stage = furnished();
        let place = Place::find(&stage.scene, ".").unwrap();
        let asked: Arguments = arguments::read(r#"{"pattern":"x"}"#).unwrap();
        let cancel = CancellationToken::new();
        cancel.cancel();
        let executed = search(&stage.scene, &place, &query(&asked, &place.path).unwrap(), &cancel);
        assert!(matches!(executed, Executed::Ended(outcome) if outcome.kind == OutcomeKind::Cancelled));
    }

    #[tokio::test]
    async fn a_link_called_gitignore_tells_nothing_of_where_it_leads() {
        let stage = Stage::new();
        stage.write("../outside/netrc", "guess\n");
        stage.write("sub/guess", "needle");
        stage.write("b/guess", "needle");
        symlink(stage.root().join("outside/netrc"), stage.scene.workspace.join("sub/.gitignore")).unwrap();
        let told = "[1 folder left out, where .gitignore is no plain file or too large]\n";
        check(&stage, r#"{"pattern":"needle"}"#, &format!("b/guess:1:needle\n{told}")).await;
        symlink(stage.root().join("outside/netrc"), stage.scene.workspace.join(".gitignore")).unwrap();
        let none = "[no .gitignore is obeyed: one here or above is no plain file or too large]\n";
        check(&stage, r#"{"pattern":"needle","path":"b"}"#, &format!("b/guess:1:needle\n{none}")).await;
    }

    #[test]
    fn what_is_no_folder_of_files_is_not_walked_into() {
        let stage = Stage::new();
        let walk = Walk::new(&stage.scene, Path::new("/"), What::Folder, Ignored::Listed, 2);
        let found: Vec<_> = walk.flatten().map(|entry| entry.path).collect();
        assert!(found.iter().any(|path| path == Path::new("/dev")), "{}", found.len());
        let inside = |path: &Path| ["/proc", "/sys", "/dev"].iter().any(|root| path.starts_with(root));
        let wrong: Vec<_> = found.iter().filter(|path| inside(path) && path.components().count() > 2).collect();
        assert!(wrong.is_empty(), "{:?}", wrong.first());
    }

    /// Each folder is looked into after it was named, so one that was exchanged meanwhile must lead nowhere.
    #[test]
    fn a_folder_that_becomes_a_link_meanwhile_is_not_followed() {
        let stage = Stage::new();
        stage.write("../outside/secret-name", "");
        stage.write("a", "");
        stage.write("sub/x", "");
        let swap = |path: &Path| {
            std::fs::rename(path, stage.root().join("aside")).unwrap();
            symlink(stage.root().join("outside"), path).unwrap();
        };
        let walk = Walk::new(&stage.scene, &stage.scene.workspace, What::Folder, Ignored::LeftOut, usize::MAX);
        let mut found = Vec::new();
        for entry in walk.flatten() {
            if entry.path.ends_with("a") {
                swap(&stage.scene.workspace.join("sub"));
            }
            found.push(entry.path.display().to_string());
        }
        assert!(!found.iter().any(|path| path.contains("secret-name")), "{found:?}");
    }
}
