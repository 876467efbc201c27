//! The user's account of the day. A process opens it once.

use std::sync::{Arc, OnceLock};

use super::Dirs;
use super::config::user_config;
use crate::engine::{Engine, EngineSettings, RunKeeper};
use crate::run::spending::{Amount, DayAccount, DayRefusal};
use crate::scenario::spec::SpendingLimits;
use crate::store::day_ledger::DayLedger;

/// A new engine. Its live calls count towards the day's limits of the configuration, if there are any.
pub fn user_engine(settings: EngineSettings, keeper: Option<Arc<dyn RunKeeper>>) -> Engine {
    let engine = Engine::with_keeper(settings, keeper);
    if let Some(account) = day_account() {
        engine.set_day(account);
    }
    engine
}

/// The account of the day; `None`: the configuration has no limit of a day.
pub fn day_account() -> Option<Arc<dyn DayAccount>> {
    static ACCOUNT: OnceLock<Option<Arc<dyn DayAccount>>> = OnceLock::new();
    let open = || {
        let limits = Some(user_config().day).filter(|limits| !limits.is_none())?;
        Some(match day_ledger(limits) {
            Ok(ledger) => Arc::new(ledger) as Arc<dyn DayAccount>,
            Err(why) => Arc::new(NoAccount { limits, why }),
        })
    };
    ACCOUNT.get_or_init(open).clone()
}

/// The account with these limits.
///
/// # Errors
/// Its file cannot be used.
pub fn day_ledger(limits: SpendingLimits) -> Result<DayLedger, String> {
    let dirs = Dirs::find().ok_or("the user has no home directory")?;
    DayLedger::open(&dirs.spent(), limits)
}

/// An account that cannot be opened: no call is made.
#[derive(Debug)]
struct NoAccount {
    limits: SpendingLimits,
    why: String,
}

impl DayAccount for NoAccount {
    fn limits(&self) -> SpendingLimits {
        self.limits
    }

    fn reserve(&self, _: Amount) -> Result<String, DayRefusal> {
        Err(DayRefusal::Failed(format!("the account of the day cannot be opened: {}", self.why)))
    }

    fn settle(&self, _: &str, _: Amount, _: Amount) {}
}
