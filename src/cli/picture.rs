//! `roundtable picture`: the screen of a run as an SVG or a text, drawn without a terminal.

mod scripted;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;

use self::scripted::{events_of, live_texts, two_launches};
use super::args::{Global, Moment, PictureArgs};
use super::exit::Exit;
use super::message::print_message;
use super::stdout;
use crate::app::request::RequestId;
use crate::app::state::DisplaySettings;
use crate::app::{AppState, Msg, update};
use crate::base::private::TempFile;
use crate::base::visible::visible;
use crate::event::{BoundaryId, Elapsed, Event, RunId, World};
use crate::host::fork::fork_places;
use crate::host::recorded::RecordedRun;
use crate::narrate::format::time_in_run;
use crate::narrate::glyph::Glyphs;
use crate::scenario::{STDIN, ScenarioSource, SourceError};
use crate::ui::cx::DrawContext;
use crate::ui::picture::{cells, svg, text};
use crate::ui::theme::Theme;

/// Most boundaries that an error lists.
const MAX_LISTED: usize = 24;

/// Runs `roundtable picture`.
pub fn picture(args: &PictureArgs, global: &Global, theme: Theme) -> Exit {
    let drawn = match draw(args, global, &theme) {
        Ok(drawn) => drawn,
        Err(exit) => return exit,
    };
    match &args.output {
        None => stdout::print_data(&drawn, Exit::Ok),
        Some(path) => match write(path, &drawn) {
            Ok(()) => Exit::Ok,
            Err(error) => {
                let path = path.display().to_string();
                let why = match error.kind() {
                    io::ErrorKind::AlreadyExists => {
                        "it exists; name another file, or remove it".to_owned()
                    }
                    _ => error.to_string(),
                };
                print_message(&format!("{} cannot be written: {why}", visible(&path)));
                Exit::Stopped
            }
        },
    }
}

/// Writes a file that appears under its name when it is complete.
fn write(path: &Path, drawn: &str) -> io::Result<()> {
    TempFile::write_next_to(path, drawn.as_bytes())?.rename_to(path)
}

/// The picture; on an error the message has been printed.
pub(crate) fn draw(args: &PictureArgs, global: &Global, theme: &Theme) -> Result<String, Exit> {
    // In simulated time the clock jumps to the next timer whenever the thread is idle, so the run gets
    // its own thread.
    let runtime =
        Builder::new_current_thread().enable_all().start_paused(true).build().map_err(|error| {
            print_message(&format!("cannot start: {error}"));
            Exit::Stopped
        })?;
    let drawn = runtime.block_on(draw_in_simulated_time(args, global, theme));
    runtime.shutdown_background();
    drawn
}

async fn draw_in_simulated_time(
    args: &PictureArgs,
    global: &Global,
    theme: &Theme,
) -> Result<String, Exit> {
    let mut scripted = None;
    let events = match find(args)? {
        PictureSource::Scenario => {
            let (first, second) = two_launches(args)?;
            scripted = Some(second);
            events_of(first).await
        }
        PictureSource::Recorded(events) => events,
    };
    let shown = ShownPart::find(events, &args.at).await?;
    let live = match scripted {
        // What is streamed is not in the log.
        Some(launch) if shown.is_cut => live_texts(launch, shown.at).await,
        _ => Vec::new(),
    };
    let settings = DisplaySettings {
        ascii: global.is_ascii(),
        animation: global.is_animated(),
        theme: theme.name().to_owned(),
    };
    let glyphs = Glyphs::new(settings.ascii);
    let size = crate::app::layout::Size { cols: args.size.cols, rows: args.size.rows };
    let mut state = AppState::new(size, settings, Vec::new());
    let now = shown.at.duration();
    let (run, events) = (shown.run, shown.events);
    let request = RequestId(u64::MAX);
    let started = Msg::Started { request, run: run.clone(), zero: Duration::ZERO, launch: None };
    let live =
        live.into_iter().map(|(span, it)| Msg::Live { run: run.clone(), span, text: Some(it) });
    // Effects are for a dashboard with an operator, which this is not.
    for msg in [started, Msg::Events { run: run.clone(), events }].into_iter().chain(live) {
        update(&mut state, now, msg);
    }
    while state.next_tick() == Some(Duration::ZERO) {
        update(&mut state, now, Msg::Tick);
    }
    let cells = cells(&state, &DrawContext { now, theme, glyphs });
    Ok(match args.text {
        true => text(&cells),
        false => svg(&cells, theme, &shown.title),
    })
}

/// Where the events come from.
enum PictureSource {
    Scenario,
    Recorded(Vec<Arc<Event>>),
}

