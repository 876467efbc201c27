//! The tour and the first start: which state completes a step, and what is said when something else happens.

use std::sync::Arc;

use crate::engine::Schedule;
use crate::log::event::{
    BoundaryId, Elapsed, Event, EventKind, Initiator, RunId, Seq, SpanId, StepSize,
};
use crate::screen::effect::{LaunchRequest, RequestId, RunBeginning};
use crate::screen::state::DisplaySettings;
use crate::screen::tour::{self, TourStep};
use crate::screen::{Effect, Msg};
use crate::support::kept::{history, list};
use crate::support::screen::{Dash, facts, shipped};

const RUN: &str = "r-7f3a";

/// The dashboard in the tour, and the events of its run that are still to come.
struct TourDash {
    dash: Dash,
    events: Vec<Arc<Event>>,
    next: u64,
}

impl TourDash {
    /// Presses the key on the first screen; the run has reached its first replies.
    fn begin(cols: u16, rows: u16) -> Self {
        let dash = Dash::over(cols, rows, shipped(), DisplaySettings::default());
        Self::begin_in(dash)
    }

    fn begin_in(mut dash: Dash) -> Self {
        dash.text("t");
        let launch = dash.launch();
        assert_eq!(launch.begins, RunBeginning::Tour);
        let mut events = facts("checkout-launch", &[], &[], Schedule::default());
        let later = events.split_off(18);
        let (request, zero) = (launch.id, dash.now);
        dash.send(Msg::Started { request, run: RunId::new(RUN), zero, launch: Some(launch) });
        let next = events.len() as u64;
        dash.send(Msg::Events { run: RunId::new(RUN), events });
        Self { dash, events: later, next }
    }

    /// An event of the run that a command has caused.
    fn event(&mut self, kind: EventKind) -> &mut Self {
        let at = self.dash.state.visible_run().map_or(Elapsed(0), |page| page.world().progress.at);
        let event = Event { seq: Seq(self.next), at, span: SpanId::RUN, kind };
        self.next += 1;
        let events = vec![Arc::new(event)];
        self.dash.send(Msg::Events { run: RunId::new(RUN), events });
        self
    }

    fn pausing(&mut self) -> &mut Self {
        self.event(EventKind::Pausing { by: Initiator::You, at_round: false })
    }

    fn paused(&mut self) -> &mut Self {
        self.event(EventKind::Paused { at: vec![BoundaryId::new("round:2")] })
    }

    fn stepped(&mut self) -> &mut Self {
        let (step, boundary) = (StepSize::Boundary, BoundaryId::new("round:2"));
        self.event(EventKind::Stepped { step, boundary, paused_ms: 5 })
    }

    /// The run goes on to its end.
    fn ends(&mut self) -> &mut Self {
        let last = self.events.pop().expect("an end");
        self.event(last.kind.clone())
    }

    fn step(&self) -> Option<TourStep> {
        self.dash.state.tour.as_ref().map(|tour| tour.step())
    }

    fn sees(&self, texts: &[&str]) {
        let screen = self.dash.screen();
        for text in texts {
            assert!(screen.contains(text), "{text}:\n{screen}");
        }
    }

    fn at(step: TourStep) -> Self {
        Self::at_in(step, 120, 36)
    }

    /// Goes on to a step, as its keys and events lead there.
    fn at_in(step: TourStep, cols: u16, rows: u16) -> Self {
        let mut tour = Self::begin(cols, rows);
        while tour.step() != Some(step) {
            let before = tour.step();
            match before.expect("a tour") {
                TourStep::Pause => {
                    tour.dash.press("Space");
                    tour.pausing().paused();
                }
                TourStep::Step => {
                    tour.dash.press("s");
                    tour.stepped().paused();
                }
                TourStep::Flag => {
                    tour.dash.press("f Space Esc");
                }
                TourStep::Inspect => {
                    tour.dash.press("Enter");
                }
                TourStep::Scrub => {
                    tour.dash.press("Esc , , ,");
                }
                TourStep::Fork | TourStep::Done => panic!("{before:?} needs the shell"),
            }
            assert!(tour.step() > before, "{before:?} is done:\n{}", tour.dash.screen());
        }
        tour
    }
}

