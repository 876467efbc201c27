//! Network errors by cause, and the wait that a response asks for. No message contains more of a URL
//! than its host.

use std::error::Error as StdError;
use std::io;
use std::time::{Duration, SystemTime};

use super::OutOfReach;

/// Why a request got no complete response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetError {
    /// The name of the host does not resolve.
    #[error("the name {host} does not resolve")]
    Resolve {
        /// Host of the request.
        host: String,
    },
    /// Refused or unreachable: nothing was sent.
    #[error("no connection to {host}: {why}")]
    Connect {
        /// Host of the request.
        host: String,
        /// Error text of the system.
        why: String,
    },
    /// The proxy is not reachable, or it refused to connect to the host.
    #[error("no connection to {host} through the proxy {proxy}: {why}")]
    Proxy {
        /// Host of the request.
        host: String,
        /// Host of the proxy, with its port.
        proxy: String,
        /// Error text of the system.
        why: String,
    },
    /// The proxies of the environment cannot be used: nothing was sent.
    #[error("{why}")]
    UnusableProxy {
        /// The variable, and why.
        why: String,
    },
    /// No address of the host is allowed; no connection was opened.
    #[error("{host} is not allowed: {why}")]
    OutOfReach {
        /// Host of the request.
        host: String,
        /// The address, and why it is not allowed.
        why: String,
    },
    /// The TLS handshake failed: nothing of the request was sent.
    #[error("TLS handshake with {host} failed: {why}")]
    Tls {
        /// Host of the request.
        host: String,
        /// What failed.
        why: String,
    },
    /// The connection broke after the request was sent, in whole or in part.
    #[error("the connection to {host} broke: {why}")]
    Broken {
        /// Host of the request.
        host: String,
        /// Error text of the client library.
        why: String,
    },
    /// The response is not HTTP.
    #[error("the reply of {host} is not HTTP: {why}")]
    NotHttp {
        /// Host of the request.
        host: String,
        /// Error text of the parser.
        why: String,
    },
    /// The body is not compressed as its header says, or in a way that is not supported.
    #[error("the reply of {host} is compressed and cannot be read: {why}")]
    Encoding {
        /// Host of the request.
        host: String,
        /// What is wrong.
        why: String,
    },
    /// The body is larger than the limit; the rest was not read.
    #[error("the body is larger than its cap of {}", size(*.cap))]
    TooLarge {
        /// Limit in bytes.
        cap: usize,
    },
    /// The client cannot be built, or cannot send this request.
    #[error("no HTTP client: {why}")]
    Client {
        /// Error text of the client library.
        why: String,
    },
}

/// A size in readable units: `512 bytes`, `64 KiB`, `8 MiB`.
pub fn size(bytes: usize) -> String {
    const KIB: usize = 1 << 10;
    const MIB: usize = 1 << 20;
    match bytes {
        n if n >= MIB && n % MIB == 0 => format!("{} MiB", n / MIB),
        n if n >= KIB && n % KIB == 0 => format!("{} KiB", n / KIB),
        n => format!("{n} bytes"),
    }
}

