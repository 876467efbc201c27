//! `roundtable runs`: the list of kept runs, and what is done with whole runs.

use std::time::Duration;

use serde::Serialize;

use super::grep::{FoundOut, SaidHits};
use crate::base::visible::visible;
use crate::cli::args::kept::{RunsAction, RunsArgs};
use crate::cli::exit::Exit;
use crate::cli::message::print_message;
use crate::cli::stdout;
use crate::cli::stream_style::StreamStyle;
use crate::event::run_row::{RunRow, RunStatus};
use crate::event::safe_json;
use crate::host::config;
use crate::host::keep::{now_ms, retention};
use crate::narrate::format;
use crate::narrate::kept::{age, run_result, run_state};
use crate::narrate::style_role::StyleRole;
use crate::store::database::removal::Deletion;
use crate::store::database::{Database, StoreError};
use crate::ui::theme::Theme;

/// Runs `roundtable runs`.
pub fn runs(args: &RunsArgs, theme: Theme, ascii: bool) -> Exit {
    let database = match super::open() {
        Ok(database) => database,
        Err(exit) => return exit,
    };
    let done = match &args.action {
        None => return list(&database, args, theme, ascii),
        Some(RunsAction::Prune) => prune(&database),
        Some(RunsAction::Pin { runs, off }) => {
            Ok(each(&database, runs, |RunRow { id, .. }| match database.pin(id, !off)? {
                true => Ok(Ok(format!("{id} {}", pinned(!off)))),
                false => Ok(Err(format!("{id} is no longer kept"))),
            }))
        }
        Some(RunsAction::Rm { runs }) => Ok(each(&database, runs, |RunRow { id, .. }| {
            Ok(match database.delete(id, now_ms())? {
                Deletion::Done => {
                    Ok(format!("{id} removed; `roundtable runs restore {id}` undoes it"))
                }
                Deletion::Played => Err(format!("{id} is still running: it was not removed")),
                Deletion::Missing => Err(format!("{id} is no longer kept")),
            })
        })),
        Some(RunsAction::Restore { run }) => restore(&database, run),
    };
    let exit = done.unwrap_or_else(|error| {
        print_message(&visible(&format!("the store cannot be used: {}", error.with_advice())));
        Exit::Stopped
    });
    super::close(database);
    exit
}

fn pinned(on: bool) -> &'static str {
    if on { "is pinned: it is never removed by itself" } else { "is no longer pinned" }
}

fn prune(database: &Database) -> Result<Exit, StoreError> {
    let keep = retention(&config::in_force().store);
    let pruned = database.prune(keep, now_ms(), u64::MAX)?;
    let (runs, size) = (format::count_noun(pruned.runs, "run"), format::bytes(pruned.bytes));
    Ok(stdout::print(&format!("removed {runs}, {size}\n"), Exit::Ok))
}

fn restore(database: &Database, run: &str) -> Result<Exit, StoreError> {
    let id = crate::event::RunId::new(run);
    if database.undelete(&id)? {
        return Ok(stdout::print(&format!("{} is back\n", visible(run)), Exit::Ok));
    }
    print_message(&format!("{} was removed for good, or never kept", visible(run)));
    Ok(Exit::Usage)
}

/// Does something with each named run, and prints a line about each: what was done, or on standard error
/// why it was not.
fn each(
    database: &Database,
    names: &[String],
    work: impl Fn(&RunRow) -> Result<Result<String, String>, StoreError>,
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
        let why = match work(&row) {
            Ok(Ok(done)) => {
                exit = stdout::print(&format!("{done}\n"), exit);
                continue;
            }
            Ok(Err(why)) => why,
            Err(error) => format!("{}: nothing was changed: {}", row.id, error.with_advice()),
        };
        print_message(&visible(&why));
        exit = Exit::Stopped;
    }
    exit
}

fn is_wanted(args: &RunsArgs, row: &RunRow) -> bool {
    args.status.as_ref().is_none_or(|status| status.has(&row.status))
        && args.scenario.as_ref().is_none_or(|name| *row.scenario == **name)
}

