//! The counts of the sources.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::Visit;
use syn::{ImplItem, Item, Visibility};

use super::tree::{File, Tree, attributes};

/// The folders and files of one pattern, and of what agents share.
const PATTERNS: &[&str] =
    &["agents", "collaboration", "orchestrator", "team", "resilience", "research", "router"];

/// Enums with one variant for each pattern, or for each kind of tool.
const REGISTERED: &[&str] = &[
    "Pattern",
    "PatternSpec",
    "PatternPlan",
    "PatternFact",
    "PatternWorld",
    "PatternLive",
    "View",
    "ToolKind",
];

/// Files that list the patterns or the kinds of tool, where a match on one is expected.
pub const REGISTRIES: &[&str] = &[
    "pattern/mod.rs",
    "pattern/plan.rs",
    "log/facts/mod.rs",
    "log/world/mod.rs",
    "words/patterns/mod.rs",
    "screen/run/views/mod.rs",
    "scenario/patterns/mod.rs",
    "scenario/tools/mod.rs",
    "tool/mod.rs",
];

struct Matches {
    found: usize,
}

impl Matches {
    fn pattern(&mut self, tokens: &dyn ToTokens) {
        let mut previous = Vec::new();
        let mut names = false;
        flat(&tokens.to_token_stream(), &mut previous);
        for pair in previous.windows(3) {
            names |= REGISTERED.contains(&pair[0].as_str()) && pair[1] == "::" && pair[2] != "ALL";
        }
        self.found += usize::from(names);
    }
}

/// The words of some tokens, groups opened.
pub fn flat(tokens: &TokenStream, words: &mut Vec<String>) {
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

/// How often each file unpacks an enum of patterns or of kinds of tool, without registries and a pattern's
/// own folders.
pub fn matches_on_patterns(tree: &Tree) -> Vec<(String, usize)> {
    let own = |file: &File| file.module.iter().any(|part| PATTERNS.contains(&part.as_str()));
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

/// The accessors of one pattern's projection. Those of agents, which three patterns share, and of observed runs
/// are no patterns.
const ACCESSORS: &[&str] = &["collaboration", "orchestrator", "research", "router"];

struct Accessors {
    found: usize,
}

impl<'ast> Visit<'ast> for Accessors {
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let is_accessor = ACCESSORS.contains(&call.method.to_string().as_str());
        self.found += usize::from(is_accessor && call.args.is_empty());
        syn::visit::visit_expr_method_call(self, call);
    }
}

/// How often each file asks a run for the projection of one pattern, without the registry of projections and a
/// pattern's own folders: as good as a match.
pub fn accessors_of_patterns(tree: &Tree) -> Vec<(String, usize)> {
    let own = |file: &File| file.module.iter().any(|part| PATTERNS.contains(&part.as_str()));
    let mut found = Vec::new();
    for file in tree.files.iter().filter(|it| !REGISTRIES.contains(&it.path.as_str()) && !own(it)) {
        let mut accessors = Accessors { found: 0 };
        file.items.iter().for_each(|item| accessors.visit_item(item));
        if accessors.found > 0 {
            found.push((file.path.clone(), accessors.found));
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
                Item::Macro(it) => {
                    let names = names_in(&it.mac.tokens);
                    let folder = path.split('/').next().unwrap_or_default();
                    for name in names {
                        found.entry(format!("{folder}/{name}")).or_default().push(path.to_owned());
                    }
                    continue;
                }
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

/// The types that a macro such as `record!` makes: what follows `struct` and `enum` at its top.
fn names_in(tokens: &TokenStream) -> Vec<String> {
    let words: Vec<String> = tokens.clone().into_iter().map(|token| token.to_string()).collect();
    let makes = words.windows(2).filter(|pair| pair[0] == "struct" || pair[0] == "enum");
    makes.map(|pair| pair[1].clone()).collect()
}

/// The public items that can be reached from the root of the library: types, functions, constants and
/// methods, those of re-exported types and traits too; without items that are hidden from the
/// documentation.
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

/// Files with at most this many lines.
pub fn files_up_to(tree: &Tree, lines: usize) -> Vec<String> {
    tree.files.iter().filter(|it| it.lines <= lines).map(|it| it.path.clone()).collect()
}
