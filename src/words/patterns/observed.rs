//! An observed run in words. What is about its agents is in [`agents`].

use std::borrow::Cow;
use std::time::Duration;

use super::{
    Closing, Narrate, PatternPane, PatternTerms, Progress, add_end, agents, closest_limit, end_line,
};
use crate::base::time::duration_text;
use crate::base::visible::{REASON_CHARS, visible, visible_within};
use crate::log::event::{Elapsed, Event, Purpose, RunClosed, SpanId, StopReason};
use crate::log::facts::observed::{ObservedFact, SpanAbout, SpanEnd, SpanRole};
use crate::log::world::observed::{CallTotals, Observed};
use crate::log::world::tool_row::ToolRow;
use crate::log::world::{RunFold, SpanKind, SpendingUsed, World};
use crate::words::format;
use crate::words::glyph::Glyph;
use crate::words::sentence::Sentence;
use crate::words::styled::{StyleRole, StyledLine, StyledPart, StyledText};
use crate::words::tool_sentence::{breaker_state, fault_text};
use crate::words::verdict::RunVerdict;

/// Longest subject of an event, in columns.
const MAX_SUBJECT: usize = 24;

impl Narrate for Observed {
    fn terms(&self) -> PatternTerms {
        PatternTerms { answer: "answer", answer_mark: "answer", has_rounds: false }
    }

    fn progress(&self, run: &RunFold) -> Progress {
        let spans = self.spans.len() as u64;
        let short = if spans == 0 { String::new() } else { spans.to_string() };
        let text = match spans {
            0 if run.progress.closed.is_some() => "no spans".to_owned(),
            0 => "waits for the first span".to_owned(),
            _ => format::count_noun(spans, "span"),
        };
        let most = self.plan.guard.as_ref().and_then(|guard| guard.max_calls);
        let budget = most.map(|most| ("calls", self.requests, most));
        Progress { text: Some(text), short, budget, spending: closest_limit(run) }
    }

    fn started(&self) -> (String, String) {
        ("another program".to_owned(), "watched".to_owned())
    }

