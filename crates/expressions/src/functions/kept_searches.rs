//! A cache of recent text searches in a dictionary.
//!
//! The result of a search among the words of a vocabulary holds for as long as the dictionary does.
//! So the next query that looks for the same begins where this one ended: with 25,000 labels, to
//! learn what their words do was an eighth of a query's time. [`KEPT_MAX`] searches are kept, those
//! that were asked for last; each takes a byte or two for each word of a few vocabularies (200 KiB
//! for the words of BSBM, 4 MiB at the most).

use std::collections::VecDeque;
use std::sync::Arc;

use orrery_storage::{Dictionary, KeySearch};
use parking_lot::Mutex;

/// Searches that are kept for a dictionary.
const KEPT_MAX: usize = 4;

/// The searches of one dictionary, the one that was asked for last at the end.
#[derive(Default)]
struct KeptSearches(Mutex<VecDeque<Arc<KeySearch>>>);

/// A search in a dictionary, the kept one if there is one; `None` if the bytes are none that can be
/// searched for.
pub(super) fn search_for(
    dictionary: &Dictionary,
    bytes: &[u8],
    ignores_case: bool,
) -> Option<Arc<KeySearch>> {
    let kept = dictionary.derived(|_| KeptSearches::default());
    let mut searches = kept.0.lock();
    let known = searches
        .iter()
        .position(|search| search.is_for(bytes, ignores_case))
        .and_then(|place| searches.remove(place));
    let search = match known {
        Some(search) => search,
        None => Arc::new(dictionary.key_search(bytes, ignores_case)?),
    };
    if searches.len() == KEPT_MAX {
        searches.pop_front();
    }
    searches.push_back(Arc::clone(&search));
    Some(search)
}

#[cfg(test)]
mod tests {
    use orrery_term::Term;

    use super::*;
    use crate::testing::context;

    #[test]
    fn the_last_searches_are_found_again() {
        let context = context(&[Term::string("some text of the dictionary")]);
        let dictionary = context.dictionary();
        let search = |bytes: &str, ignores_case| {
            search_for(dictionary, bytes.as_bytes(), ignores_case).unwrap()
        };
        let first = search("text", false);
        assert!(Arc::ptr_eq(&first, &search("text", false)));
        assert!(!Arc::ptr_eq(&first, &search("text", true)));
        assert!(Arc::ptr_eq(&search("TEXT", true), &search("text", true)));
        for number in 0..KEPT_MAX - 1 {
            search(&number.to_string(), false);
            assert!(Arc::ptr_eq(&first, &search("text", false)));
        }
        for number in 0..KEPT_MAX {
            search(&number.to_string(), false);
        }
        assert!(!Arc::ptr_eq(&first, &search("text", false)));
        assert!(search_for(dictionary, b"", false).is_none());
    }
}
