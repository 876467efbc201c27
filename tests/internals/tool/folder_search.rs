//! Search over a folder: the results and their order, how the index follows the folder, and the files
//! that are left out.

use std::fs;

use crate::engine::Toolbox;
use crate::scenario::tools::documents::FolderSpec;
use crate::scenario::{ScenarioOrigin, load};
use crate::support::folder;
use crate::support::folder::{BASE, Shelf, ask, found, spec, urls};
use crate::tool::folder as folders;
use crate::tool::folder::FolderSearch;
use crate::tool::folder::address::Layout;
use crate::tool::folder::index::CancelFlag;
use crate::tool::folder::source::{DocumentSource, WalkFailed};
use crate::tool::folder::text_index::{IndexFailed, TextIndex};
use serde_json::{Value, json};

fn status() -> Shelf {
    let shelf = Shelf::new();
    shelf
        .write(
            "incident.md",
            "---\ntitle: Payments Incident\npublished_at: 2026-03-07\n---\n# Update\n\nThe gateway \
             is in P1 degraded mode. Failed payment rate is 3.4%. All else is well.",
            0,
        )
        .write("sla.html", "<title>Enterprise SLA</title><p>Uptime is 99.95% a month.</p>", 60)
        .write("menu.txt", "Lunch\n\nOn Friday there is soup with what the garden has.", 120);
    shelf
}

#[tokio::test]
async fn best_match_ranks_first_with_sentence() {
    let shelf = status();
    let search = shelf.search();
    let data = found(&search, "What is the failed payment rate of the incident?").await;
    assert_eq!(
        data["results"][0],
        json!({
            "url": format!("{BASE}incident.md"),
            "title": "Payments Incident",
            "snippet": "Failed payment rate is 3.4%.",
            "score": 1.0,
            "published_at": "2026-03-07",
        })
    );
    assert_eq!(urls(&data), ["incident.md"], "words such as `is` and `the` find nothing");
    assert_eq!((&data["indexed"], &data["refreshed"]), (&json!(3), &json!(3)));
    assert_eq!((&data["left_out"], &data["index"]), (&json!({}), &json!("disk")));
    let data = found(&search, "uptime 99.95").await;
    let first = &data["results"][0];
    assert_eq!((&first["title"], &first["score"]), (&json!("Enterprise SLA"), &json!(1.0)));
    assert_eq!(
        (&first["published_at"], &first["dated_by"]),
        (&json!("2026-03-07"), &json!("modified"))
    );
    let by_name = found(&search, "menu").await;
    assert_eq!(urls(&by_name), ["menu.txt"], "the address counts too");
}

#[tokio::test]
async fn rare_words_weigh_more() {
    let shelf = Shelf::new();
    for number in 0..20 {
        shelf.write(&format!("common-{number:02}.md"), "report report report of the week", 0);
    }
    shelf.write("rare.md", "A zebra crossed the road; no paper on it was written that week.", 0);
    let data = found(&shelf.search(), "report about the zebra").await;
    let urls = urls(&data);
    assert_eq!(urls.first().map(String::as_str), Some("rare.md"));
    assert_eq!(urls.len(), 10, "k bounds them");
    let scores: Vec<f64> = data["results"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|r| r["score"].as_f64())
        .collect();
    assert!(scores.is_sorted_by(|a, b| a >= b) && scores.iter().all(|s| *s > 0.0 && *s <= 1.0));
    assert_eq!(urls[1..4], ["common-00.md", "common-01.md", "common-02.md"], "ties by address");
}

#[tokio::test]
async fn title_outweighs_text() {
    let shelf = Shelf::new();
    shelf
        .write("a.md", "# Other\n\nThe migration of the garden and of the shed is done at last.", 0)
        .write(
            "b.md",
            "# Migration\n\nThe garden and the shed are done at last, as was planned.",
            0,
        );
    assert_eq!(urls(&found(&shelf.search(), "migration").await), ["b.md", "a.md"]);
}

