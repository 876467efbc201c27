//! Which service carries out which effect.

use super::comparison;
use super::effects::Services;
use super::scenario_files;
use crate::app::{Action, Effect};

/// An effect on the terminal, which only the loop can carry out.
pub(super) enum TerminalEffect {
    /// Show a text in the pager.
    Page(String),
    /// Export a picture of the screen.
    Picture,
    /// Suspend the program.
    Suspend,
    /// Draw with the next theme.
    NextTheme,
    /// Redraw the whole screen.
    Redraw,
    /// Quit the program.
    Quit {
        /// The exit code.
        code: u8,
    },
}

/// Carries out an effect; returns one on the terminal.
pub(super) fn execute(services: &Services, effect: Effect) -> Option<TerminalEffect> {
    match effect {
        Effect::Start(request) => services.start(*request),
        Effect::ReadFork(source) => services.read_fork(source),
        Effect::Rerun(source) => services.rerun(source),
        Effect::Compare { request, runs } => comparison::compare(services, request, *runs),
        Effect::Resume { request, run } => services.resume(request, run),
        Effect::Trust { digest, title } => services.allow(&digest, &title),
        Effect::Command { run, command } => match services.engine.run(&run) {
            Some(run) => run.send(command),
            #[cfg(feature = "nats")]
            None if crate::shell::remote::command_remote(services, &run, command) => {}
            None => tracing::debug!("{run} was dropped; command ignored"),
        },
        #[cfg(feature = "nats")]
        Effect::Attach { request, run } => services.attach(run, request),
        #[cfg(not(feature = "nats"))]
        Effect::Attach { .. } => {}
        Effect::Copy(text) => services.copy(text),
        Effect::Export(files) => services.export(files, Action::Export),
        Effect::Rescan => scenario_files::rescan(services),
        Effect::NewScenario { pattern } => scenario_files::write_template(services, pattern),
        Effect::Edit(origin) => scenario_files::edit(services, origin),
        Effect::ListKept => services.list_kept(),
        Effect::OpenKept { request, run, follows } => services.open_kept(run, request, follows),
        Effect::SearchSaid { request, query } => services.search_said(request, query),
        Effect::PinKept { run, pinned } => services.pin_kept(run, pinned),
        Effect::RemoveKept(run) => services.remove_kept(run),
        Effect::RestoreKept(run) => services.restore_kept(run),
        Effect::FindLive(query) => services.find_live(*query),
        Effect::ListModels { query, place } => services.list_models(*query, place),
        Effect::FindOllama { form } => services.find_ollama(form),
        Effect::Page(text) => return Some(TerminalEffect::Page(text)),
        Effect::Picture => return Some(TerminalEffect::Picture),
        Effect::Suspend => return Some(TerminalEffect::Suspend),
        Effect::NextTheme => return Some(TerminalEffect::NextTheme),
        Effect::Redraw => return Some(TerminalEffect::Redraw),
        Effect::Quit { code } => return Some(TerminalEffect::Quit { code }),
    }
    None
}
