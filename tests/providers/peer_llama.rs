//! The chat-completions adapter against a server that nobody here wrote: llama.cpp with a small real model. It is
//! looked for in the environment, and where there is none the test says why and passes:
//!
//! - `TILLER_TEST_LLAMA` is the address of a running one, such as `http://127.0.0.1:8080`; or
//! - `TILLER_TEST_LLAMA_DIR` is a directory with a `.gguf` file, and Python can import the module `xllamacpp`.
//!
//! Nothing is asserted about what the model says.

use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;
use serde_json::json;
use tiller::domain::id::CallId;
use tiller::domain::id::ModelCallId;
use tiller::domain::id::Seq;
use tiller::domain::message::Entry;
use tiller::domain::message::Message;
use tiller::domain::message::ToolUse;
use tiller::domain::message::Transcript;
use tiller::domain::model::Dialect;
use tiller::domain::model::FailureClass;
use tiller::domain::model::ModelReply;
use tiller::domain::model::ModelRequest;
use tiller::domain::model::ModelSpec;
use tiller::domain::model::Offer;
use tiller::domain::model::Purpose;
use tiller::domain::model::StopReason;
use tiller::domain::status::Phase;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::Noise;
use tiller::domain::tool::OutcomeKind;
use tiller::domain::tool::ProblemKind;
use tiller::domain::tool::ToolSpec;
use tiller::model::Model;
use tiller::model::openai::OpenAi;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// Starts the server that is in the Python module, on a free port, which it prints.
const START: &str = "
import sys, time, socket, xllamacpp
probe = socket.socket(); probe.bind(('127.0.0.1', 0)); port = probe.getsockname()[1]; probe.close()
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]; params.hostnames = ['127.0.0.1']; params.port = port
params.n_ctx = 4096; params.n_parallel = 1; params.use_jinja = True; params.endpoint_slots = True
params.cpuparams.n_threads = 1; params.cpuparams_batch.n_threads = 1; params.warmup = False
server = xllamacpp.Server(params)
print('PORT', port, flush=True)
sys.stdin.read()
";

/// A llama.cpp server, ended with the test if the test began it.
struct Peer {
    address: String,
    child: Option<Child>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn find() -> Result<Peer, String> {
    if let Ok(address) = std::env::var("TILLER_TEST_LLAMA") {
        return Ok(Peer { address: address.trim_end_matches('/').to_string(), child: None });
    }
    let directory = std::env::var("TILLER_TEST_LLAMA_DIR")
        .map_err(|_| "neither TILLER_TEST_LLAMA nor TILLER_TEST_LLAMA_DIR is set".to_string())?;
    let files = std::fs::read_dir(&directory).map_err(|error| format!("{directory}: {error}"))?;
    let is_model = |path: &Path| path.extension().is_some_and(|extension| extension == "gguf");
    let mut models: Vec<_> = files.flatten().map(|file| file.path()).filter(|path| is_model(path)).collect();
    models.sort();
    let model = models.into_iter().next().ok_or_else(|| format!("{directory} has no .gguf file"))?;
    start(&model)
}

fn start(model: &Path) -> Result<Peer, String> {
    let mut child = Command::new("python3")
        .args(["-c", START])
        .arg(model)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("python3 can't be started: {error}"))?;
    let output = child.stdout.take().unwrap();
    let mut peer = Peer { address: String::new(), child: Some(child) };
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(output)).map_while(Result::ok);
    let port = lines.find_map(|line| line.strip_prefix("PORT ").map(str::to_string));
    let port = port.ok_or("Python has no working module xllamacpp")?;
    peer.address = format!("http://127.0.0.1:{port}");
    Ok(peer)
}

async fn get(address: &str, path: &str) -> Option<Value> {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let response = client.get(format!("{address}{path}")).send().await.ok()?;
    if response.status().is_success() { response.json().await.ok() } else { None }
}

