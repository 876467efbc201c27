//! The pure rules of the teams source document: when a handoff is refused, when an agent is stuck,
//! what the arguments of a call mean.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::base::json_text;
use crate::base::name::AgentName;
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::log::facts::agents::{HandoffRefusal, LoopGuard};
use crate::scenario::patterns::agents::SwarmLimits;
use crate::scenario::spec::handoff_template::HandoffTemplate;
use crate::scenario::spec::tool::{ToolCall, ToolOffer};

pub use crate::scenario::spec::tool::TRANSFER;

/// This many calls in a row of the same tool with the same arguments stop an agent.
const STUCK_AFTER: u32 = 3;

/// The handoff limits of one run of a swarm (`SwarmConfig` in the teams source document).
#[derive(Clone, Debug)]
pub struct HandoffLimiter {
    limits: SwarmLimits,
    handoffs: u32,
    window: VecDeque<AgentName>,
}

impl HandoffLimiter {
    /// Limits without any handoff so far.
    pub fn new(limits: SwarmLimits) -> Self {
        Self { limits, handoffs: 0, window: VecDeque::new() }
    }

    /// Judges a handoff, in the order of the source document: the count goes up; above the maximum
    /// the handoff is refused; its target joins the window; a full window with too few different
    /// names refuses it. Refused handoffs count too.
    ///
    /// # Errors
    /// Why the handoff is refused.
    pub fn check_handoff(&mut self, to: &AgentName) -> Result<(), HandoffRefusal> {
        let SwarmLimits {
            max_handoffs,
            repetitive_handoff_window: window,
            repetitive_handoff_min_unique: unique,
        } = self.limits;
        self.handoffs = self.handoffs.saturating_add(1);
        if max_handoffs > 0 && self.handoffs > max_handoffs {
            return Err(HandoffRefusal::MaxHandoffs(max_handoffs));
        }
        if window == 0 || unique == 0 {
            return Ok(());
        }
        self.window.push_back(to.clone());
        if self.window.len() > window as usize {
            self.window.pop_front();
        }
        if self.window.len() == window as usize && self.distinct() < unique as usize {
            return Err(HandoffRefusal::Repetitive);
        }
        Ok(())
    }

    fn distinct(&self) -> usize {
        self.window.iter().collect::<BTreeSet<_>>().len()
    }

    /// The current counts.
    pub fn guard(&self) -> LoopGuard {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        LoopGuard {
            handoffs: self.handoffs,
            window: count(self.window.len()),
            distinct_agents: count(self.distinct()),
        }
    }

    /// The targets in the window, oldest first.
    #[cfg(test)]
    pub fn window(&self) -> impl Iterator<Item = &AgentName> {
        self.window.iter()
    }
}

/// Detects repeated calls in one run of an agent.
#[derive(Debug, Default)]
pub struct RepeatDetector {
    last: Option<(Arc<str>, String)>,
    times: u32,
}

impl RepeatDetector {
    /// Records the next call; true if it equals the two calls before it.
    pub fn is_stuck(&mut self, call: &ToolCall) -> bool {
        let said = match serde_json::from_str(&call.arguments) {
            Ok(arguments)
                if json_text::first_changed_integer(&call.arguments, &arguments).is_none() =>
            {
                json_text::to_canonical_json(&arguments)
            }
            _ => call.arguments.to_string(),
        };
        match &self.last {
            Some((name, arguments)) if *name == call.name && *arguments == said => self.times += 1,
            _ => {
                self.last = Some((Arc::clone(&call.name), said));
                self.times = 1;
            }
        }
        self.times >= STUCK_AFTER
    }
}

/// How models write a tool call as text, where their server does not read it as one: the beginning,
/// and the end where there is one. From the templates of Hermes and Qwen, GLM, Llama, Mistral,
/// DeepSeek, Kimi, Granite, Phi, LFM, MiniMax, Gemma and gpt-oss.
const WRITTEN_CALLS: [(&str, Option<&str>); 19] = [
    ("<tool_call>", Some("</tool_call>")),
    ("<tool_calls>", Some("</tool_calls>")),
    ("<minimax:tool_call>", Some("</minimax:tool_call>")),
    ("<function_call>", Some("</function_call>")),
    ("<function_calls>", Some("</function_calls>")),
    ("<start_function_call>", Some("<end_function_call>")),
    ("<function=", Some("</function>")),
    ("<invoke name=", Some("</invoke>")),
    ("<|tool_call|>", Some("<|/tool_call|>")),
    ("<|tool_call>", Some("<tool_call|>")),
    ("<|tool_call_start|>", Some("<|tool_call_end|>")),
    ("<|tool_call_begin|>", Some("<|tool_call_end|>")),
    ("<|tool_calls_section_begin|>", Some("<|tool_calls_section_end|>")),
    ("<｜tool▁calls▁begin｜>", Some("<｜tool▁calls▁end｜>")),
    ("<|channel|>commentary to=", Some("<|call|>")),
    ("<|python_tag|>", None),
    ("[TOOL_CALLS]", None),
    ("```tool_code", Some("```")),
    ("```tool_call", Some("```")),
];

