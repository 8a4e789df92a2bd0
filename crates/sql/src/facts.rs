//! Session facts for plans, settings and user, carried in the engine's configuration.

use std::sync::Arc;

use datafusion::prelude::SessionConfig;
use parking_lot::Mutex;

use crate::settings::Settings;

/// See the module.
#[derive(Debug)]
pub(crate) struct SessionFacts {
    pub(crate) settings: Arc<Mutex<Settings>>,
    pub(crate) user: String,
}

impl SessionFacts {
    pub(crate) fn new(settings: &Arc<Mutex<Settings>>, user: &str) -> Arc<Self> {
        Arc::new(Self {
            settings: Arc::clone(settings),
            user: user.to_owned(),
        })
    }

    /// Of the session whose configuration it is; of none, those of a new one.
    pub(crate) fn of(config: &SessionConfig) -> Arc<Self> {
        config
            .get_extension::<Self>()
            .unwrap_or_else(|| Self::new(&Arc::default(), crate::names::CATALOG))
    }
}
