//! Disk cache of pages: one file for each address, named by a hash, so that no text from the web
//! becomes part of a path. A damaged file counts as missing.

use std::io::Read as _;
#[cfg(test)]
use std::path::Path;
use std::path::PathBuf;
use std::time::SystemTime;
use std::{fs, io};

use etcetera::BaseStrategy;
use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::redirects;
use crate::base::{private_file, sha256_of_text};

/// Upper bound of the cache in bytes; the oldest pages are removed first.
const MAX_BYTES: u64 = 64 << 20;

/// Format version of a cache entry. Entries of other versions are ignored, because the text
/// extraction changes with the program.
const FORMAT_VERSION: u32 = 1;

/// A folder of cached pages.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
    most_bytes: u64,
}

/// A cached page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CachedPage {
    pub(crate) form: u32,
    /// Address that was requested.
    pub(crate) address: String,
    /// Address of the page, after redirects.
    pub(crate) url: String,
    /// Addresses that redirects led to, in order.
    pub(super) redirects: Vec<String>,
    /// Domain and host of each address, from the first to the last.
    pub(crate) hops: Vec<RedirectHop>,
    /// Whether `robots.txt` was respected for this page.
    pub(crate) robots: bool,
    /// Time of the request, in seconds since 1970.
    pub(super) came_s: u64,
    /// Length of the body in bytes.
    pub(crate) bytes: u64,
    pub(crate) content_type: String,
    pub(crate) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    pub(crate) title: String,
    pub(crate) published_at: String,
    /// Whether the date is from `Last-Modified`, because the page has none.
    pub(super) dated_by_head: bool,
    pub(crate) text: String,
}

/// A host of the redirect chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RedirectHop {
    /// Domain as it is compared with allowlists.
    pub(crate) domain: String,
    /// Host, with the port if it is not the scheme's default.
    pub(crate) host: String,
    /// Whether a private address was allowed for this host.
    pub(crate) private: bool,
}

impl CachedPage {
    /// Version that is written now.
    pub(super) const FORM: u32 = FORMAT_VERSION;

    /// Address of the page for display, with the host as it was checked against the allowlist.
    pub(super) fn shown_address(&self) -> String {
        match (Url::parse(&self.url), self.hops.last()) {
            (Ok(url), Some(hop)) => redirects::shown_url(&url, &hop.domain),
            _ => self.url.clone(),
        }
    }

    /// Age in seconds; `None` if the entry is from the future, because a clock was wrong.
    pub(super) fn age_s(&self, now: SystemTime) -> Option<u64> {
        unix_seconds(now).checked_sub(self.came_s)
    }
}

