//! The list of runs on the first screen: the runs of this session, then the kept ones, forks below
//! the run that they were forked from. Its order is made when its contents, the filter or the sort
//! change, so a frame formats only the rows in view.

use crate::base::worded;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::filter::{ListFilter, RunFilter, SaidSearch, page_has, row_has, text_of_row};
use crate::base::time::millis;
use crate::log::event::RunId;
use crate::log::world::run_row::{RunRow, RunStatus};
use crate::screen::action::Action;
use crate::screen::keymap::key_of;
use crate::screen::run::RunPage;
use crate::words::format;

/// Maximum number of interrupted runs that are named.
const MAX_NAMED: usize = 3;

/// Figures that the layout of the list of kept runs needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct HistorySummary {
    /// Length of the longest id.
    pub longest_id: usize,
    /// Whether runs of a cluster are among them.
    pub has_cluster: bool,
    pub has_cost: bool,
}

/// The kept runs, and how the list of runs is filtered and sorted.
#[derive(Debug, Default)]
pub struct History {
    /// The kept runs, the newest first.
    rows: Vec<RunRow>,
    pub summary: HistorySummary,
    /// The text of each row that the filter searches; made when a filter is first used.
    texts: Vec<String>,
    /// The rows that are listed, in the list's order.
    order: Vec<usize>,
    /// How deep each of them is in the tree of forks; empty: none is a fork.
    depths: Vec<u16>,
    /// The runs of this session that are listed: those that wait for a person, then the others.
    sessions: Vec<usize>,
    /// How many of them wait for a person.
    waiting: usize,
    /// Number of kept runs that are not of this session, with or without a filter.
    others: usize,
    pub filter: ListFilter,
    sort: RunSort,
    /// The filter's search for words that were said.
    pub(crate) said: SaidSearch,
    /// Runs that the operator removed, the last one at the end.
    removed: Vec<RunId>,
    /// When the program started, as Unix time in milliseconds; `None` before the first rows.
    began_ms: Option<u64>,
    /// Whether the first screen still has to tell that runs were interrupted.
    tells_interrupted: bool,
}

/// The order of the kept runs. Runs with equal values stay in the order of their start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunSort {
    /// The newest first.
    #[default]
    Newest,
    /// The most expensive first.
    Cost,
    /// Those with the most tokens first.
    Tokens,
    /// The longest first.
    Time,
    /// Interrupted, running, stopped, cancelled, completed.
    Status,
}

worded! { RunSort {
    Newest = "newest", Cost = "cost", Tokens = "tokens", Time = "time", Status = "status",
} }

impl RunSort {
    fn next(self) -> Self {
        match self {
            Self::Newest => Self::Cost,
            Self::Cost => Self::Tokens,
            Self::Tokens => Self::Time,
            Self::Time => Self::Status,
            Self::Status => Self::Newest,
        }
    }

    fn compare(self, a: &RunRow, b: &RunRow) -> Ordering {
        match self {
            Self::Newest => Ordering::Equal,
            Self::Cost => {
                let cost = |row: &RunRow| row.cost_usd.unwrap_or(0.0);
                cost(b).total_cmp(&cost(a))
            }
            Self::Tokens => b.tokens.cmp(&a.tokens),
            Self::Time => b.elapsed_ms.cmp(&a.elapsed_ms),
            Self::Status => status_order(a).cmp(&status_order(b)),
        }
    }
}

fn status_order(row: &RunRow) -> (u8, Reverse<bool>) {
    let place = match &row.status {
        RunStatus::Interrupted => 0,
        RunStatus::Waiting | RunStatus::Running => 1,
        RunStatus::Ended(reason) if reason == "success" => 4,
        RunStatus::Ended(reason) if reason == "cancelled" => 3,
        RunStatus::Ended(_) => 2,
    };
    (place, Reverse(row.pinned))
}

/// The runs of this session, the newest first; the messages of a session of a team stay together, below
/// the first of them.
fn newest_first(runs: &[RunPage]) -> Vec<usize> {
    let mut firsts: Vec<usize> = Vec::with_capacity(runs.len());
    for (at, page) in runs.iter().enumerate() {
        let before = page.world().session().and_then(|session| session.previous_run.as_ref());
        let before = before.and_then(|id| runs[..at].iter().position(|page| page.id() == id));
        firsts.push(before.and_then(|at| firsts.get(at).copied()).unwrap_or(at));
    }
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_key(|at| (Reverse(firsts[*at]), *at));
    order
}

/// A heading between the rows of the list of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunHeading {
    /// Above the runs that wait for a person.
    Waiting,
    /// Above the other runs of this session.
    Others,
    /// Above the kept runs: the heads of their columns.
    Kept,
}

