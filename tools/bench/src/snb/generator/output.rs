//! The generator's output: triples before the cut, update streams after it.
//!
//! What comes of a line later is what [`crate::snb::insertions`] makes of it: a test holds that
//! both are the same triples. (Here it is written some millions of times, which is why it is not
//! read from the texts of the insertions.)

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::snb::catalog::Catalog;
use crate::snb::operation::Insertion;
use crate::snb::terms::{self, VOCABULARY};

/// When the data set ends and the update streams begin: about nine tenths of three years.
pub(super) const CUT_MS: i64 = 1_347_528_960_000;

/// A line of an update stream, with its time.
pub(super) type Line = (i64, String);

/// Writes triples, and keeps the lines of the update streams until they are sorted.
pub(super) struct Output<'a> {
    catalog: &'a Catalog,
    /// Triples of persons, and of all else.
    persons: &'a mut dyn Write,
    activity: &'a mut dyn Write,
    pub(super) person_stream: Vec<Line>,
    pub(super) forum_stream: Vec<Line>,
    pub(super) triples: u64,
    nodes: u64,
    text: String,
}

impl<'a> Output<'a> {
    pub(super) fn new(
        catalog: &'a Catalog,
        persons: &'a mut dyn Write,
        activity: &'a mut dyn Write,
    ) -> Self {
        Self {
            catalog,
            persons,
            activity,
            person_stream: Vec::new(),
            forum_stream: Vec::new(),
            triples: 0,
            nodes: 0,
            text: String::new(),
        }
    }

    /// Something happens, after what it depends upon.
    pub(super) fn event(
        &mut self,
        due: i64,
        depends_on: i64,
        insertion: &Insertion,
    ) -> io::Result<()> {
        if due >= CUT_MS {
            let line = stream_line(due, depends_on, insertion);
            match insertion {
                Insertion::Person { .. } => self.person_stream.push((due, line)),
                _ => self.forum_stream.push((due, line)),
            }
            return Ok(());
        }
        self.text.clear();
        self.statements(insertion);
        let out = match insertion {
            Insertion::Person { .. } | Insertion::Friendship { .. } => &mut self.persons,
            _ => &mut self.activity,
        };
        out.write_all(self.text.as_bytes())
    }

    fn triple(&mut self, subject: &str, predicate: &str, object: &str) {
        self.triples += 1;
        // Writing to a text does not fail.
        let _ = writeln!(self.text, "{subject} <{VOCABULARY}{predicate}> {object} .");
    }

    fn class(&mut self, subject: &str, class: &str) {
        self.triples += 1;
        let _ = writeln!(
            self.text,
            "{subject} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{VOCABULARY}{class}> ."
        );
    }

    fn node(&mut self) -> String {
        self.nodes += 1;
        format!("_:n{}", self.nodes)
    }

    fn tags(&mut self, subject: &str, predicate: &str, numbers: &[u64]) {
        for number in numbers {
            let tag = self.catalog.tag(*number).unwrap_or_default().to_owned();
            self.triple(subject, predicate, &tag);
        }
    }

    fn place(&mut self, subject: &str, number: u64) {
        let place = self.catalog.place(number).unwrap_or_default().to_owned();
        self.triple(subject, "isLocatedIn", &place);
    }

    fn years(&mut self, subject: &str, predicates: [&str; 2], organizations: &[(u64, i64)]) {
        for &(number, year) in organizations {
            let node = self.node();
            let organization = self
                .catalog
                .organization(number)
                .unwrap_or_default()
                .to_owned();
            self.triple(subject, predicates[0], &node);
            self.triple(&node, "hasOrganisation", &organization);
            self.triple(&node, predicates[1], &terms::integer(year));
        }
    }

    fn message(&mut self, subject: &str, number: u64, time: i64, ip: &str, browser: &str) {
        self.triple(subject, "id", &terms::long(number));
        self.triple(subject, "creationDate", &terms::date_time(time));
        self.triple(subject, "locationIP", &terms::string(ip));
        self.triple(subject, "browserUsed", &terms::string(browser));
    }

