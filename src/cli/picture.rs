//! `roundtable picture`: the screen of a run as SVG or text, drawn without a terminal: one moment, or
//! with `--animate` the whole run. The run of a scenario is played for it by its script, in simulated
//! time, and not kept.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use ratatui::buffer::Buffer;
use tokio::runtime::Builder;

use super::args::{FlagArg, Global};
use super::exit::Exit;
use super::launch::{PreparedSessions, read_scenario};
use super::run::RunArgs;
use super::streams;
use super::streams::{print_message, refuse};
use crate::base::private_file::TempFile;
use crate::base::refused::Refused;
use crate::base::visible::visible;
use crate::engine::{Engine, EngineSettings, Launch, RunHandle};
use crate::host::recorded::{RecordedRun, fork_places};
use crate::log::event::{BoundaryId, Elapsed, Event, EventKind, RunId, SpanId, World};
use crate::scenario::source::SourceError;
use crate::scenario::spec::tool::ToolSpec;
use crate::scenario::{STDIN, ScenarioSource};
use crate::screen::effect::RequestId;
use crate::screen::msg::PartialText;
use crate::screen::picture::{Film, cells, svg, text};
use crate::screen::state::DisplaySettings;
use crate::screen::theme::Theme;
use crate::screen::{AppState, DrawContext, Msg, update};
use crate::terminal::feed::partial_text;
use crate::words::format::time_in_run;
use crate::words::glyph::Glyphs;

/// Arguments of `roundtable picture`.
#[derive(Debug, Clone, Args)]
pub struct PictureArgs {
    /// A scenario (a file, or a name: see `roundtable scenarios`), which is played by its script in
    /// simulated time; a kept run (an id, the beginning of one, last, last~2); or a file of JSON
    /// lines
    #[arg(value_name = "SCENARIO|RUN|FILE.jsonl[.gz]")]
    pub scenario_or_run: String,
    /// The moment: a boundary, before it is passed (round:2; `roundtable fork RUN` lists them), a
    /// time of the run's clock (4.5s or 00:04.5), or end
    #[arg(long, value_name = "BOUNDARY|TIME|end", default_value = "end", value_parser = Moment::parse)]
    pub at: Moment,
    /// Columns and rows of the screen
    #[arg(long, value_name = "COLSxROWS", default_value = "120x36", value_parser = PictureSize::parse)]
    pub size: PictureSize,
    /// Print the screen as text, without colours, instead of an SVG
    #[arg(long)]
    pub text: bool,
    /// Draw the whole run as an SVG that plays it, again and again. A wait takes at most 1.5 s; a
    /// long run is played faster, in 16 s, a short one slower, in 6 s
    #[arg(long, conflicts_with_all = ["at", "text"])]
    pub animate: bool,
    /// Write to this file, which must not exist yet, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Override a field of the scenario, as `run --set` does
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Switch a flag of the scenario, as `run --flag` does
    #[arg(long = "flag", value_name = "NAME=on|off[@BOUNDARY]", value_parser = FlagArg::parse)]
    pub flags: Vec<FlagArg>,
    /// Seed of the random numbers of the scenario's run
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
}

/// A moment of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moment {
    End,
    /// A time of the run's clock, which stops in pauses.
    Time(Duration),
    /// Before this boundary, whether or not the run has it.
    Boundary(BoundaryId),
}

impl Moment {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" => Err("give a boundary such as round:2, a time such as 4.5s, or end".to_owned()),
            "end" => Ok(Self::End),
            text if text.starts_with(|c: char| c.is_ascii_digit()) => {
                time(text).map(Self::Time).ok_or_else(|| {
                    format!("`{text}` is not a time: use 250ms, 4.5s, 2m, 00:04.5 or 1:02:03")
                })
            }
            text => Ok(Self::Boundary(BoundaryId::new(text))),
        }
    }
}

/// Parses a time such as `4.5s`, or as the dashboard shows it: `00:04.5`.
fn time(text: &str) -> Option<Duration> {
    if !text.contains(':') {
        return super::args::duration(text).ok();
    }
    let parts: Vec<&str> = text.split(':').collect();
    let (seconds, larger) = parts.split_last()?;
    let is_number = |it: &&str| !it.is_empty() && it.bytes().all(|c| c.is_ascii_digit());
    if larger.len() > 2 || !larger.iter().all(|it| is_number(it) && it.len() < 7) {
        return None;
    }
    let minutes = larger.iter().try_fold(0, |sum, it| Some(sum * 60 + it.parse::<u64>().ok()?))?;
    let seconds = super::args::duration(&format!("{seconds}s")).ok()?;
    (seconds < Duration::from_secs(60)).then(|| Duration::from_secs(minutes * 60) + seconds)
}

