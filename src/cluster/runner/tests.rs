//! Runners in this process, over a real NATS server: commands while no runner owns a run, runs of newer
//! versions, runs that pretend, and what is left when a runner stops.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use super::hand_over::watch_run;
use super::{Runner, RunnerNews, RunnerSettings};
use crate::cluster::entry::{LogEntry, LogPart};
use crate::cluster::follow::LogNews;
use crate::cluster::layout::ClusterLayout;
use crate::cluster::request::{Claim, Claimed, RunRequest};
use crate::cluster::rows::{ASKING, ClusterRow, RunRows};
use crate::cluster::{Cluster, ClusterLog};
use crate::log::bus::Bus;
use crate::log::event::head::LaunchRecord;
use crate::log::event::{
    Answer, AnsweredBy, Command, Event, EventKind, Initiator, ModelLabel, QuestionAnswered,
    QuestionAsked, Reply, RunId, SCHEMA_VERSION, Seq, SpanId, World,
};
use crate::log::world::Projection;
use crate::scenario::{ScenarioOrigin, load};
use crate::store::{EventGroup, RunLog as _};
use crate::support::nats_proxy::{Does, NatsProxy};
use crate::support::own_runner::{OwnRunner, PATIENCE, cluster, models, request, settings};
use crate::support::table;

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
async fn next_runner_takes_waiting_commands_once() {
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
async fn leaves_newer_runs_to_newer_runners() {
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

/// The events of a run, once so many of this kind are stored.
async fn events_with(cluster: &Cluster, run: &RunId, kind: &str, count: usize) -> Vec<Arc<Event>> {
    let (mut follower, mut all) = (cluster.follow(run), Vec::new());
    loop {
        let news = timeout(PATIENCE, follower.news()).await.expect("in time");
        let news = news.unwrap_or_else(|| panic!("it ended without {count} of {kind}"));
        if let LogNews::Entry(LogEntry { part: LogPart::Events(group), .. }) = news.expect("read") {
            all.extend(group.events(Seq(0)).expect("events"));
        }
        if all.iter().filter(|event: &&Arc<Event>| event.kind.name() == kind).count() >= count {
            return all;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repaused_run_stays_paused_after_takeover() {
    let Some((server, cluster)) = cluster().await else { return };
    let mut first = OwnRunner::start(&server.url(), "a");
    let paused = request("checkout-launch", &["round:2", "finalize"]);
    let run = cluster.hand_over(paused).await.expect("stored").run;
    events_with(&cluster, &run, "paused", 1).await;
    let resume = Command::Resume { by: Initiator::You };
    cluster.send_command(&run, &resume, "ann@there").await.expect("stored");
    events_with(&cluster, &run, "paused", 2).await;
    first.stop();
    first.until(|news| matches!(news, RunnerNews::HandedBack(_))).await;

    // The next one has its commands only after those of the former: the flag says that it has.
    let mut second = OwnRunner::start(&server.url(), "b");
    second.until(|news| matches!(news, RunnerNews::Plays(..))).await;
    let flag = Command::SetFlag { flag: "legal_analyst".into(), on: true, by: Initiator::You };
    cluster.send_command(&run, &flag, "ann@there").await.expect("stored");
    let events = events_with(&cluster, &run, "command.taken", 2).await;
    let resumed = events.iter().filter(|event| event.kind.name() == "resumed").count();
    assert_eq!(resumed, 1, "the command that was taken is not given again");
    cluster.send_command(&run, &resume, "ann@there").await.expect("stored");
    events_until(&cluster, &run, "run.closed").await;
}

/// The log of a run that was claimed by a runner which is gone.
async fn claimed_by_ghost(cluster: &Cluster, run: &RunId) -> ClusterLog {
    let last = cluster.last_entry(run).await.expect("read").expect("a request").place;
    let claim = Claim {
        runner: "ghost".to_owned(),
        owner: "ghost".to_owned(),
        version: "1".to_owned(),
        next: Seq(0),
    };
    let claimed = cluster.claim_run(run, &claim, last).await.expect("stored");
    let Claimed::Yes(epoch) = claimed else { panic!("nobody else claims it") };
    ClusterLog::new(cluster.clone(), "ghost".to_owned(), epoch, Seq(0))
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_to_continue_changed_log() {
    let Some((server, cluster)) = cluster().await else { return };
    let client = async_nats::connect(server.url()).await.expect("connected");
    let context = async_nats::jetstream::new(client);
    let events = std::thread::spawn(|| table::shipped_log("checkout-launch"));
    let events = events.join().expect("a log");
    let group = |run: &RunId, from: usize, to: usize| {
        let mut group = EventGroup::starting_at(Seq(from as u64));
        events[from..to].iter().for_each(|event| group.push(event, run).expect("a line"));
        group
    };
    let mut broken = Vec::new();
    for damage in ["cut", "gap", "twice", "text"] {
        let request = request("checkout-launch", &[]);
        let run = cluster.hand_over(request).await.expect("stored").run;
        let log = claimed_by_ghost(&cluster, &run).await;
        log.append(&run, Seq(0), &group(&run, 0, 10)).await.expect("stored");
        let subject = format!("rt.main.f.00.{run}");
        let store = |first: u64, count: u64, lines: Vec<u8>| {
            let mut headers = async_nats::HeaderMap::new();
            headers.insert("RT-Kind", "events");
            headers.insert("RT-First", first.to_string());
            headers.insert("RT-Count", count.to_string());
            headers.insert("RT-Owner", "ghost");
            context.publish_with_headers(subject.clone(), headers, lines.into())
        };
        match damage {
            "cut" => {
                let logs = context.get_stream_no_info("RT_F_00").await.expect("a stream");
                logs.purge().filter(subject.clone()).keep(1).await.expect("purged");
            }
            "gap" => {
                let lines = group(&run, 12, 14).lines().to_vec();
                store(12, 2, lines).await.expect("sent").await.expect("stored");
            }
            "twice" => {
                let lines = group(&run, 0, 10).lines().to_vec();
                store(0, 10, lines).await.expect("sent").await.expect("stored");
            }
            _ => {
                let lines = b"{\"seq\":10}\n".to_vec();
                store(10, 1, lines).await.expect("sent").await.expect("stored");
            }
        }
        broken.push(run);
    }
    let patient = RunnerSettings { broken_for: Duration::from_millis(1), ..settings("a") };
    let mut runner = OwnRunner::start_with(&server.url(), patient);
    // Each is refused, and not tried for ever.
    let (mut refused, mut given_up) = (BTreeSet::new(), BTreeSet::new());
    while given_up.len() < broken.len() {
        let news = runner.until(|news| !matches!(news, RunnerNews::Trouble(_))).await;
        let RunnerNews::Refused(run, why) = news else { panic!("{news:?}") };
        assert!(broken.contains(&run), "{run}");
        match why.strip_prefix("given up: ") {
            Some(why) => assert!(why.starts_with("log.broken") && given_up.insert(run), "{why}"),
            None => assert!(why.starts_with("log.broken") && refused.insert(run), "{why}"),
        }
    }
    assert_eq!(refused, given_up);
    for run in &broken {
        let end = cluster.last_entry(run).await.expect("read").expect("a message");
        assert_eq!(end.owner, "ghost", "it was not claimed");
    }
    let rows = RunRows(&cluster).all().await.expect("rows");
    for run in &broken {
        let row = rows.iter().find(|row| row.run == run.as_str()).expect("listed");
        assert_eq!((row.status.as_str(), row.reason.as_deref()), ("ended", Some("log_broken")));
    }
    assert!(cluster.queued_runs().await.expect("read").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_live_run_declared_as_scripted() {
    let Some((server, cluster)) = cluster().await else { return };
    let run = cluster.hand_over(request("checkout-launch", &[])).await.expect("stored").run;
    let log = claimed_by_ghost(&cluster, &run).await;
    let events = std::thread::spawn(|| table::shipped_log("checkout-launch"));
    let events = events.join().expect("a log");
    let EventKind::RunStarted(head) = &events[0].kind else { panic!("{events:?}") };
    let mut head = (**head).clone();
    head.run = run.clone();
    head.model = ModelLabel::Live { name: "gpt-4.1".to_owned(), host: "api.openai.com".to_owned() };
    let begun = Event { kind: EventKind::RunStarted(Arc::new(head)), ..(*events[0]).clone() };
    let mut group = EventGroup::starting_at(Seq(0));
    group.push(&begun, &run).expect("a line");
    log.append(&run, Seq(0), &group).await.expect("stored");

    let mut runner = OwnRunner::start(&server.url(), "a");
    let refused = runner.until(|news| matches!(news, RunnerNews::Refused(..))).await;
    let RunnerNews::Refused(_, why) = refused else { unreachable!() };
    assert!(why.contains("--allow live"), "{why}");
    let end = cluster.last_entry(&run).await.expect("read").expect("a group");
    assert_eq!(end.owner, "ghost", "it was not claimed");
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_runner_leaves_late_reply() {
    let Some((server, cluster)) = cluster().await else { return };
    let quick = RunnerSettings { drain: Duration::from_millis(1), ..settings("a") };
    // Its appends are stored, but the server's answers are lost: it has to look into the log.
    let proxy =
        NatsProxy::to(server.address(), |_, headers| match headers.contains("RT-Kind: events") {
            true => Does::Replaces("?".to_owned()),
            false => Does::Passes,
        });
    let mut first = OwnRunner::start_with(&proxy.url(), quick);
    let mut slow = request("checkout-launch", &[]);
    slow.launch.instant = false;
    let run = cluster.hand_over(slow).await.expect("stored").run;
    let events = events_with(&cluster, &run, "attempt.started", 1).await;
    first.stop();
    first.until(|news| matches!(news, RunnerNews::HandedBack(_))).await;
    let stored = cluster.entries(&run).await.expect("read");
    let stored = stored.iter().filter_map(|entry| match &entry.part {
        LogPart::Events(group) => Some(group.events(Seq(0)).expect("events")),
        _ => None,
    });
    let stored: Vec<_> = stored.flatten().collect();
    let spans = |kind: &str| -> BTreeSet<_> {
        stored.iter().filter(|event| event.kind.name() == kind).map(|event| event.span).collect()
    };
    let open: Vec<_> =
        spans("attempt.started").difference(&spans("attempt.answered")).copied().collect();
    assert!(!open.is_empty(), "the call was in flight: {events:?}");
    for attempt in &open {
        let left = cluster.late_answer(&run, *attempt).await.expect("read");
        assert!(left.is_some(), "{attempt:?}");
    }

    let mut second = OwnRunner::start(&server.url(), "b");
    events_until(&cluster, &run, "run.closed").await;
    second.until(|news| matches!(news, RunnerNews::Ended(..))).await;
}

#[tokio::test]
async fn leaves_reply_before_events_are_read() {
    let Some((_server, cluster)) = cluster().await else { return };
    let (bus, run) = (Bus::new(), RunId::new("r-1"));
    let watched = watch_run(&bus, bus.reader(Seq(0)));
    let attempt = bus.open(EventKind::AttemptStarted {
        parent: SpanId::RUN,
        attempt: 1,
        timeout_ms: 60_000,
        waited_ms: 0,
        probe: false,
    });
    let reply = Arc::new(Reply::from_agent_text("paid".into()));
    bus.publish(attempt, EventKind::AttemptAnswered(Arc::clone(&reply)));
    // On this runtime nothing has been read before the first wait.
    watched.leave_answers(&cluster, &run, Seq(1)).await;
    let left = cluster.late_answer(&run, attempt).await.expect("read");
    assert_eq!(left.map(|left| left.text), Some(Arc::clone(&reply.text)));
}

#[tokio::test(flavor = "multi_thread")]
async fn unlisted_run_returns_to_list() {
    let Some((server, cluster)) = cluster().await else { return };
    let first = OwnRunner::start(&server.url(), "a");
    let ended = cluster.hand_over(request("checkout-launch", &[])).await.expect("stored").run;
    events_until(&cluster, &ended, "run.closed").await;
    first.stop();
    drop(first);
    let waiting = cluster.hand_over(request("dev-team", &[])).await.expect("stored").run;
    // The list and the queue are lost; the logs are not.
    let client = async_nats::connect(server.url()).await.expect("connected");
    let context = async_nats::jetstream::new(client);
    for stream in ["KV_RT_RUNS", "RT_TODO"] {
        let stream = context.get_stream_no_info(stream).await.expect("a stream");
        stream.purge().await.expect("purged");
    }
    // One that no program can read does not keep the others.
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("RT-Kind", "something new");
    let unreadable = context.publish_with_headers("rt.main.f.00.a-0", headers, "".into());
    unreadable.await.expect("sent").await.expect("stored");
    let (_keep, draining) = watch::channel(false);
    let runner = Runner::new(cluster.clone(), settings("s"), models(), draining, |_| ());
    let found = runner.sweep_once(&BTreeSet::new()).await.expect("swept");
    let unreadable = RunId::new("a-0");
    assert_eq!(found, BTreeSet::from([ended.clone(), waiting.clone(), unreadable.clone()]));
    let rows = RunRows(&cluster).all().await.expect("read");
    assert_eq!(rows, [], "they may be handed over just now");
    runner.sweep_once(&found).await.expect("swept");
    let rows = RunRows(&cluster).all().await.expect("read");
    let states: Vec<_> = rows.iter().map(|row| (row.run.as_str(), row.reason.as_deref())).collect();
    assert!(states.contains(&(ended.as_str(), Some("success"))), "{states:?}");
    assert!(states.contains(&(waiting.as_str(), None)), "{states:?}");
    assert_eq!(cluster.queued_runs().await.expect("read"), BTreeSet::from([waiting]));
    assert_eq!(runner.sweep_once(&found).await.expect("swept"), BTreeSet::from([unreadable]));
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_until_run_end_is_listed() {
    let Some((server, cluster)) = cluster().await else { return };
    let mut runner = OwnRunner::start(&server.url(), "a");
    let run =
        cluster.hand_over(request("checkout-launch", &["round:2"])).await.expect("stored").run;
    events_until(&cluster, &run, "paused").await;
    let client = async_nats::connect(server.url()).await.expect("connected");
    let context = async_nats::jetstream::new(client);
    context.delete_stream("KV_RT_RUNS").await.expect("deleted");
    let resume = Command::Resume { by: Initiator::You };
    cluster.send_command(&run, &resume, "ann@there").await.expect("stored");
    let trouble = runner.until(|news| matches!(news, RunnerNews::Trouble(_))).await;
    let RunnerNews::Trouble(why) = trouble else { unreachable!() };
    assert!(why.contains("it has ended, but the list of runs does not say so yet"), "{why}");
    ClusterLayout(&cluster).make(1).await.expect("made");
    runner.until(|news| matches!(news, RunnerNews::Ended(..))).await;
    let rows = RunRows(&cluster).all().await.expect("read");
    let states: Vec<_> = rows.iter().map(|row| (row.run.as_str(), row.reason.as_deref())).collect();
    assert_eq!(states, [(run.as_str(), Some("success"))]);
    assert_eq!(cluster.queued_runs().await.expect("read"), BTreeSet::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn pool_runners_take_over_simultaneously() {
    let Some((server, cluster)) = cluster().await else { return };
    let first = OwnRunner::start(&server.url(), "a");
    let is_listed = async {
        while cluster.runners().await.expect("read").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, is_listed).await.expect("in time");
    let start = |change: &dyn Fn(&mut RunnerSettings)| {
        let mut settings = settings("b");
        settings.ack_wait = Duration::from_secs(7);
        change(&mut settings);
        let (drain, draining) = watch::channel(true);
        let runner = Runner::new(cluster.clone(), settings, models(), draining, |_| ());
        async move {
            let served = runner.serve().await;
            drop(drain);
            served
        }
    };
    let refused = start(&|_| ()).await.expect_err("another time");
    let help = refused.help.expect("help");
    assert!(help.contains("--takeover-after 1s"), "{help}");
    start(&|settings| settings.pool = "other".to_owned()).await.expect("another pool");
    start(&|settings| settings.ack_wait = Duration::from_secs(1)).await.expect("the same time");
    first.stop();
    let is_gone = async {
        while !cluster.runners().await.expect("read").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, is_gone).await.expect("in time");
    start(&|_| ()).await.expect("nobody else is at work");
}

/// The question of a run that is open, once it is.
async fn open_question(cluster: &Cluster, run: &RunId, number: usize) -> Arc<QuestionAsked> {
    let events = events_with(cluster, run, "question.asked", number).await;
    let asked = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::QuestionAsked(asked) => Some(Arc::clone(asked)),
        _ => None,
    });
    asked.expect("a question")
}

async fn answer(cluster: &Cluster, run: &RunId, asked: &QuestionAsked, answer: Answer) {
    let (id, digest) = (asked.id, Arc::clone(&asked.digest));
    let by = AnsweredBy::Person { name: "ann".into(), host: "there".into() };
    let answered = QuestionAnswered::new(id, digest, by, answer);
    let command = Command::Answer(Box::new(answered));
    cluster.send_command(run, &command, "ann@there").await.expect("stored");
}

/// Runs in which everybody waits for people hold no slot, and are played again for their answers.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_runs_free_their_slots() {
    let Some((server, cluster)) = cluster().await else { return };
    let mut runner = OwnRunner::start_with(
        &server.url(),
        RunnerSettings { slots: 2, ack_wait: Duration::from_secs(5), ..settings("a") },
    );
    let mut waiting = BTreeSet::new();
    for _ in 0..4 {
        let handed = cluster.hand_over(request("refund-desk", &[])).await.expect("stored");
        waiting.insert(handed.run);
    }
    for _ in 0..4 {
        let released = runner.until(|news| matches!(news, RunnerNews::Released(_))).await;
        assert!(matches!(released, RunnerNews::Released(run) if waiting.contains(&run)));
    }
    // Four wait, two slots: others are played meanwhile.
    let other = cluster.hand_over(request("checkout-launch", &[])).await.expect("stored").run;
    let ended = runner.until(|news| matches!(news, RunnerNews::Ended(..))).await;
    assert!(matches!(ended, RunnerNews::Ended(run, _) if run == other));
    let is_listed = async {
        let asks = |rows: Vec<ClusterRow>| rows.iter().filter(|it| it.status == ASKING).count();
        while asks(RunRows(&cluster).all().await.expect("read")) < 4 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, is_listed).await.expect("in time");
    let rows = RunRows(&cluster).all().await.expect("read");
    let row = rows.iter().find(|row| row.status == ASKING).expect("a row");
    assert_eq!(row.waits_for, ["operator".into()]);
    // They are not queued again and again.
    let tidy = {
        let (_keep, draining) = watch::channel(false);
        Runner::new(cluster.clone(), settings("tidy"), models(), draining, |_| ())
    };
    let found = tidy.sweep_once(&BTreeSet::new()).await.expect("swept");
    assert!(found.is_disjoint(&waiting), "{found:?}");

    for run in &waiting {
        let asked = open_question(&cluster, run, 1).await;
        answer(&cluster, run, &asked, Answer::Approve { args: None }).await;
    }
    // The next question of each releases it again. This runner is killed meanwhile.
    for run in &waiting {
        open_question(&cluster, run, 2).await;
    }
    for _ in 0..4 {
        runner.until(|news| matches!(news, RunnerNews::Released(_))).await;
    }
    drop(runner);
    let mut next = OwnRunner::start_with(
        &server.url(),
        RunnerSettings { slots: 2, ack_wait: Duration::from_secs(5), ..settings("b") },
    );
    for run in &waiting {
        let asked = open_question(&cluster, run, 2).await;
        let text = Answer::Text { text: "We are.".into() };
        // A second answer is late, and wakes nobody twice.
        answer(&cluster, run, &asked, text.clone()).await;
        answer(&cluster, run, &asked, text).await;
    }
    for run in &waiting {
        let events = events_until(&cluster, run, "run.closed").await;
        let count = |kind: &str| events.iter().filter(|event| event.kind.name() == kind).count();
        assert_eq!((count("question.asked"), count("question.answered")), (2, 2));
    }
    for _ in 0..4 {
        next.until(|news| matches!(news, RunnerNews::Ended(..))).await;
    }
    assert!(cluster.queued_runs().await.expect("read").is_disjoint(&waiting));
}

/// A message that was sent to a run starts one run, whichever runner sees the end first.
#[tokio::test(flavor = "multi_thread")]
async fn queued_message_is_answered_once() {
    let Some((server, cluster)) = cluster().await else { return };
    let mut runner = OwnRunner::start(&server.url(), "a");
    let run = cluster.hand_over(request("refund-desk", &[])).await.expect("stored").run;
    runner.until(|news| matches!(news, RunnerNews::Released(_))).await;
    let message = Command::Message { text: "Thank you.".into(), by: Initiator::Remote };
    cluster.send_command(&run, &message, "ann@there").await.expect("stored");
    let asked = open_question(&cluster, &run, 1).await;
    answer(&cluster, &run, &asked, Answer::Approve { args: None }).await;
    let asked = open_question(&cluster, &run, 2).await;
    answer(&cluster, &run, &asked, Answer::Text { text: "We are.".into() }).await;
    runner.until(|news| matches!(news, RunnerNews::Ended(ended, _) if *ended == run)).await;
    let rows = RunRows(&cluster).all().await.expect("read");
    let next = rows.iter().find(|row| row.run != run.as_str()).expect("a row");
    let next = RunId::new(next.run.clone());
    let events = events_until(&cluster, &next, "run.started").await;
    let session = events.iter().find_map(|event| match &event.kind {
        EventKind::RunStarted(head) => Some(head.plan.get().message()?.to_owned()),
        _ => None,
    });
    assert_eq!(session.as_deref(), Some("Thank you."));
    // The end is learned again, as after a crash.
    let again = RunRequest { message: Some("Thank you.".into()), ..request("refund-desk", &[]) };
    cluster.hand_over_next(again, &run).await.expect("answered");
    assert_eq!(RunRows(&cluster).all().await.expect("read").len(), 2);
}

/// A deadline that passes while nobody plays the run.
#[tokio::test(flavor = "multi_thread")]
async fn deadline_wakes_a_released_run() {
    let Some((server, cluster)) = cluster().await else { return };
    let text = crate::support::people::DESK.replace("\"1d\"", "\"3s\"");
    let text = text.replace("approve     = true", "approve = { timeout = \"3s\" }");
    let scenario = load(&text, ScenarioOrigin::File("desk.toml".into()), &[]).expect("a scenario");
    let desk = RunRequest::of(&scenario);
    let launch = LaunchRecord { instant: true, ..desk.launch.clone() };
    let desk = RunRequest { launch, by: "ann@here".to_owned(), wall_ms: 1, ..desk };
    let mut runner = OwnRunner::start(&server.url(), "a");
    let run = cluster.hand_over(desk).await.expect("stored").run;
    runner.until(|news| matches!(news, RunnerNews::Released(_))).await;
    let events = events_until(&cluster, &run, "question.answered").await;
    let nobody = events.iter().any(|event| match &event.kind {
        EventKind::QuestionAnswered(answered) => answered.by == AnsweredBy::Nobody,
        _ => false,
    });
    assert!(nobody);
}
