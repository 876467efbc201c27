"""An agent of Strands with a tool."""

import model
from strands import Agent, tool
from strands.models.openai import OpenAIModel


@tool
def stock(item: str) -> str:
    """Items in stock.

    Args:
        item: Which item.
    """
    return "7"


desk = Agent(
    model=OpenAIModel(client_args={"api_key": "x", "base_url": model.start()}, model_id=model.NAME),
    tools=[stock], name="desk", system_prompt="You are the desk.", callback_handler=None,
)
print(str(desk("How many lamps?")).strip())
model.account()
