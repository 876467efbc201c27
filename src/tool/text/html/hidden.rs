//! Whether the `style` attribute of an element hides it from readers of the page.
//!
//! Recognised, each in the declaration that wins (the last valid one, `!important` ones before all
//! others): `display: none`; invisible or (nearly) transparent elements; letters too small to see;
//! boxes without size that clip their content; elements clipped or scaled to nothing, or moved off
//! the screen. Not recognised: what only a style sheet or script hides, letters in the colour of
//! their background, elements covered by others, and computed lengths (`calc()`, `var()`).
//!
//! Parses a `style` attribute and finds the declaration that wins.

use std::iter::Peekable;
use std::str::Chars;

/// An element moved this far is off the screen.
const FAR_PX: f32 = -999.0;
/// Letters and boxes below this size are not visible.
const TINY_PX: f32 = 2.0;
/// Elements with less opacity are not visible.
const FAINT: f32 = 0.05;

/// Values that every property accepts; none of them hides anything by itself.
const GLOBAL: [&str; 5] = ["inherit", "initial", "unset", "revert", "revert-layer"];
/// Values of `display` other than `none`.
const DISPLAYS: [&str; 32] = [
    "block",
    "inline",
    "inline-block",
    "flex",
    "inline-flex",
    "grid",
    "inline-grid",
    "table",
    "inline-table",
    "list-item",
    "contents",
    "flow",
    "flow-root",
    "run-in",
    "math",
    "ruby",
    "ruby-base",
    "ruby-text",
    "ruby-base-container",
    "ruby-text-container",
    "table-row-group",
    "table-header-group",
    "table-footer-group",
    "table-row",
    "table-cell",
    "table-column-group",
    "table-column",
    "table-caption",
    "-webkit-box",
    "-webkit-inline-box",
    "-webkit-flex",
    "-webkit-inline-flex",
];
/// Keyword values of `font-size`.
const SIZES: [&str; 11] = [
    "xx-small",
    "x-small",
    "small",
    "medium",
    "large",
    "x-large",
    "xx-large",
    "xxx-large",
    "smaller",
    "larger",
    "math",
];
/// Keyword values of lengths.
const NO_LENGTH: [&str; 6] =
    ["auto", "none", "normal", "min-content", "max-content", "fit-content"];

/// Whether an element with this `style` is hidden.
pub(crate) fn hides(style: &str) -> bool {
    let style = StyleAttribute::parse(style);
    let says = |names: &[&str], hides: &dyn Fn(&str) -> Option<bool>| {
        style.winning(names, |_, value| hides(value)).unwrap_or_default()
    };
    let far = |names: &[&str]| says(names, &|value| length_matches(value, |px| px <= FAR_PX));
    let tiny = |names: &[&str]| says(names, &|value| length_matches(value, |px| px < TINY_PX));
    let cuts = |names: &[&str]| {
        says(names, &|value| {
            keyword_hides(value, &["hidden", "clip"], &["visible", "scroll", "auto"])
        })
    };
    let moved = || {
        let showing = ["static"];
        says(&["position"], &|value| {
            keyword_hides(value, &["absolute", "fixed", "relative", "sticky"], &showing)
        })
    };
    says(&["display"], &|value| keyword_hides(value, &["none"], &DISPLAYS))
        || says(&["visibility"], &|value| {
            keyword_hides(value, &["hidden", "collapse"], &["visible"])
        })
        || says(&["content-visibility"], &|value| {
            keyword_hides(value, &["hidden"], &["visible", "auto"])
        })
        || says(&["opacity"], &opacity_hides)
        || style.winning(&["font-size", "font"], font_hides).unwrap_or_default()
        || far(&["text-indent"])
        || far(&["margin-left"])
        || far(&["margin-top"])
        || (moved() && (far(&["left"]) || far(&["top"])))
        || ((tiny(&["width"]) || tiny(&["max-width"])) && cuts(&["overflow", "overflow-x"]))
        || ((tiny(&["height"]) || tiny(&["max-height"])) && cuts(&["overflow", "overflow-y"]))
        || says(&["clip"], &clip_hides)
        || says(&["clip-path", "-webkit-clip-path"], &clip_path_hides)
        || says(&["transform", "-webkit-transform"], &transform_hides)
        || says(&["scale"], &|value| {
            keyword_hides(value, &[], &["none"]).or_else(|| scales_to_zero(value))
        })
}

