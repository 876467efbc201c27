//! What keeping runs costs: groups appended durably, a whole run with the store beside one without it,
//! and the index of what was said.

mod paired;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use paired::{cpu, held, pairs, report, timed};
use roundtable::bench::{
    Database, EventGroup, Retention, RunCourse, RunLog as _, RunRow, SaidIndex, StoreKeeper,
    StoredRuns, WordQuery,
};
use roundtable::{
    Engine, EngineSettings, Event, Launch, LogLimits, RunId, Scenario, ScenarioOrigin, Seq, World,
    load,
};
use tokio::runtime::Runtime;

const TEXT: &str = include_str!("../scenarios/ping-pong.toml");

/// Handoffs in a run; each is nine events.
const HANDOFFS: u32 = 11_112;

/// Events in a group, as runs that pause for models have them.
const GROUP: usize = 32;

fn endless() -> Arc<Scenario> {
    let text = TEXT
        .replace("max_handoffs                  = 20", &format!("max_handoffs = {HANDOFFS}"))
        .replace("repetitive_handoff_window     = 8", "repetitive_handoff_window = 0");
    let origin = ScenarioOrigin::Shipped("scenarios/ping-pong.toml");
    Arc::new(load(&text, origin, &[]).expect("a good scenario"))
}

/// Plays the run as `run --format jsonl` does, headless; with a store until all of it is stored.
fn play(runtime: &Runtime, scenario: &Arc<Scenario>, stored: Option<Arc<StoredRuns>>) -> RunId {
    let mut lines = 0;
    runtime.block_on(async {
        let log = LogLimits { window: 0, ahead: 64 << 20 };
        let settings = EngineSettings { log, finished_bytes: 0 };
        let keeper = stored.clone().map(|stored| Arc::new(StoreKeeper(stored)) as _);
        let engine = Engine::with_keeper(settings, keeper);
        let run = engine.start(Launch::scripted(Arc::clone(scenario), true));
        let mut reader = run.first_reader();
        let (mut events, mut world) = (Vec::new(), World::new());
        while reader.next_batch(&mut events, 1_024).await > 0 {
            for event in events.drain(..) {
                world.apply(&event);
                lines += event.to_line().expect("a line").len();
            }
        }
        assert!(world.outcome().is_some() && lines > 0);
        if let Some(stored) = stored {
            stored.finish().await;
        }
        run.id().clone()
    })
}

/// The events of a stored run.
fn events_of(runtime: &Runtime, database: &Database, run: &RunId) -> Vec<Arc<Event>> {
    use futures::StreamExt as _;
    runtime.block_on(async {
        let groups: Vec<_> = database.read(run, Seq(0)).collect().await;
        groups
            .into_iter()
            .flat_map(|it| it.expect("read").events(Seq(0)).expect("events"))
            .collect()
    })
}

fn groups(events: &[Arc<Event>], run: &RunId) -> Vec<EventGroup> {
    let chunks = events.chunks(GROUP);
    chunks
        .map(|chunk| {
            let mut group = EventGroup::starting_at(chunk[0].seq);
            chunk.iter().for_each(|event| group.push(event, run).expect("a line"));
            group
        })
        .collect()
}

/// Appends groups, each when the one before it is stored.
fn append(runtime: &Runtime, database: &Database, run: &str, groups: &[EventGroup]) -> Duration {
    let row = RunRow::begun(RunId::new(run));
    assert!(database.reserve(&row.id, 1).expect("reserved"));
    database.begin(&row);
    timed(|| {
        runtime.block_on(async {
            for group in groups {
                database.append(&row.id, group.first(), group).await.expect("appended");
            }
        });
    })
}

fn size(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).expect("a folder").flatten();
    files.filter_map(|file| file.metadata().ok()).filter(|it| it.is_file()).map(|it| it.len()).sum()
}

