//! The loop of a runner, and its row in the list of runners.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::core::{Runner, now_ms};
use super::play;
use crate::base::visible::visible;
use crate::cluster::runners::RunnerRow;
use crate::event::id::millis;

/// How long one request for a run waits.
const TAKE: Duration = Duration::from_secs(5);

/// Time before a run that this runner has just lost is offered again.
const AGAIN: Duration = Duration::from_millis(500);

/// How often a runner says that it is alive.
const ALIVE: Duration = Duration::from_secs(8);

/// How long the last messages of a runner may take.
const LAST: Duration = Duration::from_secs(5);

/// Least time between two changes of its row.
const LIST_AT_MOST: Duration = Duration::from_millis(200);

impl Runner {
    /// Plays runs until it has to stop, and every run has ended or was returned to the queue.
    ///
    /// # Errors
    /// The cluster has no queue, or other runners of the pool have another takeover time, in one sentence.
    pub async fn serve(self: &Arc<Self>) -> Result<(), String> {
        if let Some(why) = self.disagreement().await {
            return Err(why);
        }
        let queue = self.cluster.queue(&self.settings.pool, self.settings.ack_wait).await?;
        let alive = tokio::spawn(Arc::clone(self).stay_listed());
        let sweep = tokio::spawn(Arc::clone(self).sweep());
        let mut draining = self.draining.clone();
        let mut plays = JoinSet::new();
        let mut taken: u32 = 0;
        while !*draining.borrow_and_update() {
            while plays.try_join_next().is_some() {}
            if plays.len() >= self.settings.slots.max(1) as usize {
                tokio::select! {
                    _ = plays.join_next() => {}
                    _ = draining.changed() => {}
                }
                continue;
            }
            let item = tokio::select! {
                item = queue.take(TAKE) => item,
                _ = draining.changed() => break,
            };
            match item {
                // Its owner has died too, and the run has not ended here yet: another runner may be quicker.
                Ok(Some(item)) if self.has_lost(&item.run) => item.hand_back(AGAIN).await,
                Ok(Some(item)) if !self.begins(&item.run) => {
                    // This process plays it: the item was given out again.
                    item.in_progress().await;
                }
                Ok(Some(item)) => {
                    taken += 1;
                    let (runner, owner) = (Arc::clone(self), self.owner(taken));
                    plays.spawn(async move {
                        let run = item.run.clone();
                        play::play(&runner, item, owner).await;
                        runner.ends(&run);
                    });
                }
                Ok(None) => {}
                Err(why) => {
                    tracing::debug!("no run from the queue: {why}");
                    sleep(Duration::from_millis(200)).await;
                }
            }
        }
        while plays.join_next().await.is_some() {}
        alive.abort();
        sweep.abort();
        let last = async {
            self.cluster.remove_runner(&self.settings.name).await;
            self.cluster.flush().await;
        };
        if timeout(LAST, last).await.is_err() {
            tracing::warn!("the cluster did not take the last messages in time");
        }
        Ok(())
    }

    /// The row of this runner.
    fn row(&self, since_ms: u64) -> RunnerRow {
        let settings = &self.settings;
        RunnerRow {
            name: settings.name.clone(),
            pool: settings.pool.clone(),
            slots: settings.slots,
            busy: self.busy(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            allows: settings.allow.iter().map(|grant| grant.word().to_owned()).collect(),
            draining: self.is_draining(),
            since_ms,
            takeover_ms: millis(settings.ack_wait),
        }
    }

    /// Why this runner cannot begin while others of its pool are alive, in one sentence.
    async fn disagreement(&self) -> Option<String> {
        let (own, others) = (self.row(0), self.cluster.runners().await.ok()?);
        let other = others.iter().find(|other| other.disagrees(&own))?;
        let seconds = Duration::from_millis(other.takeover_ms).as_secs_f64();
        Some(format!(
            "runner {} of pool {} takes runs over after {seconds} s: use --takeover-after {seconds}s \
             here too, or stop that runner first (a killed runner is listed for 30 s)",
            visible(&other.name),
            own.pool
        ))
    }

    /// Writes the row of this runner now and then.
    async fn stay_listed(self: Arc<Self>) {
        let mut ticks = interval(ALIVE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let since_ms = now_ms();
        let mut draining = self.draining.clone();
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = self.slots_changed.notified() => {
                    // A runner of many short runs is not listed again for each.
                    sleep(LIST_AT_MOST).await;
                }
                changed = draining.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
            }
            let row = self.row(since_ms);
            if let Err(why) = self.cluster.put_runner(&row).await {
                tracing::debug!("the runner is not listed: {why}");
            }
        }
    }
}
