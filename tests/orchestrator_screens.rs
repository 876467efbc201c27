//! What an orchestrator's run looks like: snapshots of text and styles at three sizes.

mod facts;
mod screen;

use facts::tools::{self, ToolFacts};
use screen::Dash;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 36), (200, 50)];

fn dash(cols: u16, rows: u16, facts: &ToolFacts) -> Dash {
    let mut dash = Dash::new(cols, rows);
    dash.run("r-81c2", &facts.log);
    dash
}

fn at_every_size(name: &str, facts: &ToolFacts) {
    for (cols, rows) in SIZES {
        insta::assert_snapshot!(format!("{name}_{cols}x{rows}"), dash(cols, rows, facts).dump());
    }
}

#[test]
fn workers_side_by_side() {
    at_every_size("working", &tools::working());
}

#[test]
fn reported() {
    at_every_size("reported", &tools::reported());
}
