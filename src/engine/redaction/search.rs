//! Looks for many values in one pass over a text. What it costs is linear in the text, however many values there are and
//! however often the text nearly says one: values are found by their first bytes, and how far one goes on is never
//! compared twice.

use std::collections::HashMap;
use std::ops::Range;

use crate::engine::redaction::encodings::Written;

/// By so many bytes a value is found, so that no shorter one can be. A part of one counts from so many on, too.
pub const HEAD_BYTES: usize = 8;
/// Different beginnings that the filter tells apart.
const FILTER_PLACES: usize = 1 << 16;
/// Bytes that are compared at once.
const STEP_BYTES: usize = 64;

/// Values that are looked for, by their beginnings and by their ends.
pub struct Search {
    forward: Starts,
    /// The same values written backwards, for parts behind a cut.
    backward: Starts,
}

/// Values by their beginnings, in order.
struct Starts {
    values: Vec<Value>,
    /// Which values begin so.
    heads: HashMap<[u8; HEAD_BYTES], Vec<usize>>,
    /// Whether any may begin with four bytes of this hash: nearly every place of a text is passed over by it.
    filter: Vec<bool>,
}

struct Value {
    written: Written,
    /// For each place of it how far the value goes on there as at its beginning.
    repeats: Vec<usize>,
}

impl Search {
    /// Looks for these. A shorter one than `HEAD_BYTES` is not found.
    pub fn of(all: Vec<Written>) -> Search {
        let reversed = |one: &Written| Written { bytes: one.bytes.iter().rev().copied().collect(), ..*one };
        Search { backward: Starts::of(all.iter().map(reversed).collect()), forward: Starts::of(all) }
    }

    /// Where values stand in a text, whole.
    pub fn whole(&self, text: &[u8]) -> Vec<(Range<usize>, &Written)> {
        let mut found = Vec::new();
        self.forward.each(text, |written, place, common| {
            if common == written.bytes.len() {
                found.push((place..place + common, written));
            }
        });
        found
    }

    /// Where parts of values stand that a cut left of them: the beginning of one right before it, or the end of one right
    /// behind it. The cuts are in their order.
    pub fn at_cuts(&self, text: &[u8], cuts: &[Range<usize>]) -> Vec<(Range<usize>, &Written)> {
        let mut found = Vec::new();
        self.forward.each(text, |written, place, common| {
            let before = cuts.partition_point(|cut| cut.start <= place + common);
            let cut = before.checked_sub(1).and_then(|last| cuts.get(last));
            found.extend(cut.filter(|cut| cut.start >= place + HEAD_BYTES).map(|cut| (place..cut.start, written)));
        });
        let reversed: Vec<u8> = text.iter().rev().copied().collect();
        // The ends of cuts grow as their beginnings do, but for those that lie within one another.
        let mut ends: Vec<usize> = cuts.iter().map(|cut| text.len().saturating_sub(cut.end)).collect();
        ends.sort_unstable();
        self.backward.each(&reversed, |written, place, common| {
            let before = ends.partition_point(|end| *end <= place + common);
            let end = before.checked_sub(1).and_then(|last| ends.get(last));
            let range = |end: &usize| text.len() - end..text.len() - place;
            found.extend(end.filter(|end| **end >= place + HEAD_BYTES).map(|end| (range(end), written)));
        });
        found
    }

    /// How many bytes at the end of a text are the beginning of a value and not all of it, the most; of fewer than
    /// `HEAD_BYTES` only if `least` is smaller.
    pub fn begun(&self, text: &[u8], least: usize) -> Option<usize> {
        let mut longest = None;
        let from = text.len().saturating_sub(self.forward.longest());
        let tail = text.get(from..).unwrap_or_default();
        self.forward.each(tail, |written, place, common| {
            if place + common == tail.len() && common < written.bytes.len() {
                longest = longest.max(Some(common));
            }
        });
        let ends = |length: &usize| text.len().checked_sub(*length).and_then(|start| text.get(start..));
        let is_begun = |length: &usize| ends(length).is_some_and(|end| self.forward.is_beginning(end));
        longest.or_else(|| (least..HEAD_BYTES).rev().find(is_begun))
    }
}

