//! Parser of server-sent events (HTML standard, "parsing an event stream").
//!
//! Written here because existing crates either have no limit for a line or event, or lose an event
//! at the end of a stream that has no empty line after it; both matter here. The parser receives
//! bytes in any split and returns the same events for every split.

use std::str::Utf8Error;

use super::error::size;

/// Error that ends a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// A line, or the data of one event, is longer than the limit.
    #[error("an event of the stream is larger than its cap of {}", size(*.cap))]
    TooLarge {
        /// Limit in bytes.
        cap: usize,
    },
    /// The data of an event is not UTF-8.
    #[error("an event of the stream is not UTF-8: {0}")]
    NotUtf8(#[from] Utf8Error),
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'p> {
    /// Event type; empty if the stream has none (`message` in the standard).
    pub name: &'p str,
    /// Data lines, joined by `\n`.
    pub data: &'p str,
}

/// What a stream says to a client that reconnects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseResume {
    /// The last `id`.
    pub id: Option<String>,
    /// The last `retry`, in milliseconds.
    pub retry_ms: Option<u64>,
}

/// Parser of one stream.
#[derive(Debug)]
pub struct SseParser {
    /// Start of a line, from earlier pieces.
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    /// Whether the current event has data, which may be empty.
    has_data: bool,
    /// Whether `name` and `data` belong to an event that was returned already.
    returned: bool,
    /// Whether the last line ended with CR: a following LF belongs to that line end.
    after_cr: bool,
    /// Whether no line has ended yet: a byte order mark may come first.
    first: bool,
    resume: SseResume,
    cap: usize,
}

impl SseParser {
    /// A parser that buffers at most `cap` bytes of a line, and of an event's data.
    pub fn new(cap: usize) -> Self {
        Self {
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            returned: false,
            after_cr: false,
            first: true,
            resume: SseResume::default(),
            cap,
        }
    }

