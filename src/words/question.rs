//! Questions to people in words: what is asked, who answered what, how long a run waits.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;

use super::measure::columns;
use super::readable::top_text;
use super::sentence::task_of_span;
use crate::base::name::PersonName;
use crate::base::time::{duration_text, utc_text};
use crate::base::visible::{REASON_CHARS, first_bytes, visible_within};
use crate::log::event::{
    Answer, AnsweredBy, Elapsed, Event, QuestionAnswered, QuestionAsked, Subject, Withdrawal,
};
use crate::log::world::questions::{
    EndedQuestion, OpenQuestion, QuestionEnd, QuestionRow, QuestionTally, Questions,
};
use crate::log::world::{RunFold, World};
use crate::scenario::people::{OPERATOR, Otherwise};

/// What a question is about, in one line: `refund order=ch_2 amount_usd=49.9`. Its texts are data: the
/// caller escapes them.
pub fn about(subject: &Subject) -> Cow<'_, str> {
    match subject {
        Subject::ToolCall { tool, args, .. } => {
            format!("{tool} {}", top_text(args)).trim_end().to_owned().into()
        }
        Subject::Agent { text, .. } | Subject::Permission { text, .. } => first_line(text).into(),
        Subject::Turn { agent, request, .. } => {
            format!("turn of {agent}: {}", first_line(request)).into()
        }
        Subject::Seat { round, role } => format!("seat of {role} in round {round}").into(),
        Subject::Decision { .. } => "no decision after the last round".into(),
        Subject::InDoubt { tool, .. } => format!("{tool} was in flight: make it again?").into(),
        Subject::Budget(reached) => reached.sentence().into(),
        Subject::Input { tool, text, .. } => format!("{tool} asks: {}", first_line(text)).into(),
        Subject::Tools { tool, changed, tools } => {
            let what = if *changed { "changed" } else { "to allow" };
            let many = if tools.len() == 1 { "" } else { "s" };
            format!("{tool}: {} tool{many} {what}", tools.len()).into()
        }
    }
}

/// What a question is about, in a row of the inbox: `refund ch_2, 49.90 USD`. Its texts are data: the
/// caller escapes them.
pub fn inbox_text(subject: &Subject) -> Cow<'_, str> {
    let Subject::ToolCall { tool, args, .. } = subject else { return about(subject) };
    let Some(fields) = args.as_object() else { return about(subject) };
    let mut text = tool.to_string();
    for (nth, (name, value)) in fields.iter().enumerate() {
        // No row is longer.
        if text.len() > MAX_ROW_BYTES {
            break;
        }
        text.push_str(if nth == 0 { " " } else { ", " });
        text.push_str(&row_value(name, value));
    }
    text.into()
}

/// Most bytes of a value in a row; a row ends after as many.
const MAX_ROW_BYTES: usize = 400;
/// Endings of names of amounts of money.
const CURRENCIES: [&str; 4] = ["usd", "eur", "gbp", "chf"];

/// A value in a row: a text or an amount of money alone, any other with its name.
fn row_value(name: &str, value: &Value) -> String {
    let cut = |text: &str| first_bytes(text, MAX_ROW_BYTES).to_owned();
    let currency = name.rsplit('_').next().filter(|word| CURRENCIES.contains(word));
    match (value, currency) {
        (Value::String(text), _) => cut(first_line(text)),
        (Value::Number(number), Some(currency)) => {
            let number = number.to_string();
            let digits = number.split_once('.').map_or(0, |(_, digits)| digits.len());
            let is_plain = number.bytes().all(|byte| !byte.is_ascii_alphabetic());
            let padding = match digits {
                0 if is_plain => ".00",
                1 if is_plain => "0",
                _ => "",
            };
            format!("{number}{padding} {}", currency.to_uppercase())
        }
        (Value::Array(_) | Value::Object(_), _) => format!("{} …", cut(name)),
        _ => format!("{} {value}", cut(name)),
    }
}

