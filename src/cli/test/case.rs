//! A scenario to test: its runs, ready to start.

use std::sync::Arc;

use crate::app::form::quoted;
use crate::cli::args::{RunArgs, TestOptions, Vary};
use crate::cli::run::{CannotRun, PreparedSessions, is_outside};
use crate::engine::Launch;
use crate::scenario::Scenario;

/// A scenario to test.
pub struct TestCase {
    /// The scenario.
    pub scenario: Arc<Scenario>,
    /// The arguments of `roundtable run` that run it again, without its seed.
    pub words: String,
    /// Whether a live model answers.
    pub is_live: bool,
    /// Whether the runs ask something outside of this program: a live model, or tools.
    pub is_outside: bool,
    /// Whether the runs take simulated time, which costs nothing.
    pub is_simulated: bool,
    /// Whether the runs are kept in the store. What can be repeated at will is not.
    pub is_kept: bool,
    /// The runs to make.
    pub trials: Vec<Trial>,
}

/// One execution of a scenario: one run, or the runs of a session.
pub struct Trial {
    /// The messages, each with the launch of the run that answers it.
    pub launches: Vec<(Arc<str>, Launch)>,
    /// Seed of its random numbers.
    pub seed: u64,
    /// Whether a warning fails it.
    pub denies_warnings: bool,
}

impl TestCase {
    /// Prepares the runs of a scenario.
    ///
    /// # Errors
    /// They cannot be made.
    pub fn prepare(
        args: RunArgs,
        scenario: Arc<Scenario>,
        options: &TestOptions,
        in_real_time: bool,
    ) -> Result<Self, CannotRun> {
        let times = options.times.unwrap_or(1) as usize;
        let mut sessions = PreparedSessions::prepare(&scenario, &args, times)?;
        let first_seed = args.seed.unwrap_or(scenario.seed);
        let trials = (0..times).map(|nth| {
            let seed = match options.vary {
                Some(Vary::Seed) => first_seed.wrapping_add(nth as u64),
                None => first_seed,
            };
            let launches = sessions.next_session(Some(seed));
            Trial { launches, seed, denies_warnings: options.deny_warnings }
        });
        let trials = trials.collect();
        let is_outside = args.live || scenario.tools.values().any(is_outside);
        Ok(Self {
            is_live: args.live,
            is_outside,
            is_simulated: !in_real_time && !is_outside,
            is_kept: is_outside || in_real_time,
            words: words(&args),
            scenario,
            trials,
        })
    }
}

/// The arguments of `roundtable run` that say the same.
fn words(args: &RunArgs) -> String {
    let mut words = vec![quoted(&args.scenario)];
    for set in &args.set {
        words.push(format!("--set {}", quoted(set)));
    }
    for flag in &args.flags {
        words.push(format!("--flag {}", quoted(&flag.to_string())));
    }
    words.join(" ")
}
