//! The file format of a scripted failure.

use serde_json::json;

use super::amount::DurationOrZero;
use super::reader::{ReadContext, suggest_name};
use super::record::{ObjectSchema, Requirement, record, words};
use super::shape::{FormatShape, IntegerField, Positioned};
use super::tree::{TomlNode, TomlValue};

record! {
    /// A failure of the first attempts of a call. Exactly one of status and kind.
    struct FaultTable rule json!({
        "oneOf": [{ "required": ["status"] }, { "required": ["kind"] }]
    }) => {
        /// The HTTP status that the endpoint returns.
        status: IntegerField<400, 599> = optional,
        /// The value of its Retry-After header, in seconds.
        retry_after_s: Positioned<DurationOrZero> = optional,
        /// A failure other than an HTTP status.
        kind: FaultWord = optional,
        /// How many attempts of a call fail, from the first on.
        times: IntegerField<1, 20> = default(IntegerField(1)),
    }
}

/// Failures of a scripted attempt other than an HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultWord {
    Hang,
    Refused,
    Reset,
    BadResponse,
}

words! { FaultWord:
    "hang" => FaultWord::Hang, "No response until the timeout.";
    "refused" => FaultWord::Refused, "The connection is refused.";
    "reset" => FaultWord::Reset, "The connection breaks in the middle of the reply.";
    "bad_response" => FaultWord::BadResponse, "A response body that is not a chat completion.";
}
