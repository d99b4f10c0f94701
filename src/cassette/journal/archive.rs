//! A cassette as a journal: one compact file, blobs included, from which the same bytes come back.
//!
//! It begins with the cassette's text without messages. These follow without the white space that lays them out; one
//! that stands in another layout than ours stays in the text.

use std::io::{self, Read, Write};

use super::{
    super::{
        blob, layout,
        model::{Cassette, Form, Message},
    },
    CutMessage, Encoder, Entry, JournalError, JournalHeader, JournalReader,
    frame::{MAX_MESSAGE, Part},
};
use crate::wire::{Span, scan};

/// The longest piece of text in one frame.
const PIECE: usize = 1 << 20;

/// What an archive holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// The cassette's text.
    pub text: Vec<u8>,
    /// Its blobs, each with its name.
    pub blobs: Vec<(String, Vec<u8>)>,
}

/// Writes a cassette and its blobs as an archive.
///
/// # Errors
/// Those of `out`.
pub fn encode_archive(
    header: &JournalHeader,
    cassette: &Cassette,
    blobs: &[(String, Vec<u8>)],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut encoder = Encoder::new(header);
    let mut put = |part: Part<'_>| {
        encoder.part(&part);
        out.write_all(&encoder.bytes)?;
        encoder.bytes.clear();
        Ok::<_, io::Error>(())
    };
    let text = &cassette.text[..];
    let mut cuts = Vec::new();
    let mut skeleton = Vec::with_capacity(text.len() / 4);
    let mut kept = 0;
    for (place, level) in places(cassette) {
        if place.start < kept {
            continue;
        }
        if let Some((column, flat)) = cut(text, place, level) {
            skeleton.extend_from_slice(&text[kept..place.start]);
            kept = place.end;
            cuts.push((skeleton.len() as u64, level, column, flat));
        }
    }
    skeleton.extend_from_slice(&text[kept..]);
    for piece in skeleton.chunks(PIECE) {
        put(Part::Text(piece))?;
    }
    for (at, level, column, flat) in &cuts {
        let (level, column) = (*level as u32, *column as u32);
        put(Part::Message(CutMessage { at: *at, level, column, flat }))?;
    }
    for (name, bytes) in blobs {
        put(Part::Blob { name, bytes })?;
    }
    encoder.end();
    out.write_all(&encoder.bytes)
}

/// Where the messages of a cassette stand, in the order of its text, each with how many containers are around it.
fn places(cassette: &Cassette) -> Vec<(Span, usize)> {
    let mut places = Vec::new();
    let mut add = |message: &Message, level| {
        let is_json = matches!(message.form, Form::Request | Form::Notification | Form::Result | Form::Error);
        if is_json {
            places.push((message.place.span(), level));
        }
    };
    for exchange in &cassette.exchanges {
        // Around each: the document, its array, the exchange, and what holds the message there.
        exchange.client.iter().for_each(|message| add(message, 4));
        for item in &exchange.server {
            add(&item.message, 5);
            item.answer.iter().for_each(|answer| add(&answer.message, 6));
        }
    }
    // A message that is the same as an earlier one stands there.
    places.sort_unstable_by_key(|(place, _)| place.start);
    places.dedup();
    places
}

/// A value's column and its text without white space, if laying that out gives the text at this place again.
fn cut(text: &[u8], place: Span, level: usize) -> Option<(usize, Vec<u8>)> {
    let line = memchr::memrchr(b'\n', &text[..place.start]).map_or(0, |newline| newline + 1);
    let column = layout::columns(&text[line..place.start]);
    let flat = flat(place.of(text));
    let mut again = Vec::with_capacity(place.len());
    layout::push(&flat, Span::new(0, flat.len()), level, column, &mut again);
    (flat.len() <= MAX_MESSAGE && again == place.of(text)).then_some((column, flat))
}

/// JSON without white space outside strings.
fn flat(text: &[u8]) -> Vec<u8> {
    let mut flat = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let end = match byte {
            b'"' => scan::skip_value(text, at).unwrap_or(text.len()),
            _ => at + 1,
        };
        if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            flat.extend_from_slice(&text[at..end]);
        }
        at = end;
    }
    flat
}

impl Archive {
    /// Reads an archive from its first entry on; none where the journal is a recording.
    ///
    /// # Errors
    /// When the journal cannot be read, or is an archive that is not whole.
    pub fn read<R: Read>(reader: &mut JournalReader<R>) -> Result<Option<Self>, JournalError> {
        let mut skeleton = Vec::new();
        let mut archive = Self { text: Vec::new(), blobs: Vec::new() };
        let mut written = 0;
        while let Some((_, entry)) = reader.next()? {
            match entry {
                Entry::Text(piece) => skeleton.extend_from_slice(piece),
                Entry::Event(_) | Entry::End if skeleton.is_empty() => return Ok(None),
                Entry::Event(_) | Entry::Lost(_) => return Err(JournalError::NoArchive),
                Entry::Message(message) => written = archive.put(message, &skeleton, written)?,
                // A name becomes a path, so it must be the one that these bytes have.
                Entry::Blob { name, bytes } => match blob::kind(name) {
                    Some(kind) if blob::name(kind, bytes) == name => {
                        archive.blobs.push((name.to_owned(), bytes.to_vec()));
                    }
                    _ => return Err(JournalError::NoArchive),
                },
                Entry::End => {
                    archive.text.extend_from_slice(&skeleton[written..]);
                    return Ok(Some(archive));
                }
            }
        }
        if skeleton.is_empty() { Ok(None) } else { Err(JournalError::NoArchive) }
    }

