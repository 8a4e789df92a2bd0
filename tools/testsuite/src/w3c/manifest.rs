//! The reader of manifests.

use oxrdf::vocab::rdf;
use oxrdf::{NamedNode, NamedNodeRef, NamedOrBlankNodeRef};

use super::manifest_graph::{MF, Manifest, as_node, mf, node_iri};
use super::{Files, QueryEvaluation, ROOT_IRI, Suite, Test, TestKind, manifest_http};

const QT: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#";
const RDFT: &str = "http://www.w3.org/ns/rdftest#";
const SD_ENTAILMENT: &str = "http://www.w3.org/ns/sparql-service-description#entailmentRegime";

/// Manifests that include each other in a circle would never end.
const INCLUDE_DEPTH_MAX: usize = 4;

/// All tests of a suite, in the order of its manifests.
pub(crate) fn tests(files: &Files, suite: &Suite) -> Result<Vec<Test>, String> {
    let mut tests = Vec::new();
    for manifest in suite.manifests {
        read(files, &format!("{ROOT_IRI}{manifest}"), 0, &mut tests)?;
    }
    Ok(tests)
}

fn read(files: &Files, iri: &str, depth: usize, tests: &mut Vec<Test>) -> Result<(), String> {
    if depth > INCLUDE_DEPTH_MAX {
        return Err(format!("{iri}: manifests are included too deeply"));
    }
    let manifest = Manifest::parse(files, iri)?;
    let root = manifest.root()?;
    for included in manifest.list(root, &mf("include"))? {
        read(files, node_iri(included)?, depth + 1, tests)?;
    }
    for entry in manifest.list(root, &mf("entries"))? {
        let entry = as_node(entry)?;
        let kind = manifest
            .kind(entry)
            .map_err(|error| format!("{iri}: {entry}: {error}"))?;
        tests.push(Test {
            id: test_id(iri, entry),
            kind,
        });
    }
    Ok(())
}

/// The folder of the manifest, and what the test is called in it.
fn test_id(manifest: &str, entry: NamedOrBlankNodeRef<'_>) -> String {
    let relative = manifest.strip_prefix(ROOT_IRI).unwrap_or(manifest);
    let folder = relative.rsplit_once('/').map_or("", |(folder, _)| folder);
    let iri = entry.to_string();
    let name = iri.trim_end_matches('>');
    let name = name.rsplit_once('#').map_or(name, |(_, name)| name);
    format!("{folder}#{name}")
}

fn qt(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{QT}{name}"))
}

impl Manifest {
    fn kind(&self, test: NamedOrBlankNodeRef<'_>) -> Result<TestKind, String> {
        let types: Vec<&str> = self
            .graph
            .objects_for_subject_predicate(test, rdf::TYPE)
            .map(node_iri)
            .collect::<Result<_, _>>()?;
        for name in &types {
            if let Some(name) = name.strip_prefix(RDFT) {
                return self.data_kind(test, name);
            }
            if let Some(name) = name.strip_prefix(MF) {
                return self.query_kind(test, name);
            }
        }
        Err(format!("no known kind of test among {types:?}"))
    }

    fn data_kind(&self, test: NamedOrBlankNodeRef<'_>, name: &str) -> Result<TestKind, String> {
        let data = self.file(test, &mf("action"))?;
        if name.ends_with("PositiveSyntax") {
            Ok(TestKind::DataPositive { data })
        } else if name.ends_with("NegativeSyntax") || name.ends_with("NegativeEval") {
            Ok(TestKind::DataNegative { data })
        } else if name.ends_with("C14N") {
            let result = self.file(test, &mf("result"))?;
            Ok(TestKind::DataCanonical { data, result })
        } else if name.ends_with("Eval") {
            let result = self.file(test, &mf("result"))?;
            Ok(TestKind::DataEvaluation { data, result })
        } else {
            Err(format!("{name} is no known kind of test"))
        }
    }

    fn query_kind(&self, test: NamedOrBlankNodeRef<'_>, name: &str) -> Result<TestKind, String> {
        match name {
            "PositiveSyntaxTest" | "PositiveSyntaxTest11" => Ok(TestKind::QueryPositive {
                query: self.file(test, &mf("action"))?,
            }),
            "NegativeSyntaxTest" | "NegativeSyntaxTest11" => Ok(TestKind::QueryNegative {
                query: self.file(test, &mf("action"))?,
            }),
            "PositiveUpdateSyntaxTest" | "PositiveUpdateSyntaxTest11" => {
                Ok(TestKind::UpdatePositive {
                    update: self.file(test, &mf("action"))?,
                })
            }
            "NegativeUpdateSyntaxTest" | "NegativeUpdateSyntaxTest11" => {
                Ok(TestKind::UpdateNegative {
                    update: self.file(test, &mf("action"))?,
                })
            }
            "UpdateEvaluationTest" => self.update_evaluation(test),
            "ProtocolTest" | "GraphStoreProtocolTest" => self.http_test(test),
            "ServiceDescriptionTest" => manifest_http::service_description(test),
            "QueryEvaluationTest" | "CSVResultFormatTest" => self.query_evaluation(test),
            "PositiveEntailmentTest" | "NegativeEntailmentTest" => Ok(TestKind::Waiting {
                reason: "reasoning",
            }),
            _ => Err(format!("{name} is no known kind of test")),
        }
    }

    fn query_evaluation(&self, test: NamedOrBlankNodeRef<'_>) -> Result<TestKind, String> {
        let action = self
            .graph
            .object_for_subject_predicate(test, mf("action").as_ref())
            .ok_or("no action")?;
        let action = as_node(action)?;
        let has = |subject, property| {
            self.graph
                .object_for_subject_predicate(subject, property)
                .is_some()
        };
        let entailment = NamedNodeRef::new_unchecked(SD_ENTAILMENT);
        if has(test, entailment) || has(action, entailment) {
            return Ok(TestKind::Waiting {
                reason: "reasoning",
            });
        }
        let cardinality = self
            .graph
            .object_for_subject_predicate(test, mf("resultCardinality").as_ref());
        Ok(TestKind::QueryEvaluation(QueryEvaluation {
            query: self.file(action, &qt("query"))?,
            data: self.files(action, &qt("data"))?,
            graph_data: self.files(action, &qt("graphData"))?,
            result: self.file(test, &mf("result"))?,
            services: self.services(action)?,
            is_lax: cardinality == Some(mf("LaxCardinality").as_ref().into()),
        }))
    }

    /// The endpoints that a query may ask, and their data.
    fn services(
        &self,
        action: NamedOrBlankNodeRef<'_>,
    ) -> Result<Vec<(String, Vec<String>)>, String> {
        self.graph
            .objects_for_subject_predicate(action, &qt("serviceData"))
            .map(|service| {
                let service = as_node(service)?;
                let endpoint = self.file(service, &qt("endpoint"))?;
                Ok((endpoint, self.files(service, &qt("data"))?))
            })
            .collect()
    }
}
