//! The pure rules of the collaboration source document: what a valid contribution is, what a
//! conflict is, when a decision is reached, and what exactly is wrong with a refused contribution.
//! The checks have the order of the source document, so the first one that fails gives the reason.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::base::name::RoleName;
use crate::log::event::StopReason;
use crate::log::facts::collaboration::{Conflict, Contribution, ContributionFault, Stance};
use crate::log::world::collaboration::round_to_thousandths;
use crate::pattern::reply::{
    Detail, join_with_or, missing_keys, repair, show_value, wrong_name, wrong_value,
};
use crate::scenario::patterns::collaboration::Decision;
use crate::scenario::spec::Repair;
use crate::scenario::spec::script::ReplyEnd;

/// The roles that may act (the execution allowlist).
pub type RoleSet = BTreeSet<RoleName>;

/// The most actions of a contribution that count.
pub const MAX_ACTIONS: usize = 3;

/// The keys of the contract.
pub(crate) const KEYS: [&str; 5] = ["agent", "stance", "summary", "confidence", "actions"];

/// An accepted contribution, and what was dropped from it.
#[derive(Clone, Debug, PartialEq)]
pub struct AcceptedContribution {
    /// The contribution without the dropped parts.
    pub contribution: Contribution,
    /// Number of keys beyond the contract.
    pub extra_keys: u32,
    /// Number of actions beyond [`MAX_ACTIONS`].
    pub extra_actions: u32,
}

/// The trimmed text; `None` if it is empty or not text.
fn trimmed_text(value: &Value) -> Option<&str> {
    value.as_str().map(str::trim).filter(|text| !text.is_empty())
}

/// The stance with this name; white space around it is ignored.
fn parse_stance(text: &str) -> Option<Stance> {
    Stance::ALL.into_iter().find(|stance| stance.word() == text.trim())
}

/// `validate_contribution` of the collaboration source document.
///
/// # Errors
/// `invalid_contribution:*`, the first check that fails.
#[cfg(test)]
pub fn validate_contribution(
    raw: &Value,
    allowed: &RoleSet,
) -> Result<AcceptedContribution, StopReason> {
    validate(raw, allowed).map_err(StopReason::InvalidContribution)
}

fn validate(raw: &Value, allowed: &RoleSet) -> Result<AcceptedContribution, ContributionFault> {
    let Some(object) = raw.as_object() else { return Err(ContributionFault::NotObject) };
    let [Some(agent), Some(stance), Some(summary), Some(confidence), Some(actions)] =
        KEYS.map(|key| object.get(key))
    else {
        return Err(ContributionFault::MissingKeys);
    };

    let agent = trimmed_text(agent).ok_or(ContributionFault::Agent)?;
    let Some(agent) = allowed.get(agent) else {
        return Err(ContributionFault::agent_not_allowed(agent));
    };
    let stance = stance.as_str().and_then(parse_stance).ok_or(ContributionFault::Stance)?;
    let summary = trimmed_text(summary).ok_or(ContributionFault::Summary)?;
    let confidence = confidence.as_f64().ok_or(ContributionFault::ConfidenceType)?;
    if !(0.0..=1.0).contains(&confidence) {
        return Err(ContributionFault::ConfidenceRange);
    }
    let actions = actions
        .as_array()
        .filter(|actions| !actions.is_empty())
        .ok_or(ContributionFault::Actions)?
        .iter()
        .map(|action| trimmed_text(action).ok_or(ContributionFault::ActionItem))
        .collect::<Result<Vec<&str>, _>>()?;

    let extra_keys = count(object.len() - KEYS.len());
    let extra_actions = count(actions.len().saturating_sub(MAX_ACTIONS));
    Ok(AcceptedContribution {
        contribution: Contribution {
            agent: agent.clone(),
            stance,
            summary: summary.into(),
            confidence: round_to_thousandths(confidence),
            actions: actions.into_iter().take(MAX_ACTIONS).map(Arc::from).collect(),
            end: ReplyEnd::Stop,
        },
        extra_keys,
        extra_actions,
    })
}

/// The part of the gateway's `accept` that checks the reply: a valid contribution by the role that
/// was called.
///
/// # Errors
/// The first check that fails.
pub fn judge(
    raw: &Value,
    expected: &RoleName,
    allowed: &RoleSet,
) -> Result<AcceptedContribution, ContributionFault> {
    let accepted = validate(raw, allowed)?;
    if accepted.contribution.agent != *expected {
        return Err(ContributionFault::AgentMismatch(expected.clone()));
    }
    Ok(accepted)
}

fn count(things: usize) -> u32 {
    u32::try_from(things).unwrap_or(u32::MAX)
}