/// Prints rows of runs that are not in the store.
#[cfg(feature = "nats")]
pub fn print_rows(rows: &[RunRow], args: &RunsArgs, theme: Theme, ascii: bool) -> Exit {
    let rows: Vec<&RunRow> = rows.iter().filter(|row| is_wanted(args, row)).collect();
    let text = if args.json {
        let rows: Vec<RowOut<'_>> = rows.iter().map(|row| RowOut::of(row)).collect();
        safe_json::pretty(&rows).map(|json| json + "\n").unwrap_or_default()
    } else if rows.is_empty() {
        "no runs\n".to_owned()
    } else {
        let paint = StreamStyle::of_stdout(theme, ascii);
        table(&rows, &vec![String::new(); rows.len()], now_ms(), &paint)
    };
    stdout::print(&text, Exit::Ok)
}

fn list(database: &Database, args: &RunsArgs, theme: Theme, ascii: bool) -> Exit {
    let kept = match database.runs() {
        Ok(kept) => kept,
        Err(error) => return unreadable(&error),
    };
    let mut exit = kept.error().map_or(Exit::Ok, |error| unreadable(&error));
    let mut rows: Vec<&RunRow> = kept.rows.iter().filter(|row| is_wanted(args, row)).collect();
    let said = match args.grep.as_deref().map(|words| SaidHits::find(database, words)) {
        None => None,
        Some(Ok(said)) => Some(said),
        Some(Err(exit)) => return exit,
    };
    if let Some(said) = &said {
        rows.retain(|row| said.has(row));
    }
    let text = if args.json {
        match rows.iter().map(|row| RowOut::with(database, said.as_ref(), row)).collect() {
            Ok::<Vec<RowOut<'_>>, _>(rows) => {
                safe_json::pretty(&rows).map(|json| json + "\n").unwrap_or_default()
            }
            Err(error) => return unreadable(&error),
        }
    } else {
        let paint = StreamStyle::of_stdout(theme, ascii);
        let below = |row: &RunRow| match &said {
            Some(said) => said.line(database, row, &paint),
            None => Ok(String::new()),
        };
        match rows.iter().map(|row| below(row)).collect::<Result<Vec<_>, _>>() {
            Ok(below) if !rows.is_empty() => table(&rows, &below, now_ms(), &paint),
            Ok(_) if said.is_some() => "no kept run has these words\n".to_owned(),
            Ok(_) => "no kept runs\n".to_owned(),
            Err(error) => return unreadable(&error),
        }
    };
    if said.is_some_and(|said| said.has_damage()) {
        exit = Exit::Stopped;
    }
    stdout::print(&text, exit)
}

fn unreadable(error: &StoreError) -> Exit {
    print_message(&visible(&format!("the store cannot be read: {}", error.with_advice())));
    Exit::Stopped
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
    #[serde(flatten)]
    found: Option<FoundOut>,
}

impl<'a> RowOut<'a> {
    /// A row with what was found in its run.
    fn with(
        database: &Database,
        said: Option<&SaidHits>,
        row: &'a RunRow,
    ) -> Result<Self, StoreError> {
        let found = said.map(|said| said.json(database, row)).transpose()?;
        Ok(Self { found, ..Self::of(row) })
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
            found: None,
        }
    }
}

/// The rows, each followed by its text of `below`.
fn table(rows: &[&RunRow], below: &[String], now: u64, paint: &StreamStyle) -> String {
    use unicode_width::UnicodeWidthStr as _;
    let cells: Vec<[String; 9]> = rows.iter().map(|row| cells(row, now)).collect();
    let mut widths = [0; 9];
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let mut lines = String::new();
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
                // Figures end at the same column.
                1 | 5 | 6 | 7 => line += &format!("{gap}{text}  "),
                _ => line += &format!("{text}{gap}  "),
            }
        }
        lines += line.trim_end();
        lines.push('\n');
        lines += below;
    }
    lines
}

/// Id, age, scenario, state, result, time, tokens, cost, runner.
fn cells(row: &RunRow, now: u64) -> [String; 9] {
    let pin = if row.pinned { " pinned" } else { "" };
    let cost = row.cost_usd.filter(|cost| *cost > 0.0).map(format::usd).unwrap_or_default();
    let tokens = if row.tokens == 0 { String::new() } else { format::count(row.tokens) + " tok" };
    [
        visible(row.id.as_str()).into_owned(),
        age(now.saturating_sub(row.started_ms)),
        visible(&row.scenario).into_owned() + pin,
        run_state(&row.status).word.to_owned(),
        visible(&run_result(&row.status, row.result.as_deref())).into_owned(),
        format::duration_text(Duration::from_millis(row.elapsed_ms)),
        tokens,
        cost,
        row.runner.as_deref().map(|runner| format!("on {}", visible(runner))).unwrap_or_default(),
    ]
}
