//! The reader of manifests of updates and protocol requests.

use oxrdf::vocab::rdfs;
use oxrdf::{NamedNode, NamedOrBlankNodeRef, TermRef};

use super::manifest_graph::{Manifest, as_node, mf};
use super::{Exchange, GraphFiles, HttpTest, ServiceDescriptionTest, TestKind, UpdateEvaluation};

const UT: &str = "http://www.w3.org/2009/sparql/tests/test-update#";
const HT: &str = "http://www.w3.org/2011/http#";
const HTS: &str = "http://www.w3.org/2011/http-statusCodes#";
const CNT: &str = "http://www.w3.org/2011/content#";

fn ut(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{UT}{name}"))
}

fn ht(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{HT}{name}"))
}

fn cnt(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{CNT}{name}"))
}

/// The three tests are known by their names only.
pub(super) fn service_description(test: NamedOrBlankNodeRef<'_>) -> Result<TestKind, String> {
    let name = test.to_string();
    let name = name.trim_end_matches('>').rsplit('#').next();
    Ok(TestKind::ServiceDescription(match name {
        Some("returns-rdf") => ServiceDescriptionTest::ReturnsRdf,
        Some("has-endpoint-triple") => ServiceDescriptionTest::HasEndpoint,
        Some("conforms-to-schema") => ServiceDescriptionTest::ConformsToSchema,
        _ => return Err(format!("{test} is no known test of service descriptions")),
    }))
}

impl Manifest {
    /// `mf:UpdateEvaluationTest`.
    pub(super) fn update_evaluation(
        &self,
        test: NamedOrBlankNodeRef<'_>,
    ) -> Result<TestKind, String> {
        let action = as_node(self.object(test, &mf("action"))?)?;
        let result = as_node(self.object(test, &mf("result"))?)?;
        Ok(TestKind::UpdateEvaluation(UpdateEvaluation {
            request: self.file(action, &ut("request"))?,
            before: self.graph_files(action)?,
            after: self.graph_files(result)?,
        }))
    }

    /// `ut:data` and `ut:graphData`.
    fn graph_files(&self, node: NamedOrBlankNodeRef<'_>) -> Result<GraphFiles, String> {
        let mut files = GraphFiles {
            default: self.files(node, &ut("data"))?,
            named: Vec::new(),
        };
        for graph in self
            .graph
            .objects_for_subject_predicate(node, &ut("graphData"))
        {
            let graph = as_node(graph)?;
            let file = self.file(graph, &ut("graph"))?;
            files
                .named
                .push((file, self.text(graph, rdfs::LABEL.into_owned())?));
        }
        Ok(files)
    }

    /// `mf:ProtocolTest` and `mf:GraphStoreProtocolTest`.
    pub(super) fn http_test(&self, test: NamedOrBlankNodeRef<'_>) -> Result<TestKind, String> {
        let connection = as_node(self.object(test, &mf("action"))?)?;
        let requests = self.list(connection, &ht("requests"))?;
        let exchanges = requests
            .into_iter()
            .map(|request| self.exchange(as_node(request)?))
            .collect::<Result<_, _>>()?;
        Ok(TestKind::Http(HttpTest {
            data: self.graph_files(test)?,
            exchanges,
        }))
    }

    fn exchange(&self, request: NamedOrBlankNodeRef<'_>) -> Result<Exchange, String> {
        let response = as_node(self.object(request, &ht("resp"))?)?;
        let statuses = self
            .graph
            .objects_for_subject_predicate(response, &mf("expectedStatus"))
            .map(|status| match status {
                TermRef::NamedNode(node) => Ok(node.as_str().replace(HTS, "")),
                other => Err(format!("{other} is no status")),
            });
        let optional = |property: &str| self.text(response, mf(property)).ok();
        Ok(Exchange {
            method: self.text(request, ht("methodName"))?,
            path: self.text(request, ht("absolutePath"))?,
            headers: self.headers(request)?,
            body: self.body(request)?,
            statuses: statuses.collect::<Result<_, _>>()?,
            expected_headers: self.headers(response)?,
            has_location: optional("expectedLocation").is_some(),
            expected_format: optional("expectedFormat"),
            expected_boolean: optional("expectedBoolean").map(|value| value == "true"),
            expected_body: match self.body(response)? {
                Some(bytes) => Some(String::from_utf8(bytes).map_err(|e| e.to_string())?),
                None => None,
            },
        })
    }

    fn headers(&self, message: NamedOrBlankNodeRef<'_>) -> Result<Vec<(String, String)>, String> {
        self.list(message, &ht("headers"))?
            .into_iter()
            .map(|header| {
                let header = as_node(header)?;
                let name = self.text(header, ht("fieldName"))?;
                Ok((name, self.text(header, ht("fieldValue"))?))
            })
            .collect()
    }

    fn body(&self, message: NamedOrBlankNodeRef<'_>) -> Result<Option<Vec<u8>>, String> {
        let Some(body) = self
            .graph
            .object_for_subject_predicate(message, &ht("body"))
        else {
            return Ok(None);
        };
        let body = as_node(body)?;
        let text = self.text(body, cnt("chars"))?;
        Ok(Some(
            match self.text(body, cnt("characterEncoding"))?.as_str() {
                "UTF-8" => text.into_bytes(),
                "UTF-16" => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
                other => return Err(format!("{other} is no known encoding")),
            },
        ))
    }

    fn object(
        &self,
        subject: NamedOrBlankNodeRef<'_>,
        property: &NamedNode,
    ) -> Result<TermRef<'_>, String> {
        self.graph
            .object_for_subject_predicate(subject, property)
            .ok_or_else(|| format!("{property} is missing"))
    }

    /// The text of a literal.
    fn text(
        &self,
        subject: NamedOrBlankNodeRef<'_>,
        property: NamedNode,
    ) -> Result<String, String> {
        match self.object(subject, &property)? {
            TermRef::Literal(literal) => Ok(literal.value().to_owned()),
            other => Err(format!("{other} stands where a text should")),
        }
    }
}
