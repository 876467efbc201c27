// Client stacks of npm: `guard_stacks.mjs STACK MODE…` prints what the stack got.
const many = Array.from({ length: 10 }, (_, n) => `number ${n}`);

const stacks = {
    async openai(mode, text) {
        const { default: OpenAI } = await import("openai");
        const client = new OpenAI({ maxRetries: 3 });
        const ask = async (text) => (await client.responses.create({ model: "gpt-5.1", input: text })).output_text;
        if (mode === "parallel") return (await Promise.all(many.map(ask))).sort().join();
        const about = { model: "gpt-5.1", messages: [{ role: "user", content: text }] };
        if (mode !== "streamed") return (await client.chat.completions.create(about)).choices[0].message.content;
        const usage = { include_usage: true };
        const chunks = await client.chat.completions.create({ ...about, stream: true, stream_options: usage });
        let said = "";
        for await (const chunk of chunks) said += chunk.choices[0]?.delta?.content ?? "";
        return said;
    },
    async ai(mode, text) {
        const { generateText, streamText } = await import("ai");
        const { openai } = await import("@ai-sdk/openai");
        const model = openai.chat("gpt-5.1");
        const ask = async (prompt) => (await generateText({ model, prompt, maxRetries: 3 })).text;
        if (mode === "parallel") return (await Promise.all(many.map(ask))).sort().join();
        if (mode !== "streamed") return ask(text);
        let said = "";
        for await (const part of streamText({ model, prompt: text }).textStream) said += part;
        return said;
    },
    async ai_anthropic(mode, text) {
        const { generateText } = await import("ai");
        const { anthropic } = await import("@ai-sdk/anthropic");
        return (await generateText({ model: anthropic("claude-haiku-4-5"), prompt: text, maxRetries: 3 })).text;
    },
    async agents(mode, text) {
        const { Agent, run, setTracingDisabled } = await import("@openai/agents");
        setTracingDisabled(true);
        const desk = new Agent({ name: "desk", instructions: "Help.", model: "gpt-5.1" });
        return (await run(desk, text)).finalOutput;
    },
};

const [stack, ...modes] = process.argv.slice(2);
for (const mode of modes) {
    const text = mode === "failing" ? `fail ${stack} of npm` : `hello ${mode}`;
    console.log(mode, await stacks[stack](mode, text));
}
