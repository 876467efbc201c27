//! A model of your own: `cargo run --example own_model`.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use roundtable::{
    AttemptFailed, ChatModel, ChatRequest, Engine, EngineSettings, Launch, Listener, ModelChoice,
    ModelLabel, Purpose, Reply, World, load, shipped,
};
use serde_json::json;

/// Agrees with everybody. A real one sends `request.messages` somewhere.
struct Agreeable;

impl ChatModel for Agreeable {
    fn label(&self) -> ModelLabel {
        ModelLabel::Live { name: "agreeable".into(), host: "this program".into() }
    }

    /// One attempt, without a retry or a timeout of its own; it is cancelled by being dropped. What it
    /// says while it works goes to the listener.
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, Box<AttemptFailed>>> {
        Box::pin(async move {
            // `request.form` has the JSON schema of the reply, where one is required.
            let text = match &request.purpose {
                Purpose::Contribution { role, .. } => json!({
                    "agent": role, "stance": "go", "confidence": 0.9,
                    "summary": "I see no reason to wait.", "actions": ["Start"],
                })
                .to_string(),
                _ => "All agree: start.".to_owned(),
            };
            listener.piece(&text);
            Ok(Reply::from_agent_text(text.into()))
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = shipped().iter().find(|it| it.name == "checkout-launch").ok_or("not shipped")?;
    let scenario = Arc::new(load(file.text, file.origin(), &[])?);

    let timeout = Duration::from_secs(10);
    let engine = Engine::new(EngineSettings::default());
    let run = engine.start(Launch {
        model: ModelChoice::Live(Arc::new(Agreeable).into(), timeout),
        ..Launch::scripted(scenario, true)
    });
    let (mut reader, mut events, mut world) = (run.first_reader(), Vec::new(), World::default());
    while reader.next_batch(&mut events, 64).await > 0 {
        events.drain(..).for_each(|event| world.apply(&event));
    }

    let outcome = world.outcome().ok_or("the log has no end")?;
    println!("{}: {}, {} calls", outcome.status, outcome.stop_reason, outcome.usage.calls);
    println!("decision: {}", outcome.fields.get("final_decision").unwrap_or_default());
    println!("{}", world.progress.answer.as_deref().unwrap_or("no answer"));
    Ok(())
}
