//! Builds the failures that a row scripts.

use crate::scenario::file::format_fault::{FaultTable, FaultWord};
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::Positioned;
use crate::scenario::spec::fault::{ScriptFault, ScriptFaultKind};

/// Builds the failure of a row, of the script or of a fixture.
pub(crate) fn fault(fault: &Positioned<FaultTable>, cx: &mut ReadContext) -> Option<ScriptFault> {
    let table = &fault.value;
    if let (None, Some(wait)) = (&table.status, &table.retry_after_s) {
        let what = "only a failure with a status can have a Retry-After";
        cx.at_key("retry_after_s", |cx| cx.error(wait.at, what, "add `status`, such as 429"));
    }
    let kind = match (table.status, table.kind) {
        (Some(status), None) => ScriptFaultKind::Status {
            status: u16::try_from(status.0).ok()?,
            retry_after: table.retry_after_s.as_ref().map(|wait| wait.value.0),
        },
        (None, Some(word)) => match word {
            FaultWord::Hang => ScriptFaultKind::Hang,
            FaultWord::Refused => ScriptFaultKind::Refused,
            FaultWord::Reset => ScriptFaultKind::Reset,
            FaultWord::BadResponse => ScriptFaultKind::BadResponse,
        },
        (None, None) if cx.has_error_here() => return None,
        (given, _) => {
            let what = match given {
                Some(_) => "a fault has a status or a kind, not both",
                None => "the fault has no status and no kind",
            };
            cx.error(fault.at, what, "write status = 503, or kind = \"hang\"");
            return None;
        }
    };
    Some(ScriptFault { kind, times: table.times.0 })
}
