//! Programs of the workspace that a shell line names: a decision about the line is bound to their content, so that
//! one can't be exchanged between the decision and the start. What they include in turn is not covered.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::sys::stat::Mode;
use sha2::Digest;
use sha2::Sha256;

use crate::domain::interpreters::INTERPRETERS;
use crate::domain::limits;
use crate::domain::text::hex;
use crate::domain::text::sha256_hex;
use crate::tools::Scene;
use crate::tools::place;
use crate::tools::place::Kind;
use crate::tools::place::Place;

/// Programs that run files of the workspace without being told their names, and those files.
const RUNNERS: [(&str, &str); 28] = [
    ("make gmake bmake", "Makefile makefile GNUmakefile BSDmakefile"),
    ("just", "justfile Justfile .justfile"),
    ("npm npx yarn pnpm bun", "package.json"),
    ("deno", "deno.json deno.jsonc"),
    ("ninja ninja-build samu", "build.ninja"),
    ("rake", "Rakefile rakefile Rakefile.rb rakefile.rb"),
    ("task go-task", "Taskfile.yml Taskfile.yaml taskfile.yml taskfile.yaml Taskfile.dist.yml Taskfile.dist.yaml"),
    ("tox", "tox.ini tox.toml pyproject.toml setup.cfg"),
    ("nox", "noxfile.py"),
    ("mvn mvnw", "pom.xml .mvn/maven.config .mvn/jvm.config .mvn/extensions.xml"),
    ("gradle gradlew", "build.gradle build.gradle.kts settings.gradle settings.gradle.kts gradle.properties"),
    ("cmake", "CMakeLists.txt CMakePresets.json CMakeUserPresets.json Makefile build.ninja"),
    ("ctest", "CTestTestfile.cmake CMakePresets.json CMakeUserPresets.json"),
    ("meson", "meson.build meson.options meson_options.txt build.ninja"),
    ("ant", "build.xml"),
    ("scons", "SConstruct Sconstruct sconstruct SConstruct.py"),
    ("waf", "wscript"),
    ("invoke inv", "tasks.py"),
    ("doit", "dodo.py"),
    ("fab", "fabfile.py"),
    ("mage", "magefile.go"),
    ("snakemake", "Snakefile workflow/Snakefile"),
    ("grunt", "Gruntfile.js Gruntfile.cjs gruntfile.js"),
    ("gulp", "gulpfile.js gulpfile.mjs gulpfile.cjs"),
    ("lein", "project.clj"),
    ("sbt", "build.sbt"),
    ("mix", "mix.exs"),
    ("pre-commit", ".pre-commit-config.yaml"),
];

/// One line of a binding for each of the first programs of the workspace that the shell line names, and one for all
/// others together. It rather binds a file too many than one too few: then a change is asked about that did not matter.
pub(crate) fn bindings(scene: &Scene, line: &str) -> Vec<String> {
    let words = words(line);
    let interpreters: BTreeSet<&str> = INTERPRETERS.split_whitespace().collect();
    let called: BTreeSet<&str> = words.iter().filter_map(|word| word.rsplit('/').next()).collect();
    let run_unnamed = RUNNERS.iter().filter(|(names, _)| names.split(' ').any(|name| called.contains(name)));
    let unnamed: Vec<(&str, bool)> =
        run_unnamed.flat_map(|(_, files)| files.split(' ')).map(|file| (file, true)).collect();
    // What a runner is told to run in the place of its file is a file as any other: `make -f rules.mk`.
    let interpreted = !unnamed.is_empty() || words.iter().any(|word| is_interpreter(&interpreters, word));
    let names: Vec<(&str, bool)> = words.iter().map(|word| (word.as_str(), interpreted)).chain(unnamed).collect();
    let mut found = BTreeMap::new();
    let mut budget = limits::SCRIPTS_HASHED_BYTES;
    let folders = folders(scene, &words);
    // What exists is cheap to tell, so only that counts, and no number of other words hides it.
    let there = named(&names, &folders).filter(|(name, _)| scene.workspace.join(name).exists());
    for (name, is_run) in there.take(limits::SCRIPTS_LOOKED_AT) {
        if let Some(path) = program(scene, &name, is_run) {
            found.entry(path.clone()).or_insert_with(|| describe(&path, &mut budget));
        }
    }
    let mut lines: Vec<String> =
        found.into_iter().map(|(path, what)| format!("script {}={what}", path.display())).collect();
    let others = lines.split_off(lines.len().min(limits::SCRIPTS_BOUND));
    if !others.is_empty() {
        lines.push(format!("{} more scripts={}", others.len(), sha256_hex(others.join("\n").as_bytes())));
    }
    lines
}

/// Where the names may be meant: here, and in each folder, since a line may go into one first.
fn named<'names>(names: &'names [(&str, bool)], folders: &'names [&str]) -> impl Iterator<Item = (String, bool)> {
    let here = names.iter().map(|(name, is_run)| (name.to_string(), *is_run));
    let relative = |folder: &'names str| {
        let names = names.iter().filter(|(name, _)| !name.starts_with('/'));
        names.map(move |(name, is_run)| (format!("{folder}/{name}"), *is_run))
    };
    here.chain(folders.iter().flat_map(move |folder| relative(folder)).take(limits::SCRIPT_NAMES_IN_FOLDERS))
}

