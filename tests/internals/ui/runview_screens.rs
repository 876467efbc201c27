//! What a run looks like: snapshots of text and styles at three sizes.

use super::{shows, sizes_of};
use std::sync::Arc;
use std::time::Duration;

use ratatui::style::Modifier;

use crate::log::event::{Event, EventKind, Initiator, Purpose, RunId, SpanId, World};
use crate::screen::Msg;
use crate::screen::msg::PartialText;
use crate::screen::theme::Theme;
use crate::support::facts;
use crate::support::facts::{COMING, Facts};
use crate::support::screen::Dash;
use crate::words::headless;
use crate::words::page::RunPageWriter;
use crate::words::sentence::sentence;
use crate::words::styled::StyledLine;

fn dash(cols: u16, rows: u16, log: &[Arc<Event>]) -> Dash {
    let mut dash = Dash::new(cols, rows);
    dash.run("r-7f3a", log);
    dash
}

/// The story in its second round, with what the risk analyst has said so far.
fn streaming(cols: u16, rows: u16) -> Dash {
    let facts = facts::streaming();
    let mut dash = dash(cols, rows, &facts.log);
    let live = PartialText { text: COMING.to_owned(), pieces: 31, first_at: None, last_at: None };
    let span = facts.attempt_of(2);
    dash.send(Msg::Live { run: RunId::new("r-7f3a"), span, text: Some(live) });
    dash.after(Duration::from_millis(1_900));
    dash
}

fn pictures_of(name: &str, dash_of: impl Fn(u16, u16) -> Dash) {
    for &(cols, rows) in sizes_of(name) {
        let dash = dash_of(cols, rows);
        insta::assert_snapshot!(format!("{name}_{cols}x{rows}"), dash.dump());
    }
}

fn of(facts: fn() -> Facts) -> impl Fn(u16, u16) -> Dash {
    move |cols, rows| dash(cols, rows, &facts().log)
}

#[test]
fn pictures() {
    type Story = fn() -> Facts;
    let stories: [(&str, Story); 6] = [
        ("waiting", facts::waiting),
        ("paused", facts::paused),
        ("decided", facts::decided),
        ("nine_seats", || facts::seats(9)),
        ("asked_again", facts::asked_again),
        ("over_budget", facts::over_budget),
    ];
    for (name, story) in stories {
        pictures_of(name, of(story));
    }
    pictures_of("streaming", streaming);
}

#[test]
fn each_pane_alone() {
    for (pane, name) in
        [(1, "table"), (2, "speaker"), (3, "stances"), (4, "gateway"), (5, "events")]
    {
        let mut dash = streaming(80, 24);
        dash.text(&pane.to_string());
        insta::assert_snapshot!(format!("pane_{name}_80x24"), dash.screen());
    }
    let mut dash = streaming(120, 36);
    dash.text("3z");
    insta::assert_snapshot!("zoomed_120x36", dash.screen());
}

#[test]
fn two_panes_share_narrow_space() {
    let mut dash = streaming(100, 34);
    insta::assert_snapshot!("stacked_100x34", dash.screen());
    dash.text("24");
    shows(
        &dash,
        &[
            "┌─ 2 risk_analyst · round 2 ● speaking ─ 1 Round table ─",
            "│ before the start▌ ",
            "│ attempt 1 ✗ 503 ─0.30s─ attempt 2 ● 2.3s ",
            "│ received 253 B   scripted ",
            "│ p view prompt ",
            "├─ 4 Calls ─ 3 Stances ─",
            "│ ✓ accepted  demand_analyst  1 attempt   1.6s  812 in, 96 out   first token 0.18s   2 actions     │",
            "│ ● speaking  risk_analyst    4.7s, attempt 2 ",
            "│ rounds 2/3   messages 6/12   seconds 7/40   retries 1 ",
        ],
    );
}

#[test]
fn breakpoints_are_seen() {
    let mut facts = facts::streaming();
    for at in ["round:3", "finalize"] {
        let at = crate::log::event::BoundaryId::new(at);
        let kind = EventKind::BreakpointChanged { at, set: true };
        facts.add(SpanId::RUN, kind);
    }
    let dash = dash(120, 36, &facts.log);
    let screen = dash.screen();
    let track = screen.lines().nth(1).expect("a track");
    assert!(track.contains("R3 ○ ◉") && track.contains("◉ brief"), "{track}");
}

