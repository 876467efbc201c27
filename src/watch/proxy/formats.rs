//! What requests and responses of the vendors' APIs say: a copy is read, the bytes pass as they are.

use serde_json::{Map, Value, json};

use crate::log::event::Usage;
use crate::scenario::spec::REPLY_TOKENS;
use crate::scenario::spec::script::ReplyEnd;

/// An API of models that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    ChatCompletions,
    Completions,
    Responses,
    Messages,
    /// Google's `generateContent`.
    Contents,
    /// Ollama's `/api/chat`.
    OllamaChat,
    /// Ollama's `/api/generate`.
    OllamaGenerate,
    /// Cohere's `/v2/chat`.
    CohereChat,
    Embeddings,
}

impl Api {
    /// The API of a path; `None`: it is not read.
    pub fn of_path(path: &str) -> Option<Self> {
        let path = path.trim_end_matches('/');
        let ends = |end: &str| path.ends_with(end);
        Some(match path {
            _ if ends("/chat/completions") => Self::ChatCompletions,
            _ if ends("/completions") => Self::Completions,
            _ if ends("/responses") => Self::Responses,
            _ if ends("/messages") => Self::Messages,
            _ if ends(":generateContent") || ends(":streamGenerateContent") => Self::Contents,
            _ if ends("/api/chat") => Self::OllamaChat,
            _ if ends("/api/generate") => Self::OllamaGenerate,
            _ if ends("/v2/chat") => Self::CohereChat,
            _ if ends("/embeddings") || ends("/api/embed") => Self::Embeddings,
            _ if ends(":embedContent") || ends(":batchEmbedContents") => Self::Embeddings,
            _ => return None,
        })
    }

    /// The API of a provider, for the form of its errors. `None`: that of OpenAI.
    pub fn of_provider(provider: &str) -> Option<Self> {
        Some(match provider {
            "anthropic" => Self::Messages,
            "google" => Self::Contents,
            "ollama" => Self::OllamaChat,
            "cohere" => Self::CohereChat,
            _ => return None,
        })
    }

    /// The model that a request names, in its body or, with Google and Azure, in its path.
    pub fn model(path: &str, body: &Value) -> String {
        if let Some(model) = body.get("model").and_then(Value::as_str) {
            return model.trim_start_matches("models/").to_owned();
        }
        let after = |mark: &str| path.split_once(mark).map(|(_, rest)| rest);
        let named = after("/models/").or_else(|| after("/deployments/")).unwrap_or_default();
        named.split(['/', ':']).next().unwrap_or_default().to_owned()
    }
}

/// The most tokens of the replies that a request asks for.
pub fn max_tokens(body: &Value) -> Option<u64> {
    const NAMES: [&str; 6] = [
        "/max_completion_tokens",
        "/max_output_tokens",
        "/max_tokens",
        "/generationConfig/maxOutputTokens",
        "/generation_config/max_output_tokens",
        "/options/num_predict",
    ];
    const REPLIES: [&str; 3] = ["/n", "/best_of", "/generationConfig/candidateCount"];
    let number = |name: &&str| body.pointer(name).and_then(count);
    let replies = REPLIES.iter().filter_map(number).max().unwrap_or(1).max(1);
    let most = NAMES.iter().find_map(number);
    let most = most.or((replies > 1).then_some(u64::from(REPLY_TOKENS)))?;
    Some(most.saturating_mul(replies))
}

/// A number of tokens: some write `1e5`.
fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_f64().filter(|it| *it >= 0.0).map(|it| it as u64))
}

