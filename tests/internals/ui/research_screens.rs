//! What a research run looks like: snapshots of text and styles at three sizes.

use super::{SIZES, shows, sizes_of};
use std::sync::Arc;

use crate::log::event::{BoundaryId, EventKind, Initiator, RunId, SpanId, StepSize};
use crate::log::facts::research::ResearchFact;
use crate::log::facts::{PatternFact, PatternPlan};
use crate::screen::Msg;
use crate::screen::effect::{Effect, Export};
use crate::screen::msg::PartialText;
use crate::screen::state::DisplaySettings;
use crate::support::facts::research;
use crate::support::facts::research::ResearchFacts;
use crate::support::screen;
use crate::support::screen::{Dash, shipped};
use crate::words::patterns::words_of;

fn dash(cols: u16, rows: u16, facts: &ResearchFacts) -> Dash {
    let mut dash = Dash::new(cols, rows);
    dash.run("r-b7c0", &facts.log);
    dash
}

/// A model says this just now.
fn says(dash: &mut Dash, facts: &ResearchFacts, span: SpanId, text: &str) {
    let at = facts.log.last().map(|event| event.at);
    let live = PartialText { text: text.to_owned(), pieces: 3, first_at: at, last_at: at };
    dash.send(Msg::Live { run: RunId::new("r-b7c0"), span, text: Some(live) });
}

fn pictures_of(name: &str, facts: &ResearchFacts) {
    for &(cols, rows) in sizes_of(name) {
        insta::assert_snapshot!(format!("{name}_{cols}x{rows}"), dash(cols, rows, facts).dump());
    }
}

const SPEAKS: &str =
    "{\"notes\": [{\"claim\": \"At the peak 12 % failed.\", \"quote\": \"at the pe";

#[test]
fn in_the_middle_of_reading() {
    let facts = research::reading();
    for &(cols, rows) in sizes_of("reading") {
        let mut dash = dash(cols, rows, &facts);
        says(&mut dash, &facts, facts.attempt("notes"), SPEAKS);
        insta::assert_snapshot!(format!("reading_{cols}x{rows}"), dash.dump());
    }
}

#[test]
fn pictures() {
    pictures_of("answered", &research::answered());
    pictures_of("unreliable", &research::unreliable());
    pictures_of("misquoted", &research::misquoted());
}

/// The question is asked with one more part, of which no note says anything.
#[test]
fn lists_unanswered_part_below_answer() {
    let mut facts = research::answered();
    let first = Arc::make_mut(&mut facts.log[0]);
    let EventKind::RunStarted(head) = &mut first.kind else { panic!("no head: {first:?}") };
    let PatternPlan::Research(plan) = &mut Arc::make_mut(head).plan else { panic!("research") };
    Arc::make_mut(plan).question.push_str(" Who owns the lawnmower?");
    let mut dash = dash(120, 36, &facts);
    dash.text("3G");
    let screen = dash.screen();
    assert!(screen.contains("Unanswered: Who owns the lawnmower?"), "{screen}");
}

#[test]
fn each_pane_alone() {
    for (pane, of) in [("2", "page"), ("3", "answer"), ("4", "notes"), ("5", "events")] {
        let mut dash = dash(80, 24, &research::answered());
        dash.press(pane);
        insta::assert_snapshot!(format!("pane_answered_{of}_80x24"), dash.screen());
    }
}

