//! Alerts to the operator during a run: the scenario's thresholds, checked against the last minute
//! (cascading failures source document, checklist: "breaker open rate, tool error rates, tool
//! latency").

use std::borrow::Cow;
use std::collections::VecDeque;
use std::mem::{Discriminant, discriminant};
use std::time::Duration;

use super::spans::Spans;
use super::spending::SpendingUsed;
use super::tools::Tools;
use crate::base::name::ToolName;
use crate::log::event::{
    BreakerCause, BreakerStage, Elapsed, Event, EventKind, Seq, SpanId, WindowCounts,
};
use crate::scenario::spec::AlertLimits;

/// Length of the window that is checked.
const WINDOW: Duration = Duration::from_secs(60);
/// Min number of counted attempts for an error rate.
const MIN_ATTEMPTS: u64 = 10;
/// Most alerts to keep; further ones are only counted.
const MAX_ALERTS: usize = 256;
/// Share of a spending limit at which the operator is alerted.
const SPENDING_SHARE: f64 = 0.8;
/// Name of the model at the gateway.
const MODEL: &str = "llm";
/// The p95 is checked after this many more answered calls.
const P95_INTERVAL: u64 = 8;

/// The alerts of a run, in the order they were raised.
#[derive(Clone, Debug, Default)]
pub struct Alerts {
    limits: AlertLimits,
    raised: Vec<Alert>,
    left_out: u64,
    /// Active alerts, whether kept or only counted.
    current: Vec<ActiveAlert>,
    windows: Vec<ErrorWindow>,
}

/// An active alert.
#[derive(Clone, Debug)]
struct ActiveAlert {
    tool: ToolName,
    what: Discriminant<AlertKind>,
    /// Index among the kept alerts; `None`: it is only counted.
    kept: Option<usize>,
}

/// The counted attempts of one tool in the last minute.
#[derive(Clone, Debug, Default)]
struct ErrorWindow {
    slots: VecDeque<WindowSecond>,
    good: u64,
    bad: u64,
}

#[derive(Clone, Copy, Debug)]
struct WindowSecond {
    second: u64,
    good: u64,
    bad: u64,
}

/// An alert, from the moment a threshold was exceeded until it no longer was.
#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    pub at: Elapsed,
    pub seq: Seq,
    /// When it ended, if it has.
    pub ended: Option<Elapsed>,
    pub tool: ToolName,
    /// The threshold, with the value that exceeded it.
    pub what: AlertKind,
    /// Why the breaker opened, if its openings raised the alert.
    pub opened: Option<(BreakerCause, Option<WindowCounts>)>,
}

impl Alert {
    /// Why the breaker opened, if calls in its window opened it.
    pub fn opened_by_window(&self) -> Option<Cow<'static, str>> {
        let (cause, counted) = self.opened?;
        counted.map(|_| cause.description(counted))
    }
}

/// The threshold of an alert, with the value that exceeded it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AlertKind {
    /// Number of times that the breaker opened within a minute.
    BreakerOpens(u32),
    /// Share of failed attempts in the last minute.
    ErrorRate(f64),
    /// 95th percentile of the latest calls.
    P95(Duration),
    /// Used share of the token budget.
    TokensUsed(f64),
    /// Used share of the cost budget, estimated.
    CostUsed(f64),
}

impl AlertKind {
    /// The word in JSON: the scenario's key for the threshold.
    pub fn word(&self) -> &'static str {
        match self {
            Self::BreakerOpens(_) => "breaker_opens_per_minute",
            Self::ErrorRate(_) => "error_rate",
            Self::P95(_) => "p95_ms",
            Self::TokensUsed(_) => "max_total_tokens",
            Self::CostUsed(_) => "max_cost_usd",
        }
    }
}

impl ErrorWindow {
    /// Drops the slots that are older than the window.
    fn drop_old(&mut self, now: Elapsed) {
        let oldest = (now.0 / 1_000_000).saturating_sub(WINDOW.as_secs());
        while let Some(slot) = self.slots.front().filter(|slot| slot.second < oldest).copied() {
            self.good -= slot.good;
            self.bad -= slot.bad;
            self.slots.pop_front();
        }
    }

    fn note(&mut self, at: Elapsed, good: bool) {
        self.drop_old(at);
        let second = at.0 / 1_000_000;
        let (good, bad) = (u64::from(good), u64::from(!good));
        self.good += good;
        self.bad += bad;
        match self.slots.back_mut().filter(|slot| slot.second >= second) {
            Some(slot) => {
                slot.good += good;
                slot.bad += bad;
            }
            None => self.slots.push_back(WindowSecond { second, good, bad }),
        }
    }

    fn rate(&self) -> Option<f64> {
        let judged = self.good + self.bad;
        (judged >= MIN_ATTEMPTS).then(|| self.bad as f64 / judged as f64)
    }
}

impl Alerts {
    /// All kept alerts, in the order they were raised.
    pub fn all(&self) -> &[Alert] {
        &self.raised
    }

    /// The active alerts.
    pub fn active(&self) -> impl Iterator<Item = &Alert> {
        self.raised.iter().filter(|alert| alert.ended.is_none())
    }

