//! `roundtable ctl`, `answer` and `attach`: steers a run that another process of this user plays, or a runner
//! of a cluster. Both get the commands of the dashboard, and both log them (`command.taken`) before they
//! take effect, so what became of a command is read from the log.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::cluster::{self, OnArgs};
use super::command_words::{CtlAction, check};
use super::exit::{Done, Exit};
use super::headless::OpenQuestions;
#[cfg(unix)]
use super::kept;
use super::people::{QuestionContext, parse_answer, question_lines};
use super::streams::{print, print_message, refuse};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::visible::{REASON_CHARS, visible, visible_within};
use crate::engine::RunHandle;
use crate::host;
#[cfg(unix)]
use crate::host::kept_runs::{events_before, find_run};
#[cfg(unix)]
use crate::host::peers::{Peer, PeerFolder, PeerLog, PeerNews, PeerRun};
use crate::log::bus::LogReader;
use crate::log::event::{
    Answer, AnsweredBy, Command, Event, EventKind, QuestionAnswered, QuestionAsked, QuestionId,
    RunId, Seq, Subject, World,
};
#[cfg(unix)]
use crate::log::world::run_row::RunStatus;
use crate::words::sentence::command_words;

/// Timeout for a command to be in the log of its run. After it the command is reported as sent.
const TAKEN: Duration = Duration::from_secs(10);

/// The run that a command steers. The arguments of `roundtable attach`.
#[derive(Debug, Clone, Args)]
pub struct AttachArgs {
    /// A run that another process plays: its id, or the beginning of it, or last; or a run of the cluster
    #[arg(value_name = "RUN")]
    pub run: String,
    /// The cluster that has the run; without it this machine, then the cluster of the configuration
    #[arg(long, value_name = "URL")]
    pub on: Option<String>,
}

/// Arguments of `roundtable ctl`.
#[derive(Debug, Clone, Args)]
pub struct CtlArgs {
    /// The run.
    #[command(flatten)]
    pub run: AttachArgs,
    /// What to do.
    #[command(subcommand)]
    pub action: CtlAction,
}

/// Arguments of `roundtable answer`.
#[derive(Debug, Clone, Args)]
pub struct AnswerArgs {
    /// The run.
    #[command(flatten)]
    pub run: AttachArgs,
    /// The question, such as q1; without it the open questions are printed
    #[arg(value_name = "ID")]
    pub id: Option<QuestionId>,
    /// Approve the call
    #[arg(long, group = "answer", requires = "id")]
    pub approve: bool,
    /// Deny the call; the model reads the reason
    #[arg(long, group = "answer", requires = "id", value_name = "WHY", num_args = 0..=1)]
    pub deny: Option<Option<String>>,
    /// Approve the call with the arguments of this JSON file
    #[arg(long, group = "answer", requires = "id", value_name = "FILE")]
    pub args: Option<PathBuf>,
    /// Choose one of the choices
    #[arg(long, group = "answer", requires = "id", value_name = "CHOICE")]
    pub choice: Option<String>,
    /// Answer with a text
    #[arg(long, group = "answer", requires = "id", value_name = "TEXT")]
    pub text: Option<String>,
    /// Any answer, as a line of `run --people ask` has it: {"hand_over_to": "billing", "text": "…"}
    #[arg(long, group = "answer", requires = "id", value_name = "OBJECT")]
    pub json: Option<String>,
}

/// Where a run is steered.
pub(super) enum RunLink {
    #[cfg(unix)]
    Process(Peer, PeerRun),
    Cluster(crate::cluster::Cluster),
    /// This process plays it.
    Here(RunHandle),
}

/// Follows its log.
enum SteeredLog {
    #[cfg(unix)]
    Process(PeerLog),
    Cluster(Box<crate::cluster::follow::LogFollower>),
    Here {
        reader: LogReader,
        run: RunHandle,
        is_up_to_date: bool,
    },
}

/// The next step of a follower.
enum LogStep {
    Events(Vec<Arc<Event>>),
    UpToDate,
    Ended,
}

