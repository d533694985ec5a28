//! The guard against keys typed ahead (docs/SAFETY.md §9): a key decides only about what was seen, unchanged and at
//! rest, on the screen when it was pressed. Pure; the clock is handed in, in milliseconds.

use ratatui::layout::Rect;

use crate::domain::id::CallId;
use crate::domain::limits;
use crate::domain::time::Span;
use crate::domain::tool::Digest;
use crate::tui::action::Choice;

/// What a frame showed of the item that may be decided about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The call.
    pub call: CallId,
    /// Its digest; a question has none.
    pub digest: Option<Digest>,
    /// Where on the screen.
    pub place: Rect,
    /// Whether its last line was visible.
    pub end: bool,
    /// Whether its keys were drawn as working.
    pub armed: bool,
}

impl Shown {
    fn is_same(&self, other: &Shown) -> bool {
        self.call == other.call && self.digest == other.digest && self.place == other.place
    }
}

/// Why a key did not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// The pane was not still for long enough.
    Early,
    /// The last line was not shown yet.
    Unread,
    /// It may have been meant for a dialog that is not there.
    Doubtful,
}

/// Why letters that come without a rest go nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The dialog they may have been typed for did its work and closed.
    Closed,
    /// The dialog they may have been typed for did not open.
    NotOpened,
    /// Words are typed where there are only keys.
    Words,
    /// Other keys came right behind this letter, which would have done something.
    Together(char),
    /// A field only just opened, and this letter is its key, pressed once more.
    Opened(char),
}

/// Whether a deciding key counts at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    /// It does: the operator came to the pane by a key.
    Counts,
    /// Letters may have been typed for a dialog: it must be pressed twice.
    Doubtful,
    /// This one was pressed once.
    Asked(Choice),
    /// This one came too early: whatever else lets a call run asks first.
    Early(Choice),
}

/// The state of the guard.
#[derive(Clone, Debug)]
pub struct Guard {
    shown: Option<Shown>,
    still_since_ms: u64,
    needs: Span,
    is_armed: bool,
    read: Vec<(CallId, Option<Digest>)>,
    first: First,
    /// Why letters that come without a rest go nowhere, if they do.
    cut: Option<Cut>,
}

impl Default for Guard {
    fn default() -> Self {
        Guard {
            shown: None,
            still_since_ms: 0,
            needs: limits::KEY_GUARD,
            is_armed: false,
            read: Vec::new(),
            first: First::Counts,
            cut: None,
        }
    }
}

impl Guard {
    /// Some input came that decides nothing: a key, a paste, a resize, focus, the return from the shell.
    pub fn disturb(&mut self, now_ms: u64) {
        self.still_since_ms = now_ms;
        self.is_armed = false;
    }

    /// A decision was sent: the next one needs a longer rest, because the key may still be held down. A field that only
    /// opens is none.
    pub fn decided(&mut self, now_ms: u64) {
        self.disturb(now_ms);
        self.needs = limits::KEY_GUARD_AFTER_DECISION;
    }

    /// Letters that come now may have been meant for a dialog: the next deciding key must be pressed twice.
    pub fn doubt(&mut self) {
        self.first = First::Doubtful;
    }

    /// The operator came to a pane by a key that is no letter.
    pub fn trust_keys(&mut self) {
        self.first = First::Counts;
    }

    /// A key that decides nothing: what was pressed once before it counts no more.
    pub fn interrupt(&mut self) {
        if let First::Asked(_) = self.first {
            self.first = First::Doubtful;
        }
    }

    /// A deciding key came too early and was dropped: the same key decides when it comes again in time; another one may
    /// belong to a word that is being typed, and asks first.
    pub fn early(&mut self, choice: Choice) {
        if self.first == First::Counts {
            self.first = First::Early(choice);
        }
    }

    /// Whether a deciding key counts, as far as dialogs go; where it does not, the same key does when it comes next.
    pub fn confirm(&mut self, choice: Choice) -> Result<(), Held> {
        let is_sure = match self.first {
            First::Counts => true,
            First::Doubtful => false,
            First::Asked(asked) => asked == choice,
            First::Early(early) => early == choice || !choice.lets_run(),
        };
        self.first = if is_sure { First::Counts } else { First::Asked(choice) };
        if is_sure { Ok(()) } else { Err(Held::Doubtful) }
    }

    /// Letters that follow without a rest were typed for something that is not there.
    pub fn cut_off(&mut self, cut: Cut, now_ms: u64) {
        self.disturb(now_ms);
        self.doubt();
        self.cut = Some(cut);
    }

