//! The loop of the research source document: plan, search, dedupe, read and take notes, verify,
//! synthesize.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::facts::{
    AnswerCited, AnswerRefused, FoundSource, KeptSource, Note, NoteProblem, NotesCompared,
    NotesVerified, PlannedStep, ResearchFact, SourcesDeduped, SourcesFound,
};
use super::note_taking::AcceptedNote;
use super::policy::unanswered::{PageWords, unanswered_by_rule};
use super::policy::{self, BadPlan, address, answer, compare};
use super::reading::SourceReader;
use super::research_run::{ResearchCaller, ResearchRun};
use super::spec::{ResearchSpec, ResearchStep, SEARCH, StepExecutor};
use super::tool_data::{parse_source, unwrap_tool_data};
use super::{by_rule, detail, payload};
use crate::base::name::ToolName;
use crate::event::kind::{Purpose, ReplyEnd};
use crate::event::{Boundary, EventKind, SpanId, StopReason};
use crate::pattern::prompting;
use crate::pattern::reply::{JudgedReply, Refusal};
use crate::run::{ModelRequest, RunContext, ToolCallRequest};
use crate::scenario::Scenario;

/// Runs research to its end. The context's phase says how far it got.
///
/// # Errors
/// The stop reason, if the run ends without an answer.
pub async fn play(
    cx: &RunContext,
    scenario: &Scenario,
    spec: &ResearchSpec,
) -> Result<(), StopReason> {
    let base = prompting::run_conditions(cx, scenario).map(|mut shown| {
        shown.bind("question", &spec.question.as_str().into());
        shown
    });
    let research = ResearchRun { cx, scenario, spec, base };
    cx.set_phase("plan".to_owned());
    cx.boundary(Boundary::Plan).await?;
    research.pace("plan", 0).await;
    let query = research.plan().await?;
    research.begin(ResearchStep::Search).await?;
    let found = research.search(query).await?;
    research.begin(ResearchStep::Dedupe).await?;
    let kept = research.dedupe(&found)?;
    research.begin(ResearchStep::ReadExtract).await?;
    let (taken, words) = SourceReader::new(&research, &found).read_all_sources(&kept).await?;
    research.begin(ResearchStep::Verify).await?;
    let compared = research.verify(&taken)?;
    research.begin(ResearchStep::Synthesize).await?;
    research.synthesize(&taken, &compared, &words).await
}

