//! The shipped scenarios, which are part of the program.

use std::sync::LazyLock;

use include_dir::{Dir, include_dir};
use toml::de::DeValue;

use super::file::toml_text;
use super::spec::model::ScenarioOrigin;
use crate::base::name::ScenarioName;

static DIR: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/scenarios");

/// A shipped scenario.
#[derive(Debug, Clone, Copy)]
pub struct ShippedScenario {
    /// Its name, such as `checkout-launch`: the file name without the extension.
    pub name: &'static str,
    /// Its path in the repository, such as `scenarios/checkout-launch.toml`.
    pub path: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

impl ShippedScenario {
    /// Its origin: the path in the repository.
    pub fn origin(&self) -> ScenarioOrigin {
        ScenarioOrigin::Shipped(self.path)
    }

    /// Its entry in a list of scenarios.
    pub fn listing(&self) -> ScenarioListing {
        ScenarioListing::read(self.name, self.text)
    }
}

/// All shipped scenarios, sorted by name.
pub fn shipped() -> &'static [ShippedScenario] {
    static ALL: LazyLock<Vec<ShippedScenario>> = LazyLock::new(|| {
        let mut all: Vec<ShippedScenario> = DIR
            .files()
            .filter_map(|file| {
                let stem = file.path().to_str()?.strip_suffix(".toml")?;
                let path: &'static str = format!("scenarios/{stem}.toml").leak();
                let name = path.strip_prefix("scenarios/")?.strip_suffix(".toml")?;
                Some(ShippedScenario { name, path, text: file.contents_utf8()? })
            })
            .collect();
        all.sort_by_key(|shipped| shipped.name);
        all
    });
    &ALL
}

/// The entry of a scenario in a list, read without checking the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioListing {
    /// The file name without its extension.
    pub name: ScenarioName,
    /// Its title, or its name if it has none.
    pub title: String,
    /// Its `about` text; may be empty.
    pub about: String,
    /// Its pattern as written; may be empty.
    pub pattern: String,
}

impl ScenarioListing {
    /// Reads the fields of a list entry. Other faults of the file do not matter here.
    pub fn read(name: &str, text: &str) -> Self {
        let document = toml_text::parse(text).map(|(document, _)| document).ok();
        let field = |key: &str| {
            let found = document.as_ref().and_then(|document| document.get_ref().get(key));
            match found.map(|value| value.get_ref()) {
                Some(DeValue::String(text)) => text.to_string(),
                _ => String::new(),
            }
        };
        let title = Some(field("title")).filter(|title| !title.trim().is_empty());
        Self {
            name: ScenarioName::from(name),
            title: title.unwrap_or_else(|| name.to_owned()),
            about: field("about"),
            pattern: field("pattern"),
        }
    }
}
