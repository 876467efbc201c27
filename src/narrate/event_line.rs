//! An event as one line: its round, its subject, what happened. The list of events shows it, and
//! filters match against it.

use std::borrow::Cow;

use super::attribution::{round_and_purpose, source_of_span, subject_name, task_of_span};
use crate::event::contribution::{Conflict, Contribution, Decision, Stance};
use crate::event::kind::{
    AgentFact, AttemptFailed, CollaborationFact, FailureClass, Initiator, ModelLabel,
    OrchestratorFact, PatternFact, PatternPlan, Purpose, ResearchFact, RunClosed, RunStarted,
    SeatStatus, StepSize,
};
use crate::event::world::World;
use crate::event::{Event, EventKind, StopReason};
use crate::narrate::format;
use crate::narrate::style_role::StyleRole;
use crate::pattern::collaboration::projection::Collaboration;
use crate::scenario::spec::repair::Repair;

/// The parts of the line of an event.
#[derive(Clone, Debug, PartialEq)]
pub struct EventLine<'a> {
    /// The round that it belongs to, if any.
    pub round: Option<u32>,
    /// The kind of the event, as in the log.
    pub kind: &'a str,
    /// Its subject: a seat, agent, task, source or flag; empty for the run as a whole.
    pub subject: Cow<'a, str>,
    /// The stance and confidence that it states, if any.
    pub stance: Option<(Stance, f64)>,
    /// What happened.
    pub text: Cow<'a, str>,
    /// How its kind is painted.
    pub tone: StyleRole,
}

impl EventLine<'_> {
    /// The line as text, for copying and for filters by words.
    pub fn line(&self) -> String {
        let mut line = match self.round {
            Some(round) => format!("R{round}"),
            None => "--".to_owned(),
        };
        for part in [self.kind, &self.subject] {
            if !part.is_empty() {
                line.push_str("  ");
                line.push_str(part);
            }
        }
        if let Some((stance, confidence)) = self.stance {
            line.push_str(&format!("  {stance} {}", format::confidence(confidence)));
        }
        if !self.text.is_empty() {
            line.push_str("  ");
            line.push_str(&self.text);
        }
        line
    }
}

/// Who or what caused an event, for the screen.
pub fn actor(by: Initiator) -> &'static str {
    match by {
        Initiator::You => "by you",
        Initiator::Schedule => "by schedule",
        Initiator::Breakpoint => "by a breakpoint",
        Initiator::Suspend => "by suspending",
    }
}

/// The shortest name of a failure: its HTTP status, else its class.
pub fn failure_name(class: FailureClass, status: Option<u16>) -> Cow<'static, str> {
    match status {
        Some(status) => Cow::Owned(status.to_string()),
        None => Cow::Borrowed(class.phrase()),
    }
}

/// The names of the conflicts, or that there are none.
pub fn conflict_names(found: &[Conflict]) -> String {
    if found.is_empty() {
        return "no conflict".to_owned();
    }
    found.iter().map(|conflict| conflict.phrase()).collect::<Vec<_>>().join(", ")
}

/// The decision of a closed round, or what follows without one.
pub(crate) fn decision_or_next(world: &World, round: u32, decision: Option<Decision>) -> String {
    let most = world.collaboration().map_or(0, |it| it.plan.max_rounds);
    match decision {
        Some(decision) => decision.phrase().to_owned(),
        None if round < most => format!("no decision, next: round {}", round + 1),
        None => "no decision".to_owned(),
    }
}

/// The reason of a failure, and after how many attempts.
fn failed_text(reason: &StopReason, attempts: u32) -> String {
    let attempts = format::count_noun(u64::from(attempts), "attempt");
    format!("{} after {attempts}", reason.phrase())
}

/// Where a run's model replies come from, for the screen.
pub fn model_text(label: &ModelLabel) -> String {
    match label {
        ModelLabel::Scripted => "scripted".to_owned(),
        ModelLabel::Live { name, host } => format!("live {name} @ {host}"),
    }
}

