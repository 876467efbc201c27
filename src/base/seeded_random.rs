//! Seeded random numbers of a run. Each is a hash of (seed, path, attempt, use), never the next of
//! a shared stream, so parallel calls do not change each other's numbers.

use std::hash::Hasher;
use std::time::Duration;

use siphasher::sip::SipHasher13;

/// Bounds of a random duration from the seed, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Latency {
    /// Lower bound.
    pub min: Duration,
    /// Upper bound.
    pub max: Duration,
}

/// The random number for one use. `path` is the place in the run (the same text in every run);
/// `what` distinguishes two uses at one place.
pub fn random_u64(seed: u64, path: &str, attempt: u32, what: &str) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(seed, 0);
    for part in [&attempt.to_le_bytes()[..], path.as_bytes(), &[0], what.as_bytes()] {
        hasher.write(part);
    }
    hasher.finish()
}

/// A share of `whole`, from zero to all of it, uniform in the 64 bits of `draw`.
pub fn random_share(whole: Duration, draw: u64) -> Duration {
    let nanos = whole.as_nanos() * u128::from(draw) / u128::from(u64::MAX);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// A duration between the two bounds, both included.
pub fn random_duration(latency: Latency, draw: u64) -> Duration {
    latency.min + random_share(latency.max.saturating_sub(latency.min), draw)
}

/// Whether an event with this probability happens, from 0 (never) to 1 (always).
pub fn happens_with(share: f64, draw: u64) -> bool {
    share >= 1.0 || (draw as f64) < share * (u64::MAX as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draw_hashes_parts_in_order() {
        for (seed, path, attempt, what) in [
            (42, "message:1:risk_analyst", 1, "wait"),
            (0, "", 0, ""),
            (u64::MAX, "ü", 9, "a\u{0}"),
        ] {
            let mut bytes = u32::to_le_bytes(attempt).to_vec();
            bytes.extend_from_slice(path.as_bytes());
            bytes.push(0);
            bytes.extend_from_slice(what.as_bytes());
            let hash = SipHasher13::new_with_keys(seed, 0).hash(&bytes);
            assert_eq!(random_u64(seed, path, attempt, what), hash);
        }
    }

    #[test]
    fn draws_repeat_and_differ_by_part() {
        let first = random_u64(42, "message:1:risk_analyst", 1, "wait");
        assert_eq!(first, random_u64(42, "message:1:risk_analyst", 1, "wait"));
        for other in [
            random_u64(43, "message:1:risk_analyst", 1, "wait"),
            random_u64(42, "message:2:risk_analyst", 1, "wait"),
            random_u64(42, "message:1:risk_analyst", 2, "wait"),
            random_u64(42, "message:1:risk_analyst", 1, "model"),
        ] {
            assert_ne!(first, other);
        }
    }

    #[test]
    fn fraction_stays_between_zero_and_one() {
        let whole = Duration::from_millis(900);
        assert_eq!(random_share(whole, 0), Duration::ZERO);
        assert_eq!(random_share(whole, u64::MAX), whole);
        assert_eq!(random_share(Duration::ZERO, 7), Duration::ZERO);
    }

    #[test]
    fn happens_with_given_probability() {
        for draw in [0, 7, u64::MAX / 2, u64::MAX] {
            assert!(!happens_with(0.0, draw) && happens_with(1.0, draw) && happens_with(2.0, draw));
        }
        assert!(happens_with(0.5, u64::MAX / 4) && !happens_with(0.5, u64::MAX / 4 * 3));
    }
}