/// A row of the list of runs.
#[derive(Clone, Copy, Debug)]
pub enum ListedRun<'a> {
    Session(&'a RunPage),
    Kept(&'a RunRow),
}

impl<'a> ListedRun<'a> {
    pub fn id(self) -> &'a RunId {
        match self {
            Self::Session(page) => page.id(),
            Self::Kept(row) => &row.id,
        }
    }
}

/// The list of runs.
#[derive(Clone, Copy, Debug)]
pub struct RunList<'a> {
    /// The runs of this session.
    pub runs: &'a [RunPage],
    pub history: &'a History,
}

impl<'a> RunList<'a> {
    /// Number of runs.
    pub fn len(self) -> usize {
        self.history.sessions.len() + self.history.order.len()
    }

    /// Number of runs of this session.
    pub fn session_count(self) -> usize {
        self.history.sessions.len()
    }

    /// Whether it has no runs.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The run at this place.
    pub fn get(self, at: usize) -> Option<ListedRun<'a>> {
        let History { sessions, order, rows, .. } = self.history;
        match at.checked_sub(sessions.len()) {
            None => self.runs.get(*sessions.get(at)?).map(ListedRun::Session),
            Some(at) => rows.get(*order.get(at)?).map(ListedRun::Kept),
        }
    }

    /// The place of a run.
    pub fn position(self, id: &RunId) -> Option<usize> {
        (0..self.len()).find(|at| self.get(*at).is_some_and(|run| run.id() == id))
    }

    /// How deep the run at this place is in the tree of forks.
    pub fn depth(self, at: usize) -> u16 {
        let History { sessions, depths, .. } = self.history;
        let depth = at.checked_sub(sessions.len()).and_then(|at| depths.get(at));
        depth.copied().unwrap_or_default()
    }

    /// The headings between the runs, in their order: the place of the run below each, and which it is.
    fn headings(self) -> impl Iterator<Item = (usize, RunHeading)> + Clone {
        let History { sessions, waiting, order, .. } = self.history;
        let (waiting, sessions) = (*waiting, sessions.len());
        let others = (0 < waiting && waiting < sessions).then_some((waiting, RunHeading::Others));
        let kept = (sessions > 0 && !order.is_empty()).then_some((sessions, RunHeading::Kept));
        let first = (waiting > 0).then_some((0, RunHeading::Waiting));
        [first, others, kept].into_iter().flatten()
    }

    /// The line of the heads of the kept runs below those of this session, if both are listed.
    pub fn heads_line(self) -> Option<usize> {
        let above = self.headings().count().checked_sub(1)?;
        let kept = self.headings().last().filter(|(_, heading)| *heading == RunHeading::Kept)?;
        Some(kept.0 + above)
    }

    /// Number of lines, the headings between the runs included.
    pub fn lines(self) -> usize {
        self.len() + self.headings().count()
    }

    /// Number of lines without a filter.
    pub fn all_lines(self) -> usize {
        let (runs, others) = (self.runs.len(), self.history.others);
        let kept = usize::from(runs > 0 && others > 0);
        let waiting = self.headings().filter(|(_, heading)| *heading != RunHeading::Kept).count();
        runs + others + kept + waiting
    }

    /// The line of the run at this place.
    pub fn line(self, at: usize) -> usize {
        at + self.headings().filter(|(first, _)| *first <= at).count()
    }

    /// The place of the run on this line.
    pub fn place_on_line(self, line: usize) -> Option<usize> {
        let mut above = 0;
        for (first, _) in self.headings() {
            match line.cmp(&(first + above)) {
                Ordering::Less => break,
                Ordering::Equal => return None,
                Ordering::Greater => above += 1,
            }
        }
        Some(line - above)
    }

    /// The heading on this line.
    pub(super) fn heading_on_line(self, line: usize) -> Option<RunHeading> {
        let mut headings = self.headings().enumerate();
        headings.find_map(|(nth, (first, heading))| (first + nth == line).then_some(heading))
    }

    pub fn on_line(self, line: usize) -> Option<ListedRun<'a>> {
        self.get(self.place_on_line(line)?)
    }
}

