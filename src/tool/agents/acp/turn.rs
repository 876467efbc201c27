//! One turn of a coding agent: what it says, does and asks until it ends.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use serde_json::Value;

use super::actions::Actions;
use super::connection::{AcpConnection, FromAgent, RequestFailed, TurnStep};
use super::{turn_end, usage_of};
use crate::base::visible::first_bytes;
use crate::log::event::{AgentStep, AttemptFailed, FailureClass, StepState, Usage};
use crate::model::Listener;
use crate::model::host::AttemptProgress;
use crate::net::json_rpc::RpcError;
use crate::net::redact::{StreamRedactor, redact_forms};
use crate::scenario::spec::script::ReplyEnd;
use crate::scenario::tools::agent::{AcpSpec, ActionKind, OutsideAgent};
use crate::tool::ToolSettings;
use crate::tool::link::LinkFailures;

/// Most bytes of the result of a step.
const PART_BYTES: usize = 8 << 10;

/// What a turn is played with.
pub(super) struct Turn<'a> {
    pub agent: &'a OutsideAgent,
    pub spec: &'a AcpSpec,
    pub folder: &'a Path,
    pub env: &'a ToolSettings,
    pub failures: &'a LinkFailures,
    pub listener: &'a dyn Listener,
    /// What the operator has allowed for the whole run.
    pub always: &'a Mutex<Vec<ActionKind>>,
}

/// A turn that has ended by itself.
pub(super) struct EndedTurn {
    /// What it said after its last step; all that it said if that is nothing.
    pub text: String,
    pub end: ReplyEnd,
    /// The agent's word for the end.
    pub finish: String,
    pub usage: Option<Usage>,
    /// What its session has cost so far, in US dollars.
    pub cost_usd: Option<f64>,
}

/// Why a turn has no end.
pub(super) enum TurnFailed {
    Request(RequestFailed),
    Other(Box<AttemptFailed>),
}

/// What is known of a turn so far.
#[derive(Default)]
struct TurnText {
    /// What it said before its last step.
    earlier: Vec<String>,
    /// What it has said since.
    text: String,
    /// All that it said, as it is shown live.
    live: String,
    shown: StreamRedactor,
    /// Its open steps: their titles by id.
    open: BTreeMap<String, Arc<str>>,
    cost_usd: Option<f64>,
}

/// A response to a request of the agent, by its id.
type Answered = (Value, Result<Value, RpcError>);