/// The columns of the bars in the two header rows.
fn bars(dash: &Dash) -> Vec<(usize, usize)> {
    let screen = dash.screen();
    let rows = screen.lines().take(2);
    rows.flat_map(|row| {
        let cells: Vec<char> = row.chars().collect();
        let is_bar = |at: usize| cells.get(at).is_some_and(|cell| "▰▱━╸╌".contains(*cell));
        let starts = (0..cells.len()).filter(|at| is_bar(*at) && (*at == 0 || !is_bar(at - 1)));
        starts
            .map(|start| (start, (start..).take_while(|at| is_bar(*at)).count()))
            .collect::<Vec<_>>()
    })
    .collect()
}

#[test]
fn bars_keep_width_during_run() {
    let log = facts::decided().log;
    for cols in [120, 160, 200] {
        let widths = |dash: &Dash| {
            let bars = bars(dash);
            let end = bars.last().map(|(start, width)| start + width);
            (bars.first().copied(), end)
        };
        let of_round_2 = widths(&streaming(cols, 36));
        assert!(of_round_2.0.is_some(), "{cols}");
        for facts in [facts::paused(), facts::pausing()] {
            assert_eq!(widths(&dash(cols, 36, &facts.log)), of_round_2, "{cols}");
        }
        // Over the whole run, also while it is scrubbed.
        let mut dash = dash(cols, 36, &log[..log.len() - 1]);
        for _ in 0..12 {
            assert_eq!(widths(&dash).0, of_round_2.0, "{}", dash.screen());
            dash.text(",");
        }
    }
}

#[test]
fn a_scrubbed_label_leaves_no_mark() {
    let mut dash = dash(120, 36, &facts::decided().log);
    let marks = |dash: &Dash| {
        let screen = dash.screen();
        let row = screen.lines().nth(33).expect("the marks").to_owned();
        ["R1", "R2", "R3"].map(|label| row.find(label).map(|at| row[..at].chars().count()))
    };
    let before = marks(&dash);
    for _ in 0..40 {
        dash.text(",");
        assert_eq!(marks(&dash), before, "{}", dash.screen());
        assert!(dash.screen().contains("playhead"), "{}", dash.screen());
    }
}

#[test]
fn asked_to_rest() {
    insta::assert_snapshot!("pausing_120x36", of(facts::pausing)(120, 36).screen());
}

/// The story with a pause of two minutes before its second round.
fn resumed() -> Facts {
    let mut facts = facts::paused();
    facts.after(120_000);
    facts.add(SpanId::RUN, EventKind::Resumed { by: Initiator::You, paused_ms: 120_000 });
    facts::second_round(&mut facts);
    facts
}

/// The header, the events, the rounds and the scrubber have one clock, that of the run.
#[test]
fn pause_adds_no_run_time() {
    let dash = of(resumed)(120, 36);
    insta::assert_snapshot!("resumed_120x36", dash.screen());
    let screen = dash.screen();
    let folded: Vec<&str> = screen.lines().filter(|line| line.contains("2m00s")).collect();
    assert!(folded.len() == 1 && folded[0].contains("╌2m00s╌"), "{folded:?}");
    assert!(!screen.contains("02:0"), "{screen}");
}

#[test]
fn stopped() {
    pictures_of("stopped", of(facts::stopped));
    insta::assert_snapshot!("broken_120x36", of(facts::broken)(120, 36).screen());
    let mut dash = of(facts::stopped)(80, 24);
    dash.text("2");
    shows(
        &dash,
        &[
            "┌─ 2 Outcome ✗ STOPPED ─",
            "│ ✗ model: HTTP 503  in round 2, risk_analyst  llm_error:http_503 ",
            "│ ○ no decision, stopped in round 2, 1 closed, 6.7s ",
            "│ The endpoint says: upstream overloaded. Try again later. 2 attempts. ",
            "│ The endpoint returned an HTTP error: its text says why. ",
            "│ 7 model calls  attempts 8  in 4.8k  out 576  scripted ",
            "│ p view the failed call's prompt ",
        ],
    );
}

