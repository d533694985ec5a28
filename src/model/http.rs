//! What all providers over HTTP share: which addresses are allowed, the client, its waits, the key, and how a
//! provider's words are repeated to the operator. It knows no provider and no dialect.

use std::env;
use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::Client;
use reqwest::Url;
use reqwest::header::DATE;
use reqwest::header::HeaderMap;
use reqwest::header::RETRY_AFTER;
use reqwest::redirect::Policy;
use rustls::crypto::CryptoProvider;
use secrecy::ExposeSecret;
use secrecy::SecretString;

use crate::domain::limits::CONNECT_TIMEOUT;
use crate::domain::limits::FIRST_BYTE_TIMEOUT;
use crate::domain::limits::PROVIDER_SENTENCE_MAX_CHARS;
use crate::domain::limits::STREAM_TIMEOUT;
use crate::domain::model::ModelSpec;
use crate::domain::text::one_line;
use crate::domain::time::Span;
use crate::model::ModelError;

/// How long a provider is waited for. There is no limit on a whole reply: as long as bytes come, they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until there is a connection.
    pub connect: Duration,
    /// From the start until the first byte of the reply.
    pub first_byte: Duration,
    /// Between two pieces of the reply.
    pub between: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            connect: Duration::from_millis(CONNECT_TIMEOUT.0),
            first_byte: Duration::from_millis(FIRST_BYTE_TIMEOUT.0),
            between: Duration::from_millis(STREAM_TIMEOUT.0),
        }
    }
}