/// Seconds since 1970.
pub(super) fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Cache {
    /// The user's cache, such as `~/.cache/roundtable/pages`; `None` if there is no home directory.
    /// The folder is created on the first write.
    pub fn for_user() -> Option<Self> {
        let base = etcetera::choose_base_strategy().ok()?;
        Some(Self::at(base.cache_dir().join("roundtable").join("pages")))
    }

    /// Removes all pages. Blocking: removes files.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn clear(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// A cache in this folder, which must be used for nothing else.
    pub fn at(folder: PathBuf) -> Self {
        Self { folder, most_bytes: MAX_BYTES }
    }

    /// The same cache with another size limit in bytes.
    #[cfg(test)]
    pub fn with_limit(self, most_bytes: u64) -> Self {
        Self { most_bytes, ..self }
    }

    /// The entry of this address. Blocking: reads a file.
    pub(crate) fn get(&self, address: &str) -> Option<CachedPage> {
        let mut bytes = Vec::new();
        let file = fs::File::open(self.path_of(address)).ok()?;
        file.take(self.most_bytes.saturating_add(1)).read_to_end(&mut bytes).ok()?;
        let entry: CachedPage = serde_json::from_slice(&bytes).ok()?;
        (entry.form == FORMAT_VERSION && entry.address == address).then_some(entry)
    }

    /// Stores a page and removes the oldest ones above the limit. Blocking: writes a file.
    pub(crate) fn put(&self, entry: &CachedPage) -> io::Result<()> {
        let bytes = serde_json::to_vec(entry)?;
        if bytes.len() as u64 > self.most_bytes {
            return Ok(());
        }
        private_file::replace_file(&self.path_of(&entry.address), &bytes)?;
        self.evict_oldest()
    }

    fn evict_oldest(&self) -> io::Result<()> {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = fs::read_dir(&self.folder)?
            .flatten()
            .filter_map(|file| {
                let about = file.metadata().ok().filter(fs::Metadata::is_file)?;
                Some((about.modified().ok()?, about.len(), file.path()))
            })
            .collect();
        let mut all: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        files.sort();
        for (_, bytes, file) in files {
            if all <= self.most_bytes {
                break;
            }
            // Another process may have removed it already.
            let _ = fs::remove_file(file);
            all = all.saturating_sub(bytes);
        }
        Ok(())
    }

    fn path_of(&self, address: &str) -> PathBuf {
        self.folder.join(sha256_of_text(address)).with_extension("json")
    }

    /// Folder of the cache.
    #[cfg(test)]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn entry(address: &str, text: &str) -> CachedPage {
        let hop =
            RedirectHop { domain: "a.example".into(), host: "a.example".into(), private: false };
        CachedPage {
            form: FORMAT_VERSION,
            address: address.to_owned(),
            url: address.to_owned(),
            redirects: Vec::new(),
            hops: vec![hop],
            robots: true,
            came_s: 100,
            bytes: 5,
            content_type: "text/plain".to_owned(),
            etag: Some("\"1\"".to_owned()),
            last_modified: None,
            title: String::new(),
            published_at: String::new(),
            dated_by_head: false,
            text: text.to_owned(),
        }
    }

    #[test]
    fn cached_page_is_private_to_owner() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(folder.path().join("new/pages"));
        let kept = entry("https://a.example/../../etc/passwd?x=/y", "text");
        assert_eq!(cache.get(&kept.address), None);
        cache.put(&kept).expect("kept");
        assert_eq!(cache.get(&kept.address), Some(kept.clone()));
        assert_eq!(cache.get("https://a.example/"), None);
        let files: Vec<_> = fs::read_dir(cache.folder()).expect("a folder").flatten().collect();
        let [file] = &files[..] else { panic!("one file: {files:?}") };
        let name = file.file_name().into_string().expect("a name");
        let (hash, end) = name.split_once('.').expect("an end");
        assert!(hash.len() == 64 && hash.bytes().all(|it| it.is_ascii_hexdigit()) && end == "json");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode =
                |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
            assert_eq!((mode(&file.path()), mode(cache.folder())), (0o600, 0o700));
        }
    }

    #[test]
    fn what_is_broken_is_not_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(folder.path().to_owned());
        let kept = entry("https://a.example/", "text");
        let whole = serde_json::to_vec(&kept).expect("an entry");
        let other = serde_json::to_vec(&entry("https://b.example/", "text")).expect("an entry");
        let newer = serde_json::to_vec(&CachedPage { form: 9, ..kept.clone() }).expect("an entry");
        for bytes in [&whole[..whole.len() / 2], b"", b"{}", b"\xff\xff", &other, &newer] {
            fs::write(cache.path_of(&kept.address), bytes).expect("written");
            assert_eq!(cache.get(&kept.address), None);
        }
        cache.put(&kept).expect("kept");
        assert_eq!(cache.get(&kept.address), Some(kept));
    }

    #[test]
    fn the_oldest_go_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(folder.path().to_owned()).with_limit(5_000);
        for n in 0..9_u64 {
            let page = entry(&format!("https://a.example/{n}"), &"x".repeat(1_000));
            cache.put(&page).expect("kept");
            let file = fs::File::open(cache.path_of(&page.address)).expect("there");
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 + n);
            file.set_modified(time).expect("aged");
        }
        let kept = |n: u64| cache.get(&format!("https://a.example/{n}")).is_some();
        assert!(!kept(0) && kept(8));
        let files = fs::read_dir(cache.folder()).expect("a folder").flatten();
        let all: u64 = files.map(|file| file.metadata().expect("there").len()).sum();
        assert!(all <= 5_000, "{all}");
        cache.put(&entry("https://a.example/huge", &"x".repeat(9_000))).expect("left out");
        assert!(cache.get("https://a.example/huge").is_none() && kept(8));
    }

    #[test]
    fn how_old_a_page_is() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let page = entry("https://a.example/", "");
        assert_eq!(page.age_s(at(130)), Some(30));
        assert_eq!(page.age_s(at(99)), None);
    }
}