#[test]
fn the_detail_of_a_stop_leads() {
    const LEAD: &str = "risk_analyst's reply is not JSON (\"I think we should go…\")";
    const ID: &str = "invalid_contribution:missing_keys";
    let log = facts::prose().log;
    let world = World::from_events(log.iter().map(|event| &**event));
    let mut texts = Vec::new();
    for (cols, rows) in [(120, 36), (200, 50)] {
        let mut dash = dash(cols, rows, &log);
        let screen = dash.screen();
        assert!(!screen.to_lowercase().contains("keys missing"), "{screen}");
        let bar = screen.lines().nth(1).expect("a bar").to_owned();
        assert!(bar.contains("STOPPED"), "{bar}");
        texts.push((bar, false));
        texts.push((screen, true));
        // The list of runs, and the preview of the selected one.
        dash.text("q").text("2");
        texts.push((dash.screen(), true));
    }
    let lines = log.iter().flat_map(|event| headless::lines(event, &world));
    let line = |line: StyledLine| line.text().into_owned() + "\n";
    texts.push((lines.map(line).collect(), true));
    let mut page = Vec::new();
    let mut writer = RunPageWriter::begin(&mut page, &world).expect("begins");
    log.iter().for_each(|event| writer.event(event).expect("written"));
    writer.end().expect("ends");
    let page = String::from_utf8(page).expect("text");
    texts.push((page.replace("&quot;", "\"").replace("&#39;", "'"), true));
    for (text, has_id) in texts {
        let start =
            text.find("risk_analyst's reply is not JSON").unwrap_or_else(|| panic!("{text}"));
        assert!(text.contains(LEAD) || text.contains("risk_analyst's reply is not JS"), "{text}");
        let id = text.find(ID);
        assert!(!has_id || id.is_some(), "{text}");
        assert!(id.is_none_or(|id| id > start), "the identifier comes behind: {text}");
    }
    assert_eq!(world.outcome().expect("an outcome").stop_reason.to_string(), ID);
}

#[test]
fn seats_show_all_that_they_say() {
    let log = facts::decided().log;
    let dash = dash(200, 60, &log);
    let screen = dash.screen();
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let shown = words(&screen.replace('│', " "));
    let world = World::from_events(log.iter().map(|event| &**event));
    let table = world.collaboration().expect("a collaboration");
    for seat in &table.current().expect("a round").seats {
        let Some(said) = &seat.contribution else { continue };
        for word in words(&said.summary) {
            assert!(shown.contains(&word), "{word}: {screen}");
        }
    }
}

#[test]
fn up_to_eight_seats_surround_table() {
    for seats in 2..=8 {
        let mut dash = dash(120, 36, &facts::seats(seats).log);
        dash.text("1z");
        insta::assert_snapshot!(format!("seats_{seats}"), dash.screen());
    }
}

#[test]
fn many_rounds_scroll_in_window() {
    let mut dash = dash(120, 36, &facts::rounds(12).log);
    insta::assert_snapshot!("many_rounds", dash.screen());
    dash.text("3jhhhhhh");
    insta::assert_snapshot!("many_rounds_back", dash.screen());
}

#[test]
fn a_seat_is_selected() {
    let mut dash = streaming(120, 36);
    dash.text("1jjj");
    insta::assert_snapshot!("selected_120x36", dash.dump());
}

#[test]
fn seats_of_different_models_name_them() {
    let names = ["gpt-4.1-mini", "claude-haiku-4-5", "a-model-whose-name-is-longer-than-its-seat"];
    let mut log = facts::streaming().log;
    for event in &mut log {
        let EventKind::CallStarted(call) = &mut Arc::make_mut(event).kind else { continue };
        if let Purpose::Contribution { seat, .. } = call.purpose {
            call.model = names.get(usize::from(seat)).map(|name| Arc::from(*name));
        }
    }
    for &(cols, rows) in sizes_of("models") {
        let screen = dash(cols, rows, &log).screen();
        insta::assert_snapshot!(format!("models_{cols}x{rows}"), screen);
    }
}

