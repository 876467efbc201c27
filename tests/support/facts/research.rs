//! Logs of facts by hand of a research run: sources and how they fall out, pages, notes, the answer,
//! as a test wants it, without an engine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use roundtable::base::time::Day;
use roundtable::log::event::id::SourceNo;
use roundtable::log::event::{
    ChatMessage, EventKind, FlagAt, MessageRole, Prompt, Purpose, Reply, RunStarted, SpanId, Usage,
};
use roundtable::log::facts::research::{
    AnswerCited, Denial, DropReason, DroppedSource, FoundSource, KeptSource, Note, NoteConflict,
    NoteId, NoteIssue, NotePair, NoteProblem, NoteRefused, NotesCompared, NotesVerified, PageRead,
    PlannedStep, ReadingEnd, ResearchFact, ResearchPlan, Sentence, SourceOutcome, SourcesDeduped,
    SourcesFound,
};
use roundtable::log::facts::{PatternFact, PatternPlan};
use roundtable::scenario::patterns::research::{
    MisquotePolicy, ResearchBudget, ResearchStep, SamePage, SourceRule, StepExecutor,
};
use serde_json::{Value, json};

use super::builder::LogBuilder;

/// A log of research that is being written.
pub type ResearchFacts = LogBuilder<ResearchStory>;

/// What the builder knows of research.
pub struct ResearchStory {
    pub plan: ResearchPlan,
    found: Vec<FoundSource>,
    kept: BTreeMap<u32, (String, f64)>,
    sources: BTreeMap<u32, SpanId>,
    calls: BTreeMap<String, (SpanId, SpanId)>,
    notes: usize,
    taken: BTreeMap<u32, (u32, u32)>,
}

/// The allowed domains, each with its trust.
pub const DOMAINS: [(&str, f64); 4] = [
    ("official-status.example.com", 0.95),
    ("vendor.example.com", 0.8),
    ("regulator.example.org", 0.9),
    ("news.example.com", 0.5),
];

/// The question of the stories.
pub const QUESTION: &str = "What happened to card payments on 5 March, and is it over?";

/// A source as a search gives it.
pub fn found(url: &str, title: &str, score: f64, published_at: &str) -> FoundSource {
    FoundSource {
        url: url.into(),
        title: title.into(),
        snippet: "Payments failed for a part of cards.".into(),
        score: Some(score),
        published_at: published_at.into(),
    }
}

impl ResearchFacts {
    /// A run that has just been started.
    pub fn start() -> Self {
        let all = || DOMAINS.iter().map(|(domain, _)| (*domain).to_owned());
        let on = |domain: &String| domain != "vendor.example.com";
        let head = |(domain, trust): &(&str, f64)| SourceRule {
            domain: (*domain).to_owned(),
            trust: *trust,
            flag: (*domain == "vendor.example.com").then(|| "vendor_runtime".into()),
        };
        let plan = ResearchPlan {
            question: QUESTION.to_owned(),
            as_of: "2026-03-07".to_owned(),
            allowed_domains_policy: all().collect(),
            allowed_domains_execution: all().filter(on).collect(),
            sources: DOMAINS.iter().map(head).collect(),
            plan_by: StepExecutor::Model,
            notes_by: StepExecutor::Model,
            answer_by: StepExecutor::Model,
            same_page: SamePage::Query,
            folds_signs: true,
            misquotes: MisquotePolicy::Refuse,
            min_independent_sources: 2,
            max_age_days: Some(365),
            budget: ResearchBudget {
                max_steps: 8,
                max_urls: 6,
                max_read_pages: 3,
                max_notes: 6,
                max_answer_chars: 850,
                max_seconds: Duration::from_secs(25),
            },
        };
        Self::of(plan)
    }

    /// The same with a plan of the test's own.
    pub fn of(plan: ResearchPlan) -> Self {
        let mut facts = Self::new(ResearchStory {
            plan: plan.clone(),
            found: Vec::new(),
            kept: BTreeMap::new(),
            sources: BTreeMap::new(),
            calls: BTreeMap::new(),
            notes: 0,
            taken: BTreeMap::new(),
        });
        let tool = |name| super::head::tool(name, "search", 8_000, true);
        let head = RunStarted {
            wall_ms: 1_772_884_800_000,
            scenario: "an-incident".into(),
            title: "Card payments on 5 March".to_owned(),
            goal: plan.question.clone(),
            flags: vec![FlagAt {
                name: "vendor_runtime".into(),
                label: "the vendor's pages may be read".to_owned(),
                on: false,
            }],
            tools: vec![
                super::head::tool("llm", "model", 60_000, false),
                tool("search_sources"),
                tool("read_source"),
            ],
            ..super::head::started("r-b7c0", PatternPlan::Research(Arc::new(plan)))
        };
        facts.add(SpanId::RUN, EventKind::RunStarted(Arc::new(head)));
        facts
    }

