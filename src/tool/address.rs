//! The address of an HTTP tool: a template whose `{name}` stands for the argument of that name. An
//! argument fills its place and nothing else: it can change neither the host nor the path around it.

use reqwest::Url;
use serde_json::{Map, Value};

use super::settings::NotReady;
use crate::event::visible::visible_within;
use crate::net::http::host_of;

/// The most characters of an argument's name that a text repeats.
const NAME_CHARS: usize = 40;

/// A template of an address.
#[derive(Debug)]
pub(super) struct Address {
    parts: Vec<Part>,
    host: String,
    /// What stands in its path, as a request has it, before, between and after the arguments.
    path: Vec<String>,
}

#[derive(Debug, PartialEq)]
enum Part {
    Text(String),
    Argument {
        name: String,
        /// It stands in the path: before the query.
        in_path: bool,
    },
}

impl Address {
    /// Reads a template.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(template: &str) -> Result<Self, NotReady> {
        let wrong = |why: &str| NotReady::Address { why: why.to_owned() };
        let parts = parts(template).ok_or_else(|| wrong("the url has a { without its }"))?;
        let (scheme, rest) =
            template.split_once("://").ok_or_else(|| wrong("the url has no scheme"))?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if scheme.contains('{') || authority.contains('{') {
            return Err(wrong("an argument cannot name the host"));
        }
        // Any filling shows what holds for all; this one is found again in the path.
        let mark = mark(template);
        let sample: String = parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => text.as_str(),
                Part::Argument { .. } => &mark,
            })
            .collect();
        let url =
            Url::parse(&sample).map_err(|error| wrong(&format!("the url is none: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(wrong("the url is neither http:// nor https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("the url holds a user name or password; a header is their place"));
        }
        let path: Vec<String> = url.path().split(&mark).map(str::to_owned).collect();
        let in_path =
            parts.iter().filter(|part| matches!(part, Part::Argument { in_path: true, .. }));
        if path.len() != in_path.count() + 1 {
            return Err(wrong("a .. of the url takes an argument away"));
        }
        Ok(Self { parts, host: host_of(&url), path })
    }

    /// Its host, with its port where it is not the scheme's own.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// The address with these arguments in their places.
    ///
    /// # Errors
    /// What is wrong with an argument.
    pub(super) fn fill(&self, args: &Map<String, Value>) -> Result<Url, String> {
        let mut text = String::new();
        let mut pieces = self.path.iter();
        let mut path = pieces.next().cloned().unwrap_or_default();
        for part in &self.parts {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Argument { name, in_path } => {
                    let shown = visible_within(name, NAME_CHARS);
                    let value = match args.get(name) {
                        None => return Err(format!("the url needs the argument {shown}")),
                        Some(Value::String(value)) => value.clone(),
                        Some(Value::Number(value)) => value.to_string(),
                        Some(Value::Bool(value)) => value.to_string(),
                        Some(Value::Null | Value::Array(_) | Value::Object(_)) => {
                            return Err(format!("the argument {shown} is no text, number or bool"));
                        }
                    };
                    let value = encoded(&value);
                    if *in_path {
                        if matches!(value.as_str(), "" | "." | "..") {
                            return Err(format!(
                                "the argument {shown} would change the url's path"
                            ));
                        }
                        path.push_str(&value);
                        path.push_str(pieces.next().map_or("", String::as_str));
                    }
                    text.push_str(&value);
                }
            }
        }
        let url = Url::parse(&text).map_err(|error| format!("the url is none: {error}"))?;
        // Arguments may still have made a `.` or `..` with what stands beside them.
        if host_of(&url) != self.host || url.path() != path {
            return Err("the arguments would change the url's path".to_owned());
        }
        Ok(url)
    }
}

/// A text that no part of the template has, and whose end is not its beginning, so that it is found
/// where it was put and nowhere else.
fn mark(template: &str) -> String {
    let mut mark = "a0z".to_owned();
    while template.contains(&mark) {
        mark.insert(1, '0');
    }
    mark
}

