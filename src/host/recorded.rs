//! A run that was recorded, read to be continued or repeated: its events, its scenario, and what it
//! was started with.

use std::path::PathBuf;
use std::sync::Arc;

use super::models::LiveModels;
use super::prepare::{PrepareError, prepare};
use super::trust::Trust;
use crate::base::digest::sha256_of_text;
use crate::base::name::FlagName;
use crate::bus::Recording;
use crate::engine::{Launch, Schedule};
use crate::event::kind::{ModelLabel, RunStarted};
use crate::event::launch::{ForkOrigin, LaunchRecord};
#[cfg(feature = "store")]
use crate::event::run_row::RunRow;
use crate::event::world::Projection;
use crate::event::{Event, EventKind, RunId, Seq, World};
use crate::run::Session;
use crate::scenario::catalogue::RequestedModel;
use crate::scenario::consent::Consent;
use crate::scenario::spec::source_text::SourceText;
use crate::scenario::{
    CheckedScenario, Override, Scenario, ScenarioOrigin, Severity, check_again, shipped,
};
#[cfg(feature = "store")]
use crate::store::{ReadError, database::Database};

/// Why a recorded run is not continued or repeated.
#[derive(Debug)]
pub enum RecordedRunError {
    /// What is wrong, in one sentence.
    Refused(String),
    /// The operator has not allowed what its scenario would do.
    Permission(Box<Scenario>, Consent),
}

impl From<String> for RecordedRunError {
    fn from(text: String) -> Self {
        Self::Refused(text)
    }
}

/// A run that was recorded.
pub struct RecordedRun {
    /// Its id.
    pub id: RunId,
    /// What its events say.
    pub world: World,
    events: Vec<Arc<Event>>,
    head: Arc<RunStarted>,
    /// Its log came from a file: somebody else may have written it.
    pub(super) imported: bool,
}

impl RecordedRun {
    /// Reads a kept run. Blocks.
    ///
    /// # Errors
    /// Why it cannot be read, in one sentence.
    #[cfg(feature = "store")]
    pub fn read(database: &Database, row: &RunRow) -> Result<Self, String> {
        let id = &row.id;
        let events =
            events(database, id).map_err(|error| format!("{id} cannot be read: {error}"))?;
        Self::new(id.clone(), events, row.imported)
    }

    /// A run with these events. `imported`: somebody else may have written them.
    ///
    /// # Errors
    /// Why they are not the events of a run, in one sentence.
    pub fn new(id: RunId, events: Vec<Arc<Event>>, imported: bool) -> Result<Self, String> {
        let world = World::from_events(events.iter().map(|event| &**event));
        let head = world.head.clone().ok_or_else(|| format!("{id} has no head"))?;
        Ok(Self { id, world, events, head, imported })
    }

    /// Its events.
    pub fn events(&self) -> &[Arc<Event>] {
        &self.events
    }

    /// Its events, checked to be executed again.
    ///
    /// # Errors
    /// What is wrong with them, in one sentence.
    pub fn recording(&self) -> Result<Recording, String> {
        Recording::new(self.events.clone())
            .map_err(|error| format!("{} cannot be continued: {error}", self.id))
    }

    /// What it was started with.
    ///
    /// # Errors
    /// The log is one of an earlier version, or redacted.
    pub fn record(&self) -> Result<&LaunchRecord, String> {
        if self.head.redacted {
            let id = &self.id;
            return Err(format!("{id} cannot be continued: the texts of its log are redacted"));
        }
        self.head.launch.as_ref().ok_or_else(|| {
            let id = &self.id;
            format!("{id} cannot be continued: its log does not have the text of its scenario")
        })
    }

    /// The scenario as the run had it, with these further overrides.
    ///
    /// # Errors
    /// What is wrong, in one sentence.
    pub fn scenario(&self, set: &[String]) -> Result<Scenario, String> {
        let mut source = SourceText::clone(&self.record()?.source);
        source.set.extend(set.iter().cloned());
        scenario_of(&self.head, &source, self.imported)
    }