impl RunLink {
    /// Finds a run: among those that other processes play, unless a cluster is named. `asked`: the question
    /// that is to be answered. On an error the message has been printed.
    pub(super) async fn find(
        args: &AttachArgs,
        asked: Option<QuestionId>,
    ) -> Result<(Self, RunId), Exit> {
        let name = &args.run;
        if let Some(url) = &args.on {
            return Self::of_cluster(name, Some(url.as_str())).await;
        }
        #[cfg(unix)]
        match find_peer(name).await {
            Ok(Some((peer, found))) => {
                let run = found.run.clone();
                return Ok((Self::Process(peer, found), run));
            }
            Ok(None) => {}
            Err(why) => return Err(refuse(&why, Exit::Usage)),
        }
        if cluster::configured_cluster().is_some() {
            return Self::of_cluster(name, None).await;
        }
        if let Some(why) = why_not_played(name, asked).await {
            return Err(refuse(&why, Exit::Stopped));
        }
        let what = format!("no process of this user plays {}", visible(name));
        Err(refuse(&Refused::new(what).help("`roundtable runs` lists the runs"), Exit::Usage))
    }

    async fn of_cluster(name: &str, url: Option<&str>) -> Result<(Self, RunId), Exit> {
        let on = OnArgs { on: url.map(str::to_owned) };
        let (address, run) = cluster::attached(name, &on)?;
        Ok((Self::Cluster(cluster::reach_run(&address, &run).await?), run))
    }

    async fn log(&self, run: &RunId) -> Result<SteeredLog, Refused> {
        match self {
            #[cfg(unix)]
            Self::Process(peer, _) => peer.follow(run).await.map(SteeredLog::Process),
            Self::Cluster(cluster) => Ok(SteeredLog::Cluster(Box::new(cluster.follow(run)))),
            Self::Here(run) => {
                let (reader, run) = (run.bus().reader(Seq(0)), run.clone());
                Ok(SteeredLog::Here { reader, run, is_up_to_date: false })
            }
        }
    }

    /// Sends a command; returns its number, as `command.taken` has it.
    async fn send(&self, run: &RunId, command: &Command) -> Result<u64, Refused> {
        match self {
            #[cfg(unix)]
            Self::Process(peer, _) => peer.send(run, command, &host::user_name()).await,
            Self::Cluster(cluster) => {
                cluster.send_command(run, command, &crate::cluster::names::user_name()).await
            }
            Self::Here(here) => {
                here.take_remote(command.clone(), &host::user_name()).map_err(Refused::new)
            }
        }
    }
}

impl SteeredLog {
    async fn next(&mut self) -> Result<LogStep, Refused> {
        match self {
            #[cfg(unix)]
            Self::Process(log) => loop {
                return Ok(match log.next().await? {
                    Some(PeerNews::Event(event)) => LogStep::Events(vec![event]),
                    Some(PeerNews::UpToDate) => LogStep::UpToDate,
                    Some(PeerNews::Text(..)) => continue,
                    None => LogStep::Ended,
                });
            },
            Self::Cluster(follower) => loop {
                use crate::cluster::entry::LogPart;
                use crate::cluster::follow::LogNews;
                use crate::log::event::Seq;

                let Some(news) = follower.news().await else { return Ok(LogStep::Ended) };
                return Ok(match news.or_refuse("the log cannot be read")? {
                    LogNews::Entry(entry) => match entry.part {
                        LogPart::Events(group) => LogStep::Events(
                            group.events(Seq(0)).or_refuse("the log cannot be read")?,
                        ),
                        _ => continue,
                    },
                    LogNews::UpToDate => LogStep::UpToDate,
                    LogNews::LinkLost | LogNews::LinkBack => continue,
                });
            },
            Self::Here { reader, run, is_up_to_date } => {
                let mut events = Vec::new();
                if reader.take(&mut events, usize::MAX) > 0 {
                    return Ok(LogStep::Events(events));
                }
                if !std::mem::replace(is_up_to_date, true) && !run.is_over() {
                    return Ok(LogStep::UpToDate);
                }
                match reader.next_batch(&mut events, usize::MAX).await {
                    0 => Ok(LogStep::Ended),
                    _ => Ok(LogStep::Events(events)),
                }
            }
        }
    }
}

