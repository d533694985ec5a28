//! `tiller doctor`: what a run needs, looked at one by one. Each line says OK, PARTIAL or MISSING, and what to do.

use std::net::SocketAddr;
use std::net::TcpStream;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use reqwest::Url;

use crate::boxes;
use crate::config::ConfigError;
use crate::config::Places;
use crate::config::Settings;
use crate::domain::budget::Axis;
use crate::domain::cells::wrap;
use crate::domain::event::OwnerMode;
use crate::domain::limits;
use crate::domain::model::Dialect;
use crate::domain::model::ModelSpec;
use crate::domain::sandbox::Level;
use crate::domain::summary::Listed;
use crate::domain::text::counted;
use crate::domain::visible::transcript;
use crate::engine::clock::Clock;
use crate::engine::clock::SystemClock;
use crate::engine::rulebook::Rulebook;
use crate::headless::lines::limit_phrase;
use crate::keeping;
use crate::launch;
use crate::launch::Ground;
use crate::launch::hands;
use crate::machine;
use crate::model;
use crate::model::http;
use crate::preflight;
use crate::rehearsal;
use crate::store::Journal;
use crate::store::StoreError;
use crate::store::ledger::Ledger;
use crate::store::look::Survey;
use crate::store::place::Home;
use crate::store::trusted;
use crate::tools::Toolbox;
use crate::tools::guard;
use crate::tools::guide;

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// As it should.
    Ok,
    /// It works, with less than there could be.
    Partial,
    /// It is not there, or does not work.
    Missing,
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub what: &'static str,
    /// How it stands.
    pub standing: Standing,
    /// What was found, and what to do about it.
    pub text: String,
}

/// Looks at everything. Nothing leaves this machine: of an address elsewhere only its form is looked at.
pub async fn examine(places: &Places, settings: Result<&Settings, &ConfigError>) -> Vec<Finding> {
    let mut all = vec![configuration(places, settings), state(places)];
    if let Ok(settings) = settings {
        all.extend(model(places, settings));
        all.push(prices());
        all.push(checks(places, settings).await);
        all.push(daily(places, settings));
        all.push(kept(places, settings));
    }
    all.extend([standing_rules(places), folder(places), user()]);
    all.extend([
        store(places).await,
        runs(places),
        guard(),
        sandbox(places, settings.unwrap_or(&Settings::default())),
        terminal(),
    ]);
    all
}

/// The report as text, and whether nothing is missing. Where a width is given, in cells, as that of a terminal, what is
/// longer goes on below; into a pipe or a file it goes as it is.
pub fn report(all: &[Finding], width: Option<usize>) -> (String, bool) {
    let is_whole = all.iter().all(|one| one.standing != Standing::Missing);
    (all.iter().map(|one| told(one, width)).collect(), is_whole)
}

fn told(one: &Finding, width: Option<usize>) -> String {
    let word = match one.standing {
        Standing::Ok => "OK",
        Standing::Partial => "PARTIAL",
        Standing::Missing => "MISSING",
    };
    let head = format!("{word:<8} {:<14} ", one.what);
    let text = transcript(&one.text);
    let Some(width) = width else { return format!("{head}{text}\n") };
    let room = width.saturating_sub(head.len());
    let rows: Vec<String> = text.lines().flat_map(|line| wrap(line, room)).collect();
    format!("{head}{}\n", rows.join(&format!("\n{}", " ".repeat(head.len()))))
}

fn finding(what: &'static str, standing: Standing, text: impl Into<String>) -> Finding {
    Finding { what, standing, text: text.into() }
}

fn configuration(places: &Places, settings: Result<&Settings, &ConfigError>) -> Finding {
    let path = places.config.display();
    match settings {
        Err(error) => finding("configuration", Standing::Missing, error.to_string()),
        Ok(_) if places.config.exists() => finding("configuration", Standing::Ok, path.to_string()),
        Ok(_) => finding("configuration", Standing::Ok, format!("{path} does not exist; everything is as built in")),
    }
}

fn state(places: &Places) -> Finding {
    let made = Home::new(places.state.clone(), launch::owner(OwnerMode::Records));
    match made {
        Ok(_) => finding("state", Standing::Ok, format!("{}, open to you only", places.state.display())),
        Err(error) => finding("state", Standing::Missing, error.to_string()),
    }
}

