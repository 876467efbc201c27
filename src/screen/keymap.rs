//! The one binding table. The key row, the help and the documents read it, and nothing else says
//! which key does what, unless the configuration names other keys.

use crate::base::worded;
use std::sync::OnceLock;

use Context::{
    Card, CardLine, CardText, Commands, Comparison, Confirm, Faults, Filter, Flags, Form, FormText,
    Help, Home, Inbox, Inspector, Members, Message, Models, ProgramLine, Run, Templates,
};

use super::action::Action;
use super::key::{KeyCode, KeyPress};
use crate::scenario::config::ConfiguredKeys;
use crate::scenario::read::suggest_name;

/// Where a key is pressed: the focus decides what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Context {
    Home,
    Run,
    Inspector,
    Filter,
    Flags,
    Faults,
    Members,
    Message,
    /// A line for the input of a watched program.
    ProgramLine,
    Inbox,
    /// The card of a question, with the focus outside its fields.
    Card,
    /// A field of a card that has one line.
    CardLine,
    /// A text of a card, in which Enter is a new line.
    CardText,
    /// The launch form, with the focus outside a text.
    Form,
    /// The launch form, while a text is edited.
    FormText,
    Models,
    Templates,
    Comparison,
    Help,
    Commands,
    Confirm,
}

worded! { Context + ALL {
    Home = "home", Run = "run", Inspector = "inspector", Flags = "flags", Faults = "faults",
    Members = "members", Message = "next message", ProgramLine = "line for a program",
    Inbox = "inbox", Card = "card", CardLine = "field of a card", CardText = "text of a card", Form = "launch form",
    FormText = "text of the launch form", Models = "list of models", Filter = "filter",
    Templates = "list of templates", Comparison = "comparison", Help = "help",
    Commands = "list of commands", Confirm = "confirmation",
} }

impl Context {
    /// Whether it has fields, among which Tab moves.
    pub(super) fn is_form(self) -> bool {
        matches!(self, Self::Form | Self::FormText | Self::CardLine | Self::CardText)
    }

    /// Whether characters are typed as text here and trigger no action.
    pub fn takes_text(self) -> bool {
        matches!(
            self,
            Self::Filter
                | Self::FormText
                | Self::Models
                | Self::Help
                | Self::Commands
                | Self::Message
                | Self::ProgramLine
                | Self::CardLine
                | Self::CardText
        )
    }
}

/// The heading under which the help lists a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// Movement.
    Move,
    /// Reading; never changes a run.
    Look,
    /// Start, pause, step, flags: can be undone.
    Watch,
    /// Ends a run, spends money or overrides a breaker: UPPERCASE, so that it is not hit by accident.
    Change,
    /// The program itself.
    App,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// The contexts in which it is valid.
    pub contexts: &'static [Context],
    /// Its keys, unless the configuration names others; the key row shows the first.
    pub keys: &'static [KeyPress],
    pub action: Action,
    /// One word for the key row. Neighbours with the same word share one entry.
    pub word: &'static str,
    /// One line for the help.
    pub help: &'static str,
    /// The heading under which the help lists it.
    pub group: Group,
    /// Priority in the key row: 1 is the highest, 0 is never shown.
    pub rank: u8,
}

const fn c(c: char) -> KeyPress {
    KeyPress::char(c)
}
const fn k(code: KeyCode) -> KeyPress {
    KeyPress::new(code)
}
const ENTER: KeyPress = k(KeyCode::Enter);
const SPACE: KeyPress = c(' ');

/// Constructor of one row, which keeps the table short.
const fn row(
    contexts: &'static [Context],
    keys: &'static [KeyPress],
    action: Action,
    word: &'static str,
    help: &'static str,
    group: Group,
    rank: u8,
) -> Binding {
    Binding { contexts, keys, action, word, help, group, rank }
}

const EVERYWHERE: &[Context] = &Context::ALL;
const SCREENS: &[Context] = &[Home, Run, Inspector, Flags, Faults, Members, Form];
const LISTS: &[Context] = &[
    Home, Run, Inspector, Flags, Faults, Members, Inbox, Card, Form, Models, Templates, Comparison,
    Help, Commands, Confirm,
];
#[rustfmt::skip]
const HELPED: &[Context] = &[
    Home, Run, Inspector, Flags, Faults, Members, Message, ProgramLine, Inbox, Card, CardLine, CardText,
    Form, Templates, Comparison,
];
const COMMANDED: &[Context] =
    &[Home, Run, Inspector, Flags, Faults, Members, Form, Templates, Comparison];
