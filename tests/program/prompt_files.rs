//! Prompts in files of their own, with the real binary: what they are read for, and when no more.

use crate::killed_runs::wait_until_stored;
use crate::support::binary::{Home, Running};

/// A shipped scenario as a file of the user's, with one of its prompts in a file.
fn scenario(home: &Home, shipped: &str, key: &str, prompt: &str) {
    let path = format!("{}/scenarios/{shipped}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("shipped");
    let start = text.find(&format!("{key} = ")).expect("the prompt");
    let end = match text[start..].find("\"\"\"") == Some(key.len() + 3) {
        true => text[start..].split("\"\"\"").take(2).map(str::len).sum::<usize>() + 6,
        false => text[start..].find('\n').expect("the end of its line"),
    };
    let (before, after) = (&text[..start], &text[start + end..]);
    home.write("mine/mine.toml", &format!("{before}{key}_file = \"prompt.md\"{after}"));
    home.write("mine/prompt.md", prompt);
}

const RUN: [&str; 3] = ["run", "mine/mine.toml", "--format"];

#[test]
fn permission_holds_until_prompt_changes() {
    let home = Home::new();
    scenario(&home, "real-services", "finalize_prompt", "Sum it up.");
    // No service is there, so an allowed run fails at once.
    let asks = |args: &[&str]| home.run(&[&RUN[..], &["json"], args].concat()).code == Some(2);
    assert!(asks(&[]));
    assert!(!asks(&["--trust"]) && !asks(&[]), "the answer is kept");
    home.write("mine/prompt.md", "Say something else.");
    assert!(asks(&[]), "another prompt asks again");
    home.write("mine/prompt.md", "Sum it up.");
    assert!(!asks(&[]), "the one that was allowed");
}

#[test]
fn resumes_and_forks_without_prompt_file() {
    let home = Home::new();
    scenario(&home, "checkout-unanimous", "finalize_prompt", "Write it for {{region}}.");
    let gone = || std::fs::remove_file(home.path().join("mine/prompt.md")).expect("removed");
    let mut running = Running::start(&mut home.command(&[&RUN[..], &["jsonl"]].concat()));
    let last = running.lines().nth(8).expect("an event").expect("a line");
    wait_until_stored(&home, &last);
    running.kill();
    let ran = home.run(&[&RUN[..], &["jsonl", "--instant"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    gone();
    assert_eq!(home.run(&["validate", "mine/mine.toml"]).code, Some(2), "it cannot be started");
    let resumed = home.run(&["resume", "last~1", "--format", "jsonl"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(resumed.out.contains("\"Write it for US.\""), "what the file said");
    let log = home.run(&["export", "last"]).out;
    assert!(ran.out.starts_with(&log), "its outcome comes after it");
    let page = home.run(&["export", "last", "--html"]).out;
    assert!(page.contains("Write it for {{region}}."), "{page}");
    let elsewhere = Home::new();
    elsewhere.write("log.jsonl", &log);
    assert_eq!(elsewhere.run(&["import", "log.jsonl"]).code, Some(0));
    for home in [&home, &elsewhere] {
        for (set, sent) in [(None, "Write it for US."), (Some("Write a poem."), "Write a poem.")] {
            let set = set.map(|text| format!("collaboration.finalize_prompt={text}"));
            let set = set.iter().flat_map(|set| ["--set", set]).collect::<Vec<_>>();
            let fork = ["fork", "last@finalize", "--format", "jsonl"];
            let fork = home.run(&[&fork[..], &set].concat());
            assert_eq!(fork.code, Some(0), "{set:?}: {}", fork.err);
            assert!(fork.out.contains(&format!("\"{sent}\"")), "{set:?}");
        }
    }
}
