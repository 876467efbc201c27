//! The limits of a research scenario.

use crate::pattern::research::spec::{ACTIONS, ResearchBudget};
use crate::scenario::file::format_budget::BudgetTable;
use crate::scenario::file::reader::ReadContext;

pub(super) fn budget(table: &BudgetTable) -> ResearchBudget {
    ResearchBudget {
        max_seconds: table.max_seconds(25),
        max_steps: table.max_steps.value.0,
        max_urls: table.max_urls.0,
        max_read_pages: table.max_read_pages.0,
        max_notes: table.max_notes.0,
        max_answer_chars: table.max_answer_chars.0,
    }
}

/// The number of steps in every plan.
const STEPS: u32 = ACTIONS.len() as u32;

pub(super) fn warn_of_few_steps(budget: &BudgetTable, cx: &mut ReadContext) {
    let steps = &budget.max_steps;
    if steps.value.0 < STEPS {
        cx.at_key("budget.max_steps", |cx| {
            let what = format!("every plan will be refused: a plan has {STEPS} steps");
            cx.warn(steps.at, what, format!("set it to at least {STEPS}"));
        });
    }
}
