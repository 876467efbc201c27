//! The payloads of the model calls (`propose_contribution` and `compose_final_answer` in the
//! collaboration source document), with instructions of our own.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::base::name::RoleName;
use crate::event::contribution::{Conflict, Contribution, Decision, Stance};
use crate::event::kind::{ChatMessage, MessageRole};
use crate::llm::{ReplyContract, ReplyForm};
use crate::pattern::collaboration::spec::{CollaborationSpec, RoleSpec};
use crate::scenario::Scenario;

/// The number of past rounds that a role sees.
pub const RECENT_ROUNDS: usize = 2;

/// The format of a contribution, added to every role's prompt.
const REPLY_CONTRACT: &str = r#"Answer with a single JSON object and nothing around it:
{"agent": "<your role>", "stance": "go" | "caution" | "block", "summary": "<one short paragraph>", "confidence": <number from 0 to 1>, "actions": ["<concrete step>", "... at most three"]}
`agent` is the value of `role` in the message you are given. Rest your judgement on the facts given there alone, and name steps that someone can carry out."#;

/// The texts that are the same in every run of a scenario, made once and sent with each call.
#[derive(Debug)]
pub struct CollaborationTexts {
    /// The facts that every role sees, as JSON.
    pub facts: Box<RawValue>,
    /// The instructions and the reply form of each role.
    pub roles: BTreeMap<RoleName, RoleTexts>,
    /// The instructions for the writer of the brief.
    pub finalize: Arc<str>,
}

/// The instructions of a role for every round, and the form of its reply.
#[derive(Clone, Debug)]
pub struct RoleTexts {
    /// The role's prompt, and the format of its reply.
    instructions: Arc<str>,
    /// The messages before any round is closed: the same in every run.
    opening: Arc<[ChatMessage]>,
    /// The form of its contribution.
    pub form: ReplyForm,
}

impl RoleTexts {
    /// The texts of a role with this prompt.
    pub fn from_prompt(role: &RoleName, prompt: &str, goal: &str, facts: &RawValue) -> Self {
        let instructions = instructions(prompt);
        let opening = role_messages(Arc::clone(&instructions), goal, role, facts, &[], &[]);
        Self { instructions, opening, form: form(role) }
    }

    /// The messages for the role after these rounds. Goal, role and facts are those that the texts
    /// were made with.
    pub fn messages(
        &self,
        goal: &str,
        role: &RoleName,
        facts: &RawValue,
        recent: &[RecentRound],
        open_conflicts: &[Conflict],
    ) -> Arc<[ChatMessage]> {
        if recent.is_empty() && open_conflicts.is_empty() {
            return Arc::clone(&self.opening);
        }
        role_messages(Arc::clone(&self.instructions), goal, role, facts, recent, open_conflicts)
    }
}

impl CollaborationTexts {
    /// The texts of this scenario.
    pub fn from_scenario(scenario: &Scenario, spec: &CollaborationSpec) -> Self {
        // Facts are valid JSON, so this does not fail.
        let facts = to_raw_value(&*scenario.facts).unwrap_or_else(|_| RawValue::NULL.to_owned());
        let texts = |(name, role): (&RoleName, &RoleSpec)| {
            (name.clone(), RoleTexts::from_prompt(name, &role.prompt, &scenario.goal, &facts))
        };
        Self {
            roles: spec.roles.iter().map(texts).collect(),
            facts,
            finalize: spec.finalize_prompt.trim().into(),
        }
    }
}

/// A closed round as later rounds and the final step see it.
#[derive(Clone, Debug, Serialize)]
pub struct ClosedRound {
    /// The round number, from 1.
    pub round: u32,
    /// The contributions, in sequence order.
    pub contributions: Vec<Arc<Contribution>>,
    /// The result of `detect_conflicts`.
    pub conflicts: Vec<Conflict>,
    /// The decision, if there was one.
    pub decision: Option<Decision>,
}

/// A past round as a role sees it.
#[derive(Clone, Debug, Serialize)]
pub struct RecentRound {
    round: u32,
    decision: Option<Decision>,
    conflicts: Vec<Conflict>,
    stances: Vec<RecentStance>,
}

#[derive(Clone, Debug, Serialize)]
struct RecentStance {
    agent: RoleName,
    stance: Stance,
    confidence: f64,
}