/// Whatever in a line could be a word: as a shell splits it, and every run of the characters that names are made of,
/// so that no sign that stands close hides one. A decision is bound to them, never taken on them.
fn words(line: &str) -> Vec<String> {
    let split = shlex::split(line).unwrap_or_default();
    let is_sign = |one: char| !(one.is_alphanumeric() || "._/+-@%,:~".contains(one));
    let runs = line.split(is_sign).filter(|word| !word.is_empty()).map(String::from);
    let mut words: Vec<String> = split.into_iter().chain(runs).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// The words that are folders of the workspace.
fn folders<'words>(scene: &Scene, words: &'words [String]) -> Vec<&'words str> {
    let there = words.iter().map(String::as_str).filter(|word| scene.workspace.join(word).is_dir());
    let is_within = |word: &&str| Place::find(scene, word).is_ok_and(|place| place.within);
    there.take(limits::SCRIPTS_LOOKED_AT).filter(is_within).collect()
}

/// Whether a word is called like an interpreter, of whatever version, build and machine: `python3.12`,
/// `busybox.static`, `x86_64-linux-gnu-perl`.
fn is_interpreter(known: &BTreeSet<&str>, word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word).to_ascii_lowercase();
    if name.starts_with('-') {
        return false;
    }
    let first = name.split('.').next().unwrap_or(&name);
    let parts = [Some(name.as_str()), Some(first), first.split('-').next(), first.rsplit('-').next()];
    parts.into_iter().flatten().any(|part| known.contains(part) || known.contains(unversioned(part)))
}

fn unversioned(name: &str) -> &str {
    let digits = name.find(|sign: char| sign.is_ascii_digit()).unwrap_or(name.len());
    name.get(..digits).unwrap_or(name).trim_end_matches(['-', '_'])
}

/// The real path of a word, if it is a file in the workspace that would be run.
fn program(scene: &Scene, word: &str, interpreted: bool) -> Option<PathBuf> {
    if word.is_empty() || word.starts_with('-') {
        return None;
    }
    let place = Place::find(scene, word).ok().filter(|place| place.within)?;
    let Ok(Kind::File(_)) = place.kind() else { return None };
    let is_program = interpreted || is_executable(&place.path) || starts_as_script(&place.path);
    is_program.then_some(place.path)
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.mode() & 0o111 != 0)
}

fn starts_as_script(path: &Path) -> bool {
    let mut start = [0; 2];
    open(path).is_some_and(|mut file| file.read_exact(&mut start).is_ok() && start == *b"#!")
}

/// Opens a file of the workspace without following links.
fn open(path: &Path) -> Option<File> {
    let folder = place::open_folder(path.parent()?).ok()?;
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    openat(folder, path.file_name()?, flags, Mode::empty()).ok().map(File::from)
}

