//! What is counted of the sources.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::Visit;
use syn::{ImplItem, Item, Visibility};

use super::tree::{File, Tree, attributes};

/// The patterns, with the words by which an identifier names one.
pub const PATTERNS: &[(&str, &[&str])] = &[
    ("collaboration", &["collaboration"]),
    ("orchestrator", &["orchestrator"]),
    ("team", &["team", "swarm"]),
    ("resilience", &["resilience"]),
    ("research", &["research"]),
    ("router", &["router"]),
];

/// Enums with one variant for each pattern.
const PATTERN_ENUMS: &[&str] = &[
    "Pattern",
    "PatternSpec",
    "PatternPlan",
    "PatternFact",
    "PatternWorld",
    "PatternLive",
    "View",
];

/// Files that list the patterns, where a match on one is expected.
pub const REGISTRIES: &[&str] = &[
    "pattern/mod.rs",
    "event/patterns.rs",
    "event/world/patterns.rs",
    "narrate/patterns.rs",
    "panes/draw.rs",
    "panes/mod.rs",
    "scenario/patterns.rs",
];

/// The words of an identifier: `PatternSpec` and `pattern_spec` have two.
fn words(identifier: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in identifier.chars() {
        if c == '_' || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
        if c != '_' {
            words.last_mut().expect("a word").extend(c.to_lowercase());
        }
    }
    words
}

fn identifiers(tokens: &TokenStream, found: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            // `mod build_team;` says where a file is, and nothing about the pattern.
            TokenTree::Ident(_) if declares_file(&tokens, at) => {}
            TokenTree::Ident(word) => {
                found.insert(word.to_string());
            }
            TokenTree::Group(group) => identifiers(&group.stream(), found),
            _ => {}
        }
    }
}

/// Whether the identifier at this place is the name in a `mod name;`.
fn declares_file(tokens: &[TokenTree], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    let follows = matches!(before, Some(TokenTree::Ident(word)) if *word == "mod");
    let ends = matches!(tokens.get(at + 1), Some(TokenTree::Punct(mark)) if mark.as_char() == ';');
    follows && ends
}

/// For each pattern the files that name it, are not named for it and are in no folder that is.
/// Declarations of modules do not count, nor what is re-exported for the benches alone.
pub fn shared_files(tree: &Tree) -> BTreeMap<&'static str, Vec<String>> {
    let mut shared: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for file in tree.files.iter().filter(|file| file.path != "bench.rs") {
        let mut names = BTreeSet::new();
        identifiers(&file.tokens, &mut names);
        // A provider's name.
        names.retain(|name| name != "OpenRouter");
        let names: BTreeSet<String> = names.iter().flat_map(|name| words(name)).collect();
        for (pattern, by) in PATTERNS {
            // What all agents share stands for the patterns that are made of agents.
            let shared_by_agents = by.contains(&"team");
            let own = file.module.iter().any(|part| {
                (shared_by_agents && part == "agents")
                    || words(part).iter().any(|it| by.contains(&it.as_str()))
            });
            if !own && by.iter().any(|word| names.contains(*word)) {
                shared.entry(pattern).or_default().push(file.path.clone());
            }
        }
    }
    shared
}

struct Matches {
    found: usize,
}

impl Matches {
    fn pattern(&mut self, tokens: &dyn ToTokens) {
        let mut previous = Vec::new();
        let mut names = false;
        flat(&tokens.to_token_stream(), &mut previous);
        for pair in previous.windows(3) {
            names |=
                PATTERN_ENUMS.contains(&pair[0].as_str()) && pair[1] == "::" && pair[2] != "ALL";
        }
        self.found += usize::from(names);
    }
}

fn flat(tokens: &TokenStream, words: &mut Vec<String>) {
    let mut colons = 0;
    for token in tokens.clone() {
        match token {
            TokenTree::Ident(word) => words.push(word.to_string()),
            TokenTree::Punct(punct) if punct.as_char() == ':' => {
                colons += 1;
                if colons % 2 == 0 {
                    words.push("::".to_owned());
                }
            }
            TokenTree::Group(group) => flat(&group.stream(), words),
            other => words.push(other.to_string()),
        }
    }
}

impl<'ast> Visit<'ast> for Matches {
    fn visit_expr_match(&mut self, expr: &'ast syn::ExprMatch) {
        let pats: TokenStream = expr.arms.iter().map(|arm| arm.pat.to_token_stream()).collect();
        self.pattern(&pats);
        syn::visit::visit_expr_match(self, expr);
    }
    fn visit_expr_let(&mut self, expr: &'ast syn::ExprLet) {
        self.pattern(&expr.pat);
        syn::visit::visit_expr_let(self, expr);
    }
    fn visit_local(&mut self, local: &'ast syn::Local) {
        if local.init.as_ref().is_some_and(|init| init.diverge.is_some()) {
            self.pattern(&local.pat);
        }
        syn::visit::visit_local(self, local);
    }
    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        if mac.path.is_ident("matches") {
            self.pattern(&mac.tokens);
        }
    }
}

