//! A store that cannot be written or is damaged: each change is stored or is an error, and no reader
//! passes on what was not stored.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::*;
use crate::base::word_query::WordQuery;
use crate::store::database::removal::{Deletion, Retention};
use crate::store::database::text_index::RunTextIndex;
use crate::store::database::writer::LockWaits;
use crate::store::database::{Database, StoreError};

/// Something that writes; `Ok`: whether it says that it did.
type Write = fn(&Database) -> Result<bool, StoreError>;

/// Every way to write, on a store that [`filled`] made.
const WRITES: &[(&str, Write)] = &[
    ("reserve", |it| it.reserve(&id("r-new"), 9)),
    ("begin", |it| it.begin(&row("r-new", 9, false), "00ff")),
    ("pin", |it| it.pin(&id("r-ended"), true)),
    ("delete", |it| it.delete(&id("r-ended"), 9).map(|it| it == Deletion::Done)),
    ("undelete", |it| it.undelete(&id("r-deleted"))),
    ("prune", |it| it.prune(Retention::default(), 99, 50).map(|it| it.runs == 1)),
    ("take over", |it| it.take_over(&id("r-left")).map(|it| it.is_some())),
    ("row", |it| it.update_now(&id("r-played"), &RunCourse::default()).map(|()| true)),
    ("import", |it| {
        let events = [warning("a"), closed()];
        let events: Vec<_> = group(0, &events).events(Seq(0)).expect("events");
        let row = row(it.free_id(&id("r-file"))?.as_str(), 9, false);
        it.import(&row, &RunCourse::default(), &events).map(|()| true)
    }),
    ("append", |it| {
        let added = group(1, &[warning(&"one more word ".repeat(9_000))]);
        let appended = done(it.append(&id("r-played"), Seq(1), &added));
        appended.map(|next| next == Seq(2)).map_err(StoreError::Refused)
    }),
];

/// A store with an ended run, a deleted one, one that was left, and one that this process plays.
fn filled() -> Temp {
    let temp = Temp::new();
    {
        let gone = temp.again();
        assert_eq!(gone.begin(&row("r-left", 1, false), ""), Ok(true));
        append(&gone, "r-left");
    }
    for name in ["r-ended", "r-deleted", "r-played"] {
        temp.begin(name, 2, false);
        append(&temp.database, name);
        if name != "r-played" {
            let course = RunCourse { ended: Some("success".to_owned()), ..RunCourse::default() };
            temp.database.update_now(&id(name), &course).expect("updated");
        }
    }
    assert_eq!(temp.database.delete(&id("r-deleted"), 9), Ok(Deletion::Done));
    temp
}

fn append(database: &Database, run: &str) {
    let first = group(0, &[warning("a")]);
    let appended = done(database.append(&id(run), Seq(0), &first));
    assert_eq!(appended, Ok(Seq(1)));
}

/// All that the tables say of runs, but for the words of the index.
fn contents(temp: &Temp) -> Vec<String> {
    let raw = temp.raw();
    let mut all = Vec::new();
    for table in ["run", "event_group"] {
        let mut query = raw.prepare(&format!("SELECT * FROM {table}")).expect("a query");
        let columns: Vec<String> = query.column_names().map(str::to_owned).collect();
        let mut rows = query.query([]).expect("rows");
        while let Some(row) = rows.next().expect("a row") {
            let value = |(at, name): (usize, &String)| {
                let indexed = ["said", "number"].contains(&name.as_str());
                let value = match row.get_ref(at).expect("a value") {
                    ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                    other => format!("{other:?}"),
                };
                (!indexed).then(|| format!("{name}={value}"))
            };
            all.push(columns.iter().enumerate().filter_map(value).collect::<Vec<_>>().join(" "));
        }
    }
    all
}

fn done<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(work)
}

impl Temp {
    fn path(&self) -> PathBuf {
        self.folder.path().join("state/runs.db")
    }

