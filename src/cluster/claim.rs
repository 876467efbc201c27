//! Ownership of a run: a claim is a message in its log, stored only if the log still ends with what
//! the claimer has read.

use super::connection::Cluster;
use super::entry::headers;
use super::names::LOGS;
use super::publish::Published;
use super::request::{Claim, RunRequest};
use crate::event::{RunId, Seq};
use crate::store::ReadError;

/// Whether a run was claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// It was. The number of the claim in the stream is the epoch of the owner.
    Yes(u64),
    /// The log has continued meanwhile: somebody else owns the run.
    No,
}

impl Cluster {
    /// Begins the log of a run with its request; `false`: there is a log of this id.
    ///
    /// # Errors
    /// The server does not store it.
    pub async fn request_run(&self, request: &RunRequest) -> Result<bool, ReadError> {
        let payload = serde_json::to_vec(request).map_err(|error| unreadable(&error))?;
        let headers = headers("request", Seq(0), 0, &request.by);
        let subject = self.namespace().log(&request.run);
        match self.store(subject, headers, payload, Some(0)).await {
            Published::Stored(_) => Ok(true),
            Published::WrongLast => Ok(false),
            Published::AskAgain => Err(ReadError::Unreadable("the cluster is busy".to_owned())),
            Published::Refused(why) | Published::NoLeader(why) | Published::NoAnswer(why) => {
                Err(ReadError::Unreadable(why))
            }
        }
    }

    /// Claims a run whose log ends with the message `after` and continues with the event `claim.next`.
    ///
    /// # Errors
    /// It is not certain whether the claim is stored.
    pub async fn claim_run(
        &self,
        run: &RunId,
        claim: &Claim,
        after: u64,
    ) -> Result<Claimed, ReadError> {
        let payload = serde_json::to_vec(claim).map_err(|error| unreadable(&error))?;
        let subject = self.namespace().log(run);
        loop {
            let headers = headers("claim", claim.next, 0, &claim.owner);
            match self.store(subject.clone(), headers, payload.clone(), Some(after)).await {
                Published::Stored(epoch) => return Ok(Claimed::Yes(epoch)),
                Published::WrongLast => return Ok(Claimed::No),
                Published::AskAgain => tokio::time::sleep(super::log::BUSY).await,
                Published::Refused(why) | Published::NoLeader(why) => {
                    return Err(ReadError::Unreadable(why));
                }
                Published::NoAnswer(why) => {
                    // It may be stored: the end of the log says it.
                    tracing::debug!(%run, "no answer to a claim in {LOGS}: {why}");
                    match self.last_entry(run).await? {
                        Some(last) if last.owner == claim.owner => {
                            return Ok(Claimed::Yes(last.place));
                        }
                        Some(last) if last.place == after => {}
                        _ => return Ok(Claimed::No),
                    }
                }
            }
        }
    }
}

fn unreadable(error: &dyn std::error::Error) -> ReadError {
    ReadError::Unreadable(error.to_string())
}
