//! The commands that people on other machines send to a run. Each is in the log before it takes effect
//! (`command.taken`), so that a new owner gives the run each command once.

use crate::bus::publish_unless_ended;
use crate::cluster::Cluster;
use crate::engine::RunHandle;
use crate::event::kind::Initiator;
use crate::event::{Command, Event, EventKind, SpanId};
use crate::run::replay::command_of;
use std::sync::Arc;

/// Gives a run the commands after this number as they come.
pub(super) async fn deliver_commands(cluster: &Cluster, run: &RunHandle, after: u64) {
    let mut commands = match cluster.commands(run.id(), after).await {
        Ok(commands) => commands,
        Err(error) => {
            tracing::warn!(run = %run.id(), "the run gets no commands: {error}");
            return;
        }
    };
    loop {
        for sent in commands.next().await {
            let command = sent.command.sent_by(Initiator::Remote);
            let (by, place) = (sent.by, sent.place);
            let taken = EventKind::CommandTaken { command: Box::new(command.clone()), by, place };
            if publish_unless_ended(run.bus(), SpanId::RUN, taken) {
                run.send(command);
            }
        }
    }
}

/// The commands that a run had taken when it stopped, and that had not taken effect. A run that its former
/// owner paused to return it is resumed first.
pub(super) fn redeliver(events: &[Arc<Event>]) -> Vec<Command> {
    let mut open: Vec<Command> = Vec::new();
    let resume = Command::Resume { by: Initiator::Runner };
    for event in events {
        match &event.kind {
            EventKind::Pausing { by: Initiator::Runner, .. } => open.insert(0, resume.clone()),
            EventKind::Resumed { .. } | EventKind::Stepped { .. } => {
                open.retain(|command| *command != resume);
            }
            EventKind::CommandTaken { command, .. } => open.push((**command).clone()),
            EventKind::FlagChanged { flag: name, .. } => open.retain(
                |command| !matches!(command, Command::SetFlag { flag, .. } if flag == name),
            ),
            _ => {
                if let Some(done) = command_of(event) {
                    open.retain(|command| !is_same(command, &done));
                }
            }
        }
    }
    open
}

/// Whether an event that confirms one command confirms the other too.
fn is_same(taken: &Command, done: &Command) -> bool {
    taken.clone().sent_by(Initiator::Remote) == done.clone().sent_by(Initiator::Remote)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{BoundaryId, Elapsed, Seq};

    #[test]
    fn a_command_is_repeated_until_it_has_taken_effect() {
        let flag = |on| Command::SetFlag { flag: "legal".into(), on, by: Initiator::Remote };
        let pause = Command::Pause { by: Initiator::Remote };
        let taken = |command: &Command| EventKind::CommandTaken {
            command: Box::new(command.clone()),
            by: "ann".to_owned(),
            place: 1,
        };
        let changed = EventKind::FlagChanged {
            flag: "legal".into(),
            on: true,
            by: Initiator::Remote,
            boundary: BoundaryId::new("round:2"),
        };
        let pausing = EventKind::Pausing { by: Initiator::Remote, at_round: false };
        let log = |kinds: &[EventKind]| -> Vec<Arc<Event>> {
            let event = |(seq, kind): (usize, &EventKind)| {
                let (seq, at) = (Seq(seq as u64), Elapsed(0));
                Arc::new(Event { seq, at, span: SpanId::RUN, kind: kind.clone() })
            };
            kinds.iter().enumerate().map(event).collect()
        };
        assert_eq!(redeliver(&log(&[taken(&flag(true))])), [flag(true)]);
        assert_eq!(redeliver(&log(&[taken(&flag(true)), changed.clone()])), []);
        assert_eq!(redeliver(&log(&[taken(&pause), pausing.clone()])), []);
        let returned = EventKind::Pausing { by: Initiator::Runner, at_round: false };
        let resume = Command::Resume { by: Initiator::Runner };
        assert_eq!(redeliver(&log(std::slice::from_ref(&returned))), [resume]);
        let resumed = EventKind::Resumed { by: Initiator::Runner, paused_ms: 1 };
        assert_eq!(redeliver(&log(&[returned, resumed])), []);
        let both = [taken(&pause), taken(&flag(false)), pausing];
        assert_eq!(redeliver(&log(&both)), [flag(false)]);
    }
}
