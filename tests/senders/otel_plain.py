"""A program that describes its agent with plain OpenTelemetry spans.

Usage: python otel_plain.py
The exporter takes its target from the usual OTEL_EXPORTER_OTLP_* variables.
SLOW_S sets how long the tool takes (1 second by default).
"""

import os
import time

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Status, StatusCode

SLOW_S = float(os.environ.get("SLOW_S", "1"))

provider = TracerProvider(resource=Resource.create({"service.name": "weather-desk"}))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("weather_desk", "1.0")


def ask_model() -> str:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "fake",
        "gen_ai.request.model": "fake-weather-1",
    }
    with tracer.start_as_current_span("chat fake-weather-1", attributes=attributes) as span:
        time.sleep(0.1)
        answer = read_sensor("harbour")
        span.set_attribute("gen_ai.response.model", "fake-weather-1-2025")
        span.set_attribute("gen_ai.response.finish_reasons", ["stop"])
        span.set_attribute("gen_ai.usage.input_tokens", 31)
        span.set_attribute("gen_ai.usage.output_tokens", 9)
        return f"It is {answer} at the harbour."


def read_sensor(place: str) -> str:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read_sensor",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.tool.call.arguments": f'{{"place": "{place}"}}',
    }
    with tracer.start_as_current_span("execute_tool read_sensor", attributes=attributes) as span:
        time.sleep(SLOW_S)
        span.set_attribute("gen_ai.tool.call.result", "12 degrees")
        return "12 degrees"


def read_broken_sensor() -> None:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read_old_sensor"}
    with tracer.start_as_current_span("execute_tool read_old_sensor", attributes=attributes) as span:
        try:
            raise TimeoutError("no answer from the old sensor")
        except TimeoutError as error:
            span.record_exception(error)
            span.set_attribute("error.type", "TimeoutError")
            span.set_status(Status(StatusCode.ERROR, str(error)))


def main() -> None:
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "forecaster",
        "gen_ai.agent.id": "agent_1",
        "gen_ai.conversation.id": "talk_1",
    }
    with tracer.start_as_current_span("invoke_agent forecaster", attributes=attributes):
        read_broken_sensor()
        print(ask_model())


if __name__ == "__main__":
    main()
