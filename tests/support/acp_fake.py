"""A fake coding agent over standard input and output. The argument chooses how it misbehaves. With WITNESS set
it holds that pipe open, and so do its children."""

import json
import os
import signal
import subprocess
import sys
import time

MODE = sys.argv[1]
if "WITNESS" in os.environ:
    os.set_inheritable(os.open(os.environ["WITNESS"], os.O_WRONLY), True)


def send(message):
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    sys.stdout.buffer.flush()


def read():
    line = sys.stdin.buffer.readline()
    if not line:
        os._exit(0)
    return json.loads(line)


def update(session, **fields):
    send({"method": "session/update", "params": {"sessionId": session, "update": fields}})


def say(session, text):
    update(session, sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


def end(message, word="end_turn"):
    send({"id": message["id"], "result": {"stopReason": word}})


def ask(session, number, options, call=None):
    call = call or {"toolCallId": f"t{number}", "title": "Delete all", "kind": "delete", "rawInput": {"path": "/"}}
    send({"id": number, "method": "session/request_permission", "params": {
        "sessionId": session, "options": options, "toolCall": call}})
    while True:
        answer = read()
        if answer.get("id") == number and "method" not in answer:
            return answer


YES = {"optionId": "y", "name": "Yes", "kind": "allow_once"}
NO = {"optionId": "n", "name": "No", "kind": "reject_once"}


def outcome(answer):
    return answer.get("result", {}).get("outcome", {}).get("optionId", "cancelled")


def play(message):
    session = message["params"]["sessionId"]
    prompt = message["params"]["prompt"][0]["text"]
    if MODE == "dies":
        say(session, "I beg")
        sys.stderr.write("out of memory\n")
        os._exit(9)
    if MODE in ("never", "deaf"):
        say(session, "I begin.")
        while True:
            heard = read()
            if heard.get("method") == "session/cancel" and MODE == "never":
                return end(message, "cancelled")
    if MODE == "twice":
        send({"id": 4711, "result": {"stopReason": "end_turn"}})
        send({"id": "x", "error": {"code": 1, "message": "no"}})
        say(session, "Once.")
        end(message)
        return end(message)
    if MODE == "texts":
        say(session, "As a text.")
        return send({"id": str(message["id"]), "result": {"stopReason": "end_turn"}})
    if MODE == "garbage":
        sys.stdout.write("Loading models…\n{not json\n[]\n")
        sys.stdout.flush()
        say(session, "After garbage.")
        return end(message)
    if MODE == "huge":
        sys.stdout.buffer.write(b"x" * 100_000_000)
        sys.stdout.buffer.flush()
        return end(message)
    if MODE == "flood":
        for _ in range(100):
            say(session, "y" * 50_000)
        return end(message)
    if MODE == "control":
        update(session, sessionUpdate="tool_call", toolCallId="\x1b]0;id\x07", title="\x1b[31mred\x1b[0m", status="in_progress")
        say(session, "\x1b[2Jgone\u202e")
        return end(message)
    if MODE == "leaks":
        token = os.environ["TOKEN"]
        for piece in ("My key is ", token[:5], token[5:], ".", token):
            say(session, piece)
        update(session, sessionUpdate="tool_call", toolCallId="t", title=token, rawInput={"k": token}, status="completed")
        say(session, "Key " + token)
        return end(message)
    if MODE == "other":
        say("another", "Not for you.")
        update(session, sessionUpdate="from_the_future", content=[1, 2])
        update(session)
        send({"method": "_vendor/thing", "params": {"sessionId": session}})
        say(session, "For you.")
        return end(message)
    if MODE == "word":
        return end(message, "tired")
    if MODE == "quits":
        return end(message, "cancelled")
    if MODE == "silent":
        return end(message)
    if MODE == "asks":
        return say(session, outcome(ask(session, 1, [YES, NO]))) or end(message)
    if MODE == "loop":
        answers = [outcome(ask(session, number, [YES, {**YES, "optionId": "a", "kind": "allow_always"}, NO]))
                   for number in range(1, 131)]
        say(session, f"{answers.count('n')} of {len(answers)} refused.")
        return end(message)
    if MODE == "wants":
        answers = []
        for number, (method, params) in enumerate([
            ("fs/read_text_file", {"path": "/etc/passwd"}), ("fs/write_text_file", {"path": "/x", "content": ""}),
            ("terminal/create", {"command": "id"}), ("session/request_permission", {"options": []}),
        ], 1):
            send({"id": number, "method": method, "params": {"sessionId": session, **params}})
            while True:
                answer = read()
                if answer.get("id") == number and "method" not in answer:
                    break
            answers.append(str(answer.get("error", {}).get("code")))
        say(session, " ".join(answers))
        return end(message)
    if MODE == "acts":
        folder = os.getcwd()
        diff = [{"type": "diff", "path": f"{folder}/seen.txt", "newText": "as shown\n"}]
        ask(session, 1, [YES, NO], {"toolCallId": "w", "title": "Write", "kind": "edit", "content": diff})
        said = []
        for number, (method, params) in enumerate([
            ("fs/write_text_file", {"path": f"{folder}/seen.txt", "content": "as shown\n"}),
            ("fs/write_text_file", {"path": f"{folder}/seen.txt", "content": "another\n"}),
            ("fs/write_text_file", {"path": "/etc/out", "content": "x"}),
            ("fs/read_text_file", {"path": f"{folder}/seen.txt"}),
            ("terminal/create", {"command": "sh", "args": ["-c", "echo $A; exit 3"], "env": [{"name": "A", "value": "hi"}]}),
            ("terminal/wait_for_exit", {"terminalId": "t1"}),
            ("terminal/create", {"command": "echo $$ >pid; sleep 600"}),
        ], 10):
            send({"id": number, "method": method, "params": {"sessionId": session, **params}})
            while True:
                answer = read()
                if answer.get("id") == number and "method" not in answer:
                    break
            said.append("no" if "error" in answer else "yes")
        while said[-1] == "yes" and not (os.path.exists("pid") and open("pid").read()):
            time.sleep(0.01)
        say(session, " ".join(said))
        return end(message)
    if MODE in ("cut", "surrogates"):
        sid = json.dumps(session)
        if MODE == "cut":
            sys.stdout.write('{"jsonrpc": "2.0", "method": "session/upd\n')
        else:
            head = '{"method": "session/update", "params": {"sessionId": ' + sid
            head += ', "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": '
            sys.stdout.write("\x1b]0;coder\x07" + head + '"Half \\ud83d"}}}}\n[' + head + '"\\ude00 done."}}}}]\n')
        sys.stdout.flush()
        return send({"id": message["id"], "result": {"stopReason": "end_turn"}, "error": None})
    if MODE == "children":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for alone in (False, True):
            subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, close_fds=False, start_new_session=alone)
        # A daemon: its parent has ended.
        subprocess.run(["sh", "-c", "setsid sleep 600 & exit"], stdin=subprocess.DEVNULL, close_fds=False)
        say(session, "Started one.")
        return end(message)
    say(session, f"[{os.getpid()}] {prompt}")
    end(message)


