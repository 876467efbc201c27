//! The model of a live run, chosen in the launch form of the real program: which servers are called, and
//! when.
use crate::support::pty::{Start, Terminal};
use crate::support::scene::{Scene, agreeing};
use crate::support::server::{Asking, KEY, answer};
use serde_json::json;

/// From the button that starts a run of `checkout-launch` to the choice of who answers.
const TO_ANSWERS: &str = "jjjjj";
const LEFT: &str = "\x1b[D";
const CTRL_S: &str = "\x13";

fn listing(ids: &[&str]) -> Vec<u8> {
    let data: Vec<_> = ids.iter().map(|id| json!({ "id": id, "object": "model" })).collect();
    let body = json!({ "object": "list", "data": data }).to_string();
    answer("200 OK", &["content-type: application/json", "connection: close"], &body)
}

/// Gemini's address lists its models and answers as the table; Ollama's lists its own.
fn vendor(asking: &Asking) -> Vec<u8> {
    match asking.head.split(' ').nth(1) {
        Some("/gemini/models") => listing(&["models/gemini-3-small", "models/gemini-3-large"]),
        Some("/v1/models") => listing(&["qwen3:8b"]),
        Some("/gemini/chat/completions") => agreeing(asking),
        other => panic!("{other:?} was asked"),
    }
}

/// The paths that were asked for.
fn paths(asked: &[Asking]) -> Vec<String> {
    asked.iter().filter_map(|it| it.head.split(' ').nth(1)).map(str::to_owned).collect()
}

/// The form of the first scenario, on the choice of who answers.
fn on_answers(terminal: &mut Terminal) {
    terminal.sees("checkout-unanimous");
    terminal.press("n");
    terminal.sees("[ Start ]");
    terminal.press(TO_ANSWERS);
    terminal.sees(">Replies");
}

/// The form of the run that has ended, on the choice of who answers. Not before the scenarios are
/// there, which are read while the first run goes on.
fn again(terminal: &mut Terminal) {
    terminal.sees("DONE");
    terminal.press("q1");
    terminal.sees("checkout-blocked");
    terminal.press("2\r");
    terminal.sees("2 Outcome");
    terminal.press("n");
    terminal.sees("[ Start ]");
    terminal.press(TO_ANSWERS);
    terminal.sees(">Replies");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn form_picks_between_two_keys() {
    let scene = Scene::with(vendor).await;
    let (gemini, ollama) = (format!("http://{}/gemini", scene.host), scene.host.clone());
    let env = &[
        ("ANTHROPIC_API_KEY", "sk-ant-none-of-its-business"),
        ("GEMINI_API_KEY", KEY),
        ("GEMINI_BASE_URL", gemini.as_str()),
        ("OLLAMA_HOST", ollama.as_str()),
    ];
    let mut terminal = Terminal::start(Start { env, ..Start::default() });
    on_answers(&mut terminal);
    assert!(scene.asked().is_empty(), "nothing is asked for before live is chosen");
    terminal.press(LEFT);
    terminal.sees("several providers have a key");
    terminal.press("j\r");
    terminal.sees("Providers with a key");
    terminal.sees("anthropic/claude-haiku-4-5");
    // Ollama is on this machine: it is found without being chosen.
    terminal.sees("qwen3:8b");
    terminal.press("gemini/");
    terminal.loses("qwen3:8b");
    terminal.press("\r");
    terminal.sees(&format!("at {}, key from the shell", scene.host));
    terminal.press("\r");
    terminal.sees("gemini-3-large");
    terminal.press("3-small");
    terminal.loses("gemini-3-large");
    terminal.press("\r");
    terminal.sees("gemini/gemini-3-small");
    assert_eq!(paths(&scene.asked()), ["/v1/models", "/gemini/models"]);
    terminal.press(CTRL_S);
    terminal.sees("DONE");
    let asked = scene.asked();
    assert!(!asked.is_empty());
    for asking in &asked {
        assert_eq!(asking.body["model"], "gemini-3-small");
        assert!(asking.head.contains(&format!("authorization: Bearer {KEY}")), "{}", asking.head);
    }
    // Launched again it begins with the same model.
    again(&mut terminal);
    terminal.press(LEFT);
    terminal.sees("gemini/gemini-3-small  as in r-");
    assert!(!terminal.text().contains(KEY));
    let bytes = terminal.bytes();
    assert!(!String::from_utf8_lossy(&bytes).contains(KEY), "the key is shown");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_list_allows_typed_name() {
    let scene = Scene::with(|asking| match asking.head.starts_with("GET /v1/models ") {
        true => answer("401 No", &["connection: close"], r#"{"error":{"message":"bad key"}}"#),
        false => agreeing(asking),
    })
    .await;
    let url = format!("http://{}/v1", scene.host);
    let env = &[
        ("OPENAI_API_KEY", KEY),
        ("OPENAI_BASE_URL", url.as_str()),
        // No server listens there.
        ("OLLAMA_HOST", "127.0.0.1:1"),
    ];
    let args = &["run", "checkout-unanimous", "--live", "--model", "named-1"];
    let mut terminal = Terminal::start(Start { env, args, cols: 80, rows: 24, ..Start::default() });
    again(&mut terminal);
    assert!(scene.asked().iter().all(|asking| asking.body["model"] == "named-1"));
    terminal.press(LEFT);
    terminal.sees("named-1");
    terminal.press("j\r");
    terminal.sees("the list could not be loaded");
    terminal.sees("bad key");
    terminal.press("typed/one\r");
    terminal.sees("chosen here");
    terminal.press(CTRL_S);
    terminal.sees("DONE");
    let asked = scene.asked();
    let (lists, chats): (Vec<_>, Vec<_>) = asked.iter().partition(|it| it.head.starts_with("GET"));
    // Once when live models were chosen, and once more when the window was opened.
    assert!((1..=2).contains(&lists.len()), "{}", lists.len());
    assert!(chats.iter().all(|asking| asking.body["model"] == "typed/one"));
    assert!(!String::from_utf8_lossy(&terminal.bytes()).contains(KEY), "the key is shown");
}

/// An address from a foreign file, which is shown before it is called.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_address_needs_permission_before_list() {
    let scene = Scene::with(vendor).await;
    let text = include_str!("../../scenarios/checkout-launch.toml");
    let table = format!("[model]\nbase_url = \"http://{}/v1\"\n", scene.host);
    let text = match text.contains("[model]\n") {
        true => text.replacen("[model]\n", &table, 1),
        false => format!("{text}\n{table}"),
    };
    let file = tempfile::NamedTempFile::with_suffix(".toml").expect("a file");
    std::fs::write(file.path(), text).expect("written");
    let path = file.path().display().to_string();
    let env = &[("OLLAMA_HOST", "127.0.0.1:1")];
    let args = &["run", path.as_str(), "--instant"];
    let mut terminal = Terminal::start(Start { env, args, ..Start::default() });
    again(&mut terminal);
    terminal.press(LEFT);
    terminal.sees(&scene.host);
    terminal.press("j\r");
    terminal.sees("you have not allowed it yet");
    assert!(scene.asked().is_empty());
}
