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
/// Most rows of a seat in a list.
const SEAT_ROWS: u16 = 4;
/// Narrowest frame of the table.
const TABLE: u16 = 26;
/// Header rows above the list of seats.
pub const LIST_HEAD: u16 = 2;

/// The frames of the table and its seats. A card at its side shares a line with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundTable {
    /// The frame of the table.
    pub table: Rect,
    /// The frames of the seats in the order of the sequence: clockwise from the top left.
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
    /// The layout for this many seats; `None` if they have to be shown in a list.
    pub fn for_seats(area: Rect, seats: usize) -> Option<RoundTable> {
        let [above, right, below, left] = sides(seats)?;
        let table = (area.width / 3).clamp(TABLE, 44);
        // A card at a side shares a line with the table.
        let beside = ((area.width + 2).checked_sub(table)? / 2).min(CARD_MOST);
        if beside < CARD {
            return None;
        }
        let outer = u16::from(above > 0) + u16::from(below > 0);
        let mut spare = area.height.checked_sub(5 + 3 * outer)?;
        let grant = |spare: &mut u16, wanted: u16| {
            let given = if *spare >= wanted { wanted } else { 0 };
            *spare -= given;
            given
        };
        let each = |rows: u16| rows / outer.max(1);
        // What a seat says needs rows before the table and the gaps get more.
        let mut card_h = 3 + each(grant(&mut spare, outer));
        let mut table_h = 5 + grant(&mut spare, 2);
        card_h += each(grant(&mut spare, outer));
        let gap = each(grant(&mut spare, outer));
        card_h += each(grant(&mut spare, outer));
        table_h += grant(&mut spare, 2);
        while card_h < CARD_HIGH && spare >= outer && outer > 0 {
            card_h += 1;
            spare -= outer;
        }
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

/// Cards in a row, centred in the area.
fn row_of(area: Rect, count: u16, y: u16, height: u16) -> Vec<Rect> {
    if count == 0 {
        return Vec::new();
    }
    let gap = if count > 2 { 2 } else { 4 };
    let width = ((area.width - gap * (count - 1)) / count).min(CARD_MOST);
    let all = width * count + gap * (count - 1);
    let start = area.x + (area.width - all) / 2;
    (0..count).map(|nth| Rect::new(start + nth * (width + gap), y, width, height)).collect()
}

/// Rows of each seat in the list of this area: what it says wraps where there is room.
pub fn seat_rows(area: Rect, seats: usize) -> u16 {
    let seats = u16::try_from(seats).unwrap_or(u16::MAX).max(1);
    (area.height.saturating_sub(LIST_HEAD) / seats).clamp(1, SEAT_ROWS)
}

/// Seats in view in the list of this area.
pub fn seats_in_list(area: Rect, seats: usize) -> u16 {
    area.height.saturating_sub(LIST_HEAD) / seat_rows(area, seats)
}

/// The seat at this cell, whether around a table or in a list whose window starts at `first`.
pub fn seat_at(area: Rect, seats: usize, first: usize, col: u16, row: u16) -> Option<usize> {
    match RoundTable::for_seats(area, seats) {
        Some(round) => round.cards.iter().position(|card| hits(*card, col, row)),
        None => {
            let line = row.checked_sub(area.y + LIST_HEAD)?;
            Some(first + usize::from(line / seat_rows(area, seats))).filter(|seat| *seat < seats)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_stand_apart_and_within_their_pane() {
        for width in 0..=120 {
            for height in 0..=40 {
                let area = Rect::new(3, 2, width, height);
                for seats in 0..=12 {
                    let Some(round) = RoundTable::for_seats(area, seats) else { continue };
                    assert_eq!(round.cards.len(), seats);
                    for (nth, card) in round.cards.iter().enumerate() {
                        assert_eq!(card.intersection(area), *card, "{seats} in {width}x{height}");
                        assert!(card.width >= CARD, "{seats} in {width}x{height}");
                        for other in &round.cards[nth + 1..] {
                            assert!(!card.intersects(*other), "{seats} in {width}x{height}");
                        }
                        let shared = card.intersection(round.table);
                        assert!(shared.area() == 0 || shared.width == 1);
                    }
                    assert_eq!(round.table.intersection(area), round.table);
                }
            }
        }
    }

    #[test]
    fn four_sit_clockwise_from_the_top() {
        let round = RoundTable::for_seats(Rect::new(0, 0, 68, 13), 4).expect("room for a table");
        let [top, right, bottom, left] = round.cards[..] else { panic!("four") };
        assert!(top.y < round.table.y && bottom.y > round.table.y);
        assert!(left.x < round.table.x && right.x > round.table.x);
        assert_eq!(seat_at(Rect::new(0, 0, 68, 13), 4, 0, left.x, left.y), Some(3));
    }

    #[test]
    fn nine_or_too_little_room_make_a_list() {
        assert_eq!(RoundTable::for_seats(Rect::new(0, 0, 90, 20), 9), None);
        assert_eq!(RoundTable::for_seats(Rect::new(0, 0, 50, 20), 4), None);
        assert_eq!(RoundTable::for_seats(Rect::new(0, 0, 68, 10), 4), None);
        // Two rows for each, where there is room for them.
        for (height, rows) in [(20, 2), (19, 1), (60, 4)] {
            let area = Rect::new(0, 0, 90, height);
            assert_eq!(seat_rows(area, 9), rows);
            for seat in 0..9 {
                let row = LIST_HEAD + rows * seat;
                assert_eq!(seat_at(area, 9, 0, 5, row), Some(seat.into()));
            }
            assert_eq!(seat_at(area, 9, 0, 5, LIST_HEAD + rows * 9), None);
        }
    }
}
