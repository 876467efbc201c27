//! What the client is shown of a run: its calls and its steps, the questions that it asks, and how it ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::client::MAX_TEXT;
use crate::base::time::duration_text;
use crate::base::visible::{REASON_CHARS, first_bytes, visible_lines, visible_within};
use crate::cli::people::{QuestionContext, example, parse_answer, question_lines};
use crate::cli::streams::StreamStyle;
use crate::log::event::question::{LEAVE_OUT, STOP};
use crate::log::event::{
    Answer, Asks, CallStarted, Event, EventKind, Purpose, QuestionAsked, QuestionId, RunId, SpanId,
    Subject, World, safe_json,
};
use crate::log::world::Outcome;
use crate::run::questions::is_rememberable;
use crate::screen::theme::Theme;
use crate::words::closing::cut_replies;
use crate::words::patterns::{RunStep, RunStepState, words_of};
use crate::words::question::{asker, asks_text, closed_text, fallback_said, remembered_text};
use crate::words::readable::top_text;
use crate::words::sentence::{failure_name, sentence};
use crate::words::tool_sentence::{fallback_text, progress_text};
use crate::words::verdict::RunVerdict;
use crate::words::{format, headless};

/// Length limit of a title, in characters.
const TITLE_CHARS: usize = 200;

/// Most steps of a plan.
const MAX_STEPS: usize = 100;

/// What the client was shown of a run.
pub struct RunUpdates {
    run: RunId,
    /// The calls that have not ended.
    calls: BTreeMap<SpanId, ShownCall>,
    /// The questions that were put to the user, each with the id of its call.
    asked: BTreeMap<QuestionId, String>,
    plan: Vec<Value>,
}

/// A call that the client shows.
#[derive(Default)]
struct ShownCall {
    is_started: bool,
    /// The text of its last attempt.
    text: String,
    result: Option<Value>,
}

impl RunUpdates {
    pub fn new(run: RunId) -> Self {
        Self { run, calls: BTreeMap::new(), asked: BTreeMap::new(), plan: Vec::new() }
    }

    fn call_id(&self, call: SpanId) -> String {
        format!("{}/{}", self.run, call.0)
    }

    /// The updates for an event. `world` already includes it.
    pub fn event(&mut self, event: &Event, world: &World) -> Vec<Value> {
        let span = event.span;
        let of_attempt = || world.spans.get(span).map(|attempt| attempt.parent);
        match &event.kind {
            EventKind::CallStarted(call) if call.purpose.asks() != Asks::Model => {
                self.calls.insert(span, ShownCall::default());
                vec![self.call_started(event, call, world)]
            }
            EventKind::AttemptStarted { parent, .. } => {
                let shown = self.calls.get_mut(parent).filter(|shown| !shown.is_started);
                let Some(shown) = shown else { return Vec::new() };
                shown.is_started = true;
                vec![self.call_update(*parent, json!({ "status": "in_progress" }))]
            }
            EventKind::AttemptProgressed { text, done, total } => {
                let call = of_attempt().filter(|call| self.calls.contains_key(call));
                let text = progress_text(text, *done, *total);
                let update = |call| self.call_update(call, json!({ "content": content(&text) }));
                call.map(update).into_iter().collect()
            }
            EventKind::AttemptAnswered(reply) => {
                if let Some(shown) = of_attempt().and_then(|call| self.calls.get_mut(&call)) {
                    shown.text = match reply.result.as_deref() {
                        Some(result) => top_text(result),
                        None if world.questions.is_fallback(span) => fallback_said(&reply.text),
                        None => reply.text.to_string(),
                    };
                    shown.result = reply.result.as_deref().filter(|it| is_short(it)).cloned();
                }
                Vec::new()
            }
            EventKind::AttemptFailed(failed) => {
                if let Some(shown) = of_attempt().and_then(|call| self.calls.get_mut(&call)) {
                    let name = failure_name(failed.class, failed.status);
                    shown.text = format!("{name}: {}", failed.text);
                }
                Vec::new()
            }
            EventKind::CallAnswered { .. } => self.call_ended(span, "completed", None),
            EventKind::CallFailed { reason, .. } => {
                self.call_ended(span, "failed", Some(reason.phrase().into_owned()))
            }
            EventKind::CallDegraded { reason, by, .. } => {
                let text = format!("{}; fallback: {}", reason.phrase(), fallback_text(*by));
                self.call_ended(span, "completed", Some(text))
            }
            EventKind::QuestionAnswered(it) => self.question_ended(it.id, world),
            EventKind::QuestionWithdrawn { id, .. } => self.question_ended(*id, world),
            _ => Vec::new(),
        }
    }

