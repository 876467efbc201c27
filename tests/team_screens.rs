//! What a team's or a swarm's run looks like: snapshots of text and styles at three sizes.

mod facts;
mod screen;

use facts::team::{self, TeamFacts};
use roundtable::app::Msg;
use roundtable::app::msg::LiveText;
use roundtable::event::RunId;
use screen::Dash;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 36), (200, 50)];

fn dash(cols: u16, rows: u16, facts: &TeamFacts) -> Dash {
    let mut dash = Dash::new(cols, rows);
    dash.run("r-90de", &facts.log);
    dash
}

/// An agent says this just now.
fn says(dash: &mut Dash, facts: &TeamFacts, name: &str, text: &str) {
    let at = facts.log.last().map(|event| event.at);
    let live = LiveText { text: text.to_owned(), pieces: 3, first_at: at, last_at: at };
    let (run, span) = (RunId::new("r-90de"), facts.attempt_of(name));
    dash.send(Msg::Live { run, span, text: Some(live) });
}

fn at_every_size(name: &str, facts: &TeamFacts, speaks: Option<(&str, &str)>) {
    for (cols, rows) in SIZES {
        let mut dash = dash(cols, rows, facts);
        if let Some((agent, text)) = speaks {
            says(&mut dash, facts, agent, text);
        }
        insta::assert_snapshot!(format!("{name}_{cols}x{rows}"), dash.dump());
    }
}

const SPEAKS: &str = "You were charged twice by mistake: 09:14:02 and 09:14:05, same card, same";

#[test]
fn a_swarm_at_work() {
    at_every_size("swarm", &team::working(), Some(("refunds", SPEAKS)));
}

#[test]
fn a_swarm_that_has_answered() {
    at_every_size("swarm_answered", &team::answered(), None);
}

#[test]
fn a_coordinator_and_its_teams() {
    at_every_size("office", &team::office(), Some(("coder", "The folds take")));
}

#[test]
fn a_coordinator_that_has_answered() {
    insta::assert_snapshot!(
        "office_answered_120x36",
        dash(120, 36, &team::office_answered()).screen()
    );
}

#[test]
fn pictures_of_two_to_thirty_agents() {
    for (agents, hops) in [(2, 5), (4, 9), (7, 6), (12, 20), (30, 40)] {
        let facts = team::ring(agents, hops);
        let name = format!("ring_{agents}");
        insta::assert_snapshot!(format!("{name}_120x36"), dash(120, 36, &facts).screen());
        insta::assert_snapshot!(format!("{name}_200x50"), dash(200, 50, &facts).screen());
    }
}

#[test]
fn before_anything_happened() {
    let facts = TeamFacts::desk(team::session(team::CHARGED, "triage"));
    insta::assert_snapshot!("begun_120x36", dash(120, 36, &facts).screen());
}
