//! The request itself: the addresses of a name looked up once and judged, a connection to just those, and an answer
//! that is bounded in every direction. It follows no redirect to another place, keeps no cookie and decompresses nothing.

use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::SocketAddr;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Client;
use reqwest::Response;
use reqwest::Url;
use reqwest::dns::Addrs;
use reqwest::dns::Name;
use reqwest::dns::Resolve;
use reqwest::dns::Resolving;
use reqwest::header::CONTENT_ENCODING;
use reqwest::header::CONTENT_TYPE;
use reqwest::header::LOCATION;
use reqwest::redirect::Policy;
use rustls::crypto::CryptoProvider;
use tokio::net::lookup_host;

use crate::domain::limits;
use crate::domain::text::counted;
use crate::domain::text::one_line;
use crate::domain::tool::ErrorClass;
use crate::tools::web_fetch::body;
use crate::tools::web_fetch::target::Target;
use crate::tools::web_fetch::target::not_reached;
use crate::tools::web_fetch::target::query_bytes;

/// All that is sent besides the first line and the host. Nothing here may say who asks.
pub(crate) const HEADERS: &[(&str, &str)] = &[
    ("user-agent", "tiller"),
    ("accept", "text/html, text/plain, application/json, application/xml;q=0.9, text/*;q=0.8"),
    ("accept-encoding", "identity"),
];
/// Header lines that an answer may have.
const HEADERS_MAX: usize = 100;
/// Longest part of a foreign word that is repeated in a sentence, in characters.
const WORDS_MAX_CHARS: usize = 200;

/// Where the addresses of names are looked up.
#[async_trait]
pub trait Names: Send + Sync {
    /// The addresses of a host.
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The names as this machine knows them.
pub struct System;

#[async_trait]
impl Names for System {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(lookup_host((host, 0)).await?.map(|found| found.ip()).collect())
    }
}

/// What came of a request.
pub(crate) enum Answer {
    /// An answer with text.
    Text(Page),
    /// It leads somewhere else; nothing was asked there.
    Elsewhere {
        /// Its status.
        status: u16,
        /// Where to, as far as it can be told.
        to: String,
        /// Why it was not followed.
        why: &'static str,
    },
}

/// An answer with text.
pub(crate) struct Page {
    /// Where it came from in the end.
    pub(crate) url: Url,
    /// How many redirects led there.
    pub(crate) hops: usize,
    /// Its status.
    pub(crate) status: u16,
    /// What it says that it is.
    pub(crate) content_type: String,
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
    /// What kind of text it is.
    pub(crate) kind: body::Kind,
}

/// Why there is no answer: a sentence and what the system said.
pub(crate) struct Failure(pub(crate) String, pub(crate) Option<ErrorClass>);

/// The only answer to a name: the addresses that were judged.
struct Pinned {
    host: String,
    addresses: Vec<SocketAddr>,
}

impl Resolve for Pinned {
    fn resolve(&self, name: Name) -> Resolving {
        let found: Result<Addrs, Box<dyn Error + Send + Sync>> = if name.as_str() == self.host {
            Ok(Box::new(self.addresses.clone().into_iter()))
        } else {
            Err("no other name is looked up".into())
        };
        Box::pin(std::future::ready(found))
    }
}

/// Asks for a target, and for where it leads at the same place.
pub(crate) async fn get(target: &Target, names: &dyn Names) -> Result<Answer, Failure> {
    let addresses = judged(target, names).await?;
    let client = client(target, &addresses)?;
    let query_most = query_bytes(&target.url).max(limits::FETCH_QUERY_BYTES);
    let mut url = target.url.clone();
    let mut hops = 0;
    loop {
        let response = HEADERS
            .iter()
            .fold(client.get(url.clone()), |request, (name, value)| request.header(*name, *value))
            .send()
            .await
            .map_err(|error| unreached(target, &error))?;
        // Held by the resolver already; said once more, because everything rests on it.
        if response.remote_addr().is_some_and(|at| !addresses.contains(&at)) {
            let text =
                format!("{} was reached at an address that was not judged. The answer was not read.", target.host);
            return Err(Failure(text, Some(ErrorClass::Fault)));
        }
        let Some(location) = redirect(&response) else { return text(target, url, hops, response).await };
        let status = response.status().as_u16();
        let elsewhere =
            |to: &str, why| Ok(Answer::Elsewhere { status, to: one_line(to, limits::FETCH_URL_MAX_BYTES), why });
        let Ok(mut next) = url.join(&location) else { return elsewhere(&location, "that is no URL") };
        next.set_fragment(None);
        if !next.username().is_empty() || next.password().is_some() {
            let _ = (next.set_username(""), next.set_password(None));
            return elsewhere(next.as_str(), "a name or a password was in it, which is left out here");
        }
        let why = if !target.is_origin_of(&next) {
            Some("that is another scheme, host or port")
        } else if query_bytes(&next) > query_most {
            Some("it would tell the host more than was allowed")
        } else if hops == limits::FETCH_REDIRECTS {
            Some("it was the last of too many")
        } else {
            None
        };
        if let Some(why) = why {
            return elsewhere(next.as_str(), why);
        }
        (url, hops) = (next, hops + 1);
    }
}

