"""The tap of `roundtable watch`: reports when agents, model calls and tools start.

Python imports this file when the program starts. It waits until the program itself imports
a framework with hooks, then listens, and posts lines of JSON to $ROUNDTABLE_TAP/tap. It never
raises, never prints, and removes nothing. Another sitecustomize further down the path still
runs. Python skips this file under the options -S, -E and -I.
"""
import os
import sys
import time
from _thread import RLock, get_ident

BASE = os.environ.get("ROUNDTABLE_TAP") or ""
HOST, PATH = (BASE.rstrip("/").split("/", 3)[2:] + ["", ""])[:2]
GUARDED = [pair.split("=", 1) for pair in (os.environ.get("ROUNDTABLE_GUARD") or "").split()]
TEXT, CALL, BATCH, BYTES, QUEUE, PAUSE, TRIES = 32 * 1024, 4 << 20, 500, 800_000, 10_000, 0.1, 5

def load():
    """Imports what the tap needs, once the program has a framework. Never later in the thread:
    a fork in the middle of an import would leave the child with half a module."""
    global functools, http, json, queue, re, threading
    import encodings.idna, functools, http.client, json, queue, re, threading  # noqa: E401

def quiet(function):
    """The function with every error swallowed."""
    def safe(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception:
            return None
    return safe

def after(owner, name, action):
    """Runs the action with the same arguments after each call of a method."""
    original, action = getattr(owner, name), quiet(action)
    @functools.wraps(original)
    def both(*args, **kwargs):
        result = original(*args, **kwargs)
        action(*args, **kwargs)
        return result
    setattr(owner, name, both)

def plain(value):
    dump = quiet(getattr(value, "model_dump", None))(mode="json", exclude_none=True, warnings=False)
    return str(value) if dump is None else dump

def text(value, limit=TEXT):
    """The value as text, cut to the limit in bytes."""
    if value is not None and not isinstance(value, (str, dict, list, tuple, int, float)):
        value = quiet(plain)(value)
    if value is not None and not isinstance(value, str):
        value = quiet(json.dumps)(value, default=plain, ensure_ascii=False) or quiet(str)(value)
    raw = value.encode("utf-8", "replace") if value and len(value) * 4 > limit else b""
    return raw[:limit - 3].decode("utf-8", "ignore") + "…" if len(raw) > limit else value

def tokens(usage):
    usage = usage if isinstance(usage, dict) else plain(usage)
    def count(*names):
        return next((usage[n] for n in names if isinstance(usage, dict) and isinstance(usage.get(n), int)), None)
    details = usage.get("input_tokens_details") if isinstance(usage, dict) else None
    return {"tokens_in": count("input_tokens", "prompt_tokens"),
            "tokens_cached": details.get("cached_tokens") if isinstance(details, dict) else None,
            "tokens_out": count("output_tokens", "completion_tokens")}

class Sender:
    """A bounded queue, and a daemon thread that empties it."""
    def __init__(self):
        self.thread = self.queue = self.connection = None
        self.lock, self.waiting, self.dropped, self.failures, self.closing = RLock(), [], 0, 0, False
    def put(self, **record):
        with self.lock:
            if self.failures >= TRIES:
                return
            if self.queue is None:
                self.hurry, self.queue = threading.Event(), queue.SimpleQueue()
            if self.queue.qsize() >= QUEUE:
                self.dropped += 1
                return
            record.setdefault("at", time.time())
            self.queue.put({key: value for key, value in record.items() if value is not None})
            if self.thread is None or not self.thread.is_alive():
                self.thread = threading.Thread(target=quiet(self.run), name="roundtable-tap", daemon=True)
                self.thread.start()
    def run(self):
        while self.failures < TRIES and not (self.closing and not self.waiting and self.queue.empty()):
            if self.waiting or self.collect():
                self.waiting = [] if self.post(b"".join(self.waiting)) else self.waiting
            time.sleep(PAUSE / 5) if self.closing and self.failures else self.hurry.wait(PAUSE)
        self.waiting, self.queue = [], self.queue if self.failures < TRIES else None
    def collect(self):
        """Waits for a record, and takes what else is there. An empty record is the sign to hurry up."""
        size, record = 0, self.queue.get()
        lost, self.dropped = self.dropped, 0
        while record:
            line = json.dumps(record, default=str, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
            self.waiting.append(line)
            size += len(line)
            full = len(self.waiting) >= BATCH - 1 or size >= BYTES or self.queue.empty()
            record = None if full else self.queue.get()
        self.waiting += [b'{"event":"dropped","count":%d}\n' % lost] if lost else []
        return self.waiting
    def post(self, body):
        """Whether the batch is done with. A refused one counts as a failure, and is not sent again."""
        try:
            self.connection = self.connection or http.client.HTTPConnection(HOST, timeout=2)
            self.connection.request("POST", f"/{PATH}/tap", body, {"Content-Type": "application/x-ndjson"})
            answer = self.connection.getresponse()
            answer.read()
            self.failures = 0 if answer.status < 300 else self.failures + 1
            return True
        except Exception:
            self.failures, self.connection = self.failures + 1, None
            return False
    def flush(self):
        if self.queue is not None and self.failures < TRIES:
            self.closing = True
            self.hurry.set()
            self.queue.put({})
            self.thread.join(2) if self.thread and self.thread.is_alive() else self.run()

sender = Sender()
put = quiet(lambda **record: sender.put(**record))

places = []  # Functions that return the id of the span in which this thread or task is now.
own_tools = []  # The same for the span of a tool that is about to be executed.

def guarded(url):
    """The address at the proxy of roundtable guard for the address of a model. None: it is none."""
    if GUARDED and url.startswith(BASE):
        return url
    for name, base in GUARDED:
        if url.startswith(base) and url[len(base):len(base) + 1] in ("", "/", "?", ":"):
            return f"{BASE}/{name}{url[len(base):]}"

def place_of(headers):
    """Adds the header that says in which span a request is sent."""
    span = next(filter(None, (quiet(place)() for place in places)), None)
    if span:
        headers["x-roundtable-span"] = span

def httpx(module):
    """httpx: requests to models pass the proxy, below the transports of tests. A transport with its own proxy or
    certificate is left alone."""
    def pass_here(transport, request):
        url = str(request.url)
        to = guarded(url)
        if to and to != url:
            if getattr(transport, "_roundtable_own", False):
                put(event="unguarded", framework="httpx", name=request.url.host)
                return
            request.url, request.headers["host"] = type(request.url)(to), HOST
        if to:
            place_of(request.headers)
    def patch(transport, name):
        init, handle = transport.__init__, getattr(transport, name)
        @functools.wraps(init)
        def begin(self, *args, **kwargs):
            init(self, *args, **kwargs)
            self._roundtable_own = kwargs.get("verify", True) is not True or any(kwargs.get(x) for x in ("cert", "proxy", "uds"))
        @functools.wraps(handle)
        def both(self, request, *args, **kwargs):
            quiet(pass_here)(self, request)
            return handle(self, request, *args, **kwargs)
        transport.__init__ = begin
        setattr(transport, name, both)
    patch(module.HTTPTransport, "handle_request")
    patch(module.AsyncHTTPTransport, "handle_async_request")

def requests(module):
    """requests: the same for its adapter."""
    send = module.HTTPAdapter.send
    @functools.wraps(send)
    def both(adapter, request, *args, **kwargs):
        to = quiet(guarded)(request.url)
        if to and to != request.url and kwargs.get("cert"):
            put(event="unguarded", framework="requests", name=request.url.split("/")[2])
        elif to:
            kwargs.update({"proxies": {}} if to != request.url and len(args) < 5 else {})
            request.url = to
            quiet(place_of)(request.headers)
        return send(adapter, request, *args, **kwargs)
    module.HTTPAdapter.send = both

def aiohttp(module):
    """aiohttp: the same for its sessions."""
    original = module.ClientSession._request
    @functools.wraps(original)
    def both(session, method, url, **kwargs):
        to = quiet(guarded)(str(getattr(session, "_build_url", lambda it: it)(url)))
        if to and not kwargs.get("proxy"):
            url, headers = to, dict(kwargs.get("headers") or {})
            quiet(place_of)(headers)
            kwargs["headers"] = headers
        return original(session, method, url, **kwargs)
    module.ClientSession._request = both

def langchain_calls(module):
    """LangChain: knows the run of the model in which a request is sent."""
    from contextvars import ContextVar
    current, running = ContextVar("roundtable_model", default=None), set()
    places.insert(0, lambda: current.get() if current.get() in running else None)
    def enter(managers):
        current.set(str(managers[-1].run_id))
        running.add(current.get())
        running.pop() if len(running) > QUEUE else None
    def starts(owner, name):
        original = getattr(owner, name)
        if "Async" in owner.__name__:
            @functools.wraps(original)
            async def both(*args, **kwargs):
                managers = await original(*args, **kwargs)
                quiet(enter)(managers)
                return managers
        else:
            @functools.wraps(original)
            def both(*args, **kwargs):
                managers = original(*args, **kwargs)
                quiet(enter)(managers)
                return managers
        setattr(owner, name, both)
    for owner in (module.CallbackManager, module.AsyncCallbackManager):
        starts(owner, "on_chat_model_start")
        starts(owner, "on_llm_start")
    for owner in (module.CallbackManagerForLLMRun, module.AsyncCallbackManagerForLLMRun):
        after(owner, "on_llm_end", lambda run, *_, **__: running.discard(str(run.run_id)))
        after(owner, "on_llm_error", lambda run, *_, **__: running.discard(str(run.run_id)))

def langchain_openai(module):
    """langchain-openai: counts the tokens of streams at the address of OpenAI, but at no other one that a variable has."""
    def count(model, *_, **__):
        if model.stream_usage is None and dict(GUARDED).get("OPENAI_API_BASE", "").startswith("https://api.openai.com"):
            model.stream_usage = str(model.openai_api_base or "").startswith(BASE) or model.stream_usage
    after(module.BaseChatOpenAI, "__init__", count) if GUARDED else None

def openai_agents(module):
    """OpenAI Agents SDK: one more processor in each list of tracing processors."""
    multi, above = getattr(module, "SynchronousMultiTracingProcessor", None), {}
    roles = {"generation": "model", "response": "model", "function": "tool"}
    roles.update((role, role) for role in ("agent", "handoff", "guardrail"))
    if multi is None or hasattr(multi, "_roundtable"):
        return
    def trace(event, item):
        put(framework="openai-agents", event=event, trace=item.trace_id, id=item.trace_id, name=item.name, role="step")
    def span(event, item):
        data, parent, error = item.span_data, item.parent_id or item.trace_id, item.error
        def get(name): return getattr(data, name, None)
        role, to, answer, output = roles.get(data.type, "step"), get("to_agent"), get("response"), get("output")
        agent = get("name") if role == "agent" else get("agent_name") or get("from_agent") or above.get(parent)
        model = get("model") or getattr(answer, "model", None)
        name = {"turn": f"turn {get('turn')}", "task": "run"}.get(data.type) or get("name") or model or data.type
        if role == "guardrail" and event == "end":
            output = {"triggered": get("triggered")}
        if error:
            more = error.get("data")
            more = more.get("error") or more if isinstance(more, dict) else more
            error = f"{error.get('message')}: {text(more)}" if more else error.get("message")
        above[item.span_id] = agent  # The nearest agent at or above each open span.
        if event == "end" or len(above) > QUEUE:
            above.pop(item.span_id if event == "end" else next(iter(above)), None)
        usage = tokens(get("usage") or getattr(answer, "usage", None)) if role == "model" else {}
        if role == "model" and event == "end":
            given = {"instructions": getattr(answer, "instructions", None), "input": get("input")}
            usage.update(messages=text({k: v for k, v in given.items() if v is not None}, CALL),
                         tools=text(getattr(answer, "tools", None), CALL),
                         reply=text({"output": getattr(answer, "output", output)}, CALL))
        usage["state"] = "tripped" if role == "guardrail" and get("triggered") else None
        put(framework="openai-agents", event=event, trace=item.trace_id, id=item.span_id, parent=parent, role=role,
            name=f"handoff to {to}" if to else text(name), agent=agent, model=text(model), to=to, error=text(error),
            input=text(get("input")), output=text(getattr(answer, "output", output)), **usage)
    class Tap(getattr(sys.modules.get("agents.tracing.processor_interface"), "TracingProcessor", object)):
        on_trace_start, on_trace_end, on_span_start, on_span_end = (
            staticmethod(quiet(lambda item, report=report, event=event: report(event, item)))
            for report in (trace, span) for event in ("start", "end"))
        def shutdown(self, *args, **kwargs): pass
        def force_flush(self, *args, **kwargs): pass
    multi._roundtable = tap = Tap()
    def current():
        span = sys.modules["agents.tracing"].get_current_span()
        return span.span_id if span.span_id.startswith("span_") else None  # Without tracing it is "no-op".
    places.insert(0, current)
    after(multi, "__init__", lambda processors, *_, **__: processors.add_tracing_processor(tap))
    after(multi, "set_processors", lambda processors, *_, **__: processors.add_tracing_processor(tap))
    if getattr(module, "GLOBAL_TRACE_PROVIDER", None) is not None:  # Older versions make it at import.
        module.GLOBAL_TRACE_PROVIDER.register_processor(tap)

def crewai(module):
    """CrewAI: listens to what its event bus emits, in the thread that emits it."""
    roles = {"agent_execution": "agent", "lite_agent_execution": "agent", "llm_call": "model", "tool_usage": "tool"}
    kinds = re.compile("(crew_kickoff|task|(?:lite_)?agent_execution|llm_call|tool_usage|flow|method_execution)"
                       "_(started|completed|finished|failed|error)$")
    known, running = {}, []  # The record at or above each event id; kind, thread and record of what runs.
    def listen(bus, source, event, *_, **__):
        def get(name, of=event): return getattr(of, name, None)
        match, start, above = kinds.match(event.type), event.type[-8:] == "_started", known.get(get("parent_event_id"))
        kind, own, here = match and match[1], get("event_id") or os.urandom(8).hex(), get_ident()
        nested = [x for x in running[::-1] if x[1] == here]
        if start:
            above = above or (nested[0][2] if nested else {})
            record = known[own] = above if not match else {
                "framework": "crewai", "trace": above.get("trace", own), "id": own, "parent": above.get("id"),
                "role": roles.get(kind, "step"), "agent": above.get("agent")}
            known.pop(next(iter(known)), None) if len(known) > QUEUE else None
            running.append((kind, here, record)) if match else None
        elif match:
            same = [x for x in nested if x[0] == kind] or [x for x in running[::-1] if x[0] == kind]
            found = next((x for x in running if x[2]["id"] == get("started_event_id")), None)
            if found and found[0] != kind:  # Some failures are reported twice, once with the flow around them.
                return
            found = found or same[0]
            running.remove(found)
            record = found[2]
        if not match:
            return
        task, args, output = get("task"), get("tool_args"), get("output")
        agent = (get("role", get("agent")) or get("agent_role") or (get("agent_info") or {}).get("role")
                 or get("role", get("agent", task)))
        name = (get("tool_name") or get("model") or get("crew_name") or get("method_name") or get("flow_name")
                or (get("name", task) or get("description", task) if kind == "task" else None) or agent or kind)
        given = get("inputs") or get("task_prompt") or get("messages") or args or get("description", task)
        news = {"name": text(name, 200), "agent": agent, "model": get("model"), "input": text(given),
                "output": text(get("raw", output) or output or get("response") or get("result")),
                "to": args.get("coworker") if isinstance(args, dict) else None,
                "error": text(get("error") or get("failure")), **tokens(get("usage"))}
        if kind == "llm_call":
            news["messages" if start else "reply"] = text(get("messages") if start else get("response"), CALL)
            news["tools"] = text(get("tools"), CALL) if start else None
        record.update({key: value for key, value in news.items() if value is not None})
        put(**record, event="start" if start else "end")
        if not start:  # What may still point here needs the ids only.
            record.update(input=None, output=None, messages=None, reply=None, tools=None)
    def here(kind): return [x[2]["id"] for x in running if x[:2] == (kind, get_ident())][-1]
    places.insert(0, lambda: here("llm_call"))
    own_tools.append(lambda: here("tool_usage"))
    after(module.CrewAIEventsBus, "emit", listen)

def langchain(module):
    """LangChain: sends what a streamed reply has so far. Its tracer reports all else, at the end of the reply."""
    said = {}  # The text so far and the time of the last report, by run.
    def listen(tracer, token="", *_, chunk=None, run_id=None, **__):
        key, token = str(run_id), token if isinstance(token, str) else getattr(chunk, "text", "") or ""
        run, (known, last) = tracer.run_map[key], said.get(key, ("", 0))
        known, now = known + token[:TEXT - len(known)], time.monotonic()
        if now - last > PAUSE * 2 and known:
            put(event="partial", trace=str(run.trace_id), id=key, output=text(known))
            last = now
        said[key] = known, last
        said.pop(next(iter(said)), None) if len(said) > 200 else None
    after(module.LangChainTracer, "on_llm_new_token", listen)

def otel(module):
    """OpenTelemetry: one more span processor in each provider, since OTLP reports ends only."""
    def exports(thing, depth=8):
        """Whether an exporter below sends its spans to the receiver by OTLP over HTTP."""
        fields = [v for k, v in getattr(thing, "__dict__", {}).items() if "process" in k or "export" in k]
        return str(getattr(thing, "_endpoint", "")).startswith(f"http://{HOST}/") or depth > 0 and any(
            exports(x, depth - 1) for x in (thing if isinstance(thing, tuple) else fields))
    def report(event, span, **more):
        context, parent, attributes = span.get_span_context(), span.parent, {}
        room = limit = TEXT if event == "start" else CALL
        scope = getattr(getattr(span, "instrumentation_scope", None), "name", None) or ""
        if not context.trace_flags.sampled or scope.startswith("crewai.telemetry"):
            return
        for key, value in dict(span.attributes or {}).items():
            value = value if isinstance(value, (bool, int)) else text(value, limit)
            room -= len(str(value))
            attributes.update({key: value} if room > 0 else {})
        put(framework="otel", event=event, trace=f"{context.trace_id:032x}", id=f"{context.span_id:016x}",
            parent=f"{parent.span_id:016x}" if parent else None, name=text(span.name), scope=scope,
            attributes=attributes, started_at=span.start_time / 1e9, **more)
    class Tap(module.SpanProcessor):
        def __init__(self, provider): self.processors, self.seen, self.exported = provider._active_span_processor, 0, False
        def on_start(self, span, parent_context=None): quiet(report)("start", span)
        def on_end(self, span): quiet(self.end)(span)
        def end(self, span):
            """Tells of the end too when nobody else does."""
            if len(self.processors._span_processors) != self.seen:
                self.seen, self.exported = len(self.processors._span_processors), exports(self.processors)
            if not self.exported:
                raised = [e.attributes.get("exception.message") for e in span.events or () if e.name == "exception"]
                failed = span.status.status_code.name == "ERROR"
                error = text(span.status.description or (raised[-1] if raised else "failed")) if failed else None
                events = [{"name": e.name, "attributes": {k: text(v) for k, v in (e.attributes or {}).items()}}
                          for e in span.events or () if e.name != "exception"]
                report("end", span, at=span.end_time / 1e9, error=error, events=events or None)
    def current():
        context = sys.modules["opentelemetry.trace"].get_current_span().get_span_context()
        return f"{context.span_id:016x}" if context.is_valid and context.trace_flags.sampled else None
    places.append(current)
    after(module.TracerProvider, "__init__", lambda provider, *_, **__: provider.add_span_processor(Tap(provider)))

def pytest(module):
    """pytest: reports the start and the end of each test, which gives its traces a name and a result."""
    original = module.runtestprotocol
    @functools.wraps(original)
    def both(item, *args, **kwargs):
        name, reports = getattr(item, "nodeid", ""), None
        put(framework="part", event="start", name=name)
        try:
            reports = original(item, *args, **kwargs)
            return reports
        finally:
            failed = [report for report in reports or () if getattr(report, "failed", False)]
            crash = failed and getattr(getattr(failed[0], "longrepr", None), "reprcrash", None)
            error = (getattr(crash, "message", None) or "failed") if failed else None
            put(framework="part", event="end", name=name, error=quiet(text)(error))
    module.runtestprotocol = both

def notebook(module):
    """IPython and Jupyter: reports the start and the end of each cell."""
    def listen(shell, *_, **__):
        last = []
        def name(): return f"cell {shell.execution_count}"
        def begin(*_): last[:] = [name()]; put(framework="part", event="start", name=last[0])
        def end(result=None, *_):
            error = getattr(result, "error_before_exec", None) or getattr(result, "error_in_exec", None)
            put(framework="part", event="end", name=(last or [name()])[0],
                error=f"{type(error).__name__}: {error}" if error else None)
        shell.events.register("pre_run_cell", quiet(begin))
        shell.events.register("post_run_cell", quiet(end))
    after(module.InteractiveShell, "__init__", listen)

def own_provider(trace):
    """OpenTelemetry: gives frameworks of agents a provider while the program has set none."""
    agents = re.compile("gcp.vertex.agent|google.adk|agent_framework|strands|pydantic-ai|autogen|semantic_kernel")
    from_program, made, was = trace.ProxyTracer._tracer.fget, {}, {}
    def own(name):
        with sender.lock:
            if not made:
                from importlib.util import find_spec
                made[None] = None
                if find_spec("opentelemetry.sdk.trace"):
                    from opentelemetry.sdk.trace import TracerProvider
                    made[None] = TracerProvider()
            return made[None] and (made.get(name) or made.setdefault(name, made[None].get_tracer(name)))
    def tracer(proxy):  # Checked at each span: the program may set a provider later.
        name = getattr(proxy, "_instrumenting_module_name", None) or ""
        mine = None if trace._TRACER_PROVIDER or not agents.match(name) else quiet(own)(name)
        if name.startswith("agent_framework"):  # Records texts while only the receiver gets its spans.
            settings = sys.modules["agent_framework.observability"].OBSERVABILITY_SETTINGS
            was.setdefault("texts", settings.enable_sensitive_data)
            settings.enable_sensitive_data = bool(mine) or was["texts"]
        return mine or from_program(proxy)
    trace.ProxyTracer._tracer = property(tracer)

def adk(module):
    """Google ADK: records the texts of calls while only the receiver gets its spans."""
    def unless_set(original, value):
        def read():
            trace = sys.modules.get("opentelemetry.trace")
            return value if getattr(trace, "_TRACER_PROVIDER", trace) is None else original()
        return read
    capturing = module.ContentCapturingMode.SPAN_ONLY
    module._read_experimental_genai_semconv = unless_set(module._read_experimental_genai_semconv, True)
    module._read_content_capturing_mode = unless_set(module._read_content_capturing_mode, capturing)

def pydantic_ai(module):
    """Pydantic AI: turns its spans on."""
    module.Agent.instrument_all()

actions = {
    "agents.tracing.provider": openai_agents, "agents.tracing.setup": openai_agents, "opentelemetry.sdk.trace": otel, "opentelemetry.trace": own_provider,
    "crewai.events.event_bus": crewai, "crewai.utilities.events.crewai_event_bus": crewai, "pydantic_ai": pydantic_ai,
    "langchain_core.tracers.langchain": langchain, "langchain_core.callbacks.manager": langchain_calls, "langchain_openai.chat_models.base": langchain_openai,
    "google.adk.telemetry.context": adk, "_pytest.runner": pytest, "IPython.core.interactiveshell": notebook,
    "multiprocessing.util": lambda util: util.register_after_fork(
        sender, lambda tap: util.Finalize(None, tap.flush, exitpriority=-100))}

def tools(module):
    """Asks before the tools of a framework are executed. If that cannot be, it is said; with rules about tools the
    framework cannot be imported, so that none is executed unasked."""
    try:
        import roundtable_tools
        roundtable_tools.hook(module, host=HOST, path=PATH, places=places, tools=own_tools)
    except Exception as error:
        put(event="unhooked", framework=module.__name__.partition(".")[0], name=f"{type(error).__name__}: {error}")
        if os.environ.get("ROUNDTABLE_TOOLS") == "ask":
            raise ImportError(f"roundtable cannot ask about the tools of {module.__name__}, as its rules say: {error}")

if GUARDED:
    actions.update(dict.fromkeys((
        "agents.tool", "langchain_core.tools.base", "pydantic_ai.toolsets.function", "crewai.tools.base_tool",
        "crewai.tools.structured_tool", "google.adk.flows.llm_flows.tools._caller", "google.adk.flows.llm_flows.functions",
        "smolagents.tools", "agno.tools.function", "mcp.client.session"), tools))
    actions.update({"httpx": httpx, "httpx2": httpx, "requests.adapters": requests, "aiohttp.client": aiohttp})

class Finder:
    """Finds no module by itself: runs an action after one of the modules above was imported."""
    def find_spec(self, name, path=None, target=None):
        return quiet(self.hook)(name, path, target) if name in actions else None
    def hook(self, name, path, target):
        finders = [x for x in list(sys.meta_path) if x is not self and hasattr(x, "find_spec")]
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in finders)), None)
        run = spec.loader.exec_module
        def exec_module(module):
            quiet(delattr)(spec.loader, "exec_module")
            run(module)
            quiet(load)()
            action = actions.pop(name, None)
            (action if action is tools else quiet(action))(module)
        spec.loader.exec_module = exec_module
        return spec

