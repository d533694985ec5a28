//! The read-only table: whether a plain line only reads (docs/SAFETY.md §6). Each command has a list of the options that
//! it may have, exactly as they are written; whatever is not listed is asked about. It judges words, and looks up what
//! they name among the facts; that the line is confined while it runs is judged elsewhere.

mod entries;
mod git;
mod own;

use crate::domain::line::CD;
use crate::domain::line::Joint;
use crate::domain::line::Line;
use crate::domain::line::Named;
use crate::domain::line::Plain;
use crate::domain::line::Segment;
use crate::domain::line::Touch;

/// The program that obeys the repository that it finds.
const GIT: &str = "git";

/// What a command may be given, besides its name.
struct Entry {
    /// Its name; for git that of the subcommand, too.
    name: &'static str,
    /// Letters of options without a value; several may be written as one word.
    flags: &'static str,
    /// Letters of options with a value, in the same word or in the next; it is no path.
    valued: &'static str,
    /// Words of options without a value.
    long: &'static [&'static str],
    /// Words of options with a value, behind `=` or in the next word; it is no path.
    long_valued: &'static [&'static str],
    /// Words of options that may have a value, only behind `=`; it is no path.
    long_maybe: &'static [&'static str],
    /// Whether a number may be an option.
    has_digits: bool,
    /// What the other words are.
    operands: Operands,
}

/// The words of a command that are no options.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// There are none.
    None,
    /// Text that is not read as the name of a file.
    Text,
    /// Files or folders, of which the names are read.
    Places,
    /// Files to be read, at most so many.
    Files(usize),
    /// A pattern, unless it is given by an option, then files; and folders, if all below them is read.
    Pattern,
    /// Revisions and paths of git, which are judged with all of its words.
    Revisions,
    /// As `Revisions`, where the option `--list` says that they are patterns; else none.
    Listed,
}

/// One command of a line, and what its words name.
struct Words<'a> {
    name: &'a str,
    arguments: &'a [String],
    command: usize,
    touches: &'a [Touch],
}

/// Whether a line only reads. Errors with the reason why it can't be told.
pub fn reads(line: &Line, touches: &[Touch]) -> Result<(), String> {
    let plain = line.plain.as_ref().map_err(Clone::clone)?;
    (0..plain.segments.len()).try_for_each(|command| command_reads(plain, command, touches))
}

/// Whether a command of a line only reads, where others of it do more. What such others leave behind was not looked up: so
/// it may name places only where they come later, and not in its own pipe. git runs what a repository names, and `cd` makes other commands mean another thing.
pub fn reads_beside(plain: &Plain, command: usize, touches: &[Touch]) -> Result<(), String> {
    let argv = plain.segments.get(command).map(|segment| segment.argv.as_slice()).unwrap_or_default();
    if argv.first().is_some_and(|name| name == CD || name == GIT) {
        return Err("git and cd stand beside nothing that does more than read".to_string());
    }
    let later = plain.segments.get(command + 1..).unwrap_or_default();
    let end = command + later.iter().take_while(|segment| segment.joint == Joint::Pipe).count();
    let is_first = (0..=end).all(|before| command_reads(plain, before, touches).is_ok());
    command_reads(plain, command, if is_first { touches } else { &[] })
}

fn command_reads(plain: &Plain, command: usize, touches: &[Touch]) -> Result<(), String> {
    let Some((segment, (name, arguments))) =
        plain.segments.get(command).and_then(|segment| Some((segment, segment.argv.split_first()?)))
    else {
        return Err("a command is missing".to_string());
    };
    let words = Words { name, arguments, command, touches };
    if name == CD { words.goes_to(segment, plain.folder()) } else { words.command() }
}