/// A journal is made, written and thrown away beside the real ones, on the same disk.
async fn store(places: &Places) -> Finding {
    match try_store(&places.state).await {
        Ok(took) if took > Duration::from_millis(50) => finding(
            "store",
            Standing::Partial,
            format!("a record is durable after {took:.1?}; the disk is slow, so is each step"),
        ),
        Ok(took) => finding("store", Standing::Ok, format!("a record is durable after {took:.1?}")),
        Err(error) => finding("store", Standing::Missing, format!("{error:#}")),
    }
}

async fn try_store(state: &Path) -> anyhow::Result<Duration> {
    let scratch = tempfile::Builder::new()
        .prefix("doctor-")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .tempdir_in(state)?;
    let home = Home::new(scratch.path().to_path_buf(), launch::owner(OwnerMode::Records))?;
    let terms = rehearsal::terms(scratch.path(), None, Vec::new())?;
    let first = machine::create(terms, Default::default());
    let mut second = first.clone();
    second.seq = first.seq.next();
    let mut journal = home.create(&launch::new_id()?, &[first]).await?;
    let begun = Instant::now();
    journal.append(vec![second]).await?;
    let took = begun.elapsed();
    journal.close().await;
    Ok(took)
}

/// A run whose checks can't be meant is not started, so this is told before: of a run in this folder.
async fn checks(places: &Places, settings: &Settings) -> Finding {
    let all = settings.checks();
    match preflight::pointless(&tools(places, settings), &all).await {
        Some(why) => finding("checks", Standing::Missing, format!("{why}; correct run.checks")),
        None if all.is_empty() => {
            finding("checks", Standing::Ok, "none: a claim of being finished is taken as it is, and called unverified")
        }
        None => finding("checks", Standing::Ok, format!("{} of them, and each can be run", all.len())),
    }
}

/// The tools of a run in this folder; where there can't be one now, those that can be asked about.
fn tools(places: &Places, settings: &Settings) -> Toolbox {
    let ground = Ground::new(places.clone(), settings.clone(), OwnerMode::Records);
    let tools = ground.and_then(|ground| ground.tools(None, &std::env::current_dir()?));
    tools.map_or_else(|_| hands::tools_anywhere(), |(tools, _)| tools)
}

fn daily(places: &Places, settings: &Settings) -> Finding {
    let limit = limit_phrase(Axis::Cost, settings.daily());
    if !places.state.exists() {
        return finding("daily budget", Standing::Ok, format!("nothing of {limit} is spent"));
    }
    let (ledger, now) = (Ledger::new(places.state.clone(), settings.daily()), SystemClock::start().now());
    match ledger.mend(now).and_then(|mended| Ok((mended, ledger.spent(now)?))) {
        Ok((mended, spent)) => {
            let counted = format!("{spent} of {limit} spent or held in 24 hours");
            match mended.phrase() {
                None => finding("daily budget", Standing::Ok, counted),
                Some(phrase) => finding("daily budget", Standing::Partial, format!("{counted}; {phrase}")),
            }
        }
        Err(error) => finding("daily budget", Standing::Missing, error.to_string()),
    }
}

/// What is removed next, since that is for good.
fn kept(places: &Places, settings: &Settings) -> Finding {
    let home = Home::new(places.state.clone(), launch::owner(OwnerMode::Records));
    match home.and_then(|home| keeping::outlook(&home, settings.keep(), SystemClock::start().now())) {
        Ok(text) => finding("kept runs", Standing::Ok, text),
        Err(error) => finding("kept runs", Standing::Missing, error.to_string()),
    }
}

/// Whether runs in this folder are told its guide.
fn folder(places: &Places) -> Finding {
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let Ok(here) = here else { return finding("folder", Standing::Partial, "the current folder can't be found") };
    let name = guide::find(&here);
    match (trusted::standing(&places.state, &here), name) {
        (Err(error), _) => finding("folder", Standing::Missing, error.to_string()),
        (Ok(trusted::Standing::Trusted(_)), Some(name)) => {
            finding("folder", Standing::Ok, format!("trusted: new runs are told {name}"))
        }
        (Ok(trusted::Standing::Trusted(_)), None) => finding("folder", Standing::Ok, "trusted; it has no AGENTS.md"),
        (Ok(_), Some(name)) => {
            let text = format!("not trusted: {name} is not read; `tiller trust` changes that");
            finding("folder", Standing::Ok, text)
        }
        (Ok(_), None) => finding("folder", Standing::Ok, "not trusted, and it has no AGENTS.md to be told"),
    }
}

