//! The permissions that a run needs from the operator. A permission covers one version of the
//! scenario's file and of the local programs that it runs. What an override or an input adds to that (another
//! folder, program or address) needs one of its own, for that value, also where the file was shipped.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use super::models;
use super::models::LiveCalls;
use crate::base;
use crate::base::name::InputName;
use crate::base::read_file;
use crate::base::read_file::Links;
use crate::net::redact::Redactor;
use crate::scenario::spec::InputKind;
use crate::scenario::spec::tool::Setting;
use crate::scenario::tools::ToolAction;
use crate::scenario::tools::agent::{ActionKind, AgentLink, FileAccess, OutsideAgent};
use crate::scenario::tools::command::CommandSpec;
use crate::scenario::tools::documents::{FolderSpec, PrivateHosts, WebSpec};
use crate::scenario::tools::http::HttpSpec;
use crate::scenario::tools::mcp::{McpServerSpec, McpTransport};
use crate::scenario::{Override, Scenario, check_again};
use crate::tool::command::has_folder;
use crate::tool::http as http_tool;
use crate::words::measure::single_line;

/// A limit on page size above this many bytes needs permission.
const LARGE_PAGE: u64 = 50_000_000;

/// Bytes of a program that its digest covers: 256 MiB.
const MAX_DIGEST_BYTES: u64 = 256 << 20;

/// Hex digits of a digest that are shown.
const DIGEST_DIGITS: usize = 16;

/// Something that a run would do outside of this program, and that the operator has to allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeededPermission {
    /// What it would do, never cut, with white space squeezed; an indented line belongs to the line above.
    pub lines: Vec<String>,
    /// The digest that the operator's answer is saved under.
    pub digest: String,
    /// Whether the file alone would do it. Else a value does that was given from outside of the file.
    pub is_of_file: bool,
}

/// The lines of actions as they are shown: equal ones once.
pub fn shown_lines(needed: &[NeededPermission]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let new = needed.iter().filter(|one| seen.insert(&one.lines));
    new.flat_map(|one| one.lines.clone()).collect()
}

/// An action with everything that makes it another one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Action {
    lines: Vec<String>,
    /// What the lines leave out, because it may have keys: the rest of an address, texts of headers.
    rest: String,
}

impl From<Vec<String>> for Action {
    fn from(lines: Vec<String>) -> Self {
        Self { lines, rest: String::new() }
    }
}

/// The actions of this scenario's run that need permission, without duplicates. `calls` are the models of a
/// live run.
pub fn needed_permissions(
    scenario: &Scenario,
    calls: Option<LiveCalls<'_>>,
) -> Vec<NeededPermission> {
    let own = LocalFiles::of_scenario(scenario);
    let needed = actions(scenario, calls, &own);
    let (of_file, digest_of_file) = match &scenario.source.set[..] {
        [] => (None, own.digest(&scenario.hash)),
        _ => match scenario.without_overrides() {
            Some(file) => {
                let own = LocalFiles::of_scenario(&file);
                // A model at another address is another action.
                let calls = calls.filter(|_| file.model.base_url == scenario.model.base_url);
                (Some(actions(&file, calls, &own)), own.digest(&scenario.hash))
            }
            // Nothing is known of the file alone.
            None => (Some(Vec::new()), String::new()),
        },
    };
    let permission = |action: Action| {
        let is_of_file = of_file.as_ref().is_none_or(|of_file| of_file.contains(&action));
        let digest = match is_of_file {
            true => digest_of_file.clone(),
            false => {
                let Action { lines, rest } = &action;
                let text = format!("{}\n{}\n{rest}", scenario.hash, lines.join("\n"));
                own.digest(&base::sha256_of_text(&text))
            }
        };
        NeededPermission { lines: action.lines, digest, is_of_file }
    };
    needed.into_iter().map(permission).collect()
}

