//! The theme that a person asked for: one of the shipped ones, or a file.

use crate::event::visible::visible;
use crate::ui::theme::Theme;

/// A theme file is never larger than this.
const MOST: u64 = 1 << 20;

/// The theme of this name or file; without one the default.
///
/// # Errors
/// What is wrong with it, and what there is.
pub fn find(wanted: Option<&str>) -> Result<Theme, String> {
    let Some(wanted) = wanted else { return Ok(Theme::default()) };
    if let Some(theme) = Theme::shipped(wanted) {
        return Ok(theme);
    }
    let shown = visible(wanted);
    let too_long = |file: std::fs::Metadata| file.len() > MOST;
    if std::fs::metadata(wanted).is_ok_and(too_long) {
        return Err(format!("--theme {shown}: too long for a theme"));
    }
    let text = std::fs::read_to_string(wanted).map_err(|error| {
        let names: Vec<&str> = Theme::names().collect();
        format!("--theme {shown}: no such theme ({}) and no file: {error}", names.join(", "))
    })?;
    Theme::parse(&text).map_err(|error| format!("--theme {shown}: {error}"))
}
