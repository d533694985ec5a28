//! The chat-completions adapter against the streams in `fixtures/streams`, which have the shapes that servers are known
//! to send, cut at every byte; and against servers that answer, refuse, hang and break off. The servers are a few lines of our own on a loopback port: what matters is each byte and when
//! it comes.

use std::io::ErrorKind;
use std::io::Read;
use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use std::time::Instant;

use crate::wire::read_request;
use secrecy::SecretString;
use serde_json::Value;
use tiller::domain::id::CallId;
use tiller::domain::id::InterjectionId;
use tiller::domain::id::ModelCallId;
use tiller::domain::id::Seq;
use tiller::domain::limits::REPLY_MAX_BYTES;
use tiller::domain::message::Entry;
use tiller::domain::message::Message;
use tiller::domain::message::ToolUse;
use tiller::domain::message::Transcript;
use tiller::domain::model::Delta;
use tiller::domain::model::Dialect;
use tiller::domain::model::FailureClass;
use tiller::domain::model::ModelFailure;
use tiller::domain::model::ModelReply;
use tiller::domain::model::ModelRequest;
use tiller::domain::model::ModelSpec;
use tiller::domain::model::Purpose;
use tiller::domain::model::StopReason;
use tiller::domain::status::Phase;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;
use tiller::domain::tool::OutcomeKind;
use tiller::model::Model;
use tiller::model::http::Quote;
use tiller::model::http::Timeouts;
use tiller::model::incoming::Incoming;
use tiller::model::openai::OpenAi;
use tiller::model::openai::decode::Decoder;
use tiller::model::openai::decode::Fault;
use tokio::sync::broadcast;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

// --- streams ---

fn decode(parts: &[&[u8]]) -> Result<ModelReply, Fault> {
    let incoming = Incoming::new(ModelCallId(1), broadcast::channel(1).0);
    let mut decoder = Decoder::new(incoming, Quote::default());
    for part in parts {
        decoder.push(part)?;
    }
    decoder.end()?;
    Ok(decoder.into_reply())
}

