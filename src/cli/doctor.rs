//! `roundtable doctor`: what is found on this machine, and what to do about it. Nothing is asked of
//! the network unless `--live` says so, and no key is ever shown.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use ratatui::layout::Size;

use super::exit::Exit;
use super::paint::Paint;
use super::stdout;
use crate::app::layout::LEAST;
use crate::app::state::{Broken, Entry};
use crate::event::visible::visible;
use crate::llm::endpoint::{self, Asked, Endpoint, EndpointError, Found, Origin, Provider};
use crate::llm::openai::Reach;
use crate::private;
use crate::scenario::Severity;
use crate::shell::clipboard;
use crate::shell::dirs::Dirs;
use crate::shell::models::LiveModels;
use crate::shell::trust::Trust;
use crate::shell::tty::Abilities;
use crate::shell::{catalogue, screen};
use crate::ui::format;
use crate::ui::glyph::Glyph;
use crate::ui::theme::{Depth, Role};

/// How long the endpoint may take to list its models.
const PATIENCE: Duration = Duration::from_secs(10);

/// Columns of what a line is about.
const ABOUT: usize = 10;

/// What one line says.
enum Mark {
    /// As it should be.
    Good,
    /// Good to know.
    Note,
    /// To be mended.
    Bad,
}

struct Finding {
    mark: Mark,
    about: &'static str,
    text: String,
    /// What to do about it.
    advice: Option<String>,
}

impl Finding {
    fn good(about: &'static str, text: impl Into<String>) -> Self {
        Self { mark: Mark::Good, about, text: text.into(), advice: None }
    }
    fn note(about: &'static str, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { mark: Mark::Note, about, text: text.into(), advice: Some(advice.into()) }
    }
    fn bad(about: &'static str, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { mark: Mark::Bad, about, text: text.into(), advice: Some(advice.into()) }
    }
}

/// Looks at everything and says what it finds; [`Exit::Stopped`] where something is to be mended.
pub async fn run(live: bool, models: &LiveModels, paint: &Paint) -> Exit {
    let mut findings = vec![Finding::good("program", program())];
    findings.extend(terminal(&Abilities::look(), screen::is_interactive()));
    findings.extend(folders(Dirs::find().as_ref()));
    let entries = catalogue::read();
    findings.extend(model(live, models, &entries).await);
    findings.extend(proxies());
    findings.extend(scenarios(&entries));
    let bad = findings.iter().filter(|finding| matches!(finding.mark, Mark::Bad)).count();
    let text: String = findings.iter().map(|finding| told(finding, paint)).collect();
    stdout::print(&text, if bad == 0 { Exit::Ok } else { Exit::Stopped })
}

fn told(finding: &Finding, paint: &Paint) -> String {
    let (glyph, role) = match finding.mark {
        Mark::Good => (Glyph::Done, Role::Done),
        Mark::Note => (Glyph::Alert, Role::Retry),
        Mark::Bad => (Glyph::Failed, Role::Failed),
    };
    let sign = paint.role(role, paint.glyph(glyph));
    let mut text = format!("{sign} {:<ABOUT$} {}\n", finding.about, visible(&finding.text));
    if let Some(advice) = &finding.advice {
        let advice = paint.role(Role::Dim, &visible(advice));
        text += &format!("  {:<ABOUT$} {} {advice}\n", "", paint.glyph(Glyph::Arrow));
    }
    text
}

fn program() -> String {
    let build = if cfg!(debug_assertions) { ", a debug build" } else { "" };
    format!("roundtable {}{build}", env!("CARGO_PKG_VERSION"))
}

