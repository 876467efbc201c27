//! What only the database does: rows, owners, retention, versions, a full disk.

use futures::StreamExt as _;

use super::*;
use crate::log::event::QuestionAsked;
use crate::store::database::OpenError;
use crate::store::database::removal::{Deletion, Retention};

#[tokio::test]
async fn fences_off_group_of_other_process() {
    let temp = Temp::new();
    let run = temp.begin("r-1", 1, false);
    let other = temp.again();
    let first = group(0, &[warning("a")]);
    assert_eq!(other.append(&run, Seq(0), &first).await, Err(AppendError::Fenced));
    assert_eq!(other.take_over(&run).expect("read"), None, "its process lives");
    temp.database.append(&run, Seq(0), &first).await.expect("appended");
    assert!(!other.reserve(&run, 5).expect("read"), "the id is taken");
}

#[tokio::test]
async fn orphaned_run_is_taken_over_once() {
    let temp = Temp::new();
    let run = {
        let gone = temp.again();
        let row = row("r-1", 1, true);
        assert!(gone.reserve(&row.id, 1).expect("reserved"));
        assert_eq!(gone.begin(&row, "00ff"), Ok(true));
        gone.append(&row.id, Seq(0), &group(0, &[warning("a")])).await.expect("appended");
        assert_eq!(
            temp.database.run("r-1").expect("read").expect("a row").status,
            RunStatus::Running
        );
        row.id
    };
    let status = temp.database.run("r-1").expect("read").expect("a row").status;
    assert_eq!(status, RunStatus::Interrupted);
    let other = temp.again();
    assert_eq!(temp.database.take_over(&run).expect("taken"), Some(Seq(1)));
    assert_eq!(other.take_over(&run).expect("read"), None, "it is played again");
    let next = group(1, &[warning("b")]);
    assert_eq!(other.append(&run, Seq(1), &next).await, Err(AppendError::Fenced));
    assert_eq!(temp.database.append(&run, Seq(1), &next).await, Ok(Seq(2)));
}

#[tokio::test]
async fn rows_say_what_the_list_shows() {
    let temp = Temp::new();
    let (old, new) = (temp.begin("r-old", 1_000, false), temp.begin("r-new", 2_000, true));
    for run in [&old, &new] {
        temp.database.append(run, Seq(0), &group(0, &[warning("a")])).await.expect("appended");
    }
    let course = RunCourse {
        title: Some("Another title".into()),
        elapsed_ms: 1_500,
        tokens: 42,
        cost_usd: Some(0.25),
        result: Some("go_with_caution".into()),
        ended: Some("max_seconds".to_owned()),
    };
    temp.database.update(&old, &course).await.expect("updated");
    let rows = temp.again().runs().expect("read").rows;
    let [first, second] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&first.id, &first.status, first.live), (&new, &RunStatus::Running, true));
    assert_eq!(second.status, RunStatus::Ended("max_seconds".to_owned()));
    assert_eq!((second.elapsed_ms, second.tokens, second.cost_usd), (1_500, 42, Some(0.25)));
    assert_eq!((second.events, &*second.title), (1, "Another title"));
    temp.database.update(&old, &RunCourse { title: None, ..course }).await.expect("updated");
    let row = temp.database.run("r-old").expect("read").expect("a row");
    assert_eq!(&*row.title, "Another title");
    assert_eq!((second.result.as_deref(), &first.result), (Some("go_with_caution"), &None));
    assert!(second.bytes > 20);
    assert_eq!(temp.database.nth_last(1).expect("read").expect("a row").id, old);
    let found = temp.database.runs_with_prefix("r-", 9).expect("read");
    assert_eq!(found.len(), 2);
    assert_eq!(temp.database.runs_with_prefix("r-%", 9).expect("read"), []);
}

fn kind(text: &str) -> EventKind {
    let line = text.replacen('{', "{\"seq\":0,\"at_us\":0,\"span\":0,", 1);
    Event::from_line(&line).expect("an event").kind
}

fn asked(id: u32, who: &str) -> EventKind {
    kind(&format!(
        r#"{{"kind":"question.asked","id":"q{id}","who":"{who}","about":"agent","text":"Which?",
        "digest":"d","otherwise":"stop"}}"#
    ))
}

