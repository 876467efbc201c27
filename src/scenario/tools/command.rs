//! A tool that is a program on this machine.

use std::collections::BTreeMap;

use crate::scenario::read::ReadContext;
use crate::scenario::read::format::tools::settings;
use crate::scenario::read::names::{EnvName, NamedEntries};
use crate::scenario::read::shape::{
    BoundedList, FormatShape, IntegerField, NonBlankString, ObjectSchema, Positioned, Requirement,
    StringField, join_doc_lines, record,
};
use crate::scenario::read::tree::TomlNode;
use crate::scenario::spec::tool::Setting;

record! {
    /// A program that implements a tool: JSON on its standard input, JSON on its standard output.
    struct CommandTable => {
        /// The program; it is looked up in PATH unless it contains a slash. A relative path begins in the
        /// folder in which roundtable is started.
        program: NonBlankString = needed,
        /// Its arguments. The arguments of a call are never among them.
        args: BoundedList<StringField, 0, 200> = default(BoundedList(Vec::new())),
        /// Its whole environment: each variable is a string, or the environment variable that holds
        /// it.
        env: NamedEntries<Positioned<Setting>, EnvName> = default(NamedEntries::default()),
        /// Maximum size of its output, in bytes.
        max_bytes: IntegerField<1, 1_000_000_000> = default(IntegerField(1_000_000)),
    }
}

/// A program that receives JSON on its standard input and returns JSON on its standard output. It
/// is started without a shell.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandSpec {
    /// The program; it is looked up in `PATH` unless it contains a slash.
    pub program: String,
    /// Its arguments. The arguments of a call are never among them.
    pub args: Vec<String>,
    /// Its whole environment, by name.
    pub env: BTreeMap<String, Setting>,
    /// Maximum size of its output, in bytes.
    pub max_bytes: u64,
}

/// Builds a program.
pub(super) fn build(table: &CommandTable) -> Option<CommandSpec> {
    Some(CommandSpec {
        program: table.program.as_ref()?.text.clone(),
        args: table.args.0.iter().map(|arg| arg.text.clone()).collect(),
        env: settings(&table.env),
        max_bytes: u64::from(table.max_bytes.0),
    })
}
