//! The geometry and the look of a card.
//!
//! The text of a card: who asks whom for what and why, what the agent did before, the arguments, what
//! the call does, and what follows without an answer. What a model wrote is data in it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::Value;

use super::fields::{AnswerField, AnswerFields, AnswerKind, AnswerValue};
use super::{Card, CardStep};
use crate::base::name::AgentName;
use crate::base::visible::{first_bytes, visible};
use crate::log::event::question::{ACCEPT, ALLOW, ASK, LEAVE_OUT};
use crate::log::event::result_text::reply_text;
use crate::log::event::{Answer, Asks, EventKind, QuestionAsked, Seq, SpanId, StepState, Subject};
use crate::log::world::agents::{AgentsFold, HopKind};
use crate::log::world::{SpanState, World};
use crate::screen::action::Action;
use crate::screen::keymap::key_of;
use crate::screen::layout::{Size, inside};
use crate::screen::questions::{
    QuestionShape, args_bytes, is_irreversible, is_too_long, open_questions,
};
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
use crate::words::patterns::words_of;
use crate::words::question::{
    answer_text, asks_text, deadline_text, noun, remembered_text, short_age,
};
use crate::words::readable::top_text;
use crate::words::sentence::sentence;
use crate::words::styled::{Badge, StyleRole, StyledLine, StyledPart, StyledText};

