//! Plain words: phrases that an engineer has to read twice, each with what to write instead. All
//! texts that people read are searched: strings and comments of the sources, documents, help, the
//! table of keys, the JSON schema. Texts for models and the prose of scenarios are exempt.

use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use regex_lite::Regex;

use super::texts::{self, Piece, TokenKind};

/// A phrase, and what to write instead.
struct Rule {
    /// Texts in lower case, separated by `|`; each match has one of them. They save time: few texts
    /// are matched with the pattern.
    has: &'static str,
    /// The pattern; case does not matter.
    phrase: &'static str,
    /// A longer phrase that is good English; tried on the match and the word after it.
    unless: &'static str,
    advice: &'static str,
}

const fn rule(has: &'static str, phrase: &'static str, advice: &'static str) -> Rule {
    Rule { has, phrase, unless: "", advice }
}

const fn rule_unless(
    has: &'static str,
    phrase: &'static str,
    unless: &'static str,
    advice: &'static str,
) -> Rule {
    Rule { has, phrase, unless, advice }
}

const RULES: &[Rule] = &[
    // One word for one thing.
    rule("time-out", r"\btime-outs?\b", "timeout"),
    rule("hand-off", r"\bhand-offs?\b", "handoff; as a verb: hand over"),
    rule("mend", r"\bmend(s|ed|ing)?\b", "fix"),
    rule("stand-in", r"\bstand-ins?\b", "fallback"),
    rule("stand|stood", r"\bst(and|ands|ood|anding) in\b", "is the fallback for; is queued; is in"),
    rule("by hand|of hand", r"\bby hand\b|\bof hand\b", "manual, manually"),
    rule_unless(" line", r"\b(in|any) line\b", r"^in line \d|^in line [_`]", "queued; in one row"),
    rule("asked for", r"\basked for\b", "requested; pending"),
    rule(
        "`00|spec section|specification section",
        r"`00[0-4]`|\bspec(ification)? section\b",
        "the short name of the source document",
    ),
    // Pausing, continuing, taking effect.
    rule(
        " rest",
        r"\b(it|run|runs|here|_) rests?\b|\b(then|will|must|to) rest\b",
        "pauses; is paused",
    ),
    rule(
        "go on|goes on|going on|gone on|went on",
        r"\bg(o|oes|oing|one) on\b|\bwent on\b",
        "continues; resumes",
    ),
    rule("land", r"\bland(s|ed|ing)?\b", "takes effect"),
    rule(" to a", r"\bc(ame|ome|omes|oming) to an? (end|stop)\b", "ends"),
    rule("fall|fell", r"\bf(all|alls|ell|alling) out\b", "is dropped"),
    rule(
        "decide|another round follows",
        r"\banother round follows\b|\bdecides? (at|nothing)\b",
        "needs …; makes no decision",
    ),
    rule(
        " back",
        r"\btaken back\b|\btak(es?|ing) (it|them|a \w+|what \w+) back\b",
        "cancels; undoes",
    ),
    rule(" back", r"\b(gives?|gave|given|giving) back\b", "returns"),
    rule("back", r"\b(gives?|gave|giving) (it|its|the|their|a) (\w+ )?back\b", "returns"),
    // Replies and results.
    rule(" back", r"\b(came|come|comes|coming) back\b", "returns; is returned; the reply"),
    rule("what ", r"\bwhat (it|they|that) (came|comes?) to\b", "the result"),
    rule("came to |come to |comes to ", r"\b(came|comes?) to (p?\d|nothing)", "reached; was empty"),
    rule_unless(
        " told",
        r"\b(is|are|was|were|be|been|being) told\b",
        "told apart",
        "is shown; receives",
    ),
    rule(
        "nothing |it is being asked",
        r"\bit is being asked\b|\bnothing (has come|comes?|came)\b",
        "waiting for the reply",
    ),
    rule(" way", r"\bon (its|their) way\b", "arriving; sent"),
    rule(" of what| says what", r"\bsays? of what\b|\b\d says what\b", "details in …"),
    rule("laid out", r"\blaid out\b", "pretty-printed; arranged"),
    // Who and where.
    rule("ever", r"\bwhom?ever\b", "name the subject: a host that …, any caller"),
    rule(" whom", r"\b(by|to|of|from|with|for) whom\b", "name them"),
    rule(
        "stand|stood",
        r"\bst(and|ands|ood) (by|beside|behind|there|under|above|below|before|after|at|on|with|still|around)\b",
        "is; is next to; has; is stopped",
    ),
    rule(" away", r"\b(went|gone|goes) away\b", "closed"),
    // Amounts, and what is missing.
    rule(
        "so ",
        r"\bso (many|long|much|often) (of|from|for)\b|\bfor so long\b",
        "this share; this long",
    ),
    rule(" without", r"\bgo(es|ing)? without\b", "has no …; is left out"),
    rule(
        "hence|hither|whereby|thereby|wherein|therein|thereof|forthwith",
        r"\b(whence|hence|hither|thither|thereby|thereof|therein|whereby|wherein|hitherto|forthwith)\b",
        "from where; so; by this",
    ),
    rule(
        "nay|anew|lest|alas|unto|upon|ought|shall|naught|whilst|seldom|albeit|amongst|dearest",
        r"\b(shall|upon|amongst|whilst|anew|ought|lest|nay|alas|naught|unto|albeit|seldom|dearest)\b",
        "the everyday word",
    ),
];