/// The last `limit` rounds (`_round_summaries` in the collaboration source document, whose slice
/// returns all rounds for a limit of 0).
pub fn recent_rounds(history: &[ClosedRound], limit: usize) -> Vec<RecentRound> {
    let left_out = if limit == 0 { 0 } else { history.len().saturating_sub(limit) };
    history
        .iter()
        .skip(left_out)
        .map(|row| RecentRound {
            round: row.round,
            decision: row.decision,
            conflicts: row.conflicts.clone(),
            stances: row
                .contributions
                .iter()
                .map(|from| RecentStance {
                    agent: from.agent.clone(),
                    stance: from.stance,
                    confidence: from.confidence,
                })
                .collect(),
        })
        .collect()
}

#[derive(Serialize)]
struct RolePayload<'a> {
    goal: &'a str,
    role: &'a RoleName,
    shared_context: &'a RawValue,
    recent_rounds: &'a [RecentRound],
    open_conflicts: &'a [Conflict],
}

#[derive(Serialize)]
struct BriefPayload<'a> {
    goal: &'a str,
    final_decision: Decision,
    history: &'a [ClosedRound],
}

/// The instructions of a role for every round: its prompt, and the format of its reply.
pub fn instructions(prompt: &str) -> Arc<str> {
    format!("{}\n\n{REPLY_CONTRACT}", prompt.trim()).into()
}

/// The form of a role's contribution: the keys that policy requires, the allowed stances, and the
/// role's name.
pub fn form(role: &RoleName) -> ReplyForm {
    let role = role.clone();
    let text = || json!({ "type": "string" });
    ReplyForm::with_contract("contribution", true, move || {
        ReplyContract::object([
            ("agent", ReplyContract::one_of([role.as_str()])),
            ("stance", ReplyContract::one_of(Stance::ALL.map(Stance::word))),
            ("summary", text()),
            ("confidence", json!({ "type": "number" })),
            ("actions", json!({ "type": "array", "items": text() })),
        ])
    })
}

/// The messages for a role.
fn role_messages(
    instructions: Arc<str>,
    goal: &str,
    role: &RoleName,
    facts: &RawValue,
    recent: &[RecentRound],
    open_conflicts: &[Conflict],
) -> Arc<[ChatMessage]> {
    let payload =
        RolePayload { goal, role, shared_context: facts, recent_rounds: recent, open_conflicts };
    // The names and brackets of the payload, and an estimate for the past rounds.
    let room = 160 + goal.len() + facts.get().len() + 400 * recent.len();
    conversation(instructions, &payload, room)
}

/// The messages for the writer of the brief.
pub fn brief_messages(
    instructions: Arc<str>,
    goal: &str,
    final_decision: Decision,
    history: &[ClosedRound],
) -> Arc<[ChatMessage]> {
    let seats: usize = history.iter().map(|row| row.contributions.len()).sum();
    let room = 160 + goal.len() + 240 * seats;
    conversation(instructions, &BriefPayload { goal, final_decision, history }, room)
}

/// Instructions and a payload of about `room` bytes.
fn conversation(system: Arc<str>, payload: &impl Serialize, room: usize) -> Arc<[ChatMessage]> {
    let mut user = Vec::with_capacity(room);
    // Our payloads serialize without errors, and JSON is UTF-8.
    let written = serde_json::to_writer(&mut user, payload).is_ok();
    let user = String::from_utf8(user).ok().filter(|_| written).unwrap_or_default();
    Arc::new([
        ChatMessage::new(MessageRole::System, system),
        ChatMessage::new(MessageRole::User, user),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_messages_equal_newly_written_ones() {
        let (role, goal) = (RoleName::from("risk"), "Say \"go\",\nor not: \u{1f600}.");
        let facts = to_raw_value(&json!({ "orders": 15200, "note": "a \"b\"" })).expect("JSON");
        let texts = RoleTexts::from_prompt(&role, " You judge. ", goal, &facts);
        let round = |number| ClosedRound {
            round: number,
            contributions: Vec::new(),
            conflicts: vec![Conflict::GoVsCaution],
            decision: None,
        };
        let history = [round(1), round(2), round(3)];
        for closed in 0..=history.len() {
            let recent = recent_rounds(&history[..closed], RECENT_ROUNDS);
            for conflicts in [&[][..], &[Conflict::GoVsCaution]] {
                let messages = texts.messages(goal, &role, &facts, &recent, conflicts);
                let instructions = Arc::clone(&texts.instructions);
                let written = role_messages(instructions, goal, &role, &facts, &recent, conflicts);
                assert_eq!(messages, written);
                let payload: serde_json::Value =
                    serde_json::from_str(&messages[1].content).expect("JSON");
                assert_eq!(payload["goal"], goal);
                assert_eq!(payload["shared_context"]["orders"], 15200);
                assert_eq!(payload["recent_rounds"].as_array().map(Vec::len), Some(recent.len()));
                assert_eq!(payload["open_conflicts"], json!(conflicts));
            }
        }
    }
}
