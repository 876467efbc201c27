//! A team or a swarm in words. What is about its agents is in [`agents::words`](crate::agents::words).

mod narrate;