    /// Number of alerts that were not kept.
    pub fn not_kept(&self) -> u64 {
        self.left_out
    }

    pub(crate) fn begin(&mut self, limits: AlertLimits) {
        self.limits = limits;
    }

    /// Checks the thresholds after the tools have processed the event.
    pub(crate) fn apply(&mut self, event: &Event, tools: &Tools, spans: &Spans) {
        let limits = self.limits;
        if !self.current.is_empty() {
            self.end_elapsed(event.at, tools);
        }
        match &event.kind {
            EventKind::BreakerChanged { tool, to: BreakerStage::Open, cause: why, .. }
                if why.is_failure() =>
            {
                let Some(limit) = limits.breaker_opens_per_minute else { return };
                let Some(row) = tools.get(tool.as_str()) else { return };
                let opened = row.recent_openings(event.at);
                self.update(event, row.name(), AlertKind::BreakerOpens(opened), opened > limit);
            }
            EventKind::AttemptAnswered(_) => self.count_attempt(event, tools, spans, true),
            EventKind::AttemptFailed(failed) if failed.class.is_failure_of_tool(failed.status) => {
                self.count_attempt(event, tools, spans, false);
            }
            EventKind::CallAnswered { .. } => {
                let Some(limit) = limits.p95_ms else { return };
                let Some(row) = tools.last_closed() else { return };
                if row.latencies.count().is_multiple_of(P95_INTERVAL)
                    && let Some(p95) = row.latencies.percentile(95)
                {
                    let passed = p95 > Duration::from_millis(limit);
                    self.update(event, row.name(), AlertKind::P95(p95), passed);
                }
            }
            _ => {}
        }
    }

    /// Checks how much of a spending limit is used.
    pub(super) fn check_spending(&mut self, event: &Event, used: SpendingUsed) {
        let share = used.share();
        let what = match used {
            SpendingUsed::Tokens { .. } => AlertKind::TokensUsed(share),
            SpendingUsed::Cost { .. } => AlertKind::CostUsed(share),
        };
        self.update(event, &ToolName::from(MODEL), what, share >= SPENDING_SHARE);
    }

    /// Ends alerts that end by the passing of time, without an event of the tool.
    fn end_elapsed(&mut self, now: Elapsed, tools: &Tools) {
        let opens = discriminant(&AlertKind::BreakerOpens(0));
        let errors = discriminant(&AlertKind::ErrorRate(0.0));
        let Self { limits, raised, current, windows, .. } = self;
        current.retain(|alert| {
            let mut rows = tools.rows().iter();
            let Some(place) = rows.position(|row| *row.name() == alert.tool) else { return true };
            let over = if alert.what == opens {
                let opened = tools.rows()[place].recent_openings(now);
                limits.breaker_opens_per_minute.is_none_or(|limit| opened <= limit)
            } else if alert.what == errors {
                windows.get_mut(place).is_none_or(|window| {
                    window.drop_old(now);
                    window.slots.is_empty()
                })
            } else {
                false
            };
            if over && let Some(kept) = alert.kept {
                raised[kept].ended = Some(now);
            }
            !over
        });
    }

    fn count_attempt(&mut self, event: &Event, tools: &Tools, spans: &Spans, good: bool) {
        let Some(limit) = self.limits.error_rate else { return };
        let call = spans.get(event.span).map_or(SpanId::RUN, |span| span.parent);
        let Some(row) = tools.for_call(call) else { return };
        let Some(place) = tools.rows().iter().position(|it| it.name() == row.name()) else {
            return;
        };
        if self.windows.len() <= place {
            self.windows.resize_with(place + 1, ErrorWindow::default);
        }
        self.windows[place].note(event.at, good);
        if let Some(rate) = self.windows[place].rate() {
            self.update(event, row.name(), AlertKind::ErrorRate(rate), rate > limit);
        }
    }

    /// Raises an alert if it is not active yet, or ends it if it is.
    fn update(&mut self, event: &Event, tool: &ToolName, what: AlertKind, passed: bool) {
        let (at, seq) = (event.at, event.seq);
        let kind = discriminant(&what);
        let same = |alert: &ActiveAlert| alert.what == kind && alert.tool == *tool;
        match (self.current.iter().position(same), passed) {
            (None, true) => {
                let tool = tool.clone();
                let kept = (self.raised.len() < MAX_ALERTS).then_some(self.raised.len());
                self.current.push(ActiveAlert { tool: tool.clone(), what: kind, kept });
                match kept {
                    Some(_) => {
                        let opened = match &event.kind {
                            EventKind::BreakerChanged { cause, counted, .. } => {
                                Some((*cause, *counted))
                            }
                            _ => None,
                        };
                        self.raised.push(Alert { at, seq, ended: None, tool, what, opened });
                    }
                    None => self.left_out += 1,
                }
            }
            (Some(place), false) => {
                if let Some(kept) = self.current.swap_remove(place).kept {
                    self.raised[kept].ended = Some(at);
                }
            }
            (Some(_), true) | (None, false) => {}
        }
    }
}
