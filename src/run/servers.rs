//! The tools of MCP servers in a run. Each server is asked once, before the pattern begins, by a call
//! through the gateway. So the log has the definitions: they stay as they are for the whole run, and a run
//! that is executed again needs no server.
//!
//! What a server says of its tools is compared with what the operator has seen of them before. A person
//! decides about tools that have changed, and whether tools that call themselves read-only need approval.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::questions::Question;
use super::{CallerPolicy, OrderedJoinSet, RunContext, ToolCallRequest};
use crate::base::json_schema;
use crate::base::json_text::to_canonical_json;
use crate::base::name::{PersonName, ToolName};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::sha256_of_text;
use crate::base::visible::visible_within;
use crate::gateway::{Tool, ToolRequest};
use crate::log::event::question::{ACCEPT, ALLOW, ASK, LEAVE_OUT};
use crate::log::event::tool::OfferedTool;
use crate::log::event::{
    Answer, AnsweredBy, EventKind, FailureClass, ListedTool, Purpose, Reply, SpanId, StopReason,
    Subject, ToolNote,
};
use crate::scenario::Scenario;
use crate::scenario::people::{OPERATOR, Otherwise, names_tool};
use crate::scenario::spec::tool::{ToolOffer, ToolSpec};
use crate::scenario::tools::mcp::{full_name, model_name, split_name};

/// Most tools of a server that a run uses.
const MAX_TOOLS: usize = 128;
/// Longest description of a tool, in bytes.
const MAX_DESCRIPTION: usize = 8 << 10;
/// Longest name of a tool, in bytes.
const MAX_NAME: usize = 128;
/// Most characters of a description in a question.
const NOTE_CHARS: usize = 300;

/// What the operator has seen and allowed of the tools of MCP servers.
pub trait SeenTools: Send + Sync {
    /// The tools of a server, by its names of them. `server`: a digest of how it is reached.
    fn of_server(&self, server: &str) -> BTreeMap<String, SeenTool>;

    /// Saves what was seen and allowed of a server's tools.
    fn save(&self, server: &str, tools: BTreeMap<String, SeenTool>) -> Result<(), Refused>;
}

/// A tool that the operator has seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeenTool {
    /// SHA-256 of its definition.
    pub pin: String,
    /// Its name, description and schemas.
    pub definition: Value,
    /// Whether its calls need no approval.
    #[serde(default)]
    pub allowed: bool,
    /// Whether a person has decided that.
    #[serde(default)]
    pub decided: bool,
}

/// Nothing was seen before, and nothing is saved.
pub struct NoSeenTools;

impl SeenTools for NoSeenTools {
    fn of_server(&self, _: &str) -> BTreeMap<String, SeenTool> {
        BTreeMap::new()
    }

    fn save(&self, _: &str, _: BTreeMap<String, SeenTool>) -> Result<(), Refused> {
        Ok(())
    }
}

/// What a server lists, as the result of its call in the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    /// A digest of how the server is reached.
    pub server: String,
    /// Its tools, in its order.
    pub tools: Vec<OfferedTool>,
    /// What the operator had seen of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<String, SeenTool>,
}

impl Listing {
    /// Asks a server for its tools outside of a run. `tool`: all tools of the server of this name.
    pub async fn of_server(
        tool: &dyn Tool,
        name: &str,
        within: Duration,
        seen: &dyn SeenTools,
    ) -> Result<Self, Refused> {
        let (what, args) = (format!("the MCP server {name} lists no tools"), Map::new());
        let request = ToolRequest { tool: name, ..ToolRequest::bare(&args) };
        let listed = match tokio::time::timeout(within, tool.ask(request)).await {
            Ok(listed) => listed.map_err(|failed| Refused::new(&*what).because(failed.text))?,
            Err(_) => {
                let help = "raise start_timeout_s, or start it by itself to see what it waits for";
                let seconds = within.as_secs_f64();
                let cause = format!("it did not answer within {seconds} s");
                return Err(Refused::new(what).because(cause).help(help));
            }
        };
        let result = Self::with_seen(&listed, seen).unwrap_or_default();
        serde_json::from_value(result).or_refuse(what)
    }

