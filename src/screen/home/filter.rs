//! The filters of the lists on the first screen. The filter of the runs can search the texts that were
//! said: the store answers, so the list waits for it; answers to an earlier search are dropped.

use std::collections::BTreeSet;

use crate::base::word_query::WordQuery;
use crate::log::event::RunId;
use crate::log::world::run_row::{RunRow, RunStatus, StatusFilter};
use crate::screen::effect::{Effect, RequestId};
use crate::screen::filter_input::FilterInput;
use crate::screen::key::KeyPress;
use crate::screen::run::RunPage;
use crate::screen::run::filter::FilterStatus;
use crate::words::badges::{run_result, run_state};
use crate::words::question::waits_text;
use crate::words::verdict::stop_line;

/// The filter of a list.
#[derive(Clone, Debug, Default)]
pub struct ListFilter {
    text: String,
    typing: Option<FilterInput>,
    /// The last filter that was used, which the arrow up recalls.
    last: String,
}

impl ListFilter {
    /// The text of the filter; empty: everything is listed.
    pub fn text(&self) -> &str {
        self.typing.as_ref().map_or(self.text.as_str(), FilterInput::text)
    }

    /// Whether a filter is typed or set.
    pub fn is_on(&self) -> bool {
        self.typing.is_some() || !self.text.is_empty()
    }

    /// Whether a filter is typed.
    pub fn is_typing(&self) -> bool {
        self.typing.is_some()
    }

    /// The filter, while there is one.
    pub fn status(&self) -> Option<FilterStatus<'_>> {
        let (text, last, typing) = match &self.typing {
            Some(typed) => (typed.text(), typed.last(), Some(typed.cursor())),
            None if self.text.is_empty() => return None,
            None => (self.text.as_str(), "", None),
        };
        Some(FilterStatus { text, last, typing, error: None, percent: 100 })
    }

    /// Begins to type the filter.
    pub(crate) fn begin(&mut self) {
        self.typing = Some(FilterInput::new(self.text.clone(), self.last.clone()));
    }

    /// Keeps the filter that was typed.
    pub(crate) fn keep(&mut self) {
        if let Some(typed) = self.typing.take() {
            self.text = typed.text().trim().to_owned();
            self.remember();
        }
    }

    /// Removes the filter; returns whether there was one.
    pub(crate) fn clear(&mut self) -> bool {
        let was = self.is_on();
        if let Some(typed) = self.typing.take() {
            self.text = typed.text().trim().to_owned();
        }
        self.remember();
        self.text.clear();
        was
    }

    fn remember(&mut self) {
        if !self.text.is_empty() {
            self.last.clone_from(&self.text);
        }
    }

    /// Handles a key of the filter; returns whether it has a meaning there.
    pub(crate) fn on_key(&mut self, key: KeyPress) -> bool {
        self.typing.as_mut().is_some_and(|typed| typed.on_key(key))
    }

    /// Inserts a text into the filter; returns whether one is typed.
    pub(crate) fn on_paste(&mut self, text: &str) -> bool {
        let Some(typed) = &mut self.typing else { return false };
        typed.insert(text);
        true
    }
}

/// The prefix of a word that was said.
const SAID: &str = "said:";

/// The filter of the list of runs, read from its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunFilter {
    /// Words and fields of the rows, in lower case.
    pub terms: Vec<String>,
    /// Words that were said: each after `said:`, phrases in double quotes.
    pub said: WordQuery,
}

impl RunFilter {
    pub(crate) fn parse(text: &str) -> Self {
        let mut filter = Self::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let is_said = rest.get(..SAID.len()).is_some_and(|it| it.eq_ignore_ascii_case(SAID));
            if is_said {
                rest = filter.said.push_first(rest.get(SAID.len()..).unwrap_or_default());
            } else {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                let (term, after) = rest.split_at(end);
                filter.terms.push(term.to_lowercase());
                rest = after;
            }
            rest = rest.trim_start();
        }
        filter
    }
}

/// The search for words that were said, and the latest answer of the store.
#[derive(Debug, Default)]
pub(crate) struct SaidSearch {
    /// The words in the filter now.
    wanted: WordQuery,
    asked: WordQuery,
    /// The last question, until it is answered completely.
    request: Option<RequestId>,
    /// The runs of the last answer.
    found: Option<BTreeSet<RunId>>,
    /// Runs that are not searched yet.
    left: u64,
    /// Why there is no answer.
    problem: Option<String>,
}

impl SaidSearch {
    /// Takes the words in the filter.
    pub(crate) fn want(&mut self, wanted: &WordQuery) {
        if wanted.is_empty() && !self.wanted.is_empty() {
            *self = Self::default();
        } else if *wanted != self.wanted {
            self.wanted = wanted.clone();
        }
    }

    /// Asks again, because the runs are not the same any more.
    pub(crate) fn ask_again(&mut self) {
        self.asked = WordQuery::default();
    }

    /// Whether the store has to be asked.
    pub(crate) fn is_due(&self) -> bool {
        self.wanted != self.asked
    }

    /// Whether the answer of the store is not complete.
    pub(crate) fn is_searching(&self) -> bool {
        self.is_due() || self.request.is_some()
    }

    /// Asks the store; an earlier question needs no answer any more.
    pub(crate) fn ask(&mut self, request: RequestId) -> Effect {
        self.asked = self.wanted.clone();
        self.request = Some(request);
        Effect::SearchSaid { request, query: self.wanted.clone() }
    }

