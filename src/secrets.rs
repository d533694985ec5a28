//! The roof's part of redaction: which variables hold secrets. Their values go into the redactor and nowhere else, but
//! for those that the operator lets commands see, each by its name; and nobody else reads this process's memory.

use std::path::Path;
use std::sync::Arc;

use secrecy::SecretString;

use crate::config::Settings;
use crate::config::models::PROVIDERS;
use crate::engine::redaction::Redactor;
use crate::store::StoreError;
use crate::store::key;

/// Words in the name of a variable that holds a secret.
const WORDS: &[&str] = &[
    "KEY",
    "KEYS",
    "APIKEY",
    "TOKEN",
    "TOKENS",
    "PAT",
    "AUTH",
    "SECRET",
    "SECRETS",
    "PASS",
    "PASSWORD",
    "PASSWD",
    "PWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
];
/// Ends of names of variables that hold a secret, also without a `_` before them: `PGPASSWORD`, `SSHPASS`.
const ENDS: &[&str] = &["PASSWORD", "PASSWD", "PASS", "SECRET", "TOKEN", "DSN", "WEBHOOK", "APIKEY", "CREDENTIALS"];
/// Last words of names that say where something is, and not what.
const PLACES: &[&str] = &["FILE", "PATH", "DIR", "SOCK", "SOCKET", "HOME", "COMMAND", "ASKPASS"];

/// What knows the secrets of this process: values of variables that hold keys of providers, here or in a run (`more`),
/// and of those whose names say so.
pub fn redactor(state: &Path, settings: &Settings, more: Option<&str>) -> Result<Arc<Redactor>, StoreError> {
    let configured: Vec<String> = PROVIDERS
        .iter()
        .filter_map(|provider| provider.key.map(ToString::to_string))
        .chain(settings.key_variables().map(ToString::to_string))
        .chain(more.map(ToString::to_string))
        .collect();
    let values = std::env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        let is_secret = configured.contains(&name) || (is_telling(&name) && !is_place(&value));
        is_secret.then(|| (name, SecretString::from(value)))
    });
    Ok(Arc::new(Redactor::new(key::of(state)?.into(), values)))
}

/// Variables that commands of the agent see besides those they always see: those of the configuration that do not look
/// secret, and those that do and were named for this process.
pub fn passed(settings: &Settings) -> Vec<String> {
    let plain = settings.pass_variables().iter().filter(|name| !looks_secret(settings, name));
    plain.chain(settings.pass_secrets()).cloned().collect()
}

/// Variables of the configuration that are set, look secret, and were not named for this process: they are not passed.
pub fn held_back(settings: &Settings) -> Vec<String> {
    let is_held = |name: &&String| {
        looks_secret(settings, name) && !settings.pass_secrets().contains(name) && std::env::var_os(name).is_some()
    };
    settings.pass_variables().iter().filter(is_held).cloned().collect()
}

/// What to do about variables that are held back.
pub fn way_to_pass(names: &[String]) -> String {
    let options: Vec<String> = names.iter().map(|name| format!("--pass-secret {name}")).collect();
    let (look, them) = if names.len() == 1 { ("looks", "it") } else { ("look", "them") };
    format!("{} {look} secret; to let this run's commands see {them}, say {}", names.join(", "), options.join(" "))
}

fn looks_secret(settings: &Settings, name: &str) -> bool {
    let is_key = |key: &str| key == name;
    is_telling(name)
        || PROVIDERS.iter().filter_map(|provider| provider.key).any(is_key)
        || settings.key_variables().any(is_key)
}

/// Keeps other processes of this user out of this one's memory and environment, and keeps both out of core files (R27).
/// Errors with a sentence when the system does not do that. A process that runs as root is not kept out by anything.
pub fn shut() -> Result<(), String> {
    let failed = |error: nix::Error| {
        format!("keys can't be kept from other programs of yours ({}); go on only if you trust those", error.desc())
    };
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_dumpable(false).map_err(failed)?;
    nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 0, 0).map_err(failed)
}

/// Whether a value is no secret because it says where something is. A relative one never is: whoever can make a folder
/// here could call it like a secret.
fn is_place(value: &str) -> bool {
    let path = Path::new(value);
    path.is_absolute() && path.exists()
}

fn is_telling(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_place = name.rsplit('_').next().is_some_and(|last| PLACES.contains(&last));
    // The working folder; `MYSQL_PWD` is a password.
    let is_folder = name == "PWD";
    // Who knows the address of a webhook can post to it: `SLACK_WEBHOOK_URL`.
    let is_word = |word: &str| WORDS.contains(&word) || word.starts_with("WEBHOOK");
    !is_place && !is_folder && (name.split('_').any(is_word) || ENDS.iter().any(|end| name.ends_with(end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests run in the folder of the project, where there is a `src`.
    #[test]
    fn a_folder_here_that_is_called_like_a_secret_does_not_make_it_known() {
        assert!(Path::new("src").exists());
        assert!(!is_place("src") && !is_place("./src") && !is_place(".") && !is_place(""));
        assert!(is_place("/") && is_place(env!("CARGO_MANIFEST_DIR")) && !is_place("/no/such/place"));
    }

    #[test]
    fn names_tell() {
        for name in [
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "db_password",
            "AWS_SECRET_ACCESS_KEY",
            "SECRET",
            "DB_PASS",
            "MYSQL_PWD",
            "GITHUB_PAT",
            "NPM_AUTH",
            "PGPASSWORD",
            "SSHPASS",
            "AWSSECRET",
            "SENTRY_DSN",
            "SLACK_WEBHOOK_URL",
            "TEAMS_WEBHOOKS",
            "myApiKey",
            "HEROKUTOKEN",
            "REDISCLI_AUTH",
        ] {
            assert!(is_telling(name), "{name}");
        }
        for name in [
            "PATH",
            "KEYBOARD",
            "MONKEY",
            "SSH_AUTH_SOCK",
            "SSH_ASKPASS",
            "GOOGLE_CREDENTIALS_FILE",
            "PGPASSFILE",
            "TOKENIZER",
            "PASSENGER_HOST",
            "PWD",
            "OLDPWD",
        ] {
            assert!(!is_telling(name), "{name}");
        }
    }
}
