//! Where an answer leads: followed at the same place, told everywhere else.

use crate::fetch::stage::Bench;
use crate::fetch::stage::Does;
use crate::fetch::stage::Server;

#[tokio::test]
async fn redirects_at_the_same_place_are_followed() {
    let server = Server::new([Does::leads("/b?x=1#part"), Does::leads("c"), Does::text("there")]).await;
    let said = Bench::new(&[server.opened()]).fetch(&server.url("/a/")).await;
    let url = server.url("/c");
    assert!(said.starts_with(&format!("Done: {url}: status 200, text/plain, 5 bytes, after 2 redirects\n")), "{said}");
    let requests = server.requests();
    let lines: Vec<&str> = requests.iter().map(|request| request.lines().next().unwrap()).collect();
    assert_eq!(lines, ["GET /a/ HTTP/1.1", "GET /b?x=1 HTTP/1.1", "GET /c HTTP/1.1"]);
    for request in &requests {
        let low = request.to_ascii_lowercase();
        assert!(!low.contains("cookie") && !low.contains("referer"), "{request}");
    }
}

/// What a redirect is answered with, and that nothing came of it.
async fn check(to: &str, why: &str) {
    let server = Server::new([Does::leads(to), Does::text("followed")]).await;
    let said = Bench::new(&[server.opened()]).fetch(&server.url("/a")).await;
    assert!(said.starts_with(&format!("Done: {} answered 302 and leads to ", server.url("/a"))), "{to}: {said}");
    assert!(said.contains(&format!("It was not followed: {why}. No text was fetched; ")), "{to}: {said}");
    assert!(!said.contains("followed\n") && server.requests().len() == 1, "{to}: {said}");
}

#[tokio::test]
async fn other_places_are_told_and_not_asked() {
    let other = "that is another scheme, host or port";
    check("https://example.invalid/?d=1", other).await;
    check("//example.invalid/", other).await;
    check("http://127.0.0.1/", other).await;
    check("http://127.0.0.2/", other).await;
    check("http://localhost/", other).await;
    check("http://169.254.169.254/latest/meta-data/", other).await;
    check("file:///etc/passwd", other).await;
    check("data:text/plain,x", other).await;
    check("javascript:1", other).await;
    check("http://", "that is no URL").await;
    check("http://[", "that is no URL").await;
    check("http://me:secret@127.0.0.1/", "a name or a password was in it, which is left out here").await;
    check(&format!("/?{}", "x".repeat(300)), "it would tell the host more than was allowed").await;
}

/// exfiltration-09. Two servers that are both open: each is a decision of its own.
#[tokio::test]
async fn another_open_port_is_another_place() {
    let second = Server::new([Does::text("second")]).await;
    let first = Server::new([Does::leads(&second.url("/?d=1"))]).await;
    let opened = [first.opened(), second.opened()];
    let said = Bench::new(&opened).fetch(&first.url("/")).await;
    assert!(said.contains(&format!("leads to {} .", second.url("/?d=1"))), "{said}");
    assert!(second.requests().is_empty());

    // A client that follows gets there, and the next call, judged anew, does too.
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    assert_eq!(client.get(first.url("/")).send().await.unwrap().text().await.unwrap(), "second");
    assert!(Bench::new(&opened).fetch(&second.url("/?d=1")).await.ends_with("second"));
    assert_eq!(second.requests().len(), 2);
}

#[tokio::test]
async fn circles_end() {
    let server = Server::new([Does::leads("/again")]).await;
    let said = Bench::new(&[server.opened()]).fetch(&server.url("/")).await;
    assert!(said.contains("It was not followed: it was the last of too many"), "{said}");
    assert_eq!(server.requests().len(), 6);
}

#[tokio::test]
async fn an_answer_that_leads_nowhere_is_an_answer() {
    let server = Server::new([Does::answers("302 Found", &["content-type: text/plain"], "gone")]).await;
    let said = Bench::new(&[server.opened()]).fetch(&server.url("/")).await;
    assert!(said.starts_with("Failed: ") && said.ends_with("gone"), "{said}");
}
