//! Parses a `style` attribute and finds the declaration that wins.

use std::iter::Peekable;
use std::str::Chars;

/// Declarations in their order.
pub(super) struct StyleAttribute(Vec<Declaration>);

struct Declaration {
    name: String,
    value: String,
    important: bool,
}

impl StyleAttribute {
    /// Parses a style like a browser: comments separate tokens, escapes are resolved, and brackets
    /// and quotes protect their content.
    pub(super) fn parse(text: &str) -> Self {
        let (mut declarations, mut bare) = (Vec::new(), String::new());
        let (mut colon, mut depth, mut quote) = (None, 0_u32, None);
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            match (quote, c) {
                (_, '\\') => bare.push(read_escape(&mut rest)),
                (Some(open), c) if c == open || c == '\n' => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => {
                    quote = Some(c);
                    bare.push(c);
                }
                (None, '/') if rest.peek() == Some(&'*') => {
                    rest.next();
                    let mut before = ' ';
                    // The star of `/*` must not count as the one of `*/`.
                    for c in rest.by_ref() {
                        if (before, c) == ('*', '/') {
                            break;
                        }
                        before = c;
                    }
                    bare.push(' ');
                }
                (None, ';') if depth == 0 => {
                    declarations.extend(Declaration::parse(&bare, colon));
                    bare.clear();
                    colon = None;
                }
                (None, _) => {
                    match c {
                        '(' | '[' | '{' => depth += 1,
                        ')' | ']' | '}' => depth = depth.saturating_sub(1),
                        ':' if depth == 0 => colon = colon.or(Some(bare.len())),
                        _ => {}
                    }
                    bare.push(c.to_ascii_lowercase());
                }
            }
        }
        declarations.extend(Declaration::parse(&bare, colon));
        Self(declarations)
    }

    /// Value of the winning declaration of these properties. Declarations for which `read` returns
    /// `None` are ignored.
    pub(super) fn winning<T>(
        &self,
        names: &[&str],
        read: impl Fn(&str, &str) -> Option<T>,
    ) -> Option<T> {
        let of_it = self.0.iter().filter(|it| names.contains(&it.name.as_str()));
        of_it
            .filter_map(|it| Some((it.important, read(&it.name, &it.value)?)))
            .max_by_key(|(important, _)| *important)
            .map(|(_, read)| read)
    }
}

impl Declaration {
    /// Parses a declaration with its colon at this position.
    fn parse(bare: &str, colon: Option<usize>) -> Option<Self> {
        let (name, value) = (bare.get(..colon?)?, bare.get(colon? + 1..)?);
        let (value, important) = match value.rsplit_once('!') {
            Some((value, mark)) => (value, Some(mark.trim())),
            None => (value, None),
        };
        let important = match important {
            None => false,
            Some("important") => true,
            Some(_) => return None,
        };
        Some(Self { name: name.trim().to_owned(), value: value.trim().to_owned(), important })
    }
}

/// Character of an escape after its `\`: up to six hex digits and a blank, or any other character,
/// which stands for itself. Characters with a syntactic meaning are replaced.
fn read_escape(rest: &mut Peekable<Chars<'_>>) -> char {
    let (mut code, mut digits) = (0, 0);
    while digits < 6
        && let Some(digit) = rest.peek().and_then(|c| c.to_digit(16))
    {
        (code, digits) = (code * 16 + digit, digits + 1);
        rest.next();
    }
    let c = if digits == 0 {
        rest.next()
    } else {
        rest.next_if(|c| c.is_ascii_whitespace());
        char::from_u32(code)
    };
    let plain = c.filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '%' | '.'));
    plain.map_or('\u{fffd}', |c| c.to_ascii_lowercase())
}
