//! What a run may spend on its models, in tokens and in US dollars. A call reserves its estimate
//! first, so concurrent calls cannot use the same room twice. A call that does not fit waits for
//! the calls in flight, and stops the run if it does not fit even without them.
//!
//! The guarantee: a run spends at most its limit, plus what the replies of calls in flight exceeded
//! their estimates by.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::log::event::{BudgetReached, Reply, StopReason, Usage};
use crate::model::Conversation;
use crate::scenario::spec::tool::ToolOffer;
use crate::scenario::spec::{Price, REPLY_TOKENS, SpendingLimits};

/// Estimated bytes of one token, if the endpoint does not count tokens.
const BYTES_PER_TOKEN: u64 = 4;

/// The spending of one run.
#[derive(Debug)]
pub struct Spending {
    limits: SpendingLimits,
    state: Mutex<SpendingState>,
    /// Signals that a call has ended.
    released: Notify,
    /// Held by the call that asks whether to extend a limit: the others wait for the answer.
    pub asking: tokio::sync::Mutex<()>,
}

#[derive(Clone, Copy, Debug, Default)]
struct SpendingState {
    spent: Amount,
    reserved: Amount,
    /// How often each limit was extended by its own size.
    extended_tokens: u32,
    extended_usd: u32,
}

/// Tokens and US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Amount {
    tokens: u64,
    usd: f64,
}

impl Amount {
    fn of(usage: &Usage, price: Option<Price>) -> Self {
        Self { tokens: usage.total(), usd: price.map_or(0.0, |price| price.cost(usage)) }
    }

    fn and(self, more: Self) -> Self {
        Self { tokens: self.tokens.saturating_add(more.tokens), usd: self.usd + more.usd }
    }

    fn without(self, less: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(less.tokens),
            usd: (self.usd - less.usd).max(0.0),
        }
    }
}

impl Spending {
    /// Starts with nothing spent.
    pub fn new(limits: SpendingLimits) -> Self {
        let (state, asking) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { limits, state, released: Notify::new(), asking }
    }

    /// Whether there is a limit; if not, no estimate is needed.
    pub fn is_limited(&self) -> bool {
        !self.limits.is_none()
    }

    fn lock(&self) -> MutexGuard<'_, SpendingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves the estimate of a call, once there is room for it.
    ///
    /// # Errors
    /// The reason and the limit, if the call would not fit even if no other call were in flight.
    pub async fn reserve(
        &self,
        estimate: Usage,
        price: Option<Price>,
    ) -> Result<Reserved<'_>, (StopReason, BudgetReached)> {
        let amount = Amount::of(&estimate, price);
        loop {
            let came_back = self.released.notified();
            tokio::pin!(came_back);
            came_back.as_mut().enable();
            {
                let mut state = self.lock();
                if let Some(reached) = self.exceeded_limit(&state, state.spent, amount) {
                    return Err(reached);
                }
                let with_those_out = state.spent.and(state.reserved);
                if self.exceeded_limit(&state, with_those_out, amount).is_none() {
                    state.reserved = state.reserved.and(amount);
                    return Ok(Reserved { spending: self, amount, price });
                }
            }
            came_back.await;
        }
    }

    /// Extends the limit that was reached by its own size, so often that the call fits.
    pub fn extend(&self, reached: &BudgetReached) {
        let sizes = reached.missing_sizes(self.limits);
        let mut state = self.lock();
        let extended = match reached {
            BudgetReached::Tokens { .. } => &mut state.extended_tokens,
            BudgetReached::Cost { .. } => &mut state.extended_usd,
        };
        *extended = extended.saturating_add(sizes);
    }

    /// The limit that this much more would exceed.
    fn exceeded_limit(
        &self,
        state: &SpendingState,
        used: Amount,
        more: Amount,
    ) -> Option<(StopReason, BudgetReached)> {
        let all = used.and(more);
        let tokens = self.limits.max_total_tokens;
        if let Some(limit) =
            tokens.map(|limit| limit.saturating_mul(u64::from(state.extended_tokens) + 1))
            && all.tokens > limit
        {
            let (spent, estimate) = (used.tokens, more.tokens);
            let reached = BudgetReached::Tokens { limit, spent, estimate };
            return Some((StopReason::MaxTokensBudget, reached));
        }
        let usd = self.limits.max_cost_usd;
        if let Some(limit) = usd.map(|limit| limit * (f64::from(state.extended_usd) + 1.0))
            && all.usd > limit
        {
            let (spent, estimate) = (used.usd, more.usd);
            let reached = BudgetReached::Cost { limit, spent, estimate };
            return Some((StopReason::MaxCostBudget, reached));
        }
        None
    }
}

/// The reservation of a call. It is released when this is dropped.
#[derive(Debug)]
pub struct Reserved<'a> {
    spending: &'a Spending,
    amount: Amount,
    price: Option<Price>,
}

impl Reserved<'_> {
    /// Records what the call really used; `cost_usd`: what it cost, if that was said.
    pub fn used(self, usage: &Usage, cost_usd: Option<f64>) {
        let mut used = Amount::of(usage, self.price);
        used.usd = cost_usd.unwrap_or(used.usd);
        let mut state = self.spending.lock();
        state.spent = state.spent.and(used);
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let mut state = self.spending.lock();
        state.reserved = state.reserved.without(self.amount);
        drop(state);
        self.spending.released.notify_waiters();
    }
}