/// The first line of a text that is not blank.
fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// What kind of answer a question wants, in one word.
pub fn noun(subject: &Subject) -> &'static str {
    match subject {
        Subject::ToolCall { .. } => "approval",
        Subject::Agent { .. } => "question",
        Subject::Turn { .. } => "turn",
        Subject::Seat { .. } => "contribution",
        Subject::Decision { .. } => "decision",
        Subject::InDoubt { .. } => "call in doubt",
        Subject::Budget(_) => "budget",
        Subject::Input { .. } => "input",
        Subject::Permission { .. } => "permission",
        Subject::Tools { .. } => "tools",
    }
}

/// The agent, role or task that asks; the run where it is none of them.
pub fn asker<'a>(question: &'a OpenQuestion, world: &'a World) -> Cow<'a, str> {
    if let Subject::Turn { agent, .. } = &question.asked.subject {
        return agent.as_str().into();
    }
    let by = question.asked.by.as_deref().map(Cow::Borrowed);
    by.or_else(|| task_of_span(question.span, world)).unwrap_or("the run".into())
}

/// The agent, role or task that asks a question that is still open. `None`: the run asks, or the question says it.
pub fn named_asker(world: &World, asked: &QuestionAsked) -> Option<String> {
    let is_named = matches!(
        asked.subject,
        Subject::Turn { .. }
            | Subject::Seat { .. }
            | Subject::Decision { .. }
            | Subject::Tools { .. }
    );
    let by = || asked.by.as_deref().map(str::to_owned);
    let task = || {
        let open = world.questions.get(asked.id)?;
        task_of_span(open.span, world).map(Cow::into_owned)
    };
    by().or_else(task).filter(|_| !is_named)
}

/// Who asks whom for what, in one sentence: `billing asks manager to approve refund`.
pub fn asks_text(by: &str, asked: &QuestionAsked) -> String {
    let who = &asked.who;
    match &asked.subject {
        Subject::ToolCall { tool, .. } => format!("{by} asks {who} to approve {tool}"),
        Subject::Agent { .. } => format!("{by} asks {who}"),
        Subject::Turn { agent, .. } => format!("{who} has the turn of {agent}"),
        Subject::Seat { round, role } => format!("{who} has the seat of {role} in round {round}"),
        Subject::Decision { .. } => format!("the table did not agree: {who} decides"),
        Subject::InDoubt { tool, .. } => format!("{tool} was in flight: {who} says what follows"),
        Subject::Budget(_) => format!("{by} asks {who} whether to extend a budget"),
        Subject::Permission { .. } => format!("{by} asks {who} for permission"),
        Subject::Input { tool, .. } => format!("the server {tool} asks {who} for input"),
        Subject::Tools { tool, changed: true, .. } => {
            format!("tools of {tool} have changed: {who} decides whether they are used")
        }
        Subject::Tools { tool, .. } => {
            format!("tools of {tool} say that they only read: {who} decides whether to allow them")
        }
    }
}

/// What happens if nobody answers: `the call is denied`.
pub fn otherwise_text(asked: &QuestionAsked) -> String {
    match &asked.otherwise {
        Otherwise::Deny if asked.subject.can_be_denied() => denial_words(&asked.subject).to_owned(),
        Otherwise::Deny | Otherwise::Stop => "the run stops".to_owned(),
        Otherwise::Pause => "the run pauses".to_owned(),
        Otherwise::Answer(text) => {
            format!("the answer is {:?}", visible_within(text, REASON_CHARS))
        }
    }
}

/// How long until the deadline of a question: `6m left`, in the last minute `40s left`; `None`: it has
/// none, or the time of the wall is not known.
pub fn left_text(asked: &QuestionAsked, wall_ms: Option<u64>) -> Option<String> {
    let left = Duration::from_millis(asked.due_ms?.saturating_sub(wall_ms?));
    Some(match (left.as_secs() / 60, left.as_secs() / 10) {
        (0, _) if left.is_zero() => "due now".to_owned(),
        (0, 0) => "<10s left".to_owned(),
        (0, tens) => format!("{tens}0s left"),
        _ => format!("{} left", short_age(left)),
    })
}

