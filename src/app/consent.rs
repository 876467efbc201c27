//! What a person has to allow before a run of somebody else's scenario starts.

/// What is asked for, and what a yes is given to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent {
    /// What a yes is kept under: a digest of the scenario's file, and of the programs beside it that it
    /// runs.
    pub digest: String,
    /// What the run would do, a line each; what begins with spaces belongs to the line above.
    pub would: Vec<String>,
    /// Why a yes cannot be kept, and what to do; `None`: it is kept.
    pub not_kept: Option<String>,
}
