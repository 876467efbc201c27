//! What happens among agents, in words.

pub mod event_line;
