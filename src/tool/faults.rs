//! Injects faults between the gateway and a tool or model. Seeded, so a run repeats.

use std::future::{Future, pending};
use std::time::Duration;

use tokio::time::sleep;

use crate::event::kind::{AttemptFailed, FailureClass};
use crate::scenario::draw::happens;
use crate::scenario::tool::Fault;

/// Makes one attempt with these faults. `draw` is random bits for this attempt.
pub async fn through<T>(
    faults: &[Fault],
    draw: u64,
    attempt: impl Future<Output = Result<T, Box<AttemptFailed>>>,
) -> Result<T, Box<AttemptFailed>> {
    for fault in faults {
        match fault {
            Fault::Latency { ms } => sleep(Duration::from_millis(*ms)).await,
            Fault::Errors { percent, status } if happens(f64::from(*percent) / 100.0, draw) => {
                return Err(AttemptFailed::of_status(*status, format!("HTTP {status} (injected)")));
            }
            Fault::Hang => pending().await,
            Fault::Errors { .. } | Fault::Malformed | Fault::Reset => {}
        }
    }
    let answered = attempt.await?;
    for fault in faults {
        match fault {
            Fault::Malformed => {
                let text = "the reply is not JSON (injected)";
                return Err(AttemptFailed::of(FailureClass::BadResponse, text));
            }
            Fault::Reset => {
                let text = "the connection broke in the middle of the body (injected)";
                return Err(AttemptFailed::of(FailureClass::Reset, text));
            }
            Fault::Latency { .. } | Fault::Errors { .. } | Fault::Hang => {}
        }
    }
    Ok(answered)
}
