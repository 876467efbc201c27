//! The questions of a run: who is asked, who answers, and what a branch does until then.
//!
//! The log decides. A question and its answer are events; what is kept here is only which branch
//! waits. In a run that is executed again, recorded answers come as commands, like all that comes from
//! outside, and a question without one is open again when the run is live. So nothing is asked twice.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, oneshot};

use super::RunContext;
pub use super::answerers::PeopleMode;
use super::control::RunControl;
use crate::base::name::{PersonName, ToolName};
use crate::base::time::{WallClock, millis, unix_ms};
use crate::log::bus::Bus;
use crate::log::event::question::{MAX_OPEN_QUESTIONS, changed_text, check_fields, denial_text};
use crate::log::event::{
    Answer, AnsweredBy, Boundary, Command, EventKind, Initiator, QuestionAnswered, QuestionAsked,
    QuestionId, Seq, SpanId, StopReason, Subject, Withdrawal,
};
use crate::log::replay::CallStep;
use crate::scenario::Scenario;
use crate::scenario::cel::CelBindings;
use crate::scenario::people::{
    Asking, CallDecision, CallToDecide, Effects, FailedCondition, Otherwise,
};
use crate::scenario::spec::tool::ToolSpec;
use crate::words::question::late_text;

/// How often the wall clock is read until a deadline: it can be set meanwhile, and it runs on while the
/// machine sleeps.
const CLOCK_CHECK: Duration = Duration::from_secs(60);

/// What stores the answers to a run before the run has them.
pub(crate) trait StoredAnswers: Send + Sync {
    /// Gives the run every answer that is stored now.
    fn deliver(&self) -> BoxFuture<'_, ()>;
}

/// A question to ask.
#[derive(Clone)]
pub struct Question {
    /// The span that the question is published on.
    pub span: SpanId,
    /// The span around it: its timeout, and those around that, do not count the wait.
    pub inside: SpanId,
    /// The agent, role or task for which it is asked.
    pub by: Option<Arc<str>>,
    /// What the model said with the call.
    pub why: Option<Arc<str>>,
    pub subject: Subject,
    pub asking: Asking,
    /// The rule that asks.
    pub rule: Option<Arc<str>>,
}

impl Question {
    fn digest(&self) -> Arc<str> {
        self.subject.digest(self.by.as_deref())
    }

    /// Whether a question of a log asks the same, and shows people the same: a log can be edited.
    fn is_asked_by(&self, asked: &QuestionAsked) -> bool {
        asked.digest == self.digest() && asked.subject == self.subject
    }
}

/// A call of a tool about which is decided whether it needs approval.
pub(super) struct CallOfTool<'c> {
    pub tool: &'c ToolName,
    pub spec: &'c ToolSpec,
    pub agent: Option<&'c str>,
    /// SHA-256 of the definition of the tool.
    pub definition: &'c str,
    /// The JSON schema of its arguments.
    pub parameters: &'c Value,
    /// What allows it where no rule asks.
    pub allowed: Option<Arc<str>>,
}

/// The questions of one run. Answers come in at [`Questions::take`].
pub struct Questions {
    bus: Bus,
    pub(super) control: Arc<RunControl>,
    pub(super) scenario: Arc<Scenario>,
    pub(super) seed: u64,
    pub(super) instant: bool,
    /// Deadlines go by it.
    wall: WallClock,
    /// Where answers may be stored that are not here yet; unset: nowhere.
    stored: OnceLock<Arc<dyn StoredAnswers>>,
    state: Mutex<QuestionsState>,
    /// Raised when the run is live, or others answer.
    changed: Notify,
}

#[derive(Default)]
struct QuestionsState {
    mode: PeopleMode,
    last: u32,
    open: BTreeMap<QuestionId, OpenQuestion>,
    remembered: Vec<Remembered>,
    asked_of: BTreeMap<PersonName, u32>,
    /// The questions for which the run pauses, because nobody has answered in time.
    paused_for: BTreeSet<QuestionId>,
    /// The latest questions that their deadline has ended, for answers that come too late.
    overdue: BTreeMap<QuestionId, Arc<QuestionAsked>>,
    /// How many answers of a recorded run were used, by their digest.
    used: BTreeMap<Arc<str>, usize>,
    live: bool,
}

