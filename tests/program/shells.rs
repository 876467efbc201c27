//! Completions of shells, and manual pages.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::support::binary::Home;

/// The words that may follow, without their descriptions.
fn completed(home: &Home, words: &[&str]) -> Vec<String> {
    let ended = home.run(&[&["complete", "--"], words].concat());
    assert_eq!((ended.code, &*ended.err), (Some(0), ""), "{words:?}: {ended:?}");
    let word = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
    ended.out.lines().map(word).collect()
}

const MINE: &str = "[flags.a]\nlabel = 'A'\n[flags.b]\n[inputs.region]\nvalue = 'EU'\n";

#[test]
fn completes_words_for_each_command() {
    let home = Home::new();
    home.write("scenarios/mine.toml", MINE);
    home.write("scenarios/with blanks.toml", MINE);
    for (words, expected) in [
        (&["run", "checkout-l"][..], &["checkout-launch"][..]),
        (&["run", "mi"], &["mine", "mixed-table"]),
        (&["run", "with"], &[]),
        (&["sc"], &["scenarios", "schema"]),
        (&["run", "checkout-launch", "--flag", ""], &["legal_analyst=on", "legal_analyst=off"]),
        (&["run", "--flag=leg"], &[]),
        (
            &["run", "checkout-launch", "--flag=leg"],
            &["--flag=legal_analyst=on", "--flag=legal_analyst=off"],
        ),
        (&["test", "mine", "--flag", "b"], &["b=on", "b=off"]),
        (&["run", "--instant", "mine", "--flag", "a=on@"], &[]),
        (&["run", "scenarios/mine.toml", "--set", "inputs."], &["inputs.region="]),
        (&["run", "none", "--flag", ""], &[]),
        (&["run", "-", "--flag", ""], &[]),
        (&["run", "x", "--format", "js"], &["json", "jsonl"]),
        (&["run", "x", "--form"], &["--format"]),
        (&["run", "x", "--fail-on", "d"], &["degraded"]),
        (&["run", "x", "--message", ""], &[]),
        (&["run", "x", "--", "--form"], &[]),
        (&["--theme", "l"], &["light"]),
        (&["new", "sw"], &["swarm"]),
        (&["new", "--from", "front"], &["front-desk"]),
        (&["runs", "p"], &["prune", "pin"]),
        (&["runs", "pin", ""], &[]),
        (&["runs", "--scenario", "mine"], &["mine"]),
        (&["man", "runs", "re"], &["restore"]),
        (&["completions", "z"], &["zsh"]),
        (&["panic"], &[]),
        (&[], &[]),
    ] {
        assert_eq!(completed(&home, words), expected, "{words:?}");
    }
    // Nothing was started or kept.
    let left = std::fs::read_dir(home.path()).expect("a folder").count();
    assert_eq!(left, 1, "only the scenarios");
}

#[test]
fn completes_kept_run_ids() {
    let home = Home::new();
    let ran = home.run(&["run", "checkout-unanimous", "--instant", "--format", "json"]);
    let id = ran.json()["run_id"].as_str().expect("an id").to_owned();
    assert_eq!(completed(&home, &["show", ""]), ["last", &id]);
    assert_eq!(completed(&home, &["diff", "last", "la"]), ["last"]);
    assert_eq!(completed(&home, &["run", "x", "--replay", &id[..4]]), [&*id]);
    // Of a run its scenario's flags.
    let of_run = home.run(&["run", "checkout-launch", "--instant", "--format", "json"]);
    assert_eq!(of_run.code, Some(0), "{of_run:?}");
    for run in ["last", "last@round:2"] {
        let flags = completed(&home, &["fork", run, "--flag", ""]);
        assert_eq!(flags, ["legal_analyst=on", "legal_analyst=off"], "{run}");
    }
    assert_eq!(completed(&home, &["fork", "none", "--flag", ""]), [""; 0]);
    // A store that cannot be read is passed over.
    std::fs::remove_dir_all(home.path().join("state/roundtable")).expect("removed");
    home.write("state/roundtable/runs.db", "junk");
    assert_eq!(completed(&home, &["show", ""]), [""; 0]);
}

