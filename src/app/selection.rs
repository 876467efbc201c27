//! The selection in a list.

use super::action::Action;

/// The list position that a movement leads to; `None` for any other action.
pub(crate) fn moved_index(
    action: Action,
    at: Option<usize>,
    len: usize,
    page: usize,
) -> Option<usize> {
    let last = len.checked_sub(1)?;
    let at = at.unwrap_or(0).min(last);
    Some(match action {
        Action::Up => at.saturating_sub(1),
        Action::Down => (at + 1).min(last),
        Action::Top => 0,
        Action::Bottom => last,
        Action::PageUp => at.saturating_sub(page),
        Action::PageDown => at.saturating_add(page).min(last),
        _ => return None,
    })
}
