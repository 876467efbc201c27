//! `roundtable diff`: two runs up to their first difference, and what differs after it.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::base::visible::{visible, visible_within};
use crate::cli::args::kept::{DiffArgs, DiffFormat};
use crate::cli::exit::Exit;
use crate::cli::message::print_message;
use crate::cli::stdout;
use crate::cli::stream_style::StreamStyle;
use crate::event::{Event, EventKind, World, safe_json};
use crate::host::keep::course_of;
use crate::host::{kept, recorded};
use crate::narrate::comparison::{DifferentEvent, EventDifference, LogComparison, compare};
use crate::narrate::format;
use crate::narrate::style_role::StyleRole;
use crate::store::file::LogFile;
use crate::ui::theme::Theme;

/// Longest text of one side, in characters.
const TEXT_CHARS: usize = 400;

/// Fields of one difference that are listed.
const MAX_FIELDS: usize = 3;

/// Differences after the first one that are listed.
const MAX_LISTED: usize = 20;

/// Runs `roundtable diff`: exit code 0 where nothing differs but ids and times, 1 where something does.
pub fn diff(args: &DiffArgs, theme: Theme, ascii: bool) -> Exit {
    let (left, right) = match (read(&args.left), read(&args.right)) {
        (Ok(left), Ok(right)) => (left, right),
        (Err(exit), _) | (_, Err(exit)) => return exit,
    };
    let found = compare(&left, &right);
    let sides = [ComparedRun::of(&left), ComparedRun::of(&right)];
    let exit = if found.is_same() { Exit::Ok } else { Exit::Stopped };
    let out = io::stdout();
    let text = match args.format {
        DiffFormat::Json => {
            let report = DiffReport { same: found.is_same(), runs: &sides, comparison: &found };
            safe_json::pretty(&report.json()).map(|json| json + "\n").unwrap_or_default()
        }
        DiffFormat::Text => text(&found, &sides, &StreamStyle::on(&out, theme, ascii)),
    };
    stdout::print(&text, exit)
}

/// The events of a kept run or of a file; on an error the message has been printed.
fn read(name: &str) -> Result<Vec<Arc<Event>>, Exit> {
    let failed = |error: &dyn std::fmt::Display| {
        print_message(&format!("{} cannot be read: {error}", visible(name)));
        Exit::Usage
    };
    if kept::is_file(name) {
        let file = LogFile::open(Path::new(name)).map_err(|error| failed(&error))?;
        return Ok(file.events);
    }
    let (database, row) = super::open_run(name)?;
    recorded::events(&database, &row.id).map_err(|error| failed(&error))
}

/// The figures of one of the two runs.
#[derive(Serialize)]
struct ComparedRun {
    run: String,
    scenario: String,
    /// The stop reason; `None`: it has not ended.
    stop_reason: Option<String>,
    events: usize,
    elapsed_ms: u64,
    tokens: u64,
    cost_usd: Option<f64>,
}

impl ComparedRun {
    fn of(events: &[Arc<Event>]) -> Self {
        let world = World::from_events(events.iter().map(|event| &**event));
        let course = course_of(&world);
        let head = world.head.as_ref();
        Self {
            run: head.map(|head| head.run.to_string()).unwrap_or_default(),
            scenario: head.map(|head| head.scenario.to_string()).unwrap_or_default(),
            stop_reason: course.ended.map(|(reason, _)| reason),
            events: events.len(),
            elapsed_ms: course.elapsed_ms,
            tokens: course.tokens,
            cost_usd: course.cost_usd,
        }
    }
}

struct DiffReport<'a> {
    same: bool,
    runs: &'a [ComparedRun; 2],
    comparison: &'a LogComparison,
}

impl DiffReport<'_> {
    fn json(&self) -> Value {
        let setup =
            self.comparison.setup.iter().map(
                |it| serde_json::json!({ "what": it.what, "left": it.left, "right": it.right }),
            );
        let side = |side: &Option<DifferentEvent>| match side {
            Some(side) => side
                .event
                .to_line()
                .ok()
                .and_then(|line| serde_json::from_str(&line).ok())
                .unwrap_or(Value::Null),
            None => Value::Null,
        };
        let differences = self.comparison.differences.iter().map(|it| {
            serde_json::json!({
                "path": it.path,
                "fields": it.fields.iter().map(|field| &field.name).collect::<Vec<_>>(),
                "left": side(&it.left),
                "right": side(&it.right),
            })
        });
        serde_json::json!({
            "same": self.same,
            "left": self.runs[0],
            "right": self.runs[1],
            "setup": setup.collect::<Vec<_>>(),
            "equal": self.comparison.equal,
            "differences": differences.collect::<Vec<_>>(),
        })
    }
}

