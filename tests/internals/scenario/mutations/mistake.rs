//! One mistake in a file: how the text changes, where it is then, and what would be right.

use std::ops::Range;

/// A mistake that a person makes in one place.
#[derive(Clone)]
pub(super) struct SeededMistake {
    /// The replacements, in the order of the file.
    pub edits: Vec<(Range<usize>, String)>,
    /// The lines of the changed text that are right to name; usually one.
    pub lines: Vec<usize>,
    /// Each of these words is the right suggestion; empty: no word is.
    pub right: Vec<String>,
    /// The wrong word.
    pub wrong: String,
}

impl SeededMistake {
    /// One text in place of another on this line.
    pub fn replace(range: Range<usize>, wrong: &str, line: usize) -> Self {
        let edits = vec![(range, wrong.to_owned())];
        Self { edits, lines: vec![line], right: Vec::new(), wrong: wrong.to_owned() }
    }

    pub fn right(mut self, word: &str) -> Self {
        self.right.push(word.to_owned());
        self
    }

    pub fn wrong(mut self, word: &str) -> Self {
        word.clone_into(&mut self.wrong);
        self
    }

    /// The text with the mistake.
    pub fn apply(&self, text: &str) -> String {
        let mut edits = self.edits.clone();
        edits.sort_by_key(|(range, _)| range.start);
        let mut made = String::new();
        let mut at = 0;
        for (range, new) in edits {
            made.push_str(&text[at..range.start]);
            made.push_str(&new);
            at = range.end;
        }
        made.push_str(&text[at..]);
        made
    }
}

/// Random numbers from a seed.
pub(super) struct Dice(pub u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.roll() % end.max(1) as u64).expect("a small number")
    }

    pub fn pick<'i, T>(&mut self, items: &'i [T]) -> &'i T {
        &items[self.below(items.len())]
    }
}

/// A word with a typing mistake that is not one of the `taken` words. `None` for a word that is too
/// short.
pub(super) fn misspell(
    word: &str,
    dice: &mut Dice,
    taken: impl Fn(&str) -> bool,
) -> Option<String> {
    let letters: Vec<char> = word.chars().collect();
    if letters.len() < 3 || !word.is_ascii() {
        return None;
    }
    for _ in 0..20 {
        let at = 1 + dice.below(letters.len() - 1);
        let mut made = letters.clone();
        match dice.below(6) {
            0 => {
                made.remove(at);
            }
            1 if at + 1 < made.len() => made.swap(at, at + 1),
            2 => made.insert(at, letters[at]),
            3 => made[at] = if letters[at] == 'e' { 'a' } else { 'e' },
            // Forms of other languages: a hyphen, or capitals in place of an underscore.
            4 => made = word.replace('_', "-").chars().collect(),
            _ => match word.ends_with('s') {
                true => {
                    made.pop();
                }
                false => made.push('s'),
            },
        }
        let made: String = made.into_iter().collect();
        if made != word && !made.ends_with('-') && !taken(&made) {
            return Some(made);
        }
    }
    None
}
