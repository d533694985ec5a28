//! A known value of several lines is known line by line as well: what shows it may put something between its lines, as
//! numbers, quoting or the signs of a difference.

use crate::domain::limits;

/// Signs that names, places and addresses do not have.
const ODD: &[char] = &['!', '#', '$', '%', '^', '&', '*', '+', '~'];

/// The lines of a value that say something which only this value says. None where it has one line only.
pub fn own(value: &str) -> Vec<&str> {
    // In a variable, line breaks are often written as an escape.
    let lines: Vec<&str> = value.split(['\n', '\r']).flat_map(|line| line.split("\\n")).collect();
    if lines.len() < 2 {
        return Vec::new();
    }
    let trimmed = lines.into_iter().map(|line| line.trim().trim_end_matches(','));
    trimmed.filter(|line| line.len() >= limits::SECRET_MIN_BYTES && is_own(line)).collect()
}

/// Whether a line stands in no other file of its kind: it is neither a heading, nor a field of which the value is a plain
/// word, a number of a version or the address of a service.
fn is_own(line: &str) -> bool {
    let is_heading = line.starts_with("-----") || line.starts_with('[') || line.ends_with([':', '{', '[', '(']);
    if is_heading || !line.contains(char::is_alphanumeric) {
        return false;
    }
    let value = ["\":", ": ", "="].iter().filter_map(|sign| line.split_once(sign)).map(|(_, value)| value);
    let value = value.map(|value| value.trim_matches([' ', '"', '\'', '='])).find(|value| !value.is_empty());
    value.is_none_or(is_telling)
}

/// Whether a value looks made by chance, or like a password.
fn is_telling(value: &str) -> bool {
    let is_mixed = |run: &str| {
        let has = |kind: fn(&u8) -> bool| run.bytes().any(|byte| kind(&byte));
        run.len() >= limits::SECRET_MIN_BYTES
            && (has(u8::is_ascii_digit) || (has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase)))
    };
    let is_long_enough = value.len() >= limits::SECRET_MIN_BYTES;
    is_long_enough && (value.contains(ODD) || value.split(|one: char| !one.is_alphanumeric()).any(is_mixed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, wanted: &[&str]) {
        assert_eq!(own(value), wanted, "{value}");
    }

    #[test]
    fn lines_that_only_one_secret_has() {
        let begin = "-----BEGIN PRIVATE KEY-----";
        let end = "-----END PRIVATE KEY-----";
        check(&format!("{begin}\nMIIEvQIBADAN\n  Kq3x9Zt=\r\nabc=\n{end}\n"), &["MIIEvQIBADAN", "Kq3x9Zt="]);
        check("correct horse\nbattery staple", &["correct horse", "battery staple"]);
        check("of one line only: 0123456789abcdef", &[]);
        let account = r#"{
  "type": "service_account",
  "project_id": "my-project",
  "private_key_id": "0123456789abcdef",
  "private_key": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN\nKq3x9Ztabc==\n-----END PRIVATE KEY-----\n",
  "auth_uri": "https://accounts.google.com/o/oauth2/auth",
  "token_uri": "https://oauth2.googleapis.com/token",
  "auth_provider_x509_cert_url": "https://www.googleapis.com/oauth2/v1/certs",
  "universe_domain": "googleapis.com"
}"#;
        check(account, &["\"private_key_id\": \"0123456789abcdef\"", "MIIEvQIBADAN", "Kq3x9Ztabc=="]);
        let config = "apiVersion: v1\nkind: Config\nclusters:\n- name: local\n  server: https://10.0.0.1:6443\n\
            users:\n- user:\n    client-key-data: LS0tLS1CRUdJTg==\n    password: pa$word&more\n";
        check(config, &["client-key-data: LS0tLS1CRUdJTg==", "password: pa$word&more"]);
        check(
            "[default]\nregion = eu-central-1\naws_secret_access_key = wJalrXUtnFEMI/K7MDENG",
            &["aws_secret_access_key = wJalrXUtnFEMI/K7MDENG"],
        );
    }
}
