//! A scenario file as the first screen lists it and the launch form starts from it; and the
//! templates of new ones, one for each pattern: commented, valid, and complete without a model.

use std::sync::{Arc, LazyLock};

use include_dir::{Dir, include_dir};
use serde_json::Value;

use super::read::format::Pattern;
use super::read::shape::FormatShape;
use super::{Problems, Scenario, ScenarioOrigin};
use crate::base::name::ScenarioName;
use crate::scenario;

/// A scenario file on the list.
#[derive(Clone, Debug)]
pub struct ScenarioEntry {
    /// The stem of the file's name.
    pub name: ScenarioName,
    /// What a command line calls it; unique among the entries.
    pub path: String,
    /// Where the file was found.
    pub origin: ScenarioOrigin,
    /// The text of the file; empty where it could not be read.
    pub text: Arc<str>,
    pub loaded: Result<Arc<Scenario>, EntryError>,
    /// Whether it can be run live.
    pub live: LiveOffer,
}

/// Why a scenario file cannot be run.
#[derive(Clone, Debug)]
pub enum EntryError {
    /// The file has errors.
    Problems(Problems),
    /// The file could not be read; the reason.
    Unreadable(String),
}

impl ScenarioEntry {
    /// An entry for a file with this text, which is loaded and checked. Only the shell can know
    /// `live`.
    pub fn from_text(
        path: String,
        origin: ScenarioOrigin,
        text: Arc<str>,
        live: LiveOffer,
    ) -> Self {
        let loaded = scenario::load(&text, origin.clone(), &[]);
        Self {
            name: stem(&origin),
            path,
            origin,
            text,
            loaded: loaded.map(Arc::new).map_err(EntryError::Problems),
            live,
        }
    }

    /// An entry of a file that could not be read.
    pub fn unreadable(path: String, origin: ScenarioOrigin, why: String) -> Self {
        Self {
            name: stem(&origin),
            path,
            origin,
            text: "".into(),
            loaded: Err(EntryError::Unreadable(why)),
            live: LiveOffer::Missing { why: "The file could not be read.".to_owned() },
        }
    }

    /// The scenario, if it is valid.
    pub fn scenario(&self) -> Option<&Arc<Scenario>> {
        self.loaded.as_ref().ok()
    }

    /// Its first error in one line, and how many more there are; `None` if it is valid.
    pub fn first_error(&self) -> Option<String> {
        match &self.loaded {
            Ok(_) => None,
            Err(EntryError::Problems(problems)) => Some(problems.first_error()),
            Err(EntryError::Unreadable(why)) => Some(why.clone()),
        }
    }
}

/// The scenarios of each pattern that show it best; they are the first ones of their groups.
const FIRST_OF_GROUP: [&str; 7] = [
    "checkout-launch",
    "morning-report",
    "dev-team",
    "support-swarm",
    "vendor-brownout",
    "payments-incident",
    "front-desk",
];

/// A group of scenarios on the list, in the order of the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScenarioGroup {
    /// The user's own.
    Own,
    /// The shipped ones of a pattern, by its index in the scenario format.
    Shipped(usize),
}

impl ScenarioGroup {
    /// Its title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Own => "yours",
            Self::Shipped(pattern) => templates().get(pattern).map_or("others", |it| &it.pattern),
        }
    }

    /// What its pattern does, in one sentence; empty for the user's own.
    pub fn about(self) -> &'static str {
        match self {
            Self::Own => "",
            Self::Shipped(pattern) => templates().get(pattern).map_or("", |it| &it.about),
        }
    }
}

impl ScenarioEntry {
    /// The group that it is listed in.
    pub fn group(&self) -> ScenarioGroup {
        match (&self.origin, &self.loaded) {
            (ScenarioOrigin::Shipped(_), Ok(scenario)) => {
                let name = scenario.pattern.get().name();
                let index = templates().iter().position(|it| it.pattern == name);
                ScenarioGroup::Shipped(index.unwrap_or(usize::MAX))
            }
            _ => ScenarioGroup::Own,
        }
    }
}

/// Sorts scenarios as they are listed: by group, the best one of a pattern first, then by name.
pub fn sort_in_groups(entries: &mut [ScenarioEntry]) {
    entries.sort_by_cached_key(|entry| {
        let group = entry.group();
        let name = entry.name.as_str();
        let later = group == ScenarioGroup::Own || !FIRST_OF_GROUP.contains(&name);
        (group, later, name.to_owned())
    });
}

fn stem(origin: &ScenarioOrigin) -> ScenarioName {
    let path = match origin {
        ScenarioOrigin::Shipped(path) => std::path::Path::new(path),
        ScenarioOrigin::File(path) => path,
    };
    ScenarioName::new(path.file_stem().unwrap_or_default().to_string_lossy().as_ref())
}

