//! What is printed by itself: events, notices, questions, windows, and how runs end.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use super::PlainLoop;
use super::answers::how_to_answer;
use crate::base::visible::{visible, visible_within};
use crate::cli::people::question_lines;
use crate::cli::streams::{Stdout, TextStream, stdout_data};
use crate::log::event::{Event, EventKind, RunId, World};
use crate::log::world::RunState;
use crate::screen::form::{FieldId, FieldValue, FormSection, LaunchForm};
use crate::screen::questions::open_questions;
use crate::screen::run::RunPage;
use crate::screen::state::ActiveScreen;
use crate::screen::text::ascii_text;
use crate::screen::windows::Overlay;
use crate::words::comparison::runs::comparison_text;
use crate::words::format;
use crate::words::glyph::{Glyph, Glyphs};
use crate::words::headless;
use crate::words::patterns::words_of;
use crate::words::sentence::{PLACES, places, sentence};
use crate::words::styled::StyledLine;
use crate::words::verdict::stop_lead;

/// Most characters of the line of an event; `inspect` has the rest.
const LINE_CHARS: usize = 300;
/// Lines of one batch of events that are printed. Of a longer one, such as the log of a run that is joined
/// late, only the last ones are.
const MAX_LINES: usize = 400;
/// How many of a longer batch are printed.
const LAST_LINES: usize = 20;

/// Which events are printed as they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineLevel {
    Off,
    Notable,
    All,
}

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
}

impl Out {
    pub(super) fn new(ascii: bool) -> Self {
        Self { to: TextStream::new(stdout_data(), false), ascii, broken: None }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Prints one line; whatever is in it, it stays one and controls nothing.
    pub(super) fn line(&mut self, text: &str) {
        if self.broken.is_some() {
            return;
        }
        let text = visible(text.trim_end());
        let written = match self.ascii {
            true => self.to.text(&(ascii_text(&text) + "\n")),
            false => self.to.text(&format!("{text}\n")),
        };
        self.broken = written.err();
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
    ///
    /// # Errors
    /// It could not be written.
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
    let more = match text.chars().count() > LINE_CHARS {
        true => format!(" (inspect {number} has the rest)"),
        false => String::new(),
    };
    format!("{number} {} {said}{more}", format::time_in_run(time))
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
            Some(closed) => format!("ended: {}", stop_lead(world, closed)),
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
        let mut lines = Vec::new();
        let mut has_ended = false;
        for event in events {
            told.world.apply(event);
            has_ended |= matches!(event.kind, EventKind::RunClosed(_));
            if !is_shown {
                continue;
            }
            let texts: Vec<String> = match self.level {
                LineLevel::Off => Vec::new(),
                LineLevel::Notable => {
                    headless::lines(event, &told.world).iter().map(plain_line).collect()
                }
                LineLevel::All => vec![sentence(event, &told.world).line()],
            };
            lines.extend(texts.iter().map(|text| event_line(event, &told.world, text)));
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
            return self.out.line(&format!("home: {scenarios} scenarios, {runs}"));
        };
        let lines = run_lines(page);
        lines.iter().for_each(|line| self.out.line(line));
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
                lines.iter().for_each(|line| self.out.line(line));
            }
            Some(Overlay::Comparison(view)) => {
                let compared = &view.compared;
                let text = comparison_text(&compared.comparison, &compared.runs, &|_, text| {
                    text.to_owned()
                });
                self.out.block(&text);
                self.state.overlays.pop();
                self.window = None;
            }
            _ => {}
        }
    }

    /// Prints questions that were asked since.
    fn tell_questions(&mut self) {
        let open: Vec<_> = open_questions(&self.state.runs)
            .map(|it| (it.key(), Arc::clone(&it.question.asked)))
            .collect();
        for (key, asked) in &open {
            if self.questions.insert(key.clone()) {
                self.out.line(&format!("question {} of {}:", asked.id.0, key.run));
                question_lines(asked).iter().for_each(|line| self.out.line(line));
                self.out.line(&how_to_answer(asked));
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
            self.out.line(&format!("{}: {}, {state}", page.id(), head.scenario));
        }
    }
}

