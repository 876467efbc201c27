//! Helpers that all patterns share when they call the model: the values that conditions can read,
//! the conversation, the final text. Turning a reply into data is in `reply`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::base::name::{FlagName, InputName};
use crate::log::event::{
    Boundary, ChatMessage, EventKind, MessageRole, Purpose, SpanId, StopReason,
};
use crate::model::ReplyForm;
use crate::run::{ModelRequest, RunContext};
use crate::scenario::Scenario;
use crate::scenario::cel::CelBindings;
use crate::scenario::spec::ModelSettings;

/// One of our own values as JSON. The conversion cannot fail for these types; `null` if it did.
pub(crate) fn to_json(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or(Value::Null)
}

/// The values that conditions can read during the whole run; `None` when the model is not a script
/// with conditions.
pub(super) fn run_conditions(cx: &RunContext, scenario: &Scenario) -> Option<CelBindings> {
    cx.reads_conditions().then(|| {
        let mut shown = CelBindings::default();
        shown.bind_shared("facts", Arc::clone(&scenario.facts));
        let inputs =
            scenario.inputs.iter().map(|input| (input.name.to_string(), input.value.clone()));
        shown.bind("inputs", &Value::Object(inputs.collect()));
        shown.bind("goal", &Value::from(&*scenario.goal));
        shown
    })
}

/// The inputs with these names and their values, in this order.
pub(super) fn echoed_inputs(scenario: &Scenario, names: &[InputName]) -> Map<String, Value> {
    let value = |name: &InputName| {
        let input = scenario.inputs.iter().find(|input| input.name == *name);
        input.map_or(Value::Null, |input| input.value.clone())
    };
    names.iter().map(|name| (name.to_string(), value(name))).collect()
}

/// A conversation of a system message and one JSON object as the user message: its keys, and the
/// positions of the flags, if the scenario has some.
pub(crate) fn conversation(
    system: &str,
    mut payload: Map<String, Value>,
    flags: &BTreeMap<FlagName, bool>,
) -> Arc<[ChatMessage]> {
    if !flags.is_empty() {
        payload.entry("flags").or_insert_with(|| to_json(flags));
    }
    [
        ChatMessage::new(MessageRole::System, system),
        ChatMessage::new(MessageRole::User, Value::Object(payload).to_string()),
    ]
    .into()
}

/// The fields of an object that a pattern writes.
pub(crate) fn fields(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// The final call of a run: the text of its reply is the answer.
pub(super) async fn request_final_answer(
    cx: &RunContext,
    settings: &ModelSettings,
    messages: Arc<[ChatMessage]>,
    shown: Option<CelBindings>,
) -> Result<(), StopReason> {
    let path = Boundary::Finalize.text();
    let ask = ModelRequest::single(
        SpanId::RUN,
        Purpose::Finalize,
        path,
        messages,
        ReplyForm::Text,
        shown,
    );
    let (call, reply) = cx.call_model(&ask).await.map_err(|failed| failed.reason)?;
    let text = super::reply::final_text(cx, settings, call, &reply.text);
    let text = text.trim();
    if text.is_empty() {
        return Err(super::reply::report_empty_reply(cx, call, &reply));
    }
    let (text, end) = (text.into(), reply.end);
    cx.publish(call, EventKind::AnswerComposed { text, by: None, end });
    Ok(())
}
