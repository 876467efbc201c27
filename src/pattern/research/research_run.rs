//! One run of research, as its steps share it.

use serde_json::Value;

use crate::base::name::ToolName;
use crate::event::kind::{AttemptFailed, FailureClass};
use crate::event::{Boundary, StopReason};
use crate::pattern::prompting;
use crate::pattern::reply::{JudgedReply, Refusal, request_json};
use crate::pattern::research::spec::{ResearchSpec, ResearchStep, StepExecutor};
use crate::run::{CallerPolicy, ModelRequest, RunContext};
use crate::scenario::Scenario;
use crate::scenario::condition::CelBindings;

/// One run of research.
pub(super) struct ResearchRun<'a> {
    pub cx: &'a RunContext,
    pub scenario: &'a Scenario,
    pub spec: &'a ResearchSpec,
    /// The values that conditions can read during the whole run; `None` without conditions.
    pub base: Option<CelBindings>,
}

/// The caller of the search and read tools. An invalid result has the stop reason of the source
/// document.
pub(super) struct ResearchCaller;

impl CallerPolicy for ResearchCaller {
    fn stop_reason(&self, tool: &ToolName, failure: &AttemptFailed) -> StopReason {
        match failure.class {
            FailureClass::BadResponse => StopReason::ToolInvalidOutput(tool.clone()),
            class => StopReason::ToolError(tool.clone(), class),
        }
    }
}

impl ResearchRun<'_> {
    pub(super) async fn begin(&self, step: ResearchStep) -> Result<(), StopReason> {
        self.cx.set_phase(step.word().to_owned());
        self.cx.boundary(Boundary::Step(step.word())).await?;
        self.pace(step.word(), 0).await;
        Ok(())
    }

    /// Waits as long as the scenario's pace says, unless the run is live or instant.
    pub(super) async fn pace(&self, path: &str, nth: u32) {
        if !self.cx.is_live() {
            self.cx.wait(self.spec.pace, path, nth).await;
        }
    }

    /// Who executes a step in this run; it depends on whether the run uses a live model.
    pub fn executor(&self, who: crate::pattern::research::spec::StepMode) -> StepExecutor {
        who.executor(self.cx.is_live())
    }

    /// The values that the condition of a step can read: the common ones, and its own.
    pub fn condition_values(&self, own: impl FnOnce(&mut CelBindings)) -> Option<CelBindings> {
        self.base.clone().map(|mut shown| {
            shown.bind("flags", &prompting::to_json(&self.cx.control().flags()));
            own(&mut shown);
            shown
        })
    }

    /// Calls the model until the reply is accepted or the retries are used up. A reply that is not
    /// JSON reaches `judge` as a JSON string.
    pub async fn request_object<T>(
        &self,
        ask: ModelRequest,
        mut judge: impl FnMut(&Value) -> Result<T, Refusal> + Send,
    ) -> Result<JudgedReply<T>, StopReason> {
        let wrap = |text: &str| Value::from(text);
        let asked = request_json(self.cx, &self.scenario.model, ask, wrap, |raw, _| judge(raw));
        asked.await.map_err(|failed| failed.reason)
    }
}
