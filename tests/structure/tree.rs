//! The sources of the library as a tree of modules: who names whom, and what each file defines.
//! Comments and tests inside a file do not count.

use std::collections::BTreeMap;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::{Attribute, Item};

use super::files::files;

/// A source file.
pub struct File {
    /// Below `src/`, such as `screen/run/mod.rs`.
    pub path: String,
    /// Its module, such as `["screen", "run"]`.
    pub module: Vec<String>,
    /// Its lines, all of them.
    pub lines: usize,
    /// Its items, without those of tests.
    pub items: Vec<Item>,
    /// Its tokens, without those of tests.
    pub tokens: TokenStream,
}

/// All source files.
pub struct Tree {
    /// In the order of their paths.
    pub files: Vec<File>,
    by_module: BTreeMap<Vec<String>, usize>,
    /// What a module re-exports: its name there, and the file that has it.
    reexports: BTreeMap<(usize, String), usize>,
}

impl Tree {
    /// Reads `src/`.
    pub fn read() -> Self {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let paths = files(&src, "rs");
        let files: Vec<File> = paths.iter().map(|path| read(&src, path)).collect();
        let by_module =
            files.iter().enumerate().map(|(at, file)| (file.module.clone(), at)).collect();
        let mut tree = Self { files, by_module, reexports: BTreeMap::new() };
        for at in 0..tree.files.len() {
            for path in tree.paths(at, true) {
                if let Some(to) = tree.resolve(&path).filter(|to| *to != at) {
                    let name = path.last().expect("a name").clone();
                    tree.reexports.insert((at, name), to);
                }
            }
        }
        tree
    }

    /// The files that a file names in its code: once each, without itself. For a name that a module re-exports
    /// from another one it is both.
    pub fn named_by(&self, at: usize) -> Vec<usize> {
        let paths = self.paths(at, false);
        let written = paths.iter().filter_map(|path| self.deepest(path));
        let written = written.map(|deepest| self.by_module[deepest]);
        let resolved = paths.iter().filter_map(|path| self.resolve(path));
        let mut named: Vec<usize> = written.chain(resolved).filter(|to| *to != at).collect();
        named.sort_unstable();
        named.dedup();
        named
    }

    /// The paths in a file, each from the root of the crate: those that it re-exports, or the others.
    fn paths(&self, at: usize, reexports: bool) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        collect(&self.files[at].tokens, &self.files[at].module, &mut found);
        found.retain(|(public, _)| *public == reexports);
        found.into_iter().map(|(_, path)| path).collect()
    }

    /// The deepest module in a path. The root does not count: a path that leads nowhere else is of another crate.
    fn deepest<'p>(&self, path: &'p [String]) -> Option<&'p [String]> {
        let ends = (1..=path.len()).rev();
        ends.map(|end| &path[..end]).find(|part| self.by_module.contains_key(*part))
    }

    /// The file that a path leads to: the deepest module in it, or the one that a re-export names.
    fn resolve(&self, path: &[String]) -> Option<usize> {
        let deepest = self.deepest(path)?;
        let mut at = self.by_module[deepest];
        if let Some(name) = path.get(deepest.len()) {
            // A re-export may name another one.
            for _ in 0..4 {
                match self.reexports.get(&(at, name.clone())) {
                    Some(to) if *to != at => at = *to,
                    _ => break,
                }
            }
        }
        Some(at)
    }
}

fn read(src: &Path, path: &Path) -> File {
    let inside = path.strip_prefix(src).expect("below src").to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).expect("a source");
    let mut module: Vec<String> =
        inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        module.pop();
    }
    if inside == "main.rs" {
        module.push("main".to_owned());
    }
    let ast = syn::parse_file(&text).unwrap_or_else(|error| panic!("{inside}: {error}"));
    let items = ast.items.into_iter().filter(|item| !is_test(attributes(item))).collect();
    let tokens = without_tests(text.parse().expect("tokens"));
    File { path: inside, module, lines: text.lines().count(), items, tokens }
}

/// The attributes of an item.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Macro(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

