//! Pages that cannot be read beside one that can: each is dropped with its reason, the run ends well
//! with the other, and no site was asked more often than the trace says.

use std::sync::Arc;

use crate::log::event::{Command, EventKind, FailureClass};
use crate::log::facts::PatternFact;
use crate::log::facts::research::ResearchFact;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::file::Told;
use crate::support::research::{engine, until};
use crate::support::site::{Does, HTML, Site, answer, nobody, packed, page, redirect};
use crate::support::web_research::{File, GOOD};

/// A page in trouble beside a good one, on one site; by a file that may be changed.
async fn beside(
    does: impl Fn(&str, usize) -> Does + Send + Sync + 'static,
    change: impl FnOnce(&mut File),
) -> (Told, Site) {
    let site = Site::start(move |path, _, before| match path {
        "/good" => page(GOOD),
        path => does(path, before),
    })
    .await;
    let mut file = File::of(&[&site]).finding([site.url("/bad"), site.url("/good")]);
    change(&mut file);
    (file.play().await, site)
}

fn says(status: &'static str, headers: &'static [&'static str], body: &'static str) -> Does {
    Does::Says(answer(status, headers, body))
}

/// What a site does with a path that was asked for so many times before.
type Deed = fn(&str, usize) -> Does;

/// A name, the site's reply, the reported reason, and the requested paths.
type Case = (&'static str, Deed, &'static str, &'static [&'static str]);

/// Pages that are asked for once: nothing is the better for asking again.
const DEAD: &[Case] = &[
    ("not found", |_, _| says("404 Not Found", &[HTML], "<p>No."), "not_found", &["/bad"]),
    ("gone", |_, _| says("410 Gone", &[HTML], ""), "not_found", &["/bad"]),
    ("forbidden", |_, _| says("403 Forbidden", &[HTML], ""), "http_403", &["/bad"]),
    (
        "a redirect to nowhere",
        |_, _| says("302 Found", &[HTML], "<p>Where?"),
        "http_302",
        &["/bad"],
    ),
    (
        "unchanged, though nothing is kept of it",
        |_, _| Does::Says(b"HTTP/1.1 304 Not Modified\r\nconnection: close\r\n\r\n".to_vec()),
        "http_304",
        &["/bad"],
    ),
    ("a redirect to itself", |_, _| redirect("/bad"), "redirect_loop", &["/bad"]),
    ("a redirect to a part of itself", |_, _| redirect("#top"), "redirect_loop", &["/bad"]),
    (
        "redirects in a ring",
        |path, _| redirect(if path == "/bad" { "/ring" } else { "/bad" }),
        "redirect_loop",
        &["/bad", "/ring"],
    ),
    (
        "redirects without end",
        |path, _| redirect(&format!("{path}x")),
        "too_many_redirects",
        &["/bad", "/badx", "/badxx", "/badxxx"],
    ),
    (
        "a picture",
        |_, _| says("200 OK", &["content-type: image/png"], "\u{fffd}PNG"),
        "content_type",
        &["/bad"],
    ),
    ("of no kind", |_, _| says("200 OK", &[], "<p>x"), "content_type", &["/bad"]),
    (
        "in a charset that it is not in",
        |_, _| {
            Does::Says(answer("200 OK", &[HTML], (0..=255).cycle().take(999).collect::<Vec<u8>>()))
        },
        "charset",
        &["/bad"],
    ),
    (
        "packed without a word",
        |_, _| Does::Says(answer("200 OK", &[HTML], packed(GOOD.as_bytes()))),
        "charset",
        &["/bad"],
    ),
    (
        "packed in a way that nobody asked for",
        |_, _| says("200 OK", &[HTML, "content-encoding: compress"], "x"),
        "unreadable",
        &["/bad"],
    ),
    (
        "packed twice",
        |_, _| says("200 OK", &[HTML, "content-encoding: gzip, gzip"], "x"),
        "unreadable",
        &["/bad"],
    ),
    (
        "packed, and nothing in it",
        |_, _| says("200 OK", &[HTML, "content-encoding: gzip"], ""),
        "empty_page",
        &["/bad"],
    ),
    (
        "scripts and hidden text alone",
        |_, _| says("200 OK", &[HTML], "<script>x()</script><p hidden>The enterprise uptime SLA."),
        "empty_page",
        &["/bad"],
    ),
    (
        "packed by its own word alone",
        |_, _| says("200 OK", &[HTML, "content-encoding: gzip"], "<p>Not packed at all."),
        "tool_invalid_output:read_source",
        &["/bad"],
    ),
    (
        "packed and cut off",
        |_, _| {
            let packed = packed(GOOD.as_bytes());
            let half = &packed[..packed.len() / 2];
            Does::Says(answer("200 OK", &[HTML, "content-encoding: gzip"], half))
        },
        "tool_invalid_output:read_source",
        &["/bad"],
    ),
    (
        "2 GB, as it says",
        |_, _| {
            Does::Hangs(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2147483648\r\n\r\n",
            )
        },
        "too_large",
        &["/bad"],
    ),
    (
        "endless",
        |_, _| {
            Does::Repeats(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ntransfer-encoding: chunked\r\n\r\n",
                b"1000\r\n".iter().copied().chain([b'x'; 4096]).chain(*b"\r\n").collect(),
            )
        },
        "too_large",
        &["/bad"],
    ),
    (
        "a bomb",
        |_, _| {
            let bomb = packed(&vec![b'x'; 16 << 20]);
            Does::Says(answer("200 OK", &[HTML, "content-encoding: gzip"], bomb))
        },
        "too_large",
        &["/bad"],
    ),
    (
        "no HTTP",
        |_, _| Does::Says(b"nonsense\r\n\r\n".to_vec()),
        "tool_invalid_output:read_source",
        &["/bad"],
    ),
];