struct OpenQuestion {
    span: SpanId,
    asked: Arc<QuestionAsked>,
    answer: oneshot::Sender<Ended>,
}

/// A question with its answer.
pub struct Ended {
    pub asked: Arc<QuestionAsked>,
    pub answered: Arc<QuestionAnswered>,
}

impl Ended {
    /// What the caller of a tool reads if its call was not approved.
    pub fn denial_text(&self) -> Arc<str> {
        denial_text(&self.asked, &self.answered)
    }

    /// What the caller of a tool reads below the result if its arguments were changed.
    pub fn changed_text(&self) -> Option<Arc<str>> {
        changed_text(&self.asked, &self.answered)
    }
}

/// An approval that holds for the rest of the run.
struct Remembered {
    id: QuestionId,
    agent: Option<Arc<str>>,
    tool: ToolName,
    definition: Arc<str>,
}

/// A branch waits for the answer; dropping this withdraws the question if it is still open.
struct WaitingQuestion<'a> {
    questions: &'a Questions,
    id: QuestionId,
}

impl Drop for WaitingQuestion<'_> {
    fn drop(&mut self) {
        self.questions.withdraw(self.id, Withdrawal::Cancelled);
    }
}

impl Questions {
    /// The questions of a run. `live`: it has no recording to execute again.
    pub(super) fn new(
        bus: Bus,
        control: Arc<RunControl>,
        scenario: Arc<Scenario>,
        mode: PeopleMode,
        (seed, instant): (u64, bool),
        wall: WallClock,
    ) -> Arc<Self> {
        let recording = bus.replay().map(|replay| replay.recording());
        let last = recording.map_or(0, |recording| recording.last_question());
        let live = recording.is_none();
        let state = QuestionsState { mode, last, live, ..QuestionsState::default() };
        let (state, stored, changed) = (Mutex::new(state), OnceLock::new(), Notify::new());
        Arc::new(Self { bus, control, scenario, seed, instant, wall, stored, state, changed })
    }

    /// Sets what stores the answers to the run before the run has them. It is read at each deadline.
    pub(crate) fn set_stored_answers(&self, stored: Arc<dyn StoredAnswers>) {
        let _ = self.stored.set(stored);
    }

    /// The time by which deadlines go, as Unix time in milliseconds.
    pub(crate) fn wall_ms(&self) -> u64 {
        unix_ms((self.wall)())
    }

    fn lock(&self) -> MutexGuard<'_, QuestionsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run is live: open questions are answered by people, the script or nobody.
    pub(crate) fn go_live(&self) {
        self.lock().live = true;
        self.changed.notify_waiters();
    }

    /// Whether people answer.
    pub(crate) fn are_for_people(&self) -> bool {
        self.lock().mode.are_people()
    }

    /// The next deadline of an open question, as Unix time in milliseconds.
    pub(crate) fn next_deadline_ms(&self) -> Option<u64> {
        self.lock().open.values().filter_map(|open| open.asked.due_ms).min()
    }

    /// From now on nobody answers, not even the questions that are open.
    pub(crate) fn nobody_from_now(&self) {
        self.lock().mode = PeopleMode::Nobody;
        self.changed.notify_waiters();
    }

    /// Asks a question and waits for the answer; then waits while the run is paused. The question is
    /// withdrawn if this is dropped before.
    ///
    /// # Errors
    /// The stop reason if the run is stopped meanwhile.
    pub async fn ask(&self, question: Question) -> Result<Ended, StopReason> {
        let ended = self.ask_once(question).await;
        self.control.pass(&Boundary::Answer(ended.asked.id.0)).await?;
        Ok(ended)
    }

