//! A quarter of an hour of the real program with everything as slow as it may be: a provider that takes 119 s to begin
//! and 59 s between two scraps, and a tool of 110 s. Only in the slow suite: `TILLER_SLOW=1 cargo test --test program soak`.
//! Three hours on a clock of its own are in `tests/engine/soak.rs`.

use std::io::Write;
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use crate::real::Stage;
use crate::wire::read_request;
use serde_json::Value;
use serde_json::json;

/// Scraps of each reply.
const SCRAPS: [u32; 2] = [5, 5];

fn event(choice: &Value) -> String {
    format!("data: {}\n\n", json!({ "choices": [choice] }))
}

/// Answers each request slowly; how many there were.
fn provide(listener: TcpListener) -> Arc<AtomicU32> {
    let asked = Arc::new(AtomicU32::new(0));
    let count = asked.clone();
    std::thread::spawn(move || {
        let todo = |status: &str| json!([{ "id": "a", "title": "work", "status": status }]);
        let replies: [Vec<(&str, Value)>; 2] = [
            vec![
                ("update_plan", json!({ "todos": todo("in_progress") })),
                ("shell", json!({ "command": "echo here >> trace.txt; sleep 110", "timeout_seconds": 115 })),
            ],
            vec![
                ("update_plan", json!({ "mode": "patch", "todos": todo("done") })),
                ("finish", json!({ "summary": "worked" })),
            ],
        ];
        for (calls, scraps) in replies.into_iter().zip(SCRAPS) {
            let (mut stream, _) = listener.accept().unwrap();
            read_request(&mut stream).unwrap();
            count.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_secs(119));
            let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n";
            stream.write_all(head.as_bytes()).unwrap();
            for scrap in 0..scraps {
                let text = event(&json!({"index": 0, "delta": {"content": format!("scrap {scrap} ")}}));
                stream.write_all(text.as_bytes()).unwrap();
                std::thread::sleep(Duration::from_secs(59));
            }
            let call = |(index, (name, arguments)): (usize, (&str, Value))| {
                let function = json!({"name": name, "arguments": arguments.to_string()});
                json!({"index": index, "id": format!("call_{index}"), "type": "function", "function": function})
            };
            let calls: Vec<Value> = calls.into_iter().enumerate().map(call).collect();
            let end = event(&json!({"index": 0, "delta": {"tool_calls": calls}}))
                + &event(&json!({"index": 0, "delta": {}, "finish_reason": "tool_calls"}))
                + "data: [DONE]\n\n";
            stream.write_all(end.as_bytes()).unwrap();
        }
    });
    asked
}

#[test]
fn s_58_a_quarter_of_an_hour_of_everything_as_slow_as_it_may_be() {
    if std::env::var_os("TILLER_SLOW").is_none() {
        println!("skipped: it takes a quarter of an hour; TILLER_SLOW=1 plays it");
        return;
    }
    let stage = Stage::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    stage.write(
        "config/tiller/tiller.toml",
        &format!(
            "model = \"near/m\"\n[providers.near]\nbase_url = \"http://{address}/v1\"\n[models.\"near/m\"]\nprice = \
             {{ input = \"1.00\", output = \"1.00\" }}\n"
        ),
    );
    let asked = provide(listener);
    let begun = Instant::now();
    let play = |words: &[&str]| stage.tiller(words).stdout(Stdio::null()).status().unwrap();
    assert_eq!(play(&["run", "do it", "--plain"]).code(), Some(10), "the call waits for its operator");
    let id = stage.ids()[0].clone();
    stage.allow();
    let status = play(&["resume", &id, "--plain"]);
    let audit = stage.ask(&["audit", &id]).out;
    assert_eq!(status.code(), Some(0), "after {:?}: {audit}", begun.elapsed());
    assert!(begun.elapsed() > Duration::from_secs(900), "{:?}", begun.elapsed());
    assert_eq!(asked.load(Ordering::SeqCst), 2, "each call was asked once");
    assert_eq!(std::fs::read_to_string(stage.path("work/trace.txt")).unwrap(), "here\n");
    let export = stage.ask(&["export", &id]).out;
    assert_eq!(export.matches("\"type\":\"owner_acquired\"").count(), 3, "run, approve, resume: nobody else took it");
    for trouble in ["model_call_failed", "recovered", "retry_scheduled"] {
        assert!(!export.contains(&format!("\"type\":\"{trouble}\"")), "{export}");
    }
}
