//! `roundtable watch URL -m TEXT`: an agent that speaks AG-UI, without a scenario file. The command makes
//! the scenario, and it is run as `roundtable run --live` runs it.

use toml::{Table, Value};
use url::Url;

use super::run::RunArgs;
use super::watch::WatchArgs;
use crate::base::refused::Refused;
use crate::base::visible::visible;
use crate::net::host_of;

/// The name of the agent.
const AGENT: &str = "agent";
/// The name of the team around it: the first agent of a swarm calls no model.
const ROOT: &str = "conversation";
/// Most seconds of each message, without the time in which people are asked.
const MAX_SECONDS: i64 = 3_600;

/// The run that talks to the agent at an address. `None`: a program is watched.
///
/// # Errors
/// What is wrong with the command line.
pub fn run_args(args: &WatchArgs) -> Result<Option<RunArgs>, Refused> {
    if !args.names_address() {
        return match args.has_agent_options() {
            true => {
                Err(Refused::new("--message, --header and --people are for an agent at an address")
                    .help("give its address in place of the program, or leave them out"))
            }
            false => Ok(None),
        };
    }
    // Options may follow the address: all that follows belongs to the command there.
    let args = &reread(args)?;
    let address = args.command.first().map(String::as_str).unwrap_or_default();
    let url = Url::parse(address).map_err(|error| {
        let why = Refused::new(format!("{} is not an address", visible(address)));
        why.because(error).help("give one such as http://127.0.0.1:8000/agent")
    })?;
    if args.program.no_tap || args.program.no_langsmith {
        let why = Refused::new("--no-tap and --no-langsmith are for a program, not for an address");
        return Err(why.help("leave them out"));
    }
    if args.program.expect.is_some() {
        let why = Refused::new("--expect is for a program, not for an address");
        return Err(why.help("check its kept run: roundtable test ROWS.toml --trace last"));
    }
    if args.messages.is_empty() {
        let why = Refused::new("an agent at an address needs a message");
        let help = format!("roundtable watch {} -m \"I was charged twice\"", visible(address));
        return Err(why.help(help));
    }
    if args.messages.iter().any(|text| text.trim().is_empty()) {
        return Err(Refused::new("--message: the text is empty"));
    }
    let name = args.program.name.clone().unwrap_or_else(|| host_of(&url));
    let text = scenario_text(address, &name, &args.messages, headers(&args.headers)?)?;
    Ok(Some(RunArgs {
        scenario: format!("{AGENT}.toml"),
        text: Some(text),
        headless: args.program.headless,
        format: args.program.format,
        live: true,
        // Who types the address allows it.
        trust: true,
        people: args.people,
        ..RunArgs::default()
    }))
}

/// The arguments with the options that follow the address.
fn reread(args: &WatchArgs) -> Result<WatchArgs, Refused> {
    let mut args = args.clone();
    let rest: Vec<String> = args.command.drain(1..).collect();
    let mut rest = rest.into_iter();
    while let Some(word) = rest.next() {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) if option.starts_with("--") => {
                (option.to_owned(), Some(value.to_owned()))
            }
            _ => (word.clone(), None),
        };
        let mut value = || {
            let why = || Refused::new(format!("{} needs a value", visible(&option)));
            value.clone().or_else(|| rest.next()).ok_or_else(why)
        };
        match &*option {
            "-m" | "--message" => args.messages.push(value()?),
            "--header" => args.headers.push(value()?),
            "--name" => args.program.name = Some(value()?),
            "--headless" => args.program.headless = true,
            "--format" => args.program.format = Some(parsed("--format", &value()?)?),
            "--people" => args.people = Some(parsed("--people", &value()?)?),
            _ => {
                let why = Refused::new(format!("{} does not belong to an address", visible(&word)));
                let help = "an address takes --message, --header, --people, --name, --headless \
                            and --format";
                return Err(why.help(help));
            }
        }
    }
    Ok(args)
}

fn parsed<T: clap::ValueEnum>(option: &str, text: &str) -> Result<T, Refused> {
    T::from_str(text, false)
        .map_err(|_| Refused::new(format!("{option}: {} is none of its values", visible(text))))
}

/// The headers as settings of a scenario.
fn headers(given: &[String]) -> Result<Table, Refused> {
    let mut headers = Table::new();
    for text in given {
        let at = text.find([':', '=']).unwrap_or(text.len());
        let (name, value) = text.split_at(at);
        let name = name.trim();
        // The value may be a secret: no message has it.
        let wrong = |what: &str, help: &str| {
            Refused::new(format!("--header {}: {what}", visible(name))).help(help)
        };
        let both = "give 'Name: value', or 'NAME=$VARIABLE' in single quotes";
        let setting = match (value.strip_prefix(':'), value.strip_prefix("=$")) {
            (Some(value), _) if !name.is_empty() => Value::from(value.trim()),
            (_, Some(variable)) if !name.is_empty() => {
                let variable = variable.trim_start_matches('{').trim_end_matches('}');
                Table::from_iter([("env".to_owned(), Value::from(variable))]).into()
            }
            _ if value.starts_with('=') => {
                let what = "it has a value, and no variable: the shell may have replaced it";
                return Err(wrong(what, both));
            }
            _ => return Err(Refused::new("--header: it has no name and value").help(both)),
        };
        headers.insert(name.to_owned(), setting);
    }
    Ok(headers)
}

/// A swarm with one member. Its values are written by a TOML writer, so no text can break it.
fn scenario_text(
    address: &str,
    name: &str,
    messages: &[String],
    headers: Table,
) -> Result<String, Refused> {
    let (goal, follow_ups) = messages.split_first().map_or(("", messages), |(a, b)| (a, b));
    let text = |value: &str| Value::from(literal(value));
    let mut ag_ui = Table::from_iter([
        ("url".to_owned(), Value::from(address)),
        ("allow_private".to_owned(), Value::from(true)),
    ]);
    if !headers.is_empty() {
        ag_ui.insert("headers".to_owned(), headers.into());
    }
    let described = |description: &str| ("description".to_owned(), Value::from(description));
    let agent = Table::from_iter([described("Answers."), ("ag_ui".to_owned(), ag_ui.into())]);
    let members = Value::from(vec![AGENT]);
    let root = Table::from_iter([
        described("Talks to one agent."),
        ("members".to_owned(), members),
        ("entry".to_owned(), Value::from(AGENT)),
    ]);
    let follow_ups: Vec<Value> = follow_ups.iter().map(|message| text(message)).collect();
    let swarm = Table::from_iter([
        ("root".to_owned(), Value::from(ROOT)),
        ("follow_ups".to_owned(), Value::from(follow_ups)),
    ]);
    let budget = Table::from_iter([("max_seconds".to_owned(), Value::from(MAX_SECONDS))]);
    let agents = Table::from_iter([
        (ROOT.to_owned(), Value::from(root)),
        (AGENT.to_owned(), Value::from(agent)),
    ]);
    let whole = Table::from_iter([
        ("title".to_owned(), Value::from(name)),
        ("pattern".to_owned(), Value::from("swarm")),
        ("goal".to_owned(), text(goal)),
        ("budget".to_owned(), budget.into()),
        ("swarm".to_owned(), swarm.into()),
        ("agents".to_owned(), agents.into()),
    ]);
    toml::to_string(&whole)
        .map_err(|error| Refused::new("the scenario cannot be written").because(error))
}

/// A text that a template shows as it is: two braces would begin an input.
fn literal(text: &str) -> String {
    text.replace("{{", "\\{{")
}
