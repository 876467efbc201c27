//! What can go wrong on the wire, by its cause. No text here holds more of an address than its host.

use std::error::Error as StdError;
use std::io;

use super::reach::OutOfReach;

/// A request that got no whole answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetError {
    /// The name of the host does not resolve.
    #[error("the name {host} does not resolve")]
    Resolve {
        /// The host that was asked.
        host: String,
    },
    /// Refused or unreachable: nothing of the request was sent.
    #[error("no connection to {host}: {why}")]
    Connect {
        /// The host that was asked.
        host: String,
        /// The system's words.
        why: String,
    },
    /// The host has no address that may be reached; nothing was connected to.
    #[error("{host} is refused: {why}")]
    OutOfReach {
        /// The host that was asked.
        host: String,
        /// Which address, and why not.
        why: String,
    },
    /// The TLS handshake failed: nothing of the request was sent.
    #[error("no TLS with {host}: {why}")]
    Tls {
        /// The host that was asked.
        host: String,
        /// What failed.
        why: String,
    },
    /// The connection broke after the request, or a part of it, had been sent.
    #[error("the connection to {host} broke: {why}")]
    Broken {
        /// The host that was asked.
        host: String,
        /// How.
        why: String,
    },
    /// What came is no HTTP.
    #[error("{host} answered something that is not HTTP: {why}")]
    NotHttp {
        /// The host that was asked.
        host: String,
        /// What the parser said.
        why: String,
    },
    /// The body is larger than its cap; the rest was not read.
    #[error("the body is larger than its cap of {}", size(*.cap))]
    TooLarge {
        /// In bytes.
        cap: usize,
    },
    /// The client itself cannot be built or cannot send this request.
    #[error("no HTTP client: {why}")]
    Client {
        /// Why not.
        why: String,
    },
}

/// A number of bytes for people: `512 bytes`, `64 KiB`, `8 MiB`.
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
    /// The class of failure that it is, in the word that facts have for it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Resolve { .. } => "resolve",
            Self::Connect { .. } => "connect",
            // Nobody was asked: what the scenario names has to change, not who would have answered.
            Self::OutOfReach { .. } => "denied",
            Self::Tls { .. } | Self::Client { .. } => "tls",
            Self::Broken { .. } => "reset",
            Self::NotHttp { .. } => "bad_response",
            Self::TooLarge { .. } => "too_large",
        }
    }

    /// Which of these an error of the client is. Its address is never looked at: `host` stands for
    /// it.
    pub(super) fn of(error: &reqwest::Error, host: &str) -> Self {
        let host = host.to_owned();
        let mut found = Found::in_chain(error);
        let why = found.why.take().unwrap_or_else(|| "for no known reason".to_owned());
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
                // A handshake is all that can meet an end of file before the request is sent.
                Some(io::ErrorKind::UnexpectedEof) => {
                    Self::Tls { host, why: "the handshake was cut off".to_owned() }
                }
                _ => Self::Connect { host, why },
            }
        } else if found.not_http || (found.garbled() && !found.tls) {
            Self::NotHttp { host, why }
        } else {
            Self::Broken { host, why }
        }
    }
}

/// What a chain of errors tells.
#[derive(Default)]
struct Found {
    /// The words of the innermost error.
    why: Option<String>,
    /// The innermost kind of I/O error.
    io: Option<io::ErrorKind>,
    tls: bool,
    not_http: bool,
    out_of_reach: bool,
}

impl Found {
    fn in_chain(error: &reqwest::Error) -> Self {
        let mut found = Self::default();
        // The outermost is skipped: its text holds the whole address.
        let mut next = error.source();
        while let Some(error) = next {
            found.look_at(error);
            // An `io::Error` that wraps another error has that one's source, so the one in between
            // is only reached through `get_ref`.
            next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
                Some(inner) => Some(inner as &(dyn StdError + 'static)),
                None => error.source(),
            };
        }
        found
    }

    /// A body in chunks that are none ends in one of these.
    fn garbled(&self) -> bool {
        matches!(self.io, Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData))
    }

    fn look_at(&mut self, error: &(dyn StdError + 'static)) {
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
        self.why = Some(error.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
