//! The permissions that a run needs from the operator. A permission covers one version of the
//! scenario's file and of the local programs that it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use super::models;
use super::models::LiveCalls;
use crate::base;
use crate::base::read_file;
use crate::base::read_file::Links;
use crate::scenario::Scenario;
use crate::scenario::spec::tool::Setting;
use crate::scenario::tools::ToolAction;
use crate::scenario::tools::agent::{AgentLink, FileAccess, OutsideAgent};
use crate::scenario::tools::command::CommandSpec;
use crate::scenario::tools::documents::{FolderSpec, PrivateHosts, WebSpec};
use crate::scenario::tools::http::HttpSpec;
use crate::scenario::tools::mcp::{McpServerSpec, McpTransport};
use crate::tool::command::has_folder;
use crate::tool::http as http_tool;
use crate::words::measure::single_line;

/// A limit on page size above this many bytes needs permission.
const LARGE_PAGE: u64 = 50_000_000;

/// Bytes of a program that its digest covers: 256 MiB.
const MAX_DIGEST_BYTES: u64 = 256 << 20;

/// Hex digits of a digest that are shown.
const DIGEST_DIGITS: usize = 16;

/// The actions of this scenario's run that need permission, and the [`digest()`] that a permission
/// is saved under. One line per action, never cut, with white space squeezed; an indented line
/// belongs to the line above. `calls` are the models of a live run.
pub fn needed_permissions(
    scenario: &Scenario,
    calls: Option<LiveCalls<'_>>,
) -> (Vec<String>, String) {
    let own = LocalFiles::of_scenario(scenario);
    let mut parts: Vec<Vec<String>> = Vec::new();
    let of_request = |http: &HttpSpec| -> Vec<Vec<String>> {
        let lines = request_permissions(&host_of(http), &http.headers, http.allow_private);
        lines.into_iter().map(|line| vec![line]).collect()
    };
    if let Some(calls) = calls {
        parts.extend(
            models::live_permissions(scenario, calls).iter().map(|line| vec![single_line(line)]),
        );
    }
    for spec in scenario.tools.values() {
        match spec.action() {
            Some(ToolAction::Start(command)) => {
                parts.push(command_permission("run", command, &own));
            }
            Some(ToolAction::Request(http)) => parts.extend(of_request(http)),
            Some(ToolAction::Query(http)) => {
                parts.push(vec![format!("send search queries to {}", host_of(http))]);
                parts.extend(of_request(http));
            }
            Some(ToolAction::ReadFolder(folder)) => parts.extend(folder_permission(folder)),
            Some(ToolAction::ReadWeb(web)) => {
                parts.extend(page_permissions(web).into_iter().map(|line| vec![line]))
            }
            Some(ToolAction::Serve(server)) => parts.extend(server_permissions(server, &own)),
            Some(ToolAction::Employ(agent)) if calls.is_some() => {
                parts.extend(agent_permissions(agent, &own));
            }
            Some(ToolAction::Employ(_)) | None => {}
        }
    }
    // Searching a folder and reading from it need only one permission.
    let mut seen = BTreeSet::new();
    parts.retain(|part| seen.insert(part.clone()));
    (parts.concat(), own.digest(&scenario.hash))
}

