//! `roundtable doctor`: checks this machine's setup, or what applies to a scenario, prints its
//! findings and says what to fix. It sends requests to other machines only with `--live` or
//! `--cluster`, and never shows a key.

mod cluster;
mod models;
mod scenario;

use std::borrow::Cow;
use std::io;
use std::path::Path;

use clap::Args;
use ratatui::layout::Size;

use super::exit::Exit;
use super::streams;
use super::streams::StreamStyle;
use crate::base::private_file;
use crate::base::refused::Refused;
use crate::base::visible::visible;
use crate::host::client_servers::find_servers;
use crate::host::config::{ConfigFile, user_config};
use crate::host::day_account::day_ledger;
use crate::host::models::LiveModels;
use crate::host::trust::Trust;
use crate::host::{Dirs, catalogue};
use crate::scenario::Severity;
use crate::scenario::catalogue::{EntryError, ScenarioEntry};
use crate::screen::form::quoted;
use crate::screen::layout::MIN_SIZE;
use crate::screen::theme::ColourDepth;
use crate::terminal;
use crate::terminal::{TerminalFeatures, screen_guard};
use crate::tool::command;
use crate::watch::proxy::variables::{Environment, Upstreams};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::styled::StyleRole;

/// Arguments of `roundtable doctor`.
#[derive(Debug, Clone, Default, Args)]
pub struct DoctorArgs {
    /// A scenario, as for `run`: prints the live model of each role, agent and step, where it was
    /// chosen, and what is missing
    #[arg(value_name = "FILE|NAME|-")]
    pub scenario: Option<String>,
    /// Check the cluster: server, JetStream, streams, permissions, runners
    #[arg(long, conflicts_with_all = ["scenario", "live"])]
    pub cluster: bool,
    /// Address of the cluster's server, such as nats://10.0.0.5; without it that of the configuration
    #[arg(long, value_name = "URL", requires = "cluster")]
    pub on: Option<String>,
    /// Also request each endpoint's list of models (one free network request each)
    #[arg(long)]
    pub live: bool,
    /// Report what applies with this model, as for `run --model`
    #[arg(long, value_name = "[PROVIDER/]MODEL", requires = "scenario")]
    pub model: Option<String>,
    /// Override a field of the scenario, as `run --set` does
    #[arg(long = "set", value_name = "PATH=VALUE", requires = "scenario")]
    pub set: Vec<String>,
    /// Use this proxy; env: the proxy of HTTPS_PROXY and similar variables
    #[arg(long, value_name = "URL|env")]
    pub proxy: Option<String>,
}

impl DoctorArgs {
    /// Whether the cluster is checked, and its address if the command line has one.
    pub fn cluster_url(&self) -> Option<Option<&str>> {
        self.cluster.then_some(self.on.as_deref())
    }
}

/// Checks the machine or a scenario and prints the findings; [`Exit::Stopped`] if one must be
/// fixed.
pub async fn run(
    args: &DoctorArgs,
    file: &ConfigFile,
    models: &LiveModels,
    paint: &StreamStyle,
) -> Exit {
    if let Some(on) = args.cluster_url() {
        let mut findings = configuration(file);
        findings.extend(cluster::findings(on).await);
        return print(&findings, paint);
    }
    let findings = match &args.scenario {
        Some(named) => {
            let Some(of_scenario) = scenario::findings(named, args, models).await else {
                return Exit::Usage;
            };
            let mut findings = configuration(file);
            findings.extend(of_scenario);
            findings
        }
        None => machine(args.live, file, models).await,
    };
    print(&findings, paint)
}

fn print(findings: &[Finding], paint: &StreamStyle) -> Exit {
    let bad = findings.iter().any(|finding| finding.rating == Rating::Bad);
    streams::print(&finding_lines(findings, paint), if bad { Exit::Stopped } else { Exit::Ok })
}

