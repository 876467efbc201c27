//! An event as one line: its round, its subject, what happened. The list of events shows it, and
//! filters match against it.

use std::borrow::Cow;

use super::whose::{source_of, task_of, who, whose};
use crate::app::format;
use crate::event::contribution::{Conflict, Contribution, Stance};
use crate::event::kind::{
    Asked, AttemptFailed, By, FailureClass, ModelLabel, PatternPlan, Purpose, RunClosed,
    RunStarted, Step,
};
use crate::event::world::World;
use crate::event::world::collaboration::Collaboration;
use crate::event::{Event, EventKind};

/// The parts of the line of an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Told<'a> {
    /// The round that it belongs to, if any.
    pub round: Option<u32>,
    /// The kind of the event, as in the log.
    pub kind: &'a str,
    /// Its subject: a seat, agent, task, source or flag; empty for the run as a whole.
    pub who: Cow<'a, str>,
    /// The stance and confidence that it states, if any.
    pub stance: Option<(Stance, f64)>,
    /// What happened.
    pub what: Cow<'a, str>,
    /// How the line is painted.
    pub tone: Tone,
}

/// How an event is painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// A normal step.
    Plain,
    /// Something completed.
    Done,
    /// A retry.
    Retry,
    /// Something failed.
    Failed,
    /// Something was refused.
    Refused,
    /// A pause, a resume or a step.
    Paused,
    /// A change of a flag.
    Flag,
    /// Something that deserves attention.
    Alert,
}

impl Told<'_> {
    /// The line as text, for copying and for filters by words.
    pub fn line(&self) -> String {
        let mut line = match self.round {
            Some(round) => format!("R{round}"),
            None => "--".to_owned(),
        };
        for part in [self.kind, &self.who] {
            if !part.is_empty() {
                line.push_str("  ");
                line.push_str(part);
            }
        }
        if let Some((stance, confidence)) = self.stance {
            line.push_str(&format!("  {stance} {}", format::confidence(confidence)));
        }
        if !self.what.is_empty() {
            line.push_str("  ");
            line.push_str(&self.what);
        }
        line
    }
}

/// Who or what caused an event, for the screen.
pub fn by(by: By) -> &'static str {
    match by {
        By::You => "by you",
        By::Schedule => "by schedule",
        By::Breakpoint => "by a breakpoint",
        By::Suspend => "by suspending",
    }
}

/// The shortest name of a failure: its HTTP status, else its class.
pub fn failure(class: FailureClass, status: Option<u16>) -> Cow<'static, str> {
    match status {
        Some(status) => Cow::Owned(status.to_string()),
        None => Cow::Borrowed(class.word()),
    }
}

/// The names of the conflicts, or that there are none.
pub fn conflicts(found: &[Conflict]) -> String {
    if found.is_empty() {
        return "no conflict".to_owned();
    }
    found.iter().map(|conflict| conflict.word()).collect::<Vec<_>>().join(", ")
}

/// Where a run's model replies come from, for the screen.
pub fn model(label: &ModelLabel) -> String {
    match label {
        ModelLabel::Scripted => "scripted".to_owned(),
        ModelLabel::Live { name, host } => format!("live {name} @ {host}"),
    }
}

