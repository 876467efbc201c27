//! What a run looks like, as text: its panes, events in full, earlier moments.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::PlainLoop;
use super::answers::number_of;
use super::steer::tools_named;
use super::tell::{event_line, event_text};
use super::words::Typed;
use crate::base::time::duration_text;
use crate::base::visible::visible;
use crate::cli::picture::Moment;
use crate::host::recorded::{RecordedRun, fork_places};
use crate::log::event::{Asks, BoundaryId, BreakerStage, Elapsed, EventKind, Seq};
use crate::log::world::tool_row::ToolRow;
use crate::scenario::read::suggest_name;
use crate::screen::by_word::ByWord;
use crate::screen::keymap::key_of;
use crate::screen::layout::Size;
use crate::screen::run::earlier::EarlierRequest;
use crate::screen::run::filter::{ActiveFilter, Filter};
use crate::screen::run::inspector::calls::{cause_of, first_tab};
use crate::screen::run::inspector::{InspectTarget, Inspector, Tab};
use crate::screen::run::views::tools::listed_tools;
use crate::screen::run::views::tools::summary::{breaker_rule, faults_text};
use crate::screen::run::views::{PaneAt, View};
use crate::screen::run::{PageViews, Pane, RunPage};
use crate::screen::{Action, DrawContext, picture};
use crate::words::closing::closing;
use crate::words::format;
use crate::words::format::time_in_run;
use crate::words::glyph::Glyphs;
use crate::words::patterns::{PatternPane, words_of};
use crate::words::sentence::sentence;
use crate::words::tool_sentence::breaker_state;

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
/// The panes of a view, and how a pattern calls them.
const PANES: [(Pane, PatternPane); 4] = [
    (Pane::First, PatternPane::First),
    (Pane::Second, PatternPane::Second),
    (Pane::Third, PatternPane::Third),
    (Pane::Fourth, PatternPane::Fourth),
];

impl PlainLoop {
    /// `show [WHAT]`: alone, what there is.
    pub(super) fn show(&mut self, typed: Typed<'_>) -> Result<(), String> {
        let text = match typed.rest {
            "" => format!("show WHAT: {}", names(self.here()?).join(", ")),
            what => self.shown(what)?,
        };
        self.out.block(&text);
        Ok(())
    }

