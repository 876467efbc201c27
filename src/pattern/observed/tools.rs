//! The calls of tools of a guarded program. The tap asks before a tool is executed: the call is approved, changed,
//! answered or refused as those of own tools are. The program executes it, and reports its result.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt as _;
use futures::future::{BoxFuture, pending};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::ObservedRun;
use super::guarded::{APART_US, NO_TIMEOUT, now_us};
use crate::base::name::{AgentName, ToolName};
use crate::base::visible::first_bytes;
use crate::gateway::{CallFailed, GuardedTool, Tool, ToolRequest, ToolSetup};
use crate::log::event::result_text::failure_text;
use crate::log::event::{
    AttemptFailed, Boundary, EventKind, FailureClass, Purpose, SpanId, StopReason,
};
use crate::log::facts::observed::{MAX_TEXT, ObservedFact, SpanAbout, SpanEnd, SpanRole};
use crate::run::{CallerPolicy, ProgramTool, RunContext, ToolCallRequest};
use crate::scenario::patterns::observed::ToolRule;
use crate::scenario::people::Effects;
use crate::scenario::spec::policy::CallPolicy;
use crate::scenario::spec::tool::{ResultContract, ToolCall, ToolOffer, ToolSpec};

/// A call of a tool that waits for a decision.
#[derive(Debug)]
pub struct HookedCall {
    pub about: Box<ToolAbout>,
    pub decided: oneshot::Sender<ToolDecision>,
    /// Ends when the program does not wait any more.
    pub gone: oneshot::Receiver<()>,
}

/// What the program says of a call of a tool.
#[derive(Debug, Default)]
pub struct ToolAbout {
    pub name: Arc<str>,
    pub args: Map<String, Value>,
    /// The span in which the framework reports the same call; empty: not known.
    pub span: Arc<str>,
    /// The span around it; empty: not known.
    pub parent: Arc<str>,
    pub agent: Option<Arc<str>>,
    pub description: Arc<str>,
    /// The JSON schema of its arguments.
    pub parameters: Value,
    /// What its implementation is, for the digest of its definition.
    pub definition: Arc<str>,
}

/// What happens to a call of a tool.
#[derive(Debug)]
pub enum ToolDecision {
    /// It is executed, with other arguments if there are some. The report goes to the sender; if that is dropped, the
    /// program has gone.
    Execute { args: Option<Arc<Map<String, Value>>>, ended: oneshot::Sender<ToolReport> },
    /// It is not executed, and has this result.
    Result(Arc<Value>),
    /// It is not executed, and the model reads this.
    Error(Arc<str>),
}

/// The result of a tool as the program reports it, or why it failed.
pub type ToolReport = Result<Arc<Value>, String>;

/// Longest name of a tool at the hook, in bytes.
const MAX_NAME: usize = 120;

/// Maximum number of tools with a guard of their own.
const MAX_TOOLS: usize = 256;

/// Kind of the tools of a program, in lists.
const KIND: &str = "program";

/// The field by which a person answers in place of the tool.
const RESULT_FIELD: &str = "result";

/// The tools of a run at the hook.
#[derive(Default)]
pub(super) struct HookedTools {
    /// Those that have a guard, or share one.
    asked: BTreeSet<Arc<str>>,
    /// Those that models have called.
    called: BTreeSet<Arc<str>>,
    /// The latest calls whose spans are not known.
    alone: VecDeque<LoneTool>,
}

/// A call of a tool whose span in the framework is not known.
struct LoneTool {
    place: usize,
    name: Arc<str>,
    from_us: u64,
}

/// How the names of tools begin that frameworks only make to hand over or to end.
const NO_TOOLS: [&str; 3] = ["transfer_to_", "final_result", "final_answer"];

/// Maximum number of such calls.
const MAX_ALONE: usize = 1_000;

impl HookedTools {
    /// A model calls these tools.
    pub(super) fn called_by_model(&mut self, calls: &[ToolCall]) {
        for call in calls {
            let acts = !NO_TOOLS.iter().any(|name| call.name.starts_with(name));
            if acts && self.called.len() < MAX_TOOLS {
                self.called.insert(Arc::clone(&call.name));
            }
        }
    }

