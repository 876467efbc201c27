"""A crew of a researcher and a writer, with CrewAI and a fake model.

Usage: python crewai_desk.py [hierarchical]
With `hierarchical` a manager delegates to the researcher.
SLOW_S sets how long the tool takes (1 second by default).
"""

import os
import sys
import time

os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")

from crewai import Agent, BaseLLM, Crew, Process, Task  # noqa: E402
from crewai.events.types.llm_events import LLMCallType  # noqa: E402
from crewai.llms.base_llm import llm_call_context  # noqa: E402
from crewai.tools import tool  # noqa: E402

SLOW_S = float(os.environ.get("SLOW_S", "1"))


@tool("read_archive")
def read_archive(year: str) -> str:
    """Read the archive of a year."""
    time.sleep(SLOW_S)
    return f"{year}: first landing on the moon"


class ScriptedLLM(BaseLLM):
    """Answers with the next line of a script."""

    script: list[str] = []

    def call(self, messages, tools=None, callbacks=None, available_functions=None,
             from_task=None, from_agent=None, response_model=None):
        # Tells of the call as the built-in models of CrewAI do.
        with llm_call_context():
            self._emit_call_started_event(messages=messages, from_task=from_task, from_agent=from_agent)
            answer = self.script.pop(0)
            self._emit_call_completed_event(
                response=answer,
                call_type=LLMCallType.LLM_CALL,
                from_task=from_task,
                from_agent=from_agent,
                messages=messages,
                usage={"prompt_tokens": 80, "completion_tokens": 20, "total_tokens": 100},
            )
        return answer

    def supports_function_calling(self) -> bool:
        return False

    def supports_stop_words(self) -> bool:
        return False

    def get_context_window_size(self) -> int:
        return 8192


researcher = Agent(
    role="Researcher",
    goal="Find facts",
    backstory="You read archives.",
    tools=[read_archive],
    llm=ScriptedLLM(
        model="fake-research-1",
        script=[
            'Thought: I need the archive.\nAction: read_archive\nAction Input: {"year": "1969"}',
            "Thought: I now know the final answer.\nFinal Answer: 1969 saw the first landing.",
        ],
    ),
)
writer = Agent(
    role="Writer",
    goal="Write one line",
    backstory="You write short texts.",
    llm=ScriptedLLM(
        model="fake-write-1",
        script=["Thought: I now can give a great answer.\nFinal Answer: In 1969 people landed on the moon."],
    ),
)

find = Task(description="Find what happened in 1969.", expected_output="One fact", agent=researcher)
write = Task(description="Write one line on it.", expected_output="One line", agent=writer, context=[find])


manager = ScriptedLLM(
    model="fake-manager-1",
    script=[
        "Thought: The researcher knows.\nAction: Delegate work to coworker\nAction Input: "
        '{"task": "Find what happened in 1969.", "context": "It is for an article.", "coworker": "Researcher"}',
        "Thought: I now know the final answer.\nFinal Answer: In 1969 people landed on the moon.",
    ],
)


def main() -> None:
    crew = Crew(name="article", agents=[researcher, writer], tasks=[find, write], process=Process.sequential)
    if "hierarchical" in sys.argv:
        find.agent = None
        crew = Crew(name="article", agents=[researcher, writer], tasks=[find], process=Process.hierarchical, manager_llm=manager)
    result = crew.kickoff()
    print(result.raw)


if __name__ == "__main__":
    main()
