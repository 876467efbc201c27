//! The sessions of the agent. Each prompt starts a run, which a task follows until it has ended, or until it
//! asks something that only the next prompt can answer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{AbortHandle, JoinSet, spawn_blocking};
use tokio::time::timeout;

use super::client::{AcpClient, lock};
use super::updates::{
    PermissionAnswer, RunUpdates, end_text, permission_answer, prompt_answer, prompt_question,
};
use super::wrong;
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::cli::headless::OpenQuestions;
use crate::cli::launch::{prepare_session, text_override};
use crate::cli::people::{PeopleArg, person_at};
use crate::cli::run::RunArgs;
use crate::cli::stdio::{MAX_PLAYED, StdioService};
use crate::engine::{Engine, Launch, RunHandle};
use crate::host::program_log;
use crate::log::bus::LogReader;
use crate::log::event::stop::StopClass;
use crate::log::event::{
    Answer, Command, Event, EventKind, QuestionAnswered, QuestionAsked, QuestionId, StopReason,
    World,
};
use crate::net::json_rpc::{REFUSED, RpcError};
use crate::scenario::{Scenario, ScenarioSource};

/// Most sessions that are kept. Then the one that was not used for the longest time is forgotten.
const MAX_SESSIONS: usize = 64;

/// Events read at a time.
const BATCH: usize = 256;

/// Timeout for a client that closes a question to say that it has cancelled the prompt.
const CANCEL_FOLLOWS: Duration = Duration::from_millis(500);

/// Timeout for a run to be stored before its prompt is answered.
const STORED: Duration = Duration::from_secs(5);

/// What each prompt runs.
pub struct PromptSource {
    args: RunArgs,
    /// A prompt is the next message of a conversation, not a new goal.
    takes_messages: bool,
    /// The fields of the scenario that a new goal replaces.
    goal: Vec<&'static str>,
}

impl PromptSource {
    pub fn new(args: RunArgs, scenario: &Scenario) -> Self {
        let spec = scenario.pattern.get();
        let takes_messages = spec.agents().is_some();
        let goal = if spec.cites() { vec!["goal", "research.question"] } else { vec!["goal"] };
        Self { args, takes_messages, goal }
    }

    /// The run that answers a prompt; an empty one stands for the goal of the scenario. Blocks.
    fn prepare(&self, prompt: &str) -> Result<(Arc<str>, Launch), Refused> {
        let source = ScenarioSource::find(&self.args.scenario).map_err(Refused::from)?;
        let mut args = self.args.clone();
        match prompt {
            "" => {}
            _ if self.takes_messages => args.messages = vec![prompt.to_owned()],
            _ => args.set.extend(self.goal.iter().map(|path| text_override(path, prompt))),
        }
        let first = prepare_session(source, &args)?.into_iter().next();
        first.ok_or_else(|| Refused::new("the scenario has no message"))
    }
}

/// A session of the client.
pub struct AcpSession {
    id: String,
    cancelled: watch::Sender<bool>,
    state: Mutex<SessionState>,
}

#[derive(Default)]
struct SessionState {
    /// A prompt is answered.
    is_busy: bool,
    /// When it was last used, as a number that grows with each use.
    used: u64,
    /// The run that answered the last message of the conversation.
    before: Option<RunHandle>,
    /// The run that waits for the next prompt.
    waiting: Option<Box<FollowedRun>>,
}

/// The sessions of one client.
pub struct AcpSessions {
    client: Arc<AcpClient>,
    engine: Engine,
    source: Arc<PromptSource>,
    places: Arc<Semaphore>,
    uses: AtomicU64,
    all: Mutex<BTreeMap<String, Arc<AcpSession>>>,
}

fn refused(why: &Refused) -> RpcError {
    RpcError::new(REFUSED, format!("{why:#}"))
}

impl AcpSessions {
    pub fn new(client: Arc<AcpClient>, service: &StdioService, source: PromptSource) -> Self {
        Self {
            client,
            engine: service.engine.clone(),
            source: Arc::new(source),
            places: Arc::new(Semaphore::new(MAX_PLAYED)),
            uses: AtomicU64::new(0),
            all: Mutex::default(),
        }
    }