    fn call_started(&self, event: &Event, call: &CallStarted, world: &World) -> Value {
        let it = sentence(event, world);
        let title = format!("{} {}", it.subject, it.text);
        let mut update = json!({
            "sessionUpdate": "tool_call",
            "toolCallId": self.call_id(event.span),
            "title": visible_within(title.trim(), TITLE_CHARS),
            "kind": kind(call, world),
            "status": "pending",
        });
        if let Some(args) = call.args.as_deref().filter(|args| is_short(args)) {
            update["rawInput"] = args.clone();
        }
        update
    }

    fn call_update(&self, call: SpanId, fields: Value) -> Value {
        update_of(&self.call_id(call), fields)
    }

    fn call_ended(&mut self, call: SpanId, status: &str, why: Option<String>) -> Vec<Value> {
        let Some(ShownCall { text, result, .. }) = self.calls.remove(&call) else {
            return Vec::new();
        };
        let texts = [why, Some(text).filter(|text| !text.is_empty())];
        let text = texts.into_iter().flatten().collect::<Vec<_>>().join("\n");
        let mut fields = json!({ "status": status });
        if !text.is_empty() {
            fields["content"] = content(&text);
        }
        if let Some(result) = result {
            fields["rawOutput"] = result;
        }
        vec![self.call_update(call, fields)]
    }

    /// The update for a question that has ended and was shown as a separate tool call.
    fn question_ended(&mut self, id: QuestionId, world: &World) -> Vec<Value> {
        let ended = world.questions.ended().iter().rfind(|it| it.question.asked.id == id);
        let (Some(call), Some(ended)) = (self.asked.remove(&id), ended) else { return Vec::new() };
        if call != self.question_id(id) {
            return Vec::new();
        }
        let text = closed_text(&ended.question.asked, &ended.end);
        vec![update_of(&call, json!({ "status": "completed", "content": content(&text) }))]
    }

    fn question_id(&self, id: QuestionId) -> String {
        format!("{}/{id}", self.run)
    }

    /// What happened, in a line for the user who wants to know: what is not shown as a call or as the answer.
    pub fn thought(&self, event: &Event, world: &World) -> Option<String> {
        if matches!(
            event.kind,
            EventKind::RunStarted(_)
                | EventKind::RunClosed(_)
                | EventKind::AnswerComposed { .. }
                | EventKind::QuestionAsked(_)
        ) {
            return None;
        }
        let style = StreamStyle::new(false, Theme::default(), false);
        let lines = headless::lines(event, world);
        let lines = lines.iter().map(|line| {
            let line = style.line(line);
            // Without the columns of a terminal.
            let words: Vec<&str> = line.split_whitespace().collect();
            words.join(" ") + "\n"
        });
        let lines: String = lines.collect();
        (!lines.is_empty()).then_some(lines)
    }

    /// The steps of the run, if they have changed.
    pub fn plan(&mut self, world: &World) -> Option<Value> {
        let steps = words_of(world)?.steps(world);
        let entry = |step: &RunStep| {
            json!({
                "content": visible_within(&step.text, TITLE_CHARS),
                "priority": if step.is_optional { "low" } else { "medium" },
                "status": match step.state {
                    RunStepState::Waiting => "pending",
                    RunStepState::Running => "in_progress",
                    RunStepState::Ended => "completed",
                },
            })
        };
        let plan: Vec<Value> = steps.iter().take(MAX_STEPS).map(entry).collect();
        if plan == self.plan {
            return None;
        }
        self.plan.clone_from(&plan);
        Some(json!({ "sessionUpdate": "plan", "entries": plan }))
    }

    /// The updates at the end of the run: calls that were cut off.
    pub fn end(&mut self, world: &World) -> Vec<Value> {
        let open: Vec<SpanId> = self.calls.keys().copied().collect();
        let ended = open.into_iter().flat_map(|call| self.call_ended(call, "failed", None));
        let mut updates: Vec<Value> = ended.collect();
        updates.extend(self.plan(world));
        updates
    }

