//! `[telemetry]` of the configuration file: where the spans of runs are sent.

use std::collections::BTreeMap;

use super::read::ReadContext;
use super::read::format::tools::settings;
use super::read::names::{HeaderName, NamedEntries};
use super::read::shape::{
    FormatShape, NonBlankString, ObjectSchema, Positioned, Requirement, record,
};
use super::read::tree::TomlNode;
use super::spec::tool::Setting;

/// Where the spans of runs are sent, if anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TelemetryDefaults {
    /// Address of the receiver.
    pub otlp: Option<String>,
    /// Headers of each request, by name.
    pub headers: BTreeMap<String, Setting>,
    /// Whether spans have the texts of runs.
    pub content: bool,
}

record! {
    /// Where the spans of runs are sent, over OTLP. Without `otlp` nothing is sent.
    struct TelemetryTable => {
        /// Address of a receiver, such as `http://localhost:4318`: the spans of every run are sent there.
        otlp: NonBlankString = optional,
        /// Headers by name: a string, or the environment variable that holds it.
        headers: NamedEntries<Positioned<Setting>, HeaderName> = default(NamedEntries::default()),
        /// Whether spans have the texts of runs: prompts, replies, arguments, results, errors.
        content: bool = default(false),
    }
}

impl TelemetryTable {
    /// What the table says.
    pub(crate) fn defaults(&self) -> TelemetryDefaults {
        TelemetryDefaults {
            otlp: self.otlp.as_ref().map(|url| url.text.trim().to_owned()),
            headers: settings(&self.headers),
            content: self.content,
        }
    }
}
