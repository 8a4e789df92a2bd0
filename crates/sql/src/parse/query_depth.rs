//! A visitor of one query's expressions, without nested queries.

/// Methods of `VisitorMut` that keep `self.depth`: 0 in the query at hand, and one more in each
/// within it.
macro_rules! query_depth {
    () => {
        fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
            self.depth += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
            self.depth -= 1;
            ControlFlow::Continue(())
        }
    };
}

pub(crate) use query_depth;
