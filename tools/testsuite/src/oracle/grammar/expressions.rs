//! Random expressions: all operators and functions, over all kinds of terms.
//!
//! A comparison by `<` stands over values that are no truth values: the reference does not order
//! booleans (SPARQL 1.1, 17.3 does). For calendar types beyond `xsd:dateTime`, which the
//! reference does not read, and numbers in odd form, whose form it forgets, see [`Kind`].

use super::{Grammar, Kind, NODES, Sort, Tree};

/// Functions of one argument that give a term.
const ONE: [&str; 36] = [
    "STR",
    "LANG",
    "DATATYPE",
    "IRI",
    "URI",
    "ABS",
    "CEIL",
    "FLOOR",
    "ROUND",
    "STRLEN",
    "UCASE",
    "LCASE",
    "ENCODE_FOR_URI",
    "YEAR",
    "MONTH",
    "DAY",
    "HOURS",
    "MINUTES",
    "SECONDS",
    "TIMEZONE",
    "TZ",
    "MD5",
    "SHA1",
    "SHA256",
    "SHA384",
    "SHA512",
    "xsd:integer",
    "xsd:decimal",
    "xsd:double",
    "xsd:float",
    "xsd:string",
    "xsd:dateTime",
    "SUBJECT",
    "PREDICATE",
    "OBJECT",
    "LANGDIR",
];
/// Functions of two arguments that give a term.
const TWO: [&str; 5] = ["STRBEFORE", "STRAFTER", "STRLANG", "CONCAT", "SUBSTR"];
/// Tests of one argument.
const TEST: [&str; 9] = [
    "isIRI",
    "isURI",
    "isBLANK",
    "isLITERAL",
    "isNUMERIC",
    "xsd:boolean",
    "isTRIPLE",
    "hasLANG",
    "hasLANGDIR",
];
/// Tests of two arguments.
const TEST_TWO: [&str; 6] = [
    "CONTAINS",
    "STRSTARTS",
    "STRENDS",
    "LANGMATCHES",
    "sameTerm",
    "REGEX",
];
const COMPARISONS: [&str; 6] = ["=", "!=", "<", "<=", ">", ">="];

