//! What git obeys besides the names that are always the same: files that its configuration names, that of a repository
//! and the operator's own, and folders that git takes for a repository. No git is started for it.

mod harmless;
mod inner;
pub(crate) mod ordinary;
pub mod own;
mod settings;
mod values;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Component;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use nix::dir::Dir;
use nix::dir::Type;
use nix::errno::Errno;
use nix::unistd::User;
use tokio_util::sync::CancellationToken;

use crate::domain::limits;
use crate::tools::Scene;
use crate::tools::gits::own::Own;
use crate::tools::gits::values::Said;
use crate::tools::place;

/// What of a repository git obeys, or needs to take a folder for one.
pub(crate) const PARTS: [&str; 9] =
    ["commondir", "config", "config.worktree", "hooks", "info", "modules", "objects", "refs", "worktrees"];
/// What of a template is run or obeyed in each new repository.
const TEMPLATE: [&str; 3] = ["config", "hooks", "info"];
/// What git runs in a folder of hooks.
const HOOKS: [&str; 28] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];
/// Links that are followed to where nothing is yet.
const HOPS: usize = 8;

/// One look at what git's configurations name: bounded as a whole.
pub(crate) struct Look<'scene> {
    own: &'scene Own,
    /// What the operator's own configuration names, wherever somebody works, ...
    fixed: BTreeSet<PathBuf>,
    /// ... and what it names in each repository, with the keys.
    relative: Vec<(String, PathBuf)>,
    users: BTreeMap<Vec<u8>, Option<PathBuf>>,
    /// What each configuration that was read says.
    said: BTreeMap<PathBuf, Option<Arc<Said>>>,
    bytes_left: u64,
    places_left: usize,
    /// When this is cancelled, no more is looked at.
    end: CancellationToken,
    /// Whether there is more than was read.
    pub(crate) is_cut: bool,
}

/// Where a word of a configuration leads.
enum Lead {
    /// To one place.
    At(PathBuf),
    /// From the folder on that it is about.
    From(PathBuf),
}

impl<'scene> Look<'scene> {
    /// Reads what the operator configured for all repositories. What was not read when it is to `end` is as what is too much.
    pub(crate) fn of(scene: &'scene Scene, end: &CancellationToken) -> Look<'scene> {
        let mut look = Look {
            own: &scene.git,
            fixed: BTreeSet::new(),
            relative: Vec::new(),
            users: BTreeMap::new(),
            said: BTreeMap::new(),
            bytes_left: limits::GIT_BYTES,
            places_left: limits::GIT_PLACES,
            end: end.clone(),
            is_cut: false,
        };
        let (files, said) = look.read(scene.git.files.clone());
        let mut fixed: BTreeSet<PathBuf> =
            files.into_iter().filter(|file| !scene.workspace.starts_with(file)).collect();
        for (key, word) in said.iter().flat_map(|said| &said.plain).collect::<BTreeSet<_>>() {
            for lead in look.leads(word) {
                match lead {
                    Lead::At(path) => look.add(key, &path, &scene.workspace, &mut fixed),
                    Lead::From(path) => look.relative.push((key.clone(), path)),
                }
            }
        }
        look.fixed = fixed;
        look
    }

    /// All that is named by the configurations of the repositories in which something lies at `place`, and by the
    /// operator's own: real where it is there.
    pub(crate) fn named_around(&mut self, place: &Path) -> BTreeSet<PathBuf> {
        let inner: Vec<BTreeSet<PathBuf>> = place.ancestors().map(|top| self.named_in(top)).collect();
        inner.into_iter().flatten().chain(self.fixed.iter().cloned()).collect()
    }

    /// What is named for the repository whose work is in `top`, should one be there.
    pub(crate) fn named_in(&mut self, top: &Path) -> BTreeSet<PathBuf> {
        let folders = folders(top);
        let files = folders.iter().flat_map(|folder| ["config", "config.worktree"].map(|name| folder.join(name)));
        let (mut all, said) = self.read(files.collect());
        let mut due: Vec<(String, PathBuf)> = self.relative.clone();
        for (key, word) in said.iter().flat_map(|said| &said.words).collect::<BTreeSet<_>>() {
            due.extend(self.leads(word).into_iter().map(|lead| match lead {
                Lead::At(path) | Lead::From(path) => (key.clone(), path),
            }));
        }
        for (key, path) in due {
            self.add(&key, &top.join(path), top, &mut all);
        }
        for folder in &folders {
            all.extend(self.hooks(&folder.join("hooks"), top));
        }
        // A value that is the folder itself, or above it, names nothing in it.
        all.retain(|path| !top.starts_with(path));
        all
    }

    /// Adds what a value names: a folder of hooks, or a template, is what git runs of it, should it hold all of `top`.
    fn add(&mut self, key: &str, path: &Path, top: &Path, all: &mut BTreeSet<PathBuf>) {
        let Some(path) = self.find(path) else { return };
        if key.ends_with("hookspath") {
            all.extend(self.hooks(&path, top));
        }
        if key.ends_with("templatedir") {
            all.extend(self.hooks(&path.join("hooks"), top));
            all.extend(TEMPLATE.iter().filter_map(|name| self.find(&path.join(name))));
        }
        if !top.starts_with(&path) {
            all.insert(path);
        }
    }

    /// Where hooks of a folder lead that are links; all of them by their names, should it hold all of `top`.
    fn hooks(&mut self, folder: &Path, top: &Path) -> Vec<PathBuf> {
        if top.starts_with(folder) {
            return HOOKS.iter().filter_map(|hook| self.find(&folder.join(hook))).collect();
        }
        let Some(folder) = self.find(folder) else { return Vec::new() };
        let opened = place::open_folder(&folder).and_then(|opened| place::to_list(&opened)).and_then(Dir::from_fd);
        let Ok(mut opened) = opened else { return Vec::new() };
        let links: Vec<PathBuf> = opened
            .iter()
            .map_while(Result::ok)
            .take(self.places_left)
            .inspect(|_| self.places_left -= 1)
            // Some file systems do not say it with the name.
            .filter(|entry| entry.file_type().is_none_or(|kind| kind == Type::Symlink))
            .map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_os_string())
            .filter(|name| name != "." && name != "..")
            .map(|name| folder.join(name))
            .collect();
        links.iter().filter_map(|link| self.find(link)).collect()
    }

