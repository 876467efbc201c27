//! The tools: their arguments, from which their JSON schemas are made, and what each of them does; and the
//! forms that the user of a client fills in.

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequestParams,
    ElicitationSchema, ErrorData, JsonObject, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::play::ServerState;
use super::{McpArgs, arguments};
use crate::base::json_schema;
use crate::base::json_schema::FORMATS;
use crate::base::refused::Refused;
use crate::base::visible::visible_lines;
use crate::cli::people::{QuestionContext, question_lines};
use crate::log::event::safe_json;
use crate::log::event::{QuestionAsked, Subject};
use crate::scenario::spec::{InputKind, ScenarioInput};

/// Arguments of `list_scenarios`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ListScenariosArgs {}

/// Arguments of `run_scenario`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunScenarioArgs {
    /// Name of a scenario, as list_scenarios has it
    pub scenario: String,
    /// Values of inputs, by name; the others keep their defaults
    #[serde(default, deserialize_with = "given")]
    pub inputs: BTreeMap<String, InputValue>,
    /// Positions of flags, by name: true or false from the start, or "on@BOUNDARY" and "off@BOUNDARY", such
    /// as "on@round:2"
    #[serde(default, deserialize_with = "given")]
    pub flags: BTreeMap<String, FlagValue>,
    /// The task, in place of the scenario's goal; of a team or swarm the message to answer
    #[serde(default)]
    pub goal: Option<String>,
    /// Seed of the random numbers
    #[serde(default)]
    pub seed: Option<u64>,
    /// Skip the latency of scripted replies
    #[serde(default)]
    pub instant: bool,
    /// Call live models, with the operator's keys, for money; only if the operator allows it
    #[serde(default)]
    pub live: bool,
    /// The model of a live run, such as gpt-4.1-mini or anthropic/claude-haiku-4-5
    #[serde(default)]
    pub model: Option<String>,
    /// Who answers the questions of the run: script (default of a scripted run), wait (answer_question does;
    /// default of a live run if the operator allows answers), or nobody
    #[serde(default)]
    pub people: Option<PeopleWord>,
}

/// The values by name that are not `null`: models and clients write it for what they leave out.
fn given<'de, D: Deserializer<'de>, V: Deserialize<'de>>(
    from: D,
) -> Result<BTreeMap<String, V>, D::Error> {
    let values = BTreeMap::<String, Option<V>>::deserialize(from)?;
    Ok(values.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
}

/// The value of an input.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum InputValue {
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
}

impl InputValue {
    /// The value as `--set` takes it. A text stays one: a client sets the value of an input, and nothing else
    /// of it.
    pub fn assignment(&self, input: &ScenarioInput) -> String {
        let name = &input.name;
        let is_text =
            matches!(input.kind, InputKind::Text | InputKind::Choice(_) | InputKind::Date);
        match self {
            Self::Bool(value) => format!("inputs.{name}={value}"),
            Self::Number(value) => format!("inputs.{name}={value}"),
            Self::Text(value) if !is_text && !value.trim_start().starts_with(['{', '[']) => {
                format!("inputs.{name}={value}")
            }
            Self::Text(value) => format!("inputs.{name}={}", toml::Value::String(value.clone())),
        }
    }
}

/// The position of a flag.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FlagValue {
    Bool(bool),
    Text(String),
}

