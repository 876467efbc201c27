//! What the doctor finds, as lines for people.

use std::borrow::Cow;

use crate::app::measure::columns;
use crate::cli::paint::Paint;
use crate::event::visible::visible;
use crate::ui::glyph::Glyph;
use crate::ui::theme::Role;

/// The most columns of what a line is about, before the lines lose their alignment.
const ABOUT: usize = 28;

/// What one line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rating {
    /// As it should be.
    Good,
    /// Good to know.
    Note,
    /// To be fixed.
    Bad,
}

/// One thing that was found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// How good it is.
    pub rating: Rating,
    /// What it is about.
    pub about: Cow<'static, str>,
    /// What was found.
    pub text: String,
    /// What to do about it.
    pub advice: Option<String>,
}

impl Finding {
    /// Something that is as it should be.
    pub fn good(about: impl Into<Cow<'static, str>>, text: impl Into<String>) -> Self {
        Self { rating: Rating::Good, about: about.into(), text: text.into(), advice: None }
    }

    /// Something to know.
    pub fn note(
        about: impl Into<Cow<'static, str>>,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { rating: Rating::Note, advice: Some(advice.into()), ..Self::good(about, text) }
    }

    /// Something to fix.
    pub fn bad(
        about: impl Into<Cow<'static, str>>,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { rating: Rating::Bad, ..Self::note(about, text, advice) }
    }

    /// The same without advice: the text says itself what to do.
    pub fn plain(self) -> Self {
        Self { advice: None, ..self }
    }
}

/// The findings as lines: a sign, what it is about, what was found, and below it what to do.
pub fn lines(findings: &[Finding], paint: &Paint) -> String {
    let widest = findings.iter().map(|finding| columns(&visible(&finding.about))).max();
    let width = widest.unwrap_or(0).clamp(10, ABOUT);
    findings.iter().map(|finding| line(finding, width, paint)).collect()
}

fn line(finding: &Finding, width: usize, paint: &Paint) -> String {
    let (glyph, role) = match finding.rating {
        Rating::Good => (Glyph::Done, Role::Done),
        Rating::Note => (Glyph::Alert, Role::Retry),
        Rating::Bad => (Glyph::Failed, Role::Failed),
    };
    let sign = paint.role(role, paint.glyph(glyph));
    let about = visible(&finding.about);
    let gap = " ".repeat(width.saturating_sub(columns(&about)));
    let mut text = format!("{sign} {about}{gap} {}\n", visible(&finding.text));
    if let Some(advice) = &finding.advice {
        let advice = paint.role(Role::Dim, &visible(advice));
        text += &format!("  {:<width$} {} {advice}\n", "", paint.glyph(Glyph::Arrow));
    }
    text
}
