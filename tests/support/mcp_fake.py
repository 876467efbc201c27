"""A fake MCP server over standard input and output. The first argument chooses how it starts, the name of a
tool how it answers. With WITNESS set it holds that pipe open, and so do its children."""

import json
import os
import signal
import subprocess
import sys
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else "plain"
MODERN = "2026-07-28"
witness = os.open(os.environ["WITNESS"], os.O_WRONLY) if "WITNESS" in os.environ else None
if witness is not None:
    os.set_inheritable(witness, True)


def write_raw(data):
    os.write(1, data) if len(data) < 4096 else sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def send(message):
    write_raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


class Messages:
    """The messages of the client. Those that a wait has passed over come after it."""

    def __init__(self):
        self.held = []

    def __iter__(self):
        return self

    def __next__(self):
        return self.held.pop(0) if self.held else self.read()

    def read(self):
        line = sys.stdin.buffer.readline()
        if not line:
            raise StopIteration
        return json.loads(line)

    def wait_for(self, is_it):
        passed = []
        for message in self:
            if is_it(message):
                self.held = passed + self.held
                return message
            passed.append(message)
        os._exit(0)

    def wait_for_cancel(self):
        return self.wait_for(lambda it: it.get("method") == "notifications/cancelled")


def text(*parts):
    return {"content": [{"type": "text", "text": part} for part in parts]}


def tell_witness(*pids):
    os.write(witness, "".join(f"{pid}\n" for pid in pids).encode())


def tool(name, **more):
    return {"name": name, "inputSchema": {"type": "object"}, **more}


SCHEMA = {
    "type": "object",
    "properties": {"total": {"type": "number"}},
    "required": ["total"],
}
FORM = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}
TOOLS = [
    tool("echo", description="Says it again.", annotations={"readOnlyHint": True}),
    tool("titled", title="A title"),
    tool("hinted", annotations={"title": "A hint", "readOnlyHint": False}),
    tool("structured", outputSchema=SCHEMA),
    tool("bad_structured", outputSchema=SCHEMA),
    tool("no_structured", outputSchema=SCHEMA),
    {"name": "no_schema"},
    {"name": "wrong_schema", "inputSchema": {"type": "string"}},
    {"description": "has no name"},
    tool("echo", description="a second one of this name"),
]


def pages(params):
    """tools/list, in the way of the mode."""
    cursor = (params or {}).get("cursor")
    number = int(cursor or 0)
    if MODE == "pages":
        more = {"nextCursor": str(number + 1)} if number < 2 else {}
        return {"tools": [tool(f"tool{number}")], **more}
    if MODE == "endless":
        return {"tools": [tool(f"tool{number}")], "nextCursor": str(number + 1)}
    if MODE == "circle":
        return {"tools": [tool(f"tool{number}")], "nextCursor": str((number + 1) % 3)}
    if MODE == "many":
        return {"tools": [tool(f"tool{n}") for n in range(5000)]}
    if MODE == "no_tools":
        return {"nothing": True}
    return {"tools": TOOLS}


def ask(id, **params):
    send({"id": id, "method": "elicitation/create", "params": params})


def wait_for(stream, id):
    """The response to a request of ours."""
    return stream.wait_for(lambda it: it.get("id") == id and "method" not in it)


def form(id, message="Who are you?", schema=FORM):
    ask(id, message=message, requestedSchema=schema)


