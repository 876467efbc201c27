//! Logs of facts by hand: a small builder that plays a collaboration as a test wants it, without
//! an engine. Span ids, places and times are the builder's own.
#![allow(dead_code, reason = "each test file uses the part that it needs")]

mod builder;
pub mod head;
pub mod research;
pub mod team;
pub mod tools;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use roundtable::log::event::{
    AttemptFailed, BoundaryId, BudgetReached, ChatMessage, EventKind, FailureClass, FlagAt,
    Initiator, MessageRole, ModelLabel, Prompt, Purpose, Reply, ReplyRefused, RunStarted, SpanId,
    StopReason, Usage,
};
use roundtable::log::facts::collaboration::{
    CollaborationFact, CollaborationPlan, Conflict, Contribution, RoleFlagHead, SeatPlan,
    SeatStatus, Stance,
};
use roundtable::log::facts::{PatternFact, PatternPlan};
use roundtable::scenario::patterns::collaboration::{CollaborationBudget, Decision};

use self::builder::LogBuilder;

/// A log of a round table that is being written.
pub type Facts = LogBuilder<TableStory>;

/// What the builder knows of a round table.
pub struct TableStory {
    plan: CollaborationPlan,
    round: u32,
    round_span: SpanId,
    messages: u32,
    calls: BTreeMap<usize, (SpanId, SpanId, u32)>,
}

/// What a run is started with.
pub struct Start {
    pub title: String,
    pub roles: Vec<String>,
    /// Roles behind a flag of their own name, and its position.
    pub flagged: Vec<(String, bool)>,
    pub max_rounds: u32,
    pub max_messages: u32,
    pub model: ModelLabel,
}

impl Default for Start {
    fn default() -> Self {
        let names = ["demand_analyst", "finance_analyst", "risk_analyst", "legal_analyst"];
        Self {
            title: "Checkout v2: go or no-go".to_owned(),
            roles: names.map(str::to_owned).to_vec(),
            flagged: vec![("legal_analyst".to_owned(), false)],
            max_rounds: 3,
            max_messages: 12,
            model: ModelLabel::Scripted,
        }
    }
}

impl Facts {
    /// A run that has just been started.
    pub fn start(start: Start) -> Self {
        let plan = CollaborationPlan {
            sequence: start.roles.iter().map(|role| role.as_str().into()).collect(),
            role_flags: start
                .flagged
                .iter()
                .map(|(role, _)| {
                    let flag = RoleFlagHead { flag: role.as_str().into(), deny: false };
                    (role.as_str().into(), flag)
                })
                .collect(),
            parallel: true,
            budget: CollaborationBudget {
                max_rounds: start.max_rounds,
                max_messages: start.max_messages,
                max_seconds: Duration::from_secs(40),
                min_go_votes: 2,
            },
            summary_inputs: Vec::new(),
            ..CollaborationPlan::default()
        };
        let mut facts = Self::new(TableStory {
            plan: plan.clone(),
            round: 0,
            round_span: SpanId::RUN,
            messages: 0,
            calls: BTreeMap::new(),
        });
        let flags = start.flagged.iter().map(|(name, on)| FlagAt {
            name: name.as_str().into(),
            label: format!("{name} at the table"),
            on: *on,
        });
        let head = RunStarted {
            scenario: "checkout-launch".into(),
            title: start.title,
            goal: "Decide whether Checkout v2 may start in the US on 2 March.".to_owned(),
            model: start.model,
            flags: flags.collect(),
            ..head::started("r-7f3a", PatternPlan::Collaboration(Arc::new(plan)))
        };
        facts.add(SpanId::RUN, EventKind::RunStarted(Arc::new(head)));
        facts
    }

    /// The run may use so many tokens.
    pub fn limit_tokens(&mut self, tokens: u64) {
        let EventKind::RunStarted(head) = &mut Arc::make_mut(&mut self.log[0]).kind else { return };
        Arc::make_mut(head).spending.max_total_tokens = Some(tokens);
    }

