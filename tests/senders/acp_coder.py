"""A coding agent made with the official Python SDK. What it does is in the prompt, as words."""
import asyncio
import json
import os
import re
import sys
from typing import Any

from acp import (PROTOCOL_VERSION, Agent, InitializeResponse, LoadSessionResponse,
                 NewSessionResponse, PromptResponse, SetSessionModeResponse, run_agent,
                 start_tool_call, text_block, tool_diff_content, update_agent_message,
                 update_plan, update_tool_call, plan_entry)
from acp.schema import (AgentCapabilities, Cost, Implementation, PermissionOption, SessionMode,
                        SessionModeState, ToolCallUpdate, Usage, UsageUpdate)


class Coder(Agent):
    def __init__(self):
        self.sessions = {}
        self.cancelled = set()

    def on_connect(self, conn):
        self.conn = conn

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **kwargs):
        self.client = client_capabilities
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(load_session="--load" in sys.argv),
            agent_info=Implementation(name="coder", title="Coder", version="0.1.0"))

    async def new_session(self, cwd, additional_directories=None, mcp_servers=None, **kwargs):
        name = f"s{len(self.sessions) + 1}-{os.getpid()}"
        self.sessions[name] = {"cwd": cwd, "prompts": [], "servers": mcp_servers or []}
        modes = SessionModeState(current_mode_id="code", available_modes=[
            SessionMode(id="code", name="Code"), SessionMode(id="plan", name="Plan")])
        return NewSessionResponse(session_id=name, modes=modes)

    async def load_session(self, cwd, session_id, additional_directories=None, mcp_servers=None, **kwargs):
        self.sessions[session_id] = {"cwd": cwd, "prompts": ["(loaded)"], "servers": mcp_servers or []}
        return LoadSessionResponse()

    async def set_session_mode(self, session_id, mode_id, **kwargs):
        self.sessions[session_id]["mode"] = mode_id
        return SetSessionModeResponse()

    async def say(self, session, text):
        await self.conn.session_update(session, update_agent_message(text_block(text)))

    async def prompt(self, session_id, prompt, **kwargs):
        text = "\n".join(block.text for block in prompt if getattr(block, "text", None))
        session = self.sessions[session_id]
        session["prompts"].append(text)
        usage = None
        if "do:plan" in text:
            await self.conn.session_update(session_id, update_plan([
                plan_entry("Read the change", status="completed"),
                plan_entry("Write the fix", status="in_progress"),
                plan_entry("Run the tests")]))
        if "do:read" in text:
            await self.say(session_id, "I read the file first.")
            await self.conn.session_update(session_id, start_tool_call(
                "t1", "Read retry.rs", kind="read", status="in_progress", raw_input={"path": "retry.rs"}))
            await self.conn.session_update(session_id, update_tool_call("t1", status="completed"))
        if "do:edit" in text:
            path = os.path.join(session["cwd"], "retry.rs")
            call = ToolCallUpdate(tool_call_id="t2", title="Edit retry.rs", kind="edit",
                                  content=[tool_diff_content(path, "fn retry() { wait() }\n", "fn retry() {}\n")],
                                  raw_input={"path": path})
            answer = await self.conn.request_permission(session_id=session_id, tool_call=call, options=[
                PermissionOption(option_id="yes", name="Allow", kind="allow_once"),
                PermissionOption(option_id="always", name="Always allow", kind="allow_always"),
                PermissionOption(option_id="no", name="Reject", kind="reject_once")])
            chosen = getattr(answer.outcome, "option_id", "cancelled")
            await self.say(session_id, f"permission: {chosen}. ")
        if "do:files" in text:
            path = os.path.join(session["cwd"], "notes.txt")
            try:
                await self.conn.write_text_file(session_id=session_id, path=path, content="one\ntwo\n")
                got = await self.conn.read_text_file(session_id=session_id, path=path, line=2)
                await self.say(session_id, f"file says {got.content.strip()}. ")
            except Exception as error:
                await self.say(session_id, f"files: {error}. ")
        if "do:terminal" in text:
            try:
                made = await self.conn.create_terminal(session_id=session_id, command="sh", args=["-c", "echo hi; exit 3"])
                ended = await self.conn.wait_for_terminal_exit(session_id=session_id, terminal_id=made.terminal_id)
                out = await self.conn.terminal_output(session_id=session_id, terminal_id=made.terminal_id)
                await self.conn.release_terminal(session_id=session_id, terminal_id=made.terminal_id)
                await self.say(session_id, f"terminal says {out.output.strip()} and {ended.exit_code}. ")
            except Exception as error:
                await self.say(session_id, f"terminal: {error}. ")
        if "do:cost" in text:
            await self.conn.session_update(session_id, UsageUpdate(
                session_update="usage_update", used=1000, size=200000,
                cost=Cost(amount=0.01 * len(session["prompts"]), currency="USD")))
            usage = Usage(total_tokens=120, input_tokens=100, output_tokens=20)
        if "do:servers" in text:
            await self.say(session_id, "servers: " + ", ".join(it.name for it in session["servers"]) + ". ")
        if "do:mode" in text:
            await self.say(session_id, f"mode: {session.get('mode')}. ")
        if "do:handoff" in text and "transfer_to_agent" in text:
            target = re.search(r"do:handoff=(\w+)", text).group(1)
            await self.say(session_id, "Over to you.\n" + json.dumps(
                {"tool": "transfer_to_agent", "arguments": {"agent_name": target, "message": "Please decide."}}))
        elif "\"stance\"" in text:
            stance = "caution" if "cautious" in text else "go"
            await self.say(session_id, json.dumps({
                "stance": stance, "summary": f"Prompt {len(session['prompts'])} of my session.",
                "confidence": 0.8, "actions": ["Add a test."]}))
        else:
            await self.say(session_id, f"Done with prompt {len(session['prompts'])}.")
        return PromptResponse(stop_reason="end_turn", usage=usage)

    async def cancel(self, session_id, **kwargs):
        self.cancelled.add(session_id)


asyncio.run(run_agent(Coder()))
