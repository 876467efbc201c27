//! What is printed by itself: events, notices, questions, windows, and how runs end.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::PlainLoop;
use super::answers::{how_to_answer, question_name, question_text};
use super::start::form_lines;
use crate::base::time::duration_text;
use crate::base::visible::{visible, visible_within};
use crate::base::worded;
use crate::cli::streams::{Stdout, TextStream, stdout_data};
use crate::log::event::{BreakerStage, Event, EventKind, RunId, Subject, World};
use crate::log::world::RunState;
use crate::log::world::tool_row::ToolRow;
use crate::screen::questions::open_questions;
use crate::screen::run::RunPage;
use crate::screen::run::views::tools::summary::faults_text;
use crate::screen::state::ActiveScreen;
use crate::screen::text::ascii_text;
use crate::screen::windows::Overlay;
use crate::words::comparison::DifferentEvent;
use crate::words::comparison::runs::ComparedRuns;
use crate::words::format;
use crate::words::glyph::{Glyph, Glyphs};
use crate::words::headless;
use crate::words::patterns::words_of;
use crate::words::question::about;
use crate::words::sentence::{PLACES, Stated, places, sentence};
use crate::words::styled::StyledLine;
use crate::words::tool_sentence::breaker_state;
use crate::words::verdict::stop_line;

/// Most characters of the line of an event; `inspect` has the rest.
pub(super) const LINE_CHARS: usize = 300;
/// Lines of one batch of events that are printed. Of a longer one, such as the log of a run that is joined
/// late, only the last ones are.
const MAX_LINES: usize = 400;
/// How many of a longer batch are printed.
const LAST_LINES: usize = 20;
/// Differences of two runs that are printed, if not all are asked about.
const DIFFERENCES: usize = 20;

/// Which events are printed as they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineLevel {
    Off,
    Notable,
    All,
}

worded! { LineLevel + ALL { Off = "off", Notable = "notable", All = "all" } }

/// What was printed of a run.
#[derive(Default)]
pub(super) struct RunLines {
    world: World,
}

/// Standard output, a line at a time. After an error nothing more is written.
pub(super) struct Out {
    to: TextStream<Stdout>,
    ascii: bool,
    broken: Option<io::Error>,
    /// How many lines were printed.
    pub(super) lines: u64,
}

impl Out {
    pub(super) fn new(ascii: bool) -> Self {
        Self { to: TextStream::new(stdout_data(), false), ascii, broken: None, lines: 0 }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Prints one line; whatever is in it, it stays one and controls nothing.
    pub(super) fn line(&mut self, text: &str) {
        if self.broken.is_some() {
            return;
        }
        self.lines += 1;
        let text = visible(text.trim_end());
        let written = match self.ascii {
            true => self.to.text(&(ascii_text(&text) + "\n")),
            false => self.to.text(&format!("{text}\n")),
        };
        self.broken = written.err();
    }

    /// Prints these lines.
    pub(super) fn each(&mut self, lines: &[String]) {
        lines.iter().for_each(|line| self.line(line));
    }

    /// Prints the lines of a text.
    pub(super) fn block(&mut self, text: &str) {
        text.lines().for_each(|line| self.line(line));
    }

    pub(super) fn flush(&mut self) {
        if self.broken.is_none() {
            self.broken = self.to.flush().err();
        }
    }

    /// Ends the output.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.flush();
        self.broken.take().map_or(Ok(()), Err)
    }
}

