//! Agents of other programs as the models of a run: coding agents over the agent client protocol
//! ([`acp`]), servers over AG-UI ([`ag_ui`]). One turn of such an agent is one attempt.

pub mod acp;
pub mod ag_ui;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::acp::AcpProgram;
use self::ag_ui::AgUiModel;
use super::{Environment, NotReady};
use crate::base::name::AgentName;
use crate::model::ChatModel;
use crate::scenario::spec::ModelCaller;
use crate::scenario::tools::agent::{AgentLink, OutsideCaller};

/// A caller, and the agent that answers for it.
type AgentModel = (ModelCaller, Arc<dyn ChatModel>);

/// The agents of one run as models, with the callers for which they answer. None is started or connected to
/// before its first call. A coding agent that answers for several callers is one program with a session for
/// each.
pub(crate) fn make_models(
    callers: &[OutsideCaller],
    env: Environment<'_>,
) -> Result<Vec<AgentModel>, Vec<(AgentName, NotReady)>> {
    let (mut models, mut troubles) = (Vec::new(), Vec::new());
    let mut programs: BTreeMap<&AgentName, Result<Arc<AcpProgram>, ()>> = BTreeMap::new();
    for OutsideCaller { caller, agent } in callers {
        let not_ready =
            |reasons: Vec<NotReady>| reasons.into_iter().map(|why| (agent.name.clone(), why));
        let model: Arc<dyn ChatModel> = match &agent.link {
            AgentLink::Acp(acp) => {
                let program = programs.entry(&agent.name).or_insert_with(|| {
                    AcpProgram::new(agent, acp, env)
                        .map_err(|reasons| troubles.extend(not_ready(reasons)))
                });
                let Ok(program) = program else { continue };
                Arc::new(program.caller())
            }
            AgentLink::AgUi(ag_ui) => match AgUiModel::new(agent, ag_ui, env) {
                Ok(model) => Arc::new(model),
                Err(reasons) => {
                    let new = not_ready(reasons).filter(|why| !troubles.contains(why));
                    let new: Vec<_> = new.collect();
                    troubles.extend(new);
                    continue;
                }
            },
        };
        models.push((caller.clone(), model));
    }
    if troubles.is_empty() { Ok(models) } else { Err(troubles) }
}
