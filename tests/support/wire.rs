//! The model that calls the raw server of the tests.

use std::collections::BTreeMap;
use std::sync::Arc;

pub use super::server::*;
use roundtable::log::event::{AttemptFailed, ChatMessage, MessageRole, Purpose, Reply};
use roundtable::model::anthropic::Anthropic;
use roundtable::model::endpoint::{Endpoint, EndpointRequest, Wire};
use roundtable::model::openai::OpenAi;
use roundtable::model::{ChatModel, ChatRequest, Conversation, Listener, ReplyForm, endpoint};
use roundtable::net::{Http, ProxyMode};
use roundtable::scenario::cel::CelBindings;
use roundtable::scenario::spec::Tuning;
use tokio::sync::mpsc;

/// A chat completion that says `hello`.
pub const HELLO: &str = r#"{"id":"c1","object":"chat.completion","created":1,"model":"gpt-4.1-mini-2025",
"choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],
"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15}}"#;

impl Server {
    /// Where it is, as an endpoint of Anthropic.
    pub fn messages_endpoint(&self) -> Endpoint {
        let base_url = format!("{}://{}", self.scheme, self.host());
        found([("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", &base_url)])
    }

    /// Where it is, as an endpoint.
    pub fn endpoint(&self) -> Endpoint {
        endpoint_at(&format!("{}://{}/v1", self.scheme, self.host()))
    }

    /// The model behind this server, its replies not streamed.
    pub fn model(&self) -> OpenAi {
        OpenAi::new(Http::new(ProxyMode::Direct), self.endpoint(), Tuning::default(), false)
    }

    /// The model behind this server, its replies streamed.
    pub fn streaming(&self) -> OpenAi {
        OpenAi::new(Http::new(ProxyMode::Direct), self.endpoint(), Tuning::default(), true)
    }

    /// The model behind this server, asked with this key.
    pub fn keyed(&self, key: &str, stream: bool) -> OpenAi {
        let endpoint = endpoint_with(key, &format!("{}://{}/v1", self.scheme, self.host()));
        OpenAi::new(Http::new(ProxyMode::Direct), endpoint, Tuning::default(), stream)
    }

    /// The model behind this server, of the provider whose key and address are these variables.
    pub fn model_of(&self, key: &str, address: &str) -> Box<dyn ChatModel> {
        let endpoint =
            found([(key, KEY), (address, &format!("{}://{}/v1", self.scheme, self.host()))]);
        let (http, tuning) = (Http::new(ProxyMode::Direct), Tuning::default());
        match endpoint.provider().wire() {
            Wire::Chat => Box::new(OpenAi::new(http, endpoint, tuning, false)),
            Wire::Messages => Box::new(Anthropic::new(http, endpoint, tuning, false)),
        }
    }

    /// One call that is answered with these bytes on a connection that then closes.
    pub async fn one(
        &self,
        model: &dyn ChatModel,
        answer: &[u8],
    ) -> Result<Reply, Box<AttemptFailed>> {
        let (reply, ()) = both(call(model), async {
            let mut connection = self.accept().await;
            connection.request().await;
            connection.send(answer).await;
        })
        .await;
        reply
    }
}

pub fn endpoint_at(base_url: &str) -> Endpoint {
    endpoint_with(KEY, base_url)
}

fn endpoint_with(key: &str, base_url: &str) -> Endpoint {
    found([("OPENAI_API_KEY", key), ("OPENAI_BASE_URL", base_url)])
}

/// The endpoint that these variables of the shell say.
fn found(shell: [(&str, &str); 2]) -> Endpoint {
    let shell: BTreeMap<_, _> = shell.map(|(name, value)| (name.into(), value.into())).into();
    endpoint::find(&shell, None, EndpointRequest::default()).expect("an endpoint")
}

/// The request of every test.
pub fn ask(json: bool) -> ChatRequest {
    let message = |role, content: &str| ChatMessage::new(role, content);
    ChatRequest {
        nth: 1,
        messages: Conversation::from(Arc::from([
            message(MessageRole::System, "You judge."),
            message(MessageRole::User, "{\"goal\":\"grün \\\"x\\\"\"}"),
        ])),
        tools: [].into(),
        form: if json { ReplyForm::Object } else { ReplyForm::Text },
        purpose: Purpose::Finalize,
        attempt: 1,
        again: 0,
        message: 1,
        draw: 0,
        shown: Arc::new(CelBindings::default()),
    }
}

/// One call of which only the end matters.
pub async fn call(model: &dyn ChatModel) -> Result<Reply, Box<AttemptFailed>> {
    model.chat(&ask(true), &Deaf).await
}

/// Listens to nothing.
pub struct Deaf;

impl Listener for Deaf {
    fn piece(&self, _: &str) {}
}

/// Hands on each piece, so that a test knows that it came.
pub struct Heard(mpsc::UnboundedSender<String>);

impl Heard {
    pub fn new() -> (Self, mpsc::UnboundedReceiver<String>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }
}

impl Listener for Heard {
    fn piece(&self, text: &str) {
        let _ = self.0.send(text.to_owned());
    }
}

/// What every failure's text keeps to.
pub fn check_text(failed: &AttemptFailed) {
    let text = &failed.text;
    assert!(text.chars().count() <= 300, "{} characters: {text}", text.chars().count());
    assert!(!text.contains(KEY) && !text.contains("sk-"), "a key is left: {text}");
    assert!(!text.chars().any(char::is_control), "a control character is left: {text:?}");
    assert!(text.ends_with(['.', '?']), "it does not end with what to do: {text}");
}

/// What speaks TLS with a certificate that no authority of the system has signed.
pub fn unsigned() -> tokio_rustls::TlsAcceptor {
    use tokio_rustls::rustls;
    use tokio_rustls::rustls::ServerConfig;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![include_bytes!("tls/server.der").to_vec().into()],
            include_bytes!("tls/server.key.der").to_vec().try_into().expect("a key"),
        )
        .expect("a certificate and its key");
    tokio_rustls::TlsAcceptor::from(Arc::new(config))
}
