//! The texts of complex reads 13 and 14 beyond three steps: shortest ways between persons without an operator for them.
//!
//! Up to three steps one query answers (`q13.rq`, `q14.rq`): almost all pairs of persons are that near. Beyond, whether
//! there is a way at all is asked with a property path; if there is, lengths are tried one after the other, sets of
//! persons at half the length from each end being met in the middle. When the engine has shortest paths of its own, one
//! query takes the place of these.

use super::terms;

const PREFIX: &str = "PREFIX snvoc: <http://www.ldbc.eu/ldbc_socialnet/1.0/vocabulary/>\n";

/// The steps up to which `q13.rq` and `q14.rq` look.
pub const NEAR: u32 = 3;
/// The steps after which nobody looks further: six are the most that anybody has found in these networks.
pub const STEPS_MAX: u32 = 32;

/// One step between two persons, either having added the other.
fn step(one: &str, other: &str) -> String {
    format!(
        "{{ {{ {one} snvoc:knows/snvoc:hasPerson {other} }} UNION {{ {other} snvoc:knows/snvoc:hasPerson {one} }} }}"
    )
}

/// Those who are within exactly so many steps that follow one another, each once, as `?name`.
fn reached(start: &str, steps: u32, name: &str) -> String {
    match steps {
        0 => format!("VALUES ?{name} {{ {start} }}"),
        1 => step(start, &format!("?{name}")),
        _ => {
            let before = format!("{name}{}", steps - 1);
            format!(
                "{{ SELECT DISTINCT ?{name} WHERE {{ {} {} }} }}",
                reached(start, steps - 1, &before),
                step(&format!("?{before}"), &format!("?{name}"))
            )
        }
    }
}

/// Asks whether any way leads from one to the other.
pub fn is_reachable(from: u64, to: u64) -> String {
    format!(
        "{PREFIX}ASK {{ {} ((snvoc:knows/snvoc:hasPerson)|(^snvoc:hasPerson/^snvoc:knows))+ {} }}",
        terms::person(from),
        terms::person(to)
    )
}

/// Asks for somebody in the middle of a way of so many steps.
pub fn meeting(from: u64, to: u64, steps: u32) -> String {
    let half = steps / 2;
    format!(
        "{PREFIX}SELECT ?m WHERE {{ {} {} }} LIMIT 1",
        reached(&terms::person(from), steps - half, "m"),
        reached(&terms::person(to), half, "m")
    )
}

/// Asks for all ways of so many steps: `?person1` and so on are those between the ends.
pub fn ways(from: u64, to: u64, steps: u32) -> String {
    let place = |number: u32| match number {
        0 => terms::person(from),
        number if number == steps => terms::person(to),
        number => format!("?person{number}"),
    };
    let legs = (0..steps).map(|number| step(&place(number), &place(number + 1)));
    format!(
        "{PREFIX}SELECT * WHERE {{ {} }}",
        legs.collect::<Vec<_>>().join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_meet() {
        let text = meeting(1, 2, 5);
        assert_eq!(text.matches("SELECT DISTINCT").count(), 3, "{text}");
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }

    #[test]
    fn ways_have_a_variable_for_each_between_the_ends() {
        let text = ways(1, 2, 4);
        assert!(text.contains("?person3") && !text.contains("?person4"));
        assert_eq!(text.matches("UNION").count(), 4);
    }
}
