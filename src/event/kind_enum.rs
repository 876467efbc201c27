//! The macro that writes the enum of the kinds of events.

/// Writes an enum of kinds. Each variant follows its dotted name in JSON, so that the name is
/// written once. `also` has variants that serde skips. The enum after `read as` is read where the kind
/// is known before the fields; it has the same variants, and no value.
macro_rules! kinds {
    (
        $(#[$meta:meta])*
        pub enum $name:ident read as $fields:ident of $own_name:literal {
            $(
                $(#[$doc:meta])*
                $kind:literal $variant:ident $({ $($fields_of:tt)* })? $(( $($parts:tt)* ))?
            ),* $(,)?
        }
        also { $($also:tt)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        #[cfg_attr(feature = "tui", derive(::schemars::JsonSchema))]
        #[serde(tag = "kind")]
        pub enum $name {
            $(
                $(#[$doc])*
                #[serde(rename = $kind)]
                $variant $({ $($fields_of)* })? $(( $($parts)* ))?,
            )*
            $($also)*
        }

        #[derive(::serde::Deserialize)]
        #[serde(remote = $own_name)]
        enum $fields {
            $(
                #[serde(rename = $kind)]
                $variant $({ $($fields_of)* })? $(( $($parts)* ))?,
            )*
            $($also)*
        }

        impl $name {
            /// Reads a kind as the variant of an enum: its name, then its fields.
            pub(super) fn read_fields<'de, D: ::serde::Deserializer<'de>>(
                from: D,
            ) -> Result<Self, D::Error> {
                $fields::deserialize(from)
            }

            /// The dotted names of the kinds that all patterns share, as in JSON.
            pub const NAMES: &'static [&'static str] = &[$($kind),*];

            /// The dotted name of a kind that all patterns share.
            pub(super) fn shared_name(&self) -> Option<&'static str> {
                match self {
                    $(Self::$variant { .. } => Some($kind),)*
                    _ => None,
                }
            }
        }
    };
}

pub(super) use kinds;