#[tokio::test]
async fn unavailable_page_is_requested_once() {
    for (name, does, reason, asked) in DEAD {
        let (told, site) = beside(does, |_| {}).await;
        told.ended_well_with(&site.url("/good"), 2, 0);
        assert_eq!(told.skipped(), [(site.url("/bad"), (*reason).to_owned())], "{name}");
        let text = told.outcome["skipped_sources"][0]["text"].as_str().expect("a text");
        assert!(text.len() > 10, "{name}: {text}");
        assert_eq!(told.retried(), [], "{name}");
        assert_eq!(site.paths(), [asked, &["/good"][..]].concat(), "{name}");
        assert_eq!(site.connections(), asked.len() + 1, "{name}");
    }
}

/// Trouble that may pass is asked for again, as often as the scenario says and no oftener.
#[tokio::test]
async fn lasting_failure_is_reported_after_retries() {
    use FailureClass::{RateLimited, Reset, Status};
    let cases: [(&str, Deed, FailureClass, Option<u16>, &str); 3] = [
        ("500 for good", |_, _| says("500 Oh", &[HTML], "<p>No."), Status, Some(500), "http_500"),
        (
            "429 without a word when to come again",
            |_, _| says("429 Busy", &[HTML], ""),
            RateLimited,
            Some(429),
            "http_429",
        ),
        (
            "cut off in its middle",
            |_, _| {
                Does::Says(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 99\r\n\r\n<p>"
                        .to_vec(),
                )
            },
            Reset,
            None,
            "reset",
        ),
    ];
    for (name, does, class, status, reason) in cases {
        let (told, site) = beside(does, |_| {}).await;
        told.ended_well_with(&site.url("/good"), 2, 0);
        assert_eq!(told.skipped(), [(site.url("/bad"), reason.to_owned())], "{name}");
        assert_eq!(told.retried(), [(class, status)], "{name}");
        assert_eq!(told.failed(), [class; 2], "{name}");
        assert_eq!(site.paths(), ["/bad", "/bad", "/good"], "{name}");
    }
}

