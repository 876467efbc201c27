//! The user's configuration file, read once when the program starts.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::Dirs;
use crate::base::read_file;
use crate::base::visible::visible;
use crate::model::endpoint::EndpointRequest;
use crate::scenario::config::{CheckedConfig, MAX_CONFIG_BYTES, UserConfig, check_config};
use crate::scenario::{Problem, Severity};

static USER_CONFIG: OnceLock<UserConfig> = OnceLock::new();

/// The configuration set by [`set_user_config`]; the default before that.
pub fn user_config() -> &'static UserConfig {
    static NONE: OnceLock<UserConfig> = OnceLock::new();
    USER_CONFIG.get().unwrap_or_else(|| NONE.get_or_init(UserConfig::default))
}

/// Sets the configuration of the process. Only the first call has an effect.
pub fn set_user_config(config: UserConfig) {
    let _ = USER_CONFIG.set(config);
}

/// The configuration's endpoint settings, which everything else overrides.
pub fn endpoint_defaults() -> EndpointRequest<'static> {
    let model = &user_config().model;
    EndpointRequest {
        config: model.name.as_deref(),
        timeout: model.timeout,
        ..EndpointRequest::default()
    }
}

/// The configuration file as it was read.
#[derive(Debug)]
pub struct ConfigFile {
    /// Its path, whether it exists or not; `None`: the user has no home directory.
    pub path: Option<PathBuf>,
    pub exists: bool,
    /// Its settings, as far as they are valid; those of a file with errors are not used.
    pub config: UserConfig,
    /// Its warnings, each a line with its position.
    pub warnings: Vec<String>,
    /// Its errors, each a line with its position.
    pub errors: Vec<String>,
}

impl ConfigFile {
    /// Reads the user's configuration file.
    pub fn find() -> Self {
        Self::read(Dirs::find().map(|dirs| dirs.configuration()))
    }

    /// Reads this file. A missing file is not an error.
    fn read(path: Option<PathBuf>) -> Self {
        let mut file = Self {
            path,
            exists: false,
            config: UserConfig::default(),
            warnings: Vec::new(),
            errors: Vec::new(),
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
        // The file's text is not shown: a line may contain a key.
        let lines = |severity| {
            let of = problems.iter().filter(move |it: &&Problem| it.severity == severity);
            of.map(|problem| problems.line(problem)).collect()
        };
        (file.warnings, file.errors) = (lines(Severity::Warning), lines(Severity::Error));
        if problems.more() > 0 {
            let lines = if file.failed() { &mut file.errors } else { &mut file.warnings };
            lines.push(format!("{name}: … and {} more", problems.more()));
        }
        file.config = config;
        file
    }

    /// Whether it has errors, so that it cannot be used.
    pub fn failed(&self) -> bool {
        !self.errors.is_empty()
    }
}

/// Why a file cannot be read as text.
enum ReadTextError {
    Unreadable(std::io::Error),
    NotUtf8(usize),
}

impl fmt::Display for ReadTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "error: cannot read it: {error}"),
            Self::NotUtf8(at) => write!(f, "error: not a text file: byte {at} is not UTF-8"),
        }
    }
}

/// The text of a regular file; `None`: the file does not exist.
fn text(path: &Path) -> Result<Option<String>, ReadTextError> {
    match read_file::read_file(path, MAX_CONFIG_BYTES) {
        Ok(bytes) => String::from_utf8(bytes)
            .map(Some)
            .map_err(|error| ReadTextError::NotUtf8(error.utf8_error().valid_up_to())),
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(None),
            _ => Err(ReadTextError::Unreadable(error)),
        },
    }
}
