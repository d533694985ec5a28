//! What the words of a shell line name: places inside the workspace or outside, sensitive names, the repository that git
//! would find. Facts only; whether a line may name them is judged elsewhere.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::Component;
use std::path::Path;
use std::path::PathBuf;

use crate::domain::deep;
use crate::domain::limits;
use crate::domain::line::Line;
use crate::domain::line::Named;
use crate::domain::line::Touch;
use crate::domain::text::one_line;
use crate::domain::tool::ProblemKind;
use crate::tools::Scene;
use crate::tools::gits::ordinary;
use crate::tools::names;
use crate::tools::place;
use crate::tools::place::Kind;
use crate::tools::place::Place;

/// Letters of an option behind which a path may begin in the same word.
const OPTION_LETTERS: usize = 16;
/// The program that works in a repository.
pub(crate) const GIT: &str = "git";
/// What a repository is kept in.
pub(crate) const GIT_FOLDER: &str = ".git";
/// How much of a long path is said.
const SHOWN_CHARS: usize = 100;
/// Ways to write the home folder.
const HOMES: [&str; 3] = ["~", "$HOME", "${HOME}"];
/// Ways to write the folder of the run.
const HERE: [&str; 2] = ["$PWD", "${PWD}"];
/// Words that make the configuration of a repository worth a question before it is read.
const MAY_BE_SECRET: [&str; 5] = ["extraheader", "password", "token", "secret", "credential"];

/// What the words of a line name.
pub(crate) struct Found {
    /// Each word with what it names. One that stands for more than one place is there more than once.
    pub(crate) touches: Vec<Touch>,
    /// Whether one of them leads to what other programs run by themselves.
    pub(crate) runs_later: bool,
    /// Whether one of them leads to key material.
    pub(crate) has_key: bool,
    /// The top of the repository that git works in, if git is one of the commands of a plain line: the only one that was
    /// looked into, and the one that git has to be given.
    pub(crate) repository: Option<PathBuf>,
}

/// Finds out what the words of a line name.
pub(crate) fn find(scene: &Scene, line: &Line) -> Found {
    let folder = line.plain.as_ref().ok().and_then(|plain| plain.folder());
    // The words of a plain line are what is opened: nobody puts anything in their place. Behind them come those of lines
    // for another shell.
    let plain = line.plain.as_ref().map_or(0, |plain| plain.segments.len());
    let mut looker = Looker {
        scene,
        home: env::home_dir(),
        is_expanded: false,
        is_deep: false,
        follows_links: false,
        repository: None,
        below: BTreeMap::new(),
        repositories: BTreeMap::new(),
        runs_later: false,
        has_key: false,
        found: None,
    };
    let mut touches = Vec::new();
    for (command, argv) in line.commands.iter().enumerate() {
        let folder = folder.filter(|_| command > 0);
        looker.is_expanded = command >= plain;
        let program = argv.first().map_or("", String::as_str);
        looker.is_deep = deep::is_deep(program) && line.plain.is_ok();
        looker.follows_links = deep::follows_links(argv);
        let is_git = program == GIT;
        looker.repository = if is_git { looker.find_repository(folder.unwrap_or(".")) } else { None };
        if let Some(top) = looker.repository.as_ref().map(|repository| repository.top.clone()) {
            let known = looker.repositories.entry(top.clone());
            let named = known.or_insert_with(|| ordinary::named(scene, &top)).clone();
            touches.extend(named.into_iter().map(|named| of_git(command, named)));
            // All commands of a plain line work in one folder.
            looker.found = looker.found.or_else(|| Some(top).filter(|_| command < plain));
        }
        let words = argv.iter().skip(1).flat_map(|word| parts(word, is_git));
        for word in std::iter::once(".").chain(words) {
            if touches.len() >= limits::TOUCHES {
                return looker.found(touches);
            }
            touches.push(looker.touch(command, word, folder));
            // What programs may read in a word in ways of their own counts where something is there.
            let hidden = hidden(word).into_iter().filter(|_| command < plain);
            let found = hidden.map(|part| looker.touch(command, part, folder));
            touches.extend(found.filter(|touch| touch.named != Named::Missing || touch.runs_later));
        }
    }
    looker.found(touches)
}

/// What the program git names by itself.
fn of_git(command: usize, named: Named) -> Touch {
    Touch { command, word: GIT.to_string(), named, is_foundation: false, runs_later: false }
}

/// The parts of a word that could be a path: all of it, what is behind `=`, and for git what is behind any `:`, which
/// stands in the text or the time of a revision, too.
fn parts(word: &str, is_git: bool) -> impl Iterator<Item = &str> {
    let value = word.split_once('=').map(|(_, value)| value);
    let of_revision = word.match_indices(':').filter_map(|(at, _)| word.get(at + 1..)).filter(move |_| is_git);
    std::iter::once(word).chain(value).chain(of_revision).filter(|part| !part.is_empty())
}

