//! Where the models of a run that asks several are named, and that a run of one model names it in its
//! header and in the inspector alone.

use super::shows;
use std::sync::Arc;

use crate::log::event::{Event, EventKind, ModelLabel};
use crate::scenario::spec::ModelCaller;
use crate::scenario::spec::script::ScriptStep;
use crate::support::facts::{research, team, tools};
use crate::support::screen::Dash;

/// The models, by whom they are asked: some short, one longer than any place for it.
fn model_of(caller: &ModelCaller) -> &'static str {
    match caller {
        ModelCaller::Agent(name) => match name.as_str() {
            "triage" | "project_manager" | "back" => "gpt-4.1-mini",
            "billing" | "dev_team" | "a1" => "claude-haiku-4-5",
            "fraud" | "coder" => "a-model-whose-name-is-longer-than-any-place-for-it-2026-11",
            _ => "gemini-2.5-flash",
        },
        ModelCaller::Step(ScriptStep::Plan | ScriptStep::Classify) => "gpt-4.1-mini",
        ModelCaller::Step(ScriptStep::Notes) => "gemini-2.5-flash",
        ModelCaller::Step(ScriptStep::Synthesize) | ModelCaller::Step(ScriptStep::Finalize) => {
            "claude-haiku-4-5"
        }
        ModelCaller::Role(_) => "gpt-4.1-mini",
    }
}

/// The log of a live run that asks these models.
fn live(mut log: Vec<Arc<Event>>, several: bool) -> Vec<Arc<Event>> {
    let name =
        if several { "gpt-4.1-mini, claude-haiku-4-5, gemini-2.5-flash" } else { "only-one" };
    for event in &mut log {
        match &mut Arc::make_mut(event).kind {
            EventKind::RunStarted(head) => {
                let (name, host) = (name.to_owned(), "models.example".to_owned());
                Arc::make_mut(head).model = ModelLabel::Live { name, host };
            }
            EventKind::CallStarted(call) if several => {
                call.model = call.purpose.caller().map(|caller| model_of(&caller).into());
            }
            _ => {}
        }
    }
    log
}

fn dash(cols: u16, rows: u16, log: &[Arc<Event>]) -> Dash {
    let mut dash = Dash::new(cols, rows);
    dash.run("r-90de", log);
    dash
}

