"""A refund desk: two agents, two tools, one mistake. It needs Python alone.

Usage: python3 desk.py
A service that refunds times out after it has paid, and the desk calls it again. The agents and their model
are fixed answers; their spans are real, and go to the receiver that OTEL_EXPORTER_OTLP_ENDPOINT names.
"""

import json
import os
import secrets
import time
import urllib.request
from contextlib import contextmanager

# The mistake: after a timeout the refund may be paid already.
REFUND_AGAIN_AFTER_TIMEOUT = True

TRACE = secrets.token_hex(16)
paid = []
spans = []
open_ids = []


@contextmanager
def span(name, **attributes):
    """A span of OpenTelemetry. An error that leaves it is recorded and raised again."""
    this = {"traceId": TRACE, "spanId": secrets.token_hex(8), "name": name, "kind": 1}
    this["parentSpanId"] = open_ids[-1] if open_ids else ""
    this["startTimeUnixNano"] = str(time.time_ns())
    open_ids.append(this["spanId"])
    try:
        yield attributes
    except Exception as error:
        this["status"] = {"code": 2, "message": str(error)}
        raise
    finally:
        open_ids.pop()
        this["endTimeUnixNano"] = str(time.time_ns())
        this["attributes"] = [
            {"key": key.replace("__", "."), "value": value_of(value)}
            for key, value in attributes.items()
        ]
        spans.append(this)


def value_of(value):
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def send():
    """Sends the spans, if a receiver is named."""
    endpoint = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    if not endpoint:
        return
    body = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "desk"}, "spans": spans}]}]}
    request = urllib.request.Request(
        endpoint.rstrip("/") + "/v1/traces",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=5).read()


def agent(name):
    return span(
        f"invoke_agent {name}", gen_ai__operation__name="invoke_agent", gen_ai__agent__name=name
    )


def model(text, tokens_in, tokens_out):
    with span(
        "chat desk-model",
        gen_ai__operation__name="chat",
        gen_ai__request__model="desk-model",
        gen_ai__usage__input_tokens=tokens_in,
        gen_ai__usage__output_tokens=tokens_out,
        output__value=text,
    ):
        return text


def tool(name, call, **arguments):
    with span(
        f"execute_tool {name}",
        gen_ai__operation__name="execute_tool",
        gen_ai__tool__name=name,
        gen_ai__tool__call__arguments=json.dumps(arguments),
    ) as attributes:
        result = call(**arguments)
        attributes["gen_ai__tool__call__result"] = json.dumps(result)
        return result


def find_charges(order):
    return [{"id": "ch_1", "order": order, "usd": 49.9}, {"id": "ch_2", "order": order, "usd": 49.9}]


def refund(charge):
    paid.append(charge)
    if len(paid) == 1:
        raise TimeoutError("no answer of the payment service within 2 s")
    return {"refunded": charge}


def find_refund(charge):
    return {"refunded": charge} if charge in paid else {}


def desk(question):
    with agent("triage"):
        model("This is about a charge: billing takes over.", 120, 14)
    with agent("billing"):
        charges = tool("find_charges", find_charges, order="8841")
        model("The second charge is a copy of the first one.", 310, 18)
        charge = charges[1]["id"]
        try:
            tool("refund", refund, charge=charge)
        except TimeoutError:
            if REFUND_AGAIN_AFTER_TIMEOUT:
                tool("refund", refund, charge=charge)
            elif not tool("find_refund", find_refund, charge=charge):
                raise
        return model(f"{charge} is refunded. Sorry for the trouble.", 402, 16)


if __name__ == "__main__":
    with span("desk", openinference__span__kind="CHAIN") as attributes:
        attributes["input__value"] = "I was charged twice for order 8841."
        answer = desk(attributes["input__value"])
        attributes["output__value"] = answer
    send()
    print(answer)
