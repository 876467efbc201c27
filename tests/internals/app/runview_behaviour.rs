//! What a run's page makes of keys, of the mouse and of time.

use std::sync::Arc;
use std::time::Duration;

use crate::base::visible::visible_lines;
use crate::log::event::{BoundaryId, Command, Event, EventKind, Initiator, RunId, Seq, World};
use crate::screen::effect::{Contents, Export};
use crate::screen::keymap::Context;
use crate::screen::layout::Size;
use crate::screen::msg::{Mouse, MouseKind, PartialText};
use crate::screen::run::data::RunData;
use crate::screen::run::inspector::documents::prompt;
use crate::screen::run::inspector::{InspectTarget, Inspector, Tab};
use crate::screen::run::layout::page;
use crate::screen::run::views::OwnView;
use crate::screen::run::views::collaboration::seat::SeatSubject;
use crate::screen::run::views::collaboration::{CollaborationView, Selection};
use crate::screen::run::{Pane, RunPage};
use crate::screen::{Action, Effect, Msg};
use crate::support::facts;
use crate::support::facts::Facts;
use crate::support::screen::Dash;

const RUN: &str = "r-7f3a";

fn dash(facts: &Facts) -> Dash {
    let mut dash = Dash::new(120, 36);
    dash.run(RUN, &facts.log);
    dash.asked();
    dash
}

/// The view of the seats, and what it reads.
fn seats(dash: &Dash) -> (&CollaborationView, &RunData) {
    match &shown(dash).views.own {
        OwnView::Collaboration(view) => (view, shown(dash)),
        other => panic!("no seats: {other:?}"),
    }
}

fn subject(dash: &Dash) -> SeatSubject {
    let (view, run) = seats(dash);
    view.subject(run)
}

fn shown(dash: &Dash) -> &RunPage {
    dash.state.visible_run().expect("a run on the screen")
}

fn more(dash: &mut Dash, facts: &Facts, from: usize) {
    let events = facts.log[from..].to_vec();
    dash.send(Msg::Events { run: RunId::new(RUN), events });
}

fn command(dash: &mut Dash) -> Command {
    match dash.asked().pop() {
        Some(Effect::Command { run, command }) if run == RunId::new(RUN) => command,
        other => panic!("no command: {other:?}"),
    }
}

mod keys {
    use super::*;

    #[test]
    fn keys_send_commands() {
        let breakpoint = |at: &str, set| Command::Break { at: BoundaryId::new(at), set };
        let (pause, resume) =
            (Command::Pause { by: Initiator::You }, Command::Resume { by: Initiator::You });
        let mut has_breakpoint = facts::streaming();
        let kind = EventKind::BreakpointChanged { at: BoundaryId::new("round:3"), set: true };
        has_breakpoint.add(crate::log::event::SpanId::RUN, kind);
        let mut in_last_round = facts::streaming();
        in_last_round.round(&[]);
        for (facts, keys, expected) in [
            (facts::streaming(), "Space", pause),
            (facts::paused(), "Space", resume.clone()),
            (facts::pausing(), "Space", resume),
            (facts::streaming(), "s", Command::Step),
            (facts::streaming(), "sS", Command::StepRound),
            (facts::streaming(), "sSB", breakpoint("round:3", true)),
            (has_breakpoint, "B", breakpoint("round:3", false)),
            // The brief follows the last round.
            (in_last_round, "B", breakpoint("finalize", true)),
        ] {
            let mut dash = dash(&facts);
            dash.press(keys);
            assert_eq!(command(&mut dash), expected, "{keys}");
        }
    }

    #[test]
    fn ended_run_ignores_commands() {
        let mut dash = dash(&facts::decided());
        dash.press("Space sSB");
        assert!(dash.asked().is_empty());
    }

    #[test]
    fn numbers_and_tab_focus_panes() {
        let mut dash = dash(&facts::streaming());
        for (number, pane) in [("3", Pane::Third), ("5", Pane::Events), ("1", Pane::First)] {
            dash.text(number);
            assert_eq!(shown(&dash).focus(), pane);
        }
        dash.press("S-Tab");
        assert_eq!(shown(&dash).focus(), Pane::Events);
        dash.press("Tab Tab");
        assert_eq!(shown(&dash).focus(), Pane::Second);
    }

    #[test]
    fn escape_clears_and_q_leaves() {
        let mut dash = dash(&facts::streaming());
        dash.press("1j/risk Enter");
        assert!(shown(&dash).list().is_filtered());
        dash.press("Esc");
        assert!(!shown(&dash).list().is_filtered());
        assert_ne!(seats(&dash).0.selection(), Selection::Follow);
        dash.press("Esc");
        assert_eq!(seats(&dash).0.selection(), Selection::Follow);
        dash.press("Esc");
        assert!(dash.state.visible_run().is_some(), "Escape never leaves");
        dash.text("q");
        assert!(dash.state.visible_run().is_none());
    }
}

mod subject {
    use super::*;

