//! The chat model over real sockets: TLS, proxies and endpoints without a key.
//!
//! What the environment says is read once in a process, so a test that needs it says so to a
//! process of its own: itself, started again.

use std::collections::BTreeMap;
use std::process::Command;

use crate::log::event::FailureClass;
use crate::model::endpoint;
use crate::model::endpoint::{EndpointRequest, SettingOrigin, WithOrigin};
use crate::model::openai::OpenAi;
use crate::net::{Http, ProxyMode, RequestTarget};
use crate::scenario::spec::Tuning;
use crate::support::wire;
use crate::support::wire::*;
use reqwest::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Starts this test again with these variables, and no other of a proxy's.
fn again(test: &str, variables: &[(&str, &str)]) {
    let mut command = Command::new(std::env::current_exe().expect("a test has a file"));
    let (_, module) = module_path!().split_once("::").expect("a module of the library");
    command.args([&format!("{module}::{test}"), "--exact", "--nocapture"]);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(name).env_remove(name.to_ascii_lowercase());
    }
    let ended = command.envs(variables.iter().copied()).output().expect("a second start");
    let said = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && said.contains("1 passed"), "{said}");
}

/// One call to a server whose certificate no authority of the system has signed.
async fn call_in_tls() -> Result<String, (FailureClass, String)> {
    let acceptor = wire::unsigned();
    let server = Server::start_https().await;
    let model = server.model();
    let (reply, _) = both(call(&model), async {
        let Ok(mut stream) = acceptor.accept(server.accept().await.into_stream()).await else {
            return;
        };
        let mut read = Vec::new();
        while !read.ends_with(b"}]}") && !read.ends_with(b"}}") {
            assert!(stream.read_buf(&mut read).await.expect("a request") > 0, "it was cut off");
        }
        stream.write_all(&json("200 OK", HELLO)).await.expect("an answer");
        stream.flush().await.expect("an answer");
        let _ = stream.shutdown().await;
    })
    .await;
    reply.map(|reply| reply.text.to_string()).map_err(|failed| {
        check_text(&failed);
        (failed.class, failed.text)
    })
}

#[tokio::test]
async fn a_certificate_that_nobody_signed() {
    let (class, text) = call_in_tls().await.expect_err("a failure");
    assert_eq!(class, FailureClass::Tls);
    assert!(text.contains("certificate"), "{text}");
}

/// Elsewhere the system's store of certificates is no file.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_authority_that_the_system_names() {
    let authority = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/tls/authority.pem");
    if std::env::var_os("SSL_CERT_FILE").is_some_and(|file| file == authority) {
        assert_eq!(call_in_tls().await.as_deref(), Ok("hello"));
    } else {
        again("an_authority_that_the_system_names", &[("SSL_CERT_FILE", authority)]);
    }
}

/// Without any authority, plain http still works, and https names the missing one.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_system_without_authorities() {
    if std::env::var_os("SSL_CERT_FILE").is_some_and(|file| file == "/dev/null") {
        let server = Server::start().await;
        assert!(server.one(&server.model(), &json("200 OK", HELLO)).await.is_ok());
        let model = OpenAi::new(
            Http::new(ProxyMode::Direct),
            endpoint_at("https://localhost:1/v1"),
            Tuning::default(),
            false,
        );
        let failed = call(&model).await.expect_err("a failure");
        check_text(&failed);
        assert_eq!(failed.class, FailureClass::Tls, "{}", failed.text);
        assert!(failed.text.contains("SSL_CERT_FILE"), "{}", failed.text);
    } else {
        again(
            "a_system_without_authorities",
            &[("SSL_CERT_FILE", "/dev/null"), ("SSL_CERT_DIR", "/dev/null")],
        );
    }
}

