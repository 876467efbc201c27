//! Dates as `YYYY-MM-DD`.

use std::fmt;
use std::str::FromStr;

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

#[cfg(test)]
mod tests {
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
}
