//! What follows the titles of the research panes.

use ratatui::layout::Rect;

use crate::app::run::data::RunData;
use crate::app::run::layout::Pane;
use crate::narrate::glyph::Glyph;
use crate::panes::ResearchView;
use crate::panes::research::answer::answer_items;
use crate::panes::research::areas::source_parts;
use crate::scenario::spec::script::ScriptStep;
use crate::ui::cx::DrawContext;
use crate::ui::format;
use crate::ui::table::range;
use crate::ui::text::elide_middle;

/// Width limit of a model's name after a title.
const MODEL: usize = 24;

/// The model that wrote the pane's content, after its title; empty if the run uses one model.
pub(crate) fn model(data: &RunData, cx: &DrawContext, pane: Pane) -> String {
    let models = &data.shown().models;
    let model = match pane {
        Pane::Third => models.for_step(ScriptStep::Synthesize),
        Pane::Fourth => models.for_step(ScriptStep::Notes),
        _ => None,
    };
    let Some(model) = model else { return String::new() };
    format!(" {} {}", cx.glyphs.symbol(Glyph::Dot), elide_middle(model, MODEL, cx.glyphs))
}

/// Whether the pane follows the run, after its title.
pub(crate) fn follows(view: &ResearchView, data: &RunData, cx: &DrawContext, pane: Pane) -> String {
    // Only a live run can be followed.
    let live = data.shown().progress.is_live() && !data.is_scrubbed();
    if !live || pane == Pane::Second {
        return String::new();
    }
    let dot = cx.glyphs.symbol(Glyph::Dot);
    match view.follows(pane) {
        true => format!(" {dot} following {}", cx.glyphs.symbol(Glyph::Down)),
        false => format!(" {dot} G: follow"),
    }
}

/// The end of a pane's title: the range of rows in view if they do not all fit, and totals.
pub(crate) fn aside(view: &ResearchView, data: &RunData, pane: Pane, area: Rect) -> String {
    let Some(research) = data.shown().research() else { return String::new() };
    match pane {
        Pane::First => {
            let rows = source_parts(area).rows;
            let (window, _) = view.source_rows(data, usize::from(rows.height));
            let all = research.sources.len();
            if window.is_empty() || window.len() >= all {
                return String::new();
            }
            range(window.start, window.len(), all)
        }
        Pane::Third => match answer_items(data) {
            Some(_) if research.sentences.is_empty() => String::new(),
            Some(_) => {
                let all = research.sentences.len();
                let cited = research.sentences.iter().filter(|it| !it.citations.is_empty()).count();
                format!("{cited} of {} cited", format::count_noun(all as u64, "sentence"))
            }
            None => String::new(),
        },
        Pane::Fourth => {
            let mut parts = Vec::new();
            for (count, word) in [
                (research.compared.conflicts.len(), "in conflict"),
                (research.refused.len(), "refused"),
                (research.compared.unconfirmed.len(), "unconfirmed"),
            ] {
                let piece = format!("{count} {word}");
                let taken: usize = parts.iter().map(|part: &String| part.len() + 2).sum();
                if count > 0 && taken + piece.len() + 30 <= usize::from(area.width) {
                    parts.push(piece);
                }
            }
            parts.join(", ")
        }
        Pane::Second | Pane::Events => String::new(),
    }
}