/// The run of this name that another process plays: an id, the beginning of one, or `last`, where there is
/// one run.
#[cfg(unix)]
async fn find_peer(name: &str) -> Result<Option<(Peer, PeerRun)>, Refused> {
    let (runs, refused) = PeerFolder::open()?.runs().await;
    let fits = |run: &RunId| name == "last" || run.as_str().starts_with(name);
    let exact = runs.iter().position(|(_, found)| found.run.as_str() == name);
    let mut fitting: Vec<_> = match exact {
        Some(at) => vec![runs[at].clone()],
        None => runs.into_iter().filter(|(_, found)| fits(&found.run)).collect(),
    };
    match fitting.len() {
        0 => refused.map_or(Ok(None), Err),
        1 => Ok(fitting.pop()),
        _ => {
            let mut ids: Vec<&str> = fitting.iter().map(|(_, found)| found.run.as_str()).collect();
            ids.sort_unstable();
            Err(Refused::new(format!("{} is not one run: {}", visible(name), ids.join(", "))))
        }
    }
}

/// The reason in the store why a process does not answer; without one, the error itself.
pub(super) async fn explained(why: Refused, run: &RunId, asked: Option<QuestionId>) -> Refused {
    why_not_played(run.as_str(), asked).await.unwrap_or(why)
}

/// Why no process plays a kept run, or how the question has ended; `None`: no such run is kept.
#[cfg(unix)]
async fn why_not_played(name: &str, asked: Option<QuestionId>) -> Option<Refused> {
    let database = kept::open().ok()?;
    let row = find_run(&database, name).ok()?;
    let run = &row.id;
    if let Some(id) = asked {
        let mut questions = OpenQuestions::default();
        let events = events_before(&database, run, Seq(u64::MAX)).await;
        let world = World::new();
        events.iter().for_each(|event| questions.follow(&event.kind, &world));
        if let Some(how) = questions.end_of(id) {
            return Some(Refused::new(format!("{id} is not open any more: {}", visible(how))));
        }
    }
    Some(match &row.status {
        RunStatus::Ended(reason) => Refused::new(format!("{run} has ended: {}", visible(reason))),
        RunStatus::Interrupted => Refused::new(format!("{run} was interrupted"))
            .help(format!("`roundtable resume {run}` continues it")),
        RunStatus::Waiting | RunStatus::Running => {
            Refused::new(format!("the process that plays {run} cannot be reached"))
        }
    })
}

/// Runs are not kept.
#[cfg(not(unix))]
async fn why_not_played(_name: &str, _asked: Option<QuestionId>) -> Option<Refused> {
    None
}

/// How the warning of a run begins that it has refused an answer; the id of the question follows.
const REFUSED: &str = "an answer to ";

/// A run that a command steers, folded from its log.
pub(super) struct SteeredRun {
    link: RunLink,
    run: RunId,
    log: SteeredLog,
    world: World,
    questions: OpenQuestions,
    answers: TakenAnswers,
}

/// What became of the answers that a run has taken.
#[derive(Default)]
struct TakenAnswers {
    /// Those to open questions of which nothing has become yet, in the order in which they were taken.
    pending: BTreeMap<QuestionId, VecDeque<(u64, QuestionAnswered)>>,
    /// The number of the answer that counted, of each question that has ended; `None`: none of them did.
    counted: BTreeMap<QuestionId, Option<u64>>,
    /// Why answers were refused, by their numbers.
    refused: BTreeMap<u64, String>,
    /// The questions for the contribution of a seat: what became of the contribution, once that is known.
    seats: BTreeMap<QuestionId, (Subject, Option<SeatEnd>)>,
}

/// What became of the contribution of a person who has a seat.
enum SeatEnd {
    Accepted,
    /// It was refused, and this question asks for another one.
    Refused(String, QuestionId),
}

/// What became of an answer.
enum AnswerEnd {
    Counted,
    /// It was refused; this question is open.
    Refused(String, QuestionId),
    /// The question has ended without it.
    Late,
}

