//! The command line: a line in, what it means or the sentence out.

use std::ffi::OsString;

use tiller::cli::Ask;
use tiller::cli::Stop;
use tiller::cli::parse;

fn read(line: &[&str]) -> Result<Ask, Stop> {
    parse(["tiller"].iter().chain(line).map(OsString::from))
}

/// What a line means, as its debug form.
fn check(line: &[&str], meaning: &str) {
    assert_eq!(format!("{:?}", read(line).unwrap_or_else(|stop| panic!("{line:?} was refused: {stop:?}"))), meaning);
}

/// The first line of the refusal of a line.
fn refused(line: &[&str], sentence: &str) {
    match read(line) {
        Err(Stop::Usage(text)) => assert!(text.contains(sentence), "{line:?} says:\n{text}"),
        other => panic!("{line:?} was not refused: {other:?}"),
    }
}

const DEFAULTS: &str = "Options { output: Fitting, model: None, budget: None, iterations: None, deadline: None, checks: [], workspace: None, trust: None, pass_secrets: [] }";

#[test]
fn goals() {
    check(&[], &format!("Open({DEFAULTS})"));
    check(&["fix the tests"], &format!("Start {{ goal: Typed(Goal(\"fix the tests\")), options: {DEFAULTS} }}"));
    check(&["-"], &format!("Start {{ goal: StandardInput, options: {DEFAULTS} }}"));
    check(&["run", "-"], &format!("Start {{ goal: StandardInput, options: {DEFAULTS} }}"));
    check(&["run", "run"], &format!("Start {{ goal: Typed(Goal(\"run\")), options: {DEFAULTS} }}"));
    check(&["run", "reusme"], &format!("Start {{ goal: Typed(Goal(\"reusme\")), options: {DEFAULTS} }}"));
    check(&["run", "modernise"], &format!("Start {{ goal: Typed(Goal(\"modernise\")), options: {DEFAULTS} }}"));
    check(&["モダンに"], &format!("Start {{ goal: Typed(Goal(\"モダンに\")), options: {DEFAULTS} }}"));
    check(&["resume the work of yesterday"], &{
        let goal = "Typed(Goal(\"resume the work of yesterday\"))";
        format!("Start {{ goal: {goal}, options: {DEFAULTS} }}")
    });
}

#[test]
fn options() {
    let all = "Options { output: Json, model: Some(\"openai/gpt-5\"), budget: Some(At(2500000)), iterations: \
               Some(Unlimited), deadline: None, checks: [Command(\"make\"), Command(\"make test\")], workspace: Some(\"/srv/x\"), trust: None, pass_secrets: [] }";
    let words = [
        "--json",
        "--model",
        "openai/gpt-5",
        "--budget",
        "2.50",
        "--max-iterations",
        "unlimited",
        "--check",
        "make",
        "--check",
        "make test",
        "--workspace",
        "/srv/x",
    ];
    let meaning = format!("Start {{ goal: Typed(Goal(\"go on\")), options: {all} }}");
    check(&[&["run", "go on"], &words[..]].concat(), &meaning);
    check(&[&["go on"], &words[..]].concat(), &meaning);
    check(&[&words[..], &["go on"]].concat(), &meaning);
}

#[test]
fn commands() {
    check(&["resume"], "Resume { which: Only, grant: Nothing, pass_secrets: [], output: Fitting }");
    check(&["resume", "--last", "--plain"], "Resume { which: Last, grant: Nothing, pass_secrets: [], output: Plain }");
    check(&["resume", "K7F"], "Resume { which: Named(\"k7f\"), grant: Nothing, pass_secrets: [], output: Fitting }");
    check(&["runs"], "Runs(Text)");
    check(&["runs", "--json"], "Runs(Json)");
    check(&["show", "k7f", "--json"], "Show { run: \"k7f\", form: Json }");
    check(&["rehearse"], "Rehearse { script: None, output: Fitting }");
    check(&["rehearse", "--plain", "--script", "s.toml"], "Rehearse { script: Some(\"s.toml\"), output: Plain }");
    check(&["doctor"], "Doctor");
}

