"""A client stack against a vendor: `guard_stacks.py STACK MODE…` prints what the stack got, and `guard_stacks.py vendor`
is the vendor, which writes each request and whether it was answered to $SEEN. Modes: whole, streamed, parallel, failing,
refused, which is one call whose error is printed."""
import asyncio
import hashlib
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MANY = [f"number {n}" for n in range(10)]


def together(ask):
    async def all():
        return sorted(await asyncio.gather(*(ask(text) for text in MANY)))

    return asyncio.run(all())


def openai(mode, text):
    import openai

    if mode == "parallel":
        client = openai.AsyncOpenAI()

        async def ask(text):
            return (await client.responses.create(model="gpt-5.1", input=text)).output_text

        return together(ask)
    client = openai.OpenAI(max_retries=3)
    about = {"model": "gpt-5.1", "messages": [{"role": "user", "content": text}]}
    if mode == "streamed":
        chunks = client.chat.completions.create(**about, stream=True, stream_options={"include_usage": True})
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    return client.chat.completions.create(**about).choices[0].message.content


def anthropic(mode, text):
    import anthropic

    def about(text):
        return {"model": "claude-haiku-4-5", "max_tokens": 64, "messages": [{"role": "user", "content": text}]}

    if mode == "parallel":
        client = anthropic.AsyncAnthropic()

        async def ask(text):
            return (await client.messages.create(**about(text))).content[0].text

        return together(ask)
    client = anthropic.Anthropic(max_retries=3)
    if mode == "streamed":
        with client.messages.stream(**about(text)) as stream:
            return "".join(stream.text_stream)
    return client.messages.create(**about(text)).content[0].text


def google(mode, text):
    from google import genai

    client = genai.Client(api_key="canary-google-key")
    model = "gemini-2.5-flash"
    if mode == "parallel":

        async def ask(text):
            return (await client.aio.models.generate_content(model=model, contents=text)).text

        return together(ask)
    if mode == "streamed":
        return "".join(it.text or "" for it in client.models.generate_content_stream(model=model, contents=text))
    return client.models.generate_content(model=model, contents=text).text


def litellm(mode, text):
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    def about(model, text):
        return {"model": model, "messages": [{"role": "user", "content": text}], "num_retries": 3}

    if mode == "parallel":

        async def ask(text):
            got = await litellm.acompletion(**about("anthropic/claude-haiku-4-5", text))
            return got.choices[0].message.content

        return together(ask)
    if mode == "streamed":
        usage = {"include_usage": True}
        chunks = litellm.completion(**about("openai/gpt-5.1", text), stream=True, stream_options=usage)
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    return litellm.completion(**about("openai/gpt-5.1", text)).choices[0].message.content


def smolagents(mode, text):
    from smolagents import OpenAIModel

    model = OpenAIModel(model_id="gpt-5.1")

    def messages(text):
        return [{"role": "user", "content": [{"type": "text", "text": text}]}]

    def ask(text):
        return model(messages(text)).content

    if mode == "streamed":
        return "".join(delta.content or "" for delta in model.generate_stream(messages(text)))
    if mode == "parallel":
        with ThreadPoolExecutor(10) as pool:
            return sorted(pool.map(ask, MANY))
    return ask(text)


def langgraph(mode, text):
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    desk = create_agent(ChatOpenAI(model="gpt-5.1", stream_usage=True), system_prompt="Help.")

    def about(text):
        return {"messages": [("user", text)]}

    if mode == "parallel":

        async def ask(text):
            return (await desk.ainvoke(about(text)))["messages"][-1].content

        return together(ask)
    if mode == "streamed":
        return "".join(chunk.content for chunk, _ in desk.stream(about(text), stream_mode="messages"))
    return desk.invoke(about(text))["messages"][-1].content


