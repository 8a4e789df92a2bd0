//! What an RDF term is, and how it fits into 64 bits.
