//! Events and figures put into words, once, for the dashboard, headless text and exported documents:
//! the sentence of an event, durations and counts, text measured and cut to columns.

pub mod attribution;
pub mod badges;
pub mod closing;
pub mod command_words;
pub mod comparison;
pub mod event_line;
pub mod event_line_tool;
pub mod excerpt;
pub mod export;
pub mod format;
pub mod glyph;
pub mod kept;
pub mod line_parts;
pub mod lines;
mod lines_tool;
pub mod measure;
pub mod page;
pub mod pattern_words;
pub mod patterns;
pub mod preview;
pub mod progress;
pub(crate) mod readable;
pub mod short_error;
pub mod style_role;
pub mod styled;
pub mod tell;
pub mod verdict;
