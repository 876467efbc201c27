//! Server-sent events, as the HTML standard has them ("parsing an event stream").
//!
//! Our own, because what there is either has no bound on a line or event, or loses what stands at
//! the end of a stream without an empty line after it; both matter here. It is fed bytes as they
//! come, split wherever the network likes, and gives the same events for every split.

use std::str::Utf8Error;

use super::error::size;

/// A stream that cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// A line, or the data of one event, is longer than its cap.
    #[error("an event of the stream is larger than its cap of {}", size(*.cap))]
    TooLarge {
        /// In bytes.
        cap: usize,
    },
    /// The data of an event is no UTF-8.
    #[error("an event of the stream is not UTF-8: {0}")]
    NotUtf8(#[from] Utf8Error),
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'p> {
    /// Its type; empty where the stream named none (the standard then says `message`).
    pub name: &'p str,
    /// Its data; lines joined by `\n`.
    pub data: &'p str,
}

/// The parser of one stream. `id` and `retry` are for clients that connect again, which none of
/// ours does, so they are left out as unknown fields are.
#[derive(Debug)]
pub struct SseParser {
    /// A line that has begun in an earlier piece.
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    /// The data is an event's, even where it is empty.
    has_data: bool,
    /// What stands in `name` and `data` has been given out.
    given: bool,
    /// The last line ended with a CR: a LF that follows is part of that end.
    after_cr: bool,
    /// No line has ended yet, so a byte order mark may stand before it.
    first: bool,
    cap: usize,
}

impl SseParser {
    /// A parser that holds at most `cap` bytes of a line, and of an event's data.
    pub fn new(cap: usize) -> Self {
        Self {
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            given: false,
            after_cr: false,
            first: true,
            cap,
        }
    }

    /// The next event that ends in `input`, of which it takes what it has read. `None`: all is
    /// read, and more is needed.
    ///
    /// # Errors
    /// The stream cannot be read on; what `input` then holds means nothing.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<SseEvent<'_>>, SseError> {
        self.forget_given();
        loop {
            if self.after_cr && !input.is_empty() {
                self.after_cr = false;
                *input = input.strip_prefix(b"\n").unwrap_or(input);
            }
            let bytes: &[u8] = input;
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.keep(bytes)?;
                *input = &[];
                return Ok(None);
            };
            let (line, rest) = bytes.split_at(end);
            self.after_cr = rest.first() == Some(&b'\r');
            *input = rest.get(1..).unwrap_or_default();
            let ended = if self.line.is_empty() {
                self.take_line(line)?
            } else {
                self.keep(line)?;
                let mut whole = std::mem::take(&mut self.line);
                let ended = self.take_line(&whole)?;
                whole.clear();
                self.line = whole;
                ended
            };
            if ended {
                return self.give().map(Some);
            }
        }
    }

    /// The event that stands at the end of a stream without an empty line after it, be its last
    /// line whole or not. The standard throws it away; whoever reads the stream can tell.
    ///
    /// # Errors
    /// As [`SseParser::next`].
    pub fn finish(&mut self) -> Result<Option<SseEvent<'_>>, SseError> {
        self.forget_given();
        let line = std::mem::take(&mut self.line);
        self.take_line(&line)?;
        if self.has_data { self.give().map(Some) } else { Ok(None) }
    }

    fn forget_given(&mut self) {
        if std::mem::take(&mut self.given) {
            self.name.clear();
            self.data.clear();
            self.has_data = false;
        }
    }

    fn give(&mut self) -> Result<SseEvent<'_>, SseError> {
        self.given = true;
        Ok(SseEvent {
            // A type that is no UTF-8 is one that nobody knows.
            name: std::str::from_utf8(&self.name).unwrap_or("?"),
            data: std::str::from_utf8(&self.data)?,
        })
    }

    fn keep(&mut self, part: &[u8]) -> Result<(), SseError> {
        self.within(self.line.len() + part.len())?;
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn within(&self, length: usize) -> Result<(), SseError> {
        if length > self.cap { Err(SseError::TooLarge { cap: self.cap }) } else { Ok(()) }
    }

    /// Takes a line without its end; whether it ended an event.
    fn take_line(&mut self, mut line: &[u8]) -> Result<bool, SseError> {
        self.within(line.len())?;
        if std::mem::take(&mut self.first) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            if !self.has_data {
                // A type without data is no event, and does not stay for the next one.
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
                self.within(self.data.len() + 1 + value.len())?;
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
            // A comment (nothing before the colon), `id`, `retry`, and what nobody knows.
            _ => {}
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Event = (String, String);

    /// The events of a stream that comes in these pieces, and what stands at its end.
    fn events<'a>(
        pieces: impl IntoIterator<Item = &'a [u8]>,
        cap: usize,
    ) -> Result<(Vec<Event>, Option<Event>), SseError> {
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
    fn every_line_end_and_a_byte_order_mark() {
        for end in ["\n", "\r", "\r\n"] {
            assert_eq!(data(&format!("\u{feff}data: a{end}{end}data: b{end}{end}")), ["a", "b"]);
        }
        assert_eq!(data("\u{feff}\u{feff}data: a\n\ndata: b\n\n"), ["b"], "only one mark is one");
    }

    #[test]
    fn a_type_belongs_to_its_event_alone() {
        let (named, last) = events(
            [&b"event: error\ndata: 1\n\nevent: lost\n\ndata: 2\n\nevent: open\ndata: 3"[..]],
            64,
        )
        .expect("readable");
        assert_eq!(named, [("error".into(), "1".into()), ("".into(), "2".into())]);
        assert_eq!(last, Some(("open".into(), "3".into())));
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
    fn data_that_is_no_text_is_refused() {
        let bad = events([&b"data: \xff\n\n"[..]], 64);
        assert!(matches!(bad, Err(SseError::NotUtf8(_))), "{bad:?}");
        let elsewhere = events([&b"event: \xff\ndata: a\n\n: \xff\n"[..]], 64);
        assert_eq!(elsewhere, Ok((vec![("?".into(), "a".into())], None)));
    }

    /// What the standard says, on the whole text at once.
    fn by_the_standard(text: &str) -> Vec<Event> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        // What stands behind the last line end is no line.
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
