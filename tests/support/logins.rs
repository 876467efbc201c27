//! What servers and programs identify themselves with: certificates, nkeys, and the signed texts of an
//! operator.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair as Nkey;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tempfile::TempDir;

/// An authority with the certificates that it has signed, in a folder.
pub struct Certificates {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Certificates {
    /// A new authority, with a certificate for a server of this machine and one for a client.
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let own = params.self_signed(&key).expect("a certificate");
        let made = Self {
            folder: tempfile::tempdir().expect("a folder"),
            issuer: Issuer::new(params, key),
        };
        std::fs::write(made.file("ca.pem"), own.pem()).expect("written");
        made.sign("server", &["127.0.0.1", "localhost"]);
        made.sign("client", &["client"]);
        made
    }

    fn sign(&self, name: &str, hosts: &[&str]) {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let params = CertificateParams::new(hosts).expect("hosts");
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &self.issuer).expect("a certificate");
        std::fs::write(self.file(&format!("{name}.pem")), signed.pem()).expect("written");
        let key = key.serialize_pem();
        std::fs::write(self.file(&format!("{name}.key")), key).expect("written");
    }

    /// One of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The configuration of a server with TLS; `mutual`: clients need a certificate too.
    pub fn server(&self, mutual: bool) -> String {
        let (cert, key) = (self.file("server.pem"), self.file("server.key"));
        let ca = self.file("ca.pem");
        format!(
            "tls {{ cert_file: {cert:?}, key_file: {key:?}, ca_file: {ca:?}, verify: {mutual} }}"
        )
    }
}

/// An operator with one account that may store, and the server that trusts it.
pub struct Operator {
    key: Nkey,
    account: Nkey,
}

impl Operator {
    /// A new operator with a new account.
    pub fn new() -> Self {
        Self { key: Nkey::new_operator(), account: Nkey::new_account() }
    }

    /// The configuration of a server that trusts it.
    pub fn server(&self) -> String {
        let own = json!({ "type": "operator", "version": 2 });
        let own = signed("operator", &self.key, &self.key, own);
        let limits = json!({
            "subs": -1, "conn": -1, "leaf": -1, "imports": -1, "exports": -1, "data": -1, "payload": -1,
            "wildcards": true, "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1,
        });
        let account = json!({
            "limits": limits, "default_permissions": { "pub": {}, "sub": {} }, "type": "account",
            "version": 2,
        });
        let account = signed("team", &self.account, &self.key, account);
        let name = self.account.public_key();
        // A server with an operator and JetStream needs an account of its own too.
        let system = Nkey::new_account();
        let system_name = system.public_key();
        let about = json!({
            "limits": { "subs": -1, "conn": -1, "leaf": -1, "data": -1, "payload": -1, "imports": -1,
                "exports": -1, "wildcards": true },
            "default_permissions": { "pub": {}, "sub": {} }, "type": "account", "version": 2,
        });
        let system = signed("system", &system, &self.key, about);
        format!(
            "operator: {own}\nsystem_account: {system_name}\nresolver: MEMORY\n\
             resolver_preload: {{ {name}: {account}, {system_name}: {system} }}"
        )
    }

    /// Writes the credentials of a new user of its account; returns the user's seed.
    pub fn write_user(&self, path: &Path) -> String {
        let user = Nkey::new_user();
        let about = json!({
            "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1, "type": "user", "version": 2,
        });
        let text = signed("ann", &user, &self.account, about);
        let seed = user.seed().expect("a seed");
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{text}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        std::fs::write(path, text).expect("written");
        seed
    }
}

/// A text of NATS about a key, signed by another one.
fn signed(name: &str, subject: &Nkey, by: &Nkey, about: Value) -> String {
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let head = part(json!({ "typ": "JWT", "alg": "ed25519-nkey" }));
    let body = part(json!({
        "jti": name, "iat": 1_700_000_000, "iss": by.public_key(), "name": name,
        "sub": subject.public_key(), "nats": about,
    }));
    let text = format!("{head}.{body}");
    let signature = by.sign(text.as_bytes()).expect("signed");
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}