impl Grammar<'_> {
    /// An expression that gives no truth value, unless a variable has one.
    pub(super) fn value(&mut self, depth: usize) -> Tree {
        if depth == 0 || self.random.chance(30) {
            return self.operand();
        }
        if self.kind == Kind::Odd {
            // What passes a term on (IF, COALESCE) or reads its form would tell them apart.
            return match self.random.below(3) {
                0 => self.operand(),
                _ => self.arithmetic(depth),
            };
        }
        let value = match self.random.below(16) {
            0..=3 => self.arithmetic(depth),
            4 => Tree::new(Sort::Value)
                .text("IF(")
                .child(self.truth(depth - 1, 0))
                .text(", ")
                .child(self.value(depth - 1))
                .text(", ")
                .child(self.value(depth - 1))
                .text(")"),
            5 => self.list("COALESCE(", depth),
            6..=10 => {
                let function = self.random.pick(&ONE);
                self.call(function, &[depth - 1])
            }
            11 | 12 => match self.random.pick(&TWO) {
                // The evaluator that is asked for comparison puts tags into lower case, and LANG()
                // would tell.
                "STRLANG" => Tree::new(Sort::Value)
                    .text("STRLANG(")
                    .child(self.value(depth - 1))
                    .text(", LCASE(")
                    .child(self.value(depth - 1))
                    .text("))"),
                function => self.call(function, &[depth - 1, depth - 1]),
            },
            13 => {
                let function = self.random.pick(&["SUBSTR", "TRIPLE"]);
                self.call(function, &[depth - 1, 0, 0])
            }
            14 => {
                let from = self.random.pick(&["a", "[ab]", "b+", "(a)(b)"]);
                let to = self.random.pick(&["", "Z", "$1", "long"]);
                Tree::new(Sort::Value)
                    .text("REPLACE(")
                    .child(self.value(depth - 1))
                    .text(format!(", \"{from}\", \"{to}\")"))
            }
            // Of datatypes that the reference knows, it forgets the form: `numbers` asks for those.
            15 if self.random.chance(50) => Tree::new(Sort::Value)
                .text("STRDT(")
                .child(self.value(depth - 1))
                .text(", :datatype)"),
            _ => self.something_new(),
        };
        self.of_calendar(value)
    }

    fn call(&mut self, function: &str, depths: &[usize]) -> Tree {
        let mut call = Tree::new(Sort::Value).text(format!("{function}("));
        for (at, depth) in depths.iter().enumerate() {
            if at > 0 {
                call = call.text(", ");
            }
            call = call.child(self.value(*depth));
        }
        call.text(")")
    }

    fn list(&mut self, start: &'static str, depth: usize) -> Tree {
        let mut list = Tree::new(Sort::Value)
            .text(start)
            .child(self.value(depth - 1));
        for _ in 0..self.random.below(3) {
            let more = Tree::new(Sort::Clause)
                .text(", ")
                .child(self.value(depth - 1));
            list = list.child(more.droppable());
        }
        list.text(")")
    }

    /// A variable or a constant.
    fn operand(&mut self) -> Tree {
        let text = match self.random.below(10) {
            0..=5 => self.variable().to_owned(),
            6 => "?k".to_owned(),
            _ => self.constant(),
        };
        Tree::leaf(Sort::Value, text)
    }

    fn arithmetic(&mut self, depth: usize) -> Tree {
        let value = Tree::new(Sort::Value);
        let value = match self.random.below(6) {
            // Only from a number: the difference of two dateTimes is a duration, which the
            // reference lacks.
            5 => value.text("(2 - ").child(self.value(depth - 1)).text(")"),
            0 => value.text("-").child(self.operand()),
            1 => {
                // No zero: what NaN is compared to, the reference finds equal.
                let divisor = self.random.pick(&["2", "0.5", "4e0", "-1"]);
                value
                    .text("(")
                    .child(self.value(depth - 1))
                    .text(format!(" / {divisor})"))
            }
            _ => {
                let operator = self.random.pick(&[" + ", " * "]);
                value
                    .text("(")
                    .child(self.value(depth - 1))
                    .text(operator)
                    .child(self.value(depth - 1))
                    .text(")")
            }
        };
        self.of_calendar(value)
    }

    /// Functions that give something new at each call, in forms that are always the same.
    fn something_new(&mut self) -> Tree {
        let text = self.random.pick(&[
            "STRLEN(STRUUID())",
            "DATATYPE(NOW())",
            "DATATYPE(RAND())",
            "BNODE()",
            "STRLEN(STR(UUID()))",
            "COALESCE()",
        ]);
        Tree::leaf(Sort::Value, text)
    }

    /// An expression that gives a truth value or an error, with `EXISTS` if groups may still nest.
    pub(super) fn truth(&mut self, depth: usize, groups: usize) -> Tree {
        if depth == 0 {
            return self.test();
        }
        let exists = if groups == 0 { 0 } else { 4 };
        let depth = depth - 1;
        let truth = Tree::new(Sort::Truth);
        match self.random.weighted(&[3, 2, 2, 8, exists, 1, 1]) {
            0 => self.two_truths(" || ", depth, groups),
            1 => self.two_truths(" && ", depth, groups),
            2 => truth.text("!(").child(self.truth(depth, groups)).text(")"),
            3 => self.test(),
            4 => self.exists(groups),
            5 => self.two_truths(" = ", depth, groups),
            _ => {
                // The value itself: its effective boolean value.
                let value = truth.text("(").child(self.value(depth)).text(")");
                self.of_calendar(value)
            }
        }
    }

    fn two_truths(&mut self, between: &'static str, depth: usize, groups: usize) -> Tree {
        Tree::new(Sort::Truth)
            .text("(")
            .child(self.truth(depth, groups))
            .text(between)
            .child(self.truth(depth, groups))
            .text(")")
    }

    fn exists(&mut self, groups: usize) -> Tree {
        let keyword = self.random.pick(&["EXISTS ", "NOT EXISTS "]);
        self.exists_depth += 1;
        let group = self.group(groups - 1);
        self.exists_depth -= 1;
        Tree::new(Sort::Truth).text(keyword).child(group)
    }

    fn test(&mut self) -> Tree {
        let truth = Tree::new(Sort::Truth);
        let test = match self.random.below(12) {
            0 | 1 => return truth.text(format!("bound({})", self.variable())),
            2..=6 => {
                let comparison = self.random.pick(&COMPARISONS);
                truth
                    .text("(")
                    .child(self.value(1))
                    .text(format!(" {comparison} "))
                    .child(self.value(1))
                    .text(")")
            }
            7 => {
                let not = self.random.pick(&["", "NOT "]);
                truth
                    .text("(")
                    .child(self.value(1))
                    .text(format!(" {not}IN "))
                    .child(self.list("(", 1))
                    .text(")")
            }
            8 | 9 => {
                let test = self.random.pick(&TEST);
                truth.child(self.call(test, &[1]))
            }
            10 if self.kind != Kind::Odd => {
                let test = self.random.pick(&TEST_TWO);
                truth.child(self.call(test, &[1, 1]))
            }
            11 if self.kind != Kind::Odd => {
                let pattern = self.random.pick(&["^a", "A", "b$", "a.*g", "[0-9]", ":a"]);
                let flags = self.random.pick(&["", "i", "s", "q"]);
                truth
                    .text("REGEX(STR(")
                    .child(self.value(1))
                    .text(format!("), \"{pattern}\", \"{flags}\")"))
            }
            _ => {
                let (a, b) = (self.variable(), self.random.pick(&NODES));
                return truth.text(format!("{a} = :{b}"));
            }
        };
        self.of_calendar(test)
    }

    /// The reference reads neither dates nor durations, and does not order booleans.
    pub(super) fn of_calendar(&self, tree: Tree) -> Tree {
        if self.kind == Kind::Calendar {
            return tree.ours_only();
        }
        tree
    }
}