#[tokio::test]
async fn query_is_plain_words() {
    let shelf = status();
    let search = shelf.search();
    for query in [
        "payments AND",
        "\"payments",
        "title:payments",
        "payments:",
        "(payments",
        "payments)",
        "+payments -gateway",
        "payments*",
        "payments~2",
        "payments^9",
        "[payments TO gateway]",
        "NOT payments",
        "payments \\",
        "payments\u{0}",
        "{\"payments\": 1}",
        "/payments/",
        "payments OR",
        "🎉 payments",
        "PAYMENTS",
        "ｐａｙｍｅｎｔｓ",
        "payment's",
    ] {
        let data = found(&search, query).await;
        assert_eq!(urls(&data).first().map(String::as_str), Some("incident.md"), "{query}");
    }
    for query in ["", "   ", "?!", "\u{0}", "🎉", "xyzzy"] {
        assert_eq!(urls(&found(&search, query).await), [""; 0], "{query}");
    }
    // Nothing but stop words: they are all there is to go by.
    assert_eq!(
        urls(&found(&search, "what the has").await).first().map(String::as_str),
        Some("menu.txt")
    );
    let long = "payments ".repeat(1_200);
    assert_eq!(urls(&found(&search, &long).await), ["incident.md"]);
    let many: String = (0..2_000).map(|n| format!("w{n} ")).collect();
    let data = found(&search, &format!("payments {many}")).await;
    assert_eq!(
        (urls(&data), &data["words_left_out"]),
        (vec!["incident.md".to_owned()], &json!(1_489))
    );
    let failed = ask(&search, json!({ "query": 7 })).await.expect_err("no text");
    assert_eq!(failed.text, "the argument `query` is missing or not a string");
}

#[tokio::test]
async fn other_languages_have_words_too() {
    let shelf = Shelf::new();
    shelf
        .write("de.md", "Die Störung der Zahlungen dauert an. ÄRGERLICH ist das.", 0)
        .write("uk.md", "Оплата карткою не працює. Служба шукає причину.", 0)
        .write("zh.md", "支付网关出现故障。预计四十五分钟恢复。", 0)
        .write("fr.md", "L\u{2019}e\u{301}tat du re\u{301}seau est bon.", 0);
    let search = shelf.search();
    for (query, url, snippet) in [
        ("störung", "de.md", "Die Störung der Zahlungen dauert an."),
        ("ärgerlich", "de.md", "ÄRGERLICH ist das."),
        ("ОПЛАТА", "uk.md", "Оплата карткою не працює."),
        ("故障", "zh.md", "支付网关出现故障。"),
        ("état", "fr.md", "L\u{2019}e\u{301}tat du re\u{301}seau est bon."),
    ] {
        let data = found(&search, query).await;
        assert_eq!(urls(&data), [url], "{query}");
        assert_eq!(data["results"][0]["snippet"], snippet);
    }
}

#[tokio::test]
async fn reindexes_only_changed_files() {
    let shelf = status();
    let counts = |data: &Value| {
        ["indexed", "refreshed", "removed"].map(|key| data[key].as_u64().expect("a count"))
    };
    assert_eq!(counts(&found(&shelf.search(), "soup").await), [3, 3, 0]);
    // Another process: it knows only the kept index.
    assert_eq!(counts(&found(&shelf.search(), "soup").await), [3, 0, 0]);
    // The same size, changed later.
    shelf.write("menu.txt", "Lunch\n\nOn Friday there is cake with what the garden has.", 121);
    let search = shelf.search();
    let data = found(&search, "soup cake").await;
    assert_eq!((urls(&data), counts(&data)), (vec!["menu.txt".to_owned()], [3, 1, 0]));
    assert_eq!(urls(&found(&search, "soup").await), [""; 0]);
    // The same time, another size.
    shelf.write("menu.txt", "Lunch\n\nOn Friday there is bread.", 121);
    assert_eq!(counts(&found(&search, "bread").await), [3, 1, 0]);
    // Put back by a tool that keeps dates: older, and changed all the same.
    shelf.write("menu.txt", "Lunch\n\nOn Friday there is chili.", 3);
    let data = found(&search, "chili").await;
    assert_eq!((urls(&data), counts(&data)), (vec!["menu.txt".to_owned()], [3, 1, 0]));
    fs::remove_file(shelf.path("menu.txt")).expect("removed");
    shelf.write("new/more.md", "A harbour by night.", 9);
    let data = found(&search, "chili lunch harbour").await;
    assert_eq!((urls(&data), counts(&data)), (vec!["new/more.md".to_owned()], [3, 1, 1]));
    fs::rename(shelf.path("new"), shelf.path("moved")).expect("moved");
    let data = found(&search, "harbour").await;
    assert_eq!((urls(&data), counts(&data)), (vec!["moved/more.md".to_owned()], [3, 1, 1]));
}

