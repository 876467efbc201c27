//! What folding a log costs: facts a second, over a log as a run really writes it; and what a page
//! of the dashboard adds to it.

mod long;
mod paired;

use std::time::Duration;

use paired::{report, timed};
use roundtable::bench::RunPage;
use roundtable::{RunId, World};

const FACTS: usize = 1_000_000;

fn rate(took: Duration) -> f64 {
    FACTS as f64 / took.as_secs_f64() / 1e6
}

fn main() {
    let log = long::log(FACTS);
    let mut best = f64::MIN;
    let mut best_page = f64::MIN;
    for _ in 0..5 {
        let mut world = World::new();
        let took = timed(|| log.iter().for_each(|fact| world.apply(fact)));
        assert_eq!(world.tally.events, FACTS as u64);
        best = best.max(rate(took));
        let mut page = RunPage::new(RunId::new("r-long"), Duration::ZERO);
        let took = timed(|| log.chunks(512).for_each(|batch| page.apply(batch)));
        assert_eq!(page.log().len(), FACTS);
        best_page = best_page.max(rate(took));
    }
    let told = format!("{best:.1} million a second");
    report("World::apply over 1 000 000 facts of a run", &told, "2.0");
    let told = format!("{best_page:.1} million a second");
    report("RunPage::apply (fold, log, checkpoints)", &told, "none");
}
