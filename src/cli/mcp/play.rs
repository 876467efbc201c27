//! The runs of the server. Each has its own task, so a run continues when its client stops waiting.
//!
//! A client can put a question to its user. With an older version of the protocol, the server sends it a
//! request. With a newer one, it gets a result that asks for input, and calls again with the answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolResponse, CallToolResult, ElicitRequest, ElicitResult, ElicitationAction, InputRequest,
    InputRequiredResult, InputResponses, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{RequestContext, RoleServer, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

use super::McpArgs;
use super::tools::{
    AnswerQuestionArgs, PeopleWord, RunScenarioArgs, form, form_answer, refused, text_block,
};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::time::duration_text;
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::cli::args::FlagArg;
use crate::cli::launch::{prepare_session, sources_named, text_override};
use crate::cli::people::{PeopleArg, QuestionContext, parse_answer, person_at};
use crate::cli::run::RunArgs;
use crate::cli::stdio::{MAX_PLAYED, ServiceEnd, StdioService};
use crate::cli::steer::{RunLink, SteeredRun, explained};
use crate::cli::streams::StreamStyle;
use crate::engine::{Engine, Launch, RunHandle};
use crate::host::run_store::row_of_log;
use crate::host::{catalogue, program_log};
use crate::log::event::{
    Command, EventKind, QuestionAsked, QuestionId, RunId, StopReason, Subject, World,
};
use crate::log::world::run_row::{RunRow, RunStatus};
use crate::log::world::{Outcome, SessionOutcome};
use crate::scenario::catalogue::ScenarioEntry;
use crate::scenario::read::closest_name;
use crate::scenario::{STDIN, ScenarioSource};
use crate::screen::theme::Theme;
use crate::store::database::Database;
use crate::words::closing::closing;
use crate::words::verdict::stop_lead;
use crate::words::{format, headless};

/// Maximum number of ended sessions that are kept, with their results, for later calls of the client.
const MAX_ENDED: usize = 32;

/// Most times that the user of the client is asked one question, if the answers cannot be taken.
const MAX_ASKED: u32 = 3;

/// Most runs that the server lists as its own.
const MAX_OWN: usize = 10_000;

/// Least time between two notes of progress.
const GAP: Duration = Duration::from_millis(250);

/// Timeout of a note of progress. A client that does not read loses it.
const NOTE: Duration = Duration::from_secs(1);

/// Events read at a time.
const BATCH: usize = 256;

/// Length limit of a note of progress, in characters.
const NOTE_CHARS: usize = 300;

/// What the tools of a server share.
pub struct ServerState {
    pub args: McpArgs,
    pub engine: Engine,
    /// The kept runs; `None`: runs are not kept.
    pub database: Option<Database>,
    ended: watch::Receiver<Option<ServiceEnd>>,
    /// The runs that this server has started, the first one first.
    own: Mutex<Vec<RunRow>>,
    sessions: Mutex<Sessions>,
}

#[derive(Default)]
struct Sessions {
    started: u64,
    all: BTreeMap<u64, Arc<ServedSession>>,
}

/// A run, or the runs of a session one after the other.
pub struct ServedSession {
    number: u64,
    progress: watch::Sender<SessionProgress>,
    cancelled: watch::Sender<bool>,
    /// The questions that the user of the client has been asked.
    elicited: Mutex<BTreeMap<(RunId, QuestionId), AskedUser>>,
}

/// A question that the user of the client has been asked.
#[derive(Default)]
struct AskedUser {
    count: u32,
    /// Why the last answer could not be taken, so that it is asked again.
    refused: Option<String>,
}

/// How far a session is.
#[derive(Clone, Default)]
struct SessionProgress {
    /// How many lines headless text would have, and the last one.
    lines: u64,
    line: String,
    run: Option<RunId>,
    open: BTreeMap<QuestionId, (Arc<QuestionAsked>, QuestionContext)>,
    result: Option<Arc<CallToolResult>>,
}

/// How the user of a client is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UserAsking {
    No,
    /// By a request of the server.
    Request,
    /// By a result that asks for input.
    Result,
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ServerState {
    /// The state of a server.
    ///
    /// # Errors
    /// A scenario of the command line cannot be read, or two have one name.
    pub fn new(args: McpArgs, service: &StdioService) -> Result<Self, Refused> {
        if args.scenarios.iter().any(|what| what == STDIN) {
            let why = Refused::new("-: standard input has the messages of the client");
            return Err(why.help("give the scenario as a file"));
        }
        let state = Self {
            args,
            engine: service.engine.clone(),
            database: service.stored.kept().database().cloned(),
            ended: service.ended.clone(),
            own: Mutex::default(),
            sessions: Mutex::default(),
        };
        let mut names = BTreeSet::new();
        for entry in state.entries()? {
            if !names.insert(entry.name.clone()) {
                let why = Refused::new(format!("two scenarios have the name {}", entry.name));
                return Err(why.help("rename one of the files"));
            }
        }
        Ok(state)
    }

    /// Does what blocks.
    pub async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, Refused> + Send + 'static,
    ) -> Result<T, Refused> {
        let state = Arc::clone(self);
        let done = spawn_blocking(move || work(&state)).await;
        done.or_refuse("a bug in roundtable: the log has the details")?
    }

    /// The scenarios that are offered, as their files are now. Blocks.
    ///
    /// # Errors
    /// One that the command line names cannot be read.
    pub fn entries(&self) -> Result<Vec<ScenarioEntry>, Refused> {
        if self.args.scenarios.is_empty() {
            return Ok(catalogue::read());
        }
        let mut entries = Vec::new();
        for (at, what) in self.args.scenarios.iter().enumerate() {
            let before = self.args.scenarios.get(..at).unwrap_or_default();
            for source in sources_named(what, before) {
                let source = source?;
                entries.push(catalogue::entry(source.origin.to_string(), source));
            }
        }
        Ok(entries)
    }

    /// The scenario of this name. A client names one of the list, never a file.
    fn entry(&self, name: &str) -> Result<ScenarioEntry, Refused> {
        let mut entries = self.entries()?;
        if let Some(at) = entries.iter().position(|entry| entry.name.as_str() == name) {
            return Ok(entries.swap_remove(at));
        }
        let why =
            Refused::new(format!("no scenario {} is offered", visible_within(name, REASON_CHARS)));
        if name.contains(['/', '\\']) || name.ends_with(".toml") {
            return Err(why.help(
                "give a name of list_scenarios; only the operator names files, as in \
                 `roundtable mcp FILE`",
            ));
        }
        let close = closest_name(name, entries.iter().map(|entry| entry.name.as_str()));
        let close = close.map(|name| format!(" (did you mean {name}?)")).unwrap_or_default();
        Err(why.help(format!("list_scenarios has the names{close}")))
    }

    /// The launches of a session, ready to start. Blocks.
    fn prepare(&self, args: &RunScenarioArgs) -> Result<Vec<(Arc<str>, Launch)>, Refused> {
        let entry = self.entry(&args.scenario)?;
        if args.live && !self.args.allow_live {
            let why = Refused::new("live runs are not allowed");
            return Err(why.help(
                "leave out live, or the operator starts the server with \
                 `roundtable mcp --allow-live`",
            ));
        }
        if args.model.is_some() && !args.live {
            return Err(Refused::new("a model needs live: true"));
        }
        let people = self.people(args)?;
        let run = run_args(&entry, args, people)?;
        let source = ScenarioSource { text: entry.text.to_string(), origin: entry.origin.clone() };
        prepare_session(source, &run)
    }

    /// Who answers the questions of a run.
    fn people(&self, args: &RunScenarioArgs) -> Result<PeopleArg, Refused> {
        Ok(match args.people {
            Some(PeopleWord::Wait) if !self.args.allow_answers => {
                let why = Refused::new("people: nobody could answer");
                return Err(why.help(
                    "leave it out, or the operator starts the server with \
                     `roundtable mcp --allow-answers`",
                ));
            }
            Some(PeopleWord::Wait) => PeopleArg::Wait,
            Some(PeopleWord::Nobody) => PeopleArg::Nobody,
            Some(PeopleWord::Script) => PeopleArg::Script,
            None if !args.live => PeopleArg::Script,
            None if self.args.allow_answers => PeopleArg::Wait,
            None => PeopleArg::Nobody,
        })
    }

    /// Starts a session.
    ///
    /// # Errors
    /// It is not offered or not allowed, or too many are played.
    pub async fn start_session(
        self: &Arc<Self>,
        args: RunScenarioArgs,
    ) -> Result<Arc<ServedSession>, Refused> {
        let session = self.new_session()?;
        match self.blocking(move |state| state.prepare(&args)).await {
            Ok(turns) => {
                let (state, played) = (Arc::clone(self), Arc::clone(&session));
                tokio::spawn(async move {
                    let result = state.play(&played, turns).await;
                    played.end(result);
                });
                Ok(session)
            }
            Err(why) => {
                lock(&self.sessions).all.remove(&session.number);
                Err(why)
            }
        }
    }

    /// A place among the sessions.
    fn new_session(&self) -> Result<Arc<ServedSession>, Refused> {
        let mut sessions = lock(&self.sessions);
        let (ended, played): (Vec<_>, Vec<_>) =
            sessions.all.iter().map(|(number, it)| (*number, it.has_ended())).partition(|it| it.1);
        if played.len() >= MAX_PLAYED {
            let why = Refused::new(format!("{MAX_PLAYED} runs are played already"));
            return Err(why.help("call again when one of them has ended"));
        }
        let over = ended.len().saturating_sub(MAX_ENDED);
        for (number, _) in ended.into_iter().take(over) {
            sessions.all.remove(&number);
        }
        sessions.started += 1;
        let session = Arc::new(ServedSession {
            number: sessions.started,
            progress: watch::Sender::default(),
            cancelled: watch::Sender::default(),
            elicited: Mutex::default(),
        });
        sessions.all.insert(session.number, Arc::clone(&session));
        Ok(session)
    }

    /// The session that a client continues to wait for, after the answers of its user were taken.
    ///
    /// # Errors
    /// There is no such session any more.
    pub async fn continue_session(
        self: &Arc<Self>,
        id: &str,
        answers: Option<InputResponses>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<ServedSession>, Refused> {
        let number = id.parse().ok();
        let session = number.and_then(|number| lock(&self.sessions).all.get(&number).cloned());
        let session = session.ok_or_else(|| {
            Refused::new("the run has ended, and its result is not kept").help("read_run has it")
        })?;
        for (key, value) in answers.unwrap_or_default() {
            let Some((run, id)) = key.split_once('/') else { continue };
            let (Some(run), Ok(id)) = (self.own_run(run), id.parse()) else { continue };
            let given = serde_json::from_value(value).map_err(|error| error.to_string());
            self.take_elicited(&session, &run.id, id, given, context).await;
        }
        Ok(session)
    }

    /// Takes what the user of the client has said to a question. If nothing, it stays open. An answer that
    /// cannot be taken is requested again; after the last time the question is denied, if it can be.
    async fn take_elicited(
        &self,
        session: &ServedSession,
        run: &RunId,
        id: QuestionId,
        given: Result<ElicitResult, String>,
        context: &RequestContext<RoleServer>,
    ) {
        let taken = match given {
            Ok(given) if given.action != ElicitationAction::Accept => return,
            Ok(given) => self.answer_elicited(run, id, given, context).await,
            Err(why) => Err(why),
        };
        let Err(why) = taken else { return };
        tracing::info!(run = %run, "an answer of the client's user was refused: {why}");
        if session.may_ask_again(run, id, &why) {
            return;
        }
        let reason = format!("the answers of the client could not be taken: {why}");
        let denial = AnswerQuestionArgs {
            deny: Some(true),
            reason: Some(visible_within(&reason, REASON_CHARS)),
            ..AnswerQuestionArgs::default()
        };
        if let Err(why) = self.answer(run, id, None, &denial, context).await {
            tracing::info!(run = %run, "{id} stays open: {why:#}");
        }
    }

    async fn answer_elicited(
        &self,
        run: &RunId,
        id: QuestionId,
        given: ElicitResult,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), String> {
        let content = match given.content {
            Some(Value::Object(content)) => content,
            None | Some(Value::Null) => Map::new(),
            Some(_) => return Err("its content is no object".to_owned()),
        };
        let args = match self.open_question(run, id).as_deref().map(|asked| &asked.subject) {
            Some(Subject::Input { .. }) => {
                AnswerQuestionArgs { args: Some(content), ..AnswerQuestionArgs::default() }
            }
            _ => form_answer(&content),
        };
        let taken = self.answer(run, id, None, &args, context).await;
        taken.map(drop).map_err(|why| format!("{why:#}"))
    }

    /// `answer_question`.
    ///
    /// # Errors
    /// It is no answer, or the question is not open.
    pub async fn answer_question(
        &self,
        args: AnswerQuestionArgs,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, Refused> {
        let id = args.question.parse().map_err(Refused::new)?;
        let run = self.own_run(&args.run).ok_or_else(|| {
            Refused::new(format!("{} is no run of this server", args.run))
                .help("list_runs has them; `roundtable answer` answers others")
        })?;
        let how = self.answer(&run.id, id, args.digest.as_deref(), &args, context).await?;
        Ok(CallToolResult::success(vec![text_block(&format!("{} {id}: {how}", run.id))]))
    }

    async fn answer(
        &self,
        run: &RunId,
        id: QuestionId,
        digest: Option<&str>,
        args: &AnswerQuestionArgs,
        context: &RequestContext<RoleServer>,
    ) -> Result<String, Refused> {
        let given = parse_answer(&args.fields()?).map_err(Refused::new)?;
        let handle = self.engine.run(run).or_refuse(format_args!("{run} has ended"))?;
        let is_same = |asked: &QuestionAsked| digest.is_none_or(|digest| *digest == *asked.digest);
        if self.open_question(run, id).is_some_and(|asked| !is_same(&asked)) {
            return Err(Refused::new(format!("the digest is not that of {id}")));
        }
        let client = context.client_info().map(|client| client.name);
        let by = person_at("MCP", client.as_deref());
        let steered = SteeredRun::open(RunLink::Here(handle), run.clone()).await;
        let mut steered = match steered {
            Ok(steered) => steered,
            Err(why) => return Err(explained(why, run, Some(id)).await),
        };
        // An answer is taken at once by a run of this process.
        let how = steered.answer(id, given, by).await.map_err(|(why, _)| why)?;
        Ok(how.unwrap_or_else(|| "sent".to_owned()))
    }

    fn open_question(&self, run: &RunId, id: QuestionId) -> Option<Arc<QuestionAsked>> {
        let sessions: Vec<_> = lock(&self.sessions).all.values().cloned().collect();
        sessions.iter().find_map(|session| {
            let progress = session.progress.borrow();
            let asked = progress.open.get(&id).filter(|_| progress.run.as_ref() == Some(run));
            asked.map(|(asked, _)| Arc::clone(asked))
        })
    }

    /// A run that this server has started: by its id, the beginning of it, or last.
    pub fn own_run(&self, name: &str) -> Option<RunRow> {
        let own = lock(&self.own);
        let is_exact = |row: &&RunRow| row.id.as_str() == name;
        let mut fitting = own.iter().filter(|row| {
            let short = row.id.as_str().strip_prefix("r-").unwrap_or_default();
            !name.is_empty() && (row.id.as_str().starts_with(name) || short.starts_with(name))
        });
        if name == "last" {
            return own.last().cloned();
        }
        own.iter()
            .find(is_exact)
            .or_else(|| fitting.next().filter(|_| fitting.next().is_none()))
            .cloned()
    }

    /// The runs that this server has started, the latest first.
    pub fn own_runs(&self) -> Vec<RunRow> {
        lock(&self.own).iter().rev().cloned().collect()
    }

    async fn play(
        &self,
        session: &ServedSession,
        turns: Vec<(Arc<str>, Launch)>,
    ) -> CallToolResult {
        let messages = turns.len();
        let (mut outcomes, mut texts) = (Vec::<Outcome>::new(), Vec::new());
        let mut before: Option<RunHandle> = None;
        for (text, mut launch) in turns {
            launch.answer(text, before.as_ref());
            let run = self.engine.start(launch);
            let (world, warnings) = self.follow(&run, session).await;
            run.wait_until_finished().await;
            let Some(outcome) = world.outcome() else {
                return refused(&Refused::new(
                    "the run has no outcome; this is a bug in roundtable",
                ));
            };
            texts.push(text_of(&outcome, &world, &warnings));
            let is_cancelled = outcome.stop_reason == StopReason::Cancelled;
            outcomes.push(outcome);
            if is_cancelled {
                break;
            }
            before = Some(run);
        }
        let value = match (&outcomes[..], messages) {
            ([outcome], 1) => serde_json::to_value(outcome),
            _ => serde_json::to_value(SessionOutcome::new(outcomes, messages)),
        };
        let (value, left_out) = super::reading::bounded(value.unwrap_or_default());
        texts.extend(left_out);
        let mut result = CallToolResult::success(vec![text_block(&texts.join("\n"))]);
        result.structured_content = Some(value);
        result
    }

    /// Follows a run to its end. Returns its warnings too.
    async fn follow(&self, run: &RunHandle, session: &ServedSession) -> (World, Vec<String>) {
        let mut reader = run.first_reader();
        let (mut world, mut batch, mut warnings) = (World::new(), Vec::new(), Vec::new());
        let (mut cancelled, mut ended) = (session.cancelled.subscribe(), self.ended.clone());
        let style = StreamStyle::new(false, Theme::default(), false);
        let mut is_cancelled = false;
        let mut events = 0;
        loop {
            let stop = async {
                tokio::select! {
                    _ = cancelled.wait_for(|it| *it) => {}
                    _ = ended.wait_for(Option::is_some) => {}
                }
            };
            tokio::select! {
                came = reader.next_batch(&mut batch, BATCH) => match came {
                    0 => return (world, warnings),
                    _ => events += came,
                },
                () = stop, if !is_cancelled => {
                    is_cancelled = true;
                    run.send(Command::Cancel);
                    continue;
                }
            }
            let (mut lines, mut asked, mut closed) = (Vec::new(), Vec::new(), Vec::new());
            let came = batch.len();
            for event in batch.drain(..) {
                world.apply(&event);
                program_log::log_event(&event, &world);
                lines.extend(headless::lines(&event, &world));
                match &event.kind {
                    EventKind::Warning { text } => warnings.push(text.clone()),
                    EventKind::QuestionAsked(it) if !it.by_rule => {
                        asked.push((Arc::clone(it), QuestionContext::of(&world, it)));
                    }
                    EventKind::QuestionAnswered(it) => closed.push(it.id),
                    EventKind::QuestionWithdrawn { id, .. } => closed.push(*id),
                    _ => {}
                }
            }
            world.forget_old(came);
            session.progress.send_modify(|progress| {
                progress.run = Some(run.id().clone());
                progress.open.extend(asked.into_iter().map(|it| (it.0.id, it)));
                progress.open.retain(|id, _| !closed.contains(id));
                progress.lines += lines.len() as u64;
                if let Some(line) = lines.last() {
                    let line = style.line(line);
                    let words: Vec<&str> = line.split_whitespace().collect();
                    progress.line = visible_within(&words.join(" "), NOTE_CHARS);
                }
            });
            self.note_row(&world, events as u64, session);
        }
    }

    /// Lists a run as it is now.
    fn note_row(&self, world: &World, events: u64, session: &ServedSession) {
        let Some(head) = &world.head else { return };
        let mut row = row_of_log(head, &world.run, events);
        if !matches!(row.status, RunStatus::Ended(_)) {
            let progress = session.progress.borrow();
            row.waits_for = progress.open.values().map(|(asked, _)| asked.who.clone()).collect();
            row.status = RunStatus::Running;
        }
        let mut own = lock(&self.own);
        match own.iter_mut().rev().find(|known| known.id == row.id) {
            Some(known) => *known = row,
            None => own.push(row),
        }
        let over = own.len().saturating_sub(MAX_OWN);
        own.drain(..over);
    }

    /// Waits for the end of a session. Meanwhile notes of progress are sent, and the user of the client is
    /// asked its questions, if the operator allows answers. A cancelled request cancels the session.
    pub async fn attend(
        self: &Arc<Self>,
        session: &Arc<ServedSession>,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let (mut seen, mut ends) = (session.progress.subscribe(), session.progress.subscribe());
        let (token, asking) = (context.meta.get_progress_token(), self.asking(context));
        // They end with this request.
        let mut requests = JoinSet::new();
        let mut noted = 0;
        loop {
            let now = seen.borrow_and_update().clone();
            // At the end of the server nobody sends them any more.
            let is_new = now.lines > noted && self.ended.borrow().is_none();
            if let Some(token) = token.clone().filter(|_| is_new) {
                noted = now.lines;
                let note = ProgressNotificationParam::new(token, noted as f64);
                let sent = context.peer.notify_progress(note.with_message(now.line.clone()));
                let _ = timeout(NOTE, sent).await;
            }
            if let Some(result) = now.result {
                return CallToolResult::clone(&result).into();
            }
            let new = match asking {
                UserAsking::No => Vec::new(),
                _ => session.to_elicit(&now),
            };
            if asking == UserAsking::Result && !new.is_empty() {
                let forms = new.into_iter();
                let forms = forms.map(|(run, id, form)| {
                    (format!("{run}/{id}"), InputRequest::Elicitation(form))
                });
                let state = session.number.to_string();
                return InputRequiredResult::new(Some(forms.collect()), Some(state)).into();
            }
            for (run, id, form) in new {
                let (state, context) = (Arc::clone(self), context.clone());
                let session = Arc::clone(session);
                requests.spawn(async move {
                    let given = match context.peer.create_elicitation(form.params).await {
                        Ok(given) => Ok(given),
                        Err(ServiceError::UnexpectedResponse) => {
                            Err("it is no answer to a form".to_owned())
                        }
                        Err(error) => {
                            return tracing::info!("the client did not ask its user: {error}");
                        }
                    };
                    state.take_elicited(&session, &run, id, given, &context).await;
                });
            }
            let next = async {
                // At most a few notes a second; the end is not delayed.
                let _ = timeout(GAP, ends.wait_for(|it| it.result.is_some())).await;
                let _ = seen.changed().await;
            };
            tokio::select! {
                () = next => {}
                () = context.ct.cancelled() => {
                    session.cancelled.send_replace(true);
                    let _ = ends.wait_for(|it| it.result.is_some()).await;
                }
            }
        }
    }

    fn asking(&self, context: &RequestContext<RoleServer>) -> UserAsking {
        let capabilities = context.client_capabilities();
        let elicitation = capabilities.and_then(|it| it.elicitation);
        // Without any mode it is forms: the first version had nothing else.
        let has_forms = elicitation.is_some_and(|it| it.form.is_some() || it.url.is_none());
        let version = context.protocol_version();
        let is_new =
            version.is_some_and(|it| it.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        match (has_forms && self.args.allow_answers, is_new) {
            (false, _) => UserAsking::No,
            (true, true) => UserAsking::Result,
            (true, false) => UserAsking::Request,
        }
    }
}

impl ServedSession {
    fn has_ended(&self) -> bool {
        self.progress.borrow().result.is_some()
    }

    fn end(&self, result: CallToolResult) {
        self.progress.send_modify(|progress| {
            progress.open.clear();
            progress.result = Some(Arc::new(result));
        });
    }

    /// Forms for the open questions that the user was not asked yet.
    fn to_elicit(&self, now: &SessionProgress) -> Vec<(RunId, QuestionId, ElicitRequest)> {
        let Some(run) = &now.run else { return Vec::new() };
        let mut elicited = lock(&self.elicited);
        let mut new = Vec::new();
        for (id, (asked, context)) in &now.open {
            let user = elicited.entry((run.clone(), *id)).or_default();
            let refused = user.refused.take();
            if user.count == 0 || refused.is_some() {
                user.count += 1;
                let form = form(asked, context, refused.as_deref());
                new.extend(form.map(|form| (run.clone(), *id, ElicitRequest::new(form))));
            }
        }
        new
    }

    /// Notes that an answer could not be taken; whether the user is asked again.
    fn may_ask_again(&self, run: &RunId, id: QuestionId, why: &str) -> bool {
        let mut elicited = lock(&self.elicited);
        let user = elicited.entry((run.clone(), id)).or_default();
        let may = user.count < MAX_ASKED;
        if may {
            user.refused = Some(visible_within(why, REASON_CHARS));
        }
        drop(elicited);
        // Wakes the call that waits.
        self.progress.send_modify(|_| {});
        may
    }
}

/// The arguments of `roundtable run` for the same run.
fn run_args(
    entry: &ScenarioEntry,
    args: &RunScenarioArgs,
    people: PeopleArg,
) -> Result<RunArgs, Refused> {
    let scenario = entry.scenario();
    let takes_messages = scenario.is_some_and(|it| it.pattern.get().agents().is_some());
    let mut set = Vec::new();
    for (name, value) in &args.inputs {
        let inputs = scenario.map(|it| &it.inputs[..]).unwrap_or_default();
        let Some(input) = inputs.iter().find(|input| input.name.as_str() == name) else {
            let names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let name = visible_within(name, REASON_CHARS);
            let why = Refused::new(format!("inputs: there is no {name}"));
            return Err(why.help(format!("the scenario has: {known}")));
        };
        set.push(value.assignment(input));
    }
    let goal = args.goal.iter().filter(|_| !takes_messages);
    set.extend(goal.map(|goal| text_override("goal", goal)));
    let flags = args.flags.iter().map(|(name, value)| {
        let flag = FlagArg::parse(&format!("{name}={}", value.text()));
        flag.map_err(|why| Refused::new(format!("flags: {}", visible_within(&why, REASON_CHARS))))
    });
    Ok(RunArgs {
        scenario: entry.path.clone(),
        live: args.live,
        instant: args.instant && !args.live,
        model: args.model.clone(),
        set,
        flags: flags.collect::<Result<_, _>>()?,
        seed: args.seed,
        messages: args.goal.iter().filter(|_| takes_messages).cloned().collect(),
        people: Some(people),
        ..RunArgs::default()
    })
}

/// How a run ended, for a model or a person.
fn text_of(outcome: &Outcome, world: &World, warnings: &[String]) -> String {
    let closed = world.progress.closed.as_deref();
    let lead = closed.map(|closed| stop_lead(world, closed)).unwrap_or_default();
    let took = duration_text(Duration::from_millis(outcome.elapsed_ms));
    let cost = outcome
        .usage
        .cost_usd
        .map_or_else(String::new, |cost| format!(", {} (estimate)", format::usd(cost)));
    let (run, status, reason) = (&outcome.run_id, outcome.status, &outcome.stop_reason);
    let mut text = format!("{status}: {lead} ({reason}); run {run}, {took}{cost}\n");
    for warning in warnings {
        text.push_str(&format!("warning: {}\n", visible_within(warning, REASON_CHARS)));
    }
    text + &closing(outcome, world)
}
