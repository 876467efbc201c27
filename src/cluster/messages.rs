//! What people and runners send to each other besides the log of a run.
//!
//! Commands to a run: stored in order, so that a command sent while no runner owns the run reaches its next
//! owner, once.
//!
//! The text of replies while they are received: sent to the dashboards that show the run, and not stored. Each
//! message has the whole text so far, so a message that is lost does no harm.
//!
//! Answers that came when their runner had lost the run: they were paid, so the next owner takes them
//! instead of asking again.

use std::time::Duration;

use async_nats::{HeaderMap, Subscriber};
use futures::StreamExt as _;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use super::entry::{LogEntry, LogPart, RawEntry, header};
use super::names::{COMMANDS, LATE};
use super::stream::{BEHIND, BEHIND_FOR, Published, last_message};
use super::{Cluster, Link, error_text};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::log::event::{Command, Reply, RunId, SpanId};
use crate::store::ReadError;

/// The longest wait for a command that was seen to be stored.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Who sent a command.
const BY: &str = "RT-By";

/// A command as somebody sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentCommand {
    /// Its number in the stream.
    pub place: u64,
    /// When it was stored, as Unix time in milliseconds of the server.
    pub stored_ms: u64,
    pub by: String,
    pub command: Command,
}

impl Cluster {
    /// Sends a command to the runner that owns the run when the command arrives. Returns its number.
    ///
    /// # Errors
    /// It is not stored.
    pub async fn send_command(
        &self,
        run: &RunId,
        command: &Command,
        by: &str,
    ) -> Result<u64, Refused> {
        let payload = serde_json::to_vec(command).or_refuse("the command cannot be written")?;
        let mut headers = HeaderMap::new();
        headers.insert(BY, by);
        let subject = self.namespace().commands(run);
        let stored = self.store(subject, headers, payload, None).await;
        let place = stored.or_refuse(format_args!("the command to {run} cannot be sent"))?;
        self.wake(run).await;
        Ok(place)
    }

    /// Queues a run that its runner has released. Runners look for those now and then, so nothing is lost if
    /// this fails.
    pub(super) async fn wake(&self, run: &RunId) {
        match self.last_entry(run).await {
            Ok(Some(LogEntry { place, part: LogPart::Released(release), .. })) => {
                let queued = self.enqueue(&release.pool, run, Some(place)).await;
                if let Err(why) = queued {
                    tracing::debug!(%run, "the run was not queued: {why:#}");
                }
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%run, "the end of the log cannot be read: {error}"),
        }
    }

    /// Whether somebody has sent a command after this number.
    pub(super) async fn has_command(&self, run: &RunId, after: u64) -> Result<bool, ReadError> {
        let subject = self.namespace().commands(run);
        Ok(!self.messages(COMMANDS, &subject, after + 1).await?.is_empty())
    }

    /// The commands to a run after this number that the leader of the stream has now, in their order. What
    /// cannot be read is left out.
    pub(super) async fn stored_commands(
        &self,
        run: &RunId,
        after: u64,
    ) -> Result<Vec<SentCommand>, ReadError> {
        let subject = self.namespace().commands(run);
        let last = last_message(self, COMMANDS, &subject).await?.map_or(0, |last| last.place);
        let (mut read, mut sent) = (after, Vec::new());
        let until = Instant::now() + BEHIND_FOR;
        while read < last {
            let found = self.messages(COMMANDS, &subject, read + 1).await?;
            read = found.last().map_or(read, |last| last.place);
            if found.is_empty() {
                if Instant::now() >= until {
                    let why = "a server is behind the leader of the commands".to_owned();
                    return Err(ReadError::Unreadable(why));
                }
                sleep(BEHIND).await;
            }
            sent.extend(found.into_iter().filter_map(sent_command));
        }
        Ok(sent)
    }

    /// The commands to a run after this number, and those that come later.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn commands(&self, run: &RunId, after: u64) -> Result<CommandFollower, ReadError> {
        let subject = self.namespace().commands(run);
        let live = self
            .client()
            .subscribe(subject.clone())
            .await
            .map_err(|error| ReadError::Unreadable(error_text(&error)))?;
        let link = self.link();
        Ok(CommandFollower { cluster: self.clone(), subject, live, link, after })
    }
}

/// A command of the stream; `None`: it cannot be read, since a newer program may have sent it, or it is an
/// answer that is too large.
fn sent_command(raw: RawEntry) -> Option<SentCommand> {
    let by = header(&raw.headers, BY).unwrap_or("somebody").to_owned();
    let command: Command = match serde_json::from_slice(&raw.payload) {
        Ok(command) => command,
        Err(error) => {
            tracing::warn!("a command cannot be read: {error}");
            return None;
        }
    };
    if let Command::Answer(answered) = &command
        && let Err(why) = answered.answer.check_size()
    {
        tracing::warn!("an answer to {} was refused: {why}", answered.id);
        return None;
    }
    Some(SentCommand { place: raw.place, stored_ms: raw.stored_ms, by, command })
}

/// Follows the commands to a run.
pub struct CommandFollower {
    cluster: Cluster,
    subject: String,
    /// Says that there is something to read. What it carries may have been refused by the stream.
    live: Subscriber,
    link: watch::Receiver<Link>,
    /// The number of the last command that was read.
    pub(super) after: u64,
}

