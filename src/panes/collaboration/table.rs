//! The positions of the seats around the table. Pure geometry, so that a click finds its seat.

use ratatui::layout::Rect;

use crate::app::layout::hits;

/// Most seats around a table; more of them are shown in a list.
const MOST: usize = 8;
/// Narrowest frame of a card.
const CARD: u16 = 16;
/// Widest frame of a card.
const CARD_MOST: u16 = 72;
/// Highest frame of a card.
const CARD_HIGH: u16 = 7;
/// Lowest and highest frame of the table.
const TABLE_HIGH: std::ops::Range<u16> = 5..11;
/// Fewest rows of a table with its seats; with fewer, a list has more room for what the seats say.
const TABLE_ROWS: u16 = 15;
/// Most rows of a seat in a list.
const SEAT_ROWS: u16 = 5;
/// Narrowest frame of the table.
const TABLE: u16 = 26;
/// Header rows above the list of seats.
pub const LIST_HEAD: u16 = 1;

/// The frames of the table and its seats. A card at its side shares a line with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundTable {
    /// The frame of the table.
    pub table: Rect,
    /// The frames of the seats in the order of the sequence: clockwise from the top left. A seat that is
    /// off has a part of the last row and no frame.
    pub cards: Vec<Rect>,
}

/// Number of seats above, to the right, below and to the left.
fn sides(seats: usize) -> Option<[u16; 4]> {
    Some(match seats {
        1 => [1, 0, 0, 0],
        2 => [0, 1, 0, 1],
        3 => [1, 1, 0, 1],
        4 => [1, 1, 1, 1],
        5 => [2, 1, 1, 1],
        6 => [2, 1, 2, 1],
        7 => [3, 1, 2, 1],
        MOST => [3, 1, 3, 1],
        _ => return None,
    })
}

impl RoundTable {
    /// The layout for these seats, of which some are off; `None` if they have to be shown in a list.
    pub fn for_seats(area: Rect, off: &[bool]) -> Option<RoundTable> {
        if area.height < TABLE_ROWS {
            return None;
        }
        let off_count = off.iter().filter(|is_off| **is_off).count();
        let off_row = u16::from(off_count > 0);
        let around = Rect { height: area.height - off_row, ..area };
        let RoundTable { table, cards } = Self::around_table(around, off.len() - off_count)?;
        let last = Rect { y: area.bottom() - off_row, height: off_row, ..area };
        let mut off_cards = parts_of_row(last, off_count as u16).into_iter();
        let mut cards = cards.into_iter();
        let card = |is_off: &bool| if *is_off { off_cards.next() } else { cards.next() };
        Some(RoundTable { table, cards: off.iter().filter_map(card).collect() })
    }

    /// The layout for seats of which none is off.
    fn around_table(area: Rect, seats: usize) -> Option<RoundTable> {
        let [above, right, below, left] = sides(seats)?;
        let table = (area.width / 3).clamp(TABLE, 44);
        // A card at a side shares a line with the table.
        let beside = ((area.width + 2).checked_sub(table)? / 2).min(CARD_MOST);
        if beside < CARD {
            return None;
        }
        let outer = u16::from(above > 0) + u16::from(below > 0);
        let outer_width = card_width(area, above.max(below));
        let mut spare = area.height.checked_sub(TABLE_HIGH.start + 3 * outer)?;
        let (mut card_h, mut table_h) = (3, TABLE_HIGH.start);
        // Rows go to the seats with the least room for what they say.
        loop {
            let in_card = (card_h - 3) * (outer_width.saturating_sub(4));
            let in_side = (table_h - 3) * (beside - 4);
            let outer_grows = outer > 0 && card_h < CARD_HIGH && spare >= outer;
            let table_grows = table_h < TABLE_HIGH.end && spare > 0;
            if outer_grows && (in_card <= in_side || !table_grows) {
                (card_h, spare) = (card_h + 1, spare - outer);
            } else if table_grows {
                (table_h, spare) = (table_h + 1, spare - 1);
            } else {
                break;
            }
        }
        let gap = u16::from(outer > 0 && spare >= outer);
        spare -= gap * outer;
        let beside_h = if outer == 0 { area.height.min(8) } else { table_h };
        let lead = spare / 2;
        let upper = if above > 0 { card_h + gap } else { 0 };
        let middle = area.x + area.width / 2;
        let table = Rect::new(middle - table / 2, area.y + lead + upper, table, table_h);
        let beside_y = (table.y + table_h / 2).saturating_sub(beside_h / 2).max(area.y);
        let mut cards = row_of(area, above, table.y - upper, card_h);
        if right > 0 {
            cards.push(Rect::new(table.right() - 1, beside_y, beside, beside_h));
        }
        let mut lower = row_of(area, below, table.bottom() + gap, card_h);
        lower.reverse();
        cards.append(&mut lower);
        if left > 0 {
            cards.push(Rect::new(table.x + 1 - beside, beside_y, beside, beside_h));
        }
        if seats == 2 {
            // Two seats read from left to right.
            cards.reverse();
        }
        Some(RoundTable { table, cards })
    }
}

