//! The kept runs as a tree: forks below the run that they were forked from.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::RunId;
use crate::event::run_row::RunRow;

/// How deep a fork is drawn at most.
const MAX_DEPTH: u16 = 8;

/// Puts each fork below its parent, if both are listed. `order` has the listed rows, the newest first;
/// a tree is where its newest run would be. Returns the rows, each with its depth.
pub(super) fn as_tree(rows: &[RunRow], order: &[usize]) -> Vec<(usize, u16)> {
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
    fn forks_are_below_their_parent_and_the_newest_tree_is_first() {
        let runs = [("f3", "f1"), ("z", ""), ("f2", "a"), ("f1", "a"), ("b", ""), ("a", "")];
        assert_eq!(drawn(&runs), ["0a", "1f2", "1f1", "2f3", "0z", "0b"]);
    }

    #[test]
    fn a_fork_of_a_run_that_is_not_listed_stands_alone() {
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
