//! `roundtable runner`: plays the runs of a cluster until it is stopped.

use std::sync::Arc;

use tokio::sync::watch;

use super::RunnerArgs;
use super::connect_on;
use crate::base::visible::visible;
use crate::cli::exit::Exit;
use crate::cli::headless::on_stop;
use crate::cli::streams::{print_message, refuse};
use crate::cluster::names;
use crate::cluster::runner::{Runner, RunnerNews, RunnerSettings};
use crate::host::models;
use crate::host::models::LiveModels;
use crate::words::format;

/// Runs `roundtable runner`.
pub async fn runner(args: &RunnerArgs) -> Exit {
    let via = match models::parse_proxy(args.proxy.as_deref()) {
        Ok(via) => via,
        Err(why) => return refuse(&why, Exit::Usage),
    };
    let cluster = match connect_on(&args.on).await {
        Ok(cluster) => cluster,
        Err(exit) => return exit,
    };
    let name = args.name.clone().unwrap_or_else(names::process_name);
    let settings = RunnerSettings {
        name: name.clone(),
        pool: args.pool.clone(),
        slots: args.slots,
        allow: args.allow.iter().copied().collect(),
        ack_wait: args.takeover_after.max(std::time::Duration::from_millis(300)),
        drain: args.drain,
        archive_after: args.archive_after,
        broken_for: RunnerSettings::BROKEN_FOR,
    };
    let (drain, draining) = watch::channel(false);
    let stop = Arc::new(drain);
    let told = Arc::clone(&stop);
    let first = move || {
        print_message("returning the runs to the queue; interrupt again to end immediately");
        told.send_replace(true);
    };
    if let Err(error) = on_stop(first, Exit::Cancelled.code()) {
        tracing::warn!("signals end the program immediately: {error}");
    }
    let (slots, pool) = (format::count_noun(u64::from(args.slots), "slot"), &args.pool);
    print_message(&format!("{name} plays runs of pool {pool}, {slots}, on {}", cluster.servers()));
    let runner = Runner::new(cluster, settings, LiveModels::new(via), draining, print_news);
    match runner.serve().await {
        Ok(()) => Exit::Ok,
        Err(why) => refuse(&why, Exit::Stopped),
    }
}

fn print_news(news: RunnerNews) {
    let text = match news {
        RunnerNews::Plays(run, 0) => format!("plays {run}"),
        RunnerNews::Plays(run, events) => {
            format!("continues {run} from {}", format::count_noun(events, "event"))
        }
        RunnerNews::Ended(run, reason) => format!("{run} has ended: {reason}"),
        RunnerNews::Lost(run) => format!("{run} belongs to another runner now"),
        RunnerNews::HandedBack(run) => format!("returned {run} to the queue"),
        RunnerNews::Refused(run, why) => format!("does not play {run}: {why}"),
        RunnerNews::Trouble(why) => why,
    };
    print_message(&visible(&text));
}
