//! `roundtable new`: writes a scenario file to start from, and never replaces one.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::exit::Exit;
use super::streams;
use super::streams::{StreamStyle, refuse};
use crate::base::refused::Refused;
use crate::base::visible::visible;
use crate::host::catalogue;
use crate::host::client_servers::{read_servers, scenario_of};
use crate::host::from_run;
use crate::log::event::Event;
use crate::scenario;
use crate::scenario::read::suggest_name;
use crate::scenario::spec::tool::ToolSpec;
use crate::scenario::{STDIN, ScenarioOrigin, ScenarioTemplate, shipped, templates};
use crate::screen::form::quoted;
use crate::screen::theme::Theme;
use crate::words::styled::StyleRole;

/// Arguments of `roundtable new`.
#[derive(Debug, Clone, Default, Args)]
pub struct NewArgs {
    /// What the scenario does: see `roundtable new`
    pub pattern: Option<String>,
    /// The file to write; - for standard output. Default: scenarios/my-PATTERN.toml, which the
    /// dashboard lists. A file that exists is not replaced
    pub file: Option<String>,
    /// Copy this shipped scenario instead: roundtable new --from NAME [FILE]
    #[arg(long, value_name = "NAME")]
    pub from: Option<String>,
    /// Use the MCP servers of this file of another client (mcpServers): roundtable new --mcp FILE.json
    /// [FILE]. Values of variables and headers are not copied
    #[arg(long, value_name = "FILE.json", conflicts_with = "from")]
    pub mcp: Option<PathBuf>,
    /// Write what was said in this run as a scenario that plays without a model and without the tools
    /// that it asked: a kept run (id, start of an id, last, last~2) or a log (.jsonl, .jsonl.gz).
    /// roundtable new --from-run RUN [FILE]
    #[arg(long, value_name = "RUN", conflicts_with_all = ["from", "mcp"])]
    pub from_run: Option<String>,
}

/// Writes the template of a pattern, or a copy of a shipped scenario, to a file. Without a pattern prints
/// the patterns.
pub fn run(args: &NewArgs, theme: Theme, ascii: bool) -> Exit {
    let paint = StreamStyle::of_stdout(theme, ascii);
    let started = match &args.from_run {
        None => start(args),
        Some(run) => match recorded(run) {
            Ok(events) => start_from_run(args, &events),
            Err(exit) => return exit,
        },
    };
    match started {
        Ok(Start::List) => streams::print(&list(templates(), &paint), Exit::Ok),
        Ok(Start::Print(text)) => streams::print(&text, Exit::Ok),
        Ok(Start::Write(path, text)) => match catalogue::write_new(&path, &text) {
            Ok(()) => streams::print(&what_next(&path, &text, &paint), Exit::Ok),
            Err(why) => refuse(&why, Exit::Usage),
        },
        Err(why) => refuse(&why, Exit::Usage),
    }
}

/// The events of a run; on an error the message has been printed.
fn recorded(run: &str) -> Result<Vec<Arc<Event>>, Exit> {
    super::kept::OpenedRun::find(run)?.events()
}

