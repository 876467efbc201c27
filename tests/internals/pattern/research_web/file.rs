//! A scenario file of research over sites on this machine, and what a run of it came to.

use std::sync::Arc;
use std::time::SystemTime;

use crate::engine::{Launch, RunHandle, Toolbox};
use crate::log::event::{Event, EventKind, FailureClass, Purpose, World};
use crate::scenario::Scenario;
use crate::scenario::patterns::research::READ;
use crate::scenario::tools::ToolKind;
use crate::scenario::tools::documents::ReadSpec;
use crate::tool::web::cache::Cache;
use crate::tool::web::{Web, WebReader};
use serde_json::{Value, json};

use crate::support::research::{ended, engine, outcome, read, world};
use crate::support::web_research::{FACT, File, QUESTION};

impl File {
    pub fn scenario(&self) -> Arc<Scenario> {
        read(&self.text(), &[])
    }

    /// What a run of it is started with: the tools are those of the file, its reader remembers
    /// nothing of robots.txt and keeps no pages.
    pub fn launch(&self) -> Launch {
        self.launch_with(None)
    }

    /// The same with a reader that keeps pages here.
    pub fn launch_with(&self, cache: Option<Cache>) -> Launch {
        let scenario = self.scenario();
        let tool = scenario.tools.get(READ).expect("a tool that reads");
        let Some(ToolKind::Read(read)) = &tool.kind else { panic!("it reads") };
        let ReadSpec::Web(spec) = &**read else { panic!("it reads from the web") };
        let web = Web::new(Arc::default(), cache, Arc::new(SystemTime::now));
        let mut tools = Toolbox::make(&scenario, false, &|_| None).expect("its tools");
        tools.replace(READ, Box::new(WebReader::new(spec.clone(), web)));
        Launch { tools: Some(tools), ..Launch::scripted(scenario, false) }
    }

    /// Plays it to its end.
    pub async fn play(&self) -> Told {
        Told::of(&engine().start(self.launch())).await
    }
}

/// What a run came to.
pub struct Told {
    pub outcome: Value,
    pub world: World,
    pub facts: Vec<Arc<Event>>,
}

impl Told {
    /// That of a run, once it has ended: nothing is in flight, every span is closed.
    pub async fn of(run: &RunHandle) -> Self {
        let facts = ended(run).await;
        let world = world(run).await;
        Self { outcome: outcome(&world), world, facts }
    }

    /// The reason of the stop.
    pub fn stop(&self) -> &str {
        self.outcome["stop_reason"].as_str().expect("a reason")
    }

    /// Address and reason of each source that was skipped.
    pub fn skipped(&self) -> Vec<(String, String)> {
        self.rows("skipped_sources", &["url", "reason"])
            .into_iter()
            .map(|row| (row[0].clone(), row[1].clone()))
            .collect()
    }

    /// Address, reason and where it led, of each source that was denied.
    pub fn denied(&self) -> Vec<[String; 3]> {
        let of_history = self.outcome["history"].as_array().into_iter().flatten();
        let reading = of_history.filter_map(|row| row["denied_sources"].as_array()).next();
        let among = reading.or_else(|| self.outcome["denied_sources"].as_array());
        let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let row = |row: &Value| [text(row, "url"), text(row, "reason"), text(row, "location")];
        among.into_iter().flatten().map(row).collect()
    }

    /// Address and reason of each source that fell out before any gate.
    pub fn dropped(&self) -> Vec<(String, String)> {
        self.rows("dropped_sources", &["url", "reason"])
            .into_iter()
            .map(|row| (row[0].clone(), row[1].clone()))
            .collect()
    }

    fn rows(&self, name: &str, keys: &[&str]) -> Vec<Vec<String>> {
        let rows = self.outcome[name].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        rows.map(|row| keys.iter().map(|key| text(&row[*key])).collect()).collect()
    }

    /// What each repeat of a read came after, by class and status.
    pub fn retried(&self) -> Vec<(FailureClass, Option<u16>)> {
        let retried = self.facts.iter().filter_map(|fact| match &fact.kind {
            EventKind::CallRetried { cause: after, status, .. } => Some((*after, *status)),
            _ => None,
        });
        retried.collect()
    }

    /// What the attempts at pages failed of.
    pub fn failed(&self) -> Vec<FailureClass> {
        let failed = self.facts.iter().filter_map(|fact| match &fact.kind {
            EventKind::AttemptFailed(failed) => Some(failed.class),
            _ => None,
        });
        failed.collect()
    }

    /// Calls that read.
    pub fn reads(&self) -> usize {
        let is_read = |fact: &&Arc<Event>| matches!(&fact.kind, EventKind::CallStarted(call) if matches!(call.purpose, Purpose::Read { .. }));
        self.facts.iter().filter(is_read).count()
    }

    /// The rows of `trace` without what hangs on the clock.
    pub fn trace(&self) -> Value {
        let mut trace = self.outcome["trace"].clone();
        for row in trace.as_array_mut().expect("a trace") {
            let row = row.as_object_mut().expect("a row");
            let took = row.remove("elapsed_ms").expect("how long it took");
            assert!(took.as_u64().is_some_and(|ms| ms >= 1));
        }
        trace
    }

    /// That it ended well, with one note of this page alone, and with the trace that belongs to it.
    #[track_caller]
    pub fn ended_well_with(&self, good: &str, found: usize, denied: usize) {
        self.ended_well_after(1, good, found, denied);
    }

    /// The same after this many pages that arrived, with any result.
    #[track_caller]
    pub fn ended_well_after(&self, pages: usize, good: &str, found: usize, denied: usize) {
        let told = &self.outcome;
        assert_eq!((&told["status"], self.stop()), (&json!("ok"), "success"), "{told}");
        assert_eq!(told["citations"], json!(["n1"]), "{told}");
        assert_eq!(told["citation_details"][0]["url"], good, "{told}");
        assert_eq!(told["notes"][0]["quote"], FACT);
        assert_eq!(told["aggregate"]["pages_read"], pages);
        assert_eq!(told["aggregate"]["denied_sources"].as_array().map(Vec::len), Some(denied));
        let trace = json!([
            { "step": 1, "phase": "plan", "steps": 5, "ok": true },
            { "step": 2, "phase": "search", "query": QUESTION, "candidates": found, "ok": true },
            { "step": 3, "phase": "dedupe", "urls_after_dedupe": found, "ok": true },
            { "step": 4, "phase": "read_extract", "pages_read": pages, "notes": 1, "denied_sources": denied, "ok": true },
            { "step": 5, "phase": "verify", "checked_notes": 1, "issues": 0, "ok": true },
            { "step": 6, "phase": "synthesize", "answer_chars": told["answer"].as_str().map_or(0, |it| it.chars().count()), "citations": 1, "ok": true },
        ]);
        assert_eq!(self.trace(), trace);
    }
}
