//! The cases of hostile input that are about fetches, and what is asked, refused and remembered of a fetch.

use std::sync::Arc;

use serde_json::Value;
use tiller::domain::budget::Limits;
use tiller::domain::id::RunId;
use tiller::domain::limits;
use tiller::domain::run::Run;
use tiller::domain::time::Now;
use tiller::domain::tool::ProblemKind;
use tiller::domain::tool::ToolCall;
use tiller::domain::trust::Trust;
use tiller::engine::redaction::Redactor;
use tiller::machine;
use tiller::policy::permission;
use tiller::policy::permission::Judgement;
use tiller::policy::permission::Scope;

use crate::fetch::stage::Bench;
use crate::fetch::stage::Does;
use crate::fetch::stage::Server;
use crate::fetch::stage::Stub;

/// What becomes of a URL, under a rule that allows a host: the facts say all that such a rule looks at.
async fn judged(url: &str, allowed_host: Option<&str>) -> &'static str {
    let facts = Bench::new(&[]).facts(url).await;
    let is_short = facts.query_bytes.is_some_and(|bytes| bytes <= limits::FETCH_QUERY_BYTES);
    match facts.problem {
        Some(_) => "refuse",
        None if allowed_host.is_some() && facts.host.as_deref() == allowed_host && is_short => "allow",
        None => "ask",
    }
}

