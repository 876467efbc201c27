//! What the project's own program, benches and integration tests need of the inside. It is for them
//! alone and promises nothing: a name here may change or go with any commit.

pub use self::program::*;
pub use crate::base::seeded_random::random_u64;
pub use crate::base::visible::is_hostile;
pub use crate::base::word_query::WordQuery;
pub use crate::cluster::Cluster;
pub use crate::cluster::address::ClusterAddress;
pub use crate::cluster::rows::{ClusterRow, RunRows};
pub use crate::gateway::CallGuard;
pub use crate::gateway::attempt::run_within;
pub use crate::gateway::breaker::AttemptVerdict;
pub use crate::host::models::LiveModels;
pub use crate::host::run_store::{StoreFailure, StoreKeeper, StoredRuns};
pub use crate::host::traced_runs::{traced, use_target as send_spans};
pub use crate::host::trust::Trust;
pub use crate::log::event::{CallStarted, FlagAt, Prompt, SafeModeHead, ToolHead, ToolLimits};
pub use crate::log::facts::PatternPlan;
pub use crate::log::facts::agents::TeamPlan;
pub use crate::log::facts::agents::{
    AgentHead, HandoffRefusal, HistoryEntry, LoopGuard, MemberOutput, SessionHead, SwarmHead,
};
pub use crate::log::facts::collaboration::{
    CollaborationPlan, Conflict, Contribution, SeatPlan, SeatStatus, Stance,
};
pub use crate::log::facts::observed::{ObservedFact, ObservedPlan, SpanAbout, SpanEnd, SpanRole};
pub use crate::log::facts::research::FoundSource;
pub use crate::log::world::agents::HANDED_OVER;
pub use crate::log::world::run_row::RunRow;
pub use crate::model::Failure;
pub use crate::model::endpoint::{Wire, find};
pub use crate::pattern::orchestrator::policy::args_hash;
pub use crate::pattern::research::note_taking::notes_by_rule;
pub use crate::pattern::research::policy::address::dedupe;
pub use crate::pattern::research::policy::{QuotedPage, note_issues};
pub use crate::scenario::cel::CelBindings;
pub use crate::scenario::patterns::collaboration::CollaborationBudget;
pub use crate::scenario::patterns::research::SamePage;
pub use crate::scenario::spec::AlertLimits;
pub use crate::scenario::spec::policy::{
    BreakerCounts, BreakerLimits, BreakerMode, BulkheadLimits, CallPolicy,
};
pub use crate::scenario::tools::documents::FolderSpec;
pub use crate::store::database::Database;
pub use crate::store::database::removal::{Deletion, Retention};
pub use crate::store::database::rows::RunCourse;
pub use crate::store::database::text_index::RunTextIndex;
pub use crate::store::{EventGroup, RunLog};
pub use crate::tool::folder::FolderSearch;
pub use crate::tool::folder::address::Layout;
pub use crate::tool::folder::index::CancelFlag;
pub use crate::tool::folder::source::{Catalogue, DocumentSource};
pub use crate::tool::folder::text_index::TextIndex;

/// The program and its dashboard.
mod program {
    pub use crate::cli::args::Cli;
    pub use crate::cli::main;
    pub use crate::cli::streams::note_stdout_closed as note_closed_stdout;
    pub use crate::screen::DrawContext;
    pub use crate::screen::effect::RequestId;
    pub use crate::screen::key::KeyPress;
    pub use crate::screen::layout::Size;
    pub use crate::screen::msg::{Mouse, MouseKind};
    pub use crate::screen::run::RunPage;
    pub use crate::screen::run::header::{first_row, second_row};
    pub use crate::screen::run::render as render_run;
    pub use crate::screen::state::DisplaySettings;
    pub use crate::screen::theme::Theme;
    pub use crate::screen::windows::help::keys_markdown;
    pub use crate::screen::{Action, AppState};
    pub use crate::terminal::console::{Console, Editor, Pager};
    pub use crate::terminal::effects::{EffectResult, Services};
    pub use crate::terminal::event_loop::{DashboardConfig, run as run_dashboard};
    pub use crate::terminal::osc52;
    pub use crate::terminal::signals::ProcessSignal;
    #[cfg(unix)]
    pub use crate::terminal::signals::is_ignored;
    pub use crate::terminal::surface::Canvas;
    pub use crate::words::glyph::Glyphs;
}