/// For a list of keywords, whether one of them hides. `None`: an invalid value, which browsers
/// ignore.
fn keyword_hides(value: &str, hiding: &[&str], showing: &[&str]) -> Option<bool> {
    let mut hidden = None;
    for word in value.split_whitespace() {
        let hides = hiding.contains(&word);
        if !hides && !showing.contains(&word) && !GLOBAL.contains(&word) {
            return None;
        }
        hidden = Some(hides || hidden.unwrap_or_default());
    }
    hidden
}

/// Whether the predicate holds for a length in pixels; `false` for one that is not fixed. `None`:
/// not a length.
fn length_matches(value: &str, is_so: impl Fn(f32) -> bool) -> Option<bool> {
    let first = value.split_whitespace().next()?;
    if let Some(hidden) = keyword_hides(first, &[], &NO_LENGTH) {
        return Some(hidden);
    }
    let (number, unit) = parse_number(first)?;
    // The size that the percentage refers to is not known here.
    let px =
        if unit == "%" && number != 0.0 { None } else { Some(number * pixels_per_unit(unit)?) };
    Some(px.is_some_and(is_so))
}

/// Approximate size of a unit in pixels.
fn pixels_per_unit(unit: &str) -> Option<f32> {
    Some(match unit {
        // Without a unit: pixels, as in quirks mode.
        "px" | "" => 1.0,
        "pt" => 4.0 / 3.0,
        "pc" | "em" | "rem" | "ic" | "ric" | "cap" | "rcap" => 16.0,
        "lh" | "rlh" => 20.0,
        "ex" | "rex" | "ch" | "rch" => 8.0,
        "in" => 96.0,
        "cm" => 37.8,
        "mm" => 3.78,
        "q" => 0.945,
        "%" => 0.16,
        _ if unit.ends_with("vw") || unit.ends_with("vh") => 10.0,
        _ if unit.ends_with("vmin") || unit.ends_with("vmax") => 10.0,
        _ => return None,
    })
}

/// A number and its unit.
fn parse_number(text: &str) -> Option<(f32, &str)> {
    let part = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-' | 'e');
    let longest = text.find(|c| !part(c)).unwrap_or(text.len()).min(40);
    (1..=longest).rev().find_map(|at| {
        let (number, unit) = text.split_at_checked(at)?;
        let finite: f32 = number.parse().ok().filter(|it: &f32| it.is_finite())?;
        Some((finite, unit))
    })
}

fn opacity_hides(value: &str) -> Option<bool> {
    keyword_hides(value, &[], &[]).or_else(|| match parse_number(value)? {
        (part, "") => Some(part < FAINT),
        (percent, "%") => Some(percent < 100.0 * FAINT),
        _ => None,
    })
}

/// Whether `font-size`, or the size in `font`, is too small to see.
fn font_hides(name: &str, value: &str) -> Option<bool> {
    let small = |size: &str| {
        let (number, unit) = parse_number(size).filter(|(number, _)| *number >= 0.0)?;
        Some(number * pixels_per_unit(unit)? < TINY_PX)
    };
    let is_word = |word: &str| keyword_hides(word, &[], &SIZES).is_some();
    if name == "font-size" {
        return if is_word(value) { Some(false) } else { small(value) };
    }
    // In `font`, a number without a unit is a weight, unless it is 0.
    value.split_whitespace().find_map(|part| {
        let size = part.split('/').next().unwrap_or_default();
        let is_size =
            parse_number(size).is_some_and(|(number, unit)| !unit.is_empty() || number == 0.0);
        if is_word(size) { Some(false) } else { is_size.then(|| small(size)).flatten() }
    })
}

/// The arguments of `name(…)` in a value.
fn arguments<'v>(value: &'v str, name: &str) -> Option<Vec<&'v str>> {
    let inside = value.match_indices(name).find_map(|(at, _)| {
        let (before, after) = (value.get(..at)?, value.get(at + name.len()..)?);
        let begins = before.chars().next_back().is_none_or(|c| c.is_whitespace() || c == ')');
        begins.then_some(after)?.strip_prefix('(')
    })?;
    let inside = inside.split(')').next()?;
    let parts = inside.split([',', ' ', '\t', '\n']).map(str::trim);
    Some(parts.filter(|it| !it.is_empty()).collect())
}

/// Whether `rect(top, right, bottom, left)` leaves no visible area.
fn clip_hides(value: &str) -> Option<bool> {
    let Some(sides) = arguments(value, "rect") else { return keyword_hides(value, &[], &["auto"]) };
    let side = |at: usize| {
        parse_number(sides.get(at)?).and_then(|(n, unit)| Some(n * pixels_per_unit(unit)?))
    };
    let nothing = |low: Option<f32>, high: Option<f32>| Some(high? - low.unwrap_or(0.0) < TINY_PX);
    let (high, wide) = (nothing(side(0), side(2)), nothing(side(3), side(1)));
    Some(high.unwrap_or_default() || wide.unwrap_or_default())
}

