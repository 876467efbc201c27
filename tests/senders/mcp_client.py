"""Runs scenarios through `roundtable mcp` with the official SDK: client.py PROGRAM MODE."""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult

PROGRAM, MODE = sys.argv[1:]


async def main():
    server = StdioServerParameters(
        command=PROGRAM,
        args=["mcp", "--allow-answers", "desk.toml", "checkout-launch"],
        env=dict(os.environ),
        cwd=os.getcwd(),
    )
    asked, notes = [], []

    async def ask_user(context, params):
        asked.append(params.message)
        fields = params.requested_schema["properties"]
        content = {"approve": True} if "approve" in fields else {"text": "We are."}
        return ElicitResult(action="accept", content=content)

    async def on_progress(progress, total, message):
        notes.append((progress, message))

    async with Client(server, mode=MODE, elicitation_callback=ask_user) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        listed = await client.call_tool("list_scenarios")
        run = await client.call_tool(
            "run_scenario",
            {"scenario": "checkout-launch", "inputs": {"region": "EU"}, "instant": True},
            progress_callback=on_progress,
        )
        desk = await client.call_tool("run_scenario", {"scenario": "desk", "people": "wait"})
        events = await client.call_tool("read_run", {"run": "last", "what": "events", "limit": 3})
        refused = await client.call_tool("run_scenario", {"scenario": "desk", "live": True})
        print(json.dumps({
            "version": client.protocol_version,
            "tools": tools,
            "names": [row["name"] for row in listed.structured_content["scenarios"]],
            "run": run.structured_content,
            "desk": desk.structured_content,
            "asked": asked,
            "notes": notes,
            "events": [event["seq"] for event in events.structured_content["events"]],
            "refused": [refused.is_error, refused.content[0].text],
        }))


asyncio.run(main())
