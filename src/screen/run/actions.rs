//! Keys and mouse on a run's page. A change of the run is sent as a command and shown once its
//! event arrives. While the past is shown, commands still act on the present.

use std::time::Duration;

use super::data::RunData;
use super::earlier::{EarlierRequest, moves_before, read_inspected};
use super::inspector::calls::{call_of, cause_of, first_tab, prompt_call};
use super::inspector::{InspectTarget, Inspector, Tab};
use super::layout::{Areas, Pane};
use super::scrubber::TimeTrack;
use super::views::{Jumped, PaneAt};
use super::{InputOutcome, RunPage, copy, layout};
use crate::log::event::{Command, Elapsed, Initiator, Seq};
use crate::log::world::RunState;
use crate::screen::action::Action;
use crate::screen::effect::Effect;
use crate::screen::layout::{Size, hits};
use crate::screen::msg::{Mouse, MouseKind};
use crate::screen::questions::QuestionKey;

impl RunPage {
    /// Handles an action, then updates what the view keeps of the run.
    pub fn on_action(&mut self, action: Action, size: Size) -> InputOutcome {
        let outcome = self.act(action, size);
        self.views.refresh(&self.run);
        outcome
    }

    fn act(&mut self, action: Action, size: Size) -> InputOutcome {
        if let Some(outcome) = self.list.on_filter_action(action, self.run.log()) {
            return outcome;
        }
        match action {
            Action::PauseResume if self.is_scrubbed() => self.back_to_live(),
            Action::PauseResume => pause_or_resume(&self.run),
            Action::Step => step(&self.run, Command::Step),
            Action::StepRound => step(&self.run, Command::StepRound),
            Action::Breakpoint => toggle_breakpoint(&self.run),
            Action::ScrubBack => self.scrub(-1, size),
            Action::ScrubForward => self.scrub(1, size),
            Action::MarkBack => match mark_before(&self.run, self.shown_event_count()) {
                Some(place) => self.seek(place, size),
                None => InputOutcome::Say("There is no mark before this moment.".to_owned()),
            },
            Action::MarkForward => match mark_after(&self.run, self.shown_event_count()) {
                Some(place) => self.seek(place, size),
                None if self.is_scrubbed() => self.back_to_live(),
                None => InputOutcome::Say("There is no mark after this moment.".to_owned()),
            },
            Action::EventLevel => {
                self.views.panes.focus_on(Pane::Events);
                self.list.switch_level(self.run.log());
                InputOutcome::redraw()
            }
            Action::More
            | Action::Less
            | Action::BreakerTrip
            | Action::BreakerHold
            | Action::BreakerReset
            | Action::BreakerDisable => self.views.change_run(&self.run, action),
            Action::Copy => copy::copy(self),
            Action::CopyMarkdown => copy::copy_markdown(self),
            Action::Raw => copy::page_raw(self),
            Action::Export => copy::export(&self.run),
            _ if self.inspector.is_some() => self.on_inspector_action(action, size),
            Action::Inspect => {
                if let Some(id) = self.views.shown().question(&self.run, self.focus()) {
                    let run = self.run.id().clone();
                    return InputOutcome::OpenCard(QuestionKey { run, id });
                }
                match self.target() {
                    Some(target) => {
                        self.inspect(target, first_tab(&self.run, target));
                        InputOutcome::redraw()
                    }
                    None => InputOutcome::Handled { redraw: false },
                }
            }
            Action::Prompt => {
                let target = self
                    .target()
                    .filter(|target| call_of(&self.run, *target).is_some())
                    .or_else(|| self.views.subject_call(&self.run).map(InspectTarget::Call));
                let target = match target.and_then(|target| call_of(&self.run, target)) {
                    Some(call) if prompt_call(&self.run, call) != call => {
                        Some(InspectTarget::Call(prompt_call(&self.run, call)))
                    }
                    _ => target,
                };
                match target {
                    Some(target) => {
                        self.inspect(target, Tab::Prompt);
                        read_inspected(&self.run, target)
                    }
                    None => InputOutcome::Handled { redraw: false },
                }
            }
            Action::Cause if self.views.panes.focus != Pane::Events => self.jump(size),
            Action::Cause => self.show_cause(size),
            Action::Filter => {
                self.views.panes.focus_on(Pane::Events);
                self.list.type_filter();
                InputOutcome::redraw()
            }
            Action::Tools => self.views.toggle_tools(),
            Action::Zoom => {
                self.views.panes.zoom = !self.views.panes.zoom;
                InputOutcome::redraw()
            }
            Action::NextPane => self.views.focus_on(self.views.panes.focus.next(1)),
            Action::PrevPane => {
                self.views.focus_on(self.views.panes.focus.next(Pane::ALL.len() - 1))
            }
            Action::Pane(number) => match Pane::from_number(number) {
                Some(pane) => self.views.focus_on(pane),
                None => InputOutcome::Handled { redraw: false },
            },
            Action::Cancel => self.cancel_view_state(),
            Action::Bottom if self.is_scrubbed() => self.back_to_live(),
            Action::Up
            | Action::Down
            | Action::Left
            | Action::Right
            | Action::Top
            | Action::Bottom
            | Action::PageUp
            | Action::PageDown => self.move_in_pane(action, &self.areas_in(size)),
            _ => InputOutcome::Ignored,
        }
    }