    fn call(&mut self, name: &str, parent: SpanId, purpose: Purpose, args: Option<Value>) {
        let prompt = match &args {
            Some(_) => Prompt::default(),
            None => Prompt::complete(Arc::new([
                ChatMessage::new(MessageRole::System, "Answer with one JSON object."),
                ChatMessage::new(MessageRole::User, QUESTION),
            ])),
        };
        let tool = match purpose {
            Purpose::Search => "search_sources",
            Purpose::Read { .. } => "read_source",
            _ => "llm",
        };
        let call = self.call_starts(parent, tool, purpose, prompt, args);
        let attempt = self.open();
        let kind = EventKind::AttemptStarted {
            parent: call,
            attempt: 1,
            timeout_ms: 8_000,
            waited_ms: 0,
            probe: false,
        };
        self.add(attempt, kind);
        self.calls.insert(name.to_owned(), (call, attempt));
    }

    fn answered(&mut self, name: &str, reply: Reply) -> &mut Self {
        let (call, attempt) = self.calls[name];
        self.add(attempt, EventKind::AttemptAnswered(Arc::new(reply)));
        self.add(call, EventKind::CallAnswered { attempts: 1 })
    }

    /// A model's call of this name is answered.
    pub fn says(&mut self, name: &str, text: &str) -> &mut Self {
        let usage = Some(Usage::new(400, 60));
        let reply =
            Reply { usage, first_token_ms: Some(90), ..Reply::from_agent_text(text.into()) };
        self.answered(name, reply)
    }

    /// The attempt of the call of this name.
    pub fn attempt(&self, name: &str) -> SpanId {
        self.calls[name].1
    }

    /// The planner is asked.
    pub fn asks_plan(&mut self) -> &mut Self {
        self.call("plan", SpanId::RUN, Purpose::Plan, None);
        self
    }

    /// It gives the steps, and they are taken.
    pub fn plans(&mut self) -> &mut Self {
        self.asks_plan().after(600).says("plan", "{\"steps\": []}");
        let step = |(nth, step): (usize, ResearchStep)| PlannedStep {
            id: format!("s{}", nth + 1).into(),
            action: step.action().into(),
        };
        let steps = ResearchStep::ALL.into_iter().enumerate().map(step).collect();
        let call = self.calls["plan"].0;
        self.add(
            call,
            EventKind::Pattern(PatternFact::Research(ResearchFact::StepsAccepted { steps })),
        )
    }

    /// Sources are searched and found.
    pub fn finds(&mut self, sources: Vec<FoundSource>) -> &mut Self {
        let args = json!({"query": "card payments 5 March", "k": 8});
        self.call("search", SpanId::RUN, Purpose::Search, Some(args));
        self.after(300);
        self.answered("search", Reply::from_tool_result(Arc::new(json!({"status": "ok"}))));
        self.found.clone_from(&sources);
        let found = SourcesFound {
            query: "card payments 5 March".into(),
            sources: sources.into(),
            unsearched: BTreeMap::new(),
        };
        let call = self.calls["search"].0;
        self.add(
            call,
            EventKind::Pattern(PatternFact::Research(ResearchFact::SourcesFound(Box::new(found)))),
        )
    }

    /// These are kept, in this order; the others fell out.
    pub fn keeps(&mut self, kept: &[u32], dropped: &[(u32, DropReason)]) -> &mut Self {
        let mut all = Vec::new();
        for no in kept {
            let url = self.found[*no as usize - 1].url.to_string();
            let domain = url.split('/').nth(2).unwrap_or_default().to_owned();
            let trust = DOMAINS.iter().find(|(name, _)| *name == domain).map_or(0.3, |it| it.1);
            let source = SourceNo(*no);
            all.push(KeptSource { source, url: url.into(), domain: domain.as_str().into(), trust });
            self.kept.insert(*no, (domain, trust));
        }
        let out = |(no, reason): &(u32, DropReason)| DroppedSource {
            source: SourceNo(*no),
            reason: *reason,
        };
        let dropped = dropped.iter().map(out).collect();
        let deduped = SourcesDeduped { kept: all.into(), dropped };
        self.add(
            SpanId::RUN,
            EventKind::Pattern(PatternFact::Research(ResearchFact::SourcesDeduped(Box::new(
                deduped,
            )))),
        )
    }