    /// A field opened, by this letter: where it comes again without a rest, it is not for the field.
    pub fn opened(&mut self, by: Option<char>, now_ms: u64) {
        self.disturb(now_ms);
        self.cut = by.map(Cut::Opened);
    }

    /// Another key came: the field that is open was seen.
    pub fn field_is_seen(&mut self) {
        self.cut = self.cut.filter(|cut| !matches!(cut, Cut::Opened(_)));
    }

    /// Milliseconds until letters count again, if nothing happens; nothing while they do.
    pub fn cut_ends_in(&self, now_ms: u64) -> Option<u64> {
        self.cut.map(|_| limits::KEY_GUARD.0.saturating_sub(self.rested_ms(now_ms)))
    }

    /// Why a letter goes nowhere now, if it does.
    pub fn cut(&self) -> Option<Cut> {
        self.cut
    }

    /// A frame was drawn; `shown` is the focused item, if it was visible with nothing above it.
    pub fn drawn(&mut self, shown: Option<Shown>, now_ms: u64) {
        let is_same = match (&self.shown, &shown) {
            (Some(before), Some(after)) => before.is_same(after),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        // What comes to be shown, its end too, is seen only after a rest.
        let ends = |one: &Option<Shown>| one.as_ref().is_some_and(|one| one.end);
        if !is_same || ends(&self.shown) != ends(&shown) {
            self.disturb(now_ms);
        }
        // A key that was asked about is about the item that was there then.
        let name = |one: &Option<Shown>| one.as_ref().map(|one| (one.call, one.digest.clone()));
        if name(&self.shown) != name(&shown) {
            self.interrupt();
        }
        self.shown = shown;
    }

    /// The item that is shown has stood there, its end too, for as long as a key needs to count.
    fn read_it(&mut self) {
        let Some(one) = self.shown.as_ref().filter(|one| one.end) else { return };
        let name = (one.call, one.digest.clone());
        if !self.read.contains(&name) {
            self.read.push(name);
            let surplus = self.read.len().saturating_sub(limits::CALLS_PER_REPLY);
            self.read.drain(..surplus);
        }
    }

    /// Time passed. Arms the keys when it was still for long enough; the next frame shows them so.
    pub fn tick(&mut self, now_ms: u64) {
        self.cut = self.cut.filter(|_| !self.is_rested(now_ms));
        if self.is_rested(now_ms) {
            self.read_it();
        }
        if self.arms_in(now_ms) == Some(0) {
            self.is_armed = true;
        }
        // No key is held down any more, whether a call was on the screen meanwhile or not.
        if self.rested_ms(now_ms) >= limits::KEY_GUARD_AFTER_DECISION.0 {
            self.needs = limits::KEY_GUARD;
        }
    }

    /// Milliseconds since the last input, or since what is shown became another.
    fn rested_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.still_since_ms)
    }

    /// How long a call must rest now before a key decides about it.
    pub fn needs(&self) -> Span {
        self.needs
    }

    /// Milliseconds until the keys arm, if nothing happens; nothing when there is nothing to arm.
    pub fn arms_in(&self, now_ms: u64) -> Option<u64> {
        self.shown.as_ref()?;
        (!self.is_armed).then(|| self.needs.0.saturating_sub(self.rested_ms(now_ms)))
    }

    /// Whether no input came for as long as a key needs that is asked about in a dialog.
    pub fn is_rested(&self, now_ms: u64) -> bool {
        self.rested_ms(now_ms) >= limits::KEY_GUARD.0
    }

    /// Whether the keys are to be drawn as working.
    pub fn is_armed(&self) -> bool {
        self.is_armed
    }

    /// Whether the last line of this was ever shown at rest.
    pub fn was_read(&self, call: CallId, digest: Option<&Digest>) -> bool {
        self.read.iter().any(|(known, seen)| *known == call && seen.as_ref() == digest)
    }

    /// Whether a key may decide about this now. The keys must have been drawn as working on this very item.
    pub fn check(&self, call: CallId, digest: Option<&Digest>) -> Result<(), Held> {
        let is_seen = self.shown.as_ref().is_some_and(|one| one.call == call && one.digest.as_ref() == digest);
        let was_armed = self.shown.as_ref().is_some_and(|one| one.armed);
        if is_seen && was_armed && self.is_armed { Ok(()) } else { Err(Held::Early) }
    }

    /// As `check`, for a key that lets something run: the last line must have been shown as well.
    pub fn check_allowing(&self, call: CallId, digest: Option<&Digest>) -> Result<(), Held> {
        let is_seen = self.shown.as_ref().is_some_and(|one| one.call == call && one.digest.as_ref() == digest);
        let is_at_end = self.shown.as_ref().is_some_and(|one| one.end);
        if is_seen && !is_at_end && !self.was_read(call, digest) {
            return Err(Held::Unread);
        }
        self.check(call, digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(guard: &Guard) -> Shown {
        Shown {
            call: CallId(1),
            digest: Some(Digest("d".to_string())),
            place: Rect::new(0, 0, 9, 9),
            end: true,
            armed: guard.is_armed(),
        }
    }

    fn frame(guard: &mut Guard, now_ms: u64) -> Result<(), Held> {
        guard.tick(now_ms);
        guard.drawn(Some(shown(guard)), now_ms);
        guard.check_allowing(CallId(1), Some(&Digest("d".to_string())))
    }

    #[test]
    fn half_a_second_of_rest_arms() {
        let mut guard = Guard::default();
        assert_eq!(frame(&mut guard, 0), Err(Held::Early));
        assert_eq!(guard.arms_in(100), Some(400));
        assert_eq!(frame(&mut guard, 499), Err(Held::Early));
        assert_eq!(frame(&mut guard, 500), Ok(()));
        guard.disturb(600);
        assert_eq!(frame(&mut guard, 1_000), Err(Held::Early));
        assert_eq!(frame(&mut guard, 1_100), Ok(()));
    }

    #[test]
    fn a_key_that_was_asked_about_counts_for_the_same_item_only() {
        let mut guard = Guard::default();
        guard.drawn(Some(shown(&guard)), 0);
        guard.doubt();
        let (once, deny) = (Choice::AllowOnce, Choice::Deny);
        let asks = Err(Held::Doubtful);
        assert_eq!([guard.confirm(once), guard.confirm(deny), guard.confirm(deny)], [asks, asks, Ok(())]);
        guard.doubt();
        assert_eq!(guard.confirm(once), asks);
        let moved = Shown { place: Rect::new(1, 0, 9, 9), ..shown(&guard) };
        guard.drawn(Some(moved), 600);
        assert_eq!(guard.confirm(once), Ok(()), "only its place is another");
        guard.doubt();
        assert_eq!(guard.confirm(once), asks);
        let other = Shown { call: CallId(2), ..shown(&guard) };
        guard.drawn(Some(other), 700);
        assert_eq!(guard.confirm(once), asks);
    }

    #[test]
    fn keys_that_were_not_drawn_as_working_do_not_work() {
        let mut guard = Guard::default();
        guard.drawn(Some(shown(&guard)), 0);
        guard.tick(9_000);
        assert_eq!(guard.check(CallId(1), Some(&Digest("d".to_string()))), Err(Held::Early));
    }

    #[test]
    fn another_place_or_content_disarms() {
        let mut guard = Guard::default();
        let _ = frame(&mut guard, 0);
        assert_eq!(frame(&mut guard, 500), Ok(()));
        let moved = Shown { place: Rect::new(1, 0, 9, 9), ..shown(&guard) };
        guard.drawn(Some(moved), 600);
        assert!(!guard.is_armed());
        guard.drawn(None, 700);
        assert_eq!(guard.arms_in(9_000), None);
    }

    #[test]
    fn a_held_key_does_not_decide_twice() {
        let mut guard = Guard::default();
        let _ = frame(&mut guard, 0);
        assert_eq!(frame(&mut guard, 500), Ok(()));
        guard.decided(500);
        assert_eq!(frame(&mut guard, 1_200), Err(Held::Early));
        assert_eq!(frame(&mut guard, 1_300), Ok(()));
    }

    #[test]
    fn a_decision_asks_for_the_longer_rest_until_there_was_one() {
        let mut guard = Guard::default();
        let _ = frame(&mut guard, 0);
        assert_eq!(frame(&mut guard, 500), Ok(()));
        guard.decided(500);
        guard.drawn(None, 510);
        guard.tick(1_400);
        guard.disturb(1_400);
        assert_eq!([frame(&mut guard, 1_400), frame(&mut guard, 1_899)], [Err(Held::Early); 2]);
        assert_eq!(frame(&mut guard, 1_900), Ok(()), "there was one while nothing was shown");
    }

    #[test]
    fn what_was_not_read_to_its_end_is_not_allowed() {
        let mut guard = Guard::default();
        let half = Shown { end: false, ..shown(&guard) };
        guard.drawn(Some(half.clone()), 0);
        guard.tick(500);
        guard.drawn(Some(Shown { armed: true, ..half }), 500);
        let digest = Digest("d".to_string());
        assert_eq!(guard.check_allowing(CallId(1), Some(&digest)), Err(Held::Unread));
        assert_eq!(guard.check(CallId(1), Some(&digest)), Ok(()));
    }
}
