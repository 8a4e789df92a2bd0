//! The full-text index of literals, as part of the database.
//!
//! ```text
//! MANIFEST    text: the rules          which predicates, classes, graphs and languages; without rules there is no
//!                                      index, and nothing here costs anything
//!             base: text: ...          the index of the base's literals, and the rules that it was made by
//! DIR/text-000007/text.index           written with the base by load and compaction, or by itself (`change`); never changed
//! memory                               literals that commits brought since (`recent`), taken up when a search first reads their state
//! ```
//!
//! A document is a literal: its number is the bits of its id. The index says which literals match,
//! and nothing of the quads: whoever searches joins what is found with the quads of the state that
//! they read. So deletions, graphs, old states and what somebody may not see need nothing here; a
//! literal that stands in no quad of the state gives no solution. What has to be right is that
//! every literal of a state that the rules select is found: of the base by its file, of the changes
//! since by `recent`, which looks at every quad that was inserted.
//!
//! Scores are computed with the figures of the base alone ([`orrery_full_text::Figures`]): so the
//! same state gives the same scores whatever was asked before, and a commit changes none. Who does
//! not see all graphs gets scores without figures, for these tell of hidden literals.
//!
//! The file is a block file of the kind `TEXT`:
//!
//! ```text
//! blocks      the files of the first part, each from a block of its own on in pieces of 64 KiB; those of the second part; ...
//! metadata    JSON: for each part its numbers of documents, and name, first block and length of each file
//! ```
//!
//! Cost: while it is written, the memory that is given and a pass over OSPG; a search maps the file
//! and checks each block once.

mod build;
mod change;
mod file;
mod reader;
mod recent;
mod report;
mod rules;
mod selection;
mod stored_file;
mod verify;

pub use reader::TextReader;
pub use recent::{RecentTexts, TextMemory};
pub use report::TextReport;
pub use rules::{TextEntry, TextRules};

pub(crate) use build::{TEXT_MEMORY_BYTES, TEXT_PREFIX, write_texts};
pub(crate) use file::TextFile;
pub(crate) use verify::verify_text_files;