const RUNS: &[Context] = &[Home, Run, Inspector];
const FIELDS: &[Context] = &[Home, Run, Inspector, CardLine, CardText, Form, FormText];
const DIGITS: &[KeyPress] =
    &[c('1'), c('2'), c('3'), c('4'), c('5'), c('6'), c('7'), c('8'), c('9')];

/// The table. Its order is that of the key row and, within a group, that of the help.
#[rustfmt::skip]
pub static BINDINGS: &[Binding] = &[
    row(FIELDS, &[k(KeyCode::Tab)], Action::NextPane, "pane",
        "next pane or field", Group::Move, 3),
    row(FIELDS, &[k(KeyCode::BackTab)], Action::PrevPane, "",
        "previous pane or field", Group::Move, 0),
    row(&[Home, Run, Inspector], DIGITS, Action::Pane(0), "", "the pane with that number", Group::Move, 0),
    row(&[Card], &[k(KeyCode::Tab)], Action::NextQuestion, "next question", "the next open question", Group::Move, 3),
    row(&[Card], &[k(KeyCode::BackTab)], Action::PrevQuestion, "", "the open question before this one", Group::Move, 0),
    row(LISTS, &[c('j'), k(KeyCode::Down)], Action::Down, "move", "down", Group::Move, 7),
    row(LISTS, &[c('k'), k(KeyCode::Up)], Action::Up, "move", "up", Group::Move, 7),
    row(SCREENS, &[c('h'), k(KeyCode::Left)], Action::Left, "", "left, out, or the previous choice", Group::Move, 0),
    row(SCREENS, &[c('l'), k(KeyCode::Right)], Action::Right, "", "right, in, or the next choice", Group::Move, 0),
    row(LISTS, &[c('g'), k(KeyCode::Home)], Action::Top, "", "first row", Group::Move, 0),
    row(LISTS, &[c('G'), k(KeyCode::End)], Action::Bottom, "", "last row; in a run, back to live", Group::Move, 0),
    row(LISTS, &[k(KeyCode::PageDown), KeyPress::ctrl('d')], Action::PageDown, "", "page down", Group::Move, 0),
    row(LISTS, &[k(KeyCode::PageUp), KeyPress::ctrl('u')], Action::PageUp, "", "page up", Group::Move, 0),

    row(&[Home], &[ENTER], Action::Open, "start", "start the scenario with its defaults, or open the run", Group::Watch, 2),
    row(&[Home], &[c('t')], Action::Tour, "tour", "the tour: six keys, each explained in a running scenario", Group::Watch, 8),
    row(&[Home, Run], &[c('n')], Action::NewRun, "new run", "open the launch form: goal, inputs, flags, limits, model", Group::Watch, 4),
    row(&[Form], &[ENTER, SPACE], Action::Press, "press", "press, switch, choose, or edit the text", Group::Watch, 3),
    row(&[Form, FormText], &[KeyPress::ctrl('s')], Action::Start, "start", "start the run that the form describes", Group::Watch, 1),
    row(&[Home], &[c('N')], Action::NewScenario, "new scenario", "a new scenario file from a template", Group::App, 6),
    row(&[Home], &[c('E')], Action::Edit, "edit", "edit the scenario's file in $EDITOR; a shipped one is copied to ./scenarios", Group::App, 6),
    row(&[Templates], &[ENTER], Action::WriteTemplate, "write", "write the selected template to a new file", Group::App, 1),
    row(&[Models], &[ENTER], Action::Take, "choose", "choose the selected model, or the name as typed", Group::Watch, 1),
    row(&[Run, Comparison], &[ENTER], Action::Inspect, "inspect", "inspect the selection", Group::Look, 5),
    row(RUNS, &[SPACE], Action::PauseResume, "pause", "pause at the next boundary, or resume; continue a run that was interrupted", Group::Watch, 3),
    row(RUNS, &[c('s')], Action::Step, "step", "step to the next boundary", Group::Watch, 4),
    row(RUNS, &[c('S')], Action::StepRound, "", "run to the next round", Group::Watch, 0),
    row(&[Run], &[c('B')], Action::Breakpoint, "", "breakpoint: pause at the next round or dispatch", Group::Watch, 0),
    row(&[Run, Inspector], &[c(',')], Action::ScrubBack, "scrub", "playhead back", Group::Look, 8),
    row(&[Run, Inspector], &[c('.')], Action::ScrubForward, "scrub", "playhead forward", Group::Look, 8),
    row(&[Run, Inspector], &[c('<')], Action::MarkBack, "mark", "playhead to the previous mark: a round, retry, breaker or flag", Group::Look, 9),
    row(&[Run, Inspector], &[c('>')], Action::MarkForward, "mark", "playhead to the next mark", Group::Look, 9),
    row(&[Run, Inspector], &[c('[')], Action::PrevRun, "run", "the run before this one: the row below in the list", Group::Look, 9),
    row(&[Run, Inspector], &[c(']')], Action::NextRun, "run", "the run after this one: the row above in the list", Group::Look, 9),
    row(&[Run], &[c('L')], Action::EventLevel, "", "events: the notable ones, or all", Group::Look, 0),
    row(&[Home], &[c('P')], Action::PauseAll, "pause all", "pause every live run; press it again to resume them all", Group::Watch, 5),
    row(RUNS, &[c('f')], Action::Flags, "flags", "the run's flags, and the effect of a switch", Group::Watch, 4),
    row(&[Run], &[c('t')], Action::Tools, "tools", "the tools' breakers, bulkheads and retries; or back", Group::Look, 4),
    row(&[Run], &[c('!')], Action::Faults, "faults", "faults and limits of the selected tool", Group::Watch, 2),
    row(&[Run, Faults], &[c('+')], Action::More, "more, less", "raise the concurrency limit, or the selected row", Group::Watch, 5),
    row(&[Run, Faults], &[c('-')], Action::Less, "more, less", "lower the concurrency limit, or the selected row", Group::Watch, 5),
    row(&[Run], &[c('i')], Action::Message, "message", "the session's next message to the team, or a line for a watched program", Group::Watch, 3),
    row(&[Message, CardLine, CardText], &[KeyPress::ctrl('s')], Action::Send, "send", "send the message, now or once the run has ended; send what a card's fields say", Group::Watch, 1),
    row(&[Message, ProgramLine], &[KeyPress::ctrl('u')], Action::Clear, "clear", "clear the message", Group::Watch, 2),
    row(RUNS, &[c('a')], Action::Inbox, "inbox", "the questions of all runs to people, and the approvals that runs remember", Group::Watch, 1),
    row(&[Inbox], &[ENTER, c('a')], Action::OpenCard, "open", "open the card of the question, or the interrupted run", Group::Watch, 1),
    row(&[Inbox, Card], &[SPACE], Action::Mark, "mark", "mark all open questions of the same agent, tool and rule; a marked one: unmark it", Group::Watch, 4),
    row(&[Card], &[c('s')], Action::Suggest, "script's answer", "show what the script of the scenario would answer; again sends it", Group::Watch, 5),
    row(&[CardLine, ProgramLine], &[ENTER], Action::Submit, "send", "the next field; for a reason or a program, send; never approves", Group::Watch, 2),
    row(&[Run], &[c('m')], Action::Members, "members", "members of each swarm; let an agent join or leave", Group::Watch, 5),
    row(&[Flags, Faults, Members], &[SPACE, ENTER], Action::Toggle, "switch", "switch a flag (at the next boundary), a fault or a member (at once)", Group::Watch, 1),
    row(&[Home, Flags], &[c('u')], Action::Undo, "undo", "undo the last flag change, or bring back the run that was removed last", Group::Watch, 2),
    row(&[Run, Inspector], &[c('p')], Action::Prompt, "prompt", "the exact prompt that the seat received", Group::Look, 7),
    row(&[Run, Inspector], &[c('c')], Action::Cause, "quote", "jump to the cause; from an answer or note to its quote", Group::Look, 4),
    row(&[Run, Inspector], &[c('o')], Action::Raw, "", "raw JSON in $PAGER", Group::Look, 0),
    row(&[Run], &[c('z')], Action::Zoom, "", "zoom this pane", Group::Look, 0),
    row(&[Home, Run], &[c('/')], Action::Filter, "filter", "filter the scenarios, the runs (words, said:WORD, status:failed) or the events (words, CEL)", Group::Look, 7),
    row(&[Home], &[c('o')], Action::Sort, "sort", "sort the kept runs: newest, cost, tokens, time, status", Group::Look, 8),
    row(&[Home, Run], &[c('d')], Action::Compare, "compare", "compare two runs: press it on both; on a fork, with its parent", Group::Look, 8),
    row(&[Filter], &[ENTER], Action::Apply, "keep", "keep the filter and go back to the list", Group::Look, 1),
    row(&[Home, Run, Inspector, Form, Comparison], &[c('y')], Action::Copy, "copy", "copy (over SSH too)", Group::Look, 9),
    row(&[Run, Inspector], &[c('Y')], Action::CopyMarkdown, "", "copy as Markdown", Group::Look, 0),
    row(&[Run, Inspector], &[c('e')], Action::Export, "export", "export the run to files; research as Markdown too", Group::Look, 5),

    row(RUNS, &[c('F')], Action::Fork, "fork", "fork: a new run continues from a boundary of this one, with other settings", Group::Change, 6),
    row(RUNS, &[c('R')], Action::Restart, "restart", "start a run with the settings of this one", Group::Change, 9),
    row(&[Run, Faults], &[c('P')], Action::BreakerTrip, "trip", "trip the breaker: it opens, then cools down", Group::Change, 6),
    row(&[Run, Faults], &[c('O')], Action::BreakerHold, "hold", "hold the breaker open until it is closed", Group::Change, 6),
    row(&[Run, Faults], &[c('C')], Action::BreakerReset, "close", "close the breaker and reset its count", Group::Change, 6),
    row(&[Run, Faults], &[c('D')], Action::BreakerDisable, "disable", "switch the breaker off: all calls go through", Group::Change, 6),
    row(RUNS, &[c('K')], Action::Kill, "kill", "kill switch: end this run (on home: every live run)", Group::Change, 9),
    row(&[Home], &[c('p')], Action::Pin, "pin", "pin the kept run, so that it is never removed by itself; or not", Group::Change, 9),
    row(&[Home], &[c('X'), k(KeyCode::Delete)], Action::Remove, "remove", "remove the kept run; undo brings it back", Group::Change, 8),
    row(&[Card], &[c('y')], Action::Approve, "approve", "approve this call once; twice, and after reading to the end, if it cannot be undone", Group::Change, 1),
    row(&[Card], &[c('n')], Action::Deny, "deny", "deny the call, with a reason for the model", Group::Change, 1),
    row(&[Card], DIGITS, Action::Pick(0), "choose", "the answer with that number; Enter then sends it", Group::Change, 1),
    row(&[Card], &[c('e')], Action::EditAnswer, "edit", "edit the arguments, or write the answer", Group::Change, 2),
    row(&[Card], &[c('E')], Action::EditJson, "", "read or edit the arguments as JSON in $EDITOR; the card shows the change", Group::Change, 0),
    row(&[Card], &[c('m')], Action::Remember, "remember", "show the rule that would approve such calls from now on; again approves and adds it", Group::Change, 3),
    row(&[Inbox, Card], &[c('Y')], Action::ApproveMarked, "approve marked", "approve every marked call once", Group::Change, 2),
    row(&[Inbox], &[c('x')], Action::WithdrawApproval, "withdraw", "withdraw the remembered approval: such calls are asked about again", Group::Change, 2),
    row(&[Confirm], &[c('y')], Action::Confirm, "yes", "yes, do it", Group::Change, 1),
    row(&[Confirm], &[ENTER], Action::Agree, "", "yes; a file is trusted only by the key of yes", Group::Change, 0),
    row(&[Confirm], &[c('n'), c('q')], Action::Decline, "no", "no, cancel", Group::Change, 1),
    row(&[Confirm], &[c('l')], Action::Later, "later", "at the question before quitting: leave the live runs, and continue them later", Group::Change, 1),

    row(&[Help, Commands], &[ENTER], Action::Choose, "run", "run the selected row", Group::App, 1),
    row(COMMANDED, &[c(':')], Action::Commands, "commands", "every command by its name; what cannot run now says why", Group::App, 3),
    row(HELPED, &[c('?'), k(KeyCode::F(1))], Action::Help, "help", "this help", Group::App, 2),
    row(EVERYWHERE, &[k(KeyCode::Esc)], Action::Cancel, "close", "close or cancel; never quits", Group::App, 0),
    row(&[Run, Inspector, Flags, Faults, Members, Inbox, Card, Form, Templates, Comparison], &[c('q')], Action::Back, "back", "back", Group::App, 1),
    row(&[Home], &[c('r')], Action::Rescan, "", "reload the scenario files", Group::App, 0),
    row(&[Home], &[c('q')], Action::Quit, "quit", "quit; asks when a run is live", Group::App, 1),
    row(COMMANDED, &[c('T')], Action::Theme, "", "the next theme; the status row says how to keep it", Group::App, 0),
    row(EVERYWHERE, &[KeyPress::ctrl('c')], Action::Interrupt, "", "stop the run; twice quits", Group::App, 0),
    row(EVERYWHERE, &[KeyPress::ctrl('l')], Action::Redraw, "", "redraw", Group::App, 0),
    row(EVERYWHERE, &[KeyPress::ctrl('p')], Action::Picture, "", "export a picture of this screen: .svg and .txt", Group::App, 0),
    row(EVERYWHERE, &[KeyPress::ctrl('z')], Action::Suspend, "", "suspend to the background; live runs pause", Group::App, 0),
];

