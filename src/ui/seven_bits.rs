//! The last pass of `--ascii`: text of models, tools and files is written in seven bits, too.

use ratatui::buffer::Buffer;

/// Replaces what is not ASCII in each cell. Glyphs have their own twins; this is for texts.
pub(super) fn apply(buf: &mut Buffer) {
    for cell in &mut buf.content {
        if cell.symbol().is_ascii() {
            continue;
        }
        let twin = twin(cell.symbol());
        cell.set_symbol(twin);
    }
}

/// A text in seven bits.
pub(crate) fn text(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            ' '..='~' => c,
            _ => twin(c.encode_utf8(&mut [0; 4])).chars().next().unwrap_or('?'),
        })
        .collect()
}

/// The character that is closest.
fn twin(symbol: &str) -> &'static str {
    match symbol {
        "‘" | "’" | "‚" | "′" => "'",
        "“" | "”" | "„" | "″" => "\"",
        "‐" | "‑" | "‒" | "–" | "—" | "−" => "-",
        "…" => ".",
        "•" | "·" => "*",
        "×" => "x",
        "\u{a0}" | "\u{202f}" | "\u{2009}" => " ",
        _ => "?",
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;

    #[test]
    fn every_cell_is_seven_bits() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 24, 1));
        buf.set_string(0, 0, "“it’s – 日本” größe ␛[m…", Style::default());
        apply(&mut buf);
        let row: String = buf.content().iter().map(|cell| cell.symbol()).collect();
        assert!(row.is_ascii(), "{row}");
        assert!(row.starts_with("\"it's - ? ? \" gr??e ?[m."), "{row}");
    }
}
