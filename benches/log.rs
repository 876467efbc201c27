//! What publishing costs: beside an unbounded mpsc channel, and with four readers beside one.

mod paired;

use std::sync::Arc;
use std::time::{Duration, Instant};

use paired::{held, pairs, report, timed};
use roundtable::{Bus, Elapsed, Event, EventKind, Seq, SpanId};

const FACTS: u64 = 100_000;

fn kind(n: u64) -> EventKind {
    EventKind::CallAnswered { attempts: n as u32 }
}

/// Publishes to a log that nobody reads.
fn publish() -> Duration {
    let bus = Bus::new();
    timed(|| {
        for n in 0..FACTS {
            bus.publish(SpanId::RUN, kind(n));
        }
    })
}

/// Sends the same facts, allocated and stamped, over tokio's unbounded channel, and keeps them.
fn send() -> Duration {
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    let start = Instant::now();
    let took = timed(|| {
        for n in 0..FACTS {
            let at = Elapsed::from_duration(start.elapsed());
            let fact = Event { seq: Seq(n), at, span: SpanId::RUN, kind: kind(n) };
            let _ = sender.send(Arc::new(fact));
        }
    });
    drop(receiver);
    took
}

/// Publishes while `readers` follow on another thread; only the publisher is timed.
fn publish_read_by(readers: usize) -> Duration {
    let bus = Bus::new();
    let following = {
        let bus = bus.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            runtime.block_on(async {
                let all = (0..readers).map(|_| async {
                    let (mut reader, mut facts, mut read) = (bus.reader(Seq(0)), Vec::new(), 0);
                    while reader.next_batch(&mut facts, 1024).await > 0 {
                        read += facts.len() as u64;
                        facts.clear();
                    }
                    assert_eq!(read, FACTS);
                });
                futures::future::join_all(all).await;
            });
        })
    };
    let took = timed(|| {
        for n in 0..FACTS {
            bus.publish(SpanId::RUN, kind(n));
        }
    });
    bus.close();
    following.join().expect("the readers");
    took
}

fn main() -> std::process::ExitCode {
    let beside = pairs(31, publish, send);
    let (ours, theirs) = beside.medians();
    report(
        "publish / mpsc unbounded send (allocates, reads the clock)",
        &format!(
            "{:.2}x ({:.0} / {:.0} ns)",
            beside.ratio(),
            ours * 1e9 / FACTS as f64,
            theirs * 1e9 / FACTS as f64
        ),
        "3x",
    );
    let readers = pairs(31, || publish_read_by(4), || publish_read_by(1));
    let (four, one) = readers.medians();
    report(
        "publish with 4 readers / with 1",
        &format!(
            "{:.2}x ({:.0} / {:.0} ns)",
            readers.ratio(),
            four * 1e9 / FACTS as f64,
            one * 1e9 / FACTS as f64
        ),
        "1.25x",
    );
    divan::main();
    held(&[("publish", beside.ratio(), 3.0), ("4 readers", readers.ratio(), 1.25)])
}

#[divan::bench(name = "publish one fact")]
fn publish_one(bencher: divan::Bencher) {
    let bus = Bus::new();
    bencher.bench_local(|| bus.publish(SpanId::RUN, kind(1)));
}
