//! The tour: six keys, each explained in a running scenario. A step is done when the state of the run or of the
//! screen has changed as its key changes it, in whatever way that came about; a key press alone does not count.
//! If the operator does something else meanwhile, the step says where the screen is and how to get back.

use std::sync::Arc;

use super::action::Action;
use super::chrome::waits;
use super::effect::{LaunchRequest, RequestId, RunBeginning, Update};
use super::keymap::{Context, key_of};
use super::notice::NoticeKind;
use super::run::RunPage;
use super::state::{ActiveScreen, AppState};
use super::windows::Overlay;
use crate::log::event::{BoundaryId, Event, EventKind, Initiator, RunId};
use crate::log::world::RunState;
use crate::scenario::catalogue::RequestedModel;
use crate::scenario::{self, Override, Scenario};

/// How many events back the playhead has to be: so many that the panes differ.
const BACK: usize = 3;
/// The shipped scenario of the tour.
const SCENARIO: &str = "checkout-launch";
/// Its flag.
const FLAG: &str = "legal_analyst";
/// How long each scripted reply takes: time to read a step, and not long to wait for a pause.
const REPLY_TIME: &str = "4s..6s";
/// Where the run pauses by itself, so that it does not end while the tour waits.
const STOPS: [&str; 3] = ["round:2", "round:3", "finalize"];

/// What a step waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TourStep {
    /// The operator has paused the run.
    Pause,
    Step,
    /// The flag is switched, or will be at the next boundary.
    Flag,
    /// The inspector is open.
    Inspect,
    /// The playhead is some events back.
    Scrub,
    /// The form of a fork is open.
    Fork,
    /// Nothing more: every step is done.
    Done,
}

impl TourStep {
    /// The steps in their order.
    const ALL: [Self; 6] =
        [Self::Pause, Self::Step, Self::Flag, Self::Inspect, Self::Scrub, Self::Fork];

    fn next(self) -> Self {
        let after = Self::ALL.iter().position(|step| *step == self).map(|at| at + 1);
        after.and_then(|at| Self::ALL.get(at)).copied().unwrap_or(Self::Done)
    }

    /// `Tour 2/6`, or that it is over.
    fn label(self) -> String {
        self.place().map_or_else(|| "Tour done".to_owned(), |place| format!("Tour {place}"))
    }

    /// Where it is among the steps: `2/6`.
    fn place(self) -> Option<String> {
        let at = Self::ALL.iter().position(|step| *step == self)?;
        Some(format!("{}/{}", at + 1, Self::ALL.len()))
    }

    /// What its key does.
    pub(super) fn action(self) -> Option<Action> {
        Some(match self {
            Self::Pause => Action::PauseResume,
            Self::Step => Action::Step,
            Self::Flag => Action::Flags,
            Self::Inspect => Action::Inspect,
            Self::Scrub => Action::ScrubBack,
            Self::Fork => Action::Fork,
            Self::Done => return None,
        })
    }

    /// Whether its key needs a run that has not ended.
    fn needs_live_run(self) -> bool {
        matches!(self, Self::Pause | Self::Step | Self::Flag)
    }
}

/// A tour that has not ended.
#[derive(Clone, Debug)]
pub struct Tour {
    request: RequestId,
    /// Its run; `None` until it has started.
    run: Option<RunId>,
    step: TourStep,
    /// Whether the operator has paused the run, or let it go one step, since the present step began.
    has_paused: bool,
    has_stepped: bool,
}

impl Tour {
    pub fn step(&self) -> TourStep {
        self.step
    }

    /// Whether this is its run, which is not kept.
    pub(super) fn has_run(&self, run: &RunId) -> bool {
        self.run.as_ref() == Some(run)
    }

    /// Its run has started.
    pub(super) fn on_started(&mut self, request: RequestId, run: &RunId) {
        if self.request == request {
            self.run = Some(run.clone());
        }
    }

    /// Whether its run was to be started by this request.
    pub(super) fn is_of(&self, request: RequestId) -> bool {
        self.run.is_none() && self.request == request
    }