/// A reply or a fault as a few lines.
fn show(outcome: &Result<ModelReply, Fault>) -> String {
    let reply = match outcome {
        Ok(reply) => reply,
        Err(fault) => return format!("{:?}: {}", fault.class, fault.message),
    };
    let mut lines = vec![format!("{:?} {:?}", reply.text, reply.stop)];
    if !reply.reasoning.is_empty() {
        lines.push(format!("reasoning {:?}", reply.reasoning));
    }
    for call in &reply.calls {
        lines.push(format!("{} {} {}", call.id, call.name, call.arguments));
    }
    if let Some(usage) = &reply.usage {
        let (input, cached) = (usage.input, usage.cache_read);
        lines.push(format!("{input} + {cached} cached in, {} out, {} reasoning", usage.output, usage.reasoning));
    }
    lines.join("\n")
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/fixtures/streams/{name}.sse", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Decodes a stream whole, byte by byte, and cut at every byte: always the same. And without its end, cut
/// off at every byte: the same reply, possibly without its usage, or a broken stream.
fn check(name: &str, expected: &str) {
    let stream = fixture(name);
    let whole = decode(&[&stream]);
    assert_eq!(show(&whole), expected, "{name}");
    assert_eq!(decode(&stream.chunks(1).collect::<Vec<_>>()), whole, "{name} byte by byte");
    for at in 0..stream.len() {
        let (first, second) = stream.split_at(at);
        assert_eq!(decode(&[first, second]), whole, "{name} cut at {at}");
        match (decode(&[first]), &whole) {
            (Ok(reply), Ok(whole)) => {
                let usage = reply.usage.or(whole.usage);
                assert_eq!(ModelReply { usage, ..reply }, *whole, "{name} cut off at {at}");
            }
            (Ok(reply), Err(_)) => panic!("{name} cut off at {at} gives {reply:?}"),
            (Err(fault), Err(whole)) if fault == *whole => {}
            (Err(fault), _) => assert_eq!(fault.class, FailureClass::StreamBroken, "{name} cut off at {at}"),
        }
    }
}

#[test]
fn streams_are_decoded_however_they_are_cut() {
    const TEXT: &str = "\"Grüße, operator ✓\" End\n176 + 1024 cached in, 9 out, 0 reasoning";
    check("text", TEXT);
    check("crlf", TEXT);
    check("heartbeats", TEXT);
    check("usage_missing", "\"Grüße, operator ✓\" End");
    check("one_call", "\"\" Calls\ncall_1 read_file {\"path\":\"src/ü.rs\"}\n900 + 0 cached in, 20 out, 0 reasoning");
    check(
        "two_calls",
        "\"I look at both.\" Calls\ncall_a read_file {\"path\":\"a\"}\ncall_b shell {\"command\":\"ls\"}\n\
         900 + 0 cached in, 40 out, 0 reasoning",
    );
    check(
        "llama_cpp",
        "\"\" Calls\nreasoning \"Which file?\"\n0123456789abcdefghijABCDEFGHIJ45 read_file {\"path\":\"check.sh\"}\n\
         18 + 200 cached in, 31 out, 0 reasoning",
    );
    check(
        "ollama",
        "\"\" Calls\nreasoning \"Both.\"\ncall_x1 list_dir {\"path\":\".\"}\ncall_x2 list_dir {\"path\":\"src\"}\n\
         154 + 0 cached in, 22 out, 0 reasoning",
    );
    check("lax", "\"Hm\" Calls\n shell {\"a\":1}\nz note {\"b\":2}\n20 + 30 cached in, 12 out, 7 reasoning");
    check("refusal", "\"I can't help with that.\" Refused\n30 + 0 cached in, 7 out, 0 reasoning");
    check(
        "not_streamed",
        "\"all at once\" Calls\nreasoning \"hm\"\ncall_1 shell {\"command\":\"ls\"}\n\
         10 + 0 cached in, 4 out, 0 reasoning",
    );
    check("truncated", "StreamBroken: the connection was closed before the reply was whole");
    check(
        "error_inside",
        "StreamBroken: the provider broke the reply off with an error: \
         The model produced output that does not match the expected format",
    );
}

#[test]
fn reasons_to_stop_are_understood() {
    let stop = |finish: &str| {
        let event =
            format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"x\"}},\"finish_reason\":\"{finish}\"}}]}}\n\n");
        decode(&[event.as_bytes()]).unwrap().stop
    };
    assert_eq!(stop("stop"), StopReason::End);
    assert_eq!(stop("length"), StopReason::Length);
    assert_eq!(stop("content_filter"), StopReason::Refused);
    assert_eq!(stop("pause_turn"), StopReason::Paused);
    assert_eq!(stop("tool_calls"), StopReason::End);
    assert_eq!(stop(&"odd ".repeat(1_000)), StopReason::Other(format!("{}…", "odd ".repeat(10).split_at(39).0)));
}

#[test]
fn what_is_no_reply_is_no_success() {
    let class = |bytes: &[u8]| decode(&[bytes]).unwrap_err().class;
    assert_eq!(class(b""), FailureClass::StreamBroken);
    assert_eq!(class(b"\n \n"), FailureClass::StreamBroken);
    assert_eq!(class(b"<!doctype html><p>hello\n\n"), FailureClass::StreamBroken);
    assert_eq!(class(b"{}"), FailureClass::StreamBroken);
    assert_eq!(class(b"data: [DONE]\n\n"), FailureClass::StreamBroken);
    assert_eq!(class(b"data: []\n\n"), FailureClass::StreamBroken);
    assert_eq!(class(b"data: {\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"}}]}\n\n"), FailureClass::StreamBroken);
    assert_eq!(class(b"data: \xFF\n\n"), FailureClass::StreamBroken);
    let deep = [b"data: ".as_slice(), &b"[".repeat(100_000), b"\n\n"].concat();
    assert_eq!(class(&deep), FailureClass::StreamBroken);
    assert_eq!(class(b"{\"error\":{\"message\":\"insufficient_quota\"}}"), FailureClass::Billing);
}