#[test]
fn panes_without_reliable_sources() {
    for (pane, texts) in [
        (
            "2",
            &[
                "─ 2 #4 community-rumors.example.net ⊘ denied ─",
                "│ Cards down for good?? My bank says weeks ",
                "│ https://community-rumors.example.net/t/cards-down ",
                "│ unknown date ",
                "│ ⊘ not on the allowlist ",
                "│ community-rumors.example.net is not on the policy allowlist. ",
                "│ Add it to allowed_domains_policy if you trust it. ",
                "│ Search result: \"Payments failed for a part of cards.\" ",
            ][..],
        ),
        (
            "3",
            &[
                "│ ✗  no usable sources in read extract ",
                "│    no_reliable_sources ",
                "│    No source yielded a note: the list of sources gives the reason for each. ",
                "│ ✗  1 source: not found ",
                "│ ⊘  1 source: switched off ",
                "│ –  1 source: duplicate ",
                "│ ⊘  1 source: not on the allowlist ",
                "│ ✗  1 source: robots disallowed ",
                "│ ✗  1 source: stale ",
            ],
        ),
        (
            "4",
            &["─ 4 Notes ─", "│ No notes: no source yielded one. Pane 1 has the reason for each. "],
        ),
        (
            "5",
            &[
                "─ 17 notable of 37 events · L: all ─",
                "sources.deduped                  5 kept, #3 duplicate of #1 ",
                "source.closed    #1              not found: The server says that th…│",
                "source.closed    #2              switched off ",
                "source.closed    #5              robots disallowed: robots.txt of r…│",
                "page.read        #6              Shops ask for cash as cards fail,… │",
                "source.closed    #6              stale: it is 490 days old; researc…│",
                "source.closed    #4              not on the allowlist ",
                "reading.closed                   no more sources ",
                "run.closed                       no usable sources in read extract… │",
            ],
        ),
    ] {
        let mut dash = dash(80, 24, &research::unreliable());
        dash.press(pane);
        shows(&dash, &["  ✗ NO USABLE SOURCES  in read extract, sources: 1 not found, 1 switched"]);
        shows(&dash, texts);
    }
}

/// The part of a pane's title that the upper line of its frame shows.
fn titled(dash: &Dash, text: &str) -> bool {
    dash.screen().lines().any(|line| line.starts_with(['┌', '├']) && line.contains(text))
}

/// The text of the cells that wear the look of what a search found: the quote that is shown.
fn marked(dash: &Dash) -> String {
    let found = dash.theme.style(crate::words::styled::StyleRole::Found);
    let is_found = |cell: &ratatui::buffer::Cell| {
        Some(cell.fg) == found.fg && cell.modifier == found.add_modifier
    };
    let buf = dash.draw();
    let mut out = String::new();
    for y in buf.area.top()..buf.area.bottom() {
        let cells = (buf.area.left()..buf.area.right()).map(|x| &buf[(x, y)]);
        let row: String = cells.filter(|cell| is_found(cell)).map(|cell| cell.symbol()).collect();
        out.push_str(&row);
    }
    out.retain(|c| !c.is_whitespace());
    out
}

