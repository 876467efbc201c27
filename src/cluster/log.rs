//! The logs of a cluster as a [`RunLog`].

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{StreamExt as _, stream};
use tokio::time::{Instant, sleep};

use super::archive::Blobs;
use super::entry::{BLOB, LogEntry, LogPart, SESSION, ends, headers};
use super::follow::LogNews;
use super::request::Release;
use super::stream::Published;
use super::{Cluster, error_text};
use crate::base;
use crate::log::event::{RunId, Seq};
use crate::store::{AppendError, EventGroup, ReadError, RunLog};

/// Lines of a group up to this size are in its message; larger ones are in the object store.
const MESSAGE_BYTES: usize = 512 << 10;

/// Time before a message is sent again that the server could not take at that moment.
pub(super) const BUSY: Duration = Duration::from_millis(20);

/// How long a busy server is asked again before the append has failed.
const BUSY_FOR: Duration = Duration::from_secs(15);

/// The log of a run that this process owns, by one claim: it can append to it until another claim is
/// stored, or it is given up.
///
/// One group is in flight at a time: [`append`](RunLog::append) begins when it is awaited, and is not sent
/// unless the group before it is stored.
pub struct ClusterLog {
    cluster: Cluster,
    /// The owner of the claim, which no other claim has.
    owner: String,
    /// Where the log ends; `None`: another owner has the run, or it was given up.
    end: Mutex<Option<LogEnd>>,
    /// What the run leaves to the next message of its session.
    left: Option<LeftBytes>,
}

/// The end of a log.
#[derive(Clone, Copy, Debug)]
struct LogEnd {
    /// Its last message.
    place: u64,
    /// The event that comes next.
    next: Seq,
}

/// Makes the bytes of what a run leaves; `None`: nothing.
type LeftBytes = Box<dyn Fn() -> Option<Vec<u8>> + Send + Sync>;

impl ClusterLog {
    /// The log of a run that was claimed by this owner, with this epoch, and continues with this event.
    pub fn new(cluster: Cluster, owner: String, epoch: u64, next: Seq) -> Self {
        let end = LogEnd { place: epoch, next };
        Self { cluster, owner, end: Mutex::new(Some(end)), left: None }
    }

    /// Stores what the run leaves to the next message of its session with its end: a run that has ended has
    /// left it.
    pub fn leaving(self, left: impl Fn() -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        Self { left: Some(Box::new(left)), ..self }
    }

    /// Sends nothing more, as if another owner had the run. An append in flight still reports whether it was
    /// stored.
    pub fn give_up(&self) {
        *self.lock() = None;
    }

    /// Ends the log with a release, and sends nothing more; the number of that message. `None`: it is not
    /// certain that it is stored, or the log has continued meanwhile.
    pub async fn release(&self, run: &RunId, release: Release) -> Option<u64> {
        let end = (*self.lock()).filter(|end| end.next == release.next)?;
        let payload = serde_json::to_vec(&release).ok()?;
        let about = headers("release", release.next, 0, &self.owner);
        let subject = self.cluster.namespace().log(run);
        match self.cluster.store(subject, about, payload, Some(end.place)).await {
            Published::Stored(place) => {
                self.give_up();
                Some(place)
            }
            _ => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<LogEnd>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The log ends here now. An owner that was replaced stays so.
    fn move_to(&self, place: u64, next: Seq) {
        if let Some(end) = &mut *self.lock() {
            *end = LogEnd { place, next };
        }
    }

    async fn append_now(&self, run: &RunId, group: &EventGroup) -> Result<Seq, AppendError> {
        let next = (*self.lock()).ok_or(AppendError::Fenced)?.next;
        if group.first() != next {
            // One before it has failed: stored now, it would leave a gap.
            return Err(AppendError::Unsure(format!("event {} is not stored yet", next.0)));
        }
        let subject = self.cluster.namespace().log(run);
        let mut about = headers("events", group.first(), group.len(), &self.owner);
        let mut lines = group.lines().to_vec();
        if lines.len() > MESSAGE_BYTES {
            about.insert(BLOB, self.put_by_content(&lines).await?);
            lines.clear();
        }
        if ends(group)
            && let Some(left) = self.left.as_ref().and_then(|left| left())
        {
            // By its content: an owner that is refused here changes nothing.
            about.insert(SESSION, self.put_by_content(&left).await?);
        }
        let began = Instant::now();
        loop {
            // Another owner: nothing of this process is stored any more.
            let last = (*self.lock()).ok_or(AppendError::Fenced)?.place;
            let stored =
                self.cluster.store(subject.clone(), about.clone(), lines.clone(), Some(last));
            match stored.await {
                Published::Stored(place) => {
                    self.move_to(place, group.next());
                    return Ok(group.next());
                }
                Published::WrongLast => return self.settle(run, group, last).await,
                Published::AskAgain if began.elapsed() < BUSY_FOR => sleep(BUSY).await,
                Published::AskAgain => {
                    return Err(AppendError::Unsure("the cluster is busy".to_owned()));
                }
                Published::Refused(why) | Published::NoLeader(why) | Published::NoAnswer(why) => {
                    return Err(AppendError::Unsure(why));
                }
            }
        }
    }

    /// The log does not end where it should: either the group is stored already and the answer was
    /// lost, or somebody else has the run.
    async fn settle(&self, run: &RunId, group: &EventGroup, last: u64) -> Result<Seq, AppendError> {
        match self.end(run).await? {
            Some(end) if end.owner == self.owner && end.place > last => {
                self.move_to(end.place, next_of(&end));
                match next_of(&end) {
                    next if next == group.next() => Ok(next),
                    _ => Err(AppendError::Unsure("the log of the run has moved".to_owned())),
                }
            }
            // The server has refused what it should have stored: ask again.
            Some(end) if end.owner == self.owner => {
                Err(AppendError::Unsure("the cluster has refused a place that is free".to_owned()))
            }
            Some(_) => {
                self.give_up();
                Err(AppendError::Fenced)
            }
            None => Err(AppendError::Gone),
        }
    }

    async fn end(&self, run: &RunId) -> Result<Option<LogEntry>, AppendError> {
        let end = self.cluster.last_entry(run).await;
        end.map_err(|error| AppendError::Unsure(error.to_string()))
    }

    /// Puts bytes into the object store under their digest; returns its name.
    async fn put_by_content(&self, bytes: &[u8]) -> Result<String, AppendError> {
        let digest = base::sha256_of_reader(bytes);
        let digest = digest.map_err(|error| AppendError::Unsure(error_text(&error)))?;
        let name = format!("sha256-{digest}");
        let blobs = Blobs(&self.cluster);
        let has = blobs.has(&name).await;
        if !has.map_err(|error| AppendError::Unsure(error.to_string()))? {
            let put = blobs.put(&name, bytes).await;
            put.map_err(|why| AppendError::Unsure(format!("{why:#}")))?;
        }
        Ok(name)
    }
}

/// The sequence number that a log continues with after its last message.
fn next_of(entry: &LogEntry) -> Seq {
    match &entry.part {
        LogPart::Requested(_) => Seq(0),
        LogPart::Claimed(claim) => claim.next,
        LogPart::Released(release) => release.next,
        LogPart::Events(group) => group.next(),
        LogPart::Elsewhere(first, count, _) => Seq(first.0.saturating_add(u64::from(*count))),
    }
}

impl RunLog for ClusterLog {
    fn append<'a>(
        &'a self,
        run: &'a RunId,
        _expect: Seq,
        group: &EventGroup,
    ) -> BoxFuture<'a, Result<Seq, AppendError>> {
        let group = group.clone();
        Box::pin(async move { self.append_now(run, &group).await })
    }

