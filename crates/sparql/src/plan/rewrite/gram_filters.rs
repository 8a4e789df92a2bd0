//! The rewrite of `CONTAINS`, `STRSTARTS`, `STRENDS` and `REGEX` to trigram look-ups.
//!
//! ```text
//! ?s rdfs:label ?l   FILTER(REGEX(?l, "ing.*ed s"))
//!     filter -> AND and OR of trigrams -> the index -> literals that have them -> VALUES ?l { ... }   beside the pattern, and the filter
//! ```
//!
//! The filter stays and decides, so what is added takes nothing away as long as every literal is in
//! it that can pass. Which ones are those:
//!
//! * The variable is the object of a pattern in the same group, so it has a value that stands in a
//!   quad; with a predicate that the index covers, or the index covers all; in a graph that it
//!   covers, and with a type beside it, if it is of some graphs or classes. If the index is of some
//!   languages, another filter has to say which language it is.
//! * Of a term that is no string these functions are errors, but of its `STR`. There the objects of
//!   the predicate that are no strings come in too, if they are few.
//!
//! What is found is used where it is few: literals for [`ROWS_PER_CANDIDATE`] rows of the smallest
//! pattern each, [`CANDIDATES_MAX`] at most. Before anything is read it is known how many postings
//! that takes. A plan for such a filter is not kept: what was found is of one state, and one needle
//! is rare where another is not.
//!
//! Literals that stand in no quad of the predicate are left out before they are counted: a walk
//! over its objects, where the filter would decode them.
//!
//! Of who does not see all graphs, what is found, whether it is used and what it costs is told by
//! what they see alone: all grams are looked at whatever others have them, without a bound on
//! postings; what an index of what they see would not have is left out before it is counted; and
//! tests of any term's text (`STR`) are not looked up, for which terms came after the last
//! compaction depends on all graphs. Time alone may tell.

use std::ops::Bound;
use std::sync::Arc;

use orrery_full_text::{GramBounds, GramQuery};
use orrery_storage::text::{TextReader, TextRules};
use orrery_storage::{COLUMNS, Permutation};
use orrery_term::vocabulary::rdf;
use orrery_term::{Term, TermId, TermKind};

use crate::algebra::{Group, Item, Quad, Scope, Slot, TextRule, Values, Var, VarSet};
use crate::error::Result;
use crate::plan::planner::Planner;
use crate::plan::rewrite::text_tests::{TextTest, language};

/// Literals at most.
const CANDIDATES_MAX: usize = 50_000;
/// Rows of the smallest pattern for each literal, from which on to look these up is better than to
/// filter.
const ROWS_PER_CANDIDATE: f64 = 16.0;
/// Of fewer rows nothing is looked up.
const ROWS_MIN: f64 = 1_000.0;
/// Postings that are read for each row that would be filtered: they are a few nanoseconds each.
const POSTINGS_PER_ROW: f64 = 2.0;
/// Literals that are looked at together for who does not see all graphs.
const PORTION: usize = 1 << 16;
/// Postings that are read where trigrams are to be used wherever it may be.
const POSTINGS_FORCED_MAX: u64 = 1 << 20;
/// Quads of a predicate whose objects are no strings, or may be none.
const OTHER_ROWS_MAX: u64 = 4_096;

