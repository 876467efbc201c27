//! The files that a coding agent reads and writes through this program: only below the folder of its
//! session, as the scenario allows it.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::net::error::size;
use crate::net::json_rpc::{INVALID_PARAMS, RpcError};

/// Code of a request that cannot be done.
const FAILED: i64 = -32_000;

/// `fs/read_text_file`.
#[derive(Deserialize)]
struct ReadParams {
    path: PathBuf,
    #[serde(default)]
    line: Option<usize>,
    #[serde(default)]
    limit: Option<usize>,
}

/// `fs/write_text_file`.
#[derive(Deserialize)]
struct WriteParams {
    path: PathBuf,
    content: String,
}

fn failed(what: impl Into<String>) -> RpcError {
    RpcError::new(FAILED, what)
}

fn read_params<T: serde::de::DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    serde_json::from_value(params).map_err(|error| RpcError::new(INVALID_PARAMS, error.to_string()))
}

/// The path without links and `..`, if it is below the folder. A file that does not exist is in a folder that
/// does.
pub(super) fn inside(folder: &Path, path: &Path) -> Result<PathBuf, RpcError> {
    let outside = || failed(format!("{} is not in {}", path.display(), folder.display()));
    if !path.is_absolute() {
        return Err(RpcError::new(INVALID_PARAMS, "the path is not absolute"));
    }
    let cannot = |error: io::Error| failed(format!("{}: {error}", path.display()));
    let found = match path.canonicalize() {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A link to nothing leads where its target will be.
            if path.is_symlink() {
                return Err(outside());
            }
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                return Err(outside());
            };
            parent.canonicalize().map_err(cannot)?.join(name)
        }
        Err(error) => return Err(cannot(error)),
    };
    if found.starts_with(folder) { Ok(found) } else { Err(outside()) }
}

/// Reads a file, or lines of it. `cap`: most bytes of it. Blocks.
pub(super) fn read(folder: &Path, params: Value, cap: u64) -> Result<Value, RpcError> {
    let ReadParams { path, line, limit } = read_params(params)?;
    let path = inside(folder, &path)?;
    let cannot = |error: io::Error| failed(format!("{}: {error}", path.display()));
    let length = path.metadata().map_err(cannot)?;
    if !length.is_file() {
        return Err(failed(format!("{} is not a file", path.display())));
    }
    if length.len() > cap {
        let cap = size(usize::try_from(cap).unwrap_or(usize::MAX));
        return Err(failed(format!("{} is larger than {cap}", path.display())));
    }
    let text = std::fs::read_to_string(&path).map_err(cannot)?;
    let content = match (line, limit) {
        (None, None) => text,
        (line, limit) => {
            let lines = text.split_inclusive('\n').skip(line.unwrap_or(1).saturating_sub(1));
            lines.take(limit.unwrap_or(usize::MAX)).collect()
        }
    };
    Ok(json!({ "content": content }))
}

/// A file that an agent wants to write.
#[derive(Debug)]
pub(super) struct FileChange {
    pub(super) path: PathBuf,
    pub(super) content: String,
    /// The lines that change, with `-` and `+`.
    pub(super) lines: String,
}

/// What a `fs/write_text_file` changes. `cap`: most bytes of the present file that are compared. Blocks.
pub(super) fn change(folder: &Path, params: Value, cap: u64) -> Result<FileChange, RpcError> {
    let WriteParams { path, content } = read_params(params)?;
    let path = inside(folder, &path)?;
    let present = path.metadata().ok().map(|file| file.len());
    let old = match present {
        None => Some(String::new()),
        Some(length) if length <= cap => std::fs::read_to_string(&path).ok(),
        Some(_) => None,
    };
    let lines = match &old {
        Some(old) => changed_lines(old, &content),
        None => {
            let length = size(usize::try_from(present.unwrap_or(0)).unwrap_or(usize::MAX));
            format!("(replaces {length} that are not shown){}", changed_lines("", &content))
        }
    };
    Ok(FileChange { path, content, lines })
}

