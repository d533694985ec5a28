//! Texts of iterations that were put away, read again while they are looked at. The newest of them are kept, within
//! bounds; one iteration is read at a time, and no frame waits for it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::domain::limits;
use crate::domain::message::Entry;
use crate::domain::message::Message;
use crate::domain::message::entry_bytes;
use crate::domain::outline::Outline;
use crate::domain::run::Run;
use crate::tui::app::App;
use crate::tui::app::Out;
use crate::tui::scroll::Anchor;
use crate::tui::view::activity;

/// The entries of an iteration with all their texts, or why they can't be had, as the end of a sentence.
pub type Read = Result<Vec<Arc<Entry>>, String>;

/// The iterations that a frame showed, and in how many cells a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Iterations {
    /// The first of them.
    pub first: u32,
    /// The last of them.
    pub last: u32,
    /// Cells in a row.
    pub width: usize,
}

/// What was read.
#[derive(Clone, Debug, Default)]
pub struct Reread {
    iterations: BTreeMap<u32, Known>,
    /// What is being read.
    asked: Option<u32>,
    /// Counts the frames, to know what was looked at last.
    frame: u64,
}

#[derive(Clone, Debug)]
struct Known {
    read: Read,
    bytes: usize,
    /// The last frame that showed it, or one near it.
    frame: u64,
}

impl Reread {
    /// An iteration as it was read.
    pub fn of(&self, iteration: u32) -> Option<&Read> {
        self.iterations.get(&iteration).map(|known| &known.read)
    }

    fn bytes(&self) -> usize {
        self.iterations.values().map(|known| known.bytes).sum()
    }

    fn take(&mut self, iteration: u32, read: Read) {
        self.asked = self.asked.filter(|asked| *asked != iteration);
        let bytes = read.iter().flatten().map(|entry| entry_bytes(entry)).sum();
        self.iterations.insert(iteration, Known { read, bytes, frame: self.frame });
        while self.iterations.len() > limits::REREAD_ITERATIONS || self.bytes() > limits::REREAD_BYTES {
            let oldest = self.iterations.iter().min_by_key(|(_, known)| known.frame);
            // What is being looked at stays, however much it is.
            let Some((iteration, _)) = oldest.filter(|(_, known)| known.frame < self.frame) else { return };
            let iteration = *iteration;
            self.iterations.remove(&iteration);
        }
    }

    /// The next iteration to be read of those that are looked at, and, where there is room, of those before them: that
    /// way the operator will scroll.
    fn next(&mut self, shown: RangeInclusive<u32>, is_unread: impl Fn(u32) -> bool) -> Option<u32> {
        self.frame += 1;
        let touched: usize = self
            .iterations
            .range_mut(shown.clone())
            .map(|(_, known)| {
                known.frame = self.frame;
                known.bytes
            })
            .sum();
        let before = shown.start().saturating_sub(limits::REREAD_AHEAD)..*shown.start();
        let has_room =
            touched <= limits::REREAD_BYTES / 2 && shown.clone().count() + before.len() <= limits::REREAD_ITERATIONS;
        let before = Some(before).filter(|_| has_room).unwrap_or_default();
        self.iterations.range_mut(before.clone()).for_each(|(_, known)| known.frame = self.frame);
        if self.asked.is_some() {
            return None;
        }
        let wanted = |n: &u32| !self.iterations.contains_key(n) && is_unread(*n);
        self.asked = shown.chain(before.rev()).find(wanted);
        self.asked
    }
}

/// The places in the conversation of what belongs to an iteration.
fn places(run: &Run, iteration: u32) -> Range<usize> {
    first_of(run, iteration)..first_of(run, iteration.saturating_add(1))
}

/// The place in the conversation of the first entry that belongs to iteration `n` or a later one.
fn first_of(run: &Run, n: u32) -> usize {
    let talk = &run.transcript;
    let (mut low, mut high) = (0, talk.len());
    while low < high {
        let middle = low + (high - low) / 2;
        match talk.get(middle).is_some_and(|entry| entry.iteration < n) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

/// Something that was said, in its place in the conversation; its outline where its texts are not read.
pub(crate) struct Told<'a> {
    pub(crate) place: usize,
    pub(crate) message: &'a Message,
    outline: Option<&'a Outline>,
}

impl Told<'_> {
    /// Whether a text of it is not read.
    pub(crate) fn lacks(&self, slot: usize) -> bool {
        self.outline.is_some_and(|outline| outline.lacks(slot))
    }
}

/// What was said in an iteration, as it was read again or as far as the run has it.
pub(crate) fn told<'a>(run: &'a Run, read: Option<&'a Read>, iteration: u32) -> Vec<Told<'a>> {
    let talk = &run.transcript;
    let places = places(run, iteration);
    let start = places.start;
    let read = read.and_then(|read| read.as_ref().ok());
    let one = |place: usize| match read.and_then(|read| read.get(place - start)) {
        Some(entry) => Some(Told { place, message: &entry.message, outline: None }),
        None => Some(Told { place, message: &talk.get(place)?.message, outline: talk.outlines().get(place) }),
    };
    places.filter_map(one).collect()
}