    #[test]
    fn the_page_follows_who_speaks() {
        let mut facts = facts::waiting();
        let mut dash = dash(&facts);
        assert_eq!(subject(&dash), SeatSubject::None);
        let from = facts.log.len();
        facts.after(100).round(&[3]);
        facts.ask(0).ask(1).ask(2);
        more(&mut dash, &facts, from);
        assert_eq!(subject(&dash), SeatSubject::Seat { round: 1, seat: 0 });
        let from = facts.log.len();
        facts.after(100).says(0, crate::log::facts::collaboration::Stance::Go, 0.9, "Yes.");
        more(&mut dash, &facts, from);
        assert_eq!(subject(&dash), SeatSubject::Seat { round: 1, seat: 1 });
    }

    #[test]
    fn ended_run_shows_outcome() {
        let dash = dash(&facts::decided());
        assert_eq!(subject(&dash), SeatSubject::Outcome);
        assert!(dash.screen().contains("rehearse the fail-over"));
        let stopped = super::dash(&facts::stopped());
        let screen = stopped.screen();
        for said in ["model: HTTP 503", "round 2, risk_analyst", "upstream overloaded"] {
            assert!(screen.contains(said), "{said}");
        }
    }

    #[test]
    fn selected_seat_stays_while_others_speak() {
        let mut facts = facts::streaming();
        let mut dash = dash(&facts);
        dash.text("1jjj");
        assert_eq!(subject(&dash), SeatSubject::Seat { round: 2, seat: 3 });
        let from = facts.log.len();
        facts.says(2, crate::log::facts::collaboration::Stance::Go, 0.7, "Yes.");
        more(&mut dash, &facts, from);
        assert_eq!(subject(&dash), SeatSubject::Seat { round: 2, seat: 3 });
    }

    #[test]
    fn stances_pane_selects_round() {
        let mut dash = dash(&facts::streaming());
        dash.text("3h");
        assert_eq!(subject(&dash), SeatSubject::Seat { round: 1, seat: 2 });
        assert!(dash.screen().contains("Failed payments are close to the line"));
        dash.text("l");
        assert_eq!(seats(&dash).0.selected_round(), None, "the current round is followed again");
    }
}

mod truths {
    use super::*;
    use crate::log::event::ModelLabel;
    use crate::support::facts::Start;
    use crate::words::patterns::collaboration::rounds_text;

    fn head(model: ModelLabel, title: &str, cols: u16) -> String {
        let start = Start { model, title: title.to_owned(), ..Start::default() };
        let mut facts = Facts::start(start);
        facts.after(100).round(&[3]);
        facts.ask(0);
        let mut dash = Dash::new(cols, 24);
        dash.run(RUN, &facts.log);
        dash.screen().lines().next().expect("a header").to_owned()
    }

    #[test]
    fn header_names_model_at_every_width() {
        let live = || ModelLabel::Live {
            name: "gpt-4.1-mini-2025-04-14".to_owned(),
            host: "models.example".to_owned(),
        };
        let title = "A title that is much longer than any header has room for, whatever its width";
        for cols in [60, 80, 100, 120, 200] {
            let scripted = head(ModelLabel::Scripted, title, cols);
            assert!(scripted.contains("scripted"), "{cols}: {scripted}");
            let live = head(live(), title, cols);
            assert!(live.contains(if cols < 80 { "live " } else { "live gpt" }), "{cols}: {live}");
            assert!(live.contains("@ models.example"), "{cols}: {live}");
        }
    }

    #[test]
    fn unasked_seat_shows_not_reached() {
        let mut facts = Facts::start(Start { flagged: Vec::new(), ..Start::default() });
        facts.after(100).round(&[]);
        facts.ask(0).ask(1);
        facts.gives_up(0, 503, "llm_error:http_503");
        facts.gives_up(1, 503, "cancelled");
        facts.ends("llm_error:http_503", Some("round_1:demand_analyst"));
        for (cols, rows) in [(80, 24), (120, 36)] {
            let mut dash = Dash::new(cols, rows);
            dash.run(RUN, &facts.log);
            dash.text("4");
            let screen = dash.screen();
            assert!(!screen.contains("waiting"), "{screen}");
            assert!(screen.contains("not reached: the run ended"), "{screen}");
            assert!(screen.contains("cancelled"), "{screen}");
            dash.text("2");
            assert!(dash.screen().contains("view the failed call's prompt"));
        }
    }

    #[test]
    fn cancelled_run_reports_no_failure() {
        let mut facts = Facts::start(Start::default());
        facts.after(100).round(&[3]);
        facts.ask(0);
        facts.gives_up(0, 503, "cancelled");
        facts.ends("cancelled", Some("round_1:demand_analyst"));
        let mut dash = dash(&facts);
        dash.text("2");
        let screen = dash.screen();
        assert!(!screen.contains("failed call"), "{screen}");
        assert!(screen.contains("view the cancelled call's prompt"), "{screen}");
        assert!(screen.contains("stopped in round 1, none closed"), "{screen}");
    }

