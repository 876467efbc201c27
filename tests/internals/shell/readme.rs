//! The README is what the program is: its key table is made from the binding table, its picture from
//! a real screen, its exit codes and scenarios are those of the code. `just readme` draws both anew.

use crate::app::help::keys_markdown;
use crate::cli::args::Cli;
use crate::event::BoundaryId;
use crate::scenario::config::check_config;
use crate::scenario::load;
use crate::scenario::{ScenarioOrigin, shipped};
use crate::shell::effects::LaunchExtras;
use crate::shell::signals::ProcessSignal;
use crate::support::console::{Person, scenario};
use crate::support::picture;
use clap::Parser;
use crossterm::event::KeyCode;

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/round-table.svg");
const KEYS: (&str, &str) = ("<!-- keys: made by `just readme` -->\n", "<!-- /keys -->");

fn blessing() -> bool {
    std::env::var_os("ROUNDTABLE_BLESS").is_some()
}

fn readme() -> String {
    std::fs::read_to_string(README).expect("a README")
}

fn keys() -> String {
    format!("\n{}\n", keys_markdown())
}

#[test]
fn the_key_table_is_that_of_the_program() {
    let text = readme();
    let (before, rest) = text.split_once(KEYS.0).expect("the place of the key table");
    let (shown, after) = rest.split_once(KEYS.1).expect("its end");
    if blessing() {
        let fresh = format!("{before}{}{}{}{after}", KEYS.0, keys(), KEYS.1);
        std::fs::write(README, fresh).expect("written");
        return;
    }
    assert_eq!(shown, keys(), "the key table is stale: `just readme` draws it anew");
}

#[test]
fn every_scenario_and_exit_code_is_named() {
    let text = readme();
    for scenario in shipped() {
        assert!(text.contains(&format!("`{}`", scenario.name)), "no {}", scenario.name);
    }
    for code in ["`0`", "`1`", "`2`", "`4`", "`6`", "`130`", "`141`"] {
        assert!(text.contains(&format!("| {code} |")), "no exit code {code}");
    }
}

/// The first block of TOML with this in it.
fn shown(part: &str) -> String {
    let text = readme();
    let mut blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split_once("```"));
    blocks.find(|(block, _)| block.contains(part)).expect("a block").0.to_owned()
}

/// What is shown of models, put into a table of one.
#[test]
fn the_models_that_are_shown_are_good_ones() {
    let models = shown("[model]");
    let table = r#"
title = "Stock"
pattern = "collaboration"
goal = "Start?"
[budget]
min_go_votes = 1
[collaboration]
sequence = ["risk_analyst"]
finalize_prompt = "Write the brief."
[[script]]
reply = { stance = "go", summary = "Fine.", confidence = 1, actions = ["Start"] }
[[script]]
step = "finalize"
text = "Done."
"#;
    let models = format!("{table}{models}prompt = \"You judge.\"\n");
    let scenario = load(&models, ScenarioOrigin::File("models.toml".into()), &[]);
    let scenario = scenario.unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(scenario.warnings.every_run, [""; 0]);
    assert_eq!(scenario.model_assignments.len(), 1);
}

#[test]
fn the_configuration_that_is_shown_is_a_good_one() {
    let checked = check_config("config.toml", &shown("[prices."));
    assert!(checked.problems.is_empty(), "{}", checked.problems);
    assert!(checked.config.model.name.is_some() && checked.config.prices.len() == 1);
}

#[test]
fn the_scenario_that_is_shown_is_a_good_one() {
    let toml = shown("pattern = \"collaboration\"");
    let origin = ScenarioOrigin::File("rename.toml".into());
    let scenario = load(&toml, origin, &[]).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(scenario.warnings.every_run, [""; 0]);
}

/// What is shown of tools, put into an orchestrator.
#[test]
fn the_tools_that_are_shown_are_good_ones() {
    let tools = shown("[tools.");
    let orchestrator = r#"
title = "Stock"
pattern = "orchestrator"
goal = "Say what is in stock."
[orchestrator]
plan_prompt = "Plan."
finalize_prompt = "Report."
[orchestrator.level]
name = "health"
otherwise = "green"
[[script]]
step = "plan"
raw = "{}"
[[script]]
step = "finalize"
text = "Done."
"#;
    let origin = ScenarioOrigin::File("stock.toml".into());
    let scenario = load(&format!("{orchestrator}{tools}"), origin, &[]);
    let scenario = scenario.unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(scenario.warnings.every_run, [""; 0]);
}

#[test]
fn the_research_that_is_shown_is_good() {
    let toml = shown("pattern = \"research\"");
    let origin = ScenarioOrigin::File("lease.toml".into());
    let scenario = load(&toml, origin, &[]).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(scenario.warnings.every_run, [""; 0]);
}

#[test]
fn every_command_that_is_shown_is_one() {
    let text = readme();
    let commands = text.lines().filter_map(|line| line.strip_prefix("$ roundtable"));
    let mut shown = 0;
    for command in commands {
        let command = command.split(['|', '>', '#']).next().unwrap_or_default();
        // What stands between quotes is one word.
        let words = command.split('"').enumerate().flat_map(|(part, text)| match part % 2 {
            0 => text.split_whitespace().collect(),
            _ => vec![text],
        });
        let parsed = Cli::try_parse_from(std::iter::once("roundtable").chain(words));
        assert!(parsed.is_ok(), "{command}: {parsed:?}");
        shown += 1;
    }
    assert!(shown >= 5, "{shown} commands");
}

/// The second round of the scenario of the first screen, the lawyer seated, a retry on its way.
#[tokio::test(start_paused = true)]
async fn the_picture_is_of_a_real_screen() {
    let mut person = Person::at(120, 36);
    let mut extra = LaunchExtras::default();
    extra.schedule.flags.push((BoundaryId::new("round:2"), "legal_analyst".into(), true));
    person.starts_with(scenario("checkout-launch", &[]), false, extra);
    let seen = person
        .sees_that("the speaker's second attempt", |seen| {
            seen.text.contains("joined in R2")
                && seen.text.contains("attempt 2 ●")
                && seen.text.contains("chargeback alerts are")
        })
        .await;
    for part in ["Round table", "Stances by round", "Gateway", "Events", "call.retried"] {
        assert!(seen.text.contains(part), "no {part} on it:\n{}", seen.text);
    }
    let picture = picture::svg(&seen.cells, "A run of checkout-launch in the dashboard");
    let run = person.services.engine.runs()[0].id().to_string();
    let picture = picture.replace(&run, "r-7f3a");
    if blessing() {
        std::fs::write(PICTURE, &picture).expect("written");
    }
    let kept = std::fs::read_to_string(PICTURE).expect("a picture");
    assert!(kept.starts_with("<svg ") && kept.contains("legal_analyst"), "`just readme` draws it");
    person.key(KeyCode::Char('q'));
    person.told(ProcessSignal::End(143));
    person.ends().await.expect("an end");
}