    /// A source is looked at.
    pub fn looks_at(&mut self, no: u32) -> &mut Self {
        let span = self.open();
        self.sources.insert(no, span);
        let source = SourceNo(no);
        self.add(
            span,
            EventKind::Pattern(PatternFact::Research(ResearchFact::SourceStarted {
                parent: SpanId::RUN,
                source,
            })),
        )
    }

    /// It came out.
    pub fn comes(&mut self, no: u32, came: SourceOutcome) -> &mut Self {
        let span = self.sources[&no];
        self.add(
            span,
            EventKind::Pattern(PatternFact::Research(ResearchFact::SourceClosed(Box::new(came)))),
        )
    }

    /// An allowlist refuses it.
    pub fn denied(&mut self, no: u32, reason: Denial) -> &mut Self {
        self.looks_at(no).comes(no, SourceOutcome::Denied { reason, location: None })
    }

    /// Its page is asked for.
    pub fn asks_page(&mut self, no: u32) -> &mut Self {
        self.looks_at(no);
        let url = self.found[no as usize - 1].url.to_string();
        let source = SourceNo(no);
        let span = self.sources[&no];
        self.call("read", span, Purpose::Read { source }, Some(json!({ "url": url })));
        self
    }

    /// Its page cannot be had.
    pub fn skipped(&mut self, no: u32, reason: &str, text: &str) -> &mut Self {
        self.asks_page(no).after(120);
        let answer = json!({"status": "error", "error": reason, "text": text});
        self.answered("read", Reply::from_tool_result(Arc::new(answer)));
        self.comes(no, SourceOutcome::Skipped { reason: reason.into(), text: text.into() })
    }

    /// Its page comes.
    pub fn page(&mut self, no: u32, title: &str, published_at: &str, body: &str) -> &mut Self {
        let url = self.found[no as usize - 1].url.clone();
        let data = json!({"url": *url, "title": title, "published_at": published_at,
            "body": body, "content_type": "text/html"});
        let answer = json!({"status": "ok", "data": data});
        self.answered("read", Reply::from_tool_result(Arc::new(answer)));
        let day = |text: &str| text.parse::<Day>().ok();
        let age_days =
            day(published_at).and_then(|day_of| Some(day(&self.plan.as_of)?.days_since(day_of)));
        let page = PageRead {
            source: SourceNo(no),
            call: self.calls["read"].0,
            url,
            title: title.into(),
            published_at: published_at.into(),
            age_days,
            chars: body.chars().count() as u64,
            modified: false,
        };
        let span = self.sources[&no];
        self.add(
            span,
            EventKind::Pattern(PatternFact::Research(ResearchFact::PageRead(Box::new(page)))),
        )
    }

    /// Its page is read at once.
    pub fn reads(&mut self, no: u32, title: &str, published_at: &str, body: &str) -> &mut Self {
        self.asks_page(no).after(250).page(no, title, published_at, body)
    }

    /// The model is asked for notes of it.
    pub fn asks_notes(&mut self, no: u32) -> &mut Self {
        let span = self.sources[&no];
        self.call("notes", span, Purpose::Notes { source: SourceNo(no) }, None);
        self
    }

    /// A note is taken.
    pub fn note(&mut self, no: u32, claim: &str, quote: &str) -> &mut Self {
        self.notes += 1;
        self.taken.entry(no).or_default().0 += 1;
        let row = &self.found[no as usize - 1];
        let note = Note {
            id: NoteId::nth(self.notes),
            claim: claim.into(),
            quote: quote.into(),
            url: row.url.clone(),
            title: row.title.clone(),
            published_at: row.published_at.clone(),
            modified: false,
        };
        let span = self.sources[&no];
        self.add(
            span,
            EventKind::Pattern(PatternFact::Research(ResearchFact::NoteTaken {
                source: SourceNo(no),
                note: Arc::new(note),
            })),
        )
    }

