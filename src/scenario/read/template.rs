//! Fills in `{{input}}` in the texts of a scenario, and `{{facts.a.b}}` in those of its script; finds
//! `{{flags.a}}` in prompts.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::{Map, Value};

use super::format::BoolOrInput;
use super::tree::TextSpan;
use super::{ReadContext, suggest_declared_name, suggest_name};
use crate::base::name::FlagName;
use crate::scenario::spec::handoff_template::HandoffPiece;
use crate::scenario::spec::script::{FlagInPrompt, PromptTemplate, TextFill};

/// The names that a text may contain, with their values.
pub(crate) struct TemplateScope<'i> {
    pub inputs: Vec<(&'i str, Value)>,
    /// The flags, which only prompts may name.
    pub flags: Vec<&'i str>,
    /// `None`: facts are not allowed here.
    pub facts: Option<&'i Map<String, Value>>,
    /// Names that can be used in the `when` of script rows, but not in texts.
    pub when_names: Vec<&'static str>,
}

/// A part of a text.
pub(crate) enum TemplatePart<'t> {
    /// Text of the file, and its byte offset.
    FileText(usize, &'t str),
    /// The value of an input, or two literal braces.
    Filled(String),
    /// A value that is known only when the text is said.
    Later(&'t str),
    /// The position of a flag, in a prompt.
    Flag(&'t str),
}

impl TemplatePart<'_> {
    fn as_str(&self) -> &str {
        match self {
            Self::FileText(_, text) => text,
            Self::Filled(text) => text,
            Self::Later(_) | Self::Flag(_) => "",
        }
    }
}

impl TemplateScope<'_> {
    /// The text with its inputs filled in. `\{{` gives two braces. Unknown inputs are reported.
    pub fn text(&self, text: &str, at: TextSpan, cx: &mut ReadContext) -> String {
        let parts = self.parts(text, at, cx);
        parts.iter().map(TemplatePart::as_str).collect()
    }

    /// The text of a script's row; `later` are the names whose values are filled in when it is said.
    pub fn scripted_text(
        &self,
        text: &str,
        at: TextSpan,
        later: &[&str],
        cx: &mut ReadContext,
    ) -> (String, Vec<TextFill>) {
        let (mut whole, mut fills) = (String::new(), Vec::new());
        for part in self.parts_with(text, at, later, false, cx) {
            if let TemplatePart::Later(path) = part {
                fills.push(TextFill { at: whole.len(), path: path.to_owned() });
            }
            whole.push_str(part.as_str());
        }
        (whole, fills)
    }

    /// A prompt, which may also say the positions of flags: `{{flags.NAME}}`.
    pub fn prompt(&self, text: &str, at: TextSpan, cx: &mut ReadContext) -> PromptTemplate {
        let (mut whole, mut flags) = (String::new(), Vec::new());
        for part in self.parts_with(text, at, &[], true, cx) {
            if let TemplatePart::Flag(name) = part {
                flags.push(FlagInPrompt { at: whole.len(), flag: FlagName::from(name) });
            }
            whole.push_str(part.as_str());
        }
        PromptTemplate::new(&whole, flags)
    }

    /// The same as [`text`](Self::text), as parts.
    pub fn parts<'t>(
        &self,
        text: &'t str,
        at: TextSpan,
        cx: &mut ReadContext,
    ) -> Vec<TemplatePart<'t>> {
        self.parts_with(text, at, &[], false, cx)
    }

    fn parts_with<'t>(
        &self,
        text: &'t str,
        at: TextSpan,
        later: &[&str],
        is_prompt: bool,
        cx: &mut ReadContext,
    ) -> Vec<TemplatePart<'t>> {
        let mut parts = Vec::new();
        let mut rest = 0;
        while let Some(found) = text[rest..].find("{{") {
            let open = rest + found;
            if let Some(before) = text[rest..open].strip_suffix('\\') {
                parts.push(TemplatePart::FileText(rest, before));
                parts.push(TemplatePart::Filled("{{".to_owned()));
                rest = open + 2;
                continue;
            }
            self.warn_of_single_braces(text, rest..open, at, cx);
            parts.push(TemplatePart::FileText(rest, &text[rest..open]));
            if let Some(name) = self.half_closed(&text[open + 2..]) {
                let what = format!("`{{{{{name}}}` is not closed");
                let whole = cx.inner_span(at, open, open + 3 + name.len());
                cx.error(whole, what, format!("write `{{{{{name}}}}}`"));
                rest = open + 3 + name.len();
                continue;
            }
            let Some(length) = text[open..].find("}}") else {
                let at = cx.inner_span(at, open, open + 2);
                cx.error(
                    at,
                    "`{{` is not closed",
                    "close it with `}}`, or write `\\{{` for two braces",
                );
                return parts;
            };
            let close = open + length;
            let name = text[open + 2..close].trim();
            let flag = name.strip_prefix("flags.");
            match (self.value(name), flag) {
                (Some(value), _) => {
                    parts.push(TemplatePart::Filled(plain_text(value).into_owned()))
                }
                (None, Some(flag)) if is_prompt && self.flags.contains(&flag) => {
                    parts.push(TemplatePart::Flag(flag));
                }
                (None, flag)
                    if later.contains(&root_of(name))
                        && flag.is_none_or(|flag| self.flags.contains(&flag)) =>
                {
                    parts.push(TemplatePart::Later(name));
                }
                (None, Some(flag)) if self.when_names.is_empty() || later.contains(&"flags") => {
                    let may = is_prompt || later.contains(&"flags");
                    self.unknown_flag(flag, may, cx.inner_span(at, open, close + 2), cx);
                }
                (None, _) => self.unknown(name, cx.inner_span(at, open, close + 2), cx),
            }
            rest = close + 2;
        }
        self.warn_of_single_braces(text, rest..text.len(), at, cx);
        parts.push(TemplatePart::FileText(rest, &text[rest..]));
        parts
    }

    /// The known name at the beginning of a text that only one brace closes.
    fn half_closed<'t>(&self, text: &'t str) -> Option<&'t str> {
        let (name, after) = text.split_once('}')?;
        (!after.starts_with('}') && self.value(name.trim()).is_some()).then_some(name)
    }

    /// Warns of a known name in single braces in this part of a text: it is not filled in.
    fn warn_of_single_braces(
        &self,
        text: &str,
        part: Range<usize>,
        at: TextSpan,
        cx: &mut ReadContext,
    ) {
        // Names in single braces are filled in at each handoff.
        if cx.is_at("handoff_input") || cx.is_full() {
            return;
        }
        for (open, _) in text[part.clone()].match_indices('{') {
            let open = part.start + open;
            let Some((name, _)) = text[open + 1..part.end].split_once('}') else { return };
            if self.value(name.trim()).is_none() {
                continue;
            }
            let end = open + name.len() + 2;
            // `${name}` is the same mistake.
            let start = if text[part.start..open].ends_with('$') { open - 1 } else { open };
            let what = format!("`{}` is not replaced", &text[start..end]);
            let help = format!("write `{{{{{}}}}}`", name.trim());
            let place = cx.inner_span(at, start, end);
            cx.warn(place, what, help);
        }
    }

    /// The same, but a text that is only one input takes its value with its type, so that
    /// conditions can use it as a number or a boolean.
    pub fn value_of(&self, text: &str, at: TextSpan, cx: &mut ReadContext) -> Value {
        let only = text.strip_prefix("{{").and_then(|text| text.strip_suffix("}}"));
        match only.and_then(|name| self.value(name.trim())) {
            Some(value) => value.clone(),
            None => Value::String(self.text(text, at, cx)),
        }
    }

    /// The value of a switch.
    pub fn switch_value(&self, switch: &BoolOrInput, cx: &mut ReadContext) -> Option<bool> {
        let text = match switch {
            BoolOrInput::Set(truth) => return Some(*truth),
            BoolOrInput::Named(text) => text,
        };
        match self.value_of(&text.text, text.at, cx) {
            Value::Bool(truth) => Some(truth),
            // An invalid input has already been reported.
            _ if cx.has_error_here() => None,
            Value::Null => None,
            _ => {
                let what = "this is not a boolean";
                cx.error(text.at, what, "write true, false, or \"{{input}}\" with a boolean input");
                None
            }
        }
    }

    fn value(&self, name: &str) -> Option<&Value> {
        if let Some((_, value)) = self.inputs.iter().find(|(known, _)| *known == name) {
            return Some(value);
        }
        let mut steps = name.strip_prefix("facts.")?.split('.');
        let first = self.facts?.get(steps.next()?)?;
        steps.try_fold(first, |value, step| value.get(step))
    }

    /// The suggestion for a missing field of the facts.
    pub fn missing_fact(&self, fields: &[&str]) -> Option<String> {
        let mut facts = self.facts?;
        for field in fields {
            match facts.get(*field) {
                None => return Some(suggest_name(field, facts.keys().map(String::as_str))),
                Some(Value::Object(inner)) => facts = inner,
                // A field of a value that is not a table is an error during the run.
                Some(_) => return None,
            }
        }
        None
    }

    /// Reports a flag that a text cannot name.
    fn unknown_flag(&self, flag: &str, is_prompt: bool, at: TextSpan, cx: &mut ReadContext) {
        if is_prompt || !self.flags.contains(&flag) {
            let help = suggest_declared_name("flags", flag, self.flags.iter().copied());
            return cx.error(at, format!("`{flag}` is not a flag"), help);
        }
        let what = format!("`{{{{flags.{flag}}}}}` is not replaced here");
        cx.error(at, what, "a flag may change during a run: only prompts say its position");
    }

    fn unknown(&self, name: &str, at: TextSpan, cx: &mut ReadContext) {
        let inputs = self.inputs.iter().map(|(name, _)| *name);
        let help = match name.starts_with("facts.") && self.facts.is_some() {
            true => {
                let fields: Vec<&str> = name.split('.').skip(1).collect();
                let known = self.missing_fact(&fields);
                known.unwrap_or_else(|| "there is no such fact".to_owned())
            }
            false if cx.is_full() => String::new(),
            // Names in single braces are filled in at each handoff.
            false if cx.is_at("handoff_input") && HandoffPiece::NAMES.contains(&name) => {
                format!("write `{{{name}}}`")
            }
            false if self.when_names.contains(&root_of(name)) => {
                format!(
                    "`{name}` has a value only in `when`, `text` and `raw` of rows for its calls"
                )
            }
            false => suggest_declared_name("inputs", name, inputs),
        };
        cx.error(at, format!("`{{{{{name}}}}}` is not an input"), help);
    }
}

/// The name before the first dot.
fn root_of(path: &str) -> &str {
    path.split('.').next().unwrap_or(path)
}

/// A value as plain text; an integral float has no `.0`.
pub(crate) fn plain_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Number(number) => {
            let text = number.to_string();
            Cow::Owned(text.strip_suffix(".0").map(str::to_owned).unwrap_or(text))
        }
        value => Cow::Owned(value.to_string()),
    }
}
