//! What is written to and is no file: pipes, devices, terminals.

use std::{fs::File, io, os::unix::fs::OpenOptionsExt, path::Path};

use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
};

/// Opens, to be written to, what has a path and is neither file nor folder; none where it is one of these, or nothing.
///
/// # Errors
/// When it cannot be opened, which is so of a pipe that nobody reads too: to wait for a reader could take for ever.
pub fn open_other(path: &Path) -> io::Result<Option<File>> {
    // Through links: one may lead to a device.
    let is_other = |known: std::fs::Metadata| !known.is_file() && !known.is_dir();
    if !std::fs::metadata(path).is_ok_and(is_other) {
        return Ok(None);
    }
    let mut options = File::options();
    options.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::NXIO) => io::Error::new(io::ErrorKind::NotConnected, "nobody reads there"),
        _ => error,
    })?;
    // A reader that is slow is waited for.
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(Some(file))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_pipe_is_written_to_where_somebody_reads_it_and_nobody_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe");
        let open = || open_other(&path);
        assert!(open().expect("nothing is there").is_none());
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).expect("a pipe");
        assert_eq!(open().expect_err("no reader").to_string(), "nobody reads there");
        let mut options = File::options();
        let mut reader = options
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(&path)
            .expect("it opens");
        let mut writer = open().expect("a reader").expect("a pipe");
        assert!(!fcntl_getfl(&writer).expect("flags").contains(OFlags::NONBLOCK));
        writer.write_all(b"text").expect("it is read");
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("text");
        assert_eq!(text, "text");
        drop(reader);
        assert!(open().is_err(), "its reader has left");
        assert!(open_other(folder.path()).expect("a folder").is_none());
        let file = folder.path().join("file");
        std::fs::write(&file, "").expect("a file");
        assert!(open_other(&file).expect("a file").is_none());
        assert!(open_other(Path::new("/dev/null")).expect("it opens").is_some());
    }
}