    /// Opens a session, and returns its id.
    pub fn open(&self) -> String {
        let used = self.uses.fetch_add(1, Ordering::Relaxed);
        let id = format!("s{}", used + 1);
        let session = AcpSession {
            id: id.clone(),
            cancelled: watch::Sender::default(),
            state: Mutex::new(SessionState { used, ..SessionState::default() }),
        };
        let mut all = lock(&self.all);
        if all.len() >= MAX_SESSIONS {
            let idle = all.values().filter_map(|session| {
                let state = lock(&session.state);
                (!state.is_busy).then(|| (state.used, session.id.clone()))
            });
            if let Some((_, oldest)) = idle.min()
                && let Some(session) = all.remove(&oldest)
            {
                session.cancel();
            }
        }
        all.insert(id.clone(), Arc::new(session));
        id
    }

    fn get(&self, id: &str) -> Result<Arc<AcpSession>, RpcError> {
        let session = lock(&self.all).get(id).cloned();
        session.ok_or_else(|| wrong(format!("there is no session {id}")))
    }

    /// Cancels the run of a session, and forgets the session.
    ///
    /// # Errors
    /// There is no such session.
    pub fn close(&self, id: &str) -> Result<(), RpcError> {
        self.get(id)?.cancel();
        lock(&self.all).remove(id);
        Ok(())
    }

    /// Cancels the run of a session, if it has one.
    pub fn cancel(&self, id: &str) {
        if let Ok(session) = self.get(id) {
            session.cancel();
        }
    }

    /// The session that a prompt is for. It is busy until [`answer`](Self::answer) has ended.
    ///
    /// # Errors
    /// There is no such session, or it is busy.
    pub fn begin(&self, id: &str) -> Result<Arc<AcpSession>, RpcError> {
        let session = self.get(id)?;
        let mut state = lock(&session.state);
        if state.is_busy {
            return Err(RpcError::new(REFUSED, "the last prompt is still being answered"));
        }
        (state.is_busy, state.used) = (true, self.uses.fetch_add(1, Ordering::Relaxed));
        session.cancelled.send_replace(false);
        drop(state);
        Ok(session)
    }

    /// Answers a prompt, and returns the response to it.
    ///
    /// # Errors
    /// Why no run could be started.
    pub async fn answer(&self, session: &AcpSession, prompt: String) -> Result<Value, RpcError> {
        let reason = self.play(session, prompt).await;
        lock(&session.state).is_busy = false;
        Ok(json!({ "stopReason": reason? }))
    }

    async fn play(&self, session: &AcpSession, prompt: String) -> Result<&'static str, RpcError> {
        let turn = TurnOf { client: &self.client, session };
        let waiting = lock(&session.state).waiting.take();
        let (mut followed, answer) = match waiting {
            Some(followed) => (followed, Some(prompt)),
            None => (Box::new(self.start(session, prompt).await?), None),
        };
        if let Some(prompt) = answer {
            followed.read_what_came(&turn).await;
            match followed.take_prompt(&prompt, self.client.name().as_deref()) {
                Ok(()) => followed.repeat_question(&turn).await,
                Err(why) => turn.client.say(&session.id, &format!("{why}\n\n")).await,
            }
        }
        let has_ended = followed.follow(&turn).await;
        // The client may read the run from the store next.
        let _ = timeout(STORED, followed.run.bus().wait_until_stored()).await;
        if !has_ended {
            lock(&session.state).waiting = Some(followed);
            return Ok("end_turn");
        }
        let FollowedRun { run, world, mut shown, .. } = *followed;
        run.wait_until_finished().await;
        for update in shown.end(&world) {
            turn.client.update(&session.id, update).await;
        }
        let Some(outcome) = world.outcome() else {
            let why = "the run has no outcome; this is a bug in roundtable";
            return Err(RpcError::new(REFUSED, why));
        };
        turn.client.say(&session.id, &end_text(&outcome, &world)).await;
        // A run that was cancelled may have left nothing to the next message.
        if self.source.takes_messages && run.follow_up("").is_some() {
            lock(&session.state).before = Some(run);
        }
        Ok(match (&outcome.stop_reason, outcome.stop_reason.class()) {
            (StopReason::ApprovalDenied(_), _) => "refusal",
            (_, StopClass::Cancelled) => "cancelled",
            (_, StopClass::Budget) => "max_turn_requests",
            _ => "end_turn",
        })
    }

    /// Starts the run that answers a prompt.
    async fn start(&self, session: &AcpSession, prompt: String) -> Result<FollowedRun, RpcError> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            let why = Refused::new(format!("{MAX_PLAYED} runs are played already"));
            refused(&why.help("try again when one of them has ended"))
        })?;
        let source = Arc::clone(&self.source);
        let prepared = spawn_blocking(move || source.prepare(&prompt)).await;
        let prepared = prepared.or_refuse("a bug in roundtable: the log has the details");
        let (text, mut launch) = prepared.and_then(|it| it).map_err(|why| refused(&why))?;
        launch.answer(text, lock(&session.state).before.as_ref());
        let asks_user = self.source.args.people == Some(PeopleArg::Wait);
        Ok(FollowedRun::new(self.engine.start(launch), asks_user, place))
    }
}

