//! Commands on the runs of a cluster besides playing them: list, copy to this machine and back; and the
//! report of `doctor` on the cluster.

use serde_json::Value;

use crate::support::binary::{Home, end, without_times};
use crate::support::nats::NatsServer;
use crate::support::runners::RunnerTeam;

fn ids(rows: &Value) -> Vec<String> {
    let rows = rows.as_array().expect("a list").iter();
    rows.map(|row| row["id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn remote_session_matches_local_session() {
    let Some(team) = RunnerTeam::start() else { return };
    let _runner = team.runner("a", None);
    let args =
        ["support-swarm", "--instant", "--message", "one", "--message", "two", "--format", "json"];
    let here = Home::new().run(&[&["run", "--no-store"], &args[..]].concat());
    let there = team.run(&args);
    assert_eq!(there.code, here.code, "{there:?}");
    assert_eq!(without_times(&there.json()), without_times(&here.json()));
    assert_eq!(there.json()["session"].as_array().expect("a list").len(), 2);
    // Without an answer to wait for there is only the first message.
    let detached = team.run(&["support-swarm", "--instant", "--detach"]);
    assert!(detached.err.contains("only the first message"), "{detached:?}");
}

#[test]
fn lists_and_copies_runs_both_ways() {
    let Some(team) = RunnerTeam::start() else { return };
    let _runner = team.runner("a", None);
    let url = team.server.url();
    let played = team.run(&["checkout-launch", "--instant", "--format", "json"]);
    assert_eq!(played.code, Some(0), "{played:?}");
    let rows = team.home.run(&["runs", "--on", &url, "--json"]).json();
    let [run] = &ids(&rows)[..] else { panic!("{rows}") };
    assert_eq!((&rows[0]["runner"], &rows[0]["stop_reason"]), (&"a".into(), &"success".into()));

    // Twice, and it is here once.
    for _ in 0..2 {
        let pulled = team.home.run(&["cluster", "pull", run, "--on", &url]);
        assert_eq!((pulled.code, pulled.out.trim()), (Some(0), run.as_str()), "{pulled:?}");
    }
    assert_eq!(ids(&team.home.run(&["runs", "--json"]).json()), std::slice::from_ref(run));
    let shown = team.home.run(&["show", run, "--format", "json"]).json();
    assert_eq!(without_times(&shown), without_times(&played.json()));
    let forked =
        team.home.run(&["fork", &format!("{run}@round:2"), "--instant", "--format", "json"]);
    assert_eq!(forked.code, Some(0), "{forked:?}");

    let pushed = team.home.run(&["cluster", "push", "last", "--on", &url]);
    assert_eq!(pushed.code, Some(0), "{pushed:?}");
    let listed = ids(&team.home.run(&["runs", "--on", &url, "--json"]).json());
    assert_eq!(listed.len(), 2, "{listed:?}");
    let elsewhere = Home::new();
    let pulled = elsewhere.run(&["cluster", "pull", pushed.out.trim(), "--on", &url]);
    assert_eq!(pulled.code, Some(0), "{pulled:?}");
    let shown = elsewhere.run(&["show", "last", "--format", "json"]).json();
    assert_eq!(without_times(&shown), without_times(&forked.json()));

    let again = team.home.run(&["cluster", "push", "last", "--on", &url]);
    assert!(again.code == Some(1) && again.err.contains("has a run with this id"), "{again:?}");
    for (name, why) in [("r-none", "no events of such a run"), ("a b", "not an id of a run")] {
        let refused = team.home.run(&["cluster", "pull", name, "--on", &url]);
        assert!(refused.code == Some(1) && refused.err.contains(why), "{refused:?}");
    }
}

#[test]
fn refuses_to_copy_unfinished_run() {
    let Some(team) = RunnerTeam::start() else { return };
    let _runner = team.runner("a", None);
    let url = team.server.url();
    let mut followed =
        team.follow(&["checkout-launch", "--pause-at", "round:2", "--format", "jsonl"]);
    let run = followed.until("paused")["run"].as_str().expect("an id").to_owned();
    let refused = team.home.run(&["cluster", "pull", &run, "--on", &url]);
    assert!(refused.err.contains("roundtable attach"), "{refused:?}");
    assert_eq!(refused.code, Some(1));
}

#[test]
fn doctor_says_what_a_cluster_lacks() {
    let home = Home::new();
    let none = home.run(&["doctor", "--cluster"]);
    assert!(none.code == Some(1) && none.flat().contains("[cluster]"), "{none:?}");
    let gone = home.run(&["doctor", "--cluster", "--on", "nats://127.0.0.1:1"]);
    assert!(gone.code == Some(1) && gone.flat().contains("cluster serve"), "{gone:?}");
    let users = r#"authorization { users: [
        {user: all, password: hush}
        {user: watcher, password: hush, permissions: {publish: ["$JS.API.>"], subscribe: [">"]}}
    ] }"#;
    let Some(server) = NatsServer::start_with(users) else { return };
    let url = server.url();
    let run = |user: &str, args: &[&str]| {
        let mut command = home.command(&[args, &["--on", &url]].concat());
        end(command.env("ROUNDTABLE_NATS_USER", user).env("ROUNDTABLE_NATS_PASSWORD", "hush"))
    };
    let bare = run("all", &["doctor", "--cluster"]);
    assert!(bare.code == Some(1) && bare.flat().contains("missing: RT_F_00"), "{bare:?}");
    assert_eq!(run("all", &["cluster", "init"]).code, Some(0));
    let good = run("all", &["doctor", "--cluster"]);
    assert_eq!(good.code, Some(0), "{good:?}");
    let flat = good.flat();
    for part in ["may watch runs, send commands to runs", "none is alive", "the only copy"] {
        assert!(flat.contains(part), "{part}: {flat}");
    }
    let watcher = run("watcher", &["doctor", "--cluster"]).flat();
    assert!(watcher.contains("may not send commands to runs, hand runs over"), "{watcher}");
    // A forbidden command is refused at once, and not after the timeout of an answer.
    let refused = run("watcher", &["run", "checkout-launch", "--instant"]);
    assert!(refused.err.contains("the login may not do this"), "{refused:?}");
    assert!(!format!("{good:?}{refused:?}").contains("hush"));
}
