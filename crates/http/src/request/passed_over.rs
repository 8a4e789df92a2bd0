//! Parameters of the protocol that this server does not know.
//!
//! Clients of other servers send theirs everywhere (Virtuoso's `debug`, RDF4J's `infer`), and a
//! query that is right without them is answered. What is not known is told in a header, for it may
//! be a slip. Refused is only what would make another query of it: what looks like a parameter of a
//! dataset, and values of variables.

use axum::http::HeaderValue;

use crate::answer::warnings::header_of;
use crate::request::parameters::unknown;
use orrery_service::errors::ServiceError;

/// Names that are kept for warnings.
const NAMES_MAX: usize = 4;
/// Characters of a name that are shown.
const SHOWN_MAX: usize = 64;

/// What other servers know, and changes nothing of an answer here.
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
/// Asks for inference, under the names of RDF4J, GraphDB, Stardog and Virtuoso.
const OF_INFERENCE: &[&str] = &["infer", "includeInferred", "reasoning", "sameAs"];

/// Those of one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PassedOver {
    warnings: Vec<String>,
}

impl PassedOver {
    /// Passes over a parameter, unless the query means something else with it.
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
        // What is no name is not repeated.
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

    /// The headers that tell of them.
    pub(crate) fn warnings(&self) -> Vec<HeaderValue> {
        self.warnings
            .iter()
            .filter_map(|it| header_of(it))
            .collect()
    }
}
