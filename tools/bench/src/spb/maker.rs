//! The maker of creative works, for editors and the generator.
//!
//! A work is drawn from its own stream of random numbers, so that it depends on the seed and its
//! number alone. How many entities works are about and mention, and how often works of each kind
//! come, is as in the official definitions.

use std::collections::BTreeSet;

use super::creative_work::{CreativeWork, Page, WorkKind};
use super::entities::{Category, Entities, Entity};
use orrery_bsbm::Random;
use orrery_bsbm::distribution::Stream;
use orrery_bsbm::literals::DAY_MS;
use orrery_bsbm::words::WordList;

/// Of 10,000 works, so many are about one entity, two, and so on.
const ABOUT: [u32; 6] = [1_006, 2_313, 3_088, 2_278, 1_035, 280];
/// Of 10,000 works, so many mention one entity, two, and so on.
const MENTIONS: [u32; 6] = [9_477, 382, 93, 31, 12, 5];
/// Works of 100.
const KINDS: [(WorkKind, u32); 3] = [
    (WorkKind::BlogPost, 45),
    (WorkKind::NewsItem, 35),
    (WorkKind::Programme, 20),
];
/// Of 100 posts and items, so many can be taken part in.
const INTERACTIVE_OF_100: u32 = 70;
/// Of 100 mentions, so many are places where there are any; the others are entities.
const PLACES_OF_100: u32 = 90;
/// Pages of a work.
const PAGES_MAX: u32 = 4;
/// A work is modified so many days after it was created, or sooner.
const MODIFIED_DAYS_MAX: u32 = 365;

/// What is settled before a work is drawn.
#[derive(Clone, Debug, Default)]
pub struct Preset<'e> {
    /// What it is about in any case.
    pub about: Vec<&'e Entity>,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: i64,
}

/// Makes works.
pub struct Maker {
    words: WordList,
    seed: u64,
}

impl std::fmt::Debug for Maker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Maker")
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

/// How many, by how often each number comes of 10,000.
fn count(random: &mut Random, shares: &[u32]) -> usize {
    let mut left = random.below(10_000);
    for (index, share) in shares.iter().enumerate() {
        if left < *share {
            return index + 1;
        }
        left -= share;
    }
    1
}

impl Maker {
    /// A maker of works that depend on this seed.
    pub fn new(seed: u64) -> Self {
        Self {
            words: WordList::new(),
            seed,
        }
    }

    /// The stream of random numbers of a work.
    pub fn random(&self, number: u64) -> Random {
        Random::for_entity(self.seed, Stream::SpbWork, number)
    }

    fn text(&self, random: &mut Random, low: u32, high: u32, text: &mut String) {
        let mut bytes = Vec::with_capacity(high as usize * 10);
        self.words.write(random, low, high, &mut bytes);
        text.push_str(&String::from_utf8_lossy(&bytes));
        text.push('.');
    }

    /// A work of this number. `random` goes on from where what is settled was drawn.
    pub fn work(
        &self,
        number: u64,
        entities: &Entities,
        preset: &Preset<'_>,
        random: &mut Random,
    ) -> CreativeWork {
        let kind = draw_kind(random);
        let mut about: Vec<&Entity> = preset.about.clone();
        let wanted = count(random, &ABOUT).max(about.len());
        // One that comes twice is left out, so that the loop ends where there are few entities.
        for _ in about.len()..wanted {
            let drawn = entities.draw(random);
            about.extend(drawn.filter(|drawn| !about.contains(drawn)));
        }
        let mut mentions = BTreeSet::new();
        for _ in 0..count(random, &MENTIONS) {
            let place = random.chance(PLACES_OF_100);
            let place = entities.draw_place(random).filter(|_| place);
            let entity = entities.draw(random).map(|entity| &entity.iri);
            mentions.extend(place.or(entity).cloned());
        }
        let first = about.first();
        let mut title = first.map_or(String::new(), |entity| format!("{} ", entity.label));
        self.text(random, 10, 10, &mut title);
        let mut short_title = String::new();
        self.text(random, 10, 10, &mut short_title);
        let mut description = String::new();
        self.text(random, 8, 28, &mut description);
        let later_ms = i64::from(random.below(MODIFIED_DAYS_MAX)) * DAY_MS
            + i64::from(random.below(DAY_MS as u32));
        CreativeWork {
            number,
            kind,
            title,
            short_title,
            category: first
                .map_or(Category::Event, |entity| entity.category)
                .name(),
            description,
            about: about.iter().map(|entity| entity.iri.clone()).collect(),
            mentions: mentions.into_iter().collect(),
            formats: formats(kind, random),
            created_ms: preset.created_ms,
            modified_ms: preset.created_ms + later_ms,
            thumbnail: random.below(u32::MAX),
            pages: pages(number, random),
        }
    }
}

