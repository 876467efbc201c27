//! Plays the scenario's script as a model: the first row whose conditions hold defines the reply,
//! its latency, its pieces, and its first failures. The same seed gives the same replies.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::{Instant, sleep_until};
use unicode_segmentation::UnicodeSegmentation;

use super::{ChatModel, ChatRequest, Failure, Listener, count_reply_words, failure};
use crate::base::seeded_random::random_duration;
use crate::base::time::millis;
use crate::log::event::{FailureClass, ModelLabel, Reply, ScriptedCall, Usage};
use crate::scenario::Scenario;
use crate::scenario::cel::decision::{ConditionDecision, decide};
use crate::scenario::cel::{CelBindings, EvalBudget};
use crate::scenario::spec::script::{ReplyEnd, ScriptRow, ScriptedTokens};
use crate::scenario::spec::tool::{ScriptFault, ScriptFaultKind, ToolCall};

/// The shortest time between two pieces; the dashboard does not draw faster.
const PIECE: Duration = Duration::from_millis(33);

/// A model that plays a scenario's script.
pub struct ScriptedModel {
    scenario: Arc<Scenario>,
    instant: bool,
    conditions: bool,
}

impl ScriptedModel {
    /// The script of this scenario; `instant` skips its latencies.
    pub fn new(scenario: Arc<Scenario>, instant: bool) -> Self {
        let reads = |row: &ScriptRow| row.when.is_some() || !row.fills.is_empty();
        let conditions = scenario.script.rows.iter().any(reads);
        Self { scenario, instant, conditions }
    }

    /// The row that answers. The cost of all its conditions together is bounded.
    async fn matching_row(
        &self,
        request: &ChatRequest,
        listener: &dyn Listener,
    ) -> Option<(usize, &ScriptRow)> {
        let mut rows = self.scenario.script.rows.iter().enumerate();
        if !self.conditions {
            return rows.find(|(_, row)| row_matches(row, request));
        }
        let mut shown = CelBindings::clone(&request.shown);
        shown.bind("attempt", &request.attempt.into());
        let choice = RowChoice {
            scenario: Arc::clone(&self.scenario),
            rows: self
                .scenario
                .script
                .rows
                .iter()
                .enumerate()
                .filter_map(|(place, row)| row_matches(row, request).then_some(place))
                .collect(),
            shown,
        };
        let (found, failed) = decide(&choice).await;
        for (place, text) in failed {
            listener.condition_failed(&format!("script[{place}].when"), &text);
        }
        rows.nth(found?)
    }

    async fn play(
        &self,
        request: &ChatRequest,
        listener: &dyn Listener,
    ) -> Result<Reply, Box<Failure>> {
        let Some((place, row)) = self.matching_row(request, listener).await else {
            return Err(failure(FailureClass::ScriptMissing, missing_reply_text(request)));
        };
        let answer = match row.fills.is_empty() {
            true => row.reply_for(request.purpose.role()),
            false => {
                let mut shown = CelBindings::clone(&request.shown);
                shown.bind("attempt", &request.attempt.into());
                let (text, missing) = row.filled(&shown);
                for path in missing {
                    let place = format!("script[{place}].text");
                    listener.condition_failed(&place, &format!("`{path}` has no value"));
                }
                text
            }
        };
        let started = Instant::now();
        let takes =
            if self.instant { Duration::ZERO } else { random_duration(row.latency, request.draw) };
        if let Some(fault) = row.fault.as_ref().filter(|fault| request.attempt <= fault.times) {
            let mut failed = self.fail(fault, &answer, started, takes, listener).await;
            failed.usage = row.usage.and_then(usage_of);
            return Err(failed);
        }
        let first_token = self.stream_text(&answer, started, takes, listener).await;
        let calls = with_ids(&row.calls, request);
        let finish = match row.end {
            ReplyEnd::Stop if !calls.is_empty() => "tool_calls",
            end => end.word(),
        };
        let counted = || Usage::new(request.messages.words(), count_reply_words(&answer, &calls));
        Ok(Reply {
            usage: row.usage.map_or_else(|| Some(counted()), usage_of),
            text: answer,
            tool_calls: calls,
            result: None,
            estimated: false,
            first_token_ms: self.scenario.model.stream.then_some(millis(first_token)),
            slow: false,
            model: None,
            finish: Some(finish.into()),
            end: row.end,
            blocks: None,
            ignored: None,
            adopted: false,
            cost_usd: None,
        })
    }

