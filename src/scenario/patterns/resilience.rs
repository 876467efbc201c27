//! The pattern `resilience` in a file: its settings (cascading failures source document), their
//! format and cross-checks, and the fields of the outcome that expectations may use.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::base::name::{FlagName, ToolName};
use crate::base::seeded_random::Latency;
use crate::scenario::check::script::report_unknown_name;
use crate::scenario::patterns::row::{
    BoundaryForm, LabelledText, LimitField, OutcomeField, PatternRow, Spec, ToolUse,
};
use crate::scenario::read::ReadContext;
use crate::scenario::read::format::{BoolOrInput, Pattern, ScenarioFile};
use crate::scenario::read::shape::{
    BoundedList, FormatShape, IntegerField, NonBlankString, ObjectSchema, Requirement,
    join_doc_lines, record,
};
use crate::scenario::read::template::TemplateScope;
use crate::scenario::read::tree::TomlNode;
use crate::scenario::spec::ModelCaller;
use crate::scenario::spec::policy::{CallPolicy, SafeMode};
use crate::scenario::spec::tool::ToolSpec;

/// `pattern = "resilience"`.
#[derive(Debug, Clone)]
pub struct ResilienceSpec {
    /// Number of concurrent agents.
    pub agents: u32,
    /// How often each agent repeats its steps.
    pub turns: u32,
    /// The tools that an agent calls in one turn, in order.
    pub steps: Vec<ToolName>,
    /// Number of call slots that all agents share, like the worker pool of a service: a call holds
    /// one from its first attempt to its end, including the waits between attempts.
    pub pool: u32,
    /// The pause of an agent between two turns.
    pub pace: Latency,
    /// Whether calls use the tools' policies; if not, [`Naive`] ones.
    pub guarded: bool,
    /// The retries without the tools' policies.
    pub naive: Naive,
    /// Time limit of the whole run; pauses are not counted.
    pub max_seconds: Duration,
}

/// Retries in three layers that do not know of each other, as in the incident of the cascading
/// failures source document. No breaker, no bulkhead, no waits, no safe mode; timeouts still apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Naive {
    /// Retries inside the tool's own client; the gateway does not see them.
    pub client_retries: u32,
    /// Retries in the wrapper around the tool.
    pub tool_retries: u32,
    /// Retries of one step by the agent's loop.
    pub agent_retries: u32,
}

impl Spec for ResilienceSpec {
    fn name(&self) -> &'static str {
        "resilience"
    }

    fn max_time(&self) -> Duration {
        self.max_seconds
    }

    fn size(&self) -> (u64, &'static str) {
        (u64::from(self.agents), "agent")
    }

    fn limits(&self) -> Vec<LimitField> {
        vec![
            LimitField::new("resilience.agents", "Parallel agents", self.agents),
            LimitField::new("resilience.turns", "Turns per agent", self.turns),
            LimitField::new("resilience.pool", "Call slots", self.pool),
            LimitField::max_seconds(self.max_seconds),
        ]
    }

    fn preview(&self) -> Vec<LabelledText> {
        let limits = format!(
            "{} agents, {} turns each, {} call slots, {} s",
            self.agents,
            self.turns,
            self.pool,
            self.max_seconds.as_secs(),
        );
        let steps: Vec<&str> = self.steps.iter().map(|tool| tool.as_str()).collect();
        let how = if self.guarded {
            "guarded: retries in one place, breaker, bulkhead, safe mode".to_owned()
        } else {
            let naive = self.naive;
            format!(
                "naive, retries: client {}, tool {}, agent {}",
                naive.client_retries, naive.tool_retries, naive.agent_retries
            )
        };
        vec![
            LabelledText::new("limits", limits),
            LabelledText::new("tools", steps.join(", ")),
            LabelledText::new("gateway", how),
        ]
    }

    /// Checks `turn:TURN:AGENT`.
    fn check_boundary(&self, at: &str, _: &BTreeMap<ToolName, ToolSpec>) -> Result<(), String> {
        let mut parts = at.splitn(3, ':');
        let of = |part: Option<&str>| part.and_then(|part| part.parse::<u32>().ok());
        match (parts.next(), of(parts.next()), of(parts.next())) {
            (Some("turn"), Some(turn), Some(agent)) => {
                let comes = (1..=self.turns).contains(&turn) && (1..=self.agents).contains(&agent);
                if comes {
                    return Ok(());
                }
                Err(format!("never reached: {} agents with {} turns each", self.agents, self.turns))
            }
            _ => Err("never reached here; use turn:TURN:AGENT".to_owned()),
        }
    }

    fn model_callers(&self) -> Vec<ModelCaller> {
        Vec::new()
    }

    /// A naive run keeps only the timeout of a tool, and retries at once.
    fn tool_policy(&self, policy: &CallPolicy) -> CallPolicy {
        if self.guarded {
            return policy.clone();
        }
        CallPolicy {
            timeout: policy.timeout,
            max_attempts: self.naive.tool_retries.saturating_add(1),
            backoff: [].into(),
            jitter: false,
            retry_budget: None,
            breaker: None,
            bulkhead: None,
            safe_mode: SafeMode::OFF,
            ..policy.clone()
        }
    }

    fn reads_flag(&self, _: &FlagName) -> bool {
        false
    }
}

