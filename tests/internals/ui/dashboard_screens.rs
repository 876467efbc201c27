//! What the dashboard looks like: snapshots of text and styles at three sizes, and no panic at
//! any size.

use super::{SIZES, shows, sizes_of};
use std::sync::Arc;

use crate::engine::Schedule;
use crate::log::event::{BoundaryId, Elapsed, Event, EventKind, SpanId};
use crate::log::facts::PatternFact;
use crate::log::facts::collaboration::CollaborationFact;
use crate::scenario::catalogue::{LiveOffer, ScenarioEntry};
use crate::screen::effect::RequestId;
use crate::screen::form::FieldId;
use crate::screen::form::models::OfferedModels;
use crate::screen::layout::too_small;
use crate::screen::state::DisplaySettings;
use crate::screen::windows::Overlay;
use crate::screen::{Effect, Msg};
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use crate::support::kept::{answer_open, history, list};
use crate::support::screen::{
    Dash, answer, facts, listing, lists_wanted, own, place, ready, shipped, until, with_key,
};

/// The two scenarios that the pictures are of, whatever else is shipped, and two of a person's.
fn scenarios() -> Vec<ScenarioEntry> {
    let named = |entry: &ScenarioEntry| {
        ["checkout-launch", "checkout-unanimous"].contains(&entry.name.as_str())
    };
    let mut entries: Vec<ScenarioEntry> = shipped().into_iter().filter(named).collect();
    let launch = entries[0].text.to_string();
    entries.push(own(
        "./scenarios/refund.toml",
        &launch.replace("Checkout v2: go or no-go", "Refund over the limit?"),
    ));
    let broken = "title = \"Half written\"\npattern = \"colaboration\"\ngoal = \"x\"\n[budget]\nmax_rounds = 0\n";
    entries.push(own("./scenarios/half.toml", broken));
    entries
}

fn dash(cols: u16, rows: u16) -> Dash {
    Dash::over(cols, rows, scenarios(), DisplaySettings::default())
}

fn upto(so: impl Fn(&EventKind) -> bool) -> Vec<Arc<Event>> {
    let mut events = facts("checkout-launch", &[], &[], Schedule::default());
    let end = until(&events, so);
    events.truncate(end);
    events
}

fn live() -> Vec<Arc<Event>> {
    let mut accepted = 0;
    let events = facts("checkout-launch", &[], &[], Schedule::default());
    let end = events
        .iter()
        .position(|event| {
            accepted += usize::from(matches!(
                event.kind,
                EventKind::Pattern(PatternFact::Collaboration(
                    CollaborationFact::ContributionAccepted { .. }
                ))
            ));
            accepted == 5
        })
        .expect("five contributions");
    events[..=end].to_vec()
}

fn paused() -> Vec<Arc<Event>> {
    let mut events = upto(|kind| {
        matches!(
            kind,
            EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::RoundClosed {
                round: 1,
                ..
            }))
        )
    });
    let last = events.last().expect("facts").clone();
    let at = vec![BoundaryId::new("round:2")];
    let (seq, span) = (crate::log::event::Seq(last.seq.0 + 1), SpanId::RUN);
    let kind = EventKind::Paused { at };
    events.push(Arc::new(Event { seq, at: Elapsed(last.at.0 + 1), span, kind }));
    events
}

fn stopped() -> Vec<Arc<Event>> {
    facts("checkout-launch", &["budget.max_messages=5"], &[], Schedule::default())
}

fn with_runs(dash: &mut Dash) {
    dash.run("r-0001", &facts("checkout-launch", &[], &[], Schedule::default()));
    dash.run("r-0002", &stopped()).run("r-0003", &paused()).run("r-0004", &live()).text("q");
}