    /// A note is refused.
    pub fn refuses(&mut self, no: u32, claim: &str, quote: &str) -> &mut Self {
        self.taken.entry(no).or_default().1 += 1;
        let reason = NoteIssue::QuoteNotInSource;
        let source = SourceNo(no);
        let refused = NoteRefused { source, reason, claim: claim.into(), quote: quote.into() };
        let span = self.sources[&no];
        self.add(
            span,
            EventKind::Pattern(PatternFact::Research(ResearchFact::NoteRefused(Box::new(refused)))),
        )
    }

    /// Its notes are in.
    pub fn noted(&mut self, no: u32) -> &mut Self {
        let (notes, refused) = self.taken.get(&no).copied().unwrap_or_default();
        self.comes(no, SourceOutcome::Read { notes, refused })
    }

    /// No further source is looked at.
    pub fn stops_reading(&mut self, why: ReadingEnd) -> &mut Self {
        self.add(
            SpanId::RUN,
            EventKind::Pattern(PatternFact::Research(ResearchFact::ReadingClosed { reason: why })),
        )
    }

    /// What the notes say of one another.
    pub fn compares(
        &mut self,
        agree: &[(usize, usize)],
        conflicts: &[(usize, &str, usize, &str)],
        unconfirmed: &[usize],
    ) -> &mut Self {
        let pair = |(left, right): &(usize, usize)| NotePair {
            left: NoteId::nth(*left),
            right: NoteId::nth(*right),
        };
        let conflict = |(left, says, right, other): &(usize, &str, usize, &str)| NoteConflict {
            left: NoteId::nth(*left),
            right: NoteId::nth(*right),
            left_figure: (*says).into(),
            right_figure: (*other).into(),
        };
        let compared = NotesCompared {
            agree: agree.iter().map(pair).collect(),
            conflicts: conflicts.iter().map(conflict).collect(),
            unconfirmed: unconfirmed.iter().map(|nth| NoteId::nth(*nth)).collect(),
        };
        self.add(
            SpanId::RUN,
            EventKind::Pattern(PatternFact::Research(ResearchFact::NotesCompared(Box::new(
                compared,
            )))),
        )
    }

    /// The notes are verified.
    pub fn verifies(&mut self, issues: &[(usize, NoteIssue)]) -> &mut Self {
        let issue = |(nth, issue): &(usize, NoteIssue)| NoteProblem {
            note: NoteId::nth(*nth),
            issue: *issue,
        };
        let issues = issues.iter().map(issue).collect();
        let verified = NotesVerified { checked: self.notes as u32, issues };
        self.add(
            SpanId::RUN,
            EventKind::Pattern(PatternFact::Research(ResearchFact::NotesVerified(Box::new(
                verified,
            )))),
        )
    }

    /// The model is asked for the answer.
    pub fn asks_answer(&mut self) -> &mut Self {
        self.call("answer", SpanId::RUN, Purpose::Synthesize, None);
        self
    }

    /// The answer is taken: each sentence with the notes it cites and whether it is unconfirmed.
    pub fn answers(&mut self, sentences: &[(&str, &[usize], bool)]) -> &mut Self {
        let sentence = |(text, cites, unconfirmed): &(&str, &[usize], bool)| Sentence {
            text: (*text).into(),
            citations: cites.iter().map(|nth| NoteId::nth(*nth)).collect(),
            unconfirmed: *unconfirmed,
        };
        let sentences: Arc<[Sentence]> = sentences.iter().map(sentence).collect();
        let mut citations: Vec<NoteId> = Vec::new();
        for id in sentences.iter().flat_map(|it| it.citations.iter()) {
            if !citations.contains(id) {
                citations.push(id.clone());
            }
        }
        let texts: Vec<&str> = sentences.iter().map(|it| &*it.text).collect();
        let text = texts.join(" ");
        let cited =
            AnswerCited { sentences, citations: citations.into(), unanswered: Arc::default() };
        self.add(
            SpanId::RUN,
            EventKind::Pattern(PatternFact::Research(ResearchFact::AnswerCited(Box::new(cited)))),
        );
        self.add(
            SpanId::RUN,
            EventKind::AnswerComposed { text: text.into(), by: None, end: Default::default() },
        )
    }
}

