//! Text that comes in scraps: what may still become a secret is held back until it is clear. For screens only; the
//! record of the whole text is made apart.

use std::sync::Arc;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::domain::id::ModelCallId;
use crate::domain::limits;
use crate::domain::model::Delta;
use crate::domain::model::DeltaSource;
use crate::engine::redaction::Redactor;
use crate::engine::redaction::patterns;

/// Passes on scraps, clean, until nobody can send any more.
pub async fn pass_on(redactor: Arc<Redactor>, mut from: broadcast::Receiver<Delta>, to: broadcast::Sender<Delta>) {
    let mut streams = Streams::default();
    loop {
        match from.recv().await {
            Ok(Delta { source, text }) => {
                let text = streams.held(source).feed(&redactor, &text);
                if !text.is_empty() {
                    // Nobody may be looking.
                    let _ = to.send(Delta { source, text });
                }
            }
            Err(RecvError::Lagged(count)) => {
                streams.lose();
                let _ = to.send(Delta { source: DeltaSource::Lost(count), text: String::new() });
            }
            Err(RecvError::Closed) => return,
        }
    }
}

/// Texts that are streamed side by side, the one that was fed last at the end.
#[derive(Default)]
struct Streams {
    held: Vec<(DeltaSource, Held)>,
    /// Scraps were lost, maybe the first ones of a text that was not heard of yet.
    is_doubtful: bool,
    /// The model call that was heard of first since then.
    heard: Option<ModelCallId>,
}

impl Streams {
    /// What is held of a text.
    fn held(&mut self, source: DeltaSource) -> &mut Held {
        if let DeltaSource::Text(call) | DeltaSource::Reasoning(call) | DeltaSource::Arguments(call) = source {
            // A call that came after another one was heard has begun since the loss.
            self.is_doubtful &= *self.heard.get_or_insert(call) == call;
        }
        let known = self.held.iter().position(|(one, _)| *one == source).map(|place| self.held.remove(place).1);
        if known.is_none() && self.held.len() >= limits::STREAMS {
            self.held.remove(0);
        }
        let held = known.unwrap_or(Held { within_line: self.is_doubtful, ..Held::default() });
        &mut self.held.push_mut((source, held)).1
    }

    /// Scraps were lost, nobody knows of which texts.
    fn lose(&mut self) {
        self.held.iter_mut().for_each(|(_, held)| held.lose());
        self.is_doubtful = true;
        self.heard = None;
    }
}

/// The end of a text that may still become a secret.
#[derive(Default)]
pub struct Held {
    text: String,
    /// Scraps were lost: the rest of their line may be the rest of a secret, and is dropped.
    within_line: bool,
    /// A private key was too long to be held; its rest is dropped.
    within_key: bool,
}

impl Held {
    /// Takes a scrap and gives what is clear by now, clean.
    pub fn feed(&mut self, redactor: &Redactor, scrap: &str) -> String {
        let scrap = match scrap.split_once('\n').filter(|_| self.within_line) {
            Some((_, rest)) => rest,
            None if self.within_line => return String::new(),
            None => scrap,
        };
        self.within_line = false;
        self.text.push_str(scrap);
        if self.within_key {
            let Some(end) = self.text.find("-----END ") else {
                let kept = self.text.ceil_char_boundary(self.text.len().saturating_sub("-----END ".len()));
                self.text.drain(..kept);
                return String::new();
            };
            self.text.drain(..end);
            self.within_key = false;
        }
        let clear = self.clear(redactor);
        let rest = self.text.split_off(clear);
        let out = std::mem::replace(&mut self.text, rest);
        if self.text.len() > limits::HELD_MAX_BYTES {
            self.within_key = patterns::open_private_key(&self.text).is_some();
            let held = std::mem::take(&mut self.text);
            return format!("{}{}", redactor.cleaned(&out), redactor.cleaned(&held));
        }
        redactor.cleaned(&out).into_owned()
    }

    /// Scraps after those that were fed are lost. What was held is dropped with them; of a private key that was begun, all
    /// to its end.
    fn lose(&mut self) {
        self.within_key |= patterns::open_private_key(&self.text).is_some();
        self.within_line = !self.within_key;
        self.text.clear();
    }