fn parts(template: &str) -> Option<Vec<Part>> {
    let (mut parts, mut rest, mut in_path) = (Vec::new(), template, true);
    while let Some((text, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        in_path = in_path && !text.contains(['?', '#']);
        parts.push(Part::Text(text.to_owned()));
        parts.push(Part::Argument { name: name.to_owned(), in_path });
        rest = after;
    }
    parts.push(Part::Text(rest.to_owned()));
    Some(parts)
}

/// Percent-encodes all but what means nothing in any part of an address.
fn encoded(value: &str) -> String {
    let mut into = String::new();
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                into.push(char::from(byte));
            }
            _ => into.push_str(&format!("%{byte:02X}")),
        }
    }
    into
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fill(template: &str, args: Value) -> Result<String, String> {
        let Value::Object(args) = args else { panic!("a table") };
        Address::read(template).expect(template).fill(&args).map(String::from)
    }

    #[test]
    fn an_argument_fills_its_place_and_nothing_else() {
        let template = "https://a.example/v1/{sku}/stock?region={region}";
        for (sku, region, url) in [
            (json!("x-1"), json!("EU"), "https://a.example/v1/x-1/stock?region=EU"),
            (json!(7), json!(true), "https://a.example/v1/7/stock?region=true"),
            (
                json!("../../admin?x=1#y"),
                json!("a&b=c +ü"),
                "https://a.example/v1/..%2F..%2Fadmin%3Fx%3D1%23y/stock?region=a%26b%3Dc%20%2B%C3%BC",
            ),
            (
                json!("{region}"),
                json!("%2e"),
                "https://a.example/v1/%7Bregion%7D/stock?region=%252e",
            ),
        ] {
            let filled = fill(template, json!({ "sku": sku, "region": region }));
            assert_eq!(filled.as_deref(), Ok(url));
        }
    }

    #[test]
    fn an_argument_that_does_not_fit_is_told() {
        let template = "https://a.example/v1/{a}{b}/x";
        for (args, says) in [
            (json!({ "a": "1" }), "the url needs the argument b"),
            (json!({ "a": [1], "b": 1 }), "the argument a is no text, number or bool"),
            (json!({ "a": null, "b": 1 }), "the argument a is no text, number or bool"),
            (json!({ "a": "..", "b": 1 }), "the argument a would change the url's path"),
            (json!({ "a": "", "b": 1 }), "the argument a would change the url's path"),
        ] {
            assert_eq!(fill(template, args), Err(says.to_owned()));
        }
    }

    #[test]
    fn arguments_that_meet_make_no_way_up() {
        let side_by_side = "https://a.example/{a}{b}";
        for (template, args) in [
            (side_by_side, json!({ "a": ".", "b": "." })),
            ("https://a.example/v1/{a}{b}", json!({ "a": ".", "b": "." })),
            ("https://a.example/v1/{a}{b}/x", json!({ "a": ".", "b": "." })),
            ("https://a.example/%2{a}", json!({ "a": "e" })),
            ("https://a.example/%2{a}%2{b}/x", json!({ "a": "e", "b": "E" })),
        ] {
            assert!(fill(template, args).is_err(), "{template}");
        }
        for (a, b, url) in [
            ("-", "-", "https://a.example/--"),
            ("...", "-", "https://a.example/...-"),
            ("%2e", "%2e", "https://a.example/%252e%252e"),
        ] {
            assert_eq!(fill(side_by_side, json!({ "a": a, "b": b })).as_deref(), Ok(url));
        }
    }

    #[test]
    fn what_the_query_is_given_cannot_change_the_path() {
        let template = "https://a.example/{sku}?q={q}&r={r}";
        for (q, r, url) in [
            ("", ".", "https://a.example/1?q=&r=."),
            ("..", "../x", "https://a.example/1?q=..&r=..%2Fx"),
        ] {
            assert_eq!(fill(template, json!({ "sku": 1, "q": q, "r": r })).as_deref(), Ok(url));
        }
    }

    #[test]
    fn the_path_of_the_template_itself_may_be_written_loosely() {
        for (template, url) in [
            ("https://a.example/größe a0z/{x}", "https://a.example/gr%C3%B6%C3%9Fe%20a0z/7"),
            ("https://a.example/v1/../v2/./{x}", "https://a.example/v2/7"),
            ("https://a.example?x={x}", "https://a.example/?x=7"),
        ] {
            assert_eq!(fill(template, json!({ "x": 7 })).as_deref(), Ok(url));
        }
    }

    #[test]
    fn a_template_that_is_no_address_is_told() {
        for (template, why) in [
            ("a.example/v1", "the url has no scheme"),
            ("https://a.example/{x", "the url has a { without its }"),
            ("https://{host}/v1", "an argument cannot name the host"),
            ("{scheme}://a.example", "an argument cannot name the host"),
            ("https://a.example:{port}/", "an argument cannot name the host"),
            ("https://a.example/v1/{x}/../v2", "a .. of the url takes an argument away"),
            ("ftp://a.example/", "the url is neither http:// nor https://"),
            (
                "https://u:p@a.example/",
                "the url holds a user name or password; a header is their place",
            ),
        ] {
            let told = Address::read(template).expect_err(template);
            assert_eq!(told, NotReady::Address { why: why.to_owned() }, "{template}");
        }
    }
}