/// Columns between two cards in a row.
fn card_gap(count: u16) -> u16 {
    if count > 2 { 2 } else { 4 }
}

/// Width of each of some cards in a row.
fn card_width(area: Rect, count: u16) -> u16 {
    let count = count.max(1);
    (area.width.saturating_sub(card_gap(count) * (count - 1)) / count).min(CARD_MOST)
}

/// A row in equal parts.
fn parts_of_row(row: Rect, count: u16) -> Vec<Rect> {
    let width = row.width / count.max(1);
    (0..count).map(|nth| Rect { x: row.x + nth * width, width, ..row }).collect()
}

/// Cards in a row, centred in the area.
fn row_of(area: Rect, count: u16, y: u16, height: u16) -> Vec<Rect> {
    if count == 0 {
        return Vec::new();
    }
    let (gap, width) = (card_gap(count), card_width(area, count));
    let all = width * count + gap * (count - 1);
    let start = area.x + (area.width - all) / 2;
    (0..count).map(|nth| Rect::new(start + nth * (width + gap), y, width, height)).collect()
}

/// Rows of each seat in the list of this area: one of a seat that is off, and of the others as many as
/// there are, because what they say wraps.
pub fn seat_rows(area: Rect, off: &[bool]) -> Vec<u16> {
    let rows = area.height.saturating_sub(LIST_HEAD);
    let off_count = off.iter().filter(|is_off| **is_off).count() as u16;
    let seats = (off.len() as u16 - off_count).max(1);
    let rows = rows.saturating_sub(off_count);
    let (each, mut more) = (rows / seats, rows % seats);
    let height = |is_off: &bool| {
        if *is_off || each == 0 {
            return 1;
        }
        let one_more = u16::from(more > 0);
        more -= one_more;
        (each + one_more).min(SEAT_ROWS)
    };
    off.iter().map(height).collect()
}

/// Seats in view in the list of this area.
pub fn seats_in_list(area: Rect, off: &[bool]) -> u16 {
    let rows: u16 = seat_rows(area, off).iter().sum();
    let room = area.height.saturating_sub(LIST_HEAD);
    // Where they do not all fit, each has one row.
    if rows > room { room } else { off.len() as u16 }
}