/// What the search of the stories found.
pub fn six() -> Vec<FoundSource> {
    vec![
        found(
            "https://official-status.example.com/incidents/2026-03-05",
            "Degraded card payments, 5 March",
            0.97,
            "2026-03-05",
        ),
        found(
            "https://vendor.example.com/blog/post-mortem",
            "What went wrong with our gateway",
            0.91,
            "2026-03-06",
        ),
        found(
            "https://official-status.example.com/incidents/2026-03-05?utm_source=feed",
            "Degraded card payments, 5 March",
            0.9,
            "2026-03-05",
        ),
        found(
            "https://community-rumors.example.net/t/cards-down",
            "Cards down for good?? My bank says weeks",
            0.88,
            "",
        ),
        found(
            "https://regulator.example.org/notices/17",
            "Notice 17: outage of card payments",
            0.7,
            "2026-03-06",
        ),
        found(
            "https://news.example.com/2026/03/cards",
            "Shops ask for cash as cards fail",
            0.66,
            "2026-03-05",
        ),
    ]
}

/// The page of the official status.
pub const STATUS: &str = "Degraded card payments, 5 March 2026\n\nStatus: resolved\n\n\
Between 09:40 and 11:25 UTC a part of card payments in the US region failed. The share of failed \
payments rose from its usual 0.4 % to\n  3.4 % at the peak at 10:15 UTC.\n\n\
The cause was a certificate of an upstream gateway that had expired. It was replaced at 11:10 UTC, \
and payments were back to normal at 11:25 UTC.\n\n\
No card data was exposed. Payments that failed were not charged.\n\n\
We will publish a full review within ten days.";

/// The page of the regulator.
pub const NOTICE: &str = "Notice 17\n\nOn 5 March 2026 a payment institution reported an outage of \
card payments. Payments were back to normal at 11:25 UTC. The institution reports that at the peak \
12 % of payments failed in the region concerned.\n\nThe institution has been asked for a report.";

/// The page of the news.
pub const NEWS: &str = "Shops asked for cash on Thursday as cards failed.\n\nA spokeswoman said that \
payments that failed were not charged.";

/// In the middle of reading: two sources fell out, notes of the second page are being taken.
pub fn reading() -> ResearchFacts {
    let mut facts = ResearchFacts::start();
    facts.after(20).plans().after(40).finds(six());
    let of = SourceNo(1);
    facts.after(10).keeps(&[1, 2, 5, 6, 4], &[(3, DropReason::Duplicate { duplicate_of: of })]);
    facts.after(30).reads(1, "Degraded card payments, 5 March", "2026-03-05", STATUS);
    facts.asks_notes(1).after(900).says("notes", "{\"notes\": []}");
    facts.note(
        1,
        "At the peak 3.4 % of payments failed.",
        "rose from its usual 0.4 % to 3.4 % at the peak at 10:15 UTC",
    );
    facts.note(
        1,
        "Payments were normal again at 11:25 UTC.",
        "payments were back to normal at 11:25 UTC",
    );
    facts.noted(1).after(10).denied(2, Denial::Execution).after(5);
    facts.reads(5, "Notice 17: outage of card payments", "2026-03-06", NOTICE);
    facts.asks_notes(5).after(500);
    facts
}

/// All is read: the notes of two pages contradict each other, one was refused.
pub fn read() -> ResearchFacts {
    let mut facts = reading();
    facts.after(400).says("notes", "{\"notes\": []}");
    facts.note(5, "At the peak 12 % failed.", "at the peak 12 % of payments failed");
    facts.note(5, "It was over at 11:25 UTC.", "Payments were back to normal at 11:25 UTC.");
    facts.refuses(5, "The fine is 2 million.", "was fined two million euros on the same day");
    facts.noted(5).after(20).reads(6, "Shops ask for cash as cards fail", "2026-03-05", NEWS);
    facts.asks_notes(6).after(700).says("notes", "{\"notes\": []}");
    facts.note(6, "Failed payments were not charged.", "payments that failed were not charged");
    facts.noted(6).after(5).stops_reading(ReadingEnd::MaxReadPages);
    facts
}

