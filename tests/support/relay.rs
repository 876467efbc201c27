//! Shipped scenarios played live over real sockets: their own script says what a good model replies, and
//! a server of the tests hands it out, or does something else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::table::{engine, facts};
use super::wire::{CHUNKED_HEAD, Server, answer, chunk};
use futures::FutureExt;
use futures::future::BoxFuture;
use roundtable::engine::{Launch, ModelChoice};
use roundtable::log::event::{
    AttemptFailed, Event, MessageRole, ModelLabel, Purpose, Reply, World,
};
use roundtable::model::openai::OpenAi;
use roundtable::model::script::ScriptedModel;
use roundtable::model::{ChatModel, ChatRequest, Listener};
use roundtable::net::{Http, ProxyMode};
use roundtable::scenario;
use roundtable::scenario::Scenario;
use roundtable::scenario::spec::Tuning;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// What the server does with a request.
pub enum Does {
    /// Gives the good reply.
    Reply,
    /// Gives the good reply, and does not count its tokens.
    Uncounted,
    /// Gives the good reply as this text.
    Says(String),
    /// Breaks the connection, after so many thousandths of the answer.
    Drops(u64),
    /// Answers with this status and body.
    Refuses(u16, String),
}

/// A request that the server got.
pub struct Got<'a> {
    /// Its body.
    pub body: &'a Value,
    /// What a good model replies.
    pub good: &'a Reply,
    /// Whether the reply has to be JSON.
    pub json: bool,
    /// Which run it is of.
    pub seed: u64,
    /// How often the very same was asked before.
    pub nth: u64,
    /// Which call of the run it is.
    pub place: &'a str,
}

/// What good models reply, by the run and the conversation.
type Replies = Arc<Mutex<HashMap<(u64, String), Known>>>;

/// One of them.
#[derive(Clone)]
struct Known {
    good: Reply,
    json: bool,
    place: String,
    asked: u64,
}

