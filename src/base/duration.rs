//! Durations in words.

use std::time::Duration;

/// A duration in at most six columns: `0.4ms`, `85ms`, `0.18s`, `2.1s`, `41.7s`, `3m05s`, `2h07m`.
pub fn duration_text(time: Duration) -> String {
    let micros = time.as_micros();
    let seconds = time.as_secs();
    match micros {
        0..100 => "0s".to_owned(),
        100..1_000 => format!("0.{}ms", micros / 100),
        1_000..100_000 => format!("{}ms", micros / 1_000),
        100_000..1_000_000 => format!("0.{:02}s", micros / 10_000),
        1_000_000..60_000_000 => format!("{seconds}.{}s", time.subsec_millis() / 100),
        60_000_000..3_600_000_000 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}
