//! Reports teams that contain themselves, or that are nested too deeply.

use std::collections::BTreeMap;

use super::agent::MAX_DEPTH;
use super::format::File;
use super::format_team::{AgentTable, Members};
use super::named::Entry;
use super::reader::Reader;

/// An agent in the graph of memberships.
struct Knot<'f> {
    entry: &'f Entry<AgentTable>,
    /// Index in its `members`, and index of that agent in the file.
    members: Vec<(usize, usize)>,
    /// How many levels of teams are below it, once known.
    depth: Option<usize>,
}

/// Reports cycles and too deep nesting. No recursion: a file may be long.
pub(super) fn nesting(file: &File, cx: &mut Reader) {
    let agents = &file.agents.entries;
    let places: BTreeMap<&str, usize> =
        agents.iter().enumerate().map(|(place, entry)| (entry.name.as_str(), place)).collect();
    let mut knots: Vec<Knot<'_>> = agents
        .iter()
        .map(|entry| {
            let members = entry.value.iter().flat_map(|table| &table.members);
            let members = members.flat_map(|Members(list)| list.value.iter().enumerate());
            // An agent that is its own member is reported elsewhere.
            let others = members.filter(|(_, member)| member.text != entry.name);
            let members = others.filter_map(|(at, it)| Some((at, *places.get(it.text.as_str())?)));
            Knot { entry, members: members.collect(), depth: None }
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
                    cx.within(&entry.name, |cx| cx.error(entry.at, what, help));
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
                within_itself(knots[here].entry, index, &path.join(" > "), cx);
            } else if knots[member].depth.is_none() {
                way.push((member, 0));
            }
        }
    }
}

fn within_itself(entry: &Entry<AgentTable>, index: usize, path: &str, cx: &mut Reader) {
    let members = entry.value.as_ref().and_then(|table| table.members.as_ref());
    let Some(member) = members.and_then(|Members(list)| list.value.get(index)) else { return };
    cx.within(&format!("{}.members", entry.name), |cx| {
        cx.item(index, |cx| {
            let what = format!("`{}` contains itself: {path}", member.text);
            cx.error(member.at, what, "a team cannot have itself as a member");
        });
    });
}
