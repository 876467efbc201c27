//! What guarded programs may use, and what they have used: of one program, or of all that a listening proxy serves.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::guarded::RequestAbout;
use crate::base::name::ToolName;
use crate::gateway::GuardedTool;
use crate::log::event::{ChatMessage, MessageRole, StopReason};
use crate::run::RunContext;
use crate::run::spending::{DayAccount, Spending};
use crate::scenario::patterns::observed::GuardLimits;
use crate::scenario::spec::Price;
use crate::words::format::count_noun;

/// The account of the programs of a proxy.
pub struct GuardAccount {
    pub limits: GuardLimits,
    pub spending: Spending,
    /// Whether several programs share it, so that the time of none of them counts.
    pub is_shared: bool,
    since: Instant,
    /// The attempts so far.
    calls: AtomicU64,
    /// How often each request was sent that is no attempt of an earlier call.
    requests: Mutex<HashMap<[u8; 32], u64>>,
    /// By how much people have extended limits.
    extended: Mutex<BTreeMap<LimitKey, u64>>,
    /// The guards of the models.
    models: Mutex<BTreeMap<ToolName, Arc<GuardedTool>>>,
}

/// What a person may extend.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LimitKey {
    Calls,
    Seconds,
    /// The same request, by its digest.
    Request([u8; 32]),
    /// The same call of a tool, by its name.
    Tool(Arc<str>),
}

/// A limit that a call has reached.
pub(super) struct ReachedLimit {
    pub(super) reason: StopReason,
    /// One sentence for it.
    pub(super) text: String,
    /// What a person may extend, and by how much; `None`: nothing helps.
    pub(super) extends: Option<(LimitKey, u64)>,
}

