//! The effect that compares two runs.

use super::effects::Services;
use crate::app::Msg;
use crate::app::effect::RecordedSource;
use crate::app::request::RequestId;
use crate::narrate::comparison::compared_runs::ComparedRuns;

/// Reads two runs and compares them.
pub(super) fn compare(services: &Services, request: RequestId, runs: [RecordedSource; 2]) {
    services.in_background(move |services| {
        let result = compared(&services, runs).map(Box::new);
        services.send_msg(Msg::Compared { request, result });
    });
}

fn compared(
    services: &Services,
    [left, right]: [RecordedSource; 2],
) -> Result<ComparedRuns, String> {
    let (left, right) = (services.read_recorded(left)?, services.read_recorded(right)?);
    Ok(ComparedRuns::of(left.events(), right.events()))
}