/// The rows that are valid in this context, in the table's order.
pub fn bindings(context: Context) -> impl Iterator<Item = &'static Binding> {
    BINDINGS.iter().filter(move |row| row.contexts.contains(&context))
}

/// The row of an action.
pub fn binding_of(action: Action) -> Option<&'static Binding> {
    BINDINGS.iter().find(|row| row.action.name() == action.name())
}

impl Binding {
    /// Its contexts in words: `home, run`.
    pub fn places(&self) -> String {
        if self.contexts.len() == Context::ALL.len() {
            return "everywhere".to_owned();
        }
        self.contexts.iter().map(|it| it.word()).collect::<Vec<_>>().join(", ")
    }
}

/// The keys that no configuration takes away, and why.
const FIXED: [(Action, KeyPress, &str); 3] = [
    (Action::Interrupt, KeyPress::ctrl('c'), "it always stops the run, and twice quits"),
    (Action::Cancel, KeyPress::new(KeyCode::Esc), "it always closes or cancels"),
    (Action::Press, KeyPress::new(KeyCode::Enter), "it always presses the field of a form"),
];

static IN_USE: OnceLock<Keymap> = OnceLock::new();

#[cfg(test)]
thread_local! {
    /// The keys in use in one test.
    static OF_TEST: std::cell::Cell<Option<&'static Keymap>> = const { std::cell::Cell::new(None) };
}

