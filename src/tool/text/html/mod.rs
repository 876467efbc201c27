//! Extracts the visible text of an HTML page.
//!
//! Left out: scripts, styles, templates, `noscript`, comments, form controls, inline graphics, and
//! what is hidden by `hidden`, `aria-hidden="true"`, or `display: none` or `visibility: hidden` in the
//! element's `style`. Other ways to hide text are not evaluated, so a page can still contain text that
//! readers do not see.

mod tree;

use std::collections::VecDeque;

use serde_json::Value;

use self::tree::{HtmlNode, HtmlTree, NodeId, NodeKind};
use super::flow::{Flow, one_line};
use super::{ExtractedDocument, Unreadable};
use crate::base::time;

/// Most characters of a title.
const TITLE_CHARS: usize = 300;

/// Reads a page.
pub(crate) fn read(text: &str, wanted: &dyn Fn() -> bool) -> Result<ExtractedDocument, Unreadable> {
    let tree = HtmlTree::parse(text, wanted)?;
    let (text, headings) = visible_text(&tree);
    Ok(ExtractedDocument {
        title: title(&tree, headings.title),
        published_at: published_at(&tree, headings.time).unwrap_or_default(),
        text,
    })
}

/// Visible elements that describe the whole page.
#[derive(Default)]
struct Headings {
    title: Option<NodeId>,
    time: Option<NodeId>,
}

/// The visible text, and the first heading and time in it.
fn visible_text(tree: &HtmlTree) -> (String, Headings) {
    let (mut flow, mut headings) = (Flow::default(), Headings::default());
    // Number of open elements that preserve lines.
    let mut lines = 0_u32;
    let mut at = HtmlTree::ROOT;
    'walk: while let Some(node) = tree.node(at) {
        let mut inside = None;
        match &node.kind {
            NodeKind::Text(text) if lines > 0 => flow.push_lines(text),
            NodeKind::Text(text) => flow.push_folded(text),
            NodeKind::Other => inside = node.first,
            NodeKind::Element { .. } if is_invisible(node) => {}
            NodeKind::Element { .. } => {
                match node.html_name() {
                    Some("h1") => headings.title = headings.title.or(Some(at)),
                    Some("time") if node.attribute("datetime").is_some() => {
                        headings.time = headings.time.or(Some(at));
                    }
                    _ => {}
                }
                add_separator(node, &mut flow);
                lines += u32::from(keeps_lines(node));
                inside = node.first;
                if inside.is_none() {
                    close_element(node, &mut flow, &mut lines);
                }
            }
        }
        if let Some(first) = inside {
            at = first;
            continue;
        }
        let mut done = node;
        loop {
            if let Some(next) = done.next {
                at = next;
                continue 'walk;
            }
            match done.parent.and_then(|parent| tree.node(parent)) {
                Some(parent) => done = parent,
                None => break 'walk,
            }
            close_element(done, &mut flow, &mut lines);
        }
    }
    (flow.finish(), headings)
}

fn close_element(node: &HtmlNode, flow: &mut Flow, lines: &mut u32) {
    add_separator(node, flow);
    *lines = lines.saturating_sub(u32::from(keeps_lines(node)));
}

fn keeps_lines(node: &HtmlNode) -> bool {
    matches!(node.html_name(), Some("pre" | "listing" | "plaintext" | "xmp"))
}

/// Adds the separator before an element, and again after it.
fn add_separator(node: &HtmlNode, flow: &mut Flow) {
    match node.html_name() {
        Some("br") => flow.end_line(),
        Some("td" | "th") => flow.end_word(),
        Some(
            "address" | "article" | "aside" | "blockquote" | "body" | "caption" | "center" | "dd"
            | "details" | "dialog" | "dir" | "div" | "dl" | "dt" | "fieldset" | "figcaption"
            | "figure" | "footer" | "form" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "header"
            | "hgroup" | "hr" | "legend" | "li" | "listing" | "main" | "menu" | "nav" | "ol" | "p"
            | "plaintext" | "pre" | "search" | "section" | "summary" | "table" | "tbody" | "tfoot"
            | "thead" | "tr" | "ul" | "xmp",
        ) => flow.end_paragraph(),
        _ => {}
    }
}

