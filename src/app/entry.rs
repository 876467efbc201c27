//! A scenario file, as the first screen lists it and the launch form starts from it.

use std::sync::Arc;

pub use super::live::LiveOffer;
use crate::scenario::name::ScenarioName;
use crate::scenario::{self, Origin, Problems, Scenario};

/// A scenario file on the list.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The stem of the file's name.
    pub name: ScenarioName,
    /// What a command line calls it; unique among the entries.
    pub path: String,
    /// Where the file was found.
    pub origin: Origin,
    /// The text of the file; empty where it could not be read.
    pub text: Arc<str>,
    /// The scenario, or its errors.
    pub loaded: Result<Arc<Scenario>, Broken>,
    /// Whether it can be run live.
    pub live: LiveOffer,
}

/// Why a scenario file cannot be run.
#[derive(Clone, Debug)]
pub enum Broken {
    /// The file has errors.
    Problems(Problems),
    /// The file could not be read; the reason.
    Unreadable(String),
}

impl Entry {
    /// An entry for a file with this text, which is loaded and checked. Only the shell can know
    /// `live`.
    pub fn of(path: String, origin: Origin, text: Arc<str>, live: LiveOffer) -> Self {
        let loaded = scenario::load(&text, origin.clone(), &[]);
        Self {
            name: stem(&origin),
            path,
            origin,
            text,
            loaded: loaded.map(Arc::new).map_err(Broken::Problems),
            live,
        }
    }

    /// An entry of a file that could not be read.
    pub fn unreadable(path: String, origin: Origin, why: String) -> Self {
        Self {
            name: stem(&origin),
            path,
            origin,
            text: "".into(),
            loaded: Err(Broken::Unreadable(why)),
            live: LiveOffer::Missing { why: "The file could not be read.".to_owned() },
        }
    }

    /// The scenario, if it is valid.
    pub fn scenario(&self) -> Option<&Arc<Scenario>> {
        self.loaded.as_ref().ok()
    }

    /// The number of its errors in words for the screen; `None` if it is valid.
    pub fn fault(&self) -> Option<String> {
        match &self.loaded {
            Ok(_) => None,
            Err(Broken::Problems(problems)) => Some(problems.count()),
            Err(Broken::Unreadable(_)) => Some("cannot be read".to_owned()),
        }
    }
}

fn stem(origin: &Origin) -> ScenarioName {
    let path = match origin {
        Origin::Shipped(path) => std::path::Path::new(path),
        Origin::File(path) => path,
    };
    ScenarioName::new(path.file_stem().unwrap_or_default().to_string_lossy().as_ref())
}
