//! The screen's state: a replica of the run, streamed text, and what the operator looks at. `update` is pure: it is
//! handed what happened and when, and says what is to be done. `act.rs` holds what keys do.

use crossterm::event::KeyCode;
use crossterm::event::KeyEvent;

use crate::domain::command::Command;
use crate::domain::command::Control;
use crate::domain::command::Policy;
use crate::domain::command::Refusal;
use crate::domain::daily::Today;
use crate::domain::event::Event;
use crate::domain::event::Record;
use crate::domain::id::CallId;
use crate::domain::id::InterjectionId;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::model::Delta;
use crate::domain::outline::Outline;
use crate::domain::run::Run;
use crate::domain::run::Waits;
use crate::domain::sandbox::Level;
use crate::domain::time::Timestamp;
use crate::domain::tool::Digest;
use crate::domain::visible::title;
use crate::domain::visible::transcript;
use crate::policy::notice;
use crate::tui::alone::KeptBack;
use crate::tui::chronicle::Chronicle;
use crate::tui::composer::Composer;
use crate::tui::guard::Guard;
use crate::tui::guard::Shown;
use crate::tui::lineage::Doubt;
use crate::tui::lineage::Step;
use crate::tui::live::Live;
use crate::tui::notice::Lasts;
use crate::tui::notice::Notice;
use crate::tui::past::Past;
use crate::tui::popup::Asks;
use crate::tui::popup::Popup;
use crate::tui::reread::Iterations;
use crate::tui::reread::Read;
use crate::tui::reread::Reread;
use crate::tui::scroll::Scroll;
use crate::tui::theme::Palette;
use crate::tui::theme::Role;
use crate::tui::waiting::Item;
use crate::tui::waiting::items;

/// The present, as the loop saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds of a monotonic clock, from any start.
    pub ms: u64,
    /// Wall-clock time, for ages.
    pub at: Timestamp,
}

/// How the screen starts.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which colours.
    pub palette: Palette,
    /// What was being written when the run was left.
    pub draft: String,
    /// How the operator is called while the window is not in front.
    pub alerts: Alerts,
    /// A step that the operator asked for and that waits for their word.
    pub doubt: Option<Doubt>,
    /// A step that could not be looked into; it is asked for again.
    pub again: Option<Step>,
    /// What is said at first.
    pub said: Option<String>,
    /// How much the boxes of the run's commands hold back.
    pub level: Level,
    /// What has the keys.
    pub focus: Focus,
}

/// How the operator is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alerts {
    /// By the terminal's bell.
    pub bell: bool,
    /// By a notification that the terminal shows.
    pub desktop: bool,
}

/// Names a command that was sent, so that its answer finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(pub u64);

/// What happened.
#[derive(Debug)]
pub enum Msg {
    /// A key.
    Key(KeyEvent),
    /// Text pasted into the terminal.
    Paste(String),
    /// The terminal has another size.
    Resize,
    /// The terminal window gained or lost the focus.
    Focus,
    /// The program came back from the shell.
    Continued,
    /// Records that follow those before.
    Records(Vec<Record>),
    /// What the records from before the screen say.
    Past(Box<Past>),
    /// The texts of an iteration that was put away.
    Read(u32, Read),
    /// A scrap of streamed text.
    Delta(Delta),
    /// What all runs together spent.
    Today(Today),
    /// So many scraps were lost.
    Lost(u64),
    /// A command is durable, up to this record.
    Accepted(Ticket, Seq),
    /// A command was refused; nothing changed.
    Refused(Ticket, Refusal),
    /// The engine of the run stopped; why, if not by request.
    Closed(Option<String>),
    /// Time passed.
    Tick,
    /// A frame was drawn.
    Drawn(Box<Seen>),
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Out {
    /// Send this command and bring its answer.
    Submit(Ticket, Command),
    /// Read the texts of this iteration, of which these are the outlines.
    Read(u32, Vec<Outline>),
    /// Park the run and go; asked a second time: go at once.
    Leave,
    /// Show the list of runs; the run is left as it is.
    OpenRuns,
    /// Find out what a step would not undo, and ask.
    Look(Step),
    /// Do it.
    Do(Step),
    /// Suspend to the shell.
    Suspend,
    /// Clear the terminal and draw everything anew.
    Redraw,
}

/// What a frame showed. The screen goes on from where the frame was, and decides only about what it showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The item that keys would decide about, if it was visible, focused and not covered.
    pub item: Option<Shown>,
    /// The question about the claim that was asked then, if nothing covered it (`Run::claim_digest`).
    pub claim: Option<Digest>,
    /// Where the waiting call was scrolled to.
    pub body: Option<View>,
    /// Where the activity was scrolled to.
    pub activity: Option<View>,
    /// Which iterations it showed.
    pub iterations: Option<Iterations>,
    /// Where the plan was scrolled to.
    pub plan: Option<View>,
    /// Where the popup was scrolled to.
    pub popup: Option<View>,
    /// Rows of what is written in the dialog on top that it had no room for.
    pub hidden_rows: usize,
    /// Whether there was no room for anything but that word.
    pub is_too_small: bool,
}