/// The inputs whose values choose what a run reaches: a folder, a program or an address.
pub fn inputs_that_reach(scenario: &Scenario) -> BTreeSet<InputName> {
    /// A value that no file has.
    const PROBE: &str = "/roundtable/probe";
    let own = LocalFiles::default();
    let now = actions(scenario, None, &own);
    let text = scenario.inputs.iter().filter(|input| input.kind == InputKind::Text);
    let reaching = text.filter(|input| {
        let set = scenario.source.set.iter().filter_map(|set| set.parse().ok());
        let probe = Override::literal(&format!("inputs.{}", input.name), PROBE).ok();
        let set: Vec<Override> = set.chain(probe).collect();
        let probed = check_again(&scenario.source, scenario.origin.clone(), &set).scenario;
        probed.is_some_and(|probed| actions(&probed, None, &own) != now)
    });
    reaching.map(|input| input.name.clone()).collect()
}

/// What a run would do outside of this program, without duplicates: searching a folder and reading from it
/// need only one permission.
fn actions(scenario: &Scenario, calls: Option<LiveCalls<'_>>, own: &LocalFiles) -> Vec<Action> {
    let live = calls.map(|calls| {
        let lines = models::live_permissions(scenario, calls);
        let rest = scenario.model.base_url.clone().unwrap_or_default();
        Action { lines: lines.iter().map(|line| single_line(line)).collect(), rest }
    });
    let of_tools = scenario.tools.values().filter_map(|spec| match spec.action()? {
        ToolAction::Start(command) => Some(command_permission("run", command, own).into()),
        ToolAction::Request(http) => {
            let what = format!("send {} requests to {}", http.method.word(), host_of(http));
            Some(request_permission(what, http))
        }
        ToolAction::Query(http) => {
            let what = format!("send search queries to {}", host_of(http));
            Some(request_permission(what, http))
        }
        ToolAction::ReadFolder(folder) => folder_permission(folder),
        ToolAction::ReadWeb(web) => Some(page_permission(web, scenario.pattern.get().page_hosts())),
        ToolAction::Serve(server) => Some(server_permission(server, own)),
        ToolAction::Employ(agent) => calls.is_some().then(|| agent_permission(agent, own)),
    });
    let mut found: Vec<Action> = Vec::new();
    for action in live.into_iter().chain(of_tools) {
        if !found.contains(&action) {
            found.push(action);
        }
    }
    found
}

fn commands(scenario: &Scenario) -> Vec<&CommandSpec> {
    let of_server = |server| match server {
        &McpServerSpec { transport: McpTransport::Command(ref command), .. } => Some(command),
        _ => None,
    };
    let commands = scenario.tools.values().map(|spec| match spec.action() {
        Some(ToolAction::Start(command)) => vec![command],
        Some(ToolAction::Serve(server)) => of_server(server).into_iter().collect(),
        Some(ToolAction::Employ(OutsideAgent { link: AgentLink::Acp(acp), .. })) => {
            let servers = acp.servers.iter().filter_map(of_server);
            std::iter::once(&acp.command).chain(servers).collect()
        }
        _ => Vec::new(),
    });
    commands.flatten().collect()
}

/// File extensions of programs and scripts.
const PROGRAM_EXTENSIONS: [&str; 32] = [
    "awk", "bash", "bat", "cjs", "cmd", "cts", "dll", "dylib", "exe", "fish", "jar", "jq", "js",
    "jsx", "ksh", "lua", "mjs", "mts", "php", "pl", "ps1", "py", "pyz", "rb", "sed", "sh", "so",
    "ts", "tsx", "wasm", "zsh", "r",
];

/// Programs that execute the file which their first argument names. A version at the end of the name
/// (`python3.12`) makes no difference.
const INTERPRETERS: [&str; 32] = [
    "ash", "awk", "bash", "bun", "csh", "dash", "deno", "fish", "gawk", "java", "jq", "ksh", "lua",
    "make", "mawk", "node", "nodejs", "perl", "php", "pwsh", "pypy", "python", "r", "rscript",
    "ruby", "sed", "sh", "tclsh", "ts-node", "tsx", "uv", "zsh",
];

/// Those whose first argument is code.
const CODE_FIRST: [&str; 5] = ["awk", "gawk", "jq", "mawk", "sed"];

