//! The resolution of a path to the file that defines it, through imports, re-exports and globs.

use std::collections::HashSet;

use crate::source::{FileId, ModuleId, SourceTree};

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    /// A module, which is no arrow by itself.
    Module(ModuleId),
    /// An item, by the file that defines it.
    Item(FileId, String),
    /// Something of another crate, by the first word of its path.
    Crate(String),
}

/// Names on the way, so that imports that lead to each other come to an end.
type Followed = HashSet<(ModuleId, String)>;

impl SourceTree {
    /// What a path in the code of `module` may mean: a module and a function may have one name.
    pub(crate) fn resolve(&self, module: ModuleId, path: &[String]) -> Vec<Target> {
        self.follow(module, path, &mut Followed::new())
    }

    fn follow(&self, module: ModuleId, path: &[String], followed: &mut Followed) -> Vec<Target> {
        let Some((first, mut rest)) = path.split_first() else {
            return Vec::new();
        };
        let mut targets = match first.as_str() {
            "crate" => vec![Target::Module(0)],
            "self" => vec![Target::Module(module)],
            "super" => self.modules[module]
                .parent
                .map(Target::Module)
                .into_iter()
                .collect(),
            "" => {
                let name = rest.first().cloned().unwrap_or_default();
                return vec![Target::Crate(name)];
            }
            name => {
                let found = self.named(module, name, followed);
                if found.is_empty() {
                    vec![Target::Crate(name.to_owned())]
                } else {
                    found
                }
            }
        };
        while let Some((next, after)) = rest.split_first() {
            targets = targets
                .into_iter()
                .flat_map(|target| self.step(target, next, followed))
                .collect();
            rest = after;
        }
        targets
    }

    /// One word further: into a module; what belongs to an item (a variant, a method) is in the
    /// item's file.
    fn step(&self, target: Target, name: &str, followed: &mut Followed) -> Vec<Target> {
        let Target::Module(module) = target else {
            return vec![target];
        };
        if name == "super" {
            return self.modules[module]
                .parent
                .map(Target::Module)
                .into_iter()
                .collect();
        }
        let found = self.named(module, name, followed);
        if found.is_empty() && !followed.contains(&(module, name.to_owned())) {
            // Nothing visible defines it, so a macro that is called there does.
            return vec![Target::Item(self.modules[module].file, name.to_owned())];
        }
        found
    }

    /// What a single word means in a module.
    fn named(&self, module: ModuleId, name: &str, followed: &mut Followed) -> Vec<Target> {
        if !followed.insert((module, name.to_owned())) {
            return Vec::new();
        }
        let here = &self.modules[module];
        let mut targets = Vec::new();
        if here.definitions.contains(name) {
            targets.push(Target::Item(here.file, name.to_owned()));
        }
        targets.extend(here.children.get(name).map(|child| Target::Module(*child)));
        for import in here
            .imports
            .iter()
            .filter(|import| import.name.as_deref() == Some(name))
        {
            targets.extend(self.follow(module, &import.path, followed));
        }
        if targets.is_empty() {
            for import in here.imports.iter().filter(|import| import.name.is_none()) {
                for target in self.follow(module, &import.path, followed) {
                    if let Target::Module(other) = target {
                        targets.extend(self.named(other, name, followed));
                    }
                }
            }
        }
        followed.remove(&(module, name.to_owned()));
        targets
    }
}
