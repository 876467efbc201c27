//! What the project's own program, benches and integration tests need of the inside. It is for them
//! alone and promises nothing: a name here may change or go with any commit.

pub use crate::agents::facts::{
    HandoffRefusal, HistoryEntry, LoopGuard, MemberOutput, SessionHead,
};
pub use crate::agents::plan::{AgentHead, SwarmHead};
pub use crate::agents::projection::HANDED_OVER;
pub use crate::base::seeded_random::random_u64;
pub use crate::base::stems::{query_words, words};
pub use crate::base::visible::is_hostile;
pub use crate::event::contribution::{Conflict, Contribution, Stance};
pub use crate::event::kind::{
    BreakerHead, BulkheadHead, CallStarted, FlagAt, Prompt, SafeModeHead, ToolHead, ToolLimits,
};
pub use crate::event::patterns::PatternPlan;
pub use crate::gateway::Guard;
pub use crate::gateway::breaker::AttemptVerdict;
pub use crate::gateway::time_limit::run_within;
pub use crate::host::models::LiveModels;
pub use crate::host::trust::Trust;
pub use crate::llm::Failure;
pub use crate::llm::endpoint::{Wire, find};
pub use crate::pattern::collaboration::facts::{SeatPlan, SeatStatus};
pub use crate::pattern::collaboration::plan::CollaborationPlan;
pub use crate::pattern::orchestrator::policy::args_hash;
pub use crate::pattern::research::by_rule::notes as notes_by_rule;
pub use crate::pattern::research::facts::FoundSource;
pub use crate::pattern::research::policy::address::dedupe;
pub use crate::pattern::research::policy::note_issues;
pub use crate::pattern::research::policy::quote::FoldedText;
pub use crate::pattern::team::plan::TeamPlan;
pub use crate::scenario::condition::CelBindings;
pub use crate::scenario::spec::alert::AlertLimits;
pub use crate::scenario::spec::limits::{BreakerCounts, BreakerMode};
pub use crate::scenario::spec::lookup::FolderSpec;
pub use crate::scenario::spec::policy::CallPolicy;
#[cfg(feature = "documents")]
pub use crate::tool::folder::{
    FolderSearch,
    address::Layout,
    cancellation::CancelFlag,
    source::{Catalogue, DocumentSource},
    text_index::TextIndex,
};

#[cfg(feature = "store")]
pub use crate::base::word_query::WordQuery;
#[cfg(feature = "store")]
pub use crate::event::run_row::RunRow;
#[cfg(feature = "store")]
pub use crate::host::keep::{StoreFailure, StoreKeeper, StoredRuns};
#[cfg(feature = "store")]
pub use crate::store::{
    EventGroup, RunLog,
    database::{
        Database,
        removal::{Deletion, Retention},
        rows::RunCourse,
        said::SaidIndex,
    },
};

/// How a headless run writes its events as lines.
#[cfg(feature = "store")]
pub mod lines {
    use crate::bus::LogReader;
    use crate::event::{Event, RunId};

    /// Shares the lines with the store of the run, if it has one.
    pub fn share_with_store(reader: &LogReader) {
        reader.share_lines_with_store();
    }

    /// Appends the line of an event that this reader has read.
    ///
    /// # Errors
    /// As [`Event::append_line`].
    pub fn append(
        reader: &LogReader,
        event: &Event,
        run: &RunId,
        out: &mut Vec<u8>,
    ) -> Result<(), serde_json::Error> {
        reader.append_line(event, run, out)
    }
}

#[cfg(feature = "nats")]
pub use crate::cluster::{
    Cluster,
    address::ClusterAddress,
    rows::{ClusterRow, RunRows},
};

#[cfg(feature = "tui")]
pub use self::program::*;

/// The program and its dashboard.
#[cfg(feature = "tui")]
mod program {
    pub use crate::app::help::keys_markdown;
    pub use crate::app::key::KeyPress;
    pub use crate::app::layout::Size;
    pub use crate::app::msg::{Mouse, MouseKind};
    pub use crate::app::request::RequestId;
    pub use crate::app::run::RunPage;
    pub use crate::app::state::DisplaySettings;
    pub use crate::app::{Action, AppState};
    pub use crate::cli::args::Cli;
    pub use crate::cli::main;
    pub use crate::cli::stdout::note_closed as note_closed_stdout;
    pub use crate::narrate::glyph::Glyphs;
    pub use crate::shell::clipboard::osc52;
    pub use crate::shell::console::{Console, Editor, Pager};
    pub use crate::shell::effects::{EffectResult, Services};
    pub use crate::shell::run::{DashboardConfig, run as run_dashboard};
    pub use crate::shell::signals::ProcessSignal;
    pub use crate::shell::surface::Canvas;
    pub use crate::ui::cx::DrawContext;
    pub use crate::ui::run::header::{first_row, second_row};
    pub use crate::ui::run::render as render_run;
    pub use crate::ui::theme::Theme;
}
