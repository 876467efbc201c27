//! The fields of a research run's outcome (research source document).

use serde_json::{Value, json};

use super::{NoteRow, Research, SourceRow, SourceState};
use crate::log::event::{Elapsed, RunClosed, StopReason};
use crate::log::facts::research::{DropReason, NoteConflict, ResearchPlan};
use crate::log::world::RunFold;
use crate::log::world::outcome::{OutcomeFields, to_value};

impl Research {
    /// Adds the fields that the source document defines.
    pub(crate) fn outcome_fields(&self, run: &RunFold, fields: &mut OutcomeFields) {
        let Some(closed) = &run.progress.closed else { return };
        let plan = &*self.plan;
        let success = closed.reason.is_success();
        let mut add = |name: &'static str, value: Value| fields.add(name, &value);
        if success {
            add("outcome", "grounded_research_answer".into());
            add("answer", run.progress.answer.as_deref().map_or(Value::Null, Value::from));
            add("citations", to_value(&self.citations));
            let cited = self.notes.iter().filter(|row| self.is_cited(&row.note.id));
            add("citation_details", cited.map(citation).collect());
            // Added by roundtable: the notes that support each sentence.
            add("sentences", self.sentences.iter().map(to_value).collect());
            add("aggregate", self.aggregate_fields());
        } else {
            stopped(self, closed, &mut add);
        }
        // Added by roundtable: what was dropped, skipped, refused and cut.
        let dropped: Vec<Value> = self.sources.iter().filter_map(|row| dropped(row)).collect();
        let skipped: Vec<Value> = self.kept().filter_map(skipped).collect();
        let refused: Vec<Value> = self.refused.iter().map(|note| to_value(&**note)).collect();
        let cut: Vec<Value> = self.kept().filter_map(cut).collect();
        for (name, rows) in [
            ("dropped_sources", dropped),
            ("skipped_sources", skipped),
            ("refused_notes", refused),
            ("cut_notes", cut),
        ] {
            if !rows.is_empty() {
                add(name, rows.into());
            }
        }
        if !self.unsearched.is_empty() {
            add("unsearched", to_value(&self.unsearched));
        }
        // Added by roundtable: the parts of the question that no note says anything about.
        if !self.unanswered.is_empty() {
            add("unanswered", to_value(&self.unanswered));
        }
        if !self.compared.conflicts.is_empty() {
            add("conflicts", self.compared.conflicts.iter().map(conflict).collect());
        }
        if plan.min_independent_sources > 1 {
            add("unconfirmed", to_value(&self.compared.unconfirmed));
        }
        if !self.notes.is_empty() {
            add("notes", self.notes.iter().map(|row| to_value(&*row.note)).collect());
        }
        // Notes that the policy refused end the step before it is reported.
        let noted = !self.notes.is_empty()
            && self.reading_end.is_some()
            && !matches!(closed.reason, StopReason::InvalidNotes(_));
        add("trace", self.trace(run, noted));
        add("history", history(self, plan, noted));
    }

    fn aggregate_fields(&self) -> Value {
        json!({
            "query": self.query.as_ref().map(|(query, _)| &**query),
            "urls_found": self.sources.len(),
            "urls_after_dedupe": self.kept().count(),
            "pages_read": self.pages_read(),
            "notes_count": self.notes.len(),
            "citations_count": self.citations.len(),
            "denied_sources": denied(self),
            "verified_notes": self.verified.as_ref().map_or(0, |verified| verified.checked),
        })
    }

    fn trace(&self, run: &RunFold, noted: bool) -> Value {
        let mut lines: Vec<Value> = Vec::new();
        let mut step = |phase: &str, at: Elapsed, own: Value| {
            let took =
                crate::base::time::millis(run.progress.active_between(Elapsed(0), at)).max(1);
            let mut line = json!({ "step": lines.len() + 1, "phase": phase });
            if let (Value::Object(line), Value::Object(own)) = (&mut line, own) {
                line.extend(own);
                line.insert("elapsed_ms".to_owned(), took.into());
                line.insert("ok".to_owned(), true.into());
            }
            lines.push(line);
        };
        if let Some((steps, at)) = &self.steps {
            step("plan", *at, json!({ "steps": steps.len() }));
        }
        if let Some((query, at)) = &self.query {
            step("search", *at, json!({ "query": **query, "candidates": self.sources.len() }));
        }
        if let Some((kept, at)) = self.kept.as_ref().filter(|(kept, _)| !kept.is_empty()) {
            step("dedupe", *at, json!({ "urls_after_dedupe": kept.len() }));
        }
        if let Some((_, at)) = self.reading_end.filter(|_| noted) {
            let own = json!({
                "pages_read": self.pages_read(),
                "notes": self.notes.len(),
                "denied_sources": self.kept().filter(|row| denial(row).is_some()).count(),
            });
            step("read_extract", at, own);
        }
        if let Some(verified) = self.verified.as_ref().filter(|it| it.issues.is_empty()) {
            let own = json!({ "checked_notes": verified.checked, "issues": 0 });
            step("verify", verified.at, own);
        }
        if let Some(at) = self.answered {
            let own = json!({
                "answer_chars": run.progress.answer.as_deref().map_or(0, |text| text.chars().count()),
                "citations": self.citations.len(),
            });
            step("synthesize", at, own);
        }
        lines.into()
    }
}

