//! An agent that is a server and speaks AG-UI, as a model. One attempt is one turn: a request with the
//! whole conversation, answered by a stream of events, and another request for each time that the agent
//! waits for a person. What a server says is data: bounded, redacted, and made visible where it is shown.

mod events;
mod interrupts;
mod messages;
mod turn;

use std::sync::Arc;

use futures::future::BoxFuture;
use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Value, json};
use tokio::time::Instant;

use self::events::{AgentEvent, ErrorEvent, FinishedEvent, content_text};
use self::interrupts::{ResumeInput, Waiting};
use self::messages::{Threads, messages_of, random_id, tools_of};
use self::turn::{AgentTurn, RunEnd};
use crate::base::time::millis;
use crate::log::event::question::MAX_OPEN_QUESTIONS;
use crate::log::event::{AttemptFailed, FailureClass, ModelLabel, Reply};
use crate::model::{ChatModel, ChatRequest, Failure, Listener};
use crate::net::sse::{SseError, SseEvent, SseParser};
use crate::net::{Http, HttpResponse, NetError, Reach, Redactor, RequestTarget, read_prefix};
use crate::scenario::tools::agent::{AgUiSpec, OutsideAgent};
use crate::tool::{
    Environment, NotReady, ToolSettings, network_advice, quoted_text, sendable_headers,
    server_address,
};

/// Most bytes that are read of the body of an error response.
const REFUSAL_BYTES: usize = 16 << 10;
/// Most times that an agent may wait for people in one turn.
const MAX_ROUNDS: usize = 32;
/// An address as the scenario writes it.
const EXAMPLE: &str = "http://127.0.0.1:8000/agent";
const EVENTS: &str = "text/event-stream";
const TOO_LARGE: &str = "Ask for less, or raise max_bytes.";

/// A server that speaks AG-UI, for one caller.
pub(crate) struct AgUiModel {
    agent: Arc<OutsideAgent>,
    http: Http,
    target: RequestTarget,
    /// Names of the headers that the scenario sets.
    header_names: Vec<String>,
    redactor: Redactor,
    /// Maximum size of an event, and of the text of a turn, in bytes.
    cap: usize,
    threads: Threads,
}

impl AgUiModel {
    /// The agent at this address. It is not called.
    pub(crate) fn new(
        agent: &Arc<OutsideAgent>,
        spec: &AgUiSpec,
        env: Environment<'_>,
    ) -> Result<Self, Vec<NotReady>> {
        let mut wrong = Vec::new();
        let url = server_address(&format!("the agent {}", agent.name), &spec.url, EXAMPLE)
            .map_err(|why| wrong.push(why))
            .ok();
        let settings =
            ToolSettings::look_up(&spec.headers, env).map_err(|more| wrong.extend(more)).ok();
        let headers = settings.as_ref().map(sendable_headers).transpose();
        let headers = headers.map_err(|more| wrong.extend(more)).ok().flatten();
        let (Some(url), Some(settings), Some(headers), true) =
            (url, settings, headers, wrong.is_empty())
        else {
            return Err(wrong);
        };
        let reach = if spec.allow_private { Reach::Anywhere } else { Reach::Internet };
        Ok(Self {
            agent: Arc::clone(agent),
            http: Http::direct(reach),
            target: target(url, headers),
            header_names: settings.values.keys().cloned().collect(),
            redactor: settings.redactor,
            cap: usize::try_from(agent.max_bytes).unwrap_or(usize::MAX),
            threads: Threads::default(),
        })
    }

