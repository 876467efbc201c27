//! Effects that start runs from recorded ones: fork, start again, continue.
//!
//! The recorded run that was read last.

use std::sync::{Arc, Mutex, PoisonError};

use super::{EffectResult, LaunchExtras, Services};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::engine::{RunHandle, Schedule};
use crate::host::kept_runs::{PreparedResume, prepare_resume};
use crate::host::models;
use crate::host::recorded::{
    ForkChanges, PreparedFork, RecordedRun, RecordedRunError, fork_failure, fork_places,
    prepare_fork, repeat_fork,
};
use crate::log::event::RunId;
use crate::log::event::head::ForkOrigin;
use crate::log::world::run_row::RunRow;
use crate::run::questions::PeopleMode;
use crate::scenario::Override;
use crate::scenario::catalogue::ScenarioEntry;
use crate::screen::Msg;
use crate::screen::action::Action;
use crate::screen::effect::{ForkRequest, LaunchRequest, RecordedSource, RequestId, RunBeginning};
use crate::screen::form::fork::ForkOffer;
use crate::screen::keymap::key_of;
use crate::store::database::Database;

impl Services {
    /// Does blocking work that starts a run; an error is the answer to the request.
    fn starting(
        &self,
        request: RequestId,
        work: impl FnOnce(&Self) -> Result<(), Refused> + Send + 'static,
    ) {
        self.in_background(move |services| {
            if let Err(why) = work(&services) {
                services.not_started(request, &why);
            }
        });
    }

    /// Answers a request: its run was not started.
    pub(super) fn not_started(&self, request: RequestId, why: &Refused) {
        self.send_msg(Msg::StartFailed { request, text: format!("{why:#}") });
    }

    /// Reads a run to fork it.
    pub fn read_fork(&self, source: RecordedSource) {
        self.starting(source.request, move |services| {
            let request = source.request;
            let recorded = Arc::new(services.read_recorded(source)?);
            let services = services.clone();
            services.recorded.keep(&recorded);
            services.runtime.clone().spawn(async move {
                match offer(&recorded).await {
                    Ok(fork) => services.send_msg(Msg::ForkReady { request, fork: Box::new(fork) }),
                    Err(why) => services.not_started(request, &why),
                }
            });
            Ok(())
        });
    }

    /// Starts a run with the settings of a recorded one.
    pub fn restart(&self, source: RecordedSource) {
        self.starting(source.request, move |services| {
            let id = source.request;
            let recorded = services.read_recorded(source)?;
            let model = recorded.model()?;
            let (scenario, begins) = match recorded.forked()? {
                None => (recorded.scenario(&[])?, RunBeginning::New),
                Some(fork) => {
                    let scenario = recorded.scenario(&[])?;
                    let request = services.same_fork(&recorded, fork)?;
                    (scenario, RunBeginning::Fork(request))
                }
            };
            let record = recorded.record()?;
            let schedule = Schedule {
                flags: record.flags.clone(),
                breaks: record.pauses.clone(),
                start_paused: false,
            };
            services.add(id, LaunchExtras { schedule, ..LaunchExtras::default() });
            services.start_now(LaunchRequest {
                id,
                scenario: Arc::new(scenario),
                model,
                flags: recorded.start_flags(),
                seed: Some(recorded.seed()),
                begins,
            });
            Ok(())
        });
    }

    /// The request for a fork that is like this one.
    fn same_fork(&self, recorded: &RecordedRun, fork: &ForkOrigin) -> Result<ForkRequest, Refused> {
        let lost = format_args!("{} is a fork of {}", recorded.id, fork.parent);
        let parent = self.stored(&fork.parent).or_refuse(lost)?;
        let (parent, set) = repeat_fork(recorded, parent)?;
        self.recorded.keep(&Arc::new(parent));
        let (run, at, flags) = (fork.parent.clone(), fork.at.clone(), fork.flags.clone());
        Ok(ForkRequest { run, at, set, flags })
    }

    /// Starts a fork of the run that was read last.
    pub(super) fn fork_now(&self, request: LaunchRequest, fork: &ForkRequest) {
        let id = request.id;
        let stop = |why: &Refused| self.not_started(id, why);
        let Some(recorded) = self.recorded.get(&fork.run) else {
            let key = key_of(Action::Fork);
            let why = Refused::new(format!("{} was read too long ago", fork.run));
            return stop(&why.help(format!("press {key} again")));
        };
        let changes = ForkChanges {
            set: fork.set.clone(),
            flags: fork.flags.clone(),
            later: Vec::new(),
            model: Some(request.model.clone()),
        };
        let with = (&self.models, &self.trust);
        let at = fork.at.clone();
        let people = Some(PeopleMode::Wait);
        match prepare_fork(&recorded, at, &changes, people, with, |_, _| false) {
            Ok(PreparedFork { launch, fork, notes }) => {
                notes.into_iter().for_each(|note| self.send_msg(Msg::Notice(note)));
                self.start_when_live(request, self.engine.fork(launch, fork));
            }
            Err(RecordedRunError::Refused(why)) => stop(&why),
            Err(RecordedRunError::Permission(_, consent)) => {
                self.send_msg(Msg::Untrusted { request: Box::new(request), consent });
            }
        }
    }

