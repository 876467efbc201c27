//! Finds a cluster and connects to it.

use crate::base::visible::visible;
use crate::cli::args::{AttachArgs, OnArgs};
use crate::cli::exit::Exit;
use crate::cli::message::print_message;
use crate::cluster::address::ClusterAddress;
use crate::cluster::archive::RunArchive;
use crate::cluster::names;
use crate::cluster::{Cluster, ConnectError};
use crate::event::RunId;
use crate::host::config;

/// The address of the cluster; on an error the message has been printed.
fn address(url: Option<&str>) -> Result<ClusterAddress, Exit> {
    let env = |name: &str| std::env::var(name).ok();
    ClusterAddress::find(url, &config::in_force().cluster, env).map_err(|why| {
        print_message(&visible(&why));
        Exit::Usage
    })
}

/// The cluster of the configuration; none: it names none, or what it says is wrong, which was printed.
pub fn configured() -> Option<(ClusterAddress, Option<RunId>)> {
    config::in_force().cluster.url.as_ref()?;
    address(None).ok().map(|address| (address, None))
}

/// The cluster and the run of `roundtable attach`.
pub fn attached(args: &AttachArgs) -> Result<(ClusterAddress, Option<RunId>), Exit> {
    if !names::is_name(&args.run) {
        print_message(&format!("{} is not an id of a run", visible(&args.run)));
        return Err(Exit::Usage);
    }
    let run = RunId::new(args.run.as_str());
    address(args.on.on.as_deref()).map(|address| (address, Some(run)))
}

/// Connects to the cluster that has a run; on an error the message has been printed.
pub async fn reach_run(address: &ClusterAddress, run: &RunId) -> Result<Cluster, Exit> {
    let cluster = connect_to(address).await?;
    match RunArchive(&cluster).has_run(run).await {
        Ok(true) => Ok(cluster),
        Ok(false) => {
            let text = format!(
                "{run} is not a run of this cluster; `roundtable runs --on {}` lists them",
                cluster.servers()
            );
            print_message(&text);
            Err(Exit::Usage)
        }
        Err(error) => Err(trouble(&error.to_string())),
    }
}

/// Connects to a cluster; on an error the message has been printed.
pub(super) async fn connect(url: Option<&str>) -> Result<Cluster, Exit> {
    connect_to(&address(url)?).await
}

async fn connect_to(address: &ClusterAddress) -> Result<Cluster, Exit> {
    Cluster::connect(address, "roundtable").await.map_err(|error| {
        print_message(&visible(&error.to_string()));
        match error {
            ConnectError::Unreachable { .. } => Exit::Unreachable,
            ConnectError::Credentials { .. } => Exit::Usage,
            _ => Exit::Stopped,
        }
    })
}

pub(super) async fn connect_on(on: &OnArgs) -> Result<Cluster, Exit> {
    connect(on.on.as_deref()).await
}

/// Prints what went wrong with a cluster.
pub(super) fn trouble(why: &str) -> Exit {
    print_message(&visible(why));
    Exit::Stopped
}
