//! What the values of the journal tree hold: the records of a batch, a line of JSON each.
//!
//! A short batch is written value by value, in order and without a transaction. So that it is there whole or not at
//! all, every value but its last ends with a line feed, which says that the batch goes on: what was cut short ends with
//! one, and is taken back before anything is read. A batch that has pieces or is long is a transaction; its values hold
//! a record each. Pure: bytes in, bytes out. Format: docs/JOURNAL.md, "A batch".

use memchr::memchr;

use crate::domain::id::Seq;
use crate::domain::limits;
use crate::store::codec::Encoded;

/// The format of a store. In format 1 every value holds one record, and no batch is cut short; it is read as this one.
pub(crate) const STORE_FORMAT: u32 = 2;

const GOES_ON: u8 = b'\n';

/// A value of the journal tree.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Value {
    /// The position of its first record, which is its key.
    pub(crate) first: Seq,
    /// Its lines; at most `limits::VALUE_MAX_BYTES`.
    pub(crate) bytes: Vec<u8>,
}

/// A batch as values that can be written one after the other; nothing when it has to be a transaction.
pub(crate) fn lay(batch: &[Encoded]) -> Option<Vec<Value>> {
    let bytes: usize = batch.iter().map(|one| one.value.len() + 1).sum();
    if bytes > limits::PLAIN_BATCH_BYTES || batch.iter().any(|one| !one.pieces.is_empty()) {
        return None;
    }
    let mut values: Vec<Value> = Vec::new();
    for Encoded { mark, value, pieces: _ } in batch {
        if let Some(before) = values.last_mut() {
            before.bytes.push(GOES_ON);
            // One byte more, if the batch goes on behind this one.
            if before.bytes.len() + value.len() < limits::VALUE_MAX_BYTES {
                before.bytes.extend_from_slice(value);
                continue;
            }
        }
        values.push(Value { first: mark.seq, bytes: value.clone() });
    }
    Some(values)
}

/// The lines of a value, which belong to the positions from its key on.
pub(crate) fn lines(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value.strip_suffix(&[GOES_ON]).unwrap_or(value));
    std::iter::from_fn(move || {
        let bytes = rest.take()?;
        // Each byte of a journal comes by here as it is opened: a search by the word is a tenth of one by the byte.
        let (line, behind) = memchr(GOES_ON, bytes).and_then(|end| bytes.split_at_checked(end)).unzip();
        rest = behind.and_then(|behind| behind.get(1..));
        Some(line.unwrap_or(bytes))
    })
}

/// Whether the batch of a value goes on in the next one.
pub(crate) fn goes_on(value: &[u8]) -> bool {
    value.ends_with(&[GOES_ON])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::store::codec;

    /// Records of these lengths as values, each as its key, its lines, and a `+` when the batch goes on behind it.
    fn check(lengths: &[usize]) -> Option<String> {
        let mut batch: Vec<Encoded> = Vec::new();
        for (seq, length) in (7..).zip(lengths) {
            batch.push(codec::store(vec![b'x'; *length], Seq(seq)).unwrap());
        }
        let values = lay(&batch)?;
        let mut laid = Vec::new();
        for Value { first, bytes } in &values {
            assert!(bytes.len() <= limits::VALUE_MAX_BYTES, "{}", bytes.len());
            let lengths: Vec<usize> = lines(bytes).map(<[u8]>::len).collect();
            laid.push(format!("{first}: {lengths:?}{}", if goes_on(bytes) { " +" } else { "" }));
        }
        Some(laid.join("; "))
    }

    #[test]
    fn records_share_values_and_the_last_value_ends_the_batch() {
        let most = limits::VALUE_MAX_BYTES;
        assert_eq!(check(&[10]).unwrap(), "7: [10]");
        assert_eq!(check(&[10, 20, 30]).unwrap(), "7: [10, 20, 30]");
        assert_eq!(check(&[most - 1]).unwrap(), format!("7: [{}]", most - 1));
        assert_eq!(check(&[most - 1, 1]).unwrap(), format!("7: [{}] +; 8: [1]", most - 1));
        assert_eq!(check(&[most - 3, 1, 1]).unwrap(), format!("7: [{}, 1] +; 9: [1]", most - 3));
        assert_eq!(check(&[most - 2, 1]).unwrap(), format!("7: [{}] +; 8: [1]", most - 2));
        let eight = "7: [1125, 1125, 1125, 1125, 1125, 1125] +; 13: [1125, 1125]";
        assert_eq!(check(&[1_125; 8]).unwrap(), eight);
    }

    #[test]
    fn what_has_pieces_or_is_long_is_not_laid() {
        assert_eq!(check(&[10, limits::VALUE_MAX_BYTES]), None);
        assert!(check(&[limits::PLAIN_BATCH_BYTES / 8 - 1; 8]).is_some());
        assert_eq!(check(&[limits::PLAIN_BATCH_BYTES / 8; 8]), None);
    }
}