/// Most requests that are counted to find a loop.
const MAX_REQUESTS: usize = 100_000;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GuardAccount {
    /// An account with nothing used. `day`: the account of the day; `is_shared`: by several programs.
    pub fn new(limits: GuardLimits, day: Option<Arc<dyn DayAccount>>, is_shared: bool) -> Self {
        let spending = Spending::new(limits.spending, day);
        Self {
            limits,
            spending,
            is_shared,
            since: Instant::now(),
            calls: AtomicU64::new(0),
            requests: Mutex::default(),
            extended: Mutex::default(),
            models: Mutex::default(),
        }
    }

    /// Whether something has to be counted.
    pub fn counts(&self) -> bool {
        self.spending.is_limited() || self.limits.max_calls.is_some()
    }

    /// The number of the next attempt.
    pub(super) fn next_call(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A person lets calls pass beyond a limit.
    pub(super) fn extend(&self, key: &LimitKey, by: u64) {
        *lock(&self.extended).entry(key.clone()).or_default() += by;
    }

    /// The guard of a model; `make` makes the first one of this name.
    pub(super) fn model(
        &self,
        name: &ToolName,
        make: impl FnOnce() -> Arc<GuardedTool>,
    ) -> Arc<GuardedTool> {
        Arc::clone(lock(&self.models).entry(name.clone()).or_insert_with(make))
    }

    /// The limit of calls, time or repeats that an attempt has reached. `nth`: its number; `is_new`: it is no retry.
    pub(super) fn reached(
        &self,
        cx: &RunContext,
        (nth, is_new): (u64, bool),
        about: &RequestAbout,
        price: Option<Price>,
    ) -> Option<ReachedLimit> {
        if let (Some(limit), None) = (self.spending.cost_limit(), price) {
            let (provider, model) = (&about.provider, &about.model);
            let text = format!(
                "the price of {provider}/{model} is not known, so {limit} cannot hold: add it to [prices] of the \
                 configuration"
            );
            return Some(ReachedLimit { reason: StopReason::MaxCostBudget, text, extends: None });
        }
        let with_extension =
            |most: u64, key: &LimitKey| most + lock(&self.extended).get(key).copied().unwrap_or(0);
        if let Some(most) = self.limits.max_calls
            && nth > with_extension(most, &LimitKey::Calls)
        {
            let text =
                format!("the limit of {} is reached: raise --max-calls", count_noun(most, "call"));
            let extends = Some((LimitKey::Calls, most));
            return Some(ReachedLimit { reason: StopReason::MaxCalls, text, extends });
        }
        if let Some(most) = self.limits.max_time.map(|most| most.as_secs()) {
            let used = if self.is_shared { self.since.elapsed() } else { cx.control.active() };
            if used.as_secs_f64() > with_extension(most, &LimitKey::Seconds) as f64 {
                let text = format!("the limit of {most} s is reached: raise --max-seconds");
                let extends = Some((LimitKey::Seconds, most.max(1)));
                return Some(ReachedLimit { reason: StopReason::MaxSeconds, text, extends });
            }
        }
        let most = self.limits.repeats.filter(|_| is_new)?;
        let (key, count, what) = self.repeated(about, most)?;
        if count < with_extension(most, &key) {
            return None;
        }
        let text = format!("{what}: the limit of repeats in the rules is {most}");
        let extends = Some((key, most));
        Some(ReachedLimit { reason: StopReason::RepeatsReached, text, extends })
    }

    /// What is repeated at least so often: the same request, or the same call of a tool with the same result.
    fn repeated(&self, about: &RequestAbout, most: u64) -> Option<(LimitKey, u64, String)> {
        let sent = {
            let mut requests = lock(&self.requests);
            if requests.len() >= MAX_REQUESTS {
                requests.clear();
            }
            let sent = requests.entry(about.digest).or_default();
            *sent += 1;
            *sent
        };
        if sent >= most {
            let what = format!("the same request was sent {sent} times");
            return Some((LimitKey::Request(about.digest), sent, what));
        }
        let (tool, count) = repeated_tool(&about.call.messages)?;
        if count < most || self.limits.polling.iter().any(|name| *name == *tool) {
            return None;
        }
        let what = format!("{tool} was called {count} times in a row with the same result");
        Some((LimitKey::Tool(tool), count, what))
    }
}

/// The tool of the last calls of a conversation, and how many of them in a row had the same arguments and the same
/// result.
fn repeated_tool(messages: &[ChatMessage]) -> Option<(Arc<str>, u64)> {
    let mut results: HashMap<&str, &str> = HashMap::new();
    let (mut last, mut count) = (None::<(Arc<str>, &str, &str)>, 0);
    for message in messages.iter().rev() {
        if message.role == MessageRole::Tool {
            if let Some(id) = &message.tool_call_id {
                results.insert(id, &message.content);
            }
            continue;
        }
        for call in message.tool_calls.iter().rev() {
            let Some(result) = results.get(&*call.id) else {
                return last.map(|(name, ..)| (name, count));
            };
            let made = (Arc::clone(&call.name), &*call.arguments, *result);
            match &last {
                Some(last) if *last != made => return Some((Arc::clone(&last.0), count)),
                Some(_) => count += 1,
                None => (last, count) = (Some(made), 1),
            }
        }
    }
    last.map(|(name, ..)| (name, count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::spec::tool::ToolCall;

    /// Calls of `refund` with these arguments and results, in one conversation.
    fn conversation(calls: &[(&str, &str)]) -> Vec<ChatMessage> {
        let mut messages = vec![ChatMessage::new(MessageRole::User, "refund me")];
        for (nth, (arguments, result)) in calls.iter().enumerate() {
            let id: Arc<str> = format!("c{nth}").into();
            let (name, arguments) = ("refund".into(), Arc::from(*arguments));
            let call = ToolCall { id: Arc::clone(&id), name, arguments };
            messages.push(ChatMessage::assistant("", [call].into()));
            let result = ChatMessage::new(MessageRole::Tool, *result);
            messages.push(ChatMessage { tool_call_id: Some(id), ..result });
        }
        messages
    }

    #[test]
    fn equal_tool_calls_are_counted() {
        for (calls, count) in [
            (&[][..], None),
            (&[("1", "ok")], Some(1)),
            (&[("1", "ok"), ("1", "ok"), ("1", "ok")], Some(3)),
            (&[("2", "ok"), ("1", "ok"), ("1", "ok")], Some(2)),
            // Another result is progress.
            (&[("1", "30 %"), ("1", "60 %")], Some(1)),
        ] {
            let found = repeated_tool(&conversation(calls)).map(|(_, count)| count);
            assert_eq!(found, count, "{calls:?}");
        }
    }
}
