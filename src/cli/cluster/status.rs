//! `roundtable cluster init` and `roundtable cluster status`.

use std::fmt::Write as _;

use serde_json::json;

use super::OnArgs;
use super::connect_on;
use crate::base::visible::visible;
use crate::cli::exit::Exit;
use crate::cli::streams;
use crate::cli::streams::StreamStyle;
use crate::cli::streams::refuse;
use crate::cluster::layout::{ClusterLayout, LayoutPart, Presence};
use crate::cluster::rows::RunnerRow;
use crate::words::format;
use crate::words::styled::StyleRole;

/// Runs `roundtable cluster init`.
pub async fn init(on: &OnArgs, replicas: usize, dry_run: bool, paint: &StreamStyle) -> Exit {
    let cluster = match connect_on(on).await {
        Ok(cluster) => cluster,
        Err(exit) => return exit,
    };
    let before = match ClusterLayout(&cluster).parts().await {
        Ok(before) => before,
        Err(why) => return refuse(&why, Exit::Stopped),
    };
    if !dry_run && let Err(why) = ClusterLayout(&cluster).make(replicas).await {
        return refuse(&why, Exit::Stopped);
    }
    let mut text = String::new();
    for part in &before {
        let has_replicas = part.replicas.is_none_or(|found| found == replicas);
        let (done, role) = match (part.presence, dry_run) {
            (Presence::Ready, _) if has_replicas => ("is there", StyleRole::Dim),
            (Presence::Missing, false) => ("made", StyleRole::Done),
            (Presence::Missing, true) => ("would be made", StyleRole::NeedsYou),
            (_, false) => ("changed", StyleRole::Done),
            (_, true) => ("would be changed", StyleRole::NeedsYou),
        };
        let done = paint.role(role, &format!("{done:<16}"));
        let _ = writeln!(text, "{:<11} {done} {}", part.name, part.purpose);
    }
    streams::print(&text, Exit::Ok)
}

/// Runs `roundtable cluster status`.
pub async fn status(on: &OnArgs, json: bool, paint: &StreamStyle) -> Exit {
    let cluster = match connect_on(on).await {
        Ok(cluster) => cluster,
        Err(exit) => return exit,
    };
    let parts = match ClusterLayout(&cluster).parts().await {
        Ok(parts) => parts,
        Err(why) => return refuse(&why, Exit::Stopped),
    };
    let is_ready = parts.iter().all(|part| part.presence == Presence::Ready);
    let runners = match is_ready {
        true => cluster.runners().await,
        false => Ok(Vec::new()),
    };
    let runners = match runners {
        Ok(runners) => runners,
        Err(why) => return refuse(&why, Exit::Stopped),
    };
    let exit = if is_ready { Exit::Ok } else { Exit::Stopped };
    if json {
        let parts: Vec<_> = parts
            .iter()
            .map(|part| {
                json!({
                    "name": part.name, "purpose": part.purpose, "ready": part.presence == Presence::Ready,
                    "replicas": part.replicas, "messages": part.messages, "bytes": part.bytes,
                })
            })
            .collect();
        let all = json!({
            "servers": cluster.servers(), "version": cluster.version(),
            "namespace": cluster.namespace().to_string(), "parts": parts, "runners": runners,
        });
        return streams::print(&format!("{all:#}\n"), exit);
    }
    streams::print(&text(&cluster.version(), cluster.servers(), &parts, &runners, paint), exit)
}

fn text(
    version: &str,
    servers: &str,
    parts: &[LayoutPart],
    runners: &[RunnerRow],
    paint: &StreamStyle,
) -> String {
    let mut text = format!("NATS {} at {servers}\n\n", visible(version));
    for part in parts {
        let (word, role) = match part.presence {
            Presence::Ready => ("ready", StyleRole::Done),
            Presence::Differs => ("differs", StyleRole::NeedsYou),
            Presence::Missing => ("missing", StyleRole::Failed),
        };
        let word = paint.role(role, &format!("{word:<8}"));
        let size = match part.replicas {
            Some(1) => format!("{} messages, {}", part.messages, format::bytes(part.bytes)),
            Some(replicas) => {
                let size = format::bytes(part.bytes);
                format!("{} messages, {size}, {replicas} replicas", part.messages)
            }
            None => "run `roundtable cluster init`".to_owned(),
        };
        let _ = writeln!(text, "{:<11} {word} {:<36} {size}", part.name, part.purpose);
    }
    text.push('\n');
    if runners.is_empty() {
        text.push_str("no runner is alive; start one with `roundtable runner`\n");
    }
    for runner in runners {
        let allows = match runner.allows.is_empty() {
            true => "allows nothing".to_owned(),
            false => format!("allows {}", visible(&runner.allows.join(", "))),
        };
        let state = if runner.draining { ", stopping" } else { "" };
        let _ = writeln!(
            text,
            "{:<24} pool {:<12} {} of {} slots, {allows}{state}",
            visible(&runner.name),
            visible(&runner.pool),
            runner.busy,
            runner.slots,
        );
    }
    text
}
