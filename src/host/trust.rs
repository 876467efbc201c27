//! The operator's permissions for scenarios. A scenario from elsewhere must not call an endpoint
//! with the operator's key, run a program, send an environment variable or reach local networks
//! before the operator has allowed it. A permission is saved under a digest of the file and of its
//! local programs, so a changed file needs a new one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{Metadata, OpenOptions};
use std::io;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::consent;
use super::models::LiveCalls;
use crate::base;
use crate::base::read_file::Links;
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::{private_file, read_file};
use crate::run::servers::{SeenTool, SeenTools};
use crate::scenario::{Consent, ConsentAbout, Scenario, ScenarioOrigin, shipped};

/// Size limit of the file, in bytes: some ten thousand permissions.
const MAX_TRUST_BYTES: u64 = 4 << 20;

/// The permissions: a file with a digest and a title on each line.
#[derive(Debug, Clone)]
pub struct Trust {
    file: Option<PathBuf>,
    /// Permissions given in this process, whether they could be saved or not.
    this_process: Arc<Mutex<BTreeSet<String>>>,
}

impl Trust {
    /// Permissions saved in this file; without a file they last as long as the process.
    pub fn saved_in(file: Option<PathBuf>) -> Self {
        Self { file, this_process: Arc::default() }
    }

    /// The question to the operator before a run of this scenario; `calls` are the models of a live
    /// run. `None`: the run needs no permission, or the permission exists. What a shipped scenario does (in
    /// the program, or as an unchanged file of the repository) is allowed, with the values that it has.
    pub fn needed_consent(
        &self,
        scenario: &Scenario,
        calls: Option<LiveCalls<'_>>,
    ) -> Option<Consent> {
        let mut needed = consent::needed_permissions(scenario, calls);
        let is_shipped = is_shipped(scenario);
        needed.retain(|one| {
            let is_known = one.is_of_file && is_shipped;
            !is_known && !self.is_allowed(&one.digest)
        });
        if needed.is_empty() {
            return None;
        }
        let is_of_file = needed.iter().any(|one| one.is_of_file);
        let has_values = needed.iter().any(|one| !one.is_of_file);
        let has_programs = needed.iter().any(|one| one.is_of_file && one.digest != scenario.hash);
        let scope = match (has_values, has_programs) {
            (true, _) => "this version of the file and these values",
            (_, true) => "this version of the file and of its programs",
            _ => "this version of the file",
        };
        let mut digests: Vec<String> = needed.iter().map(|one| one.digest.clone()).collect();
        digests.dedup();
        let would = consent::shown_lines(&needed);
        let scenario = scenario.name.as_str();
        tracing::info!(target: "roundtable::trust", scenario, ?digests, "permission needed");
        let about = ConsentAbout::Scenario;
        Some(Consent { about, digests, scope, is_of_file, would, not_kept: self.file_error() })
    }

    /// The question to the operator before the answers of a log from elsewhere count; `digest`: that of the
    /// log. `None`: the permission exists.
    pub(crate) fn needed_for_answers(&self, digest: String, would: Vec<String>) -> Option<Consent> {
        let is_needed = !self.is_allowed(&digest);
        is_needed.then(|| Consent {
            about: ConsentAbout::Answers,
            digests: vec![digest],
            scope: "this log",
            is_of_file: true,
            would,
            not_kept: self.file_error(),
        })
    }

    /// Saves the operator's permission under the digests from [`needed_consent`](Self::needed_consent).
    ///
    /// # Errors
    /// The file system's error, or why the file is not used; the permission lasts as long as the
    /// process then.
    pub fn allow(&self, digests: &[String], title: &str) -> io::Result<()> {
        let new: BTreeSet<&String> = digests.iter().filter(|it| !self.is_allowed(it)).collect();
        if new.is_empty() {
            return Ok(());
        }
        tracing::info!(target: "roundtable::trust", ?new, "allowed by the operator");
        let mut this_process = self.this_process.lock().unwrap_or_else(PoisonError::into_inner);
        this_process.extend(new.iter().map(|digest| (*digest).clone()));
        drop(this_process);
        let Some(file) = &self.file else { return Ok(()) };
        let kept = self.read_file().map_err(|why| io::Error::other(format!("{why:#}")))?;
        // An incomplete last line must not swallow this one.
        let cut = kept.last().is_some_and(|last| *last != b'\n');
        let title: String = title.chars().filter(|c| !c.is_control()).collect();
        let lines: String = new.iter().map(|digest| format!("{digest} {title}\n")).collect();
        let lines = if cut { format!("\n{lines}") } else { lines };
        private_file::append(file)?.write_all(lines.as_bytes())
    }

