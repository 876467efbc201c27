//! `roundtable runs`: lists kept runs, searches what was said in them (`--grep`), and pins, removes
//! and restores whole runs.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::time::Duration;

use serde::Serialize;

use super::{RunsAction, RunsArgs};
use crate::base::name::PersonName;
use crate::base::refused::Refused;
use crate::base::time::{self, now_ms};
use crate::base::visible::{visible, visible_within};
use crate::base::word_query::WordQuery;
use crate::cli::exit::{Done, Exit};
use crate::cli::streams;
use crate::cli::streams::{StreamStyle, print_message, refuse};
use crate::host::config;
use crate::host::run_store::retention;
use crate::log::event::{RunId, Seq, safe_json};
use crate::log::world::run_row::{LastEvent, RunRow, RunStatus};
use crate::screen::theme::Theme;
use crate::store::database::removal::Deletion;
use crate::store::database::text_index::{RunHits, RunTextIndex, TextPlace, UnindexedRun};
use crate::store::database::{Database, StoreError};
use crate::terminal::terminal_size;
use crate::tool::web::cache::Cache;
use crate::words::badges::{WAITS, age_text, run_result, run_state};
use crate::words::format;
use crate::words::measure::{Excerpt, columns, excerpt};
use crate::words::question::waits_text;
use crate::words::styled::StyleRole;

/// Runs `roundtable runs`.
pub fn runs(args: &RunsArgs, theme: Theme, ascii: bool) -> Done {
    let database = super::open()?;
    let done = match &args.action {
        None => return Ok(list(&database, args, theme, ascii)),
        Some(RunsAction::Prune) => prune(&database),
        Some(RunsAction::Pin { runs, off }) => {
            let pin =
                |RunRow { id, .. }: &RunRow| match database.pin(id, !off).map_err(unchanged(id))? {
                    true => Ok(format!("{id} {}", pinned(!off))),
                    false => Err(Refused::new(format!("{id} is no longer kept"))),
                };
            Ok(each(&database, runs, pin))
        }
        Some(RunsAction::Rm { runs }) => Ok(each(&database, runs, |RunRow { id, .. }| {
            let refused = |why| Err(Refused::new(format!("{id} is {why}")));
            match database.delete(id, now_ms()).map_err(unchanged(id))? {
                Deletion::Done => {
                    Ok(format!("{id} removed; `roundtable runs restore {id}` undoes it"))
                }
                Deletion::Played => refused("still running: it was not removed"),
                Deletion::Missing => refused("no longer kept"),
            }
        })),
        Some(RunsAction::Restore { run }) => restore(&database, run),
    };
    let exit = done.unwrap_or_else(|error| {
        let why = Refused::new("the store cannot be used").because(Refused::from(error));
        refuse(&why, Exit::Stopped)
    });
    super::close(database);
    Ok(exit)
}

fn pinned(on: bool) -> &'static str {
    if on { "is pinned: it is never removed by itself" } else { "is no longer pinned" }
}

fn prune(database: &Database) -> Result<Exit, StoreError> {
    let keep = retention(&config::user_config().store);
    let pruned = database.prune(keep, now_ms(), u64::MAX)?;
    database.purge(true)?;
    // Pages that runs have read.
    if let Some(Err(error)) = Cache::for_user().map(|cache| cache.clear()) {
        print_message(&format!("the cache of web pages was not emptied: {error}"));
    }
    let (runs, size) = (format::count_noun(pruned.runs, "run"), format::bytes(pruned.bytes));
    Ok(streams::print(&format!("removed {runs}, {size}\n"), Exit::Ok))
}

fn restore(database: &Database, run: &str) -> Result<Exit, StoreError> {
    let id = crate::log::event::RunId::new(run);
    if database.undelete(&id)? {
        return Ok(streams::print(&format!("{} is back\n", visible(run)), Exit::Ok));
    }
    print_message(&format!("{} was removed for good, or never kept", visible(run)));
    Ok(Exit::Usage)
}

/// Does something with each named run, and prints a line about each: what was done, or on standard error
/// why it was not.
fn each(
    database: &Database,
    names: &[String],
    work: impl Fn(&RunRow) -> Result<String, Refused>,
) -> Exit {
    let mut exit = Exit::Ok;
    for name in names {
        let row = match super::find(database, name) {
            Ok(row) => row,
            Err(failed) => {
                exit = failed;
                continue;
            }
        };
        exit = match work(&row) {
            Ok(done) => streams::print(&format!("{done}\n"), exit),
            Err(why) => refuse(&why, Exit::Stopped),
        };
    }
    exit
}

