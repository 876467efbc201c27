//! The beginning and the end of a page: what the run was, and how it ended.

use std::fmt::Write as _;

use super::html;
use super::story::{class, name, note};
use crate::base::day::Day;
use crate::event::kind::RunStarted;
use crate::event::result_text::value_text;
use crate::event::world::SpanKind;
use crate::event::{SpanId, World};
use crate::narrate::event_line::{model_text, took_ms};
use crate::narrate::patterns::words;
use crate::narrate::verdict::{reason_id, stop_lead};
use crate::narrate::{badges, closing, format};

/// Parts that the table of contents names.
const MAX_CONTENTS: usize = 100;

const STYLE: &str = include_str!("style.css");

/// The head of the page, up to its story. `world` is that of the whole log.
pub(super) fn beginning(world: &World) -> String {
    let head = world.head.as_deref();
    let title = html::line(head.map_or("A run", |head| &head.title));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n"
    );
    if let Some(head) = head {
        let (scenario, pattern) = (html::line(head.scenario.as_str()), head.plan.name());
        let _ = writeln!(out, "<p class=\"sub\">{scenario}, {pattern}</p>");
        let _ = writeln!(out, "<pre class=\"said\">{}</pre>", html::lines(&head.goal));
        out.push_str(&facts(head, world));
    }
    out.push_str("</header>\n");
    out.push_str(&contents(world));
    out.push_str("<main>\n");
    out
}

fn facts(head: &RunStarted, world: &World) -> String {
    let mut out = String::from("<dl>\n");
    let mut row = |name: &str, text: &str, class: &str| {
        let text = html::line(text);
        let _ = writeln!(out, "<dt>{name}</dt><dd class=\"{class}\">{text}</dd>");
    };
    match &world.progress.closed {
        Some(closed) => {
            let badge = badges::ended(closed.reason.class());
            row("Ended", &stop_lead(world, closed), class(badge.role));
            if let Some(id) = reason_id(closed) {
                row("Stop reason", &id, "dim");
            }
            row("Took", &took_ms(closed.elapsed_ms), "");
        }
        None => row("Ended", "not in this log", "warn"),
    }
    let seconds = head.wall_ms / 1_000 % 86_400;
    let day = Day::from_unix_ms(head.wall_ms);
    row("Started", &format!("{day} {:02}:{:02} UTC", seconds / 3_600, seconds / 60 % 60), "");
    row("Run", head.run.as_str(), "");
    row("Model", &model_text(&head.model), "");
    row("Calls", &format::exact(world.tally.calls), "");
    if world.tally.usage.total() > 0 {
        row("Tokens", &format::tokens(world.tally.usage), "");
    }
    if let Some(cost) = world.cost_usd() {
        row("Cost", &format!("≈ {}", format::usd(cost)), "");
    }
    if !world.settings.flags.is_empty() {
        let word = |on: bool| if on { "on" } else { "off" };
        let flags = world.settings.flags.iter().map(|flag| match &flag.changed {
            Some((_, at, _)) => {
                let (now, before) = (word(flag.on), word(!flag.on));
                format!("{} {now} from {}, {before} before", flag.name, at.as_str())
            }
            None => format!("{} {}", flag.name, word(flag.on)),
        });
        row("Flags", &flags.collect::<Vec<_>>().join(", "), "");
    }
    if head.redacted {
        row("Texts", "redacted: lengths and digests only", "warn");
    }
    out.push_str("</dl>\n");
    out
}

/// Whether a span has a part of its own below the run.
fn has_part(kind: &SpanKind) -> bool {
    !matches!(kind, SpanKind::Run | SpanKind::Attempt(_))
}

fn contents(world: &World) -> String {
    let mut out = String::from("<nav><ul>\n");
    let mut parts = world.spans.children(SpanId::RUN).filter(|span| has_part(&span.kind));
    for span in parts.by_ref().take(MAX_CONTENTS) {
        let name = html::line(&name(&span.kind, world));
        let _ = writeln!(out, "<li><a href=\"#s{}\">{name}</a></li>", span.id.0);
    }
    let more = parts.count();
    if more > 0 {
        let _ = writeln!(out, "<li>and {} more</li>", format::exact(more as u64));
    }
    out.push_str(
        "<li><a href=\"#outcome\">Outcome</a></li>\n<li><a href=\"#setup\">Setup</a></li>\n",
    );
    out.push_str("</ul></nav>\n");
    out
}

/// The end of the page: the outcome and the setup.
pub(super) fn end(world: &World) -> String {
    let mut out = String::from("<section id=\"outcome\">\n<h2>Outcome</h2>\n");
    if let Some(words) = words(world) {
        out.push_str(&note(&words.result(world)));
    }
    if let Some(answer) = &world.progress.answer {
        let _ = writeln!(out, "<pre class=\"answer\">{}</pre>", html::lines(answer));
    }
    if let Some(outcome) = world.outcome() {
        let rest = closing::after_answer(&outcome, world);
        if !rest.trim().is_empty() {
            let _ = writeln!(out, "<pre class=\"table\">{}</pre>", html::lines(rest.trim()));
        }
    }
    out.push_str("</section>\n<section id=\"setup\">\n<h2>Setup</h2>\n");
    if let Some(head) = world.head.as_deref() {
        out.push_str(&setup(head));
    }
    out.push_str("</section>\n</main>\n</body>\n</html>\n");
    out
}

fn setup(head: &RunStarted) -> String {
    let mut out = String::from("<dl>\n");
    for (name, value) in &head.inputs {
        let (name, value) = (html::line(name), html::lines(&value_text(value)));
        let _ = writeln!(out, "<dt>{name}</dt><dd>{value}</dd>");
    }
    for flag in &head.flags {
        let (name, label) = (html::line(flag.name.as_str()), html::line(&flag.label));
        let _ = writeln!(out, "<dt>{name}</dt><dd>{label}</dd>");
    }
    let _ = writeln!(out, "<dt>seed</dt><dd>{}</dd>\n</dl>", head.seed);
    if let Some(launch) = &head.launch {
        for set in &launch.source.set {
            let _ = writeln!(out, "<p class=\"note\">{}</p>", html::line(set));
        }
        let text = html::lines(&launch.source.text);
        let _ =
            writeln!(out, "<details><summary>Scenario</summary>\n<pre>{text}</pre>\n</details>");
        for (path, text) in &launch.source.prompt_files {
            let (path, text) = (html::line(path), html::lines(text));
            let _ =
                writeln!(out, "<details><summary>{path}</summary>\n<pre>{text}</pre>\n</details>");
        }
    }
    out
}
