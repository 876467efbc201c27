//! The events of a run as the parts of a page.

use std::fmt::Write as _;

use serde_json::Value;

use crate::log::event::call::{ChatMessage, Prompt, Reply};
use crate::log::event::kind::{Asks, CallStarted, Purpose};
use crate::log::event::result_text::value_text;
use crate::log::event::{Event, EventKind, World};
use crate::log::world::SpanKind;
use crate::scenario::spec::tool::ToolCall;
use crate::words::glyph::Glyphs;
use crate::words::patterns::words_of;
use crate::words::sentence::{cut_reply, subject_name};
use crate::words::styled::{StyleRole, StyledLine};
use crate::words::{format, headless, page, sentence};

/// Longest text that is shown unfolded, in characters.
const UNFOLDED: usize = 1_200;

/// The heading of a span that has a part of its own; `None`: it has none.
pub(crate) fn heading(event: &Event, kind: &SpanKind, world: &World) -> Option<String> {
    let at = format::time_in_run(world.progress.run_time(event.at));
    let words = words_of(world);
    let id = event.span.0;
    let named = |level: &str, name: &str, more: &str| {
        let (name, more) = (page::escape_line(name), page::escape_line(more));
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
pub(crate) fn name(kind: &SpanKind, world: &World) -> String {
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
            let _ = writeln!(out, "<pre>{}</pre>", page::escape_lines(content));
        }
        tool_calls.iter().for_each(|call| out.push_str(&tool_call(call)));
    }
    for tool in prompt.tools.iter().flat_map(|tools| &**tools) {
        let (name, about) = (page::escape_line(&tool.name), page::escape_lines(&tool.description));
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
        page::escape_line(&call.name),
        page::escape_lines(&arguments)
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
    let pre = format!("<pre class=\"{class}\">{}</pre>", page::escape_lines(text));
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
        let _ = writeln!(out, "<p class=\"note warn\">{}</p>", page::escape_line(&mark));
    }
    match &reply.result {
        Some(result) => out.push_str(&folded("Result", &pretty(result), "")),
        None => {
            let text = sentence::sentence(event, world).full_text().into_owned();
            let _ = writeln!(out, "<p class=\"figures\">{}</p>", page::escape_line(&text));
        }
    }
    out
}

/// What an event adds to the part of its span; empty for events that say nothing new.
pub(crate) fn part(event: &Event, world: &World, purpose: Option<&Purpose>) -> String {
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
    let subject = page::escape_line(&sentence.subject);
    format!("<p class=\"note {class}\">{subject} {}</p>\n", page::escape_line(&text))
}

/// A line of headless text.
pub(crate) fn note(line: &StyledLine) -> String {
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
        let _ = write!(out, "{gap}<span class=\"{class}\">{}</span>", page::escape_line(&text));
    }
    if out.is_empty() { out } else { format!("<p class=\"note\">{out}</p>\n") }
}

/// The class of a role in the style sheet.
pub(crate) fn class(role: StyleRole) -> &'static str {
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
