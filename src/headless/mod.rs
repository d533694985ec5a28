//! Floor 6: a run without a screen, as lines for people or as JSON lines for programs.
//!
//! It keeps a replica of the run by the one fold and prints what each record says. It decides nothing by itself: where
//! nobody can be asked, the run is parked already, and the commands that decide are printed.

use std::io::IsTerminal;

use jiff::tz::TimeZone;
use tokio::signal::unix::SignalKind;
use tokio::signal::unix::signal;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::domain::command::Command;
use crate::domain::fold::Broken;
use crate::domain::id::RunId;
use crate::domain::run::Run;
use crate::headless::input::Typed;
use crate::headless::input::typed;
use crate::headless::output::Printer;
use crate::headless::room::Room;
use crate::headless::room::hurry;
use crate::protocol::client::Client;
use crate::protocol::client::Update;

pub mod asking;
pub mod audit;
pub mod changed;
pub mod deeds;
pub mod exit;
#[cfg(test)]
mod fixture;
pub mod input;
pub mod lines;
pub mod orders;
pub mod output;
pub mod prompt;
pub mod remembered;
pub mod restoring;
pub(crate) mod room;
pub mod show;
pub mod table;
pub mod text;
pub mod under_way;

/// Why a run can't be shown any further. The run itself is as its journal says.
#[derive(Debug, thiserror::Error)]
pub enum HeadlessError {
    /// The engine stopped, and not by request.
    #[error("the engine stopped: {0}; what it had recorded is kept; resume the run")]
    Stopped(String),
    /// A record that does not fit: a bug, or a damaged journal.
    #[error("{0}; the run was left as its journal says; `tiller doctor` looks into it")]
    Broken(#[from] Broken),
    /// Signals can't be listened to.
    #[error("signals can't be listened to ({0}); nothing was started; try again")]
    Signals(#[from] std::io::Error),
    /// A record that is no JSON: a bug.
    #[error("a record can't be printed ({0}); the run goes on in its journal; resume it without --json")]
    Unprintable(#[from] serde_json::Error),
    /// The engine stopped before there was a run.
    #[error("the run ended before its first record; nothing was done; start it again")]
    Empty,
}

/// How a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As lines; what waits is printed with the commands that decide it.
    Plain,
    /// As lines; what waits is asked for, and answered by typed lines.
    Asking,
    /// The records as JSON lines, and nothing else.
    Json,
}

impl Style {
    /// Lines that ask where a person sits at both ends, else lines only.
    pub fn fitting_lines() -> Style {
        if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() { Style::Asking } else { Style::Plain }
    }
}

/// What is shown, and how.
pub struct Session {
    /// The hold on the run.
    pub client: Client,
    /// The name of the run.
    pub id: RunId,
    /// The run at the record that the client has seen; nothing when it has seen none.
    pub run: Option<Run>,
    /// How it is shown.
    pub style: Style,
    /// What is asked of the run first, such as `Resume`.
    pub first: Option<Command>,
}

/// Where a session meets the world.
pub struct World {
    /// What is printed.
    pub out: Printer,
    /// What is told beside it, where `out` is for records only.
    pub aside: Printer,
    /// What is typed.
    pub typed: mpsc::Receiver<Typed>,
    /// Cancelled when the person, or the system, wants the program to leave.
    pub leave: CancellationToken,
    /// The time zone in which times are shown.
    pub zone: TimeZone,
}

/// Shows a run on standard output until it rests and nobody can decide. Returns it as it was left.
pub async fn run(session: Session) -> Result<Run, HeadlessError> {
    let typed = match session.style {
        Style::Asking => typed(std::io::BufReader::new(std::io::stdin())),
        Style::Plain | Style::Json => mpsc::channel(1).1,
    };
    let world = World {
        out: Printer::start(Box::new(std::io::stdout())),
        aside: Printer::start(Box::new(std::io::stderr())),
        typed,
        leave: signals()?,
        zone: TimeZone::system(),
    };
    show_in(session, world).await
}

/// A token that is cancelled by the first signal that asks to leave.
fn signals() -> Result<CancellationToken, std::io::Error> {
    let leave = CancellationToken::new();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let told = leave.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        told.cancel();
    });
    Ok(leave)
}

