//! The rules of a guarded program: a file with the tables of a scenario that say what a program may use, how its models
//! are protected, and what has to hold at its end.

use std::sync::Arc;

use super::cel::Condition;
use super::check::condition::{build_rows, condition_of_names};
use super::check::tools::model_policy;
use super::patterns::observed::{GuardLimits, GuardRule, PAUSE_NAMES, ToolRule};
use super::people::{
    APPROVE_NAMES, ApproveKey, Effects, People, PeopleTables, Person, RuleTable, ToolApproval,
    build_approval, build_rule,
};
use super::read::amount::{Dollars, Seconds};
use super::read::format::ExpectTable;
use super::read::format::tools::{BreakerTable, BulkheadTable, InjectedTable};
use super::read::names::{NameRule, NamedEntries};
use super::read::problem::Problems;
use super::read::shape::{
    BoundedList, FormatShape, IntegerField, NonBlankString, ObjectSchema, Positioned, Requirement,
    join_doc_lines, record, words,
};
use super::read::tree::{TomlNode, TomlValue};
use super::read::{ReadContext, UnknownKeys, read_document, suggest_name};
use super::rows::{Rows, has_tables};
use super::spec::policy::{CallPolicy, max};
use super::spec::{OnLimit, SpendingLimits};
use super::{ScenarioOrigin, name};
use crate::base::name::PersonName;

record! {
    /// The rules of a guarded program.
    struct RulesTable => {
        /// What the program may use.
        budget: GuardBudgetTable = table,
        /// How models are protected, by their names: `openai/gpt-5.1`, `openai/*` or `*`. The first name that fits
        /// counts.
        models: NamedEntries<ModelRuleTable, ModelPattern> = default(NamedEntries::default()),
        /// How tools of the program are protected, by their names: `refund`, `pay_*` or `*`. The first name that fits
        /// counts. Only tools at the hook: docs/guard.md.
        tools: NamedEntries<ToolRuleTable, ModelPattern> = default(NamedEntries::default()),
        /// Rules about calls of tools: they allow, ask or deny.
        approve: BoundedList<Positioned<RuleTable>, 0, 100> = default(BoundedList(Vec::new())),
        /// The people who may be asked.
        people: PeopleTables = default(NamedEntries::default()),
        /// Where the run pauses.
        pause: BoundedList<Positioned<PauseTable>, 0, 20> = default(BoundedList(Vec::new())),
        /// What has to hold when the program has ended.
        expect: BoundedList<Positioned<ExpectTable>, 0, 200> = default(BoundedList(Vec::new())),
    }
}

record! {
    /// What a guarded program may use.
    struct GuardBudgetTable => {
        /// US dollars, estimated from prices.
        max_cost_usd: Dollars = optional,
        /// Tokens of prompts and replies together.
        max_total_tokens: IntegerField<1, 1_000_000_000> = optional,
        /// Requests to models; each attempt of a client is one.
        max_calls: IntegerField<1, 1_000_000_000> = optional,
        /// Seconds after which calls are refused.
        max_seconds: Seconds = optional,
        /// How often the same request may be sent, and the same tool called in a row with the same result.
        repeats: IntegerField<2, 1_000_000> = optional,
        /// Tools that poll: repeats does not count their calls.
        polling: BoundedList<NonBlankString, 0, 100> = default(BoundedList(Vec::new())),
        /// What happens when the next call would exceed a limit.
        on_limit: LimitRule = default(LimitRule::Refuse),
    }
}

record! {
    /// Where the run pauses.
    struct PauseTable => {
        /// Before a call for which this CEL condition holds. It may use provider, model, number (of the call), tokens
        /// (estimated), prompt (the last message) and tools (their names).
        when: NonBlankString = needed,
    }
}

record! {
    /// What live and guarded runs may spend: a table of the configuration.
    struct LimitsTable => {
        /// On a day, all runs of this user on this machine together, but for those of a cluster.
        day: DayTable = table,
    }
}

record! {
    /// What all runs may spend on a day, by the date of this machine.
    struct DayTable => {
        /// US dollars, estimated from prices.
        cost_usd: Dollars = optional,
        /// Tokens of prompts and replies together.
        total_tokens: IntegerField<1, 1_000_000_000> = optional,
    }
}

