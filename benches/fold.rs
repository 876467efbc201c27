//! What reading and folding a log costs: facts a second, over a log as a run really writes it; what a page of the
//! dashboard adds to it; and how reading its lines compares to reading them as any JSON.

mod long;
mod paired;

use std::time::Duration;

use paired::{report, timed};
use roundtable::bench::RunPage;
use roundtable::{Event, RunId, World};

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

    let lines: Vec<String> = log.iter().map(|fact| fact.to_line().expect("a line")).collect();
    let [mut any, mut read, mut fold] = [f64::MAX; 3];
    for _ in 0..5 {
        let took = timed(|| {
            lines.iter().for_each(|line| {
                std::hint::black_box(
                    serde_json::from_str::<serde_json::Value>(line).expect("JSON"),
                );
            });
        });
        any = any.min(took.as_secs_f64());
        let mut events = Vec::with_capacity(FACTS);
        let took =
            timed(|| events.extend(lines.iter().map(|line| Event::from_line(line).expect("one"))));
        read = read.min(took.as_secs_f64());
        let mut world = World::new();
        fold = fold.min(timed(|| events.iter().for_each(|fact| world.apply(fact))).as_secs_f64());
    }
    let told = format!("{:.2} of it", read / any);
    report("Event::from_line, against its line as serde_json::Value", &told, "none");
    report("World::apply, against Event::from_line", &format!("{:.2} of it", fold / read), "none");
}