/// Every picture: its name, and what a person does to come to it.
type Picture = (&'static str, fn(&mut Dash));
const PICTURES: &[Picture] = &[
    ("home_first", |_| ()),
    ("home_broken", |dash| {
        dash.press("End");
    }),
    ("home_runs", with_runs),
    ("home_preview", |dash| {
        with_runs(dash);
        dash.text("3");
    }),
    ("home_history", |dash| {
        list(dash, history());
        dash.text("2jj");
    }),
    ("home_history_filtered", |dash| {
        with_runs(dash);
        list(dash, history());
        dash.text("o/checkout");
    }),
    ("kept_run", |dash| {
        list(dash, history());
        dash.press("2j Enter");
        answer_open(dash, &facts("checkout-launch", &[], &[], Schedule::default()));
    }),
    ("kept_run_interrupted", |dash| {
        list(dash, history());
        dash.press("2jjj Enter");
        answer_open(dash, &live());
    }),
    ("form", |dash| {
        dash.text("n");
    }),
    ("form_faulty", |dash| {
        dash.text("n");
        focus(dash, &FieldId::Flag("legal_analyst".into()));
        dash.press("Space Tab Home C-k 0");
    }),
    ("form_live", |dash| {
        dash.text("jjn");
        focus(dash, &FieldId::Goal);
        dash.press("Enter").text("Mind the 'quotes'.");
        focus(dash, &FieldId::Model);
        dash.press("Left");
    }),
    ("form_choose", |dash| {
        live_form(dash);
        let providers = vec![with_key("alpha", "a-1"), with_key("beta", "b-1-with-a-long-name")];
        answer(dash, LiveOffer::Choose { why: "two keys".to_owned() }, providers);
        focus(dash, &FieldId::ModelName);
    }),
    ("form_model", |dash| {
        live_form(dash);
        answer(dash, ready("small-1"), Vec::new());
        focus(dash, &FieldId::ModelName);
    }),
    ("form_list", |dash| {
        with_list(dash);
        dash.press("Enter");
    }),
    ("form_list_found", |dash| {
        with_list(dash);
        dash.press("Enter 'LARGE 2'");
    }),
    ("form_list_trouble", |dash| {
        live_form(dash);
        answer(dash, ready("small-1"), vec![with_key("alpha", "a-1"), with_key("beta", "b-1")]);
        focus(dash, &FieldId::ModelName);
        dash.press("Enter");
        for (provider, list) in [
            ("alpha", OfferedModels::NotGiven { status: 404 }),
            (
                "beta",
                OfferedModels::Failed {
                    why: "401 from api.beta.com: it does not take the key. Check BETA_API_KEY, and that \
                          the address is the one that the key is for."
                        .to_owned(),
                },
            ),
        ] {
            let form = dash.asked().iter().find_map(|effect| match effect {
                Effect::ListModels { query, .. } => Some(query.form),
                _ => None,
            });
            dash.send(Msg::ModelsListed { form: form.unwrap_or(RequestId(1)), place: place(provider), list });
        }
    }),
    ("flags", |dash| {
        dash.run("r-0004", &live()).text("qf");
    }),
    ("flags_asked", |dash| {
        dash.run("r-0004", &live()).press("qf Space");
    }),
    ("help", |dash| {
        dash.text("?");
    }),
    ("help_found", |dash| {
        with_runs(dash);
        dash.text("?").text("step");
    }),
    ("confirm_kill", |dash| {
        with_runs(dash);
        dash.text("K");
    }),
    ("failure", |dash| {
        dash.send(Msg::EffectFailed {
            what: "copy",
            text: "the terminal took no clipboard".into(),
        });
        dash.send(Msg::Notice("Wrote r-0001.jsonl".into()));
    }),
];

/// Overlays over a run: the run's own pictures stand with the run view.
const OVER_A_RUN: &[Picture] = &[
    ("run_flags", |dash| {
        dash.run("r-0004", &live()).press("f Space");
    }),
    ("run_help", |dash| {
        dash.run("r-0004", &live()).text("?");
    }),
    ("run_kill", |dash| {
        dash.run("r-0004", &paused()).text("K");
    }),
    ("run_form", |dash| {
        dash.run("r-0001", &stopped()).text("n");
    }),
    ("run_leave", |dash| {
        dash.run("r-0004", &live()).press("C-c");
    }),
];

/// The launch form of a person's own file with live chosen.
fn live_form(dash: &mut Dash) {
    dash.text("jjn");
    focus(dash, &FieldId::Model);
    dash.press("Left");
}

/// The same on its model field, with a list of 300 names and one of Ollama's.
fn with_list(dash: &mut Dash) {
    live_form(dash);
    answer(dash, ready("small-1"), Vec::new());
    let [(form, at)] = &lists_wanted(dash)[..] else { panic!("one list") };
    let name = |nth: usize| match nth {
        7 => format!("vendor-{nth:03}/a-name-that-goes-on-{}-preview", "and-on-".repeat(12)),
        nth => format!("vendor-{nth:03}/large-{}", nth % 7),
    };
    let names: Vec<String> = (0..300).map(name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    dash.send(Msg::ModelsListed { form: *form, place: at.clone(), list: listing(&names) });
    let (ollama, list) = (place("ollama"), listing(&["llama3.2:latest", "qwen3:8b"]));
    dash.send(Msg::ModelsListed { form: *form, place: ollama, list });
    focus(dash, &FieldId::ModelName);
}

fn focus(dash: &mut Dash, id: &FieldId) {
    loop {
        match dash.state.overlays.last() {
            Some(Overlay::Form(form)) if form.fields.focus == *id => return,
            Some(Overlay::Form(_)) => {
                dash.press("Tab");
            }
            _ => panic!("no form"),
        }
    }
}

/// The states that are no pictures: they differ from one by these texts.
const TOLD: &[(&str, &[&str])] = &[
    ("home_preview", &["┬─ 3 r-0004 ─", "├─ 2 Runs ─", "│>● LIVE      r-0004 collaboration "]),
    ("failure", &["Wrote r-0001.jsonl  1 more, Esc"]),
    (
        "flags_asked",
        &[
            "║>[~] legal_analyst                    off → on (pending)     ── It will be on ─",
            "· Takes effect at round 3, or at the final answer. ",
            "· Space takes the switch back. ",
            " j k move  Space switch  u undo  : commands  ? help  q back  Esc close",
        ],
    ),
    (
        "form_choose",
        &[
            "║  Replies           *‹ live ›  several providers have a key ",
            "║ >Model              ◆ choose one  Enter lists the providers ",
            "║ ✗ several providers have a key: press Enter on Model and choose one ",
            "║ [ Start ]     [ Cancel ]   y copies the command line ",
        ],
    ),
    (
        "form_faulty",
        &[
            "║  legal_analyst     *[x] on                         Legal analyst at the table ",
            "║ >Max rounds        *0                              ✗ 0 is out of range (1 to 1000) ",
            "║ ✗ 0 is out of range (1 to 1000) ",
            "║ [ Start ]     [ Cancel ]   Ctrl-S starts, Esc leaves the text ",
            " Tab field  Ctrl-S start  Esc leave text",
        ],
    ),
    (
        "form_list_found",
        &[
            "║ LARGE 2▌ ",
            "║ Example at api.example.com, 300 models ",
            "║ > vendor-002/large-2 ",
            "║   vendor-012/large-5 ",
            "║   vendor-037/large-2 ",
            "║ --model example/vendor-002/large-2 ",
            "═ 161 of 302 models ═╝",
        ],
    ),
    (
        "help_found",
        &[
            "║ step▌ ",
            "║ Start, pause, step, switch ",
            "║ > s             step to the next boundary ",
            "║   S             run to the next round ",
            "║ ✓ done  ● running  ○ waiting  ‖ paused  ↻ retry ",
            " ↓ ↑ move  ⏎ run  Esc close",
        ],
    ),
];

#[test]
fn pictures() {
    for (name, come) in PICTURES {
        if let Some((_, texts)) = TOLD.iter().find(|(told, _)| told == name) {
            let mut dash = dash(120, 36);
            come(&mut dash);
            shows(&dash, texts);
            continue;
        }
        for &(cols, rows) in sizes_of(name) {
            let mut dash = dash(cols, rows);
            come(&mut dash);
            insta::assert_snapshot!(format!("{name}_{cols}x{rows}"), dash.dump());
        }
    }
}

/// A pane that takes the keys has the brighter frame, and a list without them marks no row.
#[test]
fn focus_moves_frame_and_row_style() {
    let mut dash = dash(120, 36);
    with_runs(&mut dash);
    let styles = |dash: &Dash| {
        let buf = dash.draw();
        [(119, 10), (0, 30), (40, 29)].map(|at| buf[at].style())
    };
    let [preview, runs, row] = styles(&dash);
    assert_ne!(preview, runs, "the runs have the keys");
    dash.press("3");
    let [preview_then, runs_then, row_then] = styles(&dash);
    assert_eq!((preview_then, runs_then), (runs, preview), "the preview has them");
    assert_ne!(row.bg, runs.bg, "the selected row");
    assert_eq!(row_then.bg, runs.bg, "it is not marked");
}

#[test]
fn changed_and_faulty_fields_stand_out() {
    let drawn = |name: &str| {
        let mut dash = dash(120, 36);
        let picture = PICTURES.iter().find(|(known, _)| *known == name);
        picture.expect("a picture").1(&mut dash);
        dash.draw()
    };
    let (form, flags) = (drawn("form_faulty"), drawn("flags_asked"));
    let style = |at: (u16, u16)| form[at].style();
    assert_eq!(style((61, 20)), style((10, 24)), "the error beside its field, and below");
    assert_ne!(style((61, 20)).fg, style((61, 18)).fg, "another field has a hint there");
    assert_ne!(style((28, 18)).fg, style((28, 21)).fg, "a field that is changed, one that is not");
    assert!(style((29, 20)).add_modifier.contains(Modifier::REVERSED), "the cursor");
    assert_eq!(flags[(3, 24)].style().fg, style((28, 18)).fg, "a switch that waits is a change");
}

/// What stands out in a cell is more than its text.
#[test]
fn notice_has_style_of_its_own() {
    let mut dash = dash(120, 36);
    let style = |dash: &Dash| dash.draw()[(106, 34)].style();
    let plain = style(&dash);
    dash.send(Msg::EffectFailed { what: "copy", text: "the terminal took no clipboard".into() });
    dash.send(Msg::Notice("Wrote r-0001.jsonl".into()));
    assert_ne!(style(&dash), plain);
    assert_ne!(dash.draw()[(88, 34)].style(), style(&dash), "how many more is dimmer");
}

/// A run that is read again says so, and when it was, at every size.
#[test]
fn kept_run_says_when_it_was() {
    for (cols, rows) in SIZES {
        let mut dash = dash(cols, rows);
        list(&mut dash, history());
        dash.press("2j Enter");
        answer_open(&mut dash, &facts("checkout-launch", &[], &[], Schedule::default()));
        shows(
            &dash,
            &[
                "✓ DONE     kept, 3h ago   ".trim_end(),
                "  ▲ GO  3 go, round 3 of 3 ",
                " ▲ go      .91 ",
                "F fork",
            ],
        );
        let screen = dash.screen();
        let pressed = ["f flags", "Space pause"].iter().any(|key| screen.contains(key));
        assert!(!pressed, "nothing of an ended run is steered: {screen}");
    }
}

#[test]
fn windows_over_home_are_whole_wide() {
    let mut flags = dash(200, 50);
    flags.run("r-0004", &live()).press("qf");
    shows(
        &flags,
        &[
            "╔═ Flags of r-0004, live ═",
            "║>[ ] legal_analyst                     off                    ── If it is switched on now ─",
            "· Takes effect at round 3, or at the final answer. ",
            "· legal_analyst joins at round 3 unless round 2 decides. ",
            "· Then 4 seats, messages left 6 of 12 before they speak. ",
            " j k move  Space switch  : commands  ? help  q back  Esc close",
        ],
    );
    let mut kill = dash(200, 50);
    with_runs(&mut kill);
    kill.press("K");
    shows(
        &kill,
        &[
            "╔═ Confirm ═",
            "║ End all 2 live runs now?                                         ║",
            "║ r-0003, r-0004                                                   ║",
            "║ Running calls are cancelled; what was said is kept.              ║",
            " y yes  n no",
        ],
    );
}

#[test]
fn in_seven_bits() {
    for (name, come) in PICTURES {
        let settings = DisplaySettings { ascii: true, ..DisplaySettings::default() };
        let mut dash = Dash::over(100, 30, scenarios(), settings);
        come(&mut dash);
        let screen = dash.screen();
        assert!(screen.is_ascii(), "{name}:\n{screen}");
    }
    let settings = DisplaySettings { ascii: true, ..DisplaySettings::default() };
    let mut dash = Dash::over(120, 36, scenarios(), settings);
    with_runs(&mut dash);
    insta::assert_snapshot!("home_runs_ascii", dash.screen());
}

#[test]
fn states_differ_without_colours() {
    let mut dash = dash(120, 36);
    dash.theme = crate::screen::theme::Theme::shipped("mono").expect("shipped");
    with_runs(&mut dash);
    let buf = dash.draw();
    assert!(buf.content().iter().all(|cell| {
        use ratatui::style::Color::Reset;
        (cell.fg, cell.bg) == (Reset, Reset)
    }));
    insta::assert_snapshot!("home_runs_mono", dash.dump());
}

#[test]
fn too_small_screen_names_needed_size() {
    let mut dash = dash(59, 15);
    dash.run("r-0004", &live());
    let screen = dash.screen();
    for text in ["59x15: too small", "needs 60x16", "run r-0004 continues"] {
        assert!(screen.contains(text), "{screen}");
    }
}

/// Every picture at every size, come to at a usual size and then resized, and the other way round.
#[test]
fn no_size_is_the_wrong_one() {
    let odd = [(1, 1), (1, 400), (400, 1), (60, 400), (400, 16), (300, 100), (1000, 300)];
    for (nth, (name, come)) in (0..).zip(PICTURES.iter().chain(OVER_A_RUN)) {
        let mut dash = dash(120, 36);
        come(&mut dash);
        let small = (1..=40).flat_map(|rows| (1..=90).map(move |cols| (cols, rows)));
        for (cols, rows) in small.chain(odd) {
            // Below the least size all are alike: a few of them do.
            if (cols < 58 || rows < 15) && (cols * 7 + rows) % 11 != 0 {
                continue;
            }
            // Each screen takes a part of the others, and the next screen another part.
            if cols < 300 && rows < 300 && (cols * 7 + rows + nth) % 13 != 0 {
                continue;
            }
            dash.send(Msg::Resize { cols, rows });
            let buf = dash.draw();
            assert_eq!(buf.area, dash.state.size.area(), "{name} at {cols}x{rows}");
        }
    }
    for (cols, rows) in [(1, 1), (2, 3), (59, 40), (60, 16), (61, 17), (119, 15)] {
        for (_, come) in PICTURES.iter().chain(OVER_A_RUN) {
            // Nothing is come to where nothing is shown: that is resized to.
            let shown = !too_small(Rect::new(0, 0, cols, rows));
            let mut dash = if shown { dash(cols, rows) } else { dash(120, 36) };
            come(&mut dash);
            dash.send(Msg::Resize { cols, rows });
            dash.draw();
            dash.press("Down PgDn").wheel(false, 0, 0).click(0, 0);
            dash.draw();
        }
    }
}

/// A thousand runs: only the rows in view are drawn, and the last is reached.
#[test]
fn many_runs_are_a_window() {
    let events = upto(|kind| matches!(kind, EventKind::RunStarted(_)));
    let mut dash = dash(120, 36);
    for number in 0..1000 {
        dash.run(&format!("r-{number:04}"), &events).text("q");
    }
    let screen = dash.screen();
    assert!(screen.contains("r-0999") && screen.contains("of 1000"), "{screen}");
    dash.text("G");
    assert!(dash.screen().contains("r-0000"), "the oldest is the last");
}
