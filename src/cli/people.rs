//! `--people`: who answers the questions of a headless run, and the answers on standard input.

use std::sync::Arc;

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use super::streams::print_message;
use crate::base::time::now_ms;
use crate::base::visible::{REASON_CHARS, visible_within};
use crate::engine::RunHandle;
use crate::host;
use crate::log::event::head::PeopleChoice;
use crate::log::event::{
    Answer, AnsweredBy, Command, QuestionAnswered, QuestionAsked, QuestionId, RunId, Subject, World,
};
use crate::run::questions::PeopleMode;
use crate::words::question;

/// Who answers the questions of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PeopleArg {
    /// The script of the scenario; default of an offline run
    Script,
    /// You: a question is printed, and a line of JSON on standard input answers it
    Ask,
    /// People elsewhere: a question stays open until its deadline
    Wait,
    /// Nobody: `otherwise` of each question applies at once; default of a live run
    Nobody,
}

impl PeopleArg {
    /// What it means for a run; `live`: whether it calls live models, which decides the default.
    pub fn mode(arg: Option<Self>, live: bool) -> PeopleMode {
        match arg {
            Some(arg) => arg.choice().into(),
            None if live => PeopleMode::Nobody,
            None => PeopleMode::Script,
        }
    }

    /// The same, as the head of a log has it.
    pub fn choice(self) -> PeopleChoice {
        match self {
            Self::Script => PeopleChoice::Script,
            Self::Ask => PeopleChoice::Ask,
            Self::Wait => PeopleChoice::Wait,
            Self::Nobody => PeopleChoice::Nobody,
        }
    }
}

/// The person who answers through a client of this protocol.
pub(super) fn person_at(protocol: &str, client: Option<&str>) -> AnsweredBy {
    match host::this_person() {
        AnsweredBy::Person { name, host } => {
            let client = visible_within(client.unwrap_or("unknown"), REASON_CHARS);
            AnsweredBy::Person { name: format!("{name} ({protocol} client {client})").into(), host }
        }
        by => by,
    }
}

/// Length limit of the first line of a question whose text has lines of its own, in characters.
const FIRST_CHARS: usize = 200;

/// Length limit of each part of a printed question, in characters: as much as the card shows.
const PART_CHARS: usize = 256 * 1024;

/// What a question does not say itself, but the run in which it is open.
#[derive(Clone, Debug, Default)]
pub(super) struct QuestionContext {
    /// The agent, role or task that asks. `None`: the run asks, or the question says it.
    pub by: Option<String>,
    goal: String,
}

impl QuestionContext {
    /// The context of a question that is open.
    pub(super) fn of(world: &World, asked: &QuestionAsked) -> Self {
        let goal = world.head.as_ref().map(|head| head.goal.trim().to_owned());
        Self { by: question::named_asker(world, asked), goal: goal.unwrap_or_default() }
    }
}

/// Prints a question whole, and a line that answers it. `run`: the run that a line has to name, in a
/// session.
pub(super) fn print_question(
    asked: &QuestionAsked,
    context: &QuestionContext,
    run: Option<&RunId>,
) {
    let (id, mut answer) = (asked.id, example(asked));
    if let Some(run) = run {
        answer["run"] = run.as_str().into();
    }
    question_lines(asked, context).iter().for_each(|line| print_message(line));
    print_message(&format!("{id}: {}, such as {answer}", asked.subject.expected()));
}

/// Prints a question that nobody can answer here, and how it is answered elsewhere. `is_reached`: whether
/// other processes reach the run.
pub(super) fn print_waiting(
    asked: &QuestionAsked,
    context: &QuestionContext,
    run: &RunId,
    is_reached: bool,
) {
    let (id, who) = (asked.id, &asked.who);
    question_lines(asked, context).iter().for_each(|line| print_message(line));
    let how = match is_reached {
        true => format!("`roundtable answer {run} {id}` in another terminal, or the dashboard"),
        false => format!("end this command, then `roundtable resume {run} --people ask`"),
    };
    print_message(&format!("{id}: nobody can answer it here, the run waits for {who}: {how}"));
}

