//! The geometry and the look of a card.
//!
//! The text of a card: who asks whom for what and why, what the agent did before, the arguments, what
//! the call does, and what follows without an answer. What a model wrote is data in it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::Value;

use super::fields::{AnswerField, AnswerFields, AnswerKind, AnswerValue};
use super::{Card, CardStep};
use crate::base::name::AgentName;
use crate::log::event::kind::{Answer, Asks, QuestionAsked, Subject};
use crate::log::event::result_text::reply_text;
use crate::log::event::{EventKind, Seq, SpanId};
use crate::log::world::SpanState;
use crate::screen::action::Action;
use crate::screen::keymap::key_of;
use crate::screen::layout::{Size, inside};
use crate::screen::questions::{QuestionShape, is_irreversible, open_questions};
use crate::screen::run::RunPage;
use crate::screen::run::inspector::WrappedDocument;
use crate::screen::scroll::{WrappingLines, draw_scrolled};
use crate::screen::state::AppState;
use crate::screen::text::Pen;
use crate::screen::widgets::render_text_field;
use crate::screen::{DrawContext, frame};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::measure::columns;
use crate::words::question::{
    answer_text, asks_text, deadline_text, noun, remembered_text, short_age,
};
use crate::words::readable::top_text;
use crate::words::sentence::sentence;
use crate::words::styled::{Badge, StyleRole, StyledText};

/// Columns of the name of a field.
const NAME: std::ops::Range<usize> = 8..20;
/// Maximum width of the text, so that its lines stay readable.
const MAX_TEXT: u16 = 110;
/// Minimum rows of the text above the fields.
const MIN_TEXT: u16 = 3;

/// The parts of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardParts {
    /// All of it, border included.
    pub window: Rect,
    /// The rows of its text that are in view.
    pub text: Rect,
    /// The rows of the fields that are in view.
    pub fields: Rect,
    /// The row that says what the next key does.
    pub prompt: Rect,
}

/// The parts of a card with this text. It takes at most three fifths of the body.
pub fn parts(card: &Card, document: &StyledText, size: Size) -> CardParts {
    let body = size.body();
    let width = body.width.saturating_sub(4).min(MAX_TEXT);
    let most = body.height.saturating_mul(3) / 5;
    let field_rows: u16 =
        card.fields().map_or(0, |fields| fields.list.iter().map(AnswerField::rows).sum());
    let field_rows = if field_rows > 0 { field_rows + 1 } else { 0 };
    // The border, and the row for what the next key does.
    let text_rows = WrappedDocument { document, width }.rows_within(most);
    let height = text_rows.saturating_add(field_rows).saturating_add(4).min(most);
    let window = Rect { y: body.bottom() - height, height, ..body };
    let inner = inside(window);
    let inner = Rect { x: inner.x + 1, width: width.min(inner.width.saturating_sub(2)), ..inner };
    let prompt = Rect { y: inner.bottom().saturating_sub(1), height: inner.height.min(1), ..inner };
    let above = inner.height.saturating_sub(1);
    let fields = field_rows.min(above.saturating_sub(MIN_TEXT.min(above)));
    // A blank row between the text and what is below it.
    let text = above.saturating_sub(fields).saturating_sub(u16::from(fields == 0 && above > 4));
    let fields = Rect { y: inner.y + above - fields, height: fields, ..inner };
    CardParts { window, text: Rect { height: text, ..inner }, fields, prompt }
}

/// Draws a card.
pub fn render(card: &Card, state: &AppState, cx: &DrawContext, buf: &mut Buffer) {
    let document = document(card, state);
    let parts = parts(card, &document, state.size);
    let asked = &card.asked;
    let title = format!("{} {} for {}", asked.id, noun(&asked.subject), asked.who);
    let key = card.key();
    let all = open_questions(&state.runs);
    let place = all.map(|it| it.key()).position(|it| it == key);
    let count = open_questions(&state.runs).count();
    let foot = match place {
        Some(place) if count > 1 => format!("{}, {} of {count}", card.run, place + 1),
        _ => card.run.to_string(),
    };
    frame::window(&title, &foot, cx, parts.window, buf);
    draw_scrolled(cx, parts.text, &document, card.scroll, buf);
    if let Some(fields) = card.fields() {
        draw_fields(fields, cx, parts.fields, buf);
    }
    prompt(card, cx, parts.prompt, buf);
}

