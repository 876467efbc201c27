//! The scenario files of the dashboard: reads them, again when they change, writes new ones from
//! templates, and finds the file to edit.

use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{EffectResult, Services};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::host::catalogue;
use crate::scenario::catalogue::ScenarioEntry;
use crate::scenario::{ScenarioOrigin, shipped, templates};
use crate::screen::Msg;

/// How long the files must be left alone before they are read: editors write in several steps.
const SETTLED: Duration = Duration::from_millis(150);

/// Number of changes after which the files are read even if they are not left alone.
const MAX_CHANGES: usize = 50;

/// Maximum number that is added to the name of a file.
const MAX_NUMBERED: u32 = 99;

/// Reloads the scenarios.
pub(crate) fn rescan(services: &Services) {
    services.in_background(|services| services.send_msg(Msg::Scenarios(scenarios(&services))));
}

fn scenarios(services: &Services) -> Vec<ScenarioEntry> {
    let mut entries = catalogue::read();
    let Some(named) = &services.named else { return entries };
    if entries.iter().any(|entry| entry.path == *named || entry.name.as_str() == named) {
        return entries;
    }
    match catalogue::read_one(named) {
        Ok(entry) => entries.insert(0, entry),
        Err(error) => services.failed("scenario", error),
    }
    entries
}

/// Reloads the scenarios whenever their files change, until the program ends. The thread of the watcher
/// is started here: on a thread of the runs it would have their low priority.
pub(crate) fn watch(services: &Services) {
    let (tell, changes) = mpsc::channel(1);
    match watcher(services, tell) {
        Ok(watcher) => drop(services.runtime.spawn(follow(services.clone(), watcher, changes))),
        // They can still be reloaded by a key.
        Err(error) => tracing::info!("changes of scenario files are not seen: {error}"),
    }
}

fn watcher(services: &Services, tell: mpsc::Sender<()>) -> notify::Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<_>| {
        if event.is_ok_and(|event| is_change(&event)) {
            // One change that is not read yet is enough: all files are read again.
            let _ = tell.try_send(());
        }
    })?;
    // The folder may appear later, and the file that the command line names may be elsewhere.
    watcher.watch(Path::new("."), RecursiveMode::NonRecursive)?;
    let named = services.named.as_ref().map(PathBuf::from).filter(|path| path.is_file());
    if let Some(folder) = named.as_deref().and_then(Path::parent).filter(|it| it.is_dir()) {
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
    }
    Ok(watcher)
}

/// Reloads the scenarios after each change.
async fn follow(
    services: Services,
    mut watcher: RecommendedWatcher,
    mut changes: mpsc::Receiver<()>,
) {
    let mut is_watched = watch_folder(&mut watcher, false);
    while changes.recv().await.is_some() {
        for _ in 0..MAX_CHANGES {
            if timeout(SETTLED, changes.recv()).await.is_err() {
                break;
            }
        }
        is_watched = watch_folder(&mut watcher, is_watched);
        rescan(&services);
    }
}

/// Writes the template of a pattern to a new file, and lists it.
pub(super) fn write_template(services: &Services, pattern: String) {
    services.in_background(move |services| {
        let all = templates();
        let Some(template) = all.iter().find(|it| it.pattern == pattern) else { return };
        match write_numbered(&format!("my-{pattern}"), template.text) {
            Ok(path) => {
                services.send_msg(Msg::Scenarios(scenarios(&services)));
                services.send_msg(Msg::ScenarioWritten(path.display().to_string()));
            }
            Err(why) => services.failed("new scenario", why),
        }
    });
}

/// Opens the file of a scenario in the editor; a copy of a shipped one.
pub(crate) fn edit(services: &Services, origin: ScenarioOrigin) {
    services.in_background(move |services| {
        let path = match origin {
            ScenarioOrigin::File(path) => path,
            ScenarioOrigin::Shipped(path) => match copy_of(path) {
                Ok(path) => path,
                Err(why) => return services.failed("editor", why),
            },
        };
        services.answer(EffectResult::Edit(path));
    });
}

/// Whether something was written, and not only read.
fn is_change(event: &notify::Event) -> bool {
    !matches!(event.kind, notify::EventKind::Access(_))
        && event.paths.iter().any(|path| {
            path.extension().is_some_and(|end| end == "toml")
                || path.file_name().is_some_and(|name| name == catalogue::FOLDER)
        })
}

/// Watches the folder of scenarios, if it exists; returns whether it does. A folder that was removed
/// and made again is watched again.
fn watch_folder(watcher: &mut RecommendedWatcher, was_watched: bool) -> bool {
    let folder = Path::new(catalogue::FOLDER);
    if was_watched && folder.is_dir() {
        return true;
    }
    folder.is_dir() && watcher.watch(folder, RecursiveMode::NonRecursive).is_ok()
}

/// A copy of a shipped scenario in the folder of scenarios. A file of its name is one already.
fn copy_of(path: &'static str) -> Result<PathBuf, Refused> {
    let one = shipped().iter().find(|it| it.path == path);
    let one = one.or_refuse(format_args!("{path} is not shipped"))?;
    let copy = Path::new(catalogue::FOLDER).join(format!("{}.toml", one.name));
    if !copy.exists() {
        catalogue::write_new(&copy, one.text)?;
    }
    Ok(copy)
}

/// Writes a file that does not exist yet, with a number after its name if need be.
fn write_numbered(name: &str, text: &str) -> Result<PathBuf, Refused> {
    let mut nth = 1;
    loop {
        let file = if nth == 1 { format!("{name}.toml") } else { format!("{name}-{nth}.toml") };
        let path = Path::new(catalogue::FOLDER).join(file);
        if !path.exists() || nth >= MAX_NUMBERED {
            return catalogue::write_new(&path, text).map(|()| path);
        }
        nth += 1;
    }
}
