//! The parser of R2RML: Turtle -> triples by subject -> triples maps.
//!
//! Every property of the vocabulary is looked at where it stands: one that does not belong there,
//! that is there twice, or whose value is of another kind, is an error that names the triples map,
//! the property, and the node. What is of no vocabulary of R2RML is passed over.

use std::collections::{BTreeMap, BTreeSet};

use orrery_term::Term;
use oxrdf::{NamedOrBlankNode, Term as RdfTerm};
use oxttl::TurtleParser;

use crate::error::{Error, Result};
use crate::identifiers::{column_name, table_name};
use crate::model::{
    Annotation, LogicalTable, Mapping, ObjectMap, Properties, TERM_MAPS_MAX, TRIPLES_MAPS_MAX,
    TermMap, TermType, TermValue, TriplesMap,
};
use crate::template::Template;

/// The namespace of the vocabulary.
const RR: &str = "http://www.w3.org/ns/r2rml#";
const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
/// Bytes of a mapping's text.
pub(crate) const TEXT_BYTES_MAX: usize = 4 << 20;
/// Triples of a mapping's text.
const TRIPLES_MAX: usize = 500_000;
/// What `rr:sqlVersion` may be beside IRIs of others
/// (<https://www.w3.org/2001/sw/wiki/RDB2RDF/SQL_Version_IRIs>).
const SQL_VERSIONS: [&str; 13] = [
    "SQL2008",
    "Oracle",
    "MySQL",
    "MSSQLServer",
    "HSQLDB",
    "PostgreSQL",
    "DB2",
    "Informix",
    "Ingres",
    "Progress",
    "SybaseASE",
    "SybaseSQLAnywhere",
    "Virtuoso",
];

/// The relative IRI between two places of a text, as it was written.
fn relative_iri(text: &str, start: u64, end: u64) -> &str {
    let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
    let written = text.get(place(start)..place(end)).map(str::trim);
    written.filter(|it| it.starts_with('<')).unwrap_or("an IRI")
}

/// Whether a mapping's text has relative IRIs that nothing in it makes absolute: it needs the
/// address of its file.
pub fn has_relative_names(text: &str) -> bool {
    let mut triples = TurtleParser::new().for_slice(text);
    let wrong = triples.find_map(std::result::Result::err);
    wrong.is_some_and(|error| error.message().contains("No scheme found"))
}

impl Mapping {
    /// Reads a mapping. Relative IRIs of the text are resolved against what its `@base` says, else
    /// against `base`, else `fallback`; those that rows give get `base` put before them, or where
    /// there is none, that of the text, else `fallback`.
    ///
    /// # Errors
    /// When the text is no Turtle, or no mapping.
    pub(crate) fn of_r2rml(text: &str, base: Option<&str>, fallback: &str) -> Result<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(Error::Words(format!(
                "a mapping of {} bytes is longer than the {TEXT_BYTES_MAX} that are taken",
                text.len()
            )));
        }
        let document = Document::parse(text, base, fallback)?;
        let nodes = document.triples_maps();
        if nodes.is_empty() {
            return Err(Error::Words(
                "the mapping has no triples map: nothing has rr:logicalTable".to_owned(),
            ));
        }
        if nodes.len() > TRIPLES_MAPS_MAX {
            return Err(Error::Words(format!(
                "a mapping has at most {TRIPLES_MAPS_MAX} triples maps"
            )));
        }
        let places: BTreeMap<String, usize> = nodes
            .iter()
            .enumerate()
            .map(|(place, node)| (node.to_string(), place))
            .collect();
        let maps = nodes.iter().map(|node| {
            let reader = Reader {
                document: &document,
                places: &places,
                triples_map: document.named(node),
            };
            reader.triples_map(node)
        });
        let triples_maps: Vec<TriplesMap> = maps.collect::<Result<_>>()?;
        refuse_other_tables(&triples_maps)?;
        Ok(Self {
            triples_maps,
            base: document.base,
        })
    }
}

/// Subjects of another triples map without conditions are made of the same row, so that both must
/// have the same rows (R2RML, 8).
fn refuse_other_tables(maps: &[TriplesMap]) -> Result<()> {
    for map in maps {
        for object in map.properties.iter().flat_map(|it| &it.objects) {
            let ObjectMap::Parent { triples_map, joins } = object else {
                continue;
            };
            if joins.is_empty() && maps[*triples_map].table != map.table {
                return Err(Error::Mapping {
                    triples_map: map.name.clone(),
                    property: "rr:joinCondition".to_owned(),
                    message: format!(
                        "there is none, and {} has another logical table",
                        maps[*triples_map].name
                    ),
                });
            }
        }
    }
    Ok(())
}

