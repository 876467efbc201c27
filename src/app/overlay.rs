//! Windows over a screen.

use super::commands::CommandList;
use super::comparison_view::ComparisonView;
use super::confirm::Confirm;
use super::faults::FaultsDrawer;
use super::flags::FlagsDrawer;
use super::form::LaunchForm;
use super::help::Help;
use super::keymap::Context;
use super::message::MessageBox;
use super::template_list::TemplateList;
use crate::panes::agents::members::MembersDrawer;

/// A window over a screen; it receives the keys.
#[derive(Debug)]
pub enum Overlay {
    /// The launch form.
    Form(Box<LaunchForm>),
    /// The flags of a run.
    Flags(FlagsDrawer),
    /// Faults and limits of a tool.
    Faults(FaultsDrawer),
    /// The members of the swarms of a team.
    Members(MembersDrawer),
    /// The session's next message.
    Message(Box<MessageBox>),
    /// The templates of new scenarios.
    Templates(TemplateList),
    /// The comparison of two runs.
    Comparison(Box<ComparisonView>),
    /// The help.
    Help(Help),
    /// The list of commands.
    Commands(CommandList),
    /// A question.
    Confirm(Confirm),
}

impl Overlay {
    /// The focused context in it, as the binding table knows it.
    pub fn context(&self) -> Context {
        match self {
            Self::Form(form) if form.picker.is_some() => Context::Models,
            Self::Form(form) if form.fields.is_editing() => Context::FormText,
            Self::Form(_) => Context::Form,
            Self::Flags(_) => Context::Flags,
            Self::Faults(_) => Context::Faults,
            Self::Members(_) => Context::Members,
            Self::Message(_) => Context::Message,
            Self::Templates(_) => Context::Templates,
            Self::Comparison(_) => Context::Comparison,
            Self::Help(_) => Context::Help,
            Self::Commands(_) => Context::Commands,
            Self::Confirm(_) => Context::Confirm,
        }
    }
}
