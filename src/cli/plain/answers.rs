//! Answers to questions as typed words, and texts of several lines.

use std::sync::Arc;

use serde_json::Value;

use super::PlainLoop;
use crate::cli::people::parse_answer;
use crate::log::event::kind::{Answer, QuestionAsked, Subject};
use crate::run::questions::is_rememberable;
use crate::screen::by_word::ByWord;
use crate::screen::form::FieldId;
use crate::screen::form::fields::choice_of;
use crate::screen::questions::{QuestionKey, is_irreversible, open_questions};
use crate::screen::windows::Overlay;
use crate::screen::windows::card::fields::{AnswerFields, AnswerKind, AnswerValue};
use crate::words::question::about;

/// The line that ends a text of several lines.
const END: &str = ".";

/// What the next lines are for.
pub(super) enum Dialog {
    /// The text of a field of the form.
    Field(FieldId, Vec<String>),
    /// The next message.
    Message(Vec<String>),
    /// The fields of an answer, one after the other.
    Answer {
        key: QuestionKey,
        fields: Box<AnswerFields>,
        /// The field that the next line is for.
        at: usize,
        lines: Vec<String>,
    },
}

/// How a question is answered, in one line.
pub(super) fn how_to_answer(asked: &QuestionAsked) -> String {
    let n = asked.id.0;
    let subject = &asked.subject;
    let choices = subject.choices();
    let mut ways: Vec<String> = match subject {
        Subject::ToolCall { .. } => {
            let mut ways = vec!["yes".to_owned(), "no WHY".to_owned(), "edit".to_owned()];
            if is_rememberable(subject) {
                ways.extend(["always".to_owned(), "alike".to_owned()]);
            }
            ways
        }
        Subject::Input { .. } if AnswerFields::reply(subject).is_none() => {
            vec!["yes".to_owned(), "no".to_owned()]
        }
        Subject::Input { .. } => vec!["edit".to_owned(), "no".to_owned()],
        Subject::Agent { choices, .. } if choices.is_empty() => vec!["TEXT".to_owned()],
        Subject::Turn { .. } => vec!["TEXT".to_owned()],
        Subject::Seat { .. } => Vec::new(),
        _ => Vec::new(),
    };
    let hands_over = matches!(subject, Subject::Turn { .. });
    ways.extend(choices.iter().map(|choice| match hands_over {
        true => format!("to {choice} TEXT"),
        false => choice.to_string(),
    }));
    if matches!(subject, Subject::Permission { .. }) {
        ways.push("no WHY".to_owned());
    }
    if matches!(subject, Subject::InDoubt { .. }) {
        ways.push("json {\"result\":...}".to_owned());
    }
    match ways.is_empty() {
        true => format!("type: answer {n}; then it asks for each field"),
        false => format!("type: answer {n} {}", ways.join(" | ")),
    }
}

