//! The names bound in a condition.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::run_facts::RunFacts;

/// The names bound in a condition, with their values. Cheap to clone: values that stay the same for
/// a whole run (facts, inputs) are copied once, the others are set for each evaluation.
#[derive(Clone, Default, Debug)]
pub struct CelBindings {
    names: Vec<(Cow<'static, str>, Arc<Value>)>,
    /// What the functions of expectations look at.
    run: Option<Arc<RunFacts>>,
}

impl CelBindings {
    /// Binds a name to a copy of a value; replaces an earlier value.
    pub fn bind(&mut self, name: &'static str, value: &Value) {
        self.bind_shared(Cow::Borrowed(name), Arc::new(value.clone()));
    }

    /// Binds a name to a shared value; replaces an earlier value.
    pub fn bind_shared(&mut self, name: impl Into<Cow<'static, str>>, value: Arc<Value>) {
        let name = name.into();
        match self.names.iter_mut().find(|(taken, _)| *taken == name) {
            Some((_, old)) => *old = value,
            None => self.names.push((name, value)),
        }
    }

    /// Sets what the functions of expectations look at.
    pub fn set_run_facts(&mut self, facts: Arc<RunFacts>) {
        self.run = Some(facts);
    }

    pub(super) fn run_facts(&self) -> Option<&RunFacts> {
        self.run.as_deref()
    }

    /// The value of a name, or of a field of it: `results.t1.rate`. A number is the place in a list.
    pub fn value_at(&self, path: &str) -> Option<&Value> {
        let mut steps = path.split('.');
        let first = self.get(steps.next()?)?;
        steps.try_fold(first, |value, step| match value {
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            value => value.get(step),
        })
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.names.iter().find(|(shown, _)| *shown == name).map(|(_, value)| &**value)
    }
}