impl LimitsTable {
    pub(super) fn of_day(self) -> SpendingLimits {
        self.day.map_or_else(SpendingLimits::default, |day| SpendingLimits {
            max_total_tokens: day.total_tokens.map(|it| u64::from(it.0)),
            max_cost_usd: day.cost_usd.map(|it| it.0),
        })
    }
}

/// What happens at a limit of a guarded program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitRule {
    Refuse,
    Ask,
}

words! { LimitRule:
    "refuse" => LimitRule::Refuse, "The call is refused.";
    "ask" => LimitRule::Ask, "The operator is asked, who may extend the limit by its own size.";
}

record! {
    /// How a model is protected.
    struct ModelRuleTable => {
        /// Circuit breaker: when calls are refused without an attempt. Default: none.
        breaker: BreakerTable = optional,
        /// Bulkhead: how many attempts may run concurrently. Default: any number.
        bulkhead: BulkheadTable = optional,
        /// Most attempts that start in a minute; more wait as in the queue of the bulkhead. Default: any number.
        rate: IntegerField<1, { max::RATE }> = optional,
        /// Faults that are injected from the start of the run.
        faults: BoundedList<Positioned<InjectedTable>, 0, 5> = default(BoundedList(Vec::new())),
    }
}

record! {
    /// How a tool of the program is protected.
    struct ToolRuleTable => {
        /// What a call does. Default: write.
        effects: Effects = optional,
        /// When a call needs approval: true, or a table.
        approve: Positioned<ApproveKey> = optional,
        /// Circuit breaker: when calls are refused without an attempt. Default: none.
        breaker: BreakerTable = optional,
        /// Bulkhead: how many calls may run concurrently. Default: any number.
        bulkhead: BulkheadTable = optional,
        /// Most calls that start in a minute; more wait as in the queue of the bulkhead. Default: any number.
        rate: IntegerField<1, { max::RATE }> = optional,
        /// Faults that are injected from the start of the run.
        faults: BoundedList<Positioned<InjectedTable>, 0, 5> = default(BoundedList(Vec::new())),
    }
}

/// The name of models or tools: `*` stands for any text.
#[derive(Debug, Clone)]
pub(crate) struct ModelPattern;

impl NameRule for ModelPattern {
    const PATTERN: &'static str = "^[^\\s]{1,160}$";
    const WORDS: &'static str = "a name such as provider/model, with * for any text";
    fn fits(text: &str) -> bool {
        (1..=160).contains(&text.len())
            && !text.contains(|c: char| c.is_whitespace() || c.is_control())
    }
}

/// The rules of a file.
#[derive(Debug)]
pub struct Rules {
    pub limits: GuardLimits,
    /// The rows of the file; `None`: it has none.
    pub rows: Option<Rows>,
}

/// Whether a file has rules, and nothing that a scenario needs.
pub fn is_rules_file(text: &str) -> bool {
    has_tables(text, &["budget", "models", "tools", "approve", "people", "pause", "expect"])
}

/// Reads a file of rules.
///
/// # Errors
/// All its problems. Warnings of valid rules are returned with them.
pub fn check_rules(text: &str, origin: &ScenarioOrigin) -> Result<(Rules, Problems), Problems> {
    let suggestion = |_: &str, key: &str, known: &[&str]| suggest_name(key, known.iter().copied());
    let unknown = UnknownKeys::Refused { suggestion, place_of_top_key: |_, _| None };
    let mut cx = ReadContext::new(origin.to_string(), text, Vec::new(), unknown);
    let rules = read(text, origin, &mut cx);
    let failed = cx.failed();
    let problems = cx.finish();
    match rules.filter(|_| !failed) {
        Some(rules) => Ok((rules, problems)),
        None => Err(problems),
    }
}

