//! Whether a file that configures tiller is the operator's own (docs/SAFETY.md, R34). Others may read it, since it holds
//! no secret; whoever could write it could have approved anything.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

/// Errors, with what is wrong and what to type, when somebody else could have written this file: it, its folder, or what
/// they lead to where they are links. What is not there is nobody's.
pub fn check(path: &Path) -> Result<(), String> {
    let real = path.canonicalize().ok();
    let folders = [path.parent().map(Path::to_path_buf), real.as_deref().and_then(Path::parent).map(PathBuf::from)];
    folders.into_iter().flatten().chain(real).try_for_each(|place| check_one(&place))
}

fn check_one(place: &Path) -> Result<(), String> {
    let Ok(facts) = place.metadata() else { return Ok(()) };
    let (user, shown) = (nix::unistd::geteuid().as_raw(), place.display());
    // What root put there, root can put anywhere.
    if facts.uid() != user && facts.uid() != 0 {
        let owner = facts.uid();
        return Err(format!("{shown} belongs to user {owner} and not to you; run `chown {user} {shown}`"));
    }
    if facts.mode() & 0o022 != 0 {
        let mode = facts.mode() & 0o777;
        return Err(format!("other users can write {shown} (mode {mode:o}); run `chmod go-w {shown}`"));
    }
    Ok(())
}
