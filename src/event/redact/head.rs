//! The texts of the first and the last event of a log.

use std::sync::Arc;

use super::TextRedactor;
use crate::event::head::{FlagAt, ModelLabel, RunClosed, RunStarted};
use crate::event::launch::{ForkOrigin, LaunchRecord};
use crate::scenario::spec::source_text::SourceText;

impl RunStarted {
    /// Replaces the texts of the setup, and declares its names.
    pub(super) fn redact(&mut self, by: &mut TextRedactor) {
        let Self {
            run: _,
            wall_ms: _,
            scenario: _,
            title,
            goal,
            model,
            inputs,
            flags,
            seed: _,
            prices: _,
            model_prices: _,
            tools,
            ask_again: _,
            shows_flags: _,
            alerts: _,
            spending: _,
            launch,
            redacted,
            plan,
        } = self;
        *redacted = true;
        inputs.keys().for_each(|name| by.declare(name));
        tools.iter().for_each(|tool| by.declare(tool.name.as_str()));
        by.text(title);
        by.text(goal);
        by.fields(inputs);
        for FlagAt { name, label, on: _ } in flags {
            by.declare(name.as_str());
            by.text(label);
        }
        match model {
            ModelLabel::Scripted => {}
            ModelLabel::Live { name: _, host } => by.text(host),
        }
        if let Some(launch) = launch {
            launch.redact(by);
        }
        plan.redact(by);
    }
}

impl LaunchRecord {
    fn redact(&mut self, by: &TextRedactor) {
        let Self { source, instant: _, model: _, flags, pauses, answered_by: _, forked } = self;
        let SourceText { text, set, file, prompt_files } = Arc::make_mut(source);
        by.text(text);
        set.iter_mut().for_each(|change| by.text(change));
        by.some(file);
        let files = std::mem::take(prompt_files).into_iter().map(|(mut path, mut text)| {
            by.text(&mut path);
            by.text(&mut text);
            (path, text)
        });
        *prompt_files = files.collect();
        flags.iter_mut().for_each(|(at, ..)| by.boundary(at));
        pauses.iter_mut().for_each(|at| by.boundary(at));
        if let Some(ForkOrigin { parent: _, at, wall_ms: _, flags: _, prices: _ }) = forked {
            by.boundary(at);
        }
    }
}

impl RunClosed {
    /// Replaces the texts of the end.
    pub(super) fn redact(&mut self, by: &TextRedactor) {
        let Self { reason, phase: _, boundary, elapsed_ms: _, paused_ms: _, in_flight: _ } = self;
        reason.redact(by);
        if let Some(boundary) = boundary {
            by.boundary(boundary);
        }
    }
}
