//! HTML tree built by [`html5ever`] and stored in one list, so that building, walking and dropping
//! it do not recurse. Comments and the contents of templates are not stored.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::{Attribute, ExpandedName, LocalName, QualName, local_name, ns};

use crate::tool::text::Unreadable;

/// Index of a node in the list.
pub(crate) type NodeId = usize;

/// Most elements and texts of a page: some markup creates thousands from a few bytes.
const MAX_NODES: usize = 500_000;

/// Bytes parsed between two checks.
const PIECE: usize = 1 << 10;

/// Kind of a node.
#[derive(Debug)]
pub(crate) enum NodeKind {
    /// The document, contents of templates, and nodes that are not stored.
    Other,
    /// An element of HTML, SVG or MathML.
    Element {
        name: Rc<QualName>,
        attributes: Vec<(LocalName, StrTendril)>,
    },
    Text(StrTendril),
}

/// A node with its links.
#[derive(Debug)]
pub(crate) struct HtmlNode {
    pub(crate) kind: NodeKind,
    pub(crate) parent: Option<NodeId>,
    pub(crate) first: Option<NodeId>,
    last: Option<NodeId>,
    before: Option<NodeId>,
    /// Next sibling.
    pub(crate) next: Option<NodeId>,
}

/// The tree; its root is the first node of the list.
#[derive(Debug)]
pub(crate) struct HtmlTree(Vec<HtmlNode>);

impl HtmlTree {
    /// Parses a page.
    pub(crate) fn parse(text: &str, wanted: &dyn Fn() -> bool) -> Result<Self, Unreadable> {
        let broken = |why: &str| Err(Unreadable::Broken(why.to_owned()));
        let mut parser =
            html5ever::parse_document(HtmlTreeBuilder::new(), html5ever::ParseOpts::default());
        let mut rest = text;
        while !rest.is_empty() {
            let end = (PIECE..rest.len()).find(|&at| rest.is_char_boundary(at));
            let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
            parser.process(StrTendril::from_slice(piece));
            if parser.tokenizer.sink.sink.nodes.borrow().0.len() > MAX_NODES {
                return broken("the page has more than 500,000 elements");
            }
            if !wanted() {
                return broken("the call was cancelled");
            }
            rest = after;
        }
        Ok(parser.finish())
    }

    /// Index of the root, which is the document.
    pub(super) const ROOT: NodeId = 0;

    pub(crate) fn node(&self, id: NodeId) -> Option<&HtmlNode> {
        self.0.get(id)
    }

    /// All descendants of a node, in document order.
    pub(super) fn descendants(&self, top: NodeId) -> impl Iterator<Item = NodeId> {
        let mut at = self.node(top).and_then(|node| node.first);
        std::iter::from_fn(move || {
            let here = at?;
            at = self.node(here).and_then(|node| node.first).or_else(|| self.next_after(here, top));
            Some(here)
        })
    }

    /// The node after all descendants of this one, within `top`.
    fn next_after(&self, id: NodeId, top: NodeId) -> Option<NodeId> {
        let mut at = id;
        while at != top {
            let node = self.node(at)?;
            if node.next.is_some() {
                return node.next;
            }
            at = node.parent?;
        }
        None
    }

    /// All text below a node.
    pub(crate) fn text_of(&self, top: NodeId) -> String {
        let texts = self.descendants(top).filter_map(|id| match &self.node(id)?.kind {
            NodeKind::Text(text) => Some(&**text),
            _ => None,
        });
        texts.collect()
    }
}

impl HtmlNode {
    /// Local name of an HTML element.
    pub(super) fn html_name(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::Element { name, .. } if name.ns == ns!(html) => Some(&name.local),
            _ => None,
        }
    }

    /// Value of a stored attribute.
    pub(super) fn attribute(&self, wanted: &str) -> Option<&str> {
        let NodeKind::Element { attributes, .. } = &self.kind else { return None };
        attributes.iter().find(|(name, _)| &**name == wanted).map(|(_, value)| &**value)
    }
}

