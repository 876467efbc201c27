"""An agent of LangGraph behind AG-UI, with a model that is made up. Prints its port.

/agent says with its own event that it waits for a person, /outcome as the protocol does. /reviewed and
/per_call have LangChain's middleware instead, which asks about all calls at once or about each. A message
with "both" asks for two approvals at once; "history" says which messages the thread has.
"""

import json
import socket
from typing import Any

import uvicorn
from ag_ui_langgraph import LangGraphAgent, add_langgraph_fastapi_endpoint
from fastapi import FastAPI
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Send, interrupt


@tool
def find_charges(order: str) -> str:
    """Finds charges of an order."""
    return f"charges of {order}: ch_1 49.90, ch_2 49.90"


@tool
def refund(charge: str) -> str:
    """Refunds a charge after approval."""
    answer = interrupt({"question": f"Refund {charge}?", "charge": charge})
    return f"refunded {charge}" if answer == {"approved": True} else f"kept {charge}: {answer}"


@tool("refund")
def plain_refund(charge: str) -> str:
    """Refunds a charge."""
    return f"refunded {charge}"


def calls(text: str, *made: tuple[str, dict[str, str], str]) -> AIMessage:
    return AIMessage(content=text, tool_calls=[{"name": n, "args": a, "id": i} for n, a, i in made])


def reply(messages: list[Any]) -> AIMessage:
    users = [m for m in messages if isinstance(m, HumanMessage)]
    asked, turn = str(users[-1].content), len(users)
    since = messages[messages.index(users[-1]) + 1 :]
    if "history" in asked:
        return AIMessage(content=" | ".join(f"{m.type}:{m.content}" for m in messages))
    if not since:
        return calls("Let me look.", ("find_charges", {"order": "8841"}, f"find{turn}"))
    if len([m for m in since if m.type == "ai"]) == 1:
        charges = ["ch_1", "ch_2"] if "both" in asked else ["ch_2"]
        return calls("", *[("refund", {"charge": c}, f"{c}-{turn}") for c in charges])
    results = [str(m.content) for m in since if m.type == "tool" and m.name == "refund"]
    return AIMessage(content=f"Done: {', '.join(results)}.")


class MadeUpModel(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "made-up"

    def bind_tools(self, tools: Any, **_: Any) -> "MadeUpModel":
        return self

    def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=reply(messages))])

    def _stream(self, messages: list[Any], stop: Any = None, run_manager: Any = None, **_: Any):
        said = reply(messages)
        for word in str(said.content).split(" ") if said.content else []:
            yield self.chunk(AIMessageChunk(content=word + " "), run_manager)
        for i, made in enumerate(said.tool_calls):
            begun = {"name": made["name"], "args": "", "id": made["id"], "index": i}
            args = {"name": None, "args": json.dumps(made["args"]), "id": None, "index": i}
            for part in (begun, args):
                yield self.chunk(AIMessageChunk(content="", tool_call_chunks=[part]), run_manager)
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        last = AIMessageChunk(content="", usage_metadata=usage)
        yield self.chunk(last, run_manager)

    def chunk(self, message: AIMessageChunk, run_manager: Any) -> ChatGenerationChunk:
        made = ChatGenerationChunk(message=message)
        if run_manager:
            run_manager.on_llm_new_token(str(message.content), chunk=made)
        return made


def graph() -> Any:
    model, tools = MadeUpModel(), [find_charges, refund]

    async def agent(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    def route(state: MessagesState) -> Any:
        made = state["messages"][-1].tool_calls
        return [Send("tools", [call]) for call in made] or END

    made = StateGraph(MessagesState)
    made.add_node("agent", agent)
    made.add_node("tools", ToolNode(tools))
    made.add_edge(START, "agent")
    made.add_conditional_edges("agent", route, ["tools", END])
    made.add_edge("tools", "agent")
    return made.compile(checkpointer=MemorySaver())


app = FastAPI()
own = LangGraphAgent(name="support", graph=graph())
add_langgraph_fastapi_endpoint(app, own, "/agent")
standard = LangGraphAgent(
    name="support", graph=graph(), emit_interrupt_outcome=True, enable_legacy_on_interrupt_event=False
)
add_langgraph_fastapi_endpoint(app, standard, "/outcome")



def reviewed(mode: str) -> Any:
    review = HumanInTheLoopMiddleware(interrupt_on={"refund": True}, interrupt_mode=mode)
    tools = [find_charges, plain_refund]
    return create_agent(MadeUpModel(), tools, middleware=[review], checkpointer=MemorySaver())


add_langgraph_fastapi_endpoint(app, LangGraphAgent(name="reviewed", graph=reviewed("batched")), "/reviewed")
each = LangGraphAgent(
    name="each",
    graph=reviewed("per_call"),
    emit_interrupt_outcome=True,
    enable_legacy_on_interrupt_event=False,
)
add_langgraph_fastapi_endpoint(app, each, "/per_call")

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run([listener])