    /// The same without the wait while the run is paused.
    pub(crate) async fn ask_once(&self, question: Question) -> Ended {
        loop {
            let (id, mut answer) = self.publish(&question, false);
            let ended = {
                let open = WaitingQuestion { questions: self, id };
                let _waits = self.control.wait_for_person(question.inside);
                let ended = tokio::select! {
                    biased;
                    ended = &mut answer => ended.ok(),
                    // It is not open any more: it was withdrawn, or answered on another thread meanwhile.
                    () = self.answer_when_live(id, &question) => answer.await.ok(),
                };
                drop(open);
                ended
            };
            match ended {
                Some(ended) => {
                    // An answer takes effect once it is stored, so it is not lost in a crash. A recorded
                    // one is stored.
                    if self.bus.replay().is_none_or(|replay| replay.is_live()) {
                        self.bus.wait_until_stored().await;
                    }
                    return ended;
                }
                // Too many questions are open, and the run stops.
                None if id.0 == 0 => pending().await,
                // A recorded question was withdrawn, because it has changed: it is asked again.
                None => {}
            }
        }
    }

    /// Whether one more question can be open.
    pub(crate) fn has_room(&self) -> bool {
        self.lock().open.len() < MAX_OPEN_QUESTIONS
    }

    /// Asks a question of a recorded attempt again, in its turn: the attempt is not made again, but the run
    /// has waited for the answer.
    pub(super) async fn ask_again(&self, attempt: SpanId, asked: &QuestionAsked) {
        if let Some(replay) = self.bus.replay() {
            replay.turn(CallStep::Continue(attempt)).await;
        }
        let (who, otherwise) = (asked.who.clone(), asked.otherwise.clone());
        let question = Question {
            span: attempt,
            inside: attempt,
            by: asked.by.clone(),
            why: asked.why.clone(),
            subject: asked.subject.clone(),
            asking: Asking { who, timeout: None, otherwise },
            rule: asked.rule.clone(),
        };
        let _ = self.ask(question).await;
    }

    /// Whether an answer from a recording is about something that has changed since. It is withdrawn
    /// then. In the recorded part of a run nothing is compared: what was withdrawn there is withdrawn again.
    pub(super) fn withdraw_if_changed(&self, question: &Question, ended: &Ended) -> bool {
        let Some(replay) = self.bus.replay() else { return false };
        let (id, why) = (ended.asked.id, Withdrawal::Changed);
        let withdrawn = EventKind::QuestionWithdrawn { id, why };
        let changed = match replay.is_live() {
            true => !question.is_asked_by(&ended.asked),
            false => replay.next_event().is_some_and(|event| event.kind == withdrawn),
        };
        if changed {
            self.bus.publish(question.span, withdrawn);
        }
        changed
    }

    /// Records that a rule has decided about a call. Returns what the caller reads if it was denied.
    pub(super) fn decide_by_rule(&self, question: Question, answer: Answer) -> Arc<str> {
        let (id, mut ended) = self.publish(&question, true);
        self.settle(id, AnsweredBy::Rule, answer);
        ended.try_recv().map(|ended| ended.denial_text()).unwrap_or_default()
    }

    /// Publishes a question and opens it.
    fn publish(
        &self,
        question: &Question,
        by_rule: bool,
    ) -> (QuestionId, oneshot::Receiver<Ended>) {
        let Question { span, inside: _, by, why, subject, asking, rule } = question.clone();
        let (answer, answered) = oneshot::channel();
        let mut state = self.lock();
        if !by_rule && state.open.len() >= MAX_OPEN_QUESTIONS {
            drop(state);
            self.control.stop(StopReason::TooManyQuestions);
            return (QuestionId(0), answered);
        }
        let digest = question.digest();
        let due_ms = asking.timeout.map(|timeout| self.wall_ms().saturating_add(millis(timeout)));
        let asked = Arc::new(QuestionAsked {
            id: QuestionId(state.last.saturating_add(1)),
            who: asking.who,
            by,
            why,
            subject,
            digest,
            rule,
            by_rule,
            due_ms,
            otherwise: asking.otherwise,
        });
        let seq = self.bus.publish(span, EventKind::QuestionAsked(Arc::clone(&asked)));
        // What was recorded counts, such as its number and its deadline; what happens without an answer is
        // up to the scenario, because a log can be edited.
        let asked = match self.recorded(seq) {
            Some(recorded) if recorded.otherwise == asked.otherwise => recorded,
            Some(recorded) => {
                let otherwise = asked.otherwise.clone();
                Arc::new(QuestionAsked { otherwise, ..QuestionAsked::clone(&recorded) })
            }
            None => asked,
        };
        let id = asked.id;
        state.last = state.last.max(id.0);
        if !by_rule {
            *state.asked_of.entry(asked.who.clone()).or_default() += 1;
        }
        state.open.insert(id, OpenQuestion { span, asked, answer });
        (id, answered)
    }