    /// Puts a message back into the text; how much of the skeleton stands before it.
    fn put(
        &mut self,
        message: CutMessage<'_>,
        skeleton: &[u8],
        written: usize,
    ) -> Result<usize, JournalError> {
        let at = usize::try_from(message.at).ok().filter(|&at| (written..=skeleton.len()).contains(&at));
        let at = at.filter(|_| scan::is_json(message.flat)).ok_or(JournalError::NoArchive)?;
        self.text.extend_from_slice(&skeleton[written..at]);
        let whole = Span::new(0, message.flat.len());
        layout::push(message.flat, whole, message.level as usize, message.column as usize, &mut self.text);
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::super::{blob::NoBlobs, format},
        *,
    };

    const TEXT: &str = r#"{
  "cassette": 1,
  "x-mine":   [1,
 2],
  "sessions": [{"session": 1}],
  "exchanges": [
    {
      "key": "tools/call a @1",
      "client": {
        "request": {
          "method": "tools/call",
          "params": {
            "name": "a",
            "arguments": {"text": "a text with \" : , [ in it, which is long enough for lines", "n": 1}
          }
        }
      },
      "server": [
        {"notification": {"method": "x"}},
        {"request": {"method": "ask"}, "answer": {"result": {"action": "accept", "é": {"$lines": ["a", "b"]}}}},
        {"result": { "by":"hand" }}
      ]
    },
    {"key": "same", "client": {"request": {"method": "x"}}, "server": [{"same_as": "tools/call a @1"}]},
    {"key": "push raw @1", "server": [{"raw": "{ \"a\" : 1 }"}]}
  ]
}
"#;

    fn archive(text: &str) -> Vec<u8> {
        let cassette = Cassette::load(text.as_bytes().to_vec(), &NoBlobs).unwrap();
        let blobs = [(blob::name(blob::Kind::Base64, &[0, 1, 2]), vec![0, 1, 2])];
        let mut out = Vec::new();
        encode_archive(&JournalHeader::default(), &cassette, &blobs, &mut out).unwrap();
        out
    }

    fn read(bytes: &[u8]) -> Result<Option<Archive>, JournalError> {
        Archive::read(&mut JournalReader::new(bytes)?)
    }

    #[test]
    fn the_same_bytes_come_back_whoever_laid_them_out() {
        for text in [TEXT, "{\"cassette\":1}", " {\"cassette\": 1,\n\"exchanges\": [ ] }\n\n"] {
            let bytes = archive(text);
            let back = read(&bytes).unwrap().unwrap();
            assert_eq!(String::from_utf8(back.text).unwrap(), text);
            assert_eq!(back.blobs.len(), 1);
        }
    }

    #[test]
    fn it_begins_with_the_text_without_messages() {
        let formatted = format(&Cassette::load(TEXT.as_bytes().to_vec(), &NoBlobs).unwrap());
        let by_hand =
            String::from_utf8(formatted).unwrap().replace("{\"by\": \"hand\"}", "{ \"by\":\"hand\" }");
        let bytes = archive(&by_hand);
        let mut reader = JournalReader::new(&bytes[..]).unwrap();
        let Some((_, Entry::Text(text))) = reader.next().unwrap() else { panic!("no text") };
        let text = String::from_utf8(text.to_vec()).unwrap();
        assert!(text.contains("\"request\": }") && !text.contains("params"), "{text}");
        assert!(text.contains("{ \"by\":\"hand\" }"), "what is laid out otherwise stays");
        let mut messages = 0;
        while let Some((_, entry)) = reader.next().unwrap() {
            messages += usize::from(matches!(entry, Entry::Message(_)));
        }
        assert_eq!(messages, 5);
        assert_eq!(read(&bytes).unwrap().unwrap().text, by_hand.as_bytes());
    }

    #[test]
    fn a_part_of_an_archive_is_none() {
        let bytes = archive(TEXT);
        for cut in 0..bytes.len() {
            assert!(!matches!(read(&bytes[..cut]), Ok(Some(_))), "cut at {cut}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(!matches!(read(&damaged), Ok(Some(_))), "byte {at}");
        }
    }

    #[test]
    fn messages_in_impossible_places_are_refused() {
        let message = |at, flat: &'static [u8]| {
            Part::Message(CutMessage { at, level: u32::MAX, column: u32::MAX, flat })
        };
        for (number, parts) in [
            vec![message(5, b"{}")],
            vec![message(u64::MAX, b"{}")],
            vec![message(2, b"{}"), message(1, b"{}")],
            vec![message(1, b"{")],
            vec![message(1, b"")],
            vec![Part::Blob { name: "../x", bytes: b"" }],
            vec![Part::Blob { name: &blob::name(blob::Kind::Text, b"a"), bytes: b"b" }],
        ]
        .into_iter()
        .enumerate()
        {
            let mut encoder = Encoder::new(&JournalHeader::default());
            encoder.part(&Part::Text(b"text"));
            parts.iter().for_each(|part| encoder.part(part));
            encoder.end();
            assert!(matches!(read(&encoder.bytes), Err(JournalError::NoArchive)), "number {number}");
        }
    }
}
