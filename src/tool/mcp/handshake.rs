//! How a connection begins: which protocol version the server speaks, and with that the handshake.
//!
//! rmcp could find that out too, but it gives up after 10 s and sends its handshake again, which a slow server
//! refuses, and it takes many answers of older servers for failures. So the server is asked here, for as
//! long as it may take to start, and rmcp gets the answer.

use std::borrow::Cow;
use std::time::Duration;

use futures::future::Either;
use rmcp::RoleClient;
use rmcp::model::{
    ClientConfig, ClientJsonRpcMessage, ClientRequest, DiscoverRequest, DiscoverRequestParams,
    ErrorCode, ErrorData, InitializeRequest, JsonRpcMessage, NumberOrString, ProtocolVersion,
    RequestId, RequestMetaObject, ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService, Service,
};
use rmcp::transport::{DynamicTransportError, Transport};
use serde::Deserialize as _;

use super::client::McpClient;
use super::results::Asked;

/// The newest version, which has `server/discover` in place of `initialize`.
const NEWEST: ProtocolVersion = ProtocolVersion::V_2026_07_28;
/// Ids of the requests of a probe. rmcp counts its own from 0.
const DISCOVER: RequestId = NumberOrString::Number(1_000_000_000);
const INITIALIZE: RequestId = NumberOrString::Number(1_000_000_001);
const DISCOVER_AGAIN: RequestId = NumberOrString::Number(1_000_000_002);

/// What is known of the protocol version that a server speaks.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Lifecycle {
    /// Nothing: it is asked.
    Unknown,
    /// It needs `initialize`, as an earlier connection has shown.
    Initialize,
    /// This one, as the scenario says.
    Version(ProtocolVersion),
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum HandshakeFailed {
    /// A message could not be sent.
    NotSent(DynamicTransportError),
    /// The connection was closed before the server had answered `server/discover`.
    EndedAtDiscovery,
    /// The connection was closed.
    Closed,
    /// The server answered with an error.
    Refused(ErrorData),
    /// The server speaks these versions and no other.
    Versions(Vec<ProtocolVersion>),
    /// The server answered without a version.
    NoVersion,
}

impl From<ClientInitializeError> for HandshakeFailed {
    fn from(error: ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::TransportError { error, .. } => Self::NotSent(error),
            ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::Cancelled => {
                Self::Closed
            }
            ClientInitializeError::JsonRpcError(error) => Self::Refused(error),
            ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
                Self::Versions(server_supported)
            }
            _ => Self::NoVersion,
        }
    }
}

/// Opens the connection. `patience`: after this time without an answer to `server/discover` the server is sent
/// `initialize` too; `None`: never.
pub(super) async fn open<T: Transport<RoleClient> + 'static>(
    client: McpClient,
    mut transport: T,
    lifecycle: Lifecycle,
    patience: Option<Duration>,
) -> Result<RunningService<RoleClient, McpClient>, HandshakeFailed> {
    let discover = ClientLifecycleMode::Discover { preferred_versions: vec![NEWEST] };
    let (mode, answer, other_versions) = match lifecycle {
        Lifecycle::Version(version) if !version.has_initialize() => (discover, None, None),
        Lifecycle::Initialize | Lifecycle::Version(_) => {
            (ClientLifecycleMode::Initialize, None, None)
        }
        Lifecycle::Unknown => match probe(&mut transport, &client.get_info(), patience).await? {
            Probed::Answered(answer) => match *answer {
                answer @ ServerResult::DiscoverResult(_) => (discover, Some(answer), None),
                answer => (ClientLifecycleMode::Initialize, Some(answer), None),
            },
            Probed::Older(versions) => (ClientLifecycleMode::Initialize, None, versions),
        },
    };
    let transport = Greeted { transport, answer, ready: None };
    let opened = client.serve_with_lifecycle(transport, mode).await;
    opened.map_err(|error| match (other_versions, error.into()) {
        // It has said more than that it does not know `initialize` either.
        (Some(versions), HandshakeFailed::Refused(_) | HandshakeFailed::NoVersion) => {
            HandshakeFailed::Versions(versions)
        }
        (_, failed) => failed,
    })
}

/// What a probe has shown.
enum Probed {
    /// The result of `server/discover`, or of the `initialize` that was sent besides.
    Answered(Box<ServerResult>),
    /// It is older, so `initialize` follows. The versions that it speaks, if it says so.
    Older(Option<Vec<ProtocolVersion>>),
}

