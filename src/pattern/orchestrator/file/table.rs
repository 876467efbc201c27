//! The file format of the pattern `orchestrator`.

use crate::scenario::file::format_tools::{CommandTable, FixtureTable, HttpTable};
use crate::scenario::file::named::{IdentName, NamedEntries, ResultKey};
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::record::{ObjectSchema, Requirement, join_doc_lines, record};
use crate::scenario::file::shape::{
    BoundedList, FormatShape, FreeTable, NonBlankString, Positioned,
};
use crate::scenario::file::tree::TomlNode;
use crate::scenario::spec::tool::FieldKind;

record! {
    /// The prompts of the planner and of the report, and how results are aggregated.
    struct OrchestratorTable => {
        /// System prompt of the planner; the required reply format is appended. `{{input}}` is
        /// filled in.
        plan_prompt: NonBlankString = needed_or_file,
        /// System prompt of the report at the end. `{{input}}` is filled in.
        finalize_prompt: NonBlankString = needed_or_file,
        /// The model that plans. Default: that of [model].
        plan_model: NonBlankString = optional,
        /// The model that writes the report. Default: that of [model].
        finalize_model: NonBlankString = optional,
        /// Inputs that the planner sees and that are copied to the aggregate.
        echo: BoundedList<NonBlankString, 0, 64> = default(BoundedList(Vec::new())),
        /// The sections of the aggregate by name: the worker whose result each one holds.
        sections: NamedEntries<NonBlankString, IdentName> = default(NamedEntries::default()),
        /// The level of the aggregate: [orchestrator.level] with name = "health" and otherwise =
        /// "green", or other words.
        level: LevelTable = needed,
    }
}

record! {
    /// The level of the aggregate: the level of the first rule that holds.
    struct LevelTable => {
        /// Its name in the aggregate, such as health.
        name: NonBlankString = needed,
        /// The level if no rule holds.
        otherwise: NonBlankString = needed,
        /// The rules, the most severe first.
        rules: BoundedList<RuleTable, 0, 100> = default(BoundedList(Vec::new())),
    }
}

record! {
    /// A rule of the level.
    struct RuleTable => {
        /// The level of the aggregate if this rule holds.
        level: NonBlankString = needed,
        /// The condition: CEL over the sections, failed_tasks, and the inputs in `echo`. A result
        /// may lack a field, so guard it with `has()`.
        when: NonBlankString = needed,
    }
}

record! {
    /// A worker that the planner may give tasks to. Exactly one of fixture, http and command
    /// implements it.
    struct WorkerTable => {
        /// What it does, shown to the planner.
        description: NonBlankString = needed,
        /// Its arguments, each with a description for the planner.
        args: FreeTable = default(FreeTable::default()),
        /// A flag that takes it off the execution list while it is off.
        flag: NonBlankString = optional,
        /// Results that are listed in this file.
        fixture: Positioned<FixtureTable> = optional,
        /// An HTTP request whose response is the result.
        http: Positioned<HttpTable> = optional,
        /// A program whose output is the result.
        command: Positioned<CommandTable> = optional,
        /// Keys that a result must have, each with its type.
        contract: NamedEntries<FieldKind, ResultKey> = default(NamedEntries::default()),
    }
}
