//! The file format of the pattern `router`.

use crate::scenario::file::amount::Number;
use crate::scenario::file::named::{ActorName, NamedEntries};
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::record::{ObjectSchema, Requirement, join_doc_lines, record};
use crate::scenario::file::shape::{BoundedList, FormatShape, NonBlankString};
use crate::scenario::file::tree::TomlNode;

record! {
    /// The classifier, the routes, and when the fallback answers.
    struct RouterTable => {
        /// System prompt of the classifier; the required reply format is appended. `{{input}}` is
        /// filled in.
        prompt: NonBlankString = needed_or_file,
        /// The model that classifies. Default: that of [model].
        model: NonBlankString = optional,
        /// Inputs that the classifier sees with the goal.
        echo: BoundedList<NonBlankString, 0, 64> = default(BoundedList(Vec::new())),
        /// The routes by the name of their agent: the policy list. The agent's description tells the
        /// classifier what the route is for.
        routes: NamedEntries<RouteTable, ActorName> = default(NamedEntries::default()),
        /// The route where the classifier's is off or its confidence too low. Default: none, and
        /// the run stops with no_route.
        fallback: NonBlankString = optional,
        /// The confidence, from 0 to 1, that the classifier's route needs.
        min_confidence: Number<0, 1> = optional,
    }
}

record! {
    /// A route: the agent of this name answers.
    struct RouteTable => {
        /// A flag that takes the route off the execution list while it is off.
        flag: NonBlankString = optional,
    }
}
