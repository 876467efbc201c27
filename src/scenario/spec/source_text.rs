//! The text that a scenario was read from, with the prompt files that it names.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::digest::sha256_of_text;

/// The text that a scenario was read from, with the changes made to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "tui", derive(schemars::JsonSchema))]
pub struct SourceText {
    /// The text of the file.
    pub text: Arc<str>,
    /// The overrides, as on the command line (`budget.max_rounds=1`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// Path of the user's file; `None`: the scenario was shipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The texts of the prompt files, by their paths as the scenario writes them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prompt_files: BTreeMap<String, Arc<str>>,
}

impl SourceText {
    /// SHA-256 of the file and its prompt files, in hexadecimal. The overrides are not part of it,
    /// but a prompt file that one of them names is.
    pub(crate) fn digest(&self) -> String {
        self.digest_with_prompts(sha256_of_text(&self.text))
    }

    /// A digest of the rest, extended to the prompt files.
    pub(crate) fn digest_with_prompts(&self, rest: String) -> String {
        if self.prompt_files.is_empty() {
            return rest;
        }
        // Digests have one length, so no two scenarios give the same list of them.
        let parts = self.prompt_files.iter().flat_map(|(path, text)| [&**path, &**text]);
        let digests = parts.map(sha256_of_text);
        sha256_of_text(&[rest].into_iter().chain(digests).collect::<String>())
    }
}