/// Handle for the parser: index and name of a node.
#[derive(Debug, Clone)]
struct NodeHandle {
    id: NodeId,
    name: Rc<QualName>,
}

/// A tree under construction.
struct HtmlTreeBuilder {
    nodes: RefCell<HtmlNodes>,
    nameless: Rc<QualName>,
}

struct HtmlNodes(Vec<HtmlNode>);

impl HtmlTreeBuilder {
    /// Starts with the document node, and a detached node for what is not stored.
    fn new() -> Self {
        let nameless = Rc::new(QualName::new(None, ns!(), local_name!("")));
        let growing = Self { nodes: RefCell::new(HtmlNodes(Vec::new())), nameless };
        growing.other();
        growing.other();
        growing
    }

    fn other(&self) -> NodeHandle {
        let id = self.nodes.borrow_mut().add(NodeKind::Other);
        NodeHandle { id, name: Rc::clone(&self.nameless) }
    }

    fn at(&self, id: NodeId) -> NodeHandle {
        NodeHandle { id, name: Rc::clone(&self.nameless) }
    }
}

/// Index of the detached node, which receives the contents of templates.
const DETACHED: NodeId = 1;

impl HtmlNodes {
    fn add(&mut self, kind: NodeKind) -> NodeId {
        let (parent, first, last, before, next) = (None, None, None, None, None);
        self.0.push(HtmlNode { kind, parent, first, last, before, next });
        self.0.len() - 1
    }

    fn set(&mut self, id: Option<NodeId>, change: impl FnOnce(&mut HtmlNode)) {
        if let Some(node) = id.and_then(|id| self.0.get_mut(id)) {
            change(node);
        }
    }

    fn detach(&mut self, id: NodeId) {
        let Some(node) = self.0.get_mut(id) else { return };
        let parent = node.parent.take();
        let (before, next) = (node.before.take(), node.next.take());
        self.set(before, |node| node.next = next);
        self.set(next, |node| node.before = before);
        self.set(parent, |parent| {
            if parent.first == Some(id) {
                parent.first = next;
            }
            if parent.last == Some(id) {
                parent.last = before;
            }
        });
    }

    /// Moves a node into a parent, before the sibling `next` or at the end.
    fn attach(&mut self, id: NodeId, parent: NodeId, next: Option<NodeId>) {
        self.detach(id);
        let Some(into) = self.0.get(parent) else { return };
        let before = match next {
            Some(next) => self.0.get(next).and_then(|node| node.before),
            None => into.last,
        };
        self.set(Some(id), |node| {
            (node.parent, node.before, node.next) = (Some(parent), before, next);
        });
        self.set(before, |node| node.next = Some(id));
        self.set(next, |node| node.before = Some(id));
        self.set(Some(parent), |node| {
            if before.is_none() {
                node.first = Some(id);
            }
            if next.is_none() {
                node.last = Some(id);
            }
        });
    }

    /// Inserts a node or text; adjacent texts are merged.
    fn insert(&mut self, what: NodeOrText<NodeHandle>, parent: NodeId, next: Option<NodeId>) {
        let text = match what {
            NodeOrText::AppendNode(node) => return self.attach(node.id, parent, next),
            NodeOrText::AppendText(text) => text,
        };
        let beside = next.map_or_else(
            || self.0.get(parent).and_then(|node| node.last),
            |next| self.0.get(next).and_then(|node| node.before),
        );
        if let Some(NodeKind::Text(before)) =
            beside.and_then(|id| self.0.get_mut(id)).map(|node| &mut node.kind)
        {
            return before.push_tendril(&text);
        }
        let id = self.add(NodeKind::Text(text));
        self.attach(id, parent, next);
    }
}

