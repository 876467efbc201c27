//! A recorded run, read to be continued, repeated or forked: its events, its scenario, what it was
//! started with. The boundaries of a run are found by executing it again to a boundary that does
//! not exist.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::models::LiveModels;
use super::prepare::{PrepareError, prepare};
use super::trust::Trust;
use crate::base::name::FlagName;
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::sha256_of_text;
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::engine::{Engine, EngineSettings, ForkStart, Launch, ModelChoice, Schedule, Toolbox};
use crate::log::bus::{PassedBoundary, Recording, ReplayError};
use crate::log::event::head::{ForkOrigin, ForkPlace, LaunchRecord};
use crate::log::event::{
    AnsweredBy, BoundaryId, Command, Event, EventKind, Initiator, ModelLabel, QuestionAsked,
    QuestionId, RunId, RunStarted, Seq, World,
};
use crate::log::world::Projection;
use crate::log::world::run_row::RunRow;
use crate::run::Session;
use crate::run::questions::PeopleMode;
use crate::scenario::catalogue::RequestedModel;
use crate::scenario::spec::{InDoubt, SourceText};
use crate::scenario::{
    CheckedScenario, Consent, Override, Scenario, ScenarioOrigin, Severity, check_again, shipped,
};
use crate::store::ReadError;
use crate::store::database::Database;
use crate::words::question::{about, answer_text, answered_by};

/// Longest line about an answer, in characters.
const ANSWER_CHARS: usize = 2 * REASON_CHARS;

/// Maximum number of answers that are listed.
const MAX_LISTED: usize = 50;

/// Why a recorded run is not continued or repeated.
#[derive(Debug)]
pub enum RecordedRunError {
    Refused(Refused),
    /// The operator has not allowed what its scenario would do.
    Permission(Box<Scenario>, Consent),
}

impl From<Refused> for RecordedRunError {
    fn from(why: Refused) -> Self {
        Self::Refused(why)
    }
}

/// A run that was recorded.
pub struct RecordedRun {
    pub id: RunId,
    /// What its events say.
    pub world: World,
    events: Vec<Arc<Event>>,
    head: Arc<RunStarted>,
    /// Its log came from a file: somebody else may have written it.
    pub(crate) imported: bool,
}