impl Starts {
    fn of(mut all: Vec<Written>) -> Starts {
        all.retain(|one| one.bytes.len() >= HEAD_BYTES);
        all.sort_unstable_by(|one, other| one.bytes.cmp(&other.bytes));
        let mut starts = Starts { values: Vec::new(), heads: HashMap::new(), filter: vec![false; FILTER_PLACES] };
        for (index, written) in all.into_iter().enumerate() {
            if let Some(head) = written.bytes.first_chunk::<HEAD_BYTES>() {
                starts.heads.entry(*head).or_default().push(index);
                starts.filter.get_mut(hash(head)).into_iter().for_each(|slot| *slot = true);
            }
            starts.values.push(Value { repeats: repeats(&written.bytes), written });
        }
        starts
    }

    fn longest(&self) -> usize {
        self.values.iter().map(|value| value.written.bytes.len()).max().unwrap_or(0)
    }

    /// Whether a value begins so.
    fn is_beginning(&self, bytes: &[u8]) -> bool {
        let first = self.values.partition_point(|value| value.written.bytes.as_slice() < bytes);
        self.values.get(first).is_some_and(|value| value.written.bytes.starts_with(bytes))
    }

    /// Tells of each place where the head of a value stands: of which, where, and how many bytes they have in common from
    /// there on. Returns how many bytes were compared beside the heads, for the test that this is linear.
    fn each<'s>(&'s self, text: &[u8], mut told: impl FnMut(&'s Written, usize, usize)) -> usize {
        // Of each value that was met, where it goes on furthest, and from where.
        let mut met: HashMap<usize, Range<usize>> = HashMap::new();
        let mut compared = 0;
        for (place, window) in text.windows(HEAD_BYTES).enumerate() {
            let Some(head) = window.first_chunk::<HEAD_BYTES>() else { continue };
            if self.filter.get(hash(head)) != Some(&true) {
                continue;
            }
            for index in self.heads.get(head).into_iter().flatten() {
                let Some(value) = self.values.get(*index) else { continue };
                let furthest = met.entry(*index).or_insert(0..0);
                let known = furthest.end.saturating_sub(place);
                let repeated = value.repeats.get(place - furthest.start).copied().unwrap_or(0).min(known);
                // Where it ends before what is known, it ends there; else only what comes behind that is new.
                let is_open = repeated == known;
                let rest = |bytes: &[u8]| common(bytes, value.written.bytes.get(repeated..).unwrap_or_default());
                let new = text.get(place + repeated..).filter(|_| is_open).map_or(0, rest);
                compared += new;
                if is_open {
                    *furthest = place..place + repeated + new;
                }
                told(&value.written, place, repeated + new);
            }
        }
        compared
    }
}

fn hash(head: &[u8; HEAD_BYTES]) -> usize {
    let [first, second, third, fourth, ..] = *head;
    // The high bits of a product with an odd number depend on all bits.
    let mixed = u32::from_le_bytes([first, second, third, fourth]).wrapping_mul(0x9E37_79B1);
    usize::try_from(mixed >> 16).unwrap_or(0)
}

/// How many bytes two texts have in common at their beginnings.
fn common(one: &[u8], other: &[u8]) -> usize {
    let steps = one.chunks_exact(STEP_BYTES).zip(other.chunks_exact(STEP_BYTES));
    let done = steps.take_while(|(one, other)| one == other).count() * STEP_BYTES;
    let rest = one.iter().skip(done).zip(other.iter().skip(done));
    done + rest.take_while(|(one, other)| one == other).count()
}

