//! What a program prints, made fit for a conversation: valid text, without colours and overwritten lines, with its
//! head and its tail kept. It never holds more than its limits, whatever comes.

use std::mem;

use crate::domain::limits;
use crate::domain::text::around;
use crate::domain::text::head;
use crate::domain::text::tail;

const ESCAPE: u8 = 0x1b;
/// The longest control sequence that is taken for one, in bytes.
const SEQUENCE_MAX_BYTES: usize = 64;

/// Output as it comes.
#[derive(Default)]
pub(crate) struct Output {
    /// Bytes received.
    pub(crate) received: u64,
    /// Lines that the program itself wrote over, such as the states of a progress bar.
    pub(crate) overwritten: u64,
    /// The line that is not finished yet.
    line: Vec<u8>,
    /// A control sequence that is not finished yet.
    sequence: Vec<u8>,
    /// Whether the last byte went back to the start of the line.
    returned: bool,
    head: String,
    tail: String,
    /// Bytes of text made so far.
    made: usize,
}

impl Output {
    /// Takes bytes and gives the text that is finished by them.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> String {
        self.received = self.received.saturating_add(bytes.len() as u64);
        let mut fresh = String::new();
        let mut rest = bytes;
        while let Some((first, others)) = rest.split_first() {
            let (plain, special) = rest.split_at(self.plain(rest));
            if plain.is_empty() {
                self.take(*first, &mut fresh);
                rest = others;
            } else {
                self.add(plain, &mut fresh);
                rest = special;
            }
            self.cut(&mut fresh);
        }
        fresh
    }

    /// Ends the output and gives what was not finished.
    pub(crate) fn finish(&mut self) -> String {
        let mut fresh = String::new();
        let sequence = mem::take(&mut self.sequence);
        self.line.extend(sequence);
        let line = mem::take(&mut self.line);
        self.keep(&line, &mut fresh);
        fresh
    }

    /// The text, or its head and tail with the number of bytes between them; about `max` bytes.
    pub(crate) fn excerpt(&self, max: usize) -> String {
        let kept = format!("{}{}", self.head, self.tail);
        if self.made <= max {
            return kept;
        }
        let (first, last) = (head(&kept, max / 2), tail(&kept, max / 2));
        around(first, self.made - first.len() - last.len(), last)
    }

    /// How many bytes at the start need no thought: they go on with the line as it is, or end it and begin others. No
    /// more than one unfinished line may hold.
    fn plain(&self, bytes: &[u8]) -> usize {
        if self.returned || !self.sequence.is_empty() {
            return 0;
        }
        let room = limits::SCRAP_MAX_BYTES.saturating_sub(self.line.len()).min(bytes.len());
        let special = bytes.iter().take(room).position(|byte| matches!(*byte, b'\r' | ESCAPE));
        special.unwrap_or(room)
    }

    /// Takes bytes that need no thought. All lines that they end are kept at once: output is often nothing but short
    /// lines.
    fn add(&mut self, plain: &[u8], fresh: &mut String) {
        self.line.extend_from_slice(plain);
        if let Some(last) = plain.iter().rposition(|byte| *byte == b'\n') {
            let unfinished = plain.len() - last - 1;
            let rest = self.line.split_off(self.line.len() - unfinished);
            let lines = mem::replace(&mut self.line, rest);
            self.keep(&lines, fresh);
        }
    }

    fn take(&mut self, byte: u8, fresh: &mut String) {
        if !self.sequence.is_empty() && self.continue_sequence(byte) {
            return;
        }
        if mem::take(&mut self.returned) && byte != b'\n' && byte != b'\r' && !self.line.is_empty() {
            self.overwritten += 1;
            self.line.clear();
        }
        match byte {
            b'\r' => self.returned = true,
            ESCAPE => self.sequence.push(ESCAPE),
            b'\n' => {
                let mut line = mem::take(&mut self.line);
                line.push(b'\n');
                self.keep(&line, fresh);
            }
            _ => self.line.push(byte),
        }
    }

    /// A line that is too long to wait for its end is given in pieces.
    fn cut(&mut self, fresh: &mut String) {
        if self.line.len() >= limits::SCRAP_MAX_BYTES {
            let whole = self.line.len() - unfinished(&self.line);
            let rest = self.line.split_off(whole);
            let line = mem::replace(&mut self.line, rest);
            self.keep(&line, fresh);
        }
    }

    /// Whether the byte belongs to the control sequence that was begun. A sequence that turns out to be none goes
    /// back into the line.
    fn continue_sequence(&mut self, byte: u8) -> bool {
        let parameters = self.sequence.len() > 1;
        match (parameters, byte) {
            (false, b'[') => self.sequence.push(byte),
            (true, 0x40..=0x7e) => self.sequence.clear(),
            (true, 0x20..=0x3f) if self.sequence.len() < SEQUENCE_MAX_BYTES => self.sequence.push(byte),
            (false | true, _) => {
                let sequence = mem::take(&mut self.sequence);
                self.line.extend(sequence);
                return false;
            }
        }
        true
    }

    fn keep(&mut self, bytes: &[u8], fresh: &mut String) {
        // Some providers refuse a NUL in a message.
        let text = String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}");
        self.made = self.made.saturating_add(text.len());
        let room = limits::OUTPUT_KEPT_BYTES.saturating_sub(self.head.len());
        let first = if self.tail.is_empty() { head(&text, room) } else { "" };
        self.head.push_str(first);
        self.tail.push_str(&text[first.len()..]);
        if self.tail.len() > 2 * limits::OUTPUT_KEPT_BYTES {
            self.tail = tail(&self.tail, limits::OUTPUT_KEPT_BYTES).to_string();
        }
        fresh.push_str(&text);
    }
}

