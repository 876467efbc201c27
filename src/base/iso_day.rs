//! Dates as they are written in documents and in headers, as `YYYY-MM-DD`.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::base::day::Day;

/// The date at the start of an ISO 8601 text: `2026-02-10`, `2026-02-10T08:00:00Z`. `None` if it is
/// not a calendar date, or is followed by something else.
pub fn from_iso(text: &str) -> Option<String> {
    let text = text.trim();
    let day = text.get(..10)?;
    let after = text.get(10..)?;
    if !(after.is_empty() || after.starts_with(['T', 't', ' '])) {
        return None;
    }
    Some(day.parse::<Day>().ok()?.to_string())
}

/// The date of a time in UTC; `None` before 1970.
pub fn from_time(time: SystemTime) -> Option<String> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    Some(Day::from_unix_ms(u64::try_from(since.as_millis()).ok()?).to_string())
}

/// The date of an HTTP date such as `Last-Modified`; `None` if it is not valid.
pub fn from_http_date(date: &str) -> Option<String> {
    from_time(httpdate::parse_http_date(date.trim()).ok()?)
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
            assert_eq!(from_iso(text).is_some(), is_day, "{text}");
        }
    }

    #[test]
    fn every_day_of_four_centuries_is_the_next_of_the_one_before() {
        let mut before = from_time(UNIX_EPOCH).expect("a day");
        assert_eq!(before, "1970-01-01");
        for day in 1..146_097_u64 {
            let now = from_time(UNIX_EPOCH + Duration::from_secs(day * 86_400)).expect("a day");
            assert!(now > before && from_iso(&now).is_some(), "{before} {now}");
            before = now;
        }
        assert_eq!(before, "2369-12-31");
    }

    #[test]
    fn dates_of_http() {
        assert_eq!(from_http_date("Sun, 06 Nov 1994 08:49:37 GMT").as_deref(), Some("1994-11-06"));
        assert_eq!(from_http_date("last week"), None);
    }

    #[test]
    fn a_date_is_read_and_an_impossible_one_is_not() {
        assert_eq!(from_iso(" 2026-02-10T08:00:00+01:00 ").as_deref(), Some("2026-02-10"));
        assert_eq!(from_iso("2026-02-30"), None);
        assert_eq!(from_iso("10 February"), None);
    }

    #[test]
    fn a_time_gives_its_day() {
        use std::time::{Duration, UNIX_EPOCH};

        let leap_day = UNIX_EPOCH + Duration::from_secs(1_709_164_800);
        assert_eq!(from_time(leap_day).as_deref(), Some("2024-02-29"));
    }
}
