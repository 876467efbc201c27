//! Names that scenarios give to things: newtypes, so that a role is never confused with a flag.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// Begins the error of a name that is longer than its limit.
pub const TOO_LONG: &str = "a name is too long";

/// Reads the text of a name, of at most `most` bytes: no scenario gives a longer one, and the screens
/// and tables have no room for it.
pub(crate) fn read_name<'de, D: Deserializer<'de>>(
    from: D,
    what: &str,
    most: usize,
) -> Result<Arc<str>, D::Error> {
    let text = Arc::<str>::deserialize(from)?;
    if text.len() > most {
        let bytes = text.len();
        return Err(D::Error::custom(format!(
            "{TOO_LONG}: {what} has {bytes} bytes, at most {most}"
        )));
    }
    Ok(text)
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident: $what:literal, $most:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps a text as a name, without a check.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }
            /// The text of the name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                read_name(from, $what, $most).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self::new(text)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )+};
}

/// Most bytes of a name that a scenario gives.
const NAME_BYTES: usize = 64;
/// Most bytes of the name of a tool: of an MCP server, a dot, and the name that the server gives it.
const TOOL_BYTES: usize = 32 + 1 + 128;

names! {
    /// A role of a collaboration, such as `risk_analyst`.
    RoleName: "a role", NAME_BYTES;
    /// An agent of a team, such as `billing`.
    AgentName: "an agent", NAME_BYTES;
    /// A feature flag, such as `legal_analyst`.
    FlagName: "a flag", NAME_BYTES;
    /// A tool behind the gateway, such as `llm`.
    ToolName: "a tool", TOOL_BYTES;
    /// A task of an orchestrator's plan, such as `t1`; the planner names it, and no rule limits it.
    TaskId: "a task", usize::MAX;
    /// A scenario, such as `checkout-launch`: its file name without the extension.
    ScenarioName: "a scenario", 255;
    /// A person who may be asked, such as `manager`.
    PersonName: "a person", NAME_BYTES;
    /// An input of a scenario, such as `region`.
    InputName: "an input", NAME_BYTES;
}
