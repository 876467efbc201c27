//! Checks the template of a handoff's input.

use crate::agents::spec::{HandoffPiece, HandoffTemplate};
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::NonBlankString;
use crate::scenario::file::template::{TemplatePart, TemplateScope};
use crate::scenario::file::tree::TextSpan;

/// Builds the template of a handoff's input: `{{input}}` is filled in now, `{message}` and the
/// other placeholders at the handoff.
pub(crate) fn handoff_input(
    text: &NonBlankString,
    filling: &TemplateScope<'_>,
    cx: &mut ReadContext,
) -> Option<HandoffTemplate> {
    let mut template = HandoffTemplate::default();
    for part in filling.parts(&text.text, text.at, cx) {
        match part {
            TemplatePart::FileText(from, own) => {
                check_placeholders(own, from, text.at, cx);
                template.push_template(own);
            }
            TemplatePart::Filled(value) => template.push_literal(&value),
            // Only texts of a script have such parts.
            TemplatePart::Later(_) | TemplatePart::Flag(_) => {}
        }
    }
    (!cx.has_error_here()).then_some(template)
}

/// Reports braces that look like a placeholder but are not, in a part of a template that begins
/// `from` bytes into it.
fn check_placeholders(own: &str, from: usize, at: TextSpan, cx: &mut ReadContext) {
    for (open, _) in own.match_indices('{') {
        let inner = &own[open + 1..];
        // Nested braces contain no placeholder; the inner pair may be one.
        let Some(name) = inner.find(['{', '}']).map(|end| &inner[..end]) else { return };
        if !inner[name.len()..].starts_with('}') {
            continue;
        }
        let like_a_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ');
        if name.chars().all(like_a_name) && !HandoffPiece::NAMES.contains(&name) {
            let at = cx.inner_span(at, from + open, from + open + name.len() + 2);
            let what = format!("`{{{name}}}` is not a placeholder of a handoff");
            let help = cx.suggest(name, HandoffPiece::NAMES);
            cx.error(at, what, help);
        }
    }
}
