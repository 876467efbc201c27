//! LangSmith's tracer, which LangChain and LangGraph have built in: it posts each node, model and tool when it
//! starts and patches it when it ends. Read here are `/runs/multipart`, `/runs/batch` and the runs one by one.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{Protocol, SpanMessage, TraceMessage, messages, texts};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::log::facts::observed::{SpanAbout, SpanEnd, SpanRole};
use crate::pattern::observed::ReportedCall;

/// The answer to `GET /info`: how much a request may have. Nothing but gzip is decoded.
pub(super) fn info(most_bytes: usize) -> Value {
    json!({
        "version": "0.13.0",
        "instance_flags": { "zstd_compression_enabled": false },
        "batch_ingest_config": {
            "use_multipart_endpoint": true,
            "size_limit": 100,
            "size_limit_bytes": most_bytes,
            "scale_up_nthreads_limit": 16,
            "scale_up_qsize_trigger": 1000,
            "scale_down_nempty_trigger": 4,
        },
    })
}

/// What a patch does not repeat of open runs.
#[derive(Default)]
pub(super) struct OpenRuns(HashMap<Arc<str>, OpenRun>);

#[derive(Clone, Default)]
struct OpenRun {
    trace: Arc<str>,
    parent: Arc<str>,
    role: SpanRole,
}

/// Most runs whose trace is remembered until they end.
const MAX_OPEN: usize = 200_000;

/// The messages of a multipart request, which has a part for each run and for each of its large fields:
/// `post.ID`, `post.ID.inputs`, `patch.ID.outputs`.
pub(super) async fn multipart(
    body: hyper::body::Bytes,
    content_type: &str,
    open: &mut OpenRuns,
) -> Result<Vec<TraceMessage>, Refused> {
    let boundary = multer::parse_boundary(content_type).or_refuse("no multipart request")?;
    let stream = futures::stream::once(async move { Ok::<_, std::io::Error>(body) });
    let mut parts = multer::Multipart::new(stream, boundary);
    let mut runs: Vec<((String, String), Map<String, Value>)> = Vec::new();
    let mut places: HashMap<(String, String), usize> = HashMap::new();
    while let Some(part) = parts.next_field().await.or_refuse("a part cannot be read")? {
        let Some(name) = part.name().map(str::to_owned) else { continue };
        let mut parts = name.splitn(3, '.');
        let (Some(verb), Some(id)) = (parts.next(), parts.next()) else { continue };
        if verb != "post" && verb != "patch" {
            continue;
        }
        let field = parts.next();
        let bytes = part.bytes().await.or_refuse("a part cannot be read")?;
        let Ok(value) = serde_json::from_slice::<Value>(&bytes) else { continue };
        let key = (verb.to_owned(), id.to_owned());
        let place = *places.entry(key.clone()).or_insert_with(|| {
            runs.push((key, Map::new()));
            runs.len() - 1
        });
        let Some((_, run)) = runs.get_mut(place) else { continue };
        match (field, value) {
            (None, Value::Object(fields)) => run.extend(fields),
            (Some(field), value) => drop(run.insert(field.to_owned(), value)),
            (None, _) => {}
        }
    }
    Ok(runs.iter().flat_map(|((verb, id), run)| open.messages(verb == "post", id, run)).collect())
}

/// The messages of a body of `/runs/batch`: lists of runs that begin (`post`) and of those that end (`patch`).
pub(super) fn batch(body: &[u8], open: &mut OpenRuns) -> Result<Vec<TraceMessage>, Refused> {
    let value: Value = serde_json::from_slice(body).or_refuse("no batch of runs")?;
    let runs = |verb: &str| value.get(verb).and_then(Value::as_array).into_iter().flatten();
    let mut messages = Vec::new();
    for (is_post, run) in
        runs("post").map(|it| (true, it)).chain(runs("patch").map(|it| (false, it)))
    {
        if let Value::Object(fields) = run {
            messages.extend(open.messages(is_post, string(fields, "id"), fields));
        }
    }
    Ok(messages)
}

/// The messages of `POST /runs` or `PATCH /runs/ID`.
pub(super) fn single(
    body: &[u8],
    id: Option<&str>,
    open: &mut OpenRuns,
) -> Result<Vec<TraceMessage>, Refused> {
    let fields: Map<String, Value> = serde_json::from_slice(body).or_refuse("no run")?;
    let own = string(&fields, "id").to_owned();
    Ok(open.messages(id.is_none(), id.unwrap_or(&own), &fields))
}

