//! What the model says in one life, by seed: told by a scripted model, or by a provider that sends bills.
//!
//! Every call that changes something carries a mark of its own, so that its real executions can be counted in files.

use serde_json::Value;
use serde_json::json;

use crate::chance::Chance;
use crate::real::Stage;

/// One reply.
pub struct Step {
    pub text: String,
    pub calls: Vec<(&'static str, Value)>,
    /// How the first attempt at it fails, in a script.
    pub fails: Option<&'static str>,
}

/// The file in which shell calls leave their marks, a line for each execution.
pub const TRACES: &str = "traces.txt";
/// The file in which edits leave theirs.
pub const EDITED: &str = "edited.txt";

/// The name of the model that speaks this script.
pub fn model(stage: &Stage, script: &str) -> String {
    format!("scripted/{}", stage.write("script.toml", script).display())
}

pub fn steps(chance: &mut Chance) -> Vec<Step> {
    let todos = |status: &str| json!([{ "id": "a", "title": "work", "status": status }]);
    let plan = ("update_plan", json!({ "todos": todos("in_progress") }));
    let mut steps = vec![Step { text: "A plan.".to_string(), calls: vec![plan], fails: None }];
    for step in 0..2 + chance.below(3) {
        let calls = (0..1 + chance.below(3)).map(|number| call(&format!("m{step}-{number}m"), chance)).collect();
        let fails = chance.percent(15).then(|| chance.pick(&["overloaded", "stream_broken"]));
        steps.push(Step { text: format!("Step {step}, with some words around it."), calls, fails });
    }
    let done = ("update_plan", json!({ "mode": "patch", "todos": todos("done") }));
    let finish = ("finish", json!({ "summary": "all done" }));
    steps.push(Step { text: "Done.".to_string(), calls: vec![done, finish], fails: None });
    steps
}

/// A life with something of everything, the same each time.
pub fn fixed() -> Vec<Step> {
    let todos = |status: &str| json!([{ "id": "a", "title": "work", "status": status }]);
    let shell = |mark: &str| ("shell", json!({ "command": format!("echo {mark} >> {TRACES}; echo left; sleep 0.01") }));
    let edit = json!({ "path": EDITED, "old_text": "marks:", "new_text": "marks: m1-1m" });
    let steps = [
        ("A plan.", vec![("update_plan", json!({ "todos": todos("in_progress") }))]),
        ("Traces.", vec![shell("m0-0m"), ("write_file", json!({ "path": "m0-1m.txt", "content": "m0-1m\n" }))]),
        (
            "A look and an edit.",
            vec![
                ("read_file", json!({ "path": "m0-1m.txt" })),
                ("list_dir", json!({ "path": "." })),
                ("edit_file", edit),
            ],
        ),
        ("A question.", vec![("ask_operator", json!({ "question": "Is it right?" })), shell("m2-1m")]),
        (
            "Done.",
            vec![
                ("update_plan", json!({ "mode": "patch", "todos": todos("done") })),
                ("finish", json!({ "summary": "all done" })),
            ],
        ),
    ];
    steps.map(|(text, calls)| Step { text: text.to_string(), calls, fails: None }).into()
}

fn call(mark: &str, chance: &mut Chance) -> (&'static str, Value) {
    match chance.below(10) {
        0..=4 => {
            // The mark is left at once; the call goes on for a while after its first words.
            let wait = chance.below(4) * 8;
            (
                "shell",
                json!({ "command": format!("echo {mark} >> {TRACES}; echo left a mark; sleep 0.0{wait:02}; echo end") }),
            )
        }
        5 => (
            "write_file",
            json!({ "path": format!("{mark}.txt"), "content": format!("{mark}\n").repeat(1 + chance.below(900) as usize) }),
        ),
        6 => ("edit_file", json!({ "path": EDITED, "old_text": "marks:", "new_text": format!("marks: {mark}") })),
        7 => ("read_file", json!({ "path": EDITED })),
        8 => ("list_dir", json!({ "path": "." })),
        _ => ("ask_operator", json!({ "question": format!("Is {mark} right?") })),
    }
}

/// The steps as a script (docs/SCRIPT.md).
pub fn toml(steps: &[Step]) -> String {
    let mut text = "title = \"marks\"\nchunk_ms = 1\n[price]\ninput = 3000000\noutput = 15000000\n".to_string();
    for (number, step) in steps.iter().enumerate() {
        text += &format!("\n[[step]]\nname = \"s{number}\"\ntext = {}\n", json!(step.text));
        if let Some(class) = step.fails {
            text +=
                &format!("errors = [ {{ class = \"{class}\", text = \"x\", retry_after_ms = 5, after_bytes = 4 }} ]\n");
        }
        let calls: Vec<String> = step
            .calls
            .iter()
            .map(|(tool, args)| format!("{{ tool = \"{tool}\", raw = {} }}", json!(args.to_string())))
            .collect();
        text += &format!("calls = [\n  {},\n]\n", calls.join(",\n  "));
    }
    text
}