#[test]
fn orders() {
    let order = |order: &str| format!("Order {{ run: \"k7f\", order: {order} }}");
    check(
        &["approve", "k7f", "c7", "1A2B3C4D"],
        &order("Decide { call: CallId(7), digest: \"1a2b3c4d\", decision: AllowOnce }"),
    );
    check(
        &["approve", "k7f", "c7", "1a2b3c4d", "--tool"],
        &order("Decide { call: CallId(7), digest: \"1a2b3c4d\", decision: AllowTool }"),
    );
    check(
        &["approve", "k7f", "c7", "1a2b3c4d", "--for-run"],
        &order("Decide { call: CallId(7), digest: \"1a2b3c4d\", decision: AllowRun }"),
    );
    check(
        &["approve", "k7f", "c7:1a2b3c4d", "c8:11111111"],
        &order("AllowAll([(CallId(7), \"1a2b3c4d\"), (CallId(8), \"11111111\")])"),
    );
    check(
        &["approve", "k7f", "c7", "1a2b3c4d", "--edit", "{\"path\":1}"],
        &order("Edit { call: CallId(7), digest: \"1a2b3c4d\", arguments: Typed(\"{\\\"path\\\":1}\") }"),
    );
    check(
        &["approve", "k7f", "c7:1a2b3c4d", "--edit", "new.json"],
        &order("Edit { call: CallId(7), digest: \"1a2b3c4d\", arguments: File(\"new.json\") }"),
    );
    check(&["trust", "k7f", "auto-edit"], &order("Trust(AutoEdit)"));
    check(&["trust"], "Folders(Trust(\".\"))");
    check(&["trust", "k7f"], "Folders(Trust(\"k7f\"))");
    check(&["trust", "--yes"], "Folders(TrustUnasked(\".\"))");
    check(&["trust", "--remove", "/srv/x"], "Folders(Remove(\"/srv/x\"))");
    check(&["trust", "--list"], "Folders(List)");
    check(
        &["deny", "k7f", "7", "1a2b3c4d"],
        &order("Decide { call: CallId(7), digest: \"1a2b3c4d\", decision: Deny(\"\") }"),
    );
    check(
        &["deny", "k7f", "c7", "1a2b3c4d", "not there"],
        &order("Decide { call: CallId(7), digest: \"1a2b3c4d\", decision: Deny(\"not there\") }"),
    );
    check(&["answer", "k7f", "blue"], &order("Answer { call: None, text: \"blue\" }"));
    check(&["answer", "k7f", "c9", "blue"], &order("Answer { call: Some(CallId(9)), text: \"blue\" }"));
    check(&["resolve", "k7f", "c7", "happened"], &order("Resolve { call: CallId(7), resolution: Happened(\"\") }"));
    check(
        &["resolve", "k7f", "c7", "happened", "sent"],
        &order("Resolve { call: CallId(7), resolution: Happened(\"sent\") }"),
    );
    check(&["resolve", "k7f", "c7", "not"], &order("Resolve { call: CallId(7), resolution: NotHappened }"));
    check(&["resolve", "k7f", "c7", "again"], &order("Resolve { call: CallId(7), resolution: RunAgain }"));
    check(&["resolve", "k7f", "c7", "skip"], &order("Resolve { call: CallId(7), resolution: Skip }"));
    check(&["say", "k7f", "look at the log"], &order("Say { text: \"look at the log\", policy: Next }"));
    check(&["say", "k7f", "stop", "--now"], &order("Say { text: \"stop\", policy: SteerNow }"));
    check(&["say", "k7f", "stop", "--interrupt"], &order("Say { text: \"stop\", policy: Interrupt }"));
    check(&["say", "k7f", "more", "--after"], &order("Say { text: \"more\", policy: AfterDone }"));
    check(&["withdraw", "k7f", "i2"], &order("Withdraw(InterjectionId(2))"));
    check(&["raise", "k7f", "cost", "7.5"], &order("Raise { axis: Cost, limit: At(7500000) }"));
    check(&["raise", "k7f", "time", "1h30m"], &order("Raise { axis: Active, limit: At(5400000) }"));
    check(&["raise", "k7f", "iterations", "64"], &order("Raise { axis: Loops, limit: At(64) }"));
    check(&["plan", "k7f", "add", "write", "it"], &order("Plan(Add { title: \"write it\" })"));
    check(
        &["plan", "k7f", "drop t3 no time"],
        &order("Plan(Mark { id: TodoId(\"t3\"), status: Dropped, note: \"no time\" })"),
    );
    check(&["plan", "k7f", "move", "t3", "1"], &order("Plan(Move { id: TodoId(\"t3\"), position: 1 })"));
    check(&["plan", "k7f"], "Show { run: \"k7f\", form: Text }");
    check(&["raise", "k7f", "tool-calls", "unlimited"], &order("Raise { axis: ToolCalls, limit: Unlimited }"));
    check(&["cancel", "k7f"], &order("Cancel"));
}

