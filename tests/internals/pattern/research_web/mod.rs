//! Research over the web, the whole engine: a scenario file, its real tools, sites on this machine over
//! real sockets, and what a run reports of each source that it could not read.

mod file;
mod gates;
mod hostile;
mod pages;
