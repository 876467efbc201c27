//! The functions that only an expectation may call, and what they look at: facts of a run that has
//! ended.

use std::collections::BTreeMap;

use url::Url;

use super::budget::EvalBudget;
use super::error::{EvalError, eval_error, shorten};
use super::value::CelValue;
use crate::base::private_host::plain_name;

/// What a run did, for the functions of expectations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFacts {
    /// Number of calls of each tool; `llm` is the model.
    pub calls: BTreeMap<String, u64>,
    /// The addresses that the answer cites.
    pub cited: Vec<String>,
    /// The roles, workers and agents that took control, in order.
    pub took_control: Vec<String>,
}

/// A function of expectations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunFunction {
    /// `calls("llm")`: the number of calls of a tool.
    Calls,
    /// `cites("status.example.com")`: whether the answer cites a page of this host or its
    /// subdomains, or an address that begins so.
    Cites,
    /// `order("billing", "fraud")`: whether these took control in this order; others may have come
    /// between.
    Order,
}

const TABLE: [(RunFunction, &str); 3] =
    [(RunFunction::Calls, "calls"), (RunFunction::Cites, "cites"), (RunFunction::Order, "order")];

impl RunFunction {
    /// The function with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        TABLE.iter().find(|(_, own)| *own == name).map(|(function, _)| *function)
    }

    /// The names of all.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        TABLE.iter().map(|(_, name)| *name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        TABLE.iter().find(|(function, _)| *function == self).map_or("", |(_, name)| name)
    }

    /// How a call of it is written; an error if this is not one.
    pub(super) fn check(self, args: usize) -> Result<(), String> {
        let (fits, usage) = match self {
            Self::Calls => (args == 1, "calls(\"tool\")"),
            Self::Cites => (args == 1, "cites(\"host\")"),
            Self::Order => (args >= 2, "order(\"first\", \"second\")"),
        };
        if fits { Ok(()) } else { Err(format!("write `{usage}`")) }
    }

    pub(super) fn call(
        self,
        args: &[String],
        facts: Option<&RunFacts>,
        budget: &mut EvalBudget,
    ) -> Result<CelValue<'static>, EvalError> {
        let Some(facts) = facts else {
            return Err(eval_error(format!("`{}` needs a run", self.name())));
        };
        let first = args.first().map_or("", String::as_str);
        Ok(match self {
            Self::Calls => match facts.calls.get(first) {
                Some(calls) => CelValue::Int(i64::try_from(*calls).unwrap_or(i64::MAX)),
                None => {
                    let name = shorten(first);
                    return Err(eval_error(format!("the run has no tool `{name}`")));
                }
            },
            Self::Cites => {
                budget.count_read(facts.cited.iter().map(String::len).sum())?;
                CelValue::Bool(facts.cited.iter().any(|url| is_of(url, first)))
            }
            Self::Order => {
                budget.count_steps(facts.took_control.len() as u64)?;
                let mut rest = facts.took_control.iter();
                CelValue::Bool(args.iter().all(|name| rest.any(|other| other == name)))
            }
        })
    }
}

/// Whether an address begins with this one, or is of this host or one of its subdomains.
fn is_of(url: &str, wanted: &str) -> bool {
    if wanted.contains('/') {
        return url.starts_with(wanted);
    }
    let Ok(url) = Url::parse(url) else { return url == wanted };
    let host = plain_name(url.host_str().unwrap_or_default());
    host == wanted || host.strip_suffix(wanted).is_some_and(|rest| rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_its_host_and_of_the_domains_above() {
        for (wanted, cites) in [
            ("status.example.com", true),
            ("example.com", true),
            ("tus.example.com", false),
            ("example.org", false),
            ("https://status.example.com/incidents", true),
            ("https://status.example.com/other", false),
        ] {
            assert_eq!(is_of("https://status.example.com/incidents/7", wanted), cites, "{wanted}");
        }
    }

    #[test]
    fn an_order_may_have_others_between() {
        let facts = RunFacts {
            took_control: ["triage", "billing", "fraud", "billing"].map(str::to_owned).to_vec(),
            ..RunFacts::default()
        };
        for (names, holds) in [
            (&["triage", "fraud"][..], true),
            (&["billing", "fraud", "billing"], true),
            (&["fraud", "triage"], false),
            (&["billing", "billing", "billing"], false),
        ] {
            let args: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            let found = RunFunction::Order.call(&args, Some(&facts), &mut EvalBudget::default());
            assert!(matches!(found, Ok(CelValue::Bool(it)) if it == holds), "{names:?}");
        }
    }
}
