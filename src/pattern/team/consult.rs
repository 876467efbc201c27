//! A coordinator consults a member. The member's run is a call through the gateway; each attempt is
//! a new run of the member.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::json;

use super::carry::{Consultation, Told, place};
use super::gate::{Behind, Halt, Try};
use super::play::{Answer, Play};
use super::talk::{Place, Said, Talk};
use crate::event::kind::{CallStarted, Inner, Prompt, Purpose, Reply};
use crate::event::told;
use crate::scenario::agent::{HistoryScope, InnerText, MemberTools};
use crate::scenario::name::ToolName;

impl Play<'_> {
    /// Consults a member: each attempt of the call through the gateway is one run of it.
    pub(super) async fn consult(
        &self,
        talk: &Talk<'_>,
        said: Said,
        index: usize,
        asked: &Consultation<'_>,
    ) -> Result<Told, Box<Halt>> {
        let Consultation { team, member, request, turn } = asked;
        let turn = *turn;
        let tools = team.member_tools;
        let inherited = match tools.history_scope {
            HistoryScope::ParentBranch => talk.floor.passed_on(),
            HistoryScope::Isolated => [].into(),
        };
        let path = format!("{}/{}.{turn}", talk.place.path, member.name);
        let draws = format!("{}/{}.{turn}", talk.place.draws, member.name);
        let attempt = |it: Try| {
            let (path, inherited) = (&path, Arc::clone(&inherited));
            let draws = it.draws(&draws);
            let run = async move {
                let place = Place { span: it.span, path, draws: &draws, outer: false };
                let asked = Some(talk.name);
                let Answer { text, .. } =
                    self.run(member, place, request, asked, turn, inherited).await?;
                Ok(Reply::of_agent(text))
            };
            Box::pin(run) as BoxFuture<'_, Result<Reply, Box<Halt>>>
        };
        let behind = Behind::new(self.cx, &member.name, format!("member:{draws}"), None, attempt);
        let started = CallStarted {
            parent: talk.place.span,
            tool: ToolName::from(member.name.as_str()),
            purpose: Purpose::Member {
                agent: member.name.clone(),
                turn,
                by: talk.name.clone(),
                said: said.call,
                index: place(index),
                inner: inner(tools),
            },
            prompt: Prompt::default(),
            args: Some(Arc::new(json!({ "request": &**request }))),
            model: None,
            again: 0,
        };
        match behind.make(started).await {
            Ok(answered) => Ok(Told { text: told::reply(&answered.reply), ok: true, member: true }),
            Err((_, halt)) if halt.fatal => Err(halt),
            Err((failed, _)) => self.failed(&ToolName::from(member.name.as_str()), &failed),
        }
    }
}

/// How much of a member's own output is shown.
fn inner(tools: MemberTools) -> Inner {
    match (tools.stream_inner, tools.inner_text) {
        (false, _) => Inner::Hidden,
        (true, InnerText::Exclude) => Inner::Progress,
        (true, InnerText::Include) => Inner::Text,
    }
}
