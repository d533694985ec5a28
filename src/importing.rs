//! A journal that was exported somewhere comes in. It can say anything, so nothing in it is believed that costs money or
//! runs something here: the price of its model is that of this place, leave and grants are void, and its checks are shown
//! whole and taken over only when the operator says so (docs/JOURNAL.md, "Out and in").
//!
//! It must not drive the run.

use std::fs::File;
use std::io::IsTerminal;
use std::io::Read;
use std::path::Path;

use anyhow::Context;

use crate::domain::budget::Axis;
use crate::domain::limits;
use crate::domain::lineage::Here;
use crate::domain::run::Run;
use crate::domain::text::counted;
use crate::domain::time::Now;
use crate::headless::lines::limit_phrase;
use crate::headless::output;
use crate::headless::text::sentence;
use crate::headless::text::title;
use crate::headless::text::whole;
use crate::held;
use crate::launch;
use crate::launch::Ground;
use crate::machine::lineage;
use crate::store::StoreError;
use crate::store::transfer;
use crate::telling;

/// The name of standard input.
const INPUT: &str = "-";

/// What an export wrote, from a file, or from standard input where that is called `-`.
fn exported(path: &Path) -> anyhow::Result<String> {
    let is_input = path == Path::new(INPUT);
    let shown = if is_input { "standard input".to_string() } else { path.display().to_string() };
    let failed = || format!("{shown} can't be read; nothing was imported; name what `tiller export` wrote");
    let fits = |bytes: u64| {
        anyhow::ensure!(
            bytes <= limits::IMPORT_MAX_BYTES,
            "{shown} has more than {} MiB; nothing was imported; so long a journal can only be looked at where it is",
            limits::IMPORT_MAX_BYTES >> 20
        );
        Ok(())
    };
    let source: Box<dyn Read> = if is_input {
        Box::new(std::io::stdin())
    } else {
        // Asked before it is opened: to open a pipe is to wait for whoever writes into it.
        let found = std::fs::metadata(path).with_context(failed)?;
        let is_file = found.is_file();
        anyhow::ensure!(is_file, "{shown} is not a file; nothing was imported; name what `tiller export` wrote");
        fits(found.len())?;
        Box::new(File::open(path).with_context(failed)?)
    };
    let mut text = String::new();
    let read = source.take(limits::IMPORT_MAX_BYTES + 1).read_to_string(&mut text).with_context(failed)?;
    fits(read as u64)?;
    Ok(text)
}

/// Makes a run of an exported journal. `with_checks` takes its checks over without a question. Errors when it is none, or
/// the name is taken.
pub fn import(ground: &Ground, path: &Path, as_new: bool, with_checks: bool) -> anyhow::Result<u8> {
    let mut carried = transfer::read(&exported(path)?)?;
    let id = if as_new { launch::new_id()? } else { carried.run.clone() };
    let now = Now { at: ground.clock.now(), ..Now::default() };
    let foreign = |why: String| StoreError::Foreign { why };
    let run = Run::fold(&id, &carried.records).map_err(|broken| foreign(broken.to_string()))?;
    if let Some(why) = launch::elsewhere::pretends(&run) {
        return Err(foreign(why.to_string()).into());
    }
    let count = counted(carried.records.len(), "record");
    let price = ground.price_here(&run.terms.model);
    // What has ended, and what nobody can go on with here, runs nothing.
    let is_looked_at = run.is_ended() || run.terms.rehearsal;
    let had_checks = !run.terms.checks.is_empty();
    let checks = if is_looked_at { String::new() } else { checks(&run) };
    output::put(&checks);
    let here = Here { price, with_checks: with_checks || (!checks.is_empty() && takes_over(path)?) };
    let (_, own) = lineage::import(run, here, &held::client(), now).map_err(|refusal| foreign(refusal.of(&id)))?;
    carried.push(own)?;
    let run = ground.home.import(&id, &carried)?;
    telling::pass_over(ground, &run);
    output::put(&format!("imported {count} as run {id} · {}", ground.parting(&run)));
    if !is_looked_at {
        output::put(&brought(&run));
    }
    if run.terms.rehearsal && run.is_ended() {
        output::put("its scratch folder did not come along: it can be looked at, and nothing goes on from it\n");
    } else if had_checks && run.is_ended() && !here.with_checks {
        output::put(
            "its checks were left out, so a fork of it has none; to take them over, import it with --with-checks\n",
        );
    }
    if !checks.is_empty() && here.with_checks {
        output::put("its checks were taken over: they run here whenever the model says it is done\n");
    } else if !checks.is_empty() {
        output::put(
            "its checks were left out, so it can end unverified only; to take them over, import it with --with-checks\n",
        );
    }
    Ok(0)
}

/// The checks of a run from elsewhere, whole, as they would run here without a question; nothing where there are none.
fn checks(run: &Run) -> String {
    let checks = &run.terms.checks;
    if checks.is_empty() {
        return String::new();
    }
    let all: String =
        (1..).zip(checks).map(|(number, check)| format!("  check {number}:{}", whole(&check.title()))).collect();
    let count = counted(checks.len(), "check");
    format!("it comes with {count}, which would run here without a question whenever the model says it is done:\n{all}")
}

/// Asks the person at the terminal whether to take the checks over. Where there is none, nobody does.
fn takes_over(path: &Path) -> anyhow::Result<bool> {
    let is_asked = path != Path::new(INPUT) && std::io::stdin().is_terminal();
    Ok(is_asked && output::is_agreed("take these checks over? yes or no: ")?)
}

/// What a run that was brought from elsewhere says of itself, and is to be looked at before it goes on.
fn brought(run: &Run) -> String {
    let terms = &run.terms;
    let model = &terms.model;
    let key = model.key_variable.as_ref().map(|name| format!(" with the key in {}", title(name))).unwrap_or_default();
    let price = match (model.price, terms.is_pretend()) {
        (_, true) => "pretended".to_string(),
        (Some(price), false) => price.phrase(),
        (None, false) => "unknown here, so it is not asked before you say it".to_string(),
    };
    let limits: Vec<String> = Axis::ALL
        .iter()
        .map(|axis| format!("{} {}", axis.word(), limit_phrase(*axis, run.pool.limits().on(*axis))))
        .collect();
    let instructions = match terms.instructions.is_empty() {
        true => String::new(),
        false => format!("instructions to the model:{}", whole(&terms.instructions)),
    };
    let words: String = run
        .interjections
        .iter()
        .map(|one| format!("words that wait for the model, as if you had said them:{}", whole(&one.text)))
        .collect();
    format!(
        "look at where it comes from before you resume it; nothing is allowed in advance (trust is {})\n\
         works in: {} (what lies there it reads without a question)\nmodel: {} at {}{key}\nprice: {price}\nlimits: {}\n{instructions}{words}",
        run.trust,
        sentence(&terms.workspace),
        sentence(&model.name),
        sentence(&model.address),
        limits.join(", "),
    )
}
