//! What a team's or a swarm's run looks like: snapshots of text and styles at three sizes.

use super::{shows, sizes_of};
use crate::engine::Schedule;
use crate::log::event::{
    BoundaryId, EventKind, Initiator, Prompt, Purpose, RunId, SpanId, StepSize, StopReason,
};
use crate::screen::Msg;
use crate::screen::home::{HomePane, preview};
use crate::screen::msg::PartialText;
use crate::screen::state::DisplaySettings;
use crate::support::facts::team;
use crate::support::facts::team::TeamFacts;
use crate::support::screen;
use crate::support::screen::{Dash, shipped};
use crate::words::styled::StyledLine;
use serde_json::json;

fn dash(cols: u16, rows: u16, facts: &TeamFacts) -> Dash {
    let mut dash = Dash::new(cols, rows);
    dash.run("r-90de", &facts.log);
    dash
}

/// An agent says this just now.
fn says(dash: &mut Dash, facts: &TeamFacts, name: &str, text: &str) {
    let at = facts.log.last().map(|event| event.at);
    let live = PartialText { text: text.to_owned(), pieces: 3, first_at: at, last_at: at };
    let (run, span) = (RunId::new("r-90de"), facts.attempt_of(name));
    dash.send(Msg::Live { run, span, text: Some(live) });
}

fn pictures_of(name: &str, facts: &TeamFacts, speaks: Option<(&str, &str)>) {
    for &(cols, rows) in sizes_of(name) {
        let mut dash = dash(cols, rows, facts);
        if let Some((agent, text)) = speaks {
            says(&mut dash, facts, agent, text);
        }
        insta::assert_snapshot!(format!("{name}_{cols}x{rows}"), dash.dump());
    }
}

const SPEAKS: &str = "You were charged twice by mistake: 09:14:02 and 09:14:05, same card, same";

#[test]
fn pictures() {
    pictures_of("swarm", &team::working(), Some(("refunds", SPEAKS)));
    pictures_of("swarm_answered", &team::answered(), None);
    pictures_of("office", &team::office(), Some(("coder", "The folds take")));
}

#[test]
fn a_coordinator_that_has_answered() {
    insta::assert_snapshot!(
        "office_answered_120x36",
        dash(120, 36, &team::office_answered()).screen()
    );
}

#[test]
fn diagrams_of_two_to_twelve_agents() {
    for (agents, hops) in [(2, 5), (5, 9), (12, 20)] {
        let facts = team::desks(agents, hops);
        for &(cols, rows) in sizes_of(&format!("desks_{agents}")) {
            let screen = dash(cols, rows, &facts).screen();
            insta::assert_snapshot!(format!("desks_{agents}_{cols}x{rows}"), screen);
        }
    }
}

#[test]
fn lists_agents_beyond_lanes_in_rows() {
    let facts = team::ring(30, 40);
    for &(cols, rows) in sizes_of("ring_30") {
        insta::assert_snapshot!(
            format!("ring_30_{cols}x{rows}"),
            dash(cols, rows, &facts).screen()
        );
    }
}

#[test]
fn diagram_selects_every_hop_and_follows() {
    for (cols, rows) in [(60, 16), (80, 24), (120, 36)] {
        let mut dash = dash(cols, rows, &team::desks(12, 20));
        assert!(dash.screen().contains("Hops · following"), "{}", dash.screen());
        let mut seen = vec![false; 21];
        dash.text("1g");
        for _ in 0..21 {
            let screen = dash.screen();
            let selected = screen.lines().find_map(|line| line.strip_prefix("│>"));
            let number = selected.and_then(|row| row.split_whitespace().nth(1)?.parse().ok());
            let number: usize = number.unwrap_or_else(|| panic!("a selected hop: {screen}"));
            seen[number - 1] = true;
            dash.text("j");
        }
        assert!(seen.iter().all(|seen| *seen), "{seen:?} at {cols}x{rows}");
        assert!(dash.screen().contains("Hops · G: follow"), "{}", dash.screen());
        dash.text("G");
        assert!(dash.screen().contains("Hops · following"), "{}", dash.screen());
    }
}

