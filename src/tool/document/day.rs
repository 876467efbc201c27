//! Days as `YYYY-MM-DD`.

use std::time::{SystemTime, UNIX_EPOCH};

/// The day that a date of ISO 8601 begins with: `2026-02-10`, `2026-02-10T08:00:00Z`. `None` for
/// what is no day of the calendar, or goes on otherwise.
///
/// ```
/// use roundtable::tool::document::day::iso;
/// assert_eq!(iso(" 2026-02-10T08:00:00+01:00 ").as_deref(), Some("2026-02-10"));
/// assert_eq!(iso("2026-02-30"), None);
/// assert_eq!(iso("10 February"), None);
/// ```
pub fn iso(text: &str) -> Option<String> {
    let text = text.trim();
    let day = text.get(..10)?;
    let after = text.get(10..)?;
    if !(after.is_empty() || after.starts_with(['T', 't', ' '])) {
        return None;
    }
    let part = |from: usize, to: usize| -> Option<u32> {
        let digits = day.get(from..to)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let dashed = day.get(4..5) == Some("-") && day.get(7..8) == Some("-");
    let (year, month, of_month) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let last = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        _ => return None,
    };
    (dashed && (1..=last).contains(&of_month)).then(|| day.to_owned())
}

/// The day of a moment, in UTC; `None` before 1970.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use roundtable::tool::document::day::of_time;
/// let leap_day = UNIX_EPOCH + Duration::from_secs(1_709_164_800);
/// assert_eq!(of_time(leap_day).as_deref(), Some("2024-02-29"));
/// ```
pub fn of_time(time: SystemTime) -> Option<String> {
    let days = time.duration_since(UNIX_EPOCH).ok()?.as_secs() / 86_400;
    // Counted from 1 March of the year 0, so that a leap day is the last of its year; an era is the
    // 400 years after which the calendar repeats.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    Some(format!("{year:04}-{month:02}-{of_month:02}"))
}

/// The day of an HTTP date such as that of `Last-Modified`; `None` for what is none.
pub fn of_http(date: &str) -> Option<String> {
    of_time(httpdate::parse_http_date(date.trim()).ok()?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_no_day_is_none() {
        for (text, is_day) in [
            ("2024-02-29", true),
            ("2023-02-29", false),
            ("1900-02-29", false),
            ("2000-02-29 12:00", true),
            ("2026-13-01", false),
            ("2026-00-10", false),
            ("2026-04-31", false),
            ("2026-04-00", false),
            ("2026-4-1", false),
            ("2026-04-010", false),
            ("2026/04/01", false),
            ("+026-04-01", false),
            ("", false),
            ("yesterday!", false),
            ("２０２６-04", false),
        ] {
            assert_eq!(iso(text).is_some(), is_day, "{text}");
        }
    }

    #[test]
    fn every_day_of_four_centuries_is_the_next_of_the_one_before() {
        let mut before = of_time(UNIX_EPOCH).expect("a day");
        assert_eq!(before, "1970-01-01");
        for day in 1..146_097_u64 {
            let now = of_time(UNIX_EPOCH + Duration::from_secs(day * 86_400)).expect("a day");
            assert!(now > before && iso(&now).is_some(), "{before} {now}");
            before = now;
        }
        assert_eq!(before, "2369-12-31");
    }

    #[test]
    fn dates_of_http() {
        assert_eq!(of_http("Sun, 06 Nov 1994 08:49:37 GMT").as_deref(), Some("1994-11-06"));
        assert_eq!(of_http("last week"), None);
    }
}