/// Finds what is named; on an error the message has been printed.
fn find(args: &PictureArgs) -> Result<PictureSource, Exit> {
    let name = args.scenario_or_run.as_str();
    let ends = |end: &str| name.to_ascii_lowercase().ends_with(end);
    let is_log = ends(".jsonl") || ends(".jsonl.gz");
    if !is_log {
        // The scenario is read once, and standard input cannot be read twice.
        if name == STDIN {
            return Ok(PictureSource::Scenario);
        }
        match ScenarioSource::find(name) {
            Err(SourceError::NotFound { .. }) if !ends(".toml") => {}
            // Its other errors are reported when it is read.
            Ok(_) | Err(_) => return Ok(PictureSource::Scenario),
        }
    }
    let has_changes = !args.set.is_empty() || !args.flags.is_empty() || args.seed.is_some();
    if has_changes {
        let name = visible(name);
        print_message(&format!(
            "{name} is a run: --set, --flag and --seed change the run of a scenario; a fork \
             continues a run with other settings (roundtable fork {name})"
        ));
        return Err(Exit::Usage);
    }
    recorded(name)
}

#[cfg(feature = "store")]
fn recorded(name: &str) -> Result<PictureSource, Exit> {
    super::kept::OpenedRun::find(name)?.events().map(PictureSource::Recorded)
}

#[cfg(not(feature = "store"))]
fn recorded(name: &str) -> Result<PictureSource, Exit> {
    print_message(&format!("{}: there is no such scenario", visible(name)));
    Err(Exit::Usage)
}

/// A run up to the moment that is shown.
struct ShownPart {
    run: RunId,
    events: Vec<Arc<Event>>,
    /// The moment, in the time of the log.
    at: Elapsed,
    /// Whether there are events after it.
    is_cut: bool,
    title: String,
}

impl ShownPart {
    /// Finds the moment; on an error the message has been printed.
    async fn find(mut events: Vec<Arc<Event>>, at: &Moment) -> Result<Self, Exit> {
        let world = World::from_events(events.iter().map(|event| &**event));
        let (Some(head), Some(last)) = (&world.head, events.last()) else {
            print_message("the log has no head");
            return Err(Exit::Stopped);
        };
        let (run, scenario, last) = (head.run.clone(), head.scenario.clone(), last.at);
        let time_of = |event: &Event| world.progress.run_time(event.at);
        let (time, count) = match at {
            Moment::End => {
                if world.progress.is_live() {
                    print_message("the run has not ended: the picture shows its last event");
                }
                (world.progress.run_time(last), events.len())
            }
            Moment::Time(time) => {
                let end = world.progress.run_time(last);
                if *time > end {
                    print_message(&format!(
                        "--at {}: the run is over at {}; use an earlier time, or end",
                        time_in_run(*time),
                        time_in_run(end)
                    ));
                    return Err(Exit::Usage);
                }
                let later = events.iter().position(|event| time_of(event) > *time);
                (*time, later.unwrap_or(events.len()))
            }
            Moment::Boundary(id) => boundary(&run, &events, id).await?,
        };
        let is_cut = count < events.len();
        // The head of the log is on every page.
        events.truncate(count.max(1));
        let before = events.last().map_or(Elapsed(0), |event| event.at);
        let since = time.saturating_sub(world.progress.run_time(before));
        let at = Elapsed::from_duration(before.duration() + since);
        let title = format!("A run of {scenario} in the dashboard, at {}", time_in_run(time));
        Ok(Self { run, events, at, is_cut, title })
    }
}

/// The time of a boundary and the number of events before it; on an error the message has been printed.
async fn boundary(
    run: &RunId,
    events: &[Arc<Event>],
    id: &BoundaryId,
) -> Result<(Duration, usize), Exit> {
    let recorded = RecordedRun::new(run.clone(), events.to_vec(), true);
    let places = match recorded {
        Ok(recorded) => fork_places(&recorded).await,
        Err(why) => Err(why),
    };
    let places = places.map_err(|why| {
        print_message(&visible(&format!("the boundaries of the run are not known: {why}")));
        print_message("name a time instead, such as --at 4.5s");
        Exit::Stopped
    })?;
    if let Some(place) = places.iter().find(|place| place.id == *id) {
        let count = events.iter().position(|event| event.seq >= place.next);
        return Ok((place.at, count.unwrap_or(events.len())));
    }
    let mut known: Vec<_> = places.iter().map(|place| visible(place.id.as_str())).collect();
    let more = known.len().saturating_sub(MAX_LISTED);
    known.truncate(MAX_LISTED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let id = visible(id.as_str());
    print_message(&match known.is_empty() {
        true => format!("--at {id}: the run has no boundaries; use a time such as 4.5s, or end"),
        false => format!("--at {id}: no such boundary; the run has {}{more}", known.join(", ")),
    });
    Err(Exit::Usage)
}
