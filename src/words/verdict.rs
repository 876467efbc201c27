//! The verdict of a run that has ended: what its screen says first.

use std::borrow::Cow;

use super::badges;
use super::format::first_sentence;
use super::glyph::Glyph;
use super::patterns::words_of;
use super::styled::{Badge, StyleRole};
use crate::log::event::stop::StopClass;
use crate::log::event::{Purpose, RunClosed};
use crate::log::world::failures::StopRefusal;
use crate::log::world::{RunFold, World};

/// How a run ended, and the figures behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunVerdict {
    pub glyph: Glyph,
    /// The result in a few words, such as `go` or `time limit`.
    pub word: Cow<'static, str>,
    /// How it is painted.
    pub role: StyleRole,
    /// The figures behind it, the most important first.
    pub facts: Vec<String>,
    /// Why the run was stopped, if more is known than the stop reason says.
    pub cause: Option<String>,
    /// The identifier of the stop reason, where the words say something else. It comes last.
    pub id: Option<String>,
}

impl RunVerdict {
    /// The verdict that a stop reason gives, without any facts.
    pub fn of(run: &RunFold, closed: &RunClosed) -> Self {
        let Badge { glyph, word, role } = badges::ended(closed.reason.class());
        let cause = run.stop_refusal().map(refused_text);
        let word = match closed.reason.is_success() || cause.is_some() {
            true => word.into(),
            false => closed.reason.phrase().into_owned().into(),
        };
        Self { glyph, word, role, facts: Vec::new(), cause, id: reason_id(closed) }
    }

    /// The verdict of a run: that of its pattern, and which of its replies are cut.
    pub fn of_run(world: &World, closed: &RunClosed) -> Self {
        let mut verdict = match words_of(world) {
            Some(words) => words.verdict(world, closed),
            None => Self::of(world, closed),
        };
        let answer = world.progress.answer_end.mark().map(|mark| format!("answer {mark}"));
        let cut = match world.cut_replies().len() {
            0 => None,
            1 => Some("1 reply cut".to_owned()),
            several => Some(format!("{several} replies cut")),
        };
        // What stopped the run leads.
        let fact = answer.or(cut).filter(|_| verdict.cause.is_none());
        if let Some(fact) = fact {
            verdict.facts.insert(0, fact);
        }
        verdict
    }

    /// The verdict in one line: the result and its figures, or why the run was stopped.
    pub fn text(&self) -> String {
        let facts = self.facts.iter().map(String::as_str).chain(self.cause.as_deref());
        let facts: Vec<&str> = facts.collect();
        match facts.is_empty() {
            true => self.word.clone().into_owned(),
            false => format!("{}: {}", self.word, facts.join(", ")),
        }
    }

    /// Sets why the run was stopped, which the badge and not the stop reason precedes.
    pub fn because(mut self, closed: &RunClosed, cause: String) -> Self {
        self.word = badges::ended(closed.reason.class()).word.into();
        self.cause = Some(cause);
        self
    }

    /// Adds a fact.
    pub fn with(mut self, fact: impl Into<String>) -> Self {
        self.facts.push(fact.into());
        self
    }
}

/// Why a run ended, in words: what is wrong with the reply or the task that stopped it, else its stop
/// reason.
pub fn stop_lead(world: &World, closed: &RunClosed) -> String {
    let own = words_of(world).and_then(|words| words.stop_detail(closed));
    own.unwrap_or_else(|| run_lead(world, closed))
}

/// Why a run was stopped, in one line: what stopped it, and the error behind that. Where the error has a line of
/// its own, that is [`RunFold::stop_cause`], the same text.
pub fn stop_line(world: &World, closed: &RunClosed) -> String {
    with_cause(stop_lead(world, closed), world)
}

/// The same without what only the pattern knows.
pub fn run_stop_line(run: &RunFold, closed: &RunClosed) -> String {
    with_cause(run_lead(run, closed), run)
}

fn with_cause(lead: String, run: &RunFold) -> String {
    match run.stop_cause() {
        Some(cause) => format!("{lead}: {cause}"),
        None => lead,
    }
}

/// What stopped a run: the error behind its stop reason, if it has one. Empty before the end.
pub fn why_stopped(world: &World) -> String {
    let closed = world.progress.closed.as_deref();
    let lead = || closed.map(|closed| stop_lead(world, closed)).unwrap_or_default();
    world.stop_cause().map_or_else(lead, |cause| first_sentence(&cause).to_owned())
}

/// The stop reason or the refused reply of a run, without what only the pattern knows.
pub fn run_lead(run: &RunFold, closed: &RunClosed) -> String {
    // At an earlier moment of the log the run has not ended.
    match run.stop_refusal() {
        Some(stop) => refused_text(stop),
        None => closed.reason.phrase().into_owned(),
    }
}

