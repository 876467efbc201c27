//! A scenario to test: its runs, ready to start.

use std::sync::Arc;

use crate::app::form::quoted;
use crate::cli::args::{RunArgs, TestOptions, Vary};
use crate::cli::exit::Exit;
use crate::cli::run::{messages, prepare_runs, schedule};
use crate::engine::Launch;
use crate::scenario::Scenario;
use crate::scenario::spec::lookup::{ReadSpec, SearchSpec};
use crate::scenario::spec::tool::{ToolKind, ToolSpec};

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
}

impl TestCase {
    /// Prepares the runs of a scenario. On an error the message has been printed.
    pub fn prepare(
        args: RunArgs,
        scenario: Arc<Scenario>,
        options: &TestOptions,
        in_real_time: bool,
    ) -> Result<Self, Exit> {
        #[cfg_attr(not(feature = "store"), expect(unused_mut, reason = "there are no recordings"))]
        let mut messages = messages(&scenario, &args);
        #[cfg(feature = "store")]
        let recorded = match args.replay.as_deref().map(crate::cli::kept::replayed) {
            None => None,
            Some(Err(_)) => return Err(Exit::Usage),
            Some(Ok(recorded)) => {
                messages = vec![scenario.goal.as_str().into()];
                Some(recorded)
            }
        };
        let times = options.times.unwrap_or(1) as usize;
        #[cfg_attr(not(feature = "store"), expect(unused_mut, reason = "there are no recordings"))]
        let (mut model, tools) =
            prepare_runs(&scenario, &args, times * messages.len()).ok_or(Exit::Usage)?;
        #[cfg(not(feature = "store"))]
        let session = None::<crate::run::Session>;
        #[cfg(feature = "store")]
        let session = recorded.as_ref().and_then(|recorded| {
            model = recorded.model_choice();
            recorded.session()
        });
        let first_seed = args.seed.unwrap_or(scenario.seed);
        let mut tools = tools.into_iter();
        let trials = (0..times).map(|nth| {
            let seed = match options.vary {
                Some(Vary::Seed) => first_seed.wrapping_add(nth as u64),
                None => first_seed,
            };
            let launches = messages.iter().map(|text| {
                let (flags, schedule) = schedule(&args);
                let launch = Launch {
                    scenario: Arc::clone(&scenario),
                    model: model.clone(),
                    tools: tools.next(),
                    flags,
                    schedule,
                    seed: Some(seed),
                    requested_model: args.model.as_deref().map(Arc::from),
                    session: session.clone(),
                };
                (Arc::clone(text), launch)
            });
            Trial { launches: launches.collect(), seed }
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

/// Whether a tool asks something outside of this program: an endpoint, a program, the web.
fn is_outside(tool: &ToolSpec) -> bool {
    match &tool.kind {
        None | Some(ToolKind::Fixture(_)) => false,
        Some(ToolKind::Http(_) | ToolKind::Command(_)) => true,
        Some(ToolKind::Search(search)) => matches!(**search, SearchSpec::Endpoint(_)),
        Some(ToolKind::Read(read)) => matches!(**read, ReadSpec::Web(_)),
    }
}
