//! Research for tests: a library of results and pages that each test writes, a model that answers
//! as the test says, and runs that are read to their end.

#[allow(unused_imports, reason = "each test binary uses a part")]
pub use super::table::{engine, read, until};

use super::table;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use roundtable::base::seeded_random::Latency;
use roundtable::engine::{Launch, ModelChoice, RunHandle, Toolbox};
use roundtable::gateway::{Tool, ToolRequest};
use roundtable::log::event::{
    AttemptFailed, Event, FailureClass, ModelLabel, Purpose, Reply, Seq, World,
};
use roundtable::model::{ChatModel, ChatRequest, Failure, Listener};
use roundtable::scenario::Scenario;
use roundtable::scenario::patterns::PatternSpec;
use roundtable::scenario::patterns::research::{
    MisquotePolicy, READ, ResearchBudget, ResearchSpec, SEARCH, StepMode, StepSpec,
};
use serde_json::{Map, Value, json};

const HEAD: &str = r#"
title = "Research"
pattern = "resilience"
about = "For tests."
goal = "Find it out."
[inputs]
report_date = { value = "2026-03-07", kind = "date" }
region = { value = "US" }
[flags.b_runtime]
default = true
label = "b.example is switched on"
[budget]
max_seconds = 25
[resilience]
agents = 1
turns = 1
steps = ["search_sources", "read_source"]
pool = 1
[model]
ask_again = 0
[tools.llm]
retries = { max_attempts = 1 }
[tools.search_sources.fixture]
rows = [{ result = {} }]
[tools.read_source]
retries = { max_attempts = 2, backoff_ms = [100], jitter = false }
breaker = { enabled = false }
[tools.read_source.fixture]
rows = [{ result = {} }]
"#;

/// The question of [`spec`].
pub const QUESTION: &str = "What is the enterprise uptime SLA?";

/// Research of [`QUESTION`] on a.example, b.example (behind the flag `b_runtime`) and, by policy
/// alone, c.example; everything by the model.
pub fn spec() -> ResearchSpec {
    let list = |domains: &[&str]| domains.iter().map(|it| (*it).to_owned()).collect();
    let done = |prompt: &str| StepSpec { by: StepMode::Model, prompt: prompt.into() };
    ResearchSpec {
        budget: ResearchBudget {
            max_seconds: Duration::from_secs(25),
            max_steps: 8,
            max_urls: 6,
            max_read_pages: 3,
            max_notes: 6,
            max_answer_chars: 850,
        },
        question: QUESTION.to_owned(),
        echo: vec!["report_date".into(), "region".into()],
        allowed_domains_policy: list(&["a.example", "b.example", "c.example"]),
        allowed_domains_execution: list(&["a.example", "b.example"]),
        sources: vec![roundtable::scenario::patterns::research::SourceRule {
            domain: "b.example".to_owned(),
            trust: 1.0,
            flag: Some("b_runtime".into()),
        }],
        plan: done("You plan."),
        notes: done("You take notes."),
        answer: done("You write."),
        preface: String::new(),
        closing: String::new(),
        same_page: None,
        page_chars: 24_000,
        notes_per_page: 3,
        notes_by_rule: 3,
        misquotes: MisquotePolicy::Stop,
        min_independent_sources: 1,
        max_age_days: None,
        as_of: Some("2026-03-07".to_owned()),
        pace: Latency::default(),
    }
}

/// The same by rule: no model is asked.
pub fn by_rule() -> ResearchSpec {
    let rule = || StepSpec { by: StepMode::Rule, prompt: "".into() };
    ResearchSpec { plan: rule(), notes: rule(), answer: rule(), ..spec() }
}

/// What a tool answers to its arguments, in an attempt from 1.
type Answers = dyn Fn(&Map<String, Value>, u32) -> Result<Value, Box<AttemptFailed>> + Send + Sync;

/// The search results, the pages, and the requests.
pub struct Library {
    search: Box<Answers>,
    read: Box<Answers>,
    asked: Mutex<Vec<(String, Value)>>,
    /// How long a page takes.
    slow: Duration,
}

/// A result of a search.
pub fn result(url: &str, score: f64) -> Value {
    json!({ "url": url, "title": format!("Title of {url}"), "snippet": "…", "score": score })
}

/// What a search answers.
pub fn results(rows: impl IntoIterator<Item = Value>) -> Value {
    let rows: Vec<Value> = rows.into_iter().collect();
    json!({ "status": "ok", "data": { "results": rows } })
}