#[test]
fn text_and_reasoning_in_circles_are_broken_off() {
    let words = "I will look at the file again and then look at it ";
    for field in ["content", "reasoning"] {
        let event = format!("data: {{\"choices\":[{{\"delta\":{{\"{field}\":\"{words}\"}}}}]}}\n\n");
        let mut decoder = Decoder::new(Incoming::new(ModelCallId(1), broadcast::channel(1).0), Quote::default());
        let (times, fault) = (1..100).find_map(|times| Some((times, decoder.push(event.as_bytes()).err()?))).unwrap();
        assert_eq!((times, fault.class), (10, FailureClass::Degenerate));
        assert!(fault.message.contains("it kept saying \"I will look"), "{}", fault.message);
    }
}

#[test]
fn s_53_content_of_an_unknown_kind_is_kept_as_it_came() {
    let event = "data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"hologram\",\"data\":[1]}]},\
                 \"finish_reason\":\"stop\"}]}\n\n";
    let reply = decode(&[event.as_bytes()]).unwrap();
    assert_eq!((reply.text.as_str(), reply.usage), ("a", None));
    assert_eq!(reply.opaque, ["{\"type\":\"hologram\",\"data\":[1]}"]);
    let many = "{\"type\":\"hologram\"},".repeat(100);
    let event =
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":[{many}{{}}]}},\"finish_reason\":\"stop\"}}]}}\n\n");
    assert_eq!(decode(&[event.as_bytes()]).unwrap().opaque.len(), 16);
}

#[test]
fn endless_replies_are_ended() {
    let event = |delta: &str| format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n");
    let endless = |event: String| {
        let incoming = Incoming::new(ModelCallId(1), broadcast::channel(1).0);
        let mut decoder = Decoder::new(incoming, Quote::default());
        let fault = (0..100_000).find_map(|_| decoder.push(event.as_bytes()).err()).unwrap();
        assert_eq!(fault.class, FailureClass::Endless);
        decoder.received()
    };
    // A line of a list, which may say the same again and again.
    let long = format!("- {}", "x".repeat(10_000));
    for delta in [
        format!("{{\"content\":\"{long}\"}}"),
        format!("{{\"reasoning\":\"{long}\"}}"),
        format!("{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":\"{long}\"}}}}]}}"),
        format!("{{\"tool_calls\":[{{\"function\":{{\"name\":\"{long}\"}}}}]}}"),
    ] {
        assert_eq!(endless(event(&delta)).bytes, REPLY_MAX_BYTES as u64);
    }
    assert_eq!(endless(event("{\"tool_calls\":[{\"function\":{\"name\":\"x\"}}]}")).bytes, 256);
    assert_eq!(endless(format!(": {long}\n\n")).bytes, 0);
    assert_eq!(endless(long.clone()).bytes, 0);
    assert_eq!(endless(format!("data: {long}\n")).bytes, 0);
    assert_eq!(endless(format!("{{\"x\":\"{long}")).bytes, 0);
}

#[test]
fn random_bytes_and_damaged_streams_never_panic() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    for _ in 0..2_000 {
        let noise: Vec<u8> = (0..random(300)).map(|_| u8::try_from(random(256)).unwrap()).collect();
        assert!(decode(&[&noise]).is_err());
    }
    for name in ["text", "two_calls", "lax", "ollama", "not_streamed"] {
        let stream = fixture(name);
        for _ in 0..1_000 {
            let mut damaged = stream.clone();
            for _ in 0..=random(3) {
                let at = random(damaged.len());
                damaged[at] = u8::try_from(random(256)).unwrap();
            }
            let at = random(damaged.len());
            let (first, second) = damaged.split_at(at);
            assert_eq!(decode(&[first, second]), decode(&[&damaged]));
        }
    }
}

// --- servers ---

/// What a server does after it has read the request.
enum Act {
    Send(Vec<u8>),
    Pause(Duration),
    /// Says that the request is there.
    Tell(oneshot::Sender<()>),
    /// Waits until the client closes the connection.
    Hang,
}

/// A server for one request on a port of its own; joined, it gives the request as it came.
struct Server {
    address: String,
    listener: TcpListener,
    thread: JoinHandle<String>,
}