    /// What answered its model calls.
    ///
    /// # Errors
    /// The log is one of an earlier version, or it was another recorded run.
    pub fn model(&self) -> Result<RequestedModel, String> {
        let record = self.record()?;
        if let Some(run) = &record.answered_by {
            let id = &self.id;
            return Err(format!("{id} was answered by {run}: start it again with --replay {run}"));
        }
        Ok(match self.head.model {
            ModelLabel::Scripted => RequestedModel::Scripted { instant: record.instant },
            ModelLabel::Live { .. } => RequestedModel::Live(record.model.clone()),
        })
    }

    /// Where it was forked from another run; `None`: it was not.
    ///
    /// # Errors
    /// The log is one of an earlier version.
    pub fn forked(&self) -> Result<Option<&ForkOrigin>, String> {
        Ok(self.record()?.forked.as_ref())
    }

    /// Seed of its random numbers.
    pub fn seed(&self) -> u64 {
        self.head.seed
    }

    /// The positions of its flags at its start.
    pub fn start_flags(&self) -> Vec<(FlagName, bool)> {
        self.head.flags.iter().map(|flag| (flag.name.clone(), flag.on)).collect()
    }

    /// The positions of its flags before each of these events, which are in their order.
    pub fn flags_before(
        &self,
        events: impl IntoIterator<Item = Seq>,
    ) -> Vec<Vec<(FlagName, bool)>> {
        let mut flags = self.start_flags();
        let mut log = self.events.iter().peekable();
        let mut before = |next: Seq| {
            while let Some(event) = log.next_if(|event| event.seq < next) {
                if let EventKind::FlagChanged { flag, on, .. } = &event.kind
                    && let Some((_, position)) = flags.iter_mut().find(|(name, _)| name == flag)
                {
                    *position = *on;
                }
            }
            flags.clone()
        };
        events.into_iter().map(&mut before).collect()
    }

    /// The message of a session that the run answers.
    pub fn session(&self) -> Option<Session> {
        self.world.projection().and_then(Projection::session).map(Session::of_head)
    }

    /// What the run is started with again, with this scenario and model, and what the operator should
    /// know. `allow` is asked where permission is needed.
    ///
    /// # Errors
    /// See [`RecordedRunError`].
    pub fn launch(
        &self,
        scenario: Scenario,
        model: &RequestedModel,
        (live, trust): (&LiveModels, &Trust),
        allow: impl FnOnce(&Consent, &Scenario) -> bool,
    ) -> Result<(Launch, Vec<String>), RecordedRunError> {
        let record = self.record()?;
        let prepared =
            prepare(live, trust, &scenario, model, 1, |consent| allow(consent, &scenario));
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(PrepareError::Endpoint(why)) => return Err(why.into()),
            Err(PrepareError::Tools(missing)) => return Err(missing.join("; ").into()),
            Err(PrepareError::Permission(consent)) => {
                return Err(RecordedRunError::Permission(Box::new(scenario), consent));
            }
        };
        let notes = prepared.notes();
        let launch = Launch {
            scenario: Arc::new(scenario),
            model: prepared.model,
            tools: prepared.toolboxes.into_iter().next(),
            flags: self.start_flags(),
            schedule: Schedule {
                flags: record.flags.clone(),
                breaks: record.pauses.clone(),
                start_paused: false,
            },
            seed: Some(self.head.seed),
            requested_model: model.name(),
            session: self.session(),
        };
        Ok((launch, notes))
    }
}

/// All stored events of a run. Blocks.
///
/// # Errors
/// See [`ReadError`].
#[cfg(feature = "store")]
pub fn events(database: &Database, run: &RunId) -> Result<Vec<Arc<Event>>, ReadError> {
    let mut all = Vec::new();
    loop {
        let next = all.last().map_or(Seq(0), |last: &Arc<Event>| Seq(last.seq.0 + 1));
        let more = events_from(database, run, next)?;
        if more.is_empty() {
            return Ok(all);
        }
        all.extend(more);
    }
}

/// Some stored events of a run from this one on; none: there are no more. Blocks.
///
/// # Errors
/// See [`ReadError`].
#[cfg(feature = "store")]
pub fn events_from(
    database: &Database,
    run: &RunId,
    mut from: Seq,
) -> Result<Vec<Arc<Event>>, ReadError> {
    let (groups, _) = database.some_groups(run, from)?.ok_or(ReadError::NoSuchRun)?;
    let mut events = Vec::new();
    for group in groups {
        events.extend(group.events(from)?);
        from = group.next();
    }
    Ok(events)
}

