//! The keys of a run's page: what each action does.

use super::data::RunData;
use super::earlier::EarlierWish;
use super::inspect::Inspector;
use super::inspect::calls::{call_of, first_tab, prompt_call};
use super::inspect::cause::cause_of;
use super::inspect::target::{InspectTarget, Tab};
use super::layout::{Areas, Pane};
use super::marks::{mark_after, mark_before};
use super::read_back::{moves_before, read_inspected};
use super::run_view::{Jumped, PaneAt};
use super::{InputOutcome, RunPage, controls, copy};
use crate::app::action::Action;
use crate::app::layout::Size;
use crate::event::{Command, Elapsed, Seq};

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
            Action::PauseResume => controls::pause_or_resume(&self.run),
            Action::Step => controls::send(&self.run, Command::Step),
            Action::StepRound => controls::step_round(&self.run),
            Action::Breakpoint => controls::toggle_breakpoint(&self.run),
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

    /// Jumps from the selection to what is behind it: within the view, else to its cause.
    fn jump(&mut self, size: Size) -> InputOutcome {
        let focus = self.views.panes.focus;
        match self.views.shown_mut().on_cause(&self.run, focus) {
            Jumped::To(pane) => {
                self.views.panes.focus_on(pane);
                InputOutcome::redraw()
            }
            Jumped::Nowhere => InputOutcome::Ignored,
            Jumped::Elsewhere => self.show_cause(size),
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
        if facts <= self.run.log().dropped_count() && self.run.earlier.is_stored() {
            return InputOutcome::Earlier(EarlierWish::Playhead(facts));
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
    pub(super) fn seek_time(&mut self, at: Elapsed, size: Size) -> InputOutcome {
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
                return InputOutcome::Earlier(EarlierWish::Event(Seq(place as u64)));
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

    /// What Enter inspects.
    pub(super) fn target(&self) -> Option<InspectTarget> {
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

    /// The event that caused this, which the log still has.
    ///
    /// # Errors
    /// What to say where there is none, or where the log has dropped it.
    fn kept_cause(&self, target: InspectTarget) -> Result<Seq, InputOutcome> {
        match cause_of(&self.run, target) {
            Some(seq) if self.is_dropped(seq) && self.run.earlier.is_stored() => {
                Err(InputOutcome::Earlier(EarlierWish::Event(seq)))
            }
            Some(seq) if self.is_dropped(seq) => Err(InputOutcome::Say(self.dropped_notice())),
            Some(seq) => Ok(seq),
            None => Err(report_no_cause(&self.run, target)),
        }
    }

    /// Selects the event that caused what is selected.
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
