//! Calls over HTTP: who makes them, who answers, and the frames of an answer.

pub(crate) mod client;
pub(crate) mod frame;
pub(crate) mod server;

#[cfg(test)]
mod tests;