if MODE == "banner":
    sys.stdout.write("Welcome! Which model?\n")
    sys.stdout.flush()
    sys.stdin.read()
if MODE == "chatter":
    sys.stdout.write("loading\n" * 2000)
    sys.stdout.flush()
    sys.stdin.read()
if MODE == "dead":
    sys.stderr.write("no login found\n")
    os._exit(3)
sessions, logged_in = 0, False
LOGINS = {"login": [{"id": "login", "name": "Log in with Acme", "description": "Run `acme login`"}],
          "cached": [{"id": "browser", "name": "B"}, {"id": "cached_token", "name": "Cached token"}]}
while True:
    message = read()
    method = message.get("method")
    if method == "initialize":
        send({"id": message["id"], "result": {"protocolVersion": 2 if MODE == "newer" else 1,
                                              "authMethods": LOGINS.get(MODE, []),
                                              "agentCapabilities": {"loadSession": MODE == "loads"}}})
    elif method == "authenticate":
        logged_in = message["params"]["methodId"] == "cached_token"
        send({"id": message["id"], "result": {}})
    elif method == "session/new":
        if MODE in LOGINS and not logged_in:
            send({"id": message["id"], "error": {"code": -32000, "message": "Authentication required"}})
        elif MODE == "nameless":
            send({"id": message["id"], "result": {}})
        else:
            sessions += 1
            send({"id": message["id"], "result": {"sessionId": f"s{sessions}"}})
    elif method == "session/load":
        if message["params"]["sessionId"] == "known":
            send({"id": message["id"], "result": None})
        else:
            send({"id": message["id"], "error": {"code": -32602, "message": "no such session"}})
    elif method == "session/prompt":
        play(message)
