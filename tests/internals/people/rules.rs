//! What the rules of a file decide about a call.

use serde_json::json;

use crate::scenario::cel::{CelBindings, Condition};
use crate::scenario::people::{
    ApproveRule, Asking, CallDecision, CallToDecide, OPERATOR, Otherwise, People, RuleAction,
    ToolApproval,
};

fn rule(action: RuleAction, tool: &str, when: Option<&str>) -> ApproveRule {
    let asking = Asking { who: OPERATOR.into(), timeout: None, otherwise: Otherwise::Deny };
    ApproveRule {
        tool: tool.to_owned(),
        agent: None,
        when: when.map(|when| Condition::compile(when).expect("a condition")),
        action,
        asking,
        text: format!("{} {tool}", action.word()).into(),
    }
}

/// What is decided about a refund of 150 USD, in one word.
fn decide(rules: Vec<ApproveRule>, own: Option<Option<&str>>, remembered: bool) -> String {
    let people = People { rules, ..People::default() };
    let own = own.map(|when| ToolApproval {
        when: when.map(|when| Condition::compile(when).expect("a condition")),
        asking: Asking { who: "boss".into(), timeout: None, otherwise: Otherwise::Stop },
    });
    let mut shown = CelBindings::default();
    shown.bind("args", &json!({ "amount_usd": 150 }));
    shown.bind("agent", &"billing".into());
    shown.bind("flags", &json!({}));
    let tool = "refund".into();
    let by_rules = CallToDecide::by_rules(&tool, "billing");
    let call = CallToDecide { own: own.as_ref(), remembered, ..by_rules };
    let (decision, failed) = people.decide(call, &shown, Ok(()));
    let failed = if failed.is_empty() { "" } else { ", failed" };
    match decision {
        CallDecision::Unasked => format!("unasked{failed}"),
        CallDecision::Allowed(None) => format!("remembered{failed}"),
        CallDecision::Allowed(Some(rule)) => format!("{rule}{failed}"),
        CallDecision::Denied(rule) => format!("{rule}{failed}"),
        CallDecision::Asked(asking, rule) => {
            format!("asks {} by {}{failed}", asking.who, rule.as_deref().unwrap_or("tool"))
        }
    }
}

#[test]
fn rules_apply_in_their_order() {
    use RuleAction::{Allow, Ask, Deny};
    let all = || vec![rule(Allow, "refund", None), rule(Ask, "ref*", None), rule(Deny, "*", None)];
    let but_deny = || all().into_iter().take(2).collect::<Vec<_>>();
    let dear = "args.amount_usd > 100";
    let sum = Some("args.sum > 1");
    for (rules, own, remembered, expected) in [
        (vec![], None, false, "unasked"),
        (all(), Some(None), true, "deny *"),
        (but_deny(), Some(None), true, "remembered"),
        (but_deny(), Some(None), false, "asks boss by tool"),
        (but_deny(), None, false, "asks operator by ask ref*"),
        (vec![rule(Allow, "refund", None)], Some(None), false, "asks boss by tool"),
        (vec![rule(Allow, "refund", None)], None, false, "allow refund"),
        (vec![rule(Deny, "other*", None)], None, false, "unasked"),
        (vec![], Some(Some(dear)), false, "asks boss by tool"),
        (vec![], Some(Some("args.amount_usd > 1000")), false, "unasked"),
        // What cannot be evaluated asks, and does not allow.
        (vec![], Some(sum), false, "asks boss by tool, failed"),
        (vec![rule(Deny, "*", sum)], None, false, "asks operator by deny *, failed"),
        (vec![rule(Allow, "*", sum)], None, false, "unasked, failed"),
        (vec![rule(Ask, "*", sum)], None, false, "asks operator by ask *, failed"),
    ] {
        assert_eq!(decide(rules, own, remembered), expected);
    }
}