#[test]
fn slips_are_named_and_nothing_is_started() {
    refused(
        &["reusme"],
        "error: `reusme` is not a command; nothing was started; if you meant the command, type `tiller resume`; if it \
         is your goal, type `tiller run reusme`",
    );
    refused(&["shwo", "k7f"], "type `tiller show`");
    refused(&["aprove", "k7f", "c7", "1a2b3c4d"], "type `tiller approve`");
    refused(&["Runs"], "type `tiller runs`");
    refused(&["docter"], "type `tiller doctor`");
    refused(&["approvals"], "type `tiller approve`");
    // As near to one as to the other.
    for line in
        [&["rusn"][..], &["rusn", "--plain"], &["--plain", "rusn"], &["rusn", "k7f"], &["rusn", "fix the tests"]]
    {
        refused(
            line,
            "`rusn` is not a command; nothing was started; if you meant the command, type `tiller run` or `tiller runs`;",
        );
    }
    refused(
        &["resum", "--last"],
        "error: `resum` is not a command; nothing was started; if you meant the command, type",
    );
    refused(&["aprove", "k7f", "c7", "1a2b3c4d", "--for-run"], "type `tiller approve`; if it is your goal");
    // What is missing, or can't be read, changes nothing, and that is said last.
    for line in [&["show"][..], &["raise", "k7f", "cost"], &["resume", "--first"], &["approve", "k7f", "x7", "1a"]] {
        let Err(Stop::Usage(said)) = read(line) else { panic!("{line:?} was understood") };
        let ends = ["Nothing was started or changed.\n", "nothing was decided\n"];
        assert!(said.starts_with("error: ") && ends.iter().any(|end| said.ends_with(end)), "{line:?} says:\n{said}");
    }
    // Blanks around it make no goal of a word.
    refused(&["fix "], "error: `fix` is not a command; nothing was started; `tiller --help` lists the commands");
    refused(&["\t resmue\n"], "type `tiller resume`");
    refused(&["  "], "the goal is empty; nothing was started");
    let unknown = "error: `status` is not a command; nothing was started; `tiller --help` lists the commands; if it is your \
                   goal, type `tiller run status`";
    refused(&["status"], unknown);
    refused(&["status", "--plain"], unknown);
    refused(&["modernise"], "type `tiller run modernise`");
    // A tip that fits no flag of this program is worse than none.
    let Err(Stop::Usage(said)) = read(&["--bogus"]) else { panic!("it was understood") };
    assert!(said.starts_with("error: unexpected argument '--bogus' found") && !said.contains("tip:"), "{said}");
    refused(&["fix", "the", "tests"], "the goal came as 3 arguments; nothing was started; put it in quotes");
}

