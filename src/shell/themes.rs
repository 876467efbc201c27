//! Finds the chosen theme: a shipped one, or a file.

use std::io::ErrorKind;
use std::path::Path;

use crate::base::regular;
use crate::base::visible::visible;
use crate::host::config::ConfigFile;
use crate::ui::theme::Theme;

/// Size limit of a theme file, in bytes.
const MAX_THEME_BYTES: u64 = 1 << 20;

/// The theme of `--theme`, a shipped one or a file; the default without `--theme`.
///
/// # Errors
/// Why it cannot be used, and the names of the shipped themes.
pub fn find(wanted: Option<&str>) -> Result<Theme, String> {
    let Some(wanted) = wanted else { return Ok(Theme::default()) };
    shipped_or_file(wanted, Path::new(wanted))
        .map_err(|why| format!("--theme {}{why}", visible(wanted)))
}

/// The theme that the configuration file names; a theme file is relative to its folder. One that
/// cannot be used is an error of the configuration file.
pub fn from_config(file: &mut ConfigFile) -> Option<Theme> {
    let wanted = file.theme.clone()?;
    let folder = file.path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    match shipped_or_file(&wanted.name, &folder.join(&wanted.name)) {
        Ok(theme) => Some(theme),
        Err(why) => {
            let name = visible(&wanted.name);
            file.reject(format!("{}: error: ui.theme: {name}{why}", wanted.place));
            None
        }
    }
}

/// A shipped theme by name, else the theme file at `path`. The error continues a sentence that
/// begins with the name.
fn shipped_or_file(wanted: &str, path: &Path) -> Result<Theme, String> {
    if let Some(theme) = Theme::shipped(wanted) {
        return Ok(theme);
    }
    let bytes = regular::read(path, MAX_THEME_BYTES).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            let names: Vec<&str> = Theme::names().collect();
            format!(": no such theme (use {}) and no such file: {error}", names.join(", "))
        }
        _ => format!(" cannot be read: {error}"),
    })?;
    let text = String::from_utf8(bytes).map_err(|_| ": it is not UTF-8".to_owned())?;
    Theme::parse(&text).map_err(|error| format!(": {error}"))
}