    /// A part of the run as text, or one item of it: `breakers`, `tool llm`.
    pub(super) fn shown(&self, what: &str) -> Result<String, String> {
        let page = self.here()?;
        let world = page.shown();
        let lower = what.to_lowercase();
        match lower.as_str() {
            "status" => return Ok(self.status_lines(page).join("\n")),
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
        let (pane, item) = pane_named(page, what)?;
        let Some(rows) = rows_of(page, &pane, page.drawn_to(self.now())) else {
            return self.drawn(page, &pane, &item);
        };
        let wanted = item.to_lowercase();
        let rows: Vec<String> =
            rows.into_iter().filter(|row| row.to_lowercase().contains(&wanted)).collect();
        match rows.is_empty() {
            true if item.is_empty() => Err(format!("{}: nothing yet", pane.name)),
            true => Err(format!("no line of {} has {item}", pane.name)),
            false => Ok(rows.join("\n")),
        }
    }

    /// A pane that is text on the screen, too, with this item of the first pane selected.
    fn drawn(&self, page: &RunPage, wanted: &NamedPane, item: &str) -> Result<String, String> {
        let NamedPane { name, is_own, pane, .. } = wanted;
        let mut views = PageViews::default();
        views.own.follow(&page.world().pattern);
        let area = Rect::new(0, 0, COLS, ROWS);
        let areas = views.areas(page, area);
        let own = words_of(page.shown()).filter(|_| *is_own).and_then(|words| words.items());
        let items = own.unwrap_or_else(|| tool_names(page));
        let selected = match item {
            "" => None,
            item => Some(place_of(&items, item).map_err(|why| format!("no {name} {item}: {why}"))?),
        };
        let view = if *is_own { views.own_view_mut() } else { &mut views.tools as &mut dyn View };
        let at = PaneAt { pane: Pane::First, areas: &areas };
        if let Some(steps) = selected {
            view.on_move(page, at, Action::Top);
            (0..steps).for_each(|_| view.on_move(page, at, Action::Down));
        }
        view.refresh(page);
        let cx = DrawContext { now: self.now(), theme: &self.theme, glyphs: Glyphs::new(true) };
        let mut cells = Buffer::empty(area);
        view.pane(page, *pane, &cx, area, &mut cells);
        let text = without_gaps(&picture::text(&cells));
        let head = match selected.and_then(|at| items.get(at)) {
            Some(item) => Some(format!("{name} {item}")),
            // What the second pane is about is in its title.
            None if *pane == Pane::Second && !is_own => {
                views.tools.tool(page).map(|tool| format!("{name} {}", tool.name()))
            }
            None if *pane == Pane::Second => Some(view.title(page, *pane, &cx, area).text),
            None => None,
        };
        match text {
            text if text.is_empty() => Err(format!("{name}: nothing yet")),
            text => Ok(head.map(|head| format!("{head}\n{text}")).unwrap_or(text)),
        }
    }

    /// Prints the state of the breaker of a tool, or of all, and how it is changed.
    pub(super) fn list_breakers(&mut self, tool: &str) -> Result<(), String> {
        let page = self.here()?;
        let world = page.shown();
        let now = page.drawn_to(self.now());
        let rows = tools_named(world, tool)?.into_iter();
        let mut lines: Vec<String> = rows.map(|row| tool_line(row, now)).collect();
        if lines.is_empty() {
            return Err("the run has no tools".to_owned());
        }
        if world.progress.is_live() && world.observed().is_none() {
            let tool = if tool.is_empty() { "TOOL" } else { tool };
            lines.push(format!("breaker {tool} trip, hold, reset or disable changes it"));
        }
        self.out.each(&lines);
        Ok(())
    }

    /// `events [all] [COUNT] [FILTER]`.
    pub(super) fn list_events(&mut self, typed: Typed<'_>) -> Result<(), String> {
        let page = self.here()?;
        let (mut all, mut count, mut rest) = (false, None, typed.rest);
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
        let mut filter = filter.map(|filter| ActiveFilter::new(String::new(), filter, page.log()));
        let most = count.unwrap_or(LISTED);
        let world = page.shown();
        let mut lines = Vec::new();
        let (mut left, mut fits) = (u64::MAX, 0);
        for event in page.log().between(0, page.shown_event_count()).rev() {
            let passes = filter.as_mut().is_none_or(|it| it.matches(Some(event), world, &mut left));
            fits += usize::from(passes);
            if passes && lines.len() < most {
                lines.push(event_line(event, world, &event_text(event, world)));
            }
        }
        let (shown, all) = (lines.len(), if all { "all " } else { "" });
        let more = (fits > shown).then(|| {
            let typed = format!("events {all}{fits} {rest}");
            format!("{shown} of {fits}; {} prints more", typed.trim_end())
        });
        let error = filter.and_then(|filter| filter.error);
        let dropped = page.log().dropped_count();
        lines.reverse();
        if dropped > 0 {
            self.out.line(&format!("the first {dropped} events left memory: inspect N reads them"));
        }
        lines.iter().chain(&more).for_each(|line| self.out.line(line));
        match error {
            Some(why) => Err(format!("some events could not be compared: {why}")),
            None if lines.is_empty() => Err("no such event".to_owned()),
            None => Ok(()),
        }
    }

    /// An event in full, or one part of it: that of the word, else the one that is named. The line is repeated once
    /// the event is read, if it has left memory.
    pub(super) fn inspect(&mut self, typed: Typed<'_>, of_word: Option<Tab>) -> Result<(), String> {
        let page = self.here()?;
        let rest = typed.rest;
        let (number, part) = match number_of(rest) {
            Some(found) => found,
            None if of_word == Some(Tab::Prompt) && !rest.is_empty() => {
                let number = last_call_of(page, rest).ok_or_else(|| {
                    format!(
                        "no model call of {rest} in memory: it is the name of a seat or an agent"
                    )
                })?;
                (number, "")
            }
            None => return Err(typed.usage()),
        };
        let seq = Seq(u64::from(number).checked_sub(1).ok_or_else(|| typed.usage())?);
        if page.is_dropped(seq) && page.earlier.is_stored() && !page.earlier.is_reading() {
            self.by(ByWord::ReadEarlier(EarlierRequest::Event(seq)));
            self.then = Some(typed.line.to_owned());
            return Ok(());
        }
        let end = page.world().progress.next.0;
        if page.event(seq).is_none() {
            return Err(format!("no event {number} in memory: the run has {end}"));
        }
        let tab = match (of_word, part.to_lowercase().as_str()) {
            (Some(tab), _) => Some(tab),
            (None, "prompt" | "args") => Some(Tab::Prompt),
            (None, "raw") => Some(Tab::Raw),
            (None, "reply" | "result") => Some(Tab::Reply),
            (None, "timing") => Some(Tab::Timing),
            (None, "") => None,
            (None, _) => return Err(typed.usage()),
        };
        let text = event_in_full(page, seq, tab, of_word);
        self.out.block(&text);
        Ok(())
    }

    /// The event that caused an event.
    pub(super) fn cause(&mut self, typed: Typed<'_>) -> Result<(), String> {
        let page = self.here()?;
        let (number, _) = number_of(typed.rest).ok_or("type: cause N")?;
        let target = InspectTarget::Event(Seq(u64::from(number).saturating_sub(1)));
        let cause = cause_of(page, target).and_then(|seq| page.event(seq));
        let cause = cause.ok_or_else(|| format!("event {number} has no cause in memory"))?;
        let line = event_line(cause, page.world(), &event_text(cause, page.world()));
        self.out.line(&line);
        Ok(())
    }

    /// `at [MOMENT]`.
    pub(super) fn at(&mut self, typed: Typed<'_>) -> Result<(), String> {
        let rest = typed.rest;
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
        if let Ok(number) = rest.parse::<usize>() {
            return self.find_boundary(Some(WantedBoundary::Number(number)));
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
            Some(Moment::Boundary(id)) => Some(WantedBoundary::Id(id)),
            _ => None,
        };
        self.find_boundary(wanted)
    }

    /// Looks up a boundary, or lists them all: the run is executed over its log for that.
    fn find_boundary(&mut self, wanted: Option<WantedBoundary>) -> Result<(), String> {
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
                let place = match &wanted {
                    None => None,
                    Some(WantedBoundary::Id(id)) => places.iter().find(|place| place.id == *id),
                    Some(WantedBoundary::Number(number)) => {
                        number.checked_sub(1).and_then(|at| places.get(at))
                    }
                };
                if let Some(place) = place {
                    let count = events.iter().position(|event| event.seq >= place.next);
                    return Ok(count.unwrap_or(events.len()));
                }
                let mut lines: Vec<String> = Vec::new();
                lines.extend(wanted.map(|_| "no such boundary so far; there are:".to_owned()));
                let shown = places.iter().enumerate().take(LISTED);
                lines.extend(shown.map(|(at, it)| {
                    let time = time_in_run(it.at);
                    format!("boundary {}: {} at {time}", at + 1, visible(it.id.as_str()))
                }));
                lines.push(format!("{} boundaries; at 2 goes to boundary 2", places.len()));
                Err(lines.join("\n"))
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
            Err(text) => self.out.block(&text),
        }
    }

