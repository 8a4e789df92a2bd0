//! From SPARQL text to physical plan: algebra, statistics, optimizer.