/// The deadline of a question and what happens then: `6m left, then the call is denied`.
pub fn deadline_text(asked: &QuestionAsked, wall_ms: Option<u64>) -> String {
    match left_text(asked, wall_ms) {
        Some(left) => format!("{left}, then {}", otherwise_text(asked)),
        None if asked.due_ms.is_some() => format!("if nobody answers, {}", otherwise_text(asked)),
        None => "none: the run waits".to_owned(),
    }
}

/// That an answer came after the deadline of its question, and what has happened instead.
pub fn late_text(asked: &QuestionAsked) -> String {
    format!("{}; {} did not answer: {}", deadline_was(asked), asked.who, otherwise_text(asked))
}

/// How a question ended, for those who want to answer it: after its deadline they are too late. Its texts
/// are data: the caller escapes them.
pub fn closed_text(asked: &QuestionAsked, end: &QuestionEnd) -> String {
    match end {
        QuestionEnd::Answered(answered) if answered.is_overdue(asked) => {
            format!("{}; {}", deadline_was(asked), end_text(asked, end))
        }
        _ => end_text(asked, end),
    }
}

fn deadline_was(asked: &QuestionAsked) -> String {
    let due = asked.due_ms.map_or_else(|| "over".to_owned(), utc_text);
    format!("too late, the deadline was {due}")
}

/// The rule that a remembered approval adds: `approve refund for billing in this run, as it is defined
/// now`.
pub fn remembered_text(tool: &str, agent: Option<&str>) -> String {
    let agent = agent.unwrap_or("the run");
    format!("approve {tool} for {agent} in this run, as it is defined now")
}

/// An answer in one line, with its text or arguments. Its texts are data: the caller escapes them.
pub fn answer_text(answer: &Answer) -> String {
    let phrase = match answer {
        Answer::Approve { args: None } => "approve".to_owned(),
        Answer::Approve { args: Some(args) } => format!("approve with {}", top_text(args)),
        Answer::Deny { .. } => "deny".to_owned(),
        Answer::Choose { choice, .. } => format!("choose {choice}"),
        Answer::Text { .. } => "answer".to_owned(),
        Answer::HandOver { to, .. } => format!("hand over to {to}"),
        Answer::Contribute { contribution } => format!("contribute {}", top_text(contribution)),
        Answer::Result { result } => format!("the result is {}", top_text(result)),
        Answer::Stop => "stop the run".to_owned(),
    };
    match answer.text() {
        Some(text) => format!("{phrase}: {}", first_line(text)),
        None => phrase,
    }
}

/// That somebody is asked.
pub(super) fn asked_text(asked: &QuestionAsked) -> String {
    let what = about(&asked.subject);
    match &asked.subject {
        Subject::ToolCall { .. } => format!("{} to approve {what}", asked.who),
        Subject::Seat { .. } if asked.why.is_some() => {
            format!("{} again, {what}: the contribution was refused", asked.who)
        }
        _ => format!("{}: {what}", asked.who),
    }
}

/// Who answered, for the screen and headless text: `manager (anna at laptop)`.
pub fn answered_by(answered: &QuestionAnswered, asked: Option<&QuestionAsked>) -> String {
    match &answered.by {
        AnsweredBy::Person { name, host } => match asked {
            Some(asked) if asked.who.as_str() != OPERATOR => {
                format!("{} ({name} at {host})", asked.who)
            }
            _ => format!("{name} at {host}"),
        },
        AnsweredBy::Rule => match asked.and_then(|asked| asked.rule.as_ref()) {
            Some(rule) => format!("the rule {rule:?}"),
            None => "an approval that the run remembers".to_owned(),
        },
        AnsweredBy::Script => match asked {
            Some(asked) => format!("{} (scripted)", asked.who),
            None => "the script".to_owned(),
        },
        AnsweredBy::Nobody => match asked {
            Some(asked) => format!("{} did not answer", asked.who),
            None => "nobody answered".to_owned(),
        },
    }
}

