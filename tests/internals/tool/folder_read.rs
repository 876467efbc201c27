//! Reading documents of a folder by any address.

use std::fs;

use crate::scenario::tools::documents::FolderSpec;
use crate::support::folder::{BASE, Shelf, ask, page};
use crate::tool::folder::FolderRead;
use serde_json::{Value, json};

fn code(answer: &Value) -> (&str, &str) {
    (answer["status"].as_str().expect("a status"), answer["error"].as_str().unwrap_or("none"))
}

#[tokio::test]
async fn reads_document_with_title_and_date() {
    let shelf = Shelf::new();
    shelf
        .write("a/b.md", "---\ntitle: A b\ndate: 2026-01-15\n---\nOne\ntwo.\n\nThree.", 0)
        .write("plain.txt", "No title here, and no day.\nNone.", 86_400)
        .write("p.html", "<title>Page</title><p>Text &amp; more</p><script>no()</script>", 0);
    let read = shelf.read();
    assert_eq!(
        page(&read, &format!("{BASE}a/b.md")).await,
        json!({ "status": "ok", "data": {
            "url": format!("{BASE}a/b.md"),
            "title": "A b",
            "published_at": "2026-01-15",
            "body": "One two.\n\nThree.",
            "content_type": "text/markdown",
        }})
    );
    assert_eq!(
        page(&read, &format!("{BASE}plain.txt#part")).await["data"],
        json!({
            "url": format!("{BASE}plain.txt"),
            "title": "plain",
            "published_at": "2026-03-08",
            "body": "No title here, and no day.\nNone.",
            "content_type": "text/plain",
            "dated_by": "modified",
        })
    );
    let html = page(&read, "HTTPS://NOTES.LOCAL/%70.html").await;
    assert_eq!(
        (&html["data"]["title"], &html["data"]["body"]),
        (&json!("Page"), &json!("Text & more"))
    );
}

/// A folder beside one that must not be read.
fn beside_a_secret() -> Shelf {
    let shelf = Shelf::new();
    shelf.write("a.md", "Text.", 0).write("sub/b.md", "More.", 0);
    fs::write(shelf.root().with_file_name("secret.md"), "The secret.").expect("written");
    shelf
}

