"""An agent of Google ADK with a tool."""

import asyncio

import model
from google.adk.agents import LlmAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types


def stock(item: str) -> str:
    """Items in stock."""
    return "7"


async def main():
    llm = LiteLlm(model=f"openai/{model.NAME}", api_base=model.start(), api_key="x")
    desk = LlmAgent(name="desk", model=llm, instruction="You are the desk.", tools=[stock])
    runner = InMemoryRunner(agent=desk, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    asked = types.Content(role="user", parts=[types.Part(text="How many lamps?")])
    async for event in runner.run_async(user_id="u", session_id=session.id, new_message=asked):
        for part in (event.content.parts or []) if event.content else []:
            if part.text:
                print(part.text)


asyncio.run(main())
model.account()
