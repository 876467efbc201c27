//! The file as text: TOML with positions, the reader that reports every problem with its place, the
//! tables of the format (which are also its JSON schema), overrides, templates and the problems
//! themselves. It knows the words of the format and not what they mean together.

pub mod amount;
pub mod format;
pub mod format_lookup;
pub mod format_patterns;
pub mod format_research;
pub mod format_team;
pub mod format_tools;
pub mod key_suggestion;
pub mod load;
pub mod named;
pub mod overrides;
pub mod problem;
pub mod reader;
pub mod record;
pub mod shape;
pub mod source;
pub mod template;
pub mod toml_string;
pub mod toml_text;
pub mod tree;
