//! What the tools look like: snapshots of text and styles at three sizes.

use super::{shows, sizes_of};
use crate::log::event::{BreakerCause, BreakerStage, EventKind, Initiator, SpanId};
use crate::screen::state::DisplaySettings;
use crate::support::facts::tools;
use crate::support::facts::tools::ToolFacts;
use crate::support::screen::{Dash, shipped};
use ratatui::style::Style;
use serde_json::json;

pub(super) fn dash(cols: u16, rows: u16, facts: &ToolFacts) -> Dash {
    let mut dash = Dash::new(cols, rows);
    dash.run("r-81c2", &facts.log);
    dash
}

fn pictures_of(name: &str, facts: &ToolFacts) {
    for &(cols, rows) in sizes_of(name) {
        insta::assert_snapshot!(format!("{name}_{cols}x{rows}"), dash(cols, rows, facts).dump());
    }
}

#[test]
fn a_vendor_in_trouble() {
    pictures_of("brownout", &tools::brownout(true));
}

/// The window of a breaker: on its way, and when it has opened.
#[test]
fn a_breaker_that_judges_rates() {
    for (calls, name) in [(19, "rates"), (24, "rates_open")] {
        pictures_of(name, &tools::rates(calls));
    }
    let mut alone = dash(80, 24, &tools::rates(24));
    alone.text("2");
    let both = [
        " ⊘ vendor OPEN 2.9s (80 % failed)   vendor 66.6 % errors   16 calls failed",
        "┌─ 2 vendor ⊘ OPEN ─",
        "│ injected  none: ! injects a fault ",
        "│ window    opened: failure rate 80 % of 20 calls ",
        "24 requests, 0 running, peak 1 │",
        "│ attempts  max 3, timeout 0.50s, backoff ~0.20s ~0.40s ",
    ];
    shows(&alone, &both);
    shows(
        &alone,
        &[
            "│ breaker   70 % failed or 60 % above 0.30s, of the last 20 calls (min 10), ",
            "│           3.0s open, 3 probes ",
            "│ bulkhead  8 concurrent, queue 0.20s ",
            "│ safe mode cache 1m00s, default, leave out ",
            "│ 00:05.2   ⊘ OPEN      ━━━━━━━━━━ 60ms   failure rate 80 % of 20 calls ",
        ],
    );
    alone.press("!");
    shows(&alone, &both);
    shows(
        &alone,
        &[
            "│ breaker   70 % failed or 60 % above 0.30s, of the last 20 calls (min 10),…   │",
            "╔═ Faults and limits of vendor, live ═",
            "║>[ ] latency     +2.0s latency           ── breaker OPEN ─",
            "║ [ ] errors      30 % 503                · opened: failure rate 80 % of 20",
            "═ tool 2 of 3 ═╝",
            " Space switch  P trip  O hold  C close  D disable  ? help  q back  Esc close",
        ],
    );
}

#[test]
fn draws_breaker_window_in_every_theme() {
    for theme in ["dark", "light", "colour-blind", "mono"] {
        for ascii in [true, false] {
            let theme = theme.to_owned();
            let settings = DisplaySettings { theme, ascii, ..DisplaySettings::default() };
            let mut dash = Dash::over(80, 24, shipped(), settings);
            dash.run("r-81c2", &tools::rates(24).log);
            let screen = dash.screen();
            let lane = lane(&screen, "window");
            assert!(lane.contains("80 %") && lane.contains("70 %"), "{screen}");
            assert!(!ascii || screen.is_ascii(), "{screen}");
        }
    }
}

/// What failed is history once the tool is well: the share stays, its colour does not.
#[test]
fn error_rate_is_red_while_failing() {
    let mut facts = tools::rates(9);
    let now = style_of(&dash(120, 36, &facts), "% errors");
    facts.after(3_000);
    let key = facts.step(40, 1, "vendor");
    facts.attempt(&key).after(90).answers(&key, serde_json::json!({ "ok": true }));
    let later = style_of(&dash(120, 36, &facts), "% errors");
    assert_ne!(now, later);
    assert!(now.is_some() && later.is_some());
}

/// The style of a text in the second row of the screen.
fn style_of(dash: &Dash, text: &str) -> Option<Style> {
    let buf = dash.draw();
    let row: Vec<&str> = (0..buf.area.width).map(|x| buf[(x, 1)].symbol()).collect();
    let at = (0..row.len()).find(|at| row[*at..].concat().starts_with(text))?;
    Some(buf[(at as u16, 1)].style())
}

#[test]
fn the_same_without_guards() {
    insta::assert_snapshot!("naive_120x36", dash(120, 36, &tools::brownout(false)).screen());
}

#[test]
fn unguarded_run_shows_amplification_first() {
    let screen = dash(120, 36, &tools::brownout(false)).screen();
    let row = screen.lines().nth(1).expect("the second row");
    let begins = " no guards   1.08 requests a call   vendor 50.0 % errors";
    assert!(row.starts_with(begins), "{row}");
    let screen = dash(120, 36, &tools::brownout(true)).screen();
    let row = screen.lines().nth(1).expect("the second row");
    assert!(row.starts_with(" ⊘ vendor OPEN"), "{row}");
    assert!(row.contains("of 25 calls from fallback"), "{row}");
}