/// Whether `inset(…)` leaves no visible area, or a circle has no radius.
fn clip_path_hides(value: &str) -> Option<bool> {
    if let Some(sides) = arguments(value, "inset") {
        let sides: Vec<f32> = sides
            .iter()
            .map_while(|side| parse_number(side).map(|(n, unit)| if unit == "%" { n } else { 0.0 }))
            .collect();
        let (top, right, bottom, left) = match *sides.as_slice() {
            [all] => (all, all, all, all),
            [high, wide] => (high, wide, high, wide),
            [top, wide, bottom] => (top, wide, bottom, wide),
            [top, right, bottom, left, ..] => (top, right, bottom, left),
            [] => return None,
        };
        return Some(top + bottom >= 100.0 || left + right >= 100.0);
    }
    let round = ["circle", "ellipse"].iter().find_map(|name| arguments(value, name));
    match round {
        Some(sides) => {
            Some(sides.first().and_then(|it| parse_number(it)).is_some_and(|it| it.0 == 0.0))
        }
        // Other shapes count as visible.
        None => {
            keyword_hides(value, &[], &["none"]).or_else(|| value.contains('(').then_some(false))
        }
    }
}

fn transform_hides(value: &str) -> Option<bool> {
    let to_nothing = ["scale", "scalex", "scaley", "scale3d"]
        .iter()
        .filter_map(|name| arguments(value, name))
        .any(|by| scales_to_zero(&by.join(" ")) == Some(true));
    let away = ["translate", "translatex", "translatey", "translate3d"]
        .iter()
        .filter_map(|name| arguments(value, name))
        .any(|by| by.iter().any(|by| length_matches(by, |px| px <= FAR_PX) == Some(true)));
    if to_nothing || away {
        return Some(true);
    }
    keyword_hides(value, &[], &["none"]).or_else(|| value.contains('(').then_some(false))
}

/// Whether one of the first two factors is 0.
fn scales_to_zero(value: &str) -> Option<bool> {
    let factors: Option<Vec<f32>> =
        value.split_whitespace().map(|it| parse_number(it).map(|(by, _)| by)).collect();
    factors.filter(|it| !it.is_empty()).map(|it| it.iter().take(2).any(|by| by.abs() < 0.01))
}

/// Declarations in their order.
pub(crate) struct StyleAttribute(Vec<Declaration>);

struct Declaration {
    name: String,
    value: String,
    important: bool,
}

impl StyleAttribute {
    /// Parses a style like a browser: comments separate tokens, escapes are resolved, and brackets
    /// and quotes protect their content.
    pub(crate) fn parse(text: &str) -> Self {
        let (mut declarations, mut bare) = (Vec::new(), String::new());
        let (mut colon, mut depth, mut quote) = (None, 0_u32, None);
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            match (quote, c) {
                (_, '\\') => bare.push(read_escape(&mut rest)),
                (Some(open), c) if c == open || c == '\n' => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => {
                    quote = Some(c);
                    bare.push(c);
                }
                (None, '/') if rest.peek() == Some(&'*') => {
                    rest.next();
                    let mut before = ' ';
                    // The star of `/*` must not count as the one of `*/`.
                    for c in rest.by_ref() {
                        if (before, c) == ('*', '/') {
                            break;
                        }
                        before = c;
                    }
                    bare.push(' ');
                }
                (None, ';') if depth == 0 => {
                    declarations.extend(Declaration::parse(&bare, colon));
                    bare.clear();
                    colon = None;
                }
                (None, _) => {
                    match c {
                        '(' | '[' | '{' => depth += 1,
                        ')' | ']' | '}' => depth = depth.saturating_sub(1),
                        ':' if depth == 0 => colon = colon.or(Some(bare.len())),
                        _ => {}
                    }
                    bare.push(c.to_ascii_lowercase());
                }
            }
        }
        declarations.extend(Declaration::parse(&bare, colon));
        Self(declarations)
    }

    /// Value of the winning declaration of these properties. Declarations for which `read` returns
    /// `None` are ignored.
    fn winning<T>(&self, names: &[&str], read: impl Fn(&str, &str) -> Option<T>) -> Option<T> {
        let of_it = self.0.iter().filter(|it| names.contains(&it.name.as_str()));
        of_it
            .filter_map(|it| Some((it.important, read(&it.name, &it.value)?)))
            .max_by_key(|(important, _)| *important)
            .map(|(_, read)| read)
    }
}

