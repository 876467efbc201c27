//! Logs of runs that have ended, in the archive: how they get there, and how they are read.

use futures::StreamExt as _;
use tokio::time::timeout;

use super::{claim, group, owned, request};
use crate::cluster::archive::RunArchive;
use crate::cluster::claim::Claimed;
use crate::cluster::entry::{LogEntry, LogPart};
use crate::cluster::follow::{LogFollower, LogNews};
use crate::cluster::hand_over::begin_run;
use crate::cluster::{Cluster, ClusterLog};
use crate::event::{Elapsed, Event, RunId, Seq, SpanId};
use crate::store::{AppendError, EventGroup, ReadError, RunLog as _};
use crate::support::facts;
use crate::support::own_runner::{PATIENCE, cluster};

/// The end of a run.
fn end_of(run: &RunId, seq: u64) -> EventGroup {
    let end = facts::decided().log.last().expect("an end").kind.clone();
    let mut group = EventGroup::starting_at(Seq(seq));
    let event = Event { seq: Seq(seq), at: Elapsed(seq), span: SpanId::RUN, kind: end };
    group.push(&event, run).expect("a line");
    group
}

/// A run with two events and its end; its lines.
async fn ended(cluster: &Cluster, run: &RunId) -> (ClusterLog, Vec<u8>) {
    let log = owned(cluster, run, "a").await;
    let (first, end) = (group(run, 0, &["0", "1"]), end_of(run, 2));
    log.append(run, Seq(0), &first).await.expect("stored");
    log.append(run, Seq(2), &end).await.expect("stored");
    (log, [first.lines(), end.lines()].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_a_run_that_ended_is_read_from_the_archive() {
    let Some((_server, cluster)) = cluster().await else { return };
    let run = RunId::new("r-1");
    let (_log, lines) = ended(&cluster, &run).await;
    assert_eq!(RunArchive(&cluster).lines(&run).await, Ok(None));
    RunArchive(&cluster).add(&run).await.expect("archived");
    assert_eq!(cluster.last_entry(&run).await, Ok(None));
    assert_eq!(RunArchive(&cluster).lines(&run).await, Ok(Some(lines.clone())));
    // Again, after a failure between the two steps.
    RunArchive(&cluster).add(&run).await.expect("archived");
    assert_eq!(RunArchive(&cluster).lines(&run).await, Ok(Some(lines)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_without_its_end_or_its_beginning_is_not_archived() {
    let Some((_server, cluster)) = cluster().await else { return };
    let run = RunId::new("r-1");
    let log = owned(&cluster, &run, "a").await;
    log.append(&run, Seq(0), &group(&run, 0, &["0"])).await.expect("stored");
    let refused = RunArchive(&cluster).add(&run).await.expect_err("it runs");
    assert!(refused.contains("not complete"), "{refused}");
    log.append(&run, Seq(1), &end_of(&run, 1)).await.expect("stored");
    // Another runner removes the log while this one reads it.
    let stream = cluster.context().get_stream_no_info("RT_F_00").await.expect("a stream");
    let subject = cluster.namespace().log(&run);
    stream.purge().filter(subject).keep(1).await.expect("purged");
    let refused = RunArchive(&cluster).add(&run).await.expect_err("a part");
    assert!(refused.contains("not complete"), "{refused}");
    assert_eq!(RunArchive(&cluster).lines(&run).await, Ok(None));
    let none = RunArchive(&cluster).add(&RunId::new("r-2")).await.expect_err("no log");
    assert!(none.contains("no log"), "{none}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_id_of_an_archived_run_is_not_used_again() {
    let Some((_server, cluster)) = cluster().await else { return };
    let run = RunId::new("r-1");
    ended(&cluster, &run).await;
    assert_eq!(begin_run(&cluster, &request(&run)).await, Ok(false), "in the stream");
    RunArchive(&cluster).add(&run).await.expect("archived");
    assert_eq!(begin_run(&cluster, &request(&run)).await, Ok(false), "in the archive");
    assert_eq!(begin_run(&cluster, &request(&RunId::new("r-2"))).await, Ok(true));
}

/// The numbers of the events that a follower gets, to the end of the run.
async fn rest(follower: &mut LogFollower) -> Vec<u64> {
    let mut seen = Vec::new();
    let all = async {
        while let Some(news) = follower.news().await {
            if let LogNews::Entry(LogEntry { part: LogPart::Events(group), .. }) =
                news.expect("read")
            {
                seen.extend(group.events(Seq(0)).expect("events").iter().map(|it| it.seq.0));
            }
        }
    };
    timeout(PATIENCE, all).await.expect("it ends");
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_that_was_away_reads_the_rest_of_a_run_from_the_archive() {
    let Some((_server, cluster)) = cluster().await else { return };
    let run = RunId::new("r-1");
    let log = owned(&cluster, &run, "a").await;
    let first = log.append(&run, Seq(0), &group(&run, 0, &["0", "1"]));
    first.await.expect("stored");
    // It has read the first group, and then sleeps.
    let place = cluster.last_entry(&run).await.expect("read").expect("a group").place;
    let mut away = cluster.follow_after(&run, place, Seq(2));
    log.append(&run, Seq(2), &group(&run, 2, &["2"])).await.expect("stored");
    log.append(&run, Seq(3), &end_of(&run, 3)).await.expect("stored");
    RunArchive(&cluster).add(&run).await.expect("archived");
    assert_eq!(rest(&mut away).await, [2, 3]);
    assert_eq!(rest(&mut cluster.follow(&run)).await, [0, 1, 2, 3], "a new one");
    let mut all = cluster.follow_after(&run, place, Seq(4));
    assert_eq!(rest(&mut all).await, Vec::<u64>::new(), "one that has all");
    // A log that was removed without a copy is said to be gone.
    let gone = RunId::new("r-2");
    let mut follower = cluster.follow_after(&gone, place, Seq(2));
    let news = timeout(PATIENCE, follower.news()).await.expect("in time");
    assert!(matches!(news, Some(Err(ReadError::Damaged { .. }))), "{news:?}");
    let groups: Vec<_> = log.read(&run, Seq(0)).collect().await;
    assert!(groups.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_owner_of_a_run_leaves_something_to_its_session() {
    let Some((_server, cluster)) = cluster().await else { return };
    let run = RunId::new("r-1");
    let former = owned(&cluster, &run, "a").await.leaving(|| Some(b"of a".to_vec()));
    let last = cluster.last_entry(&run).await.expect("read").expect("a claim").place;
    let claimed = cluster.claim_run(&run, &claim("b", 0), last).await.expect("stored");
    let Claimed::Yes(epoch) = claimed else { panic!("nobody else claims it") };
    let owner = ClusterLog::new(cluster.clone(), "b".to_owned(), epoch, Seq(0))
        .leaving(|| Some(b"of b".to_vec()));
    let group = end_of(&run, 0);
    owner.append(&run, Seq(0), &group).await.expect("stored");
    assert_eq!(former.append(&run, Seq(0), &group).await, Err(AppendError::Fenced));
    let archive = RunArchive(&cluster);
    assert_eq!(archive.left_session(&run).await, Ok(Some(b"of b".to_vec())));
    archive.add(&run).await.expect("archived");
    assert_eq!(archive.left_session(&run).await, Ok(Some(b"of b".to_vec())));
}
