//! An error in few words, for a row that has no room for its whole text.

/// The first sentence of an error, without its period.
pub fn first_sentence(text: &str) -> &str {
    let end = [". ", "? ", "\n"].into_iter().filter_map(|end| text.find(end)).min();
    text[..end.unwrap_or(text.len())].trim_end_matches('.')
}

/// The first sentence of an error. Of a connection that failed, the cause comes before the host:
/// `connection refused, 127.0.0.1:7878`.
pub fn short_error(text: &str) -> String {
    let text = first_sentence(text);
    let connection = text.strip_prefix("no connection to ").and_then(|it| it.split_once(": "));
    let Some((host, why)) = connection else { return text.to_owned() };
    let mut letters = why.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    let why: String = first.into_iter().chain(letters).collect();
    format!("{why}, {host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_of_a_failed_connection_comes_first() {
        for (text, short) in [
            (
                "no connection to 127.0.0.1:7878: Connection refused. Is the server running? Check it.",
                "connection refused, 127.0.0.1:7878",
            ),
            (
                "no reply from a.example within 3.0 s, the timeout of one attempt (timeout_s).",
                "no reply from a.example within 3.0 s, the timeout of one attempt (timeout_s)",
            ),
            ("HTTP 503", "HTTP 503"),
            ("", ""),
        ] {
            assert_eq!(short_error(text), short);
        }
    }
}