/// Columns and rows of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureSize {
    /// Columns.
    pub cols: u16,
    pub rows: u16,
}

/// Most columns or rows of a picture.
const MAX_CELLS: u16 = 1_000;

impl PictureSize {
    fn parse(text: &str) -> Result<Self, String> {
        let number = |it: &str| it.parse().ok().filter(|it| (1..=MAX_CELLS).contains(it));
        let parts = text.split_once('x');
        let size = parts.and_then(|(cols, rows)| {
            Some(Self { cols: number(cols.trim())?, rows: number(rows.trim())? })
        });
        size.ok_or_else(|| format!("use COLSxROWS, such as 120x36, up to {MAX_CELLS} each"))
    }
}

/// Most boundaries that an error lists.
const MAX_LISTED: usize = 24;

/// Runs `roundtable picture`.
pub fn picture(args: &PictureArgs, global: &Global, theme: Theme) -> Exit {
    let drawn = match draw(args, global, &theme) {
        Ok(drawn) => drawn,
        Err(exit) => return exit,
    };
    match &args.output {
        None => streams::print_data(&drawn, Exit::Ok),
        Some(path) => match write(path, &drawn) {
            Ok(()) => Exit::Ok,
            Err(error) => {
                let why = Refused::new(format!("{} cannot be written", path.display()));
                let why = match error.kind() {
                    io::ErrorKind::AlreadyExists => {
                        why.because("it exists").help("name another file, or remove it")
                    }
                    _ => why.because(error),
                };
                refuse(&why, Exit::Stopped)
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
    let runtime = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .map_err(|error| refuse(&Refused::new("cannot start").because(error), Exit::Stopped))?;
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
    let glyphs = Glyphs::new(global.is_ascii());
    if args.animate {
        let times = frame_times(&shown.events);
        let live = match scripted {
            Some(launch) => live_texts(launch, &times).await,
            None => Vec::new(),
        };
        let frames = frames(&times, &shown, live, Look { args, global, theme, glyphs });
        if frames.windows(2).all(|two| two[0] == two[1]) {
            let why = Refused::new("nothing changes on the screen in this run");
            return Err(refuse(&why.help("draw it without --animate"), Exit::Stopped));
        }
        let film = Film { frames: &frames, step: FRAME, rest: LAST_FRAME };
        return Ok(film.svg(theme, &shown.title));
    }
    let live = match scripted {
        // What is streamed is not in the log.
        Some(launch) if shown.is_cut => live_texts(launch, &[shown.at]).await,
        _ => Vec::new(),
    };
    let cells = frames(&[shown.at], &shown, live, Look { args, global, theme, glyphs });
    let cells = cells.first().ok_or(Exit::Stopped)?;
    Ok(match args.text {
        true => text(cells),
        false => svg(cells, theme, &shown.title),
    })
}

/// How the screens look.
struct Look<'a> {
    args: &'a PictureArgs,
    global: &'a Global,
    theme: &'a Theme,
    glyphs: Glyphs,
}

/// The screens of a run at these times of its log, from the first to the last; `live`: what is
/// streamed at each of them.
fn frames(times: &[Elapsed], shown: &ShownPart, live: Vec<LiveTexts>, look: Look) -> Vec<Buffer> {
    let Look { args, global, theme, glyphs } = look;
    let settings = DisplaySettings {
        ascii: global.is_ascii(),
        animation: global.is_animated(),
        theme: theme.name().to_owned(),
    };
    let size = crate::screen::layout::Size { cols: args.size.cols, rows: args.size.rows };
    let mut state = AppState::new(size, settings, Vec::new());
    let run = &shown.run;
    let request = RequestId(u64::MAX);
    let started = Msg::Started { request, run: run.clone(), zero: Duration::ZERO, launch: None };
    let first = times.first().map_or(Duration::ZERO, |at| at.duration());
    // Effects are for a dashboard with an operator, which this is not.
    update(&mut state, first, started);
    let (mut drawn, mut streaming, mut live) = (Vec::new(), BTreeSet::new(), live.into_iter());
    let mut rest = shown.events.as_slice();
    for (nth, at) in times.iter().enumerate() {
        let now = at.duration();
        let count = match nth + 1 == times.len() {
            true => rest.len(),
            false => rest.iter().position(|event| event.at > *at).unwrap_or(rest.len()),
        };
        // The head of the log is on every page, also when it came a moment after the start.
        let count = count.max(usize::from(nth == 0));
        let (events, later) = rest.split_at(count);
        rest = later;
        let texts = live.next().unwrap_or_default();
        let ended = std::mem::take(&mut streaming);
        streaming.extend(texts.iter().map(|(span, _)| *span));
        let ended = ended.into_iter().filter(|span| !streaming.contains(span)).map(|it| (it, None));
        let texts = texts.into_iter().map(|(span, text)| (span, Some(text)));
        let texts: Vec<_> = ended.chain(texts).collect();
        let live = texts.into_iter().map(|(span, text)| Msg::Live { run: run.clone(), span, text });
        let events = Msg::Events { run: run.clone(), events: events.to_vec() };
        for msg in [events].into_iter().chain(live).chain([Msg::Tick]) {
            update(&mut state, now, msg);
        }
        while state.next_tick() == Some(Duration::ZERO) {
            update(&mut state, now, Msg::Tick);
        }
        drawn.push(cells(&state, &DrawContext { now, theme, glyphs }));
    }
    drawn
}

/// Longest time for which a wait is shown: it is played faster.
const MAX_WAIT: Duration = Duration::from_millis(1_500);
/// Time between two frames.
const FRAME: Duration = Duration::from_millis(200);
/// Most frames of a run. A longer run is played faster as a whole.
const MAX_FRAMES: u32 = 80;
/// Fewest frames of a run. A shorter run is played slower as a whole.
const MIN_FRAMES: u32 = 30;
/// How long the last frame is shown before the first one is shown again.
const LAST_FRAME: Duration = Duration::from_secs(4);

/// The moments of an animated picture, in the time of the log. They have equal distances in the time
/// that is played.
fn frame_times(events: &[Arc<Event>]) -> Vec<Elapsed> {
    let mut marks: Vec<(Duration, Duration)> = vec![Default::default()];
    for event in events {
        let (played, before) = marks[marks.len() - 1];
        let wait = event.at.duration().saturating_sub(before);
        if !wait.is_zero() {
            marks.push((played + wait.min(MAX_WAIT), before + wait));
        }
    }
    let (length, end) = marks[marks.len() - 1];
    let step = FRAME.min(length / MIN_FRAMES).max(length / MAX_FRAMES + Duration::from_nanos(1));
    let (mut times, mut played) = (Vec::new(), Duration::ZERO);
    let mut before = 0;
    while played < length {
        while marks[before + 1].0 <= played {
            before += 1;
        }
        let ((from, log), (until, next)) = (marks[before], marks[before + 1]);
        let share = (played - from).div_duration_f64(until - from);
        let at = log + (next - log).mul_f64(share);
        times.push(Elapsed::from_duration(at));
        played += step;
    }
    times.push(Elapsed::from_duration(end));
    times
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
        let what =
            format!("{name} is a run: --set, --flag and --seed change the run of a scenario");
        let help = format!("roundtable fork {name} continues a run with other settings");
        return Err(refuse(&Refused::new(what).help(help), Exit::Usage));
    }
    recorded(name)
}

fn recorded(name: &str) -> Result<PictureSource, Exit> {
    super::kept::OpenedRun::find(name)?.events().map(PictureSource::Recorded)
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
            return Err(refuse(&Refused::new("the log has no head"), Exit::Stopped));
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
                    let (at, end) = (time_in_run(*time), time_in_run(end));
                    let why = Refused::new(format!("--at {at}: the run is over at {end}"));
                    return Err(refuse(&why.help("use an earlier time, or end"), Exit::Usage));
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
        let why = Refused::new("the boundaries of the run are not known").because(why);
        refuse(&why.help("name a time instead, such as --at 4.5s"), Exit::Stopped)
    })?;
    if let Some(place) = places.iter().find(|place| place.id == *id) {
        let count = events.iter().position(|event| event.seq >= place.next);
        return Ok((place.at, count.unwrap_or(events.len())));
    }
    let mut known: Vec<_> = places.iter().map(|place| visible(place.id.as_str())).collect();
    let more = known.len().saturating_sub(MAX_LISTED);
    known.truncate(MAX_LISTED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let why = match known.is_empty() {
        true => Refused::new(format!("--at {}: the run has no boundaries", id.as_str()))
            .help("use a time such as 4.5s, or end"),
        false => Refused::new(format!("--at {}: no such boundary", id.as_str()))
            .help(format!("the run has {}{more}", known.join(", "))),
    };
    Err(refuse(&why, Exit::Usage))
}

