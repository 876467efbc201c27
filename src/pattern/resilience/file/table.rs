//! The file format of the pattern `resilience`.

use crate::base::seeded_random::Latency;
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::record::{ObjectSchema, Requirement, join_doc_lines, record};
use crate::scenario::file::shape::{BoundedList, FormatShape, IntegerField, NonBlankString};
use crate::scenario::file::switch::BoolOrInput;
use crate::scenario::file::tree::TomlNode;

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