/// For each place of a value, how far it goes on there as at its beginning: the Z function, in linear time.
fn repeats(value: &[u8]) -> Vec<usize> {
    let mut all = vec![value.len()];
    let mut furthest: Range<usize> = 0..0;
    for place in 1..value.len() {
        let known = furthest.end.saturating_sub(place);
        let repeated = all.get(place - furthest.start).copied().unwrap_or(0).min(known);
        let mut length = repeated;
        if repeated == known {
            let rest = value.get(place + repeated..).unwrap_or_default();
            length += common(rest, value.get(repeated..).unwrap_or_default());
            furthest = place..place + length;
        }
        all.push(length);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::redaction::encodings::Form;

    fn search(values: &[&[u8]]) -> Search {
        let written = |(value, bytes): (usize, &&[u8])| Written { bytes: bytes.to_vec(), form: Form::Plain, value };
        Search::of(values.iter().enumerate().map(written).collect())
    }

    /// Bytes of the first few letters, by a rule that repeats nothing soon.
    fn bytes(length: usize, letters: usize, seed: usize) -> Vec<u8> {
        let mut state = seed;
        let mut next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            b"abcdefghijklmnopqrstuvwxyz"[(state >> 33) % letters]
        };
        (0..length).map(&mut next).collect()
    }

    #[test]
    fn all_is_found_that_comparing_everywhere_finds() {
        for seed in 0..200 {
            let values =
                [bytes(9, 2, seed), bytes(17, 2, seed + 1_000), b"abababababab".to_vec(), b"aaaaaaaaa".to_vec()];
            let mut text = bytes(120, 2, seed + 2_000);
            text.extend(values.concat());
            let cuts = [20..24, 60..70, 125..126];
            let search = search(&values.each_ref().map(Vec::as_slice));
            let mut found: Vec<_> =
                search.whole(&text).into_iter().map(|(range, one)| (range.start, one.value)).collect();
            let mut parts: Vec<_> =
                search.at_cuts(&text, &cuts).into_iter().map(|(range, one)| (range, one.value)).collect();
            let mut begun = None;
            for (value, bytes) in values.iter().enumerate() {
                let mut here = (0..text.len()).filter(|place| text[*place..].starts_with(bytes));
                assert!(here.all(|place| found.contains(&(place, value))), "{seed}");
                found.retain(|(place, one)| *one != value || !text[*place..].starts_with(bytes));
                for length in (1..bytes.len()).filter(|length| text.ends_with(&bytes[..*length])) {
                    begun = begun.max(Some(length));
                }
                for (cut, length) in
                    cuts.iter().flat_map(|cut| (HEAD_BYTES..bytes.len()).map(move |length| (cut, length)))
                {
                    let is_covered = |range: Range<usize>| {
                        parts
                            .iter()
                            .any(|(part, one)| *one == value && part.start <= range.start && range.end <= part.end)
                    };
                    let before = text[..cut.start].ends_with(&bytes[..length]);
                    let behind = text[cut.end..].starts_with(&bytes[bytes.len() - length..]);
                    assert!(!before || is_covered(cut.start - length..cut.start), "{seed}");
                    assert!(!behind || is_covered(cut.end..cut.end + length), "{seed}");
                }
            }
            assert!(found.is_empty(), "more than there is: {seed} {found:?}");
            parts.retain(|(part, value)| {
                let (part, bytes) = (&text[part.clone()], &values[*value]);
                !bytes.starts_with(part) && !bytes.ends_with(part)
            });
            assert!(parts.is_empty(), "more than there is: {seed} {parts:?}");
            assert_eq!(search.begun(&text, 1), begun, "{seed}");
        }
    }

    /// No byte is compared twice for one value, whatever is written to look like it.
    #[test]
    fn the_work_is_linear_in_the_text() {
        let key = bytes(31_000, 26, 7);
        let lines: Vec<&[u8]> = key.chunks(64).collect();
        let same = b"abcdefgh".repeat(4_000);
        let cut = " [… 9 bytes left out …] ".as_bytes();
        let mut most = 0;
        for values in [vec![key.as_slice()], lines, vec![same.as_slice()]] {
            let search = search(&values);
            let near = &values[0][..values[0].len() - 1];
            let texts = [
                near.repeat(256_000 / near.len()),
                [near, cut].concat().repeat(256_000 / near.len()),
                [&near[..HEAD_BYTES], cut].concat().repeat(8_000),
                near[..HEAD_BYTES].repeat(32_000),
                key.repeat(8),
                same.repeat(8),
                vec![b'a'; 256_000],
            ];
            for text in texts {
                let mut places = 0;
                let compared = search.forward.each(&text, |_, _, _| places += 1);
                assert!(compared <= text.len() && places <= text.len(), "{compared} and {places} of {}", text.len());
                most = most.max(compared);
            }
        }
        assert!(most > 200_000, "the control: there is work to do, {most}");
    }
}