    /// Opens the next round; the seats in `off` are empty.
    pub fn round(&mut self, off: &[usize]) -> &mut Self {
        self.round += 1;
        self.calls.clear();
        self.round_span = self.open();
        let asked =
            |seat| if off.contains(&seat) { SeatStatus::Skipped } else { SeatStatus::Asked };
        let seats = self.plan.sequence.iter().enumerate();
        let seats = seats.map(|(seat, role)| SeatPlan { role: role.clone(), status: asked(seat) });
        let kind =
            EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::RoundStarted {
                parent: SpanId::RUN,
                round: self.round,
                seats: seats.collect(),
            }));
        self.add(self.round_span, kind)
    }

    fn messages_for(&self, purpose: &Purpose) -> Arc<[ChatMessage]> {
        let role = match purpose {
            Purpose::Contribution { role, .. } => role.to_string(),
            _ => "the brief".to_owned(),
        };
        let user = format!(
            "{{\"goal\":\"Decide.\",\"role\":\"{role}\",\"shared_context\":{{\"risk_signals\":{{\"failed_payment_rate\":0.028}}}},\"open_conflicts\":[]}}"
        );
        let system = format!(
            "You speak for {role}. Weigh what you are shown against the limits of the policy.\n\nAnswer with one JSON object and nothing else."
        );
        Arc::new([
            ChatMessage::new(MessageRole::System, system),
            ChatMessage::new(MessageRole::User, user),
        ])
    }

    /// Asks a seat: its call and its first attempt.
    pub fn ask(&mut self, seat: usize) -> &mut Self {
        let role = self.plan.sequence[seat].clone();
        let purpose = Purpose::Contribution { round: self.round, seat: seat as u16, role };
        self.call(seat, purpose, self.round_span)
    }

    /// Asks for the brief; it is seat 99.
    pub fn ask_brief(&mut self) -> &mut Self {
        self.call(99, Purpose::Finalize, SpanId::RUN)
    }

    fn call(&mut self, key: usize, purpose: Purpose, parent: SpanId) -> &mut Self {
        let prompt = Prompt::complete(self.messages_for(&purpose));
        let call = self.call_starts(parent, "llm", purpose, prompt, None);
        self.attempt(key, call, 1)
    }

    fn attempt(&mut self, key: usize, call: SpanId, attempt: u32) -> &mut Self {
        let span = self.open();
        self.calls.insert(key, (call, span, attempt));
        self.add(
            span,
            EventKind::AttemptStarted {
                parent: call,
                attempt,
                timeout_ms: 60_000,
                waited_ms: 0,
                probe: false,
            },
        )
    }

    /// The attempt of a seat fails and another will follow.
    pub fn fails(&mut self, seat: usize, status: u16) -> &mut Self {
        let (call, span, attempt) = self.calls[&seat];
        let failed = failure(status, "The endpoint is busy.");
        self.add(span, EventKind::AttemptFailed(Box::new(failed)));
        let kind = EventKind::CallRetried {
            attempt: attempt + 1,
            wait_ms: 300,
            cause: FailureClass::Status,
            status: Some(status),
        };
        self.add(call, kind)
    }

    /// The next attempt of a seat begins.
    pub fn again(&mut self, seat: usize) -> &mut Self {
        let (call, _, attempt) = self.calls[&seat];
        self.attempt(seat, call, attempt + 1)
    }

    /// A seat's call fails for good.
    pub fn gives_up(&mut self, seat: usize, status: u16, reason: &str) -> &mut Self {
        let (call, span, attempts) = self.calls[&seat];
        let failed = failure(status, "The endpoint says: upstream overloaded. Try again later.");
        self.add(span, EventKind::AttemptFailed(Box::new(failed)));
        self.add(call, EventKind::CallFailed { attempts, reason: StopReason::from(reason) })
    }

    /// A seat's reply comes.
    pub fn replies(&mut self, seat: usize, text: &str) -> &mut Self {
        let (call, span, attempts) = self.calls[&seat];
        let reply = Reply {
            result: None,
            text: text.into(),
            usage: Some(Usage::new(812, 96)),
            estimated: false,
            first_token_ms: Some(180),
            finish: Some("stop".into()),
            ..Reply::from_agent_text(Arc::default())
        };
        self.add(span, EventKind::AttemptAnswered(Arc::new(reply)));
        self.add(call, EventKind::CallAnswered { attempts })
    }

    /// The gateway takes a seat's contribution.
    pub fn accepted(&mut self, seat: usize, said: Contribution, extra_keys: u32) -> &mut Self {
        self.messages += 1;
        let kind = EventKind::Pattern(PatternFact::Collaboration(
            CollaborationFact::ContributionAccepted {
                round: self.round,
                seat: seat as u16,
                contribution: Arc::new(said),
                extra_keys,
                extra_actions: 0,
                messages: self.messages,
            },
        ));
        self.add(self.calls[&seat].0, kind)
    }

    /// The fault of a seat's reply. `again`: its model gets the fault, and is asked once more.
    pub fn judged(
        &mut self,
        seat: usize,
        reason: &str,
        detail: &str,
        again: Option<u32>,
    ) -> &mut Self {
        let refused = ReplyRefused {
            reason: StopReason::from(reason),
            detail: detail.into(),
            preview: "{\"stance\": \"maybe\"}".into(),
            repeat: again,
            repeats: 0,
        };
        let (call, ..) = self.calls[&seat];
        self.add(call, EventKind::ReplyRefused(Box::new(refused)));
        match again {
            Some(_) => self.ask(seat),
            None => self,
        }
    }

    /// The gateway refuses a seat's reply.
    pub fn refused(&mut self, seat: usize, reason: &str) -> &mut Self {
        let kind = EventKind::Pattern(PatternFact::Collaboration(
            CollaborationFact::ContributionRefused {
                round: self.round,
                seat: seat as u16,
                role: self.plan.sequence[seat].clone(),
                reason: StopReason::from(reason),
                raw: Some(Arc::new(serde_json::json!({"stance": "maybe"}))),
            },
        ));
        self.add(self.calls[&seat].0, kind)
    }

    /// A seat replies and is taken.
    pub fn says(
        &mut self,
        seat: usize,
        stance: Stance,
        confidence: f64,
        summary: &str,
    ) -> &mut Self {
        let role = self.plan.sequence[seat].clone();
        let actions = ["rehearse gateway fail-over", "alert at 2.9 % failed payments"];
        let reply = serde_json::json!({
            "agent": role, "stance": stance, "summary": summary,
            "confidence": confidence, "actions": actions,
        });
        self.replies(seat, &reply.to_string());
        let said = Contribution {
            agent: role,
            stance,
            summary: summary.into(),
            confidence,
            actions: actions.iter().map(|action| (*action).into()).collect(),
            end: Default::default(),
        };
        self.accepted(seat, said, 0)
    }

    /// Closes the round.
    pub fn close(&mut self, conflicts: &[Conflict], decision: Option<Decision>) -> &mut Self {
        let kind = EventKind::Pattern(PatternFact::Collaboration(CollaborationFact::RoundClosed {
            round: self.round,
            conflicts: conflicts.to_vec(),
            decision,
            decided_by: None,
        }));
        self.add(self.round_span, kind)
    }

    /// A flag is switched.
    pub fn flag(&mut self, flag: &str, on: bool, boundary: &str) -> &mut Self {
        let boundary = BoundaryId::new(boundary);
        let kind = EventKind::FlagChanged { flag: flag.into(), on, by: Initiator::You, boundary };
        self.add(SpanId::RUN, kind)
    }

    /// The run is paused before these boundaries.
    pub fn paused(&mut self, at: &[&str]) -> &mut Self {
        self.add(SpanId::RUN, EventKind::Pausing { by: Initiator::You, at_round: false });
        let at = at.iter().map(|at| BoundaryId::new(*at)).collect();
        self.add(SpanId::RUN, EventKind::Paused { at })
    }

    /// The brief is composed.
    pub fn answer(&mut self, text: &str) -> &mut Self {
        self.replies(99, text);
        let call = self.calls[&99].0;
        self.add(
            call,
            EventKind::AnswerComposed { text: text.into(), by: None, end: Default::default() },
        )
    }

    /// The span of a seat's call.
    pub fn call_of(&self, seat: usize) -> SpanId {
        self.calls[&seat].0
    }

    /// A further call that goes on where another has ended; returns its span.
    pub fn ask_after(&mut self, before: SpanId, text: &str) -> SpanId {
        let messages = [ChatMessage::new(MessageRole::User, text)];
        let prompt = Prompt { after: Some(before), ..Prompt::complete(Arc::new(messages)) };
        let role = self.plan.sequence[0].clone();
        let purpose = Purpose::Contribution { round: self.round, seat: 0, role };
        self.call_starts(self.round_span, "llm", purpose, prompt, None)
    }

    /// The span of a seat's attempt.
    pub fn attempt_of(&self, seat: usize) -> SpanId {
        self.calls[&seat].1
    }
}

