//! Reads our variables from the text of a `.env` file. Neither reads nor changes the process
//! environment.

use std::collections::BTreeMap;

use super::error::EndpointError;
use super::provider::Provider;

/// The model, for the OpenAI API.
pub(super) const MODEL: &str = "OPENAI_MODEL";
/// The timeout of one attempt, in seconds.
pub(super) const TIMEOUT: &str = "OPENAI_TIMEOUT_SECONDS";

/// The names that we read. A `.env` serves other programs too; their lines are ignored.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let own = Provider::ALL.into_iter().flat_map(|it| [it.key_name(), it.address_name()]);
    own.chain([MODEL, TIMEOUT])
}

/// Reads our variables. If one is set twice, the later line counts, as in a shell.
///
/// # Errors
/// One of our lines cannot be parsed. The error gives its number only, because the text may be a
/// key.
pub(super) fn read(text: &str) -> Result<BTreeMap<&'static str, String>, EndpointError> {
    let mut found = BTreeMap::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, line) in text.lines().enumerate() {
        let Some(name) = name_of(line) else { continue };
        let number = index + 1;
        if refers_to_a_variable(line) {
            return Err(EndpointError::DotenvReference { line: number, name });
        }
        match dotenvy::from_read_iter(line.as_bytes()).next() {
            Some(Ok((_, value))) => found.insert(name, value),
            Some(Err(_)) | None => return Err(EndpointError::DotenvLine { line: number, name }),
        };
    }
    Ok(found)
}

fn name_of(line: &str) -> Option<&'static str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("export") {
        Some(rest) if rest.starts_with([' ', '\t']) => rest.trim_start(),
        _ => line,
    };
    let (name, _) = line.split_once('=')?;
    names().find(|known| *known == name.trim_end())
}

/// Whether the parser would insert another variable's value: a `$` without a backslash, outside
/// single quotes. It would take it from the shell, so a `.env` that came with a scenario could put
/// the shell's key into its address.
fn refers_to_a_variable(line: &str) -> bool {
    let (mut single, mut double, mut escaped) = (false, false, false);
    for c in line.chars() {
        match c {
            _ if std::mem::take(&mut escaped) => {}
            '\'' if !double => single = !single,
            '"' if !single => double = !double,
            '\\' if !single => escaped = true,
            '$' if !single => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(text: &str) -> Result<Option<String>, EndpointError> {
        read(text).map(|mut found| found.remove("OPENAI_API_KEY"))
    }

    #[test]
    fn lines_that_can_be_read() {
        for (text, value) in [
            ("OPENAI_API_KEY=sk-1", Some("sk-1")),
            ("\u{feff}OPENAI_API_KEY = \"sk-1\" # mine\r\n", Some("sk-1")),
            ("  export OPENAI_API_KEY='sk-$1'", Some("sk-$1")),
            ("export\tOPENAI_API_KEY=sk\\$1", Some("sk$1")),
            ("OPENAI_API_KEY=", Some("")),
            ("OPENAI_API_KEY=a\nOPENAI_API_KEY=b", Some("b")),
            ("# OPENAI_API_KEY=a", None),
            ("MY_OPENAI_API_KEY=a\nOPENAI_API_KEY_2=b\nexportOPENAI_API_KEY=c", None),
            ("what is this?\nOTHER='open\nOPENAI_API_KEY=sk-1", Some("sk-1")),
            ("", None),
        ] {
            assert_eq!(key(text), Ok(value.map(str::to_owned)), "{text}");
        }
    }

    #[test]
    fn lines_that_cannot() {
        let name = "OPENAI_API_KEY";
        for text in ["\nOPENAI_API_KEY='sk-1", "\nOPENAI_API_KEY=a b", "\nOPENAI_API_KEY=a\\b"] {
            assert_eq!(key(text), Err(EndpointError::DotenvLine { line: 2, name }), "{text}");
        }
        for text in [
            "OPENAI_API_KEY=$HOME",
            "OPENAI_API_KEY=a${HOME}b",
            "OPENAI_API_KEY=\"it's $HOME\"",
            "OPENAI_API_KEY='a'$HOME'b'",
            "OPENAI_API_KEY=\\\\$HOME",
        ] {
            assert_eq!(key(text), Err(EndpointError::DotenvReference { line: 1, name }), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken_and_no_variable_gets_in(parts in prop::collection::vec(
            prop::sample::select(vec!["$PATH", "${PATH}", "$", "'", "\"", "\\", " ", "#", "=", "a"]),
            0..8,
        )) {
            // In every environment in which the tests run, PATH is set and has a slash or
            // semicolon.
            if let Ok(Some(value)) = key(&format!("OPENAI_API_KEY={}", parts.concat())) {
                prop_assert!(!value.contains(['/', ';']), "{}", value);
            }
        }
    }
}
