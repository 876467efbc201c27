//! A scenario file, as the first screen lists it and the launch form starts from it.

use std::sync::Arc;

pub use super::live::LiveOffer;
use crate::scenario::name::ScenarioName;
use crate::scenario::{self, Origin, Problems, Scenario};

/// A scenario file on the list.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The stem of its file.
    pub name: ScenarioName,
    /// What a command line calls it; unique among the entries.
    pub path: String,
    /// Where the file was found.
    pub origin: Origin,
    /// The text of the file; empty where it could not be read.
    pub text: Arc<str>,
    /// The scenario, or what is wrong with it.
    pub loaded: Result<Arc<Scenario>, Broken>,
    /// Whether it can be run live.
    pub live: LiveOffer,
}

/// What is wrong with a scenario file.
#[derive(Clone, Debug)]
pub enum Broken {
    /// Its text.
    Problems(Problems),
    /// It could not be read at all, and why.
    Unreadable(String),
}

impl Entry {
    /// An entry of this text, judged. Whether it can be run live is the shell's to know.
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

    /// The scenario, where it is good.
    pub fn scenario(&self) -> Option<&Arc<Scenario>> {
        self.loaded.as_ref().ok()
    }

    /// How many things are wrong with it, for people; `None` for a good one.
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
