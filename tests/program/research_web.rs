//! Research over the web with the real binary: what pages and searches say steers no terminal.

use roundtable::bench::is_hostile;
use serde_json::json;

use crate::support::binary::{Home, end};
use crate::support::site::{Does, HTML, Site, answer, redirect};
use crate::support::web_research::{File, with_search};

/// What a terminal would do something at: colours, titles, clipboards, and text that runs backwards.
const STEERS: &str = "\u{1b}[31m\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\u{200b}\u{7f}\u{e0041}";

#[tokio::test(flavor = "multi_thread")]
async fn page_and_search_text_is_escaped() {
    let steering = |status: &str, headers: &[&str], body: String| {
        Does::Says(answer(status, headers, body.replace("{steers}", STEERS)))
    };
    let evil = "http://evil.example/\u{202e}x";
    let site = Site::start(move |path, head, _| {
        let lower = head.to_ascii_lowercase();
        let host = lower.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
        match path.split('?').next() {
            Some("/search") => {
                let urls = [
                    format!("http://{host}/gone{STEERS}"),
                    evil.to_owned(),
                    format!("http://{host}/gone/\u{202e}/x"),
                    format!("http://{host}/away"),
                    format!("http://{host}/broken"),
                    format!("http://{host}/picture"),
                    format!("http://{host}/good"),
                ];
                let rows = urls.iter().map(|url| json!({ "url": url, "title": STEERS, "content": STEERS }));
                let body = json!({ "results": rows.collect::<Vec<_>>() }).to_string();
                Does::Says(answer("200 OK", &["content-type: application/json"], body))
            }
            Some("/good") => steering(
                "200 OK",
                &[HTML],
                "<title>SLA {steers}</title><p>{steers}</p><p>The enterprise uptime {steers}SLA is 99.95% each month.</p>".to_owned(),
            ),
            Some("/away") => redirect("http://evil.example/%1b[31m/\t%e2%80%ae"),
            Some("/picture") => {
                steering("200 OK", &["content-type: image/\u{9b}31m"], "{steers}".to_owned())
            }
            Some("/broken") => Does::Says(b"HTTP/1.1 500 \x1b[31mOh\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec()),
            _ => steering("404 Not Found", &[HTML], "{steers}".to_owned()),
        }
    })
    .await;
    let file = with_search(File::of(&[&site]), &site, "");
    let home = Home::new();
    home.write("web.toml", &file.text());
    for format in ["json", "jsonl", "text"] {
        let mut command = home.command(&["run", "web.toml", "--trust", "--format", format]);
        let ended = tokio::task::spawn_blocking(move || end(&mut command)).await.expect("it ends");
        assert_eq!(ended.code, Some(0), "{format}: {ended:?}");
        for text in [&ended.out, &ended.err] {
            let steers = text.chars().find(|&c| is_hostile(c) && c != '\n');
            assert_eq!(steers, None, "{format}: {text:?}");
        }
        if format == "json" {
            let told = ended.json();
            assert_eq!(told["stop_reason"], "success", "{told}");
            assert_eq!(told["skipped_sources"].as_array().map(Vec::len), Some(3), "{told}");
        }
    }
}
