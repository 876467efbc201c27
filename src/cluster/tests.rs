//! The logs, claims, queue and archive of a cluster, over a real NATS server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::address::ClusterAddress;
use super::archive::RunArchive;
use super::entry::{LogEntry, LogPart, headers};
use super::follow::{LogFollower, LogNews};
use super::layout::ClusterLayout;
use super::names::{Namespace, QUEUE};
use super::request::{Claim, Claimed, POOL, RunRequest, begin_run};
use super::rows::{ClusterRow, RunRows};
use super::{Cluster, ClusterLog, OLDEST, version_of};
use crate::log::event::{Elapsed, Event, EventKind, Reply, RunId, Seq, SpanId};
use crate::store::{AppendError, EventGroup, ReadError, RunLog as _};
use crate::support::nats::NatsServer;
use crate::support::nats_proxy::{Does, NatsProxy};
use crate::support::own_runner::{PATIENCE, address, cluster};
use crate::support::{facts, own_runner};

async fn connect(server: &NatsServer) -> Cluster {
    Cluster::connect(&address(&server.url()), "test").await.expect("connected")
}

fn request(run: &RunId) -> RunRequest {
    RunRequest { run: run.clone(), ..own_runner::request("checkout-launch", &[]) }
}

fn claim(owner: &str, next: u64) -> Claim {
    Claim {
        runner: owner.to_owned(),
        owner: owner.to_owned(),
        version: "1".to_owned(),
        next: Seq(next),
    }
}

/// A group with so many events, each with a text.
fn group(run: &RunId, first: u64, texts: &[&str]) -> EventGroup {
    let mut group = EventGroup::starting_at(Seq(first));
    for (seq, text) in (first..).zip(texts) {
        let kind = EventKind::Warning { text: (*text).to_owned() };
        let event = Event { seq: Seq(seq), at: Elapsed(seq), span: SpanId::RUN, kind };
        group.push(&event, run).expect("a line");
    }
    group
}

/// A run that was handed over and claimed by this owner.
async fn owned(cluster: &Cluster, run: &RunId, owner: &str) -> ClusterLog {
    assert!(cluster.request_run(&request(run)).await.expect("stored"));
    let last = cluster.last_entry(run).await.expect("read").expect("a request");
    let claimed = cluster.claim_run(run, &claim(owner, 0), last.place).await.expect("stored");
    let Claimed::Yes(epoch) = claimed else { panic!("nobody else claims it") };
    ClusterLog::new(cluster.clone(), owner.to_owned(), epoch, Seq(0))
}

