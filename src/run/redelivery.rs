//! The commands that other processes and machines send to a run. Each is in the log before it takes effect
//! (`command.taken`), so a run that is resumed gets those that had no effect yet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::replay::command_of;
use crate::base::name::FlagName;
use crate::log::event::{Command, Elapsed, Event, EventKind, Initiator};

/// Time after which a command that has left no event has changed nothing: commands act when they are taken.
const ACTS_WITHIN: Duration = Duration::from_secs(1);

/// The commands that a run had taken when it stopped, and that had not taken effect. A run that its former
/// owner paused, to return it or because it could not store it, is resumed first.
///
/// A flag waits for the next boundary. Every other command acts when it is taken, so only the last
/// events before the run stopped can have one that did not act.
pub(crate) fn redeliver(events: &[Arc<Event>]) -> Vec<Command> {
    let mut open: Vec<(Elapsed, Command)> = Vec::new();
    let mut flags: BTreeMap<&FlagName, bool> = BTreeMap::new();
    for event in events {
        open.retain(|(taken, command)| {
            let age = event.at.duration().saturating_sub(taken.duration());
            is_flag(command) || resumes_for_program(command) || age < ACTS_WITHIN
        });
        match &event.kind {
            EventKind::RunStarted(head) => {
                flags.extend(head.flags.iter().map(|flag| (&flag.name, flag.on)));
            }
            EventKind::Pausing { by, .. } => {
                open.retain(|(_, command)| !is_control(command));
                if by.is_program() {
                    open.insert(0, (event.at, Command::Resume { by: *by }));
                }
            }
            EventKind::Resumed { .. } | EventKind::Stepped { .. } => {
                open.retain(|(_, command)| !is_control(command));
            }
            EventKind::CommandTaken { command, .. } => {
                match &**command {
                    Command::SetFlag { flag, .. } => {
                        open.retain(|(_, command)| !sets(command, flag));
                    }
                    // The run stays paused for the operator, without an event that says so.
                    Command::Pause { .. } => {
                        open.retain(|(_, command)| !resumes_for_program(command));
                    }
                    _ => {}
                }
                open.push((event.at, (**command).clone()));
            }
            EventKind::FlagChanged { flag, on, .. } => {
                flags.insert(flag, *on);
                open.retain(|(_, command)| !sets(command, flag));
            }
            _ => {
                if let Some(done) = command_of(event) {
                    open.retain(|(_, command)| !is_same(command, &done));
                }
            }
        }
    }
    let changes = |command: &Command| match command {
        Command::SetFlag { flag, on, .. } => flags.get(flag) != Some(on),
        _ => true,
    };
    open.into_iter().map(|(_, command)| command).filter(changes).collect()
}

/// Whether the command ends a pause by a former owner: to return the run, or while it could not be stored.
fn resumes_for_program(command: &Command) -> bool {
    matches!(command, Command::Resume { by } if by.is_program())
}

fn is_flag(command: &Command) -> bool {
    matches!(command, Command::SetFlag { .. })
}

fn sets(command: &Command, name: &FlagName) -> bool {
    matches!(command, Command::SetFlag { flag, .. } if flag == name)
}

/// Whether the command pauses or resumes.
fn is_control(command: &Command) -> bool {
    use Command::{Pause, Resume, Step, StepRound};
    matches!(command, Pause { .. } | Resume { .. } | Step | StepRound)
}

/// Whether an event that confirms one command confirms the other too. A question has one answer.
fn is_same(taken: &Command, done: &Command) -> bool {
    if let (Command::Answer(taken), Command::Answer(done)) = (taken, done) {
        return taken.id == done.id;
    }
    taken.clone().sent_by(Initiator::Remote) == done.clone().sent_by(Initiator::Remote)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::event::{BoundaryId, Seq, SpanId, StepSize};

    #[test]
    fn repeats_command_until_it_takes_effect() {
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
        // The operator has paused it meanwhile.
        assert_eq!(
            redeliver(&log(&[returned.clone(), taken(&pause)])),
            std::slice::from_ref(&pause)
        );
        let resumed = EventKind::Resumed { by: Initiator::Runner, paused_ms: 1 };
        assert_eq!(redeliver(&log(&[returned, resumed])), []);
        let unstored = EventKind::Pausing { by: Initiator::Store, at_round: false };
        let resume = Command::Resume { by: Initiator::Store };
        assert_eq!(redeliver(&log(&[unstored])), [resume]);
        let both = [taken(&pause), taken(&flag(true)), pausing.clone()];
        assert_eq!(redeliver(&log(&both)), [flag(true)]);

        // What was taken and has acted is not given again, whoever sent it.
        let resume = Command::Resume { by: Initiator::Remote };
        let resumed = EventKind::Resumed { by: Initiator::Remote, paused_ms: 1 };
        let paused_again =
            [taken(&pause), pausing.clone(), taken(&resume), resumed, taken(&pause), pausing];
        assert_eq!(redeliver(&log(&paused_again)), []);
        let (step, boundary) = (StepSize::Boundary, BoundaryId::new("round:2"));
        let stepped = EventKind::Stepped { step, boundary, paused_ms: 1 };
        assert_eq!(redeliver(&log(&[taken(&Command::Step), stepped])), []);
        // A step of a run that is not paused pauses it.
        let pausing = EventKind::Pausing { by: Initiator::You, at_round: false };
        assert_eq!(redeliver(&log(&[taken(&Command::Step), pausing.clone()])), []);
        // A pause of a run that pauses already leaves no event.
        let answered = EventKind::CallAnswered { attempts: 1 };
        let twice = [taken(&pause), pausing, taken(&pause), answered];
        assert_eq!(redeliver(&log(&twice)), [pause], "within a second it may not have acted");
        let mut later = log(&twice);
        Arc::get_mut(&mut later[3]).expect("one owner").at = Elapsed(1_000_001);
        assert_eq!(redeliver(&later), []);
        // Of two positions of a flag the last one counts, and one that it has already changes nothing.
        assert_eq!(redeliver(&log(&[taken(&flag(false)), taken(&flag(true))])), [flag(true)]);
        assert_eq!(redeliver(&log(&[changed, taken(&flag(true))])), []);
    }
}