/// How often each file unpacks an enum of patterns; registries and a pattern's own folders aside.
pub fn matches_on_patterns(tree: &Tree) -> Vec<(String, usize)> {
    let own = |file: &File| {
        let first = file.module.first().map(String::as_str);
        first == Some("pattern") && file.module.len() > 1
    };
    let mut found = Vec::new();
    for file in
        tree.files.iter().filter(|file| !REGISTRIES.contains(&file.path.as_str()) && !own(file))
    {
        let mut matches = Matches { found: 0 };
        for item in &file.items {
            matches.visit_item(item);
        }
        if matches.found > 0 {
            found.push((file.path.clone(), matches.found));
        }
    }
    found
}

/// Type names that are used more than once in a folder of the top level, with the files.
pub fn duplicate_types(tree: &Tree) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    fn add(items: &[Item], path: &str, found: &mut BTreeMap<String, Vec<String>>) {
        for item in items {
            let name = match item {
                Item::Struct(it) => &it.ident,
                Item::Enum(it) => &it.ident,
                Item::Trait(it) => &it.ident,
                Item::Type(it) => &it.ident,
                Item::Mod(it) => {
                    if let Some((_, inner)) = &it.content {
                        add(inner, path, found);
                    }
                    continue;
                }
                _ => continue,
            };
            let folder = path.split('/').next().unwrap_or_default();
            found.entry(format!("{folder}/{name}")).or_default().push(path.to_owned());
        }
    }
    for file in &tree.files {
        add(&file.items, &file.path, &mut found);
    }
    // One name in one file twice is one type for two platforms.
    found.values_mut().for_each(Vec::dedup);
    found.retain(|_, files| files.len() > 1);
    found
}

/// The public items that can be reached from the front of the library: types, functions, constants and
/// methods, those of re-exported types and traits too; what is hidden from the documentation aside.
pub fn public_items(tree: &Tree) -> usize {
    let by_module: BTreeMap<Vec<String>, &File> =
        tree.files.iter().map(|file| (file.module.clone(), file)).collect();
    let mut types = BTreeSet::new();
    let mut count = 0;
    // Modules that are public all the way, and names that public modules re-export.
    let mut open = vec![Vec::new()];
    while let Some(module) = open.pop() {
        let Some(file) = by_module.get(&module) else { continue };
        for item in &file.items {
            if is_hidden(item) || !is_public(item) {
                continue;
            }
            match item {
                Item::Mod(it) => {
                    let mut inner = module.clone();
                    inner.push(it.ident.to_string());
                    open.push(inner);
                }
                Item::Use(it) => count += leaves(&it.tree, &mut types),
                Item::Struct(it) => {
                    types.insert(it.ident.to_string());
                    count += 1;
                }
                Item::Enum(it) => {
                    types.insert(it.ident.to_string());
                    count += 1;
                }
                Item::Trait(it) => {
                    types.insert(it.ident.to_string());
                    count += 1;
                }
                _ => count += 1,
            }
        }
    }
    for item in tree.files.iter().flat_map(|file| &file.items) {
        if let Item::Trait(it) = item
            && types.contains(&it.ident.to_string())
        {
            count += it.items.len();
        }
        let Item::Impl(it) = item else { continue };
        if it.trait_.is_some() {
            continue;
        }
        let name = match &*it.self_ty {
            syn::Type::Path(path) => path.path.segments.last().map(|it| it.ident.to_string()),
            _ => None,
        };
        if name.is_some_and(|name| types.contains(&name)) {
            count += it
                .items
                .iter()
                .filter(|it| match it {
                    ImplItem::Fn(it) => matches!(it.vis, Visibility::Public(_)),
                    ImplItem::Const(it) => matches!(it.vis, Visibility::Public(_)),
                    _ => false,
                })
                .count();
        }
    }
    count
}

fn leaves(tree: &syn::UseTree, types: &mut BTreeSet<String>) -> usize {
    match tree {
        syn::UseTree::Path(it) => leaves(&it.tree, types),
        syn::UseTree::Group(it) => it.items.iter().map(|it| leaves(it, types)).sum(),
        syn::UseTree::Name(it) => {
            types.insert(it.ident.to_string());
            1
        }
        syn::UseTree::Rename(it) => {
            types.insert(it.ident.to_string());
            1
        }
        syn::UseTree::Glob(_) => 1,
    }
}

fn is_public(item: &Item) -> bool {
    let vis = match item {
        Item::Const(it) => &it.vis,
        Item::Enum(it) => &it.vis,
        Item::Fn(it) => &it.vis,
        Item::Mod(it) => &it.vis,
        Item::Static(it) => &it.vis,
        Item::Struct(it) => &it.vis,
        Item::Trait(it) => &it.vis,
        Item::Type(it) => &it.vis,
        Item::Use(it) => &it.vis,
        _ => return false,
    };
    matches!(vis, Visibility::Public(_))
}

fn is_hidden(item: &Item) -> bool {
    attributes(item)
        .iter()
        .any(|it| it.path().is_ident("doc") && it.to_token_stream().to_string().contains("hidden"))
}

/// Files with more lines than this, with how many they have.
pub fn files_over(tree: &Tree, lines: usize) -> Vec<(String, usize)> {
    let mut over: Vec<_> = tree
        .files
        .iter()
        .filter(|it| it.lines > lines)
        .map(|it| (it.path.clone(), it.lines))
        .collect();
    over.sort_by_key(|(_, lines)| std::cmp::Reverse(*lines));
    over
}
