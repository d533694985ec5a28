//! Names and their addresses: looked up once, judged all, and nothing else is connected to.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::Addrs;
use reqwest::dns::Name;
use reqwest::dns::Resolve;
use reqwest::dns::Resolving;
use tiller::domain::limits;
use tiller::tools::web_fetch::client::Names;

use crate::fetch::stage::Bench;
use crate::fetch::stage::Does;
use crate::fetch::stage::Server;
use crate::fetch::stage::Stub;

/// A client without the pin: it looks a name up again when it connects, as clients do.
struct Again(Arc<Stub>, u16);

impl Resolve for Again {
    fn resolve(&self, name: Name) -> Resolving {
        let (names, port) = (self.0.clone(), self.1);
        Box::pin(async move {
            let found = names.addresses(name.as_str()).await?;
            Ok(Box::new(found.into_iter().map(move |address| SocketAddr::new(address, port))) as Addrs)
        })
    }
}

/// A name that leads to one place while it is judged and to another when it is connected to.
#[tokio::test]
async fn a_name_that_changes_its_address_gains_nothing() {
    let first = Server::new([Does::text("the judged place")]).await;
    let second = Server::at(&format!("127.0.0.2:{}", first.port), [Does::text("another place")]).await;
    let url = format!("http://localhost:{}/", first.port);
    let opened = [format!("localhost:{}", first.port)];
    let names = Stub::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let said = Bench::with(&opened, names.clone(), limits::FETCH_TIMEOUT).fetch(&url).await;
    assert!(said.ends_with("the judged place"), "{said}");
    assert_eq!(names.asked(), ["localhost"]);
    assert!(second.requests().is_empty());

    // Without the pin the second address is taken.
    let names = Stub::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let judged = names.addresses("localhost").await.unwrap();
    assert_eq!(judged[0].to_string(), "127.0.0.1");
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).dns_resolver(Again(names, first.port));
    let text = client.build().unwrap().get(&url).send().await.unwrap().text().await.unwrap();
    assert_eq!((text.as_str(), second.requests().len()), ("another place", 1));
}

/// One forbidden address among many is enough.
#[tokio::test]
async fn names_that_lead_inside_are_refused() {
    for (addresses, wanted) in [
        (&["127.0.0.1"][..], "is an address of this machine"),
        (&["::1"], "is an address of this machine"),
        (&["::ffff:127.0.0.1"], "is an address of this machine"),
        (&["93.184.216.34", "127.0.0.1"], "is an address of this machine"),
        (&["93.184.216.34", "2606:2800:220:1::1", "10.0.0.7"], "is a private address"),
        (&["169.254.169.254"], "metadata"),
        (&["fd00:ec2::254"], "is a private address"),
        (&["64:ff9b::a00:1"], "is a private address"),
        (&["0.0.0.0"], "is an unspecified address"),
        (&["224.0.0.251"], "is a multicast address"),
    ] {
        let names = Stub::new(&[addresses]);
        let said = Bench::with(&[], names.clone(), limits::FETCH_TIMEOUT).fetch("http://a.invalid/").await;
        assert!(said.starts_with("Failed Permission: An address of a.invalid is"), "{addresses:?}: {said}");
        assert!(said.contains(wanted) && said.contains("Nothing was sent"), "{addresses:?}: {said}");
        assert_eq!(names.asked(), ["a.invalid"]);
    }
}

/// A port that is opened is one of this machine, wherever its name leads.
#[tokio::test]
async fn an_opened_name_leads_to_this_machine_only() {
    let names = Stub::new(&[&["93.184.216.34"]]);
    let opened = ["localhost:8080".to_string()];
    let said = Bench::with(&opened, names, limits::FETCH_TIMEOUT).fetch("http://localhost:8080/").await;
    assert!(said.contains("not this machine, although the name is opened"), "{said}");
}

#[tokio::test]
async fn names_without_addresses_are_said() {
    let bench = Bench::with(&[], Stub::new(&[]), limits::FETCH_TIMEOUT);
    let wanted = "Failed NotFound: a.invalid has no address that can be found (no such name). Nothing was sent; correct \
                  the name.";
    assert_eq!(bench.fetch("https://a.invalid/").await, wanted);
    let bench = Bench::with(&[], Stub::new(&[&[]]), limits::FETCH_TIMEOUT);
    let wanted = "Failed NotFound: a.invalid has no address. Nothing was sent; correct the name.";
    assert_eq!(bench.fetch("https://a.invalid/").await, wanted);
}
