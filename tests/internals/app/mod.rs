//! The behaviour of the dashboard.

mod costs;
mod dashboard;
mod hostile_input;
mod let_go;
mod monkey;
mod runview_behaviour;
mod tools_behaviour;
mod tools_beside;