/// A run in a few lines: what it is, how far it is, what it used.
pub(super) fn run_lines(page: &RunPage) -> Vec<String> {
    let world = page.shown();
    let Some(head) = &world.head else { return vec![format!("{}: starting", page.id())] };
    let mut lines =
        vec![format!("{}: {} ({}), {}", page.id(), head.title, head.scenario, head.plan.name())];
    let time = format::time_in_run(world.progress.run_time(world.progress.at));
    let mut state = format!("{} at {time}, {} events", state_text(world), page.shown_event_count());
    if page.is_scrubbed() {
        state = format!(
            "an earlier moment, at {time}: {} events; at live returns",
            page.shown_event_count()
        );
    } else if let Some(by) = page.remote.as_deref().and_then(|remote| remote.player()) {
        let _ = write!(state, ", played by {by}");
    }
    lines.push(state);
    if let Some(words) = words_of(world) {
        let parts = words.summary(world);
        let summary = plain_line(&StyledLine { parts, label: None });
        lines.extend((!summary.is_empty()).then_some(summary));
    }
    let open = world.questions.open().len();
    if world.progress.is_live() && open > 0 {
        lines.push(format!(
            "{}; questions lists them",
            format::count_noun(open as u64, "open question")
        ));
    }
    lines
}

/// The launch form: a line for each field, and its problems.
pub(super) fn form_lines(form: &LaunchForm) -> Vec<String> {
    let what = match &form.fork {
        Some(fork) => format!("a fork of {}", fork.run),
        None => format!("a run of {}", form.entry.name),
    };
    let mut lines = vec![format!("form of {what}: set FIELD VALUE, then start or cancel")];
    for (at, field) in form_fields(form) {
        let section = FormSection::of_field(&field.id).title(form.fork.is_some());
        // The hint of a boundary names keys.
        let has_hint = !field.hint.is_empty() && field.id != FieldId::Boundary;
        let hint = if has_hint { format!(" ({})", field.hint) } else { String::new() };
        let value = match &field.value {
            FieldValue::Switch { on: true, .. } => "on, takes on or off".to_owned(),
            FieldValue::Switch { on: false, .. } => "off, takes on or off".to_owned(),
            _ => field.text().split_whitespace().collect::<Vec<_>>().join(" "),
        };
        let value = visible_within(&value, LINE_CHARS);
        lines.push(format!("field {} {section}: {}{hint}: {value}", at + 1, field.label));
        if let FieldValue::Choice { choices, .. } = &field.value {
            let numbered = choices.iter().enumerate();
            lines.extend(numbered.map(|(at, choice)| format!("  {} {choice}", at + 1)));
        }
    }
    lines.extend(problem_lines(form));
    lines
}

/// The problems of a form.
pub(super) fn problem_lines(form: &LaunchForm) -> Vec<String> {
    let label = |id: &Option<FieldId>| {
        let field = id.as_ref().and_then(|id| form.fields.get(id));
        field.map(|field| format!("{}: ", field.label)).unwrap_or_default()
    };
    let line = |fault: &crate::screen::form::FormProblem| {
        let kind = if fault.error { "error" } else { "warning" };
        format!("{kind}: {}{}", label(&fault.field), fault.text)
    };
    form.problems.iter().map(line).collect()
}

/// The fields of a form that take a value, with their places.
pub(super) fn form_fields(
    form: &LaunchForm,
) -> impl Iterator<Item = (usize, &crate::screen::form::Field)> {
    let has_value = |field: &&crate::screen::form::Field| {
        !matches!(field.value, FieldValue::Button) && form.fields.is_shown(&field.id)
    };
    form.fields.list.iter().filter(has_value).enumerate()
}
