//! What a run asked, and what it got: its calls with their attempts, its questions with their answers, as
//! its events say.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::base::name::{PersonName, ToolName};
use crate::log::event::{
    Answer, AnsweredBy, AttemptFailed, Elapsed, Event, EventKind, FailureClass, Purpose,
    QuestionId, Reply, SpanId, World,
};

/// A call of a run.
pub struct RecordedCall {
    pub tool: ToolName,
    pub purpose: Purpose,
    /// How many earlier replies to the request were refused.
    pub repeat: u32,
    /// The arguments as they were sent; `null` for a model.
    pub args: Arc<Value>,
    /// How often the run has made the same call, this time included.
    pub nth: u32,
    pub attempts: Vec<RecordedAttempt>,
}

/// An attempt of a call.
pub struct RecordedAttempt {
    pub number: u32,
    pub took: Duration,
    /// `None`: it was in flight when the run stopped.
    pub ended: Option<Result<Arc<Reply>, Box<AttemptFailed>>>,
    began: Elapsed,
}

impl RecordedAttempt {
    /// Whether it waited for something until it was given up.
    pub fn hung(&self) -> bool {
        match &self.ended {
            None => true,
            Some(Err(failed)) => {
                matches!(failed.class, FailureClass::Timeout | FailureClass::Cancelled)
            }
            Some(Ok(_)) => false,
        }
    }
}

/// An answer to a question.
pub struct RecordedAnswer {
    pub who: PersonName,
    /// How often this person was asked, this time included.
    pub nth: u32,
    pub after: Duration,
    pub answer: Answer,
}

/// The calls of a run in the order of their starts.
pub fn calls(events: &[Arc<Event>], world: &World) -> Vec<RecordedCall> {
    let mut calls: Vec<RecordedCall> = Vec::new();
    let mut places: HashMap<SpanId, usize> = HashMap::new();
    let mut attempts: HashMap<SpanId, (usize, usize)> = HashMap::new();
    let mut equal: HashMap<(ToolName, String), u32> = HashMap::new();
    let mut asked: HashMap<QuestionId, SpanId> = HashMap::new();
    for event in events {
        match &event.kind {
            EventKind::CallStarted(started) => {
                let args = started.args.clone().unwrap_or_default();
                let key = crate::base::json_text::to_canonical_json(&args);
                let nth = equal.entry((started.tool.clone(), key)).or_default();
                *nth += 1;
                places.insert(event.span, calls.len());
                calls.push(RecordedCall {
                    tool: started.tool.clone(),
                    purpose: started.purpose.clone(),
                    repeat: started.repeat,
                    args,
                    nth: *nth,
                    attempts: Vec::new(),
                });
            }
            EventKind::QuestionAsked(question) => {
                asked.insert(question.id, event.span);
            }
            EventKind::QuestionAnswered(answered) => {
                let place = asked.get(&answered.id).and_then(|call| places.get(call));
                if let (Answer::Approve { args: Some(args) }, Some(place)) =
                    (&answered.answer, place)
                    && let Some(call) = calls.get_mut(*place)
                {
                    call.args = Arc::clone(args);
                }
            }
            EventKind::AttemptStarted { parent, attempt, .. } => {
                let Some(place) = places.get(parent) else { continue };
                let Some(call) = calls.get_mut(*place) else { continue };
                attempts.insert(event.span, (*place, call.attempts.len()));
                call.attempts.push(RecordedAttempt {
                    number: *attempt,
                    took: Duration::ZERO,
                    ended: None,
                    began: event.at,
                });
            }
            EventKind::AttemptAnswered(reply) => {
                end(&mut calls, attempts.get(&event.span), event.at, world, Ok(Arc::clone(reply)));
            }
            EventKind::AttemptFailed(failed) => {
                end(&mut calls, attempts.get(&event.span), event.at, world, Err(failed.clone()));
            }
            _ => {}
        }
    }
    calls
}

fn end(
    calls: &mut [RecordedCall],
    place: Option<&(usize, usize)>,
    at: Elapsed,
    world: &World,
    ended: Result<Arc<Reply>, Box<AttemptFailed>>,
) {
    if let Some((call, attempt)) = place
        && let Some(attempt) = calls.get_mut(*call).and_then(|it| it.attempts.get_mut(*attempt))
    {
        attempt.took = world.progress.active_between(attempt.began, at);
        attempt.ended = Some(ended);
    }
}

/// The answers of people and of the script in the order of the questions.
pub fn answers(events: &[Arc<Event>]) -> Vec<RecordedAnswer> {
    let mut asked = BTreeMap::new();
    let mut of_person: HashMap<PersonName, u32> = HashMap::new();
    let mut answers = BTreeMap::new();
    for event in events {
        match &event.kind {
            EventKind::QuestionAsked(question) if !question.by_rule => {
                let nth = of_person.entry(question.who.clone()).or_default();
                *nth += 1;
                asked.insert(question.id, (question.who.clone(), *nth, event.at));
            }
            EventKind::QuestionAnswered(answered)
                if !matches!(answered.by, AnsweredBy::Rule | AnsweredBy::Nobody) =>
            {
                let Some((who, nth, at)) = asked.get(&answered.id).cloned() else { continue };
                let after = Duration::from_micros(event.at.0.saturating_sub(at.0));
                let answer = answered.answer.clone();
                answers.insert(answered.id, RecordedAnswer { who, nth, after, answer });
            }
            _ => {}
        }
    }
    answers.into_values().collect()
}