    /// Notes what the operator did to its run.
    pub(super) fn note(&mut self, run: &RunId, events: &[Arc<Event>]) {
        if self.run.as_ref() != Some(run) {
            return;
        }
        for event in events {
            match &event.kind {
                EventKind::Pausing { by: Initiator::You, .. } => self.has_paused = true,
                // If the run had paused by itself, the key was used: the next pause counts.
                EventKind::Resumed { by: Initiator::You, .. } => {
                    self.has_paused = self.step == TourStep::Pause;
                }
                EventKind::Resumed { .. } => self.has_paused = false,
                EventKind::Stepped { .. } => self.has_stepped = true,
                _ => {}
            }
        }
    }
}

/// The boundaries at which the run of the tour pauses by itself.
pub fn breakpoints() -> Vec<BoundaryId> {
    STOPS.into_iter().map(BoundaryId::new).collect()
}

/// The scenario of the tour: a shipped one, slow enough to be watched.
fn tour_scenario() -> Option<Scenario> {
    let shipped = scenario::shipped().iter().find(|shipped| shipped.name == SCENARIO)?;
    let plain = scenario::load(shipped.text, shipped.origin(), &[]).ok()?;
    let slower =
        (0..plain.script.rows.len()).map(|row| format!("script[{row}].latency={REPLY_TIME}"));
    let title = "title=Tour: go or no-go on Checkout v2".to_owned();
    let limit = "budget.max_seconds=600".to_owned();
    let set: Result<Vec<Override>, _> =
        slower.chain([title, limit]).map(|set| set.parse::<Override>()).collect();
    scenario::load(shipped.text, shipped.origin(), &set.ok()?).ok()
}

/// Begins the tour; its run has to be started with the result. `None`: its scenario cannot be read.
pub fn begin(state: &mut AppState) -> Option<LaunchRequest> {
    let scenario = Arc::new(tour_scenario()?);
    let request = state.next_request();
    let (has_paused, has_stepped) = (false, false);
    state.tour = Some(Tour { request, run: None, step: TourStep::Pause, has_paused, has_stepped });
    Some(LaunchRequest {
        id: request,
        scenario,
        model: RequestedModel::Scripted { instant: false },
        flags: Vec::new(),
        seed: None,
        begins: RunBeginning::Tour,
    })
}

/// The key of the tour on the first screen: a tour that was left continues where it was, while its run lasts.
pub(super) fn start(state: &mut AppState) -> Update {
    if let Some(left) = state.left_tour.take().filter(|tour| tour.step != TourStep::Done)
        && let Some(run) = left.run.clone().filter(|run| lasts(state, run))
    {
        state.tour = Some(left);
        state.screen = ActiveScreen::Run(run);
        return Update::redraw();
    }
    match begin(state) {
        Some(request) => super::launch::start(state, request),
        None => Update::idle(),
    }
}

/// Esc on the page of a run: leaves the tour, if there is one.
pub(super) fn leave(state: &mut AppState) -> bool {
    let is_on = state.tour.is_some() && state.context() == Context::Run;
    is_on && end(state)
}

fn lasts(state: &AppState, run: &RunId) -> bool {
    state.run(run).is_some_and(|page| page.world().progress.stage != RunState::Closed)
}

/// Ends the tour and says how to continue it.
fn end(state: &mut AppState) -> bool {
    let Some(tour) = state.tour.take() else { return false };
    let lasting = tour.run.as_ref().filter(|run| lasts(state, run));
    let home = if state.screen == ActiveScreen::Home { "" } else { " on home" };
    let text = match (tour.step.place(), lasting.and_then(|run| state.run(run))) {
        (None, _) => {
            let waits =
                |page: &&RunPage| waits(&page.world().progress.stage) && !page.is_scrubbed();
            let continues = state.visible_run().filter(waits).map(|page| {
                let key = key_of(Action::PauseResume);
                format!(" {key} continues {}, to the stops that the tour had.", page.id())
            });
            let help = key_of(Action::Help);
            format!("That was the tour: {help} lists all keys.{}", continues.unwrap_or_default())
        }
        (Some(_), None) => {
            format!("The tour has ended: {}{home} starts it again.", key_of(Action::Tour))
        }
        (Some(place), Some(page)) => {
            let stage = &page.world().progress.stage;
            let run = if waits(stage) { "is paused" } else { "continues" };
            let key = key_of(Action::Tour);
            format!("You left the tour at step {place}: {key}{home} continues it. Its run {run}.")
        }
    };
    state.left_tour = Some(tour);
    state.notify(NoticeKind::Info, text);
    true
}

/// The page of the tour's run, while it is on the screen.
fn page(state: &AppState) -> Option<&RunPage> {
    let run = state.tour.as_ref()?.run.as_ref()?;
    state.visible_run().filter(|page| page.id() == run)
}