#[tokio::test]
async fn ranking_ignores_document_history() {
    let (slow, at_once) = (Shelf::new(), Shelf::new());
    let words = ["tide", "gate", "lamp", "rope", "mast"];
    let text = |number: usize, turn: usize| {
        let word = |at: usize| words[(number * 7 + at * (turn + 3)) % words.len()];
        (0..=number % 9).map(word).collect::<Vec<_>>().join(" ")
    };
    let search = slow.search();
    for turn in 0..6 {
        for number in (turn..40).step_by(turn + 1) {
            slow.write(&format!("{number}.md"), text(number, turn), turn as u64);
        }
        fs::remove_file(slow.path(&format!("{}.md", 30 + turn))).expect("removed");
        found(&search, "tide").await;
    }
    let mut names: Vec<_> =
        fs::read_dir(slow.root()).expect("a folder").map(|e| e.expect("one").path()).collect();
    names.sort_by_key(|path| std::cmp::Reverse(path.clone()));
    for path in names {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        at_once.write(&name, fs::read(&path).expect("reads"), 5);
    }
    for query in ["tide gate", "lamp", "rope mast tide gate lamp"] {
        let both = [found(&search, query).await, found(&at_once.search_in_memory(), query).await];
        let of = |data: &Value| {
            let results = data["results"].as_array().expect("a list").clone();
            results.into_iter().map(|r| (r["url"].clone(), r["score"].clone())).collect::<Vec<_>>()
        };
        assert_eq!(of(&both[0]), of(&both[1]), "{query}");
    }
}

#[tokio::test]
async fn any_file_name_has_address() {
    let shelf = Shelf::new();
    let names = [
        "a b.md",
        "é 'x'.md",
        "c#d?.md",
        "100%.md",
        "%2e%2e.md",
        "dir#/e&f=g;h.md",
        "\u{202e}.md",
        "line\nend.md",
    ];
    for name in names {
        shelf.write(name, "The same words in each.", 0);
    }
    let data = found(&shelf.search(), "words").await;
    let urls = urls(&data);
    assert_eq!(urls.len(), names.len());
    let read = shelf.read();
    for url in urls {
        assert!(url.is_ascii() && !url.contains(['#', '?', ' ', '\n']), "{url}");
        let page = folder::page(&read, &format!("{BASE}{url}")).await;
        assert_eq!(page["data"]["body"], "The same words in each.", "{url}");
    }
}

// Other systems refuse such a name.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn non_utf8_name_has_address() {
    use std::os::unix::ffi::OsStrExt;
    let shelf = Shelf::new();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.md");
    if fs::write(shelf.root().join(name), "Words.").is_err() {
        return; // This file system has no such names.
    }
    assert_eq!(urls(&found(&shelf.search(), "words").await), ["caf%E9.md"]);
}

