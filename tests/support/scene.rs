//! A server of the tests that answers as a model does, and the person who runs the program against it.

use std::process::Command;
use std::sync::{Arc, Mutex};

use super::binary::{Ended, Home, end};
use super::server::{Asking, KEY, Server, answer};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// What the server was asked, and the person who ran the program against it.
pub struct Scene {
    /// Where the program is run.
    pub home: Home,
    /// Where the server is.
    pub host: String,
    asked: Arc<Mutex<Vec<Asking>>>,
    serving: JoinHandle<()>,
}

impl Scene {
    /// A server that answers every request as `say` does, until the test ends.
    pub async fn with(say: impl Fn(&Asking) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let server = Server::start().await;
        let host = server.host();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (say, heard) = (Arc::new(say), Arc::clone(&asked));
        let serving = tokio::spawn(async move {
            loop {
                let mut connection = server.accept().await;
                let (say, heard) = (Arc::clone(&say), Arc::clone(&heard));
                tokio::spawn(async move {
                    let asking = connection.request().await;
                    let bytes = say(&asking);
                    heard.lock().expect("a lock").push(asking);
                    connection.send(bytes).await;
                });
            }
        });
        Self { home: Home::new(), host, asked, serving }
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(args);
        command.env("OPENAI_API_KEY", KEY);
        command.env("OPENAI_BASE_URL", format!("http://{}/v1", self.host));
        command
    }

    pub async fn run(&self, args: &[&str]) -> Ended {
        ended(self.command(args)).await
    }

    pub fn asked(&self) -> Vec<Asking> {
        std::mem::take(&mut *self.asked.lock().expect("a lock"))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

pub async fn ended(mut command: Command) -> Ended {
    let ended = tokio::task::spawn_blocking(move || end(&mut command)).await.expect("no panic");
    for text in [&ended.out, &ended.err] {
        assert!(!text.contains(KEY), "the key is shown:\n{text}");
    }
    ended
}

/// The user's message to the model: the payload of the source document.
pub fn payload(asking: &Asking) -> Value {
    let content = asking.body["messages"][1]["content"].as_str().expect("a user message");
    // The notice to the model about a refused reply may follow in the same message.
    let mut objects = serde_json::Deserializer::from_str(content).into_iter();
    objects.next().expect("an object").expect("JSON")
}

pub fn completion(text: &str) -> Vec<u8> {
    let message = json!({ "role": "assistant", "content": text });
    let body = json!({
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "model-that-answered",
        "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110 },
    });
    answer("200 OK", &["content-type: application/json", "connection: close"], &body.to_string())
}

/// A table that agrees at once.
pub fn agreeing(asking: &Asking) -> Vec<u8> {
    let payload = payload(asking);
    match payload["role"].as_str() {
        Some(role) => completion(
            &json!({
                "agent": role,
                "stance": "go",
                "summary": "Fine by me.",
                "confidence": 0.9,
                "actions": ["Start"],
            })
            .to_string(),
        ),
        None => completion("We start."),
    }
}