/// What an answer says, and who gave it, after how long.
pub(super) fn answered_text(event: &Event, answered: &QuestionAnswered, run: &RunFold) -> String {
    let ended = ended_question(run, event);
    let asked = ended.map(|ended| &*ended.question.asked);
    let by = answered_by(answered, asked);
    let waited = ended.map(|ended| event.at.since(ended.question.at));
    let waited = waited.filter(|waited| *waited >= Duration::from_secs(1)).map(duration_text);
    if answered.by == AnsweredBy::Nobody {
        let within = waited.map_or_else(String::new, |waited| format!(" within {waited}"));
        return format!("{by}{within}; fallback: {}", fallback_text(asked, &answered.answer));
    }
    let tool = asked.and_then(|asked| asked.subject.approves());
    let tool = tool.map_or_else(String::new, |tool| format!(" {tool}"));
    let what = match &answered.answer {
        Answer::Approve { args: Some(_) } if !tool.is_empty() => {
            format!("{by} approved{tool} with other arguments")
        }
        answer => format!("{by} {}{tool}", answer_phrase(asked, answer)),
    };
    match waited {
        Some(waited) => format!("{what} after {waited}"),
        None => what,
    }
}

/// What was answered, in a few words.
fn answer_phrase(asked: Option<&QuestionAsked>, answer: &Answer) -> String {
    let is_input = asked.is_some_and(|it| matches!(it.subject, Subject::Input { .. }));
    match answer {
        Answer::Approve { .. } if is_input => "filled in the form".to_owned(),
        Answer::Deny { .. } if is_input => "declined".to_owned(),
        answer => answer.phrase(),
    }
}

/// What followed because nobody answered: `the call is denied`, or the answer that the scenario gives for that case.
fn fallback_text(asked: Option<&QuestionAsked>, answer: &Answer) -> String {
    match answer {
        Answer::Deny { .. } => {
            asked.map_or("it is denied", |asked| denial_words(&asked.subject)).into()
        }
        Answer::Stop => "the run stops".to_owned(),
        Answer::Text { text } => text.to_string(),
        Answer::Choose { choice, .. } => choice.to_string(),
        answer => answer.phrase(),
    }
}

/// What a denial means for a question about this.
fn denial_words(subject: &Subject) -> &'static str {
    match subject {
        Subject::ToolCall { .. } => "the call is denied",
        Subject::Permission { .. } => "the agent is refused",
        Subject::Input { .. } => "no input is given",
        _ => "it is denied",
    }
}

/// A fallback where the words of a person would stand: `no answer; fallback: Admit nothing.`
pub fn fallback_said(text: &str) -> String {
    format!("no answer; fallback: {text}")
}

/// The question that ended with this event.
fn ended_question<'w>(run: &'w RunFold, event: &Event) -> Option<&'w EndedQuestion> {
    let id = match &event.kind {
        crate::log::event::EventKind::QuestionAnswered(answered) => answered.id,
        crate::log::event::EventKind::QuestionWithdrawn { id, .. } => *id,
        _ => return None,
    };
    run.questions.ended().iter().rfind(|ended| ended.question.asked.id == id)
}

/// Why a question was withdrawn.
pub(super) fn withdrawn_text(event: &Event, why: Withdrawal, run: &RunFold) -> String {
    let about = ended_question(run, event).map(|ended| about(&ended.question.asked.subject));
    let what = about.unwrap_or_default();
    match why {
        Withdrawal::Cancelled => format!("{what}: its branch ended"),
        Withdrawal::Changed => format!("{what}: the tool has changed"),
    }
}

/// How a question ended, in a few words. Its texts are data: the caller escapes them.
pub fn end_text(asked: &QuestionAsked, end: &QuestionEnd) -> String {
    match end {
        QuestionEnd::Answered(answered) => {
            let by = answered_by(answered, Some(asked));
            match answered.by {
                AnsweredBy::Nobody => {
                    format!("{by}; fallback: {}", fallback_text(Some(asked), &answered.answer))
                }
                _ => format!("{} by {by}", answer_phrase(Some(asked), &answered.answer)),
            }
        }
        QuestionEnd::Withdrawn(Withdrawal::Cancelled) => "withdrawn: its branch ended".to_owned(),
        QuestionEnd::Withdrawn(Withdrawal::Changed) => "withdrawn: the tool has changed".to_owned(),
    }
}

