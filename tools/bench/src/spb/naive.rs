//! A naive evaluation of the aggregation queries, for validation.
//!
//! The evaluation looks at every work for each question, has no index but by subject and object,
//! and follows the sentence at the top of each query's text, not its patterns.

use std::collections::{BTreeMap, BTreeSet};

use oxrdf::Literal;

use super::answer::{Answer, lexical, number};
use super::quads::Quads;
use super::templates::TextSearch;
use super::vocabulary::{LABELS, RDF_TYPE, SAME_AS, WGS, bbc, cwork, geo_ont};
use orrery_bsbm::literals::milliseconds;

fn time(literal: &str) -> Option<i64> {
    milliseconds(&lexical(literal)?)
}

/// Queries over quads, with parameters as the templates take them.
#[derive(Clone, Copy, Debug)]
pub struct Naive<'q> {
    quads: &'q Quads,
    parameters: &'q BTreeMap<String, String>,
    search: TextSearch,
}

/// When, and who: the order of most answers.
type Latest<'q> = BTreeSet<(std::cmp::Reverse<i64>, &'q str)>;

/// An address without brackets: they would not sort as addresses do.
fn bare(term: &str) -> &str {
    term.trim_matches(['<', '>'])
}

impl<'q> Naive<'q> {
    /// Questions with these parameters.
    pub fn new(
        quads: &'q Quads,
        parameters: &'q BTreeMap<String, String>,
        search: TextSearch,
    ) -> Self {
        Self {
            quads,
            parameters,
            search,
        }
    }

    /// The answer of a query, by its number; none if a parameter is missing or is not what it
    /// should be.
    pub fn answer(&self, number: u8) -> Option<Answer> {
        match number {
            1 => self.q1(),
            2 => self.q2(),
            3 => self.q3(),
            4 => self.q4(),
            5 => self.q5(),
            6 => self.q6(),
            7 => self.q7(),
            8 => self.q8(),
            9 => self.q9(),
            10 => self.q10(),
            11 => self.q11(),
            12 => self.q12(),
            _ => None,
        }
    }

    /// A parameter as it is.
    fn raw(&self, name: &str) -> Option<&'q str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// A parameter that is an address, perhaps with `cwork:`.
    fn iri(&self, name: &str) -> Option<String> {
        let raw = self.raw(name)?;
        match raw.strip_prefix("cwork:") {
            Some(local) => Some(cwork(local)),
            None => Some(raw.to_owned()),
        }
    }

    fn float(&self, name: &str) -> Option<f64> {
        self.raw(name)?.parse().ok()
    }

    fn limit(&self) -> Option<usize> {
        self.raw("limit")?.parse().ok()
    }

    /// From and to.
    fn range(&self) -> Option<(i64, i64)> {
        Some((time(self.raw("from")?)?, time(self.raw("to")?)?))
    }

    /// The times that are said of a subject by a property.
    fn times(&self, subject: &str, property: &str) -> BTreeSet<(i64, &'q str)> {
        let objects = self.quads.objects(subject, &cwork(property)).into_iter();
        objects
            .filter_map(|object| Some((time(object)?, object)))
            .collect()
    }

