//! The effect that compares two runs.

use super::effects::Services;
use crate::app::Msg;
use crate::app::effect::RecordedSource;
use crate::app::request::RequestId;
use crate::narrate::comparison::compared_runs::ComparedRuns;

impl Services {
    /// Reads two runs and compares them.
    pub fn compare(&self, request: RequestId, runs: [RecordedSource; 2]) {
        self.in_background(move |services| {
            let result = services.compared(runs).map(Box::new);
            services.send_msg(Msg::Compared { request, result });
        });
    }

    fn compared(&self, [left, right]: [RecordedSource; 2]) -> Result<ComparedRuns, String> {
        let (left, right) = (self.read_recorded(left)?, self.read_recorded(right)?);
        Ok(ComparedRuns::of(left.events(), right.events()))
    }
}