/// Their options whose value they execute too.
const SCRIPT_OPTIONS: [&str; 14] = [
    "--experimental-loader",
    "--file",
    "--from-file",
    "--import",
    "--init-file",
    "--loader",
    "--preload",
    "--rcfile",
    "--require",
    "-cp",
    "-f",
    "-jar",
    "-r",
    "-l",
];

/// Variables whose value names what a program executes when it starts.
const LOADING_VARIABLES: [&str; 14] = [
    "BASH_ENV",
    "DYLD_INSERT_LIBRARIES",
    "ENV",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LD_AUDIT",
    "LD_PRELOAD",
    "NODE_OPTIONS",
    "PERL5OPT",
    "PYTHONSTARTUP",
    "RUBYOPT",
    "SHELL",
];

/// The programs and scripts that the commands of a scenario name, by that name (docs/rules/decisions.md,
/// *What is trusted*): a program with a path, and what is executed of the files in arguments and variables. A
/// file is executed by its extension, by what it is (a permission to execute, `#!`, the form of a program), or
/// by its place: after an interpreter, after `source`, in a variable that loads code. Data files are not
/// included, since servers write them; nor are files of the system (programs in `PATH`, its folders), which each
/// update changes, nor what a script reads itself.
#[derive(Default)]
struct LocalFiles(BTreeMap<String, LocalFile>);

struct LocalFile {
    path: PathBuf,
    /// SHA-256 of its bytes, or why it cannot be read.
    digest: Result<String, String>,
}

impl LocalFiles {
    fn of_scenario(scenario: &Scenario) -> Self {
        let own = commands(scenario).into_iter().flat_map(local_names);
        Self(own.map(|name| (name.clone(), LocalFile::read(Path::new(&name)))).collect())
    }

    fn digest(&self, scenario: &str) -> String {
        if self.0.is_empty() {
            return scenario.to_owned();
        }
        let mut text = format!("{scenario}\n");
        for (name, file) in &self.0 {
            let found = file.digest.as_deref().unwrap_or("none");
            // Quoted, so that one name cannot look like two.
            text.push_str(&format!("{found} {name:?}\n"));
        }
        base::sha256_of_text(&text)
    }
}

/// Folders of the system: an update changes what is in them, and only the administrator can. What is in
/// `/proc` is made as it is read.
const SYSTEM_FOLDERS: [&str; 12] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/opt",
    "/nix/store",
    "/System",
    "/Library",
    "/etc",
    "/proc",
    "/sys",
];

