//! What a session without a screen knows: the replica of the run, what is asked, and what is to be printed. It prints
//! nothing by itself before it is told to.

use std::time::Duration;
use std::time::Instant;

use jiff::tz::TimeZone;
use tokio_util::sync::CancellationToken;

use crate::domain::command::Command;
use crate::domain::command::Refusal;
use crate::domain::event::Record;
use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::run::Run;
use crate::domain::status::Status;
use crate::headless::HeadlessError;
use crate::headless::Style;
use crate::headless::asking::Asking;
use crate::headless::input::Typed;
use crate::headless::lines;
use crate::headless::output::Printer;
use crate::headless::prompt::Meaning;
use crate::headless::prompt::read_unasked;
use crate::headless::show;
use crate::headless::show::Way;
use crate::headless::text::sentence;
use crate::protocol::client::Client;

/// What a session knows.
pub(crate) struct Room {
    id: RunId,
    /// The replica of the run; nothing before its first record.
    pub(crate) run: Option<Run>,
    style: Style,
    zone: TimeZone,
    asking: Option<Asking>,
    /// Whether news was printed below the question.
    is_buried: bool,
    /// The newest record that a command was answered with; until it is here, the replica is behind.
    acknowledged: Seq,
    /// Whether lines may still be typed.
    pub(crate) hears: bool,
    /// When leaving is given up on, once it was begun.
    left_by: Option<tokio::time::Instant>,
    /// What is to be printed.
    text: String,
    /// What is to be told beside it.
    note: String,
}

impl Room {
    pub(crate) fn new(id: RunId, run: Option<Run>, style: Style, zone: TimeZone) -> Room {
        let way = Way::Held("this process".to_string());
        let opening = run.as_ref().map(|run| show::opening(run, &way, &zone)).unwrap_or_default();
        let text = match style {
            Style::Plain | Style::Asking => opening,
            Style::Json => String::new(),
        };
        let hears = style == Style::Asking;
        let (asking, acknowledged, left_by, note) = (None, Seq(0), None, String::new());
        Room { id, run, style, zone, asking, is_buried: false, acknowledged, hears, left_by, text, note }
    }

    pub(crate) fn take(&mut self, records: &[Record]) -> Result<(), HeadlessError> {
        for record in records {
            let run = match &mut self.run {
                Some(run) => {
                    run.apply(record)?;
                    run
                }
                None => self.run.insert(Run::begin(self.id.clone(), record)?),
            };
            match self.style {
                Style::Plain | Style::Asking => {
                    let news = lines::lines(record, run, &self.zone);
                    self.is_buried |= !news.is_empty();
                    self.text += &news;
                }
                Style::Json => {
                    self.text += &serde_json::to_string(record)?;
                    self.text.push('\n');
                }
            }
        }
        Ok(())
    }

    /// Says something to the person, not as a record.
    pub(crate) fn tell(&mut self, text: &str) {
        match self.style {
            Style::Plain | Style::Asking => self.text += text,
            Style::Json => self.note += text,
        }
    }

    /// Asks for what the session begins with. A run that works by then, as a new one does by itself, is what a resume is
    /// for, so that is no refusal to tell of.
    pub(crate) async fn begin(&mut self, client: &Client, command: Command) {
        let is_resume = command == Command::Resume;
        let answer = client.submit(command).await;
        if is_resume && matches!(&answer, Err(Refusal::NotParked(Status::Queued | Status::Running))) {
            return;
        }
        self.answered(answer);
    }

    /// Sends a command; says whether it was accepted.
    pub(crate) async fn submit(&mut self, client: &Client, command: Command) -> bool {
        let answer = client.submit(command).await;
        self.answered(answer)
    }

    fn answered(&mut self, answer: Result<Seq, Refusal>) -> bool {
        self.asking = None;
        match answer {
            Ok(seq) => self.acknowledged = self.acknowledged.max(seq),
            Err(refusal) => {
                self.tell(&format!("[refused] {}\n", sentence(&refusal.of(&self.id))));
                return false;
            }
        }
        true
    }

    /// Asks for what waits, unless it is asked for already; then it is said again in short below what came since, so
    /// that a question is never somewhere above.
    pub(crate) fn ask(&mut self) {
        let Some(run) = &self.run else { return };
        if !self.hears || self.left_by.is_some() || run.seq < self.acknowledged {
            return;
        }
        let is_buried = std::mem::take(&mut self.is_buried);
        if let Some(asking) = self.asking.as_ref().filter(|asking| asking.holds(run)) {
            if is_buried {
                self.text += &asking.again_below(run);
            }
            return;
        }
        let (asking, text) = Asking::of(run, Instant::now()).unzip();
        self.asking = asking;
        self.text += &text.unwrap_or_default();
    }

