//! The roles of the screen: the names to which a theme gives styles.

macro_rules! roles {
    ($($(#[$doc:meta])* $role:ident = $name:literal),+ $(,)?) => {
        /// What a part of the screen is for; a theme gives each role a style.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum StyleRole { $($(#[$doc])* $role),+ }

        impl StyleRole {
            /// Every role.
            pub const ALL: &'static [StyleRole] = &[$(Self::$role),+];

            /// Its name in a theme's file.
            pub fn name(self) -> &'static str {
                match self { $(Self::$role => $name),+ }
            }
        }
    };
}

roles! {
    /// Normal text.
    Text = "text",
    /// Secondary text.
    Dim = "dim",
    /// Emphasised text.
    Strong = "strong",
    /// A pane's title.
    Title = "title",
    /// A border.
    Border = "border",
    /// The border of the focused pane.
    BorderFocus = "border_focus",
    /// The selected row.
    Selected = "selected",
    /// A key that can be pressed.
    Key = "key",
    /// A text field.
    Field = "field",
    /// A button.
    Button = "button",
    /// A search match.
    Found = "found",
    /// Finished successfully.
    Done = "done",
    /// In progress.
    Running = "running",
    /// Waiting for its turn.
    Waiting = "waiting",
    /// Paused at a boundary.
    Paused = "paused",
    /// A retry follows.
    Retry = "retry",
    /// Failed, with no more retries; an error.
    Failed = "failed",
    /// Refused by a policy, a limit or an open breaker.
    Refused = "refused",
    /// Needs the operator.
    NeedsYou = "needs_you",
    /// Switched off.
    Off = "off",
    /// The lowest severity: stance `go`, level `green`.
    Go = "go",
    /// The middle severity: stance `caution`, level `yellow`.
    Caution = "caution",
    /// The highest severity: stance `block`, level `red`.
    Block = "block",
    /// No severity yet: no stance, no decision.
    Undecided = "undecided",
    /// Changed since the last round.
    Changed = "changed",
    /// Depends on a flag.
    Flag = "flag",
    /// The filled part of a bar.
    Bar = "bar",
    /// A budget's bar above 80 %.
    BarHigh = "bar_high",
    /// The empty part of a bar.
    BarEmpty = "bar_empty",
    /// The finished part of a track.
    Track = "track",
    /// The part of a track in progress.
    TrackNow = "track_now",
    /// The remaining part of a track.
    TrackEmpty = "track_empty",
    /// A sparkline.
    Spark = "spark",
    /// The reader's position in time.
    Playhead = "playhead",
    /// The cursor of typed text, or the end of streaming text.
    Cursor = "cursor",
    /// A notice to the operator.
    Notice = "notice",
}