/// Whether a reply is a tool call written as text, or ends in one: in the form of a chat template, as a
/// JSON object with the name of an offered tool and its arguments, or as `name(…)` of an offered
/// tool. Thinking before it does not count.
pub fn is_written_call(text: &str, offered: &[ToolOffer]) -> bool {
    if offered.is_empty() {
        return false;
    }
    let text = text.trim();
    // Some chat templates open the tag in the prompt, so the reply has only the closing tag.
    let text = match text.split_once("</think>") {
        Some((thought, said)) if text.starts_with("<think>") || thought.ends_with('\n') => {
            said.trim()
        }
        _ => text,
    };
    let fence = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let json = fence.and_then(|fenced| fenced.split_once('\n')).map_or(text, |(_, inner)| inner);
    has_written_form(text)
        || ends_in_written_form(text, offered)
        || serde_json::from_str(json.trim()).is_ok_and(|value| is_call_value(&value, offered))
        || is_function_call(json.trim(), offered)
}

/// Whether a text is one call after another in the forms of chat templates.
fn has_written_form(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let opened = WRITTEN_CALLS.iter().find(|(open, _)| rest.starts_with(open));
        let Some((open, close)) = opened else { return false };
        let body = rest.get(open.len()..).unwrap_or_default();
        match close.and_then(|close| body.split_once(close)) {
            Some((_, after)) => rest = after.trim_start(),
            // Servers end a reply at its last mark and leave that out.
            None => return body.ends_with(['}', ']', '>', ')']),
        }
    }
    !text.is_empty()
}

/// Whether the last lines of a text are a call of an offered tool in the form of a chat template.
fn ends_in_written_form(text: &str, offered: &[ToolOffer]) -> bool {
    let at = WRITTEN_CALLS
        .iter()
        .filter(|(open, close)| close.is_some() && open.starts_with('<'))
        .filter_map(|(open, _)| text.find(&format!("\n{open}")))
        .min();
    let call = at.and_then(|at| text.get(at..)).unwrap_or_default().trim();
    has_written_form(call) && offered.iter().any(|tool| call.contains(&*tool.name))
}

/// Whether a value is a call of an offered tool, or a list of such calls.
fn is_call_value(value: &Value, offered: &[ToolOffer]) -> bool {
    const ARGUMENTS: [&str; 4] = ["arguments", "parameters", "args", "input"];
    let fields = match value {
        Value::Array(calls) => {
            return !calls.is_empty() && calls.iter().all(|call| is_call_value(call, offered));
        }
        Value::Object(fields) => fields,
        _ => return false,
    };
    if let Some(inner) = ["function", "function_call", "tool_call", "tool_calls"]
        .iter()
        .find_map(|name| fields.get(*name).filter(|inner| !inner.is_string()))
    {
        return is_call_value(inner, offered);
    }
    let name = ["name", "function", "tool"].iter().find_map(|name| fields.get(*name)?.as_str());
    let is_of_call = |key: &String| {
        ARGUMENTS.contains(&&**key) || ["name", "function", "tool", "type", "id"].contains(&&**key)
    };
    name.is_some_and(|name| offered.iter().any(|tool| *tool.name == *name))
        && ARGUMENTS.iter().any(|key| fields.contains_key(*key))
        && fields.keys().all(is_of_call)
}

