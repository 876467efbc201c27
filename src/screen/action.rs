//! What the operator can mean by a key or a click. Actions are data: the binding table has their keys,
//! the update routes them, panes carry them out.

/// An action of the operator in the dashboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// Start the selected scenario, or open the selected run.
    Open,
    /// Open the launch form.
    NewRun,
    /// Open the list of templates for a new scenario.
    NewScenario,
    /// Write the selected template to a new file.
    WriteTemplate,
    /// Open the selected scenario's file in the editor.
    Edit,
    /// Move the selection up.
    Up,
    /// Move the selection down.
    Down,
    /// Left: out of the pane, or the previous choice.
    Left,
    /// Right: into the pane, or the next choice.
    Right,
    /// Go to the first row.
    Top,
    /// Go to the last row; in a run, back to the live end.
    Bottom,
    /// Move a page up.
    PageUp,
    /// Move a page down.
    PageDown,
    /// Focus the next pane or field.
    NextPane,
    /// Focus the previous pane or field.
    PrevPane,
    /// Focus the pane with this number, from 1. In the binding table: whichever digit was typed.
    Pane(u8),
    /// Show the focused pane alone, or all panes again.
    Zoom,
    /// Pause or resume.
    PauseResume,
    /// Fork the run: a new one continues from a boundary of it.
    Fork,
    /// Start a run with the settings of this one.
    Rerun,
    /// Mark a run, or compare it with the marked one or its parent.
    Compare,
    /// Step to the next boundary, then pause.
    Step,
    /// Run to the next round, then pause.
    StepRound,
    /// Set or remove a breakpoint.
    Breakpoint,
    /// Move the playhead back.
    ScrubBack,
    /// Move the playhead forward.
    ScrubForward,
    /// Move the playhead to the previous mark.
    MarkBack,
    /// Move the playhead to the next mark.
    MarkForward,
    /// Show the run before this one: the row below in the list, which has the newest first.
    PrevRun,
    /// Show the run after this one: the row above in the list.
    NextRun,
    /// Pause every live run, or resume them all.
    PauseAll,
    /// Show the notable events, or all of them.
    EventLevel,
    /// Open the flags drawer.
    Flags,
    /// Switch the selected flag, fault or member.
    Toggle,
    /// Undo the last flag change, or bring back the run that was removed last.
    Undo,
    /// Show the tools in place of the run's own page, or go back to that page.
    Tools,
    /// Open the faults drawer of the selected tool.
    Faults,
    /// Open the members drawer of a team's swarms.
    Members,
    /// Type the session's next message.
    Message,
    /// Send the message that was typed.
    Send,
    /// Clear the message that was typed.
    Clear,
    /// Raise the limit or the strength of the fault.
    More,
    /// Lower the limit or the strength of the fault.
    Less,
    /// Hold the selected tool's breaker open.
    BreakerHold,
    /// Close the selected tool's breaker.
    BreakerReset,
    /// Switch off the selected tool's breaker.
    BreakerDisable,
    /// Trip the selected tool's breaker.
    BreakerTrip,
    /// Inspect the selection.
    Inspect,
    /// Show the exact prompt that the seat received.
    Prompt,
    /// Jump to the cause of the selected event.
    Cause,
    /// Show the raw JSON in the pager.
    Raw,
    /// Filter the list.
    Filter,
    /// Sort the list of runs by the next value.
    Sort,
    /// Pin the selected kept run, or take its pin away.
    Pin,
    /// Remove the selected kept run.
    Remove,
    /// Keep the filter that was typed.
    Apply,
    /// Copy to the clipboard.
    Copy,
    /// Copy as Markdown to the clipboard.
    CopyMarkdown,
    /// Export the run to files.
    Export,
    /// End a run now, after confirmation.
    Kill,
    /// Press the focused button, or change the focused field.
    Press,
    /// Start the run that the form describes.
    Start,
    /// Yes.
    Confirm,
    /// Yes by Enter: not accepted where the question must be read to its end first.
    Agree,
    /// No.
    Decline,
    /// Run the selected row of the help.
    Choose,
    /// Choose the selected model.
    Take,
    /// Close what is open, or cancel. Never quits.
    Cancel,
    /// Back to the previous screen.
    Back,
    /// Quit; asks first while a run is live.
    Quit,
    /// Open the help.
    Help,
    /// Open the list of commands.
    Commands,
    /// Reload the scenario files.
    Rescan,
    /// Ctrl-C: ask to stop the run; twice quits.
    Interrupt,
    /// Use the next theme.
    Theme,
    /// Redraw the whole screen.
    Redraw,
    /// Export a picture of the screen.
    Picture,
    /// Suspend the program to the background (Ctrl-Z).
    Suspend,
}

impl Action {
    /// Its name in the configuration file and in the list of commands. Names do not change.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::NewRun => "new-run",
            Self::NewScenario => "new-scenario",
            Self::WriteTemplate => "write-template",
            Self::Edit => "edit-scenario",
            Self::Up => "up",
            Self::Down => "down",
            Self::Left => "left",
            Self::Right => "right",
            Self::Top => "first-row",
            Self::Bottom => "last-row",
            Self::PageUp => "page-up",
            Self::PageDown => "page-down",
            Self::NextPane => "next-pane",
            Self::PrevPane => "previous-pane",
            Self::Pane(_) => "pane",
            Self::Zoom => "zoom",
            Self::PauseResume => "pause-or-resume",
            Self::Fork => "fork",
            Self::Rerun => "rerun",
            Self::Compare => "compare",
            Self::Step => "step",
            Self::StepRound => "step-round",
            Self::Breakpoint => "breakpoint",
            Self::ScrubBack => "playhead-back",
            Self::ScrubForward => "playhead-forward",
            Self::MarkBack => "previous-mark",
            Self::MarkForward => "next-mark",
            Self::PrevRun => "previous-run",
            Self::NextRun => "next-run",
            Self::PauseAll => "pause-or-resume-all",
            Self::EventLevel => "event-level",
            Self::Flags => "flags",
            Self::Toggle => "switch",
            Self::Undo => "undo",
            Self::Tools => "tools",
            Self::Faults => "faults",
            Self::Members => "members",
            Self::Message => "message",
            Self::Send => "send-message",
            Self::Clear => "clear-message",
            Self::More => "raise",
            Self::Less => "lower",
            Self::BreakerHold => "hold-breaker",
            Self::BreakerReset => "close-breaker",
            Self::BreakerDisable => "disable-breaker",
            Self::BreakerTrip => "trip-breaker",
            Self::Inspect => "inspect",
            Self::Prompt => "prompt",
            Self::Cause => "cause",
            Self::Raw => "raw-json",
            Self::Filter => "filter",
            Self::Sort => "sort",
            Self::Pin => "pin",
            Self::Remove => "remove",
            Self::Apply => "keep-filter",
            Self::Copy => "copy",
            Self::CopyMarkdown => "copy-markdown",
            Self::Export => "export",
            Self::Kill => "kill",
            Self::Press => "press",
            Self::Start => "start",
            Self::Confirm => "yes",
            Self::Agree => "agree",
            Self::Decline => "no",
            Self::Choose => "run-command",
            Self::Take => "choose-model",
            Self::Cancel => "close",
            Self::Back => "back",
            Self::Quit => "quit",
            Self::Help => "help",
            Self::Commands => "commands",
            Self::Rescan => "reload",
            Self::Interrupt => "interrupt",
            Self::Theme => "theme",
            Self::Redraw => "redraw",
            Self::Picture => "picture",
            Self::Suspend => "suspend",
        }
    }
}