/// Parts of a word that could be a path to a program that reads it in a way of its own: what stands behind the letters of
/// an option (`-t../x`), or behind a sign that is none of a usual name (`@x`, `a:/x`).
fn hidden(word: &str) -> Vec<&str> {
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-')).unwrap_or_default();
    let known = letters.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(letters.len());
    let behind = (1..=known.min(OPTION_LETTERS)).filter_map(|at| letters.get(at..)).filter(|part| !part.is_empty());
    let is_address = ["https://", "http://"].iter().any(|scheme| word.starts_with(scheme));
    let is_usual = |letter: char| letter.is_alphanumeric() || "_-./~".contains(letter);
    let pieces = word.split(|letter| !is_usual(letter)).skip(1).filter(|piece| !is_address && !piece.is_empty());
    behind.chain(pieces).collect()
}

struct Looker<'scene> {
    scene: &'scene Scene,
    home: Option<PathBuf>,
    /// Whether a shell would put the home folder in the place of its names, and all in a folder in that of a `*`.
    is_expanded: bool,
    /// Whether the command shows all that lies below a folder: then that is looked at.
    is_deep: bool,
    /// Whether it may also show what links there lead to.
    follows_links: bool,
    /// The repository that git works in, for the command.
    repository: Option<Repository>,
    /// What was found below folders, without following links there and with.
    below: BTreeMap<(PathBuf, bool), Option<String>>,
    /// What was found out about repositories, by their tops.
    repositories: BTreeMap<PathBuf, Vec<Named>>,
    /// Whether a word led to what other programs run by themselves.
    runs_later: bool,
    /// Whether a word led to key material.
    has_key: bool,
    /// Where the repository of a plain line lies.
    found: Option<PathBuf>,
}

/// A repository for a command of git.
struct Repository {
    /// The folder that `.git` is in.
    top: PathBuf,
    /// The folder that git is started in, links followed.
    folder: PathBuf,
}

impl Repository {
    /// Whether a word leads into it for git, which goes up from `link/..` to the folder that the link is in, ...
    fn holds_by_name(&self, word: &str) -> bool {
        let mut path = PathBuf::new();
        for part in self.folder.join(word).components() {
            match part {
                Component::ParentDir => drop(path.pop()),
                Component::CurDir => {}
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => path.push(part),
            }
        }
        path.starts_with(&self.top)
    }

    /// ... and for the system, which goes to where the link leads.
    fn holds(&self, place: &Place, word: &str) -> bool {
        place.path.starts_with(&self.top) && self.holds_by_name(word)
    }
}

impl Looker<'_> {
    fn found(self, touches: Vec<Touch>) -> Found {
        Found { touches, runs_later: self.runs_later, has_key: self.has_key, repository: self.found }
    }

    fn touch(&mut self, command: usize, word: &str, folder: Option<&str>) -> Touch {
        let path = self.path(word, folder);
        let (named, is_foundation, runs_later) = match Place::find(self.scene, &path) {
            Ok(place) => {
                let runs_later = place.named(names::runs_unasked).is_some();
                self.runs_later |= runs_later;
                self.has_key |= place.named(names::key_material).is_some();
                (self.named(&place, word), self.is_foundation(&place.path), runs_later)
            }
            // The name alone may be worth a word, even where nothing can be found.
            Err(problem) => match names::sensitive(Path::new(&path)) {
                Some(why) if problem.kind != ProblemKind::Refused => {
                    self.has_key |= names::key_material(Path::new(&path)).is_some();
                    (Named::Sensitive(why.to_string()), false, false)
                }
                Some(_) | None => (Named::Refused, false, false),
            },
        };
        Touch { command, word: word.to_string(), named, is_foundation, runs_later }
    }

    /// A word as a path: from the folder that the line goes to, with the home folder in the place of its names. All in a
    /// folder is the folder.
    fn path(&self, word: &str, folder: Option<&str>) -> String {
        if !self.is_expanded {
            return match folder {
                Some(folder) if !word.starts_with('/') => format!("{folder}/{word}"),
                Some(_) | None => word.to_string(),
            };
        }
        let home = self.home.as_deref().and_then(Path::to_str);
        let behind = |name: &&str| word.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let path = match (HOMES.iter().find_map(behind), HERE.iter().find_map(behind), home) {
            (Some(rest), _, Some(home)) => format!("{home}{rest}"),
            (_, Some(rest), _) => format!(".{rest}"),
            (_, _, _) => word.to_string(),
        };
        let all = path.strip_suffix('*').filter(|rest| rest.is_empty() || rest.ends_with('/'));
        let path = all.map_or(path.as_str(), |rest| if rest.is_empty() { "." } else { rest });
        match folder {
            Some(folder) if !path.starts_with('/') => format!("{folder}/{path}"),
            Some(_) | None => path.to_string(),
        }
    }

    fn named(&mut self, place: &Place, word: &str) -> Named {
        if let Some(why) = place.sensitive {
            return Named::Sensitive(why.to_string());
        }
        match place.kind() {
            Err(_) => Named::Refused,
            Ok(_) if !place.within => Named::Outside,
            // There git compares files and whole folders as they lie on the disk.
            Ok(_) if self.repository.as_ref().is_some_and(|repository| !repository.holds(place, word)) => {
                Named::Refused
            }
            Ok(Kind::Missing) => Named::Missing,
            Ok(Kind::File(_)) => Named::File,
            Ok(Kind::Folder) if self.is_deep => {
                let known = self.below.entry((place.path.clone(), self.follows_links));
                let secret = known.or_insert_with(|| secret_below(self.scene, &place.path, self.follows_links));
                Named::Folder { secret: secret.clone() }
            }
            Ok(Kind::Folder) => Named::Folder { secret: Some("what is below it was not looked at".to_string()) },
        }
    }

    fn is_foundation(&self, path: &Path) -> bool {
        let home = self.home.as_ref().and_then(|home| home.canonicalize().ok());
        self.scene.workspace.starts_with(path) || home.is_some_and(|home| home.starts_with(path))
    }

    /// The ordinary repository in the workspace that git, started in a folder, works in: of the first `.git` on the way
    /// up. Git itself may pass that by, so it is told by `tools/pipeline.rs` to use just this one.
    fn find_repository(&self, folder: &str) -> Option<Repository> {
        let place = Place::find(self.scene, folder).ok()?;
        let mut upper = Some(place.path.as_path());
        while let Some(path) = upper.filter(|path| path.starts_with(&self.scene.workspace)) {
            let inner = path.join(GIT_FOLDER);
            if fs::symlink_metadata(&inner).is_ok() {
                let found = || Repository { top: path.to_path_buf(), folder: place.path.clone() };
                return ordinary::is_ordinary(&inner).then(found);
            }
            // A folder that is a repository itself obeys a configuration that lies among the files.
            if path.join("HEAD").exists() || path.join("objects").exists() {
                return None;
            }
            upper = path.parent();
        }
        None
    }
}

