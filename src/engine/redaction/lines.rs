//! A known value of several lines is known line by line as well: what shows it may put something between its lines, as
//! numbers, quoting or the signs of a difference.

use crate::domain::limits;

/// Signs that names, places and addresses do not have.
const ODD: &[char] = &['!', '#', '$', '%', '^', '&', '*', '+', '~'];
/// Longest heading of a file, in bytes: a longer line stands in no other file by accident.
const HEADING_MAX_BYTES: usize = 32;
/// Shortest value of several words that stands in no other file by accident, in bytes.
const PHRASE_MIN_BYTES: usize = 16;
/// Signs that stand around the name of a heading, or of a field.
const AROUND: [char; 12] = [' ', '\t', '"', '\'', '-', '[', ']', '{', '}', '(', ':', '='];

/// The lines of a value that say something which only this value says. None where it has one line only.
pub fn own(value: &str) -> Vec<&str> {
    // In a variable, line breaks are often written as an escape.
    let lines: Vec<&str> = value.split(['\n', '\r']).flat_map(|line| line.split("\\n")).collect();
    if lines.len() < 2 {
        return Vec::new();
    }
    let lines: Vec<&str> = lines.into_iter().map(|line| line.trim().trim_end_matches(',')).collect();
    // Only what has fields has headings: elsewhere a sign at an end of a line is one of the secret.
    let has_fields = lines.iter().any(|line| field(line).is_some());
    let is_own = |line: &&str| {
        let is_common = is_border(line) || (has_fields && is_heading(line));
        line.len() >= limits::SECRET_MIN_BYTES
            && line.contains(char::is_alphanumeric)
            && !is_common
            && field(line).is_none_or(is_telling)
    };
    lines.into_iter().filter(is_own).collect()
}

/// Whether a line is the first or last one of what is written in PEM.
fn is_border(line: &str) -> bool {
    let is_border = |name: &str| name.chars().all(|one| one == ' ' || one.is_ascii_uppercase() || one.is_ascii_digit());
    line.strip_prefix("-----").and_then(|rest| rest.strip_suffix("-----")).is_some_and(is_border)
}

/// Whether a line is a name and no more but signs around it: `[default]`, `users:`, `"installed": {`.
fn is_heading(line: &str) -> bool {
    let is_section = line.starts_with('[') && line.ends_with(']');
    let is_opening = line.ends_with([':', '{', '[', '(']);
    // `[profile dev]`, `[remote "origin"]`
    let words = if is_section { 2 } else { 1 };
    let names: Vec<&str> = line.trim_matches(AROUND).split_whitespace().collect();
    (is_section || is_opening)
        && line.len() <= HEADING_MAX_BYTES
        && names.len() <= words
        && names.into_iter().all(|name| is_name(name.trim_matches(AROUND)))
}

/// The value of a field, if a line is a field: a name, a sign, and something. What is no name is no field.
fn field(line: &str) -> Option<&str> {
    let parts = ["\":", ": ", "="].iter().filter_map(|sign| line.split_once(sign));
    let parts = parts.map(|(name, value)| (name, value.trim_matches([' ', '"', '\'', '='])));
    let (name, value) = parts.into_iter().find(|(_, value)| !value.is_empty())?;
    // `export NAME=value`, `- name: value`
    let name = name.trim_matches(AROUND).rsplit(char::is_whitespace).next()?;
    is_name(name).then_some(value)
}

/// Whether people gave this name: its letters and digits change kind at most once in four. What is made by chance does
/// so nearly every second time.
fn is_name(text: &str) -> bool {
    let kind = |byte: &u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
    let pairs = text.as_bytes().iter().zip(text.as_bytes().iter().skip(1));
    let are_both = |one: &u8, next: &u8| one.is_ascii_alphanumeric() && next.is_ascii_alphanumeric();
    // A capital begins a word.
    let is_start = |one: &u8, next: &u8| one.is_ascii_uppercase() && next.is_ascii_lowercase();
    let is_turn = |one: &u8, next: &u8| are_both(one, next) && kind(one) != kind(next) && !is_start(one, next);
    let turns = pairs.filter(|(one, next)| is_turn(one, next)).count();
    !text.is_empty() && !text.contains(ODD) && turns * 4 <= text.len()
}

/// Whether a value looks made by chance, or like a password, or is several words.
fn is_telling(value: &str) -> bool {
    let is_mixed = |run: &str| {
        let has = |kind: fn(&u8) -> bool| run.bytes().any(|byte| kind(&byte));
        run.len() >= limits::SECRET_MIN_BYTES
            && (has(u8::is_ascii_digit) || (has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase)))
    };
    let is_phrase = value.len() >= PHRASE_MIN_BYTES && value.contains(' ') && !is_border(value);
    let is_long_enough = value.len() >= limits::SECRET_MIN_BYTES;
    let is_by_chance = !is_name(value) || value.split(|one: char| !one.is_alphanumeric()).any(is_mixed);
    is_phrase || (is_long_enough && is_by_chance)
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

    /// The signs at the ends of a line say nothing where the value is no file of names and values.
    #[test]
    fn a_line_counts_whatever_sign_it_begins_or_ends_with() {
        for line in
            ["hunter2hunter2:", "correct horse [", "[correct horse]", "{battery}{", "staple-staple(", "-----staple"]
        {
            check(&format!("{line}\nsecond line of it"), &[line, "second line of it"]);
        }
        // Nor in one, where it is no name.
        for line in ["qR7tW9xKpL2m:", "[qR7tW9xK-pL2mZ4]", "pa$word-more {", "correct horse battery:"] {
            check(&format!("[default]\nregion = eu-central-1\n{line}\n"), &[line]);
        }
        let long = format!("[{}]", "longer-".repeat(6));
        check(&format!("a = b\n{long}"), &[&long]);
        // What stands before a sign of a field and is no name.
        check("region = eu-central-1\nqR7tW9xKpL2m=word", &["qR7tW9xKpL2m=word"]);
        let words = "password = correct horse battery";
        check(&format!("region = eu-central-1\n{words}\n"), &[words]);
    }

    #[test]
    fn headings_of_files_are_no_secrets() {
        let toml = "title = \"local\"\n[[servers]]\n[remote \"origin\"]\n[profile dev2]\nallowed = [\npassword = \"Kq3x9Zt-abc\"";
        check(toml, &["password = \"Kq3x9Zt-abc\""]);
        let yaml = "apiVersion: v1\nclusters:\n- cluster:\nusersOfIt:\ncontexts: [\nclientCertificate:\n- user: {";
        check(yaml, &[]);
        let json = "{\n\"installed\": {\n\"redirect_uris\": [\n\"oauth2Client\": {\n\"type\": \"external\"\n}\n}";
        check(json, &[]);
    }
}
