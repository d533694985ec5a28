//! Keys: missing, refused, repeated by a spiteful provider. None is ever written anywhere.

use std::io::Write;
use std::net::TcpListener;

use crate::program::stage::files;
use crate::real::Stage;
use crate::real::said;
use crate::wire::read_request;

const CANARY: &str = "sk-canary-4fQz81Lm2Xw90PtK";

/// A provider on this machine that answers each request with this status and body.
fn provider(stage: &Stage, status: &'static str, bodies: Vec<String>) {
    answer(stage, bodies.into_iter().map(|body| (status, body)).collect());
}

/// A provider on this machine that gives these answers, one after another.
fn answer(stage: &Stage, answers: Vec<(&'static str, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    stage.write(
        "config/tiller/tiller.toml",
        &format!(
            "model = \"near/m\"\n[providers.near]\nbase_url = \"http://{address}/v1\"\nkey = \"NEAR_KEY\"\n\
             [models.\"near/m\"]\nprice = {{ input = \"1.00\", output = \"1.00\" }}\n"
        ),
    );
    std::thread::spawn(move || {
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            read_request(&mut stream).unwrap();
            let kind = if body.starts_with("data:") { "text/event-stream" } else { "application/json" };
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            )
            .unwrap();
        }
    });
}

/// A server that is not started is not waited for: whoever can start it is told so within seconds.
#[test]
fn a_server_on_this_machine_that_is_not_started() {
    let stage = Stage::new();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let model = format!("model = \"near/m\"\n[providers.near]\nbase_url = \"http://{address}/v1\"\n");
    let price = "[models.\"near/m\"]\nprice = { input = \"1.00\", output = \"1.00\" }\n";
    stage.write("config/tiller/tiller.toml", &format!("{model}{price}"));
    let told = stage.ask(&["run", "g", "--plain"]);
    let no_server = format!("[model] failed: no server runs at http://{address}/v1: Connection refused");
    told.check(14, &[&no_server, "[parked] not ready", "what to do: start the model's server, then resume"]);
    assert_eq!(told.out.matches(&no_server).count(), 3, "{told}");
    assert_eq!(stage.show()["summary"]["spent"], 0);
}

#[test]
fn a_key_that_is_not_set() {
    let stage = Stage::new();
    provider(&stage, "500 No", Vec::new());
    let told = stage.ask(&["run", "g", "--plain"]);
    told.check(13, &["[parked] credentials", "NEAR_KEY", "tiller resume"]);
    let shown = stage.show();
    assert_eq!(shown["summary"]["spent"], 0);
    assert_eq!(shown["axes"]["model-calls"]["used"], 0);
    let id = stage.ids()[0].clone();
    stage.ask(&["show", &id]).check(0, &["NEAR_KEY"]);
    assert!(shown["remedy"].as_str().unwrap().contains("NEAR_KEY"), "{shown}");
    stage.ask(&["resume", &id, "--plain"]).check(13, &["NEAR_KEY"]);
    assert_eq!(stage.show()["summary"]["spent"], 0);
    stage.ask(&["doctor"]).check(13, &["MISSING", "NEAR_KEY"]);
}

#[test]
fn a_key_that_is_refused_is_written_nowhere() {
    let stage = Stage::new();
    let body = format!("{{\"error\":{{\"message\":\"Incorrect API key provided: {CANARY}\",\"code\":\"{CANARY}\"}}}}");
    provider(&stage, "401 Unauthorized", vec![body; 3]);
    let with_key = |words: &[&str]| {
        let command = &mut stage.tiller(words);
        said(command.env("NEAR_KEY", CANARY).env("TILLER_LOG", "trace").spawn().unwrap())
    };
    let told = with_key(&["run", "g", "--plain"]);
    told.check(13, &["[parked] credentials", "NEAR_KEY", "$0.00 spent", "tiller resume"]);
    let id = stage.ids()[0].clone();
    let all = [
        told,
        with_key(&["resume", &id, "--json"]),
        with_key(&["show", &id]),
        with_key(&["show", &id, "--json"]),
        with_key(&["doctor"]),
    ];
    for said in all {
        assert!(!said.out.contains(CANARY) && !said.err.contains(CANARY), "{said}");
    }
    for (path, bytes) in files(&stage.path("state")) {
        let holds = bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
        assert!(!holds, "{} holds the key", path.display());
    }
}

