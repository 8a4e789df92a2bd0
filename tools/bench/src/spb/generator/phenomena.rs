//! The causes of works: events, correlations, and chance.
//!
//! ```text
//! works about an event          works about two that go together       anything
//! ||||                          A A A A A A                            .  .   . .
//! ||||||||||.. .  .                     B B B B B B                       .  .    .
//! day of it ------->            first A, then both, then B             at any time
//! ```
//!
//! Of an event, nine tenths of the works of a day come the day after, as with the official
//! definitions' rate of decay; five events are major ones, which have half of the works about
//! events, a hundred are minor ones. Large data have more of both, so that none has more works than
//! an official one. Numbers are drawn by whole numbers, so that every machine draws the same.

use crate::spb::entities::{Entities, Entity};
use crate::spb::maker::Preset;
use orrery_bsbm::Random;
use orrery_bsbm::distribution::Stream;
use orrery_bsbm::literals::DAY_MS;

/// The first of January 2011, the official seed year.
const FIRST_MS: i64 = 1_293_840_000_000;
const PERIOD_DAYS: u32 = 365;
/// Of 100 works about an event that are not of a day or before, so many are of the next.
const DECAY_OF_100: u32 = 10;
/// Then an event is over.
const EVENT_DAYS_MAX: u32 = 60;
const MAJOR_EVENTS: u64 = 5;
const MINOR_EVENTS: u64 = 100;
const CORRELATIONS: u64 = 50;
/// The most works of each, by the official definitions.
const WORKS_PER_MAJOR_EVENT: u64 = 50_000;
const WORKS_PER_MINOR_EVENT: u64 = 5_000;
const WORKS_PER_CORRELATION: u64 = 4_380;
/// How long an entity of a correlation is written about, and for how long both are.
const LIFESPAN_DAYS: u32 = PERIOD_DAYS / 2;
const TOGETHER_DAYS: u32 = PERIOD_DAYS / 5;

/// Something that happens.
#[derive(Clone, Copy, Debug)]
struct Event<'e> {
    entity: &'e Entity,
    day: u32,
}

/// Two that go together for a while.
#[derive(Clone, Copy, Debug)]
struct Correlation<'e> {
    first: &'e Entity,
    second: &'e Entity,
    day: u32,
}

/// Why the works of a data set are written.
#[derive(Clone, Debug)]
pub(super) struct Phenomena<'e> {
    major: Vec<Event<'e>>,
    minor: Vec<Event<'e>>,
    correlations: Vec<Correlation<'e>>,
}

/// How many of a kind there are, so that none has too many works, and not more than there are works
/// for.
fn number(least: u64, works: u64, works_each: u64) -> u64 {
    least
        .max(works.div_ceil(works_each))
        .min((works / 4).max(1))
}

