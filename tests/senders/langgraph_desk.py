"""A small support desk as a LangGraph graph, with a fake chat model and no network.

Usage: python langgraph_desk.py [fail|interrupt|resume]
SLOW_S sets how long the slow tool takes (3 seconds by default).
"""

import operator
import os
import sys
import time
from typing import Annotated, TypedDict

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

SLOW_S = float(os.environ.get("SLOW_S", "3"))
MODE = sys.argv[1] if len(sys.argv) > 1 else ""


@tool
def search_orders(customer: str) -> str:
    """Search the orders of a customer in a slow archive."""
    time.sleep(SLOW_S)
    return f"2 orders of {customer}: #1001 paid, #1002 open"


@tool
def read_policy(topic: str) -> str:
    """Read the policy on a topic."""
    return f"Policy on {topic}: open orders can be cancelled within 14 days."


class Desk(TypedDict, total=False):
    question: str
    customer: str
    findings: Annotated[list[str], operator.add]
    price: str
    approved: bool
    answer: str


class Lookup(TypedDict):
    source: str
    customer: str
    findings: Annotated[list[str], operator.add]


def fetch(state: Lookup) -> dict:
    if state["source"] == "orders":
        found = search_orders.invoke({"customer": state["customer"]})
    else:
        found = read_policy.invoke({"topic": "cancellation"})
    return {"findings": [found]}


def check(state: Lookup) -> dict:
    return {"findings": [f"checked {state['source']}"]}


def build_research():
    """The subgraph that looks into one source."""
    graph = StateGraph(Lookup, output_schema=Lookup)
    graph.add_node("fetch", fetch)
    graph.add_node("check", check)
    graph.add_edge(START, "fetch")
    graph.add_edge("fetch", "check")
    graph.add_edge("check", END)
    return graph.compile(name="research")


research_graph = build_research()


def intake(state: Desk) -> dict:
    return {"customer": "Ada"}


def fan_out(state: Desk) -> list[Send]:
    return [Send("research", {"source": s, "customer": state["customer"]}) for s in ("orders", "policy")]


def research(state: Lookup) -> dict:
    result = research_graph.invoke({"source": state["source"], "customer": state["customer"]})
    return {"findings": result["findings"]}


def live_price(order: str) -> str:
    raise ConnectionError(f"price service is down (order {order})")


def list_price(order: str) -> str:
    return f"{order}: 40 EUR (list price)"


def broken_price_step(state: Desk) -> dict:
    return {"price": live_price("#1002")}


def fallback_price_step(state: Desk) -> dict:
    return {"price": list_price("#1002")}


def approve(state: Desk) -> dict:
    if MODE in ("interrupt", "resume"):
        verdict = interrupt({"question": "Cancel order #1002?", "price": state["price"]})
        return {"approved": verdict == "yes"}
    return {"approved": True}


REPLY = AIMessage(
    content="Order #1002 is cancelled. You get 40 EUR back.",
    usage_metadata={"input_tokens": 120, "output_tokens": 14, "total_tokens": 134},
    response_metadata={"model_name": "desk-model-1"},
)


class DeskModel(GenericFakeChatModel):
    """A chat model with fixed replies."""

    model_name: str = "desk-model-1"


model = DeskModel(messages=iter([REPLY]))


def answer(state: Desk) -> dict:
    if MODE == "fail":
        raise RuntimeError("the answer template is missing")
    found = "\n".join(sorted(state["findings"]))
    reply = model.invoke([HumanMessage(content=f"{state['question']}\n{found}\n{state['price']}")])
    return {"answer": reply.content}


def build_desk():
    price = RunnableLambda(broken_price_step, name="live_price").with_fallbacks(
        [RunnableLambda(fallback_price_step, name="list_price")]
    )
    graph = StateGraph(Desk)
    graph.add_node("intake", intake)
    graph.add_node("research", research)
    graph.add_node("price", price)
    graph.add_node("approve", approve)
    graph.add_node("answer", answer)
    graph.add_edge(START, "intake")
    graph.add_conditional_edges("intake", fan_out, ["research"])
    graph.add_edge("research", "price")
    graph.add_edge("price", "approve")
    graph.add_edge("approve", "answer")
    graph.add_edge("answer", END)
    checkpointer = MemorySaver() if MODE in ("interrupt", "resume") else None
    return graph.compile(checkpointer=checkpointer, name="support_desk")


def main() -> None:
    desk = build_desk()
    question = {"question": "Please cancel my open order."}
    config = {"configurable": {"thread_id": "desk-1"}}
    result = desk.invoke(question, config)
    if "__interrupt__" in result:
        print("waiting:", result["__interrupt__"][0].value["question"])
        if MODE == "interrupt":
            return
        result = desk.invoke(Command(resume="yes"), config)
    for line in sorted(result["findings"]):
        print(line)
    print(result["price"])
    print(result["answer"])


if __name__ == "__main__":
    main()
