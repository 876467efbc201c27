//! The readable parts of a seat's reply while it is still streamed: the contract requires one JSON
//! object, and the start of it is enough to show its text. Nothing is validated here; the gateway
//! does that with the complete reply.

use crate::event::contribution::Stance;

/// Longest partial reply that is parsed, in bytes; a longer one is shown as it is.
const MOST: usize = 64 * 1024;

/// The parts of a contribution received so far, as the model wrote them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartialContribution {
    /// The stance, once it is complete and valid.
    pub stance: Option<Stance>,
    /// The summary, as far as it was received.
    pub summary: Option<String>,
    /// The actions; the last one may be incomplete.
    pub actions: Vec<String>,
    /// Whether the summary is complete.
    pub is_complete: bool,
}

/// Parses the start of a reply; `None` if it cannot be the start of a JSON object.
pub fn parse_partial(text: &str) -> Option<PartialContribution> {
    if text.len() > MOST {
        return None;
    }
    let mut scan = Scan { rest: text };
    let mut speech = PartialContribution::default();
    scan.take('{')?;
    // Parsing may stop early; what was parsed until then stays.
    while scan.member(&mut speech).is_some() {}
    Some(speech)
}

struct Scan<'a> {
    rest: &'a str,
}

impl Scan<'_> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn take(&mut self, c: char) -> Option<()> {
        (self.peek()? == c).then(|| self.rest = &self.rest[c.len_utf8()..])
    }

    /// Parses one member of the object and the comma after it; `None` if there is no further one.
    fn member(&mut self, speech: &mut PartialContribution) -> Option<()> {
        let (key, whole) = self.string()?;
        if !whole {
            return None;
        }
        self.take(':')?;
        match (key.as_str(), self.peek()?) {
            ("summary", '"') => {
                let (text, whole) = self.string()?;
                speech.summary = Some(text);
                speech.is_complete = whole;
                whole.then_some(())?;
            }
            ("stance", '"') => {
                let (text, whole) = self.string()?;
                whole.then_some(())?;
                speech.stance = Stance::ALL.into_iter().find(|stance| stance.word() == text);
            }
            ("actions", '[') => {
                self.take('[')?;
                while self.peek()? == '"' {
                    let (text, whole) = self.string()?;
                    speech.actions.push(text);
                    whole.then_some(())?;
                    if self.peek()? == ',' {
                        self.take(',')?;
                    }
                }
                self.take(']')?;
            }
            _ => self.skip()?,
        }
        self.take(',')
    }

    /// A string, and whether it is complete.
    fn string(&mut self) -> Option<(String, bool)> {
        self.take('"')?;
        let mut out = String::new();
        let mut chars = self.rest.char_indices();
        let mut high = None;
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Some((out, true));
                }
                '\\' => {
                    let Some((_, escaped)) = chars.next() else { break };
                    match escaped {
                        'n' => out.push('\n'),
                        't' => out.push('\t'),
                        'r' => out.push('\r'),
                        'b' => out.push('\u{8}'),
                        'f' => out.push('\u{c}'),
                        'u' => {
                            let digits: String =
                                chars.by_ref().take(4).map(|(_, digit)| digit).collect();
                            if digits.len() < 4 {
                                break;
                            }
                            let unit = u16::from_str_radix(&digits, 16).unwrap_or(0xfffd);
                            match (high.take(), unit) {
                                (None, 0xd800..=0xdbff) => high = Some(unit),
                                (Some(first), second) => out.extend(
                                    char::decode_utf16([first, second])
                                        .map(|c| c.unwrap_or('\u{fffd}')),
                                ),
                                (None, unit) => {
                                    out.push(char::from_u32(unit.into()).unwrap_or('\u{fffd}'));
                                }
                            }
                        }
                        other => out.push(other),
                    }
                }
                other => out.push(other),
            }
        }
        self.rest = "";
        Some((out, false))
    }

    /// Skips any value, however deeply nested.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match self.peek()? {
                '"' => {
                    let (_, whole) = self.string()?;
                    whole.then_some(())?;
                }
                c @ ('{' | '[') => {
                    self.take(c)?;
                    depth += 1;
                }
                c @ ('}' | ']') => {
                    depth = depth.checked_sub(1)?;
                    self.take(c)?;
                }
                c @ (',' | ':') if depth > 0 => self.take(c)?,
                ',' | ':' => return Some(()),
                _ => {
                    let end = |c: char| !(c.is_alphanumeric() || matches!(c, '.' | '-' | '+'));
                    let at = self.rest.find(end)?;
                    // This character starts no value, so the text is not JSON.
                    (at > 0).then(|| self.rest = &self.rest[at..])?;
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WHOLE: &str = r#"{"agent": "risk_analyst", "confidence": 0.7, "extra": {"a": [1, "}"]},
        "stance": "caution", "summary": "Thin \"margin\"\nunder 3 %. \ud83d\ude80",
        "actions": ["Rehearse fail-over", "Alert"]}"#;

    #[test]
    fn a_whole_reply_is_read_whole() {
        let speech = parse_partial(WHOLE).expect("an object");
        assert_eq!(speech.stance, Some(Stance::Caution));
        assert_eq!(speech.summary.as_deref(), Some("Thin \"margin\"\nunder 3 %. 🚀"));
        assert_eq!(speech.actions, ["Rehearse fail-over", "Alert"]);
        assert!(speech.is_complete);
    }

    #[test]
    fn the_words_grow_with_the_reply() {
        let mut before = 0;
        for end in (0..=WHOLE.len()).filter(|end| WHOLE.is_char_boundary(*end)) {
            let said = parse_partial(&WHOLE[..end]).and_then(|speech| speech.summary);
            let now = said.map_or(0, |said| said.len());
            assert!(now >= before, "at {end}");
            before = now;
        }
    }

    #[test]
    fn what_is_no_object_is_none() {
        assert_eq!(parse_partial("The launch may go."), None);
        assert_eq!(parse_partial(""), None);
        assert_eq!(parse_partial("{"), Some(PartialContribution::default()));
        assert_eq!(parse_partial("{not json"), Some(PartialContribution::default()));
        assert_eq!(parse_partial(&format!("{{{}", " ".repeat(MOST))), None);
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in "[{}\\[\\]\":,\\\\u0-9a-d \u{e9}-]*") {
            let _ = parse_partial(&text);
            let _ = parse_partial(&format!("{{{text}"));
        }
    }
}
