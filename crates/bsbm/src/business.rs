//! Parameter values of the business intelligence and analytical queries, from the generator's
//! knowledge.
//!
//! Product types are drawn from the first level below the root and the one after it: the
//! specification asks for types of different size, and the root itself is left out.

use std::collections::{BTreeMap, BTreeSet};

use super::catalog::Catalog;
use super::distribution::Random;
use super::scale::TODAY;
use super::templates::parameter_names;
use super::vocabulary::{Entity, country_at};

/// Reviews are up to a year old; months are drawn from those that lie wholly within.
const MONTHS: u32 = 8;

/// Draws parameters for one data set.
#[derive(Clone, Debug)]
pub struct BusinessParameters<'a> {
    catalog: &'a Catalog,
    /// The types of the two levels below the root.
    types: Vec<u32>,
}

impl<'a> BusinessParameters<'a> {
    /// The parameters of the data set of a catalog.
    pub fn new(catalog: &'a Catalog) -> Self {
        let tree = catalog.types();
        let types = (2..=tree.types())
            .filter(|&number| tree.path_to_root(number).count() <= 3)
            .collect();
        Self { catalog, types }
    }

    /// Values for all parameters of a template, as the template wants them; a name that is not
    /// known gets none.
    pub fn draw(&self, template: &str, random: &mut Random) -> BTreeMap<String, String> {
        let mut values = BTreeMap::new();
        let month = random.below(MONTHS);
        // In the order of the names, for the template's order must not matter.
        for name in parameter_names(template)
            .into_iter()
            .collect::<BTreeSet<_>>()
        {
            if let Some(value) = self.value(name, month, random) {
                values.insert(name.to_owned(), value);
            }
        }
        values
    }

    fn value(&self, name: &str, month: u32, random: &mut Random) -> Option<String> {
        let product = |random: &mut Random| {
            let number = random.between(1, self.catalog.product_count());
            self.catalog.product(number)
        };
        Some(match name {
            "Product" => format!("<{}>", product(random)),
            "Producer" => match product(random) {
                Entity::Product { producer, .. } => format!("<{}>", Entity::Producer(producer)),
                _ => return None,
            },
            "ProductType" => {
                let number = random.pick(&self.types).copied().unwrap_or(1);
                format!("<{}>", Entity::ProductType(number))
            }
            "Country" | "Country1" | "Country2" => country_at(random.below(100)).iri.to_owned(),
            "ConsecutiveMonth0" => month_text(month),
            "ConsecutiveMonth1" => month_text(month + 1),
            "ConsecutiveMonth2" => month_text(month + 2),
            _ => return None,
        })
    }
}

/// The day on which the month begins that is so many months after the tenth before the data's last
/// day.
fn month_text(month: u32) -> String {
    const DAYS: u32 = 28;
    let mut text = Vec::new();
    TODAY.minus((MONTHS + 2 - month) * DAYS).write(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::templates::{ANALYTICAL, BUSINESS, instantiate};
    use super::*;
    use crate::scale::GenerateOptions;

    #[test]
    fn every_query_gets_all_its_parameters() {
        let options = GenerateOptions {
            products: 300,
            seed: 4,
        };
        let catalog = Catalog::new(&options);
        let parameters = BusinessParameters::new(&catalog);
        for template in BUSINESS.iter().chain(&ANALYTICAL) {
            let values = parameters.draw(template.text, &mut Random::new(7));
            let text = instantiate(template.text, &values).unwrap();
            assert!(!text.contains('%'), "{text}");
        }
    }

    #[test]
    fn months_follow_each_other() {
        assert!(month_text(0) < month_text(1));
        assert_eq!(month_text(1).len(), "2008-01-01".len());
    }
}
