use std::borrow::Cow;

use proptest::prelude::*;

use super::*;
use crate::{
    cassette::journal::{
        Continues, Encoder, ROOM_STEP, decode,
        frame::by_bincode,
        head::{self, HEAD},
    },
    traffic::{Direction, Event, Exit, Lane, Payload, RequestHead, ResponseHead, SseEvent},
    wire::lines::Oversize,
};

fn message(at: u64, text: &str) -> Event<'static> {
    let payload = Payload::Message(Cow::Owned(text.as_bytes().to_vec()));
    Event { at, direction: Direction::ToServer, lane: Lane(0), payload }
}

fn header() -> JournalHeader {
    JournalHeader { id: "6f1c2a000000".to_owned(), by: "test".to_owned(), ..JournalHeader::default() }
}

fn encoded(events: &[Event<'_>]) -> Encoder {
    let mut encoder = Encoder::new(&header());
    events.iter().for_each(|event| encoder.event(event));
    encoder
}

fn journal(events: &[Event<'_>]) -> Vec<u8> {
    encoded(events).bytes
}

/// A journal whose recorder ended in good order.
fn ended(events: &[Event<'_>]) -> Vec<u8> {
    let mut encoder = encoded(events);
    encoder.end();
    encoder.bytes
}

/// A source that gives one byte a read.
struct Dribble<'a>(&'a [u8]);

impl Read for Dribble<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let some = self.0.len().min(out.len()).min(1);
        self.0.read(&mut out[..some])
    }
}

/// Its events, whether it ended in good order, the unfinished frame at its end, and what was skipped.
type Told = (Vec<Event<'static>>, bool, Option<Loss>, Vec<Damage>);

fn read_all<R: Read>(mut reader: JournalReader<R>, bytes: &[u8]) -> Result<Told, JournalError> {
    let (mut events, mut ended) = (Vec::new(), false);
    while let Some((place, entry)) = reader.next()? {
        let frame = &bytes[place.at as usize..][..place.len as usize];
        if !matches!(entry, Entry::Lost(_)) {
            assert_eq!(decode(frame), Some(entry.clone()), "a place leads to its entry");
        }
        match entry {
            Entry::Lost(_) => {}
            Entry::Event(event) => events.push(event.into_owned()),
            Entry::End => ended = true,
            entry => panic!("{entry:?}"),
        }
    }
    if let (Some(Loss { at, .. }), []) = (reader.damaged_end(), reader.losses()) {
        return Err(JournalError::EndDamaged { at });
    }
    Ok((events, ended, reader.torn(), reader.losses().to_vec()))
}

fn read(bytes: &[u8]) -> Result<Told, JournalError> {
    read_all(JournalReader::new(bytes)?, bytes)
}

fn recover(bytes: &[u8]) -> Result<Told, JournalError> {
    read_all(JournalReader::recover(|| bytes, JournalHeader::default())?, bytes)
}

fn events() -> impl Strategy<Value = Vec<Event<'static>>> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..300);
    let cow = move || bytes().prop_map(Cow::Owned);
    let oversize = (any::<u64>(), any::<[u8; 32]>(), bytes(), bytes())
        .prop_map(|(size, sha256, head, tail)| Payload::Oversize(Oversize { size, sha256, head, tail }));
    let exit = (any::<Option<i32>>(), any::<Option<i32>>(), any::<bool>())
        .prop_map(|(status, signal, by_itself)| Payload::Exit(Exit { status, signal, by_itself }));
    let headers = || proptest::collection::vec((cow(), cow()), 0..4);
    let request = (cow(), cow(), headers())
        .prop_map(|(method, target, headers)| Payload::Request(RequestHead { method, target, headers }));
    let response = (any::<u16>(), headers())
        .prop_map(|(status, headers)| Payload::Response(ResponseHead { status, headers }));
    let optional = || proptest::option::of(cow());
    let number = || (any::<u64>(), 0..64u32).prop_map(|(number, bits)| number >> bits);
    let sse_event = (optional(), optional(), proptest::option::of(number()), optional()).prop_map(
        |(id, event, retry, data)| {
            let (no_data, data) = (data.is_none(), data.unwrap_or_default());
            Payload::SseEvent(SseEvent { id, event, retry, data, no_data })
        },
    );
    let payload = prop_oneof![
        1 => request,
        1 => response,
        1 => sse_event,
        1 => cow().prop_map(Payload::Body),
        1 => any::<bool>().prop_map(|reset| Payload::Broken { reset }),
        8 => cow().prop_map(Payload::Message),
        1 => cow().prop_map(Payload::Partial),
        1 => oversize,
        1 => Just(Payload::Closed),
        1 => exit,
        1 => number().prop_map(|messages| Payload::Gap { messages }),
    ];
    let direction = prop_oneof![Just(Direction::ToServer), Just(Direction::ToClient)];
    let event = (number(), direction, number(), payload).prop_map(|(at, direction, lane, payload)| Event {
        at,
        direction,
        lane: Lane(lane as u32),
        payload,
    });
    proptest::collection::vec(event, 0..12)
}

