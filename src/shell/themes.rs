//! The theme that a person asked for: one of the shipped ones, or a file.

use std::io::ErrorKind;
use std::path::Path;

use crate::event::visible::visible;
use crate::regular;
use crate::ui::theme::Theme;

/// A theme file is never larger than this.
const MOST: u64 = 1 << 20;

/// The theme that `--theme` names, a shipped one or a file; without one the default.
///
/// # Errors
/// What is wrong with it, and what there is.
pub fn find(wanted: Option<&str>) -> Result<Theme, String> {
    let Some(wanted) = wanted else { return Ok(Theme::default()) };
    named(wanted, Path::new(wanted)).map_err(|why| format!("--theme {}{why}", visible(wanted)))
}

/// The theme that the configuration in this file names. A file is looked for beside it.
///
/// # Errors
/// As [`find`].
pub fn configured(wanted: &str, configuration: &Path) -> Result<Theme, String> {
    let beside = configuration.parent().unwrap_or(Path::new(""));
    named(wanted, &beside.join(wanted)).map_err(|why| format!("{}{why}", visible(wanted)))
}

/// A shipped theme by its name, else the one in the file at `path`; or what is to be said after its
/// name.
fn named(wanted: &str, path: &Path) -> Result<Theme, String> {
    if let Some(theme) = Theme::shipped(wanted) {
        return Ok(theme);
    }
    let bytes = regular::read(path, MOST).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            let names: Vec<&str> = Theme::names().collect();
            format!(": no such theme ({}) and no file: {error}", names.join(", "))
        }
        _ => format!(" cannot be read: {error}"),
    })?;
    let text = String::from_utf8(bytes).map_err(|_| ": it is not UTF-8".to_owned())?;
    Theme::parse(&text).map_err(|error| format!(": {error}"))
}