/// Asks the server which versions it speaks. Whatever it answers that does not name ours, it is older.
async fn probe<T: Transport<RoleClient> + 'static>(
    transport: &mut T,
    info: &ClientConfig,
    patience: Option<Duration>,
) -> Result<Probed, HandshakeFailed> {
    send(transport, discover_request(info), DISCOVER).await?;
    let mut is_silent = std::pin::pin!(async {
        match patience {
            Some(patience) => tokio::time::sleep(patience).await,
            None => std::future::pending().await,
        }
    });
    // What it answered to each, once it has refused it.
    let (mut discovery, mut initialize) = (None, None);
    let (mut is_sent_both, mut is_repeated) = (false, false);
    loop {
        let message = tokio::select! {
            message = transport.receive() => message,
            () = &mut is_silent, if !is_sent_both => {
                let request = InitializeRequest::new(info.clone());
                send(transport, ClientRequest::InitializeRequest(request), INITIALIZE).await?;
                is_sent_both = true;
                continue;
            }
        };
        let Some(message) = message else {
            let is_older = !is_sent_both && discovery.is_none();
            return Err(match is_older {
                true => HandshakeFailed::EndedAtDiscovery,
                false => HandshakeFailed::Closed,
            });
        };
        match message {
            JsonRpcMessage::Response(response) => match response.result {
                ServerResult::DiscoverResult(result) => {
                    if result.supported_versions.contains(&NEWEST) {
                        let answer = ServerResult::DiscoverResult(result);
                        return Ok(Probed::Answered(Box::new(answer)));
                    }
                    discovery = Some(Some(result.supported_versions));
                }
                result @ ServerResult::InitializeResult(_) => {
                    return Ok(Probed::Answered(Box::new(result)));
                }
                _ => return Err(HandshakeFailed::NoVersion),
            },
            JsonRpcMessage::Error(error) => match error.id.as_ref().is_some_and(is_initialize) {
                true => initialize = Some(error.error),
                false => {
                    let versions = supported(&error.error);
                    // It refuses ours and names it among its own.
                    if versions.as_ref().is_some_and(|all| all.contains(&NEWEST)) && !is_repeated {
                        is_repeated = true;
                        send(transport, discover_request(info), DISCOVER_AGAIN).await?;
                        continue;
                    }
                    discovery = Some(versions);
                }
            },
            // Nothing else is answered before the handshake.
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
        match (discovery.take(), initialize.take()) {
            (Some(versions), None) if !is_sent_both => return Ok(Probed::Older(versions)),
            (Some(Some(versions)), Some(_)) => return Err(HandshakeFailed::Versions(versions)),
            (Some(None), Some(error)) => return Err(HandshakeFailed::Refused(error)),
            so_far => (discovery, initialize) = so_far,
        }
    }
}

fn discover_request(info: &ClientConfig) -> ClientRequest {
    let mut request = DiscoverRequest::new(DiscoverRequestParams {});
    let (name, capabilities) = (info.client_info.clone(), info.capabilities.clone());
    request.extensions.insert(RequestMetaObject::with_client_context(NEWEST, name, capabilities));
    ClientRequest::DiscoverRequest(request)
}

/// Whether the id is that of our `initialize`: some servers send numbers back as texts.
fn is_initialize(id: &RequestId) -> bool {
    id.to_string() == INITIALIZE.to_string()
}

/// The versions that the server names when it refuses ours.
fn supported(error: &ErrorData) -> Option<Vec<ProtocolVersion>> {
    let is_about_versions = error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION;
    let supported = error.data.as_ref().filter(|_| is_about_versions)?.get("supported")?;
    Vec::deserialize(supported).ok()
}

async fn send<T: Transport<RoleClient> + 'static>(
    transport: &mut T,
    request: ClientRequest,
    id: RequestId,
) -> Result<(), HandshakeFailed> {
    let sent = transport.send(ClientJsonRpcMessage::request(request, id)).await;
    sent.map_err(|error| HandshakeFailed::NotSent(DynamicTransportError::new::<T, _>(error)))
}