/// What is wrong where the store does not change a run.
fn unchanged(id: &RunId) -> impl FnOnce(StoreError) -> Refused {
    move |error| Refused::new(format!("{id}: nothing was changed")).because(Refused::from(error))
}

fn is_wanted(args: &RunsArgs, row: &RunRow) -> bool {
    args.status.as_ref().is_none_or(|status| status.has(&row.status))
        && args.scenario.as_ref().is_none_or(|name| *row.scenario == **name)
}

/// Prints rows of runs that are not in the store.
pub fn print_rows(rows: &[RunRow], args: &RunsArgs, theme: Theme, ascii: bool) -> Exit {
    let rows: Vec<&RunRow> = rows.iter().filter(|row| is_wanted(args, row)).collect();
    let text = if args.json {
        let rows: Vec<RowOut<'_>> = rows.iter().map(|row| RowOut::of(row)).collect();
        safe_json::pretty(&rows).map(|json| json + "\n").unwrap_or_default()
    } else if rows.is_empty() {
        "no runs\n".to_owned()
    } else {
        let paint = StreamStyle::of_stdout(theme, ascii);
        table(&rows, &vec![String::new(); rows.len()], &Playing::default(), now_ms(), &paint)
    };
    streams::print(&text, Exit::Ok)
}

/// Rows as `--json` has them, with the processes that play them. Blocks.
pub fn row_values(rows: &[&RunRow]) -> Vec<serde_json::Value> {
    let playing = playing(rows);
    let values = rows.iter().map(|row| {
        let process = playing.get(&row.id).cloned();
        serde_json::to_value(RowOut { process, ..RowOut::of(row) }).unwrap_or_default()
    });
    values.collect()
}

fn list(database: &Database, args: &RunsArgs, theme: Theme, ascii: bool) -> Exit {
    let kept = match database.runs() {
        Ok(kept) => kept,
        Err(error) => return unreadable(error),
    };
    let mut exit = kept.error().map_or(Exit::Ok, unreadable);
    let mut rows: Vec<&RunRow> = kept.rows.iter().filter(|row| is_wanted(args, row)).collect();
    let said = match args.grep.as_deref().map(|words| TextHits::find(database, words)) {
        None => None,
        Some(Ok(said)) => Some(said),
        Some(Err(exit)) => return exit,
    };
    if let Some(said) = &said {
        rows.retain(|row| said.has(row));
    }
    let playing = playing(&rows);
    let text = if args.json {
        match rows.iter().map(|row| RowOut::with(database, said.as_ref(), row, &playing)).collect()
        {
            Ok::<Vec<RowOut<'_>>, _>(rows) => {
                safe_json::pretty(&rows).map(|json| json + "\n").unwrap_or_default()
            }
            Err(error) => return unreadable(error),
        }
    } else {
        let paint = StreamStyle::of_stdout(theme, ascii);
        let below = |row: &RunRow| match &said {
            Some(said) => said.line(database, row, &paint),
            None => Ok(String::new()),
        };
        match rows.iter().map(|row| below(row)).collect::<Result<Vec<_>, _>>() {
            Ok(below) if !rows.is_empty() => table(&rows, &below, &playing, now_ms(), &paint),
            Ok(_) if said.is_some() => "no kept run has these words\n".to_owned(),
            Ok(_) => "no kept runs\n".to_owned(),
            Err(error) => return unreadable(error),
        }
    };
    if said.is_some_and(|said| said.has_damage()) {
        exit = Exit::Stopped;
    }
    streams::print(&text, exit)
}

/// The runs that other processes of this user play, with their processes.
type Playing = BTreeMap<RunId, ProcessOut>;

/// Who plays a run.
#[derive(Clone, Debug, Serialize)]
struct ProcessOut {
    pid: u32,
    last: String,
    silent_ms: u64,
}

impl ProcessOut {
    fn text(&self) -> String {
        format!("process {}, {}", self.pid, last_text(&self.last, self.silent_ms))
    }
}

fn last_text(kind: &str, silent_ms: u64) -> String {
    let silent = time::duration_text(Duration::from_millis(silent_ms));
    format!("{} {silent} ago", visible(kind))
}

