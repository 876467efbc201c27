//! Parser of `robots.txt` (RFC 9309). Written here because the available crates are unmaintained or
//! need a newer compiler, and this much is all that is needed.
//!
//! Cache of the `robots.txt` rules of sites.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::Url;
use tokio::time::Instant;

/// Product token of this program in `User-agent` lines.
const TOKEN: &str = "roundtable";

/// The rules of a site for this program.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RobotsRules {
    rules: Vec<Rule>,
    /// Requested pause between two requests; not part of the RFC, but common.
    pub(super) crawl_delay: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq)]
struct Rule {
    allow: bool,
    /// Path pattern in normalised percent-encoding.
    pattern: String,
}

impl RobotsRules {
    /// Parses the rules for this program: those of all groups that name it, else those of all `*`
    /// groups.
    pub(crate) fn parse(text: &str) -> Self {
        let (mut ours, mut everyones, mut named) = (Self::default(), Self::default(), false);
        // Which user agents the current group applies to, and whether it has rules already: the
        // next `User-agent` line then starts a new group.
        let (mut for_us, mut for_all, mut begun) = (false, false, true);
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for line in text.split(['\n', '\r']) {
            let line = line.split('#').next().unwrap_or_default();
            let Some((key, value)) = line.split_once(':') else { continue };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            if matches!(key.as_str(), "user-agent" | "useragent" | "user agent") {
                if std::mem::take(&mut begun) {
                    (for_us, for_all) = (false, false);
                }
                for_all |= value == "*";
                if product_token(value).eq_ignore_ascii_case(TOKEN) {
                    (for_us, named) = (true, true);
                }
                continue;
            }
            if !matches!(key.as_str(), "allow" | "disallow" | "crawl-delay") {
                continue;
            }
            begun = true;
            let groups = [(for_us, &mut ours), (for_all, &mut everyones)];
            for (_, group) in groups.into_iter().filter(|(it_is, _)| *it_is) {
                group.add(&key, value);
            }
        }
        if named { ours } else { everyones }
    }

    fn add(&mut self, key: &str, value: &str) {
        if key == "crawl-delay" {
            let seconds = value.parse().ok().filter(|seconds: &f64| *seconds >= 0.0);
            let delay = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            self.crawl_delay = delay.or(self.crawl_delay);
        } else if !value.is_empty() {
            self.rules.push(Rule { allow: key == "allow", pattern: encoded(value) });
        }
    }

    /// Whether this page may be read: the longest matching rule decides, `Allow` if two are equally
    /// long.
    pub(crate) fn allows(&self, url: &Url) -> bool {
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let path = encoded(&format!("{}{query}", url.path()));
        let fitting = self.rules.iter().filter(|rule| pattern_matches(&rule.pattern, &path));
        fitting.max_by_key(|rule| (rule.pattern.len(), rule.allow)).is_none_or(|rule| rule.allow)
    }
}

/// Product token of a user agent: `RoundTable` for `RoundTable/1.0`.
fn product_token(agent: &str) -> &str {
    let counts = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '-');
    agent.split(|c| !counts(c)).next().unwrap_or_default()
}

/// Whether a path starts with the pattern; `*` matches anything, a final `$` the end of the path.
fn pattern_matches(pattern: &str, path: &str) -> bool {
    let (pattern, to_the_end) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut parts = pattern.split('*');
    let Some(mut rest) = path.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return !to_the_end || rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if to_the_end && parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    true
}

