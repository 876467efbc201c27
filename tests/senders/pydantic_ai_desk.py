"""A planner agent that asks a researcher agent, with Pydantic AI and fake models.

Usage: python pydantic_ai_desk.py [retry]
With `retry` the archive refuses the first call of its tool.
SLOW_S sets how long the tool takes (1 second by default).
"""

import asyncio
import os
import sys

from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

SLOW_S = float(os.environ.get("SLOW_S", "1"))


def answered(messages: list[ModelMessage]) -> int:
    return sum(isinstance(m, ModelResponse) for m in messages)


def research_model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    refused = 1 if "retry" in sys.argv else 0
    if answered(messages) <= refused:
        year = 1969 if answered(messages) == refused else 69
        return ModelResponse(parts=[ToolCallPart("read_archive", {"year": year})])
    return ModelResponse(parts=[TextPart("The archive names one landing.")])


def plan_model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    if answered(messages) == 0:
        return ModelResponse(parts=[ToolCallPart("ask_researcher", {"question": "What happened in 1969?"})])
    return ModelResponse(parts=[TextPart("Plan: write one page on the landing.")])


researcher = Agent(FunctionModel(research_model, model_name="fake-research-1"), name="researcher")
planner = Agent(FunctionModel(plan_model, model_name="fake-plan-1"), name="planner")


@researcher.tool_plain
async def read_archive(year: int) -> str:
    """Read the archive of a year."""
    await asyncio.sleep(SLOW_S)
    if year < 1000:
        raise ModelRetry("give the year with four digits")
    return f"{year}: first landing on the moon"


@planner.tool
async def ask_researcher(ctx: RunContext[None], question: str) -> str:
    """Ask the researcher a question."""
    result = await researcher.run(question, usage=ctx.usage)
    return result.output


async def main() -> None:
    result = await planner.run("Plan an article on 1969.")
    print(result.output)


if __name__ == "__main__":
    asyncio.run(main())
