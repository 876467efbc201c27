//! Sends the spans of the runs that this process plays, where the operator asks for it.

use std::sync::{Arc, OnceLock};

use crate::base::refused::{OrRefuse as _, Refused};
use crate::engine::{RunHandle, RunKeeper};
use crate::host::config::user_config;
use crate::log::bus::LogReader;
use crate::log::event::{RunId, Seq};
use crate::net::{Http, Reach};
use crate::tool::{ToolSettings, sendable_headers, server_address};
use crate::traces::sender::{Delivery, TraceSender, TraceTarget};

/// The address of a receiver on this machine, where none is named.
pub const USUAL_ADDRESS: &str = "http://127.0.0.1:4318";

/// Where this process sends spans; nowhere unless this is set.
static SENDER: OnceLock<Result<Arc<TraceSender>, String>> = OnceLock::new();

/// Sends the spans of all runs of this process from now on, if the command line (`url`; empty: the usual
/// address) or the configuration says so. `content`: with their texts.
///
/// # Errors
/// What is wrong with `url`, or with the headers of the configuration; or `content` has no receiver. What is
/// wrong with a configuration alone is said at the end of the program.
pub fn use_target(url: Option<&str>, content: bool) -> Result<(), Refused> {
    let configured = &user_config().telemetry;
    if url.is_none() && configured.otlp.is_none() {
        return match content {
            true => Err(Refused::new("--otlp-content: there is no receiver").help("add --otlp")),
            false => Ok(()),
        };
    }
    let target = target(url.filter(|url| !url.is_empty()), content);
    let sender = match target {
        Ok(target) => Ok(Arc::new(TraceSender::new(&target, client()))),
        Err(why) if url.is_some() => return Err(why),
        Err(why) => Err(format!("{why:#}")),
    };
    let _ = SENDER.set(sender);
    Ok(())
}

/// The keeper, with the spans of its runs sent if that is wanted.
pub fn traced(inner: Option<Arc<dyn RunKeeper>>) -> Option<Arc<dyn RunKeeper>> {
    match SENDER.get() {
        Some(Ok(sender)) => Some(Arc::new(TracedRuns { inner, sender: Arc::clone(sender) })),
        _ => inner,
    }
}

/// What the operator has to know at the end of the program; `None`: all spans were sent, or none were to be.
pub async fn finish() -> Option<String> {
    let sender = match SENDER.get()? {
        Ok(sender) => sender,
        Err(why) => return Some(format!("no spans were sent: {why}")),
    };
    let delivery = sender.finish().await;
    (delivery.lost > 0).then(|| {
        format!(
            "{}; `roundtable export RUN --otlp` sends those of a kept run again",
            lost_text(&delivery)
        )
    })
}

/// How many spans were not sent, and why.
pub fn lost_text(delivery: &Delivery) -> String {
    let Delivery { lost, sent, .. } = delivery;
    let all = lost + sent;
    let why = delivery.why.as_deref().unwrap_or("the receiver did not take them");
    format!("spans not sent: {lost} of {all}: {why}")
}

/// Where spans are sent: `url`, else what the configuration says, else the usual address. Headers and texts
/// that the configuration allows are for the receiver that it names, and for no other.
///
/// # Errors
/// The address or a header is wrong, or a variable is not set.
pub fn target(url: Option<&str>, content: bool) -> Result<TraceTarget, Refused> {
    let configured = &user_config().telemetry;
    let address = |url: &str| server_address("the receiver of spans", url, USUAL_ADDRESS);
    let own = configured.otlp.as_deref().map(address).transpose();
    let (url, is_own) = match (url, own) {
        (Some(url), own) => {
            let url = address(url).or_refuse("--otlp")?;
            let is_own = own.is_ok_and(|own| own.is_some_and(|own| own.origin() == url.origin()));
            (url, is_own)
        }
        (None, own) => match own.or_refuse("[telemetry] otlp")? {
            Some(own) => (own, true),
            None => (address(USUAL_ADDRESS).or_refuse("--otlp")?, false),
        },
    };
    if !is_own {
        return Ok(TraceTarget { url, headers: Vec::new(), has_texts: content });
    }
    let first = |mut missing: Vec<crate::tool::NotReady>| {
        Refused::new(format!("[telemetry] headers: {}", missing.remove(0)))
    };
    let env = |name: &str| std::env::var(name).ok();
    let settings = ToolSettings::look_up(&configured.headers, &env).map_err(first)?;
    let headers = sendable_headers(&settings).map_err(first)?;
    let headers = headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    Ok(TraceTarget { url, headers, has_texts: content || configured.content })
}

/// The client for receivers, which may be on this machine.
pub fn client() -> Http {
    Http::direct(Reach::Anywhere)
}

/// Keeps runs as another keeper does, if there is one, and sends their spans.
struct TracedRuns {
    inner: Option<Arc<dyn RunKeeper>>,
    sender: Arc<TraceSender>,
}

impl RunKeeper for TracedRuns {
    fn reserve(&self, id: &RunId) -> Result<bool, Refused> {
        self.inner.as_ref().map_or(Ok(true), |inner| inner.reserve(id))
    }

    fn end_waits(&self) {
        if let Some(inner) = &self.inner {
            inner.end_waits();
        }
    }

    fn keep(&self, run: &RunHandle, reader: LogReader, stored: Seq) {
        let mark = self.inner.as_ref().map(|_| run.bus().stored_mark());
        self.sender.follow(reader.clone(), mark);
        if let Some(inner) = &self.inner {
            inner.keep(run, reader, stored);
        }
    }
}
