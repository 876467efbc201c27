//! The title of the terminal's window: what the runs do.

use super::seven_bits;
use super::theme::Theme;
use crate::app::AppState;
use crate::app::run::RunPage;
use crate::base::visible::visible_within;
use crate::event::world::RunState;
use crate::narrate::glyph::{Glyph, Glyphs};

/// The most characters of a scenario's name.
const NAME: usize = 60;

/// The title: runs that are paused, else those that are live, else how the last one ended.
pub(crate) fn title(state: &AppState, theme: &Theme, glyphs: Glyphs) -> String {
    let live: Vec<&RunPage> = state.live_runs().collect();
    let is_paused = |page: &&RunPage| waits(&page.world().progress.stage);
    let paused: Vec<&RunPage> = live.iter().copied().filter(is_paused).collect();
    let says = match (&paused[..], &live[..]) {
        ([], []) => last(state).map(|page| {
            let sign = theme.run(page.world());
            named(glyphs, sign.glyph, &sign.word.to_lowercase(), page)
        }),
        ([], [one]) => Some(named(glyphs, Glyph::Running, "live", one)),
        ([], live) => Some(format!("{} {} live", glyphs.symbol(Glyph::Running), live.len())),
        ([one], [_]) => Some(named(glyphs, Glyph::Paused, "paused", one)),
        (paused, live) => {
            let (glyph, paused, going) =
                (glyphs.symbol(Glyph::Paused), paused.len(), live.len() - paused.len());
            Some(match going {
                0 => format!("{glyph} {paused} paused"),
                _ => format!("{glyph} {paused} paused, {going} live"),
            })
        }
    };
    let text = match says {
        Some(says) => format!("{says} {} roundtable", glyphs.symbol(Glyph::Dot)),
        None => "roundtable".to_owned(),
    };
    match glyphs {
        Glyphs::Ascii => seven_bits::text(&text),
        Glyphs::Unicode => text,
    }
}

/// Whether a run waits to be resumed: its clock is stopped.
pub(crate) fn waits(stage: &RunState) -> bool {
    matches!(stage, RunState::Paused { .. } | RunState::Pausing { since: Some(_), .. })
}

/// The run on the screen, else the one that started last.
fn last(state: &AppState) -> Option<&RunPage> {
    state.visible_run().or_else(|| state.runs.last())
}

fn named(glyphs: Glyphs, glyph: Glyph, word: &str, page: &RunPage) -> String {
    format!("{} {word} {}", glyphs.symbol(glyph), name(page))
}

/// The name of a run's scenario, as one line without control characters.
pub(crate) fn name(page: &RunPage) -> String {
    let head = page.world().head.as_ref();
    head.map_or_else(
        || page.id().to_string(),
        |head| visible_within(&head.scenario.to_string(), NAME),
    )
}