/// The number at the start of a line, as `2` or `q2`, and the rest.
pub(super) fn number_of(rest: &str) -> Option<(u32, &str)> {
    let (number, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let number = number.trim_start_matches(['q', '#']).parse().ok()?;
    Some((number, rest.trim()))
}

impl PlainLoop {
    /// The open question with this number: of the run here, else of the only run that has it.
    pub(super) fn question(
        &self,
        number: u32,
    ) -> Result<(QuestionKey, Arc<QuestionAsked>), String> {
        let open = open_questions(&self.state.runs).filter(|it| it.question.asked.id.0 == number);
        let mut found: Vec<_> = open.map(|it| (it.key(), Arc::clone(&it.question.asked))).collect();
        let here = self.state.visible_run().map(|page| page.id());
        if let Some(at) = found.iter().position(|(key, _)| Some(&key.run) == here) {
            return Ok(found.swap_remove(at));
        }
        match found.len() {
            0 => Err(format!("question {number} is not open: questions lists the open ones")),
            1 => Ok(found.swap_remove(0)),
            _ => {
                Err(format!("{} runs ask a question {number}: open one of them first", found.len()))
            }
        }
    }

    /// `answer N …`.
    pub(super) fn answer(&mut self, rest: &str) {
        let Some((number, said)) = number_of(rest) else {
            return self.out.line("say which question: answer 2 yes");
        };
        let (key, asked) = match self.question(number) {
            Ok(found) => found,
            Err(why) => return self.out.line(&why),
        };
        let subject = &asked.subject;
        let (first, more) = said.split_once(char::is_whitespace).unwrap_or((said, ""));
        let more = more.trim();
        // People write `no, because …`.
        let given = match first.trim_end_matches(',').to_lowercase().as_str() {
            "edit" | "" if self.begin_answer(&key, &asked, first.is_empty()) => return,
            "" => return self.out.line(&how_to_answer(&asked)),
            "json" => read_json(more),
            "yes" | "y" | "approve" if takes_yes(subject) => Ok(Answer::Approve { args: None }),
            "always" if is_rememberable(subject) => {
                let what = format!("Approve such calls of {} from now on?", about(subject));
                let answer = Answer::Approve { args: None };
                return self.ask(&what, ByWord::Answer { key, answer, remember: true });
            }
            "alike" if takes_yes(subject) => return self.by(ByWord::ApproveAlike(key)),
            "no" | "n" | "deny" if subject.can_be_denied() => {
                Ok(Answer::Deny { text: more.into() })
            }
            "to" if matches!(subject, Subject::Turn { .. }) => {
                let (to, text) = more.split_once(char::is_whitespace).unwrap_or((more, ""));
                Ok(Answer::HandOver { to: to.into(), text: text.trim().into() })
            }
            _ if matches!(subject, Subject::Turn { .. }) => Ok(Answer::Text { text: said.into() }),
            _ if !subject.choices().is_empty() => choice(subject, said),
            _ => Ok(Answer::Text { text: said.into() }),
        };
        match given.and_then(|answer| subject.check(&answer).map(|()| answer)) {
            Ok(answer) => self.send_answer(key, &asked, answer),
            Err(why) => {
                self.out.line(&format!("not sent: {why}"));
                self.out.line(&how_to_answer(&asked));
            }
        }
    }

    /// Sends an answer; asks first where it approves what cannot be undone.
    fn send_answer(&mut self, key: QuestionKey, asked: &QuestionAsked, answer: Answer) {
        let approves = matches!(answer, Answer::Approve { .. });
        let word = ByWord::Answer { key, answer, remember: false };
        match approves && is_irreversible(asked) {
            true => {
                let what = format!("This cannot be undone: {}. Approve it?", about(&asked.subject));
                self.ask(&what, word);
            }
            false => self.by(word),
        }
    }

    /// Prints what the script would answer; a yes sends it.
    pub(super) fn tell_suggestion(&mut self, key: QuestionKey, answer: Option<Answer>) {
        let Some(answer) = answer else {
            return self.out.line("no row of the script fits this question");
        };
        let said = serde_json::to_string(&answer).unwrap_or_default();
        let what =
            format!("The script's answer to {}: {}, {said}. Send it?", key.id, answer.phrase());
        self.ask(&what, ByWord::Answer { key, answer, remember: false });
    }

    /// Asks a question that yes or no answers.
    fn ask(&mut self, what: &str, word: ByWord) {
        self.asks = Some(word);
        self.out.line(what);
        self.out.line("type yes or no");
    }

    /// Asks for the fields of an answer; `false`: it has none. A call that only needs a yes has fields for
    /// `edit`, not for an answer that was left out.
    fn begin_answer(&mut self, key: &QuestionKey, asked: &QuestionAsked, is_empty: bool) -> bool {
        if is_empty && asked.subject.approves().is_some() {
            return false;
        }
        let Some(fields) = AnswerFields::reply(&asked.subject) else { return false };
        let (key, fields) = (key.clone(), Box::new(fields));
        self.dialog = Some(Dialog::Answer { key, fields, at: 0, lines: Vec::new() });
        self.out.line("an empty line keeps a value; cancel leaves the question open");
        self.tell_field();
        true
    }

    /// Prints which field of the answer the next line is for.
    fn tell_field(&mut self) {
        let Some(Dialog::Answer { fields, at, .. }) = &self.dialog else { return };
        let Some(field) = fields.list.get(*at) else { return };
        let mut line = format!("field {} of {}: {}", at + 1, fields.list.len(), field.name);
        if !field.hint.is_empty() {
            line = format!("{line} ({})", field.hint);
        }
        if let AnswerValue::Choice { choices, .. } = &field.value {
            line = format!("{line}, one of: {}", choices.join("; "));
        }
        let now = field.text();
        if !now.is_empty() {
            line = format!("{line}; now: {now}");
        }
        if field.has_lines() {
            line.push_str("; type its lines, and a single point as the last one");
        }
        self.out.line(&line);
    }

    /// Takes a line of a dialog; `false`: none is open.
    pub(super) fn take_dialog_line(&mut self, line: &str) -> bool {
        let Some(dialog) = self.dialog.take() else { return false };
        if line.trim() == "cancel" {
            self.out.line("left; nothing was sent");
            return true;
        }
        match dialog {
            Dialog::Field(id, lines) if line == END => {
                self.by(ByWord::Field(id, lines.join("\n")));
                self.tell_form_problems();
            }
            Dialog::Message(lines) if line == END => self.by(ByWord::Message(lines.join("\n"))),
            Dialog::Field(id, mut lines) => {
                lines.push(line.to_owned());
                self.dialog = Some(Dialog::Field(id, lines));
            }
            Dialog::Message(mut lines) => {
                lines.push(line.to_owned());
                self.dialog = Some(Dialog::Message(lines));
            }
            Dialog::Answer { key, mut fields, at, mut lines } => {
                let field = fields.list.get_mut(at);
                let has_lines = field.as_ref().is_some_and(|field| field.has_lines());
                let text = match (has_lines, line) {
                    (true, END) => std::mem::take(&mut lines).join("\n"),
                    (true, line) => {
                        lines.push(line.to_owned());
                        self.dialog = Some(Dialog::Answer { key, fields, at, lines });
                        return true;
                    }
                    (false, line) => line.trim().to_owned(),
                };
                let set = match (field, text.is_empty()) {
                    (Some(field), false) => field.set(&text),
                    _ => Ok(()),
                };
                let next = match set {
                    Ok(()) => at + 1,
                    Err(why) => {
                        self.out.line(&why);
                        at
                    }
                };
                match next < fields.list.len() {
                    true => {
                        self.dialog = Some(Dialog::Answer { key, fields, at: next, lines });
                        self.tell_field();
                    }
                    false => self.finish_answer(key, &fields),
                }
            }
        }
        true
    }

    /// All fields are filled in.
    fn finish_answer(&mut self, key: QuestionKey, fields: &AnswerFields) {
        let asked = match self.question(key.id.0) {
            Ok((found, asked)) if found == key => asked,
            _ => return self.out.line(&format!("{} is not open any more", key.id)),
        };
        let made = fields.answer();
        match made.and_then(|answer| asked.subject.check(&answer).map(|()| answer)) {
            Ok(answer @ Answer::Approve { .. })
                if *fields.kind() == AnswerKind::Args && asked.subject.approves().is_some() =>
            {
                let args = fields.args();
                let what = match is_irreversible(&asked) {
                    true => format!("This cannot be undone. Approve it with {args}?"),
                    false => format!("Approve it with {args}?"),
                };
                self.ask(&what, ByWord::Answer { key, answer, remember: false });
            }
            Ok(answer) => self.send_answer(key, &asked, answer),
            Err(why) => {
                let n = key.id.0;
                self.out.line(&format!("not sent: {why}; answer {n} begins again"));
            }
        }
    }

    /// `yes` and `no`: the last question of the program.
    pub(super) fn say_yes_or_no(&mut self, yes: bool) {
        use crate::screen::Action;
        let is_asked = matches!(self.state.overlays.last(), Some(Overlay::Confirm(_)));
        match (self.asks.take(), yes) {
            _ if is_asked => {
                self.by(ByWord::Act(if yes { Action::Confirm } else { Action::Decline }));
            }
            (Some(word), true) => self.by(word),
            (Some(_), false) => self.out.line("left; nothing was sent"),
            (None, _) => self.out.line("nothing is asked; a question of a run: answer 1 yes"),
        }
    }
}

fn takes_yes(subject: &Subject) -> bool {
    subject.approves().is_some()
        || matches!(subject, Subject::Input { .. }) && AnswerFields::reply(subject).is_none()
}

/// A choice by its text or number, with a reason after it.
fn choice(subject: &Subject, said: &str) -> Result<Answer, String> {
    let choices: Vec<String> = subject.choices().iter().map(|it| it.to_string()).collect();
    let of = |at: usize, text: &str| Answer::Choose {
        choice: choices.get(at).map(String::as_str).unwrap_or_default().into(),
        text: text.trim().into(),
    };
    if let Ok(at) = choice_of(&choices, said) {
        return Ok(of(at, ""));
    }
    // A choice may have blanks in it: the longest one that begins the line.
    let begins = |choice: &&String| said.to_lowercase().starts_with(&choice.to_lowercase());
    if let Some(longest) = choices.iter().filter(begins).max_by_key(|choice| choice.len())
        && let Some(at) = choices.iter().position(|choice| choice == longest)
        && let Some(text) = said.get(longest.len()..)
    {
        return Ok(of(at, text.trim_start_matches([',', ':'])));
    }
    let (first, text) = said.split_once(char::is_whitespace).unwrap_or((said, ""));
    choice_of(&choices, first).map(|at| of(at, text))
}

fn read_json(text: &str) -> Result<Answer, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => parse_answer(&fields),
        Ok(_) => Err("it is not a JSON object".to_owned()),
        Err(error) => Err(format!("it is not JSON: {error}")),
    }
}
