// A call of the AI SDK with a tool, and OpenTelemetry set up as its documents say.
import { createOpenAI } from "@ai-sdk/openai";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { NodeSDK } from "@opentelemetry/sdk-node";
import { generateText, jsonSchema, stepCountIs, tool } from "ai";
import { account, name, start } from "./model.mjs";

const sdk = new NodeSDK({ traceExporter: new OTLPTraceExporter() });
sdk.start();
const openai = createOpenAI({ baseURL: await start(), apiKey: "x" });
const inputSchema = jsonSchema({ type: "object", properties: { item: { type: "string" } }, required: ["item"] });
const { text } = await generateText({
  model: openai.chat(name),
  system: "You are the desk.",
  prompt: "How many lamps?",
  tools: { stock: tool({ description: "Items in stock", inputSchema, execute: async () => "7" }) },
  stopWhen: stepCountIs(3),
  experimental_telemetry: { isEnabled: true, functionId: "desk" },
});
console.log(text);
account();
await sdk.shutdown();
