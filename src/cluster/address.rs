//! Where the servers are, and what this program shows them. Secrets come from the environment or from
//! files, never from the command line, the configuration or a scenario.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use url::Url;

use super::names::Namespace;
use crate::base::refused::{OrRefuse as _, Refused};
use crate::scenario::config::ClusterDefaults;

/// Port of NATS where an address has none.
const PORT: u16 = 4222;

/// The servers of a cluster, and how to connect to them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ClusterAddress {
    /// Addresses of its servers, without user and password.
    pub servers: Vec<String>,
    /// The namespace of the team.
    pub namespace: Namespace,
    /// How the program identifies itself.
    pub login: Login,
    /// The certificates.
    pub tls: TlsFiles,
}

impl fmt::Debug for ClusterAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.servers.join(", "), self.login.kind())
    }
}

/// Files for TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates of the authorities that are trusted besides those of the system.
    pub ca: Option<PathBuf>,
    /// Certificate and key of this client.
    pub client: Option<(PathBuf, PathBuf)>,
    /// Whether a server without TLS is refused.
    pub required: bool,
}

/// How the program identifies itself. Never shown, stored or logged.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Login {
    /// Not at all.
    #[default]
    None,
    Password(String, String),
    Token(String),
    /// With the seed of an nkey.
    Nkey(String),
    /// With a file of credentials (a JWT and its seed).
    Credentials(PathBuf),
}

impl Login {
    /// What kind it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::None => "no login",
            Self::Password(..) => "user and password",
            Self::Token(_) => "token",
            Self::Nkey(_) => "nkey",
            Self::Credentials(_) => "credentials file",
        }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

/// Variables of the environment that a login may be in, with the file variants.
const USER: &str = "ROUNDTABLE_NATS_USER";
const PASSWORD: &str = "ROUNDTABLE_NATS_PASSWORD";
const TOKEN: &str = "ROUNDTABLE_NATS_TOKEN";
const NKEY: &str = "ROUNDTABLE_NATS_NKEY";
const CREDENTIALS: &str = "ROUNDTABLE_NATS_CREDS";

impl ClusterAddress {
    /// The address that the command line gives (`--on URL`; `None`: the configuration's), with the login
    /// of the environment. `env` looks up a variable.
    ///
    /// # Errors
    /// What is missing or wrong.
    pub fn find(
        url: Option<&str>,
        defaults: &ClusterDefaults,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Refused> {
        let text = url.or(defaults.url.as_deref()).ok_or_else(|| {
            Refused::new("no cluster is named").help(
                "name its server (--on nats://HOST), or set `url` in [cluster] of the configuration",
            )
        })?;
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let servers = parts.map(server).collect::<Result<Vec<String>, Refused>>()?;
        if servers.is_empty() {
            return Err(Refused::new("the address of the cluster is empty").help("use nats://HOST"));
        }
        let namespace = match &defaults.namespace {
            None => Namespace::default(),
            Some(name) => Namespace::new(name).or_refuse(
                "the namespace of the cluster has other characters than letters, digits, - and _",
            )?,
        };
        let client = match (&defaults.tls_cert, &defaults.tls_key) {
            (Some(cert), Some(key)) => Some((cert.clone(), key.clone())),
            (None, None) => None,
            _ => return Err(Refused::new("[cluster] needs both tls_cert and tls_key, or neither")),
        };
        let required = servers.iter().any(|server| server.starts_with("tls:"));
        let tls = TlsFiles { ca: defaults.tls_ca.clone(), client, required };
        Ok(Self { servers, namespace, login: login(defaults, env)?, tls })
    }

    /// The servers, for messages.
    pub fn shown(&self) -> String {
        self.servers.join(", ")
    }
}

/// One address, with its port. A user or password in it is refused: it would be seen in the list of
/// processes and in the history of the shell.
fn server(text: &str) -> Result<String, Refused> {
    let full = if text.contains("://") { text.to_owned() } else { format!("nats://{text}") };
    // Its text is not shown: it may have a password in it.
    let wrong = || {
        let why = Refused::new("the address of the cluster cannot be read");
        why.help("use nats://HOST or tls://HOST:PORT")
    };
    let url = Url::parse(&full).map_err(|_| wrong())?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refused::new("the address of the cluster has a login in it").help(format!(
            "remove it and set {USER} and {PASSWORD}, or {TOKEN}, in the environment"
        )));
    }
    if !matches!(url.scheme(), "nats" | "tls") {
        let what = format!("`{}:` is not a kind of address", url.scheme());
        return Err(Refused::new(what).help("use nats: or tls:"));
    }
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
    Ok(format!("{}://{host}:{}", url.scheme(), url.port().unwrap_or(PORT)))
}