impl Server {
    /// Waits for the server's end; the client goes on meanwhile, and so can close its connection.
    async fn join(self) -> String {
        tokio::task::spawn_blocking(|| self.thread.join().unwrap()).await.unwrap()
    }
}

fn serve(acts: Vec<Act>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let accepting = listener.try_clone().unwrap();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = accepting.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let request = read_request(&mut stream).unwrap().unwrap();
        for act in acts {
            match act {
                // A client that has seen enough may be gone.
                Act::Send(bytes) => drop(stream.write_all(&bytes)),
                Act::Tell(sender) => sender.send(()).unwrap(),
                Act::Pause(time) => std::thread::sleep(time),
                Act::Hang => match stream.read(&mut [0; 16]) {
                    Ok(count) => assert_eq!(count, 0, "the client says more"),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "the client hangs on"),
                },
            }
        }
        request
    });
    Server { address, listener, thread }
}

fn head(status: &str, headers: &str) -> Act {
    Act::Send(format!("HTTP/1.1 {status}\r\nConnection: close\r\n{headers}\r\n").into_bytes())
}

fn stream(name: &str) -> Vec<Act> {
    vec![head("200 OK", "Content-Type: text/event-stream\r\n"), Act::Send(fixture(name))]
}

fn refuse(status: &str, headers: &str, body: &str) -> Vec<Act> {
    let headers = format!("{headers}Content-Length: {}\r\n", body.len());
    vec![head(status, &headers), Act::Send(body.as_bytes().to_vec())]
}

const SOON: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    first_byte: Duration::from_millis(300),
    between: Duration::from_millis(300),
};

fn model(address: &str, timeouts: Timeouts) -> OpenAi {
    // Another test may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let spec = ModelSpec {
        name: "local/tiny".to_string(),
        dialect: Dialect::Openai,
        address: address.to_string(),
        model: "tiny".to_string(),
        key_variable: None,
        window: 4_096,
        max_output: 512,
        most_output: None,
        price: None,
    };
    OpenAi::with_timeouts(&spec, Some(SecretString::from("sk-very-secret")), timeouts).unwrap()
}

fn request() -> ModelRequest {
    let entry = |message| Arc::new(Entry { iteration: 1, at: Timestamp(0), seq: Seq(0), message });
    let uses = vec![ToolUse {
        id: CallId(1),
        wire_id: "call_1".to_string(),
        tool: "shell".to_string(),
        arguments: "{}".to_string(),
        seq: Seq(0),
    }];
    ModelRequest {
        call: ModelCallId(1),
        attempt: 1,
        iteration: 1,
        phase: Phase::Pursue,
        purpose: Purpose::Turn,
        talk: Transcript::default(),
        system: "be good".to_string(),
        entries: Transcript::from_iter([
            entry(Message::Operator { id: InterjectionId(1), text: "hello".to_string() }),
            entry(Message::Assistant { call: ModelCallId(1), phase: Phase::Pursue, text: String::new(), uses }),
            entry(Message::ToolResult {
                call: CallId(1),
                kind: OutcomeKind::Done,
                text: "fine".to_string(),
                bytes: 4,
                title: String::new(),
                took: Span(1),
            }),
        ]),
        closing: "go on".to_string(),
        offer: Arc::default(),
        max_output: 512,
        temperature_percent: None,
    }
}

async fn call(address: &str, timeouts: Timeouts) -> Result<ModelReply, ModelFailure> {
    model(address, timeouts).call(request(), broadcast::channel(64).0, CancellationToken::new()).await
}

async fn failure(acts: Vec<Act>, timeouts: Timeouts) -> ModelFailure {
    let server = serve(acts);
    let failure = call(&server.address, timeouts).await.unwrap_err();
    server.join().await;
    assert!(!failure.message.contains("very-secret"), "{}", failure.message);
    failure
}

