//! The logins of a cluster and its certificates: each works with the settings that its server needs, a
//! wrong one is refused with the setting to change, and no secret is printed or logged.

use std::path::{Path, PathBuf};

use nkeys::KeyPair as Nkey;

use crate::support::binary::{Ended, Home, end};
use crate::support::logins::{Certificates, Operator};
use crate::support::nats::NatsServer;

/// What a refused login has to name.
const VARIABLES: [&str; 4] = [
    "ROUNDTABLE_NATS_PASSWORD",
    "ROUNDTABLE_NATS_TOKEN",
    "ROUNDTABLE_NATS_NKEY",
    "ROUNDTABLE_NATS_CREDS",
];

/// Makes what runs need, with these variables, and with a log of everything.
fn init(home: &Home, url: &str, env: &[(&str, &str)]) -> Ended {
    let mut command = home.command(&["cluster", "init", "--on", url, "--log-file", "log"]);
    command.env("ROUNDTABLE_LOG", "trace");
    end(command.envs(env.iter().copied()))
}

/// Neither the output nor the log of the program has this secret.
fn hides(home: &Home, ended: &Ended, secret: &str) {
    assert!(!format!("{ended:?}").contains(secret), "{ended:?}");
    let log = std::fs::read_to_string(home.path().join("log")).unwrap_or_default();
    assert!(!log.contains(secret), "{log}");
}

/// A login works, and others are refused with the variables of a login.
fn check_login(server: &NatsServer, right: (&str, &str), wrong: &[(&str, &str)], secret: &str) {
    let (home, url) = (Home::new(), server.url());
    let made = init(&home, &url, &[right]);
    assert_eq!(made.code, Some(0), "{made:?}");
    hides(&home, &made, secret);
    let attempts = wrong.iter().map(|login| vec![*login]).chain([Vec::new()]);
    for login in attempts {
        let refused = init(&home, &url, &login);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.err.contains("refuses the login"), "{}", refused.err);
        for name in VARIABLES {
            assert!(refused.err.contains(name), "{name}: {}", refused.err);
        }
        for (_, secret) in login {
            hides(&home, &refused, secret);
        }
    }
}

#[test]
fn a_token_is_a_login() {
    let token = "authorization { token: hush-hush }";
    let Some(server) = NatsServer::start_with(token) else { return };
    let name = "ROUNDTABLE_NATS_TOKEN";
    check_login(&server, (name, "hush-hush"), &[(name, "wrong-token")], "hush-hush");
}

#[test]
fn nkey_seed_logs_in() {
    let (user, other) = (Nkey::new_user(), Nkey::new_user());
    let users = format!("authorization {{ users: [ {{ nkey: {} }} ] }}", user.public_key());
    let Some(server) = NatsServer::start_with(&users) else { return };
    let (seed, other) = (user.seed().expect("a seed"), other.seed().expect("a seed"));
    let name = "ROUNDTABLE_NATS_NKEY";
    check_login(&server, (name, &seed), &[(name, &other), (name, "no-seed-at-all")], &seed);
}

#[test]
fn credentials_file_logs_in() {
    let (operator, stranger, folder) = (Operator::new(), Operator::new(), Home::new());
    let Some(server) = NatsServer::start_with(&operator.server()) else { return };
    let file = |name: &str| folder.path().join(name);
    let seed = operator.write_user(&file("ann.creds"));
    let strange = stranger.write_user(&file("bob.creds"));
    let path = |name: &str| file(name).display().to_string();
    let name = "ROUNDTABLE_NATS_CREDS";
    let (right, wrong) = (path("ann.creds"), path("bob.creds"));
    check_login(&server, (name, &right), &[], &seed);
    let home = Home::new();
    let refused = init(&home, &server.url(), &[(name, &wrong)]);
    assert!(refused.err.contains("refuses the login (credentials file)"), "{refused:?}");
    hides(&home, &refused, &strange);
    // Of the configuration, and one that cannot be read.
    home.write("config/roundtable/config.toml", &format!("[cluster]\ncredentials = {right:?}\n"));
    let made = init(&home, &server.url(), &[]);
    assert_eq!(made.code, Some(0), "{made:?}");
    for (text, part) in [(None, "No such file"), (Some("hush-hush"), "cannot be used")] {
        if let Some(text) = text {
            std::fs::write(file("broken.creds"), text).expect("written");
        }
        let refused = init(&home, &server.url(), &[(name, &path("broken.creds"))]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains("broken.creds") && refused.err.contains(part), "{refused:?}");
        hides(&home, &refused, "hush-hush");
    }
}