#[test]
fn step_waits_for_state() {
    let mut tour = TourDash::begin(120, 36);
    tour.sees(&["Tour 1/6", "Space pauses the run"]);
    tour.dash.press("Space");
    assert_eq!(tour.step(), Some(TourStep::Pause), "a key press changes nothing yet");
    tour.pausing();
    assert_eq!(tour.step(), Some(TourStep::Pause));
    tour.sees(&["Pausing: the seats finish"]);
    tour.paused();
    assert_eq!(tour.step(), Some(TourStep::Step));
    tour.dash.press("s");
    assert_eq!(tour.step(), Some(TourStep::Step));
    tour.stepped();
    tour.sees(&["Tour 2/6", "continues to the next boundary, and pauses there"]);
    tour.paused();
    assert_eq!(tour.step(), Some(TourStep::Flag));
    tour.dash.press("f");
    tour.sees(&["Tour 3/6", "and what it changes then."]);
    assert_eq!(tour.step(), Some(TourStep::Flag), "only opened");
    tour.dash.press("Space");
    assert_eq!(tour.step(), Some(TourStep::Inspect), "pending");
    tour.sees(&["Tour 4/6", "closes the flags"]);
    tour.dash.press("Esc Enter");
    assert_eq!(tour.step(), Some(TourStep::Scrub));
    tour.dash.press("Esc , ,");
    assert_eq!(tour.step(), Some(TourStep::Scrub), "two events back");
    tour.dash.press(",");
    assert_eq!(tour.step(), Some(TourStep::Fork));
    tour.dash.press("F");
    assert_eq!(tour.step(), Some(TourStep::Fork), "the form is not open yet");
}

#[test]
fn own_pause_is_not_done() {
    let mut tour = TourDash::begin(120, 36);
    tour.paused();
    assert_eq!(tour.step(), Some(TourStep::Pause), "the run paused by itself");
    tour.sees(&["The run is paused, so that", "Press it once more"]);
    tour.event(EventKind::Resumed { by: Initiator::You, paused_ms: 1 }).pausing().paused();
    assert_eq!(tour.step(), Some(TourStep::Step));
    tour.event(EventKind::Resumed { by: Initiator::You, paused_ms: 1 });
    tour.sees(&["The run continues: Space pauses it again"]);
    assert_eq!(tour.step(), Some(TourStep::Step));
}

#[test]
fn other_windows_are_said() {
    let mut tour = TourDash::begin(120, 36);
    tour.dash.text("?");
    tour.sees(&["Tour 1/6", "Esc closes this window. Then:"]);
    tour.dash.press("Esc f");
    tour.sees(&["Esc closes this window. Then:", "Space pauses the run."]);
    tour.dash.press("Esc /");
    tour.sees(&["Here keys are typed as text: Esc ends the filter."]);
    tour.dash.press("Esc , ,");
    tour.sees(&["The screen shows the past: G goes back"]);
    assert_eq!(tour.step(), Some(TourStep::Pause));
}

#[test]
fn early_end_says_what_to_do() {
    for step in [TourStep::Pause, TourStep::Step, TourStep::Flag] {
        let mut tour = TourDash::at(step);
        tour.ends();
        tour.sees(&[
            "The run has ended, and this step needs",
            "q goes home; there t starts the tour",
        ]);
    }
    let mut tour = TourDash::at(TourStep::Inspect);
    tour.ends();
    tour.sees(&["Tour 4/6", "j selects a seat, Enter inspects it"]);
}

#[test]
fn escape_and_q_leave_tour() {
    let mut tour = TourDash::begin(120, 36);
    tour.sees(&["Esc leave the tour"]);
    tour.dash.press("Esc");
    assert!(tour.step().is_none());
    tour.sees(&["You left the tour at step 1/6: t on home continues it. Its run continues."]);
    assert_eq!(tour.dash.state.strip_rows(), 0);
    let mut tour = TourDash::at(TourStep::Flag);
    tour.dash.text("fq");
    assert_eq!(tour.step(), Some(TourStep::Flag), "q closes the drawer");
    tour.dash.text("q");
    assert!(tour.step().is_none() && tour.dash.state.overlays.is_empty());
    tour.sees(&["You left the tour at step 3/6: t continues it. Its run is paused."]);
    tour.dash.text("t");
    assert_eq!(tour.step(), Some(TourStep::Flag), "it goes on with the same run");
    tour.sees(&["Tour 3/6", RUN]);
    tour.dash.text("q");
    tour.ends();
    tour.dash.asked();
    tour.dash.text("t");
    assert_eq!(tour.dash.launch().begins, RunBeginning::Tour, "its run has ended");
}

#[test]
fn failed_start_ends_tour() {
    let mut dash = Dash::new(120, 36);
    dash.text("t");
    let request = dash.launch().id;
    assert!(dash.state.tour.is_some());
    dash.send(Msg::StartFailed { request, text: "no".into() });
    assert!(dash.state.tour.is_none());
}

/// `roundtable tour` begins it before the first message; a size or a key may come before its run.
#[test]
fn tour_outlives_messages_before_start() {
    let mut dash = Dash::new(120, 36);
    assert!(tour::begin(&mut dash.state).is_some());
    dash.send(Msg::Resize { cols: 100, rows: 30 });
    assert!(dash.state.tour.is_some());
}

#[test]
fn fork_reads_events_of_tour() {
    let mut dash = Dash::new(120, 36);
    list(&mut dash, history());
    let mut tour = TourDash::begin_in(dash);
    tour.dash.asked();
    tour.dash.text("F");
    let asked = tour.dash.asked();
    let Some(Effect::ReadFork(source)) = asked.first() else { panic!("{asked:?}") };
    assert!(source.events.is_some(), "the store does not have the run");
}

