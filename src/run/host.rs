//! A run as its attempts see it: what they publish while they last, and the questions of other programs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;

use super::RunContext;
use super::control::RunControl;
use super::questions::{Ended, Question};
use crate::base::json_schema;
use crate::base::name::PersonName;
use crate::base::visible::{first_bytes, visible_lines, visible_within};
use crate::gateway::{AttemptHost, AttemptProgress, InputReply, InputRequest, PermissionRequest};
use crate::log::event::{AgentStep, Answer, AnsweredBy, EventKind, SpanId, Subject};
use crate::scenario::people::{OPERATOR, Otherwise};

/// An attempt may last so many times its timeout, if its tool says in time how far it is.
const MAX_EXTENSION: u32 = 10;
/// Progress is published at most once in this time.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// Most characters of the text of progress, and of the title of a step.
const PROGRESS_CHARS: usize = 200;
/// Longest text of a question of another program, in bytes.
const INPUT_BYTES: usize = 16 << 10;
/// Most bytes of the text of a step.
const STEP_BYTES: usize = 4 << 10;
/// Most events of the agent's own steps of one attempt.
const MAX_STEPS: u32 = 1_000;
/// Maximum number of questions of one attempt, answered or not.
const MAX_QUESTIONS: u32 = 1_000;

/// When the attempts of a call have said last how far they are, in the active time of the run.
#[derive(Debug, Default)]
pub(super) struct LastProgress(Mutex<Option<Duration>>);

impl LastProgress {
    fn lock(&self) -> MutexGuard<'_, Option<Duration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Completes when an attempt has said nothing for this long, or has lasted too long. The time in which a
    /// person is asked does not count.
    pub(super) async fn wait(&self, control: &RunControl, limit: Duration, span: SpanId) {
        let began = control.active_in(span);
        let most = limit.saturating_mul(MAX_EXTENSION);
        loop {
            let lasted = control.active_in(span).saturating_sub(began);
            let since = self.lock().map_or(Duration::ZERO, |at| at.saturating_sub(began));
            let left = since.saturating_add(limit).min(most).saturating_sub(lasted);
            if left.is_zero() {
                return;
            }
            control.sleep_active_in(span, left).await;
        }
    }
}

/// The run, for an attempt that says how far it is, or needs an answer of a person.
pub(super) struct RunHost<'a> {
    cx: &'a RunContext,
    attempt: SpanId,
    /// The agent or role for which the attempt is made.
    by: Option<Arc<str>>,
    last: &'a LastProgress,
    published: Mutex<Published>,
}

/// What an attempt has published.
#[derive(Debug, Default)]
struct Published {
    progress: Option<Instant>,
    steps: u32,
    questions: u32,
}

impl<'a> RunHost<'a> {
    pub(super) fn new(
        cx: &'a RunContext,
        attempt: SpanId,
        by: Option<Arc<str>>,
        last: &'a LastProgress,
    ) -> Self {
        Self { cx, attempt, by, last, published: Mutex::default() }
    }

    /// Whether the attempt may ask once more. Another program can ask without an end where nobody answers,
    /// so its later questions are not asked.
    fn may_ask(&self) -> bool {
        let mut published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
        published.questions = published.questions.saturating_add(1);
        let asked = published.questions;
        drop(published);
        if asked == MAX_QUESTIONS + 1 {
            let text = format!(
                "an attempt asked more than {MAX_QUESTIONS} questions: its later ones are declined"
            );
            self.cx.publish(self.attempt, EventKind::Warning { text });
        }
        asked <= MAX_QUESTIONS
    }

    /// Asks the operator. Who does not answer says no.
    async fn ask_operator(&self, subject: Subject, by: Option<Arc<str>>) -> Option<Ended> {
        if !self.may_ask() {
            return None;
        }
        let asking = self.cx.asking(&PersonName::from(OPERATOR), Otherwise::Deny);
        let in_flight = self.cx.control().keep_calls();
        let (span, inside) = (self.attempt, self.attempt);
        let question = Question { span, inside, by, why: None, subject, asking, rule: None };
        let ended = self.cx.questions.ask(question).await;
        drop(in_flight);
        ended.ok()
    }
}

impl AttemptHost for RunHost<'_> {
    fn progress(&self, progress: AttemptProgress) {
        self.alive();
        let now = self.cx.bus().clock().now();
        let mut published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
        if published.progress.is_some_and(|last| now.duration_since(last) < PROGRESS_EVERY) {
            return;
        }
        published.progress = Some(now);
        let AttemptProgress { text, done, total } = progress;
        let text = visible_within(text.trim(), PROGRESS_CHARS);
        self.cx.publish(self.attempt, EventKind::AttemptProgressed { text, done, total });
    }

    fn ask(&self, request: InputRequest) -> BoxFuture<'_, InputReply> {
        async move {
            let InputRequest { from, text, schema } = request;
            let schema = Arc::new(schema);
            let subject = Subject::Input {
                tool: from.into(),
                text: first_bytes(&text, INPUT_BYTES).into(),
                parameters: Arc::clone(&schema),
            };
            let ended = self.ask_operator(subject, self.by.clone()).await;
            let Some(ended) = ended else { return InputReply::Cancel };
            match (&ended.answered.by, &ended.answered.answer) {
                (_, Answer::Approve { args }) => {
                    // A bare yes leaves every field as the server fills it in.
                    let args = args.as_deref().cloned();
                    InputReply::Accept(args.unwrap_or_else(|| json_schema::defaults(&schema)))
                }
                (AnsweredBy::Nobody, _) | (_, Answer::Stop) => InputReply::Cancel,
                _ => InputReply::Decline,
            }
        }
        .boxed()
    }

    fn permit(&self, request: PermissionRequest) -> BoxFuture<'_, Option<usize>> {
        async move {
            let PermissionRequest { from, text, choices } = request;
            let text = first_bytes(&text, INPUT_BYTES).into();
            let subject = Subject::Permission { text, choices: choices.clone().into() };
            let by = self.by.clone().unwrap_or(from);
            let ended = self.ask_operator(subject, Some(by)).await?;
            match &ended.answered.answer {
                Answer::Choose { choice, .. } => choices.iter().position(|it| it == choice),
                _ => None,
            }
        }
        .boxed()
    }

    fn step(&self, step: AgentStep) {
        self.alive();
        let mut published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
        // What is carried out for an agent is always in the log; it has a limit of its own.
        if published.steps >= MAX_STEPS && !step.carried_out {
            return;
        }
        published.steps += u32::from(!step.carried_out);
        let AgentStep { id, title, state, text, carried_out } = step;
        let visible = |text: &str, most| Arc::from(visible_within(text.trim(), most));
        let step = AgentStep {
            id: visible(&id, PROGRESS_CHARS),
            title: visible(&title, PROGRESS_CHARS),
            state,
            text: visible_lines(first_bytes(text.trim(), STEP_BYTES)).into(),
            carried_out,
        };
        self.cx.publish(self.attempt, EventKind::AgentStep(Arc::new(step)));
    }

    fn alive(&self) {
        *self.last.lock() = Some(self.cx.control().active_in(self.attempt));
    }
}