fn text(found: &LogComparison, runs: &[ComparedRun; 2], paint: &StreamStyle) -> String {
    let mut out = String::new();
    for (name, run) in ["left ", "right"].into_iter().zip(runs) {
        let cost =
            run.cost_usd.map(|cost| "  ".to_owned() + &format::usd(cost)).unwrap_or_default();
        let line = format!(
            "{}  {}  {}  {}  {} tok{cost}\n",
            visible(&run.run),
            visible(&run.scenario),
            visible(run.stop_reason.as_deref().unwrap_or("not ended")),
            format::duration_text(Duration::from_millis(run.elapsed_ms)),
            format::count(run.tokens),
        );
        out += &format!("{}  {line}", paint.role(StyleRole::Dim, name));
    }
    if found.is_same() {
        return out + "nothing differs but ids and times\n";
    }
    if !found.setup.is_empty() {
        out += &format!("\n{}\n", paint.role(StyleRole::Title, "started with"));
    }
    for it in &found.setup {
        let side = |text: &str| match text {
            "" => "-".to_owned(),
            text => visible_within(text, TEXT_CHARS),
        };
        let (left, right) = (side(&it.left), side(&it.right));
        out += &format!("  {}: {left} | {right}\n", visible(&it.what));
    }
    let equal = format::count_noun(found.equal as u64, "event");
    let Some((first, rest)) = found.differences.split_first() else {
        return out + &format!("\n{equal} are equal; nothing else differs\n");
    };
    out += &format!("\n{}\n", paint.role(StyleRole::Title, "first difference"));
    out += &sides(first, paint);
    if !rest.is_empty() {
        let counted = format::count_noun(rest.len() as u64, "more difference");
        out +=
            &format!("\n{}\n", paint.role(StyleRole::Title, &format!("{counted}, {equal} equal")));
        let listed = rest.iter().filter(|it| is_telling(it)).take(MAX_LISTED);
        listed.for_each(|it| out += &sides(it, paint));
    }
    out
}

/// What people look for: replies, prompts, decisions; an end of a span says what its reply said.
fn is_telling(it: &EventDifference) -> bool {
    let kind = |side: &Option<DifferentEvent>| {
        side.as_ref().is_some_and(|side| {
            matches!(
                side.event.kind,
                EventKind::Pattern(_)
                    | EventKind::CallStarted(_)
                    | EventKind::AttemptAnswered(_)
                    | EventKind::AttemptFailed(_)
                    | EventKind::AnswerComposed { .. }
                    | EventKind::FlagChanged { .. }
                    | EventKind::RunClosed(_)
            )
        })
    };
    kind(&it.left) || kind(&it.right)
}

/// A difference: where, and both sides of each field.
fn sides(it: &EventDifference, paint: &StreamStyle) -> String {
    let place = if it.path.is_empty() { "run".to_owned() } else { it.path.join(" / ") };
    let kind = it.left.as_ref().or(it.right.as_ref()).map(|side| side.event.kind.name());
    let mut out = format!(
        "  {}  {}\n",
        paint.role(StyleRole::Strong, &visible(&place)),
        visible(kind.unwrap_or_default())
    );
    let mut row = |name: &str, text: &str| {
        let text = if text.is_empty() { "-".to_owned() } else { visible_within(text, TEXT_CHARS) };
        out += &format!("    {}  {text}\n", paint.role(StyleRole::Dim, name));
    };
    if it.fields.is_empty() {
        let line = |side: &Option<DifferentEvent>| {
            side.as_ref().map(|side| side.line.clone()).unwrap_or_default()
        };
        row("left ", &line(&it.left));
        row("right", &line(&it.right));
    }
    for field in it.fields.iter().take(MAX_FIELDS) {
        row("field", &field.name);
        row("left ", &field.left);
        row("right", &field.right);
    }
    out
}