    /// How much of the text can't become part of a secret any more, in bytes.
    fn clear(&self, redactor: &Redactor) -> usize {
        let word = last_word(&self.text);
        let before = self.text.get(..word).unwrap_or_default();
        let previous = last_word(before.trim_end());
        let is_bearer = before.get(previous..).is_some_and(|text| text.trim_end().eq_ignore_ascii_case("bearer"));
        let word = if is_bearer { previous } else { word };
        let key = patterns::open_private_key(&self.text).unwrap_or(self.text.len());
        let known = redactor.begins_known(&self.text).unwrap_or(self.text.len());
        redactor.outside_known(&self.text, word.min(key).min(known))
    }
}

/// Where the last word of a text begins; its end where it ends in whitespace.
fn last_word(text: &str) -> usize {
    text.char_indices().rev().find(|(_, one)| one.is_whitespace()).map_or(0, |(place, one)| place + one.len_utf8())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::domain::id::CallId;

    const KEY: &str = "-----BEGIN X-----\nMHcCAQEEIKe1/+4Rr0gOdVZ0OVpqWmT2\nb25lIG1vcmUgbGluZQ+9xY\n-----END X-----";

    fn check(text: &str, expected: &str) {
        let known = [("PASSPHRASE", "correct horse battery"), ("SIGNING", KEY)];
        let known = known.map(|(name, value)| (name.to_string(), value.to_string().into()));
        let redactor = Redactor::new("k".to_string().into(), known);
        let chars: Vec<char> = text.chars().collect();
        let look = |scraps: &mut dyn Iterator<Item = &[char]>, how: &str| {
            let mut held = Held::default();
            let out: String = scraps.map(|scrap| held.feed(&redactor, &scrap.iter().collect::<String>())).collect();
            assert!(out.starts_with(expected), "{how}: {out}");
            for secret in
                ["horse", "\\u006f", "Y29ycmVj", "abcdefgh", "MIIEvQ", "0123456789", "MHcC", "b25lIG", "TUhjQ"]
            {
                assert!(!out.contains(secret), "{how}: {out}");
            }
        };
        for size in 1..12 {
            look(&mut chars.chunks(size), &format!("in pieces of {size}"));
        }
        for place in 0..chars.len() {
            let (first, second) = chars.split_at(place);
            look(&mut [first, second].into_iter(), &format!("cut at {place}"));
        }
    }

    #[test]
    fn nothing_of_a_secret_comes_out_however_it_is_cut() {
        check("say correct horse battery now\n", "say [redacted:PASSPHRASE:");
        check("so Y29ycmVjdCBob3JzZSBiYXR0ZXJ5 now\n", "so [redacted:PASSPHRASE:");
        check("Bearer abcdefghijklmnop0123456789 now\n", "Bearer [redacted:bearer-token:");
        check("a -----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY----- b\n", "a [redacted:private-key:");
        check("plain words come at once\n", "plain words come at once");
        check("so correct\\u0020h\\u006frse battery now\n", "so [redacted:PASSPHRASE:");
        check("so c\\u006frrect horse batter&#121; now\n", "so [redacted:PASSPHRASE:");
        check("the digits Y29ycmVjdCBob3Jz\nZSBiYXR0ZXJ5 now\n", "the digits [redacted:PASSPHRASE:");
        check("2\tMHcCAQEEIKe1/+4Rr0gOdVZ0OVpqWmT2\n3\tb25lIG1vcmUgbGluZQ+9xY\n", "2\t[redacted:SIGNING:");
        check("so correct\u{1b}[1;31m horse\u{1b}[0m battery now\n", "so [redacted:PASSPHRASE:");
        let dump = "00000000: 636f 7272 6563 7420 686f 7273 6520 6261  correct horse ba\n\
                    00000010: 7474 6572 790a                           ttery.\n";
        check(dump, "00000000: [redacted:PASSPHRASE:");
        check("c:63:6f:72:72:65:63:74:20:68:6f:72:73:65:20:62:61:74:74:65:72:79 x\n", "c:[redacted:PASSPHRASE:");
        // What looked like a beginning, and went on as something else.
        check("63 6f 72 72 and internationalisation of it all ", "63 6f 72 72 and internationalisation of it all");
        check("> MHcCAQEEIKe1/+4Rr0gOdVZ0OVpqWmT2\n> b25lIG1vcmUgbGluZQ+9xY\n", "> [redacted:SIGNING:");
        check("TUhjQ0FRRUVJS2UxLys0UnIwZ09kVlowT1ZwcVdtVDI= x\n", "[redacted:SIGNING:");
        check(" 7\tTUhjQ0FRRUVJS2UxLys0UnIwZ09kV\n 8\tlowT1ZwcVdtVDI= x\n", " 7\t[redacted:SIGNING:");
    }

    /// What comes out of these scraps of a command's output. So many of them are sent at once that those before the last
    /// `ROOM` of each list are lost.
    async fn pass(parts: &[&[&str]]) -> String {
        let known = [("PASSPHRASE".to_string(), "correct horse battery".to_string().into())];
        let redactor = Arc::new(Redactor::new("k".to_string().into(), known));
        let (raw, from) = broadcast::channel(ROOM);
        let (to, mut shown) = broadcast::channel(64);
        let passing = tokio::spawn(pass_on(redactor, from, to));
        for part in parts {
            for text in *part {
                let _ = raw.send(Delta { source: DeltaSource::Tool(CallId(1)), text: text.to_string() });
            }
            while !raw.is_empty() {
                tokio::task::yield_now().await;
            }
        }
        drop(raw);
        passing.await.unwrap();
        let mut out = String::new();
        while let Ok(delta) = shown.recv().await {
            out.push_str(if delta.source == DeltaSource::Tool(CallId(1)) { &delta.text } else { "<lost>" });
        }
        out
    }

    const ROOM: usize = 2;

    #[tokio::test]
    async fn after_a_loss_nothing_is_shown_before_the_next_line() {
        let out = pass(&[&["one\nso corr"], &["ect ", "ho", "rse ", "battery\n", "two\n"]]).await;
        assert_eq!(out, "one\nso <lost>two\n");
        let out = pass(&[&["one\n"], &["x ", "correct ", "horse ", "battery ", "three\n"], &["four\n"]]).await;
        assert_eq!(out, "one\n<lost>four\n");
        let first = pass(&[&["so ", "correct ", "horse ", "battery three\n", "four\n"]]).await;
        assert_eq!(first, "<lost>four\n", "also of what was never heard before");
    }

    #[tokio::test]
    async fn a_key_of_which_scraps_were_lost_is_not_shown_to_its_end() {
        let lost = ["MIIa\n", "MIIb\n", "MIIc\n", "MIId\n"];
        let ends: &[&str] = &["MIIe\n-----END PRIVATE KEY----- and\n"];
        let held = pass(&[&["a -----BEGIN PRIVATE KEY-----\nMII0\n"], &lost, ends]).await;
        assert!(!held.contains("MII") && held.ends_with(" and\n"), "{held}");
        let begun = format!("a -----BEGIN PRIVATE KEY-----\n{}", "MII0\n".repeat(limits::HELD_MAX_BYTES));
        let long = pass(&[&[&begun], &lost, ends]).await;
        assert!(!long.contains("MII") && long.ends_with(" and\n"), "{long}");
    }

    #[test]
    fn after_a_loss_a_text_is_whole_again_once_another_model_call_was_heard() {
        let mut streams = Streams::default();
        let is_doubtful = |streams: &mut Streams, source| streams.held(source).within_line;
        assert!(!is_doubtful(&mut streams, DeltaSource::Text(ModelCallId(1))));
        streams.lose();
        assert!(is_doubtful(&mut streams, DeltaSource::Text(ModelCallId(1))), "the rest of its line");
        assert!(is_doubtful(&mut streams, DeltaSource::Tool(CallId(1))), "it may have begun before");
        streams.lose();
        assert!(is_doubtful(&mut streams, DeltaSource::Arguments(ModelCallId(2))));
        assert!(!is_doubtful(&mut streams, DeltaSource::Text(ModelCallId(3))), "it began after what was heard");
        assert!(!is_doubtful(&mut streams, DeltaSource::Tool(CallId(2))));
    }

    #[test]
    fn the_text_that_was_silent_longest_is_forgotten_first() {
        let redactor = Redactor::new("k".to_string().into(), Vec::new());
        let mut streams = Streams::default();
        let first = DeltaSource::Tool(CallId(0));
        for n in 1..100 {
            streams.held(first).feed(&redactor, "x");
            streams.held(DeltaSource::Tool(CallId(n)));
        }
        assert_eq!((streams.held(first).text.len(), streams.held.len()), (99, limits::STREAMS));
    }
}