    /// The recorded question, if this event of a run that is executed again is one.
    fn recorded(&self, seq: Seq) -> Option<Arc<QuestionAsked>> {
        let replay = self.bus.replay().filter(|replay| !replay.is_live())?;
        let event = replay.recording().events().get(usize::try_from(seq.0).ok()?)?;
        match &event.kind {
            EventKind::QuestionAsked(asked) => Some(Arc::clone(asked)),
            _ => None,
        }
    }

    pub(super) fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Whether calls of this tool may need a decision.
    pub(super) fn may_ask_about(&self, spec: Option<&ToolSpec>) -> bool {
        let asks = |spec: &ToolSpec| spec.approve.is_some() || spec.asks_by_default.is_some();
        spec.is_some_and(asks) || !self.scenario.people.rules.is_empty()
    }

    /// What is decided about a call of a tool by the rules.
    pub(super) fn decide(
        &self,
        call: CallOfTool<'_>,
        args: &Map<String, Value>,
    ) -> (CallDecision, Vec<FailedCondition>) {
        let CallOfTool { tool, spec, agent, definition, parameters, allowed } = call;
        // The tool may have become irreversible since the recorded part of a resumed run or a fork.
        let remembered = spec.effects() != Effects::Irreversible
            && self.lock().remembered.iter().any(|it| {
                it.agent.as_deref() == agent && it.tool == *tool && *it.definition == *definition
            });
        let agent = agent.unwrap_or_default();
        let args = Value::Object(args.clone());
        let shown = self.shown_to_rules(agent, &args);
        let own = spec.approve.as_deref();
        let asks_by_default = spec.asks_by_default.as_ref();
        let fits = check_fields(parameters, &args, "argument");
        let call = CallToDecide { tool, agent, own, remembered, allowed, asks_by_default };
        self.scenario.people.decide(call, &shown, fits)
    }

    /// Takes a command about questions; returns any other.
    pub fn take(&self, command: Command) -> Option<Command> {
        match command {
            Command::Answer(answered) => self.answer(*answered),
            Command::WithdrawApproval { id, by } => {
                let mut state = self.lock();
                let before = state.remembered.len();
                state.remembered.retain(|it| it.id != id);
                if state.remembered.len() < before {
                    self.bus.publish(SpanId::RUN, EventKind::ApprovalWithdrawn { id, by });
                }
            }
            other => return Some(other),
        }
        None
    }

