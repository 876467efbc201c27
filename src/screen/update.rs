//! The one place where the dashboard's state changes: a message in, effects out, no I/O.

use std::sync::Arc;
use std::time::Duration;

use super::effect::{Effect, LaunchRequest, Update};
use super::form::LaunchForm;
use super::home::{HomePane, arrange_home, kept, scenarios};
use super::layout::Size;
use super::msg::Msg;
use super::notice::{ACTS_ON_LIVE_RUN, NoticeKind};
use super::run::data::set_zero;
use super::run::origin::KeptRun;
use super::run::{InputOutcome, PageShape, RunPage, earlier, layout};
use super::state::{ActiveScreen, AppState, INTERRUPT_WINDOW, ScreenPlace};
use super::windows::confirm::Confirm;
use super::windows::{Overlay, card, inbox, message};
use super::{by_word, comparison, input, launch, mouse, questions, strip, tour};
use crate::log::event::{Command, Event, EventKind, Initiator, RunId, Seq};
use crate::log::world::run_row::RunStatus;
use crate::screen::effect::RequestId;
use crate::words::verdict::stop_line;

impl From<InputOutcome> for Update {
    fn from(outcome: InputOutcome) -> Self {
        match outcome {
            InputOutcome::Handled { redraw } => Self::when(redraw),
            InputOutcome::Emit(effects) => Self { redraw: true, effects },
            // The caller of `on_action` shows the text as a notice, opens the card, or reads the events.
            InputOutcome::Say(_) | InputOutcome::OpenCard(_) | InputOutcome::Earlier(_) => {
                Self::redraw()
            }
            InputOutcome::Ignored => Self::idle(),
        }
    }
}

