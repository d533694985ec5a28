//! Commands that take away what nobody means to lose: a safety net under the operator's eye, never a wall
//! (docs/SAFETY.md §5). It looks at every command that can be seen in a line, also behind a wrapper.

use std::collections::BTreeMap;

use crate::domain::limits;
use crate::domain::line::Line;
use crate::domain::line::Touch;

/// What makes file systems begins so.
const MAKER: &str = "mkfs";

/// What removes or changes all below a folder, and the letters and words that make it do so.
const RECURSIVE: [(&str, &[char], &str); 4] = [
    ("rm", &['r', 'R'], "--recursive"),
    ("chmod", &['R'], "--recursive"),
    ("chown", &['R'], "--recursive"),
    ("chgrp", &['R'], "--recursive"),
];

/// What a line would ruin, as a sentence; nothing for nearly all lines.
pub fn catastrophe(line: &Line, touches: &[Touch]) -> Option<String> {
    // Then not all of it was looked up.
    let is_long = touches.len() >= limits::TOUCHES;
    let mut foundations: BTreeMap<(usize, &str), bool> = BTreeMap::new();
    for touch in touches {
        *foundations.entry((touch.command, touch.word.as_str())).or_default() |= touch.is_foundation;
    }
    line.commands.iter().enumerate().find_map(|(command, argv)| {
        let is_lost = |word: &str| foundations.get(&(command, word)).copied().unwrap_or(is_long);
        // Behind the first of a name stands all that stands behind the next one: a line may be as long as it likes.
        let mut seen: Vec<&str> = Vec::new();
        (0..argv.len()).find_map(|from| {
            let words = argv.get(from..)?;
            let ruiner = ruiner(words).filter(|ruiner| !seen.contains(ruiner))?;
            seen.push(ruiner);
            ruins(words, &is_lost)
        })
    })
}

/// The name that a command begins with, if it is one that can ruin anything.
fn ruiner(argv: &[String]) -> Option<&str> {
    let name = base(argv.first()?);
    let is_known = match name {
        "dd" | "find" => true,
        "git" => argv.get(1).is_some_and(|word| word == "clean"),
        _ => is_maker(name) || RECURSIVE.iter().any(|(recursive, ..)| *recursive == name),
    };
    // All that make file systems are alike.
    is_known.then(|| if is_maker(name) { MAKER } else { name })
}

fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn is_maker(name: &str) -> bool {
    name == MAKER || name.strip_prefix(MAKER).is_some_and(|rest| rest.starts_with('.'))
}

/// What a command would ruin. `is_lost` says whether a word names what is never removed as a whole, or was not looked up.
fn ruins(argv: &[String], is_lost: &dyn Fn(&str) -> bool) -> Option<String> {
    let (program, words) = argv.split_first()?;
    let name = base(program);
    if is_maker(name) {
        return Some(format!("{name} makes a file system anew: all that it holds is lost"));
    }
    if name == "dd" {
        let device = words.iter().find(|word| word.starts_with("of=/dev/"))?;
        return Some(format!("dd writes over a device ({device})"));
    }
    if name == "find" && words.iter().any(|word| word == "-delete") {
        let from = words.iter().take_while(|word| !word.starts_with('-')).collect::<Vec<_>>();
        let is_whole = from.is_empty() || from.iter().any(|word| is_lost(word));
        let has_test = words.iter().any(|word| matches!(word.as_str(), "-name" | "-iname" | "-path" | "-regex"));
        return (is_whole && !has_test).then(|| "find removes all below the folder of the run, or more".to_string());
    }
    if name == "git" {
        let has = |letter: char| {
            words.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
        };
        let is_forced = (has('f') || words.iter().any(|word| word == "--force")) && !has('n');
        return (is_forced && has('d') && has('x'))
            .then(|| "git clean removes everything that is not in the repository, for good".to_string());
    }
    let (_, letters, long) = RECURSIVE.iter().find(|(recursive, ..)| *recursive == name)?;
    let is_deep = |word: &String| match word.strip_prefix("--") {
        // Programs take any beginning of a word that is not that of another.
        Some(rest) => rest.len() >= 3 && long.starts_with(word.as_str()),
        None => word.starts_with('-') && word.contains(*letters),
    };
    if !words.iter().any(is_deep) {
        return None;
    }
    let lost = words.iter().find(|word| !word.starts_with('-') && !word.is_empty() && is_lost(word))?;
    let verb = if name == "rm" { "removes" } else { "changes the rights of" };
    Some(format!("{name} {verb} all below {lost}, which is the root, your home, the workspace or a folder above it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::line::Named;

    fn check(argv: &str, expected: &str) {
        let argv: Vec<String> = argv.split(' ').map(String::from).collect();
        let is_foundation = |word: &str| ["/", "~", ".", "..", "/*"].contains(&word);
        let touches: Vec<Touch> = argv
            .iter()
            .map(|word| Touch {
                command: 0,
                word: word.clone(),
                named: Named::Outside,
                is_foundation: is_foundation(word),
                runs_later: false,
            })
            .collect();
        let line = Line { commands: vec![argv], plain: Err(String::new()) };
        let found = catastrophe(&line, &touches).unwrap_or_default();
        assert_eq!(found.split(", which").next(), Some(expected), "{line:?}");
    }

    #[test]
    fn what_nobody_means_to_lose_is_named() {
        check("rm -rf /", "rm removes all below /");
        check("rm -f -R ..", "rm removes all below ..");
        check("rm --recurs .", "rm removes all below .");
        check("rm -fr /*", "rm removes all below /*");
        check("sudo /bin/rm -rf ~", "rm removes all below ~");
        check("chmod -R 777 /", "chmod changes the rights of all below /");
        check("chown -hR op .", "chown changes the rights of all below .");
        check("mkfs.ext4 /dev/sda", "mkfs.ext4 makes a file system anew: all that it holds is lost");
        check("dd if=x of=/dev/sda", "dd writes over a device (of=/dev/sda)");
        for harmless in
            ["rm -rf target", "rm /", "rm -f .", "chmod 777 .", "dd if=/dev/zero of=x", "ls -R /", "echo mkfsx"]
        {
            check(harmless, "");
        }
        check("sudo -u git git clean -fdx", "git clean removes everything that is not in the repository, for good");
    }

    #[test]
    fn a_line_as_long_as_may_be_is_looked_at_once() {
        let many = |start: &str, word: &str, end: &str| {
            let words = [start].into_iter().chain(std::iter::repeat_n(word, 40_000)).chain([end]);
            Line { commands: vec![words.map(String::from).collect()], plain: Err(String::new()) }
        };
        let touch = |word: &str| Touch {
            command: 0,
            word: word.to_string(),
            named: Named::Outside,
            is_foundation: false,
            runs_later: false,
        };
        for (line, word) in [(many("rm", "rm", "-r"), "rm"), (many("find", "find", "-delete"), "find")] {
            assert_eq!(catastrophe(&line, &vec![touch(word); limits::TOUCHES - 1]), None);
        }
        assert_eq!(catastrophe(&many("dd", "dd", "of=x"), &[]), None);
        assert_eq!(catastrophe(&many("git", "clean", "git"), &[]), None);
    }
}
