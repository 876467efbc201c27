//! What a person has to allow before a run of somebody else's scenario starts.

/// What is asked for, and what a yes is given to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent {
    /// The key of the answer: a digest of the scenario's file, and of the programs next to it that it
    /// runs.
    pub digest: String,
    /// What the run would do, a line each; what begins with spaces belongs to the line above.
    pub would: Vec<String>,
    /// Why a yes cannot be kept, and what to do; `None`: it is kept.
    pub not_kept: Option<String>,
}
