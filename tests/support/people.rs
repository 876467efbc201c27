//! A run that asks people twice.

/// An agent that refunds with an approval, then hands over to a person.
pub const DESK: &str = r#"
title   = "Desk"
pattern = "swarm"
goal    = "I was charged twice."

[people.manager]
description = "Answers for exceptions"
timeout     = "1d"

[swarm]
root = "desk"

[agents.desk]
description = "desk"
members     = ["billing", "lead"]
entry       = "billing"

[agents.billing]
description = "Refunds"
instruction = "Refund."
tools       = ["refund"]

[agents.lead]
description = "The manager"
person      = "manager"

[tools.refund]
description = "Refunds a charge"
args        = { charge = "Such as ch_2", amount_usd = { type = "number" } }
effects     = "irreversible"
approve     = true
fixture     = { rows = [{ result = { refund = "re_31" } }] }

[[script]]
agent = "billing"
round = 1
text  = "It was charged twice."
calls = [{ tool = "refund", args = { charge = "ch_2", amount_usd = 149.9 } }]

[[script]]
agent = "billing"
text  = "Who is responsible is not mine to say."
calls = [{ tool = "transfer_to_agent", args = { agent_name = "lead", message = "Who is responsible?" } }]
"#;
