//! The format of a scenario file, field by field. Everything that reads the file or describes it
//! stands on these tables; what one field says about another is checked in `build`.

use std::time::Duration;

use serde_json::{Value, json};

use super::model::{Concurrency, Latency, Repair, ScriptStep, WhenOff};
use super::shape::{
    Actor, At, Free, Ident, List, Named, Need, ObjectSchema, Prose, Reader, Shape, Text, Whole,
    did_you_mean, record, words,
};
use super::tree::{Node, Span, Tree};

record! {
    /// A scenario of roundtable: everything that a run needs, in one file.
    struct File => {
        /// One line for lists and headers.
        title: Prose = needed,
        /// The pattern that is run.
        pattern: Pattern = needed,
        /// What it shows, in a sentence.
        about: Text = optional,
        /// What the run is asked. `{{input}}` stands for the value of an input.
        goal: Prose = needed,
        /// Start of every random number of a run: the same seed gives the same run.
        seed: Whole<0, { u32::MAX }> = default(Whole(42)),
        /// What is asked for in the launch form, by name. `--set inputs.NAME=VALUE` sets one.
        inputs: Named<InputTable, Ident> = default(Named::default()),
        /// Switches, by name. `--flag NAME=on` sets one at the start; they can be turned live.
        flags: Named<FlagTable, Ident> = default(Named::default()),
        /// Limits of the run.
        budget: BudgetTable = table,
        /// What every role is shown, unchanged. `{{input}}` stands for the value of an input; a
        /// text that is nothing else takes the value with its type.
        facts: Free = default(Free::default()),
        /// What the pattern `collaboration` alone needs.
        collaboration: CollaborationTable = table,
        /// Who sits at the table, by name.
        roles: Named<RoleTable, Actor> = default(Named::default()),
        /// How the model is asked.
        model: ModelTable = table,
        /// What the gateway does with calls of a tool.
        tools: ToolsTable = table,
        /// What the model says offline. The first row whose conditions hold is used.
        script: List<At<ScriptTable>, 0, 10_000> = default(List(Vec::new())),
    }
}

/// The patterns there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pattern {
    Collaboration,
}

words! { Pattern, "a pattern":
    "collaboration" => Pattern::Collaboration, "Roles with stances speak in rounds until they agree.";
}

record! {
    /// An input: asked for in the launch form, used as `{{name}}` and `inputs.name`.
    struct InputTable => {
        /// Its value, unless another is given.
        value: Scalar = needed,
        /// What the form says beside it.
        label: Prose = optional,
        /// What may be given. Without it: a choice where there are choices, else what the value is.
        kind: At<KindWord> = optional,
        /// The values there are.
        choices: At<List<Prose, 1, 100>> = optional,
    }
}

/// What kind of input it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KindWord {
    Text,
    Date,
    Integer,
    Number,
    Bool,
    Choice,
}

words! { KindWord, "a kind of input":
    "text" => KindWord::Text, "Any text.";
    "date" => KindWord::Date, "A day as YYYY-MM-DD.";
    "integer" => KindWord::Integer, "A whole number.";
    "number" => KindWord::Number, "A number.";
    "bool" => KindWord::Bool, "true or false.";
    "choice" => KindWord::Choice, "One of the choices.";
}

/// A value that is no list and no table.
#[derive(Debug, Clone)]
pub(super) struct Scalar(pub Node);

impl Shape for Scalar {
    fn schema() -> Value {
        json!({ "type": ["string", "number", "boolean"] })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        if matches!(node.value, Tree::List(_) | Tree::Table(_)) {
            cx.wrong_type(node, "a text, a number, a date, true or false");
            return None;
        }
        Some(Self(node.clone()))
    }
}

record! {
    /// A switch of the scenario.
    struct FlagTable => {
        /// Its position at the start.
        default: bool = default(false),
        /// What it does, for people.
        label: Prose = optional,
    }
}

record! {
    /// Limits of the run.
    struct BudgetTable => {
        /// Rounds at most.
        max_rounds: At<Whole<1, 1_000>> = default(At::nowhere(Whole(3))),
        /// Contributions at most.
        max_messages: At<Whole<1, 100_000>> = default(At::nowhere(Whole(12))),
        /// Seconds of the whole run, pauses not counted.
        max_seconds: Whole<1, 86_400> = default(Whole(40)),
        /// Votes for go that decide.
        min_go_votes: At<Whole<1, 64>> = default(At::nowhere(Whole(2))),
    }
}

record! {
    /// Who speaks, and how.
    struct CollaborationTable => {
        /// The roles in the order in which they speak.
        sequence: At<List<Prose, 1, 64>> = needed,
        /// Whether the seats of a round are asked at once. The outcome is the same.
        concurrency: Concurrency = default(Concurrency::Parallel),
        /// Rounds in a row with a block after which a person is asked. 0: never; escalation is not
        /// available yet.
        escalate_after_blocks: Escalation = default(Escalation),
        /// System prompt of the launch brief at the end.
        finalize_prompt: Prose = needed,
        /// Inputs that `team_summary` of the outcome repeats.
        summary: List<Prose, 0, 64> = default(List(Vec::new())),
    }
}