/// Applies a message to the state. `now` is the time since the start of the program.
pub fn update(state: &mut AppState, now: Duration, msg: Msg) -> Update {
    state.now = now;
    let gone = state.notices.expire(now) | expire_interrupt(state);
    let before = state.place();
    let is_input = matches!(msg, Msg::Key(_) | Msg::Word(_) | Msg::Mouse(_) | Msg::Paste(_));
    let mut update = match msg {
        Msg::Key(key) => input::on_key(state, key),
        Msg::Word(word) => by_word::on_word(state, *word),
        Msg::Paste(text) => input::on_paste(state, &text),
        Msg::Mouse(mouse) => mouse::on_mouse(state, mouse),
        Msg::Resize { cols, rows } => {
            let terminal = Size { cols, rows };
            let is_new = state.terminal != terminal;
            state.terminal = terminal;
            lay_out(state, terminal);
            Update::when(is_new)
        }
        // Only moving parts of the screen request ticks.
        Msg::Tick => {
            let moves = state.next_tick().is_some();
            if let Some(page) = super::state::visible_run_mut(state) {
                page.on_tick();
            }
            let compared = comparison::follow_live(state);
            Update { redraw: moves || compared.redraw, ..compared }
        }
        Msg::Events { run, events } => on_run_events(state, &run, &events),
        Msg::EventsDropped { run, before } => on_events_dropped(state, &run, before),
        Msg::Session(events) => on_session_events(state, &events),
        Msg::Live { run, span, text } => {
            let shown = state.visible_run().is_some_and(|page| *page.id() == run);
            match state.run_mut(&run) {
                Some(page) => {
                    let outcome: Update = page.set_live(span, text).into();
                    Update { redraw: outcome.redraw && shown, ..outcome }
                }
                None => Update::idle(),
            }
        }
        Msg::Started { request, run, zero, launch } => {
            let asked = state.starting.iter().position(|starting| starting.request == request);
            let open = match asked {
                Some(at) => state.starting.remove(at).open,
                None if request == RequestId::UNASKED => state.shows_ended_run(),
                None => true,
            };
            if let Some(tour) = &mut state.tour {
                tour.on_started(request, &run);
            }
            on_started(state, run, zero, launch, open)
        }
        Msg::Followed { run, zero, launch } => on_followed(state, run, zero, launch),
        Msg::FollowEnded { run, has_ended } => on_follow_ended(state, run, has_ended),
        Msg::Remote { run, remote } => match state.run_mut(&run) {
            Some(page) => {
                page.data_mut().remote = Some(remote);
                Update::redraw()
            }
            None => Update::idle(),
        },
        Msg::Clock(run, zero) => match state.run_mut(&run) {
            Some(page) => {
                set_zero(page.data_mut(), zero);
                Update::redraw()
            }
            None => Update::idle(),
        },
        Msg::StartFailed { request, text } => {
            state.tour.take_if(|tour| tour.is_of(request));
            state.starting.retain(|starting| starting.request != request);
            state.notify(NoticeKind::Error, text);
            Update::redraw()
        }
        Msg::ForkReady { request, fork } => launch::on_fork_ready(state, request, *fork),
        Msg::Compared { request, result } => comparison::on_compared(state, request, result),
        Msg::Untrusted { request, consent } => {
            let mut ask = Confirm::trust(request, consent);
            ask.arrange(state.size);
            state.overlays.push(Overlay::Confirm(ask));
            Update::redraw()
        }
        Msg::EffectFailed { what, text } => {
            state.notify(NoticeKind::Error, format!("{what}: {text}"));
            Update::redraw()
        }
        Msg::Notice(text) => {
            state.notify(NoticeKind::Info, text);
            Update::redraw()
        }
        Msg::Scenarios(scenarios) => scenarios::on_scenarios(state, scenarios),
        Msg::ScenarioWritten(path) => scenarios::on_written(state, &path),
        Msg::LiveFound { form, model, found } => {
            notify_form(state, |it| it.on_live_found(form, model.as_deref(), *found))
        }
        Msg::ModelsListed { form, place, list } => {
            notify_form(state, |it| it.on_models_listed(form, place, list))
        }
        Msg::Kept { rows, wall_ms, change } => kept::on_rows(state, rows, wall_ms, change),
        Msg::Suggested { run, id, answer } => card::on_suggested(state, &run, id, answer),
        Msg::ArgsEdited { run, id, text } => card::on_args_edited(state, &run, id, text),
        Msg::Said { request, found, left } => {
            let is_news = state.history.said.answer(request, found, left);
            if is_news {
                state.history.arrange(&state.runs);
                arrange_home(state);
            }
            Update::when(is_news)
        }
        Msg::OpenKept { row, is_file, wall_ms, request } => {
            let mut kept = KeptRun::new(*row, request, wall_ms, state.now);
            kept.is_file = is_file;
            kept::open_page(state, kept);
            Update::redraw()
        }
        Msg::Opened { run, request, events } => kept::on_events(state, &run, request, &events),
        Msg::OpenedToEnd { run, request, problem } => kept::on_read(state, &run, request, problem),
        Msg::Continued => on_continued(state),
        Msg::Terminate { code } => Update::effect(Effect::Quit { code }),
    };
    update.effects.extend(form_of(state).map(LaunchForm::pending_queries).unwrap_or_default());
    if state.history.said.is_due() {
        let request = state.next_request();
        update.effects.push(state.history.said.ask(request));
    }
    for effect in &update.effects {
        if let Effect::Command { run, command } = effect
            && let Some(page) = state.run_mut(run)
        {
            page.data_mut().record_command(command);
        }
    }
    inbox::settle(state);
    card::settle(state);
    earlier::follow_screen(state, &mut update);
    let is_other_screen = state.place() != before;
    if before == ScreenPlace::HOME && (is_input || is_other_screen) {
        update.redraw |= state.history.interrupted_seen();
    }
    update.redraw |= tour::follow(state);
    strip::follow_first_start(state);
    update.redraw |= strip::settle(state);
    update.redraw |= state.notices.settle(is_other_screen);
    update.redraw |= gone | drop_form_notice(state) | drop_playhead_notice(state);
    update
}

/// The launch form, whether or not another overlay covers it.
fn form_of(state: &mut AppState) -> Option<&mut LaunchForm> {
    state.overlays.iter_mut().find_map(|overlay| match overlay {
        Overlay::Form(form) => Some(&mut **form),
        _ => None,
    })
}

