//! People in a pattern: the turn of an agent, a seat, a question of an agent. Each is a call through
//! the gateway, like that of a model, so that the log and the screens show it as one. The attempt asks
//! the question; it has no timeout, and no attempt is retried.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::base::name::{PersonName, ToolName};
use crate::gateway::{Attempt, CallFailed, CallScope, Callee, GatewayCall};
use crate::log::bus::Bus;
use crate::log::event::{
    Answer, AttemptFailed, CallStarted, FailureClass, Prompt, Purpose, QuestionAnswered, Reply,
    SpanId, StopReason, Subject, Usage,
};
use crate::run::RunContext;
use crate::run::questions::{Ended, Question};
use crate::scenario::people::Otherwise;
use crate::scenario::spec::script::ReplyEnd;

/// A request to a person.
pub(crate) struct PersonRequest<'a> {
    pub who: &'a PersonName,
    /// The span that the call belongs to.
    pub parent: SpanId,
    pub purpose: Purpose,
    /// What the call shows as its arguments, if anything.
    pub args: Option<Arc<Value>>,
    /// The agent, role or task that asks.
    pub by: Option<Arc<str>>,
    /// What a model said with it.
    pub why: Option<Arc<str>>,
    pub subject: Subject,
}

/// An answer of a person, and the call that it was given to.
pub(crate) struct PersonReply {
    pub call: SpanId,
    pub answered: Arc<QuestionAnswered>,
}

/// Asks a person in a call of its own.
pub(crate) async fn call_person(
    cx: &RunContext,
    request: PersonRequest<'_>,
) -> Result<PersonReply, Box<CallFailed>> {
    let tool = ToolName::from(request.who.as_str());
    let Some(guarded) = cx.tools().get(&tool) else {
        // The engine registers every person, so this cannot happen.
        let (span, reason) = (request.parent, StopReason::InternalError);
        let (attempts, last, unavailable, denied) = (0, None, true, None);
        return Err(Box::new(CallFailed { span, attempts, reason, last, unavailable, denied }));
    };
    let started = Box::new(CallStarted {
        parent: request.parent,
        tool,
        purpose: request.purpose.clone(),
        prompt: Prompt::default(),
        args: request.args.clone(),
        model: None,
        repeat: 0,
    });
    let person = PersonCall { cx, request, ended: Mutex::default() };
    let call = GatewayCall { started, safe_key: None };
    let made = call.make(&person, &guarded.guard, &person).await?;
    let ended = person.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
    match ended {
        Some(Ok(ended)) => Ok(PersonReply { call: made.span, answered: ended.answered }),
        // A call that succeeded has an answer.
        _ => std::future::pending().await,
    }
}

/// A call of a person: the run that makes it, and the person at its other end.
struct PersonCall<'a> {
    cx: &'a RunContext,
    request: PersonRequest<'a>,
    ended: Mutex<Option<Result<Ended, StopReason>>>,
}

impl CallScope for PersonCall<'_> {
    fn bus(&self) -> &Bus {
        self.cx.bus()
    }

    fn remaining(&self) -> Duration {
        self.cx.control().remaining()
    }

    fn random_bits(&self, _: u32, _: &str) -> u64 {
        0
    }

    // A person is not waited for when a run finishes what it has begun.
    fn in_flight(&self, _: bool) {}

    fn reason(&self, _: &AttemptFailed) -> StopReason {
        match &*self.ended.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(Err(reason)) => reason.clone(),
            _ => StopReason::NoAnswer(self.request.who.clone()),
        }
    }

    // What the attempt does is the question and its answer, which are events.
    fn has_recorded_replies(&self) -> bool {
        false
    }

    fn timeout_clock(&self, _: Duration, _: SpanId) -> Option<BoxFuture<'_, ()>> {
        Some(std::future::pending().boxed())
    }
}

impl Callee for PersonCall<'_> {
    fn attempt<'a>(
        &'a self,
        attempt: Attempt<'a>,
    ) -> BoxFuture<'a, Result<Reply, Box<AttemptFailed>>> {
        let PersonRequest { who, by, why, subject, .. } = &self.request;
        let question = Question {
            span: attempt.span,
            inside: self.request.parent,
            by: by.clone(),
            why: why.clone(),
            subject: subject.clone(),
            asking: self.cx.asking(who, Otherwise::Stop),
            rule: None,
        };
        async move {
            let ended = self.cx.questions().ask(question).await;
            let reply = match &ended {
                Ok(ended) => Ok(reply_of(&ended.answered.answer)),
                Err(reason) => Err(AttemptFailed::new(FailureClass::Limit, reason.to_string())),
            };
            *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
            reply
        }
        .boxed()
    }
}

/// An answer as the log has the reply of the call. A person uses no tokens.
fn reply_of(answer: &Answer) -> Reply {
    let text: Arc<str> = match answer {
        Answer::Contribute { contribution } => contribution.to_string().into(),
        answer => answer_text(answer),
    };
    Reply { usage: Some(Usage::default()), end: ReplyEnd::Stop, ..Reply::from_agent_text(text) }
}

/// An answer as a model reads it: the text, or the choice with its reason.
pub(crate) fn answer_text(answer: &Answer) -> Arc<str> {
    match answer {
        Answer::Text { text } => Arc::clone(text),
        Answer::Choose { choice, text } if text.is_empty() => Arc::clone(choice),
        Answer::Choose { choice, text } => format!("{choice}: {text}").into(),
        Answer::HandOver { text, .. } => Arc::clone(text),
        answer => answer.phrase().into(),
    }
}
