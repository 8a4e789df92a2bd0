//! The modules of one crate root: definitions, imports and used names.
//!
//! `mod name;` is followed to its file as the compiler does. What is behind `#[cfg(test)]` or
//! `#[test]` is left out, so a file that only tests declare is not read at all.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use syn::visit::Visit;

use crate::error::Error;
use crate::names::{self, CodePath, Import, NamesOfCode};

/// Where a module stands in [`SourceTree::modules`]; the root is 0.
pub(crate) type ModuleId = usize;

/// Where a file stands in [`SourceTree::files`].
pub(crate) type FileId = usize;

/// The modules of one root (`lib.rs`, `main.rs` or a file of `src/bin`).
#[derive(Debug, Default)]
pub(crate) struct SourceTree {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) modules: Vec<Module>,
    /// Macros by their names, which are known in the whole crate.
    pub(crate) macros: HashMap<String, FileId>,
}

/// A module, be it a file or a block within one.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) file: FileId,
    pub(crate) parent: Option<ModuleId>,
    pub(crate) children: HashMap<String, ModuleId>,
    pub(crate) definitions: HashSet<String>,
    pub(crate) imports: Vec<Import>,
    pub(crate) paths: Vec<CodePath>,
}

/// Reads a file's text; tests give texts from memory.
pub(crate) type ReadFile<'a> = &'a dyn Fn(&Path) -> std::io::Result<String>;

/// The modules below `root`.
pub(crate) fn read(root: &Path, read_file: ReadFile<'_>) -> Result<SourceTree, Error> {
    let mut reader = Reader {
        tree: SourceTree::default(),
        read_file,
    };
    let text = read_file(root).map_err(Error::at(root))?;
    let folder = root.parent().unwrap_or(Path::new("")).to_owned();
    reader.file(root, &text, None, &folder)?;
    Ok(reader.tree)
}

struct Reader<'a> {
    tree: SourceTree,
    read_file: ReadFile<'a>,
}

impl Reader<'_> {
    /// Reads one file whose child modules are in `folder`.
    fn file(
        &mut self,
        path: &Path,
        text: &str,
        parent: Option<ModuleId>,
        folder: &Path,
    ) -> Result<ModuleId, Error> {
        let file = self.tree.files.len();
        self.tree.files.push(path.to_owned());
        let syntax = syn::parse_file(text).map_err(|source| Error::Syntax {
            path: path.to_owned(),
            source,
        })?;
        self.module(file, parent, folder, &syntax.items)
    }

    fn module(
        &mut self,
        file: FileId,
        parent: Option<ModuleId>,
        folder: &Path,
        items: &[syn::Item],
    ) -> Result<ModuleId, Error> {
        let id = self.tree.modules.len();
        self.tree.modules.push(Module {
            file,
            parent,
            children: HashMap::new(),
            definitions: HashSet::new(),
            imports: Vec::new(),
            paths: Vec::new(),
        });
        let mut code = NamesOfCode::default();
        for item in items
            .iter()
            .filter(|item| !names::is_test(names::attributes(item)))
        {
            match item {
                syn::Item::Mod(child) => {
                    let name = names::text(&child.ident);
                    let child = self.child(child, &name, id, folder)?;
                    self.tree.modules[id].children.insert(name, child);
                }
                syn::Item::Macro(syn::ItemMacro {
                    ident: Some(name), ..
                }) => {
                    self.tree.macros.insert(names::text(name), file);
                    code.visit_item(item);
                }
                _ => {
                    if let Some(name) = names::definition(item) {
                        self.tree.modules[id].definitions.insert(names::text(name));
                    }
                    code.visit_item(item);
                }
            }
        }
        self.tree.modules[id].imports = code.imports;
        self.tree.modules[id].paths = code.paths;
        Ok(id)
    }

    fn child(
        &mut self,
        child: &syn::ItemMod,
        name: &str,
        parent: ModuleId,
        folder: &Path,
    ) -> Result<ModuleId, Error> {
        let below = folder.join(name);
        if let Some((_, items)) = &child.content {
            return self.module(self.tree.modules[parent].file, Some(parent), &below, items);
        }
        for path in [folder.join(format!("{name}.rs")), below.join("mod.rs")] {
            match (self.read_file)(&path) {
                Ok(text) => return self.file(&path, &text, Some(parent), &below),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::at(&path)(error)),
            }
        }
        let path = self.tree.files[self.tree.modules[parent].file].clone();
        Err(Error::MissingModule {
            path,
            module: name.to_owned(),
        })
    }
}
