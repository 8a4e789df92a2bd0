//! Calls over HTTP: client, server, and the frames of an answer.

pub(crate) mod client;
pub(crate) mod frame;
pub(crate) mod server;

#[cfg(test)]
mod tests;
