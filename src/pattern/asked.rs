//! Helpers that all patterns share when they call the model: the values that conditions can read,
//! the conversation, the final text. Turning a reply into data is in `reply`.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::event::kind::{ChatMessage, Purpose, Speaker};
use crate::event::{Boundary, EventKind, SpanId, StopReason};
use crate::llm::Form;
use crate::run::{Ask, RunContext};
use crate::scenario::Scenario;
use crate::scenario::condition::Shown;
use crate::scenario::name::InputName;

/// One of our own values as JSON. The conversion cannot fail for these types; `null` if it did.
pub(super) fn value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or(Value::Null)
}

/// The values that conditions can read during the whole run; `None` when the model is not a script
/// with conditions.
pub(super) fn base_of(cx: &RunContext, scenario: &Scenario) -> Option<Shown> {
    cx.reads_conditions().then(|| {
        let mut shown = Shown::default();
        shown.share("facts", Arc::clone(&scenario.facts));
        let inputs =
            scenario.inputs.iter().map(|input| (input.name.to_string(), input.value.clone()));
        shown.set("inputs", &Value::Object(inputs.collect()));
        shown.set("goal", &Value::from(scenario.goal.as_str()));
        shown
    })
}

/// The inputs with these names and their values, in this order.
pub(super) fn echo(scenario: &Scenario, names: &[InputName]) -> Map<String, Value> {
    let value = |name: &InputName| {
        let input = scenario.inputs.iter().find(|input| input.name == *name);
        input.map_or(Value::Null, |input| input.value.clone())
    };
    names.iter().map(|name| (name.to_string(), value(name))).collect()
}

/// A conversation of a system message and one JSON object as the user message.
pub(super) fn conversation(system: &str, payload: &Value) -> Arc<[ChatMessage]> {
    [
        ChatMessage::new(Speaker::System, system),
        ChatMessage::new(Speaker::User, payload.to_string()),
    ]
    .into()
}

/// The final call of a run: the text of its reply is the answer.
pub(super) async fn answer(
    cx: &RunContext,
    messages: Arc<[ChatMessage]>,
    shown: Option<Shown>,
) -> Result<(), StopReason> {
    let path = Boundary::Finalize.text();
    let ask = Ask::once(SpanId::RUN, Purpose::Finalize, path, messages, Form::Text, shown);
    let (call, reply) = cx.ask(ask).await.map_err(|failed| failed.reason)?;
    let text = reply.text.trim();
    if text.is_empty() {
        return Err(super::reply::empty(cx, call, &reply));
    }
    cx.publish(call, EventKind::AnswerComposed { text: text.into(), by: None });
    Ok(())
}
