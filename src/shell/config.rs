//! The configuration file of this person: found, read once when the program starts, and in force until
//! it ends.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::dirs::Dirs;
use super::themes;
use crate::event::visible::visible;
use crate::llm::endpoint::Asked;
use crate::regular;
use crate::scenario::config::{CheckedConfig, Config, MAX_CONFIG_BYTES, check_config};
use crate::scenario::{Problem, Severity};
use crate::ui::theme::Theme;

static IN_FORCE: OnceLock<Config> = OnceLock::new();

/// The configuration that [`keep`] was given; until then one that says nothing.
pub fn in_force() -> &'static Config {
    static NONE: OnceLock<Config> = OnceLock::new();
    IN_FORCE.get().unwrap_or_else(|| NONE.get_or_init(Config::default))
}

/// Puts a configuration into force. The first that is given stays.
pub fn keep(config: Config) {
    let _ = IN_FORCE.set(config);
}

/// What the configuration asks of an endpoint, where nothing else does.
pub fn asked() -> Asked<'static> {
    let model = &in_force().model;
    Asked { config: model.name.as_deref(), timeout: model.timeout, ..Asked::default() }
}

/// The configuration file, as it was found.
#[derive(Debug)]
pub struct ConfigFile {
    /// Where it is, or would be; `None`: this user has no home.
    pub path: Option<PathBuf>,
    /// Whether there is a file.
    pub exists: bool,
    /// What it says; the defaults where there is none, or where it is wrong.
    pub config: Config,
    /// What is odd about it, each as a line with its place.
    pub warnings: Vec<String>,
    /// What keeps it from being used, each as a line with its place.
    pub errors: Vec<String>,
    /// The theme that it asks for.
    pub theme: Option<Theme>,
}

impl ConfigFile {
    /// Reads the file of this user.
    pub fn find() -> Self {
        Self::read(Dirs::find().map(|dirs| dirs.configuration()))
    }

    /// Reads this file. That there is none is nothing wrong.
    fn read(path: Option<PathBuf>) -> Self {
        let mut file = Self {
            path,
            exists: false,
            config: Config::default(),
            warnings: Vec::new(),
            errors: Vec::new(),
            theme: None,
        };
        let Some(path) = &file.path else { return file };
        let name = visible(&path.display().to_string()).into_owned();
        let text = match text(path) {
            Ok(None) => return file,
            Ok(Some(text)) => text,
            Err(why) => {
                file.exists = true;
                file.errors.push(format!("{name}: {why}"));
                return file;
            }
        };
        file.exists = true;
        let CheckedConfig { config, problems } = check_config(&name, &text);
        // The lines of the file are not shown: somebody may have put a key into one of them.
        let told = |severity| {
            let of = problems.iter().filter(move |it: &&Problem| it.severity == severity);
            of.map(|problem| problems.line(problem)).collect()
        };
        (file.warnings, file.errors) = (told(Severity::Warning), told(Severity::Error));
        if problems.more() > 0 {
            let lines = if file.failed() { &mut file.errors } else { &mut file.warnings };
            lines.push(format!("{name}: … and {} more", problems.more()));
        }
        if let Some(theme) = &config.ui.theme {
            match themes::configured(&theme.name, path) {
                Ok(found) => file.theme = Some(found),
                Err(why) => file.errors.push(format!("{}: error: ui.theme: {why}", theme.place)),
            }
        }
        if !file.failed() {
            file.config = config;
        }
        file
    }

    /// Whether it cannot be used.
    pub fn failed(&self) -> bool {
        !self.errors.is_empty()
    }
}

/// Why the text of a file cannot be had.
enum NoText {
    Unreadable(std::io::Error),
    NotUtf8(usize),
}

impl fmt::Display for NoText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "error: cannot be read: {error}"),
            Self::NotUtf8(at) => write!(f, "error: is no text: byte {at} is not UTF-8"),
        }
    }
}

/// The text of a regular file; `None`: there is none.
fn text(path: &Path) -> Result<Option<String>, NoText> {
    match regular::read(path, MAX_CONFIG_BYTES) {
        Ok(bytes) => String::from_utf8(bytes)
            .map(Some)
            .map_err(|error| NoText::NotUtf8(error.utf8_error().valid_up_to())),
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(None),
            _ => Err(NoText::Unreadable(error)),
        },
    }
}
