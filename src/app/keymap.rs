//! The one binding table. Footer, help and the documents iterate it, and nothing else says which
//! key does what.

use super::action::Action;
use super::key::{Key, KeyCode};

/// Where a key is pressed: what is focused decides what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Context {
    /// The first screen.
    Home,
    /// A run.
    Run,
    /// The inspector of a run.
    Inspector,
    /// A line that is typed to filter with.
    Filter,
    /// The flags drawer.
    Flags,
    /// The faults drawer of a tool.
    Faults,
    /// The members drawer of a team's swarms.
    Members,
    /// The session's next message, while it is typed.
    Message,
    /// The launch form, on anything but a text.
    Form,
    /// The launch form, in a text.
    FormText,
    /// The window over the launch form in which a model is chosen.
    Models,
    /// The help.
    Help,
    /// A question that is answered with yes or no.
    Confirm,
}

impl Context {
    /// Every context, in the order of the help.
    pub const ALL: [Context; 13] = [
        Context::Home,
        Context::Run,
        Context::Inspector,
        Context::Flags,
        Context::Faults,
        Context::Members,
        Context::Message,
        Context::Form,
        Context::FormText,
        Context::Models,
        Context::Filter,
        Context::Help,
        Context::Confirm,
    ];

    /// What people call it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Home => "home",
            Self::Run => "run",
            Self::Inspector => "inspector",
            Self::Filter => "filter",
            Self::Flags => "flags",
            Self::Faults => "faults",
            Self::Members => "members",
            Self::Message => "next message",
            Self::Form => "launch form",
            Self::FormText => "text of the launch form",
            Self::Models => "list of models",
            Self::Help => "help",
            Self::Confirm => "question",
        }
    }

    /// Whether characters are typed here, so that they mean themselves and no action.
    pub fn takes_text(self) -> bool {
        matches!(self, Self::Filter | Self::FormText | Self::Models | Self::Help | Self::Message)
    }
}

/// The heading that a binding stands under in the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// Moving about.
    Move,
    /// Looking; never changes a run.
    Look,
    /// Running, pausing, stepping, flags: can be taken back.
    Watch,
    /// What ends, spends or rewrites a run: UPPERCASE, asks first.
    Change,
    /// The program itself.
    App,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// Where it holds.
    pub contexts: &'static [Context],
    /// The keys, the one to show first.
    pub keys: &'static [Key],
    /// What it does.
    pub action: Action,
    /// One word for the key row. Neighbours with the same word are shown as one.
    pub word: &'static str,
    /// One line for the help.
    pub help: &'static str,
    /// Where it stands in the help.
    pub group: Group,
    /// How much the key row wants it: 1 the most, 0 not at all.
    pub rank: u8,
}

use Context::{
    Confirm, Faults, Filter, Flags, Form, FormText, Help, Home, Inspector, Members, Message,
    Models, Run,
};

const fn c(c: char) -> Key {
    Key::char(c)
}
const fn k(code: KeyCode) -> Key {
    Key::of(code)
}
const ENTER: Key = k(KeyCode::Enter);
const SPACE: Key = c(' ');

