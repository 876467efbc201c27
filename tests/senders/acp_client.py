"""Prompts `roundtable acp` with the official SDK: acp_client.py PROGRAM SCENARIO PROMPT…"""

import asyncio
import json
import os
import sys

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, Implementation, RequestPermissionResponse

PROGRAM, SCENARIO, *PROMPTS = sys.argv[1:]


class User:
    """Approves everything, and keeps what it sees."""

    def __init__(self):
        self.asked, self.updates = [], []

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        self.asked.append([tool_call.title, tool_call.raw_input, [it.kind for it in options]])
        outcome = AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id, update, **kwargs):
        self.updates.append(update.model_dump(by_alias=True, exclude_none=True))

    def on_connect(self, agent):
        pass


async def main():
    user = User()
    args = ["acp", "--instant", SCENARIO]
    async with spawn_agent_process(user, PROGRAM, *args, env=dict(os.environ)) as (agent, process):
        hello = await agent.initialize(
            protocol_version=PROTOCOL_VERSION,
            client_info=Implementation(name="sdk", version="1"),
        )
        session = await agent.new_session(cwd=os.getcwd(), mcp_servers=[])
        ends = []
        for prompt in PROMPTS:
            told = await agent.prompt(session_id=session.session_id, prompt=[text_block(prompt)])
            ends.append(told.stop_reason)
        print(json.dumps({
            "version": hello.protocol_version,
            "agent": hello.agent_info.name,
            "ends": ends,
            "asked": user.asked,
            "updates": user.updates,
        }))


asyncio.run(main())