fn read(text: &str, origin: &ScenarioOrigin, cx: &mut ReadContext) -> Option<Rules> {
    let root = read_document(text, cx)?;
    let file = RulesTable::read(&root, cx)?;
    let rows = build_rows(&file.expect.0, cx);
    let models = cx.at_key("models", |cx| {
        let rules = file.models.entries.iter().filter_map(|entry| {
            let table = entry.value.as_ref()?;
            let (policy, faults) = cx.at_key(&entry.name, |cx| {
                model_policy(table.breaker.as_ref(), table.bulkhead.as_ref(), &table.faults, cx)
            })?;
            let policy = CallPolicy { rate: table.rate.map(|it| it.0), ..policy };
            Some(GuardRule { name: entry.name.clone(), policy: Arc::new(policy), faults })
        });
        rules.collect()
    });
    let tools = cx.at_key("tools", |cx| {
        let rules = file.tools.entries.iter().filter_map(|entry| {
            let table = entry.value.as_ref()?;
            cx.at_key(&entry.name, |cx| {
                let approve = tool_approval(table.approve.as_ref(), &file.people, cx);
                let (policy, faults) = model_policy(
                    table.breaker.as_ref(),
                    table.bulkhead.as_ref(),
                    &table.faults,
                    cx,
                )?;
                let policy = CallPolicy { rate: table.rate.map(|it| it.0), ..policy };
                let guard =
                    GuardRule { name: entry.name.clone(), policy: Arc::new(policy), faults };
                Some(ToolRule { guard, effects: table.effects, approve: approve? })
            })
        });
        rules.collect()
    });
    let people = people_of(&file.people, &file.approve.0, cx);
    let pauses = cx.at_key("pause", |cx| {
        let rows = file.pause.0.iter().enumerate();
        let condition = |(index, row): (usize, &Positioned<PauseTable>)| {
            let when = row.value.when.as_ref()?;
            let condition = cx.at_index(index, |cx| {
                cx.at_key("when", |cx| condition_of_names(when, PAUSE_NAMES, cx))
            });
            condition.map(Arc::new)
        };
        rows.filter_map(condition).collect()
    });
    let budget = file.budget?;
    let count = |field: Option<IntegerField<1, 1_000_000_000>>| field.map(|it| u64::from(it.0));
    let limits = GuardLimits {
        spending: SpendingLimits {
            max_total_tokens: count(budget.max_total_tokens),
            max_cost_usd: budget.max_cost_usd.map(|it| it.0),
        },
        on_limit: match budget.on_limit {
            LimitRule::Refuse => OnLimit::Stop,
            LimitRule::Ask => OnLimit::Ask,
        },
        max_calls: count(budget.max_calls),
        max_time: budget.max_seconds.map(|it| it.0),
        repeats: budget.repeats.map(|it| u64::from(it.0)),
        polling: budget.polling.0.into_iter().map(|name| name.text).collect(),
        refuses_unread: true,
        models,
        tools,
        people: Arc::new(people?),
        pauses,
        pause_at: Vec::new(),
    };
    let rows = (!rows.is_empty()).then(|| Rows::of_rules(name(origin).as_str(), origin, rows));
    Some(Rules { limits, rows })
}

/// The people and the rules of a guarded program, whose tools and agents are not known. Problems are reported to `cx`.
fn people_of(
    people: &PeopleTables,
    rules: &[Positioned<RuleTable>],
    cx: &mut ReadContext,
) -> Option<People> {
    let named = people.entries.iter().filter_map(|entry| {
        let table = entry.value.as_ref()?;
        let description = table.description.as_ref()?.text.as_str().into();
        let otherwise = table.otherwise.as_ref().map(|it| it.value.clone());
        let person = Person { description, timeout: table.timeout.map(|it| it.0), otherwise };
        Some((PersonName::from(entry.name.as_str()), person))
    });
    let named = named.collect();
    let rules = cx.at_key("approve", |cx| {
        let rule = |(index, table): (usize, &Positioned<RuleTable>)| {
            cx.at_index(index, |cx| {
                let condition = condition_in_program(table.value.when.as_ref(), cx);
                build_rule(table, people, condition, cx)
            })
        };
        rules.iter().enumerate().map(rule).collect::<Option<_>>()
    })?;
    Some(People { named, rules, script: Vec::new() })
}

/// The approval of a tool of a guarded program.
fn tool_approval(
    key: Option<&Positioned<ApproveKey>>,
    people: &PeopleTables,
    cx: &mut ReadContext,
) -> Option<Option<Arc<ToolApproval>>> {
    cx.at_key("approve", |cx| build_approval(key, people, condition_in_program, cx))
}