    /// Reads configurations and what they include: which, and what they say.
    fn read(&mut self, mut due: Vec<PathBuf>) -> (BTreeSet<PathBuf>, Vec<Arc<Said>>) {
        let (mut known, mut all) = (BTreeSet::new(), Vec::new());
        let mut left = limits::GIT_CONFIGURATIONS;
        while let Some(file) = due.pop() {
            let Some(real) = self.find(&file).filter(|real| known.insert(real.clone())) else { continue };
            let Some(said) = self.said_in(&real) else { continue };
            if left == 0 {
                self.is_cut = true;
                break;
            }
            left -= 1;
            // One that was reached by a link may be included from where the link is.
            let folders: BTreeSet<&Path> = [&file, &real].into_iter().filter_map(|path| path.parent()).collect();
            for (_, word) in said.plain.iter().filter(|(key, _)| key == "path") {
                due.extend(self.leads(word).into_iter().flat_map(|lead| match lead {
                    Lead::At(path) => vec![path],
                    Lead::From(path) => folders.iter().map(|folder| folder.join(&path)).collect(),
                }));
            }
            all.push(said);
        }
        (known, all)
    }

    /// The words of a configuration, if one is there: read once, however many repositories obey it.
    fn said_in(&mut self, file: &Path) -> Option<Arc<Said>> {
        if let Some(known) = self.said.get(file) {
            return known.clone();
        }
        let said = self.bytes_of(file).map(|bytes| Arc::new(Said::of(&bytes)));
        self.is_cut |= said.as_ref().is_some_and(|said| said.is_cut);
        self.said.insert(file.to_path_buf(), said.clone());
        said
    }

    /// What stands in a configuration, if one is there. Neither a pipe nor a link that came meanwhile is waited for.
    fn bytes_of(&mut self, file: &Path) -> Option<Vec<u8>> {
        let folder = place::open_folder(file.parent()?).ok()?;
        match place::read_at_most(folder, file.file_name()?, limits::FILE_MAX_BYTES.min(self.bytes_left)) {
            Ok((bytes, _)) => {
                self.bytes_left = self.bytes_left.saturating_sub(bytes.len() as u64);
                Some(bytes)
            }
            Err(error) => {
                self.is_cut |= error == Errno::EFBIG;
                None
            }
        }
    }