#[cfg(unix)]
#[tokio::test]
async fn counts_skipped_files_by_reason() {
    use crate::support::pipe::make_pipe;
    use std::os::unix::fs::symlink;
    let shelf = status();
    let outside = tempfile::tempdir().expect("a folder");
    fs::write(outside.path().join("secret.md"), "payments secret").expect("written");
    shelf
        .write(".hidden.md", "payments", 0)
        .write(".git/objects/a.md", "payments", 0)
        .write("picture.png", "payments", 0)
        .write("README", "payments", 0)
        .write("huge.md", vec![b'a'; (8 << 20) + 1], 0)
        .write("just.md", format!("just{}", "\n".repeat((8 << 20) - 4)), 0)
        .write("binary.md", b"payments\0\x01\x02", 0)
        .write(
            "garbage.txt",
            (0..=255).cycle().filter(|b| *b != 0).take(5_000).collect::<Vec<u8>>(),
            0,
        )
        .write("empty.md", "", 0)
        .write("blank.html", "<!-- payments -->", 0)
        .write("broken.pdf", "%PDF-1.4 payments", 0)
        .write("sub/real.md", "payments", 0);
    symlink(outside.path().join("secret.md"), shelf.path("out.md")).expect("linked");
    symlink(outside.path(), shelf.path("out")).expect("linked");
    symlink(shelf.path("sub"), shelf.path("linked")).expect("linked");
    symlink(shelf.root(), shelf.path("sub/circle")).expect("linked");
    symlink(shelf.path("nowhere.md"), shelf.path("dangling.md")).expect("linked");
    symlink(shelf.path(".hidden.md"), shelf.path("shown.md")).expect("linked");
    symlink("sub/real.md", shelf.path("alias.md")).expect("linked");
    // A pipe without a writer: opening it would wait for ever.
    make_pipe(&shelf.path("pipe.md"));
    let _socket = std::os::unix::net::UnixListener::bind(shelf.path("s.md")).expect("a socket");
    let left_out = json!({
        "hidden": 3, "leads_out": 2, "linked_folder": 2, "special": 2, "other_type": 2, "too_large": 1,
        "unopened": 1, "binary": 1, "charset": 1, "empty": 2, "broken": 1,
    });
    for search in [shelf.search(), shelf.search(), shelf.search_in_memory()] {
        let data = found(&search, "payments").await;
        assert_eq!(data["left_out"], left_out);
        assert_eq!(data["indexed"], 6);
        let mut urls = urls(&data);
        urls.sort();
        assert_eq!(urls, ["alias.md", "incident.md", "sub/real.md"]);
    }
    let again = found(&shelf.search(), "payments").await;
    assert_eq!(again["refreshed"], 0, "what was left out is not read again either");
}

#[tokio::test]
async fn mirror_uses_web_addresses() {
    let shelf = Shelf::mirror();
    shelf
        .write("vendor.example.com/policies/sla.md", "Uptime words", 0)
        .write("vendor.example.com/policies/sla.html", "<p>Uptime words</p>", 0)
        .write("top.md", "Uptime words", 0)
        .write("notes/a.md", "Uptime words", 0);
    let data = found(&shelf.search(), "uptime").await;
    let policies = "https://vendor.example.com/policies";
    assert_eq!(urls(&data), [format!("{policies}/sla"), format!("{policies}/sla.md")]);
    assert_eq!(data["left_out"], json!({ "no_address": 2 }));
    // The one that had the bare name goes: the other has it now.
    fs::remove_file(shelf.path("vendor.example.com/policies/sla.html")).expect("removed");
    let data = found(&shelf.search(), "uptime").await;
    assert_eq!(urls(&data), [format!("{policies}/sla")]);
}

#[tokio::test]
async fn empty_folder_differs_from_missing() {
    let shelf = Shelf::new();
    let data = found(&shelf.search(), "anything").await;
    assert_eq!((urls(&data).len(), &data["indexed"]), (0, &json!(0)));
    let file = shelf.write("a.md", "Text", 0).path("a.md");
    let nowhere = shelf.path("nowhere");
    for (path, says) in [
        (
            nowhere.clone(),
            format!("folder {} not found: create it, or choose another one", short(&nowhere)),
        ),
        (
            file.clone(),
            format!("{} is not a folder: give the folder that contains it", short(&file)),
        ),
    ] {
        assert_eq!(folders::ready(&spec(&path)).expect_err("not ready").to_string(), says);
        let failed = ask(&FolderSearch::new(spec(&path), None), json!({ "query": "a" })).await;
        assert_eq!(failed.expect_err("a failure").text, says);
    }
    let odd = FolderSpec { base_url: Some("notes".to_owned()), ..shelf.spec() };
    let says = folders::ready(&odd).expect_err("not ready").to_string();
    assert!(says.ends_with("use one such as https://notes.local/"), "{says}");
    assert!(folders::ready(&shelf.spec()).is_ok());
    // It goes while the run is on.
    let search = shelf.search();
    found(&search, "text").await;
    fs::remove_dir_all(shelf.root()).expect("removed");
    let failed = ask(&search, json!({ "query": "a" })).await.expect_err("a failure");
    assert!(failed.text.starts_with("folder "), "{}", failed.text);
}

fn short(path: &std::path::Path) -> String {
    crate::base::visible::visible_within(&path.display().to_string(), 80)
}

