//! The spans of another program, as it has reported them.

use super::conventions::{Known, words_of};
use super::spans::{AttributeList, RunSpans};
use crate::log::event::Event;
use crate::log::facts::observed::{ObservedFact, SpanAbout, SpanEnd, SpanRole};

/// Whether the end of a span is not known.
pub(super) fn is_lost(fact: &ObservedFact) -> bool {
    matches!(fact, ObservedFact::Closed { end: SpanEnd::Lost, .. })
}

impl RunSpans {
    /// Takes what another program reports.
    pub(super) fn take_observed(&mut self, event: &Event, fact: &ObservedFact) {
        match fact {
            ObservedFact::Opened { parent, about, .. } => {
                let known = self.open.get_mut(&event.span);
                let open = match known {
                    Some(open) => open,
                    None => {
                        let none = self.attributes();
                        let (name, role) = (String::new(), SpanRole::Step);
                        self.open(event.span, *parent, event.at, name, role, none)
                    }
                };
                open.parent = *parent;
                open.observed.get_or_insert_default().add(about);
            }
            ObservedFact::Closed { about, .. } => {
                if let Some(open) = self.open.get_mut(&event.span) {
                    open.observed.get_or_insert_default().add(about);
                }
            }
            ObservedFact::Note { text } if self.has_texts => {
                self.note(event, "note", vec![("exception.message", text.to_string().into())]);
            }
            ObservedFact::Note { .. } | ObservedFact::Text { .. } => {}
        }
    }
}

/// Adds what another program has said of its span; returns its name.
pub(super) fn describe(about: &SpanAbout, to: &mut AttributeList) -> String {
    let (kind, operation) = words_of(about.role);
    to.known(Known::Kind, kind);
    operation.into_iter().for_each(|word| to.known(Known::Operation, word));
    let texts = [(Known::Agent, &about.agent), (Known::Model, &about.model)];
    for (known, text) in texts {
        text.iter().for_each(|text| to.known(known, &**text));
    }
    if about.role == SpanRole::Tool {
        to.known(Known::Tool, &*about.name);
    }
    let counts = [
        (Known::TokensIn, about.tokens_in),
        (Known::TokensCached, about.tokens_cached),
        (Known::TokensOut, about.tokens_out),
    ];
    for (known, count) in counts {
        count.into_iter().for_each(|count| to.known(known, count));
    }
    about.cost_usd.into_iter().for_each(|cost| to.known(Known::Cost, cost));
    for (known, text) in [(Known::Input, &about.input), (Known::Output, &about.output)] {
        text.iter().for_each(|text| to.known(known, &**text));
    }
    match operation {
        Some(word) => format!("{word} {}", about.name),
        None => about.name.to_string(),
    }
}
