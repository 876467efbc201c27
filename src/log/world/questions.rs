//! The questions of a run to people: which are open, how they were answered, which approvals the run
//! remembers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::chunked::Chunked;
use crate::base::name::{AgentName, PersonName, ToolName};
use crate::base::time::millis;
use crate::log::event::question::{EXTEND, changed_text, denial, denial_text};
use crate::log::event::{
    Answer, AnsweredBy, BudgetReached, Elapsed, Event, EventKind, QuestionAnswered, QuestionAsked,
    QuestionId, Seq, SpanId, Subject, Withdrawal,
};
use crate::scenario::patterns::collaboration::Decision;
use crate::scenario::spec::SpendingLimits;

/// Most waits that the median is taken from: the first ones.
const MAX_WAITS: usize = 10_000;
/// Most questions that have ended and are kept for the screen: the latest ones.
const MAX_ENDED: usize = 200;

/// The questions of a run.
#[derive(Clone, Debug, Default)]
pub struct Questions {
    /// The open ones, in the order of their numbers.
    open: BTreeMap<QuestionId, OpenQuestion>,
    /// The latest ones that have ended, the last one last.
    ended: Vec<EndedQuestion>,
    /// All that people were asked, turns of agents aside: those are hops.
    rows: Chunked<QuestionRow>,
    remembered: Vec<RememberedApproval>,
    pub tally: QuestionTally,
    /// How often each person was asked; questions that a rule answered do not count.
    pub asked_of: BTreeMap<PersonName, u64>,
    /// How many calls of each tool were approved, by people, rules or the script.
    pub approved: BTreeMap<ToolName, u64>,
    /// The agents whose last turn nobody answered, so that the scenario's answer for that case was used.
    pub fallback_turns: BTreeSet<AgentName>,
    /// How long people took, in milliseconds.
    waits: Vec<u64>,
    /// How often the token limit and the cost limit were extended by their own size.
    pub extended: (u32, u32),
    /// How long the run's clock was stopped because all branches waited for people, in milliseconds.
    pub stood_ms: u64,
}

/// An open question.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenQuestion {
    pub asked: Arc<QuestionAsked>,
    pub at: Elapsed,
    /// The span that asks.
    pub span: SpanId,
    pub seq: Seq,
}

/// A question that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedQuestion {
    pub question: OpenQuestion,
    pub at: Elapsed,
    /// Its answer, or why it was withdrawn.
    pub end: QuestionEnd,
}

/// How a question ended.
#[derive(Clone, Debug, PartialEq)]
pub enum QuestionEnd {
    Answered(Arc<QuestionAnswered>),
    Withdrawn(Withdrawal),
}

/// A question that no rule answered, open or ended.
#[derive(Clone, Debug, PartialEq)]
pub struct QuestionRow {
    pub question: OpenQuestion,
    /// When and how it ended; `None`: it is open, or was when the run ended.
    pub ended: Option<(Elapsed, QuestionEnd)>,
}

/// An approval that the run remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RememberedApproval {
    /// The question whose answer it was.
    pub id: QuestionId,
    /// The agent whose calls are approved.
    pub agent: Option<Arc<str>>,
    pub tool: ToolName,
    /// The definition of the tool.
    pub definition: Arc<str>,
    /// How many calls it has approved since.
    pub uses: u64,
}

/// Counts of questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuestionTally {
    /// Questions that people, the script or nobody had to answer.
    pub asked: u64,
    /// Those that a person answered.
    pub by_person: u64,
    /// Those that the script answered.
    pub by_script: u64,
    /// Those that nobody answered.
    pub by_nobody: u64,
    /// Decisions about calls by rules.
    pub by_rule: u64,
    /// Calls that were not approved.
    pub denied: u64,
    pub withdrawn: u64,
}

impl QuestionTally {
    /// The count of answers by them.
    fn answers_by(&mut self, by: &AnsweredBy) -> &mut u64 {
        match by {
            AnsweredBy::Person { .. } => &mut self.by_person,
            AnsweredBy::Rule => &mut self.by_rule,
            AnsweredBy::Script => &mut self.by_script,
            AnsweredBy::Nobody => &mut self.by_nobody,
        }
    }
}

/// Questions of a run to people.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct QuestionsOutcome {
    /// How many questions people, the script or nobody had to answer.
    pub asked: u64,
    /// How many a person answered.
    pub by_person: u64,
    /// How many the script answered.
    pub by_script: u64,
    /// How many calls rules decided about.
    pub by_rule: u64,
    /// How many nobody answered.
    pub unanswered: u64,
    /// How many were withdrawn.
    pub withdrawn: u64,
    /// How many calls were not approved.
    pub denied: u64,
    /// Median time to an answer in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_wait_ms: Option<u64>,
}