    fn statements(&mut self, insertion: &Insertion) {
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
                tags,
                study_at,
                work_at,
            } => {
                let subject = terms::person(*person);
                self.class(&subject, "Person");
                self.message(&subject, *person, *creation_date, location_ip, browser_used);
                self.triple(&subject, "firstName", &terms::string(first_name));
                self.triple(&subject, "lastName", &terms::string(last_name));
                self.triple(&subject, "gender", &terms::string(gender));
                self.triple(&subject, "birthday", &terms::date(*birthday));
                self.place(&subject, *city);
                for language in languages {
                    self.triple(&subject, "speaks", &terms::string(language));
                }
                for email in emails {
                    self.triple(&subject, "email", &terms::string(email));
                }
                self.tags(&subject, "hasInterest", tags);
                self.years(&subject, ["studyAt", "classYear"], study_at);
                self.years(&subject, ["workAt", "workFrom"], work_at);
            }
            Insertion::Like {
                person,
                message,
                is_comment,
                creation_date,
            } => {
                let node = self.node();
                let predicate = if *is_comment { "hasComment" } else { "hasPost" };
                self.triple(&terms::person(*person), "likes", &node);
                self.triple(&node, predicate, &terms::message(*message, *is_comment));
                self.triple(&node, "creationDate", &terms::date_time(*creation_date));
            }
            Insertion::Forum {
                forum,
                title,
                creation_date,
                moderator,
                tags,
            } => {
                let subject = terms::forum(*forum);
                self.class(&subject, "Forum");
                self.triple(&subject, "id", &terms::long(*forum));
                self.triple(&subject, "title", &terms::string(title));
                self.triple(&subject, "creationDate", &terms::date_time(*creation_date));
                self.triple(&subject, "hasModerator", &terms::person(*moderator));
                self.tags(&subject, "hasTag", tags);
            }
            Insertion::Membership {
                forum,
                person,
                join_date,
            } => {
                let node = self.node();
                self.triple(&terms::forum(*forum), "hasMember", &node);
                self.triple(&node, "hasPerson", &terms::person(*person));
                self.triple(&node, "joinDate", &terms::date_time(*join_date));
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
                tags,
            } => {
                let subject = terms::post(*post);
                self.class(&subject, "Post");
                self.message(&subject, *post, *creation_date, location_ip, browser_used);
                if image_file.is_empty() {
                    self.triple(&subject, "content", &terms::string(content));
                    self.triple(&subject, "length", &terms::int(*length));
                } else {
                    self.triple(&subject, "imageFile", &terms::string(image_file));
                }
                if !language.is_empty() {
                    self.triple(&subject, "language", &terms::string(language));
                }
                self.triple(&subject, "hasCreator", &terms::person(*author));
                self.triple(&terms::forum(*forum), "containerOf", &subject);
                self.place(&subject, *country);
                self.tags(&subject, "hasTag", tags);
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
                tags,
            } => {
                let subject = terms::comment(*comment);
                self.class(&subject, "Comment");
                self.message(
                    &subject,
                    *comment,
                    *creation_date,
                    location_ip,
                    browser_used,
                );
                self.triple(&subject, "content", &terms::string(content));
                self.triple(&subject, "length", &terms::int(*length));
                self.triple(&subject, "replyOf", &terms::message(*message, *is_comment));
                self.triple(&subject, "hasCreator", &terms::person(*author));
                self.place(&subject, *country);
                self.tags(&subject, "hasTag", tags);
            }
            Insertion::Friendship {
                person1,
                person2,
                creation_date,
            } => {
                let node = self.node();
                self.triple(&terms::person(*person1), "knows", &node);
                self.triple(&node, "hasPerson", &terms::person(*person2));
                self.triple(&node, "creationDate", &terms::date_time(*creation_date));
            }
        }
    }
}

fn list<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    items.iter().map(show).collect::<Vec<_>>().join(";")
}

fn years(organizations: &[(u64, i64)]) -> String {
    list(organizations, |(number, year)| format!("{number},{year}"))
}

/// The line that [`crate::snb::update_stream::read_line`] reads.
fn stream_line(due: i64, depends_on: i64, insertion: &Insertion) -> String {
    let values = match insertion {
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
            tags,
            study_at,
            work_at,
        } => format!(
            "1|{person}|{first_name}|{last_name}|{gender}|{birthday}|{creation_date}|{location_ip}|{browser_used}|{city}|{}|{}|{}|{}|{}",
            languages.join(";"),
            emails.join(";"),
            list(tags, u64::to_string),
            years(study_at),
            years(work_at)
        ),
        Insertion::Like {
            person,
            message,
            is_comment,
            creation_date,
        } => format!(
            "{}|{person}|{message}|{creation_date}",
            2 + u8::from(*is_comment)
        ),
        Insertion::Forum {
            forum,
            title,
            creation_date,
            moderator,
            tags,
        } => format!(
            "4|{forum}|{title}|{creation_date}|{moderator}|{}",
            list(tags, u64::to_string)
        ),
        Insertion::Membership {
            forum,
            person,
            join_date,
        } => format!("5|{forum}|{person}|{join_date}"),
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
            tags,
        } => format!(
            "6|{post}|{image_file}|{creation_date}|{location_ip}|{browser_used}|{language}|{content}|{length}|{author}|{forum}|{country}|{}",
            list(tags, u64::to_string)
        ),
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
            tags,
        } => {
            let (post, of_comment) = match is_comment {
                true => ("-1".to_owned(), message.to_string()),
                false => (message.to_string(), "-1".to_owned()),
            };
            format!(
                "7|{comment}|{creation_date}|{location_ip}|{browser_used}|{content}|{length}|{author}|{country}|{post}|{of_comment}|{}",
                list(tags, u64::to_string)
            )
        }
        Insertion::Friendship {
            person1,
            person2,
            creation_date,
        } => format!("8|{person1}|{person2}|{creation_date}"),
    };
    format!("{due}|{depends_on}|{values}")
}

#[cfg(test)]
mod tests {
    use oxrdf::graph::CanonicalizationAlgorithm;
    use oxrdf::{Graph, Triple};
    use oxttl::NTriplesParser;
    use spargebra::{GraphUpdateOperation, SparqlParser};