    /// The next event that ends in `input`; consumes the bytes that were read. `None`: `input` is
    /// empty, and more is needed.
    ///
    /// # Errors
    /// The stream is invalid; the content of `input` is then undefined.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<SseEvent<'_>>, SseError> {
        self.clear_returned();
        loop {
            if self.after_cr && !input.is_empty() {
                self.after_cr = false;
                *input = input.strip_prefix(b"\n").unwrap_or(input);
            }
            let bytes: &[u8] = input;
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.buffer_line(bytes)?;
                *input = &[];
                return Ok(None);
            };
            let (line, rest) = bytes.split_at(end);
            self.after_cr = rest.first() == Some(&b'\r');
            *input = rest.get(1..).unwrap_or_default();
            let ended = if self.line.is_empty() {
                self.process_line(line)?
            } else {
                self.buffer_line(line)?;
                let mut whole = std::mem::take(&mut self.line);
                let ended = self.process_line(&whole)?;
                whole.clear();
                self.line = whole;
                ended
            };
            if ended {
                return self.current_event().map(Some);
            }
        }
    }

    /// The event at the end of a stream without an empty line after it, its last line complete or
    /// not. The standard discards it; the caller may decide.
    ///
    /// # Errors
    /// Same as [`SseParser::next`].
    pub fn finish(&mut self) -> Result<Option<SseEvent<'_>>, SseError> {
        self.clear_returned();
        let line = std::mem::take(&mut self.line);
        self.process_line(&line)?;
        if self.has_data { self.current_event().map(Some) } else { Ok(None) }
    }

    /// What the stream has said so far to a client that reconnects.
    pub fn resume(&self) -> &SseResume {
        &self.resume
    }

    fn clear_returned(&mut self) {
        if std::mem::take(&mut self.returned) {
            self.name.clear();
            self.data.clear();
            self.has_data = false;
        }
    }

    fn current_event(&mut self) -> Result<SseEvent<'_>, SseError> {
        self.returned = true;
        Ok(SseEvent {
            // An event type that is not UTF-8 is unknown to every caller.
            name: std::str::from_utf8(&self.name).unwrap_or("?"),
            data: std::str::from_utf8(&self.data)?,
        })
    }

    fn buffer_line(&mut self, part: &[u8]) -> Result<(), SseError> {
        self.check_size(self.line.len() + part.len())?;
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn check_size(&self, length: usize) -> Result<(), SseError> {
        if length > self.cap { Err(SseError::TooLarge { cap: self.cap }) } else { Ok(()) }
    }

    /// Processes a line without its line end; returns whether it ended an event.
    fn process_line(&mut self, mut line: &[u8]) -> Result<bool, SseError> {
        self.check_size(line.len())?;
        if std::mem::take(&mut self.first) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            if !self.has_data {
                // A type without data is not an event, and does not apply to the next one.
                self.name.clear();
            }
            return Ok(self.has_data);
        }
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                self.check_size(self.data.len() + 1 + value.len())?;
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            // The standard ignores an id with a null character.
            b"id" if !value.contains(&0) => {
                self.resume.id = std::str::from_utf8(value).ok().map(str::to_owned);
            }
            b"retry" => {
                let digits = value.iter().all(u8::is_ascii_digit);
                let ms = std::str::from_utf8(value).ok().filter(|_| digits);
                self.resume.retry_ms = ms.and_then(|ms| ms.parse().ok()).or(self.resume.retry_ms);
            }
            // Comments (nothing before the colon) and unknown fields are ignored; `id` and `retry` too
            // where nobody reconnects.
            _ => {}
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type NamedEvent = (String, String);

    /// The events of a stream that arrives in these pieces, and the one at its end.
    fn events<'a>(
        pieces: impl IntoIterator<Item = &'a [u8]>,
        cap: usize,
    ) -> Result<(Vec<NamedEvent>, Option<NamedEvent>), SseError> {
        let own = |event: SseEvent<'_>| (event.name.to_owned(), event.data.to_owned());
        let mut parser = SseParser::new(cap);
        let mut events = Vec::new();
        for piece in pieces {
            let mut rest = piece;
            while let Some(event) = parser.next(&mut rest)? {
                events.push(own(event));
            }
            assert!(rest.is_empty());
        }
        let last = parser.finish()?.map(own);
        Ok((events, last))
    }

    fn data(stream: &str) -> Vec<String> {
        let (events, _) = events([stream.as_bytes()], 1 << 20).expect("a stream that can be read");
        events.into_iter().map(|(_, data)| data).collect()
    }

    #[test]
    fn the_examples_of_the_standard() {
        assert_eq!(
            data("data: YHOO\ndata: +2\ndata: 10\n\n"),
            ["YHOO\n+2\n10"],
            "data over several lines"
        );
        assert_eq!(
            data(
                ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"
            ),
            ["first event", "second event", " third event"],
            "a comment, ids, one blank after the colon"
        );
        assert_eq!(data("data\n\ndata\ndata\n\ndata:"), ["", "\n"], "a bare field, an open end");
        assert_eq!(data("data:test\n\ndata: test\n\n"), ["test", "test"]);
    }

    #[test]
    fn accepts_every_line_end_and_bom() {
        for end in ["\n", "\r", "\r\n"] {
            assert_eq!(data(&format!("\u{feff}data: a{end}{end}data: b{end}{end}")), ["a", "b"]);
        }
        assert_eq!(data("\u{feff}\u{feff}data: a\n\ndata: b\n\n"), ["b"], "only one mark is one");
    }

    #[test]
    fn event_type_ends_with_its_event() {
        let (named, last) = events(
            [&b"event: error\ndata: 1\n\nevent: lost\n\ndata: 2\n\nevent: open\ndata: 3"[..]],
            64,
        )
        .expect("readable");
        assert_eq!(named, [("error".into(), "1".into()), ("".into(), "2".into())]);
        assert_eq!(last, Some(("open".into(), "3".into())));
    }

    #[test]
    fn id_and_retry_are_kept() {
        let mut parser = SseParser::new(64);
        let mut rest = &b"id: 7\ndata: a\n\nid: a\0b\nretry: 1x\nretry: 250\n\n"[..];
        assert!(parser.next(&mut rest).expect("readable").is_some());
        assert_eq!(parser.resume(), &SseResume { id: Some("7".into()), retry_ms: None });
        assert_eq!(parser.next(&mut rest), Ok(None));
        assert_eq!(parser.resume(), &SseResume { id: Some("7".into()), retry_ms: Some(250) });
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let too_large = Err(SseError::TooLarge { cap: 16 });
        let line = b"data: 0123456789012345";
        assert_eq!(events([&line[..]], 16), too_large, "a line without an end");
        assert_eq!(events([&line[..10], &line[10..]], 16), too_large, "in two pieces");
        assert_eq!(events([&b": 0123456789012345\n"[..]], 16), too_large, "a comment");
        assert_eq!(
            events([b"data: 0123456789\n".as_slice(); 2], 16),
            too_large,
            "data of two lines"
        );
        assert!(events([&b"data: 012345678\n\n"[..]], 16).is_ok());
    }

    #[test]
    fn refuses_data_that_is_not_text() {
        let bad = events([&b"data: \xff\n\n"[..]], 64);
        assert!(matches!(bad, Err(SseError::NotUtf8(_))), "{bad:?}");
        let elsewhere = events([&b"event: \xff\ndata: a\n\n: \xff\n"[..]], 64);
        assert_eq!(elsewhere, Ok((vec![("?".into(), "a".into())], None)));
    }

    /// Reference implementation of the standard, on the whole text.
    fn by_the_standard(text: &str) -> Vec<NamedEvent> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        // Text after the last line end is not a line.
        let Some((lines, _)) = text.rsplit_once('\n') else { return Vec::new() };
        let (mut events, mut name, mut data) = (Vec::new(), String::new(), String::new());
        for line in lines.split('\n') {
            if line.is_empty() {
                if let Some(data) = data.strip_suffix('\n') {
                    events.push((name.clone(), data.to_owned()));
                }
                (name, data) = (String::new(), String::new());
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => name = value.to_owned(),
                "data" => data.push_str(&format!("{value}\n")),
                _ => {}
            }
        }
        events
    }

    fn stream() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            4 => prop::sample::select(vec!["\n", "\r", "\r\n", "\n\n", "\r\n\r\n"]),
            4 => prop::sample::select(vec!["data: ", "data:", "data", "event: ", "id: 7", ":", " "]),
            2 => prop::sample::select(vec!["{\"a\":1}", "grün", "終", "👍🏽", "[DONE]", "\u{feff}"]),
        ];
        prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn it_reads_what_the_standard_says(text in stream()) {
            let (events, _) = events([text.as_bytes()], 1 << 20).expect("readable");
            prop_assert_eq!(events, by_the_standard(&text));
        }

        #[test]
        fn every_split_gives_the_same_events(
            text in stream(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let bytes = text.as_bytes();
            let whole = events([bytes], 1 << 20);
            for at in 0..=bytes.len() {
                let (a, b) = bytes.split_at(at);
                prop_assert_eq!(&events([a, b], 1 << 20), &whole, "cut at {}", at);
            }
            prop_assert_eq!(&events(bytes.chunks(1), 1 << 20), &whole, "byte by byte");
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            prop_assert_eq!(&events(pieces, 1 << 20), &whole, "cut at {:?}", cuts);
        }
    }
}
