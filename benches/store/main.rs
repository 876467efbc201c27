//! What keeping runs costs: groups appended durably, a whole run with the store beside one without it,
//! the index of what was said, a long run that is opened, and the list of many runs.
//! `cargo bench --bench store -- PART`: one part alone, `run`, `append`, `open` or `list`.

#[path = "../long/mod.rs"]
mod long;
mod opening;
#[path = "../paired/mod.rs"]
mod paired;
mod stored;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use opening::{OPEN_ONCE, list_runs, open_long_run, open_once};
use paired::{cpu, held, median, pairs, report, timed};
use roundtable::bench::{
    Database, Deletion, EventGroup, Retention, RunCourse, RunLog as _, RunTextIndex, StoreFailure,
    StoreKeeper, StoredRuns, WordQuery,
};
use roundtable::{
    Engine, EngineSettings, Event, Launch, LogLimits, RunId, Scenario, ScenarioOrigin, Seq, World,
    load,
};
use stored::{append, silent};
use tokio::runtime::Runtime;

/// As in the program: events are allocated on one thread and freed on another.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TEXT: &str = include_str!("../../scenarios/ping-pong.toml");

/// Handoffs in a run; each is nine events.
const HANDOFFS: u32 = 11_112;

/// Events that the output takes at a time, as in the program.
const BATCH: usize = 256;

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
    let (mut line, mut written) = (Vec::new(), 0);
    runtime.block_on(async {
        let log = LogLimits { window: 0, ahead: 16 << 20 };
        let settings = EngineSettings { log, finished_bytes: 0, stored_bytes: 0 };
        let keeper = stored.clone().map(|stored| Arc::new(StoreKeeper(stored)) as _);
        let engine = Engine::with_keeper(settings, keeper);
        let run = engine.start(Launch::scripted(Arc::clone(scenario), true));
        let mut reader = run.first_reader();
        let (mut events, mut world) = (Vec::new(), World::new());
        while reader.next_batch(&mut events, BATCH).await > 0 {
            for event in events.drain(..) {
                world.apply(&event);
                line.clear();
                event.append_line(Some(run.id()), &mut line).expect("a line");
                written += line.len();
            }
        }
        assert!(world.outcome().is_some() && written > 0);
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

fn size(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).expect("a folder").flatten();
    files.filter_map(|file| file.metadata().ok()).filter(|it| it.is_file()).map(|it| it.len()).sum()
}

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let has = |part: &str| wanted.is_empty() || wanted.iter().any(|it| it == part);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("one");
    if let [part, path] = &wanted[..]
        && part == OPEN_ONCE
    {
        open_once(&runtime, Path::new(path));
        return ExitCode::SUCCESS;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let mut ratios = Vec::new();
    if has("run") || has("append") {
        let (events, ratio) = store_a_run(&runtime, dir.path(), if has("run") { 9 } else { 1 });
        ratios.push(("a stored run", ratio, 1.3));
        if has("append") {
            let said = groups(&events, &RunId::new("r-1"));
            ratios.push(("groups with the index", append_groups(&runtime, dir.path(), &said), 1.3));
            search_groups(dir.path());
        }
    }
    if has("open") {
        ratios.push(("a long run, opened", open_long_run(&runtime, dir.path()), 4.5));
    }
    if has("list") {
        list_runs(dir.path());
    }
    held(&ratios)
}

fn open_database(folder: &Path, name: &str) -> Database {
    Database::open(&folder.join(name).join("runs.db")).expect("opens")
}

/// Plays a run with the store and without it; returns its events and the ratio.
fn store_a_run(runtime: &Runtime, folder: &Path, rounds: usize) -> (Vec<Arc<Event>>, f64) {
    let scenario = endless();
    let stored = runtime
        .block_on(async { StoredRuns::new(open_database(folder, "runs"), StoreFailure::Pause) });
    let mut last = None;
    let mut spent = (Vec::new(), Vec::new());
    let seconds = |begun: Duration| (cpu() - begun).as_secs_f64();
    let beside = pairs(
        rounds,
        || {
            let begun = cpu();
            let took = timed(|| last = Some(play(runtime, &scenario, Some(Arc::clone(&stored)))));
            spent.0.push(seconds(begun));
            took
        },
        || {
            let begun = cpu();
            let took = timed(|| drop(play(runtime, &scenario, None)));
            spent.1.push(seconds(begun));
            took
        },
    );
    let events = events_of(runtime, stored.database(), &last.expect("a run"));
    let count = events.len();
    let (with, without) = beside.medians();
    let shown = format!("{:.2}x ({:.0} / {:.0} ms)", beside.ratio(), with * 1e3, without * 1e3);
    report(&format!("a run of {count} events, stored / not stored"), &shown, "1.3x, 2 free cores");
    let (with, without) = (median(spent.0), median(spent.1));
    let shown = format!("{:.2}x ({:.0} / {:.0} ms)", with / without, with * 1e3, without * 1e3);
    report("the same, CPU time", &shown, "none");
    (events, beside.ratio())
}

/// Appends groups with their words and without; returns the ratio of the CPU time.
#[allow(clippy::cast_precision_loss)]
fn append_groups(runtime: &Runtime, folder: &Path, said: &[EventGroup]) -> f64 {
    let count: u32 = said.iter().map(EventGroup::len).sum();
    let silent: Vec<EventGroup> = said.iter().map(silent).collect();
    let (with_index, without_index) =
        (open_database(folder, "said"), open_database(folder, "silent"));
    let mut names: Vec<String> = (0..40).map(|nth| format!("r-{nth}")).collect();
    let mut others = names.clone();
    // The machine may be busy with something else: the ratio is that of the processors' time.
    let mut wall = (Vec::new(), Vec::new());
    let appended = pairs(
        5,
        || {
            let begun = cpu();
            let name = names.pop().expect("a name");
            wall.0.push(append(runtime, &with_index, &name, said).as_secs_f64());
            cpu() - begun
        },
        || {
            let begun = cpu();
            let name = others.pop().expect("a name");
            wall.1.push(append(runtime, &without_index, &name, &silent).as_secs_f64());
            cpu() - begun
        },
    );
    let rate = |seconds: f64| f64::from(count) / seconds / 1e3;
    let (with, without) = (rate(median(wall.0)), rate(median(wall.1)));
    let shown = format!("{:.2}x ({with:.0}k / {without:.0}k events/s)", appended.ratio());
    report("groups of 32 appended, with index / without", &shown, "1.3x; 100k/s");
    let (with, without) = appended.medians();
    let each = 1e6 / f64::from(count);
    let shown = format!("{:.2} / {:.2} us", with * each, without * each);
    report("CPU time of an event", &shown, "none");
    let bytes: usize = said.iter().map(|group| group.lines().len()).sum();
    let words: usize = said
        .iter()
        .flat_map(|it| it.said())
        .flat_map(|it| it.iter())
        .map(|it| it.words.len())
        .sum();
    let many = append_together(runtime, &open_database(folder, "many"), said);
    let shown = format!("{:.0}k events/s", 8.0 * f64::from(count) / many.as_secs_f64() / 1e3);
    report("the same, 8 runs at once", &shown, "none; 100k/s");
    drop((with_index, without_index));
    let (with, without) = (size(&folder.join("said")), size(&folder.join("silent")));
    let shown = format!("{:.1} of {:.1} MB", with as f64 / 1e6, without as f64 / 1e6);
    report("size of six runs, with index / without", &shown, "none");
    let shown = format!("{:.1} MB, words {:.1} MB", bytes as f64 / 1e6, words as f64 / 1e6);
    report("log of one run", &shown, "none");
    appended.ratio()
}

/// Searches the runs that were appended without their words.
fn search_groups(folder: &Path) {
    forget_index(&folder.join("silent/runs.db"));
    let database = open_database(folder, "silent");
    let mut behind = RunTextIndex(&database).unindexed().expect("read");
    let runs = behind.len();
    let indexed = timed(|| {
        while !behind.is_empty() {
            RunTextIndex(&database)
                .index_for(&mut behind, Duration::from_secs(1))
                .expect("indexed");
        }
    });
    report(&format!("{runs} runs added to the index"), &format!("{indexed:.1?}"), "none");
    for words in ["account", "\"account\"", "acc", "licences accounts", "\"nothing of this\""] {
        let query = WordQuery::parse(words);
        let mut found = 0;
        let took = timed(|| {
            found = RunTextIndex(&database)
                .runs_that_said(&query, &|| true)
                .expect("read")
                .expect("all")
                .len();
        });
        report(&format!("search for {words}"), &format!("{took:.1?}, {found} runs"), "none");
    }
    let run = database.runs().expect("read").rows.pop().expect("a run").id;
    let ended = RunCourse { ended: Some(Default::default()), ..RunCourse::default() };
    database.update_now(&run, &ended).expect("ended");
    assert_eq!(database.delete(&run, 1), Ok(Deletion::Done));
    let removed = timed(|| {
        let keep = Retention { days: u32::MAX, ..Retention::default() };
        assert_eq!(database.prune(keep, 9, 9).expect("pruned").runs, 1);
    });
    report("a run removed for good", &format!("{removed:.1?}"), "none");
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
