//! Insertions as SPARQL Update texts.

use std::collections::BTreeMap;

use thiserror::Error;

use super::catalog::Catalog;
use super::operation::Insertion;
use super::templates::template;
use super::terms;
use orrery_bsbm::templates::{MissingParameter, instantiate};

/// Why there is no text.
#[derive(Debug, Error)]
pub enum InsertionError {
    /// The data have no such thing.
    #[error("no {what} has the number {number}")]
    Unknown {
        /// A tag, place or organization.
        what: &'static str,
        /// Its number.
        number: u64,
    },
    /// The template wants more.
    #[error(transparent)]
    Template(#[from] MissingParameter),
}

struct Parameters(BTreeMap<String, String>);

impl Parameters {
    fn set(&mut self, name: &str, term: impl Into<String>) {
        self.0.insert(name.to_owned(), term.into());
    }

    /// Statements with one subject and one predicate, or none.
    fn set_all(&mut self, name: &str, subject: &str, predicate: &str, objects: &[String]) {
        let statement = match objects {
            [] => String::new(),
            objects => format!("{subject} snvoc:{predicate} {} .", objects.join(" , ")),
        };
        self.set(name, statement);
    }

    fn set_message(
        &mut self,
        number: u64,
        creation_date: i64,
        location_ip: &str,
        browser_used: &str,
    ) {
        self.set("id", terms::long(number));
        self.set("creationDate", terms::date_time(creation_date));
        self.set("locationIp", terms::string(location_ip));
        self.set("browserUsed", terms::string(browser_used));
    }
}

/// The text that inserts this.
///
/// # Errors
/// When the catalog does not know one of its tags, places or organizations.
pub fn text(insertion: &Insertion, catalog: &Catalog) -> Result<String, InsertionError> {
    let mut parameters = Parameters(BTreeMap::new());
    fill(insertion, catalog, &mut parameters)?;
    let text = template(insertion.kind()).unwrap_or_default();
    Ok(instantiate(text, &parameters.0)?)
}

fn fill(
    insertion: &Insertion,
    catalog: &Catalog,
    parameters: &mut Parameters,
) -> Result<(), InsertionError> {
    let tags = |numbers: &[u64]| {
        let known = |number: &u64| known("tag", *number, catalog.tag(*number));
        numbers.iter().map(known).collect::<Result<Vec<_>, _>>()
    };
    let place = |number| known("place", number, catalog.place(number));
    match insertion {
        Insertion::Person {
            person,
            first_name,
            last_name,
            gender,
            birthday,
            creation_date,
            location_ip,
            browser_used,
            city,
            languages,
            emails,
            tags: interests,
            study_at,
            work_at,
        } => {
            let subject = terms::person(*person);
            parameters.set_message(*person, *creation_date, location_ip, browser_used);
            parameters.set("firstName", terms::string(first_name));
            parameters.set("lastName", terms::string(last_name));
            parameters.set("gender", terms::string(gender));
            parameters.set("birthday", terms::date(*birthday));
            parameters.set("city", place(*city)?);
            let strings = |texts: &[String]| -> Vec<String> {
                texts.iter().map(|text| terms::string(text)).collect()
            };
            parameters.set_all("languages", &subject, "speaks", &strings(languages));
            parameters.set_all("emails", &subject, "email", &strings(emails));
            parameters.set_all("interests", &subject, "hasInterest", &tags(interests)?);
            let years = |organizations: &[(u64, i64)], year_name: &str| {
                let node = |&(number, year): &(u64, i64)| {
                    let organization = known("organization", number, catalog.organization(number))?;
                    let year = terms::integer(year);
                    Ok(format!(
                        "[ snvoc:hasOrganisation {organization} ; snvoc:{year_name} {year} ]"
                    ))
                };
                let nodes: Result<Vec<_>, InsertionError> =
                    organizations.iter().map(node).collect();
                nodes
            };
            let studies = years(study_at, "classYear")?;
            parameters.set_all("studies", &subject, "studyAt", &studies);
            parameters.set_all("jobs", &subject, "workAt", &years(work_at, "workFrom")?);
            parameters.set("person", subject);
        }
        Insertion::Like {
            person,
            message,
            is_comment,
            creation_date,
        } => {
            parameters.set("person", terms::person(*person));
            let name = if *is_comment { "comment" } else { "post" };
            parameters.set(name, terms::message(*message, *is_comment));
            parameters.set("creationDate", terms::date_time(*creation_date));
        }
        Insertion::Forum {
            forum,
            title,
            creation_date,
            moderator,
            tags: numbers,
        } => {
            let subject = terms::forum(*forum);
            parameters.set("id", terms::long(*forum));
            parameters.set("title", terms::string(title));
            parameters.set("creationDate", terms::date_time(*creation_date));
            parameters.set("moderator", terms::person(*moderator));
            parameters.set_all("tags", &subject, "hasTag", &tags(numbers)?);
            parameters.set("forum", subject);
        }
        Insertion::Membership {
            forum,
            person,
            join_date,
        } => {
            parameters.set("forum", terms::forum(*forum));
            parameters.set("person", terms::person(*person));
            parameters.set("joinDate", terms::date_time(*join_date));
        }
        Insertion::Post {
            post,
            image_file,
            creation_date,
            location_ip,
            browser_used,
            language,
            content,
            length,
            author,
            forum,
            country,
            tags: numbers,
        } => {
            let subject = terms::post(*post);
            parameters.set_message(*post, *creation_date, location_ip, browser_used);
            parameters.set("author", terms::person(*author));
            parameters.set("forum", terms::forum(*forum));
            parameters.set("country", place(*country)?);
            // As in the data set: a post has an image or a text with its length, and a language if
            // it has a text.
            let content = match image_file.as_str() {
                "" => format!(
                    "{subject} snvoc:content {} ; snvoc:length {} .",
                    terms::string(content),
                    terms::int(*length)
                ),
                image => format!("{subject} snvoc:imageFile {} .", terms::string(image)),
            };
            parameters.set("content", content);
            let language: &[String] = match language.as_str() {
                "" => &[],
                language => &[terms::string(language)],
            };
            parameters.set_all("language", &subject, "language", language);
            parameters.set_all("tags", &subject, "hasTag", &tags(numbers)?);
            parameters.set("post", subject);
        }
        Insertion::Comment {
            comment,
            creation_date,
            location_ip,
            browser_used,
            content,
            length,
            author,
            country,
            reply_to: (message, is_comment),
            tags: numbers,
        } => {
            let subject = terms::comment(*comment);
            parameters.set_message(*comment, *creation_date, location_ip, browser_used);
            parameters.set("content", terms::string(content));
            parameters.set("length", terms::int(*length));
            parameters.set("author", terms::person(*author));
            parameters.set("country", place(*country)?);
            parameters.set("message", terms::message(*message, *is_comment));
            parameters.set_all("tags", &subject, "hasTag", &tags(numbers)?);
            parameters.set("comment", subject);
        }
        Insertion::Friendship {
            person1,
            person2,
            creation_date,
        } => {
            parameters.set("person1", terms::person(*person1));
            parameters.set("person2", terms::person(*person2));
            parameters.set("creationDate", terms::date_time(*creation_date));
        }
    }
    Ok(())
}

fn known(what: &'static str, number: u64, address: Option<&str>) -> Result<String, InsertionError> {
    address
        .map(str::to_owned)
        .ok_or(InsertionError::Unknown { what, number })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(image_file: &str, tags: Vec<u64>) -> Insertion {
        Insertion::Post {
            post: 1,
            image_file: image_file.to_owned(),
            creation_date: 0,
            location_ip: "1.2.3.4".to_owned(),
            browser_used: "Firefox".to_owned(),
            language: String::new(),
            content: "50 % \"off\"".to_owned(),
            length: 10,
            author: 2,
            forum: 3,
            country: 4,
            tags,
        }
    }

    #[test]
    fn a_post_has_an_image_or_a_content() {
        let catalog = Catalog::with("place", 4, "http://example.org/Land");
        let text = |image| text(&post(image, Vec::new()), &catalog).unwrap();
        assert!(text("").contains(r#"snvoc:content "50 % \"off\"" ; snvoc:length "10""#));
        assert!(!text("a.jpg").contains("snvoc:content"));
        assert!(text("a.jpg").contains("snvoc:imageFile \"a.jpg\""));
    }

    #[test]
    fn what_the_catalog_lacks_is_told() {
        let catalog = Catalog::with("place", 4, "http://example.org/Land");
        let error = text(&post("", vec![9]), &catalog).unwrap_err();
        assert_eq!(error.to_string(), "no tag has the number 9");
    }
}