/// A run, and the keys of the panes to be seen alone with what they say.
type Case = (&'static str, Vec<Arc<Event>>, &'static [(&'static str, &'static [&'static str])]);

fn cases() -> Vec<Case> {
    vec![
        (
            "swarm",
            team::working().log,
            &[
                (
                    "3",
                    &[
                        "✓ → triage      0.90s  gpt-4.1-mini       handed over",
                        "✓ → billing      1.6s  claude-haiku-4-5   handed over",
                        "✓ ↳ charges   0.10s                     charges: [{usd: 49, at: 09:14:02}…│",
                        "✓ → fraud        1.2s  a-model-w…-2026-11 handed over",
                        "✓ → billing      1.1s  claude-haiku-4-5   handed over",
                        "● → refunds        0s  gemini-2.5-flash   thinking, 0s",
                    ],
                ),
                (
                    "4",
                    &[
                        "00:00.9 triage  gpt-4.1-mini   → billing: charge dispute, order 8841",
                        "00:01.6 billing claude-…ku-4-5 Let me look.",
                        "00:01.7 billing                ✓ charges: charges: [{usd: 49, at: 09:14:02}, │",
                        "                                 {usd: 49, at: 09:14:05}]",
                        "00:03.7 fraud   a-model…026-11 The risk is low: .08.",
                        "00:04.2 billing                ⊘ handoff to fraud refused: repetitive",
                        "00:04.8 refunds gemini-…-flash ▌",
                    ],
                ),
            ],
        ),
        (
            "office",
            team::office().log,
            &[
                ("1", &["live 3 models @ 1 host", "┊    ┊    ● dev_team     ┊    ● front    "]),
                (
                    "3",
                    &[
                        "● project_manager      4.2s  gpt-4.1-mini       waiting",
                        "✓ ⇄ researcher       1.4s  gemini-2.5-flash   Faster folds, a new pane.",
                        "● ⇄ dev_team         1.2s  claude-haiku-4-5   waiting",
                        "● ⇄ coder         0.60s  a-model-w…-2026-11 thinking, 0s",
                        "✓ ↳ grep        0.10s                     hits: 12",
                        "● ⇄ desk             1.2s                     waiting",
                        "● → front          1.2s  gemini-2.5-flash   replying (hidden), 1.2s",
                    ],
                ),
            ],
        ),
        (
            "ring",
            team::ring(12, 20).log,
            &[("1", &["active: a9 gemini-2.5-flash", " ┊  ┊  ✓ a3  ┊  ✓ a6  ┊  ● a9◂ ┊  ✓ a12 "])],
        ),
        (
            "tasks",
            tools::reported().log,
            &[
                (
                    "1",
                    &[
                        "✓ plan   gpt-4.1-mini     ▇▇▇▇▇▇ ",
                        "✓ t1     sales_worker          ▇▇▇▇▇▇ ",
                        "! t3     inventory_worker      ─────▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇✗ cached    2.7s",
                        "✓ report claude-haiku-4-5                           ▇▇▇▇▇▇      0.80s",
                    ],
                ),
                (
                    "1g\r2",
                    &[
                        "─ 2 plan ✓ accepted ─",
                        "│ model      gpt-4.1-mini   ",
                        "│ accepted   4 tasks (max 8) ",
                    ],
                ),
            ],
        ),
        (
            "reading",
            research::reading().log,
            &[
                (
                    "3",
                    &["─ 3 Answer · following ↓ ─", "●  Taking notes on #5 with gemini-2.5-flash."],
                ),
                ("4", &["─ 4 Notes · gemini-2.5-flash · following ↓ ─"]),
            ],
        ),
        (
            "answered",
            research::answered().log,
            &[("3", &["─ 3 Answer · claude-haiku-4-5 ─", "─ 3 of 4 sentences cited ─"])],
        ),
    ]
}

#[test]
fn names_each_model_beside_caller() {
    for (name, log, panes) in cases() {
        let log = live(log, true);
        let whole = dash(120, 36, &log);
        match name {
            "answered" => shows(
                &whole,
                &[
                    "  live 3 models @ 1 host",
                    "├─ 3 Answer · claude-haiku-4-5 ─ 3 of 4 sentences cited ─┬─ 4 Notes · gemini-2.5-flash ───── 1 in conflict, 1 refused ─┤",
                ],
            ),
            "reading" => shows(
                &whole,
                &[
                    "  live 3 models @ 1 host",
                    "├─ 3 Answer · following ↓ ───────────────────────────────┬─ 4 Notes · gemini-2.5-flash · following ↓ ─",
                    "│ ●  Taking notes on #5 with gemini-2.5-flash. ",
                    "source.closed          #1                      2 notes (gemini-2.5-flash) ",
                ],
            ),
            "tasks" => shows(
                &whole,
                &[
                    "  live 3 models @ 1 host",
                    "│ ✓ plan   gpt-4.1-mini     ▇▇▇▇▇                            0.90s  │",
                    "│ ✓ report claude-haiku-4-5                        ▇▇▇▇▇     0.80s  │",
                ],
            ),
            _ => insta::assert_snapshot!(format!("{name}_120x36"), whole.screen()),
        }
        for (keys, texts) in panes {
            let mut dash = dash(80, 24, &log);
            dash.text(keys);
            shows(&dash, texts);
        }
    }
}

#[test]
fn header_and_inspector_name_single_model() {
    for (name, log, panes) in cases() {
        let log = live(log, false);
        let keys = panes.iter().map(|(keys, _)| *keys).chain([""]);
        for keys in keys {
            for (cols, rows) in [(80, 24), (120, 36), (200, 50)] {
                let mut dash = dash(cols, rows, &log);
                dash.text(keys);
                let screen = dash.screen();
                let body = screen.lines().skip(1).collect::<Vec<_>>().join("\n");
                // A call that is looked at whole says who answers.
                let said = body.matches("only-one").count();
                let of_run = body.matches("live only-one @ models.example").count();
                assert_eq!(said, of_run, "{name} {keys:?} at {cols}x{rows}\n{screen}");
            }
        }
    }
}

#[test]
fn inspector_names_model_of_call() {
    for (several, name) in [(true, "gemini-2.5-flash"), (false, "only-one")] {
        let log = live(team::working().log, several);
        let mut dash = dash(120, 36, &log);
        // The last call is that of who speaks now.
        dash.text("3G").text("p");
        let screen = dash.screen();
        let row = screen.lines().find(|line| line.contains(" model "));
        assert!(row.is_some_and(|row| row.contains(name)), "{screen}");
    }
}

/// No line of a screen is wider than it, and frames stand where they stood: names change no layout.
#[test]
fn no_model_name_breaks_frame() {
    for (name, log, _) in cases() {
        let log = live(log, true);
        for (cols, rows) in
            [(60, 16), (61, 20), (80, 24), (99, 30), (100, 34), (119, 35), (140, 40)]
        {
            let mut dash = dash(cols, rows, &log);
            for key in ["1", "2", "3", "4", "5"] {
                dash.text(key);
                let screen = dash.screen();
                let right = screen.lines().skip(3).filter(|line| line.starts_with('│'));
                for line in right {
                    let ends = line.ends_with(['│', '┤', '↑', '↓']);
                    assert!(ends, "{name} {key} at {cols}x{rows}: {line}\n{screen}");
                }
            }
        }
    }
}
