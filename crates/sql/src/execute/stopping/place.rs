//! The place from which functions and patterns read the stop flag of their execution.

use std::any::Any;
use std::sync::Arc;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::common::{Result, config_err};
use datafusion::execution::SessionState;
use parking_lot::Mutex;

use super::stop::{Stop, require_somebody_here};

/// Where the functions of one plan find the Stop of its execution. A copy is the same place.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopPlace(Arc<Mutex<Option<Arc<Stop>>>>);

impl StopPlace {
    pub(super) fn of(options: &ConfigOptions) -> Option<&Self> {
        options.extensions.get()
    }

    /// Settings and functions as they are, with a place of their own, to make one physical plan
    /// with.
    pub(crate) fn within(state: &SessionState) -> SessionState {
        let mut state = state.clone();
        let config = state.config_mut();
        config.options_mut().extensions.insert(Self::default());
        let options = Arc::clone(config.options());
        // Physical plans are made with these.
        state.execution_props_mut().config_options = Some(options);
        state
    }

    pub(super) fn put(&self, stop: &Arc<Stop>) {
        *self.0.lock() = Some(Arc::clone(stop));
    }

    /// Whether somebody waits for what finds its Stop here.
    pub(super) fn require_somebody(&self) -> Result<()> {
        let stop = self.0.lock().clone();
        match stop {
            Some(stop) => stop.require_not_set(),
            None => require_somebody_here(),
        }
    }
}

/// Whether somebody waits for what a function with these settings gives.
///
/// # Errors
/// When nobody does any more.
pub(crate) fn require_somebody(options: &ConfigOptions) -> Result<()> {
    match StopPlace::of(options) {
        Some(place) => place.require_somebody(),
        None => require_somebody_here(),
    }
}

impl ConfigExtension for StopPlace {
    const PREFIX: &'static str = "stop";
}

/// It is no setting that anybody sees.
impl ExtensionOptions for StopPlace {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _: &str) -> Result<()> {
        config_err!("there is no setting stop.{key}")
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}
