//! The lines that a program prints, as a terminal shows them: without colours, and without what was overwritten.

use vte::{Params, Parser, Perform};

/// Longest line, in bytes; a longer one is several.
const MAX_LINE: usize = 32 << 10;

/// Most lines that may still be overwritten.
const MAX_HELD: usize = 64;

/// Assembles the lines of one output from its bytes.
#[derive(Default)]
pub(super) struct PrintedLines {
    parser: Parser,
    page: Page,
}

#[derive(Default)]
struct Page {
    line: String,
    /// Whether the cursor is at the start of the line: the next character overwrites it.
    at_start: bool,
    /// Whether the line was overwritten.
    is_redrawn: bool,
    /// Whether the program has moved the cursor up: it redraws lines.
    moves_up: bool,
    /// The last lines of a program that redraws them.
    held: Vec<String>,
    complete: Vec<String>,
}

impl PrintedLines {
    /// Adds bytes; returns the lines that are complete, without empty ones.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Vec<String> {
        self.parser.advance(&mut self.page, bytes);
        self.page.take()
    }

    /// Whether a pause in the output completes something: a prompt that waits for input, or redrawn lines.
    pub(super) fn is_waiting(&self) -> bool {
        !self.page.held.is_empty() || self.page.is_prompt()
    }

    /// The lines that a pause in the output completes.
    pub(super) fn pause(&mut self) -> Vec<String> {
        let page = &mut self.page;
        page.complete.append(&mut page.held);
        if page.is_prompt() {
            page.end_line();
            page.complete.append(&mut page.held);
        }
        page.take()
    }

    /// The lines that the end of the output completes.
    pub(super) fn end(mut self) -> Vec<String> {
        self.page.end_line();
        self.page.complete.append(&mut self.page.held);
        self.page.take()
    }
}

impl Page {
    /// Whether the line looks like a prompt (`Publish? `, `> `), and not like a progress bar.
    fn is_prompt(&self) -> bool {
        let last = self.line.trim_end().chars().next_back();
        !self.is_redrawn && last.is_some_and(|last| "?:>])$#%".contains(last))
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        (self.at_start, self.is_redrawn) = (false, false);
        match self.moves_up {
            true => self.held.push(line),
            false => self.complete.push(line),
        }
        if self.held.len() > MAX_HELD {
            self.complete.push(self.held.remove(0));
        }
    }

    fn take(&mut self) -> Vec<String> {
        let lines = self.complete.drain(..).filter_map(|mut line| {
            line.truncate(line.trim_end().len());
            (!line.is_empty()).then_some(line)
        });
        lines.collect()
    }

    fn erase(&mut self) {
        self.line.clear();
        self.is_redrawn = true;
    }
}

impl Perform for Page {
    fn print(&mut self, c: char) {
        if std::mem::take(&mut self.at_start) {
            self.erase();
        }
        self.line.push(c);
        if self.line.len() >= MAX_LINE {
            self.end_line();
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' => self.end_line(),
            b'\r' => self.at_start = true,
            b'\x08' => drop(self.line.pop()),
            b'\x07' => {}
            byte => self.print(byte.into()),
        }
    }

    /// `A`, `F`: up; `G`: to a column; `K`, `J`: erase.
    fn csi_dispatch(&mut self, params: &Params, _: &[u8], _: bool, action: char) {
        let first = params.iter().next().and_then(|values| values.first().copied()).unwrap_or(0);
        match (action, first) {
            ('A' | 'F', count) => {
                self.moves_up = true;
                let stay = self.held.len().saturating_sub(usize::from(count.max(1)));
                self.held.truncate(stay);
                self.erase();
            }
            ('G', 0 | 1) => self.at_start = true,
            ('K', 2) => self.erase(),
            ('K' | 'J', 0) if self.at_start => self.erase(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a pipe or a terminal shows of an output in pieces; `|` is a pause.
    #[test]
    fn lines_are_those_on_the_screen() {
        for (output, lines) in [
            ("one\ntwo\r\n\n  three  \nfour", vec!["one", "two", "  three", "four"]),
            (
                "\x1b[1;31mfailed\x1b[0m: \x1b]8;;http://a.example\x1b\\here\x1b]8;;\x1b\\\n",
                vec!["failed: here"],
            ),
            // A prompt, and what was typed.
            ("Publish? |yes\n", vec!["Publish?", "yes"]),
            ("half a li|ne\n", vec!["half a line"]),
            // A bar is one line, though it ends like a prompt.
            ("\r 10% [#  ]|\r 20% [## ]|\r100% [###]\n", vec!["100% [###]"]),
            ("working\x08\x08\x08ed\n", vec!["worked"]),
            ("\x1b[2K\rone\x1b[2K\rtwo\n", vec!["two"]),
            // Redrawn lines are shown once the program pauses.
            (
                "a 1\nb 1\n\x1b[2Aa 2\nb 2\n\x1b[2A\x1b[2Ka 3\nb 3\n|end\n",
                vec!["a 1", "b 1", "a 3", "b 3", "end"],
            ),
            ("tabs\tstay, \x00 too\n", vec!["tabs\tstay, \0 too"]),
            ("\x1b[31", vec![]),
        ] {
            for size in [1, 3, usize::MAX] {
                let (mut printed, mut found) = (PrintedLines::default(), Vec::new());
                for part in output.split_inclusive('|') {
                    let (text, pauses) =
                        part.strip_suffix('|').map_or((part, false), |it| (it, true));
                    for bytes in text.as_bytes().chunks(size) {
                        found.extend(printed.add(bytes));
                    }
                    if pauses && printed.is_waiting() {
                        found.extend(printed.pause());
                    }
                }
                found.extend(printed.end());
                assert_eq!(found, lines, "{output:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn endless_lines_are_cut() {
        let mut printed = PrintedLines::default();
        let found = printed.add("ä".repeat(MAX_LINE).as_bytes());
        assert_eq!(found.iter().map(String::len).collect::<Vec<_>>(), [MAX_LINE, MAX_LINE]);
        printed.add(b"\n\x1b[A");
        assert_eq!(printed.add("row\n".repeat(MAX_HELD + 3).as_bytes()), ["row"; 3]);
    }
}
