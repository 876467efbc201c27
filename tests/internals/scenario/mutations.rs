//! `check` finds the mistakes that people make: 300 of them, made from a seed in the shipped scenarios
//! and templates. A mistake is made without asking `check`: the generator knows the JSON schema, the
//! names in the file, and the grammar of texts and conditions.

mod conditions;
mod document;
mod keys;
mod mistake;
mod names;
mod syntax;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use self::document::Document;
use self::mistake::{Dice, SeededMistake};

use crate::scenario::{
    Problem, ProblemPosition, Problems, ScenarioOrigin, Severity, check, shipped, templates,
};

/// How many mistakes are made.
const MISTAKES: usize = 300;
const SEED: u64 = 2026;

type Maker = fn(&Document, &mut Dice) -> Vec<SeededMistake>;

const KINDS: [(&str, Maker); 22] = [
    ("misspelt key", keys::misspelt_key),
    ("misspelt table", keys::misspelt_table),
    ("key in the next table", keys::key_in_neighbour_table),
    ("key at the top", keys::key_at_the_top),
    ("top key in a table", keys::top_key_in_a_table),
    ("missing entry", keys::missing_entry),
    ("key twice", keys::key_twice),
    ("both of two", keys::both_of_two),
    ("wrong type", values::wrong_type),
    ("wrong word", values::wrong_word),
    ("scripted reply", values::scripted_reply),
    ("duration", values::wrong_duration),
    ("out of range", values::out_of_range),
    ("call argument", names::wrong_call_argument),
    ("wrong reference", names::wrong_reference),
    ("braces", names::braces),
    ("wrong name in a text", names::wrong_name_in_text),
    ("wrong name in a condition", conditions::wrong_name_in_condition),
    ("wrong operator", conditions::wrong_operator),
    ("wrong expectation", conditions::wrong_expectation),
    ("unclosed", syntax::unclosed),
    ("other syntax", syntax::other_syntax),
];

fn documents() -> Vec<Document> {
    let scenarios = shipped().iter().map(|it| Document::read(it.name, it.text));
    let drafts = templates().iter();
    let drafts = drafts.map(|it| Document::read(&format!("template {}", it.pattern), it.text));
    scenarios.chain(drafts).collect()
}

/// The mistakes: each kind in turn, in the file with the fewest mistakes so far.
fn mistakes(documents: &[Document], seed: u64) -> Vec<(&'static str, usize, SeededMistake)> {
    let mut dice = Dice(seed);
    let mut ready: BTreeMap<(usize, usize), Vec<SeededMistake>> = BTreeMap::new();
    for (kind, (_, maker)) in KINDS.iter().enumerate() {
        for (file, document) in documents.iter().enumerate() {
            ready.insert((kind, file), maker(document, &mut dice));
        }
    }
    let mut used = vec![0_usize; documents.len()];
    let mut used_by_kind: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut made = Vec::new();
    for turn in 0..MISTAKES {
        let kind = turn % KINDS.len();
        let first = dice.below(documents.len());
        let files = (0..documents.len()).map(|step| (first + step) % documents.len());
        let files = files.filter(|file| !ready[&(kind, *file)].is_empty());
        let times = |file: &usize| used_by_kind.get(&(kind, *file)).copied().unwrap_or(0);
        let file = files.min_by_key(|file| (times(file), used[*file])).expect("a file");
        let there = ready.get_mut(&(kind, file)).expect("the mistakes of a file");
        let mistake = there.swap_remove(dice.below(there.len()));
        used[file] += 1;
        *used_by_kind.entry((kind, file)).or_default() += 1;
        made.push((KINDS[kind].0, file, mistake));
    }
    assert!(used.iter().all(|count| *count > 0), "every file has mistakes: {used:?}");
    made
}

fn problems(document: &Document, text: &str) -> Problems {
    check(text, ScenarioOrigin::File(format!("{}.toml", document.name).into()), &[]).problems
}

