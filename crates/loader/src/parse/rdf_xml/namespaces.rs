//! The declared namespaces at the reader's place, found in constant time.

use std::collections::HashMap;
use std::rc::Rc;

/// Prefixes in scope with their namespaces.
#[derive(Debug, Default)]
pub(super) struct Namespaces {
    /// Inner ones last.
    declared: Vec<Declared>,
    /// Where in `declared` the innermost of a prefix stands. Its hasher is seeded: whoever writes
    /// the text chooses the keys.
    innermost: HashMap<Rc<str>, usize>,
}

#[derive(Debug)]
struct Declared {
    prefix: Rc<str>,
    namespace: String,
    /// Where the one stands that it hides.
    hides: Option<usize>,
}

impl Namespaces {
    pub(super) fn len(&self) -> usize {
        self.declared.len()
    }

    /// Declares a prefix; an empty one is that of names without a colon.
    pub(super) fn push(&mut self, prefix: &str, namespace: String) {
        let prefix = Rc::<str>::from(prefix);
        let hides = self
            .innermost
            .insert(Rc::clone(&prefix), self.declared.len());
        self.declared.push(Declared {
            prefix,
            namespace,
            hides,
        });
    }

    /// Takes back all but the first.
    pub(super) fn truncate(&mut self, length: usize) {
        while self.declared.len() > length
            && let Some(last) = self.declared.pop()
        {
            match last.hides {
                Some(outer) => self.innermost.insert(last.prefix, outer),
                None => self.innermost.remove(&last.prefix),
            };
        }
    }

    /// What a prefix stands for; of an empty namespace, which takes one back, the empty text.
    pub(super) fn get(&self, prefix: &str) -> Option<&str> {
        let at = self.innermost.get(prefix)?;
        Some(&self.declared[*at].namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_namespaces_hide_outer_ones_until_they_are_taken_back() {
        let mut namespaces = Namespaces::default();
        namespaces.push("a", "1".to_owned());
        namespaces.push("", "2".to_owned());
        let outer = namespaces.len();
        for value in ["3", "4"] {
            namespaces.push("a", value.to_owned());
            assert_eq!(namespaces.get("a"), Some(value));
        }
        namespaces.push("b", "5".to_owned());
        namespaces.push("", String::new());
        assert_eq!(namespaces.get(""), Some(""));
        assert_eq!(namespaces.get("b"), Some("5"));
        namespaces.truncate(outer);
        assert_eq!(namespaces.get("a"), Some("1"));
        assert_eq!(namespaces.get("b"), None);
        assert_eq!(namespaces.get(""), Some("2"));
        namespaces.truncate(0);
        assert_eq!(namespaces.get("a"), None);
    }
}
