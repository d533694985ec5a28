//! Servers on loopback that say what a test wants, names that lead where it wants, and calls of `web_fetch`.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use tiller::domain::approval::By;
use tiller::domain::id::CallId;
use tiller::domain::id::ClientId;
use tiller::domain::limits;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;
use tiller::domain::tool::CallState;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::Facts;
use tiller::domain::tool::Permit;
use tiller::domain::tool::ToolCall;
use tiller::domain::tool::ToolOutcome;
use tiller::tools::Executed;
use tiller::tools::Reins;
use tiller::tools::Scene;
use tiller::tools::Toolbox;
use tiller::tools::Veil;
use tiller::tools::sandbox::Sandbox;
use tiller::tools::web_fetch::WebFetch;
use tiller::tools::web_fetch::client::Names;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// What a server does with a connection, after it has read the request.
#[derive(Clone)]
pub enum Does {
    /// Says this and closes.
    Says(Vec<u8>),
    /// Says this and waits until the other side goes.
    Hangs(Vec<u8>),
    /// Says this, then goes on with these bytes again and again, until so many bytes are out or the other side goes.
    Floods(Vec<u8>, Vec<u8>, usize),
}

impl Does {
    /// An answer of this status with these header lines and this body.
    pub fn answers(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Does {
        let body = body.as_ref();
        let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let head = format!("HTTP/1.1 {status}\r\n{lines}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
        Does::Says([head.as_bytes(), body].concat())
    }

    /// A text.
    pub fn text(body: &str) -> Does {
        Does::answers("200 OK", &["content-type: text/plain"], body)
    }

    /// A redirect.
    pub fn leads(to: &str) -> Does {
        Does::answers("302 Found", &[&format!("location: {to}"), "set-cookie: a=b"], "")
    }
}

/// A server on loopback. It does one thing for each connection; the last again and again.
pub struct Server {
    pub port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    sent: Arc<AtomicUsize>,
}

impl Server {
    pub async fn new(does: impl IntoIterator<Item = Does>) -> Server {
        Server::at("127.0.0.1:0", does).await
    }

    pub async fn at(place: &str, does: impl IntoIterator<Item = Does>) -> Server {
        let listener = TcpListener::bind(place).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut does: VecDeque<Does> = does.into_iter().collect();
        let (requests, sent) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let server = Server { port, requests: requests.clone(), sent: sent.clone() };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let next = if does.len() > 1 { does.pop_front() } else { does.front().cloned() };
                tokio::spawn(serve(stream, next.unwrap(), requests.clone(), sent.clone()));
            }
        });
        server
    }

    /// The requests that came, as they came.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// How many bytes of answers were taken from it.
    pub fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }

    /// A URL there.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// It, as it is opened in the configuration.
    pub fn opened(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

async fn serve(mut stream: TcpStream, does: Does, requests: Arc<Mutex<Vec<String>>>, sent: Arc<AtomicUsize>) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            // Not HTTP, as whoever begins an encrypted connection speaks.
            Ok(byte) if request.is_empty() && !byte.is_ascii_uppercase() => break,
            Ok(byte) => request.push(byte),
            Err(_) => return,
        }
    }
    requests.lock().unwrap().push(String::from_utf8(request).unwrap());
    let (first, again, most) = match &does {
        Does::Says(first) | Does::Hangs(first) => (first, first, 0),
        Does::Floods(first, again, most) => (first, again, *most),
    };
    if stream.write_all(first).await.is_err() {
        return;
    }
    let mut out = 0;
    while out < most && stream.write_all(again).await.is_ok() {
        out += again.len();
        sent.store(out, Ordering::Relaxed);
    }
    if matches!(does, Does::Hangs(_)) {
        let _ = stream.read_u8().await;
    }
    let _ = stream.shutdown().await;
}

/// Names that lead where a test says: each look-up gives the next list, the last again and again.
pub struct Stub {
    lists: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl Stub {
    pub fn new(lists: &[&[&str]]) -> Arc<Stub> {
        let list = |list: &&[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
        Arc::new(Stub { lists: Mutex::new(lists.iter().map(list).collect()), asked: Mutex::default() })
    }

    /// The names that were looked up.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl Names for Stub {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.lock().unwrap().push(host.to_string());
        let mut lists = self.lists.lock().unwrap();
        let next = if lists.len() > 1 { lists.pop_front() } else { lists.front().cloned() };
        next.ok_or_else(|| io::Error::other("no such name"))
    }
}

/// Calls of `web_fetch`.
pub struct Bench {
    toolbox: Toolbox,
    pub cancel: CancellationToken,
}

impl Bench {
    pub fn new(opened: &[String]) -> Bench {
        Bench::with(opened, Stub::new(&[]), limits::FETCH_TIMEOUT)
    }

    pub fn with(opened: &[String], names: Arc<Stub>, time: Span) -> Bench {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut toolbox = Toolbox::new(Scene {
            workspace: PathBuf::from("/nowhere"),
            off_limits: Vec::new(),
            pre_images: None,
            program: PathBuf::from("/nowhere"),
            passed_variables: Vec::new(),
            sandbox: Sandbox::default(),
            git: tiller::tools::gits::own::Own::default(),
        });
        toolbox.add(Arc::new(WebFetch::with(opened, names, time)));
        Bench { toolbox, cancel: CancellationToken::new() }
    }

    /// The same behind a veil.
    pub fn behind(mut self, veil: Arc<dyn Veil>) -> Bench {
        self.toolbox = self.toolbox.behind(veil);
        self
    }

    /// A call as it stands when it was prepared.
    pub async fn call(&self, arguments: serde_json::Value) -> ToolCall {
        let mut call = ToolCall {
            state: CallState::Running,
            allowed: Some(By::Operator(ClientId("test".to_string()))),
            attempts: 1,
            ..ToolCall::proposed(
                CallId(1),
                "",
                "web_fetch",
                &arguments.to_string(),
                EffectClass::External,
                Timestamp(0),
            )
        };
        call.facts = Some(self.toolbox.prepare(&call).await);
        call
    }

    /// What a fetch would touch.
    pub async fn facts(&self, url: &str) -> Facts {
        self.call(serde_json::json!({ "url": url })).await.facts.unwrap()
    }

    pub async fn outcome(&self, arguments: serde_json::Value) -> ToolOutcome {
        let call = self.call(arguments).await;
        assert_eq!(call.facts.as_ref().unwrap().problem, None);
        let reins = Reins { deltas: broadcast::Sender::new(limits::DELTAS), cancel: self.cancel.clone() };
        match self.toolbox.execute(Permit::of(&call).unwrap(), reins).await {
            Executed::Ended(outcome) => outcome,
            Executed::Drifted(text) => panic!("drifted: {text}"),
        }
    }

    /// Fetches a URL: how it ended, and the result.
    pub async fn fetch(&self, url: &str) -> String {
        let outcome = self.outcome(serde_json::json!({ "url": url })).await;
        let class = outcome.class.map_or(String::new(), |class| format!(" {class:?}"));
        format!("{:?}{class}: {}", outcome.kind, outcome.text)
    }
}