def crewai(mode, text):
    os.environ.update(CREWAI_DISABLE_TELEMETRY="true", CREWAI_TRACING_ENABLED="false", HOME=os.getcwd())
    from crewai import LLM, Agent, Crew, Task

    def crew(text):
        clerk = Agent(role="clerk", goal="Help.", backstory="You help.", llm=LLM(model="openai/gpt-5.1"))
        task = Task(description=text, expected_output="A sentence", agent=clerk)
        return Crew(agents=[clerk], tasks=[task], stream=mode == "streamed")

    if mode == "parallel":

        async def ask(text):
            return (await crew(text).kickoff_async()).raw

        return together(ask)
    if mode == "streamed":
        return "".join(chunk.content for chunk in crew(text).kickoff())
    return crew(text).kickoff().raw


def openai_agents(mode, text):
    import openai
    from agents import Agent, Runner, set_default_openai_client, set_trace_processors

    set_trace_processors([])  # Without the one that sends them to the vendor.
    set_default_openai_client(openai.AsyncOpenAI())
    desk = Agent(name="desk", instructions="Help.", model="gpt-5.1")

    async def ask(text):
        return (await Runner.run(desk, text)).final_output

    async def read(text):
        events = Runner.run_streamed(desk, text).stream_events()
        events = [event.data async for event in events if event.type == "raw_response_event"]
        return "".join(data.delta for data in events if data.type == "response.output_text.delta")

    if mode == "parallel":
        return together(ask)
    return asyncio.run(read(text) if mode == "streamed" else ask(text))


def pydantic_ai(mode, text):
    from pydantic_ai import Agent

    desk = Agent("openai-chat:gpt-5.1", instructions="Help.")

    async def ask(text):
        return (await desk.run(text)).output

    async def read(text):
        async with desk.run_stream(text) as result:
            return "".join([part async for part in result.stream_text(delta=True)])

    if mode == "parallel":
        return together(ask)
    return asyncio.run(read(text) if mode == "streamed" else ask(text))


def in_code(mode, text):
    """The address is in the code: the tap leads it to the proxy."""
    import openai

    client = openai.OpenAI(base_url=os.environ["OPENAI_ADDRESS"], max_retries=3)
    about = {"model": "gpt-5.1", "messages": [{"role": "user", "content": text}]}
    return client.chat.completions.create(**about).choices[0].message.content


