//! The text of a card: who asks whom for what and why, what the agent did before, the arguments, what
//! the call does, and what follows without an answer. What a model wrote is data in it.

use serde_json::Value;

use super::{Card, CardStep};
use crate::base::name::AgentName;
use crate::log::event::kind::{Answer, Asks, QuestionAsked, Subject};
use crate::log::event::{EventKind, Seq, SpanId};
use crate::log::world::SpanState;
use crate::screen::questions::{QuestionShape, is_irreversible, open_questions};
use crate::screen::run::RunPage;
use crate::screen::state::AppState;
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::question::{answer_text, asks_text, deadline_text, remembered_text, short_age};
use crate::words::readable::top_text;
use crate::words::sentence::sentence;
use crate::words::styled::{Badge, StyleRole, StyledText};

/// Most bytes of one value or text that a card shows.
const MAX_SHOWN_BYTES: usize = 16 * 1024;
/// Most calls of an agent before its question.
const MAX_CALLS: usize = 3;
/// Most characters of the line of such a call, and of its result.
const MAX_LINE_CHARS: usize = 200;
/// Most events that are searched for them.
const MAX_SEARCHED: usize = 2_000;
/// Longest name that has its value in the same row.
const NAME_COLUMNS: usize = 10;

/// The text of a card at this moment.
pub(super) fn document(card: &Card, state: &AppState) -> StyledText {
    let mut doc = StyledText::default();
    let asked = &*card.asked;
    let Some(page) = state.run(&card.run) else { return doc };
    let world = page.world();
    doc.heading(format!("{}.", asks_text(&card.by, asked)));
    match &card.step {
        CardStep::Remember => {
            let tool = asked.subject.approves().map_or("", |tool| tool.as_str());
            let rule = remembered_text(tool, asked.by.as_deref());
            doc.signed("adds", Badge::new(Glyph::NeedsYou, "", StyleRole::NeedsYou), rule);
        }
        CardStep::Suggested(answer) => {
            let text = shown(&answer_text(answer));
            doc.signed("script", Badge::new(Glyph::NeedsYou, "", StyleRole::NeedsYou), text);
        }
        CardStep::Ended(how) => doc.item("ended", StyleRole::Strong, shown(how)),
        _ => {}
    }
    // What the next key approves comes first, also on a small screen.
    let is_next = matches!(card.step, CardStep::Review(_) | CardStep::Certain(_));
    if is_next {
        subject(&mut doc, asked, &card.step);
    }
    if let Some(why) = asked.why.as_deref().filter(|why| !why.trim().is_empty()) {
        doc.paragraph("why", &shown(why.trim()));
    }
    if !is_next {
        subject(&mut doc, asked, &card.step);
    }
    doc.list("before", calls_before(page, &card.by, card.seq));
    if let Some(rule) = &asked.rule {
        doc.field("rule", shown(rule));
    }
    let tokens = world.tally.usage.total();
    let used = match world.cost_usd().filter(|cost| *cost > 0.0) {
        Some(cost) => format!("{}, {} tokens", format::usd(cost), format::count(tokens)),
        None => format!("{} tokens", format::count(tokens)),
    };
    doc.field("run so far", used);
    doc.field("deadline", deadline_text(asked, state.inbox.wall_ms(state.now)));
    if let Some(question) = world.questions.get(asked.id) {
        doc.field("open for", short_age(state.elapsed(page).since(question.at)));
    }
    if let Some(shape) = QuestionShape::of(asked) {
        let equal = open_questions(&state.runs)
            .filter(|it| QuestionShape::of(&it.question.asked).as_ref() == Some(&shape));
        let marked = state.inbox.marked(&state.runs).len();
        match (equal.count(), marked) {
            (..=1, _) => {}
            (count, 0) => doc.field("equal", format!("{count} open questions of this shape")),
            (count, marked) => {
                doc.field("equal", format!("{count} open questions, {marked} of them marked"));
            }
        }
    }
    doc
}

/// What the question is about.
fn subject(doc: &mut StyledText, asked: &QuestionAsked, step: &CardStep) {
    match &asked.subject {
        Subject::ToolCall { tool, args, effects, .. } => {
            doc.gap();
            doc.heading(format!("Arguments of {tool}"));
            match step {
                CardStep::Review(edited)
                | CardStep::Certain(Some(edited))
                | CardStep::Suggested(Answer::Approve { args: Some(edited) }) => {
                    changed_arguments(doc, args, edited);
                }
                _ => arguments(doc, args),
            }
            doc.gap();
            if is_irreversible(asked) {
                doc.warning("effects", format!("irreversible: it {}", effects.phrase()));
            } else {
                doc.field("effects", effects.phrase());
            }
        }
        Subject::Agent { text, choices } => {
            doc.gap();
            doc.text(StyleRole::Text, &shown(text));
            numbered(doc, choices.iter().map(|choice| &**choice));
            doc.gap();
        }
        Subject::Turn { request, hand_over_to, .. } => {
            doc.gap();
            doc.text(StyleRole::Text, &shown(request));
            if !hand_over_to.is_empty() {
                let names: Vec<&str> = hand_over_to.iter().map(AgentName::as_str).collect();
                doc.field("hand over", names.join(", "));
            }
            doc.gap();
        }
        Subject::Seat { .. } => {}
        Subject::Decision { stances, conflicts } => {
            doc.gap();
            doc.heading("Stances of the last round");
            arguments(doc, stances);
            doc.list("conflicts", conflicts.iter().map(|text| shown(text)));
            choices(doc, asked);
        }
        Subject::InDoubt { args, .. } => {
            doc.gap();
            if !args.is_null() {
                doc.heading("Arguments");
                arguments(doc, args);
            }
            choices(doc, asked);
        }
        Subject::Budget(reached) => {
            doc.item("reached", StyleRole::Text, reached.sentence());
            choices(doc, asked);
        }
    }
}

