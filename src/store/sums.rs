//! Lines of the ledger as they are written, each with a sum over the rest of it, so that other bytes are noticed
//! (docs/JOURNAL.md, "The ledger").

use std::io;

use crate::domain::daily::Line;
use crate::domain::text::short_hash;

/// What stands between a line and its sum, which is its last field.
const SUM: &str = ",\"sum\":\"";
/// What stands behind the sum.
const SUM_ENDS: &str = "\"}";

/// Lines as they are written, each with a sum over the rest of it.
pub(crate) fn written(lines: &[Line]) -> io::Result<String> {
    let mut text = String::new();
    for line in lines {
        let json = serde_json::to_string(line)?;
        let fields = json.strip_suffix('}').unwrap_or(&json);
        text += &format!("{fields}{SUM}{}{SUM_ENDS}\n", short_hash(fields.as_bytes()));
    }
    Ok(text)
}

/// Reads what was written; a line from before there were sums has none. Errors with what is wrong with the ledger, as
/// the end of a sentence.
pub(crate) fn read(text: &[u8]) -> Result<Line, &'static str> {
    let unreadable = "has lines that can't be read";
    let text = std::str::from_utf8(text).map_err(|_| unreadable)?;
    let line = serde_json::from_str(text).map_err(|_| unreadable)?;
    match text.rsplit_once(SUM) {
        Some((fields, sum)) if sum.trim_end().strip_suffix(SUM_ENDS) != Some(&short_hash(fields.as_bytes())) => {
            Err("has lines that are not what was written")
        }
        Some(_) | None => Ok(line),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_was_written_or_is_not_read() {
        let old = "{\"at\":1000,\"run\":\"111111111111\",\"call\":1,\"attempt\":1,\"held\":200}\n";
        let held = read(old.as_bytes()).unwrap();
        let new = written(std::slice::from_ref(&held)).unwrap();
        assert_eq!(read(new.as_bytes()), Ok(held.clone()));
        // Whatever bit of it is flipped, nothing else is read of it.
        for bit in 0..8 * (new.len() - 1) {
            let mut bytes = new.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let found = read(&bytes);
            assert!(found.is_err() || found == Ok(held.clone()), "{}", String::from_utf8_lossy(&bytes));
        }
        let another = read(new.replace("200", "900").as_bytes());
        assert_eq!(another, Err("has lines that are not what was written"));
    }
}
