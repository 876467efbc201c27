//! Pictures of screens, with the real binary: which moment they show, and that nothing in them is more
//! than text.

use crate::support::binary::{Ended, Home};

const LAUNCH: [&str; 4] = ["picture", "checkout-launch", "--flag", "legal_analyst=on@round:2"];

fn picture(home: &Home, words: &[&str], more: &[&str]) -> String {
    let drawn = home.run(&[words, more].concat());
    assert_eq!((drawn.code, drawn.err.as_str()), (Some(0), ""), "{words:?} {more:?}");
    drawn.out
}

fn fails(home: &Home, words: &[&str], code: i32) -> Ended {
    let ended = home.run(words);
    assert_eq!((ended.code, ended.out.as_str()), (Some(code), ""), "{words:?}: {ended:?}");
    ended
}

/// Checks that an SVG is well-formed, and consists of texts and rectangles alone.
fn assert_plain_svg(svg: &str) {
    let is_allowed = |c: char| c == '\n' || (c >= ' ' && c != '\u{7f}' && c != '\u{9b}');
    assert!(svg.chars().all(is_allowed), "control characters: {svg}");
    let mut open = Vec::new();
    for part in svg.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("an end of the tag");
        assert!(!text.contains('>') && tag.matches('"').count() % 2 == 0, "{part}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{part}"),
            None => {
                let name = tag.split(' ').next().expect("a name");
                assert!(["svg", "title", "g", "rect", "text"].contains(&name), "{part}");
                let has_end = tag.ends_with('/');
                assert_eq!(has_end, name == "rect", "{part}");
                if !has_end {
                    open.push(name);
                }
            }
        }
        for entity in part.split('&').skip(1) {
            let name = entity.split(';').next();
            assert!(matches!(name, Some("amp" | "lt" | "gt" | "quot" | "#39")), "{part}");
        }
    }
    assert!(open.is_empty() && svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{open:?}");
}

#[test]
fn draws_boundary_time_and_end() {
    let home = Home::new();
    let at = |at: &str| picture(&home, &LAUNCH, &["--text", "--at", at]);
    let boundary = at("round:2");
    assert!(boundary.contains("LIVE     round 1/3"), "round 2 has not begun: {boundary}");
    let time = at("00:05.2");
    assert_eq!(time, at("5200ms"), "both are times of the run's clock");
    for part in ["LIVE     round 2/3", "joined in R2", "attempt 2 ●", "chargeback alerts are"] {
        assert!(time.contains(part), "no {part}: {time}");
    }
    let end = picture(&home, &LAUNCH, &["--text"]);
    assert_eq!(end, at("end"));
    assert!(end.contains("GO WITH CAUTION") && end.contains("run.closed"), "{end}");
    assert_eq!(
        (end.lines().count(), end.lines().map(|it| it.chars().count()).max()),
        (36, Some(120))
    );
    assert_eq!(home.run(&["runs", "--json"]).json(), serde_json::json!([]), "it is not kept");
}

#[test]
fn same_moment_has_same_bytes() {
    let home = Home::new();
    for words in [
        &["picture", "checkout-launch", "--at", "4s"][..],
        &["picture", "vendor-brownout", "--at", "6s", "--size", "200x50", "--theme", "light"],
        &["picture", "front-desk", "--ascii", "--size", "80x24"],
    ] {
        let svg = picture(&home, words, &[]);
        assert_eq!(svg, picture(&home, words, &[]));
        assert_plain_svg(&svg);
        let is_light = words.contains(&"light");
        assert_eq!(svg.contains("rx=\"8\" fill=\"#ffffff\""), is_light, "{words:?}");
        assert_eq!(svg.is_ascii(), words.contains(&"--ascii"), "{words:?}");
    }
}

#[test]
fn kept_run_and_log_draw_same() {
    let home = Home::new();
    let flag = "legal_analyst=on@round:2";
    home.run(&["run", "checkout-launch", "--instant", "--flag", flag]);
    for file in ["run.jsonl", "run.jsonl.gz"] {
        assert_eq!(home.run(&["export", "last", "-o", file]).code, Some(0));
    }
    for at in ["round:2", "end", "0s"] {
        let kept = picture(&home, &["picture", "last", "--at", at], &[]);
        assert_plain_svg(&kept);
        for file in ["run.jsonl", "run.jsonl.gz", "./run.jsonl"] {
            assert_eq!(kept, picture(&home, &["picture", file, "--at", at], &[]), "{file} {at}");
        }
    }
    // A log whose end is missing shows its last event.
    let log = std::fs::read_to_string(home.path().join("run.jsonl")).expect("a log");
    let lines: Vec<&str> = log.lines().take(30).collect();
    home.write("cut.jsonl", &(lines.join("\n") + "\n"));
    let cut = home.run(&["picture", "cut.jsonl", "--text"]);
    assert!(cut.code == Some(0) && cut.out.contains("LIVE"), "{cut:?}");
    assert!(cut.err.contains("the run has not ended"), "{cut:?}");
    let changed = fails(&home, &["picture", "last", "--set", "goal=x"], 2);
    assert!(changed.err.contains("roundtable fork last"), "{changed:?}");
}

