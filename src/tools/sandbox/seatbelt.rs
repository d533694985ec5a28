//! Half a box as macOS makes it: `sandbox-exec` holds back what a profile does not allow. Its vendor calls it deprecated,
//! and we have never run it on a Mac; as everywhere, the trial says whether it holds (`probe.rs`).
//!
//! Here are the profile, which is text made from facts, and the stage that says, from within, that the box is closed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use nix::sys::resource::Resource;
use nix::sys::resource::setrlimit;

use crate::domain::limits;
use crate::tools::sandbox;
use crate::tools::sandbox::threshold;

/// Where the program is. It is looked for nowhere else.
const PROGRAM: &str = "/usr/bin/sandbox-exec";
/// The word of the stage that runs in it.
pub(crate) const STAGE: &str = "--in-seatbelt";
/// Folders and files of the system that can be read, and run.
const SYSTEM: [&str; 20] = [
    "/usr",
    "/bin",
    "/sbin",
    "/System",
    "/Library",
    "/opt/homebrew",
    "/Applications/Xcode.app",
    "/private/etc/passwd",
    "/private/etc/group",
    "/private/etc/protocols",
    "/private/etc/shells",
    "/private/etc/localtime",
    "/private/etc/paths",
    "/private/etc/paths.d",
    "/private/var/db/dyld",
    "/private/var/db/timezone",
    "/private/var/db/xcode_select_link",
    "/private/var/select",
    "/dev/random",
    "/dev/urandom",
];
/// What of them can't.
const SECRET: &str = "/Library/Keychains";
/// What can be read as well where the network is open.
const NETWORK: [&str; 4] =
    ["/private/etc/hosts", "/private/etc/resolv.conf", "/private/etc/services", "/private/etc/ssl"];
/// Folders of the system, and links to some, that are on the way to what can be read.
const LINKS: [&str; 4] = ["/dev", "/etc", "/tmp", "/var"];
/// Services that the C library asks: users, the time zone, the log.
const SERVICES: [&str; 3] =
    ["com.apple.system.opendirectoryd.libinfo", "com.apple.system.notification_center", "com.apple.system.logger"];

/// What one box is made from. All paths are real ones.
pub(crate) struct Plan<'a> {
    pub(crate) program: &'a Path,
    pub(crate) workspace: &'a Path,
    pub(crate) is_writable: bool,
    pub(crate) has_network: bool,
    pub(crate) readable: &'a [PathBuf],
    pub(crate) writable: &'a [PathBuf],
    /// What other programs run or obey by themselves: it stays as it is.
    pub(crate) kept: &'a [PathBuf],
    /// The home of the box, and its folder for temporary files.
    pub(crate) private: &'a Path,
}

/// The program, where it belongs to the system.
pub fn find() -> Option<PathBuf> {
    Some(PathBuf::from(PROGRAM)).filter(|path| sandbox::is_of_the_system(path))
}

/// The profile of a box. Where two of its lines speak of the same, the later one holds. Errors with a sentence where a
/// path can't be written in it.
pub(crate) fn profile(plan: &Plan<'_>) -> Result<String, String> {
    let network: &[&str] = if plan.has_network { &NETWORK } else { &[] };
    let given = plan.readable.iter().chain(plan.writable).map(PathBuf::as_path);
    let opened: Vec<&Path> = given.chain([plan.workspace, plan.private]).collect();
    let system = SYSTEM.iter().chain(network).map(Path::new);
    let read: Vec<&Path> = system.chain(opened.iter().copied()).chain([plan.program]).collect();
    let further = plan.writable.iter().map(PathBuf::as_path).chain([plan.workspace]).filter(|_| plan.is_writable);
    let written: Vec<&Path> = further.chain([plan.private]).collect();
    // A path is found by way of the folders above it.
    let above = opened.iter().copied().chain([plan.program]).flat_map(|path| path.ancestors().skip(1));
    let seen: BTreeSet<&Path> = above.chain(LINKS.map(Path::new)).chain([Path::new("/private")]).collect();
    // What is kept would be gone if a folder above it could be moved away.
    let inside = |path: &&Path| path.starts_with(plan.workspace);
    let held: BTreeSet<&Path> = plan.kept.iter().flat_map(|path| path.ancestors().skip(1)).filter(inside).collect();
    let held = held.into_iter().chain(written.iter().copied()).collect::<BTreeSet<&Path>>();

    let mut lines = vec![
        "(version 1)".to_string(),
        "(deny default)".to_string(),
        "(allow process-fork)".to_string(),
        "(allow signal (target same-sandbox))".to_string(),
        "(allow process-info* (target same-sandbox))".to_string(),
        "(allow sysctl-read)".to_string(),
    ];
    lines.push(rule("allow mach-lookup", SERVICES.map(|name| format!("(global-name \"{name}\")"))));
    lines.push("(allow file-read* (literal \"/\"))".to_string());
    lines.push(rule("allow file-read-metadata", all("literal", seen)?));
    lines.push(rule("allow file-read* file-map-executable process-exec", all("subpath", read)?));
    lines.push(rule("deny file-read*", all("subpath", [Path::new(SECRET)])?));
    lines.push(rule("allow file-read* file-write-data", all("literal", ["/dev/null", "/dev/zero"].map(Path::new))?));
    lines.push(rule("allow file-write*", all("subpath", written)?));
    lines.push(rule("deny file-write-unlink", all("literal", held)?));
    if !plan.kept.is_empty() {
        lines.push(rule("deny file-write*", all("subpath", plan.kept.iter().map(PathBuf::as_path))?));
    }
    lines.push("(deny file-write-setugid)".to_string());
    if plan.has_network {
        lines.push("(allow system-socket)".to_string());
        lines.push("(allow network-outbound (remote ip))".to_string());
        lines.push("(allow network-inbound network-bind (local ip))".to_string());
        lines.push("(allow network-outbound (literal \"/private/var/run/mDNSResponder\"))".to_string());
        lines.push("(allow mach-lookup (global-name \"com.apple.trustd.agent\"))".to_string());
    }
    Ok(lines.join("\n") + "\n")
}

