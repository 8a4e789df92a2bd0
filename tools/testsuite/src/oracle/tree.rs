//! A query as a syntax tree, for the shrinker.
//!
//! A node is text with subtrees in it. It knows its [`Sort`]: a subtree of the same sort may take
//! its place. What may go without being replaced is marked as droppable. Whether a smaller tree is
//! still a query, the parser says.

use std::borrow::Cow;

/// What a subtree is in the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// A whole query.
    Query,
    /// A modifier, a projected variable: something that has no substitute.
    Clause,
    /// `{ ... }`
    Group,
    /// What stands in a group.
    Element,
    /// An expression that gives a term.
    Value,
    /// An expression that gives a truth value.
    Truth,
    /// A property path.
    Path,
}

#[derive(Clone, Debug)]
enum Part {
    Text(Cow<'static, str>),
    Child(Tree),
}

/// A part of a query.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    sort: Sort,
    parts: Vec<Part>,
    is_droppable: bool,
    is_ours_only: bool,
}

impl Tree {
    pub(crate) fn new(sort: Sort) -> Self {
        Self {
            sort,
            parts: Vec::new(),
            is_droppable: false,
            is_ours_only: false,
        }
    }

    /// A node of text only.
    pub(crate) fn leaf(sort: Sort, text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(sort).text(text)
    }

    /// Appends text.
    pub(crate) fn text(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.parts.push(Part::Text(text.into()));
        self
    }

    /// Appends a subtree.
    pub(crate) fn child(mut self, child: Self) -> Self {
        self.parts.push(Part::Child(child));
        self
    }

    /// Its parent may do without it.
    pub(crate) fn droppable(mut self) -> Self {
        self.is_droppable = true;
        self
    }

    /// The reference does not answer this as the specification has it, or as we chose to where
    /// that is silent: such a query is compared among our own plans.
    pub(crate) fn ours_only(mut self) -> Self {
        self.is_ours_only = true;
        self
    }

    /// Whether a part is only compared among our own plans.
    pub(crate) fn has_ours_only(&self) -> bool {
        self.is_ours_only || self.children().any(|(_, child)| child.has_ours_only())
    }

    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) {
        for part in &self.parts {
            match part {
                Part::Text(own) => text.push_str(own),
                Part::Child(child) => child.write(text),
            }
        }
    }

    fn children(&self) -> impl Iterator<Item = (usize, &Self)> {
        self.parts
            .iter()
            .enumerate()
            .filter_map(|(at, part)| match part {
                Part::Child(child) => Some((at, child)),
                Part::Text(_) => None,
            })
    }

    /// The trees that are one step smaller, large steps first.
    pub(crate) fn smaller(&self) -> Vec<Self> {
        let mut smaller = Vec::new();
        self.drop_children(&mut smaller);
        self.replace_by_descendants(&mut smaller);
        if let Some(simplest) = self.simplest() {
            smaller.push(simplest);
        }
        for (at, child) in self.children() {
            for replacement in child.smaller() {
                smaller.push(self.with(at, Some(replacement)));
            }
        }
        smaller
    }

    fn drop_children(&self, smaller: &mut Vec<Self>) {
        for (at, child) in self.children() {
            if child.is_droppable {
                smaller.push(self.with(at, None));
            }
        }
    }

    fn replace_by_descendants(&self, smaller: &mut Vec<Self>) {
        let mut open: Vec<&Self> = self.children().map(|(_, child)| child).collect();
        while let Some(next) = open.pop() {
            if next.sort == self.sort && self.sort != Sort::Clause {
                let mut replacement = next.clone();
                replacement.is_droppable = self.is_droppable;
                smaller.push(replacement);
            }
            open.extend(next.children().map(|(_, child)| child));
        }
    }

    /// What any expression or path can be replaced by.
    fn simplest(&self) -> Option<Self> {
        let text = match self.sort {
            Sort::Value => "1",
            Sort::Truth => "true",
            Sort::Path => ":p",
            Sort::Query | Sort::Clause | Sort::Group | Sort::Element => return None,
        };
        // As long as it is longer, so that shrinking ends.
        (self.to_text().len() > text.len()).then(|| Self::leaf(self.sort, text))
    }

    fn with(&self, at: usize, child: Option<Self>) -> Self {
        let mut tree = self.clone();
        match child {
            Some(child) => tree.parts[at] = Part::Child(child),
            None => drop(tree.parts.remove(at)),
        }
        tree
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &'static str) -> Tree {
        Tree::leaf(Sort::Element, text).droppable()
    }

    #[test]
    fn a_tree_shrinks_to_each_of_its_parts() {
        let inner = Tree::new(Sort::Group)
            .text("{ ")
            .child(pattern("?b "))
            .text("}");
        let nested = Tree::new(Sort::Element)
            .text("OPTIONAL ")
            .child(inner)
            .droppable();
        let group = Tree::new(Sort::Group)
            .text("{ ")
            .child(pattern("?a "))
            .child(nested)
            .text("}");
        assert_eq!(group.to_text(), "{ ?a OPTIONAL { ?b }}");
        let smaller: Vec<String> = group.smaller().iter().map(Tree::to_text).collect();
        assert!(smaller.contains(&"{ ?a }".to_owned()), "{smaller:?}");
        assert!(smaller.contains(&"{ ?b }".to_owned()), "{smaller:?}");
        assert!(smaller.contains(&"{ ?a ?b }".to_owned()), "{smaller:?}");
        assert!(
            smaller.contains(&"{ ?a OPTIONAL { }}".to_owned()),
            "{smaller:?}"
        );
    }

    #[test]
    fn expressions_end_at_the_simplest() {
        let truth = Tree::leaf(Sort::Truth, "bound(?x)");
        assert_eq!(truth.smaller()[0].to_text(), "true");
        assert!(truth.smaller()[0].smaller().is_empty());
    }
}