/// Passes news to the launch form; `tell` returns whether it changed the form.
fn notify_form(state: &mut AppState, tell: impl FnOnce(&mut LaunchForm) -> bool) -> Update {
    let size = state.size;
    let Some(form) = form_of(state) else { return Update::idle() };
    let news = tell(form);
    form.arrange(size);
    Update::when(news)
}

/// Drops the notice that a form was not started, once that form has changed or closed.
fn drop_form_notice(state: &mut AppState) -> bool {
    let refused = |overlay: &Overlay| matches!(overlay, Overlay::Form(form) if form.refused);
    !state.overlays.iter().any(refused) && state.notices.remove_kind(NoticeKind::Form)
}

/// Drops the notice about the playhead, once the playhead is back at the live end.
fn drop_playhead_notice(state: &mut AppState) -> bool {
    let scrubbed = state.visible_run().is_some_and(|page| page.is_scrubbed());
    !scrubbed && state.notices.remove_text(ACTS_ON_LIVE_RUN)
}

fn expire_interrupt(state: &mut AppState) -> bool {
    let over =
        state.interrupted_at.is_some_and(|at| state.now.saturating_sub(at) >= INTERRUPT_WINDOW);
    if over {
        state.interrupted_at = None;
    }
    over
}

/// Lays out pages and windows in another size.
pub(super) fn lay_out(state: &mut AppState, size: Size) {
    state.size = size;
    arrange_home(state);
    for overlay in &mut state.overlays {
        overlay.arrange(size);
    }
}

fn on_run_events(state: &mut AppState, run: &RunId, events: &[Arc<Event>]) -> Update {
    state.pending_flags.remove_effective(run, events.iter().map(|event| &**event));
    if let Some(tour) = &mut state.tour {
        tour.note(run, events);
    }
    let shown = match &state.screen {
        ActiveScreen::Home => true,
        ActiveScreen::Run(id) => id == run,
    };
    let size = state.size;
    match state.run_mut(run) {
        Some(page) => {
            page.apply(events);
            let ended = events.iter().any(|it| matches!(it.kind, EventKind::RunClosed(_)));
            // Where not all panes are on the screen, the one with the answer is.
            if ended && page.areas(layout::page(size)).shape != PageShape::Wide {
                page.views.show_answer();
            }
            let compared = state.share_comparison(run);
            let mut update = Update::when((shown || compared) && !events.is_empty());
            if ended && let Some(sent) = message::on_run_end(state, run) {
                update.effects.extend(sent.effects);
                update.redraw = true;
            }
            let asked = questions::follow(state, run, events);
            if asked {
                // Where a card or the inbox is open, its questions have changed.
                update.redraw |= !state.overlays.is_empty() || shown;
                let followed = card::follow(state, run);
                update.redraw |= followed.redraw;
                update.effects.extend(followed.effects);
            }
            // Only now is it known whether it answers a further message, or waits for a person.
            let started = events.iter().any(|it| matches!(it.kind, EventKind::RunStarted(_)));
            if started {
                message::on_run_start(state, run);
            }
            if asked || started {
                state.history.arrange(&state.runs);
                arrange_home(state);
            }
            if ended {
                update.effects.extend(input::list_kept(state));
            }
            let compared = comparison::follow_live(state);
            update.effects.extend(compared.effects);
            update.redraw |= compared.redraw;
            update
        }
        None => Update::idle(),
    }
}

fn on_events_dropped(state: &mut AppState, run: &RunId, before: Seq) -> Update {
    let shown = state.visible_run().is_some_and(|page| page.id() == run);
    let is_stored = state.history.is_known();
    let gone = state.run_mut(run).is_some_and(|page| {
        // The log of a watched run is in its cluster.
        let is_stored = (is_stored && !page.is_of_tour()) || page.is_of_cluster();
        page.data_mut().earlier.set_stored(is_stored);
        page.drop_before(before)
    });
    Update::when(gone && shown)
}

