//! Random property paths of every kind.

use super::{Grammar, LINKS, Sort, Tree, VALUES};

impl Grammar<'_> {
    pub(super) fn path_pattern(&mut self) -> Tree {
        if !self.takes(2) {
            return self.values();
        }
        let (subject, object) = (self.subject(), self.object());
        let path = self.path(3);
        Tree::new(Sort::Element)
            .text(format!("{subject} "))
            .child(path)
            .text(format!(" {object} . "))
            .droppable()
    }

    fn path(&mut self, depth: usize) -> Tree {
        let path = Tree::new(Sort::Path);
        if depth == 0 {
            return path.text(self.step());
        }
        match self.random.below(10) {
            0 | 1 => path.text(self.step()),
            2 => path.text("(").child(self.path(depth - 1)).text(")*"),
            3 => path.text("(").child(self.path(depth - 1)).text(")+"),
            4 => path.text("(").child(self.path(depth - 1)).text(")?"),
            5 => path.text("^(").child(self.path(depth - 1)).text(")"),
            6 => path.text(self.negated_set()),
            7 | 8 => self.two_paths("/", depth),
            _ => self.two_paths("|", depth),
        }
    }

    fn two_paths(&mut self, between: &'static str, depth: usize) -> Tree {
        Tree::new(Sort::Path)
            .text("(")
            .child(self.path(depth - 1))
            .text(between)
            .child(self.path(depth - 1))
            .text(")")
    }

    fn step(&mut self) -> String {
        let predicate = if self.random.chance(85) {
            self.random.pick(&LINKS)
        } else {
            self.random.pick(&VALUES)
        };
        format!(":{predicate}")
    }

    fn negated_set(&mut self) -> String {
        let (a, b) = (self.step(), self.step());
        match self.random.below(4) {
            0 => format!("!{a}"),
            1 => format!("!^{a}"),
            2 => format!("!({a}|^{b})"),
            _ => format!("!({a}|{b})"),
        }
    }
}
