//! Teams in teams: whether one is within itself, and how deep they stand.

use std::collections::BTreeMap;

use super::agent::MAX_DEPTH;
use super::format::File;
use super::format_team::{AgentTable, Members};
use super::named::Entry;
use super::reader::Reader;

/// An agent in the graph of who is whose member.
struct Knot<'f> {
    entry: &'f Entry<AgentTable>,
    /// Which member, and which agent it is.
    members: Vec<(usize, usize)>,
    /// How many teams deep it is, once that is known.
    depth: Option<usize>,
}

/// Teams that are within themselves, and towers of them. No recursion: a file may be long.
pub(super) fn nesting(file: &File, cx: &mut Reader) {
    let agents = &file.agents.entries;
    let places: BTreeMap<&str, usize> =
        agents.iter().enumerate().map(|(place, entry)| (entry.name.as_str(), place)).collect();
    let mut knots: Vec<Knot<'_>> = agents
        .iter()
        .map(|entry| {
            let members = entry.value.iter().flat_map(|table| &table.members);
            let members = members.flat_map(|Members(list)| list.value.iter().enumerate());
            // One that is its own member is told of as such.
            let others = members.filter(|(_, member)| member.text != entry.name);
            let members = others.filter_map(|(at, it)| Some((at, *places.get(it.text.as_str())?)));
            Knot { entry, members: members.collect(), depth: None }
        })
        .collect();
    for start in 0..knots.len() {
        // The way down to where we are, each with the member that is looked at next.
        let mut way = if knots[start].depth.is_none() { vec![(start, 0)] } else { Vec::new() };
        while let Some((here, next)) = way.last_mut() {
            let here = *here;
            let Some((index, member)) = knots[here].members.get(*next).copied() else {
                let depths = knots[here].members.iter().filter_map(|(_, it)| knots[*it].depth);
                let depth = depths.max().map_or(0, |deepest| deepest + 1);
                if depth == MAX_DEPTH + 1 {
                    let entry = knots[here].entry;
                    let what = format!("{depth} teams stand within one another here");
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
            let what = format!("`{}` is within itself: {path}", member.text);
            cx.error(member.at, what, "a team cannot have itself as a member");
        });
    });
}
