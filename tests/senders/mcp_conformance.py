"""The official conformance suite of MCP (npm: @modelcontextprotocol/conformance) on roundtable.

    python3 mcp_conformance.py FOLDER [SCENARIO...]

FOLDER has `node_modules` with the suite and with `node`, of which it needs version 22; ROUNDTABLE names the binary (default: target/debug/roundtable). Without
scenarios everything that the two revisions of the protocol require of a client runs, and what applies of
the server's. mcp-conformance.yml has what may fail; docs/mcp.md says why. The exit code is 0 if nothing
else fails.

The suite starts this file again as its client (`--client URL`), which plays a scripted run of roundtable against
the server of the suite. As a server roundtable has standard input and output only, so this file carries its
messages over HTTP (`Bridge`).
"""

import itertools
import json
import os
import queue
import shlex
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve()
ROUNDTABLE = os.environ.get("ROUNDTABLE") or str(HERE.parents[2] / "target/debug/roundtable")
REVISIONS = ["2025-11-25", "2026-07-28"]
# What applies to a server with tools of its own, of which each revision has its part.
SERVER = {
    "2025-11-25": ["server-initialize", "ping", "tools-list"],
    "2026-07-28": ["tools-list", "server-stateless", "caching"],
}

# The calls of each scenario of the client: (tool, arguments).
CALLS = {
    "tools_call": [("add_numbers", {"a": 5, "b": 3})],
    "elicitation-sep1034-client-defaults": [("test_client_elicitation_defaults", {})],
    "sse-retry": [("test_reconnection", {})],
    "sep-2322-client-request-state": [
        ("test_mrtr_echo_state", {}),
        ("test_mrtr_unrelated", {}),
        ("test_mrtr_no_state", {}),
        ("test_mrtr_no_result_type", {}),
    ],
    "http-standard-headers": [("test_headers", {})],
    "http-invalid-tool-headers": [("valid_tool", {"region": "eu"})],
}

TEAM = """
title = "Conformance"
pattern = "swarm"
goal = "Call the tools."
[swarm]
root = "desk"
[agents.desk]
description = "the desk"
members = ["clerk", "other"]
entry = "clerk"
[agents.other]
description = "another"
[agents.clerk]
description = "calls tools"
tools = ["srv.*"]
[tools.srv]
approve = false
[mcp.srv]
url = {url}
allow_private = true
[[script]]
agent = "other"
text = "Done."
[[script]]
person = "operator"
approve = true
"""


def toml(value):
    """A JSON value as TOML, on one line. TOML has no null, so a field that is null is left out."""
    if isinstance(value, dict):
        fields = ", ".join(f"{toml(k)} = {toml(v)}" for k, v in value.items() if v is not None)
        return "{ " + fields + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def roundtable(folder, *args):
    """Runs roundtable with a home of its own."""
    env = {"PATH": os.environ["PATH"], "HOME": folder, "XDG_STATE_HOME": f"{folder}/state"}
    return subprocess.run([ROUNDTABLE, *args], env=env, cwd=folder, capture_output=True, text=True)


def client(url):
    """One scenario of the client, named by the environment of the suite."""
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "conformance.toml")
        text = TEAM.format(url=toml(url))
        file.write_text(text + '[[script]]\nagent = "clerk"\ntext = "Done."\n')
        calls = CALLS.get(scenario, [])
        calls += [(it["name"], it.get("arguments", {})) for it in context.get("toolCalls", [])]
        if scenario == "json-schema-2020-12-preservation":
            listed = roundtable(folder, "tools", str(file), "--trust", "--json")
            tools = {tool["name"]: tool for tool in json.loads(listed.stdout)}
            schema = tools["json_schema_2020_12_tool"]["parameters"]
            calls = [("json_schema_echo", {"schema": schema})]
        for number, (tool, args) in enumerate(calls, 1):
            call = toml({"tool": f"srv.{tool}", "args": args})
            text += f'[[script]]\nagent = "clerk"\nround = {number}\ncalls = [{call}]\n'
        file.write_text(text + '[[script]]\nagent = "clerk"\ntext = "Done."\n')
        ended = roundtable(folder, "run", str(file), "--trust", "--people", "script", "--format", "text")
        print(ended.stdout, ended.stderr, sep="\n")
        return ended.returncode


