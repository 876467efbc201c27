"""A model for the programs beside this file: a server on this machine that speaks Chat completions. It first calls the
tool `stock`, then replies. `account()` is what it was asked, which the tests compare with what is watched. Where
MODEL_WAITS names a file, a streamed reply stops in its middle until that file is there.
"""

import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAME, REPLY, USAGE = "model-1", "There are 7 lamps.", {"prompt_tokens": 20, "completion_tokens": 6, "total_tokens": 26}
calls, WAITS = [], os.environ.get("MODEL_WAITS")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        calls.append(asked)
        is_second = any(message["role"] == "tool" for message in asked["messages"])
        call = {"index": 0, "id": "call_1", "type": "function",
                "function": {"name": "stock", "arguments": '{"item": "lamp"}'}}
        message = {"role": "assistant", "content": REPLY} if is_second else {
            "role": "assistant", "content": None, "tool_calls": [call]}
        finish = "stop" if is_second else "tool_calls"
        about = {"id": f"c{len(calls)}", "created": 1, "model": NAME}
        if asked.get("stream"):
            parts = [{**message, "content": part} for part in (REPLY[:9], REPLY[9:])] if is_second else [message]
            choices = [[{"index": 0, "delta": part}] for part in parts]
            choices += [{"index": 0, "delta": {}, "finish_reason": finish}], []
            chunks = [{**about, "object": "chat.completion.chunk", "choices": choice} for choice in choices]
            chunks[-1]["usage"] = USAGE
            body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        else:
            choice = {"index": 0, "message": message, "finish_reason": finish}
            body = json.dumps({**about, "object": "chat.completion", "choices": [choice], "usage": USAGE})
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if asked.get("stream") else "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        half = body.find("\n\n") + 2 if is_second and asked.get("stream") else 0
        self.wfile.write(body[:half].encode())
        while half and WAITS and not os.path.exists(WAITS):
            time.sleep(0.02)
        self.wfile.write(body[half:].encode())


def start():
    """Starts the server; returns its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}/v1"


def account():
    """What the program has asked, as a line of JSON."""
    first = calls[0]["messages"] if calls else []
    print(json.dumps({
        "calls": len(calls), "prompt_tokens": 20 * len(calls), "completion_tokens": 6 * len(calls),
        "roles": [message["role"] for message in first], "tools": [tool["function"]["name"] for tool in calls[0]["tools"]],
    }))
