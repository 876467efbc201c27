//! The README's picture is of a real screen. `just readme` draws it again.

use crate::event::BoundaryId;
use crate::shell::effects::LaunchExtras;
use crate::shell::signals::ProcessSignal;
use crate::support::console::{Person, scenario};
use crate::support::picture;
use crossterm::event::KeyCode;

const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/round-table.svg");

fn blessing() -> bool {
    std::env::var_os("ROUNDTABLE_BLESS").is_some()
}

/// The second round of the scenario of the first screen, the lawyer seated, a retry on its way.
#[tokio::test(start_paused = true)]
async fn the_picture_is_of_a_real_screen() {
    let mut person = Person::at(120, 36);
    let mut extra = LaunchExtras::default();
    extra.schedule.flags.push((BoundaryId::new("round:2"), "legal_analyst".into(), true));
    person.starts_with(scenario("checkout-launch", &[]), false, extra);
    let seen = person
        .sees_that("the speaker's second attempt", |seen| {
            seen.text.contains("joined in R2")
                && seen.text.contains("attempt 2 ●")
                && seen.text.contains("chargeback alerts are")
        })
        .await;
    for part in ["Round table", "Stances by round", "Calls", "Events", "call.retried"] {
        assert!(seen.text.contains(part), "no {part} on it:\n{}", seen.text);
    }
    let picture = picture::svg(&seen.cells, "A run of checkout-launch in the dashboard");
    let run = person.services.engine.runs()[0].id().to_string();
    let picture = picture.replace(&run, "r-7f3a");
    if blessing() {
        std::fs::write(PICTURE, &picture).expect("written");
    }
    let kept = std::fs::read_to_string(PICTURE).expect("a picture");
    assert!(kept.starts_with("<svg ") && kept.contains("legal_analyst"), "`just readme` draws it");
    person.key(KeyCode::Char('q'));
    person.told(ProcessSignal::End(143));
    person.ends().await.expect("an end");
}
