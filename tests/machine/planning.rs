//! The plan contract, rule by rule and edge by edge (docs/ENGINE.md §6): proposals in, the plan with its corrections
//! out. What follows for a run is told in `tests/machine/planning.txt`.

use serde_json::json;
use tiller::domain::plan::Plan;
use tiller::domain::plan::TodoId;
use tiller::domain::plan::TodoStatus;
use tiller::policy::planning::accept;

/// Applies one proposal after another; gives the listing and the corrections, or the error, of the last.
fn play(proposals: &[&str]) -> String {
    let mut plan = Plan::seed("the goal");
    let mut said = String::new();
    for proposal in proposals {
        said = match accept(&plan, proposal) {
            Ok(accepted) => {
                assert_eq!(accept(&plan, proposal).as_ref(), Ok(&accepted), "the same every time");
                plan = accepted.plan.clone();
                let corrections: String = accepted.corrections.iter().map(|line| format!("\n! {line}")).collect();
                format!("{}{corrections}", accepted.plan.listing())
            }
            Err(error) => format!("error: {error}"),
        };
    }
    said
}

fn check(proposals: &[&str], expected: &[&str]) {
    assert_eq!(play(proposals), expected.join("\n"), "{proposals:?}");
}

/// The title that a raw one becomes, and how it is corrected.
fn check_title(raw: &str, expected: &str) {
    let proposal = json!({"todos": [{"title": raw, "status": "pending"}]}).to_string();
    let accepted = accept(&Plan::seed("g"), &proposal).unwrap();
    assert_eq!(accepted.plan.todos[0].title, expected, "{raw:?}");
}

const FIRST: &str = r#"{"todos":[{"title":"look","status":"done"},{"id":"fix","title":"fix it","status":"in_progress"},{"title":"test","status":"pending"}]}"#;

// Rule 1.

#[test]
fn titles_are_nfc_without_controls_and_with_single_spaces() {
    check_title("cafe\u{301}", "caf\u{e9}");
    check_title("a\u{0}b\u{1b}[31mc\u{7f}\u{9b}d", "ab[31mcd");
    check_title("  a \t b\r\n\u{a0}c  ", "a b c");
    check_title("e\u{7}\u{301}", "\u{e9}");
}