#[tokio::test]
async fn environment_proxy_requires_opt_in() {
    // Nothing listens at port 9 of this machine; a caller that goes there is refused.
    let nowhere = "http://127.0.0.1:9";
    if std::env::var_os("ALL_PROXY").is_some_and(|proxy| proxy == nowhere) {
        let server = Server::start().await;
        assert!(server.one(&server.model(), &json("200 OK", HELLO)).await.is_ok());
        let told = OpenAi::new(
            Http::new(ProxyMode::Environment),
            server.endpoint(),
            Tuning::default(),
            false,
        );
        let failed = call(&told).await.expect_err("a failure");
        check_text(&failed);
        assert_eq!(failed.class, FailureClass::Connect, "{}", failed.text);
    } else {
        let all = [("ALL_PROXY", nowhere), ("HTTP_PROXY", nowhere), ("http_proxy", nowhere)];
        again("environment_proxy_requires_opt_in", &all);
    }
}

#[tokio::test]
async fn uses_named_proxy() {
    let proxy = Server::start().await;
    let via = format!("http://me:secret@{}", proxy.host()).parse().expect("a proxy");
    let model = OpenAi::new(
        Http::new(via),
        endpoint_at("http://nowhere.localhost/v1"),
        Tuning::default(),
        false,
    );
    let (reply, asking) = both(call(&model), async {
        let mut connection = proxy.accept().await;
        let asking = connection.request().await;
        connection.send(json("200 OK", HELLO)).await;
        asking
    })
    .await;
    assert_eq!(&*reply.expect("a reply").text, "hello");
    let line = "POST http://nowhere.localhost/v1/chat/completions HTTP/1.1\r\n";
    assert!(asking.head.starts_with(line), "{}", asking.head);
    assert!(asking.head.to_ascii_lowercase().contains("proxy-authorization: basic "));
}

/// Each request has one `Host` header, also through a proxy: with the port, unless it is the default of the
/// scheme, and without the user name of the URL.
#[tokio::test]
async fn each_request_has_one_host_header() {
    let server = Server::start().await;
    let proxy = format!("http://{}", server.host()).parse::<ProxyMode>().expect("a proxy");
    let at_port = format!("http://{}/v1", server.host());
    for (via, url, host) in [
        (ProxyMode::Direct, &*at_port, &*server.host()),
        (proxy.clone(), "http://a.localhost/v1", "a.localhost"),
        (proxy.clone(), "http://a.localhost:80/v1", "a.localhost"),
        (proxy.clone(), "http://a.localhost:8080/v1", "a.localhost:8080"),
        (proxy.clone(), "http://me@a.localhost/v1", "a.localhost"),
        (proxy, "http://[::1]:8080/v1", "[::1]:8080"),
    ] {
        let target = RequestTarget::new(Url::parse(url).expect("a URL"));
        let http = Http::new(via);
        let (sent, asking) = both(http.get(&target), async {
            let mut connection = server.accept().await;
            let asking = connection.request().await;
            connection.send(json("200 OK", "{}")).await;
            asking
        })
        .await;
        sent.expect("an answer");
        let head = asking.head.to_ascii_lowercase();
        let hosts = head.lines().filter_map(|line| line.strip_prefix("host: "));
        assert_eq!(hosts.collect::<Vec<_>>(), [host], "{url}: {head}");
    }
}

#[tokio::test]
async fn a_local_endpoint_without_a_key() {
    let server = Server::start().await;
    let base_url = format!("http://{}", server.host());
    let named = WithOrigin { value: "llama", origin: SettingOrigin::Scenario };
    let asked = EndpointRequest {
        base_url: Some(&base_url),
        model: Some(named),
        ..EndpointRequest::default()
    };
    let endpoint = endpoint::find(&BTreeMap::new(), None, asked).expect("an endpoint");
    let model = OpenAi::new(Http::new(ProxyMode::Direct), endpoint, Tuning::default(), false);
    let (failed, asking) = both(call(&model), async {
        let mut connection = server.accept().await;
        let asking = connection.request().await;
        connection.send(json("401 Unauthorized", "{}")).await;
        asking
    })
    .await;
    assert!(!asking.head.to_ascii_lowercase().contains("authorization"), "{}", asking.head);
    assert_eq!(asking.body["model"], "llama");
    let failed = failed.expect_err("a failure");
    assert!(
        failed.text.ends_with("Set OPENAI_API_KEY together with the base URL."),
        "{}",
        failed.text
    );
}
