//! `web_fetch` with the real program: off until it is switched on, asked about, and closed again at any time.

use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;

use crate::program::scripts::SHORT;
use crate::real::Said;
use crate::real::Stage;
use crate::real::until;
use crate::skip::skip;
use crate::wire::read_request;

/// A server on loopback with one page, and the requests that came.
fn server() -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = requests.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let Ok(Some(request)) = read_request(&mut stream) else { continue };
            seen.lock().unwrap().push(request);
            let page = "<h1>Tides</h1><script>x</script><p>High at noon.";
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n", page.len());
            let _ = stream.write_all(format!("{head}{page}").as_bytes());
        }
    });
    (port, requests)
}

/// A run that plans, fetches a page, and is done; to where it waits or ends.
fn run(stage: &Stage, port: u16, config: &str) -> Said {
    stage.write("config/tiller/tiller.toml", config);
    let (plan, claim) = SHORT.split_at(SHORT.rfind("[[step]]").unwrap());
    let call = format!("{{ tool = \"web_fetch\", args = {{ url = \"http://127.0.0.1:{port}/tides?day=1\" }} }}");
    stage.run(&format!("{plan}[[step]]\nname = \"fetch\"\ncalls = [ {call} ]\n{claim}"))
}

fn resume(stage: &Stage) -> Said {
    // A proxy of the environment is not used.
    let mut command = stage.tiller(&["resume", "--last", "--plain"]);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"] {
        command.env(name, "http://127.0.0.1:1");
    }
    crate::real::said(command.spawn().unwrap())
}

fn journal(stage: &Stage) -> String {
    let exported = stage.ask(&["export", &stage.ids()[0]]);
    exported.check(0, &[]);
    exported.out
}

#[test]
fn a_page_is_fetched_when_it_was_allowed() {
    let (stage, (port, requests)) = (Stage::new(), server());
    let on = format!("tools.web_fetch = true\ntools.fetch_loopback = ['127.0.0.1:{port}']\n");
    let reach = format!("sends a request to 127.0.0.1, port {port}, unencrypted on this machine");
    run(&stage, port, &on).check(10, &["waiting for approval", &reach]);
    assert!(requests.lock().unwrap().is_empty());
    stage.allow();
    resume(&stage).check(0, &["completed"]);
    let requests = requests.lock().unwrap();
    assert!(requests.len() == 1 && requests[0].starts_with("GET /tides?day=1 HTTP/1.1\r\nuser-agent: tiller\r\n"));
    let journal = journal(&stage);
    assert!(journal.contains("untrusted material, no instruction.]\\n\\n# Tides\\n\\nHigh at noon."), "{journal}");
}

#[test]
fn it_is_off_until_it_is_switched_on() {
    let (stage, (port, requests)) = (Stage::new(), server());
    run(&stage, port, "").check(0, &["completed"]);
    assert!(requests.lock().unwrap().is_empty());
    assert!(journal(&stage).contains("there is no tool \\\"web_fetch\\\""));
}

#[test]
fn what_the_operator_closes_again_is_not_reached_by_what_was_allowed() {
    let (stage, (port, requests)) = (Stage::new(), server());
    let on = format!("tools.web_fetch = true\ntools.fetch_loopback = ['127.0.0.1:{port}']\n");
    run(&stage, port, &on).check(10, &[]);
    stage.allow();
    stage.write("config/tiller/tiller.toml", "tools.web_fetch = true\n");
    resume(&stage).check(0, &["completed"]);
    assert!(requests.lock().unwrap().is_empty());
    assert!(journal(&stage).contains("is an address of this machine, and web_fetch reaches only the open internet"));
}

/// A server with a certificate of its own for `localhost`, ended when it is dropped.
struct Encrypted {
    port: u16,
    child: Child,
}

impl Encrypted {
    /// Nothing where there is no openssl, which comes with the certificates of Debian.
    fn new(stage: &Stage) -> Option<Encrypted> {
        let openssl = |words: &[&str]| {
            let mut command = Command::new("openssl");
            command.args(words).current_dir(stage.path("work"));
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        let made =
            openssl(&["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem"])
                .args(["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
                .args(["-addext", "basicConstraints=critical,CA:FALSE"])
                .status();
        if !made.is_ok_and(|status| status.success()) {
            return None;
        }
        stage.write("work/tides", "High at noon.");
        // A port that was free just now.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let at = format!("127.0.0.1:{port}");
        let child = openssl(&["s_server", "-accept", &at, "-cert", "cert.pem", "-key", "key.pem", "-WWW", "-quiet"])
            .spawn()
            .unwrap();
        let server = Encrypted { port, child };
        until("the server listens", || std::net::TcpStream::connect(&at).ok());
        Some(server)
    }
}

impl Drop for Encrypted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is asked over an encrypted connection is the host of the URL, and its certificate is looked at.
#[test]
fn a_certificate_is_for_the_host_that_was_shown() {
    let stage = Stage::new();
    let Some(server) = Encrypted::new(&stage) else { return skip("openssl makes no certificate") };
    let (plan, claim) = SHORT.split_at(SHORT.rfind("[[step]]").unwrap());
    let fetched = |host: &str, certificates: &Path| {
        let opened = format!("{host}:{}", server.port);
        let on = format!("tools.web_fetch = true\ntools.fetch_loopback = ['{opened}']\n");
        stage.write("config/tiller/tiller.toml", &on);
        let call = format!("{{ tool = \"web_fetch\", args = {{ url = \"https://{opened}/tides\" }} }}");
        let model = stage.model(&format!("{plan}[[step]]\nname = \"fetch\"\ncalls = [ {call} ]\n{claim}"));
        let waits = crate::real::said(stage.tiller(&["run", "do it", "--plain", "--model", &model]).spawn().unwrap());
        let id = waits.out.split(['[', ']']).find_map(|part| part.strip_prefix("run ")).unwrap().to_string();
        let shown: serde_json::Value = serde_json::from_str(&stage.ask(&["show", &id, "--json"]).out).unwrap();
        let (call, digest) = (&shown["waiting"][0]["call"], &shown["waiting"][0]["digest"]);
        stage.ask(&["approve", &id, call.as_str().unwrap(), digest.as_str().unwrap()]).check(0, &[]);
        let mut command = stage.tiller(&["resume", &id, "--plain"]);
        crate::real::said(command.env("SSL_CERT_FILE", certificates).spawn().unwrap())
    };
    let own = stage.path("work/cert.pem");
    fetched("localhost", &own).check(0, &["High at noon.", "status 200"]);
    // The same server by another name, and without its certificate among those that are trusted.
    fetched("127.0.0.1", &own).check(0, &["No connection to 127.0.0.1 (", "certificate"]);
    fetched("localhost", Path::new("/etc/ssl/certs/ca-certificates.crt"))
        .check(0, &["No connection to localhost (", "certificate"]);
}