fn failure(status: u16, text: &str) -> AttemptFailed {
    AttemptFailed {
        class: FailureClass::Status,
        status: Some(status),
        text: text.to_owned(),
        retry_after_ms: None,
        should_retry: None,
        partial: None,
        usage: None,
        adapted: None,
        slow: false,
    }
}

/// The first round of the story: three seats differ, the lawyer is not there.
pub fn first_round(facts: &mut Facts) {
    facts.after(100).round(&[3]);
    facts.ask(0).ask(1).ask(2);
    facts.after(900).says(
        0,
        Stance::Go,
        0.9,
        "Demand holds at 15 200 orders; traffic risk is medium.",
    );
    facts.after(500).says(
        1,
        Stance::Caution,
        0.6,
        "The margin holds only while promotion stays cheap.",
    );
    facts.after(600).says(2, Stance::Block, 0.7, "Failed payments are close to the line of 3.0 %.");
    facts.close(&[Conflict::BlockingVsNonBlock, Conflict::HighDivergence], None);
}

/// The second round up to where the risk analyst speaks again after a 503.
pub fn second_round(facts: &mut Facts) {
    facts.after(300).flag("legal_analyst", true, "round:2");
    facts.round(&[]);
    facts.ask(0).ask(1).ask(2).ask(3);
    facts.after(1600).says(0, Stance::Go, 0.9, "Demand holds; traffic risk stays medium.");
    facts.after(200).says(1, Stance::Go, 0.84, "With the fail-over rehearsed the margin is safe.");
    facts.after(300).fails(2, 503);
    facts.after(300).again(2);
    let said = Contribution {
        agent: "legal_analyst".into(),
        stance: Stance::Caution,
        summary: "Consent texts are in order for the US; the EU texts are not final.".into(),
        confidence: 0.55,
        actions: vec!["freeze the EU texts".into(), "log consent".into()],
        end: Default::default(),
    };
    facts.after(400).replies(3, "{}").accepted(3, said, 1);
    facts.after(1500);
}

