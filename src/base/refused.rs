//! Why something was not done: what is wrong, what to do, and the cause chained below. The error type of
//! `host`, `cluster`, `terminal` and `cli`: their callers print it and treat all errors the same.

use std::error::Error;
use std::fmt;

use super::visible::visible_within;

/// Longest line of a layout, in characters: a cause may quote a log or a server.
const LINE_CHARS: usize = 1_000;

type Cause = Box<dyn Error + Send + Sync>;

/// Why something was not done. `{}` is what is wrong; `{:#}` is what is wrong, the causes and the help, one
/// after another.
#[derive(Debug)]
pub struct Refused {
    /// What is wrong, in one sentence without a full stop.
    pub what: String,
    /// What to do about it.
    pub help: Option<String>,
    pub source: Option<Cause>,
}

impl Refused {
    /// An error without a cause and without help.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), help: None, source: None }
    }

    /// Sets what to do; it replaces the help of a cause.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()).filter(|help| !help.is_empty()).or(self.help), ..self }
    }

    /// Sets the cause, and takes over its help if this error has none.
    #[must_use]
    pub fn because(self, cause: impl Into<Cause>) -> Self {
        let cause = cause.into();
        let of_cause = cause.downcast_ref::<Self>().and_then(|cause| cause.help.clone());
        Self { help: self.help.or(of_cause), source: Some(cause), ..self }
    }

    /// The causes, the nearest first. One that its error repeats is left out.
    fn causes(&self) -> Vec<String> {
        let mut texts = Vec::new();
        let (mut above, mut cause) = (self.what.clone(), self.source());
        while let Some(error) = cause {
            let text = error.to_string();
            if !above.contains(&text) {
                above.clone_from(&text);
                texts.push(text);
            }
            cause = error.source();
        }
        texts
    }

    /// What is wrong and the causes, one after another.
    pub fn without_help(&self) -> String {
        std::iter::once(self.what.clone()).chain(self.causes()).collect::<Vec<_>>().join(": ")
    }

    /// Its layout on a terminal: what is wrong, then a line for each cause and for the help. Each can be
    /// printed as it is.
    pub fn lines(&self) -> Vec<String> {
        let causes = self.causes().into_iter().map(|cause| format!("cause: {cause}"));
        let help = self.help.iter().map(|help| format!("help: {help}"));
        let lines = std::iter::once(self.what.clone()).chain(causes).chain(help);
        lines.map(|line| visible_within(&line, LINE_CHARS)).collect()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (f.alternate(), &self.help) {
            (false, _) => f.write_str(&self.what),
            (true, None) => f.write_str(&self.without_help()),
            (true, Some(help)) => write!(f, "{}; {help}", self.without_help()),
        }
    }
}

impl Error for Refused {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|cause| cause as _)
    }
}

/// Makes a [`Refused`] of something that failed or is missing.
pub trait OrRefuse<T> {
    /// Says what is wrong; the error becomes the cause.
    fn or_refuse(self, what: impl fmt::Display) -> Result<T, Refused>;
}

impl<T, E: Into<Cause>> OrRefuse<T> for Result<T, E> {
    fn or_refuse(self, what: impl fmt::Display) -> Result<T, Refused> {
        self.map_err(|cause| Refused::new(what.to_string()).because(cause))
    }
}

impl<T> OrRefuse<T> for Option<T> {
    fn or_refuse(self, what: impl fmt::Display) -> Result<T, Refused> {
        self.ok_or_else(|| Refused::new(what.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn prints_causes_and_help_below() {
        let file = Err::<(), _>(io::Error::other("the disk is\nfull")).or_refuse("a.toml is cut");
        let why =
            Refused::new("nothing was kept").because(file.expect_err("refused").help("free it"));
        assert_eq!(why.to_string(), "nothing was kept");
        assert_eq!(
            format!("{why:#}"),
            "nothing was kept: a.toml is cut: the disk is\nfull; free it"
        );
        assert_eq!(
            why.lines(),
            [
                "nothing was kept",
                "cause: a.toml is cut",
                "cause: the disk is␊full",
                "help: free it"
            ]
        );
    }

    #[test]
    fn omits_repeated_cause() {
        #[derive(Debug, thiserror::Error)]
        #[error("no answer: {0}")]
        struct Repeats(#[source] io::Error);
        let why = Refused::new("not read").because(Repeats(io::Error::other("timed out")));
        assert_eq!(format!("{why:#}"), "not read: no answer: timed out");
        assert_eq!(
            format!("{:#}", Option::<()>::None.or_refuse("no head").expect_err("none")),
            "no head"
        );
    }

    #[test]
    fn prints_own_help_first() {
        let why = Refused::new("a").help("own").because(Refused::new("b").help("of the cause"));
        assert_eq!(why.help.as_deref(), Some("own"));
        assert_eq!(Refused::new("a").help("").help, None);
    }
}
