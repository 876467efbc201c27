//! The keys of each action: those of the binding table, unless the configuration names others.

use std::sync::OnceLock;

use super::action::Action;
use super::key::{KeyCode, KeyPress};
use super::keymap::{BINDINGS, Binding, Context};
use crate::scenario::config::ConfiguredKeys;
use crate::scenario::suggest_name;

/// The keys that no configuration takes away, and why.
const FIXED: [(Action, KeyPress, &str); 3] = [
    (Action::Interrupt, KeyPress::ctrl('c'), "it always stops the run, and twice quits"),
    (Action::Cancel, KeyPress::new(KeyCode::Esc), "it always closes or cancels"),
    (Action::Press, KeyPress::new(KeyCode::Enter), "it always presses the field of a form"),
];

static IN_USE: OnceLock<Keymap> = OnceLock::new();

#[cfg(test)]
thread_local! {
    /// The keys in use in one test.
    static OF_TEST: std::cell::Cell<Option<&'static Keymap>> = const { std::cell::Cell::new(None) };
}

/// The keys in use: those set by [`use_keys`], else those of the binding table.
pub(crate) fn in_use() -> &'static Keymap {
    #[cfg(test)]
    if let Some(keys) = OF_TEST.get() {
        return keys;
    }
    static TABLE: OnceLock<Keymap> = OnceLock::new();
    IN_USE.get().unwrap_or_else(|| TABLE.get_or_init(Keymap::default))
}

/// The action of a key in this context, if it has one.
pub fn lookup(context: Context, key: KeyPress) -> Option<Action> {
    in_use().lookup(context, key)
}

impl Binding {
    /// Its keys in use: those of the configuration, else the table's.
    pub fn keys_in_use(&self) -> &'static [KeyPress] {
        in_use().keys(self.action)
    }
}

/// Sets the keys of the process. Only the first call has an effect.
pub(crate) fn use_keys(keys: Keymap) {
    let _ = IN_USE.set(keys);
}

/// Sets the keys of the test on this thread, until the result is dropped.
#[cfg(test)]
#[must_use]
pub(crate) fn use_keys_in_test(config: &str) -> KeysOfTest {
    let checked = crate::scenario::config::check_config("config.toml", config);
    let keys = Keymap::configured(&checked.config.keys).expect("keys");
    OF_TEST.set(Some(Box::leak(Box::new(keys))));
    KeysOfTest
}

/// The keys of a test are in use.
#[cfg(test)]
pub(crate) struct KeysOfTest;

#[cfg(test)]
impl Drop for KeysOfTest {
    fn drop(&mut self) {
        OF_TEST.set(None);
    }
}

/// The name of an action's first key in a sentence: `Enter`, `r`. An action without a key is named
/// as the list of commands finds it: `:reload`.
pub(crate) fn key_of(action: Action) -> String {
    let keys = in_use();
    match (keys.keys(action).first(), keys.keys(Action::Commands).first()) {
        (Some(key), _) => key.label(true).into_owned(),
        (None, Some(commands)) => format!("{}{}", commands.label(true), action.name()),
        (None, None) => format!("{} (no key)", action.name()),
    }
}

/// The keys of every action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keymap {
    /// For each row of the binding table.
    rows: Vec<KeysOfRow>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct KeysOfRow {
    keys: Vec<KeyPress>,
    is_configured: bool,
}

impl Default for Keymap {
    fn default() -> Self {
        let row = |row: &Binding| KeysOfRow { keys: row.keys.to_vec(), is_configured: false };
        Self { rows: BINDINGS.iter().map(row).collect() }
    }
}

/// The number of an action's row in the binding table.
fn row_of(name: &str) -> Option<usize> {
    BINDINGS.iter().position(|row| row.action.name() == name)
}

impl Keymap {
    /// The binding table with the keys of a configuration file.
    ///
    /// # Errors
    /// What is wrong in the file, each problem with its place, in the order of the file.
    pub(crate) fn configured(entries: &[ConfiguredKeys]) -> Result<Self, Vec<String>> {
        let mut keymap = Self::default();
        let mut problems: Vec<(usize, String)> = Vec::new();
        // For each row of the table, its entry in the file.
        let mut places: Vec<Option<&ConfiguredKeys>> = vec![None; BINDINGS.len()];
        for entry in entries {
            let mut problem = |place: &str, what: &str, help: &str| {
                let line = format!("{place}: error: keys.{}: {what}: {help}", entry.action);
                problems.push((entry.line, line));
            };
            let Some(at) = row_of(&entry.action) else {
                let names = BINDINGS.iter().map(|row| row.action.name());
                problem(&entry.place, "unknown action", &suggest_name(&entry.action, names));
                continue;
            };
            let Some((binding, row)) = BINDINGS.get(at).zip(keymap.rows.get_mut(at)) else {
                continue;
            };
            let mut keys = Vec::new();
            let mut is_read = true;
            for key in &entry.keys {
                match KeyPress::parse(&key.text).and_then(|key| usable(key, binding)) {
                    Ok(read) if keys.contains(&read) => {}
                    Ok(read) => keys.push(read),
                    Err((what, help)) => {
                        is_read = false;
                        problem(&key.place, &what, &help);
                    }
                }
            }
            if !is_read {
                continue;
            }
            if let Err((what, help)) = sufficient(&keys, binding) {
                problem(&entry.place, &what, &help);
                continue;
            }
            *row = KeysOfRow { keys, is_configured: true };
            if let Some(place) = places.get_mut(at) {
                *place = Some(entry);
            }
        }
        problems.extend(keymap.conflicts(&places));
        if problems.is_empty() {
            return Ok(keymap);
        }
        problems.sort_by_key(|(line, _)| *line);
        Err(problems.into_iter().map(|(_, text)| text).collect())
    }