/// The keys in use: those set by [`use_keys`], else those of the binding table.
pub(crate) fn in_use() -> &'static Keymap {
    #[cfg(test)]
    if let Some(keys) = OF_TEST.get() {
        return keys;
    }
    static TABLE: OnceLock<Keymap> = OnceLock::new();
    IN_USE.get().unwrap_or_else(|| TABLE.get_or_init(Keymap::default))
}

/// The action of a key in this context, if it has one.
pub fn lookup(context: Context, key: KeyPress) -> Option<Action> {
    in_use().lookup(context, key)
}

impl Binding {
    /// Its keys in use: those of the configuration, else the table's.
    pub fn keys_in_use(&self) -> &'static [KeyPress] {
        in_use().keys(self.action)
    }
}

/// Sets the keys of the process. Only the first call has an effect.
pub(crate) fn use_keys(keys: Keymap) {
    let _ = IN_USE.set(keys);
}

/// Sets the keys of the test on this thread, until the result is dropped.
#[cfg(test)]
#[must_use]
pub(crate) fn use_keys_in_test(config: &str) -> KeysOfTest {
    let checked = crate::scenario::config::check_config("config.toml", config);
    let keys = Keymap::configured(&checked.config.keys).expect("keys");
    OF_TEST.set(Some(Box::leak(Box::new(keys))));
    KeysOfTest
}