/// A server that has the good replies, and the runs that ask it.
pub struct Relay {
    host: String,
    replies: Replies,
    http: Http,
    serving: JoinHandle<()>,
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Relay {
    /// A server that does with each request what this says.
    pub async fn start(does: impl Fn(&Got<'_>) -> Does + Send + Sync + 'static) -> Self {
        let server = Server::start().await;
        let host = server.host();
        let replies = Replies::default();
        let (known, does) = (Arc::clone(&replies), Arc::new(does));
        let serving = tokio::spawn(async move {
            loop {
                let mut connection = server.accept().await;
                let (known, does) = (Arc::clone(&known), Arc::clone(&does));
                tokio::spawn(async move {
                    let asking = connection.request().await;
                    let run = seed_of(&asking.body);
                    let key = (run, said_in(&asking.body));
                    let found = {
                        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                        known.get_mut(&key).map(|known| {
                            known.asked += 1;
                            known.clone()
                        })
                    };
                    let Some(Known { good, json, place, asked }) = found else {
                        let bytes = answer("404 Not Found", &["connection: close"], "unknown");
                        return connection.send(bytes).await;
                    };
                    let got = Got {
                        body: &asking.body,
                        good: &good,
                        json,
                        seed: run,
                        nth: asked - 1,
                        place: &place,
                    };
                    let streamed = asking.body["stream"] == true;
                    match does(&got) {
                        Does::Reply => connection.send(bytes_of(&good, streamed, true)).await,
                        Does::Uncounted => {
                            connection.send(bytes_of(&good, streamed, false)).await;
                        }
                        Does::Says(text) => {
                            let said = Reply { text: text.into(), ..good.clone() };
                            connection.send(bytes_of(&said, streamed, true)).await;
                        }
                        Does::Refuses(status, body) => {
                            let head = ["content-type: application/json", "connection: close"];
                            let bytes = answer(&format!("{status} Refused"), &head, &body);
                            connection.send(bytes).await;
                        }
                        Does::Drops(part) => {
                            let bytes = bytes_of(&good, streamed, true);
                            let part = bytes.len() as u64 * part / 1_000;
                            connection.send(&bytes[..part as usize]).await;
                            connection.reset();
                        }
                    }
                });
            }
        });
        Self { host, replies, http: Http::new(ProxyMode::Direct), serving }
    }

    /// Plays a run of a scenario to its end.
    pub async fn play(&self, scenario: &Arc<Scenario>, seed: u64) -> (World, Vec<Arc<Event>>) {
        let endpoint = crate::support::wire::endpoint_at(&format!("http://{}/v1", self.host));
        // The run is identified by a field of its own.
        let mut tuning = Tuning { ..scenario.model.tuning.clone() };
        tuning.extra.insert("seed".to_owned(), seed.into());
        let wire = OpenAi::new(self.http.clone(), endpoint, tuning, scenario.model.stream);
        let model: Arc<dyn ChatModel> = Arc::new(Relayed {
            scripted: ScriptedModel::new(Arc::clone(scenario), true),
            wire,
            replies: Arc::clone(&self.replies),
            seed,
        });
        let run = engine().start(Launch {
            model: ModelChoice::Live(model.into(), Duration::from_secs(20)),
            seed: Some(seed),
            ..Launch::scripted(Arc::clone(scenario), true)
        });
        let facts = facts(&run).await;
        let world = World::from_events(facts.iter().map(|fact| &**fact));
        (world, facts)
    }
}

/// A model that tells the server the good reply, and asks it.
struct Relayed {
    scripted: ScriptedModel,
    wire: OpenAi,
    replies: Replies,
    seed: u64,
}

impl ChatModel for Relayed {
    fn label(&self) -> ModelLabel {
        self.wire.label()
    }

    fn reads_conditions(&self) -> bool {
        self.scripted.reads_conditions()
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, Box<AttemptFailed>>> {
        async move {
            let good = match self.scripted.chat(request, &crate::support::wire::Deaf).await {
                Ok(reply) => reply,
                // Steps of research that a rule does offline.
                Err(failed) => match by_purpose(request) {
                    Some(text) => {
                        Reply { finish: Some("stop".into()), ..Reply::from_agent_text(text) }
                    }
                    None => return Err(failed),
                },
            };
            let said = plain(request.messages.iter().map(|it| &*it.content));
            {
                let mut known = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
                let entry = known.entry((self.seed, said));
                let place = format!("{:?} {} {}", request.purpose, request.message, request.again);
                let json = request.form.is_json();
                entry.or_insert(Known { good, json, place, asked: 0 });
            }
            self.wire.chat(request, listener).await
        }
        .boxed()
    }
}

/// What a good model does in the steps of research.
fn by_purpose(request: &ChatRequest) -> Option<Arc<str>> {
    let shown = request.messages.iter().find(|it| it.role == MessageRole::User)?;
    let payload: Value = serde_json::from_str(&shown.content).ok()?;
    let reply = match request.purpose {
        Purpose::Plan => {
            let question = payload["request"]["question"].as_str()?;
            let args = |nth| if nth == 0 { json!({ "query": question }) } else { json!({}) };
            let actions = payload["actions"].as_array()?.iter().enumerate();
            let steps: Vec<Value> = actions
                .map(|(nth, action)| json!({ "id": format!("r{nth}"), "action": action, "args": args(nth) }))
                .collect();
            json!({ "steps": steps })
        }
        Purpose::Notes { .. } => {
            let body = payload["body"].as_str()?;
            let quote = body.lines().map(str::trim).find(|line| line.chars().count() > 40)?;
            let quote: String = quote.chars().take(200).collect();
            json!({ "notes": [{ "claim": "The page says so.", "quote": quote.trim() }] })
        }
        Purpose::Synthesize => {
            let first = &payload["notes"][0]["id"];
            json!({ "sentences": [{ "text": "It is so.", "citations": [first] }] })
        }
        _ => return None,
    };
    Some(reply.to_string().into())
}

/// A number from 0 to 999 that hangs on the run, on which of its calls this is, and on how often it was
/// made: not on words, so that it stays when they change.
pub fn draw(got: &Got<'_>, what: &str) -> u64 {
    let nth = u32::try_from(got.nth).expect("few attempts");
    roundtable::base::seeded_random::random_u64(got.seed, got.place, nth, what) % 1_000
}

fn seed_of(body: &Value) -> u64 {
    body["seed"].as_u64().unwrap_or_default()
}

/// All that the messages of a body say.
fn said_in(body: &Value) -> String {
    let messages = body["messages"].as_array().into_iter().flatten();
    plain(messages.filter_map(|it| it["content"].as_str()))
}

/// The texts, equal whether or not messages in a row are joined on the way to the server.
fn plain<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let lines = texts.flat_map(str::lines);
    lines.filter(|line| !line.trim().is_empty() && *line != "(continued)").collect()
}

fn bytes_of(reply: &Reply, streamed: bool, counted: bool) -> Vec<u8> {
    let calls: Vec<Value> = reply
        .tool_calls
        .iter()
        .enumerate()
        .map(|(nth, call)| {
            json!({
                "index": nth,
                "id": call.id,
                "type": "function",
                "function": { "name": call.name, "arguments": call.arguments },
            })
        })
        .collect();
    let usage = match counted {
        true => json!({ "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120 }),
        false => Value::Null,
    };
    let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
    let mut message = json!({ "role": "assistant", "content": &*reply.text });
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let said = |object: &str, choices: Value, usage: &Value| {
        json!({
            "id": "c1",
            "object": object,
            "created": 1,
            "model": "relayed",
            "choices": choices,
            "usage": usage,
        })
    };
    if !streamed {
        let choices = json!([{ "index": 0, "message": message, "finish_reason": finish }]);
        let body = said("chat.completion", choices, &usage).to_string();
        let head = ["content-type: application/json", "connection: close"];
        return answer("200 OK", &head, &body);
    }
    let event = |choices: Value, usage: &Value| {
        format!("data: {}\n\n", said("chat.completion.chunk", choices, usage))
    };
    let choice = |delta: Value, finish: Option<&str>| json!([{ "index": 0, "delta": delta, "finish_reason": finish }]);
    let events = [
        event(choice(message, None), &Value::Null),
        event(choice(json!({}), Some(finish)), &Value::Null),
        event(json!([]), &usage),
        "data: [DONE]\n\n".to_owned(),
    ];
    let events: String = events.iter().map(|event| chunk(event)).collect();
    format!("{CHUNKED_HEAD}{events}{}", chunk("")).into_bytes()
}

/// A shipped scenario with these overrides.
pub fn shipped(name: &str, sets: &[&str]) -> Arc<Scenario> {
    let shipped = scenario::shipped().iter().find(|it| it.name == name).expect("it is shipped");
    let overrides: Vec<_> = sets
        .iter()
        .map(|set| {
            let (path, value) = set.split_once('=').expect("path=value");
            scenario::Override::new(path, value).expect("an override")
        })
        .collect();
    match scenario::load(shipped.text, shipped.origin(), &overrides) {
        Ok(scenario) => Arc::new(scenario),
        Err(problems) => panic!("{}", problems.pretty(false)),
    }
}
