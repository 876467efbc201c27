//! The shared history of one team's run, and the part of it that each agent sees. A coordinator has
//! a history of its own; the members of a swarm share one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::policy::{HandoffLimiter, TRANSFER};
use crate::base::name::AgentName;
use crate::log::event::result_text::marked_text;
use crate::log::event::{ChatMessage, MessageRole, Prompt, Reply, SpanId};
use crate::log::facts::agents::HistoryEntry;
use crate::model::{Bookmark, Conversation};
use crate::scenario::patterns::agents::SwarmLimits;
use crate::scenario::spec::script::ReplyEnd;
use crate::scenario::spec::tool::{ToolCall, ToolOffer};

/// The history of one run of a team: what was said, and by which agent.
pub(crate) struct SharedHistory {
    state: Mutex<HistoryState>,
    /// The history that the team's caller lets it see.
    inherited: Arc<[ChatMessage]>,
}

struct HistoryState {
    entries: Vec<HistoryEntry>,
    threads: BTreeMap<AgentName, AgentThread>,
    turns: BTreeMap<AgentName, u32>,
    limiter: HandoffLimiter,
    rejections: u32,
    /// The last text that any agent said, and that agent.
    best: Option<(Arc<str>, AgentName)>,
}

/// The prompt of one agent so far. It only grows, so each call of the model extends the previous
/// one.
struct AgentThread {
    opening: Arc<[ChatMessage]>,
    conversation: Conversation,
    after: Option<SpanId>,
    /// The number of entries that were processed: added to the prompt, or hidden from this agent.
    seen: usize,
    offered: Option<Arc<[ToolOffer]>>,
}

/// A state of the history to return to when an agent's run is retried.
pub(crate) struct HistoryMark {
    entries: usize,
    bookmark: Bookmark,
    after: Option<SpanId>,
    seen: usize,
    offered: Option<Arc<[ToolOffer]>>,
    limiter: HandoffLimiter,
    rejections: u32,
    best: Option<(Arc<str>, AgentName)>,
}

impl SharedHistory {
    /// An empty history, or the one that the session's last run left.
    pub fn new(
        inherited: Arc<[ChatMessage]>,
        history: &[HistoryEntry],
        limits: SwarmLimits,
    ) -> Self {
        let state = HistoryState {
            entries: history.to_vec(),
            threads: BTreeMap::new(),
            turns: BTreeMap::new(),
            limiter: HandoffLimiter::new(limits),
            rejections: 0,
            best: None,
        };
        Self { state: Mutex::new(state), inherited }
    }

    fn lock(&self) -> MutexGuard<'_, HistoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives an agent its input; its turn begins.
    pub fn record_input(&self, to: &AgentName, from: Option<&AgentName>, text: &Arc<str>) {
        let mut state = self.lock();
        let (to, from, text) = (to.clone(), from.cloned(), Arc::clone(text));
        state.entries.push(HistoryEntry::Input { to, from, text });
    }

    /// Increments and returns the turn number of an agent, from 1.
    pub fn next_turn(&self, agent: &AgentName) -> u32 {
        let mut state = self.lock();
        let turn = state.turns.entry(agent.clone()).or_default();
        *turn += 1;
        *turn
    }

    /// The next prompt for an agent's model: the whole conversation, and the part that is new.
    /// `alone`: the agent sees only its own turns.
    pub fn next_prompt(
        &self,
        agent: &AgentName,
        instruction: &Arc<str>,
        alone: bool,
        offers: &Arc<[ToolOffer]>,
    ) -> (Conversation, Prompt) {
        let mut state = self.lock();
        let state = &mut *state;
        let thread = state.threads.entry(agent.clone()).or_insert_with(|| AgentThread {
            opening: self.opening(instruction, alone),
            conversation: Conversation::default(),
            after: None,
            seen: 0,
            offered: None,
        });
        let seen = std::mem::replace(&mut thread.seen, state.entries.len());
        let entries = &state.entries[seen..];
        // The log keeps an agent's own reply with the call that produced it.
        let own = match (thread.after, entries.first()) {
            (Some(_), Some(HistoryEntry::Reply { by, .. })) if by == agent => 1,
            _ => 0,
        };
        let opening = match thread.after {
            None => Arc::clone(&thread.opening),
            Some(_) => [].into(),
        };
        let shown = |entry: &HistoryEntry| message_for(entry, agent, alone);
        let replied: Arc<[ChatMessage]> = entries[..own].iter().filter_map(shown).collect();
        let added = (seen + own..state.entries.len()).filter_map(|at| {
            let message = shown(&state.entries[at])?;
            Some(after_cut_reply(&state.entries[..at], &state.entries[at], agent, message))
        });
        let new: Arc<[ChatMessage]> = opening.iter().cloned().chain(added).collect();
        thread.conversation.push(replied);
        thread.conversation.push(Arc::clone(&new));
        let same = thread.offered.as_ref().is_some_and(|offered| Arc::ptr_eq(offered, offers));
        let offers_changed = !same && (thread.offered.is_some() || !offers.is_empty());
        thread.offered = Some(Arc::clone(offers));
        let tools = offers_changed.then(|| Arc::clone(offers));
        let prompt = Prompt { after: thread.after, messages: new, tools, ..Prompt::default() };
        (thread.conversation.clone(), prompt)
    }