/// The triples of a text.
struct Document {
    triples: BTreeMap<String, (NamedOrBlankNode, Vec<(String, RdfTerm)>)>,
    base: String,
}

impl Document {
    fn parse(text: &str, base: Option<&str>, fallback: &str) -> Result<Self> {
        let mut parser = match (
            base,
            TurtleParser::new().with_base_iri(base.unwrap_or(fallback)),
        ) {
            (_, Ok(parser)) => parser,
            (Some(base), Err(error)) => {
                let message = format!("the base <{base}> is no absolute IRI: {error}");
                return Err(Error::Words(message));
            }
            // A graph that has no such name either is refused where it is named.
            (None, Err(_)) => TurtleParser::new(),
        }
        .for_slice(text);
        let mut triples: BTreeMap<String, (NamedOrBlankNode, Vec<_>)> = BTreeMap::new();
        let mut count = 0;
        // By reference: the parser knows the base that the text sets.
        for triple in parser.by_ref() {
            let triple = triple.map_err(|error| {
                let place = error.location();
                let message = match error.message().contains("No scheme found") {
                    true => {
                        let relative = relative_iri(text, place.start.offset, place.end.offset);
                        format!("{relative} is relative; add @base to the mapping, or --base IRI (BASE in SQL)")
                    }
                    false => error.message().to_owned(),
                };
                Error::Turtle {
                    line: place.start.line + 1,
                    column: place.start.column + 1,
                    message,
                }
            })?;
            count += 1;
            if count > TRIPLES_MAX {
                return Err(Error::Words(format!(
                    "a mapping has at most {TRIPLES_MAX} triples"
                )));
            }
            let key = triple.subject.to_string();
            let known = triples.entry(key);
            let (_, about) = known.or_insert_with(|| (triple.subject, Vec::new()));
            let pair = (triple.predicate.into_string(), triple.object);
            if !about.contains(&pair) {
                about.push(pair);
            }
        }
        Ok(Self {
            base: base
                .or(parser.base_iri())
                .map(str::to_owned)
                .unwrap_or_default(),
            triples,
        })
    }

    /// How a node is called in messages: by its IRI, or by what it is of.
    fn named(&self, node: &NamedOrBlankNode) -> String {
        let NamedOrBlankNode::BlankNode(_) = node else {
            return node.to_string();
        };
        let table = self.objects(node, "logicalTable").next();
        let table = table.and_then(resource);
        let name = table.and_then(|table| {
            let names = self.objects(&table, "tableName");
            names.map(ToString::to_string).next()
        });
        match name {
            Some(name) => format!("of the table {name}"),
            None => node.to_string(),
        }
    }

    fn objects<'d>(
        &'d self,
        node: &NamedOrBlankNode,
        property: &'d str,
    ) -> impl Iterator<Item = &'d RdfTerm> {
        let about = self.triples.get(&node.to_string());
        let about = about.map_or(&[][..], |(_, about)| about.as_slice());
        about
            .iter()
            .filter(move |(predicate, _)| predicate.strip_prefix(RR) == Some(property))
            .map(|(_, object)| object)
    }

    /// The nodes that are triples maps, by what they have and by who refers to them.
    fn triples_maps(&self) -> Vec<NamedOrBlankNode> {
        let mut nodes = BTreeMap::new();
        for (key, (node, about)) in &self.triples {
            for (predicate, object) in about {
                let is_of_map = matches!(
                    predicate.strip_prefix(RR),
                    Some("logicalTable" | "subjectMap" | "subject" | "predicateObjectMap")
                );
                let is_called_so = predicate == RDF_TYPE
                    && matches!(object, RdfTerm::NamedNode(class)
                        if class.as_str().strip_prefix(RR) == Some("TriplesMap"));
                if is_of_map || is_called_so {
                    nodes.insert(key.clone(), node.clone());
                }
                if predicate.strip_prefix(RR) == Some("parentTriplesMap")
                    && let Some(parent) = resource(object)
                {
                    nodes.insert(parent.to_string(), parent);
                }
            }
        }
        nodes.into_values().collect()
    }
}