impl AcpSession {
    fn cancel(&self) {
        let mut state = lock(&self.state);
        self.cancelled.send_replace(true);
        // Nobody follows a run that waits for the next prompt.
        if let Some(followed) = state.waiting.take() {
            followed.run.send(Command::Cancel);
        }
    }
}

/// Where a run is shown while a prompt is answered.
struct TurnOf<'a> {
    client: &'a Arc<AcpClient>,
    session: &'a AcpSession,
}

/// A run of a session, as far as its log was read.
struct FollowedRun {
    run: RunHandle,
    reader: LogReader,
    world: World,
    shown: RunUpdates,
    questions: OpenQuestions,
    /// What became of each question that was open.
    asked: BTreeMap<QuestionId, QuestionWay>,
    /// The user answers the questions.
    asks_user: bool,
    is_cancelled: bool,
    _place: OwnedSemaphorePermit,
}

/// How a question is answered.
enum QuestionWay {
    /// By the response to a request.
    Request(AbortHandle),
    /// By the next prompt.
    Prompt,
    /// Its answer is sent.
    Answered,
}

/// The response of the client to the question with this id.
type Responses = JoinSet<(QuestionId, Result<Value, RpcError>)>;

impl FollowedRun {
    fn new(run: RunHandle, asks_user: bool, place: OwnedSemaphorePermit) -> Self {
        Self {
            asks_user,
            reader: run.first_reader(),
            shown: RunUpdates::new(run.id().clone()),
            run,
            world: World::new(),
            questions: OpenQuestions::default(),
            asked: BTreeMap::new(),
            is_cancelled: false,
            _place: place,
        }
    }

    /// Follows the run to its end. `false`: it waits for the next prompt.
    async fn follow(&mut self, turn: &TurnOf<'_>) -> bool {
        let (mut batch, mut responses) = (Vec::new(), Responses::new());
        let mut cancelled = turn.session.cancelled.subscribe();
        loop {
            self.ask(turn, &mut responses).await;
            let waits = self.first_for_prompt().is_some();
            let is_asked = self.asked.values().any(|way| matches!(way, QuestionWay::Request(_)));
            let is_cancelled = self.is_cancelled || *turn.session.cancelled.borrow();
            if waits && !is_asked && !is_cancelled {
                return false;
            }
            let stop = async {
                tokio::select! {
                    _ = cancelled.wait_for(|it| *it) => {}
                    () = turn.client.ended() => {}
                }
            };
            tokio::select! {
                came = self.reader.next_batch(&mut batch, BATCH) => {
                    if came == 0 {
                        return true;
                    }
                    self.show(&mut batch, turn).await;
                }
                Some(response) = responses.join_next() => {
                    // A question that has ended meanwhile needs no response.
                    if let Ok((id, response)) = response {
                        self.on_response(id, response, turn).await;
                    }
                }
                () = stop, if !self.is_cancelled => {
                    self.is_cancelled = true;
                    self.run.send(Command::Cancel);
                }
            }
        }
    }

    /// Shows what happened while no prompt was answered.
    async fn read_what_came(&mut self, turn: &TurnOf<'_>) {
        let mut batch = Vec::new();
        while self.reader.take(&mut batch, BATCH) > 0 {
            self.show(&mut batch, turn).await;
        }
    }