/// A question whole, a line for each part.
pub(super) fn question_lines(asked: &QuestionAsked, context: &QuestionContext) -> Vec<String> {
    // What has a line of its own is shortened in the first one.
    let most = match &asked.subject {
        Subject::ToolCall { .. } | Subject::Agent { .. } | Subject::Permission { .. } => {
            FIRST_CHARS
        }
        Subject::Turn { .. } | Subject::Input { .. } => FIRST_CHARS,
        _ => PART_CHARS,
    };
    let what = visible_within(&question::about(&asked.subject), most);
    let id = asked.id;
    let by =
        context.by.as_deref().map(|by| format!(", asked by {}", visible_within(by, REASON_CHARS)));
    let mut lines = vec![format!("{id} for {}{}: {what}", asked.who, by.unwrap_or_default())];
    lines.extend(
        parts(asked, context)
            .into_iter()
            .map(|(part, text)| format!("{id} {part}: {}", visible_within(&text, PART_CHARS))),
    );
    lines
}

/// An answer to a question, as a line of JSON.
pub(super) fn example(asked: &QuestionAsked) -> Value {
    let id = asked.id;
    match (&asked.subject, asked.subject.choices().first()) {
        (Subject::ToolCall { .. }, _) => json!({ "id": id, "approve": true }),
        (Subject::Input { parameters, .. }, _) if has_no_fields(parameters) => {
            json!({ "id": id, "approve": true })
        }
        (Subject::Input { .. }, _) => json!({ "id": id, "args": { "…": "…" } }),
        (Subject::Seat { .. }, _) => json!({
            "id": id,
            "contribution": {
                "stance": "go", "confidence": 0.8, "summary": "…", "actions": ["…"],
            },
        }),
        (Subject::Turn { .. }, _) | (_, None) => json!({ "id": id, "text": "…" }),
        (_, Some(choice)) => json!({ "id": id, "choice": visible_within(choice, REASON_CHARS) }),
    }
}

/// Whether the form of a question is empty: it takes a yes or a no.
fn has_no_fields(schema: &Value) -> bool {
    schema.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty)
}

/// The fields of a contribution, for a person who has a seat.
const SEAT_FIELDS: &str = "stance (go, caution or block), confidence (a number from 0 to 1), summary (a text), \
                           actions (a list with at least one text)";

/// What a person decides on: each part of the question with its name.
fn parts(asked: &QuestionAsked, context: &QuestionContext) -> Vec<(&'static str, String)> {
    let goal = |parts: &mut Vec<_>| {
        if !context.goal.is_empty() {
            parts.push(("goal", context.goal.clone()));
        }
    };
    let mut parts = match &asked.subject {
        Subject::ToolCall { args, effects, .. } => {
            vec![("arguments", args.to_string()), ("effects", effects.phrase().to_owned())]
        }
        Subject::InDoubt { args, .. } if !args.is_null() => vec![("arguments", args.to_string())],
        Subject::Agent { text, .. } => vec![("question", text.to_string())],
        // The change that is allowed is read line by line.
        Subject::Permission { text, .. } => {
            text.lines().map(|line| ("question", line.to_owned())).collect()
        }
        Subject::Turn { request, .. } => vec![("message", request.to_string())],
        Subject::Decision { stances, .. } => {
            let mut parts = Vec::new();
            goal(&mut parts);
            parts.push(("stances", stances.to_string()));
            parts
        }
        Subject::Seat { .. } => {
            let mut parts = Vec::new();
            goal(&mut parts);
            parts.push(("fields", SEAT_FIELDS.to_owned()));
            parts
        }
        Subject::Input { text, parameters, .. } => {
            vec![("question", text.to_string()), ("schema", parameters.to_string())]
        }
        Subject::Tools { tools, .. } => {
            tools.iter().map(|it| ("tool", format!("{}: {}", it.name, it.text))).collect()
        }
        Subject::InDoubt { .. } | Subject::Budget(_) => Vec::new(),
    };
    // A seat is asked again where its contribution was refused.
    let why = if matches!(asked.subject, Subject::Seat { .. }) { "refused" } else { "why" };
    parts.extend(asked.why.as_ref().map(|text| (why, text.to_string())));
    let choices = asked.subject.choices();
    if !choices.is_empty() {
        parts.push(("choices", choices.join(", ")));
    }
    if asked.due_ms.is_some() {
        parts.push(("deadline", question::deadline_text(asked, Some(now_ms()))));
    }
    parts
}