#[tokio::test]
async fn passing_failure_costs_one_attempt() {
    let (told, site) = beside(
        |_, before| match before {
            0 => says("500 Oh", &[HTML], ""),
            _ => page("<p>The enterprise uptime SLA for Europe is 99.9% each month.</p>"),
        },
        |_| {},
    )
    .await;
    assert_eq!(told.stop(), "success");
    assert_eq!(told.retried(), [(FailureClass::Status, Some(500))]);
    assert_eq!(told.outcome["aggregate"]["pages_read"], 2);
    assert_eq!(told.outcome["citations"], json!(["n1", "n2"]));
    assert_eq!(told.outcome["skipped_sources"], Value::Null);
    assert_eq!(site.paths(), ["/bad", "/bad", "/good"]);
}

/// What one site asks for is nothing to the others.
#[tokio::test]
async fn rate_limited_site_spares_other_sites() {
    for (status, code) in
        [("429 Too Many Requests", "http_429"), ("503 Service Unavailable", "http_503")]
    {
        let busy = Site::start(move |_, _, _| {
            Does::Says(answer(status, &[HTML, "retry-after: 3600"], ""))
        })
        .await;
        let site = Site::of(&[("/good", GOOD)]).await;
        let file = File::of(&[&busy, &site]).finding([busy.url("/bad"), site.url("/good")]);
        let told = file.play().await;
        told.ended_well_with(&site.url("/good"), 2, 0);
        assert_eq!(told.skipped(), [(busy.url("/bad"), code.to_owned())]);
        assert_eq!(told.failed(), [], "that it asks for an hour is an answer: no second attempt");
        assert_eq!((busy.paths().len(), site.paths().len()), (1, 1));
    }
}

#[tokio::test]
async fn dripping_page_times_out() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 9999\r\n\r\n";
    let (told, site) = beside(
        move |_, _| Does::Drips(head),
        |file| {
            file.tool = "timeout_s = 1\nidempotent = false".to_owned();
        },
    )
    .await;
    told.ended_well_with(&site.url("/good"), 2, 0);
    assert_eq!(told.skipped(), [(site.url("/bad"), "timeout".to_owned())]);
    assert_eq!((told.failed(), told.retried()), (vec![FailureClass::Timeout], vec![]));
    assert_eq!(site.paths(), ["/bad", "/good"]);
}

#[tokio::test]
async fn missing_hosts_are_retried_then_skipped() {
    let site = Site::of(&[("/good", GOOD)]).await;
    let dead = nobody();
    let unknown = "no-such-host.invalid".to_owned();
    for (host, class) in [(&dead.1, FailureClass::Connect), (&unknown, FailureClass::Resolve)] {
        let gone = format!("http://{host}/bad");
        let mut file = File::of(&[&site]).finding([gone.clone(), site.url("/good")]);
        for list in [&mut file.policy, &mut file.execution, &mut file.private] {
            list.push(host.clone());
        }
        let told = file.play().await;
        told.ended_well_with(&site.url("/good"), 2, 0);
        assert_eq!(told.skipped(), [(gone, class.word().to_owned())]);
        assert_eq!(told.retried(), [(class, None)]);
    }
}

#[tokio::test]
async fn dead_hosts_spare_live_host() {
    let site = Site::start(|path, _, _| match path {
        "/good" => page(GOOD),
        _ => says("500 Oh", &[HTML], ""),
    })
    .await;
    let bad: Vec<String> = (0..8).map(|n| site.url(&format!("/bad/{n}"))).collect();
    let found = bad.iter().cloned().chain([site.url("/good")]);
    let told = File::of(&[&site]).finding(found).play().await;
    told.ended_well_with(&site.url("/good"), 9, 0);
    let expected: Vec<_> = bad.into_iter().map(|url| (url, "http_500".to_owned())).collect();
    assert_eq!(told.skipped(), expected);
}

