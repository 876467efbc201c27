//! A run as one page of HTML that needs neither a script nor a network: a pure function of its log.
//! Text is escaped in one place; an attribute is made of numbers and words of the program alone.
//!
//! What belongs to a span is together, in the order in which the spans began, although concurrent
//! calls end in any order. Only what has to wait for an earlier span is held.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::io;
use std::io::Write;

use serde_json::Value;

use super::patterns::words_of;
use super::question::tally_text;
use super::sentence::{model_text, took_ms};
use super::verdict::{reason_id, stop_lead};
use super::{badges, closing, format};
use crate::base::time::Day;
use crate::base::visible::{visible, visible_lines};
use crate::log::event::call::{ChatMessage, Prompt, Reply};
use crate::log::event::result_text::value_text;
use crate::log::event::{Asks, CallStarted, Event, EventKind, Purpose, RunStarted, SpanId, World};
use crate::log::world::SpanKind;
use crate::scenario::spec::tool::ToolCall;
use crate::words::glyph::Glyphs;
use crate::words::sentence::{cut_reply, subject_name};
use crate::words::styled::{StyleRole, StyledLine};
use crate::words::{headless, sentence};

/// Ends a part.
const END: &str = "</section>\n";

/// A page that is being written. It holds a bounded fold of the log so far, and what concurrent calls
/// have said since the earliest of them began.
pub struct RunPageWriter<'o> {
    out: &'o mut dyn Write,
    world: World,
    outline: Outline,
}

impl<'o> RunPageWriter<'o> {
    /// Begins the page of a run. `whole` is the fold of its whole log.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn begin(out: &'o mut dyn Write, whole: &World) -> io::Result<Self> {
        out.write_all(page_head(whole).as_bytes())?;
        Ok(Self { out, world: World::new(), outline: Outline::new() })
    }

    /// Adds the next event of the log.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        self.world.apply(event);
        let span = event.span;
        let opened = event.kind.opens();
        let heading = opened
            .as_ref()
            .and_then(|(parent, kind)| Some((*parent, heading(event, kind, &self.world)?)));
        if let Some((parent, heading)) = heading {
            let parent = self.part_of(parent);
            self.outline.open(parent, span);
            self.outline.add(span, heading);
        }
        let place = self.part_of(span);
        let text = part(event, &self.world, self.purpose(span));
        self.outline.add(place, text);
        if event.kind.closes().is_some() && span != SpanId::RUN && self.outline.has(span) {
            self.outline.add(span, END.to_owned());
            self.outline.close(span);
        }
        self.world.forget_old(1);
        self.outline.write(self.out)
    }

    /// Ends the page.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn end(mut self) -> io::Result<()> {
        self.outline.close_all(END);
        self.outline.write(self.out)?;
        self.out.write_all(page_foot(&self.world).as_bytes())
    }

    /// The nearest span above that has an open part of its own.
    fn part_of(&self, span: SpanId) -> SpanId {
        let mut at = span;
        // A log from a file may have a cycle.
        for _ in 0..64 {
            if self.outline.has(at) {
                return at;
            }
            match self.world.spans.get(at) {
                Some(found) if found.parent != at => at = found.parent,
                _ => break,
            }
        }
        SpanId::RUN
    }

    /// The purpose of the call that a span is, or belongs to.
    fn purpose(&self, span: SpanId) -> Option<&Purpose> {
        let found = self.world.spans.get(span)?;
        match (&found.kind, self.world.spans.get(found.parent).map(|above| &above.kind)) {
            (SpanKind::Call(purpose), _) => Some(purpose),
            (SpanKind::Attempt(_), Some(SpanKind::Call(purpose))) => Some(purpose),
            _ => None,
        }
    }
}

enum OutlinePiece {
    Text(String),
    Child(SpanId),
}

struct OutlineNode {
    pieces: VecDeque<OutlinePiece>,
    is_open: bool,
}

/// The parts of a page that are not written yet.
struct Outline {
    nodes: HashMap<SpanId, OutlineNode>,
    /// From the run to the span that is being written.
    path: Vec<SpanId>,
}

impl Outline {
    /// An outline of the run alone.
    pub(crate) fn new() -> Self {
        let root = OutlineNode { pieces: VecDeque::new(), is_open: true };
        Self { nodes: HashMap::from([(SpanId::RUN, root)]), path: vec![SpanId::RUN] }
    }

    /// Whether this span has a part of its own that is still open.
    pub(crate) fn has(&self, span: SpanId) -> bool {
        self.nodes.get(&span).is_some_and(|node| node.is_open)
    }

