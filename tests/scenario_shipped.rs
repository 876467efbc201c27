//! The scenarios that come inside the program.

use roundtable::scenario::{Listing, check, shipped};

#[test]
fn every_shipped_scenario_is_good_and_without_a_warning() {
    let all = shipped();
    assert!(!all.is_empty());
    for shipped in all {
        let checked = check(shipped.text, shipped.origin(), &[]);
        assert!(checked.problems.is_empty(), "{}", checked.problems.pretty(false));
        let scenario = checked.scenario.expect("a scenario without problems");
        let listing = shipped.listing();
        assert_eq!(listing.name, scenario.name);
        assert_eq!(listing.title, scenario.title);
        assert_eq!(listing.about, scenario.about);
        assert_eq!(listing.pattern, scenario.pattern.name());
        assert_ne!(listing, Listing::read(shipped.name, ""));
    }
}