    /// Jumps from the selection to its source: within the view, else to the event that caused it.
    fn jump(&mut self, size: Size) -> InputOutcome {
        let focus = self.views.panes.focus;
        match self.views.shown_mut().on_cause(&self.run, focus) {
            Jumped::To(pane) => {
                self.views.panes.focus_on(pane);
                InputOutcome::redraw()
            }
            Jumped::Nowhere(why) => InputOutcome::Say(why.to_owned()),
            Jumped::Elsewhere => self.show_cause(size),
        }
    }

    /// Moves the playhead by this many events.
    fn scrub(&mut self, by: isize, size: Size) -> InputOutcome {
        let facts = self.shown_event_count().saturating_add_signed(by);
        self.seek(facts, size)
    }

    /// Puts the playhead after the first `facts` events; after the last one the view is live again.
    pub(crate) fn seek(&mut self, facts: usize, size: Size) -> InputOutcome {
        let facts = facts.max(1);
        if facts <= self.run.log().dropped_count() && self.run.earlier.is_stored() {
            return InputOutcome::Earlier(EarlierRequest::Playhead(facts));
        }
        let facts = facts.max(self.run.log().dropped_count() + 1);
        if facts >= self.run.log().len() {
            return if self.is_scrubbed() {
                self.back_to_live()
            } else {
                InputOutcome::Handled { redraw: false }
            };
        }
        self.run.seek(facts);
        let height = self.list_height(&self.areas_in(size));
        if !self.list.is_filtered() {
            self.list.select_at_or_before(facts - 1, self.run.log(), self.run.world(), height);
        }
        if self
            .inspector
            .as_ref()
            .is_some_and(|open| matches!(open.target, InspectTarget::Event(_)))
            && let Some(event) = self.run.log().get(facts - 1)
        {
            let tab = self.inspector.as_ref().map_or(Tab::Raw, |open| open.tab);
            self.inspect(InspectTarget::Event(event.seq), tab);
        }
        InputOutcome::redraw()
    }

    /// Puts the playhead at a time of the run.
    fn seek_time(&mut self, at: Elapsed, size: Size) -> InputOutcome {
        self.seek(self.run.log().partition_point(|event| event.at <= at), size)
    }

    fn back_to_live(&mut self) -> InputOutcome {
        self.run.go_live();
        self.list.follow();
        InputOutcome::redraw()
    }

    /// Escape undoes one thing at a time (filter, selection, zoom); it never cancels the run.
    fn cancel_view_state(&mut self) -> InputOutcome {
        if self.list.is_filtered() {
            self.list.drop_filter(self.run.log());
        } else if self.views.tools.is_open {
            self.views.tools.is_open = false;
            self.views.tools.let_tool_go();
        } else if self.views.let_selection_go() {
            // Every pane follows the run again.
        } else if self.views.panes.zoom {
            self.views.panes.zoom = false;
        } else if self.views.own_view_mut().reset_scroll() {
            // The text is followed again.
        } else {
            return InputOutcome::Ignored;
        }
        InputOutcome::redraw()
    }