/// Estimated number of tokens in a text of this many bytes.
fn estimate_tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES_PER_TOKEN)
}

/// Bytes of a request: its messages and tools.
fn request_bytes(messages: &Conversation, tools: &[ToolOffer]) -> usize {
    let said = messages.iter().map(|message| {
        let calls = message.tool_calls.iter().map(|call| call.name.len() + call.arguments.len());
        message.content.len() + calls.sum::<usize>()
    });
    let offered = tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.to_string().len());
    said.sum::<usize>() + offered.sum::<usize>()
}

/// Estimated tokens of a call before it is made: its request, and the longest possible reply.
/// `max_tokens` is the limit of the reply, if one is set.
pub fn estimate(messages: &Conversation, tools: &[ToolOffer], max_tokens: Option<u32>) -> Usage {
    let reply = u64::from(max_tokens.unwrap_or(REPLY_TOKENS));
    Usage::new(estimate_tokens(request_bytes(messages, tools)), reply)
}

/// Estimated tokens of a call that the endpoint did not count; `came` is the bytes of the reply
/// received.
pub fn estimate_usage(messages: &Conversation, tools: &[ToolOffer], came: usize) -> Usage {
    Usage::new(estimate_tokens(request_bytes(messages, tools)), estimate_tokens(came))
}

/// Bytes of a reply.
pub fn reply_bytes(reply: &Reply) -> usize {
    let calls = reply.tool_calls.iter().map(|call| call.name.len() + call.arguments.len());
    reply.text.len() + calls.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use proptest::prelude::*;

    use super::*;

    fn limited(tokens: Option<u64>, usd: Option<f64>) -> Spending {
        Spending::new(SpendingLimits { max_total_tokens: tokens, max_cost_usd: usd })
    }

    /// Result of a reservation that does not wait; `None` if it would wait.
    fn now(spending: &Spending, tokens: u64) -> Option<Result<Reserved<'_>, BudgetReached>> {
        let reserved = spending.reserve(Usage::new(tokens, 0), None).now_or_never()?;
        Some(reserved.map_err(|(_, reached)| reached))
    }

    #[test]
    fn call_over_budget_stops_or_waits() {
        let spending = limited(Some(100), None);
        let first = now(&spending, 60).expect("there is room").expect("there is room");
        assert!(now(&spending, 60).is_none(), "it fits after the first call has ended");
        let reached = BudgetReached::Tokens { limit: 100, spent: 0, estimate: 101 };
        assert_eq!(now(&spending, 101).expect("at once").err(), Some(reached));
        first.used(&Usage::new(10, 5), None);
        let second = now(&spending, 60).expect("there is room").expect("there is room");
        second.used(&Usage::new(50, 30), None);
        let reached = BudgetReached::Tokens { limit: 100, spent: 95, estimate: 6 };
        assert_eq!(now(&spending, 6).expect("at once").err(), Some(reached));
        drop(now(&spending, 5).expect("there is room").expect("there is room"));
    }

    #[test]
    fn counts_money_by_model_price() {
        let spending = limited(None, Some(1.0));
        let dear = Some(Price::new(1.0, 10.0));
        let reserve = |price| {
            let million = Usage::new(100_000, 80_000);
            spending.reserve(million, price).now_or_never().expect("at once")
        };
        let reserved = reserve(dear).expect("0.90 of 1.00");
        reserved.used(&Usage::new(100_000, 0), None);
        let reserved = reserve(dear).expect("0.10 and 0.90");
        reserved.used(&Usage::new(0, 1_000), None);
        let (reason, reached) = reserve(dear).expect_err("0.11 and 0.90");
        assert_eq!(reason, StopReason::MaxCostBudget);
        let BudgetReached::Cost { limit, spent, estimate } = reached else { panic!("a cost") };
        assert!((limit - 1.0).abs() + (spent - 0.11).abs() + (estimate - 0.9).abs() < 1e-9);
        assert!(reserve(None).is_ok(), "calls without a price cost nothing here");
    }

    proptest! {
        /// For any order of reservations and ends: reserved and spent together never exceed the
        /// limit by more than replies exceeded their estimates.
        #[test]
        fn spending_exceeds_limit_only_by_overruns(
            limit in 1_u64..500,
            steps in prop::collection::vec((0_u64..200, 0_u64..250, any::<bool>()), 1..40),
        ) {
            let spending = limited(Some(limit), None);
            let (mut out, mut spent, mut beyond) = (Vec::new(), 0_u64, 0_u64);
            for (estimate, uses, comes_back) in steps {
                let reserved: u64 = out.iter().map(|(estimate, _, _)| estimate).sum();
                match now(&spending, estimate) {
                    Some(Ok(guard)) => {
                        prop_assert!(spent + reserved + estimate <= limit);
                        out.push((estimate, uses, guard));
                    }
                    Some(Err(_)) => prop_assert!(spent + estimate > limit),
                    None => {
                        prop_assert!(spent + estimate <= limit);
                        prop_assert!(spent + reserved + estimate > limit);
                    }
                }
                if comes_back && !out.is_empty() {
                    let (estimate, uses, guard): (u64, u64, Reserved<'_>) = out.swap_remove(0);
                    guard.used(&Usage::new(uses, 0), None);
                    spent += uses;
                    beyond += uses.saturating_sub(estimate);
                }
                prop_assert!(spent <= limit + beyond);
            }
        }
    }
}
