//! `guard --listen`: a proxy for programs that are started elsewhere.

use std::process::Command;

use super::Vendor;
use crate::support::binary::{Running, end};

/// The variables that a listening proxy prints.
fn variables(running: &mut Running) -> Vec<(String, String)> {
    let mut set = Vec::new();
    loop {
        let line = running.complains();
        let pair = line.trim().split_once('=').filter(|(name, _)| !name.contains(' '));
        set.extend(pair.map(|(name, value)| (name.to_owned(), value.to_owned())));
        // The last one.
        if line.contains("OPENAI_WEBSOCKET_BASE_URL=") {
            return set;
        }
    }
}

/// Each process is a run of its own, and the limits are for all of them together.
#[test]
fn each_process_is_a_run() {
    let vendor = Vendor::start();
    let mut command = vendor.home.command(&["guard", "--listen", "0", "--max-calls", "3"]);
    let mut running = Running::start(command.envs(vendor.variables()));
    let set = variables(&mut running);
    let script = "
import guarded
for nth in range(2):
    body = {'model': 'gpt-5.1', 'messages': [{'role': 'user', 'content': str(nth)}]}
    print(guarded.send('zipped', body=body)[0]['status'])
";
    let mut statuses = Vec::new();
    for name in ["first.py", "second.py"] {
        vendor.home.write(name, script);
        let mut program = Command::new("python3");
        program.arg(name).current_dir(vendor.home.path()).envs(set.clone());
        let ended = end(&mut program);
        statuses.extend(ended.out.lines().map(str::to_owned));
    }
    assert_eq!(statuses, ["200", "200", "200", "402"]);
    // Its page has another origin than those that are allowed.
    let base = &set.iter().find(|(name, _)| name == "OPENAI_BASE_URL").expect("OpenAI").1;
    let script = "
import sys, urllib.error, urllib.request
request = urllib.request.Request(sys.argv[1] + '/models', headers={'Origin': 'http://a.example'})
try:
    urllib.request.urlopen(request)
except urllib.error.HTTPError as error:
    print(error.code)
";
    let page = end(Command::new("python3").args(["-c", script, base]));
    assert_eq!(page.out, "403\n", "{page:?}");
    running.signal("INT");
    let (_, _, said) = running.end();
    assert!(said.contains("first") && said.contains("second"), "{said}");
    let runs = vendor.home.run(&["runs", "--json"]).json();
    let calls: Vec<_> = runs.as_array().expect("runs").iter().map(|run| &run["status"]).collect();
    assert_eq!(calls.len(), 2, "{runs}");
    let refused = vendor.home.run(&["guard", "--listen", "0.0.0.0:0"]);
    let why = "keys and prompts cross the network in clear";
    assert!(refused.code == Some(2) && refused.err.contains(why), "{refused:?}");
}
