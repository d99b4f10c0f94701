//! The recordings in `cassettes/`: each is in order, and each plays itself to the last byte.

use std::{fs, path::PathBuf};

use mcp_tapedeck::{Cassette, cassette, store};

use crate::support::playback;

fn recordings() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("cassettes");
    let paths =
        fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("an entry").path());
    let recordings: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    assert!(recordings.len() >= 5, "{recordings:?}");
    recordings
}

#[test]
fn every_recording_is_in_its_canonical_form() {
    for path in recordings() {
        let loaded = store::load(&path).expect("it loads");
        let text = String::from_utf8(loaded.cassette.text.clone()).expect("UTF-8");
        let canonical = String::from_utf8(cassette::format(&loaded.cassette)).expect("UTF-8");
        assert!(text == canonical, "{} is not formatted", path.display());
        assert_eq!(loaded.cassette.warnings, [], "{}", path.display());
    }
}

#[test]
fn every_recording_plays_itself() {
    for path in recordings() {
        let loaded = store::load(&path).expect("it loads");
        let lines = playback::lines(&loaded.cassette, &loaded.blobs);
        assert!(lines.len() > 10, "{}", path.display());
        let (passed, report) = playback::replay_all(loaded.cassette, loaded.blobs, &lines);
        let differs = playback::from_server(&passed)
            .into_iter()
            .zip(playback::from_server(&lines))
            .find(|(a, b)| a != b);
        assert_eq!((differs, passed.len()), (None, lines.len()), "{}", path.display());
        assert_eq!((report.misses, report.unused), (vec![], vec![]), "{}", path.display());
    }
}

/// What is said of each recording in the format's page is true of it: it comes from a real server.
#[test]
fn every_recording_names_its_server_and_version() {
    for path in recordings() {
        let cassette: Cassette = store::load(&path).expect("it loads").cassette;
        // A process that was only probed does not say who it is.
        let servers = cassette.sessions.iter().filter_map(|session| session.server.as_deref());
        let versions: Vec<&str> = servers.filter_map(|server| server.rsplit(' ').next()).collect();
        let is_version = |version: &&str| version.starts_with(|first: char| first.is_ascii_digit());
        assert!(!versions.is_empty() && versions.iter().all(is_version), "{}: {versions:?}", path.display());
    }
}