    /// Why the file is not used, and what to do. `None`: it is used, or does not exist yet.
    pub fn file_error(&self) -> Option<String> {
        self.read_file().err().map(|why| format!("{why:#}"))
    }

    fn is_allowed(&self, digest: &str) -> bool {
        if self.this_process.lock().unwrap_or_else(PoisonError::into_inner).contains(digest) {
            return true;
        }
        // Compares bytes, so that an invalid line does not affect the others.
        self.read_file().is_ok_and(|kept| {
            let mut lines = kept.split(|byte| *byte == b'\n');
            lines.any(|line| line.split(|byte| *byte == b' ').next() == Some(digest.as_bytes()))
        })
    }

    /// Reads the file. It is refused if another user may have written it.
    fn read_file(&self) -> Result<Vec<u8>, Refused> {
        self.file.as_deref().map_or_else(|| Ok(Vec::new()), read_own_file)
    }
}

/// Reads a file that only this user writes; empty if it does not exist.
fn read_own_file(path: &Path) -> Result<Vec<u8>, Refused> {
    let unused = format_args!("{} is not used", path.display());
    let file = match read_file::open_file(path, OpenOptions::new().read(true), Links::Refused) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) if error.kind() == ErrorKind::InvalidInput => {
            let help = "replace it with a file, or remove it";
            return Err(Refused::new(unused.to_string()).because(error).help(help));
        }
        Err(error) => return Err(error).or_refuse(unused),
    };
    let about = file.metadata().or_refuse(unused)?;
    if let Some(why) = foreign_writer(&about) {
        return Err(why).or_refuse(unused);
    }
    read_file::read_within(file, MAX_TRUST_BYTES).or_refuse(unused)
}

/// What the operator has seen and allowed of the tools of MCP servers: a JSON file next to the permissions.
pub struct SeenToolsFile(Option<PathBuf>);

/// The content of the file: the tools by server, then by name.
#[derive(Default, Serialize, Deserialize)]
struct SeenServers {
    #[serde(default)]
    servers: BTreeMap<String, BTreeMap<String, SeenTool>>,
}

impl SeenToolsFile {
    /// The user's own file.
    pub fn of_user() -> Self {
        Self(super::Dirs::find().map(|dirs| dirs.seen_tools()))
    }

    /// A file that another user may have written is refused, and counts as empty: the operator is asked again.
    fn read(&self) -> Result<SeenServers, Refused> {
        let Some(path) = &self.0 else { return Ok(SeenServers::default()) };
        let bytes = read_own_file(path)?;
        if bytes.is_empty() {
            return Ok(SeenServers::default());
        }
        serde_json::from_slice(&bytes).or_refuse(format_args!("{} is not used", path.display()))
    }
}

impl SeenTools for SeenToolsFile {
    fn of_server(&self, server: &str) -> BTreeMap<String, SeenTool> {
        match self.read() {
            Ok(mut seen) => seen.servers.remove(server).unwrap_or_default(),
            Err(why) => {
                tracing::warn!(target: "roundtable::trust", "{why:#}");
                BTreeMap::new()
            }
        }
    }

    fn save(&self, server: &str, tools: BTreeMap<String, SeenTool>) -> Result<(), Refused> {
        let Some(path) = &self.0 else { return Ok(()) };
        let mut seen = self.read()?;
        let before = seen.servers.entry(server.to_owned()).or_default();
        let is_new = tools.iter().any(|(name, tool)| before.get(name) != Some(tool));
        if !is_new {
            return Ok(());
        }
        before.extend(tools);
        let text = serde_json::to_vec_pretty(&seen).or_refuse("the tools cannot be written")?;
        private_file::replace_file(path, &text)
            .or_refuse(format_args!("cannot write {}", path.display()))
    }
}

fn is_shipped(scenario: &Scenario) -> bool {
    matches!(scenario.origin, ScenarioOrigin::Shipped(_))
        || shipped().iter().any(|one| base::sha256_of_text(one.text) == scenario.hash)
}

/// Why another user may have written this file; `None`: only the operator can write it.
#[cfg(unix)]
fn foreign_writer(about: &Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let mode = about.mode() & 0o777;
    if mode & 0o022 != 0 {
        return Some(format!(
            "others can write to it (mode {mode:04o}); delete lines that are not yours, then chmod 600"
        ));
    }
    // The administrator can write any file anyway.
    let mine = [0, rustix::process::geteuid().as_raw()].contains(&about.uid());
    (!mine).then(|| "it belongs to another user; remove it".to_owned())
}