/// What the risk analyst has said so far in the second round.
pub const COMING: &str = "{\"agent\":\"risk_analyst\",\"stance\":\"caution\",\"summary\":\"Failed \
payments at 2.8 % stay under the 3.0 % line, but the margin is thin: four chargeback alerts of five \
allowed. I move from block to caution if the gateway fail-over is rehearsed before the start";

/// The answer at the end of the story.
pub const ANSWER: &str = "Decision: go with caution.\n\nCheckout v2 may start in the US on 2 March. \
Demand holds, and the margin is safe once the gateway fail-over is rehearsed; failed payments stay \
0.2 points under the line.\n\nFirst: rehearse the fail-over. Second: alert at 2.9 %.";

/// Before the first round.
pub fn waiting() -> Facts {
    Facts::start(Start::default())
}

/// In the middle of the second round, one seat still speaking.
pub fn streaming() -> Facts {
    let mut facts = waiting();
    first_round(&mut facts);
    second_round(&mut facts);
    facts
}

/// At rest before a seat of the second round.
pub fn paused() -> Facts {
    let mut facts = waiting();
    first_round(&mut facts);
    facts.after(200).round(&[3]);
    facts.after(50).paused(&["message:2:demand_analyst"]);
    facts
}

/// Asked to pause while calls are on their way.
pub fn pausing() -> Facts {
    let mut facts = waiting();
    facts.after(100).round(&[3]);
    facts.ask(0).ask(1).ask(2);
    facts.after(200).add(SpanId::RUN, EventKind::Pausing { by: Initiator::You, at_round: false });
    facts
}