/// Asks until the answer is as wanted; fails after a minute.
async fn until(address: &str, path: &str, wanted: impl Fn(&Value) -> bool) {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(60) {
        if get(address, path).await.as_ref().is_some_and(&wanted) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{path} did not become as wanted");
}

fn is_busy(slots: &Value) -> bool {
    slots.as_array().unwrap().iter().any(|slot| slot["is_processing"] == true)
}

fn request(closing: &str, max_output: u64) -> ModelRequest {
    ModelRequest {
        call: ModelCallId(1),
        attempt: 1,
        iteration: 1,
        phase: Phase::Pursue,
        purpose: Purpose::Turn,
        talk: Transcript::default(),
        system: "You are helpful.".to_string(),
        entries: Transcript::default(),
        closing: closing.to_string(),
        offer: Arc::default(),
        max_output,
        temperature_percent: None,
    }
}

async fn text_and_usage(model: &OpenAi) {
    let (deltas, mut shown) = broadcast::channel(1_024);
    let request = request("Count from one to ten in words.", 24);
    let reply: ModelReply = model.call(request, deltas, CancellationToken::new()).await.unwrap();
    let mut streamed = String::new();
    let mut pieces = 0;
    while let Ok(delta) = shown.try_recv() {
        streamed.push_str(&delta.text);
        pieces += 1;
    }
    assert!(!reply.text.is_empty() && streamed == reply.text && pieces > 1, "{reply:?}");
    let usage = reply.usage.unwrap();
    assert!(usage.prompt() > 5 && (1..=24).contains(&usage.output), "{usage:?}");
    assert!(matches!(reply.stop, StopReason::End | StopReason::Length), "{reply:?}");
}

async fn overflow(model: &OpenAi) {
    let long = "one two three four ".repeat(20_000);
    let (deltas, _) = broadcast::channel(1);
    let failed = model.call(request(&long, 8), deltas, CancellationToken::new()).await.unwrap_err();
    assert_eq!((failed.class, failed.received.accepted), (FailureClass::ContextLength, false), "{failed:?}");
}

async fn cancel(model: &OpenAi, address: &str) {
    until(address, "/slots", |slots| !is_busy(slots)).await;
    let (deltas, mut shown) = broadcast::channel(1_024);
    let cancel = CancellationToken::new();
    let story = request("Tell a very long story about the sea, with many chapters.", 1_500);
    let (outcome, began) = tokio::join!(model.call(story, deltas, cancel.clone()), async {
        shown.recv().await.unwrap();
        until(address, "/slots", is_busy).await;
        let began = Instant::now();
        cancel.cancel();
        began
    });
    let failed = outcome.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!((failed.class, failed.received.accepted), (FailureClass::Cancelled, true));
    assert!(failed.received.bytes > 0);
    until(address, "/slots", |slots| !is_busy(slots)).await;
    // Far less than the whole story takes.
    assert!(began.elapsed() < Duration::from_secs(10), "the slot was not freed");
}

/// Small models may call a tool or may not; whatever they do must be read.
async fn tools(model: &OpenAi) {
    let tools = vec![ToolSpec {
        name: "read_file".to_string(),
        description: "Reads a file".to_string(),
        schema: json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] }),
        effect: EffectClass::Read,
        noise: Noise::default(),
    }];
    let request =
        ModelRequest { offer: Arc::new(Offer::new(tools)), ..request("Read the file check.sh with your tool.", 128) };
    match model.call(request, broadcast::channel(1_024).0, CancellationToken::new()).await {
        Ok(reply) => {
            eprintln!("with a tool it said {:?} and called {:?}", reply.text, reply.calls);
            assert_eq!(reply.calls.is_empty(), reply.stop != StopReason::Calls, "{reply:?}");
        }
        Err(failed) => {
            eprintln!("with a tool it failed: {}", failed.message);
            let is_unreadable = matches!(failed.class, FailureClass::StreamBroken | FailureClass::Overloaded);
            assert!(is_unreadable, "neither a reply nor an unreadable call: {failed:?}");
        }
    }
}

/// A conversation with calls, one of them unreadable, is taken: servers tend to refuse those.
async fn history(model: &OpenAi) {
    let entry = |message| Arc::new(Entry { iteration: 1, at: Timestamp(0), seq: Seq(0), message });
    let call = |number: u32, arguments: &str| ToolUse {
        id: CallId(number),
        wire_id: format!("call_{number}"),
        tool: "read file".to_string(),
        arguments: arguments.to_string(),
        seq: Seq(0),
    };
    let result = |number: u32, kind| {
        let text = "the text".to_string();
        entry(Message::ToolResult { call: CallId(number), kind, text, bytes: 8, title: String::new(), took: Span(1) })
    };
    let uses = vec![call(1, r#"{"path":"a"}"#), call(2, "{broken")];
    let reply = Message::Assistant { call: ModelCallId(1), phase: Phase::Pursue, text: String::new(), uses };
    let entries = vec![
        entry(reply),
        result(1, OutcomeKind::Done),
        result(2, OutcomeKind::NotRun(ProblemKind::Malformed)),
        entry(Message::Engine { text: "One call could not be read.".to_string() }),
    ];
    let request = ModelRequest { entries: entries.into_iter().collect(), ..request("Say what you read.", 8) };
    let reply = model.call(request, broadcast::channel(64).0, CancellationToken::new()).await.unwrap();
    assert!(reply.usage.unwrap().prompt() > 30, "{reply:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_server_is_understood() {
    let peer = match find() {
        Ok(peer) => peer,
        Err(why) => {
            eprintln!("skipped: {why}");
            return;
        }
    };
    rustls::crypto::ring::default_provider().install_default().unwrap();
    until(&peer.address, "/health", |health| health["status"] == "ok").await;
    let spec = ModelSpec {
        name: "local/llama".to_string(),
        dialect: Dialect::Openai,
        address: format!("{}/v1", peer.address),
        model: "any".to_string(),
        key_variable: None,
        window: 4_096,
        max_output: 512,
        most_output: None,
        price: None,
    };
    let model = OpenAi::new(&spec, None).unwrap();
    text_and_usage(&model).await;
    overflow(&model).await;
    cancel(&model, &peer.address).await;
    tools(&model).await;
    history(&model).await;
}