    /// A request for permission that puts a question to the user; `None`: no choice can be the answer.
    pub fn permission(
        &mut self,
        session: &str,
        asked: &QuestionAsked,
        world: &World,
    ) -> Option<Value> {
        let options = options(&asked.subject, asked.by.as_deref())?;
        let open = world.questions.get(asked.id)?;
        let of_call = asked.subject.approves().is_some() && self.calls.contains_key(&open.span);
        let id = match of_call {
            true => self.call_id(open.span),
            false => self.question_id(asked.id),
        };
        self.asked.insert(asked.id, id.clone());
        let mut call = json!({
            "toolCallId": id,
            "title": visible_within(&asks_text(&asker(open, world), asked), TITLE_CHARS),
            "kind": "other",
            "status": "pending",
            // Whole: what is approved is what is shown.
            "content": [text_content(&question_lines(asked, &QuestionContext::of(world, asked)).join("\n"))],
        });
        if let Subject::ToolCall { args, .. } | Subject::InDoubt { args, .. } = &asked.subject {
            call["rawInput"] = Value::clone(args);
        }
        let options = options.into_iter().map(
            |option| json!({ "optionId": option.id, "name": option.name, "kind": option.kind }),
        );
        let options: Vec<Value> = options.collect();
        Some(json!({ "sessionId": session, "toolCall": call, "options": options }))
    }
}

fn update_of(call: &str, mut fields: Value) -> Value {
    fields["sessionUpdate"] = "tool_call_update".into();
    fields["toolCallId"] = call.into();
    fields
}

fn text_content(text: &str) -> Value {
    let text = visible_lines(text);
    json!({ "type": "content", "content": { "type": "text", "text": text } })
}

/// A text as the content of a call, cut to its beginning.
fn content(text: &str) -> Value {
    let shown = first_bytes(text, MAX_TEXT);
    match text.len() - shown.len() {
        0 => json!([text_content(text)]),
        cut => json!([text_content(&format!("{shown}…\n({} more)", format::bytes(cut as u64)))]),
    }
}

fn is_short(value: &Value) -> bool {
    safe_json::line(value).is_ok_and(|json| json.len() <= MAX_TEXT)
}

/// What kind of call it is, in the words of the protocol.
fn kind(call: &CallStarted, world: &World) -> &'static str {
    match call.purpose {
        Purpose::Search => return "search",
        Purpose::Read { .. } => return "read",
        _ => {}
    }
    let heads = world.head.iter().flat_map(|head| &head.tools);
    match heads.filter(|head| head.name == call.tool).map(|head| head.kind.as_str()).next() {
        Some("search") => "search",
        Some("read") => "read",
        Some("command") => "execute",
        Some("http") => "fetch",
        _ => "other",
    }
}

/// An option of a request for permission.
struct PermissionOption {
    id: String,
    name: String,
    kind: &'static str,
    answer: PermissionAnswer,
}

/// What the user has chosen.
pub struct PermissionAnswer {
    pub answer: Answer,
    /// Equal calls are approved in this run from now on.
    pub remember: bool,
}

/// The options that answer a question; `None`: it needs a text or a form.
fn options(subject: &Subject, by: Option<&str>) -> Option<Vec<PermissionOption>> {
    let option = |id: &str, name: &str, kind, answer| {
        let answer = PermissionAnswer { answer, remember: kind == "allow_always" };
        PermissionOption { id: id.to_owned(), name: name.to_owned(), kind, answer }
    };
    let approve = || Answer::Approve { args: None };
    let deny = || Answer::Deny { text: "".into() };
    match subject {
        Subject::ToolCall { tool, .. } => {
            let mut options = vec![option("approve", "Approve", "allow_once", approve())];
            if is_rememberable(subject) {
                let rule = remembered_text(tool.as_str(), by);
                options.push(option(
                    "remember",
                    &format!("Always: {rule}"),
                    "allow_always",
                    approve(),
                ));
            }
            options.push(option("deny", "Deny", "reject_once", deny()));
            Some(options)
        }
        // The form needs nothing.
        Subject::Input { .. } if subject.check(&approve()).is_ok() => Some(vec![
            option("approve", "Confirm", "allow_once", approve()),
            option("deny", "Decline", "reject_once", deny()),
        ]),
        Subject::Input { .. } | Subject::Turn { .. } | Subject::Seat { .. } => None,
        _ => {
            let choices = subject.choices();
            let choices = choices.iter().enumerate().map(|(nth, choice)| {
                let kind = match &**choice {
                    STOP | LEAVE_OUT => "reject_once",
                    _ => "allow_once",
                };
                let answer = Answer::Choose { choice: choice.clone(), text: "".into() };
                let name = match subject {
                    Subject::Agent { .. } | Subject::Permission { .. } => {
                        visible_within(choice, TITLE_CHARS)
                    }
                    _ => choice.replace('_', " "),
                };
                option(&format!("choice-{}", nth + 1), &name, kind, answer)
            });
            let denial = subject.can_be_denied();
            let denial = denial.then(|| option("deny", "Deny", "reject_once", deny()));
            let options: Vec<_> = choices.chain(denial).collect();
            (!options.is_empty()).then_some(options)
        }
    }
}

