//! What a run may spend on its models, in tokens and in US dollars. A call reserves its estimate
//! first, so concurrent calls cannot use the same room twice. A call that does not fit waits for
//! the calls in flight, and stops the run if it does not fit even without them.
//!
//! The guarantee: a run spends at most its limit, plus what the replies of calls in flight exceeded
//! their estimates by.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

use crate::log::event::{BudgetReached, Reply, Usage};
use crate::model::Conversation;
use crate::scenario::spec::tool::ToolOffer;
use crate::scenario::spec::{Price, REPLY_TOKENS, SpendingLimits};

/// Estimated bytes of one token, if the endpoint does not count tokens.
const BYTES_PER_TOKEN: u64 = 4;

/// The spending of one run.
#[derive(Debug)]
pub struct Spending {
    limits: SpendingLimits,
    /// The account of the day that its calls count for.
    day: Option<Arc<dyn DayAccount>>,
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

/// The spending of one day, of all runs of the user in all processes.
pub trait DayAccount: fmt::Debug + Send + Sync {
    fn limits(&self) -> SpendingLimits;

    /// Reserves this amount for today, and returns the date. It may block for a moment.
    ///
    /// # Errors
    /// There is no room, or the account cannot be written.
    fn reserve(&self, amount: Amount) -> Result<String, DayRefusal>;

    /// Replaces the reservation of a call on this date by the amount that it used.
    fn settle(&self, date: &str, reserved: Amount, used: Amount);
}

/// Why nothing was reserved for a call on this day.
#[derive(Debug)]
pub enum DayRefusal {
    /// It would exceed the limit. `may_fit`: it may fit once calls in flight have ended.
    Full { reached: BudgetReached, may_fit: bool },
    /// The account cannot be written.
    Failed(String),
}

/// Why nothing was reserved for a call.
#[derive(Debug)]
pub enum NotReserved {
    Reached(BudgetReached),
    /// The account of the day cannot be written.
    Failed(String),
}

/// Time between two tries to reserve, while calls of other processes leave no room.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// A reservation in the account of a day. When it is dropped, the used amount replaces it.
#[derive(Debug)]
struct DayReservation {
    account: Arc<dyn DayAccount>,
    date: String,
    amount: Amount,
    used: Amount,
}

impl DayReservation {
    async fn of(
        account: &Arc<dyn DayAccount>,
        amount: Amount,
        until: Option<Instant>,
    ) -> Result<Self, NotReserved> {
        loop {
            let account = Arc::clone(account);
            let reserve = move || {
                let date = account.reserve(amount)?;
                Ok(Self { account, date, amount, used: Amount::default() })
            };
            let failed = |_| DayRefusal::Failed("the account of the day failed".to_owned());
            match spawn_blocking(reserve).await.map_err(failed).flatten() {
                Ok(reserved) => return Ok(reserved),
                Err(DayRefusal::Full { may_fit: true, .. })
                    if until.is_none_or(|until| Instant::now() < until) =>
                {
                    tokio::time::sleep(TRY_AGAIN).await;
                }
                Err(DayRefusal::Full { reached, .. }) => {
                    return Err(NotReserved::Reached(reached));
                }
                Err(DayRefusal::Failed(why)) => return Err(NotReserved::Failed(why)),
            }
        }
    }
}

impl Drop for DayReservation {
    fn drop(&mut self) {
        self.account.settle(&self.date, self.amount, self.used);
    }
}

/// Tokens and US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Amount {
    pub tokens: u64,
    pub usd: f64,
}

impl Amount {
    fn of(usage: &Usage, price: Option<Price>) -> Self {
        Self { tokens: usage.total(), usd: price.map_or(0.0, |price| price.cost(usage)) }
    }