/// The content as a hash; for what is too large, its size and the time of its last change.
fn describe(path: &Path, budget: &mut u64) -> String {
    let Some(mut file) = open(path) else { return "unreadable".to_string() };
    let Ok(found) = file.metadata() else { return "unreadable".to_string() };
    if !found.is_file() || found.len() > *budget {
        return format!("{} {} {} {}.{}", found.dev(), found.ino(), found.len(), found.ctime(), found.ctime_nsec());
    }
    *budget -= found.len();
    let mut hash = Sha256::new();
    let mut buffer = [0; 8192];
    let mut rest = found.len();
    while rest > 0 {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                hash.update(&buffer[..count]);
                rest = rest.saturating_sub(count as u64);
            }
            Err(_) => return "unreadable".to_string(),
        }
    }
    hex(&hash.finalize())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::tools::stage::Stage;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn check(stage: &Stage, line: &str, wanted: &[&str]) {
        let found = bindings(&stage.scene, line);
        let names: Vec<String> = found
            .iter()
            .map(|line| stage.neutral(line.split('=').next().unwrap()).replace("script ROOT/ws/", ""))
            .collect();
        assert_eq!(names, wanted, "{line}");
    }

    #[test]
    fn programs_of_the_workspace_are_bound() {
        let stage = Stage::new();
        for name in ["run", "x.py", "plain.txt", "sub/tool.sh"] {
            stage.write(name, "print(1)");
        }
        stage.write("marked", "#!/bin/sh\n");
        stage.write("../outside/x.py", "");
        fs::set_permissions(stage.scene.workspace.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
        check(&stage, "./run --fast && cat plain.txt", &["run"]);
        check(&stage, "cd sub; ./run; (marked)", &["marked", "run"]);
        check(&stage, "python3.12 -u x.py", &["x.py"]);
        check(&stage, "FOO=1 /bin/bash -e 'sub/tool.sh' plain.txt", &["plain.txt", "sub/tool.sh"]);
        check(&stage, ". sub/tool.sh", &["sub/tool.sh"]);
        check(&stage, "cat x.py | ./run 'unclosed", &["run"]);
        check(&stage, "python ../outside/x.py /bin/ls", &[]);
        check(&stage, "cat plain.txt x.py", &[]);
        let found = bindings(&stage.scene, "./run");
        assert!(found[0].ends_with(&sha256_hex(b"print(1)")), "{found:?}");
    }

    #[test]
    fn no_sign_that_stands_close_hides_a_program() {
        let stage = Stage::new();
        stage.write("x.sh", "echo safe");
        stage.write("sub/y.sh", "echo safe");
        stage.write("Makefile", "all:\n");
        for name in ["x.sh", "sub/y.sh"] {
            fs::set_permissions(stage.scene.workspace.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let spellings = [
            "true;./x.sh",
            "./x.sh||true",
            "bash ./x.sh;true",
            "(cd .;./x.sh)",
            "echo $(./x.sh)",
            "bash -c \"./x.sh foo\"",
            "sh<x.sh",
            "cat x.sh|sh",
            "awk -f x.sh",
            "./x.sh>out",
            "`./x.sh`",
            "a=1;sh -c './x.sh'",
        ];
        for line in spellings {
            check(&stage, line, &["x.sh"]);
        }
        check(&stage, "cd sub && ./y.sh", &["sub/y.sh"]);
        check(&stage, "cd sub&&sh y.sh", &["sub/y.sh"]);
        check(&stage, "make -j2 all", &["Makefile"]);
    }

    #[test]
    fn the_build_file_of_a_runner_is_bound() {
        for (line, file) in [
            ("make", "Makefile"),
            ("/usr/bin/make", "GNUmakefile"),
            ("make -C sub", "sub/Makefile"),
            ("make -f rules.mk", "rules.mk"),
            ("just", "justfile"),
            ("npm test", "package.json"),
            ("ninja", "build.ninja"),
            ("cmake --build sub", "sub/build.ninja"),
            ("rake", "Rakefile"),
            ("task", "Taskfile.yml"),
            ("tox", "tox.ini"),
            ("mvn test", "pom.xml"),
            ("gradle test", "build.gradle"),
            ("./gradlew test", "build.gradle"),
            ("cmake .", "CMakeLists.txt"),
            ("ant", "build.xml"),
            ("scons", "SConstruct"),
            ("meson test", "meson.build"),
            ("cd sub && rake", "sub/Rakefile"),
        ] {
            let stage = Stage::new();
            stage.write(file, "one");
            check(&stage, line, &[file]);
            let before = bindings(&stage.scene, line);
            stage.write(file, "two");
            assert_ne!(bindings(&stage.scene, line), before, "{line}");
        }
    }

    #[test]
    fn large_programs_are_bound_by_size_and_time() {
        let stage = Stage::new();
        stage.write("big", "");
        let path = stage.scene.workspace.join("big");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(limits::SCRIPTS_HASHED_BYTES + 1).unwrap();
        let found = bindings(&stage.scene, "./big");
        assert!(found[0].contains(&format!(" {} ", limits::SCRIPTS_HASHED_BYTES + 1)), "{found:?}");
    }

    #[test]
    fn whatever_runs_a_file_is_an_interpreter() {
        let stage = Stage::new();
        stage.write("x.any", "1");
        for program in [
            "julia",
            "Rscript",
            "java",
            "tsx",
            "tclsh8.6",
            "osascript",
            "python3.13t",
            "/usr/bin/lua5.4",
            "PYTHON",
            "node.exe",
            "awk",
            "sed -f",
            "source",
            ".",
            "eval",
            "busybox.static sh",
        ] {
            check(&stage, &format!("{program} x.any"), &["x.any"]);
        }
        check(&stage, "cargo x.any", &[]);
    }

    #[test]
    fn no_number_of_words_hides_a_program() {
        let stage = Stage::new();
        stage.write("zz.py", "1");
        stage.write("sub/zzz.py", "1");
        let long: Vec<String> = (0..5_000).map(|number| format!("a{number}")).collect();
        let long = long.join(" ");
        check(&stage, &format!("echo {long}; python zz.py"), &["zz.py"]);
        check(&stage, &format!("echo {long}; cd sub; python zzz.py"), &["sub/zzz.py"]);
        check(&stage, &format!("echo {long}; make"), &[]);
        for number in 0..300 {
            stage.write(&format!("a{number}"), "");
        }
        let found = bindings(&stage.scene, &format!("cat {long}; python zz.py"));
        let before = found.clone();
        stage.write("zz.py", "2");
        let after = bindings(&stage.scene, &format!("cat {long}; python zz.py"));
        assert_ne!(before, after);
    }

    /// Many folders and many words: what is looked up is bounded, and takes no time that anybody would notice.
    #[test]
    fn folders_and_words_are_not_multiplied() {
        let stage = Stage::new();
        let mut line = "python".to_string();
        for number in 0..600 {
            stage.write(&format!("d{number}/x{number}"), "");
            line.push_str(&format!(" d{number} x{number}"));
        }
        let begun = std::time::Instant::now();
        let found = bindings(&stage.scene, &line);
        assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
        assert!(!found.is_empty() && found.len() <= limits::SCRIPTS_BOUND + 1, "{}", found.len());
    }
}
