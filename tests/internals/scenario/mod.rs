//! The scenario format: accepted texts, and reports on mistakes.

use crate::scenario::{Override, Scenario, ScenarioOrigin, check, load};

mod condition_bounds;
mod conditions;
mod contracts;
mod from_run;
mod hostile;
mod load;
mod mutations;
mod problems;
mod prompt_files;
mod properties;
mod research;
mod router;
mod schema;
mod shipped;
mod suggestions;
mod teams;
mod tools;

fn overrides(set: &[&str]) -> Vec<Override> {
    set.iter().map(|set| set.parse().expect("an override")).collect()
}

/// A good text, read without a warning.
#[track_caller]
fn read(text: &str, set: &[&str]) -> Scenario {
    let scenario = load(text, ScenarioOrigin::File("a.toml".into()), &overrides(set))
        .unwrap_or_else(|problems| panic!("{}", problems.pretty(false)));
    assert_eq!(scenario.warnings.every_run, Vec::<String>::new());
    scenario
}

/// The reports on a text, without the name of its file.
fn told(text: &str, set: &[&str]) -> Vec<String> {
    let origin = ScenarioOrigin::File("a.toml".into());
    let all = check(text, origin, &overrides(set)).problems.to_string();
    all.lines().map(|line| line.strip_prefix("a.toml:").unwrap_or(line).to_owned()).collect()
}

/// A mistake in a good text.
struct Mistake {
    from: String,
    to: String,
    reports: Vec<String>,
}

/// Reads mistakes with empty lines between them: what is taken out (`- `), what takes its place (`+ `), and
/// the reports, one a line, none if it is no mistake.
fn mistakes(table: &str) -> Vec<Mistake> {
    let mistake = |block: &str| {
        let changed = |sign: &str| {
            let of = block.lines().filter_map(|line| line.strip_prefix(sign));
            of.map(|text| text.strip_prefix(' ').unwrap_or(text)).collect::<Vec<_>>()
        };
        let (from, to) = (changed("-"), changed("+"));
        let reports = block.lines().skip(from.len() + to.len());
        assert!(!from.is_empty(), "nothing is changed: {block}");
        Mistake {
            from: from.join("\n"),
            to: to.join("\n"),
            reports: reports.map(str::to_owned).collect(),
        }
    };
    table.trim_matches('\n').split("\n\n").map(mistake).collect()
}

/// Judges all reports on each mistake with `told`.
#[track_caller]
fn judge_as(told: impl Fn(&str) -> Vec<String>, good: &str, table: &str) {
    let mut wrong = Vec::new();
    for Mistake { from, to, reports } in mistakes(table) {
        assert!(good.contains(&from), "{from} is not in the scenario");
        let told = told(&good.replacen(&from, &to, 1));
        if told != reports {
            wrong.push(format!("{to}\n  told {told:#?}\n  not {reports:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Judges all reports on each mistake of a [table](mistakes), with their places.
#[track_caller]
fn judge(good: &str, table: &str) {
    judge_as(|text| told(text, &[]), good, table);
}
