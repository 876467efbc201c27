//! The questions of runs and of the program, their answers as typed words, and texts of several lines.

use std::sync::Arc;

use serde_json::{Value, json};

use super::PlainLoop;
use super::start::ROW_CHARS;
use super::words::{ANSWER, Typed, parse};
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::cli::people::{QuestionContext, question_lines, read_answer};
use crate::log::event::question::check_args;
use crate::log::event::{Answer, Command, Initiator, QuestionAsked, QuestionId, RunId, Subject};
use crate::run::questions::is_rememberable;
use crate::screen::by_word::ByWord;
use crate::screen::form::FieldId;
use crate::screen::form::fields::choice_of;
use crate::screen::questions::{QuestionKey, is_irreversible, open_questions};
use crate::screen::run::RunPage;
use crate::screen::windows::Overlay;
use crate::screen::windows::card::fields::{AnswerFields, AnswerKind, AnswerValue};
use crate::screen::windows::confirm::OnYes;
use crate::screen::{Action, Effect};
use crate::words::format;
use crate::words::patterns::words_of;
use crate::words::question::{about, end_text, named_asker};
use crate::words::readable::top_text;

/// The line that ends a text of several lines.
const END: &str = ".";

/// What the next lines are for.
pub(super) enum Dialog {
    /// The answer to a question that takes one line.
    Choice(QuestionKey),
    /// A text of several lines.
    Text { of: TextOf, lines: Vec<String> },
    /// The fields of an answer, one after the other.
    Answer {
        key: QuestionKey,
        fields: Box<AnswerFields>,
        /// The field that the next line is for.
        at: usize,
        lines: Vec<String>,
    },
}

/// What the lines of a text are for.
pub(super) enum TextOf {
    Field(FieldId),
    /// The next message of the session.
    Message,
}

/// How a question is answered, in one line; `here`: it is of the run that is looked at.
pub(super) fn how_to_answer(key: &QuestionKey, asked: &QuestionAsked, here: bool) -> String {
    let n = match here {
        true => key.id.0.to_string(),
        false => format!("{} {}", key.run, key.id.0),
    };
    let ways = ways_to_answer(asked);
    match ways.is_empty() {
        true => format!("type: answer {n}; then it asks for each field"),
        false => format!("type: answer {n} {}", ways.join(", or ")),
    }
}

/// The answers that a line takes.
fn ways_to_answer(asked: &QuestionAsked) -> Vec<String> {
    let subject = &asked.subject;
    let denied = ["no", "no and a reason"].map(str::to_owned);
    let mut ways: Vec<String> = match subject {
        Subject::ToolCall { .. } => {
            let mut ways = vec!["yes".to_owned()];
            ways.extend(denied.clone());
            ways.push("edit".to_owned());
            if is_rememberable(subject) {
                ways.extend(["always".to_owned(), "alike".to_owned()]);
            }
            ways
        }
        Subject::Input { .. } if AnswerFields::reply(subject).is_none() => {
            vec!["yes".to_owned(), "no".to_owned()]
        }
        Subject::Input { .. } => vec!["edit".to_owned(), "no".to_owned()],
        Subject::Agent { choices, .. } if choices.is_empty() => vec!["a text".to_owned()],
        Subject::Turn { .. } => vec!["a text".to_owned()],
        _ => Vec::new(),
    };
    let hands_over = matches!(subject, Subject::Turn { .. });
    ways.extend(subject.choices().iter().map(|choice| match hands_over {
        true => format!("to {choice} and a text"),
        false => choice.to_string(),
    }));
    if matches!(subject, Subject::Permission { .. }) {
        ways.extend(denied);
    }
    if matches!(subject, Subject::InDoubt { .. }) {
        ways.push("json {\"result\":...}".to_owned());
    }
    ways
}

