//! The processes that serve a cluster: `roundtable cluster serve`, a NATS server for one machine as a
//! child of this process, and `roundtable runner`, which plays the runs of a cluster until it is
//! stopped.

use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

use super::{RunnerArgs, connect_on};
use crate::base::private_file;
use crate::base::refused::Refused;
use crate::base::visible::visible;
use crate::cli::exit::{Done, Exit};
use crate::cli::headless::on_stop;
use crate::cli::streams::{print_message, refuse};
use crate::cluster::address::ClusterAddress;
use crate::cluster::layout::ClusterLayout;
use crate::cluster::runner::{Runner, RunnerNews, RunnerSettings};
use crate::cluster::{Cluster, names};
use crate::host::models::LiveModels;
use crate::host::{Dirs, models};
use crate::scenario::config::ClusterDefaults;
use crate::tool::process_group::Supervisor;
use crate::words::format;

/// The program.
const SERVER: &str = "nats-server";

/// How far the monitoring port is above the server's.
const MONITOR_ABOVE: u16 = 4_000;

/// How long the server may take to start.
const START: Duration = Duration::from_secs(15);

/// How long it may take to stop.
const STOP: Duration = Duration::from_secs(10);

/// Runs the server until this process is stopped.
pub async fn serve(port: u16, data: Option<&Path>) -> Exit {
    let folder = match data.map(Path::to_owned).or_else(|| Some(Dirs::find()?.state.join("nats"))) {
        Some(folder) => folder,
        None => {
            let why = Refused::new("no home directory").help("name a folder with --data");
            return refuse(&why, Exit::Stopped);
        }
    };
    let config = match write_config(&folder, port) {
        Ok(config) => config,
        Err(error) => {
            let what = format!("{} cannot be written", folder.display());
            return refuse(&Refused::new(what).because(error), Exit::Stopped);
        }
    };
    let (stop, stopped) = oneshot::channel();
    let first = move || {
        let _ = stop.send(());
    };
    if let Err(error) = on_stop(first, Exit::Cancelled.code()) {
        tracing::warn!("signals end the program immediately: {error}");
    }
    // It ends with this program, also if that is killed.
    let supervisor = match Supervisor::start(STOP, "").await {
        Ok(supervisor) => supervisor,
        Err(error) => {
            let why = Refused::new(format!("no process to watch {SERVER}")).because(error);
            return refuse(&why, Exit::Stopped);
        }
    };
    let mut command = Command::new(SERVER);
    // A Ctrl-C in the terminal is for this program, which stops the server itself.
    #[cfg(unix)]
    command.process_group(supervisor.as_ref().and_then(Supervisor::group).unwrap_or(0));
    let started = command
        .arg("--config")
        .arg(&config)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    let mut server = match started {
        Ok(server) => server,
        Err(error) => {
            let exit = Exit::of_unstarted(&error);
            let why = Refused::new(format!("{SERVER} cannot be started")).because(error);
            let help = "install it (https://nats.io/download), 2.12.3 or later";
            return refuse(&why.help(help), exit);
        }
    };
    let url = format!("nats://127.0.0.1:{port}");
    let see_log = format!("see {}", folder.join("log").display());
    if let Err(why) = ready(&mut server, &url).await {
        return refuse(&why.help(see_log), Exit::Stopped);
    }
    print_message(&format!("NATS serves at {url}; its data are in {}", folder.display()));
    print_message(&format!("play runs:  roundtable runner --on {url}"));
    print_message(&format!("hand over:  roundtable run checkout-launch --on {url}"));
    tokio::select! {
        _ = stopped => {}
        ended = server.wait() => return refuse(&server_ended(ended).help(see_log), Exit::Stopped),
    }
    end(&mut server).await;
    Exit::Ok
}

/// Waits until the server answers, and makes what runs need.
async fn ready(server: &mut Child, url: &str) -> Result<(), Refused> {
    let address = ClusterAddress::find(Some(url), &ClusterDefaults::default(), |_| None)?;
    let made = async {
        loop {
            match Cluster::connect(&address, "roundtable").await {
                Ok(cluster) => match ClusterLayout(&cluster).check_jetstream().await {
                    Ok(()) => return ClusterLayout(&cluster).make(1).await,
                    Err(why) => tracing::debug!("{why:#}"),
                },
                Err(error) => tracing::debug!("{error}"),
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        made = timeout(START, made) => {
            made.map_err(|_| Refused::new(format!("{SERVER} does not answer at {url}")))?
        }
        ended = server.wait() => Err(server_ended(ended)),
    }
}

fn server_ended(ended: io::Result<ExitStatus>) -> Refused {
    let how = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
    Refused::new(format!("{SERVER} ended ({how})"))
}

/// Writes the server's configuration. Each write reaches the disk before it is acknowledged: a group of
/// events is one write, so this costs little.
fn write_config(folder: &Path, port: u16) -> io::Result<PathBuf> {
    private_file::make_dir(folder)?;
    let path = folder.join("server.conf");
    let quoted = |path: PathBuf| format!("{:?}", path.display().to_string());
    let mut text = format!(
        "server_name: roundtable\nlisten: \"127.0.0.1:{port}\"\nlog_file: {}\nmax_payload: 2MB\n\
         jetstream {{\n  store_dir: {}\n  sync_interval: always\n}}\n",
        quoted(folder.join("log")),
        quoted(folder.join("data")),
    );
    // The server does not start if another program has the port; only `doctor` needs it.
    let monitor = port.checked_add(MONITOR_ABOVE);
    if let Some(monitor) = monitor.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()) {
        text.push_str(&format!("http: \"127.0.0.1:{monitor}\"\n"));
    }
    private_file::replace_file(&path, text.as_bytes())?;
    Ok(path)
}

async fn end(server: &mut Child) {
    #[cfg(unix)]
    if let Some(pid) = server.id().and_then(|id| i32::try_from(id).ok())
        && let Some(pid) = rustix::process::Pid::from_raw(pid)
    {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        if timeout(STOP, server.wait()).await.is_ok() {
            return;
        }
    }
    let _ = server.kill().await;
}

/// Runs `roundtable runner`.
pub async fn runner(args: &RunnerArgs) -> Done {
    let via =
        models::parse_proxy(args.proxy.as_deref()).map_err(|why| refuse(&why, Exit::Usage))?;
    let cluster = connect_on(&args.on).await?;
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
    Ok(match runner.serve().await {
        Ok(()) => Exit::Ok,
        Err(why) => refuse(&why, Exit::Stopped),
    })
}

fn print_news(news: RunnerNews) {
    let text = match news {
        RunnerNews::Plays(run, 0) => format!("plays {run}"),
        RunnerNews::Plays(run, events) => {
            format!("continues {run} from {}", format::count_noun(events, "event"))
        }
        RunnerNews::Ended(run, reason) => format!("{run} has ended: {reason}"),
        RunnerNews::Lost(run) => format!("{run} belongs to another runner now"),
        RunnerNews::Released(run) => format!("released {run}: everybody waits for people"),
        RunnerNews::HandedBack(run) => format!("returned {run} to the queue"),
        RunnerNews::Refused(run, why) => format!("does not play {run}: {why}"),
        RunnerNews::Trouble(why) => why,
    };
    print_message(&visible(&text));
}
