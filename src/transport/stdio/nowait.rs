//! Reads and writes that wait for nobody, on descriptors that are not ours to make non-blocking: they are shared with
//! whoever started us.
//!
//! Linux takes that as a wish for one call (`RWF_NOWAIT`; for pipes since 6.5). Where that cannot be asked for, the
//! answer is [`Errno::OPNOTSUPP`], and a descriptor has to be polled first.

use std::os::fd::BorrowedFd;

use rustix::io::{Errno, Result};

/// Reads what is there by now.
#[cfg(target_os = "linux")]
pub(crate) fn read(input: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize> {
    use rustix::io::{ReadWriteFlags, preadv2};
    let buffer = &mut [std::io::IoSliceMut::new(buffer)];
    preadv2(input, buffer, CURRENT, ReadWriteFlags::NOWAIT).map_err(known)
}

/// Writes what there is room for by now.
#[cfg(target_os = "linux")]
pub(crate) fn write(output: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize> {
    use rustix::io::{ReadWriteFlags, pwritev2};
    pwritev2(output, &[std::io::IoSlice::new(bytes)], CURRENT, ReadWriteFlags::NOWAIT).map_err(known)
}

/// The offset that means wherever the descriptor stands.
#[cfg(target_os = "linux")]
const CURRENT: u64 = u64::MAX;

/// Kernels and sandboxes have several words for what they do not know.
#[cfg(target_os = "linux")]
const fn known(error: Errno) -> Errno {
    match error {
        Errno::NOSYS | Errno::INVAL | Errno::SPIPE => Errno::OPNOTSUPP,
        error => error,
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) const fn read(_: BorrowedFd<'_>, _: &mut [u8]) -> Result<usize> {
    Err(Errno::OPNOTSUPP)
}

#[cfg(not(target_os = "linux"))]
pub(crate) const fn write(_: BorrowedFd<'_>, _: &[u8]) -> Result<usize> {
    Err(Errno::OPNOTSUPP)
}
