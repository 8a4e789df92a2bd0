//! Order labels: byte strings for a list with insertions at any place, ascending as the list does.
//!
//! A label is a fraction in base 256 without zeros at its end, so between any two there is room for
//! a third, and labels that were given away need never change. Cost: a byte for some eight
//! insertions at the same place.

/// A label between two others; `None` is the end of the list. `before` must be less than `after`.
pub(crate) fn label_between(before: Option<&[u8]>, after: Option<&[u8]>) -> Vec<u8> {
    let before = before.unwrap_or_default();
    let mut label = Vec::new();
    // Nothing lies above what was taken up of `after` once the label is below it.
    let mut after = after;
    loop {
        let at = label.len();
        let low = before.get(at).copied().map_or(0, u16::from);
        let high = match after {
            Some(after) => after.get(at).copied().map_or(0, u16::from),
            None => 256,
        };
        if high > low + 1 {
            label.push(low.midpoint(high) as u8);
            return label;
        }
        if high > low {
            after = None;
        }
        label.push(low as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn labels_ascend_wherever_they_are_inserted(places: Vec<prop::sample::Index>) {
            let mut labels: Vec<Vec<u8>> = Vec::new();
            for place in places {
                let at = place.index(labels.len() + 1);
                let before = at.checked_sub(1).map(|before| labels[before].as_slice());
                let after = labels.get(at).map(Vec::as_slice);
                labels.insert(at, label_between(before, after));
            }
            prop_assert!(labels.iter().is_sorted_by(|a, b| a < b));
            prop_assert!(labels.iter().all(|label| label.last() != Some(&0)));
        }
    }

    #[test]
    fn labels_stay_short_at_either_end() {
        let mut last = label_between(None, None);
        let mut first = last.clone();
        for _ in 0..1000 {
            let next = label_between(Some(&last), None);
            assert!(next > last);
            last = next;
            let next = label_between(None, Some(&first));
            assert!(next < first);
            first = next;
        }
        assert!(last.len() < 140 && first.len() < 140);
    }
}