/// A scrolled view in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Its position, worked out.
    pub scroll: Scroll,
    /// The block and row of its first line.
    pub top: (usize, usize),
    /// Its height in rows.
    pub height: usize,
}

/// What has the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Focus {
    /// The text field.
    #[default]
    Composer,
    /// The plan.
    Plan,
    /// The activity.
    Activity,
    /// What waits.
    Waiting,
    /// The spend.
    Spend,
}

/// A command on its way. Its record, not its sending, is the fact.
#[derive(Clone, Debug)]
pub struct Sent {
    pub(crate) ticket: Ticket,
    /// The command.
    pub command: Command,
    /// The record that must come before it is forgotten.
    seq: Option<Seq>,
    /// Sent when this one was accepted.
    then: Option<Command>,
}

/// The state of the screen.
pub struct App {
    /// The replica of the run.
    pub run: Run,
    /// What all runs together spent, where that is known.
    pub today: Option<Today>,
    /// The present.
    pub now: Moment,
    /// The colours.
    pub palette: Palette,
    /// Why the operator is called, until a frame was drawn.
    pub call: Option<String>,
    /// What has the keys.
    pub focus: Focus,
    /// Whether the focused pane has the screen for itself.
    pub zoomed: bool,
    /// What is open above the panes.
    pub popups: Vec<Popup>,
    /// The letter that was pressed last, if the last key was one.
    pub(crate) pressed: Option<char>,
    /// What the operator writes.
    pub composer: Composer,
    /// The question that the draft was begun for.
    pub(crate) answering: Option<CallId>,
    /// What waits.
    pub waiting: Vec<Item>,
    /// Which of it is selected.
    pub(crate) selected: Option<CallId>,
    /// How far the selected call is scrolled.
    pub body_scroll: Scroll,
    /// How far the activity is scrolled.
    pub activity_scroll: Scroll,
    /// How far the plan is scrolled; nothing while it keeps the current todo in view.
    pub plan_scroll: Option<Scroll>,
    /// The last frame.
    pub seen: Seen,
    /// Streamed text.
    pub live: Live,
    /// Notes about the past.
    pub chronicle: Chronicle,
    /// Iterations that were put away, as they were read again.
    pub reread: Reread,
    /// When the agent is told what is being written.
    pub policy: Policy,
    /// How much the boxes of its commands hold back.
    pub level: Level,
    /// Commands on their way.
    pub sent: Vec<Sent>,
    /// The one that the dialog on top waits for.
    pub(crate) asking: Option<Ticket>,
    /// The sentence above the composer.
    pub notice: Option<Notice>,
    /// The guard against keys typed ahead.
    pub guard: Guard,
    /// Why the screen can't go on following the run.
    pub halted: Option<String>,
    /// What was written when a dialog asked whether it is meant although it was not on the screen whole.
    pub(crate) asked_unseen: Option<String>,
    /// When a key went into a dialog last.
    pub(crate) typed_ms: Option<u64>,
    /// Whether the operator is leaving.
    pub leaving: bool,
    /// A letter that counts if no other key follows it at once.
    pub(crate) kept_back: Option<KeptBack>,
    pub(crate) last_stop_ms: Option<u64>,
    /// The key that decided last, and until when it is taken for held down.
    pub(crate) decided_by: Option<(KeyCode, u64)>,
    /// When the keys went back to the composer by themselves, because nothing waited any more.
    pub(crate) emptied_ms: Option<u64>,
    next_ticket: u64,
    /// Whether anything but streamed text changed since the last frame.
    pub(crate) is_urgent: bool,
}

