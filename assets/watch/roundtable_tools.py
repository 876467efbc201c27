"""The tool hook of `roundtable guard`: asks before a tool of a framework is executed, and reports its end.

Each call has a connection of its own, which stays open until the end is reported: if it closes, the question is
withdrawn, or the end is not known. The tap imports this file with the first module that has tools. Where roundtable
is gone, tools are executed, unless there are rules about tools: then each fails, since nobody can judge it here.
"""
import asyncio
import contextvars
import functools
import http.client
import json
import os
import threading
import uuid

MUST_ASK = os.environ.get("ROUNDTABLE_TOOLS") == "ask"
GONE = "roundtable is gone, so nobody can allow this tool"

inside = contextvars.ContextVar("roundtable_tools", default=())  # Name and arguments of the calls around this one.
tap = {}  # What the tap gives: its address, and where the program is.

def plain(value):
    """A value as JSON has it. Raises where it has no such form."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", exclude_none=True) if dump else str(value)

def as_json(value, default=plain):
    return json.loads(json.dumps(value, default=default, ensure_ascii=False))

def place():
    """The span in which the program is now."""
    for find in tap["places"]:
        try:
            span = find()
        except Exception:
            span = None
        if span:
            return span

class Call:
    """One call of a tool, at the hook of `kind`."""
    def __init__(self, kind, name, args, agent=None, span=None, description=None, parameters=None, definition=None):
        self.kind, self.name, self.args = kind, str(name), args if isinstance(args, dict) else {"input": args}
        self.connection = http.client.HTTPConnection(tap["host"])
        about = {"event": "ask", "name": self.name, "span": span, "parent": place(), "agent": agent, "description": description,
                 "definition": definition}
        self.about = {key: str(value) for key, value in about.items() if value}
        try:
            self.about.update(args=as_json(self.args, str), parameters=as_json(parameters, str))
        except Exception:
            pass

    def is_asked(self):
        """Whether the call around this one is the same, at the hook of another framework."""
        kind, name, args = (inside.get() or [("", "", None)])[-1]
        return kind not in ("", self.kind) and args == self.args and (name.endswith(self.name) or self.name.endswith(name))

    def post(self, line):
        body = json.dumps(line, ensure_ascii=False).encode("utf-8", "replace")
        self.connection.request("POST", f"/{tap['path']}/tool", body, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise OSError(text)
        return json.loads(text)

    def ask(self):
        """Waits for the decision."""
        try:
            return self.post(self.about)
        except Exception:
            self.connection.close()
            return {"do": "error", "text": GONE} if MUST_ASK else {"do": "go"}

    def report(self, decision, **end):
        if "id" in decision:
            try:
                self.post({"event": "done", "id": decision["id"], **end})
            except Exception:
                pass
        self.connection.close()

    def withdraw(self):
        """Nobody waits any more, though a thread reads the answer."""
        try:
            self.connection.sock.shutdown(2)
        except Exception:
            pass

def result_of(value, dump):
    try:
        return {"result": as_json(dump(value))}
    except Exception:
        return {"result": str(value)}

def error_of(error):
    return {"error": f"{type(error).__name__}: {error}"}

def same(value):
    return value

def call(about, execute, load=same, fail=same, dump=same):
    """Asks, and then does what was decided. `execute(args)` makes the call, `args` being others or None; `load` makes its
    result from JSON, and `fail` one that the model reads as an error."""
    if about.is_asked():
        return execute(None)
    decision = about.ask()
    if decision["do"] != "go":
        about.connection.close()
        return load(decision["value"]) if decision["do"] == "result" else fail(decision["text"])
    token = inside.set((*inside.get(), (about.kind, about.name, about.args)))
    try:
        result = execute(decision.get("args"))
    except BaseException as error:
        about.report(decision, **error_of(error))
        raise
    finally:
        inside.reset(token)
    about.report(decision, **result_of(result, dump))
    return result

async def call_async(about, execute, load=same, fail=same, dump=same):
    """The same for a coroutine. It waits in a thread of its own."""
    if about.is_asked():
        return await execute(None)
    decision = await in_thread(about, about.ask)
    if decision["do"] != "go":
        about.connection.close()
        return load(decision["value"]) if decision["do"] == "result" else fail(decision["text"])
    token = inside.set((*inside.get(), (about.kind, about.name, about.args)))
    try:
        result = await execute(decision.get("args"))
    except BaseException as error:
        about.report(decision, **error_of(error))
        raise
    finally:
        inside.reset(token)
    await in_thread(about, lambda: about.report(decision, **result_of(result, dump)))
    return result

async def in_thread(about, function):
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # The loop of another library.
        return function()
    done = loop.create_future()
    def run():
        result = function()
        try:
            loop.call_soon_threadsafe(lambda: done.done() or done.set_result(result))
        except RuntimeError:  # The loop has ended.
            about.withdraw()
    threading.Thread(target=run, name="roundtable-tool", daemon=True).start()
    try:
        return await done
    except asyncio.CancelledError:
        about.withdraw()
        raise

def of(kind, name, describe):
    """A call, as far as it can be described: it is asked about in any case."""
    try:
        return Call(kind, name, **describe())
    except Exception:
        return Call(kind, name, {})

def name_of(function):
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"

def openai_agents(module):
    def about(tool, context, arguments):
        agent = getattr(getattr(context, "agent", None), "name", None)
        return of("agents", tool.name, lambda: dict(
            args=json.loads(arguments or "{}"), agent=agent, span=place(), description=tool.description,
            parameters=tool.params_json_schema, definition=name_of(type(tool))))
    inner = module._invoke_function_tool_with_metadata
    result = module._FunctionToolInvocationResult
    @functools.wraps(inner)
    async def invoke(*, function_tool, context, arguments):
        def execute(args):
            given = arguments if args is None else json.dumps(args)
            return inner(function_tool=function_tool, context=context, arguments=given)
        return await call_async(about(function_tool, context, arguments), execute, result, result, lambda made: made.output)
    module._invoke_function_tool_with_metadata = invoke

def langchain(module):
    from langchain_core.messages import ToolMessage
    def begin(tool, tool_input, kwargs):
        kwargs["run_id"] = kwargs.get("run_id") or uuid.uuid4()
        def describe():
            shown = tool._filter_injected_args(tool_input) if isinstance(tool_input, dict) else tool_input
            schema = getattr(tool, "tool_call_schema", None)
            schema = schema if isinstance(schema, dict) or schema is None else schema.model_json_schema()
            function = getattr(tool, "func", None) or getattr(tool, "coroutine", None) or type(tool)
            return dict(args=shown, span=kwargs["run_id"], description=tool.description, parameters=schema,
                        definition=name_of(function))
        return of("langchain", tool.name, describe)
    def changed(tool_input, args):
        if args is None:
            return tool_input
        return {**tool_input, **args} if isinstance(tool_input, dict) else args.get("input", args)
    def results(tool, kwargs):
        known = kwargs.get("tool_call_id")
        def message(content, **more):
            if known is None:
                return content
            content = content if isinstance(content, (str, list)) else json.dumps(content, ensure_ascii=False)
            return ToolMessage(content, name=tool.name, tool_call_id=known, **more)
        def load(value):
            is_message = isinstance(value, dict) and set(value) == {"content", "artifact", "status"}
            return message(**value) if is_message else message(value)
        def dump(value):
            if not isinstance(value, ToolMessage):
                return value
            if value.artifact is None and value.status == "success":
                return value.content
            return {"content": value.content, "artifact": value.artifact, "status": value.status}
        return load, lambda text: message(text, status="error") if known is not None else text, dump
    run, arun = module.BaseTool.run, module.BaseTool.arun
    @functools.wraps(run)
    def both(self, tool_input, *args, **kwargs):
        about = begin(self, tool_input, kwargs)
        return call(about, lambda other: run(self, changed(tool_input, other), *args, **kwargs), *results(self, kwargs))
    @functools.wraps(arun)
    async def both_async(self, tool_input, *args, **kwargs):
        about = begin(self, tool_input, kwargs)
        execute = lambda other: arun(self, changed(tool_input, other), *args, **kwargs)  # noqa: E731
        return await call_async(about, execute, *results(self, kwargs))
    module.BaseTool.run, module.BaseTool.arun = both, both_async

def pydantic_ai(module):
    inner = module.FunctionToolset.call_tool
    @functools.wraps(inner)
    async def call_tool(self, name, tool_args, ctx, tool):
        about = of("pydantic_ai", name, lambda: dict(
            args=tool_args, agent=getattr(getattr(ctx, "agent", None), "name", None), span=place(),
            description=tool.tool_def.description, parameters=tool.tool_def.parameters_json_schema,
            definition=name_of(getattr(getattr(self, "tools", {}).get(name), "function", None))))
        def execute(args):
            return inner(self, name, tool_args if args is None else tool.args_validator.validate_python(args), ctx, tool)
        return await call_async(about, execute)
    module.FunctionToolset.call_tool = call_tool

def own_span():
    """The span of the tool that CrewAI is about to execute in this thread."""
    try:
        return tap["tools"][0]()
    except Exception:
        return None

def crewai(module):
    def about(tool, args, kwargs):
        schema = getattr(tool, "args_schema", None)
        return of("crewai", tool.name, lambda: dict(
            args=kwargs if not args else args[0] if len(args) == 1 else list(args), span=own_span(),
            description=tool.description, parameters=schema.model_json_schema() if schema else None,
            definition=name_of(getattr(tool, "func", None) or type(tool))))
    def patch(owner, name, is_async):
        inner = owner.__dict__.get(name)
        if inner is None:
            return
        def execute(self, args, kwargs):
            def run(other):
                if other is None:
                    return inner(self, *args, **kwargs)
                return inner(self, other) if args and "input" not in other else inner(self, **other)
            return run
        @functools.wraps(inner)
        def both(self, *args, **kwargs):
            return call(about(self, args, kwargs), execute(self, args, kwargs))
        @functools.wraps(inner)
        async def both_async(self, *args, **kwargs):
            return await call_async(about(self, args, kwargs), execute(self, args, kwargs))
        setattr(owner, name, both_async if is_async else both)
    for owner in ("BaseTool", "Tool", "CrewStructuredTool"):
        owner = getattr(module, owner, None)
        if owner is not None and owner.__module__ == module.__name__:
            for name, is_async in (("run", False), ("arun", True), ("invoke", False), ("ainvoke", True)):
                patch(owner, name, is_async)

def adk(module):
    name = next(name for name in ("_call_tool_async", "__call_tool_async") if hasattr(module, name))
    inner = getattr(module, name)
    if inner.__module__ != module.__name__:
        return  # It is defined in a module with a hook of its own.
    @functools.wraps(inner)
    async def call_tool(tool, args, tool_context):
        def describe():
            offer = getattr(tool, "_get_declaration", lambda: None)()
            schema = getattr(offer, "parameters_json_schema", None) or getattr(offer, "parameters", None)
            return dict(args=args, agent=getattr(tool_context, "agent_name", None), span=place(), description=tool.description,
                        parameters=schema if isinstance(schema, dict) else schema and plain(schema),
                        definition=name_of(getattr(tool, "func", None) or type(tool)))
        about = of("adk", tool.name, describe)
        def execute(other):
            return inner(tool, args=args if other is None else other, tool_context=tool_context)
        return await call_async(about, execute, same, lambda text: {"error": text})
    setattr(module, name, call_tool)

def smolagents(module):
    inner = module.Tool.__call__
    @functools.wraps(inner)
    def both(self, *args, **kwargs):
        if self.name == "final_answer":  # It only ends the run of an agent.
            return inner(self, *args, **kwargs)
        def describe():
            named = {key: value for key, value in kwargs.items() if key != "sanitize_inputs_outputs"}
            given = named if named or not args else dict(zip(self.inputs, args))
            given = args[0] if len(args) == 1 and not named and isinstance(args[0], dict) else given
            return dict(args=given, description=self.description, definition=name_of(type(self)),
                        parameters={"type": "object", "properties": self.inputs})
        about = of("smolagents", self.name, describe)
        def execute(other):
            own = {key: value for key, value in kwargs.items() if key == "sanitize_inputs_outputs"}
            return inner(self, *args, **kwargs) if other is None else inner(self, **other, **own)
        return call(about, execute)
    module.Tool.__call__ = both

def agno(module):
    result = module.FunctionExecutionResult
    def about(made):
        function = made.function
        return of("agno", function.name, lambda: dict(
            args=made.arguments or {}, description=function.description, parameters=function.parameters,
            definition=name_of(function.entrypoint)))
    def results(made):
        def load(value):
            made.result = value
            return result(status="success", result=value)
        def fail(text):
            made.error = text
            return result(status="failure", error=text)
        return load, fail, lambda outcome: outcome.result if outcome.status == "success" else {"error": outcome.error}
    def change(made, args):
        if args is not None:
            made.arguments = args
    execute, aexecute = module.FunctionCall.execute, module.FunctionCall.aexecute
    @functools.wraps(execute)
    def both(self):
        return call(about(self), lambda args: (change(self, args), execute(self))[1], *results(self))
    @functools.wraps(aexecute)
    async def both_async(self):
        return await call_async(about(self), lambda args: (change(self, args), aexecute(self))[1], *results(self))
    module.FunctionCall.execute, module.FunctionCall.aexecute = both, both_async

def mcp(module):
    types = module.types
    inner = module.ClientSession.call_tool
    @functools.wraps(inner)
    async def call_tool(self, name, arguments=None, *args, **kwargs):
        about = of("mcp", name, lambda: dict(args=arguments or {}, definition="mcp"))
        def fail(text):
            return types.CallToolResult.model_validate({"content": [{"type": "text", "text": text}], "isError": True})
        def execute(other):
            return inner(self, name, arguments if other is None else other, *args, **kwargs)
        dump = lambda result: result.model_dump(mode="json", by_alias=True, exclude_none=True)  # noqa: E731
        def load(value):
            return types.CallToolResult.model_validate(value if isinstance(value, dict) and "content" in value else {
                "content": [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}]})
        return await call_async(about, execute, load, fail, dump)
    module.ClientSession.call_tool = call_tool

HOOKS = {
    "agents.tool": openai_agents, "langchain_core.tools.base": langchain, "pydantic_ai.toolsets.function": pydantic_ai,
    "crewai.tools.base_tool": crewai, "crewai.tools.structured_tool": crewai, "google.adk.flows.llm_flows.tools._caller": adk,
    "google.adk.flows.llm_flows.functions": adk, "smolagents.tools": smolagents, "agno.tools.function": agno,
    "mcp.client.session": mcp,
}

def hook(module, **own):
    """Puts the hook into a module with tools. `own`: what the tap gives."""
    tap.update(own)
    HOOKS[module.__name__](module)
