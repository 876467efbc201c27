//! What a run without latencies (`--instant`) does not show: timeouts of slow results of the script
//! or of a fixture, and fixtures under load.

use std::time::Duration;

use crate::base::name::{AgentName, ToolName};
use crate::scenario::Scenario;
use crate::scenario::patterns::agents::AgentKind;
use crate::scenario::spec::tool::ToolSpec;

/// Maximum number of effects that are listed.
const LISTED: usize = 4;

/// A sentence on what a run of this scenario loses without latencies; `None` if that is only the
/// waiting. `model_timeout` is the timeout of the model if the scenario sets none. Several short
/// replies that exceed a timeout only together are not detected.
pub fn instant_warning(scenario: &Scenario, model_timeout: Duration) -> Option<String> {
    let mut lost = tools(scenario);
    lost.extend(agents(scenario));
    let bound = scenario.llm.timeout.unwrap_or(model_timeout);
    let longest = scenario.script.rows.iter().map(|row| row.latency.max).max().unwrap_or_default();
    if longest > bound {
        lost.push(format!("a reply past the model's timeout ({longest:?} of {bound:?})"));
    }
    let more = lost.len().saturating_sub(LISTED);
    lost.truncate(LISTED);
    if more > 0 {
        lost.push(format!("{more} more"));
    }
    (!lost.is_empty())
        .then(|| format!("latencies are skipped, so this run does not show: {}", lost.join("; ")))
}

/// Tools that would exceed their timeout, or that have a load model.
fn tools(scenario: &Scenario) -> Vec<String> {
    let pattern = scenario.pattern.get();
    let mut lost = Vec::new();
    for spec in scenario.tools.values() {
        let name = &spec.name;
        let longest = longest_latency(scenario, name);
        match spec.policy.timeout.or_else(|| pattern.attempt_time(name)) {
            Some(bound) if longest > bound => {
                lost.push(format!("`{name}` past its timeout ({longest:?} of {bound:?})"));
            }
            _ => {}
        }
        if spec.fixture().is_some_and(|fixture| fixture.load.is_some()) {
            lost.push(format!("`{name}` under load"));
        }
    }
    lost
}

/// Agents that one reply, or one reply and one tool call, would take past their timeout.
fn agents(scenario: &Scenario) -> Vec<String> {
    let Some(agents) = scenario.pattern.get().agents() else { return Vec::new() };
    let mut lost = Vec::new();
    for agent in agents.values() {
        let own = scenario.tools.values().find(|tool| tool.name.as_str() == agent.name.as_str());
        if let Some(bound) = own.and_then(|tool| tool.policy.timeout) {
            let longest = longest_turn(scenario, &agent.name);
            if longest > bound {
                let name = &agent.name;
                lost.push(format!("`{name}` past its timeout ({longest:?} of {bound:?})"));
            }
        }
        for (member, bound) in agent.member_timeouts() {
            let longest = longest_turn(scenario, member);
            if longest > bound {
                lost.push(format!(
                    "`{member}` past the node timeout of `{}` ({longest:?} of {bound:?})",
                    agent.name
                ));
            }
        }
    }
    lost
}

/// Estimated longest turn of an agent: one reply and, if it has tools, one call.
fn longest_turn(scenario: &Scenario, agent: &AgentName) -> Duration {
    let rows = scenario.script.rows.iter().filter(|row| row.agent.as_ref() == Some(agent));
    let reply = rows.map(|row| row.latency.max).max().unwrap_or_default();
    let Some(agents) = scenario.pattern.get().agents() else { return reply };
    let tools = match agents.get(agent).map(|agent| &agent.kind) {
        Some(AgentKind::Model(model)) => &model.tools[..],
        _ => &[],
    };
    reply + tools.iter().map(|tool| longest_latency(scenario, tool)).max().unwrap_or_default()
}

/// The longest latency of a fixture's rows.
fn longest_latency(scenario: &Scenario, tool: &ToolName) -> Duration {
    let fixture = scenario.tools.get(tool).and_then(ToolSpec::fixture);
    let rows = fixture.iter().flat_map(|fixture| &fixture.rows);
    rows.map(|row| row.latency.max).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{load, shipped};

    #[test]
    fn instant_warning_names_lost_timing() {
        for (name, says) in [
            ("checkout-launch", &[][..]),
            ("support-swarm", &[]),
            ("morning-report", &["`payments_worker` past its timeout"]),
            ("morning-report-partial", &["past its timeout"]),
            ("vendor-brownout", &["`enrich` under load"]),
            ("slow-specialist", &["`database` past the node timeout of `night_shift`", "of 4s)"]),
        ] {
            let one = shipped().iter().find(|one| one.name == name).expect("shipped");
            let scenario = load(one.text, one.origin(), &[]).expect("a good scenario");
            let said = instant_warning(&scenario, Duration::from_secs(60));
            assert_eq!(said.is_none(), says.is_empty(), "{name}: {said:?}");
            for part in says {
                assert!(said.as_ref().is_some_and(|said| said.contains(part)), "{name}: {said:?}");
            }
            if name == "checkout-launch" {
                let said = instant_warning(&scenario, Duration::from_millis(1)).expect("something");
                assert!(said.contains("a reply past the model's timeout"), "{said}");
            }
        }
    }
}