impl OpenRuns {
    fn messages(&mut self, is_post: bool, id: &str, run: &Map<String, Value>) -> Vec<TraceMessage> {
        let id = texts::name(id);
        if id.is_empty() {
            return Vec::new();
        }
        let known = self.0.get(&id).cloned().unwrap_or_default();
        let of = |name: &str, known: &Arc<str>| match string(run, name) {
            "" => Arc::clone(known),
            text => texts::name(text),
        };
        let mut trace = of("trace_id", &known.trace);
        let parent = of("parent_run_id", &known.parent);
        if trace.is_empty() {
            // An outermost run is its own trace.
            trace = Arc::clone(&id);
        }
        let (mut about, call) = about(run, known.role);
        about.id = Arc::clone(&id);
        let message = |what| TraceMessage {
            protocol: Protocol::LangSmith,
            framework: "langchain",
            trace: Arc::clone(&trace),
            what,
        };
        let has_ended = run.get("end_time").is_some_and(|time| !time.is_null());
        if !has_ended {
            if is_post && self.0.len() < MAX_OPEN {
                let (trace, parent) = (Arc::clone(&trace), Arc::clone(&parent));
                self.0.insert(id, OpenRun { trace, parent, role: about.role });
            }
            return vec![message(SpanMessage::Opened { parent, about, call })];
        }
        self.0.remove(&id);
        let mut notes = Vec::new();
        let error = string(run, "error");
        let is_interrupted = run.get("outputs").is_some_and(|it| it.get("__interrupt__").is_some());
        let end = match error {
            "" if is_interrupted => SpanEnd::Interrupted,
            "" => SpanEnd::Done,
            // LangGraph reports an interrupt as an error of the node that asks.
            _ if error.starts_with("GraphInterrupt") || error.starts_with("NodeInterrupt") => {
                notes.push(texts::text(&asked_in(error)));
                SpanEnd::Interrupted
            }
            // The graph goes to another node.
            _ if error.starts_with("ParentCommand") => SpanEnd::Done,
            _ => SpanEnd::Failed,
        };
        if end == SpanEnd::Failed {
            about.error = Some(error_text(error));
        }
        vec![message(SpanMessage::Closed { parent, end, about, call, notes })]
    }
}

/// The question of an interrupted node: `GraphInterrupt((Interrupt(value='Publish?', id='…'),))`. Without the id, which
/// differs in each run.
fn asked_in(error: &str) -> String {
    let value = error.split_once("value=").map(|(_, rest)| rest);
    let ends = [", id='", ", resumable=", ", ns=", ")\n"];
    let value = value.and_then(|rest| {
        let end = ends.iter().filter_map(|end| rest.find(end)).min()?;
        rest.get(..end)
    });
    let text = value.or_else(|| error.split("Traceback (most recent").next()).unwrap_or(error);
    format!("interrupt: {}", text.trim_matches(['\'', '"']))
}

fn string<'r>(run: &'r Map<String, Value>, name: &str) -> &'r str {
    run.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// `known`: the role that was reported before.
fn about(run: &Map<String, Value>, known: SpanRole) -> (SpanAbout, Option<Box<ReportedCall>>) {
    let extra = run.get("extra");
    let metadata = extra.and_then(|extra| extra.get("metadata"));
    let parameters = extra.and_then(|extra| extra.get("invocation_params"));
    let meta = |name: &str| metadata.and_then(|it| it.get(name)).and_then(Value::as_str);
    let name = string(run, "name");
    let (agent, node) = (meta("lc_agent_name"), meta("langgraph_node"));
    let role = match string(run, "run_type") {
        "llm" => SpanRole::Model,
        "tool" => SpanRole::Tool,
        "retriever" => SpanRole::Retriever,
        "embedding" => SpanRole::Embedding,
        // Internal steps of the graph (`__start__`).
        "chain" if name.starts_with("__") => SpanRole::Step,
        "chain" if agent == Some(name) => SpanRole::Agent,
        // The nodes `model` and `tools` are internal to the agent.
        "chain" if meta("ls_integration") == Some("langchain_create_agent") => SpanRole::Step,
        // What runs inside a node has its name in the metadata too.
        "chain" if node == Some(name) && is_step(run) => SpanRole::Node,
        _ => known,
    };
    let is_model = matches!(role, SpanRole::Model | SpanRole::Embedding);
    let outputs = run.get("outputs").filter(|it| !it.is_null());
    let inputs = run.get("inputs").filter(|it| !it.is_null());
    let [tokens_in, tokens_cached, tokens_written, tokens_out] = match is_model {
        true => tokens(outputs, metadata),
        false => [None; 4],
    };
    let of_parameters = |name: &str| parameters.and_then(|it| it.get(name)).and_then(Value::as_str);
    let answered = outputs.and_then(|it| it.get("llm_output")?.get("model_name")?.as_str());
    let asked = meta("ls_model_name")
        .or_else(|| of_parameters("model"))
        .or_else(|| of_parameters("model_name"))
        .filter(|_| is_model);
    let model = answered.filter(|_| is_model).or(asked);
    let call = (role == SpanRole::Model).then(|| call_of(inputs, outputs, parameters));
    let [given, replied] = messages::texts_of(call.as_ref());
    let cost = outputs.and_then(|it| it.get("usage_metadata")?.get("total_cost")?.as_f64());
    let cost = cost.or_else(|| run.get("total_cost")?.as_f64());
    let about = SpanAbout {
        name: texts::name(name),
        role,
        agent: agent
            .or(node.filter(|node| role != SpanRole::Node && !node.starts_with("__")))
            .map(texts::name),
        step: metadata
            .and_then(|it| it.get("langgraph_step")?.as_u64())
            .filter(|_| role == SpanRole::Node),
        model: model.map(texts::name),
        asked_model: asked.filter(|asked| model != Some(*asked)).map(texts::name),
        provider: meta("ls_provider").filter(|_| is_model).map(texts::name),
        thread: ["thread_id", "session_id", "conversation_id"]
            .iter()
            .find_map(|name| meta(name))
            .map(texts::name),
        input: given.or_else(|| inputs.and_then(|it| plain(it, "input"))),
        output: replied.or_else(|| outputs.and_then(|it| plain(it, "output"))),
        tokens_in,
        tokens_cached,
        tokens_written,
        tokens_out,
        cost_usd: cost.filter(|cost| is_model && cost.is_finite() && *cost >= 0.0),
        from_us: time_us(run.get("start_time")),
        until_us: time_us(run.get("end_time")),
        ..SpanAbout::default()
    };
    (about, call.filter(|call| !call.is_empty()).map(Box::new))
}

