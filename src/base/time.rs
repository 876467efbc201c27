//! Dates as `YYYY-MM-DD` (of documents and of HTTP headers), durations in words, and the wall
//! clock, for what outlives the process.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use time::{Date, Month, OffsetDateTime};

/// A date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(Date);

/// The error for a text that is not a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a date as YYYY-MM-DD")]
pub struct InvalidDay;

impl FromStr for Day {
    type Err = InvalidDay;

    fn from_str(text: &str) -> Result<Self, InvalidDay> {
        let bytes = text.as_bytes();
        let shaped = bytes.len() == 10
            && bytes.iter().enumerate().all(|(at, byte)| match at {
                4 | 7 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        if !shaped {
            return Err(InvalidDay);
        }
        let number = |range| text.get(range).and_then(|digits: &str| digits.parse::<u16>().ok());
        let day = || {
            let month = Month::try_from(u8::try_from(number(5..7)?).ok()?).ok()?;
            let day = u8::try_from(number(8..10)?).ok()?;
            Date::from_calendar_date(i32::from(number(0..4)?), month, day).ok()
        };
        day().map(Self).ok_or(InvalidDay)
    }
}

impl Day {
    /// The date in UTC at this Unix time in milliseconds.
    pub fn from_unix_ms(wall_ms: u64) -> Self {
        let seconds = i64::try_from(wall_ms / 1_000).unwrap_or(i64::MAX);
        let moment = OffsetDateTime::from_unix_timestamp(seconds);
        Self(moment.unwrap_or(OffsetDateTime::UNIX_EPOCH).date())
    }

    /// Days since an earlier date; negative if that date is later.
    pub fn days_since(self, earlier: Day) -> i64 {
        i64::from(self.0.to_julian_day()) - i64::from(earlier.0.to_julian_day())
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.0.year(), u8::from(self.0.month()), self.0.day())
    }
}

/// The date at the start of an ISO 8601 text: `2026-02-10`, `2026-02-10T08:00:00Z`. `None` if it is
/// not a calendar date, or is followed by something else.
pub fn date_from_iso(text: &str) -> Option<String> {
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

/// Returns the current time. Code that may read the system's clock passes it down, so that tools do
/// not read the clock themselves.
pub type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// The time of the wall clock, as Unix time in milliseconds.
pub fn now_ms() -> u64 {
    unix_ms(SystemTime::now())
}

/// A time as Unix time in milliseconds; 0 before 1970.
pub fn unix_ms(time: SystemTime) -> u64 {
    millis(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// A Unix time in milliseconds as date and time in UTC: `2026-02-10 08:00:00 UTC`.
pub fn utc_text(wall_ms: u64) -> String {
    let second = wall_ms / 1_000 % 86_400;
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!("{} {hour:02}:{minute:02}:{:02} UTC", Day::from_unix_ms(wall_ms), second % 60)
}

/// A duration in whole milliseconds, as events carry it, rounded down.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A duration as whole milliseconds in JSON.
pub mod as_millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes it, rounded down.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(super::millis(*duration))
    }

    /// Reads it.
    ///
    /// # Errors
    /// It is not a whole number.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }

    /// The same for a duration that may be absent: `null`.
    pub mod option {
        use super::{Deserialize, Deserializer, Duration, Serializer};

        /// Writes it, rounded down.
        ///
        /// # Errors
        /// Those of the serializer.
        pub fn serialize<S: Serializer>(
            duration: &Option<Duration>,
            to: S,
        ) -> Result<S::Ok, S::Error> {
            match duration {
                Some(duration) => super::serialize(duration, to),
                None => to.serialize_none(),
            }
        }

        /// Reads it.
        ///
        /// # Errors
        /// It is neither a whole number nor `null`.
        pub fn deserialize<'de, D: Deserializer<'de>>(
            from: D,
        ) -> Result<Option<Duration>, D::Error> {
            Ok(Option::<u64>::deserialize(from)?.map(Duration::from_millis))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn days_are_read_told_and_counted() {
        let day = |text: &str| text.parse::<Day>();
        for text in ["2026-03-07", "2024-02-29", "0001-01-01"] {
            assert_eq!(day(text).expect(text).to_string(), text);
        }
        for text in ["", "2026-3-7", "2026-02-29", "2026-13-01", "2026-03-07T00", "+026-03-07"] {
            assert_eq!(day(text), Err(InvalidDay), "{text}");
        }
        let since = |later: &str, earlier: &str| {
            day(later).expect(later).days_since(day(earlier).expect(earlier))
        };
        assert_eq!(since("2026-03-07", "2026-01-15"), 51);
        assert_eq!(since("2026-01-15", "2026-03-07"), -51);
        assert_eq!(since("2024-03-01", "2024-02-28"), 2);
        assert_eq!(Day::from_unix_ms(0).to_string(), "1970-01-01");
        assert_eq!(Day::from_unix_ms(1_772_841_600_000).to_string(), "2026-03-07");
    }

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
            assert_eq!(date_from_iso(text).is_some(), is_day, "{text}");
        }
    }

    #[test]
    fn consecutive_days_follow_each_other() {
        let mut before = from_time(UNIX_EPOCH).expect("a day");
        assert_eq!(before, "1970-01-01");
        for day in 1..146_097_u64 {
            let now = from_time(UNIX_EPOCH + Duration::from_secs(day * 86_400)).expect("a day");
            assert!(now > before && date_from_iso(&now).is_some(), "{before} {now}");
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
    fn parses_dates_and_rejects_impossible_ones() {
        assert_eq!(date_from_iso(" 2026-02-10T08:00:00+01:00 ").as_deref(), Some("2026-02-10"));
        assert_eq!(date_from_iso("2026-02-30"), None);
        assert_eq!(date_from_iso("10 February"), None);
    }

    #[test]
    fn a_time_gives_its_day() {
        use std::time::{Duration, UNIX_EPOCH};

        let leap_day = UNIX_EPOCH + Duration::from_secs(1_709_164_800);
        assert_eq!(from_time(leap_day).as_deref(), Some("2024-02-29"));
    }
}
