//! The theme that a person asked for: one of the shipped ones, or a file.

use std::io::ErrorKind;
use std::path::Path;

use crate::event::visible::visible;
use crate::regular;
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
    let bytes = regular::read(Path::new(wanted), MOST).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            let names: Vec<&str> = Theme::names().collect();
            format!("--theme {shown}: no such theme ({}) and no file: {error}", names.join(", "))
        }
        _ => format!("--theme {shown} cannot be read: {error}"),
    })?;
    let text = String::from_utf8(bytes).map_err(|_| format!("--theme {shown}: it is not UTF-8"))?;
    Theme::parse(&text).map_err(|error| format!("--theme {shown}: {error}"))
}
