//! What the doctor says of the cluster (`doctor --cluster`).

use std::time::Duration;

use serde::Deserialize;
use tokio::time::timeout;
use url::Url;

use super::Finding;
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::time;
use crate::base::visible::visible;
use crate::cluster::Cluster;
use crate::cluster::access::{ClusterAccess, ClusterUse};
use crate::cluster::address::ClusterAddress;
use crate::cluster::layout::{ClusterLayout, LayoutPart, Presence};
use crate::cluster::rows::RunnerRow;
use crate::host::config;
use crate::net::{Http, ProxyMode, RequestTarget};
use crate::words::format;

/// How long the monitoring port may take to answer.
const MONITOR: Duration = Duration::from_secs(2);

/// Most bytes of its answer that are read.
const MONITOR_BYTES: usize = 1 << 20;

/// Checks the cluster of the command line, or that of the configuration.
pub async fn findings(url: Option<&str>) -> Vec<Finding> {
    let defaults = &config::user_config().cluster;
    let env = |name: &str| std::env::var(name).ok();
    let address = match ClusterAddress::find(url, defaults, env) {
        Ok(address) => address,
        Err(why) => return vec![Finding::refused("cluster", &why)],
    };
    let cluster = match Cluster::connect(&address, "roundtable doctor").await {
        Ok(cluster) => cluster,
        Err(error) => return vec![Finding::refused("cluster", &error.into())],
    };
    let mut findings = vec![Finding::good(
        "cluster",
        format!(
            "NATS {} at {}, {}, namespace {}",
            visible(&cluster.version()),
            cluster.servers(),
            address.login.kind(),
            cluster.namespace()
        ),
    )];
    match ClusterLayout(&cluster).parts().await {
        Ok(parts) => findings.extend(of_parts(&parts)),
        Err(why) => {
            findings.push(Finding::refused("jetstream", &why));
            return findings;
        }
    }
    findings.push(permissions(&cluster).await);
    findings.push(sync(&address, defaults.monitor.as_deref()).await);
    // Without its bucket there is no list.
    if let Ok(runners) = cluster.runners().await {
        findings.push(of_runners(&runners));
    }
    findings
}

fn of_parts(parts: &[LayoutPart]) -> Vec<Finding> {
    let about = "streams";
    let named = |presence: Presence| {
        let names = parts.iter().filter(|part| part.presence == presence).map(|part| part.name);
        names.collect::<Vec<_>>().join(", ")
    };
    let (missing, differs) = (named(Presence::Missing), named(Presence::Differs));
    let mut findings = Vec::new();
    if !missing.is_empty() {
        let advice = "make what is missing: roundtable cluster init";
        findings.push(Finding::bad(about, format!("missing: {missing}"), advice));
    }
    if !differs.is_empty() {
        let text = format!("with other settings: {differs}");
        let advice = "roundtable cluster init --dry-run says what it would change";
        findings.push(Finding::bad(about, text, advice));
    }
    let replicas: Vec<usize> = parts.iter().filter_map(|part| part.replicas).collect();
    let (least, most) = (replicas.iter().min(), replicas.iter().max());
    if let (Some(least), Some(most)) = (least, most) {
        if least != most {
            let text = format!("kept by {least} to {most} servers");
            let advice = format!("make them equal: roundtable cluster init --replicas {most}");
            findings.push(Finding::note(about, text, advice));
        } else if findings.is_empty() {
            let by = match least {
                1 => "one server: its disk is the only copy".to_owned(),
                servers => format!("{servers} servers"),
            };
            findings.push(Finding::good(about, format!("all are there, kept by {by}")));
        }
    }
    findings
}

async fn permissions(cluster: &Cluster) -> Finding {
    let about = "permissions";
    let denied = match ClusterAccess(cluster).denied().await {
        Ok(denied) => denied,
        Err(why) => {
            let text = format!("{why:#}");
            return Finding::note(about, text, "the server did not answer in time");
        }
    };
    let Some(first) = denied.first() else {
        let all: Vec<&str> = ClusterUse::ALL.iter().map(|may| may.words()).collect();
        return Finding::good(about, format!("this login may {}", all.join(", ")));
    };
    let uses: Vec<&str> = denied.iter().map(|denied| denied.denied.words()).collect();
    let text = format!("this login may not {} ({})", uses.join(", "), visible(&first.why));
    Finding::note(about, text, "to allow it, change the permissions of this user on the server")
}

fn of_runners(runners: &[RunnerRow]) -> Finding {
    let about = "runners";
    let version = env!("CARGO_PKG_VERSION");
    let other = runners.iter().find(|runner| runner.version != version);
    if let Some(runner) = other {
        let text = format!(
            "{} has version {}, this program {version}",
            visible(&runner.name),
            visible(&runner.version)
        );
        let advice = "a runner leaves runs of newer versions to newer runners";
        return Finding::note(about, text, advice);
    }
    if runners.is_empty() {
        return Finding::note(about, "none is alive", "start one: roundtable runner");
    }
    let slots: u32 = runners.iter().map(|runner| runner.slots).sum();
    let busy: u32 = runners.iter().map(|runner| runner.busy).sum();
    let count = format::count_noun(runners.len() as u64, "runner");
    Finding::good(about, format!("{count}, {busy} of {slots} slots in use"))
}

