//! The chat model over real sockets: connections that are refused, break, are dropped and kept.

use crate::log::event::{AttemptFailed, FailureClass};
use crate::model::ChatModel;
use crate::model::openai::OpenAi;
use crate::net::{Http, ProxyMode};
use crate::scenario::spec::Tuning;
use crate::support::wire::*;
use futures::FutureExt;

async fn failure_at(base_url: &str) -> AttemptFailed {
    let model =
        OpenAi::new(Http::new(ProxyMode::Direct), endpoint_at(base_url), Tuning::default(), true);
    let (failed, ()) = both(call(&model), async {}).await;
    let failed = *failed.expect_err("a failure");
    check_text(&failed);
    assert_eq!((failed.status, &failed.partial), (None, &None));
    failed
}

#[tokio::test]
async fn a_refused_connection() {
    let port = ClosedPort::new();
    let host = port.host();
    let failed = failure_at(&format!("http://{host}/v1")).await;
    assert_eq!(failed.class, FailureClass::Connect);
    assert!(failed.text.starts_with(&format!("no connection to {host}: ")), "{}", failed.text);
    assert!(failed.text.ends_with("Check the base URL (from the shell)."), "{}", failed.text);
}

#[tokio::test]
async fn a_name_that_does_not_resolve() {
    // `.invalid` is reserved for names that never do.
    let failed = failure_at("https://nowhere.invalid/v1").await;
    assert_eq!(failed.class, FailureClass::Resolve, "{}", failed.text);
    assert!(
        failed.text.starts_with("the name nowhere.invalid does not resolve."),
        "{}",
        failed.text
    );
}

#[tokio::test]
async fn tls_that_is_none() {
    for bytes in ["HTTP/1.1 400 Bad Request\r\n\r\n", ""] {
        let server = Server::start_https().await;
        let failed = both(call(&server.model()), async {
            let mut connection = server.accept().await;
            connection.read_tls_greeting().await;
            connection.send(bytes).await;
        })
        .await;
        let failed = failed.0.expect_err("a failure");
        check_text(&failed);
        assert_eq!(failed.class, FailureClass::Tls, "{}", failed.text);
        assert!(failed.text.starts_with("TLS handshake with 127.0.0.1"), "{}", failed.text);
    }
}

#[tokio::test]
async fn connections_that_break() {
    // after the request; in the middle of the head; in the middle of the body
    for sent in [
        String::new(),
        "HTTP/1.1 200 OK\r\ncontent-".to_owned(),
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{}", HELLO.len(), &HELLO[..20]),
    ] {
        for reset in [false, true] {
            let server = Server::start().await;
            let (failed, ()) = both(call(&server.model()), async {
                let mut connection = server.accept().await;
                connection.request().await;
                connection.send(&sent).await;
                if reset {
                    connection.reset();
                }
            })
            .await;
            let failed = failed.expect_err("a failure");
            check_text(&failed);
            assert_eq!(failed.class, FailureClass::Reset, "{}", failed.text);
            assert_eq!((failed.status, &failed.partial), (None, &None), "half a body is no reply");
        }
    }
}

#[tokio::test]
async fn one_call_is_one_request() {
    let server = Server::start().await;
    let model = server.model();
    for answer in [json("500 Oh", "{}"), json("429 Slow", "{}"), b"HTTP/1.1 200 OK\r\n".to_vec()] {
        assert!(server.one(&model, &answer).await.is_err());
    }
    // What comes next is what is asked next.
    let (reply, ()) = both(call(&model), async {
        let mut connection = server.accept().await;
        connection.request().await;
        connection.send(json("200 OK", HELLO)).await;
    })
    .await;
    assert!(reply.is_ok());
}

#[tokio::test]
async fn a_dropped_call_closes_its_connection() {
    // before any answer
    let server = Server::start().await;
    let model = server.model();
    let mut connection = {
        let mut calling = Box::pin(call(&model));
        let asked = async {
            let mut connection = server.accept().await;
            connection.request().await;
            connection
        };
        tokio::select! {
            _ = &mut calling => panic!("nothing was answered"),
            connection = asked => connection,
        }
    };
    both(connection.closed(), async {}).await;

    // in the middle of a stream
    let model = server.streaming();
    let (heard, mut pieces) = Heard::new();
    let request = ask(true);
    connection = {
        let mut calling = model.chat(&request, &heard);
        let asked = async {
            let mut connection = server.accept().await;
            connection.request().await;
            connection.send(format!("{CHUNKED_HEAD}{}", chunk(&piece("half")))).await;
            assert_eq!(pieces.recv().await.as_deref(), Some("half"));
            connection
        };
        tokio::select! {
            _ = &mut calling => panic!("nothing was finished"),
            connection = asked => connection,
        }
    };
    both(connection.closed(), async {}).await;
}

#[tokio::test]
async fn sequential_calls_share_connection() {
    for (streamed, then) in [(false, json("200 OK", HELLO)), (true, chunked_hello())] {
        let server = Server::start().await;
        let model = if streamed { server.streaming() } else { server.model() };
        let calls = async {
            for _ in 0..50 {
                assert_eq!(&*call(&model).await.expect("a reply").text, "hello");
            }
        };
        both(calls, async {
            let mut connection = server.accept().await;
            for _ in 0..50 {
                connection.request().await;
                connection.send(&then).await;
            }
        })
        .await;
        assert!(server.accept().now_or_never().is_none(), "no second connection was made");
    }
}

#[tokio::test]
async fn a_refusal_keeps_its_connection() {
    let server = Server::start().await;
    let model = server.model();
    let calls = async {
        assert!(call(&model).await.is_err());
        assert!(call(&model).await.is_ok());
    };
    both(calls, async {
        let mut connection = server.accept().await;
        connection.request().await;
        connection.send(json("429 Slow", "{}")).await;
        connection.request().await;
        connection.send(json("200 OK", HELLO)).await;
    })
    .await;
}

#[tokio::test]
async fn open_stream_delays_no_reply() {
    let server = Server::start().await;
    let model = server.streaming();
    let (reply, ()) = both(call(&model), async {
        let mut connection = server.accept().await;
        connection.request().await;
        connection.send(format!("{CHUNKED_HEAD}{}", chunk(&(piece("hello") + ENDING)))).await;
        // The reply has been given while the stream stands open; then it ends, late.
        connection.closed().await;
    })
    .await;
    assert_eq!(&*reply.expect("a reply").text, "hello");
}

#[tokio::test]
async fn concurrent_calls_reuse_connections() {
    let server = Server::start().await;
    let model = server.model();
    let round = || async {
        let replies = futures::future::join_all((0..50).map(|_| call(&model))).await;
        assert!(replies.iter().all(Result::is_ok));
    };
    let mut connections = Vec::new();
    both(round(), async {
        for _ in 0..50 {
            connections.push(server.accept().await);
        }
        for connection in &mut connections {
            connection.request().await;
        }
        for connection in &mut connections {
            connection.send(json("200 OK", HELLO)).await;
        }
    })
    .await;
    // All fifty are asked again, and nobody else is.
    both(round(), async {
        for connection in &mut connections {
            connection.request().await;
        }
        for connection in &mut connections {
            connection.send(json("200 OK", HELLO)).await;
        }
    })
    .await;
    assert!(server.accept().now_or_never().is_none(), "no further connection was made");
}

fn chunked_hello() -> Vec<u8> {
    format!("{CHUNKED_HEAD}{}0\r\n\r\n", chunk(&(piece("hello") + ENDING))).into_bytes()
}
