//! A tool of your own behind the gateway, which gives it a timeout, retries and a circuit breaker:
//! `cargo run --example own_tool`.

use std::error::Error;
use std::sync::Arc;

use futures::future::BoxFuture;
use roundtable::{
    AttemptFailed, Engine, EngineSettings, EventKind, FailureClass, Launch, Tool, ToolRequest,
    Toolbox, World, load, shipped,
};
use serde_json::{Value, json};

/// Counts orders; its first attempt hangs, to show the timeout and the retry.
struct Sales;

impl Tool for Sales {
    /// One attempt. A tool does not retry and sets no timeout: the gateway does both, and cancels an
    /// attempt by dropping this future.
    fn ask<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>> {
        Box::pin(async move {
            if request.attempt == 1 {
                std::future::pending::<()>().await;
            }
            let Some(region) = request.args.get("region") else {
                return Err(AttemptFailed::new(FailureClass::Tool, "add the argument `region`"));
            };
            Ok(Arc::new(json!({ "orders": 4820, "gross_sales_usd": 182_450.0, "region": region })))
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = shipped().iter().find(|it| it.name == "morning-report").ok_or("not shipped")?;
    let scenario = Arc::new(load(file.text, file.origin(), &[])?);

    // The scenario says how often and how long each tool is tried; the toolbox has what answers.
    let mut tools = Toolbox::offline(&scenario, true);
    tools.replace("sales_worker", Box::new(Sales));

    let engine = Engine::new(EngineSettings::default());
    let run = engine.start(Launch { tools: Some(tools), ..Launch::scripted(scenario, true) });
    let (mut reader, mut events, mut world) = (run.first_reader(), Vec::new(), World::default());
    while reader.next_batch(&mut events, 64).await > 0 {
        for event in events.drain(..) {
            if let EventKind::AttemptFailed(failed) = &event.kind {
                println!("an attempt failed: {}", failed.text);
            }
            world.apply(&event);
        }
    }

    let outcome = world.outcome().ok_or("the log has no end")?;
    let aggregate = outcome.fields.get("aggregate").unwrap_or_default();
    println!("{}: {}", outcome.status, outcome.stop_reason);
    println!("the tool said: {}", aggregate["sales"]);
    Ok(())
}