/// Whether an element is not visible, or has no text of the page.
fn is_invisible(node: &HtmlNode) -> bool {
    let never = match (node.html_name(), &node.kind) {
        (Some(name), _) => match name {
            "head" | "title" | "script" | "style" | "template" | "noscript" | "noframes"
            | "noembed" | "iframe" | "object" | "audio" | "video" | "canvas" | "select"
            | "datalist" | "textarea" | "rp" => true,
            // A dialog is visible only if it is open.
            "dialog" => node.attribute("open").is_none(),
            _ => false,
        },
        (None, NodeKind::Element { name, .. }) => &*name.local == "svg" || is_script(&name.local),
        (None, _) => false,
    };
    never
        || node.attribute("hidden").is_some()
        || node.attribute("aria-hidden").is_some_and(|v| v.trim().eq_ignore_ascii_case("true"))
        || node.attribute("style").is_some_and(style_hides)
}

/// Whether a `style` attribute says `display: none` or `visibility: hidden`: of several values of a
/// property the last one counts.
fn style_hides(style: &str) -> bool {
    let (mut no_display, mut invisible) = (false, false);
    for (name, value) in style.split(';').filter_map(|part| part.split_once(':')) {
        let value = value.split('!').next().unwrap_or_default().trim();
        match name.trim() {
            name if name.eq_ignore_ascii_case("display") => {
                no_display = value.eq_ignore_ascii_case("none");
            }
            name if name.eq_ignore_ascii_case("visibility") => {
                invisible = value.eq_ignore_ascii_case("hidden");
            }
            _ => {}
        }
    }
    no_display || invisible
}

/// Whether this is a script or style inside SVG or MathML.
fn is_script(name: &str) -> bool {
    matches!(name, "script" | "style")
}

/// `<title>`, else `og:title`, else the first heading.
fn title(tree: &HtmlTree, heading: Option<NodeId>) -> String {
    let line = |id| Some(one_line(&tree.text_of(id), TITLE_CHARS)).filter(|t| !t.is_empty());
    let named = |wanted: &str| {
        let mut elements = tree.descendants(HtmlTree::ROOT);
        elements.find(|&id| tree.node(id).and_then(HtmlNode::html_name) == Some(wanted))
    };
    named("title")
        .and_then(line)
        .or_else(|| {
            let title = meta(tree, &["og:title"]).next()?;
            Some(one_line(title, TITLE_CHARS)).filter(|title| !title.is_empty())
        })
        .or_else(|| line(heading?))
        .unwrap_or_default()
}

/// Contents of the page's `<meta>` elements with these names.
fn meta<'t>(tree: &'t HtmlTree, names: &'t [&str]) -> impl Iterator<Item = &'t str> {
    tree.descendants(HtmlTree::ROOT).filter_map(|id| tree.node(id)).filter_map(|node| {
        let says = ["property", "name", "itemprop"].iter().filter_map(|by| node.attribute(by));
        let is_it = |name: &str| names.iter().any(|one| name.trim().eq_ignore_ascii_case(one));
        let is_meta = node.html_name() == Some("meta") && says.into_iter().any(is_it);
        is_meta.then(|| node.attribute("content")).flatten()
    })
}

/// Publication date of the page: the first valid one.
fn published_at(tree: &HtmlTree, time: Option<NodeId>) -> Option<String> {
    let said = |names| meta(tree, names).find_map(time::date_from_iso);
    said(&["article:published_time", "datePublished"])
        .or_else(|| linked_data(tree))
        .or_else(|| said(&["date", "dc.date", "dcterms.date", "dcterms.created"]))
        .or_else(|| tree.node(time?)?.attribute("datetime").and_then(time::date_from_iso))
}

