"""Frameworks with a tool: `hooked.py vendor` prints its port, `hooked.py STACK` has a model call `refund`, and prints the reply.

The vendor calls the tool once in a conversation, and then replies with its result. A refund writes a line into `paid`."""
import asyncio, json, os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", CREWAI_DISABLE_TELEMETRY="true", CREWAI_TRACING_ENABLED="false",
                  AGNO_TELEMETRY="false", OPENAI_AGENTS_DISABLE_TRACING=os.environ.get("NO_TRACING", "0"))
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
TOOL = {"id": "call_1", "type": "function", "function": {"name": "refund", "arguments": '{"charge": "ch_1", "usd": 20}'}}

class Vendor(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args): pass
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with open(os.environ["SEEN"], "a") as seen:
            seen.write(json.dumps({"path": self.path}) + "\n")
        def text(m):
            content = m.get("content") or ""
            return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
        results = [m for m in body["messages"][1:] if m["role"] == "tool" or text(m).startswith("Observation:")]
        message = {"role": "assistant", "content": None, "tool_calls": [TOOL]}
        if results:
            content = text(results[-1])
            message = {"role": "assistant", "content": f"It says: {content}"}
            if any(tool["function"]["name"] == "final_answer" for tool in body.get("tools", [])):
                call = {"name": "final_answer", "arguments": json.dumps({"answer": f"It says: {content}"})}
                message = {"role": "assistant", "content": None, "tool_calls": [{**TOOL, "id": "call_2", "function": call}]}
        reply = {"id": "c1", "object": "chat.completion", "created": 1, "model": body["model"], "usage": USAGE, "choices": [
            {"index": 0, "message": message, "finish_reason": "stop" if results else "tool_calls"}]}
        raw = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

def pay(charge, usd):
    with open("paid", "a") as paid:
        paid.write(f"{charge} {usd}\n")
    if "fails" in sys.argv:
        raise ValueError("the bank is closed")
    return f"paid {usd} for {charge}"

def openai_agents():
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
    from openai import AsyncOpenAI
    @function_tool
    def refund(charge: str, usd: int) -> str:
        """Refunds a charge."""
        return pay(charge, usd)
    agent = Agent(name="Desk", tools=[refund], model=OpenAIChatCompletionsModel("m", AsyncOpenAI()))
    return Runner.run_sync(agent, "Refund ch_1.").final_output

def langgraph():
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    @tool
    def refund(charge: str, usd: int) -> str:
        """Refunds a charge."""
        return pay(charge, usd)
    agent = create_agent(ChatOpenAI(model="m"), [refund])
    given = {"messages": [("user", "Refund ch_1.")]}
    made = asyncio.run(agent.ainvoke(given)) if "async" in sys.argv else agent.invoke(given)
    return made["messages"][-1].content

def pydantic_ai():
    from pydantic_ai import Agent
    agent = Agent("openai-chat:m", name="desk")
    @agent.tool_plain
    def refund(charge: str, usd: int) -> str:
        """Refunds a charge."""
        return pay(charge, usd)
    return agent.run_sync("Refund ch_1.").output

def crewai():
    from crewai import Agent, Crew, LLM, Task
    from crewai.tools import tool
    @tool("refund")
    def refund(charge: str, usd: int) -> str:
        """Refunds a charge."""
        return pay(charge, usd)
    desk = Agent(role="desk", goal="refund", backstory="-", llm=LLM(model="openai/gpt-5.1"), tools=[refund])
    task = Task(description="Refund ch_1.", expected_output="a word", agent=desk)
    return Crew(agents=[desk], tasks=[task]).kickoff().raw

def adk():
    from google.adk.agents import LlmAgent
    from google.adk.models.lite_llm import LiteLlm
    from google.adk.runners import InMemoryRunner
    from google.genai import types
    def refund(charge: str, usd: int) -> str:
        """Refunds a charge."""
        return pay(charge, usd)
    agent = LlmAgent(name="desk", model=LiteLlm("openai/m"), tools=[refund], instruction="-")
    async def run():
        runner = InMemoryRunner(agent, app_name="desk")
        session = await runner.session_service.create_session(app_name="desk", user_id="u")
        given = types.Content(role="user", parts=[types.Part(text="Refund ch_1.")])
        last = None
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=given):
            if event.content and event.content.parts and event.content.parts[0].text:
                last = event.content.parts[0].text
        return last
    return asyncio.run(run())

def smolagents():
    from smolagents import OpenAIServerModel, ToolCallingAgent, tool
    @tool
    def refund(charge: str, usd: int) -> str:
        """Refunds a charge.

        Args:
            charge: the charge
            usd: dollars
        """
        return pay(charge, usd)
    agent = ToolCallingAgent(tools=[refund], model=OpenAIServerModel("m"), verbosity_level=0)
    return agent.run("Refund ch_1.")

def agno():
    from agno.agent import Agent
    from agno.models.openai import OpenAIChat
    def refund(charge: str, usd: int) -> str:
        """Refunds a charge."""
        return pay(charge, usd)
    return Agent(name="desk", model=OpenAIChat(id="m"), tools=[refund], telemetry=False).run("Refund ch_1.").content

def alone():
    """A tool without a model: what it returns is in the file `result`."""
    from langchain_core.tools import tool
    @tool
    def refund(charge: str, usd: int) -> str:
        """Refunds a charge."""
        paid = pay(charge, usd)
        while "waits" in sys.argv and not os.path.exists("go"):
            time.sleep(0.02)
        return paid
    with open("pid", "w") as pid:
        pid.write(f"{os.getpid()}\n")
    for usd in [int(usd) for usd in sys.argv[2:] if usd.isdigit()] or [20]:
        said = refund.invoke({"charge": "ch_1", "usd": usd})
        with open("result", "a") as result:
            result.write(said + "\n")
    return said

def mcp():
    """A tool of an MCP server."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    async def run():
        async with stdio_client(StdioServerParameters(command=sys.executable, args=[__file__, "mcp_server"])) as streams:
            async with ClientSession(*streams) as session:
                await session.initialize()
                return (await session.call_tool("refund", {"charge": "ch_1", "usd": 20})).content[0].text
    return asyncio.run(run())

def mcp_server():
    from mcp.server.mcpserver import MCPServer
    server = MCPServer("bank")
    @server.tool()
    def refund(charge: str, usd: int) -> str:
        return pay(charge, usd)
    server.run()

if sys.argv[1] == "vendor":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Vendor)
    print(server.server_port, flush=True)
    server.serve_forever()
if sys.argv[1] == "mcp_server":
    sys.exit(mcp_server())
print("reply:", globals()[sys.argv[1]]())
