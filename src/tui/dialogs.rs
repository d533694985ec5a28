//! What keys do in dialogs, and to a call, an outcome or a claim that waits. `act.rs` finds out which it is.

use crate::domain::approval::Decision;
use crate::domain::approval::Resolution;
use crate::domain::budget::Axis;
use crate::domain::command::Cancel;
use crate::domain::command::Command;
use crate::domain::id::CallId;
use crate::domain::pricing;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::tool::Digest;
use crate::policy::plan_edit;
use crate::policy::spending::needed;
use crate::tui::action::Action;
use crate::tui::action::Choice;
use crate::tui::app::App;
use crate::tui::app::Out;
use crate::tui::composer::Composer;
use crate::tui::guard::Held;
use crate::tui::keymap;
use crate::tui::popup::Asks;
use crate::tui::popup::Popup;
use crate::tui::popup::new_limit;
use crate::tui::popup::proposal;
use crate::tui::theme::Role;
use crossterm::event::KeyEvent;
use crossterm::event::KeyEventKind;

impl App {
    pub(crate) fn ask_raise(&mut self) {
        if self.run.status == Status::Parked(ParkReason::PriceUnknown) {
            return self.popups.push(Popup::Words { asks: Asks::Price, line: Composer::default() });
        }
        let axis = match &self.run.status {
            Status::Parked(ParkReason::Budget(axis)) => *axis,
            Status::Parked(_)
            | Status::Queued
            | Status::Running
            | Status::Completed(_)
            | Status::Failed(_)
            | Status::Cancelled => Axis::Cost,
        };
        let line = Composer::suggesting(&proposal(axis, &self.run.pool, needed(&self.run, axis)));
        self.popups.push(Popup::Raise { axis, line, problem: None });
    }

    pub(crate) fn turn_axis(&mut self, steps: usize) {
        if let Some(Popup::Raise { axis, line, problem }) = self.popups.last_mut() {
            let place = Axis::ALL.iter().position(|one| one == axis).unwrap_or(0);
            *axis = Axis::ALL.iter().cycle().nth(place + steps).copied().unwrap_or(Axis::Cost);
            *line = Composer::suggesting(&proposal(*axis, &self.run.pool, needed(&self.run, *axis)));
            *problem = None;
        }
    }

    pub(crate) fn submit_dialog(&mut self) -> Vec<Out> {
        match self.popups.pop() {
            Some(Popup::Words { asks: Asks::Plan, line }) => match plan_edit::read(&line.text()) {
                Ok(edit) => self.submit(Command::EditPlan(edit), None),
                Err(how) => {
                    self.popups.push(Popup::Words { asks: Asks::Plan, line });
                    self.say(how, Role::Warning);
                    Vec::new()
                }
            },
            Some(Popup::Words { asks: Asks::Edit(call, digest), line }) => self.submit_edit(call, digest, line),
            Some(Popup::Words { asks: Asks::Trust, line }) => self.submit_trust(line),
            Some(Popup::Words { asks: Asks::Iteration(kind), line }) => self.submit_iteration(kind, line),
            Some(Popup::Words { asks: Asks::Sure(doubt), line }) => self.submit_sure(doubt, &line),
            Some(Popup::Words { asks: Asks::Price, line }) => match pricing::parse(&line.text()) {
                Ok(price) => self.submit(Command::Price { price }, Some(Command::Resume)),
                Err(how) => {
                    self.popups.push(Popup::Words { asks: Asks::Price, line });
                    self.say(how, Role::Warning);
                    Vec::new()
                }
            },
            Some(Popup::Words { asks, line }) => {
                let text = line.text().trim().to_string();
                let command = match asks {
                    Asks::Deny(call, digest) => Command::Decide { call, digest, decision: Decision::Deny(text) },
                    Asks::WrongClaim => Command::Confirm { confirmed: false, text },
                    Asks::Happened(call) => Command::Resolve { call, resolution: Resolution::Happened(text) },
                    Asks::Plan | Asks::Edit(..) | Asks::Trust | Asks::Price | Asks::Iteration(_) | Asks::Sure(_) => {
                        return Vec::new();
                    }
                };
                self.guard.decided(self.now.ms);
                self.submit(command, None)
            }
            Some(Popup::Raise { axis, line, .. }) => match new_limit(axis, &line.text(), &self.run.pool, self.now.at) {
                Ok(limit) => {
                    let is_why = self.run.status == Status::Parked(ParkReason::Budget(axis));
                    self.submit(Command::Raise { axis, limit }, is_why.then_some(Command::Resume))
                }
                Err(why) => {
                    self.popups.push(Popup::Raise { axis, line, problem: Some(why) });
                    Vec::new()
                }
            },
            Some(Popup::Help { .. } | Popup::Whole { .. } | Popup::Cancel) | None => Vec::new(),
        }
    }