    /// Another program that has the file open.
    fn raw(&self) -> Connection {
        Connection::open(self.path()).expect("opens")
    }
}

#[test]
fn writes_fail_while_locked() {
    for (name, write) in WRITES {
        let temp = filled();
        let before = contents(&temp);
        let other = temp.raw();
        other.execute_batch("BEGIN IMMEDIATE").expect("locked");
        // As at the end of the program; the long wait is in tests/program.
        temp.database.waits().cancel();
        let begun = Instant::now();
        let failed = write(&temp.database).expect_err(name);
        assert!(failed.to_string().contains("holds the lock"), "{name}: {failed}");
        assert!(begun.elapsed() < Duration::from_secs(2), "{name}");
        other.execute_batch("ROLLBACK").expect("free");
        assert_eq!(contents(&temp), before, "{name}");
        assert_eq!(write(&temp.database), Ok(true), "{name}, once it is free");
    }
}

#[test]
fn operator_hears_of_long_wait() {
    let (said, heard) = mpsc::channel();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("runs.db");
    let waits = LockWaits::new(move |text| said.send(text.to_owned()).expect("heard"));
    let database = Database::open_with(&path, waits).expect("opens");
    let other = Connection::open(&path).expect("opens");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let (begun, waiting) = (Instant::now(), database.clone());
    let reserved = thread::spawn(move || waiting.reserve(&id("r-1"), 1));
    let text = heard.recv().expect("told");
    assert!(text.contains("another program holds the lock"), "{text}");
    let told = begun.elapsed();
    assert!(told >= Duration::from_secs(2) && told < Duration::from_secs(5), "{told:?}");
    other.execute_batch("ROLLBACK").expect("free");
    assert_eq!(reserved.join().expect("no panic"), Ok(true));
    assert!(heard.try_recv().is_err(), "told once");
}

