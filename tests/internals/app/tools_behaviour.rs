//! What keys and clicks do in the faces of an orchestrator and of the tools: what they ask of the
//! run, and that nothing is shown before its fact has come back.

use std::sync::Arc;

use crate::log::event::command::BreakerOverride;
use crate::log::event::{
    BreakerStage, Command, Elapsed, Event, EventKind, Initiator, LimitChange, RunId, Seq, SpanId,
};
use crate::scenario::spec::tool::{FaultKind, InjectedFault};
use crate::screen::run::inspector::Tab;
use crate::screen::run::views::OwnView;
use crate::screen::run::views::orchestrator::TaskSubject;
use crate::screen::run::views::orchestrator::waterfall::WaterfallRow;
use crate::screen::{Effect, Msg};
use crate::support::facts;
use crate::support::facts::tools;
use crate::support::facts::tools::ToolFacts;
use crate::support::screen::Dash;

fn dash(facts: &ToolFacts) -> Dash {
    let mut dash = Dash::new(120, 36);
    dash.run("r-81c2", &facts.log);
    dash
}

/// The one command that was asked for since the last time.
fn command(dash: &mut Dash) -> Command {
    let mut effects = dash.asked();
    match (effects.pop(), effects.is_empty()) {
        (Some(Effect::Command { run, command }), true) => {
            assert_eq!(run.as_str(), "r-81c2");
            command
        }
        (last, _) => panic!("not one command: {effects:?} {last:?}"),
    }
}

fn said(dash: &Dash) -> String {
    dash.state.notices.current().map(|notice| notice.text.clone()).unwrap_or_default()
}

/// A further fact comes from the run.
fn comes(dash: &mut Dash, facts: &ToolFacts, kind: EventKind) {
    let at = facts.log.last().map_or(Elapsed::default(), |event| event.at);
    let seq = Seq(dash.state.visible_run().map_or(0, |page| page.log().len()) as u64);
    let event = Arc::new(Event { seq, at, span: SpanId::RUN, kind });
    dash.send(Msg::Events { run: RunId::new("r-81c2"), events: vec![event] });
}

#[test]
fn tools_overlay_any_pattern() {
    let mut dash = dash(&tools::working());
    let face = |dash: &Dash| {
        let page = dash.state.visible_run().expect("a run");
        page.views.tabs(page)[0]
    };
    assert_eq!(face(&dash), "Waterfall");
    dash.text("t");
    assert_eq!(face(&dash), "Breakers");
    dash.press("Esc");
    assert_eq!(face(&dash), "Waterfall", "Esc closes the tools and leaves the run");
    dash.text("tt");
    assert_eq!(face(&dash), "Waterfall");

    let mut storm = self::dash(&tools::brownout(true));
    assert_eq!(face(&storm), "Breakers", "tools are what a resilience run is about");
    storm.text("t");
    assert_eq!(face(&storm), "Breakers");

    let mut table = Dash::new(120, 36);
    table.run("r-7f3a", &facts::streaming().log);
    assert_eq!(face(&table), "Round table");
    let before = table.screen();
    table.text("t");
    assert_eq!(face(&table), "Breakers");
    assert!(
        table.screen().contains("No tools: the scenario names none."),
        "an empty panel says why"
    );
    table.press("Esc");
    assert_eq!(table.screen(), before, "the table is as it was");
}

#[test]
fn slot_change_shows_after_fact() {
    let facts = tools::working();
    let mut dash = dash(&facts);
    dash.text("+");
    assert_eq!(command(&mut dash), Command::SetParallel { max_parallel: 3, by: Initiator::You });
    assert!(dash.screen().contains("●● 2/2"), "nothing is shown that has not happened");
    comes(&mut dash, &facts, EventKind::ConcurrencyChanged { max_parallel: 3, by: Initiator::You });
    assert!(dash.screen().contains("●●○ 2/3"));
    dash.text("-");
    assert_eq!(command(&mut dash), Command::SetParallel { max_parallel: 2, by: Initiator::You });
    comes(&mut dash, &facts, EventKind::ConcurrencyChanged { max_parallel: 1, by: Initiator::You });
    dash.text("-");
    assert!(dash.asked().is_empty(), "one is the least");
}

