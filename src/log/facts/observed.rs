//! The facts of an observed run: the spans that another program reports while it runs. Times are those of that
//! program; the events of the log have the time at which they arrived.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{EndedCall, Fact, FactAbout, Plan, facts};
use crate::base::worded;
use crate::log::event::failure::FailureClass;
use crate::log::event::id::{RunId, SpanId};
use crate::log::event::{Asks, SpanKind, SpanState, StopReason, TextPart, Usage};

facts! {
    /// A fact of an observed run.
    pub enum ObservedFact in Observed {
        /// A span began, or another one names it as its parent. It may be reported again with more.
        "span.opened" Opened {
            /// The span around it.
            parent: SpanId,
            /// Whether it became known at its end.
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            at_end: bool,
            /// What is known of it.
            #[serde(flatten)]
            about: Arc<SpanAbout>,
        },
        /// A span ended. What is reported here takes precedence.
        "span.closed" Closed {
            /// How it ended.
            end: SpanEnd,
            /// Whether another span inside or around it reports the same call, which is counted there.
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            repeats_call: bool,
            /// Whether spans inside or around it report the same tokens and cost, which are counted there.
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            repeats_tokens: bool,
            /// What is known of it now.
            #[serde(flatten)]
            about: Arc<SpanAbout>,
        },
        /// A text of the program: a line of its output, or a log record; belongs to the run or to a span.
        "span.text" Text {
            /// Where it was written.
            stream: TextStream,
            /// The text.
            text: Arc<str>,
        },
        /// Title, thread and neighbours of the run, as its trace tells them; belongs to the run. The latest one counts.
        "trace.named" Named {
            /// What is known of it.
            #[serde(flatten)]
            about: Arc<TraceAbout>,
        },
        /// The program has ended, or the test or cell that made the trace; belongs to the run.
        "program.ended" Ended {
            /// The exit code of the program; of a test or a cell 1 if it failed.
            exit_code: i32,
            /// The test or the cell; absent: the whole program.
            #[serde(flatten)]
            part: Option<Arc<PartEnded>>,
        },
        /// The response to an attempt of a guarded program, as it passed; belongs to the attempt.
        "reply.recorded" Recorded {
            /// The response.
            #[serde(flatten)]
            reply: Arc<RecordedReply>,
        },
        /// What happened in a span, such as an exception or an interrupt.
        "span.note" Note {
            /// What happened.
            text: Arc<str>,
        },
    }
}

impl Fact for ObservedFact {
    fn name(&self) -> &'static str {
        self.name()
    }

    fn opens(&self) -> Option<(SpanId, SpanKind)> {
        match self {
            Self::Opened { parent, about, .. } => Some((*parent, SpanKind::Observed(about.role))),
            _ => None,
        }
    }

    fn closes(&self) -> Option<SpanState> {
        match self {
            Self::Closed { end: SpanEnd::Done | SpanEnd::Interrupted, .. } => Some(SpanState::Done),
            Self::Closed { end: SpanEnd::Tripped, .. } => Some(SpanState::Denied),
            Self::Closed { end: SpanEnd::Failed, .. } => {
                Some(SpanState::Failed(Some(FailureClass::Tool)))
            }
            Self::Closed { end: SpanEnd::Lost, .. } => Some(SpanState::Failed(None)),
            _ => None,
        }
    }

    fn about(&self) -> FactAbout<'_> {
        match self {
            Self::Opened { about, .. } | Self::Closed { about, .. } => {
                FactAbout { agent: about.agent.as_deref(), ..FactAbout::default() }
            }
            _ => FactAbout::default(),
        }
    }

    fn said(&self) -> Option<TextPart<'_>> {
        Some(match self {
            Self::Opened { about, .. } => TextPart::Reply(about.input.as_deref()?),
            Self::Closed { about, .. } => match (&about.error, &about.output) {
                (Some(error), output) => TextPart::Error(error, output.as_deref()),
                (None, Some(output)) => TextPart::Reply(output),
                (None, None) => return None,
            },
            Self::Text { text, .. } | Self::Note { text } => TextPart::Reply(text),
            Self::Ended { part, .. } => TextPart::Error(part.as_ref()?.error.as_deref()?, None),
            Self::Named { .. } | Self::Recorded { .. } => return None,
        })
    }

    fn shows_reply(&self) -> bool {
        matches!(self, Self::Closed { .. })
    }

    fn is_notable(&self) -> bool {
        !matches!(self, Self::Recorded { .. })
    }

    fn error(&self) -> Option<&str> {
        match self {
            Self::Text { stream: TextStream::Stderr, text } => {
                text.lines().rev().map(str::trim).find(|line| !line.is_empty())
            }
            Self::Ended { part, .. } => part.as_ref()?.error.as_deref()?.lines().next(),
            Self::Closed { end: SpanEnd::Failed, about, .. } => {
                about.error.as_deref()?.lines().next()
            }
            _ => None,
        }
    }

    fn ended_call(&self) -> Option<EndedCall> {
        let Self::Closed { end, repeats_call, repeats_tokens, about } = self else { return None };
        let asks = match about.role {
            _ if *repeats_call => None,
            SpanRole::Model | SpanRole::Embedding => Some(Asks::Model),
            SpanRole::Tool | SpanRole::Retriever => Some(Asks::Tool),
            SpanRole::Agent | SpanRole::Node => Some(Asks::Agent),
            SpanRole::Step | SpanRole::Handoff | SpanRole::Guardrail => None,
        };
        let cost_usd = about.cost_usd.filter(|_| !repeats_tokens);
        let usage = about.usage().filter(|_| !repeats_tokens);
        let failed = match end {
            SpanEnd::Done | SpanEnd::Interrupted | SpanEnd::Tripped => None,
            SpanEnd::Failed => Some(StopReason::SpanFailed),
            SpanEnd::Lost => Some(StopReason::Cancelled),
        };
        let counts = asks.is_some() || usage.is_some() || cost_usd.is_some();
        counts.then_some(EndedCall { asks, failed, usage, cost_usd })
    }
}