#[test]
fn changes_waiting_for_lock_fail_together() {
    let temp = filled();
    let other = temp.raw();
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");
    temp.database.waits().cancel();
    let begun = Instant::now();
    thread::scope(|scope| {
        for number in 0..40 {
            let database = &temp.database;
            scope.spawn(move || {
                let failed = database.reserve(&id(&format!("r-{number}")), 1);
                assert_eq!(failed, Err(StoreError::Locked));
            });
        }
    });
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

#[test]
fn failed_statement_fails_its_change() {
    let statements = [
        ("INSERT", "run"),
        ("UPDATE", "run"),
        ("DELETE", "run"),
        ("INSERT", "event_group"),
        ("DELETE", "event_group"),
    ];
    let mut failed_writes = BTreeSet::new();
    let mut failed_statements = BTreeSet::new();
    for (statement, table) in statements {
        for (name, write) in WRITES {
            let temp = filled();
            let trigger = format!(
                "CREATE TEMP TRIGGER broken BEFORE {statement} ON main.{table} BEGIN
                 SELECT RAISE(FAIL, 'an injected failure'); END"
            );
            let before = contents(&temp);
            temp.database.with_writer(&trigger).expect("injected");
            match write(&temp.database) {
                Ok(done) => assert!(done, "{name}: {statement} {table}"),
                Err(failed) => {
                    failed_writes.insert(*name);
                    failed_statements.insert((statement, table));
                    let says = failed.to_string();
                    let injected = ["an injected failure", "constraint failed"];
                    assert!(injected.iter().any(|it| says.contains(it)), "{name}: {says}");
                    // What was stored before stays; an import that failed is hidden.
                    let after = contents(&temp);
                    assert!(before.iter().all(|row| after.contains(row)), "{name}: {after:?}");
                    assert!(after.iter().all(|it| before.contains(it) || it.contains("r-file")));
                }
            }
            drop(temp.database);
        }
    }
    assert_eq!(failed_writes, WRITES.iter().map(|(name, _)| *name).collect());
    assert_eq!(failed_statements, BTreeSet::from(statements));
}

#[test]
fn full_disk_fails_each_write() {
    for (name, write) in WRITES {
        for free in 0.. {
            let temp = filled();
            let before = contents(&temp);
            temp.database.checkpoint();
            let pages: i64 =
                temp.raw().query_row("PRAGMA page_count", [], |row| row.get(0)).expect("a number");
            temp.database.limit_pages(Some(pages + free)).expect("limited");
            match write(&temp.database) {
                Ok(done) => {
                    assert!(done, "{name} with {free} pages");
                    break;
                }
                Err(failed) => {
                    assert!(failed.to_string().contains("the disk is full"), "{name}: {failed}");
                    let after = contents(&temp);
                    assert!(before.iter().all(|row| after.contains(row)), "{name}: {after:?}");
                }
            }
            assert!(free < 99, "{name} never fits");
        }
    }
}

#[cfg(unix)]
#[test]
fn removed_store_file_refuses_writes() {
    for replaced in [false, true] {
        for (name, write) in WRITES {
            let temp = filled();
            let state = temp.folder.path().join("state");
            std::fs::rename(&state, temp.folder.path().join("away")).expect("moved");
            if replaced {
                drop(Database::open(&temp.path()).expect("a new one"));
            }
            // A row is looked up in the old file or in the new one, which does not have it.
            let written = write(&temp.database);
            assert!(written != Ok(true), "{name}, {replaced}: {written:?}");
            if matches!(*name, "reserve" | "begin" | "append" | "row" | "pin") {
                assert!(written.expect_err(name).to_string().contains("removed"), "{name}");
            }
        }
    }
}

#[test]
fn copied_file_has_every_run() {
    for ends_by_itself in [false, true] {
        let temp = filled();
        // Connections for reading stay open between reads.
        assert_eq!(temp.database.runs().expect("read").rows.len(), 3);
        let path = temp.path();
        let Temp { database, folder } = temp;
        let other = Database::open(&path).expect("opens");
        other.runs().expect("read");
        match ends_by_itself {
            true => drop(database),
            false => database.checkpoint(),
        }
        let copy = folder.path().join("copy.db");
        std::fs::copy(&path, &copy).expect("copied");
        assert_eq!(Database::open(&copy).expect("opens").runs().expect("read").rows.len(), 3);
    }
}

/// Every way to read the log of a run.
async fn readers(database: &Database, run: &RunId) -> Vec<(&'static str, Result<u64, String>)> {
    let events = |groups: Vec<EventGroup>| groups.iter().map(|it| u64::from(it.len())).sum();
    let all: Vec<_> = database.read(run, Seq(0)).collect().await;
    let all = all.into_iter().collect::<Result<Vec<_>, _>>();
    let tail: Vec<_> = database.tail(run, Seq(0)).collect().await;
    let tail = tail.into_iter().collect::<Result<Vec<_>, _>>();
    vec![
        ("read", all.map(events).map_err(|it| it.to_string())),
        ("tail", tail.map(events).map_err(|it| it.to_string())),
    ]
}

#[tokio::test]
async fn readers_refuse_damaged_groups() {
    let damages = [
        "UPDATE event_group SET bytes = CAST(replace(CAST(bytes AS TEXT), 'word b', 'word x') AS BLOB)",
        "UPDATE event_group SET bytes = CAST(replace(CAST(bytes AS TEXT), '}', ' ') AS BLOB)",
        "UPDATE event_group SET bytes = substr(bytes, 1, length(bytes) - 3) WHERE first = 2",
        "UPDATE event_group SET bytes = x'' WHERE first = 0",
        "UPDATE event_group SET n = 3 WHERE first = 2",
        "UPDATE event_group SET sum = sum + 1 WHERE first = 4",
        "DELETE FROM event_group WHERE first = 0",
        "DELETE FROM event_group WHERE first = 2",
        "DELETE FROM event_group WHERE first = 4",
        "DELETE FROM event_group",
        "UPDATE event_group SET first = 3 WHERE first = 2",
    ];
    for damage in damages {
        let temp = Temp::new();
        let run = temp.begin("r-1", 1, false);
        for first in [0, 2, 4] {
            let kinds = [warning("word a"), warning("word b")];
            temp.database.append(&run, Seq(first), &group(first, &kinds)).await.expect("appended");
        }
        temp.end(&run, "success").await;
        for (reader, read) in readers(&temp.database, &run).await {
            assert_eq!(read, Ok(6), "{reader}");
        }
        assert!(temp.raw().execute(damage, []).expect(damage) > 0, "{damage}");
        for (reader, read) in readers(&temp.database, &run).await {
            let failed = read.expect_err(damage);
            assert!(failed.starts_with("event "), "{reader}: {failed}");
        }
        let report = Database::check(&temp.path()).expect("checked");
        assert!(report.damage[0].starts_with("r-1: "), "{damage}: {report:?}");
    }
}

#[test]
fn a_damaged_row_hides_no_other() {
    for damage in [
        "elapsed_ms = -5",
        "started = -99",
        "tokens = -1",
        "next = -1",
        "bytes = -1",
        "title = CAST(x'ff41' AS TEXT)",
        "answer = CAST(x'ff41' AS TEXT)",
        "status = 'paused'",
    ] {
        let temp = filled();
        let sql = format!("UPDATE run SET {damage} WHERE id = 'r-ended'");
        assert_eq!(temp.raw().execute(&sql, []), Ok(1), "{damage}");
        let kept = temp.database.runs().expect(damage);
        let ids: Vec<&str> = kept.rows.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids, ["r-played", "r-left"], "{damage}");
        let Some(StoreError::Damaged(why)) = kept.error() else { panic!("{damage}: {kept:?}") };
        assert!(why.starts_with("r-ended: its row cannot be read: "), "{damage}: {why}");
        let report = Database::check(&temp.path()).expect("checked");
        assert_eq!((report.runs, &*report.damage), (4, &[why.clone()][..]), "{damage}");
        let found = temp.database.run("r-ended").expect_err(damage);
        assert_eq!(found, StoreError::Damaged(why), "{damage}");
        assert!(found.with_advice().contains("roundtable doctor"), "{found:?}");
        assert!(temp.database.run("r-left").expect(damage).is_some());
        assert_eq!(temp.database.interrupted().expect(damage).len(), 1);
        let pruned = temp.database.prune(Retention::default(), 99, 50).expect(damage);
        assert_eq!(pruned.runs, 1, "{damage}: the deleted one");
    }
}

