//! The file as text: TOML with positions, the reader that reports every problem with its place, the
//! tables of the format (which are also its JSON schema), overrides, templates and the problems
//! themselves. It knows the words of the format and not what they mean together.

pub(crate) mod amount;
pub(crate) mod domain;
pub(crate) mod duration_suggestion;
pub(crate) mod format;
pub(crate) mod format_budget;
pub(crate) mod format_fault;
pub(crate) mod format_lookup;
pub(crate) mod format_tools;
pub(crate) mod key_suggestion;
pub(crate) mod load;
pub(crate) mod named;
pub(crate) mod overrides;
pub(crate) mod problem;
pub(crate) mod problem_text;
pub(crate) mod prompt_files;
pub(crate) mod prompts;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod setting;
pub(crate) mod shape;
pub(crate) mod source;
pub(crate) mod switch;
pub(crate) mod syntax_errors;
pub(crate) mod template;
pub(crate) mod text_or_file;
pub(crate) mod toml_string;
pub(crate) mod toml_text;
pub(crate) mod tree;
pub(crate) mod unclosed;