    /// Adds a part for a span below this one.
    pub(crate) fn open(&mut self, parent: SpanId, span: SpanId) {
        if self.nodes.contains_key(&span) {
            return;
        }
        if let Some(node) = self.nodes.get_mut(&parent) {
            node.pieces.push_back(OutlinePiece::Child(span));
            self.nodes.insert(span, OutlineNode { pieces: VecDeque::new(), is_open: true });
        }
    }

    /// Adds a text to the part of this span.
    pub(crate) fn add(&mut self, span: SpanId, text: String) {
        if let Some(node) = self.nodes.get_mut(&span) {
            node.pieces.push_back(OutlinePiece::Text(text));
        }
    }

    /// Closes the part of this span.
    pub(crate) fn close(&mut self, span: SpanId) {
        if let Some(node) = self.nodes.get_mut(&span) {
            node.is_open = false;
        }
    }

    /// Closes the parts that are still open: the log ends before they do.
    fn close_all(&mut self, end: &str) {
        for (span, node) in self.nodes.iter_mut().filter(|(_, node)| node.is_open) {
            if *span != SpanId::RUN {
                node.pieces.push_back(OutlinePiece::Text(end.to_owned()));
            }
            node.is_open = false;
        }
    }

    /// Writes what nothing earlier holds up.
    pub(crate) fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        while let Some(span) = self.path.last() {
            let Some(node) = self.nodes.get_mut(span) else {
                self.path.pop();
                continue;
            };
            match node.pieces.pop_front() {
                Some(OutlinePiece::Text(text)) => out.write_all(text.as_bytes())?,
                Some(OutlinePiece::Child(child)) => self.path.push(child),
                None if node.is_open => break,
                None => {
                    self.nodes.remove(span);
                    self.path.pop();
                }
            }
        }
        Ok(())
    }
}

/// Parts that the table of contents names.
const MAX_CONTENTS: usize = 100;

const STYLE: &str = include_str!("style.css");

/// The head of the page, up to its story. `world` is that of the whole log.
fn page_head(world: &World) -> String {
    let head = world.head.as_deref();
    let title = escape_line(head.map_or("A run", |head| &head.title));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n"
    );
    if let Some(head) = head {
        let (scenario, pattern) = (escape_line(head.scenario.as_str()), head.plan.name());
        let _ = writeln!(out, "<p class=\"sub\">{scenario}, {pattern}</p>");
        let _ = writeln!(out, "<pre class=\"said\">{}</pre>", escape_lines(&head.goal));
        out.push_str(&facts(head, world));
    }
    out.push_str("</header>\n");
    out.push_str(&contents(world));
    out.push_str("<main>\n");
    out
}

fn facts(head: &RunStarted, world: &World) -> String {
    let mut out = String::from("<dl>\n");
    let mut row = |name: &str, text: &str, class: &str| {
        let text = escape_line(text);
        let _ = writeln!(out, "<dt>{name}</dt><dd class=\"{class}\">{text}</dd>");
    };
    match &world.progress.closed {
        Some(closed) => {
            let badge = badges::ended(closed.reason.class());
            row("Ended", &stop_lead(world, closed), class(badge.role));
            if let Some(cause) = world.stop_cause() {
                row("Error", &cause, class(badge.role));
            }
            if let Some(id) = reason_id(closed) {
                row("Stop reason", &id, "dim");
            }
            row("Took", &took_ms(closed.elapsed_ms), "");
        }
        None => match world.questions.oldest() {
            Some(open) => {
                let text = format!("not in this log: it waits for {}", open.asked.who);
                row("Ended", &text, "warn");
            }
            None => row("Ended", "not in this log", "warn"),
        },
    }
    let seconds = head.wall_ms / 1_000 % 86_400;
    let day = Day::from_unix_ms(head.wall_ms);
    row("Started", &format!("{day} {:02}:{:02} UTC", seconds / 3_600, seconds / 60 % 60), "");
    row("Run", head.run.as_str(), "");
    row("Model", &model_text(&head.model), "");
    row("Calls", &format::exact(world.tally.calls), "");
    if world.tally.usage.total() > 0 {
        row("Tokens", &format::tokens(world.tally.usage), "");
    }
    if let Some(questions) = tally_text(&world.questions) {
        row("Questions", &questions, "");
    }
    if let Some(cost) = world.cost_usd() {
        row("Cost", &format!("≈ {}", format::usd(cost)), "");
    } else if let Some(cost) = format::cost_at_least(world) {
        row("Cost", &cost, "");
    }
    if !world.settings.flags.is_empty() {
        let word = |on: bool| if on { "on" } else { "off" };
        let flags = world.settings.flags.iter().map(|flag| match &flag.changed {
            Some((_, at, _)) => {
                let (now, before) = (word(flag.on), word(!flag.on));
                format!("{} {now} from {}, {before} before", flag.name, at.as_str())
            }
            None => format!("{} {}", flag.name, word(flag.on)),
        });
        row("Flags", &flags.collect::<Vec<_>>().join(", "), "");
    }
    if head.redacted {
        row("Texts", "redacted: lengths and digests only", "warn");
    }
    out.push_str("</dl>\n");
    out
}

