//! A collaboration in words.

pub mod badges;
