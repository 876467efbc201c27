//! Tests of the inside of the library. They are compiled into its own test binary, so that the tested
//! items need not be public; the folders are those of the modules.

mod app;
mod bus;
mod clock;
mod event;
mod gateway;
mod llm;
mod page;
mod pages;
mod pattern;
mod people;
mod replay;
mod run;
mod scenario;
mod shell;
mod tool;
mod ui;
mod watch;
mod watched_calls;
mod watched_shape;
