//! The page of one run: its facts, the world they fold to, and where the eye is.

use std::sync::Arc;
use std::time::Duration;

use super::action::Action;
use super::effect::Effect;
use super::key::Key;
use super::keymap::Context;
use super::msg::{LiveText, Mouse};
use super::state::Size;
use crate::event::{Event, RunId, SpanId, World};

/// One run as the dashboard holds it.
#[derive(Debug)]
pub struct RunPage {
    id: RunId,
    zero: Duration,
    log: Vec<Arc<Event>>,
    world: World,
}

/// What a page made of an action.
#[derive(Debug)]
pub enum Outcome {
    /// It took it.
    Handled {
        /// Whether the screen has changed.
        redraw: bool,
    },
    /// It took it, and the shell is asked for something.
    Emit(Vec<Effect>),
    /// It means nothing here; the dashboard may know better.
    Ignored,
}

impl RunPage {
    /// A page before its first fact. `zero` is when the run's own time was zero, since the start
    /// of the program.
    pub fn new(id: RunId, zero: Duration) -> Self {
        Self { id, zero, log: Vec::new(), world: World::new() }
    }

    /// The run.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// When the run's own time was zero, since the start of the program.
    pub fn zero(&self) -> Duration {
        self.zero
    }

    /// The run's facts so far.
    pub fn log(&self) -> &[Arc<Event>] {
        &self.log
    }

    /// The world at the head of the log.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The world at the playhead.
    pub fn shown(&self) -> &World {
        &self.world
    }

    /// What is focused.
    pub fn context(&self) -> Context {
        Context::Run
    }

    /// Takes new facts.
    pub fn apply(&mut self, events: &[Arc<Event>]) {
        for event in events {
            self.world.apply(event);
            self.log.push(Arc::clone(event));
        }
    }

    /// Takes the text that a span has given so far.
    pub fn set_live(&mut self, _span: SpanId, _text: Option<LiveText>) -> Outcome {
        Outcome::Handled { redraw: false }
    }

    /// Answers an action.
    pub fn on_action(&mut self, _action: Action, _size: Size) -> Outcome {
        Outcome::Ignored
    }

    /// Answers a key that is bound to nothing: what is typed into a filter.
    pub fn on_key(&mut self, _key: Key) -> Outcome {
        Outcome::Ignored
    }

    /// Answers a paste.
    pub fn on_paste(&mut self, _text: &str) -> Outcome {
        Outcome::Ignored
    }

    /// Answers the mouse.
    pub fn on_mouse(&mut self, _mouse: Mouse, _size: Size) -> Outcome {
        Outcome::Ignored
    }
}