/// Whether a span has a part of its own below the run.
fn has_part(kind: &SpanKind) -> bool {
    !matches!(kind, SpanKind::Run | SpanKind::Attempt(_))
}

fn contents(world: &World) -> String {
    let mut out = String::from("<nav><ul>\n");
    let mut parts = world.spans.children(SpanId::RUN).filter(|span| has_part(&span.kind));
    for span in parts.by_ref().take(MAX_CONTENTS) {
        let name = escape_line(&name(&span.kind, world));
        let _ = writeln!(out, "<li><a href=\"#s{}\">{name}</a></li>", span.id.0);
    }
    let more = parts.count();
    if more > 0 {
        let _ = writeln!(out, "<li>and {} more</li>", format::exact(more as u64));
    }
    out.push_str(
        "<li><a href=\"#outcome\">Outcome</a></li>\n<li><a href=\"#setup\">Setup</a></li>\n",
    );
    out.push_str("</ul></nav>\n");
    out
}

/// The end of the page: the outcome and the setup.
fn page_foot(world: &World) -> String {
    let mut out = String::from("<section id=\"outcome\">\n<h2>Outcome</h2>\n");
    if let Some(words) = words_of(world) {
        out.push_str(&note(&words.result(world)));
    }
    if let Some(answer) = &world.progress.answer {
        let _ = writeln!(out, "<pre class=\"answer\">{}</pre>", escape_lines(answer));
    }
    if let Some(outcome) = world.outcome() {
        let rest = closing::after_answer(&outcome, world);
        if !rest.trim().is_empty() {
            let _ = writeln!(out, "<pre class=\"table\">{}</pre>", escape_lines(rest.trim()));
        }
    }
    out.push_str("</section>\n<section id=\"setup\">\n<h2>Setup</h2>\n");
    if let Some(head) = world.head.as_deref() {
        out.push_str(&setup(head));
    }
    out.push_str("</section>\n</main>\n</body>\n</html>\n");
    out
}

fn setup(head: &RunStarted) -> String {
    let mut out = String::from("<dl>\n");
    for (name, value) in &head.inputs {
        let (name, value) = (escape_line(name), escape_lines(&value_text(value)));
        let _ = writeln!(out, "<dt>{name}</dt><dd>{value}</dd>");
    }
    for flag in &head.flags {
        let (name, label) = (escape_line(flag.name.as_str()), escape_line(&flag.label));
        let _ = writeln!(out, "<dt>{name}</dt><dd>{label}</dd>");
    }
    let _ = writeln!(out, "<dt>seed</dt><dd>{}</dd>\n</dl>", head.seed);
    if let Some(launch) = &head.launch {
        for set in &launch.source.set {
            let _ = writeln!(out, "<p class=\"note\">{}</p>", escape_line(set));
        }
        let text = escape_lines(&launch.source.text);
        let _ =
            writeln!(out, "<details><summary>Scenario</summary>\n<pre>{text}</pre>\n</details>");
        for (path, text) in &launch.source.prompt_files {
            let (path, text) = (escape_line(path), escape_lines(text));
            let _ =
                writeln!(out, "<details><summary>{path}</summary>\n<pre>{text}</pre>\n</details>");
        }
    }
    out
}

/// The text of an element, in which line breaks stay.
fn escape_lines(text: &str) -> String {
    escaped(&visible_lines(text))
}