impl TakenAnswers {
    fn follow(&mut self, kind: &EventKind) {
        match kind {
            EventKind::CommandTaken { command, place, .. } => {
                if let Command::Answer(answered) = &**command
                    && !self.counted.contains_key(&answered.id)
                {
                    let answered = QuestionAnswered::clone(answered);
                    self.pending.entry(answered.id).or_default().push_back((*place, answered));
                }
            }
            EventKind::QuestionAsked(asked) if matches!(asked.subject, Subject::Seat { .. }) => {
                let before =
                    self.seats.values_mut().rfind(|(subject, _)| *subject == asked.subject);
                if let (Some(why), Some((_, end))) = (&asked.why, before) {
                    *end = Some(SeatEnd::Refused(why.to_string(), asked.id));
                }
                self.seats.insert(asked.id, (asked.subject.clone(), None));
            }
            // What the table does next is not to ask again.
            EventKind::Pattern(_) | EventKind::RunClosed(_) => {
                for (id, (_, end)) in &mut self.seats {
                    if self.counted.contains_key(id) {
                        end.get_or_insert(SeatEnd::Accepted);
                    }
                }
            }
            EventKind::QuestionAnswered(by) => {
                let pending = self.pending.remove(&by.id).unwrap_or_default();
                let is_it = |(_, taken): &&(u64, QuestionAnswered)| {
                    (&taken.by, &taken.answer) == (&by.by, &by.answer)
                };
                self.counted.insert(by.id, pending.iter().find(is_it).map(|(place, _)| *place));
            }
            EventKind::QuestionWithdrawn { id, .. } => {
                self.pending.remove(id);
                self.counted.insert(*id, None);
            }
            EventKind::Warning { text } => {
                // The answers to a question are judged in the order in which they were taken.
                let said =
                    text.strip_prefix(REFUSED).and_then(|rest| rest.split_once(" was refused: "));
                let said = said.and_then(|(id, why)| Some((id.parse::<QuestionId>().ok()?, why)));
                if let Some((id, why)) = said
                    && let Some((place, _)) =
                        self.pending.get_mut(&id).and_then(VecDeque::pop_front)
                {
                    self.refused.insert(place, why.to_owned());
                }
            }
            _ => {}
        }
    }

    /// What became of this answer to a question; `None`: nothing yet.
    fn end_of(&self, id: QuestionId, place: u64) -> Option<AnswerEnd> {
        if let Some(why) = self.refused.get(&place) {
            return Some(AnswerEnd::Refused(why.clone(), id));
        }
        if !self.is_counted(id, place)? {
            return Some(AnswerEnd::Late);
        }
        match self.seats.get(&id) {
            Some((_, None)) => None,
            Some((_, Some(SeatEnd::Refused(why, next)))) => {
                Some(AnswerEnd::Refused(why.clone(), *next))
            }
            Some((_, Some(SeatEnd::Accepted))) | None => Some(AnswerEnd::Counted),
        }
    }

    /// Whether the question has ended with this answer; `None`: it has not ended.
    fn is_counted(&self, id: QuestionId, place: u64) -> Option<bool> {
        self.counted.get(&id).map(|counted| *counted == Some(place))
    }
}

impl SteeredRun {
    /// Finds a run, and reads what has happened in it so far. On an error the message has been printed.
    async fn find(args: &AttachArgs, asked: Option<QuestionId>) -> Result<Self, Exit> {
        let (link, run) = RunLink::find(args, asked).await?;
        match Self::open(link, run.clone()).await {
            Ok(opened) => Ok(opened),
            Err(why) => Err(refuse(&explained(why, &run, asked).await, Exit::Stopped)),
        }
    }

    pub(super) async fn open(link: RunLink, run: RunId) -> Result<Self, Refused> {
        let log = link.log(&run).await?;
        let (world, questions) = (World::new(), OpenQuestions::default());
        let answers = TakenAnswers::default();
        let mut opened = Self { link, run, log, world, questions, answers };
        loop {
            match opened.next().await? {
                LogStep::Events(_) => {}
                LogStep::UpToDate => return Ok(opened),
                LogStep::Ended => {
                    return Err(Refused::new(format!("{} has ended", opened.run)));
                }
            }
        }
    }

    async fn next(&mut self) -> Result<LogStep, Refused> {
        let mut step = self.log.next().await?;
        if let LogStep::Events(events) = &mut step {
            #[cfg(unix)]
            if let Some(first) = events.first().map(|event| event.seq)
                && first > self.world.progress.next
                && let Ok(database) = kept::open()
            {
                // Its process has dropped them from memory.
                let before = events_before(&database, &self.run, first).await;
                events.splice(0..0, before);
            }
            for event in events {
                self.world.apply(event);
                self.questions.follow(&event.kind, &self.world);
                self.answers.follow(&event.kind);
            }
        }
        Ok(step)
    }