/// Draws the fields; those above the focused one scroll out of view where there is no room.
fn draw_fields(fields: &AnswerFields, cx: &DrawContext, area: Rect, buf: &mut Buffer) {
    let names = fields.list.iter().map(|field| columns(&field.name) + 2).max().unwrap_or(0);
    let names = names.clamp(NAME.start, NAME.end) as u16;
    let border = cx.theme.style(StyleRole::Border);
    let mut top = Pen::new(buf, Rect { height: area.height.min(1), ..area }, cx.glyphs);
    let width = top.left();
    top.glyphs(Glyph::Horizontal, width, border);
    let rows =
        Rect { y: area.y + area.height.min(1), height: area.height.saturating_sub(1), ..area };
    let mut first = 0;
    let needed = |first: usize| -> u16 {
        let shown = fields.list.iter().take(fields.focus + 1).skip(first);
        shown.map(AnswerField::rows).sum()
    };
    while first < fields.focus && needed(first) > rows.height {
        first += 1;
    }
    let mut y = rows.y;
    for (at, field) in fields.list.iter().enumerate().skip(first) {
        let height = field.rows().min(rows.bottom().saturating_sub(y));
        if height == 0 {
            break;
        }
        let focused = at == fields.focus;
        let role = if focused { StyleRole::Title } else { StyleRole::Dim };
        let mut pen = Pen::new(buf, Rect { y, height: 1, ..rows }, cx.glyphs);
        pen.put_within(&field.name, names - 1, cx.theme.style(role));
        let left = rows.x + names;
        let hint = u16::try_from(columns(&field.hint)).unwrap_or(0);
        let hint = if hint > 0 && rows.width > names + hint + 24 { hint + 2 } else { 0 };
        let width = rows.right().saturating_sub(left + hint);
        let place = Rect { x: left, y, width, height };
        match &field.value {
            AnswerValue::Text(text) => {
                render_text_field(text, cx, place, height, 0, focused, buf);
            }
            AnswerValue::Choice { choices, at, .. } => {
                let choice = choices.get(*at).map_or("", String::as_str).replace('_', " ");
                let choice = if choice.is_empty() { "not given".to_owned() } else { choice };
                let mut pen = Pen::new(buf, place, cx.glyphs);
                let style = cx.theme.style(if focused { StyleRole::Key } else { StyleRole::Text });
                let number = format!("  {} of {}", at + 1, choices.len());
                pen.put("< ", cx.theme.style(StyleRole::Dim)).put(&choice, style);
                pen.put(" >", cx.theme.style(StyleRole::Dim));
                pen.put(&number, cx.theme.style(StyleRole::Dim));
            }
        }
        if hint > 0 {
            let at = Rect { x: left + width + 2, y, width: hint, height: 1 };
            Pen::new(buf, at, cx.glyphs).put(&field.hint, cx.theme.style(StyleRole::Dim));
        }
        y += height;
    }
}

/// Draws what the next key does, or what is wrong.
fn prompt(card: &Card, cx: &DrawContext, row: Rect, buf: &mut Buffer) {
    let (text, role) = match &card.problem {
        Some(problem) => (format!("! {problem}"), StyleRole::Failed),
        None => prompt_text(card),
    };
    Pen::new(buf, row, cx.glyphs).put(&text, cx.theme.style(role));
}