    /// What the operator knows of a tool, in one word: new, changed, allowed, or that each call asks.
    pub fn state_of(&self, tool: &OfferedTool) -> &'static str {
        match self.seen.get(&tool.name) {
            None => "new",
            Some(seen) if seen.pin != tool.pin() => "changed",
            Some(seen) if seen.allowed => "allowed",
            Some(_) => "asks",
        }
    }

    /// What is different from what the operator has seen of a tool, in lines; `None`: nothing.
    pub fn changes_of(&self, tool: &OfferedTool) -> Option<String> {
        let before = self.seen.get(&tool.name).filter(|before| before.pin != tool.pin())?;
        Some(changes(before, tool))
    }

    /// Saves that the operator has seen what changed. Calls of such a tool need approval again.
    pub fn accept_changes(&self, seen: &dyn SeenTools) -> Result<(), Refused> {
        let changed = self.tools.iter().filter(|tool| self.changes_of(tool).is_some());
        let now = |tool: &OfferedTool| SeenTool {
            pin: tool.pin(),
            definition: tool.definition(),
            ..SeenTool::default()
        };
        seen.save(&self.server, changed.map(|tool| (tool.name.clone(), now(tool))).collect())
    }

    /// The result of a server with what the operator has seen of its tools.
    pub fn with_seen(result: &Value, seen: &dyn SeenTools) -> Option<Value> {
        let mut listing = Self::deserialize(result).ok()?;
        listing.seen = seen.of_server(&listing.server);
        listing.seen.retain(|name, _| listing.tools.iter().any(|tool| tool.name == *name));
        serde_json::to_value(listing).ok()
    }
}

/// A tool of a server that the run may call.
#[derive(Clone, Debug)]
pub(crate) struct ServerTool {
    /// What agents are offered.
    pub offer: ToolOffer,
    /// SHA-256 of its definition.
    pub pin: Arc<str>,
    /// What allows its calls without approval.
    pub allowed: Option<Arc<str>>,
}

/// The tools that a scenario wants of a server: names, or beginnings of names and `*`.
struct WantedTools<'s> {
    spec: &'s ToolSpec,
    tools: BTreeSet<String>,
    /// An agent is offered them: without them the run cannot begin.
    is_needed: bool,
}

impl WantedTools<'_> {
    fn has(&self, tool: &str) -> bool {
        self.tools.iter().any(|named| names_tool(named, tool))
    }
}

/// The servers of a scenario whose tools it uses.
fn wanted_servers(scenario: &Scenario) -> Vec<WantedTools<'_>> {
    let mut wanted: BTreeMap<&str, (BTreeSet<String>, bool)> = BTreeMap::new();
    let pattern = scenario.pattern.get();
    let agents = pattern.agents().into_iter().flat_map(|agents| agents.values());
    for tool in agents.filter_map(|agent| agent.kind.model()).flat_map(|model| &model.tools) {
        if let Some((server, tool)) = split_name(tool.as_str()) {
            let (tools, is_needed) = wanted.entry(server).or_default();
            tools.insert(tool.to_owned());
            *is_needed = true;
        }
    }
    let single = scenario.tools.values().filter_map(|spec| spec.kind.as_ref()?.mcp());
    for spec in single {
        if let Some(tool) = &spec.tool {
            wanted.entry(&spec.server.name).or_default().0.insert(tool.clone());
        }
    }
    let found = wanted.into_iter().filter_map(|(server, (tools, is_needed))| {
        let spec = scenario.tools.get(server)?;
        let is_optional = spec.kind.as_ref()?.mcp()?.server.optional;
        Some(WantedTools { spec, tools, is_needed: is_needed && !is_optional })
    });
    found.collect()
}

/// A server lists its tools: there is no other policy.
struct ListingCaller;

impl CallerPolicy for ListingCaller {}