/// Number of events that are read at a time.
const BATCH: usize = 256;

/// The run of a scenario, of a session its first one: to read its events, and again to look at what
/// it streams at a moment of them. On an error the message has been printed.
fn two_launches(args: &PictureArgs) -> Result<(Launch, Launch), Exit> {
    let run = RunArgs {
        scenario: args.scenario_or_run.clone(),
        set: args.set.clone(),
        flags: args.flags.clone(),
        seed: args.seed,
        ..RunArgs::default()
    };
    let scenario = read_scenario(&run).ok_or(Exit::Usage)?;
    if scenario.tools.values().any(ToolSpec::is_outside) {
        let what = "this scenario asks something outside of this program, which takes real time";
        let help = "run it (roundtable run), then draw the kept run: roundtable picture last";
        return Err(refuse(&Refused::new(what).help(help), Exit::Usage));
    }
    let mut sessions =
        PreparedSessions::prepare(&scenario, &run, 2).map_err(|why| why.print(""))?;
    let mut next = || {
        let (text, mut launch) = sessions.next_session(run.seed).into_iter().next()?;
        launch.answer(text, None);
        Some(launch)
    };
    match (next(), next()) {
        (Some(first), Some(second)) => Ok((first, second)),
        _ => Err(Exit::Usage),
    }
}

