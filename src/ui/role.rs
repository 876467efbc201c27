//! What a piece of the screen is for: the names that a theme gives styles to.

macro_rules! roles {
    ($($(#[$doc:meta])* $role:ident = $name:literal),+ $(,)?) => {
        /// What a piece of the screen is for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Role { $($(#[$doc])* $role),+ }

        impl Role {
            /// Every role.
            pub const ALL: &'static [Role] = &[$(Self::$role),+];

            /// Its name in a theme's file.
            pub fn name(self) -> &'static str {
                match self { $(Self::$role => $name),+ }
            }
        }
    };
}

roles! {
    /// Text.
    Text = "text",
    /// What steps back.
    Dim = "dim",
    /// What stands out.
    Strong = "strong",
    /// A pane's title.
    Title = "title",
    /// A border.
    Border = "border",
    /// The border of what is focused.
    BorderFocus = "border_focus",
    /// The row that is selected.
    Selected = "selected",
    /// A key that can be pressed.
    Key = "key",
    /// Where text can be typed.
    Field = "field",
    /// What can be pressed.
    Button = "button",
    /// What a search found.
    Found = "found",
    /// Closed well.
    Done = "done",
    /// On its way.
    Running = "running",
    /// Its turn has not come.
    Waiting = "waiting",
    /// Standing at a boundary.
    Paused = "paused",
    /// Another attempt follows.
    Retry = "retry",
    /// Failed for good; an error.
    Failed = "failed",
    /// Refused.
    Refused = "refused",
    /// Waits for a person.
    NeedsYou = "needs_you",
    /// Switched off.
    Off = "off",
    /// Stance `go`.
    Go = "go",
    /// Stance `caution`.
    Caution = "caution",
    /// Stance `block`.
    Block = "block",
    /// Another than before.
    Changed = "changed",
    /// Behind a flag.
    Flag = "flag",
    /// A bar.
    Bar = "bar",
    /// A budget's bar past 80 %.
    BarHigh = "bar_high",
    /// What a bar has left.
    BarEmpty = "bar_empty",
    /// A track's part that is done.
    Track = "track",
    /// A track's part that is on its way.
    TrackNow = "track_now",
    /// A track's part that is to come.
    TrackEmpty = "track_empty",
    /// A sparkline.
    Spark = "spark",
    /// Where the reader stands in time.
    Playhead = "playhead",
    /// The end of text that still comes.
    Cursor = "cursor",
    /// A word to the person at the screen.
    Notice = "notice",
}