    /// Takes an answer, complete if no runs are left; returns whether it is one to the last question.
    pub(crate) fn answer(
        &mut self,
        request: RequestId,
        found: Result<Vec<RunId>, String>,
        left: u64,
    ) -> bool {
        if self.request != Some(request) {
            return false;
        }
        self.left = left;
        if left == 0 {
            self.request = None;
        }
        match found {
            Ok(found) => {
                self.found = Some(found.into_iter().collect());
                self.problem = None;
            }
            Err(problem) => {
                self.found = None;
                self.problem = Some(problem);
            }
        }
        true
    }

    /// Whether the filter lets a run pass. While a question is open, the runs of the last answer do.
    pub(super) fn lets_pass(&self, run: &RunId) -> bool {
        self.wanted.is_empty() || self.found.as_ref().is_some_and(|found| found.contains(run))
    }

    /// Number of runs that are not searched yet, while the store searches.
    pub(super) fn runs_left(&self) -> Option<u64> {
        (self.request.is_some() || self.is_due()).then_some(self.left)
    }

    /// Why there is no answer.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }
}

/// Whether a row has this term, which is in lower case; `text` is the searched text of the row.
pub(super) fn row_has(row: &RunRow, text: &str, term: &str) -> bool {
    if let Some(status) = term.strip_prefix("status:") {
        return status.is_empty()
            || StatusFilter::new(status).has(&row.status)
            || run_state(&row.status).word.to_lowercase().starts_with(status);
    }
    if let Some(name) = term.strip_prefix("scenario:") {
        return row.scenario.to_lowercase().contains(name);
    }
    text.contains(term)
}

pub(super) fn text_of_row(row: &RunRow) -> String {
    let RunRow { id, scenario, title, pattern, status, result, .. } = row;
    let (state, result) = (run_state(status).word, run_result(status, result.as_deref()));
    let waits = waits_text(row.waits_for.iter()).unwrap_or_default();
    let pinned = if row.pinned { " pinned" } else { "" };
    let reason = status.word();
    format!("{id} {scenario} {title} {pattern} {state} {reason} {waits} {result}{pinned}")
        .to_lowercase()
}

/// Whether a run of this session has all of these terms.
pub(super) fn page_has(page: &RunPage, terms: &[String]) -> bool {
    let world = page.world();
    let Some(head) = &world.head else { return false };
    let status = match &world.progress.closed {
        Some(closed) => RunStatus::Ended(closed.reason.to_string()),
        None => RunStatus::Running,
    };
    let (id, scenario, title) = (page.id(), &head.scenario, &head.title);
    let reason = status.word();
    let result = match &world.progress.closed {
        Some(closed) if !closed.reason.is_success() => stop_line(world, closed),
        _ => run_result(&status, world.progress.result.as_deref()),
    };
    let pattern = head.plan.name();
    let state = if reason == "running" { "live" } else { run_state(&status).word };
    let text = format!("{id} {scenario} {title} {pattern} {state} {reason} {result}");
    let text = text.to_lowercase();
    terms.iter().all(|term| match (term.strip_prefix("status:"), term.strip_prefix("scenario:")) {
        (Some(wanted), _) => {
            StatusFilter::new(wanted).has(&status) || state.to_lowercase().starts_with(wanted)
        }
        (_, Some(name)) => scenario.as_str().to_lowercase().contains(name),
        _ => text.contains(term.as_str()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_words_and_said_phrases() {
        let filter =
            RunFilter::parse(" Status:failed said:verd  said:\"Gift cards\" x Said:\"open");
        assert_eq!(filter.terms, ["status:failed", "x"]);
        assert_eq!(filter.said, WordQuery::parse("verd \"gift cards\" \"open"));
        let words = RunFilter::parse("said: said:--- aid:x \"said:y");
        assert_eq!((words.terms.len(), words.said.is_empty()), (2, true));
        assert_eq!(RunFilter::parse(" "), RunFilter::default());
    }

    #[test]
    fn only_the_last_question_is_answered() {
        let mut search = SaidSearch::default();
        let runs = || Ok(vec![RunId::new("r-1")]);
        assert!(!search.is_due() && search.lets_pass(&RunId::new("r-1")));
        search.want(&WordQuery::parse("a"));
        assert!(search.is_due() && !search.lets_pass(&RunId::new("r-1")));
        search.ask(RequestId(1));
        search.want(&WordQuery::parse("ab"));
        search.ask(RequestId(2));
        assert!(!search.answer(RequestId(1), runs(), 0), "an answer to an earlier question");
        assert_eq!(search.runs_left(), Some(0));
        assert!(search.answer(RequestId(2), runs(), 7));
        assert!(search.lets_pass(&RunId::new("r-1")) && !search.lets_pass(&RunId::new("r-2")));
        assert_eq!(search.runs_left(), Some(7));
        assert!(search.answer(RequestId(2), Err("the disk".to_owned()), 0));
        assert_eq!((search.runs_left(), search.problem()), (None, Some("the disk")));
        search.want(&WordQuery::default());
        assert!(!search.is_due() && search.problem().is_none());
        assert!(!search.answer(RequestId(2), runs(), 0), "nothing is asked any more");
    }
}