/// The answers to choose from, with the numbers of their keys.
fn choices(doc: &mut StyledText, asked: &QuestionAsked) {
    let words = asked.subject.choices();
    numbered(doc, words.iter().map(|word| &**word));
    doc.gap();
}

fn numbered<'a>(doc: &mut StyledText, words: impl Iterator<Item = &'a str>) {
    for (nth, word) in words.enumerate() {
        let number = if nth < 9 { (nth + 1).to_string() } else { String::new() };
        doc.item(&number, StyleRole::Text, shown(&word.replace('_', " ")));
    }
}

/// All arguments, each with its value.
fn arguments(doc: &mut StyledText, args: &Value) {
    let Some(fields) = args.as_object() else {
        return doc.text(StyleRole::Text, &shown(&value_text(args)));
    };
    if fields.is_empty() {
        doc.add(StyleRole::Dim, "none");
    }
    let is_wide = fields.keys().any(|name| columns(name) > NAME_COLUMNS);
    for (name, value) in fields {
        argument(doc, name, StyleRole::Text, &value_text(value), is_wide);
    }
}

/// All arguments as they would be approved, and what they were before.
fn changed_arguments(doc: &mut StyledText, before: &Value, after: &Value) {
    let empty = serde_json::Map::new();
    let [before, after] = [before, after].map(|it| it.as_object().unwrap_or(&empty));
    let mut names = before.keys().chain(after.keys());
    let is_wide = names.any(|name| columns(name) > NAME_COLUMNS);
    for (name, value) in after {
        match before.get(name) {
            Some(old) if old == value => {
                argument(doc, name, StyleRole::Text, &value_text(value), is_wide);
            }
            old => {
                argument(doc, name, StyleRole::Changed, &value_text(value), is_wide);
                let old = old.map_or("not given".to_owned(), value_text);
                doc.item("", StyleRole::Dim, format!("before: {}", shown(&old)));
            }
        }
    }
    for (name, value) in before.iter().filter(|(name, _)| !after.contains_key(*name)) {
        argument(doc, name, StyleRole::Changed, "left out", is_wide);
        doc.item("", StyleRole::Dim, format!("before: {}", shown(&value_text(value))));
    }
}

/// A name and its value. Where a name is too long for its column (`is_wide`), no name is in one.
fn argument(doc: &mut StyledText, name: &str, role: StyleRole, value: &str, is_wide: bool) {
    let value = shown(value);
    if is_wide {
        let mut lines = value.split('\n');
        doc.add(role, format!("{name}: {}", lines.next().unwrap_or_default()));
        return lines.for_each(|line| doc.item("", role, line));
    }
    let mut label = name;
    for line in value.split('\n') {
        doc.item(label, role, line);
        label = "";
    }
}

/// A value as text: a text without quotes, an object or a list as indented JSON.
fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(_) | Value::Array(_) => {
            serde_json::to_string_pretty(value).unwrap_or_default()
        }
        other => other.to_string(),
    }
}

/// The text up to the most that a card shows, which then says how much is missing.
fn shown(text: &str) -> String {
    if text.len() <= MAX_SHOWN_BYTES {
        return text.to_owned();
    }
    let mut end = MAX_SHOWN_BYTES;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let more = format::bytes((text.len() - end) as u64);
    format!("{}\n({more} more are not shown)", &text[..end])
}

/// The calls of tools that the agent made before it asked, each with its result, the last one last.
fn calls_before(page: &RunPage, by: &str, seq: Seq) -> Vec<String> {
    let (log, world) = (page.log(), page.world());
    let end = log.place(seq);
    let mut calls: Vec<String> = log
        .between(end.saturating_sub(MAX_SEARCHED), end)
        .rev()
        .filter_map(|event| {
            let EventKind::CallStarted(call) = &event.kind else { return None };
            let is_own = call.purpose.asks() == Asks::Tool && sentence(event, world).subject == by;
            // The call that asks is no earlier one.
            if !is_own || world.question_within(event.span).is_some() {
                return None;
            }
            let args = call.args.as_deref().map(top_text).unwrap_or_default();
            let result = result_of(page, event.span);
            let time = format::time_in_run(world.progress.run_time(event.at));
            Some(format!("{time}  {} {}: {result}", call.tool, line_of(&args)))
        })
        .take(MAX_CALLS)
        .collect();
    calls.reverse();
    calls
}

/// The first line of the result of a call.
fn result_of(page: &RunPage, call: SpanId) -> String {
    let spans = &page.world().spans;
    let reply = spans.children(call).filter_map(|attempt| page.closing_event(attempt.id));
    let result = reply.filter_map(|event| match &event.kind {
        EventKind::AttemptAnswered(reply) => reply.result.as_deref(),
        _ => None,
    });
    match (result.last(), spans.get(call).map(|span| span.state)) {
        (Some(result), _) => line_of(&top_text(result)),
        (None, Some(SpanState::Open)) => "no result yet".to_owned(),
        (None, _) => "no result".to_owned(),
    }
}

/// The first line of a text.
fn line_of(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    line.chars().take(MAX_LINE_CHARS).collect()
}