#[test]
fn sentences() {
    refused(&[""], "the goal is empty; nothing was started");
    refused(&["run"], "<GOAL>");
    refused(&["--plain"], "--plain and --json need a goal; nothing was started");
    refused(&["g", "--plain", "--json"], "cannot be used with");
    refused(&["g", "--budget", "0"], "a limit of zero on cost would stop the run at once");
    refused(&["g", "--budget", "much"], "the limit of cost must be dollars such as 5 or 0.50, or unlimited");
    for line in [
        &["run", "g h", "--budget", "-1"][..],
        &["g", "--budget", "-0.50"],
        &["g", "--budget", "-$5"],
        &["g", "--max-iterations", "-3"],
        &["g", "--deadline", "-1h"],
    ] {
        let flag = line[line.len() - 2];
        refused(line, &format!("error: {flag} can't be negative, and `{}` is; nothing was done", line[line.len() - 1]));
    }
    refused(&["g", "--budget=-1"], "the limit of cost can't be negative");
    refused(&["g", "--deadline=-1h"], "a deadline can't be negative");
    for line in [
        &["raise", "k7f", "cost", "-1"][..],
        &["raise", "k7f", "time", "-1h"],
        &["price", "k7f", "-1", "2"],
        &["correct", "k7f", "m1.1", "-0.02"],
        &["rewind", "k7f", "-1"],
        &["say", "k7f", "-1 is wrong"],
    ] {
        refused(
            line,
            "is negative, which no amount here can be; nothing was done; if it is meant as words, write `--`",
        );
    }
    check(
        &["say", "k7f", "--", "-1 is wrong"],
        "Order { run: \"k7f\", order: Say { text: \"-1 is wrong\", policy: Next } }",
    );
    refused(&["g", "--max-iterations", "3.5"], "the limit of iterations must be a whole number such as 50");
    refused(&["g", "--bugdet", "3"], "--budget");
    refused(&["resume", "k7f", "--last"], "cannot be used with");
    refused(&["resume", "lol"], "no run has a name like this; `tiller runs` lists them");
    refused(&["show", ""], "no run has a name like this; `tiller runs` lists them");
    refused(&["show", "0123456789abc"], "no run has a name like this; `tiller runs` lists them");
    refused(&["approve", "k7f", "x7", "1a2b3c4d"], "calls are named c1, c2, …; `tiller show RUN` lists");
    refused(&["approve", "k7f", "c7", "1a2b"], "a digest is 8 to 64 of the characters 0-9 and a-f");
    refused(&["approve", "k7f", "c7"], "c7 is no CALL:DIGEST; nothing was decided");
    refused(&["approve", "k7f", "c7:1a2b3c4d", "c8:1a2b3c4d", "--tool"], "are about one call; nothing was decided");
    refused(&["trust", "k7f", "ask", "--remove"], "--remove takes one folder");
    refused(&["trust", "k7f", "ask", "--yes"], "--yes is about a folder");
    refused(&["trust", "../x", "ask"], "no run has a name like this");
    refused(&["trust", "k7f", "yolo"], "it is none of plan, ask, auto_edit, full_trust");
    refused(&["resolve", "k7f", "c7", "maybe"], "[possible values: happened, not, again, skip]");
    refused(&["resolve", "k7f", "c7", "not", "so"], "only `happened` takes a text; nothing was sent");
    refused(&["plan", "k7f", "burn", "t3"], "type: add TEXT | edit ID TEXT");
    refused(&["plan", "k7f", "done"], "nothing was changed");
    refused(&["plan", "k7f", "drop", "t3"], "error: say why, the agent is told: drop t3 WHY; nothing was changed");
    refused(&["plan", "k7f", "block", "t3"], "say why, the agent is told: block t3 WHY; nothing was changed");
    refused(&["plan", "k7f", "move", "t3", "up"], "a position is a number from 1, not \"up\"");
    refused(&["--deadline", "soon", "g"], "a deadline must be a time from now such as 90m or 3h, a moment such as");
    refused(&["raise", "k7f", "deadline", "0h"], "a deadline of zero would stop the run at once; write none");
    refused(
        &["raise", "k7f", "money", "5"],
        "the axes are time, deadline, iterations, model-calls, tool-calls, tokens, cost",
    );
    refused(&["raise", "k7f", "time", "5"], "the limit of time must be a time such as 30m, 2h or 1h30m, or unlimited");
    refused(&["raise", "k7f", "cost", "0"], "a limit of zero on cost would stop the run at once");
    refused(&["g", "--json", "runs"], "the goal came as 2 arguments");
}

#[test]
fn help_is_shown_and_has_examples() {
    for line in [&["--help"][..], &["run", "--help"], &["raise", "--help"], &["help"], &["--version"]] {
        match read(line) {
            Err(Stop::Shown(text)) => {
                assert!(line[0] == "--version" || text.contains("xample"), "{line:?} shows:\n{text}");
            }
            other => panic!("{line:?}: {other:?}"),
        }
    }
}

/// What clap itself finds wrong with the definitions. A row of an example or a list fits a terminal of 80 columns; prose is
/// wrapped between words at any width.
#[test]
fn every_command_has_help() {
    for word in [
        "run", "resume", "runs", "show", "rehearse", "doctor", "approve", "deny", "answer", "resolve", "say", "raise",
        "cancel", "rules", "trust", "plan", "price", "export", "fork", "rewind", "remove", "audit",
    ] {
        match read(&[word, "--help"]) {
            Err(Stop::Shown(text)) => {
                assert!(text.contains("Usage: tiller"), "{text}");
                let below = text.lines().skip_while(|line| !line.starts_with("Example"));
                let long = below.filter(|line| line.starts_with("  ")).find(|line| line.chars().count() > 80);
                assert_eq!(long, None, "{word}");
            }
            other => panic!("{word}: {other:?}"),
        }
    }
}