/// Asks the processes that play some of these runs.
#[cfg(unix)]
fn playing(rows: &[&RunRow]) -> Playing {
    use crate::host::peers::PeerFolder;

    if !rows.iter().any(|row| row.status == RunStatus::Running) {
        return Playing::new();
    }
    let (Ok(folder), Ok(runtime)) = (PeerFolder::open(), crate::cli::runtime()) else {
        return Playing::new();
    };
    let (runs, _) = runtime.block_on(folder.runs());
    let row = |(_, it): (_, crate::host::peers::PeerRun)| {
        (it.run, ProcessOut { pid: it.pid, last: it.last, silent_ms: it.silent_ms })
    };
    runs.into_iter().map(row).collect()
}

#[cfg(not(unix))]
fn playing(_rows: &[&RunRow]) -> Playing {
    Playing::new()
}

fn unreadable(error: StoreError) -> Exit {
    let why = Refused::new("the store cannot be read").because(Refused::from(error));
    refuse(&why, Exit::Stopped)
}

/// A row of `--json`.
#[derive(Serialize)]
struct RowOut<'a> {
    id: &'a str,
    started_ms: u64,
    scenario: &'a str,
    title: &'a str,
    pattern: &'a str,
    live: bool,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    waits_for: &'a [PersonName],
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a str>,
    elapsed_ms: u64,
    tokens: u64,
    cost_usd: Option<f64>,
    events: u64,
    bytes: u64,
    pinned: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runner: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<&'a LastEvent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<ProcessOut>,
    #[serde(flatten)]
    found: Option<FoundOut>,
}

impl<'a> RowOut<'a> {
    /// A row with what was found in its run.
    fn with(
        database: &Database,
        said: Option<&TextHits>,
        row: &'a RunRow,
        playing: &Playing,
    ) -> Result<Self, StoreError> {
        let found = said.map(|said| said.json(database, row)).transpose()?;
        let process = playing.get(&row.id).cloned();
        Ok(Self { found, process, ..Self::of(row) })
    }

    fn of(row: &'a RunRow) -> Self {
        let (status, stop_reason) = match &row.status {
            RunStatus::Ended(reason) => ("ended", Some(reason.as_str())),
            other => (other.word(), None),
        };
        Self {
            id: row.id.as_str(),
            started_ms: row.started_ms,
            scenario: &row.scenario,
            title: &row.title,
            pattern: &row.pattern,
            live: row.live,
            status,
            stop_reason,
            waits_for: &row.waits_for,
            result: row.result.as_deref(),
            elapsed_ms: row.elapsed_ms,
            tokens: row.tokens,
            cost_usd: row.cost_usd,
            events: row.events,
            bytes: row.bytes,
            pinned: row.pinned,
            parent: row.parent.as_ref().map(|id| id.as_str()),
            forked_at: row.forked_at.as_deref(),
            runner: row.runner.as_deref(),
            last: row.last.as_ref(),
            process: None,
            found: None,
        }
    }
}

/// The rows, each followed by its text of `below`.
fn table(
    rows: &[&RunRow],
    below: &[String],
    playing: &Playing,
    now: u64,
    paint: &StreamStyle,
) -> String {
    use unicode_width::UnicodeWidthStr as _;
    let cells = |row: &&RunRow| cells(row, playing.get(&row.id), now, paint);
    let cells: Vec<[String; 9]> = rows.iter().map(cells).collect();
    let mut widths = [0; 9];
    // Without headings in a pipe: scripts read the rows.
    let heads = std::io::stdout().is_terminal().then_some(HEADS.map(str::to_owned));
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let mut lines = String::new();
    if let Some(heads) = heads {
        for (nth, (head, width)) in heads.iter().zip(&mut widths).enumerate() {
            if *width > 0 {
                *width = (*width).max(head.len());
                let gap = " ".repeat(*width - head.len());
                lines += &if FIGURES.contains(&nth) { gap + head } else { head.clone() + &gap };
                lines += "  ";
            }
        }
        lines = paint.role(StyleRole::Dim, lines.trim_end()) + "\n";
    }
    for ((row, texts), below) in rows.iter().zip(&cells).zip(below) {
        let role = run_state(&row.status).role;
        let mut line = String::new();
        for (place, (text, width)) in texts.iter().zip(widths).enumerate() {
            if width == 0 {
                continue;
            }
            let gap = " ".repeat(width - text.width());
            match place {
                0 => line += &format!("{}{gap}  ", paint.role(StyleRole::Strong, text)),
                3 => line += &format!("{}{gap}  ", paint.role(role, text)),
                4 if !row.waits_for.is_empty() => {
                    line += &format!("{}{gap}  ", paint.role(WAITS.role, text));
                }
                place if FIGURES.contains(&place) => line += &format!("{gap}{text}  "),
                _ => line += &format!("{text}{gap}  "),
            }
        }
        lines += line.trim_end();
        lines.push('\n');
        lines += below;
    }
    lines
}

