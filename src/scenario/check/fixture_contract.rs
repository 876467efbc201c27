//! Checks that the rows of a fixture keep the contract of their tool.

use crate::scenario::file::format_tools::FixtureTable;
use crate::scenario::file::reader::ReadContext;
use crate::scenario::spec::tool::REQUEST_ID;

/// Arguments that the program adds to every call.
const ADDED: [&str; 2] = [REQUEST_ID, "allowed_domains"];

/// Reports arguments in rows that no call has.
pub(crate) fn check_row_arguments(
    table: &FixtureTable,
    args: &KnownArguments<'_>,
    cx: &mut ReadContext,
) {
    let Some(names) = args.names else { return };
    // An agent's tool may declare no arguments and still be called with those of its rows.
    if names.is_empty() && !args.certain {
        return;
    }
    for (index, row) in table.rows.iter().flat_map(|rows| rows.0.iter().enumerate()) {
        let given = row.value.args.table.entries.iter().map(|(key, _)| key);
        for key in given.filter(|key| !names.contains(&&*key.text) && !ADDED.contains(&&*key.text))
        {
            let help = cx.suggest(&key.text, names.iter().copied());
            let what =
                format!("`{}` is not an argument of its calls: the row is never used", key.text);
            let tell = |cx: &mut ReadContext| match args.certain {
                true => cx.error(key.at, what, help),
                false => cx.warn(key.at, what, help),
            };
            cx.at_key("rows", |cx| {
                cx.at_index(index, |cx| cx.at_key("args", |cx| cx.at_key(&key.text, tell)));
            });
        }
    }
}

/// The arguments of a tool's calls.
pub(crate) struct KnownArguments<'a> {
    /// Their names; `None` if they are not known.
    pub names: Option<&'a [&'a str]>,
    /// The calls have no other arguments. For an author's tool a model may send any.
    pub certain: bool,
}
