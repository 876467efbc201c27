//! Runs past one machine: their logs in NATS JetStream, where any runner can play them and any
//! dashboard can watch them. [`ClusterLog`] is the [`RunLog`](crate::store::RunLog) of a cluster.
//! The rest is what logs alone do not carry: the queue, commands, late answers, the list of runs,
//! the archive. `runner/` plays the runs.
//!
//! `run --on` stores a request as the first message of the log, then queues the run's id. A runner
//! takes an item, reads the log and claims the run. A runner owns a run while the last claim in its
//! log is its own: each append expects the last place of the log that the runner has read, so an
//! append of a runner that was replaced is refused. Nothing else decides ownership: not the queue,
//! no acknowledgement, no lease.
//!
//! A takeover is a resume. An attempt in flight first waits for the answer that the former owner
//! may still get. A command is in the log before the run gets it, so a new owner gives it once. A
//! run that ends leaves its session in the object store before its last group is stored, so any
//! runner can play the next message.

pub mod access;
pub mod address;
pub mod archive;
pub mod entry;
pub mod follow;
pub mod layout;
mod log;
mod messages;
pub mod names;
mod queue;
pub mod request;
pub mod rows;
pub mod runner;
mod stream;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerError, jetstream};
use tokio::sync::watch;
use tokio::time::timeout;

use self::address::{ClusterAddress, Login};
use self::names::Namespace;
use crate::base::refused::Refused;

pub use self::log::ClusterLog;

/// The oldest version of a server that is accepted. Older ones, replicated, have acknowledged the
/// appends of two owners at one place of a log.
pub(crate) const OLDEST: (u64, u64, u64) = (2, 12, 3);

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// How long an answer of a server may take. A busy or replicated server stalls for several seconds,
/// and a log that is slow is not a run that failed.
const ANSWER: Duration = Duration::from_secs(15);

/// Time between two signs of life of the server. A connection that drops everything, as after a sleep of the
/// machine, is noticed after the second one that stays away.
const PING: Duration = Duration::from_secs(5);

/// Most sentences about permissions that are remembered.
const MAX_DENIALS: usize = 64;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No server answers.
    #[error("no NATS server answers at {at}: {why}")]
    Unreachable {
        /// The servers.
        at: String,
        /// What is wrong.
        why: String,
    },
    /// The server refuses the login.
    #[error("the NATS server at {at} refuses the login ({login})")]
    Login {
        /// The servers.
        at: String,
        /// How the program identified itself.
        login: &'static str,
    },
    /// The certificates do not fit.
    #[error("no TLS connection to {at}: {why}")]
    Tls {
        /// The servers.
        at: String,
        /// What is wrong.
        why: String,
    },
    /// A file of the login cannot be read.
    #[error("the credentials file {} cannot be used: {why}", path.display())]
    Credentials {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The server is too old.
    #[error(
        "the NATS server at {at} has version {version}: 2.12.3 or later is needed, since older \
         replicated servers can acknowledge the writes of two owners of one run"
    )]
    OldServer {
        /// The servers.
        at: String,
        version: String,
    },
}

impl ConnectError {
    /// What to do about it; empty if the error says all.
    fn advice(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "start one with `roundtable cluster serve`",
            Self::Login { .. } => {
                "set ROUNDTABLE_NATS_USER and ROUNDTABLE_NATS_PASSWORD, ROUNDTABLE_NATS_TOKEN, \
                 ROUNDTABLE_NATS_NKEY or ROUNDTABLE_NATS_CREDS"
            }
            Self::Tls { .. } => "see tls_ca, tls_cert and tls_key in [cluster]",
            Self::Credentials { .. } | Self::OldServer { .. } => "",
        }
    }
}

impl From<ConnectError> for Refused {
    fn from(error: ConnectError) -> Self {
        Self::new(error.to_string()).help(error.advice())
    }
}

/// Whether the servers are reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Whether there is a connection.
    pub is_up: bool,
    /// Grows each time that messages may have been missed.
    pub gaps: u64,
}

/// A connection to a cluster. Cheap to clone; clones share it.
#[derive(Clone)]
pub struct Cluster(Arc<Connection>);

struct Connection {
    client: Client,
    context: Context,
    namespace: Namespace,
    link: watch::Receiver<Link>,
    /// What the servers have said that this login may not do, the last of it.
    denials: watch::Receiver<Vec<Arc<str>>>,
    servers: String,
}

