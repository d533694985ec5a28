//! A plan in mere text (docs/ENGINE.md §6.5): replies in, the plan that they give out.

use tiller::domain::plan::Plan;
use tiller::domain::plan::PlanSource;
use tiller::policy::plan_text;
use tiller::policy::planning::propose;

/// The plan that a text gives, or `nothing`.
fn check_text(text: &str, expected: &[&str]) {
    let got = match plan_text::read(text) {
        None => "nothing".to_string(),
        Some(proposal) => match propose(&Plan::seed("g"), &proposal, PlanSource::Text) {
            Ok(accepted) => {
                assert_eq!(accepted.plan.source, PlanSource::Text);
                accepted.plan.listing()
            }
            Err(error) => format!("error: {error}"),
        },
    };
    assert_eq!(got, expected.join("\n"), "{text}");
}

#[test]
fn json_in_text_is_read_first() {
    let two = ["- [pending] t1: a", "- [done] t2: b"];
    check_text(r#"Here: {"todos":[{"title":"a","status":"pending"},{"title":"b","status":"done"}]} ok"#, &two);
    check_text(r#"{"note":"a } in a \" string","plan":[{"step":"a"},{"step":"b","status":"completed"}]}"#, &two);
    check_text(
        r#"```json
{"steps":[{"content":"a","status":"todo","id":1},{"content":"b","status":"x","id":2}]}
```"#,
        &two,
    );
    check_text(r#"an [aside] and {"answer": {"tasks": ["a", "b"]}}"#, &["- [pending] t1: a", "- [pending] t2: b"]);
    check_text(r#"I will ["a", {"task": "b"}] - [ ] not this"#, &["- [pending] t1: a", "- [pending] t2: b"]);
    check_text(r#"{"plan":[{"title":"a","steps":["b"]}]}"#, &["- [pending] t1: a", "  - [pending] t2: b"]);
    for none in [r#"{"todos":[]}"#, "[1, 2]", "[]", r#"{"todos":"a"}"#, r#"{"todos":[{"x":"a"}]}"#, r#"{"todos":["a""#]
    {
        check_text(none, &["nothing"]);
    }
    check_text(
        r#"{"todos":[{"title":"a","status":"soonish"}]}"#,
        &[
            "error: /todos/0/status: \"soonish\" is not one of pending, in_progress, done, blocked, dropped; the plan is unchanged",
        ],
    );
}

#[test]
fn a_plan_block_is_read_next() {
    check_text(
        "- [ ] not this\n<plan>\nfirst:\n1. a\n   - b\n2. c\n</plan>\n3. nor this",
        &["- [pending] t1: a", "  - [pending] t2: b", "- [pending] t3: c"],
    );
    check_text("<PLAN>only one thing: \n- a\nwords and\nmore words\n</Plan>", &["- [pending] t1: a"]);
    check_text("<plan>no list</plan>", &["nothing"]);
    // An open block is a line that names a plan.
    check_text("<plan>\n1. a", &["- [pending] t1: a"]);
}

#[test]
fn s_02_a_checklist_with_nested_items_gives_children_a_parent() {
    let prose = "I will first look around, then mend it.\n\n- [x] read the code\n- [ ] mend the parser\n  - [ ] find the bug\n  * [ ] write the fix\n      - [ ] deep down\n- [ ] run the tests\n1. not this\n\nThat is all.";
    check_text(
        prose,
        &[
            "- [done] t1: read the code",
            "- [pending] t2: mend the parser",
            "  - [pending] t3: find the bug",
            "  - [pending] t4: write the fix",
            "  - [pending] t5: write the fix › deep down",
            "- [pending] t6: run the tests",
        ],
    );
}

#[test]
fn a_list_counts_under_a_heading_or_when_it_is_most_of_the_text() {
    let two = ["- [pending] t1: a", "- [pending] t2: b"];
    check_text("Some words.\n- an aside\n\n## My Plan\n\n1. a\n2) b\n\nMore words.\n3. not this", &two);
    check_text("The steps are:\n\n* a\n  which takes long\n\n+ b\nwords\nwords\nwords\nwords", &two);
    check_text("1. a\n2. b\nwords\nwords", &two);
    check_text("  - a\n  - b", &two);
    check_text("\t- a\n\t\t- b", &["- [pending] t1: a", "  - [pending] t2: b"]);
    check_text("1. a\n2. b\nwords\nwords\nwords", &["nothing"]);
    check_text("- a", &["nothing"]);
    check_text("My plan is good.\nIt is a planet.\n- a\nwords\nwords", &["nothing"]);
    check_text("just words", &["nothing"]);
    check_text("", &["nothing"]);
}

#[test]
fn only_a_line_that_begins_so_announces_a_plan() {
    assert!(plan_text::is_announced("words\n  PLAN: as follows"));
    assert!(!plan_text::is_announced("the PLAN: is"));
    assert!(!plan_text::is_announced(&format!("{}\nPLAN:", "x".repeat(64 * 1024))));
    let late = format!("{}\n- [ ] a", "x".repeat(64 * 1024));
    check_text(&late, &["nothing"]);
}

/// Texts made of what plans are made of, and of anything else, cut anywhere.
#[test]
fn any_text_gives_a_plan_an_error_or_nothing_and_always_the_same() {
    let parts = [
        "- ",
        "* ",
        "[ ] ",
        "[x] ",
        "1. ",
        "22) ",
        "\n",
        "\n  ",
        "\n\t",
        "  ",
        "plan:",
        "PLAN:",
        "<plan>",
        "</plan>",
        "{",
        "}",
        "[",
        "]",
        "\"",
        "\\",
        "\"todos\":",
        "\"title\":\"a\"",
        ",",
        "a",
        "é",
        "\u{0}",
        "\u{202e}",
        "😀",
        "steps",
        "null",
        "9",
    ];
    let mut state = 0x2545_F491_4F6C_DD1Du64;
    let mut draw = |most: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % most as u64) as usize
    };
    let mut found = 0;
    for _ in 0..4_000 {
        let text: String = (0..draw(60)).map(|_| parts[draw(parts.len())]).collect();
        let cut = text.len() - draw(text.len() + 1);
        // Bytes cut in the middle of a character come as a decoder gives them.
        let cut = String::from_utf8_lossy(&text.as_bytes()[..cut]).into_owned();
        let proposal = plan_text::read(&cut);
        assert_eq!(proposal, plan_text::read(&cut));
        if let Some(Ok(accepted)) = proposal.map(|found| propose(&Plan::seed("g"), &found, PlanSource::Text)) {
            found += 1;
            assert!(!accepted.plan.todos.is_empty());
            assert!(accepted.plan.todos.iter().all(|todo| !todo.title.is_empty()));
        }
    }
    assert!(found > 300, "{found}");
    let whole = "<plan>\n- [x] é\n\t- {\"todos\": [\"a\\\"\", {\"title\": \"b\"}]}\n</plan>";
    for cut in 0..=whole.len() {
        plan_text::read(&String::from_utf8_lossy(&whole.as_bytes()[..cut]));
    }
}

#[test]
fn hostile_lengths_and_depths_take_no_time() {
    let begun = std::time::Instant::now();
    for one in ["[", "{", "{\"todos\":[", "\"", "- [ ] a\n", "[\"", "<plan>", "PLAN: - a\n "] {
        plan_text::read(&one.repeat(64 * 1024));
    }
    let stairs: String = (0..360).map(|depth| format!("{}- a\n", " ".repeat(2 * depth))).collect();
    plan_text::read(&stairs);
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
}
