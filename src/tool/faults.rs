//! Faults that are injected between the gateway and what answers: seeded, so a run repeats.

use std::future::{Future, pending};
use std::time::Duration;

use tokio::time::sleep;

use crate::event::kind::{AttemptFailed, FailureClass};
use crate::scenario::tool::Fault;

/// One attempt with these faults in its way. `draw` is random bits of this attempt's own.
pub async fn through<T>(
    faults: &[Fault],
    draw: u64,
    attempt: impl Future<Output = Result<T, Box<AttemptFailed>>>,
) -> Result<T, Box<AttemptFailed>> {
    for fault in faults {
        match fault {
            Fault::Latency { ms } => sleep(Duration::from_millis(*ms)).await,
            Fault::Errors { percent, status } if hits(*percent, draw) => {
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
                let text = "the answer is no JSON (injected)";
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

/// Whether this draw is among the first so many of a hundred.
fn hits(percent: u8, draw: u64) -> bool {
    (u128::from(draw) * 100) >> 64 < u128::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_draws_is_hit() {
        let step = u64::MAX / 1_000;
        let count = |percent| (0..1_000).filter(|nth| hits(percent, nth * step)).count();
        assert_eq!(count(0), 0);
        assert_eq!(count(100), 1_000);
        assert!((298..=302).contains(&count(30)), "{}", count(30));
    }
}