    /// Keys with two actions in one context, at least one of them from the file.
    fn conflicts(&self, entries: &[Option<&ConfiguredKeys>]) -> Vec<(usize, String)> {
        let rows: Vec<_> = BINDINGS.iter().zip(&self.rows).zip(entries).collect();
        let mut found = Vec::new();
        for (nth, one) in rows.iter().enumerate() {
            for two in rows.iter().skip(nth + 1) {
                // Told at the later of the two lines.
                let line = |row: &((_, _), &Option<&ConfiguredKeys>)| row.1.map_or(0, |it| it.line);
                let (first, last) = if line(one) > line(two) { (two, one) } else { (one, two) };
                let ((of_first, first_row), first_entry) = *first;
                let ((of_last, last_row), Some(entry)) = *last else { continue };
                for key in last_row.keys.iter().filter(|key| first_row.keys.contains(key)) {
                    let shared = shared_contexts(of_first, of_last, *key);
                    if !shared.is_empty() {
                        let text = conflict(*key, entry, of_first, *first_entry, &shared);
                        found.push((entry.line, text));
                    }
                }
            }
        }
        found
    }

    /// The action of a key in this context, if it has one.
    pub(crate) fn lookup(&self, context: Context, key: KeyPress) -> Option<Action> {
        if context.takes_text() && key.typed_char().is_some() {
            return None;
        }
        let mut rows = BINDINGS.iter().zip(&self.rows);
        let (binding, row) = rows.find(|(binding, row)| {
            binding.contexts.contains(&context) && row.keys.contains(&key)
        })?;
        Some(match binding.action {
            // The first key is that of the first pane.
            Action::Pane(_) => {
                let nth = row.keys.iter().position(|it| *it == key).unwrap_or_default();
                Action::Pane(u8::try_from(nth + 1).unwrap_or(u8::MAX))
            }
            action => action,
        })
    }

    /// The keys of an action.
    pub(crate) fn keys(&self, action: Action) -> &[KeyPress] {
        self.row(action).map(|row| row.keys.as_slice()).unwrap_or_default()
    }

    /// Whether the configuration names the keys of an action.
    pub(crate) fn is_configured(&self, action: Action) -> bool {
        self.row(action).is_some_and(|row| row.is_configured)
    }

    fn row(&self, action: Action) -> Option<&KeysOfRow> {
        // Looked up for each key of each frame: no names are compared. A pane's number does not matter.
        let kind = std::mem::discriminant(&action);
        let is_same = |row: &Binding| std::mem::discriminant(&row.action) == kind;
        self.rows.get(BINDINGS.iter().position(is_same)?)
    }
}

/// The contexts in which a key would mean both.
fn shared_contexts(one: &Binding, two: &Binding, key: KeyPress) -> String {
    let is_typed = key.typed_char().is_some();
    let shared = one
        .contexts
        .iter()
        .filter(|context| two.contexts.contains(context) && !(is_typed && context.takes_text()));
    shared.map(|context| context.word()).collect::<Vec<_>>().join(", ")
}

/// The line of a conflict, at the key of its second action.
fn conflict(
    key: KeyPress,
    entry: &ConfiguredKeys,
    first: &Binding,
    first_entry: Option<&ConfiguredKeys>,
    shared: &str,
) -> String {
    let is_key = |text: &str| KeyPress::parse(text).is_ok_and(|it| it == key);
    let place = entry.keys.iter().find(|it| is_key(&it.text)).map_or(&entry.place, |it| &it.place);
    let (action, other, key_name) = (&entry.action, first.action.name(), key.written());
    let fixed = FIXED.iter().find(|(action, of, _)| *action == first.action && *of == key);
    let (has, help) = match (fixed, first_entry) {
        (Some((_, _, why)), _) => {
            let text = format!("is the key of `{other}` and cannot be taken away");
            (text, format!("{why}; choose another key"))
        }
        (None, Some(first)) => {
            let text = format!("is also the key of `{other}` on line {}, in: {shared}", first.line);
            (text, "give one of them another key".to_owned())
        }
        (None, None) => {
            let text = format!("is also the usual key of `{other}`, in: {shared}");
            (text, format!("choose another key, or give `{other}` another one"))
        }
    };
    format!("{place}: error: keys.{action}: {key_name} {has}: {help}")
}

/// The key, if this action can have it.
fn usable(key: KeyPress, binding: &Binding) -> Result<KeyPress, (String, String)> {
    let text = binding.contexts.iter().find(|context| context.takes_text());
    match text.filter(|_| key.edits_text() && !binding.keys.contains(&key)) {
        Some(context) => {
            let what = format!("{} edits the text in: {}", key.written(), context.word());
            Err((what, "choose a key with ctrl or alt, or a function key".to_owned()))
        }
        None => Ok(key),
    }
}

/// Whether an action can do with these keys.
fn sufficient(keys: &[KeyPress], binding: &Binding) -> Result<(), (String, String)> {
    for (action, key, why) in FIXED {
        if action == binding.action && !keys.contains(&key) {
            let name = key.written();
            let what = format!("{name} cannot be taken away");
            return Err((what, format!("{why}; keep {name} in the list")));
        }
    }
    if matches!(binding.action, Action::Pane(_)) && keys.len() > 9 {
        return Err(("too many keys".to_owned(), "there are at most 9 panes".to_owned()));
    }
    let only_typed = keys.iter().all(|key| key.typed_char().is_some());
    if only_typed && !keys.is_empty() && binding.contexts.iter().all(|it| it.takes_text()) {
        let what = format!("a character is typed as text in: {}", binding.places());
        return Err((what, "choose a key with ctrl or alt, or a function key".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