/// However the events are grouped, and also if the process was killed or the run was imported.
#[tokio::test]
async fn rows_say_who_is_asked() {
    let answered = kind(
        r#"{"kind":"question.answered","id":"q1","digest":"d","by":"script","answer":"text","text":"A"}"#,
    );
    let withdrawn = kind(r#"{"kind":"question.withdrawn","id":"q1","why":"changed"}"#);
    let EventKind::QuestionAsked(by_rule) = asked(1, "manager") else { panic!("a question") };
    let by_rule = EventKind::QuestionAsked(Arc::new(QuestionAsked {
        by_rule: true,
        ..QuestionAsked::clone(&by_rule)
    }));
    let q1 = || asked(1, "manager");
    let cases: [(&[EventKind], &[&str]); 9] = [
        (&[warning("a")], &[]),
        (&[q1()], &["manager"]),
        (&[q1(), answered.clone()], &[]),
        (&[q1(), asked(2, "chair"), answered.clone()], &["chair"]),
        (&[asked(10, "chair"), asked(2, "manager")], &["manager", "chair"]),
        (&[q1(), withdrawn.clone()], &[]),
        (&[q1(), answered, withdrawn], &[]),
        (&[q1(), closed()], &[]),
        (&[by_rule], &[]),
    ];
    let temp = Temp::new();
    let listed = |id: &str| temp.database.run(id).expect("read").expect("a row");
    for (nth, (kinds, who)) in cases.into_iter().enumerate() {
        let names = |row: RunRow| row.waits_for.iter().map(ToString::to_string).collect::<Vec<_>>();
        for (groups, of) in [("one", kinds.len()), ("each", 1)] {
            let run = {
                let killed = temp.again();
                let row = row(&format!("r-{nth}-{groups}"), 1, false);
                assert!(killed.reserve(&row.id, 1).expect("reserved"));
                assert_eq!(killed.begin(&row, "00ff"), Ok(true));
                for (part, kinds) in kinds.chunks(of).enumerate() {
                    let group = group((part * of) as u64, kinds);
                    killed.append(&row.id, group.first(), &group).await.expect("appended");
                }
                assert_eq!(names(listed(row.id.as_str())), who, "{kinds:?}, still played");
                row.id
            };
            let row = listed(run.as_str());
            assert_eq!(row.status, RunStatus::Interrupted);
            assert_eq!(names(row), who, "{kinds:?}");
        }
        let (row, seqs) = (row(&format!("r-{nth}-file"), 1, false), 0..);
        let events = seqs.zip(kinds).map(|(seq, kind)| {
            let (seq, at) = (Seq(seq), crate::log::event::Elapsed(seq));
            Arc::new(Event { seq, at, span: SpanId::RUN, kind: kind.clone() })
        });
        let events: Vec<_> = events.collect();
        temp.database.import(&row, &RunCourse::default(), &events).expect("imported");
        assert_eq!(names(listed(row.id.as_str())), who, "{kinds:?}, imported");
    }
    // An ended run waits for nobody.
    let run = temp.begin("r-ended", 1, false);
    temp.database.append(&run, Seq(0), &group(0, &[q1()])).await.expect("appended");
    temp.end(&run, "cancelled").await;
    assert_eq!(listed("r-ended").waits_for, []);
}

#[tokio::test]
async fn deleted_run_returns_until_final_removal() {
    let temp = Temp::new();
    let run = temp.begin("r-1", 1_000, false);
    temp.database.append(&run, Seq(0), &group(0, &[closed()])).await.expect("appended");
    assert_eq!(temp.database.delete(&run, 5_000), Ok(Deletion::Played));
    temp.end(&run, "success").await;
    assert_eq!(temp.database.delete(&run, 5_000), Ok(Deletion::Done));
    assert_eq!(temp.database.runs().expect("read").rows, []);
    assert!(temp.database.undelete(&run).expect("written"));
    assert_eq!(temp.database.runs().expect("read").rows.len(), 1);
    assert_eq!(temp.database.delete(&run, 5_000), Ok(Deletion::Done));
    let keep = Retention::default();
    assert_eq!(temp.database.prune(keep, 6_000, 5_000).expect("pruned").runs, 0);
    assert_eq!(temp.database.prune(keep, 6_000, 5_001).expect("pruned").runs, 1);
    assert!(!temp.database.undelete(&run).expect("written"));
    assert_eq!(temp.database.read(&run, Seq(0)).collect::<Vec<_>>().await.len(), 1, "an error");
}

#[tokio::test]
async fn retention_counts_scripted_and_live_separately() {
    const DAY: u64 = 86_400_000;
    let temp = Temp::new();
    let now = 100 * DAY;
    for (name, day, live) in [
        ("r-pinned", 1, false),
        ("r-played", 2, false),
        ("r-live-1", 10, true),
        ("r-live-2", 91, true),
        ("r-1", 92, false),
        ("r-2", 93, false),
        ("r-3", 94, false),
    ] {
        let run = temp.begin(name, day * DAY, live);
        temp.database.append(&run, Seq(0), &group(0, &[closed()])).await.expect("appended");
        if name != "r-played" {
            temp.end(&run, "success").await;
        }
    }
    temp.database.pin(&id("r-pinned"), true).expect("pinned");
    let left = |database: &Database| {
        let mut ids: Vec<String> =
            database.runs().expect("read").rows.iter().map(|row| row.id.to_string()).collect();
        ids.sort();
        ids
    };
    let keep = Retention { runs: 2, days: 30, bytes: u64::MAX };
    let pruned = temp.database.prune(keep, now, 0).expect("pruned");
    assert_eq!(left(&temp.database), ["r-2", "r-3", "r-live-2", "r-pinned", "r-played"]);
    assert_eq!(pruned.runs, 2);
    let each = temp.database.run("r-3").expect("read").expect("a row").bytes;
    let keep = Retention { bytes: each, ..keep };
    temp.database.prune(keep, now, 0).expect("pruned");
    assert_eq!(left(&temp.database), ["r-3", "r-pinned", "r-played"], "the newest that fits");
    temp.database.pin(&id("r-pinned"), false).expect("unpinned");
    temp.database.prune(keep, now, 0).expect("pruned");
    assert_eq!(left(&temp.database), ["r-3", "r-played"]);
}

#[test]
fn files_of_others_stay_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("runs.db");
    drop(Database::open(&path).expect("opens"));
    let raw = rusqlite::Connection::open(&path).expect("opens");
    for version in [0, 1, 5, 7, 99] {
        raw.pragma_update(None, "user_version", version).expect("written");
        raw.pragma_update(None, "wal_checkpoint", "TRUNCATE").expect("written");
        let before = std::fs::read(&path).expect("read");
        for opened in [Database::open(&path).map(drop), Database::check(&path).map(drop)] {
            let error = opened.expect_err("refused");
            match error {
                OpenError::Older { found, .. } if version < 6 => assert_eq!(found, version),
                OpenError::Newer { found, .. } if version > 6 => assert_eq!(found, version),
                error => panic!("{version}: {error:?}"),
            }
        }
        assert_eq!(std::fs::read(&path).expect("read"), before);
    }
    drop(raw);

    let path = folder.path().join("other.db");
    let raw = rusqlite::Connection::open(&path).expect("opens");
    raw.execute_batch("CREATE TABLE mine (a); INSERT INTO mine VALUES (1)").expect("written");
    drop(raw);
    let Err(OpenError::Foreign) = Database::open(&path) else { panic!("foreign") };
    let raw = rusqlite::Connection::open(&path).expect("opens");
    let rows: i64 = raw.query_row("SELECT count(*) FROM mine", [], |row| row.get(0)).expect("read");
    assert_eq!(rows, 1);

    let path = folder.path().join("text.db");
    std::fs::write(&path, "no database at all, but longer than its header would be")
        .expect("written");
    assert!(matches!(Database::open(&path), Err(OpenError::NotDatabase)));
}