/// Decided after two rounds.
pub fn decided() -> Facts {
    let mut facts = streaming();
    facts.says(2, Stance::Caution, 0.66, "A thin margin under the line; rehearse the fail-over.");
    facts.close(&[Conflict::GoVsCaution], Some(Decision::GoWithCaution));
    facts.after(20).ask_brief();
    facts.after(900).answer(ANSWER);
    facts.ends("success", None);
    facts
}

/// Stopped in the second round: a model call could not be had.
pub fn stopped() -> Facts {
    let mut facts = streaming();
    facts.gives_up(2, 503, "llm_error:http_503");
    facts.ends("llm_error:http_503", Some("round_2:risk_analyst"));
    facts
}

/// Stopped in the second round: a contribution broke the contract.
pub fn broken() -> Facts {
    let mut facts = streaming();
    facts.replies(2, "{\"stance\": \"maybe\"}");
    let detail = "stance is \"maybe\", not go, caution or block";
    facts.judged(2, "invalid_contribution:stance", detail, None);
    facts.refused(2, "invalid_contribution:stance");
    facts.ends("invalid_contribution:stance", Some("round_2:risk_analyst"));
    facts
}

/// Stopped in the second round: a reply was prose, which the collaboration source document calls missing
/// keys.
pub fn prose() -> Facts {
    let mut facts = streaming();
    facts.replies(2, "I think we should go ahead");
    let detail =
        "not JSON: begins with \"I think we should go…\"; expected value at line 1 column 1";
    facts.judged(2, "invalid_contribution:missing_keys", detail, None);
    facts.refused(2, "invalid_contribution:missing_keys");
    facts.ends("invalid_contribution:missing_keys", Some("round_2:risk_analyst"));
    facts
}

/// In the second round a seat's reply is refused, and its model is asked again, with the rest of a token
/// budget.
pub fn asked_again() -> Facts {
    let mut facts = streaming();
    facts.replies(2, "{\"stance\": \"maybe\"}");
    let detail = "stance is \"maybe\", not go, caution or block";
    facts.judged(2, "invalid_contribution:stance", detail, Some(1));
    facts.limit_tokens(8_000);
    facts
}

/// The brief would go beyond the budget of tokens.
pub fn over_budget() -> Facts {
    let mut facts = streaming();
    facts.says(2, Stance::Caution, 0.66, "A thin margin under the line; rehearse the fail-over.");
    facts.close(&[Conflict::GoVsCaution], Some(Decision::GoWithCaution));
    let reached =
        BudgetReached::Tokens { limit: 8_000, spent: 6_356, estimate: 4_410, of_day: false };
    facts.add(SpanId::RUN, EventKind::BudgetReached(reached));
    facts.ends("max_tokens_budget", Some("finalize"));
    facts.limit_tokens(8_000);
    facts
}

/// `seats` seats in their first round, all but the last four in.
pub fn seats(seats: usize) -> Facts {
    let roles = (1..=seats).map(|nth| format!("analyst_of_field_{nth}")).collect();
    let start = Start { roles, flagged: Vec::new(), max_messages: 40, ..Start::default() };
    let mut facts = Facts::start(start);
    facts.after(100).round(&[]);
    for seat in 0..seats {
        facts.ask(seat);
    }
    for seat in 0..seats.saturating_sub(4) {
        let confidence = 0.5 + seat as f64 * 0.03;
        let why = "A summary of some length that says why it stands where it stands.";
        facts.after(130).says(seat, Stance::ALL[seat % 3], confidence, why);
    }
    facts.after(100);
    facts
}

/// Many rounds that end in nothing, up to `rounds`.
pub fn rounds(rounds: u32) -> Facts {
    let start = Start { max_rounds: rounds + 2, max_messages: 400, ..Start::default() };
    let mut facts = Facts::start(start);
    for round in 0..rounds {
        facts.after(50).round(&[3]);
        for seat in 0..3 {
            facts.ask(seat);
            let stance = Stance::ALL[(round as usize + seat) % 3];
            facts.after(90).says(seat, stance, 0.6, "It goes on.");
        }
        facts.close(&[Conflict::HighDivergence], None);
    }
    facts
}
