"""A vendor of models that answers from a table, and a client of it: both with the standard library alone.

`guarded.py vendor` prints its port and writes each request that it gets as a line of JSON to the file in $SEEN.
`guarded.py client` sends each request of the table to the addresses in the variables, and prints each response."""
import gzip, hashlib, http.client, json, os, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

def sse(*events, names=False):
    lines = [(f"event: {e['type']}\n" if names else "") + f"data: {e if isinstance(e, str) else json.dumps(e)}\n\n" for e in events]
    return [line.encode() for line in lines]

def chunk(delta, finish=None, **more):
    return {"id": "c1", "model": "gpt-5.1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "prompt_tokens_details": {"cached_tokens": 4}}
CALL = {"id": "call_7", "type": "function", "function": {"name": "refund", "arguments": "{\"amount\": 5}"}}
ASKED = [{"role": "system", "content": "Help."}, {"role": "user", "content": "Refund me: grün"}]
TOOLS = [{"type": "function", "function": {"name": "refund", "description": "Refunds.", "parameters": {"type": "object", "properties": {"amount": {"type": "integer"}}}}}]

# For each request: variable, path, body, status, headers of the response, parts of its body.
TABLE = {
    "whole": ("OPENAI_BASE_URL", "/chat/completions", {"model": "gpt-5.1", "messages": ASKED, "tools": TOOLS}, 200,
              {}, [json.dumps({"id": "c0", "model": "gpt-5.1", "choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [CALL]}, "finish_reason": "tool_calls"}], "usage": USAGE}).encode()]),
    "streamed": ("OPENAI_BASE_URL", "/chat/completions", {"model": "gpt-5.1", "messages": ASKED, "stream": True}, 200,
                 {"content-type": "text/event-stream"},
                 sse(chunk({"role": "assistant", "content": "Don"}), chunk({"content": "e."}),
                     chunk({"tool_calls": [{"index": 0, "id": "call_8", "function": {"name": "refund", "arguments": "{\"amo"}}]}),
                     chunk({"tool_calls": [{"index": 0, "function": {"arguments": "unt\": 6}"}}]}, "tool_calls"),
                     {"id": "c1", "model": "gpt-5.1", "choices": [], "usage": USAGE}, "[DONE]")),
    "zipped": ("OPENAI_BASE_URL", "/chat/completions", {"model": "gpt-5.1", "messages": [{"role": "user", "content": "zip"}]}, 200,
               {"content-encoding": "gzip"}, [gzip.compress(json.dumps({"model": "gpt-5.1", "choices": [{"message": {"role": "assistant", "content": "zipped"}, "finish_reason": "stop"}], "usage": USAGE}).encode(), mtime=0)]),
    "responses": ("OPENAI_BASE_URL", "/responses", {"model": "gpt-5.1", "instructions": "Help.", "input": "Hi", "stream": True}, 200,
                  {"content-type": "text/event-stream"},
                  sse({"type": "response.output_text.delta", "delta": "Hel"}, {"type": "response.output_text.delta", "delta": "lo."},
                      {"type": "response.completed", "response": {"id": "r1", "model": "gpt-5.1", "status": "completed", "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]}], "usage": {"input_tokens": 8, "output_tokens": 3}}}, names=True)),
    "messages": ("ANTHROPIC_BASE_URL", "/v1/messages", {"model": "claude-haiku-4-5", "max_tokens": 64, "system": "Help.", "messages": [{"role": "user", "content": "Hi"}], "stream": True}, 200,
                 {"content-type": "text/event-stream"},
                 sse({"type": "message_start", "message": {"id": "m1", "role": "assistant", "model": "claude-haiku-4-5", "content": [], "usage": {"input_tokens": 5, "cache_read_input_tokens": 20, "output_tokens": 1}}},
                     {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                     {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Certainly."}},
                     {"type": "content_block_stop", "index": 0},
                     {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "tu_1", "name": "refund", "input": {}}},
                     {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{\"amount\""}},
                     {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ": 7}"}},
                     {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
                     {"type": "message_stop"}, names=True)),
    "google": ("GOOGLE_GEMINI_BASE_URL", "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}, 200,
               {"content-type": "text/event-stream"},
               sse({"candidates": [{"content": {"role": "model", "parts": [{"text": "Gu"}]}}]},
                   {"candidates": [{"content": {"role": "model", "parts": [{"text": "ten Tag"}, {"functionCall": {"name": "refund", "args": {"amount": 8}}}]}, "finishReason": "STOP"}],
                    "usageMetadata": {"promptTokenCount": 4, "candidatesTokenCount": 6, "thoughtsTokenCount": 2}, "modelVersion": "gemini-2.5-flash"})),
    "ollama": ("OLLAMA_HOST", "/api/chat", {"model": "qwen3", "messages": [{"role": "user", "content": "Hi"}]}, 200,
               {"content-type": "application/x-ndjson"},
               [json.dumps(line).encode() + b"\n" for line in ({"model": "qwen3", "message": {"role": "assistant", "content": "Well"}, "done": False},
                {"model": "qwen3", "message": {"role": "assistant", "content": ", hi."}, "done": True, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 4})]),
    "embeddings": ("OPENAI_BASE_URL", "/embeddings", {"model": "text-embedding-3-small", "input": ["a", "b"]}, 200,
                   {}, [json.dumps({"model": "text-embedding-3-small", "data": [{"embedding": [0.1]}], "usage": {"prompt_tokens": 2, "total_tokens": 2}}).encode()]),
    "refused": ("OPENAI_BASE_URL", "/chat/completions", {"model": "gpt-5.1", "messages": [{"role": "user", "content": "refuse"}]}, 401,
                {}, [json.dumps({"error": {"message": "Incorrect API key provided: sk-canary-header-1.", "type": "invalid_request_error"}}).encode()]),
    "models": ("OPENAI_BASE_URL", "/models", None, 200, {}, [b'{"object": "list", "data": []}']),
    "large": ("OPENAI_BASE_URL", "/chat/completions", {"model": "gpt-5.1", "messages": [{"role": "user", "content": "x" * 1_000_000}]}, 200,
              {}, [json.dumps({"model": "gpt-5.1", "choices": [{"message": {"role": "assistant", "content": "y" * 1_000_000}, "finish_reason": "stop"}], "usage": USAGE}).encode()]),
    "empty": ("OPENAI_BASE_URL", "/nothing", {}, 204, {}, []),
}

failures = {}

class Vendor(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args): pass
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        case = self.headers.get("x-case", "")
        headers = sorted((k.lower(), v) for k, v in self.headers.items() if k.lower() not in ("host", "connection"))
        with open(os.environ["SEEN"], "a") as seen:
            seen.write(json.dumps({"case": case, "method": self.command, "path": self.path, "headers": headers, "body": hashlib.sha256(body).hexdigest()}) + "\n")
        if case.startswith("fails"):  # fails:N: the first N requests of it.
            failures[case] = failures.get(case, 0) + 1
            status, extra, parts = (503, {"retry-after": "1"}, [b'{"error": {"message": "overloaded"}}']) if failures[case] <= int(case.split(":")[1]) else TABLE["zipped"][3:]
        elif case == "hangs":
            time.sleep(60)
            return
        else:
            status, extra, parts = TABLE[case][3:]
        self.send_response(status)
        chunked = "stream" in extra.get("content-type", "") or "ndjson" in extra.get("content-type", "")
        for name, value in {"content-type": "application/json", "x-request-id": case, **extra}.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header(*(("transfer-encoding", "chunked") if chunked else ("content-length", str(sum(map(len, parts))))))
        self.end_headers()
        for part in parts:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part) if chunked else part)
            self.wfile.flush()
        if chunked:
            self.wfile.write(b"0\r\n\r\n")
    do_GET = do_POST

def send(case, variable=None, path=None, body=None, headers=None):
    row = TABLE.get(case, (None, None, None))
    base = urlsplit(os.environ[variable or row[0]])
    path, body = row[1] if path is None else path, row[2] if body is None else body
    connection = http.client.HTTPConnection(base.hostname, base.port, timeout=30)
    raw = None if body is None else json.dumps(body, ensure_ascii=False).encode()
    sent = {"authorization": "Bearer sk-canary-header-1", "x-case": case, "content-type": "application/json", **(headers or {})}
    connection.request("GET" if raw is None else "POST", base.path.rstrip("/") + path, raw, sent)
    response = connection.getresponse()
    content = response.read()
    known = sorted((k.lower(), v) for k, v in response.getheaders() if k.lower() not in ("date", "server", "connection"))
    return {"case": case, "status": response.status, "headers": known, "body": hashlib.sha256(content).hexdigest(), "bytes": len(content)}, content

def client(cases):
    for case in cases or TABLE:
        print(json.dumps(send(case)[0]))

if __name__ == "__main__":
    if sys.argv[1] == "vendor":
        server = ThreadingHTTPServer(("127.0.0.1", 0), Vendor)
        server.daemon_threads = True
        print(server.server_port, flush=True)
        server.serve_forever()
    client(sys.argv[2:])