/// What the monitoring port says of JetStream.
#[derive(Deserialize)]
struct JetStreamStatus {
    #[serde(default)]
    config: JetStreamConfig,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JetStreamConfig {
    sync_always: bool,
    /// In nanoseconds.
    sync_interval: u64,
}

/// Whether an acknowledged message is on the disk, which only the monitoring port says.
async fn sync(address: &ClusterAddress, configured: Option<&str>) -> Finding {
    let about = "sync";
    let url = match configured.map(str::to_owned).or_else(|| usual_monitor(address)) {
        Some(url) => url,
        None => return Finding::note(about, "unknown", "set monitor in [cluster]"),
    };
    let status = match timeout(MONITOR, read_status(&url)).await {
        Ok(status) => status,
        Err(_) => Err(Refused::new("no answer")),
    };
    match status {
        Ok(JetStreamConfig { sync_always: true, .. }) => {
            Finding::good(about, "each message is on the disk before it is acknowledged")
        }
        Ok(config) => {
            let every = Duration::from_nanos(config.sync_interval);
            let every = match every.is_zero() {
                true => "2m".to_owned(),
                false => time::duration_text(every),
            };
            let text = format!(
                "written to the disk every {every}: a power failure loses acknowledged events"
            );
            Finding::note(about, text, "set jetstream { sync_interval: always } in each server")
        }
        Err(why) => {
            let text = format!("unknown: {} does not say it ({why:#})", visible(&url));
            let advice = "start the servers with a monitoring port (http_port: 8222), or set monitor in \
                          [cluster]";
            Finding::note(about, text, advice)
        }
    }
}

/// Where the monitoring port usually is: 4,000 above the server's.
fn usual_monitor(address: &ClusterAddress) -> Option<String> {
    let server = Url::parse(address.servers.first()?).ok()?;
    let port = server.port()?.checked_add(4_000)?;
    Some(format!("http://{}:{port}", server.host_str()?))
}

async fn read_status(url: &str) -> Result<JetStreamConfig, Refused> {
    let url = Url::parse(url).and_then(|url| url.join("/jsz")).or_refuse("no address")?;
    let target = RequestTarget::new(url).query("config", "true");
    // The port is inside the network of the servers.
    let answer = Http::new(ProxyMode::Direct).get(&target).await;
    let answer = answer.or_refuse("no answer")?;
    let body = answer.collect(MONITOR_BYTES).await.or_refuse("no answer")?;
    let status: JetStreamStatus = serde_json::from_slice(&body)
        .map_err(|_| Refused::new("not the monitoring port of NATS"))?;
    Ok(status.config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(presence: Presence, replicas: Option<usize>) -> LayoutPart {
        LayoutPart { name: "RT_F_00", purpose: "logs", presence, replicas, messages: 0, bytes: 0 }
    }

    #[test]
    fn reports_missing_and_differing_with_advice() {
        let text = |parts: &[LayoutPart]| {
            let findings = of_parts(parts);
            let one = |it: Finding| format!("{} | {}", it.text, it.advice.unwrap_or_default());
            findings.into_iter().map(one).collect::<Vec<_>>()
        };
        let ready = |replicas| part(Presence::Ready, Some(replicas));
        assert!(text(&[ready(1)])[0].contains("the only copy"));
        assert!(text(&[ready(3)])[0].contains("kept by 3 servers"));
        assert!(text(&[ready(1), ready(3)])[0].contains("--replicas 3"));
        let found = text(&[part(Presence::Missing, None), ready(3)]);
        assert!(found[0].contains("missing: RT_F_00") && found[0].contains("cluster init"));
        assert!(text(&[part(Presence::Differs, Some(1))])[0].contains("--dry-run"));
    }

    #[test]
    fn monitoring_port_is_above_server_port() {
        let at = |servers: &[&str]| {
            let servers = servers.iter().map(|it| (*it).to_owned()).collect();
            usual_monitor(&ClusterAddress { servers, ..ClusterAddress::default() })
        };
        assert_eq!(at(&["nats://a:4222", "nats://b:1"]).as_deref(), Some("http://a:8222"));
        assert_eq!(at(&["nats://a:65000"]), None);
    }

    #[test]
    fn runners_of_another_version_are_named() {
        let runner = |version: &str| RunnerRow {
            name: "a-1".to_owned(),
            slots: 4,
            busy: 1,
            version: version.to_owned(),
            ..RunnerRow::default()
        };
        assert_eq!(
            of_runners(&[runner(env!("CARGO_PKG_VERSION"))]).text,
            "1 runner, 1 of 4 slots in use"
        );
        assert!(of_runners(&[runner("9.9.9")]).text.contains("a-1 has version 9.9.9"));
        assert!(of_runners(&[]).text.contains("none is alive"));
    }
}
