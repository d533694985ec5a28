//! The part of the fold that is about the plan: what a change of it does to the open iteration, and what the model is
//! told of it. Only the fold calls it.

use crate::domain::event::Record;
use crate::domain::limits;
use crate::domain::message::Message;
use crate::domain::plan::Plan;
use crate::domain::plan::PlanSource;
use crate::domain::run::Run;

impl Run {
    pub(crate) fn change_plan(&mut self, plan: &Plan, by_operator: bool, told: &str) -> Result<(), String> {
        if plan.revision <= self.plan.revision {
            return Err(format!("plan revision {} after {}", plan.revision, self.plan.revision));
        }
        if by_operator {
            // What the operator moved is no progress of the model's.
            self.iteration.plan_before.follow(&self.plan, plan);
            self.reset_windows();
        } else if plan.source == PlanSource::Text && !told.is_empty() {
            self.iteration.planned_in_text = true;
        }
        if !told.is_empty() {
            if self.plan_news.len() >= limits::PLAN_NEWS {
                self.plan_news.remove(0);
            }
            self.plan_news.push(told.to_string());
        }
        self.plan = plan.clone();
        Ok(())
    }

    /// Makes what is new about the plan a part of the conversation: at the start of an iteration, when no call is open.
    pub(crate) fn tell_plan_news(&mut self, record: &Record) {
        let news = std::mem::take(&mut self.plan_news);
        if !news.is_empty() {
            self.say(Message::Engine { text: news.join("\n") }, record);
        }
    }
}