/// The scenario as the run had it, whatever its file says today. What an imported log says is data: it
/// does not make a scenario a shipped one, and its overrides were not typed by the operator.
fn scenario_of(head: &RunStarted, source: &SourceText, imported: bool) -> Result<Scenario, String> {
    scenario_of_text(&head.run, head.scenario.as_str(), source, imported)
}

/// The scenario of this name that a run was handed over or started with. `imported`: somebody else may
/// have written it.
///
/// # Errors
/// What is wrong, in one sentence.
pub fn scenario_of_text(
    run: &RunId,
    name: &str,
    source: &SourceText,
    imported: bool,
) -> Result<Scenario, String> {
    let named = || PathBuf::from(format!("{name}.toml"));
    let shipped =
        shipped().iter().find(|it| it.name == name && (!imported || it.text == &*source.text));
    let origin = match (&source.file, shipped) {
        (Some(file), _) => ScenarioOrigin::File(PathBuf::from(file)),
        (None, Some(shipped)) => shipped.origin(),
        (None, None) => ScenarioOrigin::File(named()),
    };
    let set: Result<Vec<Override>, _> = source.set.iter().map(|set| set.parse()).collect();
    let set = set.map_err(|error| format!("{run}: an override is wrong: {error}"))?;
    let CheckedScenario { scenario, problems } = check_again(source, origin, &set);
    let mut scenario = scenario.ok_or_else(|| {
        let first = problems.iter().find(|it| it.severity == Severity::Error);
        format!(
            "{run}: this version of roundtable does not accept its scenario: {}",
            first.map(|problem| problems.line(problem)).unwrap_or_default()
        )
    })?;
    if imported && !set.is_empty() {
        // A permission for the file alone, or for a shipped one, does not hold for these overrides.
        let text = format!("{}\0{}", source.text, source.set.join("\0"));
        scenario.hash = scenario.source.digest_with_prompts(sha256_of_text(&text));
        scenario.origin =
            ScenarioOrigin::File(source.file.as_ref().map_or_else(named, PathBuf::from));
    }
    Ok(scenario)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use crate::scenario::{ShippedScenario, load};
    use crate::support::table;

    fn named(name: &str) -> &'static ShippedScenario {
        shipped().iter().find(|it| it.name == name).expect("shipped")
    }

    /// The head of a run, as if it were one of this scenario.
    async fn head(name: &str) -> RunStarted {
        let found = named("checkout-unanimous");
        let scenario = load(found.text, found.origin(), &[]).expect("a good scenario");
        let run = table::engine().start(Launch::scripted(Arc::new(scenario), true));
        let events = table::facts(&run).await;
        let world = World::from_events(events.iter().map(|event| &**event));
        let head = RunStarted::clone(world.head.as_ref().expect("a head"));
        RunStarted { scenario: name.into(), ..head }
    }

    #[tokio::test(start_paused = true)]
    async fn an_imported_log_does_not_pass_for_a_shipped_scenario() {
        // It calls services, which only a shipped scenario may do without a question.
        let head = head("real-services").await;
        let text = named("real-services").text;
        let source = |text: &str, set: &[&str], file: Option<&str>| SourceText {
            text: text.into(),
            set: set.iter().map(|set| (*set).to_owned()).collect(),
            file: file.map(str::to_owned),
            prompt_files: BTreeMap::new(),
        };
        let trust = Trust::saved_in(None);
        let asks = |source: &SourceText, imported| {
            let scenario = scenario_of(&head, source, imported).expect("a scenario");
            let consent = trust.needed_consent(&scenario, None);
            consent.map(|consent| consent.digest)
        };
        let changed = format!("{text}\n# changed\n");
        for (imported, expected) in [(false, false), (true, true)] {
            let question = |source: &SourceText| asks(source, imported).is_some();
            assert!(!question(&source(text, &[], None)), "the shipped text itself");
            assert_eq!(question(&source(&changed, &[], None)), expected, "its name, another text");
            let set = source(text, &["title=Mine"], None);
            assert_eq!(question(&set), expected, "its text, with overrides");
        }
        // The permission for one set of overrides is not one for another.
        let [one, other] = ["title=Mine", "title=Yours"]
            .map(|set| asks(&source(text, &[set], Some("/tmp/a.toml")), true).expect("asks"));
        assert_ne!(one, other);
    }
}
