//! Names that a scenario uses and does not define.

use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::NonBlankString;

/// Reports a name that the scenario does not define.
pub(crate) fn report_unknown_name<'n>(
    name: &NonBlankString,
    wanted: &str,
    known: impl Iterator<Item = &'n str>,
    cx: &mut ReadContext,
) {
    let help = cx.suggest(&name.text, known);
    cx.error(name.at, format!("`{}` is not {wanted} of this scenario", name.text), help);
}
