//! Screens, as snapshots.

mod comparison_screens;
mod dashboard_screens;
mod model_names_screens;
mod orchestrator_screens;
mod remote_screens;
mod research_screens;
mod router_screens;
mod runview_screens;
mod runview_sizes;
mod runview_window;
mod team_screens;
mod titles;
mod tools_screens;