#[tokio::test]
async fn a_reply_is_asked_for_and_streamed() {
    let server = serve(stream("text"));
    let (deltas, mut shown) = broadcast::channel(64);
    let outcome = model(&server.address, Timeouts::default()).call(request(), deltas, CancellationToken::new()).await;
    let reply = outcome.unwrap();
    assert_eq!((reply.text.as_str(), reply.usage.unwrap().cache_read), ("Grüße, operator ✓", 1_024));
    let mut seen = Vec::new();
    while let Ok(Delta { text, .. }) = shown.try_recv() {
        seen.push(text);
    }
    assert_eq!(seen, ["Grüße", ", operator ✓"]);

    let request = server.join().await;
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let head = head.to_lowercase();
    assert!(head.starts_with("post /v1/chat/completions http/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nauthorization: bearer sk-very-secret"), "{head}");
    assert!(head.contains("\r\ncontent-type: application/json"), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["model"], "tiny");
    assert_eq!(body["max_tokens"], 512);
    assert_eq!(body["stream_options"]["include_usage"], true);
    assert_eq!(body["messages"][3]["tool_call_id"], "call_1");
    assert_eq!(body.get("temperature"), None);
}

#[tokio::test]
async fn refusals_are_classified_and_never_tell_the_key() {
    let echo = r#"{"error":{"message":"bad key: Bearer sk-very-secret\u001b[2J"}}"#;
    let failed = failure(refuse("401 Unauthorized", "", echo), SOON).await;
    assert_eq!((failed.class, failed.received.accepted), (FailureClass::Auth, false));
    assert_eq!(failed.message, "127.0.0.1 answered 401: bad key: Bearer [key] [2J");

    let failed = failure(refuse("429 Slow", "Retry-After: 7\r\n", r#"{"error":{"message":"slow"}}"#), SOON).await;
    assert_eq!((failed.class, failed.retry_after), (FailureClass::RateLimited, Some(Span(7_000))));
    assert!(!failed.received.accepted);

    let long = r#"{"error":{"code":400,"message":"too long","type":"exceed_context_size_error"}}"#;
    let failed = failure(refuse("400 Bad", "", long), SOON).await;
    assert_eq!((failed.class, failed.received.accepted), (FailureClass::ContextLength, false));

    let failed = failure(refuse("500 Oh", "", "oh"), SOON).await;
    assert_eq!((failed.class, failed.received.accepted), (FailureClass::Overloaded, true));
    let failed = failure(refuse("503 Oh", "", ""), SOON).await;
    assert_eq!((failed.class, failed.received.accepted), (FailureClass::Overloaded, false));

    let failed = failure(refuse("400 Bad", "", &"x".repeat(1_000_000)), Timeouts::default()).await;
    assert_eq!(failed.class, FailureClass::BadRequest);
    assert!(failed.message.len() < 1_000, "{}", failed.message.len());

    let inside = "data: {\"error\":\"your key sk-very-secret is bad\"}\n\n".as_bytes().to_vec();
    let failed = failure(vec![head("200 OK", ""), Act::Send(inside)], SOON).await;
    assert_eq!((failed.class, failed.received.accepted), (FailureClass::StreamBroken, true));
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    let location = format!("Location: http://{}/v1\r\n", elsewhere.local_addr().unwrap());
    let failed = failure(refuse("307 Elsewhere", &location, ""), SOON).await;
    assert_eq!((failed.class, failed.received.accepted), (FailureClass::ModelConfig, false));
    assert!(failed.message.contains("redirect"), "{}", failed.message);
    elsewhere.set_nonblocking(true).unwrap();
    assert_eq!(elsewhere.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[tokio::test]
async fn silence_is_bounded() {
    let failed = failure(vec![Act::Hang], SOON).await;
    assert_eq!((failed.class, failed.received.accepted), (FailureClass::StreamStalled, true));

    let failed = failure(vec![head("200 OK", ""), Act::Hang], SOON).await;
    assert_eq!(failed.class, FailureClass::StreamStalled);

    let mut acts = stream("truncated");
    acts.push(Act::Hang);
    let failed = failure(acts, SOON).await;
    assert_eq!((failed.class, failed.received.text.as_str()), (FailureClass::StreamStalled, "Grüße, operator ✓"));

    let failed = failure(vec![head("500 Oh", "Content-Length: 100\r\n"), Act::Hang], SOON).await;
    assert_eq!(failed.class, FailureClass::Overloaded);
}

#[tokio::test]
async fn heartbeats_are_no_silence() {
    let beat = || [Act::Send(b": still here\n\n".to_vec()), Act::Pause(Duration::from_millis(250))];
    let mut acts = vec![head("200 OK", "")];
    acts.extend((0..6).flat_map(|_| beat()));
    acts.push(Act::Send(fixture("text")));
    let server = serve(acts);
    let timeouts = Timeouts { first_byte: Duration::from_secs(1), between: Duration::from_secs(1), ..SOON };
    assert!(call(&server.address, timeouts).await.is_ok());
}

#[tokio::test]
async fn broken_connections_are_failures_unless_only_the_goodbye_is_missing() {
    let failed = failure(stream("truncated"), SOON).await;
    assert_eq!((failed.class, failed.received.text.as_str()), (FailureClass::StreamBroken, "Grüße, operator ✓"));
    assert_eq!((failed.received.accepted, failed.received.usage), (true, None));

    let mut acts = stream("truncated");
    acts[0] = head("200 OK", "Content-Length: 100000\r\n");
    assert_eq!(failure(acts, SOON).await.class, FailureClass::StreamBroken);

    let failed = failure(vec![], SOON).await;
    assert_eq!((failed.class, failed.received.accepted), (FailureClass::Network, true));

    // All of a reply, then silence instead of an end.
    let server = serve(vec![head("200 OK", ""), Act::Send(fixture("lax")), Act::Hang]);
    let reply = call(&server.address, SOON).await.unwrap();
    assert_eq!((reply.calls.len(), reply.usage.unwrap().output), (2, 12));
}

#[tokio::test]
async fn nobody_there_costs_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let failed = call(&address, SOON).await.unwrap_err();
    assert_eq!((failed.class, failed.received.accepted), (FailureClass::NoServer, false));
    let told = failed.message.strip_prefix(&format!("no server runs at {address}: ")).unwrap();
    assert!(told.contains("refused"), "{told}");
}

#[tokio::test]
async fn a_conversation_out_of_order_is_not_sent() {
    let server = serve(vec![]);
    let mut request = request();
    request.entries = request.entries.entries().take(2).cloned().collect();
    let outcome = model(&server.address, SOON).call(request, broadcast::channel(1).0, CancellationToken::new()).await;
    let failed = outcome.unwrap_err();
    assert_eq!((failed.class, failed.received.accepted), (FailureClass::BadRequest, false));
    assert!(failed.message.contains("nothing was sent"), "{}", failed.message);
    server.listener.set_nonblocking(true).unwrap();
    assert_eq!(server.listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[tokio::test]
async fn cancel_ends_a_call_at_any_point() {
    for begins in ["", "truncated"] {
        let (sender, there) = oneshot::channel();
        let mut acts = if begins.is_empty() { vec![] } else { stream(begins) };
        acts.extend([Act::Tell(sender), Act::Hang]);
        let server = serve(acts);
        let (deltas, mut shown) = broadcast::channel(64);
        let cancel = CancellationToken::new();
        let (token, address) = (cancel.clone(), server.address.clone());
        let running =
            tokio::spawn(async move { model(&address, Timeouts::default()).call(request(), deltas, token).await });
        there.await.unwrap();
        if !begins.is_empty() {
            shown.recv().await.unwrap();
        }
        let began = Instant::now();
        cancel.cancel();
        let failed = running.await.unwrap().unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(1));
        assert_eq!((failed.class, failed.received.accepted), (FailureClass::Cancelled, true));
        assert_eq!(failed.received.text.is_empty(), begins.is_empty());
        // The server sees the connection close.
        server.join().await;
    }
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let server = serve(vec![]);
    let failed = model(&server.address, SOON).call(request(), broadcast::channel(1).0, cancelled).await.unwrap_err();
    assert_eq!((failed.class, failed.received.accepted), (FailureClass::Cancelled, false));
}
