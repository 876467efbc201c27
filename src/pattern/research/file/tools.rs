//! Checks of the two tools of research.

use std::collections::BTreeMap;

use crate::base::name::ToolName;
use crate::pattern::research::file::budget::budget;
use crate::pattern::research::spec::{READ, SEARCH};
use crate::scenario::file::format::ScenarioFile;
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::tree::TextSpan;
use crate::scenario::spec::lookup::ReadSpec;
use crate::scenario::spec::tool::{ToolKind, ToolSpec};

/// Checks that the two tools of research are implemented, each in a way that fits.
pub(super) fn tools(
    tools: &BTreeMap<ToolName, ToolSpec>,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) {
    for (name, what, kinds) in [
        (SEARCH, "research has no search tool", "search, fixture, http or command"),
        (READ, "research has no tool that reads pages", "read, fixture, http or command"),
    ] {
        let place = format!("tools.{name}");
        let named = file.tools.iter().flat_map(|tools| &tools.named.entries);
        let entry = named.into_iter().find(|entry| entry.name == name);
        cx.at_key(&place, |cx| {
            let kind = tools.get(name).map(|spec| spec.kind.as_ref());
            match (entry, kind) {
                _ if cx.has_error_here() => {}
                (None, _) => {
                    let help = format!("add [tools.{name}] with one of {kinds}");
                    cx.error(TextSpan::new(0, 0..0), what, help);
                }
                (Some(entry), Some(None)) => {
                    cx.error(entry.at, what, format!("add one of {kinds}"))
                }
                (Some(entry), Some(Some(ToolKind::Read(_)))) if name == SEARCH => {
                    cx.error(
                        entry.at,
                        format!("{what}: `read` only reads one page"),
                        format!("use one of {kinds}"),
                    );
                }
                (Some(entry), Some(Some(ToolKind::Search(_)))) if name == READ => {
                    cx.error(
                        entry.at,
                        format!("{what}: `search` only finds URLs"),
                        format!("use one of {kinds}"),
                    );
                }
                _ => {}
            }
        });
    }
}

/// Warns if one page that hangs could use up the run: only for tools that reach beyond this
/// machine.
pub(super) fn warn_of_slow_pages(
    tools: &BTreeMap<ToolName, ToolSpec>,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) {
    let (Some(spec), Some(budget)) = (tools.get(READ), &file.budget) else { return };
    let remote = match &spec.kind {
        Some(ToolKind::Read(read)) => matches!(&**read, ReadSpec::Web(_)),
        Some(ToolKind::Http(_) | ToolKind::Command(_)) => true,
        Some(ToolKind::Fixture(_) | ToolKind::Search(_)) | None => false,
    };
    let named = file.tools.iter().flat_map(|tools| &tools.named.entries);
    let Some(entry) = named.into_iter().find(|entry| entry.name == READ) else { return };
    let budget = self::budget(budget);
    let timeout = spec.policy.timeout.unwrap_or_else(|| budget.read_timeout());
    let most = timeout.saturating_mul(spec.policy.max_attempts);
    // Defaults are not reported.
    let retries = entry.value.as_ref().and_then(|table| table.retries.as_ref());
    let own = spec.policy.timeout.is_some()
        || retries.is_some_and(|retries| retries.max_attempts.at != TextSpan::new(0, 0..0));
    if remote && own && most > budget.max_seconds / 2 {
        let (most, of) = (most.as_secs_f64(), budget.max_seconds.as_secs_f64());
        let what = format!("one page that hangs can take {most} s of the run's {of} s");
        let help = "lower timeout_s or retries.max_attempts, or raise budget.max_seconds";
        cx.at_key(&format!("tools.{READ}"), |cx| cx.warn(entry.at, what, help));
    }
}
