//! Cross-checks between the tables of a resilience scenario.

mod outcome_fields;
pub(crate) mod table;

use crate::base::name::ToolName;
use crate::pattern::resilience::spec::{Naive, ResilienceSpec};
use crate::scenario::check::unknown_name::report_unknown_name;
use crate::scenario::file::format::Pattern;
use crate::scenario::file::format::ScenarioFile;
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::template::TemplateScope;
use crate::scenario::pattern_row::{PatternRow, ToolUse};
use crate::scenario::spec::boundary_form::BoundaryForm;

/// What a file of this pattern may contain.
pub(crate) const ROW: PatternRow = PatternRow {
    outcome: outcome_fields::FIELDS,
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
    filling: &TemplateScope<'_>,
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
        Some((steps, cx.at_key("guarded", |cx| filling.switch_value(&table.guarded, cx))))
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
