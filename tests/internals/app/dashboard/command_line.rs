//! The command line that does what the form does.

use std::collections::BTreeMap;

use crate::cli::args::{Cli, CliCommand};
use crate::cli::run::RunArgs;
use crate::scenario;
use crate::scenario::patterns::PatternSpec;
use crate::scenario::{Override, Scenario};
use crate::screen::Msg;
use crate::screen::form::{FieldId, quoted};
use crate::screen::state::DisplaySettings;
use clap::Parser as _;
use proptest::prelude::*;

use super::form::{form, goto, retype};
use crate::support::random_cases;
use crate::support::screen::{Dash, shipped};

/// The scenario that a command line would run.
pub fn of_command_line(words: &[String]) -> (Scenario, RunArgs) {
    let cli = Cli::try_parse_from(words).expect("the command line parses");
    let Some(CliCommand::Run(args)) = cli.command else { panic!("no run: {words:?}") };
    let shipped = scenario::shipped().iter().find(|shipped| shipped.name == args.scenario);
    let shipped = shipped.expect("a shipped scenario");
    let sets: Vec<Override> = args.set.iter().map(|set| set.parse().expect("a set")).collect();
    (scenario::load(shipped.text, shipped.origin(), &sets).expect("good"), *args)
}

/// What of a scenario a form can change.
fn changed(scenario: &Scenario) -> (String, BTreeMap<String, String>, String, u64) {
    let inputs = scenario.inputs.iter();
    let PatternSpec::Collaboration(spec) = &scenario.pattern else {
        panic!("a collaboration");
    };
    (
        scenario.goal.to_string(),
        inputs.map(|input| (input.name.to_string(), input.value.to_string())).collect(),
        format!("{:?}", spec.budget),
        scenario.seed,
    )
}

/// A small reader of what a POSIX shell makes of a line: quotes, escapes and `$'…'`.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let into = |word: &mut Option<String>, c: char| word.get_or_insert_default().push(c);
        match c {
            ' ' => words.extend(word.take()),
            '\\' => into(&mut word, chars.next().expect("escaped")),
            '\'' => {
                word.get_or_insert_default();
                for c in chars.by_ref().take_while(|c| *c != '\'') {
                    into(&mut word, c);
                }
            }
            '$' if chars.peek() == Some(&'\'') => {
                chars.next();
                word.get_or_insert_default();
                loop {
                    match chars.next().expect("closed") {
                        '\'' => break,
                        '\\' => {
                            let c = match chars.next().expect("escaped") {
                                'n' => '\n',
                                'r' => '\r',
                                't' => '\t',
                                'x' => {
                                    let hex: String = chars.by_ref().take(2).collect();
                                    char::from(u8::from_str_radix(&hex, 16).expect("hex"))
                                }
                                c => c,
                            };
                            into(&mut word, c);
                        }
                        c => into(&mut word, c),
                    }
                }
            }
            c => into(&mut word, c),
        }
    }
    words.extend(word);
    words
}

proptest! {
    #![proptest_config(random_cases(32))]

    #[test]
    fn a_shell_reads_every_word_back(words in prop::collection::vec(any::<String>(), 1..4)) {
        let words: Vec<String> = words.into_iter().map(|word| word.replace('\0', "")).collect();
        let line: Vec<_> = words.iter().map(|word| quoted(word)).collect();
        prop_assert_eq!(shell_words(&line.join(" ")), words);
    }

    /// Whatever is typed: where the form is good, its command line runs the same.
    #[test]
    fn command_line_runs_form_settings(
        goal in "[ -~é宽\n]{0,30}",
        campaign in "[ -~é]{0,12}",
        rounds in prop::option::of(0u32..2000),
        region in 0usize..3,
        flag in any::<bool>(),
        seed in prop::option::of(any::<u32>()),
    ) {
        let entries = shipped();
        let entry = entries.iter().find(|entry| entry.name.as_str() == "checkout-launch");
        let mut dash = Dash::over(120, 36, vec![entry.expect("shipped").clone()], DisplaySettings::default());
        dash.text("n");
        goto(&mut dash, &FieldId::Goal);
        dash.send(Msg::Paste(goal));
        goto(&mut dash, &FieldId::Input("campaign".into()));
        retype(&mut dash, "");
        dash.send(Msg::Paste(campaign));
        goto(&mut dash, &FieldId::Input("region".into()));
        for _ in 0..region {
            dash.press("Right");
        }
        if flag {
            goto(&mut dash, &FieldId::Flag("legal_analyst".into()));
            dash.press("Space");
        }
        if let Some(rounds) = rounds {
            goto(&mut dash, &FieldId::Limit("budget.max_rounds"));
            retype(&mut dash, &rounds.to_string());
        }
        if let Some(seed) = seed {
            goto(&mut dash, &FieldId::Seed);
            retype(&mut dash, &seed.to_string());
        }
        let words = form(&dash).command_words();
        if form(&dash).is_startable() {
            dash.press("C-s");
            let request = dash.launch();
            let (scenario, args) = of_command_line(&words);
            prop_assert_eq!(changed(&request.scenario), changed(&scenario));
            let flags: Vec<_> = args.flags.iter().map(|flag| (flag.name.clone(), flag.on)).collect();
            prop_assert_eq!(request.flags, flags);
        }
    }
}
