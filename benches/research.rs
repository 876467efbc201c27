//! What research costs by the size of its input: addresses that become one, notes that are verified
//! against their pages, notes by rule. Each is held to be linear: ten times the input, ten times the
//! work.

mod paired;

use std::hint::black_box;
use std::time::Duration;

use paired::{held, pairs, report, timed};
use roundtable::bench::{FoundSource, QuotedPage, SamePage, dedupe, note_issues, notes_by_rule};

/// How many times the long input is as long as the short one.
const TIMES: u32 = 10;
/// Past this a thing is not linear: what is left above 1 is caches that a longer input misses.
const LINEAR: f64 = 1.5;

/// Results of a search in which every third is another form of an earlier page.
fn results(count: usize) -> Vec<FoundSource> {
    let url = |place: usize| match place % 3 {
        2 => format!("HTTPS://H{}.example/pages/{}/?ref=search#x", place % 7, place - 2),
        _ => format!("https://h{}.example/pages/{place}", (place - place % 3 + 2) % 7),
    };
    (0..count)
        .map(|place| FoundSource { url: url(place).into(), ..FoundSource::default() })
        .collect()
}

/// A page of so many sentences, laid out over lines.
fn page(sentences: usize) -> String {
    let one = |nth: usize| {
        format!(
            "Sentence {nth} of the page says\nthat the uptime of plan {nth} is {}.5%.",
            nth % 90
        )
    };
    (0..sentences).map(one).collect::<Vec<_>>().join(if sentences > 1 { "  " } else { "" })
}

/// The time of some work on a long input over that on a short one, as often as it is shorter.
fn growth(mut long: impl FnMut(), mut short: impl FnMut()) -> (f64, Duration) {
    let pairs = pairs(15, || timed(&mut long), || timed(|| (0..TIMES).for_each(|_| short())));
    let (long, _) = pairs.medians();
    (pairs.ratio(), Duration::from_secs_f64(long))
}

fn main() -> std::process::ExitCode {
    let mut bounds = Vec::new();
    let mut line = |what: &'static str, (ratio, took): (f64, Duration), each: f64| {
        let each = took.as_secs_f64() * 1e9 / each;
        let told = format!("{ratio:.2}x ({each:.0} ns each)");
        report(&format!("{what}, {TIMES}x the input"), &told, "1.5x");
        bounds.push((what, ratio, LINEAR));
    };

    let (many, few) = (results(20_000), results(2_000));
    let all = u32::MAX;
    let grown = growth(
        || drop(black_box(dedupe(&many, all, SamePage::Query))),
        || drop(black_box(dedupe(&few, all, SamePage::Query))),
    );
    line("dedupe of 20 000 sources", grown, 2e4);

    // Three notes of a page, the last sentences of it, and one that is not there.
    let verify = |text: &str| {
        let folded = QuotedPage::new(text, true);
        let sentence = "Sentence 7 of the page says that the uptime";
        for quote in [sentence, "the page says  that the", "This sentence stands on no page."] {
            black_box(note_issues("A claim", quote, Some(&folded)));
        }
    };
    let (long, short) = (page(20_000), page(2_000));
    let grown = growth(|| verify(&long), || verify(&short));
    line("verification against a page, each byte", grown, long.len() as f64);
    let pages: Vec<String> = (0..200).map(|_| page(100)).collect();
    let grown = growth(
        || pages.iter().for_each(|page| verify(page)),
        || pages[..20].iter().for_each(|page| verify(page)),
    );
    line("verification of the notes of 200 pages, each page", grown, 200.0);

    let question = "What is the uptime of plan 7?";
    let grown = growth(
        || drop(black_box(notes_by_rule(question, "", &long, 3))),
        || drop(black_box(notes_by_rule(question, "", &short, 3))),
    );
    line("notes by rule of a page, each byte", grown, long.len() as f64);
    held(&bounds)
}