/// The text of an element on one line.
pub(crate) fn escape_line(text: &str) -> String {
    escaped(&visible(text))
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// Longest text that is shown unfolded, in characters.
const UNFOLDED: usize = 1_200;

/// The heading of a span that has a part of its own; `None`: it has none.
fn heading(event: &Event, kind: &SpanKind, world: &World) -> Option<String> {
    let at = format::time_in_run(world.progress.run_time(event.at));
    let words = words_of(world);
    let id = event.span.0;
    let named = |level: &str, name: &str, more: &str| {
        let (name, more) = (escape_line(name), escape_line(more));
        format!("<{level}>{name}<span>{more}</span><time>{at}</time></{level}>\n")
    };
    let part = |class: &str, heading: String| {
        format!("<section class=\"{class}\" id=\"s{id}\">\n{heading}")
    };
    Some(match kind {
        SpanKind::Run | SpanKind::Attempt(_) => return None,
        SpanKind::Round(_)
        | SpanKind::Task { .. }
        | SpanKind::Source(_)
        | SpanKind::Observed(_) => part("phase", named("h2", &name(kind, world), "")),
        SpanKind::Call(purpose) => {
            let EventKind::CallStarted(call) = &event.kind else { return None };
            let who = subject_name(Some(purpose), words);
            let more = match (purpose.asks(), &call.model) {
                (Asks::Agent, _) => String::new(),
                (Asks::Model, None) => " calls the model".to_owned(),
                (Asks::Model, Some(model)) => format!(" calls {model}"),
                (Asks::Tool, _) => format!(" calls {}", call.tool),
            };
            part("call", named("h3", &who, &more)) + &call_texts(call)
        }
    })
}

/// The name of a part of the page.
fn name(kind: &SpanKind, world: &World) -> String {
    let own = words_of(world).and_then(|words| words.span_name(kind).map(|name| name.into_owned()));
    match kind {
        SpanKind::Round(round) => format!("Round {round}"),
        SpanKind::Task { .. } => format!("Task {}", own.unwrap_or_default()),
        SpanKind::Source(source) => own.unwrap_or_else(|| format!("Source {source}")),
        SpanKind::Call(purpose) => subject_name(Some(purpose), words_of(world)).into_owned(),
        SpanKind::Observed(_) => own.unwrap_or_default(),
        SpanKind::Run | SpanKind::Attempt(_) => String::new(),
    }
}

fn call_texts(call: &CallStarted) -> String {
    let mut out = prompt(&call.prompt);
    if let Some(args) = &call.args {
        out.push_str(&folded("With", &pretty(args), ""));
    }
    out
}

fn prompt(prompt: &Prompt) -> String {
    if prompt.is_empty() {
        return String::new();
    }
    let size: usize = prompt.messages.iter().map(|message| message.content.len()).sum();
    let count = format::count_noun(prompt.messages.len() as u64, "message");
    let mut out = String::from("<details><summary>Prompt: ");
    let _ = write!(out, "{count}, {}", format::bytes(size as u64));
    if prompt.after.is_some() {
        out.push_str(", after an earlier call");
    }
    out.push_str("</summary>\n");
    if let Some(after) = prompt.after {
        let _ = writeln!(
            out,
            "<p class=\"role\">after <a href=\"#s{}\">the prompt and reply of this call</a></p>",
            after.0
        );
    }
    for ChatMessage { role, content, tool_calls, tool_call_id: _, blocks: _ } in &*prompt.messages {
        let _ = writeln!(out, "<p class=\"role\">{}</p>", role.word());
        if !content.is_empty() {
            let _ = writeln!(out, "<pre>{}</pre>", escape_lines(content));
        }
        tool_calls.iter().for_each(|call| out.push_str(&tool_call(call)));
    }
    for tool in prompt.tools.iter().flat_map(|tools| &**tools) {
        let (name, about) = (escape_line(&tool.name), escape_lines(&tool.description));
        let _ = writeln!(out, "<p class=\"role\">tool {name}</p>\n<pre>{about}</pre>");
    }
    out.push_str("</details>\n");
    out
}

fn tool_call(call: &ToolCall) -> String {
    let arguments = serde_json::from_str::<Value>(&call.arguments);
    let arguments = arguments.map_or_else(|_| call.arguments.to_string(), |value| pretty(&value));
    format!(
        "<p class=\"role\">calls {}</p>\n<pre>{}</pre>\n",
        escape_line(&call.name),
        escape_lines(&arguments)
    )
}

/// A value on several lines; a text as it is.
fn pretty(value: &Value) -> String {
    match value {
        Value::Object(_) | Value::Array(_) => {
            serde_json::to_string_pretty(value).unwrap_or_default()
        }
        plain => value_text(plain).to_string(),
    }
}

/// A text, folded where it is long.
fn folded(title: &str, text: &str, class: &str) -> String {
    let pre = format!("<pre class=\"{class}\">{}</pre>", escape_lines(text));
    let chars = text.chars().count();
    if chars <= UNFOLDED {
        return format!("<p class=\"role\">{title}</p>\n{pre}\n");
    }
    let chars = format::count_noun(chars as u64, "character");
    format!("<details><summary>{title}: {chars}</summary>\n{pre}\n</details>\n")
}

fn reply(event: &Event, reply: &Reply, world: &World) -> String {
    let mut out = String::new();
    if !reply.text.trim().is_empty() {
        let json = serde_json::from_str::<Value>(&reply.text).ok();
        let json = json.filter(|value| value.is_object() || value.is_array());
        match json {
            Some(value) => out.push_str(&folded("Reply", &pretty(&value), "")),
            None => out.push_str(&folded("Reply", &reply.text, "said")),
        }
    }
    reply.tool_calls.iter().for_each(|call| out.push_str(&tool_call(call)));
    if !reply.end.is_whole() {
        let mark = cut_reply(reply.end, reply.tool_calls.len());
        let _ = writeln!(out, "<p class=\"note warn\">{}</p>", escape_line(&mark));
    }
    match &reply.result {
        Some(result) => out.push_str(&folded("Result", &pretty(result), "")),
        None => {
            let text = sentence::sentence(event, world).full_text().into_owned();
            let _ = writeln!(out, "<p class=\"figures\">{}</p>", escape_line(&text));
        }
    }
    out
}

/// What an event adds to the part of its span; empty for events that say nothing new.
fn part(event: &Event, world: &World, purpose: Option<&Purpose>) -> String {
    match &event.kind {
        EventKind::AttemptAnswered(answer) => {
            // What an agent answers is the reply of its own last call.
            let is_agent = purpose.is_some_and(|purpose| purpose.asks() == Asks::Agent);
            return if is_agent { String::new() } else { reply(event, answer, world) };
        }
        EventKind::RunStarted(_)
        | EventKind::RunClosed(_)
        | EventKind::AnswerComposed { .. }
        | EventKind::CallStarted(_)
        | EventKind::CallAnswered { .. }
        | EventKind::CallQueued
        | EventKind::CallAdmitted { .. }
        | EventKind::AttemptStarted { .. }
        | EventKind::AttemptQueued { .. } => return String::new(),
        EventKind::AttemptFailed(failed) => {
            let mut out = told(event, world);
            if let Some(partial) = &failed.partial {
                out.push_str(&folded("Received before the failure", partial, "said"));
            }
            return out;
        }
        _ => {}
    }
    if matches!(event.kind.opens(), Some((_, SpanKind::Round(_)))) {
        // The heading says it.
        return String::new();
    }
    let lines = headless::lines(event, world);
    if lines.is_empty() {
        return told(event, world);
    }
    lines.iter().map(note).collect()
}

/// The line of the list of events.
fn told(event: &Event, world: &World) -> String {
    let sentence = sentence::sentence(event, world);
    let text = sentence.full_text();
    if text.is_empty() {
        return String::new();
    }
    let class = class(sentence.role);
    let subject = escape_line(&sentence.subject);
    format!("<p class=\"note {class}\">{subject} {}</p>\n", escape_line(&text))
}

/// A line of headless text.
fn note(line: &StyledLine) -> String {
    let mut out = String::new();
    for part in &line.parts {
        // The columns of a terminal mean nothing here.
        let text = part.text.split("  ").map(str::trim).filter(|it| !it.is_empty());
        let text = text.collect::<Vec<_>>().join(", ");
        let glyph = part.glyph.map_or("", |glyph| Glyphs::Unicode.symbol(glyph));
        let text = format!("{glyph} {text}").trim().to_owned();
        if text.is_empty() {
            continue;
        }
        let class = part.role.map_or("", class);
        let gap = if out.is_empty() || text.starts_with([',', ';', ':', '.']) { "" } else { " " };
        let _ = write!(out, "{gap}<span class=\"{class}\">{}</span>", escape_line(&text));
    }
    if out.is_empty() { out } else { format!("<p class=\"note\">{out}</p>\n") }
}

/// The class of a role in the style sheet.
fn class(role: StyleRole) -> &'static str {
    match role {
        StyleRole::Done | StyleRole::Go => "good",
        StyleRole::Failed | StyleRole::Refused | StyleRole::Block => "bad",
        StyleRole::Retry
        | StyleRole::Caution
        | StyleRole::Paused
        | StyleRole::Flag
        | StyleRole::NeedsYou
        | StyleRole::Notice => "warn",
        StyleRole::Dim | StyleRole::Off | StyleRole::Waiting | StyleRole::Undecided => "dim",
        _ => "",
    }
}