proptest! {
    #[test]
    fn what_was_written_is_read_however_the_source_gives_it(events in events()) {
        let bytes = ended(&events);
        let expected = (events, true, None, vec![]);
        prop_assert_eq!(&read(&bytes).unwrap(), &expected);
        prop_assert_eq!(&recover(&bytes).unwrap(), &expected);
        let dribbled = read_all(JournalReader::new(Dribble(&bytes)).unwrap(), &bytes).unwrap();
        prop_assert_eq!(&dribbled, &expected);
    }

    #[test]
    fn events_are_written_as_bincode_writes_them(events in events()) {
        for event in events {
            let mut encoder = Encoder::default();
            encoder.event(&event);
            let frame = encoder.bytes;
            prop_assert_eq!(&by_bincode(&frame), &frame, "{:?}", event);
        }
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), begins in any::<bool>()) {
        let mut file = if begins { journal(&[]) } else { Vec::new() };
        file.extend_from_slice(&bytes);
        let _ = (read(&file), recover(&file), decode(&bytes));
    }
}

#[test]
fn every_header_field_comes_back() {
    let header = JournalHeader {
        id: "0123456789ab".to_owned(),
        parent: 7,
        parent_start: u64::MAX,
        boot: "b".to_owned(),
        started_ms: 1_795_000_000_000,
        by: "mcp-tapedeck 0.1.0".to_owned(),
        transport: "stdio".to_owned(),
        vars: vec!["HOME".to_owned(), "é".to_owned()],
        redacted: true,
        replace: true,
        cassette: Some("/c.json".to_owned()),
        continues: Some(Continues { recording: 2, session: Some(3), journal: Some("c".to_owned()) }),
        missed: u64::MAX - 1,
    };
    let mut encoder = Encoder::new(&header);
    encoder.missed(header.missed);
    assert_eq!(JournalReader::new(&encoder.bytes[..]).unwrap().header(), &header);
}

#[test]
fn the_count_of_what_is_missing_has_one_length_and_outlives_the_header() {
    let lengths = [0, 250, 251, u64::MAX].map(|messages| {
        let mut encoder = Encoder::default();
        encoder.missed(messages);
        encoder.bytes.len()
    });
    assert_eq!(lengths, [lengths[0]; 4]);
    let mut encoder = Encoder::new(&JournalHeader::default());
    let end = encoder.bytes.len();
    encoder.missed(7);
    encoder.event(&message(0, "kept"));
    let mut bytes = encoder.bytes;
    bytes[end - 1] ^= 1;
    let mut reader = JournalReader::recover(|| &bytes[..], JournalHeader::default()).unwrap();
    assert!(matches!(reader.next(), Ok(Some((_, Entry::Lost(_))))));
    assert!(matches!(reader.next(), Ok(Some((_, Entry::Event(_))))));
    assert_eq!((reader.header().missed, reader.losses().len()), (7, 1));
}

/// Where the frames of a journal begin, its header's among them, and the end.
fn borders(bytes: &[u8]) -> Vec<usize> {
    let mut at = MAGIC.len() + 4;
    let mut borders = vec![at];
    while at < bytes.len() {
        let head = head::Head::read(&bytes[at..]).unwrap();
        at += head.length + head.payload;
        borders.push(at);
    }
    borders
}