impl Declaration {
    /// Parses a declaration with its colon at this position.
    fn parse(bare: &str, colon: Option<usize>) -> Option<Self> {
        let (name, value) = (bare.get(..colon?)?, bare.get(colon? + 1..)?);
        let (value, important) = match value.rsplit_once('!') {
            Some((value, mark)) => (value, Some(mark.trim())),
            None => (value, None),
        };
        let important = match important {
            None => false,
            Some("important") => true,
            Some(_) => return None,
        };
        Some(Self { name: name.trim().to_owned(), value: value.trim().to_owned(), important })
    }
}

/// Character of an escape after its `\`: up to six hex digits and a blank, or any other character,
/// which stands for itself. Characters with a syntactic meaning are replaced.
fn read_escape(rest: &mut Peekable<Chars<'_>>) -> char {
    let (mut code, mut digits) = (0, 0);
    while digits < 6
        && let Some(digit) = rest.peek().and_then(|c| c.to_digit(16))
    {
        (code, digits) = (code * 16 + digit, digits + 1);
        rest.next();
    }
    let c = if digits == 0 {
        rest.next()
    } else {
        rest.next_if(|c| c.is_ascii_whitespace());
        char::from_u32(code)
    };
    let plain = c.filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '%' | '.'));
    plain.map_or('\u{fffd}', |c| c.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_that_hide() {
        for style in [
            "display:none",
            "color:red; DISPLAY : none !important",
            "display:/* x; */none",
            "d\\69splay:none",
            "d\\000069 splay:n\\6Fne",
            "d\\isplay:none",
            "display:none;display:bogus",
            "display:none;display:var(--x)",
            "display:none!important;display:block",
            "background:url(a;b:c);display:none",
            "content:\";\";display:none",
            "visibility:hidden",
            "visibility:collapse",
            "content-visibility:hidden",
            "opacity:0",
            "opacity:0.0",
            "opacity:.04",
            "opacity:1e-3",
            "opacity:3%",
            "font-size:0",
            "font-size:0px",
            "font-size:1px",
            "font-size:1.9PX",
            "font-size:.1em",
            "font-size:5%",
            "font:0/0 a",
            "font:0 x",
            "font:bold 1px/1 Arial",
            "text-indent:-999px",
            "text-indent:-9999em",
            "text-indent: -99999px hanging",
            "width:0;height:0;overflow:hidden",
            "overflow:hidden;max-height:0",
            "height:1px;overflow-y:clip",
            "clip-path:inset(100%)",
            "clip-path: inset(50% 0)",
            "-webkit-clip-path:circle(0)",
            "clip:rect(0 0 0 0)",
            "clip: rect(1px, 1px, 1px, 1px);",
            "clip:rect(0,0,0,0);position:absolute",
            "transform:scale(0)",
            "transform:rotate(3deg) scale( 0, 1 )",
            "transform:scaleY(0)",
            "transform:scaleX(1) scale(0)",
            "transform:translateX(-9999px)",
            "scale:0",
            "position:absolute;left:-999px",
            "position:fixed;top:-5000px",
            "left:-100vw;position:absolute!important;position:static",
            "margin-left:-9999px",
        ] {
            assert!(hides(style), "{style}");
        }
    }

    #[test]
    fn styles_that_do_not_hide() {
        for style in [
            "",
            ";;:",
            "display",
            "display:none;display:block",
            "display:none!important;display:block!important",
            "display:none;display:inline flow-root",
            "display:nonesuch",
            "dis/**/play:none",
            "display:none !bogus",
            "content:\"display:none;\"",
            "content:'a;display:none'",
            "/* display:none */",
            "--x:{display:none;}",
            "display\\:none",
            "visibility:hidden;visibility:visible",
            "opacity:.5",
            "opacity:0;opacity:1",
            "font-size:12px",
            "font-size:small",
            "font-size:80%",
            "font:0/0 a;font-size:12px",
            "font:italic 700 12px/1.5 Arial",
            "font:inherit",
            "text-indent:-20px",
            "text-indent:2em",
            "width:0",
            "overflow:hidden",
            "height:0;overflow:visible",
            "width:100%;overflow:hidden",
            "max-width:60ch;height:auto;overflow:hidden",
            "clip:auto",
            "clip:rect(0,100px,100px,0)",
            "clip-path:inset(10%)",
            "clip-path:circle(50%)",
            "transform:none",
            "transform:scale(1.1)",
            "transform:translate(-50%, -50%)",
            "scale:.5",
            "left:-9999px",
            "position:absolute;left:-10px;top:-50%",
            "position:absolute;left:auto",
            "margin-left:-15px",
        ] {
            assert!(!hides(style), "{style}");
        }
    }
}