fn outlines(run: &Run, iteration: u32) -> impl Iterator<Item = &Outline> {
    places(run, iteration).map_while(|place| run.transcript.outlines().get(place))
}

impl App {
    /// Asks for the next texts that a frame showed to be missing.
    pub(crate) fn read_more(&mut self) -> Vec<Out> {
        let Some(shown) = self.seen.iterations else { return Vec::new() };
        let run = &self.run;
        let is_unread = |n| outlines(run, n).any(|outline| outline.records().next().is_some());
        match self.reread.next(shown.first..=shown.last, is_unread) {
            Some(n) => vec![Out::Read(n, outlines(&self.run, n).cloned().collect())],
            None => Vec::new(),
        }
    }

    /// Keeps what is looked at, just before the iterations up to this one are put away.
    pub(crate) fn keep_shown(&mut self, to: u32) {
        let Some(shown) = self.seen.iterations else { return };
        for n in shown.first..=shown.last.min(to) {
            let talk = &self.run.transcript;
            let entries = talk.entries().skip_while(|entry| entry.iteration < n);
            let entries: Vec<Arc<Entry>> = entries.take_while(|entry| entry.iteration == n).cloned().collect();
            if outlines(&self.run, n).next().is_none() && !entries.is_empty() {
                self.reread.take(n, Ok(entries));
            }
        }
    }

    /// Takes in the texts of an iteration. What is looked at stays where it is.
    pub(crate) fn take_read(&mut self, iteration: u32, read: Read) {
        let Some((block, width)) = self.seen.iterations.and_then(|shown| {
            let block = usize::try_from(iteration).ok()?.checked_sub(1)?;
            Some((block, shown.width))
        }) else {
            return self.reread.take(iteration, read);
        };
        let before = activity::firm_rows(self, block, width);
        self.reread.take(iteration, read);
        let after = activity::firm_rows(self, block, width);
        if let Anchor::At { block: held, row } = &mut self.activity_scroll.anchor
            && *held == block
        {
            *row = moved(*row, &before, &after);
        }
        if let Some((held, row)) = self.seen.activity.as_mut().map(|view| &mut view.top)
            && *held == block
        {
            *row = moved(*row, &before, &after);
        }
    }
}

/// Where a row of an iteration stands after its texts came: the next row that is no text keeps its distance. `before`
/// and `after` say of each row whether it is such a one; there are as many of them before as after.
fn moved(row: usize, before: &[bool], after: &[bool]) -> usize {
    let Some(distance) = before.iter().skip(row).position(|is_firm| *is_firm) else { return row };
    let rank = before.iter().take(row + distance).filter(|is_firm| **is_firm).count();
    let firm = after.iter().enumerate().filter(|(_, is_firm)| **is_firm).nth(rank);
    firm.map_or(row, |(place, _)| place.saturating_sub(distance))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(row: usize, before: &str, after: &str, expected: usize) {
        let read = |rows: &str| rows.chars().map(|row| row == '#').collect::<Vec<bool>>();
        assert_eq!(moved(row, &read(before), &read(after)), expected, "{row} of {before} in {after}");
    }

    #[test]
    fn a_row_stays_where_it_was_when_texts_come() {
        check(0, "#.#.#", "#...#...#", 0);
        check(2, "#.#.#", "#...#...#", 4);
        check(4, "#.#.#", "#...#...#", 8);
        // A row that stood for a text is the last row of that text.
        check(1, "#.#.#", "#...#...#", 3);
        check(3, "#.#.#", "#...#...#", 7);
        check(1, "#.#", "##", 0);
        check(9, "#.#", "#..#", 9);
        check(1, "#.", "#...", 1);
    }

    fn entry(bytes: usize) -> Arc<Entry> {
        let message = Message::Engine { text: "x".repeat(bytes) };
        let (at, seq) = (crate::domain::time::Timestamp(0), crate::domain::id::Seq(1));
        Arc::new(Entry { iteration: 1, at, seq, message })
    }

    #[test]
    fn what_was_looked_at_last_is_kept_within_bounds() {
        let mut reread = Reread::default();
        let mut read = 0;
        for first in (1..5_000).rev().step_by(3) {
            while let Some(n) = reread.next(first..=first + 9, |n| n > 0) {
                read += 1;
                assert_eq!(reread.next(first..=first + 9, |_| true), None, "one at a time");
                reread.take(n, Ok(vec![entry(1_000)]));
            }
            assert!((first..=first + 9).all(|n| reread.of(n).is_some()));
            assert!(reread.iterations.len() <= limits::REREAD_ITERATIONS);
        }
        assert!(read < 5_100, "{read} were read, some of them again");
        // Long texts: those that are looked at are kept, and nothing is read for later.
        let mut reread = Reread::default();
        let mut read = 0;
        while let Some(n) = reread.next(100..=103, |_| true) {
            read += 1;
            reread.take(n, Ok(vec![entry(limits::REREAD_BYTES / 2)]));
        }
        assert_eq!((read, reread.iterations.len()), (4, 4));
        reread.next(1..=1, |_| false);
        reread.take(1, Err("gone".to_string()));
        assert!(reread.bytes() <= limits::REREAD_BYTES && reread.of(1).is_some());
    }
}
