//! Measures where the time of a query went, and reports it to the client in `Server-Timing`.
//!
//! <https://www.w3.org/TR/server-timing/>: browsers show it, `orrery bench floor` sums it up.
//!
//! ```text
//! Server-Timing: wait;dur=0.021, parse;dur=0.018, plan;dur=0.035, run;dur=0.020, serialize;dur=0.002
//! ```
//!
//! Milliseconds. `wait` is from the request's last byte to the start on a query thread; `run` and
//! `serialize` are the time until the head of the answer was sent: all of it for an answer that is
//! sent whole. Reading the clock costs some 25 ns, twice a batch.

use axum::http::{HeaderName, HeaderValue};
use orrery_service::stages::Stages;
use orrery_sparql::Preparation;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// The header's name.
pub(crate) const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// The times of one query so far, by stage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestTimes {
    /// When the query was ready to run.
    ready: Instant,
    wait: Duration,
    preparation: Preparation,
    run: Duration,
    serialize: Duration,
    /// End of the last interval that was counted.
    last: Instant,
}

impl RequestTimes {
    /// Starts the clock on the query thread, for a query that was ready to run at `ready`.
    pub(crate) fn begin(ready: Instant) -> Self {
        let now = Instant::now();
        Self {
            ready,
            wait: now - ready,
            preparation: Preparation::default(),
            run: Duration::ZERO,
            serialize: Duration::ZERO,
            last: now,
        }
    }

    /// Adds the time of the preparation: parsing and planning.
    pub(crate) fn prepared(&mut self, preparation: Preparation) {
        self.preparation = preparation;
        self.last = Instant::now();
    }

    /// Counts the time since the last call as the engine's.
    pub(crate) fn ran(&mut self) {
        let elapsed = self.lap();
        self.run += elapsed;
    }

    /// Counts the time since the last call as the serializer's.
    pub(crate) fn serialized(&mut self) {
        let elapsed = self.lap();
        self.serialize += elapsed;
    }

    /// The times by stage, for the metrics.
    pub(crate) fn stages(&self) -> Stages {
        let Preparation { parse, plan, .. } = self.preparation;
        Stages::new(
            self.ready,
            [self.wait, parse, plan, self.run, self.serialize],
        )
    }

    fn lap(&mut self) -> Duration {
        let now = Instant::now();
        let elapsed = now - self.last;
        self.last = now;
        elapsed
    }

    /// The value of the header.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let parts = [
            ("wait", self.wait),
            ("parse", self.preparation.parse),
            ("plan", self.preparation.plan),
            ("run", self.run),
            ("serialize", self.serialize),
        ];
        let mut text = String::with_capacity(96);
        for (name, time) in parts {
            text.push_str(if text.is_empty() { "" } else { ", " });
            text.push_str(name);
            text.push_str(";dur=");
            let micros = time.as_micros();
            let (millis, rest) = (micros / 1000, micros % 1000);
            match u8::try_from(millis) {
                // The usual case; the formatting machinery for five figures was a fiftieth of a
                // point query.
                Ok(digit @ 0..10) => text.push(char::from(b'0' + digit)),
                _ => write!(text, "{millis}").ok()?,
            }
            text.push('.');
            for place in [100, 10, 1] {
                let digit = u8::try_from(rest / place % 10).ok()?;
                text.push(char::from(b'0' + digit));
            }
        }
        HeaderValue::try_from(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_milliseconds_with_three_decimals() {
        let times = RequestTimes {
            ready: Instant::now(),
            wait: Duration::from_micros(7),
            preparation: Preparation {
                parse: Duration::from_micros(1234),
                plan: Duration::from_millis(20),
            },
            run: Duration::from_secs(3),
            serialize: Duration::from_nanos(999),
            last: Instant::now(),
        };
        assert_eq!(
            times.header().unwrap(),
            "wait;dur=0.007, parse;dur=1.234, plan;dur=20.000, run;dur=3000.000, serialize;dur=0.000"
        );
    }
}