class Process:
    """A `roundtable mcp`, and its answers by the id of their request."""

    def __init__(self, folder):
        env = {"PATH": os.environ["PATH"], "HOME": folder, "XDG_STATE_HOME": f"{folder}/state"}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([ROUNDTABLE, "mcp"], env=env, stdin=pipe, stdout=pipe, text=True)
        self.answers, self.ids, self.lock = {}, itertools.count(1), threading.Lock()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" not in message and (answer := self.answers.pop(message.get("id"), None)):
                answer.put(message)

    def send(self, message):
        with self.lock:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()

    def request(self, message):
        # Several clients count from the same number.
        number, answer = next(self.ids), queue.Queue()
        self.answers[number] = answer
        self.send({**message, "id": number})
        return {**answer.get(timeout=20), "id": message["id"]}


class Bridge(BaseHTTPRequestHandler):
    """The messages of `roundtable mcp` over HTTP: a process for each session, one for requests without."""

    protocol_version = "HTTP/1.1"
    sessions = {}

    def log_message(self, *_):
        pass

    def answer(self, status, message=None, session=None):
        body = b"" if message is None else json.dumps(message).encode()
        self.send_response(status)
        if session:
            self.send_header("mcp-session-id", session)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(405)

    def do_DELETE(self):
        self.answer(200)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        session = self.headers.get("mcp-session-id") or ""
        if message.get("method") == "initialize":
            session = f"s{len(self.sessions)}"
        if session not in self.sessions:
            if session and message.get("method") != "initialize":
                return self.answer(404)
            self.sessions[session] = Process(tempfile.mkdtemp(dir=self.server.folder))
        process = self.sessions[session]
        if "id" not in message or "method" not in message:
            process.send(message)
            return self.answer(202)
        answer = process.request(message)
        # As the protocol has it for servers without sessions.
        unknown = answer.get("error", {}).get("code") == -32601 and not session
        bad = answer.get("error", {}).get("code") in (-32602, -32022, -32021, -32020) and not session
        return self.answer(404 if unknown else 400 if bad else 200, answer, session)


def suite(folder, results, *args):
    """Runs the suite; whether nothing fails that may not."""
    program = Path(folder, "node_modules/@modelcontextprotocol/conformance/dist/index.js").resolve()
    baseline = HERE.with_name("mcp-conformance.yml")
    env = {**os.environ, "ROUNDTABLE": ROUNDTABLE}
    node = Path(folder, "node_modules/.bin/node").resolve()
    command = [str(node), str(program), *args, "--expected-failures", str(baseline)]
    ended = subprocess.run(command, cwd=results, env=env)
    print("==", *args, "ended with", ended.returncode, flush=True)
    return ended.returncode == 0


def main(folder, chosen):
    me = f"{shlex.quote(sys.executable)} {shlex.quote(str(HERE))} --client"
    with tempfile.TemporaryDirectory() as results:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Bridge)
        server.folder = results
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/mcp"
        ended = []
        for revision in REVISIONS:
            as_client, version = ["client", "--command", me], ["--spec-version", revision]
            if not chosen:
                ended.append(suite(folder, results, *as_client, "--requirements", revision))
            for scenario in chosen or SERVER[revision]:
                of = ["server", "--url", url] if scenario in SERVER[revision] else as_client
                ended.append(suite(folder, results, *of, "--scenario", scenario, *version))
        for process in Bridge.sessions.values():
            process.process.kill()
    return 0 if all(ended) else 1


if __name__ == "__main__":
    if sys.argv[1] == "--client":
        sys.exit(client(sys.argv[2]))
    sys.exit(main(sys.argv[1], sys.argv[2:]))
