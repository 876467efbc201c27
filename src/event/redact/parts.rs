//! The texts of calls: prompts, replies, tool calls.

use std::sync::Arc;

use super::TextRedactor;
use crate::event::call::{
    CallStarted, ChatMessage, Prompt, Reply, ReplyRefused, ToolCall, ToolOffer,
};
use crate::event::purpose::Purpose;

impl CallStarted {
    /// Replaces the prompt or the arguments, and declares the names of the offered tools.
    pub(super) fn redact(&mut self, by: &mut TextRedactor) {
        let Self { parent: _, tool, purpose, prompt, args, model: _, repeat: _ } = self;
        by.declare(tool.as_str());
        if let Purpose::Task { task, index: _ } = purpose {
            by.task(task);
        }
        let Prompt { after: _, messages, tools } = prompt;
        for ToolOffer { name, description, parameters } in tools.iter_mut().flat_map(Arc::make_mut)
        {
            by.declare(name);
            by.text(description);
            by.value(Arc::make_mut(parameters));
        }
        for ChatMessage { role: _, content, tool_calls, tool_call_id, blocks } in
            Arc::make_mut(messages)
        {
            by.text(content);
            by.calls(tool_calls);
            by.some(tool_call_id);
            // Only the provider reads it.
            *blocks = None;
        }
        by.some_value(args);
    }
}

impl Reply {
    /// Replaces the text, the tool calls and the result.
    pub(super) fn redact(&mut self, by: &TextRedactor) {
        let Self {
            text,
            tool_calls,
            result,
            usage: _,
            estimated: _,
            first_token_ms: _,
            slow: _,
            model: _,
            finish,
            end: _,
            blocks,
            ignored: _,
            adopted: _,
        } = self;
        by.text(text);
        by.calls(tool_calls);
        by.some_value(result);
        if let Some(finish) = finish {
            by.word(finish);
        }
        // Only the provider reads it.
        *blocks = None;
    }
}

impl ReplyRefused {
    /// Replaces what is said about the reply, and its beginning.
    pub(super) fn redact(&mut self, by: &TextRedactor) {
        let Self { reason, detail, preview, repeat: _, repeats: _ } = self;
        reason.redact(by);
        by.text(detail);
        by.text(preview);
    }
}

impl TextRedactor {
    /// Replaces the ids and arguments of these tool calls, and names that no tool has.
    pub(crate) fn calls(&self, calls: &mut Arc<[ToolCall]>) {
        Arc::make_mut(calls).iter_mut().for_each(|call| self.call(call));
    }

    /// As [`calls`](Self::calls), for one.
    pub(crate) fn call(&self, call: &mut ToolCall) {
        let ToolCall { id, name, arguments } = call;
        self.text(id);
        self.name(name);
        self.text(arguments);
    }
}
