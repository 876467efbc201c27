//! What a run costs: folded from its log, and of live runs with the real binary.

use std::sync::Arc;

use crate::log::event::{Event, EventKind, ModelLabel, ModelPriceHead, PricesHead, World};
use crate::log::facts::collaboration::Stance;
use crate::scenario::spec::Price;
use crate::support::facts::{Facts, Start};
use crate::support::screen::Dash;

/// A live run of two seats whose calls ask these models, each with a reply of 812 and 96 tokens.
fn run(asked: [Option<&str>; 2], prices: &[(&str, Option<Price>)]) -> Vec<Arc<Event>> {
    let model = ModelLabel::Live { name: "a, b".to_owned(), host: "models.example".to_owned() };
    let mut facts = Facts::start(Start { model, ..Start::default() });
    facts.round(&[2, 3]).ask(0).ask(1);
    facts.says(1, Stance::Go, 0.9, "Fine.").says(0, Stance::Go, 0.9, "Fine.");
    let mut seats = asked.into_iter();
    for event in &mut facts.log {
        let event = Arc::make_mut(event);
        match &mut event.kind {
            EventKind::RunStarted(head) => {
                let head = Arc::make_mut(head);
                let price = |(model, price): &(&str, Option<Price>)| ModelPriceHead {
                    model: (*model).to_owned(),
                    price: *price,
                };
                head.model_prices = prices.iter().map(price).collect();
            }
            EventKind::CallStarted(call) => {
                call.model = seats.next().flatten().map(Arc::from);
            }
            _ => {}
        }
    }
    facts.log
}

fn world(log: &[Arc<Event>]) -> World {
    World::from_events(log.iter().map(|event| &**event))
}

fn cost(log: &[Arc<Event>]) -> Option<i64> {
    world(log).cost_usd().map(|dollars| (dollars * 1e6).round() as i64)
}

/// A price for each token of a prompt, none for those of the reply: 812 tokens at a time.
const ONE: Option<Price> = Some(Price::new(1.0, 0.0));
const TEN: Option<Price> = Some(Price::new(10.0, 100.0));

#[test]
fn call_costs_price_of_its_model() {
    for (asked, prices, expected) in [
        ([Some("a"), Some("b")], vec![("a", ONE), ("b", TEN)], Some(812 + 8_120 + 9_600)),
        ([Some("b"), Some("a")], vec![("a", ONE), ("b", TEN)], Some(812 + 8_120 + 9_600)),
        ([Some("a"), Some("a")], vec![("a", ONE), ("b", TEN)], Some(1_624)),
        // The only model there is need not be named.
        ([None, None], vec![("a", ONE)], Some(1_624)),
        // One without a price, whether it was asked or not yet: nothing is known of the whole.
        ([Some("a"), Some("b")], vec![("a", ONE), ("b", None)], None),
        ([Some("a"), Some("a")], vec![("a", ONE), ("b", None)], None),
        // A name that the head does not have, or none where there are several.
        ([Some("a"), Some("c")], vec![("a", ONE)], None),
        ([Some("a"), None], vec![("a", ONE), ("b", ONE)], None),
        ([None, None], vec![], None),
    ] {
        assert_eq!(cost(&run(asked, &prices)), expected, "{asked:?} {prices:?}");
    }
}

#[test]
fn scenario_price_overrides_model_prices() {
    let mut log = run([Some("a"), Some("c")], &[("a", TEN)]);
    let EventKind::RunStarted(head) = &mut Arc::make_mut(&mut log[0]).kind else {
        panic!("a head")
    };
    let head = Arc::make_mut(head);
    assert_eq!((head.price_of(Some("a")), head.price_of(None)), (TEN, TEN));
    assert_eq!(head.price_of(Some("c")), None);
    head.prices = Some(PricesHead { prompt_usd_per_million: 1.0, completion_usd_per_million: 2.0 });
    assert_eq!(head.price_of(Some("c")), Some(Price::new(1.0, 2.0)));
    assert_eq!(cost(&log), Some(2 * (812 + 2 * 96)));
}

#[test]
fn old_log_keeps_its_cost() {
    let mut log = run([None, None], &[]);
    let line = log[0].to_line().expect("a line");
    assert!(!line.contains("model_prices"), "nothing is written of none: {line}");
    let old = line.replacen(
        "\"seed\":7",
        "\"seed\":7,\"prices\":{\"prompt_usd_per_million\":1.0,\"completion_usd_per_million\":2.0}",
        1,
    );
    assert_ne!(old, line);
    log[0] = Arc::new(Event::from_line(&old).expect("it reads"));
    assert_eq!(cost(&log), Some(2 * (812 + 2 * 96)));
    // And the new form comes back as it was.
    let new = run([Some("a"), Some("b")], &[("a", ONE), ("b", None)]);
    let line = new[0].to_line().expect("a line");
    assert_eq!(Event::from_line(&line).expect("it reads"), *new[0], "{line}");
}

#[test]
fn headers_and_gateway_show_cost() {
    let log = run([Some("a"), Some("b")], &[("a", ONE), ("b", TEN)]);
    let mut dash = Dash::new(200, 50);
    dash.run("r-7f3a", &log);
    let screen = dash.screen();
    let first = screen.lines().next().expect("a header");
    assert!(first.contains("≈ $0.0185"), "{first}");
    assert!(screen.contains("cost ≈ $0.0185"), "{screen}");
    dash.text("q");
    let screen = dash.screen();
    assert!(screen.contains("2 calls, 1.8k tok, ≈ $0.0185"), "{screen}");
    // Of a cost that is not known whole the known part is shown.
    let mut dash = Dash::new(200, 50);
    dash.run("r-7f3a", &run([Some("a"), Some("b")], &[("a", ONE), ("b", None)]));
    let screen = dash.screen();
    assert!(screen.contains("at least $0.0008") && !screen.contains('≈'), "{screen}");
    let mut dash = Dash::new(200, 50);
    dash.run("r-7f3a", &run([Some("a"), Some("b")], &[("a", None), ("b", None)]));
    assert!(!dash.screen().contains('$'), "{}", dash.screen());
}