/// `escalate_after_blocks`: only 0 so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Escalation;

impl Shape for Escalation {
    fn schema() -> Value {
        json!({ "type": "integer", "const": 0 })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        match node.value {
            Tree::Whole(Some(0)) => Some(Self),
            Tree::Whole(_) => {
                cx.error(node.at, "escalation to a person is not available yet", "0: never");
                None
            }
            _ => {
                cx.wrong_type(node, "the number 0");
                None
            }
        }
    }
    fn plain(&self) -> Value {
        0.into()
    }
}

words! { Concurrency, "a way to ask the seats of a round":
    "parallel" => Concurrency::Parallel, "All at once: a round takes as long as its slowest seat.";
    "sequential" => Concurrency::Sequential, "One after another.";
}

record! {
    /// A role at the table.
    struct RoleTable => {
        /// Its system prompt; how it must reply is added to it. `{{input}}` is filled in.
        prompt: Prose = needed,
        /// The flag it sits behind.
        flag: Prose = optional,
        /// What happens while that flag is off.
        when_off: At<WhenOff> = optional,
    }
}

words! { WhenOff, "what happens while the flag is off":
    "skip" => WhenOff::Skip, "The seat stays empty until the flag is on.";
    "deny" => WhenOff::Deny, "The run stops with agent_denied when its turn comes.";
}

record! {
    /// How the model is asked.
    struct ModelTable => {
        /// Whether replies are streamed.
        stream: bool = default(true),
        /// The model's name. Without it: OPENAI_MODEL, else gpt-4.1-mini.
        name: Prose = optional,
        /// The root of the API. Without it: OPENAI_BASE_URL, else that of OpenAI.
        base_url: Prose = optional,
        /// What may be mended in a reply before it is judged. Each repair is an event.
        repair: Repair = default(Repair::Nothing),
        /// Prices. Without them the cost of a run is not known.
        prices: PricesTable = optional,
    }
}

words! { Repair, "a way to mend a reply":
    "none" => Repair::Nothing, "Nothing: fenced JSON is a reply that is not JSON.";
    "fences" => Repair::Fences, "A Markdown code fence around the whole reply is taken off.";
}

record! {
    /// US dollars for a million tokens.
    struct PricesTable => {
        /// Tokens of the prompt.
        prompt_usd_per_million: Dollars = needed,
        /// Tokens of the reply.
        completion_usd_per_million: Dollars = needed,
    }
}

/// An amount of US dollars.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dollars(pub f64);

impl Shape for Dollars {
    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0, "maximum": 1_000_000 })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        number(node, cx, 0.0, 1e6).map(Self)
    }
}

record! {
    /// The tools that the pattern calls.
    struct ToolsTable => {
        /// Calls of the model.
        llm: LlmTable = table,
    }
}

record! {
    /// What the gateway does with calls of the model.
    struct LlmTable => {
        /// Seconds that one attempt may take, as a whole. Without it: OPENAI_TIMEOUT_SECONDS, else 60.
        timeout_s: Seconds = optional,
        /// When a call that failed is made again.
        retries: RetriesTable = table,
        /// Whether a call may be made again at all.
        idempotent: bool = default(true),
    }
}

record! {
    /// When a call that failed is made again.
    struct RetriesTable => {
        /// Attempts of one call, the first included.
        max_attempts: At<Whole<1, 20>> = default(At::nowhere(Whole(2))),
        /// Milliseconds before attempt 2, 3, …; the last repeats.
        backoff_ms: List<Whole<0, 600_000>, 0, 20> = default(List(vec![Whole(250), Whole(750)])),
        /// Whether half of each wait is drawn by the seed.
        jitter: bool = default(true),
    }
}

/// Some seconds, more than none, kept as whole milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seconds(pub Duration);

impl Shape for Seconds {
    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0.001, "maximum": 86_400 })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        number(node, cx, 0.001, 86_400.0).map(|seconds| Self(milliseconds(seconds)))
    }
}

/// Some seconds or none at all, kept as whole milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait(pub Duration);

impl Shape for Wait {
    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0, "maximum": 86_400 })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        number(node, cx, 0.0, 86_400.0).map(|seconds| Self(milliseconds(seconds)))
    }
}

fn milliseconds(seconds: f64) -> Duration {
    Duration::from_millis((seconds * 1_000.0).round() as u64)
}

