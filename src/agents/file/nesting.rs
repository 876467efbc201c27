//! Reports teams that contain themselves, or that are nested too deeply.

use std::collections::BTreeMap;

use crate::agents::file::table::{AgentTable, Members};
use crate::agents::spec::MAX_DEPTH;
use crate::scenario::file::format::ScenarioFile;
use crate::scenario::file::named::NamedEntry;
use crate::scenario::file::reader::ReadContext;

/// An agent in the graph of memberships.
struct MembershipNode<'f> {
    entry: &'f NamedEntry<AgentTable>,
    /// Index in its `members`, and index of that agent in the file.
    members: Vec<(usize, usize)>,
    /// How many levels of teams are below it, once known.
    depth: Option<usize>,
}

/// Reports cycles and too deep nesting. No recursion: a file may be long.
pub(crate) fn nesting(file: &ScenarioFile, cx: &mut ReadContext) {
    let agents = &file.agents.entries;
    let places: BTreeMap<&str, usize> =
        agents.iter().enumerate().map(|(place, entry)| (entry.name.as_str(), place)).collect();
    let mut knots: Vec<MembershipNode<'_>> = agents
        .iter()
        .map(|entry| {
            let members = entry.value.iter().flat_map(|table| &table.members);
            let members = members.flat_map(|Members(list)| list.value.iter().enumerate());
            // An agent that is its own member is reported elsewhere.
            let others = members.filter(|(_, member)| member.text != entry.name);
            let members = others.filter_map(|(at, it)| Some((at, *places.get(it.text.as_str())?)));
            MembershipNode { entry, members: members.collect(), depth: None }
        })
        .collect();
    for start in 0..knots.len() {
        // The path down to the current agent, each with the index of its next member.
        let mut way = if knots[start].depth.is_none() { vec![(start, 0)] } else { Vec::new() };
        while let Some((here, next)) = way.last_mut() {
            let here = *here;
            let Some((index, member)) = knots[here].members.get(*next).copied() else {
                let depths = knots[here].members.iter().filter_map(|(_, it)| knots[*it].depth);
                let depth = depths.max().map_or(0, |deepest| deepest + 1);
                if depth == MAX_DEPTH + 1 {
                    let entry = knots[here].entry;
                    let what = format!("teams are nested {depth} deep here");
                    let help = format!("at most {MAX_DEPTH}");
                    cx.at_key(&entry.name, |cx| cx.error(entry.at, what, help));
                }
                knots[here].depth = Some(depth);
                way.pop();
                continue;
            };
            *next += 1;
            if let Some(from) = way.iter().position(|(passed, _)| *passed == member) {
                let circle =
                    way[from..].iter().map(|(passed, _)| knots[*passed].entry.name.as_str());
                let path: Vec<&str> = circle.chain([knots[member].entry.name.as_str()]).collect();
                report_cycle(knots[here].entry, index, &path.join(" > "), cx);
            } else if knots[member].depth.is_none() {
                way.push((member, 0));
            }
        }
    }
}

fn report_cycle(entry: &NamedEntry<AgentTable>, index: usize, path: &str, cx: &mut ReadContext) {
    let members = entry.value.as_ref().and_then(|table| table.members.as_ref());
    let Some(member) = members.and_then(|Members(list)| list.value.get(index)) else { return };
    cx.at_key(&format!("{}.members", entry.name), |cx| {
        cx.at_index(index, |cx| {
            let what = format!("`{}` contains itself: {path}", member.text);
            cx.error(member.at, what, "a team cannot have itself as a member");
        });
    });
}