async fn machine(live: bool, file: &ConfigFile, live_models: &LiveModels) -> Vec<Finding> {
    let mut findings = vec![Finding::good("program", program())];
    findings.extend(terminal(&TerminalFeatures::detect(), screen_guard::is_interactive()));
    let dirs = Dirs::find();
    findings.extend(folders(dirs.as_ref()));
    findings.extend(dirs.as_ref().map(|dirs| store(&dirs.runs())));
    findings.extend(configuration(file));
    let entries = catalogue::read();
    findings.extend(models::findings(live, live_models, &entries).await);
    findings.extend(proxies());
    findings.extend(scenarios(&entries));
    findings.extend(servers());
    findings.extend(day_limits());
    findings.extend(guarded_variables(&|name| std::env::var_os(name)));
    findings
}

/// The spending of today, if a day has limits.
fn day_limits() -> Vec<Finding> {
    let limits = user_config().day;
    if limits.is_none() {
        return Vec::new();
    }
    let today = day_ledger(limits).and_then(|ledger| ledger.today());
    let all = match today {
        Ok(today) => today.spent.and(today.reserved),
        Err(why) => {
            return vec![Finding::bad(
                "limits of a day",
                why,
                "no live call is made: check the folder of the state",
            )];
        }
    };
    let cost = limits
        .max_cost_usd
        .map(|most| format!("{} of {}", format::usd(all.usd), format::usd(most)));
    let tokens = limits.max_total_tokens.map(|most| format!("{} of {most} tokens", all.tokens));
    let used: Vec<String> = cost.into_iter().chain(tokens).collect();
    vec![Finding::good("limits of a day", format!("used today: {}", used.join(", ")))]
}

/// The addresses of models that the environment sets, which a guarded program would use.
fn guarded_variables(get: Environment<'_>) -> Vec<Finding> {
    let about = "guard";
    let upstreams = match Upstreams::of(get) {
        Ok((upstreams, _)) => upstreams,
        Err(why) => return vec![Finding::bad(about, why.to_string(), "roundtable guard needs it")],
    };
    let own = upstreams.0.iter().filter(|it| it.is_own && get(it.variable.name).is_some());
    let rows = own.map(|it| {
        let text = format!("{} is set: {}", it.variable.name, it.host());
        Finding::good(about, format!("{text} (read by {})", it.variable.read_by))
    });
    rows.collect()
}

/// The MCP servers of the configuration, and those that other clients of the user have.
fn servers() -> Vec<Finding> {
    let about = "mcp";
    let own: Vec<&str> = user_config().mcp.keys().map(String::as_str).collect();
    let mut findings = Vec::new();
    if !own.is_empty() {
        let text = format!(
            "{} in the configuration: roundtable tools lists what they offer",
            own.join(", ")
        );
        findings.push(Finding::good(about, text));
    }
    findings.extend(coding_agents());
    let home = std::env::home_dir().unwrap_or_default();
    for (file, servers) in find_servers(&home, Path::new("")) {
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        let path = file.display().to_string();
        let advice =
            format!("roundtable new --mcp {} - prints a scenario with them", quoted(&path));
        let shown = names.iter().map(|name| visible(name)).collect::<Vec<_>>().join(", ");
        findings.push(Finding::note(about, format!("{}: {shown}", visible(&path)), advice));
    }
    findings
}

/// Coding agents that speak ACP: their programs, and the arguments that make them speak it.
const CODING_AGENTS: [(&str, &[&str]); 11] = [
    ("claude-agent-acp", &[]),
    ("codex-acp", &[]),
    ("gemini", &["--acp"]),
    ("copilot", &["--acp"]),
    ("goose", &["acp"]),
    ("opencode", &["acp"]),
    ("qwen", &["--acp"]),
    ("kimi", &["acp"]),
    ("vibe-acp", &[]),
    ("auggie", &["--acp"]),
    ("kiro-cli", &["acp"]),
];

/// The coding agents in PATH, each with the line that makes it an agent of a scenario.
fn coding_agents() -> Vec<Finding> {
    let path = std::env::var("PATH").ok();
    let found = CODING_AGENTS.iter().filter_map(|(program, args)| {
        let place = command::find_program(program, path.as_deref())?;
        let args: Vec<String> = args.iter().map(|arg| format!("\"{arg}\"")).collect();
        let advice = format!(
            "[agents.NAME.acp] command = {{ program = \"{program}\", args = [{}] }}",
            args.join(", ")
        );
        Some(Finding::note("agent", visible(&place.display().to_string()), advice))
    });
    found.collect()
}

