//! Everything that a person is asked line by line: a call that waits, and what a run may wait for besides calls. Pure,
//! as `prompt.rs`, and by the same rule: a line that came too early is no answer.

use std::time::Duration;
use std::time::Instant;

use crate::domain::command::Command;
use crate::domain::limits;
use crate::domain::pricing;
use crate::domain::run::Run;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::tool::Digest;
use crate::headless::prompt::Meaning;
use crate::headless::prompt::Prompt;
use crate::headless::prompt::said;
use crate::headless::text::block;
use crate::headless::text::title;

/// Something that a person was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asking {
    /// About a call.
    Call(Box<Prompt>),
    /// About the run.
    Run {
        /// What.
        about: About,
        /// When.
        asked_at: Instant,
    },
}

/// What a run waits for besides calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// Whether the claim is right, as the check of this number asks, and what an answer is bound to.
    Claim(usize, Digest),
    /// What the model costs.
    Price,
    /// Whether it gets new replans.
    Replans,
}

impl Asking {
    /// What the run waits for first, as a question with its text; nothing when it waits for nobody.
    pub fn of(run: &Run, now: Instant) -> Option<(Asking, String)> {
        if let Some((prompt, text)) = Prompt::of(run, now) {
            return Some((Asking::Call(Box::new(prompt)), text));
        }
        let about = About::of(run)?;
        let text = format!("{}{}", about.head(run), about.line());
        Some((Asking::Run { about, asked_at: now }, text))
    }

    /// Whether this is what the run still waits for first, unchanged.
    pub fn holds(&self, run: &Run) -> bool {
        match self {
            Asking::Call(prompt) => prompt.holds(run),
            Asking::Run { about, .. } => run.waiting().is_empty() && About::of(run).as_ref() == Some(about),
        }
    }

    /// The question in short, for below what was printed since it was asked.
    pub fn again_below(&self, run: &Run) -> String {
        match self {
            Asking::Call(prompt) => prompt.again_below(run),
            Asking::Run { about, .. } => {
                let head = about.head(run);
                format!("{}\n{}", head.lines().next().unwrap_or_default(), about.line())
            }
        }
    }

    /// What a line means as an answer. `at` is when it was typed.
    pub fn read(&mut self, line: &str, at: Instant, now: Instant) -> Meaning {
        match self {
            Asking::Call(prompt) => prompt.read(line, at, now),
            Asking::Run { about, asked_at } if at < *asked_at + Duration::from_millis(limits::KEY_GUARD.0) => {
                about.again("that came too early to be an answer to this; nothing was decided")
            }
            Asking::Run { about, .. } => about.read(line.trim()),
        }
    }
}

impl About {
    fn of(run: &Run) -> Option<About> {
        let Status::Parked(reason) = &run.status else { return None };
        match run.confirming().zip(run.claim_digest()) {
            Some((index, claim)) => Some(About::Claim(index, claim)),
            None if *reason == ParkReason::PriceUnknown => Some(About::Price),
            None => run.needs_grant().then_some(About::Replans),
        }
    }

    /// What is asked about.
    fn head(&self, run: &Run) -> String {
        match self {
            About::Claim(index, _) => {
                let question = run.terms.checks.get(*index).map(|check| title(check.question())).unwrap_or_default();
                let claim = run.iteration.claim.as_ref().map(|claim| block(&claim.summary)).unwrap_or_default();
                format!("[confirm] the run says that it is finished\n{claim}  asked of you: {question}\n")
            }
            About::Price => format!("[price] nobody knows what {} costs\n", title(&run.terms.model.name)),
            About::Replans => {
                let diagnosis = run.stall.as_ref().map(|stall| block(&stall.diagnosis)).unwrap_or_default();
                format!("[stall] the run has used up its replans\n{diagnosis}")
            }
        }
    }

    /// The question itself, with what can be typed.
    fn line(&self) -> &'static str {
        match self {
            About::Claim(..) => "is it so? [y yes / y WORDS yes, and / n no / n WORDS no, because]\n",
            About::Price => {
                "dollars per million tokens of input and of output, such as 0.25 2.00; or unpriced, to go on without \
                 counting money:\n"
            }
            About::Replans => {
                "grant new replans and go on? [y yes / WORDS say first what to try]; Ctrl-C leaves it parked\n"
            }
        }
    }

    fn read(&self, line: &str) -> Meaning {
        let (word, words) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match (self, word, words.trim()) {
            (About::Claim(_, claim), "y", text) => confirm(claim, true, text),
            (About::Claim(_, claim), "n", text) => confirm(claim, false, text),
            (About::Price, ..) => match pricing::parse(line) {
                Ok(price) => Meaning::Both(Command::Price { price }, Command::Resume),
                Err(expected) => self.again(&format!("{expected}; nothing was decided")),
            },
            (About::Replans, "y", "") => Meaning::Command(Command::GrantReplans),
            (About::Claim(..) | About::Replans, "", _) | (About::Claim(..) | About::Replans, _, "") => {
                self.again("that is none of these; nothing was decided")
            }
            (About::Claim(..) | About::Replans, ..) => Meaning::Command(said(line)),
        }
    }

    fn again(&self, why: &str) -> Meaning {
        Meaning::Reply(format!("{why}\n{}", self.line()))
    }
}