/// Whether an attribute affects visibility, title or date.
fn is_used_attribute(name: &str) -> bool {
    matches!(
        name,
        "hidden"
            | "aria-hidden"
            | "style"
            | "open"
            | "name"
            | "property"
            | "itemprop"
            | "content"
            | "datetime"
            | "type"
    )
}

fn used_attributes(attributes: Vec<Attribute>) -> impl Iterator<Item = (LocalName, StrTendril)> {
    let kept = attributes.into_iter().filter(|attribute| is_used_attribute(&attribute.name.local));
    kept.map(|attribute| (attribute.name.local, attribute.value))
}

impl TreeSink for HtmlTreeBuilder {
    type Handle = NodeHandle;
    type Output = HtmlTree;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> HtmlTree {
        HtmlTree(self.nodes.into_inner().0)
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> NodeHandle {
        self.at(HtmlTree::ROOT)
    }

    fn elem_name<'a>(&'a self, target: &'a NodeHandle) -> ExpandedName<'a> {
        target.name.expanded()
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, _: ElementFlags) -> NodeHandle {
        let name = Rc::new(name);
        let attributes = used_attributes(attrs).collect();
        let kind = NodeKind::Element { name: Rc::clone(&name), attributes };
        NodeHandle { id: self.nodes.borrow_mut().add(kind), name }
    }

    fn create_comment(&self, _: StrTendril) -> NodeHandle {
        self.other()
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> NodeHandle {
        self.other()
    }

    fn append(&self, parent: &NodeHandle, child: NodeOrText<NodeHandle>) {
        self.nodes.borrow_mut().insert(child, parent.id, None);
    }

    fn append_based_on_parent_node(
        &self,
        element: &NodeHandle,
        before: &NodeHandle,
        child: NodeOrText<NodeHandle>,
    ) {
        let stands = self.nodes.borrow().0.get(element.id).is_some_and(|n| n.parent.is_some());
        if stands {
            self.append_before_sibling(element, child);
        } else {
            self.append(before, child);
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    fn get_template_contents(&self, _: &NodeHandle) -> NodeHandle {
        self.at(DETACHED)
    }

    fn same_node(&self, x: &NodeHandle, y: &NodeHandle) -> bool {
        x.id == y.id
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &NodeHandle, new: NodeOrText<NodeHandle>) {
        let mut nodes = self.nodes.borrow_mut();
        if let Some(parent) = nodes.0.get(sibling.id).and_then(|node| node.parent) {
            nodes.insert(new, parent, Some(sibling.id));
        }
    }

    fn add_attrs_if_missing(&self, target: &NodeHandle, attrs: Vec<Attribute>) {
        self.nodes.borrow_mut().set(Some(target.id), |node| {
            let NodeKind::Element { attributes, .. } = &mut node.kind else { return };
            for (name, value) in used_attributes(attrs) {
                if attributes.iter().all(|(there, _)| *there != name) {
                    attributes.push((name, value));
                }
            }
        });
    }

    fn remove_from_parent(&self, target: &NodeHandle) {
        self.nodes.borrow_mut().detach(target.id);
    }

    fn reparent_children(&self, node: &NodeHandle, new_parent: &NodeHandle) {
        let mut nodes = self.nodes.borrow_mut();
        while let Some(child) = nodes.0.get(node.id).and_then(|node| node.first) {
            nodes.attach(child, new_parent.id, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_markup_bombs() {
        let formats: String = (0..600).map(|n| format!("<b id={n}>")).collect();
        let bomb = format!("<p>{formats}</p>{}", "<p>x".repeat(20_000));
        assert!(matches!(HtmlTree::parse(&bomb, &|| true), Err(Unreadable::Broken(_))));
    }

    #[test]
    fn parsing_stops_when_nobody_waits() {
        let page = "<p>x".repeat(1_000);
        assert!(HtmlTree::parse(&page, &|| true).is_ok());
        assert!(HtmlTree::parse(&page, &|| false).is_err());
    }
}
