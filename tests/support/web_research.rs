//! A scenario file of research over sites on this machine.

use super::site::Site;

/// The question of every run.
pub const QUESTION: &str = "What is the enterprise uptime SLA?";

/// The sentence of a good page that answers it.
pub const FACT: &str = "The enterprise uptime SLA is 99.95% each month.";

/// A good page.
pub const GOOD: &str = "<title>SLA</title><p>The enterprise uptime SLA is 99.95% each month.</p>";

/// A file of research: all by rule, pages from the web without pace, retries without waits.
#[derive(Clone, Debug)]
pub struct File {
    /// `allowed_domains_policy`.
    pub policy: Vec<String>,
    /// `allowed_domains_execution`.
    pub execution: Vec<String>,
    /// `allow_private`.
    pub private: Vec<String>,
    /// The addresses that the search finds, the best first.
    pub found: Vec<String>,
    /// The table of a search that is no fixture.
    pub search: Option<String>,
    /// More of `[research]`.
    pub research: String,
    /// More of `read`.
    pub read: String,
    /// More of `[tools.read_source]`.
    pub tool: String,
    /// More tables.
    pub more: String,
}

impl File {
    /// One for which these sites are allowed, on this machine.
    pub fn of(sites: &[&Site]) -> Self {
        let hosts: Vec<String> = sites.iter().map(|site| site.host.clone()).collect();
        Self {
            policy: hosts.clone(),
            execution: hosts.clone(),
            private: hosts,
            found: Vec::new(),
            search: None,
            research: "plan = \"rule\"\nnotes = \"rule\"\nanswer = \"rule\"".to_owned(),
            read: "robots = false, max_bytes = 100000, max_redirects = 3".to_owned(),
            tool: "timeout_s = 20".to_owned(),
            more: String::new(),
        }
    }

    /// One whose search finds these.
    pub fn finding(self, found: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { found: found.into_iter().map(Into::into).collect(), ..self }
    }

    pub fn text(&self) -> String {
        let Self { policy, execution, private, research, read, tool, more, .. } = self;
        let search = self.search.clone().unwrap_or_else(|| {
            let count = self.found.len() as f64 + 1.0;
            let rows = self.found.iter().enumerate().map(|(place, url)| {
                let score = 1.0 - place as f64 / count;
                format!("{{ url = {url:?}, title = \"Found\", snippet = \"\", score = {score:?} }}")
            });
            let rows: Vec<String> = rows.collect();
            format!(
                "[[tools.search_sources.fixture.rows]]\nresult = {{ status = \"ok\", data = {{ results = [{}] }} }}",
                rows.join(", ")
            )
        });
        format!(
            r#"title = "Research over the web"
pattern = "research"
about = "For tests."
goal = "Find it out."
[budget]
max_seconds = 60
max_urls = 10
max_read_pages = 5
[model]
ask_again = 0
[research]
question = "{QUESTION}"
allowed_domains_policy = {policy:?}
allowed_domains_execution = {execution:?}
{research}
[tools.read_source]
retries = {{ max_attempts = 2, backoff_ms = [0], jitter = false }}
read = {{ web = true, allow_private = {private:?}, pace_ms = 0, cache_ttl_s = {ttl}, {read} }}
{tool}
{search}
{more}
"#,
            ttl = u8::from(read.contains("# kept")) * 60,
            read = read.trim_end_matches("# kept"),
        )
    }
}

/// The file with a search that asks this site.
pub fn with_search(file: File, site: &Site, more: &str) -> File {
    let url = site.url("/search?q={query}&n={k}&format=json");
    File {
        search: Some(format!(
            "[tools.search_sources]\nretries = {{ max_attempts = 2, backoff_ms = [0] }}\nsearch = {{ url = {url:?}, allow_private = true{more} }}"
        )),
        ..file
    }
}
