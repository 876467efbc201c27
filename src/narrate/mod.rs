//! Events and figures put into words, once, for the dashboard, headless text and exported documents:
//! the sentence of an event, durations and counts, text measured and cut to columns.

pub mod attribution;
pub mod badges;
pub mod event_line;
pub mod event_line_tool;
pub mod export;
pub mod format;
pub mod glyph;
pub mod measure;
pub mod style_role;
pub mod styled;
