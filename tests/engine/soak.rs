//! Three hours with everything as slow as it may be: a provider that takes 119 s to begin and 59 s between two scraps,
//! and tools of 110 s. Nothing of it may be taken for dead.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use serde_json::json;
use tiller::domain::budget::Axis;
use tiller::domain::budget::Limit;
use tiller::domain::model::Dialect;
use tiller::domain::model::ModelSpec;
use tiller::domain::run::Run;
use tiller::domain::terms::Terms;
use tiller::domain::trust::Trust;
use tiller::engine::driver::World;
use tiller::model::http::Timeouts;
use tiller::model::openai::OpenAi;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::engine::stage::Manner;
use crate::engine::stage::names;
use crate::engine::stage::stage_in;

/// Iterations between the plan and the claim.
const ITERATIONS: u64 = 18;
/// Scraps of a reply before its calls.
const SCRAPS: u64 = 6;

fn event(choice: &Value) -> String {
    format!("data: {}\n\n", json!({ "choices": [choice] }))
}

/// The calls of the n-th reply.
fn calls(n: u64) -> Vec<(&'static str, Value)> {
    let todo = |k: u64, status: &str| json!({"id": format!("t{k}"), "title": format!("step {k}"), "status": status});
    let patch = |k: u64| ("update_plan", json!({"mode": "patch", "todos": [todo(k, "done")]}));
    match n {
        0 => vec![("update_plan", json!({"todos": (1..=ITERATIONS).map(|k| todo(k, "pending")).collect::<Vec<_>>()}))],
        n if n <= ITERATIONS => vec![("work", json!({"n": n})), patch(n)],
        _ => vec![("finish", json!({"summary": "worked"}))],
    }
}

/// Answers one request after another, each on a connection of its own, and counts them.
async fn provide(listener: TcpListener, asked: Arc<AtomicU32>) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await;
        let n = u64::from(asked.fetch_add(1, Ordering::SeqCst));
        tokio::time::sleep(Duration::from_secs(119)).await;
        let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        for scrap in 0..SCRAPS {
            let text = event(&json!({"index": 0, "delta": {"content": format!("scrap {scrap} ")}}));
            stream.write_all(text.as_bytes()).await.unwrap();
            tokio::time::sleep(Duration::from_secs(59)).await;
        }
        let calls: Vec<Value> = calls(n)
            .into_iter()
            .enumerate()
            .map(|(index, (name, arguments))| {
                let function = json!({"name": name, "arguments": arguments.to_string()});
                json!({"index": index, "id": format!("call_{n}_{index}"), "type": "function", "function": function})
            })
            .collect();
        let usage = json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110});
        let end = event(&json!({"index": 0, "delta": {"tool_calls": calls}}))
            + &event(&json!({"index": 0, "delta": {}, "finish_reason": "tool_calls"}))
            + &format!("data: {}\n\ndata: [DONE]\n\n", json!({"choices": [], "usage": usage}));
        stream.write_all(end.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
    }
}

async fn read_request(stream: &mut TcpStream) {
    let mut request = Vec::new();
    let mut piece = [0; 16_384];
    loop {
        let count = stream.read(&mut piece).await.unwrap();
        request.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if count == 0 || body.len() >= length.unwrap_or(0) {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn s_58_three_hours_of_everything_as_slow_as_it_may_be() {
    // Another test may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicU32::new(0));
    let provider = tokio::spawn(provide(listener, asked.clone()));
    let agree = |terms: &mut Terms| {
        terms.trust = Trust::FullTrust;
        terms.limits.active = Limit::Unlimited;
        terms.model.dialect = Dialect::Openai;
        terms.model.address = address.clone();
    };
    let spec =
        ModelSpec { dialect: Dialect::Openai, address: address.clone(), ..crate::engine::stage::terms(vec![]).model };
    let model = Arc::new(OpenAi::with_timeouts(&spec, None, Timeouts::default()).unwrap());
    let takes = Manner::Takes(Duration::from_secs(110));
    let begun = Instant::now();
    let stage = stage_in(vec![], takes, |_| {}, agree, |world| World { model, ..world });
    let run = stage.until_within(Duration::from_secs(6 * 3_600), Run::is_ended).await;
    assert_eq!(run.status.word(), "completed", "{}", run.status.phrase());
    assert!(begun.elapsed() > Duration::from_secs(3 * 3_600), "{:?}", begun.elapsed());
    let replies = ITERATIONS + 2;
    assert_eq!(u64::from(asked.load(Ordering::SeqCst)), replies, "each call was asked once: no connection was swept");
    assert_eq!(run.pool.used(Axis::ModelCalls), replies);
    assert_eq!(u64::from(stage.executions()), ITERATIONS);
    let names = names(&stage.records().await);
    let count = |name: &str| names.iter().filter(|one| **one == name).count();
    assert_eq!((count("owner_acquired"), count("model_call_failed"), count("recovered")), (1, 0, 0));
    provider.abort();
}
