//! A provider on this machine that tells a life's steps and keeps its own account of what it is owed.

use std::io::Write;
use std::net::TcpListener;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use serde_json::json;

use crate::kills::script::Step;
use crate::wire::read_request;

/// Micro-dollars a token, of input and of output: a dollar and five a million tokens.
const PRICE: (u64, u64) = (1, 5);

pub struct Provider {
    address: String,
    account: Arc<Account>,
}

#[derive(Default)]
struct Account {
    /// What is owed for every request that was served, in micro-dollars.
    owed: AtomicU64,
    served: AtomicU64,
    closed: AtomicBool,
}

impl Provider {
    pub fn start(steps: Vec<Step>) -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let account = Arc::new(Account::default());
        let (steps, kept) = (Arc::new(steps), account.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if kept.closed.load(Ordering::SeqCst) {
                    return;
                }
                let (steps, kept) = (steps.clone(), kept.clone());
                // A client that was killed is gone in the middle of its answer, which concerns nobody here.
                std::thread::spawn(move || drop(serve(stream, &steps, &kept)));
            }
        });
        Provider { address, account }
    }

    pub fn configuration(&self) -> String {
        format!(
            "model = \"near/m\"\n[providers.near]\nbase_url = \"http://{}/v1\"\n[models.\"near/m\"]\nwindow = 200000\n\
             price = {{ input = \"1.00\", output = \"5.00\" }}\n",
            self.address
        )
    }

    pub fn owed(&self) -> u64 {
        self.account.owed.load(Ordering::SeqCst)
    }

    pub fn served(&self) -> u64 {
        self.account.served.load(Ordering::SeqCst)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.account.closed.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        drop(TcpStream::connect(&self.address));
    }
}

fn serve(mut stream: TcpStream, steps: &[Step], account: &Account) -> std::io::Result<()> {
    let Some(request) = read_request(&mut stream)? else { return Ok(()) };
    let body = request.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    let request: Value = serde_json::from_str(body)?;
    let told =
        request["messages"].as_array().map_or(0, |all| all.iter().filter(|one| one["role"] == "assistant").count());
    let nothing = Step { text: "the script ends here".to_string(), calls: Vec::new(), fails: None };
    let step = steps.get(told).unwrap_or(&nothing);
    let (input, output) = (body.len() as u64 / 4, 12 + step.calls.len() as u64 * 20);
    // Owed from the moment at which the request was taken, whoever hears the answer.
    account.owed.fetch_add(input * PRICE.0 + output * PRICE.1, Ordering::SeqCst);
    account.served.fetch_add(1, Ordering::SeqCst);
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    for word in step.text.split_inclusive(' ') {
        event(
            &mut stream,
            &json!({ "choices": [{ "index": 0, "delta": { "content": word }, "finish_reason": null }] }),
        )?;
        std::thread::sleep(Duration::from_millis(1));
    }
    for (index, (tool, arguments)) in step.calls.iter().enumerate() {
        let function = json!({ "name": tool, "arguments": arguments.to_string() });
        let call =
            json!({ "index": index, "id": format!("p{told}-{index}"), "type": "function", "function": function });
        event(
            &mut stream,
            &json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] }, "finish_reason": null }] }),
        )?;
    }
    let reason = if step.calls.is_empty() { "stop" } else { "tool_calls" };
    event(&mut stream, &json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] }))?;
    let usage = json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output });
    event(&mut stream, &json!({ "choices": [], "usage": usage }))?;
    write!(stream, "data: [DONE]\n\n")
}

fn event(stream: &mut TcpStream, data: &Value) -> std::io::Result<()> {
    write!(stream, "data: {data}\n\n")?;
    stream.flush()
}