    #[test]
    fn rounds_are_counted_the_same_everywhere() {
        let text_of = |facts: &Facts| {
            let world = World::from_events(facts.log.iter().map(|fact| &**fact));
            world.collaboration().map(rounds_text).expect("a table")
        };
        let stopped = facts::stopped();
        assert_eq!(text_of(&stopped), "stopped in round 2, 1 closed");
        let mut dash = dash(&stopped);
        dash.text("2");
        assert!(dash.screen().contains("stopped in round 2, 1 closed"));
        assert_eq!(text_of(&facts::decided()), "2 rounds");
        assert_eq!(text_of(&facts::waiting()), "no round");
    }

    #[test]
    fn the_playhead_hides_no_pause() {
        let mut dash = dash(&facts::paused());
        dash.text(",,,");
        let screen = dash.screen();
        assert!(screen.contains(", run paused") && !screen.contains("continues"), "{screen}");
        let mut ended = super::dash(&facts::decided());
        ended.text(",,,");
        assert!(!ended.screen().contains(", run "), "it has ended");
    }

    #[test]
    fn text_width_matches_terminals() {
        use crate::words::measure::columns;
        for (text, width) in
            [("👩\u{200d}👩\u{200d}👧", 2), ("🇬🇧", 2), ("❤\u{fe0f}", 1), ("👍🏽", 2), ("宽", 2)]
        {
            assert_eq!(columns(text), width, "{text:?}");
        }
    }

    #[test]
    fn labels_keep_time_order() {
        for cols in [40, 60, 80, 120] {
            for facts in [facts::decided(), facts::rounds(12), facts::stopped()] {
                let mut dash = Dash::new(cols, 24);
                dash.run(RUN, &facts.log);
                let screen = dash.screen();
                let Some(row) = screen.lines().rev().find(|row| row.contains("end")) else {
                    continue;
                };
                let end = row.find("end").expect("the end");
                for (before, after) in [("R1 ", "R2"), ("R2", "R3"), ("R2", "brief")] {
                    if let (Some(before), Some(after)) = (row.find(before), row.find(after)) {
                        assert!(before < after && after < end, "{cols}: {row}");
                    }
                }
                assert!(row[end..].trim() == "end" || row[end..].contains('+'), "{cols}: {row}");
            }
        }
    }

    #[test]
    fn paused_scrubber_stands_still() {
        let mut dash = dash(&facts::paused());
        let line = |dash: &Dash| dash.screen().lines().rev().nth(4).expect("a scrubber").to_owned();
        let page_end = |dash: &Dash, secs| shown(dash).head_time(Duration::from_secs(secs));
        let (row, end) = (line(&dash), page_end(&dash, 1));
        dash.after(Duration::from_secs(100));
        assert_eq!(line(&dash), row);
        assert_eq!(page_end(&dash, 500), end);
    }

    #[test]
    fn second_row_shows_rounds_and_breakpoints() {
        let row = |dash: &Dash| dash.screen().lines().nth(1).expect("a row").to_owned();
        let mut facts = facts::streaming();
        let at = BoundaryId::new("round:3");
        facts.add(crate::log::event::SpanId::RUN, EventKind::BreakpointChanged { at, set: true });
        let mut dash = Dash::new(80, 24);
        dash.run(RUN, &facts.log);
        let row = row(&dash);
        assert!(["R1 ✓", "R2 ●", "R3 ○ ◉ break"].iter().all(|said| row.contains(said)), "{row}");
    }

    #[test]
    fn invalid_filter_shows_only_error() {
        for (cols, rows) in [(80, 24), (120, 36)] {
            let mut dash = Dash::new(cols, rows);
            dash.run(RUN, &facts::streaming().log);
            dash.press("'/risk && kind == ' Enter");
            assert_eq!(dash.state.context(), Context::Filter);
            assert_eq!(shown(&dash).list().len(shown(&dash).log()), 0);
            let screen = dash.screen();
            assert!(screen.contains("✗ not a condition: "), "{screen}");
            assert!(screen.contains("Enter applies a valid filter"), "{screen}");
            dash.press("Esc");
            assert!(shown(&dash).list().len(shown(&dash).log()) > 0);
        }
    }
}

mod floods {
    use super::*;

    fn flooded(piece: &str, times: usize) -> (Facts, Dash) {
        let facts = facts::streaming();
        let mut dash = dash(&facts);
        dash.text("2");
        let text = piece.repeat(times) + "the end";
        let live = PartialText { text, pieces: 9, first_at: None, last_at: None };
        let span = facts.attempt_of(2);
        dash.send(Msg::Live { run: RunId::new(RUN), span, text: Some(live) });
        (facts, dash)
    }