/// All events of the run.
pub(crate) async fn events_of(launch: Launch) -> Vec<Arc<Event>> {
    let engine = Engine::new(EngineSettings::default());
    all_events(&engine.start(launch)).await
}

/// What a run streams at a moment.
type LiveTexts = Vec<(SpanId, PartialText)>;

/// What the run streams at each of these moments.
async fn live_texts(launch: Launch, times: &[Elapsed]) -> Vec<LiveTexts> {
    let engine = Engine::new(EngineSettings::default());
    let run = engine.start(launch);
    let bus = run.bus().clone();
    let mut texts = Vec::new();
    let look = async {
        for at in times {
            tokio::time::sleep(at.duration().saturating_sub(bus.now().duration())).await;
            let spans = bus.live_spans().into_iter();
            let live = spans.filter_map(|span| Some((span, bus.with_live(span, partial_text)?)));
            texts.push(live.collect());
        }
    };
    tokio::select! {
        // A run that is not read waits for its reader.
        _ = all_events(&run) => {}
        () = look => {}
    }
    texts
}

async fn all_events(run: &RunHandle) -> Vec<Arc<Event>> {
    let mut reader = run.first_reader();
    let (mut events, mut batch) = (Vec::new(), Vec::new());
    while reader.next_batch(&mut batch, BATCH).await > 0 {
        events.extend(batch.drain(..).map(with_fixed_head));
    }
    run.wait_until_finished().await;
    events
}

/// The event, with a fixed id and start where it is the head of a run: pictures of the same moment are
/// the same.
fn with_fixed_head(event: Arc<Event>) -> Arc<Event> {
    match &event.kind {
        EventKind::RunStarted(head) => {
            let mut head = head.as_ref().clone();
            (head.run, head.wall_ms) = (RunId::new(FIXED_ID), 0);
            let kind = EventKind::RunStarted(Arc::new(head));
            Arc::new(Event { kind, ..Event::clone(&event) })
        }
        _ => event,
    }
}

/// The id of a run that is played for a picture. It is not kept, so no store has this id.
const FIXED_ID: &str = "r-7f3a";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_boundary_time_or_end() {
        let time = |ms| Ok(Moment::Time(Duration::from_millis(ms)));
        for (text, ms) in [
            ("4.5s", 4_500),
            ("250ms", 250),
            ("2m", 120_000),
            ("00:04.5", 4_500),
            ("01:02", 62_000),
            ("1:02:03.25", 3_723_250),
            ("0:00", 0),
        ] {
            assert_eq!(Moment::parse(text), time(ms), "{text}");
        }
        assert_eq!(Moment::parse("end"), Ok(Moment::End));
        let boundary = BoundaryId::new("round:2");
        assert_eq!(Moment::parse("round:2"), Ok(Moment::Boundary(boundary)));
        for wrong in
            ["", " ", "4", "4x", "1:2:3:4", "00:61", "1::2", "1:-2", "1:2s", "99999999999999:00"]
        {
            assert!(Moment::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_size_is_bounded() {
        assert_eq!(PictureSize::parse("80x24"), Ok(PictureSize { cols: 80, rows: 24 }));
        assert!(PictureSize::parse("1x1000").is_ok());
        for wrong in ["", "80", "80x", "x24", "0x24", "80x0", "1001x24", "80x24x2", "-1x2", "9e9x1"]
        {
            assert!(PictureSize::parse(wrong).is_err(), "{wrong}");
        }
    }
}