#[tokio::test]
async fn search_skips_damaged_run() {
    let temp = Temp::new();
    let said =
        EventKind::AnswerComposed { text: "an umbrella".into(), by: None, end: Default::default() };
    for name in ["r-1", "r-2"] {
        let run = temp.begin(name, 1, false);
        let lines = group(0, std::slice::from_ref(&said)).lines().to_vec();
        let said = EventGroup::stored(Seq(0), 1, lines);
        temp.database.append(&run, Seq(0), &said).await.expect("appended");
    }
    temp.raw().execute("UPDATE event_group SET n = 2 WHERE run = 'r-1'", []).expect("damaged");
    let index = RunTextIndex(&temp.database);
    let mut behind = index.unindexed().expect("read");
    assert_eq!(behind.len(), 2);
    let damaged = index.index_for(&mut behind, Duration::MAX).expect("indexed");
    assert_eq!(damaged.iter().map(|(run, _)| run.as_str()).collect::<Vec<_>>(), ["r-1"]);
    assert_eq!(behind, []);
    let hits = index.hits_of(&WordQuery::parse("umbrella"), 9).expect("searched");
    assert_eq!(hits.iter().map(|hit| hit.run.as_str()).collect::<Vec<_>>(), ["r-2"]);
}

#[test]
fn follower_ends_without_player() {
    let temp = filled();
    let groups: Vec<_> = done(temp.database.tail(&id("r-left"), Seq(0)).collect());
    assert_eq!(groups.len(), 1, "{groups:?}");
}
