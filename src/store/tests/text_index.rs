//! The index of what was said: stored with the events, removed with the run.

use std::time::Duration;

use super::*;
use crate::base::word_query::WordQuery;
use crate::store::EventWords;
use crate::store::database::removal::Retention;
use crate::store::database::text_index::RunTextIndex;

fn event(line: &str) -> Event {
    Event::from_line(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// A group of events, given without their numbers and times.
fn said_group(run: &RunId, first: u64, lines: &[&str]) -> EventGroup {
    let mut group = EventGroup::starting_at(Seq(first));
    for (seq, line) in (first..).zip(lines) {
        let at = seq * 1_000;
        let line = format!("{{\"v\":2,\"seq\":{seq},\"at_us\":{at},{line}}}");
        group.push(&event(&line), run).expect("a line");
    }
    group
}

fn answer(text: &str) -> String {
    format!("\"span\":0,\"kind\":\"answer.composed\",\"text\":\"{text}\"")
}

const CALL: &str = r#""span":1,"kind":"call.started","parent":0,"tool":"llm",
    "purpose":{"purpose":"contribution","round":1,"seat":0,"role":"finance_analyst"},
    "prompt":{"messages":[{"role":"user","content":"What about zebras?"}]}"#;
const ATTEMPT: &str = r#""span":2,"kind":"attempt.started","parent":1,"attempt":1,"timeout_ms":9"#;
const REPLY: &str = r#""span":2,"kind":"attempt.answered","usage":null,"first_token_ms":null,
    "text":"{\"agent\":\"finance_analyst\",\"summary\":\"The margin\\nis 24.6 percent, Café\"}""#;
const TOOL: &str = r#""span":3,"kind":"call.started","parent":0,"tool":"stock","args":{"sku":"SKU-9"},
    "purpose":{"purpose":"tool","agent":"buyer","tool":"stock","requested_by":1,"index":0}"#;
const PROBE: &str = r#""span":4,"kind":"attempt.started","parent":3,"attempt":1,"timeout_ms":9"#;
const RESULT: &str = r#""span":4,"kind":"attempt.answered","usage":null,"first_token_ms":null,
    "result":{"left":[17,"no blue umbrellas"]}"#;
const FAILED: &str =
    r#""span":4,"kind":"attempt.failed","class":"status","text":"HTTP 503 overloaded""#;

fn found(database: &Database, words: &str) -> Vec<String> {
    let query = WordQuery::parse(words);
    let runs =
        RunTextIndex(database).runs_that_said(&query, &|| true).expect("searched").expect("wanted");
    runs.iter().map(|run| run.to_string()).collect()
}

#[tokio::test]
async fn finds_words_once_stored() {
    let temp = Temp::new();
    let (one, two) = (temp.begin("r-1", 1, false), temp.begin("r-2", 2, false));
    assert_eq!(found(&temp.database, "margin"), [""; 0]);
    let group = said_group(&one, 0, &[CALL, ATTEMPT, REPLY]);
    temp.database.append(&one, Seq(0), &group).await.expect("appended");
    let group = said_group(&one, 3, &[TOOL, PROBE, RESULT, FAILED]);
    temp.database.append(&one, Seq(3), &group).await.expect("appended");
    let group = said_group(&two, 0, &[&answer("The margins: 東京都の天気, no go.")]);
    temp.database.append(&two, Seq(0), &group).await.expect("appended");
    for (words, runs) in [
        ("margin", &["r-1", "r-2"][..]),
        ("\"margin\"", &["r-1"]),
        ("MARG", &["r-1", "r-2"]),
        ("margin cafe", &["r-1"]),
        ("\"margin is 24 6 percent\"", &["r-1"]),
        ("\"is margin\"", &[]),
        ("zebras", &[]),
        ("summary", &[]),
        ("sku-9", &["r-1"]),
        ("17 umbrellas", &["r-1"]),
        ("overloaded 503", &["r-1"]),
        ("京都", &["r-2"]),
        ("天気", &["r-2"]),
        ("京天", &[]),
        ("no-go", &["r-2"]),
        ("margin overloaded", &[]),
        ("---", &[]),
        ("\" OR NOT ( * words: ^", &[]),
    ] {
        assert_eq!(found(&temp.database, words), runs, "{words}");
    }
    assert_eq!(found(&temp.again(), "margin"), ["r-1", "r-2"], "another process sees it");
    assert_eq!(RunTextIndex(&temp.database).unindexed().expect("read"), []);
    let query = WordQuery::parse("margin");
    let few = RunTextIndex(&temp.database).runs_that_said(&query, &|| false).expect("read");
    assert!(few.is_some(), "it is asked only now and then whether the answer is wanted");
}

#[tokio::test]
async fn finds_unindexed_words_and_adds_once() {
    let temp = Temp::new();
    let (run, other) = (temp.begin("r-1", 1, false), temp.again());
    for seq in 0..3 {
        let group = said_group(&run, seq, &[&answer("an umbrella")]);
        temp.database.append(&run, Seq(seq), &group).await.expect("appended");
        let mut behind = RunTextIndex(&other).unindexed().expect("read");
        RunTextIndex(&other).index_for(&mut behind, Duration::MAX).expect("indexed");
        for database in [&other, &temp.database] {
            let hits =
                RunTextIndex(database).hits_of(&WordQuery::parse("umbrella"), 9).expect("searched");
            assert_eq!((hits.len(), hits[0].count), (1, seq + 1));
        }
    }
    assert_eq!(RunTextIndex(&other).unindexed().expect("read"), []);
}

#[tokio::test]
async fn process_end_flushes_words_to_index() {
    let temp = Temp::new();
    let other = temp.again();
    let row = row("r-1", 1, false);
    assert!(other.reserve(&row.id, 1).expect("reserved"));
    assert_eq!(other.begin(&row, "00ff"), Ok(true));
    let run = row.id;
    let group = said_group(&run, 0, &[&answer("an umbrella")]);
    other.append(&run, Seq(0), &group).await.expect("appended");
    drop(other);
    let behind = temp.database.reading(|connection| {
        let sql = "SELECT count(*) FROM run WHERE said < next";
        connection.query_row(sql, [], |row| row.get::<_, i64>(0))
    });
    assert_eq!(behind.expect("counted"), 0);
}

#[tokio::test]
async fn hit_names_speaker_and_time() {
    let temp = Temp::new();
    let run = temp.begin("r-1", 1, false);
    temp.database.append(&run, Seq(0), &said_group(&run, 0, &[CALL])).await.expect("appended");
    let more = [ATTEMPT, REPLY, TOOL, PROBE, RESULT, FAILED, &answer("It is a no")];
    temp.database.append(&run, Seq(1), &said_group(&run, 1, &more)).await.expect("appended");
    for (words, seq, what, who, text) in [
        (
            "margin",
            2,
            "reply",
            "finance_analyst",
            "finance_analyst · The margin\nis 24.6 percent, Café",
        ),
        ("sku", 3, "arguments", "stock", "SKU-9"),
        ("umbrellas", 5, "result", "stock", "17 · no blue umbrellas"),
        ("503", 6, "error", "stock", "HTTP 503 overloaded"),
        ("\"no\" it", 7, "answer", "", "It is a no"),
    ] {
        let hits =
            RunTextIndex(&temp.database).hits_of(&WordQuery::parse(words), 3).expect("searched");
        let [hit] = &hits[..] else { panic!("{words}: {hits:?}") };
        assert_eq!((&hit.first[..], hit.count), (&[Seq(seq)][..], 1), "{words}");
        let place =
            RunTextIndex(&temp.database).said_at(&run, Seq(seq)).expect("read").expect("a place");
        assert_eq!((place.what, place.who.as_str()), (what, who), "{words}");
        assert_eq!((place.text.as_str(), place.at_ms), (text, seq), "{words}");
    }
}

#[tokio::test]
async fn removing_run_removes_its_words() {
    let temp = Temp::new();
    let mut runs = Vec::new();
    for (name, text) in [("r-1", "old umbrella"), ("r-2", "new umbrella")] {
        let run = temp.begin(name, 1, false);
        for seq in 0..200 {
            let group = said_group(&run, seq, &[&answer(text)]);
            temp.database.append(&run, Seq(seq), &group).await.expect("appended");
        }
        temp.end(&run, "success").await;
        runs.push(run);
    }
    let hits =
        RunTextIndex(&temp.database).hits_of(&WordQuery::parse("umbrella"), 2).expect("searched");
    assert_eq!(hits.iter().map(|hit| hit.count).collect::<Vec<_>>(), [200, 200]);
    temp.database.delete(&runs[0], 5).expect("deleted");
    assert_eq!(found(&temp.database, "\"umbrella\""), ["r-2"], "a removed run is not found");
    temp.database.undelete(&runs[0]).expect("back");
    assert_eq!(found(&temp.database, "umbrella"), ["r-1", "r-2"]);
    temp.database.delete(&runs[0], 5).expect("deleted");
    let keep = Retention { days: u32::MAX, ..Retention::default() };
    assert_eq!(temp.database.prune(keep, 6, 6).expect("pruned").runs, 1);
    let rows = |words: &str| {
        let count = temp.database.reading(|connection| {
            let sql = "SELECT count(*) FROM said WHERE said MATCH ?1";
            connection.query_row(sql, [words], |row| row.get::<_, i64>(0))
        });
        count.expect("counted")
    };
    assert_eq!((rows("old"), rows("umbrella")), (0, 200));
    // The number of the removed run is given again: nothing of it is left under it.
    let third = temp.begin("r-3", 3, false);
    let group = said_group(&third, 0, &[&answer("third")]);
    temp.database.append(&third, Seq(0), &group).await.expect("appended");
    assert_eq!(found(&temp.database, "old"), [""; 0]);
}

#[test]
fn search_skips_prompts_and_program_text() {
    let words = |line: &str| {
        EventWords::of(&event(&format!("{{\"v\":2,\"seq\":0,\"at_us\":0,{line}}}")))
            .map(|said| said.words)
    };
    assert_eq!(words(CALL), None);
    assert_eq!(words("\"span\":0,\"kind\":\"warning\",\"text\":\"a\""), None);
    assert_eq!(words(&answer("No: A_b")).as_deref(), Some("no a b "));
    assert_eq!(words(&answer("…")), None);
    let handoff = r#""span":0,"kind":"handoff.made","swarm":"s","from":"a","to":"b",
        "message":"Refund it","guard":{"handoffs":1,"window":1,"distinct_agents":1},
        "requested_by":1"#;
    assert_eq!(words(handoff).as_deref(), Some("refund it "));
}