/// What the user has chosen, from the response to a request for permission; `None`: nothing that was offered.
pub fn permission_answer(subject: &Subject, response: &Value) -> Option<PermissionAnswer> {
    let outcome = response.get("outcome")?;
    let id = outcome.get("optionId").filter(|_| outcome["outcome"] == "selected")?;
    let chosen = options(subject, None)?.into_iter().find(|option| *id == *option.id)?;
    Some(chosen.answer)
}

/// A question that the next prompt answers, for the user.
pub fn prompt_question(asked: &QuestionAsked, context: &QuestionContext, run: &RunId) -> String {
    let (id, subject) = (asked.id, &asked.subject);
    let how = match subject {
        Subject::ToolCall { .. } => "`approve` or `deny`".to_owned(),
        _ if has_choices(subject) => "one of the choices".to_owned(),
        Subject::Turn { hand_over_to, .. } if !hand_over_to.is_empty() => {
            format!("a text, or {}", json!({ "hand_over_to": hand_over_to[0], "text": "…" }))
        }
        Subject::Turn { .. } | Subject::Agent { .. } => "a text".to_owned(),
        _ => format!("such as {}", example(asked)),
    };
    let lines = question_lines(asked, context).join("\n\n");
    format!(
        "{lines}\n\nThe next prompt answers {id}: {how}. In a terminal: `roundtable answer {run} {id}`\n\n"
    )
}

/// Whether one of the choices is the answer.
fn has_choices(subject: &Subject) -> bool {
    !matches!(subject, Subject::Turn { .. }) && !subject.choices().is_empty()
}

/// A prompt as the answer to a question: an object of JSON as `roundtable run --people ask` reads it, the form of
/// a server filled in, a choice, or a text.
///
/// # Errors
/// It is none, or not one to this question.
pub fn prompt_answer(subject: &Subject, prompt: &str) -> Result<Answer, String> {
    let text = || Arc::<str>::from(prompt);
    let object = serde_json::from_str::<Map<String, Value>>(prompt).ok();
    let of_object = object.as_ref().map(|fields| {
        let whole = || Arc::new(Value::Object(fields.clone()));
        match subject {
            Subject::Input { .. } if !fields.contains_key("approve") => match fields.get("args") {
                Some(args) => Ok(Answer::Approve { args: Some(Arc::new(args.clone())) }),
                None => Ok(Answer::Approve { args: Some(whole()) }),
            },
            Subject::Seat { .. } if !fields.contains_key("contribution") => {
                Ok(Answer::Contribute { contribution: whole() })
            }
            _ => parse_answer(fields),
        }
    });
    let takes_text = matches!(subject, Subject::Turn { .. } | Subject::Agent { .. });
    let answer = match (of_object, prompt) {
        (_, "") => return Err("the prompt is empty".to_owned()),
        (Some(Ok(answer)), _) if subject.check(&answer).is_ok() || !takes_text => answer,
        (Some(Err(why)), _) if !takes_text => return Err(why),
        (_, "approve") if subject.can_be_denied() => Answer::Approve { args: None },
        (_, "deny") if subject.can_be_denied() => Answer::Deny { text: "".into() },
        _ if has_choices(subject) => Answer::Choose { choice: text(), text: "".into() },
        _ => Answer::Text { text: text() },
    };
    subject.check(&answer)?;
    Ok(answer)
}

