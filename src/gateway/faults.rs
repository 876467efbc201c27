//! Injects faults between the gateway and a tool or model. Seeded, so a run repeats.

use std::future::{Future, pending};
use std::time::Duration;

use crate::base::seeded_random::happens_with;
use crate::clock::Clock;
use crate::event::kind::{AttemptFailed, FailureClass};
use crate::scenario::spec::tool::InjectedFault;

/// Makes one attempt with these faults. `draw` is random bits for this attempt.
pub async fn with_faults<T>(
    clock: &Clock,
    faults: &[InjectedFault],
    draw: u64,
    attempt: impl Future<Output = Result<T, Box<AttemptFailed>>>,
) -> Result<T, Box<AttemptFailed>> {
    for fault in faults {
        match fault {
            InjectedFault::Latency { ms } => clock.sleep(Duration::from_millis(*ms)).await,
            InjectedFault::Errors { percent, status }
                if happens_with(f64::from(*percent) / 100.0, draw) =>
            {
                return Err(AttemptFailed::from_status(
                    *status,
                    format!("HTTP {status} (injected)"),
                ));
            }
            InjectedFault::Hang => pending().await,
            InjectedFault::Errors { .. } | InjectedFault::Malformed | InjectedFault::Reset => {}
        }
    }
    let answered = attempt.await?;
    for fault in faults {
        match fault {
            InjectedFault::Malformed => {
                let text = "the reply is not JSON (injected)";
                return Err(AttemptFailed::new(FailureClass::BadResponse, text));
            }
            InjectedFault::Reset => {
                let text = "the connection broke in the middle of the body (injected)";
                return Err(AttemptFailed::new(FailureClass::Reset, text));
            }
            InjectedFault::Latency { .. } | InjectedFault::Errors { .. } | InjectedFault::Hang => {}
        }
    }
    Ok(answered)
}