/// Whether an item is compiled for tests alone.
pub fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|it| {
        it.path().is_ident("cfg")
            && it.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

/// The tokens without the items under `#[cfg(test)]`.
fn without_tests(tokens: TokenStream) -> TokenStream {
    let all: Vec<TokenTree> = tokens.into_iter().collect();
    let mut kept = Vec::new();
    let mut at = 0;
    while at < all.len() {
        let is_test = matches!(&all[at], TokenTree::Punct(it) if it.as_char() == '#')
            && matches!(all.get(at + 1), Some(TokenTree::Group(group))
                if group.delimiter() == Delimiter::Bracket
                    && group.stream().to_string().replace(' ', "") == "cfg(test)");
        if is_test {
            // Up to the end of the item: a block, or a semicolon.
            at += 2;
            while at < all.len() {
                let ends = match &all[at] {
                    TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                    TokenTree::Punct(punct) => punct.as_char() == ';',
                    _ => false,
                };
                at += 1;
                if ends {
                    break;
                }
            }
        } else {
            kept.push(all[at].clone());
            at += 1;
        }
    }
    kept.into_iter().collect()
}

/// Collects every path that begins with `crate`, `self` or `super`, or that an import begins with a
/// module beside it; with each, whether it is re-exported.
fn collect(tokens: &TokenStream, module: &[String], found: &mut Vec<(bool, Vec<String>)>) {
    let all: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut at = 0;
    while at < all.len() {
        match &all[at] {
            TokenTree::Ident(word) if word == "use" => {
                let public = is_public(&all[..at]);
                let end = (at..all.len())
                    .find(|it| matches!(&all[*it], TokenTree::Punct(p) if p.as_char() == ';'))
                    .unwrap_or(all.len());
                import(&all[at + 1..end], module, Vec::new(), public, found);
                at = end;
            }
            TokenTree::Ident(word) if word == "mod" => {
                // A module in braces: what it names is relative to it.
                if let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(group))) =
                    (all.get(at + 1), all.get(at + 2))
                {
                    let mut inner = module.to_vec();
                    inner.push(name.to_string());
                    collect(&group.stream(), &inner, found);
                    at += 2;
                }
            }
            TokenTree::Ident(word) if word == "crate" || word == "super" || word == "self" => {
                let (path, next) = path_at(&all, at);
                if path.len() > 1 {
                    found.push((false, absolute(&path, module)));
                }
                at = next.saturating_sub(1).max(at);
            }
            TokenTree::Ident(_) => {
                // A path that begins with a module of this file.
                let (path, next) = path_at(&all, at);
                if path.len() > 1 {
                    let mut whole = module.to_vec();
                    whole.extend(path);
                    found.push((false, whole));
                }
                at = next.saturating_sub(1).max(at);
            }
            TokenTree::Group(group) => collect(&group.stream(), module, found),
            _ => {}
        }
        at += 1;
    }
}

/// Whether the tokens end with `pub` or `pub(…)`.
fn is_public(before: &[TokenTree]) -> bool {
    match before {
        [.., TokenTree::Ident(word)] => word == "pub",
        [.., TokenTree::Ident(word), TokenTree::Group(_)] => word == "pub",
        _ => false,
    }
}

/// The words of a path that begins here, and where it ends.
fn path_at(all: &[TokenTree], mut at: usize) -> (Vec<String>, usize) {
    let mut path = Vec::new();
    while let Some(TokenTree::Ident(word)) = all.get(at) {
        path.push(word.to_string());
        at += 1;
        let colon =
            |it: Option<&TokenTree>| matches!(it, Some(TokenTree::Punct(p)) if p.as_char() == ':');
        if !(colon(all.get(at)) && colon(all.get(at + 1))) {
            break;
        }
        at += 2;
    }
    (path, at)
}

/// A path from the root of the crate.
fn absolute(path: &[String], module: &[String]) -> Vec<String> {
    let mut base = module.to_vec();
    let mut rest = path;
    while let Some((first, after)) = rest.split_first() {
        match first.as_str() {
            "crate" => base.clear(),
            "self" => {}
            "super" => {
                base.pop();
            }
            _ => break,
        }
        rest = after;
    }
    base.extend(rest.iter().cloned());
    base
}

/// The paths of an import.
fn import(
    tokens: &[TokenTree],
    module: &[String],
    before: Vec<String>,
    public: bool,
    found: &mut Vec<(bool, Vec<String>)>,
) {
    let mut path = before.clone();
    let mut renamed = false;
    let mut finish = |path: &mut Vec<String>| {
        if path.len() > before.len() {
            found.push((public, absolute(path, module)));
        }
        *path = before.clone();
    };
    let mut deeper = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Ident(word) if word == "as" => renamed = true,
            TokenTree::Ident(_) if renamed => renamed = false,
            TokenTree::Ident(word) => path.push(word.to_string()),
            TokenTree::Group(group) => {
                deeper.push((group.stream(), path.clone()));
                path = before.clone();
            }
            TokenTree::Punct(punct) if punct.as_char() == ',' => finish(&mut path),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    finish(&mut path);
    for (stream, path) in deeper {
        let inner: Vec<TokenTree> = stream.into_iter().collect();
        import(&inner, module, path, public, found);
    }
}
