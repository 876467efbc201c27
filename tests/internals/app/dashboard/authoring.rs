//! Scenario files on the first screen: a new one from a template, the selected one in the editor, and
//! files that change.

use crate::scenario::ScenarioOrigin;
use crate::screen::windows::Overlay;
use crate::screen::{Effect, Msg};
use crate::support::screen::{Dash, own};

fn sees(dash: &Dash, text: &str) {
    let screen = dash.screen();
    assert!(screen.contains(text), "{text}\n{screen}");
}

fn edited(dash: &mut Dash) -> Option<ScenarioOrigin> {
    dash.asked().into_iter().find_map(|effect| match effect {
        Effect::Edit(origin) => Some(origin),
        _ => None,
    })
}

#[test]
fn chosen_template_selects_its_new_file() {
    for (cols, rows) in [(80, 24), (120, 36), (200, 50)] {
        let mut dash = Dash::new(cols, rows);
        dash.text("N");
        sees(&dash, "New scenario from a template");
        sees(&dash, "scenarios/my-collaboration.toml; it runs without a model.");
        dash.press("Down Down");
        sees(&dash, "scenarios/my-team.toml");
        dash.asked();
        dash.press("Enter");
        assert!(dash.state.overlays.is_empty());
        let asked = dash.asked();
        assert!(
            asked
                .iter()
                .any(|it| matches!(it, Effect::NewScenario { pattern } if pattern == "team")),
            "{asked:?}"
        );
        let mut all = dash.state.scenarios.clone();
        let text = include_str!("../../../../assets/templates/team.toml");
        all.push(own("scenarios/my-team.toml", text));
        dash.send(Msg::Scenarios(all));
        dash.send(Msg::ScenarioWritten("scenarios/my-team.toml".to_owned()));
        assert_eq!(dash.state.home.scenario.as_deref(), Some("scenarios/my-team.toml"));
        sees(&dash, "is written");
        dash.text("E");
        assert_eq!(edited(&mut dash), Some(ScenarioOrigin::File("scenarios/my-team.toml".into())));
    }
}

#[test]
fn escape_and_outside_click_write_nothing() {
    let mut dash = Dash::new(120, 36);
    dash.asked();
    for close in ["Esc", "q"] {
        dash.text("N");
        assert!(matches!(dash.state.overlays.last(), Some(Overlay::Templates(_))));
        dash.press(close);
        assert!(dash.state.overlays.is_empty());
    }
    dash.text("N");
    dash.click(0, 0);
    assert!(dash.state.overlays.is_empty());
    assert!(!dash.asked().iter().any(|it| matches!(it, Effect::NewScenario { .. })));
}

#[test]
fn edited_shipped_scenario_selects_its_copy() {
    let mut dash = Dash::new(120, 36);
    dash.text("E");
    let Some(ScenarioOrigin::Shipped(path)) = edited(&mut dash) else { panic!("shipped") };
    let shipped = ScenarioOrigin::Shipped(path);
    let at = dash.state.scenarios.iter().position(|it| it.origin == shipped).expect("listed");
    let text = dash.state.scenarios[at].text.to_string();
    // The copy has the name of the shipped one and replaces it.
    let mut all = dash.state.scenarios.clone();
    let copy = format!("./{path}");
    all[at] = own(&copy, &text);
    dash.send(Msg::Scenarios(all));
    assert_eq!(dash.state.home.scenario, Some(copy));
    // No scenario is selected where a run is.
    dash.text("2E");
    assert_eq!(edited(&mut dash), None);
    sees(&dash, "Select a scenario first");
}

#[test]
fn changed_file_shows_first_error() {
    let mut dash = Dash::new(120, 36);
    let good = include_str!("../../../../assets/templates/swarm.toml");
    let mut all = dash.state.scenarios.clone();
    all.insert(0, own("scenarios/mine.toml", good));
    dash.send(Msg::Scenarios(all.clone()));
    assert!(!dash.screen().contains("reloaded"));
    let bad = good.replace("pattern = \"swarm\"", "pattern = \"swram\"\nbudgte = 3");
    all[0] = own("scenarios/mine.toml", &bad);
    dash.send(Msg::Scenarios(all.clone()));
    sees(&dash, "scenarios/mine.toml: line ");
    let row = dash.screen().lines().find(|row| row.contains("mine ")).expect("a row").to_owned();
    assert!(row.contains("line ") && row.contains("`swram` is not"), "{row}");
    all[0] = own("scenarios/mine.toml", good);
    dash.send(Msg::Scenarios(all.clone()));
    sees(&dash, "scenarios/mine.toml was reloaded.");
    // The same text again is no news.
    dash.press("Esc Esc");
    dash.send(Msg::Scenarios(all));
    assert!(!dash.screen().contains("reloaded"));
}