fn terminal(found: &Abilities, interactive: bool) -> Vec<Finding> {
    let about = "terminal";
    if !interactive {
        let text = "standard input or output is none: the dashboard does not open here";
        let advice = "headless runs need none: roundtable run NAME --headless";
        return vec![Finding::note(about, text, advice)];
    }
    let mut findings = Vec::new();
    let (cols, rows) = LEAST;
    match found.size {
        Some(Size { width, height }) if width < cols || height < rows => {
            findings.push(Finding::bad(
                about,
                format!("{width}x{height}"),
                format!("too small for the dashboard: at least {cols}x{rows}; all panes at 120x36"),
            ))
        }
        Some(Size { width, height }) if width < 120 || height < 36 => findings.push(Finding::good(
            about,
            format!("{width}x{height}: one pane at a time, all of them from 120x36 on"),
        )),
        Some(Size { width, height }) => {
            findings.push(Finding::good(about, format!("{width}x{height}")));
        }
        None => findings.push(Finding::note(about, "its size is not known", "80x24 is taken")),
    }
    let colours = match found.depth {
        Depth::True => "16 million",
        Depth::Indexed => "256",
        Depth::Mono => "none: every state has a glyph and a word as well",
    };
    findings.push(Finding::good("colours", format!("{colours} ({})", found.depth_from)));
    findings.push(match &found.narrow_locale {
        Some(locale) => Finding::note(
            "unicode",
            format!("{locale} has none"),
            "where the glyphs look wrong: --ascii, or a UTF-8 locale",
        ),
        None => Finding::good("unicode", "the locale does not stand against it"),
    });
    let size = format::bytes(clipboard::MOST as u64);
    findings.push(match found.multiplexer {
        Some("tmux") => Finding::good("clipboard", "through tmux, which hands it to the terminal"),
        Some(other) => Finding::note(
            "clipboard",
            format!("{other} may swallow what is copied (OSC 52)"),
            "e in a run writes a file instead",
        ),
        None if found.remote => {
            Finding::good("clipboard", format!("OSC 52, over SSH too; often up to {size}"))
        }
        None => Finding::good("clipboard", format!("OSC 52; often up to {size}")),
    });
    findings
}

fn folders(dirs: Option<&Dirs>) -> Vec<Finding> {
    let Some(dirs) = dirs else {
        let advice = "set HOME: without it neither a log nor what you trust is kept";
        return vec![Finding::bad("folders", "this user has no home", advice)];
    };
    let log = dirs.log();
    let written = match private::append(&log) {
        Ok(_) => Finding::good("log", log.display().to_string()),
        Err(error) => Finding::bad(
            "log",
            format!("{} cannot be written: {error}", log.display()),
            "make the folder writable, or name a file: --log-file FILE",
        ),
    };
    let config = dirs.config.display();
    let settings = match std::fs::read_dir(&dirs.config) {
        Ok(_) => Finding::good("settings", config.to_string()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Finding::good("settings", format!("none yet ({config})"))
        }
        Err(error) => {
            Finding::bad("settings", format!("{config}: {error}"), "make the folder readable")
        }
    };
    let mut findings = vec![written, settings];
    if let Some(why) = Trust::kept_in(Some(dirs.trusted())).trouble() {
        let advice = "until then each scenario of somebody else's is asked about again";
        findings.push(Finding::bad("trust", why, advice));
    }
    findings
}

async fn model(live: bool, models: &LiveModels, entries: &[Entry]) -> Vec<Finding> {
    let endpoint = match endpoint::find_here(Asked::default()) {
        Ok(endpoint) => endpoint,
        Err(EndpointError::WhichProvider { keys }) => {
            return each(live, models, entries, &keys).await;
        }
        Err(error @ EndpointError::NoKey { .. }) => {
            if live {
                return vec![Finding::bad("key", error.to_string(), error.advice())];
            }
            let text = format!("{error}; scripted runs need none");
            return vec![Finding::note("key", text, error.advice())];
        }
        Err(error) => return vec![Finding::bad("key", error.to_string(), error.advice())],
    };
    one(live, models, entries, endpoint).await
}

/// What there is to say of each of these providers, which all have a key.
async fn each(
    live: bool,
    models: &LiveModels,
    entries: &[Entry],
    keys: &[Provider],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for provider in keys {
        let name = format!("{}/{}", provider.word(), provider.model());
        let asked = Found { value: name.as_str(), origin: Origin::Default };
        match endpoint::find_here(Asked { model: Some(asked), ..Asked::default() }) {
            Ok(endpoint) => findings.extend(one(live, models, entries, endpoint).await),
            Err(error) => findings.push(Finding::bad("key", error.to_string(), error.advice())),
        }
    }
    let several = EndpointError::WhichProvider { keys: keys.to_vec() };
    findings.push(Finding::note("model", several.to_string(), several.advice()));
    findings
}

