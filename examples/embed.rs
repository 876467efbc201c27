//! A program that plays a scenario and reads what happens. It needs no key and no network:
//! `cargo run --example embed`.

use std::error::Error;
use std::sync::Arc;

use roundtable::{
    Command, Engine, EngineSettings, EventKind, Initiator, Launch, Schedule, World, load, shipped,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // A scenario is a TOML file: three analysts decide on a launch. Errors say the line and what to do.
    let file = shipped().iter().find(|it| it.name == "checkout-launch").ok_or("not shipped")?;
    let scenario = Arc::new(load(file.text, file.origin(), &[])?);

    // The script in the scenario replies instead of a model, here without its delays. The run
    // pauses before its first call, so that the flag below is switched in time.
    let engine = Engine::new(EngineSettings::default());
    let run = engine.start(Launch {
        schedule: Schedule { start_paused: true, ..Schedule::default() },
        ..Launch::scripted(scenario, true)
    });

    // A run is a log of events; `World` is what they add up to. A reader waits for the next events and gets
    // none only when the log is closed.
    let (mut reader, mut events, mut world) = (run.first_reader(), Vec::new(), World::default());
    while reader.next_batch(&mut events, 64).await > 0 {
        for event in events.drain(..) {
            world.apply(&event);
            match &event.kind {
                EventKind::Paused { at } => {
                    let place = at.first().map(ToString::to_string).unwrap_or_default();
                    println!("paused at {place}: the lawyer joins");
                    let (flag, by) = ("legal_analyst".into(), Initiator::You);
                    run.send(Command::SetFlag { flag, on: true, by });
                    run.send(Command::Resume { by });
                }
                EventKind::FlagChanged { flag, on, boundary, .. } => {
                    println!("{flag} is {} from {boundary}", if *on { "on" } else { "off" });
                }
                _ => {}
            }
        }
    }

    let outcome = world.outcome().ok_or("the log has no end")?;
    println!("{}: {}, {} events", outcome.status, outcome.stop_reason, world.progress.next.0);
    println!("decision: {}", outcome.fields.get("final_decision").unwrap_or_default());
    println!("{}", world.progress.answer.as_deref().unwrap_or("no answer"));
    Ok(())
}
