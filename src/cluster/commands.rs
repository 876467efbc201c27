//! Commands to a run, stored in order, so that a command sent while no runner owns the run reaches its next
//! owner, once.

use std::time::Duration;

use async_nats::{HeaderMap, Subscriber};
use futures::StreamExt as _;
use tokio::sync::watch;
use tokio::time::sleep;

use super::entry::header;
use super::names::COMMANDS;
use super::stream::BEHIND;
use super::{Cluster, Link, error_text};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::log::event::{Command, RunId};
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
    pub by: String,
    pub command: Command,
}

impl Cluster {
    /// Sends a command to the runner that owns the run when the command arrives.
    ///
    /// # Errors
    /// It is not stored.
    pub async fn send_command(
        &self,
        run: &RunId,
        command: &Command,
        by: &str,
    ) -> Result<(), Refused> {
        let payload = serde_json::to_vec(command).or_refuse("the command cannot be written")?;
        let mut headers = HeaderMap::new();
        headers.insert(BY, by);
        let subject = self.namespace().commands(run);
        self.store(subject, headers, payload, None)
            .await
            .or_refuse(format_args!("the command to {run} cannot be sent"))
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

/// Follows the commands to a run.
pub struct CommandFollower {
    cluster: Cluster,
    subject: String,
    /// Says that there is something to read. What it carries may have been refused by the stream.
    live: Subscriber,
    link: watch::Receiver<Link>,
    after: u64,
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
                    let sent = found.into_iter().filter_map(|raw| {
                        let by = header(&raw.headers, BY).unwrap_or("somebody").to_owned();
                        match serde_json::from_slice(&raw.payload) {
                            Ok(command) => Some(SentCommand { place: raw.place, by, command }),
                            Err(error) => {
                                tracing::warn!("a command cannot be read: {error}");
                                None
                            }
                        }
                    });
                    return sent.collect();
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
