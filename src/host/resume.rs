//! Continues kept runs whose process ended before they did.

use std::path::PathBuf;
use std::sync::Arc;

use super::keep::course_of;
use super::models::LiveModels;
use super::prepare::{PrepareError, prepare};
use super::trust::Trust;
use crate::base::digest::sha256_of_text;
use crate::bus::Recording;
use crate::engine::{Launch, Resumption, Schedule};
use crate::event::kind::{Initiator, ModelLabel, RunStarted};
use crate::event::run_row::{RunRow, RunStatus};
use crate::event::world::Projection;
use crate::event::{Event, RunId, Seq, World};
use crate::run::Session;
use crate::scenario::catalogue::RequestedModel;
use crate::scenario::consent::Consent;
use crate::scenario::spec::in_doubt::InDoubt;
use crate::scenario::spec::source_text::SourceText;
use crate::scenario::{Override, Scenario, ScenarioOrigin, load, shipped};
use crate::store::ReadError;
use crate::store::database::{Database, StoreError};

/// Why a kept run is not continued.
#[derive(Debug)]
pub enum ResumeFailure {
    /// What is wrong, in one sentence.
    Refused(String),
    /// The operator has not allowed what its scenario would do.
    Permission(Box<Scenario>, Consent),
}

impl From<String> for ResumeFailure {
    fn from(text: String) -> Self {
        Self::Refused(text)
    }
}

/// A kept run that can be continued now: this process owns it.
pub struct PreparedResume {
    /// What the run was started with.
    pub launch: Launch,
    /// Its stored events.
    pub resumption: Resumption,
    /// What the operator should know, one sentence each.
    pub notes: Vec<String>,
}

/// Prepares to continue a kept run, and takes it over. `allow` is asked where permission is needed.
/// Blocks.
///
/// # Errors
/// See [`ResumeFailure`].
pub fn prepare_resume(
    database: &Database,
    row: &RunRow,
    live: &LiveModels,
    trust: &Trust,
    allow: impl FnOnce(&Consent, &Scenario) -> bool,
) -> Result<PreparedResume, ResumeFailure> {
    let id = &row.id;
    match &row.status {
        RunStatus::Interrupted => {}
        RunStatus::Running => return Err(format!("{id} is played by another process").into()),
        RunStatus::Ended(reason) => {
            return Err(format!("{id} has ended ({reason}): there is nothing to continue").into());
        }
    }
    let events = events(database, id).map_err(|error| format!("{id} cannot be read: {error}"))?;
    let world = World::from_events(events.iter().map(|event| &**event));
    if world.progress.closed.is_some() {
        // Its process died between its last event and its row.
        close_row(database, id, &world).map_err(|error| error.to_string())?;
        return Err(format!("{id} has ended: there is nothing to continue").into());
    }
    let recording =
        Recording::new(events).map_err(|error| format!("{id} cannot be continued: {error}"))?;
    let head = world.head.as_ref().ok_or_else(|| format!("{id} has no head"))?;
    if head.redacted {
        return Err(format!("{id} cannot be continued: the texts of its log are redacted").into());
    }
    let record = head.launch.as_ref().ok_or_else(|| {
        format!("{id} cannot be continued: its log does not have the text of its scenario")
    })?;
    let scenario = scenario_of(head, &record.source, row.imported)?;
    let wanted = match head.model {
        ModelLabel::Scripted => RequestedModel::Scripted { instant: record.instant },
        ModelLabel::Live { .. } => RequestedModel::Live(record.model.clone()),
    };
    let prepared = prepare(live, trust, &scenario, &wanted, 1, |consent| allow(consent, &scenario));
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(PrepareError::Endpoint(why)) => return Err(why.into()),
        Err(PrepareError::Tools(missing)) => return Err(missing.join("; ").into()),
        Err(PrepareError::Permission(consent)) => {
            return Err(ResumeFailure::Permission(Box::new(scenario), consent));
        }
    };
    let owned = database.take_over(id).map_err(|error| error.to_string())?;
    if owned.is_none() {
        return Err(format!("{id} is played by another process").into());
    }
    let (notes, session) = (prepared.notes(), session_of(&world));
    let launch = Launch {
        scenario: Arc::new(scenario),
        model: prepared.model,
        tools: prepared.toolboxes.into_iter().next(),
        flags: Vec::new(),
        schedule: Schedule {
            flags: record.flags.clone(),
            breaks: record.pauses.clone(),
            start_paused: false,
        },
        seed: Some(head.seed),
        requested_model: record.model.clone(),
        session,
    };
    // Without a dashboard there is no one to ask.
    let (by, in_doubt) = (Initiator::You, InDoubt::Stop);
    let resumption = Resumption { recording, by, in_doubt };
    Ok(PreparedResume { launch, resumption, notes })
}

/// All stored events of a run. Blocks.
///
/// # Errors
/// See [`ReadError`].
pub fn events(database: &Database, run: &RunId) -> Result<Vec<Arc<Event>>, ReadError> {
    let (mut all, mut from) = (Vec::new(), Seq(0));
    loop {
        let read = database
            .some_groups(run, from)
            .map_err(|error| ReadError::Unreadable(error.to_string()))?;
        let (groups, _) = read.ok_or(ReadError::NoSuchRun)?;
        if groups.is_empty() {
            return Ok(all);
        }
        for group in groups {
            all.extend(group.events(from)?);
            from = group.next();
        }
    }
}

/// Writes the end of a run into its row.
fn close_row(database: &Database, run: &RunId, world: &World) -> Result<(), StoreError> {
    database.update_now(run, &course_of(world))
}

/// The scenario as the run had it, whatever its file says today. What an imported log says is data: it
/// does not make a scenario a shipped one, and its overrides were not typed by the operator.
fn scenario_of(head: &RunStarted, source: &SourceText, imported: bool) -> Result<Scenario, String> {
    let named = || PathBuf::from(format!("{}.toml", head.scenario));
    let shipped = shipped()
        .iter()
        .find(|it| it.name == head.scenario.as_str() && (!imported || it.text == &*source.text));
    let origin = match (&source.file, shipped) {
        (Some(file), _) => ScenarioOrigin::File(PathBuf::from(file)),
        (None, Some(shipped)) => shipped.origin(),
        (None, None) => ScenarioOrigin::File(named()),
    };
    let set: Result<Vec<Override>, _> = source.set.iter().map(|set| set.parse()).collect();
    let set = set.map_err(|error| format!("{}: an override is wrong: {error}", head.run))?;
    let mut scenario = load(&source.text, origin, &set).map_err(|problems| {
        format!(
            "{}: this version of roundtable does not accept its scenario: {}",
            head.run,
            problems.iter().next().map(|problem| problems.line(problem)).unwrap_or_default()
        )
    })?;
    if imported && !set.is_empty() {
        // A permission for the file alone, or for a shipped one, does not hold for these overrides.
        let text = format!("{}\0{}", source.text, source.set.join("\0"));
        scenario.hash = sha256_of_text(&text);
        scenario.origin =
            ScenarioOrigin::File(source.file.as_ref().map_or_else(named, PathBuf::from));
    }
    Ok(scenario)
}

/// The message of a session that the run answers.
fn session_of(world: &World) -> Option<Session> {
    world.projection().and_then(Projection::session).map(Session::of_head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::ShippedScenario;
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
