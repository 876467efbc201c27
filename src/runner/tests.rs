//! Runners in this process, over a real NATS server: commands while no runner owns a run, and runs of
//! newer versions.

use std::sync::Arc;

use tokio::time::timeout;

use super::RunnerNews;
use crate::cluster::Cluster;
use crate::cluster::entry::{LogEntry, LogPart};
use crate::cluster::follow::LogNews;
use crate::cluster::request::RunRequest;
use crate::event::kind::{Initiator, SCHEMA_VERSION};
use crate::event::world::Projection;
use crate::event::{Command, Event, EventKind, RunId, Seq, World};
use crate::support::own_runner::{OwnRunner, PATIENCE, cluster, request};

/// The events of a run up to the first of this kind, or to its end.
async fn events_until(cluster: &Cluster, run: &RunId, kind: &str) -> Vec<Arc<Event>> {
    let (mut follower, mut all) = (cluster.follow(run), Vec::new());
    loop {
        let news = timeout(PATIENCE, follower.news()).await.expect("in time");
        let Some(news) = news else { return all };
        if let LogNews::Entry(LogEntry { part: LogPart::Events(group), .. }) = news.expect("read") {
            all.extend(group.events(Seq(0)).expect("events"));
        }
        if all.iter().any(|event| event.kind.name() == kind) {
            return all;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_sent_while_no_runner_owns_a_run_are_taken_once_by_the_next_one() {
    let Some((server, cluster)) = cluster().await else { return };
    let mut first = OwnRunner::start(&server.url(), "a");
    let run =
        cluster.hand_over(request("checkout-launch", &["round:2"])).await.expect("stored").run;
    first.until(|news| matches!(news, RunnerNews::Plays(..))).await;
    events_until(&cluster, &run, "paused").await;
    drop(first);

    // The flag is switched off and on again: the last one counts, and both are in the log.
    let flag = |on| Command::SetFlag { flag: "legal_analyst".into(), on, by: Initiator::You };
    let resume = Command::Resume { by: Initiator::You };
    for command in [flag(true), flag(false), flag(true), resume] {
        cluster.send_command(&run, &command, "ann@there").await.expect("stored");
    }
    let mut second = OwnRunner::start(&server.url(), "b");
    let events = events_until(&cluster, &run, "run.closed").await;
    second.until(|news| matches!(news, RunnerNews::Ended(..))).await;

    let taken = events.iter().filter_map(|event| match &event.kind {
        EventKind::CommandTaken { by, .. } => Some(by.as_str()),
        _ => None,
    });
    assert_eq!(taken.collect::<Vec<_>>(), ["ann@there"; 4]);
    let count = |kind: &str| events.iter().filter(|event| event.kind.name() == kind).count();
    assert_eq!((count("resumed"), count("run.closed")), (1, 1));
    let world = World::from_events(events.iter().map(|event| &**event));
    let on = world.settings.flags.iter().find(|flag| flag.name == "legal_analyst".into());
    assert!(on.expect("the scenario has it").on);
    let decision = world.projection().and_then(Projection::decision);
    assert_eq!(
        decision.map(|it| it.word()),
        Some("go_with_caution"),
        "as with the flag in a local run"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_a_newer_version_is_left_to_newer_runners() {
    let Some((server, cluster)) = cluster().await else { return };
    let newer = RunRequest { schema: SCHEMA_VERSION + 1, ..request("checkout-launch", &[]) };
    let handed = cluster.hand_over(newer).await.expect("stored").run;
    let mut runner = OwnRunner::start(&server.url(), "a");
    let refused = runner.until(|news| matches!(news, RunnerNews::Refused(..))).await;
    let RunnerNews::Refused(run, why) = refused else { unreachable!() };
    assert_eq!(run, handed);
    assert!(why.contains("newer version"), "{why}");
    // Nothing was added to its log, and it still waits for a runner.
    let entries = cluster.entries(&handed).await.expect("read");
    assert!(matches!(&entries[..], [LogEntry { part: LogPart::Requested(_), .. }]));
    assert!(cluster.queued_runs().await.expect("read").contains(&handed));

    // The older runner itself is well.
    let known = cluster.hand_over(request("checkout-launch", &[])).await.expect("stored").run;
    let ended = runner.until(|news| matches!(news, RunnerNews::Ended(..))).await;
    assert!(matches!(ended, RunnerNews::Ended(run, _) if run == known));
}
