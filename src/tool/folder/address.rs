//! Addresses (URLs) of the files of a folder. An address is made from a path, never a path from an
//! address: a requested address is looked up among the known ones, so no address can lead outside
//! the folder.

use std::collections::HashSet;
use std::path::{Component, Path};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use reqwest::Url;

use crate::scenario::read::names::domain_in_ascii;

/// Only unreserved characters stay unencoded, so that all spellings of an address become the same.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Extensions that a mirror omits.
const OMITTED_EXTENSIONS: [&str; 5] = ["md", "html", "htm", "txt", "pdf"];

/// How addresses are made.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Layout {
    /// This base URL, which ends with a slash, followed by the path with its extension.
    Under(String),
    /// As in a mirror of the web: the first folder is the host.
    Mirror,
}

impl Layout {
    /// The layout of a folder whose files have addresses below this URL; without a URL that of a
    /// mirror.
    /// # Errors
    /// What is wrong with the URL.
    pub fn new(base_url: Option<&str>) -> Result<Self, String> {
        let Some(text) = base_url else { return Ok(Self::Mirror) };
        let url = Url::parse(text).map_err(|error| format!("the base_url is invalid: {error}"))?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err("the base_url has a ? or #, so no path can follow".to_owned());
        }
        let mut base = canonical_address(text)
            .ok_or_else(|| "the base_url is not a plain http:// or https:// address".to_owned())?;
        if !base.ends_with('/') {
            base.push('/');
        }
        Ok(Self::Under(base))
    }

    /// The addresses of files by their paths in the folder, which must be sorted. All addresses are
    /// different. `None`: the file has no address.
    pub fn addresses<'a>(&self, paths: impl IntoIterator<Item = &'a Path>) -> Vec<Option<String>> {
        let mut taken = HashSet::new();
        let mut claim = |address: String| taken.insert(address.clone()).then_some(address);
        paths
            .into_iter()
            .map(|path| {
                let segments = segments(path)?;
                match self {
                    Self::Under(base) => claim(format!("{base}{}", encoded(&segments))),
                    Self::Mirror => {
                        let (host, rest) = segments.split_first()?;
                        let (file, folders) = rest.split_last()?;
                        let host = host_name(host)?;
                        let with = |file: &[u8]| {
                            let whole: Vec<&[u8]> = folders.iter().copied().chain([file]).collect();
                            format!("https://{host}/{}", encoded(&whole))
                        };
                        // The later of two files with the same address keeps its extension.
                        claim(with(without_extension(file))).or_else(|| claim(with(file)))
                    }
                }
            })
            .collect()
    }
}

/// The normalised spelling of an address, without its fragment; `None` if it cannot be the address
/// of a file.
pub fn canonical_address(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let plain = matches!(url.scheme(), "http" | "https")
        && url.query().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    if !plain {
        return None;
    }
    let mut whole = format!("{}://{}", url.scheme(), url.host_str()?);
    if let Some(port) = url.port() {
        whole.push_str(&format!(":{port}"));
    }
    for segment in url.path_segments()? {
        let bytes: Vec<u8> = percent_decode_str(segment).collect();
        // An encoded slash does not separate folders, and no file name contains one.
        if bytes.contains(&b'/') || bytes.contains(&0) || matches!(&*bytes, b"." | b"..") {
            return None;
        }
        whole.push('/');
        whole.extend(percent_encode(&bytes, ENCODED));
    }
    Some(whole)
}

/// Names along a path in the folder; `None` if the path is not relative, or a name cannot be
/// encoded.
fn segments(path: &Path) -> Option<Vec<&[u8]>> {
    let name = |component| match component {
        Component::Normal(name) => name_bytes(name),
        _ => None,
    };
    path.components().map(name).collect::<Option<Vec<_>>>().filter(|names| !names.is_empty())
}

#[cfg(unix)]
fn name_bytes(name: &std::ffi::OsStr) -> Option<&[u8]> {
    Some(std::os::unix::ffi::OsStrExt::as_bytes(name))
}

#[cfg(not(unix))]
fn name_bytes(name: &std::ffi::OsStr) -> Option<&[u8]> {
    name.to_str().map(str::as_bytes)
}

fn encoded(segments: &[&[u8]]) -> String {
    let each: Vec<String> =
        segments.iter().map(|segment| percent_encode(segment, ENCODED).to_string()).collect();
    each.join("/")
}

/// Host name of a folder: its name must contain a dot and be valid in a URL; Unicode is converted
/// to ASCII.
fn host_name(name: &[u8]) -> Option<String> {
    let host = domain_in_ascii(std::str::from_utf8(name).ok()?)?.into_owned();
    let url = Url::parse(&format!("https://{host}/")).ok()?;
    (host.contains('.') && url.host_str() == Some(&*host) && url.port().is_none()).then_some(host)
}