    /// Height of the list of events in rows, at least 1.
    pub(super) fn list_height(&self, areas: &Areas) -> usize {
        let area = areas.pane(Pane::Events).map(|area| self.list_area(area));
        area.map_or(1, |area| usize::from(area.height)).max(1)
    }

    fn move_in_pane(&mut self, action: Action, areas: &Areas) -> InputOutcome {
        let pane = self.views.panes.focus;
        if pane == Pane::Events {
            let height = self.list_height(areas);
            if self.run.earlier.is_stored()
                && let Some(place) = moves_before(&self.list, action, self.run.log(), height)
            {
                return InputOutcome::Earlier(EarlierRequest::Event(Seq(place as u64)));
            }
            self.list.on_move(action, self.run.log(), height);
        } else {
            self.views.shown_mut().on_move(&self.run, PaneAt { pane, areas }, action);
        }
        InputOutcome::redraw()
    }

    /// Opens the inspector, or points it at another target.
    fn inspect(&mut self, target: InspectTarget, tab: Tab) {
        self.inspector = Some(Inspector::of_target(&self.run, target, tab));
    }

    /// The target that Enter inspects.
    pub(crate) fn target(&self) -> Option<InspectTarget> {
        if self.focus() == Pane::Events {
            let place = self.list.selected(self.run.log())?;
            return self.log().get(place).map(|event| InspectTarget::Event(event.seq));
        }
        if let Some(target) = self.views.shown().target(&self.run, self.views.panes.focus) {
            return Some(target);
        }
        self.shown_event_count()
            .checked_sub(1)
            .and_then(|last| self.log().get(last))
            .map(|event| InspectTarget::Event(event.seq))
    }

    /// The event that caused this target, which the log still has.
    fn kept_cause(&self, target: InspectTarget) -> Result<Seq, InputOutcome> {
        match cause_of(&self.run, target) {
            Some(seq) if self.is_dropped(seq) && self.run.earlier.is_stored() => {
                Err(InputOutcome::Earlier(EarlierRequest::Event(seq)))
            }
            Some(seq) if self.is_dropped(seq) => Err(InputOutcome::Say(self.dropped_notice())),
            Some(seq) => Ok(seq),
            None => Err(report_no_cause(&self.run, target)),
        }
    }

    /// Selects the event that caused the selected target.
    fn show_cause(&mut self, size: Size) -> InputOutcome {
        let Some(target) = self.target() else { return InputOutcome::Handled { redraw: false } };
        let seq = match self.kept_cause(target) {
            Ok(seq) => seq,
            Err(why) => return why,
        };
        self.views.panes.focus_on(Pane::Events);
        let height = self.list_height(&self.areas_in(size));
        self.list.select(self.run.place(seq), self.run.log(), height);
        InputOutcome::redraw()
    }

    fn on_inspector_action(&mut self, action: Action, size: Size) -> InputOutcome {
        let page = super::layout::page(size);
        let area = super::layout::inspector(page).text;
        let Some(inspector) = &mut self.inspector else { return InputOutcome::Ignored };
        let far = isize::from(i16::try_from(area.height.saturating_sub(1).max(1)).unwrap_or(1));
        match action {
            Action::Cancel | Action::Back => {
                self.inspector = None;
                return InputOutcome::redraw();
            }
            Action::Up => inspector.step(-1, area.width, area.height),
            Action::Down => inspector.step(1, area.width, area.height),
            Action::PageUp => inspector.step(-far, area.width, area.height),
            Action::PageDown => inspector.step(far, area.width, area.height),
            Action::Top => inspector.show_start(),
            Action::Bottom => inspector.show_end(area.width, area.height),
            Action::NextPane | Action::Right => inspector.next_tab(1),
            Action::PrevPane | Action::Left => inspector.next_tab(Tab::ALL.len() - 1),
            Action::Prompt => inspector.open(Tab::Prompt),
            Action::Pane(number) => {
                let tab = usize::from(number).checked_sub(1).and_then(|at| Tab::ALL.get(at));
                match tab {
                    Some(tab) => inspector.open(*tab),
                    None => return InputOutcome::Handled { redraw: false },
                }
            }
            Action::Cause => {
                let target = inspector.target;
                let seq = match self.kept_cause(target) {
                    Ok(seq) => seq,
                    Err(why) => return why,
                };
                let target = InspectTarget::Event(seq);
                self.inspect(target, first_tab(&self.run, target));
                let height = self.list_height(&self.areas_in(size));
                self.list.select(self.place(seq), self.run.log(), height);
                return InputOutcome::redraw();
            }
            Action::Zoom => return InputOutcome::Handled { redraw: false },
            _ => return InputOutcome::Ignored,
        }
        self.refresh_inspector();
        InputOutcome::redraw()
    }
}