/// The call of a model, from the inputs and outputs of its run.
fn call_of(
    inputs: Option<&Value>,
    outputs: Option<&Value>,
    parameters: Option<&Value>,
) -> ReportedCall {
    let mut call = messages::call_of(inputs, outputs);
    if let (true, Some(tools)) = (call.tools.is_empty(), parameters.and_then(|it| it.get("tools")))
    {
        call.tools = messages::tools(tools);
    }
    let generation = outputs.and_then(|it| it.get("generations")?.get(0)?.get(0));
    let finish = generation.and_then(|it| it.get("generation_info")?.get("finish_reason"));
    let finish = finish.or_else(|| outputs?.get("choices")?.get(0)?.get("finish_reason"));
    ReportedCall { finish: finish.and_then(Value::as_str).map(texts::name), ..call }
}

/// Whether the run is a step of a graph.
fn is_step(run: &Map<String, Value>) -> bool {
    let tags = run.get("tags").and_then(Value::as_array);
    tags.is_some_and(|tags| {
        tags.iter().filter_map(Value::as_str).any(|tag| tag.starts_with("graph:step:"))
    })
}

/// An error of the tracer: an exception, and its traceback right after it. The line with its type and its message
/// comes first.
fn error_text(error: &str) -> Arc<str> {
    let Some(at) = error.find("Traceback (most recent call last):") else {
        return texts::text(error);
    };
    let (shown, traceback) = error.split_at(at);
    let is_type = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "._".contains(c))
    };
    let is_message = |line: &&str| line.split_once(": ").is_some_and(|(kind, _)| is_type(kind));
    let first = traceback.lines().rfind(is_message).unwrap_or(shown);
    texts::text(&format!("{first}\n{traceback}"))
}

/// Inputs and outputs are objects; one that has a single field of this name is that field.
fn plain(value: &Value, name: &str) -> Option<Arc<str>> {
    match value.get(name).filter(|_| value.as_object().is_some_and(|it| it.len() == 1)) {
        // The result of a tool may be a message.
        Some(inner) if inner.is_object() => match &messages::said(inner)[..] {
            [message] => Some(texts::text(&messages::text_of(message))),
            _ => texts::value_text(inner),
        },
        Some(inner) => texts::value_text(inner),
        None => texts::value_text(value),
    }
}

/// The tokens of a model's call: prompt, read from the cache, written to the cache, reply. Tracers report them in
/// different places.
fn tokens(outputs: Option<&Value>, metadata: Option<&Value>) -> [Option<u64>; 4] {
    let message = outputs
        .and_then(|it| it.get("generations")?.get(0)?.get(0)?.get("message"))
        .map(|message| message.get("kwargs").unwrap_or(message));
    let places = [
        message.and_then(|it| it.get("usage_metadata")),
        outputs.and_then(|it| it.get("usage_metadata")),
        metadata.and_then(|it| it.get("usage_metadata")),
        outputs.and_then(|it| it.get("llm_output")?.get("token_usage")),
        outputs.and_then(|it| it.get("usage")),
    ];
    let usage = places.into_iter().flatten().find(|usage| usage.is_object());
    let count = |paths: &[&str]| {
        let value = paths.iter().find_map(|path| usage?.pointer(path));
        let number = value.and_then(Value::as_f64).filter(|it| *it >= 0.0);
        number.map(|number| number as u64)
    };
    [
        count(&["/input_tokens", "/prompt_tokens"]),
        count(&[
            "/input_token_details/cache_read",
            "/prompt_tokens_details/cached_tokens",
            "/cache_read_input_tokens",
        ]),
        count(&["/input_token_details/cache_creation", "/cache_creation_input_tokens"]),
        count(&["/output_tokens", "/completion_tokens"]),
    ]
}

/// A time of the tracer, in microseconds: RFC 3339, without an offset in UTC, or Unix time in milliseconds.
fn time_us(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::Number(ms) => Some((ms.as_f64()? * 1e3) as u64),
        Value::String(text) => {
            let parse = |text: &str| OffsetDateTime::parse(text, &Rfc3339).ok();
            let time = parse(text).or_else(|| parse(&format!("{text}Z")))?;
            u64::try_from(time.unix_timestamp_nanos() / 1_000).ok()
        }
        _ => None,
    }
}