/// The line of an event; `world` supplies what the event itself does not contain.
pub fn event_line<'a>(event: &'a Event, world: &'a World) -> EventLine<'a> {
    let (round, purpose) = round_and_purpose(event.span, world);
    let mut told = EventLine {
        round,
        kind: event.kind.name(),
        subject: match (task_of_span(event.span, world), source_of_span(event.span, world)) {
            (Some(task), _) => task.into(),
            (None, Some(source)) => source.to_string().into(),
            (None, None) => subject_name(purpose, world),
        },
        stance: None,
        text: Cow::Borrowed(""),
        tone: StyleRole::Text,
    };
    match &event.kind {
        EventKind::RunStarted(head) => told.text = run_started_text(head).into(),
        EventKind::RunClosed(closed) => {
            told.text = run_closed_text(closed).into();
            told.tone =
                if closed.reason.is_success() { StyleRole::Done } else { StyleRole::Failed };
        }
        EventKind::Pausing { by: who } => {
            told.text = actor(*who).into();
            told.tone = StyleRole::Paused;
        }
        EventKind::Paused { at } => {
            let at: Vec<_> = at.iter().map(|at| at.display_name()).collect();
            told.text = format!("before {}", at.join(", ")).into();
            told.tone = StyleRole::Paused;
        }
        EventKind::Resumed { by: who, paused_ms } => {
            told.text = format!("{}, paused for {}", actor(*who), took_ms(*paused_ms)).into();
            told.tone = StyleRole::Paused;
        }
        EventKind::Stepped { step, boundary, paused_ms } => {
            let far = match step {
                StepSize::Boundary => "to the next boundary",
                StepSize::Round => "to the next round",
            };
            told.text = format!(
                "past {}, {far}, paused for {}",
                boundary.display_name(),
                took_ms(*paused_ms)
            )
            .into();
            told.tone = StyleRole::Paused;
        }
        EventKind::BreakpointChanged { at, set } => {
            let what = if *set { "set before" } else { "removed before" };
            told.text = format!("{what} {}", at.display_name()).into();
            told.tone = StyleRole::Paused;
        }
        EventKind::FlagChanged { flag, on, by: who, boundary } => {
            told.subject = flag.as_str().into();
            let position = if *on { "off to on" } else { "on to off" };
            told.text =
                format!("{position}, {}, from {}", actor(*who), boundary.display_name()).into();
            told.tone = StyleRole::Flag;
        }
        EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::RoundStarted {
            round,
            seats,
            ..
        })) => {
            told.round = Some(*round);
            let asked = seats.iter().filter(|seat| seat.status == SeatStatus::Asked).count() as u64;
            let mut what = format!("{} called", format::count_noun(asked, "seat"));
            for seat in seats {
                let why = match seat.status {
                    SeatStatus::Asked => continue,
                    SeatStatus::Skipped => "off",
                    SeatStatus::Denied => "denied",
                    SeatStatus::OverBudget => "over the message limit",
                    SeatStatus::NotReached => "not reached",
                };
                what.push_str(&format!(", {} {why}", seat.role));
            }
            told.text = what.into();
        }
        EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::RoundClosed {
            round,
            conflicts: found,
            decision,
        })) => {
            told.round = Some(*round);
            let next = decision_or_next(world, *round, *decision);
            told.text = format!("{}: {next}", conflict_names(found)).into();
            told.tone = StyleRole::Done;
        }
        EventKind::Pattern(PatternFact::Collaboration(
            CollaborationFact::ContributionAccepted { round, contribution, extra_keys, .. },
        )) => {
            told.round = Some(*round);
            fill_accepted(&mut told, contribution, *extra_keys);
        }
        EventKind::Pattern(PatternFact::Collaboration(
            CollaborationFact::ContributionRefused { round, role, reason, .. },
        )) => {
            told.round = Some(*round);
            told.subject = role.as_str().into();
            told.text = reason.phrase();
            told.tone = StyleRole::Refused;
        }
        EventKind::AnswerComposed { text, by } => {
            told.subject = match by {
                Some(by) => by.as_str().into(),
                None if world.research().is_some() => "synthesize".into(),
                None => "finalize".into(),
            };
            told.text = text.as_ref().into();
            told.tone = StyleRole::Done;
        }
        EventKind::CallStarted(call) => {
            let size: usize = call.prompt.messages.iter().map(|said| said.content.len()).sum();
            told.subject = subject_name(Some(&call.purpose), world);
            told.text = match &call.args {
                Some(args) => {
                    let args = serde_json::to_string(args).unwrap_or_default();
                    let again = match call.purpose {
                        Purpose::AgentStep { repeat: 0, .. } => String::new(),
                        Purpose::AgentStep { repeat: again, .. } => format!(" (repeat {again})"),
                        _ => String::new(),
                    };
                    format!("calls {}{again} with {args}", call.tool).into()
                }
                None if matches!(call.purpose, Purpose::SwarmTurn { .. }) => {
                    crate::agents::words::event_line::hop_text(&call.purpose).into()
                }
                None => format!(
                    "calls {}: {}, {}",
                    call.model.as_deref().unwrap_or(call.tool.as_str()),
                    format::count_noun(call.prompt.messages.len() as u64, "message"),
                    format::bytes(size as u64)
                )
                .into(),
            };
        }
        EventKind::Pattern(PatternFact::Agents(AgentFact::AnswerPartial { .. }))
        | EventKind::Pattern(PatternFact::Agents(AgentFact::AnswerIncomplete { .. }))
        | EventKind::Pattern(PatternFact::Agents(AgentFact::HandoffMade { .. }))
        | EventKind::Pattern(PatternFact::Agents(AgentFact::HandoffRefused { .. }))
        | EventKind::Pattern(PatternFact::Agents(AgentFact::ToolCallRefused { .. }))
        | EventKind::RosterChanged { .. } => {
            crate::agents::words::event_line::fill_line(&mut told, &event.kind)
        }
        EventKind::CallAnswered { attempts } => {
            told.text = format::count_noun(u64::from(*attempts), "attempt").into();
        }
        EventKind::CallFailed { attempts, reason } => {
            told.text = failed_text(reason, *attempts).into();
            told.tone = StyleRole::Failed;
        }
        EventKind::CallRetried { attempt, wait_ms, cause: after, status } => {
            let failed = failure_name(*after, *status);
            told.text = format!("{failed}, attempt {attempt} in {}", took_ms(*wait_ms)).into();
            told.tone = StyleRole::Retry;
        }
        EventKind::RetryRefused { attempt, limit } => {
            told.text = format!("attempt {attempt} not made: {}", limit.description()).into();
            told.tone = StyleRole::Failed;
        }
        EventKind::AttemptStarted { attempt, timeout_ms, .. } => {
            told.text = format!("attempt {attempt} (timeout {})", took_ms(*timeout_ms)).into();
        }
        EventKind::AttemptAnswered(reply) if reply.result.is_some() => {
            told.text = serde_json::to_string(&reply.result).unwrap_or_default().into();
        }
        EventKind::AttemptAnswered(reply) => {
            let mut what = format::bytes(reply.text.len() as u64);
            what.push_str(&crate::agents::words::event_line::calls_text(reply));
            if let Some(usage) = reply.usage {
                what.push_str(&format!(
                    ", {} tokens in, {} out",
                    usage.prompt_tokens, usage.completion_tokens
                ));
            }
            if let Some(first) = reply.first_token_ms {
                what.push_str(&format!(", first token {}", took_ms(first)));
            }
            told.text = what.into();
        }
        EventKind::AttemptFailed(failed) => {
            told.text = attempt_failed_text(failed).into();
            told.tone = StyleRole::Failed;
        }
        EventKind::RequestAdapted { model, parameter } => {
            told.text =
                format!("{model} does not accept {parameter}; sent again without it").into();
            told.tone = StyleRole::Retry;
        }
        EventKind::ReplyRepaired { repair, changed } => {
            told.text = match (Repair::phrase(repair), changed.as_str()) {
                (repair, "") => repair.into(),
                (repair, what) => format!("{repair}: {what}").into(),
            };
            told.tone = StyleRole::Retry;
        }
        EventKind::ReplyRefused(refused) => {
            told.text = match refused.repeat {
                Some(nth) => format!("{}; asked again ({nth})", refused.detail).into(),
                None => refused.detail.as_ref().into(),
            };
            told.tone =
                if refused.repeat.is_some() { StyleRole::Retry } else { StyleRole::Refused };
        }
        EventKind::BudgetReached(reached) => {
            told.text = reached.sentence().into();
            told.tone = StyleRole::Failed;
        }
        EventKind::ConditionFailed { place, text } => {
            told.text = format!("{place}: {text}").into();
            told.tone = StyleRole::Retry;
        }
        EventKind::Warning { text } => {
            told.text = text.as_str().into();
            told.tone = StyleRole::Retry;
        }
        EventKind::SessionRunStarted { run, scenario } => {
            told.subject = run.as_str().into();
            told.text = scenario.as_str().into();
        }
        EventKind::SessionRunClosed { run, reason } => {
            told.subject = run.as_str().into();
            told.text = reason.phrase();
        }
        EventKind::SessionRunDropped { run, events: facts } => {
            told.subject = run.as_str().into();
            told.text = format::count_noun(*facts, "event").into();
        }
        EventKind::EventsDropped { events: facts } => {
            told.text = format!("{} to bound memory", format::count_noun(*facts, "event")).into();
            told.tone = StyleRole::Retry;
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::SourceStarted {
            source, ..
        })) => {
            let row = world.research().and_then(|research| research.source(*source));
            told.text = row.map_or("", |row| row.address()).into();
        }
        EventKind::Pattern(PatternFact::Research(ResearchFact::StepsAccepted { .. }))
        | EventKind::Pattern(PatternFact::Research(ResearchFact::SourcesFound(_)))
        | EventKind::Pattern(PatternFact::Research(ResearchFact::SourcesDeduped(_)))
        | EventKind::Pattern(PatternFact::Research(ResearchFact::PageRead(_)))
        | EventKind::Pattern(PatternFact::Research(ResearchFact::NoteTaken { .. }))
        | EventKind::Pattern(PatternFact::Research(ResearchFact::NoteRefused(_)))
        | EventKind::Pattern(PatternFact::Research(ResearchFact::NotesTruncated(_)))
        | EventKind::Pattern(PatternFact::Research(ResearchFact::SourceClosed(_)))
        | EventKind::Pattern(PatternFact::Research(ResearchFact::ReadingClosed { .. }))
        | EventKind::Pattern(PatternFact::Research(ResearchFact::NotesCompared(_)))
        | EventKind::Pattern(PatternFact::Research(ResearchFact::NotesVerified(_)))
        | EventKind::Pattern(PatternFact::Research(ResearchFact::AnswerCited(_)))
        | EventKind::Pattern(PatternFact::Research(ResearchFact::AnswerRefused(_))) => {
            crate::pattern::research::words::event_line::fill_line(&mut told, &event.kind)
        }
        EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::PlanAccepted {
            ..
        }))
        | EventKind::PlanRefused { .. }
        | EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::TaskStarted { .. }))
        | EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::TaskDone { .. }))
        | EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::TaskFailed { .. }))
        | EventKind::ConcurrencyChanged { .. }
        | EventKind::Pattern(PatternFact::Orchestrator(OrchestratorFact::ResultsAggregated {
            ..
        }))
        | EventKind::CallQueued
        | EventKind::CallAdmitted { .. }
        | EventKind::CallDegraded { .. }
        | EventKind::AttemptRefused { .. }
        | EventKind::AttemptQueued { .. }
        | EventKind::ClientRetried { .. }
        | EventKind::BreakerChanged { .. }
        | EventKind::ResultIgnored { .. }
        | EventKind::LimitsChanged { .. }
        | EventKind::FaultInjected { .. }
        | EventKind::FaultRemoved { .. } => {
            super::event_line_tool::fill_line(&event.kind, &mut told)
        }
        EventKind::Unknown { fields, .. } => {
            told.text = serde_json::to_string(&**fields).unwrap_or_default().into();
            told.tone = StyleRole::Retry;
        }
    }
    told
}