/// It has answered: with conflicts, agreement, an unconfirmed and an uncited sentence.
pub fn answered() -> ResearchFacts {
    let mut facts = read();
    facts.compares(&[(2, 4)], &[(1, "3.4 %", 3, "12 %")], &[5]);
    facts.after(5).verifies(&[]).after(20).asks_answer().after(1_300).says("answer", "{}");
    facts.answers(&[
        ("Card payments in the US failed in part on 5 March; sources differ on how many at the peak: 3.4 % or 12 %.", &[1, 3], false),
        ("Payments were back to normal at 11:25 UTC.", &[2, 4], false),
        ("Payments that failed were not charged [n5].", &[5], true),
        ("A full review is still to come.", &[], false),
    ]);
    facts.ends("success", None);
    facts
}

/// No source gave a note.
pub fn unreliable() -> ResearchFacts {
    let mut facts = ResearchFacts::start();
    let mut sources = six();
    sources[5].published_at = "2024-11-02".into();
    facts.after(20).plans().after(40).finds(sources);
    let of = SourceNo(1);
    facts.after(10).keeps(&[1, 2, 5, 6, 4], &[(3, DropReason::Duplicate { duplicate_of: of })]);
    facts.after(30).skipped(1, "not_found", "The server says that there is no such page (404).");
    facts.after(10).denied(2, Denial::Execution);
    facts.after(10).skipped(
        5,
        "robots_disallowed",
        "robots.txt of regulator.example.org disallows /notices.",
    );
    facts.after(10).reads(6, "Shops ask for cash as cards fail", "2024-11-02", NEWS);
    let text = "it is 490 days old; research.max_age_days is 365".into();
    facts.comes(6, SourceOutcome::Skipped { reason: "stale".into(), text });
    facts.after(10).denied(4, Denial::Policy);
    facts.after(5).stops_reading(ReadingEnd::NoMoreSources);
    facts.ends("no_reliable_sources", Some("read_extract"));
    facts
}

/// A quote that does not stand in its page ends the run.
pub fn misquoted() -> ResearchFacts {
    let mut plan = ResearchFacts::start().plan.clone();
    plan.misquotes = MisquotePolicy::Stop;
    let mut facts = ResearchFacts::of(plan);
    facts.after(20).plans().after(40).finds(six());
    facts
        .after(10)
        .keeps(&[1, 2, 5, 6, 4], &[(3, DropReason::Duplicate { duplicate_of: SourceNo(1) })]);
    facts.after(30).reads(1, "Degraded card payments, 5 March", "2026-03-05", STATUS);
    facts.asks_notes(1).after(900).says("notes", "{\"notes\": []}");
    facts.note(
        1,
        "At the peak 3.4 % of payments failed.",
        "rose from its usual 0.4 % to 3.4 % at the peak at 10:15 UTC",
    );
    facts.note(1, "Card data was stolen.", "an attacker has copied the data of all cards");
    facts.noted(1).stops_reading(ReadingEnd::MaxNotes);
    facts.compares(&[], &[], &[1, 2]).verifies(&[(2, NoteIssue::QuoteNotInSource)]);
    facts.ends("verification_failed:quote_not_in_source", Some("verify"));
    facts
}

/// A run whose sources, pages, notes and answer say this in every place.
pub fn hostile(text: &str) -> ResearchFacts {
    let long = text.repeat(3_000 / text.len() + 1);
    let mut facts = ResearchFacts::start();
    facts.plans();
    let url = format!("https://official-status.example.com/{text}");
    let all = vec![
        found(&url, text, 0.9, text),
        found(&long, &long, 0.8, &long),
        found("https://news.example.com/x", text, 0.1, ""),
    ];
    facts.finds(all).keeps(&[1, 3, 2], &[]);
    facts.reads(1, &long, text, &format!("{long}\n\n{text}")).asks_notes(1);
    facts.after(100).says("notes", text).note(1, &long, text).note(1, text, &long);
    facts.refuses(1, text, &long).noted(1);
    facts.skipped(3, text, &long).looks_at(2);
    let location = Some(long.as_str().into());
    facts.comes(2, SourceOutcome::Denied { reason: Denial::Policy, location });
    facts.stops_reading(ReadingEnd::NoMoreSources);
    facts.compares(&[(1, 2)], &[(1, text, 2, &long)], &[1, 2]).verifies(&[]);
    facts.asks_answer().says("answer", &long);
    facts.answers(&[(text, &[1], true), (&long, &[2], false), (text, &[], false)]);
    facts
}