impl App {
    /// The screen of a run as it stands.
    pub fn new(run: Run, now: Moment, options: Options) -> App {
        let mut app = App {
            today: None,
            now,
            palette: options.palette,
            focus: options.focus,
            zoomed: false,
            popups: Vec::new(),
            pressed: None,
            composer: Composer::new(&options.draft, Vec::new()),
            answering: None,
            waiting: Vec::new(),
            selected: None,
            body_scroll: Scroll::START,
            activity_scroll: Scroll::END,
            plan_scroll: None,
            seen: Seen::default(),
            live: Live::default(),
            chronicle: Chronicle::begin(&run),
            reread: Reread::default(),
            policy: Policy::Next,
            level: options.level,
            sent: Vec::new(),
            asking: None,
            notice: None,
            guard: Guard::default(),
            halted: None,
            asked_unseen: None,
            typed_ms: None,
            leaving: false,
            kept_back: None,
            last_stop_ms: None,
            decided_by: None,
            emptied_ms: None,
            next_ticket: 1,
            is_urgent: true,
            call: None,
            run,
        };
        app.refresh_waiting();
        let asked = options.doubt.map(|doubt| Popup::Words { asks: Asks::Sure(doubt), line: Composer::default() });
        app.popups.extend(asked);
        app.popups.extend(options.again.map(|step| Popup::Words {
            asks: Asks::Iteration(step.kind),
            line: Composer::new(&step.iteration.to_string(), Vec::new()),
        }));
        if let Some(said) = options.said {
            // It is about the folder and the box, so it holds whatever the run does meanwhile.
            app.say_for(said, Role::Text, Lasts::AndNext);
        }
        // What is typed ahead, elsewhere, was not meant for what waits.
        app.guard.doubt();
        if !app.composer.is_empty() {
            app.answering = app.open_question();
        }
        app
    }

    /// Takes in what happened, and says what is to be done.
    pub fn update(&mut self, msg: Msg, now: Moment) -> Vec<Out> {
        self.now = now;
        self.guard.tick(now.ms);
        self.forget_old();
        self.is_urgent |= !matches!(msg, Msg::Delta(_) | Msg::Lost(_) | Msg::Drawn(_));
        let mut outs = self.let_count(&msg);
        outs.extend(self.take_in(msg));
        outs
    }

    fn take_in(&mut self, msg: Msg) -> Vec<Out> {
        match msg {
            Msg::Key(key) => self.key(key),
            Msg::Paste(text) => self.paste(&text),
            Msg::Resize | Msg::Focus | Msg::Continued => {
                self.guard.disturb(self.now.ms);
                Vec::new()
            }
            Msg::Records(records) => self.records(&records),
            Msg::Past(past) => {
                let Past { chronicle, said, last } = *past;
                self.chronicle.follow(chronicle);
                self.composer.remember(said.into());
                self.drop_said(last.map(|(_, text)| text));
                Vec::new()
            }
            Msg::Delta(delta) => {
                self.live.take(&delta, &self.run);
                Vec::new()
            }
            Msg::Today(today) => {
                self.today = Some(today);
                Vec::new()
            }
            Msg::Lost(count) => {
                self.live.lose(count);
                Vec::new()
            }
            Msg::Accepted(ticket, seq) => self.accepted(ticket, seq),
            Msg::Refused(ticket, refusal) => self.refused(ticket, &refusal),
            Msg::Closed(why) => {
                self.halted = why.map(|why| title(&why, limits::NOTE_MAX_BYTES)).or(self.halted.take());
                Vec::new()
            }
            Msg::Tick => Vec::new(),
            Msg::Read(iteration, read) => {
                self.take_read(iteration, read);
                Vec::new()
            }
            Msg::Drawn(seen) => {
                self.drawn(*seen);
                self.read_more()
            }
        }
    }