#[test]
fn hides_uncalled_tools() {
    for guarded in [true, false] {
        let mut dash = dash(120, 36, &tools::brownout(guarded));
        let screen = dash.screen();
        assert!(!screen.contains(" llm "), "{screen}");
        assert_eq!(screen.matches("1 tool unused").count(), 2, "{screen}");
        // The keys that move the selection go over the listed rows.
        dash.text("jjj");
        assert!(dash.screen().contains("2 search"), "{}", dash.screen());
        dash.text("kkk");
        assert!(dash.screen().contains("2 vendor"), "{}", dash.screen());
    }
}

#[test]
fn click_selects_tool_in_both_tables() {
    let mut dash = dash(120, 36, &tools::brownout(true));
    for (nth, tool) in [(0, "search"), (1, "vendor"), (1, "search"), (0, "vendor")] {
        let screen = dash.screen();
        // A border, the mark of the selection, a glyph, a blank, the name.
        let names = screen.lines().map(|row| row.chars().skip(4).collect::<String>());
        let is_its_row = |(_, name): &(u16, String)| name.starts_with(&format!("{tool} "));
        let rows: Vec<u16> = (0..).zip(names).filter(is_its_row).map(|(row, _)| row).collect();
        dash.click(5, rows[nth]);
        assert!(dash.screen().contains(&format!("2 {tool} ")), "{nth} {tool}: {}", dash.screen());
    }
}

#[test]
fn second_pane_shows_outcome_at_end() {
    let mut facts = tools::brownout(true);
    facts.after(500).ends("success", None);
    for &(cols, rows) in sizes_of("outcome") {
        let mut dash = dash(cols, rows, &facts);
        if cols == 80 {
            dash.text("2");
        }
        insta::assert_snapshot!(format!("outcome_{cols}x{rows}"), dash.screen());
    }
    let mut dash = dash(120, 36, &facts);
    dash.text("j");
    assert!(!dash.screen().contains("Outcome"), "{}", dash.screen());
    dash.press("Esc");
    assert!(dash.screen().contains("2 Outcome"), "{}", dash.screen());
}

#[test]
fn stopped_run_outcome_gives_reason() {
    let mut facts = tools::brownout(false);
    facts.after(500).ends("max_seconds", None);
    shows(
        &dash(120, 36, &facts),
        &[
            "  ✗ TIME LIMIT  25 calls, 1.08 requests a call: Raise budget.max_seconds, or find the slow call.     max_seconds  4.8s",
            "─ 2 Outcome ✗ STOPPED ─",
            "│ ✗ time limit ",
            "│ why       Raise budget.max_seconds, or    │",
            "│           find the slow call. ",
            "│ calls     12 of 25 answered ",
            "│ fallback  3 cached, 0 default ",
            "│ failed    0 calls ",
            "│ requests  27, 1.08 a call ",
            "│ retries   3 gateway, 0 client, 0 agent ",
            "│ guards    none: three layers retry ",
            "│ time      4.8s, 20 agents, 3 turns ",
            "│ slots     peak 10 of 12, 1 queued ",
            "│           j, k: details of a tool ",
            "│>– vendor no breaker ",
            "│ – vendor     5 cut off, peak 5; no bulkhead ",
            "time limit after 4.8s ",
        ],
    );
}

#[test]
fn lanes_end_at_playhead() {
    let facts = tools::brownout(true);
    let mut dash = dash(120, 36, &facts);
    let live = dash.screen();
    assert!(lane(&live, "breaker").contains('⊘'), "{live}");
    // Back to before the breaker opened.
    let opened = facts.log.iter().position(|event| event.kind.name() == "breaker.changed");
    for _ in opened.expect("it opens")..facts.log.len() {
        dash.text(",");
    }
    let past = dash.screen();
    let before = lane(&past, "breaker");
    assert!(!before.contains('⊘') && before.contains('─'), "{past}");
    let (_, after) = before.split_once('┃').expect("a playhead");
    assert!(!after.contains('─'), "{past}");
    assert!(lane(&past, "errors").chars().count() > 0);
}

#[test]
fn lanes_continue_after_long_pause() {
    let mut facts = ToolFacts::storm(true);
    for nth in 0..8 {
        if nth == 4 {
            facts.add(SpanId::RUN, EventKind::Paused { at: Vec::new() }).after(20 * 3_600_000);
            facts
                .add(SpanId::RUN, EventKind::Resumed { by: Initiator::You, paused_ms: 72_000_000 });
        }
        let key = facts.step(nth + 1, 1, "vendor");
        facts.attempt(&key).after(500).answers(&key, serde_json::json!({ "ok": true }));
    }
    let screen = dash(120, 36, &facts).screen();
    let requests: Vec<char> = lane(&screen, "requests/s").chars().collect();
    let drawn = |cells: &[char]| cells.iter().filter(|it| ('⠁'..='⣿').contains(*it)).count();
    let (first, second) = requests.split_at(requests.len() / 2);
    assert!(drawn(first) > 3 && drawn(second) > 3, "{screen}");
}