fn confirm(claim: &Digest, confirmed: bool, text: &str) -> Meaning {
    Meaning::Command(Command::Confirm { claim: claim.clone(), confirmed, text: text.to_string() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;
    use crate::domain::run::Stall;
    use crate::domain::status::Detector;
    use crate::domain::terms::Check;
    use crate::headless::fixture::Desk;
    use crate::headless::fixture::finishes;
    use crate::headless::fixture::plans;

    fn claimed() -> Desk {
        let check = Check::OperatorConfirm("Does it float?".to_string());
        let mut desk = Desk::with(vec![plans(), finishes()], |terms| terms.checks = vec![check]);
        desk.recover();
        desk
    }

    fn priceless() -> Desk {
        let mut desk = Desk::with(Vec::new(), |terms| terms.model.price = None);
        desk.run.status = Status::Parked(ParkReason::PriceUnknown);
        desk
    }

    fn stalled() -> Desk {
        let mut desk = Desk::new(vec![plans()]);
        desk.run.status = Status::Parked(ParkReason::Stalled(Detector::NoProgress));
        desk.run.progress.replans = limits::REPLANS;
        desk.run.stall = Some(Stall { detector: Detector::NoProgress, diagnosis: "nothing moved".to_string() });
        desk
    }

    /// The question, and what lines mean, each typed late enough, as short words.
    fn check(desk: &Desk, question: &str, cases: &[(&str, &str)]) {
        let now = Instant::now();
        let (asking, text) = Asking::of(&desk.run, now).unwrap();
        assert_eq!(text, question);
        assert!(asking.holds(&desk.run));
        let early = now + Duration::from_millis(499);
        let Meaning::Reply(told) = asking.clone().read("y", early, early) else { panic!("it was decided") };
        assert!(told.starts_with("that came too early"), "{told}");
        let late = now + Duration::from_secs(1);
        for (line, expected) in cases {
            let meaning = match asking.clone().read(line, late, late) {
                Meaning::Command(Command::Confirm { claim, confirmed, text })
                    if Some(&claim) == desk.run.claim_digest().as_ref() =>
                {
                    format!("confirm {confirmed} {text:?}")
                }
                Meaning::Command(Command::Interject { text, .. }) => format!("say {text}"),
                Meaning::Command(Command::GrantReplans) => "grant".to_string(),
                Meaning::Both(Command::Price { price }, Command::Resume) => {
                    format!("price {:?}, resume", price.map(|price| (price.input, price.output)))
                }
                Meaning::Reply(text) => text.lines().next().unwrap_or_default().to_string(),
                other => panic!("{other:?}"),
            };
            assert_eq!(meaning, *expected, "for {line:?}");
        }
    }

    const NONE: &str = "that is none of these; nothing was decided";

    #[test]
    fn a_claim_is_confirmed_or_not() {
        check(
            &claimed(),
            "[confirm] the run says that it is finished\n  | made it\n  asked of you: Does it float?\nis it so? [y yes / y \
             WORDS yes, and / n no / n WORDS no, because]\n",
            &[
                ("y", "confirm true \"\""),
                ("y  well done", "confirm true \"well done\""),
                ("n", "confirm false \"\""),
                (" n it sinks ", "confirm false \"it sinks\""),
                ("yes", NONE),
                ("", NONE),
                ("what about the tests", "say what about the tests"),
            ],
        );
    }

    #[test]
    fn a_price_is_given_or_gone_without() {
        let expected = "give two prices, of input and of output, such as 0.25 2.00; or: unpriced; nothing was decided";
        check(
            &priceless(),
            "[price] nobody knows what scripted/x costs\ndollars per million tokens of input and of output, such as 0.25 \
             2.00; or unpriced, to go on without counting money:\n",
            &[
                ("0.25 2.00", "price Some((250000, 2000000)), resume"),
                ("unpriced", "price None, resume"),
                ("y", expected),
                ("", expected),
                ("cheap enough", expected),
            ],
        );
    }

    #[test]
    fn replans_are_granted_by_one_letter() {
        check(
            &stalled(),
            "[stall] the run has used up its replans\n  | nothing moved\ngrant new replans and go on? [y yes / WORDS say \
             first what to try]; Ctrl-C leaves it parked\n",
            &[("y", "grant"), ("n", NONE), ("", NONE), ("yes", NONE), ("try the other way", "say try the other way")],
        );
    }

    #[test]
    fn a_question_holds_for_what_it_was_asked_about() {
        let (asking, _) = Asking::of(&claimed().run, Instant::now()).unwrap();
        assert!(!asking.holds(&stalled().run) && !asking.holds(&priceless().run));
        let mut other = claimed();
        other.run.iteration.claim.as_mut().unwrap().summary = "made another".to_string();
        assert!(!asking.holds(&other.run), "another claim");
        let mut desk = stalled();
        desk.run.progress.replans = 0;
        assert_eq!(Asking::of(&desk.run, Instant::now()), None, "a plain resume is enough");
        desk.run.status = Status::Cancelled;
        assert_eq!(Asking::of(&desk.run, Instant::now()), None);
    }
}