/// A page.
pub fn page(url: &str, published_at: &str, body: &str) -> Value {
    json!({ "status": "ok", "data": {
        "url": url, "title": format!("Page {url}"), "published_at": published_at, "body": body,
    } })
}

/// The page of an address: its own words, which [`quoting`] quotes.
pub fn own_page(args: &Map<String, Value>) -> Value {
    let url = args["url"].as_str().expect("an address");
    page(url, "2026-03-01", &format!("Here is {url} at your service. {}", words_of(url)))
}

/// The sentence on a page of an address.
pub fn words_of(url: &str) -> String {
    format!("The enterprise uptime SLA of {url} is 99.95% each month.")
}

impl Library {
    /// Results in this order, each with a page of its own words.
    pub fn of(urls: &[&str]) -> Self {
        let count = urls.len() as f64;
        let rows: Vec<Value> = urls
            .iter()
            .enumerate()
            .map(|(place, url)| result(url, 1.0 - place as f64 / (count + 1.0)))
            .collect();
        Self::new(move |_, _| Ok(results(rows.clone())), |args, _| Ok(own_page(args)))
    }

    pub fn new(
        search: impl Fn(&Map<String, Value>, u32) -> Result<Value, Box<AttemptFailed>>
        + Send
        + Sync
        + 'static,
        read: impl Fn(&Map<String, Value>, u32) -> Result<Value, Box<AttemptFailed>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let (search, read) = (Box::new(search), Box::new(read));
        Self { search, read, asked: Mutex::default(), slow: Duration::ZERO }
    }

    /// With pages as a test has them.
    pub fn reading(
        self,
        read: impl Fn(&Map<String, Value>, u32) -> Result<Value, Box<AttemptFailed>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self { read: Box::new(read), ..self }
    }

    /// With pages that take so long.
    pub fn slow(self, slow: Duration) -> Self {
        Self { slow, ..self }
    }

    /// What a tool was asked, in its order.
    pub fn asked(&self, tool: &str) -> Vec<Value> {
        let asked = self.asked.lock().expect("not poisoned");
        asked.iter().filter(|(name, _)| name == tool).map(|(_, args)| args.clone()).collect()
    }

    /// The addresses that were read, in their order.
    pub fn read_urls(&self) -> Vec<String> {
        let asked = self.asked(READ);
        asked.iter().map(|args| args["url"].as_str().expect("an address").to_owned()).collect()
    }
}

struct Desk(Arc<Library>, &'static str);

impl Tool for Desk {
    fn ask<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>> {
        let Self(library, name) = self;
        let args = Value::Object(request.args.clone());
        library.asked.lock().expect("not poisoned").push(((*name).to_owned(), args));
        async move {
            let read = *name == READ;
            if read && !library.slow.is_zero() {
                tokio::time::sleep(library.slow).await;
            }
            let answers = if read { &library.read } else { &library.search };
            answers(request.args, request.attempt).map(Arc::new)
        }
        .boxed()
    }
}

type Says = dyn Fn(&Purpose, &Value) -> Value + Send + Sync;

/// A model that answers as a test says; a text is sent unchanged, anything else as JSON.
pub struct Writer {
    says: Box<Says>,
    heard: Mutex<Vec<(Purpose, String, Value)>>,
}

impl Writer {
    pub fn new(says: impl Fn(&Purpose, &Value) -> Value + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { says: Box::new(says), heard: Mutex::default() })
    }

    /// Purpose, system message and payload of everything that was asked, in its order.
    pub fn heard(&self) -> Vec<(Purpose, String, Value)> {
        self.heard.lock().expect("not poisoned").clone()
    }

    /// The payloads of one kind of question.
    pub fn payloads(&self, of: impl Fn(&Purpose) -> bool) -> Vec<Value> {
        self.heard().into_iter().filter(|(it, ..)| of(it)).map(|(.., payload)| payload).collect()
    }
}

/// A good plan that searches this.
pub fn plan(query: &str) -> Value {
    let steps = roundtable::pattern::research::note_taking::plan_by_rule(query);
    json!({ "steps": steps })
}

/// One note that quotes the sentence of the page's own words, and an answer of all notes.
pub fn quoting(purpose: &Purpose, payload: &Value) -> Value {
    match purpose {
        Purpose::Plan => plan(QUESTION),
        Purpose::Notes { .. } => {
            let body = payload["body"].as_str().expect("a body");
            let at = body.find("The enterprise").expect("its own words");
            json!({ "notes": [{ "claim": "The SLA is 99.95%.", "quote": &body[at..] }] })
        }
        Purpose::Synthesize => citing_all(payload),
        other => panic!("nobody asks this: {other:?}"),
    }
}