    /// Prints the moment that is looked at, and the last event before it.
    fn tell_moment(&mut self) {
        self.tell_place();
        let Some(page) = self.state.visible_run().filter(|page| page.is_scrubbed()) else { return };
        let last = page.shown_event_count().checked_sub(1).and_then(|at| page.log().get(at));
        let line =
            last.map(|event| event_line(event, page.shown(), &event_text(event, page.shown())));
        if let Some(line) = line {
            self.out.line(&line);
        }
    }
}

/// The lines of a pane: no empty ones at its ends, and one where there are several.
fn without_gaps(text: &str) -> String {
    let mut out = String::new();
    let mut is_gap = false;
    // Bars say what a figure beside them says, and there are no keys.
    let is_bar = |word: &&str| word.len() > 4 && word.bytes().all(|it| matches!(it, b'#' | b'.'));
    for line in text.lines().filter(|line| !line.trim_start().starts_with("p view ")) {
        let line = line.split(' ').filter(|word| !is_bar(word)).collect::<Vec<_>>().join(" ");
        match line.trim().is_empty() {
            true => is_gap = !out.is_empty(),
            false => {
                if std::mem::take(&mut is_gap) {
                    out.push('\n');
                }
                out.push_str(line.trim_end());
                out.push('\n');
            }
        }
    }
    out
}

