//! A comparison as a text: for a terminal, a pipe or the clipboard.

use std::time::Duration;

use super::compared_run::ComparedRun;
use super::{DifferentEvent, EventDifference, LogComparison};
use crate::base::visible::{visible, visible_within};
use crate::event::EventKind;
use crate::narrate::format;
use crate::narrate::style_role::StyleRole;

/// Longest text of one side, in characters.
const TEXT_CHARS: usize = 400;

/// Fields of one difference that are listed.
const MAX_FIELDS: usize = 3;

/// Differences after the first one that are listed.
const MAX_LISTED: usize = 20;

/// Puts a text into the style of a role.
type PaintText<'a> = &'a dyn Fn(StyleRole, &str) -> String;

/// The two runs up to their first difference, and what differs after it.
pub fn comparison_text(
    found: &LogComparison,
    runs: &[ComparedRun; 2],
    paint: PaintText<'_>,
) -> String {
    let mut out = String::new();
    for (name, run) in ["left ", "right"].into_iter().zip(runs) {
        let cost =
            run.cost_usd.map(|cost| "  ".to_owned() + &format::usd(cost)).unwrap_or_default();
        let line = format!(
            "{}  {}  {}  {}  {} tok{cost}\n",
            visible(&run.run),
            visible(&run.scenario),
            visible(run.stop_reason.as_deref().unwrap_or("not ended")),
            format::duration_text(Duration::from_millis(run.elapsed_ms)),
            format::count(run.tokens),
        );
        out += &format!("{}  {line}", paint(StyleRole::Dim, name));
    }
    if found.is_same() {
        return out + "nothing differs but ids and times\n";
    }
    if !found.setup.is_empty() {
        out += &format!("\n{}\n", paint(StyleRole::Title, "started with"));
    }
    for it in &found.setup {
        let side = |text: &str| match text {
            "" => "-".to_owned(),
            text => visible_within(text, TEXT_CHARS),
        };
        let (left, right) = (side(&it.left), side(&it.right));
        out += &format!("  {}: {left} | {right}\n", visible(&it.what));
    }
    let equal = format::count_noun(found.equal as u64, "event");
    let Some((first, rest)) = found.differences.split_first() else {
        return out + &format!("\n{equal} are equal; nothing else differs\n");
    };
    out += &format!("\n{}\n", paint(StyleRole::Title, "first difference"));
    out += &sides(first, paint);
    if !rest.is_empty() {
        let counted = format::count_noun(rest.len() as u64, "more difference");
        out += &format!("\n{}\n", paint(StyleRole::Title, &format!("{counted}, {equal} equal")));
        let listed = rest.iter().filter(|it| it.is_telling()).take(MAX_LISTED);
        listed.for_each(|it| out += &sides(it, paint));
    }
    out
}

/// A difference: where, and both sides of each field.
fn sides(it: &EventDifference, paint: PaintText<'_>) -> String {
    let mut out = format!(
        "  {}  {}\n",
        paint(StyleRole::Strong, &visible(&it.place())),
        visible(it.kind_name())
    );
    let mut row = |name: &str, text: &str| {
        let text = if text.is_empty() { "-".to_owned() } else { visible_within(text, TEXT_CHARS) };
        out += &format!("    {}  {text}\n", paint(StyleRole::Dim, name));
    };
    if it.fields.is_empty() {
        let line = |side: &Option<DifferentEvent>| {
            side.as_ref().map(|side| side.line.clone()).unwrap_or_default()
        };
        row("left ", &line(&it.left));
        row("right", &line(&it.right));
    }
    for field in it.fields.iter().take(MAX_FIELDS) {
        row("field", &field.name);
        row("left ", &field.left);
        row("right", &field.right);
    }
    out
}

impl EventDifference {
    /// Whether it is what people look for: replies, prompts, decisions. An end of a span says what its
    /// reply said.
    pub fn is_telling(&self) -> bool {
        let kind = |side: &Option<DifferentEvent>| {
            side.as_ref().is_some_and(|side| {
                matches!(
                    side.event.kind,
                    EventKind::Pattern(_)
                        | EventKind::CallStarted(_)
                        | EventKind::AttemptAnswered(_)
                        | EventKind::AttemptFailed(_)
                        | EventKind::AnswerComposed { .. }
                        | EventKind::FlagChanged { .. }
                        | EventKind::RunClosed(_)
                )
            })
        };
        kind(&self.left) || kind(&self.right)
    }

    /// What it belongs to, in one line.
    pub fn place(&self) -> String {
        if self.path.is_empty() { "run".to_owned() } else { self.path.join(" / ") }
    }

    /// The name of the kind of its events.
    pub fn kind_name(&self) -> &str {
        let side = self.left.as_ref().or(self.right.as_ref());
        side.map(|side| side.event.kind.name()).unwrap_or_default()
    }
}