/// Follows what has changed: goes to the next step, or ends the tour because its run is no longer on the
/// screen. Returns whether the screen changes.
pub(super) fn follow(state: &mut AppState) -> bool {
    let Some(tour) = &state.tour else { return false };
    if tour.run.is_none() {
        return false;
    }
    if page(state).is_none() {
        return end(state);
    }
    let before = Some(tour.step);
    while is_done(state) {
        let Some(tour) = &mut state.tour else { break };
        tour.step = tour.step.next();
        (tour.has_paused, tour.has_stepped) = (false, false);
    }
    state.tour.as_ref().map(Tour::step) != before
}

/// Whether the present step is done.
fn is_done(state: &AppState) -> bool {
    let (Some(tour), Some(page)) = (&state.tour, page(state)) else { return false };
    let stands = waits(&page.world().progress.stage);
    match tour.step {
        TourStep::Pause => stands && tour.has_paused,
        TourStep::Step => stands && tour.has_stepped,
        TourStep::Flag => flag_is_on(state, page),
        TourStep::Inspect => page.inspector().is_some(),
        // The inspector hides the panes.
        TourStep::Scrub => events_back(page) >= BACK && page.inspector().is_none(),
        TourStep::Fork => fork_is_open(state),
        TourStep::Done => false,
    }
}

/// Whether the flag is on, or will be at the next boundary.
fn flag_is_on(state: &AppState, page: &RunPage) -> bool {
    let flag = FLAG.into();
    let now = page.world().settings.flags.iter().any(|it| it.name == flag && it.on);
    state.pending_flags.pending_position(page.id(), &flag).unwrap_or(now)
}

/// How many events the playhead is before the last one.
fn events_back(page: &RunPage) -> usize {
    page.log().len().saturating_sub(page.shown_event_count())
}

fn fork_is_open(state: &AppState) -> bool {
    matches!(state.overlays.last(), Some(Overlay::Form(form)) if form.fork.is_some())
}

/// What the tour says: a label, two lines in which `{name}` is the key of the action with that name, and a
/// line for where they have no room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TourText {
    pub label: String,
    pub lines: [&'static str; 2],
    pub short: &'static str,
}

/// What the tour says now; `None`: there is no tour.
pub(super) fn text(state: &AppState) -> Option<TourText> {
    let step = state.tour.as_ref()?.step;
    Some(TourText { label: step.label(), lines: lines(state, step), short: short(state, step) })
}

/// The same in one line for a small terminal.
fn short(state: &AppState, step: TourStep) -> &'static str {
    match (state.overlays.last(), page(state), step) {
        (Some(Overlay::Flags(_)), _, TourStep::Flag) => "{switch} switches legal_analyst on.",
        (Some(Overlay::Form(_)), _, TourStep::Done) => {
            "{start} starts the fork, {close} closes it."
        }
        (Some(_), ..) => "{close} closes this window.",
        (None, Some(page), _) if page.context() == Context::Filter => "{close} ends the filter.",
        (None, Some(page), TourStep::Scrub) if page.inspector().is_some() => {
            "{close} closes the inspector."
        }
        (None, Some(page), TourStep::Pause) if waits(&page.world().progress.stage) => {
            "{pause-or-resume} resumes it, and again pauses it."
        }
        _ => key_line(step),
    }
}

fn lines(state: &AppState, step: TourStep) -> [&'static str; 2] {
    let Some(page) = page(state) else { return ["The run of the tour is starting.", ""] };
    let has_ended = page.world().progress.stage == RunState::Closed;
    match state.overlays.last() {
        _ if has_ended && step.needs_live_run() => [
            "The run has ended, and this step needs one that is open.",
            "{back} goes home; there {tour} starts the tour again.",
        ],
        None if page.context() == Context::Filter => {
            ["Here keys are typed as text: {close} ends the filter. Then:", key_line(step)]
        }
        None => on_page(page, step),
        Some(Overlay::Flags(_)) if step == TourStep::Flag => [
            "{switch} switches legal_analyst on. The note says when it takes effect,",
            "and what it changes then.",
        ],
        Some(Overlay::Flags(_)) if step == TourStep::Inspect && !flag_is_on(state, page) => {
            ["Now it is off again: {switch} switches it on.", "{close} closes the flags."]
        }
        Some(Overlay::Flags(_)) if step == TourStep::Inspect => {
            ["Switched on; the note says when it takes effect.", "{close} closes the flags."]
        }
        Some(Overlay::Form(_)) if step == TourStep::Done && fork_is_open(state) => [
            "Change what you like: {start} starts the fork, {close} closes the form.",
            "That was the last step.",
        ],
        Some(_) if step == TourStep::Done => ["{close} closes this window. That was the tour.", ""],
        Some(_) => ["{close} closes this window. Then:", key_line(step)],
    }
}