/// The client for a provider at `address`. It follows no redirect and repeats no request: one call is one attempt.
/// Proxies are those of the environment, but for an address on this machine there is none.
///
/// # Errors
/// `ModelError::Tls` when the cryptography, or the certificates of this machine, can't be had.
pub fn client(address: &Url, timeouts: &Timeouts) -> Result<Client, ModelError> {
    // Without this check, reqwest would panic.
    if CryptoProvider::get_default().is_none() {
        return Err(ModelError::Tls("no cryptography was installed at start; this is a bug in tiller".to_string()));
    }
    let mut builder = Client::builder()
        .user_agent(concat!("tiller/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(timeouts.connect)
        .redirect(Policy::none())
        .retry(reqwest::retry::never());
    if is_loopback(address) {
        builder = builder.no_proxy();
    }
    if address.scheme() == "http" {
        // A plain address needs no certificates, and must work on a machine that has none.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| ModelError::Tls(cause(&error)))
}

/// Reads and checks the address of a provider: `https`, or `http` to this machine; without name, password, query.
///
/// # Errors
/// `ModelError::Address`, which says what is wrong.
pub fn address(spec: &ModelSpec) -> Result<Url, ModelError> {
    judged(&spec.address).map_err(|problem| ModelError::Address { model: spec.name.clone(), problem })
}

/// The same of a bare address. Errors with what is wrong, which does not repeat the address: it may hold a password.
pub fn judged(address: &str) -> Result<Url, String> {
    let url = Url::parse(address.trim_end_matches('/'))
        .map_err(|error| format!("it is not a URL ({error}); write https://host/v1"))?;
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(
            "a base URL may hold no user, password, question mark or #; put the key in the environment".to_string()
        );
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        "http" => Err("plain http is for this machine only, since others could read along; write https".to_string()),
        _ => Err("it must begin with https://".to_string()),
    }
}

/// Whether an address is on this machine.
pub fn is_loopback(address: &Url) -> bool {
    let host = address.host_str().unwrap_or_default();
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// The key of a model, from the environment variable that its spec names; nothing when it needs none.
///
/// # Errors
/// `ModelError::NoKey` or `ModelError::BadKey`, with the name of the variable.
pub fn credential(spec: &ModelSpec) -> Result<Option<SecretString>, ModelError> {
    let Some(variable) = &spec.key_variable else {
        return Ok(None);
    };
    let (variable, model) = (variable.clone(), spec.name.clone());
    let Some(value) = env::var_os(&variable) else {
        return Err(ModelError::NoKey { variable, model });
    };
    let text = value.into_string().unwrap_or_else(|_| "\0".to_string());
    let key = text.trim();
    if key.is_empty() {
        return Err(ModelError::NoKey { variable, model });
    }
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(ModelError::BadKey { variable, model });
    }
    Ok(Some(SecretString::from(key)))
}

/// How long a provider asks to wait: `retry-after-ms`, else `retry-after` in seconds or as a date. A date is
/// compared with the date that the provider itself gives, so that no clock has to be right.
pub fn retry_after(headers: &HeaderMap) -> Option<Span> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let milliseconds = text("retry-after-ms").and_then(|text| number(text, 1));
    milliseconds.or_else(|| {
        let wait = text(RETRY_AFTER.as_str())?;
        number(wait, 1_000).or_else(|| {
            let dates = DateTimeParser::new();
            let until = dates.parse_timestamp(wait).ok()?.as_millisecond();
            let now = dates.parse_timestamp(text(DATE.as_str())?).ok()?.as_millisecond();
            Some(Span(u64::try_from(until.saturating_sub(now)).unwrap_or(0)))
        })
    })
}

/// A number of units, whole or with decimals, as milliseconds, rounded up.
fn number(text: &str, unit_ms: u64) -> Option<Span> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() || !whole.bytes().chain(part.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let units = whole.parse::<u64>().unwrap_or(u64::MAX);
    let more = if part.bytes().all(|byte| byte == b'0') { 0 } else { 1 };
    Some(Span(units.saturating_add(more).saturating_mul(unit_ms)))
}

/// Repeats what a provider said: as one bounded line without control characters, and without the key.
#[derive(Clone, Debug, Default)]
pub struct Quote {
    key: Option<SecretString>,
}

impl Quote {
    /// Quotes that must not hold `key`.
    pub fn without(key: Option<SecretString>) -> Self {
        Quote { key }
    }

    /// The words as they may be shown.
    pub fn of(&self, words: &str) -> String {
        // The key goes first: a cut through it would leave a part that is no longer recognised.
        let words = match &self.key {
            Some(key) if !key.expose_secret().is_empty() => words.replace(key.expose_secret(), "[key]"),
            Some(_) | None => words.to_string(),
        };
        let harmless: String = words.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
        one_line(&harmless, PROVIDER_SENTENCE_MAX_CHARS)
    }
}

/// What is at the bottom of an error: what stands above it says only which layers it came through.
pub fn cause(error: &(dyn Error + 'static)) -> String {
    deepest(error).to_string()
}

/// Whether a connection failed because nobody listens there.
pub fn is_refused(error: &(dyn Error + 'static)) -> bool {
    let cause = deepest(error).downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::ConnectionRefused)
}

fn deepest<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    // A chain of causes is short; the bound is against one that leads in a circle.
    const DEEPEST: usize = 8;
    let mut deepest = error;
    for _ in 0..DEEPEST {
        let Some(cause) = deepest.source() else { break };
        deepest = cause;
    }
    deepest
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::domain::model::Dialect;

    fn spec(address: &str, key_variable: Option<&str>) -> ModelSpec {
        ModelSpec {
            name: "local/tiny".to_string(),
            dialect: Dialect::Openai,
            address: address.to_string(),
            model: "tiny".to_string(),
            key_variable: key_variable.map(str::to_string),
            window: 4_096,
            max_output: 512,
            most_output: None,
            price: None,
        }
    }

    #[test]
    fn only_encrypted_or_local_addresses_are_allowed() {
        let allowed = |text: &str| address(&spec(text, None)).map(|url| url.to_string());
        assert_eq!(allowed("https://api.openai.com/v1/").unwrap(), "https://api.openai.com/v1");
        for local in
            ["http://localhost:1/v1", "http://127.9.9.9/v1", "http://[::1]:80/v1", "http://[::ffff:127.0.0.1]/v1"]
        {
            assert!(allowed(local).is_ok(), "{local}");
        }
        let refused = [
            "http://api.openai.com/v1",
            "http://localhost.example/v1",
            "http://192.168.0.1/v1",
            "http://128.0.0.1/v1",
            "ftp://localhost/",
            "localhost:80",
            "",
            "https://me:secret@x.example/v1",
            "https://x.example/v1?key=secret",
        ];
        for text in refused {
            let error = allowed(text).unwrap_err().to_string();
            assert!(error.contains("local/tiny") && !error.contains("secret"), "{text}: {error}");
        }
    }

    #[test]
    fn without_cryptography_there_is_an_error_and_no_panic() {
        // No test of this program installs any; those in `tests/` do.
        let url = Url::parse("http://localhost/v1").unwrap();
        assert!(matches!(client(&url, &Timeouts::default()), Err(ModelError::Tls(_))));
    }

    #[test]
    fn a_missing_key_is_named() {
        assert!(credential(&spec("", None)).unwrap().is_none());
        let error = credential(&spec("", Some("TILLER_TEST_NO_SUCH_KEY"))).unwrap_err().to_string();
        assert!(error.contains("TILLER_TEST_NO_SUCH_KEY") && error.contains("export"), "{error}");
        // The one variable that every test has.
        assert!(credential(&spec("", Some("CARGO_PKG_NAME"))).unwrap().is_some());
    }

    #[test]
    fn waits_are_read_in_all_their_forms() {
        let read = |pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, value.parse().unwrap());
            }
            retry_after(&headers).map(|span| span.0)
        };
        assert_eq!(read(&[("retry-after", "20")]), Some(20_000));
        assert_eq!(read(&[("retry-after", "1.2")]), Some(2_000));
        assert_eq!(read(&[("retry-after", "20"), ("retry-after-ms", "150.5")]), Some(151));
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(read(&[("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT"), date]), Some(60_000));
        assert_eq!(read(&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT"), date]), Some(0));
        assert_eq!(read(&[("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT")]), None);
        assert_eq!(read(&[("retry-after", "99999999999999999999999")]), Some(u64::MAX));
        for nonsense in ["", "-1", "soon", ".5", "1e3", "1.2.3"] {
            assert_eq!(read(&[("retry-after", nonsense)]), None, "{nonsense}");
        }
    }

    #[test]
    fn quotes_are_harmless() {
        let quote = Quote::without(Some(SecretString::from("sk-secret")));
        assert_eq!(quote.of("a\u{1b}[31m\nkey sk-secret!\0"), "a [31m key [key]!");
        let long = format!("{}sk-secret", "x".repeat(PROVIDER_SENTENCE_MAX_CHARS - 4));
        let said = quote.of(&long);
        assert!(said.chars().count() == PROVIDER_SENTENCE_MAX_CHARS && !said.contains("sk-"), "{said}");
    }
}
