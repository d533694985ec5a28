//! Which files can be put back as they were before calls wrote them, in which order (docs/ENGINE.md §15). What is on the
//! disk is handed in; nothing is looked at here.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::domain::lineage::Deed;
use crate::domain::restoring::Restore;
use crate::domain::restoring::There;
use crate::domain::restoring::Way;

/// What can be done about each call that wrote a file, the newest first: what an older call left shows only when what
/// was written over it is gone. `there` says what is at each path now, `kept` which contents are kept, by SHA-256.
pub fn restores(deeds: &[Deed], there: &BTreeMap<String, There>, kept: &BTreeSet<String>) -> Vec<Restore> {
    let mut there = there.clone();
    let mut found = Vec::new();
    for deed in deeds.iter().rev() {
        let Some(write) = &deed.write else { continue };
        let before = There::of(write.before.as_deref());
        let now = there.get(&write.path).cloned().unwrap_or(There::Nothing);
        let way = match (&now, &write.before) {
            (There::Other(why), _) => Way::Not(why.clone()),
            (now, _) if *now == before => Way::AsBefore,
            (There::Nothing, _) => Way::Not("the file is gone".to_string()),
            (There::Content(hash), _) if *hash != write.after => Way::Not("it is not as the call left it".to_string()),
            (There::Content(_), None) => Way::Remove,
            (There::Content(_), Some(hash)) if kept.contains(hash) => Way::PutBack,
            (There::Content(_), Some(_)) => Way::Not("what it held before was not kept".to_string()),
        };
        if matches!(way, Way::PutBack | Way::Remove) {
            there.insert(write.path.clone(), before);
        }
        found.push(Restore { call: deed.call, write: write.clone(), way });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::CallId;
    use crate::domain::tool::FileWrite;

    /// Calls as `before>after`, the oldest first, all on one file; `-` is no file. What is there, what is kept; and
    /// what follows, the newest first.
    fn check(calls: &str, now: &str, kept: &str, wanted: &str) {
        let hash = |text: &str| (text != "-").then(|| text.to_string());
        let deeds: Vec<Deed> = (1..)
            .zip(calls.split(' '))
            .map(|(number, call)| {
                let (before, after) = call.split_once('>').unwrap_or((call, call));
                let write = FileWrite { path: "p".to_string(), before: hash(before), after: after.to_string() };
                let (tool, title) = ("write_file".to_string(), String::new());
                Deed { call: CallId(number), tool, title, outcome: None, write: Some(write) }
            })
            .collect();
        let now =
            if now == "?" { There::Other("a folder is there".to_string()) } else { There::of(hash(now).as_deref()) };
        let kept = kept.split(' ').map(str::to_string).collect();
        let found = restores(&deeds, &BTreeMap::from([("p".to_string(), now)]), &kept);
        let told: Vec<String> = found
            .iter()
            .map(|one| match &one.way {
                Way::PutBack => format!("{} back", one.call),
                Way::Remove => format!("{} remove", one.call),
                Way::AsBefore => format!("{} as before", one.call),
                Way::Not(why) => format!("{} not: {why}", one.call),
            })
            .collect();
        assert_eq!(told.join(", "), wanted, "{calls}, now {now:?}", now = deeds.len());
    }

    #[test]
    fn files_go_back_call_by_call_the_newest_first() {
        check("a>b", "b", "a", "c1 back");
        check("a>b b>c", "c", "a b", "c2 back, c1 back");
        check("->a a>b", "b", "a", "c2 back, c1 remove");
        check("a>b b>a", "a", "a b", "c2 back, c1 back");
        check("a>b b>c", "b", "a b", "c2 as before, c1 back");
        check("a>b b>c", "a", "a b", "c2 not: it is not as the call left it, c1 as before");
        check("a>b b>c", "c", "a", "c2 not: what it held before was not kept, c1 not: it is not as the call left it");
    }

    #[test]
    fn what_is_not_as_a_call_left_it_stays() {
        check("a>b", "x", "a", "c1 not: it is not as the call left it");
        check("a>b", "-", "a", "c1 not: the file is gone");
        check("a>b", "b", "", "c1 not: what it held before was not kept");
        check("a>b", "?", "a", "c1 not: a folder is there");
        check("->b", "-", "", "c1 as before");
        check("->b", "x", "", "c1 not: it is not as the call left it");
    }
}
