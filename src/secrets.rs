//! The roof's part of redaction: which variables hold secrets. Their values go into the redactor and nowhere else.

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
        let is_secret = configured.contains(&name) || (is_telling(&name) && !Path::new(&value).exists());
        is_secret.then(|| (name, SecretString::from(value)))
    });
    Ok(Arc::new(Redactor::new(key::of(state)?.into(), values)))
}

fn is_telling(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_place = name.rsplit('_').next().is_some_and(|last| PLACES.contains(&last));
    // The working folder; `MYSQL_PWD` is a password.
    let is_folder = name == "PWD";
    !is_place && !is_folder && name.split('_').any(|word| WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert!(is_telling(name), "{name}");
        }
        for name in
            ["PATH", "KEYBOARD", "MONKEY", "SSH_AUTH_SOCK", "GOOGLE_CREDENTIALS_FILE", "TOKENIZER", "PWD", "OLDPWD"]
        {
            assert!(!is_telling(name), "{name}");
        }
    }
}
