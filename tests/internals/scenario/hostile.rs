//! Files written by accident or to do harm: reading one takes work in proportion to its length, its
//! report is bounded, and every problem is inside the file.

use std::fmt::Write as _;
use std::time::Duration;

use crate::scenario::{MAX_BYTES, ProblemPosition, Problems, ScenarioOrigin, check, shipped};
use rustix::time::{ClockId, clock_gettime};

fn problems(text: &str) -> Problems {
    check(text, ScenarioOrigin::File("x.toml".into()), &[]).problems
}

/// What this thread has worked so far: other tests and programs do not count.
fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).expect("a fraction"))
}

/// The minimum work of three readings.
fn work(text: &str) -> Duration {
    let once = || {
        let before = worked();
        let found = problems(text);
        assert!(found.pretty(false).len() < 400_000, "a report that can be read");
        worked() - before
    };
    (0..3).map(|_| once()).min().expect("three readings")
}

/// Four times the length may take about four times the work; in a square it would be sixteen.
const MAX_GROWTH: f64 = 9.0;

#[track_caller]
fn grows_with_its_length(what: &str, lines: usize, text: impl Fn(usize) -> String) {
    let (short, long) = (text(lines), text(4 * lines));
    assert!(long.len() as u64 <= MAX_BYTES, "{what}: {} bytes", long.len());
    let (little, much) = (work(&short), work(&long));
    // Below that the clock says more of itself than of the work.
    let little = little.max(Duration::from_millis(2));
    let ratio = much.as_secs_f64() / little.as_secs_f64();
    assert!(ratio < MAX_GROWTH, "{what}: {little:?}, then {much:?}: {ratio:.1} times");
}

/// A scenario with this before its tables.
fn team(instruction: &str, handoff_input: &str, rest: &str) -> String {
    format!(
        "title = \"T\"\npattern = \"swarm\"\ngoal = \"g\"\nswarm.root = \"s\"\n\
         [agents.s]\ndescription = \"S\"\nmembers = [\"a\"]\nentry = \"a\"\n\
         handoff_input = \"{handoff_input}\"\n\
         [agents.a]\ndescription = \"A\"\ninstruction = \"{instruction}\"\n\
         [[script]]\ntext = \"x\"\n{rest}"
    )
}

#[test]
fn error_work_grows_with_file_length() {
    grows_with_its_length("values that are missing", 2_000, |n| "a = \n".repeat(n));
    grows_with_its_length("tables that are there already", 1_000, |n| "[a]\n".repeat(n));
    grows_with_its_length("quotes", 2_000, |n| "\"\n".repeat(n));
    grows_with_its_length("keys that there are not", 500, |n| {
        let keys = (0..n).fold(String::new(), |mut keys, at| {
            let _ = writeln!(keys, "budgets{at} = {at}");
            keys
        });
        team("i", "", "") + "[facts]\n" + &keys + "[model]\n" + &keys
    });
    grows_with_its_length("inputs that there are not", 1_000, |n| {
        team(&"{{what}} ".repeat(n), "", "")
    });
    grows_with_its_length("braces that are open", 2_000, |n| {
        team("i", &format!("{}}}", "{ ".repeat(n)), "")
    });
    grows_with_its_length("a long name that is wrong in many places", 100, |n| {
        let name = "x".repeat(20 * n);
        let keys = (0..n).fold(String::new(), |keys, at| keys + &format!("k{at} = 1\n"));
        team("i", "", &format!("[agents.{name}]\n{keys}"))
    });
}

/// The parser itself is worse than quadratic in tables that are named twice: 20,000 of them, 180 kB,
/// took 7 seconds. So they are counted before it sees them.
#[test]
fn refuses_too_many_tables_before_parsing() {
    let twice = |n: usize| -> String {
        let within = (0..n).map(|at| format!("[a{at}.b]\n"));
        within.chain((0..n).map(|at| format!(" \t[a{at}]\r"))).collect()
    };
    let told = problems(&twice(40_000)).to_string();
    assert!(told.contains("too many tables (at most 10000)"), "{told}");
    assert_eq!(told.lines().count(), 1, "nothing else is said of it: {told}");
}

#[test]
fn names_are_counted() {
    let agents = (0..3_000).fold(String::new(), |text, at| {
        text + &format!("[agents.n{at}]\ndescription = \"N\"\nmembers = [\"m\", \"n{at}\"]\n")
    });
    let told = problems(&team("i", "", &agents)).to_string();
    assert!(told.contains("agents: 3002 names are too many (at most 2000)"), "{told}");
}

#[test]
fn reports_few_syntax_errors_alone() {
    let text = "pattern = \"swarm\"\nmax_rounds = \n".to_owned() + &"b = \n".repeat(50);
    let found = problems(&text);
    let told = found.to_string();
    assert!(told.starts_with("x.toml:2:14: error: not TOML: a value is missing\n"), "{told}");
    assert!(told.lines().all(|line| line.contains("not TOML") || line.starts_with('…')), "{told}");
    // Each line but the first names a key that is there already, too.
    assert_eq!((found.iter().count(), found.more()), (20, 80), "{told}");
    assert!(told.ends_with("\n… and 80 more"), "{told}");
    assert!(found.pretty(false).contains("… and 80 more\n"));
    assert!(
        found.iter().all(|it| matches!(it.place, ProblemPosition::File { line: 2..=13, .. })),
        "{told}"
    );
}

