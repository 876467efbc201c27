//! A run of a cluster in the dashboard, over a real NATS server: its session continues on a runner, it is
//! forked here, and what left memory is read back.

use std::sync::Arc;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use crate::cluster::Cluster;
use crate::cluster::archive::RunArchive;
use crate::cluster::layout::ClusterLayout;
use crate::cluster::request::RunRequest;
use crate::cluster::runner::RunnerNews;
use crate::engine::{Engine, EngineSettings};
use crate::host::models::{LiveModels, parse_proxy};
use crate::host::trust::Trust;
use crate::log::event::{Answer, Event, EventKind, QuestionId, RunId, Seq, World};
use crate::log::world::Projection;
use crate::screen::effect::{FollowUp, LaunchRequest, RecordedSource, RequestId, RunBeginning};
use crate::screen::{Effect, Msg};
use crate::support::nats::NatsServer;
use crate::support::own_runner::{OwnRunner, PATIENCE, address, cluster, request};
use crate::terminal::effects::remote::{ShownCluster, show};
use crate::terminal::effects::{EffectResult, Services, execute};

/// What the dashboard gets, up to the first answer of this kind.
async fn until<T>(
    answers: &mut UnboundedReceiver<EffectResult>,
    mut wanted: impl FnMut(EffectResult) -> Option<T>,
) -> T {
    loop {
        let answer = timeout(PATIENCE, answers.recv()).await.expect("in time");
        if let EffectResult::Msg(Msg::StartFailed { text, .. }) = &answer.as_ref().expect("open") {
            panic!("{text}");
        }
        if let Some(found) = wanted(answer.expect("open")) {
            return found;
        }
    }
}

fn ended(run: &RunId) -> impl Fn(&RunnerNews) -> bool {
    move |news| matches!(news, RunnerNews::Ended(it, _) if it == run)
}

async fn events(cluster: &Cluster, run: &RunId) -> Vec<Arc<Event>> {
    let log = RunArchive(cluster).whole_log(run).await.expect("read").expect("events");
    log.events(Seq(0)).expect("events")
}

/// The number of the message that a run answers, and the run before it.
async fn answered(cluster: &Cluster, run: &RunId) -> (u32, Option<RunId>) {
    let events = events(cluster, run).await;
    let world = World::from_events(events.iter().map(|event| &**event));
    let session = world.projection().and_then(Projection::session).expect("a session");
    assert!(session.message == 1 || !session.history.is_empty(), "the team remembers");
    (session.message, session.previous_run.clone())
}