/// The verdict on a mistake.
#[derive(Clone, Copy, PartialEq, Eq)]
struct MistakeReport {
    found: bool,
    line: bool,
    right: bool,
}

fn judge(mistake: &SeededMistake, new: &[&Problem]) -> MistakeReport {
    let at_line = |problem: &Problem| match problem.place {
        ProblemPosition::File { line, .. } => mistake.lines.contains(&line),
        ProblemPosition::Override { .. } => false,
    };
    let text = |problem: &Problem| {
        format!("{} {}", problem.what, problem.help.as_deref().unwrap_or_default())
    };
    let names_it = |problem: &Problem| {
        let words = mistake.right.iter().chain([&mistake.wrong]);
        words.into_iter().any(|word| has_word(&text(problem), word))
    };
    let found = new.iter().any(|problem| {
        problem.severity == Severity::Error || at_line(problem) || names_it(problem)
    });
    let there: Vec<&&Problem> = new.iter().filter(|problem| at_line(problem)).collect();
    let right =
        there.iter().any(|problem| mistake.right.iter().any(|word| has_word(&text(problem), word)));
    MistakeReport { found, line: !there.is_empty(), right }
}

/// Whether a text has a word that is not a part of another one.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let is_name = word.starts_with(|c: char| c.is_alphanumeric());
    text.match_indices(word).any(|(at, _)| {
        let (before, after) =
            (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
        !is_name || !(is_part(before) || is_part(after))
    })
}

#[test]
fn mistakes_report_line_and_fix() {
    let documents = documents();
    let before: Vec<Vec<(String, Option<String>)>> = documents
        .iter()
        .map(|document| {
            let all = problems(document, document.text);
            all.iter().map(|problem| (problem.what.clone(), problem.help.clone())).collect()
        })
        .collect();
    let made = mistakes(&documents, SEED);
    let places: BTreeSet<_> = made
        .iter()
        .map(|(kind, file, it)| (*kind, *file, it.apply(documents[*file].text)))
        .collect();
    assert_eq!(places.len(), MISTAKES, "no mistake twice");
    let mut totals: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
    for (number, (kind, file, mistake)) in made.iter().enumerate() {
        let document = &documents[*file];
        let text = mistake.apply(document.text);
        let all = problems(document, &text);
        let new = all.iter().filter(|problem| {
            !before[*file].contains(&(problem.what.clone(), problem.help.clone()))
        });
        let new: Vec<&Problem> = new.collect();
        let verdict = judge(mistake, &new);
        let can = !mistake.right.is_empty();
        let total = totals.entry(kind).or_default();
        for (sum, is) in
            total.iter_mut().zip([true, verdict.found, verdict.line, can, verdict.right && can])
        {
            *sum += usize::from(is);
        }
        if !verdict.found || !verdict.line || (can && !verdict.right) {
            println!(
                "{number:3} {kind} | {} line {:?} | found {} line {} right {} | {} -> {}",
                document.name,
                mistake.lines,
                verdict.found,
                verdict.line,
                verdict.right,
                mistake.wrong.trim(),
                mistake.right.join(" / "),
            );
            let line = mistake.lines[0];
            println!("      {}", text.lines().nth(line - 1).unwrap_or_default());
            for problem in new.iter().take(3) {
                println!("      > {}", all.line(problem));
            }
        }
    }
    let mut sum = [0; 5];
    println!("\n{:28} made found line can right", "kind");
    for (kind, total) in &totals {
        let [made, found, line, can, right] = total;
        println!("{kind:28} {made:4} {found:5} {line:4} {can:3} {right:5}");
        for (sum, part) in sum.iter_mut().zip(total) {
            *sum += part;
        }
    }
    println!("{:28} {:4} {:5} {:4} {:3} {:5}", "all", sum[0], sum[1], sum[2], sum[3], sum[4]);
    let [made, found, line, can, right] = sum;
    assert_eq!((made, found), (MISTAKES, MISTAKES), "mistakes that are not found");
    assert!(line >= 285, "{line} with the right line");
    assert!(right >= 270, "{right} of {can} with the right suggestion");
}