#[test]
fn in_ascii() {
    let mut dash = streaming(120, 36);
    dash.state.settings.ascii = true;
    let screen = dash.screen();
    assert!(screen.is_ascii(), "{:?}", screen.chars().find(|c| !c.is_ascii()));
    insta::assert_snapshot!("ascii_120x36", screen);
    dash.text("1p");
    assert!(dash.screen().is_ascii());
}

#[test]
fn in_every_theme() {
    for name in Theme::names() {
        let mut dash = streaming(120, 36);
        dash.theme = Theme::shipped(name).expect("shipped");
        if name == "mono" {
            insta::assert_snapshot!("mono_120x36", dash.dump());
        }
        assert_eq!(dash.screen(), streaming(120, 36).screen(), "a theme moves nothing");
    }
}

#[test]
fn a_filter_is_on() {
    pictures_of("filtered", |cols, rows| {
        let mut dash = streaming(cols, rows);
        dash.press("'/kind == \"call.retried\" || status == 503' Enter");
        dash
    });
    let mut dash = streaming(120, 36);
    dash.text("/kind == \"ca");
    shows(
        &dash,
        &[
            "├─ 5 Events · following ↓   filter: kind == \"ca▌ ─",
            "─ 40 events ─┤",
            "│ ✗ not a condition: unexpected '\"ca' ",
            "│ Enter applies a valid filter, Esc clears it; plain words need no quotes. ",
            " ⏎ keep  Esc clear",
        ],
    );
    let mut dash = streaming(120, 36);
    dash.press("'/knd == \"x\"' Enter");
    shows(
        &dash,
        &[
            "filter: knd == \"x\"  cannot be evaluated: `knd` is not available in… ─ 40 events · 0 shown ─┤",
            "│ No event matches the filter. / changes it, Esc removes it. ",
            "│ cannot be evaluated: `knd` is not available in this condition ",
        ],
    );
}

#[test]
fn scrubbed_back() {
    pictures_of("scrubbed", |cols, rows| {
        let mut dash = streaming(cols, rows);
        dash.text(",,,,,,,,,,,,");
        dash
    });
}

#[test]
fn the_inspector() {
    for (tab, name) in [("1", "prompt"), ("2", "reply"), ("3", "raw"), ("4", "timing")] {
        pictures_of(&format!("inspector_{name}"), |cols, rows| {
            let mut dash = streaming(cols, rows);
            dash.press("1 Enter").text(tab);
            dash
        });
    }
    let mut dash = streaming(120, 36);
    dash.press("5kk Enter");
    insta::assert_snapshot!("inspector_event_120x36", dash.screen());
    let mut dash = of(facts::decided)(120, 36);
    dash.press("5kkkkkkk Enter");
    insta::assert_snapshot!("inspector_round_120x36", dash.screen());
}

/// Of the stances of a seat, the one in pane 2 is seen at once.
#[test]
fn the_selected_stance_is_reversed() {
    let mut dash = dash(120, 36, &facts::streaming().log);
    let reversed = |dash: &Dash| -> String {
        let buf = dash.draw();
        let cells = buf.content.iter().filter(|cell| cell.modifier.contains(Modifier::REVERSED));
        cells.map(|cell| cell.symbol()).collect()
    };
    dash.text("3g");
    let before = reversed(&dash);
    dash.text("h");
    assert_eq!(reversed(&dash).replace(&before, ""), "▲ .90");
}

#[test]
fn text_of_closed_round_has_decision() {
    let log = facts::decided().log;
    let world = World::from_events(log.iter().map(|event| &**event));
    let told =
        log.iter().map(|event| sentence(event, &world)).filter(|it| it.kind == "round.closed");
    let told: Vec<String> = told.map(|it| it.decided_text().into_owned()).collect();
    assert!(
        told[0].starts_with("no decision  ") || told[0].starts_with("go with caution  "),
        "{told:?}"
    );
    assert!(told.last().is_some_and(|text| text.starts_with("go with caution  ")), "{told:?}");
}