/// A transport whose server has been asked already: rmcp's handshake gets the answer that is known.
struct Greeted<T> {
    transport: T,
    answer: Option<ServerResult>,
    /// The answer as a response, once rmcp has asked.
    ready: Option<ServerJsonRpcMessage>,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Greeted<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &message
            && Asked::by(&request.request) != Asked::Other
            && let Some(answer) = self.answer.take()
        {
            self.ready = Some(ServerJsonRpcMessage::response(answer, request.id.clone()));
            return Either::Left(std::future::ready(Ok(())));
        }
        Either::Right(self.transport.send(message))
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        match self.ready.take() {
            Some(message) => Some(message),
            None => self.transport.receive().await,
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.transport.close().await
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use serde_json::Value;
    use tokio::sync::mpsc;

    use super::super::results::read_message;
    use super::*;

    /// When a server answers a method, in seconds, and with what; no row: never.
    type Answers = &'static [(&'static str, u64, &'static str)];

    const VERSIONS: &str = r#""result": {"supportedVersions": ["2026-07-28"]}"#;
    const OLD_VERSIONS: &str = r#""result": {"supportedVersions": ["2099-01-01"]}"#;
    const OLD: &str = r#""result": {"protocolVersion": "2025-06-18"}"#;
    const REFUSED: &str = r#""error": {"code": -32601, "message": "what?"}"#;

    const OTHER: &str =
        r#""error": {"code": -32022, "message": "no", "data": {"supported": ["2026-07-28"]}}"#;

    struct Scripted {
        /// Those that were not given yet.
        answers: Vec<(&'static str, u64, &'static str)>,
        sent: mpsc::UnboundedSender<(Asked, String)>,
        received: mpsc::UnboundedReceiver<(Asked, String)>,
    }

    impl Transport<RoleClient> for Scripted {
        type Error = Infallible;

        fn send(
            &mut self,
            message: ClientJsonRpcMessage,
        ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
            let JsonRpcMessage::Request(request) = &message else {
                return std::future::ready(Ok(()));
            };
            let asked = Asked::by(&request.request);
            let message: Value = serde_json::to_value(&message).expect("JSON");
            let at = self.answers.iter().position(|(method, ..)| message["method"] == *method);
            if let Some((_, seconds, answer)) = at.map(|at| self.answers.remove(at)) {
                let answer = format!(r#"{{"jsonrpc": "2.0", "id": {}, {answer}}}"#, message["id"]);
                let (sent, wait) = (self.sent.clone(), Duration::from_secs(seconds));
                tokio::spawn(async move {
                    tokio::time::sleep(wait).await;
                    let _ = sent.send((asked, answer));
                });
            }
            std::future::ready(Ok(()))
        }

        async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
            let (asked, json) = self.received.recv().await?;
            Some(read_message(json.as_bytes(), |_| asked).expect("a message"))
        }

        async fn close(&mut self) -> Result<(), Infallible> {
            Ok(())
        }
    }

    async fn opened(
        answers: Answers,
        lifecycle: Lifecycle,
        patience: Option<u64>,
    ) -> Result<String, HandshakeFailed> {
        let (sent, received) = mpsc::unbounded_channel();
        let transport = Scripted { answers: answers.to_vec(), sent, received };
        let client = McpClient::new(Arc::default(), ProtocolVersion::LATEST_WITH_INITIALIZE);
        let patience = patience.map(Duration::from_secs);
        let service = open(client, transport, lifecycle, patience).await?;
        Ok(service.peer().peer_info().expect("known").protocol_version.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn first_answer_counts_however_late() {
        let cases: [(Answers, Option<u64>, Result<&str, &str>); 10] = [
            (&[("server/discover", 0, VERSIONS)], Some(10), Ok("2026-07-28")),
            (
                &[("server/discover", 0, OTHER), ("server/discover", 0, VERSIONS)],
                Some(10),
                Ok("2026-07-28"),
            ),
            (&[("server/discover", 25, VERSIONS)], None, Ok("2026-07-28")),
            (
                &[("server/discover", 25, VERSIONS), ("initialize", 15, REFUSED)],
                Some(10),
                Ok("2026-07-28"),
            ),
            (
                &[("server/discover", 25, VERSIONS), ("initialize", 20, REFUSED)],
                Some(10),
                Ok("2026-07-28"),
            ),
            (
                &[("server/discover", 0, REFUSED), ("initialize", 0, OLD)],
                Some(10),
                Ok("2025-06-18"),
            ),
            (
                &[("server/discover", 25, REFUSED), ("initialize", 15, OLD)],
                Some(10),
                Ok("2025-06-18"),
            ),
            (&[("initialize", 0, OLD)], Some(10), Ok("2025-06-18")),
            (
                &[("server/discover", 25, REFUSED), ("initialize", 15, REFUSED)],
                Some(10),
                Err("Refused"),
            ),
            (
                &[("server/discover", 0, OLD_VERSIONS), ("initialize", 0, REFUSED)],
                Some(10),
                Err("Versions"),
            ),
        ];
        for (answers, patience, expected) in cases {
            match (opened(answers, Lifecycle::Unknown, patience).await, expected) {
                (Ok(version), Ok(expected)) => assert_eq!(version, expected, "{answers:?}"),
                (Err(failed), Err(expected)) => {
                    assert!(format!("{failed:?}").starts_with(expected), "{answers:?}: {failed:?}");
                }
                (opened, expected) => panic!("{answers:?}: {opened:?}, expected {expected:?}"),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn named_version_is_used_alone() {
        let answers: Answers = &[("server/discover", 0, VERSIONS), ("initialize", 0, OLD)];
        for (version, expected) in [
            (ProtocolVersion::V_2025_06_18, "2025-06-18"),
            (ProtocolVersion::V_2026_07_28, "2026-07-28"),
        ] {
            let opened = opened(answers, Lifecycle::Version(version), Some(10)).await;
            assert_eq!(opened.expect("open"), expected);
        }
    }
}
