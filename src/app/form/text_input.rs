//! Typing and pasting into the texts of the form.

use super::LaunchForm;
use super::field::{Field, FieldId, FieldValue, MAX_TEXT_BYTES};
use crate::app::action::Action;
use crate::app::key::{KeyCode, KeyPress};
use crate::app::keys_in_use::key_of;

/// The effect of a key on the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOutcome {
    /// The form used it.
    Taken,
    /// It has no meaning here.
    Ignored,
    /// It is text, but the focused field is not being edited.
    NotEditing,
}

impl LaunchForm {
    /// Takes a key without a binding: text for the focused field.
    pub fn on_key(&mut self, key: KeyPress) -> KeyOutcome {
        let edge = match key.code {
            KeyCode::Up => Some(false),
            KeyCode::Down => Some(true),
            _ => None,
        };
        if let Some(picker) = &mut self.picker {
            let taken = picker.on_key(key, &self.models);
            return if taken { KeyOutcome::Taken } else { KeyOutcome::Ignored };
        }
        if !self.fields.is_editing() {
            let typable = self.fields.is_on_text() || self.fields.focus == FieldId::ModelName;
            let would = typable && key.typed_char().is_some();
            return if would { KeyOutcome::NotEditing } else { KeyOutcome::Ignored };
        }
        let Some(Field { value: FieldValue::Text(text), .. }) = self.fields.focused() else {
            return KeyOutcome::Ignored;
        };
        if key.code == KeyCode::Enter && !text.lines {
            self.fields.move_focus(true);
            return KeyOutcome::Taken;
        }
        let before = text.area.cursor();
        let full =
            text.free_bytes() == 0 && (key.typed_char().is_some() || key.code == KeyCode::Enter);
        if full || !text.on_key(key) {
            return KeyOutcome::Ignored;
        }
        match edge {
            Some(forward) if text.area.cursor() == before => {
                self.fields.move_focus(forward);
                self.fields.typing = false;
            }
            Some(_) => {}
            None => self.revalidate(),
        }
        KeyOutcome::Taken
    }

    /// Inserts pasted text into the focused text field.
    ///
    /// # Errors
    /// Why it was not inserted, or how it was changed, for the status row.
    pub fn on_paste(&mut self, pasted: &str) -> Result<(), String> {
        if self.fields.focus == FieldId::ModelName && self.picker.is_none() {
            self.open_picker();
        }
        if let Some(picker) = &mut self.picker {
            picker.on_paste(pasted, &self.models);
            return Ok(());
        }
        let Some(Field { value: FieldValue::Text(text), .. }) = self.fields.focused() else {
            let key = key_of(Action::NextPane);
            return Err(format!("Pasting needs a text field: press {key} to reach one."));
        };
        if pasted.len() > text.free_bytes() {
            return Err(format!(
                "The paste has {} bytes, more than the field takes ({MAX_TEXT_BYTES} in all): nothing was \
                 inserted.",
                pasted.len()
            ));
        }
        let (taken, left_out) = text.accepted_paste(pasted);
        let signs = text.on_paste(taken);
        self.fields.typing = true;
        self.revalidate();
        let mut said = Vec::new();
        if left_out > 0 {
            let plural = if left_out == 1 { "" } else { "s" };
            said.push(format!(
                "This field has one line: {left_out} more pasted line{plural} left out."
            ));
        }
        if signs > 0 {
            said.push(format!("{signs} control characters of the paste are shown as symbols."));
        }
        if said.is_empty() { Ok(()) } else { Err(said.join(" ")) }
    }
}
