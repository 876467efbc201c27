//! What a run looks like, as text: its panes, events in full, earlier moments.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::PlainLoop;
use super::answers::number_of;
use super::carry_out::usage;
use super::tell::{event_line, run_lines};
use super::words::{Does, Word};
use crate::base::visible::visible;
use crate::cli::picture::Moment;
use crate::host::recorded::{RecordedRun, fork_places};
use crate::log::event::{BoundaryId, Seq};
use crate::scenario::read::suggest_name;
use crate::screen::by_word::ByWord;
use crate::screen::layout::Size;
use crate::screen::run::earlier::EarlierRequest;
use crate::screen::run::filter::{ActiveFilter, Filter};
use crate::screen::run::inspector::calls::{cause_of, first_tab};
use crate::screen::run::inspector::{InspectTarget, Inspector, Tab};
use crate::screen::run::views::View;
use crate::screen::run::{Pane, RunPage};
use crate::screen::{Action, DrawContext, picture};
use crate::words::closing::closing;
use crate::words::format::time_in_run;
use crate::words::glyph::Glyphs;
use crate::words::patterns::words_of;
use crate::words::sentence::sentence;

/// The size of a picture of the screen.
pub(super) const PICTURE: Size = Size { cols: 120, rows: 36 };
/// Columns of a pane as text: it fits a terminal of 80 columns.
const COLS: u16 = 79;
/// Rows in which a pane is drawn; those that stay empty are not printed.
const ROWS: u16 = 300;
/// Events that are listed if no number is given.
const LISTED: usize = 20;
/// What every run can show besides its panes.
const ALSO: [&str; 3] = ["outcome", "report", "status"];
const PANES: [Pane; 4] = [Pane::First, Pane::Second, Pane::Third, Pane::Fourth];

impl PlainLoop {
    /// The names of what can be shown.
    pub(super) fn list_panes(&mut self) -> Result<(), String> {
        let page = self.here()?;
        let names = names(page);
        self.out.line(&format!("show WHAT: {}", names.join(", ")));
        Ok(())
    }

    /// A pane, the outcome or another part of the run as text.
    pub(super) fn shown(&self, what: &str) -> Result<String, String> {
        let page = self.here()?;
        let world = page.shown();
        let what = what.to_lowercase();
        match what.as_str() {
            "status" => return Ok(run_lines(page).join("\n")),
            "outcome" if !has_pane(page, "outcome") || !world.progress.is_live() => {
                let outcome = world.outcome().ok_or("the run has no outcome yet")?;
                return Ok(closing(&outcome, world).trim_start().to_owned());
            }
            "report" => {
                let report = words_of(world).and_then(|words| words.report(world));
                return report.ok_or("the run has no report".to_owned());
            }
            _ => {}
        }
        let number = what.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let found =
            panes(page).find(|(name, ..)| *name == what).or_else(|| panes(page).nth(number?));
        let Some((_, view, pane)) = found else {
            let names = names(page);
            let known = names.iter().map(String::as_str);
            return Err(format!(
                "nothing to show is called {what}: {}",
                suggest_name(&what, known)
            ));
        };
        let glyphs = Glyphs::new(true);
        let cx = DrawContext { now: self.now(), theme: &self.theme, glyphs };
        let area = Rect::new(0, 0, COLS, ROWS);
        let mut cells = Buffer::empty(area);
        view.pane(page, pane, &cx, area, &mut cells);
        let text = picture::text(&cells);
        match without_gaps(&text) {
            text if text.is_empty() => Err("it is empty".to_owned()),
            text => Ok(text),
        }
    }