    /// Answers a request when its run is live, or cannot become so.
    fn start_when_live(&self, request: LaunchRequest, run: RunHandle) {
        let services = self.clone();
        let facts = Box::new(run.first_reader());
        self.runtime.spawn(async move {
            match run.wait_until_live().await {
                Ok(()) => services.answer(EffectResult::Started {
                    request: request.id,
                    run,
                    facts,
                    launch: Some(Box::new(request)),
                }),
                Err(error) => {
                    let why = match &request.begins {
                        RunBeginning::Fork(fork) => fork_failure(&fork.run, &fork.at, error),
                        _ => {
                            Refused::new(format!("{} cannot be continued", run.id())).because(error)
                        }
                    };
                    services.not_started(request.id, &why);
                }
            }
        });
    }

    /// Reads a recorded run: from its page, or from the store.
    pub(super) fn read_recorded(&self, source: RecordedSource) -> Result<RecordedRun, Refused> {
        match source.events {
            Some(events) => RecordedRun::new(source.run, events, source.imported),
            None => self.stored(&source.run),
        }
    }
}

/// What the form of a fork starts from.
async fn offer(recorded: &RecordedRun) -> Result<ForkOffer, Refused> {
    let places = fork_places(recorded).await?;
    if places.is_empty() {
        let what = format!("{} came to no boundary: there is nothing to fork", recorded.id);
        return Err(Refused::new(what));
    }
    let (scenario, source) = (recorded.scenario(&[])?, &recorded.record()?.source);
    let set: Vec<Override> = source.set.iter().filter_map(|set| set.parse().ok()).collect();
    let live = models::offer(&scenario, recorded.model()?.name().as_deref());
    let entry = ScenarioEntry {
        name: scenario.name.clone(),
        path: recorded.id.to_string(),
        origin: scenario.origin.clone(),
        text: Arc::clone(&source.text),
        loaded: Ok(Arc::new(scenario)),
        live,
    };
    Ok(ForkOffer { run: recorded.id.clone(), entry, set, model: recorded.model()?, places })
}

impl Services {
    fn row(&self, run: &RunId) -> Result<(&Database, RunRow), Refused> {
        let database = self.kept.database();
        let database = database.or_refuse(format_args!("{run} is not kept"))?;
        let row = database.run(run.as_str())?;
        Ok((database, row.or_refuse(format_args!("{run} is no longer kept"))?))
    }

    /// Reads a run of the store, or of the cluster.
    pub(super) fn stored(&self, run: &RunId) -> Result<RecordedRun, Refused> {
        let (database, row) = match (self.row(run), self.of_cluster(run)) {
            (Ok(found), _) => found,
            (Err(_), Some(recorded)) => return recorded,
            (Err(why), None) => return Err(why),
        };
        RecordedRun::read(database, &row)
    }

    fn of_cluster(&self, run: &RunId) -> Option<Result<RecordedRun, Refused>> {
        let events = crate::terminal::effects::remote::remote_events(self, run)?;
        Some(events.and_then(|events| RecordedRun::new(run.clone(), events, true)))
    }

    /// Continues a run that was interrupted.
    pub fn resume(&self, request: RequestId, run: RunId) {
        self.starting(request, move |services| {
            let recorded = services.stored(&run)?;
            let request = LaunchRequest {
                id: request,
                scenario: Arc::new(recorded.scenario(&[])?),
                model: recorded.model()?,
                flags: Vec::new(),
                seed: None,
                begins: RunBeginning::Resume(run.clone()),
            };
            services.resume_now(request, &run);
            Ok(())
        });
    }

    pub(crate) fn resume_now(&self, request: LaunchRequest, run: &RunId) {
        let stop = |why: &Refused| self.not_started(request.id, why);
        let (database, row) = match self.row(run) {
            Ok(found) => found,
            Err(why) => return stop(&why),
        };
        let with = (&self.models, &self.trust);
        let people = Some(PeopleMode::Wait);
        match prepare_resume(database, &row, people, with, |_, _| false) {
            Ok(PreparedResume { launch, resumption, notes }) => {
                notes.into_iter().for_each(|note| self.send_msg(Msg::Notice(note)));
                match self.engine.resume(launch, resumption) {
                    Ok(handle) => self.start_when_live(request, handle),
                    Err(error) => stop(&Refused::new(error.to_string())),
                }
            }
            Err(RecordedRunError::Refused(why)) => stop(&why),
            Err(RecordedRunError::Permission(_, consent)) => {
                self.send_msg(Msg::Untrusted { request: Box::new(request), consent });
            }
        }
    }
}

/// The recorded run that was read last. A clone refers to the same one.
#[derive(Clone, Default)]
pub struct LastRecorded(Arc<Mutex<Option<Arc<RecordedRun>>>>);

impl LastRecorded {
    /// Keeps a run until the next one is read.
    pub fn keep(&self, run: &Arc<RecordedRun>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(run));
    }

    /// The run that was read last, if it is this one.
    pub fn get(&self, run: &RunId) -> Option<Arc<RecordedRun>> {
        let recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.as_ref().filter(|recorded| recorded.id == *run).cloned()
    }
}