#[test]
fn markers_and_numbers_are_taken_off_and_quantities_are_not() {
    for raw in
        ["- x", "* x", "+ x", "• x", "- [ ] x", "* [x] x", "[X] x", "1. x", "12) x", "1.2. x", "- 3. [ ] x", "1. 2. x"]
    {
        check_title(raw, "x");
    }
    for raw in ["2024. x", "3 apples", "1.5 litres", "-x", "*x*", "[a] x", "v1. x"] {
        check_title(raw, raw);
    }
    check(
        &[r#"{"todos":[{"title":"2. look","status":"pending"}]}"#],
        &["- [pending] t1: look", "! \"2. look\" is called \"look\""],
    );
    check(
        &[r#"{"todos":[{"title":"- ","status":"pending"}]}"#],
        &["error: /todos/0/title: a todo needs a title; the plan is unchanged"],
    );
}

#[test]
fn long_words_are_cut_by_characters() {
    let long = json!({"todos": [{"title": "é".repeat(201), "status": "blocked", "note": "n".repeat(501),
        "acceptance": "a".repeat(301), "depends_on": vec!["t9"; 9]}]});
    let accepted = accept(&Plan::seed("g"), &long.to_string()).unwrap();
    let todo = &accepted.plan.todos[0];
    assert_eq!((todo.title.chars().count(), todo.note.len(), todo.acceptance.len()), (200, 500, 300));
    let told = accepted.corrections.join("\n");
    for words in ["the title of", "the note of", "the acceptance of", "depends on the first 8", "there is no such todo"]
    {
        assert!(told.contains(words), "{words}: {told}");
    }
}

// Rule 2.

#[test]
fn status_words_of_other_habits_are_understood() {
    let words = [
        ("done", "completed complete finished x done Done COMPLETED"),
        ("in_progress", "doing active wip started in_progress in-progress"),
        ("pending", "todo open not_started pending not-started"),
        ("dropped", "skipped cancelled wontfix dropped"),
        ("blocked", "stuck waiting blocked"),
    ];
    for (status, words) in words {
        for word in words.split(' ') {
            let proposal = json!({"todos": [{"title": "a", "status": word, "note": "why"}]}).to_string();
            let accepted = accept(&Plan::seed("g"), &proposal).unwrap();
            assert_eq!(accepted.plan.todos[0].status.word(), status, "{word}");
            let correction = format!("{word:?} of \"a\" means {status}");
            let expected = if word == status { Vec::new() } else { vec![correction] };
            assert_eq!(accepted.corrections, expected);
        }
    }
}

#[test]
fn any_other_status_is_an_error_with_its_place() {
    for (wrong, shown) in [(json!("maybe"), "\"maybe\""), (json!(3), "3"), (json!(true), "true"), (json!(""), "\"\"")] {
        let proposal =
            json!({"todos": [{"title": "a", "status": "todo", "children": [{"title": "b", "status": wrong}]}]});
        check(
            &[&proposal.to_string()],
            &[&format!(
                "error: /todos/0/children/0/status: {shown} is not one of pending, in_progress, done, blocked, dropped; the \
             plan is unchanged"
            )],
        );
    }
    check(&[r#"{"todos":["a"]}"#], &["- [pending] t1: a", "! \"a\" had no status; it is pending"]);
}

// Rule 3.

#[test]
fn a_missing_id_is_that_of_the_title_or_a_new_one() {
    check(
        &[
            FIRST,
            r#"{"mode":"patch","todos":[{"title":"TEST","status":"in_progress"},{"title":"more","status":"pending"}]}"#,
        ],
        &[
            "- [done] t1: look",
            "- [in_progress] fix: fix it",
            "- [pending] t2: TEST",
            "- [pending] t3: more",
            "! t2 is pending: only one todo can be in progress",
        ],
    );
}

#[test]
fn a_number_is_never_given_twice() {
    let own = r#"{"todos":[{"id":"t7","title":"seven","status":"pending"},{"title":"a","status":"pending"}]}"#;
    check(&[own], &["- [pending] t7: seven", "- [pending] t8: a"]);
    let replaced = r#"{"todos":[{"title":"b","status":"pending"}]}"#;
    check(
        &[own, replaced],
        &["- [pending] t9: b", "- [dropped] t7: seven (removed by replace)", "- [dropped] t8: a (removed by replace)"],
    );
    // Not even when what had it was forgotten.
    let mut plan = accept(&Plan::seed("g"), own).unwrap().plan;
    for round in 0..60 {
        let two =
            format!(r#"{{"todos":[{{"title":"a{round}","status":"todo"}},{{"title":"b{round}","status":"todo"}}]}}"#);
        plan = accept(&plan, &two).unwrap().plan;
    }
    assert!(plan.todos.len() <= 80 && plan.find(&TodoId("t7".to_string())).is_none());
    assert_eq!(plan.todos[0].id.0, "t127");
    let huge = r#"{"todos":[{"id":"t4294967295","title":"x","status":"todo"},{"title":"y","status":"todo"}]}"#;
    assert_eq!(accept(&plan, huge).unwrap().plan.todos[1].id.0, "t129");
}

#[test]
fn what_is_no_id_is_replaced() {
    for bad in ["T1", "a b", "", "-a", "é", &"a".repeat(33)] {
        let proposal = json!({"todos": [{"id": bad, "title": "x", "status": "pending"}]}).to_string();
        let accepted = accept(&Plan::seed("g"), &proposal).unwrap();
        assert_eq!(accepted.plan.todos[0].id.0, "t1");
        assert!(accepted.corrections[0].contains("is not an id of a todo"), "{bad:?}");
    }
}

// Rule 4.

#[test]
fn s_03_an_id_twice_is_an_error_a_title_twice_is_merged() {
    let ids =
        r#"{"mode":"patch","todos":[{"id":"t2","title":"x","status":"done"},{"id":"t2","title":"y","status":"done"}]}"#;
    check(&[FIRST, ids], &["error: plan_duplicate_id: t2 is there twice; the plan is unchanged"]);
    let bad_ids = r#"{"todos":[{"id":"T 2","title":"x","status":"done"},{"id":"T 2","title":"y","status":"done"}]}"#;
    check(&[FIRST, bad_ids], &["error: plan_duplicate_id: T 2 is there twice; the plan is unchanged"]);
    let titles = r#"{"mode":"patch","todos":[{"title":"more","status":"todo"},{"title":"MORE","status":"done"}]}"#;
    check(
        &[FIRST, titles],
        &[
            "- [done] t1: look",
            "- [in_progress] fix: fix it",
            "- [pending] t2: test",
            "- [pending] t3: more",
            "! \"todo\" of \"more\" means pending",
            "! \"MORE\" was listed twice; the first one counts",
        ],
    );
}

#[test]
fn what_named_the_second_twin_names_the_first() {
    let twins = r#"{"todos":[{"title":"a","status":"pending"},{"id":"b","title":"A","status":"pending"},{"id":"c","title":"c","status":"pending","depends_on":["b"]},{"id":"d","title":"d","status":"pending","parent":"b"},{"id":"e","title":"a","status":"done"}]}"#;
    let plan = accept(&Plan::seed("g"), twins).unwrap().plan;
    assert_eq!(plan.listing(), "- [pending] b: a\n- [pending] c: c\n  - [pending] d: d");
    assert_eq!(plan.todos[1].depends_on, [TodoId("b".to_string())]);
    // The same words as parts of two things are two things.
    let parts = r#"{"todos":[{"title":"a","status":"pending","children":[{"title":"test","status":"pending"}]},{"title":"b","status":"pending","children":[{"title":"test","status":"pending"}]}]}"#;
    check(&[parts], &["- [pending] t1: a", "  - [pending] t2: test", "- [pending] t3: b", "  - [pending] t4: test"]);
}

// Rule 5.

#[test]
fn s_05_nesting_is_two_deep_and_always_mended_the_same_way() {
    let deep = r#"{"todos":[{"title":"a","status":"pending","children":[{"title":"b","status":"pending","children":[{"title":"c","status":"pending","children":[{"title":"d","status":"pending"}]}]}]}]}"#;
    check(
        &[deep],
        &[
            "- [pending] t1: a",
            "  - [pending] t2: b",
            "  - [pending] t3: b › c",
            "  - [pending] t4: b › c › d",
            "! t3 lay too deep; it is a part of t1 now",
            "! t4 lay too deep; it is a part of t1 now",
        ],
    );
    let lists = r#"{"todos":["a",["b",["c"]],"d"]}"#;
    assert!(
        play(&[lists])
            .starts_with("- [pending] t1: a\n  - [pending] t2: b\n  - [pending] t3: b › c\n- [pending] t4: d")
    );
    let named = r#"{"todos":[{"id":"a","title":"a","status":"pending"},{"id":"b","title":"b","status":"pending","parent":"a"},{"id":"c","title":"c","status":"pending","parent":"b"}]}"#;
    check(
        &[named],
        &[
            "- [pending] a: a",
            "  - [pending] b: b",
            "  - [pending] c: b › c",
            "! c lay too deep; it is a part of a now",
        ],
    );
}

// Rule 6.

#[test]
fn links_to_nothing_and_closing_links_are_dropped() {
    let circle = r#"{"todos":[{"id":"a","title":"a","status":"pending","depends_on":["b","b"]},{"id":"b","title":"b","status":"pending","depends_on":["c","zz"]},{"id":"c","title":"c","status":"pending","depends_on":["a","c"],"parent":"c"},{"id":"d","title":"d","status":"pending","parent":"nobody"}]}"#;
    let accepted = accept(&Plan::seed("g"), circle).unwrap();
    let needs = |place: usize| accepted.plan.todos[place].depends_on.iter().map(|id| id.0.as_str()).collect::<Vec<_>>();
    assert_eq!((needs(0), needs(1), needs(2)), (vec!["b"], vec!["c"], vec![]));
    assert_eq!(
        accepted.corrections,
        [
            "b does not depend on zz: there is no such todo",
            "c stands alone, not in c: that would be a circle",
            "c does not depend on a: that would be a circle",
            "c does not depend on c: that would be a circle",
            "d stands alone, not in nobody: there is no such todo",
        ]
    );
    let parents = r#"{"todos":[{"id":"a","title":"a","status":"pending","parent":"b"},{"id":"b","title":"b","status":"pending","parent":"a"}]}"#;
    check(
        &[parents],
        &["  - [pending] a: a", "- [pending] b: b", "! b stands alone, not in a: that would be a circle"],
    );
}

// Rule 7.

#[test]
fn of_several_in_progress_the_first_stays() {
    let three = r#"{"todos":[{"title":"a","status":"pending"},{"title":"b","status":"in_progress"},{"title":"c","status":"in_progress"},{"title":"d","status":"in_progress"}]}"#;
    check(
        &[three],
        &[
            "- [pending] t1: a",
            "- [in_progress] t2: b",
            "- [pending] t3: c",
            "- [pending] t4: d",
            "! t3 is pending: only one todo can be in progress",
            "! t4 is pending: only one todo can be in progress",
        ],
    );
}

// Rule 8.

fn many(count: usize) -> String {
    let one = |n| json!({"title": format!("a{n}"), "status": "pending"});
    json!({"todos": (0..count).map(one).collect::<Vec<_>>()}).to_string()
}

#[test]
fn s_04_too_many_and_none_change_nothing() {
    assert_eq!(play(&[&many(40)]).lines().count(), 40);
    check(&[&many(41)], &["error: plan_too_many: 41 todos, at most 40; the plan is unchanged"]);
    check(&[&many(900)], &["error: plan_too_many: 900 todos, at most 40; the plan is unchanged"]);
    let parts = json!({"todos": [{"title": "a", "status": "pending", "children": vec!["x"; 50]}]}).to_string();
    check(&[&parts], &["error: plan_too_many: 51 todos, at most 40; the plan is unchanged"]);
    let one_more = r#"{"mode":"patch","todos":[{"title":"more","status":"pending"}]}"#;
    check(&[&many(40), one_more], &["error: plan_too_many: 41 todos, at most 40; the plan is unchanged"]);
    check(&[r#"{"todos":[]}"#], &["error: plan_empty: the list of todos is empty; the plan is unchanged"]);
    check(
        &[FIRST, r#"{"todos":[[[]]]}"#],
        &["error: plan_would_erase: the list of todos is empty; the plan is unchanged"],
    );
    check(
        &[FIRST, r#"{"mode":"patch","todos":[]}"#],
        &["error: plan_empty: the list of todos is empty; the plan is unchanged"],
    );
}

// Transitions (§6.3).

#[test]
fn replace_drops_the_open_keeps_the_done_and_may_reorder() {
    check(
        &[FIRST, r#"{"todos":[{"title":"other","status":"in_progress"}]}"#],
        &[
            "- [done] t1: look",
            "- [in_progress] t3: other",
            "- [dropped] fix: fix it (removed by replace)",
            "- [dropped] t2: test (removed by replace)",
        ],
    );
    check(
        &[
            FIRST,
            r#"{"todos":[{"id":"t2","title":"test more","status":"pending"},{"id":"fix","title":"fix it","status":"in_progress"},{"id":"t1","title":"look","status":"done"}]}"#,
        ],
        &["- [pending] t2: test more", "- [in_progress] fix: fix it", "- [done] t1: look"],
    );
}

#[test]
fn a_patch_changes_what_it_names_and_nothing_else() {
    let nested = r#"{"todos":[{"id":"a","title":"a","status":"pending"},{"id":"b","title":"b","status":"pending","parent":"a","depends_on":["c"],"acceptance":"green"},{"id":"c","title":"c","status":"done"}]}"#;
    let patched = accept(
        &accept(&Plan::seed("g"), nested).unwrap().plan,
        r#"{"mode":"patch","todos":[{"id":"b","status":"in_progress"}]}"#,
    )
    .unwrap();
    let b = &patched.plan.todos[1];
    assert_eq!(patched.plan.listing(), "- [pending] a: a\n  - [in_progress] b: b [done when: green]\n- [done] c: c");
    assert_eq!((b.depends_on.len(), patched.corrections.len()), (1, 0));
    let freed = r#"{"mode":"patch","todos":[{"id":"b","title":"b","status":"pending","parent":"","depends_on":[]},{"id":"c","title":"see"}]}"#;
    check(&[nested, freed], &["- [pending] a: a", "- [pending] b: b [done when: green]", "- [done] c: see"]);
    check(
        &[nested, r#"{"mode":"patch","todos":[{"id":"zz","status":"done"}]}"#],
        &["error: there is no todo zz, and a new one needs a title; the plan is unchanged"],
    );
    check(
        &[nested, r#"{"mode":"append","todos":[]}"#],
        &["error: /mode: \"append\" is not one of replace, patch; the plan is unchanged"],
    );
}

#[test]
fn leaving_a_todo_needs_a_note_of_its_own() {
    let refused = |proposals: &[&str], id: &str, what: &str| {
        let error =
            format!("error: plan_note_missing: {id} is {what} without a note that says why; the plan is unchanged");
        check(proposals, &[&error]);
    };
    for status in ["pending", "in_progress", "blocked", "dropped"] {
        let again = format!(r#"{{"mode":"patch","todos":[{{"id":"t1","status":"{status}"}}]}}"#);
        refused(&[FIRST, &again], "t1", "reopened");
    }
    refused(&[FIRST, r#"{"mode":"patch","todos":[{"id":"t2","status":"dropped"}]}"#], "t2", "dropped");
    let blocked = r#"{"mode":"patch","todos":[{"id":"t2","status":"blocked","note":"no key"}]}"#;
    refused(
        &[FIRST, blocked, r#"{"mode":"patch","todos":[{"id":"t2","status":"dropped","note":" \n"}]}"#],
        "t2",
        "dropped",
    );
    // The note stays while the status does, and goes with it.
    let same = r#"{"mode":"patch","todos":[{"id":"t2","title":"try","status":"blocked"}]}"#;
    assert!(play(&[FIRST, blocked, same]).ends_with("- [blocked] t2: try (no key)"));
    let free = r#"{"mode":"patch","todos":[{"id":"t2","status":"pending"}]}"#;
    assert!(play(&[FIRST, blocked, free]).ends_with("- [pending] t2: test"));
    let reopened = r#"{"mode":"patch","todos":[{"id":"t1","status":"pending","note":"wrong file"}]}"#;
    check(
        &[FIRST, reopened],
        &[
            "- [pending] t1: look (wrong file)",
            "- [in_progress] fix: fix it",
            "- [pending] t2: test",
            "! t1 was done and is pending again",
        ],
    );
}

#[test]
fn reopening_is_backward_movement() {
    let before = accept(&Plan::seed("g"), FIRST).unwrap().plan;
    for status in ["pending", "in_progress", "blocked", "dropped"] {
        let again = format!(r#"{{"mode":"patch","todos":[{{"id":"t1","status":"{status}","note":"why"}}]}}"#);
        let after = accept(&before, &again).unwrap().plan;
        let movement = after.movement_since(&before);
        assert_eq!((movement.backward, movement.forward), (1, 0), "{status}");
        assert!(movement.is_structural());
    }
}

#[test]
fn done_before_what_it_needs_is_accepted_with_a_warning() {
    let early = r#"{"todos":[{"id":"a","title":"a","status":"done","depends_on":["b","c","d"]},{"id":"b","title":"b","status":"blocked","note":"n"},{"id":"c","title":"c","status":"dropped","note":"n"},{"id":"d","title":"d","status":"done"}]}"#;
    let accepted = accept(&Plan::seed("g"), early).unwrap();
    assert_eq!(accepted.plan.todos[0].status, TodoStatus::Done);
    assert_eq!(accepted.corrections, ["a is done although b is open"]);
}

#[test]
fn the_answer_is_the_plan_with_ids_and_what_was_corrected() {
    let accepted = accept(&Plan::seed("g"), r#"{"todos":[{"title":"1. a","status":"x"}]}"#).unwrap();
    assert_eq!(
        accepted.answer(),
        "The plan, revision 1:\n- [done] t1: a\nCorrected:\n- \"1. a\" is called \"a\"\n- \"x\" of \"a\" means done"
    );
    let many: Vec<_> = (0..40).map(|n| json!({"title": format!("1. {n}"), "status": "todo"})).collect();
    let answer = accept(&Plan::seed("g"), &json!({"todos": many}).to_string()).unwrap().answer();
    assert!(answer.ends_with("\n- and 40 more") && answer.len() < 8_000);
}

#[test]
fn hostile_shapes_are_errors_not_panics() {
    let shapes = [
        "",
        "[]",
        "{}",
        "7",
        r#"{"todos":3}"#,
        r#"{"todos":[3]}"#,
        r#"{"todos":[null]}"#,
        r#"{"todos":{"title":"a"}}"#,
    ];
    for shape in shapes {
        assert!(accept(&Plan::seed("g"), shape).is_err(), "{shape}");
    }
    let nested =
        format!(r#"{{"todos":[{}{}]}}"#, r#"{"title":"a","status":"x","children":["#.repeat(60), "]}".repeat(60));
    assert!(accept(&Plan::seed("g"), &nested).is_err());
    let lists = format!(r#"{{"todos":{}{}}}"#, "[".repeat(100), "]".repeat(100));
    assert!(accept(&Plan::seed("g"), &lists).unwrap_err().starts_with("plan_empty"));
}
