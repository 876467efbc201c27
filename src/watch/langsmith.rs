//! LangSmith's tracer, which LangChain and LangGraph have built in: it posts each node, model and tool when it
//! starts and patches it when it ends. Read here are `/runs/multipart`, `/runs/batch` and the runs one by one.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{Protocol, SpanMessage, TraceMessage, texts};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::log::facts::observed::{SpanAbout, SpanEnd, SpanRole};

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
        let mut about = about(run, known.role);
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
            return vec![message(SpanMessage::Opened { parent, about })];
        }
        self.0.remove(&id);
        let mut messages = Vec::new();
        let error = string(run, "error");
        let end = match error {
            "" => SpanEnd::Done,
            // LangGraph reports an interrupt as an error of the node that asks.
            _ if error.starts_with("GraphInterrupt") || error.starts_with("NodeInterrupt") => {
                let span = Arc::clone(&id);
                let asked = error.split("Traceback (most recent").next().unwrap_or(error);
                messages.push(message(SpanMessage::Note { span, text: texts::text(asked) }));
                SpanEnd::Done
            }
            // The graph goes to another node.
            _ if error.starts_with("ParentCommand") => SpanEnd::Done,
            _ => SpanEnd::Failed,
        };
        if end == SpanEnd::Failed {
            about.error = Some(error_text(error));
        }
        if let Some(asked) = interrupt(run) {
            messages.push(message(SpanMessage::Note { span: Arc::clone(&id), text: asked }));
        }
        // A note belongs to an open span.
        messages.push(message(SpanMessage::Closed { parent, end, about }));
        messages
    }
}

/// What an interrupted graph returns in the place of its answer.
fn interrupt(run: &Map<String, Value>) -> Option<Arc<str>> {
    let asked = run.get("outputs")?.get("__interrupt__")?.as_array()?;
    let values = asked.iter().filter_map(|it| texts::value_text(it.get("value").unwrap_or(it)));
    let values: Vec<Arc<str>> = values.collect();
    Some(texts::text(&format!("interrupt: {}", values.join("; "))))
}

fn string<'r>(run: &'r Map<String, Value>, name: &str) -> &'r str {
    run.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// `known`: the role that was reported before.
fn about(run: &Map<String, Value>, known: SpanRole) -> SpanAbout {
    let metadata = run.get("extra").and_then(|extra| extra.get("metadata"));
    let meta = |name: &str| metadata.and_then(|it| it.get(name)).and_then(Value::as_str);
    let name = string(run, "name");
    let role = match string(run, "run_type") {
        "llm" => SpanRole::Model,
        "tool" => SpanRole::Tool,
        "retriever" | "embedding" => SpanRole::Retriever,
        // What runs inside a node has its name in the metadata too.
        "chain" if meta("langgraph_node") == Some(name) && is_step(run) => SpanRole::Node,
        _ => known,
    };
    let model = meta("ls_model_name").filter(|_| role == SpanRole::Model);
    let [tokens_in, tokens_cached, tokens_out] = match role {
        SpanRole::Model => tokens(run, metadata),
        _ => [None; 3],
    };
    let outputs = run.get("outputs").filter(|it| !it.is_null());
    let inputs = run.get("inputs").filter(|it| !it.is_null());
    SpanAbout {
        name: texts::name(name),
        role,
        agent: meta("langgraph_node").filter(|_| role != SpanRole::Node).map(texts::name),
        model: model.map(texts::name),
        input: inputs.and_then(|it| plain(it, "input")),
        output: outputs.and_then(|it| plain(it, "output")),
        tokens_in,
        tokens_cached,
        tokens_out,
        from_us: time_us(run.get("start_time")),
        until_us: time_us(run.get("end_time")),
        ..SpanAbout::default()
    }
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
        Some(inner) => texts::value_text(inner),
        None => texts::value_text(value),
    }
}

/// The tokens of a call of a model, in the places where LangChain has them: of the prompt, of those the cached ones,
/// and of the reply.
fn tokens(run: &Map<String, Value>, metadata: Option<&Value>) -> [Option<u64>; 3] {
    let outputs = run.get("outputs");
    let message = outputs
        .and_then(|it| it.get("generations")?.get(0)?.get(0)?.get("message"))
        .map(|message| message.get("kwargs").unwrap_or(message));
    let places = [
        message.and_then(|it| it.get("usage_metadata")),
        outputs.and_then(|it| it.get("usage_metadata")),
        metadata.and_then(|it| it.get("usage_metadata")),
        outputs.and_then(|it| it.get("llm_output")?.get("token_usage")),
    ];
    let count = |of: &Value, names: [&str; 2]| {
        names.into_iter().find_map(|name| of.get(name).and_then(Value::as_u64))
    };
    let usage = places.into_iter().flatten().find(|usage| usage.is_object());
    let prompt = usage.and_then(|it| count(it, ["input_tokens", "prompt_tokens"]));
    let reply = usage.and_then(|it| count(it, ["output_tokens", "completion_tokens"]));
    let cached = usage.and_then(|it| it.get("input_token_details")?.get("cache_read")?.as_u64());
    [prompt, cached, reply]
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
