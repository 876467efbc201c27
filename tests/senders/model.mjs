// The model of model.py for programs of Node.
import { createServer } from "node:http";

export const name = "model-1";
const reply = "There are 7 lamps.";
const usage = { prompt_tokens: 20, completion_tokens: 6, total_tokens: 26 };
const calls = [];

function answer(request, response) {
  let body = "";
  request.on("data", (chunk) => (body += chunk));
  request.on("end", () => {
    const asked = JSON.parse(body);
    calls.push(asked);
    const isSecond = asked.messages.some((message) => message.role === "tool");
    const call = { id: "call_1", type: "function", function: { name: "stock", arguments: '{"item": "lamp"}' } };
    const message = isSecond
      ? { role: "assistant", content: reply }
      : { role: "assistant", content: null, tool_calls: [call] };
    const choice = { index: 0, message, finish_reason: isSecond ? "stop" : "tool_calls" };
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({ id: `c${calls.length}`, object: "chat.completion", created: 1, model: name, choices: [choice], usage }),
    );
  });
}

/** Starts the server; returns its address. */
export async function start() {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await new Promise((listening) => server.once("listening", listening));
  server.unref();
  return `http://127.0.0.1:${server.address().port}/v1`;
}

/** What the program has asked, as a line of JSON. */
export function account() {
  const [first] = calls;
  console.log(
    JSON.stringify({
      calls: calls.length,
      prompt_tokens: 20 * calls.length,
      completion_tokens: 6 * calls.length,
      roles: first.messages.map((message) => message.role),
      tools: first.tools.map((tool) => tool.function.name),
    }),
  );
}
