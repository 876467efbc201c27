//! The allowlists of a research scenario and its `[sources]` tables.

use crate::base::name::FlagName;
use crate::pattern::research::file::table::{ResearchTable, SourceTable};
use crate::pattern::research::spec::SourceRule;
use crate::scenario::check::unknown_name::report_unknown_name;
use crate::scenario::file::domain::{self, Domain};
use crate::scenario::file::format::ScenarioFile;
use crate::scenario::file::named::NamedEntry;
use crate::scenario::file::reader::ReadContext;

/// Reads both allowlists, the policy's first.
pub(super) fn allowlists(
    table: &ResearchTable,
    cx: &mut ReadContext,
) -> (Option<Vec<String>>, Option<Vec<String>>) {
    let policy = cx.at_key("allowed_domains_policy", |cx| {
        table.allowed_domains_policy.as_ref().map(|list| unique_domains(&list.value.0, cx))
    });
    // An empty policy allowlist is reported once, not for every domain of the other list.
    let nothing = policy.as_ref().is_some_and(|policy| policy.is_empty());
    let certain = !nothing && !cx.at_key("allowed_domains_policy", |cx| cx.has_error_here());
    let execution = cx.at_key("allowed_domains_execution", |cx| {
        let list = &table.allowed_domains_execution.as_ref()?.value.0;
        for (index, domain) in list.iter().enumerate() {
            let known = policy.iter().flatten().any(|it| *it == domain.name);
            if certain && !known {
                let what = format!("`{}` is still denied by policy", domain.name);
                let help = "add it to allowed_domains_policy";
                cx.at_index(index, |cx| cx.warn(domain.at, what, help));
            }
        }
        Some(unique_domains(list, cx))
    });
    let lists = [
        ("allowed_domains_policy", &policy, &table.allowed_domains_policy, "may be read"),
        (
            "allowed_domains_execution",
            &execution,
            &table.allowed_domains_execution,
            "is switched on",
        ),
    ];
    for (key, names, list, what) in lists {
        if let (Some([]), Some(list)) = (names.as_deref(), list) {
            cx.at_key(key, |cx| {
                if !cx.has_error_here() {
                    cx.warn(list.at, format!("every source will be denied: no domain {what}"), "");
                }
            });
        }
    }
    (policy, execution)
}

/// The domains of a list; reports duplicates.
fn unique_domains(list: &[Domain], cx: &mut ReadContext) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (index, domain) in list.iter().enumerate() {
        if names.contains(&domain.name) {
            let what = format!("`{}` is already in the list", domain.name);
            cx.at_index(index, |cx| cx.warn(domain.at, what, ""));
        } else {
            names.push(domain.name.clone());
        }
    }
    names
}

/// Warns if a claim needs more domains than the allowlist has.
pub(super) fn warn_of_few_domains(table: &ResearchTable, policy: &[String], cx: &mut ReadContext) {
    let wanted = &table.min_independent_sources;
    if !policy.is_empty() && wanted.value.0 as usize > policy.len() {
        cx.at_key("min_independent_sources", |cx| {
            let what = format!("no claim can be confirmed: it needs {} domains", wanted.value.0);
            let help = format!("domains in allowed_domains_policy: {}", policy.len());
            cx.warn(wanted.at, what, help);
        });
    }
}

/// Reads the `[sources]` tables.
pub(super) fn sources(
    table: &ResearchTable,
    file: &ScenarioFile,
    cx: &mut ReadContext,
) -> Vec<SourceRule> {
    let mut rules: Vec<SourceRule> = Vec::new();
    for entry in &file.sources.entries {
        cx.at_key(&entry.name, |cx| {
            if let Some(rule) = source(entry, table, file, &rules, cx) {
                rules.push(rule);
            }
        });
    }
    rules
}

fn source(
    entry: &NamedEntry<SourceTable>,
    table: &ResearchTable,
    file: &ScenarioFile,
    before: &[SourceRule],
    cx: &mut ReadContext,
) -> Option<SourceRule> {
    let rule = entry.value.as_ref()?;
    if let Some(flag) = &rule.flag
        && !file.flags.has(&flag.text)
    {
        cx.at_key("flag", |cx| report_unknown_name(flag, "a flag", file.flags.names(), cx));
    }
    let domain = domain::parse(&entry.name).ok()?;
    if before.iter().any(|rule| rule.domain == domain) {
        cx.error(
            entry.at,
            format!("`{domain}` already has a table"),
            "write one table for each domain",
        );
        return None;
    }
    let (policy, execution) = (&table.allowed_domains_policy, &table.allowed_domains_execution);
    let (Some(policy), Some(execution)) = (policy, execution) else { return None };
    let within = |list: &[Domain]| list.iter().any(|it| it.name == domain);
    if !within(&policy.value.0) && !within(&execution.value.0) {
        cx.warn(entry.at, format!("`{domain}` is never read"), "add it to both allowlists");
    } else if let Some(flag) = &rule.flag
        && !within(&execution.value.0)
    {
        let what = format!("the flag has no effect: `{domain}` is not in the execution allowlist");
        cx.at_key("flag", |cx| cx.warn(flag.at, what, "add it to allowed_domains_execution"));
    }
    let flag = rule.flag.as_ref().map(|flag| FlagName::from(flag.text.as_str()));
    Some(SourceRule { domain, trust: rule.trust.0, flag })
}