impl Questions {
    /// Processes one event; `limits`: the spending limits of the run at its start.
    pub(super) fn apply(&mut self, event: &Event, limits: SpendingLimits) {
        match &event.kind {
            EventKind::QuestionAsked(asked) => {
                if !asked.by_rule {
                    self.tally.asked += 1;
                    *self.asked_of.entry(asked.who.clone()).or_default() += 1;
                }
                let (at, span, seq) = (event.at, event.span, event.seq);
                let question = OpenQuestion { asked: Arc::clone(asked), at, span, seq };
                if !asked.by_rule && !matches!(asked.subject, Subject::Turn { .. }) {
                    self.rows.push(QuestionRow { question: question.clone(), ended: None });
                }
                self.open.insert(asked.id, question);
            }
            EventKind::QuestionAnswered(answered) => self.answered(event, answered, limits),
            EventKind::QuestionWithdrawn { id, why } => {
                if let Some(question) = self.open.remove(id).or_else(|| self.take_back(*id)) {
                    self.tally.withdrawn += 1;
                    self.end(event, question, QuestionEnd::Withdrawn(*why));
                }
            }
            EventKind::ApprovalWithdrawn { id, .. } => {
                self.remembered.retain(|it| it.id != *id);
            }
            // A log can end with it while questions are open.
            EventKind::RunClosed(_) => self.open.clear(),
            _ => {}
        }
    }

    fn answered(
        &mut self,
        event: &Event,
        answered: &Arc<QuestionAnswered>,
        limits: SpendingLimits,
    ) {
        let Some(question) = self.open.remove(&answered.id) else { return };
        let asked = &question.asked;
        self.stood_ms = self.stood_ms.saturating_add(answered.stood_ms);
        *self.tally.answers_by(&answered.by) += 1;
        if answered.by == AnsweredBy::Rule {
            self.use_remembered(asked);
        }
        if answered.by != AnsweredBy::Rule && self.waits.len() < MAX_WAITS {
            self.waits.push(millis(event.at.since(question.at)));
        }
        if let (Subject::Budget(reached), Answer::Choose { choice, .. }) =
            (&asked.subject, &answered.answer)
            && **choice == *EXTEND
        {
            let extended = match reached {
                BudgetReached::Tokens { .. } => &mut self.extended.0,
                BudgetReached::Cost { .. } => &mut self.extended.1,
            };
            *extended = extended.saturating_add(reached.missing_sizes(limits));
        }
        if let Subject::Turn { agent, .. } = &asked.subject {
            match answered.by {
                AnsweredBy::Nobody => self.fallback_turns.insert(agent.clone()),
                _ => self.fallback_turns.remove(agent),
            };
        }
        if let Subject::ToolCall { tool, definition, .. } = &asked.subject {
            match &answered.answer {
                Answer::Approve { .. } => *self.approved.entry(tool.clone()).or_default() += 1,
                _ => self.tally.denied += 1,
            }
            if answered.remember {
                self.remembered.push(RememberedApproval {
                    id: asked.id,
                    agent: asked.by.clone(),
                    tool: tool.clone(),
                    definition: Arc::clone(definition),
                    uses: 0,
                });
            }
        }
        self.end(event, question, QuestionEnd::Answered(Arc::clone(answered)));
    }

    /// Takes back an answer that was not used: the tool has changed since, and the question is withdrawn.
    fn take_back(&mut self, id: QuestionId) -> Option<OpenQuestion> {
        let index = self.ended.iter().rposition(|it| it.question.asked.id == id)?;
        let QuestionEnd::Answered(answered) = &self.ended[index].end else { return None };
        let answers = self.tally.answers_by(&answered.by);
        *answers = answers.saturating_sub(1);
        let is_approval = matches!(answered.answer, Answer::Approve { .. });
        let is_by_rule = answered.by == AnsweredBy::Rule;
        let EndedQuestion { question, at, .. } = self.ended.remove(index);
        let waited = millis(at.since(question.at));
        if let Some(wait) = self.waits.iter().rposition(|wait| *wait == waited && !is_by_rule) {
            self.waits.remove(wait);
        }
        match question.asked.subject.approves() {
            Some(tool) if is_approval => {
                if let Some(count) = self.approved.get_mut(tool) {
                    *count = count.saturating_sub(1);
                }
                self.approved.retain(|_, count| *count > 0);
            }
            Some(_) => self.tally.denied = self.tally.denied.saturating_sub(1),
            None => {}
        }
        self.remembered.retain(|it| it.id != id);
        Some(question)
    }

