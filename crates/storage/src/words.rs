//! Texts shared by the messages of several crates: byte counts with units, reasons of system
//! errors.

use std::fmt;
use std::io;
use std::path::Path;

/// A number of bytes for people, with a unit that counts in powers of 1,024.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteCount(pub u64);

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < units.len() {
            value /= 1024.0;
            unit += 1;
        }
        let unit = units[unit];
        if value.fract() == 0.0 {
            write!(f, "{value} {unit}")
        } else {
            write!(f, "{value:.1} {unit}")
        }
    }
}

/// The reason of a system error in plain words, and the remedy where it is known.
pub fn reason(error: &io::Error) -> String {
    if error.raw_os_error().is_none() {
        return without_numbers(&error.to_string());
    }
    let known = match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory; check the path",
        io::ErrorKind::PermissionDenied => "permission denied; run as a user who may use it",
        io::ErrorKind::IsADirectory => "it is a directory; name a file",
        io::ErrorKind::NotADirectory => {
            "a part of the path is a file, not a directory; check the path"
        }
        io::ErrorKind::AlreadyExists => "it is there already; name another",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "no space left on the disk; free some and try again"
        }
        io::ErrorKind::AddrInUse => "another program listens there already",
        io::ErrorKind::AddrNotAvailable => "this machine has no such address",
        _ => return without_numbers(&error.to_string()),
    };
    known.to_owned()
}

/// The kind of place a path is in, for messages: paths in stores begin with an address.
pub fn storage_place(path: &Path) -> &'static str {
    let path = path.to_string_lossy();
    match path.split_once("://") {
        Some(("cluster", _)) => "the cluster's nodes",
        Some(_) => "the object store",
        None => "the disk",
    }
}

/// Removes the numbers of system errors from a message.
pub fn without_numbers(message: &str) -> String {
    const BEGIN: &str = " (os error ";
    let mut rest = message;
    let mut words = String::with_capacity(message.len());
    while let Some((before, number)) = rest.split_once(BEGIN) {
        words.push_str(before);
        match number.split_once(')') {
            Some((digits, after)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                rest = after
            }
            _ => {
                words.push_str(BEGIN);
                rest = number;
            }
        }
    }
    words.push_str(rest);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_a_unit() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1000 B"),
            (1500, "1.5 KiB"),
            (64 << 20, "64 MiB"),
            (3 << 29, "1.5 GiB"),
            (u64::MAX, "16 EiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(ByteCount(bytes).to_string(), text);
        }
    }

    #[test]
    fn a_bucket_is_no_disk() {
        let of = |path: &str| storage_place(Path::new(path));
        assert_eq!(of("/var/db/log/000001.log"), "the disk");
        assert_eq!(of("s3://bucket/db/log/000001.log"), "the object store");
        assert_eq!(of("cluster://database/MANIFEST"), "the cluster's nodes");
    }

    #[test]
    fn the_system_speaks_without_numbers() {
        let of = |code| reason(&io::Error::from_raw_os_error(code));
        assert_eq!(of(21), "it is a directory; name a file");
        assert_eq!(of(2), "no such file or directory; check the path");
        assert_eq!(of(111), "Connection refused");
        assert_eq!(
            without_numbers(
                "a: Is a directory (os error 21): b (os error 5) (os error x) (os error"
            ),
            "a: Is a directory: b (os error x) (os error"
        );
    }
}