/// The seat at this cell, whether around a table or in a list whose window starts at `first`.
pub fn seat_at(area: Rect, off: &[bool], first: usize, col: u16, row: u16) -> Option<usize> {
    if let Some(round) = RoundTable::for_seats(area, off) {
        return round.cards.iter().position(|card| hits(*card, col, row));
    }
    let line = row.checked_sub(area.y + LIST_HEAD)?;
    let mut end = 0;
    let rows = seat_rows(area, off);
    let within = |rows: &u16| {
        end += rows;
        line < end
    };
    rows.iter().skip(first).position(within).map(|nth| first + nth)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(width: u16, height: u16) -> Rect {
        Rect::new(3, 2, width, height)
    }

    #[test]
    fn seats_stand_apart_and_within_their_pane() {
        for (width, height) in (0..=120).flat_map(|width| (0..=40).map(move |it| (width, it))) {
            let area = area(width, height);
            for (seats, off) in (0..=12).flat_map(|seats| [(seats, 0), (seats, 1), (seats, 2)]) {
                let seats: Vec<bool> = (0..seats).map(|seat| seat < off).collect();
                let Some(round) = RoundTable::for_seats(area, &seats) else { continue };
                assert_eq!(round.cards.len(), seats.len());
                for (nth, card) in round.cards.iter().enumerate() {
                    assert_eq!(card.intersection(area), *card, "{seats:?} in {width}x{height}");
                    let least = if seats[nth] { (CARD / 2, 1) } else { (CARD, 3) };
                    assert!(card.width >= least.0 && card.height >= least.1, "{seats:?}: {card}");
                    for other in &round.cards[nth + 1..] {
                        assert!(!card.intersects(*other), "{seats:?} in {width}x{height}");
                    }
                    let shared = card.intersection(round.table);
                    assert!(shared.area() == 0 || shared.width == 1);
                }
                assert_eq!(round.table.intersection(area), round.table);
            }
        }
    }

    #[test]
    fn four_sit_clockwise_from_the_top() {
        let area = Rect::new(0, 0, 68, 15);
        let round = RoundTable::for_seats(area, &[false; 4]).expect("room for a table");
        let [top, right, bottom, left] = round.cards[..] else { panic!("four") };
        assert!(top.y < round.table.y && bottom.y > round.table.y);
        assert!(left.x < round.table.x && right.x > round.table.x);
        assert_eq!(seat_at(area, &[false; 4], 0, left.x, left.y), Some(3));
    }

    #[test]
    fn the_height_of_a_seat_that_is_off_goes_to_the_others() {
        let area = Rect::new(0, 0, 68, 15);
        let heights = |off: &[bool]| -> Vec<u16> {
            let round = RoundTable::for_seats(area, off).expect("room for a table");
            round.cards.iter().map(|card| card.height).collect()
        };
        assert_eq!(heights(&[false; 4]), [4, 7, 4, 7]);
        let off = [false, false, false, true];
        assert_eq!(heights(&off), [5, 9, 9, 1]);
        assert_eq!(seat_at(area, &off, 0, 2, 14), Some(3));
        for (height, off, rows) in [
            (14, [false; 4], [4, 3, 3, 3]),
            (14, off, [4, 4, 4, 1]),
            (9, [true, false, true, false], [1, 3, 1, 3]),
            (3, [false; 4], [1, 1, 1, 1]),
        ] {
            assert_eq!(seat_rows(Rect { height, ..area }, &off), rows, "{height}");
        }
    }

    #[test]
    fn nine_or_too_little_room_make_a_list() {
        let nine = [false; 9];
        assert_eq!(RoundTable::for_seats(area(90, 20), &nine), None);
        assert_eq!(RoundTable::for_seats(area(50, 20), &[false; 4]), None);
        assert_eq!(RoundTable::for_seats(area(78, 14), &[false; 4]), None);
        // Two rows for each, where there is room for them.
        for (height, rows) in [(19, 2), (10, 1), (60, 5)] {
            let area = Rect::new(0, 0, 90, height);
            assert_eq!(seat_rows(area, &nine), [rows; 9]);
            for seat in 0..9 {
                let row = LIST_HEAD + rows * seat;
                assert_eq!(seat_at(area, &nine, 0, 5, row), Some(seat.into()));
            }
            assert_eq!(seat_at(area, &nine, 0, 5, LIST_HEAD + rows * 9), None);
        }
    }
}