    pub(crate) fn cancel(&mut self, cancel: Cancel) -> Vec<Out> {
        if !self.guard.is_rested(self.now.ms) {
            self.guard.disturb(self.now.ms);
            self.say("too early: nothing was cancelled; wait half a second after the last key", Role::Warning);
            return Vec::new();
        }
        self.popups.clear();
        self.submit(Command::Cancel(cancel), None)
    }

    /// A key that decides: it counts only about the item that the last frame showed, at rest and armed.
    pub(crate) fn decide(&mut self, choice: Choice, key: &KeyEvent) -> Vec<Out> {
        let Some((call, digest)) = self.item().map(|item| (item.call, item.digest.clone())) else {
            return Vec::new();
        };
        if self.is_sent(call) {
            self.say("that is sent already; its record has not come yet", Role::Dim);
            return Vec::new();
        }
        let held = match (key.kind, choice.lets_run()) {
            (KeyEventKind::Press, true) => self.guard.check_allowing(call, digest.as_ref()),
            (KeyEventKind::Press, false) => self.guard.check(call, digest.as_ref()),
            (KeyEventKind::Repeat | KeyEventKind::Release, _) => Err(Held::Early),
        };
        match (held, digest) {
            (Ok(()), Some(digest)) => self.settle(choice, call, digest),
            (Err(held), _) => {
                self.guard.disturb(self.now.ms);
                self.hold(held, key);
                Vec::new()
            }
            (Ok(()), None) => Vec::new(),
        }
    }

    pub(crate) fn hold(&mut self, held: Held, key: &KeyEvent) {
        let name = keymap::Chord::of(key).name();
        let text = match held {
            Held::Early => {
                format!("{name} came too early and was dropped: the call must rest for half a second")
            }
            Held::Unread => {
                let end = keymap::key_of(Action::Bottom);
                format!("{name} was dropped: the end of the call was not on the screen yet ({end} goes there)")
            }
        };
        self.say(text, Role::Warning);
    }

    pub(crate) fn settle(&mut self, choice: Choice, call: CallId, digest: Digest) -> Vec<Out> {
        self.guard.decided(self.now.ms);
        let ask = |asks| Popup::Words { asks, line: Composer::default() };
        let command = match choice {
            Choice::AllowOnce => Command::Decide { call, digest, decision: Decision::AllowOnce },
            Choice::AllowRun => Command::Decide { call, digest, decision: Decision::AllowRun },
            Choice::AllowTool => Command::Decide { call, digest, decision: Decision::AllowTool },
            Choice::AllowList => return self.allow_list(),
            Choice::Edit => {
                self.ask_edit(call, digest);
                return Vec::new();
            }
            Choice::Deny => Command::Decide { call, digest, decision: Decision::Deny(String::new()) },
            Choice::DenyWithWords => {
                self.popups.push(ask(Asks::Deny(call, digest)));
                return Vec::new();
            }
            Choice::Happened => {
                self.popups.push(ask(Asks::Happened(call)));
                return Vec::new();
            }
            Choice::NotHappened => Command::Resolve { call, resolution: Resolution::NotHappened },
            Choice::RunAgain => Command::Resolve { call, resolution: Resolution::RunAgain },
            Choice::Skip => Command::Resolve { call, resolution: Resolution::Skip },
        };
        self.submit(command, None)
    }
}