    fn next<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Seq, AppendError>> {
        Box::pin(async move {
            match self.end(run).await? {
                Some(end) if end.owner == self.owner => {
                    self.move_to(end.place, next_of(&end));
                    Ok(next_of(&end))
                }
                Some(_) => {
                    self.give_up();
                    Err(AppendError::Fenced)
                }
                None => Err(AppendError::Gone),
            }
        })
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
    ) -> BoxStream<'a, Result<EventGroup, ReadError>> {
        self.cluster.groups(run, from)
    }

    fn tail<'a>(
        &'a self,
        run: &'a RunId,
        from: Seq,
    ) -> BoxStream<'a, Result<EventGroup, ReadError>> {
        let follower = self.cluster.follow(run);
        stream::unfold((follower, from), move |(mut follower, from)| async move {
            loop {
                match follower.news().await? {
                    Ok(LogNews::Entry(LogEntry { part: LogPart::Events(group), .. })) => {
                        if group.next() > from {
                            return Some((Ok(group), (follower, from)));
                        }
                    }
                    Ok(_) => {}
                    Err(error) => return Some((Err(error), (follower, from))),
                }
            }
        })
        .boxed()
    }
}

impl Cluster {
    /// The groups of a log from the one that has the event `from`, up to the present end.
    pub fn groups(
        &self,
        run: &RunId,
        from: Seq,
    ) -> BoxStream<'static, Result<EventGroup, ReadError>> {
        struct EntryCursor {
            cluster: Cluster,
            run: RunId,
            place: u64,
            found: std::vec::IntoIter<LogEntry>,
            has_ended: bool,
        }
        let cursor = Cluster::clone(self);
        let cursor = EntryCursor {
            cluster: cursor,
            run: run.clone(),
            place: 0,
            found: Vec::new().into_iter(),
            has_ended: false,
        };
        stream::unfold(cursor, move |mut cursor| async move {
            loop {
                if let Some(entry) = cursor.found.next() {
                    cursor.place = entry.place + 1;
                    match entry.part {
                        LogPart::Events(group) if group.next() > from => {
                            return Some((Ok(group), cursor));
                        }
                        _ => continue,
                    }
                }
                if cursor.has_ended {
                    return None;
                }
                match cursor.cluster.some_entries(&cursor.run, cursor.place).await {
                    Ok(more) => {
                        cursor.has_ended = more.is_empty();
                        cursor.found = more.into_iter();
                    }
                    Err(error) => {
                        cursor.has_ended = true;
                        return Some((Err(error), cursor));
                    }
                }
            }
        })
        .boxed()
    }
}