    /// The call that a span is about, by its name and time.
    pub(super) fn same(&mut self, about: &SpanAbout) -> Option<usize> {
        if about.role != SpanRole::Tool {
            return None;
        }
        let [from, until] = [about.from_us.unwrap_or(0), about.until_us.unwrap_or(u64::MAX)];
        let is_in_time = |it: &LoneTool| {
            it.from_us + APART_US >= from && it.from_us <= until.saturating_add(APART_US)
        };
        let at = self.alone.iter().position(|it| it.name == about.name && is_in_time(it))?;
        self.alone.remove(at).map(|it| it.place)
    }
}

/// A call that begins.
pub(super) struct BegunTool {
    span: SpanId,
    place: usize,
    name: ToolName,
    spec: ToolSpec,
}

/// A call that has ended.
pub(super) struct EndedTool {
    place: usize,
    end: SpanEnd,
    output: Option<Arc<str>>,
    error: Option<Arc<str>>,
}

impl ObservedRun<'_> {
    /// The program asks whether a tool may be executed. `None`: the run has too many spans.
    pub(super) fn begin_tool(&mut self, asked: &ToolAbout) -> Option<BegunTool> {
        let rule = self.account.limits.tool_rule(&asked.name).cloned();
        let name = self.tool_guard(asked, rule.as_ref());
        let from_us = now_us();
        let id = match asked.span.is_empty() {
            true => format!("tool {}", self.spans.len()).into(),
            false => Arc::clone(&asked.span),
        };
        let args = Value::Object(asked.args.clone()).to_string();
        let about = SpanAbout {
            id,
            name: Arc::clone(&asked.name),
            role: SpanRole::Tool,
            agent: asked.agent.clone(),
            input: Some(first_bytes(&args, MAX_TEXT).into()),
            from_us: Some(from_us),
            guarded: true,
            ..SpanAbout::default()
        };
        let parent = match &*asked.parent {
            parent if *parent == *asked.span => Arc::default(),
            _ => Arc::clone(&asked.parent),
        };
        let place = self.open(&parent, about, false)?;
        let known = self.spans.get_mut(place)?;
        known.has_request = true;
        let span = known.id;
        if asked.span.is_empty() {
            if self.hooked.alone.len() >= MAX_ALONE {
                self.hooked.alone.pop_front();
            }
            let name = Arc::clone(&asked.name);
            self.hooked.alone.push_back(LoneTool { place, name, from_us });
        }
        let effects = rule.as_ref().and_then(|rule| rule.effects).unwrap_or(Effects::Write);
        let offer = ToolOffer {
            name: Arc::clone(&asked.name),
            description: Arc::clone(&asked.description),
            parameters: Arc::new(with_result(&asked.parameters)),
        };
        let spec = ToolSpec {
            name: name.clone(),
            kind: None,
            policy: CallPolicy::default(),
            contract: ResultContract { any_shape: true, ..ResultContract::default() },
            shared: false,
            faults: Vec::new(),
            offer,
            approve: rule.and_then(|rule| rule.approve),
            asks_by_default: None,
            effects: Some(effects),
        };
        Some(BegunTool { span, place, name, spec })
    }

    /// The name of the guard of a tool.
    fn tool_guard(&mut self, asked: &ToolAbout, rule: Option<&ToolRule>) -> ToolName {
        let mut name = ToolName::from(first_bytes(&asked.name, MAX_NAME));
        if self.hooked.asked.len() >= MAX_TOOLS && self.cx.tools().get(&name).is_none() {
            name = ToolName::from("others");
        }
        self.hooked.asked.insert(Arc::clone(&asked.name));
        if self.cx.tools().get(&name).is_some() {
            return name;
        }
        let policy = rule.map(|rule| Arc::clone(&rule.guard.policy));
        let setup = ToolSetup {
            name: name.clone(),
            tool: None,
            kind: KIND,
            has_effects: true,
            contract: ResultContract { any_shape: true, ..ResultContract::default() },
            policy: policy.unwrap_or_else(super::guarded::no_policy),
            timeout: NO_TIMEOUT,
            faults: rule.map(|rule| rule.guard.faults.clone()).unwrap_or_default(),
            shared: false,
            fingerprint: String::new(),
        };
        let guard = GuardedTool::new(setup, self.cx.bus().clock().clone());
        let tool = Box::new(guard.head());
        self.cx.publish(SpanId::RUN, EventKind::ToolAdded { tool, price: None });
        self.cx.tools().add(guard, self.cx.bus());
        name
    }

    /// The framework reports the span of a call that is known: it is one span.
    pub(super) fn join_tool(&mut self, place: usize, parent: &Arc<str>, about: SpanAbout) -> usize {
        let around = self.parent_of(parent, &about);
        self.places.insert(Arc::clone(&about.id), place);
        let parent = self.id_at(around);
        if let Some(known) = self.spans.get_mut(place).filter(|known| known.parent != around) {
            known.parent = around;
            let (at_end, about) = (!known.is_open, Arc::new(about));
            self.cx.publish(known.id, ObservedFact::Opened { parent, at_end, about });
        }
        place
    }

    /// Says which tools that models have called were not at the hook, so that nobody was asked.
    pub(super) fn note_unasked_tools(&self) {
        let HookedTools { asked, called, .. } = &self.hooked;
        let unasked: Vec<&str> = called.difference(asked).map(|name| &**name).collect();
        if unasked.is_empty() {
            return;
        }
        let names = first_bytes(&unasked.join(", "), MAX_TEXT).to_owned();
        let text = format!("not at the hook, so executed unasked if at all: {names}");
        match self.account.limits.asks_about_tools() {
            true => self.cx.publish(SpanId::RUN, EventKind::Warning { text }),
            false => self.cx.publish(SpanId::RUN, ObservedFact::Note { text: text.into() }),
        };
    }

    /// A call of a tool has ended.
    pub(super) fn end_tool(&mut self, ended: EndedTool) {
        let EndedTool { place, end, output, error } = ended;
        let Some(known) = self.spans.get_mut(place).filter(|known| known.is_open) else { return };
        known.is_open = false;
        let until_us = Some(now_us());
        let about = SpanAbout { output, error, until_us, guarded: true, ..SpanAbout::default() };
        let (id, about) = (known.id, Arc::new(about));
        self.see(false, &about);
        let (repeats_call, repeats_tokens) = (true, false);
        self.cx.publish(id, ObservedFact::Closed { end, repeats_call, repeats_tokens, about });
    }
}