fn fill_accepted<'a>(told: &mut EventLine<'a>, contribution: &'a Contribution, extra_keys: u32) {
    told.subject = contribution.agent.as_str().into();
    told.stance = Some((contribution.stance, contribution.confidence));
    told.text = if extra_keys == 0 {
        contribution.summary.as_ref().into()
    } else {
        let dropped = format::count_noun(u64::from(extra_keys), "key");
        format!("{} ({dropped} dropped)", contribution.summary).into()
    };
    told.tone = StyleRole::Done;
}

fn run_started_text(head: &RunStarted) -> String {
    let things = |count: u32, what| format::count_noun(u64::from(count), what);
    let (first, second) = match &head.plan {
        PatternPlan::Collaboration(plan) => {
            let seats = format::count_noun(plan.sequence.len() as u64, "seat");
            (seats, format!("max {}", things(plan.max_rounds, "round")))
        }
        PatternPlan::Orchestrator(plan) => {
            let workers = format::count_noun(plan.workers.len() as u64, "worker");
            (workers, format!("max {}", things(plan.max_tasks, "task")))
        }
        PatternPlan::Team(plan) | PatternPlan::Swarm(plan) => {
            let agents = format::count_noun(plan.agents.len() as u64, "agent");
            (agents, format!("message {}", plan.session.message))
        }
        PatternPlan::Resilience(plan) => {
            let how = if plan.guarded { "guarded" } else { "naive" };
            (things(plan.agents, "agent"), format!("{} each, {how}", things(plan.turns, "turn")))
        }
        PatternPlan::Research(plan) => {
            let domains = format::count_noun(plan.allowed_domains_policy.len() as u64, "domain");
            (domains, format!("max {}", things(plan.max_read_pages, "page")))
        }
    };
    format!("{}, {}: {first}, {second}", head.title, model_text(&head.model))
}

