//! The choice of substitution parameters with similar costs.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use super::draw;
use super::output::CUT_MS;
use super::persons::{BEGIN_MS, Person};
use super::world::World;
use crate::snb::parameters::{COMPLEX_READS, file_name};
use orrery_bsbm::Random;
use orrery_bsbm::distribution::Stream;

/// Runs of each query.
const RUNS: usize = 20;
const DAY_MS: i64 = 86_400_000;

/// Writes `substitution_parameters/interactive_N_param.txt`.
pub(super) fn write(
    persons: &[Person],
    world: &World,
    seed: u64,
    directory: &Path,
) -> io::Result<()> {
    let directory = directory.join("substitution_parameters");
    fs::create_dir_all(&directory)?;
    // Those whom the data set has, by their friends; the middle fifth.
    let mut known: Vec<&Person> = persons
        .iter()
        .filter(|person| person.created < CUT_MS - 90 * DAY_MS)
        .collect();
    known.sort_by_key(|person| (person.friends.len(), person.number));
    let middle = known.len() * 2 / 5..(known.len() * 3 / 5).max(known.len().min(2));
    let middle = &known[middle];
    for number in 1..=COMPLEX_READS {
        let mut random = Random::for_entity(seed, Stream::SnbParameters, u64::from(number));
        let mut text = format!("{}\n", names(number));
        for _ in 0..RUNS {
            if let (Some(person), Some(other)) = (random.pick(middle), random.pick(&known)) {
                // Writing to a text does not fail.
                let _ = writeln!(text, "{}", run(number, person, other, world, &mut random));
            }
        }
        fs::write(directory.join(file_name(number)), text)?;
    }
    Ok(())
}

fn names(number: u8) -> &'static str {
    match number {
        1 => "personId|firstName",
        2 | 9 => "personId|maxDate",
        3 => "personId|startDate|durationDays|countryXName|countryYName",
        4 => "personId|startDate|durationDays",
        5 => "personId|minDate",
        6 => "personId|tagName",
        10 => "personId|month",
        11 => "personId|countryName|workFromYear",
        12 => "personId|tagClassName",
        13 | 14 => "person1Id|person2Id",
        _ => "personId",
    }
}

fn run(number: u8, person: &Person, other: &Person, world: &World, random: &mut Random) -> String {
    let id = person.number;
    let day = |time: i64| time.div_euclid(DAY_MS) * DAY_MS;
    let late = day(draw::any_time(random, CUT_MS - 120 * DAY_MS, CUT_MS));
    let month_long = day(draw::any_time(
        random,
        (BEGIN_MS + CUT_MS) / 2,
        CUT_MS - 60 * DAY_MS,
    ));
    let country = |number: u64| world.places[number as usize].as_str();
    match number {
        1 => format!("{id}|{}", other.first_name),
        2 | 9 => format!("{id}|{late}"),
        3 => {
            let x = World::country(random);
            let y = (x + 1 + u64::from(random.below(8))) % 100;
            format!(
                "{id}|{month_long}|{}|{}|{}",
                28 + random.below(10),
                country(x),
                country(y)
            )
        }
        4 => format!("{id}|{month_long}|{}", 28 + random.below(10)),
        5 => format!("{id}|{late}"),
        6 => {
            let tag = random.pick(&person.interests).copied().unwrap_or_default();
            format!("{id}|{}", world.tags[tag as usize])
        }
        10 => format!("{id}|{}", 1 + random.below(12)),
        11 => format!(
            "{id}|{}|{}",
            country(person.country),
            2005 + random.below(8)
        ),
        12 => {
            // The first classes are above most others, and would have most tags.
            let class =
                (4 + draw::skewed(random, world.classes.len())).min(world.classes.len() - 1);
            format!("{id}|{}", world.classes[class])
        }
        13 | 14 => format!("{id}|{}", other.number),
        _ => id.to_string(),
    }
}