#[cfg(unix)]
#[test]
fn files_are_private_to_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let temp = Temp::new();
    temp.begin("r-1", 1, false);
    let state = temp.folder.path().join("state");
    let mode = |path: &std::path::Path| {
        std::fs::metadata(path).expect("is there").permissions().mode() & 0o777
    };
    assert_eq!(mode(&state), 0o700);
    for entry in std::fs::read_dir(&state).expect("read").flatten() {
        let expected = if entry.path().is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&entry.path()), expected, "{}", entry.path().display());
    }
}

#[test]
fn many_open_new_store_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("runs.db");
    std::thread::scope(|scope| {
        let opened: Vec<_> = (0..8).map(|_| scope.spawn(|| Database::open(&path))).collect();
        let mut names: Vec<String> = opened
            .into_iter()
            .map(|it| it.join().expect("no panic").expect("opens"))
            .map(|database| database.owner().name().to_owned())
            .collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 8, "each has a name of its own");
    });
}

#[test]
fn full_database_keeps_stored_events() {
    let temp = Temp::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(async {
        let run = temp.begin("r-1", 1, false);
        temp.database.append(&run, Seq(0), &group(0, &[warning("a")])).await.expect("appended");
        temp.database.limit_pages(Some(1)).expect("limited");
        let large = group(1, &[warning(&"x".repeat(200_000))]);
        let full = temp.database.append(&run, Seq(1), &large).await;
        let text = "the disk is full; make room on the disk, then try again";
        assert_eq!(full, Err(AppendError::Unsure(text.to_owned())));
        assert_eq!(temp.database.next(&run).await, Ok(Seq(1)));
        temp.database.limit_pages(None).expect("limited");
        assert_eq!(temp.database.append(&run, Seq(1), &large).await, Ok(Seq(2)));
    });
}