    /// Sends a command and waits until the run has taken it. Returns who sent it, as the log has it; `None`: it is
    /// sent, and the run has not taken it yet.
    async fn send(&mut self, command: &Command) -> Result<Option<String>, Refused> {
        let place = self.link.send(&self.run, command).await?;
        let taken = self.until(|_, event| match &event.kind {
            EventKind::CommandTaken { by, place: taken, .. } if *taken == place => Some(by.clone()),
            _ => None,
        });
        timeout(TAKEN, taken).await.map_or(Ok(None), |taken| taken.map(Some))
    }

    /// Reads the log until this is found.
    async fn until<T>(
        &mut self,
        mut found: impl FnMut(&TakenAnswers, &Event) -> Option<T>,
    ) -> Result<T, Refused> {
        loop {
            let events = match self.next().await? {
                LogStep::Events(events) => events,
                LogStep::UpToDate => continue,
                LogStep::Ended => return Err(Refused::new(format!("{} has ended", self.run))),
            };
            if let Some(found) = events.iter().find_map(|event| found(&self.answers, event)) {
                return Ok(found);
            }
        }
    }

    /// Answers a question, and returns how it ended. `None`: the answer is sent, and the run has not taken it
    /// yet.
    pub(super) async fn answer(
        &mut self,
        id: QuestionId,
        answer: Answer,
        by: AnsweredBy,
    ) -> Result<Option<String>, (Refused, Exit)> {
        let asked = self.questions.get(id);
        let asked = asked.map_err(|why| (Refused::new(visible(&why)), Exit::Stopped))?;
        if let Err(why) = asked.subject.check(&answer) {
            return Err((Refused::new(format!("{id}: {}", visible(&why))), Exit::Usage));
        }
        let answered = QuestionAnswered::new(id, Arc::clone(&asked.digest), by, answer);
        let command = Command::Answer(Box::new(answered));
        let place = match self.link.send(&self.run, &command).await {
            Ok(place) => place,
            Err(why) => return Err((explained(why, &self.run, Some(id)).await, Exit::Stopped)),
        };
        let ended = match timeout(TAKEN, self.until(|taken, _| taken.end_of(id, place))).await {
            Ok(Ok(ended)) => ended,
            // It may have taken the answer and ended before its log was read to the end.
            Ok(Err(why)) => match self.stored_end_of(id, place).await {
                Some(ended) => ended,
                None => return Err((explained(why, &self.run, Some(id)).await, Exit::Stopped)),
            },
            Err(_) if self.answers.is_counted(id, place) == Some(true) => AnswerEnd::Counted,
            Err(_) => return Ok(None),
        };
        let how = visible(self.questions.end_of(id).unwrap_or_default());
        match ended {
            AnswerEnd::Counted => Ok(Some(how.into_owned())),
            AnswerEnd::Refused(why, open) => {
                let why = format!("the answer to {id} was refused: {}", visible(&why));
                let help = format!("{open} is open: answer it again");
                Err((Refused::new(why).help(help), Exit::Stopped))
            }
            AnswerEnd::Late => {
                Err((Refused::new(format!("{id} is not open any more: {how}")), Exit::Stopped))
            }
        }
    }

    /// What became of an answer, by the log in the store.
    #[cfg(unix)]
    async fn stored_end_of(&mut self, id: QuestionId, place: u64) -> Option<AnswerEnd> {
        let events = events_before(&kept::open().ok()?, &self.run, Seq(u64::MAX)).await;
        (self.questions, self.answers) = Default::default();
        for event in &events {
            self.questions.follow(&event.kind, &self.world);
            self.answers.follow(&event.kind);
        }
        self.answers.end_of(id, place)
    }

    /// Runs are not kept.
    #[cfg(not(unix))]
    async fn stored_end_of(&mut self, _: QuestionId, _: u64) -> Option<AnswerEnd> {
        None
    }
}

/// Runs `roundtable ctl`.
pub async fn ctl(args: CtlArgs) -> Done {
    let mut run = SteeredRun::find(&args.run, None).await?;
    let command = args.action.command();
    if let Err(why) = check(&command, &run.world) {
        return Err(refuse(&Refused::new(format!("{}: {}", run.run, visible(&why))), Exit::Usage));
    }
    Ok(match run.send(&command).await {
        Ok(Some(by)) => {
            let by = visible_within(&by, REASON_CHARS);
            print(&format!("{}: {by} {}\n", run.run, visible(&command_words(&command))), Exit::Ok)
        }
        Ok(None) => not_taken(&run.run),
        Err(why) => refuse(&explained(why, &run.run, None).await, Exit::Stopped),
    })
}

