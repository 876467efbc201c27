//! The terminal: the loop, the screen guard, input, effects, clipboard, logging, and where files
//! of ours live. Behaviour is `app`'s, looks are `ui`'s.

pub mod clipboard;
pub mod dirs;
pub mod input;
pub mod log;
pub mod screen;
pub mod surface;