/// The keys of a test are in use.
#[cfg(test)]
pub(crate) struct KeysOfTest;

#[cfg(test)]
impl Drop for KeysOfTest {
    fn drop(&mut self) {
        OF_TEST.set(None);
    }
}

/// The words of plain mode, where words take the place of keys.
static TYPED: OnceLock<fn(Action) -> Option<&'static str>> = OnceLock::new();

/// Names words in place of keys in every sentence of the process.
pub(crate) fn use_words(word_of: fn(Action) -> Option<&'static str>) {
    let _ = TYPED.set(word_of);
}

/// The name of an action's first key in a sentence: `Enter`, `r`. An action without a key is named
/// as the list of commands finds it: `:reload`. In plain mode it is the word for the action.
pub(crate) fn key_of(action: Action) -> String {
    if let Some(word) = TYPED.get().and_then(|word_of| word_of(action)) {
        return word.to_owned();
    }
    let keys = in_use();
    match (keys.keys(action).first(), keys.keys(Action::Commands).first()) {
        (Some(key), _) => key.label(true).into_owned(),
        (None, Some(commands)) => format!("{}{}", commands.label(true), action.name()),
        (None, None) => format!("{} (no key)", action.name()),
    }
}

/// The keys of every action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keymap {
    /// For each row of the binding table.
    rows: Vec<KeysOfRow>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct KeysOfRow {
    keys: Vec<KeyPress>,
    is_configured: bool,
}