    /// What is being written, to be kept when the screen closes.
    pub fn draft(&self) -> String {
        self.composer.text()
    }

    /// The window title.
    pub fn window_title(&self) -> String {
        let waiting = match self.run.waiting_count() {
            0 => String::new(),
            count => format!("({count}) "),
        };
        let goal = title(self.run.terms.goal.as_str(), 60);
        format!("{waiting}tiller · {} · {goal}", self.run.status.phrase_now(self.run.waiting_count()))
    }

    /// Milliseconds until the screen changes although nothing happens.
    pub fn wakes_in(&self) -> u64 {
        const MINUTE_MS: u64 = 60_000;
        let second_ms = 1_000 - self.now.at.0 % 1_000;
        let steady = if self.run.is_running() || self.leaving { second_ms } else { MINUTE_MS };
        let notice = self.notice.as_ref().and_then(Notice::ends_ms).map(|end| end.saturating_sub(self.now.ms));
        let ages = self.waiting.iter().map(|item| MINUTE_MS - self.now.at.since(item.since).0 % MINUTE_MS).min();
        let arms = self.guard.arms_in(self.now.ms);
        let letters = self.guard.cut_ends_in(self.now.ms);
        let counts = self.key_counts_in(self.now.ms);
        [Some(steady), notice, ages, arms, letters, counts].into_iter().flatten().min().unwrap_or(MINUTE_MS).max(1)
    }

    /// The item that is selected.
    pub fn item(&self) -> Option<&Item> {
        let selected = self.selected?;
        self.waiting.iter().find(|item| item.call == selected)
    }

    /// Whether a decision, an outcome or an answer for this call is on its way.
    pub fn is_sent(&self, call: CallId) -> bool {
        self.sent.iter().any(|sent| sent.command.about(call).is_some())
    }

    /// The question that Enter in the composer would answer.
    pub fn question(&self) -> Option<CallId> {
        let bound = if self.composer.is_empty() { self.open_question() } else { self.answering };
        bound.filter(|call| !self.is_sent(*call) && self.waiting.iter().any(|item| item.call == *call))
    }

    /// The strongest request to stop, recorded or on its way.
    pub(crate) fn stopping(&self) -> Option<Control> {
        let sent = self.sent.iter().filter_map(|sent| sent.command.control());
        sent.chain(self.run.control).max()
    }

    /// What was sent to be said and is not recorded yet.
    pub(crate) fn unsaid(&self) -> impl Iterator<Item = &str> {
        self.sent.iter().filter_map(|sent| sent.command.said())
    }

    /// What was queued last and is not being taken back yet.
    pub(crate) fn last_queued(&self) -> Option<InterjectionId> {
        let is_taken_back = |id| self.sent.iter().any(|sent| sent.command == Command::Withdraw(id));
        self.run.interjections.iter().rev().map(|one| one.id).find(|id| !is_taken_back(*id))
    }

    pub(crate) fn open_question(&self) -> Option<CallId> {
        let is_question = |item: &&Item| item.waits == Waits::Answer;
        self.item().filter(is_question).or_else(|| self.waiting.iter().find(is_question)).map(|item| item.call)
    }

    pub(crate) fn submit(&mut self, command: Command, then: Option<Command>) -> Vec<Out> {
        // What was said before this key holds no longer.
        self.notice = None;
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.sent.push(Sent { ticket, command: command.clone(), seq: None, then });
        vec![Out::Submit(ticket, command)]
    }