/// The phase in which a run was stopped, in words: `round 2, risk_analyst`.
pub fn phase_text(phase: &str) -> String {
    match phase.split_once(':') {
        Some((step, name)) => format!("{}, {name}", step.replace('_', " ")),
        None => phase.replace('_', " "),
    }
}

/// Where a run was stopped, behind the words for why: ` in round 2, risk_analyst`. A name that those words
/// have already is not repeated.
pub fn place_after(lead: &str, closed: &RunClosed) -> String {
    let Some(phase) = closed.phase.as_deref() else { return String::new() };
    let is_said = |name: &str| lead.split([' ', ',', ':', '\'']).any(|word| word == name);
    let text = match phase.split_once(':') {
        Some((step, name)) if is_said(name) => phase_text(step),
        None if is_said(phase) => return String::new(),
        _ => phase_text(phase),
    };
    format!(" in {text}")
}

/// The identifier of a stop reason that comes behind its words; `None` where they say all of it.
pub fn reason_id(closed: &RunClosed) -> Option<String> {
    let said = matches!(closed.reason.class(), StopClass::Ok | StopClass::Cancelled);
    let id = closed.reason.to_string();
    (!said && id != closed.reason.phrase()).then_some(id)
}

/// What is wrong with a refused reply, and whose it is: `risk_analyst's reply is not JSON ("I think…")`.
pub fn refused_text(stop: &StopRefusal) -> String {
    let who = match &stop.purpose {
        Some(Purpose::Plan) => "the planner".into(),
        Some(Purpose::Classify) => "the classifier".into(),
        Some(purpose @ (Purpose::Notes { .. } | Purpose::Task { .. })) => {
            format!("the model for {}", purpose.label()).into()
        }
        Some(Purpose::Synthesize | Purpose::Finalize) | None => Cow::Borrowed("the model"),
        Some(purpose) => purpose.label(),
    };
    reply_text(&who, &stop.refused.detail)
}

/// The sentence for a refused reply of somebody, from what the gateway says about it.
pub fn reply_text(who: &str, detail: &str) -> String {
    if let Some(begins) = detail.strip_prefix("not JSON: begins with ") {
        // After the beginning the parser says where, and which repair would accept it.
        let begins = begins.split_once("; repair = ").map_or(begins, |(begins, _)| begins);
        let end = match begins.strip_prefix('"') {
            Some(_) => begins.rfind('"').map(|end| end + 1),
            None => begins.find("; "),
        };
        return format!("{who}'s reply is not JSON ({})", &begins[..end.unwrap_or(begins.len())]);
    }
    match detail.strip_prefix("the reply ") {
        Some(what) => format!("{who}'s reply {what}"),
        None if detail.starts_with("the ") => format!("{who}: {detail}"),
        None => format!("{who}'s reply: {detail}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_is_told_in_words() {
        for (phase, text) in [
            ("round_2:risk_analyst", "round 2, risk_analyst"),
            ("read_extract", "read extract"),
            ("finalize", "finalize"),
        ] {
            assert_eq!(phase_text(phase), text);
        }
    }

    #[test]
    fn a_place_is_told_once() {
        let closed = |reason: &str, phase: &str| RunClosed {
            reason: reason.into(),
            phase: Some(phase.into()),
            boundary: None,
            elapsed_ms: 0,
            paused_ms: 0,
            in_flight: 0,
        };
        for (reason, phase, place) in [
            ("agent_denied:legal_analyst", "round_1:legal_analyst", " in round 1"),
            ("llm_timeout", "round_1:legal_analyst", " in round 1, legal_analyst"),
            ("node_timeout:database", "database", ""),
            ("max_handoffs", "brand", " in brand"),
        ] {
            let closed = closed(reason, phase);
            assert_eq!(place_after(&closed.reason.phrase(), &closed), place);
        }
    }

    #[test]
    fn refused_reply_names_its_agent() {
        for (detail, text) in [
            (
                "not JSON: begins with \"I think we should\"; expected value at line 1 column 1",
                "risk_analyst's reply is not JSON (\"I think we should\")",
            ),
            (
                "not JSON: begins with \"Sure! {\"agent\":…\"; repair = [\"preface\"] would remove it",
                "risk_analyst's reply is not JSON (\"Sure! {\"agent\":…\")",
            ),
            (
                "not JSON: begins with \"{\"agent\":…\"; trailing comma at line 1 column 9; repair = [\"commas\"] would remove it",
                "risk_analyst's reply is not JSON (\"{\"agent\":…\")",
            ),
            (
                "not JSON: begins with ```json; repair = [\"fence\"] would remove it",
                "risk_analyst's reply is not JSON (```json)",
            ),
            ("the reply is empty", "risk_analyst's reply is empty"),
            ("the reply ended at its token limit", "risk_analyst's reply ended at its token limit"),
            ("the model refused: no", "risk_analyst: the model refused: no"),
            ("keys missing: actions", "risk_analyst's reply: keys missing: actions"),
        ] {
            assert_eq!(reply_text("risk_analyst", detail), text);
        }
    }
}