/// The number at the start of a line, as `2` or `q2`, and the rest.
pub(super) fn number_of(rest: &str) -> Option<(u32, &str)> {
    let (number, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let number = number.trim_start_matches(['q', '#']).parse().ok()?;
    Some((number, rest.trim()))
}

/// How a question is named in lines.
pub(super) fn question_name(key: &QuestionKey) -> String {
    format!("question {} of {}", key.id.0, key.run)
}

/// A question whole, a line for each part.
pub(super) fn question_text(asked: &QuestionAsked) -> Vec<String> {
    let id = format!("{} ", asked.id);
    let lines = question_lines(asked, &QuestionContext::default()).into_iter();
    lines.map(|line| line.strip_prefix(&id).map(str::to_owned).unwrap_or(line)).collect()
}

impl PlainLoop {
    pub(super) fn list_questions(&mut self, _: Typed<'_>) -> Result<(), String> {
        let mut lines: Vec<String> = open_questions(&self.state.runs)
            .map(|it| {
                let asked = &it.question.asked;
                let what = visible_within(&about(&asked.subject), ROW_CHARS);
                let by = named_asker(it.page.world(), asked);
                let by = by.map_or_else(String::new, |by| format!(", asked by {by}"));
                format!("{} for {}{by}: {what}", question_name(&it.key()), asked.who)
            })
            .collect();
        lines.extend(self.state.history.waiting(&self.state.runs).map(|row| {
            format!("{} was interrupted and waits for people: open {}, then resume", row.id, row.id)
        }));
        for page in self.state.live_runs() {
            for it in page.world().questions.remembered() {
                let uses = format::count_noun(it.uses, "call");
                lines.push(format!(
                    "{} remembers that every call of {} by {} is approved, used for {uses}: withdraw {} {}",
                    page.id(),
                    it.tool,
                    it.agent.as_deref().unwrap_or("the run"),
                    page.id(),
                    it.id.0
                ));
            }
        }
        self.print_list(&lines, "no question is open")
    }

    /// `question [RUN] N`: what somebody reads who answers it.
    pub(super) fn print_question(&mut self, typed: Typed<'_>) -> Result<(), String> {
        let (run, number, _) = self.question_number(typed.rest).map_err(|_| "type: question N")?;
        let (key, asked) = self.question(run.as_ref(), number)?;
        let page = self.state.run(&key.run).ok_or("the run is gone")?;
        let mut lines = vec![format!("{} for {}:", question_name(&key), asked.who)];
        lines.extend(question_lines_of(page, &asked));
        let how = how_to_answer(&key, &asked, self.is_here(&key));
        lines.push(how);
        self.out.each(&lines);
        Ok(())
    }

    /// The number of a question after the run that it may name, and the rest of the line.
    pub(super) fn question_number<'l>(
        &self,
        rest: &'l str,
    ) -> Result<(Option<RunId>, u32, &'l str), String> {
        if let Some((number, rest)) = number_of(rest) {
            return Ok((None, number, rest));
        }
        let wrong = || "say which question: answer 2 yes, or with its run: answer RUN 2 yes";
        let (run, rest) = rest.split_once(char::is_whitespace).ok_or_else(wrong)?;
        let (number, rest) = number_of(rest.trim()).ok_or_else(wrong)?;
        Ok((Some(self.run_named(run)?), number, rest))
    }

    /// Whether a question is of the run that is looked at.
    pub(super) fn is_here(&self, key: &QuestionKey) -> bool {
        self.state.visible_run().is_some_and(|page| *page.id() == key.run)
    }

    /// The open question with this number: of the run that is named or here, else of the only run that has it.
    pub(super) fn question(
        &self,
        run: Option<&RunId>,
        number: u32,
    ) -> Result<(QuestionKey, Arc<QuestionAsked>), String> {
        let here = self.state.visible_run().map(|page| page.id());
        let open = open_questions(&self.state.runs).filter(|it| {
            it.question.asked.id.0 == number && run.is_none_or(|run| it.page.id() == run)
        });
        let mut found: Vec<_> = open.map(|it| (it.key(), Arc::clone(&it.question.asked))).collect();
        if let Some(at) = found.iter().position(|(key, _)| Some(&key.run) == here) {
            return Ok(found.swap_remove(at));
        }
        match &found[..] {
            [] => Err(self.why_not_open(run.or(here), number)),
            [_] => Ok(found.swap_remove(0)),
            several => {
                let runs = several.iter().map(|(key, _)| key.run.as_str());
                let runs = runs.collect::<Vec<_>>().join(" and ");
                Err(format!(
                    "{runs} ask a question {number}: name the run, as in answer RUN {number}"
                ))
            }
        }
    }

    /// Why a question cannot be answered: how it ended, or that there is none.
    fn why_not_open(&self, run: Option<&RunId>, number: u32) -> String {
        let pages = self.state.runs.iter().filter(|page| run.is_none_or(|run| page.id() == run));
        let mut rows = pages.flat_map(|page| {
            let rows = page.world().questions.rows().iter();
            rows.filter(|row| row.question.asked.id.0 == number).map(move |row| (page, row))
        });
        let Some((page, row)) = rows.next() else {
            let of = run.map(|run| format!(" of {run}")).unwrap_or_default();
            return format!("there is no question {number}{of}: questions lists the open ones");
        };
        let name = format!("question {number} of {}", page.id());
        let Some((at, end)) = &row.ended else { return format!("{name} has ended with its run") };
        let at = format::time_in_run(page.world().progress.run_time(*at));
        format!("{name} was {} at {at}", end_text(&row.question.asked, end))
    }

    /// `answer N …`, `answer RUN N …`.
    pub(super) fn answer(&mut self, typed: Typed<'_>) -> Result<(), String> {
        let (run, number, said) = self.question_number(typed.rest)?;
        let (key, asked) = self.question(run.as_ref(), number)?;
        self.answer_with(key, &asked, said);
        Ok(())
    }

    pub(super) fn suggest(&mut self, typed: Typed<'_>) -> Result<(), String> {
        let (run, number, _) = self.question_number(typed.rest)?;
        let (key, _) = self.question(run.as_ref(), number)?;
        self.by(ByWord::Do(Effect::Suggest { run: key.run, id: key.id }));
        Ok(())
    }

    pub(super) fn withdraw(&mut self, typed: Typed<'_>) -> Result<(), String> {
        let (run, number, _) = self.question_number(typed.rest)?;
        let command = Command::WithdrawApproval { id: QuestionId(number), by: Initiator::You };
        let Some(run) = run else { return self.send(command) };
        self.command(run, command);
        Ok(())
    }

    /// Answers a question with a typed text.
    fn answer_with(&mut self, key: QuestionKey, asked: &QuestionAsked, said: &str) {
        let subject = &asked.subject;
        let (first, more) = said.split_once(char::is_whitespace).unwrap_or((said, ""));
        let more = more.trim();
        // People write `no, because …`.
        let word = first.trim_end_matches(',').to_lowercase();
        let is_call = matches!(subject, Subject::ToolCall { .. });
        let given = match word.as_str() {
            "edit" | "" if self.begin_answer(&key, asked, first.is_empty()) => return,
            "" => return self.begin_choice(key, asked),
            "edit" if is_call => Err("this call has no arguments to edit".to_owned()),
            "json" => read_answer(more),
            "yes" | "y" | "approve" if takes_yes(subject) => Ok(Answer::Approve { args: None }),
            "always" | "alike" if is_call && !is_rememberable(subject) => {
                Err("a call that cannot be undone must be approved one at a time".to_owned())
            }
            "always" if is_call => {
                let tool = subject.approves().map(ToString::to_string).unwrap_or_default();
                let by = asked.by.as_deref().unwrap_or("the run");
                let what = format!(
                    "Approve every later call of {tool} by {by} in {}, with any arguments?",
                    key.run
                );
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
            // It is probably not meant as the text itself.
            "yes" | "no"
                if more.is_empty()
                    && matches!(subject, Subject::Turn { .. } | Subject::Agent { .. })
                    && subject.choices().iter().all(|it| **it != *said) =>
            {
                let what = format!("{} takes a text. Send `{said}`?", question_name(&key));
                let answer = Answer::Text { text: said.into() };
                return self.ask(&what, ByWord::Answer { key, answer, remember: false });
            }
            _ if matches!(subject, Subject::Turn { .. }) => Ok(Answer::Text { text: said.into() }),
            _ if !subject.choices().is_empty() => choice(subject, said),
            _ => Ok(Answer::Text { text: said.into() }),
        };
        match given.and_then(|answer| subject.check(&answer).map(|()| answer)) {
            Ok(answer) => self.send_answer(key, asked, answer),
            Err(why) => {
                self.out.line(&format!("not sent: {why}"));
                let how = how_to_answer(&key, asked, self.is_here(&key));
                self.out.line(&how);
            }
        }
    }

    /// Asks for an answer that is one line: the next line is the answer.
    fn begin_choice(&mut self, key: QuestionKey, asked: &QuestionAsked) {
        let what = visible_within(&about(&asked.subject), REASON_CHARS);
        let ways = ways_to_answer(asked).join(", or ");
        self.out.line(&format!("{}: {what}", question_name(&key)));
        self.out.line(&format!("type {ways}; cancel leaves the question open"));
        self.dialog = Some(Dialog::Choice(key));
    }

    /// Sends an answer; asks first where it approves what cannot be undone.
    fn send_answer(&mut self, key: QuestionKey, asked: &QuestionAsked, answer: Answer) {
        let approves = matches!(answer, Answer::Approve { .. });
        let word = ByWord::Answer { key: key.clone(), answer, remember: false };
        match approves && is_irreversible(asked) {
            true => {
                let what = visible_within(&about(&asked.subject), REASON_CHARS);
                let name = question_name(&key);
                self.ask(&format!("{name} cannot be undone: {what}. Approve it?"), word);
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
        let name = question_name(&key);
        let what = format!("The script's answer to {name}: {}, {said}. Send it?", answer.phrase());
        self.ask(&what, ByWord::Answer { key, answer, remember: false });
    }

    /// Asks a question that yes or no answers.
    fn ask(&mut self, what: &str, word: ByWord) {
        self.asks = Some((what.to_owned(), word));
        self.out.line(what);
        self.out.line("type yes or no");
    }

    /// The question that yes or no answers, if one is open.
    pub(super) fn pending(&self) -> Option<String> {
        match (self.state.overlays.last(), &self.asks) {
            (Some(Overlay::Confirm(asked)), _) => Some(asked.question.clone()),
            (_, Some((what, _))) => Some(what.clone()),
            _ => None,
        }
    }

    /// Asks for the fields of an answer; `false`: it has none. A call that only needs a yes has fields for
    /// `edit`, not for an answer that was left out.
    fn begin_answer(&mut self, key: &QuestionKey, asked: &QuestionAsked, is_empty: bool) -> bool {
        if is_empty && asked.subject.approves().is_some() {
            return false;
        }
        let Some(fields) = AnswerFields::reply(&asked.subject) else { return false };
        let (shown, key, fields) = (key.clone(), key.clone(), Box::new(fields));
        self.dialog = Some(Dialog::Answer { key, fields, at: 0, lines: Vec::new() });
        self.out.line(&format!("{}, field by field", question_name(&shown)));
        self.out.line("an empty line keeps a value; cancel leaves the question open");
        self.tell_field();
        true
    }

    /// Prints which field of the answer the next line is for.
    fn tell_field(&mut self) {
        let Some(Dialog::Answer { fields, at, .. }) = &self.dialog else { return };
        let Some(field) = fields.list.get(*at) else { return };
        let mut line = format!("field {} of {}: {}", at + 1, fields.list.len(), field.label);
        if !field.hint.is_empty() {
            line = format!("{line} ({})", field.hint);
        }
        match &field.value {
            AnswerValue::Choice { choices, .. } => {
                line = format!("{line}, one of: {}", choices.join("; "));
            }
            AnswerValue::Several { choices, .. } => {
                line = format!("{line}, any of, with commas: {}", choices.join("; "));
            }
            AnswerValue::Text(_) => {}
        }
        if !field.about.is_empty() {
            line = format!("{line}; {}", field.about);
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
            let open = match &dialog {
                Dialog::Choice(key) | Dialog::Answer { key, .. } => {
                    format!("; {} stays open", question_name(key))
                }
                Dialog::Text { .. } => String::new(),
            };
            self.out.line(&format!("left: nothing was sent{open}"));
            return true;
        }
        match dialog {
            Dialog::Choice(key) => return self.take_choice(key, line),
            Dialog::Text { of, lines } if line == END => self.take_text(of, &lines.join("\n")),
            Dialog::Text { of, mut lines } => {
                lines.push(line.to_owned());
                self.dialog = Some(Dialog::Text { of, lines });
            }
            Dialog::Answer { key, fields, at, mut lines } => {
                let has_lines = fields.list.get(at).is_some_and(|field| field.has_lines());
                if has_lines && line != END {
                    lines.push(line.to_owned());
                    self.dialog = Some(Dialog::Answer { key, fields, at, lines });
                    return true;
                }
                let text = if has_lines { lines.join("\n") } else { line.trim().to_owned() };
                self.take_field(key, fields, at, &text);
            }
        }
        true
    }

    /// Begins a text of several lines: they are typed next.
    pub(super) fn begin_text(&mut self, of: TextOf) {
        self.dialog = Some(Dialog::Text { of, lines: Vec::new() });
        self.out.line("type its lines, and a single point as the last one; cancel leaves");
    }

    fn take_text(&mut self, of: TextOf, text: &str) {
        match of {
            TextOf::Field(id) => self.fill_in(id, text.to_owned()),
            TextOf::Message if text.trim().is_empty() => {
                self.out.line("no text: nothing was sent");
            }
            TextOf::Message => self.by(ByWord::Message(text.to_owned())),
        }
    }

    /// Takes the text of a field of an answer, and asks for the next one; after the last it is sent.
    fn take_field(
        &mut self,
        key: QuestionKey,
        mut fields: Box<AnswerFields>,
        at: usize,
        text: &str,
    ) {
        let before = fields.list.get(at).map(|field| field.text());
        let set = match fields.list.get_mut(at) {
            Some(field) if !text.is_empty() => field.set(text),
            _ => Ok(()),
        };
        let next = match set.and_then(|()| self.check_field(&key, &fields, at)) {
            Ok(()) => at + 1,
            Err(why) => {
                self.out.line(&format!("not taken: {why}"));
                // An empty line must not keep a refused text.
                if let (Some(field), Some(before)) = (fields.list.get_mut(at), &before) {
                    let _ = field.set(before);
                }
                at
            }
        };
        if next >= fields.list.len() {
            return self.finish_answer(key, &fields);
        }
        self.dialog = Some(Dialog::Answer { key, fields, at: next, lines: Vec::new() });
        self.tell_field();
    }

    /// Takes the line that answers a question; a word that only reads leaves it open.
    fn take_choice(&mut self, key: QuestionKey, line: &str) -> bool {
        match parse(line) {
            Ok(Typed { word, .. }) if word.word == ANSWER => return false,
            Ok(Typed { word, .. }) if word.reads => {
                self.dialog = Some(Dialog::Choice(key));
                return false;
            }
            _ => {}
        }
        match self.question(Some(&key.run), key.id.0) {
            Ok((key, asked)) if line.trim().is_empty() => self.begin_choice(key, &asked),
            Ok((key, asked)) => self.answer_with(key, &asked, line.trim()),
            Err(why) => self.out.line(&why),
        }
        true
    }

    /// Checks the field that was typed, so that a wrong value is typed again at once.
    fn check_field(
        &self,
        key: &QuestionKey,
        fields: &AnswerFields,
        at: usize,
    ) -> Result<(), String> {
        let Some(field) = fields.list.get(at) else { return Ok(()) };
        let Ok((_, asked)) = self.question(Some(&key.run), key.id.0) else { return Ok(()) };
        if let Subject::ToolCall { parameters, .. } | Subject::Input { parameters, .. } =
            &asked.subject
        {
            let part = |key: &str| parameters.get(key).and_then(|it| it.get(&field.name));
            let required = parameters.get("required").and_then(Value::as_array);
            let is_required =
                required.is_some_and(|all| all.iter().any(|it| *it == field.name.as_str()));
            let required: Vec<&str> =
                is_required.then_some(field.name.as_str()).into_iter().collect();
            let Some(property) = part("properties") else { return Ok(()) };
            let schema = json!({
                "properties": { field.name.as_str(): property }, "required": required,
            });
            let mut args = fields.args();
            if let Some(args) = args.as_object_mut() {
                args.retain(|name, _| *name == field.name);
            }
            return check_args(&schema, &args, "argument");
        }
        // A reply may be empty where a later field hands over.
        if *fields.kind() == AnswerKind::Turn && at + 1 < fields.list.len() {
            return Ok(());
        }
        match fields.answer() {
            Err(why) if why.contains(field.name.trim_end_matches('s')) => Err(why),
            _ => Ok(()),
        }
    }

    /// All fields are filled in.
    fn finish_answer(&mut self, key: QuestionKey, fields: &AnswerFields) {
        let asked = match self.question(Some(&key.run), key.id.0) {
            Ok((_, asked)) => asked,
            Err(why) => return self.out.line(&format!("not sent: {why}")),
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

    /// Whether the open question is that before quitting, with runs that can be left for later.
    pub(super) fn has_later(&self) -> bool {
        matches!(self.state.overlays.last(), Some(Overlay::Confirm(asked)) if asked.has_later())
    }

    pub(super) fn reply(&mut self, yes: bool) -> Result<(), String> {
        self.say_yes_or_no(yes);
        Ok(())
    }

    /// `yes` and `no`: the last question of the program.
    pub(super) fn say_yes_or_no(&mut self, yes: bool) {
        if let Some(Overlay::Confirm(asked)) = self.state.overlays.last() {
            let said = match (&asked.on_yes, yes) {
                (OnYes::Discard, true) => "the form is closed; nothing was started".to_owned(),
                (OnYes::Discard, false) => "the form stays open".to_owned(),
                (OnYes::Trust { .. }, false) => "not allowed; nothing was started".to_owned(),
                (_, false) => "left: nothing was done".to_owned(),
                (_, true) => String::new(),
            };
            self.by(ByWord::Act(if yes { Action::Confirm } else { Action::Decline }));
            if !said.is_empty() {
                self.out.line(&said);
            }
            return;
        }
        match (self.asks.take(), yes) {
            (Some((_, word)), true) => self.by(word),
            (Some(_), false) => self.out.line("left: nothing was sent"),
            (None, _) => {
                let open: Vec<_> = open_questions(&self.state.runs)
                    .map(|it| format!("answer {} {}", it.page.id(), it.question.asked.id.0))
                    .collect();
                let how = match &open[..] {
                    [] => "no question is open".to_owned(),
                    [one] => format!("a question of a run is answered with: {one}"),
                    _ => format!("questions of runs are answered with: {}", open.join(", ")),
                };
                self.out.line(&format!("nothing waits for yes or no; {how}"));
            }
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

/// What somebody reads who answers a question, as the card of the dashboard has it.
fn question_lines_of(page: &RunPage, asked: &QuestionAsked) -> Vec<String> {
    let world = page.world();
    let mut lines = match &asked.subject {
        Subject::Seat { round, role } => {
            let mut lines = vec![format!("say what {role} says in round {round}")];
            let goal = world.head.as_ref().map(|head| head.goal.to_string()).unwrap_or_default();
            lines.extend(goal.lines().map(|line| format!("goal: {line}")));
            lines.extend(facts_of(page));
            lines.extend(words_of(world).map(|words| words.said_before()).unwrap_or_default());
            lines
        }
        // Its line says what is asked.
        Subject::Decision { .. } => {
            let goal = world.head.as_ref().map(|head| head.goal.to_string()).unwrap_or_default();
            let mut lines: Vec<String> = goal.lines().map(|line| format!("goal: {line}")).collect();
            lines.extend(facts_of(page));
            lines.extend(words_of(world).map(|words| words.said_before()).unwrap_or_default());
            lines
        }
        _ => Vec::new(),
    };
    // The first line names the question, which was printed.
    lines.extend(question_text(asked).into_iter().skip(1).filter(|line| {
        !(matches!(asked.subject, Subject::Decision { .. }) && line.starts_with("stances"))
    }));
    if let Some(tool) = asked.subject.approves() {
        let by = named_asker(world, asked);
        lines.insert(0, format!("{} asks to call {tool}", by.as_deref().unwrap_or("the run")));
    }
    if let Subject::Turn { .. } | Subject::Agent { .. } = &asked.subject
        && let Some(head) = &world.head
    {
        lines.insert(0, format!("goal: {}", head.goal.lines().next().unwrap_or_default()));
    }
    lines
}

/// The facts of the scenario, where the run was started here.
fn facts_of(page: &RunPage) -> Vec<String> {
    let facts = page.launch().and_then(|launch| launch.scenario.facts.as_object());
    let facts = facts.into_iter().flatten();
    facts.map(|(name, value)| format!("fact {name}: {}", value_line(value))).collect()
}

/// A value in one line: a text without quotes.
fn value_line(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(_) => top_text(value),
        other => other.to_string(),
    }
}