#[test]
fn missing_moment_error_lists_available() {
    let home = Home::new();
    for at in ["round:9", "rond:2"] {
        let ended = fails(&home, &["picture", "checkout-launch", "--at", at], 2);
        let why = format!("--at {at}: no such boundary\n  help: the run has round:1, message:1:");
        assert!(ended.err.contains(&why) && ended.err.contains("finalize"), "{ended:?}");
    }
    let late = fails(&home, &["picture", "checkout-launch", "--at", "1:00:00"], 2);
    assert!(late.err.contains("the run is over at 00:0"), "{late:?}");
    for (words, why) in [
        (&["--at", "4"][..], "is not a time"),
        (&["--at", ""], "give a boundary"),
        (&["--size", "0x1"], "use COLSxROWS"),
        (&["--set", "budget"], "--set budget"),
        (&["--flag", "no_such=on"], "no such flag"),
        (&["--theme", "pink"], "no such theme"),
    ] {
        let ended = fails(&home, &[&["picture", "checkout-launch"], words].concat(), 2);
        assert!(ended.err.contains(why), "{ended:?}");
    }
    let none = fails(&home, &["picture", "no-such-run"], 2);
    assert!(none.err.contains("no kept run is called no-such-run"), "{none:?}");
    let outside = fails(&home, &["picture", "real-services"], 2);
    assert!(outside.err.contains("roundtable picture last"), "{outside:?}");
}

#[test]
fn keeps_existing_file() {
    let home = Home::new();
    let words = ["picture", "checkout-launch", "--size", "80x24"];
    let printed = picture(&home, &words, &[]);
    assert_eq!(picture(&home, &words, &["-o", "new.svg"]), "");
    let read = |file: &str| std::fs::read_to_string(home.path().join(file)).expect("a file");
    assert_eq!(read("new.svg"), printed);
    home.write("mine.svg", "mine");
    let refused = fails(&home, &[&words[..], &["-o", "mine.svg"]].concat(), 1);
    assert!(refused.err.contains("mine.svg cannot be written\n  cause: it exists"), "{refused:?}");
    assert_eq!(read("mine.svg"), "mine");
}

#[test]
fn hostile_text_stays_text() {
    let home = Home::new();
    home.write(
        "hostile.toml",
        r##"title   = "</text><script>a()</script> & \u001b]0;x\u0007\u009b2J"
pattern = "collaboration"
goal    = "\"' onload='a()' ]]> <!-- &lt; \u202e \ufffe"
[budget]
min_go_votes = 1
[collaboration]
sequence = ["a"]
finalize_prompt = "Sum up."
[roles.a]
prompt = "Judge."
[[script]]
step = "finalize"
text = "<style>*{}</style>\u0000\u001b[31m"
[[script]]
reply = { stance = "go", summary = "<svg onload=a()> & \u001b[2J", confidence = 0.9, actions = ["x"] }
"##,
    );
    for at in ["end", "finalize", "0s"] {
        let svg = picture(&home, &["picture", "hostile.toml", "--at", at], &[]);
        assert_plain_svg(&svg);
        assert!(!svg.contains('\u{202e}') && !svg.contains('\u{fffe}'), "{svg}");
        assert!(svg.contains("&lt;script&gt;"), "{svg}");
        let text = picture(&home, &["picture", "hostile.toml", "--at", at, "--text"], &[]);
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text}");
    }
}

/// The changes of a text: the share of the time, and whether it is seen from then on.
type Changes = Vec<(f64, bool)>;

/// The texts of an animated picture, each with the frames that show it: `None` for all of them.
fn film_texts(svg: &str) -> Vec<(String, Option<Changes>)> {
    let (style, drawn) =
        svg.split_once("<style>\n").expect("a style").1.split_once("</style>\n").expect("its end");
    let number =
        regex_lite::Regex::new(r"([0-9.]+)%\{visibility:(visible|hidden)\}").expect("a pattern");
    let frames = |name: &str| {
        let rule = style.split(&format!("@keyframes {name}{{")).nth(1).expect("its keyframes");
        let rule = rule.lines().next().expect("a line");
        let changes = number.captures_iter(rule);
        changes.map(|it| (it[1].parse().expect("a number"), &it[2] == "visible")).collect()
    };
    let (mut texts, mut group) = (Vec::new(), None);
    for line in drawn.lines() {
        if let Some(rest) = line.strip_prefix("<g class=\"f\" style=\"animation-name:") {
            group = Some(frames(rest.split('"').next().expect("a name")));
        } else if line == "</g>" {
            group = None;
        } else if line.starts_with("<text ") {
            texts.push((line.to_owned(), group.clone()));
        }
    }
    texts
}