/// The lines of two texts without those that are equal at the beginning and at the end.
fn changed_lines(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let first = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let ends = old.iter().rev().zip(new.iter().rev());
    let room = old.len().min(new.len()) - first;
    let last = ends.take_while(|(old, new)| old == new).count().min(room);
    let part = |lines: &[&str], mark: char| {
        let changed = lines.get(first..lines.len() - last).unwrap_or_default();
        changed.iter().map(|line| format!("\n{mark} {line}")).collect::<String>()
    };
    part(&old, '-') + &part(&new, '+')
}

/// Writes a file. Blocks.
pub(super) fn write(folder: &Path, params: Value) -> Result<Value, RpcError> {
    let WriteParams { path, content } = read_params(params)?;
    let path = inside(folder, &path)?;
    std::fs::write(&path, content)
        .map_err(|error| failed(format!("{}: {error}", path.display())))?;
    Ok(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_outside_the_folder_are_refused() {
        let place = tempfile::tempdir().expect("a folder");
        let root = place.path().canonicalize().expect("its path");
        let folder = root.join("work");
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::write(root.join("secret"), "s").expect("a file");
        std::fs::write(folder.join("a.txt"), "1\n2\n3\n").expect("a file");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(root.join("secret"), folder.join("link")).expect("a link");
            std::os::unix::fs::symlink(root.join("new"), folder.join("dangling")).expect("a link");
            std::os::unix::fs::symlink(&root, folder.join("up")).expect("a link");
        }
        let content = |path: &str| read(&folder, json!({ "path": folder.join(path) }), 1_000);
        assert_eq!(content("a.txt"), Ok(json!({ "content": "1\n2\n3\n" })));
        for path in ["../secret", "link", "up/secret", "dangling", "none", "."] {
            assert!(content(path).is_err(), "{path}");
        }
        assert!(read(&folder, json!({ "path": "a.txt" }), 1_000).is_err(), "a relative path");
        let written =
            |path: &str| write(&folder, json!({ "path": folder.join(path), "content": "new" }));
        assert_eq!(written("b.txt"), Ok(Value::Null));
        for path in ["../c.txt", "link", "dangling", "up/d.txt"] {
            assert!(written(path).is_err(), "{path}");
        }
        assert_eq!(std::fs::read_to_string(root.join("secret")).expect("it"), "s");
        assert!(!root.join("new").exists() && !root.join("d.txt").exists());
    }

    #[test]
    fn change_of_a_file_is_shown() {
        for (old, new, lines) in [
            ("", "a\nb\n", "\n+ a\n+ b"),
            ("a\nb\nc\n", "a\nx\nc\n", "\n- b\n+ x"),
            ("a\na\n", "a\n", "\n- a"),
            ("a\n", "a\na\n", "\n+ a"),
            ("a\n", "", "\n- a"),
            ("a\n", "a\n", ""),
        ] {
            assert_eq!(changed_lines(old, new), lines, "{old:?} to {new:?}");
        }
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().canonicalize().expect("its path");
        std::fs::write(folder.join("a"), [0xff; 9]).expect("a file");
        let params = json!({ "path": folder.join("a"), "content": "x" });
        let change = change(&folder, params, 100).expect("a change");
        assert_eq!(change.lines, "(replaces 9 bytes that are not shown)\n+ x");
    }

    #[test]
    fn lines_of_a_file_are_read() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().canonicalize().expect("its path");
        std::fs::write(folder.join("a"), "1\n2\n3\n4").expect("a file");
        let lines = |line: usize, limit: usize| {
            let params = json!({ "path": folder.join("a"), "line": line, "limit": limit });
            read(&folder, params, 100).expect("its lines")["content"].clone()
        };
        assert_eq!(lines(2, 2), "2\n3\n");
        assert_eq!(lines(4, 9), "4");
        assert_eq!(lines(9, 1), "");
        assert!(read(&folder, json!({ "path": folder.join("a") }), 3).is_err(), "too large");
    }
}
