//! `runs --grep`: where the words were said, as a line below each run and as data.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::base::visible::visible;
use crate::base::word_query::WordQuery;
use crate::cli::exit::Exit;
use crate::cli::message::print_message;
use crate::cli::stdout;
use crate::cli::stream_style::StreamStyle;
use crate::event::run_row::RunRow;
use crate::event::{RunId, Seq};
use crate::narrate::excerpt::{Excerpt, excerpt};
use crate::narrate::format;
use crate::narrate::measure::columns;
use crate::narrate::style_role::StyleRole;
use crate::shell::tty::terminal_size;
use crate::store::database::said::{RunHits, SaidIndex, UnindexedRun};
use crate::store::database::said_places::SaidPlace;
use crate::store::database::{Database, StoreError};

/// Most hits of a run that `--json` lists.
const MOST_HITS: usize = 20;

/// Width of a hit in `--json`, in columns.
const JSON_COLUMNS: usize = 240;

/// Width of a line of a file or a pipe.
const COLUMNS: usize = 120;

/// Fewest columns for the text of a hit.
const LEAST_COLUMNS: usize = 24;

/// How long runs are added to the index between two looks at what is left.
const SLICE: Duration = Duration::from_secs(1);

/// The runs in which the words were said.
pub(super) struct SaidHits {
    query: WordQuery,
    hits: BTreeMap<RunId, RunHits>,
    /// Whether a part of a run could not be searched or read.
    has_damage: Cell<bool>,
}

impl SaidHits {
    /// Searches the kept runs; on an error the message has been printed.
    pub(super) fn find(database: &Database, words: &str) -> Result<Self, Exit> {
        let query = WordQuery::parse(words);
        if query.is_empty() {
            print_message("--grep needs a word: letters or digits");
            return Err(Exit::Usage);
        }
        let has_damage = Cell::new(false);
        match search(database, &query, &has_damage) {
            Ok(hits) => {
                let hits = hits.into_iter().map(|hits| (hits.run.clone(), hits)).collect();
                Ok(Self { query, hits, has_damage })
            }
            Err(error) => {
                print_message(&visible(&format!(
                    "runs cannot be searched: {}",
                    error.with_advice()
                )));
                Err(Exit::Stopped)
            }
        }
    }

    /// Whether the words were said in a run.
    pub(super) fn has(&self, row: &RunRow) -> bool {
        self.hits.contains_key(&row.id)
    }

    /// Whether a part of a run could not be searched or read; a message about it has been printed.
    pub(super) fn has_damage(&self) -> bool {
        self.has_damage.get()
    }

    /// Some of the first places in a run. A damaged one is left out, and a message about it is printed.
    fn places(
        &self,
        database: &Database,
        run: &RunId,
        events: &[Seq],
    ) -> Result<Vec<SaidPlace>, StoreError> {
        let mut places = Vec::with_capacity(events.len());
        let mut is_said = false;
        for seq in events {
            match SaidIndex(database).said_at(run, *seq) {
                Ok(place) => places.extend(place),
                Err(error @ (StoreError::DamagedLog { .. } | StoreError::Damaged(_))) => {
                    self.has_damage.set(true);
                    if !std::mem::replace(&mut is_said, true) {
                        print_message(&visible(&format!("{run}: {}", error.with_advice())));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(places)
    }

    /// The first place in a run, as a line.
    pub(super) fn line(
        &self,
        database: &Database,
        row: &RunRow,
        paint: &StreamStyle,
    ) -> Result<String, StoreError> {
        let Some(hits) = self.hits.get(&row.id) else { return Ok(String::new()) };
        let first = hits.first.get(..1).unwrap_or_default();
        let Some(place) = self.places(database, &row.id, first)?.pop() else {
            return Ok(String::new());
        };
        let mut head = format!("    {}", format::duration_text(Duration::from_millis(place.at_ms)));
        for part in [place.who.as_str(), place.what] {
            if !part.is_empty() {
                head = format!("{head}  {}", visible(part));
            }
        }
        let more = match hits.count {
            0 | 1 => String::new(),
            count => format!("  +{}", count - 1),
        };
        let taken = columns(&head) + 2 + columns(&more);
        let cut =
            excerpt(&place.text, &self.query, room().saturating_sub(taken).max(LEAST_COLUMNS));
        let (head, more) = (paint.role(StyleRole::Dim, &head), paint.role(StyleRole::Dim, &more));
        Ok(format!("{head}  {}{more}\n", emphasised(&cut, paint)))
    }

    /// The first places in a run, as data.
    pub(super) fn json(&self, database: &Database, row: &RunRow) -> Result<FoundOut, StoreError> {
        let Some(found) = self.hits.get(&row.id) else { return Ok(FoundOut::default()) };
        let mut hits = Vec::with_capacity(found.first.len());
        for place in self.places(database, &row.id, &found.first)? {
            let Excerpt { text, places } = excerpt(&place.text, &self.query, JSON_COLUMNS);
            let words = places.iter().filter_map(|place| text.get(place.clone()));
            let words = words.map(str::to_owned).collect();
            let (seq, at_ms) = (place.seq.0, place.at_ms);
            hits.push(HitOut { seq, at_ms, what: place.what, who: place.who, text, words });
        }
        Ok(FoundOut { hit_count: found.count, hits })
    }
}

/// Searches all kept runs, also those that are not all in the index yet.
fn search(
    database: &Database,
    query: &WordQuery,
    has_damage: &Cell<bool>,
) -> Result<Vec<RunHits>, StoreError> {
    let index = SaidIndex(database);
    let mut behind = index.unindexed()?;
    let add = |behind: &mut Vec<UnindexedRun>| -> Result<(), StoreError> {
        for (run, why) in index.index_for(behind, SLICE)? {
            has_damage.set(true);
            print_message(&visible(&format!("{run} was not searched to its end: {why}")));
        }
        Ok(())
    };
    // The last words of runs that other processes play are added in no time.
    add(&mut behind)?;
    if !behind.is_empty() {
        let runs = format::count_noun(behind.len() as u64, "run");
        print_message(&format!("adding {runs} to the index, once"));
    }
    while !behind.is_empty() {
        add(&mut behind)?;
    }
    index.hits_of(query, MOST_HITS)
}

/// The width of the terminal.
fn room() -> usize {
    if stdout::is_terminal() { usize::from(terminal_size().width) } else { COLUMNS }
}

/// The text with its words emphasised.
fn emphasised(cut: &Excerpt, paint: &StreamStyle) -> String {
    let mut out = String::new();
    let mut from = 0;
    for place in &cut.places {
        out += cut.text.get(from..place.start).unwrap_or_default();
        out += &paint.role(StyleRole::Found, cut.text.get(place.clone()).unwrap_or_default());
        from = place.end;
    }
    out + cut.text.get(from..).unwrap_or_default()
}

/// What `--json` says of a run.
#[derive(Debug, Default, Serialize)]
pub(super) struct FoundOut {
    /// How many events have the words.
    hit_count: u64,
    /// The first of them.
    hits: Vec<HitOut>,
}

/// A place where the words were said.
#[derive(Debug, Serialize)]
struct HitOut {
    seq: u64,
    at_ms: u64,
    what: &'static str,
    who: String,
    text: String,
    words: Vec<String>,
}