/// `detect_conflicts` of the collaboration source document.
pub fn detect_conflicts(stances: impl IntoIterator<Item = Stance>) -> Vec<Conflict> {
    let stances: BTreeSet<Stance> = stances.into_iter().collect();
    if stances.is_empty() {
        return vec![Conflict::NoContributions];
    }
    let has = |stance| stances.contains(&stance);
    let mut conflicts = Vec::new();
    if has(Stance::Go) && has(Stance::Caution) && !has(Stance::Block) {
        conflicts.push(Conflict::GoVsCaution);
    }
    if has(Stance::Block) && stances.len() > 1 {
        conflicts.push(Conflict::BlockingVsNonBlock);
    }
    if stances.len() == Stance::ALL.len() {
        conflicts.push(Conflict::HighDivergence);
    }
    conflicts
}

/// `decide_round_outcome` of the collaboration source document: two blocks mean no-go, one block
/// keeps the round open, enough go votes decide, and a caution among them turns go into go with
/// caution.
pub fn decide_round_outcome(
    stances: impl IntoIterator<Item = Stance>,
    min_go_votes: u32,
) -> Option<Decision> {
    let (mut go, mut caution, mut block) = (0u32, 0u32, 0u32);
    for stance in stances {
        match stance {
            Stance::Go => go += 1,
            Stance::Caution => caution += 1,
            Stance::Block => block += 1,
        }
    }
    if block >= 2 {
        Some(Decision::NoGo)
    } else if block > 0 || go < min_go_votes {
        None
    } else if caution == 0 {
        Some(Decision::Go)
    } else {
        Some(Decision::GoWithCaution)
    }
}

/// [`decide_round_outcome`] as rows.
#[cfg(test)]
pub const SOURCE_ROWS: [(&str, Decision); 3] = [
    ("size(stances.block) >= 2", Decision::NoGo),
    (
        "size(stances.block) == 0 && size(stances.go) >= min_go_votes && size(stances.caution) == 0",
        Decision::Go,
    ),
    (
        "size(stances.block) == 0 && size(stances.go) >= min_go_votes && size(stances.caution) > 0",
        Decision::GoWithCaution,
    ),
];

/// The first role with a veto that blocks.
pub fn veto_of<'a>(
    vetoes: &BTreeSet<RoleName>,
    contributions: &'a [Arc<Contribution>],
) -> Option<&'a RoleName> {
    let blocks = contributions.iter().filter(|it| it.stance == Stance::Block);
    blocks.map(|it| &it.agent).find(|role| vetoes.contains(*role))
}

/// The gateway of the collaboration source document: checks the execution allowlist and the message
/// budget before any reply of a role.
#[derive(Clone, Debug)]
pub struct ContributionGateway {
    max_messages: u32,
    messages: u32,
}

impl ContributionGateway {
    /// A gateway with no messages used.
    pub fn new(max_messages: u32) -> Self {
        Self { max_messages, messages: 0 }
    }

    /// The number of messages used.
    pub fn messages(&self) -> u32 {
        self.messages
    }

    /// Whether a seat may be called, while `ahead` seats before it have no reply yet.
    ///
    /// # Errors
    /// `agent_denied:<role>`, then `max_messages`. The source document checks this after it has
    /// paid for the call, we check it before.
    pub fn check_call(
        &self,
        role: &RoleName,
        allow: &RoleSet,
        ahead: u32,
    ) -> Result<(), StopReason> {
        if !allow.contains(role) {
            return Err(StopReason::AgentDenied(role.clone()));
        }
        if self.messages.saturating_add(ahead) >= self.max_messages {
            return Err(StopReason::MaxMessages);
        }
        Ok(())
    }

    /// `accept` of the collaboration source document.
    ///
    /// # Errors
    /// `agent_denied:<role>`, `max_messages`, `invalid_contribution:*`, in this order. A message
    /// whose content is refused counts as used.
    #[cfg(test)]
    pub fn accept(
        &mut self,
        raw: &Value,
        expected: &RoleName,
        allow: &RoleSet,
    ) -> Result<AcceptedContribution, StopReason> {
        self.use_message(expected, allow)?;
        judge(raw, expected, allow).map_err(StopReason::InvalidContribution)
    }

    /// The part of `accept` of the source document that does not look at the reply: uses up one
    /// message.
    ///
    /// # Errors
    /// `agent_denied:<role>`, `max_messages`, in this order.
    pub fn use_message(&mut self, expected: &RoleName, allow: &RoleSet) -> Result<(), StopReason> {
        self.check_call(expected, allow, 0)?;
        self.messages += 1;
        Ok(())
    }
}

