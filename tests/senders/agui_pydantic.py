"""An agent of Pydantic AI behind AG-UI, with a model that is made up. Prints its port.

It looks charges up with a tool of its own, refunds after approval, and asks the client for its policy.
"""

import json
import socket
from collections.abc import AsyncIterator

import uvicorn
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


def call(name: str, **args: str) -> dict[int, DeltaToolCall]:
    return {0: DeltaToolCall(name=name, json_args=json.dumps(args), tool_call_id=f"{name}-1")}


async def reply(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    users = [part for part in parts if isinstance(part, UserPromptPart)]
    since = parts[parts.index(users[-1]) + 1 :]
    done = [part for part in since if isinstance(part, ToolReturnPart)]
    asked = str(users[-1].content)
    tools = [tool.name for tool in info.function_tools]
    if "history" in asked:
        yield f"{len(users)} questions, {len(messages)} messages"
    elif done and done[-1].tool_name != "find_charges":
        yield f"Done: {done[-1].content}"
    elif "policy" in asked and "get_policy" in tools:
        yield call("get_policy", about="refunds")
    elif done:
        yield call("refund", charge="ch_2")
    else:
        yield "Let me look."
        yield call("find_charges", order="8841")


agent = Agent(FunctionModel(stream_function=reply), output_type=[str, DeferredToolRequests])


@agent.tool_plain
def find_charges(order: str) -> str:
    return f"charges of {order}: ch_1 49.90, ch_2 49.90"


@agent.tool_plain(requires_approval=True)
def refund(charge: str) -> str:
    return f"refunded {charge}"


async def run(request: Request) -> Response:
    return await AGUIAdapter.dispatch_request(request, agent=agent)


app = Starlette(routes=[Route("/agent", run, methods=["POST"])])

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run([listener])
