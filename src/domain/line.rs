//! A shell line as it was read, without running anything: the commands in it, as far as they can be seen, and, if the
//! line is plain, exactly what there is to run (docs/SAFETY.md §6). What its words name in the workspace stands beside.

use serde::Deserialize;
use serde::Serialize;

/// A shell line that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Every command in it, as words, about in the order of the line; those inside of substitutions come before the
    /// command that they stand in, those in a line for another shell behind all others. As good as it can be told: a word
    /// that a shell would expand is there as it was written. Of a plain line, the words of its segments come first.
    /// Never a reason to allow anything.
    pub commands: Vec<Vec<String>>,
    /// What there is to run, if it needs no shell; else why it needs one.
    pub plain: Result<Plain, String>,
}

impl Line {
    /// Every text in it.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let (segments, why) = match &mut self.plain {
            Ok(plain) => (plain.segments.as_mut_slice(), None),
            Err(why) => (Default::default(), Some(why)),
        };
        let words = self.commands.iter_mut().chain(segments.iter_mut().map(|segment| &mut segment.argv));
        words.flatten().chain(why)
    }
}

/// A line that means the same to everybody: no expansion, no assignment, no redirection but three.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plain {
    /// Its commands; never empty.
    pub segments: Vec<Segment>,
}

/// The word that goes to another folder. It is no program.
pub const CD: &str = "cd";

impl Plain {
    /// The folder that a line goes to first, in which all that follows happens: `cd sub && …`.
    pub fn folder(&self) -> Option<&str> {
        match self.segments.as_slice() {
            [first, second, ..] if second.joint == Joint::And => match first.argv.as_slice() {
                [cd, folder] if cd == CD => Some(folder),
                _ => None,
            },
            _ => None,
        }
    }
}

/// One command of a plain line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// How it hangs on the one before.
    pub joint: Joint,
    /// The program and its arguments, as they will be run; never empty.
    pub argv: Vec<String>,
    /// Where its output goes, in the order of the line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirects: Vec<Redirect>,
}

/// How a command hangs on the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Joint {
    /// It is the first.
    First,
    /// `|`: it reads what the one before prints.
    Pipe,
    /// `&&`: it runs if what is before ended well.
    And,
    /// `||`: it runs if what is before did not end well.
    Or,
    /// `;`: it runs after what is before.
    Then,
}

/// The three redirections of a plain line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Redirect {
    /// `>/dev/null`
    OutputToNull,
    /// `2>/dev/null`
    ErrorsToNull,
    /// `2>&1`
    ErrorsToOutput,
}

/// What a word of a command names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touch {
    /// Which of the commands of the line.
    pub command: usize,
    /// The word, or the part of it that could be a path.
    pub word: String,
    /// What it names.
    pub named: Named,
    /// Whether that is the root of the file system, the home folder, the workspace or a folder above it: what is never
    /// removed as a whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_foundation: bool,
    /// Whether it is what other programs run or obey by themselves.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runs_later: bool,
}

impl Touch {
    /// The word, and what is said of the names that were found for it.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let told = match &mut self.named {
            Named::Folder { secret } => secret.as_mut(),
            Named::Tracked(why) | Named::Obeys(why) | Named::Sensitive(why) => Some(why),
            Named::Missing | Named::File | Named::Repository | Named::Outside | Named::Refused => None,
        };
        std::iter::once(&mut self.word).chain(told)
    }
}

/// What is where a word leads, links followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Named {
    /// Nothing, at a place inside the workspace.
    Missing,
    /// A regular file inside the workspace, whose name is not sensitive.
    File,
    /// A folder inside the workspace, whose name is not sensitive.
    Folder {
        /// Why not everything below it is to be read: a sensitive name, or more names than were looked at.
        secret: Option<String>,
    },
    /// The program git, in an ordinary repository that lies in the workspace.
    Repository,
    /// As `Repository`, but its files may hold secrets, which git would show without their names in the line; why.
    Tracked(String),
    /// The program git, which may read, show or start something that the line does not name, because of what the
    /// repository says by itself; why. Alone, git may work elsewhere than in it.
    Obeys(String),
    /// A place outside the workspace.
    Outside,
    /// A sensitive name, inside or outside; why.
    Sensitive(String),
    /// What is refused to every tool, or can't be told.
    Refused,
}

impl Named {
    /// Whether it lies inside the workspace and is nothing special, with all below it.
    pub fn is_plain(&self) -> bool {
        match self {
            Named::Missing | Named::File | Named::Folder { secret: None } | Named::Repository => true,
            Named::Folder { secret: Some(_) } | Named::Tracked(_) | Named::Obeys(_) => false,
            Named::Outside | Named::Sensitive(_) | Named::Refused => false,
        }
    }
}