    fn span_name(&self, span: &SpanKind) -> Option<Cow<'_, str>> {
        match span {
            SpanKind::Observed(role) => Some(role.word().into()),
            _ => None,
        }
    }

    fn tell<'w>(&'w self, event: &'w Event, _run: &'w RunFold, it: &mut Sentence<'w>) {
        let Some(fact) = ObservedFact::of(&event.kind) else { return };
        if event.span != SpanId::RUN {
            it.about(self.span(event.span).map_or(Cow::Borrowed(""), |span| subject(&span.about)));
        }
        match fact {
            ObservedFact::Opened { about, .. } if about.name.is_empty() => {
                it.set(StyleRole::Dim, "a span that only its children name so far");
            }
            ObservedFact::Opened { about, .. } => {
                it.set(StyleRole::Text, begin_text(about));
                if let Some(input) = &about.input {
                    it.with_detail(&**input);
                }
            }
            ObservedFact::Closed { end, about, .. } => {
                let known = self.span(event.span).map_or(&**about, |span| &*span.about);
                let took =
                    took_text(known).map_or_else(String::new, |took| format!(" after {took}"));
                let (role, text) = match end {
                    SpanEnd::Done => (StyleRole::Done, format!("ended{took}")),
                    SpanEnd::Failed => (StyleRole::Failed, format!("failed{took}")),
                    SpanEnd::Interrupted => (StyleRole::NeedsYou, format!("stopped to ask{took}")),
                    SpanEnd::Tripped => (StyleRole::Notice, format!("tripped{took}")),
                    SpanEnd::Lost => (StyleRole::Dim, "its end was not reported".to_owned()),
                };
                it.set(role, text);
                if let Some(text) = known.error.as_ref().or(known.output.as_ref()) {
                    it.with_detail(&**text);
                }
            }
            ObservedFact::Text { stream, text } => {
                it.about(stream.word()).set(StyleRole::Text, &**text);
            }
            ObservedFact::Recorded { reply } => {
                let size = crate::words::format::bytes(reply.bytes);
                let cut = if reply.cut { ", its end is missing" } else { "" };
                let text = format!("HTTP {}, {size} recorded{cut}", reply.status);
                it.set(StyleRole::Dim, text).as_run(Glyph::Arrow, "recorded");
            }
            ObservedFact::Named { about } => {
                let text = match (&about.part, &about.after) {
                    (Some(part), _) => format!("the trace of {part}"),
                    (None, Some(run)) => format!("continues run {run}"),
                    (None, None) => "the trace".to_owned(),
                };
                it.set(StyleRole::Text, text).as_run(Glyph::Arrow, "named");
                if let Some(input) = &about.input {
                    it.with_detail(&**input);
                }
            }
            ObservedFact::Ended { exit_code, part } => {
                let role = if *exit_code == 0 { StyleRole::Done } else { StyleRole::Failed };
                let text = match part {
                    Some(part) if *exit_code == 0 => format!("{} passed", part.part),
                    Some(part) => format!("{} failed", part.part),
                    None => format!("the program ended with exit code {exit_code}"),
                };
                it.set(role, text).as_run(Glyph::Done, "ended");
                if let Some(error) = part.as_ref().and_then(|part| part.error.as_ref()) {
                    it.with_detail(&**error);
                }
            }
            ObservedFact::Note { text } => {
                it.set(StyleRole::Notice, &**text).as_run(Glyph::Alert, "note");
            }
        }
    }

    fn call_fields(&self, _purpose: &Purpose, _of_event: bool, _to: &mut StyledText) {}

    fn event_fields(&self, event: &Event, _run: &RunFold, to: &mut StyledText) {
        if let Some(span) = self.span(event.span) {
            add_fields(&span.about, to);
        }
    }

    fn preview(&self, run: &RunFold, to: &mut StyledText) {
        add_end(run, to);
        add_totals(self, to);
    }

    fn result(&self, run: &RunFold) -> StyledLine {
        match &run.progress.closed {
            Some(closed) => end_line(run, closed),
            None => StyledLine::default(),
        }
    }

    fn verdict(&self, run: &RunFold, closed: &RunClosed) -> RunVerdict {
        let mut verdict = RunVerdict::of(run, closed);
        let spans = self.spans.len() as u64;
        if closed.reason == StopReason::NothingReported {
            (verdict.glyph, verdict.role) = (Glyph::Alert, StyleRole::Notice);
            return verdict;
        }
        verdict.facts.push(format::count_noun(spans, "span"));
        if self.failed > 0 {
            verdict.facts.push(format!("{} failed", self.failed));
        }
        verdict
    }

    fn transcript(&self, event: &Event, run: &RunFold) -> Vec<StyledLine> {
        agents::transcript(&self.agents, event, run)
    }

    fn totals(&self) -> Vec<StyledPart> {
        vec![StyledPart::plain(agents::totals(&self.agents))]
    }

    fn closing(&self) -> Closing {
        Closing { answer: None, table: totals_table(self) }
    }

    fn rows(&self, pane: PatternPane, run: &RunFold) -> Option<Vec<String>> {
        (pane == PatternPane::Third).then(|| agents::hop_rows(&self.agents, run))
    }

    fn longest_subject(&self, _run: &RunFold) -> usize {
        MAX_SUBJECT
    }
}

fn subject(about: &SpanAbout) -> Cow<'_, str> {
    let name = about.agent.as_deref().filter(|_| about.role == SpanRole::Model);
    visible_within(name.unwrap_or(&about.name), MAX_SUBJECT).into()
}

fn begin_text(about: &SpanAbout) -> String {
    match about.role {
        SpanRole::Step => "begins".to_owned(),
        SpanRole::Node => "begins, a node".to_owned(),
        SpanRole::Agent => "has its turn".to_owned(),
        SpanRole::Model => {
            let model = about.model.as_deref().unwrap_or(&about.name);
            format!("calls the model {}", visible_within(model, REASON_CHARS))
        }
        SpanRole::Tool => "is called".to_owned(),
        SpanRole::Handoff => {
            let to = about.to.as_deref().unwrap_or_default();
            format!("hands over to {}", visible_within(to, REASON_CHARS))
        }
        SpanRole::Embedding => "embeds texts".to_owned(),
        SpanRole::Retriever => "searches".to_owned(),
        SpanRole::Guardrail => "is checked".to_owned(),
    }
}

/// How long a span took by the clock of its program.
pub fn took_text(about: &SpanAbout) -> Option<String> {
    about.took_us().map(|us| duration_text(Duration::from_micros(us)))
}