fn login(
    defaults: &ClusterDefaults,
    env: impl Fn(&str) -> Option<String>,
) -> Result<Login, Refused> {
    let found: BTreeMap<&str, String> = [USER, PASSWORD, TOKEN, NKEY, CREDENTIALS]
        .into_iter()
        .filter_map(|name| Some((name, env(name).filter(|text| !text.trim().is_empty())?)))
        .collect();
    let get = |name: &str| found.get(name).map(|text| text.trim().to_owned());
    Ok(match (get(USER), get(PASSWORD), get(TOKEN), get(NKEY), get(CREDENTIALS)) {
        (Some(user), Some(password), ..) => Login::Password(user, password),
        (Some(_), None, ..) => {
            return Err(Refused::new(format!("{USER} is set and {PASSWORD} is not")));
        }
        (_, _, Some(token), ..) => Login::Token(token),
        (_, _, _, Some(seed), _) => Login::Nkey(seed),
        (.., Some(file)) => Login::Credentials(PathBuf::from(file)),
        _ => defaults.credentials.clone().map_or(Login::None, Login::Credentials),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(url: Option<&str>, env: &[(&str, &str)]) -> Result<ClusterAddress, Refused> {
        let env: BTreeMap<String, String> =
            env.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        ClusterAddress::find(url, &ClusterDefaults::default(), |name| env.get(name).cloned())
    }

    #[test]
    fn addresses_get_default_port() {
        let address = find(Some("10.0.0.1, nats://b:4300 ,tls://c"), &[]).expect("an address");
        assert_eq!(address.servers, ["nats://10.0.0.1:4222", "nats://b:4300", "tls://c:4222"]);
        assert!(address.tls.required);
        for (wrong, part) in [
            ("", "is empty"),
            ("http://a", "`http:` is not a kind of address"),
            ("nats://", "cannot be read"),
            ("nats://ann:secret@a", "has a login in it"),
        ] {
            let error = format!("{:#}", find(Some(wrong), &[]).expect_err(wrong));
            assert!(error.contains(part) && !error.contains("secret"), "{error}");
        }
        let help = find(None, &[]).expect_err("none").help;
        assert!(help.is_some_and(|help| help.contains("[cluster]")));
    }

    #[test]
    fn login_comes_from_environment_and_hides() {
        let table: [(&[(&str, &str)], &str); 5] = [
            (&[], "no login"),
            (&[(USER, "ann"), (PASSWORD, "hush")], "user and password"),
            (&[(TOKEN, "hush")], "token"),
            (&[(NKEY, "hush")], "nkey"),
            (&[(CREDENTIALS, "/hush")], "credentials file"),
        ];
        for (env, kind) in table {
            let address = find(Some("a"), env).expect("an address");
            assert_eq!(address.login.kind(), kind);
            let shown = format!("{address:?} {:?}", address.login);
            assert!(!shown.contains("hush") && shown.contains(kind), "{shown}");
        }
        assert!(find(Some("a"), &[(USER, "ann")]).expect_err("half").what.contains(PASSWORD));
    }
}