/// Numbers drawn from a seed: the same in every run of the tests.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % most.max(1) as u64).expect("a small number")
    }

    fn one_of<'o>(&mut self, of: &[&'o str]) -> &'o str {
        of[self.below(of.len())]
    }
}

/// Values that are put in the place of others.
const EXTREMES: [&str; 26] = [
    "-1",
    "0",
    "9223372036854775807",
    "99999999999999999999999",
    "1e308",
    "-0.0",
    "nan",
    "inf",
    "0x7fffffffffffffff",
    "true",
    "\"\"",
    "\" \"",
    "\"{{\"",
    "\"{{facts.x}}\"",
    "\"{root_input}{{root_input}}\"",
    "\"\\u0000\\u001b[2J\\u202e\"",
    "'''\n\n'''",
    "[]",
    "{}",
    "[[[[{}]]]]",
    "[{a={b={c=[]}}}]",
    "1979-05-27T07:32:00Z",
    "\"900ms..1s..2s\"",
    "\"99999999999m\"",
    "\"((((((((((((1))))))))))))\"",
    "\"https://user@[::1]:99999/{x}\"",
];

/// Lines that are put between others.
const LINES: [&str; 10] = [
    "[agents.x]\nmembers = [\"x\"]",
    "[[script]]\ncalls = [{ tool = \"transfer_to_agent\", args = { to = 1 } }]",
    "[tools.llm]\nretries = 3",
    "pattern = \"swarm\"",
    "[budget]",
    "\u{feff}\u{0}\u{7f}",
    "a.b.c.d.e.f = 1",
    "[inputs]\nx = { value = \"{{x}}\" }",
    "= = =",
    "\"\"\"",
];

/// One of the shipped files, changed in one to four ways.
fn mutated(dice: &mut Dice) -> String {
    let all = shipped();
    let mut text = all[dice.below(all.len())].text.to_owned();
    for _ in 0..=dice.below(4) {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        // A mutation may have left nothing.
        if lines.is_empty() {
            break;
        }
        let (at, other) = (dice.below(lines.len()), dice.below(lines.len()));
        match dice.below(10) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[other].clone()),
            2 => lines.swap(at, other),
            3 => lines.truncate(at.max(1)),
            4 => lines.insert(at, dice.one_of(&LINES).to_owned()),
            5 => lines.insert(at, format!("facts{} = 1", ".a".repeat(dice.below(400)))),
            6 => lines.insert(at, format!("x = {}", "[".repeat(dice.below(2_000)))),
            7 => {
                let mut bytes = lines[at].clone().into_bytes();
                if !bytes.is_empty() {
                    let place = dice.below(bytes.len());
                    bytes[place] ^= 1 << dice.below(8);
                }
                lines[at] = String::from_utf8_lossy(&bytes).into_owned();
            }
            _ => {
                // A line that sets a field, so that its value is tested.
                let sets: Vec<usize> =
                    (0..lines.len()).filter(|at| lines[*at].contains(" = ")).collect();
                if !sets.is_empty()
                    && let Some(at) = sets.get(dice.below(sets.len()))
                {
                    let (key, _) = lines[*at].split_once(" = ").expect("it sets something");
                    lines[*at] = format!("{key} = {}", dice.one_of(&EXTREMES));
                }
            }
        }
        text = lines.join("\n");
    }
    text
}

#[test]
fn five_hundred_mutated_scenarios_are_judged() {
    let (mut dice, mut good, mut bad) = (Dice(20_261_122), 0, 0);
    let before = worked();
    for number in 0..500 {
        let text = mutated(&mut dice);
        let checked = check(&text, ScenarioOrigin::File("x.toml".into()), &[]);
        let problems = &checked.problems;
        assert_eq!(checked.scenario.is_none(), problems.errors() > 0, "{number}: {text}");
        match checked.scenario {
            Some(_) => good += 1,
            None => bad += 1,
        }
        let lines: Vec<&str> = text.split('\n').collect();
        for problem in problems.iter() {
            let ProblemPosition::File { line, column } = problem.place else {
                panic!("{number}: there is no override: {problem:?}");
            };
            let length = lines.get(line - 1).map(|line| line.chars().count());
            let inside = length.is_some_and(|length| column <= length + 1);
            assert!(inside, "{number}: {line}:{column} is not in\n{text}");
            assert!(text.get(problem.range.clone()).is_some(), "{number}: {problem:?}");
            let told = problems.line(problem);
            assert!(!told.contains(|c: char| c.is_control()), "{number}: {told:?}");
        }
        assert!(problems.pretty(false).len() < 400_000, "{number}");
    }
    assert!(good > 25 && bad > 250, "{good} good ones, {bad} bad ones: a sample of both");
    // By work, not by the clock: 40 ms each in a build for tests is ten times what it takes.
    assert!(worked() - before < Duration::from_secs(20), "{:?}", worked() - before);
}