/// What the arguments say.
#[derive(Debug)]
enum Start {
    List,
    Print(Cow<'static, str>),
    Write(PathBuf, Cow<'static, str>),
}

fn start(args: &NewArgs) -> Result<Start, Refused> {
    if let Some(servers) = &args.mcp {
        if args.file.is_some() {
            return Err(Refused::new("--mcp takes one FILE to write, and no pattern"));
        }
        let text = scenario_of(&read_servers(servers, Path::new("."))?);
        return Ok(start_with(text.into(), "my-tools".to_owned(), args.pattern.as_deref()));
    }
    let (text, name, file) = match (&args.from, &args.pattern) {
        (None, None) => return Ok(Start::List),
        (None, Some(pattern)) => {
            let all = templates();
            let Some(template) = all.iter().find(|it| it.pattern == *pattern) else {
                let help = suggest_name(pattern, all.iter().map(|it| it.pattern.as_str()));
                return Err(Refused::new(format!("{pattern} is not a pattern")).help(help));
            };
            (template.text, format!("my-{pattern}"), args.file.as_deref())
        }
        (Some(from), file) => {
            if args.file.is_some() {
                return Err(Refused::new("--from takes one FILE, and no pattern"));
            }
            if file.as_deref().is_some_and(|file| templates().iter().any(|it| it.pattern == file)) {
                let why = Refused::new("--from copies a scenario");
                return Err(why.help("give a FILE, and no pattern"));
            }
            let Some(one) = shipped().iter().find(|it| it.name == from) else {
                let help = suggest_name(from, shipped().iter().map(|it| it.name));
                let help = format!("{help}; roundtable scenarios lists them");
                return Err(Refused::new(format!("{from} is not a shipped scenario")).help(help));
            };
            (one.text, from.clone(), file.as_deref())
        }
    };
    Ok(start_with(text.into(), name, file))
}

/// What was said in a run with these events.
fn start_from_run(args: &NewArgs, events: &[Arc<Event>]) -> Result<Start, Refused> {
    if args.file.is_some() {
        return Err(Refused::new("--from-run takes one FILE to write, and no pattern"));
    }
    let text = from_run::scenario_of_run(events)?;
    Ok(start_with(text.into(), from_run::NAME.to_owned(), args.pattern.as_deref()))
}

/// Where a text goes: to standard output, or to a file, by default one of this name.
fn start_with(text: Cow<'static, str>, name: String, file: Option<&str>) -> Start {
    match file {
        Some(STDIN) => Start::Print(text),
        Some(file) if is_folder(file) => Start::Write(Path::new(file).join(name + ".toml"), text),
        Some(file) => Start::Write(with_extension(file), text),
        None => Start::Write(Path::new(catalogue::FOLDER).join(name + ".toml"), text),
    }
}

fn is_folder(file: &str) -> bool {
    file.ends_with(std::path::is_separator) || Path::new(file).is_dir()
}

/// The path with the extension by which folders of scenarios are read.
fn with_extension(file: &str) -> PathBuf {
    let path = PathBuf::from(file);
    if path.extension().is_some() { path } else { path.with_extension("toml") }
}

fn list(templates: &[ScenarioTemplate], paint: &StreamStyle) -> String {
    let width = templates.iter().map(|it| it.pattern.len()).max().unwrap_or(0);
    let mut text = String::new();
    for template in templates {
        let name = paint.role(StyleRole::Strong, &template.pattern);
        let gap = " ".repeat(width - template.pattern.len());
        text.push_str(&format!("{name}{gap}  {}\n", template.about));
    }
    text + "\nroundtable new PATTERN [FILE] writes a scenario to start from.\n"
}

fn what_next(path: &Path, text: &str, paint: &StreamStyle) -> String {
    let origin = ScenarioOrigin::File(path.to_owned());
    let scenario = scenario::check(text, origin, &[]).scenario;
    let asks_outside = scenario.is_some_and(|it| it.tools.values().any(ToolSpec::is_outside));
    let needs = match asks_outside {
        true => "It needs no model, but the services, programs or pages that its file names",
        false => "It runs as it is, without a model",
    };
    let path = path.display().to_string();
    let (shown, word) = (visible(&path), quoted(&path));
    let path = paint.role(StyleRole::Strong, &shown);
    format!(
        "{path} is written. {needs}:\n\
         \x20 roundtable run {word}\n\
         \x20 roundtable validate {word}    after each change\n\
         \x20 roundtable test {word}        checks what it expects of its runs\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: [Option<&str>; 3]) -> NewArgs {
        let [pattern, file, from] = words.map(|it| it.map(str::to_owned));
        NewArgs { pattern, file, from, ..NewArgs::default() }
    }

    #[test]
    fn arguments_decide_template_and_path() {
        let path = |words| match start(&args(words)) {
            Ok(Start::Write(path, _)) => path.display().to_string(),
            other => format!("{other:?}"),
        };
        assert_eq!(path([Some("team"), None, None]), "scenarios/my-team.toml");
        assert_eq!(path([Some("team"), Some("a/mine"), None]), "a/mine.toml");
        assert_eq!(path([Some("team"), Some("mine.txt"), None]), "mine.txt");
        assert_eq!(path([None, None, Some("front-desk")]), "scenarios/front-desk.toml");
        assert_eq!(path([Some("b.toml"), None, Some("front-desk")]), "b.toml");
        assert_eq!(path([Some("new/"), None, Some("front-desk")]), "new/front-desk.toml");
        assert_eq!(path([Some("team"), Some("src"), None]), "src/my-team.toml");
        assert!(matches!(start(&args([None, None, None])), Ok(Start::List)));
        assert!(matches!(start(&args([Some("team"), Some("-"), None])), Ok(Start::Print(_))));
        let wrong = |words| format!("{:#}", start(&args(words)).expect_err("refused"));
        assert!(wrong([Some("taem"), None, None]).contains("team"));
        assert!(wrong([None, None, Some("front-dask")]).contains("front-desk"));
        assert!(wrong([Some("team"), Some("x"), Some("front-desk")]).contains("one FILE"));
    }
}