#[test]
fn a_breaker_is_moved_by_hand() {
    for (key, action) in [
        ("P", BreakerOverride::Trip),
        ("O", BreakerOverride::Hold),
        ("C", BreakerOverride::Reset),
        ("D", BreakerOverride::Disable),
    ] {
        let mut dash = dash(&tools::brownout(true));
        dash.text(key);
        let tool = "vendor".into();
        assert_eq!(
            command(&mut dash),
            Command::Breaker { tool, action, by: Initiator::You },
            "{key}"
        );
    }
    // The tool that is selected is the one that is meant.
    let facts = tools::brownout(true);
    let mut dash = dash(&facts);
    dash.text("jO");
    let tool = "search".into();
    let hold = Command::Breaker { tool, action: BreakerOverride::Hold, by: Initiator::You };
    assert_eq!(command(&mut dash), hold);
    assert!(dash.screen().contains("✓ search closed"), "nothing is shown that has not happened");
    let kind = EventKind::BreakerChanged {
        tool: "search".into(),
        to: BreakerStage::Held,
        cause: crate::log::event::BreakerCause::Manual,
        open_for_ms: None,
        by: Some(Initiator::You),
        counted: None,
    };
    comes(&mut dash, &facts, kind);
    assert!(dash.screen().contains("⊘ search HELD"), "{}", dash.screen());
}

#[test]
fn tool_keys_explain_refusal() {
    let mut dash = dash(&tools::working());
    dash.text("O");
    assert!(dash.asked().is_empty());
    assert!(said(&dash).contains("This key works on a tool: press t first."), "{}", said(&dash));
    // The model of this run has no breaker and no bulkhead.
    dash.text("tgO");
    assert!(dash.asked().is_empty());
    assert_eq!(said(&dash), "llm has no breaker.");
    dash.text("+");
    assert_eq!(said(&dash), "llm has no bulkhead: no limit to change.");

    let mut over = self::dash(&tools::critical());
    over.text("t!");
    assert!(over.state.overlays.is_empty());
    assert!(said(&over).contains("has ended"), "{}", said(&over));
}

#[test]
fn resilience_run_explains_unused_keys() {
    for (key, says) in [("B", "No breakpoint here"), ("t", "this run is about them")] {
        let mut dash = dash(&tools::brownout(true));
        dash.text(key);
        assert!(dash.asked().is_empty());
        assert!(said(&dash).contains(says), "{key}: {}", said(&dash));
    }
}

#[test]
fn key_row_offers_tool_moves() {
    let dash = dash(&tools::brownout(true));
    assert!(dash.screen().contains("j k move"), "{}", dash.screen());
}

#[test]
fn drawer_injects_and_removes_faults() {
    let facts = tools::brownout(true);
    let mut dash = dash(&facts);
    dash.text("!");
    let screen = dash.screen();
    assert!(screen.contains("Faults and limits of vendor, live"), "{screen}");
    assert!(screen.contains("[x] errors      30 % 503"), "what is injected is marked: {screen}");
    dash.press("Space");
    let (tool, fault) = ("vendor".into(), InjectedFault::Latency { ms: 2_000 });
    assert_eq!(command(&mut dash), Command::Inject { tool, fault, by: Initiator::You });
    assert!(dash.screen().contains("[ ] latency"), "not before its fact");
    comes(
        &mut dash,
        &facts,
        EventKind::FaultInjected { tool: "vendor".into(), fault, by: Initiator::You },
    );
    assert!(dash.screen().contains("[x] latency     +2.0s"));
    dash.text("+");
    let (tool, more) = ("vendor".into(), InjectedFault::Latency { ms: 2_500 });
    assert_eq!(command(&mut dash), Command::Inject { tool, fault: more, by: Initiator::You });
    dash.press("Space");
    let (tool, kind) = ("vendor".into(), FaultKind::Latency);
    assert_eq!(command(&mut dash), Command::RemoveFault { tool, kind, by: Initiator::You });
    // Below the faults stand the limits.
    dash.text("Gk+");
    let (tool, change) = ("vendor".into(), LimitChange::MaxInFlight(9));
    assert_eq!(command(&mut dash), Command::SetLimit { tool, change, by: Initiator::You });
    dash.text("P");
    let (tool, action) = ("vendor".into(), BreakerOverride::Trip);
    assert_eq!(command(&mut dash), Command::Breaker { tool, action, by: Initiator::You });
    dash.text("l");
    assert!(dash.screen().contains("Faults and limits of search"), "l goes to the tool beside");
    dash.press("Esc");
    assert!(dash.state.overlays.is_empty());
}