#[test]
fn shows_selected_hop_and_agent_whole() {
    let mut dash = dash(120, 36, &team::working());
    dash.text("1gjj");
    let screen = dash.screen();
    assert!(screen.contains("2 Hop 3 ✓ handed over"), "{screen}");
    assert!(screen.contains("hands over: control is passed"), "{screen}");
    insta::assert_snapshot!("hop_120x36", screen);
    dash.text("l");
    let screen = dash.screen();
    assert!(screen.contains("2 Agents") && screen.contains("> refunds"), "{screen}");
    dash.press("Esc");
    let screen = dash.screen();
    assert!(screen.contains("Hops · following") && !screen.contains("> refunds"), "{screen}");
}

#[test]
fn finished_team_shows_outcome() {
    // Below full width the pane is focused; there it is the only one.
    let before = dash(80, 24, &team::office());
    assert!(!before.screen().contains("Outcome"), "{}", before.screen());
    let screen = dash(80, 24, &team::office_answered()).screen();
    for part in [
        "2 Outcome ✓ DONE",
        "✓ answered by project_manager",
        "hops       5: the start, 4 consultations",
    ] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
}

#[test]
fn stopped_team_outcome_advises_fix() {
    for (scenario, parts) in [
        ("ping-pong", ["✗ repeated handoffs in accounts", "fix their instructions"]),
        ("runaway", ["✗ handoff limit in brand", "Raise agents.<swarm>.max_handoffs"]),
    ] {
        let events = screen::facts(scenario, &[], &[], Schedule::default());
        let mut dash = Dash::new(80, 24);
        dash.run("r-90de", &events);
        let screen = dash.screen();
        for part in
            parts.into_iter().chain(["2 Outcome ✗ STOPPED", "best partial answer", "refused "])
        {
            assert!(screen.contains(part), "{part}: {screen}");
        }
        if scenario == "ping-pong" {
            insta::assert_snapshot!("ping-pong_stopped_80x24", screen);
        }
    }
}

