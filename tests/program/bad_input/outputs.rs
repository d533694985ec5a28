//! What models and tools give: broken, unknown, endless, binary. The run goes on, or parks and says why.

use std::fs;

use crate::program::scripts::SHORT;
use crate::program::scripts::shell;
use crate::program::stage::files;
use crate::real::Said;
use crate::real::Stage;

/// A script that plans and then asks for these calls, step by step, and claims.
fn asking(steps: &[&str]) -> String {
    let (plan, claim) = SHORT.split_at(SHORT.rfind("[[step]]").unwrap());
    let all: String = steps
        .iter()
        .enumerate()
        .map(|(number, calls)| format!("[[step]]\nname = \"s{number}\"\ncalls = [ {calls} ]\n"))
        .collect();
    format!("{plan}{all}{claim}")
}

#[test]
fn broken_and_unknown_calls_are_told_to_the_model() {
    let steps = [
        r#"{ tool = "shell", raw = "{broken json" }"#,
        r#"{ tool = "list_dir", args = { path = "." } }"#,
        r#"{ tool = "lits_dir", args = {} }"#,
        r#"{ tool = "list_dir", args = { path = "." , depth = 2 } }"#,
        r#"{ tool = "read_file", raw = "[]" }, { tool = "read_file", raw = "" }, { tool = "read_file", raw = "null" }"#,
    ];
    let told = Stage::new().run(&asking(&steps));
    told.check(0, &["[call c2] not run", "[call c4] not run", "the nearest are list_dir", "[completed]"]);
    let nested = format!("{{ tool = \"list_dir\", raw = '{}' }}", "[".repeat(20_000));
    Stage::new().run(&asking(&[&nested])).check(0, &["[call c2] not run", "[completed]"]);
}

#[test]
fn three_broken_replies_in_a_row_park() {
    let stage = Stage::new();
    let told = stage.run(&asking(&[r#"{ tool = "shell", raw = "{" }"#; 4]));
    told.check(14, &["[parked] model output unusable", "what to do: resume to try again", "tiller resume"]);
    let id = stage.ids()[0].clone();
    // While it is parked its plan can be changed from the command line; what does not fit is refused.
    let plan = |words: &[&str]| stage.ask(&[&["plan", id.as_str()], words].concat());
    plan(&["add", "one", "more"]).check(0, &["recorded"]);
    let refused = plan(&["done", "zz"]);
    assert!(refused.code != 0 && refused.err.contains("there is no todo zz; the plan was not changed"), "{refused}");
    plan(&[]).check(0, &["t1: one more"]);
    plan(&["drop", "t1", "no time"]).check(0, &["recorded"]);
    stage.ask(&["resume", &id, "--plain"]).check(0, &["[completed]"]);
}

#[test]
fn endless_text_is_cut() {
    let stage = Stage::new();
    let script = format!("[[step]]\nname = \"talk\"\ntext = \"- la\\n\"\nrepeat_text = 3000000\n{SHORT}");
    let told = stage.run(&script);
    assert!([0, 14].contains(&told.code), "{}", told.code);
    assert!(told.out.len() < 8_000_000, "{} bytes", told.out.len());
    let kept: usize = files(&stage.path("state")).iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(kept < 16_000_000, "{kept} bytes");
    assert!(told.out.contains("[parked]") || told.out.contains("[completed]"));
}

#[test]
fn text_in_circles_is_broken_off() {
    let stage = Stage::new();
    let script = format!("[[step]]\nname = \"talk\"\ntext = \"la la \"\nrepeat_text = 3000000\n{SHORT}");
    let told = stage.run(&script);
    told.check(
        14,
        &["the reply went in circles and was broken off", "[model] m1 asked again", "model output unusable"],
    );
    assert!(told.out.len() < 20_000, "{} bytes", told.out.len());
}

/// Runs a line, allowed, and gives what was said from then on.
fn allowed(stage: &Stage, line: &str) -> Said {
    stage.run(&shell(line)).check(10, &["tiller approve"]);
    stage.allow();
    let id = stage.ids()[0].clone();
    let told = stage.ask(&["resume", &id, "--plain"]);
    told.check(0, &["[call c2] done", "[completed]"]);
    assert!(told.out.len() < 100_000, "{} bytes were printed", told.out.len());
    let kept: usize = files(&stage.path("state")).iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(kept < 8_000_000, "{kept} bytes were kept");
    told
}

#[test]
fn binary_output() {
    let told =
        allowed(&Stage::new(), "printf '\\033[2J\\033]0;owned\\007\\000\\377\\376'; head -c 300000 /dev/urandom");
    let controls = |text: &str| text.chars().any(|one| one.is_control() && one != '\n');
    assert!(!controls(&told.out), "{:?}", &told.out[..told.out.len().min(2_000)]);
}

#[test]
fn one_line_of_a_hundred_megabytes_is_ended() {
    let stage = Stage::new();
    stage.run(&shell("head -c 100000000 /dev/zero | tr '\\0' x")).check(10, &[]);
    stage.allow();
    let told = stage.ask(&["resume", &stage.ids()[0], "--plain"]);
    told.check(0, &["[call c2]", "[completed]"]);
    assert!(told.out.len() < 100_000, "{} bytes were printed", told.out.len());
}

#[test]
fn endless_output_is_ended() {
    let stage = Stage::new();
    stage.run(&shell("yes")).check(10, &[]);
    stage.allow();
    let told = stage.ask(&["resume", &stage.ids()[0], "--plain"]);
    told.check(0, &["[call c2]", "[completed]"]);
    assert!(told.out.len() < 100_000, "{} bytes were printed", told.out.len());
}

#[test]
fn a_script_that_is_gone() {
    let stage = Stage::new();
    stage.run(&shell("true")).check(10, &[]);
    stage.allow();
    let script = stage.path("script.toml");
    let text = fs::read_to_string(&script).unwrap();
    fs::remove_file(&script).unwrap();
    let id = stage.ids()[0].clone();
    let told = stage.ask(&["resume", &id, "--plain"]);
    told.check(13, &["[parked] model configuration", "script.toml", "No such file", "tiller resume"]);
    stage.ask(&["show", &id]).check(0, &["script.toml"]);
    fs::write(&script, text).unwrap();
    stage.ask(&["resume", &id, "--plain"]).check(0, &["[completed]"]);
}

#[test]
fn a_workspace_that_is_gone() {
    let stage = Stage::new();
    fs::create_dir(stage.path("other")).unwrap();
    let other = stage.path("other").display().to_string();
    let model = stage.model(&shell("echo here > trace.txt"));
    stage.ask(&["run", "g", "--plain", "--model", &model, "--workspace", &other, "--check", "true"]).check(10, &[]);
    stage.allow();
    fs::remove_dir(&other).unwrap();
    let id = stage.ids()[0].clone();
    let told = stage.ask(&["resume", &id, "--plain"]);
    told.check(14, &["was not opened", "its folder,", "is not here", "put that folder there"]);
    assert!(!stage.path("work/trace.txt").exists() && !stage.path("other").exists());
    fs::create_dir(&other).unwrap();
    for _ in 0..3 {
        stage.allow();
        stage.ask(&["resume", &id, "--plain"]);
    }
    assert_eq!(stage.show()["summary"]["status"]["completed"], "verified");
}
