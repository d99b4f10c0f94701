//! Where a journal comes from: its header's facts about this process and its parent.

use std::{
    io,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::cassette::journal::JournalHeader;

/// What `by` says of this program.
pub(super) const BY: &str = concat!("mcp-tapedeck ", env!("CARGO_PKG_VERSION"));

/// The header of a journal that begins now: a new id, this process's parent, the time.
///
/// # Errors
/// When the system gives no random bytes.
pub fn new_header(transport: &str) -> io::Result<JournalHeader> {
    let mut id = [0; 6];
    getrandom::fill(&mut id).map_err(|error| io::Error::other(error.to_string()))?;
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_pid().unsigned_abs());
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(JournalHeader {
        id: id.iter().map(|byte| format!("{byte:02x}")).collect(),
        parent,
        parent_start: start_of(parent).unwrap_or_default(),
        boot: fs_err::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned(),
        started_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        by: BY.to_owned(),
        transport: transport.to_owned(),
        redacted: true,
        ..JournalHeader::default()
    })
}

/// When a process started, in ticks since the system did: field 22 of its line in `/proc`. The name in field 2 may
/// hold anything, so fields are counted from the last bracket.
#[cfg(target_os = "linux")]
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs_err::read(format!("/proc/{pid}/stat")).ok()?;
    let behind_name = &stat[memchr::memrchr(b')', &stat)? + 1..];
    std::str::from_utf8(behind_name).ok()?.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// When a process started, as a number that differs where the time `ps` shows does.
#[cfg(not(target_os = "linux"))]
fn start_of(pid: u32) -> Option<u64> {
    use std::hash::{DefaultHasher, Hash, Hasher};

    let told =
        std::process::Command::new("ps").args(["-o", "lstart=", "-p", &pid.to_string()]).output().ok()?;
    let mut hash = DefaultHasher::new();
    told.stdout.hash(&mut hash);
    (told.status.success() && !told.stdout.is_empty()).then(|| hash.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_headers_of_one_process_share_the_parent_and_nothing_else() {
        let [a, b] = [new_header("stdio").unwrap(), new_header("stdio").unwrap()];
        assert_ne!(a.id, b.id);
        assert_eq!(a.id.len(), 12);
        assert!(a.parent_key().is_some_and(|key| key.len() == 12));
        assert_eq!(a.parent_key(), b.parent_key());
    }

    #[test]
    fn a_parent_whose_start_is_unknown_is_like_no_other() {
        let header = JournalHeader { parent: 1, parent_start: 0, ..JournalHeader::default() };
        assert_eq!(header.parent_key(), None);
        assert_eq!(start_of(0), None);
    }
}
