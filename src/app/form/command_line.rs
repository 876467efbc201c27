//! The command line that starts the same run as the form, quoted so that a POSIX shell passes every
//! word on unchanged.

use std::fmt::Write as _;

use super::LaunchForm;
use crate::scenario::catalogue::RequestedModel;

impl LaunchForm {
    /// The words of the command line that starts the same run, not quoted.
    pub fn command_words(&self) -> Vec<String> {
        let mut words = vec!["roundtable".to_owned()];
        match (&self.fork, self.boundary()) {
            (Some(fork), Some(place)) => {
                words.extend(["fork".to_owned(), format!("{}@{}", fork.run, place.id)]);
            }
            _ => words.extend(["run".to_owned(), self.entry.path.clone()]),
        }
        for (_, _, text) in self.fields.overrides() {
            words.extend(["--set".to_owned(), text]);
        }
        for (name, on) in self.fields.flags() {
            words
                .extend(["--flag".to_owned(), format!("{name}={}", if on { "on" } else { "off" })]);
        }
        let model = self.fields.model();
        match model {
            // A fork has the model of its parent.
            model if self.fork.as_ref().is_some_and(|fork| fork.model == model) => {}
            RequestedModel::Scripted { instant: false } if self.fork.is_some() => {
                words.push("--scripted".to_owned());
            }
            RequestedModel::Scripted { instant: false } => {}
            RequestedModel::Scripted { instant: true } => words.push("--instant".to_owned()),
            RequestedModel::Live(model) => {
                words.push("--live".to_owned());
                match model {
                    Some(model) if model.starts_with('-') => words.push(format!("--model={model}")),
                    Some(model) => words.extend(["--model".to_owned(), model.to_string()]),
                    None => {}
                }
            }
        }
        words
    }

    /// The same command as one line for a shell.
    pub fn command_line(&self) -> String {
        let words: Vec<_> = self.command_words().iter().map(|word| quoted(word)).collect();
        words.join(" ")
    }
}

/// A word quoted for a shell. Line ends and control characters are written as `$'…'`, which bash,
/// zsh and ksh read, so that the command stays on one line.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if !word.chars().any(char::is_control) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut out = "$'".to_owned();
    for c in word.chars() {
        match c {
            '\\' => out.push_str(r"\\"),
            '\'' => out.push_str(r"\'"),
            '\n' => out.push_str(r"\n"),
            '\r' => out.push_str(r"\r"),
            '\t' => out.push_str(r"\t"),
            c if c.is_ascii_control() => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_quoted_only_where_a_shell_needs_it() {
        assert_eq!(quoted("budget.max_rounds=1"), "budget.max_rounds=1");
        assert_eq!(quoted("goal=Is it safe?"), "'goal=Is it safe?'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("two\nlines"), r"$'two\nlines'");
        assert_eq!(quoted("it's\n\\"), r"$'it\'s\n\\'");
        assert_eq!(quoted(""), "''");
    }
}
