//! Finds the string or the bracket of an invalid file that is not closed. The parser reports a place
//! after it, often on another line.

/// A string or a bracket that is not closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unclosed {
    /// Byte offset of its beginning.
    pub at: usize,
    /// What opens it.
    pub opened: &'static str,
    /// What is missing.
    pub missing: &'static str,
}

/// The first string or bracket of a text that is not closed.
pub(crate) fn find_unclosed(text: &str) -> Option<Unclosed> {
    let mut scan = UnclosedSearch { text, at: 0, open: Vec::new(), last: '\n' };
    while scan.at < text.len() {
        if let Err(unclosed) = scan.line() {
            return Some(unclosed);
        }
    }
    scan.open.last().copied()
}

struct UnclosedSearch<'t> {
    text: &'t str,
    at: usize,
    /// The brackets that are open.
    open: Vec<Unclosed>,
    /// The last character that is not white space and not in a comment.
    last: char,
}

impl<'t> UnclosedSearch<'t> {
    /// Reads a line, and the further lines of a string that begins on it.
    fn line(&mut self) -> Result<(), Unclosed> {
        let line = self.rest_of_line();
        match self.open.last() {
            None if line.trim_start().starts_with('[') => return self.header(),
            Some(open) if self.is_new_entry(open, line) => return Err(*open),
            _ => {}
        }
        while let Some(c) = self.text[self.at..].chars().next() {
            let at = self.at;
            match c {
                '\n' => {
                    self.at += 1;
                    return Ok(());
                }
                '#' => {
                    self.at += self.rest_of_line().len();
                    continue;
                }
                '"' => {
                    self.string("\"", "\"\"\"")?;
                    continue;
                }
                // An apostrophe inside a word begins no string.
                '\'' if !self.text[..at].ends_with(char::is_alphanumeric) => {
                    self.string("'", "'''")?;
                    continue;
                }
                '[' => self.open.push(Unclosed { at, opened: "[", missing: "]" }),
                '{' => self.open.push(Unclosed { at, opened: "{", missing: "}" }),
                ']' | '}' => {
                    if let Some(open) = self.open.pop()
                        && !open.missing.starts_with(c)
                    {
                        return Err(open);
                    }
                }
                _ => {}
            }
            if !c.is_whitespace() {
                self.last = c;
            }
            self.at += c.len_utf8();
        }
        Ok(())
    }

    fn rest_of_line(&self) -> &'t str {
        self.text[self.at..].split('\n').next().unwrap_or_default()
    }

    /// Whether a line begins an entry or a table that cannot be inside this bracket.
    fn is_new_entry(&self, open: &Unclosed, line: &str) -> bool {
        let goes_on = matches!(self.last, ',' | '[' | '{' | '=');
        match begins_entry(line) {
            true => open.opened == "[" || !goes_on,
            false => begins_table(line) && !goes_on,
        }
    }

    /// Reads the header of a table.
    fn header(&mut self) -> Result<(), Unclosed> {
        let line = self.rest_of_line();
        let at = self.at + line.len() - line.trim_start().len();
        let (opened, missing) = match line.trim_start().starts_with("[[") {
            true => ("[[", "]]"),
            false => ("[", "]"),
        };
        if !line.contains(missing) {
            return Err(Unclosed { at, opened, missing });
        }
        self.at = (self.at + line.len() + 1).min(self.text.len());
        Ok(())
    }

    /// Reads a string, whose quote is here.
    fn string(&mut self, quote: &'static str, long: &'static str) -> Result<(), Unclosed> {
        let start = self.at;
        let rest = &self.text[start..];
        let is_long = rest.starts_with(long);
        let quote = if is_long { long } else { quote };
        let unclosed = Unclosed { at: start, opened: quote, missing: quote };
        let inner = &rest[quote.len()..];
        let limit = if is_long { inner } else { self.rest_of_line().get(1..).unwrap_or_default() };
        let length = end_of_string(limit, quote).ok_or(unclosed)?;
        self.at = start + quote.len() + length + quote.len();
        self.last = '"';
        if is_long {
            // Up to two quotes may come before the three.
            let more = self.text[self.at..]
                .bytes()
                .take(2)
                .take_while(|byte| quote.as_bytes()[0] == *byte);
            self.at += more.count();
            let after = self.rest_of_line().trim_start();
            let is_end = after.is_empty() || after.starts_with(['#', ',', ']', '}']);
            let body = &inner[..length];
            let mut lines = body.lines();
            // The quotes that close it should begin the string of another entry.
            let is_next = lines.next_back().is_some_and(|line| {
                body.contains('\n') && begins_entry(line) && line.trim_end().ends_with('=')
            });
            if is_next || (!is_end && lines.any(|line| begins_entry(line) || begins_table(line))) {
                return Err(unclosed);
            }
        }
        Ok(())
    }
}