    fn opening(&self, instruction: &Arc<str>, alone: bool) -> Arc<[ChatMessage]> {
        let system = (!instruction.is_empty())
            .then(|| ChatMessage::new(MessageRole::System, Arc::clone(instruction)));
        let inherited = self.inherited.iter().filter(|_| !alone).cloned();
        system.into_iter().chain(inherited).collect()
    }

    /// Records the reply of an agent's model.
    pub fn record_reply(&self, agent: &AgentName, call: SpanId, reply: &Reply) {
        let mut state = self.lock();
        if let Some(thread) = state.threads.get_mut(agent) {
            thread.after = Some(call);
        }
        if !reply.text.trim().is_empty() {
            state.best = Some((Arc::clone(&reply.text), agent.clone()));
        }
        let ChatMessage { content: text, tool_calls: calls, blocks, .. } =
            ChatMessage::from_reply(reply);
        let (by, end) = (agent.clone(), reply.end);
        state.entries.push(HistoryEntry::Reply { by, text, calls, blocks, end });
    }

    /// Shows an agent its last reply and what is wrong with it, in this run only: no other agent
    /// and no later message sees either. Returns the next prompt, as [`next_prompt`](Self::next_prompt).
    pub fn correct_reply(
        &self,
        agent: &AgentName,
        call: SpanId,
        reply: &Reply,
        wrong: &str,
    ) -> (Conversation, Prompt) {
        let wrong: Arc<[ChatMessage]> = [ChatMessage::new(MessageRole::User, wrong)].into();
        let prompt =
            Prompt { after: Some(call), messages: Arc::clone(&wrong), ..Prompt::default() };
        let mut state = self.lock();
        let Some(thread) = state.threads.get_mut(agent) else {
            // The agent has replied, so it has a thread.
            return (Conversation::from(wrong), prompt);
        };
        thread.conversation.push([ChatMessage::from_reply(reply)].into());
        thread.conversation.push(wrong);
        thread.after = Some(call);
        (thread.conversation.clone(), prompt)
    }

    /// Records a fallback text as the answer of an agent.
    pub fn record_fallback(&self, agent: &AgentName, text: &Arc<str>) {
        let (by, text, calls) = (agent.clone(), Arc::clone(text), [].into());
        let (blocks, end) = (None, ReplyEnd::Stop);
        self.lock().entries.push(HistoryEntry::Reply { by, text, calls, blocks, end });
    }

    /// Records the result of a call.
    pub fn record_result(&self, by: &AgentName, call: &ToolCall, text: Arc<str>) {
        let (by, call) = (by.clone(), call.clone());
        self.lock().entries.push(HistoryEntry::Result { by, call, text });
    }

    /// The history that a consulted member may see: the inherited messages, then those of this history.
    pub fn inheritable(&self) -> Arc<[ChatMessage]> {
        let state = self.lock();
        self.inherited
            .iter()
            .cloned()
            .chain(state.entries.iter().filter_map(message_for_others))
            .collect()
    }

    /// Lets the limits judge a handoff; the closure also gets the count of refusals.
    pub fn with_limits<T>(&self, judge: impl FnOnce(&mut HandoffLimiter, &mut u32) -> T) -> T {
        let mut state = self.lock();
        let state = &mut *state;
        judge(&mut state.limiter, &mut state.rejections)
    }

    /// The number of requested handoffs, refused ones included.
    pub fn handoffs(&self) -> u32 {
        self.lock().limiter.guard().handoffs
    }

    /// The last text that was said, and the agent that said it.
    pub fn best_partial(&self) -> Option<(Arc<str>, AgentName)> {
        self.lock().best.clone()
    }

    /// The state at the start of an agent's run.
    pub fn history_mark(&self, agent: &AgentName) -> HistoryMark {
        let state = self.lock();
        let thread = state.threads.get(agent);
        HistoryMark {
            entries: state.entries.len(),
            bookmark: thread.map(|it| it.conversation.end()).unwrap_or_default(),
            after: thread.and_then(|it| it.after),
            seen: thread.map_or(0, |it| it.seen),
            offered: thread.and_then(|it| it.offered.clone()),
            limiter: state.limiter.clone(),
            rejections: state.rejections,
            best: state.best.clone(),
        }
    }

