//! Programs to watch: one for Python alone, which speaks OTLP by itself, and the virtual environments of real
//! frameworks.

use std::path::{Path, PathBuf};

/// Posts a span that ends when a line comes, or at once, and prints what it got.
pub const SENDER: &str = r#"
import json, os, sys, time, urllib.request

def span(id, parent, name, **more):
    now = str(time.time_ns())
    return {"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": id, "parentSpanId": parent,
            "name": name, "startTimeUnixNano": now, "endTimeUnixNano": now,
            "attributes": [{"key": key, "value": {"stringValue": str(value)}} for key, value in more.items()]}

def post(*spans):
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    url = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).read()

post(span("00000000000000a1", "", "invoke_agent desk", **{"gen_ai.operation.name": "invoke_agent",
     "gen_ai.agent.name": "desk", "roundtable.pending": "true"}))
post(span("00000000000000a2", "00000000000000a1", "execute_tool refund", **{"gen_ai.tool.name": "refund",
     "gen_ai.tool.call.arguments": '{"charge": "ch_2"}', "roundtable.pending": "true"}))
line = sys.stdin.readline().strip() if len(sys.argv) > 1 else "re_31"
print("got", line)
post(span("00000000000000a2", "00000000000000a1", "execute_tool refund", **{"gen_ai.tool.name": "refund",
     "gen_ai.tool.call.result": line}))
post(span("00000000000000a1", "", "invoke_agent desk", **{"gen_ai.operation.name": "invoke_agent",
     "gen_ai.agent.name": "desk", "output.value": "Refunded."}))
"#;

/// The interpreter of a framework's virtual environment; `None`: the tests have none.
pub fn python_of(framework: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("ROUNDTABLE_SENDERS")?;
    let python = PathBuf::from(folder).join(framework).join("bin/python");
    match python.exists() {
        true => Some(python),
        false => {
            println!("SKIPPED: there is no {}", python.display());
            None
        }
    }
}

/// The command of a program beside the virtual environments: of Python, or of Node, which finds its packages beside the
/// script. `None`: the tests have no such environment.
pub fn sender_of(framework: &str, script: &str, home: &Path) -> Option<Vec<String>> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/senders");
    if framework != "node" {
        let script = scripts.join(script).to_string_lossy().into_owned();
        return Some(vec![python_of(framework)?.to_string_lossy().into_owned(), script]);
    }
    let packages = PathBuf::from(std::env::var_os("ROUNDTABLE_SENDERS")?).join("node/node_modules");
    if !packages.exists() {
        println!("SKIPPED: there is no {}", packages.display());
        return None;
    }
    for name in [script, "model.mjs"] {
        std::fs::copy(scripts.join(name), home.join(name)).expect("copied");
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink(packages, home.join("node_modules")).expect("linked");
    Some(vec!["node".to_owned(), script.to_owned()])
}
