//! A long log as a collaboration writes it: rounds of four seats, a retry now and then, every
//! fact of the kinds that a run really has.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use roundtable::bench::{
    CallStarted, CollaborationBudget, CollaborationPlan, Conflict, Contribution, PatternPlan,
    Prompt, SeatPlan, SeatStatus, Stance,
};
use roundtable::{
    AttemptFailed, ChatMessage, CollaborationFact, Elapsed, Event, EventKind, FailureClass,
    MessageRole, ModelLabel, PatternFact, Purpose, Reply, RoleName, RunId, RunStarted, Seq, SpanId,
    Usage,
};

const ROLES: [&str; 4] = ["demand_analyst", "finance_analyst", "risk_analyst", "legal_analyst"];

/// A log that grows.
struct Log {
    facts: Vec<Arc<Event>>,
    spans: u32,
}

impl Log {
    fn add(&mut self, span: SpanId, kind: EventKind) {
        let seq = self.facts.len() as u64;
        let at = Elapsed(seq * 900);
        self.facts.push(Arc::new(Event { seq: Seq(seq), at, span, kind }));
    }

    fn open(&mut self) -> SpanId {
        self.spans += 1;
        SpanId(self.spans)
    }
}

/// A log of this many facts, its last round still open.
pub fn log(facts: usize) -> Vec<Arc<Event>> {
    let roles: Vec<RoleName> = ROLES.map(RoleName::from).to_vec();
    let plan = CollaborationPlan {
        sequence: roles.clone(),
        role_flags: BTreeMap::new(),
        parallel: true,
        budget: CollaborationBudget {
            max_rounds: u32::MAX,
            max_messages: u32::MAX,
            max_seconds: Duration::from_millis(u64::MAX / 2),
            min_go_votes: 2,
        },
        summary_inputs: Vec::new(),
        ..CollaborationPlan::default()
    };
    let head = RunStarted {
        run: RunId::new("r-long"),
        wall_ms: 0,
        scenario: "long".into(),
        title: "A very long run".to_owned(),
        goal: "Go on.".to_owned(),
        model: ModelLabel::Scripted,
        inputs: serde_json::Map::new(),
        flags: Vec::new(),
        seed: 0,
        prices: None,
        model_prices: Vec::new(),
        tools: Vec::new(),
        people: Vec::new(),
        ask_again: 0,
        shows_flags: false,
        alerts: Default::default(),
        spending: Default::default(),
        launch: None,
        redacted: false,
        plan: PatternPlan::Collaboration(Arc::new(plan)),
    };
    let mut log = Log { facts: Vec::with_capacity(facts + 64), spans: 0 };
    log.add(SpanId::RUN, EventKind::RunStarted(Arc::new(head)));
    let messages: Arc<[ChatMessage]> = Arc::new([
        ChatMessage::new(MessageRole::System, "You judge."),
        ChatMessage::new(MessageRole::User, "{\"goal\":\"Go on.\"}"),
    ]);
    let mut round = 0;
    let mut taken = 0;
    while log.facts.len() < facts {
        round += 1;
        one_round(&mut log, round, &roles, &messages, &mut taken);
    }
    log.facts.truncate(facts);
    log.facts
}

fn one_round(
    log: &mut Log,
    round: u32,
    roles: &[RoleName],
    messages: &Arc<[ChatMessage]>,
    taken: &mut u32,
) {
    let span = log.open();
    let seats = roles.iter().map(|role| SeatPlan { role: role.clone(), status: SeatStatus::Asked });
    let seats = seats.collect();
    log.add(
        span,
        EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::RoundStarted {
            parent: SpanId::RUN,
            round,
            seats,
        })),
    );
    let mut calls = Vec::new();
    for (seat, role) in roles.iter().enumerate() {
        let call = log.open();
        let purpose = Purpose::Contribution { round, seat: seat as u16, role: role.clone() };
        let prompt = Prompt::complete(Arc::clone(messages));
        let started = CallStarted {
            parent: span,
            tool: "llm".into(),
            purpose,
            prompt,
            args: None,
            model: None,
            repeat: 0,
        };
        log.add(call, EventKind::CallStarted(Box::new(started)));
        let attempt = log.open();
        let kind = EventKind::AttemptStarted {
            parent: call,
            attempt: 1,
            timeout_ms: 60_000,
            waited_ms: 0,
            probe: false,
        };
        log.add(attempt, kind);
        calls.push((call, attempt));
    }
    for (seat, (call, attempt)) in calls.into_iter().enumerate() {
        let mut attempt = attempt;
        if (round as usize + seat).is_multiple_of(7) {
            let failed = AttemptFailed {
                class: FailureClass::Status,
                status: Some(503),
                text: "The endpoint is busy.".to_owned(),
                retry_after_ms: None,
                should_retry: None,
                slow: false,
                partial: None,
                usage: None,
                adapted: None,
            };
            log.add(attempt, EventKind::AttemptFailed(Box::new(failed)));
            let (after, status) = (FailureClass::Status, Some(503));
            log.add(
                call,
                EventKind::CallRetried { attempt: 2, wait_ms: 250, cause: after, status },
            );
            attempt = log.open();
            let kind = EventKind::AttemptStarted {
                parent: call,
                attempt: 2,
                timeout_ms: 60_000,
                waited_ms: 0,
                probe: false,
            };
            log.add(attempt, kind);
        }
        let reply = Reply {
            result: None,
            text: "{\"stance\":\"caution\"}".into(),
            usage: Some(Usage::new(812, 96)),
            estimated: false,
            first_token_ms: Some(180),
            ..Reply::from_agent_text(Arc::default())
        };
        log.add(attempt, EventKind::AttemptAnswered(Arc::new(reply)));
        log.add(call, EventKind::CallAnswered { attempts: 1 });
        *taken += 1;
        let contribution = Contribution {
            agent: roles[seat].clone(),
            stance: Stance::ALL[(round as usize + seat) % 3],
            summary: "Failed payments stay under the line, but the margin is thin.".into(),
            confidence: 0.55,
            actions: vec!["Rehearse the fail-over".into()],
            end: Default::default(),
        };
        log.add(
            call,
            EventKind::Pattern(PatternFact::Collaboration(
                CollaborationFact::ContributionAccepted {
                    round,
                    seat: seat as u16,
                    contribution: Arc::new(contribution),
                    extra_keys: 0,
                    extra_actions: 0,
                    messages: *taken,
                },
            )),
        );
    }
    let conflicts = vec![Conflict::BlockingVsNonBlock];
    log.add(
        span,
        EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::RoundClosed {
            round,
            conflicts,
            decision: None,
            decided_by: None,
        })),
    );
}
