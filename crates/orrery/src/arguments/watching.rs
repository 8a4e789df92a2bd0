//! Arguments about monitoring a server: the token for metrics, and traces.

use std::path::PathBuf;

use clap::Args;
use orrery_server::OtlpOptions;

/// Who may read what a server counts, and where its traces are sent.
#[derive(Args)]
pub(crate) struct WatchingArguments {
    /// File whose first line is the bearer token for /metrics; without it administrators read them
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics_token_file: Option<PathBuf>,
    /// OpenTelemetry collector for traces (OTLP over HTTP), such as http://127.0.0.1:4318; none if
    /// not given
    #[arg(long, value_name = "URL")]
    otlp_endpoint: Option<String>,
    /// Ratio of requests that are traced, from 0 to 1; a client's traceparent decides first
    #[arg(long, value_name = "PART", default_value_t = 1.0, value_parser = part, requires = "otlp_endpoint")]
    otlp_ratio: f64,
    /// Service name in traces
    #[arg(
        long,
        value_name = "NAME",
        default_value = "orrery",
        requires = "otlp_endpoint"
    )]
    otlp_service: String,
}

impl WatchingArguments {
    /// Where traces are sent, if they are.
    pub(crate) fn otlp(&self) -> Option<OtlpOptions> {
        let endpoint = self.otlp_endpoint.as_ref()?;
        Some(OtlpOptions {
            ratio: self.otlp_ratio,
            service: self.otlp_service.clone(),
            ..OtlpOptions::new(endpoint)
        })
    }
}

/// A part of all.
fn part(text: &str) -> Result<f64, String> {
    let part = text.parse::<f64>().ok();
    let part = part.filter(|part| (0.0..=1.0).contains(part));
    part.ok_or_else(|| "give a number from 0 to 1, such as 0.1".to_owned())
}
