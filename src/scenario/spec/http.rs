//! Requests that a tool makes over HTTP.

use std::collections::BTreeMap;

/// An HTTP request.
#[derive(Debug, Clone)]
pub struct HttpSpec {
    /// The method, such as `GET`.
    pub method: HttpMethod,
    /// The URL; `{name}` is replaced by the argument of that name, percent-encoded.
    pub url: String,
    /// Headers by name.
    pub headers: BTreeMap<String, Setting>,
    /// Whether the arguments are sent as a JSON body.
    pub send_args: bool,
    /// Where the result is in the response, as a JSON pointer; empty: the whole response.
    pub pointer: String,
    /// Maximum size of the response, in bytes.
    pub max_bytes: u64,
    /// Whether it may connect to loopback, private and link-local addresses.
    pub allow_private: bool,
}

/// Methods of an HTTP tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    /// `GET`
    Get,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `DELETE`
    Delete,
}

impl HttpMethod {
    /// The method as requests spell it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

/// The value of a header, or of a variable of a program's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// The string in the file.
    Text(String),
    /// The value of this environment variable; it is a secret.
    Env(String),
}