/// What a file of this pattern may contain.
pub(crate) const ROW: PatternRow = PatternRow {
    outcome: OUTCOME_FIELDS,
    boundaries: &[BoundaryForm::Pair("turn")],
    most_attempts: |file| {
        let naive = file.resilience.as_ref()?.naive.as_ref();
        Some(naive.map_or(0, |naive| naive.tool_retries.0 + 1))
    },
    tool_use: |file, tool| {
        let mut steps = file.resilience.iter().flat_map(|it| &it.steps).flat_map(|steps| &steps.0);
        match steps.any(|step| step.text == tool) {
            true => ToolUse::Called,
            false => ToolUse::Never("it is not in resilience.steps".to_owned()),
        }
    },
    ..PatternRow::new(Pattern::Resilience, "resilience")
};

/// Builds the resilience pattern of a file. Problems are reported to `cx`.
pub(crate) fn resilience(
    file: &ScenarioFile,
    scope: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<ResilienceSpec> {
    let table = file.resilience.as_ref()?;
    let (steps, guarded) = cx.at_key("resilience", |cx| {
        let tools = &file.tools.as_ref()?.named;
        let steps = table.steps.as_ref();
        for (index, step) in steps.iter().flat_map(|steps| steps.0.iter().enumerate()) {
            if !tools.has(&step.text) {
                cx.at_key("steps", |cx| {
                    cx.at_index(index, |cx| report_unknown_name(step, "a tool", tools.names(), cx));
                });
            }
        }
        Some((steps, cx.at_key("guarded", |cx| scope.switch_value(&table.guarded, cx))))
    })?;
    let naive = table.naive.as_ref()?;
    let steps = steps?.0.iter();
    Some(ResilienceSpec {
        agents: table.agents?.0,
        turns: table.turns?.0,
        steps: steps.map(|step| ToolName::from(step.text.as_str())).collect(),
        pool: table.pool?.0,
        pace: table.pace,
        guarded: guarded?,
        naive: Naive {
            client_retries: naive.client_retries.0,
            tool_retries: naive.tool_retries.0,
            agent_retries: naive.agent_retries.0,
        },
        max_seconds: file.budget.as_ref()?.max_seconds(60),
    })
}

record! {
    /// Many agents that call the same tools concurrently.
    struct ResilienceTable => {
        /// Number of concurrent agents.
        agents: IntegerField<1, 10_000> = needed,
        /// How often each agent repeats its steps.
        turns: IntegerField<1, 10_000> = needed,
        /// The tools that an agent calls in one turn, in order.
        steps: BoundedList<NonBlankString, 1, 64> = needed,
        /// Number of call slots that all agents share.
        pool: IntegerField<1, 10_000> = needed,
        /// The pause of an agent between two turns: `50ms`, or `50ms..150ms` for a random time from
        /// the seed.
        pace: Latency = default(Latency::default()),
        /// Whether calls use the tools' policies (true) or the naive ones (false): true, false, or
        /// `{{input}}` with a boolean input.
        guarded: BoolOrInput = default(BoolOrInput::Set(true)),
        /// The retries without the tools' policies.
        naive: NaiveTable = table,
    }
}

record! {
    /// Retries in three layers that do not know of each other.
    struct NaiveTable => {
        /// Retries inside the tool's own client.
        client_retries: IntegerField<0, 20> = default(IntegerField(2)),
        /// Retries in the wrapper around the tool.
        tool_retries: IntegerField<0, 19> = default(IntegerField(2)),
        /// Retries of a step by the agent.
        agent_retries: IntegerField<0, 20> = default(IntegerField(3)),
    }
}

/// The fields, in the order of an outcome.
pub(crate) const OUTCOME_FIELDS: &[OutcomeField] = &[
    OutcomeField::new(
        "summary",
        "object",
        "Results of all agents, the amplification of their calls, and the most calls that waited.",
    ),
    OutcomeField::new(
        "trace",
        "array",
        "Each change of a breaker: `at_ms`, `tool`, `to`, `why`, and `counted` where its window opened it.",
    ),
    OutcomeField::new("history", "array", "The results of each agent."),
];
