//! Walks over parsed statements, which are compiled once.
//!
//! `sqlparser`'s `visit` is generic over the visitor, and a walk has a function for each of some
//! 400 kinds of nodes: each visitor, and each closure of its `visit_expressions`, made a copy of
//! them all. Here every visitor is behind one type, so the program has two walks, one that reads
//! and one that changes. A call through a pointer for each node costs nothing beside the node's own
//! work.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut,
    Visitor, VisitorMut,
};

/// Lets a visitor see a node and all below it.
pub(crate) fn visit<N: Visit, V: Visitor>(node: &N, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut kept = Kept::new(visitor);
    match walk(node, &mut kept) {
        ControlFlow::Continue(()) => ControlFlow::Continue(()),
        ControlFlow::Break(()) => kept.end(),
    }
}

/// Lets a visitor see and change a node and all below it.
pub(crate) fn visit_mut<N: VisitMut, V: VisitorMut>(
    node: &mut N,
    visitor: &mut V,
) -> ControlFlow<V::Break> {
    let mut kept = Kept::new(visitor);
    match walk_mut(node, &mut kept) {
        ControlFlow::Continue(()) => ControlFlow::Continue(()),
        ControlFlow::Break(()) => kept.end(),
    }
}

/// Calls a closure with each expression, before those within it.
pub(crate) fn visit_expressions<N: Visit, B>(
    node: &N,
    mut see: impl FnMut(&Expr) -> ControlFlow<B>,
) -> ControlFlow<B> {
    visit(node, &mut Expressions(&mut see))
}

/// Calls a closure with each expression, after those within it.
pub(crate) fn visit_expressions_mut<N: VisitMut, B>(
    node: &mut N,
    mut change: impl FnMut(&mut Expr) -> ControlFlow<B>,
) -> ControlFlow<B> {
    visit_mut(node, &mut ExpressionsMut(&mut change))
}

/// Calls a closure with the name of each table.
pub(crate) fn visit_relations<N: Visit, B>(
    node: &N,
    mut see: impl FnMut(&ObjectName) -> ControlFlow<B>,
) -> ControlFlow<B> {
    visit(node, &mut Relations(&mut see))
}

/// Calls a closure with the name of each table, to change it.
pub(crate) fn visit_relations_mut<N: VisitMut, B>(
    node: &mut N,
    mut change: impl FnMut(&mut ObjectName) -> ControlFlow<B>,
) -> ControlFlow<B> {
    visit_mut(node, &mut RelationsMut(&mut change))
}

#[inline(never)]
fn walk<N: Visit>(node: &N, visitor: &mut dyn Visitor<Break = ()>) -> ControlFlow<()> {
    node.visit(&mut Any(visitor))
}

#[inline(never)]
fn walk_mut<N: VisitMut>(
    node: &mut N,
    visitor: &mut dyn VisitorMut<Break = ()>,
) -> ControlFlow<()> {
    node.visit(&mut AnyMut(visitor))
}

struct Expressions<'a, B>(&'a mut dyn FnMut(&Expr) -> ControlFlow<B>);
struct ExpressionsMut<'a, B>(&'a mut dyn FnMut(&mut Expr) -> ControlFlow<B>);
struct Relations<'a, B>(&'a mut dyn FnMut(&ObjectName) -> ControlFlow<B>);
struct RelationsMut<'a, B>(&'a mut dyn FnMut(&mut ObjectName) -> ControlFlow<B>);

impl<B> Visitor for Expressions<'_, B> {
    type Break = B;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<B> {
        self.0(expr)
    }
}

impl<B> VisitorMut for ExpressionsMut<'_, B> {
    type Break = B;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<B> {
        self.0(expr)
    }
}

impl<B> Visitor for Relations<'_, B> {
    type Break = B;

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<B> {
        self.0(name)
    }
}

impl<B> VisitorMut for RelationsMut<'_, B> {
    type Break = B;

    fn post_visit_relation(&mut self, name: &mut ObjectName) -> ControlFlow<B> {
        self.0(name)
    }
}

/// Any visitor, as the walk knows it.
struct Any<'a>(&'a mut dyn Visitor<Break = ()>);

/// Any visitor that changes what it sees.
struct AnyMut<'a>(&'a mut dyn VisitorMut<Break = ()>);

/// A visitor, and what it ended the walk with: the walk itself carries nothing.
struct Kept<'a, V, B> {
    visitor: &'a mut V,
    broken_with: Option<B>,
}

impl<'a, V, B> Kept<'a, V, B> {
    fn new(visitor: &'a mut V) -> Self {
        Self {
            visitor,
            broken_with: None,
        }
    }

    fn keep(&mut self, flow: ControlFlow<B>) -> ControlFlow<()> {
        match flow {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(value) => {
                self.broken_with = Some(value);
                ControlFlow::Break(())
            }
        }
    }

    /// After a walk that was broken off.
    fn end(self) -> ControlFlow<B> {
        match self.broken_with {
            Some(value) => ControlFlow::Break(value),
            None => ControlFlow::Continue(()),
        }
    }
}

/// All that `sqlparser` calls a visitor with, passed on.
macro_rules! pass_on {
    ($($hook:ident $node:ty;)*) => {
        impl Visitor for Any<'_> {
            type Break = ();

            $(fn $hook(&mut self, node: &$node) -> ControlFlow<()> {
                self.0.$hook(node)
            })*
        }

        impl VisitorMut for AnyMut<'_> {
            type Break = ();

            $(fn $hook(&mut self, node: &mut $node) -> ControlFlow<()> {
                self.0.$hook(node)
            })*
        }

        impl<V: Visitor> Visitor for Kept<'_, V, <V as Visitor>::Break> {
            type Break = ();

            $(fn $hook(&mut self, node: &$node) -> ControlFlow<()> {
                let flow = self.visitor.$hook(node);
                self.keep(flow)
            })*
        }

        impl<V: VisitorMut> VisitorMut for Kept<'_, V, <V as VisitorMut>::Break> {
            type Break = ();

            $(fn $hook(&mut self, node: &mut $node) -> ControlFlow<()> {
                let flow = self.visitor.$hook(node);
                self.keep(flow)
            })*
        }
    };
}

pass_on! {
    pre_visit_query Query;
    post_visit_query Query;
    pre_visit_select Select;
    post_visit_select Select;
    pre_visit_relation ObjectName;
    post_visit_relation ObjectName;
    pre_visit_table_factor TableFactor;
    post_visit_table_factor TableFactor;
    pre_visit_expr Expr;
    post_visit_expr Expr;
    pre_visit_statement Statement;
    post_visit_statement Statement;
    pre_visit_value ValueWithSpan;
    post_visit_value ValueWithSpan;
}