    /// `events [all] [COUNT] [FILTER]`.
    pub(super) fn list_events(&mut self, rest: &str) -> Result<(), String> {
        let page = self.here()?;
        let (mut all, mut count, mut rest) = (false, None, rest.trim());
        while let Some(first) = rest.split_whitespace().next() {
            match first.parse::<usize>() {
                Ok(number) => count = Some(number),
                Err(_) if first == "all" => all = true,
                Err(_) => break,
            }
            rest = rest[first.len()..].trim_start();
        }
        let typed = Filter::parse(rest).map_err(|why| format!("the filter is wrong: {why}"))?;
        let filter = match (typed, all) {
            (Some(typed), _) => Some(typed),
            (None, true) => None,
            (None, false) => Some(Filter::Notable),
        };
        let is_filtered = filter.as_ref().is_some_and(|it| !matches!(it, Filter::Notable));
        let mut filter = filter.map(|filter| ActiveFilter::new(String::new(), filter, page.log()));
        let most = count.unwrap_or(if all || is_filtered { usize::MAX } else { LISTED });
        let world = page.shown();
        let mut lines = Vec::new();
        let mut left = u64::MAX;
        for event in page.log().between(0, page.shown_event_count()).rev() {
            if lines.len() >= most {
                break;
            }
            let passes = filter.as_mut().is_none_or(|it| it.matches(Some(event), world, &mut left));
            if passes {
                lines.push(event_line(event, world, &sentence(event, world).line()));
            }
        }
        let error = filter.and_then(|filter| filter.error);
        let dropped = page.log().dropped_count();
        lines.reverse();
        if dropped > 0 {
            self.out.line(&format!("the first {dropped} events left memory: inspect N reads them"));
        }
        lines.iter().for_each(|line| self.out.line(line));
        match error {
            Some(why) => Err(format!("some events could not be compared: {why}")),
            None if lines.is_empty() => Err("no such event".to_owned()),
            None => Ok(()),
        }
    }

    /// An event in full; `line` is repeated once the event is read, if it has left memory.
    pub(super) fn inspect(&mut self, word: &Word, rest: &str, line: &str) -> Result<(), String> {
        let page = self.here()?;
        let (number, tab) = number_of(rest).ok_or_else(|| usage(word))?;
        let seq = Seq(u64::from(number).checked_sub(1).ok_or_else(|| usage(word))?);
        let target = InspectTarget::Event(seq);
        if page.is_dropped(seq) && page.earlier.is_stored() && !page.earlier.is_reading() {
            self.by(ByWord::ReadEarlier(EarlierRequest::Event(seq)));
            self.then = Some(line.to_owned());
            return Ok(());
        }
        let end = page.world().progress.next.0;
        if page.event(seq).is_none() {
            return Err(format!("no event {number} in memory: the run has {end}"));
        }
        let tab = match (word.does, tab.to_lowercase().as_str()) {
            (Does::Prompt, _) | (_, "prompt" | "args") => Tab::Prompt,
            (Does::Raw, _) | (_, "raw") => Tab::Raw,
            (_, "reply" | "result") => Tab::Reply,
            (_, "timing") => Tab::Timing,
            (_, "") => first_tab(page, target),
            _ => return Err(usage(word)),
        };
        let shown = Inspector::of_target(page, target, tab);
        let mut text = String::new();
        if word.does == Does::Inspect {
            text.push_str(&shown.summary.to_plain());
            text.push_str(&format!("{}:\n", tab.name(shown.callee).to_lowercase()));
        }
        let document = shown.document.to_plain();
        text.push_str(if document.trim().is_empty() { "nothing\n" } else { &document });
        self.out.block(&text);
        Ok(())
    }

    /// The event that caused an event.
    pub(super) fn cause(&mut self, rest: &str) -> Result<(), String> {
        let page = self.here()?;
        let (number, _) = number_of(rest).ok_or("type: cause N")?;
        let target = InspectTarget::Event(Seq(u64::from(number).saturating_sub(1)));
        let cause = cause_of(page, target).and_then(|seq| page.event(seq));
        let cause = cause.ok_or_else(|| format!("event {number} has no cause in memory"))?;
        let line = event_line(cause, page.world(), &sentence(cause, page.world()).line());
        self.out.line(&line);
        Ok(())
    }

    /// `at [MOMENT]`.
    pub(super) fn at(&mut self, rest: &str) -> Result<(), String> {
        let action = match rest {
            "live" | "end" => {
                self.by(ByWord::Seek(usize::MAX));
                self.tell_place();
                return Ok(());
            }
            "back" => Some(Action::ScrubBack),
            "forward" => Some(Action::ScrubForward),
            "mark back" => Some(Action::MarkBack),
            "mark forward" => Some(Action::MarkForward),
            _ => None,
        };
        let page = self.here()?;
        if let Some(action) = action {
            self.by(ByWord::Act(action));
            self.tell_moment();
            return Ok(());
        }
        if let Some(number) = rest.strip_prefix('#') {
            let events = number.parse().map_err(|_| "type: at #12")?;
            self.by(ByWord::Seek(events));
            self.tell_moment();
            return Ok(());
        }
        let moment = if rest.is_empty() { None } else { Some(Moment::parse(rest)?) };
        if let Some(Moment::Time(time)) = moment {
            let progress = &page.world().progress;
            let events = page.log().partition_point(|event| progress.run_time(event.at) <= time);
            self.by(ByWord::Seek(events));
            self.tell_moment();
            return Ok(());
        }
        let wanted = match moment {
            Some(Moment::Boundary(id)) => Some(id),
            _ => None,
        };
        self.find_boundary(wanted)
    }