    async fn turn(
        &self,
        request: &ChatRequest,
        listener: &dyn Listener,
    ) -> Result<Reply, Box<Failure>> {
        let name = self.agent.name.as_str();
        let asked = Instant::now();
        let thread = self.threads.of_request(request, name);
        let history = messages_of(&request.messages, name);
        let tools = tools_of(&request.tools);
        let mut turn = AgentTurn::new(request, listener, &self.redactor, self.cap);
        let mut answers = ResumeInput::default();
        let mut first_token_ms = None;
        for round in 0.. {
            let messages: Vec<Value> = history.iter().cloned().chain(turn.messages()).collect();
            let mut input = json!({
                "threadId": thread, "runId": random_id("run"), "state": {}, "messages": messages,
                "tools": tools, "context": [], "forwardedProps": answers.forwarded,
            });
            if let Some(resume) = answers.resume {
                input["resume"] = resume;
            }
            let note_first = |turn: &AgentTurn<'_>| {
                if first_token_ms.is_none() && turn.has_begun() {
                    first_token_ms = Some(millis(asked.elapsed()));
                }
            };
            let ended = self.run(&input, &mut turn, note_first).await;
            let ended = ended.and_then(|ended| self.check_end(ended));
            let finished = ended.map_err(|failed| with_partial(*failed, &turn))?;
            let Some(waiting) = Waiting::after(finished, &mut turn) else {
                return Ok(Reply { first_token_ms, ..turn.reply(name, &thread) });
            };
            if waiting.len() > MAX_OPEN_QUESTIONS {
                let what = format!(
                    "waits for {} answers at once, and at most {MAX_OPEN_QUESTIONS} questions may be open",
                    waiting.len()
                );
                let failed = self.failure(FailureClass::Tool, &what, "Let it ask for less.");
                return Err(with_partial(*failed, &turn));
            }
            if round == MAX_ROUNDS {
                break;
            }
            answers = waiting.ask(name, &turn, listener.host(), &self.redactor).await;
            turn.begin_run();
        }
        let what = format!("has waited for people {MAX_ROUNDS} times in one turn");
        let failed = self.failure(FailureClass::Tool, &what, "Let it ask less often.");
        Err(with_partial(*failed, &turn))
    }

    /// One run of the agent: a request, and the events of its response.
    async fn run(
        &self,
        input: &Value,
        turn: &mut AgentTurn<'_>,
        mut note: impl FnMut(&AgentTurn<'_>),
    ) -> Result<RunEnd, Box<Failure>> {
        let sent = self.http.post(&self.target, input.to_string().into_bytes()).await;
        let mut response = sent.map_err(|error| self.unanswered(&error))?;
        if !(200..300).contains(&response.status()) {
            return Err(self.refused(response).await);
        }
        if !response.has_media_type(EVENTS) {
            return Err(self.not_events(response).await);
        }
        let mut parser = SseParser::new(self.cap);
        let mut events = 0;
        while let Some(bytes) = response.chunk().await.map_err(|error| self.cut(&error))? {
            let mut rest: &[u8] = &bytes;
            while let Some(event) = parser.next(&mut rest).map_err(|error| self.broken(&error))? {
                events += 1;
                if let Some(end) = self.add(event, events, turn)? {
                    response.release().await;
                    return Ok(end);
                }
                note(turn);
            }
        }
        // The event at the end may lack its empty line. Half of one is no event.
        let last = parser.finish().map_err(|error| self.broken(&error))?;
        if let Some(Ok(event)) = last.map(|event| AgentEvent::read(event.data))
            && let Some(end) = turn.add(event).map_err(|_| self.too_large())?
        {
            return Ok(end);
        }
        let what = match events {
            0 => "sent no event".to_owned(),
            _ => format!("cut its stream after {events} events, without RUN_FINISHED or RUN_ERROR"),
        };
        Err(self.failure(FailureClass::Reset, &what, "Look at the output of the server."))
    }

    /// Adds the event with this number. `Some`: the run has ended.
    fn add(
        &self,
        SseEvent { name, data }: SseEvent<'_>,
        number: usize,
        turn: &mut AgentTurn<'_>,
    ) -> Result<Option<RunEnd>, Box<Failure>> {
        if matches!(data.trim(), "" | "[DONE]") {
            return Ok(None);
        }
        let event = match AgentEvent::read(data) {
            Ok(event) => event,
            // Another event of the server, such as a ping.
            Err(_) if !matches!(name, "" | "message") => AgentEvent::unknown(name),
            Err(error) => {
                let said = quoted_text(data, &self.redactor);
                let what =
                    format!("sent an event (no. {number}) that is not AG-UI ({error}): {said}");
                let advice = "Is url that of an AG-UI agent?";
                return Err(self.failure(FailureClass::BadResponse, &what, advice));
            }
        };
        turn.add(event).map_err(|_| self.too_large())
    }

    /// The end of a run that did not fail.
    fn check_end(&self, end: RunEnd) -> Result<FinishedEvent, Box<Failure>> {
        let finished = match end {
            RunEnd::Finished(finished) => finished,
            RunEnd::Failed(error) => return Err(self.reported(&error)),
        };
        match &finished.outcome {
            Some(outcome) if outcome.kind == "cancelled" => {
                let what = "cancelled its run";
                Err(self.failure(FailureClass::Tool, what, "Look at the output of the server."))
            }
            _ => Ok(finished),
        }
    }

    fn failure(&self, class: FailureClass, what: &str, advice: &str) -> Box<Failure> {
        let text = format!("the agent {} {what}", self.agent.name);
        AttemptFailed::with_advice(class, &self.redactor.redact(&text), advice)
    }

    /// The agent says that its run failed.
    fn reported(&self, error: &ErrorEvent) -> Box<Failure> {
        let (code, said) = (content_text(&error.code), content_text(&error.message));
        let code = if code.is_empty() { code } else { format!(" ({code})") };
        let said = match said.trim() {
            "" => "no reason",
            said => said,
        };
        let what = format!("failed{code}: {said}");
        self.failure(FailureClass::Tool, &what, "Look at the output of the server.")
    }

    fn too_large(&self) -> Box<Failure> {
        let what = format!("sent more than {} bytes of text in one turn", self.cap);
        self.failure(FailureClass::TooLarge, &what, TOO_LARGE)
    }

    /// An event that cannot be read.
    fn broken(&self, error: &SseError) -> Box<Failure> {
        let what = format!("cannot be read: {error}");
        match error {
            SseError::TooLarge { .. } => self.failure(FailureClass::TooLarge, &what, TOO_LARGE),
            SseError::NotUtf8(_) => {
                self.failure(FailureClass::BadResponse, &what, "Fix the server.")
            }
        }
    }

    /// The connection broke in the middle of a stream.
    fn cut(&self, error: &NetError) -> Box<Failure> {
        match error {
            NetError::Broken { .. } | NetError::NotHttp { .. } => {
                let what = format!("cut its stream: {error}");
                self.failure(FailureClass::Reset, &what, "Look at the output of the server.")
            }
            _ => self.unanswered(error),
        }
    }

    /// The failure of a request without a complete response.
    fn unanswered(&self, error: &NetError) -> Box<Failure> {
        let class = FailureClass::from_word(error.word()).unwrap_or(FailureClass::Connect);
        self.failure(class, &format!("cannot be asked: {error}"), &network_advice(error, "agent"))
    }

    /// The failure of a response whose status is no success.
    async fn refused(&self, response: HttpResponse) -> Box<Failure> {
        let status = response.status();
        let (wait, should_retry) = (response.retry_after(), response.should_retry());
        let to = response.location().filter(|_| matches!(status, 300..=399)).map(str::to_owned);
        let (body, _) = read_prefix(response, REFUSAL_BYTES).await;
        let said = to.map_or_else(|| self.said(&body), |to| quoted_text(&to, &self.redactor));
        let auth = match self.header_names.as_slice() {
            [] => {
                format!("Set a header such as Authorization in [agents.{}.ag_ui].", self.agent.name)
            }
            names => format!("Check {} in [agents.{}.ag_ui].", names.join(", "), self.agent.name),
        };
        let advice = match status {
            300..=399 => "Redirects are not followed: set url to where it leads.",
            401 | 403 => &auth,
            404 | 405 => "Check the agent's url: is it the one of its AG-UI endpoint?",
            422 => "It does not accept the request: does it speak AG-UI?",
            429 => "Wait, or call it less often.",
            500..=599 => "Look at the output of the server.",
            _ => "Check the agent's url.",
        };
        let colon = if said.is_empty() { "" } else { ": " };
        let what = format!("returned HTTP {status}{colon}{said}");
        let mut failed = AttemptFailed::from_status(status, "");
        failed.text = self.failure(failed.class, &what, advice).text;
        failed.retry_after_ms = wait.map(millis);
        failed.should_retry = should_retry;
        failed
    }

    /// The failure of a response that is no stream of events.
    async fn not_events(&self, response: HttpResponse) -> Box<Failure> {
        let kind = response.header(CONTENT_TYPE.as_str()).unwrap_or("nothing");
        let kind = quoted_text(kind, &self.redactor);
        let (body, _) = read_prefix(response, REFUSAL_BYTES).await;
        let said = self.said(&body);
        let colon = if said.is_empty() { "" } else { ": " };
        let what = format!("answers with {kind}, not with {EVENTS}{colon}{said}");
        self.failure(FailureClass::BadResponse, &what, "Is url that of an AG-UI agent?")
    }

    fn said(&self, body: &[u8]) -> String {
        let text = String::from_utf8_lossy(body);
        match text.trim_start().starts_with('<') {
            true => "an HTML page".to_owned(),
            false => quoted_text(&text, &self.redactor),
        }
    }
}

fn with_partial(failed: Failure, turn: &AgentTurn<'_>) -> Box<Failure> {
    let (partial, usage) = (turn.partial(), turn.spent().usage);
    Box::new(AttemptFailed { partial, usage, ..failed })
}

fn target(url: Url, headers: HeaderMap) -> RequestTarget {
    let target = RequestTarget::new(url)
        .header(ACCEPT, HeaderValue::from_static(EVENTS))
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let named = headers.iter();
    named.fold(target, |target, (name, value)| target.header(name.clone(), value.clone()))
}

impl ChatModel for AgUiModel {
    fn label(&self) -> ModelLabel {
        ModelLabel::Live { name: self.agent.name.to_string(), host: self.agent.place() }
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, Box<Failure>>> {
        Box::pin(self.turn(request, listener))
    }
}