fn resource(term: &RdfTerm) -> Option<NamedOrBlankNode> {
    match term {
        RdfTerm::NamedNode(node) => Some(node.clone().into()),
        RdfTerm::BlankNode(node) => Some(node.clone().into()),
        _ => None,
    }
}

/// Where a term stands, for what it may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Subject,
    Predicate,
    Object,
    Graph,
}

impl Position {
    fn name(self) -> &'static str {
        match self {
            Self::Subject => "a subject",
            Self::Predicate => "a predicate",
            Self::Object => "an object",
            Self::Graph => "a graph",
        }
    }
}

/// What term maps may have, wherever they stand.
const OF_TERMS: [&str; 5] = [
    "constant",
    "column",
    "template",
    "termType",
    "inverseExpression",
];

/// Reads one triples map.
struct Reader<'d> {
    document: &'d Document,
    places: &'d BTreeMap<String, usize>,
    /// Its name, for messages.
    triples_map: String,
}

impl Reader<'_> {
    fn triples_map(&self, node: &NamedOrBlankNode) -> Result<TriplesMap> {
        self.refuse_others(
            node,
            "",
            &[
                "logicalTable",
                "subjectMap",
                "subject",
                "predicateObjectMap",
            ],
        )?;
        let table = self.one(node, "logicalTable")?;
        let table = table.ok_or_else(|| self.wrong("rr:logicalTable", "there is none"))?;
        let table = self.logical_table(&self.node(table, "rr:logicalTable")?)?;
        let map = self.one(node, "subjectMap")?;
        let constant = self.one(node, "subject")?;
        let (subject, classes, graphs) = match (map, constant) {
            (Some(map), None) => {
                let map = self.node(map, "rr:subjectMap")?;
                let extra = ["class", "graph", "graphMap"];
                let subject = self.term_map(&map, "rr:subjectMap", Position::Subject, &extra)?;
                let mut classes = Vec::new();
                for class in self.document.objects(&map, "class") {
                    classes.push(self.iri(class, "rr:class")?);
                }
                (subject, classes, self.graphs(&map)?)
            }
            (None, Some(constant)) => {
                let subject = self.constant(constant, "rr:subject", Position::Subject)?;
                (subject, Vec::new(), Vec::new())
            }
            (None, None) => return Err(self.wrong("rr:subjectMap", "there is none")),
            (Some(_), Some(_)) => {
                return Err(self.wrong("rr:subjectMap", "there is rr:subject as well"));
            }
        };
        let mut properties = Vec::new();
        for map in self.document.objects(node, "predicateObjectMap") {
            properties.push(self.properties(&self.node(map, "rr:predicateObjectMap")?)?);
        }
        let count = properties.iter().map(|it: &Properties| {
            let graphs = (it.graphs.len() + graphs.len()).max(1);
            it.predicates.len() * it.objects.len() * graphs
        });
        if count.sum::<usize>() + classes.len() > TERM_MAPS_MAX {
            let message = format!("there are more than {TERM_MAPS_MAX} triples of a row");
            return Err(self.wrong("rr:predicateObjectMap", message));
        }
        Ok(TriplesMap {
            name: self.triples_map.clone(),
            table,
            subject,
            classes,
            graphs,
            properties,
        })
    }

    fn logical_table(&self, node: &NamedOrBlankNode) -> Result<LogicalTable> {
        self.refuse_others(
            node,
            "rr:logicalTable",
            &["tableName", "sqlQuery", "sqlVersion"],
        )?;
        let name = self.one(node, "tableName")?;
        let query = self.one(node, "sqlQuery")?;
        for version in self.document.objects(node, "sqlVersion") {
            let version = self.iri(version, "rr:sqlVersion")?;
            let ours = version.strip_prefix(RR);
            if ours.is_some_and(|ours| !SQL_VERSIONS.contains(&ours)) {
                let message = format!("<{version}> is no version of SQL that R2RML knows");
                return Err(self.wrong("rr:sqlVersion", message));
            }
            if query.is_none() {
                return Err(self.wrong("rr:sqlVersion", "it belongs to rr:sqlQuery alone"));
            }
        }
        match (name, query) {
            (Some(name), None) => {
                let name = self.text(name, "rr:tableName")?;
                let (schema, name) =
                    table_name(&name).map_err(|it| it.at(&self.triples_map, "rr:tableName"))?;
                Ok(LogicalTable::Table {
                    schema,
                    name,
                    is_numbered: false,
                })
            }
            (None, Some(query)) => {
                let query = self.text(query, "rr:sqlQuery")?;
                let query = query.trim().trim_end_matches(';').trim_end();
                Ok(LogicalTable::Query(query.to_owned()))
            }
            (None, None) => Err(self.wrong(
                "rr:logicalTable",
                "it has neither rr:tableName nor rr:sqlQuery",
            )),
            (Some(_), Some(_)) => Err(self.wrong(
                "rr:logicalTable",
                "it has both of rr:tableName and rr:sqlQuery",
            )),
        }
    }

    fn properties(&self, node: &NamedOrBlankNode) -> Result<Properties> {
        self.refuse_others(
            node,
            "rr:predicateObjectMap",
            &[
                "predicate",
                "predicateMap",
                "object",
                "objectMap",
                "graph",
                "graphMap",
            ],
        )?;
        let mut predicates = Vec::new();
        for constant in self.document.objects(node, "predicate") {
            predicates.push(self.constant(constant, "rr:predicate", Position::Predicate)?);
        }
        for map in self.document.objects(node, "predicateMap") {
            let map = self.node(map, "rr:predicateMap")?;
            predicates.push(self.term_map(&map, "rr:predicateMap", Position::Predicate, &[])?);
        }
        let mut objects = Vec::new();
        for constant in self.document.objects(node, "object") {
            let constant = self.constant(constant, "rr:object", Position::Object)?;
            objects.push(ObjectMap::Term(constant));
        }
        for map in self.document.objects(node, "objectMap") {
            objects.push(self.object_map(&self.node(map, "rr:objectMap")?)?);
        }
        if predicates.is_empty() {
            return Err(self.wrong("rr:predicateObjectMap", "it has no predicate"));
        }
        if objects.is_empty() {
            return Err(self.wrong("rr:predicateObjectMap", "it has no object"));
        }
        Ok(Properties {
            predicates,
            objects,
            graphs: self.graphs(node)?,
        })
    }

    fn graphs(&self, node: &NamedOrBlankNode) -> Result<Vec<TermMap>> {
        let mut graphs = Vec::new();
        for constant in self.document.objects(node, "graph") {
            graphs.push(self.constant(constant, "rr:graph", Position::Graph)?);
        }
        for map in self.document.objects(node, "graphMap") {
            let map = self.node(map, "rr:graphMap")?;
            graphs.push(self.term_map(&map, "rr:graphMap", Position::Graph, &[])?);
        }
        Ok(graphs)
    }

    fn object_map(&self, node: &NamedOrBlankNode) -> Result<ObjectMap> {
        let Some(parent) = self.one(node, "parentTriplesMap")? else {
            if self
                .document
                .objects(node, "joinCondition")
                .next()
                .is_some()
            {
                let message = "there is no rr:parentTriplesMap that it could be for";
                return Err(self.wrong("rr:joinCondition", message));
            }
            let extra = ["datatype", "language"];
            let map = self.term_map(node, "rr:objectMap", Position::Object, &extra)?;
            return Ok(ObjectMap::Term(map));
        };
        self.refuse_others(node, "rr:objectMap", &["parentTriplesMap", "joinCondition"])?;
        let parent = self.node(parent, "rr:parentTriplesMap")?;
        let triples_map = self.places.get(&parent.to_string()).copied();
        let triples_map = triples_map.ok_or_else(|| {
            self.wrong("rr:parentTriplesMap", format!("{parent} is no triples map"))
        })?;
        let mut joins = Vec::new();
        for condition in self.document.objects(node, "joinCondition") {
            let condition = self.node(condition, "rr:joinCondition")?;
            self.refuse_others(&condition, "rr:joinCondition", &["child", "parent"])?;
            let side = |side: &str| {
                let property = format!("rr:{side}");
                let column = self.one(&condition, side)?;
                let column = column.ok_or_else(|| self.wrong(&property, "there is none"))?;
                self.column(column, &property)
            };
            joins.push((side("child")?, side("parent")?));
        }
        Ok(ObjectMap::Parent { triples_map, joins })
    }

    fn term_map(
        &self,
        node: &NamedOrBlankNode,
        property: &str,
        position: Position,
        extra: &[&str],
    ) -> Result<TermMap> {
        let allowed: Vec<&str> = OF_TERMS.iter().chain(extra).copied().collect();
        self.refuse_others(node, property, &allowed)?;
        let constant = self.one(node, "constant")?;
        let column = self.one(node, "column")?;
        let template = self.one(node, "template")?;
        let term_type = self.one(node, "termType")?;
        let annotation = self.annotation(node)?;
        if let Some(inverse) = self.one(node, "inverseExpression")? {
            // A hint, which nothing needs: templates are taken apart without it.
            self.text(inverse, "rr:inverseExpression")?;
            if constant.is_some() {
                return Err(self.wrong("rr:inverseExpression", "a constant has none"));
            }
        }
        let (value, is_column) = match (constant, column, template) {
            (Some(constant), None, None) => {
                if term_type.is_some() || annotation != Annotation::Natural {
                    let message =
                        "a constant has neither rr:termType nor rr:datatype nor rr:language";
                    return Err(self.wrong(property, message));
                }
                return self.constant(constant, "rr:constant", position);
            }
            (None, Some(column), None) => {
                (TermValue::Column(self.column(column, "rr:column")?), true)
            }
            (None, None, Some(template)) => {
                let text = self.text(template, "rr:template")?;
                let at = |error: Error| error.at(&self.triples_map, "rr:template");
                let template = Template::parse(&text).map_err(at)?;
                let template = template.map(|name| column_name(name)).map_err(at)?;
                (TermValue::Template(template), false)
            }
            (None, None, None) => {
                let message = "it has neither rr:constant nor rr:column nor rr:template";
                return Err(self.wrong(property, message));
            }
            _ => {
                let message = "it has more than one of rr:constant, rr:column and rr:template";
                return Err(self.wrong(property, message));
            }
        };
        let is_annotated = annotation != Annotation::Natural;
        let term_type = match term_type {
            None if position == Position::Object && (is_column || is_annotated) => {
                TermType::Literal(annotation.clone())
            }
            None => TermType::Iri,
            Some(term_type) => {
                let term_type = self.iri(term_type, "rr:termType")?;
                match term_type.strip_prefix(RR) {
                    Some("IRI") => TermType::Iri,
                    Some("BlankNode") => TermType::BlankNode,
                    Some("Literal") => TermType::Literal(annotation.clone()),
                    _ => {
                        let message =
                            format!("<{term_type}> is neither rr:IRI, rr:BlankNode nor rr:Literal");
                        return Err(self.wrong("rr:termType", message));
                    }
                }
            }
        };
        let is_allowed = match (&term_type, position) {
            (TermType::Iri, _) | (TermType::Literal(_), Position::Object) => true,
            (TermType::BlankNode, Position::Subject | Position::Object) => true,
            (TermType::BlankNode | TermType::Literal(_), _) => false,
        };
        if !is_allowed {
            let message = format!("{} cannot be of this kind", position.name());
            return Err(self.wrong("rr:termType", message));
        }
        if is_annotated && !matches!(term_type, TermType::Literal(_)) {
            let message = "rr:datatype and rr:language are for literals alone";
            return Err(self.wrong(property, message));
        }
        Ok(TermMap { value, term_type })
    }

    fn annotation(&self, node: &NamedOrBlankNode) -> Result<Annotation> {
        let datatype = self.one(node, "datatype")?;
        let language = self.one(node, "language")?;
        match (datatype, language) {
            (None, None) => Ok(Annotation::Natural),
            (Some(datatype), None) => {
                let datatype = self.iri(datatype, "rr:datatype")?;
                match datatype.as_str() {
                    "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
                    | "http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString" => {
                        Err(self.wrong("rr:datatype", "a language is said by rr:language"))
                    }
                    _ => Ok(Annotation::Datatype(datatype)),
                }
            }
            (None, Some(language)) => {
                let language = self.text(language, "rr:language")?;
                match is_language_tag(&language) {
                    true => Ok(Annotation::Language(language)),
                    false => {
                        let message = format!("{language:?} is no tag of a language (BCP 47)");
                        Err(self.wrong("rr:language", message))
                    }
                }
            }
            (Some(_), Some(_)) => Err(self.wrong("rr:datatype", "there is rr:language as well")),
        }
    }

    fn constant(&self, term: &RdfTerm, property: &str, position: Position) -> Result<TermMap> {
        let wrong = |what: &str| {
            let message = format!("{} cannot be the {what} {term}", position.name());
            self.wrong(property, message)
        };
        let (value, term_type) = match term {
            RdfTerm::NamedNode(node) => (Term::iri(node.as_str().to_owned()), TermType::Iri),
            RdfTerm::Literal(literal) if position == Position::Object => {
                let lexical = literal.value().to_owned();
                let value = match literal.language() {
                    Some(tag) if is_language_tag(tag) => Term::language(lexical, tag.to_owned()),
                    Some(_) => return Err(wrong("literal with no tag of a language (BCP 47)")),
                    None => Term::typed(lexical, literal.datatype().as_str().to_owned()),
                };
                (value, TermType::Literal(Annotation::Natural))
            }
            RdfTerm::Literal(_) => return Err(wrong("literal")),
            RdfTerm::BlankNode(_) => return Err(wrong("blank node")),
            _ => return Err(wrong("triple")),
        };
        Ok(TermMap {
            value: TermValue::Constant(value),
            term_type,
        })
    }

    fn column(&self, term: &RdfTerm, property: &str) -> Result<String> {
        let text = self.text(term, property)?;
        column_name(&text).map_err(|error| error.at(&self.triples_map, property))
    }

    fn text(&self, term: &RdfTerm, property: &str) -> Result<String> {
        match term {
            RdfTerm::Literal(literal)
                if literal.datatype().as_str() == "http://www.w3.org/2001/XMLSchema#string" =>
            {
                Ok(literal.value().to_owned())
            }
            other => Err(self.wrong(property, format!("{other} is no plain text"))),
        }
    }

    fn iri(&self, term: &RdfTerm, property: &str) -> Result<String> {
        match term {
            RdfTerm::NamedNode(node) => Ok(node.as_str().to_owned()),
            other => Err(self.wrong(property, format!("{other} is no IRI"))),
        }
    }

    fn node(&self, term: &RdfTerm, property: &str) -> Result<NamedOrBlankNode> {
        resource(term).ok_or_else(|| {
            let message = format!("{term} is no IRI and no blank node");
            self.wrong(property, message)
        })
    }

    /// The only value of a property, if there is one.
    fn one<'a>(
        &'a self,
        node: &NamedOrBlankNode,
        property: &'a str,
    ) -> Result<Option<&'a RdfTerm>> {
        let mut values = self.document.objects(node, property);
        let (first, second) = (values.next(), values.next());
        match (first, second) {
            (Some(first), Some(second)) => Err(self.wrong(
                &format!("rr:{property}"),
                format!("there is more than one: {first} and {second}"),
            )),
            _ => Ok(first),
        }
    }

    /// Fails where a node has a property of the vocabulary that has no place there.
    fn refuse_others(
        &self,
        node: &NamedOrBlankNode,
        property: &str,
        allowed: &[&str],
    ) -> Result<()> {
        let about = self.document.triples.get(&node.to_string());
        let Some((_, about)) = about else {
            return Err(self.wrong(property, format!("nothing is said of {node}")));
        };
        let used: BTreeSet<&str> = about
            .iter()
            .filter_map(|(predicate, _)| predicate.strip_prefix(RR))
            .collect();
        match used.iter().find(|used| !allowed.contains(used)) {
            Some(other) => {
                let message = format!("it has no place at {node}");
                Err(self.wrong(&format!("rr:{other}"), message))
            }
            None => Ok(()),
        }
    }

    fn wrong(&self, property: &str, message: impl Into<String>) -> Error {
        Error::Mapping {
            triples_map: self.triples_map.clone(),
            property: property.to_owned(),
            message: message.into(),
        }
    }
}

/// Whether a text can be a tag: well-formed, and its first part such as languages have. No language
/// has one of more than three letters, though BCP 47 would let them (`english`).
fn is_language_tag(text: &str) -> bool {
    let first = text.split('-').next().unwrap_or_default();
    oxilangtag::LanguageTag::parse(text).is_ok()
        && (first.len() <= 3)
        && (first.len() >= 2 || text.contains('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_iri_without_a_base_is_named_with_what_to_add() {
        let text = "@prefix rr: <http://www.w3.org/ns/r2rml#> .\n<#Item> rr:logicalTable [ rr:tableName \"item\" ] .";
        let wrong = Mapping::of_r2rml(text, None, "no IRI").unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "the mapping is no Turtle: line 2, column 1: <#Item> is relative; add @base to the mapping, \
             or --base IRI (BASE in SQL)"
        );
    }
}
