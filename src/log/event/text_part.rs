//! What was said in an event: the goal of a run and the messages of people, the replies of models, the
//! arguments and results of tools, and their errors. Prompts are left out, since they repeat what was
//! said before.

use serde_json::Value;

use super::EventKind;

/// What was said in an event, and in which way.
#[derive(Clone, Copy, Debug)]
pub enum TextPart<'e> {
    /// The goal of the run, and the message of a session.
    Goal(&'e str, Option<&'e str>),
    /// The arguments of a tool.
    Arguments(&'e Value),
    /// The reply of a model.
    Reply(&'e str),
    /// The result of a tool.
    Result(&'e Value),
    /// Why an attempt failed, and what of a reply had arrived.
    Error(&'e str, Option<&'e str>),
    /// The answer of the run.
    Answer(&'e str),
    /// What an agent that hands over tells the next one.
    Handoff(&'e str),
}

impl<'e> TextPart<'e> {
    /// What was said in an event of this kind; `None` if nothing was.
    pub fn of(kind: &'e EventKind) -> Option<Self> {
        Some(match kind {
            EventKind::RunStarted(head) => {
                let message = head.plan.get().message().filter(|text| *text != head.goal);
                Self::Goal(&head.goal, message)
            }
            EventKind::CallStarted(call) => Self::Arguments(call.args.as_deref()?),
            EventKind::AttemptAnswered(reply) => match &reply.result {
                Some(result) => Self::Result(result),
                None => Self::Reply(&reply.text),
            },
            EventKind::AttemptFailed(failed) => {
                Self::Error(&failed.text, failed.partial.as_deref())
            }
            EventKind::CallDegraded { value, .. } => Self::Result(value.as_deref()?),
            EventKind::AnswerComposed { text, .. } => Self::Answer(text),
            EventKind::Pattern(fact) => Self::Handoff(fact.get().message()?),
            _ => return None,
        })
    }

    /// The word for the way: `goal`, `arguments`, `reply`, `result`, `error`, `answer` or `handoff`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Goal(..) => "goal",
            Self::Arguments(_) => "arguments",
            Self::Reply(_) => "reply",
            Self::Result(_) => "result",
            Self::Error(..) => "error",
            Self::Answer(_) => "answer",
            Self::Handoff(_) => "handoff",
        }
    }

    /// What was said, as one text.
    pub fn text(self) -> String {
        match self {
            Self::Goal(text, None) | Self::Error(text, None) => text.to_owned(),
            Self::Goal(text, Some(more)) | Self::Error(text, Some(more)) => {
                format!("{text}\n{more}")
            }
            Self::Arguments(value) | Self::Result(value) => value.to_string(),
            Self::Reply(text) | Self::Answer(text) | Self::Handoff(text) => text.to_owned(),
        }
    }
}