fn rule(what: &str, which: impl IntoIterator<Item = String>) -> String {
    format!("({what}{})", which.into_iter().map(|one| format!("\n    {one}")).collect::<String>())
}

fn all<'a>(kind: &str, paths: impl IntoIterator<Item = &'a Path>) -> Result<Vec<String>, String> {
    paths.into_iter().map(|path| Ok(format!("({kind} \"{}\")", plain(path)?))).collect()
}

/// A path that stands between quotes as it is.
fn plain(path: &Path) -> Result<&str, String> {
    let text = path.to_str().filter(|text| !text.contains(['"', '\\']) && !text.contains(char::is_control));
    text.ok_or_else(|| {
        let shown = path.display();
        format!("the path {shown:?} has a quote, a backslash or what is no letter, which a box here can't name")
    })
}

/// The stage in the box: `words` are those after its own word. It says that the box is closed and becomes the command;
/// comes back only with what went wrong.
pub(crate) fn run(words: &[OsString]) -> String {
    let [dashes, program, arguments @ ..] = words else { return "a stage lacks words".to_string() };
    if dashes != "--" {
        return "a stage has other words".to_string();
    }
    let bounds = [(Resource::RLIMIT_CORE, 0), (Resource::RLIMIT_FSIZE, limits::BOX_FILE_BYTES)];
    for (what, most) in bounds {
        if let Err(error) = setrlimit(what, most, most) {
            return format!("a limit can't be set ({})", error.desc());
        }
    }
    let mut out = std::io::stdout();
    if let Err(error) = out.write_all(threshold::OPEN).and_then(|()| out.flush()) {
        return error.to_string();
    }
    let error = Command::new(program).args(arguments).exec();
    format!("{} can't be started ({error})", program.display())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn plan<'a>(workspace: &'a str, kept: &'a [PathBuf]) -> Plan<'a> {
        Plan {
            program: Path::new("/opt/tiller/bin/tiller"),
            workspace: Path::new(workspace),
            is_writable: true,
            has_network: false,
            readable: &[],
            writable: &[],
            kept,
            private: Path::new("/private/var/folders/xy/T/.tmp1"),
        }
    }

    /// Whether parentheses and quotes of a profile come in pairs.
    fn is_balanced(profile: &str) -> bool {
        let mut depth = 0_i32;
        let mut is_quoted = false;
        for one in profile.chars() {
            match one {
                '"' => is_quoted = !is_quoted,
                '(' if !is_quoted => depth += 1,
                ')' if !is_quoted => depth -= 1,
                _ => {}
            }
            if depth < 0 {
                return false;
            }
        }
        depth == 0 && !is_quoted
    }

    #[test]
    fn profiles() {
        let kept = [PathBuf::from("/Users/me/my work (1)/sub/.git/hooks"), "/Users/me/my work (1)/.git/config".into()];
        let (readable, writable) = ([PathBuf::from("/Users/me/.cargo")], [PathBuf::from("/Users/me/.cache/x")]);
        let usual = plan("/Users/me/my work (1)", &kept);
        let reading = Plan { is_writable: false, ..plan("/Users/me/w", &[]) };
        let network = Plan { has_network: true, readable: &readable, writable: &writable, ..plan("/Users/me/w", &[]) };
        for (name, plan) in [("usual", usual), ("reading", reading), ("network", network)] {
            let profile = profile(&plan).unwrap();
            assert!(is_balanced(&profile), "{profile}");
            insta::assert_snapshot!(format!("seatbelt_{name}"), profile);
        }
    }

    #[test]
    fn paths_that_could_say_more_are_refused() {
        for path in ["/w\") (allow default) (\"", "/w\\", "/w\n(allow default)", "/w\u{1b}"] {
            let why = profile(&plan(path, &[])).unwrap_err();
            assert!(why.ends_with("which a box here can't name") && !why.contains('\n'), "{why}");
            let kept = [Path::new("/w").join(path.trim_start_matches('/'))];
            assert!(profile(&plan("/w", &kept)).is_err());
        }
        assert!(profile(&plan("/wörk; (deny) 'x' #|", &[])).is_ok_and(|profile| is_balanced(&profile)));
    }
}
