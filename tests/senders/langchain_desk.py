"""An agent of LangChain with a tool, whose reply is streamed."""

import model
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


@tool
def stock(item: str) -> str:
    """Items in stock."""
    return "7"


llm = ChatOpenAI(model=model.NAME, base_url=model.start(), api_key="x", stream_usage=True)
desk = create_agent(llm, [stock], system_prompt="You are the desk.", name="desk")
text = ""
for token, _ in desk.stream({"messages": [("user", "How many lamps?")]}, stream_mode="messages"):
    text += token.content if token.type == "AIMessageChunk" else ""
print(text)
model.account()