    pub(crate) async fn hear(&mut self, client: &Client, typed: &Typed) {
        let meaning = match &mut self.asking {
            Some(asking) => asking.read(&typed.line, typed.at, Instant::now()),
            None => {
                let waits = self.run.as_ref().and_then(|run| run.waiting().first().map(|(call, _)| call.id));
                read_unasked(&typed.line, waits)
            }
        };
        match meaning {
            Meaning::Command(command) => drop(self.submit(client, command).await),
            Meaning::Both(first, second) => {
                if self.submit(client, first).await {
                    self.submit(client, second).await;
                }
            }
            Meaning::Reply(text) => self.tell(&text),
            Meaning::Nothing => {}
        }
    }

    pub(crate) async fn leave(&mut self, client: &Client) {
        let patience = Duration::from_millis(limits::LEAVE_PATIENCE.0);
        // The engine gives what runs as long to end; twice that is more than it needs to say so.
        self.left_by = Some(tokio::time::Instant::now() + 2 * patience);
        if tokio::time::timeout(patience, self.submit(client, Command::Leave)).await.is_err() {
            self.tell("[refused] the engine does not answer; what it had recorded is kept\n");
        }
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.left_by.is_some()
    }

    /// Returns when leaving has taken too long; never before it was begun.
    pub(crate) async fn patience(&self) {
        match self.left_by {
            Some(moment) => tokio::time::sleep_until(moment).await,
            None => std::future::pending().await,
        }
    }

    /// Whether nothing will happen by itself, and nobody can make it happen here.
    pub(crate) fn is_settled(&self, client: &Client) -> bool {
        let Some(run) = &self.run else { return false };
        if client.is_behind() || run.seq < self.acknowledged || run.is_busy() {
            return false;
        }
        match &run.status {
            Status::Completed(_) | Status::Failed(_) | Status::Cancelled => true,
            Status::Queued | Status::Running => false,
            Status::Parked(_) if self.is_leaving() => true,
            Status::Parked(_) if run.wakes_at().is_some() => false,
            Status::Parked(_) => self.asking.is_none() || !self.hears,
        }
    }

    /// The last words: how the run was left, and what gets it further.
    pub(crate) fn part(&mut self) {
        let text = self.run.as_ref().map(show::parting).unwrap_or_default();
        self.tell(&text);
    }

    pub(crate) async fn print(&mut self, out: &Printer, aside: &Printer, leave: &CancellationToken) {
        let (text, note) = (std::mem::take(&mut self.text), std::mem::take(&mut self.note));
        let printed = async {
            aside.print(note).await;
            out.print(text).await;
        };
        tokio::select! {
            () = printed => {}
            () = hurry(leave) => {}
        }
    }
}

/// Returns a while after the program was asked to leave: nothing is printed for longer.
pub(crate) async fn hurry(leave: &CancellationToken) {
    leave.cancelled().await;
    tokio::time::sleep(Duration::from_millis(limits::LEAVE_PATIENCE.0)).await;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::domain::command::Policy;
    use crate::domain::terms::Check;
    use crate::headless::fixture::Desk;
    use crate::headless::fixture::asks_for;
    use crate::headless::fixture::asks_operator;
    use crate::headless::fixture::finishes;
    use crate::headless::fixture::plans;

    /// What is printed when words are recorded while this desk's run asks something.
    fn printed_below(mut desk: Desk) -> String {
        desk.recover();
        let seen = desk.records.lock().unwrap().len();
        let mut room = Room::new(desk.run.id.clone(), Some(desk.run.clone()), Style::Asking, TimeZone::UTC);
        room.ask();
        room.ask();
        room.text.clear();
        desk.order(Command::Interject { text: "mind the gap".to_string(), policy: Policy::Next });
        let records = desk.records.lock().unwrap()[seen..].to_vec();
        room.take(&records).unwrap();
        room.ask();
        room.ask();
        room.text
    }

    #[test]
    fn a_question_is_asked_again_below_the_news() {
        let checks = vec![Check::OperatorConfirm(String::new())];
        let all = [
            (
                Desk::new(vec![plans(), asks_for("run_command", "make all")]),
                "[decision needed] c2 run_command: make all\nallow this call? [y once / a for the run / n no / d WORDS no, because / v view]\n",
            ),
            (
                Desk::new(vec![plans(), asks_operator("left or right?")]),
                "[question] c2 asks\n  | left or right?\nyour answer, in one line:\n",
            ),
            (
                Desk::with(vec![plans(), finishes()], |terms| terms.checks = checks),
                "[confirm] the run says that it is finished\nis it so? [y yes / y WORDS yes, and / n no / n WORDS no, because]\n",
            ),
        ];
        for (desk, asked) in all {
            let text = printed_below(desk);
            assert!(text.contains("mind the gap") && text.ends_with(asked), "{text}");
            assert_eq!(text.matches(asked).count(), 1, "{text}");
        }
    }
}