fn condition_in_program(
    when: Option<&NonBlankString>,
    cx: &mut ReadContext,
) -> Option<Option<Condition>> {
    let Some(when) = when else { return Some(None) };
    cx.at_key("when", |cx| condition_of_names(when, &APPROVE_NAMES, cx)).map(Some)
}

/// The JSON schema of a file of rules.
pub fn rules_schema() -> serde_json::Value {
    RulesTable::schema()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Rules, Vec<String>> {
        let origin = ScenarioOrigin::File("guard.toml".into());
        check_rules(text, &origin)
            .map(|(rules, _)| rules)
            .map_err(|problems| problems.iter().map(|problem| problems.line(problem)).collect())
    }

    #[test]
    fn first_fitting_rule_counts() {
        let rules = read(
            "[budget]\nmax_cost_usd = 0.5\nmax_calls = 3\non_limit = \"ask\"\n\n\
             [models.\"openai/gpt-5.1\"]\nbreaker = { fail_threshold = 2 }\n\n\
             [models.\"openai/*\"]\nrate = 30\nbulkhead = { max_in_flight = 1 }\nfaults = [{ kind = \"latency\", ms = 5 }]\n\n\
             [[expect]]\nthat = 'calls(\"refund\") == 1'\n",
        )
        .expect("rules");
        let GuardLimits { spending, on_limit, max_calls, models, .. } = rules.limits;
        assert_eq!(
            (spending.max_cost_usd, on_limit, max_calls),
            (Some(0.5), OnLimit::Ask, Some(3))
        );
        assert_eq!(rules.rows.map(|rows| rows.expectations().len()), Some(1));
        let of = |model: &str| models.iter().position(|rule| rule.fits(model));
        let found = ["openai/gpt-5.1", "openai/gpt-5.1-mini", "anthropic/claude"].map(of);
        assert_eq!(found, [Some(0), Some(1), None]);
        assert_eq!(models.len(), 2);
        let (first, second) = (&models[0], &models[1]);
        assert_eq!(first.policy.breaker.map(|it| it.fail_threshold), Some(2));
        assert!(first.policy.bulkhead.is_none() && second.policy.breaker.is_none());
        assert_eq!((first.policy.rate, second.policy.rate), (None, Some(30)));
        assert_eq!(
            (second.policy.bulkhead.map(|it| it.max_in_flight), second.faults.len()),
            (Some(1), 1)
        );
    }

    #[test]
    fn stars_stand_for_any_text() {
        for (name, model, fits) in [
            ("*", "openai/gpt-5.1", true),
            ("*/gpt-*", "openai/gpt-5.1", true),
            ("*/gpt-*-mini", "openai/gpt-5.1", false),
            ("openai/*5*", "openai/gpt-5.1", true),
            ("openai/gpt", "openai/gpt-5.1", false),
            ("a*a", "a", false),
        ] {
            let policy = Arc::default();
            let rule = GuardRule { name: name.to_owned(), policy, faults: Vec::new() };
            assert_eq!(rule.fits(model), fits, "{name} {model}");
        }
    }

    #[test]
    fn wrong_rules_have_places() {
        for (text, wanted) in [
            ("[budget]\nmax_calls = 0\n", "guard.toml:2:"),
            ("[budget]\nmax_cals = 2\n", "unknown key `max_cals` (did you mean `max_calls`?)"),
            ("[budget]\non_limit = \"stop\"\n", "guard.toml:2:"),
            ("[models.\"a b\"]\n", "provider/model"),
            ("[models.\"*\"]\nbreaker = { size = 3 }\n", "`size` has no effect without a window"),
            ("[[expect]]\nthat = 'tokns < 3'\n", "did you mean `tokens`?"),
            ("[[pause]]\nwhen = 'modl == \"m\"'\n", "did you mean `model`?"),
            ("[budget]\nrepeats = 1\n", "guard.toml:2:"),
        ] {
            let found = read(text).expect_err(text);
            assert!(found.iter().any(|line| line.contains(wanted)), "{wanted}: {found:?}");
        }
        assert!(is_rules_file("[models.\"*\"]\n") && !is_rules_file("title = \"a\"\n[budget]\n"));
    }
}
