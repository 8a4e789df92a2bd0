//! An arena of byte strings in large chunks, so that a million short keys need no million
//! allocations.

/// Bytes of an ordinary chunk; a longer string gets a chunk of its own.
const CHUNK_BYTES: usize = 1 << 20;

/// Where a string stands in its [`Arena`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyRef {
    chunk: u32,
    offset: u32,
    length: u32,
}

/// Append-only storage of byte strings.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    chunks: Vec<Vec<u8>>,
    allocated_bytes: usize,
}

impl Arena {
    /// Copies a string in. Strings are far below 4 GiB: long literals stand here by their order
    /// keys, all else is a piece of one line or token; and budgets end before 2^32 chunks.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> KeyRef {
        let fits = self
            .chunks
            .last()
            .is_some_and(|chunk| chunk.capacity() - chunk.len() >= bytes.len());
        if !fits {
            let capacity = bytes.len().max(CHUNK_BYTES);
            self.chunks.push(Vec::with_capacity(capacity));
            self.allocated_bytes += capacity;
        }
        let chunk_number = self.chunks.len() - 1;
        let chunk = &mut self.chunks[chunk_number];
        let offset = chunk.len();
        chunk.extend_from_slice(bytes);
        KeyRef {
            chunk: chunk_number as u32,
            offset: offset as u32,
            length: bytes.len() as u32,
        }
    }

    /// The string that was pushed.
    #[inline]
    pub(crate) fn get(&self, key: KeyRef) -> &[u8] {
        let start = key.offset as usize;
        &self.chunks[key.chunk as usize][start..start + key.length as usize]
    }

    /// Bytes held from the allocator.
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.allocated_bytes
    }
}