def asked_in(value):
    """The last text of a request."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return asked_in(value[-1]) if value else ""
    names = ("messages", "contents", "input", "content", "parts", "text")
    return next((asked_in(value[name]) for name in names if isinstance(value, dict) and name in value), "")


# Headers that differ from one process or attempt to the next.
OWN = {"host", "connection", "accept", "x-stainless-retry-count", "x-stainless-read-timeout", "idempotency-key"}
failed = {}


class Vendor(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, kind, parts, is_stream=False, **headers):
        self.send_response(status)
        self.send_header("content-type", kind)
        length = str(sum(map(len, parts)))
        self.send_header(*(("transfer-encoding", "chunked") if is_stream else ("content-length", length)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        for part in parts:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part) if is_stream else part)
            self.wfile.flush()
        if is_stream:
            self.wfile.write(b"0\r\n\r\n")

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body, path = json.loads(raw), self.path.split("?")[0]
        asked = asked_in({key: value for key, value in body.items() if key != "model"})
        failed[asked] = failed.get(asked, 0) + 1
        is_failing = "fail " in asked and failed[asked] % 3 > 0
        headers = sorted((name.lower(), value) for name, value in self.headers.items() if name.lower() not in OWN)
        with open(os.environ["SEEN"], "a") as seen:
            digest = hashlib.sha256(raw).hexdigest()
            seen.write(json.dumps({"path": self.path, "headers": headers, "body": digest, "ok": not is_failing}) + "\n")
        if is_failing:
            text = b'{"error": {"message": "overloaded", "code": 503, "status": "UNAVAILABLE"}}'
            return self.answer(503, "application/json", [text], retry_after_ms="10")
        said, is_stream = "you said " + asked, bool(body.get("stream")) or "stream" in path
        events = getattr(self, "answer_" + self.api(path))(body.get("model", "m"), said, is_stream)
        if not is_stream:
            return self.answer(200, "application/json", [json.dumps(events[0]).encode()])
        lines = []
        for event in events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            lines.append(f"{name}data: {json.dumps(event)}\n\n".encode())
        end = [b"data: [DONE]\n\n"] if path.endswith("completions") else []
        self.answer(200, "text/event-stream", lines + end, True)

    def api(self, path):
        names = {"completions": "chat", "responses": "responses", "messages": "messages"}
        return next((name for end, name in names.items() if path.endswith(end)), "contents")

    def answer_chat(self, model, said, is_stream):
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        about = {"id": "c1", "created": 1, "model": model}
        if not is_stream:
            message = {"role": "assistant", "content": said}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            return [{**about, "object": "chat.completion", "choices": [choice], "usage": usage}]
        about["object"] = "chat.completion.chunk"
        parts = [({"role": "assistant", "content": said[:4]}, None), ({"content": said[4:]}, None), ({}, "stop")]
        chunks = [{**about, "choices": [{"index": 0, "delta": d, "finish_reason": end}]} for d, end in parts]
        return chunks + [{**about, "choices": [], "usage": usage}]

    def answer_responses(self, model, said, is_stream):
        content = [{"type": "output_text", "text": said, "annotations": []}]
        message = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content}
        usage = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18, "input_tokens_details": {"cached_tokens": 0},
                 "output_tokens_details": {"reasoning_tokens": 0}}
        whole = {"id": "r1", "object": "response", "created_at": 1, "model": model, "status": "completed", "tools": [],
                 "output": [message], "parallel_tool_calls": True, "tool_choice": "auto", "usage": usage}
        if not is_stream:
            return [whole]
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        item, part = {"output_index": 0}, {"output_index": 0, "content_index": 0, "item_id": "m1"}
        deltas = [("output_text.delta", {**part, "delta": piece, "logprobs": []}) for piece in (said[:4], said[4:])]
        events = [("created", {"response": begun}), ("in_progress", {"response": begun}),
                  ("output_item.added", {**item, "item": {**message, "status": "in_progress", "content": []}}),
                  ("content_part.added", {**part, "part": {**content[0], "text": ""}}), *deltas,
                  ("output_text.done", {**part, "text": said, "logprobs": []}),
                  ("content_part.done", {**part, "part": content[0]}), ("output_item.done", {**item, "item": message}),
                  ("completed", {"response": whole})]
        return [{"type": f"response.{name}", "sequence_number": n, **about} for n, (name, about) in enumerate(events)]

    def answer_messages(self, model, said, is_stream):
        usage = {"input_tokens": 11, "output_tokens": 7}
        whole = {"id": "msg1", "type": "message", "role": "assistant", "model": model, "stop_reason": "end_turn",
                 "stop_sequence": None, "content": [{"type": "text", "text": said}], "usage": usage}
        if not is_stream:
            return [whole]
        begun = {**whole, "content": [], "stop_reason": None, "usage": {"input_tokens": 11, "output_tokens": 1}}
        deltas = [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": part}}
                  for part in (said[:4], said[4:])]
        return [{"type": "message_start", "message": begun},
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}, {"type": "ping"},
                *deltas, {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                 "usage": {"output_tokens": 7}}, {"type": "message_stop"}]

    def answer_contents(self, model, said, is_stream):
        candidate = {"content": {"role": "model", "parts": [{"text": said}]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
        return [{"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash"}]


if sys.argv[1] == "vendor":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Vendor)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()
stack = sys.argv[1]
for mode in sys.argv[2:]:
    try:
        said = globals()[stack](mode, f"fail {stack}" if mode == "failing" else f"hello {mode}")
    except Exception as error:
        if mode not in ("failing", "refused"):
            raise
        said = " ".join(f"{type(error).__name__}: {error}".split())
    print(mode, said)
