//! Research over the web, the whole engine: a scenario file, its real tools, sites on this machine over
//! real sockets, and what a run reports of each source that it could not read.

mod binary;
mod research;
mod site;

#[path = "research_web/file.rs"]
mod file;
#[path = "research_web/gates.rs"]
mod gates;
#[path = "research_web/hostile.rs"]
mod hostile;
#[path = "research_web/pages.rs"]
mod pages;
