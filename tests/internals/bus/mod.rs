//! The ordered log and its readers.

mod log;
mod log_window;