#[tokio::test]
async fn the_cases_are_decided_as_they_say() {
    let cases: Vec<Value> = include_str!("../fixtures/safety/fetch.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(cases.len(), 7);
    for case in cases {
        let (id, input) = (case["id"].as_str().unwrap(), &case["input"]);
        let url = input["args"]["url"].as_str().unwrap();
        let host = input["rules"][0]["host"].as_str();
        // What an answer leads to or holds is played below, with servers.
        let wanted = if input["response"].is_null() { case["expected"].as_str().unwrap() } else { "allow" };
        assert_eq!(judged(url, host).await, wanted, "{id}");
    }
}

#[tokio::test]
async fn a_rule_for_a_host_is_for_that_host_only() {
    for (url, wanted) in [
        ("https://docs.rs/", "allow"),
        ("https://DOCS.rs:443/x?q=1", "allow"),
        ("https://docs.rs/?d=c2VjcmV0", "allow"),
        ("http://docs.rs/", "ask"),
        ("https://docs.rs:8443/", "ask"),
        ("https://docs.rs./", "refuse"),
        ("https://docs.rs.example.invalid/", "ask"),
        ("https://xdocs.rs/", "ask"),
        ("https://a.docs.rs/", "ask"),
        ("https://docs.rs@example.invalid/", "refuse"),
        ("https://example.invalid/@docs.rs", "ask"),
        ("https://example.invalid/?docs.rs", "ask"),
        ("https://dоcs.rs/", "ask"),
    ] {
        assert_eq!(judged(url, Some("docs.rs")).await, wanted, "{url}");
    }
    for (length, wanted) in [(250, "allow"), (256, "ask")] {
        assert_eq!(judged(&format!("https://docs.rs/?{}", "x".repeat(length)), Some("docs.rs")).await, wanted);
        assert_eq!(judged(&format!("https://docs.rs/{}", "x".repeat(length)), Some("docs.rs")).await, wanted);
    }
}

/// homoglyph-02 and exfiltration-01: what the operator is shown.
#[tokio::test]
async fn the_host_and_the_query_are_shown() {
    let facts = Bench::new(&[]).facts("https://еxample.invalid/").await;
    let said = "xn--xample-2of.invalid (in letters: еxample.invalid; it mixes letters: Cyrillic and Latin)";
    assert_eq!(facts.reach, format!("sends a request to {said}"));
    assert!(
        facts.preview.starts_with(&format!("GET https://xn--xample-2of.invalid/\nhost: {said}\n")),
        "{}",
        facts.preview
    );
    let facts = Bench::new(&[]).facts("https://example.invalid/?d=c2VjcmV0%20x").await;
    assert!(facts.preview.contains("\n    \"d\" = \"c2VjcmV0 x\"\n"), "{}", facts.preview);
    assert_eq!(facts.title, "GET https://example.invalid/?d=c2VjcmV0%20x");
}

/// Preparing looks up no name and sends nothing: a name alone can carry a secret.
#[tokio::test]
async fn nothing_goes_out_before_it_is_allowed() {
    let server = Server::new([Does::text("x")]).await;
    let names = Stub::new(&[&["127.0.0.1"]]);
    let opened = [format!("localhost:{}", server.port)];
    let bench = Bench::with(&opened, names.clone(), limits::FETCH_TIMEOUT);
    let url = format!("http://localhost:{}/", server.port);
    assert_eq!(bench.facts(&url).await.problem, None);
    assert!(names.asked().is_empty() && server.requests().is_empty());
    // The same call, allowed, does both.
    assert!(bench.fetch(&url).await.starts_with("Done: "));
    assert_eq!((names.asked().len(), server.requests().len()), (1, 1));
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_refused() {
    let bench = Bench::new(&[]);
    for (arguments, wanted) in [
        (serde_json::json!({}), ProblemKind::InvalidArguments),
        (serde_json::json!({"url": 1}), ProblemKind::InvalidArguments),
        (serde_json::json!({"url": "https://docs.rs/", "method": "POST"}), ProblemKind::InvalidArguments),
        (serde_json::json!({"url": "https://docs.rs/", "headers": {}}), ProblemKind::InvalidArguments),
        (serde_json::json!({"url": "https://docs.rs/", "start_byte": -1}), ProblemKind::InvalidArguments),
        (serde_json::json!({"url": "ftp://docs.rs/"}), ProblemKind::Refused),
    ] {
        let facts = bench.call(arguments.clone()).await.facts.unwrap();
        assert_eq!(facts.problem.map(|problem| problem.kind), Some(wanted), "{arguments}");
    }
}

/// A secret is found in a URL however it is written: what is judged is shown decoded.
#[tokio::test]
async fn secrets_do_not_go_out() {
    let secret = "s3cret/value+42";
    let known = [("MY_KEY".to_string(), secret.to_string().into())];
    let bench = Bench::new(&[]).behind(Arc::new(Redactor::new("key".to_string().into(), known)));
    let all: String = secret.bytes().map(|byte| format!("%{byte:02x}")).collect();
    for written in [
        "s3cret%2Fvalue%2B42",
        "s3cret%2fvalue%2b42",
        "%733cret%2Fvalue%2B42",
        "s3cr%65t%2fvalu%65%2b42",
        &all,
        "czNjcmV0L3ZhbHVlKzQy",
        "czNjcmV0L3ZhbHVlKzQy%3D",
        "7333637265742f76616c75652b3432",
        "sk-abcdefghijklmnopqrstuvwx1234",
        "%73k-abcdefghijklmnopqrstuvwx1234",
    ] {
        for url in [format!("https://a.invalid/?d={written}"), format!("https://a.invalid/{written}/x")] {
            let problem = bench.facts(&url).await.problem;
            assert_eq!(problem.map(|problem| problem.kind), Some(ProblemKind::SecretInArguments), "{url}");
        }
    }
    assert_eq!(bench.facts("https://a.invalid/?d=s3cret").await.problem, None);
    // Without the veil nothing is found.
    assert_eq!(Bench::new(&[]).facts(&format!("https://a.invalid/?d={all}")).await.problem, None);
}

/// Leave for a fetch is leave for that fetch: not for the tool, and not in a mode that only reads.
#[tokio::test]
async fn leave_is_for_one_url() {
    let call = Bench::new(&[]).call(serde_json::json!({"url": "https://docs.rs/"})).await;
    let mut run = run();
    let judged = |run: &Run, call: &ToolCall| permission::judge(run, call, call.facts.as_ref().unwrap(), 0);
    let asked = Judgement::Ask("it sends a request to a host".to_string());
    assert_eq!(judged(&run, &call), asked);
    assert_eq!(permission::widest(&run, &call).0, Scope::Exact);
    run.granted_tools.insert("web_fetch".to_string());
    assert_eq!(judged(&run, &call), asked);
    run.progress.granted.insert(call.grant());
    assert_eq!(judged(&run, &call), Judgement::Allow(permission::GRANTED));
    let other = Bench::new(&[]).call(serde_json::json!({"url": "https://docs.rs/?d=1"})).await;
    assert_eq!(judged(&run, &other), asked);
    run.trust = Trust::Plan;
    assert!(matches!(judged(&run, &call), Judgement::Deny { .. }));
}

fn run() -> Run {
    let terms = serde_json::json!({
        "goal": "x", "workspace": "/nowhere", "limits": Limits::default(), "checks": [],
        "model": {
            "name": "a/b", "dialect": "openai", "address": "http://127.0.0.1", "model": "b", "key_variable": null,
            "window": 1000, "max_output": 100, "price": null,
        },
        "tools": [], "instructions": "",
    });
    let first = machine::create(serde_json::from_value(terms).unwrap(), Now::default());
    Run::begin(RunId::from_entropy([1; 12]), &first).unwrap()
}