/// Longest title of a watched run in the list, in columns.
const MAX_TITLE: usize = 40;

/// The heads of the columns on a terminal.
const HEADS: [&str; 9] =
    ["run", "age", "scenario", "status", "result", "time", "tokens", "cost", ""];
/// The columns with figures, which end at the same column.
const FIGURES: [usize; 4] = [1, 5, 6, 7];

/// Id, age, scenario, state, result or who it waits for, time, tokens, cost, who plays it.
fn cells(row: &RunRow, process: Option<&ProcessOut>, now: u64, paint: &StreamStyle) -> [String; 9] {
    let pin = if row.pinned { " pinned" } else { "" };
    let cost = row.cost_usd.filter(|cost| *cost > 0.0).map(format::usd).unwrap_or_default();
    let result = match waits_text(row.waits_for.iter()) {
        Some(waits) => format!("{} {waits}", paint.glyph(WAITS.glyph)),
        None => run_result(&row.status, row.result.as_deref()),
    };
    let tokens = if row.tokens == 0 { String::new() } else { format::count(row.tokens) + " tok" };
    [
        visible(row.id.as_str()).into_owned(),
        age_text(now.saturating_sub(row.started_ms)),
        // All runs of one program have its name; their titles differ.
        match &*row.pattern {
            "observed" => visible_within(&row.title, MAX_TITLE) + pin,
            _ => visible(&row.scenario).into_owned() + pin,
        },
        run_state(&row.status).word.to_owned(),
        visible(&result).into_owned(),
        time::duration_text(Duration::from_millis(row.elapsed_ms)),
        tokens,
        cost,
        match (process, row.runner.as_deref()) {
            (Some(process), _) => process.text(),
            (None, Some(runner)) => {
                let runner = format!("on {}", visible(runner));
                match row.last.as_ref().filter(|_| row.status == RunStatus::Running) {
                    Some(LastEvent { kind, at_ms }) => {
                        format!("{runner}, {}", last_text(kind, now.saturating_sub(*at_ms)))
                    }
                    None => runner,
                }
            }
            (None, None) => String::new(),
        },
    ]
}

/// Most hits of a run that `--json` lists.
const MAX_HITS: usize = 20;

/// Width of a hit in `--json`, in columns.
const JSON_COLUMNS: usize = 240;

/// Width of a line of a file or a pipe.
const HIT_COLUMNS: usize = 120;

/// Fewest columns for the text of a hit.
const MIN_COLUMNS: usize = 24;

/// How long runs are added to the index between two looks at what is left.
const SLICE: Duration = Duration::from_secs(1);

/// The runs in which the words were said.
pub(crate) struct TextHits {
    query: WordQuery,
    hits: BTreeMap<RunId, RunHits>,
    /// Whether a part of a run could not be searched or read.
    has_damage: Cell<bool>,
}

impl TextHits {
    /// Searches the kept runs; on an error the message has been printed.
    pub(crate) fn find(database: &Database, words: &str) -> Result<Self, Exit> {
        let query = WordQuery::parse(words);
        if query.is_empty() {
            print_message("--grep needs a word: letters or digits");
            return Err(Exit::Usage);
        }
        let has_damage = Cell::new(false);
        match search(database, &query, &has_damage) {
            Ok(hits) => {
                let hits = hits.into_iter().map(|hits| (hits.run.clone(), hits)).collect();
                Ok(Self { query, hits, has_damage })
            }
            Err(error) => {
                let why = Refused::new("runs cannot be searched").because(Refused::from(error));
                Err(refuse(&why, Exit::Stopped))
            }
        }
    }

    /// Whether the words were said in a run.
    pub(crate) fn has(&self, row: &RunRow) -> bool {
        self.hits.contains_key(&row.id)
    }

    /// Whether a part of a run could not be searched or read; a message about it has been printed.
    fn has_damage(&self) -> bool {
        self.has_damage.get()
    }