fn run_closed_text(closed: &RunClosed) -> String {
    let mut what = closed.reason.phrase().into_owned();
    if let Some(phase) = &closed.phase {
        what.push_str(&format!(" in {phase}"));
    }
    what.push_str(&format!(" after {}", took_ms(closed.elapsed_ms)));
    if closed.paused_ms > 0 {
        what.push_str(&format!(", paused for {}", took_ms(closed.paused_ms)));
    }
    what
}

fn attempt_failed_text(failed: &AttemptFailed) -> String {
    let short = failure_name(failed.class, failed.status);
    if failed.text.is_empty() { short.into_owned() } else { format!("{short}: {}", failed.text) }
}

/// The number of rounds. For a run that stopped within a round: that round, and how many were
/// closed before it.
pub fn rounds_text(table: &Collaboration) -> String {
    let closed = table.rounds.iter().filter(|round| round.closed.is_some()).count() as u64;
    match table.current() {
        None => "no round".to_owned(),
        Some(round) if round.closed.is_some() => format::count_noun(closed, "round"),
        Some(round) => {
            let closed = if closed == 0 { "none".to_owned() } else { closed.to_string() };
            format!("stopped in round {}, {closed} closed", round.number)
        }
    }
}

/// A duration in milliseconds as it is shown: `1.5s`.
pub fn took_ms(millis: u64) -> String {
    format::duration_text(std::time::Duration::from_millis(millis))
}
