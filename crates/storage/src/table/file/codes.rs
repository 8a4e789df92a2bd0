//! The translation of dictionary codes of a group to codes of the file.

/// Per group its distinct values as codes of the file, ascending.
#[derive(Debug, Default)]
pub(super) struct GroupCodes {
    codes: Vec<u32>,
    ends: Vec<usize>,
}

impl GroupCodes {
    pub(super) fn push(&mut self, codes: impl Iterator<Item = u32>) {
        self.codes.extend(codes);
        self.ends.push(self.codes.len());
    }

    /// Those of a group; none beyond the last.
    pub(super) fn group(&self, group: usize) -> &[u32] {
        let start = match group {
            0 => Some(0),
            _ => self.ends.get(group - 1).copied(),
        };
        match (start, self.ends.get(group)) {
            (Some(start), Some(&end)) => &self.codes[start..end],
            _ => &[],
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.codes.capacity() * size_of::<u32>() + self.ends.capacity() * size_of::<usize>()
    }
}