    /// Some of the first places in a run. A damaged one is left out, and a message about it is printed.
    fn places(
        &self,
        database: &Database,
        run: &RunId,
        events: &[Seq],
    ) -> Result<Vec<TextPlace>, StoreError> {
        let mut places = Vec::with_capacity(events.len());
        let mut is_said = false;
        for seq in events {
            match RunTextIndex(database).said_at(run, *seq) {
                Ok(place) => places.extend(place),
                Err(error @ (StoreError::DamagedLog { .. } | StoreError::Damaged(_))) => {
                    self.has_damage.set(true);
                    if !std::mem::replace(&mut is_said, true) {
                        let why = Refused::new(format!("{run} cannot be read whole"));
                        refuse(&why.because(Refused::from(error)), Exit::Stopped);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(places)
    }

    /// The first place in a run, as a line.
    pub(crate) fn line(
        &self,
        database: &Database,
        row: &RunRow,
        paint: &StreamStyle,
    ) -> Result<String, StoreError> {
        let Some(hits) = self.hits.get(&row.id) else { return Ok(String::new()) };
        let first = hits.first.get(..1).unwrap_or_default();
        let Some(place) = self.places(database, &row.id, first)?.pop() else {
            return Ok(String::new());
        };
        let mut head = format!("    {}", time::duration_text(Duration::from_millis(place.at_ms)));
        for part in [place.who.as_str(), place.what] {
            if !part.is_empty() {
                head = format!("{head}  {}", visible(part));
            }
        }
        let more = match hits.count {
            0 | 1 => String::new(),
            count => format!("  +{}", count - 1),
        };
        let taken = columns(&head) + 2 + columns(&more);
        let cut =
            excerpt(&place.text, &self.query, hit_columns().saturating_sub(taken).max(MIN_COLUMNS));
        let (head, more) = (paint.role(StyleRole::Dim, &head), paint.role(StyleRole::Dim, &more));
        Ok(format!("{head}  {}{more}\n", emphasised(&cut, paint)))
    }

    /// The first places in a run, as data.
    pub(crate) fn json(&self, database: &Database, row: &RunRow) -> Result<FoundOut, StoreError> {
        let Some(found) = self.hits.get(&row.id) else { return Ok(FoundOut::default()) };
        let mut hits = Vec::with_capacity(found.first.len());
        for place in self.places(database, &row.id, &found.first)? {
            let Excerpt { text, places } = excerpt(&place.text, &self.query, JSON_COLUMNS);
            let words = places.iter().filter_map(|place| text.get(place.clone()));
            let words = words.map(str::to_owned).collect();
            let (seq, at_ms) = (place.seq.0, place.at_ms);
            hits.push(HitOut { seq, at_ms, what: place.what, who: place.who, text, words });
        }
        Ok(FoundOut { hit_count: found.count, hits })
    }
}

/// Searches all kept runs, also those that are not all in the index yet.
fn search(
    database: &Database,
    query: &WordQuery,
    has_damage: &Cell<bool>,
) -> Result<Vec<RunHits>, StoreError> {
    let index = RunTextIndex(database);
    let mut behind = index.unindexed()?;
    let add = |behind: &mut Vec<UnindexedRun>| -> Result<(), StoreError> {
        for (run, why) in index.index_for(behind, SLICE)? {
            has_damage.set(true);
            print_message(&visible(&format!("{run} was not searched to its end: {why}")));
        }
        Ok(())
    };
    // The last words of runs that other processes play are added in no time.
    add(&mut behind)?;
    if !behind.is_empty() {
        let runs = format::count_noun(behind.len() as u64, "run");
        print_message(&format!("adding {runs} to the index, once"));
    }
    while !behind.is_empty() {
        add(&mut behind)?;
    }
    index.hits_of(query, MAX_HITS)
}

/// The width of the terminal.
fn hit_columns() -> usize {
    if streams::stdout_is_terminal() { usize::from(terminal_size().width) } else { HIT_COLUMNS }
}

/// The text with its words emphasised.
fn emphasised(cut: &Excerpt, paint: &StreamStyle) -> String {
    let mut out = String::new();
    let mut from = 0;
    for place in &cut.places {
        out += cut.text.get(from..place.start).unwrap_or_default();
        out += &paint.role(StyleRole::Found, cut.text.get(place.clone()).unwrap_or_default());
        from = place.end;
    }
    out + cut.text.get(from..).unwrap_or_default()
}

/// What `--json` says of a run.
#[derive(Debug, Default, Serialize)]
pub(crate) struct FoundOut {
    hit_count: u64,
    /// The first of them.
    hits: Vec<HitOut>,
}

/// A place where the words were said.
#[derive(Debug, Serialize)]
struct HitOut {
    seq: u64,
    at_ms: u64,
    what: &'static str,
    who: String,
    text: String,
    words: Vec<String>,
}