async fn texts(log: &ClusterLog, run: &RunId) -> Vec<String> {
    let groups: Vec<_> = log.read(run, Seq(0)).collect().await;
    let events =
        groups.into_iter().flat_map(|it| it.expect("read").events(Seq(0)).expect("events"));
    let text = |event: Arc<Event>| match &event.kind {
        EventKind::Warning { text } => text.clone(),
        other => panic!("{other:?}"),
    };
    events.map(text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_claims_succeeds() {
    let Some((_server, cluster)) = cluster().await else { return };
    for nth in 0..20 {
        let run = RunId::new(format!("r-{nth}"));
        assert!(cluster.request_run(&request(&run)).await.expect("stored"));
        assert!(!cluster.request_run(&request(&run)).await.expect("answered"), "the id is taken");
        let last = cluster.last_entry(&run).await.expect("read").expect("a request");
        let claims = (0..8).map(|owner| {
            let (cluster, run) = (cluster.clone(), run.clone());
            tokio::spawn(async move {
                let claim = claim(&format!("owner-{owner}"), 0);
                cluster.claim_run(&run, &claim, last.place).await.expect("answered")
            })
        });
        let claimed: Vec<Claimed> =
            join_all(claims).await.into_iter().map(|it| it.expect("no panic")).collect();
        let owners = claimed.iter().filter(|it| **it != Claimed::No).count();
        assert_eq!(owners, 1, "{claimed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_appends_of_former_owner() {
    let Some((_server, cluster)) = cluster().await else { return };
    let run = RunId::new("r-1");
    let first = owned(&cluster, &run, "a").await;
    assert_eq!(first.append(&run, Seq(0), &group(&run, 0, &["0", "1"])).await, Ok(Seq(2)));
    let last = cluster.last_entry(&run).await.expect("read").expect("a group");
    let claimed = cluster.claim_run(&run, &claim("b", 2), last.place).await.expect("stored");
    let Claimed::Yes(epoch) = claimed else { panic!("nobody else claims it") };
    let second = ClusterLog::new(cluster.clone(), "b".to_owned(), epoch, Seq(2));
    let late = group(&run, 2, &["of a"]);
    assert_eq!(first.append(&run, Seq(2), &late).await, Err(AppendError::Fenced));
    assert_eq!(first.next(&run).await, Err(AppendError::Fenced));
    assert_eq!(first.append(&run, Seq(2), &late).await, Err(AppendError::Fenced), "and stays so");
    assert_eq!(second.next(&run).await, Ok(Seq(2)));
    assert_eq!(second.append(&run, Seq(2), &group(&run, 2, &["of b"])).await, Ok(Seq(3)));
    assert_eq!(texts(&second, &run).await, ["0", "1", "of b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoned_log_stores_only_sent_groups() {
    let Some((server, _)) = cluster().await else { return };
    let (arrived, arrives) = oneshot::channel();
    let (release, released) = std::sync::mpsc::channel();
    let held = Mutex::new(Some((arrived, released)));
    let proxy = NatsProxy::to(server.address(), move |_, headers| {
        if headers.contains("RT-Kind: events")
            && let Some((arrived, released)) = held.lock().expect("a lock").take()
        {
            arrived.send(()).expect("it is waited for");
            released.recv().expect("it is released");
        }
        Does::Passes
    });
    let slow = Cluster::connect(&address(&proxy.url()), "test").await.expect("connected");
    let run = RunId::new("r-1");
    let log = owned(&slow, &run, "a").await;
    let (sent, later) = (group(&run, 0, &["sent"]), group(&run, 1, &["later"]));
    let sent = log.append(&run, Seq(0), &sent);
    let given_up = async {
        arrives.await.expect("it is sent");
        log.give_up();
        release.send(()).expect("it is held");
    };
    let (sent, ()) = tokio::join!(sent, given_up);
    assert_eq!(sent, Ok(Seq(1)));
    assert_eq!(log.append(&run, Seq(1), &later).await, Err(AppendError::Fenced));
    assert_eq!(texts(&log, &run).await, ["sent"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_groups_in_order() {
    let Some((_server, cluster)) = cluster().await else { return };
    let run = RunId::new("r-1");
    let log = owned(&cluster, &run, "a").await;
    let (first, second) = (group(&run, 0, &["0", "1"]), group(&run, 2, &["2"]));
    let early = log.append(&run, Seq(2), &second).await;
    assert!(matches!(early, Err(AppendError::Unsure(_))), "{early:?}");
    assert_eq!(log.next(&run).await, Ok(Seq(0)));
    assert_eq!(log.append(&run, Seq(0), &first).await, Ok(Seq(2)));
    assert_eq!(log.append(&run, Seq(2), &second).await, Ok(Seq(3)));
    assert_eq!(texts(&log, &run).await, ["0", "1", "2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_group_once_after_lost_reply() {
    let Some((_server, cluster)) = cluster().await else { return };
    let run = RunId::new("r-1");
    let log = owned(&cluster, &run, "a").await;
    let lost = group(&run, 0, &["0", "1"]);
    // It is stored, and its owner does not know.
    let last = cluster.last_entry(&run).await.expect("read").expect("a claim").place;
    let about = headers("events", Seq(0), 2, "a");
    let subject = cluster.namespace().log(&run);
    let stored = cluster.store(subject, about, lost.lines().to_vec(), Some(last)).await;
    assert!(matches!(stored, super::stream::Published::Stored(_)), "{stored:?}");
    assert_eq!(log.append(&run, Seq(0), &lost).await, Ok(Seq(2)));
    assert_eq!(log.append(&run, Seq(2), &group(&run, 2, &["2"])).await, Ok(Seq(3)));
    assert_eq!(texts(&log, &run).await, ["0", "1", "2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_group_reads_back_unchanged() {
    let Some((_server, cluster)) = cluster().await else { return };
    let run = RunId::new("r-1");
    let log = owned(&cluster, &run, "a").await;
    let large = "x".repeat(3 << 20);
    assert_eq!(log.append(&run, Seq(0), &group(&run, 0, &["0", &large])).await, Ok(Seq(2)));
    assert_eq!(log.append(&run, Seq(2), &group(&run, 2, &["2"])).await, Ok(Seq(3)));
    assert_eq!(texts(&log, &run).await, ["0", &*large, "2"]);
    let mut follower = cluster.follow(&run);
    let mut events = 0;
    while events < 3 {
        let news = timeout(PATIENCE, follower.news()).await.expect("in time").expect("news");
        if let Ok(LogNews::Entry(LogEntry { part: LogPart::Events(group), .. })) = news {
            events += group.len();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn follower_has_no_gap_after_reconnect() {
    let Some((mut server, cluster)) = cluster().await else { return };
    let run = RunId::new("r-1");
    let log = owned(&cluster, &run, "a").await;
    let watching = connect(&server).await;
    let mut follower = watching.follow(&run);
    let mut seen = 0;
    for nth in 0..30 {
        if nth == 10 {
            server.restart();
        }
        let group = group(&run, nth, &["x"]);
        // The client comes back by itself; an append that got no answer is settled by the log's end.
        loop {
            match log.append(&run, Seq(nth), &group).await {
                Ok(_) => break,
                Err(AppendError::Unsure(_)) => match log.next(&run).await {
                    Ok(next) if next > Seq(nth) => break,
                    Ok(_) | Err(AppendError::Unsure(_)) => tokio::task::yield_now().await,
                    Err(error) => panic!("{error}"),
                },
                Err(error) => panic!("{error}"),
            }
        }
    }
    while seen < 30 {
        let news = timeout(PATIENCE, follower.news()).await.expect("in time").expect("news");
        if let LogNews::Entry(LogEntry { part: LogPart::Events(group), .. }) = news.expect("read") {
            assert_eq!(group.first(), Seq(seen), "in order, none twice");
            seen = group.next().0;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn edited_log_reports_place_of_damage() {
    let Some((_server, cluster)) = cluster().await else { return };
    let run = RunId::new("r-1");
    let log = owned(&cluster, &run, "a").await;
    assert_eq!(log.append(&run, Seq(0), &group(&run, 0, &["0"])).await, Ok(Seq(1)));
    let subject = cluster.namespace().log(&run);
    let skipping = group(&run, 4, &["4"]);
    let about = headers("events", Seq(4), 1, "somebody");
    cluster.store(subject, about, skipping.lines().to_vec(), None).await;
    let mut follower = cluster.follow(&run);
    let error = loop {
        match follower.news().await.expect("news") {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ReadError::Damaged { at: 1, .. }), "{error}");
    assert!(follower.news().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn thousand_followers_receive_everything() {
    let Some((_server, cluster)) = cluster().await else { return };
    let run = RunId::new("r-1");
    let log = owned(&cluster, &run, "a").await;
    let followers = (0..1_001).map(|_| {
        let mut follower = cluster.follow(&run);
        tokio::spawn(async move {
            let mut events = 0;
            while events < 20 {
                let news = timeout(PATIENCE, follower.news()).await.expect("in time");
                if let LogNews::Entry(LogEntry { part: LogPart::Events(group), .. }) =
                    news.expect("news").expect("read")
                {
                    assert_eq!(group.first().0, events);
                    events = group.next().0;
                }
            }
        })
    });
    let followers: Vec<_> = followers.collect();
    for nth in 0..20 {
        log.append(&run, Seq(nth), &group(&run, nth, &["x"])).await.expect("stored");
    }
    for follower in followers {
        follower.await.expect("no panic");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_for_first_late_reply() {
    let Some((_server, cluster)) = cluster().await else { return };
    let (run, attempt) = (RunId::new("r-1"), SpanId(7));
    let soon = tokio::time::Instant::now() + Duration::from_millis(50);
    assert_eq!(cluster.await_late_answer(&run, attempt, soon).await, None);
    let until = tokio::time::Instant::now() + PATIENCE;
    let waiting = {
        let (cluster, run) = (cluster.clone(), run.clone());
        tokio::spawn(async move { cluster.await_late_answer(&run, attempt, until).await })
    };
    let reply = |text: &str| Reply::from_agent_text(text.into());
    cluster.leave_answer(&run, attempt, &reply("first")).await;
    cluster.leave_answer(&run, attempt, &reply("second")).await;
    let found = waiting.await.expect("no panic").expect("an answer");
    assert_eq!(&*found.text, "first");
}

#[tokio::test(flavor = "multi_thread")]
async fn leaves_paid_reply_despite_stream_outage() {
    let Some((mut server, cluster)) = cluster().await else { return };
    let (run, attempt) = (RunId::new("r-1"), SpanId(7));
    // To its clients a stream without a leader is one that is not there.
    cluster.context().delete_stream("RT_LATE").await.expect("deleted");
    let mut leaving = {
        let (cluster, run) = (cluster.clone(), run.clone());
        let reply = Reply::from_agent_text("paid".into());
        tokio::spawn(async move { cluster.leave_answer(&run, attempt, &reply).await })
    };
    let wait = |until| {
        let (cluster, run) = (cluster.clone(), run.clone());
        tokio::spawn(async move { cluster.await_late_answer(&run, attempt, until).await })
    };
    let mut waiting = wait(tokio::time::Instant::now() + PATIENCE);
    let moment = Duration::from_millis(100);
    assert!(timeout(moment, &mut leaving).await.is_err(), "it is tried again");
    assert!(timeout(moment, &mut waiting).await.is_err(), "it is waited for");
    let text = |found: Option<Reply>| found.map(|reply| reply.text.to_string());
    let mut late = wait(tokio::time::Instant::now());
    assert!(timeout(moment, &mut late).await.is_err(), "nobody has said that there is none");
    ClusterLayout(&cluster).make(1).await.expect("made");
    timeout(PATIENCE, leaving).await.expect("in time").expect("no panic");
    let found = timeout(PATIENCE, waiting).await.expect("in time").expect("no panic");
    assert_eq!(text(found).as_deref(), Some("paid"));
    // A server that is away for a moment.
    server.kill();
    let waiting = wait(tokio::time::Instant::now());
    server.restart();
    let found = timeout(PATIENCE, waiting).await.expect("in time").expect("no panic");
    assert_eq!(text(found).as_deref(), Some("paid"));
}

#[tokio::test(flavor = "multi_thread")]
async fn run_list_follows_changes_of_namespace() {
    let Some((server, cluster)) = cluster().await else { return };
    assert_eq!(RunRows(&cluster).all().await.expect("read"), []);
    let namespace = Namespace::new("other").expect("a name");
    let other = ClusterAddress { namespace, ..address(&server.url()) };
    let other = Cluster::connect(&other, "test").await.expect("connected");
    let row = |nth: u64, status: &str| ClusterRow {
        run: format!("r-{nth}"),
        started_ms: 1_772_841_600_000 + nth,
        status: status.to_owned(),
        ..ClusterRow::default()
    };
    RunRows(&other).put(&row(9, "running")).await.expect("stored");
    for nth in 0..300 {
        RunRows(&cluster).put(&row(nth, "running")).await.expect("stored");
    }
    let rows = RunRows(&cluster).all().await.expect("read");
    assert_eq!((rows.len(), &*rows[0].run), (300, "r-299"));
    let mut changes = RunRows(&cluster).follow().await.expect("followed");
    RunRows(&cluster).put(&row(5, "ended")).await.expect("stored");
    let changed = async {
        loop {
            match changes.next().await.expect("a change") {
                super::rows::RowChange::Row(row) if row.status == "ended" => return row.run,
                _ => {}
            }
        }
    };
    assert_eq!(timeout(PATIENCE, changed).await.expect("in time"), "r-5");
    assert_eq!(RunRows(&other).all().await.expect("read").len(), 1);
}

#[test]
fn versions_are_compared_by_number() {
    for (text, is_new) in [
        ("2.12.3", true),
        ("2.15.1", true),
        ("v2.12.10-rc.1", true),
        ("2.12.2", false),
        ("2.9.10", false),
        ("2", false),
        ("", false),
    ] {
        assert_eq!(version_of(text).is_some_and(|it| it >= OLDEST), is_new, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_run_once_for_several_runners() {
    let Some((_server, cluster)) = cluster().await else { return };
    let run = RunId::new("r-1");
    for _ in 0..3 {
        cluster.enqueue(POOL, &run, Some(7)).await.expect("stored");
    }
    let messages = cluster.messages(QUEUE, &cluster.namespace().queue("*"), 0).await;
    assert_eq!(messages.expect("read").len(), 1);
    cluster.enqueue(POOL, &run, Some(9)).await.expect("stored");
    let messages = cluster.messages(QUEUE, &cluster.namespace().queue("*"), 0).await;
    assert_eq!(messages.expect("read").len(), 2, "its log has continued since");
}

#[tokio::test(flavor = "multi_thread")]
async fn removes_queue_item_without_run() {
    let Some((_server, cluster)) = cluster().await else { return };
    let second = Duration::from_secs(1);
    let queue = cluster.queue(POOL, second).await.expect("a queue");
    for bad in ["*", "a.b", "r-\u{1b}[2J", ""] {
        cluster.enqueue(POOL, &RunId::new(bad), None).await.expect("stored");
        assert!(queue.take(second).await.expect("answered").is_none(), "{bad:?}");
    }
    cluster.enqueue(POOL, &RunId::new("r-1"), None).await.expect("stored");
    let taken = queue.take(Duration::from_secs(20)).await.expect("answered").expect("a run");
    assert_eq!(taken.run, RunId::new("r-1"));
    taken.done().await;
    assert!(cluster.queued_runs().await.expect("read").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_never_share_queues() {
    use super::Cluster;
    use super::address::ClusterAddress;
    use super::names::Namespace;
    let Some((server, _)) = cluster().await else { return };
    let of = |namespace: &str| {
        let namespace = Namespace::new(namespace).expect("a name");
        ClusterAddress { namespace, ..address(&server.url()) }
    };
    let one = Cluster::connect(&of("team_a"), "test").await.expect("connected");
    let other = Cluster::connect(&of("team"), "test").await.expect("connected");
    let second = Duration::from_secs(1);
    let (own, foreign) = (one.queue("b", second).await, other.queue("a_b", second).await);
    one.enqueue("b", &RunId::new("r-1"), None).await.expect("stored");
    let foreign = foreign.expect("a queue").take(second).await.expect("answered");
    assert!(foreign.is_none());
    let own = own.expect("a queue").take(Duration::from_secs(20)).await.expect("answered");
    assert_eq!(own.expect("a run").run, RunId::new("r-1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_foreign_names_that_change_subjects() {
    let Some((_server, cluster)) = cluster().await else { return };
    let run = RunId::new("r-1");
    let mut wrong = request(&run);
    wrong.after = Some(RunId::new(">"));
    assert_eq!(cluster.request_run(&wrong).await, Ok(true), "any program can store it");
    assert!(cluster.entries(&run).await.is_err());
    let last = cluster.last_entry(&run).await;
    assert!(last.is_err(), "{last:?}");
    let row = |pool: &str| ClusterRow {
        run: "r-1".to_owned(),
        pool: pool.to_owned(),
        ..ClusterRow::default()
    };
    RunRows(&cluster).put(&row("a.*")).await.expect("stored");
    assert_eq!(RunRows(&cluster).all().await.expect("read"), []);
    RunRows(&cluster).put(&row("a")).await.expect("stored");
    assert_eq!(RunRows(&cluster).all().await.expect("read").len(), 1);
}

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
async fn reads_ended_log_from_archive() {
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
async fn never_archives_incomplete_log() {
    let Some((_server, cluster)) = cluster().await else { return };
    let run = RunId::new("r-1");
    let log = owned(&cluster, &run, "a").await;
    log.append(&run, Seq(0), &group(&run, 0, &["0"])).await.expect("stored");
    let refused = RunArchive(&cluster).add(&run).await.expect_err("it runs");
    assert!(refused.what.contains("not complete"), "{refused}");
    log.append(&run, Seq(1), &end_of(&run, 1)).await.expect("stored");
    // Another runner removes the log while this one reads it.
    let stream = cluster.context().get_stream_no_info("RT_F_00").await.expect("a stream");
    let subject = cluster.namespace().log(&run);
    stream.purge().filter(subject).keep(1).await.expect("purged");
    let refused = RunArchive(&cluster).add(&run).await.expect_err("a part");
    assert!(refused.what.contains("not complete"), "{refused}");
    assert_eq!(RunArchive(&cluster).lines(&run).await, Ok(None));
    let none = RunArchive(&cluster).add(&RunId::new("r-2")).await.expect_err("no log");
    assert!(none.what.contains("no log"), "{none}");
}

#[tokio::test(flavor = "multi_thread")]
async fn never_reuses_id_of_archived_run() {
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
async fn late_follower_continues_from_archive() {
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
async fn only_owner_leaves_session_data() {
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
