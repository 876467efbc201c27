"""A triage agent that hands off to billing, with the OpenAI Agents SDK.

The model is a fake, there is no network and no key.
Usage: python openai_agents_desk.py [error]
With `error` a tool fails, and its agent replies all the same.
SLOW_S sets how long the tool takes (1 second by default).
"""

import asyncio
import os
import sys

from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    Model,
    ModelResponse,
    RunContextWrapper,
    Runner,
    Usage,
    function_tool,
    generation_span,
    input_guardrail,
)
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

SLOW_S = float(os.environ.get("SLOW_S", "1"))


def says(text: str):
    return ResponseOutputMessage(
        id="msg_1",
        type="message",
        role="assistant",
        status="completed",
        content=[ResponseOutputText(type="output_text", text=text, annotations=[])],
    )


def calls(name: str, arguments: str, call_id: str):
    return ResponseFunctionToolCall(
        id=f"fc_{call_id}", call_id=call_id, type="function_call", name=name, arguments=arguments
    )


class ScriptedModel(Model):
    """Answers with the next item of a script."""

    def __init__(self, name: str, script: list):
        self.name = name
        self.script = list(script)

    async def get_response(
        self, system_instructions, input, model_settings, tools, output_schema, handoffs, tracing, **kwargs
    ) -> ModelResponse:
        with generation_span(model=self.name, disabled=tracing.is_disabled()) as span:
            await asyncio.sleep(0.05)
            item = self.script.pop(0)
            usage = Usage(requests=1, input_tokens=90, output_tokens=12, total_tokens=102)
            if tracing.include_data():
                span.span_data.input = [{"role": "user", "content": input}] if isinstance(input, str) else input
                span.span_data.output = [item.model_dump()]
            span.span_data.usage = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
            return ModelResponse(output=[item], usage=usage, response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError("this program does not stream")


@function_tool
async def find_invoice(number: str) -> str:
    """Find an invoice by its number."""
    await asyncio.sleep(SLOW_S)
    return f"invoice {number}: 40 EUR, paid twice"


@input_guardrail
async def no_secrets(ctx: RunContextWrapper, agent: Agent, user_input) -> GuardrailFunctionOutput:
    text = user_input if isinstance(user_input, str) else str(user_input)
    return GuardrailFunctionOutput(output_info={"checked": True}, tripwire_triggered="password" in text)


billing = Agent(
    name="billing",
    instructions="You answer questions about invoices.",
    model=ScriptedModel(
        "fake-billing-1",
        [
            calls("find_invoice", '{"number": "2041"}', "call_2"),
            says("Invoice 2041 was paid twice. You get 40 EUR back."),
        ],
    ),
    tools=[find_invoice],
)

triage = Agent(
    name="triage",
    instructions="You send each question to the right desk.",
    model=ScriptedModel(
        "fake-triage-1",
        [calls("transfer_to_billing", "{}", "call_1"), says("This is never said.")],
    ),
    handoffs=[billing],
    input_guardrails=[no_secrets],
)


@function_tool
async def read_ledger(year: str) -> str:
    """Read the ledger of a year."""
    raise ValueError(f"there is no ledger of {year}")


clerk = Agent(
    name="clerk",
    model=ScriptedModel(
        "fake-clerk-1", [calls("read_ledger", '{"year": "1969"}', "call_3"), says("It cannot be read.")]
    ),
    tools=[read_ledger],
)


async def main() -> None:
    if "error" in sys.argv:
        result = await Runner.run(clerk, "Read the ledger of 1969.")
        print(result.final_output)
        return
    result = await Runner.run(triage, "Why did I pay invoice 2041 twice?")
    print(result.last_agent.name)
    print(result.final_output)
    try:
        await Runner.run(triage, "My password is swordfish.")
    except InputGuardrailTripwireTriggered:
        print("second question refused")


if __name__ == "__main__":
    asyncio.run(main())