/// A path in normalised percent-encoding: unreserved characters are not encoded, hex is upper case.
fn encoded(path: &str) -> String {
    let mut out = String::new();
    let mut bytes = path.as_bytes().iter();
    while let Some(&byte) = bytes.next() {
        let hex = |byte: u8| char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok());
        let (byte, escaped) = match (byte, bytes.as_slice()) {
            (b'%', [high, low, ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => {
                    bytes.nth(1);
                    (high << 4 | low, true)
                }
                _ => (byte, false),
            },
            _ => (byte, false),
        };
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
        if plain || (!escaped && byte.is_ascii_graphic()) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// How long rules are cached; RFC 9309 allows a day.
const RULES_TTL: Duration = Duration::from_secs(3_600);
/// How long an unreachable `robots.txt` is cached.
const UNREACHABLE_TTL: Duration = Duration::from_secs(60);
/// Number of sites from which on unused ones are removed.
const MAX_SITES: usize = 1_024;

/// Result of a request for `robots.txt`.
#[derive(Debug)]
pub(crate) enum RobotsReply {
    /// The rules; empty if the site has no `robots.txt`.
    Rules(RobotsRules),
    /// The site failed with this status: everything is disallowed (RFC 9309, 2.3.1.4).
    Unreachable(u16),
    /// `robots.txt` redirects to this address, which this run must not read.
    RedirectedAway(String),
}

/// A result with the time for which it is cached.
pub(crate) struct CachedRobots {
    reply: Arc<RobotsReply>,
    ttl: Duration,
}

impl CachedRobots {
    /// Cached for the usual time.
    pub(crate) fn cached(reply: RobotsReply) -> Self {
        Self { reply: Arc::new(reply), ttl: RULES_TTL }
    }

    /// Cached for a short time only.
    pub(super) fn briefly_cached(reply: RobotsReply) -> Self {
        Self { reply: Arc::new(reply), ttl: UNREACHABLE_TTL }
    }

    /// Not cached: valid for this request alone.
    pub(super) fn uncached(reply: RobotsReply) -> Self {
        Self { reply: Arc::new(reply), ttl: Duration::ZERO }
    }
}

type RobotsSlot = Arc<tokio::sync::Mutex<Option<(Instant, Arc<RobotsReply>)>>>;

/// Cached `robots.txt` results by scheme, host and port.
#[derive(Debug, Default)]
pub(crate) struct RobotsCache(Mutex<HashMap<String, RobotsSlot>>);

impl RobotsCache {
    /// The cached result of a site, else the result of `ask`. Concurrent requests for the same site
    /// wait for the first; if that fails or is cancelled, the next one calls its own `ask`.
    pub(super) async fn get_or_fetch<E>(
        &self,
        site: &str,
        ask: impl AsyncFnOnce() -> Result<CachedRobots, E>,
    ) -> Result<Arc<RobotsReply>, E> {
        let slot = self.slot(site);
        let mut slot = slot.lock().await;
        if let Some((until, reply)) = &*slot
            && Instant::now() < *until
        {
            return Ok(Arc::clone(reply));
        }
        let verdict = ask().await?;
        *slot = Some((Instant::now() + verdict.ttl, Arc::clone(&verdict.reply)));
        Ok(verdict.reply)
    }

    fn slot(&self, site: &str) -> RobotsSlot {
        let mut sites = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sites.len() >= MAX_SITES && !sites.contains_key(site) {
            sites.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        Arc::clone(sites.entry(site.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn allows(robots: &str, path: &str) -> bool {
        let url = Url::parse(&format!("https://a.example{path}")).expect(path);
        RobotsRules::parse(robots).allows(&url)
    }

    #[test]
    fn which_group_is_ours() {
        for (robots, allowed) in [
            ("", true),
            ("User-agent: *\nDisallow: /", false),
            ("user-AGENT:*\r\ndisAllow:/ # all\r\n", false),
            ("\u{feff}User-agent: *\rDisallow: /", false),
            ("User-agent: *\nDisallow: /\n\nUser-agent: RoundTable/9 (x)\nDisallow:\n", true),
            ("User-agent: roundtable\nDisallow: /\n\nUser-agent: *\nAllow: /", false),
            ("User-agent: roundtables\nDisallow: /", true),
            ("User-agent: other\nUser-agent: roundtable\nDisallow: /", false),
            ("User-agent: roundtable\nSitemap: x\nUser-agent: other\nDisallow: /", false),
            ("User-agent: other\nDisallow: /\nUser-agent: roundtable\nDisallow: /y", true),
            ("User-agent: roundtable\nDisallow: /y\nUser-agent: roundtable\nDisallow: /x", false),
            ("Disallow: /", true),
            ("User-agent: *\nDisallow: ", true),
            ("User-agent: *\nNonsense\nDisallow /\n: /\nAllow", true),
            ("<html>Not found</html>", true),
        ] {
            assert_eq!(allows(robots, "/x"), allowed, "{robots}");
        }
    }

    #[test]
    fn the_longest_rule_that_fits_decides() {
        for (rules, path, allowed) in [
            ("Disallow: /a\nAllow: /a/b", "/a/b/c", true),
            ("Allow: /a/b\nDisallow: /a", "/a/c", false),
            ("Disallow: /x\nAllow: /x", "/x", true),
            ("Disallow: /fish", "/Fish", true),
            ("Disallow: /fish", "/fishheads?a=b", false),
            ("Disallow: /fish*", "/fish.html", false),
            ("Disallow: /*.php", "/folder/index.php?x", false),
            ("Disallow: /*.php$", "/index.php?x", true),
            ("Disallow: /*.php$", "/index.php.php", false),
            ("Disallow: /fish*.php", "/fishheads/catfish.php", false),
            ("Disallow: /a*b*c$", "/aXbXbXc", false),
            ("Disallow: /a*b*c$", "/aXcXb", true),
            ("Disallow: /$", "/", false),
            ("Disallow: /$", "/x", true),
            ("Disallow: *", "/x", false),
            ("Disallow: /*?", "/x?y", false),
            ("Disallow: /*?", "/x", true),
            // Percent-encoding is normalised.
            ("Disallow: /foo/bar/ツ", "/foo/bar/%E3%83%84", false),
            ("Disallow: /foo/bar/%e3%83%84", "/foo/bar/ツ", false),
            ("Disallow: /foo/bar/%62%61%7A", "/foo/bar/baz", false),
            ("Disallow: /a%3cd.html", "/a%3Cd.html", false),
            ("Disallow: /100%", "/100%", false),
        ] {
            assert_eq!(allows(&format!("User-agent: *\n{rules}"), path), allowed, "{rules} {path}");
        }
    }

    #[test]
    fn how_long_to_wait() {
        for (value, delay) in [
            ("2", Some(2_000)),
            ("0.5", Some(500)),
            ("-1", None),
            ("soon", None),
            ("NaN", None),
            ("1e300", None),
        ] {
            let rules = RobotsRules::parse(&format!("User-agent: *\nCrawl-delay: {value}"));
            assert_eq!(rules.crawl_delay, delay.map(Duration::from_millis), "{value}");
        }
    }

    #[test]
    fn a_hostile_file_takes_no_time() {
        let stars = format!("User-agent: *\nDisallow: /{}$", "*a".repeat(200_000));
        assert!(allows(&stars, &format!("/{}b", "a".repeat(2_000))));
    }

    #[tokio::test(start_paused = true)]
    async fn caches_rules_longer_than_failures() {
        let (permissions, asked) = (RobotsCache::default(), AtomicU32::new(0));
        let ask = async |verdict: CachedRobots| {
            asked.fetch_add(1, Ordering::SeqCst);
            Ok::<_, Infallible>(verdict)
        };
        let rules = || CachedRobots::cached(RobotsReply::Rules(RobotsRules::default()));
        let trouble = || CachedRobots::briefly_cached(RobotsReply::Unreachable(503));
        for (verdict, wait, times) in [
            (trouble(), 0, 1),
            (rules(), 59, 1),
            (rules(), 1, 2),
            (trouble(), 3_599, 2),
            (trouble(), 1, 3),
        ] {
            tokio::time::advance(Duration::from_secs(wait)).await;
            let Ok(_) = permissions.get_or_fetch("https://a.example", || ask(verdict)).await;
            assert_eq!(asked.load(Ordering::SeqCst), times);
        }
        let Ok(_) = permissions.get_or_fetch("https://a.example:8443", || ask(rules())).await;
        assert_eq!(asked.load(Ordering::SeqCst), 4, "another port is another site");
    }

    #[tokio::test(start_paused = true)]
    async fn never_caches_reply_for_one_run() {
        let permissions = RobotsCache::default();
        let elsewhere = async || {
            Ok::<_, Infallible>(CachedRobots::uncached(RobotsReply::RedirectedAway(String::new())))
        };
        let Ok(reply) = permissions.get_or_fetch("https://a.example", elsewhere).await;
        assert!(matches!(&*reply, RobotsReply::RedirectedAway(_)));
        let rules = async || {
            Ok::<_, Infallible>(CachedRobots::cached(RobotsReply::Rules(RobotsRules::default())))
        };
        let Ok(reply) = permissions.get_or_fetch("https://a.example", rules).await;
        assert!(matches!(&*reply, RobotsReply::Rules(_)), "another run may read it");
    }

    #[tokio::test]
    async fn a_failure_is_not_kept() {
        let permissions = RobotsCache::default();
        let failed =
            permissions.get_or_fetch("https://a.example", async || Err("no connection")).await;
        assert_eq!(failed.expect_err("it failed"), "no connection");
        let verdict = CachedRobots::cached(RobotsReply::Rules(RobotsRules::default()));
        let reply =
            permissions.get_or_fetch("https://a.example", async || Ok::<_, ()>(verdict)).await;
        assert!(matches!(&*reply.expect("asked again"), RobotsReply::Rules(_)));
    }
}