/// A styled line as words: a glyph is left out where a text says the same.
pub(super) fn plain_line(line: &StyledLine) -> String {
    let mut out = line.label.as_ref().map(|label| format!("{label}  ")).unwrap_or_default();
    for part in &line.parts {
        match part.glyph {
            Some(Glyph::Estimate) => out.push_str("about "),
            Some(glyph) if part.text.is_empty() => out.push_str(Glyphs::new(true).symbol(glyph)),
            _ => {}
        }
        out.push_str(&part.text);
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The line of an event: its number, its time, and what happened.
pub(super) fn event_line(event: &Event, world: &World, text: &str) -> String {
    let (number, time) = (event.seq.0 + 1, world.progress.run_time(event.at));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = visible_within(&text, LINE_CHARS);
    let more = match text.chars().count() > LINE_CHARS || text.ends_with('…') {
        true => format!(" (inspect {number} has the rest)"),
        false => String::new(),
    };
    format!("{number} {} {said}{more}", format::time_in_run(time))
}

/// What an event says, as a line of the events prints it.
pub(super) fn event_text(event: &Event, world: &World) -> String {
    let said = sentence(event, world);
    let text = match said.stated {
        Some(Stated::Stance(stance, confidence)) => {
            let round = said.round.map(|round| format!(", round {round}")).unwrap_or_default();
            let (who, text) = (&said.subject, spoken(&said.full_text()));
            format!("{who}{round}: {stance}, confidence {confidence}. {text}")
        }
        _ => without_round(&said.line()),
    };
    with_arguments(text, event, world)
}

/// The line of an event that belongs to no round has a sign in its place.
fn without_round(line: &str) -> String {
    line.strip_prefix("--").unwrap_or(line).trim_start().to_owned()
}

/// Line ends in what was said are blanks.
fn spoken(text: &str) -> String {
    text.replace('\u{240a}', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A call that an approval from before has let through is named with its arguments.
fn with_arguments(text: String, event: &Event, world: &World) -> String {
    let EventKind::QuestionAnswered(answered) = &event.kind else { return text };
    let ended = world.questions.ended().iter().rfind(|it| it.question.asked.id == answered.id);
    match ended.map(|ended| &ended.question.asked) {
        Some(asked) if asked.by_rule => format!("{text}: {}", about(&asked.subject)),
        _ => text,
    }
}

/// The lines of an event that is notable.
fn notable_lines(event: &Event, world: &World) -> Vec<String> {
    let said = sentence(event, world);
    let lines = headless::lines(event, world);
    if let (Some(Stated::Stance(stance, confidence)), [_]) = (said.stated, &lines[..]) {
        let text = spoken(&said.full_text());
        let text = format!("{}: {stance}, confidence {confidence}. {text}", said.subject);
        return vec![text];
    }
    let lines = lines.iter().map(|line| spoken(&plain_line(line)));
    lines.map(|line| with_arguments(line, event, world)).collect()
}

/// How far a run is, in words.
pub(super) fn state_text(world: &World) -> String {
    match &world.progress.stage {
        RunState::Empty => "starting".to_owned(),
        RunState::Running if world.questions.oldest().is_some() => "waits for you".to_owned(),
        RunState::Running => "running".to_owned(),
        RunState::Pausing { .. } => "pausing at the next boundary".to_owned(),
        RunState::Paused { at, .. } => {
            format!("paused before {}", places(at, PLACES))
        }
        RunState::Closed => match &world.progress.closed {
            Some(closed) => format!("ended: {}", stop_line(world, closed)),
            None => "ended".to_owned(),
        },
    }
}

impl PlainLoop {
    /// The first lines.
    pub(super) fn greet(&mut self) {
        let version = env!("CARGO_PKG_VERSION");
        self.out.line(&format!("roundtable {version}, plain mode: type a word, then Enter"));
        self.out.line(
            "scenarios lists what can be started, start NAME starts it, help lists the words, quit ends",
        );
    }

    /// Prints events of a run: those of the run that is looked at, in the form of a headless run.
    pub(super) fn tell_events(&mut self, run: &RunId, events: &[Arc<Event>]) {
        let is_shown = matches!(&self.state.screen, ActiveScreen::Run(shown) if shown == run);
        let told = self.told.entry(run.clone()).or_default();
        let (mut lines, mut has_ended, mut why) = (Vec::new(), false, None);
        for event in events {
            told.world.apply(event);
            has_ended |= matches!(event.kind, EventKind::RunClosed(_));
            if !is_shown {
                continue;
            }
            let texts: Vec<String> = match self.level {
                LineLevel::Off => Vec::new(),
                LineLevel::Notable => notable_lines(event, &told.world),
                LineLevel::All => vec![event_text(event, &told.world)],
            };
            lines.extend(texts.iter().map(|text| event_line(event, &told.world, text)));
        }
        if has_ended {
            why = told.world.stop_cause();
        }
        told.world.forget_old(events.len());
        let skipped = match lines.len() > MAX_LINES {
            true => lines.len() - LAST_LINES,
            false => 0,
        };
        if skipped > 0 {
            self.out.line(&format!("{skipped} lines before: events all lists the events"));
        }
        lines.iter().skip(skipped).for_each(|line| self.out.line(line));
        if has_ended {
            self.told.remove(run);
            if is_shown {
                why.iter().for_each(|why| self.out.line(&format!("why: {why}")));
                self.out.line("show outcome reads it");
            }
        }
    }

    /// Prints what is new in the state: notices, another screen, a window, questions.
    pub(super) fn tell_news(&mut self) {
        for notice in self.state.notices.take() {
            self.out.line(&notice.text);
        }
        if self.screen != self.state.screen && !self.is_reading() {
            self.screen = self.state.screen.clone();
            self.tell_place();
        }
        self.tell_window();
        self.tell_questions();
    }

    /// Whether the run on the screen is a kept one that is not read yet.
    fn is_reading(&self) -> bool {
        let kept = self.state.visible_run().and_then(|page| page.kept.as_deref());
        kept.is_some_and(|kept| !kept.is_read && !kept.is_elsewhere())
    }

    /// Prints where the operator is: after a change of the place, and on an empty line.
    pub(super) fn tell_place(&mut self) {
        let Some(page) = self.state.visible_run() else {
            let live: Vec<_> = self.state.live_runs().map(|page| page.id().to_string()).collect();
            let runs = match live.len() {
                0 => "no run is live".to_owned(),
                _ => format!("live: {}", live.join(", ")),
            };
            let scenarios = self.state.scenarios.len();
            self.out.line(&format!("home: {scenarios} scenarios, {runs}"));
            return self.tell_waiting();
        };
        let lines = self.status_lines(page);
        self.out.each(&lines);
        self.tell_waiting();
    }

    /// Prints what waits for the next line: a question of the program, or a form.
    fn tell_waiting(&mut self) {
        if let Some(what) = self.pending() {
            return self.out.line(&format!("type yes or no: {what}"));
        }
        if let Some(Overlay::Form(form)) = self.state.overlays.last() {
            let name = &form.entry.name;
            self.out.line(&format!(
                "a form of {name} is open: form prints it, start or cancel ends it"
            ));
        }
    }

    /// A run in a few lines, with what holds it up and what was changed in it.
    pub(super) fn status_lines(&self, page: &RunPage) -> Vec<String> {
        let mut lines = run_lines(page);
        let world = page.shown();
        let steps = words_of(world).map(|words| words.progress(world));
        let progress = steps.and_then(|progress| progress.text).unwrap_or_default();
        if world.progress.is_live() && !progress.is_empty() {
            lines.push(progress.replace('/', " of "));
        }
        let rows = world.tools.rows().iter();
        if world.progress.is_live() {
            let asked = world.questions.open();
            let asked = asked.map(|it| format!("{} (question {})", it.asked.who, it.asked.id.0));
            let asked = joined(asked, ", ");
            lines.extend(asked.map(|who| format!("waits for {who}; questions lists them")));
            let calling = rows.clone().filter(|row| row.in_flight > 0).map(|row| {
                format!("{} of {}", format::count_noun(row.in_flight.into(), "call"), row.name())
            });
            lines.extend(joined(calling, ", ").map(|calls| format!("in flight: {calls}")));
        }
        let is_open = |row: &&ToolRow| {
            row.head.limits.breaker.is_some() && row.breaker != BreakerStage::Closed
        };
        let stages = rows.clone().filter(is_open);
        let stages = stages.map(|row| format!("{} {}", row.name(), breaker_state(row.breaker)));
        lines.extend(joined(stages, ", ").map(|stages| format!("breakers: {stages}")));
        let faults = rows.filter_map(|row| Some(format!("{} {}", row.name(), faults_text(row)?)));
        lines.extend(joined(faults, "; ").map(|faults| format!("injected faults: {faults}")));
        for flag in &world.settings.flags {
            if let Some(on) = self.state.pending_flags.pending_position(page.id(), &flag.name) {
                let to = if on { "on" } else { "off" };
                lines.push(format!("flag {} will be {to} at the next boundary", flag.name));
            }
        }
        if world.progress.is_live() {
            let breakpoints = world.settings.breakpoints.iter().map(ToString::to_string);
            lines.extend(joined(breakpoints, ", ").map(|at| format!("pauses at {at}")));
        }
        lines
    }

    /// Prints that a wait is over.
    pub(super) fn tell_rest(&mut self, run: &RunId) {
        let text = self.state.run(run).map(|page| state_text(page.world()));
        self.out.line(&format!("{run}: {}", text.unwrap_or_else(|| "gone".to_owned())));
    }

    /// Prints a window that has opened: a question, a form, a comparison.
    fn tell_window(&mut self) {
        let window = match self.state.overlays.last() {
            Some(Overlay::Confirm(asked)) => Some(asked.question.clone()),
            Some(Overlay::Form(form)) => Some(format!("form {}", form.entry.path)),
            Some(Overlay::Comparison(_)) => Some("comparison".to_owned()),
            _ => None,
        };
        if self.window == window {
            return;
        }
        self.window = window;
        match self.state.overlays.last() {
            Some(Overlay::Confirm(asked)) => {
                let detail = asked.detail.clone();
                self.out.line(&asked.question.clone());
                detail.iter().for_each(|line| self.out.line(line));
                self.out.line("type yes or no");
            }
            Some(Overlay::Form(form)) => {
                let lines = form_lines(form);
                self.out.each(&lines);
            }
            Some(Overlay::Comparison(view)) => {
                let most = if self.compares_all { usize::MAX } else { DIFFERENCES };
                let lines = comparison_lines(&view.compared, most);
                self.out.each(&lines);
                self.state.overlays.pop();
                self.window = None;
            }
            _ => {}
        }
    }

    /// Prints questions that were asked since. One that a rule answers is no question to anybody.
    fn tell_questions(&mut self) {
        let open: Vec<_> = open_questions(&self.state.runs)
            .filter(|it| !it.question.asked.by_rule)
            .map(|it| (it.key(), Arc::clone(&it.question.asked)))
            .collect();
        for (key, asked) in &open {
            if self.questions.insert(key.clone()) {
                let mut lines = question_text(asked);
                if let Some(first) = lines.first_mut() {
                    *first = format!("{} {first}", question_name(key));
                }
                lines.push(how_to_answer(key, asked, self.is_here(key)));
                if matches!(asked.subject, Subject::Seat { .. } | Subject::Decision { .. }) {
                    let (run, id) = (&key.run, key.id.0);
                    let about = "the goal, the facts and what the others said";
                    lines.push(format!("question {run} {id} prints {about}"));
                }
                self.out.each(&lines);
            }
        }
        self.questions.retain(|key| open.iter().any(|(it, _)| it == key));
    }

    /// Prints, before the end, which runs continue and how to reach them.
    pub(super) fn tell_goes_on(&mut self) {
        let remote = self.state.live_runs().filter(|page| page.remote.is_some());
        let ids: Vec<_> = remote.map(|page| page.id().clone()).collect();
        for run in ids {
            self.out.line(&format!("{run} continues: roundtable attach {run} returns to it"));
        }
    }

    /// Prints how the runs of this program have ended.
    pub(super) fn tell_ends(&mut self) {
        for page in self.state.runs.iter().filter(|page| page.remote.is_none()) {
            let Some(head) = &page.world().head else { continue };
            let state = state_text(page.world());
            let left = match self.state.is_left(page) {
                true => format!("; roundtable resume {} continues it", page.id()),
                false => String::new(),
            };
            self.out.line(&format!("{}: {}, {state}{left}", page.id(), head.scenario));
        }
    }
}

/// The items in one text; `None`: there are none.
fn joined(items: impl Iterator<Item = String>, between: &str) -> Option<String> {
    let items: Vec<String> = items.collect();
    (!items.is_empty()).then(|| items.join(between))
}

/// Two runs in words: how each ended, where they differ first, and at most so many differences.
fn comparison_lines(compared: &ComparedRuns, most: usize) -> Vec<String> {
    let [left, right] = &compared.runs;
    let found = &compared.comparison;
    let mut lines: Vec<String> = compared
        .runs
        .iter()
        .map(|run| {
            let ended = run.stop_reason.as_deref().unwrap_or("not ended");
            let took = duration_text(Duration::from_millis(run.elapsed_ms));
            let (result, tokens) = (&run.result, format::count(run.tokens));
            format!("{} ({}): {ended}, {result}, {took}, {tokens} tokens", run.run, run.scenario)
        })
        .collect();
    if found.is_same() {
        lines.push("nothing differs but ids and times".to_owned());
        return lines;
    }
    let equal = format::count_noun(found.equal as u64, "event");
    lines.push(match found.differences.first() {
        Some(first) => {
            let (place, kind) = (first.place(), first.kind_name());
            format!("{equal} are equal; they differ first in {place}, {kind}")
        }
        None => format!("{equal} are equal; only the settings differ"),
    });
    let side = |text: &str| match text {
        "" => "nothing".to_owned(),
        text => visible_within(&spoken(&without_round(text)), LINE_CHARS),
    };
    let both = |one: &str, other: &str| {
        format!("{} has {}; {} has {}", left.run, side(one), right.run, side(other))
    };
    for it in &found.setup {
        lines.push(format!("started with {}: {}", it.what, both(&it.left, &it.right)));
    }
    let (first, rest) = match found.differences.split_first() {
        Some((first, rest)) => (Some(first), rest),
        None => (None, &[][..]),
    };
    let all = first.into_iter().chain(rest.iter().filter(|it| it.is_telling()));
    let count = all.clone().count();
    for (at, it) in all.take(most).enumerate() {
        let place = format!("difference {} in {}, {}", at + 1, it.place(), it.kind_name());
        let line = |side: &Option<DifferentEvent>| {
            side.as_ref().map(|side| side.line.clone()).unwrap_or_default()
        };
        match it.fields.first() {
            None => lines.push(format!("{place}: {}", both(&line(&it.left), &line(&it.right)))),
            Some(field) => {
                let more = match it.fields.len() - 1 {
                    0 => String::new(),
                    more => format!("; and {} more", format::count_noun(more as u64, "field")),
                };
                let said = both(&field.left, &field.right);
                lines.push(format!("{place}, {}: {said}{more}", field.name));
            }
        }
    }
    if count > most {
        let (left, right) = (&left.run, &right.run);
        lines.push(format!("{most} of {count}; compare {left} {right} all prints all"));
    }
    lines
}

/// A run in a few lines: what it is, how far it is, what it used.
pub(super) fn run_lines(page: &RunPage) -> Vec<String> {
    let world = page.shown();
    let Some(head) = &world.head else { return vec![format!("{}: starting", page.id())] };
    let mut lines =
        vec![format!("{}: {} ({}), {}", page.id(), head.title, head.scenario, head.plan.name())];
    let time = format::time_in_run(world.progress.run_time(world.progress.at));
    let is_interrupted = page.kept.as_deref().is_some_and(|kept| kept.is_interrupted());
    let how = match is_interrupted {
        true => "interrupted; resume continues it;".to_owned(),
        false => state_text(world),
    };
    let mut state = format!("{how} at {time}, {} events", page.shown_event_count());
    if page.is_scrubbed() {
        state = format!(
            "an earlier moment, at {time}: {} events; at live returns",
            page.shown_event_count()
        );
    } else if let Some(by) = page.remote.as_deref().and_then(|remote| remote.player()) {
        let _ = write!(state, ", played by {by}");
    }
    lines.push(state);
    if let Some(words) = words_of(world).filter(|_| !world.progress.is_live()) {
        let parts = words.summary(world);
        let summary = plain_line(&StyledLine { parts, label: None });
        lines.extend((!summary.is_empty()).then_some(summary));
    }
    lines
}
