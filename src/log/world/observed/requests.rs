//! The requests of a guarded program among its spans: the span of a model around a request shows its call.

use std::sync::Arc;

use super::{Observed, ObservedSpan};
use crate::log::event::{Event, SpanId};
use crate::log::facts::observed::{SpanAbout, SpanRole};
use crate::log::world::RunFold;
use crate::log::world::agents::LineKind;

impl Observed {
    /// The span of the program around a request; `None` if the first request of its conversation is around it.
    fn around_request(&self, request: SpanId, run: &RunFold) -> Option<&ObservedSpan> {
        let around = run.spans.get(request)?.parent;
        let of_request = self.span(request).filter(|it| it.about.guarded);
        of_request.and_then(|_| self.span(around)).filter(|it| !it.about.guarded)
    }

    /// Whether the span of a model is a request inside the span of the program's own report.
    pub(super) fn waits_for_model(&self, span: SpanId, about: &SpanAbout, run: &RunFold) -> bool {
        let around = || self.around_request(span, run);
        about.guarded
            && around()
                .is_some_and(|it| it.about.name.is_empty() || it.about.role == SpanRole::Model)
    }

    /// The span of a model around a request shows its call.
    pub(super) fn join(&mut self, request: SpanId, run: &RunFold) {
        let around = self.around_request(request, run);
        let Some(model) = around.filter(|it| it.about.role == SpanRole::Model).map(|it| it.id)
        else {
            return;
        };
        let (place, of_model) = (self.place(request), self.place(model));
        let Some(joined) = self.spans.get_mut(place) else { return };
        joined.is_joined = true;
        let (call, is_said) = (joined.call, joined.is_said);
        if let Some(model) = self.spans.get_mut(of_model) {
            model.call = call.or(model.call);
            model.is_said |= is_said;
        }
    }

    /// Adds the reply or the error of a model to the transcript, once.
    pub(super) fn say_reply(&mut self, event: &Event, id: SpanId, run: &RunFold) {
        let Some(span) = self.span(id).filter(|it| it.end.is_some() && !it.is_said) else { return };
        if span.is_joined || span.about.role != SpanRole::Model {
            return;
        }
        let about = Arc::clone(&span.about);
        let around = self.around_request(id, run);
        if around.is_some_and(|it| it.about.name.is_empty()) {
            return;
        }
        let Some(said) = about.error.as_ref().or(about.output.as_ref()) else { return };
        let author = self.agent_of(id, &about, run);
        self.say(event, Some(author), LineKind::Said(Arc::clone(said)));
        let place = self.place(id);
        if let Some(span) = self.spans.get_mut(place) {
            span.is_said = true;
        }
    }
}
