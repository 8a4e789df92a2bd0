//! The generator of persons and friendships.
//!
//! How many friends one has follows a power law. Friends are found among those who are near in one
//! of three orders: where one studies and lives, what one is interested in most, and at random; so
//! that people of a place and of an interest know each other, as in the official generator.

use std::collections::HashSet;
use std::io;

use super::draw;
use super::output::Output;
use super::world::World;
use crate::snb::operation::Insertion;
use orrery_bsbm::Random;
use orrery_bsbm::distribution::Stream;

pub(super) const BEGIN_MS: i64 = 1_262_304_000_000;
pub(super) const END_MS: i64 = 1_356_998_400_000;
const DAY_MS: i64 = 86_400_000;
/// 1980.
const BIRTHDAYS_FROM_MS: i64 = 315_532_800_000;
const BIRTHDAYS_TO_MS: i64 = 662_688_000_000;
const BROWSERS: [&str; 5] = ["Firefox", "Chrome", "Internet Explorer", "Safari", "Opera"];
const FRIENDS_MAX: u32 = 1_000;
/// How far friends are looked for in an order of persons.
const NEAR: usize = 300;

/// What is remembered of a person.
#[derive(Debug)]
pub(super) struct Person {
    pub(super) number: u64,
    pub(super) name: String,
    pub(super) created: i64,
    pub(super) country: u64,
    pub(super) city: u64,
    pub(super) ip: String,
    pub(super) browser: &'static str,
    pub(super) interests: Vec<u64>,
    pub(super) first_name: String,
    /// Indices of friends, and since when.
    pub(super) friends: Vec<(u32, i64)>,
}

/// Draws persons and writes them.
pub(super) fn persons(
    count: u32,
    seed: u64,
    world: &World,
    output: &mut Output<'_>,
) -> io::Result<Vec<Person>> {
    let mut persons = Vec::with_capacity(count as usize);
    for index in 0..count {
        let mut random = Random::for_entity(seed, Stream::SnbPerson, u64::from(index));
        persons.push(person(index, &mut random, world, output)?);
    }
    befriend(&mut persons, seed);
    for one in 0..persons.len() {
        for &(other, since) in &persons[one].friends {
            let other = other as usize;
            if one < other {
                let (person1, person2) = (&persons[one], &persons[other]);
                let friendship = Insertion::Friendship {
                    person1: person1.number,
                    person2: person2.number,
                    creation_date: since,
                };
                let depends_on = person1.created.max(person2.created);
                output.event(since, depends_on, &friendship)?;
            }
        }
    }
    Ok(persons)
}

fn person(
    index: u32,
    random: &mut Random,
    world: &World,
    output: &mut Output<'_>,
) -> io::Result<Person> {
    let created = draw::any_time(random, BEGIN_MS, END_MS - 30 * DAY_MS);
    // Numbers ascend with time, as the official ones do.
    let number = ((created - BEGIN_MS) as u64 / (30 * DAY_MS as u64)) << 40 | u64::from(index);
    let country = World::country(random);
    let city = World::city(country, random);
    let first_name = world.first_name(country, random).to_owned();
    let last_name = world.last_name(country, random).to_owned();
    let browser = BROWSERS[draw::skewed(random, BROWSERS.len())];
    let ip = format!(
        "{}.{}.{}.{}",
        20 + country,
        random.below(256),
        random.below(256),
        1 + random.below(254)
    );
    let mut interests: Vec<u64> = (0..draw::power_law(random, 12.0, 80))
        .map(|_| World::tag(country, random))
        .collect();
    interests.sort_unstable();
    interests.dedup();
    let own_language = format!("l{country}");
    let emails = (0..1 + random.below(3))
        .map(|mail| format!("{first_name}{number}@mail{mail}.example"))
        .collect();
    let year = |random: &mut Random| 1998 + i64::from(random.below(15));
    let study_at = match random.chance(80) {
        true => vec![(World::university(city), year(random))],
        false => Vec::new(),
    };
    let mut work_at: Vec<(u64, i64)> = (0..random.below(4))
        .map(|_| (World::company(country, random), year(random)))
        .collect();
    work_at.sort_unstable();
    work_at.dedup_by_key(|(company, _)| *company);
    let birthday = draw::any_time(random, BIRTHDAYS_FROM_MS, BIRTHDAYS_TO_MS);
    let insertion = Insertion::Person {
        person: number,
        first_name: first_name.clone(),
        last_name: last_name.clone(),
        gender: (if random.chance(50) { "male" } else { "female" }).to_owned(),
        birthday: birthday.div_euclid(DAY_MS) * DAY_MS,
        creation_date: created,
        location_ip: ip.clone(),
        browser_used: browser.to_owned(),
        city,
        languages: vec![own_language, "en".to_owned()],
        emails,
        tags: interests.clone(),
        study_at,
        work_at,
    };
    output.event(created, 0, &insertion)?;
    Ok(Person {
        number,
        name: format!("{first_name} {last_name}"),
        created,
        country,
        city,
        ip,
        browser,
        interests,
        first_name,
        friends: Vec::new(),
    })
}

