//! The scripts that the nodes run.

use crate::redis::Script;

/// All scripts. Every connection loads them.
pub(crate) const SCRIPTS: &[&str] = &[
    include_str!("lua/check.lua"),
    include_str!("lua/apply.lua"),
    include_str!("lua/fill.lua"),
    include_str!("lua/forget.lua"),
    include_str!("lua/report.lua"),
    include_str!("../budgets/lua/exchange.lua"),
];

pub(super) const CHECK: Script = Script::new(0);
pub(super) const APPLY: Script = Script::new(1);
pub(super) const FILL: Script = Script::new(2);
pub(super) const FORGET: Script = Script::new(3);
pub(super) const REPORT: Script = Script::new(4);
pub(crate) const EXCHANGE_BUDGET: Script = Script::new(5);