#[test]
fn a_journal_cut_anywhere_gives_the_events_before_the_cut() {
    let events = [message(0, "first"), message(1, ""), message(2, "the third")];
    let bytes = journal(&events);
    let borders = borders(&bytes);
    for cut in 0..bytes.len() {
        let whole = borders.iter().rposition(|&border| border <= cut).unwrap_or(0);
        match read(&bytes[..cut]) {
            Err(JournalError::NoHeader) => assert_eq!(whole, 0, "cut at {cut}"),
            told => {
                let at = borders[whole] as u64;
                // Zeros at its end might as well be room.
                let end = bytes[..cut].iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1;
                let torn = (end > at).then(|| Loss { at, bytes: end - at });
                assert_eq!(
                    told.unwrap(),
                    (events[..whole - 1].to_vec(), false, torn, vec![]),
                    "cut at {cut}"
                );
            }
        }
    }
}

#[test]
fn every_flipped_bit_is_an_error_and_recovery_loses_only_its_frame() {
    let events = [message(0, "first"), message(1, "second"), message(2, "the third")];
    let bytes = journal(&events);
    let borders = borders(&bytes);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let told = (read(&damaged), recover(&damaged));
            let Some(frame) = borders.iter().rposition(|&border| border <= at) else {
                assert!(told.0.is_err(), "magic and version, byte {at}");
                match told.1 {
                    // Nothing tells version 1 from version 2 but that.
                    Ok(recovered) => assert_eq!((at <= 8, recovered.0), (true, events.to_vec())),
                    Err(error) => assert!(matches!(error, JournalError::Version { .. }), "{error}"),
                }
                continue;
            };
            let (from, to) = (borders[frame] as u64, borders[frame + 1] as u64);
            let mut left = events.to_vec();
            if frame > 0 {
                left.remove(frame - 1);
            }
            let recovered = told.1.unwrap();
            assert_eq!(recovered.0, left, "byte {at}");
            let loss = Loss { at: from, bytes: to - from };
            let damage = if frame == 0 { Damage::Header(loss) } else { Damage::Bytes(loss) };
            assert_eq!(recovered.3, [damage], "byte {at}");
            let error = told.0.unwrap_err();
            let is = match error {
                JournalError::Damaged { at, resumes } => (at, resumes) == (from, to),
                JournalError::EndDamaged { at } => frame == events.len() && at == from,
                _ => false,
            };
            assert!(is, "byte {at}: {error}");
        }
    }
}

#[test]
fn a_header_that_is_damaged_is_no_beginning_that_was_torn() {
    let bytes = journal(&[]);
    for cut in 0..bytes.len() {
        assert!(matches!(read(&bytes[..cut]), Err(JournalError::NoHeader)), "cut at {cut}");
    }
    for at in MAGIC.len() + 4..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        assert!(matches!(read(&damaged), Err(JournalError::EndDamaged { at: 12 })), "byte {at}");
    }
}

#[test]
fn something_behind_a_broken_frame_is_damage_and_zeros_are_room() {
    let bytes = journal(&[message(0, "kept"), message(1, "the last one")]);
    let [.., at, end] = borders(&bytes)[..] else { panic!("two frames") };
    for cut in at + 1..=end {
        for (rest, is_torn) in [("\0\0\0", true), ("\0\0x", false), ("xyz", false)] {
            // So much that it ends behind where the frame would have.
            let mut torn = [&bytes[..cut], &vec![0; end - cut], rest.as_bytes()].concat();
            if cut == end {
                torn[end - 1] ^= 1;
            }
            let is_torn = is_torn && cut < end;
            let told = read(&torn);
            assert_eq!(told.is_ok(), is_torn, "cut at {cut}, then {rest:?}: {told:?}");
            let recovered = recover(&torn).unwrap();
            assert_eq!((recovered.0.len(), recovered.3.len()), (1, usize::from(!is_torn)));
        }
    }
}

#[test]
fn zeros_that_end_where_no_room_does_are_the_frame_s_own() {
    let event = Event { payload: Payload::Broken { reset: false }, ..message(0, "") };
    let mut bytes = journal(std::slice::from_ref(&event));
    let length = bytes.len();
    assert_eq!(bytes[length - 1], 0);
    bytes[length - 2] ^= 1;
    assert!(matches!(read(&bytes), Err(JournalError::EndDamaged { .. })));
    // The same where room would end.
    let text = "x".repeat(ROOM_STEP as usize - 10 * HEAD);
    let spare = ROOM_STEP as usize - journal(&[message(0, &text), event.clone()]).len();
    let mut bytes = journal(&[message(0, &[&*text, &*"x".repeat(spare)].concat()), event]);
    assert_eq!(bytes.len(), ROOM_STEP as usize);
    let length = bytes.len();
    bytes[length - 2] = 0;
    assert!(read(&bytes).unwrap().2.is_some());
}