#[cfg(unix)]
#[tokio::test]
async fn index_is_private_to_owner() {
    use std::os::unix::fs::PermissionsExt;
    let shelf = status();
    found(&shelf.search(), "soup").await;
    let mode =
        |path: &std::path::Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&shelf.cache()), 0o700);
    let place = shelf.place();
    assert_eq!(mode(&place), 0o700);
    // A user made it readable: it is private again.
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).expect("opened up");
    let search = shelf.search();
    found(&search, "soup").await;
    assert_eq!(mode(&place), 0o700);
    let modes = || {
        let all = fs::read_dir(&place).expect("a folder").map(|entry| entry.expect("one").path());
        all.map(|path| (mode(&path), path)).collect::<Vec<_>>()
    };
    assert!(modes().len() > 1 && modes().iter().all(|(mode, _)| *mode == 0o600), "{:?}", modes());
    shelf.write("later.md", "Stew.", 1);
    found(&search, "stew").await;
    assert!(modes().iter().all(|(mode, _)| *mode == 0o600), "{:?}", modes());
}

#[tokio::test]
async fn rebuilds_broken_or_foreign_index() {
    let shelf = status();
    found(&shelf.search(), "soup").await;
    let place = shelf.place();
    let file = place.join("index.db");
    let change = |at: usize, byte: u8| {
        let mut bytes = fs::read(&file).expect("reads");
        bytes[at..].fill(byte);
        fs::write(&file, bytes).expect("written");
    };
    let break_it: [&dyn Fn(); 5] = [
        &|| fs::write(&file, "no database").expect("written"),
        &|| change(0, 0xff),
        &|| change(4_096, 0x55),
        &|| {
            let bytes = fs::read(&file).expect("reads");
            fs::write(&file, &bytes[..bytes.len() / 2]).expect("written");
        },
        &|| {
            fs::remove_file(&file).expect("removed");
            let other = rusqlite::Connection::open(&file).expect("opens");
            other.execute_batch("CREATE TABLE file (name TEXT)").expect("made");
        },
    ];
    for (at, break_it) in break_it.iter().enumerate() {
        break_it();
        let data = found(&shelf.search(), "soup").await;
        assert_eq!(
            (urls(&data), &data["refreshed"]),
            (vec!["menu.txt".to_owned()], &json!(3)),
            "{at}"
        );
        assert_eq!(data["index"], "disk", "{at}");
        assert_eq!(found(&shelf.search(), "soup").await["refreshed"], 0, "{at}");
    }
    // Where nothing can be kept, it is searched in memory.
    fs::remove_dir_all(shelf.cache()).expect("removed");
    fs::write(shelf.cache(), "a file").expect("written");
    let search = shelf.search();
    let data = found(&search, "soup").await;
    assert_eq!((urls(&data), &data["index"]), (vec!["menu.txt".to_owned()], &json!("memory")));
    assert_eq!(found(&search, "soup").await["refreshed"], 0);
}

#[tokio::test]
async fn locked_index_searches_in_memory() {
    let shelf = status();
    found(&shelf.search(), "soup").await;
    let other = rusqlite::Connection::open(shelf.place().join("index.db")).expect("opens");
    other.execute_batch("BEGIN IMMEDIATE").expect("free");
    // Nothing to write: no lock is needed.
    let search = shelf.search();
    assert_eq!(found(&search, "soup").await["index"], "disk");
    shelf.write("menu.txt", "Lunch\n\nThere is cake.", 200);
    let data = found(&search, "cake").await;
    assert_eq!((urls(&data), &data["index"]), (vec!["menu.txt".to_owned()], &json!("memory")));
    assert_eq!(data["indexed"], 3);
    drop(other);
    let data = found(&search, "cake").await;
    assert_eq!((&data["index"], &data["refreshed"]), (&json!("disk"), &json!(1)));
}

#[tokio::test]
async fn concurrent_tools_share_index() {
    let shelf = status();
    let (one, two) = (shelf.search(), shelf.search());
    let (first, second) = tokio::join!(found(&one, "soup"), found(&two, "soup"));
    assert_eq!(
        (urls(&first), urls(&second)),
        (vec!["menu.txt".to_owned()], vec!["menu.txt".to_owned()])
    );
    let read = |data: &Value| data["refreshed"].as_u64().expect("a count");
    assert_eq!(read(&first) + read(&second), 3, "each file is read once");
}