    /// The answer of somebody, if it is one to an open question. This is the one place that decides whether
    /// it came in time: by the time at which it was accepted. After the deadline `otherwise` has happened,
    /// and a warning says so to the sender. An answer after another one has no effect: the log has the one that counts.
    fn answer(&self, mut answered: QuestionAnswered) {
        let state = self.lock();
        let id = answered.id;
        let Some(open) = state.open.get(&id) else {
            let overdue = state.overdue.get(&id).cloned().filter(|_| state.live);
            drop(state);
            if let Some(asked) = overdue {
                self.refuse(id, &late_text(&asked));
            }
            return;
        };
        // A recorded answer has its time already, if it has one.
        if state.live {
            let due = open.asked.due_ms;
            answered.at_ms = due.map(|_| answered.at_ms.unwrap_or_else(|| self.wall_ms()));
        }
        let is_late = answered.at_ms.is_some_and(|at_ms| open.asked.is_late(at_ms));
        if is_late && answered.by != AnsweredBy::Nobody {
            let asked = Arc::clone(&open.asked);
            drop(state);
            self.nobody_answers(&asked);
            return self.refuse(id, &late_text(&asked));
        }
        let wrong = match open.asked.digest == answered.digest {
            false => Err("its digest is that of another question".to_owned()),
            true if answered.is_approval_by_nobody() => Err("nobody approves a call".to_owned()),
            true if answered.by == AnsweredBy::Nobody => match open.asked.subject {
                Subject::InDoubt { .. } | Subject::Budget(_) if answered.answer != Answer::Stop => {
                    Err("nobody repeats a call or extends a budget".to_owned())
                }
                // It comes from `otherwise`, and is not checked.
                _ => Ok(()),
            },
            // A recorded answer was checked by the rules of its time.
            true if !state.live => open.asked.subject.check_form(&answered.answer),
            true => self.check(&open.asked, &answered.answer),
        };
        drop(state);
        match wrong {
            Ok(()) => self.settle_with(answered),
            Err(why) => self.refuse(id, &why),
        }
    }

    /// Says that an answer has no effect.
    fn refuse(&self, id: QuestionId, why: &str) {
        let text = format!("an answer to {id} was refused: {why}");
        self.bus.publish(SpanId::RUN, EventKind::Warning { text });
    }

    /// Whether a question takes an answer, and the rules allow what it approves.
    pub(super) fn check(&self, asked: &QuestionAsked, answer: &Answer) -> Result<(), String> {
        asked.subject.check(answer)?;
        let (Subject::ToolCall { tool, .. }, Answer::Approve { args: Some(args) }) =
            (&asked.subject, answer)
        else {
            return Ok(());
        };
        let agent = asked.by.as_deref().unwrap_or_default();
        let shown = self.shown_to_rules(agent, args);
        let call = CallToDecide::by_rules(tool, agent);
        match self.scenario.people.decide(call, &shown, Ok(())).0 {
            CallDecision::Denied(rule) => {
                Err(format!("the rule {rule:?} does not allow these arguments"))
            }
            _ => Ok(()),
        }
    }

    /// What the conditions of approvals can read.
    fn shown_to_rules(&self, agent: &str, args: &Value) -> CelBindings {
        let mut shown = CelBindings::default();
        shown.bind("args", args);
        shown.bind("agent", &agent.into());
        shown.bind("flags", &json!(self.control.flags()));
        shown
    }

    fn settle(&self, id: QuestionId, by: AnsweredBy, answer: Answer) {
        let (digest, due_ms) = match self.lock().open.get(&id) {
            Some(open) => (Arc::clone(&open.asked.digest), open.asked.due_ms),
            None => return,
        };
        let at_ms = due_ms.map(|_| self.wall_ms());
        self.settle_with(QuestionAnswered {
            at_ms,
            ..QuestionAnswered::new(id, digest, by, answer)
        });
    }

    /// Publishes the answer and gives it to the branch that waits.
    fn settle_with(&self, mut answered: QuestionAnswered) {
        answered.stood_ms = self.control.stood_for_people();
        let mut state = self.lock();
        let Some(OpenQuestion { span, asked, answer }) = state.open.remove(&answered.id) else {
            return;
        };
        answered.remember = answered.remember
            && answered.answer == (Answer::Approve { args: None })
            && is_rememberable(&asked.subject);
        if let (true, Subject::ToolCall { tool, definition, .. }) =
            (answered.remember, &asked.subject)
        {
            let (agent, tool) = (asked.by.clone(), tool.clone());
            let definition = Arc::clone(definition);
            state.remembered.push(Remembered { id: asked.id, agent, tool, definition });
        }
        if answered.is_overdue(&asked) {
            state.overdue.insert(asked.id, Arc::clone(&asked));
            if state.overdue.len() > MAX_OPEN_QUESTIONS {
                state.overdue.pop_first();
            }
        }
        let answered = Arc::new(answered);
        self.bus.publish(span, EventKind::QuestionAnswered(Arc::clone(&answered)));
        self.end_pause(&mut state, answered.id);
        drop(state);
        if answered.answer == Answer::Stop {
            self.control.stop(StopReason::NoAnswer(asked.who.clone()));
        }
        // The branch may be gone.
        let _ = answer.send(Ended { asked, answered });
    }

