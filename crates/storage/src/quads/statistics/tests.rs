use std::sync::Arc;

use super::*;

/// Ten persons with name and mail, of whom four have two mails; five things with a name only.
fn rows() -> Vec<[u64; 4]> {
    let (name, mail) = (1, 2);
    let mut rows = Vec::new();
    for person in 100..110 {
        rows.push([person, name, person + 1000, 0]);
        rows.push([person, mail, person + 2000, 0]);
        if person < 104 {
            rows.push([person, mail, person + 3000, 0]);
        }
    }
    for thing in 200..205 {
        rows.push([thing, name, 7, 0]);
    }
    rows
}

fn ordered(order: [usize; 4]) -> Vec<[u64; 4]> {
    let mut rows: Vec<[u64; 4]> = rows()
        .into_iter()
        .map(|row| order.map(|column| row[column]))
        .collect();
    rows.sort_unstable();
    rows
}

fn statistics() -> Statistics {
    let mut builder = StatisticsBuilder::default();
    for chunk in ordered([0, 1, 2, 3]).chunks(5) {
        builder.observe_spog(chunk);
    }
    let mut other = StatisticsBuilder::default();
    other.observe_psog(&ordered([1, 0, 2, 3]));
    other.observe_posg(&ordered([1, 2, 0, 3]));
    other.observe_ospg(&ordered([2, 0, 1, 3]));
    builder.merge(other);
    builder.finish()
}

#[test]
fn figures_of_a_small_set_are_exact() {
    let statistics = statistics();
    assert_eq!(statistics.quads(), 29);
    assert_eq!(statistics.distinct_subjects(), 15);
    assert_eq!(statistics.distinct_objects(), 25);
    assert_eq!(statistics.distinct_graphs(), 1);
    let name = PredicateStatistics {
        quads: 15,
        distinct_subjects: 15,
        distinct_objects: 11,
    };
    assert_eq!(statistics.predicate(TermId::from_bits(1)), Some(&name));
    assert_eq!(statistics.predicate(TermId::from_bits(3)), None);
    assert_eq!(statistics.predicates().len(), 2);
    assert_eq!(statistics.characteristic_sets().len(), 2);
    assert_eq!(statistics.characteristic_sets()[0].subjects, 10);
}

#[test]
fn a_star_has_a_group_for_each_way_to_have_its_predicates() {
    let statistics = statistics();
    let [name, mail, other] = [1, 2, 3].map(TermId::from_bits);
    let star = statistics.star(&[name, mail]).expect("two predicates");
    let both: Vec<&StarGroup> = star.groups_with(0b11).collect();
    assert_eq!(both.len(), 1);
    assert_eq!(
        (both[0].subjects, &*both[0].quads),
        (10.0, &[10.0, 14.0][..])
    );
    let named: f64 = star.groups_with(0b01).map(|group| group.subjects).sum();
    assert_eq!(named, 15.0);
    assert_eq!(statistics.star(&[name, other]), None);
    let again = statistics.star(&[name, mail]).expect("known by now");
    assert!(Arc::ptr_eq(&star, &again));
    assert_eq!(statistics.star(&[]), None);
}

#[test]
fn statistics_come_back_from_their_file() {
    let statistics = statistics();
    assert_eq!(file::round_trip(&statistics), Some(statistics));
    let empty = Statistics::default();
    assert_eq!(file::round_trip(&empty), Some(empty));
}