/// How a question ended and how long that took: `denied by manager (scripted) after 12s`. `None`: it has not
/// ended. Its texts are data: the caller escapes them.
pub fn row_end_text(row: &QuestionRow) -> Option<String> {
    let (at, end) = row.ended.as_ref()?;
    let after = duration_text(at.since(row.question.at));
    Some(format!("{} after {after}", end_text(&row.question.asked, end)))
}

/// The person that a run waits for, and since when: `waits for manager 4m`. `None`: nothing is asked.
pub fn waits_for(run: &RunFold, now: Elapsed) -> Option<String> {
    let who = run.questions.open().map(|question| &question.asked.who);
    Some(format!("{} {}", waits_text(who)?, age_text(run.questions.oldest()?, now)))
}

/// Who open questions ask, the first one first: `waits for manager and 1 more`. `None`: there are none.
pub fn waits_text<'a>(mut who: impl ExactSizeIterator<Item = &'a PersonName>) -> Option<String> {
    let first = who.next()?;
    let more = match who.len() {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    Some(format!("waits for {first}{more}"))
}

/// This text of [`waits_text`] or [`waits_for`], or only who, where no more has room.
pub fn shortened_waits(waits: &str, width: u16) -> &str {
    match columns(waits) <= width.into() {
        true => waits,
        false => waits.strip_prefix("waits for ").unwrap_or(waits),
    }
}

/// The age of a question in whole minutes: `4m`.
pub fn age_text(question: &OpenQuestion, now: Elapsed) -> String {
    short_age(now.since(question.at))
}

/// The counts of a run's questions in one line: `3 asked, 2 answered by people, 1 denied, median wait
/// 4m05s`. `None`: nothing was asked.
pub fn tally_text(questions: &Questions) -> Option<String> {
    let tally = questions.tally;
    if tally == QuestionTally::default() {
        return None;
    }
    let mut parts = vec![format!("{} asked", tally.asked)];
    for (count, what) in [
        (tally.by_person, "answered by people"),
        (tally.by_script, "answered by the script"),
        (tally.by_nobody, "not answered"),
        (tally.by_rule, "decided by rules"),
        (tally.denied, "denied"),
        (tally.withdrawn, "withdrawn"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    if let Some(wait) = questions.median_wait_ms() {
        parts.push(format!("median wait {}", duration_text(Duration::from_millis(wait))));
    }
    Some(parts.join(", "))
}

/// A duration that changes at most once a minute: `<1m`, `4m`, `2h 05m`, `3d`.
pub fn short_age(age: Duration) -> String {
    let minutes = age.as_secs() / 60;
    match (minutes / 1_440, minutes / 60, minutes) {
        (0, 0, 0) => "<1m".to_owned(),
        (0, 0, minutes) => format!("{minutes}m"),
        (0, hours, minutes) => format!("{hours}h {:02}m", minutes % 60),
        (days, ..) => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scenario::people::Effects;

    #[test]
    fn inbox_rows_are_short() {
        for (args, text) in [
            (json!({ "charge": "ch_2", "amount_usd": 49.9 }), "refund ch_2, 49.90 USD"),
            (
                json!({ "amount_eur": 20, "days": 3, "fast": true }),
                "refund 20.00 EUR, days 3, fast true",
            ),
            (json!({ "amount_usd": 0.125, "of": [1] }), "refund 0.125 USD, of …"),
            (json!({ "amount_usd": 1e30 }), "refund 1e+30 USD"),
            (json!({ "note": "\n\nDear you,\nno" }), "refund Dear you,"),
            (json!({ "amount_usd": "49" }), "refund 49"),
            (json!({}), "refund"),
        ] {
            let (tool, args) = ("refund".into(), args.into());
            let (definition, parameters, effects) = ("d".into(), json!({}).into(), Effects::Write);
            let subject = Subject::ToolCall { tool, args, definition, parameters, effects };
            assert_eq!(inbox_text(&subject), text);
        }
    }

    #[test]
    fn ages_change_once_a_minute() {
        for (seconds, text) in [
            (0, "<1m"),
            (59, "<1m"),
            (60, "1m"),
            (119, "1m"),
            (3_599, "59m"),
            (3_900, "1h 05m"),
            (200_000, "2d"),
        ] {
            assert_eq!(short_age(Duration::from_secs(seconds)), text);
        }
    }
}
