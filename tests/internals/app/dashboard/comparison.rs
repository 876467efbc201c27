//! Two runs compared, from the keys of the dashboard.

use std::sync::Arc;

use proptest::prelude::*;

use crate::engine::Schedule;
use crate::log::event::{Event, EventKind, RunId};
use crate::screen::comparison::ComparisonView;
use crate::screen::effect::{RecordedSource, RequestId};
use crate::screen::windows::Overlay;
use crate::screen::{Effect, Msg};
use crate::support::kept::{answer_open, history, list};
use crate::support::random_cases;
use crate::support::screen::{Dash, facts};
use crate::words::comparison::ComparisonRow;
use crate::words::comparison::runs::ComparedRuns;

fn plain() -> Vec<Arc<Event>> {
    facts("checkout-launch", &[], &[], Schedule::default())
}

fn with_flag() -> Vec<Arc<Event>> {
    facts("checkout-launch", &[], &[("legal_analyst", true)], Schedule::default())
}

/// The first screen with kept runs, the list of runs focused: r-10aa, r-20bb, its fork r-50ee, …
fn with_history() -> Dash {
    let mut dash = Dash::new(120, 36);
    list(&mut dash, history());
    dash.press("2 Esc g");
    dash.asked();
    dash
}

/// The comparison that is requested.
fn requested(dash: &mut Dash) -> (RequestId, [RecordedSource; 2]) {
    let asked = dash.asked();
    let found = asked.into_iter().find_map(|effect| match effect {
        Effect::Compare { request, runs } => Some((request, *runs)),
        _ => None,
    });
    found.expect("a comparison")
}

fn answer(dash: &mut Dash, request: RequestId) {
    let result = Ok(Box::new(ComparedRuns::of(&plain(), &with_flag())));
    dash.send(Msg::Compared { request, result });
}

fn ids(runs: &[RecordedSource; 2]) -> [&str; 2] {
    [runs[0].run.as_str(), runs[1].run.as_str()]
}

fn view(dash: &Dash) -> Option<&ComparisonView> {
    dash.state.overlays.iter().find_map(|it| match it {
        Overlay::Comparison(view) => Some(&**view),
        _ => None,
    })
}

#[test]
fn d_marks_and_compares_runs() {
    let mut dash = with_history();
    dash.text("d");
    assert!(dash.asked().is_empty());
    let screen = dash.screen();
    assert!(screen.contains("r-10aa marked: d on another run compares the two."), "{screen}");
    assert!(screen.lines().any(|row| row.contains('■') && row.contains("r-10aa")), "{screen}");
    dash.text("jd");
    let (request, runs) = requested(&mut dash);
    assert_eq!(ids(&runs), ["r-10aa", "r-20bb"]);
    assert_eq!(dash.state.to_compare.marked, None);
    assert!(!dash.screen().contains("marked:"), "the notice goes with the mark");
    answer(&mut dash, request);
    let shown = view(&dash).expect("a comparison");
    // A run of another process is compared up to its last stored event.
    assert_eq!(shown.live, [true, false]);
    dash.text("q");
    assert!(view(&dash).is_none());
}

#[test]
fn live_figures_update_until_both_end() {
    let logs = [plain(), with_flag()];
    let names = ["r-left", "r-rite"];
    let parts = [logs[0].len() / 2, logs[1].len() / 2];
    let renamed = |side: usize, range: std::ops::Range<usize>| -> Vec<Arc<Event>> {
        logs[side][range].iter().map(|event| under_id(event, names[side])).collect()
    };
    let mut dash = Dash::new(120, 36);
    for side in [0, 1] {
        dash.run(names[side], &renamed(side, 0..parts[side]));
        dash.text("q");
    }
    dash.text("2").text("gdjd");
    let (request, runs) = requested(&mut dash);
    let mut ids = ids(&runs);
    ids.sort_unstable();
    assert_eq!(ids, names);
    let halves = [renamed(0, 0..parts[0]), renamed(1, 0..parts[1])];
    let at = |id: &str| names.iter().position(|name| *name == id).expect("one of the two");
    let order = [at(runs[0].run.as_str()), at(runs[1].run.as_str())];
    let compared = ComparedRuns::of(&halves[order[0]], &halves[order[1]]);
    dash.send(Msg::Compared { request, result: Ok(Box::new(compared)) });
    assert_eq!(view(&dash).expect("a comparison").live, [true, true]);
    assert!(dash.screen().contains("Both are still running"), "{}", dash.screen());
    let before = view(&dash).expect("it").compared.runs[0].calls;
    // One of them ends: its figures are those of its end, and both are compared again.
    let left = order[0];
    let events = renamed(left, parts[left]..logs[left].len());
    dash.asked();
    dash.send(Msg::Events { run: RunId::new(names[left]), events });
    let shown = view(&dash).expect("it");
    assert_eq!(shown.live, [false, true]);
    assert!(shown.compared.runs[0].calls > before);
    assert!(shown.compared.runs[0].result.starts_with("go"), "{:?}", shown.compared.runs[0]);
    let (request, _) = requested(&mut dash);
    let whole = [renamed(0, 0..logs[0].len()), renamed(1, 0..logs[1].len())];
    let compared = ComparedRuns::of(&whole[order[0]], &whole[order[1]]);
    let differences = compared.comparison.differences.len();
    dash.send(Msg::Compared { request, result: Ok(Box::new(compared)) });
    let shown = view(&dash).expect("it is replaced");
    assert_eq!(shown.compared.comparison.differences.len(), differences);
    dash.text("q");
    assert!(view(&dash).is_none(), "there is one, not two");
}