/// In the middle of a run: one attempt each, no iteration counted, nothing held, and the reason is the right one.
#[test]
fn s_51_what_the_provider_says_about_money_and_keys_is_understood() {
    let quota = r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"You exceeded"}}"#;
    let limits = r#"{"error":{"message":"You have reached your specified API usage limits."}}"#;
    for (status, body, reason) in [
        ("401 Unauthorized", r#"{"error":{"message":"no"}}"#, "credentials"),
        ("402 Payment Required", "", "billing"),
        ("429 Too Many Requests", quota, "billing"),
        ("400 Bad Request", limits, "billing"),
    ] {
        let stage = Stage::new();
        let plan = r#"{\"todos\":[{\"id\":\"a\",\"title\":\"A\",\"status\":\"pending\"}]}"#;
        let call = format!(r#"{{"index":0,"id":"c","function":{{"name":"update_plan","arguments":"{plan}"}}}}"#);
        let first = format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{call}]}}}}]}}\n\ndata: \
             {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"tool_calls\"}}]}}\n\ndata: [DONE]\n\n"
        );
        let again = body.to_string();
        answer(&stage, vec![("200 OK", first), (status, again.clone()), (status, again.clone()), (status, again)]);
        let mut command = stage.tiller(&["run", "g", "--plain"]);
        let told = said(command.env("NEAR_KEY", CANARY).spawn().unwrap());
        told.check(13, &[&format!("[parked] {reason}")]);
        // The iteration that is open counts as one, however often it is tried.
        let id = stage.ids()[0].clone();
        for calls in [2, 3] {
            let shown = stage.show();
            let used = |axis: &str| shown["axes"][axis]["used"].as_u64().unwrap();
            assert_eq!((used("model-calls"), used("iterations")), (calls, 1), "{status}: {shown}");
            assert_eq!(shown["reserved"], serde_json::Value::Null, "{status}");
            let mut command = stage.tiller(&["resume", &id, "--plain"]);
            let told = said(command.env("NEAR_KEY", CANARY).spawn().unwrap());
            if calls == 2 {
                told.check(13, &[&format!("[parked] {reason}")]);
            }
        }
    }
}

/// Calls without ids, twice the same, and pieces that belong together by nothing but their place.
#[test]
fn calls_without_ids() {
    let stage = Stage::new();
    let event = |choice: &str| format!("data: {{\"choices\":[{choice}]}}\n\n");
    let calls = |calls: &str| {
        let piece = event(&format!("{{\"index\":0,\"delta\":{{\"tool_calls\":[{calls}]}}}}"));
        format!("{piece}{}data: [DONE]\n\n", event("{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}"))
    };
    let call = |name: &str, arguments: &str| {
        let arguments = serde_json::Value::String(arguments.to_string());
        format!("{{\"function\":{{\"name\":\"{name}\",\"arguments\":{arguments}}}}}")
    };
    let plan = call("update_plan", "{\"todos\":[{\"id\":\"a\",\"title\":\"A\",\"status\":\"done\"}]}");
    let list = call("list_dir", "{\"path\":\".\"}");
    let finish = call("finish", "{\"summary\":\"done\"}");
    let indexed = |index: u32, call: &str| call.replacen('{', &format!("{{\"index\":{index},"), 1);
    let lists = format!("{},{}", indexed(0, &list), indexed(1, &list));
    provider(&stage, "200 OK", vec![calls(&plan), calls(&lists), calls(&finish)]);
    let mut command = stage.tiller(&["run", "g", "--plain"]);
    let told = said(command.env("NEAR_KEY", CANARY).spawn().unwrap());
    told.check(0, &["[call c2] done", "[call c3] done", "[completed]"]);
}