/// The configuration file and its problems.
fn configuration(file: &ConfigFile) -> Vec<Finding> {
    let about = "config";
    let Some(path) = &file.path else { return Vec::new() };
    let mut findings = Vec::new();
    for line in &file.errors {
        findings.push(Finding::bad(about, line.as_str(), "").without_advice());
    }
    for line in &file.warnings {
        findings.push(Finding::note(about, line.as_str(), "").without_advice());
    }
    if findings.is_empty() {
        let path = path.display();
        let text = if file.exists { path.to_string() } else { format!("none yet ({path})") };
        findings.push(Finding::good(about, text));
    }
    findings
}

fn program() -> String {
    let build = if cfg!(debug_assertions) { ", a debug build" } else { "" };
    format!("roundtable {}{build}", env!("CARGO_PKG_VERSION"))
}

fn terminal(found: &TerminalFeatures, interactive: bool) -> Vec<Finding> {
    let about = "terminal";
    if !interactive {
        let text = "standard input or output is not a terminal: the dashboard cannot open";
        let advice = "run headless: roundtable run NAME --headless";
        return vec![Finding::note(about, text, advice)];
    }
    let mut findings = Vec::new();
    let (cols, rows) = MIN_SIZE;
    match found.size {
        Some(Size { width, height }) if width < cols || height < rows => {
            findings.push(Finding::bad(
                about,
                format!("{width}x{height}"),
                format!(
                    "too small for the dashboard: needs {cols}x{rows}, or 120x36 for all panes"
                ),
            ))
        }
        Some(Size { width, height }) if width < 120 || height < 36 => findings.push(Finding::good(
            about,
            format!("{width}x{height}: shows one pane at a time, all panes from 120x36"),
        )),
        Some(Size { width, height }) => {
            findings.push(Finding::good(about, format!("{width}x{height}")));
        }
        None => findings.push(Finding::note(about, "its size is unknown", "80x24 is assumed")),
    }
    let colours = match found.depth {
        ColourDepth::True => "16 million",
        ColourDepth::Indexed => "256",
        ColourDepth::Mono => "none: each state also has a glyph and a word",
    };
    findings.push(Finding::good("colours", format!("{colours} ({})", found.depth_from)));
    findings.push(match &found.narrow_locale {
        Some(locale) => Finding::note(
            "unicode",
            format!("the locale {locale} does not support it"),
            "if glyphs look wrong: use --ascii, or a UTF-8 locale",
        ),
        None => Finding::good("unicode", "supported by the locale"),
    });
    let size = format::bytes(terminal::MAX_OSC52_BYTES as u64);
    findings.push(match found.multiplexer {
        Some("tmux") => {
            Finding::good("clipboard", "through tmux, which forwards it to the terminal")
        }
        Some(other) => Finding::note(
            "clipboard",
            format!("{other} may drop what is copied (OSC 52)"),
            "press e in a run to export a file",
        ),
        None if found.remote => {
            Finding::good("clipboard", format!("OSC 52, also over SSH; often limited to {size}"))
        }
        None => Finding::good("clipboard", format!("OSC 52; often limited to {size}")),
    });
    findings
}