#[cfg(not(unix))]
fn foreign_writer(_: &Metadata) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::scenario::load;
    #[cfg(unix)]
    use crate::support::pipe::make_pipe;

    /// A foreign scenario that runs a program.
    fn foreign_file(change: &str) -> Scenario {
        let one = shipped().iter().find(|one| one.name == "real-services").expect("shipped");
        let text = format!("{}\n# {change}\n", one.text);
        load(&text, ScenarioOrigin::File("copy.toml".into()), &[]).expect("a good scenario")
    }

    fn trust(file: &Path) -> Trust {
        Trust::saved_in(Some(file.to_path_buf()))
    }

    #[test]
    fn trusts_shipped_and_asks_after_change() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("config/trusted");
        let one = shipped().iter().find(|one| one.name == "real-services").expect("shipped");
        for origin in [one.origin(), ScenarioOrigin::File("copy.toml".into())] {
            let same = load(one.text, origin, &[]).expect("a good scenario");
            assert_eq!(
                trust(&file).needed_consent(&same, None),
                None,
                "unchanged, wherever it stands"
            );
        }

        let foreign = foreign_file("changed");
        let asked = trust(&file).needed_consent(&foreign, None).expect("it asks");
        assert_eq!((&asked.digests, &asked.not_kept), (&vec![foreign.hash.clone()], &None));
        let first = trust(&file);
        first.allow(&asked.digests, "a\ntitle").expect("kept");
        first.allow(&asked.digests, "a title").expect("kept");
        assert_eq!(first.needed_consent(&foreign, None), None);
        let kept = std::fs::read_to_string(&file).expect("reads");
        assert_eq!(kept, format!("{} atitle\n", foreign.hash), "once, on one line");
        assert!(first.needed_consent(&foreign_file("other"), None).is_some(), "another file");
        assert_eq!(trust(&file).needed_consent(&foreign, None), None, "the answer is kept");

        let nowhere = trust(&file.join("below-a-file"));
        assert!(nowhere.allow(std::slice::from_ref(&foreign.hash), "a title").is_err());
        assert_eq!(nowhere.needed_consent(&foreign, None), None, "for now");
    }

    #[test]
    fn bad_lines_keep_other_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("trusted");
        let foreign = foreign_file("changed");
        let kept = format!("{} mine\n", foreign.hash);
        std::fs::write(&file, [b"\xff\xfe\0\n", kept.as_bytes(), b"cut of"].concat())
            .expect("written");
        assert_eq!(trust(&file).needed_consent(&foreign, None), None, "it is still known");
        trust(&file).allow(&["abc".to_owned()], "another").expect("kept");
        let kept = std::fs::read(&file).expect("reads");
        assert!(kept.ends_with(b"cut of\nabc another\n"), "{}", kept.escape_ascii());
    }

    #[cfg(unix)]
    #[test]
    fn distrusts_writable_or_misplaced_file() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().expect("a folder");
        let foreign = foreign_file("changed");
        let file = folder.path().join("trusted");
        trust(&file).allow(std::slice::from_ref(&foreign.hash), "mine").expect("kept");
        let link = folder.path().join("link");
        symlink(&file, &link).expect("a link");
        let pipe = folder.path().join("pipe");
        make_pipe(&pipe);

        let refused = |file: &Path, why: &str| {
            let trust = trust(file);
            let asked = trust.needed_consent(&foreign, None).expect("it asks again");
            let said = asked.not_kept.expect("why the answer is not kept");
            assert!(said.contains(&file.display().to_string()) && said.contains(why), "{said}");
            assert_eq!(trust.file_error().as_deref(), Some(&*said));
            let error = trust
                .allow(std::slice::from_ref(&foreign.hash), "mine")
                .expect_err("it is not kept");
            assert_eq!(error.to_string(), said);
            assert_eq!(trust.needed_consent(&foreign, None), None, "but it holds for now");
        };
        refused(&link, "a symbolic link");
        refused(&pipe, "a pipe");
        for mode in [0o620, 0o602, 0o666] {
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).expect("changed");
            refused(&file, "others can write to it");
        }
        let kept = std::fs::read_to_string(&file).expect("reads");
        assert_eq!(kept.lines().count(), 1, "nothing was added");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).expect("changed");
        assert_eq!(trust(&file).needed_consent(&foreign, None), None, "others may read it");
    }
}
