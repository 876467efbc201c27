//! A prompt of a scenario. Its inputs are filled in already; the positions of flags are filled in
//! when it is sent, because a flag may change during a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::name::FlagName;

/// A prompt. It is cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptTemplate {
    text: Arc<str>,
    /// The flags whose positions it says, in the order of its text.
    flags: Arc<[FlagInPrompt]>,
}

/// The place of a flag in a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlagInPrompt {
    /// Byte offset in the text, which is a boundary of its characters.
    pub at: usize,
    /// The flag.
    pub flag: FlagName,
}

impl PromptTemplate {
    /// A text with the places of the flags in it, in its order.
    pub(crate) fn new(text: &str, flags: Vec<FlagInPrompt>) -> Self {
        Self { text: text.into(), flags: flags.into() }
    }

    /// The text, with these positions of the flags: `on` or `off`.
    pub fn filled(&self, positions: &BTreeMap<FlagName, bool>) -> Arc<str> {
        self.with(|flag| match positions.get(flag) {
            Some(true) => "on".to_owned(),
            _ => "off".to_owned(),
        })
    }

    /// The text as the file has it: `{{flags.NAME}}` for a flag.
    pub fn written(&self) -> Arc<str> {
        self.with(|flag| format!("{{{{flags.{flag}}}}}"))
    }

    fn with(&self, said: impl Fn(&FlagName) -> String) -> Arc<str> {
        if self.flags.is_empty() {
            return Arc::clone(&self.text);
        }
        let (mut whole, mut from) = (String::with_capacity(self.text.len()), 0);
        for FlagInPrompt { at, flag } in &*self.flags {
            whole.push_str(&self.text[from..*at]);
            whole.push_str(&said(flag));
            from = *at;
        }
        whole.push_str(&self.text[from..]);
        whole.into()
    }

    /// Whether the prompt says the position of this flag.
    pub fn says(&self, flag: &FlagName) -> bool {
        self.flags.iter().any(|it| it.flag == *flag)
    }

    /// Whether the prompt says the position of any flag.
    pub fn has_flags(&self) -> bool {
        !self.flags.is_empty()
    }
}

impl From<&str> for PromptTemplate {
    fn from(text: &str) -> Self {
        Self::new(text, Vec::new())
    }
}

#[cfg(test)]
impl From<String> for PromptTemplate {
    fn from(text: String) -> Self {
        Self::from(&*text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_filled_in_where_written() {
        let flag = |at, name: &str| FlagInPrompt { at, flag: name.into() };
        let prompt = PromptTemplate::new("Frøst: , ice: ", vec![flag(8, "frost"), flag(15, "ice")]);
        let positions = BTreeMap::from([("frost".into(), true)]);
        assert_eq!(&*prompt.filled(&positions), "Frøst: on, ice: off");
        assert_eq!(&*prompt.written(), "Frøst: {{flags.frost}}, ice: {{flags.ice}}");
        assert!(prompt.says(&"ice".into()) && !prompt.says(&"snow".into()));
        assert_eq!(&*PromptTemplate::from("plain").filled(&positions), "plain");
    }
}
