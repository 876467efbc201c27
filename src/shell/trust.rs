//! Which scenarios a person trusts. A file that somebody else wrote must not reach an endpoint with
//! a key and at somebody's cost, run a program, send a variable of the environment away or look
//! around on this machine's networks, before a person has been told and has said yes. The answer is kept
//! by the file's hash, so a file that has changed asks again.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::models;
use crate::app::measure::squeezed;
use crate::llm::endpoint::Endpoint;
use crate::private;
use crate::scenario::lookup::{FolderSpec, PrivateHosts, ReadSpec, SearchSpec, WebSpec};
use crate::scenario::tool::{HttpSpec, Setting, ToolKind};
use crate::scenario::{Origin, Scenario, digest, shipped};
use crate::tool::http as http_tool;

/// Bytes of a page beyond which a person is told.
const LARGE_PAGE: u64 = 50_000_000;

/// The scenarios that a person trusts: a file of theirs with a hash and a title on each line.
#[derive(Debug, Clone)]
pub struct Trust {
    file: Option<PathBuf>,
    /// What was answered in this program, also where it cannot be kept.
    now: Arc<Mutex<BTreeSet<String>>>,
}

impl Trust {
    /// Kept in this file; without one every answer holds for this program alone.
    pub fn kept_in(file: Option<PathBuf>) -> Self {
        Self { file, now: Arc::default() }
    }

    /// What a person has to be told before a run of this scenario, a line each and each of them
    /// whole, its white space squeezed; `endpoint` is who would be asked, where it is live. `None`: it is trusted, or does nothing of the kind.
    pub fn asks(&self, scenario: &Scenario, endpoint: Option<&Endpoint>) -> Option<Vec<String>> {
        let would = would(scenario, endpoint);
        (!would.is_empty() && !self.holds(scenario)).then_some(would)
    }

    /// Whether this scenario may do such things: it was shipped (in the program, or unchanged as
    /// a file of the repository), or a person has said so.
    pub fn holds(&self, scenario: &Scenario) -> bool {
        matches!(scenario.origin, Origin::Shipped(_))
            || shipped().iter().any(|one| digest::of_text(one.text) == scenario.hash)
            || self.knows(&scenario.hash)
    }

    /// Takes a person's yes, and keeps it.
    ///
    /// # Errors
    /// What the file system says; the answer holds for this program alone then.
    pub fn allow(&self, hash: &str, title: &str) -> io::Result<()> {
        if self.knows(hash) {
            return Ok(());
        }
        self.now.lock().unwrap_or_else(PoisonError::into_inner).insert(hash.to_owned());
        let Some(file) = &self.file else { return Ok(()) };
        let title: String = title.chars().filter(|c| !c.is_control()).collect();
        private::append(file)?.write_all(format!("{hash} {title}\n").as_bytes())
    }

    fn knows(&self, hash: &str) -> bool {
        if self.now.lock().unwrap_or_else(PoisonError::into_inner).contains(hash) {
            return true;
        }
        let Some(text) = self.file.as_ref().and_then(|file| std::fs::read_to_string(file).ok())
        else {
            return false;
        };
        text.lines().any(|line| line.split(' ').next() == Some(hash))
    }
}

/// What a run of this scenario would do that a person has to allow.
fn would(scenario: &Scenario, endpoint: Option<&Endpoint>) -> Vec<String> {
    let mut lines = match endpoint {
        Some(it) => models::would(scenario, it).iter().map(|line| squeezed(line)).collect(),
        None => Vec::new(),
    };
    for spec in scenario.tools.values() {
        match &spec.kind {
            Some(ToolKind::Command(command)) => {
                let words = std::iter::once(&command.program).chain(&command.args);
                let line: Vec<&str> = words.map(String::as_str).collect();
                lines.push(format!("run {}", squeezed(&line.join(" "))));
                lines.extend(variables(&command.env).map(|name| format!("  and give it ${name}")));
            }
            Some(ToolKind::Http(http)) => lines.extend(requests(http)),
            Some(ToolKind::Search(search)) => match &**search {
                SearchSpec::Folder(folder) => lines.extend(files(folder)),
                SearchSpec::Endpoint(endpoint) => {
                    let host = host_of(&endpoint.http);
                    lines.push(format!("send what is searched to {host}"));
                    lines.extend(requests(&endpoint.http));
                }
            },
            Some(ToolKind::Read(read)) => match &**read {
                ReadSpec::Folder(folder) => lines.extend(files(folder)),
                ReadSpec::Web(web) => lines.extend(pages(web)),
            },
            Some(ToolKind::Fixture(_)) | None => {}
        }
    }
    // Searching a folder and reading from it is one thing to a person.
    let mut told = BTreeSet::new();
    lines.retain(|line| line.starts_with(' ') || told.insert(line.clone()));
    lines
}

