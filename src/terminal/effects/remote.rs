//! Runs of a cluster in the dashboard: their list, and the copies of the logs that are watched. A copy is
//! a log like that of a run of this program, so every pane works on it; commands go to the cluster.
//!
//! Sends the next message of a session to the runners of a cluster.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{EffectResult, Services};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::time::now_ms;
use crate::cluster::address::ClusterAddress;
use crate::cluster::archive::RunArchive;
use crate::cluster::entry::{LogEntry, LogPart};
use crate::cluster::follow::{LogFollower, LogNews};
use crate::cluster::request::RunRequest;
use crate::cluster::rows::RunRows;
use crate::cluster::{Cluster, ConnectError, names};
use crate::host::models::LiveCalls;
use crate::host::recorded::RecordedRun;
use crate::log::bus::{Bus, LogLimits};
use crate::log::event::head::LaunchRecord;
use crate::log::event::{Command, Elapsed, Event, RunId, Seq};
use crate::scenario::catalogue::RequestedModel;
use crate::screen::Msg;
use crate::screen::effect::{FollowUp, LaunchRequest, RequestId, RunBeginning};
use crate::screen::msg::PartialText;
use crate::screen::run::origin::{AwayTime, LagMeter, RemoteRun};

/// Memory of a log that is watched, as of a run of this program.
const LIMITS: LogLimits = LogLimits { window: 96 << 20, ahead: 24 << 20 };

/// First and longest time before a server that did not answer is tried again.
const RECONNECT: Range<Duration> = Duration::from_secs(1)..Duration::from_secs(30);

/// Most runs that are followed because they wait for people.
const MAX_ASKING: usize = 100;

/// Minimum time between two updates of the list.
const LIST_EVERY: Duration = Duration::from_millis(300);

/// The cluster of a dashboard.
pub enum ShownCluster {
    /// That of the configuration: connected to while the dashboard is open.
    Configured(ClusterAddress),
    /// One that is connected, and a run of it to watch.
    Attached(Cluster, RunId, RequestId),
}

/// Watches a run of a cluster, and follows the list of its runs.
pub fn show(services: &Services, shown: ShownCluster) {
    let services = services.clone();
    services.runtime.clone().spawn(async move {
        let cluster = match shown {
            ShownCluster::Attached(cluster, run, request) => {
                let _ = services.remote.cluster.set(cluster.clone());
                services.attach(run, Some(request));
                cluster
            }
            ShownCluster::Configured(address) => match connect(&services, &address).await {
                Some(cluster) => {
                    let _ = services.remote.cluster.set(cluster.clone());
                    cluster
                }
                None => return,
            },
        };
        follow_list(&services, &cluster).await;
    });
}

/// Follows the list of runs; again while the cluster has none or does not answer.
async fn follow_list(services: &Services, cluster: &Cluster) {
    let (mut pause, mut is_said) = (RECONNECT.start, false);
    loop {
        match RunRows(cluster).follow().await {
            Ok(mut changes) => {
                (pause, is_said) = (RECONNECT.start, false);
                while let Some(change) = changes.next().await {
                    services.remote.take(change);
                    // Changes that arrive together are listed once.
                    let until = tokio::time::Instant::now() + LIST_EVERY;
                    while let Ok(Some(change)) =
                        tokio::time::timeout_at(until, changes.next()).await
                    {
                        services.remote.take(change);
                    }
                    services.list_kept();
                    services.follow_asking();
                }
            }
            Err(why) if !is_said => {
                is_said = true;
                services.failed("cluster", why);
            }
            Err(_) => {}
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RECONNECT.end);
    }
}