    /// The sum of two amounts.
    pub fn and(self, more: Self) -> Self {
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
    /// Starts with nothing spent. `day`: the account of the day that its calls count for.
    pub fn new(limits: SpendingLimits, day: Option<Arc<dyn DayAccount>>) -> Self {
        let (state, asking) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { limits, day, state, released: Notify::new(), asking }
    }

    /// Whether there is a limit; if not, no estimate is needed.
    pub fn is_limited(&self) -> bool {
        !self.limits.is_none() || self.day.is_some()
    }

    /// The setting that limits the cost; `None`: a call without a price may be made.
    pub fn cost_limit(&self) -> Option<&'static str> {
        let of_day = self.day.as_ref().and_then(|day| day.limits().max_cost_usd);
        match self.limits.max_cost_usd {
            Some(_) => Some("max_cost_usd"),
            None => of_day.map(|_| "limits.day.cost_usd"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, SpendingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves the estimate of a call, once there is room for it. `patience`: how long it waits for the calls in flight;
    /// `None`: until they have ended.
    ///
    /// # Errors
    /// The limit, if the call would not fit even if no other call were in flight, or did not fit in time.
    pub async fn reserve(
        &self,
        estimate: Usage,
        price: Option<Price>,
        patience: Option<Duration>,
    ) -> Result<Reserved<'_>, NotReserved> {
        let amount = Amount::of(&estimate, price);
        let until = patience.map(|patience| Instant::now() + patience);
        let mut reserved = self.reserve_of_run(amount, price, until).await?;
        if let Some(day) = &self.day {
            reserved.day = Some(DayReservation::of(day, amount, until).await?);
        }
        Ok(reserved)
    }

    async fn reserve_of_run(
        &self,
        amount: Amount,
        price: Option<Price>,
        until: Option<Instant>,
    ) -> Result<Reserved<'_>, NotReserved> {
        loop {
            let came_back = self.released.notified();
            tokio::pin!(came_back);
            came_back.as_mut().enable();
            let full = {
                let mut state = self.lock();
                if let Some(reached) = self.exceeded_limit(&state, state.spent, amount) {
                    return Err(NotReserved::Reached(reached));
                }
                let with_those_out = state.spent.and(state.reserved);
                let Some(full) = self.exceeded_limit(&state, with_those_out, amount) else {
                    state.reserved = state.reserved.and(amount);
                    return Ok(Reserved { spending: self, amount, price, day: None });
                };
                full
            };
            match until {
                None => came_back.await,
                Some(until) => {
                    let waited = timeout_at(until, came_back).await;
                    waited.map_err(|_| NotReserved::Reached(full))?;
                }
            }
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
    ) -> Option<BudgetReached> {
        let tokens = self.limits.max_total_tokens;
        let usd = self.limits.max_cost_usd;
        let limits = SpendingLimits {
            max_total_tokens: tokens
                .map(|limit| limit.saturating_mul(u64::from(state.extended_tokens) + 1)),
            max_cost_usd: usd.map(|limit| limit * (f64::from(state.extended_usd) + 1.0)),
        };
        exceeded(limits, used, more, false)
    }
}

/// The limit that this much more would exceed; `of_day`: those of a day.
pub fn exceeded(
    limits: SpendingLimits,
    used: Amount,
    more: Amount,
    of_day: bool,
) -> Option<BudgetReached> {
    let all = used.and(more);
    if let Some(limit) = limits.max_total_tokens.filter(|limit| all.tokens > *limit) {
        let (spent, estimate) = (used.tokens, more.tokens);
        return Some(BudgetReached::Tokens { limit, spent, estimate, of_day });
    }
    let limit = limits.max_cost_usd.filter(|limit| all.usd > *limit)?;
    Some(BudgetReached::Cost { limit, spent: used.usd, estimate: more.usd, of_day })
}

/// The reservation of a call. It is released when this is dropped.
#[derive(Debug)]
pub struct Reserved<'a> {
    spending: &'a Spending,
    amount: Amount,
    price: Option<Price>,
    day: Option<DayReservation>,
}

impl Reserved<'_> {
    /// The call is made now. Without a later report its estimate counts for the day.
    pub fn sent(&mut self) {
        if let Some(day) = &mut self.day {
            day.used = day.amount;
        }
    }

    /// Records what the call really used; `cost_usd`: what it cost, if that was said.
    pub fn used(mut self, usage: &Usage, cost_usd: Option<f64>) {
        let mut used = Amount::of(usage, self.price);
        used.usd = cost_usd.unwrap_or(used.usd);
        if let Some(day) = &mut self.day {
            day.used = used;
        }
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
    use crate::log::event::StopReason;

    fn limited(tokens: Option<u64>, usd: Option<f64>) -> Spending {
        Spending::new(SpendingLimits { max_total_tokens: tokens, max_cost_usd: usd }, None)
    }

    /// The limit; `None`: the account of the day cannot be written.
    fn reached(why: NotReserved) -> Option<BudgetReached> {
        match why {
            NotReserved::Reached(reached) => Some(reached),
            NotReserved::Failed(_) => None,
        }
    }

    /// Result of a reservation that does not wait; `None` if it would wait.
    fn now(spending: &Spending, tokens: u64) -> Option<Result<Reserved<'_>, BudgetReached>> {
        let reserved = spending.reserve(Usage::new(tokens, 0), None, None).now_or_never()?;
        Some(reserved.map_err(|why| reached(why).expect("a limit")))
    }

