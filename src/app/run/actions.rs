//! The keys of a run's page: what each action does.

use super::inspect::Inspector;
use super::inspect::calls::{call_of, first_tab, prompt_call};
use super::inspect::cause::cause_of;
use super::inspect::target::{InspectTarget, Tab};
use super::layout::{Areas, Pane};
use super::run_view::{Jumped, PaneAt};
use super::{InputOutcome, RunPage};
use crate::app::action::Action;
use crate::app::effect::Effect;
use crate::app::layout::Size;
use crate::event::kind::Initiator;
use crate::event::world::RunState;
use crate::event::{Command, Elapsed};

impl RunPage {
    /// Handles an action, then updates what the view keeps of the run.
    pub fn on_action(&mut self, action: Action, size: Size) -> InputOutcome {
        let outcome = self.act(action, size);
        self.refresh_view();
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
            Action::More
            | Action::Less
            | Action::BreakerTrip
            | Action::BreakerHold
            | Action::BreakerReset
            | Action::BreakerDisable => self.change_run(action),
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
            Action::Cause if self.panes.focus != Pane::Events => self.jump(size),
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

    /// Jumps from the selection to what is behind it: within the view, else to its cause.
    fn jump(&mut self, size: Size) -> InputOutcome {
        let focus = self.panes.focus;
        let (view, run) = self.shown_view_mut();
        match view.on_cause(run, focus) {
            Jumped::To(pane) => {
                self.focus_on(pane);
                InputOutcome::redraw()
            }
            Jumped::Nowhere => InputOutcome::Ignored,
            Jumped::Elsewhere => self.show_cause(size),
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
        if !self.run.world().progress.is_live() {
            return InputOutcome::Handled { redraw: false };
        }
        InputOutcome::Emit(vec![Effect::Command { run: self.run.id().clone(), command }])
    }

    fn pause_or_resume(&self) -> InputOutcome {
        self.send_live_command(match self.run.world().progress.stage {
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
                let set = !self.run.world().settings.breakpoints.contains(&at);
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
            self.tools.let_tool_go();
        } else if self.let_selection_go() {
            // Every pane follows the run again.
        } else if self.panes.zoom {
            self.panes.zoom = false;
        } else if self.view.get_mut(&mut self.tools).reset_scroll() {
            // The text is followed again.
        } else {
            return InputOutcome::Ignored;
        }
        InputOutcome::redraw()
    }

    /// Lets a selected tool go, else what is selected in the run's own view.
    fn let_selection_go(&mut self) -> bool {
        let tool = self.tools.let_tool_go();
        self.view.get_mut(&mut self.tools).clear_selection(tool) || tool
    }

    /// Height of the list of events in rows, at least 1.
    pub(super) fn list_height(&self, areas: &Areas) -> usize {
        let area = areas.pane(Pane::Events).map(|area| self.list_area(area));
        area.map_or(1, |area| usize::from(area.height)).max(1)
    }

    fn move_in_pane(&mut self, action: Action, areas: &Areas) -> InputOutcome {
        let pane = self.panes.focus;
        if pane == Pane::Events {
            self.move_in_list(action, areas);
        } else {
            let (view, run) = self.shown_view_mut();
            view.on_move(run, PaneAt { pane, areas }, action);
        }
        InputOutcome::redraw()
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

    /// Opens the inspector, or points it at another target.
    fn inspect(&mut self, target: InspectTarget, tab: Tab) {
        self.inspector = Some(Inspector::of_target(&self.run, target, tab));
    }

    /// What Enter inspects.
    pub(super) fn target(&self) -> Option<InspectTarget> {
        if self.focus() == Pane::Events {
            let place = self.list.selected(self.run.log())?;
            return self.log().get(place).map(|event| InspectTarget::Event(event.seq));
        }
        if let Some(target) = self.shown_view().target(&self.run, self.panes.focus) {
            return Some(target);
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