impl RunContext {
    /// Asks the servers of the scenario for their tools.
    pub(crate) async fn list_server_tools(&self, scenario: &Scenario) -> Result<(), StopReason> {
        let wanted = wanted_servers(scenario);
        if wanted.is_empty() {
            return Ok(());
        }
        let fork = self.control().fork(u32::try_from(wanted.len()).unwrap_or(u32::MAX));
        let mut calls = OrderedJoinSet::default();
        for (place, server) in wanted.iter().enumerate() {
            let fork = &fork;
            calls.spawn(place, async move {
                let listed = self.list_tools_of(&server.spec.name).await;
                fork.done();
                listed
            });
        }
        let mut listed = Vec::new();
        for place in 0..wanted.len() {
            listed.extend(calls.take(place).await);
        }
        // Nobody is asked about the tools of a server if another one stops the run.
        let is_missing = |(server, listed): &(&WantedTools<'_>, &Result<Listing, StopReason>)| {
            server.is_needed && listed.is_err()
        };
        if let Some((_, Err(reason))) = wanted.iter().zip(&listed).find(is_missing) {
            return Err(reason.clone());
        }
        let mut known = BTreeMap::new();
        for (server, listed) in wanted.iter().zip(listed) {
            if let Ok(listing) = listed {
                self.decide_about(server, listing, &mut known).await?;
            }
        }
        let _ = self.server_tools.set(known);
        Ok(())
    }

    async fn list_tools_of(&self, server: &ToolName) -> Result<Listing, StopReason> {
        let request = ToolCallRequest {
            parent: SpanId::RUN,
            of_program: None,
            tool: server,
            purpose: Purpose::ListTools,
            path: format!("list:{server}"),
            args: Arc::default(),
            request_id: None,
            caller: &ListingCaller,
            why: None,
            client_retries: 0,
        };
        let answered = self.call_tool(request).await.map_err(|failed| failed.reason)?;
        let result = answered.reply.result.as_deref();
        let listing = result.and_then(|result| Listing::deserialize(result).ok());
        listing.ok_or_else(|| StopReason::ToolError(server.clone(), FailureClass::BadResponse))
    }

    /// Decides which of the listed tools the run may call, and publishes them.
    async fn decide_about(
        &self,
        server: &WantedTools<'_>,
        listing: Listing,
        known: &mut BTreeMap<ToolName, ServerTool>,
    ) -> Result<(), StopReason> {
        let name = &server.spec.name;
        let (mut tools, mut left_out) = usable_tools(server, listing.tools);
        let mut seen = listing.seen;
        let changed: Vec<ToolNote> = tools
            .iter()
            .filter_map(|tool| {
                let before = seen.get(&tool.name).filter(|before| before.pin != tool.pin())?;
                Some(ToolNote { name: (*tool.name).into(), text: changes(before, tool).into() })
            })
            .collect();
        if !changed.is_empty() {
            let leave_out = Otherwise::Answer(LEAVE_OUT.into());
            match &*self.ask_about_tools(name, true, &changed, leave_out).await?.0 {
                ACCEPT => {}
                LEAVE_OUT => {
                    let is_changed =
                        |tool: &OfferedTool| changed.iter().any(|note| *note.name == *tool.name);
                    let why = "it has changed since it was allowed";
                    let out = tools.extract_if(.., |tool| is_changed(tool));
                    left_out.extend(out.map(|tool| left_out_tool(&tool.name, why)));
                }
                _ => return Err(StopReason::ToolError(name.clone(), FailureClass::Denied)),
            }
        }
        for tool in &tools {
            let was = seen.remove(&tool.name).unwrap_or_default();
            let (pin, definition) = (tool.pin(), tool.definition());
            // What it may do now was not decided.
            let is_same = was.pin == pin;
            let (allowed, decided) = (was.allowed && is_same, was.decided && is_same);
            seen.insert(tool.name.clone(), SeenTool { pin, definition, allowed, decided });
        }
        self.offer_to_allow(server, &tools, &mut seen).await?;
        if self.bus().replay().is_none_or(|replay| replay.is_live())
            && let Err(why) = self.seen_tools.save(&listing.server, seen.clone())
        {
            let text = format!("what was decided about the tools of {name} is not saved: {why:#}");
            self.publish(SpanId::RUN, EventKind::Warning { text });
        }
        let mut listed = Vec::new();
        for tool in tools {
            let full = full_name(name.as_str(), &tool.name);
            let is_allowed = seen.get(&tool.name).is_some_and(|seen| seen.allowed);
            let by_file = server.spec.kind.as_ref().and_then(|kind| kind.mcp());
            let allowed: Option<Arc<str>> = match by_file {
                Some(spec) if spec.server.allows(&tool.name) => {
                    Some(format!("mcp.{name}.allow").into())
                }
                _ => is_allowed.then(|| format!("{full} is allowed by the operator").into()),
            };
            let pin = tool.pin();
            listed.push(ListedTool {
                name: full.as_str().into(),
                model_name: model_name(&full),
                pin: pin.clone(),
                allowed: allowed.is_some(),
            });
            let mut parameters = tool.parameters;
            // Some providers refuse a schema that names its dialect.
            if let Some(schema) = parameters.as_object_mut() {
                schema.remove("$schema");
            }
            let offer = ToolOffer {
                name: model_name(&full).into(),
                description: tool.description.into(),
                parameters: Arc::new(parameters),
            };
            known.insert(full.into(), ServerTool { offer, pin: pin.into(), allowed });
        }
        let tool = name.clone();
        self.publish(SpanId::RUN, EventKind::ToolsListed { tool, tools: listed, left_out });
        Ok(())
    }