/// Whether the operator's standing rules can be read.
fn standing_rules(places: &Places) -> Finding {
    let book = Rulebook::new(places.rules(), String::new());
    match (book.now(), book.notices()) {
        (Err(why), _) => finding("rules", Standing::Missing, why),
        (Ok(_), passed_over) if !passed_over.is_empty() => finding("rules", Standing::Partial, passed_over.join("; ")),
        (Ok(book), _) => finding("rules", Standing::Ok, counted(book.rules.len(), "standing rule")),
    }
}

/// As root, some of what keeps commands away from keys does not bind them.
fn user() -> Finding {
    match nix::unistd::geteuid().is_root() {
        true => finding(
            "user",
            Standing::Partial,
            "root: outside of a full box, commands that you allow can read tiller's memory and keys; use an account of your own",
        ),
        false => finding("user", Standing::Ok, "not root; other programs of yours can't read tiller's memory"),
    }
}

/// Every journal is proven in a copy: a summary beside a store says nothing about the store.
fn runs(places: &Places) -> Finding {
    let home = Home::new(places.state.clone(), launch::owner(OwnerMode::Records));
    let (home, all) = match home.and_then(|home| home.list().map(|all| (home, all))) {
        Err(error) => return finding("runs", Standing::Missing, error.to_string()),
        Ok(listed) => listed,
    };
    let (mut held, mut bad, mut refused) = (0, Vec::new(), Vec::new());
    for one in &all {
        let id = match one {
            Listed::Run { summary, .. } => &summary.id,
            Listed::Damaged { id, .. } => id,
        };
        match home.survey(id) {
            Ok(survey) if survey.is_whole() => {}
            Ok(survey) => bad.push((id, ill(&survey))),
            Err(StoreError::Locked { .. }) => held += 1,
            Err(StoreError::Disk { why, .. }) => refused.push(format!("{id}: {why}")),
            Err(error) => bad.push((id, error.to_string())),
        }
    }
    let counted = match held {
        0 => format!("{} in all", all.len()),
        held => format!("{} in all, {held} held by other processes and not looked into", all.len()),
    };
    if bad.is_empty() && refused.is_empty() {
        return finding("runs", Standing::Ok, format!("{counted}, none damaged"));
    }
    let mut text = counted;
    if !bad.is_empty() {
        let phrases: Vec<String> = bad.iter().map(|(id, why)| format!("{id}: {why}")).collect();
        let mends: Vec<String> = bad.iter().map(|(id, _)| format!("`tiller repair {}`", id.short())).collect();
        let tries = if mends.len() == 1 { "tries" } else { "try" };
        text += &format!("; damaged: {}; {} {tries} to mend that", phrases.join("; "), mends.join(", "));
    }
    if !refused.is_empty() {
        text += &format!("; not looked into, because the disk refuses: {}", refused.join("; "));
    }
    finding("runs", Standing::Partial, text)
}

fn ill(survey: &Survey) -> String {
    match (survey.flaws.first(), survey.newer) {
        (Some(flaw), _) => flaw.phrase(),
        (None, Some(found)) => found.to_string(),
        (None, None) => String::new(),
    }
}

fn model(places: &Places, settings: &Settings) -> Vec<Finding> {
    if settings.model().is_none() {
        let text =
            "none is named; `tiller rehearse` needs none; else set model in tiller.toml, TILLER_MODEL or --model";
        return vec![finding("model", Standing::Missing, text)];
    }
    let spec = Ground::new(places.clone(), settings.clone(), OwnerMode::Records).and_then(|ground| ground.model_spec());
    let spec = match spec {
        Ok(spec) => spec,
        Err(error) => return vec![finding("model", Standing::Missing, format!("{error:#}"))],
    };
    let ready = match model::open(&spec) {
        Ok(_) => finding("model", Standing::Ok, format!("{}, window {} tokens", spec.name, spec.window)),
        Err(error) => finding("model", Standing::Missing, error.to_string()),
    };
    [ready].into_iter().chain(endpoint(&spec)).collect()
}

/// How old the built-in table of prices is. A price that the operator configured is theirs to look after.
fn prices() -> Finding {
    match model::prices::age(SystemClock::start().now()) {
        None => finding("prices", Standing::Partial, "the clock stands before the day of the built-in table"),
        Some((day, age)) if age > limits::PRICES_OLD => finding(
            "prices",
            Standing::Partial,
            format!("the built-in table is of {day}; compare it, and set models.NAME.price where it is wrong"),
        ),
        Some((day, _)) => finding("prices", Standing::Ok, format!("the built-in table is of {day}")),
    }
}

