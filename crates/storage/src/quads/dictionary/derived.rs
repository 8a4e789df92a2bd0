//! A cache of values that readers derive from a dictionary's keys; it lives as long as the
//! dictionary and never grows stale.
//!
//! There is one value of each type, made on first use. How much memory it may take is the business
//! of its type.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

/// The values, told apart by their types: a handful.
#[derive(Default)]
pub(super) struct Derived(Mutex<Vec<Arc<dyn Any + Send + Sync>>>);

impl Derived {
    /// The value of a type, made if there is none.
    pub(super) fn get_or_make<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut values = self.0.lock();
        let known = values.iter().find_map(|value| {
            let value = Arc::clone(value);
            value.downcast::<T>().ok()
        });
        known.unwrap_or_else(|| {
            let made = Arc::new(make());
            values.push(Arc::<T>::clone(&made));
            made
        })
    }
}

impl fmt::Debug for Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Derived")
            .field(&self.0.lock().len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_for_each_type() {
        let derived = Derived::default();
        let first = derived.get_or_make(|| 7_u32);
        let other = derived.get_or_make(|| "seven");
        assert_eq!((*first, *other), (7, "seven"));
        assert!(Arc::ptr_eq(&first, &derived.get_or_make(|| 8_u32)));
    }
}