#[tokio::test]
async fn quotes_compressed_and_recoded_pages() {
    let site = Site::start(|path, _, _| {
        let latin = "content-type: text/html; charset=iso-8859-1";
        let text = "<p>The enterprise uptime SLA of Zürich is 99.95% at 5 € each month.</p>";
        Does::Says(match path {
            "/packed" => {
                answer("200 OK", &[HTML, "content-encoding: gzip"], packed(text.as_bytes()))
            }
            "/mislabelled" => answer("200 OK", &[latin], text),
            _ => {
                let bytes = text.replace('ü', "\u{1}").replace('€', "\u{2}").into_bytes();
                let bytes: Vec<u8> = bytes
                    .into_iter()
                    .map(|byte| match byte {
                        1 => 0xfc,
                        2 => 0x80,
                        byte => byte,
                    })
                    .collect();
                answer("200 OK", &[latin], bytes)
            }
        })
    })
    .await;
    let paths = ["/packed", "/mislabelled", "/latin"];
    let told = File::of(&[&site]).finding(paths.map(|path| site.url(path))).play().await;
    assert_eq!(told.stop(), "success");
    let notes = told.outcome["notes"].as_array().expect("notes");
    let quotes: Vec<&str> = notes.iter().filter_map(|note| note["quote"].as_str()).collect();
    let quote = "The enterprise uptime SLA of Zürich is 99.95% at 5 € each month.";
    assert_eq!(quotes, [quote; 3], "{}", told.outcome);
}

#[tokio::test]
async fn pages_are_read_one_after_another() {
    let go = Arc::new(Notify::new());
    let told_to = Arc::clone(&go);
    let site = Site::start(move |path, _, _| match path {
        "/1" => Does::Waits(Arc::clone(&told_to), answer("200 OK", &[HTML], GOOD)),
        _ => page(GOOD),
    })
    .await;
    let file = File::of(&[&site]).finding(["/1", "/2", "/3"].map(|path| site.url(path)));
    let run = engine().start(file.launch());
    until(&run, |kind| {
        matches!(
            kind,
            EventKind::Pattern(PatternFact::Research(ResearchFact::SourceStarted { .. }))
        )
    })
    .await;
    while site.paths().is_empty() {
        tokio::task::yield_now().await;
    }
    for _ in 0..500 {
        tokio::task::yield_now().await;
    }
    assert_eq!(site.paths(), ["/1"], "the next waits for the first");
    go.notify_one();
    let told = Told::of(&run).await;
    assert_eq!(site.paths(), ["/1", "/2", "/3"]);
    let sources = told.facts.iter().filter_map(|fact| match &fact.kind {
        EventKind::Pattern(PatternFact::Research(ResearchFact::SourceStarted { .. })) => Some('('),
        EventKind::Pattern(PatternFact::Research(ResearchFact::SourceClosed(_))) => Some(')'),
        _ => None,
    });
    assert_eq!(sources.collect::<String>(), "()()()");
}

#[tokio::test]
async fn cancel_releases_open_page() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 9999\r\n\r\n<p>The";
    let site = Site::start(move |_, _, _| Does::Hangs(head)).await;
    let file = File::of(&[&site]).finding([site.url("/slow"), site.url("/good")]);
    let run = engine().start(file.launch());
    while site.paths().is_empty() {
        tokio::task::yield_now().await;
    }
    run.send(Command::Cancel);
    let told = Told::of(&run).await;
    site.let_go().await;
    assert_eq!(told.stop(), "cancelled");
    assert_eq!(told.outcome["trace"].as_array().map(Vec::len), Some(3), "what was done stays");
    assert_eq!(told.failed(), [FailureClass::Cancelled]);
    assert_eq!(site.paths(), ["/slow"]);
}