#[allow(clippy::cast_precision_loss)]
fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("one");
    let scenario = endless();
    let dir = tempfile::tempdir().expect("a folder");
    let open = |name: &str| Database::open(&dir.path().join(name).join("runs.db")).expect("opens");
    let stored = runtime.block_on(async { StoredRuns::new(open("runs"), true) });

    let mut last = None;
    let beside = pairs(
        9,
        || timed(|| last = Some(play(&runtime, &scenario, Some(Arc::clone(&stored))))),
        || timed(|| drop(play(&runtime, &scenario, None))),
    );
    let events = events_of(&runtime, stored.database(), &last.expect("a run"));
    let count = events.len();
    let (with, without) = beside.medians();
    let shown = format!("{:.2}x ({:.0} / {:.0} ms)", beside.ratio(), with * 1e3, without * 1e3);
    report(&format!("a run of {count} events, stored / not stored"), &shown, "1.3x, 2 free cores");

    let said = groups(&events, &RunId::new("r-1"));
    let silent: Vec<EventGroup> = said
        .iter()
        .map(|group| EventGroup::stored(group.first(), group.len(), group.lines().to_vec()))
        .collect();
    let (with_index, without_index) = (open("said"), open("silent"));
    let mut nth = 0;
    let mut name = || {
        nth += 1;
        format!("r-{nth}")
    };
    let (mut names, mut others) = (Vec::new(), Vec::new());
    (0..40).for_each(|_| names.push(name()));
    (0..40).for_each(|_| others.push(name()));
    // The machine may be busy with something else: the ratio is that of the processors' time.
    let mut wall = (Duration::ZERO, Duration::ZERO);
    let appended = pairs(
        5,
        || {
            let begun = cpu();
            wall.0 = append(&runtime, &with_index, &names.pop().expect("a name"), &said);
            cpu() - begun
        },
        || {
            let begun = cpu();
            wall.1 = append(&runtime, &without_index, &others.pop().expect("a name"), &silent);
            cpu() - begun
        },
    );
    let (with, without) = (wall.0.as_secs_f64(), wall.1.as_secs_f64());
    let rate = |seconds: f64| count as f64 / seconds / 1e3;
    let shown =
        format!("{:.2}x ({:.0}k / {:.0}k events/s)", appended.ratio(), rate(with), rate(without));
    report("groups of 32 appended, with index / without", &shown, "1.3x; 100k/s");
    let bytes: usize = said.iter().map(|group| group.lines().len()).sum();
    let words: usize = said.iter().flat_map(EventGroup::said).map(|it| it.words.len()).sum();
    let many = append_together(&runtime, &open("many"), &said);
    let shown = format!("{:.0}k events/s", 8.0 * count as f64 / many.as_secs_f64() / 1e3);
    report("the same, 8 runs at once", &shown, "none; 100k/s");
    drop((with_index, without_index));
    let (with, without) = (size(&dir.path().join("said")), size(&dir.path().join("silent")));
    let shown = format!("{:.1} of {:.1} MB", with as f64 / 1e6, without as f64 / 1e6);
    report("size of six runs, with index / without", &shown, "none");
    let shown = format!("{:.1} MB, words {:.1} MB", bytes as f64 / 1e6, words as f64 / 1e6);
    report("log of one run", &shown, "none");

    forget_index(&dir.path().join("silent/runs.db"));
    let database = open("silent");
    let mut behind = SaidIndex(&database).unindexed().expect("read");
    let runs = behind.len();
    let indexed = timed(|| {
        while !behind.is_empty() {
            SaidIndex(&database).index_for(&mut behind, Duration::from_secs(1)).expect("indexed");
        }
    });
    report(&format!("{runs} runs added to the index"), &format!("{indexed:.1?}"), "none");
    for words in ["account", "\"account\"", "acc", "licences accounts", "\"nothing of this\""] {
        let query = WordQuery::parse(words);
        let mut found = 0;
        let took = timed(|| {
            found = SaidIndex(&database)
                .runs_that_said(&query, &|| true)
                .expect("read")
                .expect("all")
                .len();
        });
        report(&format!("search for {words}"), &format!("{took:.1?}, {found} runs"), "none");
    }
    let run = database.runs().expect("read").pop().expect("a run").id;
    let ended = RunCourse { ended: Some(Default::default()), ..RunCourse::default() };
    database.update_now(&run, &ended).expect("ended");
    assert!(database.delete(&run, 1).expect("deleted"));
    let removed = timed(|| {
        let keep = Retention { days: u32::MAX, ..Retention::default() };
        assert_eq!(database.prune(keep, 9, 9).expect("pruned").runs, 1);
    });
    report("a run removed for good", &format!("{removed:.1?}"), "none");
    held(&[("groups with the index", appended.ratio(), 1.3)])
}

/// Takes all runs out of the index, as if an earlier version had kept them.
fn forget_index(path: &Path) {
    let raw = rusqlite::Connection::open(path).expect("opens");
    raw.execute_batch("INSERT INTO said (said) VALUES ('delete-all'); UPDATE run SET said = 0")
        .expect("forgotten");
}

fn append_together(runtime: &Runtime, database: &Database, groups: &[EventGroup]) -> Duration {
    let names: Vec<String> = (0..8).map(|nth| format!("r-{nth}")).collect();
    timed(|| {
        std::thread::scope(|scope| {
            for name in &names {
                scope.spawn(|| append(runtime, database, name, groups));
            }
        });
    })
}
