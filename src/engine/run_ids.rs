//! The ids of runs: short, and never those of two runs.

use super::Engine;
use crate::base::seeded_random::random_u64;
use crate::event::RunId;

impl Engine {
    /// An id that no run of this engine has, and no kept run. If the store cannot be written, what becomes
    /// of the run is decided once its head is known.
    pub(super) fn next_id(&self) -> RunId {
        self.reserve_id().unwrap_or_else(|(id, why)| {
            tracing::info!(run = %id, "the store cannot be written: {why}");
            id
        })
    }

    /// An id for a run that is not to start unless it can be kept.
    ///
    /// # Errors
    /// Why it cannot be kept, with an id that no run of this engine has.
    pub(crate) fn reserve_id(&self) -> Result<RunId, (RunId, String)> {
        let mut tries = 0_u32;
        loop {
            tries += 1;
            let id = {
                let mut runs = self.shared.runs();
                runs.started += 1;
                let number = random_u64(self.shared.nonce, "run", runs.started, "id");
                // Four digits are easy to say aloud; where many are taken, the ids get longer.
                let id = if runs.started < 4096 && tries < 8 {
                    format!("r-{:04x}", number & 0xffff)
                } else {
                    format!("r-{:08x}", number & 0xffff_ffff)
                };
                let id = RunId::new(id);
                if runs.by_id.contains_key(&id) || !runs.starting.insert(id.clone()) {
                    continue;
                }
                id
            };
            // Without the lock: it may wait for a disk.
            match self.shared.keeper.as_ref().map_or(Ok(true), |keeper| keeper.reserve(&id)) {
                Ok(true) => return Ok(id),
                Ok(false) => self.shared.runs().starting.remove(&id),
                Err(why) => return Err((id, why)),
            };
        }
    }
}