/// The line of an event; `world` supplies what the event itself does not contain.
pub fn tell<'a>(event: &'a Event, world: &'a World) -> Told<'a> {
    let (round, purpose) = whose(event.span, world);
    let mut told = Told {
        round,
        kind: event.kind.name(),
        who: match (task_of(event.span, world), source_of(event.span, world)) {
            (Some(task), _) => task.into(),
            (None, Some(source)) => source.to_string().into(),
            (None, None) => who(purpose, world),
        },
        stance: None,
        what: Cow::Borrowed(""),
        tone: Tone::Plain,
    };
    match &event.kind {
        EventKind::RunStarted(head) => told.what = started(head).into(),
        EventKind::RunClosed(closed) => {
            told.what = ended(closed).into();
            told.tone = if closed.reason.is_success() { Tone::Done } else { Tone::Failed };
        }
        EventKind::Pausing { by: who } => {
            told.what = by(*who).into();
            told.tone = Tone::Paused;
        }
        EventKind::Paused { at } => {
            let at: Vec<_> = at.iter().map(|at| at.for_people()).collect();
            told.what = format!("before {}", at.join(", ")).into();
            told.tone = Tone::Paused;
        }
        EventKind::Resumed { by: who, paused_ms } => {
            told.what = format!("{}, paused for {}", by(*who), took_ms(*paused_ms)).into();
            told.tone = Tone::Paused;
        }
        EventKind::Stepped { step, boundary, paused_ms } => {
            let far = match step {
                Step::Boundary => "to the next boundary",
                Step::Round => "to the next round",
            };
            told.what = format!(
                "past {}, {far}, paused for {}",
                boundary.for_people(),
                took_ms(*paused_ms)
            )
            .into();
            told.tone = Tone::Paused;
        }
        EventKind::BreakpointChanged { at, set } => {
            let what = if *set { "set before" } else { "removed before" };
            told.what = format!("{what} {}", at.for_people()).into();
            told.tone = Tone::Paused;
        }
        EventKind::FlagChanged { flag, on, by: who, boundary } => {
            told.who = flag.as_str().into();
            let position = if *on { "off to on" } else { "on to off" };
            told.what = format!("{position}, {}, from {}", by(*who), boundary.for_people()).into();
            told.tone = Tone::Flag;
        }
        EventKind::RoundStarted { round, seats, .. } => {
            told.round = Some(*round);
            let asked = seats.iter().filter(|seat| seat.asked == Asked::Yes).count() as u64;
            let mut what = format!("{} called", format::things(asked, "seat"));
            for seat in seats {
                let why = match seat.asked {
                    Asked::Yes => continue,
                    Asked::Off => "off",
                    Asked::Denied => "denied",
                    Asked::Unaffordable => "over the message limit",
                    Asked::NotReached => "not reached",
                };
                what.push_str(&format!(", {} {why}", seat.role));
            }
            told.what = what.into();
        }
        EventKind::RoundClosed { round, conflicts: found, decision } => {
            told.round = Some(*round);
            let next = decision.map_or("next round", |decision| decision.word());
            told.what = format!("{}: {next}", conflicts(found)).into();
            told.tone = Tone::Done;
        }
        EventKind::ContributionAccepted { round, contribution, extra_keys, .. } => {
            told.round = Some(*round);
            accepted(&mut told, contribution, *extra_keys);
        }
        EventKind::ContributionRefused { round, role, reason, .. } => {
            told.round = Some(*round);
            told.who = role.as_str().into();
            told.what = reason.to_string().into();
            told.tone = Tone::Refused;
        }
        EventKind::AnswerComposed { text, by } => {
            told.who = match by {
                Some(by) => by.as_str().into(),
                None if world.research().is_some() => "synthesize".into(),
                None => "finalize".into(),
            };
            told.what = text.as_ref().into();
            told.tone = Tone::Done;
        }
        EventKind::CallStarted(call) => {
            let size: usize = call.prompt.messages.iter().map(|said| said.content.len()).sum();
            told.who = who(Some(&call.purpose), world);
            told.what = match &call.args {
                Some(args) => {
                    let args = serde_json::to_string(args).unwrap_or_default();
                    let again = match call.purpose {
                        Purpose::Step { again: 0, .. } => String::new(),
                        Purpose::Step { again, .. } => format!(" (repeat {again})"),
                        _ => String::new(),
                    };
                    format!("calls {}{again} with {args}", call.tool).into()
                }
                None if matches!(call.purpose, Purpose::Hop { .. }) => {
                    super::told_team::hop(&call.purpose).into()
                }
                None => format!(
                    "calls {}: {}, {}",
                    call.model.as_deref().unwrap_or(call.tool.as_str()),
                    format::things(call.prompt.messages.len() as u64, "message"),
                    format::bytes(size as u64)
                )
                .into(),
            };
        }
        EventKind::AnswerPartial { .. }
        | EventKind::AnswerIncomplete { .. }
        | EventKind::HandoffMade { .. }
        | EventKind::HandoffRefused { .. }
        | EventKind::ToolCallRefused { .. }
        | EventKind::RosterChanged { .. } => super::told_team::tell(&mut told, &event.kind),
        EventKind::CallAnswered { attempts } => {
            told.what = format::things(u64::from(*attempts), "attempt").into();
        }
        EventKind::CallFailed { attempts, reason } => {
            told.what =
                format!("{reason} after {}", format::things(u64::from(*attempts), "attempt"))
                    .into();
            told.tone = Tone::Failed;
        }
        EventKind::CallRetried { attempt, wait_ms, after, status } => {
            let failed = failure(*after, *status);
            told.what = format!("{failed}, attempt {attempt} in {}", took_ms(*wait_ms)).into();
            told.tone = Tone::Retry;
        }
        EventKind::RetryRefused { attempt, limit } => {
            told.what = format!("attempt {attempt} not made: {}", limit.words()).into();
            told.tone = Tone::Failed;
        }
        EventKind::AttemptStarted { attempt, timeout_ms, .. } => {
            told.what = format!("attempt {attempt} (timeout {})", took_ms(*timeout_ms)).into();
        }
        EventKind::AttemptAnswered(reply) if reply.result.is_some() => {
            told.what = serde_json::to_string(&reply.result).unwrap_or_default().into();
        }
        EventKind::AttemptAnswered(reply) => {
            let mut what = format::bytes(reply.text.len() as u64);
            what.push_str(&super::told_team::calls(reply));
            if let Some(usage) = reply.usage {
                what.push_str(&format!(
                    ", {} tokens in, {} out",
                    usage.prompt_tokens, usage.completion_tokens
                ));
            }
            if let Some(first) = reply.first_token_ms {
                what.push_str(&format!(", first token {}", took_ms(first)));
            }
            told.what = what.into();
        }
        EventKind::AttemptFailed(failed) => {
            told.what = attempt_failed(failed).into();
            told.tone = Tone::Failed;
        }
        EventKind::RequestAdapted { model, parameter } => {
            told.what =
                format!("{model} does not accept {parameter}; sent again without it").into();
            told.tone = Tone::Alert;
        }
        EventKind::ReplyRepaired { repair, what } => {
            told.what = match what.as_str() {
                "" => repair.as_str().into(),
                what => format!("{repair}: {what}").into(),
            };
            told.tone = Tone::Alert;
        }
        EventKind::ReplyRefused(refused) => {
            told.what = match refused.again {
                Some(nth) => format!("{}; asked again ({nth})", refused.detail).into(),
                None => refused.detail.as_ref().into(),
            };
            told.tone = if refused.again.is_some() { Tone::Alert } else { Tone::Refused };
        }
        EventKind::BudgetReached(reached) => {
            told.what = reached.sentence().into();
            told.tone = Tone::Failed;
        }
        EventKind::ConditionFailed { place, text } => {
            told.what = format!("{place}: {text}").into();
            told.tone = Tone::Alert;
        }
        EventKind::Warning { text } => {
            told.what = text.as_str().into();
            told.tone = Tone::Alert;
        }
        EventKind::SessionRunStarted { run, scenario } => {
            told.who = run.as_str().into();
            told.what = scenario.as_str().into();
        }
        EventKind::SessionRunClosed { run, reason } => {
            told.who = run.as_str().into();
            told.what = reason.to_string().into();
        }
        EventKind::SessionRunForgotten { run, facts } => {
            told.who = run.as_str().into();
            told.what = format::things(*facts, "event").into();
        }
        EventKind::FactsDropped { facts } => {
            told.what = format!("{} to bound memory", format::things(*facts, "event")).into();
            told.tone = Tone::Alert;
        }
        EventKind::SourceStarted { source, .. } => {
            let row = world.research().and_then(|(research, _)| research.source(*source));
            told.what = row.map_or("", |row| row.address()).into();
        }
        EventKind::StepsAccepted { .. }
        | EventKind::SourcesFound(_)
        | EventKind::SourcesDeduped(_)
        | EventKind::PageRead(_)
        | EventKind::NoteTaken { .. }
        | EventKind::NoteRefused(_)
        | EventKind::NotesCut(_)
        | EventKind::SourceClosed(_)
        | EventKind::ReadingClosed { .. }
        | EventKind::NotesCompared(_)
        | EventKind::NotesVerified(_)
        | EventKind::AnswerCited(_)
        | EventKind::AnswerRefused(_) => super::told_research::tell(&mut told, &event.kind),
        EventKind::PlanAccepted { .. }
        | EventKind::PlanRefused { .. }
        | EventKind::TaskStarted { .. }
        | EventKind::TaskDone { .. }
        | EventKind::TaskFailed { .. }
        | EventKind::ParallelChanged { .. }
        | EventKind::ResultsAggregated { .. }
        | EventKind::CallQueued
        | EventKind::CallAdmitted { .. }
        | EventKind::CallDegraded { .. }
        | EventKind::AttemptRefused { .. }
        | EventKind::AttemptQueued { .. }
        | EventKind::ClientRetried { .. }
        | EventKind::BreakerChanged { .. }
        | EventKind::ResultStale { .. }
        | EventKind::LimitsChanged { .. }
        | EventKind::FaultInjected { .. }
        | EventKind::FaultHealed { .. } => super::told_tool::tell(&event.kind, &mut told),
        EventKind::Unknown { fields, .. } => {
            told.what = serde_json::to_string(&**fields).unwrap_or_default().into();
            told.tone = Tone::Alert;
        }
    }
    told
}