/// How many bytes at the end may be the start of a character that is not complete.
fn unfinished(bytes: &[u8]) -> usize {
    bytes.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds bytes whole and one by one; both must give the same text, streamed and kept.
    fn check(bytes: &[u8], wanted: &str) {
        for size in [bytes.len().max(1), 1, 3] {
            let mut output = Output::default();
            let mut streamed = String::new();
            for piece in bytes.chunks(size) {
                streamed.push_str(&output.feed(piece));
            }
            streamed.push_str(&output.finish());
            assert_eq!(output.excerpt(usize::MAX), wanted);
            assert_eq!(streamed, wanted);
            assert_eq!(output.received, bytes.len() as u64);
        }
    }

    #[test]
    fn output_becomes_text() {
        check(b"", "");
        check(b"one\ntwo", "one\ntwo");
        check(b"one\r\ntwo\r\r\n", "one\ntwo\n");
        check(b"a\n\nb\nc\rd\ne\x1b[K\nf\ng", "a\n\nb\nd\ne\nf\ng");
        check("aé漢🙂".as_bytes(), "aé漢🙂");
        check(b"caf\xe9 \xff\0!", "caf\u{fffd} \u{fffd}\u{fffd}!");
        check(b"\x1b[1;31mred\x1b[0m \x1b[Kx", "red x");
        check(b" 10%\r 20%\r100%\ndone", "100%\ndone");
        check(b"kept\r", "kept");
        check(b"\x1b]0;title\x07x\x1b", "\x1b]0;title\x07x\x1b");
        check(b"\x1b[12\nx", "\x1b[12\nx");
    }

    #[test]
    fn endless_lines_and_sequences_are_bounded() {
        let mut output = Output::default();
        let line = "é".repeat(50_000);
        let mut streamed = 0;
        for _ in 0..100 {
            streamed += output.feed(line.as_bytes()).len();
        }
        streamed += output.finish().len();
        assert_eq!(streamed, 10_000_000);
        assert!(output.head.len() + output.tail.len() <= 3 * limits::OUTPUT_KEPT_BYTES + line.len());
        let text = output.excerpt(1_000);
        assert!(text.contains("\n[… 9999000 bytes left out …]\n") && !text.contains('\u{fffd}'), "{text}");
        let mut output = Output::default();
        output.feed(b"\x1b[");
        assert_eq!(output.feed(&[b'1'; 100_000]).len() + output.finish().len(), 100_002);
    }

    #[test]
    fn many_short_lines_and_a_long_one_are_the_same_however_they_come() {
        let short = "y\n".repeat(20_000);
        check(short.as_bytes(), &short);
        // What was given of a long line is not taken back when the line is written over.
        let long = format!("{}\n{}\rz\n", "y\n".repeat(3_000), "x".repeat(limits::SCRAP_MAX_BYTES + 10));
        check(long.as_bytes(), &format!("{}\n{}z\n", "y\n".repeat(3_000), "x".repeat(limits::SCRAP_MAX_BYTES)));
    }

    #[test]
    fn overwritten_lines_are_counted() {
        let mut output = Output::default();
        output.feed(b"1\r2\r3\n");
        assert_eq!(output.overwritten, 2);
    }
}