    /// Offers to allow calls of tools that say they only read, if nothing else decides about them and
    /// nobody has decided it before.
    async fn offer_to_allow(
        &self,
        server: &WantedTools<'_>,
        tools: &[OfferedTool],
        seen: &mut BTreeMap<String, SeenTool>,
    ) -> Result<(), StopReason> {
        let spec = server.spec;
        let by_file = spec.kind.as_ref().and_then(|kind| kind.mcp());
        let is_open = |tool: &&OfferedTool| {
            tool.reads_only
                && spec.asks_by_default.is_some()
                && !by_file.is_some_and(|spec| spec.server.allows(&tool.name))
                && seen.get(&tool.name).is_some_and(|seen| !seen.decided)
        };
        let notes: Vec<ToolNote> = tools.iter().filter(is_open).map(note_of).collect();
        if notes.is_empty() {
            return Ok(());
        }
        let ask = Otherwise::Answer(ASK.into());
        let (choice, by) = self.ask_about_tools(&spec.name, false, &notes, ask).await?;
        // If nobody has decided, a person is asked the next time.
        let decided = !matches!(by, AnsweredBy::Nobody);
        for note in &notes {
            if let Some(seen) = seen.get_mut(&*note.name) {
                (seen.allowed, seen.decided) = (&*choice == ALLOW, decided);
            }
        }
        Ok(())
    }

    async fn ask_about_tools(
        &self,
        server: &ToolName,
        changed: bool,
        tools: &[ToolNote],
        otherwise: Otherwise,
    ) -> Result<(Arc<str>, AnsweredBy), StopReason> {
        let question = Question {
            span: SpanId::RUN,
            inside: SpanId::RUN,
            by: None,
            why: None,
            subject: Subject::Tools { tool: server.clone(), changed, tools: tools.into() },
            asking: self.asking(&PersonName::from(OPERATOR), otherwise),
            rule: None,
        };
        let ended = self.questions().ask(question).await?;
        let choice = match &ended.answered.answer {
            Answer::Choose { choice, .. } => Arc::clone(choice),
            _ => Arc::default(),
        };
        Ok((choice, ended.answered.by.clone()))
    }

    /// A tool of a server, by its name in the run.
    pub(crate) fn server_tool(&self, name: &str) -> Option<&ServerTool> {
        self.server_tools.get()?.get(name)
    }

    /// The tools that an agent may call, of the names that the scenario gives it.
    pub(crate) fn agent_tools<'a>(
        &'a self,
        scenario: &'a Scenario,
        names: &'a [ToolName],
    ) -> impl Iterator<Item = (&'a ToolName, &'a ToolOffer)> {
        names.iter().flat_map(move |named| {
            let own = scenario.tools.get(named).map(|spec| (&spec.name, &spec.offer));
            let of_server =
                self.server_tools.get().filter(|_| split_name(named.as_str()).is_some());
            let of_server = of_server.into_iter().flatten();
            let of_server = of_server.filter(|(tool, _)| names_tool(named.as_str(), tool.as_str()));
            let of_server = of_server.map(|(tool, found)| (tool, &found.offer));
            own.filter(|_| split_name(named.as_str()).is_none()).into_iter().chain(of_server)
        })
    }

    /// The result of a server that lists its tools, with what the operator has seen of them.
    pub(super) fn listing_reply(&self, reply: Reply) -> Reply {
        let seen = &*self.seen_tools;
        let listing = reply.result.as_deref().and_then(|it| Listing::with_seen(it, seen));
        match listing {
            Some(listing) => Reply::from_tool_result(Arc::new(listing)),
            None => reply,
        }
    }
}

