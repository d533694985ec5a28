//! The price in attention: of the lines that coding agents write all day and that only read, how many run unasked where
//! they are confined. None that changes something may be among them. docs/SAFETY.md has the figure.

use serde_json::Value;

use crate::lines::stage::Stage;

#[test]
fn most_of_what_only_reads_runs_unasked_and_nothing_else_does() {
    let stage = Stage::new();
    let workspace = stage.workspace.display().to_string();
    let (mut reads, mut unasked, mut changes) = (0, 0, 0);
    let mut asked = Vec::new();
    for line in include_str!("../fixtures/lines/agent.jsonl").lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        let text = entry["line"].as_str().unwrap();
        let judged = stage.judged(&text.replace("WS", &workspace));
        match (entry["effect"].as_str().unwrap(), judged) {
            ("reads", Ok(())) => (reads, unasked) = (reads + 1, unasked + 1),
            ("reads", Err(why)) => {
                reads += 1;
                asked.push(format!("{text}   # {why}"));
            }
            ("changes", Err(_)) => changes += 1,
            ("changes", Ok(())) => panic!("{text} runs unasked"),
            (other, _) => panic!("{text}: {other}"),
        }
    }
    assert!(reads + changes >= 500, "{reads} {changes}");
    let told = format!("{unasked} of {reads} lines that only read run unasked ({} %)", unasked * 100 / reads);
    assert!(unasked * 2 >= reads, "{told}; asked:\n{}", asked.join("\n"));
    let page = include_str!("../../docs/SAFETY.md");
    assert!(page.contains(&told), "docs/SAFETY.md should say: {told}, and none of {changes} that do more");
    assert!(page.contains(&format!("none of {changes} that do more")), "{changes}");
}
