//! A flag and a boundary, as the command line names them.

use std::fmt;

use crate::base::name::FlagName;
use crate::event::BoundaryId;
use crate::scenario::patterns::is_boundary;

/// A value of `--flag NAME=on|off[@BOUNDARY]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagArg {
    /// Name of the flag, as the scenario spells it.
    pub name: FlagName,
    /// Whether the flag is switched on.
    pub on: bool,
    /// The boundary at which it is switched; `None`: before the run starts.
    pub at: Option<BoundaryId>,
}

impl FlagArg {
    pub fn parse(text: &str) -> Result<Self, String> {
        let say = || format!("expected NAME=on, NAME=off or NAME=on@round:2, found `{text}`");
        let (name, rest) = text.split_once('=').ok_or_else(say)?;
        let (position, at) = match rest.split_once('@') {
            Some((position, at)) => (position, Some(boundary(at)?)),
            None => (rest, None),
        };
        let on = match position {
            "on" | "true" => true,
            "off" | "false" => false,
            _ => return Err(say()),
        };
        if name.is_empty() {
            return Err(say());
        }
        Ok(Self { name: FlagName::from(name), on, at })
    }
}

impl fmt::Display for FlagArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let position = if self.on { "on" } else { "off" };
        write!(f, "{}={position}", self.name)?;
        match &self.at {
            Some(at) => write!(f, "@{at}"),
            None => Ok(()),
        }
    }
}

/// Parses a boundary of any pattern, spelled as [`Boundary::id`](crate::event::Boundary::id) does.
/// Whether the scenario's pattern has it is checked later, when the scenario is read.
pub(super) fn boundary(text: &str) -> Result<BoundaryId, String> {
    if is_boundary(text) {
        Ok(BoundaryId::new(text))
    } else {
        Err(format!(
            "`{text}` is not a boundary: use round:2, message:2:risk_analyst, plan, dispatch:1:t2, \
             turn:3:7, ask:1:pm, handoff:3:billing, source:2, verify or finalize"
        ))
    }
}