    /// Where a word leads, by all that git or a shell puts in the place of its beginning.
    fn leads(&mut self, word: &[u8]) -> Vec<Lead> {
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let home = self.own.home.clone();
        if let Some(rest) = word.strip_prefix(b"%(prefix)/") {
            return self.own.prefixes.iter().map(|prefix| Lead::At(prefix.join(path(rest)))).collect();
        }
        let slash = word.iter().position(|byte| *byte == b'/').unwrap_or(word.len());
        let (first, rest) = (word.get(..slash).unwrap_or_default(), word.get(slash + 1..).unwrap_or_default());
        if let Some(user) = first.strip_prefix(b"~") {
            let home = if user.is_empty() { home } else { self.home_of(user) };
            return home.map(|home| Lead::At(home.join(path(rest)))).into_iter().collect();
        }
        let mut all = vec![if word.starts_with(b"/") { Lead::At(path(word)) } else { Lead::From(path(word)) }];
        // A variable: the home, most often, or the folder where git was started.
        let variable = word.iter().position(|byte| *byte == b'$').and_then(|at| word.get(at..)).unwrap_or_default();
        if let Some(rest) = variable.iter().position(|byte| *byte == b'/').and_then(|at| variable.get(at + 1..)) {
            all.extend(home.map(|home| Lead::At(home.join(path(rest)))));
            all.push(Lead::From(path(rest)));
        }
        all
    }

    /// The home folder of a user that a configuration names.
    fn home_of(&mut self, user: &[u8]) -> Option<PathBuf> {
        if let Some(known) = self.users.get(user) {
            return known.clone();
        }
        if self.users.len() >= limits::GIT_USERS {
            self.is_cut = true;
            return None;
        }
        let name = std::str::from_utf8(user).ok();
        let home = name.and_then(|name| User::from_name(name).ok().flatten()).map(|user| user.dir);
        self.users.insert(user.to_vec(), home.clone());
        home
    }

    /// The path without links, as far as it is there, and without steps back. Nothing when it is none, or too many were
    /// asked for.
    fn find(&mut self, path: &Path) -> Option<PathBuf> {
        if path.as_os_str().len() > limits::PATH_MAX_BYTES {
            return None;
        }
        if self.end.is_cancelled() {
            self.is_cut = true;
            return None;
        }
        let steps = path.components().count();
        self.is_cut |= self.places_left < steps;
        self.places_left = self.places_left.saturating_sub(steps);
        (self.places_left > 0).then(|| real(path))
    }
}

/// Where the configuration of the repository lies whose work is in `top`, if there is one: in its `.git`, or where that
/// file leads to; or in the folder itself, if it looks like a repository.
fn folders(top: &Path) -> Vec<PathBuf> {
    let git = real(&top.join(".git"));
    let text = |path: &Path| place::read_file(&real(path)).ok().map(|(bytes, _)| bytes);
    let bare = Some(top.to_path_buf()).filter(|top| top.join("HEAD").symlink_metadata().is_ok());
    let Some(leads) = text(&git) else { return [git].into_iter().chain(bare).collect() };
    let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes.trim_ascii()));
    let own = top.join(path(leads.strip_prefix(b"gitdir:").unwrap_or(&leads)));
    let common = text(&own.join("commondir")).map(|bytes| own.join(path(&bytes)));
    common.into_iter().chain([own]).map(|path| real(&path)).chain(bare).collect()
}