impl<'e> Phenomena<'e> {
    pub(super) fn new(seed: u64, works: u64, entities: &'e Entities) -> Self {
        let mut random = Random::for_entity(seed, Stream::SpbEvents, 0);
        let third = works.div_ceil(3);
        let major = number(MAJOR_EVENTS, third / 2, WORKS_PER_MAJOR_EVENT);
        let minor = number(MINOR_EVENTS, third / 2, WORKS_PER_MINOR_EVENT);
        let correlations = number(CORRELATIONS, third, WORKS_PER_CORRELATION);
        let event = |of: &'e [Entity], random: &mut Random| {
            let entity = random.pick(of)?;
            let day = random.below(PERIOD_DAYS - EVENT_DAYS_MAX);
            Some(Event { entity, day })
        };
        let major = (0..major).filter_map(|_| event(entities.popular(), &mut random));
        let major = major.collect();
        let minor = (0..minor).filter_map(|_| event(entities.all(), &mut random));
        let minor = minor.collect();
        let correlation = |random: &mut Random| {
            let span = 2 * LIFESPAN_DAYS - TOGETHER_DAYS;
            Some(Correlation {
                first: random.pick(entities.popular())?,
                second: random.pick(entities.all())?,
                day: random.below(PERIOD_DAYS - span),
            })
        };
        let correlations = (0..correlations).filter_map(|_| correlation(&mut random));
        Self {
            major,
            minor,
            correlations: correlations.collect(),
        }
    }

    /// Why a work is written.
    pub(super) fn preset(&self, number: u64, random: &mut Random) -> Preset<'e> {
        let (about, day) = match number % 3 {
            0 => self.of_event(random),
            1 => self.of_correlation(random),
            _ => (Vec::new(), random.below(PERIOD_DAYS)),
        };
        let time_ms = i64::from(random.below(DAY_MS as u32));
        Preset {
            about,
            created_ms: FIRST_MS + i64::from(day) * DAY_MS + time_ms,
        }
    }

    fn of_event(&self, random: &mut Random) -> (Vec<&'e Entity>, u32) {
        let events = if random.chance(50) {
            &self.major
        } else {
            &self.minor
        };
        let Some(event) = random.pick(events) else {
            return (Vec::new(), random.below(PERIOD_DAYS));
        };
        let mut after = 0;
        while after < EVENT_DAYS_MAX && !random.chance(DECAY_OF_100) {
            after += 1;
        }
        (vec![event.entity], event.day + after)
    }

    fn of_correlation(&self, random: &mut Random) -> (Vec<&'e Entity>, u32) {
        let span = 2 * LIFESPAN_DAYS - TOGETHER_DAYS;
        let day = random.below(span);
        let Some(correlation) = random.pick(&self.correlations) else {
            return (Vec::new(), day);
        };
        let mut about = Vec::new();
        about.extend((day < LIFESPAN_DAYS).then_some(correlation.first));
        let second = (day >= LIFESPAN_DAYS - TOGETHER_DAYS).then_some(correlation.second);
        about.extend(second.filter(|second| !about.contains(second)));
        (about, correlation.day + day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spb::entities::Category;
    use crate::spb::maker::Maker;

    fn entities() -> Entities {
        let entity = |number: u32| Entity {
            iri: format!("<http://example.org/e{number}>"),
            label: number.to_string(),
            category: Category::Event,
        };
        Entities::new((0..1_000).map(entity).collect(), Vec::new())
    }

    #[test]
    fn works_about_an_event_become_fewer_day_by_day() {
        let entities = entities();
        let phenomena = Phenomena::new(1, 100_000, &entities);
        assert_eq!((phenomena.major.len(), phenomena.minor.len()), (5, 100));
        let maker = Maker::new(1);
        let event = phenomena.major[0];
        let mut by_day = vec![0_u32; 400];
        for number in (0..60_000).step_by(3) {
            let preset = phenomena.preset(number, &mut maker.random(number));
            if preset.about[0] == event.entity {
                by_day[((preset.created_ms - FIRST_MS) / DAY_MS) as usize] += 1;
            }
        }
        let of = |from: u32| {
            by_day[(event.day + from) as usize..][..7]
                .iter()
                .sum::<u32>()
        };
        assert!(
            of(0) > of(7) && of(7) > of(21),
            "{} {} {}",
            of(0),
            of(7),
            of(21)
        );
        assert!(of(0) > 500, "{}", of(0));
    }

    #[test]
    fn correlated_entities_come_alone_and_together() {
        let entities = entities();
        let phenomena = Phenomena::new(1, 10_000, &entities);
        let maker = Maker::new(1);
        let mut counts = [0_u32; 3];
        for number in (1..9_000).step_by(3) {
            counts[phenomena
                .preset(number, &mut maker.random(number))
                .about
                .len()] += 1;
        }
        assert_eq!(counts[0], 0);
        assert!(counts[1] > counts[2] && counts[2] > 500, "{counts:?}");
    }

    #[test]
    fn everything_is_within_the_period() {
        let entities = entities();
        let phenomena = Phenomena::new(3, 1_000, &entities);
        let maker = Maker::new(3);
        for number in 0..3_000 {
            let created = phenomena
                .preset(number, &mut maker.random(number))
                .created_ms;
            let day = (created - FIRST_MS).div_euclid(DAY_MS);
            assert!((0..i64::from(PERIOD_DAYS)).contains(&day), "{day}");
        }
    }
}