fn folders(dirs: Option<&Dirs>) -> Vec<Finding> {
    let Some(dirs) = dirs else {
        let advice = "set HOME: without it no log and no trust decision is kept";
        return vec![Finding::bad("folders", "no home directory", advice)];
    };
    let log = dirs.log();
    let written = match private_file::append(&log) {
        Ok(_) => Finding::good("log", log.display().to_string()),
        Err(error) => Finding::bad(
            "log",
            format!("{} cannot be written: {error}", log.display()),
            "make the folder writable, or choose a file: --log-file FILE",
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
    if let Some(why) = Trust::saved_in(Some(dirs.trusted())).file_error() {
        let advice = "until then you are asked again about each scenario that is not shipped";
        findings.push(Finding::bad("trust", why, advice));
    }
    findings
}

/// The store of kept runs: its file and every log in it.
fn store(path: &Path) -> Finding {
    use crate::host::run_store;
    use crate::store::database::{Database, StoreError};

    let about = "store";
    let shown = path.display();
    if !path.exists() {
        return Finding::good(about, format!("none yet ({shown})"));
    }
    match Database::check(path) {
        Ok(report) if report.damage.is_empty() => {
            let runs = format::count_noun(report.runs, "run");
            let size = std::fs::metadata(path).map_or(0, |file| file.len());
            Finding::good(about, format!("{shown}: {runs}, {}", format::bytes(size)))
        }
        Ok(report) => Finding::bad(
            about,
            format!("{shown} is damaged: {}", report.damage.join("; ")),
            format!(
                "export the runs that can still be read (roundtable export RUN), then move {shown}, \
                 {shown}-wal and {shown}-shm aside: the next run begins a new store"
            ),
        ),
        Err(error) => {
            let advice = run_store::open_advice(&error, path);
            let finding = Finding::bad(about, format!("{shown}: {error}"), advice);
            match error {
                crate::store::database::OpenError::Store(StoreError::Locked) => {
                    Finding { rating: Rating::Note, ..finding }
                }
                _ => finding,
            }
        }
    }
}

/// Notes a proxy variable of the environment, which is not used by default.
fn proxies() -> Vec<Finding> {
    let names =
        ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"];
    let set = names.into_iter().find(|name| std::env::var_os(name).is_some_and(|v| !v.is_empty()));
    let advice = "to use it: --proxy env";
    set.map(|name| Finding::note("proxy", format!("{name} is set but not used"), advice))
        .into_iter()
        .collect()
}

fn scenarios(entries: &[ScenarioEntry]) -> Vec<Finding> {
    let good = entries.iter().filter(|entry| entry.loaded.is_ok()).count();
    let own = Path::new(catalogue::FOLDER).is_dir();
    let place = if own { ", including ./scenarios" } else { "" };
    let count = format::count_noun(good as u64, "scenario");
    let mut findings = vec![Finding::good("scenarios", format!("{count} can be run{place}"))];
    for entry in entries {
        let text = match &entry.loaded {
            Ok(_) => continue,
            Err(EntryError::Problems(problems)) => {
                let mut errors = problems.iter().filter(|it| it.severity == Severity::Error);
                errors.next().map_or_else(String::new, |first| problems.line(first))
            }
            Err(EntryError::Unreadable(why)) => why.clone(),
        };
        let advice = format!("roundtable validate {} lists every problem", entry.path);
        findings.push(Finding::bad("scenarios", text, advice));
    }
    findings
}

/// Largest width of the first column; a longer subject breaks the alignment.
const MAX_ABOUT: usize = 28;

/// Width of a line in columns.
const WIDTH: usize = 80;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rating {
    /// Nothing to do.
    Good,
    /// Worth knowing; the exit code stays 0.
    Note,
    /// Must be fixed; the exit code is 1.
    Bad,
}

/// One result of a check.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its severity.
    pub rating: Rating,
    /// The subject, such as `key` or `terminal`.
    pub about: Cow<'static, str>,
    pub text: String,
    /// What to do about it, printed on a separate line.
    pub advice: Option<String>,
}

impl Finding {
    /// A finding without a problem.
    pub fn good(about: impl Into<Cow<'static, str>>, text: impl Into<String>) -> Self {
        Self { rating: Rating::Good, about: about.into(), text: text.into(), advice: None }
    }

    /// A finding worth knowing.
    pub fn note(
        about: impl Into<Cow<'static, str>>,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { rating: Rating::Note, advice: Some(advice.into()), ..Self::good(about, text) }
    }

    /// A finding that must be fixed.
    pub fn bad(
        about: impl Into<Cow<'static, str>>,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { rating: Rating::Bad, ..Self::note(about, text, advice) }
    }

    /// A finding that must be fixed: what is wrong and its causes, with what to do.
    pub fn refused(about: impl Into<Cow<'static, str>>, why: &Refused) -> Self {
        Self { advice: why.help.clone(), ..Self::bad(about, why.without_help(), "") }
    }

    /// Removes the advice, for a text that already contains it.
    pub fn without_advice(self) -> Self {
        Self { advice: None, ..self }
    }
}

/// The findings as lines: glyph, subject and result, with the advice below. The same advice several
/// times in a row is printed once, below the last of them.
pub fn finding_lines(findings: &[Finding], paint: &StreamStyle) -> String {
    let widest = findings.iter().map(|finding| columns(&visible(&finding.about))).max();
    let width = widest.unwrap_or(0).clamp(10, MAX_ABOUT);
    let advice_of = |nth: usize| findings.get(nth).and_then(|finding| finding.advice.as_ref());
    let lines = findings.iter().enumerate().map(|(nth, finding)| {
        let advice = finding.advice.as_ref().filter(|own| advice_of(nth + 1) != Some(own));
        finding_line(finding, advice, width, paint)
    });
    lines.collect()
}

fn finding_line(
    finding: &Finding,
    advice: Option<&String>,
    width: usize,
    paint: &StreamStyle,
) -> String {
    let (glyph, role) = match finding.rating {
        Rating::Good => (Glyph::Done, StyleRole::Done),
        Rating::Note => (Glyph::Alert, StyleRole::Retry),
        Rating::Bad => (Glyph::Failed, StyleRole::Failed),
    };
    let sign = paint.role(role, paint.glyph(glyph));
    let about = visible(&finding.about);
    let gap = width.checked_sub(columns(&about));
    // 3: the glyph and two blanks.
    let rows = wrap_whole_words(&visible(&finding.text), WIDTH - width - 3);
    let mut text = format!("{sign} {about}");
    for (nth, row) in rows.iter().enumerate() {
        text += &match gap.filter(|_| nth == 0) {
            Some(gap) => format!("{} {row}", " ".repeat(gap)),
            None => format!("\n  {} {row}", " ".repeat(width)),
        };
    }
    text.push('\n');
    if let Some(advice) = advice {
        let arrow = paint.glyph(Glyph::Arrow);
        let room = WIDTH - width - 4 - columns(arrow);
        for (nth, row) in wrap_whole_words(&visible(advice), room).iter().enumerate() {
            let lead = if nth == 0 { arrow.to_owned() } else { " ".repeat(columns(arrow)) };
            let row = paint.role(StyleRole::Dim, row);
            text += &format!("  {} {lead} {row}\n", " ".repeat(width));
        }
    }
    text
}

/// Wraps a text to `width` columns. A longer word, such as a path or an address, gets a row of its
/// own and is not broken, so that it can be copied.
fn wrap_whole_words(text: &str, width: usize) -> Vec<String> {
    let mut rows: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        match rows.last_mut() {
            Some(row) if row.is_empty() => row.push_str(word),
            Some(row) if columns(row) + 1 + columns(word) <= width => {
                row.push(' ');
                row.push_str(word);
            }
            _ => rows.push(word.to_owned()),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::theme::Theme;

    #[test]
    fn rows_are_of_whole_words() {
        let long = "/home/somebody/a-path-that-is-longer-than-a-row";
        for (text, rows) in [
            ("", &[""][..]),
            ("one two three", &["one two", "three"]),
            ("exactly ten", &["exactly", "ten"]),
            ("five five x", &["five five", "x"]),
            (&format!("at {long} there"), &["at", long, "there"]),
            ("größe 日本 語", &["größe 日本", "語"]),
        ] {
            assert_eq!(wrap_whole_words(text, 10), rows, "{text}");
        }
    }

    #[test]
    fn lines_have_eighty_columns() {
        let words = "a few words and ".repeat(12);
        let paint = StreamStyle::new(false, Theme::default(), false);
        for about in
            ["key", "role market_research_analyst", "role somebody_with_a_name_of_forty_columns"]
        {
            let findings =
                [Finding::bad(about.to_owned(), &words, &words), Finding::good("x", "y")];
            let text = finding_lines(&findings, &paint);
            let rows: Vec<&str> = text.lines().collect();
            assert!(rows.len() > 6, "{text}");
            assert!(rows.iter().all(|row| columns(row) <= 80), "{text}");
            assert!(rows[1].starts_with("    "), "continuation rows are indented: {text}");
        }
    }
}
