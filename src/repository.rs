//! The roof: what a folder has for agents, and which folders the operator trusts. Nothing in a folder is run, and nothing
//! in it configures tiller, trusted or not; of a trusted one the guide is read, once, when a run begins.

use std::io::IsTerminal;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;

use crate::cli::trusting::Folders;
use crate::domain::guide::Guide;
use crate::domain::limits;
use crate::domain::terms::Terms;
use crate::domain::text::counted;
use crate::domain::text::excerpt;
use crate::headless::exit::Obstacle;
use crate::headless::output;
use crate::headless::text::block;
use crate::headless::text::sentence;
use crate::launch::Ground;
use crate::store::StoreError;
use crate::store::trusted;
use crate::store::trusted::Standing;
use crate::store::trusted::Trusted;
use crate::tools::guide;

/// Lines of a guide that are shown before it is trusted.
const GUIDE_LINES: usize = 20;

/// The guide that a run in this folder is told. Nothing where the folder is not trusted, or that can't be found out; then
/// nothing of the file is read.
pub fn guide(state: &Path, workspace: &Path) -> Option<Guide> {
    match trusted::standing(state, workspace) {
        Ok(Standing::Trusted(_)) => read(workspace).ok().flatten(),
        Ok(Standing::Unknown | Standing::Replaced) | Err(_) => None,
    }
}

fn read(workspace: &Path) -> Result<Option<Guide>, String> {
    let told = |bytes: &[u8]| excerpt(&String::from_utf8_lossy(bytes), limits::GUIDE_MAX_BYTES);
    Ok(guide::read(workspace)?.map(|(name, bytes)| Guide::new(name, &bytes, told(&bytes))))
}

/// What the operator is told at the start of a run about what its folder has for agents. Keeps which guide was told.
pub fn notes(ground: &Ground, terms: &Terms) -> Vec<String> {
    if terms.rehearsal {
        return Vec::new();
    }
    let (state, workspace) = (&ground.places.state, Path::new(&terms.workspace));
    let standing = trusted::standing(state, workspace);
    let about = match &terms.guide {
        Some(guide) => Some(told(state, workspace, guide, standing)),
        None => guide::find(workspace).map(|name| not_told(name, workspace, standing)),
    };
    about.into_iter().chain(ignored(ground, workspace)).collect()
}

fn told(state: &Path, workspace: &Path, guide: &Guide, standing: Result<Standing, StoreError>) -> String {
    let last = match standing {
        Ok(Standing::Trusted(Trusted { guide, .. })) => guide,
        Ok(Standing::Unknown | Standing::Replaced) | Err(_) => None,
    };
    if let Err(error) = trusted::keep_guide(state, workspace, &guide.hash) {
        tracing::warn!(%error, "which guide was told could not be kept");
    }
    let changed = match last.filter(|hash| *hash != guide.hash) {
        Some(hash) => format!(", which changed since a run was last told it ({})", hash.get(..8).unwrap_or(&hash)),
        None => String::new(),
    };
    let long = guide.bytes > limits::GUIDE_MAX_BYTES as u64;
    let cut = if long { ", without its middle because it is long" } else { "" };
    format!("the agent is told {}{changed}{cut}, as text of the repository; `tiller show` has it", guide.title())
}

fn not_told(name: &str, workspace: &Path, standing: Result<Standing, StoreError>) -> String {
    let how = format!("look at it, then type `{}`, and new runs are told it", command("", workspace));
    match standing {
        Ok(Standing::Unknown) => format!("{name} is not read, because this folder is not trusted; {how}"),
        Ok(Standing::Replaced) => {
            format!(
                "{name} is not read: the folder that you trusted was another one in this place, or was trusted by an \
                     earlier version, which did not keep when it was made; {how}"
            )
        }
        Ok(Standing::Trusted(_)) => {
            let why = read(workspace).err().unwrap_or_else(|| format!("{name} came only now"));
            format!("the agent is not told it: {why}")
        }
        Err(error) => format!("{name} is not read: {error}"),
    }
}

/// The line to type about a folder.
fn command(option: &str, folder: &Path) -> String {
    let text = folder.to_string_lossy();
    format!("tiller trust {option}{}", shlex::try_quote(&text).unwrap_or(text.as_ref().into()))
}

fn ignored(ground: &Ground, workspace: &Path) -> Option<String> {
    // Who works on the own configuration has the file where it is read.
    let is_ours = |name: &&str| workspace.join(name) == ground.places.config;
    let names: Vec<&str> = guide::ignored(workspace).into_iter().filter(|name| !is_ours(name)).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    (!names.is_empty()).then(|| {
        format!(
            "{} of this folder {verb} not read: only {} configures tiller",
            names.join(" and "),
            ground.places.config.display()
        )
    })
}