/// The addresses of a target, if every one of them may be reached. It is looked up once, here.
async fn judged(target: &Target, names: &dyn Names) -> Result<Vec<SocketAddr>, Failure> {
    let host = &target.host;
    let found = match target.literal {
        Some(address) => vec![address],
        None => names.addresses(host).await.map_err(|error| {
            let said = one_line(&error.to_string(), WORDS_MAX_CHARS);
            let text = format!("{host} has no address that can be found ({said}). Nothing was sent; correct the name.");
            Failure(text, Some(ErrorClass::NotFound))
        })?,
    };
    let closed = found.iter().find_map(|address| target.judge(*address));
    if let Some(what) = closed.or_else(|| (!target.is_opened).then(|| own(&found)).flatten()) {
        return Err(Failure(not_reached(&format!("An address of {host}"), what).text, Some(ErrorClass::Permission)));
    }
    if found.is_empty() {
        let text = format!("{host} has no address. Nothing was sent; correct the name.");
        return Err(Failure(text, Some(ErrorClass::NotFound)));
    }
    Ok(found.into_iter().map(|address| SocketAddr::new(address, target.port)).collect())
}

/// Whether one of these addresses is this machine's: the open internet may lead back here. An address is ours if a socket
/// can have it; nothing is sent for that. Where a machine lets sockets have any address, it can't be told.
fn own(found: &[IpAddr]) -> Option<&'static str> {
    /// An address of documentation, which nobody has.
    const NOBODYS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    let is_ours = |address: IpAddr| UdpSocket::bind((address, 0)).is_ok();
    let is_one = !is_ours(NOBODYS) && found.iter().any(|address| is_ours(address.to_canonical()));
    is_one.then_some("an address of this machine")
}

fn client(target: &Target, addresses: &[SocketAddr]) -> Result<Client, Failure> {
    let no_tls = |why: String| {
        let text = format!("Encrypted connections can't be made here ({why}). Nothing was sent; tell the operator.");
        Failure(text, Some(ErrorClass::Capability))
    };
    // Without this check, reqwest would panic.
    if CryptoProvider::get_default().is_none() {
        return Err(no_tls("no cryptography was installed at start; this is a bug in tiller".to_string()));
    }
    let pinned = Pinned { host: target.host.clone(), addresses: addresses.to_vec() };
    let mut builder = Client::builder()
        .dns_resolver(Arc::new(pinned))
        // A proxy would look names up by itself, and where it connects to could not be judged.
        .no_proxy()
        .redirect(Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .http1_max_headers(HEADERS_MAX)
        .connect_timeout(Duration::from_millis(limits::CONNECT_TIMEOUT.0));
    if target.url.scheme() == "http" {
        // A plain address needs no certificates, and must work on a machine that has none.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| no_tls(cause(&error)))
}

/// Where an answer leads, if it does.
fn redirect(response: &Response) -> Option<String> {
    let leads = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers().get(LOCATION).filter(|_| leads)?;
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}

/// An answer's bytes, if they are text and few enough. What is not read is never waited for.
async fn text(target: &Target, url: Url, hops: usize, mut response: Response) -> Result<Answer, Failure> {
    let host = &target.host;
    let header = |name| response.headers().get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    let content_type = header(CONTENT_TYPE).next_back().unwrap_or_default().into_owned();
    let encodings = header(CONTENT_ENCODING).collect::<Vec<_>>().join(", ");
    let refused = |what: &str, remedy: &str| {
        Failure(format!("{host} answered, but {what}. The answer was thrown away; {remedy}."), None)
    };
    if !encodings.is_empty() && !encodings.trim().eq_ignore_ascii_case("identity") {
        let what = format!("compressed ({}) although that was not asked for", one_line(&encodings, 40));
        return Err(refused(&what, "tiller decompresses nothing that it did not ask for; use another address"));
    }
    let most = limits::FETCH_BODY_MAX_BYTES;
    let size = response.content_length();
    let Some(kind) = body::kind(&content_type) else {
        let size = size.map_or("of unknown size".to_string(), |size| format!("of {}", counted(size, "byte")));
        let what = format!("with no text: {:?} {size}", one_line(&body::essence(&content_type), 80));
        return Err(refused(&what, "only text is read"));
    };
    let too_long = || refused(&format!("with more than {} MiB", most / 1024 / 1024), "use an address with less");
    if size.is_some_and(|size| size > most as u64) {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    loop {
        let piece = response.chunk().await.map_err(|error| {
            let said = one_line(&cause(&error), WORDS_MAX_CHARS);
            refused(&format!("the answer broke off ({said})"), "try again later")
        })?;
        let Some(piece) = piece else { break };
        if bytes.len() + piece.len() > most {
            return Err(too_long());
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(Answer::Text(Page { url, hops, status: response.status().as_u16(), content_type, bytes, kind }))
}

/// What went wrong before there was an answer.
fn unreached(target: &Target, error: &reqwest::Error) -> Failure {
    let said = one_line(&cause(error), WORDS_MAX_CHARS);
    let text = if error.is_connect() {
        format!("No connection to {} ({said}). Nothing was sent; try again later or use another address.", target.host)
    } else {
        format!(
            "{} gave no answer that can be read ({said}). The request was sent; try again later or use another address.",
            target.host
        )
    };
    Failure(text, None)
}

/// What is at the bottom of an error: what stands above it says only which layers it came through.
fn cause(error: &(dyn Error + 'static)) -> String {
    // A chain of causes is short; the bound is against one that leads in a circle.
    const DEEPEST: usize = 8;
    let mut deepest = error;
    for _ in 0..DEEPEST {
        let Some(cause) = deepest.source() else { break };
        deepest = cause;
    }
    deepest.to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn addresses_of_this_machine_are_known() {
        let own = |text: &str| own(&[text.parse().unwrap()]).is_some();
        assert!(own("127.0.0.1") && own("127.0.0.2") && own("::ffff:127.0.0.1"));
        assert!(!own("93.184.216.34") && !own("2606:2800:220:1:248:1893:25c8:1946"));
        let outward = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
            socket.connect("93.184.216.34:9")?;
            socket.local_addr()
        });
        // Nothing is sent by that; without a way out there is no such address.
        assert!(outward.is_err() || own(&outward.unwrap().ip().to_string()));
    }
}