/// The answer of a run, how it ended, and which run it was.
pub fn end_text(outcome: &Outcome, world: &World) -> String {
    let words = words_of(world);
    let report = words.filter(|words| words.has_report(world)).and_then(|it| it.report(world));
    let answer = report.or_else(|| world.progress.answer.as_deref().map(str::to_owned));
    let mut parts: Vec<String> = answer.into_iter().collect();
    parts.extend(cut_replies(world));
    let closed = world.progress.closed.as_deref();
    let verdict = closed.map(|closed| RunVerdict::of_run(world, closed));
    // The verdict may have the error.
    let is_said = verdict.as_ref().is_some_and(|verdict| verdict.cause.is_some());
    let said = [outcome.error.as_deref().filter(|_| !is_said), world.stop_advice()];
    parts.extend(said.into_iter().flatten().map(str::to_owned));
    let (how, id) = verdict.map_or_else(Default::default, |verdict| (verdict.text(), verdict.id));
    let how = visible_within(&how, TITLE_CHARS);
    let id = id.map(|id| format!(" ({})", visible_within(&id, REASON_CHARS)));
    let took = duration_text(Duration::from_millis(outcome.elapsed_ms));
    let cost = outcome.usage.cost_usd.map(|cost| format!(", {} (estimate)", format::usd(cost)));
    let (id, cost, run) = (id.unwrap_or_default(), cost.unwrap_or_default(), &outcome.run_id);
    parts.push(format!("{how}{id}, {took}{cost}: `roundtable show {run}`\n"));
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::people::Effects;

    fn agent(choices: &[&str]) -> Subject {
        let choices = choices.iter().map(|choice| Arc::from(*choice)).collect();
        Subject::Agent { text: "Which?".into(), choices }
    }

    fn input(schema: Value) -> Subject {
        Subject::Input { tool: "shop".into(), text: "Who?".into(), parameters: Arc::new(schema) }
    }

    fn form() -> Subject {
        let name = json!({ "type": "string" });
        input(json!({ "type": "object", "properties": { "name": name }, "required": ["name"] }))
    }

    fn turn() -> Subject {
        let hand_over_to = ["billing".into()].into();
        Subject::Turn { agent: "lead".into(), request: "Who?".into(), hand_over_to }
    }

    fn call(effects: Effects) -> Subject {
        Subject::ToolCall {
            tool: "refund".into(),
            args: Arc::new(json!({})),
            definition: "d".into(),
            parameters: Arc::new(json!({})),
            effects,
        }
    }

    #[test]
    fn options_are_those_of_subject() {
        let kinds = |subject: &Subject| {
            options(subject, None)
                .map(|options| options.iter().map(|it| it.kind).collect::<Vec<_>>())
        };
        let tools = |changed| Subject::Tools { tool: "shop".into(), changed, tools: [].into() };
        let remembered = ["allow_once", "allow_always", "reject_once"];
        assert_eq!(kinds(&call(Effects::Write)).as_deref(), Some(&remembered[..]));
        let once = Some(&["allow_once", "reject_once"][..]);
        assert_eq!(kinds(&call(Effects::Irreversible)).as_deref(), once);
        assert_eq!(kinds(&input(json!({ "type": "object" }))).as_deref(), once);
        let changed = ["allow_once", "reject_once", "reject_once"];
        assert_eq!(kinds(&tools(true)).as_deref(), Some(&changed[..]));
        for subject in [agent(&[]), form(), turn(), Subject::Seat { round: 1, role: "cfo".into() }]
        {
            assert_eq!(kinds(&subject), None, "{subject:?}");
        }
    }

    #[test]
    fn prompts_answer_what_is_asked() {
        let text = |text: &str| Answer::Text { text: text.into() };
        let deny = |text: &str| Answer::Deny { text: text.into() };
        let args = |args: Value| Answer::Approve { args: Some(Arc::new(args)) };
        let seat = || Subject::Seat { round: 1, role: "cfo".into() };
        let ada = json!({ "name": "Ada" });
        for (subject, prompt, answer) in [
            (agent(&[]), "{\"a\": 1}", text("{\"a\": 1}")),
            (agent(&["a", "b"]), "b", Answer::Choose { choice: "b".into(), text: "".into() }),
            (turn(), "deny", text("deny")),
            (
                turn(),
                "{\"hand_over_to\": \"billing\"}",
                Answer::HandOver { to: "billing".into(), text: "".into() },
            ),
            (call(Effects::Write), "deny", deny("")),
            (call(Effects::Write), "{\"approve\": false, \"text\": \"No.\"}", deny("No.")),
            (form(), "{\"name\": \"Ada\"}", args(ada.clone())),
            (form(), "{\"args\": {\"name\": \"Ada\"}}", args(ada)),
            (form(), "deny", deny("")),
            (
                seat(),
                "{\"stance\": \"go\"}",
                Answer::Contribute { contribution: Arc::new(json!({ "stance": "go" })) },
            ),
        ] {
            assert_eq!(prompt_answer(&subject, prompt), Ok(answer), "{prompt}");
        }
        for (subject, prompt) in [
            (agent(&[]), ""),
            (agent(&["a", "b"]), "c"),
            (call(Effects::Write), "yes"),
            (call(Effects::Write), "{\"approve\": \"yes\"}"),
            (form(), "Ada"),
            (form(), "{\"name\": 1}"),
            (form(), "approve"),
            (seat(), "go"),
        ] {
            assert!(prompt_answer(&subject, prompt).is_err(), "{prompt}");
        }
    }
}
