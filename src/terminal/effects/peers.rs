//! Runs of other processes of this user in the dashboard: each is followed as soon as its process is found, so
//! it is listed and shown like a run of this one, with every pane and its live text. Commands go to its
//! process.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::{EffectResult, Services};
use crate::base::refused::Refused;
use crate::host;
use crate::host::peers::{FoundPeers, Peer, PeerLog, PeerNews, PeerRun};
use crate::log::bus::{Bus, LogLimits};
use crate::log::event::{Command, Elapsed, Event, EventKind, QuestionId, RunId, Seq};
use crate::screen::Msg;
use crate::screen::effect::RequestId;
use crate::screen::msg::PartialText;
use crate::screen::run::origin::RemoteRun;

/// Memory of a log that is followed, as of a run of this program.
const LIMITS: LogLimits = LogLimits { window: 96 << 20, ahead: 24 << 20 };

impl Services {
    /// Follows the runs of the other processes, and of those that start later.
    pub fn follow_peers(&self, mut found: FoundPeers) {
        let services = self.clone();
        self.runtime.spawn(async move {
            while let Some(peer) = found.recv().await {
                services.runtime.spawn(follow_peer(services.clone(), peer));
            }
        });
    }

    /// Follows a run of a process and opens it. It is known from here on.
    pub fn attach_peer(&self, peer: Peer, run: PeerRun, request: RequestId) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.insert(run.run.clone(), peer.clone());
        self.runtime.spawn(follow_run(self.clone(), peer, run, Some(request)));
    }

    /// The process that plays a run.
    fn peer_of(&self, run: &RunId) -> Option<Peer> {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.get(run).cloned()
    }
}

/// Sends a command to the process that plays a run; `false`: it is none that is known.
pub(super) fn command_peer(services: &Services, run: &RunId, command: &Command) -> bool {
    let Some(peer) = services.peer_of(run) else { return false };
    let (told, run, command) = (services.clone(), run.clone(), command.clone());
    services.runtime.spawn(async move {
        if let Err(why) = peer.send(&run, &command, &host::user_name()).await {
            told.failed("command", format!("{run}: {why:#}"));
        }
    });
    true
}

/// Asks the process that plays a run what its script would answer; `false`: it is none that is known.
pub(super) fn suggest_peer(services: &Services, run: &RunId, id: QuestionId) -> bool {
    let Some(peer) = services.peer_of(run) else { return false };
    let (services, run) = (services.clone(), run.clone());
    services.runtime.clone().spawn(async move {
        // The card has no suggestion where none comes.
        let answer = peer.suggestion(&run, id).await.ok().flatten();
        services.send_msg(Msg::Suggested { run, id, answer });
    });
    true
}

/// Follows the runs of a process, until it ends.
async fn follow_peer(services: Services, peer: Peer) {
    let Ok(mut runs) = peer.runs().await else { return };
    while let Some(run) = runs.next().await {
        let is_new = {
            let mut peers = services.peers.lock().unwrap_or_else(PoisonError::into_inner);
            peers.insert(run.run.clone(), peer.clone()).is_none()
        };
        if is_new {
            services.runtime.spawn(follow_run(services.clone(), peer.clone(), run, None));
        }
    }
}

/// Follows a run, until it or its process has ended. `opens`: the request that it is opened for.
async fn follow_run(services: Services, peer: Peer, run: PeerRun, opens: Option<RequestId>) {
    let end = match peer.follow(&run.run).await {
        Ok(log) => show_run(&services, &run, log, opens).await,
        Err(why) => match opens {
            Some(request) => {
                let text = format!("{}: {why:#}", run.run);
                return services.send_msg(Msg::StartFailed { request, text });
            }
            // It has ended meanwhile.
            None => Ok(false),
        },
    };
    services.peers.lock().unwrap_or_else(PoisonError::into_inner).remove(&run.run);
    let has_ended = end.unwrap_or_else(|why| {
        services.failed("run", format!("{}: {why:#}", run.run));
        false
    });
    services.list_followed(run.run, has_ended);
}

/// Shows a run; returns whether its end was received.
async fn show_run(
    services: &Services,
    PeerRun { run, pid, .. }: &PeerRun,
    mut log: PeerLog,
    opens: Option<RequestId>,
) -> Result<bool, Refused> {
    let zero = Instant::now().checked_sub(log.age).unwrap_or_else(Instant::now);
    let bus = Bus::mirror(LIMITS);
    let (mut batch, mut is_shown, mut pieces) = (Vec::new(), false, 0);
    let mut has_ended = false;
    while let Some(news) = log.next().await? {
        if let PeerNews::Event(event) = &news {
            has_ended |= matches!(event.kind, EventKind::RunClosed(_));
        }
        match news {
            PeerNews::Event(event) if is_shown => bus.copy(&[event]),
            PeerNews::Event(event) => batch.push(event),
            PeerNews::UpToDate if !is_shown => {
                is_shown = true;
                let facts = Box::new(bus.reader(Seq(0)));
                bus.copy(&whole(services, run, std::mem::take(&mut batch)).await);
                let (run, age) = (run.clone(), zero.elapsed());
                let remote =
                    RemoteRun { pid: Some(*pid), is_reached: true, ..RemoteRun::default() };
                let remote = Box::new(remote);
                services.answer(match opens {
                    Some(request) => {
                        EffectResult::Attached { request, run, age, facts, launch: None, remote }
                    }
                    None => EffectResult::Followed { run, age, facts, launch: None, remote },
                });
            }
            PeerNews::UpToDate => {}
            PeerNews::Text(span, text) => {
                let now = Some(Elapsed::from_duration(zero.elapsed()));
                pieces += 1;
                let text =
                    text.map(|text| PartialText { text, pieces, first_at: now, last_at: now });
                services.send_msg(Msg::Live { run: run.clone(), span, text });
            }
        }
    }
    bus.close();
    Ok(has_ended)
}

/// The events of a live run, from the first one: those that its process has dropped from memory are
/// in the store.
async fn whole(services: &Services, run: &RunId, events: Vec<Arc<Event>>) -> Vec<Arc<Event>> {
    let first = events.first().map_or(Seq(0), |event| event.seq);
    if first == Seq(0) {
        return events;
    }
    let mut all = services.kept.events_before(run, first).await;
    all.extend(events);
    all
}