/// The tokens that a response counts.
pub fn usage(body: &Value) -> Option<Usage> {
    let usage = ["usage", "usageMetadata", "usage_metadata"]
        .iter()
        .find_map(|name| body.get(*name).filter(|it| it.is_object()))
        .unwrap_or(body);
    let usage = usage.get("tokens").filter(|it| it.is_object()).unwrap_or(usage);
    let count = |names: &[&str]| names.iter().find_map(|name| count(usage.pointer(name)?));
    let prompt =
        count(&["/prompt_tokens", "/input_tokens", "/promptTokenCount", "/prompt_eval_count"]);
    let reply =
        count(&["/completion_tokens", "/output_tokens", "/candidatesTokenCount", "/eval_count"]);
    if prompt.is_none() && reply.is_none() {
        return None;
    }
    let thoughts = count(&["/thoughtsTokenCount"]).unwrap_or(0);
    let reasoning = count(&[
        "/completion_tokens_details/reasoning_tokens",
        "/output_tokens_details/reasoning_tokens",
    ]);
    let read = count(&["/cache_read_input_tokens"]);
    let written = count(&["/cache_creation_input_tokens"]).unwrap_or(0);
    let cached = count(&[
        "/prompt_tokens_details/cached_tokens",
        "/input_tokens_details/cached_tokens",
        "/cachedContentTokenCount",
    ]);
    // Anthropic counts the tokens of the cache separately.
    let beside = read.unwrap_or(0).saturating_add(written);
    Some(Usage {
        prompt_tokens: prompt.unwrap_or(0).saturating_add(beside),
        completion_tokens: reply.unwrap_or(0).saturating_add(thoughts),
        cached_tokens: cached.or(read).unwrap_or(0),
        cache_write_tokens: written,
        reasoning_tokens: reasoning.unwrap_or(thoughts),
    })
}

/// Why a response ended, in the vendor's word.
pub fn finish(body: &Value) -> Option<&str> {
    const NAMES: [&str; 8] = [
        "/choices/0/finish_reason",
        "/stop_reason",
        "/candidates/0/finishReason",
        "/done_reason",
        "/finish_reason",
        "/incomplete_details/reason",
        "/promptFeedback/blockReason",
        "/status",
    ];
    NAMES.iter().find_map(|name| body.pointer(name)?.as_str())
}

/// How a reply with this word ended.
pub fn end_of(finish: Option<&str>) -> ReplyEnd {
    match finish.unwrap_or_default().to_ascii_lowercase().as_str() {
        "length" | "max_tokens" | "max_output_tokens" | "model_context_window_exceeded" => {
            ReplyEnd::Length
        }
        "content_filter" | "safety" | "recitation" | "blocklist" | "prohibited_content"
        | "spii" => ReplyEnd::Filtered,
        "refusal" => ReplyEnd::Refused,
        "pause_turn" => ReplyEnd::Paused,
        "error" | "failed" | "malformed_function_call" => ReplyEnd::Failed,
        _ => ReplyEnd::Stop,
    }
}

/// The message of an error in a body.
pub fn error_of(body: &Value) -> Option<String> {
    let body = body.get(0).unwrap_or(body);
    let error = body.get("error").filter(|it| !it.is_null())?;
    let message = error.get("message").or_else(|| error.get("type")).unwrap_or(error);
    Some(message.as_str().map_or_else(|| message.to_string(), str::to_owned))
}

/// A streamed response, as one body of the same API.
#[derive(Debug, Default)]
pub struct Assembled {
    body: Map<String, Value>,
    /// The tool calls, parts or blocks of the reply.
    items: Vec<Value>,
    /// The texts of the parts of the reply, and the arguments of its tool calls, by their place.
    texts: Vec<String>,
    /// The bytes of reasoning, which is not kept.
    reasoning: usize,
    /// The error that a response reports at its end.
    pub error: Option<String>,
    has_ended: bool,
}

/// Maximum number of parts of a reply.
const MAX_PARTS: usize = 256;

impl Assembled {
    /// Adds an event; returns the text that it brings.
    pub fn add(&mut self, api: Api, event: &Value) -> String {
        if let Some(error) = error_of(event) {
            self.error = Some(error);
        }
        match api {
            Api::ChatCompletions => self.add_chunk(event),
            Api::Completions => {
                self.set(event, &["id", "model", "usage"]);
                let text = event.pointer("/choices/0/text").and_then(Value::as_str);
                self.finish_choice(event);
                self.append(0, text)
            }
            Api::Responses => self.add_response(event),
            Api::Messages => self.add_message(event),
            Api::Contents => self.add_contents(event),
            Api::OllamaChat | Api::OllamaGenerate => self.add_ollama(event),
            Api::CohereChat => self.add_cohere(event),
            Api::Embeddings => String::new(),
        }
    }

    fn set(&mut self, from: &Value, names: &[&str]) {
        for name in names {
            if let Some(value) = from.get(*name).filter(|it| !it.is_null()) {
                self.body.insert((*name).to_owned(), value.clone());
            }
        }
    }

    fn text_at(&mut self, place: usize) -> Option<&mut String> {
        if place >= MAX_PARTS {
            return None;
        }
        if self.texts.len() <= place {
            self.texts.resize(place + 1, String::new());
        }
        self.texts.get_mut(place)
    }