/// Answers an open question with a line of JSON: `{"id": "q1", "approve": true}`. In a session (`of_session`)
/// the line names its run, because the questions of each run begin at `q1`.
///
/// # Errors
/// What is wrong with the line. Nothing was sent.
pub fn answer_with_line(
    line: &str,
    run: &RunHandle,
    of_session: bool,
    open: impl Fn(QuestionId) -> Result<Arc<QuestionAsked>, String>,
) -> Result<(), String> {
    let AnswerLine { run: named, id, digest, answer } = parse_line(line)?;
    check_run(named.as_deref(), run.id(), of_session)?;
    let asked = open(id)?;
    if digest.is_some_and(|digest| *digest != *asked.digest) {
        return Err(format!("the digest is not that of {id}"));
    }
    asked.subject.check(&answer)?;
    let digest = Arc::clone(&asked.digest);
    let answered = QuestionAnswered::new(id, digest, host::this_person(), answer);
    run.send(Command::Answer(Box::new(answered)));
    Ok(())
}

/// Whether a line is for this run.
fn check_run(named: Option<&str>, run: &RunId, of_session: bool) -> Result<(), String> {
    match named {
        Some(named) if named == run.as_str() => Ok(()),
        Some(named) => {
            let named = visible_within(named, REASON_CHARS);
            Err(format!("{named} does not play now; the questions are those of {run}"))
        }
        None if of_session => Err(format!("`run` is missing: the questions are those of {run}")),
        None => Ok(()),
    }
}

/// A line of standard input.
#[derive(Debug)]
struct AnswerLine {
    run: Option<String>,
    id: QuestionId,
    digest: Option<String>,
    answer: Answer,
}

/// What a line may have besides the answer.
const LINE_KEYS: [&str; 5] = ["run", "id", "digest", "text", "args"];
/// The answers.
const ANSWER_KEYS: [&str; 5] = ["approve", "choice", "hand_over_to", "contribution", "result"];

