//! Actions in the message box: a message is sent at once or when the run ends, and kept as a draft.

use super::action::Action;
use super::effect::{FollowUp, LaunchRequest, RunBeginning, Update};
use super::launch::start;
use super::message::{DraftOrigin, MessageBox, suggestion};
use super::notice::NoticeKind;
use super::overlay::Overlay;
use super::run::{NextMessage, RunPage};
use super::state::{ActiveScreen, AppState};
use crate::app::keys_in_use::key_of;
use crate::base::name::FlagName;
use crate::event::RunId;
use crate::event::world::Projection;

/// The latest run of a run's session, which the next message continues.
fn latest_run(state: &AppState, run: &RunId) -> RunId {
    let mut latest = run;
    for _ in &state.runs {
        let after = |page: &&RunPage| {
            let session = page.world().projection().and_then(Projection::session);
            session.is_some_and(|session| session.previous_run.as_ref() == Some(latest))
        };
        match state.runs.iter().rev().find(after) {
            Some(page) => latest = page.id(),
            None => break,
        }
    }
    latest.clone()
}

/// Goes to the latest run of this session, so that no session forks silently. A draft for the
/// earlier run moves with it.
fn show_latest_run(state: &mut AppState) {
    let Some(page) = state.visible_run() else { return };
    let here = page.id().clone();
    let last = latest_run(state, &here);
    if last == here {
        return;
    }
    if let Some(NextMessage::Draft(text)) =
        state.run_mut(&here).map(|page| page.data_mut().replace_message(NextMessage::None))
        && let Some(page) = state.run_mut(&last)
        && *page.next_message() == NextMessage::None
    {
        page.data_mut().replace_message(NextMessage::Draft(text));
    }
    let said = format!("{here} has a later run: the session continues from {last}.");
    state.screen = ActiveScreen::Run(last);
    state.notify(NoticeKind::Info, said);
}

/// Opens the message box over the run on the screen.
pub(super) fn open(state: &mut AppState) -> Update {
    show_latest_run(state);
    let Some(page) = state.visible_run() else { return Update::idle() };
    let why = match MessageBox::for_page(page) {
        Some(message) if page.launch().is_some() => {
            state.overlays.push(Overlay::Message(Box::new(message)));
            return Update::redraw();
        }
        Some(_) => "This run's settings are not known",
        None => "Only teams and swarms take follow-ups",
    };
    let why = format!("{why}: {} starts a new run.", key_of(Action::NewRun));
    state.notify(NoticeKind::Info, why);
    Update::redraw()
}

/// Handles an action in the box.
pub(super) fn on_action(state: &mut AppState, action: Action) -> Update {
    match action {
        Action::Send => send(state),
        Action::Clear => {
            if let Some(Overlay::Message(message)) = state.overlays.last_mut() {
                message.clear();
            }
            Update::redraw()
        }
        Action::Cancel => close(state),
        _ => Update::idle(),
    }
}

/// Closes the box; a text that was typed is kept until the program ends.
fn close(state: &mut AppState) -> Update {
    let Some(Overlay::Message(message)) = state.overlays.pop() else { return Update::redraw() };
    // A suggestion or a queued message stays as it is.
    if message.is_untouched() {
        return Update::redraw();
    }
    let text = message.text.text();
    let waited = message.from == DraftOrigin::Queued;
    let Some(page) = state.run_mut(&message.run) else { return Update::redraw() };
    let mine = !text.trim().is_empty() && suggestion(page, message.number).as_ref() != Some(&text);
    let said = match (mine, waited) {
        (false, true) => return Update::redraw(),
        (true, true) => "No longer queued: kept as a draft.",
        (true, false) => "Draft kept, not sent.",
        (false, false) => {
            page.data_mut().replace_message(NextMessage::None);
            return Update::redraw();
        }
    };
    page.data_mut().replace_message(NextMessage::Draft(text));
    let said = format!("{said} Press {} to edit it.", key_of(Action::Message));
    state.notify(NoticeKind::Info, said);
    Update::redraw()
}