impl RecordedRun {
    /// Reads a kept run. Blocks.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(database: &Database, row: &RunRow) -> Result<Self, Refused> {
        let id = &row.id;
        let events = events(database, id).or_refuse(format_args!("{id} cannot be read"))?;
        Self::new(id.clone(), events, row.imported)
    }

    /// A run with these events. `imported`: somebody else may have written them.
    ///
    /// # Errors
    /// They are not the events of a run.
    pub fn new(id: RunId, events: Vec<Arc<Event>>, imported: bool) -> Result<Self, Refused> {
        let world = World::from_events(events.iter().map(|event| &**event));
        let head = world.head.clone().or_refuse(format_args!("{id} has no head"))?;
        Ok(Self { id, world, events, head, imported })
    }

    /// Its events.
    pub fn events(&self) -> &[Arc<Event>] {
        &self.events
    }

    /// Its events, checked to be executed again.
    ///
    /// # Errors
    /// Something is wrong with them.
    pub fn recording(&self) -> Result<Recording, Refused> {
        let recording = Recording::new(self.events.clone());
        recording.or_refuse(format_args!("{} cannot be continued", self.id))
    }

    /// What it was started with.
    ///
    /// # Errors
    /// The log is one of an earlier version, or redacted, or another program played the run.
    pub fn record(&self) -> Result<&LaunchRecord, Refused> {
        let refused =
            |cause| Refused::new(format!("{} cannot be continued", self.id)).because(cause);
        if self.head.redacted {
            return Err(refused("the texts of its log are redacted"));
        }
        if self.head.model.is_observed() {
            let why = refused("another program played it");
            let command = if self.head.model.is_steered() { "guard" } else { "watch" };
            return Err(why.help(format!("start that program again with `roundtable {command}`")));
        }
        let launch = self.head.launch.as_ref();
        launch.ok_or_else(|| refused("its log does not have the text of its scenario"))
    }

    /// The scenario as the run had it, with these further overrides.
    ///
    /// # Errors
    /// Something is wrong with it.
    pub fn scenario(&self, set: &[String]) -> Result<Scenario, Refused> {
        let mut source = SourceText::clone(&self.record()?.source);
        source.set.extend(set.iter().cloned());
        scenario_of(&self.head, &source, self.imported)
    }

    /// What answered its model calls.
    ///
    /// # Errors
    /// The log is one of an earlier version, or it was another recorded run.
    pub fn model(&self) -> Result<RequestedModel, Refused> {
        let record = self.record()?;
        if let Some(run) = &record.answered_by {
            let why = Refused::new(format!("{} was answered by {run}", self.id));
            return Err(why.help(format!("start it again with --replay {run}")));
        }
        match self.head.model {
            ModelLabel::Scripted => Ok(RequestedModel::Scripted { instant: record.instant }),
            // An observed run has no record.
            ModelLabel::Live { .. } | ModelLabel::Observed { .. } => {
                Ok(RequestedModel::Live(record.model.clone()))
            }
        }
    }

    /// Where it was forked from another run; `None`: it was not.
    ///
    /// # Errors
    /// The log is one of an earlier version.
    pub fn forked(&self) -> Result<Option<&ForkOrigin>, Refused> {
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

    /// The answers to questions in a log that came from elsewhere, one line each: who gave it, and what it
    /// is about. Somebody may have written them to have a call approved. What a rule of the scenario has
    /// decided is decided again, and does not count.
    pub fn answers_from_elsewhere(&self) -> Vec<String> {
        let mut asked: BTreeMap<QuestionId, Arc<QuestionAsked>> = BTreeMap::new();
        let mut lines = Vec::new();
        let events = self.events.iter().filter(|_| self.imported);
        for event in events {
            let (id, how) = match &event.kind {
                EventKind::QuestionAsked(question) => {
                    asked.insert(question.id, Arc::clone(question));
                    continue;
                }
                EventKind::QuestionAnswered(answered) if answered.by != AnsweredBy::Rule => {
                    let by = answered_by(answered, asked.get(&answered.id).map(|it| &**it));
                    (answered.id, format!("{} ({by})", answer_text(&answered.answer)))
                }
                EventKind::CommandTaken { command, by, .. } => match &**command {
                    Command::Answer(answered) => {
                        (answered.id, format!("{} (sent by {by})", answer_text(&answered.answer)))
                    }
                    _ => continue,
                },
                _ => continue,
            };
            let what = asked
                .get(&id)
                .map_or("a question that is not in the log".into(), |it| about(&it.subject));
            lines.push(visible_within(&format!("{id} {what}: {how}"), ANSWER_CHARS));
        }
        if lines.len() > MAX_LISTED {
            let more = lines.len() - MAX_LISTED;
            lines.truncate(MAX_LISTED);
            lines.push(format!("and {more} more answers"));
        }
        lines
    }

    /// Checks that the answers of a log from elsewhere may count, and returns the scenario. `allow` is asked
    /// where it is needed.
    ///
    /// # Errors
    /// The operator has not allowed them.
    pub fn check_answers(
        &self,
        scenario: Scenario,
        trust: &Trust,
        allow: impl FnOnce(&Consent, &Scenario) -> bool,
    ) -> Result<Scenario, RecordedRunError> {
        let answers = self.answers_from_elsewhere();
        if answers.is_empty() {
            return Ok(scenario);
        }
        let lines: Result<Vec<String>, _> =
            self.events.iter().map(|event| event.to_line()).collect();
        let lines = lines.or_refuse(format_args!("{} cannot be continued", self.id))?;
        let digest = sha256_of_text(&lines.join("\n"));
        match trust.needed_for_answers(digest, answers) {
            Some(consent) if !allow(&consent, &scenario) => {
                Err(RecordedRunError::Permission(Box::new(scenario), consent))
            }
            _ => Ok(scenario),
        }
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
            Err(PrepareError::Tools(missing)) => {
                return Err(Refused::new(missing.join("; ")).into());
            }
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
            people: match (record.answerers, model) {
                (Some(choice), _) => choice.into(),
                (None, RequestedModel::Scripted { .. }) => PeopleMode::Script,
                (None, RequestedModel::Live(_)) => PeopleMode::Nobody,
            },
        };
        Ok((launch, notes))
    }
}

/// All stored events of a run. Blocks.
///
/// # Errors
/// See [`ReadError`].
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
fn scenario_of(
    head: &RunStarted,
    source: &SourceText,
    imported: bool,
) -> Result<Scenario, Refused> {
    scenario_of_text(&head.run, head.scenario.as_str(), source, imported)
}