/// Whether a server on this machine answers. Servers elsewhere are not called.
fn endpoint(spec: &ModelSpec) -> Option<Finding> {
    if spec.dialect != Dialect::Openai {
        return None;
    }
    let url = Url::parse(&spec.address).ok()?;
    if !http::is_loopback(&url) {
        return Some(finding(
            "endpoint",
            Standing::Ok,
            "not on this machine; it is called when a run starts, not before",
        ));
    }
    let host = url.host_str()?.trim_matches(['[', ']']);
    let addresses: Vec<SocketAddr> = (host, url.port_or_known_default()?).to_socket_addrs().ok()?.collect();
    // A name can have several, as localhost has, and a server may listen at one of them only.
    let patience = Duration::from_millis(limits::CONNECT_TIMEOUT.0);
    let tried = addresses.iter().map(|address| (address, TcpStream::connect_timeout(address, patience)));
    let mut refused = None;
    for (address, reached) in tried {
        match reached {
            Ok(_) => return Some(finding("endpoint", Standing::Ok, format!("{address} answers"))),
            Err(error) => refused = Some(format!("{address} does not answer ({error}); start the server")),
        }
    }
    Some(finding("endpoint", Standing::Missing, refused?))
}

/// A child is run under the guard, as every call is.
fn guard() -> Finding {
    let run = || -> std::io::Result<bool> {
        let program = std::env::current_exe()?;
        let mut child = Command::new(program)
            .args([guard::WORD, "--", "/bin/sh", "-c", "exit 7"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let held = child.stdin.take();
        let status = child.wait()?;
        drop(held);
        Ok(status.code() == Some(7))
    };
    match run() {
        Ok(true) => finding("guard", Standing::Ok, "children run under it and end with it"),
        Ok(false) => {
            finding("guard", Standing::Missing, "a child under it did not end as it should; calls can't be run safely")
        }
        Err(error) => finding("guard", Standing::Missing, format!("it can't be started ({error}); calls can't be run")),
    }
}

/// What boxes hold back, whether one can be made in this folder, and what of the operator's tools is not in it.
fn sandbox(places: &Places, settings: &Settings) -> Finding {
    let Ok(program) = std::env::current_exe() else {
        return finding("sandbox", Standing::Missing, "our own program can't be found; try again");
    };
    let (level, text) = boxes::told(settings, &places.state, &program);
    let obstacle = tools(places, settings).box_obstacle();
    let standing = match (level, &obstacle) {
        (Level::Full, None) => Standing::Ok,
        (Level::Full | Level::Partial | Level::None, _) => Standing::Partial,
    };
    let advice = boxes::advice(settings, level, &places.config);
    let parts: Vec<String> = [Some(text), obstacle, advice].into_iter().flatten().collect();
    finding("sandbox", standing, parts.join("; "))
}

fn terminal() -> Finding {
    let term = std::env::var("TERM").unwrap_or_default();
    if !launch::has_screen() {
        return finding(
            "terminal",
            Standing::Partial,
            "no terminal, or one without a screen: runs print lines (--plain)",
        );
    }
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|one| !one.is_empty());
    let is_utf8 = locale.as_deref().is_some_and(|name| name.to_lowercase().replace('-', "").contains("utf8"));
    match is_utf8 {
        true => finding("terminal", Standing::Ok, term),
        false => finding(
            "terminal",
            Standing::Partial,
            format!("{term}; the locale is not UTF-8, so lines and marks may look odd"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_not_written_over_its_edge_and_a_pipe_gets_a_line_each() {
        let all = [
            finding("guard", Standing::Ok, "children run under it and end with it"),
            finding("runs", Standing::Missing, "3 in all; damaged: 222222222222: its database can't be read\nat all"),
        ];
        let narrow = "\
OK       guard          children run under it and end with
                        it
MISSING  runs           3 in all; damaged: 222222222222: its
                        database can't be read
                        at all
";
        assert_eq!(report(&all, Some(60)), (narrow.to_string(), false));
        let wide = "\
OK       guard          children run under it and end with it
MISSING  runs           3 in all; damaged: 222222222222: its database can't be read
                        at all
";
        assert_eq!(report(&all, Some(120)).0, wide);
        assert_eq!(
            report(&all[..1], None),
            ("OK       guard          children run under it and end with it\n".to_string(), true)
        );
    }
}
