//! The replicated state: objects by path, and sessions that deduplicate commands.
//!
//! Every node applies the same commands in the same order, so nothing here may depend on the node,
//! its clock or its disk. Times come with the commands. Bytes of large objects are elsewhere
//! ([`crate::files`]); the state knows their files, and tells which of them nobody needs any more.

pub(crate) mod machine;

use std::collections::{BTreeMap, BTreeSet};

use openraft::EntryPayload;
use serde::{Deserialize, Serialize};

use crate::types::{
    Answer, Command, Content, Entry, File, LogId, Mode, NodeId, Request, StoredMembership,
};

/// How many sessions are remembered; the one that was used longest ago goes for a new one.
const SESSIONS_MAX: usize = 1_024;
/// A command's number is less than this above the lowest that waits for its answer.
pub(crate) const WINDOW: u64 = 4_096;

/// An object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Object {
    /// Its bytes, or their file.
    pub content: Content,
    /// Its tag: no two puts have the same.
    pub tag: u64,
    /// When it was put, by the leader's clock; never before an earlier put.
    pub modified_us: u64,
}

/// A session: commands that have their answers, from the lowest on that its client may send again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Session {
    /// Counts up over all sessions.
    used: u64,
    floor: u64,
    answers: BTreeMap<u64, Answer>,
}

/// A file, and how many objects have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileUse {
    file: File,
    objects: u64,
}

/// The state of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    /// The entry that was applied last.
    pub applied: Option<LogId>,
    /// Who votes and who learns.
    pub membership: StoredMembership,
    /// By path.
    pub objects: BTreeMap<String, Object>,
    files: BTreeMap<String, FileUse>,
    sessions: BTreeMap<u64, Session>,
    /// The last tag, or number of a session, that was given.
    last_number: u64,
    uses: u64,
    modified_us: u64,
}

/// What applying leaves to do with files on this node.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    /// Nobody needs these any more.
    pub dropped: Vec<String>,
    /// These have come in.
    pub added: bool,
}

impl State {
    /// Applies an entry.
    pub(crate) fn apply(&mut self, entry: Entry, effects: &mut Effects) -> Vec<Answer> {
        let log_id = entry.log_id;
        self.applied = Some(log_id);
        match entry.payload {
            EntryPayload::Blank => Vec::new(),
            EntryPayload::Membership(membership) => {
                self.membership = StoredMembership::new(Some(log_id), membership);
                Vec::new()
            }
            EntryPayload::Normal(batch) => {
                self.modified_us = self.modified_us.max(batch.now_us);
                batch
                    .commands
                    .into_iter()
                    .map(|request| self.answer(request, effects))
                    .collect()
            }
        }
    }

    /// Does a command, or finds the answer that it had.
    fn answer(&mut self, request: Request, effects: &mut Effects) -> Answer {
        let Request {
            session,
            number,
            floor,
            command,
        } = request;
        if command == Command::Open {
            return self.open_session();
        }
        self.uses += 1;
        let uses = self.uses;
        // Nobody knows whether it was done before. Its file stays: it may be in use, and may be put
        // again.
        let Some(found) = self.sessions.get_mut(&session) else {
            return Answer::Forgotten;
        };
        found.used = uses;
        if floor > found.floor {
            found.floor = floor;
            found.answers = found.answers.split_off(&floor);
        }
        if let Some(answer) = found.answers.get(&number) {
            return answer.clone();
        }
        if number < found.floor || number - found.floor >= WINDOW {
            // It had its answer once, and this is a copy that came late. Its file belongs to what
            // it did then.
            return Answer::Forgotten;
        }
        let answer = self.execute(command, effects);
        if let Some(found) = self.sessions.get_mut(&session) {
            found.answers.insert(number, answer.clone());
        }
        answer
    }

    fn open_session(&mut self) -> Answer {
        if self.sessions.len() >= SESSIONS_MAX
            && let Some(oldest) = self
                .sessions
                .iter()
                .min_by_key(|(_, session)| session.used)
                .map(|(&number, _)| number)
        {
            self.sessions.remove(&oldest);
        }
        self.uses += 1;
        self.last_number += 1;
        self.sessions.insert(
            self.last_number,
            Session {
                used: self.uses,
                ..Session::default()
            },
        );
        Answer::Opened(self.last_number)
    }

    fn execute(&mut self, command: Command, effects: &mut Effects) -> Answer {
        match command {
            Command::Open => self.open_session(),
            Command::Put {
                path,
                mode,
                content,
            } => self.put(path, mode, content, effects),
            Command::Delete { paths } => {
                for path in paths {
                    if let Some(object) = self.objects.remove(&path) {
                        self.release(object.content, effects);
                    }
                }
                Answer::Deleted
            }
            Command::Copy { from, to, create } => {
                let Some(object) = self.objects.get(&from) else {
                    return Answer::NotFound;
                };
                if create && self.objects.contains_key(&to) {
                    return Answer::AlreadyExists;
                }
                let content = object.content.clone();
                self.insert(to, content, effects)
            }
        }
    }

    fn put(&mut self, path: String, mode: Mode, content: Content, effects: &mut Effects) -> Answer {
        let refused = match (mode, self.objects.get(&path)) {
            (Mode::Create, Some(_)) => Some(Answer::AlreadyExists),
            (Mode::Update(tag), found) if found.is_none_or(|object| object.tag != tag) => {
                Some(Answer::Precondition)
            }
            _ => match &content {
                Content::File(file) if !self.has_majority(&file.copies) => {
                    Some(Answer::TooFewCopies)
                }
                _ => None,
            },
        };
        if let Some(answer) = refused {
            // Too few copies become more, and then the same file is put again.
            if let Content::File(file) = content
                && answer != Answer::TooFewCopies
            {
                self.drop_unless_used(file.id, effects);
            }
            return answer;
        }
        self.insert(path, content, effects)
    }

    fn insert(&mut self, path: String, content: Content, effects: &mut Effects) -> Answer {
        if let Content::File(file) = &content {
            let found = self
                .files
                .entry(file.id.clone())
                .or_insert_with(|| FileUse {
                    file: file.clone(),
                    objects: 0,
                });
            found.objects += 1;
            effects.added = true;
        }
        self.last_number += 1;
        let object = Object {
            content,
            tag: self.last_number,
            modified_us: self.modified_us,
        };
        if let Some(before) = self.objects.insert(path, object) {
            self.release(before.content, effects);
        }
        Answer::Put(self.last_number)
    }

    /// An object is gone; so is its file, if no other object has it.
    fn release(&mut self, content: Content, effects: &mut Effects) {
        let Content::File(file) = content else { return };
        if let Some(found) = self.files.get_mut(&file.id) {
            found.objects -= 1;
            if found.objects == 0 {
                self.files.remove(&file.id);
                effects.dropped.push(file.id);
            }
        }
    }

    fn drop_unless_used(&self, file: String, effects: &mut Effects) {
        if !self.files.contains_key(&file) {
            effects.dropped.push(file);
        }
    }

    /// Whether these nodes are a majority of those that vote, and of both sets while these change.
    fn has_majority(&self, nodes: &BTreeSet<NodeId>) -> bool {
        let configurations = self.membership.membership().get_joint_config();
        !configurations.is_empty()
            && configurations
                .iter()
                .all(|voters| voters.intersection(nodes).count() * 2 > voters.len())
    }

    /// The files of all objects.
    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.values().map(|found| &found.file)
    }

    /// A file that an object has.
    pub(crate) fn file(&self, id: &str) -> Option<&File> {
        self.files.get(id).map(|found| &found.file)
    }
}

#[cfg(test)]
mod tests;
