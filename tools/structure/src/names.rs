//! The names that a module's code uses: imports, and paths in types, expressions, patterns and
//! macros.
//!
//! A macro's arguments are read as words: `a::b` is a path wherever it stands. A single word that a
//! pattern of the same function binds is a variable, and no path.

use std::collections::HashSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// One name of a `use`, also of one within a function.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    /// What it is called here; none for `*`.
    pub(crate) name: Option<String>,
    /// Whether it hands the name on (`pub use`): then it is an arrow only if the code here uses the
    /// name too.
    pub(crate) is_handed_on: bool,
}

/// A path as it stands in the code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CodePath {
    pub(crate) segments: Vec<String>,
    pub(crate) is_macro: bool,
}

/// Gathers what one item, or several, name.
#[derive(Debug, Default)]
pub(crate) struct NamesOfCode {
    pub(crate) imports: Vec<Import>,
    pub(crate) paths: Vec<CodePath>,
    /// Variables of the functions around.
    variables: Vec<HashSet<String>>,
}

/// An identifier without `r#`.
pub(crate) fn text(ident: &proc_macro2::Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map(str::to_owned).unwrap_or(text)
}

/// Whether only tests see what these attributes stand before.
pub(crate) fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        if attribute.path().is_ident("test") {
            return true;
        }
        let syn::Meta::List(list) = &attribute.meta else {
            return false;
        };
        attribute.path().is_ident("cfg") && wants_test(list.tokens.clone())
    })
}

/// `test`, `all(test, ...)`.
fn wants_test(condition: TokenStream) -> bool {
    let mut is_all = false;
    condition.into_iter().any(|token| match token {
        TokenTree::Ident(word) => {
            is_all = word == "all";
            word == "test"
        }
        TokenTree::Group(group) => is_all && wants_test(group.stream()),
        _ => false,
    })
}

/// The attributes of an item.
pub(crate) fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    use syn::Item;
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The name that an item defines in its module.
pub(crate) fn definition(item: &syn::Item) -> Option<&proc_macro2::Ident> {
    use syn::Item;
    match item {
        Item::Const(item) => Some(&item.ident),
        Item::Enum(item) => Some(&item.ident),
        Item::Fn(item) => Some(&item.sig.ident),
        Item::Static(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::TraitAlias(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        Item::Union(item) => Some(&item.ident),
        _ => None,
    }
}

impl NamesOfCode {
    fn path(&mut self, segments: Vec<String>, is_macro: bool) {
        if let [name] = segments.as_slice() {
            let is_variable = self
                .variables
                .iter()
                .any(|variables| variables.contains(name));
            if name == "Self" || (is_variable && !is_macro) {
                return;
            }
        }
        self.paths.push(CodePath { segments, is_macro });
    }

    /// The imports of a `use`, below the path that was read so far.
    fn imports(&mut self, tree: &syn::UseTree, path: &mut Vec<String>, is_handed_on: bool) {
        match tree {
            syn::UseTree::Path(step) => {
                path.push(text(&step.ident));
                self.imports(&step.tree, path, is_handed_on);
                path.pop();
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.imports(tree, path, is_handed_on);
                }
            }
            syn::UseTree::Glob(_) => self.imports.push(Import {
                path: path.clone(),
                name: None,
                is_handed_on,
            }),
            syn::UseTree::Name(syn::UseName { ident }) => {
                self.import(path, text(ident), text(ident), is_handed_on)
            }
            syn::UseTree::Rename(syn::UseRename { ident, rename, .. }) => {
                self.import(path, text(ident), text(rename), is_handed_on);
            }
        }
    }

    fn import(&mut self, path: &[String], last: String, name: String, is_handed_on: bool) {
        let mut whole = path.to_vec();
        let is_module_itself = last == "self" && !whole.is_empty();
        let name = if is_module_itself && name == "self" {
            path[path.len() - 1].clone()
        } else {
            name
        };
        if !is_module_itself {
            whole.push(last);
        }
        self.imports.push(Import {
            path: whole,
            name: Some(name),
            is_handed_on,
        });
    }

    /// The paths among the words of a macro's arguments.
    fn words(&mut self, stream: TokenStream) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => {
                    self.words(group.stream());
                    at += 1;
                }
                TokenTree::Ident(first) => {
                    let start = at;
                    let mut segments = vec![text(first)];
                    at += 1;
                    while is_colons(&tokens, at) {
                        let Some(TokenTree::Ident(next)) = tokens.get(at + 2) else {
                            break;
                        };
                        segments.push(text(next));
                        at += 3;
                    }
                    let is_macro =
                        is_punct(tokens.get(at), '!') && !is_punct(tokens.get(at + 1), '=');
                    let is_label = segments.len() == 1
                        && is_punct(tokens.get(at), ':')
                        && !is_colons(&tokens, at);
                    if !is_label && !is_no_path_after(&tokens[..start], &segments[0]) {
                        self.path(segments, is_macro);
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => at += 1,
            }
        }
    }
}

fn is_punct(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')
}

/// Whether a word after these tokens is a field, a method, a lifetime, a parameter of the macro, or
/// a new name.
fn is_no_path_after(before: &[TokenTree], word: &str) -> bool {
    match before.last() {
        Some(TokenTree::Punct(punct)) => match punct.as_char() {
            '.' => !is_punct(before.get(before.len().wrapping_sub(2)), '.'),
            '$' => word != "crate",
            '\'' => true,
            _ => false,
        },
        Some(TokenTree::Ident(keyword)) => [
            "fn", "let", "mod", "struct", "enum", "trait", "type", "const", "static",
        ]
        .iter()
        .any(|word| keyword == word),
        _ => false,
    }
}

/// The variables that the patterns of a function bind.
#[derive(Default)]
struct Variables(HashSet<String>);

impl<'ast> Visit<'ast> for Variables {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        let name = text(&pattern.ident);
        if name.starts_with(|first: char| first.is_lowercase() || first == '_') {
            self.0.insert(name);
        }
        visit::visit_pat_ident(self, pattern);
    }
}

impl<'ast> Visit<'ast> for NamesOfCode {
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_handed_on = !matches!(item.vis, syn::Visibility::Inherited);
        let mut path = if item.leading_colon.is_some() {
            vec![String::new()]
        } else {
            Vec::new()
        };
        self.imports(&item.tree, &mut path, is_handed_on);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let mut variables = Variables::default();
        variables.visit_item_fn(item);
        self.variables.push(variables.0);
        visit::visit_item_fn(self, item);
        self.variables.pop();
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if is_test(&item.attrs) {
            return;
        }
        let mut variables = Variables::default();
        variables.visit_impl_item_fn(item);
        self.variables.push(variables.0);
        visit::visit_impl_item_fn(self, item);
        self.variables.pop();
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        let mut variables = Variables::default();
        variables.visit_trait_item_fn(item);
        self.variables.push(variables.0);
        visit::visit_trait_item_fn(self, item);
        self.variables.pop();
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let mut segments: Vec<String> = path
            .segments
            .iter()
            .map(|segment| text(&segment.ident))
            .collect();
        if path.leading_colon.is_some() {
            segments.insert(0, String::new());
        }
        self.path(segments, false);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.path(
            call.path
                .segments
                .iter()
                .map(|segment| text(&segment.ident))
                .collect(),
            true,
        );
        self.words(call.tokens.clone());
    }
}