/// Longest text of a span, in bytes.
pub(crate) const MAX_TEXT: usize = 32 << 10;

/// Whether a text was longer than [`MAX_TEXT`], so that its end is missing.
pub(crate) fn is_cut(text: &str) -> bool {
    text.len() >= MAX_TEXT - 6 && text.ends_with('…')
}

/// How a warning begins that says that spans of the run, or their ends, may be missing.
pub(crate) const SPANS_MISSING: &str = "some spans are missing: ";

/// The same of lines of output, log records and notes.
pub(crate) const TEXTS_MISSING: &str = "some texts are missing: ";

/// The title, the thread and the neighbours of a run, as its trace tells them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TraceAbout {
    /// The test or the cell of the program that makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Arc<str>>,
    /// The input of its outermost span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Arc<str>>,
    /// The thread of several runs that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<Arc<str>>,
    /// The run before it in this thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<RunId>,
    /// The run after it in this thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<RunId>,
}

/// A response to a guarded program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RecordedReply {
    /// SHA-256 of the variable, the path and the body of the request, as it was sent.
    pub request: Arc<str>,
    /// The HTTP status.
    pub status: u16,
    /// Its `content-type`.
    pub content_type: Arc<str>,
    /// Length of the body without its compression, in bytes.
    pub bytes: u64,
    /// The body without its compression, compressed as zlib does, in Base64.
    pub body: Arc<str>,
    /// Whether a key in it was replaced by `***`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// Whether its end is missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// How a test or a cell has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PartEnded {
    /// The test or the cell.
    pub part: Arc<str>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
}

/// What is known of a span. A text is at most 32 KiB long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct SpanAbout {
    /// Its id in that program; empty: not reported.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub id: Arc<str>,
    /// Its name; empty: only a child has named it yet.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: Arc<str>,
    /// What it is.
    pub role: SpanRole,
    /// The agent that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Arc<str>>,
    /// The agent that takes over, of a handoff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Arc<str>>,
    /// The model that replied; if that is not known, the one that was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// The model that was requested, if another one replied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_model: Option<Arc<str>>,
    /// The provider of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Arc<str>>,
    /// The conversation of several runs that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<Arc<str>>,
    /// Of a node: the step of its graph. Nodes of one step run at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// What it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Arc<str>>,
    /// Its result, or its reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Arc<str>>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    /// Tokens of the prompt, including those of the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_in: Option<u64>,
    /// Those of them that were read from the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_cached: Option<u64>,
    /// Those of them that were written to the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_written: Option<u64>,
    /// Tokens of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_out: Option<u64>,
    /// Its cost in US dollars: reported, or estimated from the tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// When it began, as Unix time in microseconds of that program's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_us: Option<u64>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_us: Option<u64>,
    /// Whether it is a request that went through the proxy: its call has the attempts and counts the tokens.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub guarded: bool,
}

