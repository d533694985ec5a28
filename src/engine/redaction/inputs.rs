//! Inputs without secrets: what the operator says, what models and tools give.

use serde_json::Map;
use serde_json::Value;

use crate::domain::approval::Decision;
use crate::domain::approval::Resolution;
use crate::domain::command::Command;
use crate::domain::command::PlanEdit;
use crate::domain::model::AskedCall;
use crate::domain::model::ModelReply;
use crate::domain::model::StopReason;
use crate::engine::redaction::Redactor;
use crate::machine::Input;
use crate::machine::Outcome;

impl Redactor {
    /// An input as the machine may see it.
    pub fn input(&self, input: Input) -> Input {
        match input {
            Input::Command(command, client) => Input::Command(self.command(command), client),
            Input::Outcome(outcome) => Input::Outcome(self.outcome(outcome)),
            Input::Recovered { .. } | Input::Unready { .. } | Input::Tick => input,
        }
    }

    fn command(&self, mut command: Command) -> Command {
        match &mut command {
            Command::Decide { decision: Decision::Deny(text), .. }
            | Command::Resolve { resolution: Resolution::Happened(text), .. }
            | Command::Answer { text, .. }
            | Command::Confirm { text, .. }
            | Command::Interject { text, .. }
            | Command::EditPlan(
                PlanEdit::Add { title: text }
                | PlanEdit::Retitle { title: text, .. }
                | PlanEdit::Mark { note: text, .. },
            ) => self.clean(text),
            Command::Coded { leave, .. } => **leave = self.command((**leave).clone()),
            Command::Decide { decision: Decision::Edit(arguments), .. } => *arguments = self.arguments(arguments),
            // The words of a rule are those of the call, which was cleaned before.
            Command::Decide {
                decision:
                    Decision::AllowOnce
                    | Decision::AllowRun
                    | Decision::AllowTool
                    | Decision::AllowRule(_)
                    | Decision::AllowUnboxed,
                ..
            }
            | Command::Resolve {
                resolution: Resolution::NotHappened | Resolution::RunAgain | Resolution::Skip, ..
            }
            | Command::AllowAll { .. }
            | Command::SetTrust(_)
            | Command::Withdraw(_)
            | Command::Pause(_)
            | Command::Resume
            | Command::GrantReplans
            | Command::Accept
            | Command::Close
            | Command::Retry
            | Command::Cancel(_)
            | Command::Raise { .. }
            | Command::EditPlan(PlanEdit::Move { .. })
            | Command::Correct { .. }
            | Command::Price { .. }
            | Command::Leave => {}
        }
        command
    }

    fn outcome(&self, mut outcome: Outcome) -> Outcome {
        match &mut outcome {
            Outcome::Model { result: Ok(reply), .. } => self.reply(reply),
            Outcome::Model { result: Err(failure), .. } => {
                self.clean(&mut failure.message);
                self.clean_cut(&mut failure.received.text);
            }
            Outcome::Prepared(calls) => {
                for (_, facts) in calls {
                    *facts = self.clean_facts(std::mem::take(facts));
                }
            }
            Outcome::Tool { outcome, .. } => {
                self.clean(&mut outcome.text);
                outcome.watched.iter_mut().for_each(|name| self.clean(name));
            }
            Outcome::Drifted { why, .. } => self.clean(why),
            Outcome::Check { detail, .. } => self.clean(detail),
            // What is read back was cleaned before it was recorded.
            Outcome::CheckEnded { .. } | Outcome::Probed { .. } | Outcome::ReadBack { .. } => {}
        }
        outcome
    }

    fn reply(&self, reply: &mut ModelReply) {
        let is_cut = match reply.stop {
            StopReason::End | StopReason::Calls => false,
            // A filter cuts off, too.
            StopReason::Length | StopReason::Refused | StopReason::Paused | StopReason::Other(_) => true,
        };
        let clean = |text: &mut String, is_cut: bool| if is_cut { self.clean_cut(text) } else { self.clean(text) };
        clean(&mut reply.text, is_cut);
        clean(&mut reply.reasoning, is_cut);
        reply.opaque.iter_mut().for_each(|unknown| clean(unknown, is_cut));
        for AskedCall { id, name, arguments } in &mut reply.calls {
            *arguments = self.arguments(arguments);
            // Whatever the reply says of its end: arguments that are no whole object never run, and may end in the middle
            // of a value.
            let is_part = serde_json::from_str::<Map<String, Value>>(arguments).is_err();
            if is_part {
                self.take_begun(arguments);
            }
            clean(name, is_cut || is_part);
            clean(id, is_cut || is_part);
        }
        if let StopReason::Other(reason) = &mut reply.stop {
            self.clean(reason);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;

    const SECRET: &str = "hunter2/Hunter2+é\"x";

    /// A reply that ends so, with one call, as it is recorded.
    fn recorded(stop: StopReason, name: &str, arguments: &str) -> ModelReply {
        let redactor =
            Redactor::new("key".to_string().into(), [("DB_PASSWORD".to_string(), SECRET.to_string().into())]);
        let call = AskedCall { id: "1".to_string(), name: name.to_string(), arguments: arguments.to_string() };
        let mut reply = ModelReply {
            text: String::new(),
            reasoning: String::new(),
            calls: vec![call],
            opaque: Vec::new(),
            stop,
            usage: None,
            received_bytes: 0,
        };
        redactor.reply(&mut reply);
        reply
    }

    #[test]
    fn a_beginning_of_a_secret_in_a_call_that_was_cut_off_is_taken_out() {
        let whole = serde_json::json!({"content": format!("password={SECRET}")}).to_string();
        let from = whole.find("hunter2").unwrap();
        let stops =
            [StopReason::Length, StopReason::Refused, StopReason::Calls, StopReason::Other("pause".to_string())];
        for stop in stops {
            for end in (from + 8..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
                let reply = recorded(stop.clone(), "write_file", &whole[..end]);
                let arguments = &reply.calls[0].arguments;
                assert!(arguments.starts_with("{\"content\":\"password=[redacted:"), "{stop:?}: {arguments}");
                assert!(!arguments.contains("unter2"), "{stop:?}: {arguments}");
            }
            // Its beginning with escapes, also within one.
            for begun in ["hunter2\\u002fH", "hunter2\\/Hunter2\\u002b\\u00", "\\u0068unter2/Hu\\"] {
                let arguments =
                    recorded(stop.clone(), "write_file", &format!("{{\"a\":\"{begun}")).calls[0].arguments.clone();
                assert!(arguments.starts_with("{\"a\":\"[redacted:cut-off:"), "{stop:?}: {arguments}");
            }
        }
        let reply = recorded(StopReason::Length, "hunter2/Hunt", "");
        assert!(reply.calls[0].name.starts_with("[redacted:cut-off:"), "{reply:?}");
    }

    #[test]
    fn a_whole_call_stays_as_it_is() {
        for arguments in [
            r#"{"content":"hunter2"}"#,
            r#"{"content":"hunter2/Hunt"}"#,
            r#"{"key":"sk-abcdefghijklmnopqrstuvwxyz0123"}"#,
        ] {
            for stop in [StopReason::Calls, StopReason::Length] {
                assert_eq!(recorded(stop, "write_file", arguments).calls[0].arguments, arguments);
            }
        }
    }
}
