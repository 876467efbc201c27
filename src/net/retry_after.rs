//! Parses `Retry-After`, in seconds or as a date, and `retry-after-ms`.

use std::time::{Duration, SystemTime};

/// Upper bound: a longer wait, or one that does not fit a [`Duration`], becomes this. Thirty years
/// is longer than any run, and every clock can represent it.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// The wait that `Retry-After` asks for, at most [`MAX_RETRY_AFTER`].
///
/// A date is compared with the response's own `Date`, never with our clock, which may be wrong.
/// `None`: no header, not parseable, in the past, or a date without a `Date` header.
pub fn retry_after(value: Option<&str>, date: Option<&str>) -> Option<Duration> {
    let value = value?.trim();
    let wait = seconds(value).or_else(|| {
        let until: SystemTime = httpdate::parse_http_date(value).ok()?;
        let now = httpdate::parse_http_date(date?.trim()).ok()?;
        until.duration_since(now).ok().filter(|wait| !wait.is_zero())
    });
    wait.map(|wait| wait.min(MAX_RETRY_AFTER))
}

/// The wait that `retry-after-ms` asks for, at most [`MAX_RETRY_AFTER`]; `None` if it is not parseable.
/// OpenAI's clients read it before `Retry-After`, because it is more precise.
pub fn retry_after_ms(value: &str) -> Option<Duration> {
    seconds(value.trim()).map(|thousand| (thousand / 1_000).min(MAX_RETRY_AFTER))
}

/// Integer seconds as in the standard, or a decimal fraction, as some servers send.
fn seconds(value: &str) -> Option<Duration> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = match value.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(value),
    };
    if !plain {
        return None;
    }
    // Digits are neither negative nor NaN: what fails here is too long for a duration.
    Some(Duration::try_from_secs_f64(value.parse().ok()?).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_overlong_values() {
        let noon = Some("Wed, 21 Oct 2015 12:00:00 GMT");
        for value in [
            "946080001",
            "18446744073709551616",
            "99999999999999999999999999",
            "99999999999999999999999999.5",
            &"9".repeat(400),
            "Fri, 31 Dec 9999 23:59:59 GMT",
        ] {
            assert_eq!(retry_after(Some(value), noon), Some(MAX_RETRY_AFTER), "{value}");
        }
        let millis = u64::try_from(MAX_RETRY_AFTER.as_millis());
        assert!(millis.is_ok(), "it fits an event");
    }

    #[test]
    fn milliseconds_are_read_alike() {
        for (value, wait) in [
            ("1500", Some(1_500_000)),
            (" 20.5 ", Some(20_500)),
            ("0", Some(0)),
            ("-1", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(retry_after_ms(value), wait.map(Duration::from_micros), "{value}");
        }
        assert_eq!(retry_after_ms(&"9".repeat(60)), Some(MAX_RETRY_AFTER));
    }

    #[test]
    fn what_it_asks_for() {
        let noon = Some("Wed, 21 Oct 2015 12:00:00 GMT");
        for (value, date, wait) in [
            (Some("2"), None, Some(2_000)),
            (Some(" 120 "), noon, Some(120_000)),
            (Some("0"), None, Some(0)),
            (Some("1.5"), None, Some(1_500)),
            (Some("3600"), noon, Some(3_600_000)),
            (Some("Wed, 21 Oct 2015 12:00:30 GMT"), noon, Some(30_000)),
            // Obsolete formats that the standard still requires.
            (Some("Wednesday, 21-Oct-15 12:00:30 GMT"), noon, Some(30_000)),
            (Some("Wed Oct 21 12:00:30 2015"), noon, Some(30_000)),
            // Dates in the past, the present, or without a `Date`.
            (Some("Wed, 21 Oct 2015 11:59:59 GMT"), noon, None),
            (Some("Wed, 21 Oct 2015 12:00:00 GMT"), noon, None),
            (Some("Wed, 21 Oct 2015 12:00:30 GMT"), None, None),
            (Some("Wed, 21 Oct 2015 12:00:30 GMT"), Some("today"), None),
            // Not parseable.
            (Some(""), None, None),
            (Some("-5"), None, None),
            (Some("soon"), noon, None),
            (Some("1e9"), None, None),
            (Some("inf"), None, None),
            (Some("1."), None, None),
            (None, noon, None),
        ] {
            assert_eq!(
                retry_after(value, date),
                wait.map(Duration::from_millis),
                "{value:?} at {date:?}"
            );
        }
    }

    #[test]
    fn reads_seconds_and_refuses_other_words() {
        use std::time::Duration;
        assert_eq!(retry_after(Some("2"), None), Some(Duration::from_secs(2)));
        assert_eq!(retry_after(Some("soon"), None), None);
    }
}
