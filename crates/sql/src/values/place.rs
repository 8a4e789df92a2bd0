//! The positions of parameters: `$1` is the first.

/// Of a parameter's name, from zero.
pub(crate) fn place_of(name: &str) -> Option<usize> {
    name.strip_prefix('$')?
        .parse::<usize>()
        .ok()?
        .checked_sub(1)
}