impl ResearchRun<'_> {
    /// Makes the plan and validates it. Returns the query of its first step; null if the step has
    /// none.
    async fn plan(&self) -> Result<Value, StopReason> {
        let (span, raw) = match self.executor(self.spec.plan.by) {
            StepExecutor::Rule => {
                (SpanId::RUN, json!({ "steps": by_rule::plan(&self.spec.question) }))
            }
            StepExecutor::Model => {
                let max_steps = self.spec.budget.max_steps;
                let shown =
                    self.condition_values(|shown| shown.bind("max_steps", &max_steps.into()));
                let messages = payload::research_plan_messages(
                    self.scenario,
                    self.spec,
                    &self.cx.shown_flags(),
                );
                let path = Boundary::Plan.id().to_string();
                let ask = ModelRequest::single(
                    SpanId::RUN,
                    Purpose::Plan,
                    path,
                    messages,
                    payload::plan_form(),
                    shown,
                );
                let asked = self.request_object(ask, |raw| {
                    self.judge_plan(raw).map_err(|bad| Refusal {
                        detail: detail::describe_refused_plan(&bad.reason, raw, max_steps),
                        reason: bad.reason,
                    })
                });
                let JudgedReply { call, text, raw, .. } = asked.await?;
                (call, raw.into_value(&text))
            }
        };
        match policy::validate_plan(plan_steps(&raw), self.spec.budget.max_steps) {
            Ok(steps) => {
                let planned = steps.iter().map(|step| PlannedStep {
                    id: step.id.as_str().into(),
                    action: step.action.as_str().into(),
                });
                self.cx.publish(span, ResearchFact::StepsAccepted { steps: planned.collect() });
                let query = steps.into_iter().next().and_then(|mut step| step.args.remove("query"));
                Ok(query.unwrap_or_default())
            }
            Err(bad) => {
                let (reason, details) = (bad.reason.clone(), bad.details.map(Arc::new));
                let raw = Arc::new(raw);
                self.cx.publish(span, EventKind::PlanRefused { reason, raw, details });
                Err(bad.reason)
            }
        }
    }

    /// Judges a plan as the model wrote it. A plan without a query is accepted, as in the source
    /// document, and its search then fails with this reason; refused here, the model receives why.
    fn judge_plan(&self, raw: &Value) -> Result<(), BadPlan> {
        let steps = policy::validate_plan(plan_steps(raw), self.spec.budget.max_steps)?;
        let query = steps.first().and_then(|step| step.args.get("query"));
        let says = query.and_then(Value::as_str).is_some_and(|query| !query.trim().is_empty());
        if says { Ok(()) } else { Err(StopReason::InvalidSearchQuery.into()) }
    }

    async fn search(&self, query: Value) -> Result<Vec<FoundSource>, StopReason> {
        let query = query.as_str().map(str::trim).filter(|query| !query.is_empty());
        let query: Arc<str> = query.ok_or(StopReason::InvalidSearchQuery)?.into();
        let k = self.spec.budget.max_urls.saturating_mul(2);
        let args = Map::from_iter([
            ("query".to_owned(), Value::from(&*query)),
            ("k".to_owned(), Value::from(k)),
        ]);
        let tool = ToolName::from(SEARCH);
        let asked = self
            .cx
            .call_tool(ToolCallRequest {
                parent: SpanId::RUN,
                tool: &tool,
                purpose: Purpose::Search,
                path: ResearchStep::Search.word().to_owned(),
                args: Arc::new(args),
                request_id: None,
                caller: &ResearchCaller,
                client_retries: 0,
            })
            .await;
        let answered = asked.map_err(|failed| failed.reason)?;
        let invalid = || StopReason::ToolInvalidOutput(tool.clone());
        let result = answered.reply.result.clone().unwrap_or_default();
        let data = unwrap_tool_data(&result).ok_or_else(invalid)?;
        let sources = match data.get("results") {
            None => Vec::new(),
            Some(Value::Array(rows)) => rows.iter().filter_map(parse_source).collect(),
            Some(_) => return Err(invalid()),
        };
        let left_out = data.get("left_out").and_then(Value::as_object).into_iter().flatten();
        let left_out = left_out.filter_map(|(why, count)| Some((why.clone(), count.as_u64()?)));
        self.cx.publish(
            answered.span,
            ResearchFact::SourcesFound(Box::new(SourcesFound {
                query,
                sources: sources.as_slice().into(),
                unsearched: left_out.collect(),
            })),
        );
        Ok(sources)
    }

    /// Keeps each page once, sorted by score times trust, best first.
    fn dedupe(&self, found: &[FoundSource]) -> Result<Vec<KeptSource>, StopReason> {
        let (kept, dropped) = address::dedupe(found, self.spec.budget.max_urls);
        let kept = kept.into_iter().map(|(source, url)| {
            let domain = address::domain(&url);
            let trust = self.spec.trust(&domain);
            KeptSource { source, url: url.into(), domain: domain.into(), trust }
        });
        let mut kept: Vec<KeptSource> = kept.collect();
        let worth = |it: &KeptSource| {
            let found = it.source.index().and_then(|place| found.get(place));
            found.and_then(|found| found.score).unwrap_or(NO_SCORE) * it.trust
        };
        // The sort is stable: of two equal sources the one found first stays first.
        kept.sort_by(|left, right| worth(right).total_cmp(&worth(left)));
        self.cx.publish(
            SpanId::RUN,
            ResearchFact::SourcesDeduped(Box::new(SourcesDeduped {
                kept: kept.as_slice().into(),
                dropped: dropped.into(),
            })),
        );
        if kept.is_empty() { Err(StopReason::NoSourcesAfterDedupe) } else { Ok(kept) }
    }

    /// Verifies the notes and compares them with each other.
    fn verify(&self, taken: &[AcceptedNote]) -> Result<NotesCompared, StopReason> {
        let issues = taken.iter().flat_map(|it| {
            let issues = policy::note_issues(&it.note.claim, &it.note.quote, Some(&it.page));
            issues.into_iter().map(|issue| NoteProblem { note: it.note.id.clone(), issue })
        });
        let issues: Arc<[NoteProblem]> = issues.collect();
        let first = issues.first().map(|it| it.issue);
        let checked = u32::try_from(taken.len()).unwrap_or(u32::MAX);
        self.cx.publish(
            SpanId::RUN,
            ResearchFact::NotesVerified(Box::new(NotesVerified { checked, issues })),
        );
        if let Some(issue) = first {
            return Err(StopReason::VerificationFailed(issue));
        }
        let notes: Vec<&Note> = taken.iter().map(|it| &*it.note).collect();
        let compared = compare::compare(&notes, self.spec.min_independent_sources);
        self.cx.publish(SpanId::RUN, ResearchFact::NotesCompared(Box::new(compared.clone())));
        Ok(compared)
    }

    async fn synthesize(
        &self,
        taken: &[AcceptedNote],
        compared: &NotesCompared,
        words: &PageWords,
    ) -> Result<(), StopReason> {
        let max = self.spec.budget.max_answer_chars;
        let notes: Vec<&Note> = taken.iter().map(|it| &*it.note).collect();
        let (span, end, judged) = match self.executor(self.spec.answer.by) {
            StepExecutor::Rule => {
                let claims: Vec<_> = notes.iter().map(|note| (&note.id, &*note.claim)).collect();
                let (preface, closing) = (&self.spec.preface, &self.spec.closing);
                let judged = answer::answer_by_rule(&claims, preface, closing, max);
                let judged = judged.map(|(answer, left_out)| {
                    self.warn_left_out(left_out, &answer);
                    answer
                });
                let refused =
                    |fault| (StopReason::InvalidAnswer(fault), json!({ "notes": notes.len() }));
                (SpanId::RUN, ReplyEnd::Stop, judged.map_err(refused))
            }
            StepExecutor::Model => {
                let notes_json = payload::notes_json(notes.iter().copied());
                let shown = self.condition_values(|shown| shown.bind("notes", &notes_json));
                let messages = payload::answer_messages(
                    self.scenario,
                    self.spec,
                    &notes_json,
                    &self.cx.shown_flags(),
                );
                let path = ResearchStep::Synthesize.word().to_owned();
                let ask = ModelRequest::single(
                    SpanId::RUN,
                    Purpose::Synthesize,
                    path,
                    messages,
                    payload::answer_form(),
                    shown,
                );
                let ids: Vec<&str> = notes.iter().map(|note| note.id.as_str()).collect();
                let asked = self.request_object(ask, |raw| {
                    answer::judge_answer(raw, ids.iter().copied(), max).map_err(|fault| Refusal {
                        reason: StopReason::InvalidAnswer(fault),
                        detail: detail::describe_answer_fault(fault, raw, &ids, max).into(),
                    })
                });
                let JudgedReply { call, text, raw, end, judged } = asked.await?;
                (call, end, judged.map_err(|reason| (reason, raw.into_value(&text))))
            }
        };
        match judged {
            Ok(answer) => {
                let by_rule = [self.spec.notes.by, self.spec.answer.by]
                    .into_iter()
                    .all(|by| self.executor(by) == StepExecutor::Rule);
                let unanswered = by_rule.then(|| {
                    let quotes = notes.iter().map(|note| &*note.quote);
                    unanswered_by_rule(&self.spec.question, quotes, words).into()
                });
                self.publish_answer(
                    (span, end),
                    answer,
                    unanswered.unwrap_or_default(),
                    &notes,
                    compared,
                );
                Ok(())
            }
            Err((reason, raw)) => Err(self.refuse_answer(span, reason, raw)),
        }
    }

    fn warn_left_out(&self, left_out: usize, answer: &answer::CitedAnswer) {
        if left_out > 0 {
            let cited = answer.citations.len();
            let text = format!(
                "the answer uses {cited} of {} notes: more would exceed max_answer_chars ({})",
                cited + left_out,
                self.spec.budget.max_answer_chars
            );
            self.cx.publish(SpanId::RUN, EventKind::Warning { text });
        }
    }

    fn publish_answer(
        &self,
        (span, end): (SpanId, ReplyEnd),
        answer: answer::CitedAnswer,
        unanswered: Arc<[String]>,
        notes: &[&Note],
        among: &NotesCompared,
    ) {
        let wanted = self.spec.min_independent_sources as usize;
        let sentences = answer.sentences.into_iter().map(|mut sentence| {
            let cites = !sentence.citations.is_empty();
            let sources = compare::count_sources(&sentence.citations, notes, among);
            sentence.unconfirmed = cites && sources < wanted;
            sentence
        });
        self.cx.publish(
            span,
            ResearchFact::AnswerCited(Box::new(AnswerCited {
                sentences: sentences.collect(),
                citations: answer.citations.into(),
                unanswered,
            })),
        );
        self.cx.publish(
            span,
            EventKind::AnswerComposed { text: answer.text.as_str().into(), by: None, end },
        );
    }

    fn refuse_answer(&self, span: SpanId, reason: StopReason, raw: Value) -> StopReason {
        let refused = AnswerRefused { reason: reason.clone(), raw };
        self.cx.publish(span, ResearchFact::AnswerRefused(Box::new(refused)));
        reason
    }
}

/// The `steps` field of a plan, of any type.
fn plan_steps(raw: &Value) -> &Value {
    raw.get("steps").unwrap_or(&Value::Null)
}

/// The score of a source if its search gives none.
const NO_SCORE: f64 = 0.5;