/// The sentence that describes a fault of this reply to a call of the role `expected`.
pub fn describe_contribution_fault(
    fault: &ContributionFault,
    raw: &Value,
    expected: &RoleName,
) -> Detail {
    let field = |key: &str| raw.get(key).unwrap_or(&Value::Null);
    // As the rule compares it.
    let agent = || field("agent").as_str().unwrap_or_default().trim();
    match fault {
        ContributionFault::NotObject => {
            format!("the reply is {}, not an object", show_value(raw)).into()
        }
        ContributionFault::MissingKeys => missing_keys("", raw, &KEYS).into(),
        ContributionFault::Agent => {
            wrong_value("agent", field("agent"), "the name of a role").into()
        }
        // The name of another role is wrong in every spelling.
        ContributionFault::AgentNotAllowed(_) | ContributionFault::AgentMismatch(_) => {
            wrong_name("agent", agent(), &format!("expected {expected}"), &[expected.as_str()])
        }
        ContributionFault::Stance => {
            let stances = Stance::ALL.map(Stance::word);
            match field("stance").as_str().map(str::trim) {
                Some(stance) if !stance.is_empty() => {
                    let wanted = format!("not {}", join_with_or(&stances));
                    wrong_name("stance", stance, &wanted, &stances)
                }
                _ => wrong_value("stance", field("stance"), &join_with_or(&stances)).into(),
            }
        }
        ContributionFault::Summary => wrong_value("summary", field("summary"), "text").into(),
        ContributionFault::ConfidenceType => {
            let what = wrong_value("confidence", field("confidence"), "a number");
            with_numbers(what, field("confidence"))
        }
        ContributionFault::ConfidenceRange => {
            let what = wrong_value("confidence", field("confidence"), "from 0 to 1");
            with_numbers(what, field("confidence"))
        }
        ContributionFault::Actions => {
            wrong_value("actions", field("actions"), "a list of steps").into()
        }
        ContributionFault::ActionItem => {
            let items = field("actions").as_array().into_iter().flatten();
            let bad = |item: &Value| item.as_str().is_none_or(|text| text.trim().is_empty());
            match items.enumerate().find(|(_, item)| bad(item)) {
                Some((nth, item)) => wrong_value(&format!("actions[{nth}]"), item, "text").into(),
                None => "an action is empty".into(),
            }
        }
    }
}

/// Adds the repair that would accept the number, if there is one.
fn with_numbers(what: String, value: &Value) -> Detail {
    let takes =
        |number| format!("{} would read it as {number}", repair::as_setting(&[Repair::Numbers]));
    Detail { what, setting: repair::fraction(value).map(takes) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_fault_says_what_it_is() {
        let good = json!({
            "agent": "risk_analyst",
            "stance": "go",
            "summary": "Fine.",
            "confidence": 0.5,
            "actions": ["Start"],
        });
        let with = |key: &str, value: Value| {
            let mut raw = good.clone();
            raw[key] = value;
            raw
        };
        let table = [
            (json!("go"), "the reply is \"go\", not an object"),
            (json!({ "agent": "a" }), "keys missing: stance, summary, confidence, actions"),
            (with("agent", json!(5)), "agent is 5, not the name of a role"),
            (with("agent", json!("boss")), "agent is \"boss\", expected risk_analyst"),
            (
                with("agent", json!("Risk Analyst")),
                "agent is \"Risk Analyst\", expected risk_analyst; repair = [\"case\"] would accept it",
            ),
            (with("agent", json!("critic")), "agent is \"critic\", expected risk_analyst"),
            (with("agent", json!(" critic ")), "agent is \"critic\", expected risk_analyst"),
            (with("agent", json!("Critic")), "agent is \"Critic\", expected risk_analyst"),
            (with("stance", json!("maybe")), "stance is \"maybe\", not go, caution or block"),
            (with("stance", json!(null)), "stance is null, not go, caution or block"),
            (with("summary", json!("")), "summary is empty, not text"),
            (with("confidence", json!("high")), "confidence is \"high\", not a number"),
            (
                with("confidence", json!("0.5")),
                "confidence is \"0.5\", not a number; repair = [\"numbers\"] would read it as 0.5",
            ),
            (with("confidence", json!(7)), "confidence is 7, not from 0 to 1"),
            (with("actions", json!([])), "actions is an empty list, not a list of steps"),
            (with("actions", json!("start")), "actions is \"start\", not a list of steps"),
            (with("actions", json!(["a", 2])), "actions[1] is 2, not text"),
        ];
        let role = RoleName::from("risk_analyst");
        let allowed: RoleSet = [role.clone(), RoleName::from("critic")].into();
        for (raw, expected) in table {
            let fault = judge(&raw, &role, &allowed).expect_err(expected);
            assert_eq!(describe_contribution_fault(&fault, &raw, &role).to_string(), expected);
        }
    }
}
