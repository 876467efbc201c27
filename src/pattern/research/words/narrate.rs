//! What research says about its runs.

use std::borrow::Cow;

use super::event_line::fill_line;
use super::{fields, lines, report};
use crate::event::kind::{Purpose, RunClosed};
use crate::event::patterns::PatternFact;
use crate::event::world::{RunFold, SpanKind};
use crate::event::{Event, EventKind};
use crate::narrate::event_line::EventLine;
use crate::narrate::format;
use crate::narrate::measure::columns;
use crate::narrate::pattern_words::{Closing, Narrate, PatternTerms};
use crate::narrate::preview::{add_end, end_line};
use crate::narrate::progress::Progress;
use crate::narrate::style_role::StyleRole;
use crate::narrate::styled::{StyledLine, StyledPart, StyledText};
use crate::narrate::verdict::RunVerdict;
use crate::pattern::research::facts::ResearchFact;
use crate::pattern::research::projection::Research;

impl Narrate for Research {
    fn terms(&self) -> PatternTerms {
        PatternTerms { answer: "answer", answer_mark: "answer", has_rounds: false }
    }

    fn progress(&self, _run: &RunFold) -> Progress {
        let far = format!("{}/{}", self.pages_read(), self.plan.max_read_pages);
        Progress {
            text: Some(format!("pages {far}")),
            short: far,
            budget: Some(("notes", self.notes.len() as u64, self.plan.max_notes.into())),
            spending: None,
        }
    }

    fn started(&self) -> (String, String) {
        let domains = self.plan.allowed_domains_policy.len() as u64;
        let pages = format::count_noun(self.plan.max_read_pages.into(), "page");
        (format::count_noun(domains, "domain"), format!("max {pages}"))
    }

    fn span_name(&self, span: &SpanKind) -> Option<Cow<'_, str>> {
        match span {
            SpanKind::Source(no) => Some(no.to_string().into()),
            _ => None,
        }
    }

    fn tell<'w>(&'w self, event: &'w Event, _run: &'w RunFold, line: &mut EventLine<'w>) {
        match &event.kind {
            EventKind::Pattern(PatternFact::Research(ResearchFact::SourceStarted {
                source,
                ..
            })) => {
                line.text = self.source(*source).map_or("", |row| row.address()).into();
            }
            EventKind::AnswerComposed { by: None, .. } => line.subject = "synthesize".into(),
            kind => fill_line(line, kind),
        }
    }

    fn call_fields(&self, purpose: &Purpose, of_event: bool, to: &mut StyledText) {
        fields::add_call(self, purpose, of_event, to);
    }

    fn event_fields(&self, event: &Event, run: &RunFold, to: &mut StyledText) {
        fields::add_event(self, event, run, to);
    }

    fn preview(&self, run: &RunFold, to: &mut StyledText) {
        add_end(run, to);
        let far = self.funnel();
        let sources = format!(
            "{} found, {} kept, {} allowed, {} read",
            far.found, far.deduped, far.allowed, far.read
        );
        to.item("sources", StyleRole::Text, sources);
        let mut notes = format!("{} taken, {} cited", far.notes, far.cited);
        for (count, word) in [
            (self.refused.len(), "refused"),
            (self.compared.conflicts.len(), "in conflict"),
            (self.compared.unconfirmed.len(), "unconfirmed"),
        ] {
            if count > 0 {
                notes.push_str(&format!(", {count} {word}"));
            }
        }
        to.item("notes", StyleRole::Text, notes);
    }

    fn verdict(&self, run: &RunFold, closed: &RunClosed) -> RunVerdict {
        let mut verdict = RunVerdict::of(run, closed);
        let funnel = self.funnel();
        if closed.reason.is_success() && !self.sentences.is_empty() {
            verdict.word = "answered".into();
            verdict.facts.extend(lines::by_rule(self).map(Into::into));
            let sources = format::count_noun(funnel.read as u64, "page");
            verdict.facts.push(format!("{} of {} notes cited", funnel.cited, funnel.notes));
            verdict.facts.push(format!("{sources} read"));
            let conflicts = self.compared.conflicts.len() as u64;
            if conflicts > 0 {
                verdict.facts.push(format::count_noun(conflicts, "conflict"));
            }
            verdict.facts.extend(lines::open_parts(self));
        }
        verdict
    }

    fn result(&self, run: &RunFold) -> StyledLine {
        run.progress.closed.as_ref().map(|closed| end_line(run, closed)).unwrap_or_default()
    }

    fn lines(&self, event: &Event, run: &RunFold) -> Option<Vec<StyledLine>> {
        lines::lines(self, event, run)
    }

    fn caller_name(&self, purpose: &Purpose) -> Option<String> {
        lines::call_label(self, purpose)
    }

    fn totals(&self) -> Vec<StyledPart> {
        vec![StyledPart::plain(lines::totals(self))]
    }

    fn closing(&self) -> Closing {
        Closing { answer: lines::answer(self), table: lines::unanswered(self) }
    }

    fn report(&self, run: &RunFold) -> Option<String> {
        report::markdown(self, run)
    }

    fn has_report(&self, run: &RunFold) -> bool {
        self.answered.is_some() || run.progress.closed.is_some()
    }

    fn longest_subject(&self, run: &RunFold) -> usize {
        let tools = run.tools.rows().iter().map(|tool| columns(tool.name().as_str()));
        // As wide as where agents call tools.
        tools.max().unwrap_or(0) + 9
    }
}