/// Writes the certificates into the configuration.
fn configure(home: &Home, ca: Option<PathBuf>, client: Option<(PathBuf, PathBuf)>) {
    let line = |name: &str, path: &Path| format!("{name} = {:?}\n", path.display().to_string());
    let mut text = "[cluster]\n".to_owned();
    if let Some(ca) = ca {
        text += &line("tls_ca", &ca);
    }
    if let Some((cert, key)) = client {
        text += &line("tls_cert", &cert);
        text += &line("tls_key", &key);
    }
    home.write("config/roundtable/config.toml", &text);
}

#[test]
fn tls_server_needs_trusted_authority() {
    let (own, other) = (Certificates::new(), Certificates::new());
    let Some(server) = NatsServer::start_with(&own.server(false)) else { return };
    let (home, tls) = (Home::new(), server.url().replace("nats:", "tls:"));
    configure(&home, Some(own.file("ca.pem")), None);
    for url in [&tls, &server.url()] {
        let made = init(&home, url, &[]);
        assert_eq!(made.code, Some(0), "{made:?}");
    }
    for ca in [None, Some(other.file("ca.pem")), Some(own.file("missing.pem"))] {
        configure(&home, ca, None);
        for url in [&tls, &server.url()] {
            let refused = init(&home, url, &[]);
            assert_eq!(refused.code, Some(1), "{refused:?}");
            assert!(refused.err.contains("no TLS connection"), "{}", refused.err);
            assert!(refused.err.contains("tls_ca"), "{}", refused.err);
        }
    }
}

#[test]
fn tls_login_refuses_plain_server() {
    let Some(server) = NatsServer::start() else { return };
    let home = Home::new();
    let refused = init(&home, &server.url().replace("nats:", "tls:"), &[]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("no TLS connection"), "{}", refused.err);
}

#[test]
fn sends_client_certificate_on_request() {
    let (own, other) = (Certificates::new(), Certificates::new());
    let Some(server) = NatsServer::start_with(&own.server(true)) else { return };
    let (home, url) = (Home::new(), server.url());
    let client = |of: &Certificates| Some((of.file("client.pem"), of.file("client.key")));
    configure(&home, Some(own.file("ca.pem")), client(&own));
    let made = init(&home, &url, &[]);
    assert_eq!(made.code, Some(0), "{made:?}");
    for client in [None, client(&other)] {
        configure(&home, Some(own.file("ca.pem")), client);
        let refused = init(&home, &url, &[]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.err.contains("tls_cert"), "{}", refused.err);
    }
}

#[test]
fn login_limits_visible_runs() {
    let create = "$JS.API.CONSUMER.CREATE.KV_RT_RUNS.*.$KV.RT_RUNS";
    let next = "$JS.API.CONSUMER.MSG.NEXT.KV_RT_RUNS.*";
    let user = |name: &str, may: &[&str]| {
        let may: Vec<String> = may.iter().map(|subject| format!("\"{subject}\"")).collect();
        let publish = format!("[\"$JS.API.INFO\", {}]", may.join(", "));
        format!(
            "{{user: {name}, password: hush, permissions: {{publish: {publish}, subscribe: [\"_INBOX.>\"]}}}}\n"
        )
    };
    let users = format!(
        "authorization {{ users: [\n{{user: all, password: hush}}\n{}{}{}] }}",
        user("own", &[&format!("{create}.main.>"), next]),
        user("other", &[&format!("{create}.other.>"), next]),
        user("blind", &[&format!("{create}.main.>")]),
    );
    let Some(server) = NatsServer::start_with(&users) else { return };
    let (home, url) = (Home::new(), server.url());
    let run = |user: &str, args: &[&str]| {
        let mut command = home.command(&[args, &["--on", &url]].concat());
        end(command.env("ROUNDTABLE_NATS_USER", user).env("ROUNDTABLE_NATS_PASSWORD", "hush"))
    };
    assert_eq!(run("all", &["cluster", "init"]).code, Some(0));
    let handed = run("all", &["run", "checkout-launch", "--detach"]);
    assert_eq!(handed.code, Some(0), "{handed:?}");
    let listed = run("own", &["runs", "--json"]);
    assert_eq!(listed.json()[0]["id"], handed.out.trim(), "{listed:?}");
    for user in ["other", "blind"] {
        let refused = run(user, &["runs"]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.err.contains("the login may not do this"), "{}", refused.err);
    }
}