    /// Looks up a boundary, or lists them all: the run is executed over its log for that.
    fn find_boundary(&mut self, wanted: Option<BoundaryId>) -> Result<(), String> {
        let page = self.here()?;
        if page.log().dropped_count() > 0 {
            return Err("the first events left memory: name a time, or an event as #12".to_owned());
        }
        let (run, events) = (page.id().clone(), page.log().iter().cloned().collect::<Vec<_>>());
        let send = self.moments.0.clone();
        self.awaited = Some(tokio::time::Instant::now() + super::ANSWER_WAIT);
        self.services.runtime.spawn(async move {
            let recorded = RecordedRun::new(run.clone(), events.clone(), true);
            let places = match recorded {
                Ok(recorded) => fork_places(&recorded).await,
                Err(why) => Err(why),
            };
            let found = places.map_err(|why| format!("{why:#}")).and_then(|places| {
                let place = wanted.as_ref().map(|id| places.iter().find(|place| place.id == *id));
                match place {
                    Some(Some(place)) => {
                        let count = events.iter().position(|event| event.seq >= place.next);
                        Ok(count.unwrap_or(events.len()))
                    }
                    Some(None) | None => {
                        let known = places.iter().map(|it| {
                            format!("{} at {}", visible(it.id.as_str()), time_in_run(it.at))
                        });
                        let known = known.collect::<Vec<_>>().join(", ");
                        Err(match wanted {
                            Some(id) => format!("no boundary {id} so far; there are: {known}"),
                            None => format!("boundaries: {known}"),
                        })
                    }
                }
            });
            // The loop is only gone when the program ends.
            let _ = send.send((run, found));
        });
        Ok(())
    }

    pub(super) fn on_moment(&mut self, (run, found): super::FoundMoment) {
        self.awaited = None;
        match found {
            Ok(_) if self.state.visible_run().is_none_or(|page| *page.id() != run) => {}
            Ok(events) => {
                self.by(ByWord::Seek(events));
                self.tell_moment();
            }
            Err(text) => self.out.line(&text),
        }
    }

    /// Prints the moment that is looked at, and the last event before it.
    fn tell_moment(&mut self) {
        self.tell_place();
        let Some(page) = self.state.visible_run().filter(|page| page.is_scrubbed()) else { return };
        let last = page.shown_event_count().checked_sub(1).and_then(|at| page.log().get(at));
        let line = last
            .map(|event| event_line(event, page.shown(), &sentence(event, page.shown()).line()));
        if let Some(line) = line {
            self.out.line(&line);
        }
    }
}

/// The lines of a pane: no empty ones at its ends, and one where there are several.
fn without_gaps(text: &str) -> String {
    let mut out = String::new();
    let mut is_gap = false;
    for line in text.lines() {
        match line.trim().is_empty() {
            true => is_gap = !out.is_empty(),
            false => {
                if std::mem::take(&mut is_gap) {
                    out.push('\n');
                }
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

/// The panes of a run with their names: those of its pattern, then those of its tools.
fn panes(page: &RunPage) -> impl Iterator<Item = (String, &dyn View, Pane)> {
    let own = page.views.shown();
    let tools: &dyn View = &page.views.tools;
    let tool_names = tools.tabs().map(str::to_lowercase);
    let own_names = own.tabs().map(str::to_lowercase);
    let twice = own_names.clone();
    let own = own_names.into_iter().zip(PANES).map(move |(name, pane)| (name, own, pane));
    let tools = tool_names.into_iter().zip(PANES).map(move |(name, pane)| (name, tools, pane));
    own.chain(tools.filter(move |(name, ..)| !twice.contains(name)))
}

fn has_pane(page: &RunPage, name: &str) -> bool {
    panes(page).any(|(pane, ..)| pane == name)
}

/// The names of all that `show` takes.
fn names(page: &RunPage) -> Vec<String> {
    let mut names: Vec<String> = panes(page).map(|(name, ..)| name).collect();
    for name in ALSO {
        if !names.iter().any(|it| it == name) {
            names.push(name.to_owned());
        }
    }
    names
}