#[test]
fn playhead_commands_act_on_present() {
    let mut dash = dash(&tools::brownout(true));
    dash.text(",,,!");
    assert!(
        dash.screen().contains("The run as it is now, not at the playhead."),
        "{}",
        dash.screen()
    );
    dash.press("Esc P");
    assert!(matches!(command(&mut dash), Command::Breaker { action: BreakerOverride::Trip, .. }));
    assert!(said(&dash).contains("the run as it is now, not at the playhead"), "{}", said(&dash));
    for keys in ["+", "! ", "!jj "] {
        dash.press("Esc").text(keys);
        assert!(matches!(dash.asked()[..], [Effect::Command { .. }]), "{keys}");
        assert!(
            said(&dash).contains("the run as it is now, not at the playhead"),
            "{keys}: {}",
            said(&dash)
        );
    }
}

#[test]
fn quick_steps_add_up() {
    let facts = tools::brownout(true);
    let mut dash = dash(&facts);
    let most = |command| match command {
        Command::SetLimit { change: LimitChange::MaxInFlight(most), .. } => most,
        other => panic!("{other:?}"),
    };
    let press = |dash: &mut Dash, key: &str| {
        dash.text(key);
        most(command(dash))
    };
    assert_eq!(["+", "+", "-", "+", "+"].map(|key| press(&mut dash, key)), [9, 10, 9, 10, 11]);

    dash.press("! Space");
    assert!(matches!(
        command(&mut dash),
        Command::Inject { fault: InjectedFault::Latency { ms: 2_000 }, .. }
    ));
    dash.text("++");
    let asked = dash.asked();
    let last = InjectedFault::Latency { ms: 3_000 };
    assert!(
        matches!(&asked[..], [_, Effect::Command { command: Command::Inject { fault, .. }, .. }] if *fault == last),
        "{asked:?}"
    );
    dash.press("Space");
    assert!(matches!(command(&mut dash), Command::RemoveFault { .. }), "it is taken back");

    let facts = tools::working();
    let mut dash = self::dash(&facts);
    dash.text("++");
    dash.asked();
    comes(&mut dash, &facts, EventKind::ConcurrencyChanged { max_parallel: 3, by: Initiator::You });
    dash.text("+");
    assert_eq!(command(&mut dash), Command::SetParallel { max_parallel: 5, by: Initiator::You });
    for max_parallel in [4, 5, 1] {
        comes(
            &mut dash,
            &facts,
            EventKind::ConcurrencyChanged { max_parallel, by: Initiator::You },
        );
    }
    dash.text("+");
    let next = Command::SetParallel { max_parallel: 2, by: Initiator::You };
    assert_eq!(command(&mut dash), next, "what has come is not waited for");
}

