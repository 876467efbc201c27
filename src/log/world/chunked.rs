//! A list that grows at its end and is shared between copies: only chunks that changed since the
//! copy are duplicated.

use std::sync::Arc;

/// Rows in one shared chunk.
const CHUNK: usize = 64;

/// A list in chunks that are copied on write.
#[derive(Clone, Debug)]
pub struct Chunked<T> {
    chunks: Vec<Arc<Vec<T>>>,
    len: usize,
}

impl<T> Default for Chunked<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<T> Chunked<T> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The row at this index.
    pub fn get(&self, place: usize) -> Option<&T> {
        self.chunks.get(place / CHUNK)?.get(place % CHUNK)
    }

    /// The last row.
    pub fn last(&self) -> Option<&T> {
        self.get(self.len.checked_sub(1)?)
    }

    /// The rows from this index on.
    pub fn iter_from(&self, place: usize) -> impl Iterator<Item = &T> {
        let first = self
            .chunks
            .get(place / CHUNK)
            .into_iter()
            .flat_map(move |chunk| chunk.iter().skip(place % CHUNK));
        first.chain(self.chunks.iter().skip(place / CHUNK + 1).flat_map(|chunk| chunk.iter()))
    }

    /// The number of rows at the start for which this holds. It must hold for no row after them.
    pub fn partition_point(&self, holds: impl Fn(&T) -> bool) -> usize {
        let whole = self.chunks.partition_point(|chunk| chunk.last().is_some_and(&holds));
        let within = self.chunks.get(whole).map_or(0, |chunk| chunk.partition_point(&holds));
        (whole * CHUNK + within).min(self.len)
    }

    /// All rows in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }
}

impl<T: Clone> Chunked<T> {
    /// Appends a row; returns its index.
    pub(crate) fn push(&mut self, row: T) -> usize {
        match self.chunks.last_mut().filter(|chunk| chunk.len() < CHUNK) {
            Some(chunk) => Arc::make_mut(chunk).push(row),
            None => self.chunks.push(Arc::new(vec![row])),
        }
        self.len += 1;
        self.len - 1
    }

    /// The row at this index, mutable. Copies a shared chunk.
    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        let chunk = self.chunks.get_mut(place / CHUNK)?;
        chunk.get(place % CHUNK)?;
        Arc::make_mut(chunk).get_mut(place % CHUNK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_stays_and_shares_unchanged_chunks() {
        let mut list = Chunked::default();
        for number in 0..200 {
            assert_eq!(list.push(number), number);
        }
        let copy = list.clone();
        *list.get_mut(130).expect("a row") = 0;
        list.push(200);
        assert_eq!((copy.get(130), copy.len()), (Some(&130), 200));
        assert_eq!((list.get(130), list.last()), (Some(&0), Some(&200)));
        assert!(Arc::ptr_eq(&copy.chunks[0], &list.chunks[0]));
        assert!(list.iter_from(198).eq(&[198, 199, 200]));
        assert!(list.iter_from(500).next().is_none());
        assert!(copy.iter().rev().take(2).eq(&[199, 198]));
    }

    #[test]
    fn partition_point_is_that_of_slice() {
        for len in [0, 1, 63, 64, 65, 200] {
            let mut list = Chunked::default();
            for number in 0..len {
                list.push(number);
            }
            for least in [0, 1, 63, 64, 65, 128, 199, 300] {
                assert_eq!(
                    list.partition_point(|it| *it < least),
                    len.min(least),
                    "{least} of {len}"
                );
            }
        }
    }
}