impl Default for Keymap {
    fn default() -> Self {
        let row = |row: &Binding| KeysOfRow { keys: row.keys.to_vec(), is_configured: false };
        Self { rows: BINDINGS.iter().map(row).collect() }
    }
}

/// The number of an action's row in the binding table.
fn row_of(name: &str) -> Option<usize> {
    BINDINGS.iter().position(|row| row.action.name() == name)
}

impl Keymap {
    /// The binding table with the keys of a configuration file.
    pub(crate) fn configured(entries: &[ConfiguredKeys]) -> Result<Self, Vec<String>> {
        let mut keymap = Self::default();
        let mut problems: Vec<(usize, String)> = Vec::new();
        // For each row of the table, its entry in the file.
        let mut places: Vec<Option<&ConfiguredKeys>> = vec![None; BINDINGS.len()];
        for entry in entries {
            let mut problem = |place: &str, what: &str, help: &str| {
                let line = format!("{place}: error: keys.{}: {what}: {help}", entry.action);
                problems.push((entry.line, line));
            };
            let Some(at) = row_of(&entry.action) else {
                let names = BINDINGS.iter().map(|row| row.action.name());
                problem(&entry.place, "unknown action", &suggest_name(&entry.action, names));
                continue;
            };
            let Some((binding, row)) = BINDINGS.get(at).zip(keymap.rows.get_mut(at)) else {
                continue;
            };
            let mut keys = Vec::new();
            let mut is_read = true;
            for key in &entry.keys {
                match KeyPress::parse(&key.text).and_then(|key| usable(key, binding)) {
                    Ok(read) if keys.contains(&read) => {}
                    Ok(read) => keys.push(read),
                    Err((what, help)) => {
                        is_read = false;
                        problem(&key.place, &what, &help);
                    }
                }
            }
            if !is_read {
                continue;
            }
            if let Err((what, help)) = sufficient(&keys, binding) {
                problem(&entry.place, &what, &help);
                continue;
            }
            *row = KeysOfRow { keys, is_configured: true };
            if let Some(place) = places.get_mut(at) {
                *place = Some(entry);
            }
        }
        problems.extend(keymap.conflicts(&places));
        if problems.is_empty() {
            return Ok(keymap);
        }
        problems.sort_by_key(|(line, _)| *line);
        Err(problems.into_iter().map(|(_, text)| text).collect())
    }

    /// Keys with two actions in one context, at least one of them from the file.
    fn conflicts(&self, entries: &[Option<&ConfiguredKeys>]) -> Vec<(usize, String)> {
        let rows: Vec<_> = BINDINGS.iter().zip(&self.rows).zip(entries).collect();
        let mut found = Vec::new();
        for (nth, one) in rows.iter().enumerate() {
            for two in rows.iter().skip(nth + 1) {
                // Reported at the later of the two lines.
                let line = |row: &((_, _), &Option<&ConfiguredKeys>)| row.1.map_or(0, |it| it.line);
                let (first, last) = if line(one) > line(two) { (two, one) } else { (one, two) };
                let ((of_first, first_row), first_entry) = *first;
                let ((of_last, last_row), Some(entry)) = *last else { continue };
                for key in last_row.keys.iter().filter(|key| first_row.keys.contains(key)) {
                    let shared = shared_contexts(of_first, of_last, *key);
                    if !shared.is_empty() {
                        let text = conflict(*key, entry, of_first, *first_entry, &shared);
                        found.push((entry.line, text));
                    }
                }
            }
        }
        found
    }

    /// The action of a key in this context, if it has one.
    pub(crate) fn lookup(&self, context: Context, key: KeyPress) -> Option<Action> {
        if context.takes_text() && key.typed_char().is_some() {
            return None;
        }
        let mut rows = BINDINGS.iter().zip(&self.rows);
        let (binding, row) = rows.find(|(binding, row)| {
            binding.contexts.contains(&context) && row.keys.contains(&key)
        })?;
        Some(match binding.action {
            // The first key is that of the first pane, or of the first answer.
            action @ (Action::Pane(_) | Action::Pick(_)) => {
                let nth = row.keys.iter().position(|it| *it == key).unwrap_or_default();
                let number = u8::try_from(nth + 1).unwrap_or(u8::MAX);
                match action {
                    Action::Pane(_) => Action::Pane(number),
                    _ => Action::Pick(number),
                }
            }
            action => action,
        })
    }

    pub(crate) fn keys(&self, action: Action) -> &[KeyPress] {
        self.row(action).map(|row| row.keys.as_slice()).unwrap_or_default()
    }