fn prompt_text(card: &Card) -> (String, StyleRole) {
    let [approve, send, edit] = [Action::Approve, Action::Send, Action::EditAnswer].map(key_of);
    let needs = |text: String| (text, StyleRole::NeedsYou);
    match &card.step {
        CardStep::Reading if is_irreversible(&card.asked) && !card.end_seen => {
            needs(format!("It cannot be undone: read to the end, then {approve} twice."))
        }
        CardStep::Reading if is_irreversible(&card.asked) => {
            needs(format!("It cannot be undone: {approve} twice approves it."))
        }
        CardStep::Reading => (reading_text(card), StyleRole::Dim),
        CardStep::Reply if card.asked.subject.approves().is_some() => {
            let text = format!("{send} shows the changed arguments. Nothing is approved by that.");
            (text, StyleRole::Dim)
        }
        CardStep::Reply => (format!("{send} sends it, Esc keeps it as a draft."), StyleRole::Dim),
        CardStep::Reason if card.asked.subject.approves().is_some() => {
            ("Enter denies the call, Esc goes back.".to_owned(), StyleRole::Dim)
        }
        CardStep::Reason => {
            let what = match card.fields().map(AnswerFields::kind) {
                Some(AnswerKind::Choice(choice)) => format!("\"{}\"", shown(choice)),
                _ => "the decision".to_owned(),
            };
            needs(format!("Enter sends {what}, Esc goes back."))
        }
        CardStep::Review(_) if is_irreversible(&card.asked) => {
            needs(format!("Read to the end, then {approve} twice: exactly these arguments."))
        }
        CardStep::Review(_) => {
            needs(format!("{approve} approves exactly these arguments, {edit} edits them again."))
        }
        CardStep::Certain(_) => needs(format!(
            "It cannot be undone: press {approve} again to approve it, Esc goes back."
        )),
        CardStep::Remember => {
            let remember = key_of(Action::Remember);
            needs(format!(
                "{remember} adds the rule, {approve} approves only this call, Esc goes back."
            ))
        }
        CardStep::Suggested(answer) => {
            let what = match answer {
                Answer::Approve { .. } => "approves it as the script would",
                _ => "sends the script's answer",
            };
            needs(format!("{} {what}, Esc goes back.", key_of(Action::Suggest)))
        }
        CardStep::Sent => ("Sent. The run takes it now.".to_owned(), StyleRole::Dim),
        CardStep::Ended(_) => ("It is no longer open.".to_owned(), StyleRole::Dim),
    }
}

/// Which keys answer a question that is read.
fn reading_text(card: &Card) -> String {
    let [approve, deny, edit] = [Action::Approve, Action::Deny, Action::EditAnswer].map(key_of);
    if card.asked.subject.approves().is_some() {
        return format!("{approve} approves this call once, {deny} denies it.");
    }
    match card.offers(Action::Pick(1)) {
        true => "The number of an answer chooses it.".to_owned(),
        false => format!("{edit} continues the answer."),
    }
}

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
            doc.signed("new rule", Badge::new(Glyph::NeedsYou, "", StyleRole::NeedsYou), rule);
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
    // What a person is to judge who takes part.
    if let (Subject::Seat { .. } | Subject::Decision { .. }, Some(head)) =
        (&asked.subject, &world.run.head)
    {
        doc.paragraph("goal", &shown(&head.goal));
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
    if !matches!(card.step, CardStep::Ended(_)) {
        doc.field("deadline", deadline_text(asked, state.inbox.wall_ms(state.now)));
    }
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
            doc.paragraph("question", &shown(text));
            numbered(doc, choices.iter().map(|choice| &**choice));
            doc.gap();
        }
        Subject::Turn { request, hand_over_to, .. } => {
            doc.gap();
            doc.paragraph("request", &shown(request));
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
        EventKind::AttemptAnswered(reply) => Some(reply_text(reply)),
        _ => None,
    });
    match (result.last(), spans.get(call).map(|span| span.state)) {
        (Some(result), _) => line_of(&result),
        (None, Some(SpanState::Open)) => "no result yet".to_owned(),
        (None, _) => "no result".to_owned(),
    }
}

/// The first line of a text.
fn line_of(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    line.chars().take(MAX_LINE_CHARS).collect()
}