fn on_session_events(state: &mut AppState, events: &[Arc<Event>]) -> Update {
    let mut redraw = false;
    for event in events {
        match &event.kind {
            EventKind::SessionRunDropped { run, events: facts } => {
                let mut is_stored = state.history.is_known();
                if let Some(page) = state.run_mut(run) {
                    is_stored &= !page.is_of_tour();
                    page.data_mut().earlier.set_stored(is_stored);
                    page.drop_log();
                }
                if is_stored {
                    state.removable.push(run.clone());
                    state.remove_stored_pages();
                } else {
                    state.dropped_runs.push((run.clone(), *facts));
                }
                redraw = true;
            }
            // The end of a run is a notice on every other screen.
            EventKind::SessionRunClosed { run, reason } => {
                let elsewhere = match &state.screen {
                    ActiveScreen::Home => false,
                    ActiveScreen::Run(id) => id != run,
                };
                if elsewhere {
                    let page = state.run(run).map(|page| page.world());
                    let said = page.and_then(|world| {
                        Some(stop_line(world, world.progress.closed.as_deref()?))
                    });
                    let said = said.unwrap_or_else(|| reason.phrase().into_owned());
                    state.notify(NoticeKind::Info, format!("{run} has ended: {said}"));
                    redraw = true;
                }
            }
            _ => {}
        }
    }
    Update::when(redraw)
}

fn on_started(
    state: &mut AppState,
    run: RunId,
    zero: Duration,
    launch: Option<Box<LaunchRequest>>,
    open: bool,
) -> Update {
    // A run that continues is no longer read only.
    state.opened.retain(|page| *page.id() != run);
    if state.run(&run).is_none() {
        state.runs.push(RunPage::new(run.clone(), zero));
    }
    if let Some(page) = state.run_mut(&run) {
        page.data_mut().set_launch(launch);
    }
    state.history.arrange(&state.runs);
    state.home.select_run(&run);
    if open {
        state.home.preview_source = HomePane::Runs;
        state.screen = ActiveScreen::Run(run);
    }
    arrange_home(state);
    Update::redraw()
}

/// A run that is played elsewhere is listed like one of this session. If it was interrupted before, its page was
/// another one.
fn on_followed(
    state: &mut AppState,
    run: RunId,
    zero: Duration,
    launch: Option<Box<LaunchRequest>>,
) -> Update {
    state.opened.retain(|page| *page.id() != run);
    state.runs.retain(|page| *page.id() != run);
    let mut page = RunPage::new(run, zero);
    page.data_mut().set_launch(launch);
    state.runs.push(page);
    state.history.arrange(&state.runs);
    arrange_home(state);
    Update::redraw()
}

/// A run that was played elsewhere has ended, or was interrupted with its process. The store has it then; the page
/// that is shown stays, if it is whole.
fn on_follow_ended(state: &mut AppState, run: RunId, has_ended: bool) -> Update {
    let Some(page) = state.runs.iter_mut().find(|page| *page.id() == run) else {
        return Update::idle();
    };
    let is_whole = page.world().progress.closed.is_some();
    if !is_whole && page.is_of_cluster() {
        return Update::idle();
    }
    if is_whole || !has_ended {
        page.data_mut().lose();
    }
    let row = state.history.row(&run).cloned();
    let is_shown = state.visible_run().is_some_and(|page| *page.id() == run);
    if is_whole || has_ended {
        state.removable.push(run);
        state.remove_stored_pages();
        return Update::redraw();
    }
    // The process may have ended before it had sent the end of the run.
    if row.as_ref().is_none_or(|row| !matches!(row.status, RunStatus::Ended(_))) {
        state.notify(NoticeKind::Info, format!("{run} was interrupted: its process has ended."));
    }
    let Some(row) = row else { return Update::redraw() };
    state.runs.retain(|page| *page.id() != run);
    state.history.arrange(&state.runs);
    arrange_home(state);
    match is_shown {
        true => kept::open(state, row),
        false => Update::redraw(),
    }
}

/// Back in the foreground: resumes the runs that were paused for the background.
fn on_continued(state: &mut AppState) -> Update {
    let effects = std::mem::take(&mut state.paused_for_suspend)
        .into_iter()
        .map(|run| Effect::Command { run, command: Command::Resume { by: Initiator::Suspend } })
        .collect();
    Update { redraw: true, effects }
}
