//! A resilience run in words.

mod narrate;