/// Minimum columns of the name of a field. At most a third of the card is names.
const MIN_NAME: usize = 8;
/// Maximum width of the text, so that its lines stay readable.
const MAX_TEXT: u16 = 110;
/// Minimum rows of the text above the fields.
const MIN_TEXT: u16 = 3;
/// Minimum rows of the fields: the line above them, and one field.
const MIN_FIELDS: u16 = 2;

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
    // A field with lines takes the room that the text leaves.
    let has_lines = card.fields().is_some_and(|it| it.list.iter().any(AnswerField::has_lines));
    let spare = most.saturating_sub(text_rows.saturating_add(field_rows).saturating_add(4));
    let spare = if has_lines { spare.min((most / 2).saturating_sub(field_rows)) } else { 0 };
    let field_rows = field_rows + spare;
    let height = text_rows.saturating_add(field_rows).saturating_add(4).min(most);
    let window = Rect { y: body.bottom() - height, height, ..body };
    let inner = inside(window);
    let inner = Rect { x: inner.x + 1, width: width.min(inner.width.saturating_sub(2)), ..inner };
    let prompt = Rect { y: inner.bottom().saturating_sub(1), height: inner.height.min(1), ..inner };
    let above = inner.height.saturating_sub(1);
    // On the smallest screen the field with the focus is in view in any case.
    let fields = field_rows.min(above.saturating_sub(MIN_TEXT).max(MIN_FIELDS.min(above)));
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
    let title = format!("{} {}: you answer as {}", asked.id, noun(&asked.subject), asked.who);
    let key = card.key();
    let all = open_questions(&state.runs);
    let place = all.map(|it| it.key()).position(|it| it == key);
    let count = open_questions(&state.runs).count();
    let foot = match place {
        Some(place) if count > 1 => format!("{}, {} of {count}", card.run, place + 1),
        _ => card.run.to_string(),
    };
    let deadline = asked.due_ms.filter(|_| !matches!(card.step, CardStep::Ended(_)));
    let foot = match deadline {
        Some(_) => format!("{foot}: {}", deadline_text(asked, state.inbox.wall_ms(state.now))),
        None => foot,
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
    let names = fields.list.iter().map(|field| columns(&field.label) + 2).max().unwrap_or(0);
    let most = usize::from(area.width / 3).max(MIN_NAME);
    let names = names.clamp(MIN_NAME, most) as u16;
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
    let all: u16 = fields.list.iter().map(AnswerField::rows).sum();
    let grown = fields.list.iter().position(AnswerField::has_lines);
    let mut y = rows.y;
    for (at, field) in fields.list.iter().enumerate().skip(first) {
        let spare = if grown == Some(at) { rows.height.saturating_sub(all) } else { 0 };
        let height = (field.rows() + spare).min(rows.bottom().saturating_sub(y));
        if height == 0 {
            break;
        }
        let focused = at == fields.focus;
        let role = if focused { StyleRole::Title } else { StyleRole::Dim };
        let mut pen = Pen::new(buf, Rect { y, height: 1, ..rows }, cx.glyphs);
        pen.put_within(&field.label, names - 1, cx.theme.style(role));
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
            AnswerValue::Several { choices, chosen, at, .. } => {
                let mut pen = Pen::new(buf, place, cx.glyphs);
                let texts: Vec<String> = choices
                    .iter()
                    .zip(chosen)
                    .map(|(choice, is)| format!("[{}] {choice}", if *is { 'x' } else { ' ' }))
                    .collect();
                // The one that the next key is about is in view.
                let mut first = 0;
                let needed = |first: usize| -> usize {
                    texts.iter().take(at + 1).skip(first).map(|text| columns(text) + 2).sum()
                };
                while first < *at && needed(first) > usize::from(width) {
                    first += 1;
                }
                for (nth, text) in texts.iter().enumerate().skip(first) {
                    let is_next = focused && nth == *at;
                    let role = if is_next { StyleRole::Key } else { StyleRole::Text };
                    pen.put(text, cx.theme.style(role)).put("  ", cx.theme.style(StyleRole::Dim));
                }
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
        None if has_draft(card) => {
            let (edit, keys) = (key_of(Action::EditAnswer), prompt_text(card).0);
            let others = if keys.starts_with(&edit) { "" } else { &*keys };
            let text = format!("Draft kept: {edit} continues it. {others}");
            (text.trim_end().to_owned(), StyleRole::NeedsYou)
        }
        None => prompt_text(card),
    };
    Pen::new(buf, row, cx.glyphs).put(&text, cx.theme.style(role));
}

/// Whether an answer was begun and left.
fn has_draft(card: &Card) -> bool {
    let reply = card.draft.reply.as_ref();
    matches!(card.step, CardStep::Reading) && reply.is_some_and(|reply| reply.typed().is_some())
}

fn prompt_text(card: &Card) -> (String, StyleRole) {
    let [approve, send, edit] = [Action::Approve, Action::Send, Action::EditAnswer].map(key_of);
    let json = key_of(Action::EditJson);
    let needs = |text: String| (text, StyleRole::NeedsYou);
    match &card.step {
        CardStep::Reading if is_args_unseen(card) => {
            needs(format!("Too long for this card: {json} shows all arguments, then {approve}."))
        }
        CardStep::Reading if is_irreversible(&card.asked) && !card.is_read(None) => {
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
        CardStep::Reply => {
            let about = card.fields().and_then(AnswerFields::focused).map(|field| &*field.about);
            let about = about.map(str::trim).filter(|about| !about.is_empty());
            match about {
                Some(about) => (about.lines().collect::<Vec<_>>().join(" "), StyleRole::Text),
                None => (format!("{send} sends it, Esc keeps it as a draft."), StyleRole::Dim),
            }
        }
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
        CardStep::Ended(_) if card.unsent.is_some() => {
            needs("It is no longer open, and nothing was sent. Esc closes it.".to_owned())
        }
        CardStep::Ended(_) => ("It is no longer open.".to_owned(), StyleRole::Dim),
    }
}

/// Whether the card does not show all arguments of the call, and the editor has not shown them.
fn is_args_unseen(card: &Card) -> bool {
    match &card.asked.subject {
        Subject::ToolCall { args, .. } => is_too_long(args) && !card.is_read_in_editor(args),
        _ => false,
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
        false => format!("{edit} answers it."),
    }
}

/// Most bytes of one text that a card shows, and of arguments that it does not show in full.
const MAX_SHOWN_BYTES: usize = 16 * 1024;
/// Most bytes of a line of the arguments; a longer one is continued on the next.
const MAX_LINE_BYTES: usize = 4096;
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
        CardStep::Ended(how) => {
            doc.item("ended", StyleRole::Strong, shown(how));
            if let Some(typed) = &card.unsent {
                doc.paragraph("not sent", typed);
            }
        }
        _ => {}
    }
    // What the person decides on comes first, also on a small screen; then the words of the model.
    if doc.lines.len() > 1 {
        doc.gap();
    }
    match &asked.subject {
        Subject::Seat { .. } => seat(&mut doc, page),
        // Each field says below what it is for.
        Subject::Input { text, .. } if card.step == CardStep::Reply => {
            doc.paragraph("question", &shown(text));
            doc.gap();
        }
        _ => add_subject(&mut doc, asked, card.changed_args(), world),
    }
    if let Some(why) = asked.why.as_deref().filter(|why| !why.trim().is_empty()) {
        doc.paragraph("why", &shown(why.trim()));
    }
    doc.list("before", calls_before(page, &card.by, card.seq));
    if let Some(rule) = &asked.rule {
        doc.field("rule", shown(rule));
    }
    let tokens = world.tally.usage.total();
    let cost = world.cost_usd().filter(|cost| *cost > 0.0).map(format::usd);
    let used = match cost.or_else(|| format::cost_at_least(world)) {
        Some(cost) => format!("{cost}, {} tokens", format::count(tokens)),
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

/// Adds what the question is about; `changed`: other arguments with which the call is approved. A seat reads
/// the table, which is not in the question.
pub fn add_subject(
    doc: &mut StyledText,
    asked: &QuestionAsked,
    changed: Option<&Arc<Value>>,
    world: &World,
) {
    match &asked.subject {
        Subject::ToolCall { args, effects, parameters, .. } => {
            match changed {
                Some(edited) => changed_arguments(doc, parameters, args, edited),
                None => call_arguments(doc, parameters, args),
            }
            doc.gap();
            if is_irreversible(asked) {
                doc.warning("effects", format!("irreversible: it {}", effects.phrase()));
            } else {
                doc.field("effects", effects.phrase());
            }
        }
        Subject::Agent { text, choices } | Subject::Permission { text, choices } => {
            doc.paragraph("question", &shown(text));
            numbered(doc, choices.iter().map(|choice| &**choice));
            doc.gap();
        }
        Subject::Turn { agent, request, hand_over_to } => {
            let from = world.agents().and_then(|agents| handed_over(agents, agent));
            doc.field("from", shown(&from.unwrap_or_else(|| "the user".to_owned())));
            doc.paragraph("message", &shown(request));
            if !hand_over_to.is_empty() {
                let names: Vec<&str> = hand_over_to.iter().map(AgentName::as_str).collect();
                doc.field("hand over", names.join(", "));
            }
            doc.gap();
        }
        Subject::Seat { .. } => {}
        Subject::Input { text, parameters, .. } => {
            doc.paragraph("question", &shown(text));
            let fields = parameters.get("properties").and_then(Value::as_object);
            for (name, field) in fields.into_iter().flatten() {
                let about =
                    ["description", "title"].iter().find_map(|key| field.get(key)?.as_str());
                doc.item(&shown(name), StyleRole::Text, shown(about.unwrap_or_default()));
            }
            doc.gap();
        }
        Subject::Tools { tools, .. } => {
            doc.list("tools", tools.iter().map(|it| shown(&format!("{}: {}", it.name, it.text))));
            doc.gap();
            let words = asked.subject.choices();
            let phrases = words.iter().map(|word| match &**word {
                ALLOW => "allow: their calls are made without asking",
                ASK => "ask: each of their calls is asked about",
                ACCEPT => "accept: they are used as they are now",
                LEAVE_OUT => "leave out: the run does without them",
                word => word,
            });
            numbered(doc, phrases);
            doc.gap();
        }
        Subject::Decision { stances, conflicts } => {
            goal(doc, world);
            doc.gap();
            doc.heading("Stances of the last round");
            arguments(doc, stances);
            doc.list("conflicts", conflicts.iter().map(|text| shown(text)));
            choices(doc, asked);
        }
        Subject::InDoubt { args, .. } => {
            if !args.is_null() {
                arguments(doc, args);
                doc.gap();
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

/// What a model in this seat would read: the goal, the facts, and the last rounds.
fn seat(doc: &mut StyledText, page: &RunPage) {
    goal(doc, page.world());
    // The log of a run that is played elsewhere does not have the facts.
    let facts = page.launch().map(|launch| &launch.scenario.facts);
    if let Some(facts) = facts.filter(|it| it.as_object().is_some_and(|it| !it.is_empty())) {
        doc.heading("Facts");
        arguments(doc, facts);
    }
    if let Some(words) = words_of(page.world()) {
        words.read_before(doc, &shown);
    }
}

fn goal(doc: &mut StyledText, world: &World) {
    if let Some(head) = &world.run.head {
        doc.paragraph("goal", &shown(&head.goal));
    }
}

/// Who handed over to an agent that is at work, or asks it.
fn handed_over(agents: &AgentsFold, agent: &AgentName) -> Option<String> {
    let hop = agents.running().filter(|hop| hop.to == *agent).last()?;
    let from = hop.from.as_ref()?;
    Some(match hop.kind {
        HopKind::Consult => format!("{from}, which consults {agent}"),
        HopKind::Handoff | HopKind::Start | HopKind::Next => {
            format!("{from}, which hands over to {agent}")
        }
    })
}

/// Values by name.
fn arguments(doc: &mut StyledText, args: &Value) {
    let Some(fields) = args.as_object() else {
        return doc.text(StyleRole::Text, &shown(&value_text(args)));
    };
    let mut lines = ArgumentLines::new(doc, None, fields.keys());
    for (name, value) in fields {
        lines.add(name, StyleRole::Text, &shown(&value_text(value)));
    }
}

/// All arguments of a call, in full up to [`MAX_ARGS_BYTES`](super::MAX_ARGS_BYTES).
fn call_arguments(doc: &mut StyledText, schema: &Value, args: &Value) {
    let Some(fields) = args.as_object() else {
        doc.text(StyleRole::Text, &shown(&value_text(args)));
        return cut_text(doc, args);
    };
    if fields.is_empty() {
        doc.add(StyleRole::Dim, "no arguments");
    }
    let mut lines = ArgumentLines::new(doc, Some(schema), fields.keys());
    lines.limit(args);
    for (name, value) in fields {
        lines.add(name, StyleRole::Text, &value_text(value));
    }
    cut_text(doc, args);
}

/// All arguments as they would be approved, and what they were before.
fn changed_arguments(doc: &mut StyledText, schema: &Value, before: &Value, after: &Value) {
    let empty = serde_json::Map::new();
    let args = after;
    let [before, after] = [before, after].map(|it| it.as_object().unwrap_or(&empty));
    let names = before.keys().chain(after.keys());
    let mut lines = ArgumentLines::new(doc, Some(schema), names);
    lines.limit(args);
    for (name, value) in after {
        match before.get(name) {
            Some(old) if old == value => lines.add(name, StyleRole::Text, &value_text(value)),
            old => {
                lines.add(name, StyleRole::Changed, &value_text(value));
                lines.before(&old.map_or("not given".to_owned(), value_text));
            }
        }
    }
    for (name, value) in before.iter().filter(|(name, _)| !after.contains_key(*name)) {
        lines.add(name, StyleRole::Changed, "left out");
        lines.before(&value_text(value));
    }
    cut_text(doc, args);
}

/// Says that the arguments are longer than the card shows.
fn cut_text(doc: &mut StyledText, args: &Value) {
    if is_too_long(args) {
        let (size, key) = (format::bytes(args_bytes(args) as u64), key_of(Action::EditJson));
        doc.warning("cut", format!("about {size} in all: {key} shows all of it in $EDITOR"));
    }
}

/// The lines of names and values.
struct ArgumentLines<'d> {
    doc: &'d mut StyledText,
    /// The names that the schema of the tool declares; `None`: there is no schema.
    declared: Option<Vec<&'d str>>,
    /// A name is too long for its column, so that no name is in one.
    is_wide: bool,
    /// How many bytes of values are still shown.
    left: usize,
}

impl<'d> ArgumentLines<'d> {
    fn new<'n>(
        doc: &'d mut StyledText,
        schema: Option<&'d Value>,
        mut names: impl Iterator<Item = &'n String>,
    ) -> Self {
        let declared = schema.map(|schema| {
            let properties = schema.get("properties").and_then(Value::as_object);
            properties.into_iter().flat_map(|all| all.keys().map(String::as_str)).collect()
        });
        let is_wide = names.any(|name| name.len() > 99 || columns(name) > NAME_COLUMNS);
        Self { doc, declared, is_wide, left: usize::MAX }
    }

    /// Shows only the beginning of arguments that are too long for a card.
    fn limit(&mut self, args: &Value) {
        if is_too_long(args) {
            self.left = MAX_SHOWN_BYTES;
        }
    }

    fn add(&mut self, name: &str, role: StyleRole, value: &str) {
        let is_declared = self.declared.as_ref().is_none_or(|all| all.contains(&name));
        let mut value = Cow::Borrowed(value);
        if !is_declared {
            value = format!("undeclared: {value}").into();
        }
        // A line break in a name must not look like the end of the value.
        let visible_name = visible(name);
        if self.is_wide {
            value = format!("{visible_name}: {value}").into();
        }
        let label = if self.is_wide { None } else { Some(visible_name.into_owned()) };
        let mut is_first = true;
        for piece in value.split('\n').flat_map(pieces) {
            if self.left < piece.len() {
                self.left = 0;
                return;
            }
            self.left -= piece.len();
            let part = match is_first && !is_declared {
                true => StyledPart::with_glyph(Glyph::Alert, StyleRole::Retry, piece.to_owned()),
                false => StyledPart::new(role, piece.to_owned()),
            };
            let label = if is_first { label.clone() } else { Some(String::new()) };
            let label = label.map(Cow::Owned);
            self.doc.lines.push(StyledLine { label, parts: vec![part] });
            is_first = false;
        }
    }

    /// What the value was.
    fn before(&mut self, value: &str) {
        self.doc.item("", StyleRole::Dim, format!("before: {}", shown(value)));
    }
}

/// A line in pieces that are short enough to be wrapped quickly; at least one.
fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest.take()?;
        if line.len() <= MAX_LINE_BYTES {
            return Some(line);
        }
        let (piece, after) = line.split_at(first_bytes(line, MAX_LINE_BYTES).len());
        rest = Some(after);
        Some(piece)
    })
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
    let start = first_bytes(text, MAX_SHOWN_BYTES);
    let more = format::bytes((text.len() - start.len()) as u64);
    format!("{start}\n({more} more are not shown)")
}

/// The calls of tools that the agent made before it asked, each with its result, the last one last.
fn calls_before(page: &RunPage, by: &str, seq: Seq) -> Vec<String> {
    let (log, world) = (page.log(), page.world());
    let end = log.place(seq);
    let mut steps = BTreeSet::new();
    let mut calls: Vec<String> = log
        .between(end.saturating_sub(MAX_SEARCHED), end)
        .rev()
        .filter_map(|event| {
            let time = format::time_in_run(world.progress.run_time(event.at));
            if let EventKind::AgentStep(step) = &event.kind {
                let said = sentence(event, world);
                // Of a step only how far it is now.
                let is_own = said.subject == by && steps.insert((event.span, Arc::clone(&step.id)));
                let is_open = step.state == StepState::Started;
                let end = if is_open { ": no result yet" } else { "" };
                return is_own.then(|| format!("{time}  {}{end}", line_of(&said.text)));
            }
            let EventKind::CallStarted(call) = &event.kind else { return None };
            let is_own = call.purpose.asks() == Asks::Tool && sentence(event, world).subject == by;
            // The call that asks is no earlier one.
            let asks = log.get(end).is_some_and(|question| question.span == event.span);
            if !is_own || asks || world.question_within(event.span).is_some() {
                return None;
            }
            let args = world.questions.changed_args(event.span).or(call.args.as_deref());
            let args = args.map(top_text).unwrap_or_default();
            let result = result_of(page, event.span);
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
        (None, Some(SpanState::Denied)) => "denied".to_owned(),
        (None, _) => "no result".to_owned(),
    }
}

/// The first line of a text.
fn line_of(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    line.chars().take(MAX_LINE_CHARS).collect()
}