impl History {
    /// Takes the kept runs, the newest first. `wall_ms` is the time as Unix time in milliseconds,
    /// `now` the time since the start of the program.
    pub(super) fn set_rows(&mut self, rows: Vec<RunRow>, wall_ms: u64, now: Duration) {
        self.summary = HistorySummary {
            longest_id: rows.iter().map(|row| row.id.as_str().len()).max().unwrap_or(0),
            has_cost: rows.iter().any(|row| row.cost_usd.is_some_and(|cost| cost > 0.0)),
            has_cluster: rows.iter().any(|row| row.runner.is_some()),
        };
        let is_interrupted = |row: &RunRow| row.status == RunStatus::Interrupted;
        self.tells_interrupted |= self.began_ms.is_none() && rows.iter().any(is_interrupted);
        self.rows = rows;
        self.texts.clear();
        self.said.ask_again();
        self.began_ms = Some(wall_ms.saturating_sub(millis(now)));
    }

    /// Whether the kept runs are known.
    pub fn is_known(&self) -> bool {
        self.began_ms.is_some()
    }

    /// All kept runs, also those that are not listed.
    pub fn rows(&self) -> &[RunRow] {
        &self.rows
    }

    /// The interrupted runs that wait for people, the newest first, but for those of this session.
    pub fn waiting(&self, runs: &[RunPage]) -> impl Iterator<Item = &RunRow> {
        let is_own = |row: &RunRow| runs.iter().any(|page| *page.id() == row.id);
        self.interrupted().filter(move |row| !row.waits_for.is_empty() && !is_own(row))
    }

    fn interrupted(&self) -> impl Iterator<Item = &RunRow> + Clone {
        self.rows.iter().filter(|row| row.status == RunStatus::Interrupted)
    }

    /// The runs that were interrupted, until the operator has seen it, and how one is continued: in full,
    /// and in fewer words for a row that shows more.
    pub(crate) fn interrupted_lines(&self) -> Option<[String; 3]> {
        let count = self.interrupted().count();
        if !self.tells_interrupted || count == 0 {
            return None;
        }
        let named: Vec<&str> =
            self.interrupted().take(MAX_NAMED).map(|row| row.id.as_str()).collect();
        let more = if count > MAX_NAMED { ", …" } else { "" };
        let (were, one) = if count == 1 { ("was", "it") } else { ("were", "one") };
        let runs = format::count_noun(count as u64, "run");
        let (named, key) = (named.join(", "), key_of(Action::PauseResume));
        Some([
            format!("{runs} {were} interrupted: {named}{more}; select {one}, {key} continues it"),
            format!("{count} interrupted: select {one}, {key} continues it"),
            format!("{count} interrupted"),
        ])
    }

    /// The operator has seen that runs were interrupted; returns whether that was news.
    pub(crate) fn interrupted_seen(&mut self) -> bool {
        std::mem::take(&mut self.tells_interrupted)
    }

    /// Number of kept runs on the list.
    pub fn listed_count(&self) -> usize {
        self.order.len()
    }

    /// The row of a kept run.
    pub fn row(&self, id: &RunId) -> Option<&RunRow> {
        self.rows.iter().find(|row| row.id == *id)
    }

    /// How long ago a run started in milliseconds; `now` is the time since the start of the program.
    pub fn age_ms(&self, row: &RunRow, now: Duration) -> u64 {
        self.wall_ms(now).saturating_sub(row.started_ms)
    }

    /// The time as Unix time in milliseconds.
    pub fn wall_ms(&self, now: Duration) -> u64 {
        self.began_ms.unwrap_or_default().saturating_add(millis(now))
    }

    /// The order of the kept runs.
    pub fn sort(&self) -> RunSort {
        self.sort
    }

    pub(crate) fn sort_next(&mut self) {
        self.sort = self.sort.next();
    }

    /// Lists what passes the filter, in the order of the sort.
    pub(crate) fn arrange(&mut self, runs: &[RunPage]) {
        let RunFilter { terms, said } = RunFilter::parse(self.filter.text());
        self.said.want(&said);
        if !terms.is_empty() && self.texts.len() != self.rows.len() {
            self.texts = self.rows.iter().map(text_of_row).collect();
        }
        let own: std::collections::BTreeSet<&RunId> = runs.iter().map(|page| page.id()).collect();
        self.sessions = newest_first(runs)
            .into_iter()
            .filter(|at| {
                runs.get(*at).is_some_and(|page| {
                    self.said.lets_pass(page.id()) && (terms.is_empty() || page_has(page, &terms))
                })
            })
            .collect();
        let waits = |at: &usize| runs.get(*at).is_some_and(RunPage::waits_for_person);
        let sessions = std::mem::take(&mut self.sessions).into_iter();
        let (mut sessions, others): (Vec<usize>, Vec<usize>) = sessions.partition(waits);
        self.waiting = sessions.len();
        sessions.extend(others);
        self.sessions = sessions;
        self.others = self.rows.iter().filter(|row| !own.contains(&row.id)).count();
        let rows = self.rows.iter().enumerate();
        let texts = &self.texts;
        let wanted = |at: usize, row: &RunRow| {
            let text = texts.get(at).map_or("", String::as_str);
            terms.iter().all(|term| row_has(row, text, term)) && self.said.lets_pass(&row.id)
        };
        self.order = rows
            .filter(|(at, row)| wanted(*at, row) && !own.contains(&row.id))
            .map(|(at, _)| at)
            .collect();
        let (rows, sort) = (&self.rows, self.sort);
        if sort != RunSort::Newest {
            self.order.sort_by(|a, b| match (rows.get(*a), rows.get(*b)) {
                (Some(a), Some(b)) => sort.compare(a, b),
                _ => Ordering::Equal,
            });
            self.depths.clear();
        } else if rows.iter().any(|row| row.parent.is_some()) {
            (self.order, self.depths) = as_tree(rows, &self.order).into_iter().unzip();
        } else {
            self.depths.clear();
        }
    }