async fn one(
    live: bool,
    models: &LiveModels,
    entries: &[Entry],
    endpoint: Endpoint,
) -> Vec<Finding> {
    let from = |origin: Origin| format!("from {origin}");
    let key_name = endpoint.provider().key_name();
    let mut findings = vec![match endpoint.key() {
        Some(key) => Finding::good("key", format!("{key_name} {}", from(key.origin))),
        None => Finding::good("key", "none, and none is needed for an endpoint on this machine"),
    }];
    let (url, name, timeout) = (endpoint.base_url(), endpoint.model(), endpoint.timeout());
    findings.push(Finding::good(
        "endpoint",
        format!("{} {} ({})", endpoint.host(), from(url.origin), url.value.scheme()),
    ));
    findings.push(Finding::good("model", format!("{} {}", name.value, from(name.origin))));
    let time = format::took(timeout.value);
    let bound = format!("{time} an attempt, {}{}", from(timeout.origin), own_timeouts(entries));
    findings.push(Finding::good("timeout", bound));
    for note in endpoint.notes() {
        findings.push(Finding { advice: None, ..Finding::note("endpoint", note.clone(), "") });
    }
    if live {
        findings.push(reach(models, endpoint).await);
    } else {
        let advice = "doctor --live asks it for its models: one request, which costs nothing";
        findings.push(Finding::note("reach", "not asked", advice));
    }
    findings
}

/// The scenarios that bound the attempts of the model themselves, which goes before what the shell says.
fn own_timeouts(entries: &[Entry]) -> String {
    let own = entries.iter().filter_map(|entry| {
        let timeout = entry.loaded.as_ref().ok()?.llm.timeout?;
        Some(format!("{} ({})", entry.name, format::took(timeout)))
    });
    let own: Vec<String> = own.collect();
    if own.is_empty() {
        return String::new();
    }
    format!("; scenarios with a tools.llm.timeout_s of their own: {}", own.join(", "))
}

async fn reach(models: &LiveModels, endpoint: Endpoint) -> Finding {
    let about = "reach";
    let (host, name) = (endpoint.host().to_owned(), endpoint.model().value.clone());
    let asked = Instant::now();
    match models.probe(endpoint, PATIENCE).await {
        Ok(Reach::Lists { models, has_model, .. }) => {
            let time = format::took(asked.elapsed());
            let count = format::things(models as u64, "model");
            let text = format!("{host} answered in {time} and lists {count}");
            if has_model {
                Finding::good(about, format!("{text}, {name} among them"))
            } else {
                let advice = "name one that it lists: with --model, in the scenario, or for OpenAI in \
                              OPENAI_MODEL";
                Finding::bad(about, format!("{text}, {name} not among them"), advice)
            }
        }
        Ok(Reach::NoList { status }) => Finding::note(
            about,
            format!("{host} answered, without a list of models (status {status})"),
            "the first call shows whether it has the model; where that is refused too, check the \
             base URL: most end in /v1",
        ),
        // The text of a failure says itself what to do.
        Err(failed) => Finding { advice: None, ..Finding::bad(about, failed.text, "") },
    }
}

/// Proxies that the environment names and that are not used.
fn proxies() -> Vec<Finding> {
    let names =
        ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"];
    let set = names.into_iter().find(|name| std::env::var_os(name).is_some_and(|v| !v.is_empty()));
    let advice = "--proxy env goes through what the environment names";
    set.map(|name| Finding::note("proxy", format!("{name} is set and not used"), advice))
        .into_iter()
        .collect()
}

fn scenarios(entries: &[Entry]) -> Vec<Finding> {
    let good = entries.iter().filter(|entry| entry.loaded.is_ok()).count();
    let own = Path::new(catalogue::FOLDER).is_dir();
    let place = if own { ", those of ./scenarios among them" } else { "" };
    let count = format::things(good as u64, "scenario");
    let mut findings = vec![Finding::good("scenarios", format!("{count} can be run{place}"))];
    for entry in entries {
        let text = match &entry.loaded {
            Ok(_) => continue,
            Err(Broken::Problems(problems)) => {
                let mut errors = problems.iter().filter(|it| it.severity == Severity::Error);
                errors.next().map_or_else(String::new, |first| problems.line(first))
            }
            Err(Broken::Unreadable(why)) => why.clone(),
        };
        let advice = format!("roundtable validate {} says all of it", entry.path);
        findings.push(Finding::bad("scenarios", text, advice));
    }
    findings
}