    /// Streams the text over `takes`; the first third passes before the first word. Returns the
    /// time to the first word.
    async fn stream_text(
        &self,
        text: &str,
        started: Instant,
        takes: Duration,
        listener: &dyn Listener,
    ) -> Duration {
        if takes.is_zero() || !self.scenario.model.stream {
            if !takes.is_zero() {
                sleep_until(started + takes).await;
            }
            if !text.is_empty() {
                listener.piece(text);
            }
            return takes;
        }
        let silence = takes / 3;
        let speaking = takes - silence;
        let words: Vec<&str> = text.split_word_bounds().collect();
        let ticks = (speaking.as_millis() / PIECE.as_millis()).max(1) as usize;
        let pieces = ticks.min(words.len());
        let mut said = 0;
        for piece in 0..pieces {
            let share = speaking.mul_f64(piece as f64 / pieces as f64);
            sleep_until(started + silence + share).await;
            let until = words.len() * (piece + 1) / pieces;
            listener.piece(&words[said..until].concat());
            said = until;
        }
        sleep_until(started + takes).await;
        silence
    }

    async fn fail(
        &self,
        fault: &ScriptFault,
        answer: &str,
        started: Instant,
        takes: Duration,
        listener: &dyn Listener,
    ) -> Box<Failure> {
        let malformed = "a body that is not a chat completion";
        let Some(failed) = Failure::from_scripted_fault(fault, malformed) else {
            return std::future::pending().await;
        };
        if fault.kind == ScriptFaultKind::Reset {
            let half: String = answer.chars().take(answer.chars().count() / 2).collect();
            self.stream_text(&half, started, takes, listener).await;
        } else {
            sleep_until(started + takes).await;
        }
        failed
    }
}

/// The tokens that a row says; `None`: they are not known.
fn usage_of(said: ScriptedTokens) -> Option<Usage> {
    Some(Usage {
        prompt_tokens: said.prompt?,
        completion_tokens: said.completion,
        cached_tokens: said.cached,
        cache_write_tokens: said.cache_write,
        reasoning_tokens: said.reasoning,
    })
}

/// Decides which row answers: the first one whose condition holds.
#[derive(Clone)]
struct RowChoice {
    scenario: Arc<Scenario>,
    rows: Arc<[usize]>,
    shown: CelBindings,
}

impl ConditionDecision for RowChoice {
    /// The index of the row; and of each row whose condition could not be evaluated, with the
    /// error.
    type DecisionResult = (Option<usize>, Vec<(usize, String)>);

    fn evaluate(&self, budget: &mut EvalBudget) -> Self::DecisionResult {
        let mut failed = Vec::new();
        let found = self.rows.iter().copied().find(|place| {
            let when = self.scenario.script.rows.get(*place).and_then(|row| row.when.as_ref());
            let Some(when) = when else { return true };
            match when.holds_within(&self.shown, budget) {
                Ok(holds) => holds,
                Err(error) => {
                    failed.push((*place, error.to_string()));
                    false
                }
            }
        });
        (found, failed)
    }
}

/// The calls of a row, each with an id that is unique in its conversation: the random number is
/// unique to the attempt within a run, and runs of one session differ in the message number.
fn with_ids(calls: &Arc<[ToolCall]>, request: &ChatRequest) -> Arc<[ToolCall]> {
    let (message, draw) = (request.message, request.draw);
    let named = calls.iter().enumerate().map(|(place, call)| ToolCall {
        id: format!("call_{message}_{draw:016x}_{}", place + 1).into(),
        ..call.clone()
    });
    named.collect()
}

/// Whether a row applies to this step, role or agent, message, round, attempt and retry.
fn row_matches(row: &ScriptRow, request: &ChatRequest) -> bool {
    let fits = match request.purpose.script() {
        Some(ScriptedCall::Role { role, round }) => {
            row.step.is_none()
                && row.role.as_ref().is_none_or(|named| named == role)
                && row.round.is_none_or(|named| named == round)
        }
        Some(ScriptedCall::Agent { agent, turn, round }) => {
            row.step.is_none()
                && row.agent.as_ref().is_none_or(|named| named == agent)
                && row.turn.is_none_or(|named| named == turn)
                && row.round.is_none_or(|named| named == round)
        }
        Some(ScriptedCall::Step(step)) => row.step == Some(step),
        // These are calls of tools, not of a model.
        None => false,
    };
    fits && row.message.is_none_or(|named| named == request.message)
        && row.attempt.is_none_or(|named| named == request.attempt)
        && row.again.is_none_or(|named| named == request.again)
        && row.nth.is_none_or(|named| named == request.nth)
}

fn missing_reply_text(request: &ChatRequest) -> String {
    let whom = request.purpose.script_label(request.message);
    format!("the script has no reply for {whom}: add a matching [[script]] row")
}

impl ChatModel for ScriptedModel {
    fn label(&self) -> ModelLabel {
        ModelLabel::Scripted
    }

    fn reads_conditions(&self) -> bool {
        self.conditions
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, Box<Failure>>> {
        self.play(request, listener).boxed()
    }
}
