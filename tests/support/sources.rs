//! The project's sources, read as text.

/// A source without the lines that are comments.
pub fn code(source: &str) -> String {
    let lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// What a source names of the standard library, each path whole, however it is imported.
pub fn of_std(source: &str) -> Vec<String> {
    let dense: String = code(source).split_whitespace().collect();
    let mut found = Vec::new();
    for after in dense.split("std::").skip(1) {
        tree(after, "std", &mut found);
    }
    if dense.contains("usestdas") {
        found.push("std as another name".to_owned());
    }
    found
}

/// Adds the paths of a tree of imports that follows `before::`; returns the text after it.
fn tree<'a>(text: &'a str, before: &str, found: &mut Vec<String>) -> &'a str {
    if let Some(mut list) = text.strip_prefix('{') {
        while !list.is_empty() && !list.starts_with('}') {
            let rest = tree(list, before, found);
            // A text that is no import, such as an expression in braces, ends the tree.
            let Some(next) = rest.strip_prefix(',') else { return rest.trim_start_matches('}') };
            list = next;
        }
        return list.strip_prefix('}').unwrap_or(list);
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '*');
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    let path = format!("{before}::{name}");
    match rest.strip_prefix("::") {
        Some(inner) => tree(inner, &path, found),
        None => {
            found.push(path);
            rest
        }
    }
}