impl Words<'_> {
    fn command(&self) -> Result<(), String> {
        if let Some(judge) = own::find(self.name) {
            return judge(self);
        }
        if self.name == GIT {
            return git::judge(self);
        }
        // Old ways to write the lines, and to follow the file for ever: `+5f`, `-5f`, `-cf`.
        let is_old = |word: &&String| {
            word.starts_with('+') || (word.starts_with('-') && !word.starts_with("--") && word.contains(['f', 'F']))
        };
        if let Some(word) = self.arguments.iter().find(is_old).filter(|_| self.name == "tail") {
            return Err(format!("tail {word} is not listed as what only reads"));
        }
        let entry = entries::ENTRIES.iter().find(|entry| entry.name == self.name);
        entry.ok_or_else(|| format!("{} is not in the read-only table", self.name))?.judge(self)
    }

    /// `cd`, which only makes sense before all else.
    fn goes_to(&self, segment: &Segment, folder: Option<&str>) -> Result<(), String> {
        let is_first = segment.joint == Joint::First && segment.argv.get(1).map(String::as_str) == folder;
        match folder.filter(|folder| is_first && !folder.starts_with('-') && segment.redirects.is_empty()) {
            Some(folder) => {
                self.place(folder)?;
                // What stands behind it was looked up there.
                self.named(folder, &|named| match named {
                    Named::Folder { .. } => None,
                    Named::Missing | Named::File | Named::Repository | Named::Tracked(_) | Named::Obeys(_) => {
                        Some("is no folder".to_string())
                    }
                    Named::Outside | Named::Sensitive(_) | Named::Refused => None,
                })
            }
            None => Err("cd stands elsewhere than at the start of the line, before &&".to_string()),
        }
    }

    /// Whether a word names only places inside the workspace that are nothing special.
    fn place(&self, word: &str) -> Result<(), String> {
        self.named(word, &|named| match named {
            Named::Missing | Named::File | Named::Folder { .. } => None,
            // They are about git, whatever a word is called.
            Named::Repository | Named::Tracked(_) | Named::Obeys(_) => None,
            Named::Outside => Some("lies outside the workspace".to_string()),
            Named::Sensitive(why) => Some(format!("has a sensitive name ({why})")),
            Named::Refused => Some("is refused to every tool, or can't be told".to_string()),
        })
    }

    /// Whether a word names a file that may be read. A folder can't be read as one.
    fn file(&self, word: &str) -> Result<(), String> {
        self.place(word)?;
        self.named(word, &|named| match named {
            Named::Folder { .. } => Some("is a folder".to_string()),
            Named::Missing | Named::File | Named::Repository | Named::Tracked(_) | Named::Obeys(_) => None,
            Named::Outside | Named::Sensitive(_) | Named::Refused => None,
        })
    }

    /// Whether a word names something of which all may be read, down to the last folder.
    fn below(&self, word: &str) -> Result<(), String> {
        self.place(word)?;
        self.named(word, &|named| match named {
            Named::Folder { secret } => secret.clone().map(|secret| format!("is read as a whole, and {secret}")),
            Named::Missing | Named::File | Named::Repository | Named::Tracked(_) | Named::Obeys(_) => None,
            Named::Outside | Named::Sensitive(_) | Named::Refused => None,
        })
    }

    /// Asks `fault` about all that a word names. A word that was not looked up is at fault.
    fn named(&self, word: &str, fault: &dyn Fn(&Named) -> Option<String>) -> Result<(), String> {
        let mut found =
            self.touches.iter().filter(|touch| touch.command == self.command && touch.word == word).peekable();
        if found.peek().is_none() {
            return Err(format!("{word}: it was not looked up"));
        }
        match found.find_map(|touch| fault(&touch.named)) {
            Some(why) => Err(format!("{word} {why}")),
            None => Ok(()),
        }
    }
}

impl Entry {
    fn judge(&self, words: &Words<'_>) -> Result<(), String> {
        let (options, operands) = self.sort(words)?;
        let has = |option: &str| options.contains(&option);
        match self.operands {
            Operands::None => match operands.first() {
                None => Ok(()),
                Some(word) => Err(format!("{} with {word} may do more than read", self.name)),
            },
            Operands::Text | Operands::Revisions => Ok(()),
            Operands::Places => operands.iter().try_for_each(|word| words.place(word)),
            Operands::Files(most) => {
                if operands.len() > most {
                    return Err(format!("{} may write to one of so many files", self.name));
                }
                operands.iter().filter(|word| **word != "-").try_for_each(|word| words.file(word))
            }
            Operands::Pattern => {
                let is_given = ["e", "--regexp", "--files", "--type-list"].into_iter().any(has);
                let files = operands.get(usize::from(!is_given)..).unwrap_or_default();
                let is_deep = self.name == "rg" || has("r") || has("--recursive");
                if is_deep && files.is_empty() {
                    return words.below(".");
                }
                files.iter().filter(|word| **word != "-").try_for_each(|word| match is_deep {
                    true => words.below(word),
                    false => words.place(word),
                })
            }
            Operands::Listed if operands.is_empty() || has("--list") => Ok(()),
            Operands::Listed => Err(format!("{} with a name may make one", self.name)),
        }
    }

    /// Tells options from operands. Errors with the first option that is not listed.
    fn sort<'a>(&self, words: &Words<'a>) -> Result<(Vec<&'a str>, Vec<&'a str>), String> {
        let (mut options, mut operands) = (Vec::new(), Vec::new());
        let mut rest = words.arguments.iter().map(String::as_str);
        while let Some(word) = rest.next() {
            let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
                operands.push(word);
                continue;
            };
            if word == "--" {
                operands.extend(rest.by_ref());
                break;
            }
            let unknown = || format!("{} {word} is not listed as an option that only reads", self.name);
            let is_digits = letters.chars().all(|letter| letter.is_ascii_digit());
            if (self.has_digits && is_digits) || self.long.contains(&word) || self.long_maybe.contains(&word) {
                options.push(word);
            } else if letters.starts_with('-') {
                let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
                let is_listed = match value {
                    Some(_) => self.long_valued.contains(&name) || self.long_maybe.contains(&name),
                    None => {
                        self.long_valued.contains(&name) && rest.next().is_some_and(|value| !value.starts_with('-'))
                    }
                };
                options.push(Some(name).filter(|_| is_listed).ok_or_else(unknown)?);
            } else {
                self.letters(letters, &mut options, &mut rest).ok_or_else(unknown)?;
            }
        }
        Ok((options, operands))
    }

    /// Options of one letter in one word. The last may have a value, which is what is left of the word, or the next one.
    fn letters<'a>(
        &self,
        letters: &'a str,
        options: &mut Vec<&'a str>,
        rest: &mut dyn Iterator<Item = &'a str>,
    ) -> Option<()> {
        for (at, letter) in letters.char_indices() {
            let (option, behind) = letters.get(at..)?.split_at_checked(letter.len_utf8())?;
            options.push(option);
            if self.valued.contains(letter) {
                // What looks like an option is none of a value: a program may see it otherwise.
                let mut is_given = || rest.next().is_some_and(|value| !value.starts_with('-'));
                return (!behind.is_empty() || is_given()).then_some(());
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(())
    }
}