    #[test]
    fn endless_text_shows_only_end() {
        for piece in ["x", "word ", "line\n", "\u{1f600}"] {
            let (_, mut dash) = flooded(piece, 2_000_000);
            let (view, run) = seats(&dash);
            let words = view.text_pane(run).words;
            assert!(words.text.len() <= 24 * 1024, "{}", words.text.len());
            assert!(words.text.ends_with("the end"));
            assert!(words.text.len() > 16 * 1024, "{}", words.text.len());
            let screen = dash.screen();
            assert!(screen.contains("MB above") && screen.contains("the end"), "{screen}");
            dash.press("Enter");
            let open = shown(&dash).inspector().expect("open");
            let size: usize = open.document.lines.iter().map(|line| line.text().len()).sum();
            assert!(size < 80 * 1024, "{size}");
            assert!(dash.screen().contains("above, shown when the reply is complete"));
        }
    }

    #[test]
    fn long_reply_shows_start() {
        let (mut facts, mut dash) = flooded("x", 10);
        let from = facts.log.len();
        facts.replies(2, &format!("the start {}", "y".repeat(3_000_000)));
        more(&mut dash, &facts, from);
        dash.text("1j2");
        let screen = dash.screen();
        assert!(screen.contains("the start") && screen.contains("Enter shows all"), "{screen}");
        dash.press("Enter");
        let open = shown(&dash).inspector().expect("open");
        let size: usize = open.document.lines.iter().map(|line| line.text().len()).sum();
        assert!(size > 3_000_000, "all of it: {size}");
    }
}

mod list {
    use super::*;

    fn top_row(dash: &Dash) -> String {
        let screen = dash.screen();
        let mut rows = screen.lines().skip_while(|row| !row.contains("5 Events"));
        rows.nth(1).expect("a row").to_owned()
    }

    #[test]
    fn new_facts_keep_scroll_position() {
        let mut facts = facts::streaming();
        let mut dash = dash(&facts);
        dash.text("5kkkkkkkkkkkkjjj");
        assert!(!shown(&dash).list().follows());
        let before = top_row(&dash);
        let from = facts.log.len();
        facts.after(100).replies(2, "{}");
        more(&mut dash, &facts, from);
        assert_eq!(top_row(&dash), before);
        dash.text("G");
        assert!(shown(&dash).list().follows());
        assert_ne!(top_row(&dash), before);
    }

    #[test]
    fn selection_moves_before_window() {
        let mut dash = dash(&facts::streaming());
        dash.text("5kkkkkkkkkkkk");
        let before = top_row(&dash).replace('>', " ");
        dash.text("jjj");
        assert_eq!(top_row(&dash), before);
    }

    #[test]
    fn selection_stays_visible_at_any_height() {
        for rows in 16..50 {
            let mut dash = Dash::new(80, rows);
            dash.run(RUN, &facts::streaming().log);
            dash.text("5kkkkkkkkk");
            for key in ["k", "j", "g", "j", "k"] {
                dash.text(key);
                let list = dash.screen();
                let marked = list.lines().filter(|row| row.starts_with("│>")).count();
                assert_eq!(marked, 1, "{rows} rows after {key}\n{list}");
            }
        }
    }

    #[test]
    fn words_and_cel_filter() {
        let mut dash = dash(&facts::streaming());
        dash.text("/");
        assert_eq!(dash.state.context(), Context::Filter);
        dash.press("'RISK retried' Enter");
        assert_eq!(dash.state.context(), Context::Run);
        let len = |dash: &Dash| shown(dash).list().len(shown(dash).log());
        // The retry, and the attempt that it led to.
        assert_eq!(len(&dash), 2);
        for (filter, count) in [
            ("kind == \"call.retried\" && round == 2", 1),
            ("round == 1", 17),
            ("round > 1 && stance == \"go\"", 2),
            ("confidence >= 0.9", 2),
            ("flag == \"legal_analyst\" && on", 1),
            ("at > 5.0", 3),
            ("event.kind == \"run.started\"", 1),
            ("fact.kind == \"run.started\"", 1),
            ("seq < 3", 3),
            ("role == \"finance_analyst\" && kind.startsWith(\"attempt\")", 4),
        ] {
            dash.press("Esc / C-u").text(filter).press("Enter");
            assert_eq!(len(&dash), count, "{filter}");
        }
    }

    #[test]
    fn filter_matches_screen_words() {
        let facts = facts::prose();
        for (words, kinds) in [
            ("retry", &["call.retried", "attempt.started"][..]),
            ("retried", &["call.retried", "attempt.started"]),
            ("refused", &["reply.refused", "contribution.refused"]),
            ("stopped", &["reply.refused", "contribution.refused", "run.closed"]),
            ("failed 503", &["attempt.failed"]),
            ("missing_keys", &["reply.refused", "contribution.refused", "run.closed"]),
        ] {
            let mut dash = dash(&facts);
            dash.text(&format!("/{words}")).press("Enter");
            let page = shown(&dash);
            let (list, log) = (page.list(), page.log());
            let found = (0..list.len(log)).filter_map(|row| log.get(list.place(row)?));
            let found: Vec<&str> = found.map(|event| event.kind.name()).collect();
            for kind in kinds {
                assert!(found.contains(kind), "{words}: {found:?}");
            }
        }
    }