    /// Withdraws a question that is open.
    pub(crate) fn withdraw(&self, id: QuestionId, why: Withdrawal) {
        let mut state = self.lock();
        if let Some(open) = state.open.remove(&id) {
            self.bus.publish(open.span, EventKind::QuestionWithdrawn { id, why });
        }
        self.end_pause(&mut state, id);
    }

    /// Pauses the run for a question that nobody has answered in time, unless an answer of another thread
    /// was first.
    fn pause_for(&self, id: QuestionId) {
        let mut state = self.lock();
        if state.open.contains_key(&id) && state.paused_for.insert(id) {
            self.control.command(Command::Pause { by: Initiator::Question });
        }
    }

    /// Ends the pause for questions that nobody has answered in time, if this was the last of them. The
    /// caller has the lock, so that a pause and its end are in the order of the answers.
    fn end_pause(&self, state: &mut QuestionsState, id: QuestionId) {
        if state.paused_for.remove(&id) && state.paused_for.is_empty() {
            self.control.command(Command::Resume { by: Initiator::Question });
        }
    }

    /// Once the run is live: answers a question by the script, or because nobody has. Returns only if
    /// the question is not open.
    async fn answer_when_live(&self, id: QuestionId, question: &Question) {
        loop {
            let changed = self.changed.notified();
            let (live, mode) = {
                let state = self.lock();
                (state.live, state.mode.clone())
            };
            let answers = async {
                match live {
                    true if self.has_changed(id, question) => {
                        self.withdraw(id, Withdrawal::Changed);
                    }
                    true => self.answer_in_mode(id, question.span, &mode).await,
                    false => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = answers => return,
                () = changed => {}
            }
        }
    }

    /// Whether an open question of a recording is about something that has changed since.
    fn has_changed(&self, id: QuestionId, question: &Question) -> bool {
        self.lock().open.get(&id).is_some_and(|open| !question.is_asked_by(&open.asked))
    }

    async fn answer_in_mode(&self, id: QuestionId, span: SpanId, mode: &PeopleMode) {
        let Some((asked, nth)) = self.open_question(id) else { return };
        match mode {
            PeopleMode::Nobody => self.nobody_answers(&asked),
            PeopleMode::Recorded(answers) => match self.recorded_answer(answers, &asked) {
                // Only an edited log has an answer that the question does not take.
                Some(recorded)
                    if recorded.by == AnsweredBy::Nobody
                        || self.check(&asked, &recorded.answer).is_ok() =>
                {
                    let (digest, by) = (Arc::clone(&asked.digest), recorded.by.clone());
                    self.settle_with(QuestionAnswered {
                        remember: recorded.remember,
                        at_ms: asked.due_ms.map(|_| self.wall_ms()),
                        ..QuestionAnswered::new(id, digest, by, recorded.answer.clone())
                    });
                }
                _ => self.nobody_answers(&asked),
            },
            PeopleMode::Script => {
                let warn = |text| {
                    self.bus.publish(span, EventKind::Warning { text });
                };
                match self.scripted_answer(&asked, nth, warn) {
                    Some((wait, answer)) => {
                        // A script is played by the clock of the run, so that it is the same each time.
                        let left = asked.due_ms.map(|due_ms| self.left_until(due_ms));
                        let left = left.filter(|left| *left < wait);
                        self.bus.clock().sleep(left.unwrap_or(wait)).await;
                        match left {
                            Some(_) => self.nobody_answers(&asked),
                            None => self.settle(id, AnsweredBy::Script, answer),
                        }
                    }
                    None => self.nobody_answers(&asked),
                }
            }
            PeopleMode::Wait | PeopleMode::Ask => {
                if let Some(due_ms) = asked.due_ms {
                    self.until_due(due_ms).await;
                    self.nobody_answers(&asked);
                }
            }
        }
        pending().await
    }

    /// Waits for a deadline, then for the answers that were stored before it.
    async fn until_due(&self, due_ms: u64) {
        loop {
            let left = self.left_until(due_ms);
            if left.is_zero() {
                break;
            }
            self.bus.clock().sleep(left.min(CLOCK_CHECK)).await;
        }
        if let Some(stored) = self.stored.get() {
            stored.deliver().await;
        }
    }

    fn left_until(&self, due_ms: u64) -> Duration {
        Duration::from_millis(due_ms.saturating_sub(self.wall_ms()))
    }

    /// The next answer of a recorded run to such a question that was not used yet.
    fn recorded_answer<'a>(
        &self,
        answers: &'a [Arc<QuestionAnswered>],
        asked: &QuestionAsked,
    ) -> Option<&'a QuestionAnswered> {
        let mut state = self.lock();
        let used = state.used.entry(Arc::clone(&asked.digest)).or_default();
        let mut same = answers.iter().filter(|answered| answered.digest == asked.digest);
        let next = same.nth(*used);
        *used += usize::from(next.is_some());
        next.map(|answered| &**answered)
    }

    /// An open question, and how often its person was asked so far.
    pub(super) fn open_question(&self, id: QuestionId) -> Option<(Arc<QuestionAsked>, u32)> {
        let state = self.lock();
        let asked = Arc::clone(&state.open.get(&id)?.asked);
        let nth = state.asked_of.get(&asked.who).copied().unwrap_or_default();
        Some((asked, nth))
    }

    /// What the question says for the case that nobody answers.
    fn nobody_answers(&self, asked: &QuestionAsked) {
        let answer = match &asked.otherwise {
            Otherwise::Deny if asked.subject.can_be_denied() => {
                Answer::Deny { text: Arc::default() }
            }
            Otherwise::Deny | Otherwise::Stop => Answer::Stop,
            Otherwise::Answer(text) => fixed_answer(&asked.subject, text),
            // The question stays open.
            Otherwise::Pause if self.lock().mode.are_people() => return self.pause_for(asked.id),
            Otherwise::Pause => Answer::Stop,
        };
        self.settle(asked.id, AnsweredBy::Nobody, answer);
    }
}