fn without_extension(file: &[u8]) -> &[u8] {
    let left_off = |extension: &&str| {
        let stem = file.len().checked_sub(extension.len() + 1)?;
        let (stem, rest) = file.split_at_checked(stem)?;
        let is_it = rest.split_first().is_some_and(|(dot, rest)| {
            *dot == b'.' && rest.eq_ignore_ascii_case(extension.as_bytes())
        });
        (is_it && !stem.is_empty() && !matches!(stem, b"." | b"..")).then_some(stem)
    };
    OMITTED_EXTENSIONS.iter().find_map(left_off).unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;

    fn assigned(layout: &Layout, paths: &[&str]) -> Vec<Option<String>> {
        layout.addresses(paths.iter().map(Path::new))
    }

    fn under() -> Layout {
        Layout::new(Some("https://Notes.local/my notes")).expect("a base")
    }

    #[test]
    fn appends_escaped_path_to_base() {
        let addresses = assigned(&under(), &["a b/c#d?.md", "é.txt", "100%.md", "x/%2e%2e.md"]);
        let addresses: Vec<&str> = addresses.iter().flatten().map(String::as_str).collect();
        assert_eq!(
            addresses,
            [
                "https://notes.local/my%20notes/a%20b/c%23d%3F.md",
                "https://notes.local/my%20notes/%C3%A9.txt",
                "https://notes.local/my%20notes/100%25.md",
                "https://notes.local/my%20notes/x/%252e%252e.md",
            ]
        );
    }

    #[test]
    fn mirror_takes_host_from_first_folder() {
        let paths = [
            "Vendor.example.com/policies/sla.md",
            "notes/a.md",
            "top.md",
            "vendor.example.com/a.html",
            "vendor.example.com/a.md",
            "vendor.example.com/a.md.txt",
            "vendor.example.com/b.markdown",
            "vendor.example.com/c.HTM",
            "we.b:8080/a.md",
            "with space.com/a.md",
            "Bücher.example/a.md",
            "xn--bcher-kva.example/b.md",
        ];
        let addresses = assigned(&Layout::Mirror, &paths);
        let texts: Vec<&str> =
            addresses.iter().map(|address| address.as_deref().unwrap_or("none")).collect();
        assert_eq!(
            texts,
            [
                "https://vendor.example.com/policies/sla",
                "none",
                "none",
                "https://vendor.example.com/a",
                "https://vendor.example.com/a.md",
                "https://vendor.example.com/a.md.txt",
                "https://vendor.example.com/b.markdown",
                "https://vendor.example.com/c",
                "none",
                "none",
                "https://xn--bcher-kva.example/a",
                "https://xn--bcher-kva.example/b",
            ]
        );
    }

    #[test]
    fn address_spellings_are_equal() {
        for (spelled, same) in [
            ("https://NOTES.local/a%62c.md#part", Some("https://notes.local/abc.md")),
            ("https://notes.local:443/é.md", Some("https://notes.local/%C3%A9.md")),
            ("https://notes.local/a/../b.md", Some("https://notes.local/b.md")),
            (
                "https://notes.local/%2e%2e/%2E%2E/etc/passwd",
                Some("https://notes.local/etc/passwd"),
            ),
            ("https://notes.local/..%2F..%2Fetc%2Fpasswd", None),
            ("https://notes.local/a%00.md", None),
            ("https://notes.local/a.md?ref=search", None),
            ("https://me:secret@notes.local/a.md", None),
            ("file:///etc/passwd", None),
            ("/etc/passwd", None),
            ("", None),
        ] {
            assert_eq!(canonical_address(spelled).as_deref(), same, "{spelled}");
        }
    }

    #[test]
    fn base_accepts_only_extendable_address() {
        for base in ["notes.local", "file:///home", "https://notes.local/?a=", "https://x/#y"] {
            assert!(Layout::new(Some(base)).is_err(), "{base}");
        }
        assert_eq!(Layout::new(Some("http://h/x")), Ok(Layout::Under("http://h/x/".to_owned())));
        assert_eq!(Layout::new(None), Ok(Layout::Mirror));
    }

    fn names() -> impl Strategy<Value = BTreeSet<PathBuf>> {
        let name = prop_oneof![
            "[ab]{1,2}(\\.(md|MD|html|txt|pdf|markdown)){0,3}",
            "[^/\\x00]{1,6}".prop_filter("no name", |name| !matches!(&**name, "." | "..")),
        ];
        let host =
            prop_oneof![Just("a.example".to_owned()), Just("A.example".to_owned()), "[a-z]{3}"];
        let path = (host, prop::collection::vec(name, 1..4));
        let path = path.prop_map(|(host, names)| {
            let mut path = PathBuf::from(host);
            path.extend(names);
            path
        });
        prop::collection::btree_set(path, 0..12)
    }

    proptest! {
        /// Each address belongs to one file, and is found in any spelling.
        #[test]
        fn addresses_map_one_to_one(paths in names(), mirror: bool) {
            let layout = if mirror { Layout::Mirror } else { under() };
            let addresses = layout.addresses(paths.iter().map(PathBuf::as_path));
            prop_assert_eq!(addresses.len(), paths.len());
            let known: Vec<&String> = addresses.iter().flatten().collect();
            let different: BTreeSet<&String> = known.iter().copied().collect();
            prop_assert_eq!(different.len(), known.len());
            if !mirror {
                prop_assert_eq!(known.len(), paths.len());
            }
            for address in known {
                let found = canonical_address(address);
                prop_assert_eq!(found.as_ref(), Some(address));
                // Spelled differently, unless `e` is part of a percent escape.
                let (host, path) = address.split_at(address.find('/').unwrap_or(0) + 2);
                let (host, path) = (host.len(), path.find('/').unwrap_or(0));
                let (host, path) = address.split_at(host + path);
                if !path.contains('%') {
                    let found = canonical_address(&format!("{host}{}", path.replace('e', "%65")));
                    prop_assert_eq!(found.as_ref(), Some(address));
                }
            }
        }
    }
}
