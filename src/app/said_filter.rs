//! The filter of the list of runs, and the search over what was said that it may ask for. The store
//! answers the search, so the list waits for it; answers to an earlier question are dropped.

use std::collections::BTreeSet;

use super::effect::Effect;
use super::request::RequestId;
use crate::base::word_query::WordQuery;
use crate::event::RunId;

/// What precedes words that were said.
const SAID: &str = "said:";

/// The filter of the list of runs, read from its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RunFilter {
    /// Words and fields of the rows, in lower case.
    pub terms: Vec<String>,
    /// Words that were said: each after `said:`, phrases in double quotes.
    pub said: WordQuery,
}

impl RunFilter {
    pub(super) fn parse(text: &str) -> Self {
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

/// The search over what was said, as far as the store has answered it.
#[derive(Debug, Default)]
pub(super) struct SaidSearch {
    /// What the filter asks for now.
    wanted: WordQuery,
    /// What was asked last.
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
    /// Takes what the filter asks for.
    pub(super) fn want(&mut self, wanted: &WordQuery) {
        if wanted.is_empty() && !self.wanted.is_empty() {
            *self = Self::default();
        } else if *wanted != self.wanted {
            self.wanted = wanted.clone();
        }
    }

    /// Asks again, because the runs are not the same any more.
    pub(super) fn ask_again(&mut self) {
        self.asked = WordQuery::default();
    }

    /// Whether the store has to be asked.
    pub(super) fn is_due(&self) -> bool {
        self.wanted != self.asked
    }

    /// Asks the store; an earlier question needs no answer any more.
    pub(super) fn ask(&mut self, request: RequestId) -> Effect {
        self.asked = self.wanted.clone();
        self.request = Some(request);
        Effect::SearchSaid { request, query: self.wanted.clone() }
    }

    /// Takes an answer, complete if no runs are left; returns whether it is one to the last question.
    pub(super) fn answer(
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

    /// While the store searches: how many runs are left, as far as that is known.
    pub(super) fn runs_left(&self) -> Option<u64> {
        (self.request.is_some() || self.is_due()).then_some(self.left)
    }

    /// Why there is no answer.
    pub(super) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_has_words_and_what_was_said() {
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