impl CommandFollower {
    /// Waits for commands. What cannot be read is left out: it may come from a newer program.
    pub async fn next(&mut self) -> Vec<SentCommand> {
        // A command is seen before it is stored, and a server may be behind the leader of the stream.
        let mut wait = BEHIND;
        loop {
            match self.cluster.messages(COMMANDS, &self.subject, self.after + 1).await {
                Ok(found) if !found.is_empty() => {
                    self.after = found.last().map_or(self.after, |last| last.place);
                    return found.into_iter().filter_map(sent_command).collect();
                }
                Ok(_) => {}
                Err(error) => tracing::debug!("commands cannot be read now: {error}"),
            }
            tokio::select! {
                () = sleep(wait), if wait < LONGEST_WAIT => wait *= 2,
                message = self.live.next() => match message {
                    Some(_) => wait = BEHIND,
                    None => return std::future::pending().await,
                },
                changed = self.link.changed() => match changed {
                    Ok(()) => wait = BEHIND,
                    Err(_) => return std::future::pending().await,
                },
            }
        }
    }
}

/// Most bytes of a text in one message: its end.
const MAX_TEXT: usize = 64 << 10;

/// The text received so far in a span; `None`: the span has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyText {
    pub span: SpanId,
    pub text: Option<String>,
}

impl Cluster {
    /// Sends the text of a span to the dashboards that show the run; `None`: it has ended.
    pub async fn speak(&self, run: &RunId, span: SpanId, text: Option<&str>) {
        let subject = self.namespace().text(run, span);
        let payload = text.map_or("", |text| tail(text, MAX_TEXT)).as_bytes().to_vec();
        if let Err(error) = self.client().publish(subject, payload.into()).await {
            tracing::debug!("live text was not sent: {}", error_text(&error));
        }
    }

    /// The texts that are received in a run, from now on.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn live_texts(&self, run: &RunId) -> Result<ReplyTexts, Refused> {
        let subject = self.namespace().texts(run);
        let live = self.client().subscribe(subject).await;
        let live = live.or_refuse(format_args!("the live text of {run} cannot be read"))?;
        Ok(ReplyTexts { live })
    }
}

/// The end of a text, at most this long, from the start of a character.
fn tail(text: &str, most: usize) -> &str {
    let start = text.len().saturating_sub(most);
    let start = (start..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text.get(start..).unwrap_or(text)
}

/// Follows the texts of a run.
pub struct ReplyTexts {
    live: Subscriber,
}

impl ReplyTexts {
    /// Waits for the next text; `None`: the connection was closed. Cancel safe.
    pub async fn next(&mut self) -> Option<ReplyText> {
        loop {
            let message = self.live.next().await?;
            let span = message.subject.as_str().rsplit('.').next().and_then(|it| it.parse().ok());
            let Some(span) = span.map(SpanId) else { continue };
            let text = String::from_utf8_lossy(&message.payload).into_owned();
            return Some(ReplyText { span, text: (!text.is_empty()).then_some(text) });
        }
    }
}

/// How long servers that do not answer are tried again for an answer that was paid, and the time between.
const UNANSWERED: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(250);

impl Cluster {
    /// Leaves the answer to an attempt for the next owner of the run. The first one counts. Servers that do
    /// not answer are asked again for some time: the answer was paid.
    pub async fn leave_answer(&self, run: &RunId, attempt: SpanId, reply: &Reply) {
        let Ok(payload) = serde_json::to_vec(reply) else { return };
        let subject = self.namespace().late(run, attempt);
        let until = Instant::now() + UNANSWERED;
        loop {
            match self.store(subject.clone(), HeaderMap::new(), payload.clone(), None).await {
                Published::Stored(_) => {
                    tracing::info!(%run, "left a late answer for its next runner");
                    return;
                }
                Published::NoAnswer(_) | Published::NoLeader(_) | Published::AskAgain
                    if Instant::now() < until =>
                {
                    sleep(AGAIN).await;
                }
                other => {
                    tracing::warn!(%run, "a late answer was not stored: {other:?}");
                    return;
                }
            }
        }
    }

    /// Waits for the answer that a former owner of the run leaves for an attempt, until this moment. Then it
    /// is read for certain, for some time longer if the servers do not answer.
    pub async fn await_late_answer(
        &self,
        run: &RunId,
        attempt: SpanId,
        until: Instant,
    ) -> Option<Reply> {
        let subject = self.namespace().late(run, attempt);
        // What arrives says only that it is worth looking: the stream may have refused it.
        let mut arrivals = self.client().subscribe(subject).await.ok();
        loop {
            if let Ok(Some(reply)) = self.late_answer(run, attempt).await {
                return Some(reply);
            }
            let arrived = async {
                match &mut arrivals {
                    Some(arrivals) => arrivals.next().await,
                    None => std::future::pending().await,
                }
            };
            if !matches!(timeout_at(until, arrived).await, Ok(Some(_))) {
                break;
            }
            // It is seen before it is stored.
            let stored_by = Instant::now() + BEHIND_FOR;
            while Instant::now() < stored_by {
                if let Ok(Some(reply)) = self.late_answer(run, attempt).await {
                    return Some(reply);
                }
                sleep(BEHIND).await;
            }
        }
        // It may have come at the last moment.
        let until = until.max(Instant::now()) + UNANSWERED;
        loop {
            match self.late_answer(run, attempt).await {
                Ok(found) => return found,
                Err(error) if Instant::now() >= until => {
                    tracing::warn!(%run, "whether there is a late answer is not known: {error}");
                    return None;
                }
                Err(_) => sleep(AGAIN).await,
            }
        }
    }

    /// The answer that a former owner of the run has left for an attempt; one that cannot be read does not count.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn late_answer(
        &self,
        run: &RunId,
        attempt: SpanId,
    ) -> Result<Option<Reply>, ReadError> {
        let subject = self.namespace().late(run, attempt);
        let found = last_message(self, LATE, &subject).await?;
        Ok(found.and_then(|found| serde_json::from_slice(&found.payload).ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncates_long_text_between_characters() {
        assert_eq!(tail("häuser", 5), "user");
        assert_eq!(tail("häuser", 7), "häuser");
        assert_eq!(tail("", 3), "");
    }
}