/// The row of a lane, without the pane beside it.
fn lane<'a>(screen: &'a str, name: &str) -> &'a str {
    // A border, drawn or of ASCII, and the name.
    let names =
        |row: &&str| row.chars().skip(1).collect::<String>().starts_with(&format!(" {name} "));
    let row = screen.lines().find(names);
    row.and_then(|row| row.split(['│', '|']).nth(1)).expect("a lane")
}

#[test]
fn each_pane_alone() {
    for (pane, name) in [(2, "tool"), (3, "bulkheads"), (4, "retries")] {
        let mut dash = dash(80, 24, &tools::brownout(true));
        dash.text(&pane.to_string());
        insta::assert_snapshot!(format!("pane_{name}_80x24"), dash.screen());
    }
}

#[test]
fn the_history_of_a_breaker() {
    let mut facts = tools::brownout(true);
    facts.after(1_400).breaker("vendor", BreakerStage::HalfOpen, BreakerCause::CooldownOver, None);
    facts.after(300);
    facts.breaker("vendor", BreakerStage::Open, BreakerCause::ProbeFailed, Some(3_000));
    facts.after(3_100).breaker("vendor", BreakerStage::HalfOpen, BreakerCause::CooldownOver, None);
    facts.after(200).breaker("vendor", BreakerStage::Closed, BreakerCause::ProbeAnswered, None);
    facts.after(900).breaker("vendor", BreakerStage::Held, BreakerCause::Manual, None);
    facts.after(600);
    insta::assert_snapshot!("history_120x36", dash(120, 36, &facts).screen());
    shows(
        &dash(200, 50, &facts),
        &[
            " ⊘ vendor HELD   vendor 50.0 % errors   8 of 25 calls from fallback   slowest p95 0.24s vendor",
            "─ vendor over time  held open until it is reset ─",
            "│ 00:05.7   ◐ half-open ━        ",
            "│ 00:09.3   ✓ closed    ━━━        0.90s  a probe suc",
            "│ 00:10.2   ⊘ HELD      ━          0s     by you       ",
        ],
    );
}

#[test]
fn faults_and_limits_in_their_drawer() {
    for &(cols, rows) in sizes_of("drawer") {
        let mut dash = dash(cols, rows, &tools::brownout(true));
        dash.text("!");
        insta::assert_snapshot!(format!("drawer_{cols}x{rows}"), dash.dump());
    }
    let mut dash = dash(200, 50, &tools::brownout(true));
    dash.press("!");
    shows(
        &dash,
        &[
            "╔═ Faults and limits of vendor, live ═",
            "║ [x] errors      30 % 503 ",
            "· Each attempt takes this much longer; + - adjust. ",
            "║   = timeout 0.50s ",
            "║   = opens after 3 failures ",
            "║   = max 0.20s in the queue ",
            " j k move  Space switch  P trip  O hold  C close  D disable  : commands  ? help  q back  Esc close",
        ],
    );
}

#[test]
fn the_tools_over_an_orchestrator() {
    let mut dash = dash(120, 36, &tools::reported());
    dash.text("t");
    insta::assert_snapshot!("over_120x36", dash.screen());
}

#[test]
fn ascii_screen_is_all_ascii() {
    let settings = DisplaySettings { ascii: true, ..DisplaySettings::default() };
    let mut dash = Dash::over(120, 36, shipped(), settings);
    dash.run("r-81c2", &tools::brownout(true).log);
    let screen = dash.screen();
    assert!(screen.is_ascii(), "{screen}");
    dash.text("!");
    assert!(dash.screen().is_ascii(), "{}", dash.screen());
}

#[test]
fn mono_and_light_distinguish_states() {
    for theme in ["mono", "light"] {
        let settings = DisplaySettings { theme: theme.to_owned(), ..DisplaySettings::default() };
        let mut dash = Dash::over(120, 36, shipped(), settings);
        dash.run("r-81c2", &tools::brownout(true).log);
        let screen = dash.screen();
        for part in ["⊘ vendor OPEN", "✓ search closed", "breaker    ─", "✗✗✗"] {
            assert!(screen.contains(part), "{theme}: {part}");
        }
        if theme == "mono" {
            assert!(!dash.dump().contains('#'), "no colour where there is none");
        }
    }
}

#[test]
fn breaker_line_continues_after_pause() {
    let mut facts = tools::rates(24);
    facts.add(SpanId::RUN, EventKind::Pausing { by: Initiator::You, at_round: false });
    facts.add(SpanId::RUN, EventKind::Paused { at: Vec::new() });
    facts.after(9_000);
    facts.add(SpanId::RUN, EventKind::Resumed { by: Initiator::You, paused_ms: 9_000 });
    let search = facts.after(1_000).step(25, 1, "search");
    facts.attempt(&search).after(60).answers(&search, json!({"hits": 1}));
    let screen = dash(120, 36, &facts).screen();
    let row = screen.lines().find(|line| line.starts_with("│ breaker ")).expect("a lane");
    let graph: String = row.chars().skip(13).take(40).collect();
    assert!(!graph.contains(' '), "from its start to now: {row}\n{screen}");
}
