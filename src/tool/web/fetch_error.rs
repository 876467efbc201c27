//! Pages that cannot be read for a reason of their own. That is a result of the reader, not a
//! failure of the tool; [`FetchFailure`] has both.

use std::borrow::Cow;
use std::fmt::Display;

use serde_json::{Value, json};

use crate::base::visible::visible_within;
use crate::event::kind::AttemptFailed;
use crate::net::Redactor;

/// Why a page cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FetchErrorKind {
    InvalidUrl,
    NotFound,
    /// Another status for which a retry is useless, or useless now.
    Status(u16),
    RobotsDisallowed,
    RedirectDenied,
    RedirectLoop,
    TooManyRedirects,
    PrivateAddress,
    ContentType,
    Charset,
    EmptyPage,
    Unreadable,
}

impl FetchErrorKind {
    /// Identifier in the result.
    fn word(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::InvalidUrl => "invalid_url",
            Self::NotFound => "not_found",
            Self::Status(status) => return Cow::Owned(format!("http_{status}")),
            Self::RobotsDisallowed => "robots_disallowed",
            Self::RedirectDenied => "redirect_denied",
            Self::RedirectLoop => "redirect_loop",
            Self::TooManyRedirects => "too_many_redirects",
            Self::PrivateAddress => "private_address",
            Self::ContentType => "content_type",
            Self::Charset => "charset",
            Self::EmptyPage => "empty_page",
            Self::Unreadable => "unreadable",
        })
    }
}

/// A page that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FetchError {
    pub(super) kind: FetchErrorKind,
    /// The reason in words.
    pub(super) text: String,
    /// Target of a redirect that is not followed.
    pub(super) location: Option<String>,
}

/// Most characters of a reason's text.
const TEXT_CHARS: usize = 300;
/// Most characters of an address that a text quotes.
const ADDRESS_CHARS: usize = 160;

impl FetchError {
    pub(super) fn new(kind: FetchErrorKind, text: impl AsRef<str>) -> Self {
        Self { kind, text: visible_within(text.as_ref(), TEXT_CHARS), location: None }
    }

    /// Adds the target of the redirect.
    pub(super) fn with_location(self, location: impl Display) -> Self {
        Self { location: Some(redacted_address(location)), ..self }
    }

    /// The result of the tool.
    pub(super) fn to_result(&self) -> Value {
        let mut answer = json!({ "status": "error", "error": self.kind.word(), "text": self.text });
        if let (Some(location), Some(fields)) = (&self.location, answer.as_object_mut()) {
            fields.insert("location".to_owned(), Value::from(location.as_str()));
        }
        answer
    }
}

/// An address for display, its secrets redacted and cut to a maximum length.
pub(super) fn redacted_address(address: impl Display) -> String {
    visible_within(&Redactor::default().redact(&address.to_string()), ADDRESS_CHARS)
}

/// Why there is no page: the page cannot be read, or the attempt failed.
#[derive(Debug)]
pub(super) enum FetchFailure {
    Page(FetchError),
    Attempt(Box<AttemptFailed>),
}

impl From<FetchError> for FetchFailure {
    fn from(missed: FetchError) -> Self {
        Self::Page(missed)
    }
}

impl From<Box<AttemptFailed>> for FetchFailure {
    fn from(failed: Box<AttemptFailed>) -> Self {
        Self::Attempt(failed)
    }
}