/// Whether a text is `name(…)` of an offered tool, in brackets or not.
fn is_function_call(text: &str, offered: &[ToolOffer]) -> bool {
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let Some((name, rest)) = inner.split_once('(') else { return false };
    let mut depth = 1_u32;
    let ends = rest.char_indices().find(|(_, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    offered.iter().any(|tool| *tool.name == *name)
        && ends.is_some_and(|(end, _)| end + 1 == rest.len())
}

/// The arguments of a call: an object. An empty text counts as an empty object.
///
/// # Errors
/// What is wrong with them, for the model.
pub fn arguments(call: &ToolCall) -> Result<Map<String, Value>, String> {
    if call.arguments.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(&call.arguments) {
        Ok(Value::Object(fields)) => match changed_integer(call, &fields) {
            None => Ok(fields),
            Some(number) => Err(format!(
                "{number} in the arguments of {} is a whole number beyond 64 bits and would be \
                 changed; give it as a text",
                call.name
            )),
        },
        Ok(_) => Err(format!("the arguments of {} are not a JSON object", call.name)),
        Err(error) => Err(format!("the arguments of {} are not JSON: {error}", call.name)),
    }
}

/// The first number in the arguments that would reach the tool changed, as the model wrote it.
fn changed_integer(call: &ToolCall, fields: &Map<String, Value>) -> Option<String> {
    let number = fields
        .values()
        .find_map(|value| json_text::first_changed_integer(&call.arguments, value))?;
    Some(visible_within(number, REASON_CHARS))
}

/// The request to a member.
///
/// # Errors
/// What is wrong with the arguments, for the model.
pub fn member_request(call: &ToolCall) -> Result<Arc<str>, String> {
    match arguments(call)?.get("request") {
        Some(Value::String(request)) => Ok(request.as_str().into()),
        Some(_) => Err(format!("`request` of {} is not a text", call.name)),
        None => Err(format!("`request` of {} is missing", call.name)),
    }
}

/// A question that a model wants to ask a person.
pub struct AskedPerson {
    /// The question.
    pub text: Arc<str>,
    /// The answers to choose from; empty: any text.
    pub choices: Arc<[Arc<str>]>,
}

/// The question to a person.
///
/// # Errors
/// What is wrong with the arguments, for the model.
pub fn person_request(call: &ToolCall) -> Result<AskedPerson, String> {
    let args = arguments(call)?;
    let text = match args.get("question") {
        Some(Value::String(text)) if !text.trim().is_empty() => text.as_str().into(),
        Some(Value::String(_)) => return Err(format!("`question` of {} is empty", call.name)),
        Some(_) => return Err(format!("`question` of {} is not a text", call.name)),
        None => return Err(format!("`question` of {} is missing", call.name)),
    };
    let choices = match args.get("choices") {
        None | Some(Value::Null) => [].into(),
        Some(Value::Array(choices)) if choices.len() <= MAX_CHOICES => {
            let choices = choices.iter().map(|choice| choice.as_str().map(Arc::from));
            choices
                .collect::<Option<_>>()
                .ok_or_else(|| format!("`choices` of {} has more than texts", call.name))?
        }
        Some(Value::Array(_)) => {
            return Err(format!("`choices` of {} has more than {MAX_CHOICES} items", call.name));
        }
        Some(_) => return Err(format!("`choices` of {} is not a list", call.name)),
    };
    Ok(AskedPerson { text, choices })
}

/// The most answers that a question can have to choose from: each has a digit as its key.
const MAX_CHOICES: usize = 9;

/// A handoff as a model requested it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The target agent.
    pub to: AgentName,
    /// The message for the target; `None` if it is empty.
    pub message: Option<Arc<str>>,
}

/// The handoff that a call to [`TRANSFER`] requests.
///
/// # Errors
/// What is wrong with the arguments, for the model.
pub fn parse_transfer(call: &ToolCall) -> Result<Transfer, String> {
    let fields = arguments(call)?;
    let Some(Value::String(to)) = fields.get("agent_name") else {
        return Err(format!("`agent_name` of {TRANSFER} is not a text"));
    };
    let message = match fields.get("message") {
        None | Some(Value::Null) => None,
        Some(Value::String(message)) => Some(message.as_str().into()),
        Some(_) => return Err(format!("`message` of {TRANSFER} is not a text")),
    };
    let message = message.filter(|message: &Arc<str>| !message.trim().is_empty());
    Ok(Transfer { to: AgentName::from(to.as_str()), message })
}

/// The input of a handoff's target: the filled template, else the message, else the previous
/// agent's input.
pub fn handoff_input(
    template: Option<&HandoffTemplate>,
    root: &str,
    parent: &Arc<str>,
    from: &AgentName,
    to: &AgentName,
    message: Option<&Arc<str>>,
) -> Arc<str> {
    match template {
        Some(template) => template.fill(root, parent, from, to, message.map(|it| &**it)).into(),
        None => Arc::clone(message.unwrap_or(parent)),
    }
}