/// The event as the log of a run with this id has it.
fn under_id(event: &Arc<Event>, id: &str) -> Arc<Event> {
    let mut event = Event::clone(event);
    if let EventKind::RunStarted(head) = &mut event.kind {
        Arc::make_mut(head).run = RunId::new(id);
    }
    Arc::new(event)
}

#[test]
fn escape_or_second_d_clears_mark() {
    for keys in ["\u{1b}", "d"] {
        let mut dash = with_history();
        dash.text("d");
        match keys {
            "d" => dash.text("d"),
            _ => dash.press("Esc"),
        };
        assert_eq!(dash.state.to_compare.marked, None);
        assert!(!dash.screen().contains('■'));
        assert!(dash.asked().is_empty());
    }
}

#[test]
fn compares_fork_with_parent() {
    let mut dash = with_history();
    dash.text("jjd");
    let screen = dash.screen();
    assert!(screen.contains("d again compares it with its parent r-20bb"), "{screen}");
    dash.text("d");
    assert_eq!(ids(&requested(&mut dash).1), ["r-20bb", "r-50ee"]);
    // On its page one key is enough.
    dash.press("Enter");
    answer_open(&mut dash, &plain());
    dash.text("d");
    let (request, runs) = requested(&mut dash);
    assert_eq!(ids(&runs), ["r-20bb", "r-50ee"]);
    answer(&mut dash, request);
    dash.press("Esc");
    assert!(view(&dash).is_none() && dash.state.visible_run().is_some());
}

#[test]
fn cancelled_comparison_never_opens() {
    let mut dash = with_history();
    dash.text("djd");
    let (request, _) = requested(&mut dash);
    dash.text("j");
    answer(&mut dash, request);
    assert!(view(&dash).is_none());
    dash.text("gdjd");
    let (request, _) = requested(&mut dash);
    dash.send(Msg::Compared { request, result: Err("r-10aa is no longer kept".to_owned()) });
    let screen = dash.screen();
    assert!(screen.contains("cannot be compared: r-10aa is no longer kept"), "{screen}");
}

#[test]
fn selects_first_difference_and_moves_between() {
    let mut dash = with_history();
    dash.text("djd");
    let (request, _) = requested(&mut dash);
    answer(&mut dash, request);
    let is_difference = |dash: &Dash| {
        let shown = view(dash).expect("a comparison");
        !matches!(shown.compared.rows[shown.selected], ComparisonRow::Equal(_))
    };
    let first = view(&dash).expect("a comparison");
    let wanted = first.compared.rows.iter().position(|it| *it == ComparisonRow::Difference(0));
    assert_eq!(Some(first.selected), wanted);
    for key in "jjjkGkgjj".chars() {
        dash.text(&key.to_string());
        assert!(is_difference(&dash), "{key}");
    }
    dash.press("Enter");
    assert!(view(&dash).is_some_and(|it| it.full));
    dash.press("Esc");
    assert!(view(&dash).is_some_and(|it| !it.full));
    dash.text("y");
    let text = dash.asked().into_iter().find_map(|effect| match effect {
        Effect::Copy(text) => Some(text),
        _ => None,
    });
    assert!(text.is_some_and(|text| text.contains("first difference")));
}

proptest! {
    #![proptest_config(random_cases(24))]

    /// Each difference has a row of its own, in order, and no more events are called equal than are.
    #[test]
    fn different_events_never_show_as_equal(
        drop in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
        flag in any::<bool>(),
    ) {
        let left = plain();
        let mut right = if flag { with_flag() } else { plain() };
        for at in drop {
            let at = at.index(right.len() - 1) + 1;
            right.remove(at);
        }
        let compared = ComparedRuns::of(&left, &right);
        let (mut equal, mut found) = (0, Vec::new());
        for row in &compared.rows {
            match row {
                ComparisonRow::Equal(count) => equal += count,
                ComparisonRow::Difference(at) => found.push(*at),
                ComparisonRow::Setup(_) => {}
            }
        }
        prop_assert_eq!(equal, compared.comparison.equal);
        let all: Vec<usize> = (0..compared.comparison.differences.len()).collect();
        prop_assert_eq!(found, all);
        // The events before the first difference are those that both logs begin with.
        let both = left.iter().zip(&right).skip(1);
        let same = both.take_while(|(left, right)| left.kind == right.kind).count();
        let before = compared.comparison.differences.first().map(|it| it.equal_before);
        prop_assert!(before.is_none_or(|before| before >= same), "{before:?} {same}");
    }
}