/// The schema of a tool's arguments, with a field for a result in place of the tool's.
fn with_result(parameters: &Value) -> Value {
    let mut with = parameters.clone();
    if !with.is_object() {
        with = json!({ "type": "object" });
    }
    let fields = with.as_object_mut().map(|it| it.entry("properties").or_insert_with(|| json!({})));
    if let Some(fields) = fields.and_then(Value::as_object_mut) {
        let about = "a result in place of the tool's: it is not executed";
        fields.entry(RESULT_FIELD).or_insert_with(|| json!({ "description": about }));
    }
    with
}

/// Decides about a call, and waits for its end if it is executed.
pub(super) async fn make_tool_call(
    cx: &RunContext,
    begun: BegunTool,
    HookedCall { about, decided, gone }: HookedCall,
) -> EndedTool {
    let declared = about.parameters.get("properties").and_then(Value::as_object);
    let program = Program {
        takes_result: declared.is_none_or(|fields| !fields.contains_key(RESULT_FIELD)),
        asked: &about,
        decided: Mutex::new(Some(decided)),
    };
    let _branch = cx.control.branch();
    let caller = HookCaller { cx, name: Arc::clone(&about.name) };
    cx.control.pause_if_breakpoint(&[Boundary::Tool(Arc::clone(&about.name)).id()]);
    let agent = about.agent.as_deref().map(AgentName::from);
    let asked = cx.call_tool(ToolCallRequest {
        parent: begun.span,
        tool: &begun.name,
        of_program: Some(ProgramTool { spec: &begun.spec, tool: &program, pin: &about.definition }),
        purpose: Purpose::ProgramTool { agent },
        path: format!("tool:{}", begun.span.0),
        args: Arc::new(about.args.clone()),
        request_id: None,
        caller: &caller,
        why: None,
        client_retries: 0,
    });
    let left = async {
        let _ = gone.await;
        // After the decision the program reports in another request.
        if program.take().is_none() {
            pending::<()>().await;
        }
    };
    let made = tokio::select! {
        biased;
        made = asked => made,
        () = left => {
            let error = Some("the program does not wait any more".into());
            return EndedTool { place: begun.place, end: SpanEnd::Lost, output: None, error };
        }
    };
    match made {
        Ok(success) => {
            let result = success.reply.result.clone().unwrap_or_default();
            program.decide(|| ToolDecision::Result(Arc::clone(&result)));
            let text = match &*result {
                Value::String(text) => text.clone(),
                value => value.to_string(),
            };
            let output = Some(first_bytes(&text, MAX_TEXT).into());
            EndedTool { place: begun.place, end: SpanEnd::Done, output, error: None }
        }
        Err(failed) => {
            let text = text_of(&failed);
            program.decide(|| ToolDecision::Error(Arc::clone(&text)));
            EndedTool { place: begun.place, end: SpanEnd::Failed, output: None, error: Some(text) }
        }
    }
}

