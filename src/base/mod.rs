//! What every other module may use and what uses none of them: seeded random numbers, digests,
//! canonical JSON, days, names, whole numbers of any size, words and their stems, private and
//! regular files, text made visible, calls that contain a panic, and futures that are polled
//! only when they were woken. Nothing here knows of runs or scenarios.

pub mod big_integer;
pub mod canonical_json;
pub mod contained;
pub mod day;
pub mod digest;
pub mod duration;
pub mod iso_day;
pub mod name;
pub mod plain_words;
pub mod private;
pub(crate) mod private_host;
pub mod regular;
pub mod seeded_random;
pub mod stems;
pub mod visible;
pub mod wall_clock;
pub(crate) mod when_woken;
pub mod word_query;
