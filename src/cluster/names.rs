//! The names of subjects, streams and buckets, and of this machine and its user, as other machines
//! see them.

use std::fmt;

use crate::host;
use crate::log::event::{RunId, SpanId};

/// Stream of the logs of runs. There is one for now; its number is part of the subjects, so that there
/// can be more.
pub const LOGS: &str = "RT_F_00";
/// Stream of the runs that wait for a runner.
pub const QUEUE: &str = "RT_TODO";
/// Stream of the commands to runs.
pub const COMMANDS: &str = "RT_CMD";
/// Stream of the answers that came after their runner had lost the run.
pub const LATE: &str = "RT_LATE";
/// Bucket of the list of runs.
pub const RUNS: &str = "RT_RUNS";
/// Bucket of the runners that are alive.
pub const RUNNERS: &str = "RT_RUNNERS";
/// Object store of large groups and of the logs of closed runs.
pub const BLOBS: &str = "RT_BLOB";
/// Its stream.
pub const BLOBS_STREAM: &str = "OBJ_RT_BLOB";

/// Most characters of a name that is a part of a subject.
const MAX_NAME: usize = 64;

/// Whether a name can be a part of a subject and of a key: letters, digits, `-` and `_`.
pub fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=MAX_NAME).contains(&text.len()) && text.chars().all(fits)
}

/// The namespace of a team, which its subjects and keys begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace(String);

impl Default for Namespace {
    fn default() -> Self {
        Self("main".to_owned())
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Namespace {
    /// A namespace of this name; `None`: it cannot be a part of a subject.
    pub fn new(name: &str) -> Option<Self> {
        is_name(name).then(|| Self(name.to_owned()))
    }

    /// Subject of the log of a run.
    pub fn log(&self, run: &RunId) -> String {
        format!("rt.{self}.f.00.{run}")
    }

    /// Subject that each group of a log is published to again, once it is stored.
    pub fn live(&self, run: &RunId) -> String {
        format!("rt.{self}.live.{run}")
    }

    /// Subject of the runs that wait for a runner of a pool.
    pub fn queue(&self, pool: &str) -> String {
        format!("rt.{self}.todo.{pool}")
    }

    /// Subject of the commands to a run.
    pub fn commands(&self, run: &RunId) -> String {
        format!("rt.{self}.cmd.{run}")
    }

    /// Subject of the late answer to an attempt.
    pub fn late(&self, run: &RunId, attempt: SpanId) -> String {
        format!("rt.{self}.late.{run}.{}", attempt.0)
    }

    /// Subject of the text that is received in a span of a run.
    pub fn text(&self, run: &RunId, span: SpanId) -> String {
        format!("rt.{self}.text.{run}.{}", span.0)
    }

    /// Subject of all texts that are received in a run.
    pub fn texts(&self, run: &RunId) -> String {
        format!("rt.{self}.text.{run}.*")
    }

    /// Subject of what runners say of a run that they do not play.
    pub fn notes(&self, run: &RunId) -> String {
        format!("rt.{self}.note.{run}")
    }

    /// Key of a run in the list of runs.
    pub fn row(&self, day: &str, run: &RunId) -> String {
        format!("{self}.{day}.{run}")
    }

    /// Key of a runner.
    pub fn runner(&self, name: &str) -> String {
        format!("{self}.{name}")
    }

    /// Pattern of all keys of the namespace in a bucket.
    pub fn keys(&self) -> String {
        format!("{self}.>")
    }

    /// Name of what an archived run left to the next message of its session, in the object store.
    pub fn session(&self, run: &RunId) -> String {
        format!("{self}.{run}.session.json")
    }

    /// Name of the archived log of a run in the object store.
    pub fn archive(&self, run: &RunId) -> String {
        format!("{self}.{run}.jsonl.gz")
    }
}

/// A name that may be a part of an address: other characters become `-`.
fn plain_name(text: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    text.chars().map(|c| if fits(c) { c } else { '-' }).take(40).collect()
}

/// Name of this machine.
pub fn machine_name() -> String {
    plain_name(&host::machine_name())
}

/// A name of this process that no other process of this machine has.
pub fn process_name() -> String {
    format!("{}-{}", machine_name(), std::process::id())
}

/// Who works here: the user and the machine.
pub fn user_name() -> String {
    format!("{}@{}", plain_name(&host::user_name()), machine_name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_names_that_change_subjects() {
        for good in ["main", "team-a", "r-7f3a", "A_1"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "a.b", "*", ">", "a b", "ä", "a\n", &"x".repeat(65)] {
            assert!(!is_name(bad), "{bad:?}");
            assert_eq!(Namespace::new(bad), None);
        }
        let (team, run) = (Namespace::new("team-a").expect("a name"), RunId::new("r-1"));
        assert_eq!(team.log(&run), "rt.team-a.f.00.r-1");
        assert_eq!(team.late(&run, SpanId(7)), "rt.team-a.late.r-1.7");
    }

    #[test]
    fn plain_names_fit_addresses() {
        assert_eq!(plain_name("Ann O'Neil.local"), "Ann-O-Neil-local");
        assert_eq!(plain_name(&"x".repeat(99)).len(), 40);
        assert!(process_name().ends_with(&std::process::id().to_string()));
        assert!(user_name().contains('@'));
    }
}
