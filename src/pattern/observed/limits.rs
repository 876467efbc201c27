//! The limits of guarded programs and what they have used: of one program, or of all programs of a listening proxy.

use std::collections::{BTreeMap, HashMap};
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
    /// Whether several programs share it. Then max_seconds counts from the start of the proxy.
    pub is_shared: bool,
    since: Instant,
    /// The attempts that were not refused.
    calls: Mutex<u64>,
    /// The sizes by which people have extended limits.
    extended: Mutex<BTreeMap<LimitKey, u64>>,
    /// The guards of the models.
    models: Mutex<BTreeMap<ToolName, Arc<GuardedTool>>>,
}

/// A limit that a person can extend.
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
#[derive(Clone, Debug)]
pub(super) struct ReachedLimit {
    pub(super) reason: StopReason,
    /// One sentence for it.
    pub(super) text: String,
    /// `None`: it cannot be extended.
    key: Option<LimitKey>,
    /// The size of the limit, and how much of it is used.
    size: u64,
    used: u64,
}

impl ReachedLimit {
    pub(super) fn can_be_extended(&self) -> bool {
        self.key.is_some()
    }
}

/// The requests of one program, to find those that it repeats.
#[derive(Default)]
pub(super) struct SentRequests(HashMap<[u8; 32], u64>);

impl SentRequests {
    /// How often this request was sent before.
    fn count(&mut self, digest: [u8; 32]) -> u64 {
        if self.0.len() >= MAX_REQUESTS {
            self.0.clear();
        }
        let sent = self.0.entry(digest).or_default();
        *sent += 1;
        *sent - 1
    }
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
            calls: Mutex::default(),
            extended: Mutex::default(),
            models: Mutex::default(),
        }
    }

    /// Whether something has to be counted.
    pub fn counts(&self) -> bool {
        self.spending.is_limited() || self.limits.max_calls.is_some()
    }

    /// Extends a limit by its own size, so often that the call fits.
    pub(super) fn extend(&self, reached: &ReachedLimit) {
        let Some(key) = &reached.key else { return };
        let used = if *key == LimitKey::Calls { *lock(&self.calls) } else { reached.used };
        let mut extended = lock(&self.extended);
        let by = extended.entry(key.clone()).or_default();
        let missing = (used + 1).saturating_sub(reached.size + *by);
        *by += missing.div_ceil(reached.size).max(1) * reached.size;
    }

    /// The size of a limit, with its extensions.
    fn limit(&self, key: &LimitKey, size: u64) -> u64 {
        size + lock(&self.extended).get(key).copied().unwrap_or(0)
    }

    /// Whether a limit that a call had reached is still reached. Another call may have led to an extension.
    pub(super) fn is_reached(&self, reached: &ReachedLimit) -> bool {
        reached.key.as_ref().is_none_or(|key| match key {
            LimitKey::Calls => *lock(&self.calls) >= self.limit(key, reached.size),
            _ => reached.used >= self.limit(key, reached.size),
        })
    }

    /// Counts an attempt, unless the limit of calls is reached.
    pub(super) fn count_call(&self) -> Option<ReachedLimit> {
        let mut calls = lock(&self.calls);
        if let Some(size) = self.limits.max_calls
            && *calls >= self.limit(&LimitKey::Calls, size)
        {
            let text =
                format!("the limit of {} is reached: raise --max-calls", count_noun(size, "call"));
            let (reason, key, used) = (StopReason::MaxCalls, Some(LimitKey::Calls), *calls);
            return Some(ReachedLimit { reason, text, key, size, used });
        }
        *calls += 1;
        None
    }

    /// The guard of a model. `make` is called if there is none.
    pub(super) fn model(
        &self,
        name: &ToolName,
        make: impl FnOnce() -> Arc<GuardedTool>,
    ) -> Arc<GuardedTool> {
        Arc::clone(lock(&self.models).entry(name.clone()).or_insert_with(make))
    }

    /// The limit of time, repeats or calls that an attempt has reached; else the attempt is counted. `sent`: the requests
    /// of the program; `None` for a retry.
    pub(super) fn reached(
        &self,
        cx: &RunContext,
        sent: Option<&mut SentRequests>,
        about: &RequestAbout,
        price: Option<Price>,
    ) -> Option<ReachedLimit> {
        if let (Some(limit), None) = (self.spending.cost_limit(), price) {
            let (provider, model) = (&about.provider, &about.model);
            let text = format!(
                "the price of {provider}/{model} is not known, so {limit} cannot hold: add it to [prices] of the \
                 configuration"
            );
            let reason = StopReason::MaxCostBudget;
            return Some(ReachedLimit { reason, text, key: None, size: 0, used: 0 });
        }
        let of_time = || self.reached_time(cx);
        let repeated = sent.and_then(|sent| self.repeated(sent, about));
        of_time().or(repeated).or_else(|| self.count_call())
    }

    fn reached_time(&self, cx: &RunContext) -> Option<ReachedLimit> {
        let size = self.limits.max_time?.as_secs().max(1);
        let active = if self.is_shared { self.since.elapsed() } else { cx.control.active() };
        let used = active.as_secs();
        let key = LimitKey::Seconds;
        let text = format!("the limit of {size} s is reached: raise --max-seconds");
        let (is_reached, reason) = (used >= self.limit(&key, size), StopReason::MaxSeconds);
        is_reached.then_some(ReachedLimit { reason, text, key: Some(key), size, used })
    }

    /// The limit of repeats, if the program has sent the same request, or called a tool with the same result, so often.
    fn repeated(&self, sent: &mut SentRequests, about: &RequestAbout) -> Option<ReachedLimit> {
        let size = self.limits.repeats?;
        let reached = |key: LimitKey, used: u64, what: String| {
            let text = format!("{what}: the limit of repeats in the rules is {size}");
            let (is_reached, reason) = (used >= self.limit(&key, size), StopReason::RepeatsReached);
            is_reached.then_some(ReachedLimit { reason, text, key: Some(key), size, used })
        };
        let times = sent.count(about.digest);
        let what = format!("the same request was sent {times} times");
        let of_request = reached(LimitKey::Request(about.digest), times, what);
        of_request.or_else(|| {
            let (tool, times) = repeated_tool(&about.call.messages)?;
            let is_polling = self.limits.polling.iter().any(|name| *name == *tool);
            let what = format!("{tool} was called {times} times in a row with the same result");
            reached(LimitKey::Tool(tool), times, what).filter(|_| !is_polling)
        })
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

    /// Refused attempts do not count, and an extension makes room for the next one.
    #[test]
    fn extensions_make_room_for_calls() {
        let limits = GuardLimits { max_calls: Some(2), ..GuardLimits::default() };
        let account = GuardAccount::new(limits, None, false);
        let counted = [account.count_call(), account.count_call()];
        assert!(counted.iter().all(Option::is_none));
        let refused: Vec<_> = (0..30).filter_map(|_| account.count_call()).collect();
        assert_eq!(refused.len(), 30);
        account.extend(&refused[0]);
        assert!(!account.is_reached(&refused[29]), "one extension is for all that wait");
        assert!([account.count_call(), account.count_call()].iter().all(Option::is_none));
        assert!(account.is_reached(&refused[29]) && account.count_call().is_some());
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
