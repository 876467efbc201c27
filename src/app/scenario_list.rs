//! The scenarios of the first screen on their lines: the user's own ones first, then those that are
//! shipped, in groups by pattern.

use crate::scenario::catalogue::{ScenarioEntry, ScenarioGroup};

/// A line of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScenarioLine {
    /// The head of a group.
    Group(ScenarioGroup),
    /// A scenario, by its index.
    Entry(usize),
}

/// The lines of the list.
#[derive(Clone, Debug, Default)]
pub struct ScenarioLines(Vec<ScenarioLine>);

impl ScenarioLines {
    /// The lines of the scenarios that have each word of a filter; they are in the order of their
    /// groups.
    pub fn new(scenarios: &[ScenarioEntry], filter: &str) -> Self {
        let words: Vec<String> = filter.split_whitespace().map(str::to_lowercase).collect();
        let mut lines = Vec::with_capacity(scenarios.len() + 8);
        let mut before = None;
        for (index, entry) in scenarios.iter().enumerate() {
            let group = entry.group();
            if !words.is_empty() && !has_words(entry, &words) {
                continue;
            }
            if before != Some(group) {
                lines.push(ScenarioLine::Group(group));
            }
            before = Some(group);
            lines.push(ScenarioLine::Entry(index));
        }
        Self(lines)
    }

    /// The indices of the listed scenarios.
    pub fn entries(&self) -> Vec<usize> {
        (0..self.0.len()).filter_map(|line| self.entry_on(line)).collect()
    }

    /// Number of lines.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The lines from this one on.
    pub fn from(&self, line: usize) -> impl Iterator<Item = ScenarioLine> + '_ {
        self.0.iter().skip(line).copied()
    }

    /// How many scenarios are above this line.
    pub fn entries_above(&self, line: usize) -> usize {
        let above = self.0.iter().take(line);
        above.filter(|line| matches!(line, ScenarioLine::Entry(_))).count()
    }

    /// The index of the scenario on this line.
    pub fn entry_on(&self, line: usize) -> Option<usize> {
        match self.0.get(line)? {
            ScenarioLine::Entry(index) => Some(*index),
            ScenarioLine::Group(_) => None,
        }
    }

    /// The line of a scenario, by its index.
    pub fn line_of(&self, index: usize) -> Option<usize> {
        self.0.iter().position(|line| *line == ScenarioLine::Entry(index))
    }

    /// The first line that has to be in view with this one: the head of a group with its first row.
    pub fn first_with(&self, line: usize) -> usize {
        match line.checked_sub(1).and_then(|above| self.0.get(above)) {
            Some(ScenarioLine::Group(_)) => line - 1,
            _ => line,
        }
    }
}

/// Whether each of these words is in what the list says of a scenario; case is ignored.
fn has_words(entry: &ScenarioEntry, words: &[String]) -> bool {
    let group = entry.group().title();
    let said = match &entry.loaded {
        Ok(scenario) => {
            let pattern = scenario.pattern.get().name();
            format!("{} {group} {pattern} {} {}", entry.name, scenario.title, scenario.about)
        }
        Err(_) => format!("{} {group} {}", entry.name, entry.first_error().unwrap_or_default()),
    };
    let said = said.to_lowercase();
    words.iter().all(|word| said.contains(word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::ScenarioOrigin;
    use crate::scenario::catalogue::{LiveOffer, sort_in_groups};
    use crate::scenario::shipped;

    #[test]
    fn own_scenarios_come_first_and_the_rest_by_pattern() {
        let offer = || LiveOffer::Missing { why: String::new() };
        let mut entries: Vec<ScenarioEntry> = shipped()
            .iter()
            .map(|one| {
                ScenarioEntry::from_text(one.path.into(), one.origin(), one.text.into(), offer())
            })
            .collect();
        let own = ScenarioOrigin::File("zoo.toml".into());
        entries.push(ScenarioEntry::from_text("zoo.toml".into(), own, "title = 3".into(), offer()));
        sort_in_groups(&mut entries);
        let lines = ScenarioLines::new(&entries, "");
        let word = |line| match line {
            ScenarioLine::Group(group) => format!("- {}", group.title()),
            ScenarioLine::Entry(index) => entries[index].name.to_string(),
        };
        let words: Vec<String> = lines.from(0).map(word).collect();
        assert_eq!(words[..4], ["- yours", "zoo", "- collaboration", "checkout-launch"]);
        let heads = words.iter().filter(|word| word.starts_with("- ")).count();
        assert_eq!(heads, 8, "{words:?}");
        assert_eq!(lines.count(), entries.len() + heads);
        for index in 0..entries.len() {
            let line = lines.line_of(index).expect("a line");
            assert_eq!(lines.entry_on(line), Some(index));
        }
        let filtered = ScenarioLines::new(&entries, "SWARM ping").entries();
        let names: Vec<&str> = filtered.iter().map(|at| entries[*at].name.as_str()).collect();
        assert!(!names.is_empty() && names.len() < 8, "{names:?}");
        assert_eq!(ScenarioLines::new(&entries, "no such words").count(), 0);
        assert_eq!((lines.entries_above(1), lines.entries_above(4)), (0, 2));
        assert_eq!((lines.entry_on(0), lines.first_with(1), lines.first_with(4)), (None, 0, 4));
    }
}