#[test]
fn every_size_has_every_step() {
    for step in
        [TourStep::Pause, TourStep::Step, TourStep::Flag, TourStep::Inspect, TourStep::Scrub]
    {
        let mut tour = TourDash::at(step);
        for (cols, rows) in [(200, 50), (120, 36), (80, 24), (61, 20), (60, 16), (60, 17), (20, 3)]
        {
            tour.dash.send(Msg::Resize { cols, rows });
            let buf = tour.dash.draw();
            assert_eq!((buf.area.width, buf.area.height), (cols, rows));
            let strip = tour.dash.state.strip_rows();
            match (cols, rows) {
                (80.., _) => assert_eq!(strip, 2, "{step:?} at {cols}x{rows}"),
                (_, ..=17) => assert_eq!(strip, 0, "{step:?} at {cols}x{rows}"),
                _ => assert!((2..=4).contains(&strip), "{step:?} at {cols}x{rows}: {strip}"),
            }
            if (cols, rows) == (60, 16) {
                tour.sees(&["Tour "]);
            }
        }
        assert_eq!(tour.step(), Some(step));
    }
}

#[test]
fn keys_of_own_are_named() {
    let _keys = crate::screen::keymap::use_keys_in_test("[keys]\npause-or-resume = \"x\"\n");
    let tour = TourDash::begin(120, 36);
    tour.sees(&["x pauses the run"]);
}

#[test]
fn pictures_of_steps() {
    let steps = [
        ("tour_1", TourStep::Pause),
        ("tour_2", TourStep::Step),
        ("tour_3", TourStep::Flag),
        ("tour_4", TourStep::Inspect),
        ("tour_5", TourStep::Scrub),
        ("tour_6", TourStep::Fork),
    ];
    for (name, step) in steps {
        insta::assert_snapshot!(name, TourDash::at(step).dash.screen());
    }
    for (name, cols, rows) in [("tour_2_80x24", 80, 24), ("tour_2_200x50", 200, 50)] {
        let tour = TourDash::at_in(TourStep::Step, cols, rows);
        insta::assert_snapshot!(name, tour.dash.screen());
    }
    let settings =
        DisplaySettings { ascii: true, theme: "mono".into(), ..DisplaySettings::default() };
    let tour = TourDash::begin_in(Dash::over(120, 36, shipped(), settings));
    let screen = tour.dash.screen();
    assert!(screen.is_ascii() && screen.contains("Tour 1/6"), "{screen}");
    let buf = tour.dash.draw();
    let row =
        (0..36).find(|y| (1..9).map(|x| buf[(x, *y)].symbol()).collect::<String>() == "Tour 1/6");
    let style = buf[(1, row.expect("a row"))].style();
    assert!(!style.add_modifier.is_empty(), "told apart without a colour: {style:?}");
}

/// A new user at the first screen.
fn newcomer(waits_for_rows: bool) -> Dash {
    let mut dash = Dash::new(80, 24);
    dash.state.welcome(waits_for_rows);
    dash
}

const TOLD: [&str; 3] =
    ["starts the selected scenario", "t starts the tour", "roundtable watch -- "];

fn is_told(dash: &Dash) -> bool {
    let screen = dash.screen();
    let told: Vec<bool> = TOLD.iter().map(|text| screen.contains(text)).collect();
    assert!(told.iter().all(|it| *it == told[0]), "all or none:\n{screen}");
    told[0]
}

#[test]
fn newcomer_is_told_until_something_happens() {
    let mut dash = newcomer(false);
    assert!(is_told(&dash));
    insta::assert_snapshot!("first_start_80x24", dash.screen());
    dash.press("j 2 ?");
    dash.press("Esc");
    assert!(is_told(&dash), "looking is not doing");
    dash.press("Esc");
    assert!(!is_told(&dash));
    assert_eq!(dash.state.strip_rows(), 0);

    let mut dash = newcomer(false);
    dash.press("Enter");
    assert!(!is_told(&dash), "a run was started");
}

#[test]
fn kept_runs_say_nothing() {
    let mut dash = newcomer(true);
    assert!(!is_told(&dash), "the kept runs are not known yet");
    list(&mut dash, history());
    assert!(!is_told(&dash));
    let mut dash = newcomer(true);
    list(&mut dash, Vec::new());
    assert!(is_told(&dash), "there are none");
    assert!(!is_told(&Dash::new(80, 24)), "not the first start");
}

#[test]
fn started_run_is_not_told() {
    let mut dash = newcomer(false);
    let request: Option<Box<LaunchRequest>> = None;
    let run = RunId::new(RUN);
    dash.send(Msg::Started { request: RequestId(u64::MAX), run, zero: dash.now, launch: request });
    dash.text("q");
    assert!(!is_told(&dash));
}