/// The boundary that `at` goes to.
enum WantedBoundary {
    Id(BoundaryId),
    /// Its number in the list, from 1.
    Number(usize),
}

/// A pane that `show` prints.
struct NamedPane {
    name: String,
    /// Whether it is in the view of the run's own pattern; else in that of its tools.
    is_own: bool,
    pane: Pane,
    /// The same for the pattern; `None`: it shows the tools.
    of_pattern: Option<PatternPane>,
}

/// The panes of a run's pattern; those of its tools follow.
fn panes(page: &RunPage) -> impl Iterator<Item = NamedPane> {
    let mut views = PageViews::default();
    views.own.follow(&page.world().pattern);
    let own = views.shown().tabs().map(str::to_lowercase);
    let tools = views.tools.tabs().map(str::to_lowercase);
    let twice = own.clone();
    let is_about_tools = views.is_about_tools();
    let named = |names: [String; 4], is_own| {
        names.into_iter().zip(PANES).map(move |(name, (pane, place))| {
            let of_pattern = (is_own && !is_about_tools).then_some(place);
            NamedPane { name, is_own, pane, of_pattern }
        })
    };
    named(own, true).chain(named(tools, false).filter(move |pane| !twice.contains(&pane.name)))
}

/// The pane that a line names or numbers, and the name of an item that follows.
fn pane_named(page: &RunPage, what: &str) -> Result<(NamedPane, String), String> {
    let lower = what.to_lowercase();
    let begins = |name: &str| {
        let rest = lower.strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with(' ')).then(|| what[name.len()..].trim().to_owned())
    };
    let named = panes(page).filter_map(|pane| begins(&pane.name).map(|item| (pane, item)));
    let number = lower.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    named
        .max_by_key(|(pane, _)| pane.name.len())
        .or_else(|| panes(page).nth(number?).map(|pane| (pane, String::new())))
        .ok_or_else(|| {
            let names = names(page);
            let guess = suggest_name(&lower, names.iter().map(String::as_str));
            format!("nothing to show is called {what}: {guess}")
        })
}

fn tool_names(page: &RunPage) -> Vec<String> {
    listed_tools(page.shown()).iter().map(|row| row.name().to_string()).collect()
}

/// The place of an item, by its name.
fn place_of(items: &[String], item: &str) -> Result<usize, String> {
    let name = item.trim_start_matches('#');
    let place = items.iter().position(|known| known.eq_ignore_ascii_case(name));
    place.ok_or_else(|| match name.parse::<u32>() {
        Ok(_) => format!("there are {}", items.len()),
        Err(_) => suggest_name(item, items.iter().map(String::as_str)),
    })
}

/// The rows of a pane that is a picture on the screen, each as one sentence; `None`: it is text there, too.
fn rows_of(page: &RunPage, pane: &NamedPane, now: Elapsed) -> Option<Vec<String>> {
    let world = page.shown();
    if let Some(place) = pane.of_pattern {
        return words_of(world)?.rows(place, world);
    }
    let tools = listed_tools(world);
    let line: fn(&ToolRow, Elapsed) -> String = match pane.pane {
        Pane::First => tool_line,
        Pane::Third => |row, _| bulkhead_line(row),
        Pane::Fourth => |row, _| retries_line(row),
        Pane::Second | Pane::Events => return None,
    };
    Some(tools.into_iter().map(|row| line(row, now)).collect())
}

