//! What the comparison of two runs looks like, at three sizes, and no panic at any size.

use super::{shows, sizes_of};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::engine::Schedule;
use crate::screen::comparison::ComparisonView;
use crate::screen::comparison::drawing::render;
use crate::screen::layout::Size;
use crate::screen::state::DisplaySettings;
use crate::screen::windows::Overlay;
use crate::screen::{DrawContext, Msg};
use crate::support::kept::{history, list};
use crate::support::screen::{Dash, facts, shipped};
use crate::words::comparison::runs::ComparedRuns;
use crate::words::glyph::Glyphs;

fn compared(same: bool) -> Box<ComparedRuns> {
    let left = facts("checkout-launch", &[], &[], Schedule::default());
    let flags = [("legal_analyst", true)];
    let right = facts("checkout-launch", &[], if same { &[] } else { &flags }, Schedule::default());
    Box::new(ComparedRuns::of(&left, &right))
}

fn shown(cols: u16, rows: u16, same: bool, ascii: bool) -> Dash {
    let settings = DisplaySettings { ascii, ..DisplaySettings::default() };
    let mut dash = Dash::over(cols, rows, shipped(), settings);
    let view = ComparisonView::new(compared(same), [false, false], dash.state.size);
    dash.state.overlays.push(Overlay::Comparison(Box::new(view)));
    dash
}

#[test]
fn pictures_of_a_comparison() {
    for &(cols, rows) in sizes_of("comparison") {
        let mut dash = shown(cols, rows, false, false);
        insta::assert_snapshot!(format!("comparison_{cols}x{rows}"), dash.dump());
        dash.press("j Enter");
        if cols == 120 {
            insta::assert_snapshot!("comparison_full_120x36", dash.dump());
        }
        // The difference is alone below the runs, its two sides one above the other or side by side.
        let sides: &[&str] = match cols {
            80 => &["│ Δ left  false}} ", "│ Δ right true}} "],
            _ => &["│ Δ false}} ", "│ Δ true}} "],
        };
        shows(&dash, sides);
        shows(
            &dash,
            &[
                "─ 2 of 43: call.started, round 1 / demand_analyst ─",
                "│ prompt.messages[1].content ",
                "│   …flags\":{\"legal_analyst\": ",
                "Esc list",
            ],
        );
        assert!(!dash.screen().contains("─ Differences ─"), "{}", dash.screen());
    }
    shows(
        &shown(80, 24, true, false),
        &[
            "compare r-7f3a with r-7f3a         no difference, 60 equal events",
            "│ result    ✓ DONE  go: 3 go, round…   ✓ DONE  go: 3 go, round…              = │",
            "│ time      9.5s                       9.5s                                  = │",
            "│ tokens    3.7k                       3.7k                                  = │",
            "│ requests  11 for 10 calls, 1.10 a…   11 for 10 calls, 1.10 a…              = │",
            "│ No differences: these runs differ only in ids and times. ",
            "Esc close",
        ],
    );
    let mut dash = Dash::new(120, 36);
    list(&mut dash, history());
    dash.text("2d");
    insta::assert_snapshot!("comparison_marked", dash.screen());
}

#[test]
fn a_comparison_in_seven_bits() {
    let screen = shown(100, 30, false, true).screen();
    assert!(screen.is_ascii(), "{screen}");
}

#[test]
fn comparison_fits_any_size() {
    let mut dash = shown(120, 36, false, false);
    for (cols, rows) in [(20, 5), (1, 1), (0, 0), (60, 16), (61, 9), (7, 40), (300, 3), (400, 90)] {
        dash.send(Msg::Resize { cols, rows });
        dash.press("jjk Enter");
        let Some(Overlay::Comparison(view)) = dash.state.overlays.last_mut() else {
            panic!("a comparison at {cols}x{rows}")
        };
        let size = Size { cols, rows };
        view.full = cols % 2 == 0;
        view.arrange(size);
        let mut buf = Buffer::empty(Rect::new(0, 0, cols, rows));
        let now = std::time::Duration::ZERO;
        let cx = DrawContext { now, theme: &dash.theme, glyphs: Glyphs::Unicode };
        render(view, &cx, size, &mut buf);
    }
}
