//! The progress of a run in the figures of its pattern: for the header and the list of runs.

use super::format;
use crate::event::world::{RunFold, SpendingUsed};

/// The progress of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Short text: `round 2/3`, `3/4 tasks`.
    pub text: Option<String>,
    /// The same in a few columns: `2/3`; empty before there is anything to count.
    pub short: String,
    /// The budget that the steps use up: name, used, allowed.
    pub budget: Option<(&'static str, u64, u64)>,
    /// The spending limit that is closest to being reached: text, used and allowed, in the same
    /// unit.
    pub spending: Option<(String, u64, u64)>,
}

/// The spending limit that is closest to being reached.
pub fn closest_limit(run: &RunFold) -> Option<(String, u64, u64)> {
    let used = run.spending_used().into_iter();
    Some(match used.max_by(|left, right| left.share().total_cmp(&right.share()))? {
        SpendingUsed::Tokens { used, limit } => {
            (format!("tokens {}/{}", format::count(used), format::count(limit)), used, limit)
        }
        SpendingUsed::Cost { used, limit } => {
            // A bar is drawn from integers.
            let micro = |usd: f64| (usd * 1e6) as u64;
            let text = format!("cost {}/{}", format::usd(used), format::usd(limit));
            (text, micro(used), micro(limit))
        }
    })
}