    use super::*;
    use crate::snb::insertions;
    use crate::snb::operation::Operation;
    use crate::snb::update_stream::read_line;

    /// Insertions of all kinds, with and without what may be missing.
    fn insertions_of_all_kinds() -> Vec<Insertion> {
        let text = str::to_owned;
        let person = |languages: &[&str], emails: &[&str], organizations: Vec<(u64, i64)>| {
            let texts = |all: &[&str]| all.iter().map(|it| text(it)).collect();
            Insertion::Person {
                person: 1,
                first_name: text("Ann \"A\""),
                last_name: text("B\\C"),
                gender: text("female"),
                birthday: 0,
                creation_date: 1_000,
                location_ip: text("1.2.3.4"),
                browser_used: text("Firefox"),
                city: 3,
                languages: texts(languages),
                emails: texts(emails),
                tags: organizations.iter().map(|(number, _)| *number).collect(),
                study_at: organizations.clone(),
                work_at: organizations,
            }
        };
        let like = |is_comment| Insertion::Like {
            person: 1,
            message: 7,
            is_comment,
            creation_date: 2_000,
        };
        let forum = |tags| Insertion::Forum {
            forum: 4,
            title: text("Wall of Ann"),
            creation_date: 1_000,
            moderator: 1,
            tags,
        };
        let post = |image: &str, language: &str, tags| Insertion::Post {
            post: 7,
            image_file: text(image),
            creation_date: 3_000,
            location_ip: text("1.2.3.4"),
            browser_used: text("Firefox"),
            language: text(language),
            content: text("50 % off"),
            length: 8,
            author: 1,
            forum: 4,
            country: 3,
            tags,
        };
        let comment = |is_comment, tags| Insertion::Comment {
            comment: 9,
            creation_date: 4_000,
            location_ip: text("1.2.3.4"),
            browser_used: text("Firefox"),
            content: text("some words"),
            length: 10,
            author: 1,
            country: 3,
            reply_to: (7, is_comment),
            tags,
        };
        vec![
            person(&[], &[], Vec::new()),
            person(&["en", "de"], &["a@b", "c@d"], vec![(1, 1990), (2, 1995)]),
            like(false),
            like(true),
            forum(Vec::new()),
            forum(vec![1, 2]),
            Insertion::Membership {
                forum: 4,
                person: 1,
                join_date: 5_000,
            },
            post("", "", Vec::new()),
            post("", "en", vec![1]),
            post("a.jpg", "", vec![1, 2]),
            post("a.jpg", "en", Vec::new()),
            comment(false, vec![2]),
            comment(true, Vec::new()),
            Insertion::Friendship {
                person1: 1,
                person2: 2,
                creation_date: 6_000,
            },
        ]
    }

    fn canonical(triples: impl IntoIterator<Item = Triple>) -> Vec<String> {
        let mut graph: Graph = triples.into_iter().collect();
        graph.canonicalize(CanonicalizationAlgorithm::Unstable);
        let mut lines: Vec<String> = graph.iter().map(|triple| triple.to_string()).collect();
        lines.sort_unstable();
        lines
    }

    #[test]
    fn what_is_generated_is_what_the_insertions_would_make_of_it() {
        let some = |what: &'static str| {
            (0..4).map(move |number| format!("<http://example.org/{what}{number}>"))
        };
        let catalog = Catalog::of(some("tag"), some("place"), some("organization"));
        for insertion in insertions_of_all_kinds() {
            let (mut persons, mut activity) = (Vec::new(), Vec::new());
            let mut output = Output::new(&catalog, &mut persons, &mut activity);
            output.event(0, 0, &insertion).unwrap();
            let count = output.triples;
            let written = [persons, activity].concat();
            let generated = NTriplesParser::new().for_slice(&written);
            let generated = canonical(generated.map(Result::unwrap));
            assert_eq!(generated.len() as u64, count, "{insertion:?}");
            let text = insertions::text(&insertion, &catalog).unwrap();
            let update = SparqlParser::new().parse_update(&text).unwrap();
            let [GraphUpdateOperation::InsertData { data }] = update.operations.as_slice() else {
                panic!("{text}");
            };
            let inserted = canonical(
                data.iter()
                    .cloned()
                    .map(|quad| Triple::new(quad.subject, quad.predicate, quad.object)),
            );
            assert_eq!(generated, inserted, "{insertion:?}");
        }
    }

    #[test]
    fn lines_are_read_as_they_were_meant() {
        let comment = Insertion::Comment {
            comment: 5,
            creation_date: CUT_MS,
            location_ip: "1.2.3.4".to_owned(),
            browser_used: "Firefox".to_owned(),
            content: "some words".to_owned(),
            length: 10,
            author: 3,
            country: 4,
            reply_to: (9, true),
            tags: vec![1, 2],
        };
        let line = stream_line(CUT_MS, 7, &comment);
        let update = read_line(&line).unwrap();
        assert_eq!(update.depends_on, 7);
        assert_eq!(update.operation, Operation::Insert(Box::new(comment)));
    }
}