    /// Whether the configuration names the keys of an action.
    pub(crate) fn is_configured(&self, action: Action) -> bool {
        self.row(action).is_some_and(|row| row.is_configured)
    }

    fn row(&self, action: Action) -> Option<&KeysOfRow> {
        // Looked up for each key of each frame: no names are compared. A pane's number does not matter.
        let kind = std::mem::discriminant(&action);
        let is_same = |row: &Binding| std::mem::discriminant(&row.action) == kind;
        self.rows.get(BINDINGS.iter().position(is_same)?)
    }
}

/// The contexts in which a key would mean both.
fn shared_contexts(one: &Binding, two: &Binding, key: KeyPress) -> String {
    let is_typed = key.typed_char().is_some();
    let shared = one
        .contexts
        .iter()
        .filter(|context| two.contexts.contains(context) && !(is_typed && context.takes_text()));
    shared.map(|context| context.word()).collect::<Vec<_>>().join(", ")
}

/// The line of a conflict, at the key of its second action.
fn conflict(
    key: KeyPress,
    entry: &ConfiguredKeys,
    first: &Binding,
    first_entry: Option<&ConfiguredKeys>,
    shared: &str,
) -> String {
    let is_key = |text: &str| KeyPress::parse(text).is_ok_and(|it| it == key);
    let place = entry.keys.iter().find(|it| is_key(&it.text)).map_or(&entry.place, |it| &it.place);
    let (action, other, key_name) = (&entry.action, first.action.name(), key.written());
    let fixed = FIXED.iter().find(|(action, of, _)| *action == first.action && *of == key);
    let (has, help) = match (fixed, first_entry) {
        (Some((_, _, why)), _) => {
            let text = format!("is the key of `{other}` and cannot be taken away");
            (text, format!("{why}; choose another key"))
        }
        (None, Some(first)) => {
            let text = format!("is also the key of `{other}` on line {}, in: {shared}", first.line);
            (text, "give one of them another key".to_owned())
        }
        (None, None) => {
            let text = format!("is also the usual key of `{other}`, in: {shared}");
            (text, format!("choose another key, or give `{other}` another one"))
        }
    };
    format!("{place}: error: keys.{action}: {key_name} {has}: {help}")
}

/// The key, if this action can have it.
fn usable(key: KeyPress, binding: &Binding) -> Result<KeyPress, (String, String)> {
    let text = binding.contexts.iter().find(|context| context.takes_text());
    match text.filter(|_| key.edits_text() && !binding.keys.contains(&key)) {
        Some(context) => {
            let what = format!("{} edits the text in: {}", key.written(), context.word());
            Err((what, "choose a key with ctrl or alt, or a function key".to_owned()))
        }
        None => Ok(key),
    }
}

