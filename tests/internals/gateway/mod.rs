//! The gateway that every call passes.

mod allocations;
mod brownout;
mod faults;
mod hostile_endpoints;
mod in_runs;
mod network_faults;
mod resilience;
mod shared_tools;
