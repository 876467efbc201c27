//! The macro that writes the enum of the kinds of events.

/// Writes an enum of kinds. Each variant follows its dotted name in JSON, so that the name is
/// written once. `also` has variants that serde skips.
macro_rules! kinds {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $(
                $(#[$doc:meta])*
                $kind:literal $variant:ident $({ $($fields:tt)* })? $(( $($parts:tt)* ))?
            ),* $(,)?
        }
        also { $($also:tt)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(tag = "kind")]
        pub enum $name {
            $(
                $(#[$doc])*
                #[serde(rename = $kind)]
                $variant $({ $($fields)* })? $(( $($parts)* ))?,
            )*
            $($also)*
        }

        impl $name {
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