    #[test]
    fn invalid_filter_keeps_editing() {
        let mut dash = dash(&facts::streaming());
        dash.press("'/kind == ' Enter");
        assert_eq!(dash.state.context(), Context::Filter, "not kept");
        assert!(!shown(&dash).list().is_filtered());
        dash.press("\"call.retried\" Enter");
        assert_eq!(dash.state.context(), Context::Run);
        dash.press("Esc /");
        assert!(dash.screen().contains("kind == \"call.retried\""), "the last one is offered");
    }

    #[test]
    fn filter_takes_new_facts() {
        let mut facts = facts::streaming();
        let mut dash = dash(&facts);
        dash.press("'/status == 503' Enter");
        let len = |dash: &Dash| shown(dash).list().len(shown(dash).log());
        assert_eq!(len(&dash), 2);
        let from = facts.log.len();
        facts.fails(2, 503);
        more(&mut dash, &facts, from);
        assert_eq!(len(&dash), 4);
    }

    #[test]
    fn long_log_filters_newest_first() {
        let facts = facts::rounds(4_000);
        let mut page = RunPage::new(RunId::new(RUN), Duration::ZERO);
        page.apply(&facts.log);
        let size = Size { cols: 120, rows: 36 };
        page.on_action(Action::Filter, size);
        for c in "round.closed".chars() {
            page.on_key(crate::screen::KeyPress::char(c));
        }
        page.on_action(Action::Apply, size);
        let log = page.log().len();
        let first = page.list().len(page.log());
        assert!(first > 0 && first < 4_000, "{first}");
        let newest = page.list().place(first - 1).expect("a row");
        assert!(newest > log - 30, "the newest is there at once");
        let mut ticks = 0;
        while page.next_tick(Duration::from_secs(3600), true) == Some(Duration::ZERO) {
            page.on_tick();
            ticks += 1;
        }
        assert!(ticks > 3, "in slices");
        assert_eq!(page.list().len(page.log()), 4_000);
        let rows: Vec<_> = (0..4_000).filter_map(|row| page.list().place(row)).collect();
        assert!(rows.is_sorted());
    }
}

mod past {
    use super::*;

    #[test]
    fn playhead_steps_fact_by_fact() {
        let facts = facts::streaming();
        let mut dash = dash(&facts);
        let all = facts.log.len();
        dash.text(",");
        assert_eq!(shown(&dash).shown_event_count(), all - 1);
        assert!(dash.screen().contains("REPLAY"));
        dash.text(",,,");
        let expected = World::from_events(facts.log[..all - 4].iter().map(|fact| &**fact));
        assert_eq!(format!("{:?}", shown(&dash).shown()), format!("{expected:?}"));
        dash.text("...");
        assert_eq!(shown(&dash).shown_event_count(), all - 1);
        dash.text(".");
        assert!(!shown(&dash).is_scrubbed(), "past the last it is live");
    }

    #[test]
    fn space_and_g_return_live() {
        for back in [" ", "G"] {
            let mut dash = dash(&facts::streaming());
            dash.text(",,,").text(back);
            assert!(!shown(&dash).is_scrubbed(), "{back:?}");
            assert!(dash.asked().is_empty(), "{back:?} pauses nothing");
        }
    }

    #[test]
    fn playhead_stays_while_run_continues() {
        let mut facts = facts::streaming();
        let mut dash = dash(&facts);
        dash.text(",,,,,");
        let before = shown(&dash).shown_event_count();
        let from = facts.log.len();
        facts.after(100).replies(2, "{}");
        more(&mut dash, &facts, from);
        assert_eq!(shown(&dash).shown_event_count(), before);
        let all = facts.log.len();
        assert!(dash.screen().contains(&format!("event {before} of {all}, run continues")));
        assert_eq!(dash.state.next_tick(), None, "nothing moves by itself");
    }

    #[test]
    fn inspector_follows_playhead() {
        let mut facts = facts::streaming();
        let reply = r#"{"stance":"go","summary":"Later words"}"#;
        let before = facts.log.len();
        facts.after(100).replies(2, reply);
        let mut dash = dash(&facts);
        while shown(&dash).shown_event_count() > before {
            dash.text(",");
        }
        for (back, reads) in [(true, false), (false, true)] {
            if !back {
                dash.press("Esc G");
            }
            let target = InspectTarget::Call(facts.call_of(2));
            let run: &RunData = shown(&dash);
            for tab in [Tab::Reply, Tab::Raw] {
                let shown = Inspector::of_target(run, target, tab).document.to_plain();
                assert_eq!(shown.contains("Later words"), reads, "{tab:?}: {shown}");
            }
            let timing = Inspector::of_target(run, target, Tab::Timing).document.to_plain();
            assert_eq!(timing.contains("not yet"), back, "{timing}");
            let reply = Inspector::of_target(run, target, Tab::Reply).document.to_plain();
            assert_eq!(reply.contains("Partial text is not recorded"), back, "{reply}");
        }
        // An event after the playhead is shown with what belongs to it.
        dash.text(",,,,,");
        let last = facts
            .log
            .iter()
            .rev()
            .find(|event| matches!(event.kind, EventKind::AttemptAnswered(_)));
        let target = InspectTarget::Event(last.expect("an answer").seq);
        let reply = Inspector::of_target(shown(&dash), target, Tab::Reply).document.to_plain();
        assert!(reply.contains("Later words"), "{reply}");
    }