/// An event with one part of it, or without one with what is read first of it.
fn event_in_full(page: &RunPage, seq: Seq, part: Option<Tab>, of_word: Option<Tab>) -> String {
    let (number, target) = (seq.0 + 1, InspectTarget::Event(seq));
    // Of a call its reply is read first.
    let tab = part.unwrap_or_else(|| match first_tab(page, target) {
        Tab::Raw => Tab::Raw,
        _ => Tab::Reply,
    });
    let shown = Inspector::of_target(page, target, tab);
    let no_keys = |text: String| {
        let raw = format!("as sent: inspect {number} raw");
        let cause = format!("cause {number} prints its cause.");
        let jumps = format!("{} jumps to its cause.", key_of(Action::Cause));
        text.replace("as sent: 3 Raw", &raw).replace(&jumps, &cause)
    };
    let name = |tab: Tab| tab.name(shown.callee).to_lowercase();
    let mut text = match of_word {
        None => format!("{}{}:\n", no_keys(shown.summary.to_plain()), name(tab)),
        Some(Tab::Prompt) => format!("prompt of event {number}:\n"),
        Some(_) => String::new(),
    };
    let document = no_keys(shown.document.to_plain());
    text.push_str(if document.trim().is_empty() { "nothing\n" } else { &document });
    match part {
        None => {
            let others = Tab::ALL.into_iter().filter(|it| *it != tab);
            let others = others.map(|it| format!("inspect {number} {}", name(it)));
            text.push_str(&format!("more: {}\n", others.collect::<Vec<_>>().join(", ")));
        }
        Some(Tab::Raw) => {
            text.push_str(&format!("seq counts from 0: event {number} has seq {}\n", seq.0));
        }
        Some(_) => {}
    }
    text
}

/// The event of the last model call of a seat or an agent, by its number.
fn last_call_of(page: &RunPage, name: &str) -> Option<u32> {
    let world = page.shown();
    let shown = page.log().between(0, page.shown_event_count());
    let is_own = |event: &&std::sync::Arc<crate::log::event::Event>| {
        matches!(&event.kind, EventKind::CallStarted(call) if call.purpose.asks() == Asks::Model)
            && sentence(event, world).subject.eq_ignore_ascii_case(name)
    };
    let event = shown.rev().find(is_own)?;
    u32::try_from(event.seq.0 + 1).ok()
}

/// The state of a tool in one sentence.
fn tool_line(row: &ToolRow, now: Elapsed) -> String {
    let tally = &row.tally;
    let breaker = match row.head.limits.breaker {
        Some(_) => {
            let state = breaker_state(row.breaker);
            match breaker_rule(row, now) {
                rule if rule == state => format!("breaker {state}"),
                rule => format!("breaker {state}, {rule}"),
            }
        }
        None => breaker_rule(row, now),
    };
    let mut parts = vec![breaker];
    let last = row.history.back().filter(|_| row.breaker != BreakerStage::Closed);
    parts.extend(last.map(|it| format!("last change: {}", it.why.description(it.counted))));
    parts.extend(tally.error_rate().map(|rate| format!("{} errors", format::percent(rate))));
    parts.push(format::count_noun(tally.calls, "call"));
    parts.push(format::count_noun(tally.requests(), "request"));
    parts.extend(row.latencies.percentile(95).map(|it| format!("p95 {}", duration_text(it))));
    if row.in_flight > 0 || row.queued > 0 {
        parts.push(format!("{} running, {} queued", row.in_flight, row.queued));
    }
    parts.extend(faults_text(row).map(|faults| format!("injected: {faults}")));
    format!("{}: {}", row.name(), parts.join(", "))
}

fn bulkhead_line(row: &ToolRow) -> String {
    let of = match row.head.limits.bulkhead {
        Some(limits) => format!(" of {}", limits.max_in_flight),
        None => ", no bulkhead".to_owned(),
    };
    let waited = duration_text(std::time::Duration::from_millis(row.tally.waited_ms));
    format!(
        "{}: {} running{of}, most {}, {} queued, {} refused, waited {waited}",
        row.name(),
        row.in_flight,
        row.peak,
        row.queued,
        row.tally.bulkhead_full,
    )
}

fn retries_line(row: &ToolRow) -> String {
    let tally = &row.tally;
    format!(
        "{}: {} for {}; {} by the gateway, {} by clients, {} by agents; {} failed, {} got a fallback",
        row.name(),
        format::count_noun(tally.requests(), "request"),
        format::count_noun(tally.calls, "call"),
        format::count_noun(tally.retries, "retry"),
        tally.client_retries,
        tally.repeats,
        tally.failed,
        tally.degraded(),
    )
}

fn has_pane(page: &RunPage, name: &str) -> bool {
    panes(page).any(|pane| pane.name == name)
}

/// The names of all that `show` takes.
fn names(page: &RunPage) -> Vec<String> {
    let mut names: Vec<String> = panes(page).map(|pane| pane.name).collect();
    for name in ALSO {
        if !names.iter().any(|it| it == name) {
            names.push(name.to_owned());
        }
    }
    names
}
