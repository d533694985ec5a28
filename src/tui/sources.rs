//! Where the screen hears from: the terminal, signals, answers to commands, and the run.

use std::io;
use std::sync::Mutex;
use std::sync::PoisonError;

use crossterm::event::Event;
use crossterm::event::EventStream;
use futures_util::StreamExt;
use tokio::signal::unix::Signal;
use tokio::signal::unix::SignalKind;
use tokio::signal::unix::signal;
use tokio::sync::mpsc;
use tokio::sync::oneshot;

use crate::domain::command::Command;
use crate::domain::command::Refusal;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::outline::Outline;
use crate::protocol::client::Client;
use crate::protocol::client::Sender;
use crate::protocol::client::Update;
use crate::tui::app::Ticket;
use crate::tui::past::Past;
use crate::tui::reread::Read;

/// Something that the screen hears.
#[derive(Debug)]
pub enum Heard {
    /// The terminal says something.
    Terminal(Event),
    /// The terminal is gone.
    Gone,
    /// The program was asked to end.
    End,
    /// The program goes on after a stop.
    Continued,
    /// A command was answered; no ticket where the operator leaves.
    Answer(Option<Ticket>, Result<Seq, Refusal>),
    /// What went by before the screen was read.
    Past(Box<Past>),
    /// The texts of an iteration that was put away.
    Read(u32, Read),
    /// The run says something.
    Run(Update),
}

/// The signals that matter to a screen.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    goes_on: Signal,
}

impl Signals {
    /// Listens from now on.
    pub fn listen() -> io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            goes_on: signal(SignalKind::from_raw(nix::libc::SIGCONT))?,
        })
    }

    /// The next signal. May be dropped and called again.
    pub async fn next(&mut self) -> Heard {
        tokio::select! {
            _ = self.terminate.recv() => Heard::End,
            _ = self.interrupt.recv() => Heard::End,
            _ = self.hang_up.recv() => Heard::Gone,
            _ = self.goes_on.recv() => Heard::Continued,
        }
    }
}

/// What is typed while one screen was closed and the next is not open yet.
static BETWEEN: Mutex<Option<EventStream>> = Mutex::new(None);

/// The terminal's stream, handed on from screen to screen. Dropping it would wake whoever reads the terminal next, and
/// a key that comes together with that wake is not heard until another one is pressed.
pub struct Keys {
    events: Option<EventStream>,
}

impl Keys {
    /// Listens from now on, or goes on listening where the screen before left off.
    pub fn listen() -> Keys {
        let left = BETWEEN.lock().unwrap_or_else(PoisonError::into_inner).take();
        Keys { events: Some(left.unwrap_or_default()) }
    }

    /// What the terminal says next. May be dropped and called again.
    pub async fn next(&mut self) -> Heard {
        let Some(events) = &mut self.events else { return Heard::Gone };
        match events.next().await {
            Some(Ok(event)) => Heard::Terminal(event),
            Some(Err(_)) | None => Heard::Gone,
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        *BETWEEN.lock().unwrap_or_else(PoisonError::into_inner) = self.events.take();
    }
}

/// What went by before, once it is read; it comes once. May be dropped and called again.
async fn read(past: &mut Option<oneshot::Receiver<Past>>) -> Past {
    if let Some(coming) = past {
        let came = coming.await;
        *past = None;
        // Whoever read it has said why it can't be had.
        if let Ok(came) = came {
            return came;
        }
    }
    std::future::pending().await
}

/// All that the screen of a run hears.
pub struct Sources {
    signals: Signals,
    keys: Keys,
    client: Client,
    past: Option<oneshot::Receiver<Past>>,
    sender: Sender,
    is_closed: bool,
    is_gone: bool,
    answers: mpsc::Receiver<(Option<Ticket>, Result<Seq, Refusal>)>,
    answer: mpsc::Sender<(Option<Ticket>, Result<Seq, Refusal>)>,
    texts: mpsc::Receiver<(u32, Read)>,
    text: mpsc::Sender<(u32, Read)>,
}

impl Sources {
    /// Listens to a run, of which what went by before is still being read.
    pub fn new(client: Client, past: oneshot::Receiver<Past>) -> io::Result<Sources> {
        let (answer, answers) = mpsc::channel(limits::INBOX);
        // One iteration is read at a time.
        let (text, texts) = mpsc::channel(1);
        let sender = client.sender();
        let (signals, keys) = (Signals::listen()?, Keys::listen());
        let past = Some(past);
        let (is_closed, is_gone) = (false, false);
        Ok(Sources { signals, keys, client, past, sender, is_closed, is_gone, answers, answer, texts, text })
    }

    /// What comes next. May be dropped and called again.
    pub async fn next(&mut self) -> Heard {
        let heard = tokio::select! {
            biased;
            heard = self.signals.next() => heard,
            heard = self.keys.next(), if !self.is_gone => heard,
            Some((ticket, answer)) = self.answers.recv() => Heard::Answer(ticket, answer),
            Some((iteration, read)) = self.texts.recv() => Heard::Read(iteration, read),
            past = read(&mut self.past) => Heard::Past(Box::new(past)),
            update = self.client.next(), if !self.is_closed => Heard::Run(update),
        };
        // What has ended is not listened to again.
        self.is_gone |= matches!(heard, Heard::Gone);
        self.is_closed |= matches!(heard, Heard::Run(Update::Closed(_)));
        heard
    }

    /// What has come already, if anything. It is polled by the task itself: the terminal's stream keeps the waker of
    /// the poll that found nothing, and would wake nobody had it been polled with another one.
    pub async fn at_hand(&mut self) -> Option<Heard> {
        tokio::select! {
            biased;
            heard = self.next() => Some(heard),
            () = std::future::ready(()) => None,
        }
    }

    /// Reads the texts of an iteration in a task of its own; they are heard later.
    pub fn read(&self, iteration: u32, outlines: Vec<Outline>) {
        let (sender, text) = (self.sender.clone(), self.text.clone());
        tokio::spawn(async move {
            let read = sender.recall(&outlines).await;
            // Nobody listens any more once the screen is closed.
            let _ = text.send((iteration, read)).await;
        });
    }

    /// Sends a command in a task of its own; the answer is heard later.
    pub fn submit(&self, ticket: Option<Ticket>, command: Command) {
        let (sender, answer) = (self.sender.clone(), self.answer.clone());
        tokio::spawn(async move {
            let said = sender.submit(command).await;
            // Nobody listens any more once the screen is closed.
            let _ = answer.send((ticket, said)).await;
        });
    }
}