fn number(node: &Node, cx: &mut Reader, min: f64, max: f64) -> Option<f64> {
    let number = match node.value {
        Tree::Whole(Some(number)) => number as f64,
        Tree::Number(number) => number,
        _ => {
            cx.wrong_type(node, &format!("a number from {min} to {max}"));
            return None;
        }
    };
    if (min..=max).contains(&number) {
        return Some(number);
    }
    cx.error(node.at, format!("{number} is out of range"), format!("{min} to {max}"));
    None
}

record! {
    /// One thing that the model says offline, and when. Exactly one of reply, raw and text.
    struct ScriptTable rule json!({
        "oneOf": [{ "required": ["reply"] }, { "required": ["raw"] }, { "required": ["text"] }]
    }) => {
        /// Only for this role.
        role: Prose = optional,
        /// Only for this step of the pattern. Without it: the contribution of a role.
        step: At<ScriptStep> = optional,
        /// Only in this round, from 1.
        round: At<Whole<1, 1_000>> = optional,
        /// Only for this attempt of a call, from 1.
        attempt: At<Whole<1, 20>> = optional,
        /// Only when this CEL condition holds for what the role is shown: facts, inputs, goal,
        /// role, round, attempt, flags, recent_rounds, open_conflicts. For step = "finalize":
        /// facts, inputs, goal, attempt, flags, final_decision, history.
        when: Prose = optional,
        /// How long the answer takes: `900ms`, or `900ms..1.8s` to draw by the seed.
        latency: Latency = default(Latency::default()),
        /// What goes wrong first.
        fault: At<FaultTable> = optional,
        /// The answer as a table. It is sent as JSON, with the role's name as `agent` where it has
        /// none.
        reply: At<Free> = optional,
        /// The answer, sent as it is.
        raw: Text = optional,
        /// The answer, sent as it is.
        text: Text = optional,
    }
}

words! { ScriptStep, "a step of the pattern":
    "finalize" => ScriptStep::Finalize, "The launch brief at the end.";
}

record! {
    /// What goes wrong in the first attempts of a call. Exactly one of status and kind.
    struct FaultTable rule json!({
        "oneOf": [{ "required": ["status"] }, { "required": ["kind"] }]
    }) => {
        /// The HTTP status that the endpoint answers with.
        status: Whole<400, 599> = optional,
        /// What its Retry-After says, in seconds.
        retry_after_s: At<Wait> = optional,
        /// Another way to fail.
        kind: FaultWord = optional,
        /// How many attempts of a call fail, from the first.
        times: Whole<1, 20> = default(Whole(1)),
    }
}

/// How a scripted attempt fails, other than with a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaultWord {
    Hang,
    Refused,
    Reset,
    BadResponse,
}

words! { FaultWord, "a way to fail":
    "hang" => FaultWord::Hang, "Nothing comes until the time-out.";
    "refused" => FaultWord::Refused, "The connection is refused.";
    "reset" => FaultWord::Reset, "The connection breaks half-way through the reply.";
    "bad_response" => FaultWord::BadResponse, "A body that is no chat completion.";
}

impl Shape for Latency {
    fn schema() -> Value {
        let one = r"[0-9]+(\.[0-9]+)?(ms|s|m)";
        json!({ "type": "string", "pattern": format!(r"^\s*{one}\s*(\.\.\s*{one}\s*)?$") })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        let Tree::Text(text) = &node.value else {
            cx.wrong_type(node, "a time such as \"900ms\" or \"900ms..1.8s\"");
            return None;
        };
        let (min, max) = text.split_once("..").unwrap_or((text, text));
        let (Some(min), Some(max)) = (time(min), time(max)) else {
            let help = "such as 900ms, 1.5s, or 900ms..1.8s, at most 60m";
            cx.error(node.at, format!("{text:?} is no time"), help);
            return None;
        };
        if min > max {
            cx.error(node.at, format!("{text:?} ends before it begins"), "the shorter time first");
            return None;
        }
        Some(Self { min, max })
    }
}

/// `900ms`, `1.8s`, `2m`: at most an hour.
fn time(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 1.0,
        "s" => 1_000.0,
        "m" => 60_000.0,
        _ => return None,
    };
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, rest) = digits.split_once('.').unwrap_or((digits, "0"));
    if !plain(whole) || !plain(rest) || digits.len() > 12 {
        return None;
    }
    let time = Duration::from_micros((digits.parse::<f64>().ok()? * unit * 1_000.0).round() as u64);
    (time <= Duration::from_secs(3_600)).then_some(time)
}

impl<T> At<T> {
    /// A value that is not in the file.
    fn nowhere(value: T) -> Self {
        Self { at: Span::new(0, 0..0), value }
    }
}

/// The JSON schema of a scenario file, for editors: descriptions, words, ranges, what must be there.
pub fn schema() -> Value {
    let mut schema = File::schema();
    if let Value::Object(fields) = &mut schema {
        let mut whole = serde_json::Map::new();
        whole.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
        whole.insert("title".into(), "roundtable scenario".into());
        whole.append(fields);
        *fields = whole;
    }
    schema
}