impl Planner<'_> {
    /// Whether the state has an index of trigrams that may be used.
    pub(super) fn has_grams(&self) -> bool {
        let rules = self.context.snapshot().text_rules();
        self.tuning.looks_grams_up && rules.is_some_and(|rules| rules.grams)
    }

    /// The literals that filters on texts leave for variables of the group's patterns, where they
    /// are few. `outside` are variables that have values already.
    pub(super) fn gram_values(&self, group: &Group, outside: &VarSet) -> Result<Vec<Values>> {
        let mut asked: Vec<(Var, TextTest<'_>)> = Vec::new();
        for filter in &group.filters {
            let Some(more) = TextTest::of(filter) else {
                continue;
            };
            let Some(var) = self.table.get(more.variable) else {
                continue;
            };
            match asked.iter_mut().find(|(known, _)| *known == var) {
                Some((_, known)) => {
                    let grams = std::mem::replace(&mut known.grams, GramQuery::anything());
                    known.grams = grams.and(more.grams);
                    known.is_of_any_term &= more.is_of_any_term;
                }
                None => asked.push((var, more)),
            }
        }
        asked.retain(|(var, _)| !outside.contains(*var));
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        self.grams.note_possible();
        let Some(rules) = self.context.snapshot().text_rules() else {
            return Ok(Vec::new());
        };
        let mut all = Vec::new();
        for (var, mut asked) in asked {
            let language = language(&group.filters, asked.variable);
            // What has a language is a string.
            asked.is_of_any_term &= language.as_deref().is_none_or(str::is_empty);
            let is_of_rules = match &language {
                Some(tag) => rules.takes_language(Some(tag.as_str()).filter(|tag| !tag.is_empty())),
                None => rules.languages.is_empty(),
            };
            let sees_all = self.context.view().scope().graphs().is_none();
            let is_known = sees_all || !asked.is_of_any_term;
            if asked.grams.is_anything() || !is_of_rules || !is_known {
                continue;
            }
            if let Some(found) = self.candidates(group, var, &asked, rules)? {
                let rows = found.iter().map(|id| vec![Some(*id)]);
                all.push(Values {
                    variables: vec![var],
                    rows: rows.collect(),
                });
            }
        }
        Ok(all)
    }

    /// The literals that a variable of the group can be, if they are few.
    fn candidates(
        &self,
        group: &Group,
        var: Var,
        asked: &TextTest<'_>,
        rules: &TextRules,
    ) -> Result<Option<Arc<[TermId]>>> {
        let mut fewest: Option<f64> = None;
        for item in &group.items {
            if let Item::Quad(_) = item {
                let rows = self.estimate(item)?.rows;
                fewest = Some(fewest.map_or(rows, |fewest| fewest.min(rows)));
            }
        }
        let is_forced = self.tuning.reduces_always;
        let Some(rows) = fewest.filter(|rows| is_forced || *rows >= ROWS_MIN) else {
            return Ok(None);
        };
        let mut covered = None;
        for item in &group.items {
            if let Item::Quad(quad) = item
                && quad.object == Slot::Variable(var)
                && self.is_covered(quad, group, rules)?
            {
                covered = Some(quad.predicate);
                break;
            }
        }
        let predicate = match covered {
            Some(Slot::Constant(predicate)) => Some(predicate),
            Some(Slot::Variable(_)) if !asked.is_of_any_term => None,
            Some(Slot::Variable(_) | Slot::Absent) | None => return Ok(None),
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate, bounded"
        )]
        let (most, postings_max) = match is_forced {
            true => (CANDIDATES_MAX, POSTINGS_FORCED_MAX),
            false => (
                ((rows / ROWS_PER_CANDIDATE) as usize).min(CANDIDATES_MAX),
                (rows * POSTINGS_PER_ROW) as u64,
            ),
        };
        let key = (asked.grams.clone(), predicate, asked.is_of_any_term, most);
        if let Some(known) = self.grams.known(&key) {
            return Ok(known);
        }
        let others = match predicate.filter(|_| asked.is_of_any_term) {
            None => Some(Vec::new()),
            Some(predicate) => self.others(predicate)?,
        };
        let found = match others {
            None => None,
            Some(others) => self
                .literals_with(&asked.grams, predicate, rules, (most, postings_max))?
                .map(|mut found| {
                    found.extend(others);
                    found.sort_unstable();
                    found.dedup();
                    found
                })
                .filter(|found| found.len() <= most),
        };
        self.context
            .spend_planning(found.as_ref().map_or(0, |found| found.len() as u64))?;
        let found: Option<Arc<[TermId]>> = found.map(Arc::from);
        self.grams.note(key, found.clone());
        Ok(found)
    }

    /// Whether the index has all strings that stand in the pattern's quads: by its predicate, its
    /// graph, and a type that the group asks of its subject.
    fn is_covered(&self, quad: &Quad, group: &Group, rules: &TextRules) -> Result<bool> {
        let has_predicate = match (rules.predicates.is_empty(), quad.predicate) {
            (true, _) => true,
            (false, Slot::Constant(predicate)) => {
                self.iri_is(predicate, &|iri| rules.takes_predicate(iri))?
            }
            (false, Slot::Variable(_) | Slot::Absent) => false,
        };
        Ok(has_predicate
            && self.is_in_graphs(&quad.scope, rules)?
            && self.has_class(quad, group, rules)?)
    }

    fn is_in_graphs(&self, scope: &Scope, rules: &TextRules) -> Result<bool> {
        if rules.graphs.is_empty() {
            return Ok(true);
        }
        let takes = |graph: TermId| match graph == TermId::DEFAULT_GRAPH {
            true => Ok(rules.takes_graph(None)),
            false => self.iri_is(graph, &|iri| rules.takes_graph(Some(iri))),
        };
        match scope {
            Scope::Default => takes(TermId::DEFAULT_GRAPH),
            Scope::Named(graph) => takes(*graph),
            Scope::Union(graphs)
            | Scope::NamedVariable {
                allowed: Some(graphs),
                ..
            } => {
                for graph in graphs.iter() {
                    if !takes(*graph)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Scope::AllUnion | Scope::NamedVariable { allowed: None, .. } => Ok(false),
        }
    }

    /// Whether another pattern of the group says that the subject has a class of the rules: in
    /// whichever graph, as the index has it.
    fn has_class(&self, quad: &Quad, group: &Group, rules: &TextRules) -> Result<bool> {
        if rules.classes.is_empty() {
            return Ok(true);
        }
        for item in &group.items {
            if let Item::Quad(other) = item
                && other.subject == quad.subject
                && let (Slot::Constant(predicate), Slot::Constant(class)) =
                    (other.predicate, other.object)
                && self.iri_is(predicate, &|iri| iri == rdf::TYPE)?
                && self.iri_is(class, &|iri| rules.classes.iter().any(|known| known == iri))?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn iri_is(&self, id: TermId, is_asked: &dyn Fn(&str) -> bool) -> Result<bool> {
        match self.context.term(id)? {
            Term::Iri(iri) => Ok(is_asked(&iri)),
            _ => Ok(false),
        }
    }

    /// The literals that have the grams, if they are not more than so many, and no more than so
    /// many postings have to be read.
    fn literals_with(
        &self,
        grams: &GramQuery,
        predicate: Option<TermId>,
        rules: &TextRules,
        (most, postings_max): (usize, u64),
    ) -> Result<Option<Vec<TermId>>> {
        let view = self.context.view();
        let Some(reader) = TextReader::for_grams(view, &**self.context.adjacencies())? else {
            return Ok(None);
        };
        if view.scope().graphs().is_some() {
            return self.seen_with(&reader, grams, predicate, rules, most);
        }
        let mut found = Vec::new();
        let mut count = 0;
        let patience = self.context.patience();
        let bounds = GramBounds::Postings(postings_max);
        let searched =
            reader.with_grams(grams, bounds, &mut || patience.check().is_ok(), &mut |id| {
                count += 1;
                if count <= most {
                    found.push(id);
                }
            });
        patience.check()?;
        if !searched? || count > most {
            return Ok(None);
        }
        match predicate {
            // All stand in some quad.
            None => Ok(Some(found)),
            Some(predicate) => self.objects_among(predicate, found).map(Some),
        }
    }

    /// The same for who does not see all graphs: of those literals that an index of what they see
    /// would have.
    fn seen_with(
        &self,
        reader: &TextReader,
        grams: &GramQuery,
        predicate: Option<TermId>,
        rules: &TextRules,
        most: usize,
    ) -> Result<Option<Vec<TermId>>> {
        let view = self.context.view();
        let rule = TextRule::of(rules, view)?;
        let patience = self.context.patience();
        let mut seen: Vec<TermId> = Vec::new();
        let mut portion = Vec::new();
        let mut take = |portion: &mut Vec<TermId>| -> Result<()> {
            let found = std::mem::take(portion);
            let found = match predicate {
                Some(predicate) => self.objects_among(predicate, found)?,
                None => found,
            };
            for id in found {
                patience.check()?;
                if seen.len() <= most && rule.has_quad(view, id)? {
                    seen.push(id);
                }
            }
            Ok(())
        };
        let mut taken = Ok(());
        let searched = reader.with_grams(
            grams,
            GramBounds::Exact,
            &mut || patience.check().is_ok(),
            &mut |id| {
                portion.push(id);
                if portion.len() >= PORTION && taken.is_ok() {
                    taken = take(&mut portion);
                }
                if taken.is_err() {
                    portion.clear();
                }
            },
        );
        taken?;
        patience.check()?;
        searched?;
        take(&mut portion)?;
        Ok((seen.len() <= most).then_some(seen))
    }

    /// Those of some literals that are objects of a predicate. The filter would decode the texts of
    /// other predicates, too, which may be long; here each is a step of a walk.
    fn objects_among(&self, predicate: TermId, mut ids: Vec<TermId>) -> Result<Vec<TermId>> {
        let Some(index) = self.context.view().index(Permutation::Posg) else {
            return Ok(Vec::new());
        };
        ids.sort_unstable();
        let mut cursor = index.cursor();
        let mut objects = Vec::new();
        for id in ids {
            self.context.patience().check()?;
            if !cursor.seek(&[predicate, id])?.is_empty() {
                objects.push(id);
            }
        }
        Ok(objects)
    }

    /// The objects of a predicate that are no strings, or may be none; `None` if there are many.
    fn others(&self, predicate: TermId) -> Result<Option<Vec<TermId>>> {
        const OBJECT: usize = 1;
        let dictionary = self.context.snapshot().dictionary();
        let literal =
            |rank: u64| TermId::from_bits(TermId::first_of(TermKind::Literal).bits() + rank);
        let before = |id: TermId| TermId::from_bits(id.bits() - 1);
        let behind = |id: TermId| TermId::from_bits(id.bits() + 1);
        // Of the dictionary: strings with a language, and without.
        let (tagged, behind_tagged) =
            (dictionary.lower_bound(b"L")?, dictionary.lower_bound(b"M")?);
        let (plain, behind_plain) = (dictionary.lower_bound(b"S")?, dictionary.lower_bound(b"T")?);
        let intervals = [
            (TermId::from_bits(0), before(literal(tagged))),
            (literal(behind_tagged), before(literal(plain))),
            (
                literal(behind_plain),
                before(TermId::first_of(TermKind::ShortString)),
            ),
            (
                behind(TermId::last_of(TermKind::ShortString)),
                TermId::from_bits(u64::MAX),
            ),
        ];
        let Some(index) = self.context.view().index(Permutation::Posg) else {
            return Ok(None);
        };
        let mut others = Vec::new();
        let mut rows = 0;
        for (low, high) in intervals.into_iter().filter(|(low, high)| low <= high) {
            let range = index.cursor().seek_between(
                &[predicate],
                Bound::Included(low),
                Bound::Included(high),
            )?;
            rows += range.len();
            if rows > OTHER_ROWS_MAX {
                return Ok(None);
            }
            let mut wanted = [false; COLUMNS];
            wanted[OBJECT] = true;
            let mut scan = index.scan(range, wanted);
            while let Some(vector) = scan.next_vector()? {
                others.extend(vector.column(OBJECT).iter().copied().map(TermId::from_bits));
            }
        }
        self.context.spend_planning(rows)?;
        others.dedup();
        Ok(Some(others))
    }
}
