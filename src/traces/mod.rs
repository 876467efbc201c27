//! Traces of OpenTelemetry: the messages of OTLP ([`messages`]) and the names that the conventions have for what is
//! known of a span ([`conventions`]), both for what is received and for what is sent; the spans of a run
//! ([`spans`]); and what sends them ([`sender`]). Nothing is sent unless the operator asks for it.

mod attributes;
pub mod conventions;
pub mod messages;
pub mod sender;
pub mod spans;

#[cfg(test)]
mod tests {
    use super::messages::{AnyKind, Span};
    use super::spans::RunSpans;
    use crate::log::event::{Event, RunId};
    use crate::log::facts::agents::SessionHead;
    use crate::support::facts::{Facts, Start, team};

    /// The spans of these events.
    fn spans<'e>(events: impl IntoIterator<Item = &'e Event>) -> Vec<Span> {
        let (mut made, mut spans) = (RunSpans::new(true), Vec::new());
        events.into_iter().for_each(|event| made.take(event, &mut spans));
        made.finish(&mut spans);
        spans
    }

    fn text<'s>(span: &'s Span, name: &str) -> Option<&'s str> {
        let value = span.attributes.iter().find(|it| it.key == name)?.value.as_ref()?;
        match value.value.as_ref()? {
            AnyKind::String(text) => Some(text),
            _ => None,
        }
    }

    #[test]
    fn session_runs_have_one_id() {
        let later = |message, first: Option<&str>| SessionHead {
            message,
            first_run: first.map(RunId::new),
            ..team::session("And then?", "refunds")
        };
        let own = team::TeamFacts::desk(later(1, None));
        let run = spans(own.log.iter().map(|event| &**event))
            .iter()
            .find_map(|span| text(span, "roundtable.run").map(str::to_owned))
            .expect("a run");
        for (head, id) in [
            (later(1, None), Some(run.as_str())),
            (later(3, Some("r-90dd")), Some("r-90dd")),
            // Of an earlier version: which run was the first is not known.
            (later(3, None), None),
        ] {
            let mut facts = team::TeamFacts::desk(head);
            facts.after(20).hop("refunds", None).asks("refunds").after(400);
            let all = spans(facts.log.iter().map(|event| &**event));
            assert!(all.len() > 1, "a run and its calls");
            for name in ["session.id", "gen_ai.conversation.id"] {
                for span in &all {
                    assert_eq!(text(span, name), id, "{name} of {}", span.name);
                }
            }
        }
    }

    #[test]
    fn a_failed_span_has_one_exception() {
        let mut facts = Facts::start(Start::default());
        facts.round(&[]).ask(0).fails(0, 503).again(0).gives_up(0, 503, "llm_error:status");
        facts.ends("llm_error:status", Some("round_1"));
        let all = spans(facts.log.iter().map(|event| &**event));
        let names = |span: &Span| -> Vec<String> {
            span.events.iter().map(|event| event.name.clone()).collect()
        };
        let failed: Vec<&Span> =
            all.iter().filter(|span| span.status.as_ref().is_some_and(|it| it.code == 2)).collect();
        for span in &failed {
            let count = names(span).iter().filter(|name| *name == "exception").count();
            assert_eq!(count, 1, "{}: {:?}", span.name, names(span));
        }
        let retried = failed.iter().find(|span| names(span).contains(&"retry".to_owned()));
        let retried = retried.expect("a call that was retried and failed");
        assert_eq!(names(retried).first().map(String::as_str), Some("attempt_failed"));
        assert_eq!(names(retried).last().map(String::as_str), Some("exception"));
    }
}