/// Answers a jump to a cause that is not there; says so if its event was dropped.
fn report_no_cause(run: &RunData, target: InspectTarget) -> InputOutcome {
    match run.is_target_dropped(target) {
        true => InputOutcome::Say(run.dropped_notice()),
        false => InputOutcome::Handled { redraw: false },
    }
}

/// Sends a command to a run that has not ended.
pub(crate) fn send_command(run: &RunData, command: Command) -> InputOutcome {
    if !run.world().progress.is_live() {
        return InputOutcome::Handled { redraw: false };
    }
    InputOutcome::Emit(vec![Effect::Command { run: run.id().clone(), command }])
}

/// Runs to the next boundary or round; a run that is pausing already stays so.
fn step(run: &RunData, command: Command) -> InputOutcome {
    match run.world().progress.stage {
        RunState::Pausing { .. } => InputOutcome::Say(
            "It pauses at the next boundary already; a step starts there.".to_owned(),
        ),
        _ => send_command(run, command),
    }
}

fn pause_or_resume(run: &RunData) -> InputOutcome {
    let command = match run.world().progress.stage {
        RunState::Paused { .. } | RunState::Pausing { .. } => {
            Command::Resume { by: Initiator::You }
        }
        RunState::Empty | RunState::Running | RunState::Closed => {
            Command::Pause { by: Initiator::You }
        }
    };
    send_command(run, command)
}

/// Sets or clears a breakpoint at the boundary that comes next.
fn toggle_breakpoint(run: &RunData) -> InputOutcome {
    let pattern = run.world().projection();
    match pattern.map(|pattern| pattern.next_breakpoint(run.world())) {
        Some(Ok(at)) => {
            let set = !run.world().settings.breakpoints.contains(&at);
            send_command(run, Command::Break { at, set })
        }
        Some(Err(_)) | None => InputOutcome::Ignored,
    }
}

/// The number of events up to the last mark that is before the first `events`.
fn mark_before(run: &RunData, events: usize) -> Option<usize> {
    events_to_marks(run).rev().find(|place| *place < events)
}

/// The number of events up to the first mark after the first `events`.
fn mark_after(run: &RunData, events: usize) -> Option<usize> {
    events_to_marks(run).find(|place| *place > events)
}

/// The number of events up to each mark, its own event included.
fn events_to_marks(run: &RunData) -> impl DoubleEndedIterator<Item = usize> {
    run.world.over_time.marks.iter().map(|mark| run.log.place(mark.seq) + 1)
}

/// Rows that one notch of the wheel scrolls.
const WHEEL: isize = 3;

impl RunPage {
    /// Handles a mouse event.
    ///
    /// `now` is the time since the start of the program.
    pub fn on_mouse(&mut self, mouse: Mouse, size: Size, now: Duration) -> InputOutcome {
        let outcome = self.take_mouse(mouse, size, now);
        self.views.refresh(&self.run);
        outcome
    }

