//! A folder of documents as two tools: one searches it, one reads from it.
//!
//! - [`walk`] lists the files, [`address`] gives each an address, and [`source`] reads them from a
//!   folder on disk, or from the corpus inside the program.
//! - [`text_index`] holds their words and is updated from the folder; [`ranking`] finds the best
//!   matches.
//! - [`folder_index`] is the state that the tools of one process share for a folder: its index, on disk
//!   ([`index_dir`]) or in memory.
//! - [`search`] and [`read`] are the tools.
//!
//! Skipped files are counted by reason ([`skipped_files`]) and reported with every result.

pub mod address;
pub mod cancellation;
pub mod folder_index;
pub mod index_dir;
pub mod ranking;
pub mod read;
pub mod search;
pub mod skipped_files;
mod snippet;
pub mod source;
pub mod text_index;
pub mod walk;
pub mod words;

pub use folder_index::ready;
pub use read::FolderRead;
pub use search::FolderSearch;

/// Most bytes of a file that is read; larger ones are skipped.
pub const MAX_BYTES: u64 = 8 << 20;

/// Most files of a folder that become documents; those beyond, in the order of their paths, are
/// skipped.
pub const MAX_FILES: usize = 50_000;