/// The length of a string up to the quote that closes it.
fn end_of_string(text: &str, quote: &str) -> Option<usize> {
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with(quote) {
            return Some(at);
        }
        let mut chars = text[at..].chars();
        let first = chars.next()?;
        at += first.len_utf8();
        if first == '\\' && quote.starts_with('"') {
            at += chars.next().map_or(0, char::len_utf8);
        }
    }
    None
}

/// Whether a line looks like `key = …`.
fn begins_entry(line: &str) -> bool {
    let Some((key, _)) = line.split_once('=') else { return false };
    let key = key.trim();
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    key.starts_with(|c: char| c.is_ascii_alphabetic()) && key.chars().all(is_part)
}

/// Whether a line looks like the header of a table.
fn begins_table(line: &str) -> bool {
    let line = line.trim();
    let name = line.strip_prefix("[[").or_else(|| line.strip_prefix('['));
    let Some((name, after)) = name.and_then(|name| name.split_once(']')) else { return false };
    let after = after.trim_start_matches(']').trim_start();
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && (after.is_empty() || after.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::find_unclosed;

    #[test]
    fn the_beginning_of_what_is_not_closed_is_found() {
        for (text, found) in [
            ("a = \"b\nc = 1", Some((4, "\""))),
            ("a = { b = \"c, d = \"e\" }", Some((20, "\""))),
            ("a = 'b", Some((4, "'"))),
            ("a = [1, 2\nb = 3", Some((4, "]"))),
            ("a = [1, 2,\nb = 3", Some((4, "]"))),
            ("a = [\"x\"\n\n[[b]]\nc = 1", Some((4, "]"))),
            ("a = { b = 1\n[c]", Some((4, "}"))),
            ("a = [{ b = { c = 1 }]", Some((5, "}"))),
            ("[a\nb = 1", Some((0, "]"))),
            ("[[a]\nb = 1", Some((0, "]]"))),
            ("a = \"\"\"\nb\n[c]\nd = \"\"\"\ne\n\"\"\"", Some((4, "\"\"\""))),
            ("a = \"\"\"b", Some((4, "\"\"\""))),
            ("a = [", Some((4, "]"))),
        ] {
            let found_here = find_unclosed(text).map(|it| (it.at, it.missing));
            assert_eq!(found_here, found, "{text}");
        }
    }

    #[test]
    fn what_is_closed_is_not_reported() {
        for text in [
            "a = \"b # [\" # {\n[c.\"d\"]\ne = [\n  1, # [\n  [2],\n]",
            "a = { b = [\n  { c = 1 },\n], d = 2,\n  e = 3 }",
            "a = \"\"\"\nb = [\n\"\"\" # c\nd = \"\\\"\"",
            "a = [\n  \"b\"\n  , \"c\"]",
            "a = it's\nb = 1 ]",
            "a = \"\"\"b\"\"\"\"\"\n",
        ] {
            assert_eq!(find_unclosed(text), None, "{text}");
        }
    }
}
