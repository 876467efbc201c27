//! Paired measurements: two things timed in turn, A B A B …, so that a ratio holds while the
//! machine's speed drifts. A ratio is judged ([`held`]), an absolute figure only printed.
#![allow(dead_code, reason = "each bench uses a part")]

use std::path::Path;
use std::time::{Duration, Instant};

/// The times of two things, round by round.
pub struct Pairs {
    times: Vec<(Duration, Duration)>,
}

/// Times `a` and `b` in turn after one uncounted round of each. Each returns its own time, so that
/// what it sets up is left out.
pub fn pairs(
    rounds: usize,
    mut a: impl FnMut() -> Duration,
    mut b: impl FnMut() -> Duration,
) -> Pairs {
    a();
    b();
    Pairs { times: (0..rounds).map(|_| (a(), b())).collect() }
}

/// The time that something takes.
pub fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// CPU time of this process, all its threads.
#[cfg(unix)]
pub fn cpu() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), u32::try_from(spent.tv_nsec).unwrap_or(0))
}

/// Wall time, where there is nothing better.
#[cfg(not(unix))]
pub fn cpu() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

/// The middle of some figures.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

impl Pairs {
    /// The median of the ratios a/b, pair by pair.
    pub fn ratio(&self) -> f64 {
        median(self.times.iter().map(|(a, b)| a.as_secs_f64() / b.as_secs_f64()).collect())
    }

    /// The medians of both, in seconds.
    pub fn medians(&self) -> (f64, f64) {
        (
            median(self.times.iter().map(|(a, _)| a.as_secs_f64()).collect()),
            median(self.times.iter().map(|(_, b)| b.as_secs_f64()).collect()),
        )
    }
}

/// Variables that keep what the program stores away from the folders of the user.
pub fn own_folders(folder: &Path) -> [(&'static str, &Path); 5] {
    ["HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"]
        .map(|name| (name, folder))
}

/// One line of a report: what was measured, what came out, what it is held to.
pub fn report(what: &str, measured: &str, bound: &str) {
    println!("{what:<58} {measured:>26}   bound {bound}");
}

/// Whether every ratio keeps to its bound; says which does not.
pub fn held(ratios: &[(&str, f64, f64)]) -> std::process::ExitCode {
    let past: Vec<_> = ratios.iter().filter(|(_, ratio, bound)| ratio > bound).collect();
    for (what, ratio, bound) in &past {
        eprintln!("past its bound: {what}: {ratio:.2}x, at most {bound}x");
    }
    if past.is_empty() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}
