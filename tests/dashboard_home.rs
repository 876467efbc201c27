//! The first screen.

mod screen;

use roundtable::app::KeyCode;
use roundtable::engine::Schedule;
use roundtable::event::EventKind;

use screen::{Dash, facts, until};

#[test]
fn look() {
    let events = facts("checkout-launch", &[], &[], Schedule::default());
    let mut dash = Dash::new(120, 36);
    let middle = until(&events, |kind| matches!(kind, EventKind::RoundStarted { round: 2, .. }));
    dash.run("r-0001", &events);
    dash.run("r-0002", &events[..middle + 8]);
    dash.text("q");
    dash.text("1");
    dash.text("n");
    println!("{}", dash.screen());
    dash.press(KeyCode::Esc).text("2f");
    println!("{}", dash.screen());
    dash.press(KeyCode::Esc).text("K");
    println!("{}", dash.screen());
    dash.press(KeyCode::Esc);
    for (c, r) in [(80, 24), (60, 16), (200, 50)] {
        dash.send(roundtable::app::Msg::Resize { cols: c, rows: r });
        dash.text("1");
        println!("{}", dash.screen());
        dash.text("2");
        println!("{}", dash.screen());
        dash.text("3");
        println!("{}", dash.screen());
        dash.text("n");
        println!("{}", dash.screen());
        dash.press(KeyCode::Esc).text("?");
        println!("{}", dash.screen());
        dash.press(KeyCode::Esc).text("2f");
        println!("{}", dash.screen());
        dash.press(KeyCode::Esc).text("K");
        println!("{}", dash.screen());
        dash.press(KeyCode::Esc).press(KeyCode::Enter);
        println!("{}", dash.screen());
        dash.text("q");
    }
}
