"""A receiver of OTLP with the official messages. Prints its port, then a line of JSON for each span.

The path says how it answers: /ok; /slow after a while, /refuse with 400, /busy with 503 at first, /partial takes
no span. `unknown` are the attributes that neither the conventions of GenAI nor those of OpenInference have.
"""

import gzip
import importlib
import inspect
import json
import pkgutil
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import openinference.semconv.trace as openinference
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.semconv._incubating import attributes as genai


def published() -> set[str]:
    found = set()
    modules = [
        importlib.import_module(f"{package.__name__}.{module.name}")
        for package in (genai, importlib.import_module("opentelemetry.semconv.attributes"))
        for module in pkgutil.iter_modules(package.__path__)
    ]
    holders = modules + [c for _, c in inspect.getmembers(openinference, inspect.isclass)]
    for holder in holders:
        found |= {v for k, v in vars(holder).items() if k.isupper() and isinstance(v, str)}
    return found


KNOWN = published()
LOCK = threading.Lock()
SEEN = {"busy": 0}


def plain(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(item) for item in value.array_value.values]
    return getattr(value, kind) if kind else None


def show(span, to: str) -> None:
    attributes = {a.key: plain(a.value) for a in span.attributes}
    events = [
        {"name": e.name, "attributes": {a.key: plain(a.value) for a in e.attributes}} for e in span.events
    ]
    names = list(attributes) + [name for event in events for name in event["attributes"]]
    line = {
        "to": to.removesuffix("/v1/traces"),
        "trace": span.trace_id.hex(),
        "span": span.span_id.hex(),
        "parent": span.parent_span_id.hex(),
        "name": span.name,
        "from": span.start_time_unix_nano,
        "until": span.end_time_unix_nano,
        "attributes": attributes,
        "events": events,
        "failed": span.status.code == 2,
        "status": span.status.message,
        "unknown": [n for n in names if n not in KNOWN and not n.startswith("roundtable.")],
    }
    with LOCK:
        print(json.dumps(line), flush=True)


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        request = ExportTraceServiceRequest.FromString(body)
        spans = [s for r in request.resource_spans for scope in r.scope_spans for s in scope.spans]
        answer, status = ExportTraceServiceResponse(), 200
        if self.path.startswith("/slow"):
            time.sleep(30)
        if self.path.startswith("/refuse"):
            status = 400
        if self.path.startswith("/busy"):
            SEEN["busy"] += 1
            status = 503 if SEEN["busy"] < 3 else 200
        if self.path.startswith("/partial"):
            answer.partial_success.rejected_spans = len(spans)
            answer.partial_success.error_message = "no room"
        elif status == 200:
            for span in spans:
                show(span, self.path)
        sent = answer.SerializeToString()
        self.send_response(status)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: object) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
print(server.server_address[1], flush=True)
try:
    server.serve_forever()
except KeyboardInterrupt:
    sys.exit(0)