/// How pages are read otherwise than a guest would.
fn pages(web: &WebSpec) -> Vec<String> {
    let mut lines = Vec::new();
    match &web.allow_private {
        PrivateHosts::None => {}
        PrivateHosts::Any => {
            lines.push("read pages, on this machine's own networks too".to_owned());
        }
        PrivateHosts::These(hosts) if hosts.is_empty() => {}
        PrivateHosts::These(hosts) => lines.push(format!(
            "read pages of {}, on this machine's own networks too",
            squeezed(&hosts.join(", "))
        )),
    }
    if !web.robots {
        lines.push("read pages against robots.txt".to_owned());
    }
    if web.max_bytes > LARGE_PAGE {
        lines.push(format!("read pages of up to {} MB", web.max_bytes.div_ceil(1_000_000)));
    }
    lines
}

fn host_of(http: &HttpSpec) -> String {
    squeezed(&http_tool::host(&http.url).unwrap_or_else(|| http.url.clone()))
}

/// What requests of a tool give away, and how far they go.
fn requests(http: &HttpSpec) -> Vec<String> {
    let host = host_of(http);
    let sent = variables(&http.headers).map(|it| format!("send ${it} to {host}"));
    let near =
        http.allow_private.then(|| format!("ask {host}, on this machine's own networks too"));
    sent.chain(near).collect()
}

/// The files of a person that a tool looks through.
fn files(folder: &FolderSpec) -> Option<String> {
    let path = folder.folder.as_ref()?.display().to_string();
    Some(format!("read the documents in {}", squeezed(&path)))
}

fn variables(settings: &BTreeMap<String, Setting>) -> impl Iterator<Item = String> {
    settings.values().filter_map(|setting| match setting {
        Setting::Env(name) => Some(squeezed(name)),
        Setting::Text(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::load;

    #[test]
    fn what_was_shipped_is_trusted_and_what_was_changed_asks_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let trust = Trust::kept_in(Some(folder.path().join("config/trusted")));
        let one = &shipped()[0];
        let read = |text: &str, origin| load(text, origin, &[]).expect("a good scenario");
        assert!(trust.holds(&read(one.text, one.origin())));
        let file = || Origin::File("copy.toml".into());
        assert!(trust.holds(&read(one.text, file())), "unchanged, wherever it stands");

        let changed = format!("{}\n# changed\n", one.text);
        let foreign = read(&changed, file());
        assert!(!trust.holds(&foreign));
        trust.allow(&foreign.hash, "a\ntitle").expect("kept");
        trust.allow(&foreign.hash, "a title").expect("kept");
        assert!(trust.holds(&foreign));
        let kept = std::fs::read_to_string(folder.path().join("config/trusted")).expect("reads");
        assert_eq!(kept, format!("{} atitle\n", foreign.hash), "once, on one line");
        assert!(!trust.holds(&read(&format!("{changed}#"), file())), "another file");
        let later = Trust::kept_in(Some(folder.path().join("config/trusted")));
        assert!(later.holds(&foreign), "the answer is kept");

        let nowhere = Trust::kept_in(Some(folder.path().join("config/trusted/below-a-file")));
        assert!(nowhere.allow(&foreign.hash, "a title").is_err());
        assert!(nowhere.holds(&foreign), "for now");
    }

    #[test]
    fn a_command_is_told_whole_however_far_its_end_is_pushed_away() {
        let one = shipped().iter().find(|one| one.name == "real-services").expect("shipped");
        let start = one.text.find("[\"-c\"").expect("a command");
        let end = start + one.text[start..].find(']').expect("its end") + 1;
        let far = " ".repeat(400);
        let args = format!("[\"-c\", \"echo harmless{far};\\n\\t rm -rf ~/everything\"]");
        let text = format!("{}{args}{}", &one.text[..start], &one.text[end..]);
        let scenario = load(&text, Origin::File("x.toml".into()), &[]).expect("a good scenario");
        let would = Trust::kept_in(None).asks(&scenario, None).expect("it asks");
        let line = "run sh -c echo harmless ␣ ; ␊ rm -rf ~/everything";
        assert!(would.iter().any(|said| said == line), "{would:?}");
    }
}