    fn append(&mut self, place: usize, text: Option<&str>) -> String {
        let text = text.unwrap_or_default();
        if let Some(part) = self.text_at(place) {
            part.push_str(text);
        }
        text.to_owned()
    }

    fn finish_choice(&mut self, event: &Value) {
        if let Some(reason) = event.pointer("/choices/0/finish_reason").and_then(Value::as_str) {
            self.body.insert("finish_reason".to_owned(), reason.into());
            self.has_ended = true;
        }
    }

    fn add_chunk(&mut self, event: &Value) -> String {
        self.set(event, &["id", "model", "usage"]);
        self.finish_choice(event);
        let Some(delta) = event.pointer("/choices/0/delta") else { return String::new() };
        let thought = delta.get("reasoning_content").or_else(|| delta.get("reasoning"));
        self.reasoning += thought.and_then(Value::as_str).map_or(0, str::len);
        for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            let known = self.items.len();
            let index = call.get("index").and_then(Value::as_u64).map_or(known, |it| it as usize);
            if index >= MAX_PARTS {
                continue;
            }
            while self.items.len() <= index {
                self.items.push(json!({ "type": "function", "function": {} }));
            }
            let Some(made) = self.items.get_mut(index) else { continue };
            if let Some(id) = call.get("id").filter(|it| it.is_string()) {
                made["id"] = id.clone();
            }
            if let Some(name) = call.pointer("/function/name").filter(|it| it.is_string()) {
                made["function"]["name"] = name.clone();
            }
            self.append(index + 1, call.pointer("/function/arguments").and_then(Value::as_str));
        }
        let text = delta.get("content").and_then(Value::as_str);
        let text = text.or_else(|| delta.get("refusal").and_then(Value::as_str));
        self.append(0, text)
    }

    fn add_response(&mut self, event: &Value) -> String {
        match event.get("type").and_then(Value::as_str).unwrap_or_default() {
            "response.completed" | "response.incomplete" | "response.failed" => {
                if let Some(Value::Object(response)) = event.get("response") {
                    self.body = response.clone();
                    self.error = event.get("response").and_then(error_of);
                }
                self.has_ended = true;
                String::new()
            }
            "response.output_text.delta" => {
                self.append(0, event.get("delta").and_then(Value::as_str))
            }
            "error" => {
                self.error = event.get("message").and_then(Value::as_str).map(str::to_owned);
                String::new()
            }
            _ => String::new(),
        }
    }

    fn add_message(&mut self, event: &Value) -> String {
        let index = event.get("index").and_then(Value::as_u64).unwrap_or(0) as usize;
        match event.get("type").and_then(Value::as_str).unwrap_or_default() {
            "message_start" => {
                if let Some(Value::Object(message)) = event.get("message") {
                    self.body = message.clone();
                }
            }
            "content_block_start" if index < MAX_PARTS => {
                let missing = (index + 1).saturating_sub(self.items.len());
                self.items.extend(std::iter::repeat_n(Value::Null, missing));
                if let Some(block) = self.items.get_mut(index) {
                    *block = event.get("content_block").cloned().unwrap_or_default();
                }
            }
            "content_block_delta" => {
                let Some(delta) = event.get("delta") else { return String::new() };
                let part = delta.get("text").or_else(|| delta.get("partial_json"));
                let added = self.append(index, part.and_then(Value::as_str));
                return if delta.get("text").is_some() { added } else { String::new() };
            }
            "message_delta" => {
                if let Some(reason) = event.pointer("/delta/stop_reason").filter(|it| !it.is_null())
                {
                    self.body.insert("stop_reason".to_owned(), reason.clone());
                }
                // Later counts are those of the whole message.
                if let Some(later) = event.get("usage").and_then(Value::as_object) {
                    let usage = self.body.entry("usage").or_insert_with(|| json!({}));
                    for (name, count) in later.iter().filter(|(_, count)| !count.is_null()) {
                        usage[name] = count.clone();
                    }
                }
            }
            "message_stop" => self.has_ended = true,
            _ => {}
        }
        String::new()
    }

    fn add_contents(&mut self, event: &Value) -> String {
        self.set(event, &["usageMetadata", "modelVersion", "promptFeedback", "responseId"]);
        let Some(candidate) = event.pointer("/candidates/0") else { return String::new() };
        if let Some(reason) = candidate.get("finishReason").filter(|it| it.is_string()) {
            self.body.insert("finish_reason".to_owned(), reason.clone());
            self.has_ended = true;
        }
        let mut added = String::new();
        for part in
            candidate.pointer("/content/parts").and_then(Value::as_array).into_iter().flatten()
        {
            let is_thought = part.get("thought").and_then(Value::as_bool) == Some(true);
            match part.get("text").and_then(Value::as_str) {
                Some(text) if !is_thought => added.push_str(&self.append(0, Some(text))),
                Some(_) => {}
                None if self.items.len() < MAX_PARTS => self.items.push(part.clone()),
                None => {}
            }
        }
        added
    }

    fn add_ollama(&mut self, event: &Value) -> String {
        let named = ["model", "done_reason", "prompt_eval_count", "eval_count"];
        self.set(event, &named);
        self.has_ended |= event.get("done").and_then(Value::as_bool) == Some(true);
        for call in
            event.pointer("/message/tool_calls").and_then(Value::as_array).into_iter().flatten()
        {
            if self.items.len() < MAX_PARTS {
                self.items.push(call.clone());
            }
        }
        let text = event.pointer("/message/content").or_else(|| event.get("response"));
        self.append(0, text.and_then(Value::as_str))
    }

    fn add_cohere(&mut self, event: &Value) -> String {
        match event.get("type").and_then(Value::as_str).unwrap_or_default() {
            "content-delta" => {
                let text = event.pointer("/delta/message/content/text").and_then(Value::as_str);
                self.append(0, text)
            }
            "tool-call-start" => {
                let call = event.pointer("/delta/message/tool_calls").cloned().unwrap_or_default();
                if self.items.len() < MAX_PARTS - 1 {
                    self.items.push(call);
                }
                String::new()
            }
            "tool-call-delta" => {
                let more = event.pointer("/delta/message/tool_calls/function/arguments");
                let place = self.items.len();
                self.append(place, more.and_then(Value::as_str));
                String::new()
            }
            "message-end" => {
                self.has_ended = true;
                for (name, path) in
                    [("finish_reason", "/delta/finish_reason"), ("usage", "/delta/usage")]
                {
                    if let Some(value) = event.pointer(path) {
                        self.body.insert(name.to_owned(), value.clone());
                    }
                }
                String::new()
            }
            _ => String::new(),
        }
    }

    /// Whether the stream has said that the reply is complete.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The bytes of text, arguments and reasoning so far.
    pub fn bytes(&self) -> usize {
        self.texts.iter().map(String::len).sum::<usize>() + self.reasoning
    }

    /// The whole body.
    pub fn finish(mut self, api: Api) -> Value {
        let mut items = self.items;
        let texts = self.texts;
        let text = |place: usize| texts.get(place).cloned().unwrap_or_default();
        match api {
            Api::Messages => {
                for (place, block) in items.iter_mut().enumerate() {
                    match block.get("type").and_then(Value::as_str) {
                        Some("text") => block["text"] = text(place).into(),
                        Some("tool_use" | "server_tool_use") => {
                            block["input"] =
                                serde_json::from_str(&text(place)).unwrap_or(json!({}));
                        }
                        _ => {}
                    }
                }
                self.body.insert("content".to_owned(), items.into());
                Value::Object(self.body)
            }
            Api::Responses => {
                if self.body.is_empty() && !text(0).is_empty() {
                    let said = json!([{ "type": "output_text", "text": text(0) }]);
                    let message =
                        json!([{ "type": "message", "role": "assistant", "content": said }]);
                    self.body.insert("output".to_owned(), message);
                }
                Value::Object(self.body)
            }
            Api::Contents => {
                if !text(0).is_empty() {
                    items.insert(0, json!({ "text": text(0) }));
                }
                let content = json!({ "role": "model", "parts": items });
                self.body.insert("candidates".to_owned(), json!([{ "content": content }]));
                Value::Object(self.body)
            }
            _ => {
                for (place, call) in items.iter_mut().enumerate() {
                    let arguments = text(place + 1);
                    if !arguments.is_empty() {
                        call["function"]["arguments"] = arguments.into();
                    }
                }
                let mut message = json!({ "role": "assistant", "content": text(0) });
                if !items.is_empty() {
                    message["tool_calls"] = items.into();
                }
                let choice = json!({ "message": message });
                self.body.insert("choices".to_owned(), json!([choice]));
                Value::Object(self.body)
            }
        }
    }
}