impl SpanAbout {
    /// Its tokens; `None`: those of the prompt are not known.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let usage = Usage::new(self.tokens_in?, self.tokens_out.unwrap_or(0));
        let cached_tokens = self.tokens_cached.unwrap_or(0);
        let cache_write_tokens = self.tokens_written.unwrap_or(0);
        Some(Usage { cached_tokens, cache_write_tokens, ..usage })
    }

    /// Makes the tokens of the prompt include those of the cache. Some providers report them separately, which shows
    /// where the cache has more tokens than the prompt.
    pub(crate) fn include_cache(&mut self) {
        let (cached, written) = (self.tokens_cached.unwrap_or(0), self.tokens_written.unwrap_or(0));
        let of_cache = cached.saturating_add(written);
        self.tokens_in = self.tokens_in.map(|prompt| match of_cache > prompt {
            true => prompt.saturating_add(of_cache),
            false => prompt,
        });
    }

    /// Adds what was reported later: it takes precedence.
    pub(crate) fn add(&mut self, later: &Self) {
        fn set<T: Clone>(known: &mut Option<T>, later: &Option<T>) {
            if later.is_some() {
                known.clone_from(later);
            }
        }
        if !later.id.is_empty() {
            self.id = Arc::clone(&later.id);
        }
        if !later.name.is_empty() {
            self.name = Arc::clone(&later.name);
        }
        if later.role != SpanRole::Step {
            self.role = later.role;
        }
        set(&mut self.agent, &later.agent);
        set(&mut self.to, &later.to);
        set(&mut self.model, &later.model);
        set(&mut self.asked_model, &later.asked_model);
        set(&mut self.provider, &later.provider);
        set(&mut self.thread, &later.thread);
        set(&mut self.step, &later.step);
        set(&mut self.input, &later.input);
        set(&mut self.output, &later.output);
        set(&mut self.error, &later.error);
        set(&mut self.tokens_in, &later.tokens_in);
        set(&mut self.tokens_cached, &later.tokens_cached);
        set(&mut self.tokens_written, &later.tokens_written);
        set(&mut self.tokens_out, &later.tokens_out);
        set(&mut self.cost_usd, &later.cost_usd);
        set(&mut self.from_us, &later.from_us);
        set(&mut self.until_us, &later.until_us);
        self.guarded |= later.guarded;
    }

    /// All tokens.
    pub fn tokens(&self) -> u64 {
        self.tokens_in.unwrap_or(0).saturating_add(self.tokens_out.unwrap_or(0))
    }

    /// How long it took by that program's clock, in microseconds.
    pub fn took_us(&self) -> Option<u64> {
        self.until_us?.checked_sub(self.from_us?)
    }
}

/// What a span is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SpanRole {
    /// A part of the program, such as a chain, or nothing is known.
    #[default]
    Step,
    /// A node of a graph.
    Node,
    /// The turn of an agent.
    Agent,
    /// The call of a model.
    Model,
    /// The call of an embedding model.
    Embedding,
    /// The call of a tool.
    Tool,
    /// One agent hands over to another.
    Handoff,
    /// A search for documents.
    Retriever,
    /// A check of an input or an output.
    Guardrail,
}

worded! { SpanRole {
    Step = "step", Node = "node", Agent = "agent", Model = "model", Embedding = "embedding", Tool = "tool", Handoff = "handoff",
    Retriever = "retriever", Guardrail = "guardrail",
} }

/// How a span ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpanEnd {
    /// Without an error.
    Done,
    /// With an error.
    Failed,
    /// It stopped to ask a person. Another run of its thread may continue it.
    Interrupted,
    /// Of a guardrail: it refused the input or the output.
    Tripped,
    /// The program ended, or was silent, before the span's end was reported.
    Lost,
}

/// Where a text was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TextStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A log record.
    Log,
}

worded! { TextStream { Stdout = "stdout", Stderr = "stderr", Log = "log" } }

/// Setup of an observed run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ObservedPlan {
    /// The program and its arguments; empty: it was not started here.
    pub command: Vec<String>,
    /// What it may use besides tokens and money, if it is guarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<GuardPlan>,
}

/// What a guarded program may use. `None` means no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GuardPlan {
    /// Attempts of calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u64>,
    /// Seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<u64>,
    /// Times that the same request is sent, or the same tool called with the same result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u64>,
}

impl Plan for ObservedPlan {
    fn max_ms(&self) -> u64 {
        u64::MAX
    }
}