/// The path without links as far as it is there, else without steps back.
fn real(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..HOPS {
        if let Ok(real) = path.canonicalize() {
            return real;
        }
        // A link to where nothing is yet.
        let Ok(target) = path.read_link() else { break };
        path = path.parent().unwrap_or(&path).join(target);
    }
    // What lies below something that is not there is not there either.
    let parts: Vec<Component<'_>> = path.components().collect();
    let upper = |count: usize| parts.iter().take(count).collect::<PathBuf>();
    let (mut there, mut gone) = (0, parts.len());
    while gone - there > 1 {
        let middle = there.midpoint(gone);
        if upper(middle).canonicalize().is_ok() { there = middle } else { gone = middle }
    }
    let start = upper(there).canonicalize().unwrap_or_default();
    parts.into_iter().skip(there).fold(start, |mut so_far, part| {
        match part {
            Component::ParentDir => {
                so_far.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => so_far.push(part),
        }
        so_far
    })
}

/// Why git obeys what is written to this place, if it does: its name is none that always means so.
pub(crate) fn obeys(scene: &Scene, place: &Path) -> Option<&'static str> {
    let mut look = Look::of(scene, &CancellationToken::new());
    let named = "the configuration of git names it";
    let Ok(below) = place.strip_prefix(&scene.workspace) else {
        return look.fixed.iter().any(|fixed| place.starts_with(fixed)).then_some(named);
    };
    let is = |part: &Path, name: &str| part.as_os_str().to_string_lossy().eq_ignore_ascii_case(name);
    let name = Path::new(place.file_name()?);
    if is(name, "HEAD") || is(name, "commondir") {
        return Some("git can take its folder for a repository");
    }
    let folders = below.ancestors().skip(1);
    let is_part = folders.into_iter().any(|folder| {
        let first = below.strip_prefix(folder).ok().and_then(|rest| rest.components().next());
        first.is_some_and(|first| PARTS.iter().any(|part| is(Path::new(first.as_os_str()), part)))
            && scene.workspace.join(folder).join("HEAD").symlink_metadata().is_ok()
    });
    if is_part {
        return Some("git can take its folder for a repository, and obey it");
    }
    if look.named_around(place).iter().any(|named| place.starts_with(named)) {
        return Some(named);
    }
    look.is_cut.then_some("the configuration of git says more than is read, and may name it")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::tools::stage::Stage;

    #[test]
    fn what_configurations_name_is_found() {
        let stage = Stage::new();
        let top = &stage.scene.workspace;
        let config = "[core]\n\thooksPath = .githooks\n\tpager = less -R\n[include] path = ../team.inc\n\
                      [filter \"x\"]\n\tclean = sh -c \\\n \"tools/clean %f\"\n[alias]\n\tgo = !bin/go now\n\
                      [branch \"m\"]\n\tmerge = refs/heads/m\n[remote \"o\"]\n\turl = ../elsewhere\n[core]\n\teditor = .\n";
        stage.write(".git/config", config);
        stage.write("team.inc", "[diff \"y\"]\ntextconv=tools/show\n[include]\npath = deep/more.inc\n");
        stage.write("deep/more.inc", "[core]\nfsmonitor = ./watch.sh\n[include]\npath = ../team.inc\n");
        let named: Vec<String> = Look::of(&stage.scene, &CancellationToken::new())
            .named_around(&top.join("src/main.rs"))
            .iter()
            .filter_map(|path| Some(path.strip_prefix(top).ok()?.display().to_string()))
            .filter(|path| path.contains(['.', '/']))
            .collect();
        let wanted = [".githooks", "bin/go", "deep/more.inc", "team.inc", "tools/clean", "tools/show", "watch.sh"]
            .map(String::from);
        let missing: Vec<&String> = wanted.iter().filter(|path| !named.contains(path)).collect();
        assert!(missing.is_empty(), "{missing:?} of {named:?}");
        assert!(!named.iter().any(|path| path.contains("refs") || path.contains("elsewhere")), "{named:?}");
    }

    #[test]
    fn what_git_obeys_is_found_by_more_than_its_name() {
        let stage = Stage::new();
        stage.write(".git/config", "[core]\nhooksPath = .githooks\n");
        stage.write("bare/HEAD", "");
        for (path, wanted) in [
            ("src/main.rs", false),
            ("src/HEAD", true),
            ("src/head", true),
            ("src/head.rs", false),
            ("src/commondir", true),
            ("src/config", false),
            ("bare/config", true),
            ("bare/hooks/x", true),
            ("bare/objects/x", true),
            ("bare/README", false),
            (".githooks/pre-commit", true),
            (".githooksx", false),
        ] {
            let said = obeys(&stage.scene, &stage.scene.workspace.join(path));
            assert_eq!(said.is_some(), wanted, "{path}: {said:?}");
        }
    }

    /// A scene whose operator has a home beside the workspace, with this configuration.
    fn owned(config: impl AsRef<[u8]>) -> Stage {
        let mut stage = Stage::new();
        let home = stage.root().to_path_buf();
        std::fs::write(home.join(".gitconfig"), config).unwrap();
        let files = vec![home.join("not-there"), home.join(".gitconfig")];
        stage.scene.git = Own { prefixes: vec![home.join("ws/sw")], home: Some(home), files };
        stage
    }

    #[test]
    fn what_the_operator_configured_for_all_repositories_counts() {
        for (config, path, wanted) in [
            ("[core]\nhooksPath = .githooks", ".githooks/pre-commit", true),
            ("[core]\nhooksPath = .githooks", "deep/er/.githooks/x", true),
            ("[core]\nhooksPath = .githooks", "githooks/pre-commit", false),
            ("[core]\nhooksPath = ~/ws/h", "h/pre-commit", true),
            ("[core]\nhooksPath = ~/ws/h", "deep/h/pre-commit", false),
            ("[core]\nhooksPath = ~/ws", "pre-commit", true),
            ("[core]\nhooksPath = ~/ws", "main.rs", false),
            ("[core]\nhooksPath = ~", "main.rs", false),
            ("[core]\nhooksPath = /", "main.rs", false),
            ("[core]\nhooksPath = %(prefix)/h", "sw/h/x", true),
            ("[core]\nhooksPath = h/../.githooks", ".githooks/x", true),
            ("[core]\nhooksPath = ../ws/.githooks", ".githooks/x", true),
            ("[init]\ntemplateDir = ~/ws", "hooks/x", true),
            ("[init]\ntemplateDir = ~/ws", "src/x", false),
            ("[core]\neditor = $HOME/ws/bin/ed", "bin/ed", true),
            ("[core]\neditor = \"\\\"${HOME}/ws/my bin/ed\\\" -w\"", "my bin/ed", true),
            ("[core]\neditor = vim", "vim", false),
            ("[core]\neditor = vim", "deep/vim/x", false),
            ("[include]\npath = ws/more", "more", true),
            ("[include]\npath = ~/ws/more", "more", true),
            ("[includeIf \"gitdir:/a=b/\"]\npath = ws/more", "more", true),
            ("[mergetool \"x\"]\npath = ~/ws/tool", "tool", true),
        ] {
            let stage = owned(config);
            let said = obeys(&stage.scene, &stage.scene.workspace.join(path));
            assert_eq!(said.is_some(), wanted, "{config:?}, {path}: {said:?}");
        }
    }

    #[test]
    fn the_home_of_another_user_is_found() {
        let user = User::from_uid(nix::unistd::Uid::current()).unwrap().unwrap();
        let stage = owned(format!("[core]\nhooksPath = ~{}/no-such-folder/hooks", user.name));
        let named = Look::of(&stage.scene, &CancellationToken::new()).fixed;
        assert!(named.iter().any(|path| path.ends_with("no-such-folder/hooks")), "{named:?}");
        let many: String = (0..100).map(|number| format!("hooksPath = ~no-such-user-{number}/x\n")).collect();
        let stage = owned(many);
        let look = Look::of(&stage.scene, &CancellationToken::new());
        assert!(look.is_cut && look.users.len() == limits::GIT_USERS);
    }

    #[test]
    fn a_file_tool_finds_it_grave() {
        let stage = owned("[core]\nhooksPath = .githooks");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let arguments = serde_json::json!({"path": ".githooks/pre-commit", "content": "1"}).to_string();
        let facts = runtime.block_on(stage.call("write_file", &arguments)).facts.unwrap();
        assert_eq!(facts.grave, [crate::domain::tool::Grave::RunsLater]);
        assert!(!facts.inside && facts.reach.contains("the configuration of git names it"), "{}", facts.reach);
        let outside = stage.root().join("hooks/pre-commit");
        let stage = owned("[core]\nhooksPath = ~/hooks");
        assert!(
            obeys(&stage.scene, &outside).is_none() && obeys(&stage.scene, &stage.root().join("hooks/x")).is_some()
        );
    }

    #[test]
    fn links_lead_to_what_is_named() {
        use std::os::unix::fs::symlink;
        let at = |stage: &Stage, path: &str| obeys(&stage.scene, &stage.scene.workspace.join(path)).is_some();
        // The configuration is a link, as those who keep their settings under version control have it.
        let stage = owned("");
        stage.write("dotfiles/gitconfig", "[core]\nhooksPath = ~/hooks\n[include]\npath = beside.inc\n");
        std::fs::remove_file(stage.root().join(".gitconfig")).unwrap();
        symlink("ws/dotfiles/gitconfig", stage.root().join(".gitconfig")).unwrap();
        // So are its hooks, one by one, also where nothing is yet.
        std::fs::create_dir(stage.root().join("hooks")).unwrap();
        symlink("../ws/check.sh", stage.root().join("hooks/pre-commit")).unwrap();
        std::fs::write(stage.root().join("beside.inc"), "[core]\nfsmonitor = tools/watch\n").unwrap();
        symlink("ws/tools-of-all", stage.root().join("tools")).unwrap();
        for (path, wanted) in [
            ("dotfiles/gitconfig", true),
            ("dotfiles/beside.inc", true),
            ("check.sh", true),
            ("tools/watch", true),
            ("other.sh", false),
        ] {
            assert_eq!(at(&stage, path), wanted, "{path}");
        }
        // A repository's own hook, and a configuration in the place of which a link lies.
        let stage = Stage::new();
        stage.write("conf", "[core]\nhooksPath = linked/hooks\n");
        stage.write(".git/hooks/x", "");
        stage.write("real/x", "");
        symlink("../conf", stage.scene.workspace.join(".git/config")).unwrap();
        symlink("../../check.sh", stage.scene.workspace.join(".git/hooks/pre-push")).unwrap();
        symlink("real", stage.scene.workspace.join("linked")).unwrap();
        for (path, wanted) in [("check.sh", true), ("real/hooks/pre-commit", true), ("real/x", false)] {
            assert_eq!(at(&stage, path), wanted, "{path}");
        }
    }

    /// What can't be read whole is never taken for harmless, nor waited for.
    #[test]
    fn hostile_configurations_are_bounded() {
        use std::fmt::Write;
        let many = |line: &dyn Fn(usize) -> String| {
            (0..10_000).fold(String::new(), |mut all, number| {
                writeln!(all, "{}", line(number)).unwrap();
                all
            })
        };
        let check = |name: &str, stage: &Stage, is_cut: bool| {
            let began = std::time::Instant::now();
            let said = obeys(&stage.scene, &stage.scene.workspace.join("src/main.rs"));
            assert_eq!(said.is_some_and(|said| said.contains("more than is read")), is_cut, "{name}: {said:?}");
            assert!(began.elapsed() < std::time::Duration::from_secs(20), "{name}: {:?}", began.elapsed());
        };
        for own in [true, false] {
            let stage = |config: &str| {
                let stage = owned(if own { config } else { "" });
                stage.write(".git/config", if own { "" } else { config });
                stage
            };
            let home =
                |stage: &Stage| if own { stage.root().to_path_buf() } else { stage.scene.workspace.join(".git") };
            let includes = stage(&many(&|number| format!("[include]\npath = more/{number}")));
            check("includes that are not there", &includes, own);
            std::fs::create_dir(home(&includes).join("more")).unwrap();
            for number in 9_800..10_000 {
                std::fs::write(home(&includes).join(format!("more/{number}")), "").unwrap();
            }
            check("10,000 includes", &includes, true);
            let cycle = stage("[include]\npath = a\npath = ../home/../a");
            std::fs::write(home(&cycle).join("a"), "[include]\npath = b\n[include]\npath = a\n").unwrap();
            std::fs::write(home(&cycle).join("b"), "[include]\npath = ./a\n[core]\nhooksPath = .h\n").unwrap();
            check("a cycle", &cycle, false);
            assert!(obeys(&cycle.scene, &cycle.scene.workspace.join(".h/x")).is_some());
            check("a huge file", &stage(&"# x\n".repeat(1_000_000)), true);
            check("many words", &stage(&format!("[core]\neditor = {}", "a/b ".repeat(200_000))), true);
            check("other words", &stage(&many(&|number| format!("editor = x/{} y{number}", "z/ ".repeat(9)))), true);
            check("quotes in quotes", &stage(&format!("editor = {}", "\"'\\".repeat(100_000))), true);
            check("no end", &stage(&format!("[a \"{}", "]=".repeat(100_000))), false);
            let pipe = stage("[include]\npath = pipe");
            nix::unistd::mkfifo(&home(&pipe).join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
            check("a pipe", &pipe, false);
            let folder = stage("[include]\npath = more");
            std::fs::create_dir(home(&folder).join("more")).unwrap();
            check("a folder", &folder, false);
            let circle = stage("[include]\npath = one\n[core]\nhooksPath = one/hooks");
            std::os::unix::fs::symlink("one", home(&circle).join("one")).unwrap();
            std::os::unix::fs::symlink("one", circle.scene.workspace.join("one")).unwrap();
            check("a circle of links", &circle, false);
            check("long names", &stage(&format!("hooksPath = {}", "a/".repeat(100_000))), true);
            let steps = stage(&many(&|number| format!("hooksPath = {}{number}", "a/".repeat(40))));
            steps.write(&format!("{}x", "a/".repeat(40)), "");
            check("steps", &steps, true);
            check("a NUL", &stage("hooksPath = a\0b\nhooksPath = .h"), false);
        }
        let mut stage = owned("");
        let pipe = stage.root().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        stage.scene.git.files =
            vec![pipe, stage.root().to_path_buf(), "/dev/zero".into(), "/dev/tty".into(), "".into()];
        check("no files", &stage, false);
    }
}