/// Whether an approval of this may be remembered for the run.
pub fn is_rememberable(subject: &Subject) -> bool {
    // A held call of a guarded program has no definition: its approval is for this call alone.
    matches!(subject, Subject::ToolCall { effects, definition, .. }
        if *effects != Effects::Irreversible && !definition.is_empty())
}

/// The fixed answer of a file to a question: one of its choices, or a text, which an agent reads whatever
/// its choices are. No timeout repeats a call in doubt or spends more than a budget: the run stops.
pub(crate) fn fixed_answer(subject: &Subject, text: &Arc<str>) -> Answer {
    if matches!(subject, Subject::InDoubt { .. } | Subject::Budget(_)) {
        return Answer::Stop;
    }
    let is_turn = matches!(subject, Subject::Turn { .. });
    match subject.choices().contains(text) && !is_turn {
        true => Answer::Choose { choice: Arc::clone(text), text: Arc::default() },
        false => {
            let answer = Answer::Text { text: Arc::clone(text) };
            let is_read = matches!(subject, Subject::Agent { .. });
            if is_read || subject.check(&answer).is_ok() { answer } else { Answer::Stop }
        }
    }
}

impl RunContext {
    /// The questions of the run.
    pub fn questions(&self) -> &Arc<Questions> {
        &self.questions
    }

    /// Who is asked if a question is for this person, with the person's defaults.
    pub(crate) fn asking(&self, who: &PersonName, otherwise: Otherwise) -> Asking {
        let person = self.questions.scenario.people.named.get(who);
        Asking {
            who: who.clone(),
            timeout: person.and_then(|person| person.timeout),
            otherwise: person.and_then(|person| person.otherwise.clone()).unwrap_or(otherwise),
        }
    }
}