/// Connects to a cluster, again and again while no server answers; `None`: it refuses this program.
async fn connect(services: &Services, address: &ClusterAddress) -> Option<Cluster> {
    let mut pause = RECONNECT.start;
    loop {
        match Cluster::connect(address, "roundtable").await {
            Ok(cluster) => {
                if pause > RECONNECT.start {
                    let text = format!("the cluster is reached: {}", address.shown());
                    services.send_msg(Msg::Notice(text));
                }
                return Some(cluster);
            }
            Err(error @ ConnectError::Unreachable { .. }) => {
                if pause == RECONNECT.start {
                    services.failed("cluster", Refused::from(error));
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(RECONNECT.end);
            }
            Err(error) => {
                services.failed("cluster", Refused::from(error));
                return None;
            }
        }
    }
}

impl Services {
    /// Follows the runs that wait for people, so that their questions are in the inbox.
    fn follow_asking(&self) {
        for run in self.remote.asking().into_iter().take(MAX_ASKING) {
            self.attach(run, None);
        }
    }

    /// Follows a run of the cluster, and opens it for a request. If it is followed already and not shown yet,
    /// it is opened once it is.
    pub(crate) fn attach(&self, run: RunId, request: Option<RequestId>) {
        let Some(cluster) = self.remote.cluster.get().cloned() else { return };
        {
            let mut followed = self.remote.followed.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(opened) = followed.get_mut(&run) {
                *opened = request.or(*opened);
                return;
            }
            followed.insert(run.clone(), request);
        }
        let services = self.clone();
        self.runtime.spawn(async move {
            let follower = cluster.follow(&run);
            let mut attached = AttachedRun {
                services: services.clone(),
                run: run.clone(),
                bus: None,
                remote: RemoteRun { is_reached: true, ..RemoteRun::default() },
                claims: 0,
                stored_ms: 0,
                lag: LagMeter::default(),
                missed: None,
                zero: Arc::new(Mutex::new(Instant::now())),
                is_taken_over: false,
            };
            let watched = attached.watch(&cluster, follower).await;
            let request = services.remote.opened_for(&run);
            services.remote.followed.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
            match (watched, request) {
                (Ok(()), Some(_)) => {}
                (Ok(()), None) => services.send_msg(Msg::FollowEnded { run, has_ended: false }),
                (Err(why), Some(request)) if attached.bus.is_none() => {
                    services
                        .send_msg(Msg::StartFailed { request, text: format!("{run}: {why:#}") });
                }
                (Err(why), Some(_)) => services.failed("cluster", format!("{run}: {why:#}")),
                // The list follows it again.
                (Err(why), None) => tracing::debug!("{run} is not followed: {why:#}"),
            }
        });
    }
}

/// Sends a command to the runner that owns a run; `false`: the run is not one of the cluster.
pub(super) fn command_remote(services: &Services, run: &RunId, command: Command) -> bool {
    let Some(cluster) = services.remote.cluster.get().cloned() else { return false };
    if services.remote.log(run).is_none() {
        return false;
    }
    let (told, run) = (services.clone(), run.clone());
    services.runtime.spawn(async move {
        if let Err(why) = cluster.send_command(&run, &command, &names::user_name()).await {
            told.failed("command", why);
        }
    });
    true
}

/// All events of a run of the cluster so far; `None`: the cluster lists no such run. Blocks.
pub(super) fn remote_events(
    services: &Services,
    run: &RunId,
) -> Option<Result<Vec<Arc<Event>>, Refused>> {
    let cluster = services.remote.cluster.get().filter(|_| services.remote.has(run))?;
    Some(services.runtime.block_on(events_of(cluster, run)))
}

/// All events of a run so far.
async fn events_of(cluster: &Cluster, run: &RunId) -> Result<Vec<Arc<Event>>, Refused> {
    let unread = format!("{run} cannot be read");
    let log = RunArchive(cluster).whole_log(run).await.or_refuse(&unread)?;
    let log = log.or_refuse(NO_EVENTS)?;
    log.events(Seq(0)).or_refuse(&unread)
}

/// What is wrong with a run of a cluster.
const NO_EVENTS: &str = "the cluster has no events of such a run";
const UNREAD: &str = "the log cannot be read";

/// A run that is watched.
struct AttachedRun {
    services: Services,
    run: RunId,
    /// The copy of its log, once it is on the screen.
    bus: Option<Bus>,
    remote: RemoteRun,
    claims: u32,
    /// When the last group was stored, as Unix time in milliseconds of the server.
    stored_ms: u64,
    lag: LagMeter,
    /// The events since the connection was back, until all of them are here; none yet: an inner `None`.
    missed: Option<Option<AwayTime>>,
    /// When the clock of the run was zero.
    zero: Arc<Mutex<Instant>>,
    /// Another runner continues the run: its clock counts from the next events on.
    is_taken_over: bool,
}

impl AttachedRun {
    async fn watch(&mut self, cluster: &Cluster, mut follower: LogFollower) -> Result<(), Refused> {
        let mut first: Vec<Arc<Event>> = Vec::new();
        loop {
            let Some(news) = follower.news().await else { break };
            match news.or_refuse(UNREAD)? {
                LogNews::Entry(entry) => self.take(entry, &mut first)?,
                LogNews::UpToDate if self.bus.is_none() && first.is_empty() => {
                    if self.claims == 0 && !self.has_log(cluster).await? {
                        return Err(Refused::new(NO_EVENTS));
                    }
                    let text = format!("{} waits for a runner", self.run);
                    self.services.send_msg(Msg::Notice(text));
                }
                LogNews::UpToDate => {
                    self.show(cluster, &mut first);
                    self.caught_up();
                }
                LogNews::LinkLost => {
                    self.remote.is_reached = false;
                    self.send_state();
                }
                LogNews::LinkBack => {
                    self.remote.is_reached = true;
                    self.remote.lag_ms = 0;
                    self.missed = Some(None);
                    self.send_state();
                }
            }
        }
        self.show(cluster, &mut first);
        self.caught_up();
        if let Some(bus) = &self.bus {
            bus.close();
        }
        Ok(())
    }

    async fn has_log(&self, cluster: &Cluster) -> Result<bool, Refused> {
        Ok(cluster.last_entry(&self.run).await.or_refuse(UNREAD)?.is_some())
    }

    fn take(&mut self, entry: LogEntry, first: &mut Vec<Arc<Event>>) -> Result<(), Refused> {
        match entry.part {
            LogPart::Claimed(claim) => {
                self.claims += 1;
                self.remote.runner = claim.runner;
                self.remote.epoch = entry.place;
                self.remote.takeovers = self.claims - 1;
                self.is_taken_over = self.claims > 1;
                self.send_state();
            }
            LogPart::Events(group) => {
                let events = group.events(Seq(0)).or_refuse(UNREAD)?;
                self.stored_ms = entry.stored_ms;
                if let (Some(missed), [first, .., last] | [first @ last]) =
                    (&mut self.missed, &events[..])
                {
                    let before =
                        missed.unwrap_or(AwayTime { from: first.at, until: last.at, events: 0 });
                    let events = before.events + events.len() as u64;
                    *missed = Some(AwayTime { until: last.at, events, ..before });
                }
                match &self.bus {
                    Some(bus) => {
                        bus.copy(&events);
                        if let Some(last) = events.last().filter(|_| self.is_taken_over) {
                            self.is_taken_over = false;
                            let age = self.set_clock(last.at);
                            let run = self.run.clone();
                            self.services.answer(EffectResult::Clock(run, age));
                        }
                        self.measure_lag();
                    }
                    None => first.extend(events),
                }
            }
            LogPart::Released(_) => {
                self.remote.runner.clear();
                self.send_state();
            }
            LogPart::Requested(_) | LogPart::Elsewhere(..) => {}
        }
        Ok(())
    }

    /// Shows the run, from its beginning to its last stored event.
    fn show(&mut self, cluster: &Cluster, first: &mut Vec<Arc<Event>>) {
        let Some(last) = first.last().filter(|_| self.bus.is_none()) else { return };
        let age = self.set_clock(last.at);
        let request = self.services.remote.opened_for(&self.run);
        let launch = next_launch(&self.run, first);
        let bus = Bus::mirror(LIMITS);
        let reader = bus.reader(Seq(0));
        bus.copy(first);
        first.clear();
        let remote = &self.services.remote;
        remote
            .watched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(self.run.clone(), bus.clone());
        self.bus = Some(bus);
        let (run, facts) = (self.run.clone(), Box::new(reader));
        let remote = Box::new(self.remote.clone());
        self.services.answer(match request {
            Some(request) => EffectResult::Attached { request, run, age, facts, launch, remote },
            None => EffectResult::Followed { run, age, facts, launch, remote },
        });
        let zero = Arc::clone(&self.zero);
        follow_text(self.services.clone(), cluster.clone(), self.run.clone(), zero);
    }

    /// Sets the clock of the run by its last event, which was stored just now or some time ago; returns how
    /// long ago it was zero. The clock of the server may be another one: a run is never shown as older
    /// than a minute more.
    fn set_clock(&self, last: Elapsed) -> Duration {
        let since = Duration::from_millis(now_ms().saturating_sub(self.stored_ms));
        let age = last.duration() + since.min(Duration::from_secs(60));
        let now = Instant::now();
        let zero = now.checked_sub(age).unwrap_or(now);
        *self.zero.lock().unwrap_or_else(PoisonError::into_inner) = zero;
        age
    }

    /// Everything that came while the connection was lost is here.
    fn caught_up(&mut self) {
        let Some(missed) = self.missed.take() else { return };
        let events = missed.map_or(0, |missed| missed.events);
        let events = crate::words::format::count_noun(events, "event");
        let text = format!("{}: {events} while the cluster was not reached", self.run);
        self.services.send_msg(Msg::Notice(text));
        if let Some(missed) = missed {
            self.remote.note_away(missed);
            self.send_state();
        }
    }

    /// How late the last group was.
    fn measure_lag(&mut self) {
        // Events that are read from the stream or the archive are older.
        if self.missed.is_some() || self.stored_ms == 0 {
            return;
        }
        let was_slow = self.remote.trouble().is_some();
        self.remote.lag_ms = self.lag.arrived(self.stored_ms, now_ms());
        if was_slow || self.remote.trouble().is_some() {
            self.send_state();
        }
    }

    fn send_state(&self) {
        if self.bus.is_some() {
            let (run, remote) = (self.run.clone(), Box::new(self.remote.clone()));
            self.services.send_msg(Msg::Remote { run, remote });
        }
    }
}

/// Shows the text that is received in a run.
fn follow_text(services: Services, cluster: Cluster, run: RunId, zero: Arc<Mutex<Instant>>) {
    services.runtime.clone().spawn(async move {
        let mut texts = match cluster.live_texts(&run).await {
            Ok(texts) => texts,
            Err(why) => return services.failed("cluster", why),
        };
        let mut pieces = 0;
        while let Some(live) = texts.next().await {
            let zero = *zero.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Elapsed::from_duration(zero.elapsed());
            pieces += 1;
            let text = live.text.map(|text| PartialText {
                text,
                pieces,
                first_at: Some(now),
                last_at: Some(now),
            });
            services.send_msg(Msg::Live { run: run.clone(), span: live.span, text });
        }
    });
}

impl Services {
    /// Hands the next message of a session over to the runners of the cluster, and watches its run.
    pub(super) fn hand_over_now(&self, request: LaunchRequest, follows: &FollowUp) {
        let Some(cluster) = self.remote.cluster.get().cloned() else { return };
        let id = request.id;
        // A runner has no operator to ask.
        let live = matches!(request.model, RequestedModel::Live(_));
        let calls = live.then_some(LiveCalls::OnRunner);
        if let Some(consent) = self.trust.needed_consent(&request.scenario, calls) {
            self.send_msg(Msg::Untrusted { request: Box::new(request), consent });
            return;
        }
        let next = RunRequest::of(&request.scenario);
        let next = RunRequest {
            launch: LaunchRecord {
                instant: matches!(request.model, RequestedModel::Scripted { instant: true }),
                model: request.model.name(),
                ..next.launch
            },
            live,
            flags: request.flags.clone(),
            seed: request.seed,
            message: Some(follows.text.to_string()),
            after: Some(follows.run.clone()),
            pool: self.remote.pool(&follows.run).unwrap_or(next.pool),
            by: names::user_name(),
            wall_ms: now_ms(),
            ..next
        };
        let services = self.clone();
        self.runtime.spawn(async move {
            match cluster.hand_over(next).await {
                Ok(handed) => services.attach(handed.run, Some(id)),
                Err(why) => services.not_started(id, &why),
            }
        });
    }
}

/// The request that the next message of a run's session starts from; `None`: its pattern has no
/// sessions.
fn next_launch(run: &RunId, events: &[Arc<Event>]) -> Option<Box<LaunchRequest>> {
    let recorded = RecordedRun::new(run.clone(), events.to_vec(), true).ok()?;
    recorded.session()?;
    Some(Box::new(LaunchRequest {
        // The next message has a request of its own.
        id: RequestId(0),
        scenario: Arc::new(recorded.scenario(&[]).ok()?),
        model: recorded.model().ok()?,
        flags: recorded.start_flags(),
        seed: Some(recorded.seed()),
        begins: RunBeginning::New,
    }))
}