def call(id, params, stream):
    """Answers one call."""
    name, args = params["name"], params.get("arguments") or {}
    token = params.get("_meta", {}).get("progressToken")

    def answer(result):
        send({"id": id, "result": result})

    def progress(**more):
        send({"method": "notifications/progress", "params": {"progressToken": token, **more}})

    if name == "echo":
        answer(text(*args.get("texts", [json.dumps(args)])))
    elif name == "environment":
        answer(text(json.dumps(dict(os.environ))))
    elif name == "structured":
        answer({**text("7 in all"), "structuredContent": {"total": 7, "token": os.environ.get("TOKEN")}})
    elif name == "bad_structured":
        answer({**text("?"), "structuredContent": {"total": "seven"}})
    elif name == "no_structured":
        answer(text("?"))
    elif name == "parts":
        answer({"content": [
            {"type": "text", "text": "one"},
            {"type": "image", "mimeType": "image/png", "data": "A" * 16532 + "AA=="},
            {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
            {"type": "resource_link", "name": "notes.md", "mimeType": "text/plain", "uri": "file:///n\u001b"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "its text"}},
            {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "a/b", "blob": "AAAAAAAA"}},
            {"type": "hologram", "data": "?"},
            "no part",
        ]})
    elif name == "empty":
        answer({})
    elif name == "result":
        answer(args["result"])
    elif name == "odd_json":
        # Half an emoji, and a number that JSON does not have.
        odd = '{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "7 \\ud83d"}], "_meta": {"x": NaN}}}'
        write_raw((odd % id).encode() + b"\n")
    elif name == "failed":
        answer({**text("no \u001b[2J such order " + os.environ.get("TOKEN", ""), "x" * args.get("more", 0)), "isError": True, **({"structuredContent": args["structured"]} if "structured" in args else {})})
    elif name == "failed_silently":
        answer({"content": [], "isError": True})
    elif name == "no_result":
        answer(["a", "list"])
    elif name == "task":
        answer({"resultType": "task", "taskId": "7", "status": "working", "createdAt": "2026-01-01T00:00:00Z",
                "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 1000})
    elif name == "rpc_error":
        send({"id": id, "error": {"code": args["code"], "message": args.get("says", "so \u001b[2J ") + os.environ.get("TOKEN", ""), **({"data": args["data"]} if "data" in args else {})}})
    elif name == "twice":
        answer(text("first"))
        answer(text("second"))
        send({"id": id, "error": {"code": -1, "message": "third"}})
    elif name == "other_ids":
        send({"id": 4711, "result": text("nobody waits for it")})
        send({"id": "nobody", "error": {"code": -1, "message": "nor for this"}})
        send({"id": None, "error": {"code": -1, "message": "nor for this"}}) if args.get("null") else None
        answer(text("mine"))
    elif name == "string_id":
        send({"id": str(id), "result": text("as a string")})
    elif name == "garbage":
        write_raw(b"\n\r\n   \nnot json\n{}\n[]\n{\"jsonrpc\": \"2.0\"}\n\xff\xfe\n\x1b]0;title\x07\n")
        write_raw(b"[" * 10000 + b"\n")
        write_raw(json.dumps({"jsonrpc": "2.0", "id": id, "result": text("after")}).encode() + b"\r\n")
    elif name == "no_line_end":
        write_raw(json.dumps({"jsonrpc": "2.0", "id": id, "result": text("the last")}).encode())
        os._exit(0)
    elif name == "huge":
        piece = b"x" * (1 << 20)
        try:
            for _ in range(args["mib"]):
                sys.stdout.buffer.write(piece)
            write_raw(b"\n")
        except BrokenPipeError:
            pass
    elif name == "large":
        answer(text("x" * args["bytes"]))
    elif name == "controls":
        send({"method": "notifications/message", "params": {"level": "\u0000", "data": "\u001b[2J"}})
        send({"method": "\u001b]0;x\u0007", "params": {"\u0000": "\u202e"}})
        answer(text("".join(map(chr, range(32)))))
    elif name == "notifications":
        for n in range(args["many"]):
            send({"method": "notifications/message", "params": {"level": "info", "data": n}})
            progress(progress=n)
        answer(text("done"))
    elif name == "progress":
        for n in args.get("steps", [1, 2]):
            progress(progress=n, total=2, message=f"step {n}")
            send({"method": "notifications/progress", "params": {"progressToken": 4711, "progress": 9}})
        if args.get("hangs"):
            return
        answer(text("done"))
    elif name == "requests":
        # Many requests; the answers are read only if that is wanted.
        for n in range(args["many"]):
            send({"id": n, "method": "ping"})
        if args.get("reads"):
            for _ in range(args["many"]):
                next(stream)
            answer(text("answered"))
        else:
            time.sleep(1000)
    elif name == "die":
        print("it was \u001b[2J " + os.environ.get("TOKEN", ""), file=sys.stderr, flush=True)
        os._exit(3)
    elif name == "never":
        if witness is not None:
            tell_witness(os.getpid())
    elif name == "die_after_cancel":
        stream.wait_for_cancel()
        os._exit(4)
    elif name == "report_cancel":
        if witness is not None:
            tell_witness(os.getpid())
        global cancelled
        cancelled = stream.wait_for_cancel()["params"]["requestId"] == id
    elif name == "was_cancelled":
        answer(text(str(cancelled)))
    elif name == "close_output":
        os.close(1)
        time.sleep(1000)
    elif name == "close_input":
        os.close(0)
        if witness is not None:
            tell_witness(os.getpid())
        time.sleep(1000)
    elif name == "loud":
        for n in range(20000):
            print(f"line {n} {os.environ.get('TOKEN', '')}", file=sys.stderr)
        os._exit(5)
    elif name == "family":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen(
            ["/bin/sh", "-c", "trap '' TERM; sleep 1000 & echo $! >&3; wait; sleep 1000"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            pass_fds=(witness,), env={"PATH": "/bin:/usr/bin"},
            preexec_fn=lambda: os.dup2(witness, 3),
        )
        tell_witness(os.getpid(), child.pid)
        answer(text("started"))
    elif name == "pid":
        answer(text(str(os.getpid())))
    elif name == "ask":
        form("q1", schema=args.get("schema", FORM))
        answer(text(json.dumps(wait_for(stream, "q1"), sort_keys=True)))
    elif name == "ask_url":
        ask("q1", mode="url", message="Open it", url="https://a.example", elicitationId="7")
        answer(text(json.dumps(wait_for(stream, "q1"), sort_keys=True)))
    elif name == "ask_many":
        for n in range(30):
            form(f"q{n}")
        replies = [next(stream) for _ in range(args["answers"])]
        answer(text(" ".join(sorted(reply["result"]["action"] for reply in replies))))
    elif name == "ask_and_forget":
        form("q1")
        answer(text("answered myself"))
    elif name == "ask_and_cancel":
        form("q1")
        send({"method": "notifications/cancelled", "params": {"requestId": "q1", "reason": "late"}})
        answer(text("done without"))
    elif name == "ask_for_other":
        if args.get("wait"):
            return None, id
        form("q1")
        answer(text(json.dumps(wait_for(stream, "q1")["result"]["action"])))
    elif name == "ask_later":
        # Asks when the tools are listed, and says in the next call what was answered.
        global asks_later
        asks_later = True
        answer(text("ended"))
    elif name == "what_later":
        answer(text(later["result"]["action"]))
    elif name == "sampling":
        send({"id": "s1", "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}})
        first = wait_for(stream, "s1")
        send({"id": "s2", "method": "roots/list"})
        second = wait_for(stream, "s2")
        answer(text(f"{first['error']['code']} {second['error']['code']}"))
    elif name == "required":
        # Multi round trip requests.
        state, responses = params.get("requestState"), params.get("inputResponses")
        if state is None:
            answer({"resultType": "input_required", "requestState": "s1", "inputRequests": {
                "who": {"method": "elicitation/create", "params": {
                    "mode": "form", "message": "Who are you?", "requestedSchema": args.get("schema", FORM)}},
                "where": {"method": "elicitation/create", "params": {
                    "mode": "url", "message": "Open it", "url": "https://a.example"}},
            }})
        elif state == "s1":
            answer({"resultType": "input_required", "requestState": "s2 " + json.dumps(responses, sort_keys=True)})
        else:
            answer({"resultType": "complete", **text(state)})
    elif name == "required_for_ever":
        answer({"resultType": "input_required", "inputRequests": {
            "who": {"method": "elicitation/create", "params": {
                "mode": "form", "message": "Again?", "requestedSchema": FORM}}}})
    elif name == "required_sampling":
        answer({"resultType": "input_required", "inputRequests": {
            "a": {"method": "roots/list"}}})
    else:
        send({"id": id, "error": {"code": -32602, "message": f"unknown tool {name}"}})


cancelled = None
asks_later = False
later = None


def main():
    if MODE == "die":
        print("no configuration\nfix \u001b[2J it " + os.environ.get("TOKEN", ""), file=sys.stderr, flush=True)
        os._exit(7)
    if MODE == "die_quietly":
        print("usage: fake", flush=True)
        os._exit(0)
    if MODE == "banner":
        print("Welcome to the \u001b[1mfake\u001b[0m server!\n\n{\"level\": \"info\"}", flush=True)
    if MODE == "silent":
        if witness is not None:
            tell_witness(os.getpid())
        time.sleep(1000)
    stream = Messages()
    count = 0
    for message in stream:
        method, id = message.get("method"), message.get("id")
        if id is None or method is None:
            continue
        if method == "server/discover":
            count += 1
            if MODE == "legacy_dies":
                os._exit(1)
            if MODE == "silent_discovery":
                continue
            if MODE == "wrong_version":
                send({"id": id, "result": {"resultType": "complete", "supportedVersions": ["2099-01-01"],
                                           "capabilities": {}, "ttlMs": 0, "cacheScope": "private"}})
            elif MODE == "discovers_nothing":
                send({"id": id, "result": {}})
            elif MODE in ("modern", "modern_only"):
                send({"id": id, "result": {"resultType": "complete", "supportedVersions": [MODERN],
                                           "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}})
            else:
                send({"id": id, "error": {"code": -32601, "message": "what?"}})
        elif method == "initialize":
            if MODE in ("refuses", "wrong_version", "modern_only"):
                send({"id": id, "error": {"code": -32602, "message": "not \u001b[2J you"}})
                continue
            if MODE == "no_info":
                send({"id": id, "result": {"hello": True}})
                continue
            send({"id": 999, "result": {}})
            if MODE == "php":
                send({"id": id, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": [], "logging": True}}})
                continue
            send({"id": id, "result": {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "fake", "version": json.dumps(message["params"])},
            }})
        elif method == "tools/list":
            if asks_later:
                form("later")
                global later
                later = wait_for(stream, "later")
            send({"id": id, "result": pages(message.get("params"))})
        elif method == "tools/call":
            call(id, message["params"], stream)
        elif method == "ping":
            send({"id": id, "result": {}})


try:
    main()
except BrokenPipeError:
    os._exit(0)
if MODE == "says_bye":
    os.write(witness, b"bye\n")
if MODE == "stays":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(1000)
