//! The entities that works are about and mention.

use orrery_bsbm::Random;

/// Of 100 entities, so many are popular; the official definitions have the same.
const POPULAR_OF_100: usize = 5;
/// Of 100 draws, so many take a popular one.
const DRAWS_OF_POPULAR_OF_100: u32 = 30;

/// The kind of an entity, as works that are about it are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// A person.
    Persons,
    /// A company.
    Company,
    /// All else.
    Event,
}

impl Category {
    /// Its name, the end of its address.
    pub fn name(self) -> &'static str {
        match self {
            Self::Persons => "Persons",
            Self::Company => "Company",
            Self::Event => "Event",
        }
    }
}

/// Something that works are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// Its address, in angle brackets.
    pub iri: String,
    /// What it is called.
    pub label: String,
    /// Its kind.
    pub category: Category,
}

/// What works can be about, and the places that they can mention.
#[derive(Clone, Debug, Default)]
pub struct Entities {
    entities: Vec<Entity>,
    popular: usize,
    places: Vec<String>,
}

impl Entities {
    /// These, the first of which are popular, and places.
    pub fn new(entities: Vec<Entity>, places: Vec<String>) -> Self {
        let popular = (entities.len() * POPULAR_OF_100 / 100).max(1);
        Self {
            popular: popular.min(entities.len()),
            entities,
            places,
        }
    }

    /// Whether works can be about nothing.
    pub fn is_empty(&self) -> bool {
        self.entities.is_empty()
    }

    /// All of them, popular ones first.
    pub fn all(&self) -> &[Entity] {
        &self.entities
    }

    /// The popular ones.
    pub fn popular(&self) -> &[Entity] {
        self.entities.get(..self.popular).unwrap_or_default()
    }

    /// All places.
    pub fn places(&self) -> &[String] {
        &self.places
    }

    /// One of them, popular ones far more often.
    pub fn draw(&self, random: &mut Random) -> Option<&Entity> {
        if random.chance(DRAWS_OF_POPULAR_OF_100) {
            return random.pick(self.popular());
        }
        let regular = self.entities.get(self.popular..).unwrap_or_default();
        random.pick(regular).or_else(|| random.pick(&self.entities))
    }

    /// A place.
    pub fn draw_place(&self, random: &mut Random) -> Option<&String> {
        random.pick(&self.places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popular_ones_come_more_often() {
        let entity = |number: u32| Entity {
            iri: format!("<http://example.org/{number}>"),
            label: number.to_string(),
            category: Category::Event,
        };
        let entities = Entities::new((0..100).map(entity).collect(), Vec::new());
        assert_eq!(entities.popular().len(), 5);
        let mut random = Random::new(1);
        let mut popular = 0;
        for _ in 0..1_000 {
            let drawn = entities.draw(&mut random).unwrap();
            popular += usize::from(entities.popular().contains(drawn));
        }
        assert!((250..350).contains(&popular), "{popular}");
        let only = Entities::new(vec![entity(1)], Vec::new());
        assert!((0..20).all(|_| only.draw(&mut random).is_some()));
        assert_eq!(Entities::default().draw(&mut random), None);
    }
}
