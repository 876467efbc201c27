//! The file format of the pattern `collaboration`.

use serde_json::{Value, json};

use crate::pattern::collaboration::spec::{Concurrency, Decision, Share, WhenOff};
use crate::scenario::file::amount::Number;
use crate::scenario::file::reader::{ReadContext, suggest_name};
use crate::scenario::file::record::{ObjectSchema, Requirement, join_doc_lines, record, words};
use crate::scenario::file::shape::{BoundedList, FormatShape, NonBlankString, Positioned};
use crate::scenario::file::tree::{TomlNode, TomlValue};

record! {
    /// The order of the roles and the launch brief.
    struct CollaborationTable => {
        /// The roles in speaking order; each entry is a seat.
        sequence: Positioned<BoundedList<NonBlankString, 1, 64>> = needed,
        /// Whether the seats of a round call the model in parallel. The outcome is the same.
        concurrency: Concurrency = default(Concurrency::Parallel),
        /// What a seat reads of what the others said in the last two rounds. Default: arguments.
        share: Share = optional,
        /// The rows that decide a round, instead of budget.min_go_votes; the first one whose
        /// condition holds does. Without one, the next round begins.
        decide: BoundedList<DecideTable, 0, 64> = default(BoundedList(Vec::new())),
        /// Reserved: rounds in a row with a block after which the operator is asked. Only 0 (never)
        /// is allowed so far.
        escalate_after_blocks: Escalation = default(Escalation),
        /// System prompt of the launch brief at the end.
        finalize_prompt: NonBlankString = needed_or_file,
        /// The model that writes the launch brief. Default: that of [model].
        finalize_model: NonBlankString = optional,
        /// Inputs that are copied to `team_summary` of the outcome.
        summary: BoundedList<NonBlankString, 0, 64> = default(BoundedList(Vec::new())),
    }
}

record! {
    /// A row that may decide a round. A role with a veto comes first: see roles.NAME.veto.
    struct DecideTable => {
        /// The condition: CEL over stances (stances.go, stances.caution and stances.block have the
        /// roles with that stance), weight (weight.go, …: the sum of their weights), confidences
        /// (confidences.NAME), seats (the roles that contributed), round, max_rounds and
        /// min_go_votes.
        when: NonBlankString = needed,
        /// The decision if the condition holds.
        decision: Decision = needed,
    }
}

words! { Decision:
    "go" => Decision::Go, "Start.";
    "go_with_caution" => Decision::GoWithCaution, "Start with care.";
    "no_go" => Decision::NoGo, "Do not start.";
}

words! { Share:
    "stances" => Share::Stances, "Stance and confidence of each seat, as in the source document.";
    "arguments" => Share::Arguments, "Summary and actions too.";
}

/// `escalate_after_blocks`: only 0 so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Escalation;

impl FormatShape for Escalation {
    fn schema() -> Value {
        json!({ "type": "integer", "const": 0 })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        match node.value {
            TomlValue::Integer(Some(0)) => Some(Self),
            TomlValue::Integer(_) => {
                cx.error(
                    node.at,
                    "escalation is not available yet",
                    "set it to 0, which means never",
                );
                None
            }
            _ => {
                cx.wrong_type(node, "the number 0");
                None
            }
        }
    }
    fn default_json(&self) -> Value {
        0.into()
    }
}

words! { Concurrency:
    "parallel" => Concurrency::Parallel, "All in parallel: a round takes as long as its slowest seat.";
    "sequential" => Concurrency::Sequential, "One after another.";
}

record! {
    /// A role at the table.
    struct RoleTable => {
        /// Its system prompt; the required reply format is appended. `{{input}}` is filled in.
        prompt: NonBlankString = needed_or_file,
        /// The flag that switches the role on and off.
        flag: NonBlankString = optional,
        /// What happens while that flag is off. Default: skip.
        when_off: Positioned<WhenOff> = optional,
        /// Its weight in the conditions of collaboration.decide. Default: 1.
        weight: Positioned<Number<0, 1_000>> = optional,
        /// Whether its block is a `no_go`, before the rows of collaboration.decide and whatever the
        /// others say.
        veto: bool = default(false),
        /// The model of this role, such as anthropic/claude-haiku-4-5. Default: that of [model].
        model: NonBlankString = optional,
    }
}

words! { WhenOff:
    "skip" => WhenOff::Skip, "The seat stays empty until the flag is on.";
    "deny" => WhenOff::Deny, "The run stops with agent_denied at its turn.";
}