/// `datePublished` of the page's JSON-LD, the least nested one.
fn linked_data(tree: &HtmlTree) -> Option<String> {
    let scripts = tree.descendants(HtmlTree::ROOT).filter(|&id| {
        let node = tree.node(id);
        let of_type = node.and_then(|node| node.attribute("type")).unwrap_or_default();
        node.and_then(HtmlNode::html_name) == Some("script")
            && of_type.trim().eq_ignore_ascii_case("application/ld+json")
    });
    scripts.filter_map(|id| serde_json::from_str(&tree.text_of(id)).ok()).find_map(|data: Value| {
        let mut found = VecDeque::from([&data]);
        while let Some(value) = found.pop_front() {
            match value {
                Value::Array(items) => found.extend(items),
                Value::Object(fields) => {
                    let date = fields.get("datePublished").and_then(Value::as_str);
                    if let Some(day) = date.and_then(time::date_from_iso) {
                        return Some(day);
                    }
                    found.extend(fields.values());
                }
                _ => {}
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;
    use crate::base::visible::is_hostile;

    fn read(html: &str) -> Result<ExtractedDocument, Unreadable> {
        super::read(html, &|| true)
    }

    fn text(html: &str) -> String {
        read(html).expect("a page").text
    }

    #[test]
    fn sentences_stay_whole_and_paragraphs_apart() {
        for (html, expected) in [
            ("<p>One <b>b</b>old\n  <a href=x>link</a>.</p><p>Two</p>", "One bold link.\n\nTwo"),
            ("<p>A<p>B<div>C<div>D</div>E</div>F", "A\n\nB\n\nC\n\nD\n\nE\n\nF"),
            ("a<br>b<br/><br>c", "a\nb\nc"),
            ("<ul><li>a<li>b</ul>", "a\n\nb"),
            ("<table><tr><td>a</td><td>b</td></tr><tr><th>c<th>d</table>", "a b\n\nc d"),
            ("<pre>x  y\n  z\n</pre>w", "x  y\n  z\n\nw"),
            ("a&nbsp;&amp;&nbsp;b&shy;c", "a & bc"),
            ("<b>x</b><i>y</i> <span>z</span>", "xy z"),
            ("no markup", "no markup"),
            ("", ""),
        ] {
            assert_eq!(text(html), expected, "{html}");
        }
    }

    #[test]
    fn skips_hidden_content() {
        for html in [
            "<script>no</script>",
            "<style>no</style>",
            "<template><p>no</p></template>",
            "<noscript><p>no</p></noscript>",
            "<!-- no -->",
            "<!-- no",
            "<p hidden>no</p>",
            "<p HIDDEN=until-found>no</p>",
            "<div aria-hidden=TRUE><p>no</p></div>",
            "<p style='color:red; DISPLAY : none !important'>no</p>",
            "<p style='visibility:hidden'>no</p>",
            "<p style='display:block;display:none'>no</p>",
            "<svg><title>no</title><text>no</text></svg>",
            "<iframe>no</iframe><object>no</object><video>no</video>",
            "<select><option>no</select><textarea>no</textarea>",
            "<dialog>no</dialog>",
            "<b hidden><p>no</b>",
            "<p><b hidden>no</p><p>no</b>",
            "<img alt=no title=no>",
            "<input value=no>",
            "<title>no</title>",
        ] {
            let page = format!("<p>Seen.</p>{html}");
            assert_eq!(text(&page), "Seen.", "{html}");
        }
        assert_eq!(text("<body hidden>no"), "");
        assert_eq!(text("<p>a</p><body hidden>b"), "", "a second body adds to the first");
        assert_eq!(text("<div hidden>no</div><p>yes</p><dialog open>it</dialog>"), "yes\n\nit");
        assert_eq!(text("<p style='display:none;display:block;visibility:visible'>yes"), "yes");
        assert_eq!(text("<p aria-hidden=false>yes"), "yes");
    }

    #[test]
    fn titles() {
        for (html, title) in [
            ("<title> A\n b &amp; c </title><h1>H</h1>", "A b & c"),
            ("<svg><title>s</title></svg><h1>H <i>i</i></h1>", "H i"),
            ("<title></title><meta property='og:title' content='O'><h1>H</h1>", "O"),
            ("<h1 hidden>no</h1><h1>H</h1>", "H"),
            ("<p>x", ""),
        ] {
            assert_eq!(read(html).expect("a page").title, title, "{html}");
        }
    }

    #[test]
    fn days() {
        let meta = "<meta name=date content=2026-01-02>";
        let time = "<time datetime='2026-01-03T10:00'>then</time>";
        let data = |json: &str| format!("<script type='application/ld+json'>{json}</script>");
        for (html, day) in [
            (
                format!(
                    "{time}{meta}<meta property=article:published_time content=2026-01-01T00:00Z>"
                ),
                "2026-01-01",
            ),
            (format!("{time}{meta}"), "2026-01-02"),
            (time.to_owned(), "2026-01-03"),
            (
                format!(
                    "{time}{}",
                    data(
                        "{\"@graph\":[{\"a\":{\"datePublished\":\"2025-05-05\"}},{\"datePublished\":\"2025-04-04\"}]}"
                    )
                ),
                "2025-04-04",
            ),
            (data("[{\"datePublished\":\"soon\"},{\"datePublished\":7}]") + meta, "2026-01-02"),
            (data("{nope") + time, "2026-01-03"),
            ("<meta name=date content='2 January'><time>2026-01-04</time>".to_owned(), ""),
            ("<p hidden><time datetime=2026-01-03>no</time></p>".to_owned(), ""),
        ] {
            assert_eq!(read(&html).expect("a page").published_at, day, "{html}");
        }
    }

    fn soup() -> impl Strategy<Value = String> {
        let part = prop::sample::select(vec![
            "<p>",
            "</p>",
            "<b hidden>",
            "</b>",
            "<div style='display:none'>",
            "</div>",
            "<table>",
            "<tr>",
            "<td>",
            "</table>",
            "<template>",
            "</template>",
            "<svg>",
            "</svg>",
            "<pre>\n",
            "</pre>",
            "<a href=x>",
            "<select>",
            "<option>",
            "<body hidden>",
            "<title>",
            "</title>",
            "<script>",
            "</script>",
            "<!--",
            "-->",
            "<math><mi>",
            "<form>",
            "<br>",
            "<html lang=x>",
            "&nbsp;",
            "&#0;",
            "&#x202e;",
            "\0",
            "\u{feff}",
            "grün",
            " ",
            "\n\n\n",
            "<",
            "&",
            "<frameset>",
        ]);
        prop::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn any_tag_soup_yields_clean_text(html in soup()) {
            let text = read(&html).expect("small enough").text;
            prop_assert_eq!(text.trim(), &text);
            prop_assert!(!text.contains("\n\n\n"), "{:?}", text);
            prop_assert!(!text.chars().any(|c| c != '\n' && c != '\t' && is_hostile(c)), "{:?}", text);
        }
    }

    /// Neither the parser nor the code that walks or drops the tree may overflow the stack.
    #[test]
    fn deep_nesting_overflows_no_stack() {
        for tag in ["<div>", "<b>", "<span>", "<table><td>", "<svg>"] {
            let deep = format!("<p>x</p>{}", tag.repeat(100_000));
            let asked = Cell::new(0);
            let _ = super::read(&deep, &|| asked.replace(asked.get() + 1) < 3);
        }
        let honest = format!("{}x{}", "<div>".repeat(400), "</div>".repeat(400));
        assert_eq!(text(&honest.repeat(20)), ["x"; 20].join("\n\n"));
        assert_eq!(text(&"<br>".repeat(50_000)), "");
        assert_eq!(text(&"<p>x".repeat(50_000)).len(), 50_000 * 3 - 2);
    }
}