/// The digest that a permission is saved under: the scenario's own, or one of the scenario and its
/// local programs, so that a replaced program needs a new permission.
pub fn digest(scenario: &Scenario) -> String {
    LocalFiles::of_scenario(scenario).digest(&scenario.hash)
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

/// File extensions of scripts: arguments that a program executes.
const SCRIPT_EXTENSIONS: [&str; 16] = [
    "awk", "bash", "cjs", "jq", "js", "lua", "mjs", "php", "pl", "ps1", "py", "rb", "sed", "sh",
    "ts", "zsh",
];

/// The local files that the commands of a scenario name, by that name: programs with a path, and each
/// existing file or script among the words of arguments and variables. So a data file that a command names
/// is one of them: `bash ./notes` executes a file that has neither an extension nor a permission to execute.
/// Files of the system (programs in `PATH`, its folders) are not included, since each update changes them;
/// nor is what a script reads itself (docs/rules/decisions.md, *What is trusted*).
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

/// The local files that a command names.
fn local_names(command: &CommandSpec) -> BTreeSet<String> {
    let program = Some(command.program.clone()).filter(|program| has_folder(program));
    let arguments = command.args.iter().flat_map(|argument| {
        let mut names = files_in(argument);
        // Where the whole argument is a file, its words are not those of a shell.
        if !names.contains(argument) {
            names.extend(scripts_in(argument));
        }
        names
    });
    let of_variables = command.env.values().flat_map(|setting| match setting {
        Setting::Text(value) => files_in(value),
        Setting::Env(_) => BTreeSet::new(),
    });
    let names = program.into_iter().chain(arguments).chain(of_variables);
    names.filter(|name| !is_of_system(Path::new(name))).collect()
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
    c.is_whitespace() || ";&|()<>{}`'\"=".contains(c)
}

/// The existing files that a text names: as a whole, in quotes, after an equals sign, in a list with
/// colons, or as a word.
fn files_in(text: &str) -> BTreeSet<String> {
    let value = text.split_once('=').map(|(_, value)| value);
    let parts = std::iter::once(text)
        .chain(value)
        .chain(text.split(['\'', '"']))
        .chain(text.split(':'))
        .chain(text.split(ends_word))
        .chain(text.split(|c| c == ':' || ends_word(c)));
    parts.filter(|part| Path::new(part).is_file()).map(str::to_owned).collect()
}

/// The scripts that an argument names, also those that do not exist: itself, or words of a text that a
/// shell executes.
fn scripts_in(argument: &str) -> Vec<String> {
    let is_script = |path: &str| {
        let end = Path::new(path).extension().and_then(|end| end.to_str());
        end.is_some_and(|end| SCRIPT_EXTENSIONS.contains(&end))
    };
    let mut found = Vec::new();
    let mut is_sourced = false;
    for word in argument.split(ends_word).filter(|word| !word.is_empty()) {
        if is_script(word) || (is_sourced && word.contains('/')) {
            found.push(word.to_owned());
        }
        is_sourced = matches!(word, "." | "source");
    }
    found
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

/// The settings for reading pages that need permission.
fn page_permissions(web: &WebSpec) -> Vec<String> {
    let mut lines = Vec::new();
    match &web.allow_private {
        PrivateHosts::None => {}
        PrivateHosts::Any => {
            lines.push("read pages, also on local networks".to_owned());
        }
        PrivateHosts::These(hosts) if hosts.is_empty() => {}
        PrivateHosts::These(hosts) => lines.push(format!(
            "read pages of {}, also on local networks",
            single_line(&hosts.join(", "))
        )),
    }
    if !web.robots {
        lines.push("ignore robots.txt".to_owned());
    }
    if web.max_bytes > LARGE_PAGE {
        lines.push(format!("read pages of up to {} MB", web.max_bytes.div_ceil(1_000_000)));
    }
    lines
}

fn host_of(http: &HttpSpec) -> String {
    single_line(&http_tool::host(&http.url).unwrap_or_else(|| http.url.clone()))
}

/// The program or the address of an agent, what it may do, and the MCP servers that it gets.
fn agent_permissions(agent: &OutsideAgent, own: &LocalFiles) -> Vec<Vec<String>> {
    let name = single_line(agent.name.as_str());
    let acp = match &agent.link {
        AgentLink::Acp(acp) => acp,
        AgentLink::AgUi(ag_ui) => {
            let host = single_line(&agent.place());
            let mut lines = vec![format!("use the agent {name} at {}", single_line(&ag_ui.url))];
            let sent = request_permissions(&host, &ag_ui.headers, ag_ui.allow_private);
            lines.extend(sent.iter().map(|line| format!("  {line}")));
            return vec![lines];
        }
    };
    let what = format!("start the agent {name}, with your home folder and its login:");
    let mut lines = command_permission(&what, &acp.command, own);
    let folder = acp.cwd.as_deref().unwrap_or(Path::new("."));
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    lines.push(format!("  in the folder {}", single_line(&folder.display().to_string())));
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
    // It calls their tools itself, as it sees fit.
    let servers = acp.servers.iter().flat_map(|server| server_permissions(server, own));
    for part in servers {
        lines.extend(part.iter().map(|line| format!("  for it: {}", line.trim_start())));
    }
    vec![lines]
}

/// The program or the address of an MCP server, and its tools that are called without asking.
fn server_permissions(server: &McpServerSpec, own: &LocalFiles) -> Vec<Vec<String>> {
    let name = single_line(&server.name);
    let mut lines = match &server.transport {
        McpTransport::Command(command) => {
            command_permission(&format!("start the MCP server {name}:"), command, own)
        }
        McpTransport::Url(url) => {
            let host = http_tool::host(&url.url).unwrap_or_else(|| url.url.clone());
            let host = single_line(&host);
            let mut lines = vec![format!("use the MCP server {name} at {}", single_line(&url.url))];
            let sent = request_permissions(&host, &url.headers, url.allow_private);
            lines.extend(sent.iter().map(|line| format!("  {line}")));
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
    vec![lines]
}

/// The variables that a tool's requests send, and whether they may reach local networks.
fn request_permissions(
    host: &str,
    headers: &BTreeMap<String, Setting>,
    allow_private: bool,
) -> Vec<String> {
    let sent = headers.values().filter_map(|setting| match setting {
        Setting::Env(name) => Some(format!("send ${} to {host}", single_line(name))),
        Setting::Text(_) => None,
    });
    sent.chain(allow_private.then(|| format!("call {host}, also on local networks"))).collect()
}

/// The folder whose documents a tool reads.
fn folder_permission(folder: &FolderSpec) -> Option<Vec<String>> {
    let path = folder.folder.as_ref()?.display().to_string();
    Some(vec![format!("read the documents in {}", single_line(&path))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{ScenarioOrigin, load, shipped};

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
        let would = needed_permissions(&running(&command), None).0;
        let line = "run sh -c echo harmless ␣ ; ␊ rm -rf ~/everything";
        assert!(would.iter().any(|said| said == line), "{would:?}");
    }

    #[test]
    fn shows_environment_below_command() {
        let command = "program = \"sh\"\nargs = [\"-c\", \"true\"]\n\
            env = { BASH_ENV = \"/tmp/x.sh\", LD_PRELOAD = { env = \"LIB\" }, HOME = { env = \"HOME\" } }";
        let would = needed_permissions(&running(command), None).0;
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
        // The name must exist: a text may hold any words.
        for text in ["jq . notes.json ./Cargo.toml", "bash ./Cargo.toml", "jq './Cargo.toml'"] {
            assert_eq!(
                own(&format!("program = \"sh\"\nargs = [\"-c\", {text:?}]")),
                ["./Cargo.toml"],
                "{text}"
            );
        }
        assert_eq!(own("program = \"bash\"\nargs = [\"Cargo.toml\"]"), ["Cargo.toml"]);
        assert_eq!(own("program = \"bash\"\nargs = [\"--rcfile=Cargo.toml\"]"), ["Cargo.toml"]);
        for value in ["Cargo.toml", "b/c:Cargo.toml", "b/c Cargo.toml", "--require=Cargo.toml"] {
            let variable = format!("program = \"sh\"\nargs = []\nenv = {{ A = {value:?} }}");
            assert_eq!(own(&variable), ["Cargo.toml"], "{value}");
        }
        let two = "program = \"sh\"\nargs = []\nenv = { A = \"./Cargo.toml ./Cargo.lock\" }";
        assert_eq!(own(two), ["./Cargo.lock", "./Cargo.toml"]);
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
            ("link", "NAME/link", vec![], ""),
        ] {
            let put = |text: &str| {
                let text = text.replace("NAME", &name.display().to_string());
                text.replace("WHOLE", &whole.display().to_string())
            };
            let args: Vec<String> = args.into_iter().map(put).collect();
            let scenario = running(&format!(
                "program = {:?}\nargs = {args:?}\nenv = {{ A = {:?} }}",
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
            let would = needed_permissions(own, None).0;
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