/// The programs and scripts that a command names.
fn local_names(command: &CommandSpec) -> BTreeSet<String> {
    let program = Some(command.program.clone()).filter(|program| has_folder(program));
    let words: Vec<&str> =
        std::iter::once(&command.program).chain(&command.args).map(String::as_str).collect();
    let mut names: BTreeSet<String> = program.into_iter().chain(executed_files(&words)).collect();
    // An argument that is no file may be a text that a shell executes.
    for text in command.args.iter().filter(|argument| !Path::new(argument).is_file()) {
        let words = shell_words(text);
        names.extend(executed_files(&words.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    for (name, setting) in &command.env {
        let Setting::Text(value) = setting else { continue };
        let is_loading = LOADING_VARIABLES.contains(&name.as_str());
        names.extend(files_in(value).into_iter().filter(|file| is_loading || is_program(file)));
    }
    names.retain(|name| !is_of_system(Path::new(name)));
    names
}

/// Whether a path leads to a file of the system, and only the administrator can change that.
fn is_of_system(path: &Path) -> bool {
    let is_below = |path: &Path| SYSTEM_FOLDERS.iter().any(|folder| path.starts_with(folder));
    let has_parent = path.components().any(|part| part == Component::ParentDir);
    // A link in another folder can be replaced.
    is_below(path) && path.canonicalize().map_or(!has_parent, |found| is_below(&found))
}

/// Whether a word of a shell ends at this character.
fn ends_word(c: char) -> bool {
    c.is_whitespace() || ";&|()<>{}`".contains(c)
}

/// The existing files that the value of a variable names: as a whole, in a list with colons, as a word, or
/// after an equals sign.
fn files_in(value: &str) -> BTreeSet<String> {
    let words = value.split(|c| c == ':' || c == '=' || ends_word(c));
    let parts = std::iter::once(value).chain(words);
    parts.filter(|part| Path::new(part).is_file()).map(str::to_owned).collect()
}

/// The words of a text for a shell, without their quotes.
fn shell_words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if ends_word(c) => words.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// The files among the words of a command that are executed, also scripts that do not exist.
fn executed_files(words: &[&str]) -> Vec<String> {
    /// What the words before say of the next one.
    #[derive(Clone, Copy, PartialEq)]
    enum Place {
        /// Nothing.
        Any,
        /// It is an option of an interpreter, or its script.
        Options,
        /// It is the value of such an option, which is executed.
        Value,
        /// A shell reads it into itself.
        Sourced,
    }
    let (mut found, mut place, mut has_script) = (Vec::new(), Place::Any, true);
    for word in words {
        let is_file = |path: &str| Path::new(path).is_file();
        let value = match word.split_once('=') {
            Some((_, value)) if !is_file(word) => value,
            _ => word,
        };
        let by_place = match place {
            Place::Any => false,
            Place::Options => has_script && is_file(value),
            Place::Value => is_file(value),
            Place::Sourced => is_file(value) || value.contains('/'),
        };
        // A text for a shell is no name.
        let by_name = has_program_extension(value) && !value.contains(ends_word);
        if !value.is_empty() && (by_place || by_name || is_program(value)) {
            found.push(value.to_owned());
        }
        place = match place {
            Place::Value => Place::Options,
            Place::Options if SCRIPT_OPTIONS.contains(word) => Place::Value,
            Place::Options if word.starts_with(['-', '+']) || *word == "run" => Place::Options,
            Place::Any | Place::Sourced if matches!(*word, "." | "source") => Place::Sourced,
            _ if is_interpreter(word, &INTERPRETERS) => {
                has_script = !is_interpreter(word, &CODE_FIRST);
                Place::Options
            }
            _ => Place::Any,
        };
    }
    found
}

fn is_interpreter(word: &str, of: &[&str]) -> bool {
    let name = Path::new(word).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    of.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
}

fn has_program_extension(path: &str) -> bool {
    let end = Path::new(path).extension().and_then(|end| end.to_str()).unwrap_or_default();
    PROGRAM_EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(end))
}

/// Whether an existing file is a program or a script, by its name or by what it is.
fn is_program(path: &str) -> bool {
    let file = Path::new(path);
    let Ok(about) = file.metadata() else { return false };
    if !about.is_file() {
        return false;
    }
    #[cfg(unix)]
    let may_execute = std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may_execute = false;
    may_execute || has_program_extension(path) || begins_as_program(file)
}

/// Whether a file begins with `#!`, or as a program of Linux, macOS or Windows does.
fn begins_as_program(file: &Path) -> bool {
    const BEGINNINGS: [&[u8]; 6] =
        [b"#!", b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\0asm"];
    let mut begin = Vec::new();
    let opened = read_file::open_file(file, OpenOptions::new().read(true), Links::Followed);
    let read = opened.and_then(|file| file.take(4).read_to_end(&mut begin));
    read.is_ok() && BEGINNINGS.iter().any(|program| begin.starts_with(program))
}

impl LocalFile {
    /// Reads the file at this path, relative to the working directory, in which commands run too.
    fn read(path: &Path) -> Self {
        let opened = read_file::open_file(path, OpenOptions::new().read(true), Links::Followed);
        let digest = opened.and_then(|file| {
            // For a larger file the number of bytes beyond the limit is added.
            let rest = file.metadata()?.len().saturating_sub(MAX_DIGEST_BYTES);
            let digest = base::sha256_of_reader(file.take(MAX_DIGEST_BYTES))?;
            Ok(if rest == 0 { digest } else { format!("{digest}+{rest}") })
        });
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Self { path, digest: digest.map_err(|error| error.to_string()) }
    }
}

/// The lines of a command: its arguments, its local files, its environment.
fn command_permission(what: &str, command: &CommandSpec, own: &LocalFiles) -> Vec<String> {
    let words = std::iter::once(&command.program).chain(&command.args);
    let line: Vec<&str> = words.map(String::as_str).collect();
    let mut lines = vec![format!("{what} {}", single_line(&line.join(" ")))];
    for name in local_names(command) {
        let Some(file) = own.0.get(&name) else { continue };
        let (name, path) = (single_line(&name), single_line(&file.path.display().to_string()));
        lines.push(match &file.digest {
            Ok(digest) => {
                let digest = digest.get(..DIGEST_DIGITS).unwrap_or(digest);
                format!("  {name} is {path} (SHA-256 {digest}…)")
            }
            Err(why) => format!("  {name} is {path} ({})", single_line(why)),
        });
    }
    for (name, setting) in &command.env {
        let name = single_line(name);
        lines.push(match setting {
            Setting::Text(value) => format!("  with {name}={}", single_line(value)),
            Setting::Env(variable) if *variable == name => format!("  pass ${name} to it"),
            Setting::Env(variable) => format!("  pass ${} to it as {name}", single_line(variable)),
        });
    }
    lines
}

/// The pages of the web that a tool reads, and its settings that need permission.
fn page_permission(web: &WebSpec, hosts: &[String]) -> Action {
    let mut lines = vec![match hosts {
        [] => "read pages of the web".to_owned(),
        hosts => format!("read pages of {}", single_line(&hosts.join(", "))),
    }];
    match &web.allow_private {
        PrivateHosts::None => {}
        PrivateHosts::Any => lines.push("  also on local networks".to_owned()),
        PrivateHosts::These(hosts) if hosts.is_empty() => {}
        PrivateHosts::These(hosts) => {
            let hosts = single_line(&hosts.join(", "));
            lines.push(format!("  of {hosts} also on local networks"));
        }
    }
    if !web.robots {
        lines.push("  and ignore robots.txt".to_owned());
    }
    if web.max_bytes > LARGE_PAGE {
        lines.push(format!("  of up to {} MB", web.max_bytes.div_ceil(1_000_000)));
    }
    lines.into()
}

fn host_of(http: &HttpSpec) -> String {
    host_in(&http.url)
}

fn host_in(url: &str) -> String {
    single_line(&http_tool::host(url).unwrap_or_else(|| url.to_owned()))
}

/// An address as it is shown. A login in it and its query may be keys.
fn shown_address(url: &str) -> String {
    single_line(&Redactor::default().redact(url))
}

/// The request that a tool sends.
fn request_permission(what: String, http: &HttpSpec) -> Action {
    let HttpSpec { method, url, headers, send_args, allow_private, .. } = http;
    let mut lines = vec![what];
    lines.extend(address_lines(&host_of(http), headers, *allow_private));
    let rest = format!("{} {url} {headers:?} {send_args}", method.word());
    Action { lines, rest }
}

/// The program or the address of an agent, what it may do, and the MCP servers that it gets.
fn agent_permission(agent: &OutsideAgent, own: &LocalFiles) -> Action {
    let name = single_line(agent.name.as_str());
    let acp = match &agent.link {
        AgentLink::Acp(acp) => acp,
        AgentLink::AgUi(ag_ui) => {
            let mut lines = vec![format!("use the agent {name} at {}", shown_address(&ag_ui.url))];
            let host = single_line(&agent.place());
            lines.extend(address_lines(&host, &ag_ui.headers, ag_ui.allow_private));
            let rest = format!("{} {:?}", ag_ui.url, ag_ui.headers);
            return Action { lines, rest };
        }
    };
    let what = format!("start the agent {name}, with your home folder and its login:");
    let mut lines = command_permission(&what, &acp.command, own);
    let folder = acp.cwd.as_deref().unwrap_or(Path::new("."));
    lines.push(format!("  in the folder {}", shown_folder(folder)));
    if !acp.allow.is_empty() {
        let kinds = acp.allow.iter().map(|kind| kind.word()).collect::<Vec<_>>().join(", ");
        lines.push(format!("  let it do this without asking: {kinds}"));
    }
    let offered = match acp.files {
        FileAccess::None => None,
        FileAccess::Read => Some("  let it read files of its folder"),
        FileAccess::Write => Some("  let it read and write files of its folder"),
    };
    lines.extend(offered.map(str::to_owned));
    if acp.terminal {
        lines.push("  let it run commands in its folder".to_owned());
    }
    let asks_before = [
        (acp.files.may_write(), ActionKind::Edit, "  ask before it writes a file"),
        (acp.terminal, ActionKind::Execute, "  ask before it runs a command"),
    ];
    let asks =
        asks_before.into_iter().filter(|(offers, kind, _)| *offers && !acp.allow.contains(kind));
    lines.extend(asks.map(|(.., line)| line.to_owned()));
    // It calls their tools itself, as it sees fit.
    let mut rest = String::new();
    for server in &acp.servers {
        let of_server = server_permission(server, own);
        let lines_of_server = of_server.lines.iter();
        lines.extend(lines_of_server.map(|line| format!("  for it: {}", line.trim_start())));
        rest.push_str(&of_server.rest);
    }
    Action { lines, rest }
}

/// The program or the address of an MCP server, and its tools that are called without asking.
fn server_permission(server: &McpServerSpec, own: &LocalFiles) -> Action {
    let name = single_line(&server.name);
    let mut rest = String::new();
    let mut lines = match &server.transport {
        McpTransport::Command(command) => {
            command_permission(&format!("start the MCP server {name}:"), command, own)
        }
        McpTransport::Url(url) => {
            rest = format!("{} {:?}", url.url, url.headers);
            let mut lines =
                vec![format!("use the MCP server {name} at {}", shown_address(&url.url))];
            lines.extend(address_lines(&host_in(&url.url), &url.headers, url.allow_private));
            lines
        }
        McpTransport::Configured => {
            vec![format!("use the MCP server {name} of your configuration")]
        }
    };
    if !server.allow.is_empty() {
        let tools = single_line(&server.allow.join(", "));
        lines.push(format!("  call these tools of it without asking: {tools}"));
    }
    Action { lines, rest }
}

/// The variables that requests send, and whether they may reach local networks.
fn address_lines(
    host: &str,
    headers: &BTreeMap<String, Setting>,
    allow_private: bool,
) -> Vec<String> {
    let sent = headers.values().filter_map(|setting| match setting {
        Setting::Env(name) => Some(format!("  send ${} to {host}", single_line(name))),
        Setting::Text(_) => None,
    });
    sent.chain(allow_private.then(|| format!("  call {host}, also on local networks"))).collect()
}

/// The folder whose documents a tool reads.
fn folder_permission(folder: &FolderSpec) -> Option<Action> {
    let folder = folder.folder.as_deref()?;
    Some(vec![format!("read the documents in {}", shown_folder(folder))].into())
}

/// A folder by its whole path: where a relative one or a link leads is another folder elsewhere.
fn shown_folder(folder: &Path) -> String {
    let whole = folder.canonicalize().or_else(|_| std::path::absolute(folder));
    single_line(&whole.unwrap_or_else(|_| folder.to_owned()).display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{ScenarioOrigin, load, shipped};

    fn digest(scenario: &Scenario) -> String {
        LocalFiles::of_scenario(scenario).digest(&scenario.hash)
    }

    /// What a scripted run would do.
    fn would(scenario: &Scenario) -> Vec<String> {
        shown_lines(&needed_permissions(scenario, None))
    }

    /// The shipped scenario whose tool runs a program, with another program.
    fn running(command: &str) -> Scenario {
        let one = shipped().iter().find(|one| one.name == "real-services").expect("shipped");
        let start = one.text.find("program = \"sh\"").expect("a command");
        let args = start + one.text[start..].find("[\"-c\"").expect("its arguments");
        let end = args + one.text[args..].find(']').expect("their end") + 1;
        let text = format!("{}{command}{}", &one.text[..start], &one.text[end..]);
        load(&text, ScenarioOrigin::File("x.toml".into()), &[])
            .unwrap_or_else(|why| panic!("{why:?}"))
    }

    #[test]
    fn shows_whole_command_despite_padding() {
        let far = " ".repeat(400);
        let command = format!(
            "program = \"sh\"\nargs = [\"-c\", \"echo harmless{far};\\n\\t rm -rf ~/everything\"]"
        );
        let would = would(&running(&command));
        let line = "run sh -c echo harmless ␣ ; ␊ rm -rf ~/everything";
        assert!(would.iter().any(|said| said == line), "{would:?}");
    }

    #[test]
    fn shows_environment_below_command() {
        let command = "program = \"sh\"\nargs = [\"-c\", \"true\"]\n\
            env = { BASH_ENV = \"/tmp/x.sh\", LD_PRELOAD = { env = \"LIB\" }, HOME = { env = \"HOME\" } }";
        let would = would(&running(command));
        let at = would.iter().position(|line| line == "run sh -c true").expect("the command");
        let below =
            ["  with BASH_ENV=/tmp/x.sh", "  pass $HOME to it", "  pass $LIB to it as LD_PRELOAD"];
        assert_eq!(would[at + 1..at + 4], below, "{would:?}");
    }

    #[test]
    fn includes_script_of_program() {
        let own = |command: &str| {
            let scenario = running(command);
            let names: Vec<String> = LocalFiles::of_scenario(&scenario).0.into_keys().collect();
            assert_eq!(names.is_empty(), digest(&scenario) == scenario.hash);
            names
        };
        assert_eq!(
            own("program = \"python3\"\nargs = [\"-u\", \"tool.py\", \"notes.db\"]"),
            ["tool.py"]
        );
        assert_eq!(own("program = \"./a\"\nargs = [\"./b.sh\"]"), ["./a", "./b.sh"]);
        assert_eq!(
            own("program = \"/usr/bin/jq\"\nargs = [\"-f\", \"/usr/x.jq\", \".\"]"),
            [""; 0]
        );
        assert_eq!(
            own("program = \"/home/me/a\"\nargs = [\"/tmp/b.py\"]"),
            ["/home/me/a", "/tmp/b.py"]
        );
        for text in [
            ". ./x.sh",
            "set -e; source ./x.sh && echo ok",
            "if true; then ./x.sh; fi",
            "cat<./x.sh",
        ] {
            assert_eq!(
                own(&format!("program = \"sh\"\nargs = [\"-c\", {text:?}]")),
                ["./x.sh"],
                "{text}"
            );
        }
        assert_eq!(own("program = \"sh\"\nargs = [\"-c\", \". ./settings\"]"), ["./settings"]);
        // A file is executed by its place; elsewhere it is data, which a server may write.
        for (args, executed) in [
            ("bash ./Cargo.toml", true),
            ("cd src; bash -x './Cargo.toml'", true),
            ("node -r ./Cargo.toml index", true),
            ("python3.12 ./Cargo.toml x", true),
            ("jq . notes.json ./Cargo.toml", false),
            ("jq './Cargo.toml'", false),
            ("awk -f ./Cargo.toml x", true),
            ("sed -n p ./Cargo.toml", false),
            ("python3 tool.txt --db ./Cargo.toml", false),
            ("python3 -u x.py --db=./Cargo.toml ./Cargo.toml", false),
        ] {
            let names = own(&format!("program = \"sh\"\nargs = [\"-c\", {args:?}]"));
            assert_eq!(names.contains(&"./Cargo.toml".to_owned()), executed, "{args}: {names:?}");
        }
        assert_eq!(own("program = \"bash\"\nargs = [\"Cargo.toml\"]"), ["Cargo.toml"]);
        assert_eq!(own("program = \"bash\"\nargs = [\"--rcfile=Cargo.toml\"]"), ["Cargo.toml"]);
        assert_eq!(own("program = \"python3\"\nargs = [\"a.py\", \"Cargo.toml\"]"), ["a.py"]);
        let of_variable = |name: &str, value: &str| {
            own(&format!("program = \"sh\"\nargs = []\nenv = {{ {name} = {value:?} }}"))
        };
        for value in ["Cargo.toml", "b/c:Cargo.toml", "b/c Cargo.toml", "--require=Cargo.toml"] {
            assert_eq!(of_variable("NODE_OPTIONS", value), ["Cargo.toml"], "{value}");
            assert_eq!(of_variable("DATABASE", value), [""; 0], "{value}");
        }
        let two = of_variable("LD_PRELOAD", "./Cargo.toml ./Cargo.lock");
        assert_eq!(two, ["./Cargo.lock", "./Cargo.toml"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_changed_script_asks_again() {
        // Paths are relative to the working directory, in tests that of the crate.
        let folder = tempfile::tempdir_in(".").expect("a folder");
        let whole = folder.path().canonicalize().expect("a path");
        let name = Path::new(whole.file_name().expect("a name"));
        let linked = whole.join("link");
        std::os::unix::fs::symlink("/usr/bin/env", &linked).expect("a link");
        for (file, program, args, env) in [
            ("My Script.sh", "bash", vec!["NAME/My Script.sh"], ""),
            ("My Script.sh", "bash", vec!["--init-file=NAME/My Script.sh"], ""),
            ("My Script.sh", "sh", vec!["-c", "cd x; bash 'NAME/My Script.sh'"], ""),
            ("My Script.sh", "sh", vec![], "NAME/My Script.sh"),
            ("a(1).py", "python3", vec!["NAME/a(1).py"], ""),
            ("x.sh", "/usr/..WHOLE/x.sh", vec![], ""),
            ("x.sh", "bash", vec!["/usr/..WHOLE/x.sh"], ""),
            ("tool", "bash", vec!["NAME/tool"], ""),
            ("tool", "bash", vec!["-c", "bash NAME/tool"], ""),
            ("lib2", "sh", vec![], "NAME/lib1 NAME/lib2"),
            ("setup", "bash", vec!["--rcfile", "NAME/setup"], ""),
            ("link", "NAME/link", vec![], ""),
        ] {
            let put = |text: &str| {
                let text = text.replace("NAME", &name.display().to_string());
                text.replace("WHOLE", &whole.display().to_string())
            };
            let args: Vec<String> = args.into_iter().map(put).collect();
            let scenario = running(&format!(
                "program = {:?}\nargs = {args:?}\nenv = {{ LD_PRELOAD = {:?} }}",
                put(program),
                put(env)
            ));
            let about = format!("{program} {args:?} {env}");
            let path = whole.join(file);
            let mut digests = vec![digest(&scenario)];
            for text in ["true", "rm -rf"] {
                let _ = std::fs::remove_file(&path);
                std::fs::write(&path, text).expect("written");
                digests.push(digest(&scenario));
            }
            let distinct: BTreeSet<&String> = digests.iter().collect();
            assert_eq!(distinct.len(), 3, "{about}");
            std::fs::remove_file(&path).expect("removed");
        }
    }

    #[test]
    fn includes_program_beside_scenario() {
        let system = running("program = \"sh\"\nargs = [\"-c\", \"true\"]");
        assert_eq!(digest(&system), system.hash, "the file alone");
        // Paths are relative to the working directory, in tests that of the crate.
        let folder = tempfile::tempdir_in(".").expect("a folder");
        let at = folder.path().join("x.sh");
        let name = at.strip_prefix(std::env::current_dir().expect("one")).unwrap_or(&at);
        let own = running(&format!("program = \"{}\"\nargs = []", name.display()));
        let line = |own: &Scenario| {
            let would = would(own);
            let at = would.iter().position(|line| line.starts_with("run ")).expect("a command");
            would[at + 1].clone()
        };
        let missing = digest(&own);
        assert!(line(&own).contains("No such file"), "{}", line(&own));
        std::fs::write(&at, "true").expect("written");
        let first = digest(&own);
        assert!(line(&own).contains("(SHA-256 b5bea41b6c623f7c…)"), "{}", line(&own));
        std::fs::write(&at, "rm -rf").expect("written");
        let second = digest(&own);
        assert_eq!(BTreeSet::from([&missing, &first, &second, &own.hash]).len(), 4);
        std::fs::write(&at, "true").expect("written");
        assert_eq!(digest(&own), first, "it depends on the content, not on the time");
    }
}
