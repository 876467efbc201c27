"""A hostile vendor, and clients of it: `hostile.py vendor` prints its port, `hostile.py CASE…` prints what a client got."""
import base64, gzip, json, os, socket, sys, threading
from urllib.parse import urlsplit

CHAT = {"model": "gpt-5.1", "choices": [{"message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5}}
BROTLI = "G5wAAIzDdKM9X5RyjEYRQXNL/fImLqwlkRXFJD669pg6LH0gJws9Kpr2zWyqaXIQugG34XOpQcss5X5cMWtfmnxhsyVzkhYPMHWZA1CN83BROR18AMDyXgC4SPE+d8xxxe2jremgSPR/"
ZSTD = "KLUv/SCdtQMAgkgaG4ClbQMLDdknsm3e32I3sYjBXMDLoIIONEbYCK0RqagxrRoMd05MtItepWsDXgrtq82/p7LBVSCMEgG8tBuYHLO/d2Knnpd3mmbEbH7HpOvsjodhRnVGuDMepMh5+SAgAr3H7wkNVWcBAwA6i4ewLEMEMw=="
ESCAPES = "\u001b]0;title\u0007\u001b[2J\u202e\u0000"

def whole(body, *headers, status="200 OK", kind="application/json"):
    lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(body)}", "connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

def chunked(*parts, kind="text/event-stream", ends=True):
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n".encode()
    return head + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + (b"0\r\n\r\n" if ends else b"")

def chat(text="fine", **more):
    return json.dumps({**CHAT, "choices": [{"message": {"role": "assistant", "content": text, **more}, "finish_reason": "stop"}]}).encode()

def event(text):
    return f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': text}}]})}\n\n".encode()

def echo(head, body):
    """The secrets of a request, wherever a vendor may write them."""
    names = ("authorization", "x-api-key", "cookie", "x-my-token")
    lines = [line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line]
    said = " ".join(value for name, value in lines if name.lower() in names) + " " + head.split(" ")[1]
    call = {"id": said, "type": "function", "function": {"name": said, "arguments": json.dumps({"said": said})}}
    choice = {"message": {"role": "assistant", "content": said, "tool_calls": [call]}, "finish_reason": said}
    return json.dumps({"model": said, "choices": [choice]}).encode(), said

def answer(case, head, body):
    if case == "endless_head":
        yield b"HTTP/1.1 200 OK\r\n"
        while True:
            yield b"x-more: " + b"x" * 1_000 + b"\r\n"
    elif case == "bomb":
        yield whole(gzip.compress(b" " * (200 << 20)), "content-encoding: gzip")
    elif case == "brotli":
        yield whole(base64.b64decode(BROTLI), "content-encoding: br")
    elif case == "zstd":
        yield whole(base64.b64decode(ZSTD), "content-encoding: zstd")
    elif case == "half_chunk":
        yield chunked(event("half"), ends=False)[:-10]
    elif case == "endless":
        yield chunked(ends=False)
        while True:
            part = event("more")
            yield b"%x\r\n%s\r\n" % (len(part), part)
    elif case == "events":
        yield chunked(*[event("e")] * 20_000, b"data: [DONE]\n\n")
    elif case == "lines":
        yield chunked(b"\n" * (1 << 20), kind="application/x-ndjson")
    elif case == "surrogate":
        yield whole(chat().replace(b"fine", b"\\ud800"))
    elif case == "list":
        yield whole(b"[" + b"[]," * 5_000_000 + b"[]]")
    elif case == "escapes":
        yield whole(json.dumps({"model": ESCAPES, "choices": [{"message": {"role": "assistant", "content": ESCAPES, "tool_calls": [
            {"id": ESCAPES, "function": {"name": ESCAPES, "arguments": ESCAPES}}]}, "finish_reason": ESCAPES}]}).encode())
    elif case == "error":
        yield whole(json.dumps({"error": {"message": ESCAPES}}).encode(), status="400 Bad Request")
    elif case == "echo":
        yield whole(echo(head, body)[0])
    elif case == "echo_error":
        yield whole(json.dumps({"error": {"message": echo(head, body)[1]}}).encode(), status="401 Unauthorized")
    elif case == "echo_stream":
        said = echo(head, body)[1]
        yield chunked(*[event(said[at:at + 7]) for at in range(0, len(said), 7)], b"data: [DONE]\n\n")
    else:
        yield whole(chat())

def serve(connection):
    with connection:
        got = b""
        while b"\r\n\r\n" not in got:
            more = connection.recv(65_536)
            if not more:
                return
            got += more
        head, body = got.split(b"\r\n\r\n", 1)
        head = head.decode()
        lengths = [int(line.split(":")[1]) for line in head.split("\r\n") if line.lower().startswith("content-length:")]
        while lengths and len(body) < lengths[0]:
            body += connection.recv(65_536)
        with open(os.environ["SEEN"], "a") as seen:
            seen.write(json.dumps({"path": head.split(" ")[1]}) + "\n")
        try:
            for part in answer(head.split(" ")[1].split("/")[2], head, body):
                connection.sendall(part)
        except OSError:
            pass

def ask(path, headers="", body=None, base="OPENAI_BASE_URL", line=None, leave=0):
    """Sends a request as these bytes, and returns what comes until the end, or until so many bytes."""
    url = urlsplit(os.environ[base])
    body = json.dumps(body or {"model": "gpt-5.1", "max_tokens": 50, "messages": [{"role": "user", "content": path}]}).encode()
    host = "" if "host:" in headers.lower() else f"Host: {url.netloc}\r\n"
    line = line or f"POST {url.path}{path} HTTP/1.1"
    with socket.create_connection((url.hostname, url.port), timeout=60) as connection:
        connection.sendall(f"{line}\r\n{host}{headers}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        got = b""
        while True:
            more = connection.recv(65_536)
            got += more
            if not more or leave and len(got) > leave:
                return got

def status(got):
    return got.split(b" ", 2)[1].decode() if got else "nothing"

def client(case):
    if case == "keys":
        login = base64.b64encode(b"user:canary-basic-1").decode()
        for echo in ("echo", "echo_error", "echo_stream"):
            for header in ("Authorization: Bearer canary-bearer-1", f"Authorization: Basic {login}", "x-api-key: canary-api-1",
                           "Cookie: sid=canary-cookie-1; a=b", "x-my-token: canary-token-1"):
                ask(f"/{echo}/chat/completions", header + "\r\n")
            ask(f"/{echo}/chat/completions?key=canary-query-1&api-key=canary%2Dquery%2D2")
        return "sent"
    if case == "clients":
        url, bare = urlsplit(os.environ["OPENAI_BASE_URL"]), urlsplit(os.environ["ANTHROPIC_BASE_URL"])
        tries = [ask("/ok/chat/completions", line="POST /wrong/OPENAI_BASE_URL/ok HTTP/1.1"),
                 ask("/ok/chat/completions", "Host: evil.example\r\n"),
                 ask("/ok/chat/completions", f"Host: {url.netloc}\r\nHost: evil.example\r\n"),
                 ask("/ok/chat/completions", "Origin: http://evil.example\r\n"),
                 ask("", line=f"POST {bare.path}:x@127.0.0.1:1/v1 HTTP/1.1"),
                 ask("", line=f"CONNECT 127.0.0.1:1 HTTP/1.1"),
                 ask("/ok/chat/completions", "".join(f"x-{n}: x\r\n" for n in range(10_000)))]
        return " ".join(map(status, tries))
    if case == "burst":
        got = []
        threads = [threading.Thread(target=lambda: got.append(status(ask("/ok/chat/completions")))) for _ in range(300)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        return str(got.count("200"))
    if case == "endless":
        return status(ask("/endless/chat/completions", leave=10_000))
    return status(ask(f"/{case}/chat/completions"))

if sys.argv[1] == "vendor":
    server = socket.create_server(("127.0.0.1", 0), backlog=1_024)
    print(server.getsockname()[1], flush=True)
    while True:
        threading.Thread(target=serve, args=server.accept()[:1], daemon=True).start()
for case in sys.argv[2:]:
    print(case, client(case), flush=True)