#[tokio::test]
async fn addresses_never_leave_folder() {
    let shelf = beside_a_secret();
    let read = shelf.read();
    let root = shelf.root().display().to_string();
    for path in [
        "../secret.md",
        "..%2Fsecret.md",
        "%2e%2e/secret.md",
        "%2E%2E%2Fsecret.md",
        "sub/../../secret.md",
        "sub/%2e%2e/%2e%2e/secret.md",
        "..\\secret.md",
        "%2e%2e%5csecret.md",
        "....//secret.md",
        "/secret.md",
        "//secret.md",
        "a.md/../../secret.md",
        "a.md%00.txt",
        "a.md%00",
        "%00",
        "a.md/",
        "./",
        "",
        "sub",
        "sub/",
        "a.md?x=1",
        "a.MD",
        "A.md",
        "%252e%252e/secret.md",
        "..;/secret.md",
        "secret.md",
    ] {
        let answer = page(&read, &format!("{BASE}{path}")).await;
        let (status, error) = code(&answer);
        assert_eq!(status, "error", "{path}: {answer}");
        assert!(matches!(error, "not_found" | "invalid_url"), "{path}: {error}");
        assert!(!answer.to_string().contains("The secret"), "{path}");
    }
    for url in [
        format!("file://{root}/a.md"),
        format!("{root}/a.md"),
        "../a.md".to_owned(),
        "a.md".to_owned(),
        format!("https://notes.local{root}/a.md"),
        "https://other.local/a.md".to_owned(),
        String::new(),
        "https://notes.local:8443/a.md".to_owned(),
        "http://notes.local/a.md".to_owned(),
        "https://me@notes.local/a.md".to_owned(),
        "javascript:alert(1)".to_owned(),
        "\u{0}".to_owned(),
        format!("https://notes.local/{}", "a/".repeat(20_000)),
    ] {
        let answer = page(&read, &url).await;
        assert_eq!(code(&answer).0, "error", "{answer}");
        let text = answer["text"].as_str().expect("a text");
        assert!(text.chars().count() < 200 && !text.chars().any(char::is_control), "{text}");
    }
    // Addresses that a browser would take for the same document are.
    for path in ["a.md", "%61.md", "sub/../a.md", "sub/%2e%2e/a.md", "./a.md"] {
        assert_eq!(code(&page(&read, &format!("{BASE}{path}")).await), ("ok", "none"), "{path}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn symlinks_never_leave_folder() {
    use crate::support::pipe::make_pipe;
    use std::os::unix::fs::symlink;
    let shelf = beside_a_secret();
    let secret = shelf.root().with_file_name("secret.md");
    symlink(&secret, shelf.path("link.md")).expect("linked");
    symlink(shelf.root().parent().expect("a parent"), shelf.path("up")).expect("linked");
    symlink("sub/b.md", shelf.path("within.md")).expect("linked");
    let read = shelf.read();
    for path in ["link.md", "up/secret.md", "up/notes/a.md"] {
        assert_eq!(
            code(&page(&read, &format!("{BASE}{path}")).await),
            ("error", "not_found"),
            "{path}"
        );
    }
    let within = page(&read, &format!("{BASE}within.md")).await;
    assert_eq!(within["data"]["body"], "More.");
    // It was a document when it was found; it is a link, a pipe, too large, or gone now.
    let known = ["a.md", "sub/b.md"];
    for path in known {
        assert_eq!(code(&page(&read, &format!("{BASE}{path}")).await).0, "ok");
    }
    fs::remove_file(shelf.path("a.md")).expect("removed");
    symlink(&secret, shelf.path("a.md")).expect("linked");
    fs::rename(shelf.path("sub"), shelf.path("was")).expect("moved");
    symlink(shelf.root().parent().expect("a parent"), shelf.path("sub")).expect("linked");
    fs::write(shelf.root().with_file_name("b.md"), "Another secret.").expect("written");
    for path in known {
        let answer = page(&read, &format!("{BASE}{path}")).await;
        assert_eq!(code(&answer), ("error", "not_found"), "{path}: {answer}");
    }
    fs::remove_file(shelf.path("a.md")).expect("removed");
    make_pipe(&shelf.path("a.md"));
    assert_eq!(code(&page(&read, &format!("{BASE}a.md")).await), ("error", "not_found"));
    fs::remove_file(shelf.path("a.md")).expect("removed");
    shelf.write("a.md", vec![b'x'; (8 << 20) + 1], 0);
    assert_eq!(code(&page(&read, &format!("{BASE}a.md")).await), ("error", "unreadable"));
}

#[tokio::test]
async fn reads_only_indexed_files() {
    let shelf = Shelf::new();
    shelf
        .write(".env", "KEY=hunter2hunter2", 0)
        .write(".ssh/id.md", "hunter2hunter2", 0)
        .write("key.pem", "hunter2hunter2", 0)
        .write("noextension", "hunter2hunter2", 0);
    let read = shelf.read();
    for path in [".env", ".ssh/id.md", "key.pem", "noextension"] {
        let answer = page(&read, &format!("{BASE}{path}")).await;
        assert_eq!(code(&answer), ("error", "not_found"), "{path}");
        assert!(!answer.to_string().contains("hunter2"));
    }
}

#[tokio::test]
async fn missing_document_answer_gives_reason() {
    let shelf = Shelf::new();
    shelf
        .write("binary.md", b"a\0b", 0)
        .write("empty.md", "\n\n", 0)
        .write("broken.pdf", "%PDF-1.7\nnothing", 0)
        .write("garbage.txt", (1..=255).cycle().take(5_000).collect::<Vec<u8>>(), 0);
    let read = shelf.read();
    for (path, error) in [
        ("binary.md", "content_type"),
        ("empty.md", "empty_page"),
        ("broken.pdf", "unreadable"),
        ("garbage.txt", "charset"),
        ("nowhere.md", "not_found"),
    ] {
        let answer = page(&read, &format!("{BASE}{path}")).await;
        assert_eq!(code(&answer), ("error", error), "{path}");
        assert!(answer["text"].as_str().is_some_and(|text| text.contains(path)), "{answer}");
    }
    let failed = ask(&read, json!({})).await.expect_err("no address");
    assert_eq!(failed.text, "the argument `url` is missing or not a string");
}

#[tokio::test]
async fn corpus_document_dates_itself() {
    let read = FolderRead::new(FolderSpec { folder: None, base_url: None }, None);
    let answer =
        page(&read, "https://official-status.example.com/incidents/payments-2026-03-07").await;
    let data = &answer["data"];
    assert_eq!(
        (&data["title"], &data["published_at"]),
        (&json!("Payments Incident Update"), &json!("2026-03-07"))
    );
    assert!(data["body"].as_str().expect("a text").contains("Failed payment rate is 3.4%."));
    assert_eq!(data.get("dated_by"), None);
}