    #[test]
    fn playhead_hides_partial_text() {
        let facts = facts::streaming();
        let mut dash = dash(&facts);
        let live = PartialText { text: "{\"summary\":\"Thin".to_owned(), ..PartialText::default() };
        let span = facts.attempt_of(2);
        dash.send(Msg::Live { run: RunId::new(RUN), span, text: Some(live) });
        assert!(dash.screen().contains("Thin"));
        dash.text(",");
        assert!(!dash.screen().contains("Thin"), "at the playhead it had not come");
        dash.text("G");
        assert!(dash.screen().contains("Thin"));
    }

    #[test]
    fn a_drag_on_the_scrubber_scrubs() {
        let mut dash = dash(&facts::streaming());
        let row = 32;
        dash.send(Msg::Mouse(Mouse { kind: MouseKind::Down, col: 60, row }));
        let first = shown(&dash).shown_event_count();
        assert!(shown(&dash).is_scrubbed());
        dash.send(Msg::Mouse(Mouse { kind: MouseKind::Drag, col: 20, row: 5 }));
        assert!(shown(&dash).shown_event_count() < first);
        dash.send(Msg::Mouse(Mouse { kind: MouseKind::Drag, col: 119, row }));
        assert!(!shown(&dash).is_scrubbed());
        dash.send(Msg::Mouse(Mouse { kind: MouseKind::Up, col: 119, row }));
        dash.send(Msg::Mouse(Mouse { kind: MouseKind::Drag, col: 20, row }));
        assert!(!shown(&dash).is_scrubbed(), "the button is up");
    }
}

mod inspector {
    use super::*;

    fn target(dash: &Dash) -> (InspectTarget, Tab) {
        let open = shown(dash).inspector().expect("open");
        (open.target, open.tab)
    }

    fn seq_of(facts: &Facts, so: impl Fn(&Event) -> bool) -> Seq {
        facts.log.iter().rev().find(|event| so(event)).expect("such a fact").seq
    }

    #[test]
    fn p_shows_exact_prompt() {
        let facts = facts::streaming();
        let mut dash = dash(&facts);
        dash.text("p");
        assert_eq!(dash.state.context(), Context::Inspector);
        let (InspectTarget::Call(call), Tab::Prompt) = target(&dash) else {
            panic!("a call's prompt")
        };
        let sent = facts.log.iter().find_map(|event| match &event.kind {
            EventKind::CallStarted(started) if event.span == call => Some(started),
            _ => None,
        });
        let sent = sent.expect("the call").prompt.messages.to_vec();
        assert_eq!(prompt(shown(&dash), call), sent);
        dash.press("Esc");
        assert_eq!(dash.state.context(), Context::Run);
    }

    #[test]
    fn prompt_excludes_its_own_reply() {
        let mut facts = facts::streaming();
        let first = facts.call_of(0);
        let follow = facts.ask_after(first, "And if the line is crossed?");
        let mut dash = dash(&facts);
        dash.text("1jjp");
        let own = prompt(shown(&dash), first);
        assert_eq!(own.len(), 2, "its reply is no part of it");
        let said: Vec<_> = prompt(shown(&dash), follow);
        assert_eq!(said.len(), 4);
        assert_eq!(said[..2], own[..]);
        assert_eq!(said[2].role, crate::log::event::MessageRole::Assistant);
        assert_eq!(&*said[3].content, "And if the line is crossed?");
    }

    #[test]
    fn c_traces_answer_to_first_round() {
        let facts = facts::decided();
        let mut dash = dash(&facts);
        let answer = seq_of(&facts, |event| matches!(event.kind, EventKind::AnswerComposed { .. }));
        dash.press("5k Enter");
        assert_eq!(target(&dash).0, InspectTarget::Event(answer));
        let mut way = Vec::new();
        for _ in 0..20 {
            dash.text("c");
            let InspectTarget::Event(seq) = target(&dash).0 else { panic!("a fact") };
            let kind = shown(&dash).event(seq).expect("there").kind.name().to_owned();
            if way.last() == Some(&kind) {
                break;
            }
            way.push(kind);
        }
        assert_eq!(
            way,
            [
                "call.started",
                "round.closed",
                "contribution.accepted",
                "call.started",
                "round.started",
                "round.closed",
                "contribution.accepted",
                "call.started",
                "round.started",
            ]
        );
    }