/// A phrase that stays: the end of a file's path, the phrase, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("pattern/research/mod.rs", "stands in", "a prompt"),
    ("pattern/research/mod.rs", "stands on", "a prompt"),
    ("scenario/patterns/research/check.rs", "stands by", "a prompt"),
    ("log/event/result_text.rs", "go on", "a message to a model"),
    ("screen/tour.rs", "go on", "a decision on something"),
    ("pattern/agents/agent_run.rs", "goes on", "a description for a model"),
    ("docs/scenarios.md", "came back", "the prose of a scenario"),
    ("docs/scenarios.md", "hand-offs", "the prose of a scenario"),
    ("docs/scenarios.md", "of hand", "the prose of a scenario"),
    ("docs/scenarios.md", "goes on", "the prose of a scenario"),
    ("base/stems.rs", "shall", "a stop word of English texts"),
];

/// The part of a text around a match that `unless` is tried on: with the word after it.
fn surroundings(text: &str, found: regex_lite::Match<'_>) -> String {
    let after = &text[found.end()..];
    let next: String = after.chars().take_while(|c| *c == ' ').collect();
    let word: String =
        after[next.len()..].chars().take_while(|c| !c.is_whitespace()).take(20).collect();
    format!("{}{next}{word}", found.as_str())
}

/// A rule with its patterns, compiled.
struct Compiled {
    has: Vec<&'static str>,
    phrase: Regex,
    unless: Option<Regex>,
    advice: &'static str,
}

fn compiled() -> Vec<Compiled> {
    let regex = |text: &str| Regex::new(&format!("(?i){text}")).expect("a pattern");
    let of = |it: &Rule| Compiled {
        has: it.has.split('|').collect(),
        phrase: regex(it.phrase),
        unless: (!it.unless.is_empty()).then(|| regex(it.unless)),
        advice: it.advice,
    };
    RULES.iter().map(of).collect()
}

/// The phrases of a piece, as lines of a report.
fn hits(piece: &Piece, rules: &[Compiled]) -> Vec<String> {
    let lower = piece.text.to_lowercase();
    let mut found = Vec::new();
    for rule in rules.iter().filter(|rule| rule.has.iter().any(|has| lower.contains(has))) {
        for hit in rule.phrase.find_iter(&piece.text) {
            let known = EXCEPTIONS.iter().any(|(file, phrase, _)| {
                piece.source.ends_with(file) && hit.as_str().eq_ignore_ascii_case(phrase)
            });
            let good = rule.unless.as_ref().is_some_and(|unless| {
                unless.is_match(hit.as_str()) || unless.is_match(&surroundings(&piece.text, hit))
            });
            if !known && !good {
                let line = piece.line(hit.start());
                found.push(format!(
                    "{}:{line}: \"{}\": {}",
                    piece.source,
                    hit.as_str(),
                    rule.advice
                ));
            }
        }
    }
    found
}

#[test]
fn every_text_is_in_plain_words() {
    let rules = compiled();
    let pieces = texts::all();
    assert!(pieces.len() > 10_000, "only {} texts were found", pieces.len());
    let mut found: Vec<String> = pieces.iter().flat_map(|piece| hits(piece, &rules)).collect();
    found.dedup();
    assert!(found.is_empty(), "{} phrases:\n{}", found.len(), found.join("\n"));
}

#[test]
fn each_exception_is_needed() {
    let pieces = texts::all();
    for (file, phrase, why) in EXCEPTIONS {
        let needed = pieces.iter().any(|piece| {
            piece.source.ends_with(file) && piece.text.to_lowercase().contains(phrase)
        });
        assert!(needed, "{file} no longer has {phrase:?} ({why}): remove the exception");
    }
}

#[test]
fn reports_phrase_with_line_and_advice() {
    let source = "/// Waits until a host that\n/// went away answers.\nconst A: &str = \"a {rests} b\";\n\
                  #[cfg(test)]\nmod tests {\n    // by hand\n    const B: char = '}';\n    // mend\n}\n\
                  // It is told apart; it is\n// told.\nconst C: &str = \"one \\\n    time-out\";\n";
    let found: Vec<String> = texts::of_source("a.rs", source)
        .iter()
        .flat_map(|piece| hits(piece, &compiled()))
        .collect();
    assert_eq!(
        found,
        [
            "a.rs:2: \"went away\": closed",
            "a.rs:10: \"is told\": is shown; receives",
            "a.rs:12: \"time-out\": timeout",
        ]
    );
}

/// The scanner of this test finds the same strings and doc comments as the compiler's lexer.
#[test]
fn scanner_sees_all_literals_and_docs() {
    fn literals(tokens: TokenStream) -> usize {
        let of = |token| match token {
            TokenTree::Group(group) => literals(group.stream()),
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                usize::from(text.trim_start_matches(['b', 'c', 'r', '#']).starts_with('"'))
            }
            _ => 0,
        };
        tokens.into_iter().map(of).sum()
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for path in texts::files(root, "src", "rs") {
        let source = std::fs::read_to_string(root.join(&path)).expect("a source");
        let seen = texts::tokens(&source).iter().filter(|it| it.kind != TokenKind::Comment).count();
        assert_eq!(seen, literals(source.parse().expect("tokens")), "{path}");
    }
}