impl FlagValue {
    /// The position as `--flag` takes it.
    pub fn text(&self) -> &str {
        match self {
            Self::Bool(true) => "on",
            Self::Bool(false) => "off",
            Self::Text(text) => text,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PeopleWord {
    Script,
    Wait,
    Nobody,
}

/// Arguments of `list_runs`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ListRunsArgs {
    /// How many runs at most, the latest first; default 50
    pub limit: Option<usize>,
    /// Only runs with this status: waiting, running, interrupted, ended, done, stopped, cancelled, or a stop
    /// reason
    pub status: Option<String>,
}

/// Arguments of `read_run`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadRunArgs {
    /// Id of a run, the beginning of one, or last
    pub run: String,
    /// outcome (default): how it ended; text: what happened, in lines; markdown: the answer of research with
    /// its sources; events: the log; questions: the open ones
    #[serde(default)]
    pub what: RunPart,
    /// The first event (events, from 0) or line (text and markdown, from 0) of this page
    #[serde(default)]
    pub from: u64,
    /// How many events or lines at most; default 100 events, all lines; at most 500 events
    #[serde(default)]
    pub limit: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunPart {
    #[default]
    Outcome,
    Text,
    Markdown,
    Events,
    Questions,
}

/// Arguments of `answer_question`: one answer.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerQuestionArgs {
    /// Id of the run
    pub run: String,
    /// Id of the question, such as q1
    pub question: String,
    /// The digest of the question, to be sure which one is answered
    #[serde(default)]
    pub digest: Option<String>,
    /// An approval: true approves the call, false denies it
    #[serde(default)]
    pub approve: Option<bool>,
    /// An approval: true denies the call
    #[serde(default)]
    pub deny: Option<bool>,
    /// An approval: with these arguments in place of those of the call, or an MCP server's form, filled in
    #[serde(default)]
    pub args: Option<Map<String, Value>>,
    /// One of the choices
    #[serde(default)]
    pub choice: Option<String>,
    /// A text, for an agent or a turn
    #[serde(default)]
    pub text: Option<String>,
    /// With deny or choice: why; the model reads it
    #[serde(default)]
    pub reason: Option<String>,
    /// Any other answer: {"hand_over_to": "billing", "text": "…"}, {"contribution": {…}} or {"result": …}
    #[serde(default)]
    pub answer: Option<Map<String, Value>>,
}

impl AnswerQuestionArgs {
    /// The answer as a line of `run --people ask` has it.
    ///
    /// # Errors
    /// It says two things.
    pub fn fields(&self) -> Result<Map<String, Value>, Refused> {
        let mut fields = self.answer.clone().unwrap_or_default();
        let approve = match (self.approve, self.deny) {
            (Some(true), Some(true)) => return Err(Refused::new("it is approved and denied")),
            (Some(approve), _) => Some(approve),
            (None, deny) => deny.filter(|deny| *deny).map(|_| false),
        };
        if self.text.is_some() && self.reason.is_some() {
            return Err(Refused::new("give a text or a reason, not both"));
        }
        let given = [
            ("approve", approve.or(self.args.is_some().then_some(true)).map(Value::from)),
            ("args", self.args.clone().map(Value::from)),
            ("choice", self.choice.clone().map(Value::from)),
            ("text", self.text.clone().or(self.reason.clone()).map(Value::from)),
        ];
        fields.extend(given.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        Ok(fields)
    }
}

/// A form for a question; `None`: no form can hold the answer. A server that the run calls brings its own.
/// `refused`: why the last answer was not taken.
pub fn form(
    asked: &QuestionAsked,
    context: &QuestionContext,
    refused: Option<&str>,
) -> Option<ElicitRequestParams> {
    let mut lines = question_lines(asked, context);
    lines.extend(refused.map(|why| format!("The last answer was not taken: {why}")));
    let message = lines.join("\n");
    let requested_schema =
        ElicitationSchema::from_json_schema(form_schema(&asked.subject)?).ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// The JSON schema of the form.
fn form_schema(subject: &Subject) -> Option<Map<String, Value>> {
    let reason = json!({ "type": "string", "title": "Reason" });
    let choices = subject.choices();
    let (properties, required) = match subject {
        Subject::ToolCall { .. } => {
            let approve = json!({ "type": "boolean", "title": "Approve the call" });
            (json!({ "approve": approve, "reason": reason }), "approve")
        }
        Subject::Turn { hand_over_to, .. } => {
            let mut fields = json!({ "text": { "type": "string", "title": "Answer" } });
            if !hand_over_to.is_empty() {
                let to = json!({ "type": "string", "title": "Hand over to", "enum": hand_over_to });
                fields["hand_over_to"] = to;
            }
            (fields, "text")
        }
        Subject::Input { parameters, .. } => {
            let mut schema = parameters.as_object().cloned()?;
            let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
            // A form has no others.
            let is_other = |format: &Value| !FORMATS.iter().any(|known| format == known);
            for field in properties.into_iter().flat_map(Map::values_mut) {
                if let Some(field) = field.as_object_mut()
                    && field.get("format").is_some_and(is_other)
                {
                    field.remove("format");
                }
            }
            return Some(schema);
        }
        Subject::Seat { .. } => return None,
        _ if !choices.is_empty() => {
            let choice = json!({ "type": "string", "title": "Answer", "enum": choices });
            (json!({ "choice": choice, "reason": reason }), "choice")
        }
        _ => (json!({ "text": { "type": "string", "title": "Answer" } }), "text"),
    };
    let schema = json!({ "type": "object", "properties": properties, "required": [required] });
    schema.as_object().cloned()
}

/// The answer in a form of ours.
pub fn form_answer(content: &Map<String, Value>) -> AnswerQuestionArgs {
    let text = |name: &str| {
        let text = content.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        text.map(str::to_owned)
    };
    let approve = content.get("approve").and_then(Value::as_bool);
    let hand_over = text("hand_over_to").map(|to| json!({ "hand_over_to": to }));
    AnswerQuestionArgs {
        approve,
        answer: hand_over.as_ref().and_then(Value::as_object).cloned(),
        choice: text("choice"),
        text: text("text"),
        // An approval takes no text.
        reason: text("reason").filter(|_| approve != Some(true)),
        ..AnswerQuestionArgs::default()
    }
}

/// A tool with the schema of these arguments.
fn tool<A: JsonSchema>(name: &'static str, title: &str, about: &'static str) -> Tool {
    let mut schema = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
            settings.transforms.push(Box::new(RecursiveTransform(plain)));
        })
        .into_generator()
        .into_root_schema_for::<A>();
    for key in ["title", "description"] {
        schema.remove(key);
    }
    // Clients send it to models, and their endpoints refuse a schema without `properties`.
    let schema = json_schema::of_object(schema.as_value()).unwrap_or_default();
    let schema = schema.as_object().cloned().unwrap_or_default();
    Tool::new(name, about, Arc::new(schema)).with_title(title)
}

/// Some clients know only one type of a value, and no formats of numbers. A value is left out to be null.
fn plain(schema: &mut Schema) {
    schema.remove("format");
    schema.remove("default");
    if let Some(Value::String(about)) = schema.get("description") {
        let about = about.replace('\n', " ");
        schema.insert("description".to_owned(), about.into());
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if let Some(Value::Array(types)) = schema.get("type")
        && let Some(first) = types.first().cloned()
    {
        schema.insert("type".to_owned(), first);
    }
    if let Some(Value::Array(any)) = schema.get("anyOf")
        && let [Value::Object(one), Value::Object(null)] = &any[..]
        && null.get("type").is_some_and(|it| it == "null")
    {
        let one = one.clone();
        schema.remove("anyOf");
        for (key, value) in one {
            schema.insert(key, value);
        }
    }
}

/// The tools of this server.
pub fn offered(args: &McpArgs) -> Vec<Tool> {
    let reads = || ToolAnnotations::new().read_only(true).open_world(false);
    let mut outcome = JsonObject::new();
    outcome.insert("type".to_owned(), "object".into());
    outcome.insert(
        "properties".to_owned(),
        json!({
            "status": { "type": "string", "description": "ok or stopped" },
            "stop_reason": { "type": "string", "description": "success, or why it was stopped" },
            "usage": { "type": "object", "description": "calls, tokens, cost in US dollars" },
        }),
    );
    outcome.insert("required".to_owned(), json!(["status", "stop_reason", "usage"]));
    let mut tools = vec![
        tool::<ListScenariosArgs>(
            "list_scenarios",
            "List scenarios",
            "Lists the scenarios that can be run: their inputs, their flags, and what they do outside of \
             the program.",
        )
        .with_annotations(reads()),
        tool::<RunScenarioArgs>(
            "run_scenario",
            "Run a scenario",
            "Plays a scenario to its end and returns its outcome. A scripted run needs no model and costs \
             nothing. The run is kept; read_run has its events.",
        )
        .with_annotations(ToolAnnotations::new().read_only(false).open_world(args.allow_live))
        .with_raw_output_schema(Arc::new(outcome)),
        tool::<ListRunsArgs>(
            "list_runs",
            "List runs",
            match args.allow_runs {
                true => "Lists the kept runs, the latest first.",
                false => "Lists the runs that this server has started, the latest first.",
            },
        )
        .with_annotations(reads()),
        tool::<ReadRunArgs>(
            "read_run",
            "Read a run",
            "Reads a run: its outcome, its text, its events page by page, or its open questions.",
        )
        .with_annotations(reads()),
    ];
    if args.allow_answers {
        tools.push(
            tool::<AnswerQuestionArgs>(
                "answer_question",
                "Answer a question",
                "Answers an open question of a run that this server has started. read_run with what = \
                 \"questions\" lists them. Answer for a person only what the person told you.",
            )
            .with_annotations(ToolAnnotations::new().read_only(false)),
        );
    }
    tools
}

/// Calls a tool.
///
/// # Errors
/// There is no such tool, or its arguments do not match its schema. What a tool refuses is a result.
pub async fn call(
    state: &Arc<ServerState>,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let CallToolRequestParams { name, arguments: given, input_responses, request_state, .. } =
        request;
    let done = match &*name {
        "list_scenarios" => {
            let ListScenariosArgs {} = arguments(&name, given)?;
            state.blocking(ServerState::list_scenarios).await
        }
        "run_scenario" => {
            let args: RunScenarioArgs = arguments(&name, given)?;
            let session = match request_state {
                Some(id) => state.continue_session(&id, input_responses, context).await,
                None => state.start_session(args).await,
            };
            match session {
                Ok(session) => return Ok(state.attend(&session, context).await),
                Err(why) => Err(why),
            }
        }
        "list_runs" => {
            let args: ListRunsArgs = arguments(&name, given)?;
            state.blocking(move |state| state.list_runs(&args)).await
        }
        "read_run" => {
            let args: ReadRunArgs = arguments(&name, given)?;
            state.blocking(move |state| state.read_run(&args)).await
        }
        "answer_question" if state.args.allow_answers => {
            let args: AnswerQuestionArgs = arguments(&name, given)?;
            state.answer_question(args, context).await
        }
        _ => {
            let names: Vec<_> = offered(&state.args).into_iter().map(|tool| tool.name).collect();
            let why = format!("unknown tool; there are {}", names.join(", "));
            return Err(ErrorData::invalid_params(why, None));
        }
    };
    Ok(done.unwrap_or_else(|why| refused(&why)).into())
}

/// The result of a tool that did not do what it should.
pub fn refused(why: &Refused) -> CallToolResult {
    CallToolResult::error(vec![text_block(&format!("{why:#}"))])
}

/// A text for a model or a person. What it quotes is data.
pub fn text_block(text: &str) -> ContentBlock {
    ContentBlock::text(visible_lines(text).into_owned())
}

/// A value as data and as text.
pub fn structured(value: Value) -> CallToolResult {
    let text = safe_json::pretty(&value).unwrap_or_default();
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(value);
    result
}