/// Adds what is known of a span, its texts in full.
pub fn add_fields(about: &SpanAbout, to: &mut StyledText) {
    to.field("span", format!("{}, {}", visible(&about.name), about.role.word()));
    let texts = [("agent", &about.agent), ("to", &about.to), ("model", &about.model)];
    for (label, text) in texts {
        if let Some(text) = text {
            to.field(label, visible(text));
        }
    }
    if let Some(took) = took_text(about) {
        to.field("took", took);
    }
    if let (Some(prompt), reply) = (about.tokens_in, about.tokens_out.unwrap_or(0)) {
        to.field("tokens", format!("{prompt} in, {reply} out"));
    }
    if let Some(cost) = about.cost_usd {
        to.field("cost", format::usd(cost));
    }
    for (label, text) in [("input", &about.input), ("output", &about.output)] {
        if let Some(text) = text {
            to.paragraph(label, text);
        }
    }
    if let Some(error) = &about.error {
        to.item("error", StyleRole::Failed, "");
        to.paragraph("", error);
    }
    to.field("id", visible(&about.id));
}

/// Adds what a guarded program has used of its limits, and how its models are protected.
pub fn add_limits(world: &World, run: &Observed, to: &mut StyledText) {
    let Some(plan) = &run.plan.guard else { return };
    let limit = |most: Option<u64>| most.map_or_else(String::new, |most| format!(" of {most}"));
    let mut spent: Vec<String> = vec![format!("{} calls{}", run.requests, limit(plan.max_calls))];
    spent.extend(world.spending_used().into_iter().map(|used| match used {
        SpendingUsed::Tokens { used, limit } => format!("{used} tokens of {limit}"),
        SpendingUsed::Cost { used, limit } => {
            format!("{} of {}", format::usd(used), format::usd(limit))
        }
    }));
    if let Some(most) = plan.max_seconds {
        let used = world.progress.active(world.progress.at).as_secs();
        spent.push(format!("{used} s of {most} s"));
    }
    to.list("limits", spent);
    let held = world.questions.open().count();
    if held > 0 {
        to.field("waits", format!("{} for you", format::count_noun(held as u64, "call")));
    }
    let protects = |row: &&ToolRow| {
        let limits = &row.head.limits;
        let is_limited =
            limits.breaker.is_some() || limits.bulkhead.is_some() || limits.rate.is_some();
        row.head.kind == "model" || is_limited || !row.faults.is_empty()
    };
    let guards = world.tools.rows().iter().filter(protects);
    to.list("guards", guards.map(|row| guard_text(row, world.progress.at)));
    to.gap();
}

/// How a model is protected, and what it is doing.
fn guard_text(row: &ToolRow, now: Elapsed) -> String {
    let limits = &row.head.limits;
    let mut parts = Vec::new();
    if limits.breaker.is_some() {
        let until = row.until.map(|until| duration_text(until.since(now)));
        let opens = until.map_or_else(String::new, |left| format!(" for {left}"));
        parts.push(format!("breaker {}{opens}", breaker_state(row.breaker)));
    }
    let most = limits.bulkhead.map_or_else(String::new, |it| format!(" of {}", it.max_in_flight));
    parts.push(format!("{}{most} in flight", row.in_flight));
    if row.queued > 0 {
        parts.push(format!("{} queued", row.queued));
    }
    parts.extend(limits.rate.map(|rate| format!("{rate} a minute")));
    parts.extend(row.faults.iter().map(|fault| fault_text(fault).into_owned()));
    format!("{} {}", visible(row.head.name.as_str()), parts.join(", "))
}

/// Adds its agents, tools and models with their calls.
pub fn add_totals(run: &Observed, to: &mut StyledText) {
    let agents = run.agents.agents.iter();
    to.list(
        "agents",
        agents.map(|row| {
            let turns = format::count_noun(row.turns.into(), "turn");
            format!("{} {turns}", visible(row.name.as_str()))
        }),
    );
    for (label, rows) in [("tools", &run.tools), ("models", &run.models)] {
        to.list(label, rows.iter().map(totals_text));
    }
}

fn totals_text(row: &CallTotals) -> String {
    let mut text = format!("{} {}", visible(&row.name), format::count_noun(row.calls, "call"));
    if row.open > 0 {
        text.push_str(&format!(", {} open", row.open));
    }
    if row.failed > 0 {
        text.push_str(&format!(", {} failed", row.failed));
    }
    if row.took_us > 0 {
        text.push_str(&format!(", {}", duration_text(Duration::from_micros(row.took_us))));
    }
    if row.tokens() > 0 {
        text.push_str(&format!(", {} tok", format::count(row.tokens())));
    }
    text
}

/// The table at the end of headless text.
fn totals_table(run: &Observed) -> String {
    let rows = run.tools.iter().map(|row| ("tool", row));
    let rows = rows.chain(run.models.iter().map(|row| ("model", row)));
    let lines = rows.map(|(what, row)| format!("{what:<6} {}\n", totals_text(row)));
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}