impl Turn<'_> {
    /// Sends the prompt, and follows the turn to its end. Dropping this cancels the turn.
    pub(super) async fn play(
        &self,
        connection: &AcpConnection,
        session: &str,
        prompt: &str,
    ) -> Result<EndedTurn, TurnFailed> {
        let mut turn = connection.begin_turn(session, prompt).await.map_err(TurnFailed::Other)?;
        let mut heard = TurnText::default();
        let actions = Actions::new(self);
        let mut answers: FuturesUnordered<BoxFuture<'_, Answered>> = FuturesUnordered::new();
        let ended = loop {
            let step = tokio::select! {
                biased;
                Some((id, result)) = answers.next(), if !answers.is_empty() => {
                    connection.reply(id, result);
                    continue;
                }
                () = actions.ended_commands() => continue,
                step = turn.next() => step,
            };
            match step {
                TurnStep::Said(FromAgent::Update(update)) => {
                    self.update(&update, &mut heard).map_err(TurnFailed::Other)?;
                }
                TurnStep::Said(FromAgent::Request { id, method, params }) => {
                    self.listener.host().alive();
                    let answer = actions.answer(method, params);
                    answers.push(Box::pin(async move { (id, answer.await) }));
                }
                TurnStep::Ended(ended) => break ended,
            }
        };
        // What the agent still waits for has no turn any more.
        drop(answers);
        actions.end();
        for said in turn.rest() {
            if let FromAgent::Update(update) = said {
                self.update(&update, &mut heard).map_err(TurnFailed::Other)?;
            }
        }
        let said = ended.map_err(TurnFailed::Request)?;
        let word = said.get("stopReason").and_then(Value::as_str).unwrap_or_default();
        let Some(end) = turn_end(word) else {
            let word = self.failures.quoted(word);
            let what = match &*word {
                "cancelled" => "cancelled its turn by itself".to_owned(),
                _ => format!("ended its turn with an unknown word: {word:?}"),
            };
            let failed = self.failures.failure(FailureClass::Tool, &what, "Try again.");
            return Err(TurnFailed::Other(failed));
        };
        let TurnText { earlier, text, cost_usd, .. } = heard;
        let text = if text.trim().is_empty() { earlier.join("\n\n") } else { text };
        Ok(EndedTurn {
            text: self.failures.redactor.redact_whole(text.trim()).into_owned(),
            end,
            finish: word.to_owned(),
            usage: said.get("usage").and_then(usage_of),
            cost_usd,
        })
    }

    /// Takes in an update of the session.
    fn update(&self, update: &Value, heard: &mut TurnText) -> Result<(), Box<AttemptFailed>> {
        let host = self.listener.host();
        host.alive();
        let kind = update.get("sessionUpdate").and_then(Value::as_str).unwrap_or_default();
        match kind {
            "agent_message_chunk" => {
                let piece = update.pointer("/content/text").and_then(Value::as_str);
                let Some(piece) = piece else { return Ok(()) };
                if heard.text.is_empty() && !heard.earlier.is_empty() {
                    heard.live.push_str("\n\n");
                }
                heard.live.push_str(piece);
                if heard.live.len() as u64 > self.agent.max_bytes {
                    let what = format!("said more than {} bytes in one turn", self.agent.max_bytes);
                    let advice = "Ask for less, or raise max_bytes.";
                    return Err(self.failures.failure(FailureClass::TooLarge, &what, advice));
                }
                heard.text.push_str(piece);
                if let Some(new) = heard.shown.next(&self.failures.redactor, &heard.live) {
                    self.listener.piece(&new);
                }
            }
            "tool_call" | "tool_call_update" => self.step(update, heard),
            "plan" => {
                let entries = update.get("entries").and_then(Value::as_array);
                let entries = entries.map(Vec::as_slice).unwrap_or_default();
                let status = |entry: &Value, word: &str| entry.get("status") == Some(&word.into());
                let done = entries.iter().filter(|it| status(it, "completed")).count();
                let current = entries.iter().find(|it| status(it, "in_progress"));
                let text = current.and_then(|it| it.get("content")?.as_str()).unwrap_or_default();
                host.progress(AttemptProgress {
                    text: self.failures.redactor.redact_known(text).into_owned(),
                    done: done as f64,
                    total: Some(entries.len() as f64),
                });
            }
            "usage_update" => {
                let cost = update.get("cost");
                let currency = cost.and_then(|it| it.get("currency")?.as_str());
                let amount = cost.and_then(|it| it.get("amount")?.as_f64());
                heard.cost_usd = amount.filter(|_| currency == Some("USD")).or(heard.cost_usd);
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes in a call of a tool of the agent.
    fn step(&self, update: &Value, heard: &mut TurnText) {
        let text_of = |key: &str| update.get(key).and_then(Value::as_str);
        let id = text_of("toolCallId").unwrap_or_default().to_owned();
        let status = text_of("status").unwrap_or_default();
        // What it said before is no part of its answer.
        if !heard.text.trim().is_empty() {
            heard.earlier.push(std::mem::take(&mut heard.text).trim().to_owned());
        }
        // Its tools are its own: their texts may have keys that this program does not know.
        let redacted =
            |text: &str| redact_forms(&self.failures.redactor.redact_known(text)).into_owned();
        let publish = |title: &Arc<str>, state, text: String| {
            let (id, title) = (id.as_str().into(), Arc::clone(title));
            let text = redacted(&text).into();
            self.listener.host().step(AgentStep { id, title, state, text, carried_out: false });
        };
        let title: Arc<str> = match (text_of("title"), heard.open.get(&id)) {
            (Some(title), _) => redacted(title).into(),
            (None, Some(title)) => Arc::clone(title),
            (None, None) => text_of("kind").unwrap_or("a tool").into(),
        };
        let state = match status {
            "completed" => StepState::Done,
            "failed" => StepState::Failed,
            _ => StepState::Started,
        };
        if heard.open.insert(id.clone(), Arc::clone(&title)).is_none() {
            let input = update.get("rawInput").filter(|it| !it.is_null());
            publish(&title, StepState::Started, input.map(Value::to_string).unwrap_or_default());
        }
        if state != StepState::Started {
            heard.open.remove(&id);
            publish(&title, state, first_bytes(&content_text(update), PART_BYTES).to_owned());
        }
    }
}

/// The content of a call as text: texts, and changes of files as lines with `-` and `+`.
pub(super) fn content_text(call: &Value) -> String {
    let content = call.get("content").and_then(Value::as_array);
    let mut parts: Vec<String> = Vec::new();
    for part in content.into_iter().flatten() {
        let text_of = |key: &str| part.get(key).and_then(Value::as_str);
        match text_of("type") {
            Some("content") => {
                let text = part.pointer("/content/text").and_then(Value::as_str);
                parts.extend(text.map(str::to_owned));
            }
            Some("diff") => {
                let marked = |mark: char, text: &str| {
                    text.lines().map(|line| format!("\n{mark} {line}")).collect::<String>()
                };
                let path = text_of("path").unwrap_or_default();
                let old = marked('-', text_of("oldText").unwrap_or_default());
                parts.push(format!(
                    "{path}{old}{}",
                    marked('+', text_of("newText").unwrap_or_default())
                ));
            }
            _ => {}
        }
    }
    if parts.is_empty()
        && let Some(output) = call.get("rawOutput").filter(|output| !output.is_null())
    {
        parts.push(output.as_str().map_or_else(|| output.to_string(), str::to_owned));
    }
    parts.join("\n")
}