def stay_first(call):
    """An exec function of os that first puts this folder in front of PYTHONPATH: launchers put their own there."""
    def execute(path, args, *env):
        quiet(put_first)(env[0] if env else os.environ)
        return call(path, args, *env)
    return execute

def put_first(env):
    own, paths = os.path.dirname(os.path.realpath(__file__)), env.get("PYTHONPATH", "").split(os.pathsep)
    if any(os.path.realpath(path) == own for path in paths[1:]):
        env["PYTHONPATH"] = os.pathsep.join([own] + [p for p in paths if os.path.realpath(p or ".") != own])

def install():
    import atexit
    os.execv, os.execve = stay_first(os.execv), stay_first(os.execve)
    sys.meta_path.insert(0, Finder())
    atexit.register(quiet(sender.flush))
    os.register_at_fork(after_in_child=quiet(sender.__init__))

def next_sitecustomize():
    """Runs the program's own sitecustomize in place of this one. Its errors are Python's to report."""
    from importlib.machinery import PathFinder
    own = os.path.dirname(os.path.realpath(__file__))
    spec = PathFinder.find_spec("sitecustomize", [p for p in sys.path if os.path.realpath(p or ".") != own])
    if spec is not None and spec.loader is not None:
        from importlib.util import module_from_spec
        sys.modules["roundtable_sitecustomize"] = sys.modules.get(__name__)
        sys.modules[__name__] = module = module_from_spec(spec)
        spec.loader.exec_module(module)

if BASE:
    quiet(install)()
next_sitecustomize()