/// What the key of a step does, in one line.
fn key_line(step: TourStep) -> &'static str {
    match step {
        TourStep::Pause => "{pause-or-resume} pauses the run.",
        TourStep::Step => "{step} steps to the next boundary.",
        TourStep::Flag => "{flags} opens the flags of the run.",
        TourStep::Inspect => "{inspect} inspects what is selected.",
        TourStep::Scrub => "{playhead-back} goes back in time: press it three times.",
        TourStep::Fork => "{fork} forks the run.",
        TourStep::Done => "{help} lists all keys, {back} goes home.",
    }
}

/// What the step says on the page of its run.
fn on_page(page: &RunPage, step: TourStep) -> [&'static str; 2] {
    let stage = &page.world().progress.stage;
    let is_pausing = matches!(stage, RunState::Pausing { since: None, .. });
    let needs_live = matches!(step, TourStep::Pause | TourStep::Step);
    match step {
        _ if needs_live && page.is_scrubbed() => [
            "The screen shows the past: {last-row} goes back to the present. Then:",
            key_line(step),
        ],
        TourStep::Pause if is_pausing => [
            "Pausing: the seats finish the replies that they have begun.",
            "A run stops only at a boundary, so that nothing is cut off.",
        ],
        TourStep::Pause if waits(stage) => [
            "The run is paused, so that it does not end before the tour.",
            "{pause-or-resume} resumes it. Press it once more to pause it yourself.",
        ],
        TourStep::Pause => [
            "{pause-or-resume} pauses the run: press it while the analysts speak.",
            "The replies are scripted. The stops marked break are the tour's.",
        ],
        TourStep::Step if is_pausing => [
            "The run continues to the next boundary, and pauses there.",
            "A boundary is where a round or a call begins.",
        ],
        TourStep::Step if !waits(stage) => {
            ["The run continues: {pause-or-resume} pauses it again. Then:", key_line(step)]
        }
        TourStep::Step => [
            "{step} steps: the run continues until its next round or call begins.",
            "{step-round} would run to the next round.",
        ],
        TourStep::Flag => [
            "That was one step; {step} again would let the next call begin.",
            "{flags} opens the flags: switches of the scenario, also while it runs.",
        ],
        TourStep::Inspect => [
            "{down} selects a seat, {inspect} inspects it: its prompt, its reply,",
            "the event as it is stored, and how long it took.",
        ],
        TourStep::Scrub if page.inspector().is_some() => [
            "This is the inspector: {next-pane} goes through its tabs.",
            "{close} closes it. The next step is about the past of the run.",
        ],
        TourStep::Scrub => [
            "{playhead-back} goes back in time, by one event: press it three times.",
            "The panes show the run as it was. The run itself does not change.",
        ],
        TourStep::Fork => [
            "{fork} forks the run: a new run from the boundary before this moment,",
            "with other settings. It opens a form, and nothing starts yet.",
        ],
        TourStep::Done => [
            "That was the tour. {help} lists all keys, {commands} finds them by name.",
            "{filter} filters the events, 1 to 5 choose a pane, {back} goes home.",
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_is_read_and_slow() {
        let scenario = tour_scenario().expect("a good scenario");
        assert!(scenario.title.starts_with("Tour: "), "{}", scenario.title);
        let rows = &scenario.script.rows;
        assert!(rows.iter().all(|row| row.latency.min.as_secs() == 4), "{rows:?}");
        assert!(scenario.flags.iter().any(|flag| flag.name.as_str() == FLAG && !flag.default));
    }

    #[test]
    fn six_steps_in_order() {
        let mut step = TourStep::Pause;
        for nth in 1..=6 {
            assert_eq!(step.label(), format!("Tour {nth}/6"));
            step = step.next();
        }
        assert_eq!((step, step.next()), (TourStep::Done, TourStep::Done));
        assert_eq!(step.label(), "Tour done");
    }
}