    /// Works that are about an entity or mention it.
    fn tagged(&self, entity: &str) -> BTreeSet<&'q str> {
        let mut works = self.quads.subjects(&cwork("about"), entity);
        works.extend(self.quads.subjects(&cwork("mentions"), entity));
        works
    }

    /// What a work is about or mentions.
    fn tags(&self, work: &str) -> BTreeSet<&'q str> {
        let mut tags = self.quads.objects(work, &cwork("about"));
        tags.extend(self.quads.objects(work, &cwork("mentions")));
        tags
    }

    fn has(&self, subject: &str, predicate: &str, object: &str) -> bool {
        self.quads
            .of_subject(subject)
            .contains(&(predicate, object))
    }

    fn labels(&self, entity: &str) -> BTreeSet<&'q str> {
        let pairs = self.quads.of_subject(entity).into_iter();
        pairs
            .filter(|(predicate, _)| LABELS.contains(predicate))
            .map(|(_, object)| object)
            .collect()
    }

    /// The latest of some works, by when they were created or modified.
    fn latest<'w>(
        &self,
        works: impl IntoIterator<Item = &'w str>,
        property: &str,
        limit: usize,
    ) -> Vec<&'w str> {
        let mut order = Latest::new();
        for work in works {
            for (when, _) in self.times(work, property) {
                order.insert((std::cmp::Reverse(when), work));
            }
        }
        let mut sorted: Vec<_> = order.into_iter().collect();
        sorted.sort_by_key(|(when, work)| (*when, bare(work)));
        let works = sorted.into_iter().map(|(_, work)| work);
        works.take(limit).collect()
    }

    /// The triples of a work by some properties.
    fn some_of(&self, work: &str, properties: &[String], graph: &mut BTreeSet<String>) {
        for (predicate, object) in self.quads.of_subject(work) {
            if properties.iter().any(|property| property == predicate) {
                graph.insert(format!("{work} {predicate} {object}"));
            }
        }
    }

    /// The names of what a work is about, or mentions, as what is shown of it.
    fn named_tags(&self, work: &str, property: &str, graph: &mut BTreeSet<String>) {
        for entity in self.quads.objects(work, &cwork(property)) {
            for label in self.labels(entity) {
                let shown = cwork(&format!("{property}PrefLabel"));
                graph.insert(format!("{work} {shown} {label}"));
            }
        }
    }

    /// The pages of a work that have a type.
    fn pages(&self, work: &str, graph: &mut BTreeSet<String>) {
        for page in self.quads.objects(work, &bbc("primaryContentOf")) {
            for form in self.quads.objects(page, &bbc("webDocumentType")) {
                graph.insert(format!("{work} {} {page}", bbc("primaryContentOf")));
                graph.insert(format!("{page} {} {form}", bbc("webDocumentType")));
            }
        }
    }

    fn is_creative_work(work: &str) -> String {
        format!("{work} {RDF_TYPE} {}", cwork("CreativeWork"))
    }

    fn q1(&self) -> Option<Answer> {
        let relation = self.iri("relation")?;
        let works = self.quads.subjects(&relation, &self.iri("entity")?);
        let mut graph = BTreeSet::new();
        let mut properties = vec![RDF_TYPE.to_owned(), bbc("primaryContentOf")];
        properties.extend(
            [
                "title",
                "shortTitle",
                "description",
                "dateCreated",
                "dateModified",
                "primaryFormat",
                "thumbnail",
            ]
            .map(cwork),
        );
        for work in self.latest(works, "dateModified", 10) {
            let about = self.quads.objects(work, &cwork("about"));
            if about.iter().all(|entity| self.labels(entity).is_empty()) {
                continue;
            }
            graph.insert(Self::is_creative_work(work));
            self.some_of(work, &properties, &mut graph);
            self.named_tags(work, "about", &mut graph);
            self.named_tags(work, "mentions", &mut graph);
            self.pages(work, &mut graph);
            for thumbnail in self.quads.objects(work, &cwork("thumbnail")) {
                for text in self.quads.objects(work, &cwork("altText")) {
                    let class = cwork("Thumbnail");
                    graph.insert(format!("{thumbnail} {RDF_TYPE} {class}"));
                    graph.insert(format!("{thumbnail} {} {text}", cwork("altText")));
                }
            }
        }
        Some(Answer::Graph(graph))
    }

    fn q2(&self) -> Option<Answer> {
        let work = self.iri("work")?;
        let mut graph = BTreeSet::new();
        let mut properties = vec![RDF_TYPE.to_owned()];
        properties.extend(["title", "dateCreated", "dateModified"].map(cwork));
        self.some_of(&work, &properties, &mut graph);
        self.named_tags(&work, "about", &mut graph);
        self.pages(&work, &mut graph);
        if !graph.is_empty() {
            graph.insert(Self::is_creative_work(&work));
        }
        Some(Answer::Graph(graph))
    }

    /// All that is said of works, but not what they are about.
    fn described(&self, works: &[&str]) -> Answer {
        let mut graph = BTreeSet::new();
        for work in works {
            for (predicate, object) in self.quads.of_subject(work) {
                if predicate != cwork("about") && predicate != cwork("tag") {
                    graph.insert(format!("{work} {predicate} {object}"));
                }
            }
        }
        Answer::Graph(graph)
    }

    fn q3(&self) -> Option<Answer> {
        let (topic, audience) = (self.iri("topic")?, self.iri("audience")?);
        let formats = ["TextualFormat", "InteractiveFormat", "PictureGalleryFormat"].map(cwork);
        let types = ["NewsItem", "BlogPost"].map(cwork);
        let any = |work: &str, predicate: &str, objects: &[String]| {
            let mut objects = objects.iter();
            objects.any(|object| self.has(work, predicate, object))
        };
        let mut works = self.tagged(&topic);
        works.retain(|work| {
            let audiences = self.quads.objects(work, &cwork("audience"));
            any(work, &cwork("primaryFormat"), &formats)
                && any(work, RDF_TYPE, &types)
                && (audiences.is_empty() || audiences.contains(audience.as_str()))
        });
        Some(self.described(&self.latest(works, "dateCreated", self.limit()?)))
    }

    fn q4(&self) -> Option<Answer> {
        let (class, format) = (self.iri("type")?, self.iri("format")?);
        let mut works = self.tagged(&self.iri("topic")?);
        works.retain(|work| {
            self.has(work, RDF_TYPE, &class) && self.has(work, &cwork("primaryFormat"), &format)
        });
        Some(self.described(&self.latest(works, "dateCreated", self.limit()?)))
    }

    /// Works with a time of a property that is as it should be, with that time.
    fn within(&self, property: &str, is_meant: impl Fn(i64) -> bool) -> Vec<(&'q str, &'q str)> {
        let mut found = Vec::new();
        for work in self.quads.with(&cwork(property)) {
            for (when, literal) in self.times(work, property) {
                if is_meant(when) {
                    found.push((work, literal));
                }
            }
        }
        found
    }

    fn q5(&self) -> Option<Answer> {
        let (class, audience) = (self.iri("type")?, self.iri("audience")?);
        let (from, to) = self.range()?;
        let mut works: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (work, _) in self.within("dateModified", |when| from < when && when < to) {
            if self.has(work, RDF_TYPE, &class) && self.has(work, &cwork("audience"), &audience) {
                for topic in self.tags(work) {
                    works.entry(topic).or_default().insert(work);
                }
            }
        }
        let mut rows: Vec<(usize, String)> = Vec::new();
        for (topic, works) in works {
            let labels = self.labels(topic).into_iter().filter_map(lexical);
            rows.extend(labels.max().map(|label| (works.len(), label)));
        }
        rows.sort_by(|one, other| (other.0, &one.1).cmp(&(one.0, &other.1)));
        let row = |(count, label): (usize, String)| {
            vec![
                Literal::new_simple_literal(label).to_string(),
                number(count as f64),
            ]
        };
        Some(Answer::Ordered(rows.into_iter().map(row).collect()))
    }

    fn q6(&self) -> Option<Answer> {
        let (latitude, longitude) = (self.float("latitude")?, self.float("longitude")?);
        let deviation = self.float("deviation")?;
        let coordinates = |place: &str, property: &str, middle: f64| -> Vec<&'q str> {
            let literals = self.quads.objects(place, &format!("<{WGS}{property}>"));
            let mut literals: Vec<&str> = literals.into_iter().collect();
            literals.retain(|literal| {
                let value = lexical(literal).and_then(|text| text.parse::<f64>().ok());
                value
                    .is_some_and(|value| value >= middle - deviation && value <= middle + deviation)
            });
            literals
        };
        let mut rows = BTreeSet::new();
        for place in self.quads.with(&format!("<{WGS}lat>")) {
            if !self.has(place, RDF_TYPE, &geo_ont("Feature")) {
                continue;
            }
            for lat in coordinates(place, "lat", latitude) {
                for long in coordinates(place, "long", longitude) {
                    for work in self.tagged(place) {
                        for (when, literal) in self.times(work, "dateModified") {
                            let key = (std::cmp::Reverse(when), bare(work), bare(place));
                            rows.insert((key, [work, place, lat, long, literal]));
                        }
                    }
                }
            }
        }
        let rows = rows.into_iter().take(self.limit()?);
        Some(Answer::Ordered(
            rows.map(|(_, row)| row.map(str::to_owned).to_vec())
                .collect(),
        ))
    }

    fn q7(&self) -> Option<Answer> {
        let class = self.iri("type")?;
        let (from, to) = self.range()?;
        let mut rows = Vec::new();
        for (work, created) in self.within("dateCreated", |when| from <= when && when < to) {
            if !self.has(work, RDF_TYPE, &class) {
                continue;
            }
            let mut partial = vec![vec![work, created]];
            for property in ["title", "category", "liveCoverage", "audience"] {
                let objects = self.quads.objects(work, &cwork(property));
                let longer = |row: &Vec<&'q str>| {
                    let longer = |object: &&'q str| [row.as_slice(), &[*object]].concat();
                    objects.iter().map(longer).collect::<Vec<_>>()
                };
                partial = partial.iter().flat_map(longer).collect();
            }
            rows.extend(partial);
        }
        let rows = rows.into_iter();
        Some(Answer::unordered(
            rows.map(|row| row.into_iter().map(str::to_owned).collect())
                .collect(),
        ))
    }

    /// Whether a text has a word, as the query looks for it.
    fn has_word(&self, literal: &str, word: &str) -> bool {
        let Some(text) = lexical(literal) else {
            return false;
        };
        match self.search {
            TextSearch::Scan => text.contains(word),
            TextSearch::Index => {
                let (text, word) = (text.to_lowercase(), word.to_lowercase());
                let mut words = text.split(|letter: char| !letter.is_alphanumeric());
                words.any(|other| other == word)
            }
        }
    }

    fn q8(&self) -> Option<Answer> {
        let word = lexical(self.raw("word")?)?;
        let mut works = BTreeSet::new();
        for property in ["title", "description"].map(cwork) {
            for work in self.quads.with(&property) {
                let texts = self.quads.objects(work, &property);
                if texts.iter().any(|text| self.has_word(text, &word)) {
                    works.insert(work);
                }
            }
        }
        let mut properties = vec![RDF_TYPE.to_owned()];
        let shown = ["title", "description", "dateCreated", "dateModified"];
        properties.extend(shown.into_iter().chain(["about", "category"]).map(cwork));
        let mut graph = BTreeSet::new();
        for work in self.latest(works, "dateModified", self.limit()?) {
            graph.insert(Self::is_creative_work(work));
            self.some_of(work, &properties, &mut graph);
            self.pages(work, &mut graph);
        }
        Some(Answer::Graph(graph))
    }

    /// All names of an entity, its own too.
    fn names(&self, entity: &'q str) -> BTreeSet<&'q str> {
        let mut names = BTreeSet::from([entity]);
        let mut open = vec![entity];
        while let Some(name) = open.pop() {
            let mut next = self.quads.objects(name, SAME_AS);
            next.extend(self.quads.subjects(SAME_AS, name));
            open.extend(next.into_iter().filter(|name| names.insert(name)));
        }
        names
    }

    fn q9(&self) -> Option<Answer> {
        let work = self.iri("work")?;
        const WEIGHTS: [(&str, &str, f64); 4] = [
            ("about", "about", 2.0),
            ("about", "mentions", 1.5),
            ("mentions", "about", 1.0),
            ("mentions", "mentions", 0.5),
        ];
        let mut score = 0.0;
        for (own, others, weight) in WEIGHTS {
            for entity in self.quads.objects(&work, &cwork(own)) {
                let names = self.names(entity).into_iter();
                let sharers = names.flat_map(|name| self.quads.subjects(&cwork(others), name));
                score += weight * sharers.collect::<BTreeSet<_>>().len() as f64;
            }
        }
        let tags = self.tags(&work).into_iter();
        let works: BTreeSet<&str> = tags.flat_map(|tag| self.tagged(tag)).collect();
        let mut rows = BTreeSet::new();
        for other in works {
            for (when, literal) in self.times(other, "dateModified") {
                rows.insert((std::cmp::Reverse(when), bare(other), other, literal));
            }
        }
        let row = |(_, _, other, literal): (_, &str, &str, &str)| {
            vec![other.to_owned(), literal.to_owned(), number(score)]
        };
        Some(Answer::Ordered(
            rows.into_iter().take(10).map(row).collect(),
        ))
    }

    /// What is above a place, however far.
    fn above(&self, place: &str) -> BTreeSet<&'q str> {
        let parents = |place: &str| self.quads.objects(place, &geo_ont("parentFeature"));
        let mut above = BTreeSet::new();
        let mut open: Vec<&str> = parents(place).into_iter().collect();
        while let Some(place) = open.pop() {
            if above.insert(place) {
                open.extend(parents(place));
            }
        }
        above
    }

    fn q10(&self) -> Option<Answer> {
        let (from, to) = self.range()?;
        let mut provinces = self.above(&self.iri("place")?);
        provinces.retain(|place| self.has(place, &geo_ont("featureCode"), &geo_ont("A.ADM1")));
        let is_within = |location: &str| {
            provinces.contains(location) || !self.above(location).is_disjoint(&provinces)
        };
        let mut rows = BTreeSet::new();
        for (work, modified) in self.within("dateModified", |when| from <= when && when < to) {
            if self.tags(work).into_iter().any(is_within) {
                for title in self.quads.objects(work, &cwork("title")) {
                    rows.insert([work, title, modified].map(str::to_owned).to_vec());
                }
            }
        }
        Some(Answer::unordered(rows.into_iter().collect()))
    }

    fn q11(&self) -> Option<Answer> {
        let entity = self.iri("entity")?;
        let is_tag =
            |predicate: &str| [cwork("about"), cwork("mentions")].contains(&predicate.to_owned());
        let out = self.quads.of_subject(&entity).into_iter();
        let out = out.filter(|(predicate, _)| !is_tag(predicate));
        let into = self.quads.of_object(&entity).into_iter();
        let into = into.filter(|(_, predicate)| !is_tag(predicate));
        let related: BTreeSet<&str> = (out.map(|(_, object)| object))
            .chain(into.map(|(subject, _)| subject))
            .filter(|term| term.starts_with('<'))
            .collect();
        let works: BTreeSet<&str> = related.into_iter().flat_map(|it| self.tagged(it)).collect();
        let mut rows = BTreeSet::new();
        for work in works {
            for (when, modified) in self.times(work, "dateModified") {
                for title in self.quads.objects(work, &cwork("title")) {
                    for description in self.quads.objects(work, &cwork("description")) {
                        for page in self.quads.objects(work, &bbc("primaryContentOf")) {
                            let key = (std::cmp::Reverse(when), bare(work), bare(page));
                            rows.insert((key, [work, title, description, modified, page]));
                        }
                    }
                }
            }
        }
        let rows = rows.into_iter().take(100);
        Some(Answer::Ordered(
            rows.map(|(_, row)| row.map(str::to_owned).to_vec())
                .collect(),
        ))
    }

    fn q12(&self) -> Option<Answer> {
        let types = ["NewsItem", "BlogPost", "Programme"].map(cwork);
        let mut order = BTreeSet::new();
        for work in self.tagged(&self.iri("tag")?) {
            if !types.iter().any(|class| self.has(work, RDF_TYPE, class)) {
                continue;
            }
            for (when, _) in self.times(work, "dateModified") {
                for graph in self.quads.graphs(work, &cwork("dateModified")) {
                    order.insert((std::cmp::Reverse(when), bare(graph), graph));
                }
            }
        }
        let mut rows = Vec::new();
        for (_, _, graph) in order.into_iter().take(10) {
            for [subject, predicate, object] in self.quads.of_graph(graph) {
                rows.push(
                    [graph, subject, predicate, object]
                        .map(str::to_owned)
                        .to_vec(),
                );
            }
        }
        Some(Answer::unordered(rows))
    }
}