/// A small file in lower case.
fn text(path: &Path) -> Option<String> {
    let (bytes, _) = place::read_file(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).to_lowercase())
}

/// Why not all below a folder is to be read unasked: a sensitive name, or what can't be looked at.
fn secret_below(scene: &Scene, folder: &Path, follows_links: bool) -> Option<String> {
    let mut folders = vec![folder.to_path_buf()];
    let mut entered = BTreeSet::from([folder.to_path_buf()]);
    let mut seen = 0;
    let unseen = |path: &Path| {
        let name = path.strip_prefix(folder).unwrap_or(path);
        Some(format!(
            "what is in {} below it can't be looked at",
            one_line(&names::shown(name.as_os_str()), SHOWN_CHARS)
        ))
    };
    while let Some(path) = folders.pop() {
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            // Gone meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            // Longer paths than the system takes at once can be read by whoever goes there step by step.
            Err(_) => return unseen(&path),
        };
        for entry in entries {
            let Ok(entry) = entry else { return unseen(&path) };
            seen += 1;
            if seen > limits::NAMES_BELOW {
                return Some(format!("more than {} names lie below it", limits::NAMES_BELOW));
            }
            let below = entry.path();
            let name = below.strip_prefix(folder).or(below.strip_prefix(&scene.workspace)).unwrap_or(&below);
            // Where a folder inside of `.git` is searched, its own name counts, too.
            let counted = Path::new(folder.file_name().unwrap_or_default()).join(name);
            let shown = || names::shown(name.as_os_str());
            if names::sensitive(&counted).is_some() && !is_harmless(&below) {
                return Some(format!("{} lies below it", shown()));
            }
            let next = match entry.file_type() {
                Ok(kind) if kind.is_dir() => Some(below.clone()),
                Ok(kind) if kind.is_symlink() && follows_links => match led(scene, &below) {
                    Ok(next) => next,
                    Err(why) => return Some(format!("{}, which lies below it, is a link that {why}", shown())),
                },
                Ok(_) => None,
                Err(_) => return unseen(&below),
            };
            folders.extend(next.filter(|next| entered.insert(next.clone())));
        }
    }
    None
}

/// The folder that a link leads to, if it is one. Errors with why what it leads to is not to be read unasked.
fn led(scene: &Scene, link: &Path) -> Result<Option<PathBuf>, &'static str> {
    match link.to_str().and_then(|link| Place::find(scene, link).ok()) {
        None => Err("is refused to every tool, or can't be told"),
        Some(place) if !place.within => Err("leads outside the workspace"),
        Some(place) if place.sensitive.is_some() => Err("leads to a sensitive name"),
        Some(place) => Ok(matches!(place.kind(), Ok(Kind::Folder)).then_some(place.path)),
    }
}

/// Whether the configuration of a repository, which every one has, holds nothing that looks like a secret.
fn is_harmless(path: &Path) -> bool {
    let is_config = path.ends_with("config") && path.components().any(|part| part.as_os_str() == ".git");
    let has_user = |line: &str| line.split_once("://").is_some_and(|(_, rest)| rest.contains('@'));
    is_config
        && text(path)
            .is_some_and(|text| !MAY_BE_SECRET.iter().any(|word| text.contains(word)) && !text.lines().any(has_user))
}
