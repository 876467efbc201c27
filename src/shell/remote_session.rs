//! Sends the next message of a session to the runners of a cluster.

use std::sync::Arc;

use super::effects::Services;
use crate::app::Msg;
use crate::app::effect::{FollowUp, LaunchRequest, RunBeginning};
use crate::app::request::RequestId;
use crate::cluster::request::RunRequest;
use crate::event::launch::LaunchRecord;
use crate::event::{Event, RunId};
use crate::host::keep::now_ms;
use crate::host::machine;
use crate::host::models::LiveCalls;
use crate::host::recorded::RecordedRun;
use crate::scenario::catalogue::RequestedModel;

impl Services {
    /// Hands the next message of a session over to the runners of the cluster, and watches its run.
    pub(super) fn hand_over_now(&self, request: LaunchRequest, follows: &FollowUp) {
        let Some(cluster) = self.remote.cluster.get().cloned() else { return };
        let id = request.id;
        // A runner has no operator to ask.
        let live = matches!(request.model, RequestedModel::Live(_));
        let calls = live.then_some(LiveCalls::OnRunner);
        if let Some(consent) = self.trust.needed_consent(&request.scenario, calls) {
            self.send_msg(Msg::Untrusted { request: Box::new(request), consent });
            return;
        }
        let next = RunRequest::of(&request.scenario);
        let next = RunRequest {
            launch: LaunchRecord {
                instant: matches!(request.model, RequestedModel::Scripted { instant: true }),
                model: request.model.name(),
                ..next.launch
            },
            live,
            flags: request.flags.clone(),
            seed: request.seed,
            message: Some(follows.text.to_string()),
            after: Some(follows.run.clone()),
            pool: self.remote.pool(&follows.run).unwrap_or(next.pool),
            by: machine::user_name(),
            wall_ms: now_ms(),
            ..next
        };
        let services = self.clone();
        self.runtime.spawn(async move {
            match cluster.hand_over(next).await {
                Ok(handed) => services.attach(handed.run, id),
                Err(text) => services.send_msg(Msg::StartFailed { request: id, text }),
            }
        });
    }
}

/// What the next message of a run's session starts from; `None`: its pattern has no sessions.
pub(super) fn next_launch(
    id: RequestId,
    run: &RunId,
    events: &[Arc<Event>],
) -> Option<Box<LaunchRequest>> {
    let recorded = RecordedRun::new(run.clone(), events.to_vec(), true).ok()?;
    recorded.session()?;
    Some(Box::new(LaunchRequest {
        id,
        scenario: Arc::new(recorded.scenario(&[]).ok()?),
        model: recorded.model().ok()?,
        flags: recorded.start_flags(),
        seed: Some(recorded.seed()),
        begins: RunBeginning::New,
    }))
}