    /// Counts a use of the approval that answered this question, if one did and no rule of the file.
    fn use_remembered(&mut self, asked: &QuestionAsked) {
        let Subject::ToolCall { tool, definition, .. } = &asked.subject else { return };
        if asked.rule.is_none()
            && let Some(row) = self.remembered.iter_mut().find(|row| {
                row.tool == *tool && row.definition == *definition && row.agent == asked.by
            })
        {
            row.uses += 1;
        }
    }

    fn end(&mut self, event: &Event, question: OpenQuestion, end: QuestionEnd) {
        let place = self.rows.partition_point(|row| row.question.seq < question.seq);
        if let Some(row) = self.rows.get_mut(place).filter(|row| row.question.seq == question.seq) {
            row.ended = Some((event.at, end.clone()));
        }
        if self.ended.len() >= MAX_ENDED {
            self.ended.remove(0);
        }
        self.ended.push(EndedQuestion { question, at: event.at, end });
    }

    /// The decision that this answer of a person makes for seats that did not agree: who was asked, the
    /// decision, and the reason.
    pub(super) fn decision_of(
        &self,
        answered: &QuestionAnswered,
    ) -> Option<(&PersonName, Decision, &str)> {
        let ended = self.ended.last().filter(|it| it.question.asked.id == answered.id)?;
        let QuestionEnd::Answered(answered) = &ended.end else { return None };
        match (&ended.question.asked.subject, &answered.answer) {
            (Subject::Decision { .. }, Answer::Choose { choice, text }) => {
                let decision = Decision::ALL.into_iter().find(|it| it.word() == &**choice)?;
                Some((&ended.question.asked.who, decision, text))
            }
            _ => None,
        }
    }

    /// The agent whose turn a person has answered, and the text, if there is one.
    pub(super) fn turn_of(&self, answered: &QuestionAnswered) -> Option<(&AgentName, Arc<str>)> {
        let ended = self.ended.last().filter(|it| it.question.asked.id == answered.id)?;
        match (&ended.question.asked.subject, &ended.end) {
            (Subject::Turn { agent, .. }, QuestionEnd::Answered(answered)) => {
                Some((agent, answered.answer.text()?.into()))
            }
            _ => None,
        }
    }

    /// What the caller of a tool read whose call was not approved.
    pub(super) fn denial_text(&self, call: SpanId) -> Option<Arc<str>> {
        let of_call = |ended: &&EndedQuestion| ended.question.span == call;
        let ended = self.ended.iter().rev().find(of_call)?;
        match &ended.end {
            QuestionEnd::Answered(answered) => Some(denial_text(&ended.question.asked, answered)),
            QuestionEnd::Withdrawn(_) => None,
        }
    }

    /// Who did not allow the last call of this tool that was denied, and why.
    pub(super) fn denial_of(&self, tool: &ToolName) -> Option<String> {
        self.ended.iter().rev().find_map(|ended| match &ended.end {
            QuestionEnd::Answered(answered)
                if ended.question.asked.subject.approves() == Some(tool)
                    && !matches!(answered.answer, Answer::Approve { .. }) =>
            {
                Some(format!("{}.", denial(&ended.question.asked, answered)))
            }
            _ => None,
        })
    }

    /// Whether the answer that this attempt of a person's call has is a fallback: nobody gave it.
    pub fn is_fallback(&self, attempt: SpanId) -> bool {
        let ended = self.ended.iter().rfind(|ended| ended.question.span == attempt);
        ended.is_some_and(|ended| match &ended.end {
            QuestionEnd::Answered(answered) => answered.by == AnsweredBy::Nobody,
            QuestionEnd::Withdrawn(_) => false,
        })
    }

    /// The arguments with which a call was made, if its approval changed them.
    pub fn changed_args(&self, call: SpanId) -> Option<&Value> {
        let of_call = |ended: &&EndedQuestion| ended.question.span == call;
        match &self.ended.iter().rfind(of_call)?.end {
            QuestionEnd::Answered(answered) => match &answered.answer {
                Answer::Approve { args } => args.as_deref(),
                _ => None,
            },
            QuestionEnd::Withdrawn(_) => None,
        }
    }

    /// What the caller of a tool read below the result if this answer changed its arguments.
    pub(super) fn changed_text(&self, answered: &QuestionAnswered) -> Option<Arc<str>> {
        let ended = self.ended.last().filter(|it| it.question.asked.id == answered.id)?;
        changed_text(&ended.question.asked, answered)
    }

