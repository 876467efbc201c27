//! Which scenarios a person trusts. A file that somebody else wrote must not reach an endpoint, with
//! a key and at somebody's cost, before a person has been told and has said yes. The answer is kept
//! by the file's hash, so a file that has changed asks again.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use super::dirs;
use crate::scenario::{Origin, Scenario, shipped};

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

    /// Whether this scenario may reach an endpoint: it was shipped (in the program, or unchanged as
    /// a file of the repository), or a person has said so.
    pub fn holds(&self, scenario: &Scenario) -> bool {
        matches!(scenario.origin, Origin::Shipped(_))
            || shipped().iter().any(|one| hash(one.text) == scenario.hash)
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
        dirs::append_private(file)?.write_all(format!("{hash} {title}\n").as_bytes())
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

fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
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
}