/// The frames of a journal whose recorder ended in good order, in another order.
fn reordered(events: &[Event<'_>], order: &[usize]) -> Vec<u8> {
    let bytes = ended(events);
    let borders = borders(&bytes);
    let frame = |&number: &usize| &bytes[borders[number]..borders[number + 1]];
    [&bytes[..borders[0]], &order.iter().map(frame).collect::<Vec<_>>().concat()].concat()
}

#[test]
fn whole_frames_that_are_missing_doubled_or_swapped_are_damage() {
    let events = [message(0, "a"), message(1, "bc"), message(2, "def")];
    let texts = |events: Vec<Event<'_>>| -> Vec<u64> { events.iter().map(|event| event.at).collect() };
    for (order, left, missing, displaced) in [
        (&[0, 2, 3, 4][..], &[1, 2][..], 1, 0),
        (&[0, 1, 3, 4], &[0, 2], 1, 0),
        (&[0, 1, 4], &[0], 2, 0),
        (&[1, 2, 3, 4], &[0, 1, 2], 1, 0),
        (&[0, 1, 1, 2, 3, 4], &[0, 1, 2], 0, 1),
        (&[0, 0, 1, 2, 3, 4], &[0, 1, 2], 0, 1),
        (&[0, 1, 3, 2, 4], &[0, 1], 1, 1),
        (&[0, 3, 1, 2, 3, 4], &[0, 1, 2], 0, 1),
        (&[0, 3, 2, 1, 4], &[0], 2, 2),
        (&[0, 1, 2, 3, 4, 3], &[0, 1, 2], 0, 1),
        (&[1, 0, 1, 2, 3, 4], &[0, 1, 2], 0, 1),
        (&[3, 0, 1, 2, 3, 4], &[0, 1, 2], 0, 1),
        (&[1, 0, 2, 3, 4], &[1, 2], 1, 1),
        (&[1, 2, 3, 0, 4], &[0, 1, 2], 0, 1),
    ] {
        let bytes = reordered(&events, order);
        let error = read(&bytes).unwrap_err();
        assert!(error.is_damage(), "{order:?}: {error}");
        let (events, ended, torn, losses) = recover(&bytes).unwrap();
        assert_eq!((texts(events), ended, torn), (left.to_vec(), true, None), "{order:?}");
        let frames = losses.iter().map(|damage| match damage {
            Damage::Missing { frames, .. } => (*frames, 0),
            Damage::Displaced(_) => (0, 1),
            Damage::Bytes(_) | Damage::Header(_) => panic!("{order:?}: {losses:?}"),
        });
        let told = frames.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        assert_eq!(told, (missing, displaced), "{order:?}: {losses:?}");
    }
}

#[test]
fn a_header_with_what_belongs_to_it_is_found_behind_whatever_stands_before_it() {
    let continues = Some(Continues { recording: 2, session: Some(3), journal: None });
    let header = JournalHeader { continues, missed: 7, ..header() };
    let mut encoder = Encoder::new(&header);
    encoder.missed(header.missed);
    let events = [message(0, "a"), message(1, "bc")];
    events.iter().for_each(|event| encoder.event(event));
    let bytes = encoder.bytes;
    let borders = borders(&bytes);
    let frame = |number: usize| &bytes[borders[number]..borders[number + 1]];
    for order in [
        &[0, 1, 2, 3, 4][..],
        &[1, 0, 2, 3, 4],
        &[1, 0, 1, 2, 3, 4],
        &[2, 1, 0, 3, 4],
        &[4, 0, 1, 2, 3, 4],
        &[0, 3, 1, 2, 3, 4],
        &[3, 4, 0, 1, 2, 3, 4],
    ] {
        let frames: Vec<_> = order.iter().map(|number| frame(*number)).collect();
        let journal = [&bytes[..borders[0]], &frames.concat()].concat();
        let mut reader = JournalReader::recover(|| &journal[..], JournalHeader::default()).unwrap();
        assert_eq!(reader.header(), &header, "{order:?}");
        let (mut seen, mut losses) = (0, Vec::new());
        while let Some((_, entry)) = reader.next().unwrap() {
            match entry {
                Entry::Lost(damage) => losses.push(damage),
                entry => seen += usize::from(matches!(entry, Entry::Event(_))),
            }
        }
        assert_eq!((seen, losses.is_empty()), (2, order.len() == 5 && order[0] == 0), "{order:?}");
        assert!(losses.iter().all(|damage| matches!(damage, Damage::Displaced(_))), "{order:?}: {losses:?}");
        if !losses.is_empty() {
            assert!(matches!(read(&journal), Err(JournalError::Disordered { .. })), "{order:?}");
        }
    }
}

/// The same journal as version 1 had it.
fn version_1(bytes: &[u8]) -> Vec<u8> {
    let mut old = [&MAGIC[..], &1_u32.to_le_bytes()].concat();
    for frame in borders(bytes).windows(2) {
        let payload = &bytes[frame[0] + HEAD..frame[1]];
        let length = (payload.len() as u32).to_le_bytes();
        let mut hash = crc32fast::Hasher::new();
        hash.update(&length);
        hash.update(payload);
        old.extend_from_slice(&[0xf7, 0xa5, 0xfe, 0xc3]);
        old.extend_from_slice(&length);
        old.extend_from_slice(&hash.finalize().to_le_bytes());
        old.extend_from_slice(payload);
    }
    old
}

#[test]
fn a_journal_of_the_first_version_is_read_and_recovered() {
    let events = [message(0, "first"), message(1, "second")];
    let bytes = version_1(&ended(&events));
    let expected = (events.to_vec(), true, None, vec![]);
    assert_eq!(read(&bytes).unwrap(), expected);
    assert_eq!(recover(&bytes).unwrap(), expected);
    let mut damaged = bytes.clone();
    let at = memmem::find(&bytes, b"first").unwrap();
    damaged[at] ^= 1;
    assert!(matches!(read(&damaged), Err(JournalError::Damaged { .. })));
    let recovered = recover(&damaged).unwrap();
    assert_eq!((recovered.0, recovered.3.len()), (vec![message(1, "second")], 1));
    let mut damaged = bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert!(matches!(read(&damaged), Err(JournalError::EndDamaged { .. })));
    assert!(read(&bytes[..bytes.len() - 1]).unwrap().2.is_some());
}

#[test]
fn a_hostile_length_allocates_no_more_than_the_file_has() {
    for length in [u32::MAX, 1 << 30, (1 << 30) + 1, 1 << 20] {
        let mut bytes = journal(&[message(0, "kept")]);
        let at = bytes.len() as u64;
        bytes.extend_from_slice(&[0xf7, 0xa5, 0xfe, 0xc4]);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(b"num!crc!and a little");
        let mut reader = JournalReader::new(&bytes[..]).unwrap();
        assert!(matches!(reader.next(), Ok(Some(_))));
        assert!(matches!(reader.next(), Ok(None)));
        let end = if length > 1 << 30 { reader.damaged_end() } else { reader.torn() };
        assert_eq!(end.map(|end| end.at), Some(at));
        assert!(reader.buffer.capacity() <= 4 * CHUNK, "{}", reader.buffer.capacity());
    }
}

#[test]
fn a_length_inside_the_payload_is_limited_too() {
    let mut encoder = encoded(&[message(0, "kept"), message(1, "x")]);
    // The varint before "x" says one byte; 253 begins one of eight bytes.
    let payload = [&[1, 1, 1, 0, 0, 253][..], &u64::MAX.to_le_bytes()].concat();
    let start = encoder.bytes.len() as u64;
    head::push(encoder.number, &mut encoder.bytes, |out| out.extend_from_slice(&payload));
    let bytes = encoder.bytes;
    assert!(matches!(read(&bytes), Err(JournalError::Unknown { at }) if at == start));
    let recovered = recover(&bytes).unwrap();
    assert_eq!((recovered.0.len(), recovered.3.len()), (2, 1));
}

#[test]
fn long_journals_pass_through_a_small_buffer() {
    let text = "x".repeat(1000);
    let events: Vec<_> = (0..2000).map(|at| message(at, &text)).collect();
    let bytes = journal(&events);
    let mut reader = JournalReader::new(&bytes[..]).unwrap();
    let mut count = 0;
    while let Some((place, _)) = reader.next().unwrap() {
        assert!(decode(&bytes[place.at as usize..][..place.len as usize]).is_some());
        count += 1;
    }
    assert_eq!(count, 2000);
    assert!(reader.buffer.capacity() <= 4 * CHUNK);
}

#[test]
fn a_journal_that_was_cut_off_while_it_was_written_is_damaged_from_there_on() {
    let events = [message(0, "first"), message(1, "second")];
    let bytes = journal(&events);
    let last = borders(&bytes)[2];
    // Where something is written behind a file's end, zeros are before it.
    for cut in 0..borders(&bytes)[0] {
        let holed = [&bytes[..cut], &vec![0; last - cut][..], &bytes[last..]].concat();
        let error = read(&holed).unwrap_err();
        assert!(error.is_damage(), "cut at {cut}: {error}");
        assert!(is_journal(&holed[..]));
        let (recovered, .., losses) = recover(&holed).unwrap();
        assert_eq!((recovered, losses.len()), (events[1..].to_vec(), 1), "cut at {cut}: {losses:?}");
        let nothing = vec![0; last];
        assert!(matches!(read(&nothing), Err(JournalError::NoJournal)) && !is_journal(&nothing[..]));
    }
}

#[test]
fn other_files_and_versions_are_told_apart() {
    let mut damaged = journal(&[]);
    assert!(is_journal(&damaged[..]) && !is_journal(&b"{\"cassette\": 1}"[..]) && !is_journal(&b""[..]));
    damaged[..8].fill(0);
    assert!(is_journal(&damaged[..]));
    assert!(matches!(JournalReader::new(&b"{\"cassette\": 1}"[..]), Err(JournalError::NoJournal)));
    assert!(matches!(JournalReader::new(&b""[..]), Err(JournalError::NoHeader)));
    let mut bytes = journal(&[]);
    bytes[8] = 9;
    assert!(matches!(JournalReader::new(&bytes[..]), Err(JournalError::Version { found: 9 })));
}

#[test]
fn a_file_full_of_marks_is_given_up() {
    let mut bytes = journal(&[]);
    for _ in 0..8000 {
        bytes.extend_from_slice(&[0xf7, 0xa5, 0xfe, 0xc4]);
        bytes.extend_from_slice(&(1u32 << 20).to_le_bytes());
        bytes.extend_from_slice(&[0; 8]);
    }
    assert!(matches!(read(&bytes), Err(JournalError::Hopeless { .. })));
}

#[test]
fn zeros_behind_the_last_frame_are_room_and_say_nothing() {
    let events = [message(0, "kept"), message(1, "last")];
    let bytes = journal(&events);
    let borders: Vec<usize> = (0..=2).map(|count| journal(&events[..count]).len()).collect();
    for cut in borders[0]..=bytes.len() {
        let frames = borders.iter().rposition(|&border| border <= cut).unwrap();
        for room in [ROOM_STEP as usize, 2 * ROOM_STEP as usize] {
            let mut with_room = bytes[..cut].to_vec();
            with_room.resize(room, 0);
            // What ends in a zero by chance ends before it.
            let end = with_room.iter().rposition(|byte| *byte != 0).unwrap() + 1;
            let at = borders[frames];
            let torn = (end > at).then(|| Loss { at: at as u64, bytes: (end - at) as u64 });
            let (seen, _, told, _) = read(&with_room).unwrap();
            assert_eq!((seen.len(), told), (frames, torn), "{cut} and {room}");
            assert_eq!(recover(&with_room).unwrap().2, torn, "{cut} and {room}");
        }
    }
    // Zeros before a whole frame are damage.
    let (first, last) = (borders[0], borders[1]);
    let holed = [&bytes[..first], &vec![0; last - first][..], &bytes[last..]].concat();
    assert!(matches!(read(&holed), Err(JournalError::Damaged { .. })));
    assert_eq!(recover(&holed).unwrap().0.len(), 1);
}
