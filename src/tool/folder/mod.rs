//! A folder of documents as two tools: one that searches them, one that reads them.
//!
//! - [`walk`] looks what files there are, [`address`] says under which address each stands, and
//!   [`source`] reads them: from a folder of the disk, or from the corpus inside the program.
//! - [`text_index`] holds their words and follows the folder; [`ranking`] finds what fits best.
//! - [`shelf`] is what the tools of one process share of one folder: its index, kept on the disk
//!   ([`keeping`]) or in memory.
//! - [`search`] and [`read`] are the tools.
//!
//! What is left out of a folder is counted by its reason ([`left_out`]) and told with every answer.

pub mod address;
pub mod keeping;
pub mod left_out;
pub mod ranking;
pub mod read;
pub mod search;
pub mod shelf;
mod snippet;
pub mod source;
pub mod stop;
pub mod text_index;
pub mod walk;
pub mod words;

pub use read::FolderRead;
pub use search::FolderSearch;
pub use shelf::ready;

/// The most bytes of a file that is read; a larger one is left out.
pub const MAX_BYTES: u64 = 8 << 20;

/// The most files of a folder that are looked at as documents; those beyond, in the order of their
/// paths, are left out.
pub const MAX_FILES: usize = 50_000;