fn befriend(persons: &mut [Person], seed: u64) {
    let count = persons.len();
    // About 18 friends at a thousand persons, 40 at ten thousand, 60 at a hundred thousand.
    let digits = (count.max(2) as f64).sqrt();
    let mean = (digits / 2.0).clamp(4.0, 18.0) + (count as f64 / 1_000.0).sqrt().min(60.0);
    let mut random = Random::for_entity(seed, Stream::SnbFriends, 0);
    let wanted: Vec<u32> = (0..count)
        .map(|_| draw::power_law(&mut random, mean / 2.0, FRIENDS_MAX))
        .collect();
    let mut by_place: Vec<u32> = (0..count as u32).collect();
    by_place.sort_by_key(|index| (persons[*index as usize].city, *index));
    let mut by_interest: Vec<u32> = (0..count as u32).collect();
    by_interest.sort_by_key(|index| {
        let interests = &persons[*index as usize].interests;
        (interests.get(interests.len() / 2).copied(), *index)
    });
    let positions = |order: &[u32]| {
        let mut positions = vec![0; order.len()];
        for (position, index) in order.iter().enumerate() {
            positions[*index as usize] = position;
        }
        positions
    };
    let orders = [
        (positions(&by_place), by_place),
        (positions(&by_interest), by_interest),
    ];
    let mut pairs = HashSet::new();
    for one in 0..count {
        // Those who want many do not find as many: others have enough.
        for _ in 0..wanted[one] * 2 {
            if persons[one].friends.len() >= wanted[one] as usize {
                break;
            }
            let choice = random.below(100);
            let other = match choice {
                0..=44 => near(&orders[0], one, &mut random),
                45..=89 => near(&orders[1], one, &mut random),
                _ => random.below(count as u32) as usize,
            };
            let has_enough = persons[other].friends.len() >= wanted[other] as usize;
            let pair = (one.min(other), one.max(other));
            if one == other || has_enough || !pairs.insert(pair) {
                continue;
            }
            let from = persons[one].created.max(persons[other].created) + DAY_MS / 24;
            let since = draw::soon(&mut random, from, END_MS);
            persons[one].friends.push((other as u32, since));
            persons[other].friends.push((one as u32, since));
        }
    }
}

/// Somebody near in an order, the nearer the likelier.
fn near((positions, order): &(Vec<usize>, Vec<u32>), one: usize, random: &mut Random) -> usize {
    let offset = 1 + draw::skewed(random, NEAR.min(order.len()));
    let count = order.len();
    let position = match random.chance(50) {
        true => positions[one] + offset,
        false => positions[one] + count - offset % count,
    };
    order[position % count] as usize
}
