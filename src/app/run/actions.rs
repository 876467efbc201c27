//! The keys of a run's page: what each action does.

use super::inspect::Inspector;
use super::inspect::calls::{call_of, first_tab, prompt_call};
use super::inspect::cause::cause_of;
use super::inspect::target::{InspectTarget, Tab};
use super::layout::{Areas, Pane};
use super::research::JumpResult;
use super::{InputOutcome, RunPage, Selection, View};
use crate::app::action::Action;
use crate::app::effect::Effect;
use crate::app::layout::Size;
use crate::event::command::BreakerOverride;
use crate::event::kind::Initiator;
use crate::event::world::RunState;
use crate::event::{Command, Elapsed};

impl RunPage {
    /// Handles an action, then updates the layout of the research page that is shown.
    pub fn on_action(&mut self, action: Action, size: Size) -> InputOutcome {
        let outcome = self.act(action, size);
        self.refresh_page_layout();
        outcome
    }

    fn act(&mut self, action: Action, size: Size) -> InputOutcome {
        if let Some(outcome) = self.on_filter_action(action) {
            return outcome;
        }
        match action {
            Action::PauseResume if self.is_scrubbed() => self.back_to_live(),
            Action::PauseResume => self.pause_or_resume(),
            Action::Step => self.send_live_command(Command::Step),
            Action::StepRound => self.send_live_command(Command::StepRound),
            Action::Breakpoint => self.toggle_breakpoint(),
            Action::ScrubBack => self.scrub(-1, size),
            Action::ScrubForward => self.scrub(1, size),
            Action::More | Action::Less => self.change_limit(action == Action::More),
            Action::BreakerTrip => self.override_breaker(BreakerOverride::Trip),
            Action::BreakerHold => self.override_breaker(BreakerOverride::Hold),
            Action::BreakerReset => self.override_breaker(BreakerOverride::Reset),
            Action::BreakerDisable => self.override_breaker(BreakerOverride::Disable),
            Action::Copy => self.copy(),
            Action::CopyMarkdown => self.copy_markdown(),
            Action::Raw => self.page_raw(),
            Action::Export => self.export(),
            _ if self.inspector.is_some() => self.on_inspector_action(action, size),
            Action::Inspect => match self.target() {
                Some(target) => {
                    self.inspect(target, first_tab(&self.run, target));
                    InputOutcome::redraw()
                }
                None => InputOutcome::Handled { redraw: false },
            },
            Action::Prompt => {
                let target = self
                    .target()
                    .filter(|target| call_of(&self.run, *target).is_some())
                    .or_else(|| self.subject_call().map(InspectTarget::Call));
                let target = match target.and_then(|target| call_of(&self.run, target)) {
                    Some(call) if prompt_call(&self.run, call) != call => {
                        Some(InspectTarget::Call(prompt_call(&self.run, call)))
                    }
                    _ => target,
                };
                match target {
                    Some(target) => {
                        self.inspect(target, Tab::Prompt);
                        InputOutcome::redraw()
                    }
                    None => InputOutcome::Handled { redraw: false },
                }
            }
            Action::Cause if self.view() == View::Research && self.panes.focus != Pane::Events => {
                match self.jump() {
                    JumpResult::Moved => InputOutcome::redraw(),
                    JumpResult::NoTarget => InputOutcome::Ignored,
                    JumpResult::NoQuote => self.show_cause(size),
                }
            }
            Action::Cause => self.show_cause(size),
            Action::Filter => {
                self.focus_on(Pane::Events);
                self.list.type_filter();
                InputOutcome::redraw()
            }
            Action::Tools => self.toggle_tools(),
            Action::Zoom => {
                self.panes.zoom = !self.panes.zoom;
                InputOutcome::redraw()
            }
            Action::NextPane => self.focus_pane(self.panes.focus.next(1)),
            Action::PrevPane => self.focus_pane(self.panes.focus.next(Pane::ALL.len() - 1)),
            Action::Pane(number) => match Pane::from_number(number) {
                Some(pane) => self.focus_pane(pane),
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

    fn on_filter_action(&mut self, action: Action) -> Option<InputOutcome> {
        self.list.typing.as_ref()?;
        Some(match action {
            Action::Apply => {
                self.list.accept();
                InputOutcome::redraw()
            }
            Action::Cancel => {
                self.list.drop_filter();
                InputOutcome::redraw()
            }
            _ => InputOutcome::Ignored,
        })
    }

    fn send_live_command(&self, command: Command) -> InputOutcome {
        if !self.run.world().is_live() {
            return InputOutcome::Handled { redraw: false };
        }
        InputOutcome::Emit(vec![Effect::Command { run: self.run.id().clone(), command }])
    }

    fn pause_or_resume(&self) -> InputOutcome {
        self.send_live_command(match self.run.world().stage {
            RunState::Paused { .. } | RunState::Pausing { .. } => {
                Command::Resume { by: Initiator::You }
            }
            RunState::Empty | RunState::Running | RunState::Closed => {
                Command::Pause { by: Initiator::You }
            }
        })
    }

    /// Sets or clears a breakpoint at the boundary that comes next.
    fn toggle_breakpoint(&self) -> InputOutcome {
        let pattern = self.run.world().projection();
        match pattern.map(|pattern| pattern.next_breakpoint(self.run.world())) {
            Some(Ok(at)) => {
                let set = !self.run.world().breakpoints.contains(&at);
                self.send_live_command(Command::Break { at, set })
            }
            Some(Err(_)) | None => InputOutcome::Ignored,
        }
    }

    /// Moves the playhead by this many events.
    fn scrub(&mut self, by: isize, size: Size) -> InputOutcome {
        let facts = self.shown_event_count().saturating_add_signed(by);
        self.seek(facts, size)
    }

    /// Puts the playhead after the first `facts` events; after the last one the view is live again.
    pub(super) fn seek(&mut self, facts: usize, size: Size) -> InputOutcome {
        let facts = facts.max(1);
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
            self.list.select(facts - 1, self.run.log(), height);
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
    pub(super) fn seek_time(&mut self, at: Elapsed, size: Size) -> InputOutcome {
        self.seek(self.run.log().partition_point(|event| event.at <= at), size)
    }

    fn back_to_live(&mut self) -> InputOutcome {
        self.run.go_live();
        self.list.follow();
        InputOutcome::redraw()
    }

    fn focus_pane(&mut self, pane: Pane) -> InputOutcome {
        InputOutcome::Handled { redraw: self.panes.focus_on(pane) }
    }

    pub(super) fn focus_on(&mut self, pane: Pane) {
        self.panes.focus_on(pane);
    }

    /// Escape undoes one thing at a time (filter, selection, zoom); it never cancels the run.
    fn cancel_view_state(&mut self) -> InputOutcome {
        if self.list.is_filtered() {
            self.list.drop_filter();
        } else if self.tools.is_open {
            self.tools.is_open = false;
            self.tools.tool = None;
        } else if self.row.is_some() || self.tools.tool.is_some() {
            self.select_row(None);
            self.tools.tool = None;
        } else if self.team.clear_selections() || self.research.clear_selections() {
            // Every pane follows the run again.
        } else if self.selection != Selection::Follow || self.round.is_some() {
            self.select(Selection::Follow);
            self.round = None;
        } else if self.panes.zoom {
            self.panes.zoom = false;
        } else if self.text_scroll.is_some() {
            self.text_scroll = None;
        } else {
            return InputOutcome::Ignored;
        }
        InputOutcome::redraw()
    }

    /// Selects a seat, or follows the run.
    pub(super) fn select(&mut self, selection: Selection) {
        if self.selection != selection {
            self.selection = selection;
            self.text_scroll = None;
        }
    }

    /// Height of the list of events in rows, at least 1.
    pub(super) fn list_height(&self, areas: &Areas) -> usize {
        let area = areas.pane(Pane::Events).map(|area| self.list_area(area));
        area.map_or(1, |area| usize::from(area.height)).max(1)
    }

    fn move_in_pane(&mut self, action: Action, areas: &Areas) -> InputOutcome {
        match (self.panes.focus, self.view()) {
            (Pane::Events, _) => self.move_in_list(action, areas),
            (Pane::Second, View::Collaboration | View::Orchestrator) => {
                self.move_in_words(action, areas);
            }
            (_, View::Team) => self.move_in_team(action, areas),
            (_, View::Research) => self.move_in_research(action, areas),
            (_, face) => self.move_among(face, action, areas),
        }
        InputOutcome::redraw()
    }

    /// Moves the selection of a view.
    fn move_among(&mut self, face: View, action: Action, areas: &Areas) {
        match face {
            View::Collaboration => self.move_among_seats(action),
            View::Orchestrator => self.move_in_waterfall(action, areas),
            View::Team => self.move_in_team(action, areas),
            View::Research => self.move_in_research(action, areas),
            View::Tools => self.move_among_tools(action),
        }
    }

    fn move_in_list(&mut self, action: Action, areas: &Areas) {
        let (log, height) = (self.run.log(), self.list_height(areas));
        let page = isize::try_from(height.saturating_sub(1).max(1)).unwrap_or(1);
        match action {
            Action::Up => self.list.step(-1, log, height),
            Action::Down => self.list.step(1, log, height),
            Action::PageUp => self.list.step(-page, log, height),
            Action::PageDown => self.list.step(page, log, height),
            Action::Top => self.list.select_first(log),
            Action::Bottom => self.list.follow(),
            _ => {}
        }
    }

    fn move_in_words(&mut self, action: Action, areas: &Areas) {
        let page = areas.pane(Pane::Second).map_or(1, |area| isize::from(area.height as i16 / 2));
        match action {
            Action::Up => self.scroll_text(-1, areas),
            Action::Down => self.scroll_text(1, areas),
            Action::PageUp => self.scroll_text(-page.max(1), areas),
            Action::PageDown => self.scroll_text(page.max(1), areas),
            Action::Top => self.scroll_text(isize::MIN / 2, areas),
            Action::Bottom => self.scroll_text(isize::MAX / 2, areas),
            Action::Left => self.move_among(self.view(), Action::Up, areas),
            Action::Right => self.move_among(self.view(), Action::Down, areas),
            _ => {}
        }
    }

    fn move_among_seats(&mut self, action: Action) {
        let Some(table) = self.shown().collaboration() else { return };
        let plan = &*table.plan;
        let seats = plan.sequence.len();
        let last_round = table.current().map_or(0, |round| round.number);
        let mut rows: Vec<Selection> = (0..seats).map(Selection::Seat).collect();
        if table.finalize.is_some() {
            rows.push(Selection::Finalize);
        }
        let at = rows.iter().position(|row| *row == self.selection);
        let first = match self.subject() {
            super::Subject::Seat { seat, .. } => seat,
            _ => 0,
        };
        let last = rows.len().saturating_sub(1);
        let step = |by: isize| match at {
            Some(at) => at.saturating_add_signed(by).min(last),
            // The first step selects what is shown now.
            None => first.min(last),
        };
        let pick = |place: usize| rows.get(place).copied().unwrap_or_default();
        let rounds = self.panes.focus == Pane::Third;
        match action {
            Action::Left | Action::Right if rounds => {
                let from = self.round.unwrap_or(last_round);
                let to = if action == Action::Left { from.saturating_sub(1) } else { from + 1 };
                let to = to.clamp(1, last_round.max(1));
                self.round = (to != last_round).then_some(to);
                self.text_scroll = None;
                if at.is_none() {
                    self.select(pick(step(0)));
                }
            }
            Action::Up | Action::Left => self.select(pick(step(-1))),
            Action::Down | Action::Right => self.select(pick(step(1))),
            Action::Top | Action::PageUp => self.select(pick(0)),
            Action::Bottom | Action::PageDown => self.select(pick(last)),
            _ => {}
        }
    }

    /// Opens the inspector, or points it at another target.
    fn inspect(&mut self, target: InspectTarget, tab: Tab) {
        self.inspector = Some(Inspector::of_target(&self.run, target, tab));
    }

    /// What Enter inspects.
    pub(super) fn target(&self) -> Option<InspectTarget> {
        if self.focus() == super::Pane::Events {
            let place = self.list.selected(self.run.log())?;
            return self.log().get(place).map(|event| InspectTarget::Event(event.seq));
        }
        if self.view() == super::View::Team
            && let Some(target) = self.team_target()
        {
            return Some(target);
        }
        if self.view() == super::View::Research
            && let Some(target) = self.research_target()
        {
            return Some(target);
        }
        let call = match self.view() {
            super::View::Tools => self.latest_call(),
            _ => self.subject_call(),
        };
        if let Some(call) = call {
            return Some(InspectTarget::Call(call));
        }
        self.shown_event_count()
            .checked_sub(1)
            .and_then(|last| self.log().get(last))
            .map(|event| InspectTarget::Event(event.seq))
    }

    /// Selects the event that caused what is selected.
    fn show_cause(&mut self, size: Size) -> InputOutcome {
        let Some(target) = self.target() else { return InputOutcome::Handled { redraw: false } };
        let Some(seq) = cause_of(&self.run, target) else { return self.report_no_cause(target) };
        if self.is_dropped(seq) {
            return InputOutcome::Say(self.dropped_notice());
        }
        self.focus_on(Pane::Events);
        let height = self.list_height(&self.areas_in(size));
        self.list.select(self.run.place(seq), self.run.log(), height);
        InputOutcome::redraw()
    }

    /// Answers a jump to a cause that is not there; says so if its event was dropped.
    fn report_no_cause(&self, target: InspectTarget) -> InputOutcome {
        match self.is_target_dropped(target) {
            true => InputOutcome::Say(self.dropped_notice()),
            false => InputOutcome::Handled { redraw: false },
        }
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
                let Some(seq) = cause_of(&self.run, target) else {
                    return self.report_no_cause(target);
                };
                if self.is_dropped(seq) {
                    return InputOutcome::Say(self.dropped_notice());
                }
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
