//! Events and figures put into words, once, for the dashboard, headless text and exported
//! documents: the sentence of an event, durations and counts, text measured and cut to columns.
//! Pure. Text of models is made visible here.

pub mod badges;
pub mod closing;
pub mod comparison;
pub mod format;
pub mod glyph;
pub mod headless;
pub mod markdown;
pub mod measure;
pub mod page;
pub mod patterns;
pub mod question;
pub mod readable;
pub mod sentence;
pub mod styled;
pub mod tool_sentence;
pub mod verdict;
