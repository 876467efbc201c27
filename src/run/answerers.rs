//! Who answers the questions of a run, and the script of a scenario as its people: the row that answers a
//! question, what its conditions can read, and how long the answer takes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::questions::Questions;
use crate::base::seeded_random::{random_duration, random_u64};
use crate::log::event::head::PeopleChoice;
use crate::log::event::{
    Answer, AnsweredBy, Event, EventKind, QuestionAnswered, QuestionAsked, QuestionId, Subject,
};
use crate::scenario::cel::CelBindings;
use crate::scenario::people::ScriptedAnswer;
use crate::scenario::spec::InDoubt;

/// Who answers the questions of a run.
#[derive(Clone, Debug, Default)]
pub enum PeopleMode {
    /// The script of the scenario.
    #[default]
    Script,
    /// People, who send commands. A question stays open until its deadline.
    Wait,
    /// The same, and one of them writes lines to the standard input of this process.
    Ask,
    /// Nobody: `otherwise` of each question applies at once.
    Nobody,
    /// A recorded run: its answers to the same questions, in their order.
    Recorded(Arc<[Arc<QuestionAnswered>]>),
}

impl From<PeopleChoice> for PeopleMode {
    fn from(choice: PeopleChoice) -> Self {
        match choice {
            PeopleChoice::Script => Self::Script,
            PeopleChoice::Ask => Self::Ask,
            PeopleChoice::Wait => Self::Wait,
            PeopleChoice::Nobody => Self::Nobody,
        }
    }
}

impl PeopleMode {
    /// What the head of the log has of it; `None`: the answers are those of a recorded run.
    pub(crate) fn choice(&self) -> Option<PeopleChoice> {
        match self {
            Self::Script => Some(PeopleChoice::Script),
            Self::Ask => Some(PeopleChoice::Ask),
            Self::Wait => Some(PeopleChoice::Wait),
            Self::Nobody => Some(PeopleChoice::Nobody),
            Self::Recorded(_) => None,
        }
    }

    /// Whether questions stay open for people.
    pub fn are_people(&self) -> bool {
        matches!(self, Self::Wait | Self::Ask)
    }

    /// What happens to a call in doubt if the scenario does not say it: people are asked, if there are any.
    pub(crate) fn in_doubt(&self) -> InDoubt {
        if self.are_people() { InDoubt::Ask } else { InDoubt::Stop }
    }

    /// The answers of a recorded run, in the order of its questions: people may have answered equal
    /// questions in another order.
    pub fn recorded<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let answers = events.into_iter().filter_map(|event| match &event.kind {
            EventKind::QuestionAnswered(answered)
                if answered.by != AnsweredBy::Rule && !answered.is_approval_by_nobody() =>
            {
                Some(Arc::clone(answered))
            }
            _ => None,
        });
        let mut answers: Vec<_> = answers.collect();
        answers.sort_by_key(|answered: &Arc<QuestionAnswered>| answered.id);
        Self::Recorded(answers.into())
    }
}

impl Questions {
    /// The answer of the script, and how long it takes; `None`: no row fits. `warn` gets what is wrong
    /// with a row that cannot be used.
    pub(super) fn scripted_answer(
        &self,
        asked: &QuestionAsked,
        nth: u32,
        warn: impl Fn(String),
    ) -> Option<(Duration, Answer)> {
        let rows = self.scenario.people.script.iter().filter(|row| row.person == asked.who);
        let shown = self.conditions(asked, nth);
        for row in rows {
            match row.when.as_ref().map_or(Ok(true), |when| when.holds(&shown)) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) => {
                    warn(format!("script[{}].when: {error}", row.row));
                    continue;
                }
            }
            let answer = row.answer.to_answer();
            if let Err(why) = self.check(asked, &answer) {
                warn(format!("script[{}] does not answer {}: {why}", row.row, asked.id));
                continue;
            }
            let wait = match self.instant {
                true => Duration::ZERO,
                false => {
                    // The number of the question may differ in a fork.
                    let path = format!("question:{}:{nth}", asked.who);
                    let draw = random_u64(self.seed, &path, 1, "wait");
                    random_duration(row.latency, draw)
                }
            };
            return Some((wait, answer));
        }
        None
    }

    /// The answer that the script of the scenario would give to an open question.
    pub fn suggestion(&self, id: QuestionId) -> Option<Answer> {
        let (asked, nth) = self.open_question(id)?;
        self.scripted_answer(&asked, nth, |_| {}).map(|(_, answer)| answer)
    }

    /// The values that the conditions of rows of people can read.
    fn conditions(&self, asked: &QuestionAsked, nth: u32) -> CelBindings {
        let mut shown = CelBindings::default();
        let about = serde_json::to_value(&asked.subject).unwrap_or_default();
        shown.bind("about", &about["about"]);
        let (mut tool, mut args, mut question) = (Value::from(""), json!({}), Value::from(""));
        let (mut role, mut round) = (Value::from(""), Value::from(0));
        let mut agent = Value::from(asked.by.as_deref().unwrap_or_default());
        match &asked.subject {
            Subject::ToolCall { tool: name, args: values, .. }
            | Subject::InDoubt { tool: name, args: values } => {
                (tool, args) = (name.as_str().into(), (**values).clone());
            }
            Subject::Input { tool: name, text, .. } => {
                (tool, question) = (name.as_str().into(), Value::from(&**text));
            }
            Subject::Tools { tool: name, .. } => tool = name.as_str().into(),
            Subject::Agent { text, .. } | Subject::Permission { text, .. } => {
                question = Value::from(&**text);
            }
            Subject::Turn { agent: name, request, .. } => {
                (agent, question) = (name.as_str().into(), Value::from(&**request));
            }
            Subject::Seat { round: number, role: name } => {
                (role, round) = (name.as_str().into(), Value::from(*number));
            }
            Subject::Decision { .. } | Subject::Budget(_) => {}
        }
        for (name, value) in [
            ("tool", tool),
            ("args", args),
            ("agent", agent),
            ("question", question),
            ("choices", json!(asked.subject.choices())),
            ("role", role),
            ("round", round),
            ("nth", nth.into()),
            ("flags", json!(self.control.flags())),
        ] {
            shown.bind(name, &value);
        }
        let inputs = self.scenario.inputs.iter();
        let inputs: Map<String, Value> =
            inputs.map(|input| (input.name.to_string(), input.value.clone())).collect();
        shown.bind("inputs", &Value::Object(inputs));
        shown.bind_shared("facts", Arc::clone(&self.scenario.facts));
        shown
    }
}

impl ScriptedAnswer {
    fn to_answer(&self) -> Answer {
        match self {
            Self::Approve(args) => Answer::Approve { args: args.clone() },
            Self::Deny(text) => Answer::Deny { text: Arc::clone(text) },
            Self::Choose(choice, text) => {
                Answer::Choose { choice: Arc::clone(choice), text: Arc::clone(text) }
            }
            Self::Text(text) => Answer::Text { text: Arc::clone(text) },
            Self::HandOver(to, text) => Answer::HandOver { to: to.clone(), text: Arc::clone(text) },
            Self::Contribute(value) => Answer::Contribute { contribution: Arc::clone(value) },
        }
    }
}
