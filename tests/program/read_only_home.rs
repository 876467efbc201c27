//! A state folder that cannot be written.
#![cfg(unix)]

use crate::support::binary::{Ended, Home, end};

/// Runs the program with its state below this path.
fn run(home: &Home, state: &str, args: &[&str]) -> Ended {
    end(home.command(args).env("XDG_STATE_HOME", state))
}

/// Folders in which no user can make a file, not even the superuser.
fn unwritable(home: &Home) -> Vec<String> {
    home.write("file", "no folder");
    let file = home.path().join("file").display().to_string();
    let mut states = vec![file];
    if cfg!(target_os = "linux") {
        states.push("/proc/self".to_owned());
    }
    states
}

#[test]
fn unkept_run_has_own_exit_code() {
    let home = Home::new();
    for state in unwritable(&home) {
        for (args, code) in [
            (&["run", "checkout-unanimous", "--instant"][..], 0),
            (&["run", "checkout-blocked", "--instant", "--fail-on", "no_go"], 1),
        ] {
            let ran = run(&home, &state, args);
            assert_eq!(ran.code, Some(code), "{state}: {ran:?}");
            let warning = ran.err.lines().find(|line| line.contains("runs are not kept: "));
            let warning = warning.unwrap_or_else(|| panic!("{state}: {ran:?}"));
            assert!(warning.contains(&state) && warning.contains("--no-store"), "{warning}");
            let quiet = run(&home, &state, &[args, &["--no-store"]].concat());
            assert_eq!((quiet.code, quiet.err.as_str()), (Some(code), ""), "{state}");
        }
    }
}

#[test]
fn kept_run_commands_advise_fix() {
    let home = Home::new();
    for state in unwritable(&home) {
        for args in [&["runs"][..], &["show", "last"], &["resume", "last"], &["open", "last"]] {
            let ran = run(&home, &state, args);
            assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{state}: {ran:?}");
            let says = ran.err.contains(&state) && ran.err.contains("XDG_STATE_HOME");
            assert!(says, "{state}: {}", ran.err);
        }
    }
}
