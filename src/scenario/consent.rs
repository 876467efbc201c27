//! Permission that a run of another author's scenario needs before it starts.

/// What the operator is asked to allow, and what a yes is stored for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent {
    /// Key of the stored answer: a digest of the scenario's file and of the programs next to it
    /// that it runs.
    pub digest: String,
    /// What the run would do, one line each; a line that begins with spaces belongs to the one
    /// above.
    pub would: Vec<String>,
    /// Why a yes cannot be stored, and what to do; `None` if it can.
    pub not_kept: Option<String>,
}