#[test]
fn waterfall_selects_and_inspects_rows() {
    let mut dash = dash(&tools::working());
    let page = |dash: &Dash| -> (Option<WaterfallRow>, TaskSubject) {
        let page = dash.state.visible_run().expect("a run");
        match &page.views.own {
            OwnView::Orchestrator(view) => (view.waterfall_row(), view.subject(page)),
            other => panic!("no waterfall: {other:?}"),
        }
    };
    assert_eq!(page(&dash), (None, TaskSubject::Task(1)), "who goes on is followed");
    dash.text("j");
    assert_eq!(page(&dash).0, Some(WaterfallRow::Task(1)), "the first step takes what is shown");
    dash.text("gj");
    assert_eq!(page(&dash), (Some(WaterfallRow::Task(0)), TaskSubject::Task(0)));
    dash.press("Enter");
    let screen = dash.screen();
    assert!(screen.contains("1 Args") && !screen.contains("1 Prompt"), "a tool has no prompt");
    assert!(screen.contains("\"revenue_usd\": 182400"), "the result is laid out: {screen}");
    dash.text("1");
    assert!(dash.screen().contains("\"region\": \"us\""), "{}", dash.screen());
    dash.press("Esc gp");
    let open = dash.state.visible_run().and_then(|page| page.inspector()).expect("open");
    assert_eq!(open.tab, Tab::Prompt);
    assert!(dash.screen().contains("You plan the work."), "the plan's call has a prompt");
    dash.press("Esc Esc");
    assert_eq!(page(&dash).0, None, "Esc follows again");
    // A click does the same: the axis is in the first row of the pane.
    dash.click(10, 6);
    assert_eq!(page(&dash).0, Some(WaterfallRow::Task(0)));
}

#[test]
fn refusals_and_stand_ins_are_inspected() {
    let mut dash = dash(&tools::reported());
    dash.press("gjjj Enter");
    let screen = dash.screen();
    for part in ["fallback ────", "last good value (41.0s old)", "\"mug\"", "status"] {
        assert!(screen.contains(part) || part == "status", "{part}: {screen}");
    }
    dash.press("Esc j Enter");
    let screen = dash.screen();
    assert!(screen.contains("was not made: weather_worker switched off"), "{screen}");
    assert!(screen.contains("switch it on"), "and what to do about it: {screen}");
}

#[test]
fn filter_finds_tool_and_task() {
    let mut dash = dash(&tools::working());
    let found = |dash: &Dash| {
        let page = dash.state.visible_run().expect("a run");
        page.list().len(page.log())
    };
    dash.press("/ 'task == \"t2\"' Enter");
    assert_eq!(found(&dash), 6, "{}", dash.screen());
    dash.press("Esc /");
    for _ in 0..20 {
        dash.press("Backspace");
    }
    dash.press("'tool == \"inventory_worker\" && kind == \"call.started\"' Enter");
    assert_eq!(found(&dash), 1, "{}", dash.screen());
}

#[test]
fn ten_thousand_tasks_are_one_window() {
    let facts = tools::many(10_000);
    let mut dash = dash(&facts);
    let screen = dash.screen();
    assert!(screen.contains("of 10003"), "{screen}");
    dash.text("G");
    assert!(dash.screen().contains("report"), "{}", dash.screen());
}

#[test]
fn copies_are_of_what_is_selected() {
    let mut dash = dash(&tools::reported());
    dash.text("gjjjy");
    match dash.asked().as_slice() {
        [Effect::Copy(text)] => {
            assert!(text.contains("inventory_worker") && text.contains("critical"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    dash.text("Y");
    match dash.asked().as_slice() {
        [Effect::Copy(text)] => {
            assert!(text.contains("| t3 | inventory_worker | 1 |"), "{text}");
            assert!(text.contains("## Tools") && text.contains("## Answer"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    dash.text("ty");
    match dash.asked().as_slice() {
        [Effect::Copy(text)] => assert!(text.starts_with("sales_worker (fixture)"), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn long_tool_name_keeps_agent_number() {
    let facts = tools::brownout(true);
    let mut dash = Dash::new(62, 24);
    dash.run("r-81c2", &facts.log).text("L");
    let screen = dash.screen();
    assert!(screen.contains("agent 19 "), "{screen}");
}
