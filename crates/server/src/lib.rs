//! SPARQL protocol over HTTP: formats, limits, console.