/// What the model reads of a call without a result.
fn text_of(failed: &CallFailed) -> Arc<str> {
    let last = failed.last.as_ref().map(|last| &*last.text).or(failed.denied.as_deref());
    failure_text(&failed.reason, last)
}

/// A call passes the boundary of its tool before anybody is asked.
struct HookCaller<'a> {
    cx: &'a RunContext,
    name: Arc<str>,
}

impl CallerPolicy for HookCaller<'_> {
    fn before_attempt(&self, _attempt: u32) -> Option<BoxFuture<'_, Result<(), StopReason>>> {
        let boundary = Boundary::Tool(Arc::clone(&self.name));
        Some(async move { Ok(self.cx.control.pass(&boundary).await?) }.boxed())
    }
}

/// The program, which executes the tool.
struct Program<'a> {
    asked: &'a ToolAbout,
    /// Whether `result` is no argument of the tool itself.
    takes_result: bool,
    decided: Mutex<Option<oneshot::Sender<ToolDecision>>>,
}

impl Program<'_> {
    fn take(&self) -> Option<oneshot::Sender<ToolDecision>> {
        self.decided.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Tells the program, if it does not know yet.
    fn decide(&self, decision: impl FnOnce() -> ToolDecision) {
        if let Some(decided) = self.take() {
            let _ = decided.send(decision());
        }
    }
}

impl Tool for Program<'_> {
    fn ask<'a>(
        &'a self,
        request: ToolRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Value>, Box<AttemptFailed>>> {
        let gone = |why: &str| AttemptFailed::new(FailureClass::Reset, why);
        Box::pin(async move {
            let decided = self.take().ok_or_else(|| gone("the program does not wait any more"))?;
            if let Some(result) = request.args.get(RESULT_FIELD).filter(|_| self.takes_result) {
                let result = Arc::new(result.clone());
                let _ = decided.send(ToolDecision::Result(Arc::clone(&result)));
                return Ok(result);
            }
            let args = (*request.args != self.asked.args).then(|| Arc::new(request.args.clone()));
            let (ended, end) = oneshot::channel();
            let _ = decided.send(ToolDecision::Execute { args, ended });
            match end.await {
                Ok(Ok(result)) => Ok(result),
                Ok(Err(text)) => Err(AttemptFailed::new(FailureClass::Tool, text)),
                Err(_) => Err(gone("the program ended before it reported a result")),
            }
        })
    }
}