    #[test]
    fn call_over_budget_stops_or_waits() {
        let spending = limited(Some(100), None);
        let first = now(&spending, 60).expect("there is room").expect("there is room");
        assert!(now(&spending, 60).is_none(), "it fits after the first call has ended");
        let reached = BudgetReached::Tokens { limit: 100, spent: 0, estimate: 101, of_day: false };
        assert_eq!(now(&spending, 101).expect("at once").err(), Some(reached));
        first.used(&Usage::new(10, 5), None);
        let second = now(&spending, 60).expect("there is room").expect("there is room");
        second.used(&Usage::new(50, 30), None);
        let reached = BudgetReached::Tokens { limit: 100, spent: 95, estimate: 6, of_day: false };
        assert_eq!(now(&spending, 6).expect("at once").err(), Some(reached));
        drop(now(&spending, 5).expect("there is room").expect("there is room"));
    }

    #[test]
    fn counts_money_by_model_price() {
        let spending = limited(None, Some(1.0));
        let dear = Some(Price::new(1.0, 10.0));
        let reserve = |price| {
            let million = Usage::new(100_000, 80_000);
            spending.reserve(million, price, None).now_or_never().expect("at once")
        };
        let reserved = reserve(dear).expect("0.90 of 1.00");
        reserved.used(&Usage::new(100_000, 0), None);
        let reserved = reserve(dear).expect("0.10 and 0.90");
        reserved.used(&Usage::new(0, 1_000), None);
        let reached = reached(reserve(dear).expect_err("0.11 and 0.90")).expect("a limit");
        assert_eq!(reached.reason(), StopReason::MaxCostBudget);
        let said = "The next call may cost $0.9000, and an estimated $0.1100 of $1.0000 are used \
                    (budget.max_cost_usd).";
        assert_eq!(reached.sentence(), said);
        assert!(reserve(None).is_ok(), "calls without a price cost nothing here");
    }

    /// An account of a day with room for so many tokens, and what it was told.
    #[derive(Debug)]
    struct Day(u64, Mutex<Vec<(u64, u64)>>);

    impl DayAccount for Day {
        fn limits(&self) -> SpendingLimits {
            SpendingLimits { max_total_tokens: Some(self.0), max_cost_usd: None }
        }

        fn reserve(&self, amount: Amount) -> Result<String, DayRefusal> {
            match exceeded(self.limits(), Amount::default(), amount, true) {
                Some(reached) => Err(DayRefusal::Full { reached, may_fit: false }),
                None => Ok("2026-02-10".to_owned()),
            }
        }

        fn settle(&self, date: &str, reserved: Amount, used: Amount) {
            assert_eq!(date, "2026-02-10");
            self.1.lock().expect("no panic").push((reserved.tokens, used.tokens));
        }
    }

    /// A call counts for its day what it has used, and nothing if it was not made.
    #[tokio::test]
    async fn calls_count_for_their_day() {
        let day = Arc::new(Day(100, Mutex::default()));
        let spending = Spending::new(SpendingLimits::default(), Some(Arc::clone(&day) as _));
        assert!(spending.is_limited());
        let reserve = |tokens| spending.reserve(Usage::new(tokens, 0), None, None);
        reserve(60).await.expect("room").used(&Usage::new(10, 5), None);
        drop(reserve(70).await.expect("room"));
        // The run has ended while the vendor had the request.
        reserve(80).await.expect("room").sent();
        let why = reached(reserve(101).await.expect_err("no room")).expect("a limit");
        let sentence = "The next call may use 101 tokens, and 0 of 100 are used today \
                        (limits.day.total_tokens of the configuration).";
        assert_eq!(why.sentence(), sentence);
        assert_eq!(*day.1.lock().expect("no panic"), [(60, 15), (70, 0), (80, 80)]);
    }

    #[tokio::test(start_paused = true)]
    async fn impatient_calls_name_the_limit() {
        let spending = limited(Some(100), None);
        let first = now(&spending, 60).expect("there is room").expect("there is room");
        let patience = Some(Duration::from_secs(30));
        let waited = spending.reserve(Usage::new(60, 0), None, patience).await;
        let full = BudgetReached::Tokens { limit: 100, spent: 60, estimate: 60, of_day: false };
        assert_eq!(reached(waited.expect_err("no room in time")), Some(full));
        drop(first);
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
