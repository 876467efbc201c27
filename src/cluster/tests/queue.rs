//! The queue of runs that wait, and what it takes from others.

use std::time::Duration;

use super::request;
use crate::cluster::names::QUEUE;
use crate::cluster::request::POOL;
use crate::cluster::rows::{ClusterRow, RunRows};
use crate::event::RunId;
use crate::support::own_runner::{address, cluster};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_several_runners_queue_again_is_queued_once() {
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
async fn an_item_that_names_no_run_is_removed() {
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
async fn pools_of_two_namespaces_never_share_a_queue() {
    use crate::cluster::names::Namespace;
    use crate::cluster::{Cluster, address::ClusterAddress};
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
async fn names_from_others_that_would_change_a_subject_are_refused() {
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
    assert_eq!(RunRows(&cluster).all().await, Ok(Vec::new()));
    RunRows(&cluster).put(&row("a")).await.expect("stored");
    assert_eq!(RunRows(&cluster).all().await.map(|rows| rows.len()), Ok(1));
}