#[test]
fn follow_up_message_has_own_outcome() {
    let mut dash = dash(80, 24, &team::answered());
    assert!(!dash.screen().contains("of this conversation"), "{}", dash.screen());
    let mut facts = team::follow_up();
    let text = "On the first of May.";
    facts.answers("refunds", text, &[]).done("refunds", text).answered("refunds", text);
    dash.run("r-90df", &facts.log);
    let screen = dash.screen();
    for part in ["2 Outcome ✓ DONE", text, "2 of this conversation", "hops       1"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
}

#[test]
fn transcript_text_clears_frame() {
    for (cols, rows) in [(80, 24), (120, 36)] {
        let mut dash = dash(cols, rows, &team::answered());
        dash.text("4");
        let screen = dash.screen();
        let lines: Vec<&str> = screen.lines().collect();
        let from = lines.iter().position(|line| line.contains("4 Transcript ·")).expect("the pane");
        let rows = lines[from + 1..].iter().take_while(|line| line.starts_with('│'));
        for row in rows {
            assert!(row.trim_end_matches(['│', '↑', '↓']).ends_with(' '), "{row}");
        }
    }
}

/// Agents are behind the gateway like tools, but the screen does not show them as tools.
#[test]
fn run_preview_lists_agents_as_agents() {
    let facts = screen::facts("support-swarm", &[], &[], Default::default());
    let mut dash = Dash::new(120, 36);
    dash.run("r-90de", &facts);
    dash.state.home.preview_source = HomePane::Runs;
    let items = preview::items(&dash.state).lines;
    let under = |label: &str| -> Vec<String> {
        let from = items.iter().skip_while(|item| item.label.as_deref() != Some(label));
        let goes_on =
            |(at, item): &(usize, &StyledLine)| *at == 0 || item.label.as_deref() == Some("");
        from.enumerate().take_while(goes_on).map(|(_, item)| item.text().into_owned()).collect()
    };
    let agents = under("agents");
    assert!(!agents.iter().any(|line| line.starts_with("support ")), "the root: {agents:?}");
    for line in ["triage 1 turn", "billing 1 turn", "fraud 1 turn", "refunds 1 turn"] {
        assert!(agents.iter().any(|it| it == line), "{line}: {agents:?}");
    }
    let tools = under("breakers");
    let tools: Vec<&str> = tools.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(tools, ["block_token", "find_charges", "get_policy", "start_refund"]);
}

#[test]
fn before_anything_happened() {
    let facts = TeamFacts::desk(team::session(team::CHARGED, "triage"));
    insta::assert_snapshot!("begun_120x36", dash(120, 36, &facts).screen());
}

#[test]
fn ascii_screen_is_all_ascii() {
    let settings = DisplaySettings { ascii: true, ..DisplaySettings::default() };
    for (name, facts) in [("swarm", team::working()), ("office", team::office())] {
        let mut dash = Dash::over(120, 36, shipped(), settings.clone());
        dash.run("r-90de", &facts.log);
        let screen = dash.screen();
        assert!(screen.is_ascii(), "{screen}");
        if name == "swarm" {
            insta::assert_snapshot!("ascii_swarm_120x36", screen);
        }
        for key in ["m", "i"] {
            dash.text(key);
            let screen = dash.screen();
            assert!(screen.is_ascii(), "{screen}");
            dash.press("Esc");
        }
    }
}

#[test]
fn what_came_before_stands_above() {
    insta::assert_snapshot!("follow_up_120x36", dash(120, 36, &team::follow_up()).dump());
}

#[test]
fn each_pane_alone() {
    for (pane, name) in [(2, "agents"), (3, "calls"), (4, "transcript"), (5, "events")] {
        let mut dash = dash(80, 24, &team::working());
        dash.text(&pane.to_string());
        insta::assert_snapshot!(format!("pane_{name}_80x24"), dash.screen());
    }
    let mut small = dash(60, 16, &team::working());
    insta::assert_snapshot!("pane_hops_60x16", small.screen());
    small.text("4");
    shows(
        &small,
        &[
            "─ 4 Transcript · following ↓ ─",
            "│ 00:03.7 fraud   The risk is low: .08.                    ↑",
            "│ 00:04.2 billing ⊘ handoff to fraud refused: repetitive   │",
            "│                   handoff detected ",
            "│ 00:04.8 billing → refunds: duplicate confirmed           │",
            "│ 00:04.8 refunds ▌ ",
        ],
    );
}

#[test]
fn members_of_a_swarm() {
    let mut dash = dash(120, 36, &team::working());
    dash.press("mG Space");
    insta::assert_snapshot!("members_120x36", dash.dump());
}

#[test]
fn a_model_call_whole() {
    let mut dash = dash(120, 36, &team::working());
    dash.text("1gj").text("p");
    insta::assert_snapshot!("prompt_120x36", dash.screen());
    dash.text("2");
    insta::assert_snapshot!("reply_120x36", dash.screen());
}

#[test]
fn call_tree_folds_and_unfolds() {
    let mut dash = dash(120, 36, &team::working());
    let tool = |dash: &Dash| {
        let screen = dash.screen();
        screen.lines().find(|line| line.contains("✓ ↳ charges   ")).map(str::to_owned)
    };
    // What has ended keeps its rows until a person folds them away.
    let row = tool(&dash).expect("its tool");
    assert!(row.contains("0.10s"), "{row}");
    dash.text("3gjh");
    assert_eq!(tool(&dash), None);
    dash.text("l");
    assert!(tool(&dash).is_some(), "{}", dash.screen());
}

#[test]
fn transcript_scrolls_by_line_and_follows() {
    let mut dash = dash(120, 36, &team::answered());
    assert!(dash.screen().contains("Transcript · following"), "{}", dash.screen());
    dash.text("4g");
    let screen = dash.screen();
    assert!(screen.contains("Transcript · G: follow"), "{screen}");
    assert!(screen.contains(">00:00.0 you"), "{screen}");
    let mut seen = 0;
    for _ in 0..40 {
        dash.text("j");
        seen += usize::from(dash.screen().contains(">00:06.2 refunds"));
    }
    assert!(seen > 0, "every line is reached");
    dash.text("k").text("G");
    assert!(dash.screen().contains("Transcript · following"), "{}", dash.screen());
}

#[test]
fn transcript_marks_stand_beside_text() {
    let mut dash = dash(60, 16, &team::working());
    dash.text("4gG");
    let screen = dash.screen();
    let marked = screen.lines().find(|line| line.contains('↑')).expect("there is more above");
    assert_eq!(marked.chars().position(|c| c == '↑'), Some(59), "{screen}");
    dash.text("g");
    let screen = dash.screen();
    let marked: Vec<_> = screen.lines().filter(|line| line.ends_with('↓')).collect();
    assert_eq!(marked.len(), 1, "{screen}");
    assert_eq!(marked[0].chars().count(), 60, "{screen}");
}

#[test]
fn click_selects_any_team_item() {
    let mut dash = dash(120, 36, &team::working());
    let find = |dash: &Dash, text: &str| {
        let screen = dash.screen();
        let row = screen.lines().position(|line| line.contains(text)).expect("on the screen");
        let line = screen.lines().nth(row).expect("its row");
        let col = line.split(text).next().expect("before it").chars().count();
        (col as u16, row as u16)
    };
    let (col, row) = find(&dash, "✓ fraud");
    dash.click(col, row);
    assert!(dash.screen().contains(" > fraud"), "{}", dash.screen());
    let (col, row) = find(&dash, "rule out testing ");
    dash.click(col, row);
    assert!(dash.screen().contains("│>✓   3 00:02"), "{}", dash.screen());
    let (col, row) = find(&dash, "1.2s  handed over");
    dash.click(col, row);
    assert!(dash.screen().contains("│> ✓ → fraud"), "{}", dash.screen());
    let (col, row) = find(&dash, "The risk is low");
    dash.click(col, row);
    assert!(dash.screen().contains("│>00:03.7 fraud"), "{}", dash.screen());
}

#[test]
fn filters_facts_by_agent_with_causes() {
    let mut dash = dash(120, 36, &team::working());
    dash.press("'/agent == \"fraud\"' Enter");
    let screen = dash.screen();
    assert!(screen.contains("54 events · 9 shown"), "{screen}");
    dash.press("Esc / C-u handoff.refused Enter gc");
    let screen = dash.screen();
    let selected = screen.lines().find(|line| line.starts_with("│>")).expect("a selected fact");
    assert!(selected.contains("call.answered") && selected.contains("billing"), "{selected}");
}

#[test]
fn unused_keys_explain_themselves() {
    let mut dash = dash(120, 36, &team::office());
    dash.text("B");
    assert!(dash.screen().contains("No breakpoint here"), "{}", dash.screen());
    dash.text("i");
    assert!(
        dash.screen().contains("This run's settings are not known: n starts a new run."),
        "{}",
        dash.screen()
    );
}

#[test]
fn overflowing_members_are_marked_and_reachable() {
    let mut dash = dash(60, 16, &team::working());
    dash.text("m");
    let screen = dash.screen();
    let marked = screen.lines().find(|line| line.ends_with('↓')).expect("there are more below");
    assert_eq!(marked.chars().count(), 60, "{screen}");
    assert!(!screen.contains("lawyer"), "{screen}");
    dash.text("G");
    let screen = dash.screen();
    assert!(screen.contains("lawyer"), "{screen}");
    assert!(screen.lines().any(|line| line.ends_with('↑')), "{screen}");
    assert!(!screen.lines().any(|line| line.ends_with('↓')), "{screen}");
}

#[test]
fn working_team_offers_own_keys_first() {
    let mut dash = dash(80, 24, &team::working());
    let keys = |dash: &Dash| dash.screen().lines().last().expect("the key row").to_owned();
    for offer in ["Tab pane", "m members", "i message"] {
        assert!(keys(&dash).contains(offer), "{}", keys(&dash));
    }
    assert!(!keys(&dash).contains("n new run"), "{}", keys(&dash));
    dash.run("r-90df", &team::answered().log);
    assert!(keys(&dash).contains("n new run"), "{}", keys(&dash));
}

#[test]
fn header_counts_consultations_and_coming_pause() {
    let mut facts = team::office();
    let consulted = |dash: &Dash| dash.screen().lines().next().expect("a header").to_owned();
    let dash_before = dash(120, 36, &facts);
    assert!(consulted(&dash_before).contains("consultations"), "{}", consulted(&dash_before));
    let step = StepSize::Round;
    let boundary = BoundaryId::new("ask:1:pm");
    facts.add(SpanId::RUN, EventKind::Stepped { step, boundary, paused_ms: 0 });
    let screen = dash(120, 36, &facts).screen();
    assert!(screen.contains("will pause at the next round"), "{screen}");
    facts.add(SpanId::RUN, EventKind::Resumed { by: Initiator::You, paused_ms: 0 });
    assert!(!dash(120, 36, &facts).screen().contains("will pause at the next round"));
}

#[test]
fn playhead_warning_clears_at_present() {
    let mut dash = dash(120, 36, &team::working());
    dash.text(",").press("mG Space");
    assert!(
        dash.screen().contains("This acts on the run as it is now, not at the playhead."),
        "{}",
        dash.screen()
    );
    dash.press("Esc G");
    assert!(
        !dash.screen().contains("This acts on the run as it is now, not at the playhead."),
        "{}",
        dash.screen()
    );
}

#[test]
fn overflowing_hop_labels_leave_ellipsis() {
    for (agents, hops) in [(4, 9), (7, 6), (12, 20), (30, 40)] {
        let dash = dash(60, 16, &team::ring(agents, hops));
        let screen = dash.screen();
        let labels = screen.lines().rev().nth(2).expect("the labels");
        // Neighbouring names follow each other, or a mark is between them.
        let names = labels.replace('→', " ");
        let mut last: Option<usize> = None;
        for word in names.split_whitespace() {
            match word.strip_prefix('a').and_then(|number| number.parse::<usize>().ok()) {
                Some(number) => {
                    if let Some(last) = last {
                        assert_eq!(number, last % agents + 1, "{labels}");
                    }
                    last = Some(number);
                }
                None => last = None,
            }
        }
        assert!(labels.contains('…'), "{labels}");
    }
}

#[test]
fn wordless_result_shows_only_name() {
    let mut facts = TeamFacts::desk(team::session(team::CHARGED, "triage"));
    let asked = |order: u64| json!({ "order": order });
    facts.after(30).hop("triage", None);
    facts.says("triage", 100, "Let me look.", &[("charges", asked(1)), ("charges", asked(2))]);
    facts.tool("triage", "charges", asked(1), json!(""));
    let (said, tool) = (facts.call_of("triage"), "charges");
    let parent = facts.run_of("triage");
    let purpose =
        Purpose::Tool { agent: "triage".into(), tool: tool.into(), requested_by: said, index: 1 };
    let call = facts.call_starts(parent, tool, purpose, Prompt::default(), None);
    facts.add(call, EventKind::CallFailed { attempts: 1, reason: StopReason::Cancelled });
    let mut dash = dash(80, 24, &facts);
    dash.text("4");
    let screen = dash.screen();
    let rows: Vec<&str> = screen.lines().map(|row| row.trim_matches(['│', ' '])).collect();
    assert!(rows.iter().any(|row| row.ends_with("✓ charges")), "{screen}");
    assert!(rows.iter().any(|row| row.ends_with("– charges")), "{screen}");
}

#[test]
fn separate_consultations_form_no_chain() {
    let mut events = screen::facts("nested-swarm", &[], &[], Schedule::default());
    // Before its end: then the row has the verdict.
    events.truncate(screen::until(&events, |kind| matches!(kind, EventKind::RunClosed(_))) - 1);
    let mut dash = Dash::new(120, 36);
    dash.run("r-90de", &events);
    let screen = dash.screen();
    assert!(screen.contains("incident_lead ⇄ diagnosis x2, status_writer"), "{screen}");
}

#[test]
fn the_answer_is_shown_once() {
    let facts = team::office_answered();
    let mut dash = dash(120, 36, &facts);
    let answer = |dash: &Dash| {
        let page = dash.state.visible_run().expect("a run");
        page.world().progress.answer.clone().expect("an answer")
    };
    let answer = answer(&dash);
    let first: String = answer.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    let screen = dash.screen();
    assert!(screen.contains("answer: see Outcome"), "{screen}");
    let above = screen.split("5 Events").next().expect("the panes");
    assert_eq!(above.matches(&first).count(), 1, "{screen}");
    // Copied is the answer itself.
    dash.press("4 Up Up");
    assert!(dash.screen().contains("answer: see Outcome"), "{}", dash.screen());
}

#[test]
fn call_tree_always_shows_root() {
    let facts = team::office_answered();
    for rows in [32, 36] {
        let mut dash = dash(120, rows, &facts);
        let pane = |dash: &Dash| {
            let screen = dash.screen();
            let start = screen.lines().position(|line| line.contains("3 Call tree"));
            let row = screen.lines().nth(start.expect("the tree") + 1).expect("a row").to_owned();
            (row, screen)
        };
        let root = dash.state.visible_run().expect("a run").world().agents().expect("agents");
        let root = root.plan.root.clone().expect("a root").to_string();
        let (row, screen) = pane(&dash);
        assert!(row.contains(&root), "{rows}: {screen}");
        dash.text("3");
        for _ in 0..9 {
            dash.press("Up");
            let (row, screen) = pane(&dash);
            assert!(row.contains(&root), "{rows}: {screen}");
        }
    }
}