impl NetError {
    /// Failure class, as events spell it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Resolve { .. } => "resolve",
            Self::Connect { .. } | Self::Proxy { .. } => "connect",
            // No request was sent: the scenario has to change, not the server.
            Self::OutOfReach { .. } | Self::UnusableProxy { .. } => "denied",
            Self::Tls { .. } | Self::Client { .. } => "tls",
            Self::Broken { .. } => "reset",
            Self::NotHttp { .. } | Self::Encoding { .. } => "bad_response",
            Self::TooLarge { .. } => "too_large",
        }
    }

    /// An error of decompression.
    pub(super) fn from_decoder(error: &io::Error, host: &str) -> Self {
        Self::Encoding { host: host.to_owned(), why: error.to_string() }
    }

    /// The error of a request that went through this proxy: where the connection failed, it is the
    /// proxy's.
    pub(crate) fn through(self, proxy: &str) -> Self {
        let behind = |host: String| format!("{host} (through the proxy {proxy})");
        let proxy = proxy.to_owned();
        match self {
            Self::Connect { host, why } => Self::Proxy { host, proxy, why },
            Self::Resolve { host } => Self::Proxy {
                host,
                proxy,
                why: "the name of the proxy does not resolve".to_owned(),
            },
            Self::Tls { host, why } => Self::Tls { host: behind(host), why },
            Self::Broken { host, why } => Self::Broken { host: behind(host), why },
            Self::NotHttp { host, why } => Self::NotHttp { host: behind(host), why },
            other => other,
        }
    }

    /// Classifies an error of the client library. Its URL is ignored; `host` is used in its place.
    pub(crate) fn from_reqwest(error: &reqwest::Error, host: &str) -> Self {
        let host = host.to_owned();
        let mut found = ErrorChain::of_reqwest(error);
        let why = found.why.take().unwrap_or_else(|| "unknown reason".to_owned());
        if found.out_of_reach {
            Self::OutOfReach { host, why }
        } else if error.is_dns() {
            Self::Resolve { host }
        } else if error.is_builder() {
            Self::Client { why }
        } else if found.tls && (error.is_connect() || error.is_request()) {
            Self::Tls { host, why }
        } else if error.is_connect() {
            match found.io {
                // Before the request is sent, only a handshake can reach an end of file.
                Some(io::ErrorKind::UnexpectedEof) => {
                    Self::Tls { host, why: "the handshake ended early".to_owned() }
                }
                _ => Self::Connect { host, why },
            }
        } else if found.not_http || (found.is_invalid_data() && !found.tls) {
            Self::NotHttp { host, why }
        } else {
            Self::Broken { host, why }
        }
    }
}

/// Findings in a chain of error sources.
#[derive(Default)]
struct ErrorChain {
    /// Text of the innermost error.
    why: Option<String>,
    /// Innermost kind of I/O error.
    io: Option<io::ErrorKind>,
    tls: bool,
    not_http: bool,
    out_of_reach: bool,
}

impl ErrorChain {
    fn of_reqwest(error: &reqwest::Error) -> Self {
        let mut found = Self::default();
        // The outermost error is skipped: its text contains the whole URL.
        let mut next = error.source();
        while let Some(error) = next {
            found.inspect(error);
            // An `io::Error` that wraps another error returns that error's source, so the wrapped
            // error is only reachable through `get_ref`.
            next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
                Some(inner) => Some(inner as &(dyn StdError + 'static)),
                None => error.source(),
            };
        }
        found
    }

    /// Whether the error is one of those caused by invalid chunks.
    fn is_invalid_data(&self) -> bool {
        matches!(self.io, Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData))
    }

    fn inspect(&mut self, error: &(dyn StdError + 'static)) {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            self.io = Some(io.kind());
        }
        if error.is::<rustls::Error>() {
            self.tls = true;
        }
        if error.is::<OutOfReach>() {
            self.out_of_reach = true;
        }
        if let Some(hyper) = error.downcast_ref::<hyper::Error>() {
            self.not_http |= hyper.is_parse();
        }
        self.why = Some(without_number(&error.to_string()).to_owned());
    }
}

/// The text of an I/O error without the number that the standard library adds.
fn without_number(text: &str) -> &str {
    text.split_once(" (os error ").map_or(text, |(text, _)| text)
}

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
    fn error_omits_system_number() {
        let refused = io::Error::from_raw_os_error(111).to_string();
        assert!(refused.contains("os error"), "{refused}");
        assert!(!without_number(&refused).contains("os error"), "{refused}");
        assert_eq!(without_number("unknown reason"), "unknown reason");
    }

    #[test]
    fn sizes_are_for_people() {
        assert_eq!(size(8 << 20), "8 MiB");
        assert_eq!(size(64 << 10), "64 KiB");
        assert_eq!(size(1000), "1000 bytes");
        assert_eq!(
            NetError::TooLarge { cap: 8 << 20 }.to_string(),
            "the body is larger than its cap of 8 MiB"
        );
    }

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