fn send(state: &mut AppState) -> Update {
    let Some(Overlay::Message(message)) = state.overlays.last() else { return Update::idle() };
    // A later run of the session may have begun since the box was opened.
    let run = latest_run(state, &message.run);
    let text = message.text.text().trim().to_owned();
    let Some(page) = state.run_mut(&run) else {
        state.overlays.pop();
        return Update::redraw();
    };
    if text.is_empty() {
        let said = match page.data_mut().replace_message(NextMessage::None) {
            NextMessage::Waiting(_) => {
                state.overlays.pop();
                "The queued message was withdrawn."
            }
            before => {
                page.data_mut().replace_message(before);
                "Nothing to send: type a message, or press Esc."
            }
        };
        state.notify(NoticeKind::Info, said);
        return Update::redraw();
    }
    if page.world().progress.is_live() {
        page.data_mut().replace_message(NextMessage::Waiting(text.into()));
        state.overlays.pop();
        let key = key_of(Action::Message);
        let said = format!("Queued: sent when this run ends. Press {key} to edit it.");
        state.notify(NoticeKind::Info, said);
        return Update::redraw();
    }
    let request = follow_up_request(page, &text);
    page.data_mut().replace_message(NextMessage::None);
    state.overlays.pop();
    launch(state, request)
}

fn launch(state: &mut AppState, request: Option<LaunchRequest>) -> Update {
    let id = state.next_request();
    match request {
        Some(request) => start(state, LaunchRequest { id, ..request }),
        None => Update::redraw(),
    }
}

/// A run has ended: sends its queued message, unless the run failed.
pub(super) fn on_run_end(state: &mut AppState, run: &RunId) -> Option<Update> {
    let page = state.run_mut(run)?;
    let NextMessage::Waiting(text) = page.next_message().clone() else { return None };
    let reason = page.world().progress.closed.as_ref().map(|closed| closed.reason.clone())?;
    if !reason.is_success() {
        page.data_mut().replace_message(NextMessage::Draft(text.to_string()));
        let (why, key) = (reason.phrase(), key_of(Action::Message));
        let said = format!("Not sent, since the run ended: {why}. Press {key} for the draft.");
        state.notify(NoticeKind::Info, said);
        return Some(Update::redraw());
    }
    if let Some(at) = state.overlays.iter().position(|it| is_message_box_of(it, run)) {
        if let Some(Overlay::Message(message)) = state.overlays.get_mut(at)
            && message.text.text().trim() != text.trim()
        {
            // It is being edited: the operator sends it when it is ready.
            message.from = DraftOrigin::Draft;
            let page = state.run_mut(run)?;
            page.data_mut().replace_message(NextMessage::Draft(text.to_string()));
            let key = key_of(Action::Send);
            let said = format!("The run has ended: press {key} to send the message.");
            state.notify(NoticeKind::Info, said);
            return Some(Update::redraw());
        }
        state.overlays.remove(at);
    }
    let page = state.run_mut(run)?;
    let request = follow_up_request(page, &text);
    page.data_mut().replace_message(NextMessage::None);
    let watched = state.screen == ActiveScreen::Run(run.clone()) && state.overlays.is_empty();
    let update = launch(state, request);
    if !watched && let Some(starting) = state.starting.last_mut() {
        starting.open = false;
    }
    Some(update)
}

fn is_message_box_of(overlay: &Overlay, run: &RunId) -> bool {
    matches!(overlay, Overlay::Message(message) if message.run == *run)
}

/// The number of typed messages that were not sent; they are lost when the program ends.
pub(super) fn unsent_count(state: &AppState) -> usize {
    let open = |run: &RunId| {
        state.overlays.iter().any(|it| match it {
            Overlay::Message(message) if message.run == *run => {
                message.text.changed() && !message.text.text().trim().is_empty()
            }
            _ => false,
        })
    };
    let unsent = |page: &&RunPage| *page.next_message() != NextMessage::None || open(page.id());
    state.runs.iter().filter(unsent).count()
}

/// The request for the run that answers a message: as before, with the current flags.
fn follow_up_request(page: &RunPage, text: &str) -> Option<LaunchRequest> {
    let before = page.launch()?;
    let flags = page.world().settings.flags.iter();
    let flags: Vec<(FlagName, bool)> = flags.map(|flag| (flag.name.clone(), flag.on)).collect();
    let begins = RunBeginning::FollowUp(FollowUp { run: page.id().clone(), text: text.into() });
    Some(LaunchRequest { flags, begins, ..before.clone() })
}