/// What a dashboard does for its screen, and what it answers. The folder ends with the value.
fn services() -> (Services, UnboundedReceiver<EffectResult>, tempfile::TempDir) {
    let models = LiveModels::new(parse_proxy(None).expect("no proxy"));
    let engine = Engine::new(EngineSettings::default());
    let folder = tempfile::tempdir().expect("a folder");
    let trust = Trust::saved_in(None);
    let (services, answers) = Services::new(engine, models, trust, None, folder.path().to_owned());
    (services, answers, folder)
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_cluster_after_streams_are_created() {
    let Some(server) = NatsServer::start() else { return };
    let (services, mut answers, _folder) = services();
    show(&services, ShownCluster::Configured(address(&server.url())));
    let why = until(&mut answers, |answer| match answer {
        EffectResult::Msg(Msg::EffectFailed { text, .. }) => Some(text),
        _ => None,
    });
    let why = why.await;
    assert!(!why.is_empty());
    let cluster = Cluster::connect(&address(&server.url()), "test").await.expect("connected");
    ClusterLayout(&cluster).make(1).await.expect("made");
    let run = cluster.hand_over(request("checkout-launch", &[])).await.expect("stored").run;
    let listed = until(&mut answers, |answer| match answer {
        EffectResult::Msg(Msg::Kept { rows, .. }) => rows.first().map(|row| row.id.clone()),
        _ => None,
    });
    assert_eq!(listed.await, run);
}

/// Nobody has attached to it: its question is here, and is answered from here.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_run_is_answered_unopened() {
    let Some((server, cluster)) = cluster().await else { return };
    let mut runner = OwnRunner::start(&server.url(), "a");
    let (services, mut answers, _folder) = services();
    show(&services, ShownCluster::Configured(address(&server.url())));
    let run = cluster.hand_over(request("refund-desk", &[])).await.expect("stored").run;
    let mut facts = until(&mut answers, |answer| match answer {
        EffectResult::Followed { run: followed, facts, remote, .. } => {
            assert_eq!((followed, remote.pid), (run.clone(), None));
            Some(facts)
        }
        _ => None,
    })
    .await;
    // It is followed once, whatever the list says of it.
    services.attach(run.clone(), None);
    for (id, answer) in
        [(1, Answer::Approve { args: None }), (2, Answer::Text { text: "We are.".into() })]
    {
        let id = QuestionId(id);
        let digest = loop {
            let mut batch = Vec::new();
            let came = timeout(PATIENCE, facts.next_batch(&mut batch, 1)).await.expect("in time");
            assert!(came > 0, "the log has ended");
            if let EventKind::QuestionAsked(asked) = &batch[0].kind
                && asked.id == id
            {
                break Arc::clone(&asked.digest);
            }
        };
        let run = run.clone();
        execute(&services, Effect::Answer { run, id, digest, answer, remember: false });
    }
    runner.until(ended(&run)).await;
    let end = until(&mut answers, |answer| match answer {
        EffectResult::Msg(Msg::FollowEnded { run, .. }) => Some(run),
        EffectResult::Followed { .. } => panic!("followed twice"),
        _ => None,
    });
    assert_eq!(end.await, run);
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_session_continues_and_forks_locally() {
    let Some((server, cluster)) = cluster().await else { return };
    let mut runner = OwnRunner::start(&server.url(), "a");
    let run = cluster.hand_over(request("support-swarm", &[])).await.expect("stored").run;
    runner.until(ended(&run)).await;
    let (services, mut answers, _folder) = services();
    show(&services, ShownCluster::Attached(cluster.clone(), run.clone(), RequestId(1)));
    let launch = until(&mut answers, |answer| match answer {
        EffectResult::Attached { launch, .. } => Some(launch.expect("a session")),
        _ => None,
    })
    .await;

    let follows = FollowUp { run: run.clone(), text: "And the voucher?".into() };
    let begins = RunBeginning::FollowUp(follows);
    services.start(LaunchRequest { id: RequestId(2), begins, ..*launch });
    let next = until(&mut answers, |answer| match answer {
        EffectResult::Attached { request: RequestId(2), run, .. } => Some(run),
        _ => None,
    })
    .await;
    runner.until(ended(&next)).await;
    assert_eq!(answered(&cluster, &next).await, (2, Some(run.clone())));

    let source =
        RecordedSource { request: RequestId(3), run: run.clone(), events: None, imported: false };
    services.read_fork(source);
    let offered = until(&mut answers, |answer| match answer {
        EffectResult::Msg(Msg::ForkReady { fork, .. }) => Some(fork.run),
        _ => None,
    });
    assert_eq!(offered.await, run);

    services.open_kept(run.clone(), RequestId(4), false);
    let mut read = 0;
    let problem = until(&mut answers, |answer| match answer {
        EffectResult::Opened { msg: Msg::Opened { events, .. }, .. } => {
            read += events.len();
            None
        }
        EffectResult::Msg(Msg::OpenedToEnd { problem, .. }) => Some(problem),
        _ => None,
    });
    assert_eq!(problem.await, None);
    assert_eq!(read, events(&cluster, &run).await.len());

    // The session continues from the archive too.
    RunArchive(&cluster).add(&run).await.expect("archived");
    let message = Some("And again?".to_owned());
    let again = RunRequest { message, after: Some(run.clone()), ..request("support-swarm", &[]) };
    let again = cluster.hand_over(again).await.expect("stored").run;
    runner.until(ended(&again)).await;
    assert_eq!(answered(&cluster, &again).await, (2, Some(run)));
}