fn accepted<'a>(told: &mut Told<'a>, contribution: &'a Contribution, extra_keys: u32) {
    told.who = contribution.agent.as_str().into();
    told.stance = Some((contribution.stance, contribution.confidence));
    told.what = if extra_keys == 0 {
        contribution.summary.as_ref().into()
    } else {
        let dropped = format::things(u64::from(extra_keys), "key");
        format!("{} ({dropped} dropped)", contribution.summary).into()
    };
    told.tone = Tone::Done;
}

fn started(head: &RunStarted) -> String {
    let things = |count: u32, what| format::things(u64::from(count), what);
    let (first, second) = match &head.plan {
        PatternPlan::Collaboration(plan) => {
            let seats = format::things(plan.sequence.len() as u64, "seat");
            (seats, format!("max {}", things(plan.max_rounds, "round")))
        }
        PatternPlan::Orchestrator(plan) => {
            let workers = format::things(plan.workers.len() as u64, "worker");
            (workers, format!("max {}", things(plan.max_tasks, "task")))
        }
        PatternPlan::Team(plan) | PatternPlan::Swarm(plan) => {
            let agents = format::things(plan.agents.len() as u64, "agent");
            (agents, format!("message {}", plan.session.message))
        }
        PatternPlan::Resilience(plan) => {
            let how = if plan.guarded { "guarded" } else { "naive" };
            (things(plan.agents, "agent"), format!("{} each, {how}", things(plan.turns, "turn")))
        }
        PatternPlan::Research(plan) => {
            let domains = format::things(plan.allowed_domains_policy.len() as u64, "domain");
            (domains, format!("max {}", things(plan.max_read_pages, "page")))
        }
    };
    format!("{}, {}: {first}, {second}", head.title, model(&head.model))
}

