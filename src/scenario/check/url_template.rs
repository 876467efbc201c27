//! Checks the URLs of tools, in which `{name}` stands for an argument.

use crate::base::private_host::has_private_host;
use crate::scenario::file::reader::{ReadContext, suggest_name};
use crate::scenario::file::shape::NonBlankString;

/// Checks that the URL names its host itself, and that each `{name}` is an argument.
pub(crate) fn url(
    url: &NonBlankString,
    args: Option<&[&str]>,
    of: &str,
    cx: &mut ReadContext,
) -> Option<()> {
    let text = url.text.as_str();
    let Some(host) = ["http://", "https://"].iter().find_map(|start| text.strip_prefix(start))
    else {
        let what = format!("{text:?} is not a URL");
        cx.error(url.at, what, "begin it with http:// or https://");
        return None;
    };
    let host_at = text.len() - host.len();
    let path_at = host.find(['/', '?', '#']).map_or(text.len(), |at| host_at + at);
    if path_at == host_at {
        cx.error(url.at, format!("{text:?} has no host"), "such as https://vendor.example/v1");
        return None;
    }
    let mut good = true;
    let mut rest = 0;
    while let Some(found) = text[rest..].find('{') {
        let open = rest + found;
        let Some(length) = text[open..].find('}') else {
            let at = cx.inner_span(url.at, open, open + 1);
            cx.error(at, "`{` is not closed", "`{name}` is replaced by the argument of that name");
            return None;
        };
        let close = open + length;
        let name = &text[open + 1..close];
        let at = cx.inner_span(url.at, open, close + 1);
        if open < path_at {
            let help = "a model chooses the arguments: use them in the path or after it";
            cx.error(at, "an argument cannot choose the host", help);
            good = false;
        } else if let Some(args) = args.filter(|args| !args.contains(&name)) {
            let help = suggest_name(name, args.iter().copied());
            cx.error(at, format!("`{{{name}}}` is not an argument of this {of}"), help);
            good = false;
        }
        rest = close + 1;
    }
    good.then_some(())
}

/// Warns of a URL whose requests are refused, because its host is private.
pub(crate) fn warn_of_private_host(
    url: &NonBlankString,
    allow_private: bool,
    cx: &mut ReadContext,
) {
    if !allow_private && has_private_host(&url.text) {
        let what = "requests to this host are refused: it is this machine, or on a private network";
        cx.warn(url.at, what, "write allow_private = true below it, if you mean this host");
    }
}
