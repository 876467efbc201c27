//! `Retry-After`, as seconds or as a date.

use std::time::{Duration, SystemTime};

/// How long `Retry-After` asks to wait.
///
/// A date is measured against the answer's own `Date`, never against our clock, which may be off.
/// `None`: there is no header, it is nonsense, it lies in the past, or it is a date without a
/// `Date` beside it.
///
/// ```
/// use roundtable::net::retry_after::retry_after;
/// use std::time::Duration;
/// assert_eq!(retry_after(Some("2"), None), Some(Duration::from_secs(2)));
/// assert_eq!(retry_after(Some("soon"), None), None);
/// ```
pub fn retry_after(value: Option<&str>, date: Option<&str>) -> Option<Duration> {
    let value = value?.trim();
    seconds(value).or_else(|| {
        let until: SystemTime = httpdate::parse_http_date(value).ok()?;
        let now = httpdate::parse_http_date(date?.trim()).ok()?;
        until.duration_since(now).ok().filter(|wait| !wait.is_zero())
    })
}

/// Whole seconds, as the standard has them, or with a fraction, as some servers send them.
fn seconds(value: &str) -> Option<Duration> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = match value.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(value),
    };
    if !plain {
        return None;
    }
    Duration::try_from_secs_f64(value.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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
            // the old forms that the standard still wants read
            (Some("Wednesday, 21-Oct-15 12:00:30 GMT"), noon, Some(30_000)),
            (Some("Wed Oct 21 12:00:30 2015"), noon, Some(30_000)),
            // in the past, now, or against no date at all
            (Some("Wed, 21 Oct 2015 11:59:59 GMT"), noon, None),
            (Some("Wed, 21 Oct 2015 12:00:00 GMT"), noon, None),
            (Some("Wed, 21 Oct 2015 12:00:30 GMT"), None, None),
            (Some("Wed, 21 Oct 2015 12:00:30 GMT"), Some("today"), None),
            // nonsense
            (Some(""), None, None),
            (Some("-5"), None, None),
            (Some("soon"), noon, None),
            (Some("1e9"), None, None),
            (Some("inf"), None, None),
            (Some("1."), None, None),
            (Some("99999999999999999999999999"), None, None),
            (None, noon, None),
        ] {
            assert_eq!(
                retry_after(value, date),
                wait.map(Duration::from_millis),
                "{value:?} at {date:?}"
            );
        }
    }
}