    /// Applies events, and tells the client what they say.
    async fn show(&mut self, batch: &mut Vec<Arc<Event>>, turn: &TurnOf<'_>) {
        let (client, session, came) = (turn.client, &turn.session.id, batch.len());
        for event in batch.drain(..) {
            self.world.apply(&event);
            program_log::log_event(&event, &self.world);
            self.questions.follow(&event.kind, &self.world);
            if let EventKind::QuestionAnswered(_) | EventKind::QuestionWithdrawn { .. } = event.kind
            {
                let questions = &self.questions;
                self.asked.retain(|id, way| {
                    let is_open = questions.get(*id).is_ok();
                    if let (false, QuestionWay::Request(request)) = (is_open, &*way) {
                        request.abort();
                    }
                    is_open
                });
            }
            for update in self.shown.event(&event, &self.world) {
                client.update(session, update).await;
            }
            if let Some(thought) = self.shown.thought(&event, &self.world) {
                client.think(session, &thought).await;
            }
        }
        self.world.forget_old(came);
        if let Some(update) = self.shown.plan(&self.world) {
            client.update(session, update).await;
        }
    }

    /// Puts the questions that are new to the user.
    async fn ask(&mut self, turn: &TurnOf<'_>, responses: &mut Responses) {
        if !self.asks_user {
            return;
        }
        let open: Vec<QuestionId> = self.questions.open().iter().map(|asked| asked.id).collect();
        for id in open {
            let Ok(asked) = self.questions.get(id) else { continue };
            if self.asked.contains_key(&id) {
                continue;
            }
            let way = match self.shown.permission(&turn.session.id, &asked, &self.world) {
                Some(params) => {
                    let client = Arc::clone(turn.client);
                    QuestionWay::Request(responses.spawn(async move {
                        (id, client.request("session/request_permission", params).await)
                    }))
                }
                None => {
                    self.leave_to_prompt(&asked, turn).await;
                    QuestionWay::Prompt
                }
            };
            self.asked.insert(id, way);
        }
    }

    async fn leave_to_prompt(&self, asked: &QuestionAsked, turn: &TurnOf<'_>) {
        let context = self.questions.context_of(asked.id);
        let text = prompt_question(asked, &context, self.run.id());
        turn.client.say(&turn.session.id, &text).await;
    }

    /// Says the next question again that waits for a prompt.
    async fn repeat_question(&self, turn: &TurnOf<'_>) {
        if let Some(asked) = self.first_for_prompt().and_then(|id| self.questions.get(id).ok()) {
            self.leave_to_prompt(&asked, turn).await;
        }
    }

    fn first_for_prompt(&self) -> Option<QuestionId> {
        let mut asked = self.asked.iter();
        asked.find(|(_, way)| matches!(way, QuestionWay::Prompt)).map(|(id, _)| *id)
    }

    /// Takes what the user has chosen. A question without a choice stays open: nothing is answered for the
    /// user.
    async fn on_response(
        &mut self,
        id: QuestionId,
        response: Result<Value, RpcError>,
        turn: &TurnOf<'_>,
    ) {
        let Ok(asked) = self.questions.get(id) else { return };
        let chosen = match &response {
            Ok(response) => permission_answer(&asked.subject, response),
            Err(error) => {
                tracing::info!("the client did not ask its user: {error}");
                None
            }
        };
        match chosen {
            Some(PermissionAnswer { answer, remember }) => {
                self.send(&asked, answer, remember, turn.client.name().as_deref());
            }
            None => {
                // A client that cancels the prompt may say so of its questions first.
                let mut cancelled = turn.session.cancelled.subscribe();
                if timeout(CANCEL_FOLLOWS, cancelled.wait_for(|it| *it)).await.is_err() {
                    self.leave_to_prompt(&asked, turn).await;
                }
                self.asked.insert(id, QuestionWay::Prompt);
            }
        }
    }

    /// Takes a prompt as the answer to the first question that waits for one.
    fn take_prompt(&mut self, prompt: &str, client: Option<&str>) -> Result<(), String> {
        let id = self.first_for_prompt().ok_or(
            "The question has ended meanwhile, so the prompt is not used. Send it again for a new run.",
        )?;
        let asked = self.questions.get(id)?;
        let answer = prompt_answer(&asked.subject, prompt)
            .map_err(|why| format!("{}: {}", asked.id, visible_within(&why, REASON_CHARS * 4)))?;
        self.send(&asked, answer, false, client);
        Ok(())
    }

    fn send(
        &mut self,
        asked: &QuestionAsked,
        answer: Answer,
        remember: bool,
        client: Option<&str>,
    ) {
        let (id, digest) = (asked.id, Arc::clone(&asked.digest));
        let answered = QuestionAnswered::new(id, digest, person_at("ACP", client), answer);
        let answered = QuestionAnswered { remember, ..answered };
        self.run.send(Command::Answer(Box::new(answered)));
        self.asked.insert(id, QuestionWay::Answered);
    }
}