/// Place and words of a text, without its style.
fn place(text: &str) -> String {
    let style =
        regex_lite::Regex::new(" (class|fill|font-[a-z]+|opacity|text-decoration)=\"[^\"]*\"");
    style.expect("a pattern").replace_all(text, "").into_owned()
}

/// Checks that these texts are those of a still picture.
fn assert_same_texts<'a>(shown: impl Iterator<Item = &'a String>, still: &str) {
    let mut shown: Vec<_> = shown.map(|text| place(text)).collect();
    let mut still: Vec<_> =
        still.lines().filter(|line| line.starts_with("<text ")).map(place).collect();
    shown.sort();
    still.sort();
    assert_eq!(shown, still);
}

#[test]
fn animation_plays_whole_run() {
    let home = Home::new();
    home.run(&["run", "refund-desk", "--instant"]);
    assert_eq!(home.run(&["export", "last", "-o", "run.jsonl"]).code, Some(0));
    // On a busy machine the head of a log comes a moment after its start.
    let log = std::fs::read_to_string(home.path().join("run.jsonl")).expect("a log");
    let later = |line: &str| {
        let mut event: serde_json::Value = serde_json::from_str(line).expect("an event");
        event["at_us"] = (event["at_us"].as_u64().expect("a time") + 700).into();
        format!("{event}\n")
    };
    let events = log.lines().filter(|line| line.contains("\"at_us\""));
    home.write("late.jsonl", &events.map(later).collect::<String>());
    for words in [
        &["picture", "checkout-launch", "--size", "100x30"][..],
        &["picture", "refund-desk", "--theme", "light", "--ascii"],
        &["picture", "run.jsonl", "--size", "80x24"],
        &["picture", "late.jsonl", "--size", "80x24"],
    ] {
        let film = picture(&home, words, &["--animate"]);
        assert_eq!(film, picture(&home, words, &["--animate"]), "{words:?}");
        let (before, rest) = film.split_once("<style>\n").expect("a style");
        let (css, after) = rest.split_once("</style>\n").expect("its end");
        assert_plain_svg(&(before.to_owned() + after));
        assert!(!css.contains(['<', '&', '"']), "{css}");
        assert!(css.contains("prefers-reduced-motion") && !css.contains("url"), "{css}");
        assert!(film.len() < 200_000, "{} bytes: {words:?}", film.len());
        // What is shown at first and at last is the still picture of that moment.
        let texts = film_texts(&film);
        let first = texts
            .iter()
            .filter(|(_, frames)| frames.as_ref().is_none_or(|it| it[0] == (0.0, true)));
        let still = |at: &str| picture(&home, words, &["--at", at]);
        assert_same_texts(first.map(|(text, _)| text), &still("0s"));
        let last = texts.iter().filter(|(_, frames)| {
            frames.as_ref().is_none_or(|it| it.last().is_some_and(|(_, is_shown)| *is_shown))
        });
        assert_same_texts(last.map(|(text, _)| text), &still("end"));
        // No more frames than there are steps, and each at a step.
        let length = css.split("animation:").nth(1).and_then(|it| it.split("ms").next());
        let length: f64 = length.and_then(|it| it.parse().ok()).expect("a time");
        let times = texts.iter().flat_map(|(_, frames)| frames.iter().flatten());
        let mut steps: Vec<f64> = times.map(|(share, _)| share * length / 20_000.0).collect();
        assert!(steps.iter().all(|it| (it - it.round()).abs() < 0.01), "{steps:?}");
        steps.sort_by(f64::total_cmp);
        steps.dedup_by(|a, b| a.round() == b.round());
        assert!((10..=81).contains(&steps.len()), "{} frames", steps.len());
    }
}

#[test]
fn animation_refuses_what_stands_still() {
    let home = Home::new();
    for words in [&["--text"][..], &["--at", "end"]] {
        let words = [&["picture", "checkout-launch", "--animate"], words].concat();
        assert!(fails(&home, &words, 2).err.contains("cannot be used with"), "{words:?}");
    }
    home.run(&["run", "checkout-unanimous", "--instant"]);
    home.run(&["export", "last", "-o", "run.jsonl"]);
    let log = std::fs::read_to_string(home.path().join("run.jsonl")).expect("a log");
    home.write("head.jsonl", &(log.lines().next().expect("a head").to_owned() + "\n"));
    let still = fails(&home, &["picture", "head.jsonl", "--animate"], 1);
    assert!(still.err.contains("nothing changes on the screen"), "{still:?}");
    let outside = fails(&home, &["picture", "real-services", "--animate"], 2);
    assert!(outside.err.contains("roundtable picture last"), "{outside:?}");
}

#[test]
fn every_size_can_be_drawn() {
    let home = Home::new();
    for size in ["1x1", "1x36", "20x5", "300x2", "1000x200"] {
        assert_plain_svg(&picture(&home, &["picture", "dev-team", "--size", size], &[]));
    }
}
