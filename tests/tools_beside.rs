//! A guarded run and a naive one of the same scenario in one session: each shows what the other came
//! to.

mod facts;
mod screen;

use facts::tools;
use screen::Dash;

#[test]
fn a_guarded_run_and_a_naive_one_are_seen_next_to_each_other() {
    let mut dash = Dash::new(120, 36);
    dash.run("r-aaaa", &tools::brownout(true).log);
    assert!(!dash.screen().contains("vs."), "there is nothing to compare it with yet");
    dash.run("r-bbbb", &tools::brownout(false).log);
    let naive = dash.screen();
    assert!(naive.contains("vs. guarded r-aaaa"), "{naive}");
    dash.run("r-cccc", &tools::brownout(true).log);
    let guarded = dash.screen();
    assert!(guarded.contains("vs. naive r-bbbb"), "{guarded}");
}
