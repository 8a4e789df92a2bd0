//! The input of the shell: gathers lines into statements and commands.
//!
//! A line that begins with a backslash, where no statement is open, is a command of the shell. All
//! other lines belong to statements, which end with a semicolon outside of strings, names, comments
//! and brackets: a line may end several statements, and a statement may take many lines.

use orrery_sql::{Inside, TransactionStatus, split};

/// Bytes of a statement that are gathered: SQL accepts none that is longer.
const GATHERED_BYTES_MAX: usize = orrery_sql::SQL_BYTES_MAX;

/// The lines typed and not run yet.
#[derive(Debug, Default)]
pub(super) struct Input {
    text: String,
    /// Whether the text began with a blank.
    is_private: bool,
}

/// A complete statement or command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// A statement, without its semicolon.
    Statement(String),
    /// A command, with its backslash.
    Command(String),
    /// The text exceeded the length of a statement, and was dropped.
    TooLong,
}

impl Input {
    /// Adds a line; returns the entries that are complete now.
    pub(super) fn line(&mut self, line: &str) -> Vec<Entry> {
        if self.text.is_empty() {
            self.is_private = line.starts_with(char::is_whitespace);
        }
        let command = line.trim();
        if command.starts_with('\\') && self.inside() == Inside::Nothing {
            self.text.clear();
            return vec![Entry::Command(command.to_owned())];
        }
        if self.text.len() + line.len() > GATHERED_BYTES_MAX {
            self.text.clear();
            return vec![Entry::TooLong];
        }
        self.text.push_str(line);
        self.text.push('\n');
        let found = split(&self.text);
        let whole = found.statements.into_iter();
        let whole = whole.map(|range| Entry::Statement(self.text[range].trim().to_owned()));
        let whole: Vec<Entry> = whole.collect();
        self.text = match found.inside {
            Inside::Nothing => String::new(),
            _ => self.text[found.rest].trim_start().to_owned(),
        };
        whole
    }

    /// Drops the text typed so far.
    pub(super) fn clear(&mut self) {
        self.text.clear();
    }

    /// Whether the last complete entries stay out of the history: their first line begins with a
    /// blank.
    pub(super) fn is_private(&self) -> bool {
        self.is_private
    }

    fn inside(&self) -> Inside {
        split(&self.text).inside
    }

    /// The prompt of the next line: the transaction's status, and what is open.
    pub(super) fn prompt(&self, status: TransactionStatus) -> String {
        let open = match self.inside() {
            Inside::Nothing => '=',
            Inside::Statement => '-',
            Inside::Brackets => '(',
            Inside::String => '\'',
            Inside::Name => '"',
            Inside::Comment => '*',
        };
        let transaction = match status {
            TransactionStatus::Idle => "",
            TransactionStatus::Open => "*",
            TransactionStatus::Failed => "!",
        };
        format!("orrery{open}{transaction}> ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(texts: &[&str]) -> Vec<Entry> {
        let texts = texts
            .iter()
            .map(|text| Entry::Statement((*text).to_owned()));
        texts.collect()
    }

    #[test]
    fn statements_end_with_their_semicolon_and_the_prompt_says_what_is_open() {
        let mut input = Input::default();
        let idle = TransactionStatus::Idle;
        assert_eq!(input.prompt(idle), "orrery=> ");
        assert_eq!(input.line("select 'a;"), []);
        assert_eq!(input.prompt(idle), "orrery'> ");
        assert_eq!(input.line("b', ("), []);
        assert_eq!(input.prompt(TransactionStatus::Open), "orrery(*> ");
        let whole = input.line("1); select 2; select");
        assert_eq!(whole, statements(&["select 'a;\nb', (\n1)", "select 2"]));
        assert_eq!(input.prompt(TransactionStatus::Failed), "orrery-!> ");
        input.clear();
        assert_eq!(input.prompt(idle), "orrery=> ");
        assert_eq!(input.line("-- nothing"), []);
        assert_eq!(input.prompt(idle), "orrery=> ");
        assert_eq!(input.line("/* a"), []);
        assert_eq!(input.prompt(idle), "orrery*> ");
    }

    #[test]
    fn what_begins_with_a_blank_is_private_up_to_its_end() {
        let mut input = Input::default();
        assert_eq!(
            input.line(" select 'secret';"),
            statements(&["select 'secret'"])
        );
        assert!(input.is_private());
        assert_eq!(input.line(" select 1, (  "), []);
        assert_eq!(input.line("2);"), statements(&["select 1, (  \n2)"]));
        assert!(input.is_private());
        assert_eq!(input.line("select 3,"), []);
        assert_eq!(input.line("  4;"), statements(&["select 3,\n  4"]));
        assert!(!input.is_private());
        input.line(" \\d t");
        assert!(input.is_private());
    }

    #[test]
    fn commands_stand_between_statements_alone() {
        let mut input = Input::default();
        assert_eq!(
            input.line("  \\d item "),
            [Entry::Command("\\d item".to_owned())]
        );
        assert_eq!(input.line("select '"), []);
        assert_eq!(input.line("\\q"), []);
        assert_eq!(input.line("';"), statements(&["select '\n\\q\n'"]));
    }
}
