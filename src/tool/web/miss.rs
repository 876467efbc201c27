//! Pages that cannot be had for a reason of their own: an answer, no failure of the reader, which
//! has done what was asked. And what is one: [`Ended`].

use std::borrow::Cow;
use std::fmt::Display;

use serde_json::{Value, json};

use crate::event::kind::AttemptFailed;
use crate::event::visible::visible_within;
use crate::net::Redactor;

/// Why a page cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    InvalidUrl,
    NotFound,
    /// Another status that says that asking again is of no use, or not now.
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

impl Why {
    /// Its word in an answer.
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

/// A page that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missed {
    pub(super) why: Why,
    /// What it was, in words.
    pub(super) text: String,
    /// Where a redirect leads that is not followed.
    pub(super) location: Option<String>,
}

/// The most characters of what is told of a page.
const TEXT_CHARS: usize = 300;
/// The most characters of an address that a text repeats.
const ADDRESS_CHARS: usize = 160;

impl Missed {
    pub(super) fn new(why: Why, text: impl AsRef<str>) -> Self {
        Self { why, text: visible_within(text.as_ref(), TEXT_CHARS), location: None }
    }

    /// With where a redirect leads.
    pub(super) fn leading(self, location: impl Display) -> Self {
        Self { location: Some(shown(location)), ..self }
    }

    /// The answer.
    pub(super) fn answer(&self) -> Value {
        let mut answer = json!({ "status": "error", "error": self.why.word(), "text": self.text });
        if let (Some(location), Some(fields)) = (&self.location, answer.as_object_mut()) {
            fields.insert("location".to_owned(), Value::from(location.as_str()));
        }
        answer
    }
}

/// An address as a text may repeat it: without what may be a secret.
pub(super) fn shown(address: impl Display) -> String {
    visible_within(&Redactor::default().redact(&address.to_string()), ADDRESS_CHARS)
}

/// No page: for a reason of its own, or because the attempt failed.
#[derive(Debug)]
pub(super) enum Ended {
    Missed(Missed),
    Failed(Box<AttemptFailed>),
}

impl From<Missed> for Ended {
    fn from(missed: Missed) -> Self {
        Self::Missed(missed)
    }
}

impl From<Box<AttemptFailed>> for Ended {
    fn from(failed: Box<AttemptFailed>) -> Self {
        Self::Failed(failed)
    }
}
