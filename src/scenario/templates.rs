//! Scenario files to start from, one for each pattern: commented, valid, and complete without a model.
//! Their text is in `assets/templates`.

use std::sync::LazyLock;

use include_dir::{Dir, include_dir};
use serde_json::Value;

use super::file::format::Pattern;
use super::file::shape::FormatShape;

static DIR: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/assets/templates");

/// A scenario file to start from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioTemplate {
    /// The word for its pattern.
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
    fn each_pattern_has_a_template_without_a_problem() {
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