/// Does what the operator says of folders. Gives what they are told.
pub fn carry_out(ground: &Ground, what: &Folders) -> anyhow::Result<String> {
    let state = &ground.places.state;
    match what {
        Folders::List => {
            let all = trusted::all(state)?;
            let lines = all.iter().map(|one| format!("{}  {}\n", sentence(&one.path.to_string_lossy()), state_of(one)));
            let none = "no folder is trusted; `tiller trust DIR` lets runs in one be told its AGENTS.md\n".to_string();
            Ok(if all.is_empty() { none } else { lines.collect() })
        }
        Folders::Trust(folder) | Folders::TrustUnasked(folder) => {
            let shown = folder.display();
            let real = folder.canonicalize().with_context(|| {
                format!(
                    "the folder {shown} can't be trusted; nothing was changed; name a folder; to set how much a run \
                     does unasked, name its mode, too: tiller trust RUN MODE"
                )
            })?;
            anyhow::ensure!(real.is_dir(), "{shown} is not a folder; nothing was changed; name a folder");
            if matches!(what, Folders::Trust(_)) && !agrees(&real)? {
                return Ok("nothing was changed: the folder is not trusted\n".to_string());
            }
            trusted::add(state, &real)?;
            Ok(format!(
                "trusted: {}\n  {}\n  Nothing else changes: its files configure nothing, and you are asked as before.\n  \
                 To take it back: {}\n",
                sentence(&real.to_string_lossy()),
                new_runs(&real),
                sentence(&command("--remove ", &real))
            ))
        }
        Folders::Remove(folder) => {
            // It may be gone, or another one by now.
            let real = folder.canonicalize().or_else(|_| std::path::absolute(folder));
            let real = real.unwrap_or_else(|_| PathBuf::from(folder));
            let was_there = trusted::remove(state, &real)?;
            let shown = sentence(&real.to_string_lossy());
            anyhow::ensure!(was_there, "{shown} is not trusted; nothing was changed; `tiller trust --list` lists all");
            Ok(format!("not trusted any more: {shown}; runs that were told its guide keep it\n"))
        }
    }
}

/// Shows what new runs in a folder would be told, and asks the person at the terminal. Errors where there is none.
fn agrees(folder: &Path) -> anyhow::Result<bool> {
    output::put(&format!("{}\n{}", sentence(&folder.to_string_lossy()), looked_at(folder)));
    if !std::io::stdin().is_terminal() {
        let how = sentence(&command("--yes ", folder));
        let why = format!("nobody is here to be asked; nothing was changed; {}, type: {how}", agreed_to(folder).0);
        return Err(Obstacle::Refused(why).into());
    }
    Ok(output::is_agreed(&format!(
        "trust this folder, so that new runs there are told {}? yes or no: ",
        agreed_to(folder).1
    ))?)
}

/// What somebody agrees to who trusts a folder: when to do so, and what new runs are told. Where there is nothing to look
/// at, it is what may come.
fn agreed_to(folder: &Path) -> (&'static str, &'static str) {
    match read(folder) {
        Ok(Some(_)) => ("if you looked at that", "that"),
        Ok(None) => ("if new runs there are to be told such a file once it has one", "such a file once it has one"),
        Err(_) => ("if new runs there are to be told its guide once it can be read", "its guide once it can be read"),
    }
}

/// What new runs are told: the guide and its first lines, how many there are beyond, and what is there and never read.
fn looked_at(folder: &Path) -> String {
    let guide = match read(folder) {
        Ok(Some(guide)) => {
            let lines: Vec<&str> = guide.text.lines().collect();
            let first = lines.iter().take(GUIDE_LINES).map(|line| format!("{line}\n")).collect::<String>();
            let rest = lines.len().saturating_sub(GUIDE_LINES);
            let more = if rest > 0 { format!("  … {}\n", counted(rest, "more line")) } else { String::new() };
            format!("  {}, {}:\n{}{more}", guide.title(), counted(lines.len(), "line"), block(&first))
        }
        Ok(None) | Err(_) => format!("  {}\n", new_runs(folder)),
    };
    let others = guide::others(folder).into_iter();
    guide + &others.map(|name| format!("  {name} is there, too, and is not read\n")).collect::<String>()
}

fn new_runs(folder: &Path) -> String {
    match read(folder) {
        Ok(Some(guide)) => format!("New runs there are told {}, as text of the repository.", guide.title()),
        Ok(None) => "It has no AGENTS.md or the like; if it gets one, new runs there are told it.".to_string(),
        Err(why) => format!("New runs there are told nothing: {why}."),
    }
}

fn state_of(trusted: &Trusted) -> String {
    if !trusted::is_same(trusted) {
        return "not there any more, another folder now, or trusted by an earlier version: not trusted".to_string();
    }
    match (read(&trusted.path), &trusted.guide) {
        (Ok(None), _) => "nothing to tell".to_string(),
        (Err(why), _) => why,
        (Ok(Some(guide)), None) => format!("{}, not told yet", guide.title()),
        (Ok(Some(guide)), Some(last)) if guide.hash == *last => guide.title(),
        (Ok(Some(guide)), Some(_)) => format!("{}, changed since a run was told it", guide.title()),
    }
}