/// Shorthand of a row, so that the table reads as a table.
const fn row(
    contexts: &'static [Context],
    keys: &'static [Key],
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
const LISTS: &[Context] =
    &[Home, Run, Inspector, Flags, Faults, Members, Form, Models, Help, Confirm];
const HELPED: &[Context] = &[Home, Run, Inspector, Flags, Faults, Members, Message, Form];
const RUNS: &[Context] = &[Home, Run, Inspector];

/// The table. Order: as in the key row and, within a group, as in the help.
#[rustfmt::skip]
pub static BINDINGS: &[Binding] = &[
    row(&[Home, Run, Inspector, Form, FormText], &[k(KeyCode::Tab)], Action::NextPane, "pane",
        "next pane or field", Group::Move, 6),
    row(&[Home, Run, Inspector, Form, FormText], &[k(KeyCode::BackTab)], Action::PrevPane, "",
        "pane or field before", Group::Move, 0),
    row(&[Home, Run, Inspector],
        &[c('1'), c('2'), c('3'), c('4'), c('5'), c('6'), c('7'), c('8'), c('9')], Action::Pane(0), "",
        "the pane of that number", Group::Move, 0),
    row(LISTS, &[c('j'), k(KeyCode::Down)], Action::Down, "move", "down", Group::Move, 7),
    row(LISTS, &[c('k'), k(KeyCode::Up)], Action::Up, "move", "up", Group::Move, 7),
    row(SCREENS, &[c('h'), k(KeyCode::Left)], Action::Left, "", "left, out, or the choice before", Group::Move, 0),
    row(SCREENS, &[c('l'), k(KeyCode::Right)], Action::Right, "", "right, in, or the next choice", Group::Move, 0),
    row(LISTS, &[c('g'), k(KeyCode::Home)], Action::Top, "", "first row", Group::Move, 0),
    row(LISTS, &[c('G'), k(KeyCode::End)], Action::Bottom, "", "last row; in a run, back to live", Group::Move, 0),
    row(LISTS, &[k(KeyCode::PageDown), Key::ctrl('d')], Action::PageDown, "", "a page down", Group::Move, 0),
    row(LISTS, &[k(KeyCode::PageUp), Key::ctrl('u')], Action::PageUp, "", "a page up", Group::Move, 0),

    row(&[Home], &[ENTER], Action::Open, "start", "start the scenario with its defaults, or open the run", Group::Watch, 2),
    row(&[Home, Run], &[c('n')], Action::NewRun, "new run", "the launch form: goal, inputs, flags, limits, model", Group::Watch, 3),
    row(&[Form], &[ENTER, SPACE], Action::Press, "press", "press, switch, choose, or type into the text", Group::Watch, 3),
    row(&[Form, FormText], &[Key::ctrl('s')], Action::Start, "start", "start the run that the form describes", Group::Watch, 1),
    row(&[Models], &[ENTER], Action::Take, "take", "take the model: a listed one, or the name as it is typed", Group::Watch, 1),
    row(&[Run], &[ENTER], Action::Inspect, "inspect", "look at what is selected, whole", Group::Look, 5),
    row(RUNS, &[SPACE], Action::PauseResume, "pause", "pause at the next boundary, or go on", Group::Watch, 3),
    row(RUNS, &[c('s')], Action::Step, "step", "past one boundary, then rest", Group::Watch, 4),
    row(RUNS, &[c('S')], Action::StepRound, "", "to the next round, then rest", Group::Watch, 0),
    row(&[Run], &[c('B')], Action::Breakpoint, "", "breakpoint: rest at the next round or dispatch", Group::Watch, 0),
    row(&[Run, Inspector], &[c(',')], Action::ScrubBack, "scrub", "playhead back", Group::Look, 8),
    row(&[Run, Inspector], &[c('.')], Action::ScrubForward, "scrub", "playhead forward", Group::Look, 8),
    row(RUNS, &[c('f')], Action::Flags, "flags", "the run's flags, and what a switch would do", Group::Watch, 4),
    row(&[Run], &[c('t')], Action::Tools, "tools", "breakers, bulkheads, retries of the tools; or back", Group::Look, 4),
    row(&[Run], &[c('!')], Action::Faults, "faults", "faults and limits of the selected tool", Group::Watch, 2),
    row(&[Run, Faults], &[c('+')], Action::More, "more, less", "one more at once, of tasks or of the tool", Group::Watch, 5),
    row(&[Run, Faults], &[c('-')], Action::Less, "more, less", "one less at once, of tasks or of the tool", Group::Watch, 5),
    row(&[Run], &[c('i')], Action::Message, "message", "the session's next message to the team", Group::Watch, 3),
    row(&[Message], &[Key::ctrl('s')], Action::Send, "send", "send the message, now or once the run has ended", Group::Watch, 1),
    row(&[Message], &[Key::ctrl('u')], Action::Clear, "clear", "empty the message", Group::Watch, 2),
    row(&[Run], &[c('m')], Action::Members, "members", "who is in each swarm; let one join or leave", Group::Watch, 5),
    row(&[Flags, Faults, Members], &[SPACE, ENTER], Action::Toggle, "switch", "switch: a flag at a boundary, a fault or member at once", Group::Watch, 1),
    row(&[Flags], &[c('u')], Action::Undo, "undo", "switch the last flag back", Group::Watch, 2),
    row(&[Run, Inspector], &[c('p')], Action::Prompt, "prompt", "the prompt exactly as the seat saw it", Group::Look, 7),
    row(&[Run, Inspector], &[c('c')], Action::Cause, "quote", "jump to what caused it; of an answer or note to its quote", Group::Look, 4),
    row(&[Run, Inspector], &[c('o')], Action::Raw, "", "raw JSON in $PAGER", Group::Look, 0),
    row(&[Run], &[c('z')], Action::Zoom, "", "this pane alone, or all again", Group::Look, 0),
    row(&[Run], &[c('/')], Action::Filter, "filter", "filter the events: words, or CEL", Group::Look, 7),
    row(&[Filter], &[ENTER], Action::Apply, "keep", "keep the filter and go back to the list", Group::Look, 1),
    row(&[Home, Run, Inspector, Form], &[c('y')], Action::Copy, "copy", "copy (over SSH too)", Group::Look, 9),
    row(&[Run, Inspector], &[c('Y')], Action::CopyMarkdown, "", "copy as Markdown", Group::Look, 0),
    row(&[Run, Inspector], &[c('e')], Action::Export, "write", "write the run to files, of research as Markdown too", Group::Look, 5),

    row(&[Run, Faults], &[c('P')], Action::BreakerTrip, "trip", "trip the breaker: open, and it cools down", Group::Change, 6),
    row(&[Run, Faults], &[c('O')], Action::BreakerHold, "hold", "hold the breaker open until it is closed", Group::Change, 6),
    row(&[Run, Faults], &[c('C')], Action::BreakerReset, "close", "close the breaker with a clean count", Group::Change, 6),
    row(&[Run, Faults], &[c('D')], Action::BreakerDisable, "disable", "breaker off: everything goes through", Group::Change, 6),
    row(RUNS, &[c('K')], Action::Kill, "kill", "kill switch: end this run (on home: every live run)", Group::Change, 9),
    row(&[Confirm], &[c('y')], Action::Confirm, "yes", "yes, do it", Group::Change, 1),
    row(&[Confirm], &[ENTER], Action::Agree, "", "yes, but never to what a foreign file would do", Group::Change, 0),
    row(&[Confirm], &[c('n'), c('q')], Action::Decline, "no", "no, leave it", Group::Change, 1),

    row(&[Help], &[ENTER], Action::Choose, "do it", "do what the row says", Group::App, 1),
    row(HELPED, &[c('?'), k(KeyCode::F(1))], Action::Help, "help", "this help", Group::App, 2),
    row(EVERYWHERE, &[k(KeyCode::Esc)], Action::Cancel, "close", "close or cancel; never quits", Group::App, 0),
    row(&[Run, Inspector, Flags, Faults, Members, Form], &[c('q')], Action::Back, "back", "back", Group::App, 1),
    row(&[Home], &[c('r')], Action::Rescan, "", "read the scenario files again", Group::App, 0),
    row(&[Home], &[c('q')], Action::Quit, "quit", "quit; asks when a run is live", Group::App, 1),
    row(EVERYWHERE, &[Key::ctrl('c')], Action::Interrupt, "", "stop the run; twice: quit", Group::App, 0),
    row(EVERYWHERE, &[Key::ctrl('l')], Action::Redraw, "", "paint everything again", Group::App, 0),
    row(EVERYWHERE, &[Key::ctrl('z')], Action::Suspend, "", "to the background; live runs are paused", Group::App, 0),
];

/// What a key means here, if anything.
pub fn lookup(context: Context, key: Key) -> Option<Action> {
    if context.takes_text() && key.typed().is_some() {
        return None;
    }
    let binding =
        BINDINGS.iter().find(|row| row.contexts.contains(&context) && row.keys.contains(&key))?;
    Some(match (binding.action, key.typed().and_then(|c| c.to_digit(10))) {
        (Action::Pane(_), Some(digit)) => Action::Pane(u8::try_from(digit).unwrap_or(0)),
        (action, _) => action,
    })
}

/// The rows that hold here, in the table's order.
pub fn bindings(context: Context) -> impl Iterator<Item = &'static Binding> {
    BINDINGS.iter().filter(move |row| row.contexts.contains(&context))
}