/// The kind of a work, as often as each comes.
pub(super) fn draw_kind(random: &mut Random) -> WorkKind {
    let mut left = random.below(100);
    for (kind, share) in KINDS {
        if left < share {
            return kind;
        }
        left -= share;
    }
    WorkKind::BlogPost
}

pub(super) fn formats(kind: WorkKind, random: &mut Random) -> Vec<&'static str> {
    let is_interactive = random.chance(INTERACTIVE_OF_100);
    match kind {
        WorkKind::Programme if random.chance(50) => vec!["VideoFormat"],
        WorkKind::Programme => vec!["AudioFormat"],
        WorkKind::BlogPost | WorkKind::NewsItem if is_interactive => {
            vec!["TextualFormat", "InteractiveFormat"]
        }
        WorkKind::BlogPost | WorkKind::NewsItem => vec!["TextualFormat"],
    }
}

fn pages(work: u64, random: &mut Random) -> Vec<Page> {
    let count = random.between(1, PAGES_MAX);
    let page = |index: u32| Page {
        number: work * u64::from(PAGES_MAX) + u64::from(index),
        is_mobile: random.chance(50),
    };
    (0..count).map(page).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entities() -> Entities {
        let entity = |number: u32| Entity {
            iri: format!("<http://example.org/e{number}>"),
            label: format!("Entity {number}"),
            category: Category::Company,
        };
        let places = (0..9).map(|number| format!("<http://example.org/p{number}>"));
        Entities::new((0..50).map(entity).collect(), places.collect())
    }

    #[test]
    fn a_work_depends_on_its_number_and_the_seed_alone() {
        let entities = entities();
        let make = |seed: u64, number: u64| {
            let maker = Maker::new(seed);
            let random = &mut maker.random(number);
            maker.work(number, &entities, &Preset::default(), random)
        };
        assert_eq!(make(1, 5), make(1, 5));
        assert_ne!(make(1, 5).title, make(1, 6).title);
        assert_ne!(make(1, 5).title, make(2, 5).title);
    }

    #[test]
    fn works_are_as_the_definitions_say() {
        let entities = entities();
        let maker = Maker::new(1);
        let about = &entities.all()[40];
        let preset = Preset {
            about: vec![about],
            created_ms: DAY_MS,
        };
        let works: Vec<CreativeWork> = (1..=2_000)
            .map(|number| maker.work(number, &entities, &preset, &mut maker.random(number)))
            .collect();
        let posts = works.iter().filter(|work| work.kind == WorkKind::BlogPost);
        assert!((800..1_000).contains(&posts.count()));
        for work in &works {
            assert_eq!(work.about[0], about.iri);
            assert!(work.title.starts_with("Entity 40 "), "{}", work.title);
            assert!((1..=6).contains(&work.about.len()));
            assert!(!work.mentions.is_empty());
            let mut about = work.about.clone();
            about.sort();
            about.dedup();
            assert_eq!(about.len(), work.about.len(), "each once");
            assert!(work.modified_ms >= work.created_ms);
            let is_programme = work.kind == WorkKind::Programme;
            assert_eq!(work.formats.contains(&"TextualFormat"), !is_programme);
            assert!((1..=4).contains(&work.pages.len()));
        }
        let mut pages: Vec<u64> = (works.iter())
            .flat_map(|work| work.pages.iter().map(|page| page.number))
            .collect();
        pages.sort_unstable();
        assert!(
            pages.is_sorted_by(|one, other| one < other),
            "no page of two works"
        );
    }
}