    /// Undoes what an agent's run did, before it is retried.
    pub fn restore_mark(&self, agent: &AgentName, to: &HistoryMark) {
        let mut state = self.lock();
        state.entries.truncate(to.entries);
        state.limiter = to.limiter.clone();
        state.rejections = to.rejections;
        state.best.clone_from(&to.best);
        if let Some(thread) = state.threads.get_mut(agent) {
            thread.conversation.go_back(to.bookmark);
            thread.after = to.after;
            thread.seen = to.seen;
            thread.offered.clone_from(&to.offered);
        }
    }

    /// The history for the session's next message. A last reply whose calls have no results yet is
    /// left out, because models reject calls without results.
    pub fn complete_entries(&self) -> Arc<[HistoryEntry]> {
        let state = self.lock();
        let entries = &state.entries;
        let last = entries.iter().rposition(|entry| matches!(entry, HistoryEntry::Reply { .. }));
        let whole = match last.map(|at| (at, &entries[at])) {
            Some((at, HistoryEntry::Reply { calls, .. })) => {
                let results = entries[at..].iter();
                let results =
                    results.filter(|entry| matches!(entry, HistoryEntry::Result { .. })).count();
                if results < calls.len() { at } else { entries.len() }
            }
            _ => entries.len(),
        };
        // Models reject empty messages too.
        let said = |entry: &&HistoryEntry| match entry {
            HistoryEntry::Reply { text, calls, .. } => !text.trim().is_empty() || !calls.is_empty(),
            HistoryEntry::Input { .. } | HistoryEntry::Result { .. } => true,
        };
        entries[..whole].iter().filter(said).cloned().collect()
    }
}

/// An entry as an agent's model sees it: the agent's own entries under its own role, those of
/// others as user messages with their names. `alone`: entries of others are hidden.
fn message_for(entry: &HistoryEntry, agent: &AgentName, alone: bool) -> Option<ChatMessage> {
    match entry {
        HistoryEntry::Input { to, text, .. } if to == agent => {
            Some(ChatMessage::new(MessageRole::User, Arc::clone(text)))
        }
        HistoryEntry::Reply { by, text, calls, blocks, .. } if by == agent => {
            let said = ChatMessage::assistant(Arc::clone(text), Arc::clone(calls));
            Some(ChatMessage { blocks: blocks.clone(), ..said })
        }
        HistoryEntry::Result { by, call, text } if by == agent => {
            Some(ChatMessage::tool_result(call, Arc::clone(text)))
        }
        _ if alone => None,
        entry => message_for_others(entry),
    }
}

/// An agent's next input says when the agent's own last reply was cut: that reply itself goes back
/// to its model as the model wrote it.
fn after_cut_reply(
    before: &[HistoryEntry],
    entry: &HistoryEntry,
    agent: &AgentName,
    message: ChatMessage,
) -> ChatMessage {
    if !matches!(entry, HistoryEntry::Input { to, .. } if to == agent) {
        return message;
    }
    let last = before.iter().rev().find_map(|entry| match entry {
        HistoryEntry::Reply { by, end, .. } if by == agent => Some(*end),
        _ => None,
    });
    match last.and_then(ReplyEnd::mark) {
        None => message,
        Some(mark) => {
            let content = format!("[Your last reply was {mark}.]\n\n{}", message.content).into();
            ChatMessage { content, ..message }
        }
    }
}

/// An entry as every agent but its author sees it.
fn message_for_others(entry: &HistoryEntry) -> Option<ChatMessage> {
    let text: Arc<str> = match entry {
        HistoryEntry::Input { from: None, text, .. } => Arc::clone(text),
        HistoryEntry::Input { from: Some(from), to, text } => {
            format!("[{from}] handed over to {to}: {text}").into()
        }
        HistoryEntry::Reply { by, text, end, .. } if !text.trim().is_empty() => {
            format!("[{by}] {}", marked_text(text, *end)).into()
        }
        // A handoff is already shown by the input of its target.
        HistoryEntry::Result { call, .. } if &*call.name == TRANSFER => return None,
        HistoryEntry::Result { by, call, text } => {
            format!("[{by}] called {} with {}\n[{}] {text}", call.name, call.arguments, call.name)
                .into()
        }
        HistoryEntry::Reply { .. } => return None,
    };
    Some(ChatMessage::new(MessageRole::User, text))
}
