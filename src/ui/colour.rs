//! The parts of colours.

use ratatui::style::Color;

/// The first 16 colours of xterm.
const NAMED: [(u8, u8, u8); 16] = [
    (0, 0, 0),
    (205, 0, 0),
    (0, 205, 0),
    (205, 205, 0),
    (0, 0, 238),
    (205, 0, 205),
    (0, 205, 205),
    (229, 229, 229),
    (127, 127, 127),
    (255, 0, 0),
    (0, 255, 0),
    (255, 255, 0),
    (92, 92, 255),
    (255, 0, 255),
    (0, 255, 255),
    (255, 255, 255),
];

/// The parts of a colour, those with a name or a number as xterm has them.
pub(super) fn rgb(colour: Color) -> Option<(u8, u8, u8)> {
    let nth = match colour {
        Color::Reset => return None,
        Color::Rgb(red, green, blue) => return Some((red, green, blue)),
        Color::Indexed(nth) => nth,
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 8,
        Color::LightRed => 9,
        Color::LightGreen => 10,
        Color::LightYellow => 11,
        Color::LightBlue => 12,
        Color::LightMagenta => 13,
        Color::LightCyan => 14,
        Color::White => 15,
    };
    Some(match nth {
        0..16 => NAMED[usize::from(nth)],
        16..232 => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let cube = nth - 16;
            (level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        232.. => {
            let shade = 8 + 10 * (nth - 232);
            (shade, shade, shade)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_with_numbers_are_those_of_xterm() {
        for (colour, parts) in [
            (Color::Indexed(16), (0, 0, 0)),
            (Color::Indexed(74), (0x5f, 0xaf, 0xd7)),
            (Color::Indexed(231), (255, 255, 255)),
            (Color::Indexed(244), (128, 128, 128)),
            (Color::LightBlue, (92, 92, 255)),
        ] {
            assert_eq!(rgb(colour), Some(parts));
        }
        assert_eq!(rgb(Color::Reset), None);
    }
}
