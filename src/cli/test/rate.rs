//! The share of runs that pass, and how sure it is.

/// Normal quantile of a two-sided interval of 95 %.
const Z: f64 = 1.959_964;

/// The Wilson score interval of 95 % for a share of which `passed` of `all` were seen. `None`
/// without any.
pub fn wilson(passed: usize, all: usize) -> Option<(f64, f64)> {
    if all == 0 {
        return None;
    }
    let (n, share) = (all as f64, passed as f64 / all as f64);
    let z2 = Z * Z;
    let middle = share + z2 / (2.0 * n);
    let spread = Z * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z2 / n;
    // At the ends the interval touches 0 or 1 exactly; the arithmetic only nearly.
    let low = if passed == 0 { 0.0 } else { (middle - spread) / scale };
    let high = if passed == all { 1.0 } else { (middle + spread) / scale };
    Some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures of the usual tables of this interval.
    #[test]
    fn the_interval_is_that_of_wilson() {
        for (passed, all, low, high) in [
            (0, 10, 0.0, 0.277_533),
            (10, 10, 0.722_467, 1.0),
            (5, 10, 0.236_593, 0.763_407),
            (90, 100, 0.825_635, 0.944_770),
            (1, 1, 0.206_549, 1.0),
        ] {
            let (found_low, found_high) = wilson(passed, all).expect("runs");
            assert!((found_low - low).abs() < 1e-4, "{passed}/{all}: {found_low}");
            assert!((found_high - high).abs() < 1e-4, "{passed}/{all}: {found_high}");
        }
        assert_eq!(wilson(0, 0), None);
    }
}
