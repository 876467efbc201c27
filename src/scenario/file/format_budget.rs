//! The file format of the limits of a run.

use std::time::Duration;

use super::amount::{Clamped, Dollars, Seconds, WholeSeconds};
use super::reader::ReadContext;
use super::record::{ObjectSchema, Requirement, record};
use super::shape::{FormatShape, IntegerField, Positioned};
use super::tree::TomlNode;
use crate::scenario::spec::spending_limits::SpendingLimits;

record! {
    /// Limits of the run. They depend on the pattern.
    struct BudgetTable => {
        /// Collaboration: maximum number of rounds.
        max_rounds: Positioned<IntegerField<1, 1_000>> = default(Positioned::not_in_file(IntegerField(3))),
        /// Collaboration: maximum number of contributions.
        max_messages: Positioned<IntegerField<1, 100_000>> = default(Positioned::not_in_file(IntegerField(12))),
        /// Time limit of the run in seconds; pauses are not counted. Default: 40 for a
        /// collaboration, 25 for an orchestrator and for research, 60 for resilience and for each
        /// message of a team or swarm.
        max_seconds: WholeSeconds<1, 86_400> = optional,
        /// Maximum number of tokens of the run, prompts and replies together. Each call first
        /// reserves its estimate: its prompt, and model.max_tokens or 4096.
        max_total_tokens: Positioned<IntegerField<1, { u32::MAX }>> = optional,
        /// Maximum cost of the run in US dollars, estimated from prices. Each call first reserves
        /// its estimate.
        max_cost_usd: Positioned<Dollars> = optional,
        /// Collaboration: how many go votes make a `go`, or a `go_with_caution` where somebody says caution.
        /// Two blocks make a `no_go`; one block, or fewer votes, lead to the next round.
        min_go_votes: Positioned<IntegerField<1, 64>> = default(Positioned::not_in_file(IntegerField(2))),
        /// Orchestrator: maximum number of tasks in a plan.
        max_tasks: IntegerField<1, 100_000> = default(IntegerField(4)),
        /// Orchestrator: maximum number of concurrent tasks.
        max_parallel: IntegerField<1, 1_024> = default(IntegerField(3)),
        /// Orchestrator: retries of a task after a timeout.
        max_retries_per_task: Positioned<IntegerField<0, 19>> = default(Positioned::not_in_file(IntegerField(1))),
        /// Orchestrator: maximum number of attempts, all tasks together.
        max_dispatches: IntegerField<1, 1_000_000> = default(IntegerField(8)),
        /// Orchestrator: timeout of one attempt, in seconds.
        task_timeout_seconds: Seconds = default(Seconds::from_whole_seconds(2)),
        /// Research: maximum number of steps in a plan. Every plan has five.
        max_steps: Positioned<IntegerField<1, 1_000>> = default(Positioned::not_in_file(IntegerField(8))),
        /// Research: maximum number of sources that are kept, 1 to 20. The search requests twice as
        /// many.
        max_urls: Clamped<1, 20> = default(Clamped(6)),
        /// Research: maximum number of pages that are read, 1 to 10.
        max_read_pages: Clamped<1, 10> = default(Clamped(3)),
        /// Research: maximum number of notes, 1 to 20.
        max_notes: Clamped<1, 20> = default(Clamped(6)),
        /// Research: maximum length of the answer in characters, 120 to 2000.
        max_answer_chars: Clamped<120, 2_000> = default(Clamped(850)),
    }
}

impl BudgetTable {
    /// The spending limits of a run.
    pub fn spending(&self) -> SpendingLimits {
        SpendingLimits {
            max_total_tokens: self.max_total_tokens.as_ref().map(|it| it.value.0.into()),
            max_cost_usd: self.max_cost_usd.as_ref().map(|cost| cost.value.0),
        }
    }

    /// Time limit of the whole run; `otherwise` is the pattern's default, in seconds.
    pub fn max_seconds(&self, otherwise: u32) -> Duration {
        let seconds = self.max_seconds.map_or(otherwise, |seconds| seconds.0);
        Duration::from_secs(u64::from(seconds))
    }
}