    fn records(&mut self, records: &[Record]) -> Vec<Out> {
        let mut is_back = false;
        let mut held = self.holds_keys();
        let claim = self.run.claim_digest();
        for record in records {
            if record.seq <= self.run.seq {
                continue;
            }
            let talk = self.run.transcript.len();
            if let Event::ContextCompacted { to, .. } = &record.event {
                self.keep_shown(*to);
            }
            if let Err(broken) = self.run.apply(record) {
                self.halted = Some(title(&format!("the screen can't follow: {broken}; leave and resume"), 400));
                break;
            }
            if matches!(record.event, Event::StatusChanged { .. }) {
                self.forget_of_status();
            }
            let holds = self.holds_keys();
            is_back |= held && !holds && self.give_keys_back();
            held = holds;
            let notice = notice::of(record, &self.run).filter(|notice| notice.calls);
            if let Some(notice) = notice.filter(|_| self.call.is_none()) {
                self.call = Some(title(&notice.sentence, limits::TODO_TITLE_MAX_CHARS));
            }
            self.live.settle(record);
            self.chronicle.take(record, &self.run, talk, self.run.origin(record.seq));
        }
        self.make_room_for_claim(claim.as_ref());
        let head = self.run.seq;
        self.sent.retain(|sent| sent.seq.is_none_or(|seq| seq > head));
        self.refresh_waiting();
        self.forget_of_calls();
        if is_back {
            self.emptied_ms = Some(self.now.ms);
            let done = self.notice.take().filter(|notice| notice.lasts == Lasts::AndNext);
            let done = done.map(|notice| format!("{}; ", notice.text)).unwrap_or_default();
            self.say_keys_are_back(&done);
        }
        self.tell_changed(records);
        Vec::new()
    }

    fn refresh_waiting(&mut self) {
        let is_first = self.waiting.is_empty();
        self.waiting = items(&self.run, &self.waiting);
        if is_first && !self.waiting.is_empty() {
            // Keys that are on the pane already were not meant for what comes now.
            self.guard.doubt();
        }
        let is_here = self.selected.is_some_and(|call| self.waiting.iter().any(|item| item.call == call));
        if !is_here {
            self.selected = self.waiting.first().map(|item| item.call);
            self.body_scroll = Scroll::START;
        }
        self.close_changed();
    }

    fn accepted(&mut self, ticket: Ticket, seq: Seq) -> Vec<Out> {
        let head = self.run.seq;
        let Some(place) = self.sent.iter().position(|sent| sent.ticket == ticket) else { return Vec::new() };
        if self.asking == Some(ticket) {
            self.answered();
        }
        let then = self.sent.get_mut(place).and_then(|sent| {
            sent.seq = Some(seq);
            sent.then.take()
        });
        if seq <= head {
            self.sent.remove(place);
        }
        then.map_or_else(Vec::new, |command| self.submit(command, None))
    }

    fn refused(&mut self, ticket: Ticket, refusal: &Refusal) -> Vec<Out> {
        let Some(place) = self.sent.iter().position(|sent| sent.ticket == ticket) else { return Vec::new() };
        let sent = self.sent.remove(place);
        let lasts = if self.asking == Some(ticket) { Lasts::WithDialog } else { Lasts::AWhile };
        self.asking = self.asking.filter(|asking| *asking != ticket);
        self.say_for(transcript(&self.why_refused(refusal)).replace('\n', " "), Role::Bad, lasts);
        if let Command::Interject { text, .. } | Command::Answer { text, .. } = sent.command
            && self.composer.is_empty()
        {
            self.composer.set(&text);
            self.answering = self.open_question();
        }
        Vec::new()
    }

    fn drawn(&mut self, seen: Seen) {
        if seen.claim != self.seen.claim {
            self.guard.disturb(self.now.ms);
        }
        self.guard.drawn(seen.item.clone(), self.now.ms);
        if let Some(view) = &seen.body {
            self.body_scroll = view.scroll;
        }
        if let Some(view) = &seen.activity {
            self.activity_scroll = view.scroll;
        }
        if let (Some(view), Some(scroll)) = (&seen.plan, &mut self.plan_scroll) {
            *scroll = view.scroll;
        }
        if let (Some(view), Some(Popup::Help { scroll, .. } | Popup::Whole { scroll, .. })) =
            (&seen.popup, self.popups.last_mut())
        {
            *scroll = view.scroll;
        }
        self.seen = seen;
        self.is_urgent = false;
    }
}