/// A runner may take the run later.
fn not_taken(run: &RunId) -> Exit {
    print_message(&format!("sent; {run} takes it when a runner plays it"));
    Exit::Ok
}

/// Runs `roundtable answer`.
pub async fn answer(args: AnswerArgs) -> Done {
    let given = given_answer(&args).map_err(|why| refuse(&why, Exit::Usage))?;
    let mut run = SteeredRun::find(&args.run, args.id).await?;
    let (Some(id), Some(given)) = (args.id, given) else { return Ok(print_open(&run, args.id)) };
    Ok(match run.answer(id, given, host::this_person()).await {
        Ok(Some(how)) => print(&format!("{} {id}: {how}\n", run.run), Exit::Ok),
        Ok(None) => not_taken(&run.run),
        Err((why, exit)) => refuse(&why, exit),
    })
}

/// The answer of the command line; `None`: it has none.
fn given_answer(args: &AnswerArgs) -> Result<Option<Answer>, Refused> {
    let object = match args {
        AnswerArgs { approve: true, .. } => json!({ "approve": true }),
        AnswerArgs { deny: Some(why), .. } => {
            json!({ "approve": false, "text": why.as_deref().unwrap_or_default() })
        }
        AnswerArgs { args: Some(file), .. } => {
            json!({ "approve": true, "args": read_json(file)? })
        }
        AnswerArgs { choice: Some(choice), .. } => json!({ "choice": choice }),
        AnswerArgs { text: Some(text), .. } => json!({ "text": text }),
        AnswerArgs { json: Some(json), .. } => {
            serde_json::from_str(json).or_refuse("--json is not JSON")?
        }
        _ => return Ok(None),
    };
    let Value::Object(fields) = object else {
        return Err(Refused::new("--json is not a JSON object"));
    };
    parse_answer(&fields).map(Some).map_err(Refused::new)
}

fn read_json(file: &Path) -> Result<Value, Refused> {
    let shown = file.display().to_string();
    let text = std::fs::read_to_string(file).or_refuse(format_args!("cannot read {shown}"))?;
    serde_json::from_str(&text).or_refuse(format_args!("{shown} is not JSON"))
}

/// Prints the open questions of a run, and how to answer them.
fn print_open(run: &SteeredRun, id: Option<QuestionId>) -> Exit {
    let open = run.questions.open();
    let wanted: Vec<_> = open.iter().filter(|asked| id.is_none_or(|id| asked.id == id)).collect();
    match (wanted.is_empty(), id) {
        (true, Some(id)) => {
            let why = run.questions.get(id).err().unwrap_or_default();
            refuse(&Refused::new(visible(&why)), Exit::Stopped)
        }
        (true, None) => print(&format!("{} asks nobody now\n", run.run), Exit::Ok),
        (false, _) => {
            let text = |asked: &&&QuestionAsked| {
                let expected = asked.subject.expected();
                let how = format!("{}: {expected}: {}", asked.id, options(&asked.subject));
                let context = QuestionContext::of(&run.world, asked);
                question_lines(asked, &context).join("\n") + "\n" + &how + "\n"
            };
            print(&wanted.iter().map(text).collect::<Vec<_>>().join("\n"), Exit::Ok)
        }
    }
}

/// The options that answer a question about this.
fn options(subject: &Subject) -> &'static str {
    match subject {
        Subject::ToolCall { .. } => "--approve, --deny [WHY] or --args FILE",
        Subject::Turn { .. } => "--text TEXT or --json '{\"hand_over_to\":\"…\",\"text\":\"…\"}'",
        Subject::Seat { .. } => "--json '{\"contribution\":{…}}'",
        Subject::InDoubt { .. } => "--choice CHOICE or --json '{\"result\":…}'",
        Subject::Agent { choices, .. } if choices.is_empty() => "--text TEXT",
        Subject::Input { .. } => "--args FILE or --deny",
        Subject::Permission { .. } => "--choice CHOICE or --deny [WHY]",
        Subject::Agent { .. }
        | Subject::Decision { .. }
        | Subject::Budget(_)
        | Subject::Tools { .. } => "--choice CHOICE",
    }
}