    /// Number of runs that are not searched yet, while the store searches for words that were said.
    pub fn said_runs_left(&self) -> Option<u64> {
        self.said.runs_left()
    }

    /// Why the search for words that were said is not possible.
    pub fn said_problem(&self) -> Option<&str> {
        self.said.problem()
    }

    pub(super) fn add_removed(&mut self, run: RunId) {
        self.removed.retain(|id| *id != run);
        self.removed.push(run);
    }

    /// Forgets a removed run, which is back.
    pub(super) fn drop_removed(&mut self, run: &RunId) {
        self.removed.retain(|id| id != run);
    }

    pub fn last_removed(&self) -> Option<&RunId> {
        self.removed.last()
    }
}

/// How deep a fork is drawn at most.
const MAX_DEPTH: u16 = 8;

/// Puts each fork below its parent, if both are listed. `order` has the listed rows, the newest first;
/// a tree is where its newest run would be. Returns the rows, each with its depth.
fn as_tree(rows: &[RunRow], order: &[usize]) -> Vec<(usize, u16)> {
    let listed: BTreeMap<&RunId, usize> =
        order.iter().filter_map(|at| Some((&rows.get(*at)?.id, *at))).collect();
    let parent_of = |at: usize| {
        let parent = rows.get(at)?.parent.as_ref()?;
        listed.get(parent).copied()
    };
    let mut forks: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for at in order {
        if let Some(parent) = parent_of(*at) {
            forks.entry(parent).or_default().push(*at);
        }
    }
    let mut tree = Vec::with_capacity(order.len());
    let mut placed = BTreeSet::new();
    for at in order {
        if placed.contains(at) {
            continue;
        }
        // An imported run may name itself, or its own fork, as its parent.
        let (mut root, mut seen) = (*at, BTreeSet::from([*at]));
        while let Some(parent) = parent_of(root)
            && seen.insert(parent)
        {
            root = parent;
        }
        let mut open = vec![(root, 0_u16)];
        while let Some((at, depth)) = open.pop() {
            if placed.insert(at) {
                tree.push((at, depth.min(MAX_DEPTH)));
                // The last one pushed comes first: the newest.
                let below = forks.get(&at).into_iter().flatten().rev();
                open.extend(below.map(|fork| (*fork, depth + 1)));
            }
        }
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(runs: &[(&str, &str)]) -> Vec<String> {
        let row = |(id, parent): &(&str, &str)| {
            let parent = (!parent.is_empty()).then(|| RunId::new(*parent));
            RunRow { parent, ..RunRow::begun(RunId::new(*id)) }
        };
        let rows: Vec<RunRow> = runs.iter().map(row).collect();
        let order: Vec<usize> = (0..rows.len()).collect();
        let tree = as_tree(&rows, &order);
        tree.iter().map(|(at, depth)| format!("{depth}{}", rows[*at].id)).collect()
    }

    #[test]
    fn sorts_forks_below_parent_newest_first() {
        let runs = [("f3", "f1"), ("z", ""), ("f2", "a"), ("f1", "a"), ("b", ""), ("a", "")];
        assert_eq!(drawn(&runs), ["0a", "1f2", "1f1", "2f3", "0z", "0b"]);
    }

    #[test]
    fn fork_without_listed_parent_stands_alone() {
        assert_eq!(drawn(&[("f", "gone"), ("a", "")]), ["0f", "0a"]);
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let runs = [("a", "b"), ("b", "a"), ("c", "c")];
        let mut listed = drawn(&runs);
        listed.sort();
        assert_eq!(listed.len(), 3, "{listed:?}");
    }
}