    /// Whether nothing was asked.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.ended.is_empty()
    }

    /// The open questions, in the order of their numbers.
    pub fn open(&self) -> impl ExactSizeIterator<Item = &OpenQuestion> {
        self.open.values()
    }

    /// An open question.
    pub fn get(&self, id: QuestionId) -> Option<&OpenQuestion> {
        self.open.get(&id)
    }

    /// Whether a question is open for this agent, role or task.
    pub fn asks_for(&self, by: &str) -> bool {
        self.open.values().any(|question| question.asked.by.as_deref() == Some(by))
    }

    /// The latest questions that have ended, the last one last.
    pub fn ended(&self) -> &[EndedQuestion] {
        &self.ended
    }

    /// The questions that no rule answered and that are no turns of agents, in the order in which they were
    /// asked.
    pub fn rows(&self) -> &Chunked<QuestionRow> {
        &self.rows
    }

    /// The approvals that the run remembers.
    pub fn remembered(&self) -> &[RememberedApproval] {
        &self.remembered
    }

    /// The open question that was asked first.
    pub fn oldest(&self) -> Option<&OpenQuestion> {
        self.open.values().next()
    }

    /// Median time to an answer in milliseconds, of an even number the mean of both in the middle; `None`:
    /// there was none.
    pub fn median_wait_ms(&self) -> Option<u64> {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        let upper = *waits.get(waits.len() / 2)?;
        Some(match waits.len() % 2 {
            0 => waits[waits.len() / 2 - 1].midpoint(upper),
            _ => upper,
        })
    }

    /// Time to all answers together, in milliseconds.
    pub fn waited_ms(&self) -> u64 {
        self.waits.iter().fold(0, |sum, wait| sum.saturating_add(*wait))
    }

    /// The part of the outcome about questions; `None`: nothing was asked.
    pub(super) fn outcome(&self) -> Option<QuestionsOutcome> {
        let tally = self.tally;
        (tally != QuestionTally::default()).then(|| QuestionsOutcome {
            asked: tally.asked,
            by_person: tally.by_person,
            by_script: tally.by_script,
            by_rule: tally.by_rule,
            unanswered: tally.by_nobody,
            withdrawn: tally.withdrawn,
            denied: tally.denied,
            median_wait_ms: self.median_wait_ms(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn apply(questions: &mut Questions, at_ms: u64, kind: Value) {
        let name = kind["kind"].as_str().expect("a kind");
        let kind = EventKind::read(name, &kind.to_string()).expect("known").expect("an event");
        let (seq, at) = (Seq(0), Elapsed(at_ms * 1_000));
        let event = Event { seq, at, span: SpanId::RUN, kind };
        questions.apply(&event, SpendingLimits::default());
    }

    /// Questions from the start on, each with its answer after so many milliseconds.
    fn answered(waits: &[u64], by: &str) -> Questions {
        let mut questions = Questions::default();
        for (nth, wait) in waits.iter().enumerate() {
            let id = format!("q{}", nth + 1);
            let asked = json!({
                "kind": "question.asked", "id": id, "who": "manager", "about": "agent",
                "text": "Which?", "digest": "d", "otherwise": "stop", "by_rule": by == "rule",
            });
            apply(&mut questions, 0, asked);
            let answer = json!({
                "kind": "question.answered", "id": id, "digest": "d", "by": by,
                "name": "anna", "host": "laptop", "answer": "text", "text": "This.",
            });
            apply(&mut questions, *wait, answer);
        }
        questions
    }

    #[test]
    fn median_is_in_the_middle() {
        for (waits, median) in [
            (&[][..], None),
            (&[3], Some(3)),
            (&[9, 1], Some(5)),
            (&[9, 1, 2], Some(2)),
            (&[9, 1, 4, 2], Some(3)),
            (&[u64::MAX / 1_000, u64::MAX / 1_000], Some(u64::MAX / 1_000)),
        ] {
            assert_eq!(answered(waits, "person").median_wait_ms(), median, "{waits:?}");
        }
    }

    #[test]
    fn withdrawn_answer_leaves_no_wait() {
        for (by, waited, left) in [("person", 21, 16), ("rule", 0, 0)] {
            let mut questions = answered(&[7, 5, 9], by);
            assert_eq!(questions.waited_ms(), waited);
            let withdrawn = json!({ "kind": "question.withdrawn", "id": "q2", "why": "changed" });
            apply(&mut questions, 20, withdrawn);
            assert_eq!((questions.waited_ms(), questions.tally.withdrawn), (left, 1));
            assert_eq!(questions.median_wait_ms(), (left > 0).then_some(8));
        }
    }
}
