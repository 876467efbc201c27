//! The macro that makes [`StopReason`](super::stop::StopReason) of a table: everything that is said
//! about a reason is in its row.

/// Makes the enum of stop reasons. A row has the variant, its word in logs and outcomes, the class,
/// the phrase for people, and the advice. A row of `parts` has a part after its word and a colon: a
/// name or a fault. Its phrase has `{}` for the part, and the part's own advice, if it has any, is
/// used in place of the row's.
macro_rules! stop_reasons {
    (
        plain { $(
            $(#[doc = $plain_doc:literal])*
            $plain:ident = $plain_word:literal, $plain_class:ident, $plain_phrase:literal,
                $plain_advice:expr;
        )+ }
        parts { $(
            $(#[doc = $doc:literal])*
            $name:ident($part:ty) = $word:literal, $class:ident, $phrase:literal, $advice:expr;
        )+ }
    ) => {
        /// Why a run ended. A stop reason is data, not an error.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum StopReason {
            $(#[doc = concat!("`", $plain_word, "`")] $(#[doc = $plain_doc])* $plain,)+
            $(#[doc = concat!("`", $word, ":…`")] $(#[doc = $doc])* $name($part),)+
            /// `worker_denied:<worker>`, `worker_missing:<worker>`, …, of an orchestrator's task
            Worker(WorkerFault, ToolName),
            /// `tool_error:<tool>:<what>`: a tool that the run needs was not available
            ToolError(ToolName, FailureClass),
            /// A reason this version does not know, read from a file.
            Other(Box<str>),
        }

        /// The rows of the table, for the documents.
        #[cfg(test)]
        pub(crate) const STOP_ROWS: &[StopRow] = &[
            $(StopRow {
                word: $plain_word,
                has_part: false,
                class: StopClass::$plain_class,
                about: concat!($($plain_doc),*),
                phrase: $plain_phrase,
                advice: $plain_advice,
            },)+
            $(StopRow {
                word: $word,
                has_part: true,
                class: StopClass::$class,
                about: concat!($($doc),*),
                phrase: $phrase,
                advice: $advice,
            },)+
        ];

        impl StopReason {
            /// The words of all reasons, without the part after a colon.
            pub(crate) fn words() -> impl Iterator<Item = &'static str> {
                let of_table = [$($plain_word,)+ $($word,)+ "tool_error"];
                of_table.into_iter().chain(WorkerFault::ALL.map(WorkerFault::word))
            }

            /// The class of the row.
            fn row_class(&self) -> StopClass {
                match self {
                    $(Self::$plain => StopClass::$plain_class,)+
                    $(Self::$name(_) => StopClass::$class,)+
                    Self::Worker(..) | Self::ToolError(..) | Self::Other(_) => StopClass::Stopped,
                }
            }

            /// Bytes that it refers to, besides its own size.
            pub(crate) fn weight(&self) -> usize {
                match self {
                    $(Self::$plain => 0,)+
                    $(Self::$name(part) => part.weight(),)+
                    Self::Worker(_, tool) | Self::ToolError(tool, _) => tool.as_str().len(),
                    Self::Other(text) => text.len(),
                }
            }

            /// Replaces a name in it that a model gave.
            pub(crate) fn redact(&mut self, by: &TextRedactor) {
                match self {
                    $(Self::$plain => {})+
                    $(Self::$name(part) => part.redact(by),)+
                    Self::Worker(_, tool) | Self::ToolError(tool, _) => by.name(tool),
                    Self::Other(text) => by.text(text),
                }
            }

            /// What to do about this stop reason, in one sentence; `None` for a success.
            pub fn advice(&self) -> Option<&'static str> {
                match self {
                    $(Self::$plain => $plain_advice,)+
                    $(Self::$name(part) => part.advice().or($advice),)+
                    Self::Worker(fault, _) => fault.advice(),
                    Self::ToolError(..) => Some("The tool failed: the attempt has the error."),
                    Self::Other(_) => Some("A reason from another version of roundtable."),
                }
            }

            /// The reason in words, hardly longer than its identifier, since it takes its place in
            /// narrow columns. What to do about it is [`advice`](Self::advice).
            pub(crate) fn phrase(&self) -> Cow<'_, str> {
                match self {
                    $(Self::$plain => $plain_phrase.into(),)+
                    $(Self::$name(part) => format!($phrase, part.phrase()).into(),)+
                    Self::Worker(fault, worker) => fault.phrase(worker).into(),
                    Self::ToolError(tool, class) => format!("{tool}: {}", class.phrase()).into(),
                    Self::Other(text) => (&**text).into(),
                }
            }
        }

        impl fmt::Display for StopReason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$plain => f.write_str($plain_word),)+
                    $(Self::$name(part) => write!(f, concat!($word, ":{}"), part),)+
                    Self::Worker(fault, worker) => write!(f, "{}:{worker}", fault.word()),
                    Self::ToolError(tool, class) => write!(f, "tool_error:{tool}:{}", class.word()),
                    Self::Other(text) => f.write_str(text),
                }
            }
        }

        impl From<&str> for StopReason {
            fn from(text: &str) -> Self {
                match text {
                    $($plain_word => return Self::$plain,)+
                    _ => {}
                }
                let known = text.split_once(':').and_then(|(word, rest)| match word {
                    $($word => <$part>::from_text(rest).map(Self::$name),)+
                    "tool_error" => {
                        let (tool, class) = rest.rsplit_once(':')?;
                        Some(Self::ToolError(tool.into(), FailureClass::from_word(class)?))
                    }
                    _ => Some(Self::Worker(WorkerFault::from_word(word)?, rest.into())),
                });
                known.unwrap_or_else(|| Self::Other(text.into()))
            }
        }
    };
}

pub(super) use stop_reasons;
