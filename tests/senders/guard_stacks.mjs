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
        const { openai } = await import("@ai-sdk/openai");
        return generate(openai.chat("gpt-5.1"), mode, text);
    },
    async ai_anthropic(mode, text) {
        const { anthropic } = await import("@ai-sdk/anthropic");
        return generate(anthropic("claude-haiku-4-5"), mode, text);
    },
    async agents(mode, text) {
        const { Agent, run, setTracingDisabled } = await import("@openai/agents");
        setTracingDisabled(true);
        const desk = new Agent({ name: "desk", instructions: "Help.", model: "gpt-5.1" });
        const ask = async (text) => (await run(desk, text)).finalOutput;
        if (mode === "parallel") return (await Promise.all(many.map(ask))).sort().join();
        if (mode !== "streamed") return ask(text);
        let said = "";
        for await (const part of (await run(desk, text, { stream: true })).toTextStream()) said += part;
        return said;
    },
};

async function generate(model, mode, text) {
    const { generateText, streamText } = await import("ai");
    const ask = async (prompt) => (await generateText({ model, prompt, maxRetries: 3 })).text;
    if (mode === "parallel") return (await Promise.all(many.map(ask))).sort().join();
    if (mode !== "streamed") return ask(text);
    let said = "";
    for await (const part of streamText({ model, prompt: text }).textStream) said += part;
    return said;
}

const [stack, ...modes] = process.argv.slice(2);
for (const mode of modes) {
    const text = mode === "failing" ? `fail ${stack} of npm` : `hello ${mode}`;
    try {
        console.log(mode, await stacks[stack](mode, text));
    } catch (error) {
        if (mode !== "refused") throw error;
        console.log(mode, `${error.constructor.name}: ${error.message}`.replace(/\s+/g, " "));
    }
}