/// The fields that the research source document defines for this kind of stop.
fn stopped(world: &Research, closed: &RunClosed, add: &mut impl FnMut(&'static str, Value)) {
    match &closed.reason {
        StopReason::InvalidPlan(_) | StopReason::InvalidStep(_) => {
            if let Some(refused) = &world.refused_plan {
                if let Some(details) = &refused.details {
                    add("details", details.clone());
                }
                add("raw_plan", refused.raw.clone());
            }
        }
        StopReason::NoReliableSources => add("denied_sources", denied(world)),
        StopReason::VerificationFailed(_) => {
            if let Some(verified) = &world.verified {
                let issues = verified.issues.iter().map(|it| it.issue.word());
                add(
                    "verification",
                    json!({
                        "ok": false,
                        "checked_notes": verified.checked,
                        "issues": issues.collect::<Vec<_>>(),
                        "of_notes": verified.issues.iter().map(|it| &it.note).collect::<Vec<_>>(),
                    }),
                );
            }
        }
        StopReason::InvalidAnswer(_) => {
            if let Some((_, raw)) = &world.refused_answer {
                add("raw_answer", raw.clone());
            }
        }
        _ => {}
    }
}

fn history(world: &Research, plan: &ResearchPlan, noted: bool) -> Value {
    let mut lines: Vec<Value> = Vec::new();
    let mut step = |action: &str, own: Value| {
        let mut line = json!({ "step": lines.len() + 1, "action": action });
        if let (Value::Object(line), Value::Object(own)) = (&mut line, own) {
            line.extend(own);
        }
        lines.push(line);
    };
    if let Some((steps, _)) = &world.steps {
        let ids: Vec<&str> = steps.iter().map(|it| &*it.id).collect();
        step("propose_research_plan", json!({ "step_ids": ids, "by": plan.plan_by }));
    }
    if let Some((query, _)) = &world.query {
        let own = json!({ "query": **query, "candidates": world.sources.len() });
        step("search_sources", own);
    }
    if let Some((kept, _)) = world.kept.as_ref().filter(|(kept, _)| !kept.is_empty()) {
        step("dedupe_urls", json!({ "urls_after_dedupe": kept.len() }));
    }
    if noted {
        let own = json!({
            "pages_read": world.pages_read(),
            "denied_sources": denied(world),
            "by": plan.notes_by,
        });
        step("read_extract_notes", own);
    }
    if let Some(verified) = world.verified.as_ref().filter(|it| it.issues.is_empty()) {
        step("verify_notes", json!({ "checked_notes": verified.checked }));
    }
    if world.answered.is_some() {
        let own = json!({ "citations": world.citations, "by": plan.answer_by });
        step("synthesize_answer", own);
    }
    lines.into()
}

fn citation(row: &NoteRow) -> Value {
    let note = &row.note;
    let mut detail = json!({
        "id": note.id,
        "url": *note.url,
        "title": *note.title,
        "published_at": *note.published_at,
    });
    // Added by roundtable: the date is that of the file's last change.
    if note.modified {
        detail["dated_by"] = "modified".into();
    }
    detail
}

fn denied(world: &Research) -> Value {
    world.kept().filter_map(denial).collect()
}

fn denial(row: &SourceRow) -> Option<Value> {
    let SourceState::Denied { reason, location } = &row.state else { return None };
    let mut line = json!({ "url": row.address(), "reason": reason });
    if let Some(location) = location {
        line["location"] = (**location).into();
    }
    Some(line)
}

fn dropped(row: &SourceRow) -> Option<Value> {
    let SourceState::Dropped(reason) = &row.state else { return None };
    let mut line = json!({ "reason": reason.word() });
    if let DropReason::Duplicate { duplicate_of } = reason {
        line["of"] = to_value(duplicate_of);
    }
    line["url"] = row.address().into();
    Some(line)
}

fn conflict(notes: &NoteConflict) -> Value {
    json!({
        "left": notes.left,
        "right": notes.right,
        "left_says": *notes.left_figure,
        "right_says": *notes.right_figure,
    })
}

fn cut(row: &SourceRow) -> Option<Value> {
    let cut = row.cut?;
    let (proposed, limit) = (cut.proposed, cut.limit);
    Some(json!({ "url": row.address(), "proposed": proposed, "cut": cut.cut, "limit": limit }))
}

fn skipped(row: &SourceRow) -> Option<Value> {
    let SourceState::Skipped { reason, text } = &row.state else { return None };
    Some(json!({ "url": row.address(), "reason": **reason, "text": **text }))
}