/// The wanted tools that can be used, and the others with the reason.
fn usable_tools(
    server: &WantedTools<'_>,
    offered: Vec<OfferedTool>,
) -> (Vec<OfferedTool>, Vec<ToolNote>) {
    let (mut tools, mut left_out): (Vec<OfferedTool>, Vec<ToolNote>) = Default::default();
    for tool in offered.into_iter().filter(|tool| server.has(&tool.name)) {
        let is_odd = |c: char| c.is_control() || c.is_whitespace();
        let why =
            if tool.name.is_empty() || tool.name.len() > MAX_NAME || tool.name.contains(is_odd) {
                "its name cannot be used".to_owned()
            } else if tools.iter().any(|other| other.name == tool.name) {
                "it is listed twice".to_owned()
            } else if tool.description.len() > MAX_DESCRIPTION {
                format!(
                    "its description has {} bytes, at most {MAX_DESCRIPTION}",
                    tool.description.len()
                )
            } else if let Err(why) = json_schema::of_object(&tool.parameters) {
                why
            } else if tools.len() == MAX_TOOLS {
                format!("a run uses at most {MAX_TOOLS} tools of a server")
            } else {
                tools.push(tool);
                continue;
            };
        left_out.push(left_out_tool(&tool.name, &why));
    }
    for named in &server.tools {
        let is_listed = |name: &str| names_tool(named, name);
        let found = tools.iter().any(|tool| is_listed(&tool.name))
            || left_out.iter().any(|tool| is_listed(&tool.name));
        if !found {
            left_out.push(left_out_tool(named, "the server does not list it"));
        }
    }
    (tools, left_out)
}

fn left_out_tool(name: &str, why: &str) -> ToolNote {
    ToolNote { name: visible_within(name, MAX_NAME).into(), text: why.into() }
}

fn note_of(tool: &OfferedTool) -> ToolNote {
    let text = visible_within(tool.description.trim(), NOTE_CHARS).into();
    ToolNote { name: (*tool.name).into(), text }
}

/// What has changed in the definition of a tool, a line each.
fn changes(before: &SeenTool, now: &OfferedTool) -> String {
    let after = now.definition();
    let mut lines = Vec::new();
    let text =
        |definition: &Value| definition["description"].as_str().unwrap_or_default().to_owned();
    let (was, is) = (text(&before.definition), text(&after));
    if was != is {
        lines.push(format!("description was: {}", visible_within(&was, NOTE_CHARS)));
        lines.push(format!("description is: {}", visible_within(&is, NOTE_CHARS)));
    }
    for (key, what) in [("parameters", "arguments"), ("result", "result")] {
        let (was, is) = (&before.definition[key], &after[key]);
        if was == is {
            continue;
        }
        let fields = |schema: &Value| schema["properties"].as_object().cloned().unwrap_or_default();
        let (had, has) = (fields(was), fields(is));
        let mut parts = Vec::new();
        for (name, field) in &has {
            match had.get(name) {
                None => parts.push(format!("{name} added")),
                Some(old) if old != field => parts.push(format!("{name} changed")),
                Some(_) => {}
            }
        }
        parts.extend(
            had.keys().filter(|name| !has.contains_key(*name)).map(|it| format!("{it} removed")),
        );
        if parts.is_empty() {
            parts.push("other rules".to_owned());
        }
        lines.push(visible_within(&format!("{what}: {}", parts.join(", ")), NOTE_CHARS));
    }
    lines.join("\n")
}

impl OfferedTool {
    /// Its name, description and schemas, in one value.
    pub(crate) fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
            "result": self.result,
        })
    }

    /// SHA-256 of its definition.
    pub(crate) fn pin(&self) -> String {
        sha256_of_text(&to_canonical_json(&self.definition()))
    }
}