fn solid(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[test]
fn sentence_links_to_quotes_and_back() {
    for (cols, rows) in SIZES {
        let mut dash = dash(cols, rows, &research::answered());
        dash.text("3c");
        assert!(titled(&dash, "2 n1 in #1"), "{}", dash.screen());
        assert_eq!(
            marked(&dash),
            solid("rose from its usual 0.4 % to 3.4 % at the peak at 10:15 UTC")
        );
        dash.text("c");
        assert!(titled(&dash, "2 n3 in #5"), "{}", dash.screen());
        assert_eq!(marked(&dash), solid("at the peak 12 % of payments failed"));
        dash.text("c");
        assert!(dash.screen().contains(">!  Card payments"), "{}", dash.screen());
        dash.text("jc");
        assert!(titled(&dash, "2 n2 in #1"), "{}", dash.screen());
        assert_eq!(marked(&dash), solid("payments were back to normal at 11:25 UTC"));
        // A sentence without a source says so.
        dash.text("3jjc");
        assert!(dash.screen().contains("This sentence cites no note."), "{}", dash.screen());
    }
}

#[test]
fn note_links_to_page_and_back() {
    let mut dash = dash(80, 24, &research::answered());
    dash.text("4jjjjc");
    assert!(titled(&dash, "2 n2 in #1"), "{}", dash.screen());
    dash.text("c");
    assert!(dash.screen().contains(">✓ n2"), "{}", dash.screen());
    // The quote of a refused note is not in its page.
    dash.text("Gc");
    assert!(
        dash.screen().contains("That note was refused: it has no quote to show."),
        "{}",
        dash.screen()
    );
    // The conflict leads to the first of its two.
    dash.text("gc");
    assert!(titled(&dash, "2 n1 in #1"), "{}", dash.screen());
}

#[test]
fn events_lead_to_their_cause() {
    let mut dash = dash(120, 36, &research::answered());
    dash.press("/source.closed Enter gc");
    let screen = dash.screen();
    let selected = screen.lines().find(|line| line.starts_with("│>")).expect("a selected fact");
    assert!(selected.contains("note.taken") && selected.contains("#1"), "{selected}");
    dash.text("1gc");
    let screen = dash.screen();
    let selected = screen.lines().find(|line| line.starts_with("│>0")).expect("a selected fact");
    assert!(selected.contains("call.started"), "{selected}");
}

#[test]
fn selection_stops_following_until_resumed() {
    let mut facts = research::reading();
    let mut dash = dash(120, 36, &facts);
    assert!(titled(&dash, "1 Sources · following"), "{}", dash.screen());
    dash.text("gj");
    assert!(titled(&dash, "1 Sources · G: follow"), "{}", dash.screen());
    assert!(titled(&dash, "2 #2 vendor.example.com"), "{}", dash.screen());
    assert!(dash.screen().contains("Its flag vendor_runtime is off"), "{}", dash.screen());
    let row = |dash: &Dash| {
        let screen = dash.screen();
        let at = screen.lines().position(|line| line.contains("│>⊘ #2"));
        at.expect("the selected row")
    };
    let before = row(&dash);
    let from = facts.log.len();
    facts = research::answered();
    let events = facts.log[from..].to_vec();
    dash.send(Msg::Events { run: RunId::new("r-b7c0"), events });
    assert_eq!(row(&dash), before);
    dash.text("G");
    assert!(titled(&dash, "2 n1 in #1"), "{}", dash.screen());
}

#[test]
fn selected_note_survives_inserted_conflicts() {
    let facts = research::answered();
    let compared = screen::until(&facts.log, |kind| {
        matches!(kind, EventKind::Pattern(PatternFact::Research(ResearchFact::NotesCompared(_))))
    });
    let mut dash = Dash::new(120, 36);
    dash.run("r-b7c0", &facts.log[..compared - 1]);
    dash.text("4gj");
    assert!(dash.screen().contains(">○ n2"), "{}", dash.screen());
    let events = facts.log[compared - 1..].to_vec();
    dash.send(Msg::Events { run: RunId::new("r-b7c0"), events });
    assert!(dash.screen().contains(">✓ n2"), "{}", dash.screen());
}

#[test]
fn before_anything_happened() {
    insta::assert_snapshot!("begun_120x36", dash(120, 36, &ResearchFacts::start()).screen());
}

#[test]
fn ascii_screen_is_all_ascii() {
    let settings = DisplaySettings { ascii: true, ..DisplaySettings::default() };
    for (name, facts) in [("reading", research::reading()), ("answered", research::answered())] {
        let mut dash = Dash::over(120, 36, shipped(), settings.clone());
        dash.run("r-b7c0", &facts.log);
        let screen = dash.screen();
        assert!(screen.is_ascii(), "{screen}");
        if name == "answered" {
            insta::assert_snapshot!("ascii_answered_120x36", screen);
        }
    }
}

#[test]
fn shows_hostile_pages_without_sending() {
    let facts = research::hostile("\u{1b}[2J\u{202e}gone\u{7} ");
    let mut dash = dash(120, 36, &facts);
    insta::assert_snapshot!("hostile_120x36", dash.screen());
    dash.text("3c");
    assert!(titled(&dash, "n1 in #1"), "{}", dash.screen());
    assert!(!dash.screen().contains(['\u{1b}', '\u{7}', '\u{202e}']));
}

/// A page as large as may be read, one line of a megabyte in it: its end is reached, and the quote
/// in its middle is found.
#[test]
fn scrolls_whole_huge_page() {
    let quote = "the needle that stands in the very middle of it";
    let line = "word ".repeat(200_000);
    let body = format!("{line}\n\n{quote}\n\n{}last words", "A paragraph.\n\n".repeat(10_000));
    let mut facts = ResearchFacts::start();
    facts.plans().finds(research::six()).keeps(&[1], &[]);
    facts.reads(1, "Long", "", &body).asks_notes(1).says("notes", "{}");
    facts.note(1, "It stands there.", &quote.replace("stands in", "stands \n  in")).noted(1);
    let mut dash = dash(120, 36, &facts);
    assert_eq!(marked(&dash), solid(quote), "{}", dash.screen());
    dash.text("2G");
    assert!(dash.screen().contains("last words"), "{}", dash.screen());
    dash.press("k PgUp g");
    assert!(dash.screen().contains("word word"), "{}", dash.screen());
}

#[test]
fn click_selects_and_wheel_scrolls() {
    let mut dash = dash(120, 36, &research::answered());
    let find = |dash: &Dash, text: &str| {
        let screen = dash.screen();
        let row = screen.lines().position(|line| line.contains(text)).expect("on the screen");
        let line = screen.lines().nth(row).expect("its row");
        (line.split(text).next().expect("before it").chars().count() as u16, row as u16)
    };
    let (col, row) = find(&dash, "switched off");
    dash.click(col, row);
    assert!(dash.screen().contains("│>⊘ #2"), "{}", dash.screen());
    let (col, row) = find(&dash, "Payments were back to normal");
    dash.click(col, row);
    assert!(dash.screen().contains(">✓  Payments were back"), "{}", dash.screen());
    assert!(titled(&dash, "2 n2 in #1"), "{}", dash.screen());
    let (col, row) = find(&dash, "n1 At the peak");
    for _ in 0..20 {
        dash.wheel(false, col, row);
    }
    assert!(dash.screen().contains("refused: quote not on"), "{}", dash.screen());
    for _ in 0..20 {
        dash.wheel(true, col, row);
    }
    assert!(dash.screen().contains("conflict: n1 says"), "{}", dash.screen());
}

#[test]
fn enter_opens_call_y_copies_quote() {
    let mut dash = dash(120, 36, &research::answered());
    for (keys, shows) in [
        ("1g", "payments, 5 March"),
        ("2", "read_source"),
        // A sentence: the note that it cites.
        ("3g", "source     #1"),
        ("4gjj", "call ────"),
    ] {
        dash.text(keys).press("Enter");
        assert!(dash.screen().contains(shows), "{keys}: {}", dash.screen());
        dash.press("Esc Esc");
    }
    dash.press("1gj Enter");
    assert!(dash.screen().contains("switched off"), "{}", dash.screen());
    dash.press("Esc");
    dash.text("3gc").asked();
    dash.text("y");
    let copied = dash.asked();
    let [Effect::Copy(text)] = copied.as_slice() else { panic!("{copied:?}") };
    assert!(text.starts_with("\"rose from its usual"), "{text}");
    assert!(text.ends_with("/incidents/2026-03-05"), "{text}");
}

#[test]
fn e_exports_finished_report() {
    let files = |facts: &ResearchFacts| {
        let mut dash = dash(120, 36, facts);
        dash.asked();
        let offered = dash.screen().contains("e export");
        dash.text("e");
        let mut asked = dash.asked();
        let Some(Effect::Export(files)) = asked.pop() else { panic!("no export: {asked:?}") };
        assert!(asked.is_empty(), "{asked:?}");
        let page = dash.state.visible_run().expect("a run on the screen");
        (
            offered,
            files,
            words_of(page.world()).and_then(|it| it.report(page.world())).expect("a report"),
        )
    };
    let named = |files: &[Export]| files.iter().map(|it| it.file.clone()).collect::<Vec<_>>();
    let answered = |files: &[Export]| assert_eq!(named(files)[..2], ["r-b7c0.md", "r-b7c0.jsonl"]);

    let (offered, written, whole) = files(&research::answered());
    assert!(offered);
    answered(&written);
    let text = written.into_iter().next().map(|it| it.contents.into_text()).expect("a report");
    assert!(text.contains("[^n1]") && text.contains("(uncited)"), "{text}");
    assert_eq!(text, whole);

    let (offered, written, _) = files(&research::unreliable());
    assert!(offered, "a run that ended without an answer tells why");
    answered(&written);
    let text = written.into_iter().next().map(|it| it.contents.into_text()).expect("a report");
    assert!(text.contains("No answer: "), "{text}");

    let (offered, written, _) = files(&research::reading());
    assert!(!offered, "nothing can be told yet");
    assert_eq!(named(&written), ["r-b7c0.jsonl"], "the facts so far can be had at any time");
}

#[test]
fn hides_unstated_trust() {
    // Of the rumours the scenario says nothing.
    let mut dash = dash(200, 50, &research::answered());
    let row = |dash: &Dash, no: &str| {
        let screen = dash.screen();
        let row = screen.lines().find(|line| line.contains(no)).expect("a row").to_owned();
        row.chars().skip(1).take(120).collect::<String>()
    };
    assert!(row(&dash, "#4  page limit reached").contains("page limit reached       ·   "));
    assert!(!row(&dash, "#4  page limit reached").contains(['▰', '▱']));
    assert!(row(&dash, "#6  read, 1 note").contains(".50  ▰▰▰▱▱"));
    dash.text("1gjjj");
    assert!(titled(&dash, "#4 "), "{}", dash.screen());
    assert!(!dash.screen().contains("trust ."), "{}", dash.screen());
    dash.text("jj");
    assert!(titled(&dash, "#6 "), "{}", dash.screen());
    assert!(dash.screen().contains("trust .50"), "{}", dash.screen());
}

#[test]
fn breakpoint_shows_before_next_step() {
    let mut facts = research::reading();
    let mut dash = dash(120, 36, &facts);
    dash.asked();
    dash.text("B");
    let asked = format!("{:?}", dash.asked());
    assert!(asked.contains("verify"), "{asked}");
    let at = BoundaryId::new("verify");
    facts.add(SpanId::RUN, EventKind::BreakpointChanged { at, set: true });
    let step = StepSize::Round;
    let boundary = BoundaryId::new("read_extract");
    facts.add(SpanId::RUN, EventKind::Stepped { step, boundary, paused_ms: 0 });
    facts.add(SpanId::RUN, EventKind::Resumed { by: Initiator::You, paused_ms: 0 });
    let screen = self::dash(120, 36, &facts).screen();
    assert!(screen.contains("verify ○ ◉"), "{screen}");
}

#[test]
fn scrubbing_shows_past_state() {
    let facts = research::answered();
    let mut dash = dash(120, 36, &facts);
    for _ in 0..28 {
        dash.text(",");
    }
    let screen = dash.screen();
    assert!(screen.contains("REPLAY"), "{screen}");
    assert!(screen.contains("● #5  taking notes"), "{screen}");
    assert!(!screen.contains("conflict:"), "{screen}");
    dash.text("G");
    assert!(dash.screen().contains("conflict: n1 says"), "{}", dash.screen());
}

#[test]
fn filters_facts_by_reason() {
    let mut dash = dash(120, 36, &research::unreliable());
    dash.press("'/reason == \"stale\"' Enter");
    assert!(dash.screen().contains(" · 1 shown"), "{}", dash.screen());
    dash.press("g Enter");
    insta::assert_snapshot!("inspector_skipped_120x36", dash.screen());
}

/// A page that was read and is of no use all the same shows its text, and why.
#[test]
fn stale_page_warns_above_text() {
    for (cols, rows) in SIZES {
        let mut dash = dash(cols, rows, &research::unreliable());
        dash.text("1jGgjjjjj2");
        let screen = dash.screen();
        assert!(screen.contains("✗ stale: it is 490 days old"), "{screen}");
        assert!(screen.contains("Shops asked for cash"), "{screen}");
    }
}

#[test]
fn run_preview_counts_sources_by_progress() {
    let mut dash = Dash::new(120, 36);
    dash.run("r-b7c0", &research::answered().log);
    dash.state.home.preview_source = crate::screen::home::HomePane::Runs;
    let items = crate::screen::home::preview::items(&dash.state).lines;
    let of = |label: &str| {
        items.iter().find(|item| item.label.as_deref() == Some(label)).map(|it| it.text())
    };
    assert_eq!(of("sources").as_deref(), Some("6 found, 5 kept, 3 allowed, 3 read"));
    assert_eq!(
        of("notes").as_deref(),
        Some("5 taken, 5 cited, 1 refused, 1 in conflict, 1 unconfirmed")
    );
}
