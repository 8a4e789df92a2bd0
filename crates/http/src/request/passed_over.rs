//! Ignored parameters: those of a query that this server does not know.
//!
//! Clients of other servers send theirs everywhere (Virtuoso's `debug`, RDF4J's `infer`), and a
//! query that is right without them is answered. A header names unknown parameters, for one may be
//! a typing error. Refused is only what would change the query's meaning: what looks like a
//! parameter of a dataset, and values of variables.

use axum::http::HeaderValue;

use crate::answer::warnings::header_of;
use crate::request::parameters::unknown;
use orrery_service::errors::ServiceError;

/// Most names that warnings show.
const NAMES_MAX: usize = 4;
/// Most characters of a name that are shown.
const SHOWN_MAX: usize = 64;

/// Parameters of other servers that do not change an answer here.
const OF_OTHERS: &[&str] = &[
    "CXML_redir_for_hrefs",
    "CXML_redir_for_subjs",
    "debug",
    "log_debug_info",
    "queryLn",
    "run",
    "should-sponge",
    "signal_unconnected",
    "signal_void",
    "stylesheet",
];
/// Parameters that ask for inference, of RDF4J, GraphDB, Stardog and Virtuoso.
const OF_INFERENCE: &[&str] = &["infer", "includeInferred", "reasoning", "sameAs"];

/// The ignored parameters of one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PassedOver {
    warnings: Vec<String>,
}

impl PassedOver {
    /// Ignores a parameter; refuses it if it would change the query's meaning.
    pub(crate) fn add(&mut self, name: &str, value: &str, known: &str) -> Result<(), ServiceError> {
        let lower = name.to_ascii_lowercase();
        let is_of_dataset = lower.contains("graph") || lower.ends_with("-uri");
        if is_of_dataset || name.starts_with('$') {
            return Err(unknown(name, known));
        }
        if OF_OTHERS.contains(&name) || self.warnings.len() == NAMES_MAX {
            return Ok(());
        }
        if OF_INFERENCE.contains(&name) {
            if !matches!(value, "" | "false" | "0" | "no" | "off" | "none") {
                self.warnings.push(format!(
                    "parameter `{name}`: nothing is inferred here; the answer has what is stated"
                ));
            }
            return Ok(());
        }
        // A text that is no name is not repeated.
        let is_name = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
        let shown: String = name
            .chars()
            .take(SHOWN_MAX)
            .take_while(|it| is_name(*it))
            .collect();
        self.warnings.push(format!(
            "parameter `{shown}` is unknown here and was passed over; known are {known}"
        ));
        Ok(())
    }

    /// The warning headers for the ignored parameters.
    pub(crate) fn warnings(&self) -> Vec<HeaderValue> {
        self.warnings
            .iter()
            .filter_map(|it| header_of(it))
            .collect()
    }
}