#[tokio::test]
async fn dropped_call_leaves_index_intact() {
    let shelf = Shelf::new();
    for number in 0..60 {
        shelf.write(&format!("{number:03}.md"), format!("tide {}", "word ".repeat(200)), 0);
    }
    let search = shelf.search();
    {
        let mut asked = Box::pin(found(&search, "tide"));
        // It has begun in its own thread and continues until it sees that no caller waits.
        assert!(futures::poll!(&mut asked).is_pending());
    }
    let data = found(&search, "tide").await;
    assert_eq!((urls(&data).len(), &data["indexed"]), (10, &json!(60)));
    assert_eq!(found(&shelf.search(), "tide").await["refreshed"], 0);
}

#[test]
fn abandoned_work_stops_and_keeps_progress() {
    let shelf = status();
    let root = shelf.root().canonicalize().expect("there");
    let source = DocumentSource::Folder(root);
    let layout = Layout::new(Some(BASE)).expect("a base");
    let going_on = CancelFlag::default();
    let catalogue = source.catalogue(&layout, &going_on).expect("looked through");
    let stopped = CancelFlag::default();
    drop(stopped.on_drop());
    assert!(matches!(source.catalogue(&layout, &stopped), Err(WalkFailed::Stopped)));
    let mut index = TextIndex::in_memory().expect("made");
    let refused = index.refresh(&source, &catalogue, &stopped);
    assert!(matches!(refused, Err(IndexFailed::Stopped)));
    assert!(index.search("soup", 10).expect("searched").hits.is_empty());
    let refreshed = index.refresh(&source, &catalogue, &going_on).expect("followed");
    assert_eq!((refreshed.read, refreshed.indexed), (3, 3));
    assert_eq!(index.search("soup", 10).expect("searched").hits.len(), 1);
}

#[tokio::test]
async fn the_shipped_corpus_is_indexed_once() {
    let corpus = FolderSpec { folder: None, base_url: None };
    let query = "What is the current US payments incident status and what enterprise SLA commitments \
                 apply for uptime and P1 response time?";
    let first = found(&FolderSearch::new(corpus.clone(), None), query).await;
    assert_eq!(first["index"], "memory");
    assert_eq!(first["left_out"], json!({}));
    let first_ones = urls(&first);
    let vendor = "https://vendor.example.com/policies/enterprise-sla";
    assert_eq!(first_ones.first().map(String::as_str), Some(vendor));
    let status = "https://official-status.example.com/incidents/payments-2026-03-";
    let of_status = first_ones.iter().take(6).filter(|url| url.starts_with(status)).count();
    assert_eq!(of_status, 4, "{first_ones:?}");
    let again = found(&FolderSearch::new(corpus, None), query).await;
    assert_eq!((&again["refreshed"], &again["results"]), (&json!(0), &first["results"]));
}

#[test]
fn reports_missing_folder_before_start() {
    let shelf = Shelf::new();
    let missing = shelf.path("missing");
    let scenario = |folder: &std::path::Path| {
        let text = format!(
            "title = 'A'\npattern = 'research'\ngoal = 'Find it.'\n[research]\nquestion = 'What?'\n\
             allowed_domains_policy = ['notes.local']\nallowed_domains_execution = ['notes.local']\n\
             plan = 'rule'\nnotes = 'rule'\nanswer = 'rule'\n\
             [tools.search_sources]\nsearch = {{ folder = '{0}', base_url = '{BASE}' }}\n\
             [tools.read_source]\nread = {{ folder = '{0}', base_url = '{BASE}' }}\n",
            folder.display()
        );
        load(&text, ScenarioOrigin::File("a.toml".into()), &[])
            .unwrap_or_else(|problems| panic!("{}", problems.pretty(false)))
    };
    let troubles = Toolbox::make(&scenario(&missing), true, &|_| None).err().expect("not ready");
    let told: Vec<String> = troubles.iter().map(ToString::to_string).collect();
    let why = format!("folder {} not found: create it, or choose another one", short(&missing));
    assert_eq!(
        told,
        [format!("the tool read_source: {why}"), format!("the tool search_sources: {why}")]
    );
    assert!(Toolbox::make(&scenario(&shelf.root()), true, &|_| None).is_ok());
}
