//! How the value of a variable is spelled: as it is, in addresses, in JSON.

use crate::wire::scan;

/// How a value can be spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As it is.
    Plain,
    /// As the path of a `file://` address, by RFC 8089 (Python and others).
    Path,
    /// As the path of a `file://` address, by the URL standard of browsers (Node.js).
    Url,
    /// As a part of an address, by RFC 3986.
    Percent,
    /// As a part of an address, by JavaScript's `encodeURIComponent`.
    Component,
    /// As a part of a form: blanks are `+`.
    Posted,
    /// What an encoder writes that uses small letters in escapes.
    Lower(Encoder),
    /// As the inside of a JSON string, in a text that is no JSON as a whole.
    Json,
}

/// A percent-encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoder {
    Path,
    Url,
    Percent,
    Component,
}

impl Form {
    /// Where two spell a value alike, the first is its form.
    pub(super) const ALL: [Self; 11] = [
        Self::Plain,
        Self::Path,
        Self::Url,
        Self::Percent,
        Self::Component,
        Self::Posted,
        Self::Lower(Encoder::Path),
        Self::Lower(Encoder::Url),
        Self::Lower(Encoder::Percent),
        Self::Lower(Encoder::Component),
        Self::Json,
    ];

    /// The form that needs no name at this place.
    pub(super) fn usual(text: &[u8], at: usize) -> Self {
        if text[..at].ends_with(b"file://") { Self::Path } else { Self::Plain }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Path => "path",
            Self::Url => "url",
            Self::Percent => "percent",
            Self::Component => "component",
            Self::Posted => "form",
            Self::Lower(Encoder::Path) => "path-lower",
            Self::Lower(Encoder::Url) => "url-lower",
            Self::Lower(Encoder::Percent) => "percent-lower",
            Self::Lower(Encoder::Component) => "component-lower",
            Self::Json => "json",
        }
    }

    pub(super) fn spell(self, value: &str) -> String {
        match self {
            Self::Plain => value.to_owned(),
            Self::Path => Encoder::Path.encode(value, false),
            Self::Url => Encoder::Url.encode(value, false),
            Self::Percent => Encoder::Percent.encode(value, false),
            Self::Component => Encoder::Component.encode(value, false),
            Self::Posted => Encoder::Percent.encode(value, false).replace("%20", "+"),
            Self::Lower(encoder) => encoder.encode(value, true),
            Self::Json => json_inside(value),
        }
    }
}

impl Encoder {
    fn encode(self, value: &str, lower: bool) -> String {
        // A path with a drive's letter begins with a slash in addresses, and its backslashes are slashes.
        let drive = matches!(value.as_bytes(), [letter, b':', b'\\', ..] if letter.is_ascii_alphabetic());
        let path = matches!(self, Self::Path | Self::Url);
        let value = if drive && path { format!("/{}", value.replace('\\', "/")) } else { value.to_owned() };
        let keep = |at: usize, byte: u8| self.spares(byte) || (drive && path && at == 2);
        let mut encoded = String::with_capacity(value.len());
        for (at, byte) in value.bytes().enumerate() {
            match (keep(at, byte), lower) {
                (true, _) => encoded.push(byte as char),
                (false, true) => encoded.push_str(&format!("%{byte:02x}")),
                (false, false) => encoded.push_str(&format!("%{byte:02X}")),
            }
        }
        encoded
    }

    /// Whether a byte is not encoded.
    const fn spares(self, byte: u8) -> bool {
        let unreserved = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
        match self {
            Self::Percent => unreserved,
            Self::Path => unreserved || byte == b'/',
            Self::Component => unreserved || matches!(byte, b'!' | b'*' | b'\'' | b'(' | b')'),
            Self::Url => {
                byte.is_ascii_graphic()
                    && !matches!(byte, b'"' | b'#' | b'%' | b'<' | b'>' | b'?' | b'`' | b'{' | b'}' | b'\\')
            }
        }
    }
}

/// What stands between the quotes of a JSON string that says this.
pub(super) fn json_inside(text: &str) -> String {
    let mut quoted = Vec::with_capacity(text.len() + 2);
    scan::push_string(text, &mut quoted);
    String::from_utf8_lossy(&quoted[1..quoted.len() - 1]).into_owned()
}
