//! The paths of the spans of two logs, each kept once: in a log from elsewhere a path may be as long as
//! the log.

use std::collections::HashMap;

/// The innermost names of a path that are shown.
const MAX_NAMES: usize = 32;

/// A path; 0 is the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PathId(usize);

impl PathId {
    /// The run.
    pub const RUN: Self = Self(0);
}

/// All paths: each is a name within another one.
#[derive(Debug, Default)]
pub(super) struct SpanPaths {
    steps: Vec<(PathId, String)>,
    by_step: HashMap<(PathId, String), PathId>,
}

impl SpanPaths {
    /// The path of this name within `outer`.
    pub fn within(&mut self, outer: PathId, name: String) -> PathId {
        let steps = &mut self.steps;
        *self.by_step.entry((outer, name)).or_insert_with_key(|step| {
            steps.push(step.clone());
            PathId(steps.len())
        })
    }

    /// The names of a path, from the run inwards; a long path without its first names.
    pub fn names(&self, path: PathId) -> Vec<String> {
        let step = |PathId(at): PathId| self.steps.get(at.checked_sub(1)?);
        let steps = std::iter::successors(step(path), |(outer, _)| step(*outer));
        let mut names: Vec<_> = steps.take(MAX_NAMES + 1).map(|(_, name)| name.clone()).collect();
        if let Some(first) = names.get_mut(MAX_NAMES) {
            "…".clone_into(first);
        }
        names.reverse();
        names
    }
}
