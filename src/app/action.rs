//! What a person can mean by a key or a click. Actions are data: the binding table names them, the
//! update routes them, panes answer them.

/// One thing that can be done in the dashboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// Start the selected scenario, or open the selected run.
    Open,
    /// Open the launch form.
    NewRun,
    /// Selection up.
    Up,
    /// Selection down.
    Down,
    /// Left: out, or the choice before.
    Left,
    /// Right: in, or the next choice.
    Right,
    /// To the first row.
    Top,
    /// To the last row; in a run, back to live.
    Bottom,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// The next pane or field.
    NextPane,
    /// The pane or field before.
    PrevPane,
    /// The pane of this number, from 1. In the binding table: whichever digit was typed.
    Pane(u8),
    /// The focused pane alone, or all panes again.
    Zoom,
    /// Pause, or go on.
    PauseResume,
    /// Past one boundary.
    Step,
    /// To the next round.
    StepRound,
    /// Set or take away a breakpoint.
    Breakpoint,
    /// The playhead back.
    ScrubBack,
    /// The playhead forward.
    ScrubForward,
    /// Open the flags drawer.
    Flags,
    /// Switch the selected flag.
    Toggle,
    /// Take the last switch back.
    Undo,
    /// The tools over the run's own picture, or that again.
    Tools,
    /// Open the faults drawer of the selected tool.
    Faults,
    /// Open the members drawer of a team's swarms.
    Members,
    /// Type the session's next message.
    Message,
    /// Send the message that is typed.
    Send,
    /// Empty the text that is typed.
    Clear,
    /// One more of what is limited.
    More,
    /// One less of what is limited.
    Less,
    /// Hold the selected tool's breaker open.
    BreakerHold,
    /// Close the selected tool's breaker.
    BreakerReset,
    /// Switch the selected tool's breaker off.
    BreakerDisable,
    /// Trip the selected tool's breaker.
    BreakerTrip,
    /// Look at what is selected, whole.
    Inspect,
    /// The prompt exactly as the seat saw it.
    Prompt,
    /// Jump to what caused the selected fact.
    Cause,
    /// Raw JSON in the pager.
    Raw,
    /// Filter the list.
    Filter,
    /// Take what was typed as the filter.
    Apply,
    /// Copy.
    Copy,
    /// Copy as Markdown.
    CopyMarkdown,
    /// Write to a file.
    Export,
    /// End a run now, after asking.
    Kill,
    /// Press the focused button, or change the focused field.
    Press,
    /// Start the run that the form describes.
    Start,
    /// Yes.
    Confirm,
    /// Yes, where nothing has to be read first.
    Agree,
    /// No.
    Decline,
    /// Do what the selected row of the help says.
    Choose,
    /// Take the selected model.
    Take,
    /// Close what is open, or cancel. Never quits.
    Cancel,
    /// Back to the screen before.
    Back,
    /// Leave the program, after asking when a run is live.
    Quit,
    /// The help.
    Help,
    /// Read the scenario files again.
    Rescan,
    /// Ask to stop the run; twice quits.
    Interrupt,
    /// Paint everything again.
    Redraw,
    /// To the background.
    Suspend,
}