/// Shows a run in a given world.
pub async fn show_in(session: Session, world: World) -> Result<Run, HeadlessError> {
    let World { out, aside, mut typed, leave, zone } = world;
    let Session { mut client, id, run, style, first } = session;
    let mut room = Room::new(id, run, style, zone);
    if let Some(command) = first {
        room.begin(&client, command).await;
    }
    loop {
        room.ask();
        room.print(&out, &aside, &leave).await;
        if room.is_settled(&client) {
            break;
        }
        tokio::select! {
            biased;
            () = out.lost(), if !room.is_leaving() => room.leave(&client).await,
            () = leave.cancelled(), if !room.is_leaving() => room.leave(&client).await,
            () = room.patience() => break,
            update = client.next() => match update {
                Update::Records(records) => room.take(&records)?,
                Update::Delta(_) | Update::Lost(_) | Update::Today(_) => {}
                Update::Closed(Some(why)) if !room.is_leaving() => return Err(HeadlessError::Stopped(why)),
                Update::Closed(_) => break,
            },
            line = typed.recv(), if room.hears => match line {
                Some(line) => room.hear(&client, &line).await,
                None => room.hears = false,
            },
        }
    }
    room.part();
    room.print(&out, &aside, &leave).await;
    let finished = async { tokio::join!(out.finish(), aside.finish()) };
    tokio::select! {
        _ = finished => {}
        () = hurry(&leave) => {}
    }
    room.run.ok_or(HeadlessError::Empty)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use std::time::Duration;
    use std::time::Instant;

    use super::*;
    use crate::domain::approval::Decision;
    use crate::domain::event::Record;
    use crate::domain::model::FailureClass;
    use crate::domain::money::MicroUsd;
    use crate::domain::run::Waits;
    use crate::domain::terms::Check;
    use crate::domain::time::Span;
    use crate::headless::fixture::Desk;
    use crate::headless::fixture::Paper;
    use crate::headless::fixture::asks_for;
    use crate::headless::fixture::fails;
    use crate::headless::fixture::finishes;
    use crate::headless::fixture::plans;

    /// A session under way, seen and spoken to from outside.
    struct Stage {
        shown: tokio::task::JoinHandle<Result<Run, HeadlessError>>,
        out: Paper,
        aside: Paper,
        typed: mpsc::Sender<Typed>,
        leave: CancellationToken,
    }

    impl Stage {
        fn open(desk: Desk, style: Style, out: Paper, first: Option<Command>) -> Stage {
            let (client, id, run) = desk.serve();
            let (typed, lines) = mpsc::channel(4);
            let (aside, leave) = (Paper::default(), CancellationToken::new());
            let world = World {
                out: Printer::start(Box::new(out.clone())),
                aside: Printer::start(Box::new(aside.clone())),
                typed: lines,
                leave: leave.clone(),
                zone: TimeZone::UTC,
            };
            let session = Session { client, id, run, style, first };
            let shown = tokio::spawn(show_in(session, world));
            Stage { shown, out, aside, typed, leave }
        }

        /// Types a line once `text` was printed.
        async fn types(&self, text: &str, line: &str, at: Instant) {
            self.out.has(text).await;
            self.typed.send(Typed { line: line.to_string(), at }).await.unwrap();
        }

        async fn ends(self) -> (Run, String, String) {
            let run = tokio::time::timeout(Duration::from_secs(20), self.shown).await.unwrap().unwrap().unwrap();
            (run, self.out.text(), self.aside.text())
        }
    }

    /// Long enough after any prompt of this test.
    fn late() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    fn work() -> Desk {
        Desk::new(vec![plans(), asks_for("run_command", "make all"), finishes()])
    }

    #[tokio::test]
    async fn a_claim_is_confirmed_by_a_line() {
        let checks = vec![Check::OperatorConfirm(String::new())];
        let desk = Desk::with(vec![plans(), finishes()], |terms| terms.checks = checks);
        let stage = Stage::open(desk, Style::Asking, Paper::default(), None);
        stage.types("is it so?", "y well done", late()).await;
        let (run, out, _) = stage.ends().await;
        assert_eq!(exit::exit_code(&run.status), 0, "{out}");
        assert!(out.contains("asked of you: Is the goal reached?\n"), "{out}");
    }

    #[tokio::test]
    async fn a_price_is_given_by_a_line() {
        let desk = Desk::with(vec![plans(), finishes()], |terms| terms.model.price = None);
        let stage = Stage::open(desk, Style::Asking, Paper::default(), None);
        stage.types("[price] nobody knows", "0.25 2.00", late()).await;
        let (run, out, _) = stage.ends().await;
        assert_eq!(exit::exit_code(&run.status), 0, "{out}");
        assert!(run.pool.spent() > MicroUsd(0));
    }

    #[tokio::test]
    async fn a_run_that_nobody_can_decide_parks_and_says_how_to_decide() {
        let stage = Stage::open(work(), Style::Plain, Paper::default(), None);
        let (run, out, _) = stage.ends().await;
        assert_eq!(exit::exit_code(&run.status), 10);
        let call = run.waiting().first().map(|(call, _)| call.digest().unwrap()).unwrap();
        let end = format!(
            "[parked] waiting for approval\n  what to do: allow or deny the call that waits\nrun 777777 is parked \
             (waiting for approval) · $0.00 spent\nto go on, settle each call with one line, then resume:\n  tiller approve 777777 c2 {digest}\n  tiller deny \
             777777 c2 {digest} \"why\"\n  tiller resume 777777\n",
            digest = call.short()
        );
        assert!(out.ends_with(&end), "{out}");
    }

    #[tokio::test]
    async fn a_person_allows_a_call_and_the_run_completes() {
        let stage = Stage::open(work(), Style::Asking, Paper::default(), None);
        stage.types("allow this call?", "y", late()).await;
        let (run, out, _) = stage.ends().await;
        assert_eq!(exit::exit_code(&run.status), 0, "{out}");
        assert!(out.contains("  | $ make all\n"), "{out}");
        assert!(out.contains("[call c2] allowed once by you (test)\n"), "{out}");
        assert!(out.contains("[call c2] runs: run_command make all\n"), "{out}");
        assert!(out.ends_with("run 777777 is completed (claimed, not verified) · $0.00 spent\n"), "{out}");
    }

    #[tokio::test]
    async fn a_line_that_came_before_the_question_decides_nothing() {
        let early = Instant::now();
        let stage = Stage::open(work(), Style::Asking, Paper::default(), None);
        stage.types("allow this call?", "y", early).await;
        stage.types("that came too early to be an answer to this; nothing was decided", "n", late()).await;
        let (run, out, _) = stage.ends().await;
        assert_eq!(exit::exit_code(&run.status), 0);
        assert!(out.contains("[call c2] denied by you (test)") && !out.contains("[call c2] runs"), "{out}");
    }

    #[tokio::test]
    async fn words_are_passed_on_and_the_question_is_asked_again() {
        let stage = Stage::open(work(), Style::Asking, Paper::default(), None);
        stage.types("allow this call?", "use the other one", late()).await;
        stage.types("  | use the other one\n", "y", Instant::now()).await;
        stage.types("nothing was decided", "a", late()).await;
        let (run, out, _) = stage.ends().await;
        assert_eq!(exit::exit_code(&run.status), 0);
        assert!(out.contains("[call c2] allowed until the run ends by you (test)"), "{out}");
    }

    #[tokio::test]
    async fn json_is_the_records_and_nothing_else() {
        let stage = Stage::open(work(), Style::Json, Paper::default(), None);
        let (run, out, aside) = stage.ends().await;
        let records: Vec<Record> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(Run::fold(&run.id, &records).unwrap(), run);
        assert!(aside.starts_with("run 777777 is parked (waiting for approval)"), "{aside}");
    }

    #[tokio::test]
    async fn a_reader_that_goes_away_parks_the_run() {
        let stage = Stage::open(work(), Style::Asking, Paper::torn_after(400), None);
        let (run, out, _) = stage.ends().await;
        assert_eq!((exit::exit_code(&run.status), out.len()), (10, 400));
    }

    #[tokio::test]
    async fn leaving_ends_a_session_that_waits() {
        let stage = Stage::open(work(), Style::Asking, Paper::default(), None);
        stage.out.has("allow this call?").await;
        stage.leave.cancel();
        let (run, _, _) = stage.ends().await;
        assert_eq!(run.waiting().first().map(|(_, waits)| *waits), Some(Waits::Decision));
    }

    #[tokio::test]
    async fn a_person_who_closes_the_input_is_not_waited_for() {
        let mut stage = Stage::open(work(), Style::Asking, Paper::default(), None);
        stage.out.has("allow this call?").await;
        stage.typed = mpsc::channel(1).0;
        let (run, out, _) = stage.ends().await;
        assert_eq!(exit::exit_code(&run.status), 10);
        assert!(out.contains("  tiller approve 777777 c2 "), "{out}");
    }

    #[tokio::test]
    async fn a_run_that_waits_for_its_provider_is_waited_for() {
        let desk = Desk::new(vec![fails(FailureClass::RateLimited, Some(Span::seconds(3_600)))]);
        let stage = Stage::open(desk, Style::Plain, Paper::default(), None);
        stage.out.has("[parked] rate limited until 2023-11-14 23:13:20\n").await;
        assert!(!stage.shown.is_finished());
        stage.leave.cancel();
        let (run, out, _) = stage.ends().await;
        assert_eq!(exit::exit_code(&run.status), 14);
        assert!(out.ends_with("to go on, type:\n  tiller resume 777777\n"), "{out}");
    }

    #[tokio::test]
    async fn a_refusal_is_told() {
        let late = Command::Decide {
            call: crate::domain::id::CallId(9),
            digest: crate::domain::tool::Digest("00000000".to_string()),
            decision: Decision::AllowOnce,
        };
        let (_, out, _) = Stage::open(work(), Style::Plain, Paper::default(), Some(late)).ends().await;
        assert!(out.contains("[refused] call c9 does not wait for this\n"), "{out}");
    }

    #[tokio::test]
    async fn an_engine_that_stops_is_an_error() {
        let stage = Stage::open(Desk::new(vec![plans()]), Style::Plain, Paper::default(), None);
        let error = tokio::time::timeout(Duration::from_secs(20), stage.shown).await.unwrap().unwrap().err().unwrap();
        assert_eq!(
            error.to_string(),
            "the engine stopped: out of replies; what it had recorded is kept; resume the run"
        );
    }
}
