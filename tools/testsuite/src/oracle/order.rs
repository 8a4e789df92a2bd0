//! The partial order that `ORDER BY` must keep (SPARQL 1.1, 15.1).
//!
//! Unbound, blank nodes, IRIs, literals; within literals what `<` compares. What it does not
//! compare may stand in any order, and so may blank nodes.

use std::cmp::Ordering;

use oxrdf::vocab::xsd;
use oxrdf::{LiteralRef, Term};
use oxsdatatypes::DateTime;

use super::grammar::SEPARATOR;

/// How two sort keys are ordered; `None` if in any way.
pub(crate) fn compare(a: Option<&Term>, b: Option<&Term>) -> Option<Ordering> {
    let by_class = class(a).cmp(&class(b));
    if by_class != Ordering::Equal {
        return Some(by_class);
    }
    if a == b {
        return Some(Ordering::Equal);
    }
    match (a?, b?) {
        (Term::NamedNode(a), Term::NamedNode(b)) => Some(a.as_str().cmp(b.as_str())),
        (Term::Literal(a), Term::Literal(b)) => literals(a.as_ref(), b.as_ref()),
        _ => None,
    }
}

fn class(term: Option<&Term>) -> u8 {
    match term {
        None => 0,
        Some(Term::BlankNode(_)) => 1,
        Some(Term::NamedNode(_)) => 2,
        Some(Term::Literal(_)) => 3,
        Some(Term::Triple(_)) => 4,
    }
}

fn literals(a: LiteralRef<'_>, b: LiteralRef<'_>) -> Option<Ordering> {
    if let (Some(a), Some(b)) = (number(a), number(b)) {
        return a.partial_cmp(&b);
    }
    if a.datatype() != b.datatype() {
        return None;
    }
    if a.datatype() == xsd::STRING {
        // The parts of a GROUP_CONCAT come in any order.
        let is_concatenated = a.value().contains(SEPARATOR) || b.value().contains(SEPARATOR);
        return (!is_concatenated).then(|| a.value().cmp(b.value()));
    }
    if a.datatype() == xsd::DATE_TIME {
        let date_time = |literal: LiteralRef<'_>| literal.value().parse::<DateTime>().ok();
        return date_time(a)?.partial_cmp(&date_time(b)?);
    }
    None
}

/// The value of a number; those of the oracle are doubles exactly.
fn number(literal: LiteralRef<'_>) -> Option<f64> {
    let types = [
        xsd::INTEGER,
        xsd::DECIMAL,
        xsd::DOUBLE,
        xsd::FLOAT,
        xsd::BYTE,
    ];
    let is_number = types.contains(&literal.datatype());
    literal.value().parse().ok().filter(|_| is_number)
}

/// How two rows of sort keys are ordered.
pub(crate) fn compare_rows(
    a: &[Option<Term>],
    b: &[Option<Term>],
    descending: &[bool],
) -> Option<Ordering> {
    for ((a, b), is_descending) in a.iter().zip(b).zip(descending) {
        match compare(a.as_ref(), b.as_ref())? {
            Ordering::Equal => {}
            other if *is_descending => return Some(other.reverse()),
            other => return Some(other),
        }
    }
    Some(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use oxrdf::{Literal, NamedNode};

    use super::*;

    #[test]
    fn literals_that_less_does_not_compare_are_in_any_order() {
        let number: Term = Literal::from(1).into();
        let double: Term = Literal::from(1.0).into();
        let text: Term = Literal::from("a").into();
        let iri: Term = NamedNode::new_unchecked("http://e/").into();
        assert_eq!(compare(None, Some(&iri)), Some(Ordering::Less));
        assert_eq!(compare(Some(&text), Some(&iri)), Some(Ordering::Greater));
        assert_eq!(compare(Some(&number), Some(&double)), Some(Ordering::Equal));
        assert_eq!(compare(Some(&number), Some(&text)), None);
    }

    #[test]
    fn the_first_key_that_differs_decides() {
        let key = |a: i32, b: i32| [a, b].map(|n| Some(Term::from(Literal::from(n))));
        let order = compare_rows(&key(1, 1), &key(1, 2), &[false, true]);
        assert_eq!(order, Some(Ordering::Greater));
    }
}