/// An answer with a sentence for each note.
pub fn citing_all(payload: &Value) -> Value {
    let notes = payload["notes"].as_array().expect("notes").iter();
    let rows = notes.map(|note| json!({ "text": note["claim"], "citations": [note["id"]] }));
    json!({ "sentences": rows.collect::<Vec<_>>() })
}

impl ChatModel for Writer {
    fn label(&self) -> ModelLabel {
        ModelLabel::Live { name: "writer".into(), host: "nowhere".into() }
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, Box<Failure>>> {
        let messages: Vec<&str> = request.messages.iter().map(|it| &*it.content).collect();
        let [system, user] = messages[..] else { panic!("two messages: {messages:?}") };
        assert!(request.form.is_json(), "research asks for objects");
        let payload: Value = serde_json::from_str(user).expect("an object");
        let said = (self.says)(&request.purpose, &payload);
        let heard = (request.purpose.clone(), system.to_owned(), payload);
        self.heard.lock().expect("not poisoned").push(heard);
        async move {
            let text = match said {
                Value::String(text) => text,
                value => value.to_string(),
            };
            listener.piece(&text);
            Ok(Reply::from_agent_text(text.into()))
        }
        .boxed()
    }
}

/// A failure of a tool with a status.
pub fn status(status: u16) -> Box<AttemptFailed> {
    AttemptFailed::from_status(status, "as told")
}

/// A failure of a tool.
pub fn failure(class: FailureClass) -> Box<AttemptFailed> {
    AttemptFailed::new(class, "as told")
}

/// A scenario of this research.
pub fn scenario(spec: ResearchSpec) -> Arc<Scenario> {
    let read = table::read(HEAD, &[]);
    let mut scenario = Arc::try_unwrap(read).expect("nobody else has it");
    scenario.pattern = PatternSpec::Research(spec);
    // They are about the pattern of the file.
    scenario.warnings = Default::default();
    Arc::new(scenario)
}

/// What a run is started with.
pub fn launch(spec: ResearchSpec, library: &Arc<Library>, writer: &Arc<Writer>) -> Launch {
    let scenario = scenario(spec);
    let mut tools = Toolbox::offline(&scenario, false);
    tools.replace(SEARCH, Box::new(Desk(Arc::clone(library), SEARCH)));
    tools.replace(READ, Box::new(Desk(Arc::clone(library), READ)));
    let model = ModelChoice::Live(Arc::clone(writer).into(), Duration::from_secs(60));
    Launch { model, tools: Some(tools), ..Launch::scripted(scenario, false) }
}

/// The facts of a run that has ended.
pub async fn ended(run: &RunHandle) -> Vec<Arc<Event>> {
    run.wait_until_finished().await;
    assert_eq!(run.in_flight(), 0, "nothing is in flight once a run has ended");
    let mut facts = Vec::new();
    run.bus().reader(Seq(0)).take(&mut facts, usize::MAX);
    facts
}

/// The world of a run that has ended; every span of it is closed, every permit given back.
pub async fn world(run: &RunHandle) -> World {
    let facts = ended(run).await;
    let world = World::from_events(facts.iter().map(|event| &**event));
    assert_eq!(world.spans.open(), 0, "every span is closed");
    for tool in run.tool_snapshots() {
        assert_eq!(tool.fill.in_flight, 0, "{} has its permits back", tool.tool);
    }
    // Events that are read from a file are the same.
    let again: Vec<Event> = facts
        .iter()
        .map(|fact| {
            let line = fact.to_line().expect("a line");
            Event::from_line(&line).expect("a line of ours")
        })
        .collect();
    assert_eq!(outcome(&World::from_events(&again)), outcome(&world));
    world
}

/// Plays research to its end.
pub async fn play(
    spec: ResearchSpec,
    library: Library,
    writer: &Arc<Writer>,
) -> (World, Arc<Library>) {
    let library = Arc::new(library);
    let run = engine().start(launch(spec, &library, writer));
    (world(&run).await, library)
}

/// The outcome as JSON.
pub fn outcome(world: &World) -> Value {
    serde_json::to_value(world.outcome().expect("an outcome")).expect("JSON")
}

/// Why a run stopped, and where.
pub fn stop(world: &World) -> (String, String) {
    let closed = world.progress.closed.as_ref().expect("it has ended");
    (closed.reason.to_string(), closed.phase.clone().unwrap_or_default())
}