    #[test]
    fn c_jumps_in_event_list() {
        let facts = facts::decided();
        let mut dash = dash(&facts);
        dash.text("1jjc");
        let page = shown(&dash);
        assert_eq!(page.focus(), Pane::Events);
        let at = page.list().cursor().expect("selected");
        assert!(matches!(page.log().get(at).expect("a fact").kind, EventKind::CallStarted(_)));
    }

    #[test]
    fn inspector_turns_tabs_and_scrolls() {
        let mut dash = dash(&facts::streaming());
        dash.press("1 Enter 3");
        assert_eq!(target(&dash).1, Tab::Raw);
        dash.press("Tab");
        assert_eq!(target(&dash).1, Tab::Timing);
        dash.press("S-Tab G");
        let end = dash.screen();
        dash.text("jjj");
        assert_eq!(dash.screen(), end);
        dash.text("g");
        assert_ne!(dash.screen(), end);
    }

    #[test]
    fn inspector_updates_open_call() {
        let mut facts = facts::streaming();
        let mut dash = dash(&facts);
        dash.press("1 Enter");
        assert_eq!(target(&dash).1, Tab::Reply);
        let live = PartialText { text: "{\"sum".to_owned(), ..PartialText::default() };
        let span = facts.attempt_of(2);
        dash.send(Msg::Live { run: RunId::new(RUN), span, text: Some(live) });
        assert!(dash.redraw);
        assert!(dash.screen().contains("{\"sum"));
        let from = facts.log.len();
        facts.replies(2, "{\"summary\":\"whole\"}");
        more(&mut dash, &facts, from);
        assert!(dash.screen().contains("\"summary\": \"whole\""));
    }

    #[test]
    fn comma_and_dot_step_events() {
        let facts = facts::decided();
        let mut dash = dash(&facts);
        dash.press("5 Enter ,");
        let all = facts.log.len() as u64;
        assert_eq!(target(&dash).0, InspectTarget::Event(Seq(all - 2)));
        dash.text(",,.");
        assert_eq!(target(&dash).0, InspectTarget::Event(Seq(all - 3)));
    }
}

mod out {
    use super::*;

    fn copied(dash: &mut Dash) -> String {
        match dash.asked().pop() {
            Some(Effect::Copy(text)) => text,
            other => panic!("nothing copied: {other:?}"),
        }
    }

    #[test]
    fn y_copies_what_is_selected() {
        let mut dash = dash(&facts::decided());
        dash.text("y");
        assert_eq!(copied(&mut dash), facts::ANSWER);
        dash.text("1jy");
        assert!(copied(&mut dash).starts_with("Demand holds; traffic risk stays medium.\n- "));
        dash.text("5ky");
        assert!(
            copied(&mut dash).contains("answer.composed  finalize  Decision: go with caution.")
        );
    }

    #[test]
    fn capital_y_copies_markdown() {
        let mut dash = dash(&facts::decided());
        dash.text("Y");
        let run = copied(&mut dash);
        assert!(run.starts_with("# Checkout v2: go or no-go\n"));
        assert!(run.contains("| finance_analyst | go | 0.84 |"));
        assert!(run.contains("Decision: **go with caution**."));
        dash.text("1jY");
        assert!(copied(&mut dash).starts_with("**demand_analyst**, round 2: **go** .90\n\n> "));
        dash.press("Enter 3Y");
        let raw = copied(&mut dash);
        assert!(raw.contains("```json\n{"), "{raw}");
    }

    #[test]
    fn e_exports_facts_and_outcome() {
        let facts = facts::decided();
        let mut dash = dash(&facts);
        dash.text("e");
        assert!(!dash.screen().contains("e write"), "only a report is offered");
        let mut asked = dash.asked();
        let Some(Effect::Export(files)) = asked.pop() else { panic!("no export") };
        assert!(asked.is_empty(), "{asked:?}");
        let mut files = files.into_iter().map(|Export { file, contents }| (file, contents));
        let (file, contents) = files.next().expect("facts");
        assert_eq!(file, "r-7f3a.jsonl");
        assert!(matches!(contents, Contents::Events(_)));
        let text = contents.into_text();
        let read: Vec<_> =
            text.lines().map(|line| Event::from_line(line).expect("a fact")).collect();
        let whole: Vec<Event> = facts.log.iter().map(|fact| Event::clone(fact)).collect();
        assert_eq!(read, whole);
        let (file, contents) = files.next().expect("an outcome");
        assert_eq!(file, "r-7f3a.outcome.json");
        let outcome: serde_json::Value = serde_json::from_str(&contents.into_text()).expect("JSON");
        assert_eq!(outcome["final_decision"], "go_with_caution");
        assert!(files.next().is_none(), "the report is of research alone");
    }

    /// What would steer a terminal: C1, bidi, DEL, an invisible letter.
    const HOSTILE: &str = "Demand \u{9b}2J\u{202e}\u{7f}\u{34f}holds";