/// The script of a shell, checked by the shell if it is installed; returns whether it is.
fn is_good_script(home: &Home, shell: &str) -> bool {
    let script = home.run(&["completions", shell]);
    assert_eq!((script.code, &*script.err), (Some(0), ""), "{script:?}");
    home.write(&format!("roundtable.{shell}"), &script.out);
    let mut command = Command::new(shell);
    command.arg("-n").arg(home.path().join(format!("roundtable.{shell}")));
    match command.output() {
        Ok(output) => {
            assert!(output.status.success() && output.stderr.is_empty(), "{shell}: {output:?}");
            true
        }
        Err(error) => {
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
            assert_ne!(shell, "bash", "bash is everywhere");
            false
        }
    }
}

/// What a shell prints for a script on its standard input.
fn printed(home: &Home, shell: &str, script: &str) -> String {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_roundtable"));
    let folder = program.parent().expect("a folder").display();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(shell);
    command.current_dir(home.path()).env_clear().envs(home.env()).env("PATH", path);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("a shell");
    child.stdin.take().expect("a pipe").write_all(script.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("an end");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{script}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn bash_completes_a_line() {
    let home = Home::new();
    assert!(is_good_script(&home, "bash"));
    let line = |line: &str| {
        let script = format!(
            "source roundtable.bash\nCOMP_LINE='{line}'\nCOMP_POINT=${{#COMP_LINE}}\n\
             _roundtable\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
        );
        printed(&home, "bash", &script).trim_end().to_owned()
    };
    assert_eq!(line("roundtable run checkout-l"), "checkout-launch");
    // bash has `legal_analyst=` already, and replaces the part after it.
    assert_eq!(line("roundtable run checkout-launch --flag legal_analyst=o"), "on\noff");
    assert_eq!(
        line("roundtable run checkout-launch --flag leg"),
        "legal_analyst=on\nlegal_analyst=off"
    );
    // A file below the home folder, as it is typed.
    home.write("home/desk.toml", include_str!("../../scenarios/checkout-launch.toml"));
    for file in ["~/desk.toml", "$HOME/desk.toml"] {
        assert_eq!(line(&format!("roundtable run {file} --flag legal_analyst=of")), "off");
    }
    assert_eq!(line("roundtable run x --message "), "");
    // Not installed: nothing is printed.
    assert_eq!(line("no-such-program run "), "");
}

#[test]
fn zsh_and_fish_take_their_scripts() {
    let home = Home::new();
    is_good_script(&home, "zsh");
    if is_good_script(&home, "fish") {
        let script = "source roundtable.fish; complete --do-complete 'roundtable run checkout-l'\n";
        let shown = printed(&home, "fish", script);
        assert_eq!(shown, "checkout-launch\tCheckout v2: go or no-go\n");
    }
}

#[test]
fn manual_covers_each_command() {
    let home = Home::new();
    let page = home.run(&["man"]);
    assert_eq!((page.code, &*page.err), (Some(0), ""), "{page:?}");
    for part in [".TH roundtable 1", "EXIT STATUS", "ENVIRONMENT", "ROUNDTABLE_LOG", "141"] {
        assert!(page.out.contains(part), "no {part}");
    }
    let page = home.run(&["man", "runs", "pin"]);
    assert!(page.out.contains("roundtable\\-runs\\-pin"), "{}", page.out);
    let version = concat!("roundtable ", env!("CARGO_PKG_VERSION"));
    assert!(page.out.lines().any(|line| line.starts_with(".TH ") && line.contains(version)));
    let wrong = home.run(&["man", "rnu"]);
    assert_eq!((wrong.code, &*wrong.out), (Some(2), ""), "{wrong:?}");
    assert!(
        wrong.err.contains("rnu is not a command of roundtable\n  help: did you mean `run`?"),
        "{wrong:?}"
    );
}