fn parse_line(line: &str) -> Result<AnswerLine, String> {
    let fields = read_object(line)?;
    let text = |name: &str| match fields.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{name}` must be a string")),
    };
    let id = text("id")?.ok_or("`id` is missing")?;
    let (run, digest) = (text("run")?, text("digest")?);
    Ok(AnswerLine { run, id: id.parse()?, digest, answer: parse_answer(&fields)? })
}

fn read_object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("not a JSON object".to_owned()),
        Err(error) => Err(format!("not JSON: {error}")),
    }
}

/// An answer as a JSON object.
pub(super) fn read_answer(text: &str) -> Result<Answer, String> {
    parse_answer(&read_object(text)?)
}

/// The answer in an object: exactly one of approve, choice, hand_over_to, contribution, result, or
/// text alone.
pub(super) fn parse_answer(fields: &Map<String, Value>) -> Result<Answer, String> {
    let text = match fields.get("text") {
        None => None,
        Some(Value::String(text)) => Some(Arc::<str>::from(text.as_str())),
        Some(_) => return Err("`text` must be a string".to_owned()),
    };
    let words = |name: &str| match fields.get(name) {
        None => Ok(None),
        Some(Value::String(word)) => Ok(Some(word.as_str())),
        Some(_) => Err(format!("`{name}` must be a string")),
    };
    let object = |name: &str| fields.get(name).map(|value| Arc::new(value.clone()));
    let is_unknown =
        |key: &&String| !LINE_KEYS.iter().chain(&ANSWER_KEYS).any(|known| known == key);
    if let Some(key) = fields.keys().find(is_unknown) {
        return Err(format!("unknown key `{}`", visible_within(key, REASON_CHARS)));
    }
    let given: Vec<&&str> = ANSWER_KEYS.iter().filter(|key| fields.contains_key(**key)).collect();
    let reason = || text.clone().unwrap_or_default();
    let answer = match given[..] {
        [] => match text.clone() {
            Some(text) => Answer::Text { text },
            None => return Err("there is no answer".to_owned()),
        },
        [one] => match *one {
            "approve" => match fields.get("approve") {
                Some(Value::Bool(true)) => Answer::Approve { args: object("args") },
                Some(Value::Bool(false)) => Answer::Deny { text: reason() },
                _ => return Err("`approve` is not true or false".to_owned()),
            },
            "choice" => {
                let choice = words("choice")?.unwrap_or_default().into();
                Answer::Choose { choice, text: reason() }
            }
            "hand_over_to" => {
                let to = words("hand_over_to")?.unwrap_or_default().into();
                Answer::HandOver { to, text: reason() }
            }
            "contribution" => {
                Answer::Contribute { contribution: object("contribution").unwrap_or_default() }
            }
            _ => Answer::Result { result: object("result").unwrap_or_default() },
        },
        _ => return Err("there is more than one answer".to_owned()),
    };
    // Nothing that a person writes is dropped.
    let takes_text = !matches!(
        answer,
        Answer::Approve { .. } | Answer::Contribute { .. } | Answer::Result { .. }
    );
    match answer {
        _ if text.is_some() && !takes_text => Err("this answer takes no `text`".to_owned()),
        Answer::Approve { .. } => Ok(answer),
        _ if fields.contains_key("args") => Err("only an approval takes `args`".to_owned()),
        _ => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scenario::people::{Effects, Otherwise};

    #[test]
    fn session_lines_name_their_run() {
        let run = RunId::new("r-2");
        assert_eq!(check_run(Some("r-2"), &run, true), Ok(()));
        assert_eq!(check_run(None, &run, false), Ok(()));
        assert!(check_run(None, &run, true).is_err());
        assert!(check_run(Some("r-1"), &run, true).is_err());
        assert!(check_run(Some("r-1"), &run, false).is_err());
        let line = r#"{"run":"r-2","id":"q1","approve":true}"#;
        assert_eq!(parse_line(line).expect("a line").run.as_deref(), Some("r-2"));
    }

    #[test]
    fn printed_questions_are_whole() {
        let long = "x".repeat(1_000);
        let asked = QuestionAsked {
            id: QuestionId(1),
            who: "operator".into(),
            by: None,
            why: Some("It was late.".into()),
            subject: Subject::ToolCall {
                tool: "refund".into(),
                args: Arc::new(json!({ "note": long })),
                definition: "d".into(),
                parameters: Arc::new(json!({})),
                effects: Effects::Irreversible,
            },
            digest: "d".into(),
            rule: None,
            by_rule: false,
            due_ms: Some(now_ms() + 3_600_000),
            otherwise: Otherwise::Deny,
        };
        let parts = parts(&asked, &QuestionContext::default());
        let names: Vec<_> = parts.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["arguments", "effects", "why", "deadline"]);
        assert!(parts[0].1.contains(&long));
        assert_eq!(parts[1].1, "cannot be undone");
        assert!(parts[3].1.ends_with("left, then the call is denied"), "{}", parts[3].1);
    }

    #[test]
    fn lines_say_one_answer() {
        let deny = Answer::Deny { text: "too much".into() };
        let args = Some(Arc::new(json!({ "amount_usd": 1 })));
        for (line, answer) in [
            (r#"{"id":"q1","approve":true}"#, Answer::Approve { args: None }),
            (r#"{"id":"q1","approve":false,"text":"too much"}"#, deny),
            (r#"{"id":"q1","approve":true,"args":{"amount_usd":1}}"#, Answer::Approve { args }),
            (
                r#"{"id":"q1","choice":"go"}"#,
                Answer::Choose { choice: "go".into(), text: "".into() },
            ),
            (r#"{"id":"q1","text":"yes"}"#, Answer::Text { text: "yes".into() }),
        ] {
            let read = parse_line(line).expect(line);
            assert_eq!((read.id, read.answer), (QuestionId(1), answer), "{line}");
        }
        for (line, why) in [
            ("yes", "not JSON"),
            (r#"{"approve":true}"#, "`id` is missing"),
            (r#"{"id":"1","approve":true}"#, "is not the id of a question"),
            (r#"{"id":"q1"}"#, "there is no answer"),
            (r#"{"id":"q1","approve":"yes"}"#, "not true or false"),
            (r#"{"id":"q1","approve":true,"choice":"go"}"#, "more than one"),
            (r#"{"id":"q1","aprove":true}"#, "unknown key `aprove`"),
            (r#"{"id":"q1","approve":true,"reason":"hm"}"#, "unknown key `reason`"),
            (r#"{"id":"q1","approve":false,"args":{}}"#, "only an approval takes `args`"),
            (r#"{"id":"q1","approve":true,"text":"if under 10 USD"}"#, "takes no `text`"),
            (r#"{"id":1,"approve":true}"#, "`id` must be a string"),
        ] {
            let error = parse_line(line).expect_err(line);
            assert!(error.contains(why), "{line}: {error}");
        }
    }
}