    /// A run whose seats and answer say what steers a terminal.
    fn hostile() -> Facts {
        let mut facts = facts::decided();
        for fact in &mut facts.log {
            let line = fact.to_line().expect("a line").replace("Demand holds", HOSTILE);
            *fact = Arc::new(Event::from_line(&line).expect("a fact"));
        }
        facts
    }

    #[test]
    fn exported_json_escapes_control_characters() {
        let facts = hostile();
        let mut dash = dash(&facts);
        dash.text("e");
        let Some(Effect::Export(files)) = dash.asked().pop() else { panic!("no export") };
        let texts: Vec<String> = files.into_iter().map(|it| it.contents.into_text()).collect();
        let escaped = "Demand \\u009b2J\\u202e\\u007f\\u034fholds";
        for text in &texts {
            assert!(text.contains(escaped), "{text}");
            assert_eq!(visible_lines(text), *text);
        }
        let read: Vec<_> =
            texts[0].lines().map(|line| Event::from_line(line).expect("a fact")).collect();
        let whole: Vec<Event> = facts.log.iter().map(|fact| Event::clone(fact)).collect();
        assert_eq!(read, whole, "the same to a parser");

        dash.text("1jo");
        let Some(Effect::Page(text)) = dash.asked().pop() else { panic!("nothing to page") };
        assert!(text.contains(escaped), "{text}");
        assert_eq!(visible_lines(&text), text);
    }

    #[test]
    fn o_pages_raw_json() {
        let mut dash = dash(&facts::decided());
        dash.text("5o");
        match dash.asked().pop() {
            Some(Effect::Page(text)) => {
                let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
                assert_eq!(value["kind"], "run.closed");
            }
            other => panic!("{other:?}"),
        }
    }
}

mod pointer {
    use super::*;

    fn click_in(dash: &mut Dash, pane: Pane, col: u16, row: u16) {
        let size = dash.state.size;
        let area = shown(dash).areas(page(size)).pane(pane).expect("shown");
        dash.click(area.x + col, area.y + row);
    }

    #[test]
    fn a_click_focuses_and_selects() {
        let mut dash = dash(&facts::streaming());
        click_in(&mut dash, Pane::Fourth, 5, 3);
        assert_eq!(shown(&dash).focus(), Pane::Fourth);
        assert_eq!(seats(&dash).0.selection(), Selection::Seat(3));
        click_in(&mut dash, Pane::Third, 5, 1);
        assert_eq!(seats(&dash).0.selection(), Selection::Seat(0));
        click_in(&mut dash, Pane::First, 2, 6);
        assert_eq!(seats(&dash).0.selection(), Selection::Seat(3), "the seat on the left");
        click_in(&mut dash, Pane::Events, 9, 0);
        assert!(!shown(&dash).list().follows());
    }

    #[test]
    fn wheel_scrolls_hovered_pane() {
        let mut dash = dash(&facts::streaming());
        let focus = shown(&dash).focus();
        dash.wheel(true, 40, 28);
        assert_eq!(shown(&dash).focus(), focus, "the focus stays");
        assert!(!shown(&dash).list().follows());
        for _ in 0..20 {
            dash.wheel(false, 40, 28);
        }
        assert!(shown(&dash).list().follows(), "at the end it follows again");
    }

    #[test]
    fn tabs_are_clicked() {
        let mut dash = Dash::new(80, 24);
        dash.run(RUN, &facts::streaming().log);
        dash.click(32, 3);
        assert_eq!(shown(&dash).focus(), Pane::Third);
        dash.press("1 Enter");
        dash.click(24, 2);
        assert_eq!(shown(&dash).inspector().map(|open| open.tab), Some(Tab::Raw));
    }
}

mod time {
    use super::*;

    #[test]
    fn only_a_run_that_moves_ticks() {
        for (facts, ticks) in [
            (facts::streaming(), true),
            (facts::pausing(), true),
            (facts::paused(), false),
            (facts::decided(), false),
            (facts::stopped(), false),
        ] {
            assert_eq!(dash(&facts).state.next_tick().is_some(), ticks);
        }
    }

    #[test]
    fn clock_ticks_without_animation() {
        let facts = facts::streaming();
        let mut page = RunPage::new(RunId::new(RUN), Duration::from_millis(2_500));
        page.apply(&facts.log);
        let now = Duration::from_millis(9_730);
        assert_eq!(page.next_tick(now, true), Some(Duration::from_millis(70)));
        assert_eq!(page.next_tick(now, false), Some(Duration::from_millis(770)));
    }

    #[test]
    fn dropped_log_keeps_tally() {
        let facts = facts::decided();
        let mut page = RunPage::new(RunId::new(RUN), Duration::ZERO);
        page.apply(&facts.log);
        page.drop_log();
        assert!(page.is_log_dropped());
        assert_eq!(page.world().tally.events, facts.log.len() as u64);
        assert!(page.log().is_empty());
        let again: Vec<Arc<Event>> = Vec::new();
        page.apply(&again);
    }
}
