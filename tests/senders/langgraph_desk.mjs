// A graph of LangGraph.js: a node with a model, and one with its tool.
import { awaitAllCallbacks } from "@langchain/core/callbacks/promises";
import { tool } from "@langchain/core/tools";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ChatOpenAI } from "@langchain/openai";
import { account, name, start } from "./model.mjs";

const schema = { type: "object", properties: { item: { type: "string" } }, required: ["item"] };
const stock = tool(async () => "7", { name: "stock", description: "Items in stock", schema });
const model = new ChatOpenAI({ model: name, configuration: { baseURL: await start() }, apiKey: "x" });
const ask = async ({ messages }) => ({ messages: [await model.bindTools([stock]).invoke(messages)] });
const use = async ({ messages }) => ({ messages: [await stock.invoke(messages.at(-1).tool_calls[0])] });
const graph = new StateGraph(MessagesAnnotation)
  .addNode("desk", ask)
  .addNode("use", use)
  .addEdge(START, "desk")
  .addConditionalEdges("desk", ({ messages }) => (messages.at(-1).tool_calls?.length ? "use" : END))
  .addEdge("use", "desk")
  .compile();
const { messages } = await graph.invoke({
  messages: [
    ["system", "You are the desk."],
    ["user", "How many lamps?"],
  ],
});
console.log(messages.at(-1).content);
account();
await awaitAllCallbacks();