fn ended(closed: &RunClosed) -> String {
    let mut what = closed.reason.to_string();
    if let Some(phase) = &closed.phase {
        what.push_str(&format!(" in {phase}"));
    }
    what.push_str(&format!(" after {}", took_ms(closed.elapsed_ms)));
    if closed.paused_ms > 0 {
        what.push_str(&format!(", paused for {}", took_ms(closed.paused_ms)));
    }
    what
}

fn attempt_failed(failed: &AttemptFailed) -> String {
    let short = failure(failed.class, failed.status);
    if failed.text.is_empty() { short.into_owned() } else { format!("{short}: {}", failed.text) }
}

/// The number of rounds. For a run that stopped within a round: that round, and how many were
/// closed before it.
pub fn rounds_told(table: &Collaboration) -> String {
    let closed = table.rounds.iter().filter(|round| round.closed.is_some()).count() as u64;
    match table.current() {
        None => "no round".to_owned(),
        Some(round) if round.closed.is_some() => format::things(closed, "round"),
        Some(round) => {
            let closed = if closed == 0 { "none".to_owned() } else { closed.to_string() };
            format!("stopped in round {}, {closed} closed", round.number)
        }
    }
}

/// A duration in milliseconds as it is shown: `1.5s`.
pub fn took_ms(millis: u64) -> String {
    format::took(std::time::Duration::from_millis(millis))
}
