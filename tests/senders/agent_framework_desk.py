"""An agent of Agent Framework with a tool."""

import asyncio

import model
from agent_framework.openai import OpenAIChatCompletionClient


def stock(item: str) -> str:
    """Items in stock."""
    return "7"


async def main():
    client = OpenAIChatCompletionClient(model=model.NAME, api_key="x", base_url=model.start())
    desk = client.as_agent(name="desk", instructions="You are the desk.", tools=[stock])
    print((await desk.run("How many lamps?")).text)


asyncio.run(main())
model.account()
