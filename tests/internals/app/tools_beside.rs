//! A guarded run and a naive one of the same scenario in one session: each shows what the other came
//! to.

use crate::support::facts::tools;
use crate::support::screen::Dash;

#[test]
fn compares_guarded_and_naive_runs() {
    let mut dash = Dash::new(120, 36);
    dash.run("r-aaaa", &tools::brownout(true).log);
    assert!(!dash.screen().contains("(no guards)"), "there is nothing to compare it with yet");
    dash.run("r-bbbb", &tools::brownout(false).log);
    let naive = dash.screen();
    assert!(naive.contains("r-aaaa (guards on): "), "{naive}");
    dash.run("r-cccc", &tools::brownout(true).log);
    let guarded = dash.screen();
    assert!(guarded.contains("r-bbbb (no guards): "), "{guarded}");
}
