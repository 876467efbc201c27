//! The macro that writes the enum of facts of one pattern.

/// Writes an enum of facts. Each variant follows its dotted name in JSON, so that the name is
/// written once.
///
/// `pub enum F in V` is an enum of the pattern whose variant of
/// [`PatternFact`](super::patterns::PatternFact) is `V`. The enum after `read as` is read where the name
/// is known before the fields; it has the same variants, and no value.
macro_rules! facts {
    (
        $(#[$meta:meta])*
        pub enum $name:ident in $pattern:ident read as $fields:ident of $own_name:literal {
            $(
                $(#[$doc:meta])*
                $kind:literal $variant:ident $({ $($fields_of:tt)* })? $(( $($parts:tt)* ))?
            ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        #[cfg_attr(feature = "tui", derive(::schemars::JsonSchema))]
        #[serde(tag = "kind")]
        pub enum $name {
            $(
                $(#[$doc])*
                #[serde(rename = $kind)]
                $variant $({ $($fields_of)* })? $(( $($parts)* ))?
            ),*
        }

        #[derive(::serde::Deserialize)]
        #[serde(remote = $own_name)]
        #[allow(clippy::enum_variant_names, reason = "the same variants as in the other enum")]
        enum $fields {
            $(
                #[serde(rename = $kind)]
                $variant $({ $($fields_of)* })? $(( $($parts)* ))?
            ),*
        }

        impl $name {
            /// Reads a fact as the variant of an enum: its name, then its fields.
            pub(crate) fn read_fields<'de, D: ::serde::Deserializer<'de>>(
                from: D,
            ) -> Result<Self, D::Error> {
                $fields::deserialize(from)
            }

            /// The dotted names, as in JSON.
            pub const NAMES: &'static [&'static str] = &[$($kind),*];

            /// The dotted name, as in JSON.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $kind),*
                }
            }

            /// The fact of this pattern, if the event is one.
            pub fn of(kind: &$crate::event::EventKind) -> Option<&Self> {
                match kind {
                    $crate::event::EventKind::Pattern(
                        $crate::event::patterns::PatternFact::$pattern(fact),
                    ) => Some(fact),
                    _ => None,
                }
            }
        }

        impl From<$name> for $crate::event::EventKind {
            fn from(fact: $name) -> Self {
                Self::Pattern($crate::event::patterns::PatternFact::$pattern(fact))
            }
        }
    };
}

pub(crate) use facts;