impl Cluster {
    /// Connects to a cluster; `name` is what its servers show of this program.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn connect(address: &ClusterAddress, name: &str) -> Result<Self, ConnectError> {
        // An error means that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (changed, link) = watch::channel(Link::default());
        let (denied, denials) = watch::channel(Vec::new());
        let options = options(address).await?;
        let options = options
            .name(name)
            .connection_timeout(CONNECT)
            .request_timeout(Some(ANSWER))
            .ping_interval(PING)
            .event_callback(move |event| {
                let (changed, denied) = (changed.clone(), denied.clone());
                async move {
                    tracing::debug!("the connection to the cluster: {event}");
                    if let Event::ServerError(ServerError::Other(text)) = &event
                        && text.to_ascii_lowercase().contains("permissions violation")
                    {
                        denied.send_modify(|said| note_denial(said, text));
                    }
                    changed.send_modify(|link| match event {
                        Event::Connected => {
                            link.is_up = true;
                            link.gaps += 1;
                        }
                        Event::Disconnected | Event::Closed => link.is_up = false,
                        Event::SlowConsumer(_) => link.gaps += 1,
                        _ => {}
                    });
                }
            });
        let servers = address.shown();
        let client = options.connect(address.servers.clone()).await.map_err(|error| {
            let (at, why) = (servers.clone(), error_text(&error));
            if let Some(why) = tls_error(&error) {
                return ConnectError::Tls { at, why };
            }
            match error.kind() {
                ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                    ConnectError::Login { at, login: address.login.kind() }
                }
                ConnectErrorKind::Tls => ConnectError::Tls { at, why },
                _ => ConnectError::Unreachable { at, why },
            }
        })?;
        // What follows it is a lost connection, or one that is back.
        let mut link = link;
        let _ = timeout(CONNECT, link.wait_for(|link| link.is_up)).await;
        let version = client.server_info().version;
        if version_of(&version).is_none_or(|found| found < OLDEST) {
            return Err(ConnectError::OldServer { at: servers, version });
        }
        let context = jetstream::ContextBuilder::new().timeout(ANSWER).build(client.clone());
        let namespace = address.namespace.clone();
        Ok(Self(Arc::new(Connection { client, context, namespace, link, denials, servers })))
    }

    /// The client.
    pub(crate) fn client(&self) -> &Client {
        &self.0.client
    }

    /// The client's JetStream.
    pub(crate) fn context(&self) -> &Context {
        &self.0.context
    }

    /// The namespace of the team.
    pub fn namespace(&self) -> &Namespace {
        &self.0.namespace
    }

    /// The addresses of its servers.
    pub fn servers(&self) -> &str {
        &self.0.servers
    }

    /// Version of the server that this program is connected to.
    pub fn version(&self) -> String {
        self.client().server_info().version
    }

    /// Whether the servers are reached, from now on.
    pub fn link(&self) -> watch::Receiver<Link> {
        self.0.link.clone()
    }

    /// What the servers have said that this login may not do, the last of it.
    pub(crate) fn denials(&self) -> Vec<Arc<str>> {
        self.0.denials.borrow().clone()
    }

    /// Waits until the servers say, after this call, that this login may not use a subject; returns a
    /// sentence.
    pub(crate) fn until_denied(&self, subject: &str) -> impl Future<Output = String> + use<> {
        let mut denials = self.0.denials.clone();
        // What is said from here on is new, also before the future is polled.
        denials.mark_unchanged();
        let quoted = format!("\"{subject}\"");
        async move {
            loop {
                if denials.changed().await.is_err() {
                    // The connection is closed, which the request itself learns.
                    return std::future::pending().await;
                }
                let said = denials.borrow_and_update();
                if let Some(text) = said.iter().rev().find(|text| text.contains(&quoted)) {
                    return format!("the login may not do this: {text}");
                }
            }
        }
    }

    /// Sends everything that waits. Before a process ends.
    pub async fn flush(&self) {
        let _ = self.client().flush().await;
    }
}

/// Remembers what a server has said that a login may not do.
fn note_denial(said: &mut Vec<Arc<str>>, text: &str) {
    if said.len() >= MAX_DENIALS {
        said.remove(0);
    }
    said.push(text.into());
}

async fn options(address: &ClusterAddress) -> Result<ConnectOptions, ConnectError> {
    let options = ConnectOptions::new();
    let options = match &address.login {
        Login::None => options,
        Login::Password(user, password) => {
            options.user_and_password(user.clone(), password.clone())
        }
        Login::Token(token) => options.token(token.clone()),
        Login::Nkey(seed) => options.nkey(seed.clone()),
        Login::Credentials(path) => {
            let unusable = |why: std::io::Error| ConnectError::Credentials {
                path: path.clone(),
                why: why.to_string(),
            };
            let text = tokio::fs::read_to_string(path).await.map_err(unusable)?;
            options.credentials(&text).map_err(unusable)?
        }
    };
    let tls = &address.tls;
    let options = options.require_tls(tls.required || tls.ca.is_some() || tls.client.is_some());
    let options = match &tls.ca {
        Some(ca) => options.add_root_certificates(ca.clone()),
        None => options,
    };
    Ok(match &tls.client {
        Some((cert, key)) => options.add_client_certificate(cert.clone(), key.clone()),
        None => options,
    })
}

/// What is wrong with a TLS connection, if that is why there is none: the client reports it as an error of
/// input and output.
fn tls_error(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let inner = error.downcast_ref::<std::io::Error>().and_then(|error| error.get_ref());
        let found = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match found.or_else(|| error.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::InvalidMessage(_)) => {
                return Some("the server does not speak TLS".to_owned());
            }
            Some(error) => return Some(error.to_string()),
            None => cause = error.source(),
        }
    }
    None
}

/// An error with its causes, in one line.
pub(crate) fn error_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// The three numbers of a version such as `2.12.3-beta`.
pub(crate) fn version_of(text: &str) -> Option<(u64, u64, u64)> {
    let mut numbers = text.trim_start_matches('v').split(['.', '-', '+']).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?))
}