    fn take_mouse(&mut self, mouse: Mouse, size: Size, now: Duration) -> InputOutcome {
        let Mouse { kind: what, col, row } = mouse;
        if let Some(inspector) = &mut self.inspector {
            return inspector.on_mouse(&self.run, mouse, size);
        }
        let areas = self.areas_in(size);
        match what {
            MouseKind::Up => {
                self.views.panes.dragging = false;
                InputOutcome::Handled { redraw: false }
            }
            MouseKind::Drag if self.views.panes.dragging => self.scrub_to(col, size, now),
            MouseKind::Drag => InputOutcome::Handled { redraw: false },
            MouseKind::Down if hits(areas.scrubber, col, row) => {
                self.views.panes.dragging = true;
                self.scrub_to(col, size, now)
            }
            MouseKind::Down if hits(areas.tabs, col, row) => {
                match layout::tab_at(areas.tabs, self.views.tabs(&self.run), col) {
                    Some(pane) => {
                        self.views.panes.focus_on(pane);
                        InputOutcome::redraw()
                    }
                    None => InputOutcome::Handled { redraw: false },
                }
            }
            MouseKind::Down => match areas.pane_at(col, row) {
                Some(pane) => {
                    self.views.panes.focus_on(pane);
                    self.click_in(pane, col, row, size);
                    InputOutcome::redraw()
                }
                None => InputOutcome::Handled { redraw: false },
            },
            MouseKind::WheelUp | MouseKind::WheelDown => {
                let by = if what == MouseKind::WheelUp { -WHEEL } else { WHEEL };
                match areas.pane_at(col, row) {
                    Some(Pane::Events) => {
                        let height = self.list_height(&areas);
                        self.list.scroll(by, self.run.log(), height);
                    }
                    Some(pane) => {
                        let view = self.views.shown_mut();
                        if !view.on_wheel(&self.run, PaneAt { pane, areas: &areas }, by) {
                            return InputOutcome::Handled { redraw: false };
                        }
                    }
                    None => return InputOutcome::Handled { redraw: false },
                }
                InputOutcome::redraw()
            }
        }
    }

    /// Moves the playhead to the clicked place of the scrubber.
    fn scrub_to(&mut self, col: u16, size: Size, now: Duration) -> InputOutcome {
        let line = layout::scrubber_line(self.areas_in(size).scrubber);
        if line.width == 0 {
            return InputOutcome::Handled { redraw: false };
        }
        let col = col.clamp(line.left(), line.right() - 1) - line.left();
        if col + 1 == line.width {
            return self.seek(usize::MAX, size);
        }
        // The end of the clicked column, so that everything in it has happened.
        let at = TimeTrack::new(&self.run, self.head_time(now), line).column_end(col);
        self.seek_time(at, size)
    }

    fn click_in(&mut self, pane: Pane, col: u16, row: u16, size: Size) {
        let areas = self.areas_in(size);
        let Some(area) = areas.pane(pane).filter(|area| hits(*area, col, row)) else {
            return;
        };
        if pane != Pane::Events {
            let view = self.views.shown_mut();
            return view.on_click(&self.run, PaneAt { pane, areas: &areas }, col, row);
        }
        let height = self.list_height(&areas);
        let rows = self.list.window(self.run.log(), height);
        let line = row.checked_sub(self.list_area(area).y).map(usize::from);
        if let Some(line) = line.filter(|line| *line < rows.len())
            && let Some(place) = self.list.place(rows.start + line)
        {
            self.list.select(place, self.run.log(), height);
        }
    }
}

impl Inspector {
    /// Handles a mouse event over the inspector.
    fn on_mouse(&mut self, run: &RunData, mouse: Mouse, size: Size) -> InputOutcome {
        let parts = layout::inspector(layout::page(size));
        let area = parts.text;
        match mouse.kind {
            MouseKind::WheelUp => self.step(-WHEEL, area.width, area.height),
            MouseKind::WheelDown => self.step(WHEEL, area.width, area.height),
            MouseKind::Down if hits(parts.tabs, mouse.col, mouse.row) => {
                match layout::inspector_tab_at(parts.tabs, self.callee, mouse.col) {
                    Some(tab) => self.open(tab),
                    None => return InputOutcome::Handled { redraw: false },
                }
                self.refresh(run);
            }
            MouseKind::Down | MouseKind::Drag | MouseKind::Up => {
                return InputOutcome::Handled { redraw: false };
            }
        }
        InputOutcome::redraw()
    }
}