/// Whether an action can do with these keys.
fn sufficient(keys: &[KeyPress], binding: &Binding) -> Result<(), (String, String)> {
    for (action, key, why) in FIXED {
        if action == binding.action && !keys.contains(&key) {
            let name = key.written();
            let what = format!("{name} cannot be taken away");
            return Err((what, format!("{why}; keep {name} in the list")));
        }
    }
    if binding.action.is_numbered() && keys.len() > 9 {
        return Err(("too many keys".to_owned(), "there are at most 9 of them".to_owned()));
    }
    let only_typed = keys.iter().all(|key| key.typed_char().is_some());
    if only_typed && !keys.is_empty() && binding.contexts.iter().all(|it| it.takes_text()) {
        let what = format!("a character is typed as text in: {}", binding.places());
        return Err((what, "choose a key with ctrl or alt, or a function key".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::config::check_config;

    fn read(text: &str) -> Result<Keymap, Vec<String>> {
        let checked = check_config("c.toml", text);
        assert!(checked.problems.is_empty(), "{}", checked.problems);
        Keymap::configured(&checked.config.keys)
    }

    fn errors(text: &str) -> Vec<String> {
        read(text).expect_err(text)
    }

    #[test]
    fn each_key_has_one_action() {
        let every: Vec<String> = BINDINGS
            .iter()
            .map(|row| {
                let keys: Vec<_> = row.keys.iter().map(|key| key.written()).collect();
                format!("{} = {keys:?}\n", row.action.name())
            })
            .collect();
        let keymap = read(&format!("[keys]\n{}", every.concat())).expect("no conflict");
        assert!(keymap.rows.iter().zip(BINDINGS).all(|(row, of)| row.keys == of.keys));
    }

    #[test]
    fn configured_key_replaces_defaults() {
        let keymap =
            read("[keys]\nstep = \"x\"\nflags = [\"ctrl-f\", \"F5\"]\nkill = []\n").expect("keys");
        let press = KeyPress::char;
        assert_eq!(keymap.lookup(Context::Run, press('x')), Some(Action::Step));
        assert_eq!(keymap.lookup(Context::Run, press('s')), None);
        assert_eq!(keymap.lookup(Context::Run, KeyPress::ctrl('f')), Some(Action::Flags));
        let f5 = KeyPress::new(KeyCode::F(5));
        assert_eq!(keymap.lookup(Context::Home, f5), Some(Action::Flags));
        assert_eq!(keymap.lookup(Context::Run, press('K')), None);
        assert_eq!(keymap.lookup(Context::Run, press('2')), Some(Action::Pane(2)));
        assert!(keymap.is_configured(Action::Kill) && !keymap.is_configured(Action::Help));
        let panes = read("[keys]\npane = [\"f1\", \"f2\"]\nhelp = \"?\"\n").expect("keys");
        let f2 = KeyPress::new(KeyCode::F(2));
        assert_eq!(panes.lookup(Context::Run, f2), Some(Action::Pane(2)));
        // Two actions may change keys with each other, and contexts that differ may share one.
        read("[keys]\nstep = \"f\"\nflags = \"s\"\nsort = \"m\"\n").expect("no conflict");
    }

    #[test]
    fn sentences_name_the_key_in_use() {
        assert_eq!((key_of(Action::Open), key_of(Action::Rescan)), ("Enter".into(), "r".into()));
        let keys = use_keys_in_test("[keys]\nreload = []\nopen = \"ctrl-o\"\n");
        assert_eq!(key_of(Action::Open), "Ctrl-O");
        assert_eq!(key_of(Action::Rescan), ":reload");
        drop(keys);
        let _keys = use_keys_in_test("[keys]\nreload = []\ncommands = []\n");
        assert_eq!(key_of(Action::Rescan), "reload (no key)");
    }

    #[test]
    fn mistakes_are_told_with_their_lines() {
        let text = "[keys]\nstpe = \"x\"\nstep = \"ctr-x\"\nfork = [\"a\", \"ctrl-i\"]\n";
        let told = errors(text);
        assert_eq!(told.len(), 3, "{told:#?}");
        assert_eq!(told[0], "c.toml:2:1: error: keys.stpe: unknown action: did you mean `step`?");
        let start = "c.toml:3:8: error: keys.step: unknown key `ctr-x`: write a character (x, X, !), ctrl-x";
        assert!(told[1].starts_with(start), "{told:#?}");
        let tab =
            "c.toml:4:14: error: keys.fork: a terminal sends ctrl-i as tab: choose another key";
        assert_eq!(told[2], tab);
    }

    #[test]
    fn conflict_names_both_actions_and_lines() {
        let both = "[keys]\nstep = \"x\"\n\nfork = [\"F\", \"x\"]\n";
        let told = "c.toml:4:14: error: keys.fork: x is also the key of `step` on line 2, in: \
                    home, run, inspector: give one of them another key";
        assert_eq!(errors(both), [told]);
        let usual = "c.toml:2:8: error: keys.step: f is also the usual key of `flags`, in: home, \
                     run, inspector: choose another key, or give `flags` another one";
        assert_eq!(errors("[keys]\nstep = \"f\"\n"), [usual]);
    }

    #[test]
    fn some_keys_cannot_be_taken_away() {
        for (text, why) in [
            (
                "interrupt = \"x\"",
                "ctrl-c cannot be taken away: it always stops the run, and twice quits; keep",
            ),
            (
                "close = []",
                "esc cannot be taken away: it always closes or cancels; keep esc in the list",
            ),
            (
                "press = \"space\"",
                "enter cannot be taken away: it always presses the field of a form",
            ),
            ("step = \"ctrl-c\"", "ctrl-c is the key of `interrupt` and cannot be taken away"),
            ("step = \"esc\"", "esc is the key of `close` and cannot be taken away"),
            ("start = \"enter\"", "enter edits the text in: text of the launch form"),
            ("send-message = \"x\"", "a character is typed as text in: next message"),
            ("down = \"left\"", "left edits the text in: list of models"),
        ] {
            let told = errors(&format!("[keys]\n{text}\n"));
            assert!(told.len() == 1 && told[0].contains(why), "{text}: {told:#?}");
        }
        read("[keys]\npress = [\"enter\", \"x\"]\nclose = [\"esc\", \"ctrl-g\"]\n").expect("more");
    }
}