/// Whether a scenario can be run against live models, as the shell found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveOffer {
    /// It can be run live.
    Ready {
        /// The hosts that it calls.
        host: String,
        /// The names of the models.
        model: String,
        /// Where the names come from, such as `from the scenario` or `the default of OpenAI`.
        model_from: String,
        /// Where the keys come from, such as `key from the shell`.
        key: String,
        /// Providers that may have a list of models.
        places: Vec<ProviderHost>,
    },
    /// Several providers have a key, and nothing says which one to call.
    Choose {
        /// The keys that were found, and the ways to choose one.
        why: String,
    },
    /// It cannot be run live.
    Missing {
        /// What is missing and what to set.
        why: String,
    },
}

/// A provider at a host, which answers model calls and lists its models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderHost {
    /// The provider's prefix in a model's name, before the `/`, such as `openai`.
    pub provider: String,
    /// The provider's display name, such as `OpenAI`.
    pub name: String,
    /// The host, with the port where it is not the default one.
    pub host: String,
    /// At a server of one's own, the prefixes of all providers; empty at the provider's own address.
    pub known_prefixes: &'static [&'static str],
}

impl ProviderHost {
    /// A model of this provider as `--model` takes it: with the prefix, because a bare name such as
    /// `openai/gpt-oss-20b` would mean another provider. A server of one's own gets bare names unchanged, so
    /// there the prefix is only needed before another one.
    pub fn model(&self, name: &str) -> String {
        let prefix = name.split_once('/').map(|(prefix, _)| prefix.trim());
        let is_known = |prefix: &str| {
            self.known_prefixes.iter().any(|known| known.eq_ignore_ascii_case(prefix))
        };
        match self.known_prefixes.is_empty() || prefix.is_some_and(is_known) {
            true => format!("{}/{name}", self.provider),
            false => name.to_owned(),
        }
    }
}

/// A provider that has a key, with its default model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderOffer {
    pub place: ProviderHost,
    /// Its default model.
    pub model: String,
    /// Where the key comes from, such as `key from .env`.
    pub key: String,
}

/// What answers the model calls of a requested run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestedModel {
    /// The scenario's script.
    Scripted {
        /// Leave out the script's latency.
        instant: bool,
    },
    /// Live models, as they are found on this machine (see [`LiveOffer`]). A name
    /// here replaces those that the scenario gives.
    Live(Option<Arc<str>>),
}

impl RequestedModel {
    /// The name that replaces those of the scenario, if there is one.
    pub fn name(&self) -> Option<Arc<str>> {
        match self {
            Self::Scripted { .. } => None,
            Self::Live(name) => name.clone(),
        }
    }
}

static DIR: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/assets/templates");

/// A scenario file to start from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioTemplate {
    pub pattern: String,
    /// What the pattern does, in one sentence.
    pub about: String,
    /// The text of the file.
    pub text: &'static str,
}

/// The templates of all patterns, in the order of the scenario format.
pub fn templates() -> &'static [ScenarioTemplate] {
    static ALL: LazyLock<Vec<ScenarioTemplate>> = LazyLock::new(|| {
        let words = Pattern::schema();
        let words = words["oneOf"].as_array().map(Vec::as_slice).unwrap_or_default();
        let template = |word: &Value| {
            let pattern = word["const"].as_str()?;
            let text = DIR.get_file(format!("{pattern}.toml"))?.contents_utf8()?;
            let about = word["description"].as_str()?.to_owned();
            Some(ScenarioTemplate { pattern: pattern.to_owned(), about, text })
        };
        words.iter().filter_map(template).collect()
    });
    &ALL
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{ScenarioOrigin, check};

    #[test]
    fn model_name_matches_option() {
        let place = |known_prefixes| ProviderHost {
            provider: "openai".to_owned(),
            name: "OpenAI".to_owned(),
            host: "a.example".to_owned(),
            known_prefixes,
        };
        let (provider, own) = (place(&[]), place(&["openai", "gemini"]));
        for (name, there, at_own) in [
            ("gpt-5", "openai/gpt-5", "gpt-5"),
            ("meta/llama", "openai/meta/llama", "meta/llama"),
            ("openai/gpt-oss-20b", "openai/openai/gpt-oss-20b", "openai/openai/gpt-oss-20b"),
            ("Gemini/x", "openai/Gemini/x", "openai/Gemini/x"),
        ] {
            assert_eq!((&*provider.model(name), &*own.model(name)), (there, at_own));
        }
    }

    #[test]
    fn each_pattern_has_valid_template() {
        let all = templates();
        assert_eq!(all.len(), DIR.files().count(), "{all:?}");
        assert_eq!(all.len(), crate::scenario::patterns::ROWS.len());
        for template in all {
            let origin = ScenarioOrigin::File(format!("{}.toml", template.pattern).into());
            let checked = check(template.text, origin, &[]);
            let scenario = checked.scenario.unwrap_or_else(|| panic!("{:?}", checked.problems));
            assert!(checked.problems.is_empty(), "{}: {:?}", template.pattern, checked.problems);
            assert!(template.text.starts_with("# "), "it says what it is");
            assert!(scenario.title.starts_with("My "), "{}", scenario.title);
        }
    }
}