/// The scenario of this name that a run was handed over or started with. `imported`: somebody else may
/// have written it.
///
/// # Errors
/// Something is wrong with it.
pub fn scenario_of_text(
    run: &RunId,
    name: &str,
    source: &SourceText,
    imported: bool,
) -> Result<Scenario, Refused> {
    let named = || PathBuf::from(format!("{name}.toml"));
    let shipped =
        shipped().iter().find(|it| it.name == name && (!imported || it.text == &*source.text));
    let origin = match (&source.file, shipped) {
        (Some(file), _) => ScenarioOrigin::File(PathBuf::from(file)),
        (None, Some(shipped)) => shipped.origin(),
        (None, None) => ScenarioOrigin::File(named()),
    };
    let set: Result<Vec<Override>, _> = source.set.iter().map(|set| set.parse()).collect();
    let set = set.or_refuse(format_args!("{run}: an override is wrong"))?;
    let CheckedScenario { scenario, problems } = check_again(source, origin, &set);
    let mut scenario = scenario.ok_or_else(|| {
        let what = format!("{run}: this version of roundtable does not accept its scenario");
        let first = problems.iter().find(|it| it.severity == Severity::Error);
        Refused::new(what).because(first.map(|it| problems.line(it)).unwrap_or_default())
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

/// What is different in a fork.
#[derive(Clone, Debug, Default)]
pub struct ForkChanges {
    /// Overrides of the scenario, as on the command line.
    pub set: Vec<String>,
    /// The flags to switch where the fork begins.
    pub flags: Vec<(FlagName, bool)>,
    /// The flags to switch at later boundaries.
    pub later: Vec<(BoundaryId, FlagName, bool)>,
    /// What answers its model calls; `None`: what answered those of the other run.
    pub model: Option<RequestedModel>,
}

/// A fork that can be started.
pub struct PreparedFork {
    pub launch: Launch,
    /// What it begins with.
    pub fork: ForkStart,
    /// What the operator should know, one sentence each.
    pub notes: Vec<String>,
}

/// Prepares to fork a recorded run at a boundary. `people` answer its questions; `None`: those who answered
/// the recorded run. `allow` is asked where permission is needed.
///
/// # Errors
/// See [`RecordedRunError`].
pub fn prepare_fork(
    recorded: &RecordedRun,
    at: BoundaryId,
    changes: &ForkChanges,
    people: Option<PeopleMode>,
    with: (&LiveModels, &Trust),
    mut allow: impl FnMut(&Consent, &Scenario) -> bool,
) -> Result<PreparedFork, RecordedRunError> {
    let recording = recorded.recording()?;
    let scenario = recorded.scenario(&changes.set)?;
    let later = changes.later.iter().map(|(_, flag, _)| flag);
    for flag in changes.flags.iter().map(|(flag, _)| flag).chain(later) {
        if scenario.flag(flag.as_str()).is_none() {
            return Err(Refused::new(format!("{} has no flag {flag}", recorded.id)).into());
        }
    }
    let model = match &changes.model {
        Some(model) => model.clone(),
        None => recorded.model()?,
    };
    let scenario = recorded.check_answers(scenario, with.1, &mut allow)?;
    let (mut launch, notes) = recorded.launch(scenario, &model, with, allow)?;
    launch.people = people.unwrap_or(launch.people);
    let in_doubt = launch.people.in_doubt();
    launch.schedule.flags.extend(changes.later.iter().cloned());
    // Where the other run was to pause was for who watched it.
    launch.schedule.breaks.clear();
    let flags = changes.flags.clone();
    let fork = ForkStart { recording, at, flags, by: Initiator::You, in_doubt };
    Ok(PreparedFork { launch, fork, notes })
}

/// To fork a run like before: the run that `fork` was forked from, and the overrides that `fork` has
/// beyond those of it. What an imported log says is data: its overrides were not typed by the operator,
/// so that the parent of an imported fork counts as imported too.
///
/// # Errors
/// A log is one of an earlier version, or redacted.
pub fn repeat_fork(
    fork: &RecordedRun,
    mut parent: RecordedRun,
) -> Result<(RecordedRun, Vec<String>), Refused> {
    let inherited = parent.record()?.source.set.len();
    let set = fork.record()?.source.set.iter().skip(inherited).cloned().collect();
    parent.imported |= fork.imported;
    Ok((parent, set))
}

/// Why a fork cannot be made at this boundary.
pub fn fork_failure(run: &RunId, at: &BoundaryId, error: ReplayError) -> Refused {
    let help = match &error {
        ReplayError::NotReached { .. } => {
            format!("`roundtable fork {run}` lists its boundaries")
        }
        ReplayError::Diverged(_) => {
            format!("what is different affects what comes before {at}, so fork earlier")
        }
    };
    Refused::new(format!("{run} cannot be forked at {at}")).because(error).help(help)
}

/// The boundaries that a recorded run came to, in this order. It is executed again; no model and no
/// tool is called. Must be called within a tokio runtime.
///
/// # Errors
/// It cannot be executed again.
pub async fn fork_places(recorded: &RecordedRun) -> Result<Vec<ForkPlace>, Refused> {
    let scenario = std::sync::Arc::new(recorded.scenario(&[])?);
    let launch = Launch {
        // Nothing is called before the run is live, which it never is.
        model: ModelChoice::Scripted { instant: true },
        tools: Some(Toolbox::offline(&scenario, true)),
        session: recorded.session(),
        schedule: Schedule { flags: recorded.record()?.flags.clone(), ..Schedule::default() },
        ..Launch::scripted(scenario, true)
    };
    let nowhere = ForkStart {
        recording: recorded.recording()?,
        at: BoundaryId::new(""),
        flags: Vec::new(),
        by: Initiator::You,
        in_doubt: InDoubt::Stop,
    };
    let run = Engine::new(EngineSettings::default()).fork(launch, nowhere);
    match run.wait_until_live().await {
        Err(ReplayError::NotReached { passed, .. }) => {
            let flags = recorded.flags_before(passed.iter().map(|it| it.next));
            let place = |(PassedBoundary { id, next, at }, flags)| {
                let at = recorded.world.progress.run_time(at);
                ForkPlace { id, next, at, flags }
            };
            Ok(passed.into_iter().zip(flags).map(place).collect())
        }
        Err(ReplayError::Diverged(divergence)) => {
            let what = format!("{} cannot be executed again", recorded.id);
            Err(Refused::new(what).because(divergence))
        }
        Ok(()) => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::event::head::LaunchRecord;
    use crate::log::event::{Event, EventKind, RunStarted};
    use crate::net::ProxyMode;
    use crate::scenario::spec::SourceText;
    use crate::scenario::{ShippedScenario, load, shipped};
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
    async fn imported_log_never_counts_as_shipped() {
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
            consent.map(|consent| consent.digests)
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

    /// The events of a run, as if it had been started with these overrides too.
    fn with_overrides(events: &[Arc<Event>], set: &[&str]) -> Vec<Arc<Event>> {
        let mut events = events.to_vec();
        let mut first = Event::clone(&events[0]);
        let EventKind::RunStarted(head) = &first.kind else { panic!("{first:?}") };
        let record = head.launch.clone().expect("a record");
        let set = set.iter().map(|set| (*set).to_owned()).collect();
        let source = Arc::new(SourceText { set, ..SourceText::clone(&record.source) });
        let launch = Some(LaunchRecord { source, ..record });
        first.kind =
            EventKind::RunStarted(Arc::new(RunStarted { launch, ..RunStarted::clone(head) }));
        events[0] = Arc::new(first);
        events
    }

    #[tokio::test(start_paused = true)]
    async fn finds_boundaries_with_scheduled_flag() {
        let shipped = shipped().iter().find(|it| it.name == "checkout-launch").expect("shipped");
        let scenario = load(shipped.text, shipped.origin(), &[]).expect("a good scenario");
        let flag = (BoundaryId::new("round:2"), FlagName::from("legal_analyst"), true);
        let schedule = Schedule { flags: vec![flag], ..Schedule::default() };
        let launch = Launch { schedule, ..Launch::scripted(Arc::new(scenario), true) };
        let events = table::facts(&table::engine().start(launch)).await;
        let run = RecordedRun::new(RunId::new("r-1"), events, false).expect("a run");
        let places = fork_places(&run).await.expect("the run is executed again");
        let of_lawyer = |it: &&ForkPlace| it.id.as_str() == "message:2:legal_analyst";
        assert!(places.iter().any(|it| of_lawyer(&it)), "{places:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn overrides_of_imported_fork_need_permission() {
        // It calls services, which only a shipped scenario may do without a question.
        let shipped = shipped().iter().find(|it| it.name == "real-services").expect("shipped");
        let scenario = load(shipped.text, shipped.origin(), &[]).expect("a good scenario");
        let run = table::engine().start(Launch::scripted(Arc::new(scenario), true));
        let events = table::facts(&run).await;
        let child = with_overrides(&events, &["title=Mine"]);
        let with = (&LiveModels::new(ProxyMode::Direct), &Trust::saved_in(None));
        for imported in [false, true] {
            let read = |id: &str, events: &[Arc<Event>], imported| {
                RecordedRun::new(RunId::new(id), events.to_vec(), imported).expect("a run")
            };
            let fork = read("r-child", &child, imported);
            let (parent, set) = repeat_fork(&fork, read("r-own", &events, false)).expect("a fork");
            assert_eq!(set, ["title=Mine"]);
            let changes = ForkChanges { set, ..ForkChanges::default() };
            let at = BoundaryId::new("finalize");
            let prepared = prepare_fork(&parent, at, &changes, None, with, |_, _| false);
            let asks = matches!(prepared, Err(RecordedRunError::Permission(..)));
            assert_eq!(asks, imported);
        }
    }
}
